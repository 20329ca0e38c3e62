"""Linear programs that stay in HiGHS, against scipy's linprog from scratch."""

import gc
import math
import threading
import time

import highspy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog
from tests.clock import within

from treewright.exceptions import InvalidInputError
from treewright.solvers import Status, get_solver
from treewright.solvers.linear import LinearProgram
from treewright.solvers.program_builder import ProgramBuilder


class Plain:
    """The same program as arrays, solved anew each time."""

    def __init__(self, cost, lower, upper):
        self.cost, self.lower, self.upper = np.array(cost, float), np.array(lower, float), np.array(upper, float)
        self.rows, self.low, self.high = np.zeros((0, len(cost))), np.zeros(0), np.zeros(0)

    def add_rows(self, matrix, low, high):
        wide = np.zeros((len(matrix), len(self.cost)))
        wide[:, : matrix.shape[1]] = matrix
        self.rows = np.vstack([self.rows, wide])
        self.low, self.high = np.concatenate([self.low, low]), np.concatenate([self.high, high])

    def add_columns(self, cost, lower, upper, rows):
        entries = np.zeros((len(self.rows), len(cost)))
        entries[rows, np.arange(len(cost))] = 1.0
        self.rows = np.hstack([self.rows, entries])
        self.cost = np.concatenate([self.cost, cost])
        self.lower, self.upper = np.concatenate([self.lower, lower]), np.concatenate([self.upper, upper])

    def solve(self, cost=None):
        inside = np.isfinite(self.high), np.isfinite(self.low)
        return linprog(
            self.cost if cost is None else cost,
            A_ub=np.vstack([self.rows[inside[0]], -self.rows[inside[1]]]),
            b_ub=np.concatenate([self.high[inside[0]], -self.low[inside[1]]]),
            bounds=np.column_stack([self.lower, self.upper]),
            method="highs",
        )


