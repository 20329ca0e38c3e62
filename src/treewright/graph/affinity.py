r"""Gaussian affinities whose width follows the density: each point has about so many neighbours that count.

A point spreads the weight 1 over its neighbours, :math:`p_{ij} = e^{-\beta_i d_{ij}^2} / \sum_l e^{-\beta_i d_{il}^2}`,
with :math:`\beta_i` such that the exponential of the entropy of the row is the perplexity. The graph is
:math:`(P + P^\top) / 2`. So degrees are about 1 whatever the units of the features, and a price of differences along
edges means the same in dense and in thin regions.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from treewright.core.arrays import FloatArray
from treewright.core.budget import Budget
from treewright.exceptions import InvalidInputError
from treewright.graph.cache import FoundGraph, cached_graph
from treewright.graph.edge_loops import affinities
from treewright.graph.neighbors import Neighbors, nearest_neighbors

__all__ = ["affinity_graph", "perplexity_affinities", "GraphSettings", "neighbor_graph"]

_TOLERANCE = 1e-10
"""Largest error of the entropy of a row."""

_LEAST = 1e-9
"""Affinities below this are no edges: they would join components by less than labels are solved for."""


def perplexity_affinities(distance: FloatArray, perplexity: float) -> FloatArray:
    """Gaussian affinities of points to their neighbours, calibrated to a perplexity.

    Parameters
    ----------
    distance : ndarray of shape (n, k)
        Distances to neighbours, finite and not negative.
    perplexity : float
        Effective number of neighbours, at least 1. From k on, all k neighbours count the same. Where more neighbours
        than that are equally near, the nearest ones share the row.

    Returns
    -------
    ndarray of shape (n, k)
        Rows that sum to 1.

    Examples
    --------
    >>> row = perplexity_affinities(np.array([[1.0, 2.0, 3.0, 4.0]]), 2.0)[0]
    >>> row.round(3).tolist()
    [0.734, 0.231, 0.034, 0.002]
    >>> entropy = -(row * np.log(row)).sum()
    >>> bool(np.isclose(np.exp(entropy), 2.0))
    True
    """
    if not perplexity >= 1:
        raise InvalidInputError(f"perplexity={perplexity!r}; it is a number of neighbours, at least 1")
    distance = np.ascontiguousarray(distance, dtype=np.float64)
    if not (np.isfinite(distance).all() and np.all(distance >= 0)):
        raise InvalidInputError("distances must be finite and not negative")
    affinity = np.empty_like(distance)
    if affinity.size:
        affinities(distance, float(np.log(perplexity)), _TOLERANCE, affinity)
    return affinity


def affinity_graph(neighbors: Neighbors, perplexity: float, mutual: bool = False) -> Any:
    """Symmetric affinities of points, as a sparse array.

    Parameters
    ----------
    neighbors : Neighbors
        Nearest neighbours of every point. A point that was not searched for has the edges that others have to it.
    perplexity : float
        See :func:`perplexity_affinities`.
    mutual : bool
        Whether only edges between points that are neighbours of each other are kept. Degrees are smaller then.

    Returns
    -------
    csr_array of shape (n, n)
        (P + P') / 2 with sorted rows, a diagonal of zeros and no stored zeros. Affinities below 1e-9 are left out.

    Examples
    --------
    >>> from treewright.graph import nearest_neighbors
    >>> near = nearest_neighbors(np.array([[0.0], [1.0], [3.0], [7.0]]), 1)
    >>> affinity_graph(near, 1.0).toarray().tolist()
    [[0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.5, 0.0], [0.0, 0.5, 0.0, 0.5], [0.0, 0.0, 0.5, 0.0]]
    >>> affinity_graph(near, 1.0, mutual=True).toarray()[1].tolist()
    [1.0, 0.0, 0.0, 0.0]
    """
    n, k = neighbors.index.shape
    kind = np.int32 if n * max(k, 1) < 2**30 else np.int64  # narrow numbers halve what a product reads
    known = np.all(neighbors.index >= 0, axis=1)
    index, distance = neighbors.index, neighbors.distance
    if not known.all():
        index, distance = index[known], distance[known]
    affinity = perplexity_affinities(distance, perplexity)
    affinity[affinity < _LEAST] = 0.0
    begins = np.concatenate([np.zeros(1, dtype=kind), np.cumsum(known * k, dtype=kind)])
    one_way = sparse.csr_array((affinity.ravel(), index.ravel().astype(kind), begins), shape=(n, n))
    one_way.eliminate_zeros()
    one_way.sort_indices()
    other_way = one_way.T.tocsr()
    graph = (one_way + other_way) * 0.5
    if mutual:
        there, back = one_way.copy(), other_way.copy()
        there.data[:], back.data[:] = 1.0, 1.0
        graph = graph.multiply(there).multiply(back).tocsr()
    graph.sort_indices()
    return graph


@dataclass(frozen=True)
class GraphSettings:
    """Which neighbours are joined, and how closely; see :class:`treewright.LapTAOClassifier`.

    Examples
    --------
    >>> found = GraphSettings().search(np.random.default_rng(0).random((50, 2)), budget=Budget(60.0))
    >>> found.W.shape, found.searched, found.note
    ((50, 50), 1.0, '')
    """

    n_neighbors: int = 10
    perplexity: float = 5.0
    neighbors: str = "auto"
    mutual: bool = False
    graph_cache: str | PathLike[str] | None = None

    def search(self, X: Any, threads: int = 1, seed: int = 0, budget: Budget | None = None) -> FoundGraph:
        """Graph of points whose features are scaled as distances should see them.

        In small tables a point has all others as neighbours, and the perplexity is at most their number. What is cut
        short by the budget is not kept in the cache.
        """
        others = max(1, X.shape[0] - 1)
        near, perplexity = min(int(self.n_neighbors), others), min(float(self.perplexity), float(others))

        def make() -> FoundGraph:
            found = nearest_neighbors(X, near, self.neighbors, threads, seed, budget)
            return FoundGraph(affinity_graph(found, perplexity, bool(self.mutual)), found.searched, found.note)

        if self.graph_cache is None:
            return make()
        key = {"n_neighbors": near, "perplexity": perplexity, "mutual": bool(self.mutual), "method": self.neighbors}
        return cached_graph(self.graph_cache, X, make, **key, seed=int(seed))


def neighbor_graph(
    X: Any,
    n_neighbors: int = 10,
    perplexity: float = 5.0,
    mutual: bool = False,
    method: str = "auto",
    n_jobs: int = 1,
    seed: int = 0,
    cache: str | PathLike[str] | None = None,
    budget: Budget | None = None,
) -> Any:
    """Graph of nearest neighbours with Gaussian affinities.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, n_features)
        Points, their features scaled as distances should see them.
    n_neighbors : int
        Neighbours of a point.
    perplexity : float
        Effective number of neighbours, at least 1; see :func:`perplexity_affinities`.
    mutual : bool
        Whether only edges between points that are neighbours of each other are kept.
    method : {"auto", "exact", "approximate"}
        How neighbours are found; see :func:`nearest_neighbors`.
    n_jobs : int
        Threads. The graph does not depend on it.
    seed : int
        Seed of approximate neighbours.
    cache : path or None
        Folder that keeps the graph for the next time; see :func:`cached_graph`.
    budget : Budget or None
        Ends the search for neighbours, see :func:`nearest_neighbors`; a warning says so.

    Returns
    -------
    csr_array of shape (n, n)
        Symmetric affinities, degrees about 1.

    Examples
    --------
    >>> W = neighbor_graph(np.random.default_rng(0).random((50, 2)), n_neighbors=8, perplexity=4)
    >>> W.shape, bool(np.isclose(W.sum(), 50))
    ((50, 50), True)
    """
    found = GraphSettings(n_neighbors, perplexity, method, mutual, cache).search(X, n_jobs, seed, budget)
    if found.note:
        warnings.warn(f"the graph is not complete: {found.note}", ConvergenceWarning, stacklevel=2)
    return found.W
