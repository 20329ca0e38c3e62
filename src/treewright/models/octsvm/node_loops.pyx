"""Steps that improve one node of a tree of support vector machines while all others stay.

The shared driver (:mod:`treewright.engine.alternate`) looks at all points of a level to improve any of its nodes
and costs a millisecond a node before any work. Here thousands of steps on some hundred points make a search, which is
why the course of the driver, the deepest nodes first and never worse, is written out in a loop. What the arrays
of a tree mean says :mod:`treewright.models.octsvm.machines`.
"""

cimport cython
from libc.math cimport fabs, log
from libc.stdint cimport int64_t, uint8_t, uint64_t

from treewright.engine.draws cimport draw, draw_below, shuffle
from treewright.models.octsvm.machine_loops cimport (
    Machine,
    Places,
    least_among,
    length,
    node_cost,
    range_within,
    relabelled_loss,
    train,
    values,
)

import numpy as np


cdef enum:
    MANY = 4000  # points that a support vector machine sees at most; sweeps, which say what a plane costs, see all


@cython.final
cdef class _Prices:
    """What a tree pays."""

    cdef:
        Py_ssize_t depth
        double r2, r3, limit
        int64_t norm

    def __init__(self, prices):
        self.depth, self.r2, self.r3, self.limit, self.norm = prices


@cython.final
cdef class _Tree:
    """Points and the splits that they pass."""

    cdef:
        const double[:, ::1] X
        double[:, ::1] w
        double[::1] b
        uint8_t[::1] split
        double[::1] label
        Py_ssize_t n_points, n_features, n_nodes

    def __init__(self, X, machines):
        self.X, self.w, self.b, self.label = X, machines.w, machines.b, machines.label
        self.split = machines.split.view(np.uint8)
        self.n_points, self.n_features, self.n_nodes = self.X.shape[0], self.X.shape[1], self.b.shape[0]


@cython.final
cdef class _Node:
    """The points that reach a node, what they pay below it on either side, and room for planes that are tried."""

    cdef:
        const int64_t[::1] rows
        double[::1] sign
        double[::1] weight
        double[::1] left
        double[::1] right
        double[::1] side
        double[::1] worth
        double[::1] f
        double[::1] new_f
        double[::1] rate
        int64_t[::1] some
        double[::1] w
        double[::1] new_w
        double[::1] best_w
        double[::1] u
        double b, best_b
        Places places
        Machine machine

    def __init__(self, int64_t[::1] rows, Py_ssize_t n_features):
        cdef Py_ssize_t n = rows.shape[0]
        cdef double[:, ::1] points = np.empty((9, n)), planes = np.empty((4, n_features))
        self.rows, self.some = rows, np.empty(n, dtype=np.int64)
        self.sign, self.weight, self.left, self.right = points[0], points[1], points[2], points[3]
        self.side, self.worth, self.f, self.new_f, self.rate = points[4], points[5], points[6], points[7], points[8]
        self.w, self.new_w, self.best_w, self.u = planes[0], planes[1], planes[2], planes[3]
        self.places, self.machine = Places(n), Machine(min(n, MANY), n_features)


cdef inline Py_ssize_t _level(Py_ssize_t t) noexcept nogil:
    cdef Py_ssize_t level = 0, u = t + 1
    while u > 1:
        u >>= 1
        level += 1
    return level


cdef inline bint _inside(Py_ssize_t u, Py_ssize_t t) noexcept nogil:
    """Whether u is t or below."""
    while u > t:
        u = (u - 1) // 2
    return u == t


cdef Py_ssize_t _splits_from(_Tree tree, Py_ssize_t t) noexcept nogil:
    """Number of splits at t and below."""
    cdef Py_ssize_t count = 0, u
    for u in range(t, tree.n_nodes):
        if tree.split[u] and _inside(u, t):
            count += 1
    return count


cdef void _prune(_Tree tree, Py_ssize_t t, double label) noexcept nogil:
    """Make t a leaf."""
    cdef Py_ssize_t u
    for u in range(t, tree.n_nodes):
        if _inside(u, t):
            tree.split[u], tree.label[u] = False, label


cdef inline double _value(_Tree tree, Py_ssize_t i, Py_ssize_t t) noexcept nogil:
    cdef double f = tree.b[t]
    cdef Py_ssize_t j
    for j in range(tree.n_features):
        f += tree.X[i, j] * tree.w[t, j]
    return f