def agree(program, plain):
    found, wanted = program.solve(), plain.solve()
    if wanted.status == 0:
        assert found.status is Status.OPTIMAL
        assert found.objective == pytest.approx(wanted.fun, abs=1e-7)
        assert found.objective == pytest.approx(plain.cost @ found.x, abs=1e-9)
        assert np.all(found.x >= plain.lower - 1e-7) and np.all(found.x <= plain.upper + 1e-7)
        assert np.all(plain.rows @ found.x >= plain.low - 1e-6) and np.all(plain.rows @ found.x <= plain.high + 1e-6)
    else:
        # scipy calls some unbounded programs infeasible; without costs it cannot.
        feasible = plain.solve(np.zeros(len(plain.cost))).status == 0
        assert found.status is (Status.UNBOUNDED if feasible else Status.INFEASIBLE)
        assert found.x is None and found.objective == math.inf


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_a_program_that_grows_and_changes_is_solved_as_if_it_were_new(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    cost = rng.integers(-3, 4, n).astype(float)
    lower = np.where(rng.random(n) < 0.2, -np.inf, rng.integers(-3, 1, n))
    upper = np.where(rng.random(n) < 0.2, np.inf, rng.integers(1, 5, n))
    program, plain = LinearProgram(cost, lower, upper), Plain(cost, lower, upper)
    agree(program, plain)
    for _ in range(6):
        what = int(rng.integers(5))
        if what == 0 or not len(plain.rows):
            matrix = rng.integers(-2, 3, (int(rng.integers(1, 4)), int(rng.integers(1, n + 1)))).astype(float)
            low = np.where(rng.random(len(matrix)) < 0.5, -np.inf, rng.integers(-6, 1, len(matrix)))
            high = np.where(rng.random(len(matrix)) < 0.5, np.inf, rng.integers(1, 5, len(matrix)))
            program.add_rows(sparse.csr_array(matrix) if rng.random() < 0.5 else matrix, low, high)
            plain.add_rows(matrix, low, high)
        elif what == 1:
            rows = rng.integers(0, len(plain.rows), 2)
            program.add_columns([1.0, 2.0], [0.0, -1.0], [np.inf, 1.0], rows)
            plain.add_columns([1.0, 2.0], [0.0, -1.0], [np.inf, 1.0], rows)
        elif what == 2:
            j = int(rng.integers(len(plain.cost)))
            plain.cost[j] = float(rng.integers(-3, 4))
            program.change_costs([j], plain.cost[j])
        elif what == 3:
            j = int(rng.integers(len(plain.cost)))
            plain.lower[j], plain.upper[j] = -1.0, float(rng.integers(-1, 4))
            program.change_bounds([j], -1.0, plain.upper[j])
        else:
            i = int(rng.integers(len(plain.rows)))
            plain.low[i], plain.high[i] = float(rng.integers(-3, 1)), float(rng.integers(0, 3))
            program.change_rows([i], plain.low[i], plain.high[i])
        agree(program, plain)


def hard_program(n=1500, p=150):
    rng = np.random.default_rng(0)
    program = LinearProgram(rng.normal(size=p), -1.0, 1.0)
    program.add_rows(rng.normal(size=(n, p)), -np.inf, 1.0)
    return program


def test_a_time_limit_is_that_of_the_solve_and_not_of_the_program():
    began = time.perf_counter()
    whole = hard_program().solve()
    needed = time.perf_counter() - began  # limits are shares of it: what is short for one machine is plenty for another
    program = hard_program()
    with within(10.0):
        assert program.solve(0.05 * needed).status is Status.TIME_LIMIT
        assert program.solve(0.05 * needed).status is Status.TIME_LIMIT
    # It goes on from where it was stopped: clocks that add up would end every one of these at once.
    for _ in range(400):
        found = program.solve(0.3 * needed)
        if found.status is Status.OPTIMAL:
            break
    assert found.status is whole.status is Status.OPTIMAL
    assert found.objective == pytest.approx(whole.objective, abs=1e-6)


def test_without_time_nothing_is_solved():
    for seconds in (0.0, -1.0):
        found = LinearProgram([1.0], 0.0, 1.0).solve(seconds)
        assert found == (Status.TIME_LIMIT, None, math.inf)


def test_an_engine_that_served_before_gives_what_a_new_one_gives():
    rng = np.random.default_rng(1)
    tables = [rng.normal(size=(30, 4)) for _ in range(5)]

    def solved(table):
        program = LinearProgram(table[0], -1.0, 1.0, tolerance=1e-9)
        program.add_rows(table, -np.inf, 0.1)
        return program.solve().x

    def alone(table, found):
        found.append(solved(table))  # a thread begins without any engine

    first = []
    for table in tables:
        thread = threading.Thread(target=alone, args=(table, first))
        thread.start()
        thread.join()
    gc.collect()
    assert all(np.array_equal(solved(table), x) for table, x in zip(tables, first, strict=True))
    assert all(np.array_equal(solved(table), x) for table, x in zip(tables, first, strict=True))


def run_highs(threads):
    engine = highspy.Highs()
    engine.setOptionValue("output_flag", False)
    engine.setOptionValue("threads", threads)
    engine.addVar(0.0, 1.0)
    return engine.run()


def test_other_users_of_highs_in_the_thread_are_left_in_peace():
    assert run_highs(2) == highspy.HighsStatus.kOk
    assert LinearProgram([1.0], 2.0, 3.0).solve().objective == 2.0
    assert run_highs(3) == highspy.HighsStatus.kOk
    highspy.Highs.resetGlobalScheduler(True)


def test_a_program_may_be_solved_inside_of_branch_and_bound():
    rng = np.random.default_rng(0)
    builder = ProgramBuilder()
    x = builder.add_variables("x", 30, upper=1.0, cost=-rng.uniform(5, 10, 30), integer=True)
    builder.add_rows("room", [(np.tile(x, (8, 1)), rng.uniform(1, 5, (8, 30)))], upper=25.0)
    asked = []

    def suggest():
        program = LinearProgram([-1.0, -1.0], 0.0, 5.0)
        program.add_rows([[1.0, 2.0]], -np.inf, 7.0)
        asked.append(program.solve().objective)
        return None

    plain = get_solver("highs").solve(builder.build(), threads=2, time_limit=60)
    result = get_solver("highs").solve(builder.build(), threads=2, time_limit=60, suggest=suggest)
    assert set(asked) == {-6.0}
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(plain.objective)


def test_bad_programs_are_refused():
    program = LinearProgram([1.0, 1.0], 0.0, 1.0)
    for wrong in (
        lambda: LinearProgram([np.nan], 0.0, 1.0),
        lambda: LinearProgram([1.0], np.inf, np.inf),
        lambda: LinearProgram([1.0], 0.0, np.nan),
        lambda: LinearProgram([1.0], 0.0, 1.0, tolerance=1e-12),
        lambda: program.add_rows([[1.0, np.inf]], 0.0, 1.0),
        lambda: program.add_rows([[1.0, 1.0, 1.0]], 0.0, 1.0),
        lambda: program.add_columns([1.0], 0.0, 1.0, rows=[0]),
        lambda: program.change_costs([2], 1.0),
        lambda: program.change_bounds([-1], 0.0, 1.0),
        lambda: program.change_rows([0], 0.0, 1.0),
    ):
        with pytest.raises(InvalidInputError):
            wrong()
    assert program.solve().objective == 0.0
