"""An executor that gives every call a process of its own."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from treewright.exceptions import InvalidInputError, PackageNotInstalledError

__all__ = ["InThisProcess", "OwnProcesses", "ProcessDied"]

_PRELOADED = ["numpy", "scipy.optimize", "scipy.sparse.linalg", "sklearn.ensemble", "sklearn.svm", "highspy", "numba"]
"""Imported once and shared by all processes, so that no fit has to. Nothing of this package: another copy than the
caller's might be found."""

_PATIENCE = 10.0
"""Seconds that a process may take to end after its answer."""


class ProcessDied(RuntimeError):
    """The process of a call ended without an answer; the text says how."""


class InThisProcess(Executor):
    """Calls at once, here: for a debugger, and for functions that other processes cannot import.

    Examples
    --------
    >>> InThisProcess().submit(divmod, 7, 2).result()
    (3, 1)
    """

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call `fn` and return its result as a future."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class OwnProcesses(Executor):
    """Calls in processes of their own, some at a time, by pebble.

    A call cannot harm another: a crash, or memory that runs out, ends its own process. Ctrl-C does not reach them: a
    fit that ends early because of it would look like any other.

    Parameters
    ----------
    jobs : int
        How many at a time.
    kill_after : float or None
        Seconds after which a process is killed.
    """

    def __init__(self, jobs: int = 1, kill_after: float | None = None) -> None:
        if jobs < 1:
            raise InvalidInputError(f"jobs is {jobs!r}; it must be at least 1")
        try:
            from pebble import ProcessPool
        except ImportError:
            raise PackageNotInstalledError(
                "rows in processes of their own need pebble: pip install 'treewright[bench]', or use jobs=0"
            ) from None
        self._pool = ProcessPool(jobs, max_tasks=1, initializer=_end_with_parent, context=_context())
        self._kill_after = kill_after

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call `fn` in a process as soon as there is room."""
        try:
            call = pickle.dumps((fn, args, kwargs))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise InvalidInputError(
                f"{error}; what runs in processes must stand at the top level of a module (or use jobs=0)"
            ) from None
        return _Call(self._pool.schedule(_answer, args=(call,), timeout=self._kill_after))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls; with `cancel_futures`, drop those that wait and kill those that run."""
        if cancel_futures:
            self._pool.stop()
        else:
            self._pool.close()
        if wait:
            self._pool.join()


class _Call(Future[Any]):
    """What a process answers, or how it ended without an answer."""

    def __init__(self, process: Future[bytes]) -> None:
        super().__init__()
        self._process = process
        process.add_done_callback(self._ended)

    def cancel(self) -> bool:
        """Drop the call, or kill its process."""
        return super().cancel() and (self._process.cancel() or True)

    def _ended(self, process: Future[bytes]) -> None:
        if process.cancelled():
            super().cancel()
        if not self.set_running_or_notify_cancel():
            return
        error = process.exception()
        if error is not None:
            self.set_exception(ProcessDied(_how_it_ended(error)))
            return
        good, value = pickle.loads(process.result())
        if good:
            self.set_result(value)
        else:
            self.set_exception(value)


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


def _answer(call: bytes) -> bytes:
    """What the process does: call, and give the result or the error."""
    try:
        fn, args, kwargs = pickle.loads(call)
        given = True, fn(*args, **kwargs)
    except Exception as error:
        given = False, error
    # Threads that a fit left behind keep a process that has answered no longer than this.
    patience = threading.Timer(_PATIENCE, os._exit, (0,))
    patience.daemon = True
    patience.start()
    try:
        return pickle.dumps(given)
    except Exception as error:  # a result or an error that cannot be pickled
        return pickle.dumps((False, ProcessDied(f"{type(error).__name__}: {error}")))


def _end_with_parent() -> None:
    """A process whose run was killed ends too."""
    threading.Thread(target=_die_with_parent, daemon=True).start()


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        with contextlib.suppress(Exception):
            parent.join()
            os._exit(1)


def _how_it_ended(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return f"killed after {error.args[1]:g} seconds"
    code = getattr(error, "exitcode", None)
    if code is None:
        return f"{type(error).__name__}: {error}"
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"the process was ended by {signal.Signals(-code).name}"
    return f"the process ended with exit code {code}"
