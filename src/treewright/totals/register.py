"""Millions of rows divided among the classes within totals: scores are all that is kept of them.

Groups are divided some at a time, so that what is worked on is small beside the scores themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treewright.core.arrays import FloatArray, IntArray
from treewright.data import ClassTotals
from treewright.totals.shift import Margin, rake
from treewright.totals.transport import divide, divide_groups

__all__ = ["RegisterDivision", "divide_register"]

_ROWS = 500_000
"""Rows that are divided at once, unless a group has more."""
_POOLED = 300_000
"""Rows by which prices and shifts of all groups together are found, for rows of other groups."""


@dataclass(frozen=True)
class RegisterDivision:
    """Rows divided among the classes, and what brings that about."""

    labels: NDArray[np.int32]
    """Class number of each row."""
    prices: dict[Any, FloatArray]
    """Prices of the classes by group; under the key None those for rows of unknown group."""
    shifts: dict[Any, FloatArray]
    """Shifts of the prior, likewise."""
    by_group: FloatArray
    """The shifts of the groups in the order of the totals, shape (n_groups, n_classes)."""


def divide_register(
    table: FloatArray, content: np.ndarray, totals: ClassTotals, rng: np.random.Generator
) -> RegisterDivision:
    """Divide millions of rows among the classes by their scores, within totals by group or of all.

    It is what :func:`~treewright.totals.division.divide_rows` does, but for the prices of rows of unknown group, which
    are found by a sample where rows are many.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_classes)
        Scores.
    content : ndarray of shape (n_rows,)
        A number for each row that depends on its features alone.
    totals : ClassTotals
        The totals.
    rng : numpy Generator
        What draws the order of rows with tied scores, and the sample.
    """
    n_classes = table.shape[1]
    labels = np.empty(len(table), dtype=np.int32)
    prices, shifts = np.zeros((totals.n_groups, n_classes)), np.zeros((totals.n_groups, n_classes))
    # numpy sorts short integers by digits
    order = np.argsort(totals.group_of.astype(np.min_scalar_type(totals.n_groups)), kind="stable")
    ends = np.append(0, np.cumsum(totals.size))
    for first, last in _chunks(totals.size):
        rows = order[ends[first] : ends[last]]
        group, own = totals.group_of[rows] - first, table[rows]
        low, high = totals.low[first:last], totals.high[first:last]
        rank = np.empty(len(rows), dtype=np.int64)
        rank[_by_content(content[rows], group)] = rng.permutation(len(rows))
        labels[rows], prices[first:last] = divide_groups(own, rank, group, low, high)
        (shifts[first:last],) = rake(own, [Margin(group, low, high)])
    if totals.groups == (None,):
        return RegisterDivision(labels, {None: prices[0]}, {None: shifts[0]}, shifts)
    price, shift = _pooled(table, labels, totals, rng)
    for g in np.flatnonzero(totals.free):  # where nothing is known of a group, it is cut like all others together
        rows = order[ends[g] : ends[g + 1]]
        labels[rows] = (table[rows] + price).argmax(axis=1)
        prices[g], shifts[g] = price, shift
    by_price: dict[Any, FloatArray] = dict(zip(totals.groups, prices, strict=True))
    by_shift: dict[Any, FloatArray] = dict(zip(totals.groups, shifts, strict=True))
    return RegisterDivision(labels, by_price | {None: price}, by_shift | {None: shift}, shifts)


def _by_content(content: np.ndarray, group: IntArray) -> IntArray:
    """Order of rows by their content, and by group where that is equal, which it hardly ever is."""
    order = np.argsort(content)
    several = np.any(content[order[1:]] == content[order[:-1]])
    return np.lexsort((group, content)) if several else order


def _chunks(size: IntArray) -> Iterator[tuple[int, int]]:
    """Groups that are divided together, as the first and the one after the last."""
    first, rows = 0, 0
    for g, n in enumerate(size.tolist()):
        if rows and rows + n > _ROWS:
            yield first, g
            first, rows = g, 0
        rows += n
    if first < len(size):
        yield first, len(size)


def _pooled(
    table: FloatArray, labels: NDArray[np.int32], totals: ClassTotals, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Price and shift of each class for all groups together of which something is asked."""
    n_classes, kept = table.shape[1], ~totals.free
    if not kept.any():
        return np.zeros(n_classes), np.zeros(n_classes)
    rows = np.flatnonzero(kept[totals.group_of])
    low, high = totals.low[kept].sum(axis=0), totals.high[kept].sum(axis=0)
    if len(rows) > _POOLED:
        share = _POOLED / len(rows)
        rows = np.sort(rng.choice(rows, _POOLED, replace=False))
        counts = np.bincount(labels[rows], minlength=n_classes)  # what the cut of the groups made of them
        exact = low == high
        low = np.where(exact, counts, np.minimum(counts, np.floor(low * share)).astype(np.int64))
        high = np.where(exact, counts, np.maximum(counts, np.ceil(high * share)).astype(np.int64))
    own = table[rows]
    price = divide(own, rng.permutation(len(rows)), low, high)[1]
    (shift,) = rake(own, [Margin(np.zeros(len(rows), dtype=np.int64), low[None], high[None])])
    return price, shift[0]
