"""What models share whose splits compare a single feature with a threshold.

Of such a feature only the order of its values matters. Value number v of feature j is the v-th of its distinct values,
from 0; a *cut* k sends values 0 to k - 1 left and the others right, so cut 0 sends every point right. Nothing depends
on units, and no two values are too near to each other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.data.reduction import EXACT_CELLS, distinct_rows, sorted_distinct_rows
from treewright.optimize.formulation import LabelledPoints
from treewright.splits.points import Points
from treewright.splits.thresholds import Cuts, best_feature
from treewright.tree import Tree, counted
from treewright.tree.complete import Planes

__all__ = ["AxisPoints", "CompleteCuts", "single_feature_tree"]


class CompleteCuts(NamedTuple):
    """Splits of a complete BinOCT or fair tree as cuts of features, labels of its leaves, where points end.

    Attributes
    ----------
    feature : ndarray of int, shape (n_branches,)
        Feature of each branch, -1 for one that does not split: points go right there.
    cut : ndarray of int, shape (n_branches,)
        Number of its values that go left.
    labels : ndarray of int, shape (n_leaves,)
        Class numbers; 0 for leaves that no point reaches by a split.
    leaf : ndarray of int, shape (n_groups,)
        Leaf of each group of equal points.
    """

    feature: IntArray
    cut: IntArray
    labels: IntArray
    leaf: IntArray


@dataclass(frozen=True)
class AxisPoints(LabelledPoints):
    """Labelled points of BinOCT and fair trees, whose features count by the order of their values; see the module."""

    @cached_property
    def group(self) -> IntArray:
        """Group of each point: equal points go the same way."""
        return (sorted_distinct_rows if self.X.size <= EXACT_CELLS else distinct_rows)(self.X)[1]

    @cached_property
    def values(self) -> list[FloatArray]:
        """Distinct values of each feature, ascending."""
        return [np.unique(column) for column in self.X.T]

    @cached_property
    def rank(self) -> IntArray:
        """Number of the value that each group has of each feature, shape (n_groups, n_features)."""
        first = np.unique(self.group, return_index=True)[1]
        columns = [np.unique(self.X[first, j], return_inverse=True)[1] for j in range(self.X.shape[1])]
        return np.stack(columns, axis=1)

    @cached_property
    def varied(self) -> IntArray:
        """Features with more than one value."""
        return np.flatnonzero([len(values) > 1 for values in self.values])

    @cached_property
    def _thresholds(self) -> list[FloatArray]:
        """Threshold of each cut of each feature: midway, and at both ends where it sends all points one way."""
        found = []
        for values in self.values:
            middle = Cuts(values).thresholds()
            middle[0], middle[-1] = np.nextafter(values[0], -np.inf), values[-1]
            found.append(middle)
        return found

    def least_error(self) -> float:
        """No tree has less: errors of equal points, or of classes for which no leaf is left; at depth 1, the least."""
        table = self.group_weight
        if self.depth == 1:
            ranks = self.rank.astype(np.float64)
            return best_feature(Points(ranks), np.arange(len(ranks)), lambda cuts: cuts.labelled(table))[2]
        inseparable = (table.sum(axis=1) - table.max(axis=1)).sum()
        by_class = np.sort(table.sum(axis=0))
        return float(max(inseparable, by_class[: max(0, self.n_classes - self.tree.n_leaves)].sum()))

    # ------------------------------------------------------------------ trees as cuts, and back

    def as_cuts(self, tree: Tree) -> CompleteCuts:
        """Cuts of a tree whose splits have a single feature with weight 1, as :func:`single_feature_tree` gives it."""
        planes = Planes.from_tree(tree, self.depth, go_left=False)
        feature = np.where(planes.omega.any(axis=1), np.argmax(planes.omega != 0, axis=1), -1)
        cut = np.zeros(len(feature), dtype=np.int64)
        for b in np.flatnonzero(feature >= 0).tolist():
            cut[b] = np.searchsorted(self.values[feature[b]], planes.gamma[b], side="right")
        node, groups = np.zeros(len(self.rank), dtype=np.int64), np.arange(len(self.rank))
        for _ in range(self.depth):
            node = 2 * node + 2 - (self.rank[groups, feature[node]] < cut[node])  # cut 0 where there is no feature
        return CompleteCuts(feature, cut, np.maximum(planes.labels, 0), node - len(feature))

    def from_cuts(self, feature: IntArray, cut: IntArray, labels: IntArray) -> Tree:
        """The tree of these cuts, with thresholds midway; what is below a branch without feature (-1) is cut off."""
        omega, gamma = np.zeros((len(feature), self.X.shape[1])), np.zeros(len(feature))
        for b in np.flatnonzero(feature >= 0).tolist():
            thresholds = self._thresholds[feature[b]]
            omega[b, feature[b]], gamma[b] = 1.0, thresholds[min(cut[b], len(thresholds) - 1)]
        tree = Planes(omega, gamma, labels).to_tree(self.n_classes, feature >= 0)
        return counted(tree, self.X, self.y, self.weight)

    def from_ranks(self, tree: Tree) -> Tree:
        """The tree that does with points what a tree with splits of single features does with their value numbers."""
        threshold = tree.threshold.copy()
        for node in tree.branches.tolist():
            thresholds = self._thresholds[int(np.argmax(tree.weights[node] != 0))]
            threshold[node] = thresholds[min(max(0, int(np.floor(tree.threshold[node])) + 1), len(thresholds) - 1)]
        return replace(tree, threshold=threshold)


def single_feature_tree(tree: Tree, X: FloatArray, depth: int) -> Tree:
    """A tree made one of BinOCT: splits of a single feature, points on both sides, the threshold midway.

    A split with several features becomes the one with a single feature that sends the fewest points elsewhere; others
    send all points where they did. What is below `depth` is cut off. Labels stay.

    Examples
    --------
    >>> X = np.array([[0.0, 5.0], [1.0, 0.0], [2.0, 5.0], [3.0, 0.0]])
    >>> tree = single_feature_tree(Tree.stump([-1.0, 0.1], -1.1, [[0.0, 2.0], [2.0, 0.0]]), X, 1)
    >>> tree.weights[0].tolist(), tree.threshold[0], tree.labels[1:].tolist()
    ([1.0, 0.0], np.float64(1.5), [0, 1])
    """
    tree = tree.numerical()
    left, right, level = tree.left.copy(), tree.right.copy(), tree.level
    weights, threshold = np.zeros_like(tree.weights), np.zeros_like(tree.threshold)
    keep = np.ones(tree.n_nodes, dtype=bool)
    members: dict[int, IntArray] = {0: np.arange(len(X))}
    for node in tree.branches.tolist():  # children are numbered after their parent
        inside = members.pop(node, np.zeros(0, dtype=np.int64))
        if not len(inside) or level[node] >= depth:
            keep[[left[node], right[node]]] = False
            continue
        feature, lower, turned = _single(X, inside, tree.weights[node], float(tree.threshold[node]))
        if turned:
            left[node], right[node] = right[node], left[node]
        members[int(left[node])], members[int(right[node])] = inside[lower], inside[~lower]
        if lower.all() or not lower.any():
            keep[left[node] if not lower.any() else right[node]] = False
        else:
            weights[node, feature] = 1.0
            threshold[node] = Cuts(X[inside, feature]).threshold(int(np.count_nonzero(lower)))
    return Tree(left, right, weights, threshold, tree.values, tree.labels).collapsed(keep)


def _single(X: FloatArray, inside: IntArray, normal: FloatArray, threshold: float) -> tuple[int, BoolArray, bool]:
    """Feature of the single split nearest to a hyperplane, who is below it, and whether these are to go right."""
    goes_left = np.asarray(X[inside] @ normal <= threshold)
    used = np.flatnonzero(normal)
    if len(used) <= 1 or goes_left.all() or not goes_left.any():
        turned = bool(len(used) == 1 and normal[used[0]] < 0)
        return int(used[0]) if len(used) else 0, goes_left ^ turned, turned
    points, best = Points(X), (np.inf, 0, 0.0, False)
    for turned in (False, True):
        wrong_left = (~goes_left ^ turned).astype(np.float64)
        feature, at, cost = best_feature(points, inside, lambda cuts, c=wrong_left: cuts.sided(c, 1.0 - c))  # type: ignore[misc]
        best = min(best, (cost, feature, at, turned), key=lambda found: found[0])
    _, feature, at, turned = best
    return feature, X[inside, feature] <= at, turned
