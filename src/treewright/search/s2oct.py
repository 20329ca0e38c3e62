r"""Search for S2OCT: trees without labelled error whose predictions meet the totals, many of them.

With the nodes above fixed, the hyperplanes of a node that keep every labelled point on its side form a polytope. Along
a segment inside it points change sides one at a time, so the counts change one row at a time: between a hyperplane
that gives too few of a class and one that gives too many there is one that gives the exact count, found by sorting.
An attempt therefore has three steps:

1. a tree on the labelled points, together with unlabelled ones labelled by a guide;
2. one linear program a node: labelled points on their sides with margin 1, guided points as far as possible;
3. moves along segments toward extreme hyperplanes until the totals are met (:mod:`treewright.search.totals`); where
   unlabelled points need a margin of 1, hyperplanes then look for room (:mod:`treewright.search.margins`).

Where the labelled points cannot all be right, step 2 minimizes their hinge errors instead, which for fixed leaves is
one linear program a node, and step 3 weighs error against deviation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from joblib import Parallel, delayed

from treewright.budget import Budget
from treewright.formulations import S2OCT
from treewright.formulations.fragments import CompleteTree
from treewright.program import FloatArray, IntArray
from treewright.search.alternating import alternate
from treewright.search.greedy import cart_tree, grow
from treewright.search.guides import Guide
from treewright.search.hyperplane import logistic_direction
from treewright.search.incumbent import Incumbent
from treewright.search.margins import settled
from treewright.search.planes import Planes, labels_on_either_side, leaves_reached, passes, planes_errors
from treewright.search.separator import separate
from treewright.search.totals import Moves
from treewright.tree import Tree, predict_labels

__all__ = ["Pool", "search_s2oct"]

_LP_POINTS = 3000
"""Labelled points in a linear program; more are taken by sample."""
_GUIDED_POINTS = 250
"""Guided points in a linear program."""
_ROUNDS = 6
"""How often an attempt that misses the totals is guided anew."""
_PROVEN_ATTEMPTS = 24
"""Attempts after which a proven optimum is enough, however few trees there are to choose from."""
_SMALL_CELLS = 5000
"""Non-zeros up to which branch and bound is soon through, so that a search should not keep it waiting."""
_IDLE_ATTEMPTS = 10
"""Attempts without improvement after which the search then ends."""
_GUIDANCE = (1.0, 0.3, 0.1, 0.0)
"""Weight of all guided points, relative to all labelled ones, in turn."""


@dataclass
class Pool:
    """Equally good trees, with the labels that each gives to the unlabelled points.

    Attributes
    ----------
    objective : float
        Objective of all of them.
    trees : list of Tree
        The trees.
    labels : list of ndarray
        Their labels of the unlabelled points.
    guide : ndarray or None
        Labels that the guide gives.
    """

    objective: float = np.inf
    trees: list[Tree] = field(default_factory=list)
    labels: list[IntArray] = field(default_factory=list)
    guide: IntArray | None = None

    def add(self, model: S2OCT, tree: Tree) -> None:
        """Add a feasible tree if it is as good as the others; a better one drops them."""
        objective = model.objective(tree)
        tolerance = 1e-6 * max(1.0, abs(objective))
        if objective > self.objective + tolerance:
            return
        if objective < self.objective - tolerance:
            self.trees, self.labels = [], []
        self.objective = min(objective, self.objective)
        self.trees.append(tree)
        self.labels.append(predict_labels(tree, model.X[model.y < 0]))


def search_s2oct(
    best: Incumbent[Tree],
    model: S2OCT,
    starts: Iterable[Tree],
    budget: Budget,
    seed: int = 0,
    samples: int = 20,
    attempts: int = 300,
    n_jobs: int = 1,
    guided: bool = True,
) -> Pool:
    """Offer trees to `best` and collect the best ones.

    Parameters
    ----------
    best : Incumbent
        Collects the trees.
    model : S2OCT
        The model.
    starts : iterable of Tree
        Trees to begin with, in the units of the model.
    budget : Budget
        Ends the search early; a CART tree and the given starts are offered whatever it says.
    seed : int
        Seed of guides and attempts.
    samples : int
        Number of proven optimal trees after which the search ends.
    attempts : int
        Number of attempts after which it ends without proof.
    n_jobs : int
        Processes that make attempts.
    guided : bool
        Whether to search at all; otherwise only the starts and CART are offered.

    Returns
    -------
    Pool
        The best trees found.
    """
    pool = Pool()
    known = model.y >= 0

    def offer(tree: Tree) -> None:
        feasible = model.repair(tree)
        best.offer(feasible)
        pool.add(model, feasible)

    for tree in starts:
        offer(tree)
    X, y, weight = model.X[known], model.y[known], model.weight[known]
    offer(cart_tree(X, y, weight, model.n_classes, model.depth))
    if budget.over or not guided:
        return pool
    guide = Guide(model.X, model.y, model.weight, model.size[~known], model.low, model.high, seed, budget.share(0.3))
    pool.guide = guide.labels()
    attempt = _Attempt(model, budget)
    if model.n_classes == 2 and len(np.unique(y)) == 2:
        offer(attempt.linear().to_tree(model.n_classes))
    rng = np.random.default_rng(seed)
    few = _PROVEN_ATTEMPTS if model.margin == "tolerance" else _PROVEN_ATTEMPTS // 2
    batch = max(1, n_jobs)
    improved, small = 0, model.program_cells <= _SMALL_CELLS
    for first in range(0, attempts, batch):
        before = best.objective
        numbers = range(first, min(attempts, first + batch))
        tasks = [_task(guide, k, seed, rng) for k in numbers]
        if n_jobs == 1:
            made = [attempt.make(*task) for task in tasks]
        else:
            made = Parallel(n_jobs=n_jobs)(delayed(_make)(model, budget.remaining, task) for task in tasks)
        for planes in made:
            offer(planes.to_tree(model.n_classes))
        enough = len(pool.trees) >= samples or first + batch >= few
        improved = first if best.objective < before else improved
        if budget.over or (best.proven and enough) or (small and first - improved >= _IDLE_ATTEMPTS):
            break
    return pool


_Task = tuple[IntArray, float, bool, int]
"""Guided labels, weight of the guide, whether to begin with a random root, seed."""


def _task(guide: Guide, number: int, seed: int, rng: np.random.Generator) -> _Task:
    """What attempt `number` is to do: the first follows the guide, later ones vary."""
    guided = guide.varied(rng) if number else guide.labels()
    return guided, _GUIDANCE[number // 2 % len(_GUIDANCE)], number % 2 == 1, seed + number


def _make(model: S2OCT, seconds: float, task: _Task) -> Planes:
    """An attempt in another process."""
    return _Attempt(model, Budget(seconds if np.isfinite(seconds) else None)).make(*task)


class _Attempt:
    """Makes one tree from guided labels; see the three steps above."""

    def __init__(self, model: S2OCT, budget: Budget) -> None:
        self.model, self.budget = model, budget
        known = model.y >= 0
        self.X, self.y, self.weight = model.X[known], model.y[known], model.weight[known]
        self.hidden = model.X[~known]
        low, high = model.X.min(axis=0), model.X.max(axis=0)
        self.low, self.width = low, np.where(high > low, high - low, 1.0)
        # Two margins of 1 under |omega_j| <= s, for a typical normal in coordinates of [0, 1].
        self.gap = 2.0 / (model.bound * self.width.mean() * np.sqrt(len(low)))

    def make(self, guided: IntArray, guidance: float, random_root: bool, seed: int) -> Planes:
        """Make a tree; where time runs out, one that is less improved."""
        rng = np.random.default_rng(seed)
        # Margins of 1 for all points leave little room: fewer and higher nodes find it more often.
        roomy = self.model.margin != "tolerance"
        depth = min(2, self.model.depth) if roomy and seed % 4 else self.model.depth
        planes = self._structure(guided, guidance, random_root, depth, rng)
        planes = self._separated(planes, guided, rng)
        if roomy and seed % 3:
            planes = self._simplified(planes, guided, rng, single=seed % 3 == 1)
        moves = Moves(self.model, rng, self.budget)
        planes = self._shrunk(planes)
        best, least = planes, np.inf
        for _ in range(_ROUNDS):
            if self.budget.over:
                break
            planes = moves.meet_totals(planes)
            deviation = moves.deviation(planes)
            cost, _ = moves.cost(planes, deviation)
            if cost < least:
                best, least = planes, cost
            if deviation == 0:
                break
            # The guide is now what mends the totals with the smallest changes; all nodes try to follow.
            planes = self._separated(planes, moves.mended_labels(planes), rng)
        return self._feasible(best, moves)

    def linear(self) -> Planes:
        """A single hyperplane, that of logistic regression, moved to the totals: hard to beat on large noisy data."""
        X = (self.X - self.low) / self.width
        normal = logistic_direction(X, self.y == 0, self.weight, strength=1.0) / self.width
        planes, node = self._single(normal)
        moves = Moves(self.model, np.random.default_rng(0), self.budget)
        return self._shrunk(moves.shifted(planes, node))

    def _simplified(self, planes: Planes, guided: IntArray, rng: np.random.Generator, single: bool) -> Planes:
        """Fewer hyperplanes that part the labelled points as well: each one has to find room between all points."""
        if single and self.model.n_classes == 2:
            X = (np.vstack([self.X, self.hidden]) - self.low) / self.width
            label = np.concatenate([self.y, guided])
            normal = logistic_direction(X, label == 0, np.ones(len(X)), strength=1.0) / self.width
            alone = self._separated(self._single(normal)[0], guided, rng)
            if planes_errors(alone, self.X, self.y)[0].max(initial=0.0) <= 1e-6:
                return alone
        for node in range(len(planes.gamma) - 1, -1, -1):
            at_node, left = passes(planes_errors(planes, self.X, self.y)[1], node, planes.shape)
            if left[at_node].all() or not left[at_node].any():
                way = 1.0 if left[at_node].all() else -1.0
                planes = planes.replaced(node, np.zeros(planes.omega.shape[1]), way)
        return planes

    def _single(self, normal: FloatArray) -> tuple[Planes, int]:
        """One hyperplane, at the first of the lowest nodes, and that node; the nodes above send everything to it."""
        shape = CompleteTree(self.model.depth)
        omega, gamma = np.zeros((shape.n_branches, len(normal))), np.ones(shape.n_branches)
        lowest = shape.n_leaves // 2 - 1
        omega[lowest], gamma[lowest] = normal, float(np.median(self.X @ normal))
        return self._stretched(Planes(omega, gamma, np.arange(shape.n_leaves) % 2)), lowest

    def _feasible(self, planes: Planes, moves: Moves) -> Planes:
        """Give unlabelled points their margins; where that moves rows over a split, meet the totals again."""
        if self.model.margin != "tolerance":
            return settled(moves, planes)
        best, least = planes, np.inf
        for _ in range(_ROUNDS):
            planes = moves.widened(planes)
            tree = self.model.repair(planes.to_tree(self.model.n_classes))
            objective = self.model.objective(tree)
            if objective >= least:
                break
            best, least = Planes.from_tree(tree, self.model.depth, self.model.n_classes), objective
            if objective <= 1e-9 or self.budget.over:
                break
            planes = moves.meet_totals(best)
        return best

    def _structure(
        self, guided: IntArray, guidance: float, random_root: bool, depth: int, rng: np.random.Generator
    ) -> Planes:
        """A tree on labelled and guided points, in coordinates of [0, 1]."""
        n_guided = min(_GUIDED_POINTS, len(self.hidden)) if guidance > 0 else 0
        chosen = np.sort(rng.choice(len(self.hidden), n_guided, replace=False))
        X = (np.vstack([self.X, self.hidden[chosen]]) - self.low) / self.width
        y = np.concatenate([self.y, guided[chosen]])
        share = guidance * self.weight.sum() / max(1, n_guided)
        weight = np.concatenate([self.weight, np.full(n_guided, share)])
        start = Tree.leaf(np.bincount(y, weight, self.model.n_classes), X.shape[1])
        if random_root:
            start = self._random_root(X, y, start, rng)
        tree = grow(start, X, y, weight, depth, gap=self.gap, budget=self.budget)
        tree = alternate(tree, X, y, weight, gap=self.gap, rounds=2, budget=self.budget)
        tree = tree.unscaled(1.0 / self.width, self.low)
        return self._stretched(Planes.from_tree(tree, self.model.depth, self.model.n_classes))

    def _random_root(self, X: FloatArray, y: IntArray, leaf: Tree, rng: np.random.Generator) -> Tree:
        """A split half-way between two labelled points drawn at random, of different classes if there are any."""
        first = int(rng.integers(len(self.X)))
        others = np.flatnonzero(self.y != self.y[first])
        second = int(rng.choice(others)) if len(others) else int(rng.integers(len(self.X)))
        normal = X[second] - X[first]
        if not np.any(normal):
            return leaf
        threshold = normal @ (X[first] + rng.uniform(0.2, 0.8) * normal)
        left = X @ normal <= threshold
        by_side = [np.bincount(y[side], minlength=self.model.n_classes) for side in (left, ~left)]
        return Tree.stump(normal, float(threshold), by_side)

    def _stretched(self, planes: Planes) -> Planes:
        """Multiply each hyperplane until its largest weight is s."""
        largest = np.abs(planes.omega).max(axis=1)
        factor = np.where(largest > 0, self.model.bound / np.where(largest > 0, largest, 1.0), 1.0)
        return Planes(planes.omega * factor[:, None], planes.gamma * factor, planes.labels)

    def _shrunk(self, planes: Planes) -> Planes:
        """Scale hyperplanes down where that lowers the labelled error, which grows with the scale."""
        error, _ = planes_errors(planes, self.X, self.y)
        least = float(self.weight @ error)
        required = self.model.tolerance if self.model.margin == "tolerance" else 1.0
        for node in range(len(planes.gamma)) if least > 1e-6 else ():
            start, values = planes, planes.values(self.hidden)
            here = passes(leaves_reached(values), node, planes.shape)[0] | (self.model.margin == "paper")
            smallest = required / max(np.abs(values[here, node]).min(initial=np.inf), 1e-300)
            for factor in np.unique(np.clip(0.5 ** np.arange(16.0), smallest, None)):
                smaller = start.replaced(node, start.omega[node] * factor, start.gamma[node] * factor)
                cost = float(self.weight @ planes_errors(smaller, self.X, self.y)[0])
                if factor < 1.0 and cost < least:
                    planes, least = smaller, cost
        return planes

    def _separated(self, planes: Planes, guided: IntArray, rng: np.random.Generator) -> Planes:
        """Linear programs at the nodes, lowest first; three rounds, fewer where labelled points stay wrong."""
        for _ in range(3):
            error, leaf = planes_errors(planes, self.X, self.y)
            for node in range(len(planes.gamma) - 1, -1, -1):
                if self.budget.over:
                    return planes
                planes = self._separated_node(planes, node, leaf, guided, rng)
            after, _ = planes_errors(planes, self.X, self.y)
            if after.max(initial=0.0) > 1e-6 and after.sum() >= error.sum() * 0.999:
                break
        return planes

    def _separated_node(
        self, planes: Planes, node: int, leaf: IntArray, guided: IntArray, rng: np.random.Generator
    ) -> Planes:
        """Hyperplane of a node by linear program: labelled points hard if they can be, guided points soft."""
        here, left = passes(leaf, node, planes.shape)
        X, side = self.X[here], np.where(left[here], -1.0, 1.0)
        if not len(X) or (not np.any(planes.omega[node]) and np.ptp(side) == 0):
            return planes
        weight = self.weight[here]
        if len(X) > _LP_POINTS:
            sample = rng.choice(len(X), _LP_POINTS, replace=False)
            X, side, weight = X[sample], side[sample], weight[sample]
        values = planes.values(self.hidden)
        inside = np.flatnonzero(passes(leaves_reached(values), node, planes.shape)[0])
        inside, wish = self._wishes(planes, node, values, inside, guided)
        if len(inside) > _GUIDED_POINTS:
            sample = rng.choice(len(inside), _GUIDED_POINTS, replace=False)
            inside, wish = inside[sample], wish[sample]
        few = np.full(len(inside), 1.0)
        found = separate(X, side, self.hidden[inside], wish, few, self.model.bound, seconds=self.budget.remaining)
        if found is None:
            soft = np.vstack([X, self.hidden[inside]])
            # The labelled error is what counts; guided points only choose among equals.
            price = np.concatenate([weight, 1e-3 * few * weight.mean()])
            found = separate(
                X[:0],
                side[:0],
                soft,
                np.concatenate([side, wish]),
                price,
                self.model.bound,
                seconds=self.budget.remaining,
            )
        return planes if found is None else planes.replaced(node, *found)

    def _wishes(
        self, planes: Planes, node: int, values: FloatArray, inside: IntArray, guided: IntArray
    ) -> tuple[IntArray, FloatArray]:
        """Points that the guide wants on a side of the node, and the side: where their label would come out right."""
        if_left, if_right = labels_on_either_side(planes, node, values[inside])
        right_left, right_right = if_left == guided[inside], if_right == guided[inside]
        caring = right_left != right_right
        return inside[caring], np.where(right_left[caring], -1.0, 1.0)
