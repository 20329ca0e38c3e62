"""Compiled changes of the places of points in a complete tree, each plane the best one for the points on its sides.

Importing this module imports numba, so it is imported where a fit needs it and not before. What a tree is at a time is
a :class:`State`: arrays that the kernels change in place. See :mod:`~.crossing` for what it is about.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from treewright.core.compiled import fields_of, njit
from treewright.models.svm1odt.walk import uniform
from treewright.splits.plane_programs import best_plane, value_at

__all__ = ["Kept", "Places", "State", "begin", "cross", "release", "settle"]

_RELEASES = 0.4
"""Share of the changes in which a whole node lets go of points."""


@fields_of("f8** f8** f8* f8x4 i8** i8* i8** i8**")
class Places(NamedTuple):
    """What does not change: the points, and the tree's shape."""

    table: Any
    """Values of the numerical features."""
    weight: Any
    """Weight of each class at each point."""
    price: Any
    """What a unit of hinge error costs at each point."""
    limits: Any
    """As of :func:`~treewright.splits.plane_programs.best_plane`."""
    paths: Any
    """For each leaf and branch, 1 where its way goes left, -1 right, 0 elsewhere."""
    fixed: Any
    """1 for branches that are splits on categories, which stay as they are."""
    left: Any
    """1 where a point goes left at such a branch."""
    may: Any
    """1 where these branches let a point come to a leaf."""


@fields_of("i8* f8** f8** f8* f8** f8* f8** f8*")
class State(NamedTuple):
    """Where points are, and planes."""

    leaf: Any
    counts: Any
    normals: Any
    offsets: Any
    duals: Any
    costs: Any
    known: Any
    """What a tree would cost at least, of moves that were tried since the last one that was made."""
    total: Any
    """Objective now, and the best one."""


@fields_of("f8** f8* i8*")
class Kept(NamedTuple):
    """The best tree so far."""

    normals: Any
    offsets: Any
    labels: Any


@njit(nogil=True)
def _errors(counts: Any) -> float:
    total = 0.0
    for leaf in range(len(counts)):
        total += counts[leaf].sum() - counts[leaf].max()
    return total


@njit(nogil=True)
def _sides(paths: Any, leaf: Any, b: int, sides: Any) -> None:
    for i in range(len(leaf)):
        sides[i] = paths[leaf[i], b]


@njit(nogil=True)
def _keep(state: State, kept: Kept) -> None:
    state.total[1] = state.total[0]
    kept.normals[:] = state.normals
    kept.offsets[:] = state.offsets
    for leaf in range(len(kept.labels)):
        kept.labels[leaf] = state.counts[leaf].argmax()


@njit("Places State Kept f8", nogil=True)
def begin(places: Places, state: State, kept: Kept, own: float) -> None:
    """Fit planes to the leaves of the state; the total is infinite where that cannot be."""
    n, n_branches = len(state.leaf), places.paths.shape[1]
    state.counts[:] = 0.0
    for i in range(n):
        state.counts[state.leaf[i]] += places.weight[i]
    state.known[:] = -np.inf
    sides = np.empty(n, dtype=np.int64)
    total = own + _errors(state.counts)
    for b in range(n_branches):
        if places.fixed[b] == 0:
            _sides(places.paths, state.leaf, b, sides)
            cost, offset = best_plane(
                places.table, sides, places.price, places.limits, np.inf, state.normals[b], state.duals[b]
            )
            state.costs[b], state.offsets[b] = cost, offset
            total += cost
    state.total[0] = total
    _keep(state, kept)


