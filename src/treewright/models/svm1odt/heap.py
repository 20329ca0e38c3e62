"""A complete tree whose splits are hyperplanes or sets of levels: arrays over heap-numbered nodes.

It is to SVM1-ODT what :class:`treewright.tree.complete.Planes` is to models that know hyperplanes only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.tree import Tree
from treewright.tree.complete import CompleteTree

__all__ = ["HeapTree", "mirrored_heap_tree"]

S = TypeVar("S", bound=np.generic)


@dataclass(frozen=True)
class HeapTree:
    """Splits of all branch nodes of a complete SVM1-ODT tree, and the labels of its leaves.

    Attributes
    ----------
    h : ndarray of shape (n_branches, n_features)
        Normals; zero where a node does not split (and at categorical splits).
    g : ndarray of shape (n_branches,)
        Offsets; a node with ``h = 0`` sends everything left with ``g = 1`` and right with ``g = -1``.
    category : ndarray of int, shape (n_branches,)
        Feature of a categorical split, -1 elsewhere.
    left_categories : ndarray of bool, shape (n_branches, n_categories)
        Levels that go left at a categorical split.
    missing_left : ndarray of bool, shape (n_branches,)
        Side of points whose value is missing.
    labels : ndarray of int, shape (n_leaves,)
        Class numbers of the leaves, from the left.
    """

    h: FloatArray
    g: FloatArray
    category: IntArray
    left_categories: BoolArray
    missing_left: BoolArray
    labels: IntArray

    @classmethod
    def from_tree(cls, tree: Tree, depth: int) -> HeapTree:
        """Complete a tree of at most that depth whose labels rise at its lowest splits.

        A leaf above the last level leads on to the right, and at the lowest level to the left if it has label 0, so
        that its sibling can have a lower label on the left or a higher one on the right.
        """
        assert tree.labels is not None
        shape, branches = CompleteTree(depth), tree.branches
        h, g = np.zeros((shape.n_branches, tree.n_features)), np.full(shape.n_branches, -1.0)
        category = np.full(shape.n_branches, -1)
        left_categories = np.zeros((shape.n_branches, tree.left_categories.shape[1]), dtype=bool)
        missing_left = np.zeros(shape.n_branches, dtype=bool)
        heap = np.array(tree.heap_numbers)
        at = heap[branches] - 1
        h[at], g[at] = tree.weights[branches], tree.threshold[branches]
        category[at], left_categories[at] = tree.category[branches], tree.left_categories[branches]
        missing_left[at] = tree.missing_left[branches]
        g[category >= 0] = 0.0
        labels = np.tile([0, 1] if tree.n_outputs > 1 else [0, 0], shape.n_leaves // 2)
        for leaf in tree.leaves:
            node, label = heap[leaf], tree.labels[leaf]
            while 2 * node < shape.n_leaves:
                node = 2 * node + 1
            if node < shape.n_leaves:
                g[node - 1] = 1.0 if label == 0 else -1.0
                node = 2 * node + (label > 0)
            labels[node - shape.n_leaves] = label
        return cls(h, g, category, left_categories, missing_left, labels)

    def to_tree(self, n_classes: int) -> Tree:
        """Return the tree, with every node explicit; nodes have no values yet and the label of the last leaf below."""
        n_leaves = len(self.labels)
        k = np.arange(2 * n_leaves - 1)
        leaf = k >= n_leaves - 1

        def padded(table: NDArray[S], value: float) -> NDArray[S]:
            return np.concatenate([table, np.full((n_leaves, *table.shape[1:]), value, dtype=table.dtype)])

        return Tree(
            left=np.where(leaf, -1, 2 * k + 1),
            right=np.where(leaf, -1, 2 * k + 2),
            weights=padded(self.h, 0.0),
            threshold=padded(self.g, 0.0),
            values=np.zeros((len(k), n_classes)),
            labels=self.labels[CompleteTree(n_leaves.bit_length() - 1).last_leaf],
            category=padded(self.category, -1),
            left_categories=padded(self.left_categories, 0.0),
            missing_left=padded(self.missing_left, 0.0),
        )


def mirrored_heap_tree(tree: Tree, nodes: BoolArray) -> Tree:
    """Exchange the sides of SVM1-ODT `nodes` with all below: every point with known levels keeps its leaf.

    Examples
    --------
    >>> stump = Tree.stump(weights=[1.0], threshold=0.3, values=[[2.0, 0.0], [0.0, 2.0]])
    >>> turned = mirrored_heap_tree(stump, np.array([True, False, False]))
    >>> float(turned.threshold[0]), turned.left.tolist(), turned.right.tolist()
    (-0.3, [2, -1, -1], [1, -1, -1])
    """
    sign = np.where(nodes, -1.0, 1.0)
    return replace(
        tree,
        left=np.where(nodes, tree.right, tree.left),
        right=np.where(nodes, tree.left, tree.right),
        weights=sign[:, None] * tree.weights + 0.0,  # adding 0 keeps zeros positive
        threshold=sign * tree.threshold + 0.0,
        left_categories=tree.left_categories ^ nodes[:, None],
        missing_left=tree.missing_left ^ nodes,
    )
