"""Time limits as tests check them, on machines that may be slow or busy."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fail if the work takes longer, by the clock and by the processor: a machine under load breaks no limit."""
    clock, processor = time.perf_counter(), time.process_time()
    yield
    spent = min(time.perf_counter() - clock, time.process_time() - processor)
    assert spent <= seconds, f"{spent:.1f} s of {seconds:.1f} s"
