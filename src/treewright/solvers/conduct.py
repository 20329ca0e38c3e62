"""The course of every solve: refuse, run, settle what the solver left open, make its point exact."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from treewright.arrays import FloatArray
from treewright.exceptions import SolverError
from treewright.program import Program, check
from treewright.solvers.base import AbandonedError, StopFlag, needs_of, run_in_thread
from treewright.solvers.inputs import (
    FEASIBILITY,
    cleaned,
    contradictory,
    refuse_bad_numbers,
    refuse_bad_options,
    tidied,
)
from treewright.solvers.registry import require
from treewright.solvers.result import ProgressCallback, Result, Status, relative_gap
from treewright.solvers.session import Engine, Outcome, Session

__all__ = ["conduct"]

REPAIR_SECONDS = 1.0
"""Time that the repair of a rounded point may take even where none is left."""

STRICT = 1e-9
"""Integrality tolerance of the second attempt, where the first one's solution was none after rounding."""


def conduct(
    engine: Engine,
    program: Program,
    start: FloatArray | None,
    time_limit: float | None,
    gap: float,
    threads: int,
    seed: int,
    on_progress: ProgressCallback | None,
    stop: StopFlag | None,
    suggest: Callable[[], FloatArray | None] | None,
) -> Result:
    """Solve `program` with `engine`: what every ``Solver.solve`` does."""
    began = time.perf_counter()
    require(engine.name, engine.capabilities, needs_of(program))
    refuse_bad_options(time_limit, gap, threads)
    refuse_bad_numbers(program)
    session = Session(cleaned(program), start, time_limit, gap, threads, seed, on_progress, stop, suggest, began=began)
    session.watch()
    result = _without_solver(session) or _with_solver(engine, session)
    session.watch()
    return result


def _without_solver(session: Session) -> Result | None:
    """Return the Result where no search is needed or none is allowed, else None."""
    program = session.program
    if contradictory(program):
        return session.finish(Outcome(None), Status.INFEASIBLE, None)
    if program.n_columns == 0:
        possible = np.all(program.row_lower <= 0) and np.all(program.row_upper >= 0)
        status = Status.OPTIMAL if possible else Status.INFEASIBLE
        return session.finish(Outcome(status, bound=program.offset), status, np.empty(0) if possible else None)
    if session.incumbent is not None and relative_gap(session.objective, session.floor) <= session.gap:
        return session.finish(Outcome(Status.OPTIMAL), Status.OPTIMAL, session.incumbent)
    if session.stopping:
        return session.finish(Outcome(None), Status.INTERRUPTED, None)
    if session.remaining() <= 0:
        return session.finish(Outcome(None), Status.TIME_LIMIT, None)
    return None


def _with_solver(engine: Engine, session: Session) -> Result:
    """Run the solver, settle what it left open, and make its point exact."""
    session.report()
    outcome, x = _run_exactly(engine, session)
    if outcome.status is Status.OPTIMAL and not session.closes(x, outcome.bound):
        # The solver lived on its integrality tolerance; its proof is not about integer points. Once more.
        session.correct(x)
        session.tolerance = STRICT
        outcome, x = _run_exactly(engine, session)
    status = outcome.status
    if status is Status.OPTIMAL and not session.closes(x, outcome.bound):
        session.correct(x)
        if session.incumbent is None:
            raise SolverError(
                f"{outcome.version} only finds points that violate rows once integers are rounded; "
                "the coefficients (big-M) of the program are too large"
            )
        status = Status.UNPROVEN
    if status is None or status is Status.UNBOUNDED:
        status, x = _settle_unbounded(engine, session, x)
    return session.finish(outcome, status, x)


def _run_exactly(engine: Engine, session: Session) -> tuple[Outcome, FloatArray | None]:
    """Run the solver and return with its outcome the point made exact."""
    outcome = _run(engine, session)
    x = outcome.x if outcome.x is not None and np.all(np.isfinite(outcome.x)) else None
    if x is not None and outcome.status is not None and outcome.status is not Status.UNBOUNDED:
        x = _exact(engine, session, x)
    return outcome, x


def _run(engine: Engine, session: Session) -> Outcome:
    """Run the engine in its thread; an exception of a native callback is raised here."""
    try:
        outcome = run_in_thread(lambda: engine.run(session), session.watch, session.cancel, session.overdue)
    except AbandonedError:
        late = session.time_limit is not None and session.remaining() <= 0
        status = Status.TIME_LIMIT if late else Status.INTERRUPTED
        outcome = Outcome(status, session.found, session.bound, session.nodes, engine.name)
    except Exception:
        if session.failure is not None:
            raise session.failure from None
        raise
    finally:
        session.on_stop = session.on_watch = None
    if session.failure is not None:
        raise session.failure
    return outcome


def _settle_unbounded(engine: Engine, session: Session, x: FloatArray | None) -> tuple[Status, FloatArray | None]:
    """Tell unbounded from infeasible: a ray alone proves nothing, a feasible point besides does."""
    if session.incumbent is not None:
        return Status.UNBOUNDED, session.incumbent
    program = session.program
    if x is not None and check(program, tidied(program, x)).feasible(FEASIBILITY):
        return Status.UNBOUNDED, tidied(program, x)
    zero = replace(program, cost=np.zeros(program.n_columns), offset=0.0)
    found = _subsolve(engine, session, zero, session.remaining(), session.stop)
    if found.status is Status.OPTIMAL:
        return Status.UNBOUNDED, found.x
    return found.status, None


def _exact(engine: Engine, session: Session, x: FloatArray) -> FloatArray | None:
    """Round the integers of `x`; where that breaks rows, solve for the continuous variables again.

    None means that no continuous values fit the rounded integers.

    With a big-M row an integer that is off by 1e-7 may hide a violation of 0.1, and a tree decoded from such
    a point would route points otherwise than the point says.
    """
    program = session.program
    rounded = tidied(program, x)
    if not program.n_integers or program.n_integers == program.n_columns or np.array_equal(rounded, x):
        return rounded
    tolerance = max(10 * FEASIBILITY, 2 * check(program, x).worst)
    if check(program, rounded).feasible(tolerance):
        return rounded
    fixed = replace(
        program,
        lower=np.where(program.integer, rounded, program.lower),
        upper=np.where(program.integer, rounded, program.upper),
        integer=np.zeros(program.n_columns, dtype=bool),
        priority=np.zeros(program.n_columns, dtype=np.int64),
    )
    # also after an order to end: without this step the point would be none
    found = _subsolve(engine, session, fixed, max(REPAIR_SECONDS, 0.0 if session.stopping else session.remaining()))
    if found.status is Status.INFEASIBLE:
        return None
    return rounded if found.x is None else tidied(program, found.x)


def _subsolve(
    engine: Engine, session: Session, program: Program, seconds: float, stop: StopFlag | None = None
) -> Result:
    """Solve a variant of the program with the same solver."""
    time_limit = None if math.isinf(seconds) else seconds
    return conduct(engine, program, None, time_limit, session.gap, session.threads, session.seed, None, stop, None)
