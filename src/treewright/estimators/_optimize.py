"""One way to train a tree by optimization: search, proof by structure, then branch and bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from treewright.budget import Budget
from treewright.formulations import Formulation
from treewright.program import FloatArray
from treewright.search import Incumbent
from treewright.solvers import Progress, Solver, Status, relative_gap
from treewright.tree import Tree

__all__ = ["Outcome", "optimize"]

Search = Callable[[Incumbent, Budget], None]

_MOST_CELLS = 30_000_000
"""Non-zeros of a program beyond which no solver gets anywhere and memory runs out."""

_CELL_SECONDS = 3e-7
"""What it takes to write a non-zero and hand it to a solver."""


@dataclass(frozen=True)
class Outcome:
    """What training ended with, in the units of the formulation."""

    tree: Tree
    objective: float
    bound: float
    status: Status
    trace: FloatArray
    reason: str = ""
    """Why there is no proof, where time is not the reason."""


class _Trace:
    """Objective and bound over the whole fit, search and solve together."""

    def __init__(self, budget: Budget, listener: Callable[[Progress], None] | None) -> None:
        self.budget, self.listener = budget, listener
        self.bound = 0.0  # no objective is below
        self.objective, self.rows = np.inf, list[tuple[float, float, float]]()

    def improved(self, objective: float) -> None:
        self.record(Progress(self.budget.elapsed, objective, self.bound))

    def solver_progress(self, event: Progress) -> None:
        self.record(Progress(self.budget.elapsed, event.objective, event.bound, event.nodes))

    def record(self, event: Progress) -> None:
        objective, bound = min(self.objective, event.objective), max(self.bound, event.bound)
        if objective < self.objective or bound > self.bound or not self.rows:
            self.rows.append((event.seconds, objective, min(bound, objective)))
        self.objective, self.bound = objective, bound
        if self.listener is not None:
            self.listener(Progress(event.seconds, objective, min(bound, objective), event.nodes))


def optimize(
    model: Formulation,
    search: Search,
    solver: Solver,
    budget: Budget,
    gap: float,
    threads: int,
    seed: int,
    search_share: float = 0.5,
    on_progress: Callable[[Progress], None] | None = None,
) -> Outcome:
    """Find the best tree of a formulation within a budget.

    Parameters
    ----------
    model : Formulation
        What to optimize.
    search : callable
        Offers trees to an Incumbent within a budget; must offer at least one whatever the budget.
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
    """
    trace = _Trace(budget, on_progress)
    best = Incumbent(model, on_better=trace.improved)
    cells = getattr(model, "program_cells", None) or 0
    hopeless = cells > _MOST_CELLS or budget.remaining * (1 - search_share) <= _CELL_SECONDS * cells
    search(best, budget.share(0.9 if hopeless else search_share))
    if best.tree is None:
        raise RuntimeError("the search offered no tree")
    bound, ended, reason = best.floor, Status.OPTIMAL, ""
    if not best.proven and relative_gap(best.objective, bound) > gap:
        trace.record(Progress(budget.elapsed, best.objective, bound))
        bound, ended, reason = _branch_and_bound(model, best, solver, budget, gap, threads, seed, trace)
    if best.objective < bound - 1e-6 * max(1.0, abs(best.objective)):
        # A tree at hand refutes the bound: it proves nothing, and neither the tree nor the contradiction is hidden.
        reason = f"a bound of {bound:.9g} was claimed, but the tree is below it"
        bound, ended = 0.0, Status.LOCAL
    bound = min(bound, best.objective)
    closed = relative_gap(best.objective, bound) <= gap
    trace.record(Progress(budget.elapsed, best.objective, bound))
    return Outcome(
        tree=best.tree,
        objective=best.objective,
        bound=bound,
        status=Status.OPTIMAL if closed else ended,
        trace=np.array(trace.rows, dtype=np.float64).reshape(-1, 3),
        reason="" if closed else reason,
    )


def _branch_and_bound(
    model: Formulation,
    best: Incumbent,
    solver: Solver,
    budget: Budget,
    gap: float,
    threads: int,
    seed: int,
    trace: _Trace,
) -> tuple[float, Status, str]:
    """Spend the rest of the budget in the solver; offers its tree and returns the bound, how it ended and why."""
    if budget.interrupted:
        return best.floor, Status.INTERRUPTED, ""
    cells = getattr(model, "program_cells", None) or 0
    if cells > _MOST_CELLS:
        return best.floor, Status.LOCAL, f"the program would have {cells:.1e} non-zeros, too many for branch and bound"
    if budget.remaining <= _CELL_SECONDS * cells or best.tree is None:
        return best.floor, Status.TIME_LIMIT, ""
    program, start = model.build(), model.encode(best.tree)
    # Solvers look at the clock now and then only, later the larger the program is.
    rest = max(0.0, budget.remaining - min(0.5, 0.1 * budget.remaining))
    result = solver.solve(
        program,
        start=start,
        time_limit=None if budget.seconds is None else rest,
        gap=gap,
        threads=threads,
        seed=seed,
        on_progress=trace.solver_progress,
        stop=lambda: budget.interrupted,
    )
    if result.status in (Status.INFEASIBLE, Status.UNBOUNDED):
        # A feasible tree and an objective of 0 or more are at hand: this is numerical trouble and proves nothing.
        return best.floor, Status.LOCAL, f"{solver.name} calls the program {result.status}, which it is not"
    if result.x is not None:
        best.offer(model.decode(result.x))
    # The repaired tree of an optimal point can only be better, so the point's proof holds for it.
    ended = Status.LOCAL if result.status is Status.OPTIMAL else result.status
    reason = "the tolerances of the solver leave a gap" if ended is Status.LOCAL else ""
    return max(best.floor, result.bound), ended, reason
