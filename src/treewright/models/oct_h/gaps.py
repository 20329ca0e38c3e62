"""Points that no split with a gap can part."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from treewright.core.arrays import FloatArray, IntArray

__all__ = ["inseparable_groups"]

_CHUNK = 500_000
"""Pairs of points looked at together."""


def inseparable_groups(X: FloatArray, distance: float, max_pairs: int = 3_000_000) -> IntArray:
    r"""Group points that no OCT-H split with :math:`\lVert a \rVert_1 \le 1` and a gap of `distance` can part.

    Since :math:`|a^\top(x - x')| \le \lVert x - x' \rVert_\infty`, two points nearer than the gap go the same way at
    every node, and so does every chain of such points.

    Parameters
    ----------
    X : ndarray of shape (n_points, n_features)
        The points.
    distance : float
        The gap; points exactly this far apart are not grouped, identical ones always are.
    max_pairs : int
        Above this many pairs to look at, only points in the same cell of a grid are grouped: valid, but weaker.

    Returns
    -------
    ndarray of int, shape (n_points,)
        Group of each point, numbered by first appearance.

    Examples
    --------
    >>> inseparable_groups(np.array([[0.0], [0.5], [0.004]]), 0.005).tolist()
    [0, 1, 0]
    """
    near = max(1e-12, distance - 1e-12)  # rounding never joins what a split could part
    pairs = _near_pairs(X, near, max_pairs)
    first, second = _same_cell_pairs(X, near) if pairs is None else pairs
    links = coo_array((np.ones(len(first), dtype=bool), (first, second)), shape=(len(X),) * 2)
    component = connected_components(links, directed=False)[1]
    _, first, group = np.unique(component, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[group.reshape(-1)]


def _near_pairs(X: FloatArray, near: float, max_pairs: int) -> tuple[IntArray, IntArray] | None:
    """Pairs of points at most `near` apart, None if too many are that near in each single coordinate.

    Points are sorted along the coordinate with the fewest such pairs, and only those are looked at.
    """
    n, n_features = X.shape
    order, count = np.arange(n), np.full(n, n)
    for j in range(n_features):
        by_level = np.argsort(X[:, j], kind="stable")
        level = X[by_level, j]
        followers = np.searchsorted(level, level + near, side="right") - np.arange(n) - 1
        if followers.sum() < count.sum():
            order, count = by_level, followers
    if n_features == 1:
        count = np.minimum(count, 1)  # on a line neighbours make the chain
    if count.sum() > max_pairs:
        return None
    points = X[order]
    marks = np.arange(0, count.sum() + _CHUNK, _CHUNK)  # rows are taken together until their pairs pass a mark
    edges = np.searchsorted(np.cumsum(count), marks, side="left") + (marks > 0)
    found: list[tuple[IntArray, IntArray]] = [(np.empty(0, np.int64), np.empty(0, np.int64))]
    for begin, end in pairwise(edges):
        some = count[begin:end]
        first = np.repeat(np.arange(begin, begin + len(some)), some)
        second = first + 1 + np.arange(len(first)) - np.repeat(np.cumsum(some) - some, some)
        for j in range(n_features):
            close = np.abs(points[first, j] - points[second, j]) <= near
            first, second = first[close], second[close]
        found.append((order[first], order[second]))
    return np.concatenate([f for f, _ in found]), np.concatenate([s for _, s in found])


def _same_cell_pairs(X: FloatArray, near: float) -> tuple[IntArray, IntArray]:
    """Each point with the first one in the same cell, for grids of cells of side `near` at three positions."""
    mixer = np.random.default_rng(0).integers(1, 2**62, X.shape[1])
    first, second = [], []
    for shift in (0.0, 1 / 3, 2 / 3):
        cell = np.floor(X / near + shift).astype(np.int64)
        # Sorting one number a point is fast; where two cells have the same one, comparing tells.
        _, leader, place = np.unique(cell @ mixer, return_index=True, return_inverse=True)
        leader = leader[place.reshape(-1)]
        same = np.flatnonzero(np.all(cell == cell[leader], axis=1))
        first.append(same)
        second.append(leader[same])
    return np.concatenate(first), np.concatenate(second)
