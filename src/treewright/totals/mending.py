"""Labels of points brought nearer to class totals by changes of single points, compiled: there may be many rounds."""

from __future__ import annotations

import numpy as np

from treewright.core.arrays import FloatArray, IntArray
from treewright.data import PointTotals
from treewright.totals.mending_loops import mend

__all__ = ["mended"]

_MOST_CELLS = 30_000_000
"""Changes of points that are looked at; a fraction of a second."""

_MOST_KEPT = 4_000_000
"""Changes of single rows, by group and both classes, whose savings are kept; where there are more, none is."""


def mended(scores: FloatArray, labels: IntArray, totals: PointTotals) -> IntArray:
    """Change single points, in each round one a group at most, until none comes nearer to the totals.

    Of the changes that help, those that lose the least score for each row that they come nearer are made: in each round
    the points that are the first of all their groups.

    Parameters
    ----------
    scores : ndarray of shape (n_points, n_classes)
        How well each class fits.
    labels : ndarray of int, shape (n_points,)
        Class numbers.
    totals : PointTotals
        Rows of each group that the points stand for, and the allowed counts.

    Returns
    -------
    ndarray of int, shape (n_points,)
        New class numbers.
    """
    size = totals.size
    changed = np.array(labels, dtype=np.int64)
    table = np.ascontiguousarray(scores, dtype=np.float64)
    kept = totals.n_groups if totals.low.size * totals.n_classes <= _MOST_KEPT else 0
    of_one = np.zeros((kept, totals.n_classes, totals.n_classes), dtype=np.int64)
    mend(table, changed, size.indptr, size.indices, size.data, totals.low, totals.high, of_one, _MOST_CELLS)
    return changed
