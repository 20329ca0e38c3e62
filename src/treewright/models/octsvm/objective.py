r"""OCTSVM: a tree of support vector machines that may relabel points (Blanco, Japon, Puerto 2022), and RE-SVM.

Nodes t = 1, ..., T = 2^(D+1) - 1 of all levels 0, ..., D split by :math:`f_t(x) = \omega_t^\top x + \omega_{t0}`, right
where it is positive. The right side of a split stands for class +1 (number 1), the left for -1 (number 0): a point
with the margin :math:`m = y f_t(x)` pays :math:`\varphi(m) = \min(c_1 [1 - m]^+, c_2 + c_1 [1 + m]^+)` at *every* split
on its way, with its label or with the other one, whichever is cheaper. A tree costs

.. math::
    \pi \delta + \sum_i w_i \sum_{t\ on\ the\ way\ of\ i} \varphi(y_i f_t(x_i)) + c_3 \sum_t d_t , \qquad
    \delta = \tfrac12 \max_t \lVert \omega_t \rVert ,

with :math:`d_t` for whether node t splits and :math:`\pi` the price of the margin, 1 in the paper. A node that does not
split has :math:`\omega_t = 0, \omega_{t0} = \pm 1`: it is a leaf with that label, and a point of the other class pays
:math:`\min(2 c_1, c_2)` there *and on each level that would follow*, so :math:`D - l + 1` times for a leaf of level l.

As a :class:`~treewright.tree.Tree` it is an oblique tree of depth D + 1 at most, whose ``weights`` are
:math:`\omega_t` and whose ``threshold`` is :math:`-\omega_{t0}`, not normalized, as the length is the margin. Splits of
level D have a leaf of class 0 on the left and one of class 1 on the right.

Feasible trees
--------------
1. :math:`\lVert \omega_t \rVert \le B` where `max_norm` is given. Then the usual price of the margin is 0.
2. *Nothing lies on a split above the last level*: :math:`|f_t(x_i)| \ge \mu` for the points that reach it. The printed
   rows (9) and (10) lack this, and :math:`\omega_t = 0, \omega_{t0} = 0` at the root lets points take the side of their
   own label: solved exactly, the printed program "costs" :math:`c_1 \sum_i w_i` and is about no tree. On the last level
   no such rule is needed, as the loss at :math:`f = 0` is the same on either side; so depth 0 is RE-SVM.
3. A node below one that does not split does not split.
4. *Scales are not idle*: some point reaches each split, and of those that do one has :math:`|f_t(x_i)| \le 1`. A split
   without the former may go, one without the latter may be scaled down until it holds, and neither costs anything.
   The constants of the program come from this rule.
5. The norm is no longer than the `cutoff` U pays for, that is the objective of a tree at hand, or by default of the
   better one of the two trees that are a single leaf: :math:`\pi \delta \le U - c_3 - b`, with b the bound that equal
   points of different classes give.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from types import ModuleType
from typing import Literal

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.exceptions import InvalidInputError, UnsoundModelWarning, warn_user
from treewright.models.octsvm import printed_program as paper
from treewright.models.octsvm import program
from treewright.models.octsvm.loss import Norm, normal_lengths, octsvm_split_loss
from treewright.models.octsvm.repair import comparable_octsvm_tree, pruned_octsvm_tree, repaired_octsvm_tree
from treewright.models.octsvm.scale import ScalePrice
from treewright.optimize.formulation import DistinctPoints
from treewright.solvers import Capability
from treewright.solvers.program import Program
from treewright.tree import Tree, counted, route
from treewright.tree.routing import points_at_splits

__all__ = ["OCTSVM", "RESVM"]


@dataclass(frozen=True)
class OCTSVM(DistinctPoints):
    """The OCTSVM model on given data.

    Parameters
    ----------
    X : ndarray of shape (n_points, n_features)
        Features, scaled to [0, 1].
    y : ndarray of int, shape (n_points,)
        Class numbers 0 and 1, which stand for the labels -1 and +1.
    weight : ndarray of shape (n_points,)
        Weights of the points, which multiply all that they pay.
    depth : int
        D, the level of the last splits: 0 for a single one.
    c1 : float
        Price of a unit of hinge error.
    c2 : float
        Price of a relabelled point at each split that relabels it; infinite if labels are to be believed.
    c3 : float
        Price of a split.
    norm : {"l2", "l1", "linf"}
        Norm of the normals; "l2" needs a solver that knows cones.
    max_norm : float or None
        B, the largest norm of a normal.
    margin_price : float
        Price of half the largest norm; 0 only together with `max_norm`.
    tolerance : float
        The distance mu that points keep from the splits above the last level.
    cutoff : float or None
        Objective of a tree at hand, above which nothing is sought; by default of the better single leaf.
    formulation : {"tight", "paper"}
        The program to write; "paper" is the printed one, which is not about trees, and warns.

    Examples
    --------
    A band: the outer points are of class 0, and depth 1 tells them from the inner ones.

    >>> import numpy as np
    >>> X, y = np.array([[0.0], [0.45], [0.55], [1.0]]), np.array([0, 1, 1, 0])
    >>> model = OCTSVM(X, y, np.ones(4), depth=1, c1=1.0, c2=1.0, c3=0.1, max_norm=10.0, margin_price=0.0)
    >>> leaf = Tree.leaf([2.0, 2.0], n_features=1)
    >>> model.objective(leaf)  # two points are wrong on two levels
    4.0
    """

    X: FloatArray
    y: IntArray
    weight: FloatArray
    depth: int = 1
    c1: float = 1.0
    c2: float = 1.0
    c3: float = 0.0
    norm: Norm = "l2"
    max_norm: float | None = None
    margin_price: float = 1.0
    tolerance: float = 1e-4
    cutoff: float | None = None
    formulation: Literal["tight", "paper"] = "tight"

    def __post_init__(self) -> None:
        self._refuse_parameters()
        self._refuse_data()
        if self.formulation == "paper":
            warn_user(
                "the printed program of OCTSVM lets points that lie on a split take either side, so that its optimum "
                "need not be a tree; formulation='tight' closes that gap",
                UnsoundModelWarning,
            )

    # ------------------------------------------------------------------ what is refused

    def _refuse_parameters(self) -> None:
        if self.depth < 0:
            raise InvalidInputError(f"depth={self.depth}; it must be at least 0")
        if not 0 < self.c1 < np.inf or not self.c2 >= 0 or not 0 <= self.c3 < np.inf:
            raise InvalidInputError(
                f"c1={self.c1} must be positive and finite, c2={self.c2} must not be negative, c3={self.c3} must be "
                "finite and not negative"
            )
        if self.norm not in ("l2", "l1", "linf"):
            raise InvalidInputError(f"norm={self.norm!r} is unknown; use 'l2', 'l1' or 'linf'")
        if self.max_norm is not None and not 0 < self.max_norm < np.inf:
            raise InvalidInputError(f"max_norm={self.max_norm}; it must be positive and finite, or None")
        if not 0 <= self.margin_price < np.inf:
            raise InvalidInputError(f"margin_price={self.margin_price}; it must be finite and not negative")
        if self.margin_price == 0 and self.max_norm is None:
            raise InvalidInputError("margin_price=0 needs a max_norm: without either, norms would grow for ever")
        if not 0 < self.tolerance < 1:
            raise InvalidInputError(f"tolerance={self.tolerance}; it must be between 0 and 1")
        if self.cutoff is not None and not self.cutoff >= 0:
            raise InvalidInputError(f"cutoff={self.cutoff}; it must not be negative")
        if self.formulation not in ("tight", "paper"):
            raise InvalidInputError(f"formulation={self.formulation!r} is unknown; use 'tight' or 'paper'")

    def _refuse_data(self) -> None:
        n = len(self.X)
        if self.X.ndim != 2 or self.X.size == 0:
            raise InvalidInputError(f"X has shape {self.X.shape}; a table with points and features is needed")
        for name in ("y", "weight"):
            if np.shape(getattr(self, name)) != (n,):
                raise InvalidInputError(f"{name} has shape {np.shape(getattr(self, name))}, expected ({n},)")
        if not np.all((self.y == 0) | (self.y == 1)):
            raise InvalidInputError("y must be class numbers 0 and 1")
        if not np.all(np.isfinite(self.X)):
            raise InvalidInputError("X has values that are missing or infinite, which hyperplanes do not know")
        if not np.all(np.isfinite(self.weight)) or np.any(self.weight < 0):
            raise InvalidInputError("weight must be finite and not negative")

    # ------------------------------------------------------------------ prices

    @property
    def price(self) -> ScalePrice:
        """Price of the largest norm."""
        return ScalePrice(self.margin_price / 2)

    @property
    def leaf_price(self) -> float:
        """What a point pays at a leaf of the other class, for each level from there on."""
        return min(2 * self.c1, self.c2)

    # ------------------------------------------------------------------ data as the program sees it

    @cached_property
    def sign(self) -> FloatArray:
        """Labels -1 and +1."""
        return np.asarray(2.0 * self.y - 1.0)

    @cached_property
    def group_weight(self) -> FloatArray:
        """Weight of each class in each group, shape (n_groups, 2)."""
        table = np.zeros((len(self.rows), 2))
        np.add.at(table, (self.group, self.y), self.weight)
        return table

    @cached_property
    def centre(self) -> FloatArray:
        """Middle of the box around all points, from which the program measures them."""
        return np.asarray((self.X.min(axis=0) + self.X.max(axis=0)) / 2)

    @cached_property
    def centred(self) -> FloatArray:
        """Features of each group, measured from the centre."""
        return np.asarray(self.rows - self.centre)

    @cached_property
    def reach(self) -> FloatArray:
        """Distance of each group from the farthest one, in the dual norm."""
        return program.farthest_distances(self.rows, self.norm)

    @cached_property
    def _inseparable(self) -> float:
        """What equal points of different classes pay at least: on each level one of them is a leaf price off."""
        return (self.depth + 1) * self.leaf_price * float(self.group_weight.min(axis=1).sum())

    @cached_property
    def leaf_objective(self) -> float:
        """Objective of the better one of the two trees that are a single leaf."""
        return (self.depth + 1) * self.leaf_price * float(self.group_weight.sum(axis=0).min())

    @cached_property
    def norm_limit(self) -> float:
        """Largest norm of a normal in a tree that is no worse than the cutoff."""
        most = self.leaf_objective if self.cutoff is None else min(self.cutoff, self.leaf_objective)
        paid = max(0.0, most - self.c3 - self._inseparable)
        limit = self.price.limit(paid * (1 + 1e-9))
        return limit if self.max_norm is None else min(limit, self.max_norm)

    # ------------------------------------------------------------------ build, decode, encode

    @property
    def needs(self) -> Capability:
        """What a solver must be able to do."""
        needs = Capability.LP | Capability.MIP
        return needs | Capability.CONE if self.norm == "l2" else needs

    @property
    def program_cells(self) -> int:
        """About how many non-zeros the program has: a row of all features a point and node, and several of places."""
        n_nodes, p = 2 ** (self.depth + 1) - 1, self.X.shape[1]
        if self.formulation == "paper":
            return len(self.X) * n_nodes * (13 * (p + 1) + 12)
        pairs = int(np.count_nonzero(self.group_weight))
        levels = (self.depth + 1) * 2**self.depth
        return len(self.rows) * (n_nodes * (p + 8) + 3 * levels) + pairs * (13 * n_nodes + 3 * levels)

    @property
    def _writer(self) -> ModuleType:
        return paper if self.formulation == "paper" else program

    def build(self) -> Program:
        """Write the model as a program (once; later calls return the same)."""
        return self._program

    @cached_property
    def _program(self) -> Program:
        built: Program = self._writer.build(self)
        return built

    def decode(self, x: FloatArray) -> Tree:
        """Read the tree off a solution; its values are the weights of the points.

        Nodes without a normal are leaves, unless one below them has one. Splits that no point reaches are leaves, and
        so is what a leaf does as well, see :func:`treewright.models.octsvm.repair.pruned_octsvm_tree`.
        """
        omega, intercept, split, place = self._planes(x)
        n_nodes, n_last = len(omega), 2**self.depth
        last = place + n_last
        weight = np.zeros((n_nodes, 2))
        reached = np.zeros(n_nodes, dtype=bool)
        for level in range(self.depth + 1):
            node = (last >> (self.depth - level)) - 1
            reached[node] = True
            np.add.at(weight, (node, self.y), self.weight)
        split = split & reached
        real = split & np.any(omega != 0.0, axis=1)
        for t in range(n_nodes - n_last - 1, -1, -1):
            real[t] |= split[t] and (real[2 * t + 1] or real[2 * t + 2])
        said = (intercept > 0).astype(np.int64)
        rows = np.arange(n_nodes)
        leaf_label = np.where(weight[rows, said] >= weight[rows, 1 - said], said, 1 - said)
        labels = np.concatenate([leaf_label, np.tile([0, 1], n_last)])
        tree = Tree.from_heap(real, omega, -intercept, np.zeros((len(labels), 2)), labels)
        return pruned_octsvm_tree(self, counted(tree, self.X, self.y, self.weight))

    def leaves_of(self, x: FloatArray) -> IntArray:
        """Heap number of the leaf that a solution sends each point to, below the last level of splits."""
        omega, intercept, _, place = self._planes(x)
        node = place + 2**self.depth
        value = np.einsum("ij,ij->i", self.X, omega[node - 1])
        return np.asarray(2 * node + (value > -intercept[node - 1]))

    def _planes(self, x: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray, IntArray]:
        """Normals, intercepts, which nodes may split, and the node of the last level where each point is, from 0."""
        omega, intercept, split, z = self._writer.planes_of(self, x)
        omega = np.where((normal_lengths(omega, "linf") > 1e-9)[:, None], omega, 0.0)
        place = np.argmax(z, axis=1)
        return omega, intercept, split, place if self.formulation == "paper" else place[self.group]

    def encode(self, tree: Tree) -> FloatArray:
        """Write a tree, made feasible by :meth:`repair`, as a point of the program."""
        tree = self.repair(tree)
        assert tree.labels is not None
        n_nodes = 2 ** (self.depth + 1) - 1
        omega, intercept = np.zeros((n_nodes, self.X.shape[1])), np.ones(n_nodes)
        split = np.zeros(n_nodes, dtype=bool)
        heap = np.array(tree.heap_numbers)
        at = heap[tree.branches] - 1
        omega[at], intercept[at], split[at] = tree.weights[tree.branches], -tree.threshold[tree.branches], True
        for leaf in tree.leaves[tree.level[tree.leaves] <= self.depth]:
            first, number = int(heap[leaf]), 1
            while first <= n_nodes:  # a leaf has its label on all levels from its own on
                intercept[first - 1 : first - 1 + number] = 2.0 * tree.labels[leaf] - 1.0
                first, number = 2 * first, 2 * number
        rows = self.X if self.formulation == "paper" else self.rows
        node = np.ones(len(rows), dtype=np.int64)
        for _ in range(self.depth):
            value = np.einsum("ij,ij->i", rows, omega[node - 1]) + intercept[node - 1]
            node = 2 * node + (value > 0)
        found: FloatArray = self._writer.point(self, omega, intercept, split, node - 2**self.depth)
        return found

    # ------------------------------------------------------------------ any tree made feasible, and measured

    def repair(self, tree: Tree) -> Tree:
        """Make any tree feasible: cut at the depth, splits moved off the points, turned and scaled well.

        See :func:`treewright.models.octsvm.repair.repaired_octsvm_tree`.
        """
        return repaired_octsvm_tree(self, tree)

    def objective(self, tree: Tree) -> float:
        """Objective of a tree of any shape, computed from the tree and the data alone.

        It is the formula above for the splits as they are scaled and oriented, whether the tree is feasible or not.
        """
        tree = comparable_octsvm_tree(self, tree)
        assert tree.labels is not None
        longest = normal_lengths(tree.weights[tree.branches], self.norm).max(initial=0.0)
        value = float(self.price(np.array(longest))) + self.c3 * len(tree.branches)
        for node, inside, _ in points_at_splits(tree, self.X):
            margin = self.sign[inside] * (self.X[inside] @ tree.weights[node] - tree.threshold[node])
            value += float(self.weight[inside] @ octsvm_split_loss(margin, self.c1, self.c2))
        leaf = route(tree, self.X)
        levels_left = np.maximum(0, self.depth + 1 - tree.level[leaf])
        wrong = self.weight * (tree.labels[leaf] != self.y)
        return value + self.leaf_price * float(wrong @ levels_left)

    def lower_bound(self) -> float:
        """A bound without conduct: equal points of different classes, and a split or all that a single leaf costs."""
        return min(self.leaf_objective, self._inseparable + self.c3)


@dataclass(frozen=True)
class RESVM(OCTSVM):
    r"""RE-SVM: one hyperplane with relabelling, the one-node case with the half square of the norm.

    .. math:: \min \tfrac{\pi}{2} \lVert \omega \rVert_2^2 + \sum_i w_i \varphi(y_i (\omega^\top x_i + \omega_0))

    The norms "l1" and "linf" are paid as they are, :math:`\pi \lVert \omega \rVert`, so that the program stays linear.
    With c2 infinite it is the linear support vector machine. Parameters are those of :class:`OCTSVM`.

    Examples
    --------
    Two points a unit apart, the widest margin: omega = 2, and half its square is paid.

    >>> X, y = np.array([[0.0], [1.0]]), np.array([0, 1])
    >>> model = RESVM(X, y, np.ones(2), c1=10.0, c2=10.0)
    >>> model.objective(Tree.stump([2.0], 1.0, [[1.0, 0.0], [0.0, 1.0]]))
    2.0
    """

    depth: int = field(default=0, init=False)
    c3: float = field(default=0.0, init=False)

    @property
    def price(self) -> ScalePrice:
        """Price of the norm."""
        return ScalePrice(0.0, self.margin_price) if self.norm == "l2" else ScalePrice(self.margin_price)
