"""Teachers: scores and labels of unlabelled points that a tree can learn from, and how good they are likely to be."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from treewright.arrays import FloatArray, IntArray
from treewright.search.teachers.lesson import Lesson, ranked

__all__ = ["Teacher", "TeacherMember", "TeacherRecord"]

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
    """

    lesson: Lesson
    scores: FloatArray
    record: TeacherRecord
    parts: list[FloatArray] = field(default_factory=list)

    @classmethod
    def told(cls, lesson: Lesson, table: FloatArray, name: str) -> Teacher:
        """Of scores that somebody gave."""
        return cls(lesson, np.asarray(table if lesson.totals is None else ranked(table)), TeacherRecord(name))

    def labels(self) -> IntArray:
        """The most likely labels within the totals."""
        return self.lesson.labels(self.scores)

    def varied(self, rng: np.random.Generator) -> IntArray:
        """Labels from a random mixture of the scores, for variety."""
        tables = [self.scores, *self.parts]
        share = rng.dirichlet(np.ones(len(tables)))
        mixed: Any = sum(s * table for s, table in zip(share, tables, strict=True))
        return self.lesson.labels(mixed + _NOISE * rng.normal(size=self.scores.shape))

    def certainty(self) -> FloatArray:
        """How far the score of each point's label is above the next best class, as ranks in (0, 1]."""
        labels, rows = self.labels(), np.arange(len(self.scores))
        if not len(rows):
            return np.zeros(0)
        others = self.scores.copy()
        own = others[rows, labels]
        others[rows, labels] = -np.inf
        return ranked((own - others.max(axis=1))[:, None])[:, 0] + 1.0 / len(rows)
