"""Compiled loops of :mod:`.one_feature`: all trees of two levels that get the labels right."""

cimport cython
from libc.math cimport INFINITY, NAN, nextafter
from libc.stdint cimport int64_t, uint8_t, uint64_t

import numpy as np


cdef enum:  # instead of the class of the labelled points on a side: they have several, or there are none
    MIXED = -2
    NOBODY = -1


@cython.final
cdef class _Sides:
    """Points, and what the leaves of either side of a root can be."""

    cdef:
        const double[:, ::1] X
        const int64_t[:, ::1] order
        const int64_t[::1] label
        const uint64_t[:, ::1] keys
        const int64_t[:, ::1] gains
        const double[::1] need
        uint64_t[:, ::1] key  # of each side and candidate
        int64_t[:, ::1] gain
        int64_t[:, :, ::1] which
        double[:, ::1] threshold
        int64_t[2] whole  # class of the labelled points of a side
        Py_ssize_t[2] count  # candidates
        int64_t[::1] table
        int64_t[::1] stamp
        uint8_t[:, ::1] useful  # features that part the labelled points of a side
        uint8_t[::1] inside  # points on the left of the root
        double[::1] high
        int64_t[::1] suffix
        uint64_t[:, ::1] sums  # keys of all points of a side, and of those left of a split, by class
        int64_t[:, ::1] gained
        Py_ssize_t n, n_features, n_classes

    def __init__(self, X, order, label, keys, gains, need, most):
        self.X, self.order, self.label, self.keys, self.gains, self.need = X, order, label, keys, gains, need
        self.n, self.n_features, self.n_classes = len(X), len(order), keys.shape[1]
        self.key, self.gain = np.empty((2, most), dtype=np.uint64), np.empty((2, most), dtype=np.int64)
        self.which, self.threshold = np.empty((2, most, 3), dtype=np.int64), np.empty((2, most))
        size = max(16, 1 << (2 * most - 1).bit_length())
        self.table, self.stamp = np.empty(size, dtype=np.int64), np.full(size, -1, dtype=np.int64)
        self.useful = np.zeros((2, self.n_features), dtype=np.uint8)
        self.inside, self.high = np.zeros(self.n, dtype=np.uint8), np.empty(self.n)
        self.suffix = np.empty(self.n, dtype=np.int64)
        self.sums = np.empty((2, self.n_classes), dtype=np.uint64)
        self.gained = np.empty((2, self.n_classes), dtype=np.int64)
        self.whole[0] = self.whole[1] = MIXED


cdef inline int64_t _joined(int64_t one, int64_t other) noexcept nogil:
    """Class of labelled points of which some have class `one` and some class `other`."""
    if one == NOBODY:
        return other
    if other == NOBODY or one == other:
        return one
    return MIXED


cdef void _separable(_Sides sides, Py_ssize_t s) noexcept nogil:
    """Mark the features one of whose splits parts the labelled points on a side; note the class of all of them."""
    cdef int64_t whole = NOBODY, prefix, suffix, joined
    cdef Py_ssize_t f, i, k, start
    cdef bint side = s == 0
    for k in range(sides.n):
        i = sides.order[0, k]
        if sides.inside[i] == side and sides.label[i] >= 0:
            whole = _joined(whole, sides.label[i])
    sides.whole[s] = whole
    for f in range(sides.n_features):
        prefix = NOBODY
        start = 0
        while start < sides.n:
            i = sides.order[f, start]
            if sides.inside[i] == side and sides.label[i] >= 0:
                joined = _joined(prefix, sides.label[i])
                if joined == MIXED:
                    break
                prefix = joined
            start += 1
        suffix = NOBODY
        for k in range(start, sides.n):
            i = sides.order[f, k]
            if sides.inside[i] == side and sides.label[i] >= 0:
                suffix = _joined(suffix, sides.label[i])
        sides.useful[s, f] = suffix != MIXED


cdef inline double _room(_Sides sides, Py_ssize_t i, Py_ssize_t f, double low) noexcept nogil:
    """Least threshold of a split to the right of point `i` and of others that allow `low`."""
    return max(low, sides.X[i, f] + sides.need[0 if sides.label[i] >= 0 else 1])


