"""The exact minimum along a line of planes with margins, for other compiled loops."""

from libc.stdint cimport int64_t


cdef class Line:
    cdef:
        double[::1] value
        double[::1] rate
        double[::1] stake
        double[::1] toll
        double[::1] place
        double[::1] jump
        double[::1] bend
        int64_t[::1] order


cdef double line_place(
    Line line, Py_ssize_t m, double epsilon, double kink, double force, double low, double high, double* least
) noexcept nogil


cdef inline void narrow(double* low, double* high, double f, double rate) noexcept nogil:
    """Narrow [low, high] to where a value that moves along a line, and does move, stays within [-1, 1]."""
    cdef double one = (-1.0 - f) / rate, other = (1.0 - f) / rate
    low[0], high[0] = max(low[0], min(one, other)), min(high[0], max(one, other))
