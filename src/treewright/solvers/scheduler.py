"""HiGHS keeps a scheduler of worker threads in every thread that runs it; who leaves one behind disturbs the next."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["own_scheduler"]

_inside = threading.local()


@contextmanager
def own_scheduler(highspy: Any) -> Iterator[bool]:
    """Run HiGHS in the present thread and leave no scheduler behind; whether no other run is on in it.

    A run inside of another one, as from a callback of branch and bound, has to take the scheduler that is there (option
    ``threads`` 0) and to leave it.
    """
    outermost = not getattr(_inside, "running", False)
    _inside.running = True
    try:
        yield outermost
    finally:
        if outermost:
            _inside.running = False
            highspy.Highs.resetGlobalScheduler(True)
