"""Known totals of the classes, in a table, JSON, a mapping or a frame, read into what ``fit`` takes."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from treewright.app.options import is_path
from treewright.app.spelling import Spelling
from treewright.core.names import option
from treewright.data.columns_checked import listing
from treewright.data.rows import is_frame
from treewright.data.tables.cells import is_missing, is_number, number_text
from treewright.data.tables.files import read_cells
from treewright.data.totals_input import total_interval
from treewright.estimators.tables import frame_cells, frame_columns
from treewright.exceptions import InvalidInputError, ModelFileError
from treewright.tree.json_files import read_json

__all__ = ["read_totals"]

_WHOLE = re.compile(r"[+-]?\d+")
_LONG = ("class", "low", "high")


def read_totals(
    source: Any,
    *,
    groups: str | None,
    whole_labels: bool,
    numeric_groups: bool,
    na: Collection[str] = (),
    encoding: str | None = None,
    classes: Collection[Any] = (),
    known: Collection[str] = (),
    spelling: Spelling | None = None,
    parameter: str = "totals",
) -> dict[Any, Any]:
    """Read totals of the rows without a label.

    Parameters
    ----------
    source : path-like, mapping or frame
        A text table with one column a class, or ``.json`` with ``{class: total}``; a total is a count (a whole
        number), a share (a number with a decimal point) or, in JSON, a list of the lowest and the highest. With
        groups, the table has one row a group and a column that names it, and JSON has ``{group: {class: total}}``.
        A table with columns "class", "low" and "high" has intervals, a row for each class (of each group). A mapping
        is read as JSON, a frame as a table.
    groups : str or None
        Name of the column of groups; a table without such a column has the groups in its first one.
    whole_labels, numeric_groups : bool
        Whether the classes are whole numbers and the groups numbers in the data.
    na : collection of str
        What else is a missing cell. The class of a missing cell is free.
    encoding : str or None
        Encoding of a text table that is not UTF-8.
    classes, known : collection
        Classes and groups of the data.
    spelling : Spelling or None
        Whether names that are written like these are taken for them.
    parameter : str
        What named it, in messages.

    Returns
    -------
    dict
        ``{label: total}``, or ``{group: {label: total}}`` with groups as text.
    """
    one = spelling or Spelling("keep")

    def label(text: str) -> object:
        return int(text) if whole_labels and _WHOLE.fullmatch(text) else one.name(text, classes)

    def group(text: str) -> object:
        if numeric_groups and is_number(text) and not is_missing(text):
            return number_text(float(text))
        return one.name(text, known)

    where = _Source(parameter, str(source) if is_path(source) else None)
    if is_frame(source):
        return _from_cells(where, *_frame_cells(source, groups), groups, label, group, na)
    if not is_path(source):
        return _from_mapping(where, _plain(where, source), groups, label, group)
    if Path(source).suffix.lower() == ".json":
        return _from_mapping(where, _read_json(where, source), groups, label, group)
    header, rows = read_cells(source, None if _is_utf8(source) else encoding)
    return _from_cells(where, header, rows, groups, label, group, na)


class _Source(NamedTuple):
    """What named totals, and the file that they are in."""

    parameter: str
    path: str | None

    def __str__(self) -> str:
        return option(self.parameter, self.path)


Name = Callable[[str], object]


def _read_json(source: _Source, path: Any) -> Any:
    try:
        return read_json(path)
    except ModelFileError as error:
        raise InvalidInputError(f"{option(source.parameter)}: {error}") from error


def _plain(source: _Source, totals: Any) -> dict[str, Any]:
    """A mapping as JSON has it: names are text, as those of the table are."""
    if not isinstance(totals, Mapping) and not hasattr(totals, "to_dict"):
        kind = type(totals).__name__
        raise InvalidInputError(f"{source}: is of type {kind}; expected the path of a file, a mapping or a frame")
    items = totals.items() if isinstance(totals, Mapping) else totals.to_dict().items()  # a series of pandas
    return {_text(name): _plain(source, of) if isinstance(of, Mapping) else of for name, of in items}


def _text(name: Any) -> str:
    """A name as a table has it."""
    if isinstance(name, bool | np.bool_):
        return str(bool(name)).lower()
    return str(number_text(float(name)) if isinstance(name, int | float | np.number) else name)


def _frame_cells(frame: Any, groups: str | None) -> tuple[list[str], list[list[str]]]:
    """Header and cells of a frame as a file has them; groups may be the index of a frame of pandas."""
    if hasattr(frame, "reset_index") and groups is not None and list(frame.index.names) == [groups]:
        frame = frame.reset_index()
    columns = [(name, pl.Series(frame_cells(cells))) for name, cells in frame_columns(frame).items()]
    found = {name: column.fill_nan(None) if column.dtype.is_float() else column for name, column in columns}
    numbers = [column for column in found.values() if column.dtype.is_float()]
    shares = all(column.is_between(0, 1).all() for column in numbers)  # else counts, some with a gap beside them

    def cells(column: pl.Series) -> list[str]:
        written = repr if shares and column.dtype.is_float() else _text
        return ["" if value is None else written(value) for value in column.to_list()]

    return list(found), [list(row) for row in zip(*map(cells, found.values()), strict=True)]


def _from_mapping(source: _Source, document: Any, groups: str | None, label: Name, group: Name) -> dict[Any, Any]:
    form = "{class: total}" if groups is None else "{group: {class: total}}"
    if not isinstance(document, dict) or not document:
        raise InvalidInputError(f"{source}: expected an object, {form}")
    if groups is None:
        if any(isinstance(value, dict) for value in document.values()):
            raise InvalidInputError(f"{source}: has totals by group; name the column with {option('groups')}")
        return _named(source, "class", ((label(key), value) for key, value in document.items()))
    if not all(isinstance(value, dict) for value in document.values()):
        raise InvalidInputError(f"{source}: expected {form} with {option('groups', groups)}")
    parts = {
        key: _named(source, "class", ((label(name), value) for name, value in part.items()))
        for key, part in document.items()
    }
    return _named(source, "group", ((group(key), part) for key, part in parts.items()))


def _is_utf8(path: Any) -> bool:
    """Whether a file is UTF-8: the encoding of the data is not that of each file beside it."""
    try:
        Path(path).read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return Path(path).suffix.lower() == ".gz"  # which says nothing of what is in it
    except OSError:  # said by who reads it
        pass
    return True


def _from_cells(
    source: _Source,
    header: list[str],
    rows: list[list[str]],
    groups: str | None,
    label: Name,
    group: Name,
    na: Collection[str],
) -> dict[Any, Any]:
    if not rows:
        raise InvalidInputError(f"{source}: has no rows")
    if set(_LONG) <= set(header):
        return _from_intervals(source, header, rows, groups is not None, label, group, na)
    at = None if groups is None else header.index(groups) if groups in header else 0
    classes = [(j, label(name)) for j, name in enumerate(header) if j != at]
    totals = [
        {j: _number(row[j], f"{source}: row {i}, column {header[j]!r}") for j, _ in classes}
        for i, row in enumerate(_without_missing(rows, na), start=1)
        if at is not None or len(rows) == 1
    ]
    if not totals:
        raise InvalidInputError(
            f"{source}: has {len(rows)} rows, expected one; for a row a group, name the column with {option('groups')}"
        )
    totals = _shares(totals)
    parts = [
        _named(source, "class", ((name, part[j]) for j, name in classes if part[j] is not None)) for part in totals
    ]
    if at is None:
        return parts[0]
    names = [row[at] for row in rows]
    if any(is_missing(name, na) for name in names):
        raise InvalidInputError(f"{source}: a row has no group in column {header[at]!r}")
    return _named(source, "group", zip(map(group, names), parts, strict=True))


def _from_intervals(
    source: _Source,
    header: list[str],
    rows: list[list[str]],
    grouped: bool,
    label: Name,
    group: Name,
    na: Collection[str],
) -> dict[Any, Any]:
    """A row for each class, of each group, with the ends of its interval; an empty end is open."""
    at = {name: header.index(name) for name in (*_LONG, "total") if name in header}
    others = [j for j in range(len(header)) if j not in at.values()]
    if len(others) > grouped:
        names = listing(header[j] for j in others)
        remedy = (
            "leave out all but the column of groups"
            if grouped
            else f"name the column of groups with {option('groups')}"
        )
        raise InvalidInputError(f"{source}: beside class, low, high and total it has {names}; {remedy}")
    if len(others) < grouped:
        raise InvalidInputError(f"{source}: has no column that names the groups")
    cells = _without_missing(rows, na)
    ends = [
        {j: _number(row[j], f"{source}: row {i}, column {name!r}") for name, j in at.items() if name != "class"}
        for i, row in enumerate(cells, start=1)
    ]
    parts: dict[Any, list[tuple[object, Any]]] = {}
    for row, part in zip(cells, _shares(ends), strict=True):
        if not row[at["class"]] or (grouped and not row[others[0]]):
            raise InvalidInputError(f"{source}: a row has no class or no group")
        asked = total_interval(*(part[at[name]] for name in ("low", "high", "total") if name in at))
        of = parts.setdefault(group(row[others[0]]) if grouped else None, [])
        if asked is not None:
            of.append((label(row[at["class"]]), asked))
    found = {name: _named(source, "class", of) for name, of in parts.items()}
    return found if grouped else found[None]


def _without_missing(rows: list[list[str]], na: Collection[str]) -> list[list[str]]:
    return [["" if is_missing(cell, na) else cell for cell in row] for row in rows]


def _number(cell: str, where: str) -> int | float | None:
    """Return a count, a share, or None for an empty cell."""
    if not cell:
        return None
    if _WHOLE.fullmatch(cell):
        return int(cell)
    if not is_number(cell):
        raise InvalidInputError(f"{where}: {cell!r} is no number; write a count such as 45 or a share such as 0.45")
    return float(cell)


def _shares(totals: list[dict[int, int | float | None]]) -> list[dict[int, int | float | None]]:
    """Take 1 for the share 1.0 in a table that has shares and no other counts than 0 and 1."""
    given = [value for part in totals for value in part.values() if value is not None]
    if any(isinstance(value, float) for value in given) and all(0 <= value <= 1 for value in given):
        return [{j: None if value is None else float(value) for j, value in part.items()} for part in totals]
    return totals


def _named(source: _Source, what: str, pairs: Iterable[tuple[object, Any]]) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for name, value in pairs:
        if name in found:
            raise InvalidInputError(f"{source}: the {what} {listing([name])} occurs twice")
        found[name] = value
    return found
