"""Linear programs of one plane, for other compiled loops."""

from libc.stdint cimport int64_t


cdef class Program:
    cdef:
        # Points, the side of each, what falling short costs, and limits; see :func:`.plane_programs.best_plane`.
        const double[:, ::1] X
        int64_t[::1] sides
        const double[::1] price
        double epsilon, least, alpha, largest
        Py_ssize_t n, k
        # A vertex of some of the points: variables in the basis have rows, others columns.
        Py_ssize_t m  # rows
        double[:, ::1] T  # what variables with rows change by as those with columns do
        int64_t[::1] rows
        int64_t[::1] columns
        double[::1] x  # values of the variables of rows
        double[::1] at  # values of the variables of columns
        int64_t[::1] piece  # between two kinks that each of the former has the slope of
        double[:, ::1] ends  # of that piece
        int64_t[::1] place  # kink that each of the latter is at
        double[::1] d  # reduced costs of columns, and the limits of what they may be
        double[::1] low
        double[::1] high
        double[::1] ratio  # how far each column lets a row be pushed
        int64_t[::1] seat  # row of a variable, or -1 - c for column c
        double[::1] away


cdef double plane_of(Program program, double limit, double[::1] normal, double[::1] dual, double* offset) noexcept nogil


cdef inline double value_at(
    const double[:, ::1] X, Py_ssize_t i, const double[::1] normal, double offset
) noexcept nogil:
    """Value of a point at a plane."""
    cdef Py_ssize_t j
    for j in range(normal.shape[0]):
        offset -= X[i, j] * normal[j]
    return offset
