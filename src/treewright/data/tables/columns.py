"""Single columns of tables: what their text may be, dates as numbers, levels as codes."""

from __future__ import annotations

import datetime
import re

import numpy as np
import polars as pl

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.names import counted
from treewright.data.tables.cells import are_codes, as_numbers, number_mask, number_texts
from treewright.data.tables.files import Table
from treewright.exceptions import InvalidInputError

__all__ = [
    "BOOLEAN",
    "bad_dates",
    "bad_numbers",
    "date_format",
    "days",
    "finite_numbers",
    "flag_numbers",
    "is_date_format",
    "joined_problems",
    "level_codes",
    "level_counts",
    "why_text",
]

BOOLEAN = ("false", "true")
"""Text of flags, in any case."""
_DECIMAL_COMMA = r"^[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+([eE][+-]?\d+)?$"
_YEAR_FIRST = [rf"\d{{4}}{mark}\d{{1,2}}{mark}\d{{1,2}}" for mark in ("-", "/", r"\.")]
_YEAR_LAST = [rf"\d{{1,2}}{mark}\d{{1,2}}{mark}(\d{{4}}|\d{{2}})" for mark in ("-", "/", r"\.")]
_DATE = f"^({'|'.join(_YEAR_FIRST + _YEAR_LAST)})([T ][0-9].*)?$"

_DAYS = {  # format: what such dates look like
    "%Y-%m-%d": r"\d{4}-\d{1,2}-\d{1,2}",
    "%Y/%m/%d": r"\d{4}/\d{1,2}/\d{1,2}",
    "%Y.%m.%d": r"\d{4}\.\d{1,2}\.\d{1,2}",
    "%d.%m.%Y": r"\d{1,2}\.\d{1,2}\.\d{4}",
    "%d/%m/%Y": r"\d{1,2}/\d{1,2}/\d{4}",
    "%m/%d/%Y": r"\d{1,2}/\d{1,2}/\d{4}",
    "%d-%m-%Y": r"\d{1,2}-\d{1,2}-\d{4}",
    "%m-%d-%Y": r"\d{1,2}-\d{1,2}-\d{4}",
}
_TIMES = {
    "": "",
    " %H:%M": r" \d{1,2}:\d{2}",
    "T%H:%M": r"T\d{1,2}:\d{2}",
    " %H:%M:%S%.f": r" \d{1,2}:\d{2}:\d{2}(\.\d+)?",
    "T%H:%M:%S%.f": r"T\d{1,2}:\d{2}:\d{2}(\.\d+)?",
}
_FORMATS = {day + time: f"^{d}{t}$" for day, d in _DAYS.items() for time, t in _TIMES.items()}
_ISO = [f"%Y-%m-%d{time}" for time in _TIMES]
_TWINS = {form: form.replace("%d", "?").replace("%m", "%d").replace("?", "%m") for form in _FORMATS if form[1] in "dm"}
_SAMPLE = 1000
_MICROSECONDS = 86_400e6


# ---------------------------------------------------------------------- dates


def date_format(text: pl.Series) -> str:
    """How the dates of a table's column are written, as ``strptime`` has it; empty if not all are of one such format.

    Years of two digits, and days that may be months in every row, are no dates. A column of a type for dates is as if
    written as ISO 8601 has it.

    Examples
    --------
    >>> date_format(pl.Series(["31.1.2024", "1.2.2024"])), date_format(pl.Series(["1/2/2024"]))
    ('%d.%m.%Y', '')
    >>> date_format(pl.Series(["1/2/2024", "1/31/2024"]))
    '%m/%d/%Y'
    """
    if text.dtype.is_temporal():
        return _ISO[0] if text.dtype == pl.Date else _ISO[1]
    known = text.drop_nulls().unique()
    first = known.head(_SAMPLE)
    # most text is no date, as one cell of it tells
    fitting = [form for form in _FORMATS if len(first) and re.search(_FORMATS[form], first[0])]
    fitting = [form for form in fitting if _all_dates(first, form)]
    fitting = [form for form in fitting if _all_dates(known, form)]
    return fitting[0] if len(fitting) == 1 else ""


def _all_dates(text: pl.Series, form: str) -> bool:
    return bool(text.str.contains(_FORMATS[form]).all()) and not _parsed(text, form).has_nulls()


def _parsed(text: pl.Series, form: str) -> pl.Series:
    """Days since 1970-01-01, null where a text is no date of the format."""
    fine = text.str.contains(_FORMATS[form])
    if "%H" in form:
        return _as_days(text.set(~fine, None).str.to_datetime(form, time_unit="us", strict=False))
    return _as_days(text.set(~fine, None).str.to_date(form, strict=False))


