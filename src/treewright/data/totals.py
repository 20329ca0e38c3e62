"""Class totals of the unlabelled rows: exact, as intervals, per group. What is impossible is refused here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from treewright.core.arrays import BoolArray, IntArray
from treewright.core.names import counted, option
from treewright.data.columns_checked import (
    AnyArray,
    as_column,
    freeze,
    listing,
    meant,
    missing_mask,
    numbered_groups,
    show,
)
from treewright.data.point_totals import PointTotals, class_deviations
from treewright.data.totals_bounds import GroupRows, group_bounds
from treewright.data.totals_input import Asked, alike_groups, plain_totals, read_group_totals
from treewright.exceptions import AlikeNamesWarning, InfeasibleTotalsError, InvalidInputError, warn_user

__all__ = ["ClassTotals", "LabelledRows", "TotalsRules", "drawn_rows", "parse_totals"]


@dataclass(frozen=True)
class TotalsRules:
    """How totals are meant.

    Attributes
    ----------
    of : {"unlabeled", "all"}
        Whether they count the unlabelled rows or all; from those of all the labelled rows are subtracted.
    allow_new_classes : bool
        Whether they may name classes that no label has. By default that is taken for a misspelling.
    tolerance : float
        By how much a share may be missed, as a share; the nearest count is always allowed.
    """

    of: str = "unlabeled"
    allow_new_classes: bool = False
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        if self.of not in ("unlabeled", "all"):
            raise InvalidInputError(f"totals_of is {show(self.of)}; expected 'unlabeled' or 'all'")
        if isinstance(self.tolerance, bool) or not isinstance(self.tolerance, int | float | np.number):
            raise InvalidInputError(f"totals_tolerance is {show(self.tolerance)}; expected a number from 0 to 1")
        if not 0 <= self.tolerance <= 1:
            raise InvalidInputError(f"totals_tolerance is {show(self.tolerance)}; expected a share from 0 to 1")


@dataclass(frozen=True)
class LabelledRows:
    """The labelled rows as totals see them: class numbers, and groups where there are any.

    Weights do not count: a row is a row.
    """

    y: IntArray
    groups: AnyArray | None = None

    def by_class(self, n_classes: int) -> IntArray:
        """Rows of each class."""
        return np.bincount(self.y, minlength=n_classes).astype(np.int64)


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
    def free(self) -> BoolArray:
        """Groups of which nothing is asked."""
        return np.all((self.low == 0) & (self.high == self.size[:, None]), axis=1)

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

    def in_proportion(self, rows: IntArray, classes: ArrayLike) -> dict[Any, Any]:
        """Totals of some of the rows, as users write them: shares where they are exact, else slightly wider intervals.

        Examples
        --------
        >>> totals = parse_totals({"yes": 2}, ["no", "yes"], n_unlabelled=8)
        >>> totals.in_proportion(np.arange(4), ["no", "yes"])
        {'no': 0.75, 'yes': 0.25}
        """
        size = np.bincount(self.group_of[rows], minlength=self.n_groups)
        labels, found = np.asarray(classes).tolist(), {}
        for g, name in enumerate(self.groups):
            if size[g] == 0:
                continue
            part = size[g] / self.size[g]
            if size[g] == self.size[g]:
                ends = zip(self.low[g].tolist(), self.high[g].tolist(), strict=True)
                found[name] = dict(zip(labels, ends, strict=True))
            elif np.array_equal(self.low[g], self.high[g]):
                found[name] = dict(zip(labels, (self.low[g] / self.size[g]).tolist(), strict=True))
            else:
                ends = zip(np.floor(self.low[g] * part), np.ceil(self.high[g] * part), strict=True)
                found[name] = {label: (int(a), int(b)) for label, (a, b) in zip(labels, ends, strict=True)}
        return found[None] if self.groups == (None,) and found else found

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


def drawn_rows(group_of: IntArray, most: int, rng: Any) -> IntArray:
    """Rows to use under known totals, sorted: of each group as many as its share of `most` makes, at least one.

    Examples
    --------
    >>> rows = drawn_rows(np.array([0, 0, 0, 0, 1]), 3, np.random.default_rng(0))
    >>> len(rows), int(rows[-1])
    (3, 4)
    """
    n_rows = len(group_of)
    order = rng.permutation(n_rows)
    if n_rows <= most:
        return np.arange(n_rows)
    group = group_of[order]
    size = np.bincount(group)
    wanted = np.maximum(1, np.rint(size * (most / n_rows))).astype(np.int64)
    place = np.empty(n_rows, dtype=np.int64)
    by_group = np.argsort(group, kind="stable")
    place[by_group] = np.arange(n_rows) - np.repeat(np.cumsum(size) - size, size)
    return np.sort(order[place < wanted[group]])


def parse_totals(
    totals: Any,
    classes: ArrayLike,
    n_unlabelled: int,
    groups: ArrayLike | None = None,
    *,
    labelled: LabelledRows | None = None,
    rules: TotalsRules | None = None,
) -> ClassTotals:
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
        A frame with columns "class", "low" and "high" has intervals, a row for each class, of each group if there is
        one more column (or, pandas, an index) that names it; "total" may be a column too. An empty end is open.
    classes : array-like of shape (n_classes,)
        Labels of the classes, in order.
    n_unlabelled : int
        Number of unlabelled rows.
    groups : array-like of shape (n_unlabelled,) or None
        Group of each unlabelled row.
    labelled : LabelledRows or None
        The labelled rows, for totals of all rows, and for advice where totals fit these.
    rules : TotalsRules or None
        Which rows are counted, and how near shares must be met.

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
    group; the sum of shares of few digits, 0.333 for a third, may miss 1 by their rounding, up to 0.01. The same is
    done with shares whose nearest counts would be more than the rows. The upper end of an interval may be above the
    number of rows. Groups that have no row at all are refused, as they are misspelled more often than meant, unless
    all their totals are 0. Groups without totals are free, with a warning.

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
    labels, rules = np.asarray(classes), rules or TotalsRules()
    asked = plain_totals(totals, labels, grouped=groups is not None)
    known = labelled or LabelledRows(np.zeros(0, dtype=np.int64))

    def read(of: str) -> ClassTotals:
        if groups is None:
            return _of_all_groups(asked, labels, n_unlabelled, known, of, rules.tolerance)
        return _by_group(asked, labels, n_unlabelled, groups, known, of, rules.tolerance)

    try:
        found = read(rules.of)
    except InfeasibleTotalsError as error:
        advice = _advice(read, rules.of, n_unlabelled, len(known.y))
        advice += "" if groups is None else alike_groups(asked, groups, known.groups)
        raise InfeasibleTotalsError(f"{error}{advice}") from error
    if groups is not None:
        _warn_of_free(found)
        twins = alike_groups(asked, groups, known.groups)
        if twins:
            warn_user(twins.lstrip(". "), AlikeNamesWarning)
    return found


def _advice(read: Callable[[str], ClassTotals], of: str, n_unlabelled: int, n_labelled: int) -> str:
    """What to say where totals would fit the rows if they were meant otherwise."""
    if not n_labelled:
        return ""
    try:
        read("all" if of == "unlabeled" else "unlabeled")
    except (InfeasibleTotalsError, InvalidInputError):
        return ""
    if of == "unlabeled":
        return (
            f". They fit all {n_unlabelled + n_labelled} rows, the {n_labelled} labelled ones included: if that is "
            f"what they count, say {option('totals_of', 'all')}"
        )
    return f". They fit the {n_unlabelled} unlabelled rows alone: if these are what they count, leave totals_of out"


def _of_all_groups(
    asked: Any, classes: AnyArray, n_unlabelled: int, labelled: LabelledRows, of: str, tolerance: float
) -> ClassTotals:
    if isinstance(asked, dict) and any(isinstance(v, dict) for v in asked.values()):
        raise InfeasibleTotalsError("totals are given by group, but there are no groups; pass groups, one a row")
    read = read_group_totals(asked, classes, "")
    rows = GroupRows(n_unlabelled, labelled.by_class(len(classes)), of == "all")
    low, high = group_bounds(read, classes, rows, tolerance)
    return ClassTotals(
        groups=(None,),
        group_of=np.zeros(n_unlabelled, dtype=np.int64),
        low=low[None, :],
        high=high[None, :],
        size=np.array([n_unlabelled]),
        asked=_plain_asked(read, classes),
    )


def _by_group(
    asked: Any,
    classes: AnyArray,
    n_unlabelled: int,
    groups: ArrayLike,
    labelled: LabelledRows,
    of: str,
    tolerance: float,
) -> ClassTotals:
    names, group_of = _numbered(groups, n_unlabelled)
    if not isinstance(asked, dict):
        raise InvalidInputError(
            f"totals are {show(asked)} of type {type(asked).__name__}; with groups, write {{group: totals}} "
            "or pass a frame with a row a group and a column a class"
        )
    elsewhere = _counted(labelled, len(classes), every=of == "all")
    _check_known(asked, names, elsewhere, classes)
    read = {name: read_group_totals(asked[name], classes, f" of group {show(name)}") for name in asked}
    none = np.zeros(len(classes), dtype=np.int64)
    size = np.bincount(group_of, minlength=len(names))
    rows = {
        name: GroupRows(int(m), elsewhere.get(name, none), of == "all", f" of group {show(name)}")
        for name, m in zip(names, size, strict=True)
    }
    _check_others(read, rows, elsewhere, classes, of, tolerance)
    parts = [group_bounds(read.get(name, {}), classes, rows[name], tolerance) for name in names]
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


def _counted(labelled: LabelledRows, n_classes: int, every: bool) -> dict[Any, IntArray]:
    """Labelled rows by group and class; if `every` row counts, all must have a group."""
    if labelled.groups is None:
        return {}
    column = as_column(labelled.groups, "groups")
    gone = missing_mask(column)
    if every and gone.any():
        raise InfeasibleTotalsError(
            f"{np.count_nonzero(gone)} of {len(column)} labelled rows have no group (NaN or None), first the labelled "
            f"row number {np.argmax(gone)}; totals of all rows count these too"
        )
    if not len(column) or gone.all():
        return {}
    number = {name: g for g, name in enumerate(dict.fromkeys(column[~gone].tolist()))}
    place = np.array([number[name] for name in column[~gone].tolist()])
    cell = place * n_classes + labelled.y[~gone]
    counts = np.bincount(cell, minlength=len(number) * n_classes).reshape(-1, n_classes)
    return {name: counts[g] for name, g in number.items()}


def _check_known(asked: dict[Any, Any], names: Sequence[Any], labelled: Collection[Any], classes: AnyArray) -> None:
    """Refuse groups that no row has, unless nothing is asked of them."""
    known = dict.fromkeys([*names, *labelled])
    hint = "; these are classes: leave groups out" if asked and set(asked) <= set(classes.tolist()) else ""
    for name in asked:
        if name not in known and not _asks_for_none(asked[name]):
            raise InfeasibleTotalsError(
                f"totals name group {show(name)}, which no row has; {meant(name, list(known))}{hint}"
            )


def _asks_for_none(asked: Any) -> bool:
    values = list(asked.values()) if isinstance(asked, dict) else [asked]
    return bool(values) and all(isinstance(v, int | np.integer) and not isinstance(v, bool) and v == 0 for v in values)


def _check_others(
    read: dict[Any, dict[int, Asked]],
    rows: dict[Any, GroupRows],
    labelled: dict[Any, IntArray],
    classes: AnyArray,
    of: str,
    tolerance: float,
) -> None:
    """Refuse totals of groups without unlabelled rows that these contradict."""
    for name in read:
        if name in rows:
            continue
        if of == "all" and name in labelled:
            group_bounds(read[name], classes, GroupRows(0, labelled[name], True, f" of group {show(name)}"), tolerance)
            continue
        for k, total in read[name].items():
            if total.low > 0 and not total.is_share:
                raise InfeasibleTotalsError(
                    f"totals ask for {counted(int(total.low), 'row')} of class {show(classes[k])} in group "
                    f"{show(name)}, which no unlabelled row has; groups of unlabelled rows: {listing(rows)}"
                )


def _warn_of_free(totals: ClassTotals) -> None:
    lacking = {name: int(m) for name, m in zip(totals.groups, totals.size, strict=True) if name not in totals.asked}
    if lacking:
        noun, verb, be = ("group", "has", "is") if len(lacking) == 1 else ("groups", "have", "are")
        rows = sum(lacking.values())
        warn_user(f"{noun} {listing(lacking)} with {counted(rows, 'unlabelled row')} {verb} no totals and {be} free")


def _plain_asked(asked: dict[int, Asked], classes: AnyArray) -> dict[Any, Any]:
    labels = classes.tolist()
    return {labels[k]: total.value for k, total in asked.items()}
