"""The automatic teacher as a classifier of scikit-learn, for whoever scores rows by one."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import log_softmax, softmax
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from treewright.core.arrays import FloatArray
from treewright.core.budget import Budget
from treewright.data import of_unit_spread
from treewright.optimize.settings import TeacherSettings
from treewright.teachers.auto import auto_teacher
from treewright.teachers.points import TeacherPoints
from treewright.teachers.record import TeacherRecord
from treewright.totals.scores import ClassScores

__all__ = ["TaughtScores", "TeacherClassifier"]

_BLOCK_CELLS = 1_000_000
"""Numbers that are scored at once: more of them would only wait for memory."""


class TeacherClassifier(ClassifierMixin, BaseEstimator):
    """Forests, boosting, a kernel machine, a tree and logistic regression, pooled by how likely they find labels.

    Where it is told of unlabelled rows and their totals (:meth:`learn`), members are refined on their own labels within
    the totals if labels are few.

    Parameters
    ----------
    random_state : int, RandomState or None
        Seed.
    members : list of str or None
        Names of the classifiers, as ``record_`` has them, where they are chosen already.

    Examples
    --------
    >>> X, y = np.arange(20.0)[:, None], np.repeat(["a", "b"], 10)
    >>> TeacherClassifier(random_state=0).fit(X, y).predict([[1.0], [18.0]]).tolist()
    ['a', 'b']
    """

    def __init__(self, random_state: Any = None, members: list[str] | None = None) -> None:
        self.random_state = random_state
        self.members = members

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit on labelled rows alone."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        classes, numbers = np.unique(y, return_inverse=True)
        weight = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return self.learn(TeacherPoints(X, numbers, weight, X[:0], len(classes)), classes, Budget())

    def learn(
        self, points: TeacherPoints, classes: Any, budget: Budget, settings: TeacherSettings = TeacherSettings()
    ) -> Self:
        """Fit on labelled and unlabelled rows.

        Parameters
        ----------
        points : TeacherPoints
            The rows; each class has labels.
        classes : ndarray of shape (n_classes,)
            Labels of the classes.
        budget : Budget
            Ends the work early.
        settings : TeacherSettings
            How much is done.
        """
        # Without rows to be labelled, scores are compared with those of the labelled ones.
        told = (
            points
            if len(points.hidden)
            else TeacherPoints(points.X, points.y, points.weight, points.X, points.n_classes)
        )
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self.classes_, self.n_features_in_ = np.asarray(classes), points.X.shape[1]
        self.centre_, self.spread_ = told.spread
        teacher = auto_teacher(told, seed, budget, chosen=self.members, settings=settings)
        self.teacher_ = teacher.without_points()
        self._left_out = np.asarray(log_softmax(teacher.scores, axis=1))
        return self

    @property
    def record_(self) -> TeacherRecord:
        """What it is made of, and how its members score."""
        return self.teacher_.record

    def predict_proba(self, X: Any) -> FloatArray:
        """Predict probabilities of the classes, as frequent as they are among the labels."""
        check_is_fitted(self, "teacher_")
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        scores = np.empty((len(rows), len(self.classes_)))
        step = max(1, _BLOCK_CELLS // rows.shape[1])
        with config_context(assume_finite=True):  # they were looked at above
            for first in range(0, len(rows), step):
                block = of_unit_spread(rows[first : first + step], self.centre_, self.spread_)
                scores[first : first + step] = self.teacher_.asked(block)
        return np.asarray(softmax(scores, axis=1))

    def predict(self, X: Any) -> Any:
        """Predict classes."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def left_out_scores(self) -> FloatArray:
        """Log-probabilities of the unlabelled rows, by classifiers that were not fitted to their labels; told once."""
        table = self._left_out
        del self._left_out
        return table


class TaughtScores(ClassScores):
    """Scores of a teacher; of the rows to be labelled those that it gave before it knew their labels."""

    def adapt(self, X: Any) -> FloatArray:
        """Scores of the rows to be labelled, in the order in which it learned them."""
        if not X.shape[0]:
            return super().adapt(X)
        table = self.classifier.left_out_scores()
        self.floor = float(np.exp(table.min())) / 2
        return np.asarray(table)
