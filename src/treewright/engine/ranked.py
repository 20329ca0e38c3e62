"""Ranks in the place of categories, and of values that are too close, for CART of scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from treewright.core.arrays import FloatArray, IntArray
from treewright.splits.points import Points
from treewright.tree import Tree

__all__ = ["RankedLevels", "RankedValues"]


@dataclass(frozen=True, eq=False)
class RankedLevels:
    """Levels of categories in the order of their mean targets.

    With one output, or two classes, a cut of this order is the best subset of all points (Fisher 1958, Breiman et al.
    1984). With several, levels are ordered along the direction in which their means differ most. Below the root the
    order is no longer that of the points at hand: it is good enough for starts.

    Attributes
    ----------
    n_levels : ndarray of int, shape (n_features,)
        Levels of each categorical feature, 0 for a numerical one.
    ranks : dict of int to ndarray
        Rank of each level, by feature.
    """

    n_levels: IntArray
    ranks: dict[int, FloatArray]

    @classmethod
    def of(cls, X: FloatArray, targets: FloatArray, weight: FloatArray, n_levels: IntArray) -> Self:
        """Order the levels.

        Parameters
        ----------
        X : ndarray of shape (n_points, n_features)
            Points.
        targets : ndarray of shape (n_points, n_outputs)
            Targets; for classes a 1 in the column of the class.
        weight : ndarray of shape (n_points,)
            Weights.
        n_levels : ndarray of int, shape (n_features,)
            Levels of each categorical feature, 0 for a numerical one.
        """
        centred = targets - np.average(targets, axis=0, weights=weight)
        ranks = {}
        for j in np.flatnonzero(n_levels).tolist():
            known = np.flatnonzero(~np.isnan(X[:, j]))
            code, n = X[known, j].astype(np.int64), int(n_levels[j])
            mass = np.bincount(code, weight[known], n)
            sums = np.column_stack([np.bincount(code, weight[known] * column[known], n) for column in centred.T])
            mean = sums / np.where(mass > 0, mass, 1.0)[:, None]
            along = mean[:, 0]
            if mean.shape[1] > 1:
                along = mean @ np.linalg.svd(np.sqrt(mass)[:, None] * mean, full_matrices=False)[2][0]
            rank = np.empty(n)
            rank[np.argsort(along, kind="stable")] = np.arange(n)
            ranks[j] = rank
        return cls(n_levels, ranks)

    def apply(self, X: FloatArray) -> FloatArray:
        """The points with ranks in the place of codes."""
        found = X.copy()
        for j, rank in self.ranks.items():
            known = ~np.isnan(X[:, j])
            found[known, j] = rank[X[known, j].astype(np.int64)]
        return found

    def invert_tree(self, tree: Tree) -> Tree:
        """The tree on codes that `tree`, whose splits have one feature each, is on ranks.

        Examples
        --------
        >>> X = np.array([[0.0], [1.0], [2.0]])
        >>> levels = RankedLevels.of(X, np.array([[5.0], [1.0], [4.0]]), np.ones(3), np.array([3]))
        >>> tree = levels.invert_tree(Tree.stump([1.0], 0.5, [[1.0, 0.0], [0.0, 1.0]]))
        >>> int(tree.category[0]), tree.left_categories[0].tolist()
        (0, [False, True, False])
        """
        weights, category = tree.weights.copy(), np.full(tree.n_nodes, -1)
        listed = np.zeros((tree.n_nodes, int(self.n_levels.max(initial=0))), dtype=bool)
        for node in tree.branches.tolist():
            feature = int(np.argmax(weights[node] != 0))
            if feature in self.ranks:
                rank = self.ranks[feature]
                listed[node, : len(rank)] = rank * weights[node, feature] <= tree.threshold[node]
                category[node], weights[node] = feature, 0.0
        return replace(tree, weights=weights, category=category, left_categories=listed)


@dataclass(frozen=True)
class RankedValues:
    """Ranks in the place of values that scikit-learn would mix up: it works in single precision.

    Attributes
    ----------
    values : dict of int to ndarray
        The values of each such feature, ascending.

    Examples
    --------
    >>> X = np.array([[18.0], [40.0], [60.0], [999999999.0]])
    >>> close = RankedValues.of(X, None)
    >>> close.apply(X).ravel().tolist()
    [0.0, 1.0, 2.0, 3.0]
    >>> float(close.invert_tree(Tree.stump([1.0], 1.5, [[1.0, 0.0], [0.0, 1.0]])).threshold[0])
    50.0
    """

    values: dict[int, FloatArray]

    @classmethod
    def of(cls, X: Any, n_levels: IntArray | None) -> Self:
        """Rank the values of the features of some points that are close to each other."""
        columns = {j: X[:, j] for j in Points(X, n_levels).close.tolist()}
        return cls({j: np.unique(column[~np.isnan(column)]).astype(np.float64) for j, column in columns.items()})

    def apply(self, X: Any) -> Any:
        """The points with ranks in the place of values."""
        if not self.values:
            return X
        found = np.array(X, dtype=np.float64)
        for j, values in self.values.items():
            known = ~np.isnan(X[:, j])
            found[known, j] = np.searchsorted(values, X[known, j])
        return found

    def invert_tree(self, tree: Tree) -> Tree:
        """The tree on values that `tree`, whose splits have one feature each, is on ranks."""
        threshold = tree.threshold.copy()
        for j, values in self.values.items():
            here = tree.weights[:, j] != 0
            rank, last = threshold[here], len(values) - 1
            beyond = np.sign(rank) * ((rank < 0) | (rank > last))  # all values on one side, gaps on the other
            beyond *= max(1.0, float(np.abs(values).max()))
            threshold[here] = np.interp(rank, np.arange(len(values)), values) + beyond
        return replace(tree, threshold=threshold)
