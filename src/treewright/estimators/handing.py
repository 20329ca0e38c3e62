"""Frames and sparse matrices that a model hands through to the estimator it wraps, untouched."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import validate_data

from treewright.data.columns_checked import refuse_dates, refuse_repeated_names
from treewright.data.rows import is_frame
from treewright.estimators.model import Given, rows_of_fit
from treewright.estimators.numbers import tell_numbers

__all__ = ["handed_rows", "hands_through", "new_handed_rows"]


def hands_through(estimator: Any, X: Any) -> bool:
    """Whether rows go to the wrapped estimator as they are: frames, sparse matrices, and what only it can read."""
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
