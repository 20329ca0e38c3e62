"""Loops over neighbours and edges: distances, affinities, and the parts of a conjugate gradient step.

Sums run in a fixed order, in one thread: the same input gives the same graph and labels to the last bit.
"""

cimport cython
from cython cimport floating
from libc.math cimport INFINITY, exp, log, sqrt
from libc.stdint cimport int32_t, int64_t

import numpy as np

ctypedef fused place:
    int32_t
    int64_t


def closest_dense(
    const floating[:, ::1] X,
    const int64_t[:] rows,
    const int64_t[:, ::1] found,
    int64_t[:, ::1] index,
    double[:, ::1] distance,
):
    """Nearest of the points found for each of `rows`, by exact Euclidean distances, nearest first, ties by number.

    Distances come from differences in float64: no digits are cancelled. The row itself and -1, for nothing found, do
    not count; places that stay empty have the index -1 and an infinite distance.
    """
    cdef Py_ssize_t i, j, k = index.shape[1]
    cdef int64_t other
    with nogil:
        for i in range(rows.shape[0]):
            for j in range(k):
                index[i, j], distance[i, j] = -1, INFINITY
            for j in range(found.shape[1]):
                other = found[i, j]
                if other >= 0 and other != rows[i]:
                    _insert(index, distance, i, other, _square_apart(X, rows[i], other, distance[i, k - 1]))
            for j in range(k):
                distance[i, j] = sqrt(distance[i, j])


cdef inline double _square_apart(
    const floating[:, ::1] X, Py_ssize_t one, Py_ssize_t two, double most
) noexcept nogil:
    """Squared distance of two points; of points farther apart than `most` something above it."""
    cdef:
        Py_ssize_t p = X.shape[1], begin = 0, feature
        double total = 0.0, even, odd, away
    while begin + 8 <= p and total <= most:
        even = odd = 0.0
        for feature in range(begin, begin + 8, 2):
            away = <double> X[one, feature] - <double> X[two, feature]
            even += away * away
            away = <double> X[one, feature + 1] - <double> X[two, feature + 1]
            odd += away * away
        total += even + odd
        begin += 8
    if total <= most:
        for feature in range(begin, p):
            away = <double> X[one, feature] - <double> X[two, feature]
            total += away * away
    return total


cdef inline void _insert(
    int64_t[:, ::1] index, double[:, ::1] distance, Py_ssize_t i, int64_t other, double away
) noexcept nogil:
    """Put a point into its place among the nearest of row i so far, -1 being an empty one, or nowhere."""
    cdef Py_ssize_t j, at = index.shape[1]
    while at > 0 and (
        index[i, at - 1] < 0
        or away < distance[i, at - 1]
        or (away == distance[i, at - 1] and other < index[i, at - 1])
    ):
        at -= 1
    for j in range(index.shape[1] - 1, at, -1):
        index[i, j], distance[i, j] = index[i, j - 1], distance[i, j - 1]
    if at < index.shape[1]:
        index[i, at], distance[i, at] = other, away


def closest_sparse(
    const floating[::1] data,
    const place[::1] columns,
    const place[::1] begins,
    const int64_t[:] rows,
    const int64_t[:, ::1] found,
    int64_t[:, ::1] index,
    double[:, ::1] distance,
):
    """As :func:`closest_dense`, for points in compressed rows with sorted columns."""
    cdef:
        Py_ssize_t i, j, one, two, one_end, two_end
        int64_t other
        double total, apart
        bint first, second
    with nogil:
        for i in range(rows.shape[0]):
            for j in range(index.shape[1]):
                index[i, j], distance[i, j] = -1, INFINITY
            for j in range(found.shape[1]):
                other = found[i, j]
                if other < 0 or other == rows[i]:
                    continue
                one, one_end = begins[rows[i]], begins[rows[i] + 1]
                two, two_end = begins[other], begins[other + 1]
                total = 0.0
                while one < one_end or two < two_end:
                    apart = 0.0
                    first = one < one_end and (two == two_end or columns[one] <= columns[two])
                    second = two < two_end and (one == one_end or columns[two] <= columns[one])
                    if first:
                        apart += data[one]
                        one += 1
                    if second:
                        apart -= data[two]
                        two += 1
                    total += apart * apart
                _insert(index, distance, i, other, total)
            for j in range(index.shape[1]):
                distance[i, j] = sqrt(distance[i, j])


def near_sparse(
    const floating[::1] data,
    const place[::1] columns,
    const place[::1] begins,
    const floating[::1] by_data,
    const place[::1] by_rows,
    const place[::1] by_begins,
    const double[::1] square,
    const int64_t[:] rows,
    int64_t[:, ::1] found,
):
    """Fill `found` with the points nearest to each of `rows`, all others tried, by their products with the row.

    Points come twice, in compressed rows and in compressed columns: only features that a row has cost anything.
    `square` has the squares of their norms.
    """
    cdef:
        Py_ssize_t i, j, at, other, n = square.shape[0], k = found.shape[1]
        double[::1] product = np.empty(n)
        double[:, ::1] away = np.empty((found.shape[0], k))
        double apart, value
    with nogil:
        for i in range(rows.shape[0]):
            product[:] = 0.0
            for at in range(begins[rows[i]], begins[rows[i] + 1]):
                value = data[at]
                for other in range(by_begins[columns[at]], by_begins[columns[at] + 1]):
                    product[by_rows[other]] += value * by_data[other]
            for j in range(k):
                found[i, j], away[i, j] = -1, INFINITY
            for other in range(n):
                apart = square[other] - 2.0 * product[other]
                if apart < away[i, k - 1] and other != rows[i]:
                    _insert(found, away, i, other, apart)


