"""Data selection for users: rows worth training on, with or without one of our models."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.data.columns_checked import as_column, missing_mask, refuse_dates, uniform
from treewright.data.marks import refuse_missing, warn_of_marks
from treewright.data.mixed import chosen_features, refuse_text
from treewright.estimators.problems import FIT_TO_OTHERS
from treewright.estimators.tree_model import TreeModel
from treewright.exceptions import InvalidInputError
from treewright.tree import Tree

if TYPE_CHECKING:
    from treewright.models.svm1odt.selection.choice import ClusterChoice, Selection

__all__ = ["select"]


def select(
    X: Any,
    y: ArrayLike,
    tree: Any,
    method: Literal["hull", "balanced"] = "hull",
    *,
    sample_weight: ArrayLike | None = None,
    epsilon: float = 0.0,
    beta_1: float = 0.2,
    beta_2: float = 0.05,
    categorical_features: Any = None,
    time_limit: float | None = None,
    told: Callable[[ClusterChoice], None] | None = None,
) -> Selection:
    r"""Select the rows that a tree is worth training on (Zhu et al. 2020, Algorithms 1 and 2).

    Rows of one class in one leaf of a first tree are a cluster. A tree that sends the extreme points of a cluster to
    one leaf sends all its points there, so the points inside of their hull can be left out. It pays where a cluster has
    many points in few dimensions: from about 16 features on nearly every point is extreme.

    Parameters
    ----------
    X : array-like or frame of shape (n_samples, n_features)
        Rows, not sparse, as the estimator was fitted to them: categories and missing values as they are. With a Tree,
        categories as codes and NaN where a value is missing. Features may have any units.
    y : array-like of shape (n_samples,)
        Labels.
    tree : Tree or fitted estimator
        A first tree, in the units of `X`, from any model here (its `tree_` is taken).
    method : "hull" or "balanced"
        "hull" (Algorithm 1) takes all extreme points of a cluster where they are at most `beta_1` of it. Else it takes
        those that have a share of at least 1 / (d + 1) in some point inside, and of the others the nearest to the
        splits, until `beta_2` of the cluster is selected. "balanced" (Algorithm 2) takes few points with many others
        between them and passes over outliers, then the nearest to the splits as before; it solves a program for each 30
        points, and is slow beyond some thousands.
    sample_weight : array-like of shape (n_samples,) or None
        Weights; rows of weight 0 are as if they were not there, the others keep theirs.
    epsilon : float
        With "hull": a point nearer than this to the hull of others, in each feature, is inside too; as a share of the
        features' ranges.
    beta_1, beta_2 : float
        Shares, between 0 and 1, of the distinct rows of a cluster.
    categorical_features : None, "from_dtype" or array-like of bool, int or str
        Features that are categories, as the estimators take them: a mask, column numbers, or names of columns of a
        frame; None for those of the estimator, with a Tree those that it splits so. Points of a hull have equal
        categories, and values in the same features.
    time_limit : float or None
        Seconds after which the clusters that are left, the largest ones, get the `beta_2` of their points that are
        nearest to the splits. So does Ctrl-C.
    told : callable or None
        Told of each cluster when it is done.

    Returns
    -------
    Selection
        `rows`, the numbers of the selected rows; `weight`, theirs, None without `sample_weight`; `clusters`, what was
        done with each; `seconds`; `fallback`, whether time was over; `reason`, all of it in words.

    Notes
    -----
    The extreme points are those of the paper's linear program (7), found by a faster method and to a tolerance of 1e-9
    of the ranges; of equal rows one is looked at. Categorical splits have no distance, nor do splits that use a value
    which is missing.

    Examples
    --------
    >>> import numpy as np
    >>> from treewright import TAOClassifier, select
    >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    >>> y = np.where(X[:, 0] > 0, "right", "left")
    >>> model = TAOClassifier(max_depth=1, random_state=0).fit(X, y)
    >>> chosen = select(X, y, model)
    >>> len(chosen.rows) < 60, chosen.fallback
    (True, False)
    >>> again = TAOClassifier(max_depth=1, random_state=0).fit(X[chosen.rows], y[chosen.rows])
    >>> bool(again.score(X, y) > 0.98)
    True
    """
    from treewright.models.svm1odt.selection.choice import ChoiceSettings, rows_worth_training

    settings = ChoiceSettings(method, epsilon, beta_1, beta_2)
    if time_limit is not None and not time_limit > 0:
        raise InvalidInputError(f"time_limit={time_limit!r}; expected seconds above 0, or None")
    budget = Budget(time_limit)
    known = None if isinstance(tree, Tree) else getattr(tree, "categories_", None)
    rows, tree = _rows_and_tree(X, tree)
    label = _class_numbers(y)
    check_consistent_length(rows, label)
    weight = None if sample_weight is None else _check_sample_weight(sample_weight, rows, ensure_non_negative=True)
    if categorical_features is None and known is not None:
        categorical_features = [levels is not None for levels in known]
    categorical = None if categorical_features is None else chosen_features(X, categorical_features)
    with budget.stop_on_interrupt():
        return rows_worth_training(
            rows, label, tree, settings, weight=weight, categorical=categorical, budget=budget, told=told
        )


def _rows_and_tree(X: Any, tree: Any) -> tuple[FloatArray, Tree]:
    """Rows and tree, of which the rows may be as the estimator takes them."""
    if sparse.issparse(X):
        raise InvalidInputError("X is sparse; hulls need few features with values, use an array")
    refuse_dates(X, "X")
    if not isinstance(tree, Tree):
        if not isinstance(tree, TreeModel):
            raise InvalidInputError(f"tree is a {type(tree).__name__}; use a Tree or a fitted estimator that has one")
        check_is_fitted(tree, "tree_")
        return np.asarray(tree._check_rows(X), dtype=np.float64), tree.tree_
    refuse_text(X, "text for numbers")
    rows = check_array(X, dtype=np.float64, ensure_all_finite="allow-nan", input_name="X")
    if rows.shape[1] != tree.n_features:
        raise InvalidInputError(f"X has {rows.shape[1]} features, the tree has {tree.n_features}")
    return rows, tree


def _class_numbers(y: ArrayLike) -> IntArray:
    column = as_column(y, "y")
    refuse_dates(column, "y")
    refuse_missing(missing_mask(column))
    classes, numbers = np.unique(uniform(column, "y"), return_inverse=True)
    warn_of_marks(classes, numbers.reshape(-1), FIT_TO_OTHERS)
    return numbers.reshape(-1)
