"""The hot loop of tree alternating optimization: a weighted l1-logistic regression at a decision node."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from treewright.core.arrays import BoolArray, FloatArray
from treewright.splits.descent_loops import descend
from treewright.splits.newton_loops import newton_dense

__all__ = ["L1Logistic", "l1_logistic"]

_BLOCK = 256
"""Most features a Newton step moves: the cost of its matrix grows with their square."""

_PASSES = 50
"""Most passes of coordinate descent over the quadratic model of a step."""

_FLAT = 1e-6
"""Least curvature of a point as a share of its weight: far from the plane there is none, and steps would overshoot."""

_SUFFICIENT = 1e-4
"""Share of the promised decrease that a step must keep."""


_FEW, _SMALL = 24, 40_000
"""Most features and values of a table that a compiled loop takes; larger ones are for the products of BLAS."""


class L1Logistic(NamedTuple):
    """A minimizer of the penalized logistic loss."""

    weights: FloatArray
    """Normal; points at which ``x @ weights + intercept`` is negative go left; shape (n_features,)."""
    intercept: float
    """Intercept, not penalized."""
    objective: float
    """Penalized loss."""
    n_steps: int
    """Newton steps taken."""


def l1_logistic(
    X: Any,
    goes_right: BoolArray,
    weight: FloatArray,
    alpha: float,
    start: tuple[FloatArray, float] | None = None,
    max_steps: int = 5,
    tol: float = 1e-3,
) -> L1Logistic:
    r"""Direction of a split: weighted logistic regression with an l1 penalty, a free intercept, and a warm start.

    .. math:: \min_{w, b} \sum_i c_i \log(1 + \exp(-s_i (w^\top x_i + b))) + \alpha \lVert w \rVert_1

    by proximal Newton steps. A step takes the features that violate the optimality conditions most, writes their matrix
    of second derivatives by one product (the intercept is eliminated, which centres the features), minimizes the
    penalized quadratic by coordinate descent and halves the way until the objective falls as promised. So the objective
    never rises above that of the start.

    Parameters
    ----------
    X : ndarray or scipy sparse array of shape (n_points, n_features)
        Points, of about unit size. The work is done in their type of float.
    goes_right : ndarray of bool
        Sides, :math:`s_i = 1` where true and -1 elsewhere; both must occur.
    weight : ndarray of shape (n_points,)
        Weights :math:`c_i`, positive.
    alpha : float
        Price of the 1-norm.
    start : (weights, intercept) or None
        Where to start. Zero weights are taken where they are better, or where None is given.
    max_steps : int
        Most Newton steps.
    tol : float
        A step that lowers the objective by less than this share of it is the last.

    Examples
    --------
    >>> X = np.array([[0.0, 1.0], [0.2, 0.0], [0.8, 1.0], [1.0, 0.0]])
    >>> fit = l1_logistic(X, np.array([False, False, True, True]), np.ones(4), alpha=0.1, max_steps=50)
    >>> bool(fit.weights[0] > 1), float(fit.weights[1])
    (True, 0.0)
    """
    small = isinstance(X, np.ndarray) and X.dtype == np.float64 and X.shape[1] <= _FEW and X.size <= _SMALL
    if not small:
        return _Newton(X, goes_right, weight, alpha).solve(start, max_steps, tol)
    given, intercept = (np.zeros(X.shape[1]), 0.0) if start is None else start
    table, side, cost, first = map(np.ascontiguousarray, (X, goes_right, weight, given))
    settings = intercept, max_steps, tol, _PASSES, _FLAT, _SUFFICIENT
    return L1Logistic(*newton_dense(table, side, cost, alpha, first, *settings))


class _Newton:
    """Points, sides and weights in one type of float, and the steps on them."""

    def __init__(self, X: Any, goes_right: BoolArray, weight: FloatArray, alpha: float) -> None:
        self.X = X.tocsc() if hasattr(X, "tocsc") else X
        self.dtype = self.X.dtype
        self.sign = np.where(goes_right, 1.0, -1.0).astype(self.dtype)
        self.weight = weight.astype(self.dtype)
        self.alpha = float(alpha)
        self.total = float(weight.sum())

    def solve(self, start: tuple[FloatArray, float] | None, max_steps: int, tol: float) -> L1Logistic:
        weights, intercept, level = self._start(start)
        objective = self._objective(level, weights)
        steps = 0
        while steps < max_steps:
            moved = self._step(weights, level, objective)
            if moved is None:
                break
            steps += 1
            weights, shift, level, lower = moved
            intercept += shift
            small = objective - lower <= tol * objective
            objective = lower
            if small:
                break
        return L1Logistic(weights, intercept, objective, steps)

    def _start(self, start: tuple[FloatArray, float] | None) -> tuple[FloatArray, float, NDArray[Any]]:
        """The better of the given start and zero weights, each with its best intercept."""
        n, p = self.X.shape
        share = float(self.weight[self.sign > 0].sum(dtype=np.float64)) / self.total
        share = min(max(share, 1e-12), 1 - 1e-12)
        zero = np.zeros(p), float(np.log(share / (1 - share)))
        flat = np.full(n, zero[1], dtype=self.dtype)
        if start is None or not np.any(start[0]):
            return *zero, flat
        weights = np.array(start[0], dtype=np.float64)
        level = np.asarray(self.X @ weights.astype(self.dtype)) + self.dtype.type(start[1])
        intercept = float(start[1])
        for _ in range(3):
            residual, bend = self._derivatives(level)
            shift = -float(residual.sum(dtype=np.float64)) / float(bend.sum(dtype=np.float64))
            shift = min(max(shift, -2.0), 2.0)  # the model of the loss holds nearby only
            intercept, level = intercept + shift, level + self.dtype.type(shift)
        if self._objective(level, weights) >= self._objective(flat, zero[0]):
            return *zero, flat
        return weights, intercept, level

    def _step(
        self, weights: FloatArray, level: NDArray[Any], objective: float
    ) -> tuple[FloatArray, float, NDArray[Any], float] | None:
        """New weights, change of the intercept, new levels and objective; None where no step lowers it."""
        residual, bend = self._derivatives(level)
        gradient = np.asarray(self.X.T @ residual, dtype=np.float64)
        chosen = self._working_set(gradient, weights)
        columns = self.X[:, chosen]
        curvature, tilt = self._curvature(columns, bend)
        mass, drift = float(bend.sum(dtype=np.float64)), float(residual.sum(dtype=np.float64))
        # The best intercept is a linear function of the weights; with it put in, features are centred.
        slope = gradient[chosen] - tilt * (drift / mass)
        curvature -= np.outer(tilt, tilt) / mass
        curvature[np.diag_indices_from(curvature)] += 1e-9 * mass
        here = weights[chosen]
        way = descend(curvature, slope, here, self.alpha, _PASSES, 1e-10 * max(objective, 1e-300))
        shift = -(drift + float(tilt @ way)) / mass
        change = np.asarray(columns @ way.astype(self.dtype)) + self.dtype.type(shift)
        promised = float(slope @ way) + self.alpha * float(np.abs(here + way).sum() - np.abs(here).sum())
        promised -= drift * drift / mass
        if not promised < 0:
            return None
        length = 1.0
        for _ in range(12):
            trial = weights.copy()
            trial[chosen] = here + length * way
            there = level + self.dtype.type(length) * change
            reached = self._objective(there, trial)
            if reached <= objective + _SUFFICIENT * length * promised and reached < objective:
                return trial, length * shift, there, reached
            length /= 2
        return None

    def _working_set(self, gradient: FloatArray, weights: FloatArray) -> NDArray[np.int64]:
        """Features in use or wanted, at most a block of them: those that violate optimality most."""
        used = weights != 0
        violation = np.where(
            used, np.abs(gradient + self.alpha * np.sign(weights)), np.maximum(np.abs(gradient) - self.alpha, 0.0)
        )
        wanted = np.flatnonzero(used | (violation > 0))
        if len(wanted) > _BLOCK:
            wanted = np.sort(wanted[np.argsort(-violation[wanted], kind="stable")[:_BLOCK]])
        return wanted

    def _curvature(self, columns: Any, bend: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
        """Second derivatives of the loss: among the weights, and between them and the intercept."""
        root = np.sqrt(bend)
        if hasattr(columns, "multiply"):
            scaled = columns.multiply(root[:, None]).tocsc()
            table = (scaled.T @ scaled).toarray()
        else:
            scaled = columns * root[:, None]
            table = scaled.T @ scaled
        return np.asarray(table, dtype=np.float64), np.asarray(scaled.T @ root, dtype=np.float64)

    def _derivatives(self, level: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """First and second derivative of the loss by the level of each point."""
        decay = np.exp(-np.abs(level))
        one = self.dtype.type(1)
        inverse = one / (one + decay)
        right = np.where(level >= 0, inverse, decay * inverse)  # probability of the right side
        bend = self.weight * np.maximum(decay * inverse * inverse, self.dtype.type(_FLAT))
        return self.weight * (right - (self.sign > 0)), bend

    def _objective(self, level: NDArray[Any], weights: FloatArray) -> float:
        """Penalized loss; the sum runs in float64, its terms in the type of the points."""
        one = self.dtype.type(1)
        loss = np.maximum(-self.sign * level, self.dtype.type(0)) + np.log(one + np.exp(-np.abs(level)))
        return float(np.sum(self.weight * loss, dtype=np.float64)) + self.alpha * float(np.abs(weights).sum())
