"""Rows in processes of their own, by pebble: what a pool of it does not bring along, which is little.

A row cannot harm another: a crash, or memory that runs out, ends its own process. Ctrl-C does not reach processes: a
fit that ends early because of it would look like any other.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from treewright.exceptions import InvalidInputError, PackageNotInstalledError

if TYPE_CHECKING:
    from pebble import ProcessPool

__all__ = ["how_it_ended", "process_pool", "scheduled"]

_PRELOADED = ["numpy", "scipy.optimize", "scipy.sparse.linalg", "sklearn.ensemble", "sklearn.svm", "highspy"]
"""Imported once and shared by all processes, so that no fit has to. Nothing of treewright: another copy than the
caller's might be found."""

_PATIENCE = 10.0
"""Seconds that a process may take to end after its answer."""


def process_pool(jobs: int) -> ProcessPool:
    """Return a pool of so many processes at a time, a new one for each call."""
    try:
        from pebble import ProcessPool
    except ImportError:
        raise PackageNotInstalledError(
            "rows in processes of their own need pebble: pip install pebble, or use jobs=0"
        ) from None
    return ProcessPool(jobs, max_tasks=1, initializer=_end_with_parent, context=_context())


def scheduled(call: Callable[..., Any], *args: Any) -> tuple[Callable[[bytes], bytes], tuple[bytes]]:
    """Return function and arguments for ``ProcessPool.schedule``, whose answer is a pickle.

    Both go as bytes, as the first that the other side cannot read would break the whole pool; and what cannot be
    pickled is told here, before any work.
    """
    try:
        return _called, (pickle.dumps((call, args)),)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InvalidInputError(
            f"{error}; what runs in processes must stand at the top level of a module (or use jobs=0)"
        ) from None


def _called(content: bytes) -> bytes:
    """What the process does."""
    call, args = pickle.loads(content)
    answer = pickle.dumps(call(*args))
    # Threads that a fit left behind keep a process that has answered no longer than this.
    patience = threading.Timer(_PATIENCE, os._exit, (0,))
    patience.daemon = True
    patience.start()
    return answer


def how_it_ended(error: BaseException) -> str:
    """Return in words how a process ended that did not answer."""
    if isinstance(error, TimeoutError):
        return f"killed after {error.args[1]:g} seconds"
    code = getattr(error, "exitcode", None)
    if code is None:
        return f"{type(error).__name__}: {error}"
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"the process was ended by {signal.Signals(-code).name}"
    return f"the process ended with exit code {code}"


def _context() -> Any:
    """Processes that are forked from one that has imported already, and that has never heard of Ctrl-C."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    from multiprocessing import forkserver

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    # pebble's workers ignore Ctrl-C too, but one that dies of it while it starts breaks the whole pool.
    here = threading.current_thread() is threading.main_thread()
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN) if here else None
    try:
        forkserver.ensure_running()
    finally:
        if handler is not None:
            signal.signal(signal.SIGINT, handler)
    return context


def _end_with_parent() -> None:
    """A process whose run was killed ends too."""
    threading.Thread(target=_die_with_parent, daemon=True).start()


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        with contextlib.suppress(Exception):
            parent.join()
            os._exit(1)
