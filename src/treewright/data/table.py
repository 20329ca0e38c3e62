"""Tables for people who have files: reading and writing them, and turning columns into features."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np

from treewright.arrays import FloatArray
from treewright.data._checks import AnyArray, listing
from treewright.data._table_files import (
    Table,
    is_missing,
    is_number,
    number_text,
    read_cells,
    read_table,
    table_kind,
    write_table,
)
from treewright.exceptions import InvalidInputError, ModelFileError
from treewright.names import printable

__all__ = [
    "MAX_LEVELS",
    "Table",
    "TableEncoder",
    "finite_numbers",
    "is_missing",
    "is_number",
    "number_text",
    "read_cells",
    "read_table",
    "table_kind",
    "why_text",
    "write_table",
]

MAX_LEVELS = 50
"""Most different values of a text column that is used as a feature."""

_BOOLEAN = ("false", "true")
_DECIMAL_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+([eE][+-]?\d+)?")
_DATE = re.compile(r"(\d{4}([-/.])\d{1,2}\2\d{1,2}|\d{1,2}([-/.])\d{1,2}\3(\d{4}|\d{2}))([T ]\d.*)?")


@dataclass(frozen=True)
class TableEncoder:
    """How columns of a table become features: numbers as they are, text as one 0/1 feature a level.

    The features of a text column are named ``column=level``, levels sorted. A column of true and false is the
    one feature ``column=true``.

    Attributes
    ----------
    levels : dict of str to (tuple of str or None)
        The columns in order; None for a numeric one, else its levels.

    Examples
    --------
    >>> import numpy as np
    >>> region = np.array(["north", "south", "north"], dtype=object)
    >>> table = Table({"age": np.array([31.0, 45.0, 28.0]), "region": region})
    >>> encoder = TableEncoder.fit(table, ["age", "region"])
    >>> matrix, names = encoder.transform(table)
    >>> names
    ['age', 'region=north', 'region=south']
    >>> matrix[0].tolist()
    [31.0, 1.0, 0.0]
    """

    levels: dict[str, tuple[str, ...] | None]

    @classmethod
    def fit(cls, table: Table, columns: Sequence[str]) -> Self:
        """Note the kinds and levels of some columns; warns of text that is mostly numbers, or looks like dates."""
        if not columns:
            raise InvalidInputError("no column is left to use as a feature")
        levels: dict[str, tuple[str, ...] | None] = {}
        for name in columns:
            _check_complete(table, name)
            if table.is_numeric(name):
                levels[name] = None
                continue
            reason = why_text(table, name)
            levels[name] = _levels(table[name], name, reason)
            if reason:
                warnings.warn(
                    f"{reason}; each of its {len(levels[name] or ())} values becomes a feature of its own",
                    UserWarning,
                    stacklevel=2,
                )
        encoder = cls(levels)
        twice = [name for name, times in Counter(encoder.feature_names).items() if times > 1]
        if twice:
            raise InvalidInputError(f"features of the same name: {listing(twice)}; rename a column or a level")
        return encoder

    @property
    def columns(self) -> list[str]:
        """Names of the columns that are used."""
        return list(self.levels)

    @property
    def feature_names(self) -> list[str]:
        """Names of the features."""
        names: list[str] = []
        for name, levels in self.levels.items():
            names += [name] if levels is None else [f"{name}={level}" for level in _shown(levels)]
        return names

    def transform(self, table: Table) -> tuple[FloatArray, list[str]]:
        """Turn a table into numbers.

        Parameters
        ----------
        table : Table
            A table with the columns of the encoder; others are not looked at.

        Returns
        -------
        matrix : ndarray of shape (n_rows, n_features)
            The features.
        feature_names : list of str
            Their names.

        Raises
        ------
        InvalidInputError
            If a column is missing, has missing or infinite values, or text where numbers were.

        Warns
        -----
        UserWarning
            If a text column has levels that the encoder does not know: their features are all 0.
        """
        lacking = [name for name in self.levels if name not in table.columns]
        if lacking:
            raise InvalidInputError(
                f"the table lacks {listing(lacking)}, which the model was fitted with; the table has "
                f"{listing(table.columns)}"
            )
        blocks = []
        for name, levels in self.levels.items():
            _check_complete(table, name)
            blocks.append(finite_numbers(table, name)[:, None] if levels is None else _one_hot(table, name, levels))
        return np.ascontiguousarray(np.hstack(blocks), dtype=np.float64), self.feature_names

    def to_dict(self) -> dict[str, Any]:
        """Return the encoder as plain data, for a model file."""
        return {"columns": [[name, None if known is None else list(known)] for name, known in self.levels.items()]}

    @classmethod
    def from_dict(cls, data: object, where: str = "table") -> Self:
        """Make an encoder from what :meth:`to_dict` gave, trusting nothing.

        Parameters
        ----------
        data : object
            What was read from a file.
        where : str
            Where in the file it stands, for error texts.

        Raises
        ------
        ModelFileError
            If the data is anything else.

        Examples
        --------
        >>> TableEncoder.from_dict({"columns": [["age", None], ["region", ["north", "south"]]]}).feature_names
        ['age', 'region=north', 'region=south']
        """
        columns = data.get("columns") if isinstance(data, dict) and set(data) == {"columns"} else None
        if not isinstance(columns, list) or not columns:
            raise ModelFileError(f"{where}: expected an object with a list of columns")
        levels: dict[str, tuple[str, ...] | None] = {}
        for i, entry in enumerate(columns):
            place = f"{where}.columns[{i}]"
            if not isinstance(entry, list) or len(entry) != 2 or not isinstance(entry[0], str) or not entry[0]:
                raise ModelFileError(f"{place}: expected a name and its levels or null")
            name, known = entry
            if name in levels:
                raise ModelFileError(f"{place}: column {name!r} occurs twice")
            levels[name] = None if known is None else _checked_levels(known, place)
        encoder = cls(levels)
        if len(set(encoder.feature_names)) < len(encoder.feature_names):
            raise ModelFileError(f"{where}: features of the same name")
        return encoder


def why_text(table: Table, name: str) -> str:
    """Say why a column that looks like numbers or dates is text; say nothing if there is nothing to say.

    Parameters
    ----------
    table : Table
        The table.
    name : str
        A column.

    Returns
    -------
    str
        A clause for a warning, empty for a numeric column and for usual text.

    Examples
    --------
    >>> import numpy as np
    >>> why_text(Table({"a": np.array(["1", "2", "3", "."], dtype=object)}), "a")
    "column 'a' is text because of '.' in row 4; 3 of 4 values are numbers"
    """
    if table.is_numeric(name):
        return ""
    column = table[name].tolist()
    times = Counter(value for value in column if value is not None)
    total = sum(times.values())
    commas = [value for value in times if _DECIMAL_COMMA.fullmatch(value)]
    strange = [value for value in times if not is_number(value)]
    numbers = total - sum(times[value] for value in strange)
    if commas and 2 * (numbers + sum(times[value] for value in commas)) >= total:
        return (
            f"column {name!r} is text because of decimal commas, such as {commas[0]!r} in row "
            f"{column.index(commas[0]) + 1}; write decimal points"
        )
    if strange and 2 * numbers >= total:
        more = f" and {len(strange) - 1} other values" if len(strange) > 1 else ""
        return (
            f"column {name!r} is text because of {strange[0]!r} in row {column.index(strange[0]) + 1}{more}; "
            f"{numbers} of {total} values are numbers"
        )
    dates = [value for value in times if _DATE.fullmatch(value)]
    if dates and 2 * sum(times[value] for value in dates) >= total:
        return f"column {name!r} looks like dates, such as {dates[0]!r}, and is text"
    return ""


def _shown(levels: tuple[str, ...]) -> tuple[str, ...]:
    """Levels that have a feature."""
    return levels[1:] if levels == _BOOLEAN else levels


def _levels(column: AnyArray, name: str, reason: str) -> tuple[str, ...]:
    found = sorted(set(column.tolist()))
    if {level.lower() for level in found} <= set(_BOOLEAN):
        return _BOOLEAN
    if len(found) > MAX_LEVELS:
        raise InvalidInputError(
            f"the text column {name!r} has {len(found)} different values ({listing(found, limit=3)}), more "
            f"than {MAX_LEVELS}; leave it out (--drop {printable(name)}) or name the columns to use (--features)"
            + (f"; {reason}" if reason else "")
        )
    return tuple(found)


def _checked_levels(known: object, place: str) -> tuple[str, ...]:
    if not isinstance(known, list) or not 0 < len(known) <= MAX_LEVELS or not all(isinstance(v, str) for v in known):
        raise ModelFileError(f"{place}: levels must be 1 to {MAX_LEVELS} strings")
    levels = tuple(cast(list[str], known))
    if list(levels) != sorted(set(levels)):
        raise ModelFileError(f"{place}: levels must be sorted and different")
    return levels


def _check_complete(table: Table, name: str) -> None:
    missing = table.missing(name)
    if missing.any():
        raise InvalidInputError(
            f"column {name!r} has {np.count_nonzero(missing)} missing values, first in row "
            f"{np.argmax(missing) + 1}; fill them in, remove these rows, or fit without the column "
            f"(--drop {printable(name)})"
        )


def finite_numbers(table: Table, name: str, gaps: bool = False) -> FloatArray:
    """Return a column of finite numbers; with `gaps`, values may be missing, NaN.

    Raises
    ------
    InvalidInputError
        If the column has text or infinite values; the text names the row.
    """
    column = table[name]
    if gaps and table.missing(name).all():
        return np.full(len(column), np.nan)
    if not table.is_numeric(name):
        row = next((i for i, value in enumerate(column) if value is not None and not is_number(value)), 0)
        comma = "; write decimal points" if _DECIMAL_COMMA.fullmatch(column[row]) else ""
        raise InvalidInputError(
            f"column {name!r} has the text {column[row]!r} in row {row + 1}, where the model expects numbers{comma}"
        )
    fine = np.isfinite(column) | (np.isnan(column) & gaps)
    if not fine.all():
        row = int(np.argmin(fine))
        raise InvalidInputError(f"column {name!r} has {column[row]} in row {row + 1}; numbers must be finite")
    return column


def _one_hot(table: Table, name: str, levels: tuple[str, ...]) -> FloatArray:
    column = table.as_text(name)
    if levels == _BOOLEAN:
        column = np.array([value.lower() for value in column], dtype=object)
    strange = Counter(value for value in column if value not in levels)
    if strange:
        counts = ", ".join(f"{level!r} ({n} rows)" for level, n in strange.most_common(10))
        more = f" and {len(strange) - 10} more" if len(strange) > 10 else ""
        warnings.warn(
            f"column {name!r} has levels that the model has not seen: {counts}{more}; they count as none of "
            f"{listing(levels)}",
            UserWarning,
            stacklevel=3,
        )
    return (column[:, None] == np.array(_shown(levels), dtype=object)[None, :]).astype(np.float64)
