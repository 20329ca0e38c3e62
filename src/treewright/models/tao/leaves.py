"""What leaves of trees by alternating optimization predict: classes, means or linear functions; their loss on rows."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.threads import one_thread
from treewright.data import Sample, target_spread, unit_scaling, weighted_mean
from treewright.engine.leaves import ClassLeaves, Leaves, LinearLeaves, MeanLeaves
from treewright.tree import Tree, averaged, predict_values, relabelled, route, weighted_error
from treewright.tree.structure import Shape

__all__ = ["ClassGoal", "LeafGoal", "LineGoal", "MeanGoal"]


class LeafGoal(Protocol):
    """What the leaves of a TAO or LapTAO tree are to predict."""

    targets: FloatArray
    """What the search works with, a row a row."""

    def leaves(self, X: Any, targets: Any, weight: FloatArray) -> Leaves:
        """Leaves on points."""

    def finished(self, tree: Tree) -> tuple[Tree, float]:
        """A tree of splits alone with the leaves of its rows, and its loss."""


class ClassGoal:
    """TAO leaves that predict the class of most rows."""

    def __init__(self, rows: Sample, n_classes: int) -> None:
        self.rows, self.n_classes = rows, n_classes
        self.codes: IntArray = np.asarray(rows.y)
        self.targets = self.codes[:, None].astype(np.float64)

    def leaves(self, X: Any, targets: Any, weight: FloatArray) -> Leaves:
        """Leaves on points."""
        return ClassLeaves(targets[:, 0].astype(np.int64), weight, self.n_classes)

    def finished(self, tree: Tree) -> tuple[Tree, float]:
        """The tree with the weights of its classes, and its errors."""
        bare = tree.with_leaves(np.zeros((tree.n_nodes, self.n_classes)), None)
        tree = relabelled(bare, self.rows.X, self.codes, self.rows.weight)
        return tree, weighted_error(tree, self.rows.X, self.codes, self.rows.weight)


class MeanGoal:
    """TAO leaves that predict the mean of the rows; targets are centred and have unit spread."""

    def __init__(self, rows: Sample) -> None:
        self.rows = rows
        self.given: FloatArray = np.asarray(rows.y)
        self.mean = weighted_mean(self.given, rows.weight)
        self.scale = target_spread(self.given, rows.weight)
        self.targets = (self.given - self.mean) / self.scale

    def leaves(self, X: Any, targets: Any, weight: FloatArray) -> Leaves:
        """Leaves on points."""
        return MeanLeaves(targets, weight)

    def finished(self, tree: Tree) -> tuple[Tree, float]:
        """The tree with the means of its rows, and the squares that are left."""
        tree = averaged(tree, self.rows.X, self.given, self.rows.weight)
        return tree, self.squares(tree)

    def squares(self, tree: Tree) -> float:
        """Squared distances from the targets, in units of their spread."""
        away = (self.given - predict_values(tree, self.rows.X)) / self.scale
        return float(self.rows.weight @ (away**2).sum(axis=1))


class LineGoal(MeanGoal):
    """TAO leaves that predict by a ridge regression on the rows."""

    def __init__(self, rows: Sample, ridge: float) -> None:
        super().__init__(rows)
        self.ridge = float(ridge)

    def leaves(self, X: Any, targets: Any, weight: FloatArray) -> Leaves:
        """Leaves on points."""
        return LinearLeaves(self.sloped(X), targets, weight, self.ridge)

    def sloped(self, X: Any) -> Any:
        """Points with zeros in the place of codes, along which there is no slope."""
        return X if self.rows.categorical is None else np.where(self.rows.categorical, X.dtype.type(0), X)

    def finished(self, tree: Tree) -> tuple[Tree, float]:
        """Linear functions at all nodes, in the units of the data; the price of those at the leaves is in the loss."""
        X, leaf = self.sloped(self.rows.X), route(tree, self.rows.X)
        scaling, shape = unit_scaling(X), Shape.of(tree)
        leaves = LinearLeaves(scaling.apply(X), self.targets, self.rows.weight, self.ridge)
        with one_thread():
            leaves.refit(shape, leaf)
            price = leaves.price
            leaves.refit_branches(shape, leaf)
        values = leaves.table()[0] * self.scale + self.mean
        with np.errstate(over="ignore", invalid="ignore"):
            values, slopes = scaling.invert_leaves(values, leaves.slopes * self.scale)
            sloped = tree.with_leaves(values, None, slopes)
            loss = self.squares(sloped) + price
        # slopes that floating point cannot hold in the units of the data: means are left
        return (sloped, loss) if np.isfinite(loss) else super().finished(tree)
