r"""Loops of the convex hull.

With c = 0 inside the hull of the corners :math:`v_1, \dots, v_m` found so far, a point q is inside of it if and only if

.. math:: \max_a \{ a^\top q : a^\top v_j \le 1 \;\forall j \} \le 1 ,

a program in as many variables as there are dimensions. Its vertices are facets: a basis is d corners with a common
supporting hyperplane, and the multipliers of an optimum write q by these corners and c. All points have the same rows,
so each program starts from the facet where the last one ended. A facet with :math:`a^\top q > 1` proves that q is
outside, and the farthest point along a is then a corner that was not known.

Right-hand sides are raised by less than 1e-10, each by its own amount, so that facets of more than d corners make no
ties. Corners are kept by coordinate, the long loops run along them.
"""

cimport cython
from libc.math cimport INFINITY, fabs, sqrt
from libc.stdint cimport int64_t

import numpy as np


cdef enum:
    _OPEN
    _INSIDE
    _CORNER
    _UNSURE
    _OUTSIDE
    REFRESH = 40

# States of points.
OPEN, INSIDE, CORNER, UNSURE = _OPEN, _INSIDE, _CORNER, _UNSURE

# Half of what HiGHS is given, so that what is inside here is inside there.
cdef double TOLERANCE = 5e-10
cdef double NEGATIVE = 1e-11
cdef double PIVOT = 1e-9


@cython.final
cdef class _Facet:
    """The facet where the last program ended, and room for the walk to the next."""

    cdef:
        double[:, ::1] corners  # by coordinate
        const double[::1] limit
        const double[:, ::1] noise
        int64_t[::1] basis
        double[:, ::1] inverse
        double[::1] a
        double[::1] slack  # of each corner
        double[::1] slope
        double[::1] way  # to each corner's row
        double[::1] q  # the point in question
        double[::1] share
        double[::1] step
        double[::1] row
        double[:, ::1] matrix  # what is inverted, or normals of rows
        double[:, ::1] whole  # inverse with a column for 0
        Py_ssize_t d, m
        int64_t pivots
        double length  # of the last walk
        bint ready

    def __init__(self, corners, const double[::1] limit, Py_ssize_t m, const double[:, ::1] noise):
        self.corners, self.limit, self.noise = corners, limit, noise
        self.d, n = corners.shape
        self.m, self.pivots, self.ready = m, 0, False
        self.basis, self.inverse = np.zeros(self.d, dtype=np.int64), np.zeros((self.d, self.d))
        self.slack, self.slope, self.way = np.zeros((3, n))
        self.a, self.q, self.share = np.zeros((3, self.d))
        self.step, self.row = np.zeros((2, self.d + 1))
        self.matrix, self.whole = np.zeros((2, self.d + 1, self.d + 1))


cdef bint _inverted(double[:, ::1] work, double[:, ::1] inverse, Py_ssize_t n) noexcept nogil:
    """Invert a small matrix, in place of which its rows are eliminated, by pivoting; False if it is singular."""
    cdef Py_ssize_t i, j, k, p
    cdef double factor
    for i in range(n):
        for j in range(n):
            inverse[i, j] = 1.0 if i == j else 0.0
    for k in range(n):
        p = k
        for i in range(k + 1, n):
            if fabs(work[i, k]) > fabs(work[p, k]):
                p = i
        if fabs(work[p, k]) < 1e-13:
            return False
        for j in range(n):
            work[k, j], work[p, j] = work[p, j], work[k, j]
            inverse[k, j], inverse[p, j] = inverse[p, j], inverse[k, j]
        factor = 1.0 / work[k, k]
        for j in range(n):
            work[k, j] *= factor
            inverse[k, j] *= factor
        for i in range(n):
            if i != k and work[i, k] != 0.0:
                factor = work[i, k]
                for j in range(n):
                    work[i, j] -= factor * work[k, j]
                    inverse[i, j] -= factor * inverse[k, j]
    return True


cdef void _along(_Facet f, const double[::1] direction) noexcept nogil:
    """Positions of the corners along a direction, to the slopes."""
    cdef Py_ssize_t j, k = 0
    cdef double one, two, three, four
    for j in range(f.m):
        f.slope[j] = 0.0
    while k + 4 <= f.d:  # four at a time, as what takes long is to read and to write
        one, two, three, four = direction[k], direction[k + 1], direction[k + 2], direction[k + 3]
        for j in range(f.m):
            f.slope[j] = (
                f.slope[j]
                + one * f.corners[k, j]
                + two * f.corners[k + 1, j]
                + three * f.corners[k + 2, j]
                + four * f.corners[k + 3, j]
            )
        k += 4
    while k < f.d:
        one = direction[k]
        for j in range(f.m):
            f.slope[j] += one * f.corners[k, j]
        k += 1


