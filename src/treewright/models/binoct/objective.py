r"""BinOCT: optimal classification trees by a binary encoding of thresholds (Verwer and Zhang 2019).

.. math:: \min \sum_{t,c} e_{tc}, \qquad e_{tc} \ge \sum_g W_{gc}\, z_{gt} - W_c\, p_{tc},

over a feature :math:`f_{bj}` and the bits :math:`\theta_{b\tau}` of a cut at every branch b of a complete tree, a label
:math:`p_{tc}` of every leaf t and places :math:`z_{gt}` of points in leaves; :math:`W_{gc}` is the weight of class c in
group g of equal points and :math:`W_c` that of the class. Branch b with feature j and the number
:math:`k_b = \sum_\tau 2^\tau \theta_{b\tau}` sends points with value number v of j left where :math:`v < k_b`.

A number k is at least k' if its bits include those of k', and every :math:`k > v` includes the bits of just one of the
numbers k' that v becomes by turning one of its bits 0 into 1 and all lower ones into 0. So for each k' it is enough to
hold the range of values v that become k', the ``lowbit(k')`` values below it:

.. math:: \sum_{g:\, v_{gj} \in range(k')} \sum_{t\ right\ of\ b} z_{gt}
          \le M \Bigl(1 - f_{bj} + \sum_{\tau \in bits(k')} (1 - \theta_{b\tau})\Bigr),

with M the number of groups in the range, and likewise, with bits that are 0, for the values that go right. There are as
many rows as a feature has values, whatever the number of points, and a point is in a logarithmic number of them.

As against the printed model

* equal points share their places, and M is what a range can reach instead of one constant;
* bits that the chosen feature has no values for are 0, and error sums are whole numbers where weights are, which a
  solver can round its bounds up to.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from treewright.core.arrays import FloatArray, IntArray
from treewright.models.binoct.axis import AxisPoints, single_feature_tree
from treewright.optimize.shared_rows import add_leaf_labels, sides_of_branches
from treewright.solvers import Capability
from treewright.solvers.program import Program
from treewright.solvers.program_builder import ProgramBuilder
from treewright.tree import Tree, weighted_error, without_idle_splits

__all__ = ["BinOCT"]


class _Ranges(NamedTuple):
    """Ranges of values that go one way together, over all features.

    Attributes
    ----------
    groups : csr_array of shape (n_ranges, n_groups)
        1 for the groups with a value in the range.
    feature : ndarray of int, shape (n_ranges,)
        Place of the feature among those that may be chosen.
    bits : ndarray of bool, shape (n_ranges, n_bits)
        Bits that must be 1 (of the ranges that go left) or 0 for the range to go this way.
    """

    groups: sparse.csr_array
    feature: IntArray
    bits: np.ndarray


@dataclass(frozen=True)
class BinOCT(AxisPoints):
    """BinOCT on labelled points.

    Parameters
    ----------
    X, y, weight, n_classes, depth
        See :class:`~treewright.optimize.formulation.LabelledPoints`.

    Examples
    --------
    >>> from treewright.solvers import get_solver
    >>> X, y = np.array([[0.0], [1.0], [5.0], [7.0]]), np.array([0, 1, 1, 0])
    >>> model = BinOCT(X, y, np.ones(4), n_classes=2, depth=1)
    >>> result = get_solver("highs").solve(model.build())
    >>> tree = model.decode(result.x)
    >>> model.objective(tree)
    1.0
    """

    needs: ClassVar[Capability] = Capability.LP | Capability.MIP

    # ------------------------------------------------------------------ data as the program sees it

    @cached_property
    def features(self) -> IntArray:
        """Features that a branch may choose: those with several values, or the first where none has."""
        return self.varied if len(self.varied) else np.zeros(1, dtype=np.int64)

    @cached_property
    def bits(self) -> IntArray:
        """How many bits the value numbers of each of these features take."""
        return np.array([(len(self.values[j]) - 1).bit_length() for j in self.features.tolist()])

    @cached_property
    def program_cells(self) -> int:
        """About how many non-zeros the program has: a place is in half as many ranges of a feature as it has bits."""
        n, n_leaves = len(self.group_weight), self.tree.n_leaves
        ranges = int((2**self.bits).sum())
        each = self.depth * n_leaves * int((self.bits // 2 + 1).sum()) + n_leaves * (2 + self.n_classes)
        return n * each + 2 * ranges * self.tree.n_branches * (2 + int(self.bits.max()) // 2)

    # ------------------------------------------------------------------ build

    @cached_property
    def _program(self) -> Program:
        builder, tree = ProgramBuilder(), self.tree
        n_bits = int(self.bits.max())
        f = builder.add_variables("f", (tree.n_branches, len(self.features)), upper=1, integer=True, priority=20)
        bit = builder.add_variables("bit", (tree.n_branches, n_bits), upper=1, integer=True, priority=15)
        c = add_leaf_labels(builder, self.n_classes, tree.n_leaves)
        z = builder.add_variables("z", (len(self.group_weight), tree.n_leaves), upper=1, integer=True)
        builder.add_rows("one_feature", [(f, 1.0)], lower=1, upper=1)
        builder.add_rows("one_leaf", [(z, 1.0)], lower=1, upper=1)
        if n_bits:
            owned = (self.bits > np.arange(n_bits)[:, None]).astype(np.float64)  # whether a feature has the bit
            for b in range(tree.n_branches):
                builder.add_rows(f"own_bits[{b + 1}]", [(bit[b], 1.0), (f[b], -sparse.csr_array(owned))], upper=0)
        self._add_ranges(builder, f, bit, z)
        self._add_errors(builder, z, c)
        return builder.build()

    def _add_ranges(self, builder: ProgramBuilder, f: IntArray, bit: IntArray, z: IntArray) -> None:
        """Rows that keep the points of a range away from the side that feature and bits do not send it to."""
        ranges = {True: self._ranges(left=True), False: self._ranges(left=False)}
        for b, name, sign, leaves in sides_of_branches(self.tree):
            goes_left = sign < 0  # the leaves named are those on the right then, which such ranges may not reach
            part = ranges[goes_left]
            places = sparse.kron(part.groups, np.ones((1, int(leaves.sum()))), format="csr")
            most = np.asarray(part.groups.sum(axis=1)).ravel()
            chosen = sparse.csr_array((most, (np.arange(len(most)), part.feature)), shape=(len(most), f.shape[1]))
            n_bits = part.bits.sum(axis=1)
            told = sparse.csr_array(most[:, None] * part.bits * (1.0 if goes_left else -1.0))
            upper = most * (1 + n_bits) if goes_left else most
            builder.add_rows(name, [(z[:, leaves].ravel(), places), (f[b], chosen), (bit[b], told)], upper=upper)

    def _ranges(self, left: bool) -> _Ranges:
        """Ranges of values that go left if all their bits are 1, or right if all are 0."""
        groups, features, bits = [], [], []
        rank = self.rank[:, self.features]
        for j, n_bits in enumerate(self.bits.tolist()):
            end = 2**n_bits
            # What holds for k and bits that are 1 holds for end - 1 - k and bits that are 0.
            number = np.arange(1 if left else 0, end)
            lowest = np.where(number > 0, number & -number, 1)
            first = number - lowest if left else end - 1 - number
            inside = (rank[:, j] >= first[:, None]) & (rank[:, j] < (first + lowest)[:, None])
            used = inside.any(axis=1)
            groups.append(sparse.csr_array(inside[used].astype(np.float64)))
            features.append(np.full(int(used.sum()), j))
            bits.append((number[used, None] >> np.arange(int(self.bits.max()))) & 1 == 1)
        return _Ranges(sparse.csr_array(sparse.vstack(groups)), np.concatenate(features), np.vstack(bits))

    def _add_errors(self, builder: ProgramBuilder, z: IntArray, c: IntArray) -> None:
        """Weight of each class in leaves of other labels."""
        n_leaves = z.shape[1]
        whole = bool(np.all(self.weight == np.round(self.weight)))
        e = builder.add_variables("e", (self.n_classes, n_leaves), integer=whole, cost=1.0)
        total = self.group_weight.sum(axis=0)
        for k in range(self.n_classes):
            terms = [(z.T, self.group_weight[:, k]), (e[k], -1.0), (c[k], -total[k])]
            builder.add_rows(f"error[{k}]", terms, upper=0)

    # ------------------------------------------------------------------ decode, encode

    def decode(self, x: FloatArray) -> Tree:
        """Read the tree off a solution; thresholds lie midway between neighbouring values."""
        value = self.build().value
        place, label = np.argmax(value(x, "f"), axis=1), np.argmax(value(x, "c"), axis=0)
        bit = value(x, "bit") > 0.5
        bit &= self.bits[place][:, None] > np.arange(bit.shape[1])
        return self.from_cuts(self.features[place], bit @ (1 << np.arange(bit.shape[1])), label)

    def leaves_of(self, x: FloatArray) -> IntArray:
        """Heap number of the leaf that a solution sends each point to."""
        place = np.argmax(self.build().value(x, "z"), axis=1)
        return np.asarray(place[self.group] + self.tree.n_leaves)

    def encode(self, tree: Tree) -> FloatArray:
        """Write a tree, made feasible by :meth:`repair`, as a point of the program."""
        cuts = self.as_cuts(self.repair(tree))
        n_leaves, n_bits = self.tree.n_leaves, int(self.bits.max())
        z = np.zeros((len(self.group_weight), n_leaves))
        z[np.arange(len(z)), cuts.leaf] = 1.0
        c = cuts.labels == np.arange(self.n_classes)[:, None]
        feature = np.where(cuts.feature >= 0, cuts.feature, self.features[0])
        blocks = {
            "f": feature[:, None] == self.features,
            "bit": (cuts.cut[:, None] >> np.arange(n_bits)) & 1,
            "c": c,
            "z": z,
            "e": np.where(c, 0.0, self.group_weight.T @ z),
        }
        return self.build().point(blocks)

    # ------------------------------------------------------------------ any tree made feasible, and measured

    def repair(self, tree: Tree) -> Tree:
        """Make any tree feasible: splits of one feature, depth kept, best labels, no idle splits."""
        return without_idle_splits(
            single_feature_tree(tree, self.X, self.depth), self.X, self.y, self.weight, self.n_classes
        )

    def objective(self, tree: Tree) -> float:
        """Weight of the misclassified points."""
        return weighted_error(tree, self.X, self.y, self.weight)

    def lower_bound(self) -> float:
        """A bound without conduct, see :meth:`least_error`."""
        return self.least_error()
