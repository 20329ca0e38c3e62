"""Errors and sparsity of any tree, computed from the tree and the data alone."""

from __future__ import annotations

import numpy as np

from treewright.arrays import FloatArray, IntArray
from treewright.tree.routing import predict_labels
from treewright.tree.structure import Tree

__all__ = ["class_deviation", "n_split_weights", "weighted_error"]


def weighted_error(tree: Tree, X: FloatArray, y: IntArray, weight: FloatArray) -> float:
    """Total weight of the labelled points (``y >= 0``) that the tree misclassifies."""
    wrong = (predict_labels(tree, X) != y) & (y >= 0)
    return float(weight[wrong].sum())


def n_split_weights(tree: Tree) -> int:
    """Count the features that splits use, summed over the splits: the complexity of OCT-H."""
    return int(np.count_nonzero(tree.weights[tree.branches]) + np.count_nonzero(tree.category >= 0))


def class_deviation(label: IntArray, size: FloatArray, low: IntArray, high: IntArray) -> FloatArray:
    r"""Rows of each group that would have to change class for its totals to hold.

    With :math:`n_{gk}` the rows of group g in class k it is
    :math:`\max(\sum_k [n_{gk} - high_{gk}]^+, \sum_k [low_{gk} - n_{gk}]^+)`.

    Parameters
    ----------
    label : ndarray of int, shape (n_points,)
        Class of each point.
    size : ndarray of shape (n_points, n_groups)
        Rows of each group that a point stands for.
    low, high : ndarray of int, shape (n_groups, n_classes)
        Fewest and most rows of each class.

    Examples
    --------
    >>> import numpy as np
    >>> class_deviation(np.array([0, 1, 1]), np.array([[1], [2], [1]]), np.array([[2, 2]]), np.array([[2, 2]])).tolist()
    [1.0]
    """
    counts = np.stack([size[label == k].sum(axis=0) for k in range(low.shape[1])], axis=1).astype(np.float64)
    above = np.maximum(counts - high, 0.0).sum(axis=1)
    below = np.maximum(low - counts, 0.0).sum(axis=1)
    return np.asarray(np.maximum(above, below))
