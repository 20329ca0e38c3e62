r"""Loops of the search for OCTSVM: losses, the least cost along a line, a support vector machine in a ball.

Costs are in units of ``c1``: a point with the margin m pays :math:`\varphi(m) = \min([1 - m]^+, r_2 + [1 + m]^+)` at a
split. Norms are coded as 0 for "l2", 1 for "l1" and 2 for "linf".
"""

cimport cython
from libc.math cimport INFINITY, fabs, sqrt
from libc.stdint cimport int64_t, uint64_t

from treewright.core.sorting cimport argsort
from treewright.engine.draws cimport shuffle

import numpy as np


cdef enum:
    PASSES = 6
    ROUNDS = 6

cdef double NEAR = 1e-4  # how far beyond a jump of the cost a place is taken, as a share of the line


@cython.final
cdef class Places:
    def __init__(self, Py_ssize_t n):
        cdef double[:, ::1] room = np.empty((3, 4 * n))
        self.at, self.bend, self.jump, self.order = room[0], room[1], room[2], np.empty(4 * n, dtype=np.int64)


@cython.final
cdef class Machine:
    def __init__(self, Py_ssize_t most, Py_ssize_t n_features):
        cdef double[:, ::1] room = np.empty((5, most))
        self.Z, self.order = np.empty((most, n_features)), np.empty(most, dtype=np.int64)
        self.side, self.worth, self.most, self.square, self.alpha = room[0], room[1], room[2], room[3], room[4]
        self.mean, self.w = np.empty(n_features), np.empty(n_features)


cdef inline double _slope(double margin, double r2) noexcept nogil:
    """Slope of the loss."""
    cdef double keep = 1.0 - margin if margin < 1.0 else 0.0
    cdef double flip = r2 + (1.0 + margin if margin > -1.0 else 0.0)
    if keep <= flip:
        return -1.0 if margin < 1.0 else 0.0
    return 1.0 if margin > -1.0 else 0.0


cdef inline double _longer(double total, double value, int64_t norm) noexcept nogil:
    """A norm, without the root, with one more coefficient."""
    if norm == 0:
        return total + value * value
    return total + fabs(value) if norm == 1 else max(total, fabs(value))


cpdef double length(const double[::1] w, int64_t norm) noexcept nogil:
    """Norm of a normal."""
    cdef double total = 0.0
    cdef Py_ssize_t j
    for j in range(w.shape[0]):
        total = _longer(total, w[j], norm)
    return sqrt(total) if norm == 0 else total


cpdef (double, double) range_within(
    const double[::1] w, const double[::1] u, double limit, int64_t norm
) noexcept nogil:
    """The range of t in which ``w + t * u`` is no longer than `limit`; w is not, u is not zero."""
    # a convex function of t that is at most the limit at 0: doubling, then bisection
    cdef:
        double[2] ends
        double sign, good, bad, middle, total
        Py_ssize_t side, j, _
    for side in range(2):
        sign = -1.0 if side == 0 else 1.0
        good, bad = 0.0, (2.0 * limit + 1e-12) / length(u, norm)
        for _ in range(40):
            middle = 0.5 * (good + bad)
            total = 0.0
            for j in range(w.shape[0]):
                total = _longer(total, w[j] + sign * middle * u[j], norm)
            if (sqrt(total) if norm == 0 else total) <= limit:
                good = middle
            else:
                bad = middle
        ends[side] = sign * good
    return ends[0], ends[1]


cdef void values(
    const double[:, ::1] X, const int64_t[::1] rows, const double[::1] w, double b, double[::1] out
) noexcept nogil:
    """``X[rows] @ w + b``."""
    cdef double f
    cdef Py_ssize_t k, j
    for k in range(rows.shape[0]):
        f = b
        for j in range(X.shape[1]):
            f += X[rows[k], j] * w[j]
        out[k] = f


