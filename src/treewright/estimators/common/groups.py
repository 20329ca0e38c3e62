"""Prices of classes by group, for rows to be labelled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from treewright.arrays import FloatArray
from treewright.data._checks import as_column, listing, missing_mask, show, uniform
from treewright.exceptions import InvalidInputError

__all__ = ["PricedModel", "prices_of"]


class PricedModel:
    """Mixin of the estimators with prices of the classes by group.

    Names and prices are kept apart, as files may have no other keys than strings: skops reads back neither None nor
    False as a key.
    """

    _price_groups: list[Any]
    _prices: FloatArray

    @property
    def thresholds_(self) -> dict[Any, FloatArray]:
        """Prices of the classes by group; under the key None those for rows whose group is not known."""
        check_is_fitted(self)
        return dict(zip(self._price_groups, self._prices, strict=True))

    @staticmethod
    def _fitted_prices(thresholds: dict[Any, FloatArray]) -> dict[str, Any]:
        """Fitted attributes from which :attr:`thresholds_` is made."""
        return {"_price_groups": list(thresholds), "_prices": np.array(list(thresholds.values()))}


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
