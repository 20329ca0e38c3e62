"""Constants of S2OCT: the paper's defaults and the distances that bound what splits can reach."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from treewright.arrays import FloatArray

__all__ = ["default_max_coefficient", "default_depth", "farthest", "largest_distance"]

_EXACT_REACH = 100_000_000
"""Largest n * n * p for which the farthest point of each point is looked for; above, the bounding box serves."""

_EXACT_DISTANCE = 4_000_000_000
"""Largest n * n * p for which the farthest two are looked for pair by pair: a second."""


def default_depth(n_points: int, n_classes: int = 2) -> int:
    """Depth that the paper uses: 2 below 1000 points, else 3; more where more than that many leaves have a class.

    Examples
    --------
    >>> default_depth(999), default_depth(1000), default_depth(999, n_classes=8), default_depth(999, n_classes=9)
    (2, 3, 3, 4)
    """
    return max(2 if n_points < 1000 else 3, (n_classes - 1).bit_length())


def default_max_coefficient(n_points: int, diameter: float, n_features: int) -> float:
    r"""Bound s that the paper uses: :math:`\max(s_0, 499 / (\eta \sqrt p))`, so that its M is at least 500.

    :math:`s_0` is 10 below 650 points, 20 below 1500, else 40.

    Examples
    --------
    >>> default_max_coefficient(100, diameter=2.0, n_features=4)
    124.75
    >>> default_max_coefficient(2000, diameter=100.0, n_features=4)
    40.0
    """
    least = 10.0 if n_points < 650 else 20.0 if n_points < 1500 else 40.0
    return max(least, 499.0 / (diameter * n_features**0.5)) if diameter > 0 else least


def largest_distance(X: FloatArray) -> float:
    r"""Largest Euclidean distance of two points, the paper's eta.

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
    centred = X - 0.5 * (lowest + highest)
    radius = np.linalg.norm(centred, axis=1)
    found, at = 0.0, int(np.argmax(radius))
    for _ in range(4):  # walk to the farthest point, and on from there
        away = np.linalg.norm(X - X[at], axis=1)
        found, at = max(found, float(away.max())), int(np.argmax(away))
    candidates = centred[radius + radius.max() >= found * (1 - 1e-12)]
    if len(candidates) ** 2 * X.shape[1] > _EXACT_DISTANCE:
        return float(np.linalg.norm(highest - lowest))
    square = np.einsum("ij,ij->i", candidates, candidates)
    for start in range(0, len(candidates), 2000):
        block = candidates[start : start + 2000]
        distance = square[start : start + 2000, None] + square[start:] - 2.0 * (block @ candidates[start:].T)
        i, k = np.unravel_index(np.argmax(distance), distance.shape)
        found = max(found, float(np.linalg.norm(block[i] - candidates[start + k])))
    return found


def farthest(X: FloatArray) -> FloatArray:
    """1-norm distance of each point to the farthest one, or to the farthest corner of the bounding box."""
    n, p = X.shape
    if n * n * p <= _EXACT_REACH:
        blocks = [cdist(X[start : start + 1000], X, "cityblock").max(axis=1) for start in range(0, n, 1000)]
        return np.concatenate(blocks) if blocks else np.zeros(0)
    return np.asarray(np.maximum(X - X.min(axis=0), X.max(axis=0) - X).sum(axis=1))
