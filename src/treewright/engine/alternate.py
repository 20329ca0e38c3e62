r"""One way to improve a tree: all nodes of a depth at once, the deepest first, never worse.

With all other nodes fixed, a point that passes a branch node pays the loss of the leaf that it reaches on either side.
Only the difference matters, its *stake*. What split a node then takes, and what a normal costs, is the node solver's
affair (:class:`~treewright.splits.node.NodeSolver`); what leaves say and lose is that of the leaves
(:class:`~.leaves.Leaves`). Where splits charge the points that pass them, for being near say, what is charged further
down is part of the stake. Points of two nodes of one depth do not meet below, so these nodes are independent. Any order
in which children come before their parents gives the same tree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.engine.leaves import Leaves
from treewright.splits.node import Node, NodeSolver
from treewright.splits.points import Points, SplitRule, Splits
from treewright.tree import Tree
from treewright.tree.structure import Shape

__all__ = ["Alternation", "Toll"]

Toll = Callable[[IntArray, FloatArray], FloatArray]
"""Points that pass a hyperplane, and their positions beyond its threshold, NaN where a value is missing, to what each
of them is charged there."""


class _Change(NamedTuple):
    """A better split for a node."""

    node: int
    rule: SplitRule
    goes_left: BoolArray


class _Move(NamedTuple):
    """A split for a node, the points that cross it, and the leaves where they end then."""

    node: int
    rule: SplitRule
    points: IntArray
    leaf: IntArray


class Alternation:
    """A tree while its nodes are improved, and where its points are.

    Parameters
    ----------
    tree : Tree
        Where to start; without `n_levels` its splits are numerical. Its values do not matter.
    X : ndarray (C order) or csr_array of shape (n_points, n_features)
        Points, float64 or float32; values of dense ones may be missing, NaN.
    leaves : Leaves
        Targets, weights and the loss.
    solver : NodeSolver
        Finds splits, and charges for them.
    n_jobs : int
        Threads.
    n_levels : ndarray of int, shape (n_features,), or None
        Levels of each categorical feature, see :class:`~treewright.splits.points.Points`.
    toll : callable or None
        What hyperplanes charge the points that pass them and lack no value there. It depends on the lengths of normals:
        these stay as they are. None for nothing; normals have 2-norm 1 then.

    Attributes
    ----------
    leaf : ndarray of int, shape (n_points,)
        Leaf of each point, as a node number of the tree.
    loss, price : float
        The two parts of the objective: loss of the points, price of normals and leaves.

    Examples
    --------
    >>> from treewright.engine.leaves import MeanLeaves
    >>> from treewright.splits.sparse_nodes import SparseNodes
    >>> X = np.array([[0.1], [0.2], [0.8], [0.9]])
    >>> leaves = MeanLeaves(np.array([[0.0], [0.0], [1.0], [1.0]]), np.ones(4))
    >>> state = Alternation(Tree.stump([1.0], 0.85, [[0.0], [0.0]]), X, leaves, SparseNodes(alpha=0.1))
    >>> state.improve(Budget()), round(state.objective, 6)
    (True, 0.1)
    >>> state.retarget(MeanLeaves(np.array([[0.0], [2.0], [2.0], [2.0]]), np.ones(4)))
    >>> state.improve(Budget()), state.leaf.tolist()
    (True, [1, 2, 2, 2])
    """

    def __init__(
        self,
        tree: Tree,
        X: Any,
        leaves: Leaves,
        solver: NodeSolver,
        n_jobs: int = 1,
        n_levels: IntArray | None = None,
        toll: Toll | None = None,
    ) -> None:
        tree = tree.numerical() if n_levels is None else tree
        self.shape, self.points, self.leaves = Shape.of(tree), Points(X, n_levels), leaves
        self.solver, self.n_jobs, self.toll = solver, n_jobs, toll
        self.splits = splits = Splits.of(tree, n_levels)
        long = np.sqrt(np.einsum("ij,ij->i", splits.normals, splits.normals))
        still = long == 0
        long = np.where(still | (toll is not None), 1.0, long)
        splits.normals, splits.threshold = splits.normals / long[:, None], splits.threshold / long
        # What a zero normal is compared with: all points go one way.
        splits.threshold[still] = np.where(tree.threshold[still] >= 0, 1.0, -1.0)
        n = X.shape[0]
        self.everyone = np.arange(n)
        self.leaf = self._walk(self.everyone, np.zeros(n, dtype=np.int64))
        self.loss = self.price = np.inf
        self._refit()

    @property
    def objective(self) -> float:
        """Loss plus price."""
        return self.loss + self.price

    @property
    def normals(self) -> FloatArray:
        """Normals of the splits."""
        return self.splits.normals

    @property
    def threshold(self) -> FloatArray:
        """Thresholds of the splits."""
        return self.splits.threshold

    def tree(self) -> Tree:
        """The tree as it is now."""
        values, labels = self.leaves.table()
        return self.splits.tree(self.shape.left, self.shape.right, values, labels, self.leaves.slopes)

    def _refit(self) -> None:
        """Refit the leaves and sum up the objective."""
        self.leaves.refit(self.shape, self.leaf)
        self.losses = self._lost(self.everyone, np.zeros(len(self.leaf), dtype=np.int64), self.leaf)
        self.loss = float(self.losses.sum())
        self.price = self.solver.price(self.normals) + self.leaves.price

    def retarget(self, leaves: Leaves) -> None:
        """Give the points other targets; splits and what the node solver remembers stay."""
        self.leaves = leaves
        self.loss = self.price = np.inf
        self._refit()

    def improve(self, budget: Budget) -> bool:
        """Make a pass over the tree, the deepest nodes first; whether anything changed."""
        changed = False
        with Parallel(n_jobs=self.n_jobs, backend="threading") as parallel:
            for level in range(len(self.shape.branches) - 1, -1, -1):
                if budget.over:
                    break
                changed |= self._improve_level(level, budget, parallel)
        return changed

    def _walk(self, rows: IntArray, start: IntArray) -> IntArray:
        return self.points.walk(self.shape, self.splits, rows, start)

    def _lost(self, rows: IntArray, start: IntArray, leaf: IntArray) -> FloatArray:
        """What points lose that enter at `start` and end in `leaf`: there, and by what splits charge on the way."""
        lost = self.leaves.loss(rows, leaf)
        if self.toll is None:
            return lost
        for level in range(len(self.shape.branches)):
            at = self.shape.at_level[level][leaf]
            at = np.where(self.shape.level[start] <= level, at, -1)
            for node in self.shape.branches[level]:
                part = np.flatnonzero(at == node)
                if len(part) and self.splits.category[node] < 0 and np.any(self.normals[node]):
                    beyond = self.points.levels(rows[part], self.normals[node]) - self.threshold[node]
                    lost[part] += self.toll(rows[part], beyond)
        return lost

    def _improve_level(self, level: int, budget: Budget, parallel: Parallel) -> bool:
        """Improve the branches of one level; whether any changed."""
        shape = self.shape
        at = shape.at_level[level][self.leaf]
        order = np.argsort(at, kind="stable")
        order = order[(at[order] >= 0) & (shape.left[at[order]] >= 0)]  # others are in leaves of this level or above
        at = at[order]
        goes_left = shape.at_level[level + 1][self.leaf[order]] == shape.left[at]
        far = np.where(goes_left, shape.right[at], shape.left[at])
        other = self._walk(order, far)
        lost, here = self._lost(order, far, other), self.losses[order]
        if self.toll is not None:  # what is charged at this level or above is not at stake
            here = self._lost(order, np.where(goes_left, shape.left[at], shape.right[at]), self.leaf[order])
        stake = np.where(goes_left, here - lost, lost - here)  # left minus right
        bounds = np.searchsorted(at, [shape.branches[level], shape.branches[level] + 1])
        parts = [slice(low, high) for low, high in bounds.T]
        jobs = zip(shape.branches[level].tolist(), parts, strict=True)
        found = parallel(
            delayed(self._change)(node, order[part], stake[part], goes_left[part], budget) for node, part in jobs
        )
        moves = list[_Move]()
        for change, part in zip(found, parts, strict=True):
            if change is not None:
                crossed = change.goes_left != goes_left[part]
                moves.append(_Move(change.node, change.rule, order[part][crossed], other[part][crossed]))
        if not moves:
            return False
        return self._made(moves) or (len(moves) > 1 and any([self._made([move]) for move in moves]))

    def _made(self, moves: list[_Move]) -> bool:
        """Make changes of one level; whether the objective has not risen, else all is as it was.

        What a node solver counts and what a walk of the points says may differ where points lie on splits but for
        rounding, as with columns that a value far off squeezes.
        """
        before, leaf, splits = self.objective, self.leaf.copy(), self.splits.copied()
        for move in moves:
            self.splits.put(move.node, move.rule)
            self.leaf[move.points] = move.leaf
        self._refit()
        if self.objective <= before + 1e-9 * max(1.0, before):
            return True
        self.splits, self.leaf = splits, leaf
        self._refit()
        return False

    def _change(
        self, number: int, rows: IntArray, stake: FloatArray, goes_left: BoolArray, budget: Budget
    ) -> _Change | None:
        """What the solver would change at a node, and where its points go then."""
        children = [self.shape.left[number], self.shape.right[number]]
        lowest = bool(np.all(self.shape.left[children] < 0))
        rule = self.splits.rule(number)
        node = Node(number, rule.normal, rule.threshold, rows, stake, goes_left, lowest, rule)
        found = self.solver.better(self.points, node, budget)
        if found is None:
            return None
        rule = SplitRule(*found)
        return _Change(number, rule, self.points.sides(rows, rule))
