"""Any classifier cut at class totals: scores of the unlabelled rows, and their division among the classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from treewright.arrays import FloatArray, IntArray
from treewright.budget import Budget
from treewright.data import Merge, Problem, Sample, labelled_sample, reduced
from treewright.exceptions import InvalidInputError
from treewright.search.totals.scores import ClassScores, Novelty, response_of
from treewright.search.totals.transport import divide, divide_groups
from treewright.training.record import FitRecord, FitStatus, named_trace

__all__ = ["NO_SCORES", "TotalsFit", "train_totals"]

NO_SCORES = (
    "estimator {} has neither predict_proba nor decision_function; rows cannot be ordered by it "
    "(a VotingClassifier has with voting='soft')"
)


@dataclass(frozen=True)
class TotalsFit:
    """What training ended with."""

    scores: ClassScores
    """The fitted classifier, as scores of classes."""
    prices: dict[Any, FloatArray]
    """Prices of the classes by group; under the key None those for rows of unknown group."""
    numbers: IntArray
    """Class numbers of all rows, within the totals; shape (n_rows,)."""
    record: FitRecord
    """How it went."""


def train_totals(
    problem: Problem, classifier: Any, merged: bool, weighted: bool, rng: np.random.Generator, budget: Budget
) -> TotalsFit:
    """Fit a classifier, in place, on the labelled rows and divide the others among the classes.

    It sees each distinct row once if `merged`, and is given weights if `weighted`. What is drawn is the order of the
    labelled rows, and of rows with tied scores. The budget only tells the time.
    """
    # Distinct rows in the order of their content: what follows does not know the order of the file.
    hidden = reduced(Sample.of(problem.X_unlabelled), Merge(labels=False))
    scores = _fitted_scores(problem, classifier, hidden.points.X, merged, weighted, rng)
    table = scores.adapt(hidden.points.X)[hidden.place]
    labels, prices = _divided(problem, table, hidden.place, scores, rng)
    numbers = problem.y.copy()
    numbers[problem.unlabelled] = labels
    reason = "the labels have the largest sum of scores"
    reason += "" if problem.totals is None else " within the totals"
    record = FitRecord(FitStatus.OPTIMAL, reason, budget.elapsed, None, None, named_trace([], "seconds"))
    return TotalsFit(scores, prices, numbers, record)


def _fitted_scores(
    problem: Problem, classifier: Any, hidden: FloatArray, merged: bool, weighted: bool, rng: np.random.Generator
) -> ClassScores:
    """Fit the classifier on the labelled rows, sorted and shuffled."""
    rows = labelled_sample(problem, merged, rng)
    assert rows.y is not None
    seen = np.unique(rows.y)
    novelty = Novelty(rows.X, hidden) if len(seen) < problem.n_classes else None
    if len(seen) == 1:
        return ClassScores(None, seen, problem.n_classes, novelty)
    extra = {"sample_weight": rows.weight} if weighted else {}
    classifier.fit(rows.X, problem.classes[rows.y], **extra)
    if response_of(classifier) is None:  # some have it by their settings only, and tell when they are fitted
        raise InvalidInputError(NO_SCORES.format(type(classifier).__name__))
    return ClassScores(classifier, np.searchsorted(problem.classes, classifier.classes_), problem.n_classes, novelty)


def _divided(
    problem: Problem, table: FloatArray, content: IntArray, scores: ClassScores, rng: np.random.Generator
) -> tuple[IntArray, dict[Any, FloatArray]]:
    """Class numbers of the unlabelled rows, and prices by group."""
    totals = problem.totals
    if totals is None:
        # Labels of weight 0 are no labels, and without totals nothing speaks for a class that has none.
        prices = np.full(problem.n_classes, -np.inf)
        prices[scores.columns] = 0.0
        return (table + prices).argmax(axis=1), {None: prices}
    rank = np.empty(len(table), dtype=np.int64)
    rank[np.lexsort((totals.group_of, content))] = rng.permutation(len(table))
    labels, by_group = divide_groups(table, rank, totals.group_of, totals.low, totals.high)
    thresholds = dict(zip(totals.groups, by_group, strict=True))
    if None not in thresholds:
        thresholds[None] = divide(table, rank, totals.low.sum(axis=0), totals.high.sum(axis=0))[1]
    return labels, thresholds
