"""Best splits of points with categories and gaps, where a point that goes left pays its stake.

The side of the points that lack a value is part of the split: it is where they are cheaper, whatever the threshold. So
a split can also part what is there from what is missing; its threshold is then beyond all points that have a value.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from treewright.core.arrays import FloatArray, IntArray
from treewright.splits.categories import best_subset
from treewright.splits.points import Points, SplitRule
from treewright.splits.thresholds import Cuts, best_threshold

__all__ = ["PricedRule", "best_category", "best_single", "cut_along"]

_CELLS = 4_000_000
"""Cells of the tables that are sorted at once."""

_TIE = 1e-12
"""Features whose best splits differ by less, relative to the stakes, are equally good; the first one is taken."""

_BEYOND = 1.0
"""How far beyond the last point a threshold is that parts values from gaps; features have about unit size."""


class PricedRule(NamedTuple):
    """A split, and the sum of the stakes of the points that it sends left; infinite where there is no split."""

    cost: float
    rule: SplitRule


def cut_along(points: Points, rows: IntArray, stake: FloatArray, normal: FloatArray) -> PricedRule:
    """Exact best threshold along a normal, and the better side for points that lack a value.

    Of the points some `rows` count, and `stake` is what each of these costs on the left less what it costs on the
    right. The normal is over numerical features, and not zero.

    Examples
    --------
    >>> points = Points(np.array([[0.0], [1.0], [np.nan]]))
    >>> found = cut_along(points, np.arange(3), np.array([1.0, -2.0, -1.0]), np.array([-1.0]))
    >>> found.cost, found.rule.threshold, found.rule.missing_left
    (-3.0, -0.5, True)
    """
    level = points.levels(rows, normal)
    gone = np.isnan(level)
    lost = float(stake[gone].sum())
    there, here = level[~gone], stake[~gone]
    right, left = np.maximum(here, 0.0), np.maximum(-here, 0.0)
    threshold, cost = best_threshold(there, right, left, points.gap_along(normal))
    rule = SplitRule(normal, threshold, missing_left=lost < 0)
    if not np.isfinite(threshold):  # all points with a value go one way: a split only if the others go the other way
        if not len(there) or not gone.any() or rule.missing_left == (threshold > 0):
            return PricedRule(np.inf, rule._replace(threshold=0.0))
        rule = rule._replace(threshold=float(there.max() + _BEYOND if threshold > 0 else there.min() - _BEYOND))
    return PricedRule(cost - float(left.sum()) + min(lost, 0.0), rule)


def best_category(points: Points, rows: IntArray, stake: FloatArray) -> PricedRule | None:
    """Exact best subset of any categorical feature, None where there is none; parameters as for :func:`cut_along`.

    Each level goes where its points are cheaper together, missing values among them; one that no point has goes with
    more points. The first of equally good features is taken.

    Examples
    --------
    >>> points = Points(np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [np.nan, 0.0]]), np.array([3, 2]))
    >>> found = best_category(points, np.arange(4), np.array([-1.0, 2.0, -1.0, -3.0]))
    >>> found.cost, found.rule.category, found.rule.listed.tolist(), found.rule.missing_left
    (-5.0, 0, [True, False, True], True)
    """
    assert points.n_levels is not None
    right, left = np.maximum(stake, 0.0), np.maximum(-stake, 0.0)
    total, tie = float(left.sum()), _TIE * max(1.0, float(right.sum() + left.sum()))
    best: PricedRule | None = None
    for j in points.categorical.tolist():
        found = best_subset(points.codes(rows, j), int(points.n_levels[j]), right, left)
        if best is None or found.cost - total < best.cost - tie:
            rule = SplitRule.subset(j, found.left, found.missing_left, points.X.shape[1])
            best = PricedRule(found.cost - total, rule)
    return best


def best_single(points: Points, rows: IntArray, stake: FloatArray) -> PricedRule | None:
    """Exact best split on a single numerical feature with its gaps, None where no feature has one.

    Parameters are those of :func:`cut_along`. The first of equally good features is taken.

    Examples
    --------
    >>> points = Points(np.array([[0.0, 1.0], [np.nan, 1.0], [2.0, 3.0]]))
    >>> found = best_single(points, np.arange(3), np.array([-1.0, 2.0, -1.0]))
    >>> found.cost, found.rule.normal.tolist(), found.rule.threshold, found.rule.missing_left
    (-2.0, [1.0, 0.0], 3.0, False)
    """
    tie = _TIE * max(1.0, float(np.abs(stake).sum()))
    width = max(1, _CELLS // max(1, len(rows)))
    best, features = (np.inf, -1), points.numerical
    for first in range(0, len(features), width):
        some = features[first : first + width]
        cost = _costs_of_columns(np.asarray(points.X[np.ix_(rows, some)], dtype=np.float64), stake, points.axis_gap)
        least = float(cost.min())
        if least < best[0] - (tie if np.isfinite(best[0]) else 0.0):
            best = least, int(some[int(np.argmax(cost <= least + tie))])
    if best[1] < 0:
        return None
    normal = np.zeros(points.X.shape[1])
    normal[best[1]] = 1.0
    return cut_along(points, rows, stake, normal)


def _costs_of_columns(table: FloatArray, stake: FloatArray, gap: float) -> FloatArray:
    """What the best split of each column costs."""
    holes = np.isnan(table)
    cuts = Cuts(table)  # what is missing comes last
    taken = np.where(np.isnan(cuts.level), 0.0, stake[cuts.order])
    cost = np.zeros((len(table) + 1, table.shape[1]))
    np.cumsum(taken, axis=0, out=cost[1:])
    allowed = cuts.allowed(gap)
    allowed[[0, -1]] = False
    lost = stake @ holes
    least = np.where(allowed, cost, np.inf).min(axis=0) + np.minimum(lost, 0.0)
    parted = holes.any(axis=0) & ~holes.all(axis=0)
    return np.minimum(least, np.where(parted, np.minimum(lost, stake @ ~holes), np.inf))
