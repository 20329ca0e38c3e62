r"""Splits of one categorical feature: which of its levels go left.

A feature has levels 0, ..., K - 1, and -1 where the value is missing. Missing values are one more level here: they go
to the side that is better for them. Three questions about a node are answered from sums over the levels, which take
one pass over the points:

* *sides are costs* (:func:`best_subset`): a point pays by the side it is on, as at an inner node of a tree that is
  improved node by node. Each level goes where it is cheaper. Only a smallest size of the sides makes this a problem, a
  knapsack over the levels, solved by dynamic programming over rows.
* *labels are chosen, too* (:func:`best_labels_subset`): each side predicts one class, and all others are errors. For
  given labels the first answer holds, and there are few pairs of labels.
* *means are chosen, too* (:func:`best_mean_subset`): each side predicts its mean, at squared error. In the order of the
  means of the levels the best subset is a cut (Fisher 1958, Breiman et al. 1984), so one sweep finds it. With targets 0
  and 1 this is the Gini impurity of two classes.

What points there are none of, a level or missing values, goes with the heavier side, so that later rows have a place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from treewright.arrays import BoolArray, FloatArray, IntArray
from treewright.exceptions import InvalidInputError
from treewright.splits.thresholds import Cuts

__all__ = ["Subset", "best_labels_subset", "best_mean_subset", "best_subset"]


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


def best_labels_subset(
    codes: IntArray,
    n_levels: int,
    by_class: FloatArray,
    min_size: int = 0,
    size: IntArray | FloatArray | None = None,
) -> Subset:
    """Exact best subset where each side predicts a class, both chosen with it.

    Parameters
    ----------
    codes, n_levels, min_size, size
        As for :func:`best_subset`.
    by_class : ndarray of shape (n_points, n_classes)
        Weight of each point in the column of its class.

    Returns
    -------
    Subset
        The split; its cost is the weight of the points on whose side another class is predicted.

    Examples
    --------
    >>> best_labels_subset(np.array([0, 1, 2, 3]), 4, np.eye(3)[[0, 2, 0, 2]])
    Subset(left=array([ True, False,  True, False]), missing_left=False, cost=0.0)
    """
    cells = _Cells(codes, n_levels, size)
    table = np.column_stack([cells.sums(by_class[:, k]) for k in range(by_class.shape[1])])
    wrong = table.sum(axis=1, keepdims=True) - table  # of each level, if its side predicts the class
    first, second = np.triu_indices(table.shape[1])
    # Without a smallest size every level goes where it is cheaper: no pair of labels costs less than that.
    bound = np.minimum(wrong[:, first], wrong[:, second]).sum(axis=0)
    best: Subset | None = None
    for pair in np.argsort(bound, kind="stable"):
        if best is not None and bound[pair] >= best.cost - 1e-12 * max(1.0, best.cost):
            break
        left, right = wrong[:, first[pair]], wrong[:, second[pair]]
        found = cells.subset(_cheapest_sides(left, right, cells.rows, min_size), left, right)
        if best is None or found.cost < best.cost:
            best = found
    assert best is not None
    return best


def best_mean_subset(
    codes: IntArray,
    n_levels: int,
    targets: FloatArray,
    weight: FloatArray,
    min_size: int = 0,
    size: IntArray | FloatArray | None = None,
) -> Subset:
    """Best subset where each side predicts its mean, at squared error.

    Exact for one output and no smallest size. With several outputs levels are ordered along the direction in which
    their means differ most; under a smallest size the best cut of that order is taken.

    Parameters
    ----------
    codes, n_levels, min_size, size
        As for :func:`best_subset`.
    targets : ndarray of shape (n_points,) or (n_points, n_outputs)
        Targets.
    weight : ndarray of shape (n_points,)
        Weights, positive.

    Returns
    -------
    Subset
        The split; its cost is the weighted sum of squared distances from the means of the sides.

    Examples
    --------
    >>> codes = np.array([0, 0, 1, 1, 2, 2])
    >>> best_mean_subset(codes, 3, np.array([5.0, 5.0, 1.0, 1.0, 5.0, 4.0]), np.ones(6))
    Subset(left=array([False,  True, False]), missing_left=False, cost=0.75)
    """
    cells = _Cells(codes, n_levels, size)
    wanted = targets.reshape(len(codes), -1)
    centre = np.average(wanted, axis=0, weights=weight)
    wanted = wanted - centre  # sums of squares of what is far from 0 lose their digits
    mass = cells.sums(weight)
    sums = np.column_stack([cells.sums(weight * column) for column in wanted.T])
    held = np.flatnonzero(mass > 0)
    mean = sums[held] / mass[held, None]
    along = mean[:, 0] if mean.shape[1] == 1 else mean @ _leading(np.sqrt(mass[held, None]) * mean)
    order = held[np.argsort(along, kind="stable")]
    cuts = Cuts(np.arange(float(len(order))))
    kept = _explained(cuts.left(mass[order]), cuts.left(sums[order]))
    kept += _explained(cuts.right(mass[order]), cuts.right(sums[order]))
    whole = float(np.einsum("i,ij,ij->", weight, wanted, wanted))
    k, cost = cuts.best(whole - kept, cuts.allowed(0.0, min_size, cells.rows[order]))
    goes_left = np.zeros(len(mass), dtype=bool)
    goes_left[order[: int(k)]] = True
    return cells.placed(goes_left, max(float(cost), 0.0))


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
        """The split in which these cells go left, with its cost; None is no split at all."""
        if goes_left is None:
            return Subset(np.zeros(self.n_levels, dtype=bool), False, np.inf)
        return self.placed(goes_left, float(np.where(goes_left, left, right).sum()))

    def placed(self, goes_left: BoolArray, cost: float) -> Subset:
        """The split in which these cells go left and empty ones to the heavier side."""
        empty = self.rows == 0
        heavier_left = bool(self.rows[goes_left & ~empty].sum() > self.rows[~goes_left & ~empty].sum())
        sides = np.where(empty, heavier_left, goes_left)
        return Subset(sides[:-1], bool(sides[-1]), cost)


def _explained(mass: FloatArray, sums: FloatArray) -> FloatArray:
    """What a mean saves of the sum of squares of a side of each cut."""
    return np.asarray((sums**2).sum(axis=1) / np.where(mass > 0, mass, 1.0))


def _leading(table: FloatArray) -> FloatArray:
    """Direction along which the rows of a table are longest."""
    return np.asarray(np.linalg.svd(table, full_matrices=False)[2][0])


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
