"""Labels from scores within class totals: the most likely labels whose counts are allowed."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from treewright.arrays import FloatArray, IntArray

__all__ = ["assign_within_totals"]


def assign_within_totals(scores: FloatArray, size: FloatArray, low: IntArray, high: IntArray) -> IntArray:
    """Label each point so that the sum of scores is largest and the counts are within the totals.

    With two classes and one total this is the cut: the highest-scored rows are class 1, as many as allowed. In
    general it is a transport problem for each group. Points that stand for several rows are counted with their size;
    where that makes a total unreachable the result misses it by less than one point.

    Parameters
    ----------
    scores : ndarray of shape (n_points, n_classes)
        How well each class fits, for instance log-probabilities.
    size : ndarray of shape (n_points, n_groups)
        Rows of each group that a point stands for. A point in several groups is labelled for its largest one.
    low, high : ndarray of int, shape (n_groups, n_classes)
        Allowed counts.

    Returns
    -------
    ndarray of int, shape (n_points,)
        Class numbers.

    Examples
    --------
    >>> scores = np.array([[0.1, 0.9], [0.4, 0.6], [0.3, 0.7]])
    >>> assign_within_totals(scores, np.ones((3, 1)), np.array([[2, 1]]), np.array([[2, 1]])).tolist()
    [1, 0, 0]
    """
    labels = np.zeros(len(scores), dtype=np.int64)
    group = size.argmax(axis=1)
    for g in range(size.shape[1]):
        inside = np.flatnonzero(group == g)
        if len(inside):
            labels[inside] = _one_group(scores[inside], size[inside, g], low[g], high[g])
    return labels


def _one_group(scores: FloatArray, size: FloatArray, low: IntArray, high: IntArray) -> IntArray:
    if scores.shape[1] == 2:
        rows = size.sum()
        return _cut(scores[:, 1] - scores[:, 0], size, max(low[1], rows - high[0]), min(high[1], rows - low[0]))
    n, k = scores.shape
    each = sparse.kron(sparse.eye_array(n), np.ones((1, k)), format="csr")
    total = sparse.kron(size[None, :], sparse.eye_array(k), format="csr")
    solved = linprog(
        -scores.ravel() / (float(np.ptp(scores)) or 1.0),
        A_ub=sparse.vstack([total, -total]),
        b_ub=np.concatenate([high, -low]).astype(float),
        A_eq=each,
        b_eq=np.ones(n),
        bounds=(0, None),
        method="highs",
    )
    return np.asarray(solved.x.reshape(n, k).argmax(axis=1))


def _cut(margin: FloatArray, size: FloatArray, low: float, high: float) -> IntArray:
    """Class 1 for the highest margins: as many rows as have a positive one, but within [low, high]."""
    order = np.argsort(-margin, kind="stable")
    count = np.concatenate([[0.0], np.cumsum(size[order])])
    wanted = np.clip(size[margin > 0].sum(), low, high)
    labels = np.zeros(len(margin), dtype=np.int64)
    labels[order[: int(np.argmin(np.abs(count - wanted)))]] = 1
    return labels
