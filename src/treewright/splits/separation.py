"""Hyperplanes ``omega @ x - gamma`` with ``|omega_j| <= s`` and a margin of 1, by linear programs."""

from __future__ import annotations

import numpy as np

from treewright.arrays import FloatArray, IntArray
from treewright.solvers.linear import LinearProgram

__all__ = ["Separation", "separate"]

_SLACK = 1e-5
"""Margins are asked for a little wider than 1, so that a solver's tolerance never brings them below."""
_TOLERANCE = 1e-10
"""By how much a row may be violated, in units where the largest coordinate and s are 1."""
_SECONDS = 10.0
"""Most seconds of a program."""


class Separation:
    r"""Hyperplane with all hard points on their side with margin 1, and soft ones as far as possible.

    .. math:: \min \sum_i w_i \xi_i + c^\top \omega - c_0 \gamma \quad\text{s.t.}\quad
              \sigma_i(\omega^\top x_i - \gamma) \ge 1,\; \sigma_i(\omega^\top x_i - \gamma) \ge m - \xi_i,\;
              |\omega_j| \le s

    The program is kept: soft points may join, change their sides and weights, and the aim c may change; each solve
    starts from where the last one ended.

    Parameters
    ----------
    hard : ndarray of shape (n, n_features)
        Points that must be on their sides.
    hard_side : ndarray of shape (n,)
        -1 for the left, 1 for the right.
    bound : float
        s.
    reach : float
        Largest coordinate of all points that are or will be in the program.
    soft_margin : float
        m, the margin of soft points.

    Examples
    --------
    >>> program = Separation(np.array([[0.0], [4.0]]), np.array([-1.0, 1.0]), bound=10.0, reach=4.0)
    >>> program.join(np.array([[1.0]]), np.array([1.0]), np.array([1.0]))
    >>> omega, gamma = program.solve()
    >>> bool(omega[0] - gamma >= 1.0 and gamma >= 1.0)
    True
    >>> program.change(np.array([0]), np.array([-1.0]), np.array([1.0]))
    >>> omega, gamma = program.solve()
    >>> bool(omega[0] - gamma <= -1.0 and 4 * omega[0] - gamma >= 1.0)
    True
    """

    def __init__(
        self, hard: FloatArray, hard_side: FloatArray, bound: float, reach: float, soft_margin: float = 1.0
    ) -> None:
        self.n_hard, self.p = hard.shape
        self.bound, self.soft_margin, p = bound, soft_margin, self.p
        # In units where the largest coordinate and s are 1, so that the program is well scaled.
        self.reach = reach or 1.0
        self.unit = (1.0 + _SLACK) / (bound * self.reach)
        most = np.append(np.ones(p), p + 2 * self.unit)
        self.program = LinearProgram(np.zeros(p + 1), -most, most, tolerance=_TOLERANCE)
        self._rows(hard, hard_side, 1.0)

    def join(self, soft: FloatArray, side: FloatArray, weight: FloatArray) -> None:
        """Let soft points join.

        Parameters
        ----------
        soft : ndarray of shape (n, n_features)
            Points.
        side : ndarray of shape (n,)
            -1 for the left, 1 for the right.
        weight : ndarray of shape (n,)
            What a unit of violation costs, of about unit size.
        """
        first = self.program.n_rows
        self._rows(soft, side, self.soft_margin)
        # A violation is added to the value of a point, with the sign of its side.
        self.program.add_columns(side * weight, *_half_line(side, 0.0), rows=first + np.arange(len(soft)))

    def change(self, which: IntArray, side: FloatArray, weight: FloatArray) -> None:
        """Change sides and weights of some soft points, by their numbers in the order in which they joined."""
        row, column = self.n_hard + which, self.p + 1 + which
        self.program.change_rows(row, *_half_line(side, self.soft_margin * self.unit))
        self.program.change_bounds(column, *_half_line(side, 0.0))
        self.program.change_costs(column, side * weight)

    def aim(self, point: FloatArray, factor: float) -> None:
        """Add `factor` times the value of a point to what is minimized: an extreme hyperplane of those allowed."""
        self.program.change_costs(np.arange(self.p + 1), factor * np.append(point / self.reach, -1.0))

    def solve(self, seconds: float = _SECONDS) -> tuple[FloatArray, float] | None:
        """Solve for omega and gamma; None if the hard points cannot be parted, or not in this time (10 s at most)."""
        solved = self.program.solve(min(_SECONDS, seconds))
        if solved.x is None:
            return None
        p = self.p
        return np.asarray(solved.x[:p] * self.bound), float(solved.x[p] * self.bound * self.reach)

    def _rows(self, points: FloatArray, side: FloatArray, margin: float) -> None:
        """Rows of the values of points, at or beyond the margin of their side."""
        table = np.full((len(points), self.p + 1), -1.0)
        np.divide(points, self.reach, out=table[:, : self.p])
        self.program.add_rows(table, *_half_line(side, margin * self.unit))


def separate(
    hard: FloatArray,
    hard_side: FloatArray,
    soft: FloatArray,
    soft_side: FloatArray,
    soft_weight: FloatArray,
    bound: float,
    seconds: float = _SECONDS,
) -> tuple[FloatArray, float] | None:
    """Hyperplane of one program that is not kept, see :class:`Separation`.

    Parameters
    ----------
    hard, soft : ndarray of shape (n, n_features)
        Points.
    hard_side, soft_side : ndarray of shape (n,)
        -1 for the left, 1 for the right.
    soft_weight : ndarray of shape (n_soft,)
        What a unit of violation of a soft point costs, in any unit.
    bound : float
        s.
    seconds : float
        Time limit, 10 at most.

    Returns
    -------
    (ndarray, float) or None
        omega and gamma, None if the hard points cannot be parted.

    Examples
    --------
    >>> none = np.zeros((0, 1))
    >>> omega, gamma = separate(np.array([[0.0], [1.0]]), np.array([-1.0, 1.0]), none, none[:, 0], none[:, 0], 10.0)
    >>> bool(omega[0] - gamma >= 1.0 and -gamma <= -1.0)
    True
    """
    reach = max(np.abs(hard).max(initial=0.0), np.abs(soft).max(initial=0.0))
    program = Separation(hard, hard_side, bound, reach)
    program.join(soft, soft_side, soft_weight / (soft_weight.max(initial=0.0) or 1.0))
    return program.solve(seconds)


def _half_line(side: FloatArray, begin: float) -> tuple[FloatArray, FloatArray]:
    """Bounds of what lies beyond `begin` on the right, or beyond ``-begin`` on the left."""
    right = side > 0
    return np.where(right, begin, -np.inf), np.where(right, np.inf, -begin)
