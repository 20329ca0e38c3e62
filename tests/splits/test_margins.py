"""Planes with margins: exact lines against formulas, linear programs against scipy."""

import numpy as np
import pytest
from scipy.optimize import linprog
from tests.examples import looped

from treewright.core.budget import Budget
from treewright.splits.hinge_loops import line_minimum, pass_over
from treewright.splits.hinge_planes import MarginNode, MarginPoints, Plane, polished_plane


def line_cost(v, f, rate, stake, toll, epsilon, kink, force):
    """What a place on a line costs, by the formula; a point on the plane may take the better side."""
    value = f + v * rate
    side = np.where(np.abs(value) < 1e-12, np.minimum(stake, 0.0), np.where(value > 0, stake, 0.0))
    return side.sum() + (toll * np.maximum(0.0, epsilon - np.abs(value))).sum() + force * abs(v - kink)


def random_line(seed, n=12):
    rng = np.random.default_rng(seed)
    grid = seed % 2 == 0  # ties
    f = rng.integers(-4, 5, n) / 4 if grid else rng.uniform(-1, 1, n)
    rate = rng.integers(-2, 3, n) / 2 if grid else rng.normal(size=n)
    f[rate == 0] = 0.7  # none stays on the plane all along
    stake, toll = rng.normal(size=n), rng.uniform(0, 8, n)
    return f, rate, stake, toll, float(rng.choice([0.05, 0.3])), rng.normal(), rng.uniform(0, 2), -1.5, 1.5


@looped("seed", range(40))
def test_no_place_on_a_line_is_cheaper_than_the_minimum(seed):
    f, rate, stake, toll, epsilon, kink, force, low, high = random_line(seed)
    v, cost = line_minimum(f, rate, stake, toll, epsilon, kink, force, low, high)
    assert low <= v <= high
    assert cost == pytest.approx(line_cost(v, f, rate, stake, toll, epsilon, kink, force), abs=1e-9)
    moving = rate != 0
    centre, width = -f[moving] / rate[moving], epsilon / np.abs(rate[moving])
    # Places where a point is on the plane are left out; towards them the cost may still fall.
    events = np.sort(np.concatenate([centre, centre - width, centre + width, [kink, low, high]]))
    for place in np.linspace(low, high, 301):
        ends = events[events <= place][-1:], events[events >= place][:1]
        if all(np.abs(end - centre).min() > 1e-9 for end in ends):
            assert line_cost(place, f, rate, stake, toll, epsilon, kink, force) >= cost - 1e-9


def test_of_equally_good_places_the_middle_is_taken():
    f, ones = np.array([0.0, 1.0]), np.ones(2)
    v, cost = line_minimum(f, ones, np.array([1.0, -1.0]), ones, 0.1, 0.0, 0.0, -2.0, 2.0)
    assert (v, cost) == pytest.approx((-0.5, -1.0))  # the second point left, the first right: v from -0.9 to -0.1


def random_node(seed, gaps=False, hard=False, n=30, p=3):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (n, p)) / 5.0 if seed % 2 else rng.random((n, p))
    if gaps:
        X[rng.random((n, p)) < 0.2] = np.nan
    price = np.full(n, np.inf) if hard else rng.uniform(5, 20, n)
    epsilon = 0.05
    points = MarginPoints(X, np.ones(p, dtype=bool), price, epsilon, epsilon if hard else 1e-4, 0.3, 4.0)
    rows = np.sort(rng.choice(n, 20, replace=False))
    return MarginNode(points, rows, rng.normal(size=20)), rng


def node_cost(node, normal, offset):
    """What a plane costs, by the formula, and whether it keeps what it must."""
    points, rows = node.points, node.rows
    used = normal != 0
    value = offset - points.X[:, used] @ normal[used]
    here = value[rows]
    lost = min(0.0, node.stake[np.isnan(here)].sum())
    near = np.where(np.isnan(here), 0.0, np.maximum(0.0, points.epsilon - np.abs(here)))
    charged = 0.0 if np.isinf(points.price).any() else float(points.price[rows] @ near)
    apart = np.nanmin(np.abs(here), initial=1.0) >= points.margin - 1e-9
    fine = apart and np.nanmax(np.abs(value), initial=0.0) <= 1 + 1e-9
    return node.stake[here > 0].sum() + lost + charged + points.alpha * np.abs(normal).sum(), bool(fine)


