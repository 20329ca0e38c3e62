"""The teacher that is made where none is given: several classifiers, blended, and refined on their own labels.

Where labels are few, which classifier is best differs from table to table by many points, and labels left out are too
few to tell. So scores of several are averaged as ranks, those that order labels left out better with more weight.

Without totals scores are probabilities, and there is one more member: extra trees that see where points lie along the
principal axes of all points, so that unlabelled ones say which features go together. Whoever asks gets two more, which
see classes as normal distributions: on their own they err more than trees do, but at other points.

Refined: extra trees and a kernel machine are fitted again on all points, the unlabelled ones with the labels so far
within the totals, three times. Totals keep this from running away: whatever is learned, each class keeps its size.
With few labels that helps much (some 50 tables of at most 1000 rows with a tenth labelled, biased: 73.8 % for extra
trees, 73.9 blended, 76.3 refined), with many it harms a little (18 larger ones: 76.4, 76.4, 75.5). So the share of
refined scores falls with the number of labels.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from sklearn import config_context
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.class_weight import compute_sample_weight

from treewright.arrays import FloatArray, IntArray
from treewright.budget import Budget
from treewright.progress import stage
from treewright.search.teachers.lesson import Lesson, ordered_pairs, ranked
from treewright.search.teachers.members import MEMBERS, Fitted, Task, kernel_fits, out_of_bag, principal_axes
from treewright.search.teachers.slopes import class_slopes
from treewright.search.teachers.teacher import Exam, Teacher, TeacherMember, TeacherRecord, Voter
from treewright.search.totals.scores import Novelty

__all__ = ["ALL_MEMBERS", "auto_teacher"]

ALL_MEMBERS = 3
"""Classifiers that are made where totals are known, unless some are far behind."""

_TREES, _FOLD_TREES, _REFINED_TREES = 100, 30, 50
"""Trees of a forest, of one in a fold, and of one that is refined."""
_ASKED_VOTES = 1e7
"""Votes of trees for points that are asked for: fewer trees where there are many points."""
_MANY_ASKED = 200_000
"""With more points to be asked for, members that are far behind the best one are not made: each takes its time."""
_BEHIND = 1.5
"""Far behind is who orders so many times as many pairs of labels left out wrongly. On a made register of a million rows
forests order 19 % wrongly, logistic regression 9 %: 78.0 % of the labels are right by all three, 78.9 % by it alone."""
_FEWEST_TOLD = 500
"""Labels that have to be left out for that."""
_FOLDS, _FOLD_POINTS = 5, 2000
"""Folds of labelled points, and most points in them."""
_TOLD_FOLDS = 3
"""Folds where points to be asked for are many and labels enough to tell who is far behind."""
_TRUST = 10.0
"""How fast the weight of a member falls with the share of pairs that it orders wrongly."""
_TRUST_LIKELIHOOD = 30.0
"""Without totals: how fast it falls with the mean log-likelihood of labels left out. On 55 tables with 5 % labels extra
trees err on 25.3 % of new rows, a forest on 26.2, logistic regression on 27.9, their mean on 26.2, weighted so on 25.0;
by accuracy it is 25.7."""
_TRUST_GAUSSIANS = 10.0
"""The same with normal distributions among the members. On 27 of these tables, three other draws, the four others err
on 25.6 % (with this number 25.3), with discriminant analysis and naive Bayes on 24.8 (5: 24.8, 30: 25.0)."""
_LEAST_LEFT_OUT = 0.02
"""Least probability of a label left out, so that one label does not decide."""
_ROUNDS = 3
"""Rounds of refinement."""
_FEW_LABELS, _STEEP = 50.0, 3.0
"""Labels with which half of the scores are refined, and how fast that share falls with more of them."""
_LEAST_SHARE = 0.02
"""Refined scores with a smaller share are not made."""
_REFINED_POINTS = 20_000
"""Points up to which scores are refined."""
_EXAM_CELLS = 10_000_000
"""Points times classes times folds up to which what is said without some of the labels is kept."""
_OWN_WEIGHT = 3.0
"""Weight of a labelled point in refinement."""
_NEAR_WORK = 2e9
"""Products of features and pairs of points in a search for the nearest labelled point."""


@stage("teacher")
def auto_teacher(
    lesson: Lesson,
    seed: int,
    budget: Budget,
    n_jobs: int = 1,
    examined: bool = False,
    chosen: Sequence[str] | None = None,
    gaussians: bool = False,
    left_out: bool = False,
) -> Teacher:
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
    examined : bool
        Whether what it says without some of the labels is kept, for whoever wants to know how far to follow it.
    chosen : sequence of str or None
        Names of the classifiers, where they are chosen already.
    gaussians : bool
        Whether normal distributions are among them where there are no totals; files have no place for them.
    left_out : bool
        Whether it is to say how likely labels are that it did not see, of all labelled points: `Teacher.likely`.

    Examples
    --------
    >>> from treewright.data import PointTotals
    >>> X, y = np.array([[0.0], [1.0], [8.0], [9.0]]), np.array([0, 0, 1, 1])
    >>> hidden = np.array([[0.5], [2.0], [7.0], [8.5], [9.5]])
    >>> totals = PointTotals(np.ones((5, 1)), low=[[2, 3]], high=[[2, 3]])
    >>> auto_teacher(Lesson(X, y, np.ones(4), hidden, 2, totals), 0, Budget()).labels().tolist()
    [0, 0, 1, 1, 1]
    """
    # Points are numbers that were checked, and forests are made of many small fits.
    with config_context(assume_finite=True, skip_parameter_validation=True):
        work = _Work(lesson.standardized(), seed, n_jobs, examined, gaussians, left_out)
        return _made(work, budget, chosen)


