"""What semi-supervised models do with their input before any work."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import check_array, check_consistent_length, compute_sample_weight
from sklearn.utils.validation import check_is_fitted, validate_data

from treewright.arrays import BoolArray, FloatArray, IntArray
from treewright.data import Problem, distinct_rows, make_problem, merge_rows
from treewright.data._checks import missing_mask, plain, refuse_dates, show
from treewright.estimators.common.files import is_number
from treewright.exceptions import InvalidInputError

__all__ = [
    "NOTED",
    "class_weighted",
    "fit_rows",
    "labelled_rows",
    "new_rows",
    "partly_known_targets",
    "prepared_rows",
    "publish",
    "seed_where_unset",
    "semi_supervised_problem",
    "weighted_rows",
]

_EXACT_CELLS = 1_000_000
"""Tables up to this size are worked on in float64, dense, equal rows merged and sorted; larger ones in float32."""

NOTED = ("n_features_in_", "feature_names_in_")
"""What scikit-learn notes of the rows of a fit."""


def fit_rows(
    estimator: Any, X: ArrayLike, y: ArrayLike | None, accept_sparse: str | bool = False
) -> tuple[Any, dict[str, Any]]:
    """Validate the rows of a fit; return them, and their number and names of features, to be set when all went well."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    # scikit-learn sets what it notes at once; a fit that fails later must leave the old fit whole
    other = copy(estimator)
    refuse_dates(X, "X")
    rows = validate_data(other, X, dtype=np.float64, ensure_min_samples=2, accept_sparse=accept_sparse)
    return rows, {name: getattr(other, name) for name in NOTED if hasattr(other, name)}


def new_rows(estimator: Any, X: ArrayLike, accept_sparse: str | bool = False) -> Any:
    """Validate rows that a fitted estimator is to say something of."""
    check_is_fitted(estimator)
    refuse_dates(X, "X")
    return validate_data(estimator, X, dtype=np.float64, reset=False, accept_sparse=accept_sparse)


def publish(estimator: Any, noted: dict[str, Any], fitted: dict[str, Any], stale: Collection[str] = ()) -> None:
    """Set all fitted attributes, and what was noted of the features, in one step; warnings come after it.

    So a fit that fails leaves the last one whole, and one whose warning is made an error is whole itself. `stale` are
    attributes that only some fits have.
    """
    kept = {name: value for name, value in vars(estimator).items() if name not in NOTED and name not in stale}
    estimator.__dict__ = kept | noted | fitted


def semi_supervised_problem(
    rows: FloatArray, y: ArrayLike, weight: ArrayLike | None, unlabeled: Any, totals: Any, groups: ArrayLike | None
) -> Problem:
    """Make the problem of a fit; called by ``fit`` itself, so that a warning names the line of the user."""
    try:
        return make_problem(rows, y, weight, supervised=False, unlabeled=unlabeled, totals=totals, groups=groups)
    except InvalidInputError:
        # Labels -1 and 1, a habit as old as the mark: with nothing else labelled, -1 can only be a label.
        given = np.asarray(y)
        if totals is not None or groups is not None or given.dtype.kind not in "if" or len(np.unique(given)) != 2:
            raise
        if unlabeled not in np.unique(given):
            raise
        warnings.warn(
            f"all rows but those marked {unlabeled!r} have one label, so {unlabeled!r} is taken for a label. "
            "Set unlabeled to another value to say so; if these rows are unlabelled, label some of another class.",
            UserWarning,
            stacklevel=3,
        )
        return make_problem(rows, y, weight, supervised=True)