cdef Py_ssize_t _walked(_Facet f) noexcept nogil:
    """Walk along the step: the row that is met first, -1 if none; slacks change, and how long the way was is kept."""
    cdef Py_ssize_t j, which = -1
    cdef double best = INFINITY, other = INFINITY, least = PIVOT
    _along(f, f.step)
    # Nothing here branches by the data, as every second guess of the processor would be wrong: it is what takes long.
    for j in range(f.m):
        f.way[j] = f.slack[j] / max(f.slope[j], least) + (0.0 if f.slope[j] > least else INFINITY)
    for j in range(0, f.m - 1, 2):
        best, other = min(best, f.way[j]), min(other, f.way[j + 1])
    best = min(best, other)
    if f.m % 2:
        best = min(best, f.way[f.m - 1])
    if best < INFINITY:
        which = 0
        while f.way[which] > best:
            which += 1
    f.length = max(0.0, best) if which >= 0 else 0.0
    for j in range(f.m):
        f.slack[j] -= f.length * f.slope[j]
    return which


cdef bint _refresh(_Facet f) noexcept nogil:
    """Facet and slacks computed anew from the basis; False if the basis has no facet or the facet cuts corners off."""
    cdef Py_ssize_t i, j, k
    for i in range(f.d):
        for k in range(f.d):
            f.matrix[i, k] = f.corners[k, f.basis[i]]
    if not _inverted(f.matrix, f.inverse, f.d):
        return False
    for k in range(f.d):
        f.a[k] = 0.0
        for i in range(f.d):
            f.a[k] += f.inverse[k, i] * f.limit[f.basis[i]]
    _along(f, f.a)
    for j in range(f.m):
        f.slack[j] = f.limit[j] - f.slope[j]
        if f.slack[j] < -1e-11:
            return False
    return True


cdef double _norm(const double[::1] vector, Py_ssize_t d) noexcept nogil:
    cdef Py_ssize_t i
    cdef double total = 0.0
    for i in range(d):
        total += vector[i] * vector[i]
    return sqrt(total)


cdef void _orthogonal(double[::1] vector, const double[:, ::1] normals, Py_ssize_t n, Py_ssize_t d) noexcept nogil:
    """Take from a vector what it has along the first n normals: twice, which is enough to rounding."""
    cdef Py_ssize_t i, j
    cdef double along
    for _ in range(2):
        for i in range(n):
            along = 0.0
            for j in range(d):
                along += normals[i, j] * vector[j]
            for j in range(d):
                vector[j] -= along * normals[i, j]


cdef bint _crash(_Facet f) noexcept nogil:
    """Walk from 0 to a vertex, as far along q as the rows met before allow."""
    cdef Py_ssize_t i, j, k, attempt, which, d = f.d
    cdef double size, left = 0.0
    for k in range(d):
        f.a[k] = 0.0
    for j in range(f.m):
        f.slack[j] = f.limit[j]
    for k in range(d):
        for attempt in range(d + 1):
            for i in range(d):
                f.step[i] = f.q[i] if attempt == 0 else f.noise[attempt - 1, i]
            size = _norm(f.step, d)
            _orthogonal(f.step, f.matrix, k, d)
            left = _norm(f.step, d)
            if left > 1e-6 * size and left > 0.0:
                break
        else:
            return False
        for i in range(d):
            f.step[i] /= left
        which = _walked(f)
        if which < 0:
            return False
        f.basis[k] = which
        for i in range(d):
            f.row[i] = f.corners[i, which]
        _orthogonal(f.row, f.matrix, k, d)
        size = _norm(f.row, d)
        if size < 1e-12:
            return False
        for i in range(d):
            f.matrix[k, i] = f.row[i] / size
    return _refresh(f)


cdef bint _is_made(_Facet f) noexcept nogil:
    """Whether the shares do write the point, whatever rounding has done to the inverse."""
    cdef Py_ssize_t i, k
    cdef double rest, total = 0.0
    for i in range(f.d):
        total += f.share[i]
    if total > 1.0 + TOLERANCE:
        return False
    for k in range(f.d):
        rest = f.q[k]
        for i in range(f.d):
            rest -= f.share[i] * f.corners[k, f.basis[i]]
        if fabs(rest) > 1e-10:
            return False
    return True


