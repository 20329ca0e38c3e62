"""Trees whose splits have too many features, made to begin from where few are allowed."""

from __future__ import annotations

from typing import Any

import numpy as np

from treewright.core.arrays import IntArray
from treewright.splits.few import keep_largest
from treewright.splits.points import Points, SplitRule, Splits
from treewright.splits.thresholds import best_threshold
from treewright.tree import Tree
from treewright.tree.structure import Shape

__all__ = ["thinned_tree"]


def thinned_tree(tree: Tree, X: Any, most: int | None, n_levels: IntArray | None = None) -> Tree:
    """Hold the splits of a tree to so many features: the largest weights stay.

    From the root down, the threshold of such a split is where it agrees best with what the split did before, on the
    points that reach it now; where nothing agrees better than all points on one side, that is what it does.

    Parameters
    ----------
    tree : Tree
        The tree; one that has no such split comes back as it is.
    X : ndarray or csr_array of shape (n_points, n_features)
        Points with features of about unit size.
    most : int or None
        Most features of a split, None for any number.
    n_levels : ndarray of int, shape (n_features,), or None
        Levels of each categorical feature, 0 for a numerical one.

    Examples
    --------
    >>> X = np.array([[0.1, 0.2], [0.2, 0.9], [0.8, 0.1], [0.9, 0.8]])
    >>> tree = Tree.stump([2.0, 0.5], 1.0, np.eye(2))
    >>> thin = thinned_tree(tree, X, 1)
    >>> thin.weights[0].tolist(), thin.threshold[0]
    ([2.0, 0.0], np.float64(1.0))
    """
    if most is None or np.count_nonzero(tree.weights, axis=1).max() <= most:
        return tree
    points, shape, splits = Points(X, n_levels), Shape.of(tree), Splits.of(tree, n_levels)
    at = np.zeros(X.shape[0], dtype=np.int64)
    for node in np.concatenate(shape.branches).tolist():
        rows, rule = np.flatnonzero(at == node), splits.rule(node)
        goes_left = points.sides(rows, rule)
        if rule.category < 0 and np.count_nonzero(rule.normal) > most:
            normal = keep_largest(rule.normal, most)
            level = points.levels(rows, normal)
            there = ~np.isnan(level)
            threshold = np.inf if rule.missing_left else -np.inf  # where no point has all values
            if there.any():
                wrong_left, wrong_right = (side[there].astype(np.float64) for side in (~goes_left, goes_left))
                threshold, _ = best_threshold(level[there], wrong_left, wrong_right, points.gap_along(normal))
            if np.isfinite(threshold):
                rule = SplitRule(normal, threshold, missing_left=rule.missing_left)
            else:
                rule = SplitRule(np.zeros(len(normal)), 1.0 if threshold > 0 else -1.0)
            splits.put(node, rule)
            goes_left = points.sides(rows, rule)
        at[rows] = np.where(goes_left, shape.left[node], shape.right[node])
    return splits.tree(shape.left, shape.right, tree.values, tree.labels, tree.slopes)
