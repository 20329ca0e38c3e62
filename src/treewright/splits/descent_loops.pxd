"""Coordinate descent for loops of other modules."""


cdef inline void descend_from(
    const double[:, ::1] curvature,
    double[::1] slope,
    const double[::1] weights,
    double[::1] step,
    Py_ssize_t n,
    double alpha,
    Py_ssize_t passes,
    double tolerance,
) noexcept nogil:
    """As :func:`descend` of the first n weights, from `step` 0 and a `slope` that is the gradient; both are changed.

    Slopes get the changes of two coordinates at once, one after the other: the first of them is `late`.
    """
    cdef Py_ssize_t i, j
    cdef double largest, bend, here, goal, shrink, moved, late = 0.0
    cdef double* slopes
    cdef const double* row
    cdef const double* late_row
    if n == 0:
        return
    slopes, late_row = &slope[0], &curvature[0, 0]
    for _ in range(passes):
        largest = 0.0
        for j in range(n):
            bend = curvature[j, j]
            if bend <= 0.0:
                continue
            here = weights[j] + step[j]
            goal = here - (slopes[j] + late * late_row[j]) / bend
            shrink = alpha / bend
            moved = max(0.0, goal - shrink) + min(0.0, goal + shrink) - here
            if moved == 0.0:
                continue
            step[j] += moved
            largest = max(largest, bend * moved * moved)
            row = &curvature[j, 0]
            if late == 0.0:
                late, late_row = moved, row
            else:
                for i in range(n):
                    slopes[i] = slopes[i] + late * late_row[i] + moved * row[i]
                late = 0.0
        if largest <= tolerance:
            break
