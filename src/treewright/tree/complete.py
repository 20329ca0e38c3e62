"""A completed tree of hyperplanes: arrays over heap-numbered nodes, as programs and searches see a tree.

Node b has ``f_b(x) = omega_b @ x - gamma_b`` and sends x left where ``f_b(x) <= 0``. A node with ``omega = 0`` and
``gamma = 1`` sends everything left, with ``gamma = -1`` everything right.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.tree.structure import Tree

__all__ = [
    "FREE",
    "CompleteTree",
    "Planes",
    "completed_leaves",
    "labels_on_either_side",
    "leaves_reached",
    "passes",
]

FREE = -1
"""Label of a leaf that no point reaches and that has none yet."""


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

    @property
    def left_of(self) -> BoolArray:
        """Whether leaf ``t`` lies on the left of branch ``b``, shape (n_branches, n_leaves)."""
        return _sides(self.depth)[0]

    @property
    def right_of(self) -> BoolArray:
        """Whether leaf ``t`` lies on the right of branch ``b``, shape (n_branches, n_leaves)."""
        return _sides(self.depth)[1]

    @property
    def last_leaf(self) -> IntArray:
        """Last leaf (from 0) below each node, branches and then leaves."""
        heap, level = self._nodes
        return ((heap + 1) << (self.depth - level)) - 1 - self.n_leaves

    def swapped(self, node: int) -> IntArray:
        """Position (from 0) of each node once the two sides of branch `node` (from 0) are exchanged with all below.

        Examples
        --------
        >>> CompleteTree(2).swapped(0).tolist(), CompleteTree(2).swapped(1).tolist()
        ([0, 2, 1, 5, 6, 3, 4], [0, 1, 2, 4, 3, 5, 6])
        """
        heap, level = self._nodes
        below = level - level[node]
        inside = (below > 0) & (heap >> np.maximum(below, 0) == node + 1)
        return np.where(inside, heap ^ (1 << np.maximum(below - 1, 0)), heap) - 1

    @property
    def _nodes(self) -> tuple[IntArray, IntArray]:
        """Heap number and level of each node."""
        heap = np.arange(1, 2 * self.n_leaves)
        return heap, np.repeat(np.arange(self.depth + 1), 2 ** np.arange(self.depth + 1))


@lru_cache(maxsize=16)
def _sides(depth: int) -> tuple[BoolArray, BoolArray]:
    """Whether each leaf lies left, and right, of each branch; kept, as searches ask for it all the time."""
    node = np.arange(2**depth) + 2**depth
    left, right = np.zeros((2, 2**depth - 1, 2**depth), dtype=bool)
    for _ in range(depth):
        parent, came_right = node // 2, node % 2 == 1
        right[parent[came_right] - 1, np.flatnonzero(came_right)] = True
        left[parent[~came_right] - 1, np.flatnonzero(~came_right)] = True
        node = parent
    left.setflags(write=False)
    right.setflags(write=False)
    return left, right


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
        Class numbers of the leaves, from the left; ``FREE`` where there is none yet.

    Examples
    --------
    A stump on a tree of depth 2: each leaf leads on to a leaf on the left of its own, the others are free.

    >>> planes = Planes.from_tree(Tree.stump([1.0], 0.5, [[1.0, 0.0], [0.0, 1.0]]), depth=2)
    >>> planes.gamma.tolist(), planes.labels.tolist()
    ([0.5, 1.0, 1.0], [0, -1, 1, -1])
    >>> planes.mirrored(0).gamma.tolist(), planes.mirrored(0).labels.tolist()
    ([-0.5, 1.0, 1.0], [1, -1, 0, -1])
    >>> planes.with_all_labels(2).gamma.tolist(), planes.with_all_labels(2).labels.tolist()
    ([0.5, 1.0, -1.0], [0, 1, 0, 1])
    """

    omega: FloatArray
    gamma: FloatArray
    labels: IntArray

    @property
    def shape(self) -> CompleteTree:
        """The complete tree."""
        return CompleteTree(len(self.labels).bit_length() - 1)

    # ------------------------------------------------------------------ from trees and back

    @classmethod
    def from_tree(cls, tree: Tree, depth: int, *, go_left: bool = True) -> Planes:
        """Complete a tree; what is below `depth` is cut off.

        A leaf above the last level is continued by nodes that send everything left (right if not `go_left`) to a leaf
        of its label. Leaves that are not reached so are free.
        """
        tree = tree.numerical() if tree.depth <= depth else tree.numerical().collapsed(tree.level <= depth)
        if tree.labels is None:
            raise ValueError("a regression tree has no labels")
        shape, branches = CompleteTree(depth), tree.branches
        omega = np.zeros((shape.n_branches, tree.n_features))
        gamma = np.full(shape.n_branches, 1.0 if go_left else -1.0)
        node = np.array(tree.heap_numbers)[branches] - 1
        omega[node], gamma[node] = tree.weights[branches], tree.threshold[branches]
        labels = np.full(shape.n_leaves, FREE, dtype=np.int64)
        labels[completed_leaves(tree, depth, go_left)] = tree.labels[tree.leaves]
        return cls(omega, gamma, labels)

    def to_tree(self, n_classes: int, split: BoolArray | None = None) -> Tree:
        """Return the tree, with every node explicit, or without what is below nodes that do not `split`.

        Nodes have no values yet and the label of the last leaf below them.
        """
        split = np.ones(len(self.gamma), dtype=bool) if split is None else split
        labels = self.labels[self.shape.last_leaf]
        return Tree.from_heap(split, self.omega, self.gamma, np.zeros((len(labels), n_classes)), labels)

    # ------------------------------------------------------------------ points

    def values(self, X: FloatArray) -> FloatArray:
        """Value of each point at each node, shape (n_points, n_branches)."""
        return np.asarray(X @ self.omega.T - self.gamma)

    def leaf_errors(self, X: FloatArray) -> FloatArray:
        r"""Leaf error of each point at each leaf (Bennett and Blue 1996), shape (n_points, n_leaves).

        A path that goes right at b asks for :math:`f_b(x) \ge 1`, one that goes left for :math:`f_b(x) \le -1`, and

        .. math:: LE(x, l) = \sum_{b\ right} [1 - f_b(x)]^+ + \sum_{b\ left} [1 + f_b(x)]^+ .

        Examples
        --------
        >>> planes = Planes(np.array([[1.0]]), np.zeros(1), np.array([0, 1]))
        >>> planes.leaf_errors(np.array([[-1.0], [0.5]])).tolist()
        [[0.0, 2.0], [1.5, 0.5]]
        """
        values = np.ascontiguousarray(self.values(X).T)
        error = np.zeros((1, len(X)))
        for level in range(self.shape.depth):
            f, above = values[2**level - 1 : 2 ** (level + 1) - 1], error
            error = np.empty((2 * len(f), len(X)))
            error[0::2] = above + np.maximum(0.0, 1.0 + f)
            error[1::2] = above + np.maximum(0.0, 1.0 - f)
        return error.T

    def own_errors(self, X: FloatArray, y: IntArray) -> tuple[FloatArray, IntArray]:
        """Least leaf error of each point among the leaves of its class, and that leaf; infinite where there is none."""
        error = np.where(self.labels == y[:, None], self.leaf_errors(X), np.inf)
        leaf = error.argmin(axis=1)
        return error[np.arange(len(y)), leaf], leaf

    # ------------------------------------------------------------------ other planes from these

    def replaced(self, node: int, omega: FloatArray, gamma: float) -> Planes:
        """Return the planes with another hyperplane at `node` (from 0)."""
        all_omega, all_gamma = self.omega.copy(), self.gamma.copy()
        all_omega[node], all_gamma[node] = omega, gamma
        return Planes(all_omega, all_gamma, self.labels)

    def mirrored(self, node: int) -> Planes:
        """Exchange the two sides of `node` (from 0) with all below them: every point keeps its label."""
        n = len(self.gamma)
        source = self.shape.swapped(node)
        turned = self._turned(np.arange(n) == node)
        return Planes(turned.omega[source[:n]], turned.gamma[source[:n]], self.labels[source[n:] - n])

    def rising(self) -> Planes:
        """Mirror the lowest splits whose labels fall from left to right."""
        pairs = self.labels.reshape(-1, 2)
        falls = np.zeros(len(self.gamma), dtype=bool)
        falls[-len(pairs) :] = pairs[:, 0] > pairs[:, 1]
        return replace(self._turned(falls), labels=np.sort(pairs, axis=1).ravel())

    def without_equal_siblings(self) -> Planes:
        """Let lowest splits between leaves of the same label send everything left; the leaf on the right is free."""
        pairs = self.labels.reshape(-1, 2).copy()
        same = np.flatnonzero((pairs[:, 0] == pairs[:, 1]) & (pairs[:, 0] != FREE))
        omega, gamma = self.omega.copy(), self.gamma.copy()
        lowest = same + len(gamma) // 2
        omega[lowest], gamma[lowest], pairs[same, 1] = 0.0, 1.0, FREE
        return Planes(omega, gamma, pairs.ravel())

    def with_all_labels(self, n_classes: int) -> Planes:
        """Label the free leaves: two classes alternate 0, 1, which mirrors lowest splits; else as the sibling, or 0."""
        planes = self.without_equal_siblings() if n_classes == 2 else self
        sibling = planes.labels.reshape(-1, 2)[:, ::-1].ravel()
        if n_classes == 2:
            wanted = np.where(sibling == FREE, np.arange(len(sibling)) % 2, 1 - sibling)
        else:
            wanted = np.maximum(sibling, 0)
        labelled = replace(planes, labels=np.where(planes.labels == FREE, wanted, planes.labels))
        return labelled.rising() if n_classes == 2 else labelled

    def _turned(self, nodes: BoolArray) -> Planes:
        """Exchange left and right at `nodes`; adding 0 keeps zeros positive."""
        sign = np.where(nodes, -1.0, 1.0)
        return Planes(sign[:, None] * self.omega + 0.0, sign * self.gamma + 0.0, self.labels)


