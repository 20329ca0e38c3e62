"""One solve, seen from outside the solver: checks, clock, start, progress, stopping, and the making of the Result.

A solver's own file only translates: Program to native model, native events to :class:`Session` calls, native
end to an :class:`Outcome`. Everything that must be the same for all solvers is here and in ``conduct.py``.
"""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from treewright.core.arrays import FloatArray
from treewright.core.progress import relative_gap
from treewright.exceptions import InvalidInputError
from treewright.solvers.program import Program
from treewright.solvers.program_check import check
from treewright.solvers.vocabulary import Progress, ProgressCallback, Result, Status, StopFlag

__all__ = [
    "ABSOLUTE_GAP",
    "FEASIBILITY",
    "Outcome",
    "Session",
    "cleaned_program",
    "has_crossed_bounds",
    "refuse_bad_numbers",
    "refuse_bad_options",
    "tidied_point",
]

ABSOLUTE_GAP = 1e-9
"""Absolute gap that ends a solve, so that programs with optimum 0 end too."""

FEASIBILITY = 1e-6
"""Largest violation at which a start or a suggestion counts as feasible; the solvers' own default."""

INFINITE = 1e20
"""From here on a solver's number means infinity (SCIP 1e20, Gurobi 1e100)."""

OVERDUE_SHARE, OVERDUE_SECONDS = 0.1, (0.1, 0.5)
"""How long a solver may go on after 1.05 times its time limit, for the same reason as GRACE_SECONDS: as a share of the
limit, and at least and at most in seconds."""

GRACE_SECONDS = 2.0
"""How long a solver may go on after it was told to end.

Neither HiGHS (the root relaxation of a MIP, presolve) nor SCIP (any linear program) looks at its stop flag
inside of long native steps. After this time the solve returns with what is known, and leaves the step behind.
"""

BOUND_SECONDS = 0.1
"""Least time between two progress events that only improve the bound."""

HEARTBEAT_SECONDS = 1.0
"""Time after which an event is reported although nothing improved."""


@dataclass(frozen=True)
class Outcome:
    """What a solver ended with, in the common vocabulary but not yet checked."""

    status: Status | None
    """None where the solver only knows "infeasible or unbounded"."""
    x: FloatArray | None = None
    """Its solution."""
    bound: float = -math.inf
    """Its lower bound, offset included."""
    nodes: int = 0
    """Branch-and-bound nodes."""
    version: str = ""
    """Name and version of the solver."""


