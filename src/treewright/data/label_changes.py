"""Compiled loop over changes of labels. Importing it imports numba: import it where it is needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from treewright.core.compiled import njit

__all__ = ["change_label", "missed_along"]


@njit(nogil=True)
def change_label(
    begins: Any,
    groups: Any,
    times: Any,
    low: Any,
    high: Any,
    counts: Any,
    above: Any,
    below: Any,
    point: int,
    old: int,
    new: int,
) -> Any:
    """How many more rows would have to change class once a point has another label.

    The rows of a point are in compressed rows: ``times[k]`` of them in ``groups[k]`` for k from ``begins[point]``.
    `counts`, the rows of each group and class, and the sums `above` and `below` their limits in each group, are brought
    up to date.
    """
    more = 0
    for k in range(begins[point], begins[point + 1]):
        g = groups[k]
        more -= max(above[g], below[g])
        for label, step in ((old, -times[k]), (new, times[k])):
            before = counts[g, label]
            after = before + step
            counts[g, label] = after
            above[g] += max(after - high[g, label], 0) - max(before - high[g, label], 0)
            below[g] += max(low[g, label] - after, 0) - max(low[g, label] - before, 0)
        more += max(above[g], below[g])
    return more


@njit("i8* i8* i8* ro:i8** ro:i8** i8** i8* i8* i8*", nogil=True)
def missed_along(
    begins: Any, groups: Any, times: Any, low: Any, high: Any, counts: Any, points: Any, old: Any, new: Any
) -> Any:
    """Rows that would have to change class before the first change of a label and after each.

    Points have rows as in :func:`change_label`.
    `counts`, the rows of each group and class before the first change, are overwritten.
    """
    above = np.maximum(counts - high, 0).sum(axis=1)
    below = np.maximum(low - counts, 0).sum(axis=1)
    missed = np.empty(len(points) + 1, dtype=np.int64)
    missed[0] = np.maximum(above, below).sum()
    for change in range(len(points)):
        missed[change + 1] = missed[change] + change_label(
            begins, groups, times, low, high, counts, above, below, points[change], old[change], new[change]
        )
    return missed
