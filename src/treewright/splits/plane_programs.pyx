r"""Compiled linear programs of one plane whose points have their sides: a dual simplex method for kinked costs.

The plane has :math:`f_i = g - h^\top x_i`. A point on the left pays a price for what its value lacks of epsilon, one on
the right for what it is above minus epsilon, and no value is beyond 1 or, on its side, within the least margin:

.. math:: \min\; \alpha \|h\|_1 + \sum_i p_i \max(0, \epsilon - s_i f_i)
   \quad\text{s.t.}\quad s_i f_i \ge m \;(s_i \ne 0),\; |f_i| \le 1,\; |h_j| \le H .

Every variable, a value of a point or an entry of the normal, has three kinks and a slope between each two of them. One
that is not in the basis is at a kink. One that is has the slope of a piece between two of them; it leaves the basis, or
changes its piece, if its value is not there. At first the normal is 0, and all pieces are level.

Few points hold a plane where it is. So a program begins with those that the caller expects to, and others join it when
the plane has them on a piece with a slope, or beyond a bound: a level piece costs nothing and changes no reduced cost,
so what the program costs only rises. It has a table of these points times features, where that of a solver has a row
for each point and a column for each slack. Searches solve many thousands of programs, and check what they keep.
"""

cimport cython
from libc.math cimport INFINITY, fabs, fmod, isinf
from libc.stdint cimport int64_t

import numpy as np

PERTURBED = 1e-6
"""By which share prices of features differ from each other, so that ties are few."""

cdef:
    double SHARE = PERTURBED
    double EXACT = 1e-9  # by how much values may be beyond a kink
    double SMALL = 1e-8  # entries of the table that are not pivots
    int64_t ABSENT = np.iinfo(np.int64).max  # seat of a variable that is not in the program
    # Points that are away from where they should be by this share of the worst one join a program, so many at a time.
    double AWAY = 0.8
    Py_ssize_t JOINING = 5


@cython.final
cdef class Program:
    """A program for points whose sides are still to be written, with room for one of its vertices."""

    def __init__(self, X, price, limits):
        self.X, self.price = X, price
        self.epsilon, self.least, self.alpha, self.largest = limits
        n, k = X.shape
        self.n, self.k = n, k
        self.T, self.ends = np.empty((n, k + 1)), np.empty((n, 2))
        self.x, self.away = np.empty((2, n))
        self.at, self.d, self.low, self.high, self.ratio = np.empty((5, k + 1))
        self.sides, self.rows, self.piece = np.empty((3, n), dtype=np.int64)
        self.columns, self.place = np.empty((2, k + 1), dtype=np.int64)
        self.seat = np.empty(k + n, dtype=np.int64)


cdef void _kinks(Program program, Py_ssize_t v, double* kink, double* slope) noexcept nogil:
    """The three kinks of a variable, in the order of rows of `kink`, and its slopes before, between and after them."""
    cdef Py_ssize_t i = v - program.k
    cdef double own
    slope[0], slope[3] = -INFINITY, INFINITY
    if i < 0:
        kink[0], kink[1], kink[2] = -program.largest, 0.0, program.largest
        own = program.alpha * (1.0 + SHARE * fmod(v * 0.6180339887, 1.0))
        slope[1], slope[2] = -own, own
    elif program.sides[i] > 0:
        kink[0], kink[1], kink[2] = program.least, program.epsilon, 1.0
        slope[1], slope[2] = -program.price[i], 0.0
    elif program.sides[i] < 0:
        kink[0], kink[1], kink[2] = -1.0, -program.epsilon, -program.least
        slope[1], slope[2] = 0.0, program.price[i]
    else:
        kink[0], kink[1], kink[2] = -1.0, -1.0, 1.0
        slope[1], slope[2] = 0.0, 0.0


cdef Py_ssize_t _entering(Program program, Py_ssize_t b, double up, double* step) noexcept nogil:
    """Column whose reduced cost reaches a limit first as row b is pushed; `step` is by how much it is pushed then."""
    cdef:
        double first = INFINITY, size = SMALL, rate, room
        Py_ssize_t c, column = -1
    step[0] = INFINITY
    for c in range(program.k + 1):
        rate = -up * program.T[b, c]
        if fabs(rate) > SMALL:
            room = (program.high[c] if rate > 0 else program.low[c]) - program.d[c]
            program.ratio[c] = max(0.0, room / rate)
            first = min(first, program.ratio[c] + 1e-10 / fabs(rate))
    for c in range(program.k + 1):
        if fabs(program.T[b, c]) > size and program.ratio[c] <= first:
            column, size, step[0] = c, fabs(program.T[b, c]), program.ratio[c]
    return column


cdef void _pivot(double[:, ::1] T, Py_ssize_t m, Py_ssize_t b, Py_ssize_t q) noexcept nogil:
    """Exchange the variable of row b for that of column q."""
    cdef double pivot = T[b, q], factor
    cdef Py_ssize_t i, c, width = T.shape[1]
    for c in range(width):
        T[b, c] = -T[b, c] / pivot
    T[b, q] = 1.0 / pivot
    for i in range(m):
        factor = T[i, q]
        if i != b and factor != 0.0:
            for c in range(width):
                T[i, c] += factor * T[b, c]
            T[i, q] = factor * T[b, q]


