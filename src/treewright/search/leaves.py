"""What the leaves of a tree say and what that costs: the loss of tree alternating optimization, point by point."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np

from treewright.program import FloatArray, IntArray
from treewright.tree import BoolArray, Tree

__all__ = ["ClassLeaves", "Leaves", "MeanLeaves", "Shape"]


@dataclass(frozen=True)
class Shape:
    """Who is whose child in a tree: what stays while splits and values change."""

    left: IntArray
    right: IntArray
    parent: IntArray
    level: IntArray

    @classmethod
    def of(cls, tree: Tree) -> Shape:
        """Return the shape of a tree."""
        return cls(tree.left, tree.right, tree.parent, tree.level)

    @property
    def n_nodes(self) -> int:
        """Number of nodes, leaves included."""
        return len(self.left)

    @cached_property
    def branches(self) -> list[IntArray]:
        """Branch nodes of each level, the root's first."""
        inner = self.left >= 0
        return [np.flatnonzero(inner & (self.level == k)) for k in range(int(self.level.max()))]

    @cached_property
    def at_level(self) -> list[IntArray]:
        """For each level, that of the deepest leaves included: the node of that level above each node, -1 for none."""
        above, tables = np.arange(self.n_nodes), []
        for level in range(int(self.level.max()), -1, -1):
            tables.append(np.where(self.level >= level, above, -1))
            above = np.where(self.level[above] >= level, self.parent[above], above)
        return tables[::-1]

    def summed(self, table: FloatArray) -> FloatArray:
        """Add the rows of the leaves up to the nodes above them, in place."""
        for nodes in self.branches[::-1]:
            table[nodes] = table[self.left[nodes]] + table[self.right[nodes]]
        return table

    def reached(self, leaf: IntArray) -> BoolArray:
        """Whether a point passes each node, given the leaf of each point."""
        counts = np.bincount(leaf, minlength=self.n_nodes).astype(np.float64)[:, None]
        return np.asarray(self.summed(counts)[:, 0] > 0)


class Leaves(Protocol):
    """Values of the nodes of a tree, fitted to the points that reach them."""

    def refit(self, shape: Shape, leaf: IntArray) -> None:
        """Give each node its best value for the points that pass it; an empty one takes that of its parent."""

    def loss(self, rows: IntArray, leaf: IntArray) -> FloatArray:
        """Loss of each of the points `rows` at the leaf named for it, times the weight of the point."""

    def table(self) -> tuple[FloatArray, IntArray | None]:
        """Values and labels of the nodes, as a :class:`Tree` has them."""


@dataclass
class ClassLeaves:
    """Leaves with a class each: the loss is the weight of the misclassified points.

    Parameters
    ----------
    y : ndarray of int, shape (n_points,)
        Class numbers.
    weight : ndarray of shape (n_points,)
        Weights.
    n_classes : int
        Number of classes.
    """

    y: IntArray
    weight: FloatArray
    n_classes: int
    _counts: FloatArray = field(init=False, repr=False)
    _labels: IntArray = field(init=False, repr=False)

    def refit(self, shape: Shape, leaf: IntArray) -> None:
        """Label each node with its heaviest class."""
        cells = shape.n_nodes * self.n_classes
        counts = np.bincount(leaf * self.n_classes + self.y, self.weight, cells).reshape(-1, self.n_classes)
        self._counts = shape.summed(counts.astype(np.float64))
        self._labels = self._counts.argmax(axis=1)
        for node in np.flatnonzero(~shape.reached(leaf)):  # children are numbered after their parent
            self._labels[node] = self._labels[shape.parent[node]]

    def loss(self, rows: IntArray, leaf: IntArray) -> FloatArray:
        """Weight of each point that its leaf misclassifies, else 0."""
        return np.asarray(np.where(self._labels[leaf] != self.y[rows], self.weight[rows], 0.0))

    def table(self) -> tuple[FloatArray, IntArray | None]:
        """Weights of the classes, and labels."""
        return self._counts, self._labels


@dataclass
class MeanLeaves:
    """Leaves with a constant for each output: the loss is the squared distance, times the weight.

    Parameters
    ----------
    Y : ndarray of shape (n_points, n_outputs)
        Targets.
    weight : ndarray of shape (n_points,)
        Weights.
    """

    Y: FloatArray
    weight: FloatArray
    _means: FloatArray = field(init=False, repr=False)

    def refit(self, shape: Shape, leaf: IntArray) -> None:
        """Give each node the weighted mean of its points."""
        columns = [np.bincount(leaf, self.weight * column, shape.n_nodes) for column in self.Y.T]
        sums = shape.summed(np.column_stack([*columns, np.bincount(leaf, self.weight, shape.n_nodes)]))
        mass = sums[:, -1:]
        self._means = sums[:, :-1] / np.where(mass > 0, mass, 1.0)
        for node in np.flatnonzero(~shape.reached(leaf)):  # children are numbered after their parent
            self._means[node] = self._means[shape.parent[node]]

    def loss(self, rows: IntArray, leaf: IntArray) -> FloatArray:
        """Weighted squared distance of each point to its leaf's value."""
        away = self.Y[rows] - self._means[leaf]
        return np.asarray(self.weight[rows] * np.einsum("ij,ij->i", away, away))

    def table(self) -> tuple[FloatArray, IntArray | None]:
        """Means of the nodes; no labels."""
        return self._means, None
