"""Any tree made feasible for SVM1-ODT: splits scaled, moved off the points, idle ones dropped."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from treewright.core.arrays import FloatArray, IntArray
from treewright.exceptions import InvalidInputError
from treewright.models.svm1odt.hinge_costs import split_values
from treewright.splits.thresholds import Cuts, best_scale
from treewright.tree import Tree, side, without_idle_splits
from treewright.tree.routing import points_at_splits

if TYPE_CHECKING:
    from treewright.models.svm1odt.objective import SVM1ODT

__all__ = ["repaired_svm1odt_tree", "with_sides_for_the_unseen"]

_SLACK = 9e-7
"""A solution may miss rows by a solver's tolerance of 1e-6; such splits stay as they are."""


def repaired_svm1odt_tree(model: SVM1ODT, tree: Tree) -> Tree:
    r"""The feasible SVM1-ODT tree for `model` that `tree` is nearest to.

    From the root down, a split that is feasible stays as it is, to the last bit. Of any other the normal is kept and
    scaled: with its largest entry 1 it has the threshold :math:`\tau` and may be multiplied by up to
    :math:`\kappa(\tau) = \min(H, 1 / \max_i |\tau - a^\top x_i|)`, so the nearest point that reaches it must be
    :math:`\mu / \kappa(\tau)` away. If it is not, the threshold moves to the middle of its gap, or else to the nearest
    gap (by rows that change sides) that is wide enough. The scale is the cheapest one that is allowed.

    Splits with all points on one side go, leaves get their best labels, and splits below which all leaves have the same
    go as well. Levels and missing values of which no point reaches a split go with the larger side.
    """
    tree = _comparable(model, tree)
    weights, thresholds = tree.weights.copy(), tree.threshold.copy()
    keep = np.ones(tree.n_nodes, dtype=bool)
    inside_of: dict[int, IntArray] = {0: np.arange(len(model.X))}
    for node in tree.branches.tolist():
        inside = inside_of.get(node)
        if inside is None or not len(inside):
            continue
        if tree.category[node] >= 0:
            goes_left = side(tree, model.X[inside], node)
        else:
            weights[node], thresholds[node] = _feasible_split(model, tree.weights[node], tree.threshold[node], inside)
            moved = replace(tree, weights=weights, threshold=thresholds)
            goes_left = side(moved, model.X[inside], node)
        left, right = int(tree.left[node]), int(tree.right[node])
        inside_of[left], inside_of[right] = inside[goes_left], inside[~goes_left]
        keep[left], keep[right] = bool(goes_left.any()), not bool(goes_left.all())
    moved = replace(tree, weights=weights, threshold=thresholds).collapsed(keep)
    return with_sides_for_the_unseen(model, without_idle_splits(moved, model.X, model.y, model.weight, model.n_classes))


def _comparable(model: SVM1ODT, tree: Tree) -> Tree:
    """The tree cut off at the depth of the model, with a table of the levels that the model has."""
    if tree.labels is None or tree.n_outputs != model.n_classes or tree.n_features != model.X.shape[1]:
        raise InvalidInputError(
            f"the tree has {tree.n_outputs} outputs and {tree.n_features} features, "
            f"the model {model.n_classes} classes and {model.X.shape[1]} features"
        )
    split_by = tree.category[tree.category >= 0]
    if not np.all(model.is_categorical[split_by]):
        j = int(split_by[~model.is_categorical[split_by]][0])
        raise InvalidInputError(f"the tree has a categorical split by feature {j}, which is numerical in the model")
    model.refuse_codes_as_numbers(tree)
    n_levels, given = int(model.n_levels.max(initial=0)), tree.left_categories
    table = np.zeros((tree.n_nodes, n_levels), dtype=bool)
    common = min(n_levels, given.shape[1])
    table[:, :common] = given[:, :common]
    tree = replace(tree, left_categories=table)
    return tree if tree.depth <= model.depth else tree.collapsed(tree.level <= model.depth)


