r"""A convex quadratic program with a box and one equation, by an interior point method.

.. math:: \min_x \tfrac12 x^\top Q x - \mathbf 1^\top x \quad \text{s.t.} \quad s^\top x = 0, \; 0 \le x \le u

is the dual of a support vector machine. Decomposition methods crawl where Q is nearly singular and the box wide; this
one takes a few dozen steps whatever Q is, each a dense factorization.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from treewright.core.arrays import FloatArray

__all__ = ["BoxSolution", "solve_box_qp"]


class BoxSolution(NamedTuple):
    """Solution of a quadratic program of a Laplacian support vector machine (LapSVM)."""

    x: FloatArray
    """The variables; shape (n,)."""
    multiplier: float
    """Multiplier of the equation, the bias of a support vector machine."""
    converged: bool
    """Whether it is optimal to tolerance."""


def solve_box_qp(
    Q: FloatArray, sign: FloatArray, upper: FloatArray, tolerance: float = 1e-9, max_iter: int = 200
) -> BoxSolution:
    """Solve the quadratic program of a LapSVM by Mehrotra's predictor and corrector steps.

    Parameters
    ----------
    Q : ndarray of shape (n, n)
        Positive semidefinite matrix.
    sign : ndarray of shape (n,)
        Coefficients of the equation, both 1 and -1.
    upper : ndarray of shape (n,)
        Upper bounds, of about the size 1.
    tolerance : float
        Largest violation of the equations, relative to the largest multiplier of a bound and beyond rounding, and mean
        complementarity.
    max_iter : int
        Most steps.

    Examples
    --------
    >>> solution = solve_box_qp(np.eye(2), np.array([1.0, -1.0]), np.array([5.0, 0.5]))
    >>> solution.x.round(6).tolist(), round(solution.multiplier, 6)
    ([0.5, 0.5], 0.5)
    """
    x, b = upper / 2, 0.0
    low, high = np.ones_like(x), np.ones_like(x)  # multipliers of the bounds
    rounding = 4 * np.finfo(np.float64).eps * float((np.abs(Q) @ upper).max())
    for _ in range(max_iter):
        room = upper - x
        slope = Q @ x - 1.0 + sign * b - low + high
        gap = float(x @ low + room @ high) / (2 * len(x))
        size = 1.0 + max(float(low.max()), float(high.max()))
        wrong = max(float(np.abs(slope).max()), abs(float(sign @ x)))
        if wrong <= tolerance * size + rounding and gap <= tolerance:
            return BoxSolution(x, b, True)
        newton = _Newton.at(Q, sign, x, room, low, high, slope)
        if newton is None:
            break
        dx, _, dl, dh = newton.step(-x * low, -room * high)
        t = _longest(x, dx, room, low, dl, high, dh)
        after = float((x + t * dx) @ (low + t * dl) + (room - t * dx) @ (high + t * dh)) / (2 * len(x))
        aim = gap * (after / gap) ** 3
        dx, db, dl, dh = newton.step(aim - x * low - dx * dl, aim - room * high + dx * dh)
        t = 0.995 * _longest(x, dx, room, low, dl, high, dh)
        x, b, low, high = x + t * dx, b + t * db, low + t * dl, high + t * dh
    return BoxSolution(x, b, False)


class _Newton(NamedTuple):
    """Newton's equations at a point, factorized."""

    factor: tuple[FloatArray, bool]
    sign: FloatArray
    along: FloatArray
    x: FloatArray
    room: FloatArray
    low: FloatArray
    high: FloatArray
    slope: FloatArray

    @classmethod
    def at(
        cls,
        Q: FloatArray,
        sign: FloatArray,
        x: FloatArray,
        room: FloatArray,
        low: FloatArray,
        high: FloatArray,
        slope: FloatArray,
    ) -> _Newton | None:
        matrix = Q.copy()
        matrix[np.diag_indices_from(matrix)] += low / x + high / room
        try:
            factor = cho_factor(matrix, lower=True, overwrite_a=True)
        except (LinAlgError, ValueError):  # rounding has the last word
            return None
        return cls(factor, sign, cho_solve(factor, sign), x, room, low, high, slope)

    def step(self, to_low: FloatArray, to_high: FloatArray) -> tuple[FloatArray, float, FloatArray, FloatArray]:
        """Steps of x, the multiplier of the equation and those of the bounds, for changes of the complementarity."""
        free = cho_solve(self.factor, to_low / self.x - to_high / self.room - self.slope)
        db = float(self.sign @ free + self.sign @ self.x) / float(self.sign @ self.along)
        dx = free - db * self.along
        return dx, db, (to_low - self.low * dx) / self.x, (to_high + self.high * dx) / self.room


def _longest(
    x: FloatArray, dx: FloatArray, room: FloatArray, low: FloatArray, dl: FloatArray, high: FloatArray, dh: FloatArray
) -> float:
    """Longest step, at most 1, that leaves everything positive."""
    here, way = np.concatenate([x, room, low, high]), np.concatenate([dx, -dx, dl, dh])
    shrinking = way < 0
    return min(1.0, float(np.min(-here[shrinking] / way[shrinking], initial=np.inf)))