cdef void _begin(Program program, Py_ssize_t first) noexcept nogil:
    """The program of a point alone, with the normal 0: all other variables are at a kink."""
    cdef double[3] kink
    cdef double[4] slope
    cdef Py_ssize_t c, k = program.k
    program.m = 0
    program.seat[:] = ABSENT
    for c in range(k + 1):
        program.columns[c] = c if c < k else k + first
        _kinks(program, program.columns[c], kink, slope)
        program.place[c], program.at[c], program.d[c] = 1, kink[1], 0.0
        program.low[c], program.high[c] = -slope[2], -slope[1]
        program.seat[program.columns[c]] = -1 - c


cdef void _join(Program program, Py_ssize_t i, Py_ssize_t first) noexcept nogil:
    """Give the value of a point a row, on its piece without a slope."""
    cdef:
        double[3] kink
        double[4] slope
        double factor
        Py_ssize_t j, c, k = program.k, m = program.m
        int64_t s
    program.T[m, :] = 0.0
    program.x[m] = 0.0
    for j in range(k + 1):  # its value is that of the first point and the normal times what they differ by
        factor = program.X[first, j] - program.X[i, j] if j < k else 1.0
        s = program.seat[j if j < k else k + first]
        if factor == 0.0:
            continue
        if s < 0:
            program.T[m, -1 - s] += factor
            program.x[m] += factor * program.at[-1 - s]
        else:
            for c in range(k + 1):
                program.T[m, c] += factor * program.T[s, c]
            program.x[m] += factor * program.x[s]
    program.rows[m], program.seat[k + i] = k + i, m
    program.piece[m] = 2 if program.sides[i] >= 0 else 1
    _kinks(program, k + i, kink, slope)
    program.ends[m, 0], program.ends[m, 1] = kink[program.piece[m] - 1], kink[program.piece[m]]
    program.m = m + 1


cdef double _turned(Program program, double limit, double bound) noexcept nogil:
    """Pivot until the points that have rows are where their pieces say; what that costs, infinite beyond the limit."""
    cdef:
        double[3] kink
        double[4] slope
        double worst, up, short, over, own, beyond, jump, step, push, move
        Py_ssize_t width = program.k + 1, r, c, b, q, to, leaves, enters
        bint below
    for _ in range(50 * (width + 20)):
        worst, b, up = EXACT, -1, 0.0
        for r in range(program.m):
            short, over = program.ends[r, 0] - program.x[r], program.x[r] - program.ends[r, 1]
            if short > worst:
                worst, b, up = short, r, 1.0
            if over > worst:
                worst, b, up = over, r, -1.0
        if b < 0:
            return bound
        _kinks(program, program.rows[b], kink, slope)
        own = slope[program.piece[b]]
        beyond = slope[program.piece[b] - 1] if up > 0 else slope[program.piece[b] + 1]
        jump = fabs(own - beyond)
        q = _entering(program, b, up, &step)
        if isinf(step) and isinf(jump):  # nothing can give way: no plane has this point where it must be
            return INFINITY
        push = min(step, jump)
        bound += push * worst
        if bound > limit:
            return INFINITY
        push *= up
        for c in range(width):
            program.d[c] -= push * program.T[b, c]
        if jump <= step:  # its next piece is steep enough
            program.piece[b] -= 1 if up > 0 else -1
            program.ends[b, 0], program.ends[b, 1] = kink[program.piece[b] - 1], kink[program.piece[b]]
            continue
        to = program.piece[b] - 1 if up > 0 else program.piece[b]
        move = (kink[to] - program.x[b]) / program.T[b, q]
        for r in range(program.m):
            program.x[r] += program.T[r, q] * move
        # A reduced cost that has risen to its limit is level with the piece below the kink, else with that above.
        below = -up * program.T[b, q] > 0
        leaves, enters = program.rows[b], program.columns[q]
        program.rows[b], program.x[b] = enters, program.at[q] + move
        program.piece[b] = program.place[q] if below else program.place[q] + 1
        program.columns[q], program.at[q], program.place[q] = leaves, kink[to], to
        program.low[q], program.high[q] = -slope[to + 1], -slope[to]
        program.seat[leaves], program.seat[enters] = -1 - q, b
        program.d[q] = up * step - own
        _kinks(program, enters, kink, slope)
        program.ends[b, 0], program.ends[b, 1] = kink[program.piece[b] - 1], kink[program.piece[b]]
        _pivot(program.T, program.m, b, q)
    return INFINITY


cdef double _read(Program program, double[::1] normal) noexcept nogil:
    """Normal of the plane, and its offset."""
    cdef Py_ssize_t j, c = 0, k = program.k
    cdef int64_t s
    cdef double offset
    for j in range(k):
        s = program.seat[j]
        normal[j] = program.x[s] if s >= 0 else program.at[-1 - s]
    while program.columns[c] < k:  # there is a point among them: a column more than features
        c += 1
    offset = program.at[c]
    for j in range(k):
        offset += program.X[program.columns[c] - k, j] * normal[j]
    return offset


