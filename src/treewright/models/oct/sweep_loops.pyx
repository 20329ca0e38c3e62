"""Loops of :mod:`treewright.models.oct.sweeps`, which says what they work on and by what mathematics."""

cimport cython
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint8_t

import numpy as np

from treewright.engine.pairs cimport Pair, first, larger, pair, pair_at, scaled, second, smaller, sum_of
from treewright.models.oct.sweeps import Block


cdef enum:
    ALL_RANKS = 2147483647


@cython.final
cdef class _Points:
    """A block and its rules as loops read them, and room for what a sweep adds up."""

    cdef:
        const int32_t[:, ::1] order
        const int32_t[:, ::1] rank
        const uint8_t[:, ::1] last
        const int64_t[::1] n_ranks
        const int64_t[::1] y
        const double[::1] weight
        const double[::1] size
        double[::1] signed  # weights, negative for class 0: all that a sweep for two classes needs
        double[:, ::1] below
        Py_ssize_t n_points, n_columns, n_classes
        double min_leaf, price, tolerance

    def __init__(self, block, rules):
        self.order, self.rank, self.last, self.n_ranks = block.order, block.rank, block.last, block.n_ranks
        self.y, self.weight, self.size = block.y, block.weight, block.size
        self.n_columns, self.n_points = block.order.shape
        self.n_classes, self.min_leaf, self.price, self.tolerance = rules
        self.signed = np.where(block.y == 0, -block.weight, block.weight)
        self.below = np.empty((2, self.n_classes))


@cython.final
cdef class _Cuts:
    """Cuts of a column as ranks, and the weight of each class and the rows (last column) up to each of them."""

    cdef:
        int64_t[::1] cut
        double[:, ::1] sums
        double[::1] heavy

    def __init__(self, Py_ssize_t most, Py_ssize_t n_classes):
        self.cut, self.heavy = np.empty(most + 1, dtype=np.int64), np.empty(most + 1)
        self.sums = np.empty((most + 1, n_classes + 1))


@cython.final
cdef class _Search:
    """What :func:`solve_two` keeps, and room for what is known at the cut in turn."""

    cdef:
        double[:, ::1] left
        double[:, ::1] right
        double[:, ::1] least
        int64_t[:, ::1] stack
        int64_t[::1] at
        double[::1] cost
        int64_t[::1] best
        const int64_t[::1] columns
        double[:, ::1] parts  # of the cut in turn
        double[:, ::1] totals
        double[:, ::1] here  # bounds of the children with the smallest size, by number in `columns`
        uint8_t[::1] done

    def __init__(self, sweeps, block, Py_ssize_t n_classes):
        self.left, self.right, self.least, self.stack, self.at, self.cost, self.best = sweeps
        columns = np.flatnonzero(block.n_ranks > 1)
        self.columns, self.parts = columns, np.zeros((len(block.y), 2))
        self.totals = np.zeros((2, n_classes))
        self.here, self.done = np.empty((2, len(columns))), np.zeros(len(columns), dtype=np.uint8)


cdef inline double _sum(const double[:, ::1] numbers, Py_ssize_t row, Py_ssize_t n) noexcept nogil:
    cdef double total = 0.0
    cdef Py_ssize_t c
    for c in range(n):
        total += numbers[row, c]
    return total


cdef inline double _most(const double[:, ::1] numbers, Py_ssize_t row, Py_ssize_t n) noexcept nogil:
    cdef double most = numbers[row, 0]
    cdef Py_ssize_t c
    for c in range(1, n):
        most = max(most, numbers[row, c])
    return most


cdef void _part(_Points points, Py_ssize_t root, int64_t cut, double[:, ::1] parts) noexcept nogil:
    """Signed weights of the points of the first part and of the second one, 0 for the others."""
    cdef Py_ssize_t i
    cdef bint inside
    for i in range(points.n_points):
        inside = points.rank[root, i] <= cut
        parts[i, 1 - inside], parts[i, inside] = points.signed[i], 0.0


