r"""What the compiled loops of exact OCT work on: points sorted by every column, prices, the state of a search.

A *block* is a set of points with ordinal columns (:mod:`treewright.splits.ordinal`): each column has its points in
order, so that a cut of the column is a place in that order. All costs are weights of misclassified points plus a
`price` for each split.

*Sweep*: points are in two parts, by the cut of the root. One pass over the order of a column finds the best split of
each part by that column (``_sweep`` in ``sweep_loops.pyx``). It is the only work that grows with the number of points.

*Bounds*: let :math:`l_f(c)` be the least cost of the left part of the root's cut c if it is split by column f.
More points cost no less, and fewer points cost less by their weight at most:

.. math:: l_f(c') \ge l_f(c), \quad l_f(c) \ge l_f(c') - w(c, c') \quad \text{for } c < c',

and the same mirrored on the right. So cuts whose columns were swept bound all columns at all cuts between them, and a
cut is given up without a sweep, or after those of a few columns, where bounds say that it is no better than the best.
The smallest size of leaves is left out of these bounds, as a tree may keep it on more points and not on fewer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from treewright.core.arrays import FloatArray

__all__ = ["Block", "Rules", "Sweeps", "sweeps_for"]

_SLOTS = 72
"""Room for the bounds at the ends of nested intervals, each half of the last: more than any table has."""


class Rules(NamedTuple):
    """What trees cost, and which are allowed."""

    n_classes: int
    min_leaf: float
    """Fewest rows of a leaf; up to 1 it means nothing, as a leaf without points is no leaf."""
    price: float
    """Of a split, in the weight of points."""
    tolerance: float
    """By how much a tree must be better to be so: sums in another order differ by rounding."""


class Block(NamedTuple):
    """Points, sorted by every column."""

    order: NDArray[np.int32]
    """Points by each column; shape (n_columns, n_points)."""
    rank: NDArray[np.int32]
    """Place of each point among the values of each column; points of equal rank are never parted."""
    last: NDArray[np.uint8]
    """Whether a place in the order is the last one of its rank."""
    n_ranks: NDArray[np.int64]
    """Ranks that occur in each column."""
    y: NDArray[np.int64]
    weight: FloatArray
    size: FloatArray
    """Rows that points stand for."""
    row: NDArray[np.int64]
    """Number of each point in the whole table."""


class Sweeps(NamedTuple):
    """What :func:`.sweep_loops.solve_two` keeps while it works, so that it can end early and go on later."""

    left: FloatArray
    """Bounds :math:`l_f` at some cuts; shape (slots, n_columns)."""
    right: FloatArray
    least: FloatArray
    """Least cost of each part at these cuts, without and with the smallest size; shape (slots, 2)."""
    stack: NDArray[np.int64]
    """Intervals of cuts still to do: both ends, their slots, how often they were halved."""
    at: NDArray[np.int64]
    """Column in turn as a number in `todo`, and intervals on the stack, -1 if the column is not begun."""
    cost: FloatArray
    """Cost to get below; least bound of the cuts of the column in turn."""
    best: NDArray[np.int64]
    """Column and cut of the root, columns of its children, -1 for a leaf; the first is -1 while nothing is found."""


def sweeps_for(n_columns: int, below: float) -> Sweeps:
    """The state of a search for a tree that costs less than `below`."""
    return Sweeps(
        np.zeros((_SLOTS, n_columns)),
        np.zeros((_SLOTS, n_columns)),
        np.zeros((_SLOTS, 2)),
        np.zeros((_SLOTS, 5), dtype=np.int64),
        np.array([0, -1]),
        np.array([below, np.inf]),
        np.full(4, -1),
    )
