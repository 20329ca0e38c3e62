"""Splitters against enumeration and against independent linear programs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.contracts.brute_force import widest_gap as widest_gap_by_lp

from treewright.budget import Budget
from treewright.search.grow.oblique import candidate_directions
from treewright.splits.thresholds import (
    best_labels_threshold,
    best_threshold,
    hinge_directions,
    logistic_direction,
    widest_gap,
)

points = st.integers(1, 9).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 5), min_size=n, max_size=n),
        st.lists(st.integers(0, 3), min_size=n, max_size=n),
        st.lists(st.integers(0, 3), min_size=n, max_size=n),
        st.sampled_from([0.0, 0.5, 1.0, 2.5]),
        st.integers(0, 3),
    )
)


def sides(level, gap, least, size):
    """Every allowed way to cut, as masks of the left side."""
    for cut in [-10.0, *(np.unique(level) + 1e-3)]:
        left = level <= cut
        low, high = level[left], level[~left]
        if min(size[left].sum(), size[~left].sum()) < least:
            continue
        if len(low) and len(high) and high.min() - low.max() < gap:
            continue
        yield left


@settings(max_examples=300, deadline=None)
@given(points, st.booleans())
def test_threshold_is_the_best_of_all(data, sized):
    level, left, right, gap, least = (np.array(v, dtype=float) for v in data)
    size = 1.0 + (np.arange(len(level)) % 3 if sized else np.zeros(len(level)))
    threshold, cost = best_threshold(level, left, right, float(gap), int(least), size if sized else None)
    best = min((left[s].sum() + right[~s].sum() for s in sides(level, gap, least, size)), default=np.inf)
    assert cost == best
    if np.isfinite(best):
        assert left[level <= threshold].sum() + right[level > threshold].sum() == best


@settings(max_examples=300, deadline=None)
@given(points, st.booleans())
def test_threshold_with_the_best_labels_is_the_best_of_all(data, sized):
    level, y, weight, gap, least = (np.array(v, dtype=float) for v in data)
    size = 1.0 + (np.arange(len(level)) % 3 if sized else np.zeros(len(level)))
    table = weight[:, None] * np.eye(4)[y.astype(int)]

    def error(left):
        return sum(table[s].sum() - table[s].sum(axis=0).max() for s in (left, ~left))

    threshold, cost = best_labels_threshold(level, table, float(gap), int(least), size if sized else None)
    best = min((error(s) for s in sides(level, gap, least, size)), default=np.inf)
    assert cost == best
    if np.isfinite(best):
        assert error(level <= threshold) == best


def test_of_equal_thresholds_the_widest_gap_wins():
    level = np.array([0.0, 1.0, 4.0, 5.0])
    threshold, _ = best_threshold(level, np.array([0.0, 0, 0, 1]), np.array([1.0, 0, 0, 0]))
    assert threshold == 2.5


@pytest.mark.parametrize("seed", range(10))
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


def test_directions_end_with_the_budget():
    rng = np.random.default_rng(3)
    X = rng.random((400, 5))
    left = rng.random(400) < 0.5
    assert hinge_directions(X, left, np.ones(400), gap=0.01, budget=Budget(0.0)) == []
    assert len(candidate_directions(X, left, np.ones(400), 0.01, sparse=True, budget=Budget(0.0))) == 1
    assert len(candidate_directions(X, left, np.ones(400), 0.01, sparse=True, budget=Budget(60.0))) > 5
