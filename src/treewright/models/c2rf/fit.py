"""An ensemble whose members get weights from class totals: the paper's program, free prices, or several classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.core.progress import stage
from treewright.data import ClassTotals, PointTotals, Problem, weight_unit
from treewright.data.rows import unlabelled_rows
from treewright.exceptions import InvalidInputError
from treewright.models.c2rf.objective import C2RF, merged_votes
from treewright.models.c2rf.search import cut_without_threshold, nearest_weights, optimum_near_wish, search_c2rf
from treewright.models.c2rf.votes import (
    VoteTable,
    c2rf_vote_shares,
    cut_votes,
    search_vote_weights,
    vote_prices,
    wished_weights,
)
from treewright.optimize.conduct import Conduct
from treewright.optimize.course import Outcome, Relaxation, optimize
from treewright.optimize.incumbent import Incumbent
from treewright.optimize.record import PROVEN, FitRecord, FitStatus, cut_short, named_trace
from treewright.solvers import Capability
from treewright.teachers.ensemble import FittedEnsemble, Members, fit_ensemble
from treewright.teachers.pool import sharpness
from treewright.totals.division import class_shifts, row_shares

if TYPE_CHECKING:
    from treewright.models.c2rf.estimator import C2RFClassifier

__all__ = ["C2RFFit", "Reweighted", "Reweighting", "member_weights", "train_c2rf"]

_RELAXED_CELLS = 2_500_000
"""Non-zeros of the one-sided program; patterns beyond are left out of it, lightest first."""


_PAIR_SECONDS, _ORDERED = 6e-11, 6000
"""What finding the pairs of n patterns takes, divided by the third power of n; most patterns whose pairs are found."""


@dataclass(frozen=True)
class C2RFFit:
    """What training of a C2RF ended with."""

    members: Members
    """The fitted ensemble."""
    weights: FloatArray
    """Weights of the members, of mean 1; shape (n_members,)."""
    prices: dict[Any, FloatArray]
    """Prices of the classes by group; under the key None those for rows of unknown group."""
    shifts: list[dict[Any, FloatArray]]
    """Shifts of the prior, likewise, by which sums of probabilities are the totals."""
    shares: FloatArray
    """Probabilities of all rows, shape (n_rows, n_classes)."""
    numbers: IntArray
    """Class numbers of all rows: the given ones, and the weighted vote on the others; shape (n_rows,)."""
    record: FitRecord
    """How it went."""
    sharpness: float = 1.0
    """What logarithms of shares of votes are multiplied by, so that probabilities are about as often right as said."""


@dataclass(frozen=True)
class Reweighting:
    """What a C2RF weights, and how."""

    votes: IntArray
    """Class numbers; shape (n_unlabelled, n_members)."""
    totals: ClassTotals | None
    """What the counts shall be."""
    n_classes: int
    """Number of classes."""
    wished: FloatArray
    """Weights to be near to; shape (n_members,)."""
    settings: C2RFClassifier
    """Whether prices are free, bounds of the weights, parts of the program."""
    start: FloatArray | None = None
    """Weights to begin with."""


@dataclass(frozen=True)
class Reweighted:
    """C2RF weights of members, prices of the classes in each group, and prices for rows of unknown group."""

    outcome: Outcome[FloatArray]
    prices: FloatArray
    pooled: FloatArray


def train_c2rf(
    problem: Problem,
    given: Any,
    prefit: bool,
    settings: C2RFClassifier,
    conduct: Conduct,
    budget: Budget,
    start: FloatArray | None = None,
) -> C2RFFit:
    """Fit the ensemble of a C2RF on the labelled rows and weight its members by the totals of the others.

    For `given` and `prefit` see :func:`treewright.teachers.ensemble.fit_ensemble`; fitting one that is given is not
    interrupted. Weights
    to begin with are left aside where the ensemble has another number of members.
    """
    fitted = fit_ensemble(given, problem, prefit, conduct.seed, budget, conduct.search.teacher)
    members = fitted.members
    _check_classes(problem, members)
    votes = members.votes(unlabelled_rows(problem))
    n_classes, totals = problem.n_classes, problem.totals
    if start is not None and len(start) != len(members.members):
        start = None
    task = Reweighting(votes, totals, n_classes, _wished(fitted, n_classes, settings.prefer), settings, start)
    found = member_weights(task, conduct, budget)
    weights = found.outcome.solution / found.outcome.solution.mean()
    names = [None] if totals is None or totals.groups == (None,) else list(totals.groups)
    sharp = _sharpness(fitted, weights, n_classes)
    prices = dict(zip(names, found.prices, strict=True))
    prices.setdefault(None, found.pooled)
    group_of = np.zeros(len(votes), dtype=np.int64) if totals is None else totals.group_of
    scores = np.log(c2rf_vote_shares(votes, weights, n_classes))
    numbers = problem.y.copy()
    numbers[problem.unlabelled] = (scores + found.prices[group_of]).argmax(axis=1)
    nothing = np.zeros(n_classes)
    shifts, shift = ([{None: nothing}], nothing) if totals is None else class_shifts(sharp * scores, totals)
    shares = row_shares(problem, sharp * scores, shift)
    record = found.outcome.record
    if fitted.cut_short:
        record = replace(record, reason="; ".join(filter(None, [record.reason, fitted.cut_short])))
    return C2RFFit(members, weights, prices, shifts, shares, numbers, record, sharp)


def _sharpness(fitted: FittedEnsemble, weights: FloatArray, n_classes: int) -> float:
    """What logarithms of votes are multiplied by, by labelled rows that members were not fitted on; 1 without any."""
    known = fitted.labelled
    if fitted.unseen is None:
        return 1.0
    assert known.y is not None
    shares = c2rf_vote_shares(fitted.members.votes(known.X), weights, n_classes, fitted.unseen)
    return sharpness(np.log(shares), known.y, known.weight)


def _check_classes(problem: Problem, members: Members) -> None:
    """Refuse totals of a class that no member can vote for."""
    if problem.totals is None:
        return
    known = np.unique(np.concatenate([member.numbers for member in members.members]))
    for k in np.setdiff1d(np.arange(problem.n_classes), known):
        needed = int(problem.totals.low[:, k].sum())
        if needed > 0:
            raise InvalidInputError(
                f"class {problem.classes[k].item()!r} has a total of at least {needed} rows, but no labelled row: "
                "no member of the ensemble votes for it. TotalsClassifier and S2OCTClassifier take such totals"
            )


def _wished(fitted: FittedEnsemble, n_classes: int, prefer: str) -> FloatArray:
    """Weights to be near to."""
    if prefer == "equal" or fitted.unseen is None:
        return np.ones(len(fitted.members.members))
    known = fitted.labelled
    assert known.y is not None
    weight = known.weight / weight_unit(known.weight)
    return wished_weights(fitted.members.votes(known.X), known.y, weight, fitted.unseen, n_classes)


@stage("weights")
def member_weights(task: Reweighting, conduct: Conduct, budget: Budget) -> Reweighted:
    """Weight the members of a C2RF so that the votes meet the totals as nearly as possible."""
    totals = task.totals
    if totals is None or not len(task.votes):
        n_groups = 1 if totals is None else len(totals.groups)
        nothing = np.zeros((n_groups, task.n_classes))
        return Reweighted(_found(task.wished, 0.0, 0.0, budget), nothing, np.zeros(task.n_classes))
    rows = totals.of_points(np.arange(len(task.votes)), len(task.votes))
    if task.settings.class_prices:
        return _with_prices(task, rows, budget, conduct.seed)
    prices = np.zeros(totals.low.shape)
    if task.n_classes == 2:
        outcome = _by_program(task, rows, conduct, budget)
    else:
        outcome = _several_classes(task, rows, budget, conduct.seed)
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
    least, most = task.settings.min_weight, task.settings.max_weight
    weights, deviation = search_vote_weights(table, wished, least, most, bound, budget, seed)
    return _found(weights, deviation, bound, budget)


def _by_program(task: Reweighting, totals: PointTotals, conduct: Conduct, budget: Budget) -> Outcome[FloatArray]:
    """Two classes without prices: the paper's problem."""
    settings, tight = task.settings, task.settings.formulation == "tight"
    votes: Any = (2 * (task.votes == 1) - 1).astype(np.int8)
    if settings.preprocess:
        votes, totals, _ = merged_votes(votes, totals)
    takes_priorities = Capability.PRIORITY in conduct.prover.capabilities
    model = C2RF(
        votes,
        totals,
        least=float(settings.min_weight),
        most=float(settings.max_weight),
        preprocess=settings.preprocess,
        branching=takes_priorities if settings.branching == "auto" else bool(settings.branching),
        order_cuts=settings.order_cuts,
        tight=tight,
        ordered=_orderable(len(votes), budget),
    )
    starts = [weights * (model.most / weights.max()) for weights in (task.wished, task.start) if weights is not None]

    def search(best: Incumbent[FloatArray], time: Budget) -> None:
        if tight:
            search_c2rf(best, model, starts, time, conduct.seed)
        else:
            best.offer(np.full(model.n_members, model.least))

    outcome = optimize(
        model,
        search,
        conduct,
        budget,
        search_share=0.3,
        relaxed=(lambda best: _one_sided(model, best)) if tight else None,
    )
    if not tight:
        return outcome
    mimic = cut_without_threshold(model, task.wished)
    near = optimum_near_wish(model, outcome.solution, mimic, budget, conduct.seed)
    return replace(outcome, solution=nearest_weights(model, near, mimic, budget))


