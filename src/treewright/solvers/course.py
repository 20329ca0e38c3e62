"""The course of every solve: refuse, run, settle what the solver left open, make its point exact."""

from __future__ import annotations

import atexit
import math
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np

from treewright.core.arrays import FloatArray
from treewright.core.progress import relative_gap
from treewright.exceptions import SolverError
from treewright.solvers.conic import fixed_conic
from treewright.solvers.program import Program
from treewright.solvers.program_check import check
from treewright.solvers.registry import require_capabilities
from treewright.solvers.session import (
    FEASIBILITY,
    Outcome,
    Session,
    cleaned_program,
    has_crossed_bounds,
    refuse_bad_numbers,
    refuse_bad_options,
    tidied_point,
)
from treewright.solvers.vocabulary import Capability, ProgressCallback, Result, Status, StopFlag, capabilities_needed

__all__ = ["Solver"]

T = TypeVar("T")

REPAIR_SECONDS = 1.0
"""Time that the repair of a rounded point may take even where none is left."""

CONE_TOLERANCE = 1e-8
"""Violation of a cone from which on a point without integers is finished by clarabel; one with integers always is."""

STRICT = 1e-9
"""Integrality tolerance of the second attempt, where the first one's solution was none after rounding."""


POLL_SECONDS = 0.05
"""How often the waiting thread looks at signals, the stop flag and the queue of progress events."""


EXIT_SECONDS = 5.0, 120.0
"""How long the end of the process waits for work that was given up, in silence and in all."""


class Solver(ABC):
    """A mathematical-programming solver.

    A solver is a stateless object: all that matters is passed to :meth:`solve`. One of its own says what it is called,
    what it can do, and how it runs; what every solve does besides is here.
    """

    name: str
    capabilities: Capability

    @abstractmethod
    def run(self, session: Session) -> Outcome:
        """Solve ``session.program`` in the present thread."""

    def solve(
        self,
        program: Program,
        start: FloatArray | None = None,
        time_limit: float | None = None,
        gap: float = 1e-4,
        threads: int = 1,
        seed: int = 0,
        on_progress: ProgressCallback | None = None,
        stop: StopFlag | None = None,
        suggest: Callable[[], FloatArray | None] | None = None,
    ) -> Result:
        """Minimize `program`.

        Parameters
        ----------
        program : Program
            What to solve.
        start : ndarray or None
            A full point to start from. An infeasible start is ignored, never an error.
        time_limit : float or None
            Seconds for the whole call, the building of the solver's own model included.
        gap : float
            Relative gap at which the solve may end as optimal.
        threads : int
            Number of threads the solver may use.
        seed : int
            Seed of the solver's own randomness.
        on_progress : callable or None
            Called with a Progress at each improvement and at regular intervals, in the calling thread.
        stop : callable or None
            Asked often, in the calling thread; True ends the solve with ``Status.INTERRUPTED``.
        suggest : callable or None
            Asked during the search for a heuristic solution (or None), in the solver's thread while the
            solver waits. An infeasible suggestion is ignored. Solvers without INJECT never ask.

        Returns
        -------
        Result
            An exception raised by `on_progress`, `stop` or `suggest` ends the solve and is raised from here.
        """
        began = time.perf_counter()
        require_capabilities(self.name, self.capabilities, capabilities_needed(program))
        refuse_bad_options(time_limit, gap, threads)
        refuse_bad_numbers(program)
        ready = cleaned_program(program)
        session = Session(ready, start, time_limit, gap, threads, seed, on_progress, stop, suggest, began=began)
        session.watch()
        result = _without_solver(session) or _with_solver(self, session)
        session.watch()
        return result


def _without_solver(session: Session) -> Result | None:
    """Return the Result where no search is needed or none is allowed, else None."""
    program = session.program
    if has_crossed_bounds(program):
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


def _with_solver(solver: Solver, session: Session) -> Result:
    """Run the solver, settle what it left open, and make its point exact."""
    session.report()
    outcome, x = _run_exactly(solver, session)
    if outcome.status is Status.OPTIMAL and not session.closes(x, outcome.bound):
        # The solver lived on its integrality tolerance; its proof is not about integer points. Once more.
        session.correct(x)
        session.tolerance = STRICT
        outcome, x = _run_exactly(solver, session)
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
        status, x = _settle_unbounded(solver, session, x)
    return session.finish(outcome, status, x)


def _run_exactly(solver: Solver, session: Session) -> tuple[Outcome, FloatArray | None]:
    """Run the solver and return with its outcome the point made exact."""
    outcome = _run(solver, session)
    x = outcome.x if outcome.x is not None and np.all(np.isfinite(outcome.x)) else None
    if x is not None and outcome.status is not None and outcome.status is not Status.UNBOUNDED:
        x = _exact(solver, session, x)
    return outcome, x


def _run(solver: Solver, session: Session) -> Outcome:
    """Run the solver in its thread; an exception of a native callback is raised here."""
    try:
        outcome = run_in_thread(lambda: solver.run(session), session.watch, session.cancel, session.overdue)
    except AbandonedError:
        late = session.time_limit is not None and session.remaining() <= 0
        status = Status.TIME_LIMIT if late else Status.INTERRUPTED
        outcome = Outcome(status, session.found, session.bound, session.nodes, solver.name)
    except Exception:
        if session.failure is not None:
            raise session.failure from None
        raise
    finally:
        session.on_stop = session.on_watch = None
    if session.failure is not None:
        raise session.failure
    return outcome


