"""Solvers behind one protocol; the only folder that imports solver packages, and only when they are used."""

from treewright.solvers.base import Capability, Progress, ProgressCallback, Result, Status, StopFlag
from treewright.solvers.conduct import Solver
from treewright.solvers.registry import SOLVER_NAMES, SolverInfo, describe, get_solver, require, solvers_with

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
    "require",
    "solvers_with",
]
