r"""SVM1-ODT: the 1-norm support vector tree (Zhu, Murali, Phan, Nguyen, Kalagnanam 2020).

A split is a hyperplane over the numerical features, with value :math:`f_b(x) = g_b - h_b^\top x`, which sends x left
where :math:`f_b(x) \ge 0`, or a set of levels of one categorical feature. A tree costs

.. math::
    \sum_i w_i [T(x_i) \ne y_i]
    + \alpha_1 \sum_i s_i \sum_{b\ numerical,\ on\ the\ way\ of\ i} [\epsilon - |f_b(x_i)|]^+
    + \alpha_2 \sum_b \lVert h_b \rVert_1 ,

where :math:`w_i` is the weight of a point and :math:`s_i` the number of rows it stands for: equal rows of a class that
are merged into one point, their weights and sizes added, cost the same. A categorical split has no margin, hence no
hinge error; the paper's (1a) sums over all features, of which (8a) and (8f) let a categorical split have exactly one
with :math:`h_{bj} = 1`, so it pays :math:`\alpha_2`. A point that lacks a value which a split uses goes to the side
that the split has for missing values and pays no hinge error there, as it has no distance.

Feasible trees
--------------
1. *The scale is bounded* (M = 1 of Theorem 2): :math:`|f_b(x_i)| \le 1` at every numerical split for every point whose
   values there are known, also if it never reaches b, and :math:`|h_{bj}| \le H`. The weight of a feature that has
   missing values is 0 or at least the `tolerance` in size: which points a split has no value for must be clear.
2. *Nothing lies on a split*: :math:`|f_b(x_i)| \ge \mu` for the points that reach b. Without it the program is not
   about trees: a point with :math:`f_b(x_i) = 0` may go to either side there, while a tree sends it left.
   The hinge error that it pays does not prevent that: with 100 points of class 0 at x = 0, 100 of class 1 at x = 1, one
   of each at x = 0.5, :math:`\epsilon = \alpha_1 = 1` and :math:`\alpha_2 = 0`, the printed program of depth 1 costs 2
   and claims no error, while every tree costs at least 3. :math:`\mu` is the small `tolerance` that makes sides a
   matter of fact for every solver.
3. With :math:`\alpha_1 = \alpha_2 = 0` (Proposition 2 is about this case) margins would cost nothing and mean nothing:
   there :math:`\mu = \epsilon`, a hard margin.
4. The depth is at most D. A split with :math:`h_b = 0` and :math:`|g_b| \ge \epsilon` sends all points one way at no
   cost: shallower trees are feasible.

Routing does not depend on the scale of a split, so that most trees are feasible once their splits are scaled.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.data import distinct_rows
from treewright.exceptions import InvalidInputError
from treewright.models.svm1odt import printed_program as paper
from treewright.models.svm1odt import program
from treewright.models.svm1odt.cuts import CUTS, Cut, classes_without_leaf
from treewright.models.svm1odt.heap import HeapTree, mirrored_heap_tree
from treewright.models.svm1odt.hinge_costs import hinge_errors, split_norm, split_values
from treewright.models.svm1odt.mixed import Levels, filled_rows
from treewright.models.svm1odt.repair import repaired_svm1odt_tree, with_sides_for_the_unseen
from treewright.optimize.formulation import DistinctPoints, LabelledPoints
from treewright.solvers import Capability
from treewright.solvers.program import Program
from treewright.tree import Tree, counted, side, weighted_error
from treewright.tree.routing import points_at_splits

__all__ = ["SVM1ODT"]


@dataclass(frozen=True)
class SVM1ODT(DistinctPoints, LabelledPoints):
    """The SVM1-ODT model on given data.

    Numerical features are in [0, 1], categorical ones codes 0, 1, 2, ...; both are NaN where a value is missing.

    Parameters
    ----------
    X, y, weight, n_classes, depth
        See :class:`~treewright.optimize.formulation.LabelledPoints`.
    epsilon : float
        The margin below which a point pays a hinge error, in (0, 1].
    alpha_1 : float
        Price of the hinge errors; ``alpha_1 * epsilon >= 1``, or 0 together with `alpha_2` for a hard margin.
    alpha_2 : float
        Price of the 1-norm of the splits.
    size : ndarray of shape (n_points,) or None
        Rows that a point stands for, which multiply its hinge errors; 1 each by default.
    categorical : ndarray of bool, shape (n_features,), or None
        Which features are categorical; none by default.
    levels : ndarray of int, shape (n_features,), or None
        Number of levels of each categorical feature, 0 for numerical ones; by default as many as there are codes.
    max_coefficient : float
        H, the bound of every entry of a normal.
    tolerance : float
        The distance mu that points keep from the splits they reach, at most `epsilon`.
    formulation : {"tight", "paper"}
        The program to write; "paper" is the printed one, which does not know missing values.
    cuts : tuple of {"leaf", "all_but_one", "all"} or None
        Cuts of Proposition 1 to add. By default all three to the printed program and none to the tight one, which
        implies them.

    Examples
    --------
    A stump whose margin one point misses:

    >>> import numpy as np
    >>> X, y = np.array([[0.0], [0.4], [0.6], [1.0]]), np.array([0, 0, 0, 1])
    >>> model = SVM1ODT(X, y, np.ones(4), n_classes=2, depth=1, epsilon=0.25, alpha_1=4.0, alpha_2=0.5)
    >>> tree = Tree.stump([1.0], 0.75, [[3.0, 0.0], [0.0, 1.0]])
    >>> round(model.objective(tree), 12)  # 4 * (0.25 - 0.15) + 0.5 * 1
    0.9
    """

    epsilon: float = 0.01
    alpha_1: float = 1000.0
    alpha_2: float = 0.1
    size: FloatArray | None = None
    categorical: BoolArray | None = None
    levels: IntArray | None = None
    max_coefficient: float = 10.0
    tolerance: float = 1e-4
    formulation: Literal["tight", "paper"] = "tight"
    cuts: tuple[Cut, ...] = None  # type: ignore[assignment]
    needs: ClassVar[Capability] = Capability.LP | Capability.MIP

    def __post_init__(self) -> None:
        n, p = self.X.shape
        defaults: dict[str, Any] = {
            "size": np.ones(n),
            "categorical": np.zeros(p, dtype=bool),
            "cuts": CUTS if self.formulation == "paper" else (),
        }
        for name, value in defaults.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        self._refuse_parameters()
        self._refuse_data()
        if self.formulation == "paper":
            paper.refuse(self)

    # ------------------------------------------------------------------ what is refused

    def _refuse_parameters(self) -> None:
        if self.n_classes < 1 or self.depth < 1:
            raise InvalidInputError(f"{self.n_classes} classes and depth {self.depth}: at least 1 and 1 are needed")
        if not 0 < self.tolerance <= self.epsilon <= 1:
            raise InvalidInputError(
                f"epsilon={self.epsilon} must be in (0, 1] and no smaller than tolerance={self.tolerance}"
            )
        if not self.max_coefficient > 0 or not 0 <= self.alpha_2 < np.inf or not 0 <= self.alpha_1 < np.inf:
            raise InvalidInputError(
                f"alpha_1={self.alpha_1}, alpha_2={self.alpha_2} must not be negative, "
                f"max_coefficient={self.max_coefficient} must be positive"
            )
        if self.formulation not in ("tight", "paper"):
            raise InvalidInputError(f"formulation={self.formulation!r} is unknown; use 'tight' or 'paper'")
        if not set(self.cuts) <= set(CUTS):
            raise InvalidInputError(f"cuts={self.cuts!r} are unknown; use some of {', '.join(map(repr, CUTS))}")
        # The product of 1000 and 0.001 may be a rounding error below 1.
        if not self.hard and self.alpha_1 * self.epsilon < 1 - 1e-9:
            raise InvalidInputError(
                f"alpha_1 * epsilon = {self.alpha_1 * self.epsilon:.3g} is below 1: a point inside the margin would be "
                f"cheaper than an error; use alpha_1 >= {1 / self.epsilon:.6g}, a larger epsilon, or alpha_1 = alpha_2 "
                "= 0 for a hard margin"
            )

    def _refuse_data(self) -> None:
        n, p = self.X.shape
        for name, shape in [("y", n), ("weight", n), ("size", n), ("categorical", p)]:
            if np.shape(getattr(self, name)) != (shape,):
                raise InvalidInputError(f"{name} has shape {np.shape(getattr(self, name))}, expected ({shape},)")
        if n == 0:
            raise InvalidInputError("there are no points")
        if np.any(self.y < 0) or np.any(self.y >= self.n_classes):
            raise InvalidInputError(f"y must be class numbers from 0 to {self.n_classes - 1}")
        for name in ("weight", "size"):
            value = getattr(self, name)
            if not np.all(np.isfinite(value)) or np.any(value < 0):
                raise InvalidInputError(f"{name} must be finite and not negative")
        if np.isinf(self.X).any():
            raise InvalidInputError("X has infinite values")
        self._set_levels()

    def _set_levels(self) -> None:
        """Check the codes, and count them where the number of levels is not given."""
        categorical = self.is_categorical
        codes = self.X[:, categorical]
        known = codes[~np.isnan(codes)]
        if np.any(known < 0) or np.any(known != np.floor(known)):
            raise InvalidInputError("categorical features must be codes 0, 1, 2, ..., or NaN where missing")
        counted = np.zeros(self.X.shape[1], dtype=np.int64)
        counted[categorical] = np.nan_to_num(codes, nan=-1.0).max(axis=0, initial=-1.0) + 1
        levels = counted if self.levels is None else np.where(categorical, self.levels, 0)
        if np.any(levels < counted):
            j = int(np.argmax(levels < counted))
            raise InvalidInputError(f"feature {j} has {levels[j]} levels, but the code {counted[j] - 1} occurs")
        object.__setattr__(self, "levels", levels)

    # ------------------------------------------------------------------ data and constants

    @property
    def is_categorical(self) -> BoolArray:
        """Which features are categorical."""
        assert self.categorical is not None
        return self.categorical

    @cached_property
    def sizes(self) -> FloatArray:
        """Rows that each point stands for."""
        assert self.size is not None
        return self.size

    @property
    def n_levels(self) -> IntArray:
        """Number of levels of each feature, 0 for numerical ones."""
        assert self.levels is not None
        return self.levels

    @property
    def hard(self) -> bool:
        """Whether the margin is hard: nothing but errors counts."""
        return self.alpha_1 == 0 and self.alpha_2 == 0

    @property
    def margin(self) -> float:
        """The distance mu that points keep from the splits they reach."""
        return self.epsilon if self.hard else self.tolerance

    # ------------------------------------------------------------------ data as the program sees it

    @cached_property
    def numerical(self) -> IntArray:
        """Numbers of the numerical features."""
        return np.flatnonzero(~self.is_categorical)

    @cached_property
    def has_gaps(self) -> BoolArray:
        """Which numerical features have missing values."""
        return np.asarray(np.isnan(self.X).any(axis=0) & ~self.is_categorical)

    @cached_property
    def _groups(self) -> tuple[IntArray, IntArray]:
        return distinct_rows(np.where(np.isnan(self.X), np.inf, self.X))

    @cached_property
    def patterns(self) -> tuple[BoolArray, IntArray, IntArray]:
        """Distinct patterns of missing numerical values, the groups that have one, and which one each has."""
        missing = np.isnan(self.rows[:, self.numerical])
        groups = np.flatnonzero(missing.any(axis=1))
        found, pattern = np.unique(missing[groups], axis=0, return_inverse=True)
        return found, groups, pattern.reshape(-1)

    @cached_property
    def _filled(self) -> tuple[FloatArray, FloatArray]:
        return filled_rows(self.rows[:, self.numerical], self.max_coefficient)

    @property
    def filled(self) -> FloatArray:
        """Numerical features of each group, missing ones filled with those of the nearest group that lacks nothing."""
        return self._filled[0]

    @property
    def reach(self) -> FloatArray:
        """Bound of ``|f_b|`` for each group: 1, or more where values are missing."""
        return self._filled[1]

    @cached_property
    def levels_used(self) -> Levels:
        """Categorical features that can part points, and their levels."""
        return Levels.of(self.rows, self.is_categorical, self.n_levels)

    @property
    def program_cells(self) -> int:
        """About how many non-zeros the program has: a row of all features and two of places a group and branch."""
        (n, n_branches), n_leaves = (len(self.rows), self.tree.n_branches), self.tree.n_leaves
        n_categories = int(self.is_categorical.sum())
        if self.formulation == "paper":  # a row of all features a point and branch, and several a point, leaf and level
            each = n_branches * (len(self.numerical) + 3) + n_leaves * (self.depth * (5 + 3 * n_categories) + 11)
            return len(self.X) * each
        return n * (n_branches * (len(self.numerical) + n_leaves + 10 + 8 * n_categories) + 4 * n_leaves)

    # ------------------------------------------------------------------ build, decode, encode

    @cached_property
    def _program(self) -> Program:
        return (paper if self.formulation == "paper" else program).build(self)

    def decode(self, x: FloatArray) -> Tree:
        """Read the complete tree off a solution; its values are the weights of the points.

        Levels and missing values of which no point reaches a split go with its larger side.
        """
        heap = (paper if self.formulation == "paper" else program).planes_of(self, x)
        tree = counted(heap.to_tree(self.n_classes), self.X, self.y, self.weight)
        return with_sides_for_the_unseen(self, tree)

    def leaves_of(self, x: FloatArray) -> IntArray:
        """Heap number of the leaf that a solution sends each point to."""
        place = np.argmax(self.build().value(x, "e"), axis=1)
        return np.asarray((place if self.formulation == "paper" else place[self.group]) + self.tree.n_leaves)

    def encode(self, tree: Tree) -> FloatArray:
        """Write a tree, made feasible by :meth:`repair`, as a point of the program."""
        heap = HeapTree.from_tree(self._mirrored(self.repair(tree)), self.depth)
        return self.build().point((paper if self.formulation == "paper" else program).point(self, heap))

    def _mirrored(self, tree: Tree) -> Tree:
        """Mirror splits until the heaviest group goes right above the lowest ones, whose labels rise."""
        assert tree.labels is not None
        first = self.rows[[np.argmax(self.group_weight.sum(axis=1))]]
        turned, node = np.zeros(tree.n_nodes, dtype=bool), 0
        for _ in range(self.depth - 1):
            if tree.left[node] < 0:
                break
            turned[node] = side(tree, first, node)[0]
            node = int(tree.left[node] if turned[node] else tree.right[node])
        lowest = tree.branches[tree.level[tree.branches] == self.depth - 1]
        turned[lowest] = tree.labels[tree.left[lowest]] > tree.labels[tree.right[lowest]]
        return mirrored_heap_tree(tree, turned)

    # ------------------------------------------------------------------ any tree made feasible, and measured

    def repair(self, tree: Tree) -> Tree:
        """Make any tree feasible: splits scaled and moved off the points, best labels, no idle splits.

        See :func:`treewright.models.svm1odt.repair.repaired_svm1odt_tree`.
        """
        return repaired_svm1odt_tree(self, tree)

    def lower_bound(self) -> float:
        """A bound without conduct: equal rows of different classes, and classes for which no leaf is left."""
        table = self.group_weight
        inseparable = float((table.sum(axis=1) - table.max(axis=1)).sum())
        return max(inseparable, classes_without_leaf(table.sum(axis=0), self.tree.n_leaves))

    def refuse_codes_as_numbers(self, tree: Tree) -> None:
        """Refuse a tree with a hyperplane over categorical features."""
        wrong = np.argwhere(tree.weights[:, self.is_categorical] != 0.0)
        if len(wrong):
            raise InvalidInputError(
                f"node {wrong[0, 0]} of the tree is a numerical split that uses the categorical feature "
                f"{np.flatnonzero(self.is_categorical)[wrong[0, 1]]}"
            )

    def objective(self, tree: Tree) -> float:
        """Objective of a tree of any shape, computed from the tree and the data alone.

        It is the formula above for the splits as they are scaled, whether the tree is feasible or not.
        """
        self.refuse_codes_as_numbers(tree)
        value = weighted_error(tree, self.X, self.y, self.weight) + self.alpha_2 * split_norm(tree)
        if self.alpha_1 > 0:
            for node, inside, _ in points_at_splits(tree, self.X):
                if tree.category[node] < 0:
                    error = hinge_errors(split_values(tree, self.X[inside], node), self.epsilon)
                    value += self.alpha_1 * float(self.sizes[inside] @ error)
        return value
