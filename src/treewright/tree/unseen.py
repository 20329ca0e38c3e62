"""Where rows go that are unlike all rows a split was made for: unseen levels, and gaps where there were none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.tree.routing import route
from treewright.tree.structure import BEYOND, LEAF, Shape, Tree

__all__ = ["settled"]


def settled(tree: Tree, points: Any, weight: FloatArray) -> Tree:
    """Send what no training point decides at splits of a tree to the side of more training weight.

    * A level of a category that no point at the node has, or that was unknown at fit altogether, goes right. So that
      this is the heavier side, a categorical split whose left side is heavier is mirrored: its set becomes that of the
      other levels and its children change places. A rule then lists the levels of the lighter side, and its else has
      all others.
    * A missing value, where no point at the node lacks a value that the split uses, goes to the heavier side.
    * A value of a feature whose split parts the points that lack it from all others goes with these, however small or
      large it is: the threshold moves beyond all values.

    Sides of equal weight: right.

    Parameters
    ----------
    tree : Tree
        A tree whose training is over.
    points : ndarray or csr_array of shape (n_points, n_features)
        Training points, in the units of the tree.
    weight : ndarray of shape (n_points,)
        Their weights.

    Returns
    -------
    Tree
        A tree that routes the points to the same leaves, but for the numbers of mirrored nodes' children.

    Examples
    --------
    >>> leaves = [[3.0, 1.0], [3.0, 0.0], [0.0, 1.0]]
    >>> listed = [[True, False], [False, False], [False, False]]
    >>> tree = Tree([1, -1, -1], [2, -1, -1], np.zeros((3, 1)), np.zeros(3), leaves, [0, 0, 1], [0, -1, -1], listed)
    >>> found = settled(tree, np.array([[0.0], [0.0], [0.0], [1.0]]), np.ones(4))
    >>> found.left_categories[0].tolist(), int(found.left[0]), int(found.right[0])
    ([False, True], 2, 1)
    """
    X = points if sparse.issparse(points) else np.asarray(points)
    holes = None if sparse.issparse(X) else np.isnan(X)
    if holes is not None and not holes.any():
        holes = None
    left, right = tree.left.copy(), tree.right.copy()
    listed, missing, threshold = tree.left_categories.copy(), tree.missing_left.copy(), tree.threshold.copy()
    leaf = route(tree, X)
    mass = Shape.of(tree).summed(np.bincount(leaf, weight, tree.n_nodes).astype(np.float64))
    order, first, last = _intervals(tree, leaf)
    for node in tree.branches.tolist():
        rows = order[first[node] : last[node]]
        heavier_left = bool(mass[tree.left[node]] > mass[tree.right[node]])
        feature = int(tree.category[node])
        if not _lacking(holes, rows, tree, node):
            missing[node] = heavier_left
        elif feature < 0 and np.count_nonzero(tree.weights[node]) == 1:
            threshold[node] = _off_the_values(tree, X[rows], node)
        if feature >= 0:
            seen = _levels_of(X[rows, feature], listed.shape[1])
            listed[node] &= seen
            if heavier_left:
                left[node], right[node] = right[node], left[node]
                listed[node], missing[node] = seen & ~listed[node], not missing[node]
    return replace(tree, left=left, right=right, threshold=threshold, left_categories=listed, missing_left=missing)


def _lacking(holes: BoolArray | None, rows: IntArray, tree: Tree, node: int) -> bool:
    """Whether one of the points lacks a value that the split of the node uses."""
    if holes is None:
        return False
    feature = tree.category[node]
    used = np.flatnonzero(tree.weights[node]) if feature < 0 else np.array([feature])
    return bool(holes[np.ix_(rows, used)].any())


def _off_the_values(tree: Tree, points: FloatArray, node: int) -> float:
    """Threshold of a split by one feature; beyond all values if it parts none of those the points have."""
    j = int(np.flatnonzero(tree.weights[node])[0])
    weight, threshold = float(tree.weights[node, j]), float(tree.threshold[node])
    known = points[~np.isnan(points[:, j]), j]
    goes_left = weight * known <= threshold
    one_side = len(known) > 0 and (goes_left.all() or not goes_left.any())
    if not one_side or bool(goes_left[0]) == bool(tree.missing_left[node]):
        return threshold
    return float(np.where(goes_left[0], BEYOND, -BEYOND)) * abs(weight)


def _levels_of(values: FloatArray, n_levels: int) -> BoolArray:
    """Which levels occur among codes."""
    codes = values[(values >= 0) & (values < n_levels)].astype(np.int64)
    return np.bincount(codes, minlength=n_levels) > 0


def _intervals(tree: Tree, leaf: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Points ordered so that those of every node are neighbours, and where those of each node begin and end."""
    rank, todo, walked = np.zeros(tree.n_nodes, dtype=np.int64), [0], 0
    while todo:
        node = todo.pop()
        rank[node], walked = walked, walked + 1
        if tree.left[node] != LEAF:
            todo += [int(tree.right[node]), int(tree.left[node])]
    size = np.ones(tree.n_nodes, dtype=np.int64)
    for node in tree.branches[::-1]:  # children are numbered after their parent
        size[node] += size[tree.left[node]] + size[tree.right[node]]
    place = rank[leaf]
    order = np.argsort(place, kind="stable")
    ends = np.searchsorted(place[order], np.stack([rank, rank + size]))
    return order, ends[0], ends[1]
