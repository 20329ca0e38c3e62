"""The scalings that the models assume, with their inverse on points and on a Tree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.data.columns_checked import freeze
from treewright.exceptions import InvalidInputError
from treewright.tree import Tree

__all__ = [
    "LEAST_MARGIN",
    "Scaling",
    "held_weights",
    "mean_and_spread",
    "of_unit_spread",
    "refuse_narrow",
    "s2oct_scaling",
    "target_spread",
    "unit_scaling",
    "weight_unit",
    "weighted_mean",
]

LEAST_MARGIN = 1e-4
"""Of splits in features of unit size: solvers miss rows by up to 1e-6, times a few, and a gap must be much wider."""

_LARGEST = np.finfo(np.float64).max
_SMALLEST = np.finfo(np.float64).tiny  # 1/x is finite from here on
_EXPONENT = 900  # weights of an inverted tree are kept within 2**-900 and 2**900
S2OCT_BOX = 100.0
_FAR_OUT = 400
"""Exponent of two from which on squares, or sums of them, may overflow or vanish."""
_NARROW = 1e-100
"""Half of the range of a feature below which weights of splits, or their squares, are beyond floating point."""
_FARTHEST = 1e30
"""In units of the spread. Squares of it are finite, and single precision has it."""
_BLOCK = 100_000
"""Rows that are looked at at once."""
_HEAVIEST, _LIGHTEST = 1e100, 1e-12
"""Largest weight of a row, and the least share of the largest that a weight above 0 has."""
_MOST_COPIES = 1e6  # weights that are numbers of rows are whole; beyond, all numbers nearly are


@dataclass(frozen=True, eq=False)
class Scaling:
    """A scaling of each feature, ``(x - shift) * scale``.

    Attributes
    ----------
    scale : ndarray of shape (n_features,)
        Factors, zero or more. A factor of zero makes a feature constant: a tree on scaled points then does
        not depend on it, nor does the inverted tree.
    shift : ndarray of shape (n_features,)
        What becomes zero.

    Examples
    --------
    >>> scaling = unit_scaling([[10.0, 5.0], [30.0, 5.0]])
    >>> scaling.apply([[20.0, 5.0]]).tolist()
    [[0.5, 0.0]]
    >>> scaling.invert_points([[0.5, 0.0]]).tolist()
    [[20.0, 5.0]]
    >>> tree = Tree.stump(weights=[1.0, 0.0], threshold=0.25, values=[[1.0, 0.0], [0.0, 1.0]])
    >>> inverted = scaling.invert_tree(tree)
    >>> float(inverted.threshold[0] / inverted.weights[0, 0])
    15.0
    """

    scale: FloatArray
    shift: FloatArray

    def __post_init__(self) -> None:
        for name in ("scale", "shift"):
            array = np.array(getattr(self, name), dtype=np.float64)
            if array.ndim != 1 or not np.all(np.isfinite(array)):
                raise InvalidInputError(f"{name} must be one finite number a feature, got {array!r}")
            object.__setattr__(self, name, freeze(array))
        if self.scale.shape != self.shift.shape:
            raise InvalidInputError(f"scale has {len(self.scale)} features, shift has {len(self.shift)}")
        if np.any(self.scale < 0):
            raise InvalidInputError(f"scale must be zero or more, got {self.scale.min()}")

    @classmethod
    def identity(cls, n_features: int) -> Self:
        """Return the scaling that changes nothing.

        Examples
        --------
        >>> Scaling.identity(2).apply([[3.0, 4.0]]).tolist()
        [[3.0, 4.0]]
        """
        return cls(scale=np.ones(n_features), shift=np.zeros(n_features))

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.scale)

    def sparing(self, features: BoolArray | None) -> Scaling:
        """Return the same scaling with some features left as they are: codes of categories mean nothing as numbers.

        Parameters
        ----------
        features : ndarray of bool, shape (n_features,), or None
            Features to leave alone; None for none.

        Examples
        --------
        >>> unit_scaling([[10.0, 2.0], [30.0, 0.0]]).sparing(np.array([False, True])).apply([[20.0, 2.0]]).tolist()
        [[0.5, 2.0]]
        """
        if features is None or not features.any():
            return self
        return Scaling(np.where(features, 1.0, self.scale), np.where(features, 0.0, self.shift))

    def apply(self, X: Any) -> Any:
        """Return scaled points; finite for finite points, NaN where a value is NaN. Sparse ones stay sparse."""
        if sparse.issparse(X):
            if np.any(self.shift):
                raise InvalidInputError("sparse points cannot be shifted; make the scaling from sparse points")
            return (X @ sparse.diags_array(self.scale)).tocsr()
        points = self._points(X)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            result = (points - self.shift) * self.scale
            if _has_overflow(result, points):
                result = np.where(
                    np.isfinite(points - self.shift), result, (points / 2 - self.shift / 2) * self.scale * 2
                )
                result = np.clip(result, -_LARGEST, _LARGEST)
        return np.asarray(result)

    def invert_points(self, X: ArrayLike) -> FloatArray:
        """Return the points whose scaled form is given; features of scale zero get their shift."""
        points = self._points(X)
        used = self.scale > 0
        divisor = np.where(used, self.scale, 1.0)
        with np.errstate(over="ignore", under="ignore"):
            away = np.where(used, points, 0.0) / divisor
            result = away + self.shift
            if _has_overflow(result, points):
                halves = np.where(used, points, 0.0) / 2 / divisor + self.shift / 2
                result = np.where(np.isfinite(result), result, halves * 2)
                result = np.clip(result, -_LARGEST, _LARGEST)
        return np.asarray(result)

    def invert_tree(self, tree: Tree) -> Tree:
        """Return the tree that routes points as `tree` routes scaled points.

        Where features are so large or small that weights would leave the range of floating point, both sides
        of a split are multiplied by a power of two, which changes no point's side. Linear leaves predict the same
        too; see :meth:`invert_leaves` for slopes that leave the range.

        Examples
        --------
        >>> scaling = unit_scaling([[10.0], [30.0]])
        >>> leaf = Tree.leaf([1.0], n_features=1, classification=False).with_leaves([[1.0]], None, slopes=[[[40.0]]])
        >>> inverted = scaling.invert_tree(leaf)  # 1 + 40 (x - 10) / 20
        >>> inverted.values.tolist(), inverted.slopes.tolist()
        ([[-19.0]], [[[2.0]]])
        """
        self._check_tree(tree)
        splits = _within_range(replace(tree, slopes=None), np.frexp(self.scale)[1], self.scale > 0)
        values, slopes = self.invert_leaves(tree.values, tree.slopes)
        return replace(splits.unscaled(self.scale, self.shift), values=values, slopes=slopes)

    def invert_leaves(self, values: FloatArray, slopes: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
        """Return values and slopes of leaves on points from those on scaled points.

        A slope that floating point cannot hold in the units of its feature becomes zero.

        Parameters
        ----------
        values : ndarray of shape (n_nodes, n_outputs)
            Values at the origin of the scaled points.
        slopes : ndarray of shape (n_nodes, n_outputs, n_features), or None
            Slopes along the scaled features, None for constant leaves.
        """
        if slopes is None:
            return values, None
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            slopes = _held(slopes * self.scale)
            return _clipped(values - slopes @ self.shift), slopes

    def apply_tree(self, tree: Tree) -> Tree:
        """Return the tree that routes scaled points as `tree` routes points: inverts `invert_tree`.

        A feature of scale zero counts with the value that it has in the data, its shift. Linear leaves predict the
        same too.

        Examples
        --------
        >>> scaling = unit_scaling([[10.0, 5.0], [30.0, 5.0]])
        >>> tree = Tree.stump(weights=[1.0, 1.0], threshold=20.0, values=[[1.0, 0.0], [0.0, 1.0]])
        >>> scaled = scaling.apply_tree(tree)
        >>> scaled.weights[0].tolist(), float(scaled.threshold[0])
        ([20.0, 0.0], 5.0)
        """
        self._check_tree(tree)
        used = self.scale > 0
        # 1/scale may overflow, so the exponent is taken apart.
        mantissa, exponent = np.frexp(np.where(used, self.scale, 1.0))
        tree = _within_range(tree, -exponent, used)
        weights = np.ldexp(np.where(used, tree.weights, 0.0) / mantissa, -exponent)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            threshold = np.clip(tree.threshold - tree.weights @ self.shift, -_LARGEST, _LARGEST)
            values, slopes = tree.values, tree.slopes
            if slopes is not None:
                values = _clipped(values + slopes @ self.shift)
                slopes = _held(np.ldexp(np.where(used, slopes, 0.0) / mantissa, -exponent))
        return replace(tree, weights=weights, threshold=threshold, values=values, slopes=slopes)

    def _check_tree(self, tree: Tree) -> None:
        if tree.n_features != self.n_features:
            raise InvalidInputError(f"the tree has {tree.n_features} features, the scaling {self.n_features}")
        coded = np.unique(tree.category[tree.category >= 0])
        changed = coded[(self.scale[coded] != 1) | (self.shift[coded] != 0)]
        if len(changed):
            raise InvalidInputError(f"feature {changed[0]} has categorical splits and cannot be scaled")

    def _points(self, X: ArrayLike) -> FloatArray:
        points = np.asarray(X, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != self.n_features:
            raise InvalidInputError(f"points have shape {points.shape}, the scaling needs (n, {self.n_features})")
        return points


def unit_scaling(X: Any) -> Scaling:
    """Scale each feature to [0, 1], as OCT, OCT-H, OCTSVM and SVM1-ODT assume.

    ``(x - l) / (u - l)`` with the smallest value l and the largest u. A feature that is constant, or whose
    range is too small for floating point to invert, becomes 0. Sparse points are not shifted, so that zeros stay
    zeros: ``x / (u - l)``. Missing values (NaN) do not count, and stay; a constant feature that has some keeps its
    unit, as a split can tell what is there from what is missing.

    Examples
    --------
    >>> unit_scaling([[1.0], [3.0], [5.0]]).apply([[1.0], [3.0], [5.0]]).ravel().tolist()
    [0.0, 0.5, 1.0]
    """
    if sparse.issparse(X):
        low, high = X.min(axis=0).toarray().ravel(), X.max(axis=0).toarray().ravel()
        return Scaling(scale=0.5 * _inverse(high / 2 - low / 2), shift=np.zeros(len(low)))
    low, _, half, gaps = _extent(X)
    scale = 0.5 * _inverse(half)
    return Scaling(scale=np.where(gaps & (scale == 0), 1.0, scale), shift=low)


def s2oct_scaling(X: ArrayLike) -> Scaling:
    """Centre each feature, and scale those that are still large to [-100, 100], as S2OCT and C2RF do.

    With the smallest value l, the largest u and their middle m, a feature becomes ``x - m``; if that leaves
    [-100, 100] it becomes ``200 * (x - l) / (u - l) - 100``, which is ``(x - m) * 200 / (u - l)``. (The
    papers print + 100 at the end, which would put the points into [100, 300].) A constant feature becomes 0. Rows are
    all of them, labelled or not.

    Examples
    --------
    >>> X = [[0.0, 0.0], [10.0, 1000.0]]
    >>> s2oct_scaling(X).apply(X).tolist()
    [[-5.0, -100.0], [5.0, 100.0]]
    """
    _, middle, half, gaps = _extent(X)
    large = half > S2OCT_BOX
    scale = np.where(large, S2OCT_BOX / np.where(large, half, 1.0), np.where((half > 0) | gaps, 1.0, 0.0))
    return Scaling(scale=scale, shift=middle)


def mean_and_spread(*tables: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Scaling: mean and standard deviation of features over the rows of all tables; 1 where one does not vary.

    Examples
    --------
    >>> mean, spread = mean_and_spread(np.array([[1e300, 5.0]]), np.array([[3e300, 5.0]]))
    >>> mean.tolist(), spread.tolist()
    ([2e+300, 5.0], [1e+300, 1.0])
    """
    n_rows = sum(len(table) for table in tables)
    largest = np.max([np.abs(table).max(axis=0, initial=0.0) for table in tables], axis=0)
    exponent = np.frexp(largest)[1].astype(np.int64)
    exponent[np.abs(exponent) <= _FAR_OUT] = 0
    # a large table is not copied as a whole
    parts = [table[first : first + _BLOCK] for table in tables for first in range(0, len(table), _BLOCK)]

    def in_unit(part: FloatArray) -> FloatArray:
        return np.ldexp(part, -exponent) if exponent.any() else part

    mean = np.sum([in_unit(part).sum(axis=0) for part in parts], axis=0) / n_rows
    square = np.sum([((in_unit(part) - mean) ** 2).sum(axis=0) for part in parts], axis=0)
    spread = np.ldexp(np.sqrt(square / n_rows), exponent)
    return np.ldexp(mean, exponent), np.where(spread >= _SMALLEST, spread, 1.0)