def _as_days(dates: pl.Series) -> pl.Series:
    if dates.dtype == pl.Date:
        return dates.cast(pl.Int32).cast(pl.Float64)
    return dates.dt.timestamp("us").cast(pl.Float64) / _MICROSECONDS


def days(column: pl.Series, form: str) -> pl.Series:
    """Dates of a table as days since 1970-01-01, times of the day as parts of one; null where there is no date.

    Parameters
    ----------
    column : polars Series
        Dates, or text.
    form : str
        How a text is written, as :func:`date_format` found it; ISO 8601 is understood always.

    Examples
    --------
    >>> days(pl.Series(["2.1.1970", "1970-01-02 12:00", "soon"]), "%d.%m.%Y").to_list()
    [1.0, 1.5, None]
    """
    if column.dtype.is_temporal():
        return _as_days(column)
    if column.dtype != pl.String:
        return pl.Series(column.name, [None] * len(column), dtype=pl.Float64)
    found = _parsed(column, form)
    for other in _ISO:
        if found.null_count() == column.null_count():
            break
        found = found.zip_with(found.is_not_null(), _parsed(column, other))
    return found


def is_date_format(form: str) -> bool:
    """Whether :func:`date_format` may have found it in a table."""
    return form in _FORMATS


def bad_dates(table: Table, name: str, form: str, found: pl.Series | None = None) -> str:
    """Say what in a column of a table is no date; nothing if all is, or missing.

    Examples
    --------
    >>> bad_dates(Table({"born": ["1.2.1970", "soon"]}), "born", "%d.%m.%Y")
    "column 'born' has 'soon' in row 2, where the model expects dates such as 31.01.1970"
    """
    column = table.series(name)
    found = days(column, form) if found is None else found  # which takes a while
    if found.null_count() == column.null_count():
        return ""
    wrong = found.is_null() & column.is_not_null()
    at = int(wrong.arg_max() or 0)
    shown = number_texts(column.slice(at, 1))[0]
    example = datetime.date(1970, 1, 31).strftime(form.partition("%H")[0].rstrip(" T"))
    return (
        f"column {name!r} has {shown!r} in row {at + table.first_row}, where the model expects dates such as {example}"
    )


# ---------------------------------------------------------------------- text


def why_text(table: Table, name: str, levels: pl.DataFrame | None = None) -> str:
    """Say why a column of a table that looks like numbers or dates is text; nothing if there is nothing to say.

    Parameters
    ----------
    table : Table
        The table.
    name : str
        A column.
    levels : polars DataFrame or None
        Its levels, as :func:`level_counts` has them, if they are known.

    Returns
    -------
    str
        A clause for a warning, empty for a column of numbers or dates and for usual text.

    Examples
    --------
    >>> why_text(Table({"a": ["1", "2", "3", "."]}), "a")
    "column 'a' is text because of '.' in row 4; 3 of 4 values are numbers"
    """
    column = table.series(name)
    if column.dtype != pl.String:
        return ""
    found = level_counts(column) if levels is None else levels
    values, times = found.get_column("level"), found.get_column("rows")
    total = times.sum()

    def rows_of(mask: pl.Series) -> int:
        return int(times.filter(mask).sum())

    def row(value: str) -> int:
        return int((column == value).arg_max() or 0) + table.first_row

    if are_codes(values):
        first = values.filter(values.str.contains("^0[0-9]"))[0]
        return (
            f"column {name!r} is text, as it has codes with zeros in front, such as {first!r} in row {row(first)} "
            "(written without these they are numbers)"
        )
    commas, numbers, dates = values.str.contains(_DECIMAL_COMMA), number_mask(values), values.str.contains(_DATE)
    if commas.any() and 2 * (rows_of(numbers) + rows_of(commas)) >= total:
        first = values.filter(commas)[0]
        return (
            f"column {name!r} is text because of decimal commas, such as {first!r} in row {row(first)}; write decimal "
            "points"
        )
    strange = values.filter(~numbers)
    if len(strange) and 2 * rows_of(numbers) >= total:
        more = f" and {counted(len(strange) - 1, 'other value')}" if len(strange) > 1 else ""
        return (
            f"column {name!r} is text because of {strange[0]!r} in row {row(strange[0])}{more}; "
            f"{rows_of(numbers)} of {total} values are numbers"
        )
    if dates.any() and 2 * rows_of(dates) >= total:
        return (
            f"column {name!r} looks like dates, such as {values.filter(dates)[0]!r}, and is text{_why_no_date(values)}"
        )
    return ""


def _why_no_date(values: pl.Series) -> str:
    if any(_all_dates(values, form) for form in _TWINS):
        return ", as days and months cannot be told apart; write 2024-01-31"
    return ", as not all are written alike with a year of four digits; write 2024-01-31"


