"""A tree of single features as a fitted tree of scikit-learn."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.tree._tree import Tree as SklearnTree

from treewright.core.arrays import FloatArray
from treewright.core.names import shortened
from treewright.exceptions import InvalidInputError
from treewright.exports.content import Content
from treewright.exports.importances import savings
from treewright.tree.structure import LEAF, Shape, Tree

__all__ = ["to_sklearn"]

_STEPS = 64
"""Most numbers by which a threshold is moved."""


def to_sklearn(content: Content) -> DecisionTreeClassifier | DecisionTreeRegressor:
    """Make a fitted tree of scikit-learn; :meth:`TreeModel.to_sklearn` says of which models."""
    _refuse_what_it_cannot_say(content)
    tree = content.trees[0]
    classes = content.classes
    model = DecisionTreeRegressor() if classes is None else DecisionTreeClassifier()
    # A tree of the right shape, whose arrays have the fields that this version of scikit-learn has.
    pattern = DecisionTreeRegressor(max_depth=1).fit([[0.0], [1.0]], [0.0, 1.0]).tree_
    state = pattern.__getstate__()
    state["nodes"] = _nodes(content, tree, state["nodes"].dtype)
    values: FloatArray = tree.values[:, :, None] if classes is None else content.shares[0][:, None, :]
    state["values"] = np.ascontiguousarray(values, dtype=np.float64)
    state["max_depth"], state["node_count"] = tree.depth, tree.n_nodes
    counts = [1] * content.n_outputs if classes is None else [len(classes)]
    model.tree_ = SklearnTree(len(content.names), np.array(counts, dtype=np.intp), len(counts))
    model.tree_.__setstate__(state)
    model.n_features_in_, model.n_outputs_ = len(content.names), len(counts)
    model.max_features_ = len(content.names)
    if content.named:
        model.feature_names_in_ = np.array(content.names, dtype=object)
    if classes is not None:
        model.classes_, model.n_classes_ = np.array(classes), len(classes)
    return model


def _nodes(content: Content, tree: Tree, dtype: Any) -> Any:
    """Nodes as scikit-learn has them."""
    nodes = np.zeros(tree.n_nodes, dtype=dtype)
    nodes["left_child"], nodes["right_child"] = tree.left, tree.right
    nodes["feature"], nodes["threshold"] = -2, -2.0
    for node in tree.branches.tolist():
        used = np.flatnonzero(tree.weights[node])
        nodes["feature"][node] = used[0] if len(used) else 0
        nodes["threshold"][node], swap = _threshold(tree, node)
        nodes["missing_go_to_left"][node] = bool(tree.missing_left[node]) != swap
        if swap:
            nodes["left_child"][node], nodes["right_child"][node] = tree.right[node], tree.left[node]
    weight = np.ones(tree.n_nodes) if content.weight is None else content.weight[0]
    table = content.means[0]
    saved = savings(tree, table, weight)
    total = np.where(tree.is_leaf, weight, 0.0)
    for node in tree.branches[::-1].tolist():  # children are numbered after their parent
        sides = [int(tree.left[node]), int(tree.right[node])]
        total[node], saved[node] = total[sides].sum(), saved[node] + saved[sides].sum()
    nodes["weighted_n_node_samples"], nodes["n_node_samples"] = total, np.round(total)
    if content.classes is None:  # what leaves leave of it is not known
        nodes["impurity"] = saved / np.where(total > 0, total, 1.0)
    else:
        leaf = total * np.where(tree.is_leaf, np.maximum(1.0 - (table**2).sum(axis=1), 0.0), 0.0)
        left_over = Shape.of(tree).summed(leaf[:, None])[:, 0]
        nodes["impurity"] = (saved + left_over) / np.where(total > 0, total, 1.0)
    return nodes


def _threshold(tree: Tree, node: int) -> tuple[float, bool]:
    """Largest value of the feature on one side, as a row in single precision is compared with it; whether sides swap.

    A value that a row in double precision may have is on the side on which it would be, also where single precision
    rounds it up.
    """
    used = np.flatnonzero(tree.weights[node])
    threshold = float(tree.threshold[node])
    if not len(used):
        return (math.inf if threshold >= 0 else -math.inf), False
    weight = float(tree.weights[node, used[0]])
    at = threshold / weight
    if math.isinf(at):
        return at, weight < 0
    for _ in range(_STEPS):  # rounding of the quotient
        above = math.nextafter(at, math.inf)
        if (weight * at <= threshold) != (weight > 0):
            at = math.nextafter(at, -math.inf)
        elif (weight * above <= threshold) == (weight > 0):
            at = above
        else:
            break
    with np.errstate(over="ignore"):  # rows on the threshold stay on their side when they are rounded
        if weight > 0:
            return max(at, float(np.float32(at))), False
        first = float(np.float32(math.nextafter(at, math.inf)))
        return min(at, math.nextafter(first, -math.inf)), True


def _refuse_what_it_cannot_say(content: Content) -> None:
    why = ""
    if len(content.trees) > 1:
        why = f"the model is {len(content.trees)} trees"
    else:
        tree = content.trees[0]
        several = np.flatnonzero((tree.weights != 0.0).sum(axis=1) > 1)
        category = np.flatnonzero(tree.category != LEAF)
        other = [] if content.classes is None else _unlikely(content, tree)
        if len(several):
            n = int(np.count_nonzero(tree.weights[several[0]]))
            why = f"node {several[0]} splits by {n} features together (fit with max_split_features=1 where there is it)"
        elif len(category):
            name = shortened(content.names[tree.category[category[0]]])
            why = f"node {category[0]} splits by the category {name!r}"
        elif any(known is not None for known in content.levels):
            why = "the model takes categories"
        elif tree.slopes is not None and tree.slopes[tree.is_leaf].any():
            why = "the leaves are linear functions"
        elif other:
            why = f"leaf {other[0]} predicts another class than its most likely one, as weights or totals ask for"
    if why:
        raise InvalidInputError(f"a tree of scikit-learn cannot say this: {why}; to_python and to_sql can")


def _unlikely(content: Content, tree: Tree) -> list[int]:
    """Leaves whose label is not their first most likely class."""
    first = content.shares[0].argmax(axis=1)
    return np.flatnonzero(tree.is_leaf & (first != content.labels[0])).tolist()
