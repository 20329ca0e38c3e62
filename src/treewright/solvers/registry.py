"""Which solvers there are, which are installed and licensed, and which to take.

What a solver can do is known here without importing it, so that error texts can name alternatives.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from treewright.exceptions import InvalidInputError, SolverNotInstalledError, TreewrightError, UnsupportedProgramError
from treewright.solvers.vocabulary import Capability

if TYPE_CHECKING:
    from treewright.solvers.course import Solver

__all__ = [
    "CAPABILITIES",
    "INSTALL_HINTS",
    "SOLVER_NAMES",
    "SolverInfo",
    "describe",
    "get_solver",
    "import_package",
    "require_capabilities",
    "solvers_with",
]

_ALL = Capability.LP | Capability.MIP | Capability.CONE | Capability.START | Capability.PRIORITY
_ALL |= Capability.PROGRESS | Capability.INTERRUPT | Capability.INJECT

CAPABILITIES: dict[str, Capability] = {
    "highs": _ALL & ~Capability.PRIORITY,
    "scip": _ALL,
    "gurobi": _ALL,
}
"""What each solver can do, in the order in which they are suggested."""

SOLVER_NAMES: tuple[str, ...] = tuple(CAPABILITIES)
"""Names that :func:`get_solver` knows."""

INSTALL_HINTS: dict[str, tuple[str, str]] = {
    "highs": ("highspy", "pip install highspy"),
    "scip": ("pyscipopt", 'pip install "treewright[scip]"'),
    "gurobi": ("gurobipy", 'pip install "treewright[gurobi]"'),
}
"""Package of each solver, and the command that installs it."""

_CLASSES = {
    "highs": ("treewright.solvers.highs", "HighsSolver"),
    "scip": ("treewright.solvers.scip", "ScipSolver"),
    "gurobi": ("treewright.solvers.gurobi", "GurobiSolver"),
}


@dataclass(frozen=True)
class SolverInfo:
    """What is known about a solver on this machine."""

    name: str
    """Name for the ``solver`` parameter."""
    installed: bool
    """Whether its Python package is there."""
    version: str
    """Version of the package, empty if missing."""
    licence: str
    """"open source", "full", "size-limited (...)", "missing: ..." or "unknown" where the package is missing."""
    capabilities: list[str]
    """What it can do."""
    problem: str = ""
    """What keeps it from being used, empty if nothing does."""
    remedy: str = ""
    """What to do about the problem."""


def solvers_with(capability: Capability) -> list[str]:
    """Names of the solvers that have all of `capability`, installed or not.

    Examples
    --------
    >>> solvers_with(Capability.CONE | Capability.PRIORITY)
    ['scip', 'gurobi']
    """
    return [name for name, has in CAPABILITIES.items() if capability in has]


def require_capabilities(name: str, capabilities: Capability, needs: Capability) -> None:
    """Refuse what a solver cannot do, naming those that can.

    Parameters
    ----------
    name : str
        The solver.
    capabilities : Capability
        What it can do.
    needs : Capability
        What a program, or a model before its program is written, needs.
    """
    missing = needs & ~capabilities
    if missing:
        others = ", ".join(solvers_with(needs)) or "none that treewright knows"
        raise UnsupportedProgramError(
            f"solver {name!r} lacks {', '.join(missing.names())}, which this program needs; solvers that can: {others}"
        )


def is_installed(name: str) -> bool:
    """Whether the package of solver `name` can be found, without importing it."""
    return importlib.util.find_spec(INSTALL_HINTS[name][0]) is not None


def get_solver(name: str) -> Solver:
    """Return the solver called `name`.

    Raises
    ------
    InvalidInputError
        No solver has that name.
    SolverNotInstalledError
        Its Python package is missing.
    """
    if name not in SOLVER_NAMES:
        known = ", ".join(repr(known) for known in SOLVER_NAMES)
        raise InvalidInputError(f"solver={name!r} is unknown; choose one of {known}")
    if not is_installed(name):
        package, hint = INSTALL_HINTS[name]
        raise SolverNotInstalledError(
            f"solver {name!r} needs the package {package!r}, which is not installed; install it with: {hint}"
        )
    module, class_name = _CLASSES[name]
    return cast("Solver", getattr(importlib.import_module(module), class_name)())


def describe() -> list[SolverInfo]:
    """Describe every solver treewright knows, as found on this machine."""
    return [_describe(name) for name in SOLVER_NAMES]


def _describe(name: str) -> SolverInfo:
    capabilities = CAPABILITIES[name].names()
    package, hint = INSTALL_HINTS[name]
    if not is_installed(name):
        return SolverInfo(name, False, "", "unknown", capabilities, f"package {package!r} is not installed", hint)
    version = importlib.metadata.version(package)
    if name != "gurobi":
        return SolverInfo(name, True, version, "open source", capabilities)
    # the only solver that asks for a licence; importing it is the only way to find out
    from treewright.solvers.gurobi import licence_status

    try:
        licence, problem, remedy = licence_status()
    except TreewrightError as error:
        licence, problem, remedy = "unknown", str(error), hint
    return SolverInfo(name, True, version, licence, capabilities, problem, remedy)


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
