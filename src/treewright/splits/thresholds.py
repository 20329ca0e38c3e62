"""Cuts of points along a direction: one sweep over all of them, and the best cut for several kinds of costs.

A split is chosen for *costs*: point i pays ``cost_left[i]`` on the left and ``cost_right[i]`` on the right. The 0/1
error of a stump, the error below a node of a larger tree and a relabelling price are all of that form.

On a segment between two hyperplanes, or two weightings of votes, points change sides one at a time, in an order that a
sort gives: the value of each point moves on a line, so the point changes sides once or not at all. Whatever depends on
the sides alone, such as counts against totals, is a step function on the way whose steps
:meth:`treewright.data.PointTotals.missed_along` sums up.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.splits.points import Points

__all__ = [
    "Cuts",
    "Segment",
    "Split",
    "best_feature",
    "best_labels_threshold",
    "best_scale",
    "best_threshold",
    "halving_threshold",
]

_CELLS = 1_000_000
"""Cells of a table whose columns are sorted at once."""

_TIE = 1e-12
"""Sums in another order differ by rounding; such ties are ties. A share of the largest cost, of 1 at least."""


class Split(NamedTuple):
    """A split ``normal @ x <= threshold`` and what it costs."""

    normal: FloatArray
    threshold: float
    cost: float


class Cuts:
    """All cuts of points along a direction, or of each of some columns: cut k has the k lowest points on the left.

    Parameters
    ----------
    level : ndarray of shape (n_points,) or (n_points, n_columns)
        Positions of the points.

    Attributes
    ----------
    order : ndarray of int
        Points by their positions, shaped like `level`.
    level : ndarray
        Positions in that order.

    Examples
    --------
    >>> cuts = Cuts(np.array([5.0, 0.0, 2.0]))
    >>> cuts.left(np.array([10.0, 1.0, 3.0])).tolist(), cuts.threshold(2)
    ([0.0, 1.0, 4.0, 14.0], 3.5)
    """

    def __init__(self, level: FloatArray) -> None:
        self.order: IntArray = np.argsort(level, axis=0, kind="stable")
        self.level = np.take_along_axis(level, self.order, axis=0)

    @cached_property
    def width(self) -> FloatArray:
        """Distance between the two sides of each cut; infinite at both ends, where all points go one way."""
        found = np.full((len(self.level) + 1, *self.level.shape[1:]), np.inf)
        with np.errstate(over="ignore"):
            found[1:-1] = np.diff(self.level, axis=0)
        return found

    def left(self, values: FloatArray | IntArray) -> FloatArray:
        """Sum over the left side of each cut of what points have.

        Parameters
        ----------
        values : ndarray of shape (n_points,) or, for a single direction, (n_points, n_values)
            What each point has.
        """
        taken = values[self.order]
        found = np.zeros((len(taken) + 1, *taken.shape[1:]))
        np.cumsum(taken, axis=0, out=found[1:])
        return found

    def right(self, values: FloatArray | IntArray) -> FloatArray:
        """Sum over the right side of each cut; summed from the right, so that what is nothing stays nothing."""
        taken = values[self.order]
        found = np.zeros((len(taken) + 1, *taken.shape[1:]))
        np.cumsum(taken[::-1], axis=0, out=found[-2::-1])
        return found

    def sided(self, cost_left: FloatArray, cost_right: FloatArray) -> FloatArray:
        """What each cut costs where a point pays by the side it is on."""
        return self.left(cost_left) + self.right(cost_right)

    def labelled(self, by_class: FloatArray) -> FloatArray:
        """What each cut costs where both sides predict their heaviest class: the weight of all others.

        Parameters
        ----------
        by_class : ndarray of shape (n_points, n_classes)
            Weight of each point in the column of its class.
        """
        heaviest_left = self.left(by_class[:, 0])
        heaviest_right, whole = heaviest_left[-1] - heaviest_left, heaviest_left[-1].copy()
        for k in range(1, by_class.shape[1]):
            left = self.left(by_class[:, k])
            whole += left[-1]
            np.maximum(heaviest_left, left, out=heaviest_left)
            np.maximum(heaviest_right, left[-1] - left, out=heaviest_right)
        return np.asarray(np.maximum(whole - heaviest_left - heaviest_right, 0.0))

    def allowed(self, gap: float = 0.0, min_size: float = 0, size: FloatArray | None = None) -> BoolArray:
        """Whether each cut has its sides so far apart and so many rows on each of them.

        Parameters
        ----------
        gap : float
            The two sides must lie at least this far apart.
        min_size : float
            Smallest sum of `size` on each side; 0 allows all points on one side.
        size : ndarray of shape (n_points,) or None
            How many rows each point stands for, 1 by default.
        """
        fine = (self.width > 0) & (self.width >= gap)
        if min_size > 0:
            numbers = np.arange(len(fine), dtype=np.float64).reshape(-1, *[1] * (fine.ndim - 1))
            rows = numbers if size is None else self.left(size)
            fine &= (rows >= min_size - 1e-9) & (rows[-1] - rows >= min_size - 1e-9)
        return fine

    def best(
        self, cost: FloatArray, allowed: BoolArray, prefer: FloatArray | None = None
    ) -> tuple[IntArray, FloatArray]:
        """Cheapest allowed cut, and its cost, infinite where none is allowed; of each column where there are several.

        Parameters
        ----------
        cost : ndarray of shape (n_points + 1,) or (n_points + 1, n_columns)
            What each cut costs.
        allowed : ndarray of bool
            Which cuts may be taken.
        prefer : ndarray or None
            Of equally cheap cuts the one with the least of this, the first of several; by default the widest, and all
            points on one side only if nothing else is as cheap.
        """
        tie = _TIE * np.maximum(1.0, np.abs(cost).max(axis=0))
        cost = np.where(allowed, cost, np.inf)
        good = cost <= cost.min(axis=0) + tie
        if prefer is None:
            prefer = -self.width
            prefer[0], prefer[-1] = 1.0, 2.0
        k = np.argmin(np.where(good, prefer, np.inf), axis=0)
        return k, np.take_along_axis(cost, k[None], axis=0)[0]

    def threshold(self, k: int, column: int | None = None) -> float:
        """Middle of a cut; ``-inf`` or ``inf`` where all points are on one side."""
        return float(_middle(*self.ends(k, column)))

    def thresholds(self, beyond: float = np.inf) -> FloatArray:
        """Middle of each cut along a single direction; at both ends so far beyond the last point."""
        if not len(self.level):
            return np.zeros(1)
        below, above = self.level[:1] - beyond, self.level[-1:] + beyond
        return np.concatenate([below, _middle(self.level[:-1], self.level[1:]), above])

    def ends(self, k: int, column: int | None = None) -> tuple[float, float]:
        """The last point on the left of a cut and the first one on the right, infinite where there is none."""
        level = self.level if column is None else self.level[:, column]
        return float(level[k - 1]) if k > 0 else -np.inf, float(level[k]) if k < len(level) else np.inf

    def nearest(self, wish: float, gap: float, size: FloatArray | IntArray | None = None) -> int:
        """Cut with its sides at least `gap` apart that moves the fewest rows from what the threshold `wish` does.

        Cuts at both ends, with all points on one side, are as good as any.
        """
        here = int(np.searchsorted(self.level, wish, side="right"))
        numbers = np.arange(len(self.level) + 1.0)
        rows = numbers if size is None else self.left(size)
        return int(self.best(np.abs(rows - rows[here]), self.allowed(gap), np.abs(numbers - here))[0])


def best_threshold(
    level: FloatArray,
    cost_left: FloatArray,
    cost_right: FloatArray,
    gap: float = 0.0,
    min_size: float = 0,
    size: FloatArray | None = None,
) -> tuple[float, float]:
    """Exact best threshold of a split along a direction.

    Parameters
    ----------
    level : ndarray of shape (n_points,)
        Position of the points along the direction.
    cost_left, cost_right : ndarray of shape (n_points,)
        What each point pays on either side.
    gap, min_size, size
        As for :meth:`Cuts.allowed`.

    Returns
    -------
    threshold : float
        Middle of the best gap; of equally good gaps the widest. ``-inf`` or ``inf`` sends all points one way.
    cost : float
        Total cost, ``inf`` if no gap is allowed; the threshold means nothing then.

    Examples
    --------
    >>> level = np.array([0.0, 1.0, 2.0, 4.0])
    >>> best_threshold(level, np.array([0.0, 0, 1, 1]), np.array([1.0, 1, 0, 0]))
    (1.5, 0.0)
    """
    cuts = Cuts(level)
    return _best(cuts, cuts.sided(cost_left, cost_right), cuts.allowed(gap, min_size, size))


def best_labels_threshold(
    level: FloatArray, by_class: FloatArray, gap: float = 0.0, min_size: float = 0, size: FloatArray | None = None
) -> tuple[float, float]:
    """Exact best threshold along a direction where each side predicts its heaviest class.

    Parameters
    ----------
    level : ndarray of shape (n_points,)
        Position of the points along the direction.
    by_class : ndarray of shape (n_points, n_classes)
        Weight of each point in the column of its class.
    gap, min_size, size
        As for :meth:`Cuts.allowed`.

    Returns
    -------
    threshold, cost : float
        As for :func:`best_threshold`; the cost is the weight of the points on whose side another class is heaviest.

    Examples
    --------
    >>> best_labels_threshold(np.array([0.0, 1.0, 2.0, 4.0]), np.eye(3)[[2, 2, 0, 0]])
    (1.5, 0.0)
    """
    cuts = Cuts(level)
    return _best(cuts, cuts.labelled(by_class), cuts.allowed(gap, min_size, size))


def halving_threshold(level: FloatArray, weight: FloatArray) -> float:
    """Threshold in the middle of the gap that halves points best, the first of several: not on a point itself.

    Points at one place cannot be parted; the threshold is beyond them.

    Examples
    --------
    >>> halving_threshold(np.array([4.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0]))
    1.5
    """
    cuts = Cuts(level)
    inner = cuts.width > 0
    inner[[0, -1]] = False
    if not inner.any():
        return float(cuts.level[-1]) + 1.0
    uneven = np.abs(cuts.left(weight) - weight.sum() / 2)
    return cuts.threshold(int(cuts.best(uneven, inner, np.arange(float(len(uneven))))[0]))


def best_feature(
    points: Points,
    rows: IntArray,
    costs: Callable[[Cuts], FloatArray],
    gap: float = 0.0,
    min_size: float = 0,
    size: FloatArray | None = None,
    budget: Budget | None = None,
) -> tuple[int, float, float]:
    """Feature of a split whose best threshold costs least, the first of several.

    Parameters
    ----------
    points : Points
        Points.
    rows : ndarray of int, shape (n_rows,)
        Which of them count.
    costs : callable
        What each cut of some columns costs, such as ``lambda cuts: cuts.sided(cost_left, cost_right)`` with costs of
        the points of `rows`.
    gap, min_size, size
        As for :meth:`Cuts.allowed`.
    budget : Budget or None
        Ends the work early, with the best feature so far; some features are looked at whatever it says.

    Returns
    -------
    feature : int
        Number of the feature.
    threshold, cost : float
        As for :func:`best_threshold`.

    Examples
    --------
    >>> points = Points(np.array([[0.0, 3.0], [1.0, 1.0], [0.0, 2.0], [1.0, 0.0]]))
    >>> stake = np.array([1.0, -1.0, 1.0, -1.0])
    >>> best_feature(points, np.arange(4), lambda cuts: cuts.left(stake))
    (1, 1.5, -2.0)
    """
    best = (0, 0.0, np.inf)
    for first, table in points.blocks(rows, _CELLS):
        cuts = Cuts(table)
        k, cost = cuts.best(costs(cuts), cuts.allowed(gap, min_size, size))
        least = float(cost.min())
        slack = _TIE * max(1.0, abs(least)) if np.isfinite(least) else 0.0
        if least < best[2] - slack:
            column = int(np.argmax(cost <= least + slack))
            best = (first + column, cuts.threshold(int(k[column]), column), float(cost[column]))
        if budget is not None and budget.over:
            break
    return best


def _best(cuts: Cuts, cost: FloatArray, allowed: BoolArray) -> tuple[float, float]:
    k, least = cuts.best(cost, allowed)
    return (cuts.threshold(int(k)), float(least)) if np.isfinite(least) else (0.0, np.inf)


def _middle(low: Any, high: Any) -> Any:
    """Half-way between two numbers; the finite one's other side where one is infinite."""
    with np.errstate(invalid="ignore"):  # between both infinities there is no number, and whoever asks looks for that
        middle = np.asarray(low) / 2 + np.asarray(high) / 2
    # Between neighbours in floating point there is no middle.
    return np.where((middle >= low) & (middle < high) | ~np.isfinite(middle), middle, low)


