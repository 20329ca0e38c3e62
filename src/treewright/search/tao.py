r"""Tree alternating optimization (TAO): all nodes of a depth at once, the deepest first, never worse.

The objective is that of a tree whose shape is given,

.. math:: \sum_i c_i\, \ell(y_i, T(x_i)) + \alpha \sum_{nodes} \lVert w \rVert_1 / \lVert w \rVert_2 .

A split does not change when its normal and threshold are multiplied by a number, so a 1-norm alone could be made as
small as one likes; normals have Euclidean norm 1 here. A split on one feature costs alpha then, one on k equal features
alpha times the root of k, and a node that sends all points one way nothing. Leaves may have a price of their own, which
is added: see :class:`~treewright.search.leaves.LinearLeaves`.

With all other nodes fixed, a point that passes a branch node pays the loss of the leaf that it reaches on either side.
Only the difference matters, and only for the points for which there is one. A direction comes from l1-logistic
regression on these points, the threshold along it is exact, and the split is replaced only if the objective falls.
Points of two nodes of one depth do not meet below, so these nodes are independent. The method is that of
Carreira-Perpinan and Tavallali (2018).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

from treewright.budget import Budget
from treewright.program import FloatArray, IntArray
from treewright.search.hyperplane import best_threshold
from treewright.search.leaves import Leaves, Shape
from treewright.search.node_solver import l1_logistic
from treewright.search.points import LEAST_GAP, Points
from treewright.tree import BoolArray, Tree

__all__ = [
    "Alternation",
    "Direction",
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

_AXIS_CELLS = 4_000_000
"""Cells of a table whose columns are sorted at once."""

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
    >>> from treewright.search.leaves import ClassLeaves
    >>> from treewright.search.tao_starts import random_tree
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((200, 2))
    >>> y = (X.sum(axis=1) > 1).astype(int)
    >>> start = random_tree(X, 1, rng)
    >>> result = alternate_nodes(start, X, ClassLeaves(y, np.ones(200), 2), alpha=0.1)
    >>> result.trace[-1, 2] < 10 < result.trace[0, 2]
    np.True_
    """
    state = Alternation(tree, X, leaves, alpha, splits=splits, n_jobs=n_jobs, direction=direction)
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


class _Change(NamedTuple):
    """A better split for a node."""

    node: int
    normal: FloatArray
    threshold: float
    gain: float
    goes_left: BoolArray


