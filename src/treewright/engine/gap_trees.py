"""Trees whose splits keep a gap between their sides, as in OCT-H and S2OCT: grown from the root, improved by node."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from treewright.core.budget import Budget
from treewright.engine.alternate import Alternation
from treewright.engine.leaves import ClassLeaves
from treewright.splits.gap_nodes import GapNodes
from treewright.splits.gap_splits import GapPoints, error_split, impurity_split
from treewright.splits.points import Points
from treewright.splits.thresholds import Split
from treewright.tree import Tree, relabelled, route

__all__ = ["grown_gap_tree", "improved_gap_tree"]


def improved_gap_tree(tree: Tree, points: GapPoints, budget: Budget, rounds: int = 10) -> Tree:
    """Improve a whole classification tree node by node, lowest nodes first, until a round changes nothing.

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
    >>> tree = improved_gap_tree(Tree.stump([1.0], 0.85, [[1.0, 0], [0, 1.0]]), points, Budget())
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


def grown_gap_tree(tree: Tree, points: GapPoints, depth: int, budget: Budget) -> Tree:
    """Grow a tree from its impure leaves above `depth` by oblique splits, as long as that pays.

    Parameters
    ----------
    tree : Tree
        What to grown_gap_tree from; a single leaf to grown_gap_tree a whole tree.
    points : GapPoints
        Points, and what splits must keep.
    depth : int
        Depth not to exceed.
    budget : Budget
        Ends the growing early.

    Examples
    --------
    >>> points = GapPoints(np.array([[0.0], [1.0], [2.0]]), np.array([0, 1, 0]), np.ones(3), n_classes=2)
    >>> grown_gap_tree(Tree.leaf(points.by_class, 1), points, 2, Budget()).n_leaves
    3
    """
    for _ in range(depth - int(tree.level[tree.leaves].min())):
        leaf_of, level = route(tree, points.X), tree.level
        found: dict[int, Split] = {}
        for leaf in tree.leaves:
            if level[leaf] >= depth or budget.over:
                continue
            chosen = error_split if level[leaf] == depth - 1 else impurity_split
            split = chosen(points.at(np.flatnonzero(leaf_of == leaf)), budget)
            if split is not None:
                found[int(leaf)] = split
        if not found:
            break
        tree = relabelled(_with_splits(tree, found), points.X, points.y, points.weight)
    return tree


def _with_splits(tree: Tree, splits: dict[int, Split]) -> Tree:
    """Replace leaves by splits with two new leaves each."""
    n, m = tree.n_nodes, len(splits)
    nodes = np.array(list(splits), dtype=np.int64)
    left, right = (np.concatenate([side, np.full(2 * m, -1)]) for side in (tree.left, tree.right))
    left[nodes], right[nodes] = n + 2 * np.arange(m), n + 2 * np.arange(m) + 1
    weights = np.vstack([tree.weights, np.zeros((2 * m, tree.n_features))])
    threshold = np.concatenate([tree.threshold, np.zeros(2 * m)])
    weights[nodes] = [splits[int(k)].normal for k in nodes]
    threshold[nodes] = [splits[int(k)].threshold for k in nodes]
    values = np.vstack([tree.values, np.zeros((2 * m, tree.n_outputs))])
    return Tree(left, right, weights, threshold, values, labels=np.zeros(n + 2 * m, dtype=np.int64))
