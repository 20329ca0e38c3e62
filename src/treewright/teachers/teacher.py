"""Teachers: scores and labels of unlabelled points that a tree can learn from, and how good they are likely to be."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import softmax

from treewright.core.arrays import FloatArray, IntArray
from treewright.teachers.members import Fitted
from treewright.teachers.points import TeacherPoints
from treewright.teachers.record import TeacherRecord
from treewright.totals.shift import Margin, rake, shifted

__all__ = ["UnseenLabels", "Likely", "Teacher", "Voter"]

_NOISE = 0.2
"""Of the spread of the scores, for variety."""


@dataclass(frozen=True, eq=False)
class Voter:
    """A fitted classifier of a teacher, and what its log-scores are multiplied by."""

    fitted: Fitted
    weight: float


@dataclass(frozen=True, eq=False)
class UnseenLabels:
    """What a teacher says who did not see some of the labels."""

    left_out: IntArray
    """Labelled points whose labels it did not see, as numbers among the labelled ones."""
    scores: FloatArray
    """What it says of them, logarithms; shape (n_left_out, n_classes)."""
    hidden: FloatArray
    """What it says of the unlabelled points, logarithms; shape (n_unlabelled, n_classes)."""


@dataclass(frozen=True, eq=False)
class Likely:
    """Calibrated probabilities of the classes at the points of a points: as often right as they say."""

    known: FloatArray
    """At the labelled points, each by classifiers that did not see its label; shape (n_labelled, n_classes)."""
    hidden: FloatArray
    """At the unlabelled points; shape (n_unlabelled, n_classes)."""


@dataclass(eq=False)
class Teacher:
    """Scores of the unlabelled points, comparable between points and between classes.

    Attributes
    ----------
    points : TeacherPoints
        The points.
    scores : ndarray of shape (n_unlabelled, n_classes)
        How well each class fits: logarithms of unnormalized probabilities, if classes are as frequent as among the
        labels, or what somebody gave.
    record : TeacherRecord
        What it was.
    parts : list of ndarray
        Scores that it is a mixture of.
    voters : list of Voter
        Classifiers that can be asked for other points; empty where scores were given.
    levels : ndarray of shape (n_classes,), or float
        What is added to their weighted scores.
    unseen_labels : list of UnseenLabels
        What it says without some of the labels, where that was asked for.
    known : ndarray of shape (n_labelled, n_classes) or None
        Probabilities at the labelled points by classifiers that did not see their labels, if classes are as frequent as
        among the labels, where that was asked for and labels were enough.
    """

    points: TeacherPoints
    scores: FloatArray
    record: TeacherRecord
    parts: list[FloatArray] = field(default_factory=list)
    voters: list[Voter] = field(default_factory=list)
    levels: FloatArray | float = 0.0
    unseen_labels: list[UnseenLabels] = field(default_factory=list)
    known: FloatArray | None = None
    least: float = 0.0
    """Least probability of a classifier that counts."""

    def __post_init__(self) -> None:
        self.least = self.least or self.points.least

    def without_points(self) -> Teacher:
        """What it takes to be asked for other points, and none of the points it learned from: what a file keeps."""
        told = self.points
        nothing = TeacherPoints(told.X[:0], told.y[:0], told.weight[:0], told.hidden[:0], told.n_classes)
        return replace(self, points=nothing, scores=self.scores[:0], parts=[], unseen_labels=[], known=None)

    @classmethod
    def told(cls, points: TeacherPoints, table: FloatArray, name: str) -> Teacher:
        """Of scores that somebody gave, comparable between classes."""
        return cls(points, table, TeacherRecord(name))

    def labels(self) -> IntArray:
        """The most likely labels within the totals."""
        return self.points.labels(self.scores)

    def varied(self, rng: np.random.Generator, chance: float = 1.0) -> IntArray:
        """Labels from a random mixture of the scores, for variety; of it `chance` is random and the rest as it is."""
        tables = [self.scores, *self.parts]
        share = chance * rng.dirichlet(np.ones(len(tables)))
        share[0] += 1.0 - chance
        mixed: Any = sum(s * table for s, table in zip(share, tables, strict=True))
        away = self.scores - self.scores.mean(axis=1, keepdims=True)
        noise = _NOISE * float(away.std()) if away.size else 0.0
        return self.points.labels(mixed + noise * rng.normal(size=self.scores.shape))

    def asked(self, X: FloatArray) -> FloatArray:
        """Scores of other points, in the units of the points."""
        k = self.points.n_classes
        table = np.zeros((len(X), k)) + self.levels
        for voter in self.voters if len(X) else []:  # estimators refuse to be asked for nothing
            table += voter.weight * voter.fitted.logs(X, k, self.least)
        return table

    def likely(self) -> Likely | None:
        """Calibrated probabilities at the points; None if labels left out do not say.

        Where totals are known, a shift of each class by group brings sums of probabilities within them; labelled points
        have that of all groups together.
        """
        if self.known is None:
            return None
        totals, known = self.points.totals, np.log(np.maximum(self.known, 1e-300))
        if totals is None or not len(self.scores):
            return Likely(self.known, softmax(self.scores, axis=1))
        point, group, times = totals.parts
        row = np.repeat(np.arange(len(point)), times)
        every, ends = self.scores[point][row], totals.pooled()
        (shifts,) = rake(every, [Margin(group[row], totals.low, totals.high)])
        (pooled,) = rake(every, [Margin(np.zeros(len(row), dtype=np.int64), ends.low, ends.high)])
        hidden = np.zeros(self.scores.shape)
        np.add.at(hidden, point, times[:, None] * shifted(self.scores[point], shifts[group]))
        rows = hidden.sum(axis=1, keepdims=True)
        alone = shifted(self.scores, pooled[0])
        return Likely(shifted(known, pooled[0]), np.where(rows > 0, hidden / np.where(rows > 0, rows, 1.0), alone))