def of_unit_spread(X: FloatArray, mean: FloatArray, spread: FloatArray) -> FloatArray:
    """Scale features to mean 0 and standard deviation 1; what is very far out stays finite, in single precision too.

    Examples
    --------
    >>> of_unit_spread(np.array([[1e300], [-1e300], [1e308]]), np.array([0.0]), np.array([1e300])).ravel().tolist()
    [1.0, -1.0, 100000000.0]
    """
    points = X / 2 - mean / 2  # the difference itself may overflow
    with np.errstate(over="ignore"):
        points /= spread / 2
    return np.asarray(np.clip(points, -_FARTHEST, _FARTHEST, out=points))


def refuse_narrow(X: FloatArray, names: Sequence[str] | None = None) -> None:
    """Refuse features whose scaling fails: they vary so little that their weights cannot be computed with.

    Of models that do not stretch small features, as S2OCT's scaling does not.

    Examples
    --------
    >>> refuse_narrow(np.array([[1e-300, 5.0], [0.0, 5.0]]), ["rate", "age"])
    Traceback (most recent call last):
    ...
    treewright.exceptions.InvalidInputError: column 'rate' varies by 1e-300 only; multiply it by a number, or leave ...
    """
    half = _extent(X)[2]
    narrow = np.flatnonzero((half > 0) & (half < _NARROW))
    if len(narrow):
        j = int(narrow[0])
        name = j if names is None else repr(names[j])
        raise InvalidInputError(
            f"column {name} varies by {2 * float(half[j]):.3g} only; multiply it by a number, or leave it out"
        )


