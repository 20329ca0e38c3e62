"""SCIP through PySCIPOpt: cones, priorities, suggestions; one thread only, whatever `threads` says."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import numpy as np

from treewright.core.arrays import FloatArray
from treewright.exceptions import SolverError
from treewright.solvers.course import Solver
from treewright.solvers.program import Cone, Program
from treewright.solvers.registry import CAPABILITIES, import_package
from treewright.solvers.session import ABSOLUTE_GAP, Outcome, Session
from treewright.solvers.vocabulary import Status

__all__ = ["ScipSolver"]

_INFINITY = 1e20
_SEEDS = 2**31 - 1
_WALL_CLOCK = 2

_STATUSES: dict[str, Status | None] = {
    "optimal": Status.OPTIMAL,
    "gaplimit": Status.OPTIMAL,
    "infeasible": Status.INFEASIBLE,
    "unbounded": Status.UNBOUNDED,
    "inforunbd": None,
    "timelimit": Status.TIME_LIMIT,
    "userinterrupt": Status.INTERRUPTED,
}


class ScipSolver(Solver):
    """SCIP, as a :class:`treewright.solvers.course.Solver`; it has one thread, whatever `threads` says."""

    name = "scip"
    capabilities = CAPABILITIES["scip"]

    def run(self, session: Session) -> Outcome:
        """Solve ``session.program`` in the present thread."""
        scip = import_package(self.name)
        model = scip.Model()
        try:
            _set_parameters(model, session)
            variables = _pass_program(scip, model, session.program)
            if session.start is not None:
                model.addSol(_point(model, variables, session.start))
            _subscribe(scip, model, variables, session)
            session.on_stop = lambda: _interrupt(model)
            if session.stopping or session.remaining() <= 0:
                return Outcome(Status.INTERRUPTED if session.stopping else Status.TIME_LIMIT)
            # last of all, so that the time spent above is not given away again
            model.setParam("limits/time", min(session.remaining(), _INFINITY))
            model.optimizeNogil()
            return _outcome(model, variables, session)
        except (Warning, OSError, ValueError, KeyError, MemoryError) as error:
            # PySCIPOpt's PY_SCIP_CALL raises builtin exceptions (even Warning) for SCIP's return codes
            raise SolverError(f"SCIP failed: {error}") from error


def _set_parameters(model: Any, session: Session) -> None:
    model.hideOutput()
    model.setParams(
        {
            "limits/gap": session.gap,
            "limits/absgap": ABSOLUTE_GAP,
            "numerics/feastol": session.tolerance,
            "misc/catchctrlc": False,  # the caller's SIGINT handler sets the stop flag
            "randomization/randomseedshift": session.seed % _SEEDS,
            "timing/clocktype": _WALL_CLOCK,
        }
    )


def _pass_program(scip: Any, model: Any, program: Program) -> list[Any]:
    """Build the model and return its variables.

    PySCIPOpt has no bulk interface. For 70 000 rows with 1.6 million non-zeros (PySCIPOpt 6.3, one run each):
    adding coefficients to empty rows takes 1.4 s, constraints from Expr objects made directly 2.8 s, from
    quicksum 3.6 s (extrapolated from 5 000 rows), an MPS file without bounds and integrality 4.6 s, of which
    writing is 2.4 s. So the first, which is also exact.
    """
    expr, cons = scip.scip.Expr, scip.scip.ExprCons
    lower = program.lower.copy()
    lower[[cone.head for cone in program.cones]] = np.maximum(lower[[cone.head for cone in program.cones]], 0.0)
    variables = [
        model.addVar(f"x{j}", "I" if whole else "C", low, high, cost)
        for j, (whole, low, high, cost) in enumerate(
            zip(
                program.integer.tolist(),
                _limited(lower),
                _limited(program.upper),
                program.cost.tolist(),
                strict=True,
            )
        )
    ]
    model.addObjoffset(program.offset)
    rows = [
        model.addCons(cons(expr(), low, high), name=f"r{i}")
        for i, (low, high) in enumerate(zip(_limited(program.row_lower), _limited(program.row_upper), strict=True))
    ]
    entries = program.matrix.tocoo()
    add = model.addCoefLinear
    for i, j, value in zip(entries.row.tolist(), entries.col.tolist(), entries.data.tolist(), strict=True):
        add(rows[i], variables[j], value)
    for cone in program.cones:
        _add_cone(scip, model, variables, cone)
    for j in np.flatnonzero(program.priority).tolist():
        model.chgVarBranchPriority(variables[j], int(program.priority[j]))
    return variables


def _limited(values: FloatArray) -> list[float]:
    """Values with SCIP's own infinity."""
    limited: list[float] = np.clip(values, -_INFINITY, _INFINITY).tolist()
    return limited


