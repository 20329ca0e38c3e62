r"""Compiled linear programs of one plane whose points have their sides: a dual simplex method for kinked costs.

Importing this module imports numba, so it is imported where a fit needs it and not before.

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

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from treewright.core.compiled import njit

__all__ = ["PERTURBED", "best_plane", "value_at"]

PERTURBED = 1e-6
"""By which share prices of features differ from each other, so that ties are few."""

_EXACT = 1e-9
"""By how much values may be beyond a kink."""

_SMALL = 1e-8
"""Entries of the table that are not pivots."""

_ABSENT = np.iinfo(np.int64).max
"""Seat of a variable that is not in the program."""

_AWAY, _JOINING = 0.8, 5
"""Points that are away from where they should be by this share of the worst one join a program, so many at a time."""


class Vertex(NamedTuple):
    """A program of some of the points, at one of its vertices: variables in the basis have rows, others columns."""

    T: Any
    """What variables with rows change by as those with columns do."""
    rows: Any
    columns: Any
    x: Any
    """Values of the variables of rows."""
    at: Any
    """Values of the variables of columns."""
    piece: Any
    """Piece between two kinks that each of the former has the slope of, and the ends of that piece."""
    place: Any
    """Kink that each of the latter is at."""
    ends: Any
    d: Any
    """Reduced costs of columns, and the limits of what they may be."""
    low: Any
    high: Any
    seat: Any
    """Row of a variable, or -1 - c for column c."""


@njit(nogil=True)
def _kinks(v: int, k: int, sides: Any, price: Any, limits: Any, kink: Any, slope: Any) -> None:
    """Kinks of a variable, in the order of rows of `kink`, and its slopes before, between and after them."""
    epsilon, least, alpha, largest = limits
    slope[0], slope[3] = -np.inf, np.inf
    if v < k:
        kink[0], kink[1], kink[2] = -largest, 0.0, largest
        own = alpha * (1.0 + PERTURBED * ((v * 0.6180339887) % 1.0))
        slope[1], slope[2] = -own, own
        return
    i = v - k
    if sides[i] > 0:
        kink[0], kink[1], kink[2] = least, epsilon, 1.0
        slope[1], slope[2] = -price[i], 0.0
    elif sides[i] < 0:
        kink[0], kink[1], kink[2] = -1.0, -epsilon, -least
        slope[1], slope[2] = 0.0, price[i]
    else:
        kink[0], kink[1], kink[2] = -1.0, -1.0, 1.0
        slope[1], slope[2] = 0.0, 0.0


@njit(nogil=True)
def _entering(T: Any, b: int, up: float, d: Any, low: Any, high: Any, width: int) -> Any:
    """Column whose reduced cost reaches a limit first as row b is pushed, and by how much it is pushed then."""
    first = np.inf
    for c in range(width):
        rate = -up * T[b, c]
        if abs(rate) > _SMALL:
            room = (high[c] - d[c]) if rate > 0 else (low[c] - d[c])
            first = min(first, max(0.0, room / rate) + 1e-10 / abs(rate))
    column, size, step = -1, 0.0, np.inf
    for c in range(width):
        rate = -up * T[b, c]
        if abs(rate) > _SMALL:
            room = (high[c] - d[c]) if rate > 0 else (low[c] - d[c])
            ratio = max(0.0, room / rate)
            if ratio <= first and abs(rate) > size:
                column, size, step = c, abs(rate), ratio
    return column, step


@njit(nogil=True)
def _pivoted(T: Any, m: int, width: int, b: int, q: int) -> None:
    """Exchange the variable of row b for that of column q."""
    pivot = T[b, q]
    for c in range(width):
        T[b, c] = -T[b, c] / pivot
    T[b, q] = 1.0 / pivot
    for i in range(m):
        factor = T[i, q]
        if i != b and factor != 0.0:
            T[i, q] = 0.0
            for c in range(width):
                T[i, c] += factor * T[b, c]


@njit(nogil=True)
def _ready(X: Any, sides: Any, price: Any, limits: Any, first: int) -> Vertex:
    """The program of a point alone, with the normal 0: all other variables are at a kink."""
    (n, k), width = X.shape, X.shape[1] + 1
    vertex = Vertex(
        T=np.empty((n, width)),
        rows=np.empty(n, dtype=np.int64),
        columns=np.arange(width),
        x=np.empty(n),
        at=np.zeros(width),
        piece=np.empty(n, dtype=np.int64),
        place=np.ones(width, dtype=np.int64),
        ends=np.empty((n, 2)),
        d=np.zeros(width),
        low=np.empty(width),
        high=np.empty(width),
        seat=np.full(k + n, _ABSENT, dtype=np.int64),
    )
    vertex.columns[k] = k + first
    kink, slope = np.empty(3), np.empty(4)
    for c in range(width):
        v = vertex.columns[c]
        _kinks(v, k, sides, price, limits, kink, slope)
        vertex.at[c], vertex.low[c], vertex.high[c] = kink[1], -slope[2], -slope[1]
        vertex.seat[v] = -1 - c
    return vertex


@njit(nogil=True)
def _joins(X: Any, sides: Any, price: Any, limits: Any, vertex: Vertex, m: int, i: int, first: int) -> None:
    """Give the value of a point the row m, on its piece without a slope."""
    k, width = X.shape[1], X.shape[1] + 1
    kink, slope = np.empty(3), np.empty(4)
    vertex.T[m] = 0.0
    vertex.x[m] = 0.0
    for j in range(width):  # its value is that of the first point and the normal times what they differ by
        factor = X[first, j] - X[i, j] if j < k else 1.0
        s = vertex.seat[j if j < k else k + first]
        if factor == 0.0:
            continue
        if s < 0:
            vertex.T[m, -1 - s] += factor
            vertex.x[m] += factor * vertex.at[-1 - s]
        else:
            for c in range(width):
                vertex.T[m, c] += factor * vertex.T[s, c]
            vertex.x[m] += factor * vertex.x[s]
    vertex.rows[m], vertex.seat[k + i] = k + i, m
    vertex.piece[m] = 2 if sides[i] >= 0 else 1
    _kinks(k + i, k, sides, price, limits, kink, slope)
    vertex.ends[m, 0], vertex.ends[m, 1] = kink[vertex.piece[m] - 1], kink[vertex.piece[m]]


@njit(nogil=True)
def _turned(k: int, sides: Any, price: Any, limits: Any, limit: float, vertex: Vertex, m: int, bound: float) -> float:
    """Pivot until the points that have rows are where their pieces say; what that costs, infinite beyond the limit."""
    width = k + 1
    kink, slope = np.empty(3), np.empty(4)
    T, rows, columns, x, at, piece, place, ends, d, low, high, seat = vertex
    for _ in range(50 * (width + 20)):
        worst, b, up = _EXACT, -1, 0.0
        for r in range(m):
            short, over = ends[r, 0] - x[r], x[r] - ends[r, 1]
            if short > worst:
                worst, b, up = short, r, 1.0
            if over > worst:
                worst, b, up = over, r, -1.0
        if b < 0:
            return bound
        _kinks(rows[b], k, sides, price, limits, kink, slope)
        own = slope[piece[b]]
        beyond = slope[piece[b] - 1] if up > 0 else slope[piece[b] + 1]
        jump = abs(own - beyond)
        q, step = _entering(T, b, up, d, low, high, width)
        if np.isinf(step) and np.isinf(jump):  # nothing can give way: no plane has this point where it must be
            return np.inf
        bound += min(step, jump) * worst
        if bound > limit:
            return np.inf
        for c in range(width):
            d[c] -= up * min(step, jump) * T[b, c]
        if jump <= step:  # its next piece is steep enough
            piece[b] -= int(up)
            ends[b, 0], ends[b, 1] = kink[piece[b] - 1], kink[piece[b]]
            continue
        to = piece[b] - 1 if up > 0 else piece[b]
        move = (kink[to] - x[b]) / T[b, q]
        for r in range(m):
            x[r] += T[r, q] * move
        # A reduced cost that has risen to its limit is level with the piece below the kink, else with that above.
        below = -up * T[b, q] > 0
        leaves, enters = rows[b], columns[q]
        rows[b], x[b], piece[b] = enters, at[q] + move, place[q] if below else place[q] + 1
        columns[q], at[q], place[q], low[q], high[q] = leaves, kink[to], to, -slope[to + 1], -slope[to]
        seat[leaves], seat[enters] = -1 - q, b
        d[q] = up * step - own
        _kinks(enters, k, sides, price, limits, kink, slope)
        ends[b, 0], ends[b, 1] = kink[piece[b] - 1], kink[piece[b]]
        _pivoted(T, m, width, b, q)
    return np.inf


@njit(nogil=True)
def _read(X: Any, vertex: Vertex, normal: Any) -> float:
    """Normal of the plane, and its offset."""
    k = X.shape[1]
    for j in range(k):
        s = vertex.seat[j]
        normal[j] = vertex.x[s] if s >= 0 else vertex.at[-1 - s]
    c = 0
    while vertex.columns[c] < k:  # there is a point among them: a column more than features
        c += 1
    offset = vertex.at[c]
    for j in range(k):
        offset += X[vertex.columns[c] - k, j] * normal[j]
    return float(offset)


@njit(nogil=True)
def _solved(X: Any, sides: Any, price: Any, limits: Any, limit: float, normal: Any, dual: Any) -> Any:
    """Best plane, and what it costs, where points that do not matter never come into the program.

    Those with a dual come first, others as the plane does not have them where they should be.
    """
    n, k = X.shape
    epsilon = limits[0]
    first = -1
    for i in range(n):
        if sides[i] != 0 and (first < 0 or (dual[i] != 0.0 and dual[first] == 0.0)):
            first = i
    if first < 0:
        normal[:] = 0.0
        dual[:] = 0.0
        return 0.0, 1.0
    vertex = _ready(X, sides, price, limits, first)
    m, bound, offset, away = 0, 0.0, 0.0, np.empty(n)
    for i in range(n):
        if dual[i] != 0.0 and sides[i] != 0 and i != first:
            _joins(X, sides, price, limits, vertex, m, i, first)
            m += 1
    while True:
        bound = _turned(k, sides, price, limits, limit, vertex, m, bound)
        if np.isinf(bound):
            return np.inf, 0.0
        offset = _read(X, vertex, normal)
        worst = 0.0
        for i in range(n):
            away[i] = 0.0
            if vertex.seat[k + i] == _ABSENT:
                value = value_at(X, i, normal, offset)
                away[i] = abs(value) - 1.0 if sides[i] == 0 else max(epsilon - sides[i] * value, abs(value) - 1.0)
                worst = max(worst, away[i])
        if worst <= _EXACT:
            break
        some = 0
        for i in range(n):
            if away[i] > _EXACT and away[i] >= _AWAY * worst and some < _JOINING:
                _joins(X, sides, price, limits, vertex, m, i, first)
                m += 1
                some += 1
    kink, slope = np.empty(3), np.empty(4)
    dual[:] = 0.0
    for c in range(k + 1):
        if vertex.columns[c] >= k:
            dual[vertex.columns[c] - k] = vertex.d[c]
    for r in range(m):
        if vertex.rows[r] >= k:
            _kinks(vertex.rows[r], k, sides, price, limits, kink, slope)
            dual[vertex.rows[r] - k] = -slope[vertex.piece[r]]
    return bound, offset


@njit(nogil=True)
def value_at(X: Any, i: int, normal: Any, offset: float) -> float:
    """Value of a point at a plane."""
    value = offset
    for j in range(len(normal)):
        value -= X[i, j] * normal[j]
    return value


@njit(nogil=True)
def best_plane(X: Any, sides: Any, price: Any, limits: Any, limit: float, normal: Any, dual: Any) -> Any:
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
    n, k = X.shape
    epsilon, least, alpha, _ = limits
    bound, offset = _solved(X, sides, price, limits, limit, normal, dual)
    if np.isinf(bound):
        return np.inf, 0.0
    cost = 0.0
    for j in range(k):
        if abs(normal[j]) < 1e-9:
            normal[j] = 0.0
        cost += alpha * abs(normal[j])
    for i in range(n):
        value = value_at(X, i, normal, offset)
        away = value * sides[i]
        if abs(value) > 1.0 + 2e-9 or (sides[i] != 0 and away < least - 1e-8):  # rounding has gone too far
            return np.inf, 0.0
        if sides[i] != 0:
            cost += price[i] * max(0.0, epsilon - away)
    return cost, offset