cpdef double node_cost(
    const double[::1] f,
    const double[::1] sign,
    const double[::1] weight,
    const double[::1] left,
    const double[::1] right,
    double r2,
) noexcept nogil:
    """What points pay at a split with these values, and further down on the side it sends them to."""
    cdef double cost = 0.0
    cdef Py_ssize_t i
    for i in range(f.shape[0]):
        cost += weight[i] * (relabelled_loss(sign[i] * f[i], r2) + (right[i] if f[i] >= 0.0 else left[i]))
    return cost


def least_along(
    const double[::1] a,
    const double[::1] b,
    const double[::1] sign,
    const double[::1] weight,
    const double[::1] left,
    const double[::1] right,
    double r2,
    double low,
    double high,
):
    """The place t in [low, high] with the least cost of a split with the values ``a + t * b``, and that cost.

    The cost is linear between places where a margin is 1, -1 or where relabelling begins to pay, and jumps where a
    point changes sides; of the latter the better side is taken, a little away from the jump.
    """
    return least_among(a, b, sign, weight, left, right, r2, low, high, Places(a.shape[0]))


cdef (double, double) least_among(
    const double[::1] a,
    const double[::1] b,
    const double[::1] sign,
    const double[::1] weight,
    const double[::1] left,
    const double[::1] right,
    double r2,
    double low,
    double high,
    Places places,
) noexcept nogil:
    """As :func:`least_along`, with room for the places."""
    cdef:
        double cost = 0.0, slope = 0.0, f, speed, t, step, margin, change, least, place, last, near, following
        Py_ssize_t k = 0, i, which, e, o
    for i in range(a.shape[0]):
        f = a[i] + low * b[i]
        cost += weight[i] * (relabelled_loss(sign[i] * f, r2) + (right[i] if f >= 0.0 else left[i]))
        if b[i] == 0.0:
            continue
        speed = sign[i] * b[i]
        slope += weight[i] * _slope(sign[i] * f + 1e-12 * speed, r2) * speed
        for which in range(4):
            step = margin = change = 0.0
            if which == 0:
                margin, change = 1.0, 1.0
            elif which == 1:
                if r2 == INFINITY:
                    continue
                if r2 <= 2.0:
                    margin, change = -0.5 * r2, -2.0
                else:
                    margin, change = 1.0 - r2, -1.0
            elif which == 2:
                if r2 > 2.0:
                    continue
                margin, change = -1.0, 1.0
            else:
                if left[i] == right[i]:
                    continue
                step = weight[i] * (right[i] - left[i]) * (1.0 if b[i] > 0.0 else -1.0)
            t = (margin * sign[i] - a[i]) / b[i]
            if low < t < high:
                places.at[k], places.bend[k], places.jump[k] = t, weight[i] * change * fabs(speed), step
                k += 1
    argsort(places.at, k, places.order)
    least, place, last = cost, low, low
    near = NEAR * (high - low)
    for e in range(k):
        o = places.order[e]
        t = places.at[o]
        cost += slope * (t - last)
        if cost < least:
            least = cost
            place = t - min(near, 0.5 * (t - last)) if places.jump[o] > 0.0 else t
        cost += places.jump[o]
        slope += places.bend[o]
        last = t
        if places.jump[o] < 0.0 and cost < least:
            following = places.at[places.order[e + 1]] if e + 1 < k else high
            least, place = cost, t + min(near, 0.5 * (following - t))
    if cost + slope * (high - last) < least:
        least, place = cost + slope * (high - last), high
    return place, least


