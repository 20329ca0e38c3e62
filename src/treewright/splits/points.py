"""Dense and sparse points behind the same few operations; dense ones may have categories and gaps."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from treewright.arrays import BoolArray, FloatArray, IntArray
from treewright.splits.rules import SplitRule, Splits
from treewright.tree.shape import Shape

__all__ = ["LEAST_GAP", "Points"]

LEAST_GAP = {8: 1e-9, 4: 2e-7}
"""Least distance along a normal of points on different sides, by the bytes of a float: below, rounding could part them
otherwise when features are turned back to their units."""


class Points:
    """Dense or sparse points behind the same few operations.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_points, n_features)
        Points, float64 or float32. Dense ones may lack values, which are NaN.
    n_levels : ndarray of int, shape (n_features,), or None
        Levels of each categorical feature, whose values are codes, 0 for a numerical one; None where all are numerical.

    Attributes
    ----------
    gaps : bool
        Whether a value is missing.
    mixed : bool
        Whether there are categories or gaps.
    """

    def __init__(self, X: Any, n_levels: IntArray | None = None) -> None:
        self.X = X
        self.sparse = sparse.issparse(X)
        self.least_gap = LEAST_GAP[X.dtype.itemsize]
        self.n_levels = n_levels
        self.gaps = not self.sparse and bool(np.isnan(X.min(initial=0.0)))
        self.mixed = self.gaps or n_levels is not None

    @cached_property
    def numerical(self) -> IntArray:
        """Numbers of the numerical features."""
        return np.arange(self.X.shape[1]) if self.n_levels is None else np.flatnonzero(self.n_levels == 0)

    @cached_property
    def categorical(self) -> IntArray:
        """Numbers of the categorical features."""
        return np.zeros(0, dtype=np.int64) if self.n_levels is None else np.flatnonzero(self.n_levels)

    def take(self, rows: IntArray) -> Any:
        """Some of the points."""
        return self.X if len(rows) == self.X.shape[0] else self.X[rows]

    def blocks(self, rows: IntArray, cells: int) -> Iterator[tuple[int, FloatArray]]:
        """All features of some points, some at a time: number of the first one and a dense table of so many cells."""
        part = self.X[rows].tocsc() if self.sparse else self.X
        width = max(1, cells // max(1, len(rows)))
        for first in range(0, part.shape[1], width):
            last = first + width
            block = part[:, first:last].toarray() if self.sparse else part[rows, first:last]
            yield first, np.asarray(block, dtype=np.float64)

    def codes(self, rows: IntArray, feature: int) -> IntArray:
        """Codes of some points in a categorical feature, -1 where the value is missing."""
        values = self.X[rows, feature]
        return np.where(np.isnan(values), -1, values).astype(np.int64)

    def sides(self, rows: IntArray, rule: SplitRule) -> BoolArray:
        """Which of some points go left."""
        if rule.category >= 0:
            assert rule.listed is not None
            codes = self.codes(rows, rule.category)
            known = np.append(rule.listed, [False, rule.missing_left])  # beyond the last level; missing, the code -1
            return np.asarray(known[np.minimum(codes, len(rule.listed))])
        level = self.levels(rows, rule.normal)
        left = level <= rule.threshold
        return np.where(np.isnan(level), rule.missing_left, left) if self.gaps else left

    def levels(self, rows: IntArray, normal: FloatArray) -> FloatArray:
        """Positions of some points along a normal; NaN where a value that it uses is missing."""
        from treewright.splits.kernels import levels_dense, levels_sparse  # numba takes a while to import

        if self.sparse:
            return np.asarray(levels_sparse(self.X.data, self.X.indices, self.X.indptr, rows, normal))
        used = np.flatnonzero(normal)
        return np.asarray(levels_dense(self.X, rows, used, normal[used]))

    def walk(self, shape: Shape, splits: Splits, rows: IntArray, start: IntArray) -> IntArray:
        """Leaf that each of some points reaches from where it starts."""
        from treewright.splits.kernels import walk_dense, walk_mixed, walk_sparse  # numba takes a while to import

        at, left, right, threshold = start.copy(), shape.left, shape.right, splits.threshold
        if self.sparse:
            X = self.X
            walk_sparse(X.data, X.indices, X.indptr, rows, at, left, right, splits.normals, threshold)
            return at
        used = sparse.csr_array(splits.normals)
        starts, features = used.indptr.astype(np.int64), used.indices.astype(np.int64)
        if self.mixed:
            other = splits.category, splits.listed, splits.missing_left
            walk_mixed(self.X, rows, at, left, right, starts, features, used.data, threshold, *other)
        else:
            walk_dense(self.X, rows, at, left, right, starts, features, used.data, threshold)
        return at
