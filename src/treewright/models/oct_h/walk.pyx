r"""Walk of a whole tree along lines of hyperplanes, with more errors accepted at random.

A complete tree has its values ``F[i, b] = w_b @ x_i - o_b`` of point i at branch b, branches numbered like a heap from
0; a point goes right where its value is above 0. Normals have 1-norm 1. Along a line the values at a node are
``F + v * rate``: every point changes sides once or not at all, so that one sweep over these places in their order finds
the step with the fewest errors. What a tree costs is errors, plus the price of the features of splits that part their
points, plus *walls*: what its gaps and leaves lack, as a share of what they need, at a price that rises. Only trees
without walls are kept, but on the way to them others may be passed.
"""

cimport cython
from libc.math cimport INFINITY, NAN, fabs, isfinite, isnan, log
from libc.stdint cimport int64_t, uint64_t

from treewright.core.sorting cimport argsort
from treewright.engine.draws cimport draw, draw_below

import numpy as np


cdef:
    double STAY = 0.3  # share of the moves that may end where they began
    double PAIRS = 0.25  # share of the moves along the line between two points, where features have no price
    double LABELS = 0.1  # share of the moves at the lowest nodes for which another label is tried
    double FARTHEST = 5.0  # how far a coefficient moves, in units of the 1-norm
    double NEAREST = 1e-7  # gap below which rounding decides


@cython.final
cdef class _Tree:
    """Points, the tree that walks, and what was measured of it."""

    cdef:
        const double[:, ::1] X
        const int64_t[::1] y
        const double[::1] weight
        const double[::1] size
        double[:, ::1] normals
        double[::1] offsets
        int64_t[::1] labels
        double[:, ::1] F
        double[:, ::1] counts  # weights of the classes in leaves
        double[::1] rows  # of leaves
        double[::1] below  # ends of gaps
        double[::1] above
        Py_ssize_t n, p, n_branches
        double gap, least, price
        double lack  # what gaps and leaves lack
        bint clear  # whether all gaps are more than rounding, and no leaf lacks anything

    def __init__(
        self, X, y, weight, size, Py_ssize_t n_classes, double gap, double least, double price, normals, offsets, labels
    ):
        self.X, self.y, self.weight, self.size = X, y, weight, size
        self.gap, self.least, self.price = gap, least, price
        self.normals, self.offsets, self.labels = normals, offsets, labels
        self.n, self.p, self.n_branches = self.X.shape[0], self.X.shape[1], self.offsets.shape[0]
        self.F, self.counts = np.empty((self.n, self.n_branches)), np.empty((self.n_branches + 1, n_classes))
        self.rows = np.empty(self.n_branches + 1)
        self.below, self.above = np.empty(self.n_branches), np.empty(self.n_branches)


@cython.final
cdef class _Line:
    """The line of a step, the points that reach its node, and room for the places where they change sides."""

    cdef:
        double[::1] move  # of the normal
        int64_t[::1] used  # features that it moves along
        double turn  # of the offset
        double own, rest
        int64_t[::1] who
        double[::1] stake
        double[::1] rate
        double[::1] f
        double[::1] old
        double[::1] place
        double[::1] pace
        double[::1] jump
        int64_t[::1] order

    def __init__(self, Py_ssize_t n, Py_ssize_t p):
        cdef double[:, ::1] points = np.empty((7, n))
        cdef int64_t[:, ::1] numbers = np.empty((2, n), dtype=np.int64)
        self.move, self.used = np.empty(p), np.empty(p, dtype=np.int64)
        self.who, self.order = numbers[0], numbers[1]
        self.stake, self.rate, self.f, self.old = points[0], points[1], points[2], points[3]
        self.place, self.pace, self.jump = points[4], points[5], points[6]


