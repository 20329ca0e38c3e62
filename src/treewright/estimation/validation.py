"""Cross-validation that knows unlabelled rows: folds of labels, and scores that leave marks out."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import get_scorer
from sklearn.model_selection import BaseCrossValidator, KFold, StratifiedKFold
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRequest
from sklearn.utils.validation import _num_samples

from treewright.core.arrays import IntArray
from treewright.data.columns_checked import as_column, refuse_lazy, uniform
from treewright.data.problem import unlabelled_mask
from treewright.data.rows import taken_rows
from treewright.exceptions import InvalidInputError

__all__ = ["LabeledKFold", "LabeledScorer", "labeled_scorer"]

_LEARNERS = ("sklearn.calibration", "sklearn.linear_model._logistic", "sklearn.linear_model._ridge")
"""What learns classes from all of y, and not from training sets alone."""


class LabeledKFold(BaseCrossValidator):
    """Folds of the labelled rows; the unlabelled ones are part of every training set and of no test set.

    So totals of the unlabelled rows, as counts or as shares, hold in every fit, and every score is that of labels that
    were left out. For totals of all rows (``totals_of="all"``) give shares: counts contain the labels left out.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    stratify : bool, default=True
        Whether each fold has the classes in the same shares.
    shuffle : bool, default=True
        Whether rows are shuffled before they are folded: files are often sorted.
    random_state : int, RandomState or None
        Seed of the shuffling.
    unlabeled : label, default=-1
        Mark of unlabelled rows in y; NaN and None are marks too.

    See Also
    --------
    labeled_scorer : Scores that leave out unlabelled rows, for other splitters.
    estimated_accuracy : Counts classes by their totals instead of by their labels.

    Notes
    -----
    For scores and searches. `CalibratedClassifierCV` makes classes of all of y, marks included, and is refused: fit the
    model without some of the labels and calibrate it on these alone, by
    ``CalibratedClassifierCV(FrozenEstimator(model))``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import GridSearchCV
    >>> from treewright import LabeledKFold, TotalsClassifier
    >>> rng = np.random.default_rng(0)
    >>> truth = np.arange(300) % 2
    >>> X = rng.normal(size=(300, 2)) + truth[:, None]
    >>> y = np.where(np.arange(300) < 60, truth, -1)
    >>> grid = {"estimator__C": [0.01, 1.0]}
    >>> search = GridSearchCV(TotalsClassifier(LogisticRegression()), grid, cv=LabeledKFold(random_state=0))
    >>> search = search.fit(X, y, totals={1: 120})
    >>> int((search.predict(X[60:]) == 1).sum())
    120
    """

    def __init__(
        self,
        n_splits: int = 5,
        *,
        stratify: bool = True,
        shuffle: bool = True,
        random_state: Any = None,
        unlabeled: Any = -1,
    ) -> None:
        self.n_splits = n_splits
        self.stratify = stratify
        self.shuffle = shuffle
        self.random_state = random_state
        self.unlabeled = unlabeled

    def split(self, X: Any, y: ArrayLike | None = None, groups: Any = None) -> Iterator[tuple[IntArray, IntArray]]:
        """Numbers of the rows to train and to test on, of each fold.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels and marks.
        groups : object
            Not used.

        Yields
        ------
        train, test : ndarray of int
            Labelled rows of the other folds and all unlabelled ones; labelled rows of the fold.
        """
        if y is None:
            raise InvalidInputError("y is None; folds of labels need the labels")
        refuse_lazy(X, "X")
        _refuse_learners()
        hidden = unlabelled_mask(y, self.unlabeled)
        if len(hidden) != _num_samples(X):
            raise InvalidInputError(f"X has {_num_samples(X)} rows, y has {len(hidden)}")
        known, others = np.flatnonzero(~hidden), np.flatnonzero(hidden)
        if len(known) < self.n_splits:
            raise InvalidInputError(
                f"{len(known)} of {len(hidden)} rows have a label, too few for {self.n_splits} folds"
            )
        labels = uniform(as_column(y, "y")[known], "y")
        kind = StratifiedKFold if self.stratify else KFold
        folds = kind(self.n_splits, shuffle=self.shuffle, random_state=self.random_state if self.shuffle else None)
        for train, test in folds.split(np.zeros(len(known)), labels):
            yield np.sort(np.concatenate([known[train], others])), known[test]

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of folds."""
        return int(self.n_splits)


