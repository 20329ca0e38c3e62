"""Tables in files, read by polars.

A column is numeric (Float64), text (String) or, in parquet and Excel, of dates (Date, Datetime). Rows are numbered from
1 in texts and files, the header not counted.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from treewright.core.arrays import BoolArray, IntArray
from treewright.data.columns_checked import AnyArray, Coded, listing
from treewright.data.tables.cells import (
    are_plain_numbers,
    as_series,
    has_large_numbers,
    is_number,
    known_kinds,
    number_texts,
    read_column,
)
from treewright.data.tables.text_files import STRIDE, TextFile, check_names, reading_errors, text_file
from treewright.exceptions import InvalidInputError

__all__ = [
    "LOOK",
    "Table",
    "first_rows",
    "opened_table",
    "parsing_errors",
    "read_cells",
    "read_opened",
    "read_table",
    "scanned_rows",
    "source_words",
    "table_batches",
    "table_kind",
]

_TEXT_SUFFIXES = (".csv", ".tsv", ".txt")
_PARQUET_SUFFIXES = (".parquet", ".pq")
_EXCEL_SUFFIXES = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
LOOK = 10_000
"""Rows whose columns of numbers are read as such; if others are not, all are read as text first."""
_BATCH = 200_000


class Table:
    """Columns of equal length.

    Parameters
    ----------
    columns : mapping of str to array-like, or polars DataFrame
        The columns in order: numbers with NaN for missing, strings with None for missing, or dates.
    first_row : int, default=1
        Number of the first row, for texts: that of a batch in its file.

    Attributes
    ----------
    frame : polars DataFrame
        The columns: Float64, String, Date or Datetime, missing values null.
    source : str
        What kind of file it was read from, in words; empty for one that was not.

    Examples
    --------
    >>> table = Table({"age": [31.0, 45.0], "region": ["north", None]})
    >>> table.n_rows, table.is_numeric("age"), table.missing("region").tolist()
    (2, True, [False, True])
    >>> table["age"]
    array([31., 45.])
    """

    def __init__(self, columns: Mapping[str, Any] | pl.DataFrame, first_row: int = 1) -> None:
        if isinstance(columns, pl.DataFrame):
            parts = columns.get_columns()
        else:
            parts = [as_series(name, values) for name, values in columns.items()]
        lengths = {len(part) for part in parts}
        if len(lengths) > 1:
            raise InvalidInputError(f"the columns of a table have different lengths: {sorted(lengths)}")
        self.frame = pl.DataFrame(known_kinds(parts, "", None))
        self.first_row = first_row
        self.source = ""

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return self.frame.columns

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.frame.height

    def series(self, name: str) -> pl.Series:
        """Return a column as polars has it."""
        try:
            return self.frame.get_column(name)
        except pl.exceptions.ColumnNotFoundError:
            raise InvalidInputError(f"there is no column {name!r}; columns: {listing(self.columns)}") from None

    def __getitem__(self, name: str) -> AnyArray:
        """Return a column as an array: float64 with NaN for missing, or objects that are str or None for missing."""
        column = self.series(name)
        return self.as_text(name) if column.dtype.is_temporal() else np.asarray(column.to_numpy())

    def is_numeric(self, name: str) -> bool:
        """Whether the column holds numbers."""
        return self.series(name).dtype == pl.Float64

    def missing(self, name: str) -> BoolArray:
        """Mask of the missing values of a column."""
        return np.asarray(self.series(name).is_null().to_numpy())

    def coded(self, name: str) -> Coded:
        """Return a column as text, by the numbers of its different values."""
        text = number_texts(self.series(name))
        names = text.drop_nulls().unique().sort()
        codes = text.cast(pl.Enum(names)).to_physical().cast(pl.Int32).fill_null(-1)
        return Coded(names.to_list(), codes.to_numpy())

    def as_text(self, name: str) -> AnyArray:
        """Return a column as text; whole numbers are written without a decimal point."""
        return np.asarray(number_texts(self.series(name)).to_numpy(), dtype=object)

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[Table]:
        """Some columns, so many rows at a time."""
        chosen = self.frame.select(columns)
        for start in range(0, self.n_rows, batch_rows):
            yield self._sliced(chosen.slice(start, batch_rows), self.first_row + start)

    def taken(self, rows: IntArray, columns: Sequence[str]) -> Table:
        """Some columns of some rows, whose numbers are sorted."""
        return self._sliced(self.frame.select(columns)[rows])

    def head(self, n_rows: int) -> Table:
        """The first rows."""
        return self._sliced(self.frame.head(n_rows), self.first_row)

    def _sliced(self, frame: pl.DataFrame, first_row: int = 1) -> Table:
        """A part of a table in memory, whose columns are of known kinds."""
        part = Table.__new__(Table)
        part.frame, part.first_row, part.source = frame, first_row, ""
        return part

    def whole(self) -> Table:
        """The table in memory, which it is."""
        return self


# ---------------------------------------------------------------------- reading


def read_table(
    path: str | os.PathLike[str],
    na: Collection[str] = (),
    *,
    encoding: str | None = None,
    text: Collection[str] = (),
    look: Callable[[Table], object] | None = None,
) -> Table:
    r"""Read a table from a file.

    Parameters
    ----------
    path : path-like
        ``.csv``, ``.tsv`` or ``.txt`` with a header and one of the delimiters ``, ; tab |``, also with ``.gz`` behind
        it, or ``.parquet``, or the first sheet of ``.xlsx``, ``.xlsm``, ``.xlsb``, ``.xls`` or ``.ods`` (which needs
        fastexcel: ``pip install "treewright[excel]"``).
    na : collection of str
        Values that are missing too, as they are written in the file; in a numeric column of a parquet or Excel file,
        numbers.
    encoding : str or None
        Encoding of a text file, as Python calls it. None is UTF-8, UTF-16 if the file begins with its mark, and for
        what cannot be UTF-8 cp1252 or latin-1, with a warning.
    text : collection of str
        Columns of a text file that are not taken for numbers but kept as they are written, ``007`` for instance.
    look : callable or None
        Called with the first rows before the others are read: what cannot be used can be refused at once.

    Returns
    -------
    Table
        A column is numeric if all its values are numbers; but whole numbers of which some have a zero in
        front, ``007`` for instance, are codes, and text. Empty, NA, N/A, #N/A, <NA>, NaN and null (in any case)
        are missing. Whole numbers too large for float64 are kept as text.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    InvalidInputError
        If the file cannot be read as a table; the text has the place.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "people.csv"
    ...     _ = path.write_text("age;region\n31;north\n45;NA\n?;south\n")
    ...     table = read_table(path, na=["?"])
    >>> {name: table[name].tolist() for name in table.columns}
    {'age': [31.0, 45.0, nan], 'region': ['north', None, 'south']}
    """
    path = Path(path)
    marks = frozenset(value.strip() for value in na)
    with opened_table(path, encoding) as source:
        return read_opened(source, first_rows(source, path), path, marks, text, look)


def first_rows(source: TextFile | pl.LazyFrame, path: Path) -> pl.DataFrame:
    """The first rows of an open file of a table, as they are written."""
    with parsing_errors(path):
        first = (scanned_rows(source) if isinstance(source, TextFile) else source).head(LOOK).collect()
    if not first.height:
        raise _without_rows(path)
    return first


def read_opened(
    source: TextFile | pl.LazyFrame,
    first: pl.DataFrame,
    path: Path,
    na: Collection[str],
    text: Collection[str],
    look: Callable[[Table], object] | None,
) -> Table:
    """Read an open file whose first rows are known; all of it if there are fewer than `LOOK`."""
    if look is not None:
        look(_part(source, first, path, na, text, 1))
    if first.height < LOOK:
        table = _part(source, first, path, na, text, 1)
    else:
        with parsing_errors(path):
            if isinstance(source, TextFile):
                table = Table(pl.DataFrame(_text_columns(source, first, na, text)))
            else:
                table = _part(source, source.collect(), path, na, text, 1)
    table.source = source_words(source, path)
    return table


def source_words(source: TextFile | pl.LazyFrame, path: Path) -> str:
    """What kind of file a table is in: for text the encoding, and what stands between columns."""
    if not isinstance(source, TextFile):
        return "parquet" if table_kind(path) == "parquet" else "a spreadsheet, its first sheet"
    between = {"\t": "tabs", ",": "commas", ";": "semicolons", "|": "bars"}.get(source.delimiter, source.delimiter)
    return f"text in {source.encoding} with {between} between columns"


def table_batches(
    path: str | os.PathLike[str],
    na: Collection[str] = (),
    *,
    encoding: str | None = None,
    text: Collection[str] = (),
    columns: Callable[[list[str]], Collection[str]] | None = None,
    batch_rows: int = _BATCH,
) -> Iterator[Table]:
    r"""Read a table part by part, so that it need not fit into memory.

    Parameters
    ----------
    path, na, encoding, text
        As for :func:`read_table`. Give all columns as `text` that are text in some part: whether a column is numeric
        is judged by the rows of a part.
    columns : callable or None
        Given the names of the columns in the file, it says which to read; None for all.
    batch_rows : int
        Rows of a part.

    Yields
    ------
    Table
        The parts; ``first_row`` counts in the file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "people.csv"
    ...     _ = path.write_text("age,region\n31,north\n45,NA\n28,south\n")
    ...     [(part.first_row, part["age"].tolist()) for part in table_batches(path, batch_rows=2)]
    [(1, [31.0, 45.0]), (3, [28.0])]
    """
    path = Path(path)
    marks = frozenset(value.strip() for value in na)
    first = 1
    with opened_table(path, encoding) as source:
        known = source.names if isinstance(source, TextFile) else source.collect_schema().names()
        wanted = known if columns is None else columns(known)
        used = [name for name in known if name in wanted]
        if isinstance(source, TextFile):
            batches = _text_slices(source, used, batch_rows)
        else:
            batches = _slices(source, used, batch_rows)
        while True:
            with parsing_errors(path):
                batch = next(batches, None)
            if batch is None:
                break
            yield _part(source, batch, path, marks, text, first)
            first += batch.height
    if first == 1:
        raise _without_rows(path)


def read_cells(path: str | os.PathLike[str], encoding: str | None = None) -> tuple[list[str], list[list[str]]]:
    r"""Read a table from a text file as it is written.

    Parameters
    ----------
    path : path-like
        ``.csv``, ``.tsv`` or ``.txt``, as for :func:`read_table`.
    encoding : str or None
        As for :func:`read_table`.

    Returns
    -------
    header : list of str
        The names of the columns.
    rows : list of list of str
        The cells, without blanks around them.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "totals.csv"
    ...     _ = path.write_text("yes,no\n1, 1.0\n")
    ...     read_cells(path)
    (['yes', 'no'], [['1', '1.0']])
    """
    path = Path(path)
    if table_kind(path) != "text":
        raise InvalidInputError(f"{path}: expected a text table, .csv, .tsv or .txt")
    with text_file(path, encoding) as file, parsing_errors(path):
        if not file.names:
            return [], []
        frame = scanned_rows(file).select(pl.all().str.strip_chars().fill_null("")).collect()
    return [name.strip() for name in file.names], [list(row) for row in frame.rows()]


def table_kind(path: str | os.PathLike[str], writing: bool = False) -> str:
    """Return "text", "parquet" or "excel", judged by the name; refuse other names, and Excel without its reader.

    Parameters
    ----------
    path : path-like
        Name of the file.
    writing : bool
        Whether it is to be written, which Excel files are not.

    Examples
    --------
    >>> table_kind("people.csv.gz")
    'text'
    """
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    last = suffixes[-2:-1] if suffixes[-1:] == [".gz"] else suffixes[-1:]
    if last and last[0] in _TEXT_SUFFIXES:
        return "text"
    if suffixes and suffixes[-1] in _PARQUET_SUFFIXES:
        return "parquet"
    if suffixes and suffixes[-1] in _EXCEL_SUFFIXES and not writing:
        if importlib.util.find_spec("fastexcel") is None:
            raise InvalidInputError(
                f"{os.fspath(path)}: Excel files need fastexcel, which is not installed; install it with: "
                'pip install "treewright[excel]", or save the sheet as .csv'
            )
        return "excel"
    others = "in .parquet" if writing else f"in .parquet or in {', '.join(_EXCEL_SUFFIXES)}"
    raise InvalidInputError(
        f"{os.fspath(path)}: the kind of table is told by the name, which must end in .csv, .tsv or .txt "
        f"(.gz may follow) or {others}"
    )


def _without_rows(path: Path) -> InvalidInputError:
    return InvalidInputError(f"{path}: the file has no rows; expected a header and at least one row below it")


@contextlib.contextmanager
def opened_table(path: Path, encoding: str | None) -> Iterator[TextFile | pl.LazyFrame]:
    """A file of a table that can be read: text that was looked at, or a frame that is yet to be read."""
    kind = table_kind(path)
    if kind == "text":
        with text_file(path, encoding) as file:
            if not file.names:
                raise _without_rows(path)
            yield file
        return
    if not path.exists():
        raise FileNotFoundError(2, "No such file or directory", str(path))
    if path.is_dir():
        raise InvalidInputError(f"{path}: a folder, expected a file")
    if kind == "parquet":
        with parsing_errors(path, "not a parquet file"):
            lazy = pl.scan_parquet(path, glob=False)
            check_names(lazy.collect_schema().names(), path)
        yield lazy
    else:
        yield _excel_sheet(path).lazy()


@contextlib.contextmanager
def parsing_errors(path: Path, wrong: str = "cannot be read") -> Iterator[None]:
    """Name the file of a table where polars cannot read it."""
    try:
        with reading_errors(path):
            yield
    except pl.exceptions.PolarsError as error:
        raise InvalidInputError(f"{path}: {wrong}: {str(error).splitlines()[0]}") from error


# ---------------------------------------------------------------------- text


def scanned_rows(file: TextFile, numbers: Collection[str] = ()) -> pl.LazyFrame:
    """The rows of a text file of a table, some columns as numbers."""
    return pl.scan_csv(
        file.path,
        has_header=False,
        skip_lines=file.n_lines,
        separator=file.delimiter,
        schema={name: pl.Float64 if name in numbers else pl.String for name in file.names},
        n_rows=file.n_rows,
        glob=False,
    )


def _text_slices(file: TextFile, columns: list[str], batch_rows: int) -> Iterator[pl.DataFrame]:
    """Rows of a text file, at most so many at once: only they are in memory, as readers of streams read ahead."""
    step = max(1, batch_rows // STRIDE)
    schema = {name: pl.String for name in file.names}
    for start in range(0, len(file.offsets) - 1, step):
        end = file.offsets[min(start + step, len(file.offsets) - 1)]
        with open(file.path, "rb") as stream:
            stream.seek(file.offsets[start])
            rows = stream.read(end - file.offsets[start])
        part = pl.read_csv(rows, has_header=False, separator=file.delimiter, schema=schema).select(columns)
        yield from part.iter_slices(batch_rows)


def _slices(source: pl.LazyFrame, columns: list[str], batch_rows: int) -> Iterator[pl.DataFrame]:
    """Rows of another file, at most so many at once."""
    n_rows = int(source.select(pl.len()).collect().item())
    for start in range(0, n_rows, batch_rows):
        yield source.select(columns).slice(start, batch_rows).collect()


def _part(
    source: TextFile | pl.LazyFrame,
    batch: pl.DataFrame,
    path: Path,
    na: Collection[str],
    text: Collection[str],
    first_row: int,
) -> Table:
    """Rows of a file as a table."""
    parts = batch.get_columns()
    if isinstance(source, TextFile):
        return Table(pl.DataFrame([read_column(part, na, part.name in text) for part in parts]), first_row)
    return Table(pl.DataFrame(known_kinds(parts, f"{path}: ", na)), first_row)


def _text_columns(file: TextFile, first: pl.DataFrame, na: Collection[str], text: Collection[str]) -> list[pl.Series]:
    """Columns of a text file: those that look like numbers are read as such, which takes half the time."""
    # marks for missing values are compared as they are written
    free = [] if any(map(is_number, na)) else [name for name in file.names if name not in text]
    numbers = {name for name in free if are_plain_numbers(first.get_column(name))}
    try:
        frame = scanned_rows(file, numbers).collect()
    except pl.exceptions.ComputeError:  # some row below is no number
        frame, numbers = scanned_rows(file).collect(), set()
    blurred = [name for name in numbers if has_large_numbers(frame.get_column(name))]
    blurred += _codes_among(file, [name for name in numbers.difference(blurred) if _are_whole(frame.get_column(name))])
    if blurred:
        frame = frame.with_columns(scanned_rows(file).select(blurred).collect())
    done = numbers.difference(blurred)
    columns = []
    for name in file.names:  # one after the other leaves the frame, so that memory holds little twice
        part = frame.drop_in_place(name)
        columns.append(part.fill_nan(None) if name in done else read_column(part, na, name in text))
    return columns


def _codes_among(file: TextFile, columns: list[str]) -> list[str]:
    """Columns of numbers that may be codes, as some cell begins with a zero or with blanks."""
    if not columns:
        return []

    def may_have_zeros(cell: pl.Expr) -> pl.Expr:
        begins = pl.any_horizontal(cell.str.starts_with(character) for character in "0 \t")
        return (begins & (cell.str.len_bytes() > 1)).any()

    some = [may_have_zeros(pl.col(name)) for name in columns]
    found = scanned_rows(file).select(some).collect().row(0)
    return [name for name, may_be in zip(columns, found, strict=True) if may_be]


def _are_whole(numbers: pl.Series) -> bool:
    """Whether all are whole numbers, as codes of digits are."""
    return bool((numbers == numbers.floor()).all())


# ---------------------------------------------------------------------- Excel


def _excel_sheet(path: Path) -> pl.DataFrame:
    """The first sheet of an Excel file."""
    try:
        with reading_errors(path):
            frame = pl.read_excel(path, engine="calamine", infer_schema_length=None, raise_if_empty=False)
    except pl.exceptions.PolarsError as error:
        raise InvalidInputError(f"{path}: cannot be read: {str(error).splitlines()[0]}") from error
    except Exception as error:  # fastexcel has errors of its own
        if "fastexcel" not in type(error).__module__:
            raise
        raise InvalidInputError(f"{path}: not an Excel file: {str(error).splitlines()[0]}") from error
    check_names(frame.columns, path)
    return frame
