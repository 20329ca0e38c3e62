"""Gurobi through gurobipy; needs a licence, of which the one inside gurobipy is limited in size."""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from treewright.exceptions import MissingLicenseError, SolverError
from treewright.solvers.course import Solver
from treewright.solvers.program import Program
from treewright.solvers.registry import CAPABILITIES, import_package
from treewright.solvers.session import ABSOLUTE_GAP, Outcome, Session
from treewright.solvers.vocabulary import Status

__all__ = ["GurobiSolver", "licence_status"]

LIMIT = 2000
"""Variables, and constraints, that the licence inside gurobipy allows."""

LIMIT_QUADRATIC = 200
"""Variables it allows where there are quadratic constraints."""

_SEEDS = 2_000_000_000
_TOO_LARGE = 10010  # GRB.Error.SIZE_LIMIT_EXCEEDED
_NO_LICENCE = 10009  # GRB.Error.NO_LICENSE
_REMEDY = 'get a licence at https://www.gurobi.com, or use solver="highs"'

_POOL: list[Any] = []
_POOL_LOCK = threading.Lock()


class GurobiSolver(Solver):
    """Gurobi, as a :class:`treewright.solvers.course.Solver`."""

    name = "gurobi"
    capabilities = CAPABILITIES["gurobi"]

    def run(self, session: Session) -> Outcome:
        """Solve ``session.program`` in the present thread."""
        gurobi = import_package(self.name)
        program = session.program
        try:
            with _environment(gurobi) as environment:
                if _exceeds(program) and _is_size_limited(gurobi, environment):
                    raise _too_large(program)
                with gurobi.Model(env=environment) as model:
                    return _solve(gurobi, model, session)
        except gurobi.GurobiError as error:
            if error.errno == _TOO_LARGE:
                raise _too_large(program) from error
            if error.errno == _NO_LICENCE:
                raise MissingLicenseError(f"Gurobi's licence does not serve: {error}; {_REMEDY}") from error
            raise SolverError(f"Gurobi failed with error {error.errno}: {error}") from error


def licence_status() -> tuple[str, str, str]:
    """Licence of Gurobi, problem and remedy, as texts; the last two are empty where all is well."""
    gurobi = import_package("gurobi")
    try:
        with _environment(gurobi) as environment:
            limited = _is_size_limited(gurobi, environment)
    except MissingLicenseError as error:
        return f"missing: {error.__cause__}", "no valid licence", _REMEDY
    if not limited:
        return "full", "", ""
    text = f"size-limited ({LIMIT} variables, {LIMIT} rows)"
    return text, "programs beyond the size limit are refused", _REMEDY


@contextmanager
def _environment(gurobi: Any) -> Iterator[Any]:
    """Lend an environment: starting one may ask a licence server, and one must not serve two threads."""
    with _POOL_LOCK:
        environment = _POOL.pop() if _POOL else None
    if environment is None:
        try:
            environment = gurobi.Env(empty=True)
            environment.setParam("OutputFlag", 0)
            environment.start()
        except gurobi.GurobiError as error:
            raise MissingLicenseError(f"Gurobi does not start: {error}; {_REMEDY}") from error
    try:
        yield environment
    finally:
        with _POOL_LOCK:
            _POOL.append(environment)


def _is_size_limited(gurobi: Any, environment: Any) -> bool:
    """Ask by a model without rows that is one variable too large: nothing in the interface tells it."""
    with gurobi.Model(env=environment) as probe:
        probe.addMVar(LIMIT + 1)
        try:
            probe.optimize()
        except gurobi.GurobiError as error:
            if error.errno == _TOO_LARGE:
                return True
            raise
    return False


def _n_constraints(program: Program) -> int:
    """Constraints of the native model: a row with two different bounds is two, a row without any is none."""
    low, high = np.isfinite(program.row_lower), np.isfinite(program.row_upper)
    twice = low & high & (program.row_lower != program.row_upper)
    return int((low | high).sum() + twice.sum()) + len(program.cones)


def _exceeds(program: Program) -> bool:
    """Whether the program is too large for the licence inside gurobipy."""
    variables = LIMIT_QUADRATIC if program.cones else LIMIT
    return program.n_columns > variables or _n_constraints(program) > LIMIT


def _too_large(program: Program) -> MissingLicenseError:
    variables = LIMIT_QUADRATIC if program.cones else LIMIT
    return MissingLicenseError(
        f"the program has {program.n_columns} variables and {_n_constraints(program)} constraints; Gurobi's "
        f"size-limited licence allows {variables} and {LIMIT}. Get a full licence at https://www.gurobi.com, "
        'or use solver="highs"'
    )


