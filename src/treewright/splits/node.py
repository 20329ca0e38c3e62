"""The problem of one node of a tree while all others are fixed, and what solves it."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.splits.points import Points, SplitRule

__all__ = ["Node", "NodeSolver"]


class Node(NamedTuple):
    """A branch node while all others are fixed.

    Attributes
    ----------
    number : int
        Its number in the tree.
    normal, threshold
        The hyperplane that it has; the normal of a subset of a category has a 1 at its feature.
    rows : ndarray of int
        The points that pass it.
    stake : ndarray
        What each of them loses on the left less what it loses on the right.
    goes_left : ndarray of bool
        Where they go now.
    lowest : bool
        Whether both children are leaves, which are refitted afterwards.
    rule : SplitRule
        The split that it has, of any kind.
    """

    number: int
    normal: FloatArray
    threshold: float
    rows: IntArray
    stake: FloatArray
    goes_left: BoolArray
    lowest: bool
    rule: SplitRule


class NodeSolver(Protocol):
    """What finds the split of a node, and what it charges for normals."""

    def price(self, normals: FloatArray) -> float:
        """What the normals of all nodes cost together; a row of zeros costs nothing, that of a subset has a 1."""

    def better(self, points: Points, node: Node, budget: Budget) -> SplitRule | tuple[FloatArray, float] | None:
        """A split of lower loss plus price than the node has; None where none is found.

        Normal and threshold are enough for a hyperplane on points without gaps.
        """
