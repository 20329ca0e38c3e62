r"""Fair optimal classification trees (Aghaei, Azizi and Vayanos 2019).

.. math:: \min\; \frac{1}{W} \sum_{g,k,t} W_{gk}\, e_{gkt} + \alpha \sum_{b,j} s_{bj0} + \lambda \sum_{a,k} D_{ak}

over splits s of single features, places z of points in the leaves t of a complete tree and labels c of these:
the share of misclassified rows, a price for each split, and a price for the index of disparate impact,
:math:`D_{ak} \ge |P(\hat y = k \mid a) - P(\hat y = k)|` for the protected groups a. The paper has the first and the
last term.

There a categorical feature sends each of its levels left or right, :math:`s_{bjv} \le s_{bj}`, and a number is compared
with a cutoff by rows with a large constant. Here a number is a category whose levels, its values, are in order:
:math:`s_{bjv}` says whether value number v of feature j goes left at branch b, and

.. math:: s_{bj0} \ge s_{bj1} \ge \dots \ge s_{bj,m-2} \ge 0, \qquad \sum_j s_{bj0} \le 1 .

The highest value goes right, so the feature is used if the lowest goes left, and no constant is needed:

.. math:: \sum_{t\ left\ of\ b} z_{gt} \le \sum_j s_{bj v_{gj}}, \qquad
          \sum_{t\ right\ of\ b} z_{gt} \le 1 - \sum_j s_{bj v_{gj}} .

Further differences, none of which changes the optimum: equal points share their places; a branch that does not split
sends points right, and has no splits below; errors are :math:`e_{gkt} \ge z_{gt} - c_{kt}` in each leaf; shares of
predictions are :math:`P(\hat y = k \mid a) = \sum_t q_{akt}` with :math:`q_{akt} \le c_{kt}` and
:math:`\sum_k q_{akt}` the share of group a in leaf t, instead of a product for each row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from treewright.core.arrays import FloatArray, IntArray
from treewright.models.binoct.axis import AxisPoints, single_feature_tree
from treewright.models.fair.labels import discrimination, fair_leaf_labels
from treewright.optimize.shared_rows import add_label_counts, add_leaf_labels, label_count_blocks, sides_of_branches
from treewright.solvers import Capability
from treewright.solvers.program import Program
from treewright.solvers.program_builder import ProgramBuilder, Term
from treewright.tree import Tree, leaf_counts, predict_labels, route, weighted_error, without_equal_leaves

__all__ = ["FairOCT"]


@dataclass(frozen=True)
class FairOCT(AxisPoints):
    """The fair tree on labelled points.

    Parameters
    ----------
    X, y, weight, n_classes, depth
        See :class:`~treewright.optimize.formulation.LabelledPoints`.
    complexity : float
        The price alpha of a split, as a share of the rows.
    fairness_weight : float
        The price lambda of discrimination.
    protected : ndarray or sparse array of shape (n_points, n_protected), or None
        Weight of each point that belongs to each protected group, which adds up to that of the point; no group is
        without weight. None, where discrimination has no price, for one group.

    Examples
    --------
    >>> from treewright.solvers import get_solver
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
    >>> groups = np.eye(2)[[0, 0, 1, 1]]
    >>> for price in (0.0, 0.3):
    ...     model = FairOCT(X, y, np.ones(4), 2, depth=1, fairness_weight=price, protected=groups)
    ...     tree = model.decode(get_solver("highs").solve(model.build()).x)
    ...     print(round(model.objective(tree), 6), model.discrimination(tree))
    0.0 2.0
    0.5 0.0
    """

    complexity: float = 0.0
    fairness_weight: float = 0.0
    protected: Any = None
    needs: ClassVar[Capability] = Capability.LP | Capability.MIP

    # ------------------------------------------------------------------ data as the program sees it

    @cached_property
    def total(self) -> float:
        """Weight of all points."""
        return float(self.weight.sum())

    @cached_property
    def _protected(self) -> sparse.csr_array:
        """Weight of each point in each protected group: of many groups a point has few."""
        return sparse.csr_array(self.weight[:, None] if self.protected is None else self.protected)

    @cached_property
    def part(self) -> FloatArray:
        """Share of each protected group among all points."""
        return np.asarray(self._protected.sum(axis=0) / self._protected.sum())

    def _summed(self, part: IntArray, n_parts: int) -> sparse.csr_array:
        """Weight of each protected group in each part of the points, shape (n_parts, n_protected)."""
        points = np.arange(len(part))
        return sparse.csr_array((np.ones(len(part)), (part, points)), shape=(n_parts, len(part))) @ self._protected

    @cached_property
    def _shares(self) -> sparse.csr_array:
        """Share of each protected group that each group of equal points has, shape (n_protected, n_groups)."""
        table = self._summed(self.group, len(self.group_weight)).T.tocsr()
        table.data /= np.repeat(table.sum(axis=1), np.diff(table.indptr))
        table.sort_indices()
        return table

    @cached_property
    def starts(self) -> IntArray:
        """Where the values of each varied feature begin among all values that may go left, and where the last end."""
        sizes = [len(self.values[j]) - 1 for j in self.varied.tolist()]
        return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])

    @cached_property
    def _own(self) -> sparse.csr_array:
        """Which of these values each group has, shape (n_groups, n_values)."""
        rank = self.rank[:, self.varied]
        group, feature = np.nonzero(rank < np.diff(self.starts))
        place = self.starts[feature] + rank[group, feature]
        return sparse.csr_array((np.ones(len(group)), (group, place)), shape=(len(rank), int(self.starts[-1])))

    @cached_property
    def program_cells(self) -> int:
        """About how many non-zeros the program has, known before it is written."""
        n, n_leaves, n_branches = len(self.group_weight), self.tree.n_leaves, self.tree.n_branches
        errors = 3 * n_leaves * int(np.count_nonzero(self.group_weight))
        counts = n_leaves * n * len(self.part) if self.fairness_weight > 0 else 0
        routing = n * (2 * n_branches * len(self.varied) + (self.depth + 1) * n_leaves)
        return routing + errors + counts + 2 * n_branches * int(self.starts[-1])

    # ------------------------------------------------------------------ build

    @cached_property
    def _program(self) -> Program:
        builder, tree = ProgramBuilder(), self.tree
        s = self._add_splits(builder)
        c = add_leaf_labels(builder, self.n_classes, tree.n_leaves)
        z = builder.add_variables("z", (len(self.group_weight), tree.n_leaves), upper=1)
        builder.add_rows("one_leaf", [(z, 1.0)], lower=1, upper=1)
        for b, name, sign, leaves in sides_of_branches(tree):
            terms: list[Term] = [(z[:, leaves], 1.0), (s[b], -sign * self._own)]
            builder.add_rows(name, terms, upper=0.0 if sign > 0 else 1.0)
        self._add_errors(builder, z, c)
        if self.fairness_weight > 0:
            self._add_discrimination(builder, z, c)
        return builder.build()

    def _add_splits(self, builder: ProgramBuilder) -> IntArray:
        """Values that go left at each branch: of one feature at most, the lowest ones, and only below a split."""
        n_branches, n_values, first = self.tree.n_branches, int(self.starts[-1]), self.starts[:-1]
        price = np.where(np.isin(np.arange(n_values), first), self.complexity, 0.0)
        shape = (n_branches, n_values)
        s = builder.add_variables("s", shape, upper=1, integer=True, cost=price, priority=20)
        builder.add_rows("one_feature", [(s[:, first], 1.0)], upper=1)
        later = np.setdiff1d(np.arange(n_values), first)
        if len(later):
            builder.add_rows("in_order", [(s[:, later].ravel(), 1.0), (s[:, later - 1].ravel(), -1.0)], upper=0)
        child = np.arange(1, n_branches)
        if len(child):
            builder.add_rows(
                "parent_splits", [(s[child][:, first], 1.0), (s[(child - 1) // 2][:, first], -1.0)], upper=0
            )
        return s

    def _add_errors(self, builder: ProgramBuilder, z: IntArray, c: IntArray) -> None:
        """Errors of each class of each group in each leaf."""
        group, klass = np.nonzero(self.group_weight)
        cost = self.group_weight[group, klass] / self.total
        e = builder.add_variables("e", (len(group), z.shape[1]), upper=1, cost=cost[:, None])
        terms = [(e.ravel(), -1.0), (z[group].ravel(), 1.0), (c[klass].ravel(), -1.0)]
        builder.add_rows("error", terms, upper=0)

    def _add_discrimination(self, builder: ProgramBuilder, z: IntArray, c: IntArray) -> None:
        """How far the predictions of each protected group are from those of all, class by class, and the price."""
        n_protected = len(self.part)
        share = builder.add_variables("count", (n_protected, self.n_classes), upper=1)
        add_label_counts(builder, share, z, c, self._shares, np.ones(n_protected))
        apart = builder.add_variables("apart", share.shape, upper=1, cost=self.fairness_weight)
        # Row (a, k): share[a, k] less the mean of share[:, k].
        less = sparse.csr_array(np.kron(np.eye(n_protected) - self.part, np.eye(self.n_classes)))
        for name, sign in (("above", 1.0), ("below", -1.0)):
            builder.add_rows(name, [(apart.ravel(), -1.0), (share.ravel(), sign * less)], upper=0)

    # ------------------------------------------------------------------ decode, encode

    def decode(self, x: FloatArray) -> Tree:
        """Read the tree off a solution; thresholds lie midway between neighbouring values."""
        value = self.build().value
        left = value(x, "s") > 0.5
        used = left[:, self.starts[:-1]]
        place = np.argmax(used, axis=1) if used.shape[1] else np.zeros(len(left), dtype=np.int64)
        feature = np.where(used.any(axis=1), self.varied[place] if len(self.varied) else -1, -1)
        return self.from_cuts(feature, left.sum(axis=1), np.argmax(value(x, "c"), axis=0))

    def leaves_of(self, x: FloatArray) -> IntArray:
        """Heap number of the leaf that a solution sends each point to."""
        place = np.argmax(self.build().value(x, "z"), axis=1)
        return np.asarray(place[self.group] + self.tree.n_leaves)

    def encode(self, tree: Tree) -> FloatArray:
        """Write a tree, made feasible by :meth:`repair`, as a point of the program."""
        cuts = self.as_cuts(self.repair(tree))
        s = np.zeros((self.tree.n_branches, int(self.starts[-1])))
        for b in np.flatnonzero(cuts.feature >= 0).tolist():
            first = self.starts[np.searchsorted(self.varied, cuts.feature[b])]
            s[b, first : first + cuts.cut[b]] = 1.0
        z = np.zeros((len(self.group_weight), self.tree.n_leaves))
        z[np.arange(len(z)), cuts.leaf] = 1.0
        c = (cuts.labels == np.arange(self.n_classes)[:, None]).astype(np.float64)
        group, klass = np.nonzero(self.group_weight)
        blocks = {"s": s, "c": c, "z": z, "e": z[group] * (1.0 - c[klass])}
        blocks |= label_count_blocks(z, c, self._shares)
        blocks["apart"] = np.abs(blocks["count"] - self.part @ blocks["count"])
        return self.build().point(blocks)

    # ------------------------------------------------------------------ any tree made feasible, and measured

    def repair(self, tree: Tree) -> Tree:
        """Make any tree feasible: splits of one feature, depth kept, best labels, no splits between equal leaves."""
        tree = single_feature_tree(tree, self.X, self.depth)
        counts = leaf_counts(tree, self.X, self.y, self.weight, self.n_classes)
        leaves, labels = tree.leaves, counts.argmax(axis=1)
        if self.fairness_weight > 0:
            inside = counts[leaves]
            error = (inside.sum(axis=1, keepdims=True) - inside) / self.total
            labels[leaves] = fair_leaf_labels(error, self._reach(tree), self.part, self.fairness_weight)
        return without_equal_leaves(tree.with_leaves(counts, labels))

    def _reach(self, tree: Tree) -> FloatArray:
        """Share of each protected group that is in each leaf, shape (n_leaves, n_protected)."""
        weight = self._summed(route(tree, self.X), tree.n_nodes).toarray()[tree.leaves]
        return np.asarray(weight / weight.sum(axis=0))

    def discrimination(self, tree: Tree) -> float:
        """The index of disparate impact of what a tree predicts."""
        counts = self._summed(predict_labels(tree, self.X), self.n_classes).toarray().T
        return float(discrimination(counts / counts.sum(axis=1, keepdims=True), self.part))

    def objective(self, tree: Tree) -> float:
        """Share of misclassified weight, price of the splits, price of discrimination."""
        error = weighted_error(tree, self.X, self.y, self.weight) / self.total
        unlike = self.fairness_weight * self.discrimination(tree) if self.fairness_weight > 0 else 0.0
        return error + self.complexity * len(tree.branches) + unlike

    def lower_bound(self) -> float:
        """A bound without conduct: a single leaf, which treats all alike, or the least error of any and one split."""
        by_class = self.group_weight.sum(axis=0)
        leaf = 1.0 - float(by_class.max()) / self.total
        return min(leaf, self.least_error() / self.total + self.complexity)
