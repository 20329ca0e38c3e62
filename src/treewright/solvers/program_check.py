"""Violation and objective of a point, measured without any solver."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from treewright.core.arrays import FloatArray
from treewright.solvers.program import Program

__all__ = ["Check", "check"]


@dataclass(frozen=True)
class Check:
    """What :func:`check` found."""

    objective: float
    """Objective of the point."""
    violations: dict[str, float]
    """Largest absolute violation of each block of rows (``rows:name``), of the bounds, of integrality and of the
    cones. Blocks without violation are listed with 0; rows that no block names are ``rows:``."""

    @property
    def worst(self) -> float:
        """The largest violation of all."""
        return max(self.violations.values(), default=0.0)

    @property
    def worst_name(self) -> str:
        """Name of the block with the largest violation."""
        return max(self.violations, key=lambda name: self.violations[name], default="")

    def feasible(self, tolerance: float = 1e-6) -> bool:
        """Whether no violation exceeds `tolerance`."""
        return self.worst <= tolerance


def check(program: Program, x: FloatArray) -> Check:
    """Measure how far a point `x` is from feasible for a program, and what it costs, without any solver.

    Parameters
    ----------
    program : Program
        The program.
    x : ndarray of shape (n_columns,)
        The point.

    Returns
    -------
    Check
        Objective and the largest violation by block.

    Examples
    --------
    >>> import numpy as np
    >>> from treewright.solvers.program_builder import ProgramBuilder
    >>> builder = ProgramBuilder()
    >>> u = builder.add_variables("u", 2, upper=1, integer=True, cost=[-3.0, -4.0])
    >>> builder.add_rows("weight", [(u[None, :], [[2.0, 3.0]])], upper=4.0)
    >>> found = check(builder.build(), np.array([1.0, 1.0]))
    >>> found.objective, found.violations["rows:weight"]
    (-7.0, 1.0)
    """
    x = np.asarray(x, dtype=np.float64)
    if x.shape != (program.n_columns,):
        raise ValueError(f"the point has shape {x.shape}, the program has {program.n_columns} columns")
    if not np.all(np.isfinite(x)):
        raise ValueError("the point has values that are not finite")
    activity = program.matrix @ x
    excess = np.maximum(program.row_lower - activity, activity - program.row_upper)
    violations = {
        f"rows:{name}": float(max(0.0, excess[start:stop].max(initial=0.0)))
        for name, (start, stop) in program.rows.items()
    }
    unnamed = np.ones(program.n_rows, dtype=bool)
    for start, stop in program.rows.values():
        unnamed[start:stop] = False
    if unnamed.any():
        violations["rows:"] = float(max(0.0, excess[unnamed].max()))
    outside = np.maximum(program.lower - x, x - program.upper)
    violations["bounds"] = float(max(0.0, outside.max(initial=0.0)))
    integers = x[program.integer]
    violations["integrality"] = float(np.abs(integers - np.round(integers)).max(initial=0.0))
    gaps = [float(np.linalg.norm(x[list(cone.members)]) - x[cone.head]) for cone in program.cones]
    violations["cones"] = max(gaps + [0.0])
    return Check(objective=float(program.cost @ x) + program.offset, violations=violations)
