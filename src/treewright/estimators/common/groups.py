"""Prices of classes by group, for rows to be labelled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from treewright.arrays import FloatArray
from treewright.data._checks import as_column, listing, missing_mask, show, uniform
from treewright.exceptions import InvalidInputError

__all__ = ["prices_of"]


def prices_of(thresholds: dict[Any, FloatArray], groups: ArrayLike | None, n_rows: int) -> FloatArray:
    """Prices of the classes for each row, or for all; those under the key None where groups are not known."""
    if groups is None:
        return thresholds[None]
    known = [group for group in thresholds if group is not None]
    if not known:
        raise InvalidInputError("groups are given, but the model was fitted without groups; leave them out")
    column = as_column(groups, "groups")
    if len(column) != n_rows:
        raise InvalidInputError(f"groups has {len(column)} entries, X has {n_rows} rows; give one group a row")
    missing = missing_mask(column)
    if missing.any():
        raise InvalidInputError(
            f"{np.count_nonzero(missing)} of {n_rows} rows have no group (NaN or None), first row "
            f"{np.argmax(missing)}; for rows of unknown group leave groups out"
        )
    names, number = np.unique(uniform(column, "groups"), return_inverse=True)
    for name in names.tolist():
        if name not in thresholds:
            raise InvalidInputError(
                f"group {show(name)} had no unlabelled rows in fit, so it has no prices; groups: {listing(known)}"
            )
    return np.stack([thresholds[name] for name in names.tolist()])[number]
