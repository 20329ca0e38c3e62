r"""Tree alternating optimization (TAO): sparse oblique splits for large data.

The objective is that of a tree whose shape is given,

.. math:: \sum_i c_i\, \ell(y_i, T(x_i)) + \alpha \sum_{nodes} \lVert w \rVert_1 / \lVert w \rVert_2 .

A split does not change when its normal and threshold are multiplied by a number, so a 1-norm alone could be made as
small as one likes; normals have Euclidean norm 1 here. A split on one feature costs alpha then, one on k equal features
alpha times the root of k, and a node that sends all points one way nothing. Leaves may have a price of their own, which
is added: see :class:`~treewright.search.improve.leaves.LinearLeaves`.

At a node (:mod:`~treewright.search.improve.driver`) only the points with a stake matter. A direction comes from
l1-logistic regression on these points, the threshold along it is exact, and the split is replaced only if the objective
falls. The method is that of Carreira-Perpinan and Tavallali (2018).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from treewright.arrays import BoolArray, FloatArray, IntArray
from treewright.budget import Budget
from treewright.search.improve.driver import Alternation, Node
from treewright.search.improve.leaves import Leaves
from treewright.splits.l1_logistic import l1_logistic
from treewright.splits.points import Points
from treewright.splits.thresholds import best_feature, best_threshold
from treewright.tree import Tree

__all__ = [
    "Direction",
    "SparseNodes",
    "TAOResult",
    "alternate_nodes",
    "automatic_alpha",
    "logistic_node",
    "normal_price",
]

_IDLE, _FEW = 0.02, 1000
"""Points that have this share of the stakes at a node together, the smallest ones, are left out of its regression if
there are more than so many points: often half of the points, as both sides predict about the same for them."""

_ALPHA = 0.0125
"""The automatic alpha of large tables, divided by the root of the number of points."""

Direction = Callable[[Any, BoolArray, FloatArray, float, "tuple[FloatArray, float] | None"], "tuple[FloatArray, float]"]
"""Points, which of them should go right, how much each counts, alpha and a start to weights and intercept."""


@dataclass(frozen=True)
class TAOResult:
    """What alternating optimization ended with.

    Attributes
    ----------
    tree : Tree
        The tree, of the shape of the start; nodes with zero weights send all points one way.
    objective : float
        Loss plus price of the normals and of the leaves.
    n_iter : int
        Passes over the tree.
    converged : bool
        Whether the last pass changed nothing.
    trace : ndarray of shape (n_iter + 1, 3)
        Seconds, objective and loss at the start and after each pass.
    """

    tree: Tree
    objective: float
    n_iter: int
    converged: bool
    trace: FloatArray


def logistic_node(
    X: Any, goes_right: BoolArray, weight: FloatArray, alpha: float, start: tuple[FloatArray, float] | None
) -> tuple[FloatArray, float]:
    """Direction of a node by warm-started l1-logistic regression.

    The price of its 1-norm is alpha too. Weights of a logistic regression are longer than 1, the length that alpha is
    the price for in the objective, so planes are a little smoother than the objective asks for: that generalizes.
    """
    solved = l1_logistic(X, goes_right, weight, alpha, start)
    return solved.weights, solved.intercept


def automatic_alpha(n_rows: float, least: float = 1.0) -> float:
    """Alpha for so many rows of weight 1 and targets of unit size, where nothing better is known.

    The price of chance grows with the root of the number of points: on images of digits an eightieth of it serves well.
    Small tables are noisier, and a split must save at least one point there, `least`; smoothed targets have no noise.

    Examples
    --------
    >>> automatic_alpha(100.0), automatic_alpha(40_000.0)
    (1.0, 2.5)
    """
    return max(least, _ALPHA * float(np.sqrt(n_rows)))


def normal_price(normals: FloatArray) -> FloatArray:
    """Ratio of 1-norm and 2-norm of each row, 0 for a row of zeros.

    Examples
    --------
    >>> normal_price(np.array([[0.0, 2.0, 0.0], [0.5, 0.5, -0.5], [0.0, 0.0, 0.0]])).round(3).tolist()
    [1.0, 1.732, 0.0]
    """
    long = np.sqrt(np.einsum("ij,ij->i", normals, normals))
    return np.asarray(np.abs(normals).sum(axis=1) / np.where(long > 0, long, 1.0))


@dataclass
class SparseNodes:
    r"""Splits by l1-logistic regression, or on single features, at a price of alpha times the ratio of the norms.

    Attributes
    ----------
    alpha : float
        Price of the 1-norm of a normal of 2-norm 1, in units of the loss.
    splits : {"oblique", "axis"}
        Hyperplanes, or thresholds of single features.
    direction : callable
        Finds the direction of a hyperplane.
    starts : dict
        What the directions of the nodes start from: those of their last regressions.

    Examples
    --------
    >>> round(SparseNodes(alpha=2.0).price(np.array([[0.0, 3.0], [1.0, -1.0], [0.0, 0.0]])), 3)
    4.828
    """

    alpha: float
    splits: str = "oblique"
    direction: Direction = logistic_node
    starts: dict[int, tuple[FloatArray, float]] = field(default_factory=dict)

    def price(self, normals: FloatArray) -> float:
        """Alpha times the sum of the ratios."""
        return self.alpha * float(normal_price(normals).sum())

    def better(self, points: Points, node: Node, budget: Budget) -> tuple[FloatArray, float] | None:
        """A split of lower cost than the node has, or None.

        The cost of sides is the sum of the stakes of the points on the left, plus the price of the normal.
        """
        stake, price = node.stake, self.price(node.normal[None, :])
        if budget.over or (price == 0.0 and not np.any(stake)):
            return None
        now = float(stake[node.goes_left].sum()) + price
        worth = np.abs(stake)
        care = np.flatnonzero(worth > 1e-12 * worth.max(initial=0.0))
        whole = float(stake.sum())
        best = (min(0.0, whole), np.zeros(len(node.normal)), 1.0 if whole < 0 else -1.0)
        rows, stake = node.rows[care], stake[care]
        sided = stake > 0  # should go right
        if len(care) and sided.any() and not sided.all():
            for candidate in self._directions(points, node, rows, stake, sided):
                found = self._cut(points, candidate, rows, stake)
                if found[0] < best[0]:
                    best = found
        return None if now - best[0] <= 1e-10 * max(1.0, float(worth.sum())) else best[1:]

    def _cut(
        self, points: Points, normal: FloatArray, rows: IntArray, stake: FloatArray
    ) -> tuple[float, FloatArray, float]:
        """Cost, normal and best threshold along a direction."""
        level = points.levels(rows, normal)
        right, left = np.maximum(stake, 0.0), np.maximum(-stake, 0.0)
        threshold, cost = best_threshold(level, right, left, points.least_gap)
        if not np.isfinite(threshold):  # all go one way, which is cheaper without a normal
            return np.inf, normal, 0.0
        return cost - float(left.sum()) + self.alpha * float(np.abs(normal).sum()), normal, threshold

    def _directions(
        self, points: Points, node: Node, rows: IntArray, stake: FloatArray, sided: BoolArray
    ) -> list[FloatArray]:
        """Directions of 2-norm 1 to try at a node: its own and that of the surrogate, or the best feature."""
        if self.splits == "axis":
            return [_best_feature(points, rows, stake)]
        own = node.normal
        found = [own] if np.any(own) else []
        start = self.starts.get(node.number)
        if start is None and found:
            start = 5.0 * own, -5.0 * node.threshold
        some = _busy(stake, sided)
        rows, sided, worth = rows[some], sided[some], np.abs(stake[some])
        weights, intercept = self.direction(points.take(rows), sided, worth, self.alpha, start)
        self.starts[node.number] = weights, intercept
        long = float(np.sqrt(weights @ weights))
        return [*found, weights / long] if long > 0 else found


def _best_feature(points: Points, rows: IntArray, stake: FloatArray) -> FloatArray:
    """The feature whose best threshold costs least, as a normal."""
    normal = np.zeros(points.X.shape[1])
    normal[best_feature(points, rows, lambda cuts: cuts.left(stake), points.least_gap)[0]] = 1.0
    return normal


def alternate_nodes(
    tree: Tree,
    X: Any,
    leaves: Leaves,
    alpha: float,
    *,
    splits: str = "oblique",
    max_iter: int = 15,
    budget: Budget | None = None,
    n_jobs: int = 1,
    direction: Direction = logistic_node,
    on_pass: Callable[[float, float, float], None] | None = None,
) -> TAOResult:
    """Improve the splits and leaves of a tree until a pass changes nothing.

    Parameters
    ----------
    tree : Tree
        Where to start; its splits are numerical. Its values do not matter.
    X : ndarray (C order) or csr_array of shape (n_points, n_features)
        Points with features of about unit size, float64 or float32.
    leaves : Leaves
        Targets, weights and the loss.
    alpha : float
        Price of the 1-norm of a normal of 2-norm 1, in units of the loss.
    splits : {"oblique", "axis"}
        Hyperplanes, or thresholds of single features.
    max_iter : int
        Most passes over the tree.
    budget : Budget or None
        Ends the work early with what was found so far.
    n_jobs : int
        Threads.
    direction : callable
        Solver of a node.
    on_pass : callable or None
        Told seconds, objective and loss at the start and after each pass.

    Examples
    --------
    >>> from treewright.search.improve.leaves import ClassLeaves
    >>> from treewright.search.grow.starts import random_tree
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((200, 2))
    >>> y = (X.sum(axis=1) > 1).astype(int)
    >>> start = random_tree(X, 1, rng)
    >>> result = alternate_nodes(start, X, ClassLeaves(y, np.ones(200), 2), alpha=0.1)
    >>> result.trace[-1, 2] < 10 < result.trace[0, 2]
    np.True_
    """
    state = Alternation(tree, X, leaves, SparseNodes(alpha, splits, direction), n_jobs)
    budget = Budget() if budget is None else budget
    trace: list[tuple[float, float, float]] = []

    def record() -> None:
        trace.append((budget.elapsed, state.objective, state.loss))
        if on_pass is not None:
            on_pass(*trace[-1])

    record()
    done, changed = 0, True
    while changed and done < max_iter and not budget.over:
        changed = state.improve(budget)
        done += 1
        record()
    return TAOResult(state.tree(), state.objective, done, not changed and not budget.over, np.array(trace))


def _busy(stake: FloatArray, sided: BoolArray) -> IntArray:
    """Points at a node without those whose stakes are so small that together they hardly count."""
    everyone = np.arange(len(stake))
    if len(stake) <= _FEW:
        return everyone
    order = np.argsort(np.abs(stake), kind="stable")
    held = np.cumsum(np.abs(stake[order]))
    some = np.sort(order[np.searchsorted(held, _IDLE * held[-1]) :])
    return some if sided[some].any() and not sided[some].all() else everyone