cdef Py_ssize_t _rows_at(_Tree tree, Py_ssize_t t, int64_t[::1] rows) noexcept nogil:
    """Points that reach a node; how many."""
    cdef Py_ssize_t count = 0, level = _level(t), i, u, _
    for i in range(tree.n_points):
        u = 0
        for _ in range(level):
            u = 2 * u + 1 + (_value(tree, i, u) >= 0.0)
            if not _inside(t, u):
                break
        if u == t:
            rows[count] = i
            count += 1
    return count


cdef inline double _cost_from(_Tree tree, _Prices prices, Py_ssize_t i, double sign, Py_ssize_t t) noexcept nogil:
    """What a point that enters at t pays from there on, per unit of weight."""
    cdef double cost = 0.0, f
    while t < tree.n_nodes:
        if not tree.split[t]:
            if tree.label[t] != sign:
                cost += min(2.0, prices.r2) * (prices.depth - _level(t) + 1)
            break
        f = _value(tree, i, t)
        cost += relabelled_loss(sign * f, prices.r2)
        t = 2 * t + 1 + (f >= 0.0)
    return cost


def total_cost(X, const double[::1] sign, const double[::1] weight, machines, prices):
    """What the tree costs, its norms apart."""
    cdef:
        _Tree tree = _Tree(X, machines)
        _Prices paid = _Prices(prices)
        double cost = 0.0
        Py_ssize_t i
    with nogil:
        for i in range(tree.n_points):
            cost += _cost_from(tree, paid, i, sign[i], 0) * weight[i]
        cost += paid.r3 * _splits_from(tree, 0)
    return cost


def last_values(X, machines):
    """Value of each point at the last split on its way; -1 or 1 if it ends in a leaf above the last level."""
    cdef _Tree tree = _Tree(X, machines)
    cdef double[::1] out = np.empty(tree.n_points)
    cdef Py_ssize_t i, u
    with nogil:
        for i in range(tree.n_points):
            u = 0
            while u < tree.n_nodes:
                if not tree.split[u]:
                    out[i] = tree.label[u]
                    break
                out[i] = _value(tree, i, u)
                u = 2 * u + 1 + (out[i] >= 0.0)
    return np.asarray(out)


# ---------------------------------------------------------------------- what a node should do with its points


cdef double _by_stake(_Node node, double r2, double noise, uint64_t[::1] draws) noexcept nogil:
    """The side on which each point would be cheaper, all margins being met, and how much that is worth; the sum."""
    cdef double total = 0.0, gain
    cdef Py_ssize_t k
    for k in range(node.rows.shape[0]):
        gain = relabelled_loss(-node.sign[k], r2) + node.left[k] - relabelled_loss(node.sign[k], r2) - node.right[k]
        node.side[k] = 1.0 if gain > 0.0 else -1.0
        node.worth[k] = fabs(gain) * node.weight[k]
        if noise > 0.0:
            node.worth[k] *= (-log(1.0 - draw(draws))) ** noise
        total += node.worth[k]
    return total


cdef double _by_loss(_Node node, double r2) noexcept nogil:
    """The label that each point has or is given at the values f, and what children have at stake, as sides; the sum."""
    cdef double total = 0.0, margin, own
    cdef Py_ssize_t k
    for k in range(node.rows.shape[0]):
        margin = node.sign[k] * node.f[k]
        own = node.sign[k] if max(0.0, 1.0 - margin) <= r2 + max(0.0, 1.0 + margin) else -node.sign[k]
        own = own + node.left[k] - node.right[k]
        node.side[k] = 1.0 if own > 0.0 else -1.0
        node.worth[k] = fabs(own) * node.weight[k]
        total += node.worth[k]
    return total


cdef void _fit(_Tree tree, _Prices prices, _Node node, Machine machine, uint64_t[::1] draws) noexcept nogil:
    """Take the support vector machine of the points, or of some of them where they are many."""
    cdef Py_ssize_t n = 0, k, j
    for k in range(node.rows.shape[0]):
        if node.worth[k] > 0.0:
            node.some[n] = k
            n += 1
    if n > MANY:
        shuffle(node.some[:n], draws)
        n = MANY
    for k in range(n):
        machine.side[k], machine.worth[k] = node.side[node.some[k]], node.worth[node.some[k]]
        for j in range(tree.n_features):
            machine.Z[k, j] = tree.X[node.rows[node.some[k]], j]
    train(machine, n, prices.limit, prices.norm, draws)
    node.w[:], node.b = machine.w, machine.b


