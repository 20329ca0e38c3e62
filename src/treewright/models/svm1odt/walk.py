"""Compiled walk of a whole tree along lines of planes, with losses accepted at random.

Importing this module imports numba, so it is imported where a fit needs it and not before.

A complete tree has its values ``F[i, b]`` of point i at branch b, branches numbered like a heap from 0. Where the point
has no value there, as at a split on categories, it is 2 or -2 for the side it goes to: that is within no margin.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from treewright.core.compiled import njit
from treewright.splits.hinge_loops import line_minimum, narrowed

__all__ = ["uniform", "wander"]

_STAGE = 50
"""Steps after which the price of margins rises."""


@njit(nogil=True)
def uniform(state: Any) -> float:
    """Next number of a stream in [0, 1), by splitmix64: the same on every machine and in every thread."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    mixed = state[0]
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed = mixed ^ (mixed >> np.uint64(31))
    return float(mixed >> np.uint64(11)) * 2.0**-53


@njit(nogil=True)
def _below(state: Any, n: int) -> int:
    """Next whole number below n."""
    return int(uniform(state) * n)


@njit(nogil=True)
def _loss_from(
    F: Any, i: int, node: int, labels: Any, label: int, weight: float, price: float, epsilon: float
) -> float:
    """What a point loses that enters at a node: hinge errors on the way, and at the leaf."""
    n_branches = F.shape[1]
    total = 0.0
    while node < n_branches:
        away = abs(F[i, node])
        if away < epsilon:
            total += price * (epsilon - away)
        node = 2 * node + 1 if F[i, node] > 0 else 2 * node + 2
    if labels[node - n_branches] != label:
        total += weight
    return total


@njit(nogil=True)
def _fit_labels(F: Any, y: Any, weight: Any, counts: Any, labels: Any) -> None:
    """Give each leaf that points reach its heaviest class."""
    n, n_branches = F.shape
    for leaf in range(len(labels)):
        for k in range(counts.shape[1]):
            counts[leaf, k] = 0.0
    for i in range(n):
        node = 0
        while node < n_branches:
            node = 2 * node + 1 if F[i, node] > 0 else 2 * node + 2
        counts[node - n_branches, y[i]] += weight[i]
    for leaf in range(len(labels)):
        best = labels[leaf]
        for k in range(counts.shape[1]):
            if counts[leaf, k] > counts[leaf, best]:
                best = k
        labels[leaf] = best


@njit(nogil=True)
def _total(F: Any, y: Any, weight: Any, price: Any, labels: Any, epsilon: float, margin: float) -> float:
    """Objective of the tree without its norm; infinite where a point on its way is within the least margin."""
    n, n_branches = F.shape
    total = 0.0
    for i in range(n):
        node = 0
        while node < n_branches:
            away = abs(F[i, node])
            if away < epsilon:
                if away < margin:
                    return np.inf
                total += price[i] * (epsilon - away)
            node = 2 * node + 1 if F[i, node] > 0 else 2 * node + 2
        if labels[node - n_branches] != y[i]:
            total += weight[i]
    return total


@njit(nogil=True)
def _norms(normals: Any, b: int) -> Any:
    """1-norm of the normals of all nodes, that of one of them, and its largest entry."""
    total, own, most = 0.0, 0.0, 0.0
    for node in range(normals.shape[0]):
        for j in range(normals.shape[1]):
            entry = abs(normals[node, j])
            total += entry
            if node == b:
                own += entry
                most = max(most, entry)
    return total, own, most


@njit(nogil=True)
def _line(X: Any, F: Any, b: int, j: int, rate: Any) -> Any:
    """How fast values at a node move along a line, and the range in which they stay within [-1, 1].

    The line is that of feature j, of the offset (-1) or of the scale (-2).
    """
    low, high = -np.inf, np.inf
    for i in range(len(rate)):
        rate[i] = 0.0
        if abs(F[i, b]) >= 2.0:
            continue
        if j >= 0:
            rate[i] = -X[i, j]
        else:
            rate[i] = 1.0 if j == -1 else F[i, b]
        if rate[i] != 0:
            low, high = narrowed(low, high, F[i, b], rate[i])
    return low, high


@njit(nogil=True)
def _at_stake(
    F: Any,
    y: Any,
    weight: Any,
    price: Any,
    labels: Any,
    epsilon: float,
    b: int,
    noise: float,
    state: Any,
    rate: Any,
    table: Any,
) -> int:
    """Values, rates, stakes and tolls of the points that reach a node and have a value there, in rows of a table."""
    m = 0
    for i in range(len(y)):
        node = 0
        while node < b:
            node = 2 * node + 1 if F[i, node] > 0 else 2 * node + 2
        if node != b or abs(F[i, b]) >= 2.0:
            continue
        left = _loss_from(F, i, 2 * b + 1, labels, y[i], weight[i], price[i], epsilon)
        right = _loss_from(F, i, 2 * b + 2, labels, y[i], weight[i], price[i], epsilon)
        factor = 1.0
        if noise > 0:
            factor += noise * (2.0 * uniform(state) - 1.0)
        table[0, m] = F[i, b]
        table[1, m] = rate[i]
        table[2, m] = factor * (left - right)
        table[3, m] = factor * price[i]
        m += 1
    return m


@njit(nogil=True)
def _move(normals: Any, offsets: Any, b: int, j: int, v: float) -> None:
    """Move a plane along a line."""
    if j >= 0:
        entry = normals[b, j] + v
        normals[b, j] = entry if abs(entry) > 1e-12 else 0.0
    elif j == -1:
        offsets[b] += v
    else:
        offsets[b] *= 1.0 + v
        for q in range(normals.shape[1]):
            normals[b, q] *= 1.0 + v


