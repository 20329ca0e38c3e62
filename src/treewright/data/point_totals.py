"""Class totals as models count them: points that stand for rows, allowed counts by group and class.

Whatever labels points with a total in view asks the same three things: how many rows of each group and class labels
give, how many rows would have to change class for the totals to hold, and which counts no labels can have. They are
answered here. The table of points and groups is kept by its entries, so that many groups cost no more than few.
"""

from __future__ import annotations

import heapq
from collections import Counter
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from treewright.core.arrays import IntArray
from treewright.data.label_changes import missed_along
from treewright.exceptions import InvalidInputError

__all__ = ["PointTotals", "class_deviations", "tight_intervals"]

_SUM_WORK = 2_000_000_000
"""Work (rows to the power of 1.5) up to which subset sums are enumerated: a second or less."""


def class_deviations(counts: ArrayLike, low: IntArray, high: IntArray) -> IntArray:
    r"""Fewest rows of each group that would have to change class for the totals to hold.

    A row that changes class mends one row of excess or one of shortage or both. With :math:`n_{gk}` the rows of
    group g in class k that makes :math:`\max(\sum_k [n_{gk} - high_{gk}]^+, \sum_k [low_{gk} - n_{gk}]^+)`.

    Parameters
    ----------
    counts : array-like of int, shape (..., n_groups, n_classes)
        Rows of each group and class, or a stack of such tables.
    low, high : ndarray of int, shape (n_groups, n_classes)
        Allowed counts.

    Returns
    -------
    ndarray of int, shape (..., n_groups)
        Rows that would have to change.

    Examples
    --------
    >>> class_deviations([[4, 1, 0]], np.array([[2, 2, 1]]), np.array([[3, 2, 1]])).tolist()
    [2]
    """
    table = np.asarray(counts)
    above = np.maximum(table - high, 0).sum(axis=-1)
    below = np.maximum(low - table, 0).sum(axis=-1)
    return np.asarray(np.maximum(above, below))


def tight_intervals(low: IntArray, high: IntArray, rows: IntArray) -> tuple[IntArray, IntArray]:
    """Ends of intervals of class totals moved to where some division of the rows attains them.

    With one sum over all classes, one round of propagation is enough.

    Parameters
    ----------
    low, high : ndarray of int, shape (n_groups, n_classes)
        Fewest and most rows, such that a division exists.
    rows : ndarray of int, shape (n_groups,)
        Rows to divide.

    Examples
    --------
    >>> low, high = tight_intervals(np.array([[0, 2]]), np.array([[3, 9]]), np.array([9]))
    >>> low.tolist(), high.tolist()
    ([[0, 6]], [[3, 9]])
    """
    fewest, most = (end.sum(axis=1, keepdims=True) - end for end in (low, high))
    return np.maximum(low, rows[:, None] - most), np.minimum(high, rows[:, None] - fewest)


