"""Sparse oblique splits for large data, a node at a time, as tree alternating optimization (TAO) asks for them.

A direction comes from l1-logistic regression on the points with a stake, the threshold along it is exact, and the split
is replaced only if the objective falls. The method is that of Carreira-Perpinan and Tavallali (2018). Splits may be
held to k features (:mod:`~treewright.splits.few`); the best single feature is tried then too, and for k = 1 it is all
that is tried, and exact.

Points may have categories and gaps. A level of a category goes where its points are cheaper together, which is the best
subset. Points that lack a value which a hyperplane uses go where they are cheaper together. As that depends on which
features it uses, several hyperplanes are tried: that of a regression with means in the place of what is missing, the
same without features that many points lack, that of a regression on the points which have all the features of the best
of these, and the best single feature. Each is measured with its gaps before it is taken, so the objective never rises.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.splits.few import Direction, few_features, restricted_to, steepest_features
from treewright.splits.l1_logistic import l1_logistic
from treewright.splits.mixed import PricedRule, best_category, best_single, cut_along
from treewright.splits.node import Node
from treewright.splits.points import Points, SplitRule
from treewright.splits.thresholds import best_feature, best_threshold

__all__ = [
    "SparseNodes",
    "logistic_node",
    "normal_price",
]

_IDLE, _FEW = 0.02, 1000
"""Points that have this share of the stakes at a node together, the smallest ones, are left out of its regression if
there are more than so many points: often half of the points, as both sides predict about the same for them."""

_LIKELY, _SORTED = 20, 200_000
"""A single feature that is one of several directions is the best of so many, of more where their table has at most so
many cells: to sort the columns of a wide table takes longer than all regressions."""

_GAPPY = (0.3, 0.1, 0.0)
"""Hyperplanes without the features that more than these shares of the stakes lack are tried."""


def logistic_node(
    X: Any, goes_right: BoolArray, weight: FloatArray, alpha: float, start: tuple[FloatArray, float] | None
) -> tuple[FloatArray, float]:
    """Direction of the split of a node by warm-started l1-logistic regression.

    The price of its 1-norm is alpha too. Weights of a logistic regression are longer than 1, the length that alpha is
    the price for in the objective, so planes are a little smoother than the objective asks for: that generalizes.
    """
    solved = l1_logistic(X, goes_right, weight, alpha, start)
    return solved.weights, solved.intercept


def normal_price(normals: FloatArray) -> FloatArray:
    """Ratio of 1-norm and 2-norm of the normal of each split, 0 for a row of zeros.

    Examples
    --------
    >>> normal_price(np.array([[0.0, 2.0, 0.0], [0.5, 0.5, -0.5], [0.0, 0.0, 0.0]])).round(3).tolist()
    [1.0, 1.732, 0.0]
    """
    long = np.sqrt(np.einsum("ij,ij->i", normals, normals))
    return np.asarray(np.abs(normals).sum(axis=1) / np.where(long > 0, long, 1.0))


@dataclass
class SparseNodes:
    r"""Splits by l1-logistic regression, on few features if asked, at a price of alpha times the ratio of the norms.

    Attributes
    ----------
    alpha : float
        Price of the 1-norm of a normal of 2-norm 1, in units of the loss.
    max_split_features : int or None
        Most features of a hyperplane, None for any number. A subset of a category is one feature. With 2 or more, nodes
        must not have more to begin with.
    direction : callable
        Finds the direction of a hyperplane.
    starts : dict
        What the directions of the nodes start from: those of their last regressions.
    features : dict of int to {"numbers", "categories"}
        Kind of features that the splits of some nodes may have, on points with categories; others may have any.

    Examples
    --------
    >>> round(SparseNodes(alpha=2.0).price(np.array([[0.0, 3.0], [1.0, -1.0], [0.0, 0.0]])), 3)
    4.828
    """

    alpha: float
    max_split_features: int | None = None
    direction: Direction = logistic_node
    starts: dict[int, tuple[FloatArray, float]] = field(default_factory=dict)
    features: dict[int, str] = field(default_factory=dict)

    def price(self, normals: FloatArray) -> float:
        """Alpha times the sum of the ratios."""
        return self.alpha * float(normal_price(normals).sum())

    def better(self, points: Points, node: Node, budget: Budget) -> SplitRule | None:
        """A split of lower cost than the node has, or None.

        The cost of sides is the sum of the stakes of the points on the left, plus the price of the normal.
        """
        stake, price = node.stake, self.price(node.normal[None, :])
        if budget.over or (price == 0.0 and not np.any(stake)):
            return None
        now = float(stake[node.goes_left].sum()) + price
        worth = np.abs(stake)
        care = np.flatnonzero(worth > 1e-12 * worth.max(initial=0.0))
        whole = float(stake.sum())
        best = PricedRule(min(0.0, whole), SplitRule(np.zeros(len(node.normal)), 1.0 if whole < 0 else -1.0))
        rows, stake = node.rows[care], stake[care]
        sided = stake > 0  # should go right
        if len(care) and sided.any() and not sided.all():
            for found in self._candidates(points, node, rows, stake, sided):
                if found.cost < best.cost:
                    best = found
        return None if now - best.cost <= 1e-10 * max(1.0, float(worth.sum())) else best.rule

    def _candidates(
        self, points: Points, node: Node, rows: IntArray, stake: FloatArray, sided: BoolArray
    ) -> list[PricedRule]:
        """Splits to choose from, with their prices; points have stakes on both sides."""
        if not points.mixed:
            return [
                self._cut(points, normal, rows, stake) for normal in self._directions(points, node, rows, stake, sided)
            ]
        found: list[PricedRule | None] = []
        kind = self.features.get(node.number)
        if points.n_levels is not None and kind != "numbers":
            found.append(best_category(points, rows, stake))
        if len(points.numerical) and kind != "categories":
            few = restricted_to(self.max_split_features, len(points.numerical))
            if points.gaps or few or len(points.squeezed):
                found.append(best_single(points, rows, stake))
            if self.max_split_features != 1:
                found += self._hyperplanes(points, node, rows, stake, sided)
        return [self._priced(priced) for priced in found if priced is not None]

    def _priced(self, found: PricedRule) -> PricedRule:
        """The split with the price of its normal, of 2-norm 1, added."""
        return PricedRule(found.cost + self.alpha * float(np.abs(found.rule.normal).sum()), found.rule)

    def _cut(self, points: Points, normal: FloatArray, rows: IntArray, stake: FloatArray) -> PricedRule:
        """Cost, normal and best threshold along a direction."""
        level = points.levels(rows, normal)
        right, left = np.maximum(stake, 0.0), np.maximum(-stake, 0.0)
        threshold, cost = best_threshold(level, right, left, points.gap_along(normal))
        if not np.isfinite(threshold):  # all go one way, which is cheaper without a normal
            return PricedRule(np.inf, SplitRule(normal, 0.0))
        cost = cost - float(left.sum()) + self.alpha * float(np.abs(normal).sum())
        return PricedRule(cost, SplitRule(normal, threshold))

    def _directions(
        self, points: Points, node: Node, rows: IntArray, stake: FloatArray, sided: BoolArray
    ) -> list[FloatArray]:
        """Directions of 2-norm 1 to try at a node: its own, that of the surrogate, and single features.

        Of these the best one where few are allowed, else those that values far off squeeze, which regressions overlook.
        """
        few = restricted_to(self.max_split_features, points.X.shape[1])
        if few == 1:
            return [_best_feature(points, rows, stake)]
        single = [_likely_feature(points, rows, stake)] if few else list(_axes(points.squeezed, points.X.shape[1]))
        own = node.normal
        found = [own] if np.any(own) else []
        start = (5.0 * own, -5.0 * node.threshold) if found else None
        some = _busy(stake, sided)
        rows, sided, worth = rows[some], sided[some], np.abs(stake[some])
        found += [w / np.sqrt(w @ w) for w in self._surrogates(points.take(rows), sided, worth, node.number, start)]
        return found + single

    def _surrogates(
        self, X: Any, sided: BoolArray, worth: FloatArray, number: int, start: tuple[FloatArray, float] | None
    ) -> list[FloatArray]:
        """Weights of regressions on no more features than allowed, none of them zero throughout.

        The regression on all features goes on from where the last one at this node ended, the first from a start.
        """
        few = restricted_to(self.max_split_features, X.shape[1])
        if few is not None:
            return few_features(X, sided, worth, self.alpha, few, self.direction)
        solved = self.direction(X, sided, worth, self.alpha, self.starts.get(number, start))
        self.starts[number] = solved
        return [solved[0]] if np.any(solved[0]) else []

    def _hyperplanes(
        self, points: Points, node: Node, rows: IntArray, stake: FloatArray, sided: BoolArray
    ) -> list[PricedRule]:
        """Hyperplanes over the numerical features of points with categories or gaps, prices not added."""
        number, own = points.numerical, node.normal
        found, start = [], None
        if node.rule.category < 0 and np.any(own):
            found.append(cut_along(points, rows, stake, own))
            start = 5.0 * own[number], -5.0 * node.threshold
        some = _busy(stake, sided)
        table = _Numbers(points, rows[some], np.abs(stake[some]))

        def cut(weights: FloatArray) -> PricedRule:
            normal = np.zeros(len(own))
            normal[number] = weights / np.sqrt(weights @ weights)
            return cut_along(points, rows, stake, normal)

        few = restricted_to(self.max_split_features, len(number))
        if few is not None:
            tried = table.few(sided[some], self.alpha, few, self.direction)
        else:
            tried = self._surrogates(table.filled, sided[some], table.worth, node.number, start)
            tried = [thin for weights in tried for thin in table.thinned(weights)]
        thinned = [cut(weights) for weights in tried]
        if thinned and points.gaps:
            used = np.flatnonzero(min(thinned, key=lambda p: self._priced(p).cost).rule.normal[number])
            there = table.complete(used)
            wish = sided[some][there]
            if len(there) < len(some) and wish.any() and not wish.all():
                part = np.ascontiguousarray(table.filled[np.ix_(there, used)])
                weights = np.zeros(len(number))
                weights[used] = self.direction(part, wish, table.worth[there], self.alpha, None)[0]
                thinned += [cut(weights)] if np.any(weights) else []
        return found + thinned


def _axes(features: IntArray, n_features: int) -> FloatArray:
    axes = np.zeros((len(features), n_features))
    axes[np.arange(len(features)), features] = 1.0
    return axes


class _Numbers:
    """The numerical features of some points, gaps filled with means, for regressions."""

    def __init__(self, points: Points, rows: IntArray, worth: FloatArray) -> None:
        self.worth = worth
        self.filled = np.ascontiguousarray(points.X[np.ix_(rows, points.numerical)])
        self.holes = np.isnan(self.filled) if points.gaps else None
        if self.holes is not None:
            known = np.where(self.holes, 0.0, self.filled)
            mass = worth @ ~self.holes
            mean = (worth @ known) / np.where(mass > 0, mass, 1.0)
            self.filled = np.where(self.holes, mean.astype(self.filled.dtype), self.filled)

    def thinned(self, weights: FloatArray) -> list[FloatArray]:
        """The weights, and those without the features that many points lack, which are not zero throughout."""
        found = [np.where(kept, weights, 0.0) for kept in self._kept()]
        return [w for k, w in enumerate(found) if np.any(w) and not (k and np.array_equal(w, found[k - 1]))]

    def few(self, sided: BoolArray, alpha: float, most: int, direction: Direction) -> list[FloatArray]:
        """Weights on so many features at most, of all and of those that few points lack."""
        found = []
        for kept in self._kept():
            part = np.ascontiguousarray(self.filled[:, kept])
            for weights in few_features(part, sided, self.worth, alpha, most, direction):
                found.append(np.zeros(len(kept)))
                found[-1][kept] = weights
        return found

    def _kept(self) -> list[BoolArray]:
        """Features that stay, a set after the other: all, then without those that many points lack."""
        everything = np.ones(self.filled.shape[1], dtype=bool)
        if self.holes is None:
            return [everything]
        lacking = self.worth @ self.holes / self.worth.sum()
        sets = [everything, *(lacking <= share for share in _GAPPY)]
        return [kept for k, kept in enumerate(sets) if kept.any() and not (k and np.array_equal(kept, sets[k - 1]))]

    def complete(self, used: IntArray) -> IntArray:
        """Points that lack none of some features."""
        return np.arange(len(self.worth)) if self.holes is None else np.flatnonzero(~self.holes[:, used].any(axis=1))


def _best_feature(points: Points, rows: IntArray, stake: FloatArray) -> FloatArray:
    """The feature whose best threshold costs least, as a normal."""
    normal = np.zeros(points.X.shape[1])
    normal[best_feature(points, rows, lambda cuts: cuts.left(stake), points.axis_gap)[0]] = 1.0
    return normal


def _likely_feature(points: Points, rows: IntArray, stake: FloatArray) -> FloatArray:
    """The same, as one of several directions: of a large table only likely features are looked at."""
    n, p = len(rows), points.X.shape[1]
    count = max(_LIKELY, _SORTED // n)
    if count >= p:
        return _best_feature(points, rows, stake)
    table = points.take(rows)
    some = steepest_features(table, stake > 0, np.abs(stake), count)
    part = table[:, some].toarray() if points.sparse else np.ascontiguousarray(table[:, some])
    normal = np.zeros(p)
    normal[some] = _best_feature(Points(part), np.arange(n), stake)
    return normal


def _busy(stake: FloatArray, sided: BoolArray) -> IntArray:
    """Points at a node without those whose stakes are so small that together they hardly count."""
    everyone = np.arange(len(stake))
    if len(stake) <= _FEW:
        return everyone
    order = np.argsort(np.abs(stake), kind="stable")
    held = np.cumsum(np.abs(stake[order]))
    some = np.sort(order[np.searchsorted(held, _IDLE * held[-1]) :])
    return some if sided[some].any() and not sided[some].all() else everyone