cdef inline double _costs(_Node node, const double[::1] f, double r2) noexcept nogil:
    return node_cost(f, node.sign, node.weight, node.left, node.right, r2)


cdef double _moved(_Tree tree, _Prices prices, _Node node, uint64_t[::1] draws) noexcept nogil:
    """Move a plane along lines for as long as that pays: its offset, its scale, toward the best one, single features.

    Returns what it costs.
    """
    cdef:
        double cost, new, spread, low, high, ub, new_b, t, expected
        Py_ssize_t step, kind, j, k, p = tree.n_features, n = node.rows.shape[0]
    values(tree.X, node.rows, node.w, node.b, node.f)
    cost = _costs(node, node.f, prices.r2)
    for step in range(10):
        kind = step % 5
        node.u[:] = 0.0
        if kind == 0:
            spread = 0.0
            for k in range(n):
                spread = max(spread, fabs(node.f[k]))
                node.rate[k] = 1.0
            spread += 2.0
            low, high, ub = -spread, spread, 1.0
        else:
            if kind == 1:
                node.u[:], ub, node.rate[:] = node.w, node.b, node.f
            elif kind == 2:
                for j in range(p):
                    node.u[j] = node.best_w[j] - node.w[j]
                ub = node.best_b - node.b
                values(tree.X, node.rows, node.u, ub, node.rate)
            else:
                j = draw_below(p, draws)
                node.u[j] = 1.0
                ub = -tree.X[node.rows[draw_below(n, draws)], j]
                for k in range(n):
                    node.rate[k] = tree.X[node.rows[k], j] + ub
            if length(node.u, 2) < 1e-9:
                continue
            low, high = range_within(node.w, node.u, prices.limit, prices.norm)
            if kind == 1:
                low = max(low, -0.999)
        t, expected = least_among(
            node.f, node.rate, node.sign, node.weight, node.left, node.right, prices.r2, low, high, node.places
        )
        if expected < cost - 1e-9:
            for j in range(p):
                node.new_w[j] = node.w[j] + t * node.u[j]
            new_b = node.b + t * ub
            values(tree.X, node.rows, node.new_w, new_b, node.new_f)
            new = _costs(node, node.new_f, prices.r2)
            if new < cost:
                node.w, node.new_w = node.new_w, node.w
                node.f, node.new_f = node.new_f, node.f
                node.b, cost = new_b, new
    return cost


cdef void _stakes(_Tree tree, _Prices prices, _Node node, Py_ssize_t t) noexcept nogil:
    """What points pay below a node on either side; the children of one that does not split would be leaves."""
    cdef Py_ssize_t k, below = prices.depth - _level(t)
    cdef double pays = min(2.0, prices.r2) * below if below else 0.0
    for k in range(node.rows.shape[0]):
        if tree.split[t] and below:
            node.left[k] = _cost_from(tree, prices, node.rows[k], node.sign[k], 2 * t + 1)
            node.right[k] = _cost_from(tree, prices, node.rows[k], node.sign[k], 2 * t + 2)
        else:
            node.left[k], node.right[k] = (pays, 0.0) if node.sign[k] > 0.0 else (0.0, pays)


cdef bint _improve(
    _Tree tree, _Prices prices, _Node node, Py_ssize_t t, double noise, uint64_t[::1] draws
) noexcept nogil:
    """As :func:`improve_node`, for the points of the node."""
    cdef:
        bint before = tree.split[t], leaf_is_best
        double plus = 0.0, minus = 0.0, now = 0.0, leaf, least, cost
        Py_ssize_t splits = _splits_from(tree, t), below = 0, level = _level(t), k, trial
        bint split_is_best = False
    for k in range(node.rows.shape[0]):
        if node.sign[k] > 0.0:
            plus += node.weight[k]
        else:
            minus += node.weight[k]
        now += _cost_from(tree, prices, node.rows[k], node.sign[k], t) * node.weight[k]
    now += prices.r3 * splits
    leaf = min(plus, minus) * min(2.0, prices.r2) * (prices.depth - level + 1)
    leaf_is_best = leaf < now - 1e-9 or (before and leaf <= now)
    least = leaf if leaf_is_best else now
    node.best_w[:], node.best_b = tree.w[t], tree.b[t]
    if min(plus, minus) > 0.0:
        _stakes(tree, prices, node, t)
        below = splits - 1 if before and level < prices.depth else 0
        for trial in range(3):
            node.w[:], node.b = node.best_w, node.best_b
            if trial == 1:
                if _by_stake(node, prices.r2, noise, draws) > 0.0:
                    _fit(tree, prices, node, node.machine, draws)
            elif trial == 2 and (before or split_is_best):
                values(tree.X, node.rows, node.best_w, node.best_b, node.f)
                if _by_loss(node, prices.r2) > 0.0:
                    _fit(tree, prices, node, node.machine, draws)
            elif not before:
                continue
            cost = _moved(tree, prices, node, draws) + prices.r3 * (1 + below)
            if cost < least - 1e-9:
                least, split_is_best = cost, True
                node.best_w[:], node.best_b = node.w, node.b
    if split_is_best:
        if not before and level < prices.depth:
            _prune(tree, 2 * t + 1, -1.0)
            _prune(tree, 2 * t + 2, 1.0)
        tree.split[t] = True
        tree.w[t, :], tree.b[t] = node.best_w, node.best_b
    elif leaf_is_best:
        _prune(tree, t, 1.0 if plus >= minus else -1.0)
    return split_is_best or leaf_is_best


