"""Whom a tree learns from: an estimator of scikit-learn, labels or probabilities, turned into scores of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.utils.validation import has_fit_parameter

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.data import Problem
from treewright.data.rows import errors_told
from treewright.exceptions import InvalidInputError
from treewright.teachers.ensemble import seed_where_unset
from treewright.totals.scores import ClassScores, Novelty, response_method

__all__ = ["EstimatorTeacher", "TableTeacher", "PartlyLabelled", "GivenTeacher", "teacher_of_parameter"]


class PartlyLabelled(Protocol):
    """Rows of which some are labelled, as :class:`~treewright.data.Problem` has them; features may be sparse here."""

    @property
    def X(self) -> Any:
        """Features."""

    @property
    def y(self) -> IntArray:
        """Class numbers, -1 for an unlabelled row."""

    @property
    def weight_labelled(self) -> FloatArray:
        """Weights of the labelled rows."""

    @property
    def classes(self) -> Any:
        """The labels, sorted."""


class GivenTeacher(Protocol):
    """Says how well each class fits the unlabelled rows."""

    @property
    def name(self) -> str:
        """What it is."""

    @property
    def logarithmic(self) -> bool:
        """Whether scores are logarithms of shares, up to a number that the classes of a row have in common."""

    def scores(self, problem: PartlyLabelled, budget: Budget) -> FloatArray:
        """Scores of shape (n_unlabelled, n_classes), comparable between classes."""


@dataclass(frozen=True, eq=False)
class TableTeacher:
    """Scores that somebody gave, a row a row of the data."""

    table: FloatArray
    name: str
    logarithmic: bool = False

    def scores(self, problem: PartlyLabelled, budget: Budget) -> FloatArray:
        """Those of the unlabelled rows."""
        return self.table[problem.y < 0]


@dataclass(frozen=True, eq=False)
class EstimatorTeacher:
    """A classifier or regressor of scikit-learn that is fitted on the labelled rows."""

    estimator: Any
    seed: int

    @property
    def name(self) -> str:
        """Its class."""
        return type(self.estimator).__name__

    @property
    def logarithmic(self) -> bool:
        """Classifiers tell logarithms of probabilities, or margins, which are taken for such."""
        return not is_regressor(self.estimator)

    def scores(self, problem: PartlyLabelled, budget: Budget) -> FloatArray:
        """Probabilities of a classifier, or its decision function; what a regressor says of 0/1 columns."""
        labelled, n_classes = problem.y >= 0, len(problem.classes)
        X, y, hidden = problem.X[labelled], problem.y[labelled], problem.X[~labelled]
        seen = np.unique(y)
        model = clone(self.estimator)
        seed_where_unset(model, self.seed)
        weights = {"sample_weight": problem.weight_labelled} if has_fit_parameter(model, "sample_weight") else {}
        if not hidden.shape[0]:
            return np.zeros((0, n_classes))
        if len(seen) < 2:
            table = np.repeat(Novelty(X, hidden)(hidden)[:, None], n_classes, axis=1)
            table[:, seen] *= -1.0
            return table
        if is_regressor(model):
            return self._regressed(model, problem, seen, weights)
        with errors_told(model, X):
            model.fit(X, problem.classes[y], **weights)
        if response_method(model) is None:
            raise InvalidInputError(f"teacher {self.name} has neither predict_proba nor decision_function")
        columns = np.searchsorted(problem.classes, model.classes_)
        novelty = Novelty(X, hidden) if len(seen) < n_classes else None
        return ClassScores(model, columns, n_classes, novelty).adapt(hidden)

    def _regressed(self, model: Any, problem: PartlyLabelled, seen: IntArray, weights: dict[str, Any]) -> FloatArray:
        """One regression a class, on 1 for its rows and 0 for others: not all regressors have several outputs."""
        labelled, n_classes = problem.y >= 0, len(problem.classes)
        X, y, hidden = problem.X[labelled], problem.y[labelled], problem.X[~labelled]
        table = np.full((hidden.shape[0], n_classes), -np.inf)
        for k in seen:
            with errors_told(model, X):
                table[:, k] = clone(model).fit(X, (y == k).astype(np.float64), **weights).predict(hidden)
        least = table[:, seen].min() - 1.0
        novelty = Novelty(X, hidden)(hidden) if len(seen) < n_classes else 0.0
        unseen = np.setdiff1d(np.arange(n_classes), seen)
        table[:, unseen] = np.asarray(least + novelty).reshape(-1, 1) if len(unseen) else table[:, unseen]
        return table


def teacher_of_parameter(teacher: Any, problem: Problem, seed: int) -> GivenTeacher | None:
    """What a given teacher says, by the parameter ``teacher``; None for the one that is made of the points.

    Parameters
    ----------
    teacher : "auto", classifier, regressor or array-like
        An estimator is fitted on the labelled rows. An array has a label of each row, or a row of scores in the order
        of the classes; those of labelled rows do not matter.
    problem : Problem
        The rows.
    seed : int
        Seed of an estimator that has none.
    """
    if isinstance(teacher, str) and teacher == "auto":
        return None
    if hasattr(teacher, "fit"):
        if not is_regressor(teacher) and (not is_classifier(teacher) or response_method(type(teacher)) is None):
            raise InvalidInputError(
                f"teacher {type(teacher).__name__} must be a classifier with predict_proba or decision_function, "
                "or a regressor"
            )
        return EstimatorTeacher(teacher, seed)
    return _table_teacher(np.asarray(teacher), problem)


def _table_teacher(told: np.ndarray, problem: Problem) -> TableTeacher:
    n, n_classes = len(problem.X), problem.n_classes
    if told.ndim == 2:
        if told.shape != (n, n_classes):
            raise InvalidInputError(
                f"teacher has shape {told.shape}; {n} rows and {n_classes} classes need {(n, n_classes)}"
            )
        table = told.astype(np.float64)
        if not np.all(np.isfinite(table[problem.unlabelled])):
            raise InvalidInputError("teacher has scores that are not finite, of unlabelled rows")
        return TableTeacher(table, "probabilities")
    if told.shape != (n,):
        raise InvalidInputError(f"teacher has shape {told.shape}; there are {n} rows")
    hidden = told[problem.unlabelled]
    known = {label: k for k, label in enumerate(problem.classes.tolist())}
    numbers = np.array([known.get(label, -1) for label in hidden.tolist()], dtype=np.int64)
    if np.any(numbers < 0):
        strange = hidden[numbers < 0].tolist()[0]
        raise InvalidInputError(f"teacher has the label {strange!r} for an unlabelled row, which is not a class")
    table = np.zeros((n, n_classes))
    table[np.flatnonzero(problem.unlabelled), numbers] = 1.0
    return TableTeacher(table, "labels")
