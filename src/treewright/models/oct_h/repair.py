"""Any tree made feasible for OCT-H: splits with a gap, leaves large enough, no idle splits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.optimize.formulation import with_min_leaf
from treewright.splits.thresholds import Cuts
from treewright.tree import Tree, without_idle_splits

if TYPE_CHECKING:
    from treewright.models.oct_h.objective import OCTH

__all__ = ["GAP_TOLERANCE", "repaired"]

GAP_TOLERANCE = 1.8e-6
"""By how much a split may miss the margin, both sides together: its rows then miss by 9e-7 each, which every solver's
tolerance of 1e-6 allows. Points that are nearer than the margin less this are never parted: the repair, the groups of
the program and the bound agree on it."""


def repaired(model: OCTH, tree: Tree) -> Tree:
    """The feasible tree for `model` that `tree` is nearest to.

    A threshold moves to the nearest gap of its node (fewest points change sides); a split without one, or with a
    side below the minimum leaf size, goes. Leaves get their best labels, and splits below which all leaves have the
    same one are dropped. A tree that is feasible already routes all points as before.
    """
    tree = tree.numerical()
    weights, thresholds = tree.weights.copy(), tree.threshold.copy()
    keep = np.ones(tree.n_nodes, dtype=bool)
    members: dict[int, IntArray] = {0: np.arange(len(model.X))}
    level = tree.level
    for node in range(tree.n_nodes):
        inside = members.get(node)
        if inside is None or not len(inside) or tree.left[node] < 0:
            continue
        left, right = int(tree.left[node]), int(tree.right[node])
        if level[node] >= model.depth:
            keep[[left, right]] = False
            continue
        weights[node], thresholds[node], goes_left = _at_nearest_gap(
            model, tree.weights[node], float(tree.threshold[node]), inside
        )
        members[left], members[right] = inside[goes_left], inside[~goes_left]
        keep[left], keep[right] = bool(goes_left.any()), not bool(goes_left.all())
    moved = Tree(tree.left, tree.right, weights, thresholds, tree.values, tree.labels)
    large = with_min_leaf(model, moved.collapsed(keep), model.min_leaf)
    return without_idle_splits(large, model.X, model.y, model.weight, model.n_classes)


def _at_nearest_gap(
    model: OCTH, normal: FloatArray, threshold: float, inside: IntArray
) -> tuple[FloatArray, float, BoolArray]:
    """Normalized split at the gap nearest to the given threshold, and who goes left."""
    size = np.abs(normal).sum()
    if size == 0.0:
        return normal, threshold, np.full(len(inside), bool(threshold >= 0.0))
    normal = np.where(np.abs(normal) > 1e-9 * np.abs(normal).max(), normal, 0.0)
    normal = normal / np.abs(normal).sum()
    level = model.X[inside] @ normal
    cuts = Cuts(level)
    k = cuts.nearest(threshold / size, model.margin - GAP_TOLERANCE)
    middle = float(cuts.thresholds(beyond=model.margin)[k])  # a split may send all points one way
    return normal, middle, level <= middle
