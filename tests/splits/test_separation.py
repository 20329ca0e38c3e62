"""Hyperplanes by kept programs, against scipy's linprog in the units of the points."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from treewright.splits.directions import Separation, separating_plane


def test_separation_keeps_hard_points_and_the_bound():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4)) * 20
    side = np.where(X @ [1.0, -2.0, 0.5, 0.1] > 3, 1.0, -1.0)
    omega, gamma = separating_plane(X, side, X[:0], side[:0], side[:0], bound=10.0)
    assert np.all(side * (X @ omega - gamma) >= 1.0)
    assert np.abs(omega).max() <= 10.0 + 1e-9
    assert separating_plane(X[:2] * 0, np.array([1.0, -1.0]), X[:0], side[:0], side[:0], bound=10.0) is None
    assert separating_plane(X * 1e-4, side, X[:0], side[:0], side[:0], bound=0.1) is None


def test_soft_points_are_met_where_they_can_be():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    side = np.array([-1.0, -1.0, 1.0, 1.0])
    omega, gamma = separating_plane(X[:0], side[:0], X, side, np.ones(4), bound=5.0)
    assert np.all(side * (X @ omega - gamma) >= 1.0 - 1e-6)


def test_the_unit_of_the_weights_does_not_matter():
    rng = np.random.default_rng(1)
    X, side, weight = rng.normal(size=(30, 2)), rng.choice([-1.0, 1.0], 30), rng.uniform(0.5, 2, 30)
    first = separating_plane(X[:0], side[:0], X, side, weight, bound=5.0)
    small = separating_plane(X[:0], side[:0], X, side, 1e-12 * weight, bound=5.0)
    assert np.allclose(first[0], small[0]) and first[1] == pytest.approx(small[1])


def test_without_time_there_is_no_hyperplane():
    side = np.array([-1.0, 1.0])
    assert Separation(np.array([[0.0], [1.0]]), side, 10.0, 1.0).solve(0.0) is None


def least(hard, hard_side, soft, side, weight, bound, reach, margin, aim):
    """Least cost by another program: columns omega, gamma, xi, in the units of the points."""
    p, n = hard.shape[1], len(soft)
    wide = 1 + 1e-5
    rows = np.vstack(
        [
            np.hstack([-hard_side[:, None] * hard, hard_side[:, None], np.zeros((len(hard), n))]),
            np.hstack([-side[:, None] * soft, side[:, None], -np.eye(n)]),
        ]
    )
    most = (p + 2 * wide / (bound * reach)) * bound * reach
    found = linprog(
        np.concatenate([aim[1] * aim[0], [-aim[1]], weight]),
        A_ub=rows,
        b_ub=np.concatenate([np.full(len(hard), -wide), np.full(n, -wide * margin)]),
        bounds=[(-bound, bound)] * p + [(-most, most)] + [(0, None)] * n,
    )
    return found.fun if found.status == 0 else None


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.001, 1.0]))
def test_a_kept_program_is_as_good_as_a_new_one(seed, margin):
    rng = np.random.default_rng(seed)
    p, scale, bound = int(rng.integers(1, 4)), float(rng.choice([1.0, 30.0])), 5.0
    hard = scale * rng.normal(size=(int(rng.integers(0, 5)), p))
    hard_side = rng.choice([-1.0, 1.0], len(hard))
    points = scale * rng.normal(size=(12, p))
    reach = max(np.abs(hard).max(initial=0.0), np.abs(points).max())
    program = Separation(hard, hard_side, bound, reach, margin)
    n, side, weight, aim = 0, np.zeros(0), np.zeros(0), (np.zeros(p), 0.0)
    for step in range(5):
        what = int(rng.integers(3)) if n else 0
        if what == 0 and n < 12:
            more = min(12 - n, int(rng.integers(1, 5)))
            new = rng.choice([-1.0, 1.0], more), rng.uniform(0.1, 3, more)
            program.join(points[n : n + more], *new)
            side, weight, n = np.append(side, new[0]), np.append(weight, new[1]), n + more
        elif what == 1:
            which = rng.permutation(n)[: int(rng.integers(1, n + 1))]
            side[which], weight[which] = rng.choice([-1.0, 1.0], len(which)), rng.uniform(0.1, 3, len(which))
            program.change(which, side[which], weight[which])
        else:
            aim = scale * rng.normal(size=p), float(rng.choice([-0.5, 0.5]))
            program.aim(*aim)
        wanted = least(hard, hard_side, points[:n], side, weight, bound, reach, margin, aim)
        found = program.solve()
        assert (found is None) == (wanted is None), step
        if found is not None:
            omega, gamma = found
            assert np.all(hard_side * (hard @ omega - gamma) >= 1.0)
            assert np.abs(omega).max() <= bound + 1e-8
            lacking = np.maximum(margin * (1 + 1e-5) - side * (points[:n] @ omega - gamma), 0.0)
            cost = weight @ lacking + aim[1] * (aim[0] @ omega - gamma)
            assert cost == pytest.approx(wanted, rel=1e-6, abs=1e-6 * bound * scale)