def target_spread(Y: FloatArray, weight: FloatArray) -> float:
    """Scaling of targets: root of their weighted mean squared distance to their mean, 1 where they do not differ.

    Parameters
    ----------
    Y : ndarray of shape (n_rows, n_outputs)
        Targets.
    weight : ndarray of shape (n_rows,)
        Weights, not negative.

    Examples
    --------
    >>> target_spread(np.array([[1.0], [3.0], [9.0]]), np.array([1.0, 1.0, 0.0]))
    1.0
    >>> target_spread(np.array([[-4e200], [4e200]]), np.ones(2))
    4e+200
    """
    if not np.any(weight > 0):
        return 1.0
    centred = Y - weighted_mean(Y, weight)
    largest = float(np.abs(centred[weight > 0]).max())
    if largest <= 1e-15 * float(np.abs(Y).max()):  # equal but for the rounding of their mean
        return 1.0
    # Squares of very large and very small targets would be infinite or 0.
    return largest * float(np.sqrt(weighted_mean(((centred / largest) ** 2).sum(axis=1, keepdims=True), weight)[0]))


def weighted_mean(Y: FloatArray, weight: FloatArray) -> FloatArray:
    """The mean of each column of the data, the same to the last digit whatever the order of the rows.

    Sums are rounded once. Other ones are rounded on the way, by the order of the rows and by what the processor adds at
    once, and a tree that has to choose between equally good splits may choose by that.

    Examples
    --------
    >>> Y = np.array([[0.1], [0.2], [0.3], [1e16], [-1e16]])
    >>> weighted_mean(Y, np.ones(5)).tolist() == weighted_mean(Y[::-1], np.ones(5)).tolist() == [0.6 / 5]
    True
    >>> weighted_mean(np.array([[1e300], [1e300]]), np.array([1e9, 3e9])).tolist()
    [1e+300]
    """
    mass = math.fsum(weight)
    try:
        with np.errstate(over="ignore"):
            mean = np.array([math.fsum(weight * column) / mass for column in Y.T])
    except (OverflowError, ValueError):  # sums beyond the largest number
        mean = np.full(Y.shape[1], np.inf)
    if not np.isfinite(mean).all():  # or single products
        mean = np.array([math.fsum(weight / mass * column) for column in Y.T])
    return mean


