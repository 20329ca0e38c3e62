"""What the leaves of a tree say and what that costs: the loss of tree alternating optimization, point by point."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.engine.ridge import CentredRows, row_blocks
from treewright.tree.routing import heaviest
from treewright.tree.structure import Shape

__all__ = ["ClassLeaves", "Leaves", "LinearLeaves", "MeanLeaves"]

_FLAT = 1e-12
"""Slopes below this are rounding: features vary by about 1 and targets by about 1."""


class Leaves(Protocol):
    """Values of the nodes of a tree, fitted to the points that reach them."""

    @property
    def price(self) -> float:
        """What the leaves cost apart from the loss of the points; refitting lowers the sum of both."""

    @property
    def slopes(self) -> FloatArray | None:
        """Slopes of the nodes as a :class:`Tree` has them, None for constant leaves."""

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
    price: ClassVar[float] = 0.0
    slopes: ClassVar[None] = None
    _counts: FloatArray = field(init=False, repr=False)
    _labels: IntArray = field(init=False, repr=False)

    def refit(self, shape: Shape, leaf: IntArray) -> None:
        """Label each node with its heaviest class."""
        cells = shape.n_nodes * self.n_classes
        counts = np.bincount(leaf * self.n_classes + self.y, self.weight, cells).reshape(-1, self.n_classes)
        self._counts = shape.summed(counts.astype(np.float64))
        self._labels = heaviest(self._counts)
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
    """Leaves with a constant for each output, a column of Y: the loss is the squared distance, times the weight."""

    Y: FloatArray
    weight: FloatArray
    price: ClassVar[float] = 0.0
    slopes: ClassVar[None] = None
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


@dataclass
class LinearLeaves:
    r"""Leaves with a linear function for each output, fitted by ridge regression.

    A leaf with points L has the values b and slopes A that minimize

    .. math:: \sum_{i \in L} c_i \lVert y_i - b - A x_i \rVert^2 + \rho \lVert A \rVert_F^2 .

    The first sum is the loss, the second term, summed over the leaves, the price. b is free. As the price of a slope
    does not depend on the number of points, a leaf with few points is nearly constant, and one with fewer points than
    features has one best function all the same. While a tree is searched for, branch nodes have means and no slopes.

    Parameters
    ----------
    X : ndarray (C order) or csr_array of shape (n_points, n_features)
        Points with features of about unit size.
    Y : ndarray of shape (n_points, n_outputs)
        Targets of about unit size.
    weight : ndarray of shape (n_points,)
        Weights, positive.
    ridge : float
        The price :math:`\rho` of a squared slope of 1, positive.

    Examples
    --------
    >>> X = np.array([[0.0], [0.5], [1.0]])
    >>> leaves = LinearLeaves(X, 1.0 + 2.0 * X, np.ones(3), ridge=1e-9)
    >>> from treewright.tree import Tree
    >>> leaves.refit(Shape.of(Tree.leaf([0.0], 1, classification=False)), np.zeros(3, dtype=int))
    >>> leaves.table()[0].round(6).tolist(), leaves.slopes.round(6).tolist()
    ([[1.0]], [[[2.0]]])
    """

    X: Any
    Y: FloatArray
    weight: FloatArray
    ridge: float
    price: float = field(init=False, default=0.0)
    _values: FloatArray = field(init=False, repr=False)
    _slopes: FloatArray = field(init=False, repr=False)
    _leaf: IntArray | None = field(init=False, repr=False, default=None)

    @property
    def slopes(self) -> FloatArray:
        """Slopes of the nodes, shape (n_nodes, n_outputs, n_features)."""
        return self._slopes

    def refit(self, shape: Shape, leaf: IntArray) -> None:
        """Fit the leaves whose points have changed; other nodes get means, empty ones that of their parent."""
        means = MeanLeaves(self.Y, self.weight)
        means.refit(shape, leaf)
        values = means.table()[0]
        fresh = self._leaf is None or len(self._values) != shape.n_nodes
        if fresh:
            self._slopes = np.zeros((*values.shape, self.X.shape[1]))
        touched = self._touched(shape.n_nodes, None if fresh else self._leaf, leaf)
        reached = np.bincount(leaf, minlength=shape.n_nodes) > 0
        self._slopes[~reached] = 0.0
        if not fresh:
            same = reached & ~touched
            values[same] = self._values[same]
        some = np.flatnonzero(touched[leaf])
        for node, part in _groups(leaf[some]):
            old = None if fresh else (self._values[node], self._slopes[node].copy())
            values[node], self._slopes[node] = self._fit(some[part], old)
        self._values, self._leaf = values, leaf.copy()
        self.price = self.ridge * float(np.vdot(self._slopes, self._slopes))

    def refit_branches(self, shape: Shape, leaf: IntArray) -> None:
        """Fit the branch nodes too, once the search is over: it takes about as long as a pass of the search."""
        for level in range(len(shape.branches)):
            at = shape.at_level[level][leaf]
            rows = np.flatnonzero((at >= 0) & (shape.left[at] >= 0))
            for node, part in _groups(at[rows]):
                self._values[node], self._slopes[node] = self._fit(rows[part], None)

    def loss(self, rows: IntArray, leaf: IntArray) -> FloatArray:
        """Weighted squared distance of each point to what its leaf predicts for it."""
        found = np.empty(len(rows))
        for node, part in _groups(leaf):
            found[part] = self._losses(rows[part], self._values[node], self._slopes[node])
        return found

    def table(self) -> tuple[FloatArray, IntArray | None]:
        """Values of the nodes; no labels."""
        return self._values, None

    @staticmethod
    def _touched(n_nodes: int, before: IntArray | None, leaf: IntArray) -> BoolArray:
        """Mask of the leaves that have other points than before."""
        touched = np.full(n_nodes, before is None)
        if before is not None:
            moved = before != leaf
            touched[before[moved]] = touched[leaf[moved]] = True
        return touched

    def _fit(self, rows: IntArray, old: tuple[FloatArray, FloatArray] | None) -> tuple[FloatArray, FloatArray]:
        """Values and slopes for some points, or the old ones if rounding makes the new ones no better."""
        centred = CentredRows(self.X, rows, self.weight[rows])
        targets = self.Y[rows]
        mean = self.weight[rows] @ targets / centred.mass
        slopes = centred.ridge(centred.root[:, None] * (targets - mean), self.ridge).T
        slopes[np.abs(slopes) < _FLAT] = 0.0
        new = mean - slopes @ centred.mean, slopes
        return new if old is None or self._cost(rows, *new) <= self._cost(rows, *old) else old

    def _cost(self, rows: IntArray, values: FloatArray, slopes: FloatArray) -> float:
        return float(self._losses(rows, values, slopes).sum()) + self.ridge * float(np.vdot(slopes, slopes))

    def _losses(self, rows: IntArray, values: FloatArray, slopes: FloatArray) -> FloatArray:
        away = self.Y[rows] - values
        if np.any(slopes):
            for part in row_blocks(len(rows), self.X.shape[1]):
                away[part] -= self.X[rows[part]] @ slopes.T
        return np.asarray(self.weight[rows] * np.einsum("ij,ij->i", away, away))


def _groups(node: IntArray) -> Iterator[tuple[int, IntArray]]:
    """Each node that occurs, and the positions at which it does, ascending."""
    order = np.argsort(node, kind="stable")
    found, starts = np.unique(node[order], return_index=True)
    return zip(found.tolist(), np.split(order, starts[1:]), strict=True) if len(found) else iter(())