cdef int _climb(_Facet f) noexcept nogil:
    """Walk from facet to facet until one proves q outside, or until q is between 0 and a facet."""
    cdef Py_ssize_t i, k, leaves, enters, d = f.d
    cdef double value, least, pivot, head
    cdef bint fresh = False
    for _ in range(200 + 40 * d):
        value = 0.0
        for k in range(d):
            value += f.a[k] * f.q[k]
        if value > 1.0 + TOLERANCE:
            if fresh:
                return _OUTSIDE
            if not _refresh(f):
                return _UNSURE
            fresh = True
            continue
        least, leaves = -NEGATIVE, -1
        for i in range(d):
            f.share[i] = 0.0
            for k in range(d):
                f.share[i] += f.inverse[k, i] * f.q[k]
            if f.share[i] < least:
                least, leaves = f.share[i], i
        if leaves < 0:
            if _is_made(f):
                return _INSIDE
            if fresh or not _refresh(f):
                return _UNSURE
            fresh = True
            continue
        fresh = False
        for k in range(d):
            f.step[k] = -f.inverse[k, leaves]
        enters = _walked(f)
        if enters < 0:
            return _UNSURE
        f.slack[enters] = 0.0
        for i in range(d):
            f.row[i] = 0.0
            for k in range(d):
                f.row[i] += f.corners[k, enters] * f.inverse[k, i]
        pivot = f.row[leaves]
        for k in range(d):
            f.a[k] += f.length * f.step[k]
            head = f.inverse[k, leaves] / pivot
            for i in range(d):
                f.inverse[k, i] -= head * f.row[i]
            f.inverse[k, leaves] = head
        f.basis[leaves] = enters
        f.pivots = f.pivots + 1
        if f.pivots % REFRESH == 0 and not _refresh(f):
            return _UNSURE
    return _UNSURE


cdef Py_ssize_t _farthest(
    _Facet f,
    const double[:, ::1] points,
    const int64_t[::1] state,
    double[::1] level,
    const double[:, ::1] map_back,
    double least,
    bint* certain,
) noexcept nogil:
    """Open point farthest along the facet, ties broken along another direction; `certain` if a corner beyond doubt."""
    cdef Py_ssize_t i, j, k, which = -1, n = points.shape[0], d = f.d
    cdef double along, entry, top = -INFINITY, best = -INFINITY, second = 1.0 + TOLERANCE, size = 0.0
    for i in range(n):
        if state[i] == _OPEN or state[i] == _UNSURE:
            along = 0.0
            for k in range(d):
                along += f.a[k] * points[i, k]
            level[i] = along
            top = max(top, along)
    for i in range(n):
        if state[i] == _OPEN or state[i] == _UNSURE:
            if level[i] >= top - 1e-10:
                along = 0.0
                for k in range(d):
                    along += f.noise[0, k] * points[i, k]
                if along > best:
                    if which >= 0:
                        second = max(second, level[which])
                    best, which = along, i
                    continue
            second = max(second, level[i])
    for j in range(map_back.shape[0]):
        entry = 0.0
        for k in range(d):
            entry += map_back[j, k] * f.a[k]
        size += fabs(entry)
    certain[0] = level[which] - second >= least * size
    return which


def grow(
    const double[:, ::1] points,
    const int64_t[::1] order,
    Py_ssize_t first,
    int64_t[::1] state,
    sure,
    double[:, ::1] corners,
    int64_t[::1] member,
    const double[::1] limit,
    Py_ssize_t m,
    const double[:, ::1] noise,
    const double[:, ::1] map_back,
    double least,
    double work,
):
    """Settle points in their order from `first` on, until about `work` products are done.

    Parameters
    ----------
    points : (n, d)
        Points, 0 inside the hull of the corners.
    order, first
        Points to settle and where to begin.
    state, sure : (n,)
        State of each point, and whether a corner is one beyond doubt; changed in place.
    corners, member, limit, m : (d, n), (n,), (n,), int
        Corners by coordinate, their numbers among the points, right-hand sides, how many there are.
    noise : (d, d)
        Directions that break ties.
    map_back : (n_features, d)
        Takes directions back to features.
    least : float
        Distance to all other points, along a direction of 1-norm 1, of a corner beyond doubt.
    work : float
        Products to do.

    Returns
    -------
    (next, m)
        The next place of the order, and the number of corners.
    """
    cdef:
        _Facet f = _Facet(corners, limit, m, noise)
        unsigned char[::1] is_sure = sure.view(np.uint8)
        double[::1] level = np.zeros(points.shape[0])
        Py_ssize_t place = first, d = f.d, p, k, which, tries
        double done = 0.0
        int64_t before
        int code
        bint certain
    with nogil:
        while place < order.shape[0]:
            p = order[place]
            if state[p] == _OPEN:
                if done > work:
                    break
                for k in range(d):
                    f.q[k] = points[p, k]
            tries = 0
            while state[p] == _OPEN:
                if not f.ready:
                    f.ready = _crash(f)
                    done += f.m * d * d
                    if not f.ready:
                        state[p] = _UNSURE
                        break
                before = f.pivots
                code = _climb(f)
                done += (f.pivots - before) * f.m * d + d * d
                if code == _UNSURE:
                    f.ready = False
                    tries += 1
                    if tries > 1:
                        state[p] = _UNSURE
                elif code == _INSIDE:
                    state[p] = _INSIDE
                else:
                    which = _farthest(f, points, state, level, map_back, least, &certain)
                    done += points.shape[0] * d
                    state[which], is_sure[which] = _CORNER, certain
                    for k in range(d):
                        f.corners[k, f.m] = points[which, k]
                    member[f.m] = which
                    f.m += 1
                    f.ready = False
            place += 1
    return place, f.m


