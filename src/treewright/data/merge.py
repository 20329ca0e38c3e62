"""Equal rows merged and sorted, so that a fit depends on the data and not on how it is listed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from treewright.arrays import FloatArray, IntArray

__all__ = ["MergedRows", "distinct_rows", "merge_rows"]


class MergedRows(NamedTuple):
    """Distinct rows in lexicographic order.

    Attributes
    ----------
    X, y : ndarray
        Features and class number (-1 unlabelled) of the distinct rows.
    weight : ndarray
        Sum of the weights of the rows that were merged.
    size : ndarray
        Number of rows that were merged.
    inverse : ndarray of int
        Place of each given row among the distinct ones, -1 for a row of weight zero, which is left out.
    """

    X: FloatArray
    y: IntArray
    weight: FloatArray
    size: FloatArray
    inverse: IntArray


def merge_rows(X: FloatArray, y: IntArray, weight: FloatArray) -> MergedRows:
    """Merge rows equal in features and label, drop those without weight, and sort.

    A weight of 2 is then the same as listing a row twice, a weight of 0 the same as leaving it out, and any
    permutation of the rows gives the same data.

    Examples
    --------
    >>> X, y = np.array([[2.0], [1.0], [2.0]]), np.array([0, 1, 0])
    >>> merged = merge_rows(X, y, np.array([1.0, 1.0, 0.5]))
    >>> merged.X.ravel().tolist(), merged.weight.tolist(), merged.inverse.tolist()
    ([1.0, 2.0], [1.0, 1.5], [1, 0, 1])
    """
    kept = np.flatnonzero(weight > 0)
    # Adding 0 turns -0.0 into 0.0, which are equal numbers but not equal bytes.
    table = np.column_stack([X[kept], y[kept]]) + 0.0
    distinct, place = np.unique(table, axis=0, return_inverse=True)
    place = place.reshape(-1)
    inverse = np.full(len(X), -1, dtype=np.int64)
    inverse[kept] = place
    return MergedRows(
        X=np.ascontiguousarray(distinct[:, :-1]),
        y=distinct[:, -1].astype(np.int64),
        weight=np.asarray(np.bincount(place, weights=weight[kept], minlength=len(distinct)), dtype=np.float64),
        size=np.bincount(place, minlength=len(distinct)).astype(np.float64),
        inverse=inverse,
    )


def distinct_rows(X: NDArray[np.floating[Any]]) -> tuple[IntArray, IntArray]:
    """Find the distinct rows of a large table, in an order that depends on their content alone.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        Rows, float64 or float32, without NaN.

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
    # Whole numbers add up alike in any order; adding 0 turns -0.0 into 0.0.
    bits = np.ascontiguousarray(X + X.dtype.type(0)).view(np.uint32 if X.dtype.itemsize == 4 else np.uint64)
    odd: Any = np.random.default_rng(0).integers(2**63, size=bits.shape[1], dtype=np.uint64) | np.uint64(1)
    key = np.zeros(len(X), dtype=np.uint64)
    for j in range(bits.shape[1]):
        factor = odd[j]
        mixed = (bits[:, j].astype(np.uint64) + factor) * np.uint64(0x9E3779B97F4A7C15)
        key += (mixed ^ (mixed >> np.uint64(29))) * factor
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    if not np.array_equal(X[first[inverse]], X):  # two different rows with one key: as good as impossible
        _, first, inverse = np.unique(X + X.dtype.type(0), axis=0, return_index=True, return_inverse=True)
    return first, inverse.reshape(-1)
