r"""OCT: the optimal classification tree whose splits use one feature each (Bertsimas and Dunn 2017).

.. math:: \min\; \frac{1}{\hat L} \sum_{g,k} W_{gk}\, e_{gk} + \alpha \sum_b d_b

over splits by one ordinal column, :math:`a_b \in \{0, 1\}^p`, :math:`\sum_j a_{bj} = d_b`, places :math:`z` of points
in leaves and leaf labels :math:`c`. The columns (:mod:`treewright.splits.ordinal`) say which splits there are; a number
without gaps is one column, and then it is the printed model, with these equivalent, tighter parts:

* a feature is its ranks, spread evenly over [0, 1]: what a split does depends on the order of values alone, and the
  smallest gap, :math:`2\mu`, is as wide as it can be. Splits keep :math:`\mu` on both sides;
* one routing row a point, branch and side instead of one a leaf;
* equal points share their places; :math:`g` runs over the distinct ones;
* errors :math:`e_{gk} \ge z_{gt} - c_{kt}` of a group's class instead of the leaf errors with constant n;
* a leaf's use :math:`l_t` appears only where leaves have a smallest size.

A node that does not split sends all points right.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.exceptions import InvalidInputError
from treewright.optimize.formulation import DistinctPoints, RelativeErrors, with_min_leaf
from treewright.optimize.shared_rows import add_group_errors, add_leaf_labels, add_routing_rows, add_used_leaves
from treewright.solvers import Capability
from treewright.solvers.program import Program
from treewright.solvers.program_builder import ProgramBuilder
from treewright.splits.ordinal import OrdinalColumns
from treewright.splits.points import Points, Splits
from treewright.tree import Tree, counted, relabelled, side, weighted_error, without_idle_splits

__all__ = ["OCT", "repaired_oct_tree"]


@dataclass(frozen=True)
class OCT(DistinctPoints, RelativeErrors):
    """OCT on points of any kind.

    Parameters
    ----------
    X, y, weight, n_classes, depth, min_leaf, size
        See :class:`~treewright.optimize.formulation.RelativeErrors`. Values may be missing, NaN.
    complexity : float
        The price alpha of a split.
    n_levels : ndarray of int, shape (n_features,), or None
        Levels of each categorical feature, whose values are codes 0, 1, 2, ..., and 0 for a number; None where all are
        numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from treewright.solvers import get_solver
    >>> X, y = np.array([[0.0], [0.4], [0.6], [1.0]]), np.array([0, 1, 1, 0])
    >>> model = OCT(X, y, np.ones(4), n_classes=2, depth=2, complexity=0.1)
    >>> result = get_solver("highs").solve(model.build())
    >>> tree = model.decode(result.x)
    >>> model.objective(tree), tree.threshold[tree.branches].tolist()
    (0.2, [0.2, 0.8])
    """

    n_levels: IntArray | None = None
    needs: ClassVar[Capability] = Capability.LP | Capability.MIP

    def __post_init__(self) -> None:
        if self.n_levels is None:
            return
        codes = self.X[:, self.n_levels > 0]
        known = ~np.isnan(codes)
        most = np.broadcast_to(self.n_levels[self.n_levels > 0], codes.shape)
        if np.any(codes[known] != np.floor(codes[known])) or np.any((codes[known] < 0) | (codes[known] >= most[known])):
            raise InvalidInputError("categorical features must be codes 0, 1, ..., n_levels - 1, or NaN where missing")

    # ------------------------------------------------------------------ data as the program sees it

    @cached_property
    def columns(self) -> OrdinalColumns:
        """All splits there are, as cuts of ordinal columns."""
        return OrdinalColumns.of(self.X, self.y, self.weight, self.n_classes, self.n_levels)

    @property
    def margin(self) -> float:
        """Distance of all points from a split, on the scale of the program: half of the smallest gap between ranks."""
        return 0.5 / max(1, int(self.columns.n_ranks.max(initial=2)) - 1)

    @property
    def program_cells(self) -> int:
        """About how many non-zeros the program has, known before it is written."""
        n, p, n_leaves = len(self.X), len(self.columns.rank), self.tree.n_leaves
        return n * (2 * self.tree.n_branches * (p + 1) + (self.depth + 3) * n_leaves)

    # ------------------------------------------------------------------ build

    @cached_property
    def _program(self) -> Program:
        builder, tree, columns = ProgramBuilder(), self.tree, self.columns
        first = self._groups[0]
        z = builder.add_variables("z", (len(first), tree.n_leaves), upper=1, integer=True)
        used = None
        if self.min_leaf > self.sizes.min():
            used = add_used_leaves(builder, z, self.group_size, self.min_leaf, priority=10)
        c = add_leaf_labels(builder, self.n_classes, tree.n_leaves, used)
        d = builder.add_variables("d", tree.n_branches, upper=1, integer=True, cost=self.complexity, priority=30)
        a = builder.add_variables("a", (tree.n_branches, len(columns.rank)), upper=1, integer=True, priority=20)
        o = builder.add_variables("o", tree.n_branches, lower=-self.margin, upper=1)
        builder.add_rows("one_column", [(a, 1.0), (d, -1.0)], lower=0, upper=0)
        # A node that does not split has the lowest offset, so that the left margin sends every point right.
        builder.add_rows("offset", [(o, 1.0), (d, -1.0 - self.margin)], upper=-self.margin)
        child = np.arange(1, tree.n_branches)
        if len(child):
            builder.add_rows("parent_splits", [(d[child], 1.0), (d[(child - 1) // 2], -1.0)], upper=0)
        builder.add_rows("one_leaf", [(z, 1.0)], lower=1, upper=1)
        X = self._spread()[:, first].T
        reach = np.maximum(X.max(axis=1, initial=0.0) + 2 * self.margin, 1.0 + self.margin)
        add_routing_rows(builder, tree, X, a, o, z, (self.margin, self.margin), reach)
        add_group_errors(builder, z, c, self.group_weight, self.baseline)
        return builder.build()

    def _spread(self) -> FloatArray:
        """Ranks of each column spread over [0, 1]; shape (n_columns, n_points)."""
        columns = self.columns
        return columns.rank / (columns.n_ranks - 1.0)[:, None]

    # ------------------------------------------------------------------ decode, encode

    def decode(self, x: FloatArray) -> Tree:
        """Read the tree off a solution: thresholds are half-way between the points of their node."""
        value = self.build().value
        a, split, offset = value(x, "a"), value(x, "d") > 0.5, value(x, "o")
        column = np.argmax(a, axis=1) if a.shape[1] else np.zeros(len(a), dtype=np.int64)
        top = (self.columns.n_ranks[column] - 1) if a.shape[1] else np.ones(len(a))
        cut = np.where(split, np.floor(offset * top + 1e-9 * top), -1).astype(np.int64)
        tree = self.planted(np.where(split, column, -1), cut, np.argmax(value(x, "c"), axis=0))
        return counted(tree, self.X, self.y, self.weight)

    def planted(self, column: IntArray, cut: IntArray, labels: IntArray) -> Tree:
        """The tree with these cuts at the branches of a complete tree and these labels at its leaves.

        Parameters
        ----------
        column, cut : ndarray of int, shape (n_branches,)
            Column of each split, -1 for none: nothing below such a node splits. Ranks up to the cut go left.
        labels : ndarray of int, shape (n_leaves,)
            Class numbers; a node that does not split has that of the last leaf below it.
        """
        shape, n_branches = self.tree, len(column)
        number, n_nodes = np.arange(2 * n_branches + 1), 2 * n_branches + 1
        width = 0 if self.n_levels is None else int(self.n_levels.max(initial=0))
        splits = Splits(
            np.zeros((n_nodes, self.X.shape[1])),
            np.zeros(n_nodes),
            np.full(n_nodes, -1),
            np.zeros((n_nodes, width), dtype=bool),
            np.zeros(n_nodes, dtype=bool),
        )
        keep, members = np.ones(n_nodes, dtype=bool), {0: np.arange(len(self.X))}
        for node in range(n_branches):
            inside = members.pop(node, np.zeros(0, dtype=np.int64))
            if column[node] < 0:
                keep[[2 * node + 1, 2 * node + 2]] = False
                continue
            rank = self.columns.rank[column[node], inside]
            left = rank <= cut[node]
            above = None if left.all() else int(rank[~left].min())
            splits.put(node, self.columns.rule(int(column[node]), int(cut[node]), above))
            members[2 * node + 1], members[2 * node + 2] = inside[left], inside[~left]
        inner = number < n_branches
        children = np.where(inner, 2 * number + 1, -1), np.where(inner, 2 * number + 2, -1)
        tree = splits.tree(*children, np.zeros((n_nodes, self.n_classes)), labels[shape.last_leaf])
        return tree.collapsed(keep)

    def leaves_of(self, x: FloatArray) -> IntArray:
        """Heap number of the leaf that a solution sends each point to."""
        place = np.argmax(self.build().value(x, "z"), axis=1)
        return np.asarray(place[self.group] + self.tree.n_leaves)

    def encode(self, tree: Tree) -> FloatArray:
        """Write a tree, made feasible by :meth:`repair`, as a point of the program."""
        column, cut, leaf_of = self._cuts_of(self.repair(tree))
        n_leaves, n_columns = self.tree.n_leaves, len(self.columns.rank)
        z = np.zeros((len(self._groups[0]), n_leaves))
        z[self.group, leaf_of] = 1.0
        used = z.any(axis=0) if "l" in self.build().variables else np.ones(n_leaves, dtype=bool)
        weight = np.zeros((n_leaves, self.n_classes))
        np.add.at(weight, (leaf_of, self.y), self.weight)
        labels, split = np.argmax(weight, axis=1), column >= 0
        top = np.where(split, self.columns.n_ranks[column] - 1, 1) if n_columns else np.ones(len(column))
        group, klass = np.nonzero(self.group_weight)
        blocks = {
            "z": z,
            "c": (labels == np.arange(self.n_classes)[:, None]) & used,
            "d": split,
            "a": column[:, None] == np.arange(n_columns),
            "o": np.where(split, (cut + 0.5) / top, -self.margin),
            "e": labels[np.argmax(z, axis=1)][group] != klass,
            "l": used,
        }
        return self.build().point(blocks)

    def _cuts_of(self, tree: Tree) -> tuple[IntArray, IntArray, IntArray]:
        """Column and cut of each branch of the complete tree, -1 for none, and the leaf (from 0) of each point."""
        column, cut = np.full(self.tree.n_branches, -1), np.full(self.tree.n_branches, -1)
        leaf_of, last = np.zeros(len(self.X), dtype=np.int64), self.tree.last_leaf
        todo = [(0, 0, np.arange(len(self.X)))]
        while todo:
            node, place, inside = todo.pop()
            if tree.left[node] < 0:
                leaf_of[inside] = last[place]
                continue
            feature = tree.category[node] if tree.category[node] >= 0 else np.flatnonzero(tree.weights[node])[0]
            own = np.flatnonzero(self.columns.feature == feature)
            goes_left = side(tree, self.X[inside], node)
            found = self.columns.nearest(inside, goes_left, self.sizes[inside], own)
            assert found is not None and found.missed == 0
            column[place], cut[place] = found.column, found.cut
            children = [(int(tree.left[node]), inside[goes_left]), (int(tree.right[node]), inside[~goes_left])]
            for k, (child, part) in enumerate(reversed(children) if found.mirrored else children):
                todo.append((child, 2 * place + 1 + k, part))
        return column, cut, leaf_of

    # ------------------------------------------------------------------ any tree made feasible, and measured

    def repair(self, tree: Tree) -> Tree:
        """Make any tree feasible: splits by one feature, leaves large enough, depth kept, best labels, no idle splits.

        See :func:`treewright.models.oct.objective.repaired_oct_tree`.
        """
        return repaired_oct_tree(self, tree)

    def objective(self, tree: Tree) -> float:
        """Objective of a tree, computed from the tree and the data alone."""
        error = weighted_error(tree, self.X, self.y, self.weight)
        return error / self.baseline + self.complexity * len(tree.branches)


def repaired_oct_tree(model: OCT, tree: Tree) -> Tree:
    """The feasible OCT tree for `model` that `tree` is nearest to.

    From the root down, a threshold of one feature stays as it is, to the last bit, and so does a subset of levels that
    parts the points of its node as a cut of an ordinal column does. Any other split becomes the cut that sends the most
    rows where it sent them. Splits with all points on one side go, then those above leaves that are too small, and
    those below which all leaves have the same label.
    """
    tree = _comparable(model, tree)
    if tree.n_nodes == 1:
        return relabelled(tree, model.X, model.y, model.weight, model.n_classes)
    splits, points = Splits.of(tree, model.n_levels), Points(model.X, model.n_levels)
    left, right = tree.left.copy(), tree.right.copy()
    keep = np.ones(tree.n_nodes, dtype=bool)
    members: dict[int, IntArray] = {0: np.arange(len(model.X))}
    for node in tree.branches.tolist():
        inside = members.get(node)
        if inside is None or not len(inside):
            continue
        goes_left = points.sides(inside, splits.rule(node))
        mirrored, goes_left = _as_a_cut(model, splits, node, inside, goes_left)
        if mirrored:
            left[node], right[node] = right[node], left[node]
        members[int(left[node])], members[int(right[node])] = inside[goes_left], inside[~goes_left]
        keep[left[node]], keep[right[node]] = bool(goes_left.any()), not bool(goes_left.all())
    moved = splits.tree(left, right, tree.values, tree.labels).collapsed(keep)
    # No leaf is without points, and none is too small if no point is.
    large = with_min_leaf(model, moved, model.min_leaf) if model.min_leaf > model.sizes.min() else moved
    return without_idle_splits(large, model.X, model.y, model.weight, model.n_classes)


def _as_a_cut(model: OCT, splits: Splits, node: int, inside: IntArray, goes_left: BoolArray) -> tuple[bool, BoolArray]:
    """Change the split of a node to a cut of an ordinal column, if it is none; who goes left then."""
    used = np.flatnonzero(splits.normals[node])
    if splits.category[node] < 0 and len(used) == 1 and splits.normals[node, used[0]] == 1.0:
        return False, goes_left
    if goes_left.all() or not goes_left.any():
        return False, goes_left
    columns = model.columns
    own = np.flatnonzero(columns.feature == used[0]) if len(used) == 1 else None
    found = columns.nearest(inside, goes_left, model.sizes[inside], own)
    if found is None or (found.missed > 0 and own is not None):
        other = columns.nearest(inside, goes_left, model.sizes[inside])
        found = other if found is None or (other is not None and other.missed < found.missed) else found
    assert found is not None  # points that a split parts differ in a column
    if splits.category[node] >= 0 and found.missed == 0 and columns.feature[found.column] == splits.category[node]:
        return False, goes_left
    splits.put(node, columns.rule(found.column, found.cut))
    return found.mirrored, columns.rank[found.column, inside] <= found.cut


def _comparable(model: OCT, tree: Tree) -> Tree:
    """The tree cut off at the depth of the model; refused if it is about something else."""
    if tree.labels is None or tree.n_outputs != model.n_classes or tree.n_features != model.X.shape[1]:
        raise InvalidInputError(
            f"the tree has {tree.n_outputs} outputs and {tree.n_features} features, "
            f"the model {model.n_classes} classes and {model.X.shape[1]} features"
        )
    categorical = np.zeros(tree.n_features, dtype=bool) if model.n_levels is None else model.n_levels > 0
    by_level = tree.category[tree.category >= 0]
    if not categorical[by_level].all() or tree.weights[:, categorical].any():
        raise InvalidInputError("the tree splits a category of the model as a number, or a number as a category")
    return tree if tree.depth <= model.depth else tree.collapsed(tree.level <= model.depth)
