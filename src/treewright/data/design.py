"""Mixed points as numbers alone, for what needs distances or products: graphs of neighbours, starts, other models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse

from treewright.core.arrays import FloatArray, IntArray
from treewright.data.reduction import Sample

__all__ = ["Design", "design_of_points"]

_DENSE_CELLS = 50_000_000
"""Tables with more cells are sparse."""


@dataclass(frozen=True, eq=False)
class Design:
    r"""Gaps filled with means, and a column for each level of a category.

    A column of a level has :math:`1 / \sqrt 2` where a point is of that level, so that two levels are at the distance
    1, as are the ends of a number that is scaled to [0, 1]. A missing or unknown level has zeros in all columns of its
    feature, at the distance :math:`1 / \sqrt 2` from every level.

    Attributes
    ----------
    mean : ndarray of shape (n_features,)
        What fills gaps of numerical features.
    n_levels : ndarray of int, shape (n_features,)
        Levels of each categorical feature, 0 for a numerical one.

    Examples
    --------
    >>> X = np.array([[0.0, 1.0], [1.0, np.nan], [np.nan, 0.0]])
    >>> Design.of(X, np.ones(3), np.array([0, 2])).apply(X).round(2).tolist()
    [[0.0, 0.0, 0.71], [1.0, 0.0, 0.0], [0.5, 0.71, 0.0]]
    """

    mean: FloatArray
    n_levels: IntArray

    @classmethod
    def of(cls, X: FloatArray, weight: FloatArray, n_levels: IntArray | None) -> Self:
        """Note the means of the numerical features over points with weights; without levels all are numerical."""
        mean = np.zeros(X.shape[1])
        levels = np.zeros(X.shape[1], dtype=np.int64) if n_levels is None else n_levels
        for j in np.flatnonzero(levels == 0).tolist():
            column = np.asarray(X[:, j], dtype=np.float64)
            there = ~np.isnan(column)
            if there.any():
                mean[j] = np.average(column[there], weights=weight[there])
        return cls(mean, levels)

    def apply(self, X: FloatArray) -> Any:
        """The points as numbers: the numerical features, then the levels; sparse where that would be a large table."""
        numerical = np.flatnonzero(self.n_levels == 0)
        numbers = X[:, numerical]
        numbers = np.where(np.isnan(numbers), self.mean[numerical].astype(X.dtype), numbers)
        levels = self._levels(X)
        if levels is None:
            return np.ascontiguousarray(numbers)
        if X.shape[0] * (len(numerical) + levels.shape[1]) <= _DENSE_CELLS:
            return np.hstack([numbers, levels.toarray()])
        return sparse.csr_array(sparse.hstack([sparse.csr_array(numbers), levels], format="csr"))

    def _levels(self, X: FloatArray) -> Any:
        """Columns of the levels as a sparse array, None where there are none."""
        categorical = np.flatnonzero(self.n_levels)
        if not len(categorical):
            return None
        first = np.cumsum(self.n_levels) - self.n_levels
        codes = X[:, categorical]
        known = (codes >= 0) & (codes < self.n_levels[categorical])
        rows, features = np.nonzero(known)
        columns = first[categorical[features]] + codes[rows, features].astype(np.int64)
        entries = np.full(len(rows), np.sqrt(0.5), dtype=X.dtype)
        return sparse.csr_array((entries, (rows, columns)), shape=(X.shape[0], int(self.n_levels.sum())))


def design_of_points(points: Sample) -> Design | None:
    """The design that makes numbers of mixed points, for distances; None where they are numbers already."""
    if sparse.issparse(points.X) or (points.n_levels is None and not np.isnan(points.X.min(initial=0.0))):
        return None
    return Design.of(points.X, points.weight, points.n_levels)
