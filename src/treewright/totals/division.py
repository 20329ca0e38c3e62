"""Rows divided among classes within totals by their scores, and shifts by which probabilities sum to the totals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.core.progress import stage
from treewright.data import ClassTotals, Problem
from treewright.data.margins import crossed_groups, telling_margins
from treewright.totals.cells import cell_counts
from treewright.totals.shift import Margin, rake, shifted
from treewright.totals.transport import divide, divide_groups

__all__ = ["Divided", "class_shifts", "divide_rows", "row_shares"]


@dataclass(frozen=True)
class Divided:
    """Rows divided among the classes, and what brings that about."""

    labels: IntArray
    """Class number of each row."""
    prices: dict[Any, FloatArray]
    """Prices of the classes by group, or by crossing of groups; under the key None those for rows of unknown group."""
    shifts: list[dict[Any, FloatArray]]
    """Shifts of the prior by group, of each margin; under the key None those for rows of unknown group."""
    shift: FloatArray
    """The shift of each row, or one for all."""
    note: str = ""
    """What the user is to be warned of."""


def row_shares(problem: Problem, table: FloatArray, shift: FloatArray) -> FloatArray:
    """Probabilities of all rows by a teacher cut at totals: 1 for a given label, else by scores and shifts."""
    shares = np.zeros((len(problem.y), problem.n_classes))
    shares[problem.labelled, problem.y_labelled] = 1.0
    shares[problem.unlabelled] = shifted(table, shift)
    return shares


@stage("labels within totals")
def divide_rows(
    table: FloatArray,
    content: IntArray,
    margins: tuple[ClassTotals, ...],
    columns: IntArray,
    rng: np.random.Generator,
) -> Divided:
    """Divide rows among the classes by a teacher's scores, within the totals.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_classes)
        Scores.
    content : ndarray of int, shape (n_rows,)
        Number of each row, equal for equal rows, whatever their order.
    margins : tuple of ClassTotals
        Totals of one margin, of several whose groups cross, or none.
    columns : ndarray of int
        Classes that have labels.
    rng : numpy Generator
        What draws the order of rows with tied scores.
    """
    if not margins:
        # Labels of weight 0 are no labels, and without totals nothing speaks for a class that has none.
        nothing = np.full(table.shape[1], -np.inf)
        nothing[columns] = 0.0
        return Divided((table + nothing).argmax(axis=1), {None: nothing}, [{None: nothing}], nothing)
    telling = telling_margins(margins)
    if len(telling) < len(margins):
        found_by_some = divide_rows(table, content, tuple(margins[j] for j in telling), columns, rng)
        return _of_all_margins(found_by_some, margins, telling)
    names, group_of = _crossed(margins)
    rank = np.empty(len(table), dtype=np.int64)
    rank[np.lexsort((group_of, content))] = rng.permutation(len(table))
    if len(margins) == 1:
        low, high, free, note = margins[0].low, margins[0].high, margins[0].free, ""
        shifts, shift = class_shifts(table, margins[0])
    else:
        found = cell_counts(table, group_of, [Margin(m.group_of, m.low, m.high) for m in margins])
        low = high = found.counts
        free, note = np.zeros(len(names), dtype=bool), _contradiction(found.missed)
        shift = np.asarray(sum(s[m.group_of] for s, m in zip(found.shifts, margins, strict=True)))
        pooled = _pooled_shift(table, margins[0])
        shifts = [
            dict(zip(m.groups, s, strict=True)) | {None: pooled} for s, m in zip(found.shifts, margins, strict=True)
        ]
    labels, by_group = divide_groups(table, rank, group_of, low, high)
    prices = dict(zip(names, by_group, strict=True))
    if None not in prices:
        asked = ~free[group_of] if not free.all() else np.ones(len(table), dtype=bool)
        kept = ~free if not free.all() else np.ones(len(names), dtype=bool)
        pooled = divide(table[asked], rank[asked], low[kept].sum(axis=0), high[kept].sum(axis=0))[1]
        prices[None] = pooled
        # Where nothing is known of a group, it is cut like all others together.
        for g in np.flatnonzero(free):
            prices[names[g]] = pooled
        labels[~asked] = (table[~asked] + pooled).argmax(axis=1)
    return Divided(labels, prices, shifts, shift, note)


def _of_all_margins(found: Divided, margins: tuple[ClassTotals, ...], telling: tuple[int, ...]) -> Divided:
    """What was found by the margins that say something, for whoever names groups of all of them."""
    prices = {
        name: found.prices[name[telling[0]] if len(telling) == 1 else tuple(name[j] for j in telling)]
        for name in crossed_groups(margins)[0]
    }
    pooled = found.shifts[0][None]
    shifts: list[dict[Any, FloatArray]] = [
        {name: np.zeros_like(pooled) for name in margin.groups} | {None: pooled} for margin in margins
    ]
    for j, part in zip(telling, found.shifts, strict=True):
        shifts[j] = part
    return replace(found, prices=prices | {None: found.prices[None]}, shifts=shifts)


def _crossed(margins: tuple[ClassTotals, ...]) -> tuple[list[Any], IntArray]:
    """Groups, or the crossings of those of several margins, and the number of each row's."""
    if len(margins) == 1:
        return list(margins[0].groups), margins[0].group_of
    return crossed_groups(margins)


def _contradiction(missed: int) -> str:
    if not missed:
        return ""
    return (
        f"the margins contradict one another: no labels meet all totals, those nearest to them miss {missed} in all "
        "(totals_ has which)"
    )


def class_shifts(
    table: FloatArray, totals: ClassTotals, budget: Budget | None = None
) -> tuple[list[dict[Any, FloatArray]], FloatArray]:
    """Shifts of the prior of a teacher's classifier by group, by which probabilities sum to totals, and of rows.

    A group of which nothing is asked has that of all others together. Once a budget is over, sums may miss the totals.
    """
    (by_group,) = rake(table, [Margin(totals.group_of, totals.low, totals.high)], budget)
    if totals.groups == (None,):
        return [{None: by_group[0]}], by_group[0]
    pooled = _pooled_shift(table, totals, budget)
    by_group[totals.free] = pooled
    return [dict(zip(totals.groups, by_group, strict=True)) | {None: pooled}], by_group[totals.group_of]


def _pooled_shift(table: FloatArray, totals: ClassTotals, budget: Budget | None = None) -> FloatArray:
    """The shift of all groups together of which something is asked."""
    kept = ~totals.free
    if not kept.any():
        return np.zeros(table.shape[1])
    rows = table[kept[totals.group_of]]
    ends = (end[kept].sum(axis=0, keepdims=True) for end in (totals.low, totals.high))
    return rake(rows, [Margin(np.zeros(len(rows), dtype=np.int64), *ends)], budget)[0][0]
