"""Splits with a gap between their sides, improved node by node: the trees of OCT-H and S2OCT.

Directions come from several convex surrogates, thresholds are exact, and the lowest nodes choose the labels of their
two leaves together with the split. A split is taken only if error plus price of its features falls.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from treewright.core.arrays import FloatArray
from treewright.core.budget import Budget
from treewright.engine.alternate import Alternation, Node
from treewright.engine.leaves import ClassLeaves
from treewright.engine.oblique import GapPoints, best_stump, split_along
from treewright.splits.points import Points
from treewright.splits.thresholds import Split
from treewright.tree import Tree

__all__ = ["GapNodes", "alternate"]


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


def alternate(tree: Tree, points: GapPoints, budget: Budget, rounds: int = 10) -> Tree:
    """Improve a classification tree node by node, lowest nodes first, until a round changes nothing.

    Parameters
    ----------
    tree : Tree
        Where to start; its splits are numerical.
    points : GapPoints
        Points, and what splits must keep. A gap that rounding could close is widened.
    budget : Budget
        Ends the work early with the best tree so far.
    rounds : int
        Most passes over the tree.

    Returns
    -------
    Tree
        A tree whose error plus price is at most that of `tree`.

    Examples
    --------
    >>> points = GapPoints(np.array([[0.1], [0.2], [0.8], [0.9]]), np.array([0, 0, 1, 1]), np.ones(4), 2, gap=0.1)
    >>> tree = alternate(Tree.stump([1.0], 0.85, [[1.0, 0], [0, 1.0]]), points, Budget())
    >>> round(float(tree.threshold[0] / tree.weights[0, 0]), 6)
    0.5
    """
    if tree.n_nodes == 1:
        return tree
    X = np.ascontiguousarray(points.X)
    points = replace(points, X=X, gap=max(points.gap, Points(X).least_gap))
    state = Alternation(tree, X, ClassLeaves(points.y, points.weight, points.n_classes), GapNodes(points))
    for _ in range(rounds):
        if budget.over or not state.improve(budget):
            break
    return state.tree()
