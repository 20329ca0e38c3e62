"""Every solver keeps the same promises. A missing HiGHS or SCIP fails here; it is not skipped."""

from __future__ import annotations

import math
import os
import signal
import threading
import time

import numpy as np
import pytest
from known_problems import CONIC, LINEAR, big_lp, hard_knapsack, knapsack, long_relaxation, market_split
from scipy import sparse
from tests.clock import within
from tests.examples import looped

from treewright.exceptions import InvalidInputError, UnsupportedProgramError
from treewright.solvers import Capability, Progress, Solver, Status, get_solver
from treewright.solvers.highs import HighsSolver
from treewright.solvers.program import Program
from treewright.solvers.program_builder import ProgramBuilder
from treewright.solvers.program_check import check
from treewright.solvers.session import Session

SOLVERS = ["highs", "scip", "gurobi"]


@pytest.fixture(params=SOLVERS)
def solver(request: pytest.FixtureRequest) -> Solver:
    return get_solver(request.param)


def run_engine(solver: Solver, program: Program, **options: object):
    """What the solver itself ends with, before the session adds start and suggestions."""
    return solver.run(Session(program, **options))


class TestKnownOptima:
    @pytest.mark.parametrize("problem", LINEAR)
    def test_linear(self, solver: Solver, problem: str) -> None:
        self.agrees(solver, LINEAR[problem]())

    @pytest.mark.parametrize("problem", CONIC)
    def test_conic(self, solver: Solver, problem: str) -> None:
        self.agrees(solver, CONIC[problem](), 1e-4)

    def agrees(self, solver: Solver, known, tolerance: float = 1e-6) -> None:
        result = solver.solve(known.program, time_limit=20)
        assert result.status is known.status
        if known.status is Status.INFEASIBLE:
            assert result.x is None
            assert result.objective == result.bound == math.inf
            return
        assert result.x is not None
        assert check(known.program, result.x).feasible(1e-5)
        assert result.objective == pytest.approx(check(known.program, result.x).objective)
        if known.status is Status.UNBOUNDED:
            assert result.bound == -math.inf
            return
        assert result.objective == pytest.approx(known.objective, abs=tolerance)
        assert result.bound == pytest.approx(known.objective, abs=max(tolerance, 1e-4 * abs(known.objective)))
        assert result.bound <= result.objective
        assert result.gap <= 1e-4
        if known.x is not None:
            assert result.x == pytest.approx(known.x, abs=max(1e-3, tolerance))

    def test_zero_gap_is_proven(self, solver: Solver) -> None:
        known = knapsack(seed=8)
        result = solver.solve(known.program, gap=0.0, time_limit=20)
        assert result.status is Status.OPTIMAL
        assert result.objective == pytest.approx(known.objective)
        assert result.bound == pytest.approx(known.objective, abs=1e-6)

    def test_integers_are_integers(self, solver: Solver) -> None:
        result = solver.solve(knapsack().program)
        assert result.x is not None
        np.testing.assert_array_equal(result.x, np.round(result.x))

    def test_duplicate_entries_are_summed(self, solver: Solver) -> None:
        program = LINEAR["linear"]().program
        half = program.matrix.tocsr()
        twice = sparse.csr_array(
            (np.repeat(half.data / 2, 2), np.repeat(half.indices, 2), half.indptr * 2), shape=half.shape
        )
        assert not twice.has_canonical_format
        changed = Program(**{**program.__dict__, "matrix": twice})
        assert solver.solve(changed).objective == pytest.approx(-36.0)

    def test_rounding_does_not_break_rows(self, solver: Solver) -> None:
        """With a big M an integer may be off by 1e-7 and hide a violation; the returned point is exact."""
        big = 1e6
        builder = ProgramBuilder()
        y = builder.add_variables("y", 3, upper=big, cost=-1.0)
        u = builder.add_variables("u", 3, upper=1, integer=True, cost=4.0)
        builder.add_rows("switch", [(y, 1.0), (u, -big)], upper=0.0)
        builder.add_rows("cap", [(y, 1.0)], upper=[3.0, 5.0, 6.0])
        program = builder.build()
        result = solver.solve(program, time_limit=20)
        assert result.x is not None
        assert check(program, result.x).feasible(1e-5)
        assert result.objective == pytest.approx(-3.0)
        assert result.status is Status.UNPROVEN or result.gap <= 1e-3


