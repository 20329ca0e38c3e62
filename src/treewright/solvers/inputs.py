"""Checks and tidying of what goes into a solver and what comes out, before and after any native code."""

from __future__ import annotations

import importlib
import math
from dataclasses import replace
from typing import Any

import numpy as np

from treewright.arrays import FloatArray
from treewright.exceptions import InvalidInputError, SolverNotInstalledError
from treewright.program import Program
from treewright.solvers.registry import INSTALL_HINTS

__all__ = [
    "FEASIBILITY",
    "cleaned",
    "contradictory",
    "finite",
    "import_package",
    "objective_of",
    "refuse_bad_numbers",
    "refuse_bad_options",
    "tidied",
    "trivial_bound",
]

FEASIBILITY = 1e-6
"""Largest violation at which a start or a suggestion counts as feasible; the solvers' own default."""

INFINITE = 1e20
"""From here on a solver's number means infinity (SCIP 1e20, Gurobi 1e100)."""


def tidied(program: Program, x: FloatArray) -> FloatArray:
    """`x` with integers rounded and moved into its bounds (by at most the solver's tolerance)."""
    x = np.where(program.integer, np.round(x), x)
    # + 0.0 turns -0.0 into 0.0, which would otherwise show in reports
    return np.clip(x, program.lower, program.upper) + 0.0


def objective_of(program: Program, x: FloatArray) -> float:
    """Objective of `x`, offset included."""
    return float(program.cost @ x) + program.offset


def finite(value: float, unknown: float = -math.inf) -> float:
    """Replace a solver's own infinity by the real one, and NaN by `unknown`."""
    if math.isnan(value):
        return unknown
    return math.copysign(math.inf, value) if abs(value) >= INFINITE else float(value)


def trivial_bound(program: Program) -> float:
    r"""Return the bound :math:`c_0 + \sum_j \min(c_j l_j, c_j u_j)`, valid whatever the rows say."""
    cost = program.cost
    used = cost != 0
    ends = np.where(cost > 0, program.lower, program.upper)[used]
    return float(cost[used] @ ends) + program.offset if used.any() else program.offset


def contradictory(program: Program) -> bool:
    """Whether some lower bound exceeds its upper bound by more than rounding."""
    pairs = ((program.lower, program.upper), (program.row_lower, program.row_upper))
    return any(bool(np.any(low > high + FEASIBILITY * (1 + np.abs(high)))) for low, high in pairs)


def cleaned(program: Program) -> Program:
    """Return the program in the form solvers insist on: no entry twice, no bounds crossed by rounding."""
    matrix = program.matrix
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    elif np.all(program.lower <= program.upper) and np.all(program.row_lower <= program.row_upper):
        return program
    if contradictory(program):
        return program
    return replace(
        program,
        matrix=matrix,
        upper=np.maximum(program.lower, program.upper),
        row_upper=np.maximum(program.row_lower, program.row_upper),
    )


def refuse_bad_numbers(program: Program) -> None:
    """Refuse NaN anywhere and infinity where no solver can take it."""
    finite_parts = {"matrix": program.matrix.data, "cost": program.cost, "offset": np.asarray(program.offset)}
    bounds = {name: getattr(program, name) for name in ("lower", "upper", "row_lower", "row_upper")}
    for name, values in finite_parts.items():
        if not np.all(np.isfinite(values)):
            raise InvalidInputError(f"the program's {name} has {_count(~np.isfinite(values))} that are not finite")
    for name, values in bounds.items():
        if np.any(np.isnan(values)):
            raise InvalidInputError(f"the program's {name} bounds have {_count(np.isnan(values))} that are NaN")
        wrong = values == (np.inf if name.endswith("lower") else -np.inf)
        if np.any(wrong):
            raise InvalidInputError(
                f"the program's {name} bounds have {_count(wrong)} at the wrong infinity, which no point satisfies"
            )


def _count(mask: np.ndarray) -> str:
    """How many values are meant, and where the first is."""
    return f"{int(mask.sum())} value(s) (first at {int(np.argmax(mask))})"


def refuse_bad_options(time_limit: float | None, gap: float, threads: int) -> None:
    """Refuse options that mean nothing."""
    if time_limit is not None and not time_limit >= 0:
        raise InvalidInputError(f"time_limit={time_limit!r}; it must be at least 0 seconds, or None for no limit")
    if not gap >= 0:
        raise InvalidInputError(f"gap={gap!r}; it must be at least 0")
    if threads < 1:
        raise InvalidInputError(f"threads={threads!r}; it must be at least 1")


def import_package(name: str) -> Any:
    """Import the package of solver `name`, or say how to install it."""
    package, hint = INSTALL_HINTS[name]
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise SolverNotInstalledError(
            f"solver {name!r} needs the package {package!r}, which cannot be imported ({error}); "
            f"install it with: {hint}"
        ) from error
