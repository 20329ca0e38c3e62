"""A teacher beside the graph: soft labels of the unlabelled points, and how much they count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray
from treewright.core.budget import Budget
from treewright.data import Reduction, Sample
from treewright.data.teacher_record import TeacherRecord
from treewright.models.laptao.rounds import GraphTask
from treewright.models.laptao.soft_labels import DEFAULT_WEIGHT, best_weight, softened
from treewright.optimize.conduct import Conduct
from treewright.teachers.given import GivenTeacher
from treewright.teachers.taught_points import PointTeacher, imagined_points

__all__ = ["GraphTeacher", "SoftLabels"]

_TEACHING = 0.3
"""Share of the time, once there is a graph, that the teacher may take."""


@dataclass(frozen=True)
class SoftLabels:
    """Who taught, and how much it counted."""

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
    """Whom the model learns from besides labels and graph.

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
            weight = best_weight(task, unseen_labels, mean, budget.share(_TEACHING))
        labels = np.eye(len(self.classes))[taught.shares[n_points:].argmax(axis=1)] - mean
        if weight < DEFAULT_WEIGHT:
            imagined, labels = imagined[:0], labels[:0]
        soft = softened(task, taught.shares[:n_points] - mean, weight)
        likely = (taught.shares if taught.likely is None else taught.likely)[:n_points]
        return soft, SoftLabels(taught.record, weight, imagined, labels, likely, taught.likely is not None)