def level_counts(column: pl.Series) -> pl.DataFrame:
    """Levels of a table's column in the order in which they come, and how many rows have each.

    Examples
    --------
    >>> level_counts(pl.Series(["b", "a", None, "b"])).rows()
    [('b', 2), ('a', 1)]
    """
    frame = pl.DataFrame({"level": column.drop_nulls()})
    return frame.group_by("level", maintain_order=True).agg(pl.len().alias("rows"))


def level_codes(column: pl.Series, levels: tuple[str, ...]) -> tuple[IntArray, pl.DataFrame]:
    """Places of the cells of a table's column among levels, -1 where there is none of them.

    Parameters
    ----------
    column : polars Series
        Text, or numbers, which are compared as they would be typed.
    levels : tuple of str
        The levels; those of true and false are compared in small letters.

    Returns
    -------
    ndarray of int
        The places.
    polars DataFrame
        Other levels that occur, and how many rows have each.

    Examples
    --------
    >>> codes, others = level_codes(pl.Series(["b", "a", "c", None]), ("a", "b"))
    >>> codes.tolist(), others.rows()
    ([1, 0, -1, -1], [('c', 1)])
    """
    text = number_texts(column)
    text = text.str.to_lowercase() if levels == BOOLEAN else text
    kind = pl.Enum(list(levels))
    codes = text.cast(kind, strict=False)
    strange = text.head(0) if codes.null_count() == text.null_count() else text.filter(codes.is_null())
    others = level_counts(strange)
    if others.height:  # 1.0 is the level 1, as it is where a whole column of numbers is read
        typed = others.get_column("level")
        typed = number_texts(as_numbers(typed.set(typed.str.contains("^0[0-9]"), None)))  # 007 is not the level 7
        known = typed.cast(kind, strict=False).is_not_null()
        if known.any():
            names = others.get_column("level").filter(known)
            text = text.replace(names, typed.filter(known))
            codes, others = text.cast(kind, strict=False), others.filter(~known)
    return codes.to_physical().cast(pl.Int32).fill_null(-1).to_numpy(), others


# ---------------------------------------------------------------------- numbers


def flag_numbers(column: pl.Series) -> pl.Series:
    """Return text of a table that says true and false as 1 and 0, and any other column as it is.

    Examples
    --------
    >>> flag_numbers(pl.Series(["True", "false", None])).to_list(), flag_numbers(pl.Series(["true", "3"])).to_list()
    ([1.0, 0.0, None], ['true', '3'])
    """
    if column.dtype != pl.String:
        return column
    text = column.str.to_lowercase()
    return (text == BOOLEAN[1]).cast(pl.Float64) if text.drop_nulls().is_in(list(BOOLEAN)).all() else column


def finite_numbers(table: Table, name: str, gaps: bool = False) -> FloatArray:
    """Return a column of a table as finite numbers; with `gaps`, values may be missing, NaN.

    Raises
    ------
    InvalidInputError
        If the column has text or infinite values; the text names the row.
    """
    problem = bad_numbers(table, name)
    if problem:
        raise InvalidInputError(problem)
    column = table.series(name)
    if not gaps and column.has_nulls():
        row = int(column.is_null().arg_max() or 0) + table.first_row
        raise InvalidInputError(f"column {name!r} has nan in row {row}; numbers must be finite")
    return np.asarray(column.cast(pl.Float64).to_numpy(), dtype=np.float64)


def bad_numbers(table: Table, name: str) -> str:
    """Say what in a column of a table is no finite number; nothing if all is, or missing.

    Examples
    --------
    >>> bad_numbers(Table({"a": ["1", "old"]}), "a")
    "column 'a' has the text 'old' in row 2, where the model expects numbers"
    """
    column = table.series(name)
    if column.null_count() == len(column):
        return ""
    if column.dtype != pl.Float64:
        text = number_texts(column)
        wrong = text.is_not_null() & ~number_mask(text)
        if column.dtype == pl.String and not wrong.any():  # codes such as 007, which the fit had without zeros
            return bad_numbers(Table({name: as_numbers(text)}, table.first_row), name)
        at = int(wrong.arg_max() or 0) if wrong.any() else int(text.is_not_null().arg_max() or 0)
        comma = "; write decimal points" if text.slice(at, 1).str.contains(_DECIMAL_COMMA).all() else ""
        row = at + table.first_row
        return f"column {name!r} has the text {text[at]!r} in row {row}, where the model expects numbers{comma}"
    endless = column.is_infinite().fill_null(False)
    if not endless.any():
        return ""
    at = int(endless.arg_max() or 0)
    return f"column {name!r} has {column[at]} in row {at + table.first_row}; numbers must be finite"


def joined_problems(problems: list[str], limit: int = 10) -> str:
    """One text for several problems with columns of a table."""
    more = [f"and {len(problems) - limit} more columns"] if len(problems) > limit else []
    return "; ".join(problems[:limit] + more)