def labelled_rows(problem: Problem, merged: bool, rng: np.random.Generator) -> tuple[FloatArray, IntArray, FloatArray]:
    """Labelled rows, class numbers and weights, sorted by content and shuffled: the order of the file is nothing.

    Rows of weight 0 are left out. With `merged`, each distinct row comes once with the sum of its weights, so that a
    weight of 2 is a repeated row.
    """
    X, y, weight = problem.X_labelled, problem.y_labelled, problem.weight_labelled
    order = np.lexsort((weight, y, *X.T[::-1]))
    order = order[weight[order] > 0]
    X, y, weight = X[order], y[order], weight[order]
    if merged:
        X, y, weight, *_ = merge_rows(X, y, weight)
    shuffled = rng.permutation(len(X))
    return X[shuffled], y[shuffled], weight[shuffled]


def seed_where_unset(estimator: Any, seed: int) -> None:
    """Seed every ``random_state`` of a wrapped estimator that is None, those of the steps of a pipeline included."""
    given = estimator.get_params()
    names = [key for key in given if key == "random_state" or key.endswith("__random_state")]
    estimator.set_params(**{key: seed for key in names if given[key] is None})


def class_weighted(weight: FloatArray, class_weight: Any, labels: np.ndarray) -> FloatArray:
    """Weights of rows times those of their classes, as in scikit-learn; factors that are no weights are refused."""
    if isinstance(class_weight, dict):
        for label, factor in class_weight.items():
            if not is_number(plain(factor)) or factor < 0:
                raise InvalidInputError(
                    f"class_weight has {show(factor)} for class {show(label)}; expected a finite number from 0 on"
                )
    return np.asarray(weight * compute_sample_weight(class_weight, labels))


def weighted_rows(rows: Any, weight: FloatArray, targets: np.ndarray) -> tuple[Any, FloatArray, np.ndarray]:
    """Rows of positive weight, their weights and targets."""
    used = np.flatnonzero(weight > 0)
    if not len(used):
        raise InvalidInputError("all weights are zero; at least one row must count")
    with np.errstate(over="ignore"):
        if not np.isfinite(weight.sum()):
            raise InvalidInputError(f"the weights sum to infinity, the largest is {show(weight.max())}; divide all")
    return (rows, weight, targets) if len(used) == len(weight) else (rows[used], weight[used], targets[used])


def prepared_rows(X: Any, targets: FloatArray, weight: FloatArray) -> tuple[Any, FloatArray, FloatArray]:
    """Points, targets and weights as the search takes them.

    In small tables a weight of 2 is a repeated row to the last bit, and the order of the rows is nothing.
    """
    n, p = X.shape
    if n * p > _EXACT_CELLS:
        single = X.astype(np.float32)
        return (single.tocsr() if sparse.issparse(X) else np.ascontiguousarray(single)), targets, weight
    dense = X.toarray() if sparse.issparse(X) else X
    merged = merge_rows(np.column_stack([dense, targets]), np.zeros(n, dtype=np.int64), weight)
    return np.ascontiguousarray(merged.X[:, :p]), np.ascontiguousarray(merged.X[:, p:]), merged.weight


def partly_known_targets(
    estimator: Any, y: Any, n_rows: int, unlabeled: float | None
) -> tuple[FloatArray, BoolArray, bool]:
    """Targets with a column for each output, which of them are missing, and whether y has one dimension."""
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


def distinct_points(X: Any, weight: FloatArray) -> tuple[Any, IntArray, FloatArray]:
    """Distinct rows as points, the point of each row, and the weights of the points, the sums of those of their rows.

    Small tables become dense and float64, large ones float32. Rows of large sparse tables are not compared: each is a
    point.
    """
    n, p = X.shape
    if n * p <= _EXACT_CELLS:
        merged = merge_rows(X.toarray() if sparse.issparse(X) else X, np.zeros(n, dtype=np.int64), weight)
        return merged.X, merged.inverse, merged.weight
    if sparse.issparse(X):
        return X.astype(np.float32).tocsr(), np.arange(n), weight
    single = np.ascontiguousarray(X, dtype=np.float32)
    first, inverse = distinct_rows(single)
    points = single if len(first) == n and np.array_equal(first, inverse) else np.ascontiguousarray(single[first])
    return points, inverse, np.asarray(np.bincount(inverse, weight), dtype=np.float64)
