"""Rows that miss their totals as labels change, for loops of other modules."""

from libc.stdint cimport int64_t


cdef inline int64_t missed_now(
    const int64_t[:, ::1] low,
    const int64_t[:, ::1] high,
    const int64_t[:, ::1] counts,
    int64_t[:, ::1] off,
) noexcept nogil:
    """Rows that would have to change class; fills in how many are above the limits of each group and how many below."""
    cdef int64_t missed = 0
    cdef Py_ssize_t g, k
    for g in range(counts.shape[0]):
        off[0, g] = off[1, g] = 0
        for k in range(counts.shape[1]):
            off[0, g] += max(counts[g, k] - high[g, k], 0)
            off[1, g] += max(low[g, k] - counts[g, k], 0)
        missed += max(off[0, g], off[1, g])
    return missed


cdef inline int64_t change_label(
    const int64_t[::1] begins,
    const int64_t[::1] groups,
    const int64_t[::1] times,
    const int64_t[:, ::1] low,
    const int64_t[:, ::1] high,
    int64_t[:, ::1] counts,
    int64_t[:, ::1] off,
    Py_ssize_t point,
    int64_t old,
    int64_t new,
) noexcept nogil:
    """How many more rows would have to change class once a point has another label.

    The rows of a point are in compressed rows: ``times[k]`` of them in ``groups[k]`` for k from ``begins[point]``.
    `counts`, the rows of each group and class, and the sums `off` their limits in each group, are brought up to date.
    """
    cdef int64_t more = 0, label, before, after
    cdef Py_ssize_t k, g, turn
    for k in range(begins[point], begins[point + 1]):
        g = groups[k]
        more -= max(off[0, g], off[1, g])
        for turn in range(2):
            label = new if turn else old
            before = counts[g, label]
            after = before + (times[k] if turn else -times[k])
            counts[g, label] = after
            off[0, g] += max(after - high[g, label], 0) - max(before - high[g, label], 0)
            off[1, g] += max(low[g, label] - after, 0) - max(low[g, label] - before, 0)
        more += max(off[0, g], off[1, g])
    return more
