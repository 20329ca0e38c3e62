"""Optimal trees with hyperplane splits: rows to points, search, branch and bound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from treewright.budget import Budget
from treewright.data import Merge, Problem, Sample, Scale, Weighted, reduced, unit_scaling
from treewright.data.scaling import LEAST_MARGIN
from treewright.exceptions import InvalidInputError
from treewright.formulations import OCTH
from treewright.search.oct_h.attempts import search_oct_h, start_oct_h
from treewright.training.optimize import SolvedTree, Solving, optimize, solved_tree
from treewright.tree import Tree

__all__ = ["OCTHSettings", "least_rows", "train_oct_h"]


def least_rows(min_samples_leaf: float, n_rows: int) -> float:
    """Fewest rows of a leaf, of so many: a number, or a share of them.

    Examples
    --------
    >>> least_rows(5, 100), least_rows(0.07, 100)
    (5.0, 7.0)
    """
    if not isinstance(min_samples_leaf, (int, np.integer)):
        return float(np.ceil(min_samples_leaf * n_rows - 1e-9))  # 0.07 * 100 is a little more than 7
    if min_samples_leaf > n_rows:
        raise InvalidInputError(
            f"min_samples_leaf={min_samples_leaf} is more than the {n_rows} rows with positive weight"
        )
    return float(min_samples_leaf)


@dataclass(frozen=True)
class OCTHSettings:
    """What is optimized; see :class:`treewright.OCTHClassifier`."""

    max_depth: int = 2
    complexity: float = 0.0
    min_samples_leaf: float = 1
    margin: float | None = None
    formulation: str = "tight"

    def margin_of(self, n_points: int) -> float:
        """Gap between the sides of a split: what so many points leave room for, unless it is set."""
        return max(LEAST_MARGIN, min(0.005, 0.5 / n_points)) if self.margin is None else float(self.margin)


def train_oct_h(
    problem: Problem, settings: OCTHSettings, solving: Solving, budget: Budget, start: Tree | None = None
) -> SolvedTree:
    """Find the best tree for labelled rows within a budget."""
    # Only the ratios of weights matter; the largest is 1.
    rows = Sample.of(problem.X, problem.y, problem.weight / problem.weight.max())
    reduction = reduced(rows, Weighted(), Scale(unit_scaling), Merge())
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
        margin=settings.margin_of(len(points)),
        size=points.size,
        formulation=settings.formulation,  # type: ignore[arg-type]
    )
    starts = [] if start is None else [reduction.apply_tree(start)]
    search = start_oct_h if model.printed else search_oct_h
    outcome = optimize(model, lambda best, time: search(best, model, starts, time, solving.seed), solving, budget)
    found = solved_tree(problem, reduction, outcome)
    return SolvedTree(found.tree, found.record.outweighed(model.weight, model.baseline))
