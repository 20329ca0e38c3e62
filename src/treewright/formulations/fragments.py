"""What several formulations share: the complete tree they place points in, and rows that route them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

from treewright.program import FloatArray, IntArray, ProgramBuilder
from treewright.program.builder import Term
from treewright.tree import BoolArray

__all__ = ["CompleteTree", "add_routing_rows", "inseparable_groups", "is_below", "swapped"]


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


def add_routing_rows(
    builder: ProgramBuilder,
    tree: CompleteTree,
    X: FloatArray,
    normals: IntArray,
    offsets: IntArray,
    places: IntArray,
    margins: tuple[float, float],
    big_m: FloatArray,
) -> None:
    r"""Add the rows that make a point's place in a leaf obey the splits on its path.

    With :math:`z_{it}` the place of point i, for every branch b

    .. math::
        a_b^\top x_i - o_b + m_{left} &\le M_i (1 - \sum_{t\ left\ of\ b} z_{it}), \\
        a_b^\top x_i - o_b - m_{right} &\ge -M_i (1 - \sum_{t\ right\ of\ b} z_{it}).

    Summing over the leaves of a side gives one row where the papers write one a leaf, and implies all of them.

    Parameters
    ----------
    builder : ProgramBuilder
        Where the rows go.
    tree : CompleteTree
        The tree.
    X : ndarray of shape (n_points, n_features)
        The points.
    normals : ndarray of int, shape (n_branches, n_features)
        Columns of the normals.
    offsets : ndarray of int, shape (n_branches,)
        Columns of the offsets.
    places : ndarray of int, shape (n_points, n_leaves)
        Columns of the places; points that always go together may share them.
    margins : (float, float)
        Distance to the split that is required on the left and on the right.
    big_m : ndarray of shape (n_points,) or (n_points, n_branches)
        What the left-hand side can reach at most.
    """
    n, p = X.shape
    big = np.broadcast_to(big_m[:, None] if big_m.ndim == 1 else big_m, (n, tree.n_branches))
    for b in range(tree.n_branches):
        columns = np.broadcast_to(normals[b], (n, p))
        offset = np.broadcast_to(offsets[b], (n, 1))
        M = big[:, b]
        for name, sign, leaves, margin in (
            ("left", 1.0, tree.left_of[b], margins[0]),
            ("right", -1.0, tree.right_of[b], margins[1]),
        ):
            terms: list[Term] = [(columns, sign * X), (offset, -sign), (places[:, leaves], M[:, None])]
            builder.add_rows(f"{name}[{b + 1}]", terms, upper=M - margin)


def inseparable_groups(X: FloatArray, distance: float, max_points: int = 20_000) -> IntArray:
    r"""Group points that no split with :math:`\lVert a \rVert_1 \le 1` and a gap of `distance` can part.

    Since :math:`|a^\top(x - x')| \le \lVert x - x' \rVert_\infty`, two points nearer than the gap go the same way at
    every node, and so does every chain of such points.

    Parameters
    ----------
    X : ndarray of shape (n_points, n_features)
        The points.
    distance : float
        The gap.
    max_points : int
        Above this many points only identical ones are grouped, which is valid but weaker.

    Returns
    -------
    ndarray of int, shape (n_points,)
        Group of each point, numbered by first appearance.

    Examples
    --------
    >>> inseparable_groups(np.array([[0.0], [0.5], [0.004]]), 0.005).tolist()
    [0, 1, 0]
    """
    _, first, same = np.unique(X, axis=0, return_index=True, return_inverse=True)
    same = same.reshape(-1)
    if len(X) <= max_points:
        distinct = X[first]
        # Slightly less than the gap, so that rounding never joins what a split could part.
        pairs = KDTree(distinct).query_pairs(distance * (1 - 1e-6), p=np.inf, output_type="ndarray")
        links = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(distinct),) * 2)
        same = connected_components(links, directed=False)[1][same]
    _, first, group = np.unique(same, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[group.reshape(-1)]
