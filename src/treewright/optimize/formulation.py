"""What a formulation is: a mathematical model of a tree, or of weights, on given data, and nothing that solves it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np

from treewright.core.arrays import FloatArray, IntArray
from treewright.data import distinct_rows
from treewright.exceptions import InvalidInputError
from treewright.solvers import Capability
from treewright.solvers.program import Program
from treewright.tree import Tree, leaf_counts
from treewright.tree.complete import CompleteTree

__all__ = ["Formulation", "LabelledPoints", "SureBounds", "TreeFormulation", "with_min_leaf", "least_rows"]

_LIFTED = 1e-6
"""Share of a bound by which tolerances of a solver may have lifted it: they are as large, and not relative."""

S = TypeVar("S")
"""What the model is about: a Tree, or the weights of an ensemble."""


@runtime_checkable
class Formulation(Protocol[S]):
    """A model of a tree or of weights on given data.

    Any of them can be made feasible (:meth:`repair`) and then be written as a point of the program (:meth:`encode`),
    so that every search and every other model is a warm start. What its program needs of a solver and how large it is
    are known before it is written, so that what no solver takes is refused before any work.
    """

    @property
    def needs(self) -> Capability:
        """What a solver must be able to do for the program."""
        ...

    @property
    def program_cells(self) -> int:
        """About how many non-zeros the program has, known before it is written."""
        ...

    def build(self) -> Program:
        """Write the model as a program."""
        ...

    def decode(self, x: FloatArray) -> S:
        """Read the tree off a solution of the program."""
        ...

    def encode(self, tree: S, /) -> FloatArray:
        """Write a feasible tree as a point of the program."""
        ...

    def repair(self, tree: S, /) -> S:
        """Make any tree feasible for the model, changing as little as possible."""
        ...

    def objective(self, tree: S, /) -> float:
        """Objective of a tree, computed from the tree and the data alone; 0 or more."""
        ...

    def lower_bound(self) -> float:
        """A bound of the optimum that the structure of the data gives without conduct."""
        ...

    def sure_bound(self, bound: float, gap: float) -> float:
        """What a bound that a solver claims is sure to say; `gap` is the relative gap that was asked for."""
        ...


@runtime_checkable
class TreeFormulation(Formulation[Tree], Protocol):
    """A model of a tree."""

    def leaves_of(self, x: FloatArray) -> IntArray:
        """Heap number of the leaf that a solution sends each point to."""
        ...


class SureBounds:
    """Mixin of the models whose bounds are numbers: tolerances of a solver may have lifted them a little."""

    def sure_bound(self, bound: float, gap: float) -> float:
        """What a bound that a solver claims is sure to say, by less than the gap that was asked for."""
        return bound - min(_LIFTED, 0.01 * gap) * abs(bound)


class DistinctPoints(SureBounds):
    """Mixin of the models that can part all points that differ: a group is points equal in all features."""

    X: FloatArray

    @cached_property
    def _groups(self) -> tuple[IntArray, IntArray]:
        return distinct_rows(self.X)

    @cached_property
    def group(self) -> IntArray:
        """Group of each point: points of a group are equal in all features, missing values included."""
        return self._groups[1]

    @cached_property
    def rows(self) -> FloatArray:
        """Features of each group."""
        return self.X[self._groups[0]]


@dataclass(frozen=True)
class LabelledPoints(SureBounds):
    """What models of complete trees on labelled points share.

    Parameters
    ----------
    X : ndarray of shape (n_points, n_features)
        Points.
    y : ndarray of int, shape (n_points,)
        Class numbers.
    weight : ndarray of shape (n_points,)
        Weights of the errors.
    n_classes : int
        Number of classes.
    depth : int
        Depth of the tree, at most.
    """

    X: FloatArray
    y: IntArray
    weight: FloatArray
    n_classes: int
    depth: int = 2

    @cached_property
    def tree(self) -> CompleteTree:
        """The complete tree that points are placed in."""
        return CompleteTree(self.depth)

    @cached_property
    def group(self) -> IntArray:
        """Group of each point; no split parts points of a group."""
        raise NotImplementedError

    @cached_property
    def sizes(self) -> FloatArray:
        """Rows that each point stands for."""
        raise NotImplementedError

    @cached_property
    def group_weight(self) -> FloatArray:
        """Weight of each class in each group, shape (n_groups, n_classes)."""
        table = np.zeros((int(self.group.max()) + 1, self.n_classes))
        np.add.at(table, (self.group, self.y), self.weight)
        return table

    @cached_property
    def group_size(self) -> FloatArray:
        """Rows in each group."""
        return np.asarray(np.bincount(self.group, weights=self.sizes), dtype=np.float64)

    def build(self) -> Program:
        """Write the model as a program (once; later calls return the same)."""
        return self._program

    @cached_property
    def _program(self) -> Program:
        raise NotImplementedError


@dataclass(frozen=True)
class RelativeErrors(LabelledPoints):
    """What models share whose errors are relative to those of the majority class, and whose leaves have a least size.

    Parameters
    ----------
    X, y, weight, n_classes, depth
        See :class:`LabelledPoints`.
    complexity : float
        The price alpha of what splits are priced by.
    min_leaf : float
        Smallest sum of `size` in a leaf that is used.
    size : ndarray of shape (n_points,) or None
        How many rows a point stands for in `min_leaf`; 1 each by default.
    """

    complexity: float = 0.0
    min_leaf: float = 1.0
    size: FloatArray | None = None

    @cached_property
    def sizes(self) -> FloatArray:
        """Rows that each point stands for."""
        return np.ones(len(self.X)) if self.size is None else self.size

    @cached_property
    def baseline(self) -> float:
        """Error of the majority class, by which errors are divided (1 if there is none)."""
        by_class = np.bincount(self.y, self.weight, self.n_classes)
        return float(by_class.sum() - by_class.max()) or 1.0

    @property
    def errors_of_least(self) -> float:
        """How many points of the least weight an objective of 1 is."""
        return self.baseline / float(self.weight[self.weight > 0].min())

    def lower_bound(self) -> float:
        """A bound without conduct: points that cannot be parted, and classes for which no leaf is left."""
        table = self.group_weight
        inseparable = (table.sum(axis=1) - table.max(axis=1)).sum()
        by_class = np.sort(table.sum(axis=0))
        # A leaf needs its rows, so there may be room for fewer than the complete tree has.
        room = max(1, int(self.sizes.sum() / self.min_leaf + 1e-6)) if self.min_leaf > 0 else self.tree.n_leaves
        without_leaf = by_class[: max(0, self.n_classes - min(room, self.tree.n_leaves))].sum()
        return float(max(inseparable, without_leaf) / self.baseline)


def with_min_leaf(points: LabelledPoints, tree: Tree, least: float) -> Tree:
    """Drop splits of a formulation's tree above leaves of fewer than `least` rows, lowest first."""
    while tree.n_nodes > 1:
        size = leaf_counts(tree, points.X, np.zeros(len(points.X), np.int64), points.sizes, 1)[:, 0]
        small = np.flatnonzero(tree.is_leaf & (size < least - 1e-9))
        if not len(small):
            break
        keep = np.ones(tree.n_nodes, dtype=bool)
        parent = tree.parent[small[np.argmax(tree.level[small])]]
        keep[[tree.left[parent], tree.right[parent]]] = False
        tree = tree.collapsed(keep)
    return tree


def least_rows(min_samples_leaf: float, n_rows: int) -> float:
    """Fewest rows of a leaf in a formulation, of so many: a number, or a share of them.

    Examples
    --------
    >>> least_rows(5, 100), least_rows(0.07, 100)
    (5.0, 7.0)
    """
    if not isinstance(min_samples_leaf, (int, np.integer)):
        return float(np.ceil(min_samples_leaf * n_rows - 1e-9))  # 0.07 * 100 is a little more than 7
    if min_samples_leaf > n_rows:
        raise InvalidInputError(
            f"min_samples_leaf={min_samples_leaf} is more than the {n_rows} rows with positive weight"
        )
    return float(min_samples_leaf)