cdef double _pass(Machine machine, Py_ssize_t n, uint64_t[::1] draws) noexcept nogil:
    """A pass of coordinate ascent over the dual of a support vector machine; how much has changed."""
    cdef:
        double b = machine.b, changed = 0.0, f, new, step
        Py_ssize_t k, i, j, p = machine.Z.shape[1]
    shuffle(machine.order[:n], draws)
    for k in range(n):
        i = machine.order[k]
        f = b
        for j in range(p):
            f += machine.w[j] * machine.Z[i, j]
        new = min(max(machine.alpha[i] - (machine.side[i] * f - 1.0) / machine.square[i], 0.0), machine.most[i])
        step = (new - machine.alpha[i]) * machine.side[i]
        if step != 0.0:
            machine.alpha[i] = new
            b += step
            for j in range(p):
                machine.w[j] += step * machine.Z[i, j]
            changed += fabs(step)
    machine.b = b
    return changed


cdef void _centre(Machine machine, Py_ssize_t n, double total) noexcept nogil:
    """Take the mean from the points, and begin with a plane that is zero."""
    cdef Py_ssize_t i, j, p = machine.Z.shape[1]
    cdef double square
    for j in range(p):
        machine.mean[j] = machine.w[j] = 0.0
        for i in range(n):
            machine.mean[j] += machine.worth[i] / total * machine.Z[i, j]
    for i in range(n):
        square = 0.0
        for j in range(p):
            machine.Z[i, j] -= machine.mean[j]
            square += machine.Z[i, j] * machine.Z[i, j]
        machine.square[i], machine.alpha[i], machine.order[i] = 1.0 + square, 0.0, i
    machine.b = 0.0


cdef double _sum(const double[::1] numbers, Py_ssize_t n) noexcept nogil:
    cdef double total = 0.0
    cdef Py_ssize_t i
    for i in range(n):
        total += numbers[i]
    return total


cdef void train(Machine machine, Py_ssize_t n, double limit, int64_t norm, uint64_t[::1] draws) noexcept nogil:
    """Train a machine on the first n points that are there with their sides and worth, as :func:`machine` says."""
    cdef:
        double total = _sum(machine.worth, n), low = 0.0, high = INFINITY, penalty, new, size, shrink, along = 0.0
        Py_ssize_t r, i, j, _, p = machine.Z.shape[1]
    _centre(machine, n, total)
    penalty = total * max(1.0 / n, 0.1) / limit * 0.1
    for r in range(ROUNDS):
        for i in range(n):
            machine.most[i] = machine.worth[i] / penalty
        for _ in range(PASSES):
            if _pass(machine, n, draws) < 1e-3 * _sum(machine.alpha, n):
                break
        size = length(machine.w, norm)
        if r == ROUNDS - 1 or (size <= limit and (size > 0.95 * limit or penalty < 1e-4 * total / n)):
            break
        if size > limit:
            low = max(low, penalty)
        else:
            high = min(high, penalty)
        new = penalty * min(max(size / limit, 0.1), 10.0)
        if low > 0.0 and high < INFINITY and not low < new < high:
            new = sqrt(low * high)
        for i in range(n):
            machine.alpha[i] *= penalty / new
        for j in range(p):
            machine.w[j] *= penalty / new
        machine.b = machine.b * (penalty / new)
        penalty = new
    shrink = min(1.0, limit / max(length(machine.w, norm), 1e-300))
    for j in range(p):
        machine.w[j] *= shrink
        along += machine.w[j] * machine.mean[j]
    machine.b = machine.b * shrink - along


def machine(
    const double[:, ::1] X,
    const double[::1] side,
    const double[::1] worth,
    double limit,
    int64_t norm,
    uint64_t[::1] draws,
):
    """A hyperplane with a small ``sum(worth * [1 - side * f]^+)`` and a normal no longer than `limit`.

    Dual coordinate ascent for the penalized problem, whose penalty is changed in rounds until the normal has about the
    length that it may have. It is a direction to go on from, not an optimum.
    """
    cdef Py_ssize_t n = X.shape[0]
    cdef Machine trained = Machine(n, X.shape[1])
    trained.Z[:], trained.side[:], trained.worth[:] = X, side, worth
    with nogil:
        train(trained, n, limit, norm, draws)
    return np.asarray(trained.w), trained.b
