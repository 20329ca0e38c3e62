"""Compiled walk of a whole tree along lines of planes, with losses accepted at random.

A complete tree has its values ``F[i, b]`` of point i at branch b, branches numbered like a heap from 0. Where the point
has no value there, as at a split on categories, it is 2 or -2 for the side it goes to: that is within no margin.
"""

cimport cython
from libc.math cimport INFINITY, fabs, isfinite, log, pow
from libc.stdint cimport int64_t, uint64_t

from treewright.models.svm1odt.walk cimport uniform
from treewright.splits.hinge_loops cimport Line, line_place, narrow

import numpy as np


cdef enum:
    STAGE = 50  # steps after which the price of margins rises


@cython.final
cdef class _Trees:
    """Normals, offsets and labels of a tree."""

    cdef:
        double[:, ::1] normals
        double[::1] offsets
        int64_t[::1] labels

    def __init__(self, normals, offsets, labels):
        self.normals, self.offsets, self.labels = normals, offsets, labels


@cython.final
cdef class _Walk:
    """Points, what trees cost, and the tree as it is, with its values."""

    cdef:
        const double[:, ::1] X
        const int64_t[::1] y
        const double[::1] weight
        const double[::1] price
        double epsilon, margin, alpha, largest
        Py_ssize_t n, p, n_branches
        double[:, ::1] F
        double[:, ::1] normals
        double[::1] offsets
        int64_t[::1] labels
        uint64_t[::1] state
        double[:, ::1] counts
        double[::1] rate
        double[::1] soft  # prices of margins now
        # What a step changes, as it was before.
        double[::1] old
        double[::1] old_normal
        int64_t[::1] old_labels

    def __init__(self, X, y, weight, price, n_classes, limits, F, normals, offsets, labels, seed):
        self.X, self.y, self.weight, self.price = X, y, weight, price
        self.epsilon, self.margin, self.alpha, self.largest = limits
        self.F, self.normals, self.offsets, self.labels = F, normals, offsets, labels
        self.n, self.n_branches, self.p = self.F.shape[0], self.F.shape[1], self.normals.shape[1]
        self.state, self.counts = np.array([seed], dtype=np.uint64), np.zeros((self.n_branches + 1, n_classes))
        self.rate, self.soft, self.old = np.empty((3, self.n))
        self.old_normal, self.old_labels = np.empty(self.p), labels.copy()


cdef inline Py_ssize_t _below(_Walk walk, Py_ssize_t n) noexcept nogil:
    """Next random number below n."""
    return <Py_ssize_t> (uniform(walk.state) * n)


cdef inline double _loss_from(_Walk walk, Py_ssize_t i, Py_ssize_t node) noexcept nogil:
    """What a point loses that enters at a node: hinge errors on the way, and at the leaf."""
    cdef double total = 0.0, away
    while node < walk.n_branches:
        away = fabs(walk.F[i, node])
        if away < walk.epsilon:
            total += walk.soft[i] * (walk.epsilon - away)
        node = 2 * node + 1 if walk.F[i, node] > 0 else 2 * node + 2
    if walk.labels[node - walk.n_branches] != walk.y[i]:
        total += walk.weight[i]
    return total


cdef void _fit_labels(_Walk walk) noexcept nogil:
    """Give each leaf that points reach its heaviest class."""
    cdef Py_ssize_t i, node, leaf, k, best
    walk.counts[:, :] = 0.0
    for i in range(walk.n):
        node = 0
        while node < walk.n_branches:
            node = 2 * node + 1 if walk.F[i, node] > 0 else 2 * node + 2
        walk.counts[node - walk.n_branches, walk.y[i]] += walk.weight[i]
    for leaf in range(walk.n_branches + 1):
        best = walk.labels[leaf]
        for k in range(walk.counts.shape[1]):
            if walk.counts[leaf, k] > walk.counts[leaf, best]:
                best = k
        walk.labels[leaf] = best


