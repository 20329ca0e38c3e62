"""Columns turned into features: each column is looked at once, rows are written out where they are needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.data.seen_numbers import NewNumbers
from treewright.data.tables.codes import ColumnCode
from treewright.data.tables.columns import level_codes

__all__ = ["EncodedRows", "Unseen"]

_BLOCK_CELLS = 100_000
"""Cells that are written at once, which the cache holds: columns are written one after the other."""


@dataclass
class Unseen:
    """What a table has that the rows of a fit had not, counted over all parts of the table."""

    levels: dict[str, Counter[str]] = field(default_factory=dict)
    """Unknown levels of each text column."""
    gaps: Counter[str] = field(default_factory=Counter)
    """Missing values that were filled in."""
    numbers: NewNumbers | None = field(default=None, repr=False)
    """Numbers of all features, of a model that knows those of its fit."""


@dataclass(frozen=True, eq=False)
class _Cells:
    """The cells of a column, from which its features can be written."""

    values: NDArray[Any]
    """Numbers or days, without gaps where they are filled in; of text the place of the feature that is 1, or -1."""
    gone: BoolArray | None
    """Where a value is missing, if a feature tells that."""

    def taken(self, rows: IntArray | slice) -> _Cells:
        """Those of some rows."""
        return _Cells(self.values[rows], None if self.gone is None else self.gone[rows])


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """Rows of a table as numbers and codes, which take less room than their features, and less time than their text.

    Attributes
    ----------
    codes : mapping of str to ColumnCode
        What becomes of each column.
    cells : dict of str to cells
        The columns.
    n_rows : int
        Number of rows.
    """

    codes: Mapping[str, ColumnCode]
    cells: dict[str, Any]
    n_rows: int

    @classmethod
    def of(cls, columns: Mapping[str, pl.Series], codes: Mapping[str, ColumnCode], n_rows: int, unseen: Unseen) -> Self:
        """Look at columns, which were checked before and have dates as days; note what the fit had not seen."""
        return cls(codes, {name: _cells(columns[name], code, unseen) for name, code in codes.items()}, n_rows)

    def of_columns(self, codes: Mapping[str, ColumnCode]) -> EncodedRows:
        """Some of the columns."""
        return EncodedRows(codes, {name: self.cells[name] for name in codes}, self.n_rows)

    def features(self, rows: IntArray | slice = slice(None)) -> FloatArray:
        """Features of some rows."""
        cells = {name: one.taken(rows) for name, one in self.cells.items()}
        n_rows = len(range(self.n_rows)[rows]) if isinstance(rows, slice) else len(rows)
        widths = [len(code.feature_names(name)) for name, code in self.codes.items()]
        matrix = np.zeros((n_rows, sum(widths)))
        step = max(1, _BLOCK_CELLS // max(1, sum(widths)))
        for start in range(0, n_rows, step):
            block, at = matrix[start : start + step], 0
            for (name, code), width in zip(self.codes.items(), widths, strict=True):
                _write(cells[name].taken(slice(start, start + step)), code, block, at, width)
                at += width
        return matrix


def _cells(column: pl.Series, code: ColumnCode, unseen: Unseen) -> _Cells:
    """Look at a column."""
    gone = column.is_null().to_numpy() if column.has_nulls() else None
    if gone is not None:
        unseen.gaps[column.name] += int(gone.sum())
    noted = gone if code.gaps else None
    if code.kind != "text":
        numbers = column.cast(pl.Float64)
        return _Cells((numbers if code.fill is None else numbers.fill_null(code.fill)).to_numpy(), noted)
    codes, others = level_codes(column, code.levels)
    if others.height:
        unseen.levels.setdefault(column.name, Counter()).update(dict(others.rows()))
    shown = [level for level in code.levels if level != code.base]
    feature = [*(shown.index(level) if level != code.base else -1 for level in code.levels), -1]
    return _Cells(np.array(feature, dtype=np.int16)[codes], noted)


def _write(cells: _Cells, code: ColumnCode, block: FloatArray, at: int, width: int) -> None:
    """Write the features of a column to a block of rows that is 0, from place `at` on."""
    if cells.gone is not None:
        block[:, at + width - 1] = cells.gone
    if code.kind != "text":
        block[:, at] = cells.values
        return
    rows = np.flatnonzero(cells.values >= 0)
    block[rows, at + cells.values[rows].astype(np.int64)] = 1.0
