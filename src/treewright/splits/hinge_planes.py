r"""Planes with margins: one node of a 1-norm support vector tree.

A plane is :math:`f(x) = g - h^\top x`; a point goes left where :math:`f \ge 0`. At a node where point i loses the stake
:math:`r_i` more on the left than on the right, a plane costs

.. math:: \sum_{f(x_i) > 0} r_i + \sum_i t_i [\epsilon - |f(x_i)|]^+ + \alpha \lVert h \rVert_1 ,

where the values of all points, also of those elsewhere in the tree, stay within [-1, 1], entries of h within a bound,
and no point of the node is nearer than a least margin. Points that lack a value go to the side that is cheaper for all
of them, and pay for no margin. Along a line of planes the cost is minimized exactly
(:mod:`~treewright.splits.hinge_loops`); with the sides given it is a linear program (:func:`polished_plane`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.solvers import Status
from treewright.solvers.linear import LinearProgram
from treewright.splits.hinge_loops import pass_over, plane_cost
from treewright.splits.joining import solve_joining

__all__ = ["MarginNode", "MarginPoints", "Plane", "polished_plane"]

_BLOCK = 2_000_000
"""Values that are moved between two looks at the clock."""

_NEAR, _JOINING, _PROGRAMS = 100, 200, 30
"""Points nearest to a plane that are in its program from the start, those that join at a time, most programs."""


class Plane(NamedTuple):
    """A plane ``f(x) = offset - normal @ x`` and what it costs at a node."""

    normal: FloatArray
    offset: float
    cost: float


@dataclass(frozen=True, eq=False)
class MarginPoints:
    """Points, and what planes among them must keep.

    Attributes
    ----------
    X : ndarray of shape (n_points, n_features)
        Features; NaN where a value is missing.
    usable : ndarray of bool, shape (n_features,)
        Features that planes may use.
    price : ndarray of shape (n_points,)
        What a unit of the hinge error of each point costs; infinite where margins are hard.
    epsilon, margin, alpha, largest : float
        Height of the hinge, least distance of the points of a node, price of the 1-norm, largest entry of a normal.
    """

    X: FloatArray
    usable: BoolArray
    price: FloatArray
    epsilon: float
    margin: float
    alpha: float
    largest: float

    @cached_property
    def absent(self) -> BoolArray:
        """Which values are missing; an empty table if none that planes may use is."""
        table = np.isnan(self.X) & self.usable
        return table if table.any() else np.zeros((0, 0), dtype=bool)

    @cached_property
    def filled(self) -> FloatArray:
        """The points with 0 for what is missing or not used."""
        return np.ascontiguousarray(np.where(self.usable & ~np.isnan(self.X), self.X, 0.0), dtype=np.float64)

    @property
    def least(self) -> float:
        """The margin less rounding."""
        return self.margin * (1 - 1e-9)

    def whole(self, normal: FloatArray) -> BoolArray:
        """Which points have all values that a normal uses."""
        if not len(self.absent):
            return np.ones(len(self.X), dtype=bool)
        return np.asarray(~self.absent[:, normal != 0].any(axis=1))


@dataclass(frozen=True, eq=False)
class MarginNode:
    """A node: which of the points are there, and what each of them loses more on the left than on the right."""

    points: MarginPoints
    rows: IntArray
    stake: FloatArray

    @cached_property
    def toll(self) -> FloatArray:
        """What a unit of hinge error costs; where margins are hard, more than everything that is at stake."""
        price = self.points.price[self.rows]
        hard = (1.0 + 2.0 * np.abs(self.stake).sum()) / self.points.margin
        return np.where(np.isfinite(price), price, hard)

    def trivial(self) -> Plane:
        """The plane that is none: all points go the cheaper way."""
        whole = float(self.stake.sum())
        return Plane(np.zeros(self.points.X.shape[1]), 1.0 if whole < 0 else -1.0, min(0.0, whole))

    def cost(self, normal: FloatArray, offset: float) -> float:
        """What a plane costs."""
        points = self.points
        there = points.whole(normal)[self.rows]
        value = offset - points.filled[self.rows[there]] @ normal
        side = plane_cost(value, self.stake[there], self.toll[there], points.epsilon, points.least)
        aside = min(0.0, float(self.stake[~there].sum()))
        return float(side + aside + points.alpha * np.abs(normal).sum())

    def moved(self, plane: Plane, order: IntArray, budget: Budget) -> Plane:
        """The plane moved to the best place along some lines in turn; see :func:`.hinge_loops.pass_over`."""
        points, normal, offset, cost = self.points, plane.normal.copy(), plane.offset, plane.cost
        width = max(1, _BLOCK // len(points.X))
        for first in range(0, len(order), width):
            if budget.over:
                break
            offset, cost = pass_over(
                points.filled,
                points.absent,
                self.rows,
                self.stake,
                self.toll,
                points.epsilon,
                points.least,
                points.alpha,
                points.largest,
                order[first : first + width],
                normal,
                offset,
                cost,
            )
        return Plane(normal, float(offset), float(cost)) if cost < plane.cost else plane

    def along(self, direction: FloatArray, budget: Budget, scales: tuple[float, ...] = (1.0, 1.8)) -> Plane | None:
        """The best plane that is found along a direction, its threshold and scale by turns; None where there is none.

        Parameters
        ----------
        direction : ndarray of shape (n_features,)
            Points on its low side go left.
        budget : Budget
            Ends the work early.
        scales : tuple of float
            How long normals are to begin with, as a share of the reciprocal range of the points; below 2.
        """
        points = self.points
        there = points.whole(direction)
        level = points.filled @ direction
        if not there[self.rows].any():
            return None
        low, high = float(level[there].min()), float(level[there].max())
        largest = float(np.abs(direction).max())
        if not high - low > 1e-9 * largest:
            return None
        p, best = points.X.shape[1], None
        for scale in scales:
            factor = min(scale / (high - low), points.largest / largest)
            start = Plane(direction * factor, factor * (low + high) / 2, np.inf)
            found = self.moved(start, np.array([p, p + 1, p]), budget)
            if np.isfinite(found.cost) and (best is None or found.cost < best.cost):
                best = found
        return best

    def descended(self, plane: Plane, rng: np.random.Generator, budget: Budget, passes: int = 4) -> Plane:
        """The plane after passes over all features, offset and scale, until one changes hardly anything."""
        points = self.points
        p = points.X.shape[1]
        lines = np.append(np.flatnonzero(points.usable), [p, p + 1])
        for _ in range(passes):
            before = plane.cost
            plane = self.moved(plane, rng.permutation(lines), budget)
            if budget.over or plane.cost >= before - 1e-6 * max(1.0, abs(before)):
                break
        return plane


def polished_plane(node: MarginNode, plane: Plane, budget: Budget) -> Plane:
    """The best plane of a node with the same points on either side, by a linear program; itself if no better.

    Parameters
    ----------
    node : MarginNode
        The node; its stakes do not matter.
    plane : Plane
        A plane that keeps the least margin.
    budget : Budget
        Ends the work early.

    Examples
    --------
    >>> X = np.array([[0.0, 0.3], [0.2, 0.9], [0.8, 0.1], [1.0, 0.7]])
    >>> points = MarginPoints(X, np.ones(2, dtype=bool), np.full(4, 10.0), 0.3, 1e-4, 0.5, 10.0)
    >>> node = MarginNode(points, np.arange(4), np.array([-1.0, -1.0, 1.0, 1.0]))
    >>> skew = np.array([1.0, 0.1])
    >>> found = polished_plane(node, Plane(skew, 0.5, node.cost(skew, 0.5)), Budget())
    >>> found.normal.round(6).tolist(), round(found.offset, 6)  # the shortest normal with a margin of 0.3 everywhere
    ([0.692308, -0.230769], 0.230769)
    """
    program = _Program(node, plane)
    found = solve_joining(
        program.solve,
        program.join,
        program.short,
        np.zeros(program.n_rows, dtype=bool),
        program.first,
        at_a_time=_JOINING,
        rounds=_PROGRAMS,
        budget=budget,
    )
    if found.solution is None or not found.complete:
        return plane
    normal, offset = program.plane(found.solution)
    cost = node.cost(normal, offset)
    return Plane(normal, offset, cost) if cost < plane.cost else plane


class _Program:
    """Columns h+, h-, g, then a slack for each point of the node that has joined.

    Rows are numbered: those of all points that have a value, which say that it is within [-1, 1], then those of the
    points at the node, which say that they keep their side, epsilon less their slack away.
    """

    def __init__(self, node: MarginNode, plane: Plane) -> None:
        points = node.points
        there = points.whole(plane.normal)
        gaps = points.absent.any(axis=0) if len(points.absent) else np.zeros(len(plane.normal), dtype=bool)
        self.node, self.shape = node, plane.normal.shape
        # A feature with gaps that the plane does not use would take points away from it.
        self.used = np.flatnonzero(points.usable & (~gaps | (plane.normal != 0)))
        self.all = points.filled[np.ix_(np.flatnonzero(there), self.used)]
        inside = there[node.rows]
        self.here = points.filled[np.ix_(node.rows[inside], self.used)]
        value = plane.offset - self.here @ plane.normal[self.used]
        self.sign, self.toll = np.where(value > 0, 1.0, -1.0), node.toll[inside]
        n, k = len(self.all), len(self.used)
        self.n_rows, self.k = n + len(self.here), k
        everywhere = plane.offset - self.all @ plane.normal[self.used]
        near = np.argsort(np.abs(value), kind="stable")[:_NEAR]
        self.first = np.unique(np.concatenate([[everywhere.argmin(), everywhere.argmax()], n + near]))
        largest = points.largest
        cost = np.repeat([points.alpha, 0.0], [2 * k, 1])
        upper = np.repeat([largest, 1.0 + k * largest], [2 * k, 1])
        self.program = LinearProgram(cost, np.repeat([0.0, -upper[-1]], [2 * k, 1]), upper)

    def join(self, numbers: IntArray) -> None:
        """Put rows into the program."""
        n, points = len(self.all), self.node.points
        room, side = numbers[numbers < n], numbers[numbers >= n] - n
        if len(room):
            self.program.add_rows(self._values(self.all[room], np.ones(len(room))), -1.0, 1.0)
        if len(side):
            first = self.program.n_rows
            table = self._values(self.here[side], self.sign[side])
            self.program.add_rows(table, points.epsilon, np.inf)
            self.program.add_columns(
                self.toll[side], 0.0, points.epsilon - points.margin, rows=first + np.arange(len(side))
            )

    def _values(self, X: FloatArray, sign: FloatArray) -> FloatArray:
        signed = sign[:, None] * X
        return np.hstack([-signed, signed, sign[:, None]])

    def solve(self, seconds: float) -> FloatArray | None:
        """Normal and offset of the program as it is."""
        solved = self.program.solve(seconds)
        if solved.status is not Status.OPTIMAL or solved.x is None:
            return None
        return np.append(solved.x[: self.k] - solved.x[self.k : 2 * self.k], solved.x[2 * self.k])

    def short(self, solution: FloatArray) -> FloatArray:
        """By how much each row is violated."""
        normal, offset = solution[:-1], solution[-1]
        beyond = np.abs(offset - self.all @ normal) - 1.0
        lacking = self.node.points.epsilon - self.sign * (offset - self.here @ normal)
        lacking = np.concatenate([beyond, lacking])
        return np.where(lacking > 1e-9, lacking, 0.0)

    def plane(self, solution: FloatArray) -> tuple[FloatArray, float]:
        """The plane, without the dust that a linear program leaves, and scaled to where all points have room."""
        normal = np.zeros(self.shape)
        normal[self.used] = np.where(np.abs(solution[:-1]) > 1e-9, solution[:-1], 0.0)
        offset = float(solution[-1])
        reach = float(np.abs(offset - self.all @ normal[self.used]).max(initial=0.0))
        factor = 1.0 / reach if reach > 1.0 else 1.0
        return normal * factor, offset * factor