def improve_node(
    X,
    const double[::1] sign,
    const double[::1] weight,
    machines,
    prices,
    Py_ssize_t t,
    double noise,
    uint64_t[::1] draws,
):
    """Give a node another split, or make it a leaf, if that makes the tree cheaper; whether it did.

    `noise` above 0 multiplies what points have at stake at random, for restarts.
    """
    cdef:
        _Tree tree = _Tree(X, machines)
        _Prices paid = _Prices(prices)
        _Node node
        int64_t[::1] rows
        Py_ssize_t n, k
        bint changed
    if t > 0 and not tree.split[(t - 1) // 2]:
        return False
    rows = np.empty(tree.n_points, dtype=np.int64)
    with nogil:
        n = _rows_at(tree, t, rows)
    node = _Node(rows[:n], tree.n_features)
    with nogil:
        for k in range(n):
            node.sign[k], node.weight[k] = sign[rows[k]], weight[rows[k]]
        changed = _improve(tree, paid, node, t, noise, draws)
    return changed


# ---------------------------------------------------------------------- other places to begin


cdef void _random_plane(
    _Tree tree, const double[::1] sign, _Prices prices, Py_ssize_t t, uint64_t[::1] draws
) noexcept nogil:
    """Give a node a plane halfway between two points, of different classes if they are found, some features alone."""
    cdef:
        Py_ssize_t n = tree.n_points, p = tree.n_features, i = draw_below(n, draws), j = draw_below(n, draws), k, _
        double[::1] u = tree.w[t]
        double largest, size, at_i = 0.0, at_j = 0.0
    for _ in range(10):
        if sign[i] != sign[j]:
            break
        j = draw_below(n, draws)
    for k in range(p):
        u[k] = (tree.X[i, k] - tree.X[j, k]) * sign[i]
    if draw(draws) < 0.5:
        for k in range(p):
            if draw(draws) >= max(2.0 / p, 0.3):
                u[k] = 0.0
    largest = length(u, 2)
    if largest == 0.0:
        for k in range(p):
            u[k] = draw(draws) - 0.5
    elif largest < 1e-140:  # squares would vanish
        for k in range(p):
            u[k] /= largest
    size = prices.limit / length(u, prices.norm)
    for k in range(p):
        u[k] *= size
        at_i += tree.X[i, k] * u[k]
        at_j += tree.X[j, k] * u[k]
    tree.b[t] = -0.5 * (at_i + at_j)
    tree.split[t] = True


def kicked(X, const double[::1] sign, machines, prices, bint everywhere, uint64_t[::1] draws):
    """Give a random node, or all, another plane; what is above it splits then."""
    cdef:
        _Tree tree = _Tree(X, machines)
        _Prices paid = _Prices(prices)
        Py_ssize_t t, child
    if everywhere:
        for t in range(tree.n_nodes):
            _random_plane(tree, sign, paid, t, draws)
        return
    t = draw_below(tree.n_nodes, draws)
    tree.split[t] = False
    while True:
        if not tree.split[t]:
            _random_plane(tree, sign, paid, t, draws)
            for child in range(2 * t + 1, min(2 * t + 3, tree.n_nodes)):
                if not tree.split[child]:
                    tree.label[child] = -1.0 if child == 2 * t + 1 else 1.0
        if t == 0:
            return
        t = (t - 1) // 2
