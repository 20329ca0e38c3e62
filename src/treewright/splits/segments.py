"""Segments on which points change sides one at a time, in an order that a sort gives.

Between two hyperplanes, or two weightings of votes, the value of each point moves on a line, so the point changes sides
once or not at all. Whatever depends on the sides alone, such as counts against totals, is a step function on the way
whose steps :meth:`treewright.data.PointTotals.missed_along` sums up.
"""

from __future__ import annotations

import numpy as np

from treewright.arrays import BoolArray, FloatArray, IntArray

__all__ = ["Segment"]


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
