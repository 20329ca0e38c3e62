"""The Newton steps of :mod:`treewright.splits.l1_logistic` as one compiled loop, for nodes of few points and features.

There numpy takes longer to be called than to compute.
"""

from libc.math cimport INFINITY, exp, fabs, log
from libc.stdint cimport uint8_t

import numpy as np

from treewright.splits.descent_loops cimport descend_from


cdef double _loss(
    const double[::1] level, const uint8_t[::1] right, const double[::1] weight, const double[::1] change, double length
) noexcept nogil:
    """Logistic loss at ``level + length * change``."""
    cdef double z, total = 0.0
    cdef Py_ssize_t i
    for i in range(level.shape[0]):
        z = level[i] + length * change[i]
        z = z if right[i] else -z
        total += weight[i] * (max(-z, 0.0) + log(1.0 + exp(-fabs(z))))
    return total


cdef void _slopes(
    const double[::1] level,
    const uint8_t[::1] right,
    const double[::1] weight,
    double flat,
    double[::1] residual,
    double[::1] bend,
    double* drift,
    double* mass,
) noexcept nogil:
    """Fill in the first and second derivative of the loss by the level of each point, and their sums."""
    cdef double decay, inverse, share
    cdef Py_ssize_t i
    drift[0] = mass[0] = 0.0
    for i in range(level.shape[0]):
        decay = exp(-fabs(level[i]))
        inverse = 1.0 / (1.0 + decay)
        share = inverse if level[i] >= 0 else decay * inverse  # probability of the right side
        residual[i] = weight[i] * (share - 1.0 if right[i] else share)
        bend[i] = weight[i] * max(decay * inverse * inverse, flat)
        drift[0] += residual[i]
        mass[0] += bend[i]


cdef void _quadratic(
    const double[:, ::1] X,
    const Py_ssize_t[::1] chosen,
    Py_ssize_t k,
    const double[::1] bend,
    double[:, ::1] curvature,
    double[::1] tilt,
    double[::1] point,
) noexcept nogil:
    """Second derivatives of the loss: among the weights of k chosen features, and between them and the intercept."""
    cdef Py_ssize_t i, a, b
    cdef double scaled
    curvature[:k, :k] = 0.0
    tilt[:k] = 0.0
    for i in range(X.shape[0]):
        for a in range(k):
            point[a] = X[i, chosen[a]]
        for a in range(k):
            scaled = bend[i] * point[a]
            tilt[a] += scaled
            for b in range(a + 1):
                curvature[a, b] += scaled * point[b]
    for a in range(k):
        for b in range(a):
            curvature[b, a] = curvature[a, b]


cdef inline double _norm(const double[::1] weights, const double[::1] way, double length, Py_ssize_t n) noexcept nogil:
    """1-norm of the first n of ``weights + length * way``."""
    cdef double total = 0.0
    cdef Py_ssize_t j
    for j in range(n):
        total += fabs(weights[j] + length * way[j])
    return total


cdef void _start(
    const double[:, ::1] X,
    const uint8_t[::1] right,
    const double[::1] weight,
    double alpha,
    double flat,
    double[::1] weights,
    double[::1] level,
    double[::1] residual,
    double[::1] bend,
    double[::1] change,
    double* intercept,
    double* objective,
) noexcept nogil:
    """The better of the given start and zero weights, each with its best intercept, and the levels and objective."""
    cdef double drift, mass, shift, share = 0.0, total = 0.0, zero, reached
    cdef Py_ssize_t i, j, n = X.shape[0], p = X.shape[1]
    cdef bint given = False
    change[:] = 0.0
    for i in range(n):
        share += weight[i] if right[i] else 0.0
        total += weight[i]
    share = min(max(share / total, 1e-12), 1.0 - 1e-12)
    zero = log(share / (1.0 - share))
    level[:] = zero
    objective[0] = _loss(level, right, weight, change, 0.0)
    for j in range(p):
        given = given or weights[j] != 0
    if given:
        for i in range(n):
            level[i] = intercept[0]
            for j in range(p):
                level[i] += weights[j] * X[i, j]
        for _ in range(3):
            _slopes(level, right, weight, flat, residual, bend, &drift, &mass)
            shift = min(max(-drift / mass, -2.0), 2.0)  # the model of the loss holds nearby only
            intercept[0] += shift
            for i in range(n):
                level[i] += shift
        reached = _loss(level, right, weight, change, 0.0) + alpha * _norm(weights, weights, 0.0, p)
        if reached < objective[0]:
            objective[0] = reached
            return
    weights[:] = 0.0
    level[:] = zero
    intercept[0] = zero


