r"""Compiled walk of a whole tree along lines of hyperplanes, with more errors accepted at random.

Importing this module imports numba, so it is imported where a fit needs it and not before.

A complete tree has its values ``F[i, b] = w_b @ x_i - o_b`` of point i at branch b, branches numbered like a heap from
0; a point goes right where its value is above 0. Normals have 1-norm 1. Along a line the values at a node are
``F + v * rate``: every point changes sides once or not at all, so that one sweep over these places in their order finds
the step with the fewest errors. What a tree costs is errors, plus the price of the features of splits that part their
points, plus *walls*: what its gaps and leaves lack, as a share of what they need, at a price that rises. Only trees
without walls are kept, but on the way to them others may be passed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from treewright.core.compiled import njit
from treewright.engine.draws import draw, draw_below

__all__ = ["wander"]

_STAY = 0.3
"""Share of the moves that may end where they began."""

_PAIRS = 0.25
"""Share of the moves along the line between two points, where features have no price."""

_LABELS = 0.1
"""Share of the moves at the lowest nodes for which another label is tried."""

_FARTHEST = 5.0
"""How far a coefficient moves, in units of the 1-norm."""

_NEAREST = 1e-7
"""Gap below which rounding decides."""


@njit(nogil=True)
def _measured(
    F: Any, y: Any, weight: Any, size: Any, labels: Any, counts: Any, rows: Any, below: Any, above: Any
) -> float:
    """Errors of a tree whose leaves get their best labels; weights and rows of leaves, and the ends of gaps."""
    n, n_branches = F.shape
    counts[:] = 0.0
    rows[:] = 0.0
    below[:] = -np.inf
    above[:] = np.inf
    for i in range(n):
        node = 0
        while node < n_branches:
            f = F[i, node]
            if f > 0:
                above[node] = min(above[node], f)
                node = 2 * node + 2
            else:
                below[node] = max(below[node], f)
                node = 2 * node + 1
        counts[node - n_branches, y[i]] += weight[i]
        rows[node - n_branches] += size[i]
    errors = 0.0
    for leaf in range(len(labels)):
        best = labels[leaf]
        total = 0.0
        for k in range(counts.shape[1]):
            total += counts[leaf, k]
            if counts[leaf, k] > counts[leaf, best]:
                best = k
        labels[leaf] = best
        errors += total - counts[leaf, best]
    return errors


@njit(nogil=True)
def _lacking(below: Any, above: Any, rows: Any, gap: float, least: float) -> Any:
    """What gaps and leaves lack, as shares of what they need; and whether all gaps are more than rounding."""
    lack, clear = 0.0, True
    for b in range(len(below)):
        width = above[b] - below[b]
        if width < gap:
            lack += 1.0 - width / gap
            clear = clear and width > _NEAREST
    for leaf in range(len(rows)):
        if 0.0 < rows[leaf] < least:
            lack += 1.0 - rows[leaf] / least
            clear = False
    return lack, clear


@njit(nogil=True)
def _priced(price: float, normals: Any, below: Any, above: Any) -> float:
    """What the features cost that splits use which part their points."""
    used = 0
    if price == 0.0:
        return 0.0
    for b in range(len(below)):
        if np.isfinite(above[b] - below[b]):
            for j in range(normals.shape[1]):
                used += normals[b, j] != 0.0
    return price * used


@njit(nogil=True)
def _reaching(F: Any, y: Any, weight: Any, labels: Any, b: int, noise: float, draws: Any, who: Any, stake: Any) -> int:
    """Points that reach a node, and what each loses on the left less what it loses on the right; how many."""
    n, n_branches = F.shape
    m = 0
    for i in range(n):
        node = 0
        while node < b:
            node = 2 * node + 2 if F[i, node] > 0 else 2 * node + 1
        if node != b:
            continue
        lost = 0.0
        for side in range(2):
            node = 2 * b + 1 + side
            while node < n_branches:
                node = 2 * node + 2 if F[i, node] > 0 else 2 * node + 1
            if labels[node - n_branches] != y[i]:
                lost += weight[i] if side == 0 else -weight[i]
        if noise > 0 and lost != 0.0:
            lost *= 1.0 + noise * (2.0 * draw(draws) - 1.0)
        who[m], stake[m] = i, lost
        m += 1
    return m


@njit(nogil=True)
def _best_step(
    f: Any,
    rate: Any,
    stake: Any,
    own: float,
    rest: float,
    price: float,
    wall: float,
    gap: float,
    stay: bool,
) -> float:
    """Where on a line the stakes on the left cost least: the middle of a step, or 0.

    Along the line the 1-norm is ``rest + |own + v|``; for a line without a feature of its own, `own` is NaN and the
    1-norm about `rest`. At ``v = -own`` the feature is not used, which saves its price.
    """
    m = len(f)
    place = np.empty(m)
    pace = np.empty(m)
    jump = np.empty(m)
    k = 0
    far = _FARTHEST
    cost = 0.0
    for i in range(m):
        if f[i] - far * rate[i] <= 0:
            cost += stake[i]
        if rate[i] == 0.0:
            continue
        v = -f[i] / rate[i]
        if -far < v <= far:
            place[k] = v
            pace[k] = abs(rate[i])
            jump[k] = -stake[i] if rate[i] > 0 else stake[i]
            k += 1
    order = np.argsort(place[:k])
    special = not np.isnan(own) and own != 0.0 and rest > 1e-9
    best, least = 0.0, np.inf
    for step in range(k + 1):
        low = -far if step == 0 else place[order[step - 1]]
        high = far if step == k else place[order[step]]
        slow = np.inf if step == 0 else pace[order[step - 1]]
        if step < k:
            slow = min(slow, pace[order[step]])
        if step > 0:
            cost += jump[order[step - 1]]
        if high - low <= 1e-12 or (not stay and low < 0.0 < high):
            continue
        for kind in range(2):
            v = 0.5 * (low + high)
            room = 0.5 * (high - low)
            if kind == 1:
                if not special or not low < -own < high:
                    continue
                v = -own
                room = min(v - low, high - v)
            long = rest if np.isnan(own) else rest + abs(own + v)
            total = cost + (price if kind == 0 else 0.0)
            if np.isfinite(slow):
                width = 2.0 * room * slow / max(long, 1e-12)
                if width < gap:
                    total += wall * (1.0 - width / gap)
            if total < least:
                least, best = total, v
    return best


@njit(nogil=True)
def _scaled(normals: Any, offsets: Any, F: Any, b: int) -> None:
    """Give a normal 1-norm 1."""
    long = 0.0
    for j in range(normals.shape[1]):
        if abs(normals[b, j]) < 1e-9:
            normals[b, j] = 0.0
        long += abs(normals[b, j])
    if long <= 0.0:
        return
    offsets[b] /= long
    for j in range(normals.shape[1]):
        normals[b, j] /= long
    for i in range(F.shape[0]):
        F[i, b] /= long


@njit("f8** i8* f8* f8* i8 f8 f8 f8 f8 f8** f8* i8* f8** i8 f8 f8 u8*", nogil=True)
def wander(
    X: Any,
    y: Any,
    weight: Any,
    size: Any,
    n_classes: int,
    gap: float,
    least: float,
    price: float,
    floor: float,
    normals: Any,
    offsets: Any,
    labels: Any,
    near: Any,
    steps: int,
    heat: float,
    unit: float,
    draws: Any,
) -> Any:
    """Take steps along lines at random nodes, and keep the best tree on the way, in place.

    Parameters
    ----------
    X, y, weight, size : ndarray
        Points, classes, weights, rows that points stand for.
    n_classes : int
        Number of classes.
    gap, least, price : float
        Gap of a split, fewest rows of a leaf, price of a feature.
    floor : float
        Cost at which nothing better exists.
    normals, offsets, labels : ndarray
        The tree, changed in place to the best one.
    near : ndarray of shape (n_branches, n_features + 1)
        Gets normals and offsets of the best tree whose gaps may be too narrow.
    steps : int
        Number of steps.
    heat : float
        Rise of the cost that is accepted, on average, at first.
    unit : float
        Weight of a point: what a wall costs in the end.
    draws : ndarray
        State of the random numbers.

    Returns
    -------
    cost, near_cost : float
        Of the best tree, and of the best one with gaps of any width; infinite if there was none.
    """
    n, p = X.shape
    n_branches = len(offsets)
    F = np.empty((n, n_branches))
    for b in range(n_branches):
        for i in range(n):
            f = -offsets[b]
            for j in range(p):
                f += normals[b, j] * X[i, j]
            F[i, b] = f
        _scaled(normals, offsets, F, b)
    counts, rows = np.empty((n_branches + 1, n_classes)), np.empty(n_branches + 1)
    below, above = np.empty(n_branches), np.empty(n_branches)
    who, stake, rate, f, old = np.empty(n, np.int64), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    move = np.empty(p)
    errors = _measured(F, y, weight, size, labels, counts, rows, below, above)
    lack, clear = _lacking(below, above, rows, gap, least)
    held = true = errors + _priced(price, normals, below, above)
    best = true if lack == 0.0 else np.inf
    near_best = true if clear else np.inf
    ever, ever_offsets, ever_labels = normals.copy(), offsets.copy(), labels.copy()
    near[:, :p], near[:, p] = normals, offsets
    for step in range(steps):
        if best <= floor + 1e-9:
            break
        cool = 1.0 - step / steps
        wall = unit * 2.0 * 0.02 ** max(0.0, (cool - 0.3) / 0.7)
        b = draw_below(n_branches, draws)
        old_labels = labels.copy()
        if 2 * b + 1 >= n_branches and draw(draws) < _LABELS:
            labels[2 * b + 1 + draw_below(2, draws) - n_branches] = y[draw_below(n, draws)]
        noise = cool if draw(draws) < 0.8 else 0.0
        m = _reaching(F, y, weight, labels, b, noise, draws, who, stake)
        if m < 2:
            continue
        pivot = who[draw_below(m, draws)]
        own, rest, feature = np.nan, 1.0, draw_below(p + 1, draws)
        move[:] = 0.0
        turn = 0.0  # of the offset
        if price == 0.0 and p > 1 and draw(draws) < _PAIRS:
            other = who[draw_below(m, draws)]
            long = 0.0
            for j in range(p):
                move[j] = X[other, j] - X[pivot, j]
                long += abs(move[j])
            if long == 0.0:
                continue
            pivot = who[draw_below(m, draws)]
            for j in range(p):
                move[j] /= long
                turn += move[j] * X[pivot, j]
            for q in range(m):
                r = -turn
                for j in range(p):
                    r += move[j] * X[who[q], j]
                rate[q] = r
        elif feature < p:
            move[feature] = 1.0
            turn = X[pivot, feature]
            own = normals[b, feature]
            rest = 1.0 - abs(own)
            for q in range(m):
                rate[q] = X[who[q], feature] - turn
        else:
            turn = 1.0
            for q in range(m):
                rate[q] = -1.0
        for q in range(m):
            f[q] = F[who[q], b]
        v = _best_step(f[:m], rate[:m], stake[:m], own, rest, price, wall, gap, draw(draws) < _STAY)
        if v == 0.0:
            labels[:] = old_labels
            continue
        kept, offset = normals[b].copy(), offsets[b]
        for i in range(n):
            old[i] = F[i, b]
            r = -turn
            for j in range(p):
                if move[j] != 0.0:
                    r += move[j] * X[i, j]
            F[i, b] += v * r
        for j in range(p):
            normals[b, j] += v * move[j]
        offsets[b] += v * turn
        _scaled(normals, offsets, F, b)
        errors = _measured(F, y, weight, size, labels, counts, rows, below, above)
        new_lack, clear = _lacking(below, above, rows, gap, least)
        true = errors + _priced(price, normals, below, above)
        if true + wall * new_lack <= held + wall * lack - heat * cool * np.log(1.0 - draw(draws)):
            held, lack = true, new_lack
            if lack == 0.0 and true < best - 1e-9:
                best = true
                ever[:], ever_offsets[:], ever_labels[:] = normals, offsets, labels
            if clear and true < near_best - 1e-9:
                near_best = true
                near[:, :p], near[:, p] = normals, offsets
            continue
        normals[b], offsets[b] = kept, offset
        for i in range(n):
            F[i, b] = old[i]
        labels[:] = old_labels
    normals[:], offsets[:], labels[:] = ever, ever_offsets, ever_labels
    return best, near_best