def _made(work: _Work, budget: Budget, chosen: Sequence[str] | None) -> Teacher:
    lesson = work.lesson
    # Without totals points may be asked for later that are no part of the lesson, even if all of it is labelled.
    if len(lesson.present) < 2 or (work.ranks and not len(lesson.hidden)):
        return _blind(lesson, work.seed)
    names = list(chosen or work.names())
    if work.many:
        told = work.left_out(names, budget)
        first = work.first_voices(told.near(names), budget)
        told = told.of(list(first), names)
    else:
        first = work.first_voices(names, budget)
        told = work.left_out(list(first), budget)
    scores = told.scores
    trust = _trust(_TRUST, scores) if work.ranks else _trust(work.steepness, told.likelihood)
    slopes = told.slopes(trust, lesson.n_classes) if work.ranks else np.ones(lesson.n_classes)
    again = work.refined_voices(first, budget)
    refined = work.refined_share if again else 0.0
    share = np.concatenate([(1.0 - refined) * trust / trust.sum(), np.full(len(again), refined / max(1, len(again)))])
    voices = [*first.values(), *again]
    table = np.einsum("m,mik->ik", share, np.stack([voice.table for voice in voices]))
    members = tuple(
        TeacherMember(name, float(w), float(s)) for name, w, s in zip(first, trust / trust.sum(), scores, strict=True)
    )
    voters = [
        Voter(voice.fitted, float(w), np.sort(voice.raw, axis=0) if work.ranks else None)
        for voice, w in zip(voices, share, strict=True)
    ]
    record = TeacherRecord("auto", members, refined)
    exams, left_out = work.exams(trust / trust.sum()), told.blended(trust / trust.sum())
    return Teacher(lesson, table, record, [voice.table for voice in voices], voters, slopes, exams, left_out)


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


@dataclass(frozen=True, eq=False)
class _Voice:
    """A classifier and what it says of the unlabelled points."""

    fitted: Fitted
    raw: FloatArray
    """Its scores, a column for each class that it knows."""
    table: FloatArray
    """Comparable scores in all classes."""


