"""Loop of :mod:`treewright.totals.shift`."""

from libc.math cimport INFINITY, exp
from libc.stdint cimport int64_t

import numpy as np


def moments(const double[:, ::1] scores, const int64_t[::1] group_of, const double[:, ::1] shifts):
    """Sums by group of the shifted probabilities, and of their products.

    One pass over the rows, none of whose probabilities is kept; sums of millions are kept from rounding (Kahan).
    """
    cdef Py_ssize_t n_groups = shifts.shape[0], k = shifts.shape[1]
    found, products = np.zeros((n_groups, k)), np.zeros((n_groups, k, k))
    cdef:
        Py_ssize_t i, j, m, g
        double[:, ::1] sums = found, lost = np.zeros((n_groups, k))
        double[:, :, ::1] moment = products
        double[::1] p = np.empty(k)
        double top, total, term, after
    with nogil:
        for i in range(scores.shape[0]):
            g = group_of[i]
            top = -INFINITY
            for j in range(k):
                p[j] = scores[i, j] + shifts[g, j]
                top = max(top, p[j])
            total = 0.0
            for j in range(k):
                p[j] = exp(p[j] - top)
                total += p[j]
            for j in range(k):
                p[j] /= total
                term = p[j] - lost[g, j]
                after = sums[g, j] + term
                lost[g, j] = (after - sums[g, j]) - term
                sums[g, j] = after
                for m in range(j + 1):
                    moment[g, j, m] += p[j] * p[m]
        for g in range(n_groups):
            for j in range(k):
                for m in range(j):
                    moment[g, m, j] = moment[g, j, m]
    return found, products