cdef void _sweep_two(
    _Points points, Py_ssize_t column, const double[:, ::1] parts, const double[:, ::1] totals, double* found
) noexcept nogil:
    """As :func:`_sweep` for two classes and leaves of any size.

    With labels 1 and 0 a split misses the weight of class 1 less the largest sum of signed weights below a cut. Nothing
    here branches by the data, as every second guess of the processor would be wrong.
    """
    cdef:
        Pair sums = pair(0.0, 0.0), high = pair(0.0, 0.0), low = pair(0.0, 0.0), here
        Py_ssize_t k
    for k in range(points.n_points):
        sums = sum_of(sums, pair_at(&parts[points.order[column, k], 0]))
        here = scaled(sums, points.last[column, k])  # no cut within a rank; 0 is the sum of no points
        high, low = larger(here, high), smaller(here, low)
    found[0] = min(totals[0, 1] - first(high), totals[0, 0] + first(low))
    found[1] = min(totals[1, 1] - second(high), totals[1, 0] + second(low))
    found[2], found[3] = found[0], found[1]


cdef void _sweep(
    _Points points,
    Py_ssize_t column,
    Py_ssize_t root,
    int64_t cut,
    const double[:, ::1] totals,
    const double* sizes,
    double* found,
) noexcept nogil:
    """Least errors of a split of each of two parts by a column, without and with the smallest size of leaves.

    Parameters
    ----------
    points
        Points and prices.
    column
        Column to split by.
    root, cut
        Points of a rank of at most `cut` in column `root` are the first part, the others the second one.
    totals : of shape (2, n_classes)
        Weight of each class in each part.
    sizes : of shape (2,)
        Rows of each part.
    found : of shape (4,)
        Gets the errors of the first part and the second one, then those with leaves large enough, maybe infinite.
    """
    cdef:
        double[2] rows = [0.0, 0.0], right, allowed = [-INFINITY, -INFINITY]
        bint[2] fresh = [True, True]
        double most_below, most_above, value, total, least = points.min_leaf - 1e-9
        Py_ssize_t k, i, c, s, part, n_classes = points.n_classes
    points.below[:, :] = 0.0
    for part in range(2):  # all points of a part on one side
        right[part] = _most(totals, part, n_classes)
    for k in range(points.n_points):
        i = points.order[column, k]
        part = 0 if points.rank[root, i] <= cut else 1
        points.below[part, points.y[i]] += points.weight[i]
        rows[part] += points.size[i]
        fresh[part] = True
        if points.last[column, k]:
            for s in range(2):
                if fresh[s]:
                    most_below = most_above = 0.0
                    for c in range(n_classes):
                        most_below = max(most_below, points.below[s, c])
                        most_above = max(most_above, totals[s, c] - points.below[s, c])
                    value = most_below + most_above
                    right[s] = max(right[s], value)
                    if rows[s] >= least and sizes[s] - rows[s] >= least:
                        allowed[s] = max(allowed[s], value)
                    fresh[s] = False
    for s in range(2):
        total = _sum(totals, s, n_classes)
        found[s] = total - right[s]
        found[2 + s] = total - allowed[s] if points.min_leaf > 1 else found[s]


cdef inline void _swept(
    _Points points,
    Py_ssize_t column,
    Py_ssize_t root,
    int64_t cut,
    const double[:, ::1] parts,
    const double[:, ::1] totals,
    const double* sizes,
    double* found,
) noexcept nogil:
    """The sweep that the rules allow."""
    if points.n_classes == 2 and points.min_leaf <= 1:
        _sweep_two(points, column, parts, totals, found)
    else:
        _sweep(points, column, root, cut, totals, sizes, found)


def split_costs(block, rules):
    """Cost of the best single split by each column, without and with the smallest size of leaves."""
    cdef:
        _Points points = _Points(block, rules)
        Py_ssize_t i, f
        double[2] sizes = [0.0, 0.0]
        double[4] found
        double[:, ::1] totals = np.zeros((2, points.n_classes))
        double[:, ::1] parts = np.empty((points.n_points, 2))
        double[:, ::1] costs = np.full((2, points.n_columns), np.inf)
    with nogil:
        for i in range(points.n_points):
            totals[0, points.y[i]] += points.weight[i]
            sizes[0] += points.size[i]
        if points.n_columns and points.n_classes == 2:
            _part(points, 0, ALL_RANKS, parts)
        for f in range(points.n_columns):
            if points.n_ranks[f] > 1:
                _swept(points, f, f, ALL_RANKS, parts, totals, sizes, found)
                costs[0, f], costs[1, f] = points.price + found[0], points.price + found[2]
    return np.asarray(costs[0]), np.asarray(costs[1])


