"""Weighted linear splitters: a direction by a convex surrogate, and the exact best threshold along it.

A split is chosen for *costs*: point i pays ``cost_left[i]`` on the left and ``cost_right[i]`` on the right. The 0/1
error of a stump, the error below a node of a larger tree and a relabelling price are all of that form.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression

from treewright.arrays import BoolArray, FloatArray
from treewright.budget import Budget

__all__ = ["Split", "best_labels_threshold", "best_threshold", "hinge_directions", "logistic_direction", "widest_gap"]


class Split(NamedTuple):
    """A split ``normal @ x <= threshold`` and what it costs."""

    normal: FloatArray
    threshold: float
    cost: float


def best_threshold(
    level: FloatArray,
    cost_left: FloatArray,
    cost_right: FloatArray,
    gap: float = 0.0,
    min_size: float = 0,
    size: FloatArray | None = None,
) -> tuple[float, float]:
    """Exact best threshold along a direction.

    Parameters
    ----------
    level : ndarray of shape (n_points,)
        Position of the points along the direction.
    cost_left, cost_right : ndarray of shape (n_points,)
        What each point pays on either side.
    gap : float
        The two sides must lie at least this far apart.
    min_size : float
        Smallest sum of `size` on each side; 0 allows all points on one side.
    size : ndarray of shape (n_points,) or None
        How many rows each point stands for, 1 by default.

    Returns
    -------
    threshold : float
        Middle of the best gap; of equally good gaps the widest. ``-inf`` or ``inf`` sends all points one way.
    cost : float
        Total cost, ``inf`` if no gap is allowed.

    Examples
    --------
    >>> level = np.array([0.0, 1.0, 2.0, 4.0])
    >>> best_threshold(level, np.array([0.0, 0, 1, 1]), np.array([1.0, 1, 0, 0]))
    (1.5, 0.0)
    """
    order = np.argsort(level, kind="stable")
    # cost[k]: the first k points in order go left.
    cost = (
        np.concatenate([[0.0], np.cumsum(cost_left[order])])
        + np.concatenate([[0.0], np.cumsum(cost_right[order][::-1])])[::-1]
    )
    return _cheapest_cut(level[order], cost, gap, min_size, None if size is None else size[order])


def best_labels_threshold(
    level: FloatArray, by_class: FloatArray, gap: float = 0.0, min_size: float = 0, size: FloatArray | None = None
) -> tuple[float, float]:
    """Exact best threshold along a direction where each side predicts its heaviest class.

    Parameters
    ----------
    level : ndarray of shape (n_points,)
        Position of the points along the direction.
    by_class : ndarray of shape (n_points, n_classes)
        Weight of each point in the column of its class.
    gap, min_size, size
        As for :func:`best_threshold`.

    Returns
    -------
    threshold, cost : float
        As for :func:`best_threshold`; the cost is the weight of the points on whose side another class is heaviest.

    Examples
    --------
    >>> best_labels_threshold(np.array([0.0, 1.0, 2.0, 4.0]), np.eye(3)[[2, 2, 0, 0]])
    (1.5, 0.0)
    """
    order = np.argsort(level, kind="stable")
    left = np.vstack([np.zeros(by_class.shape[1]), np.cumsum(by_class[order], axis=0)])
    right = left[-1] - left
    cost = np.maximum(left[-1].sum() - left.max(axis=1) - right.max(axis=1), 0.0)
    return _cheapest_cut(level[order], cost, gap, min_size, None if size is None else size[order])


def _cheapest_cut(
    level: FloatArray, cost: FloatArray, gap: float, min_size: float, size: FloatArray | None
) -> tuple[float, float]:
    """Threshold and cost of the best cut of sorted levels, where cutting after k points costs ``cost[k]``."""
    n = len(level)
    width = np.concatenate([[np.inf], np.diff(level), [np.inf]])
    rows = np.arange(n + 1.0) if size is None else np.concatenate([[0.0], np.cumsum(size)])
    least = min_size - 1e-9
    allowed = (width > 0) & (width >= gap) & (rows >= least) & (rows[-1] - rows >= least)
    if not allowed.any():
        return 0.0, np.inf
    # Sums in another order differ by rounding; such ties are ties.
    tie = 1e-12 * max(1.0, float(np.abs(cost).max()))
    cost = np.where(allowed, cost, np.inf)
    best = np.flatnonzero(cost <= cost.min() + tie)
    inner = best[(best > 0) & (best < n)]
    if len(inner):
        k = int(inner[np.argmax(width[inner])])
        return float((level[k - 1] + level[k]) / 2), float(cost[k])
    k = int(best[0])
    return (-np.inf if k == 0 else np.inf), float(cost[k])


def logistic_direction(
    X: FloatArray, goes_left: BoolArray, weight: FloatArray, penalty: str = "l2", strength: float = 1e-2
) -> FloatArray:
    """Direction of a weighted logistic regression that sends the marked points to the low side.

    Parameters
    ----------
    X : ndarray of shape (n_points, n_features)
        Points.
    goes_left : ndarray of bool
        Which points should go left; both sides must occur.
    weight : ndarray of shape (n_points,)
        How much each wish counts, scaled to mean 1 here.
    penalty : {"l1", "l2"}
        Penalty of the weights; l1 gives few features.
    strength : float
        Factor of the penalty.
    """
    # 'saga' and 'lbfgs' need many iterations on unscaled features; liblinear does not.
    ratio = {"l1": 1.0, "l2": 0.0}[penalty]
    model = LogisticRegression(
        C=1.0 / strength, l1_ratio=ratio, solver="liblinear", max_iter=200, tol=1e-3, random_state=0
    )
    model.fit(X, ~goes_left, sample_weight=weight / weight.mean())
    return np.asarray(model.coef_[0], dtype=np.float64)


def hinge_directions(
    X: FloatArray,
    goes_left: BoolArray,
    weight: FloatArray,
    gap: float,
    rounds: int = 4,
    budget: Budget | None = None,
) -> list[FloatArray]:
    r"""Directions of few violations under :math:`\lVert a \rVert_1 \le 1`, by linear programs.

    .. math:: \min \sum_i w_i \xi_i \quad\text{s.t.}\quad \sigma_i (a^\top x_i - o) \ge g/2 - \xi_i

    is solved several times, each time with the weight of a point divided by its last violation, so that the sum comes
    to count violations instead of adding them up. The sides that a solution gives are then parted as widely as they
    can be, since points inside the gap are allowed nowhere, right or wrong.

    Parameters
    ----------
    X : ndarray of shape (n_points, n_features)
        Points.
    goes_left : ndarray of bool
        Which points should go left.
    weight : ndarray of shape (n_points,)
        How much each wish counts.
    gap : float
        Gap g between the sides.
    rounds : int
        Number of times the weights are renewed.
    budget : Budget or None
        Ends the work early, with the directions found so far.

    Returns
    -------
    list of ndarray
        Directions of 1-norm 1; empty where all points can go one way without cost.
    """
    sign = np.where(goes_left, -1.0, 1.0)
    current, directions = weight / weight.mean(), list[FloatArray]()
    seen: set[bytes] = set()
    for _ in range(rounds):
        if budget is not None and budget.over:
            break
        solved = _hinge_lp(X, sign, current, gap, budget)
        if solved is None:
            break
        normal, violation = solved
        directions.append(normal)
        level = X @ normal
        threshold, _ = best_threshold(level, weight * ~goes_left, weight * goes_left)
        left = level <= threshold
        if left.tobytes() in seen:
            break
        seen.add(left.tobytes())
        if left.any() and not left.all():
            parted = widest_gap(X, left, budget)
            directions += [] if parted is None else [parted]
        if violation.max() <= 1e-9:
            break
        current = weight / (violation + gap / 2)
    return directions


def widest_gap(X: FloatArray, goes_left: BoolArray, budget: Budget | None = None) -> FloatArray | None:
    """Direction of 1-norm 1 that parts two given sides as widely as possible, None if no direction parts them.

    Also None if the budget ends before the answer is known.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> widest_gap(X, np.array([True, True, False, False])).tolist()
    [1.0, 0.0]
    """
    n, p = X.shape
    signed = np.where(goes_left, -1.0, 1.0)[:, None] * np.hstack([X, np.full((n, 1), -1.0)])
    # Columns: a+ (p), a- (p), o, half the gap. Rows: half - sign*(X a - o) <= 0.
    rows = np.hstack([-signed[:, :p], signed[:, :p], -signed[:, p:], np.ones((n, 1))])
    norm = np.concatenate([np.ones(2 * p), [0.0, 0.0]])
    solved = linprog(
        c=np.concatenate([np.zeros(2 * p + 1), [-1.0]]),
        A_ub=np.vstack([rows, norm]),
        b_ub=np.concatenate([np.zeros(n), [1.0]]),
        bounds=np.array([[0.0, np.inf]] * (2 * p) + [[-np.inf, np.inf], [0.0, np.inf]]),
        method="highs",
        options=_limit(budget),
    )
    if solved.status != 0 or solved.x[-1] <= 1e-9:
        return None
    return _normalized(solved.x[:p] - solved.x[p : 2 * p])


def _hinge_lp(
    X: FloatArray, sign: FloatArray, weight: FloatArray, gap: float, budget: Budget | None
) -> tuple[FloatArray, FloatArray] | None:
    """Normal and violations of the weighted hinge LP, None where the normal is zero or time ran out."""
    n, p = X.shape
    # Columns: a+ (p), a- (p), o, xi (n). Rows: -sign*(X a - o) - xi <= -gap/2, and |a|_1 <= 1.
    signed = sparse.csr_array(sign[:, None] * X)
    rows = sparse.hstack([-signed, signed, sparse.csr_array(sign[:, None]), -sparse.eye_array(n)])
    norm = sparse.csr_array(np.concatenate([np.ones(2 * p), np.zeros(n + 1)])[None, :])
    solved = linprog(
        c=np.concatenate([np.zeros(2 * p + 1), weight / weight.sum()]),
        A_ub=sparse.vstack([rows, norm]).tocsc(),
        b_ub=np.concatenate([np.full(n, -gap / 2), [1.0]]),
        bounds=np.array([[0.0, np.inf]] * (2 * p) + [[-np.inf, np.inf]] + [[0.0, np.inf]] * n),
        method="highs",
        options=_limit(budget),
    )
    if solved.status != 0:
        return None
    normal = solved.x[:p] - solved.x[p : 2 * p]
    return (_normalized(normal), solved.x[2 * p + 1 :]) if np.abs(normal).sum() > 1e-9 else None


def _limit(budget: Budget | None) -> dict[str, float]:
    """Time limit of a linear program."""
    return {} if budget is None or budget.seconds is None else {"time_limit": max(0.01, budget.remaining)}


def _normalized(normal: FloatArray) -> FloatArray:
    """The direction with 1-norm 1 and without the dust that a linear program leaves."""
    clean = np.where(np.abs(normal) > 1e-9 * np.abs(normal).max(), normal, 0.0)
    return np.asarray(clean / np.abs(clean).sum())
