"""Loops of :mod:`treewright.totals.mending`."""

cimport cython
from libc.stdint cimport int64_t, uint8_t

import numpy as np


@cython.final
cdef class _Groups:
    """Counts of groups and their limits, and what these say."""

    cdef:
        const int64_t[:, ::1] low
        const int64_t[:, ::1] high
        int64_t[:, ::1] counts
        int64_t[::1] above  # rows of each group above its totals
        int64_t[::1] below
        uint8_t[:, ::1] gives  # classes of each group that may give rows
        uint8_t[::1] takes
        int64_t[::1] classes  # those that some group may take
        Py_ssize_t n_groups, n_classes, n_taken

    def __init__(self, low, high):
        self.low, self.high = low, high
        self.n_groups, self.n_classes = low.shape
        self.counts = np.zeros((self.n_groups, self.n_classes), dtype=np.int64)
        self.above, self.below = np.zeros((2, self.n_groups), dtype=np.int64)
        self.gives = np.zeros((self.n_groups, self.n_classes), dtype=np.uint8)
        self.takes, self.classes = np.zeros(self.n_classes, dtype=np.uint8), np.zeros(self.n_classes, dtype=np.int64)


def mend(
    const double[:, ::1] scores,
    int64_t[::1] labels,
    const int64_t[::1] first,
    const int64_t[::1] group,
    const int64_t[::1] times,
    low,
    high,
    int64_t[:, :, ::1] of_one,
    int64_t most,
):
    """Mend `labels` in place; the rows of point i are ``times[first[i] : first[i + 1]]``, each of a `group`.

    Most changes are of a single row of a group. `of_one`, if it has room, keeps what these save; it is brought up to
    date where counts have changed.
    """
    cdef:
        _Groups groups = _Groups(low, high)
        Py_ssize_t n = labels.shape[0], i, part, g, turn
        int64_t[::1] new = np.empty(n, dtype=np.int64), cheapest = np.empty(groups.n_groups, dtype=np.int64)
        double[::1] cost = np.empty(n)
        uint8_t[::1] stale = np.ones(groups.n_groups, dtype=np.uint8)
        int64_t k, t, saved, looked_at = 0
        double loss
        bint kept = of_one.shape[0] > 0, may_give, found
    with nogil:
        for i in range(n):
            for part in range(first[i], first[i + 1]):
                groups.counts[group[part], labels[i]] += times[part]
        while looked_at < most:
            _wrong(groups)
            for g in range(of_one.shape[0]):
                if stale[g]:
                    _fill(groups, g, of_one)
            stale[:] = 0
            cheapest[:] = -1
            found = False
            for i in range(n):
                new[i] = -1
                may_give = False
                for part in range(first[i], first[i + 1]):
                    may_give = may_give or groups.gives[group[part], labels[i]]
                if not may_give:
                    continue
                looked_at += groups.n_taken
                for turn in range(groups.n_taken):
                    k = groups.classes[turn]
                    saved = 0
                    for part in range(first[i], first[i + 1]):
                        g, t = group[part], times[part]
                        saved += of_one[g, labels[i], k] if t == 1 and kept else _saved(groups, g, t, labels[i], k)
                    if saved > 0:
                        loss = (scores[i, labels[i]] - scores[i, k]) / saved
                        if new[i] < 0 or loss < cost[i]:
                            new[i], cost[i] = k, loss
                if new[i] >= 0:
                    found = True
                    for part in range(first[i], first[i + 1]):
                        g = group[part]
                        if cheapest[g] < 0 or cost[i] < cost[cheapest[g]]:
                            cheapest[g] = i
            if not found:
                break
            for i in range(n):
                if new[i] >= 0 and _is_cheapest(i, first, group, cheapest):
                    for part in range(first[i], first[i + 1]):
                        groups.counts[group[part], labels[i]] -= times[part]
                        groups.counts[group[part], new[i]] += times[part]
                        stale[group[part]] = 1
                    labels[i] = new[i]


cdef void _wrong(_Groups groups) noexcept nogil:
    """Rows of each group above and below its totals, the classes that may give rows, those that some group may take.

    A change helps only if it takes from a class in excess, or from any with rows to spare where rows are lacking more;
    and likewise for the class it goes to.
    """
    cdef Py_ssize_t g, k, n_taken = 0
    cdef int64_t count, low, high, above, below
    groups.takes[:] = 0
    for g in range(groups.n_groups):
        above = below = 0
        for k in range(groups.n_classes):
            above += max(groups.counts[g, k] - groups.high[g, k], 0)
            below += max(groups.low[g, k] - groups.counts[g, k], 0)
            groups.gives[g, k] = 0
        groups.above[g], groups.below[g] = above, below
        if above or below:
            for k in range(groups.n_classes):
                count, low, high = groups.counts[g, k], groups.low[g, k], groups.high[g, k]
                groups.gives[g, k] = count > high or (below > above and count > low)
                groups.takes[k] = groups.takes[k] or count < low or (above > below and count < high)
    for k in range(groups.n_classes):
        if groups.takes[k]:
            groups.classes[n_taken] = k
            n_taken += 1
    groups.n_taken = n_taken


cdef void _fill(_Groups groups, Py_ssize_t g, int64_t[:, :, ::1] of_one) noexcept nogil:
    """What a row of one group saves that changes class, for each class it has and each it may get."""
    cdef Py_ssize_t label, k
    for label in range(groups.n_classes):
        for k in range(groups.n_classes):
            of_one[g, label, k] = _saved(groups, g, 1, label, k)


cdef inline int64_t _saved(_Groups groups, Py_ssize_t g, int64_t t, Py_ssize_t label, Py_ssize_t k) noexcept nogil:
    """By how many rows a group comes nearer to its totals if t rows change from `label` to k; below 0: it goes away."""
    cdef int64_t less, more, new_above, new_below
    if k == label:
        return 0
    less, more = groups.counts[g, label] - t, groups.counts[g, k] + t
    new_above = groups.above[g] - max(less + t - groups.high[g, label], 0) + max(less - groups.high[g, label], 0)
    new_above += max(more - groups.high[g, k], 0) - max(more - t - groups.high[g, k], 0)
    new_below = groups.below[g] - max(groups.low[g, label] - less - t, 0) + max(groups.low[g, label] - less, 0)
    new_below += max(groups.low[g, k] - more, 0) - max(groups.low[g, k] - more + t, 0)
    return max(groups.above[g], groups.below[g]) - max(new_above, new_below)


cdef inline bint _is_cheapest(
    Py_ssize_t i, const int64_t[::1] first, const int64_t[::1] group, const int64_t[::1] cheapest
) noexcept nogil:
    """Whether the change of point i is the cheapest in all its groups."""
    cdef Py_ssize_t part
    for part in range(first[i], first[i + 1]):
        if cheapest[group[part]] != i:
            return False
    return True
