r"""S2OCT: the semi-supervised optimal classification tree with class totals (Burgard, Pinheiro, Schmidt 2024).

.. math:: \min\; \sum_{i\ labelled} v_i \min_{t:\ label(t) = y_i} LE(x_i, t) + C \sum_g dev_g

over splits :math:`f_b(x) = \omega_b^\top x - \gamma_b` with :math:`|\omega_{bj}| \le s` of a complete tree; a point
goes left where :math:`f_b(x) \le 0`. LE sums the hinge errors :math:`[1 + f_b]^+` (path goes left) and
:math:`[1 - f_b]^+` (right) on the way to a leaf, :math:`dev_g` counts the unlabelled rows of group g that would have to
change class for the totals to hold, and unlabelled points keep a margin :math:`|f_b(x)| \ge m`. Two classes alternate
over the leaves; with more of them the labels are part of the problem.

The tight program (:mod:`treewright.models.s2oct.program`) says the same as the printed one
(:mod:`treewright.models.s2oct.printed_program`) with less.

With `max_split_features` k a split has at most k entries that are not 0: :math:`|\omega_{bj}| \le s u_{bj}` with
:math:`u_{bj} \in \{0, 1\}` and :math:`\sum_j u_{bj} \le k`. Shifting and scaling a split, and mirroring it, keeps its
features, so all of the above holds for such trees too, and a proof is one of the restricted model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from treewright.core.arrays import FloatArray, IntArray
from treewright.data import PointTotals, distinct_rows
from treewright.exceptions import InvalidInputError
from treewright.models.s2oct import printed_program, program, repair
from treewright.models.s2oct.distances import crowded_distances, farthest_distances, largest_distance
from treewright.optimize.formulation import SureBounds
from treewright.solvers import Capability
from treewright.solvers.program import Program
from treewright.tree import Tree, counted, predict_labels, route
from treewright.tree.complete import FREE, CompleteTree, Planes, completed_leaves
from treewright.tree.routing import nodes_below
from treewright.tree.structure import Shape

__all__ = ["S2OCT", "default_depth", "default_max_coefficient"]
_EQUAL, _LEVEL = 1e-6, 2e-5
"""Values nearer to each other, and those between which a split changes by less, may be equal to a solver."""


@dataclass(frozen=True)
class S2OCT(SureBounds):
    """The S2OCT model on given data.

    Parameters
    ----------
    X : ndarray of shape (n_points, n_features)
        Scaled points. Unlabelled points should be distinct, labelled ones distinct within a class.
    y : ndarray of int, shape (n_points,)
        Class numbers, -1 for unlabelled.
    weight : ndarray of shape (n_points,)
        Weights of the labelled errors; ignored for unlabelled points.
    totals : PointTotals
        Rows of each group that the unlabelled points stand for, in the order in which they are in `X`, and how many
        of them each class shall have. Two classes alternate over the leaves, class 0 first; more are placed by the
        program.
    depth : int
        Depth of the tree.
    penalty : float
        The price C of a row that would have to change class.
    max_coefficient : float
        s, the bound of every entry of a normal.
    margin_rule : {"paper", "reached", "tolerance"}
        Where unlabelled points keep how far from the splits: 1 at every node (the paper), 1 at the nodes on their
        path, or `tolerance` there.
    tolerance : float
        The margin of ``margin_rule="tolerance"``.
    formulation : {"tight", "paper"}
        The program to write; "paper" is the printed one, for two classes with one exact total and the paper's margins.
        Its constant M can cut off the optimum, so it warns.
    max_split_features : int or None
        Most features of a split, None for any number.

    Examples
    --------
    Four unlabelled points, of which two shall be of each class, and two labelled ones:

    >>> import numpy as np
    >>> from treewright.solvers import get_solver
    >>> X = np.array([[0.0], [5.0], [1.0], [2.0], [3.0], [4.0]])
    >>> y = np.array([0, 1, -1, -1, -1, -1])
    >>> totals = PointTotals(np.ones((4, 1)), low=[[2, 2]], high=[[2, 2]])
    >>> model = S2OCT(X, y, np.ones(6), totals, depth=1, max_coefficient=10.0)
    >>> result = get_solver("highs").solve(model.build())
    >>> tree = model.decode(result.x)
    >>> model.objective(tree), [int(k) for k in tree.labels[route(tree, X)]]
    (0.0, [0, 1, 0, 0, 1, 1])
    """

    X: FloatArray
    y: IntArray
    weight: FloatArray
    totals: PointTotals
    depth: int = 2
    penalty: float = 1.0
    max_coefficient: float = 10.0
    margin_rule: Literal["paper", "reached", "tolerance"] = "paper"
    tolerance: float = 1e-3
    formulation: Literal["tight", "paper"] = "tight"
    max_split_features: int | None = None
    needs: ClassVar[Capability] = Capability.LP | Capability.MIP

    def __post_init__(self) -> None:
        if self.totals.n_points != len(self.unlabelled):
            raise InvalidInputError(
                f"totals are about {self.totals.n_points} points, but {len(self.unlabelled)} are unlabelled"
            )
        if self.margin_rule not in ("paper", "reached", "tolerance"):
            raise InvalidInputError(
                f"margin_rule={self.margin_rule!r} is unknown; use 'paper', 'reached' or 'tolerance'"
            )
        if self.formulation not in ("tight", "paper"):
            raise InvalidInputError(f"formulation={self.formulation!r} is unknown; use 'tight' or 'paper'")
        if self.n_classes < 2 or self.depth < 1:
            raise InvalidInputError(f"{self.n_classes} classes and depth {self.depth}: at least 2 and 1 are needed")
        if not self.max_coefficient > 0 or not 0 < self.tolerance <= 1:
            raise InvalidInputError(
                f"max_coefficient={self.max_coefficient} must be positive and tolerance={self.tolerance} in (0, 1]"
            )
        if len(self.present) > 2**self.depth:
            raise InvalidInputError(
                f"{len(self.present)} classes have labelled rows, but a tree of depth {self.depth} has only "
                f"{2**self.depth} leaves; use a larger depth"
            )
        if self.max_split_features is not None and self.max_split_features < 1:
            raise InvalidInputError(f"max_split_features={self.max_split_features} must be at least 1")
        if self.formulation == "paper":
            printed_program.refuse(self)
            printed_program.warn(self)

    # ------------------------------------------------------------------ data as the program sees it

    @property
    def tree(self) -> CompleteTree:
        """The complete tree that points are placed in."""
        return CompleteTree(self.depth)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.totals.n_classes

    @cached_property
    def labelled(self) -> IntArray:
        """Numbers of the labelled points."""
        return np.flatnonzero(self.y >= 0)

    @cached_property
    def unlabelled(self) -> IntArray:
        """Numbers of the unlabelled points."""
        return np.flatnonzero(self.y < 0)

    @cached_property
    def _charged(self) -> IntArray:
        """Numbers of the labelled points whose errors count."""
        return np.flatnonzero((self.y >= 0) & (self.weight > 0))

    @cached_property
    def rows(self) -> IntArray:
        """Unlabelled rows that each point stands for; none where it is labelled."""
        rows = np.zeros(len(self.X), dtype=np.int64)
        rows[self.unlabelled] = self.totals.rows
        return rows

    @cached_property
    def present(self) -> IntArray:
        """Classes that have labelled points and hence need a leaf."""
        return np.unique(self.y[self.y >= 0])

    @property
    def required(self) -> float:
        """The margin m that unlabelled points keep."""
        return self.tolerance if self.margin_rule == "tolerance" else 1.0

    @property
    def everywhere(self) -> bool:
        """Whether unlabelled points keep the margin also at nodes that they do not reach."""
        return self.margin_rule == "paper"

    @property
    def restricted(self) -> bool:
        """Whether a split may not have all features."""
        return self.max_split_features is not None and self.max_split_features < self.X.shape[1]

    @cached_property
    def reach(self) -> FloatArray:
        """Bound of ``|f_b(x_i)|`` that the program relies on, for each point."""
        if self.formulation == "paper":
            return np.full(len(self.X), printed_program.big_m(self) - 1.0)
        return 1.0 + self.max_coefficient * farthest_distances(self.X)

    @cached_property
    def hidden(self) -> FloatArray:
        """Features of the unlabelled points."""
        return self.X[self.unlabelled]

    @cached_property
    def diameter(self) -> float:
        """The largest distance of two points, the paper's eta."""
        return largest_distance(self.X)

    @property
    def program_cells(self) -> int:
        """About how many non-zeros the program has: each point has a row or two of all features at each node."""
        p, n_leaves = self.X.shape[1], self.tree.n_leaves
        rows = 2 * len(self.labelled) + len(self.unlabelled) * (1 if self.everywhere else 2)
        if self.formulation == "paper":
            rows = 2 * len(self.X)
        counted = self.totals.size.nnz + self.totals.low.size * (1 if self.n_classes == 2 else 3)
        return self.tree.n_branches * rows * (p + n_leaves // 2 + 2) + n_leaves * counted

    # ------------------------------------------------------------------ build

    def build(self) -> Program:
        """Write the model as a program (once; later calls return the same)."""
        return self._program

    @cached_property
    def _program(self) -> Program:
        return (printed_program if self.formulation == "paper" else program).build(self)

    @cached_property
    def own_leaves(self) -> IntArray:
        """Leaves that each labelled point may choose: every other one of two classes, all of more."""
        leaves = np.arange(self.tree.n_leaves)
        if self.n_classes > 2:
            return np.broadcast_to(leaves, (len(self.labelled), len(leaves)))
        return leaves[0::2] + self.y[self.labelled][:, None]

    # ------------------------------------------------------------------ decode, encode

    def decode(self, x: FloatArray) -> Tree:
        """Read the complete tree off a solution."""
        value = self.build().value
        omega = value(x, "omega")
        omega = np.where(np.abs(omega) > 1e-12 * self.max_coefficient, omega, 0.0)
        if self.restricted:  # within a solver's tolerance of 0, u allows a tiny weight
            omega = np.where(value(x, "used") > 0.5, omega, 0.0)
        label = np.arange(self.tree.n_leaves) % 2 if self.n_classes == 2 else np.argmax(value(x, "c"), axis=0)
        return self.as_tree(Planes(omega, value(x, "gamma"), label))

    def as_tree(self, planes: Planes) -> Tree:
        """The complete tree of these planes; its values are the labelled weights."""
        return counted(planes.to_tree(self.n_classes), self.X, self.y, self.weight)

    def leaves_of(self, x: FloatArray) -> IntArray:
        """Heap number of the leaf that a solution sends each point to.

        Unlabelled points have variables that say so; labelled points follow the splits of the solution (the leaf they
        are charged for may be another one).
        """
        heap = route(self.decode(x), self.X) + 1
        if self.formulation == "paper":
            heap[self.unlabelled] = printed_program.leaves_of(self, x)
        elif len(self.unlabelled):
            heap[self.unlabelled] = np.argmax(self.build().value(x, "z"), axis=1) + self.tree.n_leaves
        return heap

    def encode(self, tree: Tree) -> FloatArray:
        """Write a tree, made feasible by :meth:`repair`, as a point of the program."""
        planes = repair.repaired_s2oct_planes(self, tree)
        written = printed_program if self.formulation == "paper" else program
        return self.build().point(written.point(self, planes))

    def choice(self, planes: Planes) -> tuple[FloatArray, IntArray, FloatArray]:
        """Cheapest own leaf of each labelled point: as 0/1 over its own leaves, its number, and the error there."""
        error, chosen = planes.own_errors(self.X[self.labelled], self.y[self.labelled])
        return (self.own_leaves == chosen[:, None]).astype(np.float64), chosen, error

    # ------------------------------------------------------------------ any tree made feasible, and measured

    def repair(self, tree: Tree) -> Tree:
        """Make any tree a feasible complete one: labels placed, normals within the bound, unlabelled margins kept.

        What is feasible already stays as it is, to the last bit. Otherwise a threshold moves to the nearest gap
        of the unlabelled points (fewest rows change sides), and the scale of the split follows from the margins and
        the labelled points; see :func:`treewright.models.s2oct.repair.repaired_s2oct_planes`.
        """
        return self.as_tree(repair.repaired_s2oct_planes(self, tree))

    def keeps_margins(self, tree: Tree) -> bool:
        """Whether unlabelled points are as far from the splits of a tree as they must be, within a solver's tolerance.

        At nodes that they do not reach only where the model asks for that.
        """
        leaf = route(tree, self.hidden)
        for branch in tree.branches:
            value = np.abs(self.hidden @ tree.weights[branch] - tree.threshold[branch])
            here = self.everywhere or nodes_below(tree, int(branch))[leaf]
            if value.min(initial=np.inf, where=here) < self.required * (1.0 - 1e-6):
                return False
        return True

    def objective(self, tree: Tree) -> float:
        """Objective of a tree of any shape, computed from the tree and the data alone.

        It is a function of the splits that the tree lists: one that sends every point the same way is a second chance
        for a misclassified point (at a hinge error of 2) and is not the same as none.
        """
        points = self._charged
        error, _ = Planes.from_tree(tree, tree.depth).own_errors(self.X[points], self.y[points])
        missed = self.totals.missed(predict_labels(tree, self.hidden))
        return float(self.weight[points] @ error) + self.penalty * missed

    def simplified(self, tree: Tree) -> Tree:
        """Drop the splits one side of which no point reaches and no labelled point is charged for.

        Every point keeps its label, and a labelled point pays for fewer splits on the way to its leaf: the objective is
        never larger.
        """
        X, y = self.X[self._charged], self.y[self._charged]
        leaf_of, place = route(tree, self.X), completed_leaves(tree, tree.depth)
        planes = Planes.from_tree(tree, tree.depth)
        reached = np.isin(np.arange(len(planes.labels)), place[np.isin(tree.leaves, leaf_of)])
        without = replace(planes, labels=np.where(reached, planes.labels, FREE))
        error, leaf = planes.own_errors(X, y)
        needed = leaf[error < without.own_errors(X, y)[0]]
        kept = np.concatenate([leaf_of, tree.leaves[np.isin(place, needed)]])
        simpler = tree.collapsed(Shape.of(tree).reached(kept))
        return tree if simpler.n_nodes == tree.n_nodes else self.simplified(simpler)

    def lower_bound(self) -> float:
        r"""A bound without conduct: labelled points on top of each other, and totals that no selection of points has.

        Let classes with weights :math:`w_k` share the point x, and let :math:`h_k` be the smallest leaf error of x
        among the leaves of class k. The paths to two leaves part at some node b, and
        :math:`[1 + f_b]^+ + [1 - f_b]^+ \ge 2`, hence :math:`h_k + h_l \ge 2` for :math:`k \ne l`. At most one
        class has :math:`h_k = 1 - \epsilon < 1`, and then the others have at least :math:`1 + \epsilon`: the cost
        :math:`\sum_k w_k h_k` is linear in :math:`\epsilon`, so it is at least its smaller end,
        :math:`\min(W, 2 (W - \max_k w_k))` with :math:`W = \sum_k w_k`.

        A point counts with all its rows or not at all, see :attr:`PointTotals.unreachable`.
        """
        points = self.labelled
        _, place = distinct_rows(self.X[points])
        cell = place * self.n_classes + self.y[points]
        table = np.bincount(cell, self.weight[points], len(points) * self.n_classes).reshape(-1, self.n_classes)
        total, most = table.sum(axis=1), table.max(axis=1, initial=0.0)
        return float(np.minimum(total, 2.0 * (total - most)).sum() + self.penalty * self.totals.unreachable)

    def sure_bound(self, bound: float, gap: float) -> float:
        r"""What a bound that a solver claims is sure to say.

        Values nearer to each other than a solver's tolerances are equal to it, although a steep split tells them
        apart: with values moved by :math:`g_{ij}` onto each other, :math:`f_b(x_i)` changes by
        :math:`s \sum_j g_{ij}` at most, over the features that a split may have, and so do the hinge errors of a
        labelled point at each of D nodes.
        """
        points, most = self._charged, self.max_split_features or self.X.shape[1]
        moved = crowded_distances(self.X, max(_EQUAL, _LEVEL / self.max_coefficient))[points]
        along = np.sort(moved, axis=1)[:, -most:].sum(axis=1)
        hidden = self.max_coefficient * self.depth * float(self.weight[points] @ along)
        return max(min(bound, 0.0), super().sure_bound(bound, gap) - hidden)


def default_depth(n_points: int, n_classes: int = 2) -> int:
    """Depth of an S2OCT in the paper: 2 below 1000 points, else 3; more where more leaves than that have a class.

    Examples
    --------
    >>> default_depth(999), default_depth(1000), default_depth(999, n_classes=8), default_depth(999, n_classes=9)
    (2, 3, 3, 4)
    """
    return max(2 if n_points < 1000 else 3, (n_classes - 1).bit_length())


def default_max_coefficient(n_points: int, diameter: float, n_features: int) -> float:
    r"""Bound s of the S2OCT paper: :math:`\max(s_0, 499 / (\eta \sqrt p))`, so that its M is at least 500.

    :math:`s_0` is 10 below 650 points, 20 below 1500, else 40.

    Examples
    --------
    >>> default_max_coefficient(100, diameter=2.0, n_features=4)
    124.75
    >>> default_max_coefficient(2000, diameter=100.0, n_features=4)
    40.0
    """
    least = 10.0 if n_points < 650 else 20.0 if n_points < 1500 else 40.0
    return max(least, 499.0 / (diameter * n_features**0.5)) if diameter > 0 else least
