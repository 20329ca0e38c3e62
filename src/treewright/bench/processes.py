"""An executor that gives every call a process of its own."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any

from treewright.exceptions import InvalidInputError

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
    """Calls in processes of their own, some at a time.

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
        server = "forkserver" in multiprocessing.get_all_start_methods()
        self._context: Any = multiprocessing.get_context("forkserver" if server else "spawn")
        if server:
            self._context.set_forkserver_preload(_PRELOADED)
        self._threads = ThreadPoolExecutor(jobs)
        self._kill_after = kill_after
        self._running: set[Any] = set()
        self._lock, self._stopped = threading.Lock(), False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call `fn` in a process as soon as there is room."""
        try:
            call = pickle.dumps((fn, args, kwargs))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise InvalidInputError(
                f"{error}; what runs in processes must stand at the top level of a module (or use jobs=0)"
            ) from None
        return self._threads.submit(self._call, call)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls; with `cancel_futures`, drop those that wait and kill those that run."""
        if cancel_futures:
            with self._lock:
                self._stopped = True
                for process in self._running:
                    process.kill()
        self._threads.shutdown(wait, cancel_futures=cancel_futures)

    def _call(self, call: bytes) -> Any:
        ours, theirs = self._context.Pipe(duplex=False)
        process = self._context.Process(target=_answer, args=(theirs, call), daemon=False)
        with self._lock:
            if self._stopped:
                raise ProcessDied("the run was stopped")
            process.start()
            self._running.add(process)
        theirs.close()
        try:
            if not ours.poll(self._kill_after):
                process.kill()
                raise ProcessDied(f"killed after {self._kill_after:g} seconds")
            good, value = ours.recv()
        except EOFError:
            process.join(_PATIENCE)
            raise ProcessDied(_how_it_ended(process.exitcode)) from None
        finally:
            process.join(_PATIENCE)
            if process.is_alive():  # it has answered, or was killed, and some thread keeps it
                process.kill()
                process.join()
            with self._lock:
                self._running.discard(process)
            ours.close()
        if good:
            return value
        raise value


def _answer(answer: Connection, call: bytes) -> None:
    """What the process does: call, and send the result or the error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with_parent, daemon=True).start()
    try:
        fn, args, kwargs = pickle.loads(call)
        sent = True, fn(*args, **kwargs)
    except Exception as error:
        sent = False, error
    try:
        answer.send(sent)
    except BrokenPipeError:
        pass
    except Exception as error:  # a result or an error that cannot be pickled
        answer.send((False, ProcessDied(f"{type(error).__name__}: {error}")))


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        with contextlib.suppress(Exception):
            parent.join()
            os._exit(1)


def _how_it_ended(code: int | None) -> str:
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            return f"the process was ended by {signal.Signals(-code).name}"
    return f"the process ended with exit code {code}"