class TestStart:
    def test_without_time_the_start_is_returned(self, solver: Solver) -> None:
        program = hard_knapsack()
        start = np.zeros(program.n_columns)
        start[:10] = 1
        for time_limit in (0.0, 1e-4):
            result = solver.solve(program, start=start, time_limit=time_limit)
            assert result.status is Status.TIME_LIMIT
            assert result.objective <= program.cost @ start
            assert result.x is not None
            assert result.bound == pytest.approx(program.cost.sum())

    def test_never_worse(self, solver: Solver) -> None:
        program, solution = market_split()
        start = solution.copy()
        start[0] = 1 - start[0]
        step = (1 if start[0] else -1) * program.matrix[:, [0]].toarray().ravel()
        start[40:45], start[45:] = np.maximum(step, 0), np.maximum(-step, 0)
        assert check(program, start).feasible()
        result = solver.solve(program, start=start, time_limit=0.3)
        assert result.status is Status.TIME_LIMIT
        assert result.objective <= program.cost @ start
        assert check(program, result.x).feasible(1e-5)

    def test_is_handed_to_the_solver(self, solver: Solver) -> None:
        program, solution = market_split()
        # no solver finds this by itself, so its own solution must come from the start
        outcome = run_engine(solver, program, start=solution, time_limit=60.0)
        assert outcome.x is not None
        assert program.cost @ outcome.x == pytest.approx(0.0, abs=1e-6)

    def test_proven_by_the_trivial_bound(self, solver: Solver) -> None:
        program, solution = market_split()
        result = solver.solve(program, start=solution)
        assert result.status is Status.OPTIMAL
        assert result.objective == result.bound == 0.0

    @looped("value", [1.0, 0.5, np.nan, np.inf, -7.0])
    def test_infeasible_is_ignored(self, solver: Solver, value: float) -> None:
        known = knapsack()
        start = np.full(known.program.n_columns, value)
        assert solver.solve(known.program, start=start).objective == pytest.approx(known.objective)

    def test_optimal_start_of_an_unbounded_program(self, solver: Solver) -> None:
        known = LINEAR["unbounded_mip"]()
        result = solver.solve(known.program, start=np.array([1.0, 1.0]))
        assert result.status is Status.UNBOUNDED

    def test_wrong_shape_is_refused(self, solver: Solver) -> None:
        with pytest.raises(InvalidInputError, match=r"shape \(3,\)"):
            solver.solve(knapsack().program, start=np.zeros(3))

    def test_linear_program_keeps_its_start(self, solver: Solver) -> None:
        program = big_lp()
        result = solver.solve(program, start=np.zeros(program.n_columns), time_limit=0.02)
        assert result.status in (Status.TIME_LIMIT, Status.OPTIMAL)
        assert result.objective <= 0.0


class TestLimits:
    def test_time_limit(self, solver: Solver) -> None:
        program, _ = market_split()
        began = time.perf_counter()
        with within(5):
            result = solver.solve(program, time_limit=0.5)
        assert 0.3 < result.seconds <= time.perf_counter() - began
        assert result.status is Status.TIME_LIMIT
        assert result.bound <= result.objective
        assert result.gap > 1e-4

    def test_time_limit_without_solution(self, solver: Solver) -> None:
        result = solver.solve(hard_knapsack(), time_limit=0.0)
        assert result.status is Status.TIME_LIMIT
        assert result.x is None
        assert result.objective == math.inf

    @looped("option", [{"time_limit": -1.0}, {"gap": -0.1}, {"threads": 0}, {"gap": math.nan}])
    def test_senseless_options(self, solver: Solver, option: dict[str, float]) -> None:
        with pytest.raises(InvalidInputError, match=next(iter(option))):
            solver.solve(knapsack().program, **option)


