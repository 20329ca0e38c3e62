"""Splits without the terms that hardly move a row: what many rows and some chance leave behind in hyperplanes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.tree.routing import nodes_below, passing, route, side
from treewright.tree.structure import Tree

__all__ = ["trimmed_tree", "without_idle_terms"]

_MOVED = 0.03
"""Share of the spread of a split's values that all terms that go may make up together."""

_IDLE = 1e-7
"""Share of the term that moves a split most up to which another one is rounding, and no part of the rule."""

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


def without_idle_terms(
    tree: Tree, X: Any, share: float = _IDLE, accept: Callable[[Tree], bool] = lambda tree: True
) -> Tree:
    """The tree without terms of splits that are nothing beside the others for any row; rows stay in their leaves.

    Solvers and searches leave weights such as 2e-10 behind, which a reader takes for a part of the rule. In the place
    of a term comes its value in the middle of what the rows have; a feature that some rows lack stays where it is.

    Parameters
    ----------
    tree : Tree
        Any tree, in the units of the rows.
    X : ndarray or csr_array of shape (n_rows, n_features)
        Rows.
    share : float
        How much a term that goes may move the rows, of the term that moves them most.
    accept : callable
        Told the tree with one more split without such terms; if it says no, that stays as it is.

    Examples
    --------
    >>> tree = Tree.stump([1.0, 2e-10], 2.5, np.eye(2))
    >>> without_idle_terms(tree, np.array([[1.0, 4.0], [4.0, 9.0]])).weights[0].tolist()
    [1.0, 0.0]
    """
    several = np.flatnonzero(np.count_nonzero(tree.weights, axis=1) > 1)
    if not len(several):
        return tree
    low, high = _ends(X)
    with np.errstate(over="ignore", invalid="ignore"):
        moved = np.abs(tree.weights[several]) * (high - low)
        most = np.nanmax(np.where(np.isfinite(moved), moved, np.nan), axis=1, initial=0.0)
        idle = (tree.weights[several] != 0) & (moved <= share * most[:, None])
    leaves = None
    for node, gone in zip(several.tolist(), idle, strict=True):
        if not gone.any():
            continue
        leaves = route(tree, X) if leaves is None else leaves
        weights, threshold = tree.weights.copy(), tree.threshold.copy()
        threshold[node] -= weights[node, gone] @ (low[gone] + (high[gone] - low[gone]) / 2)
        weights[node, gone] = 0.0
        found = replace(tree, weights=weights, threshold=threshold)
        here = X[np.flatnonzero(nodes_below(tree, node)[leaves])]  # the others do not come to this split
        if np.array_equal(side(found, here, node), side(tree, here, node)) and accept(found):
            tree = found
    return tree


def _ends(X: Any) -> tuple[FloatArray, FloatArray]:
    """The least and the largest value of each feature; not a number where one is missing."""
    if sparse.issparse(X):
        low, high = (np.asarray(end.toarray(), dtype=np.float64).ravel() for end in (X.min(axis=0), X.max(axis=0)))
        return low, high
    return np.asarray(X.min(axis=0), dtype=np.float64), np.asarray(X.max(axis=0), dtype=np.float64)


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
