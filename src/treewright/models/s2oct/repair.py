"""Any tree made feasible for S2OCT: completed, labels placed, margins kept, normals within the bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.exceptions import InvalidInputError
from treewright.splits.thresholds import Cuts, best_scale
from treewright.tree import Tree
from treewright.tree.complete import FREE, Planes

if TYPE_CHECKING:
    from treewright.models.s2oct.objective import S2OCT

__all__ = ["repaired_s2oct_planes"]

_SLACK = 9e-7
"""A solution may miss rows by a solver's tolerance of 1e-6; such splits stay as they are."""

_NEARLY = 1e-4
"""Splits that miss a margin by no more than this share of it keep their scale."""


@dataclass
class _Moved:
    """A split whose scale is still open: normal of size 1, who has to keep the margin, who is there, scale it had."""

    margin_of: BoolArray
    inside: BoolArray
    scale: float | None


def repaired_s2oct_planes(model: S2OCT, tree: Tree) -> Planes:
    r"""Planes of a complete tree that is feasible for the S2OCT `model` and as near to `tree` as cheaply possible.

    0. A split with more features than the model allows keeps those of the largest weights; its threshold moves to where
       as many points go left as before.
    1. A leaf above the last level is continued by splits that send everything left (:math:`\omega = 0`,
       :math:`\gamma = 1`), what is below the last level is cut off. Lowest splits with equal labels send all left, too.
    2. From the root down, a split that keeps its margins and bounds stays. Else its normal is scaled to
       :math:`\max_j |a_j| = 1`; since :math:`f = \kappa (a^\top x - \tau)` with :math:`\kappa \le s`, unlabelled points
       must be :math:`m / s` from :math:`\tau`: it moves to the nearest gap of that kind, counted in rows that change
       sides (beyond the last point is a gap as well). A split with all points on one side becomes trivial.
    3. Free leaves get the classes that lack a leaf; if some still do, they take leaves of classes that have several.
    4. The scale :math:`\kappa` of a moved split minimizes the hinge errors of the labelled points that reach it, among
       the scales that the margins and the bound allow.
    5. Lowest splits are mirrored where labels fall from left to right. For two classes they then alternate.

    After step 2 each split has points on both sides, or is trivial, or was feasible before: no constant of the
    program is too small for it.
    """
    if tree.labels is None or tree.n_outputs != model.n_classes or tree.n_features != model.X.shape[1]:
        raise InvalidInputError(
            f"the tree has {tree.n_outputs} outputs and {tree.n_features} features, "
            f"the model {model.n_classes} classes and {model.X.shape[1]} features"
        )
    planes = _thinned(model, Planes.from_tree(tree, model.depth).without_equal_siblings())
    omega, gamma, label = planes.omega, planes.gamma, planes.labels  # arrays of their own, changed in place
    leaf, moved = _keep_margins(model, omega, gamma)
    _place_labels(model, label, leaf)
    _scale(model, omega, gamma, label, leaf, moved)
    return planes.rising()


def _thinned(model: S2OCT, planes: Planes) -> Planes:
    """Planes whose splits have no more features than the model allows."""
    if not model.restricted or model.max_split_features is None:
        return planes
    for b in np.flatnonzero(np.count_nonzero(planes.omega, axis=1) > model.max_split_features):
        # Weights count by what they move: a feature that hardly varies needs a large one.
        worth = np.abs(planes.omega[b]) * np.ptp(model.X, axis=0)
        omega = np.zeros(len(worth))
        kept = np.argsort(-worth, kind="stable")[: model.max_split_features]
        omega[kept] = planes.omega[b, kept]
        share = float(np.mean(model.X @ planes.omega[b] <= planes.gamma[b]))
        planes = planes.replaced(int(b), omega, float(np.quantile(model.X @ omega, share)))
    return planes