@dataclass(frozen=True, eq=False)
class _LeftOut:
    """What members say of labels that they did not see."""

    scores: FloatArray
    """How well each orders them, NaN where that is not known."""
    likelihood: FloatArray
    """How likely each finds them, likewise."""
    tables: list[FloatArray] = field(default_factory=list)
    """Ranks by each member among rows as frequent as the totals say; none where time was over, or labels too few."""
    y: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    weight: FloatArray = field(default_factory=lambda: np.zeros(0))
    answers: list[FloatArray] = field(default_factory=list)
    """Scores of all labelled points by each member, where they are asked for."""

    def blended(self, trust: FloatArray) -> FloatArray | None:
        """Scores of all labelled points, none of whose labels was seen; None if some member was not asked."""
        return np.average(self.answers, axis=0, weights=trust) if len(self.answers) == len(trust) else None

    def near(self, names: list[str]) -> list[str]:
        """Members that are not far behind the best one; all, unless there are enough labels to tell."""
        wrong = 1.0 - self.scores
        if len(self.y) < _FEWEST_TOLD or not np.isfinite(wrong).all():
            return names
        return [name for name, share in zip(names, wrong, strict=True) if share <= _BEHIND * wrong.min()]

    def of(self, some: list[str], names: list[str]) -> _LeftOut:
        """What some members say; where time was short, one that was not asked may have taken the place of another."""
        place = [names.index(name) if name in names else -1 for name in some]
        scores, likelihood = (np.append(values, np.nan)[place] for values in (self.scores, self.likelihood))
        tables = [self.tables[m] for m in place if 0 <= m < len(self.tables)]
        answers = [self.answers[m] for m in place if 0 <= m < len(self.answers)]
        return replace(self, scores=scores, likelihood=likelihood, tables=tables, answers=answers)

    def slopes(self, trust: FloatArray, n_classes: int) -> FloatArray:
        """The slope of the log-odds of their ranks, of each class."""
        if not self.tables:
            return np.ones(n_classes)
        shares = trust if len(trust) == len(self.tables) else None
        return class_slopes(np.average(self.tables, axis=0, weights=shares), self.y, self.weight)