def newton_dense(
    const double[:, ::1] X,
    const uint8_t[::1] right,
    const double[::1] weight,
    double alpha,
    given,
    double intercept,
    Py_ssize_t max_steps,
    double tol,
    Py_ssize_t passes,
    double flat,
    double sufficient,
):
    """Weights, intercept, objective and number of steps; the steps are those of ``l1_logistic``, of all features."""
    found = given.copy()
    cdef:
        Py_ssize_t n = X.shape[0], p = X.shape[1], i, j, a, b, k, steps = 0
        double[::1] weights = found
        double[:, ::1] of_points = np.empty((4, n)), of_features = np.empty((7, p)), curvature = np.empty((p, p))
        double[::1] level = of_points[0], residual = of_points[1], bend = of_points[2], change = of_points[3]
        double[::1] gradient = of_features[0], tilt = of_features[1], here = of_features[2], slope = of_features[3]
        double[::1] way = of_features[4], left = of_features[5], point = of_features[6]
        Py_ssize_t[::1] chosen = np.empty(p, dtype=np.intp)
        double objective, drift, mass, shift, promised, tilted, sloped, length, reached
        bint small
    with nogil:
        _start(X, right, weight, alpha, flat, weights, level, residual, bend, change, &intercept, &objective)
        while steps < max_steps:
            _slopes(level, right, weight, flat, residual, bend, &drift, &mass)
            gradient[:] = 0.0
            for i in range(n):
                for j in range(p):
                    gradient[j] += residual[i] * X[i, j]
            k = 0
            for j in range(p):
                if weights[j] != 0 or fabs(gradient[j]) > alpha:
                    chosen[k] = j
                    k += 1
            _quadratic(X, chosen, k, bend, curvature, tilt, point)
            # The best intercept is a linear function of the weights; with it put in, features are centred.
            for a in range(k):
                for b in range(k):
                    curvature[a, b] -= tilt[a] * tilt[b] / mass
                curvature[a, a] += 1e-9 * mass
                here[a], slope[a] = weights[chosen[a]], gradient[chosen[a]] - tilt[a] * (drift / mass)
            left[:], way[:] = slope, 0.0
            descend_from(curvature, left, here, way, k, alpha, passes, 1e-10 * max(objective, 1e-300))
            tilted = sloped = 0.0
            for a in range(k):
                tilted += tilt[a] * way[a]
                sloped += slope[a] * way[a]
            shift = -(drift + tilted) / mass
            promised = sloped + alpha * (_norm(here, way, 1.0, k) - _norm(here, way, 0.0, k)) - drift * drift / mass
            if not promised < 0:
                break
            for i in range(n):
                change[i] = shift
                for a in range(k):
                    change[i] += way[a] * X[i, chosen[a]]
            length, reached = 1.0, INFINITY
            for _ in range(12):
                reached = _loss(level, right, weight, change, length) + alpha * _norm(here, way, length, k)
                if reached <= objective + sufficient * length * promised and reached < objective:
                    break
                length /= 2
                reached = INFINITY
            if reached == INFINITY:
                break
            steps += 1
            for a in range(k):
                weights[chosen[a]] = here[a] + length * way[a]
            intercept += length * shift
            for i in range(n):
                level[i] += length * change[i]
            small = objective - reached <= tol * objective
            objective = reached
            if small:
                break
    return found, intercept, objective, steps