cdef void _cut(_Points points, Py_ssize_t column, _Cuts cuts) noexcept nogil:
    """The cuts of a column."""
    cdef Py_ssize_t place, i, c, k = 1, m = points.n_ranks[column], n_classes = points.n_classes
    cuts.cut[0] = -1
    cuts.sums[:2, :] = 0.0
    cuts.heavy[:2] = 0.0
    for place in range(points.n_points):
        i = points.order[column, place]
        cuts.sums[k, points.y[i]] += points.weight[i]
        cuts.sums[k, n_classes] += points.size[i]
        cuts.heavy[k] += points.weight[i]
        if points.last[column, place]:
            cuts.cut[k] = points.rank[column, i]
            k += 1
            if k <= m:
                for c in range(n_classes + 1):
                    cuts.sums[k, c] = cuts.sums[k - 1, c]
                cuts.heavy[k] = cuts.heavy[k - 1]


def cuts_of(block, rules, Py_ssize_t column):
    """Cuts of a column as ranks, and the weight of each class and the rows (last column) up to each of them.

    The first one has no point below and the last one all of them.
    """
    cdef _Points points = _Points(block, rules)
    cdef _Cuts cuts = _Cuts(points.n_ranks[column], points.n_classes)
    with nogil:
        _cut(points, column, cuts)
    return np.asarray(cuts.cut), np.asarray(cuts.sums), np.asarray(cuts.heavy)


cdef Py_ssize_t _first_beyond(const double[::1] heavy, Py_ssize_t low, Py_ssize_t high, double weight) noexcept nogil:
    """First cut of ``low, ..., high`` with more than so much weight below it; ``high + 1`` if there is none."""
    cdef Py_ssize_t middle
    high += 1
    while low < high:
        middle = (low + high) // 2
        if heavy[middle] > weight:
            high = middle
        else:
            low = middle + 1
    return low


cdef Py_ssize_t _evaluate(
    _Points points,
    _Search search,
    Py_ssize_t root,
    int64_t cut,
    const double* sizes,
    const Py_ssize_t* ends,
    const double* weights,
    Py_ssize_t slot,
) noexcept nogil:
    """Bound the columns of both children of a cut, and take the tree if it is better; return the number of sweeps.

    `ends` are the slots of cuts to the left and the right whose bounds are known, and `weights` those of the points
    between them and the cut. The bounds of this cut go to `slot`.
    """
    cdef:
        Py_ssize_t n = search.columns.shape[0], n_classes = points.n_classes, n_sweeps = 0, k, f, a, b
        double least = points.min_leaf - 1e-9, leaf_left, leaf_right, end_left, end_right, best_left, best_right
        double[4] found
    for k in range(n):
        f = search.columns[k]
        search.left[slot, f] = max(search.left[ends[0], f], search.left[ends[1], f] - weights[1])
        search.right[slot, f] = max(search.right[ends[1], f], search.right[ends[0], f] - weights[0])
        search.here[0, k], search.here[1, k] = search.left[slot, f], search.right[slot, f]
        search.done[k] = False
    leaf_left = _sum(search.totals, 0, n_classes) - _most(search.totals, 0, n_classes)
    leaf_right = _sum(search.totals, 1, n_classes) - _most(search.totals, 1, n_classes)
    end_left = leaf_left if sizes[0] >= least else INFINITY
    end_right = leaf_right if sizes[1] >= least else INFINITY
    while True:
        a = b = 0
        for k in range(1, n):
            a = k if search.here[0, k] < search.here[0, a] else a
            b = k if search.here[1, k] < search.here[1, b] else b
        best_left, best_right = min(end_left, search.here[0, a]), min(end_right, search.here[1, b])
        if points.price + best_left + best_right >= search.cost[0] - points.tolerance:
            break
        if end_left > search.here[0, a] and not search.done[a]:
            k = a
        elif end_right > search.here[1, b] and not search.done[b]:
            k = b
        else:
            search.cost[0] = points.price + best_left + best_right
            search.best[0], search.best[1] = root, cut
            search.best[2] = -1 if end_left <= search.here[0, a] else search.columns[a]
            search.best[3] = -1 if end_right <= search.here[1, b] else search.columns[b]
            break
        f = search.columns[k]
        if n_sweeps == 0 and n_classes == 2:
            _part(points, root, cut, search.parts)
        _swept(points, f, root, cut, search.parts, search.totals, sizes, found)
        search.done[k] = True
        n_sweeps += 1
        search.left[slot, f], search.right[slot, f] = points.price + found[0], points.price + found[1]
        search.here[0, k], search.here[1, k] = points.price + found[2], points.price + found[3]
    for k in range(n):
        f = search.columns[k]
        leaf_left, leaf_right = min(leaf_left, search.left[slot, f]), min(leaf_right, search.right[slot, f])
    search.least[slot, 0], search.least[slot, 1] = leaf_left, leaf_right
    return n_sweeps


