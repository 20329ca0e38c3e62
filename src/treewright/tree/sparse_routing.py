"""Sides of sparse points by the values they have, as far as these decide whatever the order of a sum."""

from __future__ import annotations

from typing import Any

import numpy as np

from treewright.core.arrays import BoolArray, IntArray
from treewright.tree.structure import Tree

__all__ = ["sparse_sides"]


def sparse_sides(tree: Tree, X: Any, at: IntArray) -> tuple[BoolArray, BoolArray]:
    """Whether points of a CSR array go left at their own nodes of a tree, and whether that is sure.

    A point is routed as its dense copy is, whose sum of products has other roundings. Two sums of the same n products
    p differ by no more than 2 n eps sum |p|; where the distance from the threshold is larger, the side is the same. A
    sum of zeros is exact. Splits by a category, and values that are not finite, are not decided here.

    Examples
    --------
    >>> from scipy import sparse
    >>> tree = Tree.stump(weights=[1.0, 1.0], threshold=0.3, values=[[1.0], [2.0]])
    >>> left, sure = sparse_sides(tree, sparse.csr_array([[0.1, 0.2], [0.1, 0.0], [1.0, 0.0]]), np.zeros(3, int))
    >>> left[1:].tolist(), sure.tolist()
    ([True, False], [False, True, True])
    """
    n_values = np.diff(X.indptr)
    row = np.repeat(np.arange(len(at)), n_values)
    with np.errstate(invalid="ignore", over="ignore"):
        factors = tree.weights.ravel().take(np.repeat(at * tree.n_features, n_values) + X.indices)
        products = X.data * factors
        total, size = np.bincount(row, products, len(at)), np.bincount(row, np.abs(products), len(at))
        rounding = 4.0 * (n_values + 1) * np.finfo(np.float64).eps * size + np.finfo(np.float64).tiny * (size > 0)
        threshold = tree.threshold[at]
        sure = np.isfinite(size) & ((np.abs(total - threshold) > rounding) | (size == 0))
    return total <= threshold, sure & (tree.category[at] < 0)