@njit(nogil=True)
def _placed(places: Places, state: State, kept: Kept, leaf: Any, limit: float) -> bool:
    """Give all points their leaves, if the tree costs less than the limit then."""
    paths, (n, n_branches) = places.paths, (len(leaf), places.paths.shape[1])
    counts = np.zeros_like(state.counts)
    for i in range(n):
        counts[leaf[i]] += places.weight[i]
    # What stays, first: programs end where they cost more than what is left of the limit.
    value = _errors(counts) + state.total[0] - _errors(state.counts)
    changed = np.zeros(n_branches, dtype=np.int64)
    for i in range(n):
        if leaf[i] != state.leaf[i]:
            for b in range(n_branches):
                if paths[leaf[i], b] != paths[state.leaf[i], b]:
                    changed[b] = 1
    for b in range(n_branches):
        changed[b] *= 1 - places.fixed[b]
        if changed[b]:
            value -= state.costs[b]
    normals, duals = state.normals.copy(), state.duals.copy()
    offsets, costs = state.offsets.copy(), state.costs.copy()
    sides = np.empty(n, dtype=np.int64)
    for b in range(n_branches):
        if changed[b]:
            if not value < limit:
                return False
            _sides(paths, leaf, b, sides)
            cost, offset = best_plane(
                places.table, sides, places.price, places.limits, limit - value, normals[b], duals[b]
            )
            costs[b], offsets[b] = cost, offset
            value += cost
    if not value < limit:
        return False
    state.leaf[:] = leaf
    state.counts[:] = counts
    state.normals[:] = normals
    state.duals[:] = duals
    state.offsets[:] = offsets
    state.costs[:] = costs
    state.known[:] = -np.inf
    state.total[0] = value
    if value < state.total[1] - 1e-9:
        _keep(state, kept)
    return True


@njit(nogil=True)
def _elsewhere(places: Places, state: State, i: int, node: int) -> int:
    """Leaf that a point would reach on the other side of a node."""
    n_branches = places.paths.shape[1]
    at = 2 * node + 2 if places.paths[state.leaf[i], node] == 1 else 2 * node + 1
    while at < n_branches:
        if places.fixed[at]:
            left = places.left[i, at] == 1
        else:
            left = value_at(places.table, i, state.normals[at], state.offsets[at]) >= 0
        at = 2 * at + 1 if left else 2 * at + 2
    return at - n_branches


@njit(nogil=True)
def release(places: Places, state: State, kept: Kept, node: int, share: float, limit: float, chance: Any) -> bool:
    """Let a plane go where it likes among points that are as right on its other side, if that costs less then.

    A share of those points, drawn at random, has no side while the plane is found, and then the one it is on.
    """
    n = len(state.leaf)
    sides, other, free = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    labels = np.empty(len(state.counts), dtype=np.int64)
    for leaf in range(len(labels)):
        labels[leaf] = state.counts[leaf].argmax()
    _sides(places.paths, state.leaf, node, sides)
    some = False
    for i in range(n):
        if sides[i] == 0 or uniform(chance) >= share:
            continue
        other[i] = _elsewhere(places, state, i, node)
        there, here = places.weight[i, labels[other[i]]], places.weight[i, labels[state.leaf[i]]]
        if there >= here and places.may[i, other[i]]:
            free[i] = 1
            some = True
    if not some:
        return False
    for i in range(n):
        if free[i]:
            sides[i] = 0
    normal, dual = np.empty(places.table.shape[1]), state.duals[node].copy()
    cost, offset = best_plane(places.table, sides, places.price, places.limits, np.inf, normal, dual)
    if np.isinf(cost):
        return False
    leaf = state.leaf.copy()
    for i in range(n):
        if free[i]:
            goes = 1 if value_at(places.table, i, normal, offset) >= 0 else -1
            if goes != places.paths[leaf[i], node]:
                leaf[i] = other[i]
    return _placed(places, state, kept, leaf, limit)


