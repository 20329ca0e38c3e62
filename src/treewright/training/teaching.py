"""Whom a tree learns from: an estimator of scikit-learn, labels or probabilities, turned into scores of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.utils.validation import has_fit_parameter

from treewright.arrays import FloatArray
from treewright.budget import Budget
from treewright.data import Problem
from treewright.exceptions import InvalidInputError
from treewright.search.totals.scores import ClassScores, Novelty, response_of
from treewright.training.ensemble import seed_where_unset

__all__ = ["EstimatorTeaching", "GivenTeaching", "Teaching"]


class Teaching(Protocol):
    """Says how well each class fits the unlabelled rows."""

    @property
    def name(self) -> str:
        """What it is."""

    def scores(self, problem: Problem, budget: Budget) -> FloatArray:
        """Scores of shape (n_unlabelled, n_classes), comparable between classes."""


@dataclass(frozen=True, eq=False)
class GivenTeaching:
    """Scores that somebody gave, a row a row of the data."""

    table: FloatArray
    name: str

    def scores(self, problem: Problem, budget: Budget) -> FloatArray:
        """Those of the unlabelled rows."""
        return self.table[problem.unlabelled]


@dataclass(frozen=True, eq=False)
class EstimatorTeaching:
    """A classifier or regressor of scikit-learn that is fitted on the labelled rows."""

    estimator: Any
    seed: int

    @property
    def name(self) -> str:
        """Its class."""
        return type(self.estimator).__name__

    def scores(self, problem: Problem, budget: Budget) -> FloatArray:
        """Probabilities of a classifier, or its decision function; what a regressor says of 0/1 columns."""
        X, y = problem.X[problem.labelled], problem.y[problem.labelled]
        hidden, seen = problem.X_unlabelled, np.unique(y)
        model = clone(self.estimator)
        seed_where_unset(model, self.seed)
        weights = {"sample_weight": problem.weight_labelled} if has_fit_parameter(model, "sample_weight") else {}
        if not len(hidden):
            return np.zeros((0, problem.n_classes))
        if len(seen) < 2:
            table = np.repeat(Novelty(X, hidden)(hidden)[:, None], problem.n_classes, axis=1)
            table[:, seen] *= -1.0
            return table
        if is_regressor(model):
            return self._regressed(model, problem, seen, weights)
        model.fit(X, problem.classes[y], **weights)
        if response_of(model) is None:
            raise InvalidInputError(f"teacher {self.name} has neither predict_proba nor decision_function")
        columns = np.searchsorted(problem.classes, model.classes_)
        novelty = Novelty(X, hidden) if len(seen) < problem.n_classes else None
        return ClassScores(model, columns, problem.n_classes, novelty).adapt(hidden)

    def _regressed(self, model: Any, problem: Problem, seen: Any, weights: dict[str, Any]) -> FloatArray:
        """One regression a class, on 1 for its rows and 0 for others: not all regressors have several outputs."""
        X, y = problem.X[problem.labelled], problem.y[problem.labelled]
        table = np.full((problem.n_unlabelled, problem.n_classes), -np.inf)
        for k in seen:
            table[:, k] = clone(model).fit(X, (y == k).astype(np.float64), **weights).predict(problem.X_unlabelled)
        least = table[:, seen].min() - 1.0
        novelty = Novelty(X, problem.X_unlabelled)(problem.X_unlabelled) if len(seen) < problem.n_classes else 0.0
        unseen = np.setdiff1d(np.arange(problem.n_classes), seen)
        table[:, unseen] = np.asarray(least + novelty).reshape(-1, 1) if len(unseen) else table[:, unseen]
        return table