def completed_leaves(tree: Tree, depth: int, go_left: bool = True) -> IntArray:
    """Leaf (from 0) of the completed tree that each leaf of a tree leads on to, see :meth:`Planes.from_tree`."""
    heap, short = np.array(tree.heap_numbers)[tree.leaves], depth - tree.level[tree.leaves]
    return (heap << short if go_left else ((heap + 1) << short) - 1) - 2**depth


def leaves_reached(values: FloatArray) -> IntArray:
    """Leaf of a completed tree (from 0) that each row of node values reaches."""
    n, n_branches = values.shape
    node = np.zeros(n, dtype=np.int64)
    rows = np.arange(n)
    for _ in range((n_branches + 1).bit_length() - 1):
        node = 2 * node + 1 + (values[rows, node] > 0)
    return node - n_branches


def passes(leaf: IntArray, node: int, shape: CompleteTree) -> tuple[BoolArray, BoolArray]:
    """Whether the way to each leaf of a completed tree passes branch `node` (from 0), and goes left there."""
    left, right = shape.left_of[node][leaf], shape.right_of[node][leaf]
    return left | right, left


def labels_on_either_side(planes: Planes, node: int, values: FloatArray) -> tuple[IntArray, IntArray]:
    """Label of a completed tree that each row of node values would get on the left and on the right of `node`."""
    forced = values.copy()
    forced[:, node] = -1.0
    if_left = planes.labels[leaves_reached(forced)]
    forced[:, node] = 1.0
    return if_left, planes.labels[leaves_reached(forced)]
