"""Compiled loop of :mod:`treewright.models.s2oct.search.levelling`: all places of a threshold along a direction."""

from __future__ import annotations

from typing import Any

import numpy as np

from treewright.core.compiled import njit
from treewright.data.label_changes import change_label

__all__ = ["best_place"]


@njit("f8* i8* i8* i8* i8* i8* f8* i8* i8* i8* ro:i8** ro:i8** i8** f8 f8", nogil=True)
def best_place(
    level: Any,
    order: Any,
    number: Any,
    if_left: Any,
    if_right: Any,
    wanted: Any,
    worth: Any,
    begins: Any,
    groups: Any,
    times: Any,
    low: Any,
    high: Any,
    counts: Any,
    price: float,
    least_gap: float,
) -> Any:
    """Points left of the best threshold, rows that miss the totals there, and the worth that is kept.

    As the threshold rises points go from right to left in the given order. `number` is that of an unlabelled point,
    -1 of a labelled one; the rows of an unlabelled point are in compressed rows, as in
    :func:`treewright.data.label_changes.change_label`. `counts`, with all points on the right, are overwritten. Two
    points on either side of a threshold are farther apart than `least_gap`.
    """
    above = np.maximum(counts - high, 0).sum(axis=1)
    below = np.maximum(low - counts, 0).sum(axis=1)
    missed, kept, n = np.maximum(above, below).sum(), 0.0, len(order)
    for i in range(n):
        if if_right[i] == wanted[i]:
            kept += worth[i]
    best, best_missed, best_kept = 0, missed, kept
    for place in range(1, n + 1):
        i = order[place - 1]
        old, new = if_right[i], if_left[i]
        if old != new:
            if old == wanted[i]:
                kept -= worth[i]
            elif new == wanted[i]:
                kept += worth[i]
            if number[i] >= 0:
                missed += change_label(begins, groups, times, low, high, counts, above, below, number[i], old, new)
        if place < n and level[order[place]] - level[i] <= least_gap:
            continue
        if kept - price * missed > best_kept - price * best_missed:
            best, best_missed, best_kept = place, missed, kept
    return best, best_missed, best_kept
