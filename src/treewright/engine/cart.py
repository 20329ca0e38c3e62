"""CART of scikit-learn as a Tree: starts, baselines and the tree step of LapCART."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.data.rows import with_short_indices
from treewright.engine.ranked import RankedLevels, RankedValues
from treewright.tree import Tree

__all__ = ["cart_rows", "cart_start", "cart_tree", "tree_from_sklearn"]

_CART_ROWS, _CART_CELLS, _CART_FEATURES, _CART_SECONDS = 200_000, 5_000_000, 32, 1.5e-7
"""CART as a start has so many rows at most, looks at so many cells for a split of all of them, at so many features at
least, and takes about so long for a cell and level."""

_LAST_ROWS, _LAST_FEATURES = 10_000, 32
"""Once time is over, CART as a start has so many rows at most and looks at so many features for a split: a fraction of
a second for a tree that is no constant."""

_FEWEST_ROWS = 1000
"""Rows that CART as the model has at least, however little time is left."""


def tree_from_sklearn(model: DecisionTreeClassifier | DecisionTreeRegressor, points: Any = None) -> Tree:
    """CART: copy a fitted scikit-learn decision tree.

    Parameters
    ----------
    model : DecisionTreeClassifier or DecisionTreeRegressor
        A fitted tree.
    points : ndarray of shape (n_points, n_features), or None
        What it was fitted to, if values were missing there: then the sides of missing values are copied too. A split
        that parts values from gaps, at infinity, gets a threshold beyond the largest value.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = tree_from_sklearn(DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y))
    >>> tree.n_leaves
    3
    """
    arrays = model.tree_
    weights = np.zeros((arrays.node_count, model.n_features_in_))
    branch = np.flatnonzero(arrays.children_left >= 0)
    weights[branch, arrays.feature[branch]] = 1.0
    threshold = np.where(arrays.children_left >= 0, arrays.threshold, 0.0)
    missing_left = None
    if points is not None:
        missing_left = arrays.missing_go_to_left.astype(bool)
        for node in branch[np.isinf(threshold[branch])].tolist():
            column = points[:, arrays.feature[node]]
            end = np.nanmax(column) if threshold[node] > 0 else np.nanmin(column)
            threshold[node] = float(end) + np.sign(threshold[node])
    classifies = isinstance(model, DecisionTreeClassifier)
    # scikit-learn stores class shares; times the node's weight they are class weights again.
    values = arrays.value[:, 0, :] * arrays.weighted_n_node_samples[:, None] if classifies else arrays.value[:, :, 0]
    return Tree(
        left=arrays.children_left,
        right=arrays.children_right,
        weights=weights,
        threshold=threshold,
        values=values,
        labels=values.argmax(axis=1) if classifies else None,
        missing_left=missing_left,  # type: ignore[arg-type]
    )


def cart_tree(
    X: Any,
    targets: FloatArray | IntArray,
    weight: FloatArray,
    n_classes: int | None,
    depth: int,
    min_size: int = 1,
    seed: int = 0,
    max_features: int | None = None,
    n_levels: IntArray | None = None,
) -> Tree:
    """Grow a tree by CART.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_points, n_features)
        Points; dense ones may lack values (NaN), which scikit-learn sends where they are better.
    targets : ndarray of shape (n_points,) or (n_points, n_outputs)
        Class numbers, or outputs of a regression.
    weight : ndarray of shape (n_points,)
        Weights.
    n_classes : int or None
        Number of classes, which need not all occur; None for a regression.
    depth : int
        Largest depth.
    min_size : int
        Fewest points of a leaf.
    seed : int
        Seed of CART, which it needs for ties.
    max_features : int or None
        Features that a split looks at, None for all.
    n_levels : ndarray of int, shape (n_features,), or None
        Levels of each categorical feature, 0 for a numerical one. Categories are ranked by their mean targets, see
        :class:`~treewright.engine.ranked.RankedLevels`.

    Examples
    --------
    >>> tree = cart_tree(np.arange(4.0)[:, None], np.array([0, 0, 2, 2]), np.ones(4), 3, depth=1)
    >>> tree.values.tolist(), tree.labels.tolist()
    ([[2.0, 0.0, 2.0], [2.0, 0.0, 0.0], [0.0, 0.0, 2.0]], [0, 0, 2])
    """
    kind = DecisionTreeRegressor if n_classes is None else DecisionTreeClassifier
    model = kind(max_depth=depth, min_samples_leaf=max(1, min_size), max_features=max_features, random_state=seed)
    ranked = None
    if n_levels is not None:
        outputs = targets.reshape(len(targets), -1) if n_classes is None else np.eye(n_classes)[targets]
        ranked = RankedLevels.of(X, np.asarray(outputs, dtype=np.float64), weight, n_levels)
        X = ranked.apply(X)
    X = with_short_indices(X) if sparse.issparse(X) else X
    gaps = not sparse.issparse(X) and bool(np.isnan(X.min(initial=0.0)))
    close = RankedValues.of(X, n_levels)
    X = close.apply(X)
    tree = tree_from_sklearn(model.fit(X, targets, sample_weight=weight), X if gaps else None)
    tree = close.invert_tree(tree)
    if ranked is not None:
        tree = ranked.invert_tree(tree)
    if n_classes is None:
        return tree
    values = np.zeros((tree.n_nodes, n_classes))
    values[:, model.classes_.astype(np.int64)] = tree.values
    return tree.with_leaves(values, values.argmax(axis=1))


def cart_start(
    X: Any,
    targets: FloatArray,
    weight: FloatArray,
    depth: int,
    classify: bool,
    seed: int,
    budget: Budget,
    n_levels: IntArray | None = None,
    hasty: bool = False,
) -> Tree | None:
    """CART as a start of other methods; None where it would take more than half of the time.

    Targets are outputs, or class numbers in one column. A start need not be the best tree: in large tables CART looks
    at some rows and features, and if it is `hasty`, as where time is over, at few.
    """
    n, p = X.shape
    most = _LAST_ROWS if hasty else _CART_ROWS
    if n > most:
        some, n = _some_rows(n, most, seed), most
        X, targets, weight = X[some], targets[some], weight[some]
    looked_at = min(p, _LAST_FEATURES if hasty else max(_CART_FEATURES, _CART_CELLS // n))
    if not hasty and not budget.allows(2.0 * _CART_SECONDS * n * looked_at * depth):
        return None
    if not classify:
        return cart_tree(X, targets, weight, None, depth, 1, seed, looked_at, n_levels)
    codes = targets[:, 0].astype(np.int64)
    return cart_tree(X, codes, weight, int(codes.max()) + 1, depth, 1, seed, looked_at, n_levels)


def cart_rows(X: Any, depth: int, seed: int, budget: Budget) -> IntArray:
    """Rows that CART on all features can take in half of the time that is left: all, or some, at least a thousand."""
    n, p = X.shape
    if budget.allows(2.0 * _CART_SECONDS * n * p * depth):
        return np.arange(n)
    most = 0.5 * budget.remaining / (_CART_SECONDS * p * depth)
    return _some_rows(n, max(_FEWEST_ROWS, int(min(n, most))), seed)


def _some_rows(n: int, most: int, seed: int) -> IntArray:
    """All rows, or if these are more than `most` so many of them."""
    return np.sort(np.random.default_rng(seed).choice(n, most, replace=False)) if n > most else np.arange(n)
