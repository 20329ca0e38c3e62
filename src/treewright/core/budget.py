"""How long a fit may take, and whether somebody asked it to stop."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import FrameType

__all__ = [
    "Budget",
    "are_interrupts_caught",
    "interrupts_break_off",
    "interrupts_caught",
    "interrupts_wait",
    "tell_of_interrupt",
    "told_of_interrupts",
]

_listeners: list[Callable[..., None]] = []
"""Who is told of a Ctrl-C that ends work instead of breaking it off."""
_catching: list[bool] = []
"""Not empty while a Ctrl-C that breaks off a block is caught behind it."""
_breaking: list[bool] = []
"""Not empty while each Ctrl-C breaks off."""


@contextmanager
def told_of_interrupts(listener: Callable[..., None]) -> Iterator[None]:
    """Call `listener` at once when a Ctrl-C stops work whose best result is kept; with words where these are special.

    Examples
    --------
    >>> import signal
    >>> seen = []
    >>> budget = Budget()
    >>> with told_of_interrupts(lambda: seen.append("Ctrl-C")), budget.stop_on_interrupt():
    ...     signal.raise_signal(signal.SIGINT)
    >>> seen, budget.interrupted
    (['Ctrl-C'], True)
    """
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def tell_of_interrupt(so: str) -> None:
    """Tell that a Ctrl-C was seen, and what comes of it in words."""
    for listener in _listeners:
        listener(so)


@contextmanager
def interrupts_caught() -> Iterator[None]:
    """Say that a Ctrl-C breaks off this block alone: the work goes on after it, and takes the time that it needs."""
    _catching.append(True)
    try:
        yield
    finally:
        _catching.pop()


def are_interrupts_caught() -> bool:
    """Whether work goes on behind the block that a Ctrl-C breaks off."""
    return bool(_catching)


@contextmanager
def interrupts_break_off() -> Iterator[None]:
    """Let the first Ctrl-C break off, where the work of several fits is to end and not that of one of them.

    Examples
    --------
    >>> import signal
    >>> budget = Budget()
    >>> try:
    ...     with interrupts_break_off(), budget.stop_on_interrupt():
    ...         signal.raise_signal(signal.SIGINT)
    ... except KeyboardInterrupt:
    ...     print("broken off", budget.interrupted)
    broken off False
    """
    _breaking.append(True)
    try:
        yield
    finally:
        _breaking.pop()


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """Let a Ctrl-C wait until a few steps that belong together are done.

    Examples
    --------
    >>> import signal
    >>> try:
    ...     with interrupts_wait():
    ...         signal.raise_signal(signal.SIGINT)
    ...         print("done")
    ... except KeyboardInterrupt:
    ...     print("then broken off")
    done
    then broken off
    """
    previous = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(previous):
        yield
        return
    came: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
    if came:
        signal.raise_signal(signal.SIGINT)


@dataclass
class Budget:
    """A time limit from now on, and a stop flag that Ctrl-C sets.

    Parameters
    ----------
    seconds : float or None
        Time limit, None for none.

    Examples
    --------
    >>> budget = Budget(60.0)
    >>> budget.over, budget.interrupted
    (False, False)
    >>> budget.stop()
    >>> budget.over, budget.interrupted
    (True, True)
    """

    seconds: float | None = None
    started: float = field(default_factory=lambda: time.perf_counter())
    _stop: threading.Event = field(default_factory=threading.Event, repr=False)
    _late: threading.Event = field(default_factory=threading.Event, repr=False)

    @property
    def elapsed(self) -> float:
        """Seconds since the budget was made."""
        return time.perf_counter() - self.started

    @property
    def remaining(self) -> float:
        """Seconds left, never negative, infinite without a limit."""
        if self.seconds is None:
            return float("inf")
        return max(0.0, self.seconds - self.elapsed)

    @property
    def interrupted(self) -> bool:
        """Whether a stop was asked for."""
        return self._stop.is_set()

    @property
    def over(self) -> bool:
        """Whether work should end now, for want of time or because of a stop."""
        return self.interrupted or not self.allows(0.0)

    @property
    def late(self) -> bool:
        """Whether the clock ended or left out something so far: done again, that may end otherwise."""
        return self._late.is_set()

    def allows(self, seconds: float) -> bool:
        """Whether more than so many seconds are left. That they are not is noted: something is left out then.

        Examples
        --------
        >>> budget = Budget(10.0)
        >>> budget.allows(5.0), budget.late, budget.share(0.1).allows(5.0), budget.late
        (True, False, False, True)
        """
        if self.remaining > seconds:
            return True
        self.hurry()
        return False

    def hurry(self) -> None:
        """Note that the clock left something out."""
        self._late.set()

    def stop(self) -> None:
        """Ask for a stop."""
        self._stop.set()

    def share(self, fraction: float) -> Budget:
        """Return a budget of a fraction of the remaining time that obeys the same stop flag."""
        seconds = None if self.seconds is None else self.remaining * fraction
        return Budget(seconds, _stop=self._stop, _late=self._late)

    def leaving(self, seconds: float) -> Budget:
        """Return the same budget with some seconds less, or with half of what is left where that is less.

        Examples
        --------
        >>> 7.9 < Budget(10.0).leaving(2.0).remaining < 8.0, 4.9 < Budget(10.0).leaving(60.0).remaining < 5.0
        (True, True)
        """
        return self if self.seconds is None else replace(self, seconds=self.seconds - min(seconds, self.remaining / 2))

    def grace(self, fraction: float) -> Budget:
        """Return what is left, but at least a fraction of the whole, for what tidies up; nothing after a stop.

        Examples
        --------
        >>> Budget(10.0).grace(0.1).remaining > 9.0, round(Budget(10.0, started=-1e9).grace(0.1).remaining, 1)
        (True, 1.0)
        """
        if self.seconds is None or self.remaining > fraction * self.seconds:
            return self
        return Budget(fraction * self.seconds, _stop=self._stop, _late=self._late)

    @contextmanager
    def stop_on_interrupt(self) -> Iterator[None]:
        """Let the first Ctrl-C stop the work and keep its best result; a second one breaks off as usual.

        Signals reach the main thread alone: in any other thread this does nothing, nor where each Ctrl-C breaks off.
        """
        if threading.current_thread() is not threading.main_thread() or _breaking:
            yield
            return
        previous = signal.getsignal(signal.SIGINT)

        def handler(signum: int, frame: FrameType | None) -> None:
            self.stop()
            signal.signal(signal.SIGINT, previous)
            for listener in _listeners:
                listener()

        if previous is None or previous == signal.SIG_IGN:  # not ours to change: a foreign handler, or nohup
            yield
            return
        signal.signal(signal.SIGINT, handler)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, previous)
