"""Semi-supervised optimal trees with class totals: rows to points, search, branch and bound, choice among optima."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from treewright.arrays import IntArray
from treewright.budget import Budget
from treewright.data import (
    ClassTotals,
    Merge,
    Problem,
    Reduction,
    Sample,
    Scale,
    Weighted,
    reduced,
    s2oct_scaling,
    weight_unit,
)
from treewright.formulations import S2OCT
from treewright.formulations.s2oct.model import default_depth, default_max_coefficient, largest_distance
from treewright.search import Incumbent
from treewright.search.s2oct.attempts import search_s2oct
from treewright.search.s2oct.choice import Pool, committee, members
from treewright.training.optimize import Outcome, Solving, optimize, solved_tree
from treewright.training.record import FitRecord
from treewright.tree import Tree, predict_labels

__all__ = ["S2OCTFit", "S2OCTSettings", "train_s2oct"]

_SAMPLES = 20
"""Optimal trees among which one is chosen."""


@dataclass(frozen=True)
class S2OCTSettings:
    """What is optimized and which optimum is taken; see :class:`treewright.S2OCTClassifier`."""

    max_depth: int | None = None
    penalty: float = 1.0
    max_coefficient: float | None = None
    margin_rule: str = "tolerance"
    formulation: str = "tight"
    prefer: str = "typical"
    n_estimators: int = 1


@dataclass(frozen=True)
class S2OCTFit:
    """What training ended with."""

    tree: Tree
    """The tree, in the units of the data."""
    others: list[Tree]
    """The other members of the committee."""
    numbers: IntArray
    """Class numbers of all rows: the given ones, and those of the tree or the committee; shape (n_rows,)."""
    record: FitRecord
    """How it went."""


@dataclass
class _Search:
    """The search as branch and bound calls it, and the equally good trees of its last call."""

    model: S2OCT
    starts: list[Tree]
    samples: int
    guided: bool
    solving: Solving
    pool: Pool = field(default_factory=Pool)

    def __call__(self, best: Incumbent[Tree], budget: Budget) -> None:
        self.pool = search_s2oct(
            best,
            self.model,
            self.starts,
            budget,
            self.solving.seed,
            samples=self.samples,
            n_jobs=self.solving.threads,
            guided=self.guided,
        )


def train_s2oct(
    problem: Problem, settings: S2OCTSettings, solving: Solving, budget: Budget, start: Tree | None = None
) -> S2OCTFit:
    """Find the best trees for labelled and unlabelled rows and their totals, and choose among them."""
    # Searches and solvers have tolerances of their own, so rows weigh about 1 to them, whatever they weigh to the user.
    unit = weight_unit(problem.weight_labelled)
    solving = solving.told_in_units(unit)
    rows = Sample.of(problem.X, problem.y, np.where(problem.labelled, problem.weight / unit, 1.0))
    reduction = reduced(rows, Scale(s2oct_scaling), Weighted(), Merge())
    model = _model(problem, reduction, settings)
    starts = [] if start is None else [reduction.apply_tree(start)]
    # Who takes the first tree needs no more of them to choose from.
    enough = max(1 if settings.prefer == "first" else _SAMPLES, settings.n_estimators)
    search = _Search(model, starts, enough, settings.formulation == "tight", solving)
    share = 0.6 if settings.margin_rule == "tolerance" else 0.85
    outcome = optimize(model, search, solving, budget, search_share=share)
    outcome, others, guess = _chosen(model, outcome, search.pool, settings)
    found = solved_tree(problem, reduction, outcome)
    of_points = np.zeros(len(reduction.points), dtype=np.int64)
    of_points[model.y < 0] = guess
    numbers = np.where(problem.labelled, problem.y, reduction.invert(of_points))
    return S2OCTFit(found.tree, [reduction.invert_tree(tree) for tree in others], numbers, found.record.times(unit))


def _model(problem: Problem, reduction: Reduction, settings: S2OCTSettings) -> S2OCT:
    n_rows, n_features = problem.X.shape
    points, totals = reduction.points, problem.totals or _free_totals(problem)
    assert points.y is not None
    place = np.cumsum(points.y < 0) - 1  # of a point among the unlabelled ones
    largest = settings.max_coefficient or default_max_coefficient(n_rows, largest_distance(points.X), n_features)
    return S2OCT(
        X=points.X,
        y=points.y,
        weight=points.weight,
        totals=totals.of_points(place[reduction.place[problem.unlabelled]], int(np.count_nonzero(points.y < 0))),
        depth=settings.max_depth or default_depth(n_rows, problem.n_classes),
        penalty=float(settings.penalty),
        max_coefficient=float(largest),
        margin_rule=settings.margin_rule,  # type: ignore[arg-type]
        formulation=settings.formulation,  # type: ignore[arg-type]
    )


def _chosen(
    model: S2OCT, outcome: Outcome[Tree], pool: Pool, settings: S2OCTSettings
) -> tuple[Outcome[Tree], list[Tree], IntArray]:
    """The preferred tree as outcome, the other members of the committee, labels of the unlabelled points."""
    objective = outcome.record.objective
    assert objective is not None
    as_good = pool.trees and pool.objective <= objective + 1e-6 * max(1.0, abs(objective))
    hidden = model.X[model.y < 0]
    if not as_good:
        return _simplified(model, outcome, outcome.solution), [], predict_labels(outcome.solution, hidden)
    first, *others = chosen = members(pool, model, settings.prefer, settings.n_estimators)
    trees = [model.simplified(pool.trees[k]) for k in others]
    return _simplified(model, outcome, pool.trees[first]), trees, committee(pool, model, chosen)


def _simplified(model: S2OCT, outcome: Outcome[Tree], tree: Tree) -> Outcome[Tree]:
    """The outcome with `tree` as solution, without what it can do without, and the objective of just that tree."""
    tree = model.simplified(tree)
    return Outcome(tree, outcome.record.with_objective(model.objective(tree)))


def _free_totals(problem: Problem) -> ClassTotals:
    """Totals that ask for nothing."""
    n = problem.n_unlabelled
    return ClassTotals(
        groups=(None,),
        group_of=np.zeros(n, dtype=np.int64),
        low=np.zeros((1, problem.n_classes), dtype=np.int64),
        high=np.full((1, problem.n_classes), n),
        size=np.array([n]),
        asked={},
    )
