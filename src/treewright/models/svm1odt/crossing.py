r"""Points that change their places in a small tree, with every plane the best one for the points on its two sides.

Once all places are given, a tree of planes falls apart: errors are counted, and the plane of each node is a linear
program. So a tree is searched over the places of its points. Where a point holds a plane up, the dual :math:`\lambda`
of its row says so: without the row the plane would cost less by :math:`(1 + \epsilon) \lambda` at most, as a row that
says nothing has its bound moved by no more than that. Places of such points, and of those that are wrong, are the only
ones worth changing (:meth:`Crossing.cross`). Another way begins anywhere: points take the leaf of their class that they
fall short of least, planes are fitted to that, and so on (:meth:`Crossing.settle`), which is where trees without
errors come from that no way downhill leads to.

All of it is compiled (:mod:`~.crossing_loops`), the programs too (:mod:`treewright.splits.plane_programs`). Each
change looks at all points and leaves, so this is for some hundreds of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

import numpy as np

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.models.svm1odt.crossing_loops import begin, cross, settle
from treewright.models.svm1odt.objective import SVM1ODT
from treewright.tree import Tree, route, side

__all__ = ["Crossing", "Kept", "Places", "Root", "State"]

_MOST_CELLS, _DEEPEST = 120_000, 4
"""Values of all points in the programs of all nodes up to which these are solved fast enough for thousands of them, and
the deepest trees for which there is a table of points, leaves and nodes."""

_EXACT = 1e-9
"""By how much a value may be beyond a bound."""

_PRICES, _FITS = (5.0, 50.0), 8
"""What a unit of falling short costs while planes and places are fitted by turns, and how often they are."""

_STRIDE_CELLS = 200_000
"""Values of points times steps after which there is a look at the clock."""

_GAPS, _ROOTS = 4, 80
"""Gaps of a feature in which roots are tried, and most roots."""


Root = tuple[FloatArray, float]
"""Normal, of the features that planes are made of, and offset of a root."""


class Places(NamedTuple):
    """What does not change: the points, and the tree's shape."""

    table: FloatArray
    """Values of the numerical features."""
    weight: FloatArray
    """Weight of each class at each point."""
    price: FloatArray
    """What a unit of hinge error costs at each point."""
    limits: tuple[float, float, float, float]
    """As of :func:`~treewright.splits.plane_programs.best_plane`."""
    paths: IntArray
    """For each leaf and branch, 1 where its way goes left, -1 right, 0 elsewhere."""
    fixed: IntArray
    """1 for branches that are splits on categories, which stay as they are."""
    left: IntArray
    """1 where a point goes left at such a branch."""
    may: IntArray
    """1 where these branches let a point come to a leaf."""


class State(NamedTuple):
    """Where points are, and planes."""

    leaf: IntArray
    counts: FloatArray
    normals: FloatArray
    offsets: FloatArray
    duals: FloatArray
    costs: FloatArray
    known: FloatArray
    """What a tree would cost at least, of moves that were tried since the last one that was made."""
    total: FloatArray
    """Objective now, and the best one."""


class Kept(NamedTuple):
    """The best tree so far."""

    normals: FloatArray
    offsets: FloatArray
    labels: IntArray


