"""Tables in files: read into columns and written, without pandas.

A column is numeric (float64, NaN where missing) or text (objects: str, None where missing). Rows are numbered
from 1 in texts and files, the header not counted.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import importlib.util
import io
import os
import warnings
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from treewright.arrays import BoolArray, FloatArray
from treewright.data._checks import AnyArray, listing, missing_mask
from treewright.exceptions import InvalidInputError
from treewright.files import replacing

__all__ = [
    "Table",
    "is_missing",
    "is_number",
    "number_text",
    "read_cells",
    "read_table",
    "table_kind",
    "write_table",
]

_MISSING = frozenset({"", "na", "nan", "null", "n/a", "#n/a", "<na>"})
_DELIMITERS = ",;\t|"
_TEXT_SUFFIXES = (".csv", ".tsv", ".txt")
_PARQUET_SUFFIXES = (".parquet", ".pq")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a cell begins with that a spreadsheet runs
_EXACT = 2.0**53  # float64 holds every whole number below


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of equal length.

    Attributes
    ----------
    columns : dict of str to ndarray
        The columns in order: float64 with NaN for missing, or objects that are str or None for missing.

    Examples
    --------
    >>> import numpy as np
    >>> table = Table({"age": np.array([31.0, 45.0]), "region": np.array(["north", None], dtype=object)})
    >>> table.n_rows, table.is_numeric("age"), table.missing("region").tolist()
    (2, True, [False, True])
    """

    columns: dict[str, AnyArray]

    def __post_init__(self) -> None:
        lengths = {len(column) for column in self.columns.values()}
        if len(lengths) > 1:
            raise InvalidInputError(f"the columns of a table have different lengths: {sorted(lengths)}")

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values()), ()))

    def __getitem__(self, name: str) -> AnyArray:
        try:
            return self.columns[name]
        except KeyError:
            raise InvalidInputError(f"there is no column {name!r}; columns: {listing(self.columns)}") from None

    def is_numeric(self, name: str) -> bool:
        """Whether the column holds numbers."""
        return bool(self[name].dtype.kind == "f")

    def missing(self, name: str) -> BoolArray:
        """Mask of the missing values of a column."""
        return missing_mask(self[name])

    def as_text(self, name: str) -> AnyArray:
        """Return a column as text; whole numbers are written without a decimal point."""
        column = self[name]
        return column if column.dtype.kind == "O" else np.array([number_text(v) for v in column], dtype=object)


# ---------------------------------------------------------------------- reading


def read_table(path: str | os.PathLike[str], na: Collection[str] = ()) -> Table:
    r"""Read a table from a file.

    Parameters
    ----------
    path : path-like
        ``.csv``, ``.tsv`` or ``.txt`` in UTF-8 with a header and one of the delimiters ``, ; tab |``, also
        with ``.gz`` behind it, or ``.parquet``.
    na : collection of str
        Values that are missing too, as they are written in the file; in a numeric column of a parquet file, numbers.

    Returns
    -------
    Table
        A column is numeric if all its values are numbers. Empty, NA, N/A, #N/A, <NA>, NaN and null (in any case)
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
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "people.csv"
    ...     _ = path.write_text("age;region\n31;north\n45;NA\n?;south\n")
    ...     table = read_table(path, na=["?"])
    >>> {name: column.tolist() for name, column in table.columns.items()}
    {'age': [31.0, 45.0, nan], 'region': ['north', None, 'south']}
    """
    path = Path(path)
    kind = table_kind(path)
    marks = frozenset(value.strip() for value in na)
    with _reading(path):
        if kind == "parquet":
            columns = _read_parquet(path, marks)
        else:
            header, rows = _read_text(path)
            columns = {
                name: _column(values, marks) for name, values in zip(header, zip(*rows, strict=True), strict=False)
            }
    if not columns or len(next(iter(columns.values()))) == 0:
        raise InvalidInputError(f"{path}: the file has no rows; expected a header and at least one row below it")
    return Table(columns)


def read_cells(path: str | os.PathLike[str]) -> tuple[list[str], list[list[str]]]:
    r"""Read a table from a text file as it is written.

    Parameters
    ----------
    path : path-like
        ``.csv``, ``.tsv`` or ``.txt``, as for :func:`read_table`.

    Returns
    -------
    header : list of str
        The names of the columns.
    rows : list of list of str
        The cells, without blanks around them.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "totals.csv"
    ...     _ = path.write_text("yes,no\n1, 1.0\n")
    ...     read_cells(path)
    (['yes', 'no'], [['1', '1.0']])
    """
    path = Path(path)
    if table_kind(path) != "text":
        raise InvalidInputError(f"{path}: expected a text table, .csv, .tsv or .txt")
    with _reading(path):
        header, rows = _read_text(path)
    return [name.strip() for name in header], [[cell.strip() for cell in row] for row in rows]


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Name the file in errors of reading it."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidInputError(f"{path}: cannot be read: {reason}") from error


