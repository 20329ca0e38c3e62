"""Frames as tables, and frames with the columns of the table that the command line fitted a model to."""

from __future__ import annotations

from collections.abc import Collection
from copy import copy
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from treewright.data.columns_checked import missing_mask, refuse_repeated_names
from treewright.data.rows import is_frame
from treewright.data.tables.cells import known_kinds, read_column
from treewright.data.tables.encoder import TableEncoder
from treewright.data.tables.files import Table
from treewright.data.tables.mixed_encoder import MixedEncoder
from treewright.exceptions import InvalidInputError, ModelFileError
from treewright.tree.number_text import MAX_PRECISION

__all__ = [
    "TableNotes",
    "frame_cells",
    "frame_columns",
    "frame_table",
    "model_of_own_columns",
    "read_frame",
    "rule_cases",
    "rule_digits",
    "table_notes",
]


class TableNotes(NamedTuple):
    """What a model file says of the table that the command line fitted the model to."""

    target: str
    """Column that the model predicts."""
    encoder: TableEncoder | MixedEncoder
    """How columns become features."""
    na: tuple[str, ...]
    """Values that mean missing, beside the usual ones."""

    def features(self, X: Any) -> Any:
        """Features of a frame, whose cells are read as those of a file: text that spells numbers, marks of gaps."""
        columns = frame_columns(X)
        self.encoder.check_columns(list(columns))
        chosen = {name: columns[name] for name in self.encoder.columns}
        return self.encoder.transform(read_frame(chosen, self.na, self.encoder.text_columns))[0]


def table_notes(table: object, n_features: int, where: str = "table") -> TableNotes:
    """Read what a model file has under "table", trusting nothing."""
    if not isinstance(table, dict) or set(table) - {"na", "leaves", "alone", "digits", "sure"} != {"target", "encoder"}:
        raise ModelFileError(f"{where}: expected an object with a target and an encoder")
    if not isinstance(table["target"], str):
        raise ModelFileError(f"{where}.target: expected a string")
    na = table.get("na", [])
    if not isinstance(na, list) or not all(isinstance(value, str) for value in na):
        raise ModelFileError(f"{where}.na: expected a list of strings")
    mixed = isinstance(table["encoder"], dict) and "kinds" in table["encoder"]
    kind: Any = MixedEncoder if mixed else TableEncoder
    encoder = kind.from_dict(table["encoder"], where=f"{where}.encoder")
    if len(encoder.feature_names) != n_features:
        raise ModelFileError(f"{where}.encoder has {len(encoder.feature_names)} features, the model {n_features}")
    return TableNotes(table["target"], encoder, tuple(na))


def rule_digits(entries: Any, model: Any, where: str) -> dict[int, int]:
    """Digits of splits as a model file has them, trusting nothing."""
    n_nodes = model.tree_.n_nodes if hasattr(model, "tree_") else 0
    found: dict[int, int] = {}
    for entry in entries if isinstance(entries, list) else [entries]:
        fine = isinstance(entry, list) and len(entry) == 2 and all(type(n) is int for n in entry)
        if not fine or not 0 <= entry[0] < n_nodes or not 1 <= entry[1] <= MAX_PRECISION:
            raise ModelFileError(f"{where}: expected lists of a node and its digits, 1 to {MAX_PRECISION}")
        found[entry[0]] = entry[1]
    return found


def rule_cases(entries: Any, model: Any, where: str) -> dict[int, list[int]]:
    """Cases that are sure at splits as a model file has them, trusting nothing."""
    n_nodes = model.tree_.n_nodes if hasattr(model, "tree_") else 0
    found: dict[int, list[int]] = {}
    for entry in entries if isinstance(entries, list) else [entries]:
        fine = isinstance(entry, list) and len(entry) == 2 and type(entry[0]) is int and isinstance(entry[1], list)
        if not fine or not 0 <= entry[0] < n_nodes or not all(type(n) is int and -1 <= n <= 1 for n in entry[1]):
            raise ModelFileError(f"{where}: expected lists of a node and its cases, each -1, 0 or 1")
        found[entry[0]] = entry[1]
    return found


def model_of_own_columns(model: Any, X: Any) -> tuple[Any, Any] | None:
    """The estimator without names of features, and the features of a frame with the columns of its table.

    None where X is no frame, or has the features already, and for models that the command line did not fit.
    """
    kept = vars(model).get("_table")
    if kept is None or not is_frame(X):
        return None
    notes = table_notes(kept, model.n_features_in_)
    names = [str(name) for name in X.columns]
    if not set(notes.encoder.columns) <= set(names) and names == _feature_names(model):
        return None
    other = copy(model)
    for name in ("_table", "feature_names_in_"):  # what follows is an array
        other.__dict__.pop(name, None)
    other._number_labels = notes.encoder.feature_names
    return other, notes.features(X)


def _feature_names(model: Any) -> list[str]:
    return [str(name) for name in getattr(model, "feature_names_in_", ())]


# ---------------------------------------------------------------------- frames


def frame_columns(X: Any) -> dict[str, Any]:
    """Columns of a frame that an estimator is given, by their names; several of one name are refused."""
    refuse_repeated_names(X)
    by_place = X.iloc if hasattr(X, "iloc") else X
    columns = {str(name): by_place[:, j] for j, name in enumerate(X.columns)}
    if len(columns) < X.shape[1]:
        raise InvalidInputError("X has several columns of the same name; rename them")
    return columns


def frame_table(columns: dict[str, Any]) -> Table:
    """Columns of a frame that an estimator is given, as a table."""
    return Table({name: frame_cells(column) for name, column in columns.items()})


def read_frame(columns: dict[str, Any], na: Collection[str], text: Collection[str]) -> Table:
    """Columns of a frame that an estimator is given as a table, whose cells are read as those of a file."""
    found = {}
    for part in frame_table(columns).frame.get_columns():
        known = part.dtype == pl.String
        found[part.name] = read_column(part, na, part.name in text) if known else known_kinds([part], "", na)[0]
    return Table(found)


def frame_cells(column: Any) -> Any:
    """A column of a frame for an estimator: polars as it is, pandas as numbers, dates, or text with None if missing."""
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
