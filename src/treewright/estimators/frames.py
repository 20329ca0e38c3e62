"""Rows that are no plain numbers: frames and sparse matrices handed through untouched, frames made numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import validate_data

from treewright.core.arrays import FloatArray
from treewright.data.columns_checked import listing, missing_mask, refuse_dates, refuse_durations, refuse_repeated_names
from treewright.data.mixed import has_other_than_numbers
from treewright.data.rows import is_frame
from treewright.data.tables.encoder import Surprises, TableEncoder
from treewright.estimators.model import Given, rows_of_fit
from treewright.estimators.numbers import tell_numbers
from treewright.estimators.tables import frame_columns, frame_table
from treewright.exceptions import InvalidInputError

__all__ = [
    "blank_rows",
    "encoded_rows",
    "handed_rows",
    "hands_through",
    "needs_encoding",
    "new_encoded_rows",
    "new_handed_rows",
]


def needs_encoding(X: Any) -> bool:
    """Whether rows given to an estimator are a frame that has something else than numbers, or gaps.

    Examples
    --------
    >>> needs_encoding(pl.DataFrame({"age": [31, 45]})), needs_encoding(pl.DataFrame({"age": [31, None]}))
    (False, True)
    """
    if not is_frame(X):
        return False
    return has_other_than_numbers(X) or any(
        missing_mask(np.asarray(column)).any() for column in frame_columns(X).values()
    )


def encoded_rows(model: Any, given: Given) -> Given:
    """Make numbers of the rows of a fit, and note how: the model keeps that as plain data, which files can have."""
    return rows_of_fit(model, given, _learned)


def _learned(other: Any, X: Any) -> tuple[FloatArray, dict[str, Any]]:
    refuse_durations(X, "X")
    table = frame_table(frame_columns(X))
    validate_data(other, X, reset=True, skip_check_array=True)
    encoder = TableEncoder.fit(table, table.columns, fill_gaps=True)
    return encoder.transform(table, Surprises())[0], {"_encoder": encoder.to_dict()}


def new_encoded_rows(model: Any, X: Any) -> FloatArray:
    """Rows of a fitted model as numbers, as those of its fit."""
    encoder = TableEncoder.from_dict(model._encoder)
    if not is_frame(X):
        raise InvalidInputError(
            f"the model was fitted to a frame with text, dates or gaps; give a frame with its columns: "
            f"{listing(encoder.columns)}"
        )
    refuse_durations(X, "X")
    table = frame_table(frame_columns(X))
    validate_data(model, X, reset=False, skip_check_array=True)
    rows = encoder.transform(table)[0]
    tell_numbers(model, rows, encoder.feature_names)
    return rows


def blank_rows(model: Any, n_rows: int) -> Any:
    """Rows that a fitted model can score, whatever it was fitted to: of zeros, or of gaps."""
    if not hasattr(model, "_encoder"):
        return np.zeros((n_rows, model.n_features_in_))
    names = getattr(model, "feature_names_in_", None)
    columns = TableEncoder.from_dict(model._encoder).columns if names is None else names
    return pl.DataFrame({str(name): [None] * n_rows for name in columns})


def hands_through(estimator: Any, X: Any) -> bool:
    """Whether rows go to a wrapped estimator as they are: frames, sparse matrices, and what only it can read."""
    if estimator is None or isinstance(estimator, str):
        return False
    if is_frame(X):
        return True
    if sparse.issparse(X):
        return isinstance(estimator, Pipeline) or bool(get_tags(estimator).input_tags.sparse)
    if not isinstance(X, np.ndarray) or X.ndim != 2:
        return False
    # a pipeline may encode text and fill in gaps, others may know what to do with gaps
    encodes = isinstance(estimator, Pipeline) and X.dtype.kind in "OUf"
    knows_gaps = X.dtype.kind == "f" and get_tags(estimator).input_tags.allow_nan
    return encodes or bool(knows_gaps and np.isnan(X).any())


def handed_rows(model: Any, given: Given) -> Given:
    """Note number and names of the features of rows that are handed through; nothing else is looked at."""
    return rows_of_fit(model, given, lambda other, X: (_looked_at(other, X, reset=True), {}), handed=True)


def new_handed_rows(model: Any, X: ArrayLike) -> Any:
    """Rows of a fitted model that are handed through."""
    rows = _looked_at(model, X, reset=False)
    tell_numbers(model, rows)
    return rows


def _looked_at(model: Any, X: Any, reset: bool) -> Any:
    if not isinstance(model.estimator, Pipeline):  # whose first step may make something of dates
        refuse_dates(X, "X")
    refuse_repeated_names(X)
    rows = validate_data(model, X, reset=reset, skip_check_array=True)
    return sparse.csr_array(rows) if sparse.issparse(rows) else rows
