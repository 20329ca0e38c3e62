"""Compiled loops of tree alternating optimization: walks of points down a tree, and coordinate descent.

Importing this module imports numba, so it is imported where a fit needs it and not before. Sums run in the order of the
features, without reassociation: a point has the same position along a normal in every one of these loops, for dense and
for sparse points.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from treewright.core.compiled import njit

__all__ = ["descend", "levels_dense", "levels_sparse", "walk_dense", "walk_mixed", "walk_sparse"]


@njit(
    "f4** i8* i8* ro:i8* ro:i8* i8* i8* f8* f8*",
    "f8** i8* i8* ro:i8* ro:i8* i8* i8* f8* f8*",
    nogil=True,
)
def walk_dense(
    X: Any, rows: Any, node: Any, left: Any, right: Any, starts: Any, used: Any, weight: Any, cut: Any
) -> None:
    """Move ``node[k]``, where point ``rows[k]`` enters, to the leaf that it reaches.

    Normals are in compressed rows: node i uses the features ``used[starts[i]:starts[i + 1]]``.
    """
    for k in range(len(rows)):
        row, at = rows[k], node[k]
        while left[at] >= 0:
            level = 0.0
            for position in range(starts[at], starts[at + 1]):
                level += weight[position] * X[row, used[position]]
            at = left[at] if level <= cut[at] else right[at]
        node[k] = at


@njit("f8** i8* i8* ro:i8* ro:i8* i8* i8* f8* f8* i8* b1** b1*", nogil=True)
def walk_mixed(
    X: Any,
    rows: Any,
    node: Any,
    left: Any,
    right: Any,
    starts: Any,
    used: Any,
    weight: Any,
    cut: Any,
    category: Any,
    listed: Any,
    missing_left: Any,
) -> None:
    """As :func:`walk_dense`, where nodes may have subsets of categories and points may lack values, which are NaN."""
    for k in range(len(rows)):
        row, at = rows[k], node[k]
        while left[at] >= 0:
            if category[at] >= 0:
                level = X[row, category[at]]
                code = int(level) if level == level else -1
                goes_left = 0 <= code < listed.shape[1] and listed[at, code]
            else:
                level = 0.0
                for position in range(starts[at], starts[at + 1]):
                    level += weight[position] * X[row, used[position]]
                goes_left = level <= cut[at]
            if level != level:  # a value that the split uses is missing
                goes_left = missing_left[at]
            at = left[at] if goes_left else right[at]
        node[k] = at


@njit("f4* i4* i4* i8* i8* ro:i8* ro:i8* f8** f8*", nogil=True)
def walk_sparse(
    data: Any, columns: Any, begins: Any, rows: Any, node: Any, left: Any, right: Any, normals: Any, cut: Any
) -> None:
    """As :func:`walk_dense`, for points in compressed rows and normals in a dense table."""
    for k in range(len(rows)):
        row, at = rows[k], node[k]
        while left[at] >= 0:
            level = 0.0
            for position in range(begins[row], begins[row + 1]):
                level += normals[at, columns[position]] * data[position]
            at = left[at] if level <= cut[at] else right[at]
        node[k] = at


@njit(
    "f4** i8* i8* f8*",
    "f8** i8* i8* f8*",
    nogil=True,
)
def levels_dense(X: Any, rows: Any, used: Any, weight: Any) -> Any:
    """Positions of points along one normal, given by the features it uses."""
    level = np.zeros(len(rows))
    for k in range(len(rows)):
        for position in range(len(used)):
            level[k] += weight[position] * X[rows[k], used[position]]
    return level


@njit("f4* i4* i4* i8* f8*", nogil=True)
def levels_sparse(data: Any, columns: Any, begins: Any, rows: Any, normal: Any) -> Any:
    """As :func:`levels_dense`, for points in compressed rows."""
    level = np.zeros(len(rows))
    for k in range(len(rows)):
        for position in range(begins[rows[k]], begins[rows[k] + 1]):
            level[k] += normal[columns[position]] * data[position]
    return level


@njit("f8** f8* f8* f8 i8 f8", nogil=True)
def descend(curvature: Any, gradient: Any, weights: Any, alpha: float, passes: int, tolerance: float) -> Any:
    r"""Minimize :math:`g^\top d + \tfrac12 d^\top H d + \alpha \lVert w + d \rVert_1` by coordinate descent.

    Ends after so many passes, or when a pass improves the quadratic by less than `tolerance` in every coordinate.
    """
    n = len(gradient)
    step, slope = np.zeros(n), gradient.copy()
    for _ in range(passes):
        largest = 0.0
        for j in range(n):
            bend = curvature[j, j]
            if bend <= 0.0:
                continue
            here = weights[j] + step[j]
            goal = here - slope[j] / bend
            shrink = alpha / bend
            moved = (goal - shrink if goal > shrink else goal + shrink if goal < -shrink else 0.0) - here
            if moved != 0.0:
                step[j] += moved
                for i in range(n):
                    slope[i] += moved * curvature[j, i]
                largest = max(largest, bend * moved * moved)
        if largest <= tolerance:
            break
    return step
