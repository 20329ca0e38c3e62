"""Any classifier cut at class totals: scores of the unlabelled rows, and their division among the classes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.core.progress import stage
from treewright.data import ClassTotals, Merge, Problem, Sample, reduced_sample
from treewright.data.margins import crossed_groups, telling_margins
from treewright.data.rows import errors_told, fitting_rows, row_numbers, taken_rows, unlabelled_rows
from treewright.exceptions import InvalidInputError
from treewright.optimize.record import FitRecord, FitStatus, named_trace
from treewright.optimize.settings import TeacherSettings
from treewright.teachers.classifier import TaughtScores, TeacherClassifier
from treewright.teachers.points import TeacherPoints
from treewright.teachers.pool import sharpness
from treewright.teachers.taught_points import label_folds
from treewright.totals.cells import cell_counts
from treewright.totals.scores import ClassScores, Novelty, response_method, weight_argument
from treewright.totals.shift import Margin, rake, shifted
from treewright.totals.transport import divide, divide_groups

__all__ = [
    "NO_SCORES",
    "Divided",
    "Fitting",
    "TotalsFit",
    "class_shifts",
    "divide_rows",
    "row_shares",
    "train_totals",
]

NO_SCORES = (
    "estimator {} has neither predict_proba nor decision_function; rows cannot be ordered by it "
    "(a VotingClassifier has with voting='soft')"
)


@dataclass(frozen=True)
class Divided:
    """Rows divided among the classes, and what brings that about."""

    labels: IntArray
    """Class number of each row."""
    prices: dict[Any, FloatArray]
    """Prices of the classes by group, or by crossing of groups; under the key None those for rows of unknown group."""
    shifts: list[dict[Any, FloatArray]]
    """Shifts of the prior by group, of each margin; under the key None those for rows of unknown group."""
    shift: FloatArray
    """The shift of each row, or one for all."""
    note: str = ""
    """What the user is to be warned of."""


@dataclass(frozen=True)
class TotalsFit:
    """What training ended with."""

    scores: ClassScores
    """The fitted classifier, as scores of classes."""
    divided: Divided
    """The unlabelled rows."""
    numbers: IntArray
    """Class numbers of all rows, within the totals; shape (n_rows,)."""
    shares: FloatArray
    """Probabilities of all rows: 1 for a given label, and of others those whose sums are the totals."""
    record: FitRecord
    """How it went."""

    @property
    def prices(self) -> dict[Any, FloatArray]:
        """Prices of the classes by group; under the key None those for rows of unknown group."""
        return self.divided.prices


@dataclass(frozen=True)
class Fitting:
    """How a classifier is fitted."""

    merged: bool
    """Whether it sees each distinct row once."""
    weighted: bool
    """Whether it is given weights."""
    calibrated: bool = False
    """Whether its scores are made as sure as labels left out say; those of the automatic one are."""
    teacher: TeacherSettings = TeacherSettings()
    """Settings of the automatic one."""


def train_totals(
    problem: Problem, classifier: Any, how: Fitting, rng: np.random.Generator, budget: Budget
) -> TotalsFit:
    """Fit the classifier of a teacher, in place, on the labelled rows and divide the others among the classes.

    What is drawn is the order of the labelled rows, and of rows with tied scores. The budget only tells the time.
    """
    if problem.table is None:
        # Distinct rows in the order of their content: what follows does not know the order of the file.
        hidden = reduced_sample(Sample.of(problem.X_unlabelled), Merge(labels=False))
        rows, place = hidden.points.X, hidden.place
        if isinstance(classifier, TeacherClassifier):
            scores = _taught_scores(problem, classifier, rows, place, rng, budget, how.teacher)
        else:
            scores = _fitted_scores(problem, classifier, rows, how, rng)
        table = scores.adapt(rows)[place]
    else:
        rows = unlabelled_rows(problem)
        place = row_numbers(rows)
        scores = _fitted_scores(problem, classifier, rows, how, rng)
        table = scores.adapt(rows)
    margins = problem.margins or (() if problem.totals is None else (problem.totals,))
    divided = divide_rows(table, place, margins, scores.columns, rng)
    numbers = problem.y.copy()
    numbers[problem.unlabelled] = divided.labels
    shares = row_shares(problem, table, divided.shift)
    if scores.forget_rows():  # other rows have other scores then, and prices of their own by which totals are met
        later_table = scores(rows)
        later_table = later_table if problem.table is not None else later_table[place]
        later = divide_rows(later_table, place, margins, scores.columns, rng)
        divided = replace(divided, prices=later.prices, shifts=later.shifts)
    reason = "the labels have the largest sum of scores"
    reason += " within the totals" if margins else ""
    empty = named_trace([], "seconds")
    record = FitRecord(FitStatus.OPTIMAL, reason, budget.elapsed, None, None, empty, note=divided.note)
    return TotalsFit(scores, divided, numbers, shares, record)


def row_shares(problem: Problem, table: FloatArray, shift: FloatArray) -> FloatArray:
    """Probabilities of all rows by a teacher cut at totals: 1 for a given label, else by scores and shifts."""
    shares = np.zeros((len(problem.y), problem.n_classes))
    shares[problem.labelled, problem.y_labelled] = 1.0
    shares[problem.unlabelled] = shifted(table, shift)
    return shares


def _taught_scores(
    problem: Problem,
    teacher: TeacherClassifier,
    hidden: FloatArray,
    place: IntArray,
    rng: np.random.Generator,
    budget: Budget,
    settings: TeacherSettings,
) -> ClassScores:
    """Let the teacher learn from labelled and unlabelled rows, and the totals if they are of one margin.

    Of a class without labels it knows nothing: then a random forest takes its place.
    """
    rows = fitting_rows(problem, True, rng)
    assert rows.y is not None
    if len(np.unique(rows.y)) < problem.n_classes:
        forest = RandomForestClassifier(n_estimators=200, random_state=teacher.random_state)
        return _fitted_scores(problem, forest, hidden, Fitting(merged=True, weighted=True), rng)
    telling = telling_margins(problem.margins)
    only = problem.margins[telling[0]] if len(telling) == 1 else problem.totals
    totals = None if only is None else only.of_points(place, len(hidden))
    points = TeacherPoints(rows.X, rows.y, rows.weight, hidden, problem.n_classes, totals, problem.n_asked)
    teacher.learn(points, problem.classes, budget, settings)
    return TaughtScores(teacher, np.arange(problem.n_classes), problem.n_classes)


@stage("scores")
def _fitted_scores(
    problem: Problem, classifier: Any, hidden: Any, how: Fitting, rng: np.random.Generator
) -> ClassScores:
    """Fit the classifier on the labelled rows, sorted and shuffled."""
    rows = fitting_rows(problem, how.merged, rng)
    assert rows.y is not None
    seen = np.unique(rows.y)
    novelty = Novelty(rows.X, hidden) if len(seen) < problem.n_classes else None
    if len(seen) == 1:
        return ClassScores(None, seen, problem.n_classes, novelty)

    def fitted(unfitted: Any, some: Sample) -> ClassScores:
        extra = {str(weight_argument(unfitted)): some.weight} if how.weighted else {}
        with errors_told(unfitted, some.X):
            unfitted.fit(some.X, problem.classes[some.y], **extra)
        if response_method(unfitted) is None:  # some have it by their settings only, and tell when they are fitted
            raise InvalidInputError(NO_SCORES.format(type(unfitted).__name__))
        return ClassScores(unfitted, np.searchsorted(problem.classes, unfitted.classes_), problem.n_classes, novelty)

    scores = fitted(classifier, rows)
    if how.calibrated and novelty is None:  # of a class without labels none can be left out
        table = np.full((len(rows), problem.n_classes), np.nan)
        for others, left in _parted(rows):
            table[left] = fitted(clone(classifier), others).adapt(taken_rows(rows.X, left))
        scores.sharpness = sharpness(table, rows.y, rows.weight)
    return scores


def _parted(rows: Sample) -> Iterator[tuple[Sample, IntArray]]:
    """Labelled rows without some of them, and the numbers of these: all classes stay known."""
    assert rows.y is not None
    for left in label_folds(rows.y, 0):  # which come in an order that is drawn
        seen = np.setdiff1d(np.arange(len(rows)), left)
        yield Sample(taken_rows(rows.X, seen), rows.y[seen], rows.weight[seen], rows.size[seen]), left


@stage("labels within totals")
def divide_rows(
    table: FloatArray,
    content: IntArray,
    margins: tuple[ClassTotals, ...],
    columns: IntArray,
    rng: np.random.Generator,
) -> Divided:
    """Divide rows among the classes by a teacher's scores, within the totals.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_classes)
        Scores.
    content : ndarray of int, shape (n_rows,)
        Number of each row, equal for equal rows, whatever their order.
    margins : tuple of ClassTotals
        Totals of one margin, of several whose groups cross, or none.
    columns : ndarray of int
        Classes that have labels.
    rng : numpy Generator
        What draws the order of rows with tied scores.
    """
    if not margins:
        # Labels of weight 0 are no labels, and without totals nothing speaks for a class that has none.
        nothing = np.full(table.shape[1], -np.inf)
        nothing[columns] = 0.0
        return Divided((table + nothing).argmax(axis=1), {None: nothing}, [{None: nothing}], nothing)
    telling = telling_margins(margins)
    if len(telling) < len(margins):
        found_by_some = divide_rows(table, content, tuple(margins[j] for j in telling), columns, rng)
        return _of_all_margins(found_by_some, margins, telling)
    names, group_of = _crossed(margins)
    rank = np.empty(len(table), dtype=np.int64)
    rank[np.lexsort((group_of, content))] = rng.permutation(len(table))
    if len(margins) == 1:
        low, high, free, note = margins[0].low, margins[0].high, margins[0].free, ""
        shifts, shift = class_shifts(table, margins[0])
    else:
        found = cell_counts(table, group_of, [Margin(m.group_of, m.low, m.high) for m in margins])
        low = high = found.counts
        free, note = np.zeros(len(names), dtype=bool), _contradiction(found.missed)
        shift = np.asarray(sum(s[m.group_of] for s, m in zip(found.shifts, margins, strict=True)))
        pooled = _pooled_shift(table, margins[0])
        shifts = [
            dict(zip(m.groups, s, strict=True)) | {None: pooled} for s, m in zip(found.shifts, margins, strict=True)
        ]
    labels, by_group = divide_groups(table, rank, group_of, low, high)
    prices = dict(zip(names, by_group, strict=True))
    if None not in prices:
        asked = ~free[group_of] if not free.all() else np.ones(len(table), dtype=bool)
        kept = ~free if not free.all() else np.ones(len(names), dtype=bool)
        pooled = divide(table[asked], rank[asked], low[kept].sum(axis=0), high[kept].sum(axis=0))[1]
        prices[None] = pooled
        # Where nothing is known of a group, it is cut like all others together.
        for g in np.flatnonzero(free):
            prices[names[g]] = pooled
        labels[~asked] = (table[~asked] + pooled).argmax(axis=1)
    return Divided(labels, prices, shifts, shift, note)


def _of_all_margins(found: Divided, margins: tuple[ClassTotals, ...], telling: tuple[int, ...]) -> Divided:
    """What was found by the margins that say something, for whoever names groups of all of them."""
    prices = {
        name: found.prices[name[telling[0]] if len(telling) == 1 else tuple(name[j] for j in telling)]
        for name in crossed_groups(margins)[0]
    }
    pooled = found.shifts[0][None]
    shifts: list[dict[Any, FloatArray]] = [
        {name: np.zeros_like(pooled) for name in margin.groups} | {None: pooled} for margin in margins
    ]
    for j, part in zip(telling, found.shifts, strict=True):
        shifts[j] = part
    return replace(found, prices=prices | {None: found.prices[None]}, shifts=shifts)


def _crossed(margins: tuple[ClassTotals, ...]) -> tuple[list[Any], IntArray]:
    """Groups, or the crossings of those of several margins, and the number of each row's."""
    if len(margins) == 1:
        return list(margins[0].groups), margins[0].group_of
    return crossed_groups(margins)


