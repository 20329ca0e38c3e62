"""From rows to the points that a model works on, and back.

A fit does not see rows as they are listed. Rows without weight are left out, features are scaled, equal rows become one
point. Each of these is a step: :meth:`Step.apply` makes a :class:`Reduction`, which has the points and knows the way
back, from values of points to values of rows and from a tree on points to one in the units of the data. Steps follow
one another, and what they make is a reduction again:

>>> from treewright.data import unit_scaling
>>> rows = Sample.of(np.array([[10.0], [30.0], [10.0]]), np.array([0, 1, 0]))
>>> reduction = reduced_sample(rows, Scale(unit_scaling), Merge())
>>> reduction.points.X.ravel().tolist(), reduction.points.weight.tolist()
([0.0, 1.0], [2.0, 1.0])
>>> reduction.invert(np.array([5, 7])).tolist()
[5, 7, 5]
>>> tree = reduction.invert_tree(Tree.stump([1.0], 0.5, [[1.0, 0.0], [0.0, 1.0]]))
>>> float(tree.threshold[0] / tree.weights[0, 0])
20.0

Equal rows are found in an order that depends on their content and not on how they are listed; missing values (NaN) are
equal to one another there, and come after all numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.data.problem import Problem
from treewright.data.scaling import Scaling
from treewright.exceptions import InvalidInputError
from treewright.tree import Tree

__all__ = [
    "EXACT_CELLS",
    "Compact",
    "Merge",
    "Reduction",
    "Sample",
    "Scale",
    "Step",
    "Weighted",
    "distinct_rows",
    "labelled_sample",
    "reduced_sample",
    "row_keys",
    "sorted_distinct_rows",
]

EXACT_CELLS = 1_000_000
"""Tables up to this size are worked on exactly: in float64, their distinct rows sorted by content."""

_KEY_CELLS = 65_536
"""Cells of which keys are made at once, which the cache holds."""
_BLOCK = 4096


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows, or the points that they become.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n, n_features)
        Features.
    y : ndarray of int, shape (n,), or of float, shape (n, n_outputs), or None
        Class numbers, -1 where there is none, or targets; None where points stand for rows of different ones.
    weight : ndarray of shape (n,)
        Weights.
    size : ndarray of shape (n,)
        How many rows each stands for.
    n_levels : ndarray of int, shape (n_features,), or None
        Levels of each categorical feature, whose values are codes, and 0 for a numerical one
        (:class:`~treewright.data.mixed.Features`); None where all are numerical. Values may be missing, NaN.
    """

    X: Any
    y: np.ndarray | None
    weight: FloatArray
    size: FloatArray
    n_levels: IntArray | None = None

    @classmethod
    def of(
        cls,
        X: Any,
        y: np.ndarray | None = None,
        weight: FloatArray | None = None,
        n_levels: IntArray | None = None,
    ) -> Self:
        """Rows that stand for themselves; without weights all count once, without levels all features are numbers."""
        ones = np.ones(X.shape[0])
        levels = None if n_levels is None or not np.any(n_levels) else n_levels
        return cls(X, y, ones if weight is None else weight, ones, levels)

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @property
    def categorical(self) -> BoolArray | None:
        """Mask of the categorical features, None where there is none."""
        return None if self.n_levels is None else np.asarray(self.n_levels > 0)

    def taken(self, rows: IntArray) -> Sample:
        """Some of them, in the order of `rows`."""
        y = None if self.y is None else self.y[rows]
        return Sample(self.X[rows], y, self.weight[rows], self.size[rows], self.n_levels)


@dataclass(frozen=True, eq=False)
class Reduction:
    """Points, and the way back to the rows that they stand for.

    Attributes
    ----------
    points : Sample
        The points.
    place : ndarray of int, shape (n_rows,)
        Point of each row, -1 for a row that was left out.
    scaling : Scaling or None
        How features were scaled; None for not at all.
    """

    points: Sample
    place: IntArray
    scaling: Scaling | None = None

    @property
    def kept(self) -> IntArray:
        """Numbers of the rows that have a point."""
        return np.flatnonzero(self.place >= 0)

    def then(self, step: Step) -> Reduction:
        """The reduction by one more step."""
        after = step.apply(self.points)
        if self.scaling is not None and after.scaling is not None:
            raise InvalidInputError("the rows are scaled already")
        place = np.where(self.place >= 0, after.place[self.place], -1) if len(after.place) else self.place
        return Reduction(after.points, place, self.scaling or after.scaling)

    def invert(self, values: np.ndarray, left_out: Any = 0) -> np.ndarray:
        """Values of the rows, given those of the points; rows that were left out get `left_out`.

        Examples
        --------
        >>> sample = Sample.of(np.ones((3, 1)), weight=np.array([1.0, 0.0, 1.0]))
        >>> reduction = reduced_sample(sample, Weighted(), Merge())
        >>> reduction.invert(np.array([4]), left_out=-1).tolist()
        [4, -1, 4]
        """
        rows = np.full((len(self.place), *values.shape[1:]), left_out, dtype=values.dtype)
        rows[self.kept] = values[self.place[self.kept]]
        return rows

    def invert_tree(self, tree: Tree) -> Tree:
        """The tree that routes rows as `tree` routes their points."""
        return tree if self.scaling is None else self.scaling.invert_tree(tree)

    def apply_tree(self, tree: Tree) -> Tree:
        """The tree that routes points as `tree` routes their rows, for warm starts."""
        return tree if self.scaling is None else self.scaling.apply_tree(tree)

    def members(self, weight: FloatArray | None = None) -> Any:
        """Which rows a point stands for, a sparse array of shape (n_points, n_rows); `weight` is that of the rows."""
        kept = self.kept
        entries = np.ones(len(kept)) if weight is None else weight[kept]
        return sparse.csr_array((entries, (self.place[kept], kept)), shape=(len(self.points), len(self.place)))


