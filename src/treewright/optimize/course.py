"""One way to train by optimization: search, proof by structure, branch and bound; and back to the units of the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

import numpy as np

from treewright.core.arrays import IntArray
from treewright.core.budget import Budget
from treewright.core.progress import relative_gap, stage
from treewright.data import Problem, Reduction, weight_unit
from treewright.exceptions import SolverError
from treewright.optimize.conduct import Conduct
from treewright.optimize.formulation import Formulation
from treewright.optimize.incumbent import Incumbent
from treewright.optimize.record import LOST_IN_ROUNDING, PROVEN, FitRecord, FitStatus, cut_short, named_trace
from treewright.solvers import Progress, Status, require_capabilities
from treewright.tree import Tree, leaf_counts, predict_labels

__all__ = ["Outcome", "Relaxation", "optimize", "SolvedTree", "solved_tree"]

S = TypeVar("S")
Search = Callable[[Incumbent[S], Budget], None]

_CELL_SECONDS = 3e-7
"""What it takes to write a non-zero and hand it to a solver."""


@dataclass(frozen=True)
class Outcome(Generic[S]):
    """What training ended with, in the units of the formulation."""

    solution: S
    record: FitRecord


@dataclass(frozen=True)
class Relaxation(Generic[S]):
    """An easier model whose bounds hold for the model itself."""

    model: Formulation[S]
    as_bound: Callable[[float], float]
    """What a bound of the easier model says of the objective of the model itself."""
    share: float = 1.0
    """Share of the time that is left which its solve may take."""


class _Trace:
    """Objective and bound over the whole fit, search and solve together."""

    def __init__(self, budget: Budget, listener: Callable[[Progress], None] | None) -> None:
        self.budget, self.listener = budget, listener
        self.bound = 0.0  # no objective is below
        self.objective, self.rows = np.inf, list[tuple[float, float, float]]()

    def improved(self, objective: float) -> None:
        self.record(Progress(self.budget.elapsed, objective, self.bound))

    def bounded(self, bound: float) -> None:
        self.record(Progress(self.budget.elapsed, self.objective, bound))

    def solver_progress(self, said: Callable[[float], float], own: bool) -> Callable[[Progress], None]:
        """What a solver is to report to; bounds say what `said` makes of them, and of a relaxation they alone count."""

        def heard(event: Progress) -> None:
            objective = event.objective if own else self.objective
            self.record(Progress(self.budget.elapsed, objective, said(event.bound), event.nodes))

        return heard

    def record(self, event: Progress) -> None:
        objective, bound = min(self.objective, event.objective), max(self.bound, event.bound)
        if objective < self.objective or bound > self.bound or not self.rows:
            self.rows.append((event.seconds, objective, min(bound, objective)))
        self.objective, self.bound = objective, bound
        if self.listener is not None:
            self.listener(Progress(event.seconds, objective, min(bound, objective), event.nodes))


def optimize(
    model: Formulation[S],
    search: Search[S],
    conduct: Conduct,
    budget: Budget,
    search_share: float = 0.5,
    relaxed: Callable[[Incumbent[S]], Relaxation[S] | None] | None = None,
    exact_search: bool = False,
) -> Outcome[S]:
    """Find the best solution of a formulation within a budget.

    Parameters
    ----------
    model : Formulation
        What to optimize.
    search : callable
        Offers solutions to an Incumbent within a budget; must offer at least one whatever the budget.
    conduct : Conduct
        Solver and gap.
    budget : Budget
        Time for all of it, and the stop flag.
    search_share : float
        Share of the time the search may take; nearly all where the program is too large to be solved in the rest.
    relaxed : callable or None
        Names an easier model to be solved before the model itself, in view of what the search found. What that finds is
        searched on from.
    exact_search : bool
        Whether the search proves what it finds: it has all the time, and no branch and bound follows.
    """
    require_capabilities(conduct.prover.name, conduct.prover.capabilities, model.needs)
    trace = _Trace(budget, conduct.told)
    best = Incumbent(model, on_better=trace.improved, on_bound=trace.bounded)
    if exact_search:
        with stage("search"):
            search(best, budget)
        run = _Run(best, conduct, budget, trace)
        if not run.closed:
            run.ended, run.reason = cut_short(budget) if budget.over else (FitStatus.UNPROVEN, LOST_IN_ROUNDING)
        return run.outcome()
    cells = model.program_cells
    hopeless = cells > conduct.search.program_cells or not budget.allows(_CELL_SECONDS * cells / (1 - search_share))
    with stage("search"):
        search(best, budget.share(0.9 if hopeless and relaxed is None else search_share))
    if best.solution is None:
        raise RuntimeError("the search offered nothing")
    run = _Run(best, conduct, budget, trace)
    easier = None if relaxed is None or run.closed else relaxed(best)
    if easier is not None:
        with stage("branch and bound of an easier model"):
            run.branch_and_bound(easier.model, easier.as_bound, budget.share(easier.share))
        if not run.closed:
            with stage("search"):
                search(best, budget.share(0.9 if hopeless else search_share))
    if not run.closed:
        with stage("branch and bound"):
            run.branch_and_bound(model)
    return run.outcome()


@dataclass
class _Run(Generic[S]):
    """Branch and bound within a fit, once or twice, and how the fit ended."""

    best: Incumbent[S]
    conduct: Conduct
    budget: Budget
    trace: _Trace
    ended: FitStatus = FitStatus.UNPROVEN
    reason: str = ""

    @property
    def closed(self) -> bool:
        """Whether nothing is left to do."""
        return self.best.proven or relative_gap(self.best.objective, self.best.floor) <= self.conduct.gap

    def branch_and_bound(
        self,
        model: Formulation[S],
        as_bound: Callable[[float], float] | None = None,
        budget: Budget | None = None,
    ) -> None:
        """Spend the rest of the budget, or a part of it, in the solver; its solution is offered, its bound noted."""
        best, time = self.best, self.budget if budget is None else budget
        self.trace.record(Progress(self.budget.elapsed, best.objective, best.floor))
        cells = model.program_cells
        if self.budget.interrupted:
            self.ended, self.reason = cut_short(self.budget)
        elif cells > self.conduct.search.program_cells:
            self.ended = FitStatus.UNPROVEN
            self.reason = f"the program would have {cells:.1e} non-zeros, too many for branch and bound"
        elif time.remaining <= _CELL_SECONDS * cells:
            self.ended = FitStatus.TIME_LIMIT
            self.reason = "the search took the time; too little was left for branch and bound, so nothing is proven"
        else:
            try:
                self._solve(model, as_bound, time)
            except (MemoryError, SolverError) as error:
                # What the search found is at hand, and no solver's failure takes it away.
                what = "memory ran out in branch and bound" if isinstance(error, MemoryError) else str(error)
                self.ended, self.reason = FitStatus.UNPROVEN, what

    def _solve(self, model: Formulation[S], as_bound: Callable[[float], float] | None, budget: Budget) -> None:
        best, conduct = self.best, self.conduct
        assert best.solution is not None
        said = as_bound or partial(model.sure_bound, gap=conduct.gap)
        program, start = model.build(), model.encode(best.solution)
        # Solvers look at the clock now and then only, later the larger the program is.
        rest = max(0.0, budget.remaining - min(0.5, 0.1 * budget.remaining))
        result = conduct.prover.solve(
            program,
            start=start,
            time_limit=None if budget.seconds is None else rest,
            gap=conduct.gap,
            threads=conduct.threads,
            seed=conduct.seed,
            on_progress=self.trace.solver_progress(said, own=as_bound is None),
            stop=lambda: budget.interrupted,
        )
        if result.status in (Status.INFEASIBLE, Status.UNBOUNDED):
            # A feasible solution and an objective of 0 or more are at hand: numerical trouble, which proves nothing.
            self.ended, self.reason = (
                FitStatus.UNPROVEN,
                f"{conduct.prover.name} calls the program {result.status}, which it is not",
            )
            return
        if result.x is not None:
            best.offer(model.decode(result.x))
        # The repaired solution of an optimal point can only be better, so the point's proof holds for it.
        if result.status in (Status.TIME_LIMIT, Status.INTERRUPTED):
            self.ended, self.reason = cut_short(budget)
            if result.status is Status.TIME_LIMIT:
                budget.hurry()
        elif result.status is Status.OPTIMAL:
            self.ended, self.reason = FitStatus.UNPROVEN, "the tolerances of the solver leave a gap"
        else:
            self.ended, self.reason = FitStatus.UNPROVEN, f"{conduct.prover.name} ended without a proof"
        best.raise_floor(said(result.bound))

    def outcome(self) -> Outcome[S]:
        """What the fit ended with."""
        best, bound, ended, reason = self.best, self.best.floor, self.ended, self.reason
        assert best.solution is not None
        if best.objective < bound - 1e-6 * max(1.0, abs(best.objective)):
            # A solution at hand refutes the bound: it proves nothing, and nothing of that is hidden.
            reason = f"a bound of {bound:.5g} was claimed, but the solution is below it"
            bound, ended = 0.0, FitStatus.UNPROVEN
        bound = min(bound, best.objective)
        if relative_gap(best.objective, bound) <= self.conduct.gap:
            ended, reason = FitStatus.OPTIMAL, PROVEN
        self.trace.record(Progress(self.budget.elapsed, best.objective, bound))
        trace = named_trace(self.trace.rows, "seconds", "objective", "bound")
        record = FitRecord(
            ended, reason, self.budget.elapsed, float(best.objective), float(bound), trace, float(self.conduct.gap)
        )
        return Outcome(best.solution, record)


@dataclass(frozen=True)
class SolvedTree:
    """A tree in the units of the data, and the record of its fit."""

    tree: Tree
    record: FitRecord


def solved_tree(
    problem: Problem, reduction: Reduction, outcome: Outcome[Tree], taught: IntArray | None = None
) -> SolvedTree:
    """Turn the tree of an outcome back to the units of the data.

    Its nodes get the weights of the classes among the labelled rows and, if a teacher labelled the others, those of
    these too, a row of each with the mean weight of a labelled one. Where rounding makes rows of these units go
    another way than on points, the proof does not hold for them, and the record says so.

    Parameters
    ----------
    problem : Problem
        The rows.
    reduction : Reduction
        How they became points.
    outcome : Outcome
        A tree on points.
    taught : ndarray of int, shape (n_rows,), or None
        Class numbers of all rows, those that a teacher gave included.
    """
    found = outcome.solution
    assert found.labels is not None
    tree = reduction.invert_tree(found)
    y, weight = problem.y, problem.weight
    if taught is not None:
        y, weight = taught, np.where(problem.labelled, weight, weight_unit(problem.weight_labelled))
    counts = leaf_counts(tree, problem.X, y, weight, problem.n_classes)
    # Where labelled rows contradict a leaf's class, as totals can force, the leaf is sure of its class.
    counts[counts.argmax(axis=1) != found.labels] = 0.0
    tree = tree.with_leaves(counts, found.labels)
    scaled = problem.X if reduction.scaling is None else reduction.scaling.apply(problem.X)
    differing = int(np.count_nonzero(predict_labels(found, scaled) != predict_labels(tree, problem.X)))
    if not differing:
        return SolvedTree(tree, outcome.record)
    reason = (
        f"{differing} training rows are classified otherwise in the original units than in the scaled ones, for which "
        "objective and bound hold: a feature varies too little for its size (1e15 + 0.1, say). Subtract a constant "
        "from such features"
    )
    return SolvedTree(tree, outcome.record.unproven(reason))
