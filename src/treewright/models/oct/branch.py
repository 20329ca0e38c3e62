r"""Exact search for trees of any depth: branch and bound over the cuts of the root, the best bound first.

The last two levels are compiled (:func:`.sweep_loops.solve_two`). Above them a cut of the root is solved by solving
both its parts, one level lower. As in :mod:`~.sweeps`, what trees with a column at *their* root cost on one part bounds
that of all parts between two cuts that are known, so that most columns of most cuts are given up without work.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.models.oct.sweep_loops import cut_of_split, cuts_of, restricted, solve_two, split_costs
from treewright.models.oct.sweeps import Block, Rules, sweeps_for

__all__ = ["Answer", "Branching", "Plan"]

_LIMIT = 2e7
"""Points that compiled code looks at before it returns, so that time and Ctrl-C are seen: hundredths of a second. The
general sweep takes longer and gets fewer."""

_SPARE = 0.3
"""How far beyond the best cost the cost of a cut is found out, as a share of the weight from it to the farther end of
its interval: what it costs more than the best gives up as many of its neighbours."""

_START_SHARE = 0.3
"""Share of the time for trees of one level less, and those grown from them."""

_SKETCH_AFTER, _SKETCH_SHARE = 0.1, 0.7
"""Share of the time after which there is a short look at all columns of which nothing is known by then, where parts of
a cut take long, and share of what is left for that: the bound of all trees is 0 until every column has one."""


class Plan(NamedTuple):
    """A tree of an OCT search, of cuts of ordinal columns: a leaf has no column."""

    column: int = -1
    cut: int = -1
    """Ranks up to this one go left; -1 for the best cut that the points there have."""
    left: Plan | None = None
    right: Plan | None = None


@dataclass
class Answer:
    """What an OCT search knows of the trees of a depth on some points."""

    cost: float
    """Of the best tree that costs less than asked for; infinite if none was found."""
    plan: Plan | None
    floor: float
    """No tree costs less."""
    least: float
    """No tree costs less if leaves may be of any size, which holds for more points, too."""
    bounds: FloatArray
    """The same for trees with each column at the root."""


class _End(NamedTuple):
    """Bounds at a cut of the root: of both parts, for each column at their root and at all."""

    left: FloatArray
    right: FloatArray
    least_left: float
    least_right: float
    partly: bool = False
    """Whether time was over before the cut was solved."""


@dataclass
class Branching:
    """The branch and bound of OCT: trees on blocks of points.

    Parameters
    ----------
    rules : Rules
        What trees cost.
    budget : Budget
        Ends the work early; bounds hold all the same.
    """

    rules: Rules
    budget: Budget
    on_better: Callable[[Plan], None] | None = None
    """Told of better trees for all points."""
    on_bound: Callable[[float], None] | None = None
    """Told of better bounds for all points."""

    def solve(
        self, block: Block, depth: int, below: float, bounds: FloatArray | None = None, first: bool = False
    ) -> Answer:
        """Find the best tree of a depth that costs less than `below`.

        Parameters
        ----------
        block : Block
            Points, at least one.
        depth : int
            Most splits on a way.
        below : float
            What a tree must cost less than to be of any use.
        bounds : ndarray of shape (n_columns,) or None
            What trees with each column at the root cost at least, with leaves of any size.
        first : bool
            Whether these are all points, whose trees and bounds are told.
        """
        rules = self.rules
        by_class = np.bincount(block.y, block.weight, rules.n_classes)
        leaf = float(by_class.sum() - by_class.max())
        bounds = np.full(len(block.n_ranks), rules.price) if bounds is None else np.maximum(bounds, rules.price)
        bounds[block.n_ranks < 2] = np.inf
        best = Answer(np.inf, None, leaf, leaf, bounds)
        if leaf < below and block.size.sum() >= rules.min_leaf - 1e-9:
            best.cost, best.plan, below = leaf, Plan(), leaf
        if depth == 0:
            return best
        if bounds.min(initial=np.inf) < below - rules.tolerance:
            free, allowed = split_costs(block, rules)
            k = int(np.argmin(allowed))
            if allowed[k] < below - rules.tolerance:
                best.cost, best.plan, below = float(allowed[k]), Plan(k), float(allowed[k])
            if depth > 2:
                return _Cuts(self, block, depth, below, best, first).solved()
            if depth == 2:
                return self._two(block, free, below, best)
            best.bounds = np.maximum(bounds, free)
        best.floor, best.least = below, min(leaf, float(best.bounds.min(initial=np.inf)))
        return best

    def _two(self, block: Block, free: FloatArray, below: float, best: Answer) -> Answer:
        """The last two levels, compiled."""
        sweeps = sweeps_for(len(free), below)
        todo = np.lexsort((free, best.bounds))
        limit = _LIMIT if self.rules.n_classes == 2 and self.rules.min_leaf <= 1 else _LIMIT / 8
        while not solve_two(block, self.rules, free, best.bounds, todo, sweeps, limit):
            if self.budget.over:
                break
        root, cut, left, right = (int(number) for number in sweeps.best)
        cost = float(sweeps.cost[0])
        if root >= 0:
            best.cost, best.plan = cost, Plan(root, cut, Plan(left), Plan(right))
        at_last = float(best.bounds.min())
        best.floor = cost if sweeps.at[0] >= len(todo) else min(cost, at_last)
        best.least = min(best.least, at_last)
        return best

    def resolved(self, block: Block, plan: Plan) -> Plan:
        """The plan with the cuts of single splits that were left open."""
        if plan.column < 0:
            return plan
        if plan.cut < 0:
            return Plan(plan.column, cut_of_split(block, self.rules, plan.column), Plan(), Plan())
        parts = [restricted(block, plan.column, plan.cut, lower) for lower in (True, False)]
        assert plan.left is not None and plan.right is not None
        return Plan(plan.column, plan.cut, self.resolved(parts[0], plan.left), self.resolved(parts[1], plan.right))


@dataclass
class _Cuts:
    """All cuts of the root of trees of at least three levels."""

    work: Branching
    block: Block
    depth: int
    below: float
    best: Answer
    first: bool
    low: FloatArray = field(init=False)
    """Least bound of the cuts of each column that are done, with leaves of any size."""
    open: list[tuple[float, int, int, int, int, _End, _End]] = field(default_factory=list)
    """Intervals of cuts still to do: bound, number, column, ends and what is known there."""
    number: int = 0
    floor: float = np.inf
    """Least cost of the cuts that are done."""

    def solved(self) -> Answer:
        """Solve all cuts that may be better, the best bound first."""
        best, work = self.best, self.work
        leaf, self.low = best.least, np.full(len(best.bounds), np.inf)
        # What a smaller tree costs is a start, and bounds the cuts near both ends.
        shorter = replace(work, budget=work.budget.share(_START_SHARE)) if self.first else work
        lower = shorter.solve(self.block, self.depth - 1, self.below, best.bounds)
        if lower.plan is not None:
            self._take(lower.cost, lower.plan)
            self._grow(shorter, lower.plan)
        self._begin(lower)
        calm = work.budget.share(_SKETCH_AFTER) if self.first and self.depth > 3 else None
        while self.open and not work.budget.over:
            if calm is not None and calm.over:
                calm = None
                self._sketch()
                continue
            if self.first and work.on_bound is not None:
                work.on_bound(min(self.open[0][0], self.floor, self.below))
            self._halve(*heapq.heappop(self.open)[2:])
        for bound, _, column, *_ in self.open:
            self.low[column] = min(self.low[column], bound)
            self.floor = min(self.floor, bound)
        best.bounds = np.maximum(best.bounds, np.minimum(self.low, self.below))
        best.floor, best.least = min(self.floor, self.below), min(leaf, float(best.bounds.min()))
        return best

    def _take(self, cost: float, plan: Plan) -> None:
        if cost < self.below - self.work.rules.tolerance:
            self.best.cost, self.best.plan, self.below = cost, plan, cost
            if self.first and self.work.on_better is not None:
                self.work.on_better(plan)

    def _grow(self, work: Branching, plan: Plan) -> None:
        """Put trees of the rest of the depth below the root of the best smaller tree: a good tree soon."""
        if plan.column < 0 or plan.cut < 0:
            return
        parts = [restricted(self.block, plan.column, plan.cut, lower) for lower in (True, False)]
        left = work.solve(parts[0], self.depth - 1, self.below - work.rules.price)
        right = work.solve(parts[1], self.depth - 1, self.below - work.rules.price)
        if left.plan is not None and right.plan is not None:
            cost = work.rules.price + left.cost + right.cost
            self._take(cost, Plan(plan.column, plan.cut, left.plan, right.plan))

    def _begin(self, lower: Answer) -> None:
        """One interval a column: all points on one side are a tree of one level less."""
        price, nothing = self.work.rules.price, np.full(len(self.best.bounds), self.work.rules.price)
        ends = (_End(nothing, lower.bounds, 0.0, lower.least), _End(lower.bounds, nothing, lower.least, 0.0))
        self.cuts: dict[int, tuple[IntArray, FloatArray]] = {}
        for column in np.lexsort((lower.bounds, self.best.bounds)).tolist():
            if self.block.n_ranks[column] < 2:
                continue
            cuts, _, heavy = cuts_of(self.block, self.work.rules, column)
            self.cuts[column] = cuts, heavy
            self._push(max(price, float(self.best.bounds[column])), column, 0, len(cuts) - 1, *ends)

    def _sketch(self) -> None:
        """Bound all intervals that nothing is known of by a look at their middle, for a short time each."""
        rules = self.work.rules
        blank = [entry for entry in self.open if entry[0] <= rules.price + rules.tolerance]
        self.open = [entry for entry in self.open if entry[0] > rules.price + rules.tolerance]
        heapq.heapify(self.open)
        time = self.work.budget.share(_SKETCH_SHARE)
        for k, (bound, _, column, i, j, end_i, end_j) in enumerate(blank):
            cuts, heavy = self.cuts[column]
            middle = min(max(int(np.searchsorted(heavy, (heavy[i] + heavy[j]) / 2)), i + 1), j - 1)
            work = replace(self.work, budget=time.share(1 / (len(blank) - k)))
            to_ends = heavy[middle] - heavy[i], heavy[j] - heavy[middle]
            end = self._solve_cut(column, int(cuts[middle]), *to_ends, end_i, end_j, work)
            # A cut that was not solved to its end stays open, at the end of the first half.
            if not end.partly:
                self.low[column] = min(self.low[column], rules.price + end.least_left + end.least_right)
            self._push(bound, column, i, middle + int(end.partly), end_i, end)
            self._push(bound, column, middle, j, end, end_j)

    def _push(self, bound: float, column: int, i: int, j: int, end_i: _End, end_j: _End) -> None:
        if j - i < 2:
            return
        bound = max(bound, self.work.rules.price + end_i.least_left + end_j.least_right)
        if bound >= self.below - self.work.rules.tolerance:
            self.low[column] = min(self.low[column], bound)
            return
        heapq.heappush(self.open, (bound, self.number, column, i, j, end_i, end_j))
        self.number += 1

    def _halve(self, column: int, i: int, j: int, end_i: _End, end_j: _End) -> None:
        """Solve the middle of an interval, as far as that is needed, and go on with both halves."""
        rules, (cuts, heavy) = self.work.rules, self.cuts[column]
        need = self.below - rules.tolerance
        least = rules.price + end_i.least_left + end_j.least_right
        if least >= need:
            self.low[column] = min(self.low[column], least)
            return
        # Cuts near an end differ from it by the weight between them at most.
        spare_i = rules.price + end_i.least_left + end_i.least_right - need
        spare_j = rules.price + end_j.least_left + end_j.least_right - need
        low = i + 1 + int(np.searchsorted(heavy[i + 1 : j], heavy[i] + spare_i, side="right"))
        high = i + int(np.searchsorted(heavy[i + 1 : j], heavy[j] - spare_j, side="left"))
        if low > i + 1 or high < j - 1:
            self.low[column] = min(self.low[column], need)
        if low > high:
            return
        middle = (low + high) // 2
        end = self._solve_cut(
            column, int(cuts[middle]), heavy[middle] - heavy[i], heavy[j] - heavy[middle], end_i, end_j
        )
        bound = rules.price + end.least_left + end.least_right
        self.low[column] = min(self.low[column], bound)
        self._push(least, column, i, middle, end_i, end)
        self._push(least, column, middle, j, end, end_j)

    def _solve_cut(
        self,
        column: int,
        cut: int,
        from_i: float,
        to_j: float,
        end_i: _End,
        end_j: _End,
        work: Branching | None = None,
    ) -> _End:
        """Both parts of a cut, as far as the cut can be better or bounds its neighbours.

        Parts that `work` has no time to solve are bounded all the same.
        """
        work, rules = work or self.work, self.work.rules
        left = np.maximum(end_i.left, end_j.left - to_j)
        right = np.maximum(end_j.right, end_i.right - from_i)
        least_left = max(end_i.least_left, end_j.least_left - to_j, 0.0)
        least_right = max(end_j.least_right, end_i.least_right - from_i, 0.0)
        # What a cut costs beyond this bounds no cut of the interval that is not given up anyway.
        useful = self.below + max(from_i, to_j) * _SPARE
        parts = [restricted(self.block, column, cut, lower) for lower in (True, False)]
        half = work if work is self.work else replace(work, budget=work.budget.share(0.5))
        a = half.solve(parts[0], self.depth - 1, useful - rules.price - least_right, left)
        least_left = max(least_left, a.least)
        b = work.solve(parts[1], self.depth - 1, useful - rules.price - max(least_left, a.floor), right)
        least_right = max(least_right, b.least)
        partly = work is not self.work and (half.budget.over or work.budget.over)
        if not partly:
            self.floor = min(self.floor, max(rules.price + a.floor + b.floor, rules.price + least_left + least_right))
        if a.plan is not None and b.plan is not None:
            self._take(rules.price + a.cost + b.cost, Plan(column, cut, a.plan, b.plan))
        return _End(a.bounds, b.bounds, least_left, least_right, partly)
