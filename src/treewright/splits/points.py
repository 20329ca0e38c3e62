"""Points and splits of any kind: dense and sparse points behind the same few operations, a split as one value."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.splits.descent_loops import levels_dense, levels_sparse, walk_dense, walk_mixed, walk_sparse
from treewright.tree.structure import Shape, Tree

__all__ = ["LEAST_GAP", "Points", "SplitRule", "Splits"]

LEAST_GAP = {8: 1e-9, 4: 2e-7}
"""Least distance along a normal of points on different sides, by the bytes of a float: below, rounding could part them
otherwise when features are turned back to their units."""

_AXIS_GAP = {8: 1e-14, 4: 2e-7}
"""The same along a single feature, where nothing is summed: values far off may leave the others that little room."""

_SQUEEZED, _FEW_FAR_OFF, _MOST_SQUEEZED, _SOME_POINTS = 0.01, 0.1, 16, 1000
"""Shares of its range below which the middle half of a feature is squeezed by what lies beyond all but 4 % of it, how
many such features are told at most, and points by which quantiles are estimated."""

_NOISE, _CLOSE, _SOME_GAPS = 1e-14, 2e-7, 0.02
"""Distance of values, in their own size, up to which they are the same but for rounding; in that of the largest value,
below which single precision mixes them up; share of such distances from which on a feature is close."""


class SplitRule(NamedTuple):
    """A hyperplane over numerical features, or a subset of the levels of a categorical one; each with a missing side.

    Attributes
    ----------
    normal : ndarray of shape (n_features,)
        Normal of a hyperplane. Of a subset it has a 1 at its feature, so that whatever is charged for a normal is
        charged for one feature.
    threshold : float
        Points with ``normal @ x <= threshold`` go left; without meaning for a subset.
    category : int
        Feature of a subset, -1 for a hyperplane.
    listed : ndarray of bool, shape (n_levels,), or None
        Levels that go left, those beyond go right; None for a hyperplane.
    missing_left : bool
        Whether points go left that lack a value which the split uses.

    Examples
    --------
    >>> SplitRule.subset(1, np.array([True, False]), False, n_features=3).normal.tolist()
    [0.0, 1.0, 0.0]
    """

    normal: FloatArray
    threshold: float
    category: int = -1
    listed: BoolArray | None = None
    missing_left: bool = False

    @classmethod
    def subset(cls, feature: int, listed: BoolArray, missing_left: bool, n_features: int) -> Self:
        """The split by the levels of a categorical feature."""
        normal = np.zeros(n_features)
        normal[feature] = 1.0
        return cls(normal, 0.0, feature, listed, missing_left)


@dataclass(eq=False)
class Splits:
    """Splits of all nodes of a tree, in arrays that change.

    Attributes
    ----------
    normals : ndarray of shape (n_nodes, n_features)
        Normals, with a 1 at the feature of a subset.
    threshold : ndarray of shape (n_nodes,)
        Thresholds.
    category : ndarray of int, shape (n_nodes,)
        Features of subsets, -1 for hyperplanes.
    listed : ndarray of bool, shape (n_nodes, width)
        Levels that go left.
    missing_left : ndarray of bool, shape (n_nodes,)
        Where points go that lack a value.
    """

    normals: FloatArray
    threshold: FloatArray
    category: IntArray
    listed: BoolArray
    missing_left: BoolArray

    @classmethod
    def of(cls, tree: Tree, n_levels: IntArray | None = None) -> Self:
        """Copy those of a tree, with room for subsets of so many levels."""
        width = max(tree.left_categories.shape[1], 0 if n_levels is None else int(n_levels.max(initial=0)))
        listed = np.zeros((tree.n_nodes, width), dtype=bool)
        listed[:, : tree.left_categories.shape[1]] = tree.left_categories
        normals, subset = tree.weights.copy(), np.flatnonzero(tree.category >= 0)
        normals[subset, tree.category[subset]] = 1.0
        return cls(normals, tree.threshold.copy(), tree.category.copy(), listed, tree.missing_left.copy())

    def copied(self) -> Self:
        """The same in arrays of their own."""
        return replace(self, **{field.name: getattr(self, field.name).copy() for field in fields(self)})

    def rule(self, node: int) -> SplitRule:
        """The split of a node."""
        category = int(self.category[node])
        listed = self.listed[node] if category >= 0 else None
        return SplitRule(
            self.normals[node], float(self.threshold[node]), category, listed, bool(self.missing_left[node])
        )

    def put(self, node: int, rule: SplitRule) -> None:
        """Give a node another split."""
        self.normals[node], self.threshold[node] = rule.normal, rule.threshold
        self.category[node], self.missing_left[node] = rule.category, rule.missing_left
        self.listed[node] = False
        if rule.listed is not None:
            self.listed[node, : len(rule.listed)] = rule.listed

    def tree(
        self,
        left: IntArray,
        right: IntArray,
        values: FloatArray,
        labels: IntArray | None,
        slopes: FloatArray | None = None,
    ) -> Tree:
        """The tree with these splits."""
        weights = np.where(self.category[:, None] >= 0, 0.0, self.normals)
        return Tree(
            left, right, weights, self.threshold, values, labels, self.category, self.listed, self.missing_left, slopes
        )


class Points:
    """Dense or sparse points behind the same few operations.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_points, n_features)
        Points, float64 or float32. Dense ones may lack values, which are NaN.
    n_levels : ndarray of int, shape (n_features,), or None
        Levels of each categorical feature, whose values are codes, 0 for a numerical one; None where all are numerical.

    Attributes
    ----------
    gaps : bool
        Whether a value is missing.
    mixed : bool
        Whether there are categories or gaps.
    """

    def __init__(self, X: Any, n_levels: IntArray | None = None) -> None:
        self.sparse = sparse.issparse(X)
        self.X: Any = X if self.sparse else np.ascontiguousarray(X)
        self.least_gap, self.axis_gap = LEAST_GAP[X.dtype.itemsize], _AXIS_GAP[X.dtype.itemsize]
        self.n_levels = n_levels
        self.gaps = not self.sparse and bool(np.isnan(X.min(initial=0.0)))
        self.mixed = self.gaps or n_levels is not None

    @cached_property
    def numerical(self) -> IntArray:
        """Numbers of the numerical features."""
        return np.arange(self.X.shape[1]) if self.n_levels is None else np.flatnonzero(self.n_levels == 0)

    @cached_property
    def categorical(self) -> IntArray:
        """Numbers of the categorical features."""
        return np.zeros(0, dtype=np.int64) if self.n_levels is None else np.flatnonzero(self.n_levels)

    @cached_property
    def squeezed(self) -> IntArray:
        """Numbers of the numerical features whose range a few values far off take up, the most squeezed first.

        They may also be many where the others are :attr:`close`. A range is at least 1, as features have it in all
        points, of which these may be some without the values far off.
        A weight that counts for most points counts for these too much, so that regressions leave such a feature alone,
        and prices of weights, which are for features of the same range, hold it back.

        Examples
        --------
        >>> X = np.random.default_rng(0).random((100, 2))
        >>> X[7, 1] = 9999.0
        >>> Points(X).squeezed.tolist()
        [1]
        """
        X, n_points, number = self.X, self.X.shape[0], self.numerical
        if self.sparse or not n_points or not len(number):
            return np.zeros(0, dtype=np.int64)
        some = X[:: max(1, n_points // _SOME_POINTS)][:, number]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # features without any value
            quantile = np.nanquantile if self.gaps else np.quantile  # which takes a tenth of the time
            lowest, low, high, highest = quantile(some, [0.02, 0.25, 0.75, 0.98], axis=0)
            width = np.fmax.reduce(X, axis=0)[number] - np.fmin.reduce(X, axis=0)[number]
        width = np.maximum(width, 1.0)
        few = highest - lowest < _FEW_FAR_OFF * width  # else many values are far off, and regressions see them
        found = np.flatnonzero(((high > low) & (high - low < _SQUEEZED * width) & few) | np.isin(number, self.close))
        order = np.argsort((high - low)[found] / width[found], kind="stable")
        return np.asarray(number[found[order[:_MOST_SQUEEZED]]])

    @cached_property
    def close(self) -> IntArray:
        """Numbers of the numerical features whose values single precision mixes up, as others are so far off.

        Examples
        --------
        >>> X = np.random.default_rng(0).integers(18, 90, (100, 2)).astype(float)
        >>> X[::7, 1] = 999999999.0
        >>> Points(X).close.tolist()
        [1]
        """
        X, n_points, number = self.X, self.X.shape[0], self.numerical
        if self.sparse or not n_points or not len(number):
            return np.zeros(0, dtype=np.int64)
        largest = np.maximum(np.fmax.reduce(X, axis=0), -np.fmin.reduce(X, axis=0))[number]
        values = np.sort(X[:: max(1, n_points // _SOME_POINTS)][:, number].astype(np.float64), axis=0)
        gap = np.diff(values, axis=0)
        differ = gap > _NOISE * np.maximum(np.abs(values[1:]), np.abs(values[:-1]))
        n_close = np.sum(differ & (gap < _CLOSE * np.fmax(largest, 1.0)), axis=0)
        return np.asarray(number[(n_close > 0) & (n_close >= _SOME_GAPS * np.sum(differ, axis=0))])

    def gap_along(self, normal: FloatArray) -> float:
        """Least distance along a normal of points on different sides."""
        return self.axis_gap if np.count_nonzero(normal) == 1 else self.least_gap

    def take(self, rows: IntArray) -> Any:
        """Some of the points."""
        return self.X if len(rows) == self.X.shape[0] else self.X[rows]

    def blocks(self, rows: IntArray, cells: int) -> Iterator[tuple[int, FloatArray]]:
        """All features of some points, some at a time: number of the first one and a dense table of so many cells."""
        part = self.X[rows].tocsc() if self.sparse else self.X
        width = max(1, cells // max(1, len(rows)))
        for first in range(0, part.shape[1], width):
            last = first + width
            block = part[:, first:last].toarray() if self.sparse else part[rows, first:last]
            yield first, np.asarray(block, dtype=np.float64)

    def codes(self, rows: IntArray, feature: int) -> IntArray:
        """Codes of some points in a categorical feature, -1 where the value is missing."""
        values = self.X[rows, feature]
        return np.where(np.isnan(values), -1, values).astype(np.int64)

    def sides(self, rows: IntArray, rule: SplitRule) -> BoolArray:
        """Which of some points go left."""
        if rule.category >= 0:
            assert rule.listed is not None
            codes = self.codes(rows, rule.category)
            known = np.append(rule.listed, [False, rule.missing_left])  # beyond the last level; missing, the code -1
            return np.asarray(known[np.minimum(codes, len(rule.listed))])
        level = self.levels(rows, rule.normal)
        left = level <= rule.threshold
        return np.where(np.isnan(level), rule.missing_left, left) if self.gaps else left

    def levels(self, rows: IntArray, normal: FloatArray) -> FloatArray:
        """Positions of some points along a normal; NaN where a value that it uses is missing."""
        if self.sparse:
            return np.asarray(levels_sparse(self.X.data, self.X.indices, self.X.indptr, rows, normal))
        used = np.flatnonzero(normal)
        return np.asarray(levels_dense(self.X, rows, used, normal[used]))

    def walk(self, shape: Shape, splits: Splits, rows: IntArray, start: IntArray) -> IntArray:
        """Leaf that each of some points reaches from where it starts."""
        at, left, right, threshold = start.copy(), shape.left, shape.right, splits.threshold
        if self.sparse:
            X = self.X
            walk_sparse(X.data, X.indices, X.indptr, rows, at, left, right, splits.normals, threshold)
            return at
        # By hand: for small trees scipy takes longer than the walk.
        node, features = map(np.ascontiguousarray, np.nonzero(splits.normals))
        starts, terms = np.searchsorted(node, np.arange(len(splits.normals) + 1)), splits.normals[node, features]
        if self.mixed:
            other = splits.category, splits.listed, splits.missing_left
            walk_mixed(self.X, rows, at, left, right, starts, features, terms, threshold, *other)
        else:
            walk_dense(self.X, rows, at, left, right, starts, features, terms, threshold)
        return at