cdef void _begin(_Points points, _Search search, const double[::1] single, _Cuts cuts, Py_ssize_t end) noexcept nogil:
    """One interval with all cuts of a column, whose ends have all points on one side."""
    cdef double leaf = _sum(cuts.sums, end, points.n_classes) - _most(cuts.sums, end, points.n_classes)
    cdef double least = single[0]
    cdef Py_ssize_t f
    for f in range(points.n_columns):
        search.left[0, f] = search.right[1, f] = points.price
        search.right[0, f] = search.left[1, f] = single[f]
        least = min(least, single[f])
    least = min(leaf, least)
    search.least[0, 0], search.least[0, 1] = 0.0, least
    search.least[1, 0], search.least[1, 1] = least, 0.0
    _push(search, 0, 0, end, 0, 1, 0)
    search.at[1], search.cost[1] = 1, INFINITY


cdef inline void _push(
    _Search search, Py_ssize_t place, int64_t i, int64_t j, int64_t slot_i, int64_t slot_j, int64_t depth
) noexcept nogil:
    search.stack[place, 0], search.stack[place, 1] = i, j
    search.stack[place, 2], search.stack[place, 3], search.stack[place, 4] = slot_i, slot_j, depth


cdef double _halve(_Points points, _Search search, Py_ssize_t root, _Cuts cuts, Py_ssize_t end) noexcept nogil:
    """Take the last interval from the stack and put the halves that may be better there; return the work it took."""
    cdef:
        Py_ssize_t at = search.at[1] - 1, low, high, middle, slot, n_sweeps, c, n_classes = points.n_classes
        int64_t i = search.stack[at, 0], j = search.stack[at, 1], depth = search.stack[at, 4]
        Py_ssize_t[2] ends = [search.stack[at, 2], search.stack[at, 3]]
        double[2] sizes, weights
        double least, spare, need = search.cost[0] - points.tolerance
    search.at[1] = at
    if j - i < 2:
        return 0.0
    least = points.price + search.least[ends[0], 0] + search.least[ends[1], 1]
    if least >= need:
        search.cost[1] = min(search.cost[1], least)
        return 0.0
    # Cuts near an end differ from it by the weight between them at most.
    spare = points.price + (search.least[ends[0], 0] + search.least[ends[0], 1]) - need
    low = _first_beyond(cuts.heavy, i + 1, j - 1, cuts.heavy[i] + spare)
    spare = points.price + (search.least[ends[1], 0] + search.least[ends[1], 1]) - need
    high = j - 1
    while high >= low and cuts.heavy[j] - cuts.heavy[high] <= spare:
        high -= 1
    if low > i + 1 or high < j - 1:
        search.cost[1] = min(search.cost[1], need)
    if low > high:
        return 0.0
    middle = (low + high) // 2
    for c in range(n_classes):
        search.totals[0, c] = cuts.sums[middle, c]
        search.totals[1, c] = cuts.sums[end, c] - cuts.sums[middle, c]
    sizes[0] = cuts.sums[middle, n_classes]
    sizes[1] = cuts.sums[end, n_classes] - cuts.sums[middle, n_classes]
    weights[0], weights[1] = cuts.heavy[middle] - cuts.heavy[i], cuts.heavy[j] - cuts.heavy[middle]
    slot = depth + 2
    n_sweeps = _evaluate(points, search, root, cuts.cut[middle], sizes, ends, weights, slot)
    search.cost[1] = min(search.cost[1], points.price + (search.least[slot, 0] + search.least[slot, 1]))
    _push(search, at, middle, j, slot, ends[1], depth + 1)
    _push(search, at + 1, i, middle, ends[0], slot, depth + 1)
    search.at[1] = at + 2
    return <double> (n_sweeps * points.n_points) + 2.0 * search.columns.shape[0]


