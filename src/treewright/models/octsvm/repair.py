"""Any tree made feasible for OCTSVM: cut at the depth, splits turned, moved off the points and scaled."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.exceptions import InvalidInputError
from treewright.models.octsvm.loss import normal_lengths, octsvm_split_loss
from treewright.models.octsvm.scale import ScaleCost, best_scales
from treewright.splits.thresholds import Cuts
from treewright.tree import Tree, counted, leaf_counts, visited
from treewright.tree.routing import points_at_splits

if TYPE_CHECKING:
    from treewright.models.octsvm.objective import OCTSVM

__all__ = [
    "comparable_octsvm_tree",
    "is_feasible_octsvm",
    "pruned_octsvm_tree",
    "repaired_octsvm_tree",
    "best_scaled_tree",
]

_SLACK = 9e-7
"""A solution may miss rows by a solver's tolerance of 1e-6; such splits stay as they are."""


def repaired_octsvm_tree(model: OCTSVM, tree: Tree) -> Tree:
    """The feasible OCTSVM tree for `model` that `tree` is nearest to.

    A feasible tree stays as it is, to the last bit. Splits that no point reaches become leaves, and those with all
    points beyond the margin are scaled down until one is at its end: neither ever costs anything. Of a tree that is not
    feasible then, the directions and places of the splits stay, their scales are chosen anew (see
    :func:`best_scaled_tree`), and what a leaf does as well goes (see :func:`pruned_octsvm_tree`).
    """
    tree = comparable_octsvm_tree(model, tree)
    reached = visited(tree, model.X)
    if not reached[tree.branches].all():
        keep = np.ones(tree.n_nodes, dtype=bool)
        idle = tree.branches[~reached[tree.branches]]
        keep[tree.left[idle]], keep[tree.right[idle]] = False, False
        tree = tree.collapsed(keep)
    tree = _pulled_in(model, tree)
    return tree if is_feasible_octsvm(model, tree) else pruned_octsvm_tree(model, best_scaled_tree(model, tree))


def _pulled_in(model: OCTSVM, tree: Tree) -> Tree:
    """Scale splits down on which no point is within the margin."""
    far = {
        node: nearest
        for node, inside, _ in points_at_splits(tree, model.X)
        if (nearest := float(_distances(model, tree, node, inside).min())) > 1.0 + _SLACK
    }
    if not far:
        return tree
    factor = np.ones(tree.n_nodes)
    factor[list(far)] = 1.0 / np.array(list(far.values()))
    return replace(tree, weights=tree.weights * factor[:, None], threshold=tree.threshold * factor)


def _distances(model: OCTSVM, tree: Tree, node: int, inside: IntArray) -> FloatArray:
    return np.asarray(np.abs(model.X[inside] @ tree.weights[node] - tree.threshold[node]))


def comparable_octsvm_tree(model: OCTSVM, tree: Tree) -> Tree:
    """The OCTSVM tree itself; refused if it is about other data."""
    if tree.labels is None or tree.n_outputs != 2 or tree.n_features != model.X.shape[1]:
        raise InvalidInputError(
            f"the tree has {tree.n_outputs} outputs and {tree.n_features} features, "
            f"the model 2 classes and {model.X.shape[1]} features"
        )
    return tree.numerical()


def is_feasible_octsvm(model: OCTSVM, tree: Tree) -> bool:
    """Whether an OCTSVM tree all of whose splits some point within the margin reaches is feasible as it is."""
    assert tree.labels is not None
    level = tree.level
    last = tree.branches[level[tree.branches] == model.depth]
    if level.max() > model.depth + 1 or not np.all(tree.labels[tree.left[last]] == 0):
        return False
    if not np.all(tree.labels[tree.right[last]] == 1):
        return False
    if np.any(normal_lengths(tree.weights[tree.branches], model.norm) > model.norm_limit + _SLACK):
        return False
    gap = model.tolerance - min(_SLACK, 0.01 * model.tolerance)
    for node, inside, _ in points_at_splits(tree, model.X):
        if level[node] < model.depth and _distances(model, tree, node, inside).min() < gap:
            return False
    return True


