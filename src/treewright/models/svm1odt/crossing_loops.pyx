"""Compiled changes of the places of points in a complete tree, each plane the best one for the points on its sides.

See :mod:`~.crossing` for what it is about, and for the arrays that these loops change in place.
"""

cimport cython
from libc.math cimport INFINITY, isinf, log
from libc.stdint cimport int64_t, uint64_t

from treewright.models.svm1odt.walk cimport uniform
from treewright.splits.plane_programs cimport Program, plane_of, value_at

import numpy as np

cdef double RELEASES = 0.4  # share of the changes in which a whole node lets go of points


@cython.final
cdef class _Tree:
    """Places and the state of a tree as loops read them, and room for a change that is tried."""

    cdef:
        const double[:, ::1] table
        const double[:, ::1] weight
        const int64_t[:, ::1] paths
        const int64_t[::1] fixed
        const int64_t[:, ::1] left
        const int64_t[:, ::1] may
        double epsilon
        Py_ssize_t n, n_leaves, n_branches
        int64_t[::1] leaf
        double[:, ::1] counts
        double[:, ::1] normals
        double[::1] offsets
        double[:, ::1] duals
        double[::1] costs
        double[:, ::1] known
        double[::1] total
        int64_t[::1] new_leaf
        double[:, ::1] new_counts
        double[:, ::1] new_normals
        double[::1] new_offsets
        double[:, ::1] new_duals
        double[::1] new_costs
        int64_t[::1] changed  # 1 for branches whose points change
        int64_t[::1] labels  # of leaves
        int64_t[::1] other  # leaf of each point that a branch may let go of, -1 for others
        double[::1] values  # of a point at branches

    def __init__(self, places, state):
        self.table, self.weight, _, limits, self.paths, self.fixed, self.left, self.may = places
        self.leaf, self.counts, self.normals, self.offsets, self.duals, self.costs, self.known, self.total = state
        self.epsilon = limits[0]
        self.n, self.n_leaves, self.n_branches = self.known.shape[0], self.known.shape[1], self.paths.shape[1]
        self.new_leaf, self.other = np.empty((2, self.n), dtype=np.int64)
        self.new_counts, self.new_normals = np.empty_like(state.counts), np.empty_like(state.normals)
        self.new_offsets, self.new_duals = np.empty_like(state.offsets), np.empty_like(state.duals)
        self.new_costs, self.values = np.empty((2, self.n_branches))
        self.changed, self.labels = np.empty(self.n_branches, dtype=np.int64), np.empty(self.n_leaves, dtype=np.int64)


@cython.final
cdef class _Kept:
    """The best tree so far."""

    cdef:
        double[:, ::1] normals
        double[::1] offsets
        int64_t[::1] labels

    def __init__(self, kept):
        self.normals, self.offsets, self.labels = kept


cdef double _errors(const double[:, ::1] counts) noexcept nogil:
    cdef double total = 0.0, whole, most
    cdef Py_ssize_t leaf, c
    for leaf in range(counts.shape[0]):
        whole, most = 0.0, counts[leaf, 0]
        for c in range(counts.shape[1]):
            whole += counts[leaf, c]
            most = max(most, counts[leaf, c])
        total += whole - most
    return total


cdef void _count(_Tree tree, const int64_t[::1] leaf, double[:, ::1] counts) noexcept nogil:
    """Weight of each class in each leaf."""
    cdef Py_ssize_t i, c
    counts[:, :] = 0.0
    for i in range(tree.n):
        for c in range(counts.shape[1]):
            counts[leaf[i], c] += tree.weight[i, c]


cdef void _label(const double[:, ::1] counts, int64_t[::1] labels) noexcept nogil:
    """Heaviest class of each leaf."""
    cdef Py_ssize_t leaf, c, best
    for leaf in range(counts.shape[0]):
        best = 0
        for c in range(1, counts.shape[1]):
            if counts[leaf, c] > counts[leaf, best]:
                best = c
        labels[leaf] = best


cdef void _part(_Tree tree, Program program, const int64_t[::1] leaf, Py_ssize_t b) noexcept nogil:
    """Give the points of a program the sides of a branch that their leaves are on."""
    cdef Py_ssize_t i
    for i in range(tree.n):
        program.sides[i] = tree.paths[leaf[i], b]


cdef void _keep(_Tree tree, _Kept kept) noexcept nogil:
    tree.total[1] = tree.total[0]
    kept.normals[:, :], kept.offsets[:] = tree.normals, tree.offsets
    _label(tree.counts, kept.labels)


cdef void _begin(_Tree tree, _Kept kept, Program program, double own) noexcept nogil:
    cdef Py_ssize_t b
    cdef double total
    _count(tree, tree.leaf, tree.counts)
    tree.known[:, :] = -INFINITY
    total = own + _errors(tree.counts)
    for b in range(tree.n_branches):
        if tree.fixed[b] == 0:
            _part(tree, program, tree.leaf, b)
            tree.costs[b] = plane_of(program, INFINITY, tree.normals[b], tree.duals[b], &tree.offsets[b])
            total += tree.costs[b]
    tree.total[0] = total
    _keep(tree, kept)