@looped("seed", range(12))
@pytest.mark.parametrize("gaps, hard", [(False, False), (True, False), (False, True)])
def test_moved_planes_keep_their_bounds_and_cost_what_they_say(seed, gaps, hard):
    node, rng = random_node(seed, gaps, hard)
    direction = rng.normal(size=3) * (rng.random(3) < 0.7)
    plane = node.along(direction, Budget()) if np.any(direction) else None
    if plane is None:
        return
    for _ in range(3):
        better = node.descended(plane, rng, Budget(), passes=1)
        assert better.cost <= plane.cost
        plane = better
    cost, fine = node_cost(node, plane.normal, plane.offset)
    assert fine
    assert plane.cost == pytest.approx(cost, abs=1e-8)
    assert plane.cost == pytest.approx(node.cost(plane.normal, plane.offset), abs=1e-8)
    assert np.abs(plane.normal).max(initial=0.0) <= node.points.largest + 1e-9


def test_a_feature_with_gaps_is_taken_up_only_if_that_pays_for_the_points_it_loses():
    X = np.array([[0.0, 0.0], [0.2, 0.1], [0.8, np.nan], [1.0, 1.0]])
    points = MarginPoints(X, np.ones(2, dtype=bool), np.full(4, 100.0), 0.01, 1e-4, 0.0, 10.0)
    node = MarginNode(points, np.arange(4), np.array([-1.0, -1.0, 5.0, -1.0]))
    start = Plane(np.array([1.0, 0.0]), 0.5, node.cost(np.array([1.0, 0.0]), 0.5))
    assert start.cost == -2.0
    normal, offset = start.normal.copy(), start.offset
    offset, cost = pass_over(
        points.filled, points.absent, node.rows, node.stake, node.toll, 0.01, 1e-4, 0.0, 10.0, np.array([1]), normal,
        offset, start.cost,
    )  # fmt: skip
    # With the second feature the third point has no value and goes right, and the fourth can go left.
    assert cost == pytest.approx(-3.0) and normal[1] != 0
    assert node_cost(node, normal, offset) == (pytest.approx(-3.0), True)


def polished_by_scipy(node, plane):
    """The linear program with all of its rows at once."""
    points, rows = node.points, node.rows
    X, p = points.X, points.X.shape[1]
    sign = np.where(plane.offset - X[rows] @ plane.normal > 0, 1.0, -1.0)
    m = len(rows)
    cost = np.concatenate([np.full(2 * p, points.alpha), [0.0], points.price[rows]])
    values = np.hstack([-X, X, np.ones((len(X), 1))])
    side = np.hstack([sign[:, None] * values[rows], np.eye(m)])
    pad = np.zeros((len(X), m))
    A = np.vstack([-side, np.hstack([values, pad]), np.hstack([-values, pad])])
    b = np.concatenate([np.full(m, -points.epsilon), np.ones(2 * len(X))])
    bounds = [(0, points.largest)] * (2 * p) + [(None, None)] + [(0, points.epsilon - points.margin)] * m
    return linprog(cost, A, b, bounds=bounds)


@looped("seed", range(12))
def test_polishing_is_the_linear_program_of_the_sides(seed):
    node, rng = random_node(seed)
    plane = node.along(rng.normal(size=3), Budget())
    if plane is None:
        return
    better = polished_plane(node, plane, Budget())
    sides = float(node.stake[plane.offset - node.points.X[node.rows] @ plane.normal > 0].sum())
    expected = polished_by_scipy(node, plane)
    assert expected.status == 0
    assert better.cost - sides == pytest.approx(min(expected.fun, plane.cost - sides), abs=1e-6)
    assert node_cost(node, better.normal, better.offset)[1]


@looped("seed", [21, 66, 140, 168, 179, 198, 257, *range(20)])
def test_a_plane_after_a_descent_costs_what_is_said(seed):
    """Weights of nothing on a feature with gaps sent points aside that have a value again once the weight is zero."""
    rng = np.random.default_rng(seed)
    n, p = rng.integers(5, 60), rng.integers(1, 5)
    X = rng.random((n, p))
    if rng.random() < 0.7:
        X[rng.random((n, p)) < 0.2] = np.nan
    points = MarginPoints(X, np.ones(p, dtype=bool), np.full(n, 20.0), 0.05, 1e-4, 1.0, 10.0)
    node = MarginNode(points, np.arange(n), rng.integers(-1, 2, n).astype(float))
    direction = rng.normal(size=p) * 0.3
    direction[rng.random(p) < 0.3] = 0
    found = node.along(direction, Budget()) if np.any(direction) else None
    for plane in () if found is None else (found, node.descended(found, rng, Budget())):
        assert plane.cost == pytest.approx(node.cost(plane.normal, plane.offset), abs=1e-7)
