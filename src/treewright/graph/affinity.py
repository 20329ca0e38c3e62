r"""Gaussian affinities whose width follows the density: each point has about so many neighbours that count.

A point spreads the weight 1 over its neighbours, :math:`p_{ij} = e^{-\beta_i d_{ij}^2} / \sum_l e^{-\beta_i d_{il}^2}`,
with :math:`\beta_i` such that the exponential of the entropy of the row is the perplexity. The graph is
:math:`(P + P^\top) / 2`. So degrees are about 1 whatever the units of the features, and a price of differences along
edges means the same in dense and in thin regions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from treewright.arrays import FloatArray
from treewright.exceptions import InvalidInputError
from treewright.graph.neighbors import Neighbors

__all__ = ["affinity_graph", "perplexity_affinities"]

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
        from treewright.graph.kernels import affinities  # numba takes a while to import

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