def _refuse_learners() -> None:
    """Refuse to fold for what learns from y itself, where the mark would be one more class.

    Scores are of test sets, which have no marks; but `CalibratedClassifierCV` makes classes of all of y.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and not str(frame.f_globals.get("__name__", "")).startswith("sklearn."):
        frame = frame.f_back
    if frame.f_globals.get("__name__") in _LEARNERS:
        raise InvalidInputError(
            "scikit-learn takes the marks of y for a class here, whatever the folds are. Leave labels out by yourself: "
            "fit the model without some of them, and calibrate it on these alone, "
            "CalibratedClassifierCV(FrozenEstimator(model)).fit(X[left_out], y[left_out])"
        )


class LabeledScorer:
    """A scorer of scikit-learn that is told the labelled rows alone, see :func:`labeled_scorer`."""

    def __init__(self, scoring: Any = "accuracy", unlabeled: Any = -1) -> None:
        self.scoring = scoring
        self.unlabeled = unlabeled
        self._scorer = get_scorer(scoring)
        self._request = MetadataRequest(owner=self)

    def __repr__(self) -> str:
        return f"labeled_scorer({self.scoring!r}, unlabeled={self.unlabeled!r})"

    def __call__(
        self, estimator: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: Any = None
    ) -> float:
        """Score the labelled rows; `groups` are handed to ``predict``."""
        refuse_lazy(X, "X")
        known = ~unlabelled_mask(y, self.unlabeled)
        if not known.any():
            raise InvalidInputError(f"none of the {len(known)} rows has a label, so there is nothing to score")
        labels = uniform(as_column(y, "y")[known], "y")
        weights = {} if sample_weight is None else {"sample_weight": np.asarray(sample_weight)[known]}
        if groups is not None:
            estimator = _Grouped(estimator, taken_rows(groups, known))
        return float(self._scorer(estimator, taken_rows(X, known), labels, **weights))

    def set_score_request(self, **requests: Any) -> Self:
        """Ask for metadata (scikit-learn's routing): ``sample_weight=True``, ``groups=True``."""
        for name, alias in requests.items():
            if name not in ("sample_weight", "groups"):
                raise InvalidInputError(f"a scorer takes sample_weight and groups, not {name!r}")
            self._request.score.add_request(param=name, alias=alias)
        return self

    def get_metadata_routing(self) -> MetadataRequest:
        """What is asked for."""
        return self._request


class _Grouped:
    """A fitted classifier that knows the groups of the rows it will be asked about."""

    def __init__(self, estimator: Any, groups: Any) -> None:
        self._estimator, self._groups = estimator, groups
        self.classes_ = estimator.classes_

    def predict(self, X: Any) -> np.ndarray:
        return np.asarray(self._estimator.predict(X, groups=self._groups))

    def predict_proba(self, X: Any) -> np.ndarray:
        return np.asarray(self._estimator.predict_proba(X, groups=self._groups))

    def fit(self, X: Any, y: Any) -> Self:
        raise NotImplementedError("it is fitted")

    def __sklearn_tags__(self) -> Any:
        return get_tags(self._estimator)

    def __sklearn_is_fitted__(self) -> bool:
        return True


def labeled_scorer(scoring: Any = "accuracy", *, unlabeled: Any = -1) -> LabeledScorer:
    """Make a scorer for cross-validation that leaves out unlabelled rows, where scikit-learn's count marks as labels.

    Parameters
    ----------
    scoring : str or scorer
        What scikit-learn knows as a scorer.
    unlabeled : label, default=-1
        Mark of unlabelled rows in y; NaN and None are marks too.

    Returns
    -------
    LabeledScorer
        For ``scoring`` of ``cross_validate``, ``GridSearchCV`` and the like. With scikit-learn's metadata routing
        ``labeled_scorer().set_score_request(groups=True)`` hands groups to ``predict``.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from treewright import labeled_scorer
    >>> model = DummyClassifier().fit([[0], [1], [2]], [1, 1, 0])
    >>> labeled_scorer()(model, [[0], [1], [2], [3]], [1, -1, 0, None])
    0.5
    """
    return LabeledScorer(scoring, unlabeled)
