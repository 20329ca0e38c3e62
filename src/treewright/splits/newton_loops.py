"""The Newton steps of :mod:`treewright.splits.l1_logistic` as one compiled loop, for nodes of few points and features.

There numpy takes longer to be called than to compute. Importing this module imports numba.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from treewright.core.compiled import njit
from treewright.splits.descent_loops import descend

__all__ = ["newton_dense"]


@njit(nogil=True)
def _loss(level: Any, right: Any, weight: Any, change: Any, length: float) -> float:
    """Logistic loss at ``level + length * change``."""
    total = 0.0
    for i in range(len(level)):
        z = level[i] + length * change[i]
        z = z if right[i] else -z
        total += weight[i] * (max(-z, 0.0) + np.log(1.0 + np.exp(-abs(z))))
    return total


@njit(nogil=True)
def _slopes(level: Any, right: Any, weight: Any, flat: float, residual: Any, bend: Any) -> Any:
    """Fill in the first and second derivative of the loss by the level of each point; their sums."""
    drift, mass = 0.0, 0.0
    for i in range(len(level)):
        decay = np.exp(-abs(level[i]))
        inverse = 1.0 / (1.0 + decay)
        share = inverse if level[i] >= 0 else decay * inverse  # probability of the right side
        residual[i] = weight[i] * (share - 1.0 if right[i] else share)
        bend[i] = weight[i] * max(decay * inverse * inverse, flat)
        drift += residual[i]
        mass += bend[i]
    return drift, mass


@njit(nogil=True)
def _quadratic(X: Any, chosen: Any, bend: Any) -> Any:
    """Second derivatives of the loss: among the weights of the chosen features, and between them and the intercept."""
    k = len(chosen)
    curvature, tilt = np.zeros((k, k)), np.zeros(k)
    for i in range(len(X)):
        for a in range(k):
            scaled = bend[i] * X[i, chosen[a]]
            tilt[a] += scaled
            for b in range(a + 1):
                curvature[a, b] += scaled * X[i, chosen[b]]
    for a in range(k):
        for b in range(a):
            curvature[b, a] = curvature[a, b]
    return curvature, tilt


@njit(nogil=True)
def _started(X: Any, right: Any, weight: Any, alpha: float, given: Any, intercept: float, flat: float) -> Any:
    """The better of the given start and zero weights, each with its best intercept: both, levels, objective."""
    n = len(X)
    share = weight[right].sum() / weight.sum()
    share = min(max(share, 1e-12), 1.0 - 1e-12)
    still = np.zeros(n)
    zero = np.log(share / (1.0 - share))
    level = np.full(n, zero)
    objective = _loss(level, right, weight, still, 0.0)
    if not np.any(given):
        return np.zeros(len(given)), zero, level, objective
    residual, bend, there = np.empty(n), np.empty(n), np.full(n, intercept)
    for i in range(n):
        for j in range(len(given)):
            there[i] += given[j] * X[i, j]
    for _ in range(3):
        drift, mass = _slopes(there, right, weight, flat, residual, bend)
        shift = min(max(-drift / mass, -2.0), 2.0)  # the model of the loss holds nearby only
        intercept += shift
        there += shift
    reached = _loss(there, right, weight, still, 0.0) + alpha * np.abs(given).sum()
    if reached >= objective:
        return np.zeros(len(given)), zero, level, objective
    return given.copy(), intercept, there, reached


@njit("f8** b1* f8* f8 f8* f8 i8 f8 i8 f8 f8", nogil=True)
def newton_dense(
    X: Any,
    right: Any,
    weight: Any,
    alpha: float,
    given: Any,
    intercept: float,
    max_steps: int,
    tol: float,
    passes: int,
    flat: float,
    sufficient: float,
) -> Any:
    """Weights, intercept, objective and number of steps; the steps are those of ``l1_logistic``, of all features."""
    weights, intercept, level, objective = _started(X, right, weight, alpha, given, intercept, flat)
    n, p = X.shape
    residual, bend, gradient, change = np.empty(n), np.empty(n), np.empty(p), np.empty(n)
    steps = 0
    while steps < max_steps:
        drift, mass = _slopes(level, right, weight, flat, residual, bend)
        gradient[:] = 0.0
        for i in range(n):
            for j in range(p):
                gradient[j] += residual[i] * X[i, j]
        chosen = np.flatnonzero((weights != 0) | (np.abs(gradient) > alpha))
        curvature, tilt = _quadratic(X, chosen, bend)
        # The best intercept is a linear function of the weights; with it put in, features are centred.
        for a in range(len(chosen)):
            for b in range(len(chosen)):
                curvature[a, b] -= tilt[a] * tilt[b] / mass
            curvature[a, a] += 1e-9 * mass
        here, slope = weights[chosen], gradient[chosen] - tilt * (drift / mass)
        way = descend(curvature, slope, here, alpha, passes, 1e-10 * max(objective, 1e-300))
        shift = -(drift + (tilt * way).sum()) / mass
        promised = (slope * way).sum() + alpha * (np.abs(here + way).sum() - np.abs(here).sum()) - drift * drift / mass
        if not promised < 0:
            break
        change[:] = shift
        for i in range(n):
            for a in range(len(chosen)):
                change[i] += way[a] * X[i, chosen[a]]
        length, reached = 1.0, np.inf
        for _ in range(12):
            reached = _loss(level, right, weight, change, length) + alpha * np.abs(here + length * way).sum()
            if reached <= objective + sufficient * length * promised and reached < objective:
                break
            length /= 2
            reached = np.inf
        if reached == np.inf:
            break
        steps += 1
        weights[chosen] = here + length * way
        intercept += length * shift
        level += length * change
        small = objective - reached <= tol * objective
        objective = reached
        if small:
            break
    return weights, intercept, objective, steps
