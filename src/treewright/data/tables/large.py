"""Tables that stay in their file: columns are read one at a time, rows in parts."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from treewright.core.arrays import IntArray
from treewright.core.files import passing_folder
from treewright.data.tables.cells import known_kinds, number_texts, read_column
from treewright.data.tables.files import (
    LOOK,
    Table,
    first_rows,
    opened_table,
    parsing_errors,
    read_opened,
    scanned_rows,
    source_words,
)
from treewright.data.tables.text_files import TextFile

__all__ = ["FileTable", "open_table"]

_TEXT_BYTES = 1_000_000_000
"""Text files up to this size are read as a whole."""
_FILE_CELLS = 60_000_000
"""Other files up to this many cells are read as a whole."""
_READ_CELLS = 10_000_000
"""Cells that are read from a file at once."""


class FileTable(Table):
    """A table of a file, of which a column or some rows are in memory at a time.

    Parameters
    ----------
    source : polars LazyFrame
        The rows, yet to be read.
    path : Path
        Name of the file, for texts.
    na : collection of str
        Values that are missing too.
    written : bool
        Whether all columns are text as it was written, of which those of numbers become numbers.
    text : collection of str
        Columns that are text in any case.
    """

    def __init__(
        self, source: pl.LazyFrame, path: Path, na: Collection[str], written: bool, text: Collection[str]
    ) -> None:
        self._source, self._path, self._na, self._written, self._text = source, path, na, written, frozenset(text)
        with parsing_errors(path):
            self._names = source.collect_schema().names()
            self._n_rows = int(source.select(pl.len()).collect().item())
        self.first_row = 1
        self.source = ""
        self._kinds: dict[str, Any] = {}
        self._last: pl.Series | None = None

    def __getattr__(self, name: str) -> Any:
        if name == "frame":  # what a table in memory has: read where somebody needs it all
            return pl.DataFrame([self.series(column) for column in self._names])
        raise AttributeError(name)

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._names)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self._n_rows

    def series(self, name: str) -> pl.Series:
        """Read a column; that which was read last is kept."""
        if self._last is None or self._last.name != name:
            if name not in self._names:
                return super().series(name)
            self._last = None
            with parsing_errors(self._path):
                column = self._source.select(name).collect().to_series()
            self._last = self._converted(column, name in self._text)
            self._kinds[name] = self._last.dtype
        return self._last

    def is_numeric(self, name: str) -> bool:
        """Whether the column holds numbers."""
        return bool((self._kinds.get(name) or self.series(name).dtype) == pl.Float64)

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[Table]:
        """Some columns, so many rows at a time."""
        self._last = None
        # a part of a file is unpacked by groups of rows: many are read at once, and handed on in parts
        step = max(1, _READ_CELLS // max(1, len(columns)) // batch_rows) * batch_rows
        for start in range(0, self._n_rows, step):
            with parsing_errors(self._path):
                read = self._source.select(columns).slice(start, step).collect()
            for at in range(0, read.height, batch_rows):
                yield self._part(read.slice(at, batch_rows), start + at + 1)

    def taken(self, rows: IntArray, columns: Sequence[str]) -> Table:
        """Some columns of some rows, whose numbers are sorted."""
        self._last = None
        step, parts = max(1, _READ_CELLS // max(1, len(columns))), []
        for start in range(0, self._n_rows, step):
            low, high = np.searchsorted(rows, [start, start + step])
            if low < high:  # what is not asked for is not read, or not looked at
                with parsing_errors(self._path):
                    read = self._source.select(columns).slice(start, step).collect()
                parts.append(read[rows[low:high] - start])
        return self._part(pl.concat(parts), 1)

    def head(self, n_rows: int) -> Table:
        """The first rows."""
        with parsing_errors(self._path):
            return self._part(self._source.head(n_rows).collect(), 1)

    def whole(self) -> Table:
        """The table in memory."""
        table = Table(self.frame)
        table.source = self.source
        return table

    def _part(self, read: pl.DataFrame, first_row: int) -> Table:
        """Rows of the file, of the kinds that the columns have as a whole where that is known."""
        columns = []
        for part in read.get_columns():
            kind = self._kinds.get(part.name)
            column = self._converted(part, part.name in self._text or kind == pl.String)
            columns.append(number_texts(column) if kind == pl.String and column.dtype == pl.Float64 else column)
        return Table(pl.DataFrame(columns), first_row)

    def _converted(self, column: pl.Series, text: bool) -> pl.Series:
        if self._written:
            return read_column(column, self._na, text)
        return known_kinds([column], f"{self._path}: ", self._na)[0]


@contextlib.contextmanager
def open_table(
    path: str | os.PathLike[str],
    na: Collection[str] = (),
    *,
    encoding: str | None = None,
    text: Collection[str] = (),
    look: Callable[[Table], object] | None = None,
) -> Iterator[Table]:
    r"""Open a table in a file: in memory or, where it is large, column by column and part by part.

    A large text file is rewritten as a passing parquet file, which is removed at the end.

    Parameters
    ----------
    path, na, encoding, text, look
        As for :func:`read_table`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "people.csv"
    ...     _ = path.write_text("age,region\n31,north\n45,NA\n28,south\n")
    ...     with open_table(path) as table:
    ...         [part["age"].tolist() for part in table.batches(["age"], 2)]
    [[31.0, 45.0], [28.0]]
    """
    path = Path(path)
    marks = frozenset(value.strip() for value in na)
    with opened_table(path, encoding) as source:
        first = first_rows(source, path)
        if first.height < LOOK or not _is_large(source, path):
            yield read_opened(source, first, path, marks, text, look)
            return
        if look is not None:
            look(read_opened(source, first.head(LOOK - 1), path, marks, text, None))
        if not isinstance(source, TextFile):
            table = FileTable(source, path, marks, False, text)
            table.source = source_words(source, path)
            yield table
            return
        with passing_folder() as folder:
            copy = folder / "table.parquet"
            with parsing_errors(path):
                scanned_rows(source).sink_parquet(copy, compression="lz4")
            table = FileTable(pl.scan_parquet(copy, glob=False), path, marks, True, text)
            table.source = source_words(source, path)
            yield table


def _is_large(source: TextFile | pl.LazyFrame, path: Path) -> bool:
    if isinstance(source, TextFile):
        return source.path.stat().st_size > _TEXT_BYTES
    with parsing_errors(path):
        return int(source.select(pl.len()).collect().item()) * len(source.collect_schema()) > _FILE_CELLS