class Step(Protocol):
    """One step from rows to points."""

    def apply(self, sample: Sample) -> Reduction:
        """Take the step; the reduction knows the way back."""
        ...


def reduced_sample(sample: Sample, *steps: Step) -> Reduction:
    """From rows to points: take steps one after another.

    Parameters
    ----------
    sample : Sample
        The rows.
    *steps : Step
        Steps, in the order in which they are taken.
    """
    reduction = Reduction(sample, np.arange(len(sample)))
    for step in steps:
        reduction = reduction.then(step)
    return reduction


@dataclass(frozen=True)
class Weighted:
    """Leave out rows of weight 0."""

    def apply(self, sample: Sample) -> Reduction:
        """Take the step."""
        return _chosen(sample, np.flatnonzero(sample.weight > 0))


@dataclass(frozen=True)
class Scale:
    """Scale the numerical features; codes of categories stay as they are.

    Attributes
    ----------
    make : callable
        Features to their scaling, :func:`~treewright.data.unit_scaling` for instance.
    """

    make: Callable[[Any], Scaling]

    def apply(self, sample: Sample) -> Reduction:
        """Take the step."""
        scaling = self.make(sample.X).sparing(sample.categorical)
        return Reduction(replace(sample, X=scaling.apply(sample.X)), np.arange(len(sample)), scaling)


@dataclass(frozen=True)
class Compact:
    """Make small tables dense float64, and large ones float32, sparse ones staying sparse.

    Attributes
    ----------
    exact : bool
        Whether large dense tables stay as they are.
    """

    exact: bool = False

    def apply(self, sample: Sample) -> Reduction:
        """Take the step."""
        X = sample.X
        if _is_small(X):
            X = X.toarray() if sparse.issparse(X) else X
        elif sparse.issparse(X):
            X = X.astype(np.float32).tocsr()
        elif not self.exact:
            X = np.ascontiguousarray(X, dtype=np.float32)
        return Reduction(replace(sample, X=X), np.arange(len(sample)))


@dataclass(frozen=True)
class Merge:
    """Make one point of equal rows, which has the sum of their weights. Missing values are equal to one another.

    A weight of 2 is then the same as listing a row twice, and any order of the rows gives the same points. Those of
    small tables are sorted by content, those of large ones are in an order that depends on their content alone. Rows of
    large sparse tables are not compared: each is a point.

    Attributes
    ----------
    labels : bool
        Whether rows must be equal in labels (or targets) too; without, points have no labels.
    large : bool
        Whether rows of large tables are merged at all.
    """

    labels: bool = True
    large: bool = True

    def apply(self, sample: Sample) -> Reduction:
        """Take the step."""
        X, y = sample.X, sample.y if self.labels else None
        small = _is_small(X)
        if sparse.issparse(X) or not (small or self.large):
            return Reduction(replace(sample, y=y), np.arange(len(sample)))
        table = X if y is None else np.column_stack([X, y])
        first, place = sorted_distinct_rows(table) if small else distinct_rows(table)
        points = replace(
            sample,
            X=_without_negative_zeros(X[first]),
            y=None if y is None else _without_negative_zeros(y[first]),
            weight=_summed(sample.weight, place, len(first)),
            size=_summed(sample.size, place, len(first)),
        )
        return Reduction(points, place)


def labelled_sample(problem: Problem, merged: bool, rng: np.random.Generator) -> Sample:
    """Labelled rows of positive weight, sorted by content and shuffled: the order of the file is nothing.

    Parameters
    ----------
    problem : Problem
        The data.
    merged : bool
        Whether each distinct row comes once with the sum of its weights, so that a weight of 2 is a repeated row.
    rng : numpy Generator
        What shuffles.
    """
    X, y, weight = problem.X_labelled, problem.y_labelled, problem.weight_labelled
    # sorting by every column takes minutes where rows are many
    content = X.T[::-1] if _is_small(X) else [distinct_rows(X)[1]]
    order = np.lexsort((weight, y, *content))
    sample = Sample.of(X, y, weight, problem.n_levels).taken(order[weight[order] > 0])
    if merged:
        sample = reduced_sample(sample, Merge()).points
    return sample.taken(rng.permutation(len(sample)))


