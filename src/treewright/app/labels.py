"""Labels of a fit, from the target column of its table."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from treewright.app.options import FitOptions
from treewright.app.spelling import Spelling
from treewright.core.names import counted, option
from treewright.data.columns_checked import AnyArray, missing_mask
from treewright.data.marks import likely_marks
from treewright.data.tables.cells import number_texts
from treewright.data.tables.codes import MAX_LEVELS
from treewright.data.tables.columns import why_text
from treewright.data.tables.files import Table
from treewright.exceptions import InvalidInputError, warn_user

__all__ = ["read_labels", "warn_of_marks", "without_mark"]


def read_labels(table: Table, target: str, spelling: Spelling) -> AnyArray:
    """Labels from the target column of a job's table, as whole numbers or text, None where there is none."""
    column, missing = table[target], table.missing(target)
    if missing.all():
        raise InvalidInputError(f"the target {target!r} is empty in all {table.n_rows} rows; some must have a class")
    if table.is_numeric(target):
        values = column[~missing]
        whole = np.isfinite(values) & (values == np.round(values))
        if whole.all():
            labels = np.full(len(column), None, dtype=object)
            labels[~missing] = values.astype(np.int64).tolist()
            return labels
        if len(np.unique(values)) > MAX_LEVELS:
            raise InvalidInputError(
                f"the target {target!r} has {len(np.unique(values))} different numbers such as "
                f"{values[~whole][0]:g}; a classifier needs a column of classes"
            )
    text = spelling.column(number_texts(table.series(target)), f"the target {target!r}")
    return np.asarray(text.to_numpy(), dtype=object)


def warn_of_marks(table: Table, target: str, y: AnyArray, estimator: Any) -> None:
    """Warn of classes in a job's table that are hardly meant as such."""
    times = Counter(y[~missing_mask(y)].tolist())
    marks = likely_marks(times, estimator.get_params(deep=False).get("unlabeled", -1))
    if marks:
        rows = ", ".join(f"{mark!r} ({counted(times[mark], 'row')})" for mark in marks)
        warn_user(f"the target {target!r} has {rows} as a class; if that means missing: {option('na', marks)}")
    elif not table.is_numeric(target) and (reason := why_text(table, target)):
        warn_user(f"the target: {reason}")


def without_mark(y: AnyArray, estimator: Any, options: FitOptions) -> AnyArray:
    """Return the `y` of a job without the labels that ``unlabeled`` marks; unless it is set, a label is a label."""
    mark = estimator.get_params(deep=False)["unlabeled"]
    known = np.flatnonzero(~missing_mask(y))
    marked = np.zeros(len(y), dtype=bool)
    marked[known] = [str(label) == str(mark) for label in y[known].tolist()]
    if not marked.any():
        return y
    if "unlabeled" in options.settings:
        without = y.copy()
        without[marked] = None
        return without
    estimator.set_params(unlabeled="")  # which no label is
    warn_user(
        f"the target {options.target!r} has {mark!r} in {counted(int(marked.sum()), 'row')} as a class; if that means "
        f"missing: {option('settings', {'unlabeled': mark})}"
    )
    return y
