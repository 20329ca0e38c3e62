r"""Trees of one feature a split, two levels deep: all of them that get every label right and meet every total.

Where a tree is to be read rule by rule, `max_split_features` is 1, and there are few enough trees to look at all of
them. A root that leaves labelled points on a side which no second split parts is out at once, and with it all roots
that part the labelled points alike; that is most of them. For each of the others, what the two leaves of a side can be
is listed by sorted sweeps over the features, with the rows that they give to each class.

Rows are counted by adding: a point has a random 64-bit number for each class (the sum over its rows of numbers of group
and class), a leaf has the sum of its points' numbers, all modulo :math:`2^{64}`. Two sides meet the totals where their
sums add up to that of the totals: one look into a hash table, however many groups and classes there are. (Other counts
have the same sum with a probability of :math:`2^{-64}`; what is found is counted again.)

Of all these trees the one that agrees with the teacher in the most rows is taken. If there is none, not even with
labelled points on the right side by less than their margin, each tree gets a label wrong or misses a total, and costs
at least the weight of a labelled point or the price of a row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.data import PointTotals
from treewright.data.point_totals import tight_intervals
from treewright.models.s2oct.search.data import Survey
from treewright.models.s2oct.search.one_feature_loops import best_of_roots
from treewright.tree import Tree

__all__ = ["AxisTrees", "axis_trees"]

_CANDIDATES = 1_000_000
"""Splits of a side with labels of their leaves, beyond which lists of them take too much memory."""
_TARGETS = 64
"""Tables of counts within intervals, beyond which they are not enumerated."""
_WORK = 20_000_000
"""Steps of a sweep between two looks at the clock."""
_NOTHING = -10
"""Less than any gain."""


@dataclass(frozen=True)
class AxisTrees:
    """What there is among S2OCT trees of two levels with one feature a split."""

    tree: Tree | None
    """The one that agrees most with the teacher, right in all labels and within all totals; None if none was found."""
    none: bool
    """Whether it is certain that each tree has a labelled point in a leaf of another class, or misses a total."""


def axis_trees(survey: Survey, taught: IntArray, budget: Budget) -> AxisTrees | None:
    """Look at all S2OCT trees of at most two levels with one feature a split.

    Parameters
    ----------
    survey, taught, budget
        See :mod:`treewright.models.s2oct.search`.

    Returns
    -------
    AxisTrees or None
        None where there are too many of them, or too many tables of counts within the totals.

    Examples
    --------
    >>> from treewright.data import PointTotals
    >>> from treewright.models.s2oct.objective import S2OCT
    >>> X, y = np.array([[0.0], [5.0], [1.0], [2.0], [3.0], [4.0]]), np.array([0, 1, -1, -1, -1, -1])
    >>> totals = PointTotals(np.ones((4, 1)), low=[[3, 1]], high=[[3, 1]])
    >>> model = S2OCT(X, y, np.ones(6), totals, margin_rule="tolerance", max_split_features=1)
    >>> found = axis_trees(Survey(model), np.array([0, 0, 1, 1]), Budget())
    >>> found.tree.n_leaves, model.objective(found.tree)
    (2, 0.0)
    """
    model = survey.model
    n_classes, (n, p) = model.n_classes, model.X.shape
    targets = _tables(survey.totals)
    if targets is None or model.everywhere or p * (n + 1) * n_classes * (n_classes - 1) > _CANDIDATES:
        return None
    keys = np.random.default_rng(0).integers(0, 2**64, survey.totals.low.shape, dtype=np.uint64)
    wanted = np.array([_sum(keys, table) for table in targets], dtype=np.uint64)
    work = _Work(survey, taught, keys, wanted)
    least = 1.0 / model.max_coefficient
    for own in (least, 0.0):  # with the margins of labelled points; then on their sides at least
        tree = work.best(np.array([own, model.required * least]), budget)
        if tree is not None or budget.over:
            return AxisTrees(tree, none=False)
    return AxisTrees(None, none=True)


def _sum(keys: np.ndarray, table: IntArray) -> int:
    return int((keys * table.astype(np.uint64)).sum(dtype=np.uint64))


def _tables(totals: PointTotals) -> list[IntArray] | None:
    """All tables of counts within the totals, None if there are many; groups without totals are 0."""
    low, high = tight_intervals(totals.low, totals.high, totals.group_rows)
    free = _free(totals)
    found = [np.zeros_like(low)]
    for g in np.flatnonzero(~free):
        counts = _divisions(low[g], high[g], int(totals.group_rows[g]))
        if counts is None or len(found) * len(counts) > _TARGETS:
            return None
        found = [_with_row(table, int(g), row) for table in found for row in counts]
    return found


def _free(totals: PointTotals) -> np.ndarray:
    """Groups that any counts are right for."""
    return np.asarray(np.all((totals.low <= 0) & (totals.high >= totals.group_rows[:, None]), axis=1))


def _with_row(table: IntArray, g: int, row: list[int]) -> IntArray:
    table = table.copy()
    table[g] = row
    return table


def _divisions(low: IntArray, high: IntArray, rows: int) -> list[list[int]] | None:
    """All ways to divide rows among classes within intervals, None if they are many."""
    found: list[list[int]] = [[]]
    for k in range(len(low)):
        rest_low, rest_high = int(low[k + 1 :].sum()), int(high[k + 1 :].sum())
        longer = list[list[int]]()
        for part in found:
            left = rows - sum(part)
            first, last = max(int(low[k]), left - rest_high), min(int(high[k]), left - rest_low)
            if last - first >= _TARGETS:
                return None
            longer += [[*part, count] for count in range(first, last + 1)]
        if len(longer) > _TARGETS:
            return None
        found = longer
    return found


class _Work:
    """Points as the compiled loops take them."""

    def __init__(self, survey: Survey, taught: IntArray, keys: np.ndarray, wanted: np.ndarray) -> None:
        model, totals = survey.model, survey.totals
        charged = survey.weight > 0
        self.model, self.wanted = model, wanted
        self.X = np.ascontiguousarray(np.vstack([survey.X[charged], survey.hidden]))
        n_known, n_classes = int(charged.sum()), model.n_classes
        self.label = np.concatenate([survey.y[charged], np.full(len(survey.hidden), -1)])
        self.keys = np.zeros((len(self.X), n_classes), dtype=np.uint64)
        self.gains = np.zeros((len(self.X), n_classes), dtype=np.int64)
        point, group, rows = totals.parts
        counted = ~_free(totals)[group]
        np.add.at(self.keys, n_known + point[counted], keys[group[counted]] * rows[counted].astype(np.uint64)[:, None])
        self.gains[n_known + np.arange(len(taught)), taught] = 4 * totals.rows  # more than two splits cost
        self.order = np.ascontiguousarray(np.argsort(self.X, axis=0, kind="stable").T)

    def best(self, need: FloatArray, budget: Budget) -> Tree | None:
        """The tree that agrees most with the teacher, None if there is none, or none was found in time."""
        n, p = self.X.shape
        step = max(1, _WORK // (n * p))
        gain, found = _NOTHING, None
        for root in range(p):
            for first in range(0, n - 1, step):
                if budget.over:
                    return found
                now, which, cuts = best_of_roots(
                    self.X, self.order, self.label, self.keys, self.gains, self.wanted, need, root, first,
                    first + step, self.model.depth > 1, gain,
                )  # fmt: skip
                if now > gain:
                    gain, found = now, self._tree(root, which, cuts)
        return found

    def _tree(self, root: int, which: IntArray, cuts: FloatArray) -> Tree:
        """The tree of a root and what its sides are, with normals as long as they may be."""
        s, p = self.model.max_coefficient, self.X.shape[1]
        feature = np.array([root, which[0, 0], which[1, 0]])
        split = feature >= 0
        weights = np.zeros((3, p))
        weights[np.flatnonzero(split), feature[split]] = s
        labels = np.array([0, which[0, 1], which[1, 1], *which[0, 1:], *which[1, 1:]])
        return Tree.from_heap(
            split, weights, np.where(split, s * cuts, 0.0), np.eye(self.model.n_classes)[labels], labels
        )
