"""Moves of hyperplanes that bring the class counts to the totals and keep the labelled points where they are.

And how steep hyperplanes are: the hinge errors of points on the wrong side grow with the scale.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.models.s2oct.search.data import Survey
from treewright.splits.directions import Separation, separating_plane
from treewright.splits.joining import solve_joining
from treewright.splits.thresholds import Segment
from treewright.totals.points import divide_points
from treewright.tree.complete import Planes, labels_on_either_side, leaves_reached, passes

__all__ = ["Moves", "shrunk_planes"]

_HALVINGS = 0.5 ** np.arange(16.0)
"""Scales that are tried at a node."""
_CELLS = 4_000_000
"""Labelled points times leaves by which scales are judged; where there are more, by a sample of the points."""


class Moves:
    """Moves of an S2OCT search, one node at a time along segments of hyperplanes.

    Parameters
    ----------
    survey : Survey
        The points.
    rng : numpy Generator
        Randomness of the directions.
    budget : Budget
        Ends the work early.
    support : ndarray of bool, shape (n_branches, n_features), or None
        Features that each node may use; None for all.
    """

    def __init__(
        self, survey: Survey, rng: np.random.Generator, budget: Budget, support: BoolArray | None = None
    ) -> None:
        self.survey, self.model, self.rng, self.budget, self.support = survey, survey.model, rng, budget, support
        self.X, self.hidden, self.totals = survey.X, survey.hidden, survey.totals
        self._programs: dict[int, tuple[bytes, Separation]] = {}

    # ------------------------------------------------------------------ totals

    def deviation(self, planes: Planes) -> float:
        """Rows that would have to change class."""
        return float(self.totals.missed(planes.labels[leaves_reached(planes.values(self.hidden))]))

    def mended_labels(self, planes: Planes) -> IntArray:
        """Labels within the totals that differ from those of the tree at the points nearest to a lowest split."""
        values = planes.values(self.hidden)
        leaf = leaves_reached(values)
        lowest = (leaf + len(planes.labels)) // 2 - 1
        size = np.abs(planes.omega).max(axis=1)
        distance = values[np.arange(len(leaf)), lowest] / np.where(size > 0, size, 1.0)[lowest]
        scores = np.full((len(leaf), self.model.n_classes), -10.0 * (np.abs(distance).max(initial=0.0) + 1.0))
        rows = np.arange(len(leaf))
        scores[rows, planes.labels[2 * (leaf // 2)]] = -distance
        scores[rows, planes.labels[2 * (leaf // 2) + 1]] = distance
        return divide_points(scores, self.totals)

    def meet_totals(self, planes: Planes, rounds: int = 30) -> Planes:
        """Move hyperplanes until the totals are met or nothing helps."""
        idle = 0
        for attempt in range(rounds):
            values = planes.values(self.hidden)
            now = self.totals.missed(planes.labels[leaves_reached(values)])
            if now == 0 or idle > 3 or self.budget.over:
                break
            found = self._best_move(planes, values, wild=attempt > 0)
            if found is None:
                idle += 1
                continue
            planes, idle = found, 0
        return planes

    def cost(self, planes: Planes, deviation: float) -> tuple[float, float]:
        """Labelled error plus price of the deviation, and the labelled error."""
        wrong = self.survey.error(planes)
        return wrong + self.model.penalty * deviation, wrong

    def shifted(self, planes: Planes, node: int) -> Planes:
        """Shift the hyperplane of a node to where the deviation is least, whatever that costs in labelled error."""
        values = planes.values(self.hidden)
        here, _ = passes(leaves_reached(values), node, planes.shape)
        best, least = planes, self.deviation(planes)
        for target in self._shifts(planes, node, values[here, node]) if here.any() else []:
            moved = self._along(planes, node, values, *target)
            if moved is not None and moved[1] < least:
                best, least = moved
        return best

    def _best_move(self, planes: Planes, values: FloatArray, wild: bool) -> Planes | None:
        """The move that lowers the cost most, the first that meets the totals without further error."""
        best, (least, error) = None, self.cost(planes, self.deviation(planes))
        for node in self.rng.permutation(len(planes.gamma)):
            for target in self._targets(planes, int(node), values, wild):
                moved = self._along(planes, int(node), values, *target)
                if moved is None:
                    continue
                cost, wrong = self.cost(*moved)
                if cost < least - 1e-9:
                    best, least = moved[0], cost
                if (moved[1] == 0 and wrong <= error + 1e-9) or self.budget.over:
                    return best
        return best

    def _targets(self, planes: Planes, node: int, values: FloatArray, wild: bool) -> list[tuple[FloatArray, float]]:
        """Extreme hyperplanes that keep the labelled points on the sides they have."""
        here = np.flatnonzero(passes(leaves_reached(values), node, planes.shape)[0])
        if not len(here):
            return []
        sides = self.settled_sides(planes, node)
        mean = self.hidden[here].mean(axis=0)
        if np.count_nonzero(sides) > self.survey.search.hard_points:
            return self._shifts(planes, node, values[here, node])
        columns = self.columns(node)
        if not len(columns):
            return []
        found = []
        flips = self._wanted_flips(planes, node, values, here, int(self.rng.integers(1, 4)) if wild else 1)
        if flips is not None:
            points, wish, weight = flips
            hard = self.X[sides != 0][:, columns], sides[sides != 0]
            soft = points[:, columns], wish, weight
            found.append(separating_plane(*hard, *soft, self.model.max_coefficient, seconds=self.budget.remaining))
        program = self._program(node, sides)
        for factor in (1.0, -1.0):
            aim = mean + (0.5 * self.rng.normal(size=len(mean)) * self._spread if wild else 0.0)
            program.aim(aim[columns], factor)
            found.append(program.solve(self.budget.remaining))
        targets = [self.embedded(node, target) for target in found if target is not None]
        return targets if self.survey.all_right(planes) else targets + self._shifts(planes, node, values[here, node])

    def _program(self, node: int, sides: FloatArray) -> Separation:
        """Program of the hyperplanes that keep labelled points on these sides: that of the last time, if it is so."""
        key, kept = sides.tobytes(), self._programs.get(node)
        if kept is None or kept[0] != key:
            if kept is None and len(self._programs) >= self.survey.search.kept_programs:
                del self._programs[next(iter(self._programs))]
            kept = self._programs[node] = key, self.separation(node, sides)
        return kept[1]

    def separation(self, node: int, sides: FloatArray, soft_margin: float = 1.0) -> Separation:
        """Program of the hyperplanes that keep labelled points on their sides, -1 or 1; those with 0 are not in it.

        Its features are those that the node may use.
        """
        settled = sides != 0
        points = self.X[settled][:, self.columns(node)]
        return Separation(points, sides[settled], self.model.max_coefficient, self.survey.reach, soft_margin)

    def columns(self, node: int) -> IntArray:
        """Features that a node may use."""
        every = np.arange(self.X.shape[1])
        return every if self.support is None else every[self.support[node]]

    def embedded(self, node: int, plane: tuple[FloatArray, float]) -> tuple[FloatArray, float]:
        """A hyperplane over the features of a node as one over all of them."""
        omega = np.zeros(self.X.shape[1])
        omega[self.columns(node)] = plane[0]
        return omega, plane[1]

    @cached_property
    def _spread(self) -> FloatArray:
        return np.asarray(self.hidden.std(axis=0))

    @staticmethod
    def _shifts(planes: Planes, node: int, value: FloatArray) -> list[tuple[FloatArray, float]]:
        """The hyperplane itself moved past all points: costs no program, but error where labelled points are passed."""
        if not np.any(planes.omega[node]):
            return []
        reach = np.abs(value).max() + 1.0
        return [(planes.omega[node], planes.gamma[node] + way * reach) for way in (1.0, -1.0)]

    def settled_sides(self, planes: Planes, node: int) -> FloatArray:
        """Sides of the labelled points that pass the node with margin, -1 left and 1 right; 0 for all others."""
        own = planes.values(self.X)
        at_node, left = passes(leaves_reached(own), node, planes.shape)
        settled = at_node & (np.abs(own[:, node]) >= 1.0 - 1e-9)
        return np.where(settled, np.where(left, -1.0, 1.0), 0.0)

    def _wanted_flips(
        self, planes: Planes, node: int, values: FloatArray, here: IntArray, times: int
    ) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """Points near the node's hyperplane, with the sides that would mend the totals: as soft points of a program.

        The points nearest to the hyperplane whose change of sides takes a row from a class in excess to one that lacks
        rows should change, as many as are needed (or a few times that, to overshoot); the next ones should stay.
        """
        label = planes.labels[leaves_reached(values)]
        counts = self.totals.counts(label)
        lacking = self.totals.lack(counts) - self.totals.excess(counts)
        if_left, if_right = labels_on_either_side(planes, node, values[here])
        goes_left = values[here, node] <= 0
        other = np.where(goes_left, if_right, if_left)
        group = self.totals.largest_group[here]
        useful = lacking[group, other] > lacking[group, label[here]]
        order = np.argsort(np.abs(values[here, node]), kind="stable")
        needed = int(self.totals.deviation(counts)) * times
        flip = order[useful[order]][:needed]
        if not len(flip):
            return None
        stay = order[~useful[order]][: 3 * len(flip)]
        chosen = np.concatenate([flip, stay])
        now = np.where(goes_left[chosen], -1.0, 1.0)
        wish = np.where(np.arange(len(chosen)) < len(flip), -now, now)
        weight = np.where(np.arange(len(chosen)) < len(flip), 1.0, 0.3)
        return self.hidden[here[chosen]], wish, weight

    def _along(
        self, planes: Planes, node: int, values: FloatArray, omega: FloatArray, gamma: float
    ) -> tuple[Planes, float] | None:
        """The point of least deviation on the segment from the node's hyperplane to another one."""
        leaf = leaves_reached(values)
        here, _ = passes(leaf, node, planes.shape)
        start, end = values[here, node], self.hidden[here] @ omega - gamma
        if_left, if_right = labels_on_either_side(planes, node, values[here])
        way = Segment(start, end, if_left != if_right)
        if not len(way.points):
            return None
        new = np.where(end[way.points] > 0, if_right[way.points], if_left[way.points])
        missed = self.totals.missed_along(planes.labels[leaf], np.flatnonzero(here)[way.points], new)
        # A step too short to stand between two points leaves their sides to rounding.
        least = self.model.tolerance if self.model.margin_rule == "tolerance" else 1.0
        found = way.best(missed, least if np.any(way.room >= least) else 1e-9)
        if found is None:
            return None
        theta, deviation = found
        moved = planes.replaced(
            node, (1 - theta) * planes.omega[node] + theta * omega, (1 - theta) * planes.gamma[node] + theta * gamma
        )
        return moved, deviation

    # ------------------------------------------------------------------ margins

    def widened(self, planes: Planes) -> Planes:
        """Move nodes that are nearer to an unlabelled point than the tolerance allows, without changing any side."""
        for node in range(len(planes.gamma)):
            if not np.any(planes.omega[node]) or self.budget.over:
                continue
            values = planes.values(self.hidden)
            here, _ = passes(leaves_reached(values), node, planes.shape)
            value = values[here, node]
            if np.abs(value).min(initial=np.inf) >= self.model.tolerance:
                continue
            found = self._widest(planes, node, value, self.hidden[here])
            planes = planes if found is None else planes.replaced(node, *found)
        return planes

    def _widest(
        self, planes: Planes, node: int, value: FloatArray, points: FloatArray
    ) -> tuple[FloatArray, float] | None:
        """Hyperplane with all points on the sides they have, by a margin of 1 or nearly; None if a side would change.

        Only points near the hyperplane are in the program at first; those that its solution pushes over join.
        """
        sign, now = np.where(value <= 0, -1.0, 1.0), np.abs(value)
        points, joining = points[:, self.columns(node)], self.survey.search.widening_joining
        program = self.separation(node, self.settled_sides(planes, node))
        found = solve_joining(
            program.solve,
            lambda some: program.join(points[some], sign[some], np.ones(len(some))),
            lambda plane: 1.0 - sign * (points @ plane[0] - plane[1]),
            np.zeros(len(points), dtype=bool),
            np.argsort(now, kind="stable")[: joining.near],
            at_a_time=joining.at_a_time,
            rounds=joining.programs,
            budget=self.budget,
        )
        if found.solution is None or not found.complete:
            return None
        omega, gamma = found.solution
        new = sign * (points @ omega - gamma)
        wider = new.min(initial=np.inf) > now.min(initial=np.inf)
        return self.embedded(node, found.solution) if wider else None


