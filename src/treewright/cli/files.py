"""Files that commands write: checked before the work, and reports."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from treewright.app.labelled_table import is_page, report_bytes
from treewright.cli.console import Console
from treewright.core.files import is_special, replacing
from treewright.exceptions import InvalidInputError
from treewright.report import Facts

__all__ = ["check_outputs", "report_paths", "write_reports"]


def report_paths(paths: Sequence[str]) -> dict[str, str]:
    """Reports that ``--report`` of a command asks for, by what they are called: that with ``.html`` behind is a page.

    Examples
    --------
    >>> report_paths(["r.txt", "r.HTML"])
    {'report': 'r.txt', 'html_report': 'r.HTML'}
    """
    found: dict[str, str] = {}
    for path in paths:
        kind = "html_report" if is_page(path) else "report"
        if kind in found:
            what = "an HTML page" if kind == "html_report" else "plain text"
            raise InvalidInputError(
                f"--report {path}: {found[kind]} is {what} already; one of each kind can be asked for"
            )
        found[kind] = path
    return found


def write_reports(paths: Sequence[str], facts: Facts, console: Console) -> None:
    """Write the reports that a command was asked for in UTF-8, each entirely or not at all."""
    facts = replace(facts, warnings=tuple(console.warned))
    for kind, path in report_paths(paths).items():
        text = report_bytes(facts, path)
        with console.writing(kind, path), replacing(path) as file:
            file.write(text)


def check_outputs(outputs: Mapping[str, str | None], data: str) -> None:
    """Refuse outputs of a command that could not be written, before any work is done for them.

    Parameters
    ----------
    outputs : mapping of str to (str or None)
        Option and path; None for an option that is not given.
    data : str
        Path of the input table, which must not be overwritten.
    """
    taken = {os.path.realpath(data): "DATA"}
    for option, path in outputs.items():
        if path is None:
            continue
        if is_special(path):  # written to as it is, which can be tried only by doing it
            if not os.access(path, os.W_OK):
                raise InvalidInputError(f"{option} {path}: cannot be written: Permission denied")
            continue
        real = Path(os.path.realpath(path))
        other = taken.setdefault(str(real), option)
        if other != option:
            raise InvalidInputError(f"{option} {path}: this is the same file as {other}")
        if not real.parent.is_dir():
            raise InvalidInputError(f"{option} {path}: there is no folder {Path(path).parent}; make it first")
        if real.exists() and not real.is_file():
            raise InvalidInputError(f"{option} {path}: exists and is not a regular file")
        try:
            if real.exists() and not os.access(real, os.W_OK):
                raise PermissionError(13, "the file is read-only")
            with tempfile.TemporaryFile(dir=real.parent):
                pass
        except OSError as error:
            raise InvalidInputError(f"{option} {path}: cannot be written: {error.strerror}") from error
