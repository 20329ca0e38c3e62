"""Nearest neighbours of every point among the others, exact or approximate, in parts that a clock can end."""

from __future__ import annotations

import importlib.util
import os
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.core.threads import one_thread
from treewright.exceptions import InvalidInputError
from treewright.graph.approximate import (
    INSTALL,
    RECALL,
    SAFE,
    SAMPLE,
    ApproximateSearch,
    search_seconds,
    setup_seconds,
)
from treewright.graph.exact import ExactSearch

__all__ = ["METHODS", "Neighbors", "affordable_points", "nearest_neighbors"]

METHODS = ("auto", "exact", "approximate")
"""Ways to find neighbours."""

_PATIENCE = 10.0
"""Estimated seconds of one thread up to which "auto" takes exact neighbours."""

_FEW = 1000
"""Points from which on neighbours may be approximate."""

_FEWEST = 50
"""Points whose neighbours must be known to say how many an approximate search finds, if time is short."""


class Neighbors(NamedTuple):
    """The nearest other points of every point."""

    index: IntArray  # type: ignore[assignment]  # hides tuple.index, which nobody asks neighbours for
    """Rows of the neighbours, nearest first, of equally near ones the smaller row first; never the row itself. A point
    that a budget did not let be searched for has -1; shape (n, k)."""
    distance: FloatArray
    """Their Euclidean distances, infinite where there is none; shape (n, k)."""
    recall: float = 1.0
    """Share of the neighbours that were found where they were searched for, from a sample of points."""
    note: str = ""
    """What a budget cut short, in words; empty if nothing."""

    @property
    def searched(self) -> float:
        """Share of the points that were searched for."""
        n, k = self.index.shape
        return float(np.mean(self.index[:, 0] >= 0)) if n and k else 1.0


