"""The protocol that every solver keeps, and what all of them share."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable
from enum import Flag, auto
from typing import Protocol, TypeVar, runtime_checkable

from treewright.arrays import FloatArray
from treewright.program import Program
from treewright.solvers.result import ProgressCallback, Result

__all__ = ["AbandonedError", "Capability", "Solver", "StopFlag", "needs_of", "run_in_thread"]


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


@runtime_checkable
class Solver(Protocol):
    """A mathematical-programming solver.

    A solver is a stateless object: all that matters is passed to :meth:`solve`.
    """

    name: str
    capabilities: Capability

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
        ...


def needs_of(program: Program) -> Capability:
    """Capabilities without which `program` cannot be solved."""
    needs = Capability.LP
    if program.n_integers:
        needs |= Capability.MIP
    if program.cones:
        needs |= Capability.CONE
    return needs


T = TypeVar("T")

POLL_SECONDS = 0.05
"""How often the waiting thread looks at signals, the stop flag and the queue of progress events."""


EXIT_SECONDS = 10.0
"""How long the end of the process waits for work that was given up."""

_ABANDONED: list[threading.Thread] = []


@atexit.register
def _await_abandoned() -> None:
    """Let native code end before the interpreter does: its return to a dying one aborts the process."""
    deadline = time.monotonic() + EXIT_SECONDS
    for thread in _ABANDONED:
        thread.join(max(0.0, deadline - time.monotonic()))


class AbandonedError(Exception):
    """Waiting for the work of :func:`run_in_thread` was given up; never leaves this folder."""


def run_in_thread(
    work: Callable[[], T],
    watch: Callable[[], None] | None = None,
    cancel: Callable[[], None] | None = None,
    overdue: Callable[[], bool] | None = None,
) -> T:
    """Run `work` in a thread of its own and wait for it in small steps.

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
            _ABANDONED.append(thread)
            raise disturbance or AbandonedError
    if disturbance is not None:
        raise disturbance
    if failure:
        raise failure[0]
    if watch is not None:
        watch()
    return outcome[0]
