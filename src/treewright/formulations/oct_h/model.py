r"""OCT-H: the optimal classification tree with hyperplane splits (Bertsimas and Dunn 2017).

.. math:: \min\; \frac{1}{\hat L} \sum_{g,k} W_{gk}\, e_{gk} + \alpha \sum_{b,j} s_{bj}

over splits :math:`a_b^\top x < o_b`, :math:`\lVert a_b \rVert_1 \le d_b`, places :math:`z` of points in leaves and leaf
labels :math:`c`. It is the printed model with these equivalent, tighter parts:

* features are centred, so that the constants of the routing rows are about 1 instead of 2, each its point's own;
* one routing row a point, branch and side instead of one a leaf;
* points nearer than the margin :math:`\mu` (which nothing can part) share their places; :math:`g` runs over groups;
* errors :math:`e_{gk} \ge z_{gt} - c_{kt}` of a group's class instead of the leaf errors with constant n;
* a leaf's use :math:`l_t` and a split's use :math:`d_b` appear only where leaf size or complexity need them;
* mirrored trees are excluded: the first group goes right at the root, leaf labels rise at the lowest splits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from treewright.arrays import FloatArray, IntArray
from treewright.formulations.fragments import add_routing_rows, inseparable_groups
from treewright.formulations.oct_h.repair import GAP_TOLERANCE, repaired
from treewright.program import Program, ProgramBuilder
from treewright.tree import Tree, decision_path, route, side
from treewright.tree.complete import CompleteTree, is_below, swapped
from treewright.tree.measure import oct_h_objective

__all__ = ["OCTH"]

Splits = dict[int, tuple[FloatArray, float]]
"""Normal and offset of the splits by heap number."""


@dataclass(frozen=True)
class OCTH:
    """OCT-H on given data.

    Parameters
    ----------
    X : ndarray of shape (n_points, n_features)
        Points with features in [0, 1].
    y : ndarray of int, shape (n_points,)
        Class numbers.
    weight : ndarray of shape (n_points,)
        Weights of the errors.
    n_classes : int
        Number of classes.
    depth : int
        Depth of the tree.
    complexity : float
        The price alpha of a feature in a split.
    min_leaf : float
        Smallest sum of `size` in a leaf that is used.
    margin : float
        mu, the gap between the two sides of a split.
    size : ndarray of shape (n_points,) or None
        How many rows a point stands for in `min_leaf`; 1 each by default.

    Examples
    --------
    >>> import numpy as np
    >>> from treewright.solvers import get_solver
    >>> X, y = np.array([[0.0], [0.4], [0.6], [1.0]]), np.array([0, 1, 1, 0])
    >>> model = OCTH(X, y, np.ones(4), n_classes=2, depth=2)
    >>> result = get_solver("highs").solve(model.build())
    >>> tree = model.decode(result.x)
    >>> model.objective(tree)
    0.0
    """

    X: FloatArray
    y: IntArray
    weight: FloatArray
    n_classes: int
    depth: int = 2
    complexity: float = 0.0
    min_leaf: float = 1.0
    margin: float = 0.005
    size: FloatArray | None = None

    # ------------------------------------------------------------------ data as the program sees it

    @cached_property
    def tree(self) -> CompleteTree:
        """The complete tree that points are placed in."""
        return CompleteTree(self.depth)

    @cached_property
    def sizes(self) -> FloatArray:
        """Rows that each point stands for."""
        return np.ones(len(self.X)) if self.size is None else self.size

    @cached_property
    def group(self) -> IntArray:
        """Group of each point; points of a group cannot be parted, not even by a split at the end of the tolerance."""
        return inseparable_groups(self.X, self.margin - GAP_TOLERANCE)

    @cached_property
    def group_weight(self) -> FloatArray:
        """Weight of each class in each group, shape (n_groups, n_classes)."""
        table = np.zeros((int(self.group.max()) + 1, self.n_classes))
        np.add.at(table, (self.group, self.y), self.weight)
        return table

    @cached_property
    def group_size(self) -> FloatArray:
        """Rows in each group."""
        return np.asarray(np.bincount(self.group, weights=self.sizes), dtype=np.float64)

    @cached_property
    def baseline(self) -> float:
        """Error of the majority class, by which errors are divided (1 if there is none)."""
        by_class = np.bincount(self.y, self.weight, self.n_classes)
        return float(by_class.sum() - by_class.max()) or 1.0

    @cached_property
    def program_cells(self) -> int:
        """About how many non-zeros the program has, known before it is written."""
        (n, p), n_leaves = self.X.shape, self.tree.n_leaves
        return n * (2 * self.tree.n_branches * (p + 1) + (self.depth + 3) * n_leaves)

    # ------------------------------------------------------------------ build

    def build(self) -> Program:
        """Write the model as a program (once; later calls return the same)."""
        return self._program

    @cached_property
    def _program(self) -> Program:
        builder, tree = ProgramBuilder(), self.tree
        n_groups = len(self.group_weight)
        z = builder.add_variables("z", (n_groups, tree.n_leaves), upper=1, integer=True)
        c = builder.add_variables("c", (self.n_classes, tree.n_leaves), upper=1, integer=True, priority=10)
        d = builder.add_variables(
            "d",
            tree.n_branches,
            lower=0.0 if self.complexity > 0 else 1.0,
            upper=1,
            integer=True,
            priority=20,
        )
        a, o = self._add_splits(builder, d)
        builder.add_rows("one_leaf", [(z, 1.0)], lower=1, upper=1)
        reach = np.abs(self.X - 0.5).max(axis=1) + 0.5 + self.margin
        add_routing_rows(builder, tree, self.X - 0.5, a, o, z[self.group], (self.margin, 0.0), reach)
        self._add_leaves(builder, z, c)
        self._add_errors(builder, z, c)
        self._add_symmetry_breaking(builder, z, c)
        return builder.build()

    def _add_splits(self, builder: ProgramBuilder, d: IntArray) -> tuple[IntArray, IntArray]:
        """Normals with ``|a|_1 <= d``, offsets within the reach of centred points, prices of used features."""
        n_branches, p = len(d), self.X.shape[1]
        a = builder.add_variables("a", (n_branches, p), lower=-1, upper=1)
        size = builder.add_variables("abs_a", (n_branches, p), upper=1)
        o = builder.add_variables("o", n_branches, lower=-0.5, upper=0.5 + self.margin)
        flat, cover = a.ravel(), size.ravel()
        builder.add_rows("abs_above", [(flat, 1.0), (cover, -1.0)], upper=0)
        builder.add_rows("abs_below", [(flat, -1.0), (cover, -1.0)], upper=0)
        builder.add_rows("norm", [(size, 1.0), (d, -1.0)], upper=0)
        if self.complexity > 0:
            s = builder.add_variables("s", (n_branches, p), upper=1, integer=True, cost=self.complexity)
            builder.add_rows("used_feature", [(cover, 1.0), (s.ravel(), -1.0)], upper=0)
            builder.add_rows("used_split", [(s.ravel(), 1.0), (np.repeat(d, p), -1.0)], upper=0)
            builder.add_rows("split_uses", [(d, 1.0), (s, -1.0)], upper=0)
            # A node that does not split has o = 0, so that the left margin sends every point right.
            builder.add_rows("offset_above", [(o, 1.0), (d, -0.5 - self.margin)], upper=0)
            builder.add_rows("offset_below", [(o, -1.0), (d, -0.5)], upper=0)
            child = np.arange(1, n_branches)
            if len(child):
                builder.add_rows("parent_splits", [(d[child], 1.0), (d[(child - 1) // 2], -1.0)], upper=0)
        return a, o

    def _add_leaves(self, builder: ProgramBuilder, z: IntArray, c: IntArray) -> None:
        """One label a leaf; with a minimum size also the leaf's use."""
        if self.min_leaf <= self.sizes.min():
            builder.add_rows("one_label", [(c.T, 1.0)], lower=1, upper=1)
            return
        n_groups, n_leaves = z.shape
        used = builder.add_variables("l", n_leaves, upper=1, integer=True, priority=10)
        builder.add_rows("one_label", [(c.T, 1.0), (used, -1.0)], lower=0, upper=0)
        builder.add_rows("leaf_is_used", [(z.ravel(), 1.0), (np.tile(used, n_groups), -1.0)], upper=0)
        builder.add_rows("min_leaf", [(z.T, self.group_size), (used, -self.min_leaf)], lower=0)

    def _add_errors(self, builder: ProgramBuilder, z: IntArray, c: IntArray) -> None:
        """Errors of each class of each group: e >= z - c in every leaf, and all but one class of a group are wrong."""
        group, klass = np.nonzero(self.group_weight)
        e = builder.add_variables("e", len(group), upper=1, cost=self.group_weight[group, klass] / self.baseline)
        n_leaves = z.shape[1]
        terms = [(np.repeat(e, n_leaves), -1.0), (z[group].ravel(), 1.0), (c[klass].ravel(), -1.0)]
        builder.add_rows("error", terms, upper=0)
        table = np.full(self.group_weight.shape, -1)
        table[group, klass] = e
        several = np.flatnonzero((self.group_weight > 0).sum(axis=1) > 1)
        if len(several):
            columns = table[several]
            present = columns >= 0
            builder.add_rows(
                "one_class_right",
                [(np.where(present, columns, 0), present.astype(float))],
                lower=present.sum(axis=1) - 1,
            )

    def _add_symmetry_breaking(self, builder: ProgramBuilder, z: IntArray, c: IntArray) -> None:
        """Of a tree and its mirror images keep one."""
        tree = self.tree
        builder.add_rows("first_goes_right", [(z[:1, tree.left_of[0]], 1.0)], upper=0)
        number = np.arange(1.0, self.n_classes + 1)
        left, right = c[:, 0::2].T, c[:, 1::2].T
        if self.depth > 1:  # at depth 1 the root is the lowest split and has been dealt with
            builder.add_rows("labels_rise", [(left, number), (right, -number)], upper=0)

    # ------------------------------------------------------------------ decode, encode

    def decode(self, x: FloatArray) -> Tree:
        """Read the tree off a solution: the threshold lies in the middle of the margin."""
        value = self.build().value
        a, o, d = value(x, "a"), value(x, "o"), value(x, "d") > 0.5
        a = np.where(np.abs(a) > 1e-9, a, 0.0) if self.complexity <= 0 else np.where(value(x, "s") > 0.5, a, 0.0)
        threshold = o - self.margin / 2 + 0.5 * a.sum(axis=1)
        heap = self.leaves_of(x)
        tree, n_nodes = self.tree, 2 * self.tree.n_branches + 1
        counts = np.zeros((n_nodes, self.n_classes))
        np.add.at(counts, (heap - 1, self.y), self.weight)
        labels = np.zeros(n_nodes, dtype=np.int64)
        labels[tree.n_branches :] = np.argmax(value(x, "c"), axis=0)
        for k in range(tree.n_branches - 1, -1, -1):
            counts[k] = counts[2 * k + 1] + counts[2 * k + 2]
            labels[k] = np.argmax(counts[k])
        fallback = [tree.rightmost_leaf(k + 1) for k in range(tree.n_branches)]
        return Tree.from_heap(d, a, threshold, counts, labels, fallback)

    def leaves_of(self, x: FloatArray) -> IntArray:
        """Heap number of the leaf that a solution sends each point to."""
        place = np.argmax(self.build().value(x, "z"), axis=1)
        return np.asarray(place[self.group] + self.tree.n_leaves)

    def encode(self, tree: Tree) -> FloatArray:
        """Write a tree, made feasible by :meth:`repair`, as a point of the program."""
        splits, leaf_of = self._mirrored(*self._on_complete_tree(self.repair(tree)))
        complete, program = self.tree, self.build()
        z = np.zeros((len(self.group_weight), complete.n_leaves))
        z[self.group, leaf_of - complete.n_leaves] = 1.0
        label, used = self._labels(leaf_of)
        a, o = np.zeros((complete.n_branches, self.X.shape[1])), np.zeros(complete.n_branches)
        d = np.zeros(complete.n_branches)
        for k, (normal, offset) in splits.items():
            a[k - 1], o[k - 1], d[k - 1] = normal, offset, 1.0
        if self.complexity <= 0:  # every node splits in name; one that does not sends all to the right
            o[d == 0], d[:] = -0.5, 1.0
        c = np.zeros((self.n_classes, complete.n_leaves))
        c[label, np.arange(complete.n_leaves)] = used
        group, klass = np.nonzero(self.group_weight)
        wrong = label[np.argmax(z, axis=1)][group] != klass
        blocks = {
            "z": z,
            "c": c,
            "d": d,
            "a": a,
            "abs_a": np.abs(a),
            "o": o,
            "e": wrong,
            "l": used,
            "s": a != 0,
        }
        x = np.zeros(program.n_columns)
        for name, columns in program.variables.items():
            x[columns] = blocks[name]
        return x

    def _on_complete_tree(self, tree: Tree) -> tuple[Splits, IntArray]:
        """Splits of a repaired tree by heap number, centred, and the heap leaf of each point."""
        heap, leaf_of = tree.heap_numbers, route(tree, self.X)
        path = decision_path(tree, self.X).tocsc()
        splits: Splits = {}
        for node in tree.branches:
            passing = path.indices[path.indptr[node] : path.indptr[node + 1]]
            normal = tree.weights[node] / np.abs(tree.weights[node]).sum()
            level = (self.X[passing] - 0.5) @ normal
            goes_left = side(tree, self.X[passing], int(node))
            middle = (level[goes_left].max() + level[~goes_left].min() + self.margin) / 2
            splits[heap[node]] = (normal, float(middle))
        last = np.array([self.tree.rightmost_leaf(h) for h in heap])
        return splits, last[leaf_of]

    def _mirrored(self, splits: Splits, leaf_of: IntArray) -> tuple[Splits, IntArray]:
        """Mirror splits until the symmetry-breaking rows hold."""
        if 1 in splits and is_below(int(leaf_of[self.group == 0][0]), 2):
            splits, leaf_of = self._mirror(splits, leaf_of, 1)
        if self.depth > 1:
            first_lowest = self.tree.n_leaves // 2
            label, _ = self._labels(leaf_of)
            for k in [k for k in splits if k >= first_lowest]:
                left, right = label[2 * k - self.tree.n_leaves], label[2 * k + 1 - self.tree.n_leaves]
                if left > right:
                    splits, leaf_of = self._mirror(splits, leaf_of, k)
        return splits, leaf_of

    def _mirror(self, splits: Splits, leaf_of: IntArray, k: int) -> tuple[Splits, IntArray]:
        """Swap the two sides of heap node `k` with all that lies below them."""
        normal, offset = splits[k]
        moved = {swapped(h, k): split for h, split in splits.items()}
        moved[k] = (-normal, self.margin - offset)
        return moved, np.array([swapped(h, k) for h in range(2 * self.tree.n_leaves)])[leaf_of]

    def _labels(self, leaf_of: IntArray) -> tuple[IntArray, FloatArray]:
        """Best label of each leaf and whether it is used; empty leaves take what keeps the labels rising."""
        n_leaves = self.tree.n_leaves
        weight = np.zeros((n_leaves, self.n_classes))
        np.add.at(weight, (leaf_of - n_leaves, self.y), self.weight)
        label = np.argmax(weight, axis=1)
        empty = np.bincount(leaf_of - n_leaves, minlength=n_leaves) == 0
        is_left = np.arange(n_leaves) % 2 == 0
        label[empty & is_left], label[empty & ~is_left] = 0, self.n_classes - 1
        used = np.where(empty & ("l" in self.build().variables), 0.0, 1.0)
        return label, used

    # ------------------------------------------------------------------ any tree made feasible, and measured

    def repair(self, tree: Tree) -> Tree:
        """Make any tree feasible: splits with a gap, leaves large enough, depth kept, best labels, no idle splits.

        See :func:`treewright.formulations.oct_h.repair.repaired`.
        """
        return repaired(self, tree)

    def objective(self, tree: Tree) -> float:
        """Objective of a tree, computed from the tree and the data alone."""
        return oct_h_objective(tree, self.X, self.y, self.weight, self.complexity, self.baseline)

    def lower_bound(self) -> float:
        """A bound without solving: points that cannot be parted, and classes for which no leaf is left."""
        table = self.group_weight
        inseparable = (table.sum(axis=1) - table.max(axis=1)).sum()
        by_class = np.sort(table.sum(axis=0))
        # A leaf needs its rows, so there may be room for fewer than the complete tree has.
        room = max(1, int(self.sizes.sum() / self.min_leaf + 1e-6)) if self.min_leaf > 0 else self.tree.n_leaves
        without_leaf = by_class[: max(0, self.n_classes - min(room, self.tree.n_leaves))].sum()
        return float(max(inseparable, without_leaf) / self.baseline)