@dataclass
class Session:
    """State of one solve.

    `on_progress` and `stop` are called by :meth:`watch`, in the thread that called ``solve``; the solver's
    thread only queues events and looks at :attr:`stopping`. So a callback may draw, print or raise.
    """

    program: Program
    start: FloatArray | None = None
    time_limit: float | None = None
    gap: float = 1e-4
    threads: int = 1
    seed: int = 0
    on_progress: ProgressCallback | None = None
    stop: StopFlag | None = None
    suggest: Callable[[], FloatArray | None] | None = None

    began: float = field(default_factory=lambda: time.perf_counter())
    tolerance: float = FEASIBILITY
    floor: float = -math.inf
    incumbent: FloatArray | None = None
    objective: float = math.inf
    bound: float = -math.inf
    nodes: int = 0
    trace: list[Progress] = field(default_factory=list)
    found: FloatArray | None = None
    failure: BaseException | None = None
    on_stop: Callable[[], None] | None = None
    on_watch: Callable[[], None] | None = None
    _stopping: threading.Event = field(default_factory=threading.Event)
    _events: queue.SimpleQueue[Progress] = field(default_factory=queue.SimpleQueue)
    _suggested: float = math.inf
    _told: float = math.inf

    def __post_init__(self) -> None:
        self.floor = self.bound = trivial_bound(self.program)
        self.start = None if self.start is None else self._tidy(self.start)
        if self.start is not None:
            self._keep(self.start)

    def elapsed(self) -> float:
        """Seconds since the solve began."""
        return time.perf_counter() - self.began

    def remaining(self) -> float:
        """Seconds left, ``inf`` without a limit."""
        return math.inf if self.time_limit is None else max(0.0, self.time_limit - self.elapsed())

    @property
    def stopping(self) -> bool:
        """Whether the solver has to end; cheap enough to be asked in every native callback."""
        return self._stopping.is_set()

    def cancel(self) -> None:
        """Make the solver end soon."""
        self._tell()
        if self.on_stop is not None:
            self.on_stop()

    def overdue(self) -> bool:
        """Whether the solver goes on far beyond the time limit or the order to end."""
        now = self.elapsed()
        if self.time_limit is not None:
            least, most = OVERDUE_SECONDS
            if now > 1.05 * self.time_limit + max(least, min(most, OVERDUE_SHARE * self.time_limit)):
                self._tell()
                return True
        return now > self._told + GRACE_SECONDS

    def _tell(self) -> None:
        if not self.stopping:
            self._told = self.elapsed()
            self._stopping.set()

    def watch(self) -> None:
        """Hand progress on and ask the stop flag; called by the waiting thread."""
        if self.on_watch is not None:
            self.on_watch()
        while not self._events.empty():
            event = self._events.get()
            if self.on_progress is not None:
                self.on_progress(event)
        if self.stop is not None and not self.stopping and self.stop():
            self.cancel()

    def guard(self, action: Callable[..., None]) -> Callable[..., None]:
        """Wrap a native callback: its exception must not unwind foreign frames, so it is kept for later."""

        def guarded(*arguments: Any) -> None:
            try:
                action(*arguments)
            except BaseException as error:  # noqa: BLE001 - raised again by Solver.solve
                self.failure = self.failure or error
                self._tell()

        return guarded

    def report(
        self,
        objective: float = math.inf,
        bound: float = -math.inf,
        nodes: int = 0,
        found: FloatArray | None = None,
    ) -> None:
        """Note objective, bound and solution; queue an event if something improved or silence was long."""
        self.found = self.found if found is None else found
        self._note(finite(objective, math.inf), finite(bound), nodes)
        now = self.elapsed()
        last = self.trace[-1] if self.trace else None
        silence = math.inf if last is None else now - last.seconds
        better = last is None or self.objective < last.objective
        tighter = last is None or self.bound > last.bound + 1e-9 * max(1.0, abs(last.bound))
        if better or (tighter and silence >= BOUND_SECONDS) or silence >= HEARTBEAT_SECONDS:
            self._emit(now)

    def suggestion(self) -> FloatArray | None:
        """Ask the caller for a point; return it if feasible and better than all before, else None."""
        if self.suggest is None or self.stopping:
            return None
        raw = self.suggest()
        x = None if raw is None else self._tidy(raw)
        if x is None:
            return None
        objective = program_objective(self.program, x)
        if objective >= min(self._suggested, self.objective):
            return None
        self._suggested = objective
        self._keep(x)
        self.report(objective)
        return x

    def closes(self, x: FloatArray | None, bound: float) -> bool:
        """Whether `bound` proves `x` optimal, with some slack for the solver's tolerances."""
        if x is None or not self.program.n_integers:
            return x is not None
        objective, bound = program_objective(self.program, x), finite(bound)
        return objective - bound <= (2 * self.gap + 1e-5) * max(1.0, abs(objective), abs(bound))

    def correct(self, x: FloatArray | None) -> None:
        """Take back objectives that were reported for points that only tolerances made feasible."""
        if x is not None and check(self.program, x).feasible(10 * FEASIBILITY):
            self._keep(x)
        self.start = self.incumbent
        self.objective = math.inf if self.incumbent is None else program_objective(self.program, self.incumbent)
        self.trace = [replace(event, objective=max(event.objective, self.objective)) for event in self.trace]

    def finish(self, outcome: Outcome, status: Status, x: FloatArray | None) -> Result:
        """Make the Result from what the solver ended with and the best point known besides."""
        if status is Status.INFEASIBLE and self.incumbent is not None:
            # Only tolerances can make a solver deny a point that was checked: keep the point, claim no proof.
            status = Status.UNPROVEN
        if status is Status.INFEASIBLE:
            return self._result(status, None, math.inf, math.inf, outcome)
        if status is Status.UNBOUNDED:
            x = x if x is not None else self.incumbent
            value = math.inf if x is None else program_objective(self.program, x)
            return self._result(status, x, value, -math.inf, outcome)
        objective = math.inf if x is None else program_objective(self.program, x)
        if self.incumbent is not None:
            known = program_objective(self.program, self.incumbent)
            if known < objective:
                x, objective = self.incumbent, known
        bound = min(max(self.floor, self.bound, finite(outcome.bound)), objective)
        if status in (Status.TIME_LIMIT, Status.INTERRUPTED) and relative_gap(objective, bound) <= self.gap:
            status = Status.OPTIMAL
        return self._result(status, x, objective, bound, outcome)

    def _result(self, status: Status, x: FloatArray | None, objective: float, bound: float, outcome: Outcome) -> Result:
        self._note(objective, -math.inf if status is Status.INFEASIBLE else bound, outcome.nodes)
        seconds = self.elapsed()
        self._emit(seconds)
        return Result(
            status=status,
            x=x,
            objective=objective,
            bound=bound,
            seconds=seconds,
            nodes=self.nodes,
            trace=tuple(self.trace),
            solver=outcome.version,
        )

    def _note(self, objective: float, bound: float, nodes: int) -> None:
        self.objective = min(self.objective, objective)
        self.bound = min(max(self.bound, bound), self.objective)
        self.nodes = max(self.nodes, nodes)

    def _emit(self, seconds: float) -> None:
        event = Progress(seconds, self.objective, self.bound, self.nodes)
        self.trace.append(event)
        self._events.put(event)

    def _keep(self, x: FloatArray) -> None:
        """Remember a feasible point, so that no solver can return something worse."""
        objective = program_objective(self.program, x)
        if self.incumbent is None or objective < program_objective(self.program, self.incumbent):
            self.incumbent = x
            self.objective = min(self.objective, objective)

    def _tidy(self, x: FloatArray) -> FloatArray | None:
        """Return the point with integers rounded and bounds kept, or None if it is not feasible."""
        x = np.asarray(x, dtype=np.float64)
        if x.shape != (self.program.n_columns,):
            raise InvalidInputError(
                f"a start or suggestion has shape {x.shape}; the program needs ({self.program.n_columns},)"
            )
        if not np.all(np.isfinite(x)):
            return None
        x = tidied_point(self.program, x)
        return x if check(self.program, x).feasible(FEASIBILITY) else None


