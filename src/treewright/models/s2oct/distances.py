"""How far points of S2OCT are from one another: what its constants, and the sureness of its bounds, rest on."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from treewright.core.arrays import FloatArray

__all__ = ["crowded_distances", "farthest_distances", "largest_distance"]

_EXACT_REACH, _EXACT_DISTANCE = 100_000_000, 4_000_000_000
"""Largest n * n * p for which the farthest point of each point is looked for (above, the bounding box serves), and for
which the farthest two are looked for pair by pair: a second."""


def largest_distance(X: FloatArray) -> float:
    r"""Largest Euclidean distance of two points of an S2OCT, the paper's eta.

    Points that cannot be one of the farthest two are left out first: with :math:`r_i` the distance to the middle of
    the bounding box, :math:`\lVert x_i - x_k \rVert \le r_i + r_k`. If too many remain, the diagonal of the bounding
    box is returned, which is an upper bound and not the paper's value.

    Examples
    --------
    >>> largest_distance(np.array([[0.0, 0.0], [3.0, 4.0], [1.0, 1.0]]))
    5.0
    """
    if len(X) < 2:
        return 0.0
    lowest, highest = X.min(axis=0), X.max(axis=0)
    middle = 0.5 * (lowest + highest)
    radius = _away(X, middle)
    found, at = 0.0, int(np.argmax(radius))
    for _ in range(4):  # walk to the farthest point, and on from there
        away = _away(X, X[at])
        found, at = max(found, float(away.max())), int(np.argmax(away))
    chosen = np.flatnonzero(radius + radius.max() >= found * (1 - 1e-12))
    chosen = chosen[np.argsort(-radius[chosen], kind="stable")]
    candidates, radius = X[chosen] - middle, radius[chosen]
    if len(candidates) ** 2 * X.shape[1] > _EXACT_DISTANCE:
        return float(np.linalg.norm(highest - lowest))
    square = np.einsum("ij,ij->i", candidates, candidates)
    for start in range(0, len(candidates), 2000):
        # the farthest from the middle come first, so that those which may be far from this block do too
        stop = int(np.count_nonzero(radius + radius[start] >= found * (1 - 1e-12)))
        if stop <= start:
            break
        block, others = candidates[start : start + 2000], candidates[start:stop]
        distance = square[start : start + 2000, None] + square[start:stop] - 2.0 * (block @ others.T)
        i, k = np.unravel_index(np.argmax(distance), distance.shape)
        found = max(found, float(np.linalg.norm(block[i] - candidates[start + k])))
    return found


def _away(X: FloatArray, point: FloatArray) -> FloatArray:
    """Distance of each row from a point, in blocks that fit the cache."""
    blocks = [np.linalg.norm(X[start : start + 8192] - point, axis=1) for start in range(0, len(X), 8192)]
    return np.concatenate(blocks)


def farthest_distances(X: FloatArray) -> FloatArray:
    """1-norm distance of each S2OCT point to the farthest one, or to the farthest corner of the bounding box."""
    n, p = X.shape
    if n * n * p <= _EXACT_REACH:
        blocks = [cdist(X[start : start + 1000], X, "cityblock").max(axis=1) for start in range(0, n, 1000)]
        return np.concatenate(blocks) if blocks else np.zeros(0)
    return np.asarray(np.maximum(X - X.min(axis=0), X.max(axis=0) - X).sum(axis=1))


def crowded_distances(X: FloatArray, room: float) -> FloatArray:
    """S2OCT: distance of values from the first of those of their feature that follow one another within `room`.

    Examples
    --------
    >>> crowded_distances(np.array([[0.0], [3.0], [0.2], [0.1]]), room=0.15).ravel().tolist()
    [0.0, 0.0, 0.2, 0.1]
    """
    order = np.argsort(X, axis=0, kind="stable")
    ordered = np.take_along_axis(X, order, axis=0)
    apart = np.diff(ordered, axis=0, prepend=-np.inf) >= room
    away = ordered - np.maximum.accumulate(np.where(apart, ordered, -np.inf), axis=0)
    found = np.empty_like(X)
    np.put_along_axis(found, order, away, axis=0)
    return found
