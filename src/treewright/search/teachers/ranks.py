"""Ranks of millions of numbers among some that are sorted."""

from __future__ import annotations

import numpy as np

from treewright.arrays import FloatArray, IntArray
from treewright.compiled import njit

__all__ = ["ranks_among"]

_BUCKETS = 4096
"""Ranges of equal width, by which a number is looked up."""
_FEW = 5000
"""Up to so many numbers do not pay for the second that numba takes to begin."""


def ranks_among(known: FloatArray, values: FloatArray) -> FloatArray:
    """Share of sorted numbers that are below each value, half of those that are equal counted.

    Examples
    --------
    >>> ranks_among(np.array([1.0, 2.0, 2.0, 4.0]), np.array([0.0, 2.0, 3.0])).tolist()
    [0.0, 0.5, 0.75]
    """
    if not len(known):
        return np.zeros(len(values))
    if len(values) <= _FEW:
        below, upto = np.searchsorted(known, values), np.searchsorted(known, values, side="right")
        return np.asarray((below + upto) / (2.0 * len(known)))
    starts = np.flatnonzero(np.append(True, known[1:] != known[:-1]))
    distinct = np.ascontiguousarray(known[starts])
    counts = _ranks(distinct, np.append(starts, len(known)), np.ascontiguousarray(values))
    return np.asarray(counts / (2.0 * len(known)))


@njit(cache=True, nogil=True)
def _ranks(known: FloatArray, starts: IntArray, values: FloatArray) -> FloatArray:
    """Twice how many are below, and how many are equal, of distinct sorted numbers that stand for several."""
    n, low, width = len(known), known[0], known[-1] - known[0]
    scale = _BUCKETS / width if width > 0 else 0.0
    several = 0 < scale < np.inf  # otherwise all are in one bucket
    first = np.zeros(_BUCKETS + 2, dtype=np.int64)  # how many are in the buckets before
    for value in known:
        first[(min(int((value - low) * scale), _BUCKETS) if several else 0) + 1] += 1
    for b in range(_BUCKETS + 1):
        first[b + 1] += first[b]
    ranks = np.empty(len(values))
    for i in range(len(values)):
        value = values[i]
        if value < low:
            ranks[i] = 0.0
        elif not value <= known[-1]:
            ranks[i] = 2.0 * starts[n]
        else:
            bucket = min(int((value - low) * scale), _BUCKETS) if several else 0
            a, b = first[bucket], first[bucket + 1]
            while a < b:
                middle = (a + b) // 2
                if known[middle] < value:
                    a = middle + 1
                else:
                    b = middle
            # the next one may be in a later bucket, where it is the first
            equal = a < n and known[a] == value
            ranks[i] = starts[a] + (starts[a + 1] if equal else starts[a])
    return ranks