@njit(nogil=True)
def _worthwhile(places: Places, state: State, limit: float, chance: Any) -> Any:
    """A point and a leaf to move it to, where that may cost less than the limit, as far as duals tell."""
    paths, (n, n_leaves) = places.paths, state.known.shape
    n_branches = paths.shape[1]
    labels = np.empty(n_leaves, dtype=np.int64)
    for leaf in range(n_leaves):
        labels[leaf] = state.counts[leaf].argmax()
    point, goal, seen = -1, -1, 0
    for i in range(n):
        here = state.leaf[i]
        for leaf in range(n_leaves):
            if leaf == here or not places.may[i, leaf]:
                continue
            gain = places.weight[i, labels[leaf]] - places.weight[i, labels[here]]
            for b in range(n_branches):
                if paths[here, b] != paths[leaf, b] and not places.fixed[b]:
                    gain += (1.0 + places.limits[0]) * max(0.0, paths[here, b] * state.duals[b, i])
            if gain > 1e-9 and max(state.total[0] - gain, state.known[i, leaf]) < limit - 1e-9:
                seen += 1
                if uniform(chance) * seen < 1.0:
                    point, goal = i, leaf
    return point, goal


@njit("Places State Kept i8 i8 i8 f8 f8 u8*", nogil=True)
def cross(
    places: Places, state: State, kept: Kept, first: int, last: int, steps: int, heat: float, own: float, chance: Any
) -> None:
    """Take the steps from `first` to `last` of so many, with losses accepted at random, ever more strictly."""
    n_branches = places.paths.shape[1]
    loose = 0
    for b in range(n_branches // 2):
        loose += 1 - places.fixed[b]
    leaf = np.empty_like(state.leaf)
    for step in range(first, last):
        planes = state.total[0] - own - _errors(state.counts)
        limit = state.total[0] - heat * (1.0 - step / steps) * max(planes, 1e-9) * np.log(1.0 - uniform(chance))
        if loose and uniform(chance) < _RELEASES:
            node, which = 0, int(uniform(chance) * loose)
            while places.fixed[node] or which > 0:
                which -= 1 - places.fixed[node]
                node += 1
            release(places, state, kept, node, uniform(chance), limit, chance)
            continue
        point, goal = _worthwhile(places, state, limit, chance)
        if point >= 0:
            leaf[:] = state.leaf
            leaf[point] = goal
            if not _placed(places, state, kept, leaf, limit):
                state.known[point, goal] = limit


@njit("Places f8* i8* f8 i8 b1 State", nogil=True)
def settle(places: Places, size: Any, labels: Any, price: float, fits: int, keep_root: bool, state: State) -> bool:
    """Fit planes to places and places to planes by turns, with given labels; whether places came to rest.

    The state has planes; where the root is kept, and leaves are below 0, points begin on its sides.
    """
    paths, (n, n_leaves) = places.paths, state.known.shape
    n_branches, epsilon = paths.shape[1], places.limits[0]
    limits = (epsilon, -1.0, places.limits[2], places.limits[3])
    sides, prices = np.empty(n, dtype=np.int64), price * size
    for _ in range(fits):
        rest = True
        for i in range(n):
            values, best, goal = np.empty(n_branches), np.inf, 0
            for b in range(n_branches):
                values[b] = value_at(places.table, i, state.normals[b], state.offsets[b])
            for leaf in range(n_leaves):
                if keep_root and (paths[leaf, 0] == 1) != (values[0] >= 0):
                    continue
                lost = places.weight[i].sum() - places.weight[i, labels[leaf]]
                if state.leaf[i] >= 0 or not keep_root:
                    for b in range(n_branches):
                        if paths[leaf, b] != 0:
                            lost += prices[i] * max(0.0, epsilon - paths[leaf, b] * values[b])
                if lost < best:
                    best, goal = lost, leaf
            rest = rest and state.leaf[i] == goal
            state.leaf[i] = goal
        if rest:
            return True
        for b in range(1 if keep_root else 0, n_branches):
            _sides(paths, state.leaf, b, sides)
            normal = np.empty(places.table.shape[1])
            cost, offset = best_plane(places.table, sides, prices, limits, np.inf, normal, state.duals[b])
            if not np.isinf(cost):
                state.normals[b] = normal
                state.offsets[b] = offset
    return False
