"""Columns of a table turned into numbers: flags of levels, days of dates, gaps that are filled in and flagged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import polars as pl

from treewright.core.arrays import FloatArray
from treewright.core.names import counted
from treewright.data.columns_checked import listing
from treewright.data.tables.codes import LEAST_ROWS, ColumnCode, checked_code
from treewright.data.tables.columns import bad_dates, bad_numbers, days, joined_problems
from treewright.data.tables.encoding import EncodedRows, Unseen
from treewright.data.tables.files import Table
from treewright.data.tables.look import (
    Look,
    columns_named,
    drop_option,
    look_at_column,
    refuse_columns,
    too_many_levels,
    with_gaps,
)
from treewright.exceptions import InvalidInputError, ModelFileError, warn_user

__all__ = ["HEAVIER", "Surprises", "TableEncoder", "pooled_words"]


HEAVIER = "go where more rows of the fit went"
"""What becomes of levels and gaps that the fit had not, where a tree takes them as they are."""


class Surprises(Unseen):
    """What a table has that the rows of a fit had not, counted over all parts of the table."""

    def warn(self, encoder: TableEncoder | None) -> None:
        """Warn of what was counted; without an encoder, of a model that takes levels and gaps as they are."""
        for name, strange in self.levels.items():
            if encoder is not None and encoder.codes[name].pooled:
                warn_user(f"column {name!r}: {pooled_words(strange)}")
                continue
            counts = ", ".join(f"{level!r} ({counted(n, 'row')})" for level, n in strange.most_common(10))
            more = f" and {len(strange) - 10} more" if len(strange) > 10 else ""
            so = f"they {HEAVIER}" if encoder is None else f"they count as {_as_what(encoder.codes[name])}"
            warn_user(f"column {name!r} has levels that the model has not seen: {counts}{more}; {so}")
        if self.gaps and encoder is None:
            told = ", ".join(f"{name!r} ({n} of them)" for name, n in self.gaps.items())
            warn_user(f"missing values in columns that had none at the fit: {told}; they {HEAVIER}")
        elif self.gaps and encoder is not None:
            warn_user(_filled(encoder, self.gaps))


def pooled_words(strange: Counter[str]) -> str:
    """How many rows of a table have levels that are pooled.

    Examples
    --------
    >>> pooled_words(Counter(smith=3, baker=1))
    '4 rows have one of 2 levels that fewer than 10 rows of the fit had, or none; they count as one level'
    """
    rows, levels = sum(strange.values()), len(strange)
    which = "a level" if levels == 1 else f"one of {levels} levels"
    return (
        f"{counted(rows, 'row has', 'rows have')} {which} that fewer than {LEAST_ROWS} rows of the fit had, or none; "
        "they count as one level"
    )


def _as_what(code: ColumnCode) -> str:
    """What levels count as that the fit has not seen."""
    others = listing(code.levels)
    return f"none of {others}" if code.base is None else f"{code.base!r}, the most frequent of {others}"


@dataclass(frozen=True)
class TableEncoder:
    """How columns of a table become features: numbers as they are, text as 0/1 features, dates as days.

    A text column becomes one 0/1 feature a level, named ``column=level``, but for the most frequent level (the first in
    the alphabet of several), which is where all of them are 0. A column of true and false is the one feature
    ``column=true``. Of more than 50 levels those in ten rows or more have a feature, the 200 most frequent of them at
    most; all others are one level, where these features are 0. Dates are days since 1970-01-01. Missing values are
    refused, or else filled in: with the median, or for text with 0 in all features of levels; a further feature
    ``column is missing`` is 1 there if the column had missing values at the fit.

    Attributes
    ----------
    codes : dict of str to ColumnCode
        The columns in order.
    fills : bool
        Whether missing values are filled in.
    missing : dict of str to int
        Missing values of the columns that had some when the encoder was made; model files do not keep it.

    Examples
    --------
    >>> encoder = TableEncoder.fit(Table({"age": [31.0, 45.0], "region": ["north", "south"]}), ["age", "region"])
    >>> matrix, names = encoder.transform(Table({"age": [28.0], "region": ["south"]}))
    >>> names
    ['age', 'region=south']
    >>> matrix.tolist()
    [[28.0, 1.0]]
    """

    codes: dict[str, ColumnCode]
    fills: bool = False
    missing: dict[str, int] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of_numbers(cls, columns: Iterable[str]) -> Self:
        """An encoder of columns that are all numbers without gaps."""
        return cls({name: ColumnCode("number") for name in columns})

    @classmethod
    def fit(cls, table: Table, columns: Sequence[str], fill_gaps: bool = False) -> Self:
        """Note the kinds and levels of some columns.

        Parameters
        ----------
        table : Table
            The table.
        columns : sequence of str
            Columns to use.
        fill_gaps : bool, default=False
            Whether missing values are filled in. A column without any value is left out then.

        Raises
        ------
        InvalidInputError
            If columns cannot be used; the text names all of them.

        Warns
        -----
        UserWarning
            Of text that is mostly numbers or looks like dates, of dates that become numbers, of values that are filled
            in.
        """
        if not columns:
            raise InvalidInputError("no column is left to use as a feature")
        looked = {
            name: look_at_column(table, name, fill_gaps) for name in columns
        }  # each column once: it may be in a file
        refuse_columns({n: one.gaps for n, one in looked.items()}, {n: one.many for n, one in looked.items()})
        codes = {name: one.code for name, one in looked.items() if one.code is not None}
        empty = [name for name in columns if name not in codes and not looked[name].levels]
        if empty:
            warn_user(f"columns without any value are left out: {listing(empty)}")
        for name in columns:
            if name not in codes and looked[name].levels:
                warn_user(
                    f"the text column {name!r} has {looked[name].levels} different values, none of them in "
                    f"{LEAST_ROWS} rows or more, and is left out: it can tell a model nothing of other rows"
                )
        if not codes:
            raise InvalidInputError("no column is left to use as a feature")
        encoder = cls(codes, fill_gaps, {name: n for name in codes if (n := looked[name].n_missing)})
        if not encoder.feature_names:
            raise InvalidInputError(f"no column is left to use as a feature: {listing(codes)} have one value only")
        twice = [name for name, times in Counter(encoder.feature_names).items() if times > 1]
        if twice:
            raise InvalidInputError(f"features of the same name: {listing(twice)}; rename a column or a level")
        encoder._tell(looked)
        return encoder

    @staticmethod
    def check(table: Table, columns: Sequence[str], fill_gaps: bool = False, partial: bool = False) -> None:
        """Refuse columns that cannot be used, all in one error.

        Parameters
        ----------
        table, columns, fill_gaps
            As for :meth:`fit`.
        partial : bool, default=False
            Whether these are the first rows of a table only, which tell less.

        Examples
        --------
        >>> TableEncoder.check(Table({"pay": ["?", *map(str, range(60))]}), ["pay"])
        Traceback (most recent call last):
        ...
        treewright.exceptions.InvalidInputError: the text column 'pay' has 61 different values ('0', '1', '10', ...
        """
        if not columns:
            raise InvalidInputError("no column is left to use as a feature")
        gaps = {} if fill_gaps else with_gaps(table, columns)
        refuse_columns(gaps, {name: too_many_levels(table, name, partial) for name in columns if name not in gaps})

    def _tell(self, looked: dict[str, Look]) -> None:
        """Warn of what becomes of columns that somebody may have meant otherwise."""
        for name, code in self.codes.items():
            look = looked[name]
            if code.pooled:
                reason = f" ({look.reason})" if look.reason else ""
                others, rows = look.levels - len(code.levels), counted(look.pooled, "row")
                rest = f", and {counted(others, 'other is', 'others are')} one level ({rows})" if others else ""
                warn_user(
                    f"the text column {name!r} has {look.levels} different values{reason}: {len(code.levels)} of them, "
                    f"in {LEAST_ROWS} rows or more, become features of their own{rest}"
                )
            elif code.kind == "text" and look.reason:
                warn_user(f"{look.reason}; its {len(code.levels)} values become features of their own")
        _tell_dates([name for name, code in self.codes.items() if code.kind == "date"])
        if self.missing:
            warn_user(_filled(self, Counter(self.missing)))

    @property
    def columns(self) -> list[str]:
        """Names of the columns that are used."""
        return list(self.codes)

    @property
    def text_columns(self) -> list[str]:
        """Names of the columns that are text, and not to be taken for numbers."""
        return [name for name, code in self.codes.items() if code.kind != "number"]

    @property
    def feature_names(self) -> list[str]:
        """Names of the features."""
        return [feature for name, code in self.codes.items() for feature in code.feature_names(name)]

    def check_columns(self, columns: Sequence[str]) -> None:
        """Refuse a table that lacks columns of the fit."""
        lacking = [name for name in self.codes if name not in columns]
        if lacking:
            raise InvalidInputError(
                f"the table lacks {listing(lacking)}, which the model was fitted with; the table has {listing(columns)}"
            )

    def transform(self, table: Table, surprises: Surprises | None = None) -> tuple[FloatArray, list[str]]:
        """Turn a table into numbers.

        Parameters
        ----------
        table : Table
            A table with the columns of the encoder; others are not looked at.
        surprises : Surprises or None
            Where unknown levels and filled gaps are counted, if it is one of several parts; None to warn of them.

        Returns
        -------
        matrix : ndarray of shape (n_rows, n_features)
            The features.
        feature_names : list of str
            Their names.

        Raises
        ------
        InvalidInputError
            If a column is missing, has infinite values, text where numbers were, or missing values that are not filled
            in; the text names all such columns.

        Warns
        -----
        UserWarning
            If a text column has levels that the encoder does not know, which count as the most frequent one, and of
            values that are filled in.
        """
        counted = Surprises() if surprises is None else surprises
        matrix = self.encoded(table, counted).features()
        if surprises is None:
            counted.warn(self)
        return matrix, self.feature_names

    def encoded(self, table: Table, surprises: Surprises) -> EncodedRows:
        """Look at all columns of a table; features of its rows can then be written out some at a time.

        Parameters
        ----------
        table : Table
            A table in memory, as for :meth:`transform`.
        surprises : Surprises
            Where unknown levels and filled gaps are counted.

        Examples
        --------
        >>> table = Table({"age": [31.0, 45.0, 28.0], "region": ["north", "south", "north"]})
        >>> TableEncoder.fit(table, ["age", "region"]).encoded(table, Surprises()).features(slice(1, 3)).tolist()
        [[45.0, 1.0], [28.0, 0.0]]
        """
        return EncodedRows.of(self._checked(table), self.codes, table.n_rows, surprises)

    def _checked(self, table: Table) -> dict[str, pl.Series]:
        """The columns, dates as days; refuses those that cannot be used."""
        self.check_columns(table.columns)
        columns = {name: table.series(name) for name in self.codes}
        gaps = {} if self.fills else with_gaps(table, self.columns)
        wrong = dict(gaps)
        for name, code in self.codes.items():
            if code.kind == "number" and name not in gaps:
                wrong[name] = bad_numbers(table, name)
            elif code.kind == "date":
                found = days(columns[name], code.format)
                wrong |= {} if name in gaps else {name: bad_dates(table, name, code.format, found)}
                columns[name] = found
        said = joined_problems([text for text in wrong.values() if text])
        if gaps:
            said += f"; fill them in, remove these rows, or fit without {columns_named(gaps)} ({drop_option(gaps)})"
        if said:
            raise InvalidInputError(said)
        return columns

    # ------------------------------------------------------------------ model files

    def to_dict(self) -> dict[str, Any]:
        """Return the encoder as plain data, for a model file."""
        columns = []
        for name, code in self.codes.items():
            entry: dict[str, Any] = {"name": name, "kind": code.kind, "gaps": code.gaps}
            if code.kind == "text":
                entry |= {"levels": list(code.levels), "base": code.base}
                entry |= {"pooled": True} if code.pooled else {}
            else:
                entry |= {"fill": code.fill} | ({"format": code.format} if code.kind == "date" else {})
            columns.append(entry)
        return {"columns": columns, "fills": self.fills}

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
        >>> encoder = TableEncoder.of_numbers(["age", "income"])
        >>> TableEncoder.from_dict(encoder.to_dict()).feature_names
        ['age', 'income']
        """
        columns = data.get("columns") if isinstance(data, dict) and set(data) == {"columns", "fills"} else None
        if not isinstance(data, dict) or not isinstance(columns, list) or not columns:
            raise ModelFileError(f"{where}: expected an object with a list of columns")
        fills = data["fills"]
        if type(fills) is not bool:
            raise ModelFileError(f"{where}.fills: expected true or false")
        codes: dict[str, ColumnCode] = {}
        for i, entry in enumerate(columns):
            place = f"{where}.columns[{i}]"
            name, code = checked_code(entry, place, fills)
            if name in codes:
                raise ModelFileError(f"{place}: column {name!r} occurs twice")
            codes[name] = code
        encoder = cls(codes, fills)
        if len(set(encoder.feature_names)) < len(encoder.feature_names):
            raise ModelFileError(f"{where}: features of the same name")
        return encoder


# ---------------------------------------------------------------------- from columns to codes


def _tell_dates(names: Sequence[str]) -> None:
    if names:
        which, verb = ("column", "has") if len(names) == 1 else ("columns", "have")
        warn_user(f"{which} {listing(names)} {verb} dates, which become numbers: days since 1970-01-01")


def _filled(encoder: TableEncoder, gaps: Counter[str]) -> str:
    """Say which missing values are filled in, and how."""

    def how(name: str, n: int) -> str:
        code = encoder.codes[name]
        cells = f"{name!r} ({n} of them"
        if code.kind == "text":
            return cells + (f", as {code.base!r})" if code.base is not None and not code.gaps else ", as no level)")
        return f"{cells}, by {code.fill_text})"

    noted = [name for name in gaps if encoder.codes[name].gaps]
    more = f"; features named like {noted[0] + ' is missing'!r} tell where" if noted else ""
    return f"missing values are filled in: {', '.join(how(name, n) for name, n in gaps.items())}{more}"