cdef inline double _limit(_Sides sides, Py_ssize_t i, Py_ssize_t f, double high) noexcept nogil:
    """Largest threshold of a split to the left of point `i` and of others that allow `high`; it goes left on a tie."""
    cdef double distance = sides.need[0 if sides.label[i] >= 0 else 1]
    return min(high, sides.X[i, f] - distance if distance > 0.0 else nextafter(sides.X[i, f], -INFINITY))


cdef inline void _put(
    _Sides sides, Py_ssize_t s, uint64_t key, int64_t gain, int64_t f, int64_t a, int64_t b, double threshold
) noexcept nogil:
    """Add a candidate of a side."""
    cdef Py_ssize_t count = sides.count[s]
    sides.key[s, count], sides.gain[s, count], sides.threshold[s, count] = key, gain, threshold
    sides.which[s, count, 0], sides.which[s, count, 1], sides.which[s, count, 2] = f, a, b
    sides.count[s] = count + 1


cdef void _candidates(_Sides sides, Py_ssize_t s) noexcept nogil:
    """Write what the leaves of a side can be: key and gain, feature (-1: one leaf) and labels, threshold."""
    cdef:
        Py_ssize_t n_classes = sides.n_classes, i, f, at, a, b, k
        int64_t right, left, whole = sides.whole[s], gain
        double most, low, last
        bint side = s == 0
    sides.count[s] = 0
    sides.sums[0, :] = 0
    sides.gained[0, :] = 0
    for i in range(sides.n):
        if sides.inside[i] == side:
            for k in range(n_classes):
                sides.sums[0, k] += sides.keys[i, k]
                sides.gained[0, k] += sides.gains[i, k]
    if whole != MIXED:
        for k in range(n_classes):
            if whole == NOBODY or whole == k:
                _put(sides, s, sides.sums[0, k], sides.gained[0, k], -1, k, k, 0.0)
    for f in range(sides.n_features):
        if not sides.useful[s, f]:
            continue
        # What lies to the right of each place: the class of its labelled points, and the largest threshold it allows.
        right, most = NOBODY, INFINITY
        for at in range(sides.n - 1, -1, -1):
            i = sides.order[f, at]
            if sides.inside[i] == side:
                if sides.label[i] >= 0:
                    right = _joined(right, sides.label[i])
                most = _limit(sides, i, f, most)
            sides.suffix[at], sides.high[at] = right, most
        left, low, last = NOBODY, -INFINITY, NAN
        sides.sums[1, :] = 0
        sides.gained[1, :] = 0
        for at in range(sides.n):
            i = sides.order[f, at]
            if sides.inside[i] != side:
                continue
            right = sides.suffix[at]
            if sides.X[i, f] > last and right != MIXED and low <= sides.high[at]:
                for a in range(n_classes):
                    if left != NOBODY and left != a:
                        continue
                    for b in range(n_classes):
                        if b == a or (right != NOBODY and right != b):
                            continue
                        # of equals the smaller tree
                        gain = sides.gained[1, a] + (sides.gained[0, b] - sides.gained[1, b]) - 1
                        _put(
                            sides, s, sides.sums[1, a] + (sides.sums[0, b] - sides.sums[1, b]), gain, f, a, b,
                            low + (sides.high[at] - low) / 2,
                        )
            last = sides.X[i, f]
            low = _room(sides, i, f, low)
            for k in range(n_classes):
                sides.sums[1, k] += sides.keys[i, k]
                sides.gained[1, k] += sides.gains[i, k]
            if sides.label[i] >= 0:
                left = _joined(left, sides.label[i])
                if left == MIXED:
                    break


cdef inline Py_ssize_t _slot(uint64_t key, Py_ssize_t mask) noexcept nogil:
    return <Py_ssize_t> ((key * <uint64_t> 0x9E3779B97F4A7C15) >> 20) & mask


