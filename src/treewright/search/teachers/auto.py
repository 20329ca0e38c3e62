"""The teacher that is made where none is given: several classifiers, blended, and refined on their own labels.

Where labels are few, which classifier is best differs from table to table by many points, and labels left out are too
few to tell. So scores of several are averaged as ranks, those that order labels left out better with more weight.

Refined: extra trees and a kernel machine are fitted again on all points, the unlabelled ones with the labels so far
within the totals, three times. Totals keep this from running away: whatever is learned, each class keeps its size.
With few labels that helps much (some 50 tables of at most 1000 rows with a tenth labelled, biased: 73.8 % for extra
trees, 73.9 blended, 76.3 refined), with many it harms a little (18 larger ones: 76.4, 76.4, 75.5). So the share of
refined scores falls with the number of labels.
"""

from __future__ import annotations

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.class_weight import compute_sample_weight

from treewright.arrays import FloatArray, IntArray
from treewright.budget import Budget
from treewright.search.teachers.lesson import Lesson, ordered_pairs, ranked
from treewright.search.teachers.members import MEMBERS, Fitted, Task, kernel_fits, out_of_bag
from treewright.search.teachers.teacher import Teacher, TeacherMember, TeacherRecord
from treewright.search.totals.scores import Novelty

__all__ = ["auto_teacher"]

_TREES, _FOLD_TREES, _REFINED_TREES = 100, 30, 50
"""Trees of a forest, of one in a fold, and of one that is refined."""
_ASKED_VOTES = 3e7
"""Votes of trees for points that are asked for: fewer trees where there are many points."""
_FOLDS = 5
_TRUST = 10.0
"""How fast the weight of a member falls with the share of pairs that it orders wrongly."""
_ROUNDS = 3
"""Rounds of refinement."""
_FEW_LABELS, _STEEP = 50.0, 3.0
"""Labels with which half of the scores are refined, and how fast that share falls with more of them."""
_LEAST_SHARE = 0.02
"""Refined scores with a smaller share are not made."""
_REFINED_POINTS = 20_000
"""Points up to which scores are refined."""
_OWN_WEIGHT = 3.0
"""Weight of a labelled point in refinement."""
_NEAR_WORK = 2e9
"""Products of features and pairs of points in a search for the nearest labelled point."""


def auto_teacher(lesson: Lesson, seed: int, budget: Budget, n_jobs: int = 1) -> Teacher:
    """Make a teacher of the classifiers that there is time for.

    Parameters
    ----------
    lesson : Lesson
        Labelled and unlabelled points.
    seed : int
        Seed of the classifiers.
    budget : Budget
        Once it is over, what there is so far counts; logistic regression in a few steps is there always.
    n_jobs : int
        Threads of the forests.

    Examples
    --------
    >>> from treewright.data import PointTotals
    >>> X, y = np.array([[0.0], [1.0], [8.0], [9.0]]), np.array([0, 0, 1, 1])
    >>> hidden = np.array([[0.5], [2.0], [7.0], [8.5], [9.5]])
    >>> totals = PointTotals(np.ones((5, 1)), low=[[2, 3]], high=[[2, 3]])
    >>> auto_teacher(Lesson(X, y, np.ones(4), hidden, 2, totals), 0, Budget()).labels().tolist()
    [0, 0, 1, 1, 1]
    """
    lesson = lesson.standardized()
    if len(lesson.present) < 2 or not len(lesson.hidden):
        return _blind(lesson, seed)
    work = _Work(lesson, seed, n_jobs)
    names, tables = work.first_scores(budget)
    scores = work.left_out_scores(names, budget)
    trust = np.exp(_TRUST * (np.nan_to_num(scores, nan=0.0) - np.nanmax([*scores, 0.0])))
    share = trust / trust.sum()
    blended = np.einsum("m,mik->ik", share, np.stack(tables))
    refined, parts = work.refined(names, tables, budget)
    trusted = 0.0 if refined is None else work.refined_share
    found = blended if refined is None else (1.0 - trusted) * blended + trusted * refined
    members = tuple(TeacherMember(n, float(w), float(s)) for n, w, s in zip(names, share, scores, strict=True))
    return Teacher(lesson, found, TeacherRecord("auto", members, trusted), [*tables, *parts])


