"""How well each class fits a row, by any classifier of scikit-learn, for labels within totals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import get_config
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from treewright.core.arrays import FloatArray, IntArray
from treewright.data import mean_and_spread, of_unit_spread
from treewright.data.rows import errors_told, taken_rows
from treewright.exceptions import InvalidInputError

__all__ = ["ClassScores", "LearnedNovelty", "Novelty", "response_method", "weight_argument"]

_BLOCK = 250_000
"""Rows that are scored at once: encoders make wide tables of them, which need not be there all at the same time."""

_IMAGINED = 5000
"""Rows of the fit, and as many imagined ones around them, from which trees learn novelty."""
_TREES = 100
"""Trees that do."""
_AWAY = (0.1, 0.5, 1.0, 2.0)
"""How far imagined rows are from one of the fit, in spreads of the features."""


def response_method(classifier: Any) -> str | None:
    """Method whose scores are cut at totals: "predict_proba", else "decision_function"; None with neither.

    Examples
    --------
    >>> from sklearn.svm import SVC, LinearSVC
    >>> response_method(SVC()), response_method(LinearSVC())
    ('decision_function', 'decision_function')
    """
    return next((name for name in ("predict_proba", "decision_function") if hasattr(classifier, name)), None)


def weight_argument(classifier: Any) -> str | None:
    """What ``fit`` of a classifier cut at totals calls weights, in a pipeline of its last step; None if it takes none.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> weight_argument(LogisticRegression()), weight_argument(make_pipeline(StandardScaler(), LogisticRegression()))
    ('sample_weight', 'logisticregression__sample_weight')
    """
    if has_fit_parameter(classifier, "sample_weight"):
        return "sample_weight"
    # where metadata are routed, steps get what they request and nothing by their names
    if not isinstance(classifier, Pipeline) or get_config()["enable_metadata_routing"]:
        return None
    name, last = classifier.steps[-1]
    inner = weight_argument(last) if hasattr(last, "fit") else None
    return None if inner is None else f"{name}__{inner}"


class Novelty:
    """Distance of rows from the nearest labelled one, the only thing known of a class without labels.

    It keeps the rows of a fit and is for these alone; of other rows they are asked who learned from it.

    Parameters
    ----------
    labelled, others : ndarray of shape (n_rows, n_features), or frame of numbers
        Labelled rows, and the unlabelled ones; features are scaled by the spread of all of them.
    """

    def __init__(self, labelled: Any, others: Any) -> None:
        labelled, others = _numbers(labelled), _numbers(others)
        self._centre, self._spread = mean_and_spread(labelled, others)
        self._near = NearestNeighbors(n_neighbors=1).fit(of_unit_spread(labelled, self._centre, self._spread))
        distance = self._distance(others)
        self._unit = float(np.median(distance)) or 1.0 if len(distance) else 1.0
        self._farthest = float(distance.max(initial=0.0)) / self._unit

        self._others = (others - self._centre) / self._spread

    def __call__(self, X: Any) -> FloatArray:
        """Novelty of rows in units of the median; 0 for the farthest of the training rows, below for others."""
        return self._distance(_numbers(X)) / self._unit - self._farthest

    def learned(self) -> LearnedNovelty:
        """About the same of other rows, without the rows that it knows."""
        return LearnedNovelty(self._centre, self._spread, self._trees(), self._unit, self._farthest)

    def _trees(self) -> ExtraTreesRegressor:
        """Trees that say how far a row is from the nearest labelled one, grown on rows around all of the fit."""
        rng = np.random.default_rng(0)
        rows = np.vstack([self._near._fit_X, self._others])
        some = rows[rng.integers(len(rows), size=_IMAGINED)]
        away = rng.choice(_AWAY, (_IMAGINED, 1)) * rng.normal(size=some.shape)
        made = np.vstack([rows[rng.permutation(len(rows))[:_IMAGINED]], some + away])
        trees = ExtraTreesRegressor(_TREES, min_samples_leaf=3, random_state=0)
        return trees.fit(made, self._near.kneighbors(made)[0][:, 0])

    def _distance(self, X: FloatArray) -> FloatArray:
        if not len(X):
            return np.zeros(0)
        return np.asarray(self._near.kneighbors(of_unit_spread(X, self._centre, self._spread))[0][:, 0])


@dataclass(frozen=True, eq=False)
class LearnedNovelty:
    """About the same as trees have learned it, which keep no row."""

    centre: FloatArray
    spread: FloatArray
    trees: ExtraTreesRegressor
    unit: float
    farthest: float

    def __call__(self, X: Any) -> FloatArray:
        """Novelty of rows, in the units of :class:`Novelty`."""
        rows = (_numbers(X) - self.centre) / self.spread
        distance = self.trees.predict(rows) if len(rows) else np.zeros(0)
        return np.asarray(distance / self.unit - self.farthest)


def _numbers(X: Any) -> FloatArray:
    """A table as finite numbers, which distances need."""
    refused = "is sparse" if sparse.issparse(X) else ""
    if not refused:
        try:
            table = np.asarray(X, dtype=np.float64)
            refused = "" if np.isfinite(table).all() else "has missing or infinite values"
        except (TypeError, ValueError):
            refused = "has text"
    if refused:
        raise InvalidInputError(
            f"a class has no labelled row; of it only the distance from labelled rows is known, and X {refused}: pass "
            "finite numbers, or label a row of each class"
        )
    return table


@dataclass
class ClassScores:
    """Scores of rows in all classes; that of a class is comparable with that of another.

    Logarithms of probabilities, where the classifier has them, and its decision function otherwise. A probability of
    0 counts as half the smallest one above 0 of the rows to be labelled, so that no row is impossible. A class
    without labels scores by novelty, below what the other classes score: it gets the rows farthest from all labelled
    ones, and no more of them than the totals ask for.
    """

    classifier: Any
    """The fitted classifier; None where labels have one class only, whose score is then 0."""
    columns: IntArray
    """Class numbers of the columns that the classifier gives."""
    n_classes: int
    """Number of classes, those without labels included."""
    novelty: Novelty | LearnedNovelty | None = None
    """Of classes without labels."""
    floor: float = float(np.finfo(np.float64).tiny)
    """Least probability."""
    level: float = 0.0
    """Score that a class without labels has for the farthest training row."""
    sharpness: float = 1.0
    """What scores of the classifier are multiplied by, above 0: it changes no label, but how sure labels are."""

    def adapt(self, X: Any) -> FloatArray:
        """Score the rows to be labelled, by which the least probability and the level of new classes are set."""
        raw = self.raw(X)
        if X.shape[0]:
            if self.probabilistic:
                self.floor = max(self.floor, float(raw[raw > 0].min()) / 2)
            self.level = float(self._known(raw).max(axis=1).min()) - 1.0
        return self._table(X, raw)

    def forget_rows(self) -> bool:
        """Let go of rows of the fit, if there are any: from then on novelty is what trees have learned of it."""
        if not isinstance(self.novelty, Novelty):
            return False
        self.novelty = self.novelty.learned()
        return True

    def __call__(self, X: Any) -> FloatArray:
        """Scores of an array, frame or sparse matrix, shape (n_rows, n_classes)."""
        return self._table(X, self.raw(X))

    @property
    def probabilistic(self) -> bool:
        """Whether scores are logarithms of probabilities."""
        return response_method(self.classifier) == "predict_proba"

    def raw(self, X: Any) -> FloatArray:
        """What the classifier says, one column for each class it knows."""
        n_rows = X.shape[0]
        if self.classifier is None or not n_rows:
            return np.zeros((n_rows, len(self.columns)))
        if n_rows <= _BLOCK:
            return self._said(X, n_rows)
        starts = range(0, n_rows, _BLOCK)
        parts = (np.arange(start, min(start + _BLOCK, n_rows)) for start in starts)
        return np.concatenate([self._said(taken_rows(X, part), len(part)) for part in parts])

    def _said(self, X: Any, n_rows: int) -> FloatArray:
        name = str(response_method(self.classifier))
        with errors_told(self.classifier, X):
            values = np.asarray(getattr(self.classifier, name)(X), dtype=np.float64)
        if values.ndim == 1:
            values = np.column_stack([-values / 2, values / 2])  # their difference is the given value
        kind = type(self.classifier).__name__
        if values.shape != (n_rows, len(self.columns)):
            raise InvalidInputError(
                f"{name} of {kind} has shape {values.shape} for {n_rows} rows and {len(self.columns)} classes; one "
                "score a class is needed (for SVC, decision_function_shape='ovr')"
            )
        if not np.all(np.isfinite(values)):
            raise InvalidInputError(
                f"{name} of {kind} is not finite in {np.count_nonzero(~np.isfinite(values).all(axis=1))} of {n_rows} "
                "rows; such scores cannot be compared"
            )
        return values

    def _known(self, raw: FloatArray) -> FloatArray:
        return self.sharpness * (np.log(np.maximum(raw, self.floor)) if self.probabilistic else raw)

    def _table(self, X: Any, raw: FloatArray) -> FloatArray:
        table = np.empty((len(raw), self.n_classes))
        table[:, self.columns] = self._known(raw)
        if self.novelty is not None:
            unseen = np.setdiff1d(np.arange(self.n_classes), self.columns)
            table[:, unseen] = (self.level + self.novelty(X))[:, None]
        return table
