"""Counts that what is asked of one group allows: shares rounded, labelled rows subtracted, ends tightened."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.names import counted
from treewright.data.columns_checked import AnyArray, show
from treewright.data.point_totals import tight_intervals
from treewright.data.totals_input import Asked
from treewright.exceptions import InfeasibleTotalsError

__all__ = ["GroupRows", "group_bounds"]

_ROUNDING = 1e-9  # shares times rows that are this near to an integer are that integer
_SHARE_SUM = 1e-6  # shares whose sum is this near to 1 are all of the rows
_PUBLISHED_SUM = 0.01  # and so are shares of few digits, as far as their rounding explains it, but no farther than this


@dataclass(frozen=True)
class GroupRows:
    """The rows of a group that totals are about."""

    unlabelled: int
    """Unlabelled rows."""
    labelled: IntArray
    """Labelled rows of each class, which are part of totals of all rows."""
    of_all: bool
    """Whether the totals are those of all rows."""
    where: str = ""
    """Words behind "totals" and "rows": of which group."""

    @property
    def counted(self) -> int:
        """Rows that the totals count."""
        return self.unlabelled + (int(self.labelled.sum()) if self.of_all else 0)

    @property
    def words(self) -> str:
        """What these rows are."""
        return f"rows{self.where}, labelled ones included" if self.of_all else f"unlabelled rows{self.where}"


def group_bounds(
    total: dict[int, Asked], classes: AnyArray, rows: GroupRows, tolerance: float
) -> tuple[IntArray, IntArray]:
    """Return fewest and most unlabelled rows of each class, tight; `tolerance` is that of shares."""
    low, high = _bounds(total, classes, rows, tolerance)
    if not rows.of_all:
        return low, high
    over = np.flatnonzero(rows.labelled > high)
    if len(over):
        k = over[0]
        most = ("" if low[k] == high[k] else "at most ") + counted(int(high[k]), "row")
        raise InfeasibleTotalsError(
            f"totals of all rows{rows.where} have {most} of class {show(classes[k])}, but {rows.labelled[k]} rows"
            f"{rows.where} are labelled so"
        )
    low, high = np.maximum(low - rows.labelled, 0), high - rows.labelled
    if low.sum() > rows.unlabelled:
        raise InfeasibleTotalsError(
            f"totals of all rows{rows.where} less the labelled ones ask for at least {low.sum()} rows "
            f"({_parts(low, classes)}), but there are only {rows.unlabelled} unlabelled rows{rows.where}"
        )
    return _tight(low, high, rows.unlabelled)


def _bounds(total: dict[int, Asked], classes: AnyArray, rows: GroupRows, tolerance: float) -> tuple[IntArray, IntArray]:
    """Return fewest and most of the rows that are counted, of each class, tight."""
    n_rows = rows.counted
    shares = {k: total[k].low for k in sorted(total) if total[k].is_share and not total[k].is_interval}
    whole = _are_all(shares, classes, rows.where)
    low, high = np.zeros(len(classes), dtype=np.int64), np.full(len(classes), n_rows, dtype=np.int64)
    for k, t in total.items():
        low[k], high[k] = _counts(t, rows, f"of class {show(classes[k])}{rows.where}")
    if shares:
        chosen, values = np.array(list(shares)), np.array(list(shares.values()))
        count = _rounded(values, n_rows, whole)
        # with a tolerance the nearest count is always among those that are allowed
        low[chosen] = np.minimum(count, np.ceil(np.maximum(values - tolerance, 0) * n_rows - _ROUNDING))
        high[chosen] = np.maximum(count, np.floor(np.minimum(values + tolerance, 1) * n_rows + _ROUNDING))
        if not tolerance:
            low[chosen] = high[chosen] = count
    if low.sum() > n_rows:
        raise InfeasibleTotalsError(
            f"totals{rows.where} ask for at least {low.sum()} rows ({_parts(low, classes)}), but there are only "
            f"{n_rows} {rows.words}"
        )
    if high.sum() < n_rows:
        raise InfeasibleTotalsError(
            f"totals{rows.where} allow at most {high.sum()} rows ({_parts(high, classes, zeros=True)}), but there are "
            f"{n_rows} {rows.words}"
        )
    return _tight(low, high, n_rows)


def _parts(counts: IntArray, classes: AnyArray, zeros: bool = False) -> str:
    return ", ".join(f"{counts[k]} of {show(classes[k])}" for k in range(len(classes)) if zeros or counts[k])


def _tight(low: IntArray, high: IntArray, n_rows: int) -> tuple[IntArray, IntArray]:
    tight_low, tight_high = tight_intervals(low[None], high[None], np.array([n_rows]))
    return tight_low[0], tight_high[0]


def _counts(total: Asked, rows: GroupRows, what: str) -> tuple[int, int]:
    n_rows = rows.counted
    if not total.is_share:
        if total.low > n_rows:
            least = "at least " if total.is_interval else ""
            raise InfeasibleTotalsError(
                f"{least}{counted(int(total.low), 'row')} {what} {'is' if total.low == 1 else 'are'} asked, but there "
                f"are only {n_rows} {rows.words}"
            )
        return int(total.low), min(int(total.high), n_rows)
    if not total.is_interval:
        return 0, n_rows  # rounded together with the other shares
    low = int(np.ceil(total.low * n_rows - _ROUNDING))
    high = int(np.floor(total.high * n_rows + _ROUNDING))
    if low > high:
        raise InfeasibleTotalsError(
            f"no whole number of the {n_rows} {rows.words} lies between the shares {total.low} and {total.high} {what}"
        )
    return low, high


def _are_all(shares: dict[int, float], classes: AnyArray, where: str) -> bool:
    """Whether shares are of all rows: they sum to 1, but for rounding; those that cannot be are refused."""
    total, every = sum(shares.values()), len(shares) == len(classes)
    parts = ", ".join(f"{share} of {show(classes[k])}" for k, share in shares.items())
    rounding = max(_SHARE_SUM, _rounding_of(list(shares.values())))
    if total > 1 + rounding:
        raise InfeasibleTotalsError(f"shares{where} sum to {total:.6g}, above 1 ({parts})")
    if every and total < 1 - rounding:
        raise InfeasibleTotalsError(f"shares{where} of all classes sum to {total:.6g}, not to 1 ({parts})")
    return every or total >= 1 - _SHARE_SUM


def _rounding_of(shares: list[float]) -> float:
    """By how much shares as printed, 0.333 for a third, may miss their sum."""
    digits = max((-int(Decimal(repr(float(share))).as_tuple().exponent) for share in shares), default=0)
    return min(_PUBLISHED_SUM, 0.5 * len(shares) * 10.0**-digits) + _ROUNDING


def _rounded(shares: FloatArray, n_rows: int, whole: bool) -> IntArray:
    """Round shares of `n_rows` to counts; if they are the `whole`, to counts that sum to `n_rows`."""
    total = float(shares.sum())
    nearest = np.floor(shares * n_rows + 0.5 + _ROUNDING).astype(np.int64)
    if not whole and nearest.sum() <= n_rows:
        return nearest
    exact = (shares / total if whole else np.append(shares, 1 - total)) * n_rows
    counts = np.floor(exact + _ROUNDING).astype(np.int64)
    remainder = np.round(exact - counts, 9)
    first = np.argsort(-remainder, kind="stable")[: n_rows - int(counts.sum())]
    counts[first] += 1
    return counts[: len(shares)]
