"""Nearest neighbours of every point among the others: exact by scikit-learn, approximate by pynndescent."""

from __future__ import annotations

import importlib.util
import threading
import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from treewright.arrays import BoolArray, FloatArray, IntArray
from treewright.exceptions import InvalidInputError, PackageNotInstalledError

__all__ = ["METHODS", "Neighbors", "nearest_neighbors"]

METHODS = ("auto", "exact", "approximate")
"""Ways to find neighbours."""

_INSTALL = 'pip install "treewright[graph]"'

_PATIENCE = 40.0
"""Estimated seconds of one thread up to which neighbours are exact: pynndescent compiles about as long in a process."""

_ONE_SEARCH = threading.Lock()
"""Some of numba's thread pools end the process when two Python threads use them at once."""


class Neighbors(NamedTuple):
    """The nearest other points of every point.

    Attributes
    ----------
    index : ndarray of int64 of shape (n, k)
        Rows of the neighbours, nearest first, of equally near ones the smaller row first; never the row itself.
    distance : ndarray of float64 of shape (n, k)
        Their Euclidean distances.
    """

    index: IntArray  # type: ignore[assignment]  # hides tuple.index, which nobody asks neighbours for
    distance: FloatArray


def nearest_neighbors(X: Any, n_neighbors: int, method: str = "auto", n_jobs: int = 1, seed: int = 0) -> Neighbors:
    """Find the nearest other points of every point.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, n_features)
        Points, float64 or float32 (faster, and half the memory).
    n_neighbors : int
        Neighbours of a point; n - 1 if that is less.
    method : {"auto", "exact", "approximate"}
        "approximate" is pynndescent, which finds 96 to 98 % of the neighbours and compiles itself for up to a minute
        in every process. "auto" takes it where exact neighbours would take longer than that and it is installed.
    n_jobs : int
        Threads of the exact search, at least 1. Neighbours do not depend on it: the approximate search, which would,
        runs on one thread, and is no faster on two.
    seed : int
        Seed of the approximate search.

    Returns
    -------
    Neighbors
        Rows and distances. A row has exactly itself left out: another row that is equal to it is a neighbour.

    Examples
    --------
    >>> near = nearest_neighbors(np.array([[0.0], [1.0], [1.0], [5.0]]), 2)
    >>> near.index.tolist()
    [[1, 2], [2, 0], [1, 0], [1, 2]]
    >>> near.distance.tolist()
    [[1.0, 1.0], [0.0, 1.0], [0.0, 1.0], [4.0, 4.0]]
    """
    if method not in METHODS:
        raise InvalidInputError(f"method={method!r} is unknown; choose one of {', '.join(map(repr, METHODS))}")
    if n_neighbors < 1:
        raise InvalidInputError(f"n_neighbors={n_neighbors!r}; every point needs at least 1 neighbour")
    X = _as_points(X)
    n = X.shape[0]
    k = min(int(n_neighbors), n - 1)
    if k < 1:
        return Neighbors(np.empty((n, 0), dtype=np.int64), np.empty((n, 0)))
    if method == "auto":
        method = _choose(X)
    with threadpool_limits(limits=n_jobs):
        index = _approximate(X, k, seed) if method == "approximate" else _exact(X, k, n_jobs)
    return _ordered(X, index)


def _as_points(X: Any) -> Any:
    """Points in rows, as float32 or float64."""
    dtype = np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64
    if not sparse.issparse(X):
        return np.ascontiguousarray(X, dtype=dtype)
    rows = sparse.csr_array(X).astype(dtype, copy=False)
    if rows.has_canonical_format:
        return rows
    rows = rows.copy()
    rows.sum_duplicates()
    return rows


def _seconds(X: Any) -> tuple[float, float]:
    """Rough seconds of one thread for exact neighbours: by a k-d tree, and by all distances."""
    n, p = X.shape
    tree = np.inf if sparse.issparse(X) or p > 15 else 1.3e-6 * n * 1.8**p
    width = X.nnz / n if sparse.issparse(X) else p
    return tree, (5e-10 if sparse.issparse(X) else 4.6e-11) * n * n * (width + 70)


def _choose(X: Any) -> str:
    seconds = min(_seconds(X))
    if seconds <= _PATIENCE:
        return "exact"
    if importlib.util.find_spec("pynndescent") is not None:
        return "approximate"
    warnings.warn(
        f"exact neighbours of {X.shape[0]} points take about {seconds / 60:.0f} minutes; approximate ones take a "
        f"fraction of that and need the package 'pynndescent'; install it with: {_INSTALL}",
        UserWarning,
        stacklevel=3,
    )
    return "exact"


def _exact(X: Any, k: int, n_jobs: int) -> IntArray:
    tree, brute = _seconds(X)
    algorithm = "kd_tree" if tree < brute else "brute"
    if not sparse.issparse(X):
        # All distances come from products of points, whose digits cancel where points are far from the origin.
        X = X - X.mean(axis=0, dtype=np.float64).astype(X.dtype)
    model = NearestNeighbors(n_neighbors=k, algorithm=algorithm, n_jobs=n_jobs).fit(X)
    # Without points to ask for, scikit-learn leaves out the row itself by its number, not by its distance.
    return np.asarray(model.kneighbors(return_distance=False), dtype=np.int64)


def _approximate(X: Any, k: int, seed: int) -> IntArray:
    try:
        import numba
        from pynndescent import NNDescent
    except ImportError as error:
        raise PackageNotInstalledError(
            "approximate neighbours need the package 'pynndescent', which is not installed; "
            f"install it with: {_INSTALL}"
        ) from error
    n = X.shape[0]
    with _ONE_SEARCH, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of neighbours that were not found; they are looked for below
        threads = numba.get_num_threads()
        try:
            search = NNDescent(X, n_neighbors=k + 1, random_state=seed, n_jobs=1)
        finally:
            numba.set_num_threads(threads)  # pynndescent does not set it back where it fails
    found = np.asarray(search.neighbor_graph[0], dtype=np.int64)
    others = (found != np.arange(n)[:, None]) & (found >= 0)
    # With many equal rows the row itself need not be among those found; then the last one found is one too many.
    others &= np.cumsum(others, axis=1) <= k
    whole = others.sum(axis=1) == k
    index = np.empty((n, k), dtype=np.int64)
    index[whole] = found[whole][others[whole]].reshape(-1, k)
    if not whole.all():
        index[~whole] = _exact_of(X, ~whole, k)
    return index


def _exact_of(X: Any, chosen: BoolArray, k: int) -> IntArray:
    """Exact neighbours of a few points among all."""
    rows = np.flatnonzero(chosen)
    model = NearestNeighbors(n_neighbors=k + 1, algorithm="brute").fit(X)
    found = np.asarray(model.kneighbors(X[rows], return_distance=False), dtype=np.int64)
    others = found != rows[:, None]
    others &= np.cumsum(others, axis=1) <= k
    return found[others].reshape(-1, k)


def _ordered(X: Any, index: IntArray) -> Neighbors:
    """Distances anew from differences in float64, nearest first, ties by number."""
    from treewright.graph.kernels import distances_dense, distances_sparse  # numba takes a while to import

    index = np.sort(index, axis=1)
    distance = np.empty(index.shape)
    everyone = np.arange(X.shape[0])
    if sparse.issparse(X):
        distances_sparse(X.data, X.indices, X.indptr, everyone, index, distance)
    else:
        distances_dense(X, everyone, index, distance)
    order = np.argsort(distance, axis=1, kind="stable")
    return Neighbors(np.take_along_axis(index, order, axis=1), np.take_along_axis(distance, order, axis=1))
