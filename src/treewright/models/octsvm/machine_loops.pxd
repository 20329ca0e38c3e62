from libc.math cimport fabs
from libc.stdint cimport int64_t, uint64_t


cdef inline double _above_zero(double number) noexcept nogil:
    """It, or 0: nothing that a processor would have to guess, and wrongly every second time."""
    return 0.5 * (number + fabs(number))


cdef inline double relabelled_loss(double margin, double r2) noexcept nogil:
    """What a point with this margin pays."""
    return min(_above_zero(1.0 - margin), r2 + _above_zero(1.0 + margin))


cdef class Places:
    """Room for the places of a line at which the cost bends or jumps."""

    cdef:
        double[::1] at
        double[::1] bend
        double[::1] jump
        int64_t[::1] order


cdef class Machine:
    """The points that a machine is trained on, less their mean, and the plane that comes of it."""

    cdef:
        double[:, ::1] Z
        double[::1] side
        double[::1] worth
        double[::1] most
        double[::1] square
        double[::1] alpha
        double[::1] mean
        int64_t[::1] order
        double[::1] w
        double b


cpdef double length(const double[::1] w, int64_t norm) noexcept nogil
cpdef (double, double) range_within(const double[::1] w, const double[::1] u, double limit, int64_t norm) noexcept nogil
cdef void values(
    const double[:, ::1] X, const int64_t[::1] rows, const double[::1] w, double b, double[::1] out
) noexcept nogil
cpdef double node_cost(
    const double[::1] f,
    const double[::1] sign,
    const double[::1] weight,
    const double[::1] left,
    const double[::1] right,
    double r2,
) noexcept nogil
cdef (double, double) least_among(
    const double[::1] a,
    const double[::1] b,
    const double[::1] sign,
    const double[::1] weight,
    const double[::1] left,
    const double[::1] right,
    double r2,
    double low,
    double high,
    Places places,
) noexcept nogil
cdef void train(Machine machine, Py_ssize_t n, double limit, int64_t norm, uint64_t[::1] draws) noexcept nogil