def held_weights(weight: FloatArray, name: str = "sample_weight") -> FloatArray:
    """Weights of rows whose sums and squares can be computed with; those no sum could show are raised to what it can.

    Beside one of 1 a weight of 1e-20 is lost in any sum, and differences of sums, such as what is left on one side of a
    split, are then wrong. So weights above 0 are at least a trillionth of the largest.

    Raises
    ------
    InvalidInputError
        If the largest weight is so large or so small that squares of it are infinite or 0.

    Examples
    --------
    >>> held_weights(np.array([1.0, 0.0, 1e-20])).tolist()
    [1.0, 0.0, 1e-12]
    >>> held_weights(np.array([1.0, 1e200]))
    Traceback (most recent call last):
    ...
    treewright.exceptions.InvalidInputError: sample_weight has 1e+200 in row 1, too large to compute with; divide ...
    """
    largest = float(weight.max(initial=0.0))
    if largest > _HEAVIEST or 0 < largest < 1.0 / _HEAVIEST:
        how = ("large", "divide") if largest > 1 else ("small", "multiply")
        raise InvalidInputError(
            f"{name} has {largest!r} in row {int(weight.argmax())}, too {how[0]} to compute with; {how[1]} all weights "
            "by a number so that the largest is about 1"
        )
    return np.where(weight > 0, np.maximum(weight, _LIGHTEST * largest), 0.0)


