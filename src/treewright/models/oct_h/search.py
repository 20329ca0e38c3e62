"""Good OCT-H trees without branch and bound: several starts improved node by node, then trees that wander.

Starts are CART, trees of alternating optimization (TAO) and an oblique tree grown greedily, each improved by the driver
with directions of surrogates and exact thresholds. Surrogates do not count errors, and a node alone cannot undo what
two nodes do together; so the best tree then wanders along lines of hyperplanes, at all of its nodes in turn, for as
long as that pays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

import numpy as np

from treewright.core.arrays import FloatArray
from treewright.core.budget import Budget
from treewright.engine.cart import cart_tree
from treewright.engine.draws import draws_of
from treewright.engine.gap_trees import grown_gap_tree, improved_gap_tree
from treewright.engine.leaves import ClassLeaves
from treewright.engine.sparse_trees import improved_sparse_tree
from treewright.engine.starts import StartTask, random_tree, starting_tree
from treewright.models.oct_h.objective import OCTH
from treewright.models.oct_h.walk import wander
from treewright.optimize.incumbent import Incumbent
from treewright.optimize.settings import OCTHSearch
from treewright.splits.directions import widest_gap
from treewright.splits.gap_splits import GapPoints, bisector
from treewright.splits.points import Points
from treewright.tree import Tree, passing, relabelled
from treewright.tree.complete import Planes

__all__ = ["search_oct_h", "start_oct_h"]


def start_oct_h(best: Incumbent[Tree], model: OCTH, starts: Iterable[Tree], budget: Budget, seed: int = 0) -> None:
    """Offer what OCT-H branch and bound begins with: the given trees, a single leaf and, if there is time, CART."""
    _offered(best, model, starts, budget, seed)


def search_oct_h(
    best: Incumbent[Tree],
    model: OCTH,
    starts: Iterable[Tree],
    budget: Budget,
    seed: int = 0,
    search: OCTHSearch = OCTHSearch(),
) -> None:
    """Offer ever better OCT-H trees to `best`; a single leaf and the given starts in any case.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    >>> model = OCTH(X, np.array([0, 0, 1, 1]), np.ones(4), n_classes=2, depth=2)
    >>> best = Incumbent(model)
    >>> search_oct_h(best, model, [], Budget(10.0))
    >>> best.objective
    0.0
    """
    given = _offered(best, model, starts, budget, seed)
    work = _Search(best, model, budget, np.random.default_rng(seed), seed, search)
    for tree in chain(given, work.taught()):
        if work.over:
            return
        work.improve(model.repair(tree))
    work.wander()


def _offered(best: Incumbent[Tree], model: OCTH, starts: Iterable[Tree], budget: Budget, seed: int) -> list[Tree]:
    """Offer the given trees, a single leaf and CART; they are returned, the leaf last."""
    leaf, found = Tree.leaf(np.bincount(model.y, model.weight, model.n_classes), model.X.shape[1]), list(starts)
    for tree in [*found, leaf]:
        best.offer(tree)
    if not budget.over:
        # CART counts points, of which a leaf that is large enough has at least so many; the repair looks at rows.
        fewest = int(np.ceil(model.min_leaf / model.sizes.max()))
        weight = model.weight / model.weight.mean()
        found.append(cart_tree(model.X, model.y, weight, model.n_classes, model.depth, fewest, seed))
        best.offer(found[-1])
    return [*found, leaf]


@dataclass
class _Search:
    """A search under way."""

    best: Incumbent[Tree]
    model: OCTH
    budget: Budget
    rng: np.random.Generator
    seed: int
    search: OCTHSearch
    state: Tree | None = None
    value: float = field(default=np.inf)

    @property
    def over(self) -> bool:
        """Whether there is no time left, or nothing left to find."""
        return self.budget.over or self.best.proven

    @cached_property
    def points(self) -> GapPoints:
        """What splits of the driver part; tolerances are absolute there, so weights have mean 1."""
        model, unit = self.model, float(self.model.weight.mean())
        return GapPoints(
            model.X,
            model.y,
            model.weight / unit,
            model.n_classes,
            gap=model.margin,
            min_size=max(1.0, model.min_leaf),
            price=model.complexity * model.baseline / unit,
            size=model.sizes,
        )

    @cached_property
    def X(self) -> FloatArray:
        """Points in the order of memory that compiled code takes."""
        return np.ascontiguousarray(self.model.X, dtype=np.float64)

    # ------------------------------------------------------------------ starts

    def taught(self) -> Iterator[Tree]:
        """Trees of alternating optimization from balanced oblique ones."""
        model, weight = self.model, self.points.weight
        for alpha in self.search.tao_alphas:
            points, targets = Points(self.X), model.y[:, None].astype(np.float64)
            task = StartTask(points, targets, weight, model.depth, alpha, None, True, self.seed)
            start = starting_tree(task, "balanced", self.budget)
            leaves = ClassLeaves(model.y, weight, model.n_classes)
            yield improved_sparse_tree(start, self.X, leaves, alpha, budget=self.budget).tree

    def improve(self, tree: Tree) -> None:
        """Improve the splits a tree has, then grow the ones it lacks and improve again."""
        for growing in (False, True):
            if self.over:
                return
            tree = grown_gap_tree(tree, self.points, self.model.depth, self.budget) if growing else tree
            self.best.offer(tree)
            tree = improved_gap_tree(tree, self.points, self.budget)
            self.best.offer(tree)

    # ------------------------------------------------------------------ wandering

    def wander(self) -> None:
        """Let trees wander until many rounds find nothing better."""
        n = len(self.X)
        if n * self.model.tree.n_branches > self.search.most_values:
            return
        patience = int(np.clip(n // 3, self.search.least_patience, self.search.most_patience))
        rounds = last = 0
        while not self.over and rounds < patience + 3 * last:
            rounds += 1
            if self._round():
                last = rounds

    def _round(self) -> bool:
        """Let a tree wander; whether a better one came of it."""
        rng, model, settings = self.rng, self.model, self.search
        assert self.best.solution is not None
        steps = int(np.clip(settings.step_values / len(self.X), settings.least_steps, settings.most_steps))
        draw = rng.random()
        start = self.best.solution if self.state is None else self.state
        if draw < settings.fresh:
            start = random_tree(self.X, model.depth, rng, weight=model.weight)
            start, steps = relabelled(start, self.X, model.y, model.weight, model.n_classes), 3 * steps
        elif draw < settings.fresh + settings.kicked:
            start = self._kicked(start)
        before = self.best.objective
        tree, value, near, near_value = self._wandered(start, steps, 10.0 ** rng.uniform(*settings.heat))
        if value <= self.value:
            self.state, self.value = tree, value
        if value < before - 1e-9 and self.best.offer(tree):
            self.improve(self.best.solution)
        if near_value < self.best.objective - 1e-9:
            self.best.offer(self._widened(near))
        return self.best.objective < before - 1e-9

    def _kicked(self, tree: Tree) -> Tree:
        """The tree with another split at a random node: half-way between two of its points."""
        if tree.n_nodes == 1:
            return tree
        node = int(self.rng.choice(tree.branches))
        inside = np.flatnonzero(passing(tree, self.X, node))
        inside = inside if len(inside) > 1 else np.arange(len(self.X))
        weights, threshold = tree.weights.copy(), tree.threshold.copy()
        weights[node], threshold[node] = bisector(self.X, self.model.y, inside, self.rng)
        return Tree(tree.left, tree.right, weights, threshold, tree.values, tree.labels)

    def _wandered(self, tree: Tree, steps: int, heat: float) -> tuple[Tree, float, Tree, float]:
        """Let a tree wander: the best tree on its way and the best with gaps of any width, and their objectives."""
        model = self.model
        planes = Planes.from_tree(tree, model.depth, go_left=False)
        normals, offsets, labels = planes.omega.copy(), planes.gamma.copy(), np.maximum(planes.labels, 0)
        idle = np.flatnonzero(~normals.any(axis=1))
        normals[idle, self.rng.integers(normals.shape[1], size=len(idle))] = 1.0
        offsets[idle] = -1.0  # all points go right
        near = np.empty((len(offsets), normals.shape[1] + 1))
        unit = float(model.weight.mean())
        value, near_value = wander(
            self.X,
            model.y,
            model.weight,
            model.sizes,
            model.n_classes,
            model.margin,
            model.min_leaf,
            model.complexity * model.baseline,
            self.best.floor * model.baseline,
            normals,
            offsets,
            labels,
            near,
            steps,
            heat * unit,
            unit,
            draws_of(self.rng),
        )
        found = Planes(normals, offsets, labels).to_tree(model.n_classes)
        close = Planes(near[:, :-1].copy(), near[:, -1].copy(), labels).to_tree(model.n_classes)
        return found, value / model.baseline, close, near_value / model.baseline

    def _widened(self, tree: Tree) -> Tree:
        """The tree with its splits turned so that their gaps are as wide as they can be, points where they are."""
        weights, threshold = tree.weights.copy(), tree.threshold.copy()
        for node in tree.branches.tolist():
            inside = self.X[passing(tree, self.X, node)]
            left = inside @ tree.weights[node] <= tree.threshold[node]
            normal = widest_gap(inside, left, self.budget)
            if normal is not None:
                level = inside @ normal
                weights[node], threshold[node] = normal, (level[left].max() + level[~left].min()) / 2
        return Tree(tree.left, tree.right, weights, threshold, tree.values, tree.labels)
