"""BinOCT: rows to points, search, branch and bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from treewright.core.arrays import FloatArray
from treewright.core.budget import Budget
from treewright.data import Merge, Problem, Sample, Weighted, reduced_sample, weight_unit
from treewright.models.binoct.objective import BinOCT
from treewright.models.binoct.search import search_binoct
from treewright.optimize.conduct import Conduct
from treewright.optimize.course import SolvedTree, optimize, solved_tree
from treewright.optimize.incumbent import Incumbent
from treewright.tree import Tree

if TYPE_CHECKING:
    from treewright.models.binoct.estimator import BinOCTClassifier

__all__ = ["weights_in_rows", "train_binoct"]


def weights_in_rows(weight: FloatArray) -> tuple[FloatArray, float]:
    """BinOCT weights in units of a row (:func:`~treewright.data.weight_unit`), and the unit; row numbers are whole.

    Examples
    --------
    >>> weights_in_rows(np.array([0.1, 0.3, 0.2]))[0].tolist()
    [1.0, 3.0, 2.0]
    """
    unit = weight_unit(weight)
    rows = weight / unit
    whole = np.round(rows)
    return np.where(np.all(np.abs(rows - whole) <= 1e-9 * whole), whole, rows), unit


def train_binoct(
    problem: Problem, settings: BinOCTClassifier, conduct: Conduct, budget: Budget, start: Tree | None = None
) -> SolvedTree:
    """Find the BinOCT tree with the fewest errors for labelled rows within a budget."""
    weight, unit = weights_in_rows(problem.weight)
    conduct = conduct.told_in_units(unit)
    reduction = reduced_sample(Sample.of(problem.X, problem.y, weight), Weighted(), Merge())
    points = reduction.points
    assert points.y is not None
    model = BinOCT(points.X, points.y, points.weight, problem.n_classes, settings.max_depth)
    starts = [] if start is None else [start]

    def search(best: Incumbent[Tree], time: Budget) -> None:
        search_binoct(best, model, starts, time, conduct.seed, search=conduct.search.binoct)

    outcome = optimize(model, search, conduct, budget)
    found = solved_tree(problem, reduction, outcome)
    return SolvedTree(found.tree, found.record.outweighed(model.weight, 1.0).times(unit))
