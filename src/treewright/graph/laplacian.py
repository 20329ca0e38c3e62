"""Graphs as sparse arrays: checked, cut into components, and their Laplacians."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from treewright.core.arrays import FloatArray, IntArray
from treewright.exceptions import InvalidInputError

__all__ = ["check_graph", "components", "degrees", "laplacian"]

_ROUNDING = 1e-6
"""Largest difference of the two weights of an edge, relative to the largest weight: graphs may come in float32."""


def check_graph(graph: Any, n: int) -> Any:
    """Graph given by the user, as a symmetric sparse array of float64.

    Parameters
    ----------
    graph : sparse array or array-like of shape (n, n)
        Weights of the edges between points: finite, not negative, the same in both directions. Weights on the diagonal
        are dropped.
    n : int
        Number of points.

    Returns
    -------
    csr_array of shape (n, n)
        A new array with sorted rows, a diagonal of zeros and no stored zeros.

    Raises
    ------
    InvalidInputError
        The graph cannot be used; the text says which value is wrong.

    Examples
    --------
    >>> check_graph([[5.0, 1.0], [1.0, 0.0]], 2).toarray().tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    try:
        W = sparse.coo_array(graph if sparse.issparse(graph) else np.asarray(graph, dtype=np.float64))
        W = W.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"graph is not a table of numbers ({error}); give an n x n array of weights") from error
    if W.shape != (n, n):
        raise InvalidInputError(f"graph has shape {W.shape}, X has {n} rows; give weights of shape ({n}, {n})")
    for bad, what in ((~np.isfinite(W.data), "must be finite"), (W.data < 0, "must not be negative")):
        if bad.any():
            first = int(np.argmax(bad))
            place = f"graph[{W.row[first]}, {W.col[first]}]"
            raise InvalidInputError(f"{place} is {W.data[first]}; weights of edges {what}")
    edge = (W.row != W.col) & (W.data > 0)
    kept = sparse.csr_array((W.data[edge], (W.row[edge], W.col[edge])), shape=(n, n))
    kept.sum_duplicates()
    return _symmetric(kept)


def _symmetric(W: Any) -> Any:
    """Refuse a graph with one-way edges; even out rounding."""
    back = W.T.tocsr()
    apart = abs(W - back)
    if apart.nnz:
        worst = int(np.argmax(apart.data))
        if apart.data[worst] > _ROUNDING * W.data.max():
            row = int(np.searchsorted(apart.indptr, worst, side="right")) - 1
            column = int(apart.indices[worst])
            raise InvalidInputError(
                f"graph is not symmetric: graph[{row}, {column}] is {W[row, column]}, graph[{column}, {row}] is "
                f"{W[column, row]}; give (graph + graph.T) / 2"
            )
        W = (W + back) * 0.5
    W.sort_indices()
    return W


def degrees(W: Any) -> FloatArray:
    """Sum of the weights of a graph at each point."""
    return np.asarray(W.sum(axis=1), dtype=np.float64).ravel()


def laplacian(W: Any) -> Any:
    r"""Laplacian of a graph, degrees minus weights.

    Its quadratic form is the roughness of values on the points,
    :math:`z^\top L z = \tfrac12 \sum_{nm} w_{nm} (z_n - z_m)^2`.

    Examples
    --------
    >>> laplacian(sparse.csr_array([[0.0, 2.0], [2.0, 0.0]])).toarray().tolist()
    [[2.0, -2.0], [-2.0, 2.0]]
    """
    return sparse.csr_array(sparse.diags_array(degrees(W), format="csr") - W)


def components(W: Any) -> IntArray:
    """Number of the connected component of a graph that each point is in, from 0 on.

    Examples
    --------
    >>> components(sparse.csr_array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])).tolist()
    [0, 0, 1]
    """
    return np.asarray(connected_components(W, directed=False)[1], dtype=np.int64)
