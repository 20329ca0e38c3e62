r"""A tree of support vector machines as arrays, and compiled steps that improve one of its nodes while all others stay.

Node t = 0, 1, ... has the children 2t + 1 and 2t + 2. A node that does not split is a leaf whose `label` is -1 or +1,
and nothing below it splits. Costs are in units of ``c1``, as in :mod:`~.kernels`.

The shared driver (:mod:`treewright.engine.alternate`) looks at all points of a level to improve any of its nodes
and costs a millisecond a node before any work. Here thousands of steps on some hundred points make a search, which is
why the course of the driver, the deepest nodes first and never worse, is written out in compiled code.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.compiled import fields_of, njit
from treewright.engine.draws import Draws, draw, draw_below, shuffle
from treewright.models.octsvm.machine_loops import (
    least_along,
    length,
    machine,
    node_cost,
    range_within,
    relabelled_loss,
    values,
)

__all__ = ["Machines", "Prices", "improve_node", "kicked", "last_values", "random_plane", "total_cost"]

_MANY = 4000
"""Points that a support vector machine sees at most; sweeps, which say what a plane costs, see all."""


@fields_of("i8 f8 f8 f8 i8")
class Prices(NamedTuple):
    """What a tree pays, in units of ``c1``."""

    depth: int
    r2: float
    """For a relabelled point, infinite for none."""
    r3: float
    """For a split."""
    limit: float
    """Length of normals at most."""
    norm: int


@fields_of("f8** f8* b1* f8*")
class Machines(NamedTuple):
    """The splits of all nodes of a complete tree."""

    w: FloatArray
    b: FloatArray
    split: BoolArray
    label: FloatArray


@njit()
def _level(t: int) -> int:
    level, u = 0, t + 1
    while u > 1:
        u >>= 1
        level += 1
    return level


@njit()
def _inside(u: int, t: int) -> bool:
    """Whether u is t or below."""
    while u > t:
        u = (u - 1) // 2
    return u == t


@njit()
def _splits_from(split: BoolArray, t: int) -> int:
    """Number of splits at t and below."""
    count = 0
    for u in range(t, len(split)):
        if split[u] and _inside(u, t):
            count += 1
    return count


@njit()
def _prune(machines: Machines, t: int, label: float) -> None:
    """Make t a leaf."""
    for u in range(t, len(machines.split)):
        if _inside(u, t):
            machines.split[u] = False
            machines.label[u] = label


@njit()
def _value(X: FloatArray, i: int, machines: Machines, t: int) -> float:
    f = machines.b[t]
    for j in range(X.shape[1]):
        f += X[i, j] * machines.w[t, j]
    return f


@njit()
def _rows_at(X: FloatArray, machines: Machines, t: int) -> IntArray:
    """Points that reach a node."""
    found = np.empty(len(X), dtype=np.int64)
    count, level = 0, _level(t)
    for i in range(len(X)):
        u = 0
        for _ in range(level):
            u = 2 * u + 2 if _value(X, i, machines, u) >= 0.0 else 2 * u + 1
            if not _inside(t, u):
                break
        if u == t:
            found[count] = i
            count += 1
    return found[:count]


@njit()
def _costs_from(
    X: FloatArray, sign: FloatArray, rows: IntArray, t: int, machines: Machines, prices: Prices
) -> FloatArray:
    """What points that enter at t pay from there on, per unit of weight."""
    out = np.zeros(len(rows))
    for k in range(len(rows)):
        i, u = rows[k], t
        while u < len(machines.b):
            if not machines.split[u]:
                if machines.label[u] != sign[i]:
                    out[k] += min(2.0, prices.r2) * (prices.depth - _level(u) + 1)
                break
            f = _value(X, i, machines, u)
            out[k] += relabelled_loss(sign[i] * f, prices.r2)
            u = 2 * u + 2 if f >= 0.0 else 2 * u + 1
    return out


@njit("f8** f8* f8* Machines Prices", nogil=True)
def total_cost(X: FloatArray, sign: FloatArray, weight: FloatArray, machines: Machines, prices: Prices) -> float:
    """What the tree costs, its norms apart."""
    costs = _costs_from(X, sign, np.arange(len(X)), 0, machines, prices)
    return (costs * weight).sum() + prices.r3 * _splits_from(machines.split, 0)


@njit("f8** Machines", nogil=True)
def last_values(X: FloatArray, machines: Machines) -> FloatArray:
    """Value of each point at the last split on its way; -1 or 1 if it ends in a leaf above the last level."""
    out = np.empty(len(X))
    for i in range(len(X)):
        u = 0
        while u < len(machines.b):
            if not machines.split[u]:
                out[i] = machines.label[u]
                break
            out[i] = _value(X, i, machines, u)
            u = 2 * u + 2 if out[i] >= 0.0 else 2 * u + 1
    return out


# ---------------------------------------------------------------------- what a node should do with its points


@njit()
def _by_stake(
    sign: FloatArray,
    weight: FloatArray,
    left: FloatArray,
    right: FloatArray,
    r2: float,
    noise: float,
    draws: Draws,
) -> tuple[FloatArray, FloatArray]:
    """The side on which each point would be cheaper, all margins being met, and how much that is worth."""
    side, worth = np.empty(len(sign)), np.empty(len(sign))
    for k in range(len(sign)):
        gain = relabelled_loss(-sign[k], r2) + left[k] - relabelled_loss(sign[k], r2) - right[k]
        side[k] = 1.0 if gain > 0.0 else -1.0
        worth[k] = abs(gain) * weight[k]
        if noise > 0.0:
            worth[k] *= (-np.log(1.0 - draw(draws))) ** noise
    return side, worth


@njit()
def _by_loss(
    f: FloatArray, sign: FloatArray, weight: FloatArray, left: FloatArray, right: FloatArray, r2: float
) -> tuple[FloatArray, FloatArray]:
    """The label that each point has or is given at these values, and what children have at stake, as sides."""
    side, worth = np.empty(len(sign)), np.empty(len(sign))
    for k in range(len(sign)):
        m = sign[k] * f[k]
        keeps = max(0.0, 1.0 - m) <= r2 + max(0.0, 1.0 + m)
        own = (sign[k] if keeps else -sign[k]) + left[k] - right[k]
        side[k] = 1.0 if own > 0.0 else -1.0
        worth[k] = abs(own) * weight[k]
    return side, worth


@njit()
def _fitted(
    X: FloatArray, rows: IntArray, side: FloatArray, worth: FloatArray, prices: Prices, draws: Draws
) -> tuple[FloatArray, float]:
    """The support vector machine of the points, or of some of them where they are many."""
    some = np.flatnonzero(worth > 0.0)
    if len(some) > _MANY:
        shuffle(some, draws)
        some = some[:_MANY]
    return machine(X[rows[some]], side[some], worth[some], prices.limit, prices.norm, draws)


@njit()
def _moved(
    X: FloatArray,
    rows: IntArray,
    sign: FloatArray,
    weight: FloatArray,
    left: FloatArray,
    right: FloatArray,
    w: FloatArray,
    b: float,
    toward: FloatArray,
    toward_b: float,
    prices: Prices,
    draws: Draws,
) -> tuple[float, FloatArray, float]:
    """Move a plane along lines for as long as that pays: its offset, its scale, toward another one, single features."""
    f = values(X, rows, w, b)
    cost = node_cost(f, sign, weight, left, right, prices.r2)
    p = X.shape[1]
    for step in range(10):
        kind = step % 5
        u, ub = np.zeros(p), 0.0
        if kind == 0:
            spread = np.abs(f).max() + 2.0
            low, high, ub = -spread, spread, 1.0
        else:
            if kind == 1:
                u, ub = w, b
            elif kind == 2:
                u, ub = toward - w, toward_b - b
            else:
                j = draw_below(p, draws)
                u[j] = 1.0
                ub = -X[rows[draw_below(len(rows), draws)], j]
            if length(u, 2) < 1e-9:
                continue
            low, high = range_within(w, u, prices.limit, prices.norm)
            if kind == 1:
                low = max(low, -0.999)
        t, expected = least_along(f, values(X, rows, u, ub), sign, weight, left, right, prices.r2, low, high)
        if expected < cost - 1e-9:
            new_w, new_b = w + t * u, b + t * ub
            new_f = values(X, rows, new_w, new_b)
            new = node_cost(new_f, sign, weight, left, right, prices.r2)
            if new < cost:
                w, b, f, cost = new_w, new_b, new_f, new
    return cost, w, b


@njit("f8** f8* f8* Machines Prices i8 f8 u8*", nogil=True)
def improve_node(
    X: FloatArray,
    sign: FloatArray,
    weight: FloatArray,
    machines: Machines,
    prices: Prices,
    t: int,
    noise: float,
    draws: Draws,
) -> bool:
    """Give a node another split, or make it a leaf, if that makes the tree cheaper; whether it did.

    `noise` above 0 multiplies what points have at stake at random, for restarts.
    """
    if t > 0 and not machines.split[(t - 1) // 2]:
        return False
    rows = _rows_at(X, machines, t)
    s, v = sign[rows], weight[rows]
    plus, minus = v[s > 0.0].sum(), v[s < 0.0].sum()
    level, r2 = _level(t), prices.r2
    before, splits = machines.split[t], _splits_from(machines.split, t)
    now = (_costs_from(X, sign, rows, t, machines, prices) * v).sum() + prices.r3 * splits
    label = 1.0 if plus >= minus else -1.0
    leaf = min(plus, minus) * min(2.0, r2) * (prices.depth - level + 1)
    least, kind, best_w, best_b = now, 0, machines.w[t].copy(), machines.b[t]
    if leaf < now - 1e-9 or (before and leaf <= now):
        least, kind = leaf, 1
    if min(plus, minus) > 0.0:
        left, right, below = np.zeros(len(rows)), np.zeros(len(rows)), 0
        if level < prices.depth:
            if before:
                left = _costs_from(X, sign, rows, 2 * t + 1, machines, prices)
                right = _costs_from(X, sign, rows, 2 * t + 2, machines, prices)
                below = splits - 1
            else:  # its children would be leaves of their sides
                pays = min(2.0, r2) * (prices.depth - level)
                left, right = np.where(s > 0.0, pays, 0.0), np.where(s > 0.0, 0.0, pays)
        for trial in range(3):
            w, b = best_w, best_b
            if trial == 1:
                side, worth = _by_stake(s, v, left, right, r2, noise, draws)
                if worth.sum() > 0.0:
                    w, b = _fitted(X, rows, side, worth, prices, draws)
            elif trial == 2 and (before or kind == 2):
                side, worth = _by_loss(values(X, rows, best_w, best_b), s, v, left, right, r2)
                if worth.sum() > 0.0:
                    w, b = _fitted(X, rows, side, worth, prices, draws)
            elif not before:
                continue
            cost, w, b = _moved(X, rows, s, v, left, right, w, b, best_w, best_b, prices, draws)
            cost += prices.r3 * (1 + below)
            if cost < least - 1e-9:
                least, kind, best_w, best_b = cost, 2, w, b
    if kind == 1:
        _prune(machines, t, label)
    elif kind == 2:
        if not before and level < prices.depth:
            _prune(machines, 2 * t + 1, -1.0)
            _prune(machines, 2 * t + 2, 1.0)
        machines.split[t] = True
        machines.w[t], machines.b[t] = best_w, best_b
    return kind > 0


# ---------------------------------------------------------------------- other places to begin


@njit()
def random_plane(X: FloatArray, sign: FloatArray, machines: Machines, prices: Prices, t: int, draws: Draws) -> None:
    """Give a node a plane halfway between two points, of different classes if they are found, some features alone."""
    n, p = X.shape
    i, j = draw_below(n, draws), draw_below(n, draws)
    for _ in range(10):
        if sign[i] != sign[j]:
            break
        j = draw_below(n, draws)
    u = (X[i] - X[j]) * sign[i]
    if draw(draws) < 0.5:
        for k in range(p):
            if draw(draws) >= max(2.0 / p, 0.3):
                u[k] = 0.0
    largest = length(u, 2)
    if largest == 0.0:
        for k in range(p):
            u[k] = draw(draws) - 0.5
    elif largest < 1e-140:  # squares would vanish
        u /= largest
    u *= prices.limit / length(u, prices.norm)
    machines.w[t] = u
    machines.b[t] = -0.5 * ((X[i] * u).sum() + (X[j] * u).sum())
    machines.split[t] = True


@njit("f8** f8* Machines Prices b1 u8*", nogil=True)
def kicked(X: FloatArray, sign: FloatArray, machines: Machines, prices: Prices, everywhere: bool, draws: Draws) -> None:
    """Give a random node, or all, another plane; what is above it splits then."""
    n_nodes = len(machines.b)
    if everywhere:
        for t in range(n_nodes):
            random_plane(X, sign, machines, prices, t, draws)
        return
    t = draw_below(n_nodes, draws)
    machines.split[t] = False
    while True:
        if not machines.split[t]:
            random_plane(X, sign, machines, prices, t, draws)
            for child in (2 * t + 1, 2 * t + 2):
                if child < n_nodes and not machines.split[child]:
                    machines.label[child] = -1.0 if child == 2 * t + 1 else 1.0
        if t == 0:
            return
        t = (t - 1) // 2
