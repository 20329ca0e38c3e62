r"""Search for S2OCT: trees without labelled error whose predictions meet the totals, many of them.

With the nodes above fixed, the hyperplanes of a node that keep every labelled point on its side form a polytope. Along
a segment inside it points change sides one at a time, so the counts change one row at a time: between a hyperplane
that gives too few of a class and one that gives too many there is one that gives the exact count, found by sorting.
The search begins with trees that a teacher taught (:mod:`treewright.models.s2oct.search.taught`): what the teacher says
is kept wherever labels and totals allow it, and of equally good trees the one that agrees most with it is the most
accurate. Where no taught tree has an objective that is proven to be the least, further attempts follow, in three steps:

1. a tree on the labelled points, together with unlabelled ones labelled by a guide
   (:mod:`treewright.models.s2oct.search.structure`);
2. one linear program a node: labelled points on their sides with margin 1, guided points as far as possible
   (:mod:`treewright.models.s2oct.search.structure`);
3. moves along segments toward extreme hyperplanes until the totals are met
(:mod:`treewright.models.s2oct.search.moves`);
   where unlabelled points need a margin of 1, hyperplanes then look for room
   (:mod:`treewright.models.s2oct.search.margins`).

Where the labelled points cannot all be right, step 2 minimizes their hinge errors instead, which for fixed leaves is
one linear program a node, and step 3 weighs error against deviation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from joblib import Parallel, delayed

from treewright.core.arrays import IntArray
from treewright.core.budget import Budget
from treewright.engine.cart import cart_tree
from treewright.models.s2oct.objective import S2OCT
from treewright.models.s2oct.search.choice import TreePool
from treewright.models.s2oct.search.data import Survey
from treewright.models.s2oct.search.labelled_sides import right_planes, widened_planes
from treewright.models.s2oct.search.levelling import Levelling
from treewright.models.s2oct.search.margins import planes_with_room
from treewright.models.s2oct.search.moves import Moves, shrunk_planes
from treewright.models.s2oct.search.one_feature import axis_trees
from treewright.models.s2oct.search.priced import OWN, priced_trees
from treewright.models.s2oct.search.structure import (
    grown_planes,
    logistic_planes,
    separated_planes,
    simplified_planes,
)
from treewright.models.s2oct.search.taught import TaughtSettings, taught_planes
from treewright.optimize.incumbent import Incumbent
from treewright.optimize.settings import S2OCTSearch
from treewright.teachers.points import TeacherPoints
from treewright.teachers.teacher import Teacher
from treewright.tree import Tree
from treewright.tree.complete import Planes

__all__ = ["TeacherMaker", "search_s2oct"]

TeacherMaker = Callable[[TeacherPoints, Budget], Teacher]
"""Makes a teacher of points in the units of the model."""

_MANNERS = (
    TaughtSettings(own=10.0, price=0.2),
    TaughtSettings(own=3.0, price=0.2, raises=4),
    TaughtSettings(own=10.0, price=0.05),
    TaughtSettings(own=3.0, price=0.05, raises=4),
    TaughtSettings(own=30.0, price=1.0, raises=2),
    TaughtSettings(own=3.0, price=1.0),
)
"""Ways in which trees are taught, in turn."""
_GUIDANCE = (1.0, 0.3, 0.1, 0.0)
"""Weight of all guided points, relative to all labelled ones, in turn."""


def search_s2oct(
    best: Incumbent[Tree],
    model: S2OCT,
    starts: Iterable[Tree],
    budget: Budget,
    make_teacher: TeacherMaker | None,
    seed: int = 0,
    samples: int = 1,
    attempts: int = 300,
    n_jobs: int = 1,
    search: S2OCTSearch = S2OCTSearch(),
) -> TreePool:
    """Offer S2OCT trees to `best` and collect the best ones.

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
    make_teacher : callable or None
        Makes the teacher; without one only the starts and CART are offered.
    seed : int
        Seed of attempts.
    samples : int
        Number of proven optimal trees that are wanted.
    attempts : int
        Number of attempts after which it ends without proof.
    n_jobs : int
        Processes that make attempts.
    search : S2OCTSearch
        How much is done.

    Returns
    -------
    Pool
        The best trees found.
    """
    offers, survey = _Offers(best, model, TreePool()), Survey(model, search)
    for tree in starts:
        offers.add(tree)
    offers.add(cart_tree(survey.X, survey.y, survey.weight, model.n_classes, model.depth))
    if make_teacher is not None and not budget.over:
        offers.add(Tree.leaf(np.bincount(survey.y, survey.weight, model.n_classes), survey.X.shape[1]))
        if len(model.present) > 1 and not model.restricted:
            for planes in _linear(survey, budget.share(0.3)):
                offers.add(planes.to_tree(model.n_classes))
        teacher = make_teacher(survey.teacher_points, budget.share(0.3))
        offers.pool.teacher, offers.pool.taught = teacher, teacher.labels()
        for tree in starts:
            given, rng = survey.stretched(survey.completed(tree)), np.random.default_rng(seed)
            offers.add_planes(right_planes(survey, given, offers.pool.taught, rng, budget))
        run = _Run(offers, survey, teacher, budget, seed, samples, n_jobs)
        known = model.max_split_features == 1 and run.one_feature()
        if model.margin_rule == "tolerance" and not known:
            run.taught()
        if not model.restricted and not (best.proven and model.margin_rule == "tolerance"):
            run.guided(attempts)
    return offers.pool


@dataclass
class _Offers:
    """Where trees go: the best one, and all that are as good."""

    best: Incumbent[Tree]
    model: S2OCT
    pool: TreePool

    def add_planes(self, planes: Planes) -> None:
        """Repair the tree of some planes and offer it."""
        self.add(planes.to_tree(self.model.n_classes))

    def add(self, tree: Tree) -> None:
        """Repair a tree and offer it."""
        feasible = self.model.repair(tree)
        objective = self.model.objective(feasible)
        self.best.take(feasible, objective)
        self.pool.add(self.model, feasible, objective)


@dataclass
class _Run:
    """Attempts one after the other, or several at a time in other processes."""

    offers: _Offers
    survey: Survey
    teacher: Teacher
    budget: Budget
    seed: int
    samples: int
    n_jobs: int

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    def one_feature(self) -> bool:
        """Look at all trees of two levels with one feature a split; whether nothing is left to be found."""
        survey, offers = self.survey, self.offers
        assert offers.pool.taught is not None
        if self.budget.over:
            return False
        for planes in self._priced(offers.pool.taught, self.budget.share(survey.search.priced_share)):
            offers.add_planes(planes)
        all_depths = survey.model.depth <= 2
        share = survey.search.all_share if all_depths else survey.search.all_share_deeper
        found = axis_trees(survey, offers.pool.taught, self.budget.share(share))
        if found is None:
            return False
        if found.none and all_depths:
            weight = survey.weight[survey.weight > 0]
            offers.best.raise_floor(float(min(weight.min(initial=np.inf), survey.model.penalty)))
        if found.tree is not None:
            offers.add(found.tree)
        return all_depths and found.tree is not None and offers.best.proven and self.samples == 1

    def _priced(self, taught: IntArray, budget: Budget) -> Iterator[Planes]:
        """Trees that are best at prices of classes, levelled; labels that they have wrong stay so, but cost less."""
        survey = self.survey
        worth = np.concatenate([OWN * survey.weight / max(survey.weight.mean(), 1e-300), survey.totals.rows])
        for tree in priced_trees(survey, taught, self.seed, budget):
            planes = survey.stretched(survey.completed(tree))
            levelling = Levelling(survey, taught, worth, np.random.default_rng(self.seed), budget, most=1)
            yield shrunk_planes(survey, levelling.level(planes), budget)

    def taught(self) -> None:
        """TeacherMaker trees until more of them are no better: objective first, then agreement with the teacher."""
        offers, best, search, idle = self.offers, self.offers.best, self.survey.search, 0
        batch = max(1, self.n_jobs)
        for first in range(0, search.taught_attempts, batch):
            if self.budget.over:
                return
            before = offers.pool.place
            self._make([self._taught_task(k) for k in range(first, first + batch)])
            idle = 0 if offers.pool.place < before else idle + batch
            enough = len(offers.pool.trees) >= self.samples or first + batch >= search.proven_attempts
            if idle >= (search.idle_taught if best.proven else search.idle_unproven) and (enough or not best.proven):
                return

    def guided(self, attempts: int) -> None:
        """Make attempts until there are enough trees that are proven to be optimal, or more of them do not help."""
        best, model, search = self.offers.best, self.survey.model, self.survey.search
        few = search.proven_attempts if model.margin_rule == "tolerance" else search.proven_attempts // 2
        idle = search.idle_attempts if model.program_cells <= search.small_cells else search.idle_large
        batch, improved = max(1, self.n_jobs), 0
        for first in range(0, attempts, batch):
            if self.budget.over:
                return
            before = best.objective
            self._make([self._task(k) for k in range(first, min(attempts, first + batch))])
            enough = len(self.offers.pool.trees) >= self.samples or first + batch >= few
            improved = first if best.objective < before else improved
            if (best.proven and enough) or first - improved >= idle:
                return

    def _make(self, tasks: list[_Task | _TaughtTask]) -> None:
        if self.n_jobs == 1:
            made = [task.made(self.survey, self.budget) for task in tasks]
        else:
            left, model, search = self.budget.remaining, self.survey.model, self.survey.search
            made = Parallel(n_jobs=self.n_jobs)(delayed(_made_elsewhere)(model, search, task, left) for task in tasks)
        for planes in made:
            self.offers.add_planes(planes)

    def _taught_task(self, number: int) -> _TaughtTask:
        """What the teacher says at first, in all manners; then variations of it."""
        own = number < len(_MANNERS)
        # What is varied need not be kept at all costs: the shortest way to the totals is as good, and soon done.
        most, kicks = self.survey.model.max_split_features, self.survey.search.taught_kicks if own else 0
        settings = replace(_MANNERS[number % len(_MANNERS)], most=most, gentle=own, kicks=kicks)
        taught = self.offers.pool.taught if own else self.teacher.varied(self.rng)
        assert taught is not None
        return _TaughtTask(taught, settings, self.seed + number)

    def _task(self, number: int) -> _Task:
        """What attempt `number` is to do: the first follows the teacher, later ones vary."""
        return _Task(
            guided=self.teacher.varied(self.rng) if number else self.teacher.labels(),
            guidance=_GUIDANCE[number // 2 % len(_GUIDANCE)],
            random_root=number % 2 == 1,
            shallow=number % 4 > 0,
            simplify=number % 3 > 0,
            alone=number % 3 == 1,
            seed=self.seed + number,
        )


def _linear(survey: Survey, budget: Budget) -> Iterator[Planes]:
    """Hyperplanes of logistic regressions, moved to the totals; more of them where there is time."""
    planes, nodes = logistic_planes(survey, budget)
    moves = Moves(survey, np.random.default_rng(0), budget)
    moved = planes
    for node in nodes:
        if not budget.over:
            moved = moves.shifted(moved, node)
    yield shrunk_planes(survey, moved, budget)
    # Leaves that no point reaches get their labels by repair, and scales depend on them.
    repaired = survey.completed(survey.model.repair(moved.to_tree(survey.model.n_classes)))
    for found in (repaired, planes):
        if not budget.over:
            yield shrunk_planes(survey, found, budget)


@dataclass(frozen=True)
class _TaughtTask:
    """An attempt that begins with a taught tree."""

    taught: IntArray
    """Labels of the unlabelled points."""
    settings: TaughtSettings
    seed: int

    def made(self, survey: Survey, budget: Budget) -> Planes:
        """A taught tree that meets the totals, with the labelled points on their sides if that can be."""
        planes = taught_planes(survey, self.taught, self.settings, self.seed, budget)
        right = right_planes(survey, planes, self.taught, np.random.default_rng(self.seed), budget)
        if self.settings.most is None:
            return right
        # With few features labels cannot all be right, and what it takes to mend some may ruin others.
        return min(right, shrunk_planes(survey, planes, budget), key=survey.objective)


@dataclass(frozen=True)
class _Task:
    """An attempt in the three steps above."""

    guided: IntArray
    """Labels of the unlabelled points."""
    guidance: float
    """Weight of the guide."""
    random_root: bool
    """Whether to begin with a random root."""
    shallow: bool
    """Whether to grow no deeper than two splits: where points need margins of 1 there is little room, and fewer and
    higher nodes find it more often."""
    simplify: bool
    alone: bool
    """Whether to do with fewer hyperplanes, or with a single one, for the same reason."""
    seed: int
    """Seed."""

    def made(self, survey: Survey, budget: Budget) -> Planes:
        """One attempt."""
        model, rng = survey.model, np.random.default_rng(self.seed)
        roomy = model.margin_rule != "tolerance"
        depth = min(2, model.depth) if roomy and self.shallow else model.depth
        planes = grown_planes(survey, self.guided, self.guidance, depth, self.random_root, rng, budget)
        planes = separated_planes(survey, planes, self.guided, rng, budget)
        if roomy and self.simplify:
            planes = simplified_planes(survey, planes, self.guided, self.alone, rng, budget)
        moves = Moves(survey, rng, budget)
        planes = shrunk_planes(survey, planes, budget)
        best, least = planes, np.inf
        for _ in range(survey.search.guided_rounds):
            if budget.over:
                break
            planes = moves.meet_totals(planes)
            deviation = moves.deviation(planes)
            cost, _ = moves.cost(planes, deviation)
            if cost < least:
                best, least = planes, cost
            if deviation == 0:
                break
            # The guide is now what mends the totals with the smallest changes; all nodes try to follow.
            planes = separated_planes(survey, planes, moves.mended_labels(planes), rng, budget)
        return shrunk_planes(survey, planes_with_room(moves, best) if roomy else widened_planes(moves, best), budget)


def _made_elsewhere(model: S2OCT, search: S2OCTSearch, task: _Task | _TaughtTask, seconds: float) -> Planes:
    """An attempt in another process."""
    return task.made(Survey(model, search), Budget(seconds if np.isfinite(seconds) else None))
