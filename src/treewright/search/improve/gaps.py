"""Splits with a gap between their sides, improved node by node: the trees of OCT-H and S2OCT.

Directions come from several convex surrogates, thresholds are exact, and the lowest nodes choose the labels of their
two leaves together with the split. A split is taken only if error plus price of its features falls.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from treewright.arrays import FloatArray, IntArray
from treewright.budget import Budget
from treewright.search.grow.oblique import best_stump, candidate_directions, split_along
from treewright.search.improve.driver import Alternation, Node
from treewright.search.improve.leaves import ClassLeaves
from treewright.splits.points import Points
from treewright.splits.thresholds import Split, best_threshold
from treewright.tree import Tree

__all__ = ["GapNodes", "alternate"]


@dataclass(frozen=True)
class GapNodes:
    """Splits whose sides are a gap apart, at a price for each feature.

    Attributes
    ----------
    y, weight : ndarray
        Class numbers and weights of the points.
    n_classes : int
        Number of classes.
    gap : float
        Distance between the sides of a split along its normal of 1-norm 1.
    min_size : float
        Smallest sum of `size` on each side of a split.
    feature_price : float
        Cost of a feature in a split, in units of weight.
    size : ndarray
        How many rows each point stands for in `min_size`.
    """

    y: IntArray
    weight: FloatArray
    n_classes: int
    gap: float
    min_size: float
    feature_price: float
    size: FloatArray

    def price(self, normals: FloatArray) -> float:
        """Features that splits use, times their price."""
        return self.feature_price * float(np.count_nonzero(normals))

    def better(self, points: Points, node: Node, budget: Budget) -> tuple[FloatArray, float] | None:
        """A split of lower error plus price, points on both sides of it, or None."""
        if budget.over or not len(node.rows):
            return None
        now = float(self._error(node)) + self.price(node.normal)
        best = self._stump(points, node, budget) if node.lowest else self._cut(points, node, budget)
        if best is None or best.cost >= now - 1e-9 * max(1.0, now) or not np.isfinite(best.threshold):
            return None
        return best.normal, best.threshold

    def _error(self, node: Node) -> float:
        """What the stakes say the node loses now, compared with each point on its better side.

        At the lowest nodes a stump counts all of its errors, so those that no side mends are added.
        """
        lost = float(np.abs(node.stake[node.goes_left == (node.stake > 0)]).sum())
        if not node.lowest:
            return lost
        y, weight = self.y[node.rows], self.weight[node.rows]
        labels = [_heaviest(y[side], weight[side], self.n_classes) for side in (node.goes_left, ~node.goes_left)]
        return float(weight.sum() - sum(labels))

    def _stump(self, points: Points, node: Node, budget: Budget) -> Split | None:
        rows = node.rows
        return best_stump(
            points.X[rows],
            self.y[rows],
            self.weight[rows],
            self.n_classes,
            self._apart(points),
            self.min_size,
            self.feature_price,
            self.size[rows],
            budget,
        )

    def _cut(self, points: Points, node: Node, budget: Budget) -> Split | None:
        """The best split along the node's own direction and those of the surrogates."""
        X, gap = points.X[node.rows], self._apart(points)
        cost_left, cost_right = np.maximum(node.stake, 0.0), np.maximum(-node.stake, 0.0)
        caring = node.stake != 0
        goes_left, stakes = node.stake[caring] < 0, np.abs(node.stake[caring])
        normals = [node.normal]
        normals += candidate_directions(X[caring], goes_left, stakes, gap, self.feature_price > 0, budget)

        def cut(level: FloatArray) -> tuple[float, float]:
            return best_threshold(level, cost_left, cost_right, gap, self.min_size, self.size[node.rows])

        found = [split_along(X, normal, cut, self.feature_price) for normal in normals if np.any(normal)]
        return min(found, key=lambda split: split.cost, default=None)

    def _apart(self, points: Points) -> float:
        """The gap, no smaller than rounding."""
        return max(self.gap, points.least_gap)


def _heaviest(y: IntArray, weight: FloatArray, n_classes: int) -> float:
    return float(np.bincount(y, weight, n_classes).max())


def alternate(
    tree: Tree,
    X: FloatArray,
    y: IntArray,
    weight: FloatArray,
    gap: float,
    min_size: float = 1,
    price: float = 0.0,
    rounds: int = 10,
    budget: Budget | None = None,
    size: FloatArray | None = None,
) -> Tree:
    """Improve a classification tree node by node, lowest nodes first, until a round changes nothing.

    Parameters
    ----------
    tree : Tree
        Where to start; its splits are numerical.
    X, y, weight : ndarray
        Points, class numbers, weights.
    gap : float
        Distance between the sides of a split along its normal of 1-norm 1.
    min_size : float
        Smallest sum of `size` on each side of a split.
    price : float
        Cost of a feature in a split, in units of weight.
    rounds : int
        Most passes over the tree.
    budget : Budget or None
        Ends the work early with the best tree so far.
    size : ndarray or None
        How many rows each point stands for in `min_size`, 1 by default.

    Returns
    -------
    Tree
        A tree whose error plus price is at most that of `tree`.

    Examples
    --------
    >>> X = np.array([[0.1], [0.2], [0.8], [0.9]])
    >>> tree = alternate(Tree.stump([1.0], 0.85, [[1.0, 0], [0, 1.0]]), X, np.array([0, 0, 1, 1]), np.ones(4), gap=0.1)
    >>> round(float(tree.threshold[0] / tree.weights[0, 0]), 6)
    0.5
    """
    if tree.n_nodes == 1:
        return tree
    size = np.ones(len(X)) if size is None else size
    nodes = GapNodes(y, weight, tree.n_outputs, gap, min_size, price, size)
    state = Alternation(tree, np.ascontiguousarray(X), ClassLeaves(y, weight, tree.n_outputs), nodes)
    budget = Budget() if budget is None else budget
    for _ in range(rounds):
        if budget.over or not state.improve(budget):
            break
    return state.tree()
