"""Entry point: run a command, turn errors into one line and an exit code."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import traceback
from collections.abc import Iterator, Sequence

from treewright.budget import Budget, told_of_interrupts
from treewright.cli.console import Console
from treewright.cli.parser import (
    EXIT_FAILURE,
    EXIT_INPUT,
    EXIT_INTERRUPTED,
    EXIT_MODEL_FILE,
    EXIT_SOLVER,
    make_parser,
)
from treewright.exceptions import MissingLicenseError, ModelFileError, SolverNotInstalledError

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str or None
        Arguments, by default those of the process.

    Returns
    -------
    int
        The exit code; ``treewright --help`` lists them.

    Examples
    --------
    >>> main(["show", "no-such-model.json", "--json"])
    {"error": {"type": "ModelFileError", "message": "no-such-model.json: there is no such file"}}
    4
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    console = Console(json="--json" in arguments)
    try:
        args = make_parser().parse_args(arguments)
        console.quiet = getattr(args, "quiet", False)
        # Imports take a second or two; a Ctrl-C must not end them halfway, in the middle of compiled modules.
        loading = Budget()
        with loading.stop_on_interrupt(), _nothing_collected():
            from treewright.cli.commands import COMMANDS
        if loading.interrupted:
            raise KeyboardInterrupt
        with console.warnings(), told_of_interrupts(console.interrupted):
            return COMMANDS[args.command](args, console)
    except KeyboardInterrupt as error:
        written = ", ".join(console.written.values()) or "nothing"
        console.fail(error, f"interrupted; written so far: {written}")
        return EXIT_INTERRUPTED
    except Exception as error:
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
