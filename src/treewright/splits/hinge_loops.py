"""Compiled loops over planes with margins: the exact minimum along a line, and a pass over all coordinates.

Importing this module imports numba, so it is imported where a fit needs it and not before.

A plane is ``f(x) = g - h @ x``; a point goes left where ``f >= 0``. Along a line the values of points are
``f + v * rate``. Sides jump where a value is 0, the tent ``max(0, epsilon - |f|)`` of a point has three kinks, the norm
has one a feature: between these places the cost is linear, so that one sweep over them in order finds the minimum.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from treewright.core.compiled import njit

__all__ = ["line_minimum", "narrowed", "pass_over", "plane_cost"]


@njit("f8* f8* f8* f8 f8", nogil=True)
def plane_cost(f: Any, stake: Any, toll: Any, epsilon: float, margin: float) -> float:
    """Stakes of the points on the left plus tents; infinite where a point is nearer to the plane than the margin."""
    total = 0.0
    for i in range(len(f)):
        distance = abs(f[i])
        if distance < margin:
            return np.inf
        if f[i] > 0:
            total += stake[i]
        if distance < epsilon:
            total += toll[i] * (epsilon - distance)
    return total


@njit(nogil=True)
def line_minimum(
    f: Any, rate: Any, stake: Any, toll: Any, epsilon: float, kink: float, force: float, low: float, high: float
) -> Any:
    """Best v in [low, high] for values ``f + v * rate``: place and cost, to which ``force * |v - kink|`` adds.

    Of a range of equally good places the middle is taken. Places at which a point is on the plane are left out, peaks
    of its tent. The cost is that of the sweep, subject to rounding.
    """
    m = len(f)
    place = np.empty(3 * m + 1)
    jump = np.zeros(3 * m + 1)
    bend = np.zeros(3 * m + 1)
    cost, slope, n, on_it = 0.0, 0.0, 0, False
    for i in range(m):
        start = f[i] + low * rate[i]
        away = abs(start)
        on_it = on_it or away < 1e-12
        if start > 0 or (start == 0 and rate[i] > 0):
            cost += stake[i]
        if away < epsilon:
            cost += toll[i] * (epsilon - away)
        if rate[i] == 0:
            continue
        steep = abs(rate[i])
        centre, width = -f[i] / rate[i], epsilon / steep
        if centre - width > high:
            continue
        push = toll[i] * steep
        for part in range(3):
            at = centre + (part - 1) * width
            turn = -2.0 * push if part == 1 else push
            if at <= low:
                slope += turn
            elif at <= high:
                place[n] = at
                bend[n] = turn
                if part == 1:
                    jump[n] = stake[i] if rate[i] > 0 else -stake[i]
                n += 1
    cost += force * abs(low - kink)
    if kink <= low:
        slope += force
    else:
        slope -= force
        if kink <= high:
            place[n] = kink
            bend[n] = 2.0 * force
            n += 1
    order = np.argsort(place[:n])
    best, first, last, flat = np.inf, low, low, False
    position, here = 0, low
    if not on_it:
        best, flat = cost, True
    while True:
        # From here to the next place, at which several points may turn.
        there = place[order[position]] if position < n else high
        slack = 1e-12 * max(1.0, abs(cost))
        flat = flat and abs(slope) * (there - here) <= slack
        cost += slope * (there - here)
        here = there
        crossed, step, turn = False, 0.0, 0.0
        while position < n and place[order[position]] <= here + 1e-12:
            step += jump[order[position]]
            turn += bend[order[position]]
            crossed = crossed or bend[order[position]] < 0
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
            return 0.5 * (first + last), best


@njit(nogil=True)
def narrowed(low: float, high: float, f: float, rate: float) -> Any:
    """The part of [low, high] in which a value that moves along a line, and does move, stays within [-1, 1]."""
    one, other = (-1.0 - f) / rate, (1.0 - f) / rate
    return max(low, min(one, other)), min(high, max(one, other))


@njit(nogil=True)
def _room(f: Any, rate: Any, counts: Any) -> Any:
    """The range of v in which all values stay within [-1, 1]."""
    low, high = -np.inf, np.inf
    for i in range(len(f)):
        if not counts[i] or rate[i] == 0:
            continue
        low, high = narrowed(low, high, f[i], rate[i])
    return low, high


@njit(nogil=True)
def _along(f: Any, rate: Any, whole: Any, rows: Any, stake: Any, toll: Any, bounds: Any, line: Any) -> Any:
    """Best v along a line within its range and where no value leaves [-1, 1]; its exact cost without the norm.

    `whole` marks the points, of all, that the plane has a value for; the `line` is kink, force and range.
    """
    epsilon, margin = bounds
    kink, force, low, high = line
    least, most = _room(f, rate, whole)
    low, high = max(low, least), min(high, most)
    if not (low < high and np.isfinite(low) and np.isfinite(high)):
        return 0.0, np.inf
    size = len(rows)
    values, rates, stakes, tolls = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    m, aside = 0, 0.0
    for k in range(size):
        i = rows[k]
        if whole[i]:
            values[m] = f[i]
            rates[m] = rate[i]
            stakes[m] = stake[k]
            tolls[m] = toll[k]
            m += 1
        else:
            aside += stake[k]
    values, rates, stakes, tolls = values[:m], rates[:m], stakes[:m], tolls[:m]
    v, _ = line_minimum(values, rates, stakes, tolls, epsilon, kink, force, low, high)
    for k in range(m):
        values[k] += v * rates[k]
    # Points without a value go to the side that is cheaper for all of them.
    return v, plane_cost(values, stakes, tolls, epsilon, margin) + min(0.0, aside)


@njit(nogil=True)
def _values(X: Any, absent: Any, normal: Any, offset: float, f: Any, missing: Any) -> None:
    """Values of all points, and how many values that a normal uses each of them lacks."""
    n, p = X.shape
    gaps = len(absent) > 0
    for i in range(n):
        f[i] = offset
        missing[i] = 0
    for j in range(p):
        if normal[j] != 0:
            for i in range(n):
                f[i] -= normal[j] * X[i, j]
                if gaps and absent[i, j]:
                    missing[i] += 1


@njit(nogil=True)
def _line(X: Any, absent: Any, j: int, old: float, f: Any, missing: Any, rate: Any, whole: Any) -> None:
    """How fast values move along a line, and which points have one off its start."""
    n, p = X.shape
    gaps = len(absent) > 0
    for i in range(n):
        if j < p:
            rate[i] = -X[i, j]
        elif j == p:
            rate[i] = 1.0
        else:
            rate[i] = f[i]
        whole[i] = missing[i] == 0 and not (gaps and j < p and old == 0 and absent[i, j])


@njit(nogil=True)
def _without(
    absent: Any, j: int, f: Any, rate: Any, v: float, missing: Any, rows: Any, stake: Any, toll: Any, bounds: Any
) -> float:
    """Cost without the norm once feature j is dropped: points that lacked nothing else have a value again."""
    epsilon, margin = bounds
    total, aside = 0.0, 0.0
    for i in range(len(f)):
        if missing[i] == int(absent[i, j]) and abs(f[i] + v * rate[i]) > 1.0 + 1e-9:
            return np.inf
    for k in range(len(rows)):
        i = rows[k]
        if missing[i] > int(absent[i, j]):
            aside += stake[k]
            continue
        value = f[i] + v * rate[i]
        if abs(value) < margin:
            return np.inf
        if value > 0:
            total += stake[k]
        if abs(value) < epsilon:
            total += toll[k] * (epsilon - abs(value))
    return total + min(0.0, aside)


@njit(nogil=True)
def _norm_and_largest(normal: Any) -> Any:
    norm, most = 0.0, 0.0
    for j in range(len(normal)):
        norm += abs(normal[j])
        most = max(most, abs(normal[j]))
    return norm, most


@njit("f8** b1** i8* f8* f8* f8 f8 f8 f8 i8* f8* f8 f8", nogil=True)
def pass_over(
    X: Any,
    absent: Any,
    rows: Any,
    stake: Any,
    toll: Any,
    epsilon: float,
    margin: float,
    alpha: float,
    largest: float,
    order: Any,
    normal: Any,
    offset: float,
    cost: float,
) -> Any:
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
    n, p = X.shape
    f, missing = np.empty(n), np.empty(n, dtype=np.int64)
    rate, whole = np.empty(n), np.empty(n, dtype=np.bool_)
    _values(X, absent, normal, offset, f, missing)
    norm, most = _norm_and_largest(normal)
    for j in order:
        old = normal[j] if j < p else 0.0
        _line(X, absent, j, old, f, missing, rate, whole)
        if j < p:
            line = -old, alpha, -largest - old, largest - old
        elif j == p:
            line = 0.0, 0.0, -np.inf, np.inf
        elif norm > 0:
            line = -1.0, alpha * norm, -0.999, largest / most - 1.0
        else:
            continue
        v, found = _along(f, rate, whole, rows, stake, toll, (epsilon, margin), line)
        if j < p and abs(old + v) <= 1e-13:
            if old == 0:  # a weight of nothing, which would send points aside for nothing
                continue
            if len(absent) > 0:
                found = _without(absent, j, f, rate, v, missing, rows, stake, toll, (epsilon, margin))
        new = norm
        if j < p:
            new = norm - abs(old) + abs(old + v)
        elif j > p:
            new = norm * (1.0 + v)
        found += alpha * new
        if v == 0 or not found < cost:
            continue
        if np.isfinite(cost) and cost - found <= 1e-11 * max(1.0, abs(cost)):
            continue
        cost = found
        for i in range(n):
            f[i] += v * rate[i]
        if j < p:
            normal[j] = old + v if abs(old + v) > 1e-13 else 0.0
            if len(absent) > 0:
                for i in range(n):
                    if absent[i, j]:
                        missing[i] += int(normal[j] != 0) - int(old != 0)
        elif j == p:
            offset += v
        else:
            offset *= 1.0 + v
            for q in range(p):
                normal[q] *= 1.0 + v
        norm, most = _norm_and_largest(normal)
    return offset, cost
