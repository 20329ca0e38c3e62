"""The splits of an SVM1-ODT, one node at a time: planes that pay for points within their margin, and for their norm."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.models.svm1odt.objective import SVM1ODT
from treewright.splits.hinge_planes import MarginNode, MarginPoints, Plane, polished_plane
from treewright.splits.l1_logistic import l1_logistic
from treewright.splits.mixed import PricedRule, best_category
from treewright.splits.node import Node
from treewright.splits.points import Points, SplitRule

__all__ = ["MarginNodes", "margin_points"]

_CLASSES = 3
"""Heaviest classes at a lowest node whose pairs are tried as labels of its leaves."""

_STRENGTHS = (0.1, 1.0)
"""Prices of the 1-norm in the regressions whose directions are tried."""


def margin_points(model: SVM1ODT) -> MarginPoints:
    """The points of an SVM1-ODT as the problem of a node sees them."""
    price = np.full(len(model.X), np.inf) if model.hard else model.alpha_1 * model.sizes
    usable = ~model.is_categorical
    largest = model.max_coefficient
    return MarginPoints(model.X, usable, price, model.epsilon, model.margin, model.alpha_2, largest)


@dataclass
class MarginNodes:
    """Finds SVM1-ODT splits of least downstream loss, hinge error and norm.

    Attributes
    ----------
    model : SVM1ODT
        The model.
    points : MarginPoints
        Its points.
    seed : int
        Seed of the order in which features are looked at.
    thorough : bool
        Whether directions of several regressions are tried, and linear programs solved, or just one regression.
    settled : dict
        What a node was when nothing better was found for it.
    forbidden : float
        What a point is charged that is nearer to a plane than the model allows.
    """

    model: SVM1ODT
    points: MarginPoints
    seed: int = 0
    thorough: bool = False
    settled: dict[int, tuple[bytes, ...]] = field(default_factory=dict)
    forbidden: float = field(init=False)

    def __post_init__(self) -> None:
        self.forbidden = 100.0 * (1.0 + float(self.model.weight.sum()))

    def price(self, normals: FloatArray) -> float:
        """Alpha_2 times the sum of the 1-norms."""
        return self.model.alpha_2 * float(np.abs(normals).sum())

    def toll(self, rows: IntArray, beyond: FloatArray) -> FloatArray:
        """What points pay for being within the margin of a split; far too much where that is not allowed."""
        distance = np.where(np.isnan(beyond), np.inf, np.abs(beyond))
        charged = np.where(distance < self.points.least, self.forbidden, 0.0)
        if not self.model.hard:
            charged += self.points.price[rows] * np.maximum(0.0, self.model.epsilon - distance)
        return charged

    def better(self, points: Points, node: Node, budget: Budget) -> SplitRule | None:
        """A split of lower cost than the node has, or None."""
        if budget.over or not len(node.rows):
            return None
        state = (node.rows.tobytes(), node.stake.tobytes(), node.normal.tobytes())
        if self.settled.get(node.number) == state:  # nothing has changed since nothing better was found
            return None
        now, best = self._best(points, node, budget)
        if not best.cost < now - 1e-9 * max(1.0, abs(now)):
            self.settled[node.number] = state
            return None
        return best.rule

    def _best(self, points: Points, node: Node, budget: Budget) -> tuple[float, PricedRule]:
        """What the node costs now, and the best split that is found."""
        rng = np.random.default_rng([self.seed, node.number, len(node.rows)])
        own = self.price(node.normal)
        if node.rule.category < 0 and np.any(node.normal):
            own += float(self.toll(node.rows, points.levels(node.rows, node.normal) - node.threshold).sum())
        now, best = np.inf, PricedRule(np.inf, node.rule)
        for stake, base in self._problems(node):
            if not np.isfinite(now):
                now = base + float(stake[node.goes_left].sum()) + own
                best = PricedRule(now, node.rule)
            if budget.over:
                break
            here = MarginNode(self.points, node.rows, stake)
            own_plane = node.rule.category < 0 and best.cost == now and bool(np.any(node.normal))
            # Other labels, or another side for points that lack a value, make the same plane cost something else.
            own_cost = here.cost(node.normal, node.threshold) if own_plane else np.inf
            start = Plane(node.normal, node.threshold, own_cost) if own_plane else None
            for found in self._for_stakes(points, here, start, rng, budget):
                if found.cost + base < best.cost - 1e-9 * max(1.0, abs(now)):
                    best = PricedRule(found.cost + base, found.rule)
        return now, best

    def _problems(self, node: Node) -> Iterator[tuple[FloatArray, float]]:
        """Stakes, and what all points lose on the right: of the leaves as they are, then with other labels."""
        if not node.lowest:
            yield node.stake, 0.0
            return
        y, weight, n_classes = self.model.y[node.rows], self.model.weight[node.rows], self.model.n_classes
        sides = [np.bincount(y[side], weight[side], n_classes) for side in (node.goes_left, ~node.goes_left)]
        whole = sides[0] + sides[1]
        # An empty leaf says what its parent says.
        one, other = (int(side.argmax()) if side.any() else int(whole.argmax()) for side in sides)
        heavy = np.argsort(-whole, kind="stable")[:_CLASSES]
        pairs = [pair for pair in combinations(heavy[whole[heavy] > 0].tolist(), 2) if set(pair) != {one, other}]
        for left, right in [(one, other), *pairs]:
            lost = weight * (y != right)
            yield weight * (y != left) - lost, float(lost.sum())

    def _for_stakes(
        self, points: Points, here: MarginNode, start: Plane | None, rng: np.random.Generator, budget: Budget
    ) -> Iterator[PricedRule]:
        """Splits for given stakes: none, a subset of a category, planes from where one is and along regressions."""
        trivial = here.trivial()
        yield self._priced(here, trivial)
        care = np.flatnonzero(here.stake)
        sided = here.stake[care] > 0  # should go right
        if not sided.any() or sided.all():
            return
        if len(points.categorical):
            subset = best_category(points, here.rows, here.stake)
            if subset is not None:
                yield PricedRule(subset.cost + self.model.alpha_2, subset.rule)
        if not self.points.usable.any():
            return
        yield from self._gap_splits(here)
        planes = [start] if start is not None else []
        for direction in self._directions(here, care, sided):
            found = here.along(direction, budget)
            planes += [] if found is None else [found]
        planes.sort(key=lambda plane: plane.cost)
        for plane in planes[:2]:
            plane = here.descended(plane, rng, budget)
            if self.thorough and np.isfinite(plane.cost):
                plane = here.descended(polished_plane(here, plane, budget), rng, budget)
            if np.isfinite(plane.cost):
                yield self._priced(here, plane)

    def _gap_splits(self, here: MarginNode) -> Iterator[PricedRule]:
        """Splits that part the points which lack a value from the others.

        Their normal is as short as one may be that uses the feature; all others have values near 1, or near -1.
        """
        if not len(self.points.absent):
            return
        gone, short = self.points.absent[here.rows], self.model.tolerance
        for j in np.flatnonzero(gone.any(axis=0) & ~gone.all(axis=0)).tolist():
            known, missing = float(here.stake[~gone[:, j]].sum()), float(here.stake[gone[:, j]].sum())
            if known * missing < 0:
                normal = np.zeros(gone.shape[1])
                normal[j] = short
                offset = 1.0 if known < 0 else short - 1.0
                cost = here.cost(normal, offset)
                yield PricedRule(cost, SplitRule(normal, offset, missing_left=missing < 0))

    def _priced(self, here: MarginNode, plane: Plane) -> PricedRule:
        """A plane as a split, with the better side for points that lack a value."""
        aside = float(here.stake[~self.points.whole(plane.normal)[here.rows]].sum())
        cost = here.cost(plane.normal, plane.offset) if np.any(plane.normal) else plane.cost
        return PricedRule(cost, SplitRule(plane.normal, plane.offset, missing_left=aside < 0))

    def _directions(self, here: MarginNode, care: IntArray, sided: BoolArray) -> Iterator[FloatArray]:
        """Directions of regressions on the points that care."""
        rows, worth = here.rows[care], np.abs(here.stake[care])
        worth = worth / worth.mean()
        X = self.points.filled[rows]
        start: tuple[FloatArray, float] | None = None
        for strength in _STRENGTHS if self.thorough else _STRENGTHS[:1]:
            solved = l1_logistic(X, sided, worth, strength, start)
            start = solved.weights, solved.intercept
            if np.any(solved.weights):
                yield solved.weights