def table_kind(path: str | os.PathLike[str]) -> str:
    """Return "text" or "parquet", judged by the name; refuse other names, and parquet without pyarrow.

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
        if importlib.util.find_spec("pyarrow") is None:
            raise InvalidInputError(
                f"{os.fspath(path)}: parquet needs pyarrow, which is not installed; install it with: "
                'pip install "treewright[parquet]"'
            )
        return "parquet"
    raise InvalidInputError(
        f"{os.fspath(path)}: the kind of table is told by the name, which must end in .csv, .tsv or .txt "
        "(.gz may follow) or in .parquet"
    )


def _read_text(path: Path) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows, as many cells in each."""
    raw = path.read_bytes()
    if path.suffix.lower() == ".gz":
        raw = gzip.decompress(raw)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise InvalidInputError(f"{path}: not UTF-8 in line {line}; save the file as UTF-8") from error
    delimiter = _delimiter(text, preferred="\t" if ".tsv" in path.suffixes else ",")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[list[str]] = []
    try:
        header = next((row for row in reader if row), [])
        _check_names(header, path)
        for row in reader:
            if len(row) == len(header):
                rows.append(row)
            elif row:
                raise InvalidInputError(
                    f"{path}: line {reader.line_num} has {len(row)} fields, the header has {len(header)} "
                    f"(delimiter {delimiter!r})"
                )
    except csv.Error as error:
        raise InvalidInputError(f"{path}: line {reader.line_num}: {error}") from error
    return header, rows


def _delimiter(text: str, preferred: str) -> str:
    """Return the delimiter that gives the most columns, the same number in each of the first rows."""
    order = preferred + _DELIMITERS.replace(preferred, "")
    best, most = preferred, (False, 1)
    for delimiter in order:
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        widths: list[int] = []
        with contextlib.suppress(csv.Error):  # read again, and reported, with the delimiter that is chosen
            widths.extend(len(row) for row in islice((r for r in rows if r), 50))
        if widths and widths[0] > 1:
            score = (len(set(widths)) == 1, widths[0])
            if score > most:
                best, most = delimiter, score
    return best


def _check_names(names: Sequence[str], path: Path) -> None:
    for number, name in enumerate(names, start=1):
        if not name.strip():
            raise InvalidInputError(f"{path}: column {number} of {len(names)} has no name in the header")
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise InvalidInputError(f"{path}: the header has columns of the same name: {listing(twice)}")


def is_missing(text: str, na: Collection[str] = ()) -> bool:
    """Whether a value that is written so is missing.

    Examples
    --------
    >>> is_missing("n/a"), is_missing("?"), is_missing("?", na=["?"])
    (True, False, True)
    """
    return text.lower() in _MISSING or text in na


def _column(values: Sequence[str], na: Collection[str] = ()) -> AnyArray:
    """Return numbers if all values are numbers, else text."""
    stripped = [value.strip() for value in values]
    known = ["nan" if is_missing(value, na) else value for value in stripped]
    try:
        numbers = np.array(known, dtype=np.float64)
    except ValueError:
        numbers = None
    if numbers is not None and not any("_" in value for value in known) and not _inexact(numbers, known):
        return numbers
    pairs = zip(stripped, known, strict=True)
    return np.array([None if k == "nan" else value for value, k in pairs], dtype=object)


def is_number(text: str) -> bool:
    """Whether a text would be read as a number."""
    return bool(_column([text]).dtype.kind == "f")


def _inexact(numbers: FloatArray, text: Sequence[str]) -> bool:
    """Whether whole numbers among `text` are too large to be told apart as floats."""
    large = np.flatnonzero(np.abs(numbers) >= _EXACT).tolist()
    return any(text[i].lstrip("+-").isdigit() for i in large)


def _read_parquet(path: Path, na: Collection[str]) -> dict[str, AnyArray]:
    import pyarrow as arrow
    from pyarrow import parquet

    if not path.exists():
        raise FileNotFoundError(2, "No such file or directory", str(path))
    if path.is_dir():
        raise InvalidInputError(f"{path}: a folder, expected a file")
    try:
        table = parquet.ParquetFile(path).read()
    except arrow.ArrowException as error:
        raise InvalidInputError(f"{path}: not a parquet file: {str(error).splitlines()[0]}") from error
    _check_names(table.column_names, path)
    columns = zip(table.column_names, table.columns, strict=True)
    return {name: _arrow_column(arrow, column, f"{path}: column {name!r}", na) for name, column in columns}


