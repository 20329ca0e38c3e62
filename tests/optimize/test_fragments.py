"""Rows that formulations share: with the rest fixed, what is left for a solver is the definition."""

import numpy as np
import pytest
from tests.examples import looped

from treewright.data.point_totals import PointTotals
from treewright.optimize.shared_rows import (
    add_class_totals,
    add_hinge_rows,
    add_leaf_labels,
    add_rising_labels,
    add_routing_rows,
    add_total_rows,
    class_totals_blocks,
    split_value,
)
from treewright.solvers import Status, get_solver
from treewright.solvers.program_builder import ProgramBuilder
from treewright.solvers.program_check import check
from treewright.tree.complete import CompleteTree, Planes, leaves_reached


def fixed(builder, name, values):
    """Variables that have one value."""
    values = np.asarray(values, dtype=float)
    return builder.add_variables(name, values.shape, lower=values, upper=values)


def solve(builder):
    result = get_solver("highs").solve(builder.build(), time_limit=30.0)
    assert result.status is Status.OPTIMAL
    return result


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_hinge_rows_charge_the_side_that_was_chosen(sign):
    rng = np.random.default_rng(0)
    X, normal, offset = rng.normal(size=(9, 2)), np.array([0.7, -1.2]), 0.1
    f, on = X @ normal - offset, np.arange(9) % 3 == 0
    builder = ProgramBuilder()
    a, o, alpha = fixed(builder, "a", normal), fixed(builder, "o", [offset]), fixed(builder, "alpha", on[:, None])
    h = builder.add_variables("h", 9, cost=1.0)
    big_m = 1.0 + np.abs(f)
    add_hinge_rows(builder, "hinge", split_value(X, a, o, sign), h, (alpha, np.ones((9, 1), dtype=bool)), big_m)
    always = builder.add_variables("always", 9, cost=1.0)
    add_hinge_rows(builder, "plain", split_value(X, a, o, sign), always)
    result, hinge = solve(builder), np.maximum(0.0, 1.0 + sign * f)
    assert builder.build().value(result.x, "h") == pytest.approx(np.where(on, hinge, 0.0))
    assert builder.build().value(result.x, "always") == pytest.approx(hinge)


@pytest.mark.parametrize("seed", range(4))
def test_routing_rows_leave_each_point_its_own_leaf(seed):
    rng = np.random.default_rng(seed)
    X, planes = rng.normal(size=(30, 2)), Planes(rng.normal(size=(7, 2)), rng.normal(size=7), np.arange(8) % 2)
    f, tree = planes.values(X), CompleteTree(3)
    leaf = leaves_reached(f)
    builder = ProgramBuilder()
    a, o = fixed(builder, "a", planes.omega), fixed(builder, "o", planes.gamma)
    z = builder.add_variables("z", (30, 8), upper=1, integer=True)
    add_routing_rows(builder, tree, X, a, o, z, (0.0, 1e-9), np.abs(f).max(axis=1) + 1e-9)
    program = builder.build()
    for t in range(8):
        for i in range(30):
            place = np.zeros((30, 8))
            place[i, t] = 1.0
            point = program.point({"a": planes.omega, "o": planes.gamma, "z": place})
            assert check(program, point).feasible(1e-12) == (leaf[i] == t)


@looped("seed", range(6))
@looped("n_classes", [2, 3])
def test_totals_count_the_rows_that_would_have_to_change_class(seed, n_classes):
    rng = np.random.default_rng(seed)
    place, rows = rng.integers(0, 4, 12), rng.integers(0, 4, (12, 2)).astype(float)
    label = np.arange(4) % 2 if n_classes == 2 else rng.integers(0, 3, 4)
    low = rng.integers(0, 8, (2, n_classes))
    high = low + rng.integers(0, 4, low.shape)
    totals = PointTotals(rows, low, high)
    z, c = np.eye(4)[place], (label == np.arange(n_classes)[:, None]).astype(float)
    builder = ProgramBuilder()
    columns = fixed(builder, "c", c) if n_classes > 2 else None
    add_class_totals(builder, fixed(builder, "z", z), columns, totals, price=0.5)
    expected = 0.0
    for g in range(2):
        counts = [rows[label[place] == k, g].sum() for k in range(n_classes)]
        above = sum(max(0.0, n - most) for n, most in zip(counts, high[g], strict=True))
        expected += 0.5 * max(above, sum(max(0.0, least - n) for n, least in zip(counts, low[g], strict=True)))
    assert solve(builder).objective == pytest.approx(expected)
    blocks = class_totals_blocks(z, c, totals)
    found = check(builder.build(), builder.build().point({"c": c, "z": z, **blocks}))
    assert found.feasible(1e-9)
    assert found.objective == pytest.approx(expected)


def test_total_rows_of_one_count():
    builder = ProgramBuilder()
    n = fixed(builder, "n", [3.0, 3.0, 3.0])
    dev = builder.add_variables("dev", 3, cost=1.0)
    add_total_rows(builder, [(n, 1.0)], dev, low=np.array([5, 2, 0]), high=np.array([9, 4, 1]))
    assert builder.build().value(solve(builder).x, "dev").tolist() == [2.0, 0.0, 2.0]


@pytest.mark.parametrize("step", [0, 1])
def test_labels_one_a_leaf_and_rising(step):
    builder = ProgramBuilder()
    used = builder.add_variables("used", 4, upper=1)
    c = add_leaf_labels(builder, 3, 4, used)
    add_rising_labels(builder, c, step)
    program = builder.build()

    def allowed(labels, used=(1, 1, 1, 1)):
        table = (np.array(labels) == np.arange(3)[:, None]) & np.array(used, dtype=bool)
        return check(program, program.point({"c": table, "used": used})).feasible()

    assert allowed([0, 2, 1, 2])
    assert allowed([0, 0, 1, 2]) == (step == 0)
    assert not allowed([0, 2, 2, 1])
    assert not check(program, program.point({"c": np.eye(3, 4), "used": np.ones(4)})).feasible()
