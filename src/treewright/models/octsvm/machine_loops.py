r"""Compiled parts of the search for OCTSVM: losses, the least cost along a line, a support vector machine in a ball.

Costs are in units of ``c1``: a point with the margin m pays :math:`\varphi(m) = \min([1 - m]^+, r_2 + [1 + m]^+)` at a
split. Norms are coded as 0 for "l2", 1 for "l1" and 2 for "linf". No function calls itself: compiled code that does and
is read back from numba's cache crashes.
"""

from __future__ import annotations

import numpy as np

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.compiled import njit
from treewright.engine.draws import Draws, shuffle

__all__ = [
    "NORMS",
    "least_along",
    "length",
    "machine",
    "node_cost",
    "range_within",
    "relabelled_loss",
    "values",
]

NORMS = {"l2": 0, "l1": 1, "linf": 2}


_NEAR = 1e-4
"""How far beyond a jump of the cost a place is taken, as a share of the line."""


@njit()
def relabelled_loss(margin: float, r2: float) -> float:
    """What a point with this margin pays."""
    keep = 1.0 - margin if margin < 1.0 else 0.0
    flip = r2 + (1.0 + margin if margin > -1.0 else 0.0)
    return keep if keep <= flip else flip


@njit()
def _slope(margin: float, r2: float) -> float:
    """Slope of the loss."""
    keep = 1.0 - margin if margin < 1.0 else 0.0
    flip = r2 + (1.0 + margin if margin > -1.0 else 0.0)
    if keep <= flip:
        return -1.0 if margin < 1.0 else 0.0
    return 1.0 if margin > -1.0 else 0.0


@njit()
def length(w: FloatArray, norm: int) -> float:
    """Norm of a normal."""
    total = 0.0
    for value in w:
        if norm == 0:
            total += value * value
        elif norm == 1:
            total += abs(value)
        else:
            total = max(total, abs(value))
    return np.sqrt(total) if norm == 0 else total


@njit()
def range_within(w: FloatArray, u: FloatArray, limit: float, norm: int) -> tuple[float, float]:
    """The range of t in which ``w + t * u`` is no longer than `limit`; w is not, u is not zero."""
    # a convex function of t that is at most the limit at 0: doubling, then bisection
    ends = np.empty(2)
    for side in range(2):
        sign = -1.0 if side == 0 else 1.0
        good, bad = 0.0, (2.0 * limit + 1e-12) / length(u, norm)
        for _ in range(40):
            middle = 0.5 * (good + bad)
            if length(w + sign * middle * u, norm) <= limit:
                good = middle
            else:
                bad = middle
        ends[side] = sign * good
    return ends[0], ends[1]


@njit()
def values(X: FloatArray, rows: IntArray, w: FloatArray, b: float) -> FloatArray:
    """``X[rows] @ w + b``."""
    out = np.empty(len(rows))
    for k in range(len(rows)):
        f = b
        for j in range(X.shape[1]):
            f += X[rows[k], j] * w[j]
        out[k] = f
    return out


@njit()
def node_cost(
    f: FloatArray, sign: FloatArray, weight: FloatArray, left: FloatArray, right: FloatArray, r2: float
) -> float:
    """What points pay at a split with these values, and further down on the side it sends them to."""
    cost = 0.0
    for i in range(len(f)):
        cost += weight[i] * (relabelled_loss(sign[i] * f[i], r2) + (right[i] if f[i] >= 0.0 else left[i]))
    return cost