def weight_unit(weight: FloatArray) -> float:
    r"""Weight of one row of the data: the unit of what is priced in rows.

    Where all weights are whole multiples of the smallest one they are taken for numbers of equal rows, and that one is
    the unit. Otherwise it is the mean weight as the weights themselves count it, :math:`\sum w_i^2 / \sum w_i`; the
    total weight is then that of :math:`(\sum w_i)^2 / \sum w_i^2` rows, the effective number. Weights that are all
    multiplied by a number have a unit that is multiplied by it.

    Parameters
    ----------
    weight : ndarray of shape (n_rows,)
        Weights, not negative; 0 leaves a row out.

    Returns
    -------
    float
        The unit; 1 without any weight above 0.

    Examples
    --------
    >>> weight_unit(np.array([1.0, 3.0, 2.0, 0.0])), weight_unit(np.full(4, 0.25)), weight_unit(np.array([1.0, 2.5]))
    (1.0, 0.25, 2.0714285714285716)
    """
    used = weight[weight > 0]
    if not len(used):
        return 1.0
    least, largest = float(used.min()), float(used.max())
    if largest <= _MOST_COPIES * least:
        copies = used / least
        if np.all(np.abs(copies - np.round(copies)) <= 1e-9 * copies):
            return least
    share = used / largest
    return largest * float(share @ share) / float(share.sum())


def _held(slopes: FloatArray) -> FloatArray:
    """Slopes, zero where they are too large for floating point."""
    return np.where(np.isfinite(slopes), slopes, 0.0)


def _clipped(values: FloatArray) -> FloatArray:
    return np.nan_to_num(values, nan=0.0, posinf=_LARGEST, neginf=-_LARGEST)


def _within_range(tree: Tree, exponent: IntArray, used: BoolArray) -> Tree:
    """Return the same tree, its splits multiplied by powers of two so that weights can be scaled.

    They can where the weights, times ``2**exponent`` of their feature, are neither too large nor too small.
    The largest of a node decides.
    """
    used = used & (tree.weights != 0)
    exponent = np.frexp(tree.weights)[1] + exponent
    top = np.where(used, exponent, -(2**16)).max(axis=1, initial=-(2**16))
    factor = np.where(used.any(axis=1), np.clip(top, -_EXPONENT, _EXPONENT) - top, 0)
    if not np.any(factor):
        return tree
    with np.errstate(over="ignore"):
        weights = np.clip(np.ldexp(tree.weights, factor[:, None]), -_LARGEST, _LARGEST)
        threshold = np.clip(np.ldexp(tree.threshold, factor), -_LARGEST, _LARGEST)
    return replace(tree, weights=weights, threshold=threshold)


def _extent(X: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
    """Return smallest value, middle and half of the range of each feature, none of which overflows; and where gaps are.

    Missing values do not count; a feature without any value is 0 throughout.
    """
    points = np.asarray(X, dtype=np.float64)
    if points.ndim != 2 or len(points) == 0:
        raise InvalidInputError(f"points have shape {points.shape}, a scaling needs at least one row of features")
    low, high = points.min(axis=0), points.max(axis=0)
    gaps = np.isnan(low)
    if gaps.any():
        holes = np.isnan(points)
        low = np.where(holes, np.inf, points).min(axis=0)
        high = np.where(holes, -np.inf, points).max(axis=0)
        low, high = (np.where(holes.all(axis=0), 0.0, end) for end in (low, high))
    if not np.all(np.isfinite(low) & np.isfinite(high)):
        row, feature = np.argwhere(np.isinf(points))[0]
        raise InvalidInputError(
            f"X has {points[row, feature]} in row {row}, feature {feature}; a scaling needs finite numbers"
        )
    with np.errstate(over="ignore"):
        total, width = low + high, high - low
    middle = np.where(np.isfinite(total), total / 2, low / 2 + high / 2)
    half = np.where(np.isfinite(width), width / 2, high / 2 - low / 2)
    return low, middle, half, gaps


def _inverse(width: FloatArray) -> FloatArray:
    """Return 1/width, and 0 where the width is zero or so small that this would overflow."""
    fine = width >= _SMALLEST
    return np.where(fine, 1.0 / np.where(fine, width, 1.0), 0.0)


def _has_overflow(result: FloatArray, points: FloatArray) -> bool:
    return bool(np.any(~np.isfinite(result) & np.isfinite(points)))
