"""What a command says, and where: results on stdout, the rest on stderr."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TextIO

from treewright.cli.interrupts import Interrupts
from treewright.core.budget import Budget
from treewright.core.files import told_of_files
from treewright.core.names import printable
from treewright.core.progress import Event, Listener, printer, reported

__all__ = ["Console", "finite"]

_ORDER = ("model", "predictions", "suspects", "report", "html_report")
"""Of files, where they are told."""
_CHANGE = 0.3
"""Seconds at least between changes of the line of progress, and before the first."""


def finite(value: float) -> float | None:
    """Return a number that JSON output of a command has, None for infinity and NaN."""
    return float(value) if math.isfinite(value) else None


@dataclass
class Console:
    """Where the output of one command goes."""

    json: bool = False
    """Whether stdout gets one JSON document and nothing else."""
    quiet: bool = False
    """Whether stdout gets nothing (unless `json`)."""
    written: dict[str, str] = field(default_factory=dict)
    """Files written so far, by what they are."""
    warned: list[str] = field(default_factory=list)
    """Warnings issued so far."""
    interrupts: Interrupts = field(default_factory=Interrupts)
    """What came of Ctrl-C."""
    answered: bool = False
    """Whether stdout has its JSON document."""
    verbose: bool = False
    """Whether progress is printed line by line."""
    in_line: bool = False
    """Whether a terminal shows progress, in a line that the next one takes the place of."""
    _lines: Listener = field(default_factory=printer)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _shown: float = field(default_factory=time.monotonic)

    @contextlib.contextmanager
    def writing(self, what: str, path: str) -> Iterator[None]:
        """Note that a file is written, in the moment in which it is."""

        def note(_: str) -> None:
            found = self.written | {what: path}
            self.written = {kind: found[kind] for kind in _ORDER if kind in found}

        with told_of_files(note):
            yield

    @contextlib.contextmanager
    def reported(self) -> Iterator[None]:
        """Show how far the work of the block is, if anybody is to see that."""
        if not self.verbose and (self.quiet or sys.stderr is None or not sys.stderr.isatty()):
            yield
            return
        try:
            with reported(self.progress):
                yield
        finally:
            self.clear()

    def progress(self, event: Event) -> None:
        """Show how far work is: where that is asked for in lines, else in one that changes."""
        if self.verbose:
            self._lines(event)
            return
        with self._lock:
            now = time.monotonic()
            if now - self._shown < _CHANGE:
                return
            self._shown, columns = now, shutil.get_terminal_size().columns - 1
            text = printable(str(event))[:columns]
            with contextlib.suppress(OSError, ValueError, UnicodeError):
                sys.stderr.write(f"\r{text.ljust(columns)}\r")
                sys.stderr.flush()
            self.in_line = True

    def clear(self) -> None:
        """Take progress off the terminal."""
        with self._lock:
            if self.in_line:
                self.in_line = False
                with contextlib.suppress(OSError, ValueError):
                    sys.stderr.write("\r" + " " * (shutil.get_terminal_size().columns - 1) + "\r")
                    sys.stderr.flush()

    def result(self, text: str, document: dict[str, Any]) -> None:
        """Print what the command found, as text or as JSON."""
        if self.json:
            self.answered = True
            self._print(json.dumps(document, allow_nan=False), sys.stdout)
        elif not self.quiet:
            self._print(text, sys.stdout)

    def fail(self, error: BaseException, message: str) -> None:
        """Print an error: one line on stderr, and a JSON document on stdout if that is asked for."""
        message = _one_line(message)
        self._print(f"treewright: error: {message}", sys.stderr)
        if self.json and not self.answered:
            self._print(json.dumps({"error": {"type": type(error).__name__, "message": message}}), sys.stdout)

    def note(self, text: str) -> None:
        """Print a line on stderr at once."""
        with contextlib.suppress(RuntimeError):  # a signal may come while the stream is being written to
            self._print(f"treewright: {text}", sys.stderr)

    def interrupted(
        self, so: str = "the search ends, and its best result so far is written; a second Ctrl-C breaks off"
    ) -> None:
        """Say that a Ctrl-C was seen, and what comes of it."""
        self.interrupts.seen = True
        self.note(f"Ctrl-C seen: {so}")

    def written_lines(self) -> list[str]:
        """Files that were written."""
        return [f"{what.replace('_', ' ')} written to {path}" for what, path in self.written.items()]

    def interrupted_words(self) -> str:
        """What a Ctrl-C left behind."""
        files = ", ".join(f"{what.replace('_', ' ')} {path}" for what, path in self.written.items())
        return f"interrupted; written: {files}" if files else "interrupted; nothing written"

    @contextlib.contextmanager
    def finishing(self) -> Iterator[None]:
        """Let a first Ctrl-C break off nothing: what is written now is the best result there is."""
        if self.interrupts.seen:
            yield
            return
        with Budget().stop_on_interrupt():
            yield

    @contextlib.contextmanager
    def warnings(self) -> Iterator[None]:
        """Print warnings as single lines."""
        from treewright.app.warned import without_own_words

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            text = _one_line(str(message))
            if text in self.warned:  # by labels, tree and estimate alike: once is enough
                return
            self.warned.append(text)
            self._print(f"treewright: warning: {text}", sys.stderr)

        with warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)
            for category in (DeprecationWarning, FutureWarning):
                warnings.simplefilter("ignore", category)
            without_own_words()
            warnings.showwarning = show
            yield

    def _print(self, text: str, stream: TextIO) -> None:
        with self._lock:
            self.clear()
            _print(text, stream)


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def _print(text: str, stream: TextIO) -> None:
    """Print; a reader that has gone away (``| head``) is no error, and a poor encoding loses no line.

    Whatever names have slipped into the text, no line has anything that a terminal would obey.
    """
    text = "\n".join(map(printable, text.split("\n")))
    try:
        encoding = getattr(stream, "encoding", None) or "utf-8"
        print(text.encode(encoding, "backslashreplace").decode(encoding), file=stream, flush=True)
    except BrokenPipeError:
        # Python flushes once more at its end: give it something to flush to
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
