"""The data of an S2OCT model as its search sees it: labelled points, unlabelled points, and the units of both."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.models.s2oct.objective import S2OCT
from treewright.optimize.settings import S2OCTSearch
from treewright.teachers.points import TeacherPoints
from treewright.tree import Tree
from treewright.tree.complete import Planes, leaves_reached

__all__ = ["Survey", "planes_errors"]

_RIGHT = 1e-6
"""Labelled points that miss their margins by less are right."""


class Survey:
    """Labelled and unlabelled points of an S2OCT as its search sees them.

    Parameters
    ----------
    model : S2OCT
        The model.
    search : S2OCTSearch
        How much is done.

    Attributes
    ----------
    X, y, weight, hidden : ndarray
        Labelled and unlabelled points, as a :class:`~treewright.teachers.points.TeacherPoints` has them.
    totals : PointTotals
        Totals of the unlabelled ones.
    """

    def __init__(self, model: S2OCT, search: S2OCTSearch = S2OCTSearch()) -> None:
        self.model, self.search, self.totals = model, search, model.totals
        known, hidden = model.labelled, model.unlabelled
        self.X, self.y, self.weight = model.X[known], model.y[known], model.weight[known]
        self.hidden = model.X[hidden]

    @cached_property
    def low(self) -> FloatArray:
        """Least value of each feature."""
        return np.asarray(self.model.X.min(axis=0))

    @cached_property
    def width(self) -> FloatArray:
        """What each feature varies by; 1 where it does not."""
        width = self.model.X.max(axis=0) - self.low
        return np.where(width > 0, width, 1.0)

    @cached_property
    def gap(self) -> float:
        """Two margins of 1 under ``|omega_j| <= s``, for a typical normal in coordinates of [0, 1]."""
        return float(2.0 / (self.model.max_coefficient * self.width.mean() * np.sqrt(len(self.low))))

    @cached_property
    def reach(self) -> float:
        """Largest coordinate of all points."""
        return float(np.abs(self.model.X).max(initial=0.0))

    @property
    def teacher_points(self) -> TeacherPoints:
        """What a teacher is to learn from."""
        totals = self.totals
        free = bool(np.all(totals.low <= 0) and np.all(totals.high >= totals.group_rows[:, None]))
        return TeacherPoints(self.X, self.y, self.weight, self.hidden, self.model.n_classes, None if free else totals)

    def unit(self, X: FloatArray) -> FloatArray:
        """Points in coordinates of [0, 1]."""
        return np.asarray((X - self.low) / self.width)

    def sample(self, rng: np.random.Generator, among: BoolArray | None = None) -> IntArray:
        """Labelled points, or those of a mask; a sample of them where there are many."""
        most = self.search.sampled_points
        points = np.arange(len(self.X)) if among is None else np.flatnonzero(among)
        return points if len(points) <= most else np.sort(rng.choice(points, most, replace=False))

    def error(self, planes: Planes) -> float:
        """Weighted error of the labelled points."""
        return float(self.weight @ planes_errors(planes, self.X, self.y)[0])

    def objective(self, planes: Planes) -> float:
        """Objective of the tree of hyperplanes, once it is made feasible."""
        return self.model.objective(self.model.repair(planes.to_tree(self.model.n_classes)))

    def all_right(self, planes: Planes) -> bool:
        """Whether every labelled point is right with margin."""
        return bool(planes_errors(planes, self.X, self.y)[0].max(initial=0.0) <= _RIGHT)

    def completed(self, tree: Tree) -> Planes:
        """Hyperplanes of a tree, on the complete tree of the model."""
        return Planes.from_tree(tree, self.model.depth).with_all_labels(self.model.n_classes)

    def stretched(self, planes: Planes) -> Planes:
        """Multiply each hyperplane until its largest weight is s."""
        largest = np.abs(planes.omega).max(axis=1)
        factor = np.where(largest > 0, self.model.max_coefficient / np.where(largest > 0, largest, 1.0), 1.0)
        return Planes(planes.omega * factor[:, None], planes.gamma * factor, planes.labels)


def planes_errors(planes: Planes, X: FloatArray, y: IntArray) -> tuple[FloatArray, IntArray]:
    """S2OCT: least leaf error of each labelled point among the leaves of its class, and that leaf."""
    least, leaf = planes.own_errors(X, y)
    # A class without a leaf: the point stays where it is, and cannot be right.
    lost = ~np.isfinite(least)
    leaf[lost] = leaves_reached(planes.values(X[lost]))
    return np.where(lost, 0.0, least), leaf
