"""Solvers behind one protocol; the only folder that imports solver packages, and only when they are used."""

from treewright.solvers.course import Solver
from treewright.solvers.registry import (
    SOLVER_NAMES,
    SolverInfo,
    describe,
    get_solver,
    require_capabilities,
    solvers_with,
)
from treewright.solvers.vocabulary import Capability, Progress, ProgressCallback, Result, Status, StopFlag

__all__ = [
    "SOLVER_NAMES",
    "Capability",
    "Progress",
    "ProgressCallback",
    "Result",
    "Solver",
    "SolverInfo",
    "Status",
    "StopFlag",
    "describe",
    "get_solver",
    "require_capabilities",
    "solvers_with",
]