def begin(places, state, kept, double own):
    """Fit planes to the leaves of the state; the total is infinite where that cannot be."""
    cdef:
        _Tree tree = _Tree(places, state)
        _Kept best = _Kept(kept)
        Program program = Program(places.table, places.price, places.limits)
    with nogil:
        _begin(tree, best, program, own)


cdef bint _placed(_Tree tree, _Kept kept, Program program, double limit) noexcept nogil:
    """Give all points their new leaves, if the tree costs less than the limit then."""
    cdef Py_ssize_t i, b
    cdef double value
    _count(tree, tree.new_leaf, tree.new_counts)
    # What stays, first: programs end where they cost more than what is left of the limit.
    value = _errors(tree.new_counts) + tree.total[0] - _errors(tree.counts)
    tree.changed[:] = 0
    for i in range(tree.n):
        if tree.new_leaf[i] != tree.leaf[i]:
            for b in range(tree.n_branches):
                if tree.paths[tree.new_leaf[i], b] != tree.paths[tree.leaf[i], b]:
                    tree.changed[b] = 1 - tree.fixed[b]
    for b in range(tree.n_branches):
        if tree.changed[b]:
            value -= tree.costs[b]
    for b in range(tree.n_branches):
        if tree.changed[b]:
            if not value < limit:
                return False
            _part(tree, program, tree.new_leaf, b)
            tree.new_duals[b, :] = tree.duals[b]
            tree.new_costs[b] = plane_of(
                program, limit - value, tree.new_normals[b], tree.new_duals[b], &tree.new_offsets[b]
            )
            value += tree.new_costs[b]
    if not value < limit:
        return False
    tree.leaf[:], tree.counts[:, :] = tree.new_leaf, tree.new_counts
    for b in range(tree.n_branches):
        if tree.changed[b]:
            tree.normals[b, :], tree.duals[b, :] = tree.new_normals[b], tree.new_duals[b]
            tree.offsets[b], tree.costs[b] = tree.new_offsets[b], tree.new_costs[b]
    tree.known[:, :] = -INFINITY
    tree.total[0] = value
    if value < tree.total[1] - 1e-9:
        _keep(tree, kept)
    return True


cdef Py_ssize_t _elsewhere(_Tree tree, Py_ssize_t i, Py_ssize_t node) noexcept nogil:
    """Leaf that a point would reach on the other side of a node."""
    cdef Py_ssize_t at = 2 * node + 2 if tree.paths[tree.leaf[i], node] == 1 else 2 * node + 1
    cdef bint left
    while at < tree.n_branches:
        if tree.fixed[at]:
            left = tree.left[i, at] == 1
        else:
            left = value_at(tree.table, i, tree.normals[at], tree.offsets[at]) >= 0
        at = 2 * at + 1 if left else 2 * at + 2
    return at - tree.n_branches


cdef bint _released(
    _Tree tree, _Kept kept, Program program, Py_ssize_t node, double share, double limit, uint64_t[::1] chance
) noexcept nogil:
    cdef:
        Py_ssize_t i
        int64_t side
        double offset
        bint some = False
    _label(tree.counts, tree.labels)
    _part(tree, program, tree.leaf, node)
    for i in range(tree.n):
        tree.other[i] = -1
        if program.sides[i] == 0 or uniform(chance) >= share:
            continue
        tree.other[i] = _elsewhere(tree, i, node)
        if (
            tree.weight[i, tree.labels[tree.other[i]]] >= tree.weight[i, tree.labels[tree.leaf[i]]]
            and tree.may[i, tree.other[i]]
        ):
            program.sides[i] = 0
            some = True
        else:
            tree.other[i] = -1
    if not some:
        return False
    tree.new_duals[node, :] = tree.duals[node]
    if isinf(plane_of(program, INFINITY, tree.new_normals[node], tree.new_duals[node], &offset)):
        return False
    tree.new_leaf[:] = tree.leaf
    for i in range(tree.n):
        if tree.other[i] >= 0:
            side = 1 if value_at(tree.table, i, tree.new_normals[node], offset) >= 0 else -1
            if side != tree.paths[tree.leaf[i], node]:
                tree.new_leaf[i] = tree.other[i]
    return _placed(tree, kept, program, limit)


def release(places, state, kept, Py_ssize_t node, double share, double limit, uint64_t[::1] chance):
    """Let a plane go where it likes among points that are as right on its other side, if that costs less then.

    A share of those points, drawn at random, has no side while the plane is found, and then the one it is on.
    """
    cdef:
        _Tree tree = _Tree(places, state)
        _Kept best = _Kept(kept)
        Program program = Program(places.table, places.price, places.limits)
        bint moved
    with nogil:
        moved = _released(tree, best, program, node, share, limit, chance)
    return moved