class Crossing:
    """Places of the points of an SVM1-ODT, in complete trees.

    Parameters
    ----------
    model : SVM1ODT
        The model; margins are not hard, and numerical features have no gaps. Categorical splits stay as they are.

    Attributes
    ----------
    features : ndarray of int
        Numerical features.
    """

    def __init__(self, model: SVM1ODT) -> None:
        self.model, self.features = model, model.numerical
        self.table = np.ascontiguousarray(model.rows[:, self.features])
        self.weight, self.price = model.group_weight, model.alpha_1 * model.group_size
        self.paths = _paths(model.depth)

    @staticmethod
    def suits(model: SVM1ODT) -> bool:
        """Whether a model is small enough, and one of planes with soft margins and no gaps."""
        if model.hard or not len(model.numerical) or model.has_gaps.any():
            return False
        cells = len(model.rows) * (len(model.numerical) + 5) * model.tree.n_branches
        return model.depth <= _DEEPEST and cells <= _MOST_CELLS

    @property
    def limits(self) -> tuple[float, float, float, float]:
        """Margins, price and bound of planes as the programs have them."""
        model = self.model
        # A little more, so that rounding leaves no point nearer to a plane than the model allows.
        return model.epsilon, model.margin + 10 * _EXACT, model.alpha_2, model.max_coefficient

    # ------------------------------------------------------------------ from a tree: one point at a time

    def cross(
        self, tree: Tree, rng: np.random.Generator, steps: int, heat: float, budget: Budget
    ) -> tuple[Tree, float]:
        """Let points change their places one at a time, with losses accepted at random, ever more strictly.

        Parameters
        ----------
        tree : Tree
            A complete, feasible tree.
        rng : Generator
            What chance is made of.
        steps : int
            Changes that are tried.
        heat : float
            Loss that is accepted on average, at first, as a share of what planes cost.
        budget : Budget
            Ends the work early.

        Returns
        -------
        Tree, float
            The best tree on the way, and its objective; infinite where the tree given was not feasible.
        """
        at = Placed.of(self, tree)
        if not np.isfinite(at.value):
            return tree, np.inf
        at.walk(rng, steps, heat, budget)
        return at.best_tree(), at.best

    # ------------------------------------------------------------------ from nothing: all points at a time

    def settle(self, start: Tree, labels: IntArray, budget: Budget, keep_root: bool = False) -> tuple[Tree, float]:
        """Fit planes to places and places to planes by turns, with given labels of the leaves.

        Parameters
        ----------
        start : Tree
            A complete tree of planes.
        labels : ndarray of int, shape (n_leaves,)
            Labels of the leaves, from the left.
        budget : Budget
            Ends the work early.
        keep_root : bool
            Whether the root stays as it is, and all begins with places: the first leaf of a point's class on its side.

        Returns
        -------
        Tree, float
            The tree with the best planes for where its points are, and its objective; infinite where these planes are
            not feasible.
        """
        n_branches, labels = self.paths.shape[1], np.asarray(labels, dtype=np.int64)
        at = Placed.blank(self, start)
        at.state.leaf[:] = -1
        at.state.normals[:] = start.weights[:n_branches][:, self.features]
        at.state.offsets[:] = start.threshold[:n_branches]
        for price in _PRICES:
            if not budget.over:
                settle(at.places, self.model.group_size, labels, price, _FITS, keep_root, at.state)
        planes = dict(enumerate(zip(at.state.normals.copy(), at.state.offsets.copy(), strict=True)))
        settled = self.planted(start, planes, labels)
        fitted = Placed.of(self, settled)
        return (fitted.best_tree(), fitted.best) if np.isfinite(fitted.best) else (settled, np.inf)

    def roots(self) -> list[Root]:
        """Splits by one feature in its widest gaps, those with the shortest normals first."""
        found = [self._in_gaps(np.eye(len(self.features))[k]) for k in range(len(self.features))]
        return sorted(chain.from_iterable(found), key=lambda root: float(np.abs(root[0]).sum()))[:_ROOTS]

    def random_root(self, rng: np.random.Generator) -> Root | None:
        """A split by two or three features of equal weight in a wide gap."""
        some = rng.choice(len(self.features), min(len(self.features), int(rng.integers(2, 4))), replace=False)
        direction = np.zeros(len(self.features))
        direction[some] = rng.choice([-1.0, 1.0], len(some))
        found = self._in_gaps(direction)
        return found[rng.integers(len(found))] if found else None

    def promoted(self, tree: Tree, rng: np.random.Generator) -> Root | None:
        """The plane of a lower node of a tree as a root, or that plane without some of its features."""
        below = tree.branches[(tree.branches > 0) & (tree.category[tree.branches] < 0)]
        if not len(below):
            return None
        node = int(rng.choice(below))
        normal = tree.weights[node, self.features]
        if rng.random() < 0.5:
            return normal, float(tree.threshold[node])
        found = self._in_gaps(normal * (rng.random(len(normal)) < 0.7))
        return found[0] if found else None

    def _in_gaps(self, direction: FloatArray) -> list[Root]:
        """Splits along a direction in its widest gaps, with the margin epsilon where that can be."""
        values = np.unique(self.table @ direction)
        gaps = np.diff(values)
        found = []
        for g in np.argsort(-gaps, kind="stable")[:_GAPS]:
            threshold = float(values[g] + values[g + 1]) / 2
            most = 1.0 / max(threshold - values[0], values[-1] - threshold)
            factor = min(most, self.model.max_coefficient, 2 * self.model.epsilon / float(gaps[g]))
            found.append((factor * direction, factor * threshold))
        return found

    def rooted(self, tree: Tree, root: Root, budget: Budget) -> tuple[Tree, float]:
        """A tree with that root, and below it planes that part the heaviest classes of either side; its objective."""
        normal, threshold = root
        weights, thresholds, category = tree.weights.copy(), tree.threshold.copy(), tree.category.copy()
        weights[0], thresholds[0], category[0] = 0.0, threshold, -1
        weights[0, self.features] = normal
        left = self.table @ normal <= threshold
        half, labels = len(self.paths) // 2, []
        for part in (left, ~left):
            shares = self.weight[part].sum(axis=0)
            heavy = np.argsort(-shares, kind="stable")[: min(half, int(np.count_nonzero(shares)))]
            labels.append(np.sort(np.resize(heavy, half)))
        start = replace(tree, weights=weights, threshold=thresholds, category=category)
        return self.settle(start, np.concatenate(labels), budget, keep_root=True)

    def planted(self, tree: Tree, planes: dict[int, tuple[FloatArray, float]], labels: IntArray) -> Tree:
        """A complete tree with other planes and labels."""
        weights, threshold, category = tree.weights.copy(), tree.threshold.copy(), tree.category.copy()
        for b, (normal, offset) in planes.items():
            weights[b], category[b] = 0.0, -1
            weights[b, self.features] = normal
            threshold[b] = offset if np.any(normal) else (1.0 if offset >= 0 else -1.0)
        all_labels = np.array(tree.labels)
        all_labels[len(all_labels) - len(labels) :] = labels
        return replace(tree, weights=weights, threshold=threshold, category=category, labels=all_labels)


