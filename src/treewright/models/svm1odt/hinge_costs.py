"""What a tree costs in SVM1-ODT, from the tree and the data alone."""

from __future__ import annotations

import numpy as np

from treewright.core.arrays import FloatArray
from treewright.tree import Tree

__all__ = ["hinge_errors", "split_norm", "split_values"]


def split_values(tree: Tree, X: FloatArray, node: int) -> FloatArray:
    """Value ``g - h @ x`` of points at a numerical SVM1-ODT split, NaN where a value it uses is missing."""
    used = np.flatnonzero(tree.weights[node])
    return np.asarray(tree.threshold[node] - X[:, used] @ tree.weights[node, used])


def hinge_errors(values: FloatArray, epsilon: float) -> FloatArray:
    """Hinge error ``max(0, epsilon - |value|)`` of each value at an SVM1-ODT split; none where it is missing.

    Examples
    --------
    >>> hinge_errors(np.array([-1.0, 0.0, 0.25, np.nan]), 0.5).tolist()
    [0.0, 0.5, 0.25, 0.0]
    """
    return np.asarray(np.nan_to_num(np.maximum(0.0, epsilon - np.abs(values)), nan=0.0))


def split_norm(tree: Tree) -> float:
    """Sum over the splits of an SVM1-ODT tree of the 1-norm of their normal; a categorical split counts 1."""
    return float(np.abs(tree.weights).sum() + np.count_nonzero(tree.category >= 0))
