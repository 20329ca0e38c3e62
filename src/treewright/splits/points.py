"""Dense and sparse points behind the same few operations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from treewright.arrays import FloatArray, IntArray
from treewright.tree.structure import Shape

__all__ = ["LEAST_GAP", "Points"]

LEAST_GAP = {8: 1e-9, 4: 2e-7}
"""Least distance along a normal of points on different sides, by the bytes of a float: below, rounding could part them
otherwise when features are turned back to their units."""


class Points:
    """Dense or sparse points behind the same few operations."""

    def __init__(self, X: Any) -> None:
        self.X = X
        self.sparse = sparse.issparse(X)
        self.least_gap = LEAST_GAP[X.dtype.itemsize]

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

    def levels(self, rows: IntArray, normal: FloatArray) -> FloatArray:
        """Positions of some points along a normal."""
        from treewright.splits.kernels import levels_dense, levels_sparse  # numba takes a while to import

        if self.sparse:
            return np.asarray(levels_sparse(self.X.data, self.X.indices, self.X.indptr, rows, normal))
        used = np.flatnonzero(normal)
        return np.asarray(levels_dense(self.X, rows, used, normal[used]))

    def walk(
        self, shape: Shape, normals: FloatArray, threshold: FloatArray, rows: IntArray, start: IntArray
    ) -> IntArray:
        """Leaf that each of some points reaches from where it starts."""
        from treewright.splits.kernels import walk_dense, walk_sparse  # numba takes a while to import

        at = start.copy()
        if self.sparse:
            X = self.X
            walk_sparse(X.data, X.indices, X.indptr, rows, at, shape.left, shape.right, normals, threshold)
        else:
            used = sparse.csr_array(normals)
            starts, features = used.indptr.astype(np.int64), used.indices.astype(np.int64)
            walk_dense(self.X, rows, at, shape.left, shape.right, starts, features, used.data, threshold)
        return at
