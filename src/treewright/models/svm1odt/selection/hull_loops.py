r"""Compiled loops of the convex hull. Importing it imports numba: import it where it is needed.

With c = 0 inside the hull of the corners :math:`v_1, \dots, v_m` found so far, a point q is inside of it if and only if

.. math:: \max_a \{ a^\top q : a^\top v_j \le 1 \;\forall j \} \le 1 ,

a program in as many variables as there are dimensions. Its vertices are facets: a basis is d corners with a common
supporting hyperplane, and the multipliers of an optimum write q by these corners and c. All points have the same rows,
so each program starts from the facet where the last one ended. A facet with :math:`a^\top q > 1` proves that q is
outside, and the farthest point along a is then a corner that was not known.

Right-hand sides are raised by less than 1e-10, each by its own amount, so that facets of more than d corners make no
ties. Corners are kept by coordinate, the long loops run along them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from treewright.core.compiled import njit

__all__ = ["combine", "grow"]

OPEN, INSIDE, CORNER, UNSURE = 0, 1, 2, 3
"""States of points."""

_OUTSIDE = 4
# Half of what HiGHS is given, so that what is inside here is inside there.
_TOLERANCE = 5e-10
_NEGATIVE = 1e-11
_PIVOT = 1e-9
_REFRESH = 40


@njit(nogil=True)
def _inverted(matrix: Any, inverse: Any) -> bool:
    """Invert a small matrix by elimination with pivoting; False if it is singular."""
    n = len(matrix)
    work = matrix.copy()
    inverse[:, :] = 0.0
    for i in range(n):
        inverse[i, i] = 1.0
    for k in range(n):
        p = k
        for i in range(k + 1, n):
            if abs(work[i, k]) > abs(work[p, k]):
                p = i
        if abs(work[p, k]) < 1e-13:
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


@njit(nogil=True)
def _along(corners: Any, m: int, direction: Any, out: Any) -> None:
    """Positions of the first m corners along a direction."""
    for j in range(m):
        out[j] = 0.0
    for k in range(len(direction)):
        factor = direction[k]
        if factor != 0.0:
            for j in range(m):
                out[j] += factor * corners[k, j]


@njit(nogil=True)
def _walked(corners: Any, m: int, step: Any, slack: Any, slope: Any) -> Any:
    """Walk along a step: the row that is met first, -1 if none, and how long the way was; slacks change in place."""
    _along(corners, m, step, slope)
    best, which = np.inf, -1
    for j in range(m):
        if slope[j] > _PIVOT and slack[j] / slope[j] < best:
            best, which = slack[j] / slope[j], j
    length = max(0.0, best) if which >= 0 else 0.0
    for j in range(m):
        slack[j] -= length * slope[j]
    return which, length


@njit(nogil=True)
def _refresh(corners: Any, limit: Any, m: int, basis: Any, inverse: Any, a: Any, slack: Any, slope: Any) -> bool:
    """Facet and slacks computed anew from the basis; False if the basis has no facet or the facet cuts corners off."""
    d = len(basis)
    matrix = np.empty((d, d))
    for i in range(d):
        for k in range(d):
            matrix[i, k] = corners[k, basis[i]]
    if not _inverted(matrix, inverse):
        return False
    for k in range(d):
        a[k] = 0.0
        for i in range(d):
            a[k] += inverse[k, i] * limit[basis[i]]
    _along(corners, m, a, slope)
    for j in range(m):
        slack[j] = limit[j] - slope[j]
        if slack[j] < -1e-11:
            return False
    return True


@njit(nogil=True)
def _crash(
    corners: Any, limit: Any, m: int, q: Any, noise: Any, basis: Any, inverse: Any, a: Any, slack: Any, slope: Any
) -> bool:
    """Walk from 0 to a vertex, as far along q as the rows met before allow."""
    d = len(basis)
    normals = np.zeros((d, d))
    step = np.empty(d)
    a[:] = 0.0
    for j in range(m):
        slack[j] = limit[j]
    for k in range(d):
        for attempt in range(d + 1):
            for i in range(d):
                step[i] = q[i] if attempt == 0 else noise[attempt - 1, i]
            size = np.sqrt((step * step).sum())
            for _ in range(2):  # twice is enough for orthogonality to rounding
                for i in range(k):
                    step -= (normals[i] * step).sum() * normals[i]
            left = np.sqrt((step * step).sum())
            if left > 1e-6 * size and left > 0.0:
                break
        else:
            return False
        step /= left
        which, _ = _walked(corners, m, step, slack, slope)
        if which < 0:
            return False
        basis[k] = which
        normal = corners[:, which].copy()
        for _ in range(2):
            for i in range(k):
                normal -= (normals[i] * normal).sum() * normals[i]
        size = np.sqrt((normal * normal).sum())
        if size < 1e-12:
            return False
        normals[k] = normal / size
    return _refresh(corners, limit, m, basis, inverse, a, slack, slope)


@njit(nogil=True)
def _is_made(corners: Any, basis: Any, share: Any, q: Any) -> bool:
    """Whether the shares do write the point, whatever rounding has done to the inverse."""
    total = 0.0
    for i in range(len(basis)):
        total += share[i]
    if total > 1.0 + _TOLERANCE:
        return False
    for k in range(len(q)):
        rest = q[k]
        for i in range(len(basis)):
            rest -= share[i] * corners[k, basis[i]]
        if abs(rest) > 1e-10:
            return False
    return True


@njit(nogil=True)
def _climb(
    corners: Any,
    limit: Any,
    m: int,
    q: Any,
    basis: Any,
    inverse: Any,
    a: Any,
    slack: Any,
    slope: Any,
    share: Any,
    pivots: Any,
) -> int:
    """Walk from facet to facet until one proves q outside, or until q is between 0 and a facet."""
    d = len(basis)
    step, row = np.empty(d), np.empty(d)
    fresh = False
    for _ in range(200 + 40 * d):
        value = 0.0
        for k in range(d):
            value += a[k] * q[k]
        if value > 1.0 + _TOLERANCE:
            if fresh:
                return _OUTSIDE
            if not _refresh(corners, limit, m, basis, inverse, a, slack, slope):
                return UNSURE
            fresh = True
            continue
        least, leaves = -_NEGATIVE, -1
        for i in range(d):
            share[i] = 0.0
            for k in range(d):
                share[i] += inverse[k, i] * q[k]
            if share[i] < least:
                least, leaves = share[i], i
        if leaves < 0:
            if _is_made(corners, basis, share, q):
                return INSIDE
            if fresh or not _refresh(corners, limit, m, basis, inverse, a, slack, slope):
                return UNSURE
            fresh = True
            continue
        fresh = False
        for k in range(d):
            step[k] = -inverse[k, leaves]
        enters, length = _walked(corners, m, step, slack, slope)
        if enters < 0:
            return UNSURE
        slack[enters] = 0.0
        for i in range(d):
            row[i] = 0.0
            for k in range(d):
                row[i] += corners[k, enters] * inverse[k, i]
        pivot = row[leaves]
        for k in range(d):
            a[k] += length * step[k]
            head = inverse[k, leaves] / pivot
            for i in range(d):
                inverse[k, i] -= head * row[i]
            inverse[k, leaves] = head
        basis[leaves] = enters
        pivots[0] += 1
        if pivots[0] % _REFRESH == 0 and not _refresh(corners, limit, m, basis, inverse, a, slack, slope):
            return UNSURE
    return UNSURE


@njit(nogil=True)
def _farthest(points: Any, state: Any, a: Any, tie: Any, level: Any, map_back: Any, least: float) -> Any:
    """Open point farthest along a, ties broken along another direction, and whether it is a corner beyond doubt."""
    n, d = points.shape
    top = -np.inf
    for i in range(n):
        if state[i] == OPEN or state[i] == UNSURE:
            level[i] = 0.0
            for k in range(d):
                level[i] += a[k] * points[i, k]
            top = max(top, level[i])
    best, which = -np.inf, -1
    second = 1.0 + _TOLERANCE
    for i in range(n):
        if state[i] == OPEN or state[i] == UNSURE:
            if level[i] >= top - 1e-10:
                along = 0.0
                for k in range(d):
                    along += tie[k] * points[i, k]
                if along > best:
                    if which >= 0:
                        second = max(second, level[which])
                    best, which = along, i
                    continue
            second = max(second, level[i])
    size = 0.0
    for j in range(len(map_back)):
        entry = 0.0
        for k in range(d):
            entry += map_back[j, k] * a[k]
        size += abs(entry)
    return which, level[which] - second >= least * size


@njit("f8** i8* i8 i8* b1* f8** i8* f8* i8 f8** f8** f8 f8", nogil=True)
def grow(
    points: Any,
    order: Any,
    first: int,
    state: Any,
    sure: Any,
    corners: Any,
    member: Any,
    limit: Any,
    m: int,
    noise: Any,
    map_back: Any,
    least: float,
    work: float,
) -> Any:
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
    n, d = points.shape
    basis, a, share = np.zeros(d, np.int64), np.zeros(d), np.zeros(d)
    inverse = np.zeros((d, d))
    slack, slope, level = np.zeros(n), np.zeros(n), np.zeros(n)
    pivots = np.zeros(1, np.int64)
    ready, done = False, 0.0
    for place in range(first, len(order)):
        p = order[place]
        if state[p] != OPEN:
            continue
        if done > work:
            return place, m
        q = points[p].copy()
        tries = 0
        while state[p] == OPEN:
            if not ready:
                ready = _crash(corners, limit, m, q, noise, basis, inverse, a, slack, slope)
                done += m * d * d
                if not ready:
                    state[p] = UNSURE
                    break
            before = pivots[0]
            code = _climb(corners, limit, m, q, basis, inverse, a, slack, slope, share, pivots)
            done += (pivots[0] - before) * m * d + d * d
            if code == UNSURE:
                ready = False
                tries += 1
                if tries > 1:
                    state[p] = UNSURE
            elif code == INSIDE:
                state[p] = INSIDE
            else:
                which, certain = _farthest(points, state, a, noise[0], level, map_back, least)
                done += n * d
                state[which], sure[which] = CORNER, certain
                for k in range(d):
                    corners[k, m] = points[which, k]
                member[m] = which
                m += 1
                ready = False
    return len(order), m


@njit("f8** i8* i8 f8** f8* i8 f8** i8** f8** f8", nogil=True)
def combine(
    points: Any, rows: Any, first: int, corners: Any, limit: Any, m: int, noise: Any, used: Any, share: Any, work: float
) -> int:
    """Write points by at most d + 1 corners; from `first` on, until about `work` products are done.

    ``used[k]`` are the corners of point ``rows[k]`` and ``share[k]`` their shares; ``used[k, 0]`` is -1 where this
    failed. Returns the next place of `rows`.

    From a facet and 0, corners enter for 0 or one another until 0 has no share left: the simplex method on the share
    of 0, whose reduced costs are an affine function of the corners.
    """
    d = points.shape[1]
    n = corners.shape[1]
    basis, a, inverse = np.zeros(d, np.int64), np.zeros(d), np.zeros((d, d))
    slack, slope, part = np.zeros(n), np.zeros(n), np.zeros(d)
    pivots = np.zeros(1, np.int64)
    ready, done = False, 0.0
    for k in range(first, len(rows)):
        if done > work:
            return k
        q = points[rows[k]].copy()
        used[k, 0] = -1
        code = UNSURE
        for _ in range(2):
            if not ready:
                ready = _crash(corners, limit, m, q, noise, basis, inverse, a, slack, slope)
                done += m * d * d
            if ready:
                before = pivots[0]
                code = _climb(corners, limit, m, q, basis, inverse, a, slack, slope, part, pivots)
                done += (pivots[0] - before) * m * d + d * d
                if code != UNSURE:
                    break
            ready = False
        if code == INSIDE:
            done += m * d * _without_centre(corners, m, q, basis, used[k], share[k], slope)
    return len(rows)


@njit(nogil=True)
def _without_centre(corners: Any, m: int, q: Any, facet: Any, used: Any, share: Any, slope: Any) -> int:
    """From a facet and 0 to corners alone; pivots made."""
    d = len(q)
    matrix, inverse = np.ones((d + 1, d + 1)), np.empty((d + 1, d + 1))
    for i in range(d):
        for k in range(d):
            matrix[k, i] = corners[k, facet[i]]
        used[i] = facet[i]
    matrix[:d, d] = 0.0
    used[d] = -1  # 0 itself
    centre = d
    step, column = np.empty(d + 1), np.empty(d + 1)
    column[d] = 1.0
    if not _inverted(matrix, inverse):
        used[0] = -1
        return 1
    for pivot in range(200 + 40 * d):
        for i in range(d + 1):
            share[i] = inverse[i, d]
            for k in range(d):
                share[i] += inverse[i, k] * q[k]
        if share[centre] <= 1e-12:
            # What is left of 0 goes to nobody: the shares of the others are of sum 1 to rounding.
            share[centre], used[centre] = 0.0, used[0] if centre else used[1]
            return pivot
        _along(corners, m, inverse[centre, :d], slope)
        enters = 0
        for j in range(1, m):
            if slope[j] > slope[enters]:
                enters = j
        if slope[enters] + inverse[centre, d] <= 1e-10:
            used[0] = -1
            return pivot
        for k in range(d):
            column[k] = corners[k, enters]
        best, leaves = np.inf, -1
        for i in range(d + 1):
            step[i] = 0.0
            for k in range(d + 1):
                step[i] += inverse[i, k] * column[k]
            if step[i] > _PIVOT:
                ratio = max(0.0, share[i]) / step[i]
                if ratio < best - 1e-14 or (i == centre and ratio <= best + 1e-14):
                    best, leaves = ratio, i
        if leaves < 0:
            used[0] = -1
            return pivot
        factor = 1.0 / step[leaves]
        for k in range(d + 1):
            inverse[leaves, k] *= factor
        for i in range(d + 1):
            if i != leaves:
                for k in range(d + 1):
                    inverse[i, k] -= step[i] * inverse[leaves, k]
        used[leaves] = enters
        if leaves == centre:
            for i in range(d + 1):
                share[i] = inverse[i, d]
                for k in range(d):
                    share[i] += inverse[i, k] * q[k]
            return pivot + 1
    used[0] = -1
    return 200 + 40 * d
