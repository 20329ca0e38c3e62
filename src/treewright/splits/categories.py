"""Splits of one categorical feature: which of its levels go left.

A feature has levels 0, ..., K - 1, and -1 where the value is missing. Missing values are one more level here: they go
to the side that is better for them. A point pays by the side it is on, as at an inner node of a tree that is improved
node by node, so that sums over the levels say it all: each level goes where it is cheaper. Only a smallest size of the
sides makes this a problem, a knapsack over the levels, solved by dynamic programming over rows.

What points there are none of, a level or missing values, goes with the heavier side, so that later rows have a place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.exceptions import InvalidInputError

__all__ = ["Subset", "best_subset"]


class Subset(NamedTuple):
    """A split of a categorical feature."""

    left: BoolArray
    """Levels that go left; shape (n_levels,)."""
    missing_left: bool
    """Whether missing values go left."""
    cost: float
    """What the split costs, ``inf`` if the sides cannot be large enough."""


def best_subset(
    codes: IntArray,
    n_levels: int,
    cost_left: FloatArray,
    cost_right: FloatArray,
    min_size: int = 0,
    size: IntArray | FloatArray | None = None,
) -> Subset:
    """Exact best subset where each point pays by the side it is on.

    Parameters
    ----------
    codes : ndarray of int, shape (n_points,)
        Level of each point, -1 for a missing value.
    n_levels : int
        Number of levels.
    cost_left, cost_right : ndarray of shape (n_points,)
        What each point pays on either side.
    min_size : int
        Smallest sum of `size` on each side; 0 allows all points on one side.
    size : ndarray of whole numbers, shape (n_points,), or None
        How many rows each point stands for, 1 by default.

    Returns
    -------
    Subset
        The split; levels that are as cheap on both sides go right.

    Examples
    --------
    >>> codes, stake = np.array([0, 1, 1, 2, -1]), np.array([1.0, -2.0, 1.0, 3.0, -1.0])
    >>> best_subset(codes, 3, np.maximum(stake, 0), np.maximum(-stake, 0))
    Subset(left=array([False,  True, False]), missing_left=True, cost=1.0)
    """
    cells = _Cells(codes, n_levels, size)
    left, right = cells.sums(cost_left), cells.sums(cost_right)
    goes_left = _cheapest_sides(left, right, cells.rows, min_size)
    return cells.subset(goes_left, left, right)


class _Cells:
    """Points by level: cell k has those of level k, the last one those with missing values."""

    def __init__(self, codes: IntArray, n_levels: int, size: IntArray | FloatArray | None) -> None:
        if len(codes) and not (codes.min() >= -1 and codes.max() < n_levels):
            raise InvalidInputError(f"levels must be 0 to {n_levels - 1}, or -1 for a missing value")
        self.cell, self.n_levels = np.where(codes < 0, n_levels, codes), n_levels
        self.rows: FloatArray = np.bincount(self.cell, size, n_levels + 1).astype(np.float64)

    def sums(self, values: FloatArray) -> FloatArray:
        """Sum over the points of each cell."""
        return np.bincount(self.cell, values, self.n_levels + 1).astype(np.float64)

    def subset(self, goes_left: BoolArray | None, left: FloatArray, right: FloatArray) -> Subset:
        """The split in which these cells go left and empty ones to the heavier side; None is no split at all."""
        if goes_left is None:
            return Subset(np.zeros(self.n_levels, dtype=bool), False, np.inf)
        cost = float(np.where(goes_left, left, right).sum())
        empty = self.rows == 0
        heavier_left = bool(self.rows[goes_left & ~empty].sum() > self.rows[~goes_left & ~empty].sum())
        sides = np.where(empty, heavier_left, goes_left)
        return Subset(sides[:-1], bool(sides[-1]), cost)


def _cheapest_sides(left: FloatArray, right: FloatArray, rows: FloatArray, min_size: int) -> BoolArray | None:
    """Which cells go left, at least cost among the splits with so many rows on each side; None if there is none."""
    goes_left = left < right
    on_left = rows[goes_left].sum()
    if min(on_left, rows.sum() - on_left) >= min_size:
        return np.asarray(goes_left)
    if np.any(rows != np.rint(rows)):
        raise InvalidInputError("size must hold whole numbers of rows where the sides have a smallest size")
    return _packed(left, right, np.rint(rows).astype(np.int64), int(np.ceil(min_size)))


def _packed(left: FloatArray, right: FloatArray, rows: IntArray, least: int) -> BoolArray | None:
    """As above by dynamic programming, cell by cell, over how many rows each side has so far.

    Rows matter up to `least` only. A state below `least` is the number of rows on the left while they are too few, and
    the right side has the rest; from `least` on the left has enough, and the state less `least` is the number of rows
    on the right, at most `least`. So the last state is the one in which both sides are large enough.
    """
    if rows.sum() < 2 * least:
        return None
    cost, came_from, went_left = np.full(2 * least + 1, np.inf), [], []
    cost[0], seen = 0.0, 0
    state = np.arange(2 * least + 1)
    short = state < least
    for cell in range(len(rows)):
        # Where each state leads if the cell goes left, and if it goes right.
        on_right = np.where(short, seen - state, state - least)
        enough = state + rows[cell] >= least
        to_left = np.where(short & ~enough, state + rows[cell], least + np.clip(on_right, 0, least))
        to_right = np.where(short, state, least + np.minimum(on_right + rows[cell], least))
        target = np.concatenate([to_left, to_right])
        price = np.concatenate([cost + left[cell], cost + right[cell]])
        cost = np.full(len(state), np.inf)
        np.minimum.at(cost, target, price)
        way = np.flatnonzero(price == cost[target])  # as cheap as any to where it leads
        source, sided = np.zeros(len(state), dtype=np.int32), np.zeros(len(state), dtype=bool)
        source[target[way]], sided[target[way]] = way % len(state), way < len(state)
        came_from.append(source)
        went_left.append(sided)
        seen += int(rows[cell])
    at, goes_left = 2 * least, np.zeros(len(rows), dtype=bool)
    if not np.isfinite(cost[at]):
        return None
    for cell in range(len(rows) - 1, -1, -1):
        goes_left[cell] = went_left[cell][at]
        at = int(came_from[cell][at])
    return goes_left