cdef double _total(_Walk walk, const double[::1] price) noexcept nogil:
    """Objective of the tree without its norm; infinite where a point on its way is within the least margin."""
    cdef double total = 0.0, away
    cdef Py_ssize_t i, node
    for i in range(walk.n):
        node = 0
        while node < walk.n_branches:
            away = fabs(walk.F[i, node])
            if away < walk.epsilon:
                if away < walk.margin:
                    return INFINITY
                total += price[i] * (walk.epsilon - away)
            node = 2 * node + 1 if walk.F[i, node] > 0 else 2 * node + 2
        if walk.labels[node - walk.n_branches] != walk.y[i]:
            total += walk.weight[i]
    return total


cdef double _norms(const double[:, ::1] normals, Py_ssize_t b, double* own, double* most) noexcept nogil:
    """1-norm of the normals of all nodes; that of one of them and its largest entry are added to the others."""
    cdef double total = 0.0, entry
    cdef Py_ssize_t node, j
    own[0] = most[0] = 0.0
    for node in range(normals.shape[0]):
        for j in range(normals.shape[1]):
            entry = fabs(normals[node, j])
            total += entry
            if node == b:
                own[0] += entry
                most[0] = max(most[0], entry)
    return total


cdef double _objective(_Walk walk, const double[::1] price) noexcept nogil:
    cdef double own, most
    return _total(walk, price) + walk.alpha * _norms(walk.normals, 0, &own, &most)


cdef void _turn(_Walk walk, Py_ssize_t b, Py_ssize_t j, double* low, double* high) noexcept nogil:
    """How fast values at a node move along a line, and the range in which they stay within [-1, 1].

    The line is that of feature j, of the offset (-1) or of the scale (-2).
    """
    cdef Py_ssize_t i
    cdef double least = -INFINITY, most = INFINITY, rate
    for i in range(walk.n):
        rate = 0.0
        if fabs(walk.F[i, b]) < 2.0:
            rate = -walk.X[i, j] if j >= 0 else (1.0 if j == -1 else walk.F[i, b])
        walk.rate[i] = rate
        if rate != 0:
            narrow(&least, &most, walk.F[i, b], rate)
    low[0], high[0] = least, most


cdef Py_ssize_t _at_stake(_Walk walk, Line line, Py_ssize_t b, double noise) noexcept nogil:
    """Put the points that reach a node and have a value there on a line; return how many they are."""
    cdef Py_ssize_t i, node, m = 0
    cdef double left, right, factor
    for i in range(walk.n):
        node = 0
        while node < b:
            node = 2 * node + 1 if walk.F[i, node] > 0 else 2 * node + 2
        if node != b or fabs(walk.F[i, b]) >= 2.0:
            continue
        left, right = _loss_from(walk, i, 2 * b + 1), _loss_from(walk, i, 2 * b + 2)
        factor = 1.0
        if noise > 0:
            factor += noise * (2.0 * uniform(walk.state) - 1.0)
        line.value[m], line.rate[m] = walk.F[i, b], walk.rate[i]
        line.stake[m], line.toll[m] = factor * (left - right), factor * walk.soft[i]
        m += 1
    return m


cdef void _move(_Walk walk, Py_ssize_t b, Py_ssize_t j, double v) noexcept nogil:
    """Move a plane, and values at it, along a line."""
    cdef double entry
    cdef Py_ssize_t i, q
    for i in range(walk.n):
        walk.old[i] = walk.F[i, b]
        walk.F[i, b] += v * walk.rate[i]
    if j >= 0:
        entry = walk.normals[b, j] + v
        walk.normals[b, j] = entry if fabs(entry) > 1e-12 else 0.0
    elif j == -1:
        walk.offsets[b] += v
    else:
        walk.offsets[b] *= 1.0 + v
        for q in range(walk.p):
            walk.normals[b, q] *= 1.0 + v


