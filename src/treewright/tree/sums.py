"""Splits as they are written: the numbers of a rule, and as many digits as tell where rows go."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from treewright.arrays import BoolArray, FloatArray, IntArray
from treewright.tree.number_text import MAX_PRECISION, format_number, threshold_digits
from treewright.tree.structure import LEAF, Tree
from treewright.tree.words import DateWords, FeatureWords, FlagWords

__all__ = ["WrittenSplit", "divide", "telling_digits", "written_split"]

_NOTHING = 1e-8
"""A weight that is smaller than this share of the largest is rather noise than something to be told as 1."""


@dataclass(frozen=True)
class WrittenSplit:
    """A hyperplane in the units of its rule: points go left where the sum of terms is up to the threshold.

    Attributes
    ----------
    features : ndarray of int
        Features of the terms.
    coefficients : ndarray
        Their factors.
    threshold : float
        What the sum is compared with.
    up_to : bool
        Whether points go left up to it, and not from it on.
    origin, unit : ndarray
        Where the term of each feature is 0, and how much of the feature is 1 of it.
    kinds : ndarray of int
        2 for a number, 1 for a date, 0 for a flag.
    """

    features: IntArray
    coefficients: FloatArray
    threshold: float
    up_to: bool
    origin: FloatArray
    unit: FloatArray
    kinds: IntArray

    def holds(self, terms: FloatArray, digits: int) -> BoolArray:
        """Where the rule holds that is written with so many significant digits, given the terms of its sum."""
        factors = [float(np.sign(c)) * float(format_number(abs(c), digits)) for c in self.coefficients.tolist()]
        at, sums = float(format_number(self.threshold, digits, keep_fraction=True)), terms @ np.array(factors)
        return np.asarray(sums <= at if self.up_to else sums >= at)


def written_split(
    tree: Tree, node: int, used: IntArray, words: Mapping[int, FeatureWords] | None = None
) -> WrittenSplit:
    """The numbers of the rule of a hyperplane.

    One feature is divided by its weight. A sum is divided by its largest weight, of numbers if there are flags and
    dates beside them; where all terms would be subtracted, it is turned round.

    Examples
    --------
    >>> tree = Tree.stump(weights=[-2.0, 1.0], threshold=3.0, values=[[48.0, 1.0], [0.0, 12.0]])
    >>> split = written_split(tree, 0, np.array([0, 1]))
    >>> split.coefficients.tolist(), split.threshold, split.up_to
    ([-1.0, 0.5], 1.5, True)
    """
    words = words or {}
    one = len(used) == 1  # which is told by its own value, whatever stands for it in a sum
    pairs = [words[j].scale if j in words and not one else (0.0, 1.0) for j in used.tolist()]
    origin, unit = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    weights = tree.weights[node, used] * unit
    threshold = float(tree.threshold[node] - tree.weights[node, used] @ origin)
    kinds = np.array([(FlagWords, DateWords).index(type(words[j])) if j in words else 2 for j in used.tolist()])
    sizes = np.abs(weights)
    likely = np.where(sizes < _NOTHING * sizes.max(), -1, kinds)
    sign = -1.0 if np.all(weights < 0) else 1.0
    scale = sign * float(sizes[likely == likely.max()].max())
    if not math.isfinite(divide(threshold, scale)):
        scale = sign
    return WrittenSplit(used, weights / scale, divide(threshold, scale), sign > 0, origin, unit, kinds)


def divide(numerator: float, denominator: float) -> float:
    """Quotient that is infinite where Python would raise."""
    with np.errstate(all="ignore"):
        return float(np.float64(numerator) / np.float64(denominator))


def telling_digits(
    tree: Tree,
    X: FloatArray,
    leaves: IntArray,
    words: Mapping[int, FeatureWords] | None = None,
    precision: int = 4,
) -> dict[int, int]:
    """Digits of splits with which the written rules send rows where the tree sends them, where `precision` does not.

    Parameters
    ----------
    tree : Tree
        The tree.
    X : ndarray of shape (n_rows, n_features)
        Rows; those that lack a value of a split do not count there.
    leaves : ndarray of int, shape (n_rows,)
        Their leaves.
    words : mapping of int to FeatureWords, or None
        Words of the rules, as for :func:`treewright.tree.export_text`.
    precision : int, default=4
        Digits that are enough elsewhere.

    Returns
    -------
    dict of int to int
        By nodes.

    Examples
    --------
    >>> tree = Tree.stump(weights=[1.0], threshold=1234.56789, values=[[48.0, 1.0], [0.0, 12.0]])
    >>> telling_digits(tree, np.array([[1234.5677], [1234.58]]), np.array([1, 2]))
    {0: 6}
    """
    plain, found = threshold_digits(tree, precision), dict[int, int]()
    first, last = _leaf_places(tree)
    order = np.argsort(first[leaves], kind="stable")  # rows of a node stand together, those of its left side first
    start = np.append(0, np.cumsum(np.bincount(first[leaves], minlength=int(last[0]))))
    for node in np.flatnonzero(tree.left != LEAF).tolist():
        used = np.flatnonzero(tree.weights[node])
        if tree.category[node] >= 0 or not len(used) or (len(used) == 1 and int(used[0]) in (words or {})):
            continue
        here = order[start[first[node]] : start[last[node]]]
        left = np.arange(len(here)) < start[last[tree.left[node]]] - start[first[node]]
        rows = X[np.ix_(here, used)]
        known = np.isfinite(rows).all(axis=1)
        if not known.all():  # on which side rows are that lack a value does not count
            rows, left = rows[known], left[known]
        split, enough = written_split(tree, node, used, words), precision
        if len(used) == 1:
            enough = plain.get(int(used[0]), precision)
        digits = _enough(split, (rows - split.origin) / split.unit, left, enough)
        if digits > enough:
            found[node] = digits
    return found


def _enough(split: WrittenSplit, terms: FloatArray, left: BoolArray, start: int) -> int:
    """The fewest digits with which no row changes sides or, where rounding lets none do that, the fewest rows."""
    best, fewest = start, len(terms) + 1
    for digits in range(start, MAX_PRECISION + 1):
        wrong = int(np.count_nonzero(split.holds(terms, digits) != left))
        if wrong < fewest:
            best, fewest = digits, wrong
        if not wrong:
            break
    return best


def _leaf_places(tree: Tree) -> tuple[IntArray, IntArray]:
    """Leaves under each node as places in their order from left to right: the first, and that after the last."""
    n_leaves, first = np.ones(tree.n_nodes, dtype=np.int64), np.zeros(tree.n_nodes, dtype=np.int64)
    inner = np.flatnonzero(tree.left != LEAF).tolist()
    for node in reversed(inner):  # children are numbered after their parent
        n_leaves[node] = n_leaves[tree.left[node]] + n_leaves[tree.right[node]]
    for node in inner:
        first[tree.left[node]] = first[node]
        first[tree.right[node]] = first[node] + n_leaves[tree.left[node]]
    return first, first + n_leaves
