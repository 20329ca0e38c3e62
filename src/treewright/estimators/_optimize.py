"""One way to train by optimization: search, proof by structure, then branch and bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, Self, TypeVar

import numpy as np

from treewright.budget import Budget
from treewright.exceptions import SolverError
from treewright.formulations import Formulation
from treewright.program import FloatArray
from treewright.search import Incumbent
from treewright.solvers import Progress, Solver, Status, relative_gap

__all__ = ["Outcome", "Relaxation", "optimize"]

S = TypeVar("S")
Search = Callable[[Incumbent[S], Budget], None]

_MOST_CELLS = 30_000_000
"""Non-zeros of a program beyond which no solver gets anywhere and memory runs out."""

_CELL_SECONDS = 3e-7
"""What it takes to write a non-zero and hand it to a solver."""


@dataclass(frozen=True)
class Outcome(Generic[S]):
    """What training ended with, in the units of the formulation."""

    solution: S
    objective: float
    bound: float
    status: Status
    trace: FloatArray
    reason: str = ""
    """Why there is no proof, where time is not the reason."""

    def times(self, unit: float) -> Self:
        """The same in other units: objective and bound are multiplied."""
        trace = self.trace * np.array([1.0, unit, unit])
        return replace(self, objective=self.objective * unit, bound=self.bound * unit, trace=trace)


@dataclass(frozen=True)
class Relaxation(Generic[S]):
    """An easier model whose bounds hold for the model itself."""

    model: Formulation[S]
    as_bound: Callable[[float], float]
    """What a bound of the easier model says of the objective of the model itself."""


class _Trace:
    """Objective and bound over the whole fit, search and solve together."""

    def __init__(self, budget: Budget, listener: Callable[[Progress], None] | None) -> None:
        self.budget, self.listener = budget, listener
        self.bound = 0.0  # no objective is below
        self.objective, self.rows = np.inf, list[tuple[float, float, float]]()

    def improved(self, objective: float) -> None:
        self.record(Progress(self.budget.elapsed, objective, self.bound))

    def solver_progress(self, as_bound: Callable[[float], float] | None) -> Callable[[Progress], None]:
        """What a solver is to report to; of a relaxation only the bounds count."""

        def heard(event: Progress) -> None:
            objective = event.objective if as_bound is None else self.objective
            bound = event.bound if as_bound is None else as_bound(event.bound)
            self.record(Progress(self.budget.elapsed, objective, bound, event.nodes))

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
    solver: Solver,
    budget: Budget,
    gap: float,
    threads: int,
    seed: int,
    search_share: float = 0.5,
    on_progress: Callable[[Progress], None] | None = None,
    relaxed: Callable[[Incumbent[S]], Relaxation[S] | None] | None = None,
) -> Outcome[S]:
    """Find the best solution of a formulation within a budget.

    Parameters
    ----------
    model : Formulation
        What to optimize.
    search : callable
        Offers solutions to an Incumbent within a budget; must offer at least one whatever the budget.
    solver : Solver
        Takes over where the search ends without proof.
    budget : Budget
        Time for all of it, and the stop flag.
    gap : float
        Relative gap that counts as optimal.
    threads, seed : int
        Passed to the solver.
    search_share : float
        Share of the time the search may take; nearly all where the program is too large to be solved in the rest.
    on_progress : callable or None
        Told of every improvement.
    relaxed : callable or None
        Names an easier model to be solved before the model itself, in view of what the search found. What that finds is
        searched on from.
    """
    trace = _Trace(budget, on_progress)
    best = Incumbent(model, on_better=trace.improved)
    cells = getattr(model, "program_cells", None) or 0
    hopeless = cells > _MOST_CELLS or budget.remaining * (1 - search_share) <= _CELL_SECONDS * cells
    search(best, budget.share(0.9 if hopeless and relaxed is None else search_share))
    if best.solution is None:
        raise RuntimeError("the search offered nothing")
    run = _Run(best, solver, budget, gap, threads, seed, trace)
    easier = None if relaxed is None or run.closed else relaxed(best)
    if easier is not None:
        run.branch_and_bound(easier.model, easier.as_bound)
        if not run.closed:
            search(best, budget.share(search_share))
    if not run.closed:
        run.branch_and_bound(model)
    return run.outcome()


@dataclass
class _Run(Generic[S]):
    """Branch and bound within a fit, once or twice, and how the fit ended."""

    best: Incumbent[S]
    solver: Solver
    budget: Budget
    gap: float
    threads: int
    seed: int
    trace: _Trace
    ended: Status = Status.OPTIMAL
    reason: str = ""

    @property
    def closed(self) -> bool:
        """Whether nothing is left to do."""
        return self.best.proven or relative_gap(self.best.objective, self.best.floor) <= self.gap

    def branch_and_bound(self, model: Formulation[S], as_bound: Callable[[float], float] | None = None) -> None:
        """Spend the rest of the budget in the solver; its solution is offered, its bound noted."""
        best = self.best
        self.trace.record(Progress(self.budget.elapsed, best.objective, best.floor))
        cells = getattr(model, "program_cells", None) or 0
        if self.budget.interrupted:
            self.ended, self.reason = Status.INTERRUPTED, ""
        elif cells > _MOST_CELLS:
            self.ended = Status.LOCAL
            self.reason = f"the program would have {cells:.1e} non-zeros, too many for branch and bound"
        elif self.budget.remaining <= _CELL_SECONDS * cells:
            self.ended, self.reason = Status.TIME_LIMIT, ""
        else:
            try:
                self._solve(model, as_bound)
            except (MemoryError, SolverError) as error:
                # What the search found is at hand, and no solver's failure takes it away.
                what = "memory ran out in branch and bound" if isinstance(error, MemoryError) else str(error)
                self.ended, self.reason = Status.LOCAL, what

    def _solve(self, model: Formulation[S], as_bound: Callable[[float], float] | None) -> None:
        best, budget = self.best, self.budget
        assert best.solution is not None
        program, start = model.build(), model.encode(best.solution)
        # Solvers look at the clock now and then only, later the larger the program is.
        rest = max(0.0, budget.remaining - min(0.5, 0.1 * budget.remaining))
        result = self.solver.solve(
            program,
            start=start,
            time_limit=None if budget.seconds is None else rest,
            gap=self.gap,
            threads=self.threads,
            seed=self.seed,
            on_progress=self.trace.solver_progress(as_bound),
            stop=lambda: budget.interrupted,
        )
        if result.status in (Status.INFEASIBLE, Status.UNBOUNDED):
            # A feasible solution and an objective of 0 or more are at hand: numerical trouble, which proves nothing.
            self.ended, self.reason = (
                Status.LOCAL,
                f"{self.solver.name} calls the program {result.status}, which it is not",
            )
            return
        if result.x is not None:
            best.offer(model.decode(result.x))
        # The repaired solution of an optimal point can only be better, so the point's proof holds for it.
        self.ended = Status.LOCAL if result.status is Status.OPTIMAL else result.status
        self.reason = "the tolerances of the solver leave a gap" if self.ended is Status.LOCAL else ""
        best.raise_floor(result.bound if as_bound is None else as_bound(result.bound))

    def outcome(self) -> Outcome[S]:
        """What the fit ended with."""
        best, bound, ended, reason = self.best, self.best.floor, self.ended, self.reason
        assert best.solution is not None
        if best.objective < bound - 1e-6 * max(1.0, abs(best.objective)):
            # A solution at hand refutes the bound: it proves nothing, and nothing of that is hidden.
            reason = f"a bound of {bound:.9g} was claimed, but the solution is below it"
            bound, ended = 0.0, Status.LOCAL
        bound = min(bound, best.objective)
        closed = relative_gap(best.objective, bound) <= self.gap
        self.trace.record(Progress(self.budget.elapsed, best.objective, bound))
        return Outcome(
            solution=best.solution,
            objective=best.objective,
            bound=bound,
            status=Status.OPTIMAL if closed else ended,
            trace=np.array(self.trace.rows, dtype=np.float64).reshape(-1, 3),
            reason="" if closed else reason,
        )
