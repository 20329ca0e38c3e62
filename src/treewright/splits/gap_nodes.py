"""The node of a tree whose splits keep a gap between their sides, as in OCT-H and S2OCT.

Directions come from several convex surrogates, thresholds are exact, and the lowest nodes choose the labels of their
two leaves together with the split. A split is taken only if error plus price of its features falls.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from treewright.core.arrays import FloatArray
from treewright.core.budget import Budget
from treewright.splits.gap_splits import GapPoints, best_stump, split_along
from treewright.splits.node import Node
from treewright.splits.points import Points
from treewright.splits.thresholds import Split

__all__ = ["GapNodes"]


@dataclass(frozen=True)
class GapNodes:
    """Splits whose sides are a gap apart, at a price for each feature."""

    points: GapPoints
    """Points, and what splits must keep."""

    def price(self, normals: FloatArray) -> float:
        """Features that splits use, times their price."""
        return self.points.price * float(np.count_nonzero(normals))

    def better(self, points: Points, node: Node, budget: Budget) -> tuple[FloatArray, float] | None:
        """A split of lower error plus price, points on both sides of it, or None."""
        if budget.over or not len(node.rows):
            return None
        here = self.points.at(node.rows)
        now = _error(here, node) + self.price(node.normal)
        best = best_stump(here, budget) if node.lowest else _cut(here, node, budget)
        if best is None or best.cost >= now - 1e-9 * max(1.0, now) or not np.isfinite(best.threshold):
            return None
        return best.normal, best.threshold


def _error(here: GapPoints, node: Node) -> float:
    """What the node loses now: in all at the lowest nodes, as a stump counts, else beyond each point's better side."""
    if not node.lowest:
        return float(np.abs(node.stake[node.goes_left == (node.stake > 0)]).sum())
    sides = (here.at(np.flatnonzero(side)).by_class for side in (node.goes_left, ~node.goes_left))
    return float(here.weight.sum() - sum(by_class.max() for by_class in sides))


def _cut(here: GapPoints, node: Node, budget: Budget) -> Split | None:
    """The best split along the node's own direction and those of the surrogates."""
    cost_left, cost_right = np.maximum(node.stake, 0.0), np.maximum(-node.stake, 0.0)
    caring = np.flatnonzero(node.stake)
    some = replace(here.at(caring), weight=np.abs(node.stake[caring]))
    normals = [node.normal, *some.directions(node.stake[caring] < 0, budget)]

    def cut(level: FloatArray) -> tuple[float, float]:
        return here.cheapest_cut(level, cost_left, cost_right)

    found = [split_along(here.X, normal, cut, here.price) for normal in normals if np.any(normal)]
    return min(found, key=lambda split: split.cost, default=None)
