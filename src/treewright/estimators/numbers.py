"""Numbers of new rows that are unlike those of the fit: noted by every fit to numbers, told by whatever predicts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from treewright.data.rows import is_frame
from treewright.data.seen_numbers import NewNumbers, SeenNumbers, changes_in_words
from treewright.exceptions import OtherNumbersWarning, warn_user

__all__ = ["note_numbers", "tell_numbers", "told_numbers", "with_numbers", "without_numbers"]

_KEPT = "_seen_numbers"


def note_numbers(X: Any, noted: dict[str, Any]) -> dict[str, Any]:
    """What a fitted model keeps of the numbers of its rows; nothing of sparse rows and of text."""
    rows = _numbers(X)
    if rows is None:
        return {}
    levels = noted.get("categories_")
    return {_KEPT: SeenNumbers.of(rows, None if levels is None else [known is not None for known in levels]).to_list()}


def tell_numbers(model: Any, X: Any, names: list[str] | None = None) -> None:
    """Warn of numbers of new rows for an estimator that those of its fit were not like."""
    kept, rows = vars(model).get(_KEPT), _numbers(X)
    if kept is None or rows is None:
        return
    new = NewNumbers(SeenNumbers.from_list(kept, rows.shape[1]))
    new.add(rows)
    known = vars(model).get("_number_labels", vars(model).get("feature_names_in_"))
    labels = names or [str(name) for name in (range(rows.shape[1]) if known is None else known)]
    told_numbers(changes_in_words(new.changes(), labels))


def told_numbers(said: list[str]) -> None:
    """Warn of what is unlike the fit of an estimator, in words."""
    for words in said:
        warn_user(f"numbers unlike those of the fit in column {words}", OtherNumbersWarning)


def without_numbers(model: Any) -> Any:
    """Take from a model what it keeps of the numbers of its fit, and give that: None, or plain data.

    It then says nothing of them, for whoever asks it for the rows of its fit, or for parts of a table.
    """
    return vars(model).pop(_KEPT, None)


@contextlib.contextmanager
def with_numbers(model: Any, kept: Any) -> Iterator[None]:
    """Give a model back what it kept of the numbers of its fit for a while, as for writing a file."""
    if kept is not None:
        vars(model)[_KEPT] = kept
    try:
        yield
    finally:
        if kept is not None:
            without_numbers(model)


def _numbers(X: Any) -> Any:
    """Rows as floats, NaN where there is something else; None if they are no table of numbers."""
    if isinstance(X, np.ndarray):
        return X if X.ndim == 2 and X.dtype.kind == "f" else None
    if not is_frame(X):
        return None
    by_place = X.iloc if hasattr(X, "iloc") else X
    columns = [np.asarray(by_place[:, j]) for j in range(X.shape[1])]
    rows = [c.astype(np.float64) if c.dtype.kind in "iuf" else np.full(len(c), np.nan) for c in columns]
    return np.column_stack(rows) if rows else None
