from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.examples import looped

from treewright.solvers.program import Program
from treewright.solvers.program_builder import ProgramBuilder
from treewright.solvers.program_check import Check, check


@pytest.fixture
def program() -> Program:
    """Return ``min 2a + 3b - t + 10`` with two blocks of rows, an integer and a cone."""
    builder = ProgramBuilder()
    ab = builder.add_variables("ab", 2, lower=-5.0, upper=5.0, integer=[True, False], cost=[2.0, 3.0])
    t = builder.add_variables("t", 1, cost=-1.0)
    builder.add_rows("sum", [(ab[None, :], 1.0)], lower=1.0, upper=4.0)
    builder.add_rows("each", [(ab, [2.0, 1.0])], lower=[-np.inf, 0.0], upper=[6.0, np.inf])
    builder.add_cone(t[0], ab)
    builder.add_offset(10.0)
    return builder.build()


def test_feasible(program):
    found = check(program, np.array([3.0, 1.0, 4.0]))
    assert found.objective == 2 * 3 + 3 * 1 - 4 + 10
    assert found.violations == {"rows:sum": 0, "rows:each": 0, "bounds": 0, "integrality": 0, "cones": 0}
    assert found.worst == 0.0
    assert found.feasible(0.0)


@looped(
    "x, name, violation",
    [
        ([3.0, 2.5, 5.0], "rows:sum", 1.5),  # 5.5 > 4
        ([0.0, 0.25, 5.0], "rows:sum", 0.75),  # 0.25 < 1
        ([4.0, 0.0, 5.0], "rows:each", 2.0),  # 8 > 6
        ([3.0, -1.0, 5.0], "rows:each", 1.0),  # -1 < 0
        ([-3.0, 6.0, 9.0], "bounds", 1.0),  # 6 > 5
        ([2.75, 0.5, 5.0], "integrality", 0.25),
        ([2.25, 0.5, 5.0], "integrality", 0.25),
        ([3.0, 0.0, 2.0], "cones", 1.0),  # norm 3 > 2
    ],
)
def test_one_violation(program, x, name, violation):
    found = check(program, np.array(x))
    assert found.violations.pop(name) == pytest.approx(violation, abs=1e-12)
    assert set(found.violations.values()) == {0.0}


def test_worst(program):
    found = check(program, np.array([-6.5, 0.0, -1.0]))
    assert found.violations == {
        "rows:sum": 7.5,
        "rows:each": 0,
        "bounds": 1.5,
        "integrality": 0.5,
        "cones": 7.5,
    }
    assert found.worst == 7.5
    assert found.worst_name in ("rows:sum", "cones")
    assert not found.feasible(7.4)
    assert found.feasible(7.5)
    assert found.objective == -13 + 1 + 10


def test_tolerance(program):
    assert check(program, np.array([3.0, 1.0 + 5e-7, 4.0])).feasible()
    assert not check(program, np.array([3.0, 1.0 + 5e-6, 4.0])).feasible()


def test_cone_of_three_and_of_none():
    builder = ProgramBuilder()
    x = builder.add_variables("x", 3, lower=-np.inf)
    t = builder.add_variables("t", 1, lower=-np.inf)
    builder.add_cone(t[0], x)
    program = builder.build()
    assert check(program, np.array([2.0, -3.0, 6.0, 7.0])).violations["cones"] == 0.0
    assert check(program, np.array([2.0, -3.0, 6.0, 4.0])).violations["cones"] == 3.0
    assert check(program, np.array([0.0, 0.0, 0.0, -1.0])).violations["cones"] == 1.0
    builder.add_cone(x[0], [])
    assert check(builder.build(), np.array([-2.0, 0.0, 0.0, 2.0])).violations["cones"] == 2.0


def test_rows_without_a_name_count_too(program):
    bare = replace(program, rows={"sum": (0, 1)})
    found = check(bare, np.array([4.0, 0.0, 5.0]))
    assert found.violations["rows:"] == 2.0
    assert not found.feasible()
    assert "rows:" not in check(program, np.array([4.0, 0.0, 5.0])).violations


def test_empty_programs():
    found = check(ProgramBuilder().build(), np.empty(0))
    assert (found.objective, found.worst, found.feasible()) == (0.0, 0.0, True)
    assert Check(0.0, {}).worst == 0.0
    assert Check(0.0, {}).worst_name == ""


def test_infinite_bounds_are_never_violated():
    builder = ProgramBuilder()
    x = builder.add_variables("x", 1, lower=-np.inf)
    builder.add_rows("free", [(x, 1.0)])
    assert check(builder.build(), np.array([-1e300])).worst == 0.0


def test_a_block_of_no_rows():
    builder = ProgramBuilder()
    builder.add_variables("x", 1)
    builder.add_rows("none", [(np.empty((0, 1), dtype=int), 1.0)])
    assert check(builder.build(), np.zeros(1)).violations["rows:none"] == 0.0


@pytest.mark.parametrize("x", [[1.0, 2.0], [[1.0, 2.0, 3.0]], 1.0])
def test_points_of_a_wrong_shape(program, x):
    with pytest.raises(ValueError, match="the program has 3 columns"):
        check(program, np.array(x))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_points_that_are_no_numbers(program, bad):
    with pytest.raises(ValueError, match="not finite"):
        check(program, np.array([1.0, bad, 1.0]))
