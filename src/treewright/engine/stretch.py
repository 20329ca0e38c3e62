r"""Passes over stretched points: a tree that was fitted to its points learns to hold beyond them.

The splits of a tree that fits its points well pass close to many of them, and a new point of the same kind often falls
on the other side. So a fitted tree is improved some more on points and copies of them, each pushed away from another
point of its leaf,

.. math:: x_i + s\,(x_i - x_j), \qquad j \text{ drawn from the leaf of } i ,

with the target of i: where the tree says that two points are alike, what lies beyond them is to be alike too. Partners
are drawn anew for every pass. Neighbours in the space of the points serve less well than such partners, and points
between two points not at all: they are easier than the points themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.engine.alternate import Alternation
from treewright.engine.leaves import Leaves
from treewright.engine.thinning import thinned_tree
from treewright.splits.sparse_nodes import SparseNodes
from treewright.tree import Tree

__all__ = ["Stretch", "improve_stretched", "stretched_points"]

_PASSES = 6
"""Passes over stretched points; fewer are worse, more hardly better."""

_MOST = 100_000
"""Most copies in a pass: large tables need them less."""


class Stretch(NamedTuple):
    """How points are stretched.

    Attributes
    ----------
    push : float
        How far a copy goes, as a share of the distance to its partner.
    seed : int
        Seed of the partners.
    passes : int
        Passes over the tree.
    most : int
        Most copies in a pass.
    """

    push: float
    seed: int
    passes: int = _PASSES
    most: int = _MOST


def stretched_points(
    X: Any, leaf: IntArray, push: float, most: int, rng: np.random.Generator, n_levels: IntArray | None = None
) -> tuple[Any, IntArray]:
    """Copies of points, pushed away from points of their leaf of a tree, and whose copies they are.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_points, n_features)
        Points.
    leaf : ndarray of int, shape (n_points,)
        Leaf of each point. One that is alone in its leaf has no copy.
    push : float
        How far a copy goes, as a share of the distance to its partner.
    most : int
        Most copies.
    rng : numpy Generator
        Where partners come from.
    n_levels : ndarray of int, shape (n_features,), or None
        Levels of each categorical feature, 0 for a numerical one. Copies have the level of their point, and its value
        too where the partner has none.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [5.0]])
    >>> copies, of = stretched_points(X, np.array([1, 1, 2]), 0.5, 10, np.random.default_rng(0))
    >>> dict(zip(of.tolist(), copies[:, 0].tolist())) == {0: -0.5, 1: 1.5}
    True
    """
    n = len(leaf)
    some = np.sort(rng.choice(n, most, replace=False)) if n > most else np.arange(n)
    order = some[np.lexsort((rng.random(len(some)), leaf[some]))]
    # The partner of a point is the next one of its leaf in this order, of the last one the first.
    first = np.flatnonzero(np.diff(leaf[order], prepend=-1))
    last = np.append(first[1:], len(order)) - 1
    partner = np.roll(order, -1)
    partner[last] = order[first]
    paired = partner != order
    origin, partner = order[paired], partner[paired]
    share = X.dtype.type(push)
    copies = X[origin] * (1 + share) - X[partner] * share
    if not sparse.issparse(X):
        kept = np.isnan(copies) if n_levels is None else np.isnan(copies) | (n_levels > 0)
        if kept.any():
            copies = np.where(kept, X[origin], copies)
    return copies, origin


def improve_stretched(
    tree: Tree,
    X: Any,
    targets: FloatArray,
    weight: FloatArray,
    make_leaves: Callable[[Any, FloatArray, FloatArray], Leaves],
    alpha: float,
    stretch: Stretch,
    budget: Budget,
    *,
    max_split_features: int | None = None,
    n_jobs: int = 1,
    starts: dict[int, tuple[FloatArray, float]] | None = None,
    n_levels: IntArray | None = None,
) -> Alternation:
    """Improve a fitted tree on its points and stretched copies of them.

    Parameters
    ----------
    tree : Tree
        A fitted tree.
    X : ndarray (C order) or csr_array of shape (n_points, n_features)
        Points with features of about unit size.
    targets : ndarray of shape (n_points, n_outputs)
        Targets.
    weight : ndarray of shape (n_points,)
        Weights. With their copies, points weigh together what they weigh without.
    make_leaves : callable
        Points, targets and weights to leaves.
    alpha : float
        Price of a split on the points alone. The price of chance grows with the root of their number and falls with
        their weight: twice as many points of half the weight cost the root of one half of it.
    stretch : Stretch
        How far copies go, and how often.
    budget : Budget
        Ends the work early.
    max_split_features, n_jobs, n_levels
        As for :func:`~treewright.engine.sparse_trees.improved_sparse_tree`.
    starts : dict or None
        What the node solver remembers of trees like this one, None for nothing.

    Returns
    -------
    Alternation
        The tree on the points alone, with leaves fitted to them.

    Examples
    --------
    >>> from treewright.engine.leaves import MeanLeaves
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((40, 2))
    >>> Y = np.where(X[:, :1] > X[:, 1:], 1.0, -1.0)
    >>> tree = Tree.stump([1.0, -0.5], 0.2, [[-1.0], [1.0]])
    >>> make_leaves = lambda X, Y, weight: MeanLeaves(Y, weight)
    >>> state = improve_stretched(tree, X, Y, np.ones(40), make_leaves, 0.1, Stretch(0.2, seed=0), Budget())
    >>> round(state.loss, 6)
    0.0
    """

    def on(X: Any, targets: FloatArray, weight: FloatArray, tree: Tree, alpha: float) -> Alternation:
        leaves = make_leaves(X, targets, weight)
        nodes = SparseNodes(alpha, max_split_features, starts=memory)
        return Alternation(tree, X, leaves, nodes, n_jobs, n_levels)

    memory = {} if starts is None else dict(starts)
    n, rng = len(weight), np.random.default_rng(stretch.seed)
    tree = thinned_tree(tree, X, max_split_features, n_levels)
    state = on(X, targets, weight, tree, alpha)
    leaf, join = state.leaf, _joiner(X, min(n, stretch.most))
    for _ in range(stretch.passes):
        if budget.over:
            break
        copies, origin = stretched_points(X, leaf, stretch.push, stretch.most, rng, n_levels)
        whose = np.concatenate([np.arange(n), origin])
        share = float(weight.sum() / weight[whose].sum())
        state = on(join(copies), targets[whose], weight[whose] * share, tree, alpha * float(np.sqrt(share)))
        state.improve(budget)
        tree, leaf = state.tree(), state.leaf[:n]
    return on(X, targets, weight, tree, alpha)


def _joiner(X: Any, most: int) -> Callable[[Any], Any]:
    """What puts copies below the points; dense points are copied once, and the table is that of the last call."""
    if sparse.issparse(X):
        return lambda copies: sparse.vstack([X, copies], format="csr")
    n, p = X.shape
    table = np.empty((n + most, p), dtype=X.dtype)
    table[:n] = X

    def join(copies: Any) -> Any:
        table[n : n + len(copies)] = copies
        return table[: n + len(copies)]

    return join