def _solve(gurobi: Any, model: Any, session: Session) -> Outcome:
    """Build, run and read one model."""
    parameters = {
        "MIPGap": session.gap,
        "MIPGapAbs": ABSOLUTE_GAP,
        "IntFeasTol": session.tolerance,
        "Threads": session.threads,
        "Seed": session.seed % _SEEDS,
    }
    for name, value in parameters.items():
        model.setParam(name, value)
    x = _pass_program(model, session)
    session.on_stop, session.on_watch = model.terminate, _restore_interrupts
    if not math.isinf(session.remaining()):
        # last of all, so that the time spent above is not given away again
        model.setParam("TimeLimit", session.remaining())
    if session.stopping:
        return Outcome(Status.INTERRUPTED)
    model.optimize(_callback(gurobi, model, x, session))
    # the model is closed soon and must not be asked to end after that
    session.on_stop = session.on_watch = None
    unasked = model.Status == gurobi.GRB.Status.INTERRUPTED and not session.stopping
    if unasked and callable(signal.getsignal(signal.SIGINT)):
        # Gurobi took a Ctrl-C before the handler was restored; hand it on
        signal.raise_signal(signal.SIGINT)
    return _outcome(gurobi, model, x, session)


def _restore_interrupts() -> None:
    """Give SIGINT back to Python: gurobipy takes it for the time of a solve and has no switch for that."""
    if threading.current_thread() is threading.main_thread():
        handler = signal.getsignal(signal.SIGINT)
        if handler is not None:
            signal.signal(signal.SIGINT, handler)


def _pass_program(model: Any, session: Session) -> Any:
    """Hand the arrays over through the matrix interface and return the variables."""
    program = session.program
    lower = program.lower.copy()
    heads = [cone.head for cone in program.cones]
    lower[heads] = np.maximum(lower[heads], 0.0)  # implied, and what makes the quadratic row a cone for Gurobi
    kinds = np.where(program.integer, "I", "C")
    x = model.addMVar(program.n_columns, lb=lower, ub=program.upper, obj=program.cost, vtype=kinds)
    model.ObjCon = program.offset
    low, high = np.isfinite(program.row_lower), np.isfinite(program.row_upper)
    equal = low & high & (program.row_lower == program.row_upper)
    for mask, sense, side in (
        (equal, "=", program.row_upper),
        (high & ~equal, "<", program.row_upper),
        (low & ~equal, ">", program.row_lower),
    ):
        rows = np.flatnonzero(mask)
        if len(rows):
            model.addMConstr(program.matrix[rows], x, sense, side[rows])
    for cone in program.cones:
        members = x[list(cone.members)]
        model.addConstr(members @ members <= x[cone.head] * x[cone.head])
    if program.n_integers:
        x[program.integer].BranchPriority = program.priority[program.integer]
        if session.start is not None:
            x.Start = session.start
    return x


def _callback(gurobi: Any, model: Any, x: Any, session: Session) -> Callable[..., None]:
    """Gurobi's callback: report, suggest, end."""
    codes = gurobi.GRB.Callback
    unwrapped = x.tolist()

    def act(where: int) -> None:
        get = model.cbGet
        if where == codes.MIP:
            session.report(get(codes.MIP_OBJBST), get(codes.MIP_OBJBND), int(get(codes.MIP_NODCNT)))
        elif where == codes.MIPSOL:
            best = min(get(codes.MIPSOL_OBJBST), get(codes.MIPSOL_OBJ))
            session.report(best, get(codes.MIPSOL_OBJBND), int(get(codes.MIPSOL_NODCNT)))
        elif where == codes.MIPNODE:
            point = session.suggestion()
            if point is not None:
                model.cbSetSolution(unwrapped, point.tolist())
        elif where in (codes.SIMPLEX, codes.BARRIER):
            session.report()

    guarded = session.guard(act)

    def callback(_: Any, where: int) -> None:
        guarded(where)
        if session.stopping:
            model.terminate()

    return callback


def _outcome(gurobi: Any, model: Any, x: Any, session: Session) -> Outcome:
    """Translate how Gurobi ended."""
    codes = gurobi.GRB.Status
    known: dict[int, Status | None] = {
        codes.OPTIMAL: Status.OPTIMAL,
        codes.INFEASIBLE: Status.INFEASIBLE,
        codes.UNBOUNDED: Status.UNBOUNDED,
        codes.INF_OR_UNBD: None,
        codes.TIME_LIMIT: Status.TIME_LIMIT,
        codes.INTERRUPTED: Status.INTERRUPTED,
    }
    status = known.get(model.Status, Status.UNPROVEN)
    point = np.asarray(x.X, dtype=np.float64) if model.SolCount > 0 else None
    if status is Status.UNPROVEN and point is None and session.incumbent is None:
        raise SolverError(f"Gurobi ended with status {model.Status} and no solution")
    if model.IsMIP:
        bound, nodes = float(model.ObjBound), int(model.NodeCount)
    else:
        bound, nodes = float(model.ObjVal) if status is Status.OPTIMAL else -math.inf, 0
    version = ".".join(map(str, gurobi.gurobi.version()))
    return Outcome(status, point, bound, nodes, f"Gurobi {version}")
