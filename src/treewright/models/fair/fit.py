"""Fair optimal trees: rows to points and their protected groups, search, branch and bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from treewright.core.arrays import IntArray
from treewright.core.budget import Budget
from treewright.data import Merge, Problem, Sample, Weighted, reduced_sample
from treewright.models.binoct.fit import weights_in_rows
from treewright.models.binoct.search import search_binoct
from treewright.models.fair.objective import FairOCT
from treewright.optimize.conduct import Conduct
from treewright.optimize.course import optimize, solved_tree
from treewright.optimize.incumbent import Incumbent
from treewright.optimize.record import FitRecord
from treewright.tree import Tree

if TYPE_CHECKING:
    from treewright.models.fair.estimator import FairOCTClassifier

__all__ = ["FairFit", "train_fair"]


@dataclass(frozen=True)
class FairFit:
    """What training of a fair tree ended with."""

    tree: Tree
    record: FitRecord
    discrimination: float
    """The index of disparate impact of what the tree predicts for the rows."""


def train_fair(
    problem: Problem,
    protected: IntArray | None,
    settings: FairOCTClassifier,
    conduct: Conduct,
    budget: Budget,
    start: Tree | None = None,
) -> FairFit:
    """Find the best fair tree for labelled rows within a budget; `protected` has the group number of each row."""
    weight, _ = weights_in_rows(problem.weight)
    reduction = reduced_sample(Sample.of(problem.X, problem.y, weight), Weighted(), Merge())
    points = reduction.points
    assert points.y is not None
    groups = np.zeros(len(weight), dtype=np.int64) if protected is None else protected
    # Of many groups a point has few: as a table of all of them it would not fit into memory.
    own = sparse.csr_array((np.ones(len(groups)), (np.arange(len(groups)), groups)))
    table = sparse.csr_array(reduction.members(weight) @ own)
    there = np.flatnonzero(table.sum(axis=0))
    model = FairOCT(
        points.X,
        points.y,
        points.weight,
        problem.n_classes,
        settings.max_depth,
        complexity=float(settings.complexity),
        fairness_weight=float(settings.fairness_weight),
        protected=table[:, there],
    )
    starts, price = [] if start is None else [start], model.complexity * model.total

    def search(best: Incumbent[Tree], time: Budget) -> None:
        search_binoct(best, model, starts, time, conduct.seed, price, conduct.search.binoct)

    outcome = optimize(model, search, conduct, budget)
    found = solved_tree(problem, reduction, outcome)
    record = found.record.outweighed(model.weight, model.total)
    return FairFit(found.tree, record, model.discrimination(outcome.solution))
