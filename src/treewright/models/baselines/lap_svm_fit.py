"""Laplacian support vector machines: rows to points, graph, kernel, duals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.data import (
    Merge,
    Problem,
    Reduction,
    Sample,
    Scale,
    Scaling,
    Weighted,
    reduced_sample,
    unit_scaling,
    weight_unit,
)
from treewright.exceptions import InvalidInputError
from treewright.graph import GraphSettings, check_graph, laplacian
from treewright.models.baselines.laplacian_machine import kernel_matrix, kernel_width, solve_lap_svm
from treewright.optimize.conduct import Conduct
from treewright.optimize.record import FitRecord, FitStatus, named_trace

if TYPE_CHECKING:
    from treewright.models.baselines.lap_svm import LapSVMClassifier

__all__ = ["LapSVMFit", "LapSVMMachines", "train_lap_svm"]

MAX_POINTS = 10_000
"""Most distinct rows: matrices are dense, and the work is their number cubed."""

_BLOCK = 2_000
"""Rows whose kernel values are held at once when predicting."""


@dataclass(frozen=True)
class LapSVMMachines:
    """Fitted machines of a LapSVM, one for two classes, else one for each class."""

    points: FloatArray
    """Scaled points that the coefficients belong to; shape (n_points, n_features)."""
    coefficients: FloatArray
    """Coefficients of the kernel; shape (n_points, n_machines)."""
    intercept: FloatArray
    """Biases; shape (n_machines,)."""
    kernel: str
    """Name of the kernel."""
    width: float
    """Factor of the squared distance in a Gaussian."""

    def values(self, rows: FloatArray, scaling: Scaling) -> FloatArray:
        """Values at rows, shape (n_rows, n_machines), in blocks."""
        values = np.empty((len(rows), self.coefficients.shape[1]))
        for first in range(0, len(rows), _BLOCK):
            block = scaling.apply(rows[first : first + _BLOCK])
            kernel = kernel_matrix(block, self.points, self.kernel, self.width)
            values[first : first + _BLOCK] = kernel @ self.coefficients + self.intercept
        return values

    @staticmethod
    def decided(values: FloatArray) -> IntArray:
        """Class numbers that values decide for."""
        return (values[:, 0] > 0).astype(np.int64) if values.shape[1] == 1 else values.argmax(axis=1)


@dataclass(frozen=True)
class LapSVMFit:
    """LapSVM machines, the scaling of their features, class numbers of all rows, and the record of the fit."""

    machines: LapSVMMachines
    scaling: Scaling
    numbers: IntArray
    record: FitRecord


def train_lap_svm(
    problem: Problem,
    graph: Any,
    settings: LapSVMClassifier,
    graph_settings: GraphSettings,
    conduct: Conduct,
    budget: Budget,
) -> LapSVMFit:
    """Solve a LapSVM machine for each class, or one for two classes.

    The graph has the affinities of the rows, None for those of nearest neighbours. The budget only tells the time: the
    work is one factorization, which cannot be broken off.
    """
    # n and l are numbers of rows, whatever unit the weights have
    problem = replace(problem, weight=problem.weight / weight_unit(problem.weight))
    rows = Sample.of(problem.X, problem.y, problem.weight)
    reduction = reduced_sample(rows, Weighted(), Scale(unit_scaling), Merge(labels=False))
    points, scaling = reduction.points, reduction.scaling
    assert scaling is not None
    if len(points) > MAX_POINTS:
        raise InvalidInputError(
            f"X has {len(points)} distinct rows; LapSVM takes {MAX_POINTS} at most, as its matrices are dense. "
            "LapTAOClassifier has no such limit; or leave unlabelled rows out"
        )
    affinity = _affinities(problem, reduction, graph, graph_settings, conduct)
    at, numbers, weight = _labels_of_points(problem, reduction)
    width, labelled = kernel_width(points.X, settings.width), float(weight.sum())
    result = solve_lap_svm(
        kernel_matrix(points.X, points.X, settings.kernel, width),
        laplacian(affinity),
        at,
        np.where(numbers[:, None] == _positive(problem.n_classes), 1.0, -1.0),
        weight,
        float(settings.ridge) / labelled,
        float(settings.gamma) / labelled,
    )
    machines = LapSVMMachines(points.X, result.alpha, result.intercept, settings.kernel, width)
    guess = machines.decided(machines.values(problem.X, scaling))
    objective = float(result.objective.sum())
    status, reason = FitStatus.OPTIMAL, "all duals are solved to tolerance"
    if not result.converged:
        status, reason = (
            FitStatus.UNPROVEN,
            "a dual was not solved to tolerance; a larger ridge, or a larger width (a narrower kernel), makes it "
            "better conditioned",
        )
    trace = named_trace([(budget.elapsed, objective)], "seconds", "objective")
    record = FitRecord(status, reason, budget.elapsed, objective, None, trace)
    return LapSVMFit(machines, scaling, np.where(problem.labelled, problem.y, guess), record)


def _affinities(problem: Problem, reduction: Reduction, graph: Any, settings: GraphSettings, conduct: Conduct) -> Any:
    """Affinities of the distinct points, each edge times the weights of both ends."""
    points = reduction.points
    if graph is None:
        mass = sparse.diags_array(points.weight, format="csr")
        return (mass @ settings.search(points.X, conduct.threads, conduct.seed).W @ mass).tocsr()
    members = reduction.members(problem.weight)
    return (members @ check_graph(graph, len(problem.X)) @ members.T).tocsr()


def _labels_of_points(problem: Problem, reduction: Reduction) -> tuple[IntArray, IntArray, FloatArray]:
    """Point, class number and weight of each label; equal ones at one point are one."""
    used = problem.labelled & (problem.weight > 0)
    pairs = reduction.place[used] * problem.n_classes + problem.y[used]
    distinct, place = np.unique(pairs, return_inverse=True)
    weight = np.bincount(place.reshape(-1), problem.weight[used]).astype(np.float64)
    return distinct // problem.n_classes, distinct % problem.n_classes, weight


def _positive(n_classes: int) -> IntArray:
    """Classes that machines tell from the rest."""
    return np.array([1]) if n_classes == 2 else np.arange(n_classes)
