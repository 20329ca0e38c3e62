"""How far the numbers of a fit are spread, which importances of features need where splits weigh several."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from treewright.core.arrays import FloatArray

__all__ = ["noted_spread"]


def noted_spread(fitted: dict[str, Any], X: Any) -> dict[str, Any]:
    """What a fit notes of its rows: the standard deviations of features, if a split weighs several of them."""
    trees = [fitted["tree_"], *fitted.get("trees_", [])] if "tree_" in fitted else []
    if not any((np.count_nonzero(tree.weights, axis=1) > 1).any() for tree in trees):
        return {}
    return {"_spread": spread(X)}


def spread(X: Any) -> FloatArray:
    """Standard deviation of each feature over the rows that have it.

    Examples
    --------
    >>> spread(np.array([[0.0, 1.0], [2.0, np.nan]])).tolist()
    [1.0, 0.0]
    """
    if sparse.issparse(X):
        size = np.asarray(abs(X).max(axis=0).todense()).ravel()
        scaled = X @ sparse.diags_array(1.0 / np.where(size > 0, size, 1.0))
        squares = np.asarray(scaled.multiply(scaled).mean(axis=0)).ravel()
        means = np.asarray(scaled.mean(axis=0)).ravel()
        return size * np.sqrt(np.maximum(squares - means**2, 0.0))
    known = ~np.isnan(X)
    count = np.maximum(known.sum(axis=0), 1)
    filled = np.where(known, X, 0.0)
    size = np.abs(filled).max(axis=0)  # squares of the largest numbers would be infinite
    scaled = filled / np.where(size > 0, size, 1.0)
    apart = np.where(known, scaled - scaled.sum(axis=0) / count, 0.0)
    return np.asarray(size * np.sqrt((apart**2).sum(axis=0) / count))
