"""Programs with known optimum, defined once and solved by every solver."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from treewright.solvers import Status
from treewright.solvers.program import Program
from treewright.solvers.program_builder import ProgramBuilder

INF = np.inf


@dataclass(frozen=True)
class Known:
    """A program, how a solve must end, and what it must cost."""

    program: Program
    status: Status
    objective: float = INF
    x: np.ndarray | None = None


def linear() -> Known:
    """max 3a + 5b, a <= 4, 2b <= 12, 3a + 2b <= 18: the textbook optimum 36 at (2, 6)."""
    builder = ProgramBuilder()
    x = builder.add_variables("x", 2, cost=[-3.0, -5.0])
    builder.add_rows("r", [(np.tile(x, (3, 1)), [[1.0, 0.0], [0.0, 2.0], [3.0, 2.0]])], upper=[4.0, 12.0, 18.0])
    return Known(builder.build(), Status.OPTIMAL, -36.0, np.array([2.0, 6.0]))


def free_variables() -> Known:
    """min |y - 3| + 1 with y free: t >= y - 3, t >= 3 - y, y = -5 + z, z <= 2: y = -3, optimum 6 + 1."""
    builder = ProgramBuilder()
    y = builder.add_variables("y", 1, lower=-INF)
    t = builder.add_variables("t", 1, lower=-INF, cost=1.0)
    z = builder.add_variables("z", 1, lower=-INF, upper=2.0)
    builder.add_rows("above", [(t, 1.0), (y, -1.0)], lower=-3.0)
    builder.add_rows("below", [(t, 1.0), (y, 1.0)], lower=3.0)
    builder.add_rows("link", [(y, 1.0), (z, -1.0)], lower=-5.0, upper=-5.0)
    builder.add_offset(1.0)
    return Known(builder.build(), Status.OPTIMAL, 7.0, np.array([-3.0, 6.0, 2.0]))


def ranged_rows() -> Known:
    """min a - b, 1 <= a + b <= 4, -2 <= a - b <= 10, b <= 2.5, and a row without bounds: optimum -2."""
    builder = ProgramBuilder()
    x = builder.add_variables("x", 2, upper=[INF, 2.5], cost=[1.0, -1.0])
    signs = [[1.0, 1.0], [1.0, -1.0], [5.0, 7.0]]
    builder.add_rows("r", [(np.tile(x, (3, 1)), signs)], lower=[1.0, -2.0, -INF], upper=[4.0, 10.0, INF])
    return Known(builder.build(), Status.OPTIMAL, -2.0)


def knapsack(n: int = 14, seed: int = 3) -> Known:
    rng = np.random.default_rng(seed)
    value, weight = rng.integers(5, 60, n), rng.integers(5, 60, n)
    capacity = int(weight.sum() * 0.4)
    choices = np.array(list(itertools.product((0, 1), repeat=n)))
    best = (choices @ value)[choices @ weight <= capacity].max()
    builder = ProgramBuilder()
    u = builder.add_variables("u", n, upper=1, integer=True, cost=-value.astype(float), priority=np.arange(n))
    builder.add_rows("weight", [(u[None, :], weight[None, :].astype(float))], upper=float(capacity))
    return Known(builder.build(), Status.OPTIMAL, -float(best))


def equality_mip() -> Known:
    """3a + 5b + 7c = 31 in integers, min a + b + c: (1, 0, 4) costs 5, and 4 units reach at most 28."""
    builder = ProgramBuilder()
    x = builder.add_variables("x", 3, integer=True, cost=1.0)
    builder.add_rows("sum", [(x[None, :], [[3.0, 5.0, 7.0]])], lower=31.0, upper=31.0)
    return Known(builder.build(), Status.OPTIMAL, 5.0)


def negative_integers() -> Known:
    """min 2a + b, a, b in {-5, ..., 3}, 2a + 2b >= -7: a + b >= -3 once integer, so (-5, 2) with -8."""
    builder = ProgramBuilder()
    x = builder.add_variables("x", 2, lower=-5.0, upper=3.0, integer=True, cost=[2.0, 1.0])
    builder.add_rows("r", [(x[None, :], [[2.0, 2.0]])], lower=-7.0)
    return Known(builder.build(), Status.OPTIMAL, -8.0, np.array([-5.0, 2.0]))


def zero_optimum() -> Known:
    """Optimum 0, at which a relative gap alone never closes."""
    builder = ProgramBuilder()
    u = builder.add_variables("u", 6, upper=1, integer=True)
    t = builder.add_variables("t", 1, lower=-INF, cost=1.0)
    signs = np.array([[3.0, -2.0, 5.0, -4.0, 1.0, -6.0]])
    builder.add_rows("up", [(t, 1.0), (u[None, :], signs)], lower=0.0)
    builder.add_rows("down", [(t, 1.0), (u[None, :], -signs)], lower=0.0)
    builder.add_rows("some", [(u[None, :], np.ones((1, 6)))], lower=2.0)
    return Known(builder.build(), Status.OPTIMAL, 0.0)


def infeasible_lp() -> Known:
    builder = ProgramBuilder()
    x = builder.add_variables("x", 2, cost=1.0)
    builder.add_rows("low", [(x[None, :], [[1.0, 1.0]])], upper=1.0)
    builder.add_rows("high", [(x[None, :], [[1.0, 1.0]])], lower=2.0)
    return Known(builder.build(), Status.INFEASIBLE)


def infeasible_mip() -> Known:
    """2a + 4b = 7 has real but no integer solutions."""
    builder = ProgramBuilder()
    x = builder.add_variables("x", 2, upper=9, integer=True, cost=1.0)
    builder.add_rows("odd", [(x[None, :], [[2.0, 4.0]])], lower=7.0, upper=7.0)
    return Known(builder.build(), Status.INFEASIBLE)


def unbounded_lp() -> Known:
    builder = ProgramBuilder()
    x = builder.add_variables("x", 2, cost=[-1.0, 0.0])
    builder.add_rows("r", [(x[None, :], [[1.0, -1.0]])], upper=1.0)
    return Known(builder.build(), Status.UNBOUNDED)


def unbounded_mip() -> Known:
    builder = ProgramBuilder()
    x = builder.add_variables("x", 2, integer=True, cost=[-1.0, 0.0])
    builder.add_rows("r", [(x[None, :], [[1.0, -1.0]])], upper=1.0)
    return Known(builder.build(), Status.UNBOUNDED)


def infeasible_with_ray() -> Known:
    """A ray of infinite gain beside rows without integer solution: infeasible, not unbounded."""
    builder = ProgramBuilder()
    x = builder.add_variables("x", 2, upper=9, integer=True)
    builder.add_variables("ray", 1, cost=-1.0)
    builder.add_rows("odd", [(x[None, :], [[2.0, 4.0]])], lower=7.0, upper=7.0)
    return Known(builder.build(), Status.INFEASIBLE)


def crossed_bounds() -> Known:
    builder = ProgramBuilder()
    builder.add_variables("x", 2, lower=[0.0, 2.0], upper=[1.0, 1.0])
    return Known(builder.build(), Status.INFEASIBLE)


def no_rows() -> Known:
    builder = ProgramBuilder()
    builder.add_variables("x", 2, lower=-1.0, upper=2.0, cost=[1.0, -1.0])
    builder.add_variables("k", 1, lower=0.5, upper=2.5, integer=True, cost=-1.0)
    return Known(builder.build(), Status.OPTIMAL, -5.0, np.array([-1.0, 2.0, 2.0]))


def no_columns() -> Known:
    builder = ProgramBuilder()
    builder.add_offset(4.0)
    return Known(builder.build(), Status.OPTIMAL, 4.0, np.empty(0))


def no_columns_infeasible() -> Known:
    builder = ProgramBuilder()
    builder.add_rows("r", [(np.empty((1, 0), dtype=int), 0.0)], lower=1.0)
    return Known(builder.build(), Status.INFEASIBLE)


def cone() -> Known:
    """min a + b over the disc of radius 3 around (1, 1): 2 - 3 sqrt 2 at 1 - 3 / sqrt 2."""
    builder = ProgramBuilder()
    x = builder.add_variables("x", 2, lower=-INF, cost=1.0)
    d = builder.add_variables("d", 2, lower=-INF)
    r = builder.add_variables("r", 1, lower=-INF, upper=3.0)
    builder.add_rows("shift", [(x, 1.0), (d, -1.0)], lower=1.0, upper=1.0)
    builder.add_cone(int(r[0]), d)
    side = -3 / np.sqrt(2)
    return Known(builder.build(), Status.OPTIMAL, 2 + 2 * side, np.array([1 + side, 1 + side, side, side, 3.0]))


def integer_cone() -> Known:
    """max 2a + b, integers with a^2 + b^2 <= 12 (radius sqrt 12): (3, 1) gives 7, (2, 2) gives 6."""
    builder = ProgramBuilder()
    x = builder.add_variables("x", 2, lower=-9, upper=9, integer=True, cost=[-2.0, -1.0])
    r = builder.add_variables("r", 1, lower=0.0, upper=np.sqrt(12.0))
    builder.add_cone(int(r[0]), x)
    return Known(builder.build(), Status.OPTIMAL, -7.0)


LINEAR: dict[str, Callable[[], Known]] = {
    made.__name__: made
    for made in (
        linear,
        free_variables,
        ranged_rows,
        knapsack,
        equality_mip,
        negative_integers,
        zero_optimum,
        infeasible_lp,
        infeasible_mip,
        unbounded_lp,
        unbounded_mip,
        infeasible_with_ray,
        crossed_bounds,
        no_rows,
        no_columns,
        no_columns_infeasible,
    )
}
CONIC: dict[str, Callable[[], Known]] = {made.__name__: made for made in (cone, integer_cone)}


def hard_knapsack(n: int = 90, m: int = 12, seed: int = 0) -> Program:
    """A knapsack in many dimensions that no solver finishes in seconds."""
    rng = np.random.default_rng(seed)
    weight = rng.integers(1, 1000, (m, n)).astype(float)
    value = weight.mean(axis=0) + rng.integers(0, 200, n)
    builder = ProgramBuilder()
    u = builder.add_variables("u", n, upper=1, integer=True, cost=-np.round(value))
    builder.add_rows("weight", [(np.tile(u, (m, 1)), weight)], upper=np.floor(weight.sum(axis=1) / 2))
    return builder.build()


def market_split(n: int = 40, m: int = 5, seed: int = 1) -> tuple[Program, np.ndarray]:
    """Market split with slacks (optimum 0, hopeless for branch and bound), and a solution of it."""
    rng = np.random.default_rng(seed)
    demand = rng.integers(0, 100, (m, n)).astype(float)
    hidden = rng.integers(0, 2, n).astype(float)
    builder = ProgramBuilder()
    u = builder.add_variables("u", n, upper=1, integer=True)
    over = builder.add_variables("over", m, cost=1.0)
    under = builder.add_variables("under", m, cost=1.0)
    builder.add_rows(
        "split",
        [(np.tile(u, (m, 1)), demand), (over, -1.0), (under, 1.0)],
        lower=demand @ hidden,
        upper=demand @ hidden,
    )
    return builder.build(), np.concatenate([hidden, np.zeros(2 * m)])


def big_lp(n: int = 900, seed: int = 5) -> Program:
    """A dense linear program that keeps simplex busy for a while (sized for Gurobi's small licence too)."""
    rng = np.random.default_rng(seed)
    matrix = rng.random((n, n))
    builder = ProgramBuilder()
    x = builder.add_variables("x", n, cost=-1.0 - rng.random(n))
    builder.add_rows("r", [(np.tile(x, (n, 1)), matrix)], upper=matrix.sum(axis=1))
    return builder.build()


def long_relaxation(m: int = 12_000, n: int = 6_000, each: int = 20, seed: int = 0) -> Program:
    """A program whose first relaxation takes every open solver longer than a test may last."""
    rng = np.random.default_rng(seed)
    builder = ProgramBuilder()
    x = builder.add_variables("x", n, upper=3.0, integer=np.arange(n) < n // 2, cost=-1.0 - rng.normal(size=n) ** 2)
    builder.add_rows("r", [(x[rng.integers(0, n, (m, each))], rng.normal(size=(m, each)))], upper=5.0)
    return builder.build()
