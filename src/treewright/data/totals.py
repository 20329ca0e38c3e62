"""Class totals of the unlabelled rows: exact, as intervals, per group. What is impossible is refused here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from treewright.arrays import FloatArray, IntArray
from treewright.data._checks import AnyArray, freeze, listing, numbered_groups, show
from treewright.data._totals_input import Asked, plain_totals, read_group
from treewright.data.point_totals import PointTotals, class_deviations, tight_intervals
from treewright.exceptions import InfeasibleTotalsError, InvalidInputError

__all__ = ["ClassTotals", "parse_totals"]

_ROUNDING = 1e-9  # shares times rows that are this near to an integer are that integer
_SHARE_SUM = 1e-6  # shares whose sum is this near to 1 are all of the rows


@dataclass(frozen=True, eq=False)
class ClassTotals:
    """How many of the unlabelled rows have each class, in each group, as intervals of counts.

    The intervals are tight: every count in ``[low, high]`` belongs to some division of the group's rows among
    the classes that respects all intervals, and such a division exists.

    Attributes
    ----------
    groups : tuple
        Labels of the groups that have unlabelled rows; ``(None,)`` where there are no groups.
    group_of : ndarray of int, shape (n_unlabelled,)
        Group number of each unlabelled row.
    low, high : ndarray of int, shape (n_groups, n_classes)
        Fewest and most rows; a total is exact where they are equal.
    size : ndarray of int, shape (n_groups,)
        Unlabelled rows of each group.
    asked : dict
        What the user asked, ``{label: total}`` or ``{group: {label: total}}``, where a total is an int, a
        share or a pair of such.

    See Also
    --------
    parse_totals : Makes one from what a user passes.

    Examples
    --------
    >>> totals = parse_totals({"yes": 2}, ["no", "yes"], n_unlabelled=5)
    >>> totals.low.tolist(), totals.high.tolist()
    ([[3, 2]], [[3, 2]])
    >>> totals.total_deviation(totals.count([0, 1, 1, 1, 1]))
    2
    """

    groups: tuple[Any, ...]
    group_of: IntArray
    low: IntArray
    high: IntArray
    size: IntArray
    asked: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("group_of", "low", "high", "size"):
            object.__setattr__(self, name, freeze(np.ascontiguousarray(getattr(self, name), dtype=np.int64)))

    @property
    def n_groups(self) -> int:
        """Number of groups, 1 where there are none."""
        return len(self.groups)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.low.shape[1])

    @property
    def is_exact(self) -> bool:
        """Whether every class has an exact total in every group."""
        return bool(np.all(self.low == self.high))

    def count(self, y_pred: ArrayLike) -> IntArray:
        """Count the rows of each class in each group.

        Parameters
        ----------
        y_pred : array-like of int, shape (n_unlabelled,)
            Class numbers of the unlabelled rows.

        Returns
        -------
        ndarray of int, shape (n_groups, n_classes)
            The counts.
        """
        y = np.asarray(y_pred)
        if y.shape != self.group_of.shape:
            raise InvalidInputError(f"y_pred has shape {y.shape}, there are {len(self.group_of)} unlabelled rows")
        if y.size and (y.dtype.kind not in "iu" or y.min() < 0 or y.max() >= self.n_classes):
            raise InvalidInputError(f"y_pred must be class numbers from 0 to {self.n_classes - 1}")
        return self.of_points(np.arange(len(y)), len(y)).counts(y.astype(np.int64))

    def of_points(self, point_of: ArrayLike, n_points: int) -> PointTotals:
        """Return the totals of points that stand for these rows: unlabelled row i belongs to ``point_of[i]``."""
        return PointTotals.from_parts(point_of, self.group_of, n_points, self.low, self.high)

    def deviation(self, counts: ArrayLike) -> IntArray:
        """Fewest rows of each group that would have to change class, see :func:`class_deviations`."""
        return class_deviations(np.asarray(counts, dtype=np.int64), self.low, self.high)

    def total_deviation(self, counts: ArrayLike) -> int:
        """Fewest rows in all groups that would have to change class for the totals to hold."""
        return int(self.deviation(counts).sum())

    def reached(self, counts: ArrayLike, classes: ArrayLike) -> list[dict[str, Any]]:
        """Table of what was asked and reached, one entry a group and class.

        Parameters
        ----------
        counts : array-like of int, shape (n_groups, n_classes)
            Rows of each class in each group.
        classes : array-like of shape (n_classes,)
            Labels of the classes.

        Returns
        -------
        list of dict
            With keys ``group``, ``class``, ``low``, ``high``, ``reached`` and ``deviation``, the distance of
            `reached` from ``[low, high]``.
        """
        c, labels = np.asarray(counts, dtype=np.int64), np.asarray(classes).tolist()
        away = np.maximum(np.maximum(c - self.high, self.low - c), 0)
        return [
            {
                "group": group,
                "class": label,
                "low": int(self.low[g, k]),
                "high": int(self.high[g, k]),
                "reached": int(c[g, k]),
                "deviation": int(away[g, k]),
            }
            for g, group in enumerate(self.groups)
            for k, label in enumerate(labels)
        ]

    def table(self, y_pred: ArrayLike, classes: ArrayLike) -> list[dict[str, Any]]:
        """Table of what was asked and what predictions of the unlabelled rows reach, see :meth:`reached`.

        Examples
        --------
        >>> totals = parse_totals(1, ["no", "yes"], n_unlabelled=3)
        >>> for row in totals.table([0, 1, 1], ["no", "yes"]):
        ...     print(*row.values())
        None no 2 2 1 1
        None yes 1 1 2 1
        """
        return self.reached(self.count(y_pred), classes)


def parse_totals(totals: Any, classes: ArrayLike, n_unlabelled: int, groups: ArrayLike | None = None) -> ClassTotals:
    """Read class totals of the unlabelled rows and refuse what is impossible.

    Parameters
    ----------
    totals : int, float, mapping, or pandas or polars frame
        Without groups: ``{label: total}``, or a total alone, which is that of the second of two classes. A
        total is an int (a count), a float in [0, 1] (a share), or a pair ``(low, high)`` of two ints or two
        floats. Classes that are not named are free.
        With groups: a mapping from each group to one of these, or a frame whose columns are classes; its rows
        are named by the index (pandas) or by the first column (polars). A class whose cell is empty is free in that
        group. Empty cells make floats of the counts of a pandas frame: in a frame that has some, floats are counts if
        all are whole numbers.
    classes : array-like of shape (n_classes,)
        Labels of the classes, in order.
    n_unlabelled : int
        Number of unlabelled rows.
    groups : array-like of shape (n_unlabelled,) or None
        Group of each unlabelled row.

    Returns
    -------
    ClassTotals
        Tight intervals of counts.

    Raises
    ------
    InfeasibleTotalsError
        If totals contradict the data or one another; the text has the numbers that clash.
    InvalidInputError
        If totals are of a type that means nothing.

    Notes
    -----
    A share becomes the nearest count, and ``(low, high)`` the counts between them. Shares that sum to 1 are
    rounded together by largest remainders, ties in class order, so that their counts sum to the rows of the
    group. The same is done with shares whose nearest counts would be more than the rows. The upper end of an
    interval may be above the number of rows. Groups without unlabelled rows may be named if they ask for
    none.

    Examples
    --------
    >>> totals = parse_totals({"a": (0.2, 0.5), "b": 3}, ["a", "b", "c"], n_unlabelled=10)
    >>> totals.low.tolist(), totals.high.tolist()
    ([[2, 3, 2]], [[5, 3, 5]])
    >>> parse_totals({"a": 7, "b": 5}, ["a", "b", "c"], n_unlabelled=10)
    Traceback (most recent call last):
    ...
    treewright.exceptions.InfeasibleTotalsError: totals ask for at least 12 rows (7 of 'a', 5 of 'b'), but
    there are only 10 unlabelled rows
    """
    labels = np.asarray(classes)
    asked = plain_totals(totals, labels)
    if groups is None:
        if isinstance(asked, dict) and any(isinstance(v, dict) for v in asked.values()):
            raise InfeasibleTotalsError("totals are given by group, but there are no groups; pass groups, one a row")
        read = read_group(asked, labels, "")
        low, high = _bounds(read, labels, n_unlabelled, where="", rows="unlabelled rows")
        return ClassTotals(
            groups=(None,),
            group_of=np.zeros(n_unlabelled, dtype=np.int64),
            low=low[None, :],
            high=high[None, :],
            size=np.array([n_unlabelled]),
            asked=_plain_asked(read, labels),
        )
    return _by_group(asked, labels, n_unlabelled, groups)


def _by_group(asked: Any, classes: AnyArray, n_unlabelled: int, groups: ArrayLike) -> ClassTotals:
    names, group_of = _numbered(groups, n_unlabelled)
    if not isinstance(asked, dict):
        raise InvalidInputError(
            f"totals are {show(asked)} of type {type(asked).__name__}; with groups, write {{group: totals}} "
            "or pass a frame with a row a group and a column a class"
        )
    lacking = [name for name in names if name not in asked]
    if lacking:
        hint = "; these are classes: leave groups out" if asked and set(asked) <= set(classes.tolist()) else ""
        raise InfeasibleTotalsError(
            f"group {show(lacking[0])} has unlabelled rows but no totals ({len(lacking)} such groups); "
            f"totals name {listing(asked)}{hint}"
        )
    known, read = set(names), {name: read_group(asked[name], classes, f" of group {show(name)}") for name in asked}
    for name in asked:
        if name not in known:
            _check_empty(name, read[name], classes, names)
    size = np.bincount(group_of, minlength=len(names))
    parts = [
        _bounds(read[name], classes, int(m), f" of group {show(name)}", f"unlabelled rows of group {show(name)}")
        for name, m in zip(names, size, strict=True)
    ]
    shape = (len(names), len(classes))
    return ClassTotals(
        groups=tuple(names),
        group_of=group_of,
        low=np.array([p[0] for p in parts], dtype=np.int64).reshape(shape),
        high=np.array([p[1] for p in parts], dtype=np.int64).reshape(shape),
        size=size,
        asked={name: _plain_asked(read[name], classes) for name in asked},
    )


def _numbered(groups: ArrayLike, n_unlabelled: int) -> tuple[Sequence[Any], IntArray]:
    """Return the groups in order, and the group number of each unlabelled row."""
    rows = f"{n_unlabelled} unlabelled rows"
    missing = f"{rows} have no group (NaN or None), first the unlabelled row number {{}}"
    return numbered_groups(groups, n_unlabelled, f"there are {rows}", missing, InfeasibleTotalsError)


def _check_empty(name: object, asked: dict[int, Asked], classes: AnyArray, names: Sequence[Any]) -> None:
    """Refuse totals of a group without unlabelled rows, unless they ask for none."""
    for k, total in asked.items():
        if total.low > 0 and not total.is_share:
            raise InfeasibleTotalsError(
                f"totals ask for {int(total.low)} rows of class {show(classes[k])} in group {show(name)}, "
                f"which no unlabelled row has; groups of unlabelled rows: {listing(names)}"
            )


def _plain_asked(asked: dict[int, Asked], classes: AnyArray) -> dict[Any, Any]:
    labels = classes.tolist()
    return {labels[k]: total.value for k, total in asked.items()}


# ---------------------------------------------------------------------- one group


def _bounds(
    total: dict[int, Asked], classes: AnyArray, n_rows: int, where: str, rows: str
) -> tuple[IntArray, IntArray]:
    """Return fewest and most rows of each class among `n_rows`, tight."""
    shares = {k: total[k].low for k in sorted(total) if total[k].is_share and not total[k].is_interval}
    _check_shares(shares, classes, where)
    low, high = np.zeros(len(classes), dtype=np.int64), np.full(len(classes), n_rows, dtype=np.int64)
    for k, t in total.items():
        low[k], high[k] = _counts(t, n_rows, f"of class {show(classes[k])}{where}", rows)
    if shares:
        chosen = np.array(list(shares))
        low[chosen] = high[chosen] = _rounded(np.array(list(shares.values())), n_rows)
    if low.sum() > n_rows:
        parts = ", ".join(f"{low[k]} of {show(classes[k])}" for k in np.flatnonzero(low))
        raise InfeasibleTotalsError(
            f"totals{where} ask for at least {low.sum()} rows ({parts}), but there are only {n_rows} {rows}"
        )
    if high.sum() < n_rows:
        parts = ", ".join(f"{high[k]} of {show(classes[k])}" for k in range(len(classes)))
        raise InfeasibleTotalsError(
            f"totals{where} allow at most {high.sum()} rows ({parts}), but there are {n_rows} {rows}"
        )
    tight_low, tight_high = tight_intervals(low[None], high[None], np.array([n_rows]))
    return tight_low[0], tight_high[0]


def _counts(total: Asked, n_rows: int, what: str, rows: str) -> tuple[int, int]:
    if not total.is_share:
        if total.low > n_rows:
            least = "at least " if total.is_interval else ""
            raise InfeasibleTotalsError(
                f"{least}{int(total.low)} rows {what} are asked, but there are only {n_rows} {rows}"
            )
        return int(total.low), min(int(total.high), n_rows)
    if not total.is_interval:
        return 0, n_rows  # rounded together with the other shares
    low = int(np.ceil(total.low * n_rows - _ROUNDING))
    high = int(np.floor(total.high * n_rows + _ROUNDING))
    if low > high:
        raise InfeasibleTotalsError(
            f"no whole number of the {n_rows} {rows} lies between the shares {total.low} and {total.high} {what}"
        )
    return low, high


def _check_shares(shares: dict[int, float], classes: AnyArray, where: str) -> None:
    total = sum(shares.values())
    parts = ", ".join(f"{share} of {show(classes[k])}" for k, share in shares.items())
    if total > 1 + _SHARE_SUM:
        raise InfeasibleTotalsError(f"shares{where} sum to {total:.6g}, above 1 ({parts})")
    if len(shares) == len(classes) and total < 1 - _SHARE_SUM:
        raise InfeasibleTotalsError(f"shares{where} of all classes sum to {total:.6g}, not to 1 ({parts})")


def _rounded(shares: FloatArray, n_rows: int) -> IntArray:
    """Round shares of `n_rows` to counts; those that sum to 1, to counts that sum to `n_rows`."""
    total = float(shares.sum())
    whole = abs(total - 1) <= _SHARE_SUM
    nearest = np.floor(shares * n_rows + 0.5 + _ROUNDING).astype(np.int64)
    if not whole and nearest.sum() <= n_rows:
        return nearest
    exact = (shares / total if whole else np.append(shares, 1 - total)) * n_rows
    counts = np.floor(exact + _ROUNDING).astype(np.int64)
    remainder = np.round(exact - counts, 9)
    first = np.argsort(-remainder, kind="stable")[: n_rows - int(counts.sum())]
    counts[first] += 1
    return counts[: len(shares)]
