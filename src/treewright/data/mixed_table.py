"""Tables from files for models that take categories and gaps as they are."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from treewright.data._checks import AnyArray, listing
from treewright.data._table_files import Table
from treewright.data.table import finite_numbers, why_text
from treewright.exceptions import InvalidInputError, ModelFileError
from treewright.names import printable

__all__ = ["MixedEncoder"]

_KINDS = ("number", "text", "bool")
_BOOLEAN = {"false", "true"}
_MANY = 50
"""Text that differs in every row is a name or a number of the row, and no category, if rows are more."""


@dataclass(frozen=True)
class MixedEncoder:
    """Which columns of a table are features, and of what kind: numbers, text, or true and false.

    Levels of text are learned by the model itself. True and false are text in small letters.

    Attributes
    ----------
    kinds : dict of str to {"number", "text", "bool"}
        The columns in order.

    Examples
    --------
    >>> region = np.array(["north", None, "south"], dtype=object)
    >>> table = Table({"age": np.array([31.0, 45.0, np.nan]), "region": region})
    >>> encoder = MixedEncoder.fit(table, ["age", "region"])
    >>> encoder.transform(table)[0].tolist(), encoder.categorical
    ([[31.0, 'north'], [45.0, None], [nan, 'south']], [1])
    """

    kinds: dict[str, str]

    @classmethod
    def fit(cls, table: Table, columns: Sequence[str]) -> Self:
        """Note the kinds of some columns; warns of text that is mostly numbers, like dates, or differs in each row."""
        if not columns:
            raise InvalidInputError("no column is left to use as a feature")
        kinds = {}
        for name in columns:
            if table.is_numeric(name):
                kinds[name] = "number"
                continue
            found = {value for value in table[name].tolist() if value is not None}
            kinds[name] = "bool" if found and {value.lower() for value in found} <= _BOOLEAN else "text"
            reason = why_text(table, name)
            if reason:
                what = f"{reason}; its {len(found)} values become levels of a category"
                warnings.warn(what, UserWarning, stacklevel=2)
            elif len(found) > _MANY and len(found) == np.count_nonzero(~table.missing(name)):
                warnings.warn(
                    f"the text column {name!r} has another value in every row and can tell a model nothing of others; "
                    f"--drop {printable(name)} leaves it out",
                    UserWarning,
                    stacklevel=2,
                )
        return cls(kinds)

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
        return [j for j, kind in enumerate(self.kinds.values()) if kind != "number"]

    def transform(self, table: Table) -> tuple[AnyArray, list[str]]:
        """Return the features of a table, numbers or numbers and text with gaps, and their names.

        Raises
        ------
        InvalidInputError
            If a column is missing, has infinite values, or text where numbers were.
        """
        lacking = [name for name in self.kinds if name not in table.columns]
        if lacking:
            raise InvalidInputError(
                f"the table lacks {listing(lacking)}, which the model was fitted with; the table has "
                f"{listing(table.columns)}"
            )
        columns = [_column(table, name, kind) for name, kind in self.kinds.items()]
        if not self.categorical:
            return np.column_stack(columns), self.feature_names
        cells = np.empty((table.n_rows, len(columns)), dtype=object)
        for j, column in enumerate(columns):
            cells[:, j] = column
        return cells, self.feature_names

    def to_dict(self) -> dict[str, Any]:
        """Return the encoder as plain data, for a model file."""
        return {"kinds": [list(pair) for pair in self.kinds.items()]}

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
        kinds: dict[str, str] = {}
        for i, pair in enumerate(pairs):
            fine = isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) and bool(pair[0])
            if not fine or not isinstance(pair[1], str) or pair[1] not in _KINDS:
                raise ModelFileError(f"{where}.kinds[{i}]: expected a name and one of {', '.join(_KINDS)}")
            if pair[0] in kinds:
                raise ModelFileError(f"{where}.kinds[{i}]: column {pair[0]!r} occurs twice")
            kinds[pair[0]] = pair[1]
        return cls(kinds)


def _column(table: Table, name: str, kind: str) -> AnyArray:
    if kind == "number":
        return finite_numbers(table, name, gaps=True)
    column = table.as_text(name).copy()
    column[table.missing(name)] = None
    if kind == "bool":
        return np.array([None if value is None else value.lower() for value in column], dtype=object)
    return column
