"""Compiled loop over changes of labels."""

from libc.stdint cimport int64_t

import numpy as np


def missed_along(
    const int64_t[::1] begins,
    const int64_t[::1] groups,
    const int64_t[::1] times,
    const int64_t[:, ::1] low,
    const int64_t[:, ::1] high,
    int64_t[:, ::1] counts,
    const int64_t[::1] points,
    const int64_t[::1] old,
    const int64_t[::1] new,
):
    """Rows that would have to change class before the first change of a label and after each.

    Points have rows as in :func:`change_label`.
    `counts`, the rows of each group and class before the first change, are overwritten.
    """
    found = np.empty(points.shape[0] + 1, dtype=np.int64)
    cdef int64_t[::1] missed = found
    cdef int64_t[:, ::1] off = np.empty((2, counts.shape[0]), dtype=np.int64)
    cdef Py_ssize_t k
    with nogil:
        missed[0] = missed_now(low, high, counts, off)
        for k in range(points.shape[0]):
            missed[k + 1] = missed[k] + change_label(
                begins, groups, times, low, high, counts, off, points[k], old[k], new[k]
            )
    return found
