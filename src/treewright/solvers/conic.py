r"""Convex programs with cones, by clarabel: the rest of a program once its integers are fixed.

clarabel minimizes :math:`q^\top x` under :math:`A x + s = b, s \in K`. Fixed columns go to the right-hand side; rows
that the bounds of the others satisfy anyway are left out: with integers fixed, most big-M rows are such.
"""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from treewright.core.arrays import BoolArray, FloatArray
from treewright.exceptions import PackageNotInstalledError
from treewright.solvers.program import Program
from treewright.solvers.program_check import check
from treewright.solvers.session import FEASIBILITY, has_crossed_bounds, tidied_point
from treewright.solvers.vocabulary import Status

__all__ = ["Convex", "fixed_conic", "relaxed_program", "solve_convex"]

_LEAST_SECONDS = 0.01
"""A time limit of nothing is none for clarabel."""


@dataclass(frozen=True)
class Convex:
    """How the solve of a convex program ended."""

    status: Status
    """UNPROVEN where clarabel met its tolerances nearly but not quite, or not at all (without `x`)."""
    x: FloatArray | None
    """Point that violates nothing by more than the solvers' tolerance, None if there is none."""
    objective: float
    """Objective of `x`, ``inf`` without one."""


def relaxed_program(program: Program) -> Program:
    """The program without integrality."""
    none = np.zeros(program.n_columns, dtype=bool)
    return replace(program, integer=none, priority=none.astype(np.int64))


def fixed_conic(program: Program, x: FloatArray, time_limit: float = math.inf) -> FloatArray | None:
    """Best point of a program with the integers of `x`, None if there is none or clarabel does not find it.

    Parameters
    ----------
    program : Program
        Any program; what is left once the integers are fixed is convex.
    x : ndarray of shape (n_columns,)
        A point whose integers are taken, rounded; the rest of it does not matter.
    time_limit : float
        Seconds.

    Examples
    --------
    The largest a + b in a disc of radius 5 with a = 3, so that b = 4:

    >>> from treewright.solvers.program_builder import ProgramBuilder
    >>> builder = ProgramBuilder()
    >>> a = builder.add_variables("a", 1, upper=9, integer=True, cost=-1.0)
    >>> b = builder.add_variables("b", 1, upper=9, cost=-1.0)
    >>> r = builder.add_variables("r", 1, upper=5)
    >>> builder.add_cone(int(r[0]), np.concatenate([a, b]))
    >>> fixed_conic(builder.build(), np.array([3.0, 0.0, 0.0])).round(6).tolist()
    [3.0, 4.0, 5.0]
    """
    whole = np.round(np.asarray(x, dtype=np.float64))
    fixed = replace(
        relaxed_program(program),
        lower=np.where(program.integer, whole, program.lower),
        upper=np.where(program.integer, whole, program.upper),
    )
    inside = np.all((whole >= program.lower - 1e-9) & (whole <= program.upper + 1e-9) | ~program.integer)
    return solve_convex(fixed, time_limit).x if inside else None


def solve_convex(program: Program, time_limit: float = math.inf) -> Convex:
    """Minimize a program without integers."""
    if has_crossed_bounds(program):
        return Convex(Status.INFEASIBLE, None, math.inf)
    free = program.upper > program.lower
    base = np.where(free, 0.0, program.lower)
    rows, right, kinds = _rows(program, free, base)
    clarabel = _clarabel()
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads = False, 1
    if math.isfinite(time_limit):
        settings.time_limit = max(time_limit, _LEAST_SECONDS)
    cones = [getattr(clarabel, name)(size) for name, size in kinds if size]
    nothing = sparse.csc_matrix((rows.shape[1], rows.shape[1]))
    solution = clarabel.DefaultSolver(nothing, program.cost[free], rows, right, cones, settings).solve()
    kind = str(solution.status)
    if kind in ("PrimalInfeasible", "AlmostPrimalInfeasible"):
        return Convex(Status.INFEASIBLE, None, math.inf)
    if kind in ("DualInfeasible", "AlmostDualInfeasible"):
        return Convex(Status.UNBOUNDED, None, math.inf)
    x = base.copy()
    x[free] = np.asarray(solution.x)
    x = tidied_point(program, x)
    if kind not in ("Solved", "AlmostSolved") or not np.all(np.isfinite(x)):
        late = kind == "MaxTime"
        return Convex(Status.TIME_LIMIT if late else Status.UNPROVEN, None, math.inf)
    found = check(program, x)
    if not found.feasible(FEASIBILITY):
        return Convex(Status.UNPROVEN, None, math.inf)
    return Convex(Status.OPTIMAL if kind == "Solved" else Status.UNPROVEN, x, found.objective)


def _rows(
    program: Program, free: BoolArray, base: FloatArray
) -> tuple[sparse.csc_matrix, FloatArray, list[tuple[str, int]]]:
    """Rows ``A x + s = b`` over the free columns, and the cones of s: equations, inequalities, then the cones."""
    matrix = program.matrix[:, free]
    shift = program.matrix @ base
    low, high = program.row_lower - shift, program.row_upper - shift
    least, most = _activity(matrix, program.lower[free], program.upper[free])
    equal = (high - low <= 0) & (np.diff(matrix.indptr) > 0)
    above = np.isfinite(high) & (most > high) & ~equal
    below = np.isfinite(low) & (least < low) & ~equal
    columns = np.cumsum(free) - 1
    lower, upper = program.lower[free], program.upper[free]
    identity = sparse.eye_array(int(free.sum()), format="csr")
    capped, floored = np.isfinite(upper), np.isfinite(lower)
    blocks = [matrix[equal], matrix[above], -matrix[below], identity[capped], -identity[floored]]
    right = [low[equal], high[above], -low[below], upper[capped], -lower[floored]]
    kinds = [("ZeroConeT", int(equal.sum())), ("NonnegativeConeT", sum(len(part) for part in right[1:]))]
    for cone in program.cones:
        order = np.array([cone.head, *cone.members])
        own = free[order]
        at = np.arange(len(order))[own]
        entries = (-np.ones(len(at)), (at, columns[order[own]]))
        blocks.append(sparse.csr_array(entries, shape=(len(order), identity.shape[1])))
        right.append(np.where(own, 0.0, base[order]))
        kinds.append(("SecondOrderConeT", len(order)))
    return sparse.csc_matrix(sparse.vstack(blocks)), np.concatenate(right), kinds


def _activity(matrix: sparse.csr_array, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest value of each row within the bounds."""
    value, column = matrix.data, matrix.indices
    low = np.where(value > 0, value * lower[column], value * upper[column])
    high = np.where(value > 0, value * upper[column], value * lower[column])
    row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    sums = [np.bincount(row, part, matrix.shape[0]).astype(np.float64) for part in (low, high)]
    return sums[0], sums[1]


def _clarabel() -> Any:
    try:
        return importlib.import_module("clarabel")
    except ImportError as error:
        raise PackageNotInstalledError(
            f"cones need the package 'clarabel', which cannot be imported ({error}); install it with: "
            "pip install clarabel"
        ) from error
