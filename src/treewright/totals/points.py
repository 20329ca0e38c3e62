"""One label a point within class totals, where points may stand for several rows and for rows of several groups.

Rows are divided first, see :mod:`treewright.totals.transport`. Where every point is one row, that is all, and
exact. A point of many rows takes the class of most of its rows, which moves the counts by part of a point here and
there; single points then change class as long as that brings the counts nearer to the totals, those first that lose
the least score for it. To divide points exactly is as hard as to find a subset of given sum.
"""

from __future__ import annotations

import numpy as np

from treewright.core.arrays import FloatArray, IntArray
from treewright.data import PointTotals
from treewright.data.point_totals import tight_intervals
from treewright.totals.mending import mended
from treewright.totals.transport import divide_groups

__all__ = ["divide_points"]

_EXACT_GROUPS = 300
"""Groups that are divided exactly one by one; more of them are divided at once, with prices that are nearly right."""

_SWEEPS = 12
"""Rounds over the classes in which such prices are sought."""


def divide_points(scores: FloatArray, totals: PointTotals) -> IntArray:
    """Label points within totals so that the scores of the rows that they stand for add up to as much as possible.

    Parameters
    ----------
    scores : ndarray of shape (n_points, n_classes)
        How well each class fits, finite, for instance log-probabilities.
    totals : PointTotals
        Rows of each group that the points stand for, and the allowed counts.

    Returns
    -------
    ndarray of int, shape (n_points,)
        Class numbers. Totals are met wherever points are single rows and there are few groups, and the sum of scores
        is then the largest. Otherwise no change of a single point comes nearer to the totals, unless points are so
        many that mending is broken off.

    Examples
    --------
    >>> scores = np.array([[0.1, 0.9], [0.4, 0.6], [0.3, 0.7]])
    >>> divide_points(scores, PointTotals([[1], [1], [1]], low=[[2, 1]], high=[[2, 1]])).tolist()
    [1, 0, 0]
    >>> divide_points(scores, PointTotals([[5], [1], [1]], low=[[6, 1]], high=[[6, 1]])).tolist()
    [0, 0, 1]
    """
    point, group, times = totals.parts
    row = np.repeat(np.arange(len(point)), times)
    table = (
        scores if len(row) == len(scores) and np.array_equal(point[row], np.arange(len(row))) else scores[point[row]]
    )
    of_row = _divided_rows(table, group[row], *_possible(totals))
    if table is scores:
        labels = of_row
    else:
        cell = point[row] * totals.n_classes + of_row
        votes = np.bincount(cell, minlength=scores.size).reshape(scores.shape)
        labels = np.where(votes == votes.max(axis=1, keepdims=True), scores, -np.inf).argmax(axis=1)
    return mended(scores, labels, totals)


def _possible(totals: PointTotals) -> tuple[IntArray, IntArray]:
    """Allowed counts that some division of the rows has: tight, and where none is allowed those of least deviation."""
    low, high, rows = totals.low.copy(), totals.high.copy(), totals.group_rows
    needed, allowed = low.sum(axis=1) > rows, high.sum(axis=1) < rows
    low[needed], high[needed] = 0, totals.low[needed]
    low[allowed], high[allowed] = totals.high[allowed], rows[allowed, None]
    return tight_intervals(low, high, rows)


def _divided_rows(scores: FloatArray, group: IntArray, low: IntArray, high: IntArray) -> IntArray:
    """Labels of rows within the totals of their groups; among rows that tie, the first change class."""
    if scores.shape[1] == 2:
        return _cut(scores[:, 1] - scores[:, 0], group, low[:, 1], high[:, 1])
    labels = np.asarray(scores.argmax(axis=1))
    counts = np.bincount(group * low.shape[1] + labels, minlength=low.size).reshape(low.shape)
    wrong = np.any((counts < low) | (counts > high), axis=1)
    if np.count_nonzero(wrong) > _EXACT_GROUPS:
        return np.asarray((scores + _near_prices(scores, group, low, high)[group]).argmax(axis=1))
    rows = np.flatnonzero(wrong[group])
    if len(rows):
        number = np.cumsum(wrong) - 1
        labels[rows] = divide_groups(scores[rows], np.arange(len(rows)), number[group[rows]], low[wrong], high[wrong])[
            0
        ]
    return labels


def _cut(margin: FloatArray, group: IntArray, low: IntArray, high: IntArray) -> IntArray:
    """Two classes: in each group the rows of the highest margins are class 1, as many as have a positive one."""
    wanted = np.clip(np.bincount(group[margin > 0], minlength=len(low)), low, high)
    order = np.lexsort((-margin, group))
    place = np.arange(len(order)) - np.searchsorted(group[order], np.arange(len(low)))[group[order]]
    labels = np.zeros(len(margin), dtype=np.int64)
    labels[order[place < wanted[group[order]]]] = 1
    return labels


def _near_prices(scores: FloatArray, group: IntArray, low: IntArray, high: IntArray) -> FloatArray:
    """Prices of all groups by which counts nearly meet the totals: each class in turn, the others fixed."""
    by_group = np.argsort(group, kind="stable")
    scores, group = scores[by_group], group[by_group]
    first = np.searchsorted(group, np.arange(len(low)))
    rows = np.bincount(group, minlength=len(low))
    prices = np.where(high > 0, 0.0, -np.inf)
    for _ in range(_SWEEPS):
        before = prices.copy()
        for k in range(scores.shape[1]):
            prices[:, k] = -np.inf
            needed = (scores + prices[group]).max(axis=1) - scores[:, k]
            price = _prices(needed, group, first, rows, low[:, k], high[:, k])
            prices[:, k] = np.where(high[:, k] > 0, price, -np.inf)
        if np.array_equal(prices, before):
            break
    return prices


def _prices(
    needed: FloatArray, group: IntArray, first: IntArray, rows: IntArray, low: IntArray, high: IntArray
) -> FloatArray:
    """The price nearest to 0, for each group, that attracts between `low` and `high` rows, each at its own."""
    sure = np.bincount(group[needed < 0], minlength=len(rows))
    possible = np.bincount(group[needed <= 0], minlength=len(rows))
    wanted = np.where(possible < low, low, high)
    ordered = np.append(needed[np.lexsort((needed, group))], 0.0)
    below = ordered[np.maximum(first + np.clip(wanted, 1, None) - 1, 0)]
    above = ordered[first + np.minimum(wanted, np.maximum(rows - 1, 0))]
    right = (possible >= low) & (sure <= high)
    return np.where(right, 0.0, (below + above) / 2)
