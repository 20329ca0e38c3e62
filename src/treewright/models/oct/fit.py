"""Optimal trees with splits by one feature: rows to points, exact search, or CART and branch and bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from treewright.core.budget import Budget
from treewright.data import Merge, Problem, Sample, Weighted, reduced_sample
from treewright.models.oct.objective import OCT
from treewright.models.oct.search import search_oct, start_oct
from treewright.optimize.conduct import Conduct
from treewright.optimize.course import SolvedTree, optimize, solved_tree
from treewright.optimize.formulation import least_rows
from treewright.optimize.incumbent import Incumbent
from treewright.tree import Tree, settled

if TYPE_CHECKING:
    from treewright.models.oct.estimator import OCTClassifier

__all__ = ["train_oct"]


def train_oct(
    problem: Problem, settings: OCTClassifier, conduct: Conduct, budget: Budget, start: Tree | None = None
) -> SolvedTree:
    """Find the best OCT tree for labelled rows within a budget."""
    # Only the ratios of weights matter; the largest is 1. Nothing depends on the scale of features.
    rows = Sample.of(problem.X, problem.y, problem.weight / problem.weight.max(), problem.n_levels)
    reduction = reduced_sample(rows, Weighted(), Merge())
    points = reduction.points
    assert points.y is not None
    model = OCT(
        X=np.asarray(points.X),
        y=points.y,
        weight=points.weight,
        n_classes=problem.n_classes,
        depth=settings.max_depth,
        complexity=float(settings.complexity),
        min_leaf=least_rows(settings.min_samples_leaf, int(points.size.sum())),
        size=points.size,
        n_levels=points.n_levels,
    )
    starts = [] if start is None else [reduction.apply_tree(start)]

    exact = settings.method != "mip"

    def search(best: Incumbent[Tree], time: Budget) -> None:
        (search_oct if exact else start_oct)(best, model, starts, time)

    outcome = optimize(model, search, conduct, budget, exact_search=exact)
    found = solved_tree(problem, reduction, outcome)
    return SolvedTree(settled(found.tree, problem.X, problem.weight), found.record.judged(model.errors_of_least))
