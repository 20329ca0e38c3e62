"""Ctrl-C, and being told to end, while a command runs: what it does, and how the process ends."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Self

__all__ = ["EXIT_INTERRUPTED", "EXIT_TERMINATED", "Interrupts", "end_process", "say_at_once"]

EXIT_INTERRUPTED, EXIT_TERMINATED = 130, 143
"""After Ctrl-C, and after SIGTERM; whatever was written."""
_PATIENCE = 2.0
"""Seconds in which a command that is broken off may tidy up."""


class Interrupts:
    """What becomes of Ctrl-C and SIGTERM from the first line of a command to its last.

    The work of a fit takes the first for itself (:meth:`treewright.core.budget.Budget.stop_on_interrupt`) and ends with
    its best result. All else is broken off by :class:`KeyboardInterrupt`; a process that does not come to its end by
    that within two seconds is ended. SIGTERM is taken for a Ctrl-C.

    Parameters
    ----------
    own_process : bool
        Whether the process is there for the command alone, and may be ended.
    """

    def __init__(self, own_process: bool = False) -> None:
        self.own_process = own_process
        self.seen = False
        """Whether there was any."""
        self.terminated = False
        """Whether it was SIGTERM."""
        self.breaking = False
        """Whether the command was broken off."""
        self.last_words: Callable[[], None] = lambda: say_at_once("interrupted; nothing written")
        """What is said before the process is ended, as nothing else will be."""
        self._waiting = True
        self._previous: list[tuple[signal.Signals, Callable[[int, FrameType | None], object] | int]] = []

    @property
    def code(self) -> int:
        """The exit code after one."""
        return EXIT_TERMINATED if self.terminated else EXIT_INTERRUPTED

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number, handler in ((signal.SIGINT, self._broken_off), (signal.SIGTERM, self._told_to_end)):
                previous = signal.getsignal(number)
                if previous is not None and previous != signal.SIG_IGN:  # not ours to change: nohup
                    self._previous.append((number, previous))
                    signal.signal(number, handler)
        return self

    def __exit__(self, *error: object) -> None:
        if self.own_process:  # which is about to end
            return
        for number, previous in self._previous:
            signal.signal(number, previous)

    def begin(self) -> None:
        """Let them break off from now on: imports must not end in the middle of compiled modules."""
        self._waiting = False
        if self.seen:
            self._break_off()

    def _told_to_end(self, number: int, frame: FrameType | None) -> None:
        self.terminated = True
        present = signal.getsignal(signal.SIGINT)  # that of the work that goes on now
        if callable(present):
            present(number, frame)
        else:
            self._broken_off(number, frame)

    def _broken_off(self, number: int, frame: FrameType | None) -> None:
        again, self.seen = self.seen, True
        if self.own_process and (self.breaking or (again and self._waiting)):
            self._end()
        elif not self._waiting:
            self._break_off()

    def _break_off(self) -> None:
        budget = sys.modules.get("treewright.core.budget")  # not imported before Ctrl-C is answered
        if budget is None or not budget.are_interrupts_caught():
            self.breaking = True
            if self.own_process:
                timer = threading.Timer(_PATIENCE, self._end)
                timer.daemon = True
                timer.start()
        raise KeyboardInterrupt

    def _end(self) -> None:
        self.last_words()
        os._exit(self.code)


def say_at_once(text: str, in_line: bool = False) -> None:
    """Say in the midst of whatever a command is writing, `in_line` or not, that the process is ended."""
    with contextlib.suppress(OSError, ValueError):
        line = "\n" * in_line + f"treewright: error: {text}, ended at once\n"
        os.write(sys.stderr.fileno(), line.encode("utf-8", "backslashreplace"))


def end_process(code: int, interrupted: bool) -> None:
    """Make a process whose command is done safe to end, or end it where threads go on in code that is not Python's.

    Such a thread that comes back to an interpreter that is ending would abort the process.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(ValueError):  # not the main thread
            signal.signal(number, signal.SIG_IGN)
    working = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
    if not (interrupted and working) and not any(name.startswith("treewright") for name in working):
        return
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    if "multiprocessing" in sys.modules:
        from multiprocessing import active_children

        for child in active_children():
            child.terminate()
    os._exit(code)