cdef double _measured(_Tree tree) noexcept nogil:
    """Errors of a tree whose leaves get their best labels; weights and rows of leaves, and the ends of gaps."""
    cdef:
        Py_ssize_t i, node, leaf, best, k
        double f, total, errors = 0.0
    tree.counts[:, :] = 0.0
    tree.rows[:] = 0.0
    tree.below[:] = -INFINITY
    tree.above[:] = INFINITY
    for i in range(tree.n):
        node = 0
        while node < tree.n_branches:
            f = tree.F[i, node]
            if f > 0:
                tree.above[node] = min(tree.above[node], f)
                node = 2 * node + 2
            else:
                tree.below[node] = max(tree.below[node], f)
                node = 2 * node + 1
        tree.counts[node - tree.n_branches, tree.y[i]] += tree.weight[i]
        tree.rows[node - tree.n_branches] += tree.size[i]
    for leaf in range(tree.n_branches + 1):
        best = tree.labels[leaf]
        total = 0.0
        for k in range(tree.counts.shape[1]):
            total += tree.counts[leaf, k]
            if tree.counts[leaf, k] > tree.counts[leaf, best]:
                best = k
        tree.labels[leaf] = best
        errors += total - tree.counts[leaf, best]
    return errors


cdef double _priced(_Tree tree) noexcept nogil:
    """What the features cost that splits use which part their points."""
    cdef Py_ssize_t used = 0, b, j
    if tree.price == 0.0:
        return 0.0
    for b in range(tree.n_branches):
        if isfinite(tree.above[b] - tree.below[b]):
            for j in range(tree.p):
                used += tree.normals[b, j] != 0.0
    return tree.price * used


cdef double _cost(_Tree tree) noexcept nogil:
    """Errors and the price of features; what gaps and leaves lack, as shares of what they need, is noted."""
    cdef double errors = _measured(tree), lack = 0.0, width
    cdef Py_ssize_t b, leaf
    tree.clear = True
    for b in range(tree.n_branches):
        width = tree.above[b] - tree.below[b]
        if width < tree.gap:
            lack += 1.0 - width / tree.gap
            tree.clear = tree.clear and width > NEAREST
    for leaf in range(tree.n_branches + 1):
        if 0.0 < tree.rows[leaf] < tree.least:
            lack += 1.0 - tree.rows[leaf] / tree.least
            tree.clear = False
    tree.lack = lack
    return errors + _priced(tree)


cdef Py_ssize_t _reaching(_Tree tree, _Line line, Py_ssize_t b, double noise, uint64_t[::1] draws) noexcept nogil:
    """Points that reach a node, and what each loses on the left less what it loses on the right; how many."""
    cdef:
        Py_ssize_t m = 0, i, node, side
        double lost
    for i in range(tree.n):
        node = 0
        while node < b:
            node = 2 * node + 1 + (tree.F[i, node] > 0)
        if node != b:
            continue
        lost = 0.0
        for side in range(2):
            node = 2 * b + 1 + side
            while node < tree.n_branches:
                node = 2 * node + 1 + (tree.F[i, node] > 0)
            if tree.labels[node - tree.n_branches] != tree.y[i]:
                lost += tree.weight[i] if side == 0 else -tree.weight[i]
        if noise > 0 and lost != 0.0:
            lost *= 1.0 + noise * (2.0 * draw(draws) - 1.0)
        line.who[m], line.stake[m] = i, lost
        m += 1
    return m