def best_scaled_tree(model: OCTSVM, tree: Tree) -> Tree:
    r"""OCTSVM tree with the best scales and orientations for the directions and places of its splits.

    From the root down, a split above the last level needs its points :math:`\mu / R` away, where R is the largest norm
    that is allowed: where they are not, the threshold moves to the nearest gap that is wide enough (by weight that
    changes sides), and where there is none, or all points go one way, the split gives its place to what is below. The
    side where more is saved becomes the right one. What is below the last level is cut off. Then all scales are chosen
    together, as the longest normal has a price, and last splits that do not pay become leaves. Leaves that points reach
    get the label of most weight. A feasible tree that is better as it is stays.

    Parameters
    ----------
    model : OCTSVM
        The model.
    tree : Tree
        Any tree of numerical splits, feasible or not.
    """
    plan = _Plan(model, comparable_octsvm_tree(model, tree))
    plan.place(0, 1, np.arange(len(model.X)))
    found = plan.tree()
    # A split that sends all points one way may pay, as some are wrong by less than at a leaf.
    worse = model.objective(found) > model.objective(tree) and is_feasible_octsvm(model, tree)
    return tree if worse else found


def pruned_octsvm_tree(model: OCTSVM, tree: Tree) -> Tree:
    """OCTSVM tree without what a leaf does as well: from the bottom up, subtrees that cost no less become one.

    The price of the longest normal is left out of account, so that the objective may fall by more than is seen here.

    Parameters
    ----------
    model : OCTSVM
        The model.
    tree : Tree
        A feasible tree; branch nodes have the labels of most weight, as :func:`treewright.tree.counted` gives them.

    Examples
    --------
    >>> from treewright.models.octsvm.objective import OCTSVM
    >>> model = OCTSVM(np.array([[0.0], [1.0]]), np.array([1, 1]), np.ones(2), depth=0)
    >>> pruned_octsvm_tree(model, Tree.stump([1.0], -1.0, [[0.0, 0.0], [0.0, 2.0]])).n_nodes
    1
    """
    assert tree.labels is not None
    level = tree.level
    # what a point of the other class pays at a leaf here
    price = model.leaf_price * np.maximum(0, model.depth + 1 - level)
    weight = leaf_counts(tree, model.X, model.y, model.weight, 2)
    cost = price * weight[np.arange(tree.n_nodes), 1 - tree.labels]
    loss = {node: _loss(model, tree, node, inside) for node, inside, _ in points_at_splits(tree, model.X)}
    keep = np.ones(tree.n_nodes, dtype=bool)
    for node in tree.branches[::-1]:
        children = [int(tree.left[node]), int(tree.right[node])]
        split = loss[int(node)] + model.c3 + cost[children].sum()
        as_leaf = float(price[node] * weight[node].min())
        cost[node] = min(split, as_leaf)
        keep[children] = split < as_leaf - 1e-9
    return tree if keep.all() else tree.collapsed(keep)


def _loss(model: OCTSVM, tree: Tree, node: int, inside: IntArray) -> float:
    margin = model.sign[inside] * (model.X[inside] @ tree.weights[node] - tree.threshold[node])
    return float(model.weight[inside] @ octsvm_split_loss(margin, model.c1, model.c2))