class PointTotals:
    """Points that stand for rows of groups, and how many rows of each group and class there shall be.

    Parameters
    ----------
    size : array-like or sparse array of shape (n_points, n_groups)
        Rows of each group that a point stands for, whole numbers.
    low, high : array-like of int, shape (n_groups, n_classes)
        Fewest and most rows of each class.

    Attributes
    ----------
    size : sparse array of int, shape (n_points, n_groups)
        Rows of each group that a point stands for.
    low, high : ndarray of int, shape (n_groups, n_classes)
        Allowed counts.

    See Also
    --------
    treewright.data.ClassTotals : The totals as users give them; its ``of_points`` makes these.

    Examples
    --------
    Three points, the second of which stands for two rows; half of the four rows shall be of each class:

    >>> totals = PointTotals([[1], [2], [1]], low=[[2, 2]], high=[[2, 2]])
    >>> totals.counts([0, 1, 1]).tolist(), totals.missed([0, 1, 1]), totals.missed([1, 0, 1])
    ([[1, 3]], 1, 0)
    """

    def __init__(self, size: ArrayLike | sparse.sparray, low: ArrayLike, high: ArrayLike) -> None:
        self.low, self.high = (np.ascontiguousarray(end, dtype=np.int64) for end in (low, high))
        given: Any = size if sparse.issparse(size) else np.asarray(size)
        if (
            self.low.ndim != 2
            or given.ndim != 2
            or (given.shape[1], self.low.shape)
            != (
                len(self.low),
                self.high.shape,
            )
        ):
            raise InvalidInputError(
                f"size, low, high have shapes {(given.shape, self.low.shape, self.high.shape)}, expected "
                "(n_points, n_groups) and twice (n_groups, n_classes)"
            )
        table = sparse.csr_array(given)
        table.sum_duplicates()
        if table.nnz and not (np.all(table.data >= 0) and np.array_equal(table.data, np.rint(table.data))):
            raise InvalidInputError("size must hold whole numbers of rows, none below 0")
        table.eliminate_zeros()
        self.size: sparse.csr_array = table.astype(np.int64)
        # Compiled loops are made for one kind of arrays.
        self.size.indices, self.size.indptr = (part.astype(np.int64) for part in (table.indices, table.indptr))
        self.low, self.high = self.low.view(), self.high.view()
        self.low.flags.writeable = self.high.flags.writeable = False

    @classmethod
    def from_parts(
        cls, point: ArrayLike, group: ArrayLike, n_points: int, low: ArrayLike, high: ArrayLike, times: ArrayLike = 1
    ) -> PointTotals:
        """Make totals from triplets: `times` rows of `group` at `point`; triplets of one point and group add up.

        Examples
        --------
        >>> PointTotals.from_parts([0, 1, 1], [0, 0, 0], 2, [[0, 3]], [[0, 3]]).rows.tolist()
        [1, 2]
        """
        at, of = np.asarray(point, dtype=np.int64), np.asarray(group, dtype=np.int64)
        rows = np.broadcast_to(np.asarray(times, dtype=np.int64), at.shape)
        return cls(sparse.csr_array((rows, (at, of)), shape=(n_points, len(np.asarray(low)))), low, high)

    # ------------------------------------------------------------------ sizes

    @property
    def n_points(self) -> int:
        """Number of points."""
        return int(self.size.shape[0])

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.low)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.low.shape[1])

    @cached_property
    def rows(self) -> IntArray:
        """Rows that each point stands for."""
        return np.asarray(self.size.sum(axis=1)).reshape(-1)

    @cached_property
    def group_rows(self) -> IntArray:
        """Rows of each group."""
        return np.asarray(self.size.sum(axis=0)).reshape(-1)

    @cached_property
    def parts(self) -> tuple[IntArray, IntArray, IntArray]:
        """Point, group and rows of each entry of `size`, in the order of the points."""
        each = np.diff(self.size.indptr)
        return np.repeat(np.arange(self.n_points), each), self.size.indices.astype(np.int64), self.size.data

    @cached_property
    def largest_group(self) -> IntArray:
        """Group of the most rows of each point, the first where several have as many."""
        point, group, times = self.parts
        order = np.lexsort((group, -times, point))
        first = np.searchsorted(point[order], np.arange(self.n_points))
        found = np.zeros(self.n_points, dtype=np.int64)
        there = np.diff(self.size.indptr) > 0
        found[there] = group[order[first[there]]]
        return found

    # ------------------------------------------------------------------ other points, groups, classes

    def of(self, points: ArrayLike) -> PointTotals:
        """Return the totals with these points alone, by number or mask."""
        return PointTotals(self.size[np.asarray(points)], self.low, self.high)

    def merged(self, number: IntArray, n_points: int) -> PointTotals:
        """Return the totals of `n_points` new points; point i becomes part of the new point ``number[i]``."""
        point, group, times = self.parts
        return PointTotals.from_parts(number[point], group, n_points, self.low, self.high, times)

    @cached_property
    def each_part(self) -> PointTotals:
        """The totals with each entry of `size` as a point of its own, for labels that differ by group."""
        _, group, times = self.parts
        return PointTotals.from_parts(np.arange(len(group)), group, len(group), self.low, self.high, times)

    def pooled(self) -> PointTotals:
        """Return the totals of all groups together."""
        low, high = self.low.sum(axis=0, keepdims=True), self.high.sum(axis=0, keepdims=True)
        return PointTotals(self.rows[:, None], low, high)

    def interval(self, label: int) -> tuple[IntArray, IntArray]:
        """Fewest and most rows of a class in each group, in view of what the other classes need and allow.

        With two classes the distance from this interval is the deviation.

        Examples
        --------
        >>> totals = PointTotals([[4], [5]], low=[[0, 2]], high=[[3, 9]])
        >>> [end.tolist() for end in totals.interval(1)]
        [[6], [9]]
        """
        low, high = tight_intervals(self.low, self.high, self.group_rows)
        return low[:, label], high[:, label]

    # ------------------------------------------------------------------ counts and deviations

    def counts(self, labels: ArrayLike) -> IntArray:
        """Rows of each group and class.

        Parameters
        ----------
        labels : array-like of int, shape (..., n_points)
            Class number of each point, or a stack of such labels.

        Returns
        -------
        ndarray of int, shape (..., n_groups, n_classes)
            The counts.
        """
        label = np.asarray(labels)
        point, group, times = self.parts
        if label.ndim == 1:
            cell = group * self.n_classes + label[point]
            return np.bincount(cell, times, self.low.size).astype(np.int64).reshape(self.low.shape)
        stack = label.reshape(int(np.prod(label.shape[:-1])), self.n_points).T
        found = np.empty((stack.shape[1], *self.low.shape), dtype=np.int64)
        for k in range(self.n_classes - 1):
            found[:, :, k] = (self.size.T @ (stack == k)).T
        found[:, :, -1] = self.group_rows - found[:, :, :-1].sum(axis=2)
        return found.reshape(*label.shape[:-1], *self.low.shape)

    def excess(self, counts: ArrayLike) -> IntArray:
        """Rows above the totals, of each group and class."""
        return np.asarray(np.maximum(np.asarray(counts) - self.high, 0))

    def lack(self, counts: ArrayLike) -> IntArray:
        """Rows below the totals, of each group and class."""
        return np.asarray(np.maximum(self.low - np.asarray(counts), 0))

    def deviations(self, counts: ArrayLike) -> IntArray:
        """Rows of each group that would have to change class, see :func:`class_deviations`."""
        return class_deviations(counts, self.low, self.high)

    def deviation(self, counts: ArrayLike) -> IntArray:
        """Rows of all groups that would have to change class, for counts of shape (..., n_groups, n_classes)."""
        return np.asarray(self.deviations(counts).sum(axis=-1))

    def missed(self, labels: ArrayLike) -> int:
        """Rows that would have to change class if the points have these labels."""
        return int(self.deviation(self.counts(labels)))

    def missed_along(self, labels: IntArray, points: IntArray, new_labels: IntArray) -> IntArray:
        """Rows that would have to change class as one point after the other changes its label.

        Only cells that a change touches are looked at, in the order of the changes: the work grows with the rows of
        `size` at these points, however many groups and classes there are.

        Parameters
        ----------
        labels : ndarray of int, shape (n_points,)
            Class numbers before the first change.
        points : ndarray of int, shape (n_changes,)
            Points in the order in which they change, each once.
        new_labels : ndarray of int, shape (n_changes,)
            Their class numbers afterwards.

        Returns
        -------
        ndarray of int, shape (n_changes + 1,)
            Before the first change, and after each.

        Examples
        --------
        >>> totals = PointTotals([[1], [2], [1]], low=[[2, 2]], high=[[2, 2]])
        >>> totals.missed_along(np.array([0, 0, 0]), np.array([1, 0]), np.array([1, 1])).tolist()
        [2, 0, 1]
        """
        size = self.size
        counts, old = self.counts(labels), labels[points]
        return np.asarray(
            missed_along(size.indptr, size.indices, size.data, self.low, self.high, counts, points, old, new_labels)
        )

    # ------------------------------------------------------------------ counts that cannot be

    @cached_property
    def unreachable(self) -> int:
        """Rows that must miss the totals because points count with all their rows or not at all.

        The rows of a class in a group are a sum of some points' rows, so the deviation of the group is at least the
        distance of the nearest such sum to ``[low, high]``, for each class. Groups that would take too long to
        enumerate count nothing.

        Examples
        --------
        >>> PointTotals([[4], [7]], low=[[0, 5]], high=[[11, 5]]).unreachable
        1
        """
        bound, work = 0, 0.0
        for g in np.flatnonzero(~self._every_count).tolist():
            rows = int(self.group_rows[g])
            asked = np.flatnonzero((self.low[g] > 0) & (self.high[g] < rows))
            work += float(rows) ** 1.5
            if not len(asked) or work > _SUM_WORK:
                continue
            start, stop = self._by_group.indptr[g : g + 2]
            sums = _subset_sums(self._by_group.data[start:stop].tolist())
            bound += max(_distance(sums, int(self.low[g, k]), int(self.high[g, k])) for k in asked)
        return bound

    @cached_property
    def _by_group(self) -> sparse.csr_array:
        return self.size.T.tocsr()

    @cached_property
    def _every_count(self) -> np.ndarray:
        """Whether the points of a group can have any count: sorted, none is larger than all before together plus 1."""
        _, group, times = self.parts
        order = np.lexsort((times, group))
        group, times = group[order], times[order]
        before = _running(times, group, np.zeros(self.n_groups, dtype=np.int64)) - times
        return np.bincount(group[times > before + 1], minlength=self.n_groups) == 0