class Alternation:
    """A tree while it changes, and where its points are.

    Parameters
    ----------
    tree, X, leaves, alpha, splits, n_jobs, direction
        As for :func:`alternate_nodes`.

    Attributes
    ----------
    leaf : ndarray of int, shape (n_points,)
        Leaf of each point, as a node number of the tree.
    loss, price : float
        The two parts of the objective: loss of the points, price of normals and leaves.

    Examples
    --------
    >>> from treewright.search.leaves import MeanLeaves
    >>> X = np.array([[0.1], [0.2], [0.8], [0.9]])
    >>> stump = Tree.stump([1.0], 0.85, [[0.0], [0.0]])
    >>> state = Alternation(stump, X, MeanLeaves(np.array([[0.0], [0.0], [1.0], [1.0]]), np.ones(4)), alpha=0.1)
    >>> state.improve(Budget()), round(state.objective, 6)
    (True, 0.1)
    >>> state.retarget(MeanLeaves(np.array([[0.0], [2.0], [2.0], [2.0]]), np.ones(4)))
    >>> state.improve(Budget()), state.leaf.tolist()
    (True, [1, 2, 2, 2])
    """

    def __init__(
        self,
        tree: Tree,
        X: Any,
        leaves: Leaves,
        alpha: float,
        *,
        splits: str = "oblique",
        n_jobs: int = 1,
        direction: Direction = logistic_node,
    ) -> None:
        self.shape, self.points, self.leaves = Shape.of(tree), Points(X), leaves
        self.alpha, self.axis, self.n_jobs, self.direction = alpha, splits == "axis", n_jobs, direction
        self.gap = LEAST_GAP[X.dtype.itemsize]
        long = np.sqrt(np.einsum("ij,ij->i", tree.weights, tree.weights))
        still = long == 0
        long = np.where(still, 1.0, long)
        self.normals, self.threshold = tree.weights / long[:, None], tree.threshold / long
        # What a zero normal is compared with: all points go one way.
        self.threshold[still] = np.where(tree.threshold[still] >= 0, 1.0, -1.0)
        self.starts: dict[int, tuple[FloatArray, float]] = {}
        n = X.shape[0]
        self.everyone = np.arange(n)
        self.leaf = self._walk(self.everyone, np.zeros(n, dtype=np.int64))
        self.loss = self.price = np.inf
        self._refit()

    @property
    def objective(self) -> float:
        """Loss plus price."""
        return self.loss + self.price

    def tree(self) -> Tree:
        """The tree as it is now."""
        values, labels = self.leaves.table()
        slopes = self.leaves.slopes
        return Tree(self.shape.left, self.shape.right, self.normals, self.threshold, values, labels, slopes=slopes)

    def _refit(self) -> None:
        """Refit the leaves and sum up the objective, which must not have risen."""
        before = self.objective
        self.leaves.refit(self.shape, self.leaf)
        self.losses = self.leaves.loss(self.everyone, self.leaf)
        self.loss = float(self.losses.sum())
        self.price = self.alpha * float(normal_price(self.normals).sum()) + self.leaves.price
        assert self.objective <= before + 1e-9 * max(1.0, before), "the objective rose"

    def retarget(self, leaves: Leaves) -> None:
        """Give the points other targets; splits and what the node solver remembers stay."""
        self.leaves = leaves
        self.loss = self.price = np.inf
        self._refit()

    def improve(self, budget: Budget) -> bool:
        """Make a pass over the tree, the deepest nodes first; whether anything changed."""
        changed = False
        with Parallel(n_jobs=self.n_jobs, backend="threading") as parallel:
            for level in range(len(self.shape.branches) - 1, -1, -1):
                changed |= self._improve_level(level, budget, parallel)
        return changed

    def _walk(self, rows: IntArray, start: IntArray) -> IntArray:
        return self.points.walk(self.shape, self.normals, self.threshold, rows, start)

    def _improve_level(self, level: int, budget: Budget, parallel: Parallel) -> bool:
        """Improve the branches of one level; whether any changed."""
        shape = self.shape
        at = shape.at_level[level][self.leaf]
        order = np.argsort(at, kind="stable")
        order = order[(at[order] >= 0) & (shape.left[at[order]] >= 0)]  # others are in leaves of this level or above
        at = at[order]
        goes_left = shape.at_level[level + 1][self.leaf[order]] == shape.left[at]
        other = self._walk(order, np.where(goes_left, shape.right[at], shape.left[at]))
        lost = self.leaves.loss(order, other)
        stake = np.where(goes_left, self.losses[order] - lost, lost - self.losses[order])  # left minus right
        bounds = np.searchsorted(at, [shape.branches[level], shape.branches[level] + 1])
        parts = [slice(low, high) for low, high in bounds.T]
        jobs = zip(shape.branches[level].tolist(), parts, strict=True)
        found = parallel(
            delayed(self._better_split)(node, order[part], stake[part], goes_left[part], budget) for node, part in jobs
        )
        moved = False
        for change, part in zip(found, parts, strict=True):
            if change is not None:
                moved = True
                self.normals[change.node], self.threshold[change.node] = change.normal, change.threshold
                crossed = change.goes_left != goes_left[part]
                self.leaf[order[part][crossed]] = other[part][crossed]
        if moved:
            self._refit()
        return moved

    def _better_split(
        self, node: int, rows: IntArray, stake: FloatArray, goes_left: BoolArray, budget: Budget
    ) -> _Change | None:
        """A split of lower cost than the node has, or None.

        The cost of sides is the sum of the stakes of the points on the left, plus the price of the normal.
        """
        normal = self.normals[node]
        price = self.alpha * float(normal_price(normal[None, :])[0])
        if budget.over or (price == 0.0 and not np.any(stake)):
            return None
        now = float(stake[goes_left].sum()) + price
        worth = np.abs(stake)
        care = np.flatnonzero(worth > 1e-12 * worth.max(initial=0.0))
        whole = float(stake.sum())
        zero = np.zeros(len(normal))
        best = (min(0.0, whole), zero, 1.0 if whole < 0 else -1.0)
        sided = stake[care] > 0  # should go right
        if len(care) and sided.any() and not sided.all():
            for candidate in self._directions(node, rows[care], stake[care], sided):
                found = self._cut(candidate, rows[care], stake[care])
                if found[0] < best[0]:
                    best = found
        gain = now - best[0]
        if gain <= 1e-10 * max(1.0, float(worth.sum())):
            return None
        left = self.points.levels(rows, best[1]) <= best[2]
        return _Change(node, best[1], best[2], gain, left)

    def _cut(self, normal: FloatArray, rows: IntArray, stake: FloatArray) -> tuple[float, FloatArray, float]:
        """Cost, normal and best threshold along a direction."""
        level = self.points.levels(rows, normal)
        right, left = np.maximum(stake, 0.0), np.maximum(-stake, 0.0)
        threshold, cost = best_threshold(level, right, left, self.gap)
        if not np.isfinite(threshold):  # all go one way, which is cheaper without a normal
            return np.inf, normal, 0.0
        return cost - float(left.sum()) + self.alpha * float(np.abs(normal).sum()), normal, threshold

    def _directions(self, node: int, rows: IntArray, stake: FloatArray, sided: BoolArray) -> list[FloatArray]:
        """Directions of 2-norm 1 to try at a node: its own and that of the surrogate, or the best feature."""
        if self.axis:
            return [self._best_feature(rows, stake)]
        own = self.normals[node]
        found = [own] if np.any(own) else []
        start = self.starts.get(node)
        if start is None and found:
            start = 5.0 * own, -5.0 * float(self.threshold[node])
        some = _busy(stake, sided)
        rows, sided, worth = rows[some], sided[some], np.abs(stake[some])
        weights, intercept = self.direction(self.points.take(rows), sided, worth, self.alpha, start)
        self.starts[node] = weights, intercept
        long = float(np.sqrt(weights @ weights))
        return [*found, weights / long] if long > 0 else found

    def _best_feature(self, rows: IntArray, stake: FloatArray) -> FloatArray:
        """The feature whose best threshold costs least, as a normal."""
        n, p = self.points.X.shape
        least, chosen = np.inf, 0
        width = max(1, _AXIS_CELLS // len(rows))
        for first in range(0, p, width):
            block = self.points.block(rows, first, first + width)
            order = np.argsort(block, axis=0, kind="stable")
            cost = np.cumsum(stake[order], axis=0)[:-1]  # of the first k points on the left
            apart = np.diff(np.take_along_axis(block, order, axis=0), axis=0) > self.gap
            cost = np.where(apart, cost, np.inf).min(axis=0, initial=np.inf)
            if cost.min() < least - 1e-12 * max(1.0, abs(least) if np.isfinite(least) else 1.0):
                least, chosen = float(cost.min()), first + int(cost.argmin())
        normal = np.zeros(p)
        normal[chosen] = 1.0
        return normal


def _busy(stake: FloatArray, sided: BoolArray) -> IntArray:
    """Points at a node without those whose stakes are so small that together they hardly count."""
    everyone = np.arange(len(stake))
    if len(stake) <= _FEW:
        return everyone
    order = np.argsort(np.abs(stake), kind="stable")
    held = np.cumsum(np.abs(stake[order]))
    some = np.sort(order[np.searchsorted(held, _IDLE * held[-1]) :])
    return some if sided[some].any() and not sided[some].all() else everyone