def affinities(const double[:, ::1] distance, double entropy, double tolerance, double[:, ::1] out):
    r"""Fill `out` with the rows :math:`p_j \propto e^{-\beta d_j^2}` of the entropy asked for.

    With :math:`\delta_j = d_j^2 - \min d^2`, scaled so that the largest is 1, the entropy
    :math:`H = \log \sum_j e^{-\beta \delta_j} + \beta\, E \delta` falls in :math:`t = \log \beta` with the slope
    :math:`-\beta^2 \mathrm{Var}\, \delta`. Newton steps in t, halving where they leave the bracket. The bracket ends
    at e^100: beyond it, only the nearest neighbours share a row, whose entropy is then the least it can be.
    """
    cdef:
        Py_ssize_t i, j, n = distance.shape[0], k = distance.shape[1]
        double[::1] delta = np.empty(k)
        double near, far, widest, low, high, t, beta, total, mean, square, p, excess, slope
    with nogil:
        for i in range(n):
            near = far = distance[i, 0]
            for j in range(k):
                near, far = min(near, distance[i, j]), max(far, distance[i, j])
            widest = 0.0
            if far > near:
                # Squares of distances divided by the largest neither overflow nor vanish.
                for j in range(k):
                    delta[j] = (distance[i, j] - near) / far * (distance[i, j] / far + near / far)
                    widest = max(widest, delta[j])
            if widest <= 0.0 or entropy >= log(<double> k):
                for j in range(k):
                    out[i, j] = 1.0 / k
                continue
            for j in range(k):
                delta[j] /= widest
            low, high, t = -40.0, 100.0, 1.0
            for _ in range(200):
                beta = exp(t)
                total = mean = square = 0.0
                for j in range(k):
                    p = exp(-beta * delta[j])
                    out[i, j] = p
                    total += p
                    mean += p * delta[j]
                    square += p * delta[j] * delta[j]
                mean /= total
                excess = log(total) + beta * mean - entropy
                if abs(excess) <= tolerance or high - low < 1e-13:
                    break
                if excess > 0.0:
                    low = t
                else:
                    high = t
                slope = beta * beta * (square / total - mean * mean)
                t = t + excess / slope if slope > 1e-300 else low
                if not low < t < high:
                    t = 0.5 * (low + high)
            for j in range(k):
                out[i, j] /= total


def finish(const double[::1] diagonal, double gamma, const double[:, ::1] P, double[:, ::1] Q):
    """Turn Q = W P into (diag(diagonal) - gamma W) P; return the products of the columns of P and Q.

    Columns take turns on as many rows as the first cache holds: the sum of one stays in a register.
    """
    cdef Py_ssize_t i, c, first, end, n = P.shape[0], m = P.shape[1]
    cdef double value, total
    dots = np.zeros(m)
    cdef double[::1] dot = dots
    with nogil:
        for first in range(0, n, 64):
            end = min(first + 64, n)
            for c in range(m):
                total = dot[c]
                for i in range(first, end):
                    value = diagonal[i] * P[i, c] - gamma * Q[i, c]
                    Q[i, c] = value
                    total += P[i, c] * value
                dot[c] = total
    return dots


def advance(
    const double[::1] step,
    const double[::1] diagonal,
    const double[:, ::1] P,
    const double[:, ::1] Q,
    double[:, ::1] Z,
    double[:, ::1] R,
):
    """Go `step` along P: Z moves, R loses `step` times Q; return sums of squares of R, plain and over `diagonal`."""
    cdef Py_ssize_t i, c, first, end, n = P.shape[0], m = P.shape[1]
    cdef double rest, square, total, total_over
    plain, scaled = np.zeros(m), np.zeros(m)
    cdef double[::1] each = plain, over = scaled
    with nogil:
        for first in range(0, n, 64):
            end = min(first + 64, n)
            for c in range(m):
                total, total_over = each[c], over[c]
                for i in range(first, end):
                    Z[i, c] += step[c] * P[i, c]
                    rest = R[i, c] - step[c] * Q[i, c]
                    R[i, c] = rest
                    square = rest * rest
                    total += square
                    total_over += square / diagonal[i]
                each[c], over[c] = total, total_over
    return plain, scaled


def turn(const double[::1] keep, const double[::1] diagonal, const double[:, ::1] R, double[:, ::1] P):
    """Next directions: the preconditioned residual, plus `keep` times the last direction."""
    cdef Py_ssize_t i, c, n = P.shape[0], m = P.shape[1]
    with nogil:
        for i in range(n):
            for c in range(m):
                P[i, c] = R[i, c] / diagonal[i] + keep[c] * P[i, c]
