"""Compiled loops over planes with margins: the exact minimum along a line, and a pass over all coordinates.

A plane is ``f(x) = g - h @ x``; a point goes left where ``f >= 0``. Along a line the values of points are
``f + v * rate``. Sides jump where a value is 0, the tent ``max(0, epsilon - |f|)`` of a point has three kinks, the norm
has one a feature: between these places the cost is linear, so that one sweep over them in order finds the minimum.
"""

cimport cython
from libc.math cimport INFINITY, fabs, isfinite
from libc.stdint cimport int64_t, uint8_t

import numpy as np


cdef enum:
    FEW = 15  # places that are sorted by insertion


cdef inline double _tent_cost(
    const double[::1] f, const double[::1] stake, const double[::1] toll, Py_ssize_t m, double epsilon, double margin
) noexcept nogil:
    cdef double total = 0.0, distance
    cdef Py_ssize_t i
    for i in range(m):
        distance = fabs(f[i])
        if distance < margin:
            return INFINITY
        if f[i] > 0:
            total += stake[i]
        if distance < epsilon:
            total += toll[i] * (epsilon - distance)
    return total


def plane_cost(const double[::1] f, const double[::1] stake, const double[::1] toll, double epsilon, double margin):
    """Stakes of the points on the left plus tents; infinite where a point is nearer to the plane than the margin."""
    return _tent_cost(f, stake, toll, f.shape[0], epsilon, margin)


@cython.final
cdef class Line:
    """Points along a line, the first so many of their arrays, and room for the places where their cost turns."""

    def __init__(self, Py_ssize_t n):
        self.value, self.rate, self.stake, self.toll = np.empty((4, n))
        self.place, self.jump, self.bend = np.empty((3, 3 * n + 1))
        self.order = np.empty(3 * n + 1, dtype=np.int64)


