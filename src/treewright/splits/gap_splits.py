"""One oblique split of labelled points with a gap between its sides: by error, by impurity, or along a direction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.splits.directions import hinge_directions, logistic_direction
from treewright.splits.points import Points
from treewright.splits.thresholds import Split, best_feature, best_labels_threshold, best_threshold

__all__ = [
    "GapPoints",
    "best_stump",
    "bisector",
    "candidate_directions",
    "error_split",
    "impurity_split",
    "split_along",
]

_LP_WORK = 1e8
"""A hinge LP takes about 1 s where (points)^2 x (features) is this much, and grows with it; above there are none."""

_L1_SECONDS = 5e-6
"""Seconds a table cell that a sparse logistic regression takes at most."""

_CLASSES = 32
"""Heaviest classes that a stump may predict."""

_PAIRS = 6
"""Pairs of classes, and single classes, for which directions are sought at a node."""

Cut = Callable[[FloatArray], tuple[float, float]]
"""Positions of points along a direction to the best threshold there and its cost."""


@dataclass(frozen=True)
class GapPoints:
    """Labelled points, and what a split between them must keep."""

    X: FloatArray
    y: IntArray
    weight: FloatArray
    """Points, class numbers, weights."""
    n_classes: int
    """Number of classes."""
    gap: float = 0.0
    """Distance between the sides of a split along its normal of 1-norm 1."""
    min_size: float = 1.0
    """Smallest sum of `size` on each side of a split."""
    price: float = 0.0
    """Cost of a feature in a split, in units of weight."""
    size: FloatArray | None = None
    """How many rows each point stands for in `min_size`, 1 by default."""

    def at(self, rows: IntArray) -> GapPoints:
        """Some of the points."""
        size = None if self.size is None else self.size[rows]
        return replace(self, X=self.X[rows], y=self.y[rows], weight=self.weight[rows], size=size)

    @property
    def by_class(self) -> FloatArray:
        """Weight of each class."""
        return np.bincount(self.y, self.weight, self.n_classes).astype(np.float64)

    @property
    def large_enough(self) -> bool:
        """Whether there are rows for two sides."""
        rows = len(self.y) if self.size is None else self.size.sum()
        return bool(rows >= 2 * self.min_size)

    def cheapest_cut(self, level: FloatArray, cost_left: FloatArray, cost_right: FloatArray) -> tuple[float, float]:
        """Best threshold along a direction, and its cost."""
        return best_threshold(level, cost_left, cost_right, self.gap, self.min_size, self.size)

    def directions(self, goes_left: BoolArray, budget: Budget) -> list[FloatArray]:
        """Directions that part the marked points from the others."""
        return candidate_directions(self.X, goes_left, self.weight, self.gap, self.price > 0, budget)


def best_stump(points: GapPoints, budget: Budget) -> Split | None:
    """Best oblique split into two leaves with a label each: least error plus price of its features.

    Directions are the single features, and those that logistic regression and hinge LPs give for pairs of classes;
    thresholds and labels are exact. A stump that predicts a pair of classes is wrong on all others: pairs come in the
    order of that bound, until none can be better.
    """
    X, y, by_class, price = points.X, points.y, points.by_class, points.price
    total = float(by_class.sum())
    classes = np.argsort(-by_class, kind="stable")[:_CLASSES]
    classes = classes[by_class[classes] > 0]
    table = points.weight[:, None] * (y[:, None] == classes)
    others = total - float(by_class[classes].sum())
    allowed = points.gap, points.min_size, points.size

    def cut(level: FloatArray) -> tuple[float, float]:
        threshold, cost = best_labels_threshold(level, table, *allowed)
        return threshold, cost + others

    feature, threshold, cost = best_feature(
        Points(X), np.arange(len(X)), lambda cuts: cuts.labelled(table), *allowed, budget
    )
    best: Split | None = None
    if np.isfinite(cost):
        best = Split((np.arange(X.shape[1]) == feature).astype(np.float64), threshold, cost + others + price)
    pairs = sorted(combinations(classes.tolist(), 2), key=lambda pair: -by_class[list(pair)].sum())
    for low, high in pairs[:_PAIRS]:
        least = total - float(by_class[low] + by_class[high]) + price
        if (best is not None and least >= best.cost - 1e-12) or budget.over:
            break
        either = points.at(np.flatnonzero((y == low) | (y == high)))
        best = _better(best, X, either.directions(either.y == low, budget), cut, price, budget)
    return best


def candidate_directions(
    X: FloatArray,
    goes_left: BoolArray,
    weight: FloatArray,
    gap: float,
    sparse: bool,
    budget: Budget | None = None,
) -> list[FloatArray]:
    """Directions of a split that parts the marked points from the others, by several convex surrogates.

    The first is there whatever the budget says; the others only as long as time is left.
    """
    if goes_left.all() or not goes_left.any():
        return []
    left = Budget() if budget is None else budget
    directions = [logistic_direction(X, goes_left, weight, "l2", 1e-3)]
    if not left.over:
        directions.append(logistic_direction(X, goes_left, weight, "l2", 1.0))
    for strength in (0.1, 1.0, 10.0) if sparse else ():
        if not left.over and left.remaining > _L1_SECONDS * X.size:
            directions.append(logistic_direction(X, goes_left, weight, "l1", strength))
    if len(X) * X.size <= _LP_WORK and not left.over:
        directions += hinge_directions(X, goes_left, weight, gap, budget=budget)
    return [d for d in directions if np.any(d != 0)]


def error_split(points: GapPoints, budget: Budget) -> Split | None:
    """Split for a leaf that none will follow, by error."""
    by_class = points.by_class
    error = float(by_class.sum() - by_class.max())
    if error <= 0 or not points.large_enough:
        return None
    split = best_stump(points, budget)
    if split is None or split.cost >= error - 1e-12 or not np.isfinite(split.threshold):
        return None
    return split


def impurity_split(points: GapPoints, budget: Budget) -> Split | None:
    """Split for a leaf that more splits will follow, by impurity."""
    X, y, weight = points.X, points.y, points.weight
    if np.all(y == y[:1]) or not points.large_enough:
        return None
    best, best_impurity = None, np.inf
    for goes_left in _wishes(X, y, weight, points.n_classes):
        for direction in points.directions(goes_left, budget):
            normal = direction / np.abs(direction).sum()
            level = X @ normal
            balance = np.where(goes_left, weight / weight[goes_left].sum(), weight / weight[~goes_left].sum())
            threshold, cost = points.cheapest_cut(level, balance * ~goes_left, balance * goes_left)
            left = level <= threshold
            if not np.isfinite(cost) or left.all() or not left.any():
                continue
            impurity = _gini(y[left], weight[left]) + _gini(y[~left], weight[~left])
            if impurity < best_impurity - 1e-12:
                best, best_impurity = Split(normal, threshold, impurity), impurity
        if budget.over:
            break
    return best


def _wishes(X: FloatArray, y: IntArray, weight: FloatArray, n_classes: int) -> list[BoolArray]:
    """Which points might go left together: a class, for the heaviest ones, or half of the classes."""
    by_class = np.bincount(y, weight, n_classes)
    classes = np.argsort(-by_class, kind="stable")[: np.count_nonzero(by_class)]
    if len(classes) == 2:
        return [y == classes[0]]
    wishes = [y == k for k in classes[:_PAIRS]]
    if len(classes) > 3:
        # Classes on either side of the middle along the direction in which their means differ most.
        mean = np.array([np.average(X[y == k], axis=0, weights=weight[y == k]) for k in classes])
        mean = mean - mean.mean(axis=0)
        along = mean @ np.linalg.svd(mean, full_matrices=False)[2][0]
        wishes.append(np.isin(y, classes[along <= np.median(along)]))
    return wishes


def _gini(y: IntArray, weight: FloatArray) -> float:
    by_class = np.bincount(y, weight)
    return float(by_class.sum() - (by_class**2).sum() / by_class.sum())


def _better(
    best: Split | None,
    X: FloatArray,
    normals: list[FloatArray],
    cut: Cut,
    price: float,
    budget: Budget,
) -> Split | None:
    """The cheapest of `best` and the splits along `normals`."""
    for normal in normals:
        split = split_along(X, normal, cut, price)
        if best is None or split.cost < best.cost - 1e-12:
            best = split
        if budget.over:
            break
    return best


def bisector(X: FloatArray, y: IntArray, inside: IntArray, rng: np.random.Generator) -> tuple[FloatArray, float]:
    """The split half-way between two of the points `inside`, at random, of different classes if there are any."""
    first = int(rng.choice(inside))
    others = inside[y[inside] != y[first]]
    second = int(rng.choice(others if len(others) else inside))
    normal = X[second] - X[first]
    return normal, float(normal @ (X[first] + X[second]) / 2)


def split_along(X: FloatArray, normal: FloatArray, cut: Cut, price: float) -> Split:
    """Best split of points along a direction; with a price, features that do not pay are dropped one by one.

    Parameters
    ----------
    X, normal : ndarray
        Points, and a direction that is not zero.
    cut : callable
        Positions of the points along a direction of 1-norm 1 to the best threshold and its cost.
    price : float
        Cost of a feature.
    """
    normal = normal / np.abs(normal).sum()
    threshold, cost = cut(X @ normal)
    best = Split(normal, threshold, cost + price * np.count_nonzero(normal))
    if price <= 0:
        return best
    for j in np.argsort(np.abs(normal) * np.ptp(X, axis=0), kind="stable"):
        if np.count_nonzero(best.normal) == 1 or best.normal[j] == 0:
            continue
        thinner = np.where(np.arange(len(normal)) == j, 0.0, best.normal)
        thinner = thinner / np.abs(thinner).sum()
        threshold, cost = cut(X @ thinner)
        total = cost + price * np.count_nonzero(thinner)
        if total <= best.cost + 1e-12:
            best = Split(thinner, threshold, total)
    return best
