"""A tree of splits of any kind completed to a depth: node k has the children 2k + 1 and 2k + 2."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from treewright.core.arrays import FloatArray
from treewright.tree import Tree

__all__ = ["completed_heap_tree", "largest_planes", "with_plane"]


def completed_heap_tree(tree: Tree, depth: int, n_classes: int) -> Tree:
    """Complete an SVM1-ODT tree; what is below `depth` is cut off, and splits that are added send all left.

    Its nodes have no values yet; a tree without labels gets the first class everywhere.

    Examples
    --------
    >>> tree = completed_heap_tree(Tree.stump([1.0], 0.5, [[1.0, 0.0], [0.0, 1.0]]), 2, 2)
    >>> tree.left.tolist(), tree.threshold.tolist(), tree.labels[tree.leaves].tolist()
    ([1, 3, 5, -1, -1, -1, -1], [0.5, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0], [0, 0, 1, 1])
    """
    if tree.depth > depth:
        tree = tree.collapsed(tree.level <= depth)
    n_branches = 2**depth - 1
    n, numbers = 2 * n_branches + 1, np.arange(2 * n_branches + 1)
    inner = numbers < n_branches
    source = np.full(n, -1)
    source[np.array(tree.heap_numbers) - 1] = np.arange(tree.n_nodes)
    for node in np.flatnonzero(source < 0).tolist():  # parents come first
        source[node] = source[(node - 1) // 2]
    split = np.zeros(n, dtype=bool)
    split[np.array(tree.heap_numbers)[tree.branches] - 1] = True
    labels = np.zeros(n, dtype=np.int64) if tree.labels is None else tree.labels[source]
    return Tree(
        left=np.where(inner, 2 * numbers + 1, -1),
        right=np.where(inner, 2 * numbers + 2, -1),
        weights=np.where(split[:, None], tree.weights[source], 0.0),
        threshold=np.where(split, tree.threshold[source], np.where(inner, 1.0, 0.0)),
        values=np.zeros((n, n_classes)),
        labels=labels,
        category=np.where(split, tree.category[source], -1),
        left_categories=tree.left_categories[source] & split[:, None],
        missing_left=tree.missing_left[source] & split,
    )


def largest_planes(tree: Tree, X: FloatArray, largest: float) -> Tree:
    """Scale planes of an SVM1-ODT to the largest size at which no value of a point leaves [-1, 1].

    Parameters
    ----------
    tree : Tree
        The tree.
    X : ndarray of shape (n_points, n_features)
        Points; NaN where a value is missing.
    largest : float
        Bound of the entries of a normal.
    """
    weights, threshold = tree.weights.copy(), tree.threshold.copy()
    for node in np.flatnonzero(np.any(weights != 0, axis=1)).tolist():
        used = np.flatnonzero(weights[node])
        level = X[:, used] @ weights[node, used]
        known = level[~np.isnan(level)]
        if len(known):  # a threshold far off, where gaps alone are parted, would leave nothing of the normal
            beyond = float(np.abs(weights[node]).max()) + known.max() - known.min()
            threshold[node] = np.clip(threshold[node], known.min() - beyond, known.max() + beyond)
        value = threshold[node] - level
        reach = float(np.abs(value[~np.isnan(value)]).max(initial=0.0))
        # A little less, so that rounding leaves no value beyond.
        factor = (1 - 1e-9) * min(1.0 / reach if reach > 0 else 1.0, largest / float(np.abs(weights[node]).max()))
        weights[node], threshold[node] = weights[node] * factor, threshold[node] * factor
    return replace(tree, weights=weights, threshold=threshold)


def with_plane(tree: Tree, node: int, normal: FloatArray, threshold: float) -> Tree:
    """The SVM1-ODT tree with another split at a node: a plane."""
    weights, thresholds, category = tree.weights.copy(), tree.threshold.copy(), tree.category.copy()
    weights[node], thresholds[node], category[node] = normal, threshold, -1
    return replace(tree, weights=weights, threshold=thresholds, category=category)
