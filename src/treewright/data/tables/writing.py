"""Tables written to files, entirely or not at all."""

from __future__ import annotations

import gzip
import os
import warnings
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import IO, Any

import polars as pl
from numpy.typing import ArrayLike

from treewright.core.files import passing_folder, replacing
from treewright.core.names import option
from treewright.data.columns_checked import listing
from treewright.data.tables.cells import as_numbers, as_series, number_texts
from treewright.data.tables.files import table_kind
from treewright.exceptions import InvalidInputError

__all__ = ["write_batches", "write_table"]

_FORMULA = r"^[=+\-@\t\r]"  # what a cell begins with that a spreadsheet runs


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
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "people.csv"
    ...     write_table(path, {"age": [31.0, float("nan")], "region": ["north", None]})
    ...     print(path.read_text())
    age,region
    31,north
    ,
    """
    write_batches(path, [columns], escape_formulas)


def write_batches(
    path: str | os.PathLike[str], batches: Iterable[Mapping[str, Any]], escape_formulas: bool = False
) -> None:
    r"""Write a table part by part, so that it need not fit into memory; entirely or not at all.

    Parameters
    ----------
    path, escape_formulas
        As for :func:`write_table`.
    batches : iterable of mappings of str to array-like
        The parts, at least one, of the same columns.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "people.csv"
    ...     write_batches(path, ({"age": [age]} for age in (31, 45)))
    ...     path.read_text()
    'age\n31\n45\n'
    """
    path = Path(path)
    kind = table_kind(path, writing=True)
    frames = (_frame(columns) for columns in batches)
    with replacing(path) as file:
        if kind == "parquet":
            _write_parquet(file, frames)
        elif path.suffix.lower() == ".gz":
            with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
                _write_text(packed, frames, path, escape_formulas)
        else:
            _write_text(file, frames, path, escape_formulas)


def _frame(columns: Mapping[str, Any]) -> pl.DataFrame:
    parts = [as_series(name, values) for name, values in columns.items()]
    lengths = sorted({len(part) for part in parts})
    if len(lengths) > 1:
        raise InvalidInputError(f"the columns of a table have different lengths: {lengths}")
    return pl.DataFrame([part.fill_nan(None) if part.dtype.is_float() else part for part in parts])


def _write_parquet(file: IO[bytes], frames: Iterable[pl.DataFrame]) -> None:
    """Write parts one after the other to passing files, and then all of them to the file."""
    with passing_folder() as folder:
        parts = []
        for number, frame in enumerate(frames):
            parts.append(folder / f"{number}.parquet")
            frame.write_parquet(parts[-1], compression="lz4")
        whole = pl.concat([pl.scan_parquet(part, glob=False) for part in parts], how="vertical_relaxed")
        whole.sink_parquet(file)


def _write_text(file: Any, frames: Iterable[pl.DataFrame], path: Path, escape: bool) -> None:
    separator = "\t" if ".tsv" in path.suffixes else ","
    formulas: dict[str, None] = {}
    for number, frame in enumerate(frames):
        found = _formulas(pl.Series(frame.columns)) if number == 0 else pl.Series([], dtype=pl.String)
        for part in frame.get_columns():
            if part.dtype.is_float():
                part = number_texts(part)
            elif part.dtype == pl.String:
                found.append(_formulas(part))
                part = _escaped(part) if escape else part.set(part == "", None)
            elif part.dtype == pl.Boolean:
                part = part.cast(pl.String).str.to_titlecase()
            if frame.width == 1:  # an empty line would be none
                part = part.cast(pl.String).fill_null("")
            frame = frame.with_columns(part)
        formulas.update(dict.fromkeys(found.unique(maintain_order=True).head(1000).to_list()))
        if escape:
            frame.columns = _escaped(pl.Series(frame.columns)).to_list()
        frame.write_csv(file, include_header=number == 0, separator=separator)
    if formulas and not escape:
        _warn_of_formulas(formulas)


def _is_formula(text: pl.Series) -> pl.Series:
    """Whether a spreadsheet may take a text for something to run; to it - is text, and -5 a number."""
    suspected = (text.str.contains(_FORMULA) & (text.str.len_chars() > 1)).fill_null(False)
    return suspected & as_numbers(text.str.strip_chars()).is_null() if suspected.any() else suspected


def _formulas(text: pl.Series) -> pl.Series:
    return text.filter(_is_formula(text)).unique(maintain_order=True).alias("")


def _escaped(text: pl.Series) -> pl.Series:
    formula = _is_formula(text)
    return text.set(formula, None).fill_null("'" + text) if formula.any() else text


def _warn_of_formulas(formulas: Collection[str]) -> None:
    warnings.warn(
        f"the table has text that spreadsheets take for formulas and may run: {listing(sorted(formulas), limit=3)}; "
        f"it is written as it is. Import it as text, or write it with {option('escape_formulas', True)}, which puts an "
        "apostrophe in front",
        UserWarning,
        stacklevel=4,
    )