def shrunk_planes(survey: Survey, planes: Planes, budget: Budget) -> Planes:
    """Scale hyperplanes of an S2OCT down where that lowers the labelled error; sides and margins are kept."""
    if survey.error(planes) <= 1e-6:
        return planes
    model, shape = survey.model, planes.shape
    most, known = _CELLS // shape.n_leaves, np.arange(len(survey.X))
    if len(known) > most:
        known = np.random.default_rng(0).choice(known, most, replace=False)
    value, weight = planes.values(survey.X[known]), survey.weight[known]
    error = np.maximum(0.0, 1.0 + value) @ shape.left_of + np.maximum(0.0, 1.0 - value) @ shape.right_of
    error[planes.labels != survey.y[known][:, None]] = np.inf
    hidden = planes.values(survey.hidden)
    leaf = leaves_reached(hidden)
    # Also nodes that do not split: they are second chances for labelled points, and the cheaper the nearer to 0.
    for node in range(len(planes.gamma)):
        if budget.over:
            break
        here = passes(leaf, node, shape)[0] | model.everywhere
        smallest = model.required / max(np.abs(hidden[here, node]).min(initial=np.inf), 1e-300)
        factors = np.unique(np.clip(_HALVINGS, smallest, None))
        left, right = shape.left_of[node], shape.right_of[node]
        # Below the node every leaf on a side changes by as much, and the least of them as well.
        columns = [error[:, side].min(axis=1, initial=np.inf) for side in (left, right, ~(left | right))]
        changes = [_changes(value[:, node], factor) for factor in factors]
        costs = [_cost(np.stack([columns[0] + c[0], columns[1] + c[1], columns[2]]), weight) for c in changes]
        k = int(np.argmin(costs))
        if factors[k] < 1.0 and costs[k] < _cost(np.stack(columns), weight):
            planes = planes.replaced(node, planes.omega[node] * factors[k], planes.gamma[node] * factors[k])
            error[:, left] += changes[k][0][:, None]
            error[:, right] += changes[k][1][:, None]
    return planes


def _changes(value: FloatArray, factor: float) -> tuple[FloatArray, FloatArray]:
    """By how much the hinge errors toward the left and toward the right change if values are scaled."""
    left, right = (
        np.maximum(0.0, 1.0 + sign * factor * value) - np.maximum(0.0, 1.0 + sign * value) for sign in (1, -1)
    )
    return left, right


def _cost(error: FloatArray, weight: FloatArray) -> float:
    """Weighted least errors; a point without a leaf of its class counts nothing, as it cannot be right."""
    least = error.min(axis=0)
    return float(weight @ np.where(np.isfinite(least), least, 0.0))
