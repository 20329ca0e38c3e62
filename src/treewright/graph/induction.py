"""Values of points carried over to new ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from treewright.arrays import FloatArray
from treewright.graph.affinity import perplexity_affinities

__all__ = ["nearest_mean"]


def nearest_mean(
    points: Any, values: FloatArray, rows: Any, n_neighbors: int = 10, perplexity: float = 5.0, n_jobs: int = 1
) -> FloatArray:
    """Mean of the values of the nearest points, weighted by affinity.

    Parameters
    ----------
    points : ndarray or csr_array of shape (n_points, n_features)
        Points.
    values : ndarray of shape (n_points, n_outputs)
        Their values.
    rows : ndarray or csr_array of shape (n_rows, n_features)
        New ones.
    n_neighbors, perplexity
        As for :func:`neighbor_graph`. Neighbours are exact.
    n_jobs : int
        Threads.

    Returns
    -------
    ndarray of shape (n_rows, n_outputs)
        Values of the rows.

    Examples
    --------
    >>> points = np.array([[0.0], [1.0], [9.0], [10.0]])
    >>> values = np.array([[0.0], [0.0], [1.0], [1.0]])
    >>> nearest_mean(points, values, np.array([[0.4], [9.5]]), n_neighbors=2, perplexity=2.0).tolist()
    [[0.0], [1.0]]
    """
    k = min(n_neighbors, points.shape[0])
    model = NearestNeighbors(n_neighbors=k, n_jobs=n_jobs).fit(points)
    distance, index = model.kneighbors(rows)
    share = perplexity_affinities(np.asarray(distance, dtype=np.float64), min(perplexity, float(k)))
    return np.asarray(np.einsum("ik,iko->io", share, values[index]))