cdef double _solved(
    Program program, double limit, double[::1] normal, double[::1] dual, double* offset
) noexcept nogil:
    """What the best plane costs, where points that do not matter never come into the program; the plane too.

    Those with a dual come first, others as the plane does not have them where they should be.
    """
    cdef:
        double[3] kink
        double[4] slope
        double bound = 0.0, worst, value, away
        Py_ssize_t n = program.n, k = program.k, first = -1, i, c, r, some
    for i in range(n):
        if program.sides[i] != 0 and (first < 0 or (dual[i] != 0.0 and dual[first] == 0.0)):
            first = i
    if first < 0:
        normal[:] = 0.0
        dual[:] = 0.0
        offset[0] = 1.0
        return 0.0
    _begin(program, first)
    for i in range(n):
        if dual[i] != 0.0 and program.sides[i] != 0 and i != first:
            _join(program, i, first)
    while True:
        bound = _turned(program, limit, bound)
        if isinf(bound):
            return INFINITY
        offset[0] = _read(program, normal)
        worst = 0.0
        for i in range(n):
            program.away[i] = 0.0
            if program.seat[k + i] == ABSENT:
                value = value_at(program.X, i, normal, offset[0])
                away = fabs(value) - 1.0
                if program.sides[i] != 0:
                    away = max(program.epsilon - program.sides[i] * value, away)
                program.away[i] = away
                worst = max(worst, away)
        if worst <= EXACT:
            break
        some = 0
        for i in range(n):
            if program.away[i] > EXACT and program.away[i] >= AWAY * worst and some < JOINING:
                _join(program, i, first)
                some += 1
    dual[:] = 0.0
    for c in range(k + 1):
        if program.columns[c] >= k:
            dual[program.columns[c] - k] = program.d[c]
    for r in range(program.m):
        if program.rows[r] >= k:
            _kinks(program, program.rows[r], kink, slope)
            dual[program.rows[r] - k] = -slope[program.piece[r]]
    return bound


cdef double plane_of(Program program, double limit, double[::1] normal, double[::1] dual, double* offset) noexcept nogil:
    """As :func:`best_plane`, for sides that the program has; return what the plane costs."""
    cdef double cost = 0.0, bound = _solved(program, limit, normal, dual, offset), value, away
    cdef Py_ssize_t i, j
    if isinf(bound):
        offset[0] = 0.0
        return INFINITY
    for j in range(program.k):
        if fabs(normal[j]) < 1e-9:
            normal[j] = 0.0
        cost += program.alpha * fabs(normal[j])
    for i in range(program.n):
        value = value_at(program.X, i, normal, offset[0])
        away = value * program.sides[i]
        if fabs(value) > 1.0 + 2e-9 or (program.sides[i] != 0 and away < program.least - 1e-8):
            offset[0] = 0.0  # rounding has gone too far
            return INFINITY
        if program.sides[i] != 0:
            cost += program.price[i] * max(0.0, program.epsilon - away)
    return cost


def best_plane(X, const int64_t[::1] sides, price, limits, double limit, double[::1] normal, double[::1] dual):
    """Find the best plane for points that have their sides.

    Parameters
    ----------
    X : ndarray of shape (n_points, n_features)
        Points, with values in [0, 1].
    sides : ndarray of int, shape (n_points,)
        1 for points on the left, -1 on the right, 0 for those whose values are bounded and nothing else.
    price : ndarray of shape (n_points,)
        What a unit of falling short of epsilon costs.
    limits : tuple of float
        Epsilon, least margin (which may be -1), price of the norm, largest entry of the normal.
    limit : float
        A plane that costs more is not looked for.
    normal : ndarray of shape (n_features,)
        The normal that is found.
    dual : ndarray of shape (n_points,)
        Points that begin in the program are those with another value than 0: the duals of a plane for nearly the same
        sides, or zeros. Where a plane is found, what the optimum would cost more for a unit more of the kink that holds
        the value of a point: positive for points on the left that hold the plane up, negative for those on the right.

    Returns
    -------
    float, float
        What the plane costs, and its offset; infinite where there is none, or none within the limit.

    Examples
    --------
    >>> X, sides = np.array([[0.0], [0.4], [0.6], [1.0]]), np.array([1, 1, -1, -1])
    >>> normal, dual = np.zeros(1), np.zeros(4)
    >>> cost, offset = best_plane(X, sides, np.full(4, 100.0), (0.1, 0.01, 0.5, 4.0), np.inf, normal, dual)
    >>> round(cost, 4), np.round(normal, 4).tolist(), round(offset, 4)
    (0.5, [1.0], 0.5)
    """
    cdef Program program = Program(X, price, limits)
    cdef double cost, offset
    program.sides[:] = sides
    with nogil:
        cost = plane_of(program, limit, normal, dual, &offset)
    return cost, offset
