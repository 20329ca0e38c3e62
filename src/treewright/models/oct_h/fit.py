"""Optimal trees with hyperplane splits: rows to points, search, branch and bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

from treewright.core.budget import Budget
from treewright.data import Merge, Problem, Sample, Scale, Weighted, reduced_sample, unit_scaling
from treewright.data.scaling import LEAST_MARGIN
from treewright.models.oct_h.objective import OCTH
from treewright.models.oct_h.search import search_oct_h, start_oct_h
from treewright.optimize.conduct import Conduct
from treewright.optimize.course import SolvedTree, optimize, solved_tree
from treewright.optimize.formulation import least_rows
from treewright.optimize.incumbent import Incumbent
from treewright.tree import Tree

if TYPE_CHECKING:
    from treewright.models.oct_h.estimator import OCTHClassifier

__all__ = ["train_oct_h"]


def _margin_of(settings: OCTHClassifier, n_points: int) -> float:
    """Gap between the sides of a split: what so many points leave room for, unless it is set."""
    return max(LEAST_MARGIN, min(0.005, 0.5 / n_points)) if settings.margin is None else float(settings.margin)


def train_oct_h(
    problem: Problem, settings: OCTHClassifier, conduct: Conduct, budget: Budget, start: Tree | None = None
) -> SolvedTree:
    """Find the best OCT-H tree, with hyperplane splits, for labelled rows within a budget."""
    # Only the ratios of weights matter; the largest is 1.
    rows = Sample.of(problem.X, problem.y, problem.weight / problem.weight.max())
    reduction = reduced_sample(rows, Weighted(), Scale(unit_scaling), Merge())
    points = reduction.points
    assert points.y is not None
    model = OCTH(
        X=points.X,
        y=points.y,
        weight=points.weight,
        n_classes=problem.n_classes,
        depth=settings.max_depth,
        complexity=float(settings.complexity),
        min_leaf=least_rows(settings.min_samples_leaf, int(points.size.sum())),
        margin=_margin_of(settings, len(points)),
        size=points.size,
        formulation=settings.formulation,  # type: ignore[arg-type]
    )
    starts = [] if start is None else [reduction.apply_tree(start)]

    def search(best: Incumbent[Tree], time: Budget) -> None:
        if model.printed:
            start_oct_h(best, model, starts, time, conduct.seed)
        else:
            search_oct_h(best, model, starts, time, conduct.seed, conduct.search.oct_h)

    outcome = optimize(model, search, conduct, budget)
    found = solved_tree(problem, reduction, outcome)
    return SolvedTree(found.tree, found.record.outweighed(model.weight, model.baseline))
