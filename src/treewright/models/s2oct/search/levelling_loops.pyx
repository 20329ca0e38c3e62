"""Compiled loop of :mod:`treewright.models.s2oct.search.levelling`: all places of a threshold along a direction."""

from libc.stdint cimport int64_t

import numpy as np

from treewright.data.label_changes cimport change_label, missed_now


def best_place(
    const double[::1] level,
    const int64_t[::1] order,
    const int64_t[::1] number,
    const int64_t[::1] if_left,
    const int64_t[::1] if_right,
    const int64_t[::1] wanted,
    const double[::1] worth,
    const int64_t[::1] begins,
    const int64_t[::1] groups,
    const int64_t[::1] times,
    const int64_t[:, ::1] low,
    const int64_t[:, ::1] high,
    int64_t[:, ::1] counts,
    double price,
    double least_gap,
):
    """Points left of the best threshold, rows that miss the totals there, and the worth that is kept.

    As the threshold rises points go from right to left in the given order. `number` is that of an unlabelled point,
    -1 of a labelled one; the rows of an unlabelled point are in compressed rows, as in ``change_label`` of
    :mod:`treewright.data.label_changes`. `counts`, with all points on the right, are overwritten. Two points on either
    side of a threshold are farther apart than `least_gap`.
    """
    cdef:
        int64_t[:, ::1] off = np.empty((2, counts.shape[0]), dtype=np.int64)
        Py_ssize_t i, place, n = order.shape[0], best = 0
        int64_t old, new, missed, best_missed
        double kept = 0.0, best_kept
    with nogil:
        missed = best_missed = missed_now(low, high, counts, off)
        for i in range(n):
            if if_right[i] == wanted[i]:
                kept += worth[i]
        best_kept = kept
        for place in range(1, n + 1):
            i = order[place - 1]
            old, new = if_right[i], if_left[i]
            if old != new:
                if old == wanted[i]:
                    kept -= worth[i]
                elif new == wanted[i]:
                    kept += worth[i]
                if number[i] >= 0:
                    missed += change_label(begins, groups, times, low, high, counts, off, number[i], old, new)
            if place < n and level[order[place]] - level[i] <= least_gap:
                continue
            if kept - price * missed > best_kept - price * best_missed:
                best, best_missed, best_kept = place, missed, kept
    return best, best_missed, best_kept
