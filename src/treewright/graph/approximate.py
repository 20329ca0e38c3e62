"""Approximate nearest neighbours by faiss: cells of points, short codes of what is left, exact distances of the best.

Points are put into cells by k-means, and in each cell coded with four bits a feature. A search looks through the codes
of the nearest cells, which faiss does with a table in registers, and takes the best candidates to exact distances. Wide
points are first projected on their leading components, so that codes are short; distances are those of all features in
the end. How many cells and candidates that takes differs from table to table: it is raised until a sample of points,
whose neighbours are known, has as many of them as asked for.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import randomized_svd

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.exceptions import PackageNotInstalledError
from treewright.graph.exact import closest_found

__all__ = ["INSTALL", "RECALL", "SAFE", "SAMPLE", "ApproximateSearch", "search_seconds", "setup_seconds"]

INSTALL = 'pip install "treewright[graph]"'

RECALL = 0.98
"""Share of the neighbours that is to be found."""

SAMPLE = 400
"""Points whose neighbours must be known to measure that share."""

_WIDTHS = (64, 256)
"""Components that wide points are projected on, the fewest that serve."""

_SVD_ROWS, _SVD_CELLS = 5000, 20_000_000
"""Points that components are computed from, at most, and cells of points that are in work at once."""

_TURNS, _PER_CELL = 6, 40
"""Turns of k-means, of cells and of codes, and points for each cell that it looks at."""

_USUAL = 64
"""Cells that are often enough."""

_BLOCK = 8192
"""Points that are projected or put into cells at once."""

SAFE = 0.8
"""Share of the time left that a search may take: estimates are rough."""

_STUCK = 0.002
"""Where more cells raise the share by less than this, codes or components are too coarse for so few candidates."""


class _Trial(NamedTuple):
    """Cells and candidates tried on the sample, the share of neighbours found, and seconds for all points."""

    cells: int
    candidates: int
    recall: float
    seconds: float


class ApproximateSearch:
    """Search for most of the nearest other points, on one thread.

    Parameters
    ----------
    X, k
        As for :class:`~treewright.graph.exact.ExactSearch`.
    seed : int
        Seed of k-means and components.

    Attributes
    ----------
    part : int
        Points to be asked for at once.
    recall : float
        After :meth:`tune`, the share of the neighbours that is found.
    seconds : float
        After it, rough seconds for all points; they do not depend on the machine.
    setup_seconds : float
        About how long :meth:`tune` takes, without the neighbours of the sample.

    Examples
    --------
    >>> from treewright.graph.exact import ExactSearch
    >>> X = np.random.default_rng(0).random((2000, 8))
    >>> rows = np.arange(100)
    >>> radius = ExactSearch(X, 5).find(rows)[1][:, -1]
    >>> search = ApproximateSearch(X, 5, seed=0)
    >>> search.tune(rows, radius, threads=1, budget=Budget()), bool(search.recall >= 0.98)
    (True, True)
    >>> search.find(rows)[0].shape
    (100, 5)
    """

    part = 1024

    def __init__(self, X: Any, k: int, seed: int) -> None:
        try:
            import faiss
        except ImportError as error:
            raise PackageNotInstalledError(
                "approximate neighbours need the package 'faiss-cpu', which is not installed; "
                f"install it with: {INSTALL}"
            ) from error
        self.faiss: Any = faiss
        self.X, self.k, self.seed = X, k, seed
        self.n_cells = _cells(X.shape[0])
        self.setup_seconds = setup_seconds(*X.shape)
        self.seconds = self.recall = np.nan

    def tune(self, sample: IntArray, radius: FloatArray, threads: int, budget: Budget) -> bool:
        """Make the index, and raise cells and candidates until the sample has its neighbours.

        Parameters
        ----------
        sample : ndarray of int
            Some points.
        radius : ndarray of float
            Distance of the last neighbour of each.
        threads : int
            How many of them will search side by side.
        budget : Budget
            If it is too short for a search that finds enough, what finds most in time is kept.

        Returns
        -------
        bool
            Whether there is an index to be used; there is none where exact neighbours are the only ones that serve.
        """
        self._sample, self._radius = sample, radius
        for points, coding in self._spaces():
            self._build(points, coding)
            best, hurried = self._raise(threads, budget)
            if best.recall >= RECALL or hurried:
                self._cells, self._candidates, self.recall, _ = best
                (n, p), width = self.X.shape, points.shape[1]
                size = width if coding != "Flat" else 6 * width + 170  # points take longer than codes of them
                self.seconds = search_seconds(n, p, self._cells, self._candidates, size)
                return True
        return False

    def find(self, rows: IntArray) -> tuple[IntArray, FloatArray]:
        """Rows and distances of near other points of `rows`, as in :class:`Neighbors`."""
        return self._find(rows, self._cells, self._candidates)

    def _find(self, rows: IntArray, cells: int, candidates: int) -> tuple[IntArray, FloatArray]:
        settings = self.faiss.SearchParametersIVF(nprobe=cells)
        found = self._index.search(self._points[rows], candidates, params=settings)[1]
        index, distance = closest_found(self.X, rows, found, self.k)
        short = np.flatnonzero(index[:, -1] < 0)  # few points in these cells: look into more
        if len(short) and cells < self.n_cells:
            index[short], distance[short] = self._find(rows[short], min(4 * cells, self.n_cells), candidates)
        return index, distance

    # ------------------------------------------------------------------ how thoroughly

    def _raise(self, threads: int, budget: Budget) -> tuple[_Trial, bool]:
        """First trial that finds enough, or the best in time; and whether time was too short for more."""
        enough = candidates = 3 * self.k + 20
        self._find(self._sample[:10], 1, enough)  # the first time takes longer
        best = _Trial(1, enough, -1.0, np.inf)
        for cells in _ladder(self.n_cells):
            while True:
                trial = self._try(cells, candidates)
                gain = trial.recall - best.recall
                late = budget.over or not budget.allows(trial.seconds / (SAFE * threads))
                if gain > 0 and not (late and best.recall >= 0):
                    best = trial
                if best.recall >= RECALL or late:
                    return best, late
                if cells <= 8 or gain >= _STUCK:
                    break
                if candidates > 2 * enough:
                    return best, False
                candidates *= 2
        return best, False

    def _try(self, cells: int, candidates: int) -> _Trial:
        began = time.perf_counter()
        distance = self._find(self._sample, cells, candidates)[1]
        each = (time.perf_counter() - began) / len(self._sample)
        return _Trial(cells, candidates, self._share(distance), each * self.X.shape[0])

    def _share(self, distance: FloatArray) -> float:
        """Share of the neighbours of the sample that are no farther than they should be."""
        return float(np.mean(distance <= self._radius[:, None] * (1 + 1e-9)))

    # ------------------------------------------------------------------ the index

    def _spaces(self) -> Iterator[tuple[Any, str]]:
        """Points in fewer and more components, with short codes and without; cheaper searches first."""
        p = self.X.shape[1]
        for width in _WIDTHS:
            if width < p:
                points = self._projected(width)
                found = self.faiss.knn(points[self._sample], points, min(len(points), 12 * self.k + 80))[1]
                # What all points in this space do not tell, codes of them do not either.
                if self._share(closest_found(self.X, self._sample, found, self.k)[1]) >= RECALL:
                    yield points, f"PQ{width}x4fs"
                    yield points, "Flat"
        if p <= max(_WIDTHS) or not sparse.issparse(self.X):
            points = self._centred()
            if p <= max(_WIDTHS):
                yield points, f"PQ{p}x4fs"
            yield points, "Flat"

    def _centred(self) -> Any:
        """All features, about 0 and within [-1, 1], for float32 to hold them."""
        mean = np.asarray(self.X.mean(axis=0, dtype=np.float64)).ravel()
        points = np.empty(self.X.shape, dtype=np.float32)
        largest = max(float(np.abs(block - mean).max()) for _, block in self._blocks()) or 1.0
        for part, block in self._blocks():
            points[part] = (block - mean) / largest
        return points

    def _projected(self, width: int) -> Any:
        """Leading components of the points, small enough for float32 to hold them."""
        n, p = self.X.shape
        size = int(np.clip(_SVD_CELLS // p, 2 * width, _SVD_ROWS))
        some = np.sort(np.random.default_rng(self.seed).choice(n, min(n, size), replace=False))
        sample = self.X[some].astype(np.float64)
        mean = None if sparse.issparse(sample) else sample.mean(axis=0)
        largest = max(float(abs(block).max()) for _, block in self._blocks(dense=False)) or 1.0
        sample = (sample if mean is None else sample - mean) / largest
        basis = randomized_svd(sample, width, n_iter=2, random_state=self.seed)[2].T
        points = np.empty((n, width), dtype=np.float32)
        for part, block in self._blocks(dense=False):
            points[part] = ((block if mean is None else block - mean) / largest) @ basis
        return points

    def _blocks(self, dense: bool = True) -> Iterator[tuple[slice, Any]]:
        """Points, some at a time."""
        n, p = self.X.shape
        size = max(1, min(_BLOCK, _SVD_CELLS // p))
        for first in range(0, n, size):
            part = slice(first, first + size)
            block = self.X[part]
            yield part, block.toarray() if dense and sparse.issparse(block) else block

    def _build(self, points: Any, coding: str) -> None:
        index = self.faiss.index_factory(points.shape[1], f"IVF{self.n_cells},{coding}")
        index.cp.max_points_per_centroid, index.cp.seed = _PER_CELL, self.seed
        for settings in [index.cp, *([index.pq.cp] if coding != "Flat" else [])]:
            settings.niter, settings.min_points_per_centroid = _TURNS, 1  # faiss would print a warning of few points
        index.train(points)
        for first in range(0, len(points), _BLOCK):
            index.add(points[first : first + _BLOCK])
        self._points, self._index = points, index


def setup_seconds(n: int, p: int) -> float:
    """Rough seconds of one thread for the index of approximate neighbours of n points with p features."""
    cells, width = _cells(n), min(p, _WIDTHS[0])
    products = _TURNS * _PER_CELL * cells**2 + n * cells + (n * p if p > width else 0)
    return width * (5e-11 * products + 1.2e-7 * n)


def search_seconds(n: int, p: int, cells: int = _USUAL, candidates: int = 50, size: int = _WIDTHS[0]) -> float:
    """Rough seconds of one thread for approximate neighbours of n points with p features and codes of `size`."""
    codes = (1.5e-9 + 5e-11 * size) * n * min(1.0, cells / _cells(n))
    return n * (1e-10 * _cells(n) * min(p, size) + codes + candidates * (1e-8 + 7e-10 * p))


def _cells(n: int) -> int:
    return max(1, min(round(2 * np.sqrt(n)), n // 8))


def _ladder(most: int) -> Iterator[int]:
    """Numbers that grow by a third or a half: 1, 2, 3, 4, 6, 8, 12, ..., `most`."""
    size = 1
    while size < most:
        yield size
        if size > 1 and size + size // 2 < most:
            yield size + size // 2
        size *= 2
    yield most
