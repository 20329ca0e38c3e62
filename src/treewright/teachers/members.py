"""The classifiers of a teacher, each fitted on as many points as its method takes in about a second.

Points have features of unit spread. What there is no time for is left out, but never logistic regression where nothing
else is there.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.core.threads import one_thread
from treewright.optimize.settings import TeacherSettings
from treewright.teachers.gaussian import SharedGaussian
from treewright.teachers.kernel_machine import KernelMachine

__all__ = ["COST", "MEMBERS", "Fitted", "Task", "kernel_fits", "out_of_bag_votes", "principal_axes"]

_ITERATION_SECONDS = 1e-8
"""What an iteration of a logistic regression takes for each point times feature times class."""
_SMOOTHING = 0.01
"""Share of the largest variance that naive Bayes adds to all of them."""
_TURNED_CELLS = 2_000_000
"""Numbers of turned points that are there at once."""


@dataclass(frozen=True, eq=False)
class Task:
    """What a classifier is fitted to."""

    X: FloatArray
    y: IntArray
    weight: FloatArray
    n_asked: int
    """Points that it will be asked for."""
    n_trees: int
    """Trees of a forest."""
    seed: int
    n_jobs: int = 1
    axes: FloatArray | None = None
    """Directions in columns, along which turned trees have further features; None for those of the points."""
    settings: TeacherSettings = TeacherSettings()


@dataclass(frozen=True)
class Fitted:
    """A fitted classifier."""

    model: Any
    axes: FloatArray | None = None
    """Directions along which it has further features."""

    @property
    def classes(self) -> IntArray:
        """Class numbers of its columns."""
        return np.asarray(self.model.classes_)

    @property
    def probabilistic(self) -> bool:
        """Whether scores are probabilities."""
        return hasattr(self.model, "predict_proba")

    def logs(self, X: FloatArray, n_classes: int, least: float) -> FloatArray:
        """Scores of points in all classes, shape (n_points, n_classes): logarithms, or a decision function."""
        return self.as_logs(self.scores(X), n_classes, least)

    def as_logs(self, scores: FloatArray, n_classes: int, least: float) -> FloatArray:
        """The same of scores that it gave.

        Probabilities below `least` count as that, which classes have that it does not know; these are one below the
        worst of the others where scores are no probabilities.
        """
        if self.probabilistic:
            table = np.full((len(scores), n_classes), np.log(least))
            table[:, self.classes] = np.log(np.maximum(scores, least))
            return table
        table = np.repeat(scores.min(axis=1)[:, None] - 1.0, n_classes, axis=1)
        table[:, self.classes] = scores
        return table

    def scores(self, X: FloatArray) -> FloatArray:
        """Scores of points, a column for each class that it knows: probabilities, or a decision function."""
        if isinstance(self.model, KernelMachine):
            return self.model.scores(X)
        if self.axes is None:
            return np.asarray(self.model.predict_proba(X))
        step = max(1, _TURNED_CELLS // (X.shape[1] + self.axes.shape[1]))
        blocks = (_turned(X[first : first + step], self.axes) for first in range(0, len(X), step))
        return np.vstack([self.model.predict_proba(block) for block in blocks])


def linear_member(task: Task, budget: Budget) -> Fitted:
    """Member of a teacher: logistic regression, on a sample of many points, in fewer steps if time is short."""
    row = task.X.shape[1] * len(np.unique(task.y))
    X, y, weight = _sampled(task, max(100, task.settings.linear_cells // row))
    each, steps = _ITERATION_SECONDS * row * len(X), task.settings.linear_steps
    if not budget.allows(each * steps):
        steps = max(10, int(budget.remaining / each))
    model = LogisticRegression(max_iter=steps)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y, sample_weight=weight)
    return Fitted(model)


def discriminant_member(task: Task, budget: Budget) -> Fitted | None:
    """Member of a teacher: normal distributions with one covariance; None with too many features."""
    if task.X.shape[1] > task.settings.gaussian_features:
        return None
    return Fitted(SharedGaussian(*_sampled(task, task.settings.gaussian_points)))


def naive_bayes_member(task: Task, budget: Budget) -> Fitted:
    """Member of a teacher: normal distributions of independent features."""
    return Fitted(GaussianNB(var_smoothing=_SMOOTHING).fit(*_sampled(task, task.settings.gaussian_points)))


def kernel_member(task: Task, budget: Budget) -> Fitted | None:
    """Member of a teacher: a support vector machine with a Gaussian kernel; None with too many points."""
    if not kernel_fits(len(task.X), task.n_asked, task.X.shape[1], len(np.unique(task.y)), task.settings):
        return None
    return Fitted(KernelMachine.fitted(task.X, task.y, task.weight, task.seed, task.n_asked))


def extra_trees_member(task: Task, budget: Budget) -> Fitted:
    """Member of a teacher: extremely randomized trees, a few, and a few more as long as there is time."""
    return _forest(ExtraTreesClassifier(0, random_state=task.seed, warm_start=True, n_jobs=task.n_jobs), task, budget)


def random_forest_member(task: Task, budget: Budget) -> Fitted:
    """Member of a teacher: a random forest, as far as there is time."""
    return _forest(RandomForestClassifier(0, random_state=task.seed, warm_start=True, n_jobs=task.n_jobs), task, budget)


def turned_trees_member(task: Task, budget: Budget) -> Fitted:
    """Member of a teacher: extra trees that also see principal axes, so that splits may be oblique."""
    axes = principal_axes(task.X, task.X[:0], task.seed, task.settings) if task.axes is None else task.axes
    turned = replace(task, X=_turned(task.X, axes))
    return Fitted(extra_trees_member(turned, budget).model, axes)


def boosting_member(task: Task, budget: Budget) -> Fitted:
    """Member of a teacher: small trees one after the other, each on what those before have wrong."""
    settings = task.settings
    X, y, weight = _sampled(task, settings.boosted_points)
    few_rounds = task.n_asked > settings.many_asked
    many = len(X) >= settings.many_boosted and not few_rounds
    rounds = settings.many_boosted_rounds if many else settings.boosted_rounds
    model = HistGradientBoostingClassifier(
        learning_rate=settings.many_asked_step if few_rounds else settings.boosted_step,
        max_iter=settings.many_asked_rounds if few_rounds else rounds,
        max_leaf_nodes=31 if many else 8,
        min_samples_leaf=int(np.clip(len(X) // 20, 3, 20)),
        l2_regularization=1.0,
        early_stopping=False,
        random_state=task.seed,
    )
    with one_thread():
        return Fitted(model.fit(X, y, sample_weight=weight))


def single_tree_member(task: Task, budget: Budget) -> Fitted:
    """Member of a teacher: one tree, as CART grows it."""
    X, y, weight = _sampled(task, task.settings.forest_points)
    model = DecisionTreeClassifier(min_samples_leaf=int(np.clip(len(X) // 50, 1, 5)), random_state=task.seed)
    return Fitted(model.fit(X, y, sample_weight=weight))


MEMBERS: dict[str, Callable[[Task, Budget], Fitted | None]] = {
    "extra trees": extra_trees_member,
    "random forest": random_forest_member,
    "kernel machine": kernel_member,
    "logistic regression": linear_member,
    "extra trees with principal components": turned_trees_member,
    "discriminant analysis": discriminant_member,
    "naive Bayes": naive_bayes_member,
    "boosting": boosting_member,
    "tree": single_tree_member,
}
"""By name."""
COST = {
    "tree": 0.0,
    "logistic regression": 1.0,
    "naive Bayes": 2.0,
    "discriminant analysis": 2.0,
    "kernel machine": 3.0,
    "extra trees": 4.0,
    "random forest": 5.0,
    "boosting": 6.0,
    "extra trees with principal components": 7.0,
}
"""What they take, and how hard they are to look through, one beside the other."""


def kernel_fits(n_points: int, n_asked: int, n_features: int, n_classes: int, settings: TeacherSettings) -> bool:
    """Whether the kernel machine of a teacher is soon fitted to so many points and asked."""
    n_all = n_points + n_asked
    work = float(n_points) * n_all * n_features + float(n_all) * n_classes**2 * 100.0
    return n_points <= settings.kernel_points and work <= settings.kernel_work


def principal_axes(X: FloatArray, others: FloatArray, seed: int, settings: TeacherSettings) -> FloatArray:
    """Directions for a teacher along which points, labelled or not, vary most, in columns.

    Examples
    --------
    >>> X = np.array([[1.0, 1.0], [-1.0, -1.0], [0.1, -0.1], [-0.1, 0.1]])
    >>> np.abs(principal_axes(X, X, 0, TeacherSettings())[:, 0]).round(3).tolist()
    [0.707, 0.707]
    """
    n, most = len(X) + len(others), max(100, settings.axes_cells // X.shape[1])
    some = np.arange(n) if n <= most else np.sort(np.random.default_rng(seed).choice(n, most, replace=False))
    points = np.vstack([X[some[some < len(X)]], others[some[some >= len(X)] - len(X)]])
    found = PCA(min(settings.axes, *points.shape), random_state=seed).fit(points)
    return np.ascontiguousarray(found.components_.T)


def _turned(X: FloatArray, axes: FloatArray) -> FloatArray:
    return np.hstack([X, X @ axes])


def out_of_bag_votes(task: Task, budget: Budget) -> tuple[Fitted, FloatArray] | None:
    """Bootstrapped extra trees of a teacher, leaves of at least three points, and votes for points not grown on.

    None where time was over before each point had a tree that did not see it. Points are not sampled.
    """
    settings = {"min_samples_leaf": 3, "bootstrap": True, "random_state": task.seed, "n_jobs": task.n_jobs}
    model = ExtraTreesClassifier(task.n_trees, oob_score=False, **settings)
    if budget.over:
        return None
    model.fit(task.X, task.y, sample_weight=task.weight)
    votes, asked = np.zeros((len(task.X), len(model.classes_))), np.zeros(len(task.X))
    for tree, drawn in zip(model.estimators_, model.estimators_samples_, strict=True):
        left_out = np.ones(len(task.X), dtype=bool)
        left_out[drawn] = False
        if left_out.any():
            votes[left_out] += tree.predict_proba(task.X[left_out])
        asked += left_out
    if not asked.all():
        seen = asked == 0
        votes[seen], asked[seen] = model.predict_proba(task.X[seen]), 1.0
    return Fitted(model), votes / asked[:, None]


def _forest(forest: ExtraTreesClassifier | RandomForestClassifier, task: Task, budget: Budget) -> Fitted:
    X, y, weight = _sampled(task, task.settings.forest_points)
    batch = task.n_trees if X.size <= task.settings.small_cells else task.settings.forest_batch
    for n_estimators in range(batch, max(task.n_trees, batch) + 1, batch):
        forest.set_params(n_estimators=n_estimators)
        forest.fit(X, y, sample_weight=weight)
        if budget.over:
            break
    return Fitted(forest)


def _sampled(task: Task, most: int) -> tuple[FloatArray, IntArray, FloatArray]:
    """Points, classes and weights, of some where there are more than `most`: each class weighs as it does among all."""
    chosen = _some(task, most)
    if len(chosen) == len(task.y):
        return task.X, task.y, task.weight
    y, weight, n = task.y[chosen], task.weight[chosen], int(task.y.max()) + 1
    factor = np.bincount(task.y, task.weight, n) / np.maximum(np.bincount(y, weight, n), 1e-300)
    return task.X[chosen], y, weight * factor[y]


def _some(task: Task, most: int) -> IntArray:
    """All points or, where there are more than `most`, a sample with as many of each class as there can be."""
    y = task.y
    if len(y) <= most:
        return np.arange(len(y))
    order = np.random.default_rng(task.seed).permutation(len(y))
    # In the order of how many of its class come before a point.
    by_class = order[np.argsort(y[order], kind="stable")]
    counts = np.bincount(y)
    before = np.empty(len(y), dtype=np.int64)
    before[by_class] = np.arange(len(y)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.sort(np.argsort(before, kind="stable")[:most])
