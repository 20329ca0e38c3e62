"""What the estimators share that take categories and missing values as they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import check_array, get_tags
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.data import Problem
from treewright.data.columns_checked import listing, missing_mask, refuse_dates, refuse_repeated_names, show
from treewright.data.mixed import Features, Level, check_finite, chosen_features, has_other_than_numbers, refuse_text
from treewright.data.rows import is_frame
from treewright.data.tables.columns import date_format
from treewright.estimators.model import Given, rows_of_fit
from treewright.estimators.numbers import tell_numbers
from treewright.estimators.parameters import parameter, parameters
from treewright.estimators.problems import supervised_problem
from treewright.estimators.tables import model_of_own_columns
from treewright.estimators.tree_model import TreeModel
from treewright.exceptions import InvalidInputError
from treewright.tree import Tree

__all__ = ["MixedModel", "levels_of_features", "mixed_problem"]

_ROWS_A_LEVEL = 5
"""Rows for each level of a category below which a split by it is mistrusted."""


def levels_of_features(noted: dict[str, Any]) -> IntArray | None:
    """Levels of each feature of an estimator, 0 for a numerical one, from what was noted of the rows of a fit."""
    known = noted.get("categories_")
    return None if known is None else Features(tuple(known), tuple(range(len(known)))).n_levels


def mixed_problem(given: Given) -> Problem:
    """The checked rows of a fit with a label each, with codes of categories and gaps."""
    n_levels = levels_of_features(given.noted)
    if n_levels is None:  # gaps are allowed, too, where all features are numbers
        n_levels = np.zeros(given.X.shape[1], dtype=np.int64)
    return supervised_problem(given, n_levels)


def _are_dates(noted: dict[str, Any], feature: int) -> bool:
    """Whether the levels of a category are dates that were given as text."""
    return date_format(pl.Series([str(level) for level in noted["categories_"][feature]])) != ""


def _dates_note(named: list[str]) -> str:
    return f" The levels of {', '.join(named)} are dates: give them as numbers, such as days." if named else ""


class _Noted:
    """What is noted of the features of a fit, beside their number and names."""

    categories_: list[tuple[Level, ...] | None] | None
    has_missing_: BoolArray


@parameters
class MixedModel(_Noted, TreeModel):
    """Mixin of the estimators with categorical splits and sides for missing values.

    Parameters
    ----------
    categorical_features : None, "from_dtype" or array-like of bool, int or str
        Categorical features, as in scikit-learn's ``HistGradientBoostingClassifier``: a mask, column numbers, or names
        of columns of a frame; "from_dtype" takes the columns of a frame that are categories or text, None takes none.
        Levels are strings, numbers or bools; one that a split has not seen goes where more training rows went.

    Attributes
    ----------
    categories_ : list of (tuple of levels or None), or None
        Levels of each categorical feature, None for a numerical one; None where all are numerical.
    has_missing_ : ndarray of bool, shape (n_features_in_,)
        Which features had missing values.
    """

    categorical_features: Any = parameter(
        default="from_dtype", allowed=["array-like", StrOptions({"from_dtype"}), None]
    )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    # ------------------------------------------------------------------ rows

    def _checked_rows(self, given: Given) -> Given:
        """Validate the rows of a fit: numbers, codes and NaN."""
        return rows_of_fit(self, given, self._read)

    def _read(self, other: Any, X: Any) -> tuple[Any, dict[str, Any]]:
        refuse_dates(X, "X")
        refuse_repeated_names(X)
        features, chosen = None, self.categorical_features
        if isinstance(chosen, str) and not (is_frame(X) and chosen_features(X, chosen).any()):
            chosen = None
        if chosen is not None:
            features, matrix = Features.learn(X, chosen)
            rows = self._checked(other, X, matrix, features, reset=True)
        elif has_other_than_numbers(X):
            features, matrix = Features.learn(X)
            rows = self._checked(other, X, matrix, features, reset=True)
        else:
            rows = self._numbers(other, X, reset=True)
        known = features is not None and bool(features.categorical.any())
        levels = list(features.levels) if features is not None and known else None
        gaps = np.zeros(rows.shape[1], dtype=bool) if sparse.issparse(rows) else np.isnan(rows).any(axis=0)
        return rows, {"categories_": levels, "has_missing_": gaps}

    def _check_rows(self, X: ArrayLike) -> Any:
        check_is_fitted(self)
        own = model_of_own_columns(self, X)
        if own is not None:
            return own[0]._check_rows(own[1])
        refuse_dates(X, "X")
        refuse_repeated_names(X)
        if self.categories_ is not None or has_other_than_numbers(X):
            levels = (None,) * self.n_features_in_ if self.categories_ is None else tuple(self.categories_)
            features = Features(levels, self._column_labels())
            validate_data(self, X, skip_check_array=True, reset=False)
            rows = self._checked(None, X, features.encode(X), features, reset=False)
        else:
            rows = self._numbers(self, X, reset=False)
        tell_numbers(self, rows)
        return rows

    def _checked(self, noting: Any, X: Any, matrix: FloatArray, features: Features, reset: bool) -> FloatArray:
        """The matrix of a mixed table, of the right size and without gaps where they are not allowed."""
        if noting is not None:
            validate_data(noting, X, skip_check_array=True)
        rows = check_array(
            matrix, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=2 if reset else 1, estimator=self
        )
        if not get_tags(self).input_tags.allow_nan:
            gaps = np.flatnonzero(np.isnan(rows).any(axis=0) & ~features.categorical)
            if len(gaps):
                named = listing([features.labels[j] for j in gaps.tolist()])
                raise InvalidInputError(f"Input X contains NaN in {named}; linear leaves need values: fill them in")
        return np.asarray(rows)

    def _numbers(self, noting: Any, X: Any, reset: bool) -> Any:
        """Rows that are all numbers, checked by scikit-learn; infinite values are named by column."""
        tags = get_tags(self).input_tags
        allow_nan = tags.allow_nan and not sparse.issparse(X)
        if not sparse.issparse(X) and not is_frame(X):
            X = _cleaned(X, fitted=not reset)
        rows = validate_data(
            noting,
            X,
            dtype=np.float64,
            ensure_min_samples=2 if reset else 1,
            accept_sparse="csr" if tags.sparse else False,
            ensure_all_finite=not allow_nan,
            reset=reset,
        )
        if allow_nan:
            names = getattr(noting, "feature_names_in_", None)
            check_finite(rows, list(range(rows.shape[1])) if names is None else [str(n) for n in names])
        return rows

    def _remark(self, given: Given, fitted: dict[str, Any]) -> str:
        """A word on splits by categories that have nearly as many levels as rows."""
        levels = levels_of_features(given.noted)
        if levels is None or "tree_" not in fitted:
            return ""
        split = np.unique(fitted["tree_"].category)
        many = [j for j in split[split >= 0].tolist() if len(given.X) < _ROWS_A_LEVEL * levels[j]]
        names = given.noted.get("feature_names_in_")
        called = [f"feature {j}" if names is None else show(str(names[j])) for j in many]
        named = [f"{name} ({levels[j]} levels on {len(given.X)} rows)" for name, j in zip(called, many, strict=True)]
        if not named:
            return ""
        return (
            f"the tree splits by {', '.join(named)}: subsets of so many levels can say what they like of rows that "
            "were seen, and little of others. Leave such a column out, or join its levels."
            + _dates_note([name for name, j in zip(called, many, strict=True) if _are_dates(given.noted, j)])
        )

    def _column_labels(self) -> tuple[str | int, ...]:
        names = getattr(self, "feature_names_in_", None)
        return tuple(range(self.n_features_in_)) if names is None else tuple(str(n) for n in names)

    # ------------------------------------------------------------------ warm starts

    def _given_mixed_tree(self, noted: dict[str, Any], max_split_features: int | None) -> Tree | None:
        """Return the tree that ``warm_start`` names, in the units and codes of these rows; refuse what does not fit."""
        tree = self._named_tree(int(noted["n_features_in_"]))
        if tree is None:
            return None
        given = self if self.warm_start is True else self.warm_start
        old = getattr(given, "categories_", None) if isinstance(given, TreeModel) else None
        known = noted["categories_"]
        kinds = np.zeros(tree.n_features, dtype=bool) if known is None else np.array([v is not None for v in known])
        split = np.unique(tree.category[tree.category >= 0])
        if np.any(~kinds[split]):
            raise InvalidInputError(
                f"the warm-start tree has categorical splits on feature {split[~kinds[split]][0]}, which is no "
                "categorical feature here (parameter categorical_features)"
            )
        numbers = np.flatnonzero(np.any(tree.weights != 0, axis=0) & kinds)
        if len(numbers):
            raise InvalidInputError(
                f"the warm-start tree has numerical splits on feature {numbers[0]}, which is categorical here"
            )
        most = int(np.count_nonzero(tree.weights, axis=1).max())
        if max_split_features is not None and most > max_split_features:
            raise InvalidInputError(
                f"the warm-start tree has a split on {most} features; max_split_features={max_split_features} allows "
                "no more"
            )
        return tree if known is None or not len(split) else _recoded(tree, old, known)


def _cleaned(X: Any, fitted: bool) -> Any:
    """Rows without text, and with NaN where values of an array of objects are missing."""
    refuse_text(X, "new text" if fitted else "text of an array")
    if not isinstance(X, np.ndarray) or X.dtype.kind != "O" or X.ndim != 2:
        return X
    gone = missing_mask(X.reshape(-1)).reshape(X.shape)
    return np.where(gone, np.nan, X) if gone.any() else X


def _recoded(tree: Tree, old: list[Any] | None, new: list[Any]) -> Tree:
    """The same subsets in the codes of other levels; levels that the tree does not know go right."""
    width = max(len(levels) for levels in new if levels is not None)
    listed = np.zeros((tree.n_nodes, width), dtype=bool)
    for node in np.flatnonzero(tree.category >= 0).tolist():
        levels = new[tree.category[node]]
        before = levels if old is None else old[tree.category[node]]
        left = {before[code] for code in np.flatnonzero(tree.left_categories[node]) if code < len(before)}
        listed[node, : len(levels)] = [level in left for level in levels]
    return replace(tree, left_categories=listed)
