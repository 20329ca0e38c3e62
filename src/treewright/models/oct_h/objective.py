r"""OCT-H: the optimal classification tree with hyperplane splits (Bertsimas and Dunn 2017).

.. math:: \min\; \frac{1}{\hat L} \sum_{g,k} W_{gk}\, e_{gk} + \alpha \sum_{b,j} s_{bj}

over splits :math:`a_b^\top x < o_b`, :math:`\lVert a_b \rVert_1 \le d_b`, places :math:`z` of points in leaves and leaf
labels :math:`c`. It is the printed model (:mod:`~treewright.models.oct_h.printed_program`) with these equivalent,
tighter parts:

* features are centred, so that the constants of the routing rows are about 1 instead of 2, each its point's own;
* one routing row a point, branch and side instead of one a leaf;
* points nearer than the margin :math:`\mu` (which nothing can part) share their places; :math:`g` runs over groups;
* errors :math:`e_{gk} \ge z_{gt} - c_{kt}` of a group's class instead of the leaf errors with constant n;
* a leaf's use :math:`l_t` and a split's use :math:`d_b` appear only where leaf size or complexity need them;
* mirrored trees are excluded: the first group goes right at the root, leaf labels rise at the lowest splits, strictly
  where these part points: a split between leaves of one label may as well send all points one way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.exceptions import InvalidInputError
from treewright.models.oct_h import printed_program as paper
from treewright.models.oct_h.gaps import inseparable_groups
from treewright.optimize.formulation import RelativeErrors, with_min_leaf
from treewright.optimize.shared_rows import (
    add_group_errors,
    add_leaf_labels,
    add_rising_labels,
    add_routing_rows,
    add_used_leaves,
)
from treewright.solvers import Capability
from treewright.solvers.program import Program
from treewright.solvers.program_builder import ProgramBuilder
from treewright.splits.thresholds import Cuts
from treewright.tree import Tree, counted, n_split_weights, weighted_error, without_idle_splits
from treewright.tree.complete import Planes, leaves_reached

__all__ = ["GAP_TOLERANCE", "OCTH", "repaired_oct_h_tree"]


@dataclass(frozen=True)
class OCTH(RelativeErrors):
    """OCT-H on points with features in [0, 1].

    Parameters
    ----------
    X, y, weight, n_classes, depth, min_leaf, size
        See :class:`~treewright.optimize.formulation.RelativeErrors`.
    complexity : float
        The price alpha of a feature in a split.
    margin : float
        mu, the gap between the two sides of a split.
    formulation : {"tight", "paper"}
        The program to write; "paper" is the printed one.

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

    margin: float = 0.005
    formulation: Literal["tight", "paper"] = "tight"
    needs: ClassVar[Capability] = Capability.LP | Capability.MIP

    def __post_init__(self) -> None:
        if self.formulation not in ("tight", "paper"):
            raise InvalidInputError(f"formulation={self.formulation!r} is unknown; use 'tight' or 'paper'")

    # ------------------------------------------------------------------ data as the program sees it

    @property
    def printed(self) -> bool:
        """Whether the program is the printed one."""
        return self.formulation == "paper"

    @cached_property
    def group(self) -> IntArray:
        """Group of each point; points of a group cannot be parted, not even by a split at the end of the tolerance."""
        return inseparable_groups(self.X, self.margin - GAP_TOLERANCE)

    @cached_property
    def program_cells(self) -> int:
        """About how many non-zeros the program has, known before it is written."""
        if self.printed:
            return paper.program_nonzeros(self)
        (n, p), n_leaves = self.X.shape, self.tree.n_leaves
        return n * (2 * self.tree.n_branches * (p + 1) + (self.depth + 3) * n_leaves)

    # ------------------------------------------------------------------ build

    @cached_property
    def _program(self) -> Program:
        if self.printed:
            return paper.build(self)
        builder, tree = ProgramBuilder(), self.tree
        n_groups = len(self.group_weight)
        z = builder.add_variables("z", (n_groups, tree.n_leaves), upper=1, integer=True)
        used = None
        if self.min_leaf > self.sizes.min():
            used = add_used_leaves(builder, z, self.group_size, self.min_leaf, priority=10)
        c = add_leaf_labels(builder, self.n_classes, tree.n_leaves, used)
        least = 0.0 if self.complexity > 0 else 1.0
        d = builder.add_variables("d", tree.n_branches, least, upper=1, integer=True, priority=20)
        a, o = self._add_splits(builder, d)
        builder.add_rows("one_leaf", [(z, 1.0)], lower=1, upper=1)
        reach = np.abs(self.X - 0.5).max(axis=1) + 0.5 + self.margin
        add_routing_rows(builder, tree, self.X - 0.5, a, o, z[self.group], (self.margin, 0.0), reach)
        self._add_errors(builder, z, c)
        # Of a tree and its mirror images keep one: at depth 1 the root is the lowest split.
        if self.depth > 1:
            builder.add_rows("first_goes_right", [(z[:1, tree.left_of[0]], 1.0)], upper=0)
        # Of splits that part nothing only those that have no price and leave a leaf without a size need their labels.
        if self.complexity > 0:
            add_rising_labels(builder, c, step=0, where=d[len(d) // 2 :])
        elif used is not None:
            add_rising_labels(builder, c, step=0, where=used[0::2])
        else:
            add_rising_labels(builder, c, step=1 if self.n_classes > 1 else 0)
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

    def _add_errors(self, builder: ProgramBuilder, z: IntArray, c: IntArray) -> None:
        """Errors of each class of each group; all but one class of a group are wrong."""
        e, group, klass = add_group_errors(builder, z, c, self.group_weight, self.baseline)
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

    # ------------------------------------------------------------------ decode, encode

    def decode(self, x: FloatArray) -> Tree:
        """Read the tree off a solution: the threshold lies in the middle of the margin."""
        planes, split = paper.planes_of(self, x) if self.printed else self._planes_of(x)
        return counted(planes.to_tree(self.n_classes, split > 0.5), self.X, self.y, self.weight)

    def _planes_of(self, x: FloatArray) -> tuple[Planes, FloatArray]:
        value = self.build().value
        a, label = value(x, "a"), np.argmax(value(x, "c"), axis=0)
        a = np.where(np.abs(a) > 1e-9, a, 0.0) if self.complexity <= 0 else np.where(value(x, "s") > 0.5, a, 0.0)
        return Planes(a, value(x, "o") - self.margin / 2 + 0.5 * a.sum(axis=1), label), value(x, "d")

    def leaves_of(self, x: FloatArray) -> IntArray:
        """Heap number of the leaf that a solution sends each point to."""
        place = np.argmax(self.build().value(x, "z"), axis=1)
        return np.asarray((place if self.printed else place[self.group]) + self.tree.n_leaves)

    def encode(self, tree: Tree) -> FloatArray:
        """Write a tree, made feasible by :meth:`repair`, as a point of the program."""
        feasible = self.repair(tree)
        if self.printed:
            return self.build().point(paper.point(self, Planes.from_tree(feasible, self.depth, go_left=False)))
        planes, leaf_of = self._mirrored(feasible)
        n_leaves, label = self.tree.n_leaves, planes.labels
        z = np.zeros((len(self.group_weight), n_leaves))
        z[self.group, leaf_of] = 1.0
        d = np.any(planes.omega != 0.0, axis=1).astype(np.float64)
        o = np.where(d > 0, planes.gamma + self.margin / 2, 0.0)
        if self.complexity <= 0:  # every node splits in name; one that does not sends all to one side
            o = np.where(d > 0, o, np.where(planes.gamma > 0, 0.5 + self.margin, -0.5))
            d[:] = 1.0
        used = z.any(axis=0) if "l" in self.build().variables else np.ones(n_leaves, dtype=bool)
        group, klass = np.nonzero(self.group_weight)
        blocks = {
            "z": z,
            "c": (label == np.arange(self.n_classes)[:, None]) & used,
            "d": d,
            "a": planes.omega,
            "abs_a": np.abs(planes.omega),
            "o": o,
            "e": label[np.argmax(z, axis=1)][group] != klass,
            "l": used,
            "s": planes.omega != 0,
        }
        return self.build().point(blocks)

    def _mirrored(self, tree: Tree) -> tuple[Planes, IntArray]:
        """Centred planes of a repaired tree that obey the symmetry-breaking rows, and the leaf of each point."""
        X, planes = self.X - 0.5, Planes.from_tree(tree, self.depth, go_left=False)
        planes = replace(planes, gamma=planes.gamma - 0.5 * planes.omega.sum(axis=1))
        leaf_of = leaves_reached(planes.values(X))
        if self.depth > 1 and leaf_of[self.group == 0][0] < self.tree.n_leaves // 2:
            planes = planes.mirrored(0)
            leaf_of = leaves_reached(planes.values(X))
        planes = replace(planes, labels=self._labels(leaf_of)).rising()
        return planes, leaves_reached(planes.values(X))

    def _labels(self, leaf_of: IntArray) -> IntArray:
        """Best label of each leaf; empty leaves take what lets the labels rise."""
        n_leaves = self.tree.n_leaves
        weight = np.zeros((n_leaves, self.n_classes))
        np.add.at(weight, (leaf_of, self.y), self.weight)
        empty = np.bincount(leaf_of, minlength=n_leaves) == 0
        label, last = np.argmax(weight, axis=1), self.n_classes - 1
        free = np.where(np.arange(n_leaves) % 2 == 0, 0, last)
        if self.complexity <= 0 and "l" not in self.build().variables:
            # An empty leaf has another label than its sibling, which may be on the left of it then.
            sibling = np.arange(n_leaves) ^ 1
            free = np.where(empty[sibling], free, np.where(label[sibling] == 0, last, 0))
        return np.where(empty, free, label)

    # ------------------------------------------------------------------ any tree made feasible, and measured

    def repair(self, tree: Tree) -> Tree:
        """Make any tree feasible: splits with a gap, leaves large enough, depth kept, best labels, no idle splits.

        See :func:`treewright.models.oct_h.objective.repaired_oct_h_tree`.
        """
        return repaired_oct_h_tree(self, tree)

    def objective(self, tree: Tree) -> float:
        """Objective of a tree, computed from the tree and the data alone."""
        error = weighted_error(tree, self.X, self.y, self.weight)
        return error / self.baseline + self.complexity * n_split_weights(tree)


GAP_TOLERANCE = 1.8e-6
"""By how much a split may miss the margin, both sides together: its rows then miss by 9e-7 each, which every solver's
tolerance of 1e-6 allows. Points that are nearer than the margin less this are never parted: the repair, the groups of
the program and the bound agree on it."""


def repaired_oct_h_tree(model: OCTH, tree: Tree) -> Tree:
    """The feasible OCT-H tree for `model` that `tree` is nearest to.

    A threshold moves to the nearest gap of its node (fewest points change sides); a split without one, or with a
    side below the minimum leaf size, goes. Leaves get their best labels, and splits below which all leaves have the
    same one are dropped. A tree that is feasible already routes all points as before.
    """
    tree = tree.numerical()
    weights, thresholds = tree.weights.copy(), tree.threshold.copy()
    keep = np.ones(tree.n_nodes, dtype=bool)
    members: dict[int, IntArray] = {0: np.arange(len(model.X))}
    level = tree.level
    for node in range(tree.n_nodes):
        inside = members.get(node)
        if inside is None or not len(inside) or tree.left[node] < 0:
            continue
        left, right = int(tree.left[node]), int(tree.right[node])
        if level[node] >= model.depth:
            keep[[left, right]] = False
            continue
        weights[node], thresholds[node], goes_left = _at_nearest_gap(
            model, tree.weights[node], float(tree.threshold[node]), inside
        )
        members[left], members[right] = inside[goes_left], inside[~goes_left]
        keep[left], keep[right] = bool(goes_left.any()), not bool(goes_left.all())
    moved = Tree(tree.left, tree.right, weights, thresholds, tree.values, tree.labels)
    large = with_min_leaf(model, moved.collapsed(keep), model.min_leaf)
    return without_idle_splits(large, model.X, model.y, model.weight, model.n_classes)


def _at_nearest_gap(
    model: OCTH, normal: FloatArray, threshold: float, inside: IntArray
) -> tuple[FloatArray, float, BoolArray]:
    """Normalized split at the gap nearest to the given threshold, and who goes left."""
    size = np.abs(normal).sum()
    if size == 0.0:
        return normal, threshold, np.full(len(inside), bool(threshold >= 0.0))
    normal = np.where(np.abs(normal) > 1e-9 * np.abs(normal).max(), normal, 0.0)
    normal = normal / np.abs(normal).sum()
    level = model.X[inside] @ normal
    cuts = Cuts(level)
    k = cuts.nearest(threshold / size, model.margin - GAP_TOLERANCE)
    middle = float(cuts.thresholds(beyond=model.margin)[k])  # a split may send all points one way
    return normal, middle, level <= middle