@njit()
def least_along(
    a: FloatArray,
    b: FloatArray,
    sign: FloatArray,
    weight: FloatArray,
    left: FloatArray,
    right: FloatArray,
    r2: float,
    low: float,
    high: float,
) -> tuple[float, float]:
    """The place t in [low, high] with the least cost of a split with the values ``a + t * b``, and that cost.

    The cost is linear between places where a margin is 1, -1 or where relabelling begins to pay, and jumps where a
    point changes sides; of the latter the better side is taken, a little away from the jump.
    """
    n = len(a)
    at, bend, jump = np.empty(4 * n), np.empty(4 * n), np.empty(4 * n)
    k, cost, slope = 0, 0.0, 0.0
    for i in range(n):
        f = a[i] + low * b[i]
        cost += weight[i] * (relabelled_loss(sign[i] * f, r2) + (right[i] if f >= 0.0 else left[i]))
        if b[i] == 0.0:
            continue
        speed = sign[i] * b[i]
        slope += weight[i] * _slope(sign[i] * f + 1e-12 * speed, r2) * speed
        for which in range(4):
            step, margin, change = 0.0, 0.0, 0.0
            if which == 0:
                margin, change = 1.0, 1.0
            elif which == 1:
                if r2 == np.inf:
                    continue
                margin, change = (-0.5 * r2, -2.0) if r2 <= 2.0 else (1.0 - r2, -1.0)
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
                at[k], bend[k], jump[k] = t, weight[i] * change * abs(speed), step
                k += 1
    order = np.argsort(at[:k])
    least, place, last = cost, low, low
    near = _NEAR * (high - low)
    for e in range(k):
        o = order[e]
        t = at[o]
        cost += slope * (t - last)
        if cost < least:
            least = cost
            place = t - min(near, 0.5 * (t - last)) if jump[o] > 0.0 else t
        cost += jump[o]
        slope += bend[o]
        last = t
        if jump[o] < 0.0 and cost < least:
            following = at[order[e + 1]] if e + 1 < k else high
            least, place = cost, t + min(near, 0.5 * (following - t))
    if cost + slope * (high - last) < least:
        least, place = cost + slope * (high - last), high
    return place, least


@njit()
def _pass(
    Z: FloatArray,
    side: FloatArray,
    most: FloatArray,
    square: FloatArray,
    order: IntArray,
    alpha: FloatArray,
    w: FloatArray,
    b: float,
    draws: Draws,
) -> tuple[float, float]:
    """A pass of coordinate ascent over the dual of a support vector machine; the offset, and how much has changed."""
    shuffle(order, draws)
    changed = 0.0
    for i in order:
        f = b
        for j in range(Z.shape[1]):
            f += w[j] * Z[i, j]
        new = min(max(alpha[i] - (side[i] * f - 1.0) / square[i], 0.0), most[i])
        step = (new - alpha[i]) * side[i]
        if step != 0.0:
            alpha[i] = new
            b += step
            for j in range(Z.shape[1]):
                w[j] += step * Z[i, j]
            changed += abs(step)
    return b, changed


@njit()
def machine(
    X: FloatArray,
    side: FloatArray,
    worth: FloatArray,
    limit: float,
    norm: int,
    draws: Draws,
    passes: int = 6,
    rounds: int = 6,
) -> tuple[FloatArray, float]:
    """A hyperplane with a small ``sum(worth * [1 - side * f]^+)`` and a normal no longer than `limit`.

    Dual coordinate ascent for the penalized problem, whose penalty is changed in rounds until the normal has about the
    length that it may have. It is a direction to go on from, not an optimum.
    """
    n, p = X.shape
    total = worth.sum()
    mean = np.zeros(p)
    for i in range(n):
        mean += worth[i] / total * X[i]
    Z = X - mean
    square = np.empty(n)
    for i in range(n):
        square[i] = 1.0 + (Z[i] * Z[i]).sum()
    penalty = total * max(1.0 / n, 0.1) / limit * 0.1
    alpha, w, b, order = np.zeros(n), np.zeros(p), 0.0, np.arange(n)
    low, high = 0.0, np.inf
    for r in range(rounds):
        for _ in range(passes):
            b, changed = _pass(Z, side, worth / penalty, square, order, alpha, w, b, draws)
            if changed < 1e-3 * alpha.sum():
                break
        long = length(w, norm)
        if r == rounds - 1 or (long <= limit and (long > 0.95 * limit or penalty < 1e-4 * total / n)):
            break
        if long > limit:
            low = max(low, penalty)
        else:
            high = min(high, penalty)
        new = penalty * min(max(long / limit, 0.1), 10.0)
        if low > 0.0 and high < np.inf and not low < new < high:
            new = np.sqrt(low * high)
        alpha *= penalty / new
        w *= penalty / new
        b *= penalty / new
        penalty = new
    shrink = min(1.0, limit / max(length(w, norm), 1e-300))
    w *= shrink
    return w, b * shrink - (w * mean).sum()
