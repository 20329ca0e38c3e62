"""The promises of formulations (1 to 5), for every formulation and every solver."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.contracts.brute_force import best_on_a_grid
from tests.contracts.cases import CASES, SOLVERS, Case, random_tree
from tests.contracts.inside import Budget, Incumbent, optimize
from tests.examples import looped
from treewright.optimize.conduct import Conduct
from treewright.optimize.formulation import Formulation
from treewright.optimize.record import FitStatus
from treewright.solvers import Result, Status, get_solver
from treewright.solvers.program_check import check

every_model = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
SEEDS = [0, 1, 2]
some_solves = pytest.mark.parametrize(
    ("solver", "seed"), [("highs", 0), *((solver, seed) for solver, seed in zip(SOLVERS, [2, 1, 2], strict=True))]
)
"""Solvers differ in which optimum they end with, so that each is to be seen, but not all on the same instances."""


@cache
def optimum_of(case, seed):
    """The brute-force optimum of a tiny instance, which several promises ask for."""
    return case.optimum(case.tiny(seed))


@cache
def solved(case: Case, solver: str, seed: int, size: str = "small") -> tuple[Any, Result]:
    """A formulation and its solution, shared by the promises that look at it from several sides."""
    model = getattr(case, size)(seed)
    return model, get_solver(solver).solve(model.build(), time_limit=60.0, gap=1e-6)


def rounding(model: Formulation[Any], result: Result) -> float:
    """How far the objective of a solver's point may be off, given by how much the point violates rows."""
    program = model.build()
    return 1e-6 + float(np.abs(program.cost).sum()) * check(program, result.x).worst


@some_solves
@every_model
def test_1_decoding_does_with_points_what_the_solution_says(case, solver, seed):
    model, result = solved(case, solver, seed)
    assert case.agrees(model, result.x)


@some_solves
@every_model
def test_2_an_encoded_solution_is_feasible_and_costs_the_same(case, solver, seed):
    model, result = solved(case, solver, seed)
    found = check(model.build(), model.encode(model.decode(result.x)))
    assert found.worst <= 1e-6, found.worst_name
    assert found.objective == pytest.approx(result.objective, abs=rounding(model, result))


@every_model
@looped("seed", range(5))
def test_2_any_solution_can_be_repaired_and_encoded(case, seed):
    model = case.small(seed)
    feasible = model.repair(case.random(model, np.random.default_rng(seed)))
    found = check(model.build(), model.encode(feasible))
    assert found.worst <= 1e-6, found.worst_name
    assert found.objective == pytest.approx(model.objective(feasible), abs=1e-9)


@pytest.mark.parametrize("case", [c for c in CASES if c.random is random_tree], ids=lambda case: case.name)
@looped("seed", range(5))
def test_2_any_tree_can_be_encoded_as_it_is(case, seed):
    model = case.small(seed)
    tree = random_tree(model, np.random.default_rng(seed))
    found = check(model.build(), model.encode(tree))
    assert found.worst <= 1e-6, found.worst_name
    assert found.objective == pytest.approx(model.objective(model.repair(tree)), abs=1e-9)


@some_solves
@every_model
def test_3_the_solution_measures_what_the_solver_says(case, solver, seed):
    model, result = solved(case, solver, seed)
    assert model.objective(model.decode(result.x)) == pytest.approx(result.objective, abs=rounding(model, result))


@pytest.mark.parametrize(("solver", "seconds"), [(SOLVERS[0], 0.001), *((solver, 0.05) for solver in SOLVERS)])
@every_model
def test_4_a_start_is_never_made_worse(case, solver, seconds):
    model = case.small(0)
    best = Incumbent(model)
    for seed in range(5):
        best.offer(case.random(model, np.random.default_rng(seed)))
    result = get_solver(solver).solve(model.build(), start=model.encode(best.solution), time_limit=seconds)
    assert result.objective <= best.objective + 1e-9


@some_solves
@every_model
def test_5_bound_and_objective_enclose_the_brute_force_optimum(case, solver, seed):
    model, result = solved(case, solver, seed, "tiny")
    optimum = optimum_of(case, seed)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(optimum, abs=rounding(model, result))
    assert result.bound <= optimum + 1e-6
    assert model.lower_bound() <= optimum + 1e-9


@every_model
@looped("seed", SEEDS)
def test_5_nothing_feasible_is_below_the_brute_force_optimum(case, seed):
    model, optimum = case.tiny(seed), optimum_of(case, seed)
    rng = np.random.default_rng(seed)
    values = [model.objective(model.repair(case.random(model, rng))) for _ in range(25)]
    assert min(values) >= optimum - 1e-9


@pytest.mark.parametrize("case", [c for c in CASES if c.name.startswith("c2rf")], ids=lambda case: case.name)
@looped("seed", SEEDS)
def test_5_weights_on_a_grid_do_not_refute_the_oracle(case, seed):
    model = case.tiny(seed)
    values = np.unique([model.least, *np.arange(np.ceil(model.least), min(model.most, 5.0) + 1), model.most]).tolist()
    assert best_on_a_grid(model, values) >= case.optimum(model)


@every_model
def test_a_stopped_budget_returns_a_solution(case):
    """What Ctrl-C does, without the signal: the search hears of it after its first offer, no solver is started."""
    model, budget = case.small(0), Budget(None)

    def search(best: Incumbent, time: Budget) -> None:
        best.offer(case.random(model, np.random.default_rng(0)))
        budget.stop()
        assert time.over

    outcome = optimize(model, search, Conduct(solver=get_solver("highs")), budget)
    record = outcome.record
    assert record.status == FitStatus.INTERRUPTED
    assert record.bound <= record.objective == model.objective(outcome.solution)