cdef bint _drawn(_Tree tree, _Line line, Py_ssize_t b, Py_ssize_t m, uint64_t[::1] draws) noexcept nogil:
    """Draw a line for the node whose m points are known, along a feature, the offset or a pair of points.

    Returns False for a pair of points that are one.
    """
    cdef:
        Py_ssize_t pivot = line.who[draw_below(m, draws)], feature = draw_below(tree.p + 1, draws), other, j, q
        double size = 0.0, turn = 0.0, r
    line.own, line.rest = NAN, 1.0
    line.move[:] = 0.0
    for q in range(m):
        line.f[q] = tree.F[line.who[q], b]
    if tree.price == 0.0 and tree.p > 1 and draw(draws) < PAIRS:
        other = line.who[draw_below(m, draws)]
        for j in range(tree.p):
            line.move[j] = tree.X[other, j] - tree.X[pivot, j]
            size += fabs(line.move[j])
        if size == 0.0:
            return False
        pivot = line.who[draw_below(m, draws)]
        for j in range(tree.p):
            line.move[j] /= size
            turn += line.move[j] * tree.X[pivot, j]
        for q in range(m):
            r = -turn
            for j in range(tree.p):
                r += line.move[j] * tree.X[line.who[q], j]
            line.rate[q] = r
    elif feature < tree.p:
        line.move[feature] = 1.0
        turn = tree.X[pivot, feature]
        line.own = tree.normals[b, feature]
        line.rest = 1.0 - fabs(line.own)
        for q in range(m):
            line.rate[q] = tree.X[line.who[q], feature] - turn
    else:
        turn = 1.0
        for q in range(m):
            line.rate[q] = -1.0
    line.turn = turn
    return True


cdef double _best_step(_Tree tree, _Line line, Py_ssize_t m, double wall, bint stay) noexcept nogil:
    """Where on a line the stakes on the left cost least: the middle of a step, or 0.

    Along the line the 1-norm is ``rest + |own + v|``; for a line without a feature of its own, `own` is NaN and the
    1-norm about `rest`. At ``v = -own`` the feature is not used, which saves its price.
    """
    cdef:
        Py_ssize_t k = 0, i, step, kind
        double far = FARTHEST, cost = 0.0, v, best = 0.0, least = INFINITY, low, high, slow, room, size, total, width
        bint special = not isnan(line.own) and line.own != 0.0 and line.rest > 1e-9
    for i in range(m):
        if line.f[i] - far * line.rate[i] <= 0:
            cost += line.stake[i]
        if line.rate[i] == 0.0:
            continue
        v = -line.f[i] / line.rate[i]
        if -far < v <= far:
            line.place[k] = v
            line.pace[k] = fabs(line.rate[i])
            line.jump[k] = -line.stake[i] if line.rate[i] > 0 else line.stake[i]
            k += 1
    argsort(line.place, k, line.order)
    for step in range(k + 1):
        low = -far if step == 0 else line.place[line.order[step - 1]]
        high = far if step == k else line.place[line.order[step]]
        slow = INFINITY if step == 0 else line.pace[line.order[step - 1]]
        if step < k:
            slow = min(slow, line.pace[line.order[step]])
        if step > 0:
            cost += line.jump[line.order[step - 1]]
        if high - low <= 1e-12 or (not stay and low < 0.0 < high):
            continue
        for kind in range(2):
            v = 0.5 * (low + high)
            room = 0.5 * (high - low)
            if kind == 1:
                if not special or not low < -line.own < high:
                    continue
                v = -line.own
                room = min(v - low, high - v)
            size = line.rest if isnan(line.own) else line.rest + fabs(line.own + v)
            total = cost + (tree.price if kind == 0 else 0.0)
            if isfinite(slow):
                width = 2.0 * room * slow / max(size, 1e-12)
                if width < tree.gap:
                    total += wall * (1.0 - width / tree.gap)
            if total < least:
                least, best = total, v
    return best


cdef void _scale(_Tree tree, Py_ssize_t b) noexcept nogil:
    """Give a normal 1-norm 1."""
    cdef double size = 0.0
    cdef Py_ssize_t i, j
    for j in range(tree.p):
        if fabs(tree.normals[b, j]) < 1e-9:
            tree.normals[b, j] = 0.0
        size += fabs(tree.normals[b, j])
    if size <= 0.0:
        return
    tree.offsets[b] /= size
    for j in range(tree.p):
        tree.normals[b, j] /= size
    for i in range(tree.n):
        tree.F[i, b] /= size


