"""What columns of a table are to be as features, and why some cannot be used."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl

from treewright.core.names import counted, printable
from treewright.data.columns_checked import listing
from treewright.data.tables.cells import are_codes
from treewright.data.tables.codes import LEAST_ROWS, MAX_LEVELS, MOST_LEVELS, ColumnCode
from treewright.data.tables.columns import BOOLEAN, date_format, days, joined_problems, level_counts, why_text
from treewright.data.tables.files import Table
from treewright.exceptions import InvalidInputError

__all__ = ["Look", "drop_option", "look_at_column", "refuse_columns", "columns_named", "too_many_levels", "with_gaps"]


@dataclass(frozen=True)
class Look:
    """What was seen in a column."""

    n_missing: int
    gaps: str = ""
    """Why it cannot be used: missing values that are not filled in."""
    many: str = ""
    """Why it cannot be used: too many levels."""
    reason: str = ""
    """Why it is text, where that may not be meant."""
    code: ColumnCode | None = None
    """What becomes of it; None where it cannot be used, or has no value."""
    levels: int = 0
    """Different values of text."""
    pooled: int = 0
    """Rows of the levels that are pooled."""


def with_gaps(table: Table, columns: Iterable[str]) -> dict[str, str]:
    """What is missing in columns of a table that have missing values."""
    found = {name: table.missing(name) for name in columns}
    return {
        name: f"column {name!r} has {counted(int(gone.sum()), 'missing value')}, first in row "
        f"{np.argmax(gone) + table.first_row}"
        for name, gone in found.items()
        if gone.any()
    }


def refuse_columns(gaps: dict[str, str], many: dict[str, str]) -> None:
    """Refuse columns of a table that cannot be used, all in one error; those without a text can."""
    gaps, many = ({name: text for name, text in said.items() if text} for said in (gaps, many))
    if gaps or many:
        remedy = "fill them in, remove these rows, or fit" if gaps else "fit"
        raise InvalidInputError(
            f"{joined_problems([*gaps.values(), *many.values()])}; {remedy} without {columns_named(gaps | many)} "
            f"(on the command line {drop_option(gaps | many)}), or name the columns to use (--features)"
        )


def look_at_column(table: Table, name: str, fill_gaps: bool) -> Look:
    """Look at a column of all rows of a table."""
    column = table.series(name)
    n_missing = column.null_count()
    if n_missing and not fill_gaps:
        return Look(n_missing, gaps=with_gaps(table, [name])[name])
    levels = level_counts(column) if column.dtype == pl.String else None
    many = too_many_levels(table, name, False, levels)
    if many or n_missing == len(column):
        return Look(n_missing, many=many)
    code = _code(column, levels, fill_gaps)
    if levels is None or code.kind != "text":
        return Look(n_missing, code=code)
    reason, n_levels = why_text(table, name, levels), levels.height
    if not code.levels:
        return Look(n_missing, levels=n_levels)
    own = int(levels.filter(pl.col("level").is_in(list(code.levels))).get_column("rows").sum()) if code.pooled else 0
    return Look(n_missing, reason=reason, code=code, levels=n_levels, pooled=len(column) - n_missing - own)


def too_many_levels(table: Table, name: str, partial: bool, found: pl.DataFrame | None = None) -> str:
    """Say that a column of a table has many levels as some cells are no numbers or dates; else nothing."""
    column = table.series(name)
    if column.dtype != pl.String:
        return ""
    found = level_counts(column) if found is None else found
    if found.height <= MAX_LEVELS or date_format(found.get_column("level")):
        return ""
    reason = "" if are_codes(found.get_column("level")) else why_text(table, name, found)
    if not reason or (partial and "dates" in reason):  # days and months that the rows below may tell apart
        return ""
    levels = found.get_column("level").sort().to_list()
    return (
        f"the text column {name!r} has {len(levels)} different values ({listing(levels, limit=3)}), more than "
        f"{MAX_LEVELS} ({reason})"
    )


def columns_named(names: Iterable[str]) -> str:
    """What one or several columns of a table are called in a sentence."""
    return "the column" if len(list(names)) == 1 else "these columns"


def drop_option(names: Iterable[str]) -> str:
    """The option that leaves columns of a table out."""
    return "--drop " + ",".join(f'"{printable(name)}"' if "," in name else printable(name) for name in names)


def _code(column: pl.Series, counts: pl.DataFrame | None, fill_gaps: bool) -> ColumnCode:
    """What becomes of a column, of whose text the levels are known."""
    gaps = fill_gaps and column.has_nulls()
    if column.dtype == pl.Float64:
        return ColumnCode("number", fill=_median(column) if fill_gaps else None, gaps=gaps)
    form = date_format(column if counts is None else counts.get_column("level"))
    if form:
        fill = None
        if fill_gaps:  # text has few different dates
            found = counts if counts is not None else level_counts(column)
            fill = _median(days(found.get_column("level"), form), found.get_column("rows"))
        return ColumnCode("date", format=form, fill=fill, gaps=gaps)
    assert counts is not None
    found = counts.sort("rows", "level", descending=[True, False])
    levels = found.get_column("level").to_list()
    if {level.lower() for level in levels} <= set(BOOLEAN):
        return ColumnCode("text", BOOLEAN, "false", gaps=gaps)
    if len(levels) > MAX_LEVELS:
        frequent = found.filter(pl.col("rows") >= LEAST_ROWS).head(MOST_LEVELS)
        if 0 < int(found.get_column("rows").sum()) - int(frequent.get_column("rows").sum()) < LEAST_ROWS:
            frequent = frequent.head(-1)  # the others together are ten rows or more, too
        return ColumnCode("text", tuple(sorted(frequent.get_column("level").to_list())), gaps=gaps, pooled=True)
    return ColumnCode("text", tuple(sorted(levels)), levels[0], gaps=gaps)


def _median(numbers: pl.Series, rows: pl.Series | None = None) -> float:
    """The mean of the ten middle values, whole where these are; of few the middle one or the lower one of two.

    So no single cell stands in a model file. Each value counts once, or for so many `rows`.

    Examples
    --------
    >>> _median(pl.Series([4.0, 1.0, None, 3.0, 2.0])), _median(pl.Series([4.0, 1.0]), pl.Series([2, 1]))
    (2.0, 4.0)
    >>> _median(pl.Series([*[20.03] * 10, 31.07, *[40.0] * 10])), _median(pl.Series(range(101)))
    (31.119, 50.0)
    """
    values = numbers.cast(pl.Float64).fill_null(np.nan).to_numpy()
    fine = np.isfinite(values)
    values = values[fine]
    if not len(values):
        return 0.0
    order = np.argsort(values)
    reached = np.cumsum(np.ones(len(values)) if rows is None else rows.to_numpy()[fine][order])
    middle = (reached[-1] - 1) // 2
    few = reached[-1] < 2 * LEAST_ROWS
    places = middle + (np.zeros(1) if few else np.arange(LEAST_ROWS) - LEAST_ROWS // 2 + 1)
    ten = values[order[np.searchsorted(reached, places, side="right")]]
    if np.all(ten == ten[0]):
        return float(ten[0])
    mean = float(np.clip(np.sum(ten / len(ten)), ten[0], ten[-1]))
    return float(np.rint(mean)) if np.all(ten == np.rint(ten)) else mean
