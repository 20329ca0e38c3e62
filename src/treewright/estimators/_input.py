"""What semi-supervised models do with their input before any work."""

from __future__ import annotations

import warnings
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import validate_data

from treewright.data import Problem, make_problem, merge_rows
from treewright.exceptions import InvalidInputError
from treewright.tree import FloatArray, IntArray

__all__ = ["NOTED", "fit_rows", "labelled_rows", "seed_where_unset", "semi_supervised_problem"]

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
    rows = validate_data(other, X, dtype=np.float64, ensure_min_samples=2, accept_sparse=accept_sparse)
    return rows, {name: getattr(other, name) for name in NOTED if hasattr(other, name)}


def semi_supervised_problem(
    rows: FloatArray, y: ArrayLike, weight: ArrayLike | None, unlabeled: Any, totals: Any, groups: ArrayLike | None
) -> Problem:
    """Make the problem of a fit; called by ``fit`` itself, so that a warning names the line of the user."""
    try:
        return make_problem(rows, y, weight, supervised=False, unlabeled=unlabeled, totals=totals, groups=groups)
    except InvalidInputError:
        # Labels -1 and 1, a habit as old as the mark: with nothing else labelled, -1 can only be a label.
        plain = np.asarray(y)
        if totals is not None or groups is not None or plain.dtype.kind not in "if" or len(np.unique(plain)) != 2:
            raise
        if unlabeled not in np.unique(plain):
            raise
        warnings.warn(
            f"all rows but those marked {unlabeled!r} have one label, so {unlabeled!r} is taken for a label. "
            "Set unlabeled to another value to say so.",
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
