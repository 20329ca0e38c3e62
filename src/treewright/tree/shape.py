"""Who is whose child in a tree: what stays while splits and values change."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from treewright.arrays import BoolArray, FloatArray, IntArray
from treewright.tree.structure import Tree

__all__ = ["Shape"]


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