def _running(step: IntArray, key: IntArray, start: IntArray) -> IntArray:
    """Running sums of the steps of each key from its start, in the order given."""
    order = np.argsort(key.astype(np.min_scalar_type(len(start))), kind="stable")
    key = key[order]
    total = np.cumsum(step[order])
    first = np.flatnonzero(np.diff(key, prepend=-1))
    before = (total - step[order])[first]
    found = np.empty_like(total)
    found[order] = total - np.repeat(before, np.diff(np.append(first, len(key)))) + start[key]
    return found


def _subset_sums(sizes: list[int]) -> int:
    """All sums of some of the sizes, as bits. Of equal sizes beyond two, pairs are one size of twice as much."""
    times, sums = Counter(sizes), 1
    todo = sorted(times)  # a heap, too
    while todo:
        size = heapq.heappop(todo)
        pairs = max(0, times[size] - 1) // 2
        if pairs and 2 * size not in times:
            heapq.heappush(todo, 2 * size)
        if pairs:
            times[2 * size] += pairs
        for _ in range(times[size] - 2 * pairs):
            sums |= sums << size
    return sums


def _distance(sums: int, low: int, high: int) -> int:
    """Distance of the nearest bit from those numbered low to high."""
    above = sums >> low
    if above & ((1 << (high - low + 1)) - 1):
        return 0
    below = (sums & ((1 << low) - 1)).bit_length()  # one more than the number of the highest bit below
    beyond = above >> (high - low + 1)
    distances = [low - below + 1] if below else []
    return min([*distances, (beyond & -beyond).bit_length()] if beyond else distances)
