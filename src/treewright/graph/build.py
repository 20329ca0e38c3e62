"""From points to a graph in one call."""

from __future__ import annotations

import warnings
from os import PathLike
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from treewright.budget import Budget
from treewright.graph.affinity import affinity_graph
from treewright.graph.cache import FoundGraph, cached_graph
from treewright.graph.neighbors import nearest_neighbors

__all__ = ["find_graph", "neighbor_graph"]


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
        Folder that keeps the graph for the next time; see :func:`cached_graph`. One that was cut short is not kept.
    budget : Budget or None
        Ends the search for neighbours, see :func:`nearest_neighbors`; a warning says so.

    Returns
    -------
    csr_array of shape (n, n)
        Symmetric affinities, degrees about 1.

    Examples
    --------
    >>> import numpy as np
    >>> W = neighbor_graph(np.random.default_rng(0).random((50, 2)), n_neighbors=8, perplexity=4)
    >>> W.shape, bool(np.isclose(W.sum(), 50))
    ((50, 50), True)
    """
    found = find_graph(X, n_neighbors, perplexity, mutual, method, n_jobs, seed, cache, budget)
    if found.note:
        warnings.warn(f"the graph is not complete: {found.note}", ConvergenceWarning, stacklevel=2)
    return found.W


def find_graph(
    X: Any,
    n_neighbors: int = 10,
    perplexity: float = 5.0,
    mutual: bool = False,
    method: str = "auto",
    n_jobs: int = 1,
    seed: int = 0,
    cache: str | PathLike[str] | None = None,
    budget: Budget | None = None,
) -> FoundGraph:
    """As :func:`neighbor_graph`, but what a budget cut short is part of the result.

    Examples
    --------
    >>> import numpy as np
    >>> found = find_graph(np.random.default_rng(0).random((50, 2)), budget=Budget(60.0))
    >>> found.W.shape, found.searched, found.note
    ((50, 50), 1.0, '')
    """

    def make() -> FoundGraph:
        near = nearest_neighbors(X, n_neighbors, method, n_jobs, seed, budget)
        return FoundGraph(affinity_graph(near, perplexity, mutual), near.searched, near.note)

    if cache is None:
        return make()
    settings = {"n_neighbors": int(n_neighbors), "perplexity": float(perplexity), "mutual": bool(mutual)}
    return cached_graph(cache, X, make, **settings, method=method, seed=int(seed))
