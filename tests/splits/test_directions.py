"""Directions against independent linear programs."""

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression
from tests.contracts.brute_force import widest_gap as widest_gap_by_lp
from tests.examples import looped

from treewright.core.budget import Budget
from treewright.splits.directions import hinge_directions, logistic_direction, widest_gap
from treewright.splits.gap_splits import candidate_directions
from treewright.splits.thresholds import best_threshold


@looped("seed", range(10))
def test_widest_gap_agrees_with_another_program(seed):
    rng = np.random.default_rng(seed)
    X = rng.random((12, 3))
    left = X @ rng.normal(size=3) <= 0.2
    if left.all() or not left.any():
        left[0] = not left[0]
    best = widest_gap_by_lp(X, list(np.flatnonzero(left)), list(np.flatnonzero(~left)))
    normal = widest_gap(X, left)
    if normal is None:
        assert best <= 1e-8
        return
    assert np.abs(normal).sum() == pytest.approx(1.0)
    level = X @ normal
    assert level[~left].min() - level[left].max() == pytest.approx(best, abs=1e-7)


def test_directions_part_what_can_be_parted():
    rng = np.random.default_rng(1)
    X = rng.random((80, 4))
    normal = np.array([0.4, -0.3, 0.2, 0.1])
    level = X @ normal
    X = X[np.abs(level - np.median(level)) > 0.02]
    left = X @ normal <= np.median(level)
    weight = np.ones(len(X))
    hinge = hinge_directions(X, left, weight, gap=0.01)
    assert min(best_threshold(X @ a, ~left * 1.0, left * 1.0, gap=0.01)[1] for a in hinge) == 0.0
    logistic = logistic_direction(X, left, weight, strength=1e-4)
    assert best_threshold(X @ logistic, ~left * 1.0, left * 1.0)[1] <= 1.0


def test_l1_directions_are_sparse():
    rng = np.random.default_rng(2)
    X = rng.random((200, 10))
    left = X[:, 3] <= 0.5
    direction = logistic_direction(X, left, np.ones(200), "l1", strength=5.0)
    assert np.flatnonzero(direction).tolist() == [3]


@pytest.mark.parametrize("strength", [1e-2, 1.0])
def test_more_features_than_points_are_looked_at_in_the_span_of_the_points(strength):
    rng = np.random.default_rng(4)
    X, weight = rng.normal(size=(20, 90)), rng.uniform(0.5, 2, 20)
    left = X[:, 0] + 0.5 * rng.normal(size=20) <= 0
    found = logistic_direction(X, left, weight, "l2", strength)
    # liblinear penalizes the intercept, too: a column of ones does that in any other solver.
    wide = np.column_stack([X, np.ones(20)])
    other = LogisticRegression(C=1 / strength, fit_intercept=False, tol=1e-8, max_iter=10_000)
    wanted = other.fit(wide, ~left, sample_weight=weight / weight.mean()).coef_[0, :-1]
    assert found @ wanted / np.linalg.norm(found) / np.linalg.norm(wanted) > 0.9999
    assert np.linalg.norm(found) == pytest.approx(np.linalg.norm(wanted), rel=0.02)


def test_directions_end_with_the_budget():
    rng = np.random.default_rng(3)
    X = rng.random((400, 5))
    left = rng.random(400) < 0.5
    assert hinge_directions(X, left, np.ones(400), gap=0.01, budget=Budget(0.0)) == []
    assert len(candidate_directions(X, left, np.ones(400), 0.01, sparse=True, budget=Budget(0.0))) == 1
    assert len(candidate_directions(X, left, np.ones(400), 0.01, sparse=True, budget=Budget(60.0))) > 5


def test_a_gap_needs_two_sides():
    X = np.random.default_rng(0).random((6, 2))
    assert widest_gap(X, np.ones(6, dtype=bool)) is None
    assert widest_gap(X, np.zeros(6, dtype=bool)) is None


def test_a_gap_that_is_not_known_in_time_is_none():
    rng = np.random.default_rng(0)
    X = rng.random((50, 3))
    assert widest_gap(X, X[:, 0] <= 0.5, Budget(0.0)) is None


@looped("seed", range(6))
def test_the_first_hinge_direction_has_the_least_violations_of_all(seed):
    """Against the same program in scipy, with free weights and a bound of the 1-norm by extra columns."""
    rng = np.random.default_rng(seed)
    n, p, gap = 25, 3, 0.1
    X, weight = rng.normal(size=(n, p)), rng.uniform(0.5, 2, n)
    score = X @ rng.normal(size=p) + 0.3 * rng.normal(size=n)
    left = score <= np.median(score)
    sign = np.where(left, -1.0, 1.0)
    # Columns: a (p), |a| (p), o, xi (n).
    one = np.eye(p)
    rows = np.vstack(
        [
            np.hstack([-sign[:, None] * X, np.zeros((n, p)), sign[:, None], -np.eye(n)]),
            np.hstack([one, -one, np.zeros((p, 1 + n))]),
            np.hstack([-one, -one, np.zeros((p, 1 + n))]),
            np.concatenate([np.zeros(p), np.ones(p), np.zeros(1 + n)])[None],
        ]
    )
    least = linprog(
        np.concatenate([np.zeros(2 * p + 1), weight]),
        A_ub=rows,
        b_ub=np.concatenate([np.full(n, -gap / 2), np.zeros(2 * p), [1.0]]),
        bounds=[(None, None)] * p + [(0, None)] * p + [(None, None)] + [(0, None)] * n,
    ).fun
    level = X @ hinge_directions(X, left, weight, gap, rounds=1)[0]
    # Along the direction only its length, at most 1, and the threshold are left to choose.
    along = linprog(
        np.concatenate([[0.0, 0.0], weight]),
        A_ub=np.column_stack([-sign * level, sign, -np.eye(n)]),
        b_ub=np.full(n, -gap / 2),
        bounds=[(0, 1), (None, None)] + [(0, None)] * n,
    ).fun
    assert along == pytest.approx(least, abs=1e-9)
