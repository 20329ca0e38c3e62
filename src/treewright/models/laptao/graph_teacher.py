"""A teacher beside the graph: soft labels of the unlabelled points, and how much they count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.data import Reduction, Sample
from treewright.graph import LabelSmoother
from treewright.models.laptao.rounds import GraphTask
from treewright.optimize.conduct import Conduct
from treewright.teachers.given import GivenTeacher
from treewright.teachers.record import TeacherRecord
from treewright.teachers.taught_points import PointTeacher, imagined_points

__all__ = [
    "DEFAULT_WEIGHT",
    "GraphTeacher",
    "SOFT_WEIGHTS",
    "SoftLabels",
    "best_teacher_weight",
    "left_out_losses",
    "softened_graph_task",
]


SOFT_WEIGHTS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 10.0)
"""Weights of a teacher's label, relative to a given one, that are tried: from the graph alone to the teacher alone."""

DEFAULT_WEIGHT = 0.3
"""The weight where none can be chosen."""

_CAUTION = 2.0
"""What it takes to choose a weight ten times as large or small: so much less squared distance from labels left out. On
55 tables with 5 % labels 28.8 % of the unlabelled rows get a wrong label with weight 0, 25.2 with 0.3, 25.2 with 10;
25.5 with the weight that labels left out choose alone, 25.1 so."""

_LEAST = 0.02
"""Least share of a class, so that one label does not decide."""

_RESIDUAL = 1e-4
"""Relative residual of smoothed labels that are only compared."""


def softened_graph_task(task: GraphTask, targets: FloatArray, weight: float) -> GraphTask:
    """The task of a LapTAO with targets of this weight at the points that have no label.

    Parameters
    ----------
    task : GraphTask
        Points, graph and labels.
    targets : ndarray of shape (n_points, n_outputs)
        What a teacher says, centred as the labels are.
    weight : float
        Weight of such a target, relative to the weight of the point.
    """
    open_ = task.label_weight == 0
    if weight == 0.0:
        return task
    return replace(
        task,
        Y=np.where(open_[:, None], targets, task.Y),
        label_weight=np.where(open_, weight * task.weight, task.label_weight),
    )


def left_out_losses(
    task: GraphTask, unseen_labels: Sequence[tuple[IntArray, FloatArray]], mean: FloatArray, budget: Budget
) -> FloatArray:
    """How far LapTAO labels smoothed along the graph are from those left out, for each weight of a teacher's labels.

    Parameters
    ----------
    task : GraphTask
        Points, graph and labels.
    unseen_labels : sequence of (ndarray of int, ndarray of shape (n_points, n_outputs))
        Points whose labels are left out, and what a teacher who did not see them says, centred.
    mean : ndarray of shape (n_outputs,)
        Mean of the labels.
    budget : Budget
        Ends the work early, with fewer unseen_labels.

    Returns
    -------
    ndarray of shape (n_weights,)
        Sums of squared distances between shares of the classes and labels, in labels of mean weight.
    """
    losses = np.zeros(len(SOFT_WEIGHTS))
    unit = float(task.label_weight[task.label_weight > 0].mean())
    for left, targets in unseen_labels:
        if budget.over:
            break
        mass = task.label_weight.copy()
        mass[left] = 0.0
        fewer, values = replace(task, label_weight=mass), None
        for number, weight in enumerate(SOFT_WEIGHTS):
            soft = softened_graph_task(fewer, targets, weight)
            smoother = LabelSmoother(soft.W, soft.label_weight, soft.gamma, soft.weight, tol=_RESIDUAL)
            values = smoother.solve(soft.label_weight[:, None] * soft.Y, 0.0, start=values, budget=budget)
            shares = np.maximum(values[left] + mean, _LEAST)
            away = shares / shares.sum(axis=1, keepdims=True) - (task.Y[left] + mean)
            losses[number] += task.label_weight[left] @ (away**2).sum(axis=1) / unit
    return losses


def best_teacher_weight(
    task: GraphTask, unseen_labels: Sequence[tuple[IntArray, FloatArray]], mean: FloatArray, budget: Budget
) -> float:
    """Weight of a LapTAO teacher with which labels left out are told best; few labels change it little."""
    away = np.abs(np.log10(np.maximum(SOFT_WEIGHTS, SOFT_WEIGHTS[1] / 3) / DEFAULT_WEIGHT))
    return SOFT_WEIGHTS[int((left_out_losses(task, unseen_labels, mean, budget) + _CAUTION * away).argmin())]


_TEACHING = 0.3
"""Share of the time, once there is a graph, that the teacher may take."""


@dataclass(frozen=True)
class SoftLabels:
    """Who taught a LapTAO, and how much it counted."""

    teacher: TeacherRecord
    weight: float
    """Weight of a label of the teacher, relative to a given one."""
    imagined: FloatArray
    targets: FloatArray
    """Imagined points and their labels, centred, for the tree; none where the graph counts more than the teacher."""
    likely: FloatArray
    """Probabilities of the classes at each point by the teacher."""
    judged: bool
    """Whether those of labelled points are by one who did not see their labels."""


@dataclass(frozen=True, eq=False)
class GraphTeacher:
    """Whom a LapTAO learns from besides labels and graph.

    Attributes
    ----------
    classes : ndarray
        The labels, sorted.
    given_teacher : GivenTeacher or None
        Who says something of rows; None for the teacher that is made of the points.
    weight : float or "auto"
        Weight of a label of the teacher, relative to a given one; "auto" by labels left out.
    """

    classes: Any
    given_teacher: GivenTeacher | None
    weight: float | str = "auto"

    def added_to(
        self,
        task: GraphTask,
        reduction: Reduction,
        rows: Sample,
        labelled: BoolArray,
        mean: FloatArray,
        graph: bool,
        conduct: Conduct,
        budget: Budget,
    ) -> tuple[GraphTask, SoftLabels]:
        """The task with the labels of the teacher at points that have none; without a graph they count whatever is."""
        assert rows.y is not None
        y = np.where(labelled, rows.y.argmax(axis=1), -1)
        imagined = imagined_points(reduction.points, self.given_teacher, conduct)
        point_teacher = PointTeacher.of(reduction, y, rows.weight, self.classes, self.given_teacher, conduct, imagined)
        n_points = len(reduction.points)
        choose = self.weight == "auto" and graph
        taught = point_teacher.taught(budget.share(_TEACHING), examined=choose)
        weight = DEFAULT_WEIGHT if self.weight == "auto" else float(self.weight)
        if choose and taught.unseen_labels:
            unseen_labels = [(left, shares[:n_points] - mean) for left, shares in taught.unseen_labels]
            weight = best_teacher_weight(task, unseen_labels, mean, budget.share(_TEACHING))
        labels = np.eye(len(self.classes))[taught.shares[n_points:].argmax(axis=1)] - mean
        if weight < DEFAULT_WEIGHT:
            imagined, labels = imagined[:0], labels[:0]
        soft = softened_graph_task(task, taught.shares[:n_points] - mean, weight)
        likely = (taught.shares if taught.likely is None else taught.likely)[:n_points]
        return soft, SoftLabels(taught.record, weight, imagined, labels, likely, taught.likely is not None)
