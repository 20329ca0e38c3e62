"""Levels of columns that have many, in groups of like classes: what a small tree that explains labels can split on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from sklearn.cluster import KMeans

from treewright.core.arrays import FloatArray, IntArray
from treewright.data.tables.codes import ColumnCode
from treewright.tree.structure import Tree

__all__ = ["LevelGroups"]

_GROUPS = 8
"""Most groups of the levels of a column; two a class are enough for few classes, and more are harder to read."""
_PRIOR = 10.0
"""Rows of all levels together that count in each: few rows say little."""


@dataclass(frozen=True, eq=False)
class LevelGroups:
    """Features in which the flags of many levels are those of a few groups, and the way back.

    Of the levels of a column one holds at most, so that the flag of a group is the sum of those of its levels, and a
    weight of the group one of each of its levels.

    Attributes
    ----------
    members : ndarray of shape (n_features, n_grouped)
        1 where a feature is part of a grouped one.

    Examples
    --------
    >>> code = ColumnCode("text", tuple("abcd"), pooled=True)
    >>> X = np.repeat(np.column_stack([[0.5, 1.5, 2.5, 3.5], np.eye(4)]), 20, axis=0)
    >>> groups = LevelGroups.of({"age": ColumnCode("number"), "town": code}, X, np.repeat([0, 1, 0, 1], 20), 2)
    >>> groups.members.shape, groups.grouped(X[[0, 20, 40]])[:, 1:].sum(axis=1).tolist()
    ((5, 3), [1.0, 1.0, 1.0])
    >>> bool(np.all(groups.grouped(X[[0]])[0, 1:] == groups.grouped(X[[40]])[0, 1:]))
    True
    """

    members: FloatArray

    @classmethod
    def of(cls, codes: dict[str, ColumnCode], X: FloatArray, y: IntArray, n_classes: int) -> Self:
        """Group the levels of pooled columns by how often rows of each have each class.

        Parameters
        ----------
        codes : dict of str to ColumnCode
            What became of each column, in the order of the features.
        X : ndarray of shape (n_rows, n_features)
            Rows.
        y : ndarray of int, shape (n_rows,)
            Their class numbers, all known: labels that a tree is to explain.
        n_classes : int
            Number of classes.
        """
        columns: list[list[int]] = []
        at = 0
        for name, code in codes.items():
            width = len(code.feature_names(name))
            levels = list(range(at, at + (len(code.levels) if code.pooled else 0)))
            columns += _alike(X[:, levels], y, n_classes, levels) if levels else []
            columns += [[j] for j in range(at + len(levels), at + width)]
            at += width
        members = np.zeros((at, len(columns)))
        for k, group in enumerate(columns):
            members[group, k] = 1.0
        return cls(members)

    def grouped(self, X: FloatArray) -> FloatArray:
        """Rows in which groups are features."""
        return np.asarray(X @ self.members)

    def levels(self, tree: Tree) -> Tree:
        """A tree of grouped features as one of the features: each level of a group has the weight of the group."""
        return replace(tree, weights=tree.weights @ self.members.T)


def _alike(flags: FloatArray, y: IntArray, n_classes: int, levels: Sequence[int]) -> list[list[int]]:
    """Levels in groups by their shares of the classes; levels of few rows are like all together."""
    counts = flags.T @ np.eye(n_classes)[y]
    shares = (counts + _PRIOR * np.bincount(y, minlength=n_classes) / len(y)) / (
        counts.sum(axis=1, keepdims=True) + _PRIOR
    )
    n_groups = min(_GROUPS, 2 * n_classes, len(np.unique(shares.round(9), axis=0)))
    found = KMeans(n_groups, n_init=4, random_state=0).fit(np.sqrt(shares), sample_weight=counts.sum(axis=1) + 1)
    return [[levels[j] for j in np.flatnonzero(found.labels_ == k).tolist()] for k in range(n_groups)]
