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

    Slopes get the changes of two coordinates at once, one after the other: first the `late` one, of row `before`.
    """
    cdef Py_ssize_t i, j, before = 0
    cdef double largest, bend, here, goal, shrink, moved, late = 0.0
    for _ in range(passes):
        largest = 0.0
        for j in range(n):
            bend = curvature[j, j]
            if bend <= 0.0:
                continue
            here = weights[j] + step[j]
            goal = here - (slope[j] + late * curvature[before, j]) / bend
            shrink = alpha / bend
            moved = max(0.0, goal - shrink) + min(0.0, goal + shrink) - here
            if moved == 0.0:
                continue
            step[j] += moved
            largest = max(largest, bend * moved * moved)
            if late == 0.0:
                late, before = moved, j
            else:
                for i in range(n):
                    slope[i] = slope[i] + late * curvature[before, i] + moved * curvature[j, i]
                late = 0.0
        if largest <= tolerance:
            break
