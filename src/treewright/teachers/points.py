"""What a teacher is to learn from, and what its scores say within the totals."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from treewright.core.arrays import FloatArray, IntArray
from treewright.data import PointTotals, mean_and_spread, of_unit_spread
from treewright.totals.points import divide_points

__all__ = ["TeacherPoints", "ordered_pairs"]


@dataclass(frozen=True, eq=False)
class TeacherPoints:
    """Labelled and unlabelled points, numbers only, in any units.

    Attributes
    ----------
    X, y, weight : ndarray
        Labelled points, their class numbers and weights.
    hidden : ndarray of shape (n_unlabelled, n_features)
        Unlabelled points.
    n_classes : int
        Number of classes, those without labels included.
    totals : PointTotals or None
        Counts that the labels of the unlabelled points shall have, where they are known.
    n_others : int
        Points that the teacher will be asked for beside these, where the unlabelled ones are a sample of them.
    """

    X: FloatArray
    y: IntArray
    weight: FloatArray
    hidden: FloatArray
    n_classes: int
    totals: PointTotals | None = None
    n_others: int = 0

    @property
    def n_asked(self) -> int:
        """Points that the teacher is asked for."""
        return max(len(self.hidden), self.n_others)

    def labels(self, scores: FloatArray) -> IntArray:
        """Labels of the unlabelled points by their scores: within the totals, the largest ones where there are none."""
        return scores.argmax(axis=1) if self.totals is None else divide_points(scores, self.totals)

    @property
    def exact(self) -> bool:
        """Whether totals say how many of each class there are in each group, and leave no freedom."""
        return self.totals is not None and bool(np.all(self.totals.low == self.totals.high))

    @property
    def least(self) -> float:
        """Probability below which labels cannot tell one from another: what half of one more would make."""
        return 0.5 / (len(self.y) + 1.0)

    @property
    def present(self) -> IntArray:
        """Classes that have labelled points."""
        return np.unique(self.y)

    def standardized(self) -> TeacherPoints:
        """The same with features of mean 0 and spread 1 over all points."""
        centre, spread = self.spread
        X, hidden = (of_unit_spread(points, centre, spread) for points in (self.X, self.hidden))
        return replace(self, X=X, hidden=hidden)

    @property
    def spread(self) -> tuple[FloatArray, FloatArray]:
        """Mean and spread of each feature over all points; a spread of 1 where it does not vary."""
        return mean_and_spread(self.X, self.hidden)


def ordered_pairs(scores: FloatArray, y: IntArray, weight: FloatArray) -> float:
    """Share of pairs of labelled points, one of a class and one of another, that a teacher's scores order rightly.

    It is the area under the ROC curve, each class against the others, averaged over the classes: how many labels each
    class has, and so how biased a sample is by class, does not matter to it. NaN where there is one class only.

    Examples
    --------
    >>> scores = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    >>> ordered_pairs(scores, np.array([0, 1, 1]), np.ones(3))
    1.0
    """
    rows = np.flatnonzero(np.isfinite(scores).all(axis=1))
    areas = []
    for k in np.unique(y[rows]):
        mine = y[rows] == k
        if mine.all():
            continue
        score, mass = scores[rows, k], weight[rows]
        values, place = np.unique(score, return_inverse=True)
        own = np.bincount(place, mass * mine, len(values))
        others = np.bincount(place, mass * ~mine, len(values))
        below = np.cumsum(others) - others
        areas.append(float(own @ (below + 0.5 * others) / max(own.sum() * others.sum(), 1e-300)))
    return float(np.mean(areas)) if areas else float("nan")