class _Work:
    """The classifiers of a lesson; features have unit spread."""

    def __init__(
        self,
        lesson: Lesson,
        seed: int,
        n_jobs: int,
        examined: bool = False,
        gaussians: bool = False,
        answering: bool = False,
    ) -> None:
        self.lesson, self.seed, self.n_jobs, self.answering = lesson, seed, n_jobs, answering
        self.gaussians = gaussians and lesson.totals is None
        self.steepness = _TRUST_GAUSSIANS if self.gaussians else _TRUST_LIKELIHOOD
        cells = len(lesson.hidden) * lesson.n_classes * _FOLDS
        self.examined = examined and cells <= _EXAM_CELLS
        self._left: list[IntArray] = []
        self._said: list[list[FloatArray]] = []  # by member and fold: scores of labels left out and unlabelled points
        # A class counts as much as another, however many labels a biased sample has of each; where totals are not
        # known, the sample is all there is to tell.
        balance = compute_sample_weight("balanced", lesson.y) if lesson.totals is not None else 1.0
        self.weight: FloatArray = lesson.weight / lesson.weight.mean() * balance
        self.ranks = lesson.totals is not None
        self.many = self.ranks and lesson.n_asked > _MANY_ASKED and not self.examined

    @property
    def refined_share(self) -> float:
        """Share of refined scores."""
        return float(1.0 / (1.0 + (len(self.lesson.y) / _FEW_LABELS) ** _STEEP))

    def first_voices(self, names: list[str], budget: Budget) -> dict[str, _Voice]:
        """Those of the members that there is time for, at least one, and what they say."""
        lesson = self.lesson
        n_trees = int(np.clip(_ASKED_VOTES / max(1, lesson.n_asked), 20, _TREES))
        task = Task(lesson.X, lesson.y, self.weight, lesson.n_asked, n_trees, self.seed, self.n_jobs)
        found = dict[str, _Voice]()
        for name in names:
            if budget.over and found:
                break
            name = "logistic regression" if budget.over else name
            fitted = self._fitted(name, task, budget)
            if fitted is not None:
                found[name] = self._voice(fitted)
        return found

    def names(self) -> list[str]:
        """Members for these points: logistic regression takes the place of a kernel machine that would take too long.

        Without totals scores of classes must be comparable, and those of a kernel machine are not. Nothing is refined
        then either, so there is time for extra trees that see principal components too.
        """
        lesson = self.lesson
        kernel = self.ranks and kernel_fits(len(lesson.X), lesson.n_asked, lesson.X.shape[1], len(lesson.present))
        names = ["extra trees", "random forest", "kernel machine" if kernel else "logistic regression"]
        if not self.ranks and lesson.X.shape[1] >= 2:
            names.append("extra trees with principal components")
        return [*names, "discriminant analysis", "naive Bayes"] if self.gaussians else names

    @cached_property
    def axes(self) -> FloatArray:
        """Principal axes of labelled and unlabelled points."""
        return principal_axes(self.lesson.X, self.lesson.hidden, self.seed)

    def _fitted(self, name: str, task: Task, budget: Budget) -> Fitted | None:
        """A member, fitted; one that sees principal components knows the axes of all points."""
        return MEMBERS[name](
            replace(task, axes=self.axes) if name == "extra trees with principal components" else task, budget
        )

    def left_out(self, names: list[str], budget: Budget) -> _LeftOut:
        """What each member says of labels left out, as far as there is time."""
        lesson, scores, likelihood = self.lesson, np.full(len(names), np.nan), np.full(len(names), np.nan)
        counts = np.bincount(lesson.y)[lesson.present]
        # Without totals a class of one label does no harm: left out, it is as unlikely to one member as to another.
        fewest = int(counts.min() if self.ranks else counts.max())
        if fewest < 2:
            return _LeftOut(scores, likelihood)
        some = np.arange(len(lesson.y))
        if len(some) > _FOLD_POINTS:
            some = np.sort(np.random.default_rng(self.seed).choice(some, _FOLD_POINTS, replace=False))
        X, y, weight = lesson.X[some], lesson.y[some], self.weight[some]
        fair = self._as_frequent(y, lesson.weight[some])
        n_folds = _TOLD_FOLDS if self.many and len(some) >= _FEWEST_TOLD else _FOLDS
        folds = StratifiedKFold(min(n_folds, fewest), shuffle=True, random_state=self.seed)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The least populated class", UserWarning)
            parts, tables, answers = list(folds.split(X, y)), list[FloatArray](), list[FloatArray]()
        rest = np.setdiff1d(np.arange(len(lesson.y)), some) if self.answering else some[:0]
        self._left = [some[left] for _, left in parts]
        for m, name in enumerate(names):
            table, said = np.zeros((len(y), lesson.n_classes)), list[FloatArray]()
            others = np.zeros((len(rest), lesson.n_classes))
            for fold, (seen, left) in enumerate(parts):
                if budget.over:
                    return _LeftOut(scores, likelihood)
                task = Task(X[seen], y[seen], weight[seen], len(left), _FOLD_TREES, self.seed, self.n_jobs)
                fitted = self._fitted(name, task, budget) if len(np.unique(task.y)) > 1 else None
                if fitted is not None:
                    table[np.ix_(left, fitted.classes)] = fitted.scores(X[left])
                    if len(rest) and fold == 0:  # no part has these, so each would do
                        others[:, fitted.classes] = fitted.scores(lesson.X[rest])
                if self.examined:
                    said.append(self._answers(fitted, X[left]))
            scores[m] = ordered_pairs(table, y, lesson.weight[some])
            likelihood[m] = _likelihood(table, y, lesson.weight[some])
            tables.append(ranked(table, fair))
            self._said.append(said)
            if self.answering:
                answers.append(np.vstack([table, others])[np.argsort(np.append(some, rest))])
        return _LeftOut(scores, likelihood, tables, y, fair, answers)

    def _as_frequent(self, y: IntArray, weight: FloatArray) -> FloatArray:
        """Weights of labels by which classes are as frequent as the totals say, or nearly so where they are intervals.

        A rank among labels of a biased sample would be another thing than one among the rows to be labelled.
        """
        totals, own = self.lesson.totals, np.bincount(y, weight, self.lesson.n_classes)
        if totals is None:
            return weight / weight.mean()
        low, high = totals.low.sum(axis=0), totals.high.sum(axis=0)
        wanted = np.clip(own / own.sum() * float(totals.size.sum()), low, high)
        fair = weight * (wanted / np.maximum(own, 1e-300))[y]
        return np.asarray(fair / fair.mean() if fair.sum() > 0 else weight / weight.mean())

    def _answers(self, fitted: Fitted | None, left: FloatArray) -> FloatArray:
        """What a member says of labels left out and of the unlabelled points."""
        asked = np.vstack([left, self.lesson.hidden])
        table = np.zeros((len(asked), self.lesson.n_classes))
        if fitted is not None:
            table[:, fitted.classes] = fitted.scores(asked)
        return table

    def exams(self, trust: FloatArray) -> list[Exam]:
        """What the blend of the members says without some of the labels; none where time was over before."""
        if not self.examined or len(self._said) < len(trust):
            return []
        found = []
        for fold, left in enumerate(self._left):
            table = np.einsum("m,mik->ik", trust, np.stack([said[fold] for said in self._said]))
            found.append(Exam(left, table[: len(left)], table[len(left) :]))
        return found

    # ------------------------------------------------------------------ refinement

    def refined_voices(self, first: dict[str, _Voice], budget: Budget) -> list[_Voice]:
        """Classifiers fitted again on all points and the labels so far.

        None without totals, where labels are many, and where there is no time. It begins with extra trees and the
        kernel machine, which are unlike each other.
        """
        lesson = self.lesson
        few = len(lesson.X) + len(lesson.hidden) <= _REFINED_POINTS and self.refined_share >= _LEAST_SHARE
        if not self.ranks or not few or budget.over:
            return []
        unlike = [voice.table for name, voice in first.items() if name != "random forest"]
        start = np.mean(unlike or [voice.table for voice in first.values()], axis=0)
        return [
            voice for kind in (self._forest_again, self._kernel_again) if (voice := kind(start, budget)) is not None
        ]

    def _forest_again(self, scores: FloatArray, budget: Budget) -> _Voice | None:
        found, n_known = None, len(self.lesson.X)
        for round_ in range(_ROUNDS):
            made = out_of_bag(self._both(scores, 1.0, _REFINED_TREES, self.seed + round_), budget)
            if made is None:
                break
            found = self._voice(made[0], made[1][n_known:])
            scores = found.table
        return found

    def _kernel_again(self, scores: FloatArray, budget: Budget) -> _Voice | None:
        lesson, found = self.lesson, None
        n_known, n_hidden = len(lesson.X), len(lesson.hidden)
        for _ in range(_ROUNDS):
            task = self._both(scores, min(1.0, _OWN_WEIGHT * n_known / n_hidden), 0, self.seed)
            fitted = None if budget.over or len(np.unique(task.y)) < 2 else MEMBERS["kernel machine"](task, budget)
            if fitted is None:
                break
            found = self._voice(fitted)
            scores = found.table
        return found

    def _both(self, scores: FloatArray, weight: float, n_trees: int, seed: int) -> Task:
        """All points, the unlabelled ones with the labels of these scores."""
        lesson = self.lesson
        own = lesson.weight / lesson.weight.mean()
        return Task(
            np.vstack([lesson.X, lesson.hidden]),
            np.concatenate([lesson.y, lesson.labels(scores)]),
            np.concatenate([_OWN_WEIGHT * own, np.full(len(lesson.hidden), weight)]),
            lesson.n_asked,
            n_trees,
            seed,
            self.n_jobs,
        )

    # ------------------------------------------------------------------ tables of scores

    def _voice(self, fitted: Fitted, raw: FloatArray | None = None) -> _Voice:
        """What a classifier says of the unlabelled points, or what it said before it knew their labels."""
        if raw is None:
            hidden = self.lesson.hidden
            raw = fitted.scores(hidden) if len(hidden) else np.zeros((0, len(fitted.classes)))
        return _Voice(fitted, raw, self._ranked(fitted.classes, raw))

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


def _trust(steepness: float, scores: FloatArray) -> FloatArray:
    """Weights of members by their scores; one without a score counts like the others on average."""
    known = np.isfinite(scores)
    level = np.where(known, scores, scores[known].mean() if known.any() else 0.0)
    return np.asarray(np.exp(steepness * (level - level.max())))


def _likelihood(table: FloatArray, y: IntArray, weight: FloatArray) -> float:
    """Mean logarithm of the probability of labels."""
    table = np.maximum(table, _LEAST_LEFT_OUT)
    own = table[np.arange(len(y)), y] / table.sum(axis=1)
    return float(np.average(np.log(own), weights=weight))
