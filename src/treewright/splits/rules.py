"""A split of any kind as one value, and those of all nodes of a tree as arrays while they change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from treewright.arrays import BoolArray, FloatArray, IntArray
from treewright.tree import Tree

__all__ = ["SplitRule", "Splits"]


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
