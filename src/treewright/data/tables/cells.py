"""Cells of tables: what is missing, what is a number, and columns of the kinds that tables have."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import polars as pl

from treewright.exceptions import InvalidInputError

__all__ = [
    "are_codes",
    "are_plain_numbers",
    "as_numbers",
    "as_series",
    "has_large_numbers",
    "is_missing",
    "is_number",
    "known_kinds",
    "number_mask",
    "number_text",
    "number_texts",
    "read_column",
]

_MISSING = frozenset({"", "na", "nan", "null", "n/a", "#n/a", "<na>"})
_LONGEST = max(map(len, _MISSING))
_EXACT = 2.0**53  # float64 holds every whole number below
_FEW = 10_000
"""Cells that tell whether a column has few different values."""


def are_plain_numbers(cells: pl.Series) -> bool:
    """Whether cells of a table, as they are written, are numbers without marks of missing values."""
    spelled = cells.cast(pl.Float64, strict=False).null_count() == cells.null_count() < len(cells)
    return spelled and not are_codes(cells)


def are_codes(text: pl.Series) -> bool:
    """Whether text is whole numbers, some with a zero in front: codes such as 007, of which numbers lose the zeros.

    Examples
    --------
    >>> [are_codes(pl.Series(cells)) for cells in (["007", "12", None], ["0", "12"], ["07", "7.5"])]
    [True, False, False]
    """
    zeros = text.str.contains("^0[0-9]").any()
    return bool(zeros) and not text.str.contains("[^0-9+-]").any()


def has_large_numbers(numbers: pl.Series) -> bool:
    """Whether there are numbers in a column of a table among which float64 skips whole ones."""
    return bool((numbers.is_finite() & (numbers.abs() >= _EXACT)).any())


def read_column(cells: pl.Series, na: Collection[str], text: bool = False) -> pl.Series:
    """Numbers if all cells are numbers and not codes, else text; null where a value is missing."""
    if _is_clean_text(cells, na):
        return cells
    stripped = cells.str.strip_chars()
    known = stripped.set(_gone(stripped, na), None)
    if text:
        return known
    numbers = as_numbers(known)
    spelled = numbers.null_count() == known.null_count() and (
        not has_large_numbers(numbers) or number_mask(known).all()
    )
    return numbers if spelled and not are_codes(known) else known


def _is_clean_text(cells: pl.Series, na: Collection[str]) -> bool:
    """Whether cells are text of few different values that stay as they are, which a look at these tells."""
    first = cells.head(_FEW)
    if len(cells) <= _FEW or first.n_unique() > len(first) // 10:
        return False
    levels = cells.unique().drop_nulls()
    stripped = levels.str.strip_chars()
    same = (stripped == levels).all() and not _gone(stripped, na).any()
    return bool(same) and as_numbers(levels).null_count() > 0


def as_numbers(text: pl.Series) -> pl.Series:
    """Numbers that the text of a table's cells spells, null where it spells none.

    Examples
    --------
    >>> as_numbers(pl.Series(["1.5", "x", "1e3"])).to_list()
    [1.5, None, 1000.0]
    """
    return text.cast(pl.Float64, strict=False).fill_nan(None)


def is_missing(text: str, na: Collection[str] = ()) -> bool:
    """Whether a cell of a table that is written so is missing.

    Examples
    --------
    >>> is_missing("n/a"), is_missing("?"), is_missing("?", na=["?"])
    (True, False, True)
    """
    return text.lower() in _MISSING or text in na


def is_number(text: str) -> bool:
    """Whether the text of a table's cell spells a number, or is missing."""
    return is_missing(text) or bool(number_mask(pl.Series([text.strip()]))[0])


def number_mask(text: pl.Series) -> pl.Series:
    """Mask of a table's text that spells a number, but for whole ones that float64 would blur; null if missing.

    Examples
    --------
    >>> number_mask(pl.Series(["1.5", "x", "9007199254740993"])).to_list()
    [True, False, False]
    """
    numbers = as_numbers(text)
    blurred = (numbers.abs() >= _EXACT) & text.str.contains(r"^[+-]?[0-9]+$")
    return (numbers.is_not_null() & ~blurred.fill_null(False)).set(text.is_null(), None)


