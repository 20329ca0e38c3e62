"""Rows in a file that only grows: JSON lines, one a row."""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from harness.specification import Row
from treewright.data.columns_checked import listing
from treewright.exceptions import InvalidInputError

try:
    import fcntl
except ImportError:  # Windows has no such locks; a single write at the end of the file has to do there
    fcntl = None  # type: ignore[assignment]

__all__ = ["Store", "latest"]


class Store:
    """Rows in a file.

    A row is one write at the end of the file under a lock, so two runs may use one file. What a killed run left of a
    line is ended by the next write and left out when rows are read. Numbers that JSON has no word for are null.

    Parameters
    ----------
    path : path-like
        The file; made with its folder by the first row.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(Path(folder) / "rows.jsonl")
    ...     store.append({"key": "a", "accuracy": 0.5})
    ...     store.rows()
    [{'key': 'a', 'accuracy': 0.5}]
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def append(self, row: Mapping[str, Any]) -> None:
        """Write a row."""
        line = (json.dumps(_plain(row), allow_nan=False) + "\n").encode()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)  # ends with the file's closing
            size = os.fstat(file).st_size
            if size and _last_byte(file, size) != b"\n":
                line = b"\n" + line
            if os.write(file, line) < len(line):
                raise OSError(f"{self.path} took only a part of a row; is the disk full?")
        finally:
            os.close(file)

    def rows(self, specification: str | None = None) -> list[Row]:
        """Return the rows, those of one specification if it is named.

        Warns
        -----
        UserWarning
            If a line other than the last cannot be read.
        """
        if not self.path.exists():
            return []
        lines = self.path.read_bytes().split(b"\n")
        rows, broken = [], []
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError:  # of JSON, or of UTF-8
                broken.append(number)
                continue
            if not isinstance(row, dict):
                raise InvalidInputError(f"{self.path} is not a store: line {number} is not an object")
            rows.append(row)
        if [number for number in broken if number < len(lines)]:
            warnings.warn(f"{self.path}: left out the broken lines {listing(broken)}", UserWarning, stacklevel=2)
        return [row for row in rows if specification is None or row.get("specification") == specification]


def _last_byte(file: int, size: int) -> bytes:
    os.lseek(file, size - 1, os.SEEK_SET)  # writes go to the end all the same
    return os.read(file, 1)


def latest(rows: Iterable[Row], by: Iterable[str] = ("key",)) -> list[Row]:
    """Return the last row of each key, in the order in which keys first came.

    Examples
    --------
    >>> latest([{"key": "a", "n": 1}, {"key": "b", "n": 2}, {"key": "a", "n": 3}])
    [{'key': 'a', 'n': 3}, {'key': 'b', 'n': 2}]
    """
    fields = tuple(by)
    return list({tuple(row.get(field) for field in fields): row for row in rows}.values())


def _plain(value: Any) -> Any:
    """What JSON has words for."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        return {str(name): _plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)
