"""Sums as they are written: the numbers of a rule."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.tree.number_text import format_number
from treewright.tree.structure import Tree
from treewright.tree.words import DateWords, FeatureWords, FlagWords

__all__ = ["NOTHING", "WrittenSplit", "divide", "written_split"]

NOTHING = 1e-8
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
    scale : float
        What the weights of the split were divided by.
    """

    features: IntArray
    coefficients: FloatArray
    threshold: float
    up_to: bool
    origin: FloatArray
    unit: FloatArray
    kinds: IntArray
    scale: float

    def sums(self, X: FloatArray, digits: int) -> FloatArray:
        """What rows have of the sum that is written with so many significant digits."""
        terms = (X[:, self.features] - self.origin) / self.unit
        factors = [float(np.sign(c)) * float(format_number(abs(c), digits)) for c in self.coefficients.tolist()]
        return np.asarray(terms @ np.array(factors))

    def holds(self, X: FloatArray, digits: int) -> BoolArray:
        """Where the rule holds that is written with so many significant digits; on which side NaN is does not count."""
        at, sums = float(format_number(self.threshold, digits, keep_fraction=True)), self.sums(X, digits)
        return np.asarray(sums <= at if self.up_to else sums >= at)


def written_split(
    tree: Tree, node: int, used: IntArray, words: Mapping[int, FeatureWords] | None = None, alone: bool = True
) -> WrittenSplit:
    """The numbers of the rule of a tree's hyperplane, or of those features of it that are `used`.

    One feature is divided by its weight, and told by its own value unless it is not to stand `alone`. A sum is divided
    by its largest weight, of numbers if there are flags and dates beside them; where all terms would be subtracted, it
    is turned round.

    Examples
    --------
    >>> tree = Tree.stump(weights=[-2.0, 1.0], threshold=3.0, values=[[48.0, 1.0], [0.0, 12.0]])
    >>> split = written_split(tree, 0, np.array([0, 1]))
    >>> split.coefficients.tolist(), split.threshold, split.up_to
    ([-1.0, 0.5], 1.5, True)
    """
    words = words or {}
    one = alone and len(used) == 1  # which is told by its own value, whatever stands for it in a sum
    pairs = [words[j].scale if j in words and not one else (0.0, 1.0) for j in used.tolist()]
    origin, unit = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    weights = tree.weights[node, used] * unit
    threshold = float(tree.threshold[node] - tree.weights[node, used] @ origin)
    kinds = np.array([(FlagWords, DateWords).index(type(words[j])) if j in words else 2 for j in used.tolist()])
    sizes = np.abs(weights)
    likely = np.where(sizes < NOTHING * sizes.max(), -1, kinds)
    sign = -1.0 if np.all(weights < 0) else 1.0
    scale = sign * float(sizes[likely == likely.max()].max())
    if not math.isfinite(divide(threshold, scale)):
        scale = sign
    return WrittenSplit(used, weights / scale, divide(threshold, scale), sign > 0, origin, unit, kinds, scale)


def divide(numerator: float, denominator: float) -> float:
    """Quotient for the sums of a tree's rule that is infinite where Python would raise."""
    with np.errstate(all="ignore"):
        return float(np.float64(numerator) / np.float64(denominator))
