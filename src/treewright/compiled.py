"""numba, and how long it has been compiling: the first fit on a machine does that, beyond its time limit."""

from __future__ import annotations

import threading
import time

from numba import njit
from numba.core.event import Event, Listener, register

__all__ = ["compiling_seconds", "njit"]


class _Clock(Listener):
    """Seconds in which at least one thread compiles; what is compiled on the way to something else counts once."""

    def __init__(self) -> None:
        self.total, self._running, self._began = 0.0, 0, 0.0
        self._lock = threading.Lock()

    def on_start(self, event: Event) -> None:
        with self._lock:
            if not self._running:
                self._began = time.perf_counter()
            self._running += 1

    def on_end(self, event: Event) -> None:
        with self._lock:
            self._running -= 1
            if not self._running:
                self.total += time.perf_counter() - self._began

    def seconds(self) -> float:
        with self._lock:
            return self.total + (time.perf_counter() - self._began if self._running else 0.0)


_clock = _Clock()
register("numba:compile", _clock)


def compiling_seconds() -> float:
    """Seconds that this process has spent compiling so far."""
    return _clock.seconds()
