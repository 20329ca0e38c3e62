r"""C2RF: member weights under which an ensemble's votes meet a class total (Burgard, Pinheiro, Schmidt 2025).

.. math:: \min_{\alpha, z, \eta}\; \sum_g \eta_g \quad\text{s.t.}\quad
          \alpha^\top r_i \le -1 + M_i z_i,\; \alpha^\top r_i \ge 1 - M_i' (1 - z_i),\;
          low_g - \eta_g \le \sum_i w_{ig} z_i \le high_g + \eta_g,\; l \le \alpha \le u,\; z \in \{0, 1\}

for the votes :math:`r_i \in \{-1, 1\}^t` of t members on unlabelled rows i; :math:`z_i = 1` is class 1. The paper has
one group and low = high = lambda; intervals and groups are ours.

Parts that can be switched, as in the paper's ablation:

* *preprocess* (its Section 3): rows of equal votes are one pattern, members of equal votes one column, and patterns
  whose sign no weighting changes are constants. Line 20 of its Algorithm 1 prints :math:`\min\{0, \lambda - \beta\}`
  where the maximum is meant; here the deviation is exact from the start, whatever is fixed.
* *branching* (Section 4): patterns that are nearest to a tie get the lowest priority, as printed. Priorities are hints:
  HiGHS leaves them aside.
* *order_cuts* (ours): :mod:`treewright.models.c2rf.objective`.
* *tight* (ours): with :math:`a_i` members against and :math:`b_i` for, :math:`\alpha^\top r_i` lies in
  :math:`[l b_i - u a_i, u b_i - l a_i]`, which replaces the printed :math:`M = ut + 1`.

*One side* (ours). Where weightings found so far all have too many positive rows, the question is how few positive rows
there can be: only the rows that make a pattern negative matter, z is charged directly, and no :math:`\eta` blurs the
bound. With the order pairs this is what closes instances at the root node. A member that outweighs all others together
decides alone, so these weightings are known one by one; one side is asked for without them (*no_dictator*):
:math:`\alpha_j \le \sum_{k \ne j} \alpha_k - 1` for all j, and a row with one vote against is positive.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
from scipy import sparse

from treewright.core.arrays import FloatArray, IntArray
from treewright.data.point_totals import PointTotals
from treewright.exceptions import InvalidInputError
from treewright.optimize.shared_rows import add_total_rows
from treewright.solvers import Capability
from treewright.solvers.program import Program
from treewright.solvers.program_builder import ProgramBuilder

__all__ = ["C2RF", "VoteOrder", "merged_votes", "vote_order"]


def merged_votes(votes: IntArray, totals: PointTotals) -> tuple[IntArray, PointTotals, IntArray]:
    """Patterns of C2RF votes, the totals of the rows that they stand for, and the pattern of each row.

    Votes are -1 and 1, or class numbers.

    Examples
    --------
    >>> totals = PointTotals(np.ones((3, 1)), [[1, 2]], [[1, 2]])
    >>> patterns, merged, number = merged_votes(np.array([[1, 1], [1, -1], [1, 1]]), totals)
    >>> patterns.tolist(), merged.rows.tolist(), number.tolist()
    ([[1, -1], [1, 1]], [1, 2], [1, 0, 1])
    """
    # Rows of bytes compare faster than rows of numbers, and two values need only bits.
    packed = np.packbits(votes > 0, axis=1) if votes.max(initial=0) <= 1 else votes
    width = packed.dtype.itemsize * packed.shape[1]
    keys = np.ascontiguousarray(packed).view(np.dtype((np.void, width))).ravel()
    _, first, number = np.unique(keys, return_index=True, return_inverse=True)
    return votes[first], totals.merged(number, len(first)), number.astype(np.int64)


@dataclass(frozen=True)
class C2RF:
    """C2RF on given votes, for two classes.

    Parameters
    ----------
    votes : ndarray of shape (n_patterns, n_members)
        Entries 1 (a vote for class 1) and -1.
    totals : PointTotals
        Rows of each group that the patterns stand for, and how many of them each of the two classes shall have.
    least, most : float
        l and u, the bounds of the weights.
    preprocess, branching, order_cuts, tight : bool
        See above.
    side : {"both", "fewer", "more"}
        "fewer" asks for the fewest rows of class 1, "more" for the fewest of class 0: relaxations whose optimum is
        that of the problem where it stays beyond the totals. For one group.
    no_dictator : bool
        Whether no member may outweigh all others together; for three members or more.
    ordered : int
        Most patterns whose pairs are looked at, the heaviest ones; the work grows with the third power.

    Examples
    --------
    >>> from treewright.solvers import get_solver
    >>> votes = np.array([[1, 1, -1], [1, -1, -1], [-1, 1, 1]])
    >>> model = C2RF(votes, PointTotals([[3], [2], [5]], low=[[5, 5]], high=[[5, 5]]))
    >>> result = get_solver("highs").solve(model.build())
    >>> weights = model.decode(result.x)
    >>> float(result.objective), model.objective(weights), (votes @ weights > 0).tolist()
    (0.0, 0.0, [True, True, False])
    """

    votes: IntArray
    totals: PointTotals
    least: float = 1.0
    most: float = 100.0
    preprocess: bool = True
    branching: bool = True
    order_cuts: bool = True
    tight: bool = True
    side: Literal["both", "fewer", "more"] = "both"
    no_dictator: bool = False
    ordered: int = 6000
    needs: ClassVar[Capability] = Capability.LP | Capability.MIP

    def __post_init__(self) -> None:
        if (self.totals.n_points, self.totals.n_classes) != (len(self.votes), 2):
            raise InvalidInputError(
                f"totals are about {self.totals.n_points} points and {self.totals.n_classes} classes, there are "
                f"{len(self.votes)} patterns and 2 classes"
            )

    # ------------------------------------------------------------------ what follows from the votes

    @property
    def n_members(self) -> int:
        """Number of members t."""
        return int(self.votes.shape[1])

    @cached_property
    def wanted(self) -> tuple[IntArray, IntArray]:
        """Fewest and most rows of class 1 in each group."""
        return self.totals.interval(1)

    @cached_property
    def reach(self) -> tuple[FloatArray, FloatArray]:
        """Least and largest weighted vote of each pattern."""
        against = (self.votes < 0).sum(axis=1)
        favour = self.n_members - against
        return self.least * favour - self.most * against, self.most * favour - self.least * against

    @cached_property
    def fixed(self) -> IntArray:
        """1 and -1 for patterns whose sign no weighting changes (the paper's Proposition 5), else 0."""
        lowest, highest = self.reach
        sure = (lowest >= 1).astype(np.int64) - (highest <= -1)
        if self.no_dictator:
            against = (self.votes < 0).sum(axis=1)
            sure[against == 1], sure[against == self.n_members - 1] = 1, -1
        return sure if self.preprocess else np.zeros_like(sure)

    @cached_property
    def columns(self) -> tuple[IntArray, IntArray]:
        """Column of each member, and a member of each column: members of equal votes share one (Proposition 4)."""
        everyone = np.arange(self.n_members)
        if not self.preprocess:
            return everyone, everyone
        _, first, number = np.unique(self.votes, axis=1, return_index=True, return_inverse=True)
        return number.reshape(-1).astype(np.int64), first.astype(np.int64)

    @property
    def free(self) -> IntArray:
        """Patterns that the program decides."""
        return np.flatnonzero(self.fixed == 0)

    def restricted(self, n_patterns: int) -> C2RF:
        """Return a one-sided relaxation in which only the heaviest undecided patterns count, all others as wished."""
        if len(self.free) <= n_patterns:
            return self
        heaviest = self.free[np.argsort(-self.totals.rows[self.free], kind="stable")[:n_patterns]]
        kept = self.fixed != 0
        kept[heaviest] = True
        kept &= self.totals.rows > 0
        return replace(self, votes=self.votes[kept], totals=self.totals.of(kept))

    def one_sided(self, weights: FloatArray, n_patterns: int) -> tuple[C2RF, Callable[[float], float]]:
        """Return the one-sided relaxation that may prove `weights` optimal, and what its bounds say of the objective.

        For one group and three members or more. It is without members that decide alone: then the count is that of
        their own votes, and these deviations are known. The side is that on which other weightings are.
        """
        alone = float(self.totals.deviation(self.totals.counts(self.votes.T > 0)).min())
        shared = weights if self.dictator(weights) is None else self.whole(np.ones(self.n_members))
        (low,), (high,) = self.wanted
        side: Literal["fewer", "more"] = "fewer" if self.positive(shared)[0] > high else "more"
        away = -float(high) if side == "fewer" else float(low - self.totals.rows.sum())
        relaxed = replace(self, side=side, no_dictator=True).restricted(n_patterns)
        # Counts are whole, so a bound may be rounded up.
        return relaxed, lambda bound: min(alone, away + float(np.ceil(bound - 1e-6)))

    # ------------------------------------------------------------------ program

    def build(self) -> Program:
        """Write the program (once; later calls return the same)."""
        return self._program

    @cached_property
    def _program(self) -> Program:
        builder = ProgramBuilder()
        column_of, first = self.columns
        scaled = self.votes[np.ix_(self.free, first)] * np.bincount(column_of, minlength=len(first))
        alpha = builder.add_variables("alpha", len(first), lower=self.least, upper=self.most)
        z = builder.add_variables("z", len(self.free), upper=1.0, integer=True, priority=self._priorities(scaled))
        self._add_signs(builder, alpha, z, scaled)
        if self.no_dictator:
            times = np.bincount(column_of, minlength=len(first)).astype(np.float64)
            every = np.broadcast_to(alpha, (len(first), len(first)))
            builder.add_rows("no_dictator", [(every, np.broadcast_to(times, every.shape)), (alpha, -2.0)], lower=1.0)
        self._add_counts(builder, z)
        if self.order_cuts:
            self._add_order(builder, z)
        return builder.build()

    def _priorities(self, scaled: IntArray) -> IntArray | int:
        """The printed rule: positions in the increasing order of |mean vote|."""
        if not self.branching or not len(scaled):
            return 0
        theta = np.abs(scaled.mean(axis=1))
        return np.searchsorted(np.unique(theta), theta) + 1

    def _add_signs(self, builder: ProgramBuilder, alpha: IntArray, z: IntArray, scaled: IntArray) -> None:
        lowest, highest = (end[self.free] for end in self.reach)
        if not self.tight:
            highest = np.full(len(z), self.most * self.n_members)
            lowest = -highest
        columns = np.broadcast_to(alpha, scaled.shape)
        if self.side != "more":
            builder.add_rows("negative", [(columns, scaled), (z, -(highest + 1.0))], upper=-1.0)
        if self.side != "fewer":
            builder.add_rows("positive", [(columns, scaled), (z, -(1.0 - lowest))], lower=lowest)

    def _add_counts(self, builder: ProgramBuilder, z: IntArray) -> None:
        sure, decided = self.totals.of(self.fixed > 0).group_rows, self.totals.of(self.free)
        if self.side != "both":
            sign = 1.0 if self.side == "fewer" else -1.0
            count = builder.add_variables("count", 1, lower=-np.inf, cost=sign)
            builder.add_rows("counted", [(count, 1.0), (z[None, :], -decided.rows[None, :])], lower=0.0, upper=0.0)
            rest = self.totals.rows.sum() - sure.sum()
            builder.add_offset(float(sure.sum() if self.side == "fewer" else rest))
            return
        low, high = self.wanted
        largest = np.maximum(low, self.totals.group_rows - high)
        dev = builder.add_variables("dev", len(low), upper=np.maximum(largest, 0), cost=1.0)
        add_total_rows(builder, [(z, sparse.csr_array(decided.size.T))], dev, low - sure, high - sure)

    def _add_order(self, builder: ProgramBuilder, z: IntArray) -> None:
        weight = self.totals.rows[self.free]
        looked_at = np.sort(np.argsort(-weight, kind="stable")[: self.ordered])
        order = vote_order(self.votes[self.free[looked_at]])
        z = z[looked_at]
        if len(order.implies[0]):
            k, i = order.implies
            builder.add_rows("implies", [(z[i], 1.0), (z[k], -1.0)], lower=0.0)
        if len(order.one_positive[0]) and self.side != "more":
            i, k = order.one_positive
            builder.add_rows("one_positive", [(z[i], 1.0), (z[k], 1.0)], lower=1.0)
        if len(order.one_negative[0]) and self.side != "fewer":
            i, k = order.one_negative
            builder.add_rows("one_negative", [(z[i], 1.0), (z[k], 1.0)], upper=1.0)

    def sure_bound(self, bound: float, gap: float) -> float:
        """The bound itself: rows are whole, and tolerances hide parts of one."""
        return bound

    @property
    def program_cells(self) -> int:
        """About how many non-zeros the program has, without the order pairs."""
        return len(self.free) * len(self.columns[1]) * (2 if self.side == "both" else 1)

    # ------------------------------------------------------------------ weights and points of the program

    def decode(self, x: FloatArray) -> FloatArray:
        """Read the weights of the members off a solution."""
        alpha = self.build().value(x, "alpha")
        return np.asarray(np.clip(alpha, self.least, self.most)[self.columns[0]])

    def encode(self, weights: FloatArray) -> FloatArray:
        """Write feasible weights as a point of the program."""
        if self.no_dictator and self.dictator(weights) is not None:
            weights = self.whole(np.ones(self.n_members))
        column_of, first = self.columns
        alpha = np.bincount(column_of, weights, len(first)) / np.bincount(column_of, minlength=len(first))
        z = (self.votes[self.free] @ weights > 0).astype(np.float64)
        blocks = {
            "alpha": alpha,
            "z": z,
            "count": self.totals.rows[self.free] @ z,
            "dev": self.totals.deviations(self.totals.counts(self.votes @ weights > 0)),
        }
        return self.build().point(blocks)

    def repair(self, weights: FloatArray) -> FloatArray:
        """Nearby weights within the bounds under which no pattern is tied.

        Where scaling to the upper bound does not give every pattern a margin of 1, weights are rounded: sums, with any
        signs, of whole numbers whose sum is odd are odd.
        """
        weights = np.clip(weights, self.least, self.most)
        for candidate in (weights, weights * (self.most / weights.max())):
            if np.abs(self.votes @ candidate).min(initial=np.inf) >= 1.0:
                return np.asarray(np.clip(candidate, self.least, self.most))
        return self.whole(weights)

    def whole(self, weights: FloatArray) -> FloatArray:
        """Nearby weights that are whole numbers of odd sum, on the largest scale; under these no pattern is tied."""
        low, high = np.ceil(self.least), np.floor(self.most)
        whole = np.clip(np.round(weights * (self.most / weights.max())), low, high)
        if whole.sum() % 2 == 0:
            j = int(np.argmax(whole))  # where a step of 1 matters least
            whole[j] += -1.0 if whole[j] > low else 1.0
        return np.asarray(whole)

    def dictator(self, weights: FloatArray) -> int | None:
        """The member that outweighs all others together, if there is one."""
        j = int(np.argmax(weights))
        return j if 2.0 * weights[j] > weights.sum() else None

    def positive(self, weights: FloatArray) -> IntArray:
        """Rows of class 1 in each group."""
        return self.totals.counts(self.votes @ weights > 0)[:, 1]

    def objective(self, weights: FloatArray) -> float:
        """Rows that would have to change class, counted."""
        return float(self.totals.missed(self.votes @ weights > 0))

    def lower_bound(self) -> float:
        """A bound without conduct: signs that no weighting changes, and counts that no set of patterns has."""
        lowest, highest = self.reach
        fewest = self.totals.of(lowest >= 1).group_rows
        most = self.totals.group_rows - self.totals.of(highest <= -1).group_rows
        low, high = self.wanted
        forced = np.maximum(np.maximum(fewest - high, low - most), 0).sum()
        return float(max(forced, self.totals.unreachable))


Pairs = tuple[IntArray, IntArray]


@dataclass(frozen=True)
class VoteOrder:
    """Covering pairs among patterns of C2RF votes, each as two arrays of pattern numbers."""

    implies: Pairs
    """(k, i): where k is positive, so is i."""
    one_positive: Pairs
    """(i, k): at least one is positive."""
    one_negative: Pairs
    """(i, k): at least one is negative."""


def vote_order(votes: IntArray) -> VoteOrder:
    """Covering pairs of distinct patterns of C2RF votes.

    Parameters
    ----------
    votes : ndarray of shape (n_patterns, n_members)
        Entries -1 and 1. The work is that of a few products of matrices of n_patterns columns and rows.

    Returns
    -------
    VoteOrder
        The pairs.

    Examples
    --------
    >>> order = vote_order(np.array([[1, 1, -1], [1, -1, -1], [-1, -1, 1]]))
    >>> [(int(k), int(i)) for k, i in zip(*order.implies)]
    [(1, 0)]
    >>> [(int(i), int(k)) for i, k in zip(*order.one_positive)], [(int(i), int(k)) for i, k in zip(*order.one_negative)]
    ([(0, 2)], [(0, 2)])
    """
    against = (votes < 0).astype(np.float32)
    size = against.sum(axis=1)
    common = against @ against.T
    # Pattern i votes against in a proper part of k's members against.
    inside = (common == size[:, None]) & (size[:, None] < size[None, :])
    steps = inside.astype(np.float32)
    covered = inside & ~((steps @ steps) > 0)
    i, k = np.nonzero(covered)
    never_both_against = common == 0
    never_both_for = votes.shape[1] - size[:, None] - size[None, :] + common == 0
    return VoteOrder(
        implies=(k, i),
        one_positive=_outermost(never_both_against, steps),
        one_negative=_outermost(never_both_for, steps.T),
    )


def _outermost(related: np.ndarray, steps: np.ndarray) -> Pairs:
    """Related pairs of which neither end can take a step further: ``steps[i, j]`` if j is beyond i."""
    further = (steps @ related.astype(np.float32)) > 0
    i, k = np.nonzero(np.triu(related & ~further & ~further.T))
    return i, k