def _blind(lesson: Lesson, seed: int) -> Teacher:
    """Labels of one class only say nothing but how far a point is from them."""
    record = TeacherRecord("auto", (TeacherMember("distance from labelled rows", 1.0, float("nan")),))
    return Teacher(lesson, ranked(_novelty(lesson, seed)), record)


def _novelty(lesson: Lesson, seed: int) -> FloatArray:
    """For a class without labels: the distance to the nearest labelled point; for the others its negative."""
    n_hidden, n_features = lesson.hidden.shape
    if not n_hidden or not len(lesson.X):
        return np.zeros((n_hidden, lesson.n_classes))
    most = max(100, int(_NEAR_WORK / (n_hidden * n_features)))
    known = lesson.X
    if len(known) > most:
        known = known[np.random.default_rng(seed).choice(len(known), most, replace=False)]
    table = np.repeat(Novelty(known, lesson.hidden)(lesson.hidden)[:, None], lesson.n_classes, axis=1)
    table[:, lesson.present] *= -1.0
    return table


class _Work:
    """The classifiers of a lesson; features have unit spread."""

    def __init__(self, lesson: Lesson, seed: int, n_jobs: int) -> None:
        self.lesson, self.seed, self.n_jobs = lesson, seed, n_jobs
        # A class counts as much as another, however many labels a biased sample has of each; where totals are not
        # known, the sample is all there is to tell.
        balance = compute_sample_weight("balanced", lesson.y) if lesson.totals is not None else 1.0
        self.weight: FloatArray = lesson.weight / lesson.weight.mean() * balance
        self.ranks = lesson.totals is not None

    @property
    def refined_share(self) -> float:
        """Share of refined scores."""
        return float(1.0 / (1.0 + (len(self.lesson.y) / _FEW_LABELS) ** _STEEP))

    def first_scores(self, budget: Budget) -> tuple[list[str], list[FloatArray]]:
        """Names and scores of the members that there is time for, at least one."""
        lesson = self.lesson
        n_trees = int(np.clip(_ASKED_VOTES / max(1, len(lesson.hidden)), 20, _TREES))
        task = Task(lesson.X, lesson.y, self.weight, len(lesson.hidden), n_trees, self.seed, self.n_jobs)
        names, tables = list[str](), list[FloatArray]()
        for name in self._names():
            if budget.over and names:
                break
            fitted = MEMBERS["logistic regression" if budget.over else name](task, budget)
            if fitted is not None:
                names.append("logistic regression" if budget.over and not names else name)
                tables.append(self._table(fitted, lesson.hidden))
        return names, tables

    def _names(self) -> list[str]:
        """Members for these points: logistic regression takes the place of a kernel machine that would take too long.

        Without totals scores of classes must be comparable, and those of a kernel machine are not.
        """
        lesson = self.lesson
        kernel = self.ranks and kernel_fits(len(lesson.X), len(lesson.hidden), lesson.X.shape[1], len(lesson.present))
        return ["extra trees", "random forest", "kernel machine" if kernel else "logistic regression"]

    def left_out_scores(self, names: list[str], budget: Budget) -> FloatArray:
        """How well each member orders labels left out; NaN where labels are too few or time is over."""
        lesson, scores = self.lesson, np.full(len(names), np.nan)
        fewest = int(np.bincount(lesson.y)[lesson.present].min())
        if fewest < 2:
            return scores
        some = _balanced_sample(lesson.y, 2000, self.seed)
        X, y, weight = lesson.X[some], lesson.y[some], self.weight[some]
        folds = StratifiedKFold(min(_FOLDS, fewest), shuffle=True, random_state=self.seed)
        parts = list(folds.split(X, y))
        for m, name in enumerate(names):
            table = np.full((len(y), lesson.n_classes), np.nan)
            for seen, left in parts:
                if budget.over:
                    return scores
                task = Task(X[seen], y[seen], weight[seen], len(left), _FOLD_TREES, self.seed, self.n_jobs)
                fitted = MEMBERS[name](task, budget)
                if fitted is not None:
                    table[left] = 0.0
                    table[np.ix_(left, fitted.classes)] = fitted.scores(X[left])
            scores[m] = ordered_pairs(table, y, lesson.weight[some])
        return scores

    # ------------------------------------------------------------------ refinement

    def refined(
        self, names: list[str], tables: list[FloatArray], budget: Budget
    ) -> tuple[FloatArray | None, list[FloatArray]]:
        """Scores of classifiers fitted again on all points and the labels so far, and those of each kind.

        None without totals, where labels are many, and where there is no time. It begins with extra trees and the
        kernel machine, which are unlike each other.
        """
        lesson = self.lesson
        few = len(lesson.X) + len(lesson.hidden) <= _REFINED_POINTS and self.refined_share >= _LEAST_SHARE
        if not self.ranks or not few or budget.over:
            return None, []
        first = [table for name, table in zip(names, tables, strict=True) if name != "random forest"]
        start = np.mean(first or tables, axis=0)
        parts = [part for kind in (self._forest_again, self._kernel_again) if (part := kind(start, budget)) is not None]
        return (np.mean(parts, axis=0), parts) if parts else (None, [])

    def _forest_again(self, scores: FloatArray, budget: Budget) -> FloatArray | None:
        found, n_known = None, len(self.lesson.X)
        for round_ in range(_ROUNDS):
            task = self._both(scores, 1.0, _REFINED_TREES, self.seed + round_)
            made = out_of_bag(task, budget)
            if made is None:
                break
            found = scores = self._ranked(made[0].classes, made[1][n_known:])
        return found

    def _kernel_again(self, scores: FloatArray, budget: Budget) -> FloatArray | None:
        lesson, found = self.lesson, None
        n_known, n_hidden = len(lesson.X), len(lesson.hidden)
        for _ in range(_ROUNDS):
            task = self._both(scores, min(1.0, _OWN_WEIGHT * n_known / n_hidden), 0, self.seed)
            fitted = None if budget.over or len(np.unique(task.y)) < 2 else MEMBERS["kernel machine"](task, budget)
            if fitted is None:
                break
            found = scores = self._table(fitted, lesson.hidden)
        return found

    def _both(self, scores: FloatArray, weight: float, n_trees: int, seed: int) -> Task:
        """All points, the unlabelled ones with the labels of these scores."""
        lesson = self.lesson
        own = lesson.weight / lesson.weight.mean()
        return Task(
            np.vstack([lesson.X, lesson.hidden]),
            np.concatenate([lesson.y, lesson.labels(scores)]),
            np.concatenate([_OWN_WEIGHT * own, np.full(len(lesson.hidden), weight)]),
            len(lesson.hidden),
            n_trees,
            seed,
            self.n_jobs,
        )

    # ------------------------------------------------------------------ tables of scores

    def _table(self, fitted: Fitted, X: FloatArray) -> FloatArray:
        return self._ranked(fitted.classes, fitted.scores(X))

    def _ranked(self, classes: IntArray, raw: FloatArray) -> FloatArray:
        """Scores of the unlabelled points in all classes; those that a classifier does not know have their novelty."""
        lesson = self.lesson
        if not self.ranks:
            table = np.zeros((len(raw), lesson.n_classes))
            table[:, classes] = raw
            return table
        table = raw
        if len(classes) < lesson.n_classes:
            table = _novelty(lesson, self.seed)
            table[:, classes] = raw
        return ranked(table)


def _balanced_sample(y: IntArray, most: int, seed: int) -> IntArray:
    """At most so many points, drawn at random."""
    if len(y) <= most:
        return np.arange(len(y))
    return np.sort(np.random.default_rng(seed).choice(len(y), most, replace=False))
