"""Alternating optimization: one node at a time, all others fixed, never worse.

With the rest of the tree fixed, a point that passes a branch node only feels on which side it goes: it pays the error
of the leaf it would reach on either side. That is a weighted two-class problem, solved by convex surrogates for the
direction and exactly for the threshold, and taken only if the true cost falls.
"""

from __future__ import annotations

import numpy as np

from treewright.arrays import FloatArray, IntArray
from treewright.budget import Budget
from treewright.search.grow.oblique import best_stump, candidate_directions, split_along
from treewright.splits.thresholds import Split, best_threshold
from treewright.tree import Tree, passing, relabelled, route, side

__all__ = ["alternate"]


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
        Where to start.
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
    """
    tree = tree.numerical()
    size = np.ones(len(X)) if size is None else size
    for _ in range(rounds):
        improved = False
        for node in tree.branches[::-1]:
            if budget is not None and budget.over:
                return tree
            split = _improved_split(tree, int(node), X, y, weight, gap, min_size, price, budget, size)
            if split is not None:
                tree = relabelled(_with_split(tree, int(node), split), X, y, weight)
                improved = True
        if not improved:
            break
    return tree


def _improved_split(
    tree: Tree,
    node: int,
    X: FloatArray,
    y: IntArray,
    weight: FloatArray,
    gap: float,
    min_size: float,
    price: float,
    budget: Budget | None,
    size: FloatArray,
) -> Split | None:
    """A split for `node` that lowers the true cost, or None."""
    inside = np.flatnonzero(passing(tree, X, node))
    if not len(inside) or tree.labels is None:
        return None
    Xn, yn, wn, sn = X[inside], y[inside], weight[inside], size[inside]
    left, right = int(tree.left[node]), int(tree.right[node])
    cost_left = wn * (tree.labels[route(tree, Xn, start=left)] != yn)
    cost_right = wn * (tree.labels[route(tree, Xn, start=right)] != yn)
    goes_left = side(tree, Xn, node)
    current = float(np.where(goes_left, cost_left, cost_right).sum()) + price * np.count_nonzero(tree.weights[node])
    best: Split | None = None
    if tree.is_leaf[left] and tree.is_leaf[right]:
        best = best_stump(Xn, yn, wn, tree.n_outputs, gap, min_size, price, sn, budget)
    else:
        caring = cost_left != cost_right
        wish = cost_left < cost_right
        stakes = np.abs(cost_left - cost_right)
        normals = [tree.weights[node]]
        normals += candidate_directions(Xn[caring], wish[caring], stakes[caring], gap, price > 0, budget)

        def cut(level: FloatArray) -> tuple[float, float]:
            return best_threshold(level, cost_left, cost_right, gap, min_size, sn)

        for normal in normals:
            if not np.any(normal):
                continue
            split = split_along(Xn, normal, cut, price)
            if best is None or split.cost < best.cost:
                best = split
    if best is None or best.cost >= current - 1e-9 * max(1.0, current) or not np.isfinite(best.threshold):
        return None
    return best


def _with_split(tree: Tree, node: int, split: Split) -> Tree:
    weights, threshold = tree.weights.copy(), tree.threshold.copy()
    weights[node], threshold[node] = split.normal, split.threshold
    return Tree(tree.left, tree.right, weights, threshold, tree.values, tree.labels)
