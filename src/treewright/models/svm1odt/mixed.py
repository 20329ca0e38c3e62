"""What programs need of mixed points: levels of categorical features, gaps of numerical ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.models.svm1odt.heap import HeapTree

__all__ = ["Levels", "filled_rows"]


@dataclass(frozen=True)
class Levels:
    """Categorical features that can part points of an SVM1-ODT, and their levels one after the other.

    Attributes
    ----------
    features : ndarray of int, shape (n_categories,)
        Categorical features of which at least two levels occur.
    n_levels : int
        Largest number of levels of a feature: the width of a tree's table.
    feature : ndarray of int, shape (n_items,)
        For each level that occurs, the place of its feature in `features`.
    level : ndarray of int, shape (n_items,)
        Its code; -1 for missing values, which are a level like any other.
    of_row : ndarray of int, shape (n_rows, n_categories)
        Number of the level that each row has.

    Examples
    --------
    >>> X = np.array([[0.0, 2.0], [1.0, np.nan], [0.5, 2.0]])
    >>> levels = Levels.of(X, np.array([False, True]), np.array([0, 4]))
    >>> levels.features.tolist(), levels.level.tolist(), levels.of_row.ravel().tolist()
    ([1], [-1, 2], [1, 0, 1])
    """

    features: IntArray
    n_levels: int
    feature: IntArray
    level: IntArray
    of_row: IntArray

    @classmethod
    def of(cls, X: FloatArray, categorical: BoolArray, n_levels: IntArray) -> Levels:
        """Find the levels that occur."""
        codes = np.nan_to_num(X[:, categorical], nan=-1.0).astype(np.int64)
        varies = np.flatnonzero((codes != codes[:1]).any(axis=0))
        of_row = np.zeros((len(X), len(varies)), dtype=np.int64)
        feature, level = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        for position, j in enumerate(varies):
            found, number = np.unique(codes[:, j], return_inverse=True)
            of_row[:, position] = number.reshape(-1) + sum(len(levels) for levels in level)
            level.append(found)
            feature.append(np.full(len(found), position))
        return cls(
            features=np.flatnonzero(categorical)[varies],
            n_levels=int(n_levels.max(initial=0)),
            feature=np.concatenate(feature),
            level=np.concatenate(level),
            of_row=of_row,
        )

    def read(self, uses: FloatArray, left: FloatArray) -> tuple[IntArray, BoolArray, BoolArray]:
        """Feature of each categorical split (-1 elsewhere), its table of levels, and whether missing values go left.

        Parameters
        ----------
        uses : ndarray of shape (n_branches, n_categories)
            Whether each branch splits by each feature.
        left : ndarray of shape (n_branches, n_items)
            Whether each level goes left.
        """
        by = np.concatenate([self.features, [-1]])
        chosen = np.where((uses > 0.5).any(axis=1), uses.argmax(axis=1) if uses.shape[1] else 0, len(self.features))
        branch, item = np.nonzero((left > 0.5) & (self.feature == chosen[:, None]))
        table, missing = np.zeros((len(uses), self.n_levels), dtype=bool), np.zeros(len(uses), dtype=bool)
        known = self.level[item] >= 0
        table[branch[known], self.level[item[known]]] = True
        missing[branch[~known]] = True
        return by[chosen], table, missing

    def write(self, heap: HeapTree) -> dict[str, FloatArray]:
        """The blocks `uses` and `left` of a program for a complete tree."""
        uses = heap.category[:, None] == self.features
        left = np.where(self.level >= 0, heap.left_categories[:, self.level], heap.missing_left[:, None])
        return {"uses": uses.astype(np.float64), "left": (left & uses[:, self.feature]).astype(np.float64)}


def filled_rows(X: FloatArray, bound: float) -> tuple[FloatArray, FloatArray]:
    r"""Rows of an SVM1-ODT with missing values filled in, and a bound of :math:`|g - h^\top x|` for each.

    The bound holds for all g and h with entries of at most `bound` such that :math:`|g - h^\top x| \le 1` for all rows
    that lack nothing. A row takes what it lacks from the nearest of those in the 1-norm of what it has; its value
    differs by the distance times `bound` at most. If every row lacks something, the middle of each feature is filled
    in. Some row then has all that a split uses (or the split parts nothing), and the sum of all ranges takes the place
    of the distance.

    Examples
    --------
    >>> rows, reach = filled_rows(np.array([[0.0, 0.25], [1.0, 0.75], [0.9, np.nan]]), 10.0)
    >>> rows[2].tolist(), reach.round(6).tolist()
    ([0.9, 0.75], [1.0, 1.0, 2.0])
    """
    missing = np.isnan(X)
    lacking, whole = np.flatnonzero(missing.any(axis=1)), np.flatnonzero(~missing.any(axis=1))
    rows, reach = X.copy(), np.ones(len(X))
    if not len(lacking):
        return rows, reach
    if not len(whole):
        empty = missing.all(axis=0)
        low, high = (np.where(empty, 0.0, end(X, axis=0)) for end in (np.fmin.reduce, np.fmax.reduce))
        return np.where(missing, 0.5 * (low + high), X), np.full(len(X), 1.0 + bound * float((high - low).sum()))
    for pattern in np.unique(missing[lacking], axis=0):
        own, has = lacking[(missing[lacking] == pattern).all(axis=1)], ~pattern
        for start in range(0, len(own), 1000):
            part = own[start : start + 1000]
            distance = cdist(X[np.ix_(part, has)], X[np.ix_(whole, has)], "cityblock") if has.any() else None
            nearest = whole[distance.argmin(axis=1)] if distance is not None else whole[np.zeros(len(part), int)]
            rows[np.ix_(part, pattern)] = X[np.ix_(nearest, pattern)]
            reach[part] += bound * (distance.min(axis=1) if distance is not None else 0.0)
    return rows, reach
