"""Semi-supervised classification trees: rows to points, and growing."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from treewright.core.arrays import IntArray
from treewright.core.budget import Budget
from treewright.core.names import counted
from treewright.data import Merge, Problem, Sample, Weighted, reduced_sample
from treewright.models.baselines.ssct_growing import SSCTRows, grow_ssct
from treewright.optimize.conduct import Conduct
from treewright.optimize.record import FitRecord, FitStatus, cut_short, named_trace
from treewright.tree import Tree, predict_labels

if TYPE_CHECKING:
    from treewright.models.baselines.ssct import SSCTClassifier

__all__ = ["SSCTFit", "train_ssct"]


def _n_candidates(settings: SSCTClassifier, n_features: int) -> int | None:
    """Features that are drawn for each node, None for all."""
    given: Any = settings.max_features
    if given is None:
        return None
    if given == "sqrt":
        given = np.sqrt(n_features)
    elif not isinstance(given, Integral):
        given = given * n_features
    return max(1, int(given))


@dataclass(frozen=True)
class SSCTFit:
    """An SSCT in the units of the data, class numbers of all rows, and the record of the fit."""

    tree: Tree
    numbers: IntArray
    record: FitRecord


def train_ssct(problem: Problem, settings: SSCTClassifier, conduct: Conduct, budget: Budget) -> SSCTFit:
    """Grow an SSCT on labelled and unlabelled rows; told seconds, objective and leaves of each level."""
    rows = Sample.of(problem.X, problem.y, problem.weight)
    points = reduced_sample(rows, Weighted(), Merge(large=False)).points
    assert points.y is not None
    result = grow_ssct(
        SSCTRows(points.X, points.y, points.weight, points.size, problem.n_classes),
        float(settings.supervision),
        max_depth=settings.max_depth,
        min_samples_leaf=settings.min_samples_leaf,
        min_samples_split=settings.min_samples_split,
        n_candidates=_n_candidates(settings, problem.n_features),
        label_shares=settings.label_shares,
        rng=np.random.default_rng(conduct.seed),
        budget=budget,
        n_jobs=conduct.threads,
        on_level=conduct.told,
    )
    numbers = np.where(problem.labelled, problem.y, predict_labels(result.tree, problem.X))
    status, reason = FitStatus.LOCAL, "the tree is grown to its limits"
    if not result.complete:
        status, reason = cut_short(budget)
        reason += f", and the tree of {counted(result.tree.n_leaves, 'leaf', 'leaves')} could have grown further"
    trace = named_trace(result.trace, "seconds", "objective", "n_leaves")
    record = FitRecord(status, reason, budget.elapsed, result.objective, None, trace)
    return SSCTFit(result.tree, numbers, record)