@dataclass
class _Plan:
    """Splits placed so far, by heap number, and what their scales cost."""

    model: OCTSVM
    source: Tree
    splits: dict[int, tuple[FloatArray, float]] = field(default_factory=dict)
    costs: dict[int, ScaleCost] = field(default_factory=dict)
    least: dict[int, float] = field(default_factory=dict)
    most: dict[int, float] = field(default_factory=dict)
    pruned: dict[int, float] = field(default_factory=dict)
    labels: dict[int, int] = field(default_factory=dict)

    def place(self, node: int, heap: int, inside: IntArray) -> None:
        """Give a node of the tree and all below it a place."""
        model, source = self.model, self.source
        assert source.labels is not None
        by_class = np.bincount(model.y[inside], model.weight[inside], 2)
        self.labels[heap] = int(np.argmax(by_class)) if by_class.any() else int(source.labels[node])
        level = heap.bit_length() - 1
        if source.left[node] < 0 or not len(inside) or level > model.depth:
            return
        size = float(normal_lengths(source.weights[[node]], model.norm)[0])
        if size == 0.0:
            self._pass_on(node, heap, inside, np.full(len(inside), bool(source.threshold[node] >= 0.0)))
            return
        normal, threshold = source.weights[node] / size, float(source.threshold[node] / size)
        value = model.X[inside] @ normal
        if level == model.depth:
            self.pruned[heap] = model.leaf_price * float(by_class.min())
            self._keep(heap, normal, threshold, value - threshold, inside, least=0.0)
            return
        threshold = self._free_place(value, threshold, model.weight[inside])
        goes_left = value <= threshold
        if goes_left.all() or not goes_left.any():
            self._pass_on(node, heap, inside, goes_left)
            return
        distance = value - threshold
        turned = self._keep(heap, normal, threshold, distance, inside, model.tolerance / np.abs(distance).min())
        left, right = int(source.left[node]), int(source.right[node])
        self.place(left, 2 * heap + turned, inside[goes_left])
        self.place(right, 2 * heap + 1 - turned, inside[~goes_left])

    def _pass_on(self, node: int, heap: int, inside: IntArray, goes_left: BoolArray) -> None:
        """Let the side where all points go take the place of its parent."""
        child = self.source.left[node] if goes_left.all() else self.source.right[node]
        self.place(int(child), heap, inside)

    def _free_place(self, value: FloatArray, wish: float, weight: FloatArray) -> float:
        """Threshold next to `wish` that some scale brings the margin to; infinite if there is none."""
        limit = self.model.norm_limit
        enough = self.model.tolerance / limit if limit > 0 else np.inf
        if np.abs(value - wish).min() >= enough:
            return wish
        cuts = Cuts(value)
        size = weight if weight.any() else None
        return cuts.threshold(cuts.nearest(wish, 2 * enough * (1 + 1e-9), size))

    def _keep(
        self, heap: int, normal: FloatArray, threshold: float, distance: FloatArray, inside: IntArray, least: float
    ) -> bool:
        """Note a split with its better orientation; return whether that is the other one."""
        model = self.model
        margin, weight = model.sign[inside] * distance, model.weight[inside]
        ways = [ScaleCost.of(side * margin, weight, model.c1, model.c2) for side in (1.0, -1.0)]
        most = np.array([max(model.norm_limit, least)])
        turned = bool(ways[1].least(least, most)[1][0] < ways[0].least(least, most)[1][0])
        side = -1.0 if turned else 1.0
        self.splits[heap] = (side * normal + 0.0, side * threshold + 0.0)  # adding 0 keeps zeros positive
        self.costs[heap], self.least[heap] = ways[turned], least
        # Beyond the scale that brings the nearest point to 1 nothing is gained; rounding must not make it seem so.
        nearest = float(np.abs(distance).min())
        self.most[heap] = 1.0 / nearest if nearest > 0 else np.inf
        return turned

    def tree(self) -> Tree:
        """The tree with the best scales."""
        model = self.model
        n_branches, p = 2 ** (model.depth + 1) - 1, model.X.shape[1]
        omega, threshold = np.zeros((n_branches, p)), np.zeros(n_branches)
        split = np.zeros(n_branches, dtype=bool)
        labels = np.zeros(2 * n_branches + 1, dtype=np.int64)
        for heap, label in self.labels.items():
            labels[heap - 1] = label
        heaps = list(self.splits)
        costs, least = [self.costs[h] for h in heaps], np.array([self.least[h] for h in heaps])
        if heaps:
            scales = best_scales(costs, least, max(model.norm_limit, least.max()), model.price)
            scales = np.minimum(scales, [self.most[h] for h in heaps])
            for heap, cost, scale in zip(heaps, costs, scales, strict=True):
                if heap in self.pruned and self.pruned[heap] <= float(cost(np.array([scale]))[0]) + model.c3:
                    continue
                split[heap - 1] = True
                omega[heap - 1] = scale * self.splits[heap][0]
                threshold[heap - 1] = scale * self.splits[heap][1]
                if heap in self.pruned:
                    labels[[2 * heap - 1, 2 * heap]] = 0, 1
        found = Tree.from_heap(split, omega, threshold, np.zeros((len(labels), 2)), labels)
        return counted(found, model.X, model.y, model.weight)
