"""What a formulation is: a mathematical model of a tree on given data, and nothing that solves it."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from treewright.program import FloatArray, IntArray, Program
from treewright.tree import Tree

__all__ = ["Formulation"]


@runtime_checkable
class Formulation(Protocol):
    """A model of a tree on given data.

    Any tree can be made feasible (:meth:`repair`) and then be written as a point of the program (:meth:`encode`),
    so that every search and every other model is a warm start. A model may have an attribute ``program_cells``, about
    how many non-zeros its program has, so that one that is too large is not written at all.
    """

    def build(self) -> Program:
        """Write the model as a program."""
        ...

    def decode(self, x: FloatArray) -> Tree:
        """Read the tree off a solution of the program."""
        ...

    def encode(self, tree: Tree) -> FloatArray:
        """Write a feasible tree as a point of the program."""
        ...

    def repair(self, tree: Tree) -> Tree:
        """Make any tree feasible for the model, changing as little as possible."""
        ...

    def objective(self, tree: Tree) -> float:
        """Objective of a tree, computed from the tree and the data alone; 0 or more."""
        ...

    def lower_bound(self) -> float:
        """A bound of the optimum that the structure of the data gives without solving."""
        ...

    def leaves_of(self, x: FloatArray) -> IntArray:
        """Heap number of the leaf that a solution sends each point to."""
        ...
