"""Equal rows found, in an order that depends on their content and not on how they are listed.

Missing values (NaN) are equal to one another here, and come after all numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from treewright.arrays import IntArray

__all__ = ["distinct_rows", "sorted_distinct_rows"]


def sorted_distinct_rows(X: NDArray[np.floating[Any]]) -> tuple[IntArray, IntArray]:
    """Find the distinct rows of a table and sort them; what :func:`distinct_rows` does for large ones in less time.

    Examples
    --------
    >>> first, inverse = sorted_distinct_rows(np.array([[1.0, 2.0], [0.0, 5.0], [1.0, 2.0]]))
    >>> first.tolist(), inverse.tolist()
    ([1, 0], [1, 0, 1])
    """
    _, first, inverse = np.unique(_comparable(X), axis=0, return_index=True, return_inverse=True)
    return first, inverse.reshape(-1)


def distinct_rows(X: NDArray[np.floating[Any]]) -> tuple[IntArray, IntArray]:
    """Find the distinct rows of a large table, in an order that depends on their content alone.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        Rows, float64 or float32, without infinite values.

    Returns
    -------
    first : ndarray of int, shape (n_distinct,)
        A row of X for each distinct one.
    inverse : ndarray of int, shape (n_rows,)
        Place of each row among the distinct ones.

    Examples
    --------
    >>> first, inverse = distinct_rows(np.array([[1.0, 2.0], [0.0, 5.0], [1.0, 2.0]]))
    >>> len(first), bool(inverse[0] == inverse[2] != inverse[1])
    (2, True)
    """
    X = _comparable(X)
    # Whole numbers add up alike in any order.
    bits = np.ascontiguousarray(X).view(np.uint32 if X.dtype.itemsize == 4 else np.uint64)
    odd: Any = np.random.default_rng(0).integers(2**63, size=bits.shape[1], dtype=np.uint64) | np.uint64(1)
    key = np.zeros(len(X), dtype=np.uint64)
    for j in range(bits.shape[1]):
        factor = odd[j]
        mixed = (bits[:, j].astype(np.uint64) + factor) * np.uint64(0x9E3779B97F4A7C15)
        key += (mixed ^ (mixed >> np.uint64(29))) * factor
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    if not np.array_equal(X[first[inverse]], X):  # two different rows with one key: as good as impossible
        return sorted_distinct_rows(X)
    return first, inverse.reshape(-1)


def _comparable(X: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    """The table with equal bytes where values are equal: no -0.0, and infinity, which no value is, for all NaN."""
    table = X + X.dtype.type(0)
    if np.isnan(table.min(initial=0.0)):
        table[np.isnan(table)] = np.inf
    return table
