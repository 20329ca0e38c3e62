"""Programs of one plane: the same optima as a general solver has, and what duals promise."""

import numpy as np
import pytest
from scipy.optimize import linprog
from tests.examples import looped

from treewright.splits.plane_programs import PERTURBED, best_plane


def task(seed):
    """Points with sides that a plane parts, more or less; many equal values where the seed is even."""
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(2, 50)), int(rng.integers(1, 12))
    X = rng.random((n, k)) if seed % 2 else rng.integers(0, 4, (n, k)) / 3.0
    level = X @ rng.normal(size=k)
    noise = 0.3 * rng.normal(size=n) if seed % 3 == 0 else 0.0
    sides = np.where(level > np.median(level) + noise, -1, 1)
    sides[rng.random(n) < 0.3] = 0
    price = rng.choice([1.0, 2.0], n) * 10.0 ** rng.uniform(0, 3)
    limits = (rng.choice([0.01, 0.05]), rng.choice([-1.0, 0.001, 0.008]), 10.0 ** rng.uniform(-1, 1), 20.0)
    return X, sides, price, limits


def solved(X, sides, price, limits, limit=np.inf, hint=None):
    normal, dual = np.zeros(X.shape[1]), np.zeros(len(X)) if hint is None else hint.astype(float)
    cost, offset = best_plane(X, sides, price, limits, limit, normal, dual)
    return cost, normal, offset, dual


def reference(X, sides, price, limits):
    """The program as it is written, with a column for each slack."""
    (epsilon, least, alpha, largest), (n, k) = limits, X.shape
    sided = np.flatnonzero(sides)
    m = len(sided)
    value = np.hstack([-X, X, np.ones((n, 1))])
    away = sides[sided, None] * value[sided]
    A = [[-away, -np.eye(m)], [-away, np.zeros((m, m))], [value, np.zeros((n, m))], [-value, np.zeros((n, m))]]
    b = np.repeat([-epsilon, -least, 1.0, 1.0], [m, m, n, n])
    bounds = [(0, largest)] * (2 * k) + [(None, None)] + [(0, None)] * m
    found = linprog(np.r_[np.full(2 * k, alpha), 0.0, price[sided]], np.block(A), b, bounds=bounds)
    return found.fun if found.status == 0 else np.inf


@looped("seed", range(60))
def test_planes_cost_what_the_program_says(seed):
    X, sides, price, limits = task(seed)
    epsilon, least, alpha, largest = limits
    cost, normal, offset, _ = solved(X, sides, price, limits)
    best = reference(X, sides, price, limits)
    assert np.isfinite(cost) == np.isfinite(best)
    if not np.isfinite(cost):
        return
    assert cost == pytest.approx(best, rel=2 * PERTURBED, abs=1e-6)
    value = offset - X @ normal
    away = (sides * value)[sides != 0]
    assert np.abs(value).max() <= 1 + 1e-8 and away.min(initial=1.0) >= least - 1e-8
    assert np.abs(normal).max() <= largest + 1e-9
    short = price[sides != 0] @ np.maximum(0.0, epsilon - away)
    assert cost == pytest.approx(alpha * np.abs(normal).sum() + short)


@looped("seed", range(1, 40, 2))
def test_points_without_a_dual_may_lose_their_side_for_nothing(seed):
    X, sides, price, limits = task(seed)
    cost, _, _, dual = solved(X, sides, price, limits)
    if not np.isfinite(cost):
        return
    for i in np.flatnonzero(sides)[:12]:
        without = sides.copy()
        without[i] = 0
        gain = cost - reference(X, without, price, limits)
        assert -1e-6 <= gain <= (1.0 + limits[0]) * max(0.0, sides[i] * dual[i]) + 1e-5 * max(1.0, cost)


@looped("seed", range(40))
def test_points_that_begin_in_the_program_change_nothing(seed):
    X, sides, price, limits = task(seed)
    rng = np.random.default_rng(1000 + seed)
    cost, _, _, dual = solved(X, sides, price, limits)
    changed = sides.copy()
    changed[rng.integers(len(X))] *= -1
    best = reference(X, changed, price, limits)
    for hint in (dual, np.ones(len(X)), rng.integers(-1, 2, len(X))):
        again, normal, offset, _ = solved(X, changed, price, limits, hint=hint)
        assert again == (pytest.approx(best, rel=2 * PERTURBED, abs=1e-6) if np.isfinite(best) else np.inf)
        if np.isfinite(best):
            assert np.abs(offset - X @ normal).max() <= 1 + 1e-8


def test_a_plane_that_costs_too_much_leaves_the_hint_alone():
    X, sides, price, limits = task(1)
    cost, *_, dual = solved(X, sides, price, limits)
    assert np.array_equal(solved(X, sides, price, limits, 0.5 * cost, hint=dual)[3], dual)


def test_limits_end_the_work():
    X, sides, price, limits = task(1)
    cost, normal, *_ = solved(X, sides, price, limits)
    assert np.isfinite(cost) and cost > 0
    again, same, *_ = solved(X, sides, price, limits, 1.001 * cost)
    assert again == cost and np.array_equal(normal, same)
    assert solved(X, sides, price, limits, 0.99 * cost)[0] == np.inf


def test_no_sides_need_no_plane():
    X = np.random.default_rng(0).random((5, 2))
    cost, normal, offset, dual = solved(X, np.zeros(5, dtype=int), np.ones(5), (0.1, 0.01, 1.0, 5.0))
    assert cost == 0 and not normal.any() and abs(offset) <= 1 and not dual.any()