def tidied_point(program: Program, x: FloatArray) -> FloatArray:
    """A solver's `x` with integers rounded and moved into its bounds (by at most the solver's tolerance)."""
    x = np.where(program.integer, np.round(x), x)
    # + 0.0 turns -0.0 into 0.0, which would otherwise show in reports
    return np.clip(x, program.lower, program.upper) + 0.0


def program_objective(program: Program, x: FloatArray) -> float:
    """Objective of a program at `x`, offset included."""
    return float(program.cost @ x) + program.offset


def finite(value: float, unknown: float = -math.inf) -> float:
    """Replace a solver's own infinity by the real one, and NaN by `unknown`."""
    if math.isnan(value):
        return unknown
    return math.copysign(math.inf, value) if abs(value) >= INFINITE else float(value)


def trivial_bound(program: Program) -> float:
    r"""Return the bound of a program :math:`c_0 + \sum_j \min(c_j l_j, c_j u_j)`, valid whatever the rows say."""
    cost = program.cost
    used = cost != 0
    ends = np.where(cost > 0, program.lower, program.upper)[used]
    return float(cost[used] @ ends) + program.offset if used.any() else program.offset


def has_crossed_bounds(program: Program) -> bool:
    """Whether some lower bound of a program exceeds its upper bound by more than rounding."""
    pairs = ((program.lower, program.upper), (program.row_lower, program.row_upper))
    return any(bool(np.any(low > high + FEASIBILITY * (1 + np.abs(high)))) for low, high in pairs)


def cleaned_program(program: Program) -> Program:
    """Return the program in the form solvers insist on: no entry twice, no bounds crossed by rounding."""
    matrix = program.matrix
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    elif np.all(program.lower <= program.upper) and np.all(program.row_lower <= program.row_upper):
        return program
    if has_crossed_bounds(program):
        return program
    return replace(
        program,
        matrix=matrix,
        upper=np.maximum(program.lower, program.upper),
        row_upper=np.maximum(program.row_lower, program.row_upper),
    )


def refuse_bad_numbers(program: Program) -> None:
    """Refuse NaN anywhere in a program, and infinity where no solver can take it."""
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
    """Refuse options of a solver that mean nothing."""
    if time_limit is not None and not time_limit >= 0:
        raise InvalidInputError(f"time_limit={time_limit!r}; it must be at least 0 seconds, or None for no limit")
    if not gap >= 0:
        raise InvalidInputError(f"gap={gap!r}; it must be at least 0")
    if threads < 1:
        raise InvalidInputError(f"threads={threads!r}; it must be at least 1")
