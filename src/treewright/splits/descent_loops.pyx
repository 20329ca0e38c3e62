"""Compiled loops of tree alternating optimization: walks of points down a tree, and coordinate descent.

Sums run in the order of the features, without reassociation: a point has the same position along a normal in every one
of these loops, for dense and for sparse points.
"""

from cython cimport floating
from libc.stdint cimport int32_t, int64_t, uint8_t

import numpy as np

ctypedef fused index:
    int32_t
    int64_t


cdef inline double _level(
    const floating[:, ::1] X,
    Py_ssize_t row,
    const int64_t[::1] used,
    const double[::1] weight,
    Py_ssize_t start,
    Py_ssize_t end,
) noexcept nogil:
    """Position of a point along a normal whose terms are those of some positions."""
    cdef double level = 0.0
    cdef Py_ssize_t position
    for position in range(start, end):
        level += weight[position] * X[row, used[position]]
    return level


def walk_dense(
    const floating[:, ::1] X,
    const int64_t[::1] rows,
    int64_t[::1] node,
    const int64_t[::1] left,
    const int64_t[::1] right,
    const int64_t[::1] starts,
    const int64_t[::1] used,
    const double[::1] weight,
    const double[::1] cut,
):
    """Move ``node[k]``, where point ``rows[k]`` enters, to the leaf that it reaches.

    Normals are in compressed rows: node i uses the features ``used[starts[i]:starts[i + 1]]``.
    """
    cdef Py_ssize_t k, at
    with nogil:
        for k in range(rows.shape[0]):
            at = node[k]
            while left[at] >= 0:
                level = _level(X, rows[k], used, weight, starts[at], starts[at + 1])
                at = left[at] if level <= cut[at] else right[at]
            node[k] = at


def walk_mixed(
    const floating[:, ::1] X,
    const int64_t[::1] rows,
    int64_t[::1] node,
    const int64_t[::1] left,
    const int64_t[::1] right,
    const int64_t[::1] starts,
    const int64_t[::1] used,
    const double[::1] weight,
    const double[::1] cut,
    const int64_t[::1] category,
    const uint8_t[:, ::1] listed,
    const uint8_t[::1] missing_left,
):
    """As :func:`walk_dense`, where nodes may have subsets of categories and points may lack values, which are NaN."""
    cdef Py_ssize_t k, at
    cdef double level
    cdef bint goes_left
    with nogil:
        for k in range(rows.shape[0]):
            at = node[k]
            while left[at] >= 0:
                if category[at] >= 0:
                    level = X[rows[k], category[at]]
                    goes_left = -1.0 < level < listed.shape[1] and listed[at, <Py_ssize_t> level]
                else:
                    level = _level(X, rows[k], used, weight, starts[at], starts[at + 1])
                    goes_left = level <= cut[at]
                if level != level:  # a value that the split uses is missing
                    goes_left = missing_left[at]
                at = left[at] if goes_left else right[at]
            node[k] = at


def walk_sparse(
    const floating[::1] data,
    const index[::1] columns,
    const index[::1] begins,
    const int64_t[::1] rows,
    int64_t[::1] node,
    const int64_t[::1] left,
    const int64_t[::1] right,
    const double[:, ::1] normals,
    const double[::1] cut,
):
    """As :func:`walk_dense`, for points in compressed rows and normals in a dense table."""
    cdef Py_ssize_t k, at, position
    cdef double level
    with nogil:
        for k in range(rows.shape[0]):
            at = node[k]
            while left[at] >= 0:
                level = 0.0
                for position in range(begins[rows[k]], begins[rows[k] + 1]):
                    level += normals[at, columns[position]] * data[position]
                at = left[at] if level <= cut[at] else right[at]
            node[k] = at


def levels_dense(
    const floating[:, ::1] X, const int64_t[::1] rows, const int64_t[::1] used, const double[::1] weight
):
    """Positions of points along one normal, given by the features it uses."""
    found = np.empty(rows.shape[0])
    cdef double[::1] level = found
    cdef Py_ssize_t k
    with nogil:
        for k in range(rows.shape[0]):
            level[k] = _level(X, rows[k], used, weight, 0, used.shape[0])
    return found


def levels_sparse(
    const floating[::1] data,
    const index[::1] columns,
    const index[::1] begins,
    const int64_t[::1] rows,
    const double[::1] normal,
):
    """As :func:`levels_dense`, for points in compressed rows."""
    found = np.zeros(rows.shape[0])
    cdef double[::1] level = found
    cdef Py_ssize_t k, position
    with nogil:
        for k in range(rows.shape[0]):
            for position in range(begins[rows[k]], begins[rows[k] + 1]):
                level[k] += normal[columns[position]] * data[position]
    return found


def descend(
    const double[:, ::1] curvature, gradient, const double[::1] weights, double alpha, int64_t passes, double tolerance
):
    r"""Minimize :math:`g^\top d + \tfrac12 d^\top H d + \alpha \lVert w + d \rVert_1` by coordinate descent.

    Ends after so many passes, or when a pass improves the quadratic by less than `tolerance` in every coordinate.
    """
    found = np.zeros(len(gradient))
    cdef double[::1] step = found, slope = gradient.copy()
    with nogil:
        descend_from(curvature, slope, weights, step, step.shape[0], alpha, passes, tolerance)
    return found
