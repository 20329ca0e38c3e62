"""What the classifiers of a teacher say of labels that they did not see, and which of them are worth making."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from sklearn.model_selection import StratifiedKFold

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.optimize.settings import TeacherSettings
from treewright.teachers.members import Fitted, Task
from treewright.teachers.points import TeacherPoints, ordered_pairs
from treewright.teachers.pool import LEAST_WEIGHT, Pool, equal_pool, needed_classifiers, pooled_scores

__all__ = ["Asked", "LeftOut", "left_out_scores"]

_CHANCE = 1.0
"""By how much the logarithm of the probability of all labels may fall without a classifier, which is chance. A weight
that labels do not need costs half of it on average."""
_MANY_CHANCE = 0.005
"""The same for each label where more than `MANY_ASKED` points are asked for: each classifier takes its time then."""

_SURE = 1.645
"""Standard errors by which one alone has to be better than several. On 30 tables with 5 % labels as many labels of the
others are right with this as without ever taking a tree alone; with 0 it is 0.6 points fewer."""


@dataclass(frozen=True)
class Asked:
    """What is asked of labels left out."""

    fit: Callable[[str, Task, Budget], Fitted | None]
    """Fits a classifier by name."""
    weight: FloatArray
    """Weights of the labelled points."""
    seed: int
    n_jobs: int = 1
    every: bool = False
    """Whether all labelled points are scored, beside those of the folds."""
    hidden: bool = False
    """Whether unlabelled points are scored in each fold."""
    settings: TeacherSettings = TeacherSettings()


@dataclass(eq=False)
class LeftOut:
    """What some classifiers say of labels that they did not see."""

    points: TeacherPoints
    names: list[str]
    """Classifiers, those that there was time for first."""
    numbers: IntArray
    """Labelled points in folds; none where there are too few labels."""
    fold: IntArray
    """Their folds."""
    weight: FloatArray
    """Their weights."""
    tables: list[FloatArray] = field(default_factory=list)
    """Scores by each classifier that there was time for, of the points in folds."""
    rest: list[FloatArray] = field(default_factory=list)
    """Of the other labelled points, if they are asked for."""
    hidden: list[list[FloatArray]] = field(default_factory=list)
    """Of the unlabelled points by classifier and fold, if they are asked for."""

    @property
    def told(self) -> list[str]:
        """Classifiers that said something."""
        return self.names[: len(self.tables)]

    @property
    def y(self) -> IntArray:
        """Classes of the points in folds."""
        return self.points.y[self.numbers]

    @cached_property
    def _stack(self) -> FloatArray:
        return np.stack(self.tables)

    def pairs(self, name: str) -> float:
        """Share of pairs of labels that a classifier orders rightly, NaN if it was not asked."""
        if name not in self.told:
            return float("nan")
        return ordered_pairs(self.tables[self.names.index(name)], self.y, self.weight)

    def right(self, name: str) -> float:
        """Share of the labels that a classifier finds by itself, NaN if it was not asked."""
        if name not in self.told:
            return float("nan")
        table = self._stack[[self.names.index(name)]]
        return self._found(self._by_others(table)[0])

    def right_pooled(self, names: list[str]) -> float:
        """Share of the labels that some classifiers find together."""
        return self._found(self._by_others(self._of(names))[0]) if self.knows(names) else float("nan")

    def finds_more(self, name: str, names: list[str]) -> bool:
        """Whether a classifier finds more of the labels than some do together, by more than chance.

        What counts are labels that one finds and the other does not; were that by lot, the difference would be as large
        in one case of twenty.
        """
        if name not in self.told or not self.knows(names):
            return False
        alone, together = (
            self.weight * (self._by_others(self._of(some))[0].argmax(axis=1) == self.y) for some in ([name], names)
        )
        more = alone - together
        return bool(more.sum() > _SURE * np.sqrt(np.sum(more**2)))

    def _found(self, scores: FloatArray) -> float:
        return float(np.average(scores.argmax(axis=1) == self.y, weights=self.weight))

    def knows(self, names: list[str]) -> bool:
        """Whether all of these were asked."""
        return bool(len(self.numbers)) and bool(names) and set(names) <= set(self.told)

    def needed(self, cost: dict[str, float], many: bool, telling_labels: int) -> list[str]:
        """Classifiers that are worth making; where fewer labels than tell were left out, all that have any weight."""
        n = len(self.numbers)
        if not self.knows(self.names):
            return self.names
        if n < telling_labels:
            return [name for name, w in zip(self.names, self.pool(self.names).weights, strict=True) if w > LEAST_WEIGHT]
        least = max(_CHANCE, _MANY_CHANCE * n) if many else _CHANCE
        chosen = needed_classifiers(self._stack, self.y, self.weight, [cost[name] for name in self.names], least)
        return [self.names[m] for m in chosen]

    def pool(self, names: list[str]) -> Pool:
        """How to weigh some classifiers; equally, where labels do not say."""
        if not self.knows(names):
            return equal_pool(len(names), self.points.n_classes)
        return pooled_scores(self._of(names), self.y, self.weight)

    def likely(self, names: list[str]) -> FloatArray | None:
        """Probabilities at all labelled points, none of whose labels had a say in them; None if labels are too few."""
        if not self.knows(names) or len(self.rest) < len(self.tables):
            return None
        scores = np.empty((len(self.points.y), self.points.n_classes))
        scores[self.numbers] = self._by_others(self._of(names))[0]
        others = np.setdiff1d(np.arange(len(self.points.y)), self.numbers)
        scores[others] = self.pool(names).scores([self.rest[self.names.index(name)] for name in names])
        return equal_pool(1, self.points.n_classes).shares([scores])

    def unseen_labels(self, names: list[str]) -> list[tuple[IntArray, FloatArray, FloatArray]]:
        """Labelled points of each fold, and log-scores of them and of the unlabelled points by who did not see them."""
        if not self.knows(names) or len(self.hidden) < len(self.tables):
            return []
        scores, pools = self._by_others(self._of(names))
        found = []
        for f, pool in enumerate(pools):
            own = self.fold == f
            said = [self.hidden[self.names.index(name)][f] for name in names]
            found.append((self.numbers[own], scores[own], pool.scores(said)))
        return found

    def _of(self, names: list[str]) -> FloatArray:
        return self._stack[[self.names.index(name) for name in names]]

    def _by_others(self, tables: FloatArray) -> tuple[FloatArray, list[Pool]]:
        """Pooled scores of the labels of each fold, weighed by those of the other folds."""
        scores, pools = np.empty(tables.shape[1:]), []
        for f in range(int(self.fold.max()) + 1):
            own = self.fold == f
            pools.append(pooled_scores(tables[:, ~own], self.y[~own], self.weight[~own]))
            scores[own] = pools[-1].scores(tables[:, own])
        return scores, pools


def left_out_scores(points: TeacherPoints, names: list[str], asked: Asked, budget: Budget) -> LeftOut:
    """Ask classifiers of a teacher, as far as there is time, for labels that are left out in turn."""
    settings, some = asked.settings, np.arange(len(points.y))
    if len(some) > settings.fold_points:
        some = np.sort(np.random.default_rng(asked.seed).choice(some, settings.fold_points, replace=False))
    X, y, weight = points.X[some], points.y[some], asked.weight[some]
    most = int(np.bincount(y).max())
    if most < 2:
        return LeftOut(points, names, some[:0], some[:0], weight[:0])
    folds = StratifiedKFold(min(settings.folds, most), shuffle=True, random_state=asked.seed)
    with warnings.catch_warnings():
        # A class of one label does no harm: left out, it is as unlikely to one classifier as to another.
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        parts = list(folds.split(X, y))
    fold = np.empty(len(y), dtype=np.int64)
    for f, (_, left) in enumerate(parts):
        fold[left] = f
    found = LeftOut(points, names, some, fold, points.weight[some])
    others = np.setdiff1d(np.arange(len(points.y)), some)
    for name in names:
        table, hidden = np.empty((len(y), points.n_classes)), list[FloatArray]()
        rest = np.empty((len(others), points.n_classes))
        for f, (seen, left) in enumerate(parts):
            if budget.over:
                return found
            task = Task(
                X[seen],
                y[seen],
                weight[seen],
                points.n_asked,
                settings.fold_trees,
                asked.seed,
                asked.n_jobs,
                settings=settings,
            )
            fitted = asked.fit(name, task, budget) if len(np.unique(task.y)) > 1 else None
            table[left] = log_scores_of(fitted, X[left], points)
            if asked.every and f == 0:  # no part has the others, so each would do
                rest[:] = log_scores_of(fitted, points.X[others], points)
            if asked.hidden:
                hidden.append(log_scores_of(fitted, points.hidden, points))
        found.tables.append(table)
        found.rest += [rest] if asked.every else []
        found.hidden += [hidden] if asked.hidden else []
    return found


def log_scores_of(fitted: Fitted | None, X: FloatArray, points: TeacherPoints) -> FloatArray:
    """Log-scores of a teacher's classifier for points in all classes; where there is none they say nothing."""
    if fitted is None or not len(X):
        return np.zeros((len(X), points.n_classes))
    return fitted.logs(X, points.n_classes, points.least)
