"""Splits of a single feature, improved node by node; the best one of a node is exact."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.engine.alternate import Alternation
from treewright.engine.leaves import ClassLeaves
from treewright.splits.node import Node
from treewright.splits.points import Points
from treewright.splits.thresholds import best_feature
from treewright.tree import Tree

__all__ = ["AxisNodes", "improved_binoct_tree"]


@dataclass(frozen=True)
class AxisNodes:
    """The node of BinOCT: its best split on one feature, at a price; the lowest nodes choose leaf labels too.

    Attributes
    ----------
    by_class : ndarray of shape (n_points, n_classes)
        Weight of each point in the column of its class.
    price_of_split : float
        What a split costs, in units of the weights.
    """

    by_class: FloatArray
    price_of_split: float = 0.0

    def price(self, normals: FloatArray) -> float:
        """Splits that part points, times their price."""
        return self.price_of_split * int(np.count_nonzero(np.any(normals != 0, axis=1)))

    def better(self, points: Points, node: Node, budget: Budget) -> tuple[FloatArray, float] | None:
        """A split of lower error plus price, or none at all where that is cheaper; None where the node is best."""
        if budget.over or not len(node.rows):
            return None
        stake = node.stake
        if node.lowest:
            table = self.by_class[node.rows]
            sides = (table[side].sum(axis=0) for side in (node.goes_left, ~node.goes_left))
            now = float(table.sum()) - sum(float(side.max()) for side in sides)
            whole = float(table.sum() - table.sum(axis=0).max())
            feature, threshold, cost = best_feature(points, node.rows, lambda cuts: cuts.labelled(table), budget=budget)
        else:
            now, whole = float(stake[node.goes_left].sum()), min(0.0, float(stake.sum()))
            feature, threshold, cost = best_feature(points, node.rows, lambda cuts: cuts.left(stake), budget=budget)
        now += self.price(node.normal[None, :])
        tie = 1e-9 * max(1.0, float(self.by_class[node.rows].sum()))
        if whole <= min(now - tie, cost + self.price_of_split):
            return np.zeros(len(node.normal)), 1.0 if stake.sum() < 0 else -1.0
        if cost + self.price_of_split >= now - tie or not np.isfinite(threshold):
            return None
        return (np.arange(len(node.normal)) == feature).astype(np.float64), threshold


def improved_binoct_tree(
    tree: Tree,
    X: FloatArray,
    y: IntArray,
    by_class: FloatArray,
    budget: Budget,
    price: float = 0.0,
    rounds: int = 20,
) -> Tree:
    """Improve a BinOCT tree node by node until a round changes nothing; splits have one feature.

    Parameters
    ----------
    tree : Tree
        Where to start; each split has one feature.
    X, y : ndarray
        Points and their class numbers.
    by_class : ndarray of shape (n_points, n_classes)
        Weight of each point in the column of its class.
    budget : Budget
        Ends the work early with the best tree so far.
    price : float
        What a split costs, in units of the weights.
    rounds : int
        Most passes over the tree.

    Examples
    --------
    >>> X, y = np.array([[0.1], [0.2], [0.8], [0.9]]), np.array([0, 0, 1, 1])
    >>> tree = improved_binoct_tree(Tree.stump([1.0], 0.85, [[1.0, 0], [0, 1.0]]), X, y, np.eye(2)[y], Budget())
    >>> float(tree.threshold[0])
    0.5
    """
    if tree.n_nodes == 1:
        return tree
    leaves = ClassLeaves(y, by_class.sum(axis=1), by_class.shape[1])
    state = Alternation(tree, np.ascontiguousarray(X), leaves, AxisNodes(by_class, price))
    for _ in range(rounds):
        if budget.over or not state.improve(budget):
            break
    return state.tree()
