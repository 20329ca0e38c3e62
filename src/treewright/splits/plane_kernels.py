r"""Compiled linear programs of one plane whose points have their sides: a dual simplex method for kinked costs.

Importing this module imports numba, so it is imported where a fit needs it and not before.

The plane has :math:`f_i = g - h^\top x_i`. A point on the left pays a price for what its value lacks of epsilon, one on
the right for what it is above minus epsilon, and no value is beyond 1 or, on its side, within the least margin:

.. math:: \min\; \alpha \|h\|_1 + \sum_i p_i \max(0, \epsilon - s_i f_i)
   \quad\text{s.t.}\quad s_i f_i \ge m \;(s_i \ne 0),\; |f_i| \le 1,\; |h_j| \le H .

Every variable, a value of a point or an entry of the normal, has three kinks and a slope between each two of them. One
that is not in the basis is at a kink. One that is has the slope of a piece between two of them; it leaves the basis, or
changes its piece, if its value is not there. At first the normal is 0, and all pieces are level. The method needs a
table of points times features alone, where that of a solver has a column for each slack. Programs of a hundred
points take a few tenths of a millisecond. Searches solve many thousands of them, and check what they keep.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from treewright.compiled import njit

__all__ = ["PERTURBED", "best_plane", "value_at"]

PERTURBED = 1e-6
"""By which share prices of features differ from each other, so that ties are few."""

_EXACT = 1e-9
"""By how much values may be beyond a kink."""

_SMALL = 1e-8
"""Entries of the table that are not pivots."""


@njit(cache=True, nogil=True)
def _kinks(v: int, k: int, sides: Any, price: Any, who: Any, limits: Any, kink: Any, slope: Any) -> None:
    """Kinks of a variable, in the order of rows of `kink`, and its slopes before, between and after them."""
    epsilon, least, alpha, largest = limits
    slope[0], slope[3] = -np.inf, np.inf
    if v < k:
        kink[0], kink[1], kink[2] = -largest, 0.0, largest
        own = alpha * (1.0 + PERTURBED * ((v * 0.6180339887) % 1.0))
        slope[1], slope[2] = -own, own
        return
    i = who[v - k]
    if sides[i] > 0:
        kink[0], kink[1], kink[2] = least, epsilon, 1.0
        slope[1], slope[2] = -price[i], 0.0
    elif sides[i] < 0:
        kink[0], kink[1], kink[2] = -1.0, -epsilon, -least
        slope[1], slope[2] = 0.0, price[i]
    else:
        kink[0], kink[1], kink[2] = -1.0, -1.0, 1.0
        slope[1], slope[2] = 0.0, 0.0


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _solved(X: Any, sides: Any, price: Any, who: Any, limits: Any, limit: float, normal: Any, dual: Any) -> Any:
    """Best plane for some of the points, those of `who`, the first of which has a side; as :func:`best_plane`."""
    n, k = len(who), X.shape[1]
    width, m = k + 1, n - 1
    T = np.empty((m, width))
    rows, columns = np.empty(m, dtype=np.int64), np.arange(width)
    x, at, place = np.empty(m), np.zeros(width), np.ones(width, dtype=np.int64)
    piece, kink, slope = np.empty(m, dtype=np.int64), np.empty(3), np.empty(4)
    d, low, high = np.zeros(width), np.empty(width), np.empty(width)
    for c in range(width):
        _kinks(c, k, sides, price, who, limits, kink, slope)
        at[c], low[c], high[c] = kink[1], -slope[2], -slope[1]
    for r in range(m):
        rows[r] = k + 1 + r
        for j in range(k):
            T[r, j] = X[who[0], j] - X[who[r + 1], j]
        T[r, k] = 1.0
        x[r] = at[k]
        piece[r] = 2 if sides[who[r + 1]] >= 0 else 1  # the one without a slope
    bound = 0.0
    for _ in range(50 * (width + 20)):
        worst, b, up = _EXACT, -1, 0.0
        for r in range(m):
            _kinks(rows[r], k, sides, price, who, limits, kink, slope)
            short, over = kink[piece[r] - 1] - x[r], x[r] - kink[piece[r]]
            if short > worst:
                worst, b, up = short, r, 1.0
            if over > worst:
                worst, b, up = over, r, -1.0
        if b < 0:
            break
        _kinks(rows[b], k, sides, price, who, limits, kink, slope)
        own = slope[piece[b]]
        beyond = slope[piece[b] - 1] if up > 0 else slope[piece[b] + 1]
        jump = abs(own - beyond)
        q, step = _entering(T, b, up, d, low, high, width)
        if q < 0 and np.isinf(jump):
            return np.inf, 0.0
        bound += min(step, jump) * worst
        if bound > limit:
            return np.inf, 0.0
        for c in range(width):
            d[c] -= up * min(step, jump) * T[b, c]
        if jump <= step:  # its next piece is steep enough
            piece[b] -= int(up)
            continue
        to = piece[b] - 1 if up > 0 else piece[b]
        move = (kink[to] - x[b]) / T[b, q]
        for r in range(m):
            x[r] += T[r, q] * move
        # A reduced cost that has risen to its limit is level with the piece below the kink, else with that above.
        below = -up * T[b, q] > 0
        leaves = rows[b]
        rows[b], x[b], piece[b] = columns[q], at[q] + move, place[q] if below else place[q] + 1
        columns[q], at[q], place[q], low[q], high[q] = leaves, kink[to], to, -slope[to + 1], -slope[to]
        d[q] = up * step - own
        _pivoted(T, m, width, b, q)
    else:
        return np.inf, 0.0
    for j in range(k):
        normal[j] = 0.0
    for i in range(n):
        dual[who[i]] = 0.0
    for r in range(m):
        if rows[r] < k:
            normal[rows[r]] = x[r]
        else:
            _kinks(rows[r], k, sides, price, who, limits, kink, slope)
            dual[who[rows[r] - k]] = -slope[piece[r]]
    offset = 0.0
    for c in range(width):
        if columns[c] < k:
            normal[columns[c]] = at[c]
    for c in range(width):
        if columns[c] >= k:
            i = who[columns[c] - k]
            dual[i], offset = d[c], at[c]
            for j in range(k):
                offset += X[i, j] * normal[j]
    return bound, offset


@njit(cache=True, nogil=True)
def value_at(X: Any, i: int, normal: Any, offset: float) -> float:
    """Value of a point at a plane."""
    value = offset
    for j in range(len(normal)):
        value -= X[i, j] * normal[j]
    return value


@njit(cache=True, nogil=True)
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
        What the optimum would cost more for a unit more of the kink that holds the value of a point: positive for
        points on the left that hold the plane up, negative for those on the right.

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
    epsilon, least, alpha, largest = limits
    who = np.empty(n, dtype=np.int64)
    m = 0
    for i in range(n):
        dual[i] = 0.0
        if sides[i] != 0:
            who[m] = i
            m += 1
    if m == 0:
        normal[:] = 0.0
        return 0.0, 1.0
    for attempt in range(2):
        bound, offset = _solved(X, sides, price, who[:m], limits, limit, normal, dual)
        if np.isinf(bound):
            return np.inf, 0.0
        cost, beyond = 0.0, False
        for j in range(k):
            if abs(normal[j]) < 1e-9:
                normal[j] = 0.0
            cost += alpha * abs(normal[j])
        for i in range(n):
            value = value_at(X, i, normal, offset)
            beyond = beyond or abs(value) > 1.0 + 2e-9
            if sides[i] != 0:
                away = value * sides[i]
                if away < least - 1e-8:  # rounding has gone too far
                    return np.inf, 0.0
                cost += price[i] * max(0.0, epsilon - away)
        if not beyond:
            return cost, offset
        if attempt == 1 or m == n:
            break
        # Points without a side seldom matter; where they do, all are looked at.
        for i in range(n):
            if sides[i] == 0:
                who[m] = i
                m += 1
    return np.inf, 0.0
