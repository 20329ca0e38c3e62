"""Compiled loop over changes of labels. Importing it imports numba: import it where it is needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from treewright.compiled import njit

__all__ = ["missed_along"]


@njit(cache=True, nogil=True)
def missed_along(
    begins: Any, groups: Any, times: Any, low: Any, high: Any, counts: Any, points: Any, old: Any, new: Any
) -> Any:
    """Rows that would have to change class before the first change of a label and after each.

    The rows of a point are in compressed rows: ``times[k]`` of them in ``groups[k]`` for k from ``begins[point]``.
    `counts`, the rows of each group and class before the first change, are overwritten.
    """
    above = np.maximum(counts - high, 0).sum(axis=1)
    below = np.maximum(low - counts, 0).sum(axis=1)
    missed = np.empty(len(points) + 1, dtype=np.int64)
    missed[0] = np.maximum(above, below).sum()
    for change in range(len(points)):
        total = missed[change]
        for k in range(begins[points[change]], begins[points[change] + 1]):
            g = groups[k]
            total -= max(above[g], below[g])
            for label, step in ((old[change], -times[k]), (new[change], times[k])):
                before = counts[g, label]
                after = before + step
                counts[g, label] = after
                above[g] += max(after - high[g, label], 0) - max(before - high[g, label], 0)
                below[g] += max(low[g, label] - after, 0) - max(low[g, label] - before, 0)
            total += max(above[g], below[g])
        missed[change + 1] = total
    return missed