def _contradiction(missed: int) -> str:
    if not missed:
        return ""
    return (
        f"the margins contradict one another: no labels meet all totals, those nearest to them miss {missed} in all "
        "(totals_ has which)"
    )


def class_shifts(
    table: FloatArray, totals: ClassTotals, budget: Budget | None = None
) -> tuple[list[dict[Any, FloatArray]], FloatArray]:
    """Shifts of the prior of a teacher's classifier by group, by which probabilities sum to totals, and of rows.

    A group of which nothing is asked has that of all others together. Once a budget is over, sums may miss the totals.
    """
    (by_group,) = rake(table, [Margin(totals.group_of, totals.low, totals.high)], budget)
    if totals.groups == (None,):
        return [{None: by_group[0]}], by_group[0]
    pooled = _pooled_shift(table, totals, budget)
    by_group[totals.free] = pooled
    return [dict(zip(totals.groups, by_group, strict=True)) | {None: pooled}], by_group[totals.group_of]


def _pooled_shift(table: FloatArray, totals: ClassTotals, budget: Budget | None = None) -> FloatArray:
    """The shift of all groups together of which something is asked."""
    kept = ~totals.free
    if not kept.any():
        return np.zeros(table.shape[1])
    rows = table[kept[totals.group_of]]
    ends = (end[kept].sum(axis=0, keepdims=True) for end in (totals.low, totals.high))
    return rake(rows, [Margin(np.zeros(len(rows), dtype=np.int64), *ends)], budget)[0][0]
