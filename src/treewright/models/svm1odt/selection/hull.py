r"""Extreme points of a cluster, far faster than by one program of all points for each of them.

The program (7) with :math:`\varepsilon' = 0` selects the corners of the convex hull. Corners are found along random
directions, then each other point is asked whether it is inside the hull of the corners known so far, by a program in d
variables that starts where the last one ended (:mod:`treewright.models.svm1odt.selection.hull_loops`). A point that is
not shows the direction of a new corner. So there is one program a point and one a corner, each of the size of the
corners alone.

Features of different units make no difference, nor do points on a common line or plane: they are put into coordinates
of unit spread within the space that they span. What rounding leaves in doubt is settled by HiGHS, to within
:data:`~treewright.models.svm1odt.selection.programs.TOLERANCE` of the features' ranges: a point nearer than this to the
hull of others is inside. Of several points nearer than this to one another one may stay, where the program (7) drops
all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.models.svm1odt.selection.hull_loops import CORNER, INSIDE, OPEN, UNSURE, combine, grow
from treewright.models.svm1odt.selection.programs import TOLERANCE, Corners

__all__ = ["Hull", "convex_hull", "in_unit_box"]

_WORK = 5e7
"""Products between two looks at the clock."""
_CELLS = 2**22
"""Cells of a table of positions along directions."""
_DISTANCE = 10 * TOLERANCE
"""Distance to all other points of a corner that HiGHS need not look at."""


@dataclass(frozen=True, eq=False)
class _Space:
    """Points in coordinates of unit spread, 0 inside of their hull, and the way of directions back to the features."""

    points: FloatArray
    map_back: FloatArray
    noise: FloatArray

    @property
    def n_dimensions(self) -> int:
        return int(self.points.shape[1])


@dataclass(frozen=True, eq=False)
class Hull:
    """Corners of the convex hull of points, and the points inside, in the selection of SVM1-ODT.

    Attributes
    ----------
    corners : ndarray of int
        Extreme points, in order of their numbers; without `complete` those found so far.
    inside : ndarray of bool, shape (n,)
        Points that are convex combinations of the corners.
    complete : bool
        Whether each point is one or the other. Without, time was over: no point inside is wrongly so.
    """

    corners: IntArray
    inside: BoolArray
    complete: bool
    _X: FloatArray
    _space: _Space

    def combinations(self, rows: IntArray, budget: Budget | None = None) -> sparse.csr_array | None:
        """Write points inside as convex combinations of at most d + 1 corners.

        Parameters
        ----------
        rows : ndarray of int
            Points inside.
        budget : Budget or None
            Ends the work early.

        Returns
        -------
        csr_array of shape (len(rows), n) or None
            Shares of all points, those of corners alone are not 0; None if time was over, or HiGHS failed.

        Examples
        --------
        >>> X = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0], [1.0, 1.0]])
        >>> hull = convex_hull(X)
        >>> hull.combinations(np.array([3])).toarray().round(9).tolist()
        [[0.5, 0.25, 0.25, 0.0]]
        """
        budget, space, d = budget or Budget(), self._space, self._space.n_dimensions
        used, share = np.zeros((len(rows), d + 1), dtype=np.int64), np.ones((len(rows), d + 1))
        tour = _round_trip(space.points[rows])
        order = rows[tour]
        if d and len(rows):
            table, place = _Table(space, self.corners), 0
            while place < len(rows):
                if budget.over:
                    return None
                place = combine(
                    space.points, order, place, table.corners, table.limit, table.n, space.noise, used, share, _WORK
                )
        if not self._repaired(order, used, share):
            return None
        shares = sparse.csr_array(
            (share.ravel(), (np.repeat(tour, d + 1), self.corners[used.ravel()])), shape=(len(rows), len(self._X))
        )
        shares.sum_duplicates()
        shares.eliminate_zeros()
        return shares

    def _repaired(self, rows: IntArray, used: IntArray, share: FloatArray) -> bool:
        """Let HiGHS write the points that the kernel could not; whether it did."""
        np.maximum(share, 0.0, out=share)
        rest = self._X[rows]
        for column in range(used.shape[1]):
            rest -= share[:, column, None] * self._X[self.corners[used[:, column]]]
        missed = np.abs(rest).max(axis=1, initial=0.0)
        bad = np.flatnonzero((used[:, 0] < 0) | (missed > TOLERANCE) | (np.abs(share.sum(axis=1) - 1.0) > TOLERANCE))
        if not len(bad):
            return True
        program = Corners(self._X[self.corners])
        width = used.shape[1]
        for k in bad:
            found = program.sure_shares(self._X[rows[k]])
            if found is None:
                return False
            largest = np.argsort(-found, kind="stable")[:width]
            used[k, : len(largest)], share[k] = largest, 0.0
            share[k, : len(largest)] = found[largest]
        return True


class _Table:
    """Corners by coordinate, as the kernels want them."""

    def __init__(self, space: _Space, first: IntArray, capacity: int | None = None) -> None:
        n = len(first) if capacity is None else capacity
        self.n = len(first)
        self.corners = np.zeros((space.n_dimensions, n))
        self.member = np.zeros(n, dtype=np.int64)
        self.corners[:, : self.n], self.member[: self.n] = space.points[first].T, first
        # Raised a little, each by its own amount: facets of more than d corners make no ties.
        self.limit = 1.0 + 1e-10 * np.random.default_rng(1).random(n)


def convex_hull(X: FloatArray, budget: Budget | None = None) -> Hull:
    """Find the extreme points of a cluster, which are worth training on.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Distinct points.
    budget : Budget or None
        Ends the work early.

    Examples
    --------
    >>> hull = convex_hull(np.array([[0.0, 0.0], [2.0, 0.0], [4.0, 0.0], [0.0, 4.0], [1.0, 1.0]]))
    >>> hull.corners.tolist(), hull.complete
    ([0, 2, 3], True)
    """
    budget = budget or Budget()
    X = in_unit_box(np.asarray(X, dtype=np.float64))
    n = len(X)
    space, seeds = _space(X)
    if n <= space.n_dimensions + 1:  # they span as many dimensions as they can
        return Hull(np.arange(n), np.zeros(n, dtype=bool), True, X, space)
    state, sure = np.full(n, OPEN, dtype=np.int64), np.zeros(n, dtype=bool)
    sure[_along_points(space, budget)] = True
    state[seeds] = state[sure] = CORNER
    table = _Table(space, np.flatnonzero(state == CORNER), n)
    order, place, m = _round_trip(space.points), 0, table.n
    while place < n and not budget.over:
        place, m = grow(
            space.points, order, place, state, sure, table.corners, table.member, table.limit, m, space.noise,
            space.map_back, _DISTANCE, _WORK,
        )  # fmt: skip
    inside, complete = state == INSIDE, place == n
    corners = np.flatnonzero(state == CORNER)
    if complete:
        inside, corners, complete = _settled(X, inside, corners, np.flatnonzero(state == UNSURE), sure, budget)
    return Hull(corners, inside, complete, X, space)


def in_unit_box(X: FloatArray) -> FloatArray:
    """Points of a cluster with each feature in [0, 1], for SVM1-ODT selection; one that never changes is 0."""
    low, width = X.min(axis=0), np.ptp(X, axis=0)
    return np.asarray((X - low) / np.where(width > 0, width, 1.0))


def _space(X: FloatArray) -> tuple[_Space, IntArray]:
    """Coordinates of unit spread, and corners that 0 is strictly between."""
    n, d = X.shape
    rng = np.random.default_rng(0)
    centred = X - X.mean(axis=0)
    _, sizes, axes = np.linalg.svd(centred if n <= 4 * d else np.linalg.qr(centred, mode="r"), full_matrices=False)
    spread = sizes / np.sqrt(n)
    rank = int(np.count_nonzero(spread > TOLERANCE))
    map_back = axes[:rank].T / spread[:rank]
    points = centred @ map_back
    seeds = np.zeros(1, dtype=np.int64)
    if rank:
        seeds = np.unique(_tops(points, rng.standard_normal((16 + 8 * rank, rank)))[0])
    for _ in range(rank):
        _, sizes, axes = np.linalg.svd(points[seeds] - points[seeds].mean(axis=0))
        if len(sizes) == rank and sizes[-1] > 0.5:
            break
        seeds = np.union1d(seeds, _tops(points, np.vstack([axes[-1], -axes[-1]]))[0])
    points = np.ascontiguousarray(points - points[seeds].mean(axis=0))
    return _Space(points, np.ascontiguousarray(map_back), rng.standard_normal((rank, rank))), seeds


def _tops(points: FloatArray, directions: FloatArray) -> tuple[IntArray, FloatArray]:
    """Farthest point along each direction, and how far it is ahead of the next."""
    levels = directions @ points.T
    pick = np.arange(len(levels))
    top = levels.argmax(axis=1)
    best = levels[pick, top]
    levels[pick, top] = -np.inf
    return top, best - levels.max(axis=1)


def _along_points(space: _Space, budget: Budget) -> IntArray:
    """Corners that are farthest along the direction of a point, as long as most directions show new ones.

    In many dimensions nearly every point is a corner, and farthest along its own direction: this is then a product of
    tables instead of a program a point.
    """
    points, n = space.points, len(space.points)
    found = np.zeros(n, dtype=bool)
    order = np.random.default_rng(2).permutation(n)
    step = max(1, min(256, _CELLS // n))
    for first in range(0, n, step):
        some = points[order[first : first + step]]
        top, ahead = _tops(points, some)
        known, size = np.count_nonzero(found), np.abs(some @ space.map_back.T).sum(axis=1)
        found[top[(ahead >= _DISTANCE * size) & (size > 0)]] = True  # a point at 0 has no direction
        if np.count_nonzero(found) - known < 0.2 * len(some) or budget.over:
            break
    return np.flatnonzero(found)


def _round_trip(points: FloatArray) -> IntArray:
    """An order in which the directions of points change little: each program then starts near its end."""
    if not points.size:
        return np.arange(len(points))
    size = np.sqrt(np.square(points).sum(axis=1, keepdims=True))
    directions = points / np.where(size > 0, size, 1.0)
    return np.asarray(cKDTree(directions, leafsize=4).indices, dtype=np.int64)


def _settled(
    X: FloatArray, inside: BoolArray, corners: IntArray, unsure: IntArray, sure: BoolArray, budget: Budget
) -> tuple[BoolArray, IntArray, bool]:
    """Points inside and corners once HiGHS has looked at what rounding leaves in doubt; whether it has seen all."""
    if len(unsure):
        program = Corners(X[corners])
        outside = [p for p in unsure if program.shares(X[p], seconds=budget.remaining) is None]
        inside[np.setdiff1d(unsure, outside)] = True
        corners = np.union1d(corners, np.asarray(outside, dtype=np.int64))
    doubtful = np.flatnonzero(~sure[corners])
    if len(doubtful):
        program = Corners(X[corners])
        for k in doubtful:
            if budget.over:
                return inside, corners[~inside[corners]], False
            if program.shares(X[corners[k]], without=int(k), seconds=budget.remaining) is not None:
                inside[corners[k]] = True
                program.leave_out(int(k))
        for k in doubtful[inside[corners[doubtful]]]:  # points that lean on one another must not all go
            if program.shares(X[corners[k]], seconds=budget.remaining) is None:
                inside[corners[k]] = False
                program.let_in(int(k))
        corners = corners[~inside[corners]]
    return inside, corners, not budget.over
