"""Exact nearest neighbours of some points at a time: by a k-d tree, by all distances, or by the features shared."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

from treewright.core.arrays import FloatArray, IntArray
from treewright.graph.edge_loops import closest_dense, closest_sparse, near_sparse

__all__ = ["ExactSearch", "closest_found"]

_SPARE = 4
"""Points found beyond those asked for: which of them are nearest is decided by exact distances."""

_DENSE_CELLS = 2**26
"""Cells up to which sparse points may be made dense, if that is faster."""

_PART_SECONDS, _PART_ROWS = 0.2, 4096
"""A part of the search takes about so long, and has so many points at most: it cannot be broken off."""


class ExactSearch:
    """Search for the nearest other points among all, on one thread.

    Parameters
    ----------
    X : ndarray (C order) or csr_array in canonical format, of shape (n, n_features)
        Points, float64 or float32.
    k : int
        Neighbours of a point, at most n - 1.

    Attributes
    ----------
    seconds : float
        Rough seconds for all points.
    part : int
        Points to be asked for at once.

    Examples
    --------
    >>> search = ExactSearch(np.array([[0.0], [1.0], [1.0], [5.0]]), 2)
    >>> index, distance = search.find(np.array([0, 3]))
    >>> index.tolist(), distance.tolist()
    ([[1, 2], [1, 2]], [[1.0, 1.0], [4.0, 4.0]])
    """

    def __init__(self, X: Any, k: int) -> None:
        self.X, self.k = X, k
        times = self._times = _seconds(X)
        self.kind = min(times, key=lambda kind: times[kind])
        self.seconds = times[self.kind]
        self.part = int(np.clip(_PART_SECONDS * X.shape[0] / max(self.seconds, 1e-9), 16, _PART_ROWS))
        self._find: Any = None

    def prepare(self) -> None:
        """Make what all parts need, unless it is there; before the first part on several threads."""
        if self._find is None:
            self._find = self._by_features() if self.kind == "features" else self._by_points()

    def find(self, rows: IntArray) -> tuple[IntArray, FloatArray]:
        """Rows and distances of the nearest other points of `rows`, as in :class:`Neighbors`."""
        self.prepare()
        return closest_found(self.X, rows, self._find(rows), self.k)

    def seconds_for(self, n: int) -> float:
        """Rough seconds for n such points among themselves."""
        share = n / self.X.shape[0]
        return min(time * (share if kind == "kd_tree" else share**2) for kind, time in self._times.items())

    def _wanted(self) -> int:
        return min(self.X.shape[0], self.k + 1 + _SPARE)

    def _by_points(self) -> Any:
        X = self.X
        if sparse.issparse(X):
            X = X.toarray()
        # All distances come from products of points, whose digits cancel where points are far from the origin.
        X = X - X.mean(axis=0, dtype=np.float64).astype(X.dtype)
        model = NearestNeighbors(n_neighbors=self._wanted(), algorithm=self.kind).fit(X)
        return lambda rows: model.kneighbors(X[rows], return_distance=False)

    def _by_features(self) -> Any:
        by_row = self.X
        by_column = by_row.tocsc()
        square = np.asarray(by_row.multiply(by_row).sum(axis=1), dtype=np.float64).ravel()
        one, two = (by_row.data, by_row.indices, by_row.indptr), (by_column.data, by_column.indices, by_column.indptr)

        def find(rows: IntArray) -> IntArray:
            found = np.empty((len(rows), self._wanted()), dtype=np.int64)
            near_sparse(*one, *two, square, rows, found)
            return found

        return find


def _seconds(X: Any) -> dict[str, float]:
    """Rough seconds of one thread for exact neighbours of all points, by kind of search."""
    n, p = X.shape
    times = {"brute": 4.6e-11 * n * n * (p + 70)}
    if p <= 15:
        times["kd_tree"] = 1.3e-6 * n * 1.8**p
    if not sparse.issparse(X):
        return times
    shared = float(np.sum(np.bincount(X.indices, minlength=p).astype(np.float64) ** 2))
    return (times if n * p <= _DENSE_CELLS else {}) | {"features": 1.6e-9 * (n * n + shared)}


def closest_found(X: Any, rows: IntArray, found: Any, k: int) -> tuple[IntArray, FloatArray]:
    """Nearest k neighbours among the points found for each row, by exact distances.

    Parameters
    ----------
    X : ndarray (C order) or csr_array in canonical format, of shape (n, n_features)
        Points.
    rows : ndarray of int
        Some of them.
    found : ndarray of int, shape (n_rows, n_found)
        Candidates for each, -1 for none. The row itself does not count.
    k : int
        How many are kept.

    Returns
    -------
    index, distance : ndarray of shape (n_rows, k)
        Nearest first, of equally near ones the smaller row first; -1 and infinity where there are too few.
    """
    found = np.ascontiguousarray(found, dtype=np.int64)
    index, distance = np.empty((len(rows), k), dtype=np.int64), np.empty((len(rows), k))
    if sparse.issparse(X):
        closest_sparse(X.data, X.indices, X.indptr, rows, found, index, distance)
    else:
        closest_dense(X, rows, found, index, distance)
    return index, distance
