"""Labels of points brought nearer to class totals by changes of single points, compiled: there may be many rounds."""

from __future__ import annotations

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.compiled import njit
from treewright.data import PointTotals

__all__ = ["mended"]

_MOST_CELLS = 30_000_000
"""Changes of points that are looked at; a fraction of a second."""

_MOST_KEPT = 4_000_000
"""Changes of single rows, by group and both classes, whose savings are kept; where there are more, none is."""


def mended(scores: FloatArray, labels: IntArray, totals: PointTotals) -> IntArray:
    """Change single points, in each round one a group at most, until none comes nearer to the totals.

    Of the changes that help, those that lose the least score for each row that they come nearer are made: in each round
    the points that are the first of all their groups.

    Parameters
    ----------
    scores : ndarray of shape (n_points, n_classes)
        How well each class fits.
    labels : ndarray of int, shape (n_points,)
        Class numbers.
    totals : PointTotals
        Rows of each group that the points stand for, and the allowed counts.

    Returns
    -------
    ndarray of int, shape (n_points,)
        New class numbers.
    """
    size = totals.size
    changed = np.array(labels, dtype=np.int64)
    table = np.ascontiguousarray(scores, dtype=np.float64)
    kept = totals.n_groups if totals.low.size * totals.n_classes <= _MOST_KEPT else 0
    of_one = np.zeros((kept, totals.n_classes, totals.n_classes), dtype=np.int64)
    _mend(table, changed, size.indptr, size.indices, size.data, totals.low, totals.high, of_one, _MOST_CELLS)
    return changed


@njit("f8** i8* i8* i8* i8* ro:i8** ro:i8** i8*** i8")
def _mend(
    scores: FloatArray,
    labels: IntArray,
    first: IntArray,
    group: IntArray,
    times: IntArray,
    low: IntArray,
    high: IntArray,
    of_one: IntArray,
    most: int,
) -> None:
    """Mend `labels` in place; the rows of point i are ``times[first[i] : first[i + 1]]``, each of a `group`.

    Most changes are of a single row of a group. `of_one`, if it has room, keeps what these save; it is brought up to
    date where counts have changed.
    """
    n, (n_groups, n_classes) = len(labels), low.shape
    counts = np.zeros((n_groups, n_classes), dtype=np.int64)
    for i in range(n):
        for part in range(first[i], first[i + 1]):
            counts[group[part], labels[i]] += times[part]
    new, cost = np.empty(n, dtype=np.int64), np.empty(n)
    looked_at, stale = 0, np.ones(n_groups, dtype=np.bool_)
    while looked_at < most:
        above, below, gives, classes = _wrong(counts, low, high)
        for g in range(len(of_one)):
            if stale[g]:
                _fill(of_one[g], counts[g], low[g], high[g], above[g], below[g])
        stale[:] = False
        cheapest = np.full(n_groups, -1, dtype=np.int64)
        found = False
        for i in range(n):
            new[i] = -1
            may_give = False
            for part in range(first[i], first[i + 1]):
                may_give = may_give or gives[group[part], labels[i]]
            if not may_give:
                continue
            looked_at += len(classes)
            for k in classes:
                saved = 0
                for part in range(first[i], first[i + 1]):
                    g, t = group[part], times[part]
                    if t == 1 and len(of_one):
                        saved += of_one[g, labels[i], k]
                    else:
                        saved += _saved(t, labels[i], k, counts[g], low[g], high[g], above[g], below[g])
                if saved > 0:
                    loss = (scores[i, labels[i]] - scores[i, k]) / saved
                    if new[i] < 0 or loss < cost[i]:
                        new[i], cost[i] = k, loss
            if new[i] >= 0:
                found = True
                for part in range(first[i], first[i + 1]):
                    g = group[part]
                    if cheapest[g] < 0 or cost[i] < cost[cheapest[g]]:
                        cheapest[g] = i
        if not found:
            break
        for i in range(n):
            if new[i] >= 0 and _is_cheapest(i, first, group, cheapest):
                for part in range(first[i], first[i + 1]):
                    counts[group[part], labels[i]] -= times[part]
                    counts[group[part], new[i]] += times[part]
                    stale[group[part]] = True
                labels[i] = new[i]


@njit()
def _wrong(counts: IntArray, low: IntArray, high: IntArray) -> tuple[IntArray, IntArray, BoolArray, IntArray]:
    """Rows of each group above and below its totals, the classes that may give rows, those that some group may take.

    A change helps only if it takes from a class in excess, or from any with rows to spare where rows are lacking more;
    and likewise for the class it goes to.
    """
    n_groups, n_classes = low.shape
    above, below = np.zeros(n_groups, dtype=np.int64), np.zeros(n_groups, dtype=np.int64)
    gives, takes = np.zeros((n_groups, n_classes), dtype=np.bool_), np.zeros(n_classes, dtype=np.bool_)
    for g in range(n_groups):
        for k in range(n_classes):
            above[g] += max(counts[g, k] - high[g, k], 0)
            below[g] += max(low[g, k] - counts[g, k], 0)
        if above[g] or below[g]:
            for k in range(n_classes):
                count = counts[g, k]
                gives[g, k] = count > high[g, k] or (below[g] > above[g] and count > low[g, k])
                takes[k] = takes[k] or count < low[g, k] or (above[g] > below[g] and count < high[g, k])
    return above, below, gives, np.flatnonzero(takes)


@njit()
def _fill(table: IntArray, counts: IntArray, low: IntArray, high: IntArray, above: int, below: int) -> None:
    """What a row of one group saves that changes class, for each class it has and each it may get."""
    for label in range(len(counts)):
        for k in range(len(counts)):
            table[label, k] = _saved(1, label, k, counts, low, high, above, below)


@njit()
def _saved(t: int, label: int, k: int, counts: IntArray, low: IntArray, high: IntArray, above: int, below: int) -> int:
    """By how many rows a group comes nearer to its totals if t rows change from `label` to k; below 0 if it goes away.

    `counts`, `low` and `high` are those of the group, `above` and `below` its rows in excess and those it lacks.
    """
    if k == label:
        return 0
    less, more = counts[label] - t, counts[k] + t
    new_above = above - max(less + t - high[label], 0) + max(less - high[label], 0)
    new_above += max(more - high[k], 0) - max(more - t - high[k], 0)
    new_below = below - max(low[label] - less - t, 0) + max(low[label] - less, 0)
    new_below += max(low[k] - more, 0) - max(low[k] - more + t, 0)
    return max(above, below) - max(new_above, new_below)


@njit()
def _is_cheapest(i: int, first: IntArray, group: IntArray, cheapest: IntArray) -> bool:
    """Whether the change of point i is the cheapest in all its groups."""
    for part in range(first[i], first[i + 1]):  # noqa: SIM110 - compiled
        if cheapest[group[part]] != i:
            return False
    return True
