"""Whether the trees of scikit-learn that a model file holds are trees: compiled loops walk them without looking."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.ensemble._forest import BaseForest
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.tree._tree import Tree

from treewright.core.arrays import BoolArray
from treewright.exceptions import ModelFileError

__all__ = ["check_trees", "fitted_parts", "is_tree"]

_MOST_THREADS, _MOST_FEATURES = 4096, 10_000_000
_BITSET = (8,)
"""Shape of the table of the categories of a split."""


def fitted_parts(model: Any) -> Iterator[Any]:
    """All that a fitted estimator in a model file is made of, each part once: estimators, records, trees, arrays.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> forest = RandomForestClassifier(3).fit([[0.0], [1.0]], [0, 1])
    >>> sum(isinstance(part, Tree) for part in fitted_parts(forest))
    3
    """
    waiting, seen = [model], dict[int, Any]()  # what was seen is kept, so that no other gets its number
    while waiting:
        part = waiting.pop()
        if id(part) in seen or isinstance(part, str | bytes | int | float):
            continue
        seen[id(part)] = part
        yield part
        if isinstance(part, dict):
            waiting += part.values()
        elif isinstance(part, list | tuple):
            waiting += part
        elif isinstance(part, np.ndarray):
            waiting += part.ravel().tolist() if part.dtype.kind == "O" else []
        elif not isinstance(part, type | ModuleType):
            waiting += getattr(part, "__dict__", {}).values()


def check_trees(model: Any) -> None:
    """Raise ModelFileError unless all trees of scikit-learn in a model file are trees over its features."""
    n_features, inner = model.n_features_in_, getattr(model, "estimator_", None)
    if type(n_features) is not int or not 0 < n_features <= _MOST_FEATURES:
        raise ModelFileError(f"the model says that it has {n_features!r} features")
    if inner is not None and not hasattr(model, "_encoder") and inner.n_features_in_ != n_features:
        raise ModelFileError(f"the model has {n_features} features, and its estimator {inner.n_features_in_}")
    for part in fitted_parts(model):
        if isinstance(part, Tree):
            _check_tree(part)
        elif isinstance(part, BaseEstimator):
            _check_estimator(part)


def is_tree(left: ArrayLike, right: ArrayLike, leaf: ArrayLike) -> bool:
    """Whether nodes of a model file are a tree of scikit-learn, root in front: children after their only parent.

    Parameters
    ----------
    left, right : array-like of int, shape (n_nodes,)
        Children; those of leaves do not matter.
    leaf : array-like of bool, shape (n_nodes,)
        Leaves.

    Examples
    --------
    >>> is_tree([1, -1, -1], [2, -1, -1], [False, True, True]), is_tree([1, 0, -1], [2, 2, -1], [False, False, True])
    (True, False)
    """
    branch = np.flatnonzero(~np.asarray(leaf, dtype=bool))
    n_nodes = len(np.asarray(leaf))
    children = np.concatenate([np.asarray(left, dtype=np.int64)[branch], np.asarray(right, dtype=np.int64)[branch]])
    after = np.all(children > np.tile(branch, 2)) and np.all(children < n_nodes)
    return bool(n_nodes and after and np.array_equal(np.sort(children), np.arange(1, n_nodes)))


def _check_tree(tree: Tree) -> None:
    if not 0 < tree.node_count == tree.capacity:
        raise ModelFileError(f"a tree says that it has {tree.node_count} nodes, and there are {tree.capacity}")
    left, right = tree.children_left, tree.children_right
    leaf = left == -1
    if not np.array_equal(leaf, right == -1) or not is_tree(left, right, leaf):
        raise ModelFileError("a tree has children that lead back, nowhere, or to one node twice")
    _check_features(tree.feature[~leaf], tree.n_features)
    if tree.value.shape != (tree.node_count, tree.n_outputs, tree.max_n_classes):
        raise ModelFileError(f"a tree has values of shape {tree.value.shape}")


def _check_predictor(predictor: TreePredictor, n_features: int) -> None:
    nodes = predictor.nodes
    leaf: BoolArray = nodes["is_leaf"] != 0
    if nodes.ndim != 1 or not is_tree(nodes["left"], nodes["right"], leaf):
        raise ModelFileError("a tree has children that lead back, nowhere, or to one node twice")
    _check_features(nodes["feature_idx"][~leaf], n_features)
    sets = predictor.raw_left_cat_bitsets
    by_category = ~leaf & (nodes["is_categorical"] != 0)
    if np.shape(sets)[1:] != _BITSET or np.any(nodes["bitset_idx"][by_category] >= len(sets)):
        raise ModelFileError("a tree has splits by categories that are not there")


def _check_features(features: Any, n_features: int) -> None:
    if np.any((features < 0) | (features >= n_features)):
        raise ModelFileError(f"a tree has a split by a feature that is none of its {n_features}")


def _check_estimator(model: BaseEstimator) -> None:
    """Whether an estimator and its trees are about the same features, and how many there are as it says."""
    name, known = type(model).__name__, vars(model)
    n_features = known.get("n_features_in_", 0)
    for tree in [part for part in (known.get("tree_"), *_own_trees(model)) if isinstance(part, Tree)]:
        if tree.n_features != n_features:
            raise ModelFileError(f"a tree of {name} has {tree.n_features} features, and it {n_features}")
    jobs = known.get("n_jobs")
    if jobs is not None and (type(jobs) is not int or abs(jobs) > _MOST_THREADS):
        raise ModelFileError(f"{name} asks for {jobs!r} threads")
    members = known.get("estimators_")
    if isinstance(model, BaseForest) and members is not None and known.get("n_estimators") != len(members):
        raise ModelFileError(f"{name} has {len(members)} members, and not as many as it says")
    for predictor in fitted_parts(known.get("_predictors", [])):
        if isinstance(predictor, TreePredictor):
            _check_predictor(predictor, n_features)


def _own_trees(model: BaseEstimator) -> list[Any]:
    """Trees of the members of an ensemble, which gives them rows that they do not look at again."""
    members = vars(model).get("estimators_", []) if isinstance(model, BaseForest) else []
    return [vars(member).get("tree_") for member in members]
