"""Splits without the terms that hardly move a row: what many rows and some chance leave behind in hyperplanes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from treewright.arrays import BoolArray, FloatArray, IntArray
from treewright.budget import Budget
from treewright.tree.routing import passing
from treewright.tree.structure import Tree

__all__ = ["trimmed_tree"]

_MOVED = 0.03
"""Share of the spread of a split's values that all terms that go may make up together."""

_SLACK, _CHANCE = 0.002, 0.1
"""By which share of its cost, or of the root of it, a tree may get worse for it, whichever is more: far less than what
the cost of the same tree differs by from one sample of rows to the next."""


def trimmed_tree(
    tree: Tree,
    X: FloatArray,
    cost: Callable[[Tree], float],
    mended: Callable[[Tree], Tree] = lambda tree: tree,
    budget: Budget | None = None,
) -> Tree:
    """The tree without terms of splits that make next to no difference, where it stays as good.

    A term that moves the values of a split by a hundredth of their spread is no part of the rule: it is there because
    it happened to suit a few of many rows, and nobody can read past it. What is dropped is replaced by its mean.
    Features with a gap at a split stay in it, as they decide which rows are missing there. A split that parts nothing
    but these rows from all others keeps such features alone.

    Parameters
    ----------
    tree : Tree
        Any tree; splits of single features and categories stay as they are.
    X : ndarray of shape (n_rows, n_features)
        Rows, in the units of the tree.
    cost : callable
        What is wrong with a tree, in rows. It rises by two thousandths or a tenth of its root at most, over all splits.
    mended : callable
        Makes a tree with fewer terms feasible, before its cost is asked for.
    budget : Budget, optional
        Once it is over, splits that are not looked at stay as they are.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 0.0], [4.0, 1.0]])
    >>> tree = Tree.stump([1.0, 0.02], 2.52, np.eye(2))
    >>> trimmed = trimmed_tree(tree, X, cost=lambda tree: 1.0)
    >>> trimmed.weights[0].tolist(), round(float(trimmed.threshold[0]), 9)
    ([1.0, 0.0], 2.51)
    """
    now = cost(tree)
    most = now + max(_SLACK * now, _CHANCE * now**0.5)
    for k in range(len(tree.branches)):
        if k >= len(tree.branches):  # mending may have taken splits away
            break
        for shorter in _shorter(tree, int(tree.branches[k]), X):
            if budget is not None and budget.over:
                return tree
            found = mended(shorter)
            if cost(found) <= most:
                tree = found
                break
    return tree


def _shorter(tree: Tree, branch: int, X: FloatArray) -> Iterator[Tree]:
    """The tree with fewer terms in a split: without all that hardly move its rows, then without half of these."""
    used = np.flatnonzero(tree.weights[branch])
    if len(used) < 2:
        return
    rows = np.asarray(X[passing(tree, X, branch)][:, used], dtype=np.float64)
    weights, whole = tree.weights[branch, used], np.asarray(np.isfinite(rows).all(axis=0))
    full = rows[np.isfinite(rows).all(axis=1)]
    if not len(full):
        return
    if not whole.all():
        yield from _of_gaps_alone(tree, branch, used, full, whole)
    moved = np.where(whole, np.abs(weights) * full.std(axis=0), np.inf)
    order = np.argsort(moved, kind="stable")
    joint = np.sqrt(np.cumsum(moved[order] ** 2))
    number = min(int(np.count_nonzero(joint <= _MOVED * (full @ weights).std())), len(used) - 1)
    while number:
        gone = order[:number]
        new_weights, new_threshold = tree.weights.copy(), tree.threshold.copy()
        new_weights[branch, used[gone]] = 0.0
        new_threshold[branch] -= full[:, gone].mean(axis=0) @ weights[gone]
        yield replace(tree, weights=new_weights, threshold=new_threshold)
        number //= 2


def _of_gaps_alone(tree: Tree, branch: int, used: IntArray, full: FloatArray, whole: BoolArray) -> Iterator[Tree]:
    """The tree with the features that have gaps alone in a split, if all rows without a gap go one way."""
    left = full @ tree.weights[branch, used] <= tree.threshold[branch]
    if not whole.any() or (left.any() and not left.all()):
        return
    new_weights, new_threshold = tree.weights.copy(), tree.threshold.copy()
    new_weights[branch, used[whole]] = 0.0
    level = full @ new_weights[branch, used]
    beyond = 1.0 + float(np.abs(level).max())
    new_threshold[branch] = beyond if left[0] else -beyond
    yield replace(tree, weights=new_weights, threshold=new_threshold)