def _is_small(X: Any) -> bool:
    return int(np.prod(X.shape)) <= EXACT_CELLS


def _chosen(sample: Sample, rows: IntArray) -> Reduction:
    """Some rows as points, the rest left out."""
    if len(rows) == len(sample):
        return Reduction(sample, np.arange(len(sample)))
    place = np.full(len(sample), -1, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    return Reduction(sample.taken(rows), place)


def _without_negative_zeros(copy: np.ndarray) -> np.ndarray:
    """Equal rows may have -0.0 and 0.0; their point has 0.0, whichever of them stands for it."""
    copy += 0
    return np.ascontiguousarray(copy)


def _summed(values: FloatArray, place: IntArray, n_points: int) -> FloatArray:
    """Sums by point, the same to the last digit whatever the order in which rows are listed."""
    if len(place) > n_points and np.any(values != np.floor(values)):
        order = np.lexsort((values, place))
        place, values = place[order], values[order]
    return np.asarray(np.bincount(place, values, n_points), dtype=np.float64)


def sorted_distinct_rows(X: NDArray[np.floating[Any]]) -> tuple[IntArray, IntArray]:
    """Find the distinct rows of a table and sort them; what :func:`distinct_rows` does for large ones in less time.

    Examples
    --------
    >>> first, inverse = sorted_distinct_rows(np.array([[1.0, 2.0], [0.0, 5.0], [1.0, 2.0]]))
    >>> first.tolist(), inverse.tolist()
    ([1, 0], [1, 0, 1])
    """
    _, first, inverse = np.unique(_comparable(X), axis=0, return_index=True, return_inverse=True)
    return first, inverse.reshape(-1)


def distinct_rows(X: NDArray[np.floating[Any]]) -> tuple[IntArray, IntArray]:
    """Find the distinct rows of a large table, in an order that depends on their content alone.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        Rows, float64 or float32; infinity is taken for a missing value (NaN).

    Returns
    -------
    first : ndarray of int, shape (n_distinct,)
        A row of X for each distinct one.
    inverse : ndarray of int, shape (n_rows,)
        Place of each row among the distinct ones.

    Examples
    --------
    >>> first, inverse = distinct_rows(np.array([[1.0, 2.0], [0.0, 5.0], [1.0, 2.0]]))
    >>> len(first), bool(inverse[0] == inverse[2] != inverse[1])
    (2, True)
    """
    key = row_keys(X)
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    inverse = inverse.reshape(-1)
    likely = np.flatnonzero(first[inverse] != np.arange(len(X)))  # equal to another row by their keys
    wrong = likely[~_equal_rows(X, likely, first[inverse[likely]])]
    return _told_apart(X, inverse, inverse[wrong]) if len(wrong) else (first, inverse)


def row_keys(X: NDArray[np.floating[Any]]) -> NDArray[np.uint64]:
    """A number for each row of the data by its content; those of equal rows are equal, others hardly ever."""
    odd = np.random.default_rng(0).integers(2**63, size=X.shape[1], dtype=np.uint64) | np.uint64(1)
    key = np.zeros(len(X), dtype=np.uint64)
    step = max(16, _KEY_CELLS // max(1, X.shape[1]))
    for start in range(0, len(X), step):
        rows = np.ascontiguousarray(_comparable(X[start : start + step]))
        mixed = rows.view(np.uint64) if rows.dtype.itemsize == 8 else rows.view(np.uint32).astype(np.uint64)
        mixed += odd
        mixed *= np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
        key[start : start + step] = np.einsum("ij,j->i", mixed, odd)  # whole numbers add up alike in any order
    return key


def _equal_rows(X: NDArray[np.floating[Any]], rows: IntArray, others: IntArray) -> BoolArray:
    """Whether pairs of rows are equal, missing values included."""
    equal = np.empty(len(rows), dtype=bool)
    for block in _blocks(len(rows)):
        equal[block] = np.all(_comparable(X[rows[block]]) == _comparable(X[others[block]]), axis=1)
    return equal


def _told_apart(X: NDArray[np.floating[Any]], inverse: IntArray, keys: IntArray) -> tuple[IntArray, IntArray]:
    """Number rows anew, where different ones have one of the `keys`: those by content, others as before."""
    mixed = np.flatnonzero(np.isin(inverse, keys))
    _, within = sorted_distinct_rows(X[mixed])
    number = inverse * (len(mixed) + 1)
    number[mixed] += within
    _, first, place = np.unique(number, return_index=True, return_inverse=True)
    return first, place.reshape(-1)


def _blocks(n_rows: int) -> Iterator[slice]:
    return (slice(start, start + _BLOCK) for start in range(0, n_rows, _BLOCK))


def _comparable(X: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    """The table with equal bytes where values are equal: no -0.0, and infinity, which no value is, for all NaN."""
    table = X + X.dtype.type(0)
    if np.isnan(table.min(initial=0.0)):
        table[np.isnan(table)] = np.inf
    return table
