"""Guides: what ordinary classifiers, cut at the known totals, say about the unlabelled points.

Where labels are few, optimal trees are many, and the choice among them decides accuracy. Scores of several classifiers
fitted on the labelled points are averaged as ranks, turned into labels within the totals, and refined by fitting again
on labelled and unlabelled points together. Trees are then sought that agree with such labels.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors
from sklearn.svm import SVC

from treewright.arrays import FloatArray, IntArray
from treewright.budget import Budget
from treewright.data import PointTotals
from treewright.search.totals.points import divide_points

__all__ = ["Guide"]

_KERNEL_POINTS = 3000
"""Up to this many points a kernel machine is fast enough to be a guide."""


class Guide:
    """Scores of the unlabelled points, and labels drawn from them within the totals.

    Parameters
    ----------
    X : ndarray of shape (n_points, n_features)
        All points.
    y : ndarray of int
        Class numbers, -1 unlabelled.
    weight : ndarray
        Weights of the labelled points.
    totals : PointTotals
        Rows that the unlabelled points stand for, and the allowed counts.
    seed : int
        Seed of the classifiers.
    budget : Budget
        Classifiers are left out when time runs short; logistic regression never is.
    """

    def __init__(
        self,
        X: FloatArray,
        y: IntArray,
        weight: FloatArray,
        totals: PointTotals,
        seed: int,
        budget: Budget,
    ) -> None:
        self.totals, self.n_classes = totals, totals.n_classes
        known = y >= 0
        spread = X.std(axis=0)
        Z = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        self._labelled, self._unlabelled, self._y = Z[known], Z[~known], y[known]
        self._weight = weight[known] / weight[known].mean()
        self._seed = seed
        self.scores = self._first_scores(budget)
        self.mean: FloatArray = np.mean(self.scores, axis=0)
        if not budget.over:
            self.mean = self._refined(self.mean)

    def labels(self) -> IntArray:
        """The most likely labels within the totals."""
        return divide_points(self.mean, self.totals)

    def varied(self, rng: np.random.Generator) -> IntArray:
        """Labels from a random mixture of the scores, for variety."""
        share = rng.dirichlet(np.ones(len(self.scores) + 1))
        mixed = share[0] * self.mean + sum(s * score for s, score in zip(share[1:], self.scores, strict=True))
        mixed = mixed + 0.05 * rng.normal(size=mixed.shape)
        return divide_points(mixed, self.totals)

    def _first_scores(self, budget: Budget) -> list[FloatArray]:
        if len(np.unique(self._y)) < 2 or not len(self._unlabelled):
            return [self._ranks(self._novelty())]
        scores = [self._scored(LogisticRegression(class_weight="balanced", max_iter=300))]
        if not budget.over:
            forest = ExtraTreesClassifier(200, class_weight="balanced", random_state=self._seed)
            scores.append(self._scored(forest))
        if not budget.over and len(self._labelled) <= _KERNEL_POINTS:
            scores.append(self._scored(SVC(class_weight="balanced", decision_function_shape="ovr")))
        return scores

    def _refined(self, scores: FloatArray, rounds: int = 3) -> FloatArray:
        """Fit on labelled points and on unlabelled ones with the labels so far, a few times."""
        if len(np.unique(self._y)) < 2 or not len(self._unlabelled):
            return scores
        n_known, n_hidden = len(self._labelled), len(self._unlabelled)
        small = n_known + n_hidden <= _KERNEL_POINTS
        weight = np.concatenate([3.0 * self._weight, np.full(n_hidden, min(1.0, 3.0 * n_known / max(1, n_hidden)))])
        points = np.vstack([self._labelled, self._unlabelled])
        first = scores
        for _ in range(rounds):
            guessed = divide_points(scores, self.totals)
            both = np.concatenate([self._y, guessed])
            model = SVC() if small else LogisticRegression(max_iter=100)
            scores = self._scored(model, points, both, weight)
        return scores if small else (scores + first) / 2

    def _scored(
        self,
        model: LogisticRegression | ExtraTreesClassifier | SVC,
        points: FloatArray | None = None,
        y: IntArray | None = None,
        weight: FloatArray | None = None,
    ) -> FloatArray:
        points, y = (self._labelled, self._y) if points is None or y is None else (points, y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(points, y, sample_weight=self._weight if weight is None else weight)
        if hasattr(model, "decision_function"):
            raw = model.decision_function(self._unlabelled)
            raw = np.column_stack([-raw, raw]) if raw.ndim == 1 else raw
        else:
            raw = model.predict_proba(self._unlabelled)
        if len(model.classes_) == self.n_classes:
            return self._ranks(raw)
        table = self._novelty()
        table[:, model.classes_] = raw
        return self._ranks(table)

    def _novelty(self) -> FloatArray:
        """For a class without labels: the distance to the nearest labelled point; for the others its negative."""
        if not len(self._unlabelled):
            return np.zeros((0, self.n_classes))
        near = NearestNeighbors(n_neighbors=1).fit(self._labelled).kneighbors(self._unlabelled)[0][:, 0]
        table = np.repeat(near[:, None], self.n_classes, axis=1)
        table[:, np.unique(self._y)] *= -1.0
        return table

    @staticmethod
    def _ranks(table: FloatArray) -> FloatArray:
        """Each column as ranks in [0, 1): scores of different classifiers become comparable."""
        return np.argsort(np.argsort(table, axis=0, kind="stable"), axis=0) / max(1, len(table))
