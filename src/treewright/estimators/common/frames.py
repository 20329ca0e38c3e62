"""Frames with text, dates or gaps as numbers, by the default preprocessing of the command line."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from sklearn.utils.validation import validate_data

from treewright.arrays import FloatArray
from treewright.data._checks import listing, missing_mask
from treewright.data.mixed import has_other_than_numbers
from treewright.data.rows import is_frame
from treewright.data.table import Surprises, Table, TableEncoder
from treewright.estimators.common.model import NOTED, Given
from treewright.exceptions import InvalidInputError

__all__ = ["blank_rows", "encoded_rows", "needs_encoding", "new_encoded_rows"]


def needs_encoding(X: Any) -> bool:
    """Whether rows are a frame that has something else than numbers, or gaps.

    Examples
    --------
    >>> needs_encoding(pl.DataFrame({"age": [31, 45]})), needs_encoding(pl.DataFrame({"age": [31, None]}))
    (False, True)
    """
    if not is_frame(X):
        return False
    return has_other_than_numbers(X) or any(missing_mask(np.asarray(column)).any() for column in _columns(X).values())


def encoded_rows(model: Any, given: Given) -> Given:
    """Make numbers of the rows of a fit, and note how: the model keeps that as plain data, which files can have."""
    if given.y is None:
        raise ValueError(f"{type(model).__name__} requires y to be passed, but the target y is None")
    other, table = copy(model), _table(given.X)
    validate_data(other, given.X, reset=True, skip_check_array=True)
    encoder = TableEncoder.fit(table, table.columns, fill_gaps=True)
    rows = encoder.transform(table, Surprises())[0]
    if len(rows) < 2:
        raise InvalidInputError(f"Found array with {len(rows)} sample(s) while a minimum of 2 is required")
    noted = {name: getattr(other, name) for name in NOTED if hasattr(other, name)}
    return replace(given, X=rows, noted=noted | {"_encoder": encoder.to_dict()})


def new_encoded_rows(model: Any, X: Any) -> FloatArray:
    """Rows of a fitted model as numbers, as those of its fit."""
    encoder = TableEncoder.from_dict(model._encoder)
    if not is_frame(X):
        raise InvalidInputError(
            f"the model was fitted to a frame with text, dates or gaps; give a frame with its columns: "
            f"{listing(encoder.columns)}"
        )
    table = _table(X)
    validate_data(model, X, reset=False, skip_check_array=True)
    return encoder.transform(table)[0]


def blank_rows(model: Any, n_rows: int) -> Any:
    """Rows that a fitted model can score, whatever it was fitted to: of zeros, or of gaps."""
    if not hasattr(model, "_encoder"):
        return np.zeros((n_rows, model.n_features_in_))
    names = getattr(model, "feature_names_in_", None)
    columns = TableEncoder.from_dict(model._encoder).columns if names is None else names
    return pl.DataFrame({str(name): [None] * n_rows for name in columns})


def _columns(X: Any) -> dict[str, Any]:
    by_place = X.iloc if hasattr(X, "iloc") else X
    return {str(name): by_place[:, j] for j, name in enumerate(X.columns)}


def _table(X: Any) -> Table:
    columns = _columns(X)
    if len(columns) < X.shape[1]:
        raise InvalidInputError("X has several columns of the same name; rename them")
    return Table({name: _cells(column) for name, column in columns.items()})


def _cells(column: Any) -> Any:
    """A column of polars as it is; of pandas as numbers, dates, or text with None for what is missing."""
    if isinstance(column, pl.Series):
        return column
    cells = np.asarray(column)
    if cells.dtype.kind == "M":  # pandas has no type for days: times that are all midnight are such
        whole, gone = cells.astype("datetime64[D]"), np.isnat(cells)
        return whole if np.all(gone | (whole == cells)) else cells.astype("datetime64[us]")
    if cells.dtype.kind != "O":
        return cells
    gone = missing_mask(cells)
    if all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in cells[~gone]):
        numbers = np.full(len(cells), np.nan)
        numbers[~gone] = cells[~gone].astype(np.float64)
        return numbers
    known = cells.copy()
    known[gone] = None
    return known
