"""Entry point: run a command, turn errors into one line and an exit code."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import traceback
from collections.abc import Iterator, Sequence

from treewright.cli.console import Console
from treewright.cli.interrupts import Interrupts, say_at_once
from treewright.cli.parser import EXIT_FAILURE, EXIT_INPUT, EXIT_MODEL_FILE, EXIT_SOLVER, make_parser
from treewright.core.budget import told_of_interrupts
from treewright.core.names import on_command_line, printable
from treewright.core.progress import stage
from treewright.exceptions import MissingLicenseError, ModelFileError, SolverNotInstalledError

__all__ = ["run"]


def run(argv: Sequence[str] | None, interrupts: Interrupts) -> int:
    """Run a command and return its exit code; `interrupts` are those that came since the program began to load."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    console = Console(json="--json" in arguments, interrupts=interrupts)
    interrupts.last_words = lambda: say_at_once(printable(console.interrupted_words()), console.in_line)
    try:
        args = make_parser().parse_args(arguments)
        console.quiet, console.verbose = getattr(args, "quiet", False), getattr(args, "verbose", False)
        with console.reported():
            with _nothing_collected(), stage("the program is loaded"):
                from treewright.cli.commands import COMMANDS
            interrupts.begin()
            with on_command_line(), console.warnings(), told_of_interrupts(console.interrupted):
                code = COMMANDS[args.command](args, console)
        if interrupts.seen:
            console.note(console.interrupted_words())
        return interrupts.code if interrupts.seen else code
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) or interrupts.breaking:  # others may be made of it on its way
            console.fail(KeyboardInterrupt(), console.interrupted_words())
            return interrupts.code
        if not isinstance(error, Exception):
            raise
        if os.environ.get("TREEWRIGHT_DEBUG", "") not in ("", "0"):
            traceback.print_exc()
        code = _exit_code(error)
        written = ", ".join(console.written.values())
        console.fail(error, _message(error, code) + (f"; already written: {written}" if written else ""))
        return code


@contextlib.contextmanager
def _nothing_collected() -> Iterator[None]:
    """Imports make much that stays: looking for garbage among it would take a tenth of their time."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _exit_code(error: Exception) -> int:
    if isinstance(error, SolverNotInstalledError | MissingLicenseError):
        return EXIT_SOLVER
    if isinstance(error, ModelFileError):
        return EXIT_MODEL_FILE
    # estimators answer bad data and parameters with ValueError or one of its subclasses
    return EXIT_INPUT if isinstance(error, ValueError | FileNotFoundError) else EXIT_FAILURE


def _message(error: Exception, code: int) -> str:
    text = " ".join(str(error).split())
    if isinstance(error, OSError) and error.filename is not None:
        text = f"{error.filename}: {error.strerror}"
    if code == EXIT_FAILURE:
        return f"unexpected {type(error).__name__}: {text} (TREEWRIGHT_DEBUG=1 shows where)"
    return text or type(error).__name__
