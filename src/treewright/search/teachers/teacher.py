"""Teachers: scores and labels of unlabelled points that a tree can learn from, and how good they are likely to be."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import softmax

from treewright.arrays import FloatArray, IntArray
from treewright.search.teachers.calibration import Calibration, calibration
from treewright.search.teachers.lesson import Lesson
from treewright.search.teachers.members import Fitted
from treewright.search.teachers.ranks import ranks_among
from treewright.search.teachers.slopes import rank_odds

__all__ = ["Exam", "Likely", "Teacher", "TeacherMember", "TeacherRecord", "Voter"]

_NOISE = 0.05
"""Of the range of the scores, for variety."""


@dataclass(frozen=True)
class TeacherMember:
    """One of the classifiers of a teacher."""

    name: str
    share: float
    """Of the scores of the teacher."""
    score: float
    """Share of pairs of labels left out that it orders rightly, NaN where that was not measured."""


@dataclass(frozen=True)
class TeacherRecord:
    """What a teacher was and how it scored.

    Attributes
    ----------
    name : str
        "auto", "labels", "probabilities", or the class of the estimator.
    members : tuple of TeacherMember
        What it was made of.
    refined : float
        Share of the scores that come from classifiers fitted again on all rows, the unlabelled ones with the labels so
        far within the totals.

    Examples
    --------
    >>> print(TeacherRecord("auto", (TeacherMember("extra trees", 1.0, 0.91),), 0.25))
    auto: extra trees (orders 91.0 % of pairs of labels left out rightly), a quarter refined on its own labels
    """

    name: str
    members: tuple[TeacherMember, ...] = ()
    refined: float = 0.0

    @property
    def score(self) -> float:
        """Share of pairs of labels left out that its members order rightly, on average; NaN if not measured."""
        known = [(m.share, m.score) for m in self.members if np.isfinite(m.score) and m.share > 0]
        return float(np.average([s for _, s in known], weights=[w for w, _ in known])) if known else float("nan")

    def __str__(self) -> str:
        if not self.members:
            return self.name
        parts = []
        for m in self.members:
            share = "" if len(self.members) == 1 else f"{m.share:.0%} "
            known = f" (orders {m.score:.1%} of pairs of labels left out rightly)" if np.isfinite(m.score) else ""
            parts.append(f"{share}{m.name}{known}".replace("%)", " %)").replace("% of", " % of"))
        words = {0.25: "a quarter", 0.5: "half", 1.0: "all"}
        share = next((word for value, word in words.items() if abs(value - self.refined) < 0.05), f"{self.refined:.0%}")
        refined = f", {share} refined on its own labels" if self.refined >= 0.005 else ""
        return f"{self.name}: {', '.join(parts)}{refined}"


@dataclass(frozen=True, eq=False)
class Voter:
    """A fitted classifier of a teacher, and what its scores mean among those of the unlabelled points."""

    fitted: Fitted
    share: float
    """Of the scores of the teacher."""
    reference: FloatArray | None
    """Scores of the unlabelled points, each column sorted, by which others become ranks; None for probabilities."""

    def scores(self, X: FloatArray, n_classes: int) -> FloatArray:
        """Scores of points with features of unit spread; classes that it does not know have 0."""
        raw, table = self.fitted.scores(X), np.zeros((len(X), n_classes))
        if self.reference is not None:
            columns = zip(self.reference.T, raw.T, strict=True)
            raw = np.column_stack([ranks_among(known, values) for known, values in columns])
        table[:, self.fitted.classes] = raw
        return table


@dataclass(frozen=True, eq=False)
class Exam:
    """What a teacher says who did not see some of the labels."""

    left_out: IntArray
    """Labelled points whose labels it did not see, as numbers among the labelled ones."""
    scores: FloatArray
    """What it says of them; shape (n_left_out, n_classes)."""
    hidden: FloatArray
    """What it says of the unlabelled points; shape (n_unlabelled, n_classes)."""


@dataclass(frozen=True, eq=False)
class Likely:
    """Calibrated probabilities of the classes at the points of a lesson: as often right as they say."""

    known: FloatArray
    """At the labelled points, each by classifiers that did not see its label; shape (n_labelled, n_classes)."""
    hidden: FloatArray
    """At the unlabelled points; shape (n_unlabelled, n_classes)."""


@dataclass(eq=False)
class Teacher:
    """Scores of the unlabelled points, comparable between points and, without totals, between classes.

    Attributes
    ----------
    lesson : Lesson
        The points.
    scores : ndarray of shape (n_unlabelled, n_classes)
        How well each class fits.
    record : TeacherRecord
        What it was.
    parts : list of ndarray
        Scores that it is a mixture of.
    voters : list of Voter
        Classifiers that can be asked for other points; empty where scores were given.
    slope : ndarray of shape (n_classes,), or float
        By how much the log-odds of each class rise with those of its rank, as labels left out say.
    exams : list of Exam
        What it says without some of the labels, where that was asked for.
    left_out : ndarray of shape (n_labelled, n_classes) or None
        Scores of the labelled points, each by classifiers that did not see its label, where that was asked for and
        there were labels enough.
    ranks : bool
        Whether scores are ranks, as they are where totals are known, or else probabilities.
    n_scored : int
        Points among which they are ranks.
    """

    lesson: Lesson
    scores: FloatArray
    record: TeacherRecord
    parts: list[FloatArray] = field(default_factory=list)
    voters: list[Voter] = field(default_factory=list)
    slope: FloatArray | float = 1.0
    exams: list[Exam] = field(default_factory=list)
    left_out: FloatArray | None = None
    ranks: bool = False
    n_scored: int = 0

    def __post_init__(self) -> None:
        if len(self.scores):
            self.ranks, self.n_scored = self.lesson.totals is not None, len(self.scores)

    def without_points(self) -> Teacher:
        """What it takes to be asked for other points, and none of the points it learned from: what a file keeps."""
        told = self.lesson
        nothing = Lesson(told.X[:0], told.y[:0], told.weight[:0], told.hidden[:0], told.n_classes)
        return replace(self, lesson=nothing, scores=self.scores[:0], parts=[], exams=[], left_out=None)

    @classmethod
    def told(cls, lesson: Lesson, table: FloatArray, name: str) -> Teacher:
        """Of scores that somebody gave, comparable between classes; their size does not matter."""
        away = table - table.mean(axis=1, keepdims=True)
        spread = float(away.std()) if away.size else 0.0
        return cls(lesson, table if lesson.totals is None or not spread else away / spread, TeacherRecord(name))

    def labels(self) -> IntArray:
        """The most likely labels within the totals."""
        return self.lesson.labels(self.scores)

    def varied(self, rng: np.random.Generator, chance: float = 1.0) -> IntArray:
        """Labels from a random mixture of the scores, for variety; of it `chance` is random and the rest as it is."""
        tables = [self.scores, *self.parts]
        share = chance * rng.dirichlet(np.ones(len(tables)))
        share[0] += 1.0 - chance
        mixed: Any = sum(s * table for s, table in zip(share, tables, strict=True))
        return self.lesson.labels(mixed + _NOISE * rng.normal(size=self.scores.shape))

    def asked(self, X: FloatArray) -> FloatArray:
        """Scores of other points, in the units of the lesson."""
        table = np.zeros((len(X), self.lesson.n_classes))
        for voter in self.voters if len(X) else []:  # estimators refuse to be asked for nothing
            table += voter.share * voter.scores(X, self.lesson.n_classes)
        return table

    @cached_property
    def calibration(self) -> Calibration | None:
        """What makes probabilities of the logarithms of its scores; None if labels left out do not say.

        With totals the slopes of ranks are by labels left out already, and levels are the matter of the totals.
        """
        if self.left_out is None or self.ranks:
            return None
        return calibration(self._logs(self.left_out), self.lesson.y, self.lesson.weight)

    def likely(self) -> Likely | None:
        """Calibrated probabilities at the points of the lesson, without totals; None if labels left out do not say."""
        if self.left_out is None or self.calibration is None:
            return None
        return Likely(self.calibration.shares(self._logs(self.left_out)), self.likely_at(self.scores))

    def likely_at(self, scores: FloatArray) -> FloatArray:
        """Calibrated probabilities of points with these scores, of those that it was :meth:`asked` for also."""
        if self.calibration is None:
            return np.asarray(softmax(self.log_odds(scores), axis=1))
        return self.calibration.shares(self._logs(scores))

    def _logs(self, scores: FloatArray) -> FloatArray:
        """Logarithms of probabilities; labels cannot show that one is smaller than what half of one more would be."""
        return np.asarray(np.log(np.maximum(scores, 0.5 / (len(self.lesson.y) + 1.0))))

    def log_odds(self, scores: FloatArray) -> FloatArray:
        """Scores as logarithms of unnormalized probabilities: ranks by their log-odds, probabilities as they are."""
        least = 0.5 / (self.n_scored + 1.0)
        if not self.ranks:
            return np.asarray(np.log(np.clip(scores, least, 1.0 - least)))
        return np.asarray(self.slope * rank_odds(scores, least))
