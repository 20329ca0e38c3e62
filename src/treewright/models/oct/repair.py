"""Any tree made feasible for OCT: splits by one feature, leaves large enough, no idle splits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from treewright.core.arrays import BoolArray, IntArray
from treewright.exceptions import InvalidInputError
from treewright.optimize.formulation import with_min_leaf
from treewright.splits.points import Points, Splits
from treewright.tree import Tree, relabelled, without_idle_splits

if TYPE_CHECKING:
    from treewright.models.oct.objective import OCT

__all__ = ["repaired"]


def repaired(model: OCT, tree: Tree) -> Tree:
    """The feasible tree for `model` that `tree` is nearest to.

    From the root down, a threshold of one feature stays as it is, to the last bit, and so does a subset of levels that
    parts the points of its node as a cut of an ordinal column does. Any other split becomes the cut that sends the most
    rows where it sent them. Splits with all points on one side go, then those above leaves that are too small, and
    those below which all leaves have the same label.
    """
    tree = _comparable(model, tree)
    if tree.n_nodes == 1:
        return relabelled(tree, model.X, model.y, model.weight, model.n_classes)
    splits, points = Splits.of(tree, model.n_levels), Points(model.X, model.n_levels)
    left, right = tree.left.copy(), tree.right.copy()
    keep = np.ones(tree.n_nodes, dtype=bool)
    members: dict[int, IntArray] = {0: np.arange(len(model.X))}
    for node in tree.branches.tolist():
        inside = members.get(node)
        if inside is None or not len(inside):
            continue
        goes_left = points.sides(inside, splits.rule(node))
        mirrored, goes_left = _as_a_cut(model, splits, node, inside, goes_left)
        if mirrored:
            left[node], right[node] = right[node], left[node]
        members[int(left[node])], members[int(right[node])] = inside[goes_left], inside[~goes_left]
        keep[left[node]], keep[right[node]] = bool(goes_left.any()), not bool(goes_left.all())
    moved = splits.tree(left, right, tree.values, tree.labels).collapsed(keep)
    # No leaf is without points, and none is too small if no point is.
    large = with_min_leaf(model, moved, model.min_leaf) if model.min_leaf > model.sizes.min() else moved
    return without_idle_splits(large, model.X, model.y, model.weight, model.n_classes)


def _as_a_cut(model: OCT, splits: Splits, node: int, inside: IntArray, goes_left: BoolArray) -> tuple[bool, BoolArray]:
    """Change the split of a node to a cut of an ordinal column, if it is none; who goes left then."""
    used = np.flatnonzero(splits.normals[node])
    if splits.category[node] < 0 and len(used) == 1 and splits.normals[node, used[0]] == 1.0:
        return False, goes_left
    if goes_left.all() or not goes_left.any():
        return False, goes_left
    columns = model.columns
    own = np.flatnonzero(columns.feature == used[0]) if len(used) == 1 else None
    found = columns.nearest(inside, goes_left, model.sizes[inside], own)
    if found is None or (found.missed > 0 and own is not None):
        other = columns.nearest(inside, goes_left, model.sizes[inside])
        found = other if found is None or (other is not None and other.missed < found.missed) else found
    assert found is not None  # points that a split parts differ in a column
    if splits.category[node] >= 0 and found.missed == 0 and columns.feature[found.column] == splits.category[node]:
        return False, goes_left
    splits.put(node, columns.rule(found.column, found.cut))
    return found.mirrored, columns.rank[found.column, inside] <= found.cut


def _comparable(model: OCT, tree: Tree) -> Tree:
    """The tree cut off at the depth of the model; refused if it is about something else."""
    if tree.labels is None or tree.n_outputs != model.n_classes or tree.n_features != model.X.shape[1]:
        raise InvalidInputError(
            f"the tree has {tree.n_outputs} outputs and {tree.n_features} features, "
            f"the model {model.n_classes} classes and {model.X.shape[1]} features"
        )
    categorical = np.zeros(tree.n_features, dtype=bool) if model.n_levels is None else model.n_levels > 0
    by_level = tree.category[tree.category >= 0]
    if not categorical[by_level].all() or tree.weights[:, categorical].any():
        raise InvalidInputError("the tree splits a category of the model as a number, or a number as a category")
    return tree if tree.depth <= model.depth else tree.collapsed(tree.level <= model.depth)
