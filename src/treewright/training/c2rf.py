"""Weights of an ensemble's members from class totals: the paper's program, free prices, or several classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from treewright.arrays import FloatArray, IntArray
from treewright.budget import Budget
from treewright.data import ClassTotals, PointTotals
from treewright.formulations.c2rf.model import C2RF, merged_votes
from treewright.search import Incumbent
from treewright.search.c2rf.lines import near_optimum, search_c2rf
from treewright.search.c2rf.near_weights import cut_without_threshold, nearest_weights
from treewright.search.c2rf.vote_cut import cut_votes, vote_prices
from treewright.search.c2rf.vote_weights import VoteTable, search_vote_weights
from treewright.solvers import Progress, Solver, Status
from treewright.training.optimize import Outcome, Relaxation, optimize

__all__ = ["Reweighted", "Reweighting", "reweight"]

_RELAXED_CELLS = 2_500_000
"""Non-zeros of the one-sided program; patterns beyond are left out of it, lightest first."""


_PAIR_SECONDS = 6e-11
"""What finding the pairs of n patterns takes, divided by the third power of n."""


@dataclass(frozen=True)
class Reweighting:
    """What is to be weighted, and how.

    Attributes
    ----------
    votes : ndarray of shape (n_unlabelled, n_members)
        Class numbers.
    totals : ClassTotals or None
        What the counts shall be.
    n_classes : int
        Number of classes.
    wished : ndarray of shape (n_members,)
        Weights to be near to.
    start : ndarray or None
        Weights to begin with.
    threshold : bool
        Whether prices are free.
    bounds : (float, float)
        Bounds of the weights without prices.
    tight, preprocess, branching, order_cuts : bool
        Parts of the program without prices.
    """

    votes: IntArray
    totals: ClassTotals | None
    n_classes: int
    wished: FloatArray
    start: FloatArray | None
    threshold: bool
    bounds: tuple[float, float]
    tight: bool
    preprocess: bool
    branching: bool
    order_cuts: bool


@dataclass(frozen=True)
class Reweighted:
    """Weights, prices of the classes in each group, and prices for rows of unknown group."""

    outcome: Outcome[FloatArray]
    prices: FloatArray
    pooled: FloatArray


def reweight(
    task: Reweighting,
    solver: Solver,
    budget: Budget,
    gap: float,
    threads: int,
    seed: int,
    on_progress: Callable[[Progress], None] | None,
) -> Reweighted:
    """Weight the members so that the votes meet the totals as nearly as possible."""
    totals = task.totals
    if totals is None or not len(task.votes):
        n_groups = 1 if totals is None else len(totals.groups)
        nothing = np.zeros((n_groups, task.n_classes))
        return Reweighted(_found(task.wished, 0.0, 0.0, budget), nothing, nothing[0])
    rows = totals.of_points(np.arange(len(task.votes)), len(task.votes))
    if task.threshold:
        return _with_prices(task, rows, budget, seed)
    prices = np.zeros(totals.low.shape)
    if task.n_classes == 2:
        outcome = _by_program(task, rows, solver, budget, gap, threads, seed, on_progress)
    else:
        outcome = _several_classes(task, rows, budget, seed)
    return Reweighted(outcome, prices, prices[0])


def _with_prices(task: Reweighting, rows: PointTotals, budget: Budget, seed: int) -> Reweighted:
    votes, totals, _ = merged_votes(task.votes, rows)
    bound = float(totals.unreachable)
    found = cut_votes(votes, totals, task.wished, bound, budget, seed)
    outcome = _found(found.weights, found.deviation, bound, budget)
    pooled = found.prices if totals.n_groups == 1 else vote_prices(votes, totals.pooled(), found.weights)
    return Reweighted(outcome, found.prices, pooled[0])


def _several_classes(task: Reweighting, rows: PointTotals, budget: Budget, seed: int) -> Outcome[FloatArray]:
    votes, totals, _ = merged_votes(task.votes, rows)
    table = VoteTable(votes, totals)
    bound = table.lower_bound()
    wished = task.wished if task.start is None else task.start
    weights, deviation = search_vote_weights(table, wished, *task.bounds, bound, budget, seed)
    return _found(weights, deviation, bound, budget)


def _by_program(
    task: Reweighting,
    totals: PointTotals,
    solver: Solver,
    budget: Budget,
    gap: float,
    threads: int,
    seed: int,
    on_progress: Callable[[Progress], None] | None,
) -> Outcome[FloatArray]:
    """Two classes without prices: the paper's problem."""
    votes: Any = (2 * (task.votes == 1) - 1).astype(np.int8)
    if task.preprocess:
        votes, totals, _ = merged_votes(votes, totals)
    model = C2RF(
        votes,
        totals,
        least=task.bounds[0],
        most=task.bounds[1],
        preprocess=task.preprocess,
        branching=task.branching,
        order_cuts=task.order_cuts,
        tight=task.tight,
        ordered=_orderable(budget),
    )
    starts = [weights * (model.most / weights.max()) for weights in (task.wished, task.start) if weights is not None]

    def search(best: Incumbent[FloatArray], time: Budget) -> None:
        if task.tight:
            search_c2rf(best, model, starts, time, seed)
        else:
            best.offer(np.full(model.n_members, model.least))

    outcome = optimize(
        model,
        search,
        solver,
        budget,
        gap,
        threads,
        seed,
        search_share=0.3,
        on_progress=on_progress,
        relaxed=(lambda best: _one_sided(model, best)) if task.tight else None,
    )
    if not task.tight:
        return outcome
    mimic = cut_without_threshold(model, task.wished)
    near = near_optimum(model, outcome.solution, mimic, budget, seed)
    return replace(outcome, solution=nearest_weights(model, near, mimic, budget))


def _orderable(budget: Budget) -> int:
    """Patterns whose pairs can be found in a sixth of the time; no solver would hear of Ctrl-C meanwhile."""
    return int(min(6000.0, np.cbrt(budget.remaining / 6 / _PAIR_SECONDS)))


def _one_sided(model: C2RF, best: Incumbent[FloatArray]) -> Relaxation[FloatArray] | None:
    """The easier model, where there is one."""
    if model.totals.n_groups > 1 or model.n_members < 3 or best.solution is None:
        return None
    return Relaxation(*model.one_sided(best.solution, max(500, _RELAXED_CELLS // model.n_members)))


def _found(weights: FloatArray, deviation: float, bound: float, budget: Budget) -> Outcome[FloatArray]:
    """Outcome of a search without branch and bound."""
    status, reason = Status.OPTIMAL, ""
    if deviation > bound:
        status = Status.TIME_LIMIT
        if budget.interrupted:
            status = Status.INTERRUPTED
        elif not budget.over:
            status, reason = (
                Status.LOCAL,
                "only a search is known for this problem; more members, or TotalsClassifier, may meet the totals",
            )
    trace = np.array([[budget.elapsed, deviation, min(bound, deviation)]])
    return Outcome(weights, deviation, min(bound, deviation), status, trace, reason)
