r"""Splits by one feature of any kind as cuts of ordinal columns: what goes left has a rank up to the cut.

A table with categories and gaps becomes columns of whole numbers, the *ranks*, of which every cut is a split:

* a number without gaps is one column, whose ranks are its values in order;
* a number with gaps is two: missing values have the lowest rank in one and the highest in the other, so that they go to
  either side of every threshold, or alone to one side;
* a category of up to 6 levels that occur, missing values being one of them, has a column of two ranks for each way to
  part its levels;
* a category of more levels has a column for each level against the rest, and all its levels ordered by their share of a
  class, one column for each class (of two classes, the second). The shares are those among all points, and levels of
  equal share are in the order of their codes. For two classes and a single split of all points a cut of that order is
  the best of all subsets.

The cuts of all columns are the splits that are searched. They are the same at every node of a tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.splits.points import SplitRule
from treewright.splits.thresholds import Cuts
from treewright.tree.structure import BEYOND

__all__ = ["FEW_LEVELS", "NearestCut", "OrdinalColumns"]

FEW_LEVELS = 6
"""Levels of a category, missing values included, up to which every way to part them is a column."""


class NearestCut(NamedTuple):
    """The cut that comes nearest to given sides of points."""

    column: int
    cut: int
    mirrored: bool
    """Whether what is up to the cut is the right side."""
    missed: float
    """Rows that it sends to the other side."""


class _Column(NamedTuple):
    """How the ranks of a column come from the values of a feature."""

    feature: int
    values: FloatArray | None
    """Values of a number, in order; None for a category."""
    ranks: IntArray
    """Rank of each value, or level, and of a missing value at the end; -1 for what does not occur."""


@dataclass(frozen=True, eq=False)
class OrdinalColumns:
    """A table as ordinal columns.

    Attributes
    ----------
    rank : ndarray of int, shape (n_columns, n_points)
        Ranks, 0, 1, 2, ... in each column; there are at least two in each.
    n_ranks : ndarray of int, shape (n_columns,)
        Number of ranks of each column.
    n_features : int
        Features of the table.

    Examples
    --------
    >>> X = np.array([[0.5, 0.0], [np.nan, 1.0], [2.5, 2.0]])
    >>> columns = OrdinalColumns.of(X, np.array([0, 1, 1]), np.ones(3), 2, np.array([0, 3]))
    >>> columns.rank.tolist()
    [[1, 0, 2], [0, 2, 1], [0, 0, 1], [0, 1, 0], [0, 1, 1]]
    >>> rule = columns.rule(0, 1)
    >>> rule.threshold, rule.missing_left
    (1.5, True)
    >>> columns.rule(3, 0).listed.tolist()
    [True, False, True]
    """

    rank: NDArray[np.int32]
    n_ranks: IntArray
    n_features: int
    sources: tuple[_Column, ...]

    @classmethod
    def of(
        cls, X: FloatArray, y: IntArray, weight: FloatArray, n_classes: int, n_levels: IntArray | None = None
    ) -> Self:
        """Make the columns of a table.

        Parameters
        ----------
        X : ndarray of shape (n_points, n_features)
            Numbers, and codes of levels; NaN where a value is missing.
        y : ndarray of int, shape (n_points,)
            Class numbers.
        weight : ndarray of shape (n_points,)
            Weights of points, in shares of classes.
        n_classes : int
            Number of classes.
        n_levels : ndarray of int, shape (n_features,), or None
            Levels of each categorical feature, 0 for a number; None where all are numbers.
        """
        ranks: list[NDArray[np.int32]] = []
        sources: list[_Column] = []
        for j in range(X.shape[1]):
            if n_levels is None or n_levels[j] == 0:
                values, code = np.unique(X[:, j], return_inverse=True)  # NaN is the last one
                code = code.reshape(-1)
                known = values[~np.isnan(values)]
                tables = _number_ranks(len(known), gaps=len(known) < len(values))
            else:
                known = None
                code = np.where(np.isnan(X[:, j]), n_levels[j], X[:, j]).astype(np.int64)
                by_class = np.zeros((int(n_levels[j]) + 1, n_classes))
                np.add.at(by_class, (code, y), weight)
                occurs = np.bincount(code, minlength=len(by_class)) > 0
                tables = _category_ranks(by_class, occurs)
            for table in tables:
                ranks.append(table[code].astype(np.int32))
                sources.append(_Column(j, known, table))
        rank = np.array(ranks, dtype=np.int32).reshape(len(ranks), len(X))
        n_ranks = np.array([source.ranks.max() + 1 for source in sources], dtype=np.int64)
        return cls(rank, n_ranks, X.shape[1], tuple(sources))

    @cached_property
    def feature(self) -> IntArray:
        """Feature of each column."""
        return np.array([source.feature for source in self.sources], dtype=np.int64)

    def rule(self, column: int, cut: int, above: int | None = None) -> SplitRule:
        """The split that sends left what has a rank up to `cut`; -1 sends all points right and the last rank all left.

        Parameters
        ----------
        column, cut : int
            Column and rank.
        above : int or None
            The least rank above the cut that occurs at a node, by default the next one: thresholds are half-way
            between it and the cut.
        """
        feature, values, ranks = self.sources[column]
        left = (ranks >= 0) & (ranks <= cut)
        missing_left = bool(left[-1])
        if values is None:
            return SplitRule.subset(feature, left[:-1], missing_left, self.n_features)
        normal = np.zeros(self.n_features)
        normal[feature] = 1.0
        k, last = int(np.count_nonzero(left[:-1])), len(values)
        if k in (0, last):
            return SplitRule(normal, BEYOND if k else -BEYOND, missing_left=missing_left)
        upper = k if above is None else int(np.searchsorted(ranks[:-1], above))
        # Above the cut there may be no value at the node, if that is where missing ones are.
        threshold = Cuts(values[[k - 1, min(max(k, upper), last - 1)]]).threshold(1)
        return SplitRule(normal, threshold, missing_left=missing_left)

    def nearest(
        self, inside: IntArray, goes_left: BoolArray, size: FloatArray, among: IntArray | None = None
    ) -> NearestCut | None:
        """The cut, of some columns, that sends the most rows of some points to the sides they are on.

        Parameters
        ----------
        inside : ndarray of int
            Points.
        goes_left : ndarray of bool
            Their sides.
        size : ndarray
            Rows that they stand for.
        among : ndarray of int or None
            Columns to choose from, by default all.
        """
        best: NearestCut | None = None
        for column in range(len(self.rank)) if among is None else among.tolist():
            rank, n = self.rank[column, inside], int(self.n_ranks[column])
            left = np.cumsum(np.bincount(rank, size * goes_left, n))
            right = np.cumsum(np.bincount(rank, size * ~goes_left, n))
            straight, turned = right + left[-1] - left, left + right[-1] - right
            missed = np.minimum(straight, turned)[:-1]
            k = int(np.argmin(missed))
            if best is None or missed[k] < best.missed:
                best = NearestCut(column, k, bool(turned[k] < straight[k]), float(missed[k]))
        return best


def _number_ranks(n_values: int, gaps: bool) -> Iterator[IntArray]:
    """Ranks of the values of a number and of a missing one, for each of its columns."""
    order = np.arange(n_values)
    if gaps and n_values:
        yield np.append(order + 1, 0)
        yield np.append(order, n_values)
    elif n_values > 1:
        yield np.append(order, -1)


def _category_ranks(by_class: FloatArray, occurs: BoolArray) -> Iterator[IntArray]:
    """Ranks of the levels of a category and of a missing value, for each of its columns."""
    levels = np.flatnonzero(occurs)
    if len(levels) < 2:
        return
    empty = np.full(len(occurs), -1, dtype=np.int64)
    if len(levels) <= FEW_LEVELS:
        for sides in product([0, 1], repeat=len(levels) - 1):
            if any(sides):
                table = empty.copy()
                table[levels] = (0, *sides)
                yield table
        return
    total = by_class[levels].sum(axis=1)
    shares = by_class[levels] / np.where(total > 0, total, 1.0)[:, None]
    for k in [1] if shares.shape[1] == 2 else range(shares.shape[1]):
        table = empty.copy()
        table[levels[np.argsort(shares[:, k], kind="stable")]] = np.arange(len(levels))
        yield table
    for level in levels:
        table = np.where(occurs, 1, -1)
        table[level] = 0
        yield table