cdef int64_t _matched(
    _Sides sides, const uint64_t[::1] targets, int64_t turn, int64_t least, Py_ssize_t* one, Py_ssize_t* two
) noexcept nogil:
    """The pair of candidates of either side whose keys add up to a target, of the largest gain above `least`."""
    cdef Py_ssize_t mask = sides.table.shape[0] - 1, c, k, slot
    cdef uint64_t wanted
    cdef int64_t gain
    for c in range(sides.count[0]):
        slot = _slot(sides.key[0, c], mask)
        while sides.stamp[slot] == turn and sides.key[0, sides.table[slot]] != sides.key[0, c]:
            slot = (slot + 1) & mask
        if sides.stamp[slot] != turn or sides.gain[0, c] > sides.gain[0, sides.table[slot]]:
            sides.stamp[slot], sides.table[slot] = turn, c
    for c in range(sides.count[1]):
        for k in range(targets.shape[0]):
            wanted = targets[k] - sides.key[1, c]
            slot = _slot(wanted, mask)
            while sides.stamp[slot] == turn and sides.key[0, sides.table[slot]] != wanted:
                slot = (slot + 1) & mask
            if sides.stamp[slot] == turn:
                gain = sides.gain[0, sides.table[slot]] + sides.gain[1, c]
                if gain > least:
                    least, one[0], two[0] = gain, sides.table[slot], c
    return least


cdef inline bint _hopeless(_Sides sides, Py_ssize_t s) noexcept nogil:
    """Whether the labelled points of a side are mixed, and no feature parts them."""
    cdef Py_ssize_t f
    if sides.whole[s] != MIXED:
        return False
    for f in range(sides.n_features):
        if sides.useful[s, f]:
            return False
    return True


def best_of_roots(
    const double[:, ::1] X,
    const int64_t[:, ::1] order,
    label,
    keys,
    gains,
    const uint64_t[::1] targets,
    need,
    Py_ssize_t root,
    Py_ssize_t first,
    Py_ssize_t last,
    bint two_levels,
    int64_t least,
):
    """Best tree among those whose root parts feature `root` at one of the places `first` to `last` of its order.

    Parameters
    ----------
    X : ndarray of shape (n_points, n_features)
        Points.
    order : ndarray of int, shape (n_features, n_points)
        Points in the order of each feature.
    label : ndarray of int, shape (n_points,)
        Class numbers, -1 for unlabelled.
    keys : ndarray of uint64, shape (n_points, n_classes)
        What a point adds to the sum of keys where it has a class; sums wrap around.
    gains : ndarray of int, shape (n_points, n_classes)
        What it is worth there; a split costs 1.
    targets : ndarray of uint64
        Sums of keys that are wanted.
    need : ndarray of shape (2,)
        Least distance from a split of labelled and of unlabelled points.
    root, first, last : int
        Where to look.
    two_levels : bool
        Whether sides are split again.
    least : int
        Gain that is to be exceeded.

    Returns
    -------
    gain : int
        The gain, `least` if none is larger.
    which : ndarray of int, shape (2, 3)
        Feature (-1: none), labels left and right, for each side of the root.
    threshold : ndarray of shape (3,)
        Thresholds of root, left and right side.
    """
    cdef Py_ssize_t n = X.shape[0], n_features = order.shape[0], n_classes = keys.shape[1]
    splits = n_features * (n + 1) * n_classes * (n_classes - 1) if two_levels else 0
    found, cuts = np.full((2, 3), -1, dtype=np.int64), np.zeros(3)
    cdef:
        _Sides sides = _Sides(X, order, label, keys, gains, need, splits + n_classes)
        int64_t[:, ::1] which = found
        double[::1] threshold = cuts, above = np.empty(n)  # the largest threshold that points right of a place allow
        double low = -INFINITY, top = INFINITY
        Py_ssize_t at, i, s, k, one = -1, two = -1
        int64_t best
        bint stale = True
    with nogil:
        for at in range(n - 1, -1, -1):
            top = _limit(sides, order[root, at], root, top)
            above[at] = top
        for at in range(min(last, n - 1)):
            i = order[root, at]
            sides.inside[i] = 1
            low = _room(sides, i, root, low)
            stale = stale or sides.label[i] >= 0
            if at < first or not X[order[root, at + 1], root] > X[i, root] or low > above[at + 1]:
                continue
            if stale:
                stale = False
                for s in range(2):
                    _separable(sides, s)
                if not two_levels:
                    sides.useful[:, :] = 0
            if _hopeless(sides, 0) or _hopeless(sides, 1):
                continue
            for s in range(2):
                _candidates(sides, s)
            best = _matched(sides, targets, at, least, &one, &two)
            if best > least:
                least = best
                for k in range(3):
                    which[0, k], which[1, k] = sides.which[0, one, k], sides.which[1, two, k]
                threshold[0] = low + (above[at + 1] - low) / 2
                threshold[1], threshold[2] = sides.threshold[0, one], sides.threshold[1, two]
    return least, found, cuts