cdef inline void _swap(double[::1] place, int64_t[::1] order, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
    place[i], place[j] = place[j], place[i]
    order[i], order[j] = order[j], order[i]


cdef void _sort(double[::1] place, int64_t[::1] order, Py_ssize_t low, Py_ssize_t high) noexcept nogil:
    """Sort places from `low` to `high`, and what they are in order: quicksort, by insertion where they are few."""
    cdef Py_ssize_t i, j, middle
    cdef int64_t moved
    cdef double pivot
    while high - low >= FEW:
        middle = (low + high) // 2
        if place[middle] < place[low]:
            _swap(place, order, low, middle)
        if place[high] < place[middle]:
            _swap(place, order, middle, high)
        if place[middle] < place[low]:
            _swap(place, order, low, middle)
        pivot = place[middle]
        _swap(place, order, middle, high)
        i, j = low, high - 1
        while True:
            while i < high and place[i] < pivot:
                i += 1
            while j >= low and place[j] > pivot:
                j -= 1
            if i >= j:
                break
            _swap(place, order, i, j)
            i, j = i + 1, j - 1
        _swap(place, order, i, high)
        if high - i > i - low:
            _sort(place, order, low, i - 1)
            low = i + 1
        else:
            _sort(place, order, i + 1, high)
            high = i - 1
    for i in range(low + 1, high + 1):
        pivot, moved, j = place[i], order[i], i
        while j > low and pivot < place[j - 1]:
            place[j], order[j] = place[j - 1], order[j - 1]
            j -= 1
        place[j], order[j] = pivot, moved


cdef double line_place(
    Line line, Py_ssize_t m, double epsilon, double kink, double force, double low, double high, double* least
) noexcept nogil:
    """As :func:`line_minimum` for the first m points of a line; `least` gets the cost."""
    cdef:
        double cost = 0.0, slope = 0.0, start, away, steep, centre, width, push, at, turn, best = INFINITY
        double first = low, last = low, here = low, there, slack, step
        bint on_it = False, flat, crossed
        Py_ssize_t n = 0, position = 0, i, part
    for i in range(m):
        start = line.value[i] + low * line.rate[i]
        away = fabs(start)
        on_it = on_it or away < 1e-12
        if start > 0 or (start == 0 and line.rate[i] > 0):
            cost += line.stake[i]
        if away < epsilon:
            cost += line.toll[i] * (epsilon - away)
        if line.rate[i] == 0:
            continue
        steep = fabs(line.rate[i])
        centre, width = -line.value[i] / line.rate[i], epsilon / steep
        if centre - width > high:
            continue
        push = line.toll[i] * steep
        for part in range(3):
            at = centre + (part - 1) * width
            turn = -2.0 * push if part == 1 else push
            if at <= low:
                slope += turn
            elif at <= high:
                line.place[n], line.bend[n], line.jump[n] = at, turn, 0.0
                if part == 1:
                    line.jump[n] = line.stake[i] if line.rate[i] > 0 else -line.stake[i]
                n += 1
    cost += force * fabs(low - kink)
    if kink <= low:
        slope += force
    else:
        slope -= force
        if kink <= high:
            line.place[n], line.bend[n], line.jump[n] = kink, 2.0 * force, 0.0
            n += 1
    for i in range(n):
        line.order[i] = i
    _sort(line.place, line.order, 0, n - 1)
    flat = not on_it
    if flat:
        best = cost
    while True:
        # From here to the next place, at which several points may turn.
        there = line.place[position] if position < n else high
        slack = 1e-12 * max(1.0, fabs(cost))
        flat = flat and fabs(slope) * (there - here) <= slack
        cost += slope * (there - here)
        here = there
        crossed, step, turn = False, 0.0, 0.0
        while position < n and line.place[position] <= here + 1e-12:
            i = line.order[position]
            step += line.jump[i]
            turn += line.bend[i]
            crossed = crossed or line.bend[i] < 0
            position += 1
        if crossed:
            flat = False
        elif cost < best - slack:
            best, first, last, flat = cost, here, here, True
        elif flat and cost <= best + slack:
            last = here
        cost += step
        slope += turn
        if not here < high:  # also where a value is no number
            least[0] = best
            return 0.5 * (first + last)


def line_minimum(
    const double[::1] f,
    const double[::1] rate,
    const double[::1] stake,
    const double[::1] toll,
    double epsilon,
    double kink,
    double force,
    double low,
    double high,
):
    """Best v in [low, high] for values ``f + v * rate``: place and cost, to which ``force * |v - kink|`` adds.

    Of a range of equally good places the middle is taken. Places at which a point is on the plane are left out, peaks
    of its tent. The cost is that of the sweep, subject to rounding.
    """
    cdef Line line = Line(f.shape[0])
    cdef double v, least
    line.value[:], line.rate[:], line.stake[:], line.toll[:] = f, rate, stake, toll
    with nogil:
        v = line_place(line, f.shape[0], epsilon, kink, force, low, high, &least)
    return v, least


@cython.final
cdef class _Pass:
    """What :func:`pass_over` works on, and room for what is known of all points."""

    cdef:
        const double[:, ::1] X
        const uint8_t[:, ::1] absent
        const int64_t[::1] rows
        const double[::1] stake
        const double[::1] toll
        double[::1] normal
        double epsilon, margin
        Py_ssize_t n, p
        bint gaps
        double[::1] f
        double[::1] rate
        int64_t[::1] missing  # how many values that the normal uses each point lacks
        uint8_t[::1] whole  # points that have a value along the line, off its start

    def __init__(self, X, absent, rows, stake, toll, normal, epsilon, margin):
        self.X, self.absent, self.rows, self.stake, self.toll = X, absent, rows, stake, toll
        self.normal, self.epsilon, self.margin, self.gaps = normal, epsilon, margin, len(absent) > 0
        self.n, self.p = self.X.shape[0], self.X.shape[1]
        self.f, self.rate = np.empty((2, self.n))
        self.missing, self.whole = np.empty(self.n, dtype=np.int64), np.empty(self.n, dtype=np.uint8)


cdef void _values(_Pass at, double offset) noexcept nogil:
    """Values of all points, and how many values that a normal uses each of them lacks."""
    cdef Py_ssize_t i, j
    for i in range(at.n):
        at.f[i] = offset
        at.missing[i] = 0
        for j in range(at.p):
            if at.normal[j] != 0:
                at.f[i] -= at.normal[j] * at.X[i, j]
                at.missing[i] += at.gaps and at.absent[i, j]


cdef void _turn(_Pass at, Py_ssize_t j, double old) noexcept nogil:
    """How fast values move along a line, and which points have one off its start."""
    cdef Py_ssize_t i
    for i in range(at.n):
        if j < at.p:
            at.rate[i] = -at.X[i, j]
        elif j == at.p:
            at.rate[i] = 1.0
        else:
            at.rate[i] = at.f[i]
        at.whole[i] = at.missing[i] == 0 and not (at.gaps and j < at.p and old == 0 and at.absent[i, j])


cdef double _along(
    _Pass at, Line line, double kink, double force, double low, double high, double* found
) noexcept nogil:
    """Best v along a line within its range and where no value leaves [-1, 1]; its exact cost without the norm."""
    cdef:
        double least = -INFINITY, most = INFINITY, v, aside = 0.0
        Py_ssize_t i, k, m = 0
    for i in range(at.n):
        if at.whole[i] and at.rate[i] != 0:
            narrow(&least, &most, at.f[i], at.rate[i])
    low, high = max(low, least), min(high, most)
    if not (low < high and isfinite(low) and isfinite(high)):
        found[0] = INFINITY
        return 0.0
    for k in range(at.rows.shape[0]):
        i = at.rows[k]
        if at.whole[i]:
            line.value[m], line.rate[m], line.stake[m], line.toll[m] = at.f[i], at.rate[i], at.stake[k], at.toll[k]
            m += 1
        else:
            aside += at.stake[k]
    v = line_place(line, m, at.epsilon, kink, force, low, high, found)
    for k in range(m):
        line.value[k] += v * line.rate[k]
    # Points without a value go to the side that is cheaper for all of them.
    found[0] = _tent_cost(line.value, line.stake, line.toll, m, at.epsilon, at.margin) + min(0.0, aside)
    return v


cdef double _without(_Pass at, Py_ssize_t j, double v) noexcept nogil:
    """Cost without the norm once feature j is dropped: points that lacked nothing else have a value again."""
    cdef double total = 0.0, aside = 0.0, value
    cdef Py_ssize_t i, k
    for i in range(at.n):
        if at.missing[i] == at.absent[i, j] and fabs(at.f[i] + v * at.rate[i]) > 1.0 + 1e-9:
            return INFINITY
    for k in range(at.rows.shape[0]):
        i = at.rows[k]
        if at.missing[i] > at.absent[i, j]:
            aside += at.stake[k]
            continue
        value = at.f[i] + v * at.rate[i]
        if fabs(value) < at.margin:
            return INFINITY
        if value > 0:
            total += at.stake[k]
        if fabs(value) < at.epsilon:
            total += at.toll[k] * (at.epsilon - fabs(value))
    return total + min(0.0, aside)


cdef inline void _norm_and_largest(const double[::1] normal, double* norm, double* most) noexcept nogil:
    cdef Py_ssize_t j
    norm[0] = most[0] = 0.0
    for j in range(normal.shape[0]):
        norm[0] += fabs(normal[j])
        most[0] = max(most[0], fabs(normal[j]))


cdef void _pass(
    _Pass at, Line line, const int64_t[::1] order, double alpha, double largest, double* offset, double* cost
) noexcept nogil:
    cdef:
        double norm, most, old, new, v, found
        Py_ssize_t k, i, j, q
    _values(at, offset[0])
    _norm_and_largest(at.normal, &norm, &most)
    for k in range(order.shape[0]):
        j = order[k]
        old = at.normal[j] if j < at.p else 0.0
        if j > at.p and not norm > 0:
            continue
        _turn(at, j, old)
        if j < at.p:
            v = _along(at, line, -old, alpha, -largest - old, largest - old, &found)
        elif j == at.p:
            v = _along(at, line, 0.0, 0.0, -INFINITY, INFINITY, &found)
        else:
            v = _along(at, line, -1.0, alpha * norm, -0.999, largest / most - 1.0, &found)
        if j < at.p and fabs(old + v) <= 1e-13:
            if old == 0:  # a weight of nothing, which would send points aside for nothing
                continue
            if at.gaps:
                found = _without(at, j, v)
        new = norm
        if j < at.p:
            new = norm - fabs(old) + fabs(old + v)
        elif j > at.p:
            new = norm * (1.0 + v)
        found += alpha * new
        if v == 0 or not found < cost[0]:
            continue
        if isfinite(cost[0]) and cost[0] - found <= 1e-11 * max(1.0, fabs(cost[0])):
            continue
        cost[0] = found
        for i in range(at.n):
            at.f[i] += v * at.rate[i]
        if j < at.p:
            at.normal[j] = old + v if fabs(old + v) > 1e-13 else 0.0
            if at.gaps:
                for i in range(at.n):
                    if at.absent[i, j]:
                        at.missing[i] += (at.normal[j] != 0) - (old != 0)
        elif j == at.p:
            offset[0] += v
        else:
            offset[0] *= 1.0 + v
            for q in range(at.p):
                at.normal[q] *= 1.0 + v
        _norm_and_largest(at.normal, &norm, &most)


def pass_over(
    X,
    absent,
    rows,
    stake,
    toll,
    double epsilon,
    double margin,
    double alpha,
    double largest,
    const int64_t[::1] order,
    normal,
    double offset,
    double cost,
):
    """Move a plane to the exact best place along each of some lines in turn; `normal` changes in place.

    Parameters
    ----------
    X : ndarray of shape (n_points, n_features)
        All points, 0 where a value is missing.
    absent : ndarray of bool, shape (n_points, n_features) or (0, 0)
        Which values are missing; empty for none.
    rows, stake, toll : ndarray
        Points at the node, what each loses more on the left, and what a unit of its tent costs.
    epsilon, margin, alpha, largest : float
        Height of the tents, least distance of the points of the node, price of the 1-norm, largest entry of a normal.
    order : ndarray of int
        Lines: a feature, or n_features for the offset, or n_features + 1 for the scale.
    normal, offset : ndarray, float
        The plane.
    cost : float
        What the plane costs at the node, with the norm.

    Returns
    -------
    offset, cost : float
        Of the better plane.
    """
    cdef _Pass at = _Pass(X, absent, rows, stake, toll, normal, epsilon, margin)
    cdef Line line = Line(len(rows))
    with nogil:
        _pass(at, line, order, alpha, largest, &offset, &cost)
    return offset, cost
