"""Alternating optimization: one node at a time, all others fixed, never worse.

With the rest of the tree fixed, a point that passes a branch node only feels on which side it goes: it pays the error
of the leaf it would reach on either side. That is a weighted two-class problem, solved by convex surrogates for the
direction and exactly for the threshold, and taken only if the true cost falls.
"""

from __future__ import annotations

import numpy as np

from treewright.budget import Budget
from treewright.program import FloatArray, IntArray
from treewright.search.greedy import best_stump, candidate_directions, split_along
from treewright.search.hyperplane import Split
from treewright.tree import Tree, leaf_counts, side

__all__ = ["alternate"]


def alternate(
    tree: Tree,
    X: FloatArray,
    y: IntArray,
    weight: FloatArray,
    gap: float,
    min_size: int = 1,
    price: float = 0.0,
    rounds: int = 10,
    budget: Budget | None = None,
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
    min_size : int
        Smallest number of points on each side of a split.
    price : float
        Cost of a feature in a split, in units of weight.
    rounds : int
        Most passes over the tree.
    budget : Budget or None
        Ends the work early with the best tree so far.

    Returns
    -------
    Tree
        A tree whose error plus price is at most that of `tree`.
    """
    for _ in range(rounds):
        improved = False
        for node in tree.branches[::-1]:
            if budget is not None and budget.over:
                return tree
            split = _improved_split(tree, int(node), X, y, weight, gap, min_size, price)
            if split is not None:
                tree = _relabelled(_with_split(tree, int(node), split), X, y, weight)
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
    min_size: int,
    price: float,
) -> Split | None:
    """A split for `node` that lowers the true cost, or None."""
    inside = np.flatnonzero(_passes(tree, node, X))
    if not len(inside) or tree.labels is None:
        return None
    Xn, yn, wn = X[inside], y[inside], weight[inside]
    cost_left = wn * (_label_below(tree, int(tree.left[node]), Xn) != yn)
    cost_right = wn * (_label_below(tree, int(tree.right[node]), Xn) != yn)
    goes_left = side(tree, Xn, node)
    current = float(np.where(goes_left, cost_left, cost_right).sum()) + price * np.count_nonzero(tree.weights[node])
    best: Split | None = None
    if tree.is_leaf[tree.left[node]] and tree.is_leaf[tree.right[node]]:
        best = best_stump(Xn, yn, wn, tree.n_outputs, gap, min_size, price)
    else:
        caring = cost_left != cost_right
        wish = cost_left < cost_right
        stakes = np.abs(cost_left - cost_right)
        normals = [tree.weights[node]]
        normals += candidate_directions(Xn[caring], wish[caring], stakes[caring], gap, price > 0)
        for normal in normals:
            if not np.any(normal):
                continue
            split = split_along(Xn, normal / np.abs(normal).sum(), cost_left, cost_right, gap, min_size, price)
            if best is None or split.cost < best.cost:
                best = split
    if best is None or best.cost >= current - 1e-9 * max(1.0, current) or not np.isfinite(best.threshold):
        return None
    return best


def _passes(tree: Tree, node: int, X: FloatArray) -> np.ndarray:
    """Which points pass `node`."""
    inside = np.ones(len(X), dtype=bool)
    parent = tree.parent
    while node:
        above = int(parent[node])
        left = side(tree, X, above)
        inside &= left if tree.left[above] == node else ~left
        node = above
    return inside


def _label_below(tree: Tree, node: int, X: FloatArray) -> IntArray:
    """Label of each point if it entered the tree at `node`."""
    at = np.full(len(X), node)
    while not tree.is_leaf[at].all():
        for inner in np.unique(at[~tree.is_leaf[at]]):
            here = at == inner
            at[here] = np.where(side(tree, X[here], int(inner)), tree.left[inner], tree.right[inner])
    assert tree.labels is not None
    return np.asarray(tree.labels[at])


def _with_split(tree: Tree, node: int, split: Split) -> Tree:
    weights, threshold = tree.weights.copy(), tree.threshold.copy()
    weights[node], threshold[node] = split.normal, split.threshold
    return Tree(tree.left, tree.right, weights, threshold, tree.values, tree.labels)


def _relabelled(tree: Tree, X: FloatArray, y: IntArray, weight: FloatArray) -> Tree:
    """Give each node the label of its largest class; a node without points keeps its own."""
    counts = leaf_counts(tree, X, y, weight, tree.n_outputs)
    assert tree.labels is not None
    return tree.with_leaves(counts, np.where(counts.sum(axis=1) > 0, counts.argmax(axis=1), tree.labels))
