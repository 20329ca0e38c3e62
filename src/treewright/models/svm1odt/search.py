"""Good SVM1-ODTs without branch and bound: several starts, improved node by node, then wandering trees.

Where a tree is improved node by node (:mod:`~treewright.engine.alternate`), each node takes the best split that is
found while all others stay. Two nodes that would have to move together do not, and points within a margin, which cost
more than errors, are walls. So trees also wander (:mod:`~.kernels`): a step moves the plane of a random node to the
best place along a line for losses multiplied at random, and what the step costs in truth is accepted or not, ever more
strictly. These steps are too small and too many for the driver, which looks at all points of a level to improve any of
its nodes, and never accepts a loss; the driver and a linear program a node finish what wandering begins.

Of some hundreds of points the places are searched as well (:mod:`~.crossing`), each with the best planes for it: where
trees without errors are many, norms and margins are all that is left to find, and wandering does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np
from joblib import Parallel, delayed

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.engine.alternate import Alternation
from treewright.engine.cart import cart_start
from treewright.engine.leaves import ClassLeaves
from treewright.engine.sparse_trees import improved_sparse_tree
from treewright.engine.starts import StartTask, random_tree, starting_tree
from treewright.models.svm1odt.completed import completed_heap_tree, largest_planes, with_plane
from treewright.models.svm1odt.crossing import Crossing, Root
from treewright.models.svm1odt.nodes import MarginNodes, margin_points
from treewright.models.svm1odt.objective import SVM1ODT
from treewright.models.svm1odt.walk import wander
from treewright.optimize.incumbent import Incumbent
from treewright.optimize.settings import SVM1ODTSearch
from treewright.splits.gap_splits import bisector
from treewright.splits.hinge_planes import MarginPoints
from treewright.splits.points import Points
from treewright.tree import Tree, passing, side, weighted_error

__all__ = ["search_svm1odt", "start_trees"]


def search_svm1odt(
    best: Incumbent[Tree],
    model: SVM1ODT,
    starts: Iterable[Tree],
    budget: Budget,
    seed: int = 0,
    threads: int = 1,
    search: SVM1ODTSearch = SVM1ODTSearch(),
) -> None:
    """Offer ever better SVM1-ODT trees to `best`; a single leaf and the given starts in any case.

    If `best` has a tree already, the search goes on from it and the given starts alone, and makes none itself. So many
    `threads` trees wander at a time, and what is found within a number of rounds depends on it. A search for a
    tree of more than two levels without one to go on from makes one for a level less first, and starts from that tree
    too.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    >>> model = SVM1ODT(X, np.array([0, 0, 1, 1]), np.ones(4), n_classes=2, depth=2)
    >>> best = Incumbent(model, floor=0.0)
    >>> search_svm1odt(best, model, [], Budget(30.0), search=SVM1ODTSearch(patience=3))
    >>> best.objective < 0.02
    True
    """
    again = best.solution
    given = list(starts)
    leaf = Tree.leaf(np.bincount(model.y, model.weight, model.n_classes), model.X.shape[1])
    for tree in [*given, leaf] if again is not None else [*given, leaf, _first_tree(model)]:
        best.offer(tree)
    if again is None and model.depth > 2:
        shallow = replace(model, depth=model.depth - 1)
        less, lower = Incumbent(shallow, best.floor), [tree for tree in given if tree.depth < model.depth]
        search_svm1odt(less, shallow, lower, budget.share(search.shallow_share), seed, threads, search)
        assert less.solution is not None
        best.offer(less.solution)
        given.append(less.solution)
    rng = np.random.default_rng([seed, 0 if again is None else 1])
    work = _Search(best, model, margin_points(model), budget, rng, threads, search)
    for tree in (
        chain(given, start_trees(model, budget, search.tao_alpha), [leaf]) if again is None else [again, *given]
    ):
        if work.over:
            return
        work.improve(tree)
    work.wander()


def _first_tree(model: SVM1ODT) -> Tree:
    """CART on a few rows, which takes no time: no search ends with less, whatever it spends its time on."""
    hasty = cart_start(
        model.X, model.y[:, None].astype(np.float64), model.weight, model.depth, True, 0, Budget(), _levels(model), True
    )
    assert hasty is not None
    return completed_heap_tree(hasty, model.depth, model.n_classes)


def start_trees(model: SVM1ODT, budget: Budget, tao_alpha: float) -> Iterator[Tree]:
    """Starts of an SVM1-ODT: CART, a balanced tree, and both alternated, whatever margins and norms cost.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    >>> model = SVM1ODT(X, np.array([0, 0, 1, 1]), np.ones(4), n_classes=2, depth=2)
    >>> len(list(start_trees(model, Budget(30.0), 0.3)))
    4
    """
    X, depth, n_levels = model.X, model.depth, _levels(model)
    weight = model.weight / model.weight.mean() if model.weight.any() else np.ones(len(X))
    classes = model.y[:, None].astype(np.float64)
    task = StartTask(Points(X, n_levels), classes, weight, depth, tao_alpha, None, classify=True, seed=0)
    grown = []
    for kind in ("cart", "balanced"):
        grown.append(completed_heap_tree(starting_tree(task, kind, budget), depth, model.n_classes))
        yield grown[-1]
    for tree in grown:
        if budget.over:
            return
        leaves = ClassLeaves(model.y, weight, model.n_classes)
        yield improved_sparse_tree(tree, X, leaves, tao_alpha, budget=budget, n_levels=n_levels).tree


def _levels(model: SVM1ODT) -> IntArray | None:
    """Levels of the categorical features as the driver takes them."""
    return model.levels if model.is_categorical.any() else None


@dataclass
class _Search:
    """What a search knows while it runs."""

    best: Incumbent[Tree]
    model: SVM1ODT
    points: MarginPoints
    budget: Budget
    rng: np.random.Generator
    threads: int
    search: SVM1ODTSearch
    state: Tree | None = None
    value: float = field(default=np.inf)
    crossing: Crossing | None = None
    roots: list[Root] = field(default_factory=list)
    pool: list[tuple[float, Tree]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if Crossing.suits(self.model):
            self.crossing = Crossing(self.model)
            self.roots = self.crossing.roots()

    @property
    def n_levels(self) -> IntArray | None:
        """Levels of the categorical features as the driver takes them."""
        return _levels(self.model)

    @property
    def over(self) -> bool:
        """Whether there is no time left, or nothing left to find."""
        return self.budget.over or self.best.proven

    def improve(self, tree: Tree, thorough: bool = True) -> Tree:
        """Improve a tree node by node and offer it; it becomes where trees wander from, if none was better."""
        model = self.model
        start = self._ready(tree)
        nodes = MarginNodes(model, self.points, int(self.rng.integers(2**31)), thorough)
        leaves = ClassLeaves(model.y, model.weight, model.n_classes)
        state = Alternation(start, model.X, leaves, nodes, n_levels=self.n_levels, toll=nodes.toll)
        for _ in range(self.search.passes):
            if self.over or not state.improve(self.budget):
                break
        found = state.tree()
        self.best.offer(found)
        if state.objective < self.value:
            self.state, self.value = found, state.objective
        return found

    # ------------------------------------------------------------------ wandering

    def wander(self) -> None:
        """Let trees wander, from the best one or from a new one, until none was better for long."""
        rounds = last = 0
        # Points change places the more seldom, the longer no better tree came of it, and never in a short search.
        wait, pause = self.search.before_crossing, 1
        faultless = False  # then the planes alone are left to improve, and there wandering is the weaker way
        with Parallel(n_jobs=self.threads, backend="threading") as parallel:
            while not self.over and rounds < self.search.patience + 3 * last:
                jobs = [self._job() for _ in range(0 if faultless and rounds % 4 else self.threads)]
                rounds += self.threads
                found = parallel(delayed(self._wander)(*job) for job in jobs)
                for tree, value in found:
                    last = rounds if self._noted(tree, value) else last
                wait -= 1
                if self.crossing is not None and wait <= 0 and not self.over:
                    better = self._noted(*self._crossed(self.crossing))
                    last = rounds if better else last
                    faultless = self._faultless()
                    pause = 1 if better or faultless or self.roots else min(2 * pause, self.search.most_pause)
                    wait = pause

    def _faultless(self) -> bool:
        """Whether the best tree makes no errors but those that none avoids."""
        tree, model = self.best.solution, self.model
        return tree is not None and weighted_error(tree, model.X, model.y, model.weight) <= self.best.floor + 1e-9

    def _noted(self, tree: Tree, value: float) -> bool:
        """Offer and improve a tree that seems better than the best one; whether one was.

        What it is worth is known once it is repaired: a claim alone must not make a search go on.
        """
        before = self.best.objective
        least = 1e-7 * max(1.0, before)
        if value < before - least:
            self.best.offer(tree)
            self.improve(tree)
            return self.best.objective < before - least
        if value < self.value:
            self.state, self.value = tree, value
        return False

    def _job(self) -> tuple[Tree, int, float, float, int]:
        """Where a tree begins to wander, how many steps it takes, how hot, how cheap margins are, and its seed."""
        rng, model, settings = self.rng, self.model, self.search
        steps = int(np.clip(settings.step_values / len(model.X), settings.least_steps, settings.most_steps))
        heat = float(np.median(model.weight)) * 10.0 ** rng.uniform(*settings.heat)
        cheap, seed, draw = 10.0 ** rng.uniform(*settings.cheap), int(rng.integers(2**31)), rng.random()
        if self.state is None or draw < settings.fresh:
            return self._fresh(), 3 * steps, heat, cheap, seed
        start = self._kicked(self.state) if draw < settings.fresh + settings.kicked else self.state
        return start, steps, heat, cheap, seed

    def _crossed(self, crossing: Crossing) -> tuple[Tree, float]:
        """Let points change places, in the best tree or in one fitted to places; the best tree, and its objective."""
        rng, model, tree, settings = self.rng, self.model, self.best.solution, self.search
        steps = int(
            np.clip(settings.cross_values / crossing.table.size, settings.fewest_crossings, settings.most_crossings)
        )
        if tree is None or rng.random() < settings.crossed_new:
            blank = completed_heap_tree(
                Tree.leaf(np.ones(model.n_classes), model.X.shape[1]), model.depth, model.n_classes
            )
            for _ in range(settings.settled):
                if self.budget.over:
                    break
                root = self._root(crossing)
                if root is None:
                    found, value = crossing.settle(self._fresh(), self._labels(), self.budget)
                else:
                    found, value = crossing.rooted(blank, root, self.budget)
                if np.isfinite(value):
                    self.pool.append((value, found))
            self.pool = sorted(self.pool, key=lambda kept: kept[0])[: settings.kept]
            tree = self.pool.pop(0)[1] if self.pool else tree
        if tree is None:
            return self._fresh(), np.inf
        start = completed_heap_tree(tree, model.depth, model.n_classes)
        return crossing.cross(start, rng, steps, 10.0 ** rng.uniform(*settings.warm), self.budget)

    def _root(self, crossing: Crossing) -> Root | None:
        """A root for a new tree: by one feature as long as there are such, then sparse, or from below; None for any."""
        rng = self.rng
        if self.roots:
            return self.roots.pop(0)
        if rng.random() >= self.search.crossed_sparse:
            return None
        known = [tree for _, tree in self.pool[:4]] + [self.best.solution] * 4
        tree = known[rng.integers(len(known))]
        return crossing.random_root(rng) if tree is None or rng.random() < 0.5 else crossing.promoted(tree, rng)

    def _labels(self) -> IntArray:
        """Labels of leaves, drawn so that as many classes as possible have one."""
        n_leaves, n_classes = 2**self.model.depth, self.model.n_classes
        share = np.bincount(self.model.y, self.model.weight, n_classes)
        if n_classes > n_leaves and np.count_nonzero(share) >= n_leaves:
            return self.rng.choice(n_classes, n_leaves, replace=False, p=share / share.sum())
        return self.rng.permutation(np.resize(self.rng.permutation(n_classes), n_leaves))

    def _fresh(self) -> Tree:
        """A complete tree of random splits."""
        model = self.model
        return self._ready(random_tree(model.X, model.depth, self.rng, weight=model.weight, n_levels=self.n_levels))

    def _kicked(self, tree: Tree) -> Tree:
        """The tree with another plane at a random node: half-way between two of its points of different classes."""
        node = int(self.rng.choice(tree.branches))
        inside = np.flatnonzero(passing(tree, self.model.X, node))
        if len(inside) < 2:
            inside = np.arange(len(self.model.X))
        return self._ready(with_plane(tree, node, *bisector(self.points.filled, self.model.y, inside, self.rng)))

    def _ready(self, tree: Tree) -> Tree:
        """A tree completed, its planes as long as they may be."""
        model = self.model
        return largest_planes(completed_heap_tree(tree, model.depth, model.n_classes), model.X, model.max_coefficient)

    def _wander(self, tree: Tree, steps: int, heat: float, cheap: float, seed: int) -> tuple[Tree, float]:
        """Let a complete tree wander; the best tree on its way, and its objective."""
        model, points = self.model, self.points
        planes = tree.branches[tree.category[tree.branches] < 0]
        free = np.flatnonzero(points.usable & ~np.isnan(model.X).any(axis=0))
        if not len(planes) or not len(free):
            return tree, np.inf
        normals, offsets = tree.weights[tree.branches].copy(), tree.threshold[tree.branches].copy()
        assert tree.labels is not None
        labels = tree.labels[tree.leaves].copy()
        price = points.price
        if model.hard:
            price = np.full(len(price), (1.0 + 2.0 * model.weight.sum()) / model.margin)
        value = wander(
            points.filled,
            model.y,
            model.weight,
            price,
            model.n_classes,
            model.epsilon,
            points.least,
            model.alpha_2,
            model.max_coefficient,
            free,
            planes,
            self._values(tree),
            normals,
            offsets,
            labels,
            steps,
            heat,
            cheap,
            seed,
        )
        return _with_planes(tree, normals, offsets, labels), float(value)

    def _values(self, tree: Tree) -> FloatArray:
        """Values of all points at all branches; 2 and -2 for the sides of points that have none."""
        model = self.model
        found = np.empty((len(model.X), len(tree.branches)))
        for node in tree.branches.tolist():
            if tree.category[node] >= 0:
                found[:, node] = np.where(side(tree, model.X, node), 2.0, -2.0)
                continue
            used = np.flatnonzero(tree.weights[node])
            value = tree.threshold[node] - model.X[:, used] @ tree.weights[node, used]
            aside = 2.0 if tree.missing_left[node] else -2.0
            found[:, node] = np.where(np.isnan(value), aside, np.clip(value, -1.0, 1.0))
        return found


def _with_planes(tree: Tree, normals: FloatArray, offsets: FloatArray, labels: IntArray) -> Tree:
    """A complete tree with other planes and labels of leaves."""
    weights, threshold, all_labels = tree.weights.copy(), tree.threshold.copy(), np.array(tree.labels)
    n = len(offsets)
    weights[:n], threshold[:n], all_labels[n:] = normals, offsets, labels
    return replace(tree, weights=weights, threshold=threshold, labels=all_labels)