def _settle_unbounded(solver: Solver, session: Session, x: FloatArray | None) -> tuple[Status, FloatArray | None]:
    """Tell unbounded from infeasible: a ray alone proves nothing, a feasible point besides does."""
    if session.incumbent is not None:
        return Status.UNBOUNDED, session.incumbent
    program = session.program
    if x is not None and check(program, tidied_point(program, x)).feasible(FEASIBILITY):
        return Status.UNBOUNDED, tidied_point(program, x)
    zero = replace(program, cost=np.zeros(program.n_columns), offset=0.0)
    found = _subsolve(solver, session, zero, session.remaining(), session.stop)
    if found.status is Status.OPTIMAL:
        return Status.UNBOUNDED, found.x
    return found.status, None


def _exact(solver: Solver, session: Session, x: FloatArray) -> FloatArray | None:
    """Round the integers of `x`; where that breaks rows, solve for the continuous variables again.

    None means that no continuous values fit the rounded integers. Cones are made exact too: a tolerance of 1e-6 for
    squares, as Gurobi has it, is one of 1e-3 for a norm that should be 0.

    With a big-M row an integer that is off by 1e-7 may hide a violation of 0.1, and a tree decoded from such
    a point would route points otherwise than the point says.
    """
    program = session.program
    rounded = tidied_point(program, x)
    left = 0.0 if session.stopping else session.remaining()
    broken = bool(program.cones) and check(program, rounded).violations["cones"] > CONE_TOLERANCE
    # A point that keeps its cones is only made better, for which there must be time.
    if broken or (program.cones and program.n_integers and left > 0):
        finished = fixed_conic(program, rounded, max(REPAIR_SECONDS, left) if broken else left)
        if finished is not None:
            return finished
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
    found = _subsolve(solver, session, fixed, max(REPAIR_SECONDS, left))
    if found.status is Status.INFEASIBLE:
        return None
    return rounded if found.x is None else tidied_point(program, found.x)


def _subsolve(
    solver: Solver, session: Session, program: Program, seconds: float, stop: StopFlag | None = None
) -> Result:
    """Solve a variant of the program with the same solver."""
    limit = None if math.isinf(seconds) else seconds
    return solver.solve(program, None, limit, session.gap, session.threads, session.seed, None, stop)


_ABANDONED: list[threading.Thread] = []


@atexit.register
def _await_abandoned() -> None:
    """Let native code end before the interpreter does: its return to a dying one aborts the process."""
    began = time.monotonic()
    for seconds in EXIT_SECONDS:
        for thread in _ABANDONED:
            thread.join(max(0.0, began + seconds - time.monotonic()))
        if not any(thread.is_alive() for thread in _ABANDONED):
            return
        if seconds == EXIT_SECONDS[0]:
            print("everything is done; waiting for the solver to end its last step", file=sys.stderr, flush=True)


class AbandonedError(Exception):
    """Waiting for the work of :func:`run_in_thread` was given up; never leaves this file."""


def run_in_thread(
    work: Callable[[], T],
    watch: Callable[[], None] | None = None,
    cancel: Callable[[], None] | None = None,
    overdue: Callable[[], bool] | None = None,
) -> T:
    """Run the `work` of a solver in a thread of its own and wait for it in small steps.

    A solver's native code keeps the calling thread from handling signals. Waiting here in steps lets Python
    run its signal handlers, so that Ctrl-C reaches the stop flag while the solver is deep in its own work.

    Parameters
    ----------
    work : callable
        What to run; its value is returned and its exception raised.
    watch : callable or None
        Called by the waiting thread between the steps, and once after the work has ended.
    cancel : callable or None
        Called when waiting is disturbed by an exception (of `watch`, or KeyboardInterrupt): it must make the
        work end soon. The exception is raised once the work has ended, or at once when a second one follows.
    overdue : callable or None
        Asked between the steps; True gives the work up: its (daemon) thread ends whenever its native code
        comes back, and AbandonedError, or the exception that disturbed the waiting, is raised now.
    """
    outcome: list[T] = []
    failure: list[BaseException] = []

    def guarded() -> None:
        try:
            outcome.append(work())
        except BaseException as error:  # noqa: BLE001 - handed on to the waiting thread below
            failure.append(error)

    thread = threading.Thread(target=guarded, name="treewright-solver", daemon=True)
    thread.start()
    disturbance: BaseException | None = None
    try:
        while thread.is_alive():
            try:
                thread.join(POLL_SECONDS)
                if watch is not None and disturbance is None:
                    watch()
            except BaseException as error:
                if cancel is None or disturbance is not None:
                    raise
                disturbance = error
                cancel()
            if overdue is not None and thread.is_alive() and overdue():
                raise disturbance or AbandonedError
    finally:
        if thread.is_alive():
            _ABANDONED.append(thread)
    if disturbance is not None:
        raise disturbance
    if failure:
        raise failure[0]
    if watch is not None:
        watch()
    return outcome[0]