cdef Py_ssize_t _worthwhile(_Tree tree, double limit, uint64_t[::1] chance, Py_ssize_t* goal) noexcept nogil:
    """A point and a leaf to move it to, where that may cost less than the limit, as far as duals tell; or -1."""
    cdef:
        Py_ssize_t point = -1, seen = 0, i, b, leaf, here
        double gain
    _label(tree.counts, tree.labels)
    for i in range(tree.n):
        here = tree.leaf[i]
        for leaf in range(tree.n_leaves):
            if leaf == here or not tree.may[i, leaf]:
                continue
            gain = tree.weight[i, tree.labels[leaf]] - tree.weight[i, tree.labels[here]]
            for b in range(tree.n_branches):
                if tree.paths[here, b] != tree.paths[leaf, b] and not tree.fixed[b]:
                    gain += (1.0 + tree.epsilon) * max(0.0, tree.paths[here, b] * tree.duals[b, i])
            if gain > 1e-9 and max(tree.total[0] - gain, tree.known[i, leaf]) < limit - 1e-9:
                seen += 1
                if uniform(chance) * seen < 1.0:
                    point, goal[0] = i, leaf
    return point


cdef void _crossed(
    _Tree tree,
    _Kept kept,
    Program program,
    Py_ssize_t first,
    Py_ssize_t last,
    Py_ssize_t steps,
    double heat,
    double own,
    uint64_t[::1] chance,
) noexcept nogil:
    cdef:
        Py_ssize_t loose = 0, step, b, node, which, point, goal = -1
        double planes, limit, share
    for b in range(tree.n_branches // 2):
        loose += 1 - tree.fixed[b]
    for step in range(first, last):
        planes = tree.total[0] - own - _errors(tree.counts)
        share = 1.0 - <double> step / <double> steps
        limit = tree.total[0] - heat * share * max(planes, 1e-9) * log(1.0 - uniform(chance))
        if loose and uniform(chance) < RELEASES:
            node, which = 0, <Py_ssize_t> (uniform(chance) * loose)
            while tree.fixed[node] or which > 0:
                which -= 1 - tree.fixed[node]
                node += 1
            _released(tree, kept, program, node, uniform(chance), limit, chance)
            continue
        point = _worthwhile(tree, limit, chance, &goal)
        if point >= 0:
            tree.new_leaf[:] = tree.leaf
            tree.new_leaf[point] = goal
            if not _placed(tree, kept, program, limit):
                tree.known[point, goal] = limit


def cross(
    places,
    state,
    kept,
    Py_ssize_t first,
    Py_ssize_t last,
    Py_ssize_t steps,
    double heat,
    double own,
    uint64_t[::1] chance,
):
    """Take the steps from `first` to `last` of so many, with losses accepted at random, ever more strictly."""
    cdef:
        _Tree tree = _Tree(places, state)
        _Kept best = _Kept(kept)
        Program program = Program(places.table, places.price, places.limits)
    with nogil:
        _crossed(tree, best, program, first, last, steps, heat, own, chance)


cdef Py_ssize_t _nearest(
    _Tree tree, Program program, Py_ssize_t i, const int64_t[::1] labels, bint keep_root
) noexcept nogil:
    """Leaf that a point falls short of least."""
    cdef Py_ssize_t goal = 0, leaf, b, c
    cdef double best = INFINITY, lost
    for b in range(tree.n_branches):
        tree.values[b] = value_at(tree.table, i, tree.normals[b], tree.offsets[b])
    for leaf in range(tree.n_leaves):
        if keep_root and (tree.paths[leaf, 0] == 1) != (tree.values[0] >= 0):
            continue
        lost = 0.0
        for c in range(tree.weight.shape[1]):
            lost += tree.weight[i, c]
        lost -= tree.weight[i, labels[leaf]]
        if tree.leaf[i] >= 0 or not keep_root:
            for b in range(tree.n_branches):
                if tree.paths[leaf, b] != 0:
                    lost += program.price[i] * max(0.0, tree.epsilon - tree.paths[leaf, b] * tree.values[b])
        if lost < best:
            best, goal = lost, leaf
    return goal


cdef bint _settled(
    _Tree tree, Program program, const int64_t[::1] labels, Py_ssize_t fits, bint keep_root
) noexcept nogil:
    cdef Py_ssize_t i, b, goal
    cdef double offset
    cdef bint rest
    for _ in range(fits):
        rest = True
        for i in range(tree.n):
            goal = _nearest(tree, program, i, labels, keep_root)
            rest = rest and tree.leaf[i] == goal
            tree.leaf[i] = goal
        if rest:
            return True
        for b in range(1 if keep_root else 0, tree.n_branches):
            _part(tree, program, tree.leaf, b)
            if not isinf(plane_of(program, INFINITY, tree.new_normals[b], tree.duals[b], &offset)):
                tree.normals[b, :], tree.offsets[b] = tree.new_normals[b], offset
    return False


def settle(places, size, const int64_t[::1] labels, double price, Py_ssize_t fits, bint keep_root, state):
    """Fit planes to places and places to planes by turns, with given labels; whether places came to rest.

    The state has planes; where the root is kept, and leaves are below 0, points begin on its sides.
    """
    epsilon, _, alpha, largest = places.limits
    cdef:
        _Tree tree = _Tree(places, state)
        Program program = Program(places.table, price * size, (epsilon, -1.0, alpha, largest))
        bint rest
    with nogil:
        rest = _settled(tree, program, labels, fits, keep_root)
    return rest