def _add_cone(scip: Any, model: Any, variables: list[Any], cone: Cone) -> None:
    # The root, not the squares: SCIP's tolerance of 1e-6 then is one of the norm, and not 1e-3 at the apex.
    squares = scip.quicksum(variables[j] * variables[j] for j in cone.members)
    if cone.members:
        model.addCons(scip.sqrt(squares) <= variables[cone.head])


def _point(model: Any, variables: list[Any], x: FloatArray, heuristic: Any = None) -> Any:
    """`x` as SCIP solution of the original problem; zeros are the default and need no call."""
    solution = model.createOrigSol(heuristic) if heuristic is not None else model.createSol()
    for j in np.flatnonzero(x).tolist():
        model.setSolVal(solution, variables[j], float(x[j]))
    return solution


def _interrupt(model: Any) -> None:
    # outside of solving SCIP refuses the call, and there is nothing to interrupt
    with contextlib.suppress(Exception):
        model.interruptSolve()


def _subscribe(scip: Any, model: Any, variables: list[Any], session: Session) -> None:
    """Connect SCIP's events, and a heuristic for suggestions, with the session."""
    kinds = scip.SCIP_EVENTTYPE

    class Listener(scip.Eventhdlr):
        def eventinit(self) -> None:
            for kind in (kinds.BESTSOLFOUND, kinds.NODESOLVED, kinds.LPSOLVED, kinds.PRESOLVEROUND):
                self.model.catchEvent(kind, self)

        def eventexec(self, event: Any) -> None:
            improved = event.getType() == kinds.BESTSOLFOUND
            session.guard(_on_event)(self.model, variables, session, improved)
            if session.stopping:
                _interrupt(self.model)

    class Suggester(scip.Heur):
        def heurexec(self, heurtiming: Any, nodeinfeasible: bool) -> dict[str, Any]:
            found: list[bool] = []
            session.guard(lambda: found.append(_try_suggestion(self, variables, session)))()
            if session.stopping:
                _interrupt(self.model)
            return {"result": scip.SCIP_RESULT.FOUNDSOL if any(found) else scip.SCIP_RESULT.DIDNOTFIND}

    model.includeEventhdlr(Listener(), "treewright", "progress and stop flag")
    if session.suggest is not None:
        timing = scip.SCIP_HEURTIMING.BEFORENODE
        model.includeHeur(
            Suggester(),
            "treewright",
            "points of the caller",
            "t",
            priority=1_000_000,
            freq=1,
            timingmask=timing,
        )


def _on_event(model: Any, variables: list[Any], session: Session, improved: bool) -> None:
    objective, x = model.getPrimalbound(), None
    if improved:
        # the primal bound is still the old one at this event; the solution itself is new
        solution = model.getBestSol()
        objective, x = model.getSolObjVal(solution), _values(model, variables, solution)
    session.report(objective, model.getDualbound(), int(model.getNTotalNodes()), x)


def _values(model: Any, variables: list[Any], solution: Any) -> FloatArray | None:
    """Values of a solution, None where it lies on an unbounded ray."""
    x = np.array([model.getSolVal(solution, variable) for variable in variables])
    return None if np.any(np.abs(x) >= _INFINITY) else x


def _try_suggestion(heuristic: Any, variables: list[Any], session: Session) -> bool:
    x = session.suggestion()
    if x is None:
        return False
    model = heuristic.model
    return bool(model.trySol(_point(model, variables, x, heuristic), printreason=False))


def _outcome(model: Any, variables: list[Any], session: Session) -> Outcome:
    """Translate how SCIP ended."""
    ended = model.getStatus()
    x = None
    if model.getNSols() > 0:
        x = _values(model, variables, model.getBestSol())
    status = _STATUSES.get(ended, Status.UNPROVEN)
    if status is Status.UNPROVEN and x is None and session.incumbent is None:
        raise SolverError(f"SCIP ended with {ended!r} and no solution")
    bound = model.getDualbound() if status is not Status.INFEASIBLE else -math.inf
    return Outcome(status, x, bound, int(model.getNTotalNodes()), f"SCIP {model.version()}")