def _orderable(n_patterns: int, budget: Budget) -> int:
    """Patterns whose pairs can be found in a sixth of the time; no solver would hear of Ctrl-C meanwhile."""
    if budget.allows(6 * _PAIR_SECONDS * min(n_patterns, _ORDERED) ** 3):
        return _ORDERED
    return int(np.cbrt(budget.remaining / 6 / _PAIR_SECONDS))


def _one_sided(model: C2RF, best: Incumbent[FloatArray]) -> Relaxation[FloatArray] | None:
    """The easier model, where there is one."""
    if model.totals.n_groups > 1 or model.n_members < 3 or best.solution is None:
        return None
    return Relaxation(*model.one_sided(best.solution, max(500, _RELAXED_CELLS // model.n_members)))


def _found(weights: FloatArray, deviation: float, bound: float, budget: Budget) -> Outcome[FloatArray]:
    """Outcome of a search without branch and bound."""
    status, reason = FitStatus.OPTIMAL, PROVEN
    if deviation > bound and budget.over:
        status, reason = cut_short(budget)
    elif deviation > bound:
        status = FitStatus.UNPROVEN
        reason = "only a search is known for this problem; more members, or TotalsClassifier, may meet the totals"
    bound = min(bound, deviation)
    trace = named_trace([(budget.elapsed, deviation, bound)], "seconds", "objective", "bound")
    return Outcome(weights, FitRecord(status, reason, budget.elapsed, float(deviation), float(bound), trace, 0.0))
