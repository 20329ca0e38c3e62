"""Draws of loops compiled ahead from the stream of :mod:`treewright.engine.draws`."""

from libc.stdint cimport int64_t, uint64_t


cdef inline double draw(uint64_t[::1] draws) noexcept nogil:
    """A number in [0, 1) (xorshift64*)."""
    cdef uint64_t x = draws[0]
    x ^= x >> 12
    x ^= x << 25
    x ^= x >> 27
    draws[0] = x
    return <double> ((x * <uint64_t> 2685821657736338717) >> 11) / 9007199254740992.0


cdef inline int64_t draw_below(int64_t n, uint64_t[::1] draws) noexcept nogil:
    """A number from 0 to n - 1."""
    return min(<int64_t> (draw(draws) * n), n - 1)


cdef inline void shuffle(int64_t[::1] order, uint64_t[::1] draws) noexcept nogil:
    """Put numbers into a random order."""
    cdef Py_ssize_t i
    cdef int64_t j
    for i in range(order.shape[0] - 1, 0, -1):
        j = draw_below(i + 1, draws)
        order[i], order[j] = order[j], order[i]
