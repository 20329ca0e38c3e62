"""Points that join a program, against the program of all points."""

import numpy as np
import pytest
from scipy.optimize import linprog
from tests.examples import looped

from treewright.core.budget import Budget
from treewright.solvers.linear import LinearProgram
from treewright.splits.joining import solve_joining


def problem(seed, n=400, p=4):
    """Random rows around a point that satisfies all of them."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, p))
    return rng.normal(size=p), A, A @ rng.normal(size=p) - rng.uniform(0.1, 2.0, n)


class Rows:
    """min c @ x under A @ x >= b in a box; rows join."""

    def __init__(self, cost, A, b):
        self.A, self.b, self.program, self.solves = A, b, LinearProgram(cost, -10.0, 10.0), 0
        self.inside = np.zeros(len(A), dtype=bool)

    def solve(self, seconds):
        self.solves += 1
        return self.program.solve(seconds).x

    def run(self, first, at_a_time=5, rounds=100, budget=None):
        return solve_joining(
            self.solve,
            lambda some: self.program.add_rows(self.A[some], self.b[some], np.inf),
            lambda x: self.b - self.A @ x - 1e-9,
            self.inside,
            first,
            at_a_time=at_a_time,
            rounds=rounds,
            budget=Budget() if budget is None else budget,
        )


@looped("seed", range(8))
def test_a_complete_solution_is_that_of_all_rows(seed):
    cost, A, b = problem(seed)
    rows = Rows(cost, A, b)
    found = rows.run(np.arange(3))
    wanted = linprog(cost, A_ub=-A, b_ub=-b, bounds=(-10, 10))
    assert found.complete
    assert cost @ found.solution == pytest.approx(wanted.fun, abs=1e-7)
    assert rows.inside.sum() < len(A) / 2
    again = rows.run(np.arange(3))  # what is inside does not join twice
    assert again.complete and cost @ again.solution == pytest.approx(wanted.fun, abs=1e-7)
    assert rows.program.n_rows == rows.inside.sum()


def test_rounds_and_the_budget_end_it_incomplete():
    cost, A, b = problem(0)
    rows = Rows(cost, A, b)
    found = rows.run(np.arange(1), at_a_time=1, rounds=3)
    assert not found.complete and found.solution is not None and rows.solves == 3
    assert rows.inside.sum() == rows.program.n_rows == 3
    late = Rows(cost, A, b)
    assert late.run(np.arange(1), budget=Budget(0.0)) == (None, False)
    stopped = Budget()

    def solve(seconds):
        stopped.stop()
        return late.program.solve(seconds).x

    late.solve = solve
    found = late.run(np.arange(1), budget=stopped)
    assert not found.complete and found.solution is not None


def test_each_program_gets_the_time_that_is_left(own_clock):
    given = []

    def solve(seconds):
        given.append(seconds)
        own_clock.now += 0.5
        return np.zeros(1)

    solve_joining(
        solve,
        lambda some: None,
        lambda x: np.ones(10),
        np.zeros(10, dtype=bool),
        np.arange(1),
        at_a_time=1,
        rounds=4,
        budget=Budget(5.0),
    )
    assert given == [5.0, 4.5, 4.0, 3.5]


def test_a_program_without_solution_ends_it():
    found = solve_joining(
        lambda seconds: None,
        lambda some: None,
        lambda x: np.zeros(3),
        np.zeros(3, dtype=bool),
        np.arange(2),
        at_a_time=1,
        rounds=4,
        budget=Budget(),
    )
    assert found == (None, False)
