"""Hyperplanes ``omega @ x - gamma`` with ``|omega_j| <= s`` and a margin of 1, by linear programs."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from treewright.arrays import FloatArray

__all__ = ["separate"]

_SLACK = 1e-5
"""Margins are asked for a little wider than 1, so that a solver's tolerance never brings them below."""


def separate(
    hard: FloatArray,
    hard_side: FloatArray,
    soft: FloatArray,
    soft_side: FloatArray,
    soft_weight: FloatArray,
    bound: float,
    toward: tuple[FloatArray, float] | None = None,
    seconds: float = 10.0,
    soft_margin: float = 1.0,
) -> tuple[FloatArray, float] | None:
    r"""Hyperplane with all hard points on their side with margin 1, and soft ones as far as possible.

    .. math:: \min \sum_i w_i \xi_i + c^\top \omega - c_0 \gamma \quad\text{s.t.}\quad
              \sigma_i(\omega^\top x_i - \gamma) \ge 1,\; \sigma_i(\omega^\top x_i - \gamma) \ge m - \xi_i,\;
              |\omega_j| \le s

    Parameters
    ----------
    hard, soft : ndarray of shape (n, n_features)
        Points.
    hard_side, soft_side : ndarray of shape (n,)
        -1 for the left, 1 for the right.
    soft_weight : ndarray of shape (n_soft,)
        What a unit of violation of a soft point costs.
    bound : float
        s.
    toward : (ndarray, float) or None
        A point (mean) whose value is to be as small as possible, with a factor: among the hyperplanes that satisfy
        the hard points, an extreme one.
    seconds : float
        Time limit, 10 at most.
    soft_margin : float
        m, the margin of soft points.

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
    n_hard, n_soft, p = len(hard), len(soft), hard.shape[1]
    # In units where the largest coordinate and s are 1, so that the program is well scaled.
    size = max(np.abs(hard).max(initial=0.0), np.abs(soft).max(initial=0.0)) or 1.0
    unit = (1.0 + _SLACK) / (bound * size)
    rows_hard = -hard_side[:, None] * np.hstack([hard / size, np.full((n_hard, 1), -1.0)])
    rows_soft = -soft_side[:, None] * np.hstack([soft / size, np.full((n_soft, 1), -1.0)])
    rows = sparse.block_array(
        [
            [sparse.csr_array(rows_hard), sparse.csr_array((n_hard, n_soft))],
            [sparse.csr_array(rows_soft), -sparse.eye_array(n_soft)],
        ],
        format="csc",
    )
    cost = np.concatenate([np.zeros(p + 1), soft_weight / (soft_weight.max(initial=0.0) or 1.0)])
    if toward is not None:
        mean, factor = toward
        cost[: p + 1] += factor * np.append(mean / size, -1.0)
    box = np.concatenate([np.full(p, 1.0), [p + 2 * unit], np.full(n_soft, np.inf)])
    lowest = np.concatenate([-box[: p + 1], np.zeros(n_soft)])
    solved = linprog(
        cost,
        A_ub=rows,
        b_ub=np.concatenate([np.full(n_hard, -unit), np.full(n_soft, -unit * soft_margin)]),
        bounds=np.column_stack([lowest, box]),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "time_limit": min(10.0, max(0.05, seconds))},
    )
    if solved.x is None or solved.status not in (0, 1):
        return None
    return np.asarray(solved.x[:p] * bound), float(solved.x[p] * bound * size)
