"""Sweep of semi-supervised classification trees."""

from libc.stdint cimport int64_t

import numpy as np


def best_cuts(
    const double[:, ::1] values,
    const int64_t[:, ::1] order,
    const double[:, ::1] Z,
    const int64_t[::1] y,
    const double[::1] weight,
    const double[::1] size,
    Py_ssize_t n_classes,
    double label_factor,
    double spread_factor,
    bint own_shares,
    double least,
):
    r"""Largest gain along each candidate feature, and between which points it is, in their order along the feature.

    Rows of `values` and `order` are candidate features: values in ascending order, and the points that have them.
    Points `Z` are centred. With total weight m, sums of the left side :math:`m_L, s_L` and no total sum, the variances
    of all features together fall by :math:`\lVert s_L \rVert^2 (1/m_L + 1/m_R) / m`.
    """
    cdef Py_ssize_t n_candidates = order.shape[0], n = order.shape[1]
    gains, places = np.full(n_candidates, -1.0), np.full(n_candidates, -1)
    cdef:
        double[::1] gain = gains, counts = np.zeros(n_classes), left = np.empty(n_classes), sums = np.empty(Z.shape[1])
        int64_t[::1] place = places
        Py_ssize_t f, i, k
        double total = 0.0, total_size = 0.0, labelled = 0.0, squares = 0.0, gini, c, before
        double mass, here, known, square_left, square_right, spread, other, unknown, gini_left, gini_right, share
        double reached
        bint some_left, some_right
    with nogil:
        for i in range(n):
            total += weight[i]
            total_size += size[i]
            if y[i] >= 0:
                counts[y[i]] += weight[i]
        for k in range(n_classes):
            labelled += counts[k]
            squares += counts[k] * counts[k]
        gini = 1.0 - squares / (labelled * labelled) if labelled > 0.0 else 0.0
        for f in range(n_candidates):
            left[:] = 0.0
            sums[:] = 0.0
            mass = here = known = square_left = 0.0
            square_right = squares
            for k in range(n - 1):
                i = order[f, k]
                c = weight[i]
                mass += c
                here += size[i]
                if y[i] >= 0:
                    before = left[y[i]]
                    square_left += c * (2.0 * before + c)
                    square_right -= c * (2.0 * (counts[y[i]] - before) - c)
                    left[y[i]] = before + c
                    known += c
                spread = _moved(sums, c, Z, i)
                if values[f, k] == values[f, k + 1] or here < least or total_size - here < least:
                    continue
                other, unknown = total - mass, labelled - known
                # weights that do not add up exactly leave a rest on a side without labels
                some_left, some_right = known > 1e-12 * labelled, unknown > 1e-12 * labelled
                gini_left = 1.0 - square_left / (known * known) if some_left else gini
                gini_right = 1.0 - square_right / (unknown * unknown) if some_right else gini
                share = mass / total
                if own_shares:
                    share = (known / labelled if some_right else 1.0) if some_left else 0.0
                reached = label_factor * (gini - share * gini_left - (1.0 - share) * gini_right)
                # beside heavier points, what the lightest ones weigh together is lost
                if mass > 1e-14 * total and other > 1e-14 * total:
                    reached += spread_factor * spread * (1.0 / mass + 1.0 / other) / total
                if reached > gain[f] + 1e-12:
                    gain[f], place[f] = reached, k
    return gains, places


cdef inline double _moved(double[::1] sums, double c, const double[:, ::1] Z, Py_ssize_t i) noexcept nogil:
    """Add a point to the sums; their square is summed in lanes, which a processor does side by side."""
    cdef Py_ssize_t j, p = sums.shape[0], whole = p - p % 4
    cdef double s, t, u, v, a = 0.0, b = 0.0, d = 0.0, e = 0.0
    for j in range(0, whole, 4):
        s, t = sums[j] + c * Z[i, j], sums[j + 1] + c * Z[i, j + 1]
        u, v = sums[j + 2] + c * Z[i, j + 2], sums[j + 3] + c * Z[i, j + 3]
        sums[j], sums[j + 1], sums[j + 2], sums[j + 3] = s, t, u, v
        a += s * s
        b += t * t
        d += u * u
        e += v * v
    for j in range(whole, p):
        s = sums[j] + c * Z[i, j]
        sums[j] = s
        a += s * s
    return (a + b) + (d + e)