class TestStop:
    def test_flag(self, solver: Solver) -> None:
        program, _ = market_split()
        seen: list[Progress] = []
        with within(5):
            result = solver.solve(
                program,
                time_limit=60,
                on_progress=seen.append,
                stop=lambda: any(math.isfinite(event.objective) for event in seen),
            )
        assert result.status is Status.INTERRUPTED
        assert result.x is not None
        assert check(program, result.x).feasible(1e-5)

    def test_set_before(self, solver: Solver) -> None:
        result = solver.solve(hard_knapsack(), stop=lambda: True)
        assert result.status is Status.INTERRUPTED
        assert result.x is None

    def test_linear_program(self, solver: Solver) -> None:
        began = time.perf_counter()
        with within(10):
            result = solver.solve(big_lp(), time_limit=60, stop=lambda: time.perf_counter() - began > 0.1)
        assert result.status in (Status.INTERRUPTED, Status.OPTIMAL)

    @pytest.mark.parametrize("name", ["highs", "scip"])
    def test_deaf_native_code_is_left_behind(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """Inside a long relaxation neither solver looks at its flag; the caller gets the start anyway."""
        monkeypatch.setattr("treewright.solvers.session.GRACE_SECONDS", 0.3)
        program = long_relaxation()
        start = np.zeros(program.n_columns)
        began = time.perf_counter()
        result = get_solver(name).solve(
            program, start=start, time_limit=30, stop=lambda: time.perf_counter() - began > 0.7
        )
        assert result.status is Status.INTERRUPTED
        assert result.seconds < 30
        assert result.objective <= 0.0
        assert check(program, result.x).feasible(1e-5)

    def test_signals_reach_the_main_thread(self, solver: Solver) -> None:
        program, _ = market_split()
        asked: list[int] = []
        before = signal.signal(signal.SIGINT, lambda *_: asked.append(1))
        killer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        try:
            killer.start()
            with within(5):
                result = solver.solve(program, time_limit=30, stop=lambda: bool(asked))
        finally:
            killer.join()
            signal.signal(signal.SIGINT, before)
        assert result.status is Status.INTERRUPTED

    def test_keyboard_interrupt_without_a_handler(self, solver: Solver) -> None:
        program, _ = market_split()
        killer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        killer.start()
        with within(5), pytest.raises(KeyboardInterrupt):
            solver.solve(program, time_limit=30)


class TestProgress:
    def test_monotone(self, solver: Solver) -> None:
        program, _ = market_split(seed=4)
        seen: list[Progress] = []
        result = solver.solve(program, time_limit=60.0, on_progress=seen.append, stop=lambda: len(seen) >= 5)
        assert tuple(seen) == result.trace
        assert len(seen) >= 5
        assert len(seen) < 300
        for name, sign in (("seconds", 1), ("objective", -1), ("bound", 1), ("nodes", 1)):
            values = [sign * getattr(event, name) for event in seen]
            assert values == sorted(values), name
        assert all(event.bound <= event.objective for event in seen)
        assert seen[-1].objective == pytest.approx(result.objective)
        assert seen[-1].bound == result.bound
        assert result.nodes == seen[-1].nodes

    def test_in_the_calling_thread(self, solver: Solver) -> None:
        threads: set[int] = set()
        solver.solve(knapsack().program, on_progress=lambda _: threads.add(threading.get_ident()))
        assert threads == {threading.get_ident()}

    @pytest.mark.parametrize("where", ["on_progress", "stop", "suggest"])
    def test_exceptions_are_raised(self, solver: Solver, where: str) -> None:
        program, _ = market_split()
        calls: list[int] = []

        def fail(*_: object) -> bool:
            calls.append(1)
            if len(calls) >= 2:
                raise LookupError("from the callback")
            return False

        def fail_at_once() -> None:
            raise LookupError("from the callback")

        with within(5), pytest.raises(LookupError, match="from the callback"):
            solver.solve(program, time_limit=30, **{where: fail_at_once if where == "suggest" else fail})
        assert solver.solve(knapsack().program).status is Status.OPTIMAL


class TestSuggest:
    def test_is_injected(self, solver: Solver) -> None:
        program, solution = market_split()
        asked: list[float] = []

        def suggest() -> np.ndarray:
            asked.append(time.perf_counter())
            return solution

        session = Session(program, time_limit=5.0, suggest=suggest)
        outcome = solver.run(session)
        assert asked
        # the solver's own solution, not the session's memory of it
        assert program.cost @ outcome.x == pytest.approx(0.0, abs=1e-6)
        assert outcome.status is Status.OPTIMAL

    def test_is_never_lost(self, solver: Solver) -> None:
        program, solution = market_split()
        result = solver.solve(program, time_limit=5.0, suggest=lambda: solution)
        assert result.status is Status.OPTIMAL
        assert result.objective == 0.0

    def test_infeasible_is_ignored(self, solver: Solver) -> None:
        known = knapsack()
        suggested = np.ones(known.program.n_columns)
        result = solver.solve(known.program, suggest=lambda: suggested)
        assert result.objective == pytest.approx(known.objective)

    def test_none_is_fine(self, solver: Solver) -> None:
        known = knapsack()
        assert solver.solve(known.program, suggest=lambda: None).objective == pytest.approx(known.objective)


class TestRefusals:
    def test_what_a_solver_lacks(self) -> None:
        class WithoutCones(HighsSolver):
            name, capabilities = "linear", Capability.LP | Capability.MIP

        with pytest.raises(UnsupportedProgramError, match=r"'linear' lacks cone.*highs, scip, gurobi"):
            WithoutCones().solve(CONIC["cone"]().program)

    @looped("part", ["matrix", "cost", "lower", "upper", "row_lower", "row_upper"])
    def test_nan(self, solver: Solver, part: str) -> None:
        program = LINEAR["ranged_rows"]().program
        changed = dict(program.__dict__)
        if part == "matrix":
            changed["matrix"] = program.matrix * np.nan
        else:
            changed[part] = changed[part].copy()
            changed[part][1] = np.nan
        with pytest.raises(InvalidInputError, match=part):
            solver.solve(Program(**changed))

    def test_wrong_infinity(self, solver: Solver) -> None:
        program = LINEAR["linear"]().program
        changed = {**program.__dict__, "lower": np.array([0.0, np.inf]), "upper": np.full(2, np.inf)}
        with pytest.raises(InvalidInputError, match="wrong infinity"):
            solver.solve(Program(**changed))


class TestRepeatability:
    @pytest.mark.parametrize("seed", [0, 2**40])
    def test_same_seed_same_point(self, solver: Solver, seed: int) -> None:
        program = hard_knapsack(22, 4)
        first, second = (solver.solve(program, seed=seed, time_limit=30) for _ in range(2))
        assert first.status is second.status is Status.OPTIMAL
        np.testing.assert_array_equal(first.x, second.x)

    def test_many_solves_with_changing_threads(self, solver: Solver) -> None:
        known = knapsack(8)
        solver.solve(known.program)
        before = threading.active_count()
        for threads in [1, 2, 3, 1, 2] * 4:
            assert solver.solve(known.program, threads=threads).objective == pytest.approx(known.objective)
        assert threading.active_count() == before

    def test_at_the_same_time(self, solver: Solver) -> None:
        known = knapsack(10)
        found: list[float] = []

        def work() -> None:
            found.append(solver.solve(known.program).objective)

        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert found == pytest.approx([known.objective] * 4)


@pytest.mark.parametrize("name", ["highs", "scip"])
def test_a_large_program_is_passed_quickly(name: str) -> None:
    rng = np.random.default_rng(0)
    n, m, each = 10_000, 20_000, 20
    builder = ProgramBuilder()
    x = builder.add_variables("x", n, upper=1.0, cost=1.0)
    builder.add_rows("r", [(x[rng.integers(0, n, (m, each))], rng.random((m, each)))], lower=0.1)
    program = builder.build()
    with within(20):
        result = get_solver(name).solve(program, start=np.ones(n), time_limit=0.5)
    assert result.objective <= n
