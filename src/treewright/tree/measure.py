"""Errors, sparsity and the papers' objectives, recomputed from a tree and the data alone."""

from __future__ import annotations

import numpy as np

from treewright.tree.routing import predict_labels
from treewright.tree.structure import FloatArray, IntArray, Tree

__all__ = ["n_split_weights", "oct_h_objective", "weighted_error"]


def weighted_error(tree: Tree, X: FloatArray, y: IntArray, weight: FloatArray) -> float:
    """Total weight of the labelled points (``y >= 0``) that the tree misclassifies."""
    wrong = (predict_labels(tree, X) != y) & (y >= 0)
    return float(weight[wrong].sum())


def n_split_weights(tree: Tree) -> int:
    """Count the features that splits use, summed over the splits: the complexity of OCT-H."""
    return int(np.count_nonzero(tree.weights[tree.branches]) + np.count_nonzero(tree.category >= 0))


def oct_h_objective(
    tree: Tree, X: FloatArray, y: IntArray, weight: FloatArray, complexity: float, baseline: float
) -> float:
    r"""Objective of OCT-H, :math:`\frac{1}{\hat L}\sum_t L_t + \alpha \sum_{t,j} s_{jt}`.

    Parameters
    ----------
    tree : Tree
        The tree.
    X, y, weight : ndarray
        Points, class numbers (-1 for unlabelled, which do not count) and weights.
    complexity : float
        The price :math:`\alpha` of a feature in a split.
    baseline : float
        :math:`\hat L`, the error of always predicting the majority class.

    Examples
    --------
    >>> import numpy as np
    >>> tree = Tree.stump(weights=[1.0], threshold=0.5, values=[[2.0, 0.0], [0.0, 1.0]])
    >>> X, y = np.array([[0.0], [0.2], [1.0], [0.9]]), np.array([0, 0, 1, 0])
    >>> oct_h_objective(tree, X, y, np.ones(4), complexity=0.1, baseline=1.0)
    1.1
    """
    return weighted_error(tree, X, y, weight) / baseline + complexity * n_split_weights(tree)
