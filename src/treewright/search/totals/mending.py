"""Labels of points brought nearer to class totals by changes of single points, compiled: there may be many rounds."""

from __future__ import annotations

import numpy as np

from treewright.arrays import BoolArray, FloatArray, IntArray
from treewright.compiled import njit
from treewright.data import PointTotals

__all__ = ["mended"]

_MOST_CELLS = 30_000_000
"""Changes of points that are looked at; a fraction of a second."""


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
    groups, first = size.indices.astype(np.int64), size.indptr.astype(np.int64)
    _mend(table, changed, first, groups, size.data, totals.low, totals.high, _MOST_CELLS)
    return changed


@njit(cache=True)
def _mend(
    scores: FloatArray,
    labels: IntArray,
    first: IntArray,
    group: IntArray,
    times: IntArray,
    low: IntArray,
    high: IntArray,
    most: int,
) -> None:
    """Mend `labels` in place; the rows of point i are ``times[first[i] : first[i + 1]]``, each of a `group`."""
    n, (n_groups, n_classes) = len(labels), low.shape
    counts = np.zeros((n_groups, n_classes), dtype=np.int64)
    for i in range(n):
        for part in range(first[i], first[i + 1]):
            counts[group[part], labels[i]] += times[part]
    new, cost = np.empty(n, dtype=np.int64), np.empty(n)
    looked_at = 0
    while looked_at < most:
        above, below, gives, classes = _wrong(counts, low, high)
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
                saved = _saved(i, k, labels[i], first, group, times, counts, low, high, above, below)
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
                labels[i] = new[i]


@njit(cache=True)
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


@njit(cache=True)
def _saved(
    i: int,
    k: int,
    label: int,
    first: IntArray,
    group: IntArray,
    times: IntArray,
    counts: IntArray,
    low: IntArray,
    high: IntArray,
    above: IntArray,
    below: IntArray,
) -> int:
    """By how many rows point i comes nearer to the totals if its `label` becomes k; below 0 where it goes away."""
    saved = 0
    if k == label:
        return saved
    for part in range(first[i], first[i + 1]):
        g, t = group[part], times[part]
        less, more = counts[g, label] - t, counts[g, k] + t
        new_above = above[g] - max(less + t - high[g, label], 0) + max(less - high[g, label], 0)
        new_above += max(more - high[g, k], 0) - max(more - t - high[g, k], 0)
        new_below = below[g] - max(low[g, label] - less - t, 0) + max(low[g, label] - less, 0)
        new_below += max(low[g, k] - more, 0) - max(low[g, k] - more + t, 0)
        saved += max(above[g], below[g]) - max(new_above, new_below)
    return saved


@njit(cache=True)
def _is_cheapest(i: int, first: IntArray, group: IntArray, cheapest: IntArray) -> bool:
    """Whether the change of point i is the cheapest in all its groups."""
    for part in range(first[i], first[i + 1]):  # noqa: SIM110 - compiled
        if cheapest[group[part]] != i:
            return False
    return True
