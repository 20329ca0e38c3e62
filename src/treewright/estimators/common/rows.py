"""What estimators do with their input before any work."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import check_array, check_consistent_length, compute_sample_weight, get_tags
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from treewright.arrays import BoolArray, FloatArray
from treewright.data import Problem, make_problem
from treewright.data._checks import missing_mask, plain, refuse_dates, show
from treewright.estimators.common.record_files import is_number
from treewright.exceptions import InvalidInputError, warn_user

__all__ = [
    "NOTED",
    "Given",
    "class_weighted",
    "fit_rows",
    "new_rows",
    "partly_known_targets",
    "semi_supervised_problem",
]

NOTED = ("n_features_in_", "feature_names_in_")
"""What scikit-learn notes of the rows of a fit."""


@dataclass(frozen=True)
class Given:
    """What ``fit`` was given, and once its rows are checked, what is noted of them: to be set when all went well."""

    X: Any
    y: Any
    sample_weight: ArrayLike | None = None
    totals: Any = None
    groups: ArrayLike | None = None
    graph: Any = None
    noted: dict[str, Any] = field(default_factory=dict)

    def without_features(self) -> Given:
        """The same with one constant feature: labels and weights are checked apart from rows that may be sparse."""
        return replace(self, X=np.zeros((self.X.shape[0], 1)))

    def checked_weight(self) -> FloatArray:
        """Weights of the rows, 1 if there are none."""
        return np.asarray(_check_sample_weight(self.sample_weight, self.X, dtype=np.float64, ensure_non_negative=True))


def fit_rows(estimator: Any, given: Given) -> Given:
    """Validate the rows of a fit, and note number and names of their features."""
    if given.y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    # scikit-learn sets what it notes at once; a fit that fails later must leave the old fit whole
    other = copy(estimator)
    rows = _checked(other, given.X, ensure_min_samples=2)
    return replace(given, X=rows, noted={name: getattr(other, name) for name in NOTED if hasattr(other, name)})


def new_rows(estimator: Any, X: ArrayLike) -> Any:
    """Validate rows that a fitted estimator is to say something of."""
    check_is_fitted(estimator)
    return _checked(estimator, X, reset=False)


def _checked(estimator: Any, X: ArrayLike, **how: Any) -> Any:
    refuse_dates(X, "X")
    accepted = "csr" if get_tags(estimator).input_tags.sparse else False
    return validate_data(estimator, X, dtype=np.float64, accept_sparse=accepted, **how)


def semi_supervised_problem(given: Given, unlabeled: Any) -> Problem:
    """Make the problem of a fit."""
    rows, y, weight, totals, groups = given.X, given.y, given.sample_weight, given.totals, given.groups
    try:
        return make_problem(rows, y, weight, supervised=False, unlabeled=unlabeled, totals=totals, groups=groups)
    except InvalidInputError:
        # Labels -1 and 1, a habit as old as the mark: with nothing else labelled, -1 can only be a label.
        labels = np.asarray(y)
        if totals is not None or groups is not None or labels.dtype.kind not in "if" or len(np.unique(labels)) != 2:
            raise
        if unlabeled not in np.unique(labels):
            raise
        warn_user(
            f"all rows but those marked {unlabeled!r} have one label, so {unlabeled!r} is taken for a label. "
            "Set unlabeled to another value to say so; if these rows are unlabelled, label some of another class."
        )
        return make_problem(rows, y, weight, supervised=True)


def class_weighted(weight: FloatArray, class_weight: Any, labels: np.ndarray) -> FloatArray:
    """Weights of rows times those of their classes, as in scikit-learn; factors that are no weights are refused."""
    if isinstance(class_weight, dict):
        for label, factor in class_weight.items():
            if not is_number(plain(factor)) or factor < 0:
                raise InvalidInputError(
                    f"class_weight has {show(factor)} for class {show(label)}; expected a finite number from 0 on"
                )
    return np.asarray(weight * compute_sample_weight(class_weight, labels))


def partly_known_targets(estimator: Any, given: Given, unlabeled: float | None) -> tuple[FloatArray, BoolArray, bool]:
    """Targets with a column for each output, which of them are missing, and whether y has one dimension."""
    y, n_rows = given.y, given.X.shape[0]
    if sparse.issparse(y):
        raise TypeError("y is sparse; sparse targets are not supported, use an array")
    refuse_dates(y, "y")
    array = np.asarray(y)
    if array.dtype.kind == "O":  # None and pandas' NA become NaN
        gone = missing_mask(array.reshape(-1)).reshape(array.shape)
        array = np.where(gone, np.nan, array)
    array = check_array(
        array, ensure_2d=False, dtype=np.float64, ensure_all_finite="allow-nan", input_name="y", estimator=estimator
    )
    if array.ndim not in (1, 2):
        raise InvalidInputError(f"y has shape {array.shape}, expected one column or one for each output")
    check_consistent_length(np.zeros(n_rows), array)
    Y = array.reshape(n_rows, -1)
    missing = np.isnan(Y)
    if unlabeled is not None:
        missing |= unlabeled == Y
    return Y, missing, array.ndim == 1
