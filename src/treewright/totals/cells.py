r"""Counts of the crossings of groups that meet the totals of several margins.

Region and sex cross in cells. Where all totals are exact the probabilities of the rows are raked to all margins, which
makes the expected count of each cell and class. Where they leave freedom, rows have the class of the largest score plus
the prices of their groups, found one margin at a time, and cells have as many of each class as that makes: a class of
which nothing is asked shall have the rows that it has without totals. Whole numbers come next: of all counts that meet
the margins those nearest to these,

.. math:: \min \sum_{ck} |x_{ck} - e_{ck}| \quad\text{s.t.}\quad \sum_k x_{ck} = n_c,\;
    low_{gk} \le \sum_{c \in g} x_{ck} \le high_{gk} \text{ for all groups g of all margins.}

With two classes and two margins that is a flow, whose linear program has whole numbers by itself; in general it is a
small mixed-integer program. Margins that contradict one another are widened before: to counts that some division of the
cells has, by as few rows as possible. Cells are then divided like groups.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from treewright.core.arrays import FloatArray, IntArray
from treewright.data.point_totals import tight_intervals
from treewright.exceptions import SolverError
from treewright.totals.shift import Margin, rake, shifted
from treewright.totals.transport import divide_groups

__all__ = ["CellCounts", "cell_counts"]

_SECONDS = 60.0
"""Most time of a program; what it has by then is taken."""
_TURNS = 20
"""Rounds over the margins in which prices are sought."""


@dataclass(frozen=True)
class CellCounts:
    """What was found."""

    counts: IntArray
    """Rows of each cell and class, whole numbers; shape (n_cells, n_classes)."""
    shifts: list[FloatArray]
    """Shifts of the classes by group, of each margin, whose sums of probabilities are the totals."""
    missed: int
    """Rows by which the margins contradict one another."""


def cell_counts(scores: FloatArray, cell_of: IntArray, margins: list[Margin]) -> CellCounts:
    """Choose the rows of each class in each crossing of groups within totals of several margins.

    Parameters
    ----------
    scores : ndarray of shape (n_rows, n_classes)
        Logarithms of probabilities, finite.
    cell_of : ndarray of int, shape (n_rows,)
        Cell of each row; the cells of a group are those whose rows it has.
    margins : list of Margin
        Groups and totals.

    Examples
    --------
    >>> scores, cell = np.log([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6], [0.7, 0.3]]), np.arange(4)
    >>> one = np.array([[1, 1], [1, 1]])
    >>> rows, columns = Margin(np.array([0, 0, 1, 1]), one, one), Margin(np.array([0, 1, 0, 1]), one, one)
    >>> cell_counts(scores, cell, [rows, columns]).counts.tolist()
    [[1, 0], [0, 1], [0, 1], [1, 0]]
    """
    size = np.bincount(cell_of).astype(float)
    groups = [_group_of_cell(margin.group_of, cell_of, len(size)) for margin in margins]
    wide, missed = _widened(margins, groups, size)
    shifts = rake(scores, wide)
    if all(np.array_equal(margin.low, margin.high) for margin in margins):
        table = shifted(scores, np.asarray(sum(s[m.group_of] for s, m in zip(shifts, wide, strict=True))))
    else:
        table = np.eye(scores.shape[1])[_labels_by_prices(scores, wide)]
    cells = Margin(cell_of, np.zeros((len(size), scores.shape[1])), np.zeros((len(size), scores.shape[1])))
    return CellCounts(_nearest(cells.sums(table), wide, groups, size), shifts, missed)


def _labels_by_prices(scores: FloatArray, margins: list[Margin]) -> IntArray:
    """Labels of the largest scores plus prices of the groups of all margins, each of which is met in turn."""
    ends = []
    for margin in margins:
        size = np.bincount(margin.group_of, minlength=len(margin.low)).astype(np.int64)
        low, high = (np.rint(end).astype(np.int64) for end in (margin.low, margin.high))
        ends.append(tight_intervals(low, high, size))
    offset = [np.zeros(scores.shape) for _ in margins]
    rank = np.arange(len(scores))
    labels = scores.argmax(axis=1)
    for _ in range(_TURNS):
        before = labels
        for m, (margin, (low, high)) in enumerate(zip(margins, ends, strict=True)):
            others = scores + sum(offset[j] for j in range(len(margins)) if j != m)
            labels, prices = divide_groups(others, rank, margin.group_of, low, high)
            # what a margin rules out stays so with a score that is finite
            offset[m] = np.maximum(prices, -1e6)[margin.group_of]
        if np.array_equal(labels, before):
            break
    return labels


def _group_of_cell(group_of: IntArray, cell_of: IntArray, n_cells: int) -> IntArray:
    found = np.zeros(n_cells, dtype=np.int64)
    found[cell_of] = group_of
    return found


def _widened(margins: list[Margin], groups: list[IntArray], size: FloatArray) -> tuple[list[Margin], int]:
    """Margins that some division of the cells meets: ends moved by as few rows as possible."""
    n_classes = np.shape(margins[0].low)[1]
    rows, low, high = _rows(margins, groups, len(size), n_classes)
    n_sums, n_counts = rows.shape
    slack = sparse.eye_array(n_sums)
    matrix = sparse.hstack([rows, slack, -slack])
    cost = np.concatenate([np.zeros(n_counts), np.ones(2 * n_sums)])
    upper = np.concatenate([np.repeat(size, n_classes), np.full(2 * n_sums, np.inf)])
    found = _solved(cost, matrix, low, high, upper, size, n_classes)
    over = np.rint(rows @ np.rint(found[:n_counts]))
    low, high = np.minimum(low, over), np.maximum(high, over)
    missed = int(np.rint(found[n_counts:]).sum())
    wide, start = [], 0
    for margin in margins:
        shape = np.shape(margin.low)
        part = slice(start, start + shape[0] * shape[1])
        wide.append(Margin(margin.group_of, low[part].reshape(shape), high[part].reshape(shape)))
        start = part.stop
    return wide, missed


def _nearest(expected: FloatArray, margins: list[Margin], groups: list[IntArray], size: FloatArray) -> IntArray:
    """Whole counts within the margins that are nearest to the expected ones."""
    n_cells, n_classes = expected.shape
    rows, low, high = _rows(margins, groups, n_cells, n_classes)
    one = sparse.eye_array(expected.size)
    matrix = sparse.vstack(
        [sparse.hstack([rows, sparse.csr_array((rows.shape[0], 2 * expected.size))]), sparse.hstack([one, -one, one])]
    )
    flat = expected.reshape(-1)
    upper = np.concatenate([np.repeat(size, n_classes), np.full(2 * expected.size, np.inf)])
    cost = np.concatenate([np.zeros(expected.size), np.ones(2 * expected.size)])
    ends = np.concatenate([low, flat]), np.concatenate([high, flat])
    found = _solved(cost, matrix, *ends, upper, size, n_classes)
    return np.rint(found[: expected.size]).astype(np.int64).reshape(expected.shape)


def _rows(
    margins: list[Margin], groups: list[IntArray], n_cells: int, n_classes: int
) -> tuple[sparse.csr_array, FloatArray, FloatArray]:
    """Sums over the cells of each group, by class: their rows, and their ends."""
    parts, cell = [], np.arange(n_cells)
    for margin, group in zip(margins, groups, strict=True):
        belongs = sparse.csr_array((np.ones(n_cells), (group, cell)), shape=(len(margin.low), n_cells))
        parts.append(sparse.kron(belongs, sparse.eye_array(n_classes)))
    ends = [
        np.concatenate([np.asarray(end, dtype=float).reshape(-1) for end in side])
        for side in ([m.low for m in margins], [m.high for m in margins])
    ]
    return sparse.csr_array(sparse.vstack(parts)), ends[0], ends[1]


def _solved(
    cost: FloatArray,
    matrix: sparse.sparray,
    low: FloatArray,
    high: FloatArray,
    upper: FloatArray,
    size: FloatArray,
    n_classes: int,
) -> FloatArray:
    """The optimum, counts of cells being whole and adding up to the rows of the cells."""
    n_counts = len(size) * n_classes
    whole = sparse.kron(sparse.eye_array(len(size)), np.ones((1, n_classes)))
    whole = sparse.hstack([whole, sparse.csr_array((len(size), len(cost) - n_counts))])
    integral = np.concatenate([np.ones(n_counts), np.zeros(len(cost) - n_counts)])
    found = milp(
        cost,
        integrality=integral,
        bounds=Bounds(0, upper),
        constraints=[LinearConstraint(sparse.csr_array(matrix), low, high), LinearConstraint(whole, size, size)],
        options={"time_limit": _SECONDS},
    )
    if found.x is None:
        raise SolverError(f"counts of crossing groups were not found in {_SECONDS:.0f} s: {found.message}")
    return np.asarray(found.x)