def combine(
    const double[:, ::1] points,
    const int64_t[::1] rows,
    Py_ssize_t first,
    double[:, ::1] corners,
    const double[::1] limit,
    Py_ssize_t m,
    const double[:, ::1] noise,
    int64_t[:, ::1] used,
    double[:, ::1] share,
    double work,
):
    """Write points by at most d + 1 corners; from `first` on, until about `work` products are done.

    ``used[k]`` are the corners of point ``rows[k]`` and ``share[k]`` their shares; ``used[k, 0]`` is -1 where this
    failed. Returns the next place of `rows`.

    From a facet and 0, corners enter for 0 or one another until 0 has no share left: the simplex method on the share
    of 0, whose reduced costs are an affine function of the corners.
    """
    cdef:
        _Facet f = _Facet(corners, limit, m, noise)
        Py_ssize_t place = first, d = f.d, k
        double done = 0.0
        int64_t before
        int code
    with nogil:
        while place < rows.shape[0] and done <= work:
            for k in range(d):
                f.q[k] = points[rows[place], k]
            used[place, 0] = -1
            code = _UNSURE
            for _ in range(2):
                if not f.ready:
                    f.ready = _crash(f)
                    done += m * d * d
                if f.ready:
                    before = f.pivots
                    code = _climb(f)
                    done += (f.pivots - before) * m * d + d * d
                    if code != _UNSURE:
                        break
                f.ready = False
            if code == _INSIDE:
                done += m * d * _without_centre(f, place, used, share)
            place += 1
    return place


cdef void _shared(_Facet f, Py_ssize_t point, double[:, ::1] share) noexcept nogil:
    """Shares of the corners and of 0 in a point."""
    cdef Py_ssize_t i, k
    for i in range(f.d + 1):
        share[point, i] = f.whole[i, f.d]
        for k in range(f.d):
            share[point, i] += f.whole[i, k] * f.q[k]


cdef Py_ssize_t _without_centre(
    _Facet f, Py_ssize_t point, int64_t[:, ::1] used, double[:, ::1] share
) noexcept nogil:
    """From the facet and 0 to corners alone; pivots made."""
    cdef Py_ssize_t i, j, k, pivot, enters, leaves, d = f.d, centre = f.d, last = 200 + 40 * f.d
    cdef double best, ratio, factor
    for i in range(d):
        for k in range(d):
            f.matrix[k, i] = f.corners[k, f.basis[i]]
        f.matrix[d, i], f.matrix[i, d] = 1.0, 0.0
        used[point, i] = f.basis[i]
    f.matrix[d, d] = 1.0
    used[point, d] = -1  # 0 itself
    if not _inverted(f.matrix, f.whole, d + 1):
        used[point, 0] = -1
        return 1
    for pivot in range(last):
        _shared(f, point, share)
        if share[point, centre] <= 1e-12:
            # What is left of 0 goes to nobody: the shares of the others are of sum 1 to rounding.
            share[point, centre], used[point, centre] = 0.0, used[point, 0]
            return pivot
        for k in range(d):
            f.row[k] = f.whole[centre, k]
        _along(f, f.row)
        enters = 0
        for j in range(1, f.m):
            if f.slope[j] > f.slope[enters]:
                enters = j
        if f.slope[enters] + f.whole[centre, d] <= 1e-10:
            used[point, 0] = -1
            return pivot
        for k in range(d):
            f.row[k] = f.corners[k, enters]
        f.row[d] = 1.0
        best, leaves = INFINITY, -1
        for i in range(d + 1):
            f.step[i] = 0.0
            for k in range(d + 1):
                f.step[i] += f.whole[i, k] * f.row[k]
            if f.step[i] > PIVOT:
                ratio = max(0.0, share[point, i]) / f.step[i]
                if ratio < best - 1e-14 or (i == centre and ratio <= best + 1e-14):
                    best, leaves = ratio, i
        if leaves < 0:
            used[point, 0] = -1
            return pivot
        factor = 1.0 / f.step[leaves]
        for k in range(d + 1):
            f.whole[leaves, k] *= factor
        for i in range(d + 1):
            if i != leaves:
                for k in range(d + 1):
                    f.whole[i, k] -= f.step[i] * f.whole[leaves, k]
        used[point, leaves] = enters
        if leaves == centre:
            _shared(f, point, share)
            return pivot + 1
    used[point, 0] = -1
    return last
