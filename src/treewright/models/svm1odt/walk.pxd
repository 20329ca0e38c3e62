"""Random numbers of the walks of trees."""

from libc.stdint cimport uint64_t


cdef inline double uniform(uint64_t[::1] state) noexcept nogil:
    """Next number of a stream in [0, 1), by splitmix64: the same on every machine and in every thread."""
    cdef uint64_t mixed
    state[0] += <uint64_t> 0x9E3779B97F4A7C15
    mixed = state[0]
    mixed = (mixed ^ (mixed >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9
    mixed = (mixed ^ (mixed >> 27)) * <uint64_t> 0x94D049BB133111EB
    mixed = mixed ^ (mixed >> 31)
    return <double> (mixed >> 11) / 9007199254740992.0