def nearest_neighbors(
    X: Any,
    n_neighbors: int,
    method: str = "auto",
    n_jobs: int = 1,
    seed: int = 0,
    budget: Budget | None = None,
) -> Neighbors:
    """Find the nearest other points of every point.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, n_features)
        Points, float64 or float32 (faster, and half the memory).
    n_neighbors : int
        Neighbours of a point; n - 1 if that is less.
    method : {"auto", "exact", "approximate"}
        "approximate" is faiss, with cells and candidates raised until a sample of points has 98 % of its neighbours.
        "auto" takes it where exact neighbours take longer than about ten seconds of one thread and it is installed.
        Fewer than 1000 points always have exact neighbours, and so have points for which these are found faster.
    n_jobs : int
        Threads, at least 1. Neighbours do not depend on it.
    seed : int
        Seed of the approximate search.
    budget : Budget or None
        Ends the search. Where time is too short for all of it, a warning says so before it starts; an approximate
        search is less thorough then, and points evenly spread over X are searched for as far as time allows. What
        takes a fraction of a second is done in any case.

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
    exact = ExactSearch(X, k)
    work = _Work(n, k, n_jobs, Budget() if budget is None else budget)
    coarse = ApproximateSearch(X, k, seed) if _may_be_coarse(exact, method, work) else None
    with one_thread():  # parts have one thread each, so that the number of threads changes nothing
        return work.exactly(exact) if coarse is None or n < _FEW else work.coarsely(coarse, exact, seed)


def affordable_points(X: Any, n_neighbors: int, method: str, n_jobs: int, seconds: float) -> int:
    """How many points of X a search for neighbours has time for, here and now, if as thorough as usual.

    Parameters
    ----------
    X, n_neighbors, method, n_jobs
        As for :func:`nearest_neighbors`.
    seconds : float
        Time that the search may take. A hundredth of it, about, goes to a timed part of an exact search, which tells
        how fast the machine is.

    Returns
    -------
    int
        Number of points; all where that takes a fraction of a second.

    Examples
    --------
    >>> X = np.random.default_rng(0).random((100, 3))
    >>> affordable_points(X, 5, "auto", 1, seconds=60.0)
    100
    """
    X = _as_points(X)
    n, p = X.shape
    exact, threads = ExactSearch(X, min(n_neighbors, max(1, n - 1))), _threads(n_jobs)
    may_be_coarse = method != "exact" and importlib.util.find_spec("faiss") is not None

    def needed(n: int) -> float:
        alone = exact.seconds_for(n)
        if may_be_coarse and n >= _FEW and (method == "approximate" or alone > _PATIENCE):
            sample = alone * min(1.0, SAMPLE / n)
            return min(alone / threads, sample / threads + setup_seconds(n, p) + search_seconds(n, p) / threads)
        return alone / threads

    if needed(n) < 0.1 * max(seconds, 1.0):  # even if the machine is slow
        return n
    rows = np.arange(n)[:: max(1, n // int(np.clip(0.01 * seconds * n / exact.seconds, 20, SAMPLE)))]
    with one_thread():
        exact.find(rows[:1])  # makes what the others need
        began = time.perf_counter()
        exact.find(rows)
    slowness = max(1.0, (time.perf_counter() - began) * n / (exact.seconds * len(rows)))
    while n > 1 and slowness * needed(n) > seconds:
        n = int(0.9 * n)
    return n


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


def _may_be_coarse(exact: ExactSearch, method: str, work: _Work) -> bool:
    """Whether neighbours may be approximate; warns where they should be and cannot."""
    if method != "auto" or work.n < _FEW:
        return method == "approximate"
    if exact.seconds <= _PATIENCE and work.budget.allows(exact.seconds / (SAFE * work.threads)):
        return False
    if importlib.util.find_spec("faiss") is not None:
        return True
    warnings.warn(
        f"exact neighbours of {work.n} distinct rows take about {_duration(exact.seconds / work.threads)}; approximate "
        f"ones take a fraction of that and need the package 'faiss-cpu'; install it with: {INSTALL}",
        UserWarning,
        stacklevel=3,
    )
    return False


class _Work:
    """A search for the neighbours of all points, in parts, on several threads, until a budget ends it."""

    def __init__(self, n: int, k: int, n_jobs: int, budget: Budget) -> None:
        self.n, self.n_jobs, self.budget, self.began = n, n_jobs, budget, time.perf_counter()
        self.threads = _threads(n_jobs)
        self.index, self.distance = np.full((n, k), -1, dtype=np.int64), np.full((n, k), np.inf)

    def exactly(self, exact: ExactSearch) -> Neighbors:
        """Search for exact neighbours; the first part is searched in any case and says how long all of them take."""
        exact.prepare()
        first, *others = _parts(np.arange(self.n), exact.part)
        began = time.perf_counter()
        self.index[first], self.distance[first] = exact.find(first)
        seconds = (time.perf_counter() - began) * len(others) / self.threads
        if seconds > self.budget.remaining:
            share = self.budget.remaining / seconds
            self._tell(
                f"exact neighbours of {self.n} distinct rows take about {_duration(seconds)}", f"finds {share:.0%}"
            )
        self._each(exact, others)
        return self.found()

    def coarsely(self, coarse: ApproximateSearch, exact: ExactSearch, seed: int) -> Neighbors:
        """Search for approximate neighbours, or exact ones where they take no longer."""
        each = exact.seconds / self.n
        # Where time is short, a rough idea of the share that is found must do.
        size = int(min(self.n, SAMPLE, max(_FEWEST, 0.02 * self.budget.remaining / each)))
        if not self.budget.allows(coarse.setup_seconds + each * size):
            return self._left_out(coarse.setup_seconds + each * size)
        sample = np.sort(np.random.default_rng(seed).choice(self.n, size, replace=False))
        exact.find(sample[:1])  # makes what the others need
        began = time.perf_counter()
        self._each(exact, _parts(sample, exact.part))
        slowness = max(1.0, (time.perf_counter() - began) / (each * size))
        if not self.budget.allows(slowness * coarse.setup_seconds / SAFE):
            return self._left_out(slowness * coarse.setup_seconds)
        if not coarse.tune(sample, self.distance[sample, -1], self.threads, self.budget):
            return self.exactly(exact)
        if coarse.recall >= RECALL and coarse.seconds > exact.seconds:
            return self.exactly(exact)
        if coarse.recall < RECALL:
            what = f"a search for {RECALL:.0%} of the neighbours of {self.n} distinct rows takes too long"
            self._tell(what, f"finds about {coarse.recall:.0%}")
        self._each(coarse, _parts(np.arange(self.n), coarse.part))
        return self.found(coarse.recall)

    def _left_out(self, seconds: float) -> Neighbors:
        self._tell(
            f"a search for neighbours of {self.n} distinct rows takes more than {_duration(seconds)}", "is left out"
        )
        return self.found()

    def _each(self, search: ExactSearch | ApproximateSearch, parts: list[IntArray]) -> None:
        """Search for points, part by part; those whose turn comes when the budget is over are left out."""

        def one(rows: IntArray) -> None:
            if not self.budget.over:
                self.index[rows], self.distance[rows] = search.find(rows)

        if self.n_jobs == 1 or len(parts) == 1:
            for rows in parts:
                one(rows)
            return
        # Limits of OpenMP hold for the thread that sets them alone.
        with ThreadPoolExecutor(self.n_jobs, initializer=threadpool_limits, initargs=(1, "openmp")) as pool:
            for _ in pool.map(one, parts):
                pass

    def _tell(self, what: str, then: str) -> None:
        """Say before the search that time is too short for it, and what becomes of it."""
        left = self.budget.remaining
        warnings.warn(f"{what}, {_duration(left)} are left for it: it {then}", ConvergenceWarning, stacklevel=4)

    def found(self, recall: float = 1.0) -> Neighbors:
        """What was found so far; if that is not all, with a note."""
        near = Neighbors(self.index, self.distance, recall)
        spent = f"the search for neighbours took {_duration(time.perf_counter() - self.began)}"
        if not near.searched:
            return near._replace(note="there was no time to search for neighbours")
        if near.searched < 1:
            return near._replace(note=f"{spent} and ended with {near.searched:.0%} of the rows")
        if recall < RECALL:
            return near._replace(note=f"{spent} and was cut down to finding about {recall:.0%} of them")
        return near


def _parts(rows: IntArray, size: int) -> list[IntArray]:
    """Points in parts, each of them spread evenly over all: if some are left out, no region is."""
    count = -(-len(rows) // size)
    return [rows[first::count] for first in range(count)]


def _threads(n_jobs: int) -> int:
    """Threads that work side by side."""
    return min(n_jobs, os.cpu_count() or 1)


def _duration(seconds: float) -> str:
    if seconds >= 600:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
