"""Tables from files for models that take categories and gaps as they are."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import polars as pl

from treewright.core.names import printable
from treewright.data.columns_checked import AnyArray, listing
from treewright.data.mixed import Level
from treewright.data.tables.cells import number_text, number_texts
from treewright.data.tables.columns import (
    BOOLEAN,
    bad_dates,
    bad_numbers,
    date_format,
    days,
    is_date_format,
    joined_problems,
    level_codes,
    why_text,
)
from treewright.data.tables.encoding import Unseen
from treewright.data.tables.files import Table
from treewright.exceptions import InvalidInputError, ModelFileError

__all__ = ["MixedEncoder"]

_KINDS = ("number", "text", "bool", "date")
_MANY = 50
"""Text that differs in every row is a name or a number of the row, and no category, if rows are more."""


@dataclass(frozen=True)
class MixedEncoder:
    """Which columns of a table are features, and of what kind: numbers, text, true and false, or dates.

    Levels of text are learned by the model itself. True and false are text in small letters. Dates are numbers, days
    since 1970-01-01.

    Attributes
    ----------
    kinds : dict of str to {"number", "text", "bool", "date"}
        The columns in order.
    formats : dict of str to str
        How dates are written.

    Examples
    --------
    >>> table = Table({"age": [31.0, 45.0, np.nan], "region": ["north", None, "south"]})
    >>> encoder = MixedEncoder.fit(table, ["age", "region"])
    >>> encoder.transform(table)[0].tolist(), encoder.categorical
    ([[31.0, 'north'], [45.0, None], [nan, 'south']], [1])
    """

    kinds: dict[str, str]
    formats: dict[str, str] = field(default_factory=dict)

    @classmethod
    def fit(cls, table: Table, columns: Sequence[str]) -> Self:
        """Note the kinds of some columns.

        Warns of text that is mostly numbers, looks like dates or differs in each row, and of dates that become numbers.
        """
        if not columns:
            raise InvalidInputError("no column is left to use as a feature")
        encoder = cls({}, {})
        for name in columns:
            column = table.series(name)
            form = date_format(column) if column.dtype == pl.String or column.dtype.is_temporal() else ""
            if form:
                encoder.formats[name] = form
            encoder.kinds[name] = "date" if form else "number" if table.is_numeric(name) else _kind_of_text(table, name)
        dates = list(encoder.formats)
        if dates:
            which, verb = ("column", "has") if len(dates) == 1 else ("columns", "have")
            what = f"{which} {listing(dates)} {verb} dates, which become numbers: days since 1970-01-01"
            warnings.warn(what, UserWarning, stacklevel=2)
        return encoder

    @property
    def columns(self) -> list[str]:
        """Names of the columns that are used."""
        return list(self.kinds)

    @property
    def feature_names(self) -> list[str]:
        """Names of the features, which are those of the columns."""
        return self.columns

    @property
    def categorical(self) -> list[int]:
        """Numbers of the features that are text."""
        return [j for j, kind in enumerate(self.kinds.values()) if kind in ("text", "bool")]

    @property
    def text_columns(self) -> list[str]:
        """Names of the columns that are text, and not to be taken for numbers."""
        return [name for name, kind in self.kinds.items() if kind != "number"]

    def check_columns(self, columns: Sequence[str]) -> None:
        """Refuse a table that lacks columns of the fit."""
        lacking = [name for name in self.kinds if name not in columns]
        if lacking:
            raise InvalidInputError(
                f"the table lacks {listing(lacking)}, which the model was fitted with; the table has {listing(columns)}"
            )

    def transform(self, table: Table) -> tuple[AnyArray, list[str]]:
        """Return the features of a table, numbers or numbers and text with gaps, and their names.

        Raises
        ------
        InvalidInputError
            If a column is missing, has infinite values, or text where numbers or dates were; the text names all of
            these.
        """
        self.check_columns(table.columns)
        wrong = [self._wrong(table, name) for name in self.kinds]
        if any(wrong):
            raise InvalidInputError(joined_problems([text for text in wrong if text]))
        columns = [self._column(table.series(name), kind) for name, kind in self.kinds.items()]
        if not self.categorical:
            return np.column_stack(columns), self.feature_names
        cells = np.empty((table.n_rows, len(columns)), dtype=object)
        for j, column in enumerate(columns):
            cells[:, j] = column
        return cells, self.feature_names

    def note_unseen(
        self, table: Table, levels: Mapping[str, Sequence[Level]], gapless: Collection[str], unseen: Unseen
    ) -> None:
        """Count what the rows of a fit had not.

        Parameters
        ----------
        table : Table
            New rows, which :meth:`transform` takes.
        levels : mapping of str to sequence of levels
            Columns whose levels are looked at, and those of the fit.
        gapless : collection of str
            Columns that had no gaps at the fit.
        unseen : Unseen
            Where other levels, and gaps in such columns, are counted.

        Examples
        --------
        >>> encoder, unseen = MixedEncoder({"age": "number", "region": "text"}), Unseen()
        >>> new = Table({"age": [31.0, np.nan], "region": ["north", "moon"]})
        >>> encoder.note_unseen(new, {"region": ["north", "south"]}, ["age"], unseen)
        >>> unseen
        Unseen(levels={'region': Counter({'moon': 1})}, gaps=Counter({'age': 1}))
        """
        for name in gapless:
            n_gaps = int(table.missing(name).sum())
            if n_gaps:
                unseen.gaps[name] += n_gaps
        for name, known in levels.items():
            texts = tuple(level if isinstance(level, str) else str(number_text(float(level))) for level in known)
            text = number_texts(table.series(name))
            others = level_codes(text.str.to_lowercase() if self.kinds[name] == "bool" else text, texts)[1]
            if others.height:
                unseen.levels.setdefault(name, Counter()).update(dict(others.rows()))

    def _wrong(self, table: Table, name: str) -> str:
        if self.kinds[name] == "date":
            return bad_dates(table, name, self.formats[name])
        return bad_numbers(table, name) if self.kinds[name] == "number" else ""

    def _column(self, column: pl.Series, kind: str) -> AnyArray:
        if kind == "date":
            return np.asarray(days(column, self.formats[column.name]).to_numpy())
        if kind == "number":
            return np.asarray(column.cast(pl.Float64).to_numpy())
        text = number_texts(column)
        return np.asarray((text.str.to_lowercase() if kind == "bool" else text).to_numpy(), dtype=object)

    def to_dict(self) -> dict[str, Any]:
        """Return the encoder as plain data, for a model file."""
        return {
            "kinds": [[*pair, *([self.formats[pair[0]]] if pair[1] == "date" else [])] for pair in self.kinds.items()]
        }

    @classmethod
    def from_dict(cls, data: object, where: str = "table") -> Self:
        """Make an encoder from what :meth:`to_dict` gave, trusting nothing.

        Examples
        --------
        >>> MixedEncoder.from_dict({"kinds": [["age", "number"], ["region", "text"]]}).feature_names
        ['age', 'region']
        """
        pairs = data.get("kinds") if isinstance(data, dict) and set(data) == {"kinds"} else None
        if not isinstance(pairs, list) or not pairs:
            raise ModelFileError(f"{where}: expected an object with a list of columns and kinds")
        encoder = cls({}, {})
        for i, entry in enumerate(pairs):
            fine = isinstance(entry, list) and len(entry) in (2, 3) and all(isinstance(text, str) for text in entry)
            if not fine or not entry[0] or entry[1] not in _KINDS or (len(entry) == 3) != (entry[1] == "date"):
                raise ModelFileError(f"{where}.kinds[{i}]: expected a name and one of {', '.join(_KINDS)}")
            if len(entry) == 3:
                if not is_date_format(entry[2]):
                    raise ModelFileError(f"{where}.kinds[{i}]: {entry[2]!r} is no known way to write dates")
                encoder.formats[entry[0]] = entry[2]
            if entry[0] in encoder.kinds:
                raise ModelFileError(f"{where}.kinds[{i}]: column {entry[0]!r} occurs twice")
            encoder.kinds[entry[0]] = entry[1]
        return encoder


def _kind_of_text(table: Table, name: str) -> str:
    """Kind of a text column; warns of what is hardly a category."""
    known = table.series(name).drop_nulls()
    levels = known.unique()
    reason = why_text(table, name)
    if reason:
        warnings.warn(f"{reason}; its {len(levels)} values become levels of a category", UserWarning, stacklevel=3)
    elif len(levels) > _MANY and len(levels) == len(known):
        warnings.warn(
            f"the text column {name!r} has another value in every row and can tell a model nothing of others; "
            f"--drop {printable(name)} leaves it out",
            UserWarning,
            stacklevel=3,
        )
    return "bool" if len(levels) and levels.str.to_lowercase().is_in(list(BOOLEAN)).all() else "text"