@njit(nogil=True)
def _copy(one: Any, other: Any) -> None:
    """Copy a table into another."""
    for i in range(one.shape[0]):
        for j in range(one.shape[1]):
            other[i, j] = one[i, j]


@njit("f8** i8* f8* f8* i8 f8 f8 f8 f8 i8* i8* f8** f8** f8* i8* i8 f8 f8 i8", nogil=True)
def wander(
    X: Any,
    y: Any,
    weight: Any,
    price: Any,
    n_classes: int,
    epsilon: float,
    margin: float,
    alpha: float,
    largest: float,
    free: Any,
    planes: Any,
    F: Any,
    normals: Any,
    offsets: Any,
    labels: Any,
    steps: int,
    heat: float,
    cheap: float,
    seed: int,
) -> float:
    """Take steps along lines at random nodes, and keep the best tree on the way, in place.

    A step goes to the exact best place along a line for losses that are multiplied at random, the less so the later,
    and is taken back if the objective rises by more than chance allows, `heat` at first and ever less. Margins are
    `cheap` at first, as points within them are walls that no step gets over, and have their true price in the end.

    Parameters
    ----------
    X, y, weight, price : ndarray
        Points without gaps in `free` features, classes, weights, and what a unit of hinge error costs.
    n_classes : int
        Number of classes.
    epsilon, margin, alpha, largest : float
        As for :class:`~treewright.splits.hinge_planes.MarginPoints`.
    free : ndarray of int
        Features along which planes move.
    planes : ndarray of int
        Branches that are planes.
    F, normals, offsets, labels : ndarray
        The tree, changed in place; the values F are not those of the best tree.
    steps : int
        Number of steps.
    heat : float
        Rise of the objective that is accepted, on average, at first.
    cheap : float
        First price of margins, as a share of the true one.
    seed : int
        Seed.

    Returns
    -------
    float
        Objective of the tree.
    """
    state = np.empty(1, dtype=np.uint64)
    state[0] = np.uint64(seed)
    n, n_branches = F.shape
    n_leaves = n_branches + 1
    counts = np.zeros((n_leaves, n_classes))
    _fit_labels(F, y, weight, counts, labels)
    now = _total(F, y, weight, price, labels, epsilon, margin) + alpha * _norms(normals, 0)[0]
    best = now
    # Normals, offsets and labels as they were before a step, and those of the best tree.
    p = normals.shape[1]
    kept, ever = np.empty((1, p)), np.empty((n_branches, p))
    ever_offsets, ever_labels, old_labels = offsets.copy(), labels.copy(), labels.copy()
    _copy(normals, ever)
    rate, old, table = np.empty(n), np.empty(n), np.empty((4, n))
    soft = np.empty(n)
    for step in range(steps):
        cool = 1.0 - step / steps
        if step % _STAGE == 0:
            # Walls rise: margins are cheap at first.
            share = 1.0 if cool < 0.3 else cheap ** ((cool - 0.3) / 0.7)
            for i in range(n):
                soft[i] = price[i] * share
            now = _total(F, y, weight, soft, labels, epsilon, margin) + alpha * _norms(normals, 0)[0]
        b = planes[_below(state, len(planes))]
        draw = _below(state, len(free) + 2)
        j = free[draw] if draw < len(free) else len(free) - 1 - draw
        whole, own, most = _norms(normals, b)
        if j == -2 and own == 0:
            continue
        low, high = _line(X, F, b, j, rate)
        kink, force = 0.0, 0.0
        if j >= 0:
            kink, force = -normals[b, j], alpha
            low, high = max(low, -largest - normals[b, j]), min(high, largest - normals[b, j])
        elif j == -2:
            kink, force = -1.0, alpha * own
            low, high = max(low, -0.9), min(high, largest / most - 1.0)
        if not (low < high and np.isfinite(low) and np.isfinite(high)):
            continue
        for leaf in range(n_leaves):
            old_labels[leaf] = labels[leaf]
        if 2 * b + 1 >= n_branches and uniform(state) < 0.2:  # try another label
            labels[2 * b + 1 + _below(state, 2) - n_branches] = y[_below(state, n)]
        noise = cool if uniform(state) < 0.8 else 0.0
        m = _at_stake(F, y, weight, soft, labels, epsilon, b, noise, state, rate, table)
        v = 0.0
        if m > 0:
            v, _ = line_minimum(table[0, :m], table[1, :m], table[2, :m], table[3, :m], epsilon, kink, force, low, high)
        if v == 0:
            for leaf in range(n_leaves):
                labels[leaf] = old_labels[leaf]
            continue
        offset = offsets[b]
        for q in range(p):
            kept[0, q] = normals[b, q]
        for i in range(n):
            old[i] = F[i, b]
            F[i, b] += v * rate[i]
        _move(normals, offsets, b, j, v)
        _fit_labels(F, y, weight, counts, labels)
        then = _total(F, y, weight, soft, labels, epsilon, margin) + alpha * _norms(normals, b)[0]
        if then <= now - heat * cool * np.log(1.0 - uniform(state)):
            now = then
            if share == 1.0 and now < best and (best == np.inf or now < best - 1e-9 * max(1.0, best)):
                best = now
                _copy(normals, ever)
                for node in range(n_branches):
                    ever_offsets[node] = offsets[node]
                for leaf in range(n_leaves):
                    ever_labels[leaf] = labels[leaf]
            continue
        offsets[b] = offset
        for q in range(p):
            normals[b, q] = kept[0, q]
        for i in range(n):
            F[i, b] = old[i]
        for leaf in range(n_leaves):
            labels[leaf] = old_labels[leaf]
    _copy(ever, normals)
    for node in range(n_branches):
        offsets[node] = ever_offsets[node]
    for leaf in range(n_leaves):
        labels[leaf] = ever_labels[leaf]
    return best
