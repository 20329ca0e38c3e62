"""Splits that read well: weights and thresholds with as few digits as leave every row on its side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from treewright.core.arrays import FloatArray
from treewright.core.budget import Budget
from treewright.tree.routing import nodes_below, route
from treewright.tree.structure import Tree

__all__ = ["rounded_tree", "shortest_between"]

_DIGITS = range(1, 8)
"""Significant digits that are tried."""
_CLEAR = 1e-9
"""Least gap between the sides of a rounded split, of the largest sum of products: more than rounding errors."""


def rounded_tree(
    tree: Tree,
    X: FloatArray,
    accept: Callable[[Tree], bool] = lambda tree: True,
    budget: Budget | None = None,
) -> Tree:
    """The tree with shorter numbers in its hyperplanes, split by split.

    Weights are divided by the largest one, rounded to as few significant digits as leave each row at the split on its
    side, and multiplied by it again; a weight that is not needed for that is dropped. The threshold is the shortest
    number between the two sides.

    Parameters
    ----------
    tree : Tree
        Splits of single categories and of rows with gaps stay as they are.
    X : ndarray of shape (n_rows, n_features)
        Rows whose sides stay.
    accept : callable
        Told the tree with one more split rounded; if it says no, more digits are tried.
    budget : Budget, optional
        Once it is over, splits that are not rounded stay as they are.

    Examples
    --------
    >>> tree = Tree.stump([0.98934, 2.0021, 1e-9], 3.0173, np.eye(2))
    >>> rounded = rounded_tree(tree, np.array([[1.0, 0.0, 5.0], [0.0, 1.0, 4.0], [1.0, 2.0, 3.0]]))
    >>> (rounded.weights[0] / 2.0021).tolist(), round(float(rounded.threshold[0] / 2.0021), 9)
    ([0.5, 1.0, 0.0], 2.0)
    """
    leaf = route(tree, X)  # it stays, whatever is rounded
    for branch in tree.branches:
        if tree.category[branch] >= 0 or not np.any(tree.weights[branch]):
            continue
        rows = X[nodes_below(tree, int(branch))[leaf]]
        if not len(rows) or not np.all(np.isfinite(rows[:, tree.weights[branch] != 0])):
            continue
        spread = np.ptp(rows, axis=0)
        for digits in _DIGITS:
            if budget is not None and budget.over:
                return tree
            found = _rounded_split(tree, int(branch), rows, spread, digits)
            if found is not None and accept(found):
                tree = found
                break
    return tree


def _rounded_split(tree: Tree, branch: int, rows: FloatArray, spread: FloatArray, digits: int) -> Tree | None:
    """The tree with one split rounded, None if a row would change sides."""
    weights, threshold = tree.weights[branch], float(tree.threshold[branch])
    largest = float(np.abs(weights).max())
    short = _significant(weights / largest, digits, least=10.0**-digits * _effect(weights / largest, spread))
    if not np.any(short):
        return None
    left = rows @ weights <= threshold
    if left.all() or not left.any():
        return None
    level = rows @ short
    low, high = float(level[left].max()), float(level[~left].min())
    if not high - low > _CLEAR * float((np.abs(rows) @ np.abs(short)).max()):
        return None
    at = shortest_between(low, high)
    new_weights, new_threshold = tree.weights.copy(), tree.threshold.copy()
    new_weights[branch], new_threshold[branch] = short * largest, at * largest
    if not np.array_equal(rows @ new_weights[branch] <= new_threshold[branch], left):
        return None
    return replace(tree, weights=new_weights, threshold=new_threshold)


def _effect(weights: FloatArray, spread: FloatArray) -> FloatArray:
    """What a weight would be that moves rows as much as the one that moves them most."""
    moved = np.abs(weights) * spread
    return np.where(spread > 0, moved.max() / np.where(spread > 0, spread, 1.0), np.inf)


def _significant(values: FloatArray, digits: int, least: FloatArray) -> FloatArray:
    """Rounded to so many significant digits; smaller ones than `least` are 0."""
    size = np.abs(values)
    exponent = np.floor(np.log10(np.where(size > 0, size, 1.0)))
    unit = 10.0 ** (exponent - digits + 1)
    return np.where(size > least, np.round(values / unit) * unit, 0.0)


def shortest_between(low: float, high: float) -> float:
    """The number for a tree's split with the fewest digits well between two others, as near to their middle as can be.

    Examples
    --------
    >>> shortest_between(0.9893, 3.2), shortest_between(1.01, 1.04), shortest_between(-5.0, 5.0)
    (2.0, 1.02, 0.0)
    """
    middle, quarter = (low + high) / 2, (high - low) / 4
    if abs(middle) <= quarter:
        return 0.0
    exponent = int(np.floor(np.log10(abs(middle))))
    for digits in range(1, 17):
        found = round(middle, digits - 1 - exponent)
        if abs(found - middle) <= quarter:
            return float(found)
    return float(middle)