# ---------------------------------------------------------------------- columns with a type


def as_series(name: str, values: Any) -> pl.Series:
    """A column of polars for a table, from a sequence, an array or a series; mixed objects as text."""
    if isinstance(values, pl.Series):
        return values.alias(name)
    array = np.asarray(values)
    if array.dtype.kind == "U":
        return pl.Series(name, array.tolist(), dtype=pl.String)
    if array.dtype.kind != "O":
        return pl.Series(name, array)
    cells = [None if v is None or v != v else v for v in array.tolist()]
    try:
        return pl.Series(name, cells, strict=True)
    except TypeError:
        return pl.Series(name, [None if v is None else str(v) for v in cells], dtype=pl.String)


def known_kinds(parts: Sequence[pl.Series], where: str, na: Collection[str] | None) -> list[pl.Series]:
    """Columns of a table as numbers, text or dates; refuses, in one error, those that can be none of these.

    Text that means missing is so if `na` is not None, which has more of it.
    """
    refused = [part for part in parts if part.dtype.is_nested() or part.dtype in (pl.Binary, pl.Object)]
    if refused:
        said = ", ".join(f"column {part.name!r} has values of type {_type_name(part)}" for part in refused[:10])
        more = f", ... ({len(refused)} columns in all)" if len(refused) > 10 else ""
        raise InvalidInputError(f"{where}{said}{more}; only numbers, text and dates can be used")
    return [_known_kind(part, na) for part in parts]


def _type_name(part: pl.Series) -> str:
    return str(part.dtype).lower()


def _known_kind(part: pl.Series, na: Collection[str] | None) -> pl.Series:
    dtype = part.dtype
    if dtype in (pl.Date, pl.Datetime) or (dtype == pl.String and na is None):
        return part
    if dtype == pl.Null:
        return part.cast(pl.Float64)
    if dtype.is_numeric():
        numbers = part.cast(pl.Float64, strict=False).fill_nan(None)
        if dtype.is_float() or not has_large_numbers(numbers):
            marks = [float(value) for value in na or () if is_number(value) and not is_missing(value)]
            return numbers.set(numbers.is_in(marks), None) if marks else numbers
    text = part.dt.to_string() if dtype.is_temporal() else part.cast(pl.String)
    return text if na is None else text.set(_gone(text.str.strip_chars(), na), None)


def _gone(stripped: pl.Series, na: Collection[str]) -> pl.Series:
    """Mask of text that means missing."""
    short = (stripped.str.len_bytes() <= _LONGEST).arg_true()  # few cells are that short: no copy of all is made
    lost = short.filter(stripped.gather(short).str.to_lowercase().is_in(list(_MISSING)))
    gone = pl.repeat(False, len(stripped), eager=True).scatter(lost, True)
    return gone | stripped.is_in(list(na)) if na else gone


def number_text(value: float) -> str | None:
    """Return a number of a table as it would be typed; None for NaN.

    Examples
    --------
    >>> number_text(3.0), number_text(0.5)
    ('3', '0.5')
    """
    if np.isnan(value):
        return None
    whole = abs(value) < _EXACT and float(value).is_integer()
    return str(int(value)) if whole else repr(float(value))


def number_texts(column: pl.Series) -> pl.Series:
    """Return a column of a table as text, numbers as :func:`number_text` has them.

    Examples
    --------
    >>> number_texts(pl.Series([3.0, 0.5, None])).to_list()
    ['3', '0.5', None]
    """
    if not column.dtype.is_float():
        return column.cast(pl.String)
    name, numbers = column.name, column.fill_nan(None)
    whole = numbers.is_finite() & (numbers.abs() < _EXACT) & (numbers == numbers.round(0))
    if whole.all():
        return numbers.cast(pl.Int64).cast(pl.String)
    rows = whole.arg_true()  # mostly few: text takes time to make
    return numbers.cast(pl.String).scatter(rows, numbers.gather(rows).cast(pl.Int64).cast(pl.String)).alias(name)
