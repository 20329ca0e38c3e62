"""A complete tree of hyperplanes as searches move it: arrays over heap-numbered nodes, changed one node at a time.

Node b has ``f_b(x) = omega_b @ x - gamma_b`` and sends x left where ``f_b(x) <= 0``. A node with ``omega = 0`` and
``gamma = 1`` sends everything left, with ``gamma = -1`` everything right.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from treewright.arrays import BoolArray, FloatArray, IntArray
from treewright.tree.structure import Tree

__all__ = [
    "CompleteTree",
    "Planes",
    "is_below",
    "labels_on_either_side",
    "leaves_reached",
    "passes",
    "planes_errors",
    "swapped",
]


@dataclass(frozen=True)
class CompleteTree:
    """The complete binary tree of a depth: branch nodes 1..B, leaves B+1..2B+1, numbered like a heap.

    Arrays over branch nodes or leaves start at 0: branch ``k`` is heap node ``k + 1``, leaf ``k`` is ``B + k + 1``.

    Examples
    --------
    >>> tree = CompleteTree(2)
    >>> tree.n_branches, tree.n_leaves
    (3, 4)
    >>> tree.left_of.astype(int).tolist()  # leaves below the left side of each branch
    [[1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0]]
    """

    depth: int

    @property
    def n_branches(self) -> int:
        """Number of branch nodes."""
        return int(2**self.depth - 1)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int(2**self.depth)

    @cached_property
    def left_of(self) -> BoolArray:
        """Whether leaf ``t`` lies on the left of branch ``b``, shape (n_branches, n_leaves)."""
        return self._sides[0]

    @cached_property
    def right_of(self) -> BoolArray:
        """Whether leaf ``t`` lies on the right of branch ``b``, shape (n_branches, n_leaves)."""
        return self._sides[1]

    @cached_property
    def _sides(self) -> tuple[BoolArray, BoolArray]:
        left = np.zeros((self.n_branches, self.n_leaves), dtype=bool)
        right = left.copy()
        node = np.arange(self.n_leaves) + self.n_leaves
        for _ in range(self.depth):
            parent, came_right = node // 2, node % 2 == 1
            right[parent[came_right] - 1, np.flatnonzero(came_right)] = True
            left[parent[~came_right] - 1, np.flatnonzero(~came_right)] = True
            node = parent
        return left, right

    def rightmost_leaf(self, branch: int) -> int:
        """Heap number of the last leaf below heap node `branch`: where a node that does not split sends all."""
        node = branch
        while node <= self.n_branches:
            node = 2 * node + 1
        return node


def is_below(h: int, k: int) -> bool:
    """Whether heap node `h` is `k` or lies below it."""
    return h >> max(0, h.bit_length() - k.bit_length()) == k


def swapped(h: int, k: int) -> int:
    """Heap number of `h` once the two sides of `k`, with all below them, are exchanged.

    Examples
    --------
    >>> [swapped(h, 2) for h in (3, 4, 5, 8, 11)]
    [3, 5, 4, 10, 9]
    """
    if h <= k or not is_below(h, k):
        return h
    return h ^ (1 << (h.bit_length() - k.bit_length() - 1))


@dataclass(frozen=True)
class Planes:
    """Hyperplanes of all branch nodes of a complete tree, and the labels of its leaves.

    Attributes
    ----------
    omega : ndarray of shape (n_branches, n_features)
        Normals.
    gamma : ndarray of shape (n_branches,)
        Offsets.
    labels : ndarray of int, shape (n_leaves,)
        Class numbers of the leaves, from the left.
    """

    omega: FloatArray
    gamma: FloatArray
    labels: IntArray

    @property
    def shape(self) -> CompleteTree:
        """The complete tree."""
        return CompleteTree(len(self.labels).bit_length() - 1)

    def values(self, X: FloatArray) -> FloatArray:
        """Value of each point at each node, shape (n_points, n_branches)."""
        return np.asarray(X @ self.omega.T - self.gamma)

    def replaced(self, node: int, omega: FloatArray, gamma: float) -> Planes:
        """Return the planes with another hyperplane at `node` (from 0)."""
        all_omega, all_gamma = self.omega.copy(), self.gamma.copy()
        all_omega[node], all_gamma[node] = omega, gamma
        return Planes(all_omega, all_gamma, self.labels)

    def to_tree(self, n_classes: int) -> Tree:
        """Return the tree, with every node explicit."""
        n_branches = len(self.gamma)
        labels = np.concatenate([np.zeros(n_branches, dtype=np.int64), self.labels])
        values = np.zeros((2 * n_branches + 1, n_classes))
        return Tree.from_heap(np.ones(n_branches), self.omega, self.gamma, values, labels)

    @classmethod
    def from_tree(cls, tree: Tree, depth: int, n_classes: int) -> Planes:
        """Complete a tree of at most this depth; with two classes leaves are mirrored to alternate 0, 1.

        Where a branch ends early, nodes that send everything one way lead on to a leaf of its label.
        """
        shape = CompleteTree(depth)
        omega, gamma = np.zeros((shape.n_branches, tree.n_features)), np.ones(shape.n_branches)
        labels = np.arange(shape.n_leaves) % 2 if n_classes == 2 else np.zeros(shape.n_leaves, dtype=np.int64)
        assert tree.labels is not None
        todo = [(0, 1)]
        while todo:
            node, heap = todo.pop()
            label = int(tree.labels[node])
            if heap > shape.n_branches:
                labels[heap - shape.n_leaves] = labels[heap - shape.n_leaves] if n_classes == 2 else label
            elif tree.left[node] < 0:
                _send_all_to(label, heap, shape, gamma, labels, n_classes)
            else:
                left, right = int(tree.left[node]), int(tree.right[node])
                lowest = 2 * heap > shape.n_branches
                first, second = int(tree.labels[left]), int(tree.labels[right])
                if lowest and n_classes == 2 and first == second:
                    _send_all_to(first, heap, shape, gamma, labels, n_classes)
                    continue
                sign = -1.0 if lowest and n_classes == 2 and first > second else 1.0
                omega[heap - 1], gamma[heap - 1] = sign * tree.weights[node], sign * tree.threshold[node]
                todo += [(left, 2 * heap), (right, 2 * heap + 1)]
        return cls(omega, gamma, labels)


def _send_all_to(
    label: int, heap: int, shape: CompleteTree, gamma: FloatArray, labels: IntArray, n_classes: int
) -> None:
    """Make heap node `heap` and those on the way send everything to a leaf of `label`."""
    while 2 * heap <= shape.n_branches:
        gamma[heap - 1], heap = 1.0, 2 * heap
    right = n_classes == 2 and label == 1
    gamma[heap - 1] = -1.0 if right else 1.0
    if n_classes > 2:
        labels[[2 * heap - shape.n_leaves, 2 * heap + 1 - shape.n_leaves]] = label


def leaves_reached(values: FloatArray) -> IntArray:
    """Leaf (from 0) that each row of node values reaches."""
    n, n_branches = values.shape
    node = np.zeros(n, dtype=np.int64)
    rows = np.arange(n)
    for _ in range((n_branches + 1).bit_length() - 1):
        node = 2 * node + 1 + (values[rows, node] > 0)
    return node - n_branches


def passes(leaf: IntArray, node: int, shape: CompleteTree) -> tuple[BoolArray, BoolArray]:
    """Whether the way to each leaf passes branch `node` (from 0), and whether it goes left there."""
    left, right = shape.left_of[node][leaf], shape.right_of[node][leaf]
    return left | right, left


def labels_on_either_side(planes: Planes, node: int, values: FloatArray) -> tuple[IntArray, IntArray]:
    """Label that each row of node values would get on the left and on the right of `node`."""
    forced = values.copy()
    forced[:, node] = -1.0
    if_left = planes.labels[leaves_reached(forced)]
    forced[:, node] = 1.0
    return if_left, planes.labels[leaves_reached(forced)]


def planes_errors(planes: Planes, X: FloatArray, y: IntArray) -> tuple[FloatArray, IntArray]:
    """Least leaf error of each labelled point among the leaves of its class, and that leaf."""
    values = planes.values(X)
    to_left, to_right = np.maximum(0.0, 1.0 + values), np.maximum(0.0, 1.0 - values)
    shape = planes.shape
    error = to_left @ shape.left_of + to_right @ shape.right_of
    own = np.where(planes.labels[None, :] == y[:, None], error, np.inf)
    leaf = own.argmin(axis=1)
    least = own[np.arange(len(y)), leaf]
    # A class without a leaf: the point stays where it is, and cannot be right.
    lost = ~np.isfinite(least)
    leaf[lost] = leaves_reached(values[lost])
    return np.where(lost, 0.0, least), leaf
