"""Time limits as tests check them, on machines that may be slow, busy, or new."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from numba.core.event import Event, Listener, install_listener


class _Compiling(Listener):
    """Seconds by the clock and by the processor in which numba compiles; what it compiles for that counts once."""

    def __init__(self) -> None:
        self.clock, self.processor, self._depth = 0.0, 0.0, 0

    def on_start(self, event: Event) -> None:
        if not self._depth:
            self._began = time.perf_counter(), time.process_time()
        self._depth += 1

    def on_end(self, event: Event) -> None:
        self._depth -= 1
        if not self._depth:
            self.clock += time.perf_counter() - self._began[0]
            self.processor += time.process_time() - self._began[1]


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fail if the work takes longer, by the clock and by the processor: a machine under load breaks no limit.

    The first fit on a machine compiles loops beyond its limit, as the README says; that does not count.
    """
    compiling = _Compiling()
    clock, processor = time.perf_counter(), time.process_time()
    with install_listener("numba:compile", compiling):
        yield
    clock = time.perf_counter() - clock - compiling.clock
    processor = time.process_time() - processor - compiling.processor
    spent = min(clock, processor)
    assert spent <= seconds, f"{spent:.1f} s of {seconds:.1f} s"