def _keep_margins(model: S2OCT, omega: FloatArray, gamma: FloatArray) -> tuple[IntArray, dict[int, _Moved]]:
    """Move thresholds until the margins can be kept; return the leaf of each point and the splits without scale."""
    X, unlabelled = model.X, model.y < 0
    heap, moved = np.ones(len(X), dtype=np.int64), {}
    for b in range(len(gamma)):
        inside = heap == b + 1
        margin_of = unlabelled & (inside | model.everywhere)
        f = X @ omega[b] - gamma[b]
        size = float(np.abs(omega[b]).max(initial=0.0))
        short = float(np.max(model.required - np.abs(f[margin_of]), initial=0.0))
        too_far = float(np.max(np.abs(f) - model.reach, initial=0.0))
        if size > model.max_coefficient + _SLACK or short > min(_SLACK, 0.01 * model.required) or too_far > _SLACK:
            near = short <= _NEARLY * model.required and size <= model.max_coefficient * (1 + _NEARLY)
            trivial = size == 0.0
            if not trivial:
                a = omega[b] / size
                a = np.where(np.abs(a) > 1e-12, a, 0.0)
                level = X @ a
                tau = _nearest_gap(model, level[margin_of], model.rows[margin_of], gamma[b] / size)
                f = level - tau
                trivial = bool(np.all(f > 0) or np.all(f <= 0))
            if trivial:
                goes_left = gamma[b] >= 0 if size == 0.0 else bool(np.all(f <= 0))
                omega[b], gamma[b] = 0.0, 1.0 if goes_left else -1.0
                f = np.full(len(X), -gamma[b])
            else:
                omega[b], gamma[b] = a, tau
                moved[b] = _Moved(margin_of, inside, size if near else None)
        heap = np.where(inside, 2 * heap + (f > 0), heap)
    return heap - model.tree.n_leaves, moved


def _nearest_gap(model: S2OCT, level: FloatArray, size: IntArray, wish: float) -> float:
    """Threshold nearest to `wish` with room for the margin, by the rows that change sides."""
    room = model.required / model.max_coefficient
    cuts = Cuts(level)
    k = cuts.nearest(wish, 2.0 * room * (1 - 1e-9), size)
    low, high = cuts.ends(k)
    return cuts.threshold(k) if low + room > high - room else float(np.clip(wish, low + room, high - room))


def _place_labels(model: S2OCT, label: IntArray, leaf: IntArray) -> None:
    """Give free leaves a label other than their sibling's, and every class with labelled points a leaf."""
    points = model.labelled
    weight = np.zeros((len(label), model.n_classes))
    np.add.at(weight, (leaf[points], model.y[points]), model.weight[points])
    # Classes by need: those with labelled points, heaviest first, then those with a total, then the rest.
    by_class = weight.sum(axis=0)
    present = np.isin(np.arange(model.n_classes), model.present)
    need = np.lexsort([-by_class, -model.totals.low.sum(axis=0), ~present])
    waiting = need[~np.isin(need, label)].tolist()[::-1]
    for t in np.flatnonzero(label == FREE):
        label[t] = waiting.pop() if waiting else need[0] if need[0] != label[t ^ 1] else need[1]
    for k in need[present[need]]:
        if k in label:
            continue
        # A leaf can be spared if its class has another or needs none; the one that loses least is taken.
        times = np.bincount(label, minlength=model.n_classes)
        spare = np.flatnonzero((times[label] > 1) | ~present[label])
        label[spare[np.argmin(weight[spare, label[spare]] - weight[spare, k])]] = k


def _scale(
    model: S2OCT, omega: FloatArray, gamma: FloatArray, label: IntArray, leaf: IntArray, moved: dict[int, _Moved]
) -> None:
    """Choose the scale of each moved split."""
    labelled = model.y >= 0
    right = labelled & (label[leaf] == model.y)
    wrong = labelled & (label[leaf ^ 1] == model.y)
    for b, split in moved.items():
        distance = np.abs(model.X @ omega[b] - gamma[b])
        nearest = float(np.min(distance[split.margin_of], initial=np.inf))
        least = min(model.max_coefficient, model.required / nearest)
        if split.scale is not None:
            kappa = split.scale
        else:
            is_lowest = b >= len(gamma) // 2
            good, bad = split.inside & right, split.inside & wrong & is_lowest
            kappa = best_scale(
                distance[good], model.weight[good], float(model.weight[bad] @ distance[bad]), default=1.0
            )
        kappa = min(max(kappa, least), model.max_coefficient)
        omega[b], gamma[b] = kappa * omega[b], kappa * gamma[b]
