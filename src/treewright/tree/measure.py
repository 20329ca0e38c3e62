"""Errors and sparsity of any tree, computed from the tree and the data alone."""

from __future__ import annotations

import numpy as np

from treewright.arrays import FloatArray, IntArray
from treewright.tree.routing import predict_labels
from treewright.tree.structure import Tree

__all__ = ["n_split_weights", "weighted_error"]


def weighted_error(tree: Tree, X: FloatArray, y: IntArray, weight: FloatArray) -> float:
    """Total weight of the labelled points (``y >= 0``) that the tree misclassifies."""
    wrong = (predict_labels(tree, X) != y) & (y >= 0)
    return float(weight[wrong].sum())


def n_split_weights(tree: Tree) -> int:
    """Count the features that splits use, summed over the splits: the complexity of OCT-H."""
    return int(np.count_nonzero(tree.weights[tree.branches]) + np.count_nonzero(tree.category >= 0))
