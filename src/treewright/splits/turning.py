"""Hyperplanes of few features turned about one feature after the other, exactly, on the rows themselves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.splits.mixed import PricedRule, cut_along
from treewright.splits.node import Node
from treewright.splits.points import Points, SplitRule
from treewright.splits.sparse_nodes import normal_price

__all__ = ["TurningNodes", "turned_weight"]

_LEAST_ROWS = 1000
"""Rows of a node from which on its split is turned: of fewer ones it would learn what is chance."""

_MOST_TERMS = 10
"""Features of a split up to which it is turned: each costs two sorts a round, and many have little say each."""

_ROUNDS = 3
"""Rounds over the features of a split."""


@dataclass(frozen=True)
class TurningNodes:
    """Splits turned about one of their features at a time, at a price of alpha times the ratio of the norms."""

    alpha: float

    def price(self, normals: FloatArray) -> float:
        """Alpha times the sum of the ratios."""
        return self.alpha * float(normal_price(normals).sum())

    def better(self, points: Points, node: Node, budget: Budget) -> SplitRule | None:
        """The split of the node turned, or None where that does not lower its cost."""
        used = np.flatnonzero(node.normal)
        if points.sparse or node.rule.category >= 0 or not 2 <= len(used) <= _MOST_TERMS:
            return None
        care = np.flatnonzero(node.stake)
        rows, stake = node.rows[care], node.stake[care]
        if len(care) < _LEAST_ROWS or np.all(stake > 0) or np.all(stake < 0):
            return None
        now = float(stake[node.goes_left[care]].sum()) + self._norm(node.normal)
        best, least = PricedRule(now, node.rule), 1e-10 * max(1.0, float(np.abs(stake).sum()))
        for _ in range(_ROUNDS):
            before = best.cost
            for feature in used[np.argsort(-np.abs(best.rule.normal[used]), kind="stable")].tolist():
                if budget.over:
                    break
                found = self._turned(points, rows, stake, best.rule, feature)
                best = best if found is None or found.cost >= best.cost - least else found
            if best.cost >= before - least:
                break
        return best.rule if best.cost < now - least else None

    def _norm(self, normal: FloatArray) -> float:
        return self.alpha * float(np.abs(normal).sum())

    def _turned(
        self, points: Points, rows: IntArray, stake: FloatArray, rule: SplitRule, feature: int
    ) -> PricedRule | None:
        """The best weight for a feature, then the best threshold for the normal, and what these cost."""
        values = np.asarray(points.X[rows, feature], dtype=np.float64)
        level = points.levels(rows, rule.normal)
        there = ~np.isnan(level)
        if not there.any():
            return None
        # about the middle of the points: about the origin, which may be far from them, it would move them all one way
        values = values[there] - values[there].mean()
        normal = rule.normal.copy()
        room = rule.threshold - (level[there] - normal[feature] * values)
        normal[feature] = turned_weight(values, room, stake[there], float(normal[feature]))
        long = float(np.sqrt(normal @ normal))
        if not long > 0 or np.array_equal(normal, rule.normal):
            return None
        found = cut_along(points, rows, stake, normal / long)
        return PricedRule(found.cost + self._norm(normal / long), found.rule)


def turned_weight(values: FloatArray, room: FloatArray, stake: FloatArray, now: float) -> float:
    """Weight of a feature in a split that costs least: points with ``weight * value <= room`` go left.

    Parameters
    ----------
    values : ndarray of shape (n_points,)
        The feature.
    room : ndarray of shape (n_points,)
        What the other terms leave below the threshold.
    stake : ndarray of shape (n_points,)
        What a point costs on the left less what it costs on the right.
    now : float
        The weight that stays where none is better.

    Examples
    --------
    >>> turned_weight(np.array([1.0, 1.0, -1.0]), np.array([1.0, 3.0, -5.0]), np.array([1.0, -1.0, 1.0]), 0.0)
    2.0
    """
    some = np.flatnonzero(values)
    if not len(some):
        return now
    values, stake = values[some], stake[some]
    turn = room[some] / values
    order = np.argsort(turn, kind="stable")
    turn = turn[order]
    # beyond its turn a point with a value above 0 has left the left side, one below 0 has entered it
    cost = np.cumsum(np.where(values > 0, -stake, stake)[order])
    wide = np.diff(turn) > 1e-12 * np.maximum(1.0, np.abs(turn[1:]))
    if not wide.any():
        return now
    cost = np.where(wide, cost[:-1], np.inf)
    k = int(cost.argmin())
    begun = np.searchsorted(turn, now, side="right") - 1
    if 0 <= begun < len(cost) and cost[begun] <= cost[k]:
        return now
    return float((turn[k] + turn[k + 1]) / 2)
