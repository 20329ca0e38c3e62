"""A classifier fitted for `TotalsClassifier`: scores of the unlabelled rows, and their division within totals."""

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
from treewright.data import Merge, Problem, Sample, reduced_sample
from treewright.data.margins import telling_margins
from treewright.data.rows import errors_told, fitting_rows, row_numbers, taken_rows, unlabelled_rows
from treewright.exceptions import InvalidInputError
from treewright.optimize.record import FitRecord, FitStatus, named_trace
from treewright.optimize.settings import TeacherSettings
from treewright.teachers.classifier import TaughtScores, TeacherClassifier
from treewright.teachers.points import TeacherPoints
from treewright.teachers.pool import sharpness
from treewright.teachers.taught_points import label_folds
from treewright.totals.division import Divided, divide_rows, row_shares
from treewright.totals.scores import ClassScores, Novelty, response_method, weight_argument

__all__ = ["NO_SCORES", "Fitting", "TotalsFit", "train_totals"]

NO_SCORES = (
    "estimator {} has neither predict_proba nor decision_function; rows cannot be ordered by it "
    "(a VotingClassifier has with voting='soft')"
)


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
