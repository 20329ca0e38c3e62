"""Which of many equally good trees to take, and the vote of several of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from treewright.core.arrays import FloatArray, IntArray
from treewright.models.s2oct.objective import S2OCT
from treewright.teachers.teacher import Teacher
from treewright.totals.points import divide_points
from treewright.tree import Tree, n_split_weights, passing, predict_labels

__all__ = ["LEEWAY", "TreePool", "preferred_tree", "committee_labels", "committee_trees", "committee_shares"]

LEEWAY = 0.15
"""Share by which an objective that is not proven may be above the least one found, where the tree agrees more with the
teacher: such objectives are mostly missing margins of labels that no tree has right, and a little less says little."""


@dataclass
class TreePool:
    """Equally good S2OCT trees, with the labels that each gives to the unlabelled points."""

    objective: float = np.inf
    """Objective of all of them."""
    trees: list[Tree] = field(default_factory=list)
    """The trees."""
    labels: list[IntArray] = field(default_factory=list)
    """Their labels of the unlabelled points."""
    teacher: Teacher | None = None
    """Whom trees learn from."""
    taught: IntArray | None = None
    """Labels that the teacher gives."""
    near: list[tuple[float, Tree, IntArray]] = field(default_factory=list)
    """Objectives, trees and labels of those up to :data:`LEEWAY` worse that agree more with the teacher than any better
    one, the best first."""

    @property
    def place(self) -> tuple[float, float]:
        """Objective, and the share of unlabelled points on which no tree agrees with the teacher more, negative."""
        return self.objective, -max((self.agreement(k) for k in range(len(self.trees))), default=0.0)

    def agreement(self, k: int) -> float:
        """Share of the unlabelled points to which tree `k` gives the label that the teacher gives."""
        return self._share(self.labels[k])

    def add(self, model: S2OCT, tree: Tree, objective: float) -> None:
        """Add a feasible tree of this objective if it is as good as the others; beside a better one they are near."""
        tolerance = _tolerance(objective)
        if objective > (1.0 + LEEWAY) * self.objective + tolerance:
            return
        labels = predict_labels(tree, model.hidden)
        if objective > self.objective + tolerance:
            self._keep_near([(objective, tree, labels)])
            return
        worse = list[tuple[float, Tree, IntArray]]()
        if objective < self.objective - tolerance:
            worse = [(self.objective, *of) for of in zip(self.trees, self.labels, strict=True)]
            self.trees, self.labels = [], []
        self.objective = min(objective, self.objective)
        self.trees.append(tree)
        self.labels.append(labels)
        self._keep_near(worse)

    def up_to(self, limit: float) -> TreePool:
        """The pool with the trees near it, as far as their objectives do not exceed a limit, as if all were as good."""
        trees, labels = list(self.trees), list(self.labels)
        if self.objective > limit + _tolerance(limit):
            trees, labels = [], []
        found = [(tree, of) for objective, tree, of in self.near if objective <= limit + _tolerance(limit)]
        trees, labels = trees + [tree for tree, _ in found], labels + [of for _, of in found]
        return TreePool(self.objective, trees, labels, self.teacher, self.taught)

    def _keep_near(self, more: list[tuple[float, Tree, IntArray]]) -> None:
        """Take more trees among those near the pool, and leave out those that another one makes needless."""
        if self.taught is None or self.objective <= 0:
            self.near = []
            return
        most = max((self._share(labels) for labels in self.labels), default=0.0)
        ranked, self.near = sorted([*self.near, *more], key=lambda of: of[0]), []
        for objective, tree, labels in ranked:
            if objective <= (1.0 + LEEWAY) * self.objective and self._share(labels) > most:
                self.near.append((objective, tree, labels))
                most = self._share(labels)

    def _share(self, labels: IntArray) -> float:
        return float(np.mean(labels == self.taught)) if self.taught is not None and len(self.taught) else 0.0


def _tolerance(objective: float) -> float:
    return 1e-6 * max(1.0, abs(objective))


def preferred_tree(pool: TreePool, model: S2OCT, prefer: str) -> int:
    """Number of the preferred tree of a pool of S2OCT trees.

    Parameters
    ----------
    pool : Pool
        Equally good trees.
    model : S2OCT
        Their model.
    prefer : {"taught", "typical", "margin", "sparse", "first"}
        The tree whose labels agree most with those of the teacher, of equal ones that with the fewest features in its
        splits; the one that agrees most with all trees; the one whose nearest unlabelled point is farthest from the
        splits on its way; the one with the fewest features in its splits; the one found first.
    """
    if prefer == "first" or len(pool.trees) == 1:
        return 0
    if prefer == "taught" and pool.taught is not None:
        terms = [n_split_weights(model.simplified(tree)) for tree in pool.trees]
        return min(range(len(terms)), key=lambda k: (-pool.agreement(k), terms[k]))
    if prefer == "sparse":
        return int(np.argmin([n_split_weights(model.simplified(tree)) for tree in pool.trees]))
    if prefer == "margin":
        return int(np.argmax([_margin(tree, model.hidden) for tree in pool.trees]))
    votes = committee_shares(pool.labels, model.n_classes, pool.taught)
    rows = np.arange(len(votes))
    return int(np.argmax([model.totals.rows @ votes[rows, labels] for labels in pool.labels]))


def committee_trees(pool: TreePool, model: S2OCT, prefer: str, n_estimators: int) -> list[int]:
    """Numbers of the S2OCT trees of a committee: the preferred one, then those agreeing most with the teacher.

    Without a teacher the others come in the order in which they were found.

    Examples
    --------
    >>> from treewright.data import PointTotals
    >>> X, y = np.array([[0.0], [9.0], [4.0]]), np.array([0, 1, -1])
    >>> model = S2OCT(X, y, np.ones(3), PointTotals([[1]], [[0, 0]], [[1, 1]]), depth=1)
    >>> pool = TreePool()
    >>> for threshold in (2.0, 6.0, 7.0):
    ...     pool.add(model, model.repair(Tree.stump([1.0], threshold, [[1.0, 0.0], [0.0, 1.0]])), 0.0)
    >>> committee_trees(pool, model, "typical", 2)
    [1, 0]
    """
    first = preferred_tree(pool, model, prefer)
    others = sorted((k for k in range(len(pool.trees)) if k != first), key=lambda k: -pool.agreement(k))
    return [first, *others][:n_estimators]


def committee_labels(pool: TreePool, model: S2OCT, chosen: list[int]) -> IntArray:
    """Labels of unlabelled points by the vote of some S2OCT trees within the totals; one tree labels as it does."""
    if len(chosen) == 1:
        return pool.labels[chosen[0]]
    votes = committee_shares([pool.labels[k] for k in chosen], model.n_classes, pool.taught)
    return divide_points(votes, model.totals)


def committee_shares(labels: list[IntArray], n_classes: int, taught: IntArray | None) -> FloatArray:
    """Share of the votes of S2OCT trees for each class, (n_points, n_classes); the teacher's half vote breaks ties."""
    rows = np.arange(len(labels[0]))
    votes = np.zeros((len(rows), n_classes))
    for ballot in labels:
        votes[rows, ballot] += 1.0
    if taught is not None:
        votes[rows, taught] += 0.5
    return np.asarray(votes / votes.sum(axis=1, keepdims=True))


def _margin(tree: Tree, X: FloatArray) -> float:
    """Distance of the nearest point from a split of its way, in units of the normal's largest entry."""
    nearest = np.inf
    for branch in tree.branches:
        size = np.abs(tree.weights[branch]).max()
        if size > 0:
            inside = X[passing(tree, X, int(branch))]
            value = np.abs(inside @ tree.weights[branch] - tree.threshold[branch])
            nearest = min(nearest, float(value.min(initial=np.inf) / size))
    return nearest
