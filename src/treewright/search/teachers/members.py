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
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from treewright.arrays import FloatArray, IntArray
from treewright.budget import Budget
from treewright.search.teachers.gaussian import SharedGaussian
from treewright.search.teachers.kernel_machine import KernelMachine

__all__ = ["MEMBERS", "Fitted", "Task", "kernel_fits", "out_of_bag", "principal_axes"]

_KERNEL_POINTS = 3000
"""Up to this many points a kernel machine is soon fitted."""
_KERNEL_WORK = 3e9
"""Products of features, pairs of points and pairs of classes that a kernel machine may take."""
_LINEAR_CELLS = 3_000_000
"""Points times features times classes that a logistic regression is fitted on."""
_LINEAR_STEPS, _ITERATION_SECONDS = 300, 1e-8
"""Most iterations of it, and what one takes for each of these."""
_GAUSSIAN_POINTS, _GAUSSIAN_FEATURES = 20_000, 500
"""Points that normal distributions are fitted on, and features up to which one covariance is."""
_SMOOTHING = 0.01
"""Share of the largest variance that naive Bayes adds to all of them."""
_FOREST_POINTS = 20_000
"""Points that a forest is fitted on."""
_BATCH = 10
"""Trees that are added to it at a time."""
_SMALL_CELLS = 20_000
"""Points times features up to which all its trees are there at once."""
_AXES, _AXES_CELLS = 30, 5_000_000
"""Principal axes, and points times features from which they are found."""
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

    def scores(self, X: FloatArray) -> FloatArray:
        """Scores of points, a column for each class that it knows: probabilities, or a decision function."""
        if isinstance(self.model, KernelMachine):
            return self.model.scores(X)
        if self.axes is None:
            return np.asarray(self.model.predict_proba(X))
        step = max(1, _TURNED_CELLS // (X.shape[1] + self.axes.shape[1]))
        blocks = (_turned(X[first : first + step], self.axes) for first in range(0, len(X), step))
        return np.vstack([self.model.predict_proba(block) for block in blocks])


def linear(task: Task, budget: Budget) -> Fitted:
    """Logistic regression, on a sample where points are many, in fewer steps where time is short."""
    row = task.X.shape[1] * len(np.unique(task.y))
    chosen = _some(task, max(100, _LINEAR_CELLS // row))
    each, steps = _ITERATION_SECONDS * row * len(chosen), _LINEAR_STEPS
    if not budget.allows(each * steps):
        steps = max(10, int(budget.remaining / each))
    model = LogisticRegression(max_iter=steps)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(task.X[chosen], task.y[chosen], sample_weight=task.weight[chosen])
    return Fitted(model)


def discriminant(task: Task, budget: Budget) -> Fitted | None:
    """Normal distributions with one covariance; None where there are too many features for it."""
    if task.X.shape[1] > _GAUSSIAN_FEATURES:
        return None
    chosen = _some(task, _GAUSSIAN_POINTS)
    return Fitted(SharedGaussian(task.X[chosen], task.y[chosen], task.weight[chosen]))


def naive_bayes(task: Task, budget: Budget) -> Fitted:
    """Normal distributions of independent features."""
    chosen = _some(task, _GAUSSIAN_POINTS)
    model = GaussianNB(var_smoothing=_SMOOTHING)
    return Fitted(model.fit(task.X[chosen], task.y[chosen], sample_weight=task.weight[chosen]))


def kernel(task: Task, budget: Budget) -> Fitted | None:
    """A support vector machine with a Gaussian kernel; None where there are too many points for it."""
    if not kernel_fits(len(task.X), task.n_asked, task.X.shape[1], len(np.unique(task.y))):
        return None
    return Fitted(KernelMachine.fitted(task.X, task.y, task.weight, task.seed, task.n_asked))


def extra_trees(task: Task, budget: Budget) -> Fitted:
    """Extremely randomized trees: a few, and a few more as long as there is time."""
    return _forest(ExtraTreesClassifier(0, random_state=task.seed, warm_start=True, n_jobs=task.n_jobs), task, budget)


def random_forest(task: Task, budget: Budget) -> Fitted:
    """A random forest, likewise."""
    return _forest(RandomForestClassifier(0, random_state=task.seed, warm_start=True, n_jobs=task.n_jobs), task, budget)


def turned_trees(task: Task, budget: Budget) -> Fitted:
    """Extra trees that see, besides the features, where points lie along principal axes: splits may be oblique."""
    axes = principal_axes(task.X, task.X[:0], task.seed) if task.axes is None else task.axes
    turned = replace(task, X=_turned(task.X, axes))
    return Fitted(extra_trees(turned, budget).model, axes)


MEMBERS: dict[str, Callable[[Task, Budget], Fitted | None]] = {
    "extra trees": extra_trees,
    "random forest": random_forest,
    "kernel machine": kernel,
    "logistic regression": linear,
    "extra trees with principal components": turned_trees,
    "discriminant analysis": discriminant,
    "naive Bayes": naive_bayes,
}
"""By name."""


def kernel_fits(n_points: int, n_asked: int, n_features: int, n_classes: int) -> bool:
    """Whether a kernel machine on so many points is soon fitted and asked."""
    n_all = n_points + n_asked
    work = float(n_points) * n_all * n_features + float(n_all) * n_classes**2 * 100.0
    return n_points <= _KERNEL_POINTS and work <= _KERNEL_WORK


def principal_axes(X: FloatArray, others: FloatArray, seed: int) -> FloatArray:
    """Directions along which points, labelled or not, vary most, in columns.

    Examples
    --------
    >>> X = np.array([[1.0, 1.0], [-1.0, -1.0], [0.1, -0.1], [-0.1, 0.1]])
    >>> np.abs(principal_axes(X, X, 0)[:, 0]).round(3).tolist()
    [0.707, 0.707]
    """
    n, most = len(X) + len(others), max(100, _AXES_CELLS // X.shape[1])
    some = np.arange(n) if n <= most else np.sort(np.random.default_rng(seed).choice(n, most, replace=False))
    points = np.vstack([X[some[some < len(X)]], others[some[some >= len(X)] - len(X)]])
    found = PCA(min(_AXES, *points.shape), random_state=seed).fit(points)
    return np.ascontiguousarray(found.components_.T)


def _turned(X: FloatArray, axes: FloatArray) -> FloatArray:
    return np.hstack([X, X @ axes])


def out_of_bag(task: Task, budget: Budget) -> tuple[Fitted, FloatArray] | None:
    """Bootstrapped extra trees with leaves of three points at least, and their votes for points they were not grown on.

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
    chosen = _some(task, _FOREST_POINTS)
    X, y, weight = task.X[chosen], task.y[chosen], task.weight[chosen]
    batch = task.n_trees if X.size <= _SMALL_CELLS else _BATCH
    for n_estimators in range(batch, max(task.n_trees, batch) + 1, batch):
        forest.set_params(n_estimators=n_estimators)
        forest.fit(X, y, sample_weight=weight)
        if budget.over:
            break
    return Fitted(forest)


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
