r"""Compiled parts of exact OCT: some rows of the table sorted by every column, sweeps, and trees of two levels.

A *block* is a set of points with ordinal columns (:mod:`treewright.splits.ordinal`): each column has its points in
order, so that a cut of the column is a place in that order. All costs are weights of misclassified points plus a
`price` for each split.

*Sweep*: points are in two parts, by the cut of the root. One pass over the order of a column finds the best split of
each part by that column (:func:`_sweep`). It is the only work that grows with the number of points.

*Bounds*: let :math:`l_f(c)` be the least cost of the left part of the root's cut c if it is split by column f.
More points cost no less, and fewer points cost less by their weight at most:

.. math:: l_f(c') \ge l_f(c), \quad l_f(c) \ge l_f(c') - w(c, c') \quad \text{for } c < c',

and the same mirrored on the right. So cuts whose columns were swept bound all columns at all cuts between them, and a
cut is given up without a sweep, or after those of a few columns, where bounds say that it is no better than the best.
The smallest size of leaves is left out of these bounds, as a tree may keep it on more points and not on fewer.

No function calls itself: compiled code that does and is read back from numba's cache crashes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from treewright.core.arrays import FloatArray
from treewright.core.compiled import fields_of, njit

__all__ = [
    "Block",
    "Rules",
    "Sweeps",
    "cut_of_split",
    "cuts_of",
    "restricted",
    "solve_two",
    "split_costs",
    "sweeps_for",
]

_SLOTS = 72
"""Room for the bounds at the ends of nested intervals, each half of the last: more than any table has."""


@fields_of("i8 f8 f8 f8")
class Rules(NamedTuple):
    """What trees cost, and which are allowed."""

    n_classes: int
    min_leaf: float
    """Fewest rows of a leaf; up to 1 it means nothing, as a leaf without points is no leaf."""
    price: float
    """Of a split, in the weight of points."""
    tolerance: float
    """By how much a tree must be better to be so: sums in another order differ by rounding."""


@fields_of("i4** i4** u1** i8* i8* f8* f8* i8*")
class Block(NamedTuple):
    """Points, sorted by every column."""

    order: NDArray[np.int32]
    """Points by each column; shape (n_columns, n_points)."""
    rank: NDArray[np.int32]
    """Place of each point among the values of each column; points of equal rank are never parted."""
    last: NDArray[np.uint8]
    """Whether a place in the order is the last one of its rank."""
    n_ranks: NDArray[np.int64]
    """Ranks that occur in each column."""
    y: NDArray[np.int64]
    weight: FloatArray
    size: FloatArray
    """Rows that points stand for."""
    row: NDArray[np.int64]
    """Number of each point in the whole table."""


@fields_of("f8** f8** f8** i8** i8* f8* i8*")
class Sweeps(NamedTuple):
    """What :func:`solve_two` keeps while it works, so that it can end early and go on later."""

    left: FloatArray
    """Bounds :math:`l_f` at some cuts; shape (slots, n_columns)."""
    right: FloatArray
    least: FloatArray
    """Least cost of each part at these cuts, without and with the smallest size; shape (slots, 2)."""
    stack: NDArray[np.int64]
    """Intervals of cuts still to do: both ends, their slots, how often they were halved."""
    at: NDArray[np.int64]
    """Column in turn as a number in `todo`, and intervals on the stack, -1 if the column is not begun."""
    cost: FloatArray
    """Cost to get below; least bound of the cuts of the column in turn."""
    best: NDArray[np.int64]
    """Column and cut of the root, columns of its children, -1 for a leaf; the first is -1 while nothing is found."""


def sweeps_for(n_columns: int, below: float) -> Sweeps:
    """The state of a search for a tree that costs less than `below`."""
    return Sweeps(
        np.zeros((_SLOTS, n_columns)),
        np.zeros((_SLOTS, n_columns)),
        np.zeros((_SLOTS, 2)),
        np.zeros((_SLOTS, 5), dtype=np.int64),
        np.array([0, -1]),
        np.array([below, np.inf]),
        np.full(4, -1),
    )


@njit("Block i8 i8 b1", nogil=True)
def restricted(block: Block, column: int, cut: int, lower: bool) -> Block:
    """The points with a rank of at most `cut` in a column, or those above it."""
    n_columns, n = block.order.shape
    number = np.full(n, -1, dtype=np.int32)
    m = 0
    for i in range(n):
        if (block.rank[column, i] <= cut) == lower:
            number[i] = m
            m += 1
    order = np.empty((n_columns, m), dtype=np.int32)
    rank = np.empty((n_columns, m), dtype=np.int32)
    last = np.zeros((n_columns, m), dtype=np.uint8)
    n_ranks = np.zeros(n_columns, dtype=np.int64)
    for f in range(n_columns):
        k, before = 0, -1
        for place in range(n):
            i = block.order[f, place]
            j = number[i]
            if j >= 0:
                here = block.rank[f, i]
                if here != before:
                    n_ranks[f] += 1
                    if k > 0:
                        last[f, k - 1] = 1
                before = here
                rank[f, j] = here
                order[f, k] = j
                k += 1
        if m > 0:
            last[f, m - 1] = 1
    y, weight = np.empty(m, dtype=np.int64), np.empty(m)
    size, row = np.empty(m), np.empty(m, dtype=np.int64)
    for i in range(n):
        j = number[i]
        if j >= 0:
            y[j], weight[j], size[j], row[j] = block.y[i], block.weight[i], block.size[i], block.row[i]
    return Block(order, rank, last, n_ranks, y, weight, size, row)


@njit(nogil=True)
def _signed(block: Block) -> FloatArray:
    """Weights of points, negative for class 0: all that a sweep for two classes needs."""
    return np.where(block.y == 0, -block.weight, block.weight)


@njit(nogil=True)
def _first_part(rank: NDArray[np.int32], cut: int, signed: FloatArray, first: FloatArray) -> None:
    """Signed weights of the points of the first part, 0 for the others."""
    for i in range(len(signed)):
        first[i] = signed[i] if rank[i] <= cut else 0.0


@njit(nogil=True)
def _sweep_two(
    order: NDArray[np.int32],
    last: NDArray[np.uint8],
    signed: FloatArray,
    first: FloatArray,
    totals: FloatArray,
    found: FloatArray,
) -> None:
    """As :func:`_sweep` for two classes and leaves of any size.

    With labels 1 and 0 a split misses the weight of class 1 less the largest sum of signed weights below a cut. Nothing
    here branches by the data, as every second guess of the processor would be wrong.
    """
    a = b = 0.0
    a_high = a_low = b_high = b_low = 0.0
    for k in range(len(order)):
        i = order[k]
        u = first[i]
        a += u
        b += signed[i] - u
        cut = np.float64(last[k])  # no cut within a rank; 0 is the sum of no points
        c, d = a * cut, b * cut
        a_high, a_low = max(a_high, c), min(a_low, c)
        b_high, b_low = max(b_high, d), min(b_low, d)
    found[0] = min(totals[0, 1] - a_high, totals[0, 0] + a_low)
    found[1] = min(totals[1, 1] - b_high, totals[1, 0] + b_low)
    found[2], found[3] = found[0], found[1]


@njit(nogil=True)
def _sweep(
    block: Block,
    rules: Rules,
    column: int,
    rank: NDArray[np.int32],
    cut: int,
    totals: FloatArray,
    sizes: FloatArray,
    found: FloatArray,
) -> None:
    """Least errors of a split of each of two parts by a column, without and with the smallest size of leaves.

    Parameters
    ----------
    block, rules
        Points and prices.
    column : int
        Column to split by.
    rank : ndarray of int
        Points of a rank of at most `cut` are the first part, the others the second one.
    cut : int
        See `rank`.
    totals : ndarray of shape (2, n_classes)
        Weight of each class in each part.
    sizes : ndarray of shape (2,)
        Rows of each part.
    found : ndarray of shape (4,)
        Gets the errors of the first part and the second one, then those with leaves large enough, maybe infinite.
    """
    n_classes = rules.n_classes
    below = np.zeros((2, n_classes))
    rows = np.zeros(2)
    right, allowed = np.full(2, -np.inf), np.full(2, -np.inf)
    fresh = np.ones(2, dtype=np.bool_)
    for part in range(2):  # all points of a part on one side
        right[part] = totals[part].max()
    order, last = block.order[column], block.last[column]
    for k in range(len(order)):
        i = order[k]
        part = 0 if rank[i] <= cut else 1
        below[part, block.y[i]] += block.weight[i]
        rows[part] += block.size[i]
        fresh[part] = True
        if last[k]:
            for s in range(2):
                if fresh[s]:
                    most_below = most_above = 0.0
                    for c in range(n_classes):
                        most_below = max(most_below, below[s, c])
                        most_above = max(most_above, totals[s, c] - below[s, c])
                    value = most_below + most_above
                    right[s] = max(right[s], value)
                    if rows[s] >= rules.min_leaf - 1e-9 and sizes[s] - rows[s] >= rules.min_leaf - 1e-9:
                        allowed[s] = max(allowed[s], value)
                    fresh[s] = False
    for s in range(2):
        total = totals[s].sum()
        found[s] = total - right[s]
        found[2 + s] = total - allowed[s] if rules.min_leaf > 1 else found[s]


@njit(nogil=True)
def _swept(
    block: Block,
    rules: Rules,
    column: int,
    rank: NDArray[np.int32],
    cut: int,
    signed: FloatArray,
    first: FloatArray,
    totals: FloatArray,
    sizes: FloatArray,
    found: FloatArray,
) -> None:
    """The sweep that the rules allow."""
    if rules.n_classes == 2 and rules.min_leaf <= 1:
        _sweep_two(block.order[column], block.last[column], signed, first, totals, found)
    else:
        _sweep(block, rules, column, rank, cut, totals, sizes, found)


@njit("Block Rules", nogil=True)
def split_costs(block: Block, rules: Rules) -> tuple[FloatArray, FloatArray]:
    """Cost of the best single split by each column, without and with the smallest size of leaves."""
    n_columns, n = block.order.shape
    free, allowed = np.full(n_columns, np.inf), np.full(n_columns, np.inf)
    totals, sizes, found = np.zeros((2, rules.n_classes)), np.zeros(2), np.zeros(4)
    for i in range(n):
        totals[0, block.y[i]] += block.weight[i]
        sizes[0] += block.size[i]
    signed = _signed(block)
    for f in range(n_columns):
        if block.n_ranks[f] > 1:
            _swept(block, rules, f, block.rank[f], 2**31 - 1, signed, signed, totals, sizes, found)
            free[f], allowed[f] = rules.price + found[0], rules.price + found[2]
    return free, allowed


@njit("Block Rules i8", nogil=True)
def cuts_of(block: Block, rules: Rules, column: int) -> tuple[NDArray[np.int64], FloatArray, FloatArray]:
    """Cuts of a column as ranks, and the weight of each class and the rows (last column) up to each of them.

    The first one has no point below and the last one all of them.
    """
    m = block.n_ranks[column]
    cuts = np.full(m + 1, -1, dtype=np.int64)
    sums, heavy = np.zeros((m + 1, rules.n_classes + 1)), np.zeros(m + 1)
    k = 1
    for place in range(len(block.y)):
        i = block.order[column, place]
        sums[k, block.y[i]] += block.weight[i]
        sums[k, rules.n_classes] += block.size[i]
        heavy[k] += block.weight[i]
        if block.last[column, place]:
            cuts[k] = block.rank[column, i]
            k += 1
            if k <= m:
                sums[k], heavy[k] = sums[k - 1], heavy[k - 1]
    return cuts, sums, heavy


@njit(nogil=True)
def _first_beyond(heavy: FloatArray, low: int, high: int, weight: float) -> int:
    """First cut of ``low, ..., high`` with more than so much weight below it; ``high + 1`` if there is none."""
    high += 1
    while low < high:
        middle = (low + high) // 2
        if heavy[middle] > weight:
            high = middle
        else:
            low = middle + 1
    return low


@njit(nogil=True)
def _leaf_costs(rules: Rules, totals: FloatArray, sizes: FloatArray) -> tuple[float, float, float, float]:
    """Errors of both parts as leaves, without and with the smallest size."""
    a, b = totals[0].sum() - totals[0].max(), totals[1].sum() - totals[1].max()
    least = rules.min_leaf - 1e-9
    return a, b, a if sizes[0] >= least else np.inf, b if sizes[1] >= least else np.inf


@njit(nogil=True)
def _evaluate(
    block: Block,
    rules: Rules,
    columns: NDArray[np.int64],
    root: int,
    cut: int,
    signed: FloatArray,
    first: FloatArray,
    totals: FloatArray,
    sizes: FloatArray,
    ends: tuple[int, int],
    weights: tuple[float, float],
    slot: int,
    sweeps: Sweeps,
) -> int:
    """Bound the columns of both children of a cut, and take the tree if it is better; return the number of sweeps.

    `ends` are the slots of cuts to the left and the right whose bounds are known, and `weights` those of the points
    between them and the cut. The bounds of this cut go to `slot`.
    """
    left, right = sweeps.left[slot], sweeps.right[slot]
    n = len(columns)
    done = np.zeros(n, dtype=np.bool_)
    here_left, here_right = np.empty(n), np.empty(n)
    for k in range(n):
        f = columns[k]
        left[f] = max(sweeps.left[ends[0], f], sweeps.left[ends[1], f] - weights[1])
        right[f] = max(sweeps.right[ends[1], f], sweeps.right[ends[0], f] - weights[0])
        here_left[k], here_right[k] = left[f], right[f]
    leaf_left, leaf_right, end_left, end_right = _leaf_costs(rules, totals, sizes)
    found, n_sweeps, n_classes = np.empty(4), 0, rules.n_classes
    while True:
        a = b = 0
        for k in range(1, n):
            a = k if here_left[k] < here_left[a] else a
            b = k if here_right[k] < here_right[b] else b
        best_left, best_right = min(end_left, here_left[a]), min(end_right, here_right[b])
        if rules.price + best_left + best_right >= sweeps.cost[0] - rules.tolerance:
            break
        if end_left > here_left[a] and not done[a]:
            k = a
        elif end_right > here_right[b] and not done[b]:
            k = b
        else:
            sweeps.cost[0] = rules.price + best_left + best_right
            sweeps.best[0], sweeps.best[1] = root, cut
            sweeps.best[2] = -1 if end_left <= here_left[a] else columns[a]
            sweeps.best[3] = -1 if end_right <= here_right[b] else columns[b]
            break
        f = columns[k]
        if n_sweeps == 0 and n_classes == 2:
            _first_part(block.rank[root], cut, signed, first)
        _swept(block, rules, f, block.rank[root], cut, signed, first, totals, sizes, found)
        done[k], n_sweeps = True, n_sweeps + 1
        left[f], right[f] = rules.price + found[0], rules.price + found[1]
        here_left[k], here_right[k] = rules.price + found[2], rules.price + found[3]
    least_left, least_right = leaf_left, leaf_right
    for k in range(n):
        least_left, least_right = min(least_left, left[columns[k]]), min(least_right, right[columns[k]])
    sweeps.least[slot, 0], sweeps.least[slot, 1] = least_left, least_right
    return n_sweeps


@njit("Block Rules f8* f8* i8* Sweeps f8", nogil=True)
def solve_two(
    block: Block,
    rules: Rules,
    single: FloatArray,
    bounds: FloatArray,
    todo: NDArray[np.int64],
    sweeps: Sweeps,
    limit: float,
) -> bool:
    """Search the best tree of a split with at most one more on either side; return whether all is done.

    Parameters
    ----------
    block, rules
        Points and prices.
    single : ndarray of shape (n_columns,)
        Cost of the best single split by each column, of leaves of any size.
    bounds : ndarray of shape (n_columns,)
        What trees with a column at the root cost at least, with leaves of any size; raised to what is found out, where
        it is below the cost to get below.
    todo : ndarray of int
        Columns in the order in which they are tried at the root.
    sweeps : Sweeps
        The state of the search.
    limit : float
        How many points to look at before it ends early.
    """
    columns = np.flatnonzero(block.n_ranks > 1)
    signed, first = _signed(block), np.zeros(len(block.y))
    totals, sizes = np.zeros((2, rules.n_classes)), np.zeros(2)
    work, n_classes = 0.0, rules.n_classes
    while sweeps.at[0] < len(todo):
        root = todo[sweeps.at[0]]
        if bounds[root] >= sweeps.cost[0] - rules.tolerance or block.n_ranks[root] < 2:
            sweeps.at[0] += 1
            continue
        cuts, sums, heavy = cuts_of(block, rules, root)
        end = len(cuts) - 1
        if sweeps.at[1] < 0:
            whole = sums[end, :n_classes]
            leaf = whole.sum() - whole.max()
            sweeps.left[0], sweeps.right[0] = rules.price, single
            sweeps.left[1], sweeps.right[1] = single, rules.price
            least = min(leaf, single.min())
            sweeps.least[0, 0], sweeps.least[0, 1] = 0.0, least
            sweeps.least[1, 0], sweeps.least[1, 1] = least, 0.0
            sweeps.stack[0] = np.array([0, end, 0, 1, 0])
            sweeps.at[1], sweeps.cost[1] = 1, np.inf
        while sweeps.at[1] > 0:
            if work > limit:
                return False
            sweeps.at[1] -= 1
            i, j, slot_i, slot_j, depth = sweeps.stack[sweeps.at[1]]
            if j - i < 2:
                continue
            need = sweeps.cost[0] - rules.tolerance
            least = rules.price + sweeps.least[slot_i, 0] + sweeps.least[slot_j, 1]
            if least >= need:
                sweeps.cost[1] = min(sweeps.cost[1], least)
                continue
            # Cuts near an end differ from it by the weight between them at most.
            spare = rules.price + sweeps.least[slot_i].sum() - need
            low = _first_beyond(heavy, i + 1, j - 1, heavy[i] + spare)
            spare = rules.price + sweeps.least[slot_j].sum() - need
            high = j - 1
            while high >= low and heavy[j] - heavy[high] <= spare:
                high -= 1
            if low > i + 1 or high < j - 1:
                sweeps.cost[1] = min(sweeps.cost[1], need)
            if low > high:
                continue
            middle = (low + high) // 2
            for c in range(n_classes):
                totals[0, c], totals[1, c] = sums[middle, c], sums[end, c] - sums[middle, c]
            sizes[0], sizes[1] = sums[middle, n_classes], sums[end, n_classes] - sums[middle, n_classes]
            slot = depth + 2
            n_sweeps = _evaluate(
                block,
                rules,
                columns,
                root,
                cuts[middle],
                signed,
                first,
                totals,
                sizes,
                (slot_i, slot_j),
                (heavy[middle] - heavy[i], heavy[j] - heavy[middle]),
                slot,
                sweeps,
            )
            work += n_sweeps * len(signed) + 2.0 * len(columns)
            sweeps.cost[1] = min(sweeps.cost[1], rules.price + sweeps.least[slot].sum())
            top = sweeps.at[1]
            sweeps.stack[top] = np.array([middle, j, slot, slot_j, depth + 1])
            sweeps.stack[top + 1] = np.array([i, middle, slot_i, slot, depth + 1])
            sweeps.at[1] = top + 2
        bounds[root] = max(bounds[root], min(sweeps.cost[0], sweeps.cost[1]))
        sweeps.at[0], sweeps.at[1] = sweeps.at[0] + 1, -1
    return True


@njit("Block Rules i8", nogil=True)
def cut_of_split(block: Block, rules: Rules, column: int) -> int:
    """Rank after which the best single split by a column cuts; of equally good cuts the most balanced by weight."""
    cuts, sums, heavy = cuts_of(block, rules, column)
    end, best, balance, found = len(cuts) - 1, np.inf, -1.0, -1
    for k in range(1, end):
        rows = sums[k, rules.n_classes]
        if rules.min_leaf > 1 and min(rows, sums[end, rules.n_classes] - rows) < rules.min_leaf - 1e-9:
            continue
        below = above = 0.0
        for c in range(rules.n_classes):
            below, above = max(below, sums[k, c]), max(above, sums[end, c] - sums[k, c])
        cost = heavy[end] - below - above
        even = min(heavy[k], heavy[end] - heavy[k])
        if cost < best - rules.tolerance or (cost <= best + rules.tolerance and even > balance):
            best, balance, found = min(best, cost), even, cuts[k]
    return found