cdef void _begin(_Tree tree) noexcept nogil:
    """The values of all points."""
    cdef Py_ssize_t b, i, j
    cdef double f
    for b in range(tree.n_branches):
        for i in range(tree.n):
            f = -tree.offsets[b]
            for j in range(tree.p):
                f += tree.normals[b, j] * tree.X[i, j]
            tree.F[i, b] = f
        _scale(tree, b)


cdef void _step(_Tree tree, _Line line, Py_ssize_t b, double v) noexcept nogil:
    """Move a hyperplane along a line; its values before are kept in ``line.old``."""
    cdef Py_ssize_t n_used = 0, i, j, k
    cdef double r
    for j in range(tree.p):
        if line.move[j] != 0.0:
            line.used[n_used] = j
            n_used += 1
    for i in range(tree.n):
        line.old[i] = tree.F[i, b]
        r = -line.turn
        for k in range(n_used):
            j = line.used[k]
            r += line.move[j] * tree.X[i, j]
        tree.F[i, b] += v * r
    for j in range(tree.p):
        tree.normals[b, j] += v * line.move[j]
    tree.offsets[b] += v * line.turn
    _scale(tree, b)


def wander(
    X,
    y,
    weight,
    size,
    Py_ssize_t n_classes,
    double gap,
    double least,
    double price,
    double floor,
    double[:, ::1] normals,
    double[::1] offsets,
    int64_t[::1] labels,
    double[:, ::1] near,
    Py_ssize_t steps,
    double heat,
    double unit,
    uint64_t[::1] draws,
):
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
    cdef:
        _Tree tree = _Tree(X, y, weight, size, n_classes, gap, least, price, normals, offsets, labels)
        _Line line = _Line(tree.n, tree.p)
        double[:, ::1] ever = np.array(normals)
        double[::1] ever_offsets = np.array(offsets), kept = np.empty(tree.p)
        int64_t[::1] ever_labels = np.array(labels), old_labels = np.array(labels)
        Py_ssize_t step, b, m, i
        int64_t label
        double held, true, best, near_best, lack, cool, wall, noise, v, offset
    with nogil:
        _begin(tree)
        held = true = _cost(tree)
        lack = tree.lack
        best = true if lack == 0.0 else INFINITY
        near_best = true if tree.clear else INFINITY
        ever[:], ever_offsets[:], ever_labels[:] = normals, offsets, labels
        near[:, : tree.p], near[:, tree.p] = normals, offsets
        for step in range(steps):
            if best <= floor + 1e-9:
                break
            cool = 1.0 - <double> step / steps
            wall = unit * 2.0 * 0.02 ** max(0.0, (cool - 0.3) / 0.7)
            b = draw_below(tree.n_branches, draws)
            old_labels[:] = labels
            if 2 * b + 1 >= tree.n_branches and draw(draws) < LABELS:
                label = tree.y[draw_below(tree.n, draws)]
                labels[2 * b + 1 + draw_below(2, draws) - tree.n_branches] = label
            noise = cool if draw(draws) < 0.8 else 0.0
            m = _reaching(tree, line, b, noise, draws)
            if m < 2 or not _drawn(tree, line, b, m, draws):
                continue
            v = _best_step(tree, line, m, wall, draw(draws) < STAY)
            if v == 0.0:
                labels[:] = old_labels
                continue
            kept[:], offset = normals[b], offsets[b]
            _step(tree, line, b, v)
            true = _cost(tree)
            if true + wall * tree.lack <= held + wall * lack - heat * cool * log(1.0 - draw(draws)):
                held, lack = true, tree.lack
                if lack == 0.0 and true < best - 1e-9:
                    best = true
                    ever[:], ever_offsets[:], ever_labels[:] = normals, offsets, labels
                if tree.clear and true < near_best - 1e-9:
                    near_best = true
                    near[:, : tree.p], near[:, tree.p] = normals, offsets
                continue
            normals[b, :], offsets[b] = kept, offset
            for i in range(tree.n):
                tree.F[i, b] = line.old[i]
            labels[:] = old_labels
        normals[:], offsets[:], labels[:] = ever, ever_offsets, ever_labels
    return best, near_best
