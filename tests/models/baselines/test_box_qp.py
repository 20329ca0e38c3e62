"""The interior point method: optimality conditions checked from the definition, singular matrices included."""

import numpy as np
from tests.examples import looped

from treewright.models.baselines.box_program import solve_box_qp


@looped("rank", [1, 3, 40])
@looped("scale", [1e-3, 1.0, 1e3])
@looped("seed", [0, 1])
def test_optimality_conditions(rank, scale, seed):
    rng = np.random.default_rng(seed)
    n = 40
    A = rng.normal(size=(n, rank))
    sign = np.where(rng.random(n) < 0.3, 1.0, -1.0)
    Q = scale * (A @ A.T) * np.outer(sign, sign)
    upper = rng.uniform(0.5, 2.0, n)
    solution = solve_box_qp(Q, sign, upper)
    x = solution.x
    assert solution.converged
    assert np.all(x >= 0) and np.all(x <= upper) and abs(sign @ x) < 1e-6
    # A variable may only be pushed towards the bound that it is at: the duality gap is what is left.
    slope = Q @ x - 1 + solution.multiplier * sign
    gap = np.maximum(slope, 0) @ x + np.maximum(-slope, 0) @ (upper - x)
    assert gap < 1e-6


def test_too_few_steps_are_told():
    solution = solve_box_qp(np.eye(4), np.array([1.0, 1.0, -1.0, -1.0]), np.ones(4), max_iter=1)
    assert not solution.converged