def _arrow_column(arrow: Any, column: Any, where: str, na: Collection[str]) -> AnyArray:
    types = arrow.types
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if types.is_null(kind):
        return np.full(len(column), np.nan)
    if types.is_nested(kind) or types.is_binary(kind) or types.is_large_binary(kind):
        raise InvalidInputError(f"{where} has values of type {kind}; only numbers and text can be used")
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        numbers = np.asarray(column.cast(arrow.float64(), safe=False).to_numpy())
        if types.is_floating(kind) or not np.any(np.abs(numbers) >= _EXACT):
            marks = [float(value) for value in na if is_number(value)]
            return np.where(np.isin(numbers, marks), np.nan, numbers) if marks else numbers
    values = column.to_pylist()
    if types.is_boolean(kind):
        values = [None if v is None else str(v).lower() for v in values]
    text = [None if v is None or is_missing(str(v).strip(), na) else str(v) for v in values]
    return np.array(text, dtype=object)


# ---------------------------------------------------------------------- writing


def write_table(path: str | os.PathLike[str], columns: Mapping[str, ArrayLike], escape_formulas: bool = False) -> None:
    """Write columns to a file, entirely or not at all.

    Parameters
    ----------
    path : path-like
        ``.csv``, ``.tsv``, ``.txt`` (also with ``.gz``) or ``.parquet``.
    columns : mapping of str to array-like
        Columns of equal length. NaN and None are written as empty; floats that are whole numbers as such.
    escape_formulas : bool, default=False
        Whether text that a spreadsheet would run as a formula gets an apostrophe in front, in names of columns too; not
        in parquet, whose text is text.

    Warns
    -----
    UserWarning
        If there is such text and it is written as it is.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "people.csv"
    ...     write_table(path, {"age": [31.0, float("nan")], "region": ["north", None]})
    ...     print(path.read_text())
    age,region
    31,north
    ,
    """
    path = Path(path)
    kind = table_kind(path)
    arrays = {name: np.asarray(values) for name, values in columns.items()}
    Table(arrays)  # refuses columns of different lengths
    if kind == "parquet":
        import pyarrow as arrow
        from pyarrow import parquet

        table = arrow.table({name: arrow.array(values, from_pandas=True) for name, values in arrays.items()})
        packed = io.BytesIO()
        parquet.write_table(table, packed)
        with replacing(path) as file:
            file.write(packed.getbuffer())
        return
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter="\t" if ".tsv" in path.suffixes else ",", lineterminator="\n")
    header, cells = list(arrays), [[_cell_text(v) for v in values.tolist()] for values in arrays.values()]
    texts = [column for column, values in zip(cells, arrays.values(), strict=True) if values.dtype.kind not in "biuf"]
    formulas = {text for text in set(header).union(*texts) if _is_formula(text)}
    if formulas and escape_formulas:
        header, *cells = [[f"'{v}" if v in formulas else v for v in column] for column in (header, *cells)]
    elif formulas:
        _warn_of_formulas(formulas)
    writer.writerow(header)
    writer.writerows(zip(*cells, strict=True))
    content = text.getvalue().encode("utf-8")
    content = gzip.compress(content, mtime=0) if path.suffix.lower() == ".gz" else content
    with replacing(path) as file:
        file.write(content)


def number_text(value: float) -> str | None:
    """Return a number as it would be typed; None for NaN."""
    if np.isnan(value):
        return None
    whole = abs(value) < _EXACT and float(value).is_integer()
    return str(int(value)) if whole else repr(float(value))


def _is_formula(text: str) -> bool:
    """Whether a spreadsheet may take a text for something to run; to it - is text, and -5 a number."""
    return len(text) > 1 and text.startswith(_FORMULA) and not is_number(text)


def _warn_of_formulas(formulas: Collection[str]) -> None:
    warnings.warn(
        f"the table has text that spreadsheets take for formulas and may run: {listing(sorted(formulas), limit=3)}; "
        "it is written as it is. Import it as text, or write it with escape_formulas (--escape-formulas on the command "
        "line), which puts an apostrophe in front",
        UserWarning,
        stacklevel=3,
    )


def _cell_text(value: object) -> str:
    text = number_text(value) if isinstance(value, float) else value
    return "" if text is None else str(text)
