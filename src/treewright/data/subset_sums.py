"""Counts that no selection of merged rows can have."""

from __future__ import annotations

import numpy as np

from treewright.arrays import FloatArray, IntArray

__all__ = ["unreachable_totals"]

_POINTS = 20_000
"""Most points whose sums are enumerated."""


def unreachable_totals(size: FloatArray, low: IntArray, high: IntArray) -> float:
    """Rows that must miss the totals because points count with all their rows or not at all.

    The rows of a class in a group are a subset sum of `size`, so the deviation of the group is at least the distance
    of the nearest subset sum to ``[low, high]``, for each class.

    Parameters
    ----------
    size : ndarray of shape (n_points, n_groups)
        Rows of each group that a point stands for.
    low, high : ndarray of int, shape (n_groups, n_classes)
        Allowed counts.

    Returns
    -------
    float
        A bound of the sum of the deviations; 0 where there are too many points to tell.

    Examples
    --------
    >>> unreachable_totals(np.array([[4.0], [7.0]]), np.array([[0, 5]]), np.array([[11, 5]]))
    1.0
    """
    if len(size) > _POINTS or size.sum(axis=0).max(initial=0) > 50 * _POINTS:
        return 0.0
    bound = 0.0
    for g in range(size.shape[1]):
        sums = 1
        for count in size[:, g][size[:, g] > 0].tolist():
            sums |= sums << int(count)
        text = np.frombuffer(bin(sums)[2:].encode(), dtype=np.uint8)[::-1]
        reachable = np.flatnonzero(text == ord("1"))[:, None]
        away = np.maximum(np.maximum(reachable - high[g], low[g] - reachable), 0)
        bound += float(away.min(axis=0).max())
    return bound