@dataclass(frozen=True, eq=False)
class Placed:
    """Where all points are in an SVM1-ODT tree, and the best planes for that."""

    within: Crossing
    tree: Tree
    places: Places
    state: State
    kept: Kept
    own: float
    """What splits on categories cost."""

    @classmethod
    def blank(cls, within: Crossing, tree: Tree) -> Placed:
        """Points that have no places yet, in a complete tree."""
        model, paths = within.model, within.paths
        (n_leaves, n_branches), (n, k) = paths.shape, within.table.shape
        fixed = (tree.category[:n_branches] >= 0).astype(np.int64)
        may, left = np.ones((n, n_leaves), dtype=np.int64), np.zeros((n, n_branches), dtype=np.int64)
        for b in np.flatnonzero(fixed).tolist():
            left[:, b] = side(tree, model.rows, b)
            may &= (paths[:, b] == 0) | (paths[:, b] == 2 * left[:, b, None] - 1)
        places = Places(within.table, within.weight, within.price, within.limits, paths, fixed, left, may)
        state = State(
            leaf=np.zeros(n, dtype=np.int64),
            counts=np.zeros((n_leaves, model.n_classes)),
            normals=np.zeros((n_branches, k)),
            offsets=np.zeros(n_branches),
            duals=np.zeros((n_branches, n)),
            costs=np.zeros(n_branches),
            known=np.full((n, n_leaves), -np.inf),
            total=np.full(2, np.inf),
        )
        kept = Kept(np.zeros((n_branches, k)), np.zeros(n_branches), np.zeros(n_leaves, dtype=np.int64))
        return cls(within, tree, places, state, kept, model.alpha_2 * float(fixed.sum()))

    @classmethod
    def of(cls, within: Crossing, tree: Tree) -> Placed:
        """Points where a complete tree has them."""
        at = cls.blank(within, tree)
        at.state.leaf[:] = route(tree, within.model.rows) - within.paths.shape[1]
        begin(at.places, at.state, at.kept, at.own)
        return at

    @property
    def value(self) -> float:
        """Objective of the tree with points where they are."""
        return float(self.state.total[0])

    @property
    def best(self) -> float:
        """The least objective so far."""
        return float(self.state.total[1])

    def best_tree(self) -> Tree:
        """The best tree so far."""
        free = np.flatnonzero(self.places.fixed == 0).tolist()
        planes = {b: (self.kept.normals[b], float(self.kept.offsets[b])) for b in free}
        return self.within.planted(self.tree, planes, self.kept.labels)

    def walk(self, rng: np.random.Generator, steps: int, heat: float, budget: Budget) -> None:
        """Take steps as :meth:`Crossing.cross` says."""
        chance = rng.integers(2**63, size=1).astype(np.uint64)
        stride = max(1, _STRIDE_CELLS // self.within.table.size)
        for first in range(0, steps, stride):
            if budget.over:
                break
            last = min(steps, first + stride)
            cross(self.places, self.state, self.kept, first, last, steps, heat, self.own, chance)


def _paths(depth: int) -> IntArray:
    """For each leaf of a complete tree and each branch: 1 where its way goes left there, -1 right, 0 elsewhere."""
    n_branches = 2**depth - 1
    paths = np.zeros((n_branches + 1, n_branches), dtype=np.int64)
    for leaf in range(n_branches + 1):
        node = n_branches + leaf
        while node > 0:
            paths[leaf, (node - 1) // 2] = 1 if node % 2 else -1
            node = (node - 1) // 2
    return paths