cdef bint _solve(
    _Points points,
    _Search search,
    const double[::1] single,
    double[::1] bounds,
    const int64_t[::1] todo,
    _Cuts cuts,
    double limit,
) noexcept nogil:
    cdef Py_ssize_t root, end
    cdef double work = 0.0
    while search.at[0] < todo.shape[0]:
        root = todo[search.at[0]]
        if bounds[root] >= search.cost[0] - points.tolerance or points.n_ranks[root] < 2:
            search.at[0] += 1
            continue
        _cut(points, root, cuts)
        end = points.n_ranks[root]
        if search.at[1] < 0:
            _begin(points, search, single, cuts, end)
        while search.at[1] > 0:
            if work > limit:
                return False
            work += _halve(points, search, root, cuts, end)
        bounds[root] = max(bounds[root], min(search.cost[0], search.cost[1]))
        search.at[0] += 1
        search.at[1] = -1
    return True


def solve_two(
    block, rules, const double[::1] single, double[::1] bounds, const int64_t[::1] todo, sweeps, double limit
):
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
    cdef:
        _Points points = _Points(block, rules)
        _Search search = _Search(sweeps, block, points.n_classes)
        _Cuts cuts = _Cuts(block.n_ranks.max(initial=0), points.n_classes)
        bint whole
    with nogil:
        whole = _solve(points, search, single, bounds, todo, cuts, limit)
    return whole


def cut_of_split(block, rules, Py_ssize_t column):
    """Rank after which the best single split by a column cuts; of equally good cuts the most balanced by weight."""
    cdef:
        _Points points = _Points(block, rules)
        _Cuts cuts = _Cuts(points.n_ranks[column], points.n_classes)
        Py_ssize_t k, c, end = points.n_ranks[column], n_classes = points.n_classes
        int64_t found = -1
        double best = INFINITY, balance = -1.0, rows, below, above, cost, even
    with nogil:
        _cut(points, column, cuts)
        for k in range(1, end):
            rows = cuts.sums[k, n_classes]
            if points.min_leaf > 1 and min(rows, cuts.sums[end, n_classes] - rows) < points.min_leaf - 1e-9:
                continue
            below = above = 0.0
            for c in range(n_classes):
                below, above = max(below, cuts.sums[k, c]), max(above, cuts.sums[end, c] - cuts.sums[k, c])
            cost = cuts.heavy[end] - below - above
            even = min(cuts.heavy[k], cuts.heavy[end] - cuts.heavy[k])
            if cost < best - points.tolerance or (cost <= best + points.tolerance and even > balance):
                best, balance, found = min(best, cost), even, cuts.cut[k]
    return found


def restricted(block, Py_ssize_t column, int64_t cut, bint lower):
    """The points with a rank of at most `cut` in a column, or those above it."""
    cdef:
        const int32_t[:, ::1] old_rank = block.rank
        Py_ssize_t i, m = 0, n_columns = old_rank.shape[0], n = old_rank.shape[1]
        int64_t[::1] kept = np.empty(n, dtype=np.int64)
        int32_t[::1] number = np.empty(n, dtype=np.int32)
    with nogil:
        for i in range(n):
            number[i] = -1
            if (old_rank[column, i] <= cut) == lower:
                number[i], kept[m] = m, i
                m += 1
    order, rank = np.empty((n_columns, m), dtype=np.int32), np.empty((n_columns, m), dtype=np.int32)
    last, n_ranks = np.zeros((n_columns, m), dtype=np.uint8), np.zeros(n_columns, dtype=np.int64)
    _renumber(block.order, old_rank, number, order, rank, last, n_ranks)
    of = np.asarray(kept)[:m]
    return Block(order, rank, last, n_ranks, *(each.take(of) for each in (block.y, block.weight, block.size, block.row)))


cdef _renumber(
    const int32_t[:, ::1] old_order,
    const int32_t[:, ::1] old_rank,
    const int32_t[::1] number,
    int32_t[:, ::1] order,
    int32_t[:, ::1] rank,
    uint8_t[:, ::1] last,
    int64_t[::1] n_ranks,
):
    """Orders and ranks of the points that have a new number, without the others."""
    cdef Py_ssize_t f, place, i, k, n_columns = old_order.shape[0], n = old_order.shape[1], m = order.shape[1]
    cdef int32_t j, here, before
    with nogil:
        for f in range(n_columns):
            k, before = 0, -1
            for place in range(n):
                i = old_order[f, place]
                j = number[i]
                if j >= 0:
                    here = old_rank[f, i]
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
