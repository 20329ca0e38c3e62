"""The vocabulary of all solvers: what they can do, what they are told and tell, and what a solve ended with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Flag, StrEnum, auto

from treewright.core.arrays import FloatArray
from treewright.core.progress import relative_gap
from treewright.solvers.program import Program

__all__ = ["Capability", "Progress", "ProgressCallback", "Result", "Status", "StopFlag", "capabilities_needed"]


class Capability(Flag):
    """What a solver can do."""

    LP = auto()
    MIP = auto()
    CONE = auto()
    START = auto()
    PRIORITY = auto()
    PROGRESS = auto()
    INTERRUPT = auto()
    INJECT = auto()

    def names(self) -> list[str]:
        """Names of the single capabilities, lower case, in order of declaration."""
        return [member.name.lower() for member in Capability if member in self and member.name]


StopFlag = Callable[[], bool]
"""Asked often while a solver runs; True ends the solve with the best solution so far."""


def capabilities_needed(program: Program) -> Capability:
    """Capabilities of a solver without which `program` cannot be solved."""
    needs = Capability.LP
    if program.n_integers:
        needs |= Capability.MIP
    if program.cones:
        needs |= Capability.CONE
    return needs


class Status(StrEnum):
    """How a solve ended.

    ``UNPROVEN`` means a feasible point about which the solver could prove nothing.
    """

    OPTIMAL = "optimal"
    TIME_LIMIT = "time_limit"
    INTERRUPTED = "interrupted"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    UNPROVEN = "unproven"


@dataclass(frozen=True)
class Progress:
    """One progress event of a solve."""

    seconds: float
    """Time since the solve began."""
    objective: float
    """Best objective so far, ``inf`` before the first solution."""
    bound: float
    """Best proven lower bound so far, ``-inf`` before the first."""
    nodes: int = 0
    """Nodes of the branch-and-bound tree so far."""


ProgressCallback = Callable[[Progress], None]


@dataclass(frozen=True)
class Result:
    """What a solver returns: a dataclass, never an exception for a limit that was reached."""

    status: Status
    """How the solve ended."""
    x: FloatArray | None
    """Best solution found, None if there is none. Integer variables are rounded. For ``Status.UNBOUNDED`` some
    feasible point."""
    objective: float
    """Objective of `x` (offset included), ``inf`` without one."""
    bound: float
    """Proven lower bound of the optimum, ``-inf`` without one, ``inf`` for an infeasible program."""
    seconds: float
    """Duration, building the solver's own model included."""
    nodes: int = 0
    """Branch-and-bound nodes."""
    trace: tuple[Progress, ...] = ()
    """Every improvement of objective or bound that was reported."""
    solver: str = ""
    """Name and version of the solver."""

    @property
    def gap(self) -> float:
        """Relative gap between objective and bound."""
        return relative_gap(self.objective, self.bound)
