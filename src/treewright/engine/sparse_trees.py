r"""Trees of sparse oblique splits improved node by node: tree alternating optimization (TAO).

The objective is that of a tree whose shape is given,

.. math:: \sum_i c_i\, \ell(y_i, T(x_i)) + \alpha \sum_{nodes} \lVert w \rVert_1 / \lVert w \rVert_2 .

A split does not change when its normal and threshold are multiplied by a number, so a 1-norm alone could be made as
small as one likes; normals have Euclidean norm 1 here. A split on one feature costs alpha then, one on k equal features
alpha times the root of k, and a node that sends all points one way nothing. A subset of the levels of a category costs
alpha too, however many levels it lists. Leaves may have a price of their own, which is added: see
:class:`~treewright.engine.leaves.LinearLeaves`.

At a node (:mod:`~treewright.engine.alternate`) only the points with a stake matter; how its split is found is told in
:mod:`~treewright.splits.sparse_nodes`. Splits may be turned at the end, see :mod:`~treewright.splits.turning`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.engine.alternate import Alternation
from treewright.engine.leaves import Leaves
from treewright.engine.thinning import thinned_tree
from treewright.splits.few import Direction
from treewright.splits.sparse_nodes import SparseNodes, logistic_node, normal_price
from treewright.splits.turning import TurningNodes
from treewright.tree import Tree

__all__ = ["TAOResult", "automatic_alpha", "improved_sparse_tree", "split_price", "turned_tree"]


_ALPHA = 0.0125
"""The automatic alpha of large tables, divided by the root of the number of points."""


@dataclass(frozen=True)
class TAOResult:
    """What alternating optimization of a tree ended with.

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


def automatic_alpha(n_rows: float, least: float = 1.0) -> float:
    """Price alpha of splits in a tree by TAO for so many rows of weight 1 and targets of unit size.

    The price of chance grows with the root of the number of points: on images of digits an eightieth of it serves well.
    Small tables are noisier, and a split must save at least one point there, `least`; smoothed targets have no noise.

    Examples
    --------
    >>> automatic_alpha(100.0), automatic_alpha(40_000.0)
    (1.0, 2.5)
    """
    return max(least, _ALPHA * float(np.sqrt(n_rows)))


def split_price(tree: Tree) -> float:
    """What all splits of a tree by TAO cost at a price of 1: ratios of the norms, and 1 for a subset of a category.

    Examples
    --------
    >>> split_price(Tree.stump([3.0, 4.0], 0.0, np.eye(2)))
    1.4
    """
    return float(normal_price(tree.weights).sum()) + int(np.count_nonzero(tree.category >= 0))


def improved_sparse_tree(
    tree: Tree,
    X: Any,
    leaves: Leaves,
    alpha: float,
    *,
    max_split_features: int | None = None,
    max_iter: int = 15,
    budget: Budget | None = None,
    n_jobs: int = 1,
    direction: Direction = logistic_node,
    on_pass: Callable[[float, float, float], None] | None = None,
    n_levels: IntArray | None = None,
    features: dict[int, str] | None = None,
) -> TAOResult:
    """Improve the splits and leaves of a whole tree by TAO until a pass changes nothing.

    Parameters
    ----------
    tree : Tree
        Where to start; without `n_levels` its splits are numerical. Its values do not matter.
    X : ndarray (C order) or csr_array of shape (n_points, n_features)
        Points with numerical features of about unit size, float64 or float32; NaN where a value is missing.
    leaves : Leaves
        Targets, weights and the loss.
    alpha : float
        Price of the 1-norm of a normal of 2-norm 1, in units of the loss.
    max_split_features : int or None
        Most features of a split, None for any number. What has more in the start is thinned first.
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
    n_levels : ndarray of int, shape (n_features,), or None
        Levels of each categorical feature, 0 for a numerical one.
    features : dict of int to str, or None
        Kind of features that the splits of some nodes may have, see :class:`SparseNodes`.

    Examples
    --------
    >>> from treewright.engine.leaves import ClassLeaves
    >>> from treewright.engine.starts import random_tree
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((200, 2))
    >>> y = (X.sum(axis=1) > 1).astype(int)
    >>> start = random_tree(X, 1, rng)
    >>> result = improved_sparse_tree(start, X, ClassLeaves(y, np.ones(200), 2), alpha=0.1)
    >>> result.trace[-1, 2] < 10 < result.trace[0, 2]
    np.True_
    """
    solver = SparseNodes(alpha, max_split_features, direction, features=features or {})
    tree = thinned_tree(tree, X, max_split_features, n_levels)
    state = Alternation(tree, X, leaves, solver, n_jobs, n_levels)
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


_PASSES = 4
"""Passes over a tree."""


def turned_tree(
    tree: Tree, X: FloatArray, leaves: Leaves, alpha: float, budget: Budget, n_levels: IntArray | None = None
) -> tuple[Tree, float]:
    """The tree with its larger splits turned as long as that lowers the objective, and the objective.

    Regressions are a surrogate for errors. Where few rows are far off, as in sums of money, or labels are wrong by
    chance, these pull a hyperplane away from the best one; on many rows what is left to gain shows exactly.

    Parameters
    ----------
    tree : Tree
        Where to start.
    X : ndarray of shape (n_points, n_features)
        Points.
    leaves : Leaves
        Targets, weights and the loss.
    alpha : float
        Price of the 1-norm of a normal of 2-norm 1.
    budget : Budget
        Ends the work early.
    n_levels : ndarray of int, shape (n_features,), or None
        Levels of each categorical feature.

    Examples
    --------
    >>> from treewright.engine.leaves import ClassLeaves
    >>> from treewright.tree import predict_labels
    >>> X = np.random.default_rng(0).random((2000, 2))
    >>> y = (X[:, 0] + 0.5 * X[:, 1] > 0.8).astype(int)
    >>> start = Tree.stump([1.0, 1.0], 1.0, np.eye(2))
    >>> found, _ = turned_tree(start, X, ClassLeaves(y, np.ones(2000), 2), 0.1, Budget())
    >>> [int(np.sum(predict_labels(tree, X) != y)) for tree in (start, found)]
    [239, 5]
    """
    state = Alternation(tree, X, leaves, TurningNodes(alpha), 1, n_levels)
    for _ in range(_PASSES):
        if budget.over or not state.improve(budget):
            break
    return state.tree(), state.objective