def _feasible_split(model: SVM1ODT, h: FloatArray, g: float, inside: IntArray) -> tuple[FloatArray, float]:
    """Normal and offset of the nearest feasible split; ``h = 0`` if there is none that parts the points."""
    largest = float(np.abs(h).max(initial=0.0))
    if largest == 0.0:
        return h, 1.0 if g >= 0 else -1.0
    if _is_feasible(model, h, g, inside):
        return h, float(g)
    a, wish = np.where(np.abs(h) > 1e-12 * largest, h / largest, 0.0), float(g / largest)
    while True:
        used = np.flatnonzero(a)
        level = model.X[:, used] @ a[used]
        known = level[~np.isnan(level)]
        level, size = level[inside], model.sizes[inside]
        here = ~np.isnan(level)
        if not here.any():
            return np.zeros_like(h), 1.0 if wish >= 0 else -1.0
        ends = (float(known.min()), float(known.max()))
        beyond = 1.0 + ends[1] - ends[0]  # no split is another one farther off
        wish = float(np.clip(wish, ends[0] - beyond, ends[1] + beyond))
        tau, most = _room(model, level[here], size[here], ends, wish, parts_missing=not here.all())
        # A feature that has missing values counts as used only if its weight is no smaller than the tolerance.
        small = model.has_gaps & (a != 0.0) & (most * np.abs(a) < model.tolerance)
        if not small.any():
            break
        a[small] = 0.0
        if not a.any():
            return a, 1.0 if wish >= 0 else -1.0
    if not np.isfinite(tau):
        return np.zeros_like(h), 1.0 if tau > 0 else -1.0
    kappa = _scale(model, a, np.abs(tau - level[here]), size[here], most)
    return kappa * a, kappa * tau


def _is_feasible(model: SVM1ODT, h: FloatArray, g: float, inside: IntArray) -> bool:
    used = np.flatnonzero(h)
    values = np.abs(g - model.X[:, used] @ h[used])
    slack = min(_SLACK, 0.01 * model.margin)
    small = model.has_gaps & (h != 0.0) & (np.abs(h) < model.tolerance - min(_SLACK, 0.01 * model.tolerance))
    return bool(
        np.abs(h).max() <= model.max_coefficient + _SLACK
        and not small.any()
        and np.nanmax(values, initial=0.0) <= 1.0 + _SLACK
        and np.nanmin(values[inside], initial=np.inf) >= model.margin - slack
    )


def _room(
    model: SVM1ODT,
    level: FloatArray,
    size: FloatArray,
    ends: tuple[float, float],
    wish: float,
    parts_missing: bool,
) -> tuple[float, float]:
    """Threshold near `wish` that can be scaled to keep the margin, and the largest scale; infinite if it is idle.

    A split with all known values on one side is not idle if it `parts_missing` values from them.
    """

    def most(tau: float) -> float:
        return min(model.max_coefficient, 1.0 / max(tau - ends[0], ends[1] - tau, 1e-300))

    def fits(tau: float) -> bool:
        return bool(most(tau) * np.abs(tau - level).min() >= model.margin)

    cuts = Cuts(level)
    here = int(np.searchsorted(cuts.level, wish, side="right"))
    within = 0 < here < len(level)
    if (within or parts_missing) and fits(wish):
        return wish, most(wish)
    if within and fits(cuts.threshold(here)):
        return cuts.threshold(here), most(cuts.threshold(here))
    enough = 2.0 * model.margin * max(1.0 / model.max_coefficient, ends[1] - ends[0])
    tau = cuts.threshold(cuts.nearest(wish, enough * (1 + 1e-9), size))
    if not np.isfinite(tau):
        beyond = 1.0 + ends[1] - ends[0]  # with the scale for it, all are at least half as far as the farthest
        tau_beyond = ends[1] + beyond if tau > 0 else ends[0] - beyond
        if not parts_missing or not fits(tau_beyond):
            return tau, model.max_coefficient
        tau = tau_beyond
    return tau, most(tau)


def _scale(model: SVM1ODT, a: FloatArray, distance: FloatArray, size: FloatArray, most: float) -> float:
    """Cheapest scale of a split: hinge errors of the points that reach it against its norm."""
    gaps = np.abs(a[model.has_gaps & (a != 0.0)])
    if model.hard:
        return most
    least = max(model.margin / float(distance.min()), model.tolerance / float(gaps.min(initial=np.inf)))
    pull = model.alpha_2 * float(np.abs(a).sum())
    if pull >= model.alpha_1 * float(size @ distance):
        return min(least, most)
    kappa = best_scale(distance / model.epsilon, model.alpha_1 * model.epsilon * size, pull, default=most)
    return float(min(max(kappa, least), most))


def with_sides_for_the_unseen(model: SVM1ODT, tree: Tree) -> Tree:
    """SVM1-ODT tree that sends levels and missing values no point has where more points go."""
    left_categories, missing_left = tree.left_categories.copy(), tree.missing_left.copy()
    for node, inside, left in points_at_splits(tree, model.X):
        X, size = model.X[inside], model.sizes[inside]
        larger: bool = float(size[left].sum()) > float(size[~left].sum())
        j = int(tree.category[node])
        if j >= 0:
            missing = np.isnan(X[:, j])
            seen = np.zeros(left_categories.shape[1], dtype=bool)
            seen[X[~missing, j].astype(np.int64)] = True
            left_categories[node, ~seen] = larger
        else:
            missing = np.isnan(split_values(tree, X, node))
        if not missing.any():
            missing_left[node] = larger
    return replace(tree, left_categories=left_categories, missing_left=missing_left)
