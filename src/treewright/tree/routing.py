"""Points to leaves: one product a level, in blocks of rows that fit the cache."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.tree.sparse_routing import sparse_sides
from treewright.tree.structure import Tree

__all__ = [
    "averaged",
    "counted",
    "decision_path",
    "heaviest",
    "leaf_counts",
    "n_split_weights",
    "nodes_below",
    "passing",
    "points_at_splits",
    "predict_labels",
    "predict_values",
    "relabelled",
    "route",
    "side",
    "visited",
    "weighted_error",
    "without_equal_leaves",
    "without_idle_splits",
]

_ROUNDING = 1e-12
"""Share of a sum of weights up to which another one is the same."""
_BLOCK = 8192
_CELLS = 2**24
"""Most cells of a block of dense rows."""
_SPARSE_BLOCK = 2**16
"""Most rows of a block of sparse ones."""


def route(tree: Tree, points: ArrayLike, start: int = 0) -> IntArray:
    """Node number of the leaf of a tree that each point reaches.

    Parameters
    ----------
    tree : Tree
        The tree.
    points : array-like or scipy sparse array of shape (n_points, n_features)
        Numerical features; categorical ones as codes 0, 1, 2, ...; NaN for a missing value.
    start : int
        Node at which the points enter, by default the root.

    Returns
    -------
    ndarray of int, shape (n_points,)
        Leaves.

    Examples
    --------
    >>> tree = Tree.stump(weights=[1.0, -1.0], threshold=0.0, values=[[2.0, 0.0], [0.0, 2.0]])
    >>> route(tree, [[1.0, 2.0], [2.0, 1.0]]).tolist()
    [1, 2]
    """
    X = _as_points(tree, points)
    node = np.full(X.shape[0], start, dtype=np.int64)
    level, is_leaf = tree.level, tree.is_leaf
    depth = int(level.max() - level[start])
    size = _SPARSE_BLOCK if sparse.issparse(X) else _block_size(tree)
    # where to from each node, to the left and to the right; `take` has a third of the cost of an index
    own = np.arange(tree.n_nodes)
    onward = np.column_stack([np.where(is_leaf, own, tree.left), np.where(is_leaf, own, tree.right)]).ravel()
    for first in range(0, len(node), size):
        block, at = X[first : first + size], node[first : first + size]
        if not sparse.issparse(X):
            block = _as_rows(block)
            finite = bool(np.isfinite(block).all())
        for _ in range(depth):
            left = _sparse_goes_left(tree, block, at) if sparse.issparse(X) else _goes_left(tree, block, at, finite)
            at[:] = onward.take(2 * at + ~left)
    return node


def side(tree: Tree, points: ArrayLike, node: int) -> BoolArray:
    """Whether each point would go left at branch `node` of a tree, reached or not."""
    X = _as_points(tree, points)
    at = np.full(X.shape[0], node)
    return _sparse_goes_left(tree, X, at) if sparse.issparse(X) else _goes_left(tree, _as_rows(X), at)


def decision_path(tree: Tree, points: ArrayLike) -> sparse.csr_array:
    """Nodes of a tree that each point visits, as a sparse 0/1 matrix (n_points, n_nodes)."""
    at = route(tree, points)
    n_points, parent, point = len(at), tree.parent, np.arange(len(at))
    points_on, nodes_on = [point], [at]
    while len(point):  # climb from the leaves to the root
        up = parent[at]
        point, at = point[up >= 0], up[up >= 0]
        points_on.append(point)
        nodes_on.append(at)
    rows, columns = np.concatenate(points_on), np.concatenate(nodes_on)
    ones = np.ones(len(rows), dtype=np.int64)
    return sparse.csr_array((ones, (rows, columns)), shape=(n_points, tree.n_nodes))


def passing(tree: Tree, points: ArrayLike, node: int) -> BoolArray:
    """Whether each point passes `node` of a tree on its way from the root.

    Examples
    --------
    >>> tree = Tree.stump(weights=[1.0], threshold=0.0, values=[[2.0, 0.0], [0.0, 2.0]])
    >>> passing(tree, [[-1.0], [1.0]], 2).tolist()
    [False, True]
    """
    return np.asarray(nodes_below(tree, node)[route(tree, points)])


def nodes_below(tree: Tree, node: int) -> BoolArray:
    """Which nodes are `node` or below it."""
    found = np.zeros(tree.n_nodes, dtype=bool)
    found[node] = True
    for branch in tree.branches:  # children are numbered after their parent
        if found[branch]:
            found[[tree.left[branch], tree.right[branch]]] = True
    return found


def visited(tree: Tree, points: ArrayLike) -> BoolArray:
    """Whether at least one point passes each node of a tree."""
    leaf = route(tree, points)
    counts = np.bincount(leaf, minlength=tree.n_nodes)
    for node in tree.branches[::-1]:  # children are numbered after their parent
        counts[node] = counts[tree.left[node]] + counts[tree.right[node]]
    return counts > 0


def predict_labels(tree: Tree, points: ArrayLike) -> IntArray:
    """Class number that a tree gives to each point."""
    if tree.labels is None:
        raise ValueError("a regression tree has no labels")
    return np.asarray(tree.labels[route(tree, points)])


def weighted_error(tree: Tree, X: FloatArray, y: IntArray, weight: FloatArray) -> float:
    """Total weight of the labelled points (``y >= 0``) that the tree misclassifies."""
    wrong = (predict_labels(tree, X) != y) & (y >= 0)
    return float(weight[wrong].sum())


def n_split_weights(tree: Tree) -> int:
    """Count the features that splits use, summed over the splits: the complexity of OCT-H."""
    return int(np.count_nonzero(tree.weights[tree.branches]) + np.count_nonzero(tree.category >= 0))


def predict_values(tree: Tree, points: ArrayLike) -> FloatArray:
    """Leaf values of a tree at each point: class weights, or regression outputs.

    With linear leaves it is ``values + slopes @ x`` of the leaf: NaN where a feature that the leaf has a slope for is
    missing. Features without a slope do not count, whatever their value.

    Parameters
    ----------
    tree : Tree
        The tree.
    points : array-like or scipy sparse array of shape (n_points, n_features)
        Points, as for :func:`route`.

    Returns
    -------
    ndarray of shape (n_points, n_outputs)
        Values, the same for a point in every batch.

    Examples
    --------
    >>> stump = Tree.stump(weights=[1.0, 0.0], threshold=0.0, values=[[1.0], [1.0]])
    >>> slopes = [[[0.0, 0.0]], [[2.0, 0.0]], [[0.0, -1.0]]]
    >>> tree = stump.with_leaves([[0.0], [10.0], [20.0]], None, slopes)
    >>> predict_values(tree, [[-1.0, 5.0], [1.0, 5.0], [1.0, np.nan], [-1.0, np.nan]]).ravel().tolist()
    [8.0, 15.0, nan, 8.0]
    """
    leaf = route(tree, points)
    values = np.asarray(tree.values[leaf])
    if tree.slopes is not None:
        X, size = _as_points(tree, points), _block_size(tree)
        for first in range(0, len(leaf), size):
            block, at = _as_rows(X[first : first + size]), leaf[first : first + size]
            for output in range(tree.n_outputs):
                values[first : first + size, output] += _times_own_row(block, tree.slopes[at, output])
    return values


def leaf_counts(tree: Tree, points: ArrayLike, y: IntArray, weight: FloatArray, n_classes: int) -> FloatArray:
    """Weight of each class that passes each node of a tree, shape (n_nodes, n_classes).

    The sum runs over the points with ``y >= 0``; a branch node has the sum of its children.
    """
    leaf = route(tree, points)
    known = y >= 0
    if np.any(y >= n_classes):
        raise ValueError(f"y has class number {y.max()}, there are {n_classes} classes")
    counts = np.zeros((tree.n_nodes, n_classes))
    np.add.at(counts, (leaf[known], y[known]), weight[known])
    for node in tree.branches[::-1]:  # children are numbered after their parent
        counts[node] = counts[tree.left[node]] + counts[tree.right[node]]
    return counts


def heaviest(counts: FloatArray) -> IntArray:
    """The class of the largest weight at each node of a tree, the first of those that differ by rounding alone.

    Sums of weights depend on the order of the points in their last digits, and classes that are weighed alike are often
    tied.

    Examples
    --------
    >>> heaviest(np.array([[0.1 + 0.2, 0.3], [0.3, 0.1 + 0.2], [1.0, 2.0]])).tolist()
    [0, 0, 1]
    """
    return np.asarray(np.argmax(counts >= counts.max(axis=1, keepdims=True) * (1 - _ROUNDING), axis=1))


def relabelled(tree: Tree, points: ArrayLike, y: IntArray, weight: FloatArray, n_classes: int | None = None) -> Tree:
    """Return a tree of the same splits with class weights counted and the largest class as label.

    Parameters
    ----------
    tree : Tree
        The tree.
    points : array-like of shape (n_points, n_features)
        Points.
    y : ndarray of int, shape (n_points,)
        Class numbers, -1 for points that do not count.
    weight : ndarray of shape (n_points,)
        Weights.
    n_classes : int or None
        Number of classes, by default the one the tree has.

    Returns
    -------
    Tree
        A node that no weight reaches keeps its label where that is a class.
    """
    n_classes = tree.n_outputs if n_classes is None else n_classes
    counts = leaf_counts(tree, points, y, weight, n_classes)
    labels = heaviest(counts)
    if tree.labels is not None:
        labels = np.where((counts.sum(axis=1) > 0) | (tree.labels >= n_classes), labels, tree.labels)
    return tree.with_leaves(counts, labels)


def counted(tree: Tree, points: ArrayLike, y: IntArray, weight: FloatArray) -> Tree:
    """Return a tree of the same splits with class weights counted; leaves keep their labels, branches get the largest.

    Parameters are those of :func:`relabelled`.
    """
    if tree.labels is None:
        raise ValueError("a regression tree has no labels")
    counts = leaf_counts(tree, points, y, weight, tree.n_outputs)
    return tree.with_leaves(counts, np.where(tree.is_leaf, tree.labels, heaviest(counts)))


def without_idle_splits(
    tree: Tree, points: ArrayLike, y: IntArray, weight: FloatArray, n_classes: int | None = None
) -> Tree:
    """Give leaves of a tree their best labels and drop splits below which every leaf has the same one.

    Parameters are those of :func:`relabelled`.

    Examples
    --------
    >>> tree = Tree.stump(weights=[1.0], threshold=0.5, values=[[1.0, 0.0], [0.0, 1.0]])
    >>> without_idle_splits(tree, [[0.0], [1.0]], np.array([1, 1]), np.ones(2)).n_nodes
    1
    """
    return without_equal_leaves(relabelled(tree, points, y, weight, n_classes))


def without_equal_leaves(tree: Tree) -> Tree:
    """Drop splits of a tree below which every leaf has the same label: what it predicts stays.

    Examples
    --------
    >>> without_equal_leaves(Tree.stump(weights=[1.0], threshold=0.5, values=[[1.0, 0.0], [2.0, 0.0]])).n_nodes
    1
    """
    assert tree.labels is not None
    labels, pure, keep = tree.labels.copy(), tree.is_leaf.copy(), np.ones(tree.n_nodes, dtype=bool)
    for node in tree.branches[::-1]:  # children are numbered after their parent
        left, right = tree.left[node], tree.right[node]
        pure[node] = pure[left] and pure[right] and labels[left] == labels[right]
        if pure[node]:
            labels[node] = labels[left]
            keep[[left, right]] = False
    if keep.all():
        return tree
    return tree.with_leaves(tree.values, labels).collapsed(keep)


def averaged(tree: Tree, points: ArrayLike, Y: FloatArray, weight: FloatArray) -> Tree:
    """Return a tree of the same splits with the weighted mean of `Y` at each node as its value, no slopes.

    Parameters
    ----------
    tree : Tree
        The tree; each leaf must be reached by a point.
    points : array-like of shape (n_points, n_features)
        Points.
    Y : ndarray of shape (n_points, n_outputs)
        Targets.
    weight : ndarray of shape (n_points,)
        Weights, positive.
    """
    leaf = route(tree, points)
    columns = [np.bincount(leaf, weight * column, tree.n_nodes) for column in (*Y.T, np.ones(len(Y)))]
    sums = np.stack(columns, axis=1)
    for node in tree.branches[::-1]:  # children are numbered after their parent
        sums[node] = sums[tree.left[node]] + sums[tree.right[node]]
    return tree.with_leaves(sums[:, :-1] / sums[:, -1:], None)


def _as_points(tree: Tree, points: Any) -> Any:
    X = points.tocsr() if sparse.issparse(points) else np.asarray(points)
    if X.dtype.kind != "f":
        X = X.astype(np.float64)
    if X.ndim != 2 or X.shape[1] != tree.n_features:
        raise ValueError(f"points have shape {X.shape}, the tree needs (n, {tree.n_features})")
    return X


def _block_size(tree: Tree) -> int:
    return max(1, min(_BLOCK, _CELLS // max(1, tree.n_features)))


def _as_rows(X: Any) -> FloatArray:
    """Rows one after the other in memory: the rounding of a product depends on the order it is summed in."""
    return np.ascontiguousarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)


def _times_own_row(block: FloatArray, factors: FloatArray) -> FloatArray:
    """Sum of products of each row with its own factors; what has the factor zero does not count, even if infinite."""
    if not np.isfinite(block).all():
        block = np.where(factors != 0.0, block, 0.0)
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(np.einsum("ij,ij->i", block, factors))


def _goes_left(tree: Tree, block: FloatArray, at: IntArray, finite: bool = False) -> BoolArray:
    """Side of each row of `block` at its own node `at`; `finite`: all numbers are known to be.

    Each row is multiplied by the normal of its node alone. Unlike a matrix product with all nodes of the
    level, whose rounding depends on how many rows are passed, a point is then routed the same way in every
    batch.
    """
    by_category = tree.category.take(at) >= 0
    if not by_category.any():
        return _goes_left_by_plane(tree, block, at, finite)
    left = np.empty(len(block), dtype=bool)
    left[by_category] = _goes_left_by_category(tree, block[by_category], at[by_category])
    left[~by_category] = _goes_left_by_plane(tree, block[~by_category], at[~by_category], finite)
    return left


def _sparse_goes_left(tree: Tree, block: Any, at: IntArray) -> BoolArray:
    """Side of each sparse row at its own node; those that rounding might decide are looked at as dense ones."""
    left, sure = sparse_sides(tree, block, at)
    unsure = np.flatnonzero(~sure & ~tree.is_leaf[at])
    size = _block_size(tree)
    for first in range(0, len(unsure), size):
        rows = unsure[first : first + size]
        left[rows] = _goes_left(tree, _as_rows(block[rows]), at[rows])
    return left


def _goes_left_by_plane(tree: Tree, block: FloatArray, at: IntArray, finite: bool) -> BoolArray:
    weights, threshold = tree.weights.take(at, axis=0), tree.threshold.take(at)
    if finite or (are_finite := np.isfinite(block)).all():
        return np.asarray(np.einsum("ij,ij->i", block, weights) <= threshold)
    used = weights != 0.0
    missing = np.isnan(block)
    # What the split does not use must not count: infinity times zero is no number.
    filled = np.where(are_finite | (used & ~missing), block, 0.0)
    left = np.einsum("ij,ij->i", filled, weights) <= threshold
    return np.where(np.any(missing & used, axis=1), tree.missing_left[at], left)


def _goes_left_by_category(tree: Tree, block: FloatArray, at: IntArray) -> BoolArray:
    value = block[np.arange(len(block)), tree.category[at]]
    missing = np.isnan(value)
    code = np.where(missing, -1.0, value)
    n_categories = tree.left_categories.shape[1]
    # A code the split has never seen, or that is no whole number, goes right.
    known = (code >= 0) & (code < n_categories) & (code == np.floor(code))
    listed = np.zeros(len(block), dtype=bool)
    listed[known] = tree.left_categories[at[known], code[known].astype(np.int64)]
    return np.where(missing, tree.missing_left[at], listed)


def points_at_splits(tree: Tree, X: FloatArray) -> Iterator[tuple[int, IntArray, BoolArray]]:
    """Branch nodes of a tree in turn, with the points that reach them and whether these go left."""
    inside = {0: np.arange(len(X))}
    for node in tree.branches.tolist():  # children are numbered after their parent
        here = inside.pop(node)
        goes_left = side(tree, X[here], node)
        inside[int(tree.left[node])], inside[int(tree.right[node])] = here[goes_left], here[~goes_left]
        yield node, here, goes_left
