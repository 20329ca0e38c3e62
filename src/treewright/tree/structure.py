"""The fitted thing: a decision tree as arrays.

Node 0 is the root and a child always has a larger number than its parent.
At a branch node a point goes left when

* numerical (oblique or axis-aligned): ``weights @ x <= threshold``; axis-aligned is one non-zero weight;
* categorical: the code ``x[category]`` is in the node's set of left categories;
* missing: where a value that the split uses is NaN, ``missing_left`` decides.

A leaf predicts its ``values``; with linear leaves, which are for regression, ``values + slopes @ x``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.exceptions import InvalidInputError

__all__ = ["Shape", "Tree"]

LEAF = -1

BEYOND = 1e300
"""Beyond all values: a threshold of so much, for a weight of 1, parts nothing but rows that lack the value."""

_OPTIONAL = ("labels", "slopes", "probabilities")

SUM = 1e-6
"""By how much the sum of the probabilities of a node may miss 1."""

_TYPES: dict[str, type[np.generic]] = {
    "left": np.int64,
    "right": np.int64,
    "category": np.int64,
    "labels": np.int64,
    "left_categories": np.bool_,
    "missing_left": np.bool_,
}
"""Types of the arrays that are not of floating-point numbers."""


@dataclass(frozen=True)
class Tree:
    """A decision tree as arrays, one entry a node.

    Attributes
    ----------
    left, right : ndarray of int, shape (n_nodes,)
        Children, -1 at leaves.
    weights : ndarray of shape (n_nodes, n_features)
        Normal of the split; zero at leaves and at categorical splits.
    threshold : ndarray of shape (n_nodes,)
        Right-hand side of the split; zero at leaves and at categorical splits.
    values : ndarray of shape (n_nodes, n_outputs)
        Classification: weight of each class among the labelled training points of the node.
        Regression: the outputs of the node.
    labels : ndarray of int, shape (n_nodes,), or None
        Classification: the class number each node predicts. None for regression.
    category : ndarray of int, shape (n_nodes,)
        Feature of a categorical split, -1 elsewhere.
    left_categories : ndarray of bool, shape (n_nodes, n_categories)
        Codes that go left at a categorical split. A code beyond the table goes right.
    missing_left : ndarray of bool, shape (n_nodes,)
        Side of points whose value is missing.
    slopes : ndarray of shape (n_nodes, n_outputs, n_features), or None
        Linear leaves, of regression trees only: what a unit of each feature adds to each output. None for constant
        leaves. Like `values`, branch nodes have them too, for the case that they become leaves.
    probabilities : ndarray of shape (n_nodes, n_outputs), or None
        Of classification trees, once they are fitted: how likely each class is for other rows of the node, which is
        less sure than what its `values` say, as the splits were chosen to fit these.

    Examples
    --------
    A stump on the second of two features:

    >>> import numpy as np
    >>> tree = Tree.stump(weights=[0.0, 1.0], threshold=0.5, values=[[3.0, 0.0], [1.0, 4.0]])
    >>> tree.n_leaves, tree.depth, tree.labels.tolist()
    (2, 1, [0, 0, 1])

    A single linear leaf, which predicts 1 + 3 x:

    >>> from treewright.tree import predict_values
    >>> line = Tree.leaf([1.0], n_features=1, classification=False).with_leaves([[1.0]], None, slopes=[[[3.0]]])
    >>> predict_values(line, [[2.0]]).tolist()
    [[7.0]]
    """

    left: IntArray
    right: IntArray
    weights: FloatArray
    threshold: FloatArray
    values: FloatArray
    labels: IntArray | None = None
    category: IntArray = field(default=None)  # type: ignore[arg-type]
    left_categories: BoolArray = field(default=None)  # type: ignore[arg-type]
    missing_left: BoolArray = field(default=None)  # type: ignore[arg-type]
    slopes: FloatArray | None = None
    probabilities: FloatArray | None = None

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if value is not None:
                value = _exactly(name, value, _TYPES.get(name, np.float64))
            elif name not in _OPTIONAL:
                value = _without_categories(name, np.asarray(self.left).size)
            object.__setattr__(self, name, value)
        self._validate()
        self._clear_what_no_split_uses()
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if value is not None:
                value.setflags(write=False)

    # ------------------------------------------------------------------ construction

    @classmethod
    def leaf(cls, values: ArrayLike, n_features: int, classification: bool = True) -> Self:
        """Make a tree that is a single leaf."""
        table = np.atleast_2d(np.asarray(values, dtype=np.float64))
        return cls(
            left=np.array([LEAF]),
            right=np.array([LEAF]),
            weights=np.zeros((1, n_features)),
            threshold=np.zeros(1),
            values=table,
            labels=table.argmax(axis=1) if classification else None,
        )

    @classmethod
    def stump(cls, weights: ArrayLike, threshold: float, values: ArrayLike) -> Self:
        """Make a classification tree with one split; `values` are the class weights of its two leaves."""
        table = np.asarray(values, dtype=np.float64)
        table = np.vstack([table.sum(axis=0), table])
        w = np.asarray(weights, dtype=np.float64)
        return cls(
            left=np.array([1, LEAF, LEAF]),
            right=np.array([2, LEAF, LEAF]),
            weights=np.vstack([w, np.zeros((2, len(w)))]),
            threshold=np.array([threshold, 0.0, 0.0]),
            values=table,
            labels=table.argmax(axis=1),
        )

    @classmethod
    def from_heap(
        cls,
        split: ArrayLike,
        weights: ArrayLike,
        threshold: ArrayLike,
        values: ArrayLike,
        labels: ArrayLike | None,
    ) -> Self:
        """Make a compact tree from a complete one whose nodes are numbered 1, 2, 3, ... like a heap.

        Parameters
        ----------
        split : array-like of bool, shape (n_branches,)
            Whether heap node ``k + 1`` splits. What lies below a node that does not is cut off.
        weights, threshold : array-like
            Splits of the branch nodes, in heap order.
        values : array-like of shape (2 * n_branches + 1, n_outputs)
            Values of all heap nodes, in heap order.
        labels : array-like of int or None
            Labels of all heap nodes.
        """
        split = np.asarray(split, dtype=bool)
        order = [1]
        for k in order:  # grows while it is read: breadth first, parents before children
            if k <= len(split) and split[k - 1]:
                order += [2 * k, 2 * k + 1]
        number = {k: position for position, k in enumerate(order)}
        branch = np.array([k <= len(split) and bool(split[k - 1]) for k in order])
        heap = np.array(order)
        w, t = np.asarray(weights, dtype=np.float64), np.asarray(threshold, dtype=np.float64)
        inner = np.where(branch, heap - 1, 0)
        return cls(
            left=np.array([number[2 * k] if b else LEAF for k, b in zip(order, branch, strict=True)]),
            right=np.array([number[2 * k + 1] if b else LEAF for k, b in zip(order, branch, strict=True)]),
            weights=np.where(branch[:, None], w[inner] if len(w) else np.zeros((1, w.shape[1])), 0.0),
            threshold=np.where(branch, t[inner] if len(t) else 0.0, 0.0),
            values=np.asarray(values, dtype=np.float64)[heap - 1],
            labels=None if labels is None else np.asarray(labels)[heap - 1],
        )

    # ------------------------------------------------------------------ shape

    @property
    def n_nodes(self) -> int:
        """Number of nodes, leaves included."""
        return len(self.left)

    @property
    def n_features(self) -> int:
        """Number of features a point must have."""
        return int(self.weights.shape[1])

    @property
    def n_outputs(self) -> int:
        """Number of classes, or of regression outputs."""
        return int(self.values.shape[1])

    @property
    def is_leaf(self) -> BoolArray:
        """Mask of the leaves."""
        return np.asarray(self.left == LEAF)

    @property
    def leaves(self) -> IntArray:
        """Numbers of the leaves."""
        return np.flatnonzero(self.is_leaf)

    @property
    def branches(self) -> IntArray:
        """Numbers of the branch nodes."""
        return np.flatnonzero(~self.is_leaf)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int(self.is_leaf.sum())

    @property
    def is_classifier(self) -> bool:
        """Whether leaves carry class labels."""
        return self.labels is not None

    @property
    def parent(self) -> IntArray:
        """Parent of each node, -1 for the root."""
        parent = np.full(self.n_nodes, -1, dtype=np.int64)
        parent[self.left[self.branches]] = self.branches
        parent[self.right[self.branches]] = self.branches
        return parent

    @property
    def level(self) -> IntArray:
        """Depth of each node, 0 for the root."""
        level = np.zeros(self.n_nodes, dtype=np.int64)
        at, depth = np.zeros(1, dtype=np.int64), 0
        while len(at):
            level[at] = depth
            at = at[self.left[at] != LEAF]
            at, depth = np.concatenate([self.left[at], self.right[at]]), depth + 1
        return level

    @property
    def depth(self) -> int:
        """Depth of the deepest leaf, 0 for a single leaf."""
        return int(self.level.max())

    @property
    def heap_numbers(self) -> list[int]:
        """Number of each node in a complete binary tree whose root is 1."""
        heap = [1] * self.n_nodes
        for node in self.branches:
            heap[self.left[node]], heap[self.right[node]] = 2 * heap[node], 2 * heap[node] + 1
        return heap

    def shares(self) -> FloatArray:
        """Class shares seen in training at each node; a node without labelled points is sure of its label."""
        if self.labels is None:
            raise ValueError("a regression tree has no class shares")
        total = self.values.sum(axis=1, keepdims=True)
        certain = np.eye(self.n_outputs)[self.labels]
        return np.where(total > 0, self.values / np.where(total > 0, total, 1.0), certain)

    def likely(self) -> FloatArray:
        """How likely each class is at each node: `probabilities`, and of trees without them the shares."""
        return self.shares() if self.probabilities is None else self.probabilities

    # ------------------------------------------------------------------ new trees from this one

    def numerical(self) -> Self:
        """Return the tree itself; refuse one with categorical splits, for all that knows hyperplanes only."""
        categorical = np.flatnonzero(self.category >= 0)
        if len(categorical):
            raise InvalidInputError(
                f"the tree has categorical splits (the first at node {categorical[0]}), which this model does not "
                "know; give it a tree whose splits are numerical"
            )
        return self

    def with_leaves(self, values: ArrayLike, labels: ArrayLike | None, slopes: ArrayLike | None = None) -> Self:
        """Return the same splits with other node values, labels and slopes; without slopes leaves are constant.

        Probabilities were those of the old values, and are left out.
        """
        return replace(
            self,
            values=np.asarray(values),
            labels=None if labels is None else np.asarray(labels),
            slopes=None if slopes is None else np.asarray(slopes),
            probabilities=None,
        )

    def unscaled(self, scale: ArrayLike, shift: ArrayLike) -> Self:
        """Return the tree on `x` that this tree is on ``(x - shift) * scale``."""
        factor, origin = np.asarray(scale, dtype=np.float64), np.asarray(shift, dtype=np.float64)
        weights = self.weights * factor
        threshold = self.threshold + weights @ origin
        # A row on the threshold of a split by one feature goes as the rule says that divides by the weight.
        alone = np.count_nonzero(weights, axis=1) == 1
        weight = weights[alone].sum(axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            told = weight * (threshold[alone] / weight)
        threshold[alone] = np.where(np.isfinite(told), told, threshold[alone])
        if self.slopes is None:
            return replace(self, weights=weights, threshold=threshold)
        slopes = self.slopes * factor
        values = self.values - slopes @ origin
        return replace(self, weights=weights, threshold=threshold, values=values, slopes=slopes)

    @property
    def _is_breadth_first(self) -> bool:
        """Whether nodes are numbered level by level, from left to right."""
        branches = self.branches
        children = np.stack([self.left[branches], self.right[branches]], axis=1).ravel()
        return bool((children == np.arange(1, self.n_nodes)).all())

    def collapsed(self, keep: ArrayLike) -> Self:
        """Return the tree without branch nodes one of whose sides is not kept.

        Parameters
        ----------
        keep : array-like of bool, shape (n_nodes,)
            Nodes worth keeping, for instance those that a training point visits. A branch with one kept child
            is replaced by that child; a branch with none becomes a leaf.
        """
        keep = np.asarray(keep, dtype=bool)
        if keep.all() and self._is_breadth_first:
            return self

        def settle(node: int) -> int:
            while self.left[node] != LEAF and not (keep[self.left[node]] and keep[self.right[node]]):
                if keep[self.left[node]]:
                    node = int(self.left[node])
                elif keep[self.right[node]]:
                    node = int(self.right[node])
                else:
                    break
            return node

        order, children = [settle(0)], []
        for node in order:  # grows while it is read
            both = self.left[node] != LEAF and keep[self.left[node]] and keep[self.right[node]]
            children.append((len(order), len(order) + 1) if both else (LEAF, LEAF))
            if both:
                order += [settle(int(self.left[node])), settle(int(self.right[node]))]
        pairs = np.array(children)
        inner = (pairs[:, 0] != LEAF)[:, None]
        return type(self)(
            left=pairs[:, 0],
            right=pairs[:, 1],
            weights=np.where(inner, self.weights[order], 0.0),
            threshold=np.where(inner[:, 0], self.threshold[order], 0.0),
            values=self.values[order],
            labels=None if self.labels is None else self.labels[order],
            category=np.where(inner[:, 0], self.category[order], LEAF),
            left_categories=self.left_categories[order] & inner,
            missing_left=self.missing_left[order] & inner[:, 0],
            slopes=None if self.slopes is None else self.slopes[order],
            probabilities=None if self.probabilities is None else self.probabilities[order],
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        pairs = [(getattr(self, name), getattr(other, name)) for name in self.__dataclass_fields__]
        return all((a is None) == (b is None) and (a is None or np.array_equal(a, b)) for a, b in pairs)

    __hash__ = None  # type: ignore[assignment]

    # ------------------------------------------------------------------ validity

    def _validate(self) -> None:
        if self.left.ndim != 1:
            raise ValueError(f"left has shape {self.left.shape}, expected one entry a node")
        n = self.n_nodes
        if n == 0:
            raise ValueError("a tree needs at least one node")
        self._validate_shapes()
        # Searches make thousands of small trees: methods of arrays take half the time of numpy's functions.
        branch = self.left != LEAF
        if (branch != (self.right != LEAF)).any():
            raise ValueError("a node has only one child")
        parents = branch.nonzero()[0]
        children = np.concatenate([self.left[parents], self.right[parents]])
        if (children <= np.concatenate([parents, parents])).any() or (children >= n).any():
            raise ValueError("a child must have a larger number than its parent, within the tree")
        if len(children) != n - 1 or (np.bincount(children, minlength=n)[1:] != 1).any():
            raise ValueError("each node but the root must have exactly one parent")
        for name in ("weights", "threshold", "values", "slopes", "probabilities"):
            value = getattr(self, name)
            if value is not None and not np.isfinite(value).all():
                raise ValueError(f"{name} has values that are not finite")
        if self.probabilities is not None:
            sums = self.probabilities.sum(axis=1)
            if (self.probabilities < 0).any() or (np.abs(sums - 1.0) > SUM).any():
                raise ValueError("probabilities of a node must be from 0 on and sum to 1")
        if self.labels is not None and not 0 <= self.labels.min() <= self.labels.max() < self.n_outputs:
            raise ValueError(f"labels must be class numbers from 0 to {self.n_outputs - 1}")
        if not LEAF <= self.category.min() <= self.category.max() < self.n_features:
            raise ValueError(f"category must name a feature from 0 to {self.n_features - 1}, or be -1")
        both = ((self.category >= 0) & branch & (self.weights != 0.0).any(axis=1)).nonzero()[0]
        if len(both):
            raise ValueError(f"node {both[0]} has both a category and weights; a split is one or the other")

    def _clear_what_no_split_uses(self) -> None:
        """Zero what routing never reads, so that equal trees compare equal and a file need not hold it."""
        leaf = self.is_leaf
        self.category[leaf] = LEAF
        categorical = self.category >= 0
        self.weights[leaf] = 0.0
        self.threshold[leaf | categorical] = 0.0
        self.left_categories[~categorical] = False
        self.missing_left[leaf] = False

    def _validate_shapes(self) -> None:
        n = self.n_nodes
        for name in ("right", "threshold", "category", "missing_left", "labels"):
            value = getattr(self, name)
            if value is not None and value.shape != (n,):
                raise ValueError(f"{name} has shape {value.shape}, the tree has {n} nodes")
        for name in ("weights", "values", "left_categories"):
            value = getattr(self, name)
            if value.ndim != 2 or value.shape[0] != n:
                raise ValueError(f"{name} has shape {value.shape}, expected ({n}, ...)")
        if self.n_outputs == 0:
            raise ValueError("values needs at least one column: a class or an output")
        if self.slopes is not None:
            expected = (n, self.n_outputs, self.n_features)
            if self.slopes.shape != expected:
                raise ValueError(f"slopes has shape {self.slopes.shape}, expected {expected}")
            if self.labels is not None:
                raise ValueError("slopes are for regression trees, which have no labels")
        if self.probabilities is not None:
            if self.probabilities.shape != self.values.shape:
                raise ValueError(f"probabilities has shape {self.probabilities.shape}, expected {self.values.shape}")
            if self.labels is None:
                raise ValueError("probabilities are for classification trees, and this one has no labels")


def _without_categories(name: str, n_nodes: int) -> NDArray[Any]:
    """What a field is in a tree of `n_nodes` without splits on categories and without rows that miss values."""
    if name == "category":
        return np.full(n_nodes, LEAF, dtype=np.int64)
    return np.zeros((n_nodes, 0) if name == "left_categories" else n_nodes, dtype=bool)


def _exactly(name: str, value: ArrayLike, dtype: type[np.generic]) -> NDArray[Any]:
    """Copy of `value` as `dtype`; what is no whole number is refused where an integer is needed."""
    given = np.asarray(value)
    if dtype is np.int64 and given.dtype.kind == "f" and not np.array_equal(given, np.floor(given)):
        raise ValueError(f"{name} must be whole numbers")
    return np.array(given, dtype=dtype)


@dataclass(frozen=True)
class Shape:
    """Who is whose child in a tree: what stays while splits and values change."""

    left: IntArray
    right: IntArray
    parent: IntArray
    level: IntArray

    @classmethod
    def of(cls, tree: Tree) -> Shape:
        """Return the shape of a tree."""
        return cls(tree.left, tree.right, tree.parent, tree.level)

    @property
    def n_nodes(self) -> int:
        """Number of nodes, leaves included."""
        return len(self.left)

    @cached_property
    def branches(self) -> list[IntArray]:
        """Branch nodes of each level, the root's first."""
        inner = self.left >= 0
        return [np.flatnonzero(inner & (self.level == k)) for k in range(int(self.level.max()))]

    @cached_property
    def at_level(self) -> list[IntArray]:
        """For each level, that of the deepest leaves included: the node of that level above each node, -1 for none."""
        above, tables = np.arange(self.n_nodes), []
        for level in range(int(self.level.max()), -1, -1):
            tables.append(np.where(self.level >= level, above, -1))
            above = np.where(self.level[above] >= level, self.parent[above], above)
        return tables[::-1]

    def summed(self, table: FloatArray) -> FloatArray:
        """Add the rows of the leaves up to the nodes above them, in place."""
        for nodes in self.branches[::-1]:
            table[nodes] = table[self.left[nodes]] + table[self.right[nodes]]
        return table

    def reached(self, leaf: IntArray) -> BoolArray:
        """Whether a point passes each node, given the leaf of each point."""
        counts = np.bincount(leaf, minlength=self.n_nodes).astype(np.float64)[:, None]
        return np.asarray(self.summed(counts)[:, 0] > 0)
