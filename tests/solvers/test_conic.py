"""Cones on solvers that know none: convex programs by clarabel, mixed ones by an outer approximation."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from tests.clock import within

from treewright.exceptions import PackageNotInstalledError
from treewright.solvers import Progress, Status, get_solver
from treewright.solvers.conic import fixed_conic, relaxed_program, solve_convex
from treewright.solvers.outer import Tangents
from treewright.solvers.program import Program
from treewright.solvers.program_builder import ProgramBuilder
from treewright.solvers.program_check import check


def assortment(seed: int, n: int = 6, whole: bool = True) -> Program:
    """Choose items whose risks, as norms of sums of random vectors, are bounded, and a continuous mix of them."""
    rng = np.random.default_rng(seed)
    builder = ProgramBuilder()
    u = builder.add_variables("u", n, upper=1, integer=whole, cost=-rng.integers(1, 9, n))
    v = builder.add_variables("v", 3, lower=-2, upper=2, cost=rng.normal(size=3))
    for k in range(2):
        member = builder.add_variables(f"member{k}", 4, lower=-np.inf)
        head = builder.add_variables(f"head{k}", 1, upper=[3.0, np.inf][k], cost=[0.0, 1.0][k])
        table, mix = rng.normal(size=(4, n)), rng.normal(size=(4, 3))
        terms = [(member, -1.0), (np.tile(u, (4, 1)), table), (np.tile(v, (4, 1)), mix)]
        builder.add_rows(f"sum{k}", terms, lower=0, upper=0)
        builder.add_cone(int(head[0]), member)
    return builder.build()


def stuck(n: int = 60) -> Program:
    """A program with a cone that no solver finishes in seconds."""
    rng = np.random.default_rng(0)
    builder = ProgramBuilder()
    u = builder.add_variables("u", n, upper=1, integer=True)
    gap = builder.add_variables("gap", 12, lower=-np.inf)
    head = builder.add_variables("head", 1, cost=1.0)
    table = rng.integers(0, 100, (12, n)).astype(float)
    builder.add_rows("gap", [(np.tile(u, (12, 1)), table), (gap, -1.0)], lower=table.sum(1) / 2, upper=table.sum(1) / 2)
    builder.add_cone(int(head[0]), gap)
    return builder.build()


@pytest.mark.parametrize("seed", range(4))
def test_convex_programs_agree_with_scip(seed: int) -> None:
    program = assortment(seed, whole=False)
    found, other = solve_convex(program), get_solver("scip").solve(program, gap=1e-8)
    assert found.status is Status.OPTIMAL
    assert check(program, found.x).feasible(1e-6)
    assert found.objective == pytest.approx(other.objective, abs=1e-5)
    assert get_solver("highs").solve(program).objective == pytest.approx(found.objective, abs=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_mixed_programs_agree_with_enumeration_and_scip(seed: int) -> None:
    program = assortment(seed)
    best = np.inf
    for number in range(2**6):
        x = np.zeros(program.n_columns)
        x[:6] = (number >> np.arange(6)) & 1
        point = fixed_conic(program, x)
        if point is not None:
            np.testing.assert_array_equal(point[:6], x[:6])
            best = min(best, check(program, point).objective)
    for name in ("highs", "scip"):
        result = get_solver(name).solve(program, gap=1e-6, time_limit=20)
        assert result.status is Status.OPTIMAL
        assert result.objective == pytest.approx(best, abs=1e-4)
        assert result.bound <= best + 1e-6
        assert check(program, result.x).feasible(1e-5)


def test_fixed_integers_that_do_not_fit() -> None:
    builder = ProgramBuilder()
    a = builder.add_variables("a", 2, upper=9, integer=True)
    r = builder.add_variables("r", 1, upper=5)
    builder.add_cone(int(r[0]), a)
    program = builder.build()
    assert fixed_conic(program, np.array([3.0, 4.0, 0.0])) == pytest.approx([3.0, 4.0, 5.0], abs=1e-6)
    assert fixed_conic(program, np.array([4.0, 4.0, 0.0])) is None
    assert fixed_conic(program, np.array([12.0, 0.0, 0.0])) is None


def test_infeasible_cones() -> None:
    builder = ProgramBuilder()
    a = builder.add_variables("a", 2, lower=3, upper=9, integer=True)
    r = builder.add_variables("r", 1, upper=4.2)
    builder.add_cone(int(r[0]), a)
    for program in (builder.build(), relaxed_program(builder.build())):
        result = get_solver("highs").solve(program)
        assert result.status is Status.INFEASIBLE and result.x is None


def test_unbounded_cones() -> None:
    builder = ProgramBuilder()
    a = builder.add_variables("a", 2, integer=[True, False], cost=-1.0)
    r = builder.add_variables("r", 1)
    builder.add_cone(int(r[0]), a)
    for program in (builder.build(), relaxed_program(builder.build())):
        assert get_solver("highs").solve(program).status is Status.UNBOUNDED


def test_tangents_are_a_relaxation_that_cuts_off_what_is_outside() -> None:
    program = assortment(0)
    tangents = Tangents(program)
    rng = np.random.default_rng(0)
    inside = [fixed_conic(program, rng.integers(0, 2, program.n_columns).astype(float)) for _ in range(8)]
    inside = [x for x in inside if x is not None]
    assert len(inside) >= 4
    for x in inside:
        tangents.add(x)
    for x in inside:
        assert check(tangents.linear(), tangents.lifted(x)).feasible(1e-6)
    # A point a tenth outside of a cone, at which there is a tangent, is outside of the relaxation whatever s is.
    x = inside[0].copy()
    cone = program.cones[1]
    x[cone.head] = 0.9 * np.linalg.norm(x[list(cone.members)])
    linear = tangents.linear()
    own = tangents.cone == 1
    least = np.full(len(tangents.member), 0.0)
    for member, rho in zip(*[np.concatenate(part) for part in zip(*tangents._rows, strict=True)], strict=True):
        needed = 2 * rho * x[tangents.member[member]] - rho**2 * x[tangents.head[member]]
        least[member] = max(least[member], needed)
    assert least[own].sum() > x[cone.head] + 1e-3
    assert linear.n_columns == program.n_columns + 8


def test_the_time_limit_is_kept_and_the_start_not_lost() -> None:
    program = stuck()
    start = np.zeros(program.n_columns)
    start[60:72] = -program.row_lower
    start[72] = np.linalg.norm(start[60:72])
    with within(8):
        result = get_solver("highs").solve(program, start=start, time_limit=1.0)
    assert result.status is Status.TIME_LIMIT
    assert result.objective <= start[72] + 1e-9
    assert check(program, result.x).feasible(1e-5)
    assert result.bound <= result.objective


def test_progress_is_about_the_true_cones() -> None:
    program = assortment(3)
    events: list[Progress] = []
    result = get_solver("highs").solve(program, gap=1e-6, on_progress=events.append)
    objectives = [event.objective for event in events]
    assert objectives == sorted(objectives, reverse=True)
    assert min(objectives) >= result.objective - 1e-6
    assert events[-1].bound <= result.objective + 1e-9


def test_stopped() -> None:
    flag = threading.Event()
    timer = threading.Timer(0.5, flag.set)
    timer.start()
    result = get_solver("highs").solve(stuck(), stop=flag.is_set, time_limit=60)
    assert result.status is Status.INTERRUPTED


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "clarabel", None)
    with pytest.raises(PackageNotInstalledError, match="pip install clarabel"):
        solve_convex(assortment(0, whole=False))
