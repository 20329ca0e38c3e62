r"""Search for S2OCT: trees without labelled error whose predictions meet the totals, many of them.

With the nodes above fixed, the hyperplanes of a node that keep every labelled point on its side form a polytope. Along
a segment inside it points change sides one at a time, so the counts change one row at a time: between a hyperplane
that gives too few of a class and one that gives too many there is one that gives the exact count, found by sorting.
An attempt therefore has three steps:

1. a tree on the labelled points, together with unlabelled ones labelled by a guide
   (:mod:`treewright.search.s2oct.structure`);
2. one linear program a node: labelled points on their sides with margin 1, guided points as far as possible
   (:mod:`treewright.search.s2oct.structure`);
3. moves along segments toward extreme hyperplanes until the totals are met (:mod:`treewright.search.s2oct.moves`);
   where unlabelled points need a margin of 1, hyperplanes then look for room (:mod:`treewright.search.s2oct.room`).

Where the labelled points cannot all be right, step 2 minimizes their hinge errors instead, which for fixed leaves is
one linear program a node, and step 3 weighs error against deviation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed

from treewright.arrays import IntArray
from treewright.budget import Budget
from treewright.formulations import S2OCT
from treewright.search.grow.cart import cart_tree
from treewright.search.incumbent import Incumbent
from treewright.search.s2oct.choice import Pool
from treewright.search.s2oct.guides import Guide
from treewright.search.s2oct.moves import Moves, shrunk
from treewright.search.s2oct.room import settled
from treewright.search.s2oct.structure import grown, linear, separated, simplified
from treewright.search.s2oct.survey import Survey
from treewright.tree import Tree
from treewright.tree.complete import Planes

__all__ = ["search_s2oct"]

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
    offers, survey = _Offers(best, model, Pool()), Survey(model)
    for tree in starts:
        offers.add(tree)
    offers.add(cart_tree(survey.X, survey.y, survey.weight, model.n_classes, model.depth))
    if guided and not budget.over:
        offers.add(Tree.leaf(np.bincount(survey.y, survey.weight, model.n_classes), survey.X.shape[1]))
        for planes in _linear(survey, budget.share(0.3)) if len(model.present) > 1 else ():
            offers.add(planes.to_tree(model.n_classes))
        guide = Guide(survey, seed, budget.share(0.3))
        offers.pool.guide = guide.labels()
        _attempt(offers, survey, guide, budget, seed, samples, attempts, n_jobs)
    return offers.pool


@dataclass
class _Offers:
    """Where trees go: the best one, and all that are as good."""

    best: Incumbent[Tree]
    model: S2OCT
    pool: Pool

    def add(self, tree: Tree) -> None:
        """Repair a tree and offer it."""
        feasible = self.model.repair(tree)
        objective = self.model.objective(feasible)
        self.best.take(feasible, objective)
        self.pool.add(self.model, feasible, objective)


def _attempt(
    offers: _Offers,
    survey: Survey,
    guide: Guide,
    budget: Budget,
    seed: int,
    samples: int,
    attempts: int,
    n_jobs: int,
) -> None:
    """Make attempts until there are enough trees that are proven to be optimal, or time is over."""
    best, model, rng = offers.best, survey.model, np.random.default_rng(seed)
    few = _PROVEN_ATTEMPTS if model.margin_rule == "tolerance" else _PROVEN_ATTEMPTS // 2
    batch, improved, small = max(1, n_jobs), 0, model.program_cells <= _SMALL_CELLS
    for first in range(0, attempts, batch):
        if budget.over:
            break
        before = best.objective
        tasks = [_task(guide, k, seed, rng) for k in range(first, min(attempts, first + batch))]
        if n_jobs == 1:
            made = [_made(survey, task, budget) for task in tasks]
        else:
            made = Parallel(n_jobs=n_jobs)(delayed(_made_elsewhere)(model, task, budget.remaining) for task in tasks)
        for planes in made:
            offers.add(planes.to_tree(model.n_classes))
        enough = len(offers.pool.trees) >= samples or first + batch >= few
        improved = first if best.objective < before else improved
        if (best.proven and enough) or (small and first - improved >= _IDLE_ATTEMPTS):
            break


def _linear(survey: Survey, budget: Budget) -> Iterator[Planes]:
    """Hyperplanes of logistic regressions, moved to the totals; more of them where there is time."""
    planes, nodes = linear(survey, budget)
    moves = Moves(survey, np.random.default_rng(0), budget)
    moved = planes
    for node in nodes:
        if not budget.over:
            moved = moves.shifted(moved, node)
    yield shrunk(survey, moved, budget)
    # Leaves that no point reaches get their labels by repair, and scales depend on them.
    repaired = survey.completed(survey.model.repair(moved.to_tree(survey.model.n_classes)))
    for found in (repaired, planes):
        if not budget.over:
            yield shrunk(survey, found, budget)


@dataclass(frozen=True)
class _Task:
    """What an attempt is to do."""

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


def _task(guide: Guide, number: int, seed: int, rng: np.random.Generator) -> _Task:
    """What attempt `number` is to do: the first follows the guide, later ones vary."""
    return _Task(
        guided=guide.varied(rng) if number else guide.labels(),
        guidance=_GUIDANCE[number // 2 % len(_GUIDANCE)],
        random_root=number % 2 == 1,
        shallow=number % 4 > 0,
        simplify=number % 3 > 0,
        alone=number % 3 == 1,
        seed=seed + number,
    )


def _made_elsewhere(model: S2OCT, task: _Task, seconds: float) -> Planes:
    """An attempt in another process."""
    return _made(Survey(model), task, Budget(seconds if np.isfinite(seconds) else None))


def _made(survey: Survey, task: _Task, budget: Budget) -> Planes:
    """One attempt; see the three steps above."""
    model, rng = survey.model, np.random.default_rng(task.seed)
    roomy = model.margin_rule != "tolerance"
    depth = min(2, model.depth) if roomy and task.shallow else model.depth
    planes = grown(survey, task.guided, task.guidance, depth, task.random_root, rng, budget)
    planes = separated(survey, planes, task.guided, rng, budget)
    if roomy and task.simplify:
        planes = simplified(survey, planes, task.guided, task.alone, rng, budget)
    moves = Moves(survey, rng, budget)
    planes = shrunk(survey, planes, budget)
    best, least = planes, np.inf
    for _ in range(_ROUNDS):
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
        planes = separated(survey, planes, moves.mended_labels(planes), rng, budget)
    return shrunk(survey, settled(moves, best) if roomy else _widened(moves, best), budget)


def _widened(moves: Moves, planes: Planes) -> Planes:
    """Give unlabelled points their margins; where that moves rows over a split, meet the totals again."""
    model, best, least = moves.model, planes, np.inf
    for _ in range(_ROUNDS):
        planes = moves.widened(planes)
        tree = model.repair(planes.to_tree(model.n_classes))
        objective = model.objective(tree)
        if objective >= least:
            break
        best, least = moves.survey.completed(tree), objective
        if objective <= 1e-9 or moves.budget.over:
            break
        planes = moves.meet_totals(best)
    return best
