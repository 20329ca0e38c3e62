"""Guides: what ordinary classifiers, cut at the known totals, say about the unlabelled points.

Where labels are few, optimal trees are many, and the choice among them decides accuracy. Scores of several classifiers
fitted on the labelled points are averaged as ranks, turned into labels within the totals, and refined by fitting again
on labelled and unlabelled points together. Trees are then sought that agree with such labels.

Each classifier is fitted on as many points as its method takes in about a second, a forest tree by tree; what there is
no time for is left out, but never logistic regression.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors
from sklearn.svm import SVC
from sklearn.utils.class_weight import compute_sample_weight

from treewright.arrays import FloatArray, IntArray
from treewright.budget import Budget
from treewright.search.s2oct.survey import Survey
from treewright.search.totals.points import divide_points

__all__ = ["Guide"]

_KERNEL_POINTS = 3000
"""Up to this many points a kernel machine is fast enough to be a guide."""
_KERNEL_WORK = 3e9
"""Products of features, pairs of points and pairs of classes that a kernel machine may take."""
_LINEAR_CELLS = 3_000_000
"""Points times features times classes that a logistic regression is fitted on."""
_ITERATION_SECONDS = 1e-8
"""What an iteration of it takes for each of these."""
_FOREST_POINTS = 20_000
"""Points that a forest is fitted on."""
_TREES = 200
"""Trees of the forest."""
_BATCH = 5
"""Trees that are added to it at a time."""
_NEAR_WORK = 2e9
"""Products of features and pairs of points in a search for the nearest labelled point."""
_ROUNDS = 3
"""Rounds of refinement."""


class Guide:
    """Scores of the unlabelled points, and labels drawn from them within the totals.

    Parameters
    ----------
    survey : Survey
        The points.
    seed : int
        Seed of the classifiers.
    budget : Budget
        Classifiers are left out when time runs short; logistic regression never is.
    """

    def __init__(self, survey: Survey, seed: int, budget: Budget) -> None:
        self.totals, self.n_classes, self._seed = survey.totals, survey.model.n_classes, seed
        X = survey.model.X
        mean, spread = X.mean(axis=0), X.std(axis=0)
        spread = np.where(spread > 0, spread, 1.0)
        self._labelled, self._unlabelled = ((part - mean) / spread for part in (survey.X, survey.hidden))
        self._y, self._weight = survey.y, survey.weight / survey.weight.mean()
        self._blind = len(np.unique(self._y)) < 2 or not len(self._unlabelled)
        self.scores = [self._ranks(self._novelty())] if self._blind else self._first_scores(budget)
        self.mean: FloatArray = np.mean(self.scores, axis=0)
        if not self._blind:
            self.mean = self._refined(self.mean, budget)

    def labels(self) -> IntArray:
        """The most likely labels within the totals."""
        return divide_points(self.mean, self.totals)

    def varied(self, rng: np.random.Generator) -> IntArray:
        """Labels from a random mixture of the scores, for variety."""
        share = rng.dirichlet(np.ones(len(self.scores) + 1))
        mixed = share[0] * self.mean + sum(s * score for s, score in zip(share[1:], self.scores, strict=True))
        mixed = mixed + 0.05 * rng.normal(size=mixed.shape)
        return divide_points(mixed, self.totals)

    # ------------------------------------------------------------------ which classifiers, on how many points

    def _first_scores(self, budget: Budget) -> list[FloatArray]:
        balanced = self._weight * compute_sample_weight("balanced", self._y)
        scores = [self._linear(self._labelled, self._y, balanced, 300, budget)]
        if not budget.over:
            scores.append(self._forest(balanced, budget))
        if not budget.over and self._kernel_fits(len(self._labelled)):
            machine = SVC(class_weight="balanced", decision_function_shape="ovr")
            scores.append(self._scored(machine.fit(self._labelled, self._y, self._weight)))
        return scores

    def _refined(self, scores: FloatArray, budget: Budget) -> FloatArray:
        """Fit on labelled points and on unlabelled ones with the labels so far, a few times."""
        n_known, n_hidden = len(self._labelled), len(self._unlabelled)
        small = self._kernel_fits(n_known + n_hidden)
        weight = np.concatenate([3.0 * self._weight, np.full(n_hidden, min(1.0, 3.0 * n_known / max(1, n_hidden)))])
        points = np.vstack([self._labelled, self._unlabelled])
        first = scores
        for _ in range(_ROUNDS):
            if budget.over:
                break
            both = np.concatenate([self._y, divide_points(scores, self.totals)])
            if small:
                scores = self._scored(SVC(decision_function_shape="ovr").fit(points, both, weight))
            else:
                scores = self._linear(points, both, weight, 100, budget)
        return scores if small else (scores + first) / 2

    def _kernel_fits(self, n_points: int) -> bool:
        """Whether a kernel machine on so many points is soon fitted and asked."""
        n_all, n_features = n_points + len(self._unlabelled), self._labelled.shape[1]
        work = float(n_points) * n_all * n_features + float(n_all) * self.n_classes**2 * 100.0
        return n_points <= _KERNEL_POINTS and work <= _KERNEL_WORK

    def _linear(self, points: FloatArray, y: IntArray, weight: FloatArray, steps: int, budget: Budget) -> FloatArray:
        """Scores of a logistic regression, on a sample where points are many, in fewer steps where time is short."""
        row = points.shape[1] * len(np.unique(y))
        chosen = self._some(y, max(100, _LINEAR_CELLS // row))
        possible = min(budget.remaining, 1e6) / (_ITERATION_SECONDS * row * len(chosen))
        model = LogisticRegression(max_iter=int(np.clip(possible, 10, steps)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(points[chosen], y[chosen], sample_weight=weight[chosen])
        return self._scored(model)

    def _forest(self, weight: FloatArray, budget: Budget) -> FloatArray:
        """Scores of extra trees: a few, and a few more as long as there is time."""
        chosen = self._some(self._y, _FOREST_POINTS)
        forest = ExtraTreesClassifier(0, random_state=self._seed, warm_start=True)
        votes: FloatArray = np.zeros((len(self._unlabelled), len(np.unique(self._y))))
        for n_estimators in range(_BATCH, _TREES + 1, _BATCH):
            forest.set_params(n_estimators=n_estimators)
            forest.fit(self._labelled[chosen], self._y[chosen], sample_weight=weight[chosen])
            for tree in forest.estimators_[-_BATCH:]:
                votes += tree.predict_proba(self._unlabelled)
            if budget.over:
                break
        return self._table(votes / len(forest.estimators_), forest.classes_)

    def _some(self, y: IntArray, most: int) -> IntArray:
        """All points or, where there are more than `most`, a sample with as many of each class as there can be."""
        if len(y) <= most:
            return np.arange(len(y))
        order = np.random.default_rng(self._seed).permutation(len(y))
        # In the order of how many of its class come before a point.
        by_class = order[np.argsort(y[order], kind="stable")]
        counts = np.bincount(y)
        before = np.empty(len(y), dtype=np.int64)
        before[by_class] = np.arange(len(y)) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.sort(np.argsort(before, kind="stable")[:most])

    # ------------------------------------------------------------------ scores of the unlabelled points

    def _scored(self, model: LogisticRegression | SVC) -> FloatArray:
        raw = np.asarray(model.decision_function(self._unlabelled))
        return self._table(np.column_stack([-raw, raw]) if raw.ndim == 1 else raw, model.classes_)

    def _table(self, raw: FloatArray, classes: IntArray) -> FloatArray:
        """Ranks of the scores; classes that the classifier does not know have those of their novelty."""
        if len(classes) == self.n_classes:
            return self._ranks(raw)
        table = self._novelty()
        table[:, classes] = raw
        return self._ranks(table)

    def _novelty(self) -> FloatArray:
        """For a class without labels: the distance to the nearest labelled point; for the others its negative."""
        n_hidden, n_features = self._unlabelled.shape
        if not n_hidden:
            return np.zeros((0, self.n_classes))
        known = self._labelled[self._some(self._y, max(100, int(_NEAR_WORK / (n_hidden * n_features))))]
        near = NearestNeighbors(n_neighbors=1).fit(known).kneighbors(self._unlabelled)[0][:, 0]
        table = np.repeat(near[:, None], self.n_classes, axis=1)
        table[:, np.unique(self._y)] *= -1.0
        return table

    @staticmethod
    def _ranks(table: FloatArray) -> FloatArray:
        """Each column as ranks in [0, 1): scores of different classifiers become comparable."""
        ranks = np.empty(table.shape)
        order = np.argsort(table, axis=0, kind="stable")
        np.put_along_axis(ranks, order, np.arange(len(table))[:, None] / max(1, len(table)), axis=0)
        return ranks