def best_scale(distance: FloatArray, weight: FloatArray, pull: float, default: float) -> float:
    r"""Scale of a split: smallest minimizer of :math:`\sum_i w_i [1 - \kappa d_i]^+ + \kappa\, pull` in :math:`1/d_i`.

    The slope grows from :math:`pull - \sum_i w_i d_i` by :math:`w_i d_i` at each :math:`\kappa = 1 / d_i`.

    Examples
    --------
    >>> best_scale(np.array([0.5, 2.0]), np.ones(2), pull=0.1, default=1.0)
    2.0
    >>> best_scale(np.array([0.5, 2.0]), np.ones(2), pull=1.0, default=1.0)
    0.5
    """
    distance, weight = distance[distance > 0], weight[distance > 0]
    if not len(distance):
        return default
    order = np.argsort(-distance, kind="stable")
    steps = (weight * distance)[order]
    left_over = steps.sum() - np.cumsum(steps)
    j = int(np.argmax(left_over <= pull + 1e-12 * steps.sum()))
    return float(1.0 / distance[order][j])


class Segment:
    """A way from some values of points to others, and the steps between the changes of sides on it.

    A point is on the right where its value is above 0.

    Parameters
    ----------
    start, end : ndarray of shape (n_points,)
        Values at both ends of the way.
    among : ndarray of bool, shape (n_points,), or None
        Points whose sides matter, all by default.

    Attributes
    ----------
    points : ndarray of int, shape (n_changes,)
        Points that change sides, in the order in which they do.
    edges : ndarray of shape (n_changes + 2,)
        Shares of the way at which the steps begin and end: 0, where the points change, 1.
    room : ndarray of shape (n_changes + 1,)
        How far from 0 the points that change at either end of a step are at least half-way through it.

    Examples
    --------
    >>> way = Segment(np.array([3.0, -1.0, 1.0]), np.array([-1.0, -2.0, -4.0]))
    >>> way.points.tolist(), way.edges.tolist()
    ([2, 0], [0.0, 0.2, 0.75, 1.0])
    >>> way.best(np.array([5, 2, 3]), room=0.1)
    (0.475, 2.0)
    """

    def __init__(self, start: FloatArray, end: FloatArray, among: BoolArray | None = None) -> None:
        changes = (start > 0) != (end > 0)
        points = np.flatnonzero(changes if among is None else changes & among)
        when = start[points] / (start[points] - end[points])
        order = np.argsort(when, kind="stable")
        self.points: IntArray = points[order]
        self.edges = np.concatenate([[0.0], when[order], [1.0]])
        speed = np.concatenate([[np.inf], np.abs(end - start)[self.points], [np.inf]])
        self.room = np.diff(self.edges) * np.minimum(speed[:-1], speed[1:]) / 2

    def middle(self, step: int) -> float:
        """Share of the way half-way through a step."""
        return float((self.edges[step] + self.edges[step + 1]) / 2)

    def best(self, cost: FloatArray | IntArray, room: float, widest: bool = False) -> tuple[float, float] | None:
        """Middle of the cheapest step with so much room, and its cost; None if no step has it.

        Parameters
        ----------
        cost : ndarray of shape (n_changes + 1,)
            What each step costs.
        room : float
            A step with less would leave the sides of its neighbours to rounding, or nearer than they may be.
        widest : bool
            Of equally cheap steps the widest, otherwise the first.
        """
        allowed = np.where(self.room >= room, cost, np.inf)
        least = float(allowed.min())
        if not np.isfinite(least):
            return None
        good = allowed == least
        k = int(np.argmax(np.where(good, np.diff(self.edges), -1.0) if widest else good))
        return self.middle(k), least
