"""How far work is: told to whoever listens, at each step and at least twice a second, whatever the work is doing."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from treewright.core.budget import Budget

__all__ = [
    "Event",
    "Listener",
    "note",
    "noting",
    "fit_reported",
    "printer",
    "relative_gap",
    "reported",
    "stage",
    "timed",
]

_BEAT, _LINE = 0.5, 1.0
"""Seconds between events where nothing happens, and at least between lines that are printed."""


def relative_gap(objective: float, bound: float) -> float:
    """Gap that progress tells, ``(objective - bound) / max(|objective|, 1e-10)``; ``inf`` where one is unknown.

    Examples
    --------
    >>> relative_gap(2.0, 1.5)
    0.25
    >>> relative_gap(0.0, 0.0)
    0.0
    >>> relative_gap(float("inf"), 1.0)
    inf
    """
    if not (math.isfinite(objective) and math.isfinite(bound)):
        return math.inf
    difference = objective - bound
    if difference <= 1e-9 * max(1.0, abs(objective)):
        return 0.0
    return difference / max(abs(objective), 1e-10)


@dataclass(frozen=True)
class Event:
    """How far work is.

    Examples
    --------
    >>> print(Event("search", 12.3, 47.7, objective=3.0, bound=1.5))
        12.3 s  search  objective 3  bound 1.5  gap 50.00%  47.7 s left
    >>> print(Event("labels left out", 0.5, part=(3, 10)))
         0.5 s  labels left out 3 of 10
    """

    stage: str
    """What is being done, in words."""
    seconds: float = 0.0
    """Since the work began."""
    left: float = math.inf
    """Seconds left, infinite without a limit."""
    objective: float | None = None
    """Of the best that was found."""
    bound: float | None = None
    """What no objective is below."""
    part: tuple[int, int] | None = None
    """Which part of how many is at work."""
    detail: str = ""
    """More, in the words of the method."""
    step: bool = False
    """Whether a step of the method has ended, of which there are few."""

    def __str__(self) -> str:
        words = [self.stage + (f" {self.part[0]} of {self.part[1]}" if self.part else "")]
        known = self.objective is not None and math.isfinite(self.objective)
        if self.objective is not None and known:
            words.append(f"objective {self.objective:.6g}")
        if self.bound is not None and math.isfinite(self.bound):
            words.append(f"bound {self.bound:.6g}")
            if self.objective is not None and known:
                apart = self.objective - self.bound
                words.append(f"gap {apart / abs(self.objective) if apart > 0 and self.objective else 0.0:.2%}")
        words += [self.detail] if self.detail else []
        words += [f"{self.left:.1f} s left"] if math.isfinite(self.left) else []
        return f"{self.seconds:8.1f} s  " + "  ".join(filter(None, words))


Listener = Callable[[Event], None]
"""Who is told. Events come one at a time, from several threads."""


class _Reporter:
    """What is known of the work in progress."""

    def __init__(self, listener: Listener, budget: Budget | None) -> None:
        self.listener, self.budget, self.began = listener, budget, time.perf_counter()
        self.stages: list[str] = []
        self.in_fit = False
        self._state, self._lock = Event(""), threading.RLock()

    def note(self, **changed: Any) -> None:
        """Tell of what has changed."""
        with self._lock:
            self._state = replace(self._state, **changed)
            left = math.inf if self.budget is None else self.budget.remaining
            self.listener(replace(self._state, seconds=time.perf_counter() - self.began, left=left))
            self._state = replace(self._state, step=False)

    def enter(self, stages: list[str]) -> None:
        """Tell of a stage that begins."""
        self.stages = stages
        self.note(stage=": ".join(stages), part=None, detail="")

    def leave(self, stages: list[str]) -> None:
        """Go back to the stage around one that has ended, of which nobody is told before something happens in it."""
        self.stages = stages
        with self._lock:
            self._state = replace(self._state, stage=": ".join(stages), part=None, detail="")

    def forget(self) -> None:
        """Begin with a fit, or end it: objectives are its own."""
        with self._lock:
            self._state = replace(self._state, objective=None, bound=None, detail="")

    def beat(self, ended: threading.Event) -> None:
        while not ended.wait(_BEAT):
            self.note()


_current: ContextVar[_Reporter | None] = ContextVar("treewright_progress", default=None)


@contextmanager
def reported(listener: Listener, budget: Budget | None = None) -> Iterator[None]:
    """Tell `listener` how far the work of the block is; of each fit in it, unless all of it has one `budget`.

    Examples
    --------
    >>> with reported(lambda event: print(event.stage, event.objective)):
    ...     with stage("search"):
    ...         note(objective=3.0)
    search None
    search 3.0
    """
    reporter, ended = _Reporter(listener, budget), threading.Event()
    thread = threading.Thread(target=reporter.beat, args=(ended,), name="progress", daemon=True)
    token = _current.set(reporter)
    thread.start()
    try:
        yield
    finally:
        _current.reset(token)
        ended.set()
        thread.join()


@contextmanager
def fit_reported(listener: Listener | None, budget: Budget) -> Iterator[None]:
    """Report the progress of a fit to those who listen already, else to `listener`, if there is one.

    A fit within a fit tells nothing: its objectives are not those of the fit that was asked for.
    """
    reporter = _current.get()
    if reporter is None and listener is not None:
        with reported(listener, budget):
            _reporter().in_fit = True
            yield
    elif reporter is None or reporter.in_fit:
        token = _current.set(None)
        try:
            yield
        finally:
            _current.reset(token)
    else:
        all_of_it, reporter.in_fit = reporter.budget, True
        reporter.budget = budget if all_of_it is None else all_of_it
        reporter.forget()
        try:
            yield
        finally:
            reporter.budget, reporter.in_fit = all_of_it, False
            reporter.forget()


@contextmanager
def timed(budget: Budget) -> Iterator[None]:
    """Let all fits of the block have this time together, if it is limited, as progress counts it."""
    reporter = _current.get()
    if reporter is None or budget.seconds is None:
        yield
        return
    before, reporter.budget = reporter.budget, budget
    try:
        yield
    finally:
        reporter.budget = before


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Name what the work of the block is in progress events, within the stages around it."""
    reporter = _current.get()
    if reporter is None:
        yield
        return
    before = reporter.stages
    reporter.enter([*before, name])
    try:
        yield
    finally:
        reporter.leave(before)


def note(**changed: Any) -> None:
    """Tell of a step of progress: fields of `Event` that have changed."""
    if (reporter := _current.get()) is not None:
        reporter.note(**changed)


def noting() -> Callable[..., None] | None:
    """`note` of progress for work in other threads, None where nobody listens."""
    reporter = _current.get()
    return None if reporter is None else reporter.note


def printer() -> Listener:
    """A listener that prints progress on standard error: a line a step of the method, and at most one a second else."""
    last = time.monotonic()
    said = False

    def listen(event: Event) -> None:
        nonlocal last, said
        now, new = time.monotonic(), event.objective is not None and not said
        if event.step or new or now - last >= _LINE:
            with suppress(OSError, ValueError):  # a reader that has gone away is no reason to end the work
                print(event, file=sys.stderr, flush=True)
            last, said = now, said or event.objective is not None

    return listen


def _reporter() -> _Reporter:
    reporter = _current.get()
    assert reporter is not None
    return reporter
