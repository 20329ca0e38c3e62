"""Errors, sparsity and the papers' objectives, recomputed from a tree and the data alone."""

from __future__ import annotations

import numpy as np

from treewright.arrays import FloatArray, IntArray
from treewright.tree.routing import predict_labels
from treewright.tree.structure import Tree

__all__ = [
    "leaf_errors",
    "n_split_weights",
    "oct_h_objective",
    "own_leaf_errors",
    "weighted_error",
]


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


def leaf_errors(tree: Tree, X: FloatArray) -> FloatArray:
    r"""Leaf error of each point at each leaf (Bennett and Blue 1996), shape (n_points, n_leaves).

    With :math:`f_b(x) = w_b^\top x - t_b`, a path that goes right at b asks for :math:`f_b(x) \ge 1`, one that goes
    left for :math:`f_b(x) \le -1`, and

    .. math:: LE(x, l) = \sum_{b\ right} [1 - f_b(x)]^+ + \sum_{b\ left} [1 + f_b(x)]^+ .

    Columns follow ``tree.leaves``.

    Examples
    --------
    >>> import numpy as np
    >>> tree = Tree.stump(weights=[1.0], threshold=0.0, values=[[1.0, 0.0], [0.0, 1.0]])
    >>> leaf_errors(tree, np.array([[-1.0], [0.5]])).tolist()
    [[0.0, 2.0], [1.5, 0.5]]
    """
    branches = tree.branches
    value = X @ tree.weights[branches].T - tree.threshold[branches]
    error = np.zeros((tree.n_nodes, len(X)))
    for column, node in enumerate(branches):  # a child has a larger number than its parent
        error[tree.left[node]] = error[node] + np.maximum(0.0, 1.0 + value[:, column])
        error[tree.right[node]] = error[node] + np.maximum(0.0, 1.0 - value[:, column])
    return np.ascontiguousarray(error[tree.leaves].T)


def own_leaf_errors(tree: Tree, X: FloatArray, y: IntArray) -> FloatArray:
    r"""Smallest leaf error of each point among the leaves of its own class, infinite where there is none.

    Examples
    --------
    >>> import numpy as np
    >>> tree = Tree.stump(weights=[1.0], threshold=0.0, values=[[1.0, 0.0], [0.0, 1.0]])
    >>> own_leaf_errors(tree, np.array([[-1.0], [-1.0]]), np.array([0, 1])).tolist()
    [0.0, 2.0]
    """
    if tree.labels is None:
        raise ValueError("a regression tree has no labels")
    other = tree.labels[tree.leaves] != y[:, None]
    return np.asarray(np.where(other, np.inf, leaf_errors(tree, X)).min(axis=1, initial=np.inf))