cdef double _walked(
    _Walk walk,
    _Trees ever,
    Line line,
    const int64_t[::1] free,
    const int64_t[::1] planes,
    Py_ssize_t steps,
    double heat,
    double cheap,
) noexcept nogil:
    cdef:
        Py_ssize_t step, i, b, draw, j, m, q, leaf, n_branches = walk.n_branches
        double now, then, best, cool, share = 1.0, own, most, low, high, kink, force, noise, v, offset, unused
        int64_t label
    _fit_labels(walk)
    best = now = _objective(walk, walk.price)
    ever.normals[:, :], ever.offsets[:], ever.labels[:] = walk.normals, walk.offsets, walk.labels
    for step in range(steps):
        cool = 1.0 - <double> step / <double> steps
        if step % STAGE == 0:
            # Walls rise: margins are cheap at first.
            share = 1.0 if cool < 0.3 else pow(cheap, (cool - 0.3) / 0.7)
            for i in range(walk.n):
                walk.soft[i] = walk.price[i] * share
            now = _objective(walk, walk.soft)
        b = planes[_below(walk, planes.shape[0])]
        draw = _below(walk, free.shape[0] + 2)
        j = free[draw] if draw < free.shape[0] else free.shape[0] - 1 - draw
        _norms(walk.normals, b, &own, &most)
        if j == -2 and own == 0:
            continue
        _turn(walk, b, j, &low, &high)
        kink, force = 0.0, 0.0
        if j >= 0:
            kink, force = -walk.normals[b, j], walk.alpha
            low, high = max(low, -walk.largest - walk.normals[b, j]), min(high, walk.largest - walk.normals[b, j])
        elif j == -2:
            kink, force = -1.0, walk.alpha * own
            low, high = max(low, -0.9), min(high, walk.largest / most - 1.0)
        if not (low < high and isfinite(low) and isfinite(high)):
            continue
        walk.old_labels[:] = walk.labels
        if 2 * b + 1 >= n_branches and uniform(walk.state) < 0.2:  # try another label
            label = walk.y[_below(walk, walk.n)]
            walk.labels[2 * b + 1 + _below(walk, 2) - n_branches] = label
        noise = cool if uniform(walk.state) < 0.8 else 0.0
        m = _at_stake(walk, line, b, noise)
        v = line_place(line, m, walk.epsilon, kink, force, low, high, &unused) if m > 0 else 0.0
        if v == 0:
            walk.labels[:] = walk.old_labels
            continue
        offset = walk.offsets[b]
        walk.old_normal[:] = walk.normals[b]
        _move(walk, b, j, v)
        _fit_labels(walk)
        then = _objective(walk, walk.soft)
        if then <= now - heat * cool * log(1.0 - uniform(walk.state)):
            now = then
            if share == 1.0 and now < best and (best == INFINITY or now < best - 1e-9 * max(1.0, best)):
                best = now
                ever.normals[:, :], ever.offsets[:], ever.labels[:] = walk.normals, walk.offsets, walk.labels
            continue
        walk.offsets[b], walk.normals[b, :], walk.labels[:] = offset, walk.old_normal, walk.old_labels
        for i in range(walk.n):
            walk.F[i, b] = walk.old[i]
    walk.normals[:, :], walk.offsets[:], walk.labels[:] = ever.normals, ever.offsets, ever.labels
    return best


def wander(
    X,
    y,
    weight,
    price,
    Py_ssize_t n_classes,
    double epsilon,
    double margin,
    double alpha,
    double largest,
    const int64_t[::1] free,
    const int64_t[::1] planes,
    F,
    normals,
    offsets,
    labels,
    Py_ssize_t steps,
    double heat,
    double cheap,
    uint64_t seed,
):
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
    limits = epsilon, margin, alpha, largest
    cdef:
        _Walk walk = _Walk(X, y, weight, price, n_classes, limits, F, normals, offsets, labels, seed)
        _Trees ever = _Trees(np.empty_like(normals), np.empty_like(offsets), np.empty_like(labels))
        Line line = Line(len(y))
        double best
    with nogil:
        best = _walked(walk, ever, line, free, planes, steps, heat, cheap)
    return best
