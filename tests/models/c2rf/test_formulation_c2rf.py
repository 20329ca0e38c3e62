"""C2RF against enumeration of all weightings, on every solver and with every part switched."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import looped

from treewright.data import PointTotals
from treewright.models.c2rf.objective import C2RF, merged_votes, vote_order
from treewright.optimize.formulation import Formulation
from treewright.solvers import get_solver
from treewright.solvers.program_check import check


def all_signs(votes):
    """Signs of the patterns under every weighting of few members: whole numbers to 9 give every one of them."""
    grid = np.array(list(product(range(1, 10), repeat=votes.shape[1])), float)
    value = votes @ grid.T
    kept = (value != 0).all(axis=0)
    return np.unique(value[:, kept] > 0, axis=1).T


def least_deviation(model):
    """The optimum by enumeration; shares nothing with the model but its data."""
    best, size = np.inf, model.totals.size.toarray()
    low, high = model.totals.low[:, 1], model.totals.high[:, 1]
    for signs in all_signs(model.votes):
        count = size[signs].sum(axis=0)
        best = min(best, np.maximum(np.maximum(low - count, count - high), 0).sum())
    return best


def positive_totals(size, low, high):
    """Totals that say how many rows are positive; the others are negative."""
    size, low, high = np.asarray(size), np.asarray(low), np.asarray(high)
    rows = size.sum(axis=0)
    return PointTotals(size, np.column_stack([rows - high, low]), np.column_stack([rows - low, high]))


def random_model(seed, n=12, t=4, n_groups=1, **parts):
    rng = np.random.default_rng(seed)
    votes = rng.choice([-1, 1], (n, t), p=[0.35, 0.65])
    size = np.zeros((n, n_groups))
    size[np.arange(n), rng.integers(0, n_groups, n)] = rng.integers(1, 9, n)
    low = rng.integers(0, 1 + size.sum(axis=0).astype(int))
    high = low + rng.integers(0, 3, n_groups)
    votes, totals, _ = merged_votes(votes, positive_totals(size, low, high))
    return C2RF(votes, totals, **parts)


def test_it_is_a_formulation():
    assert isinstance(random_model(0), Formulation)


@pytest.mark.parametrize("parts", list(product([False, True], repeat=4)))
def test_every_part_leaves_the_optimum_as_it_is(parts):
    switches = dict(zip(("preprocess", "branching", "order_cuts", "tight"), parts, strict=True))
    for seed in (1, 2):
        model = random_model(seed, **switches)
        result = get_solver("highs").solve(model.build(), time_limit=60)
        assert result.objective == pytest.approx(least_deviation(model), abs=1e-6)


def test_rows_that_are_not_merged_have_the_same_optimum():
    rng = np.random.default_rng(3)
    votes = rng.choice([-1, 1], (25, 3))
    total = np.array([17])
    totals = positive_totals(np.ones((25, 1)), total, total)
    rows = C2RF(votes, totals, preprocess=False, tight=False, order_cuts=False)
    patterns, totals, _ = merged_votes(votes, totals)
    merged = C2RF(patterns, totals)
    results = [get_solver("highs").solve(model.build(), time_limit=60).objective for model in (rows, merged)]
    assert results == pytest.approx([least_deviation(merged)] * 2, abs=1e-6)


@pytest.mark.parametrize("side", ["fewer", "more"])
@looped("seed", range(5))
def test_one_side_asks_for_the_extreme_count(side, seed):
    model = random_model(seed, side=side)
    counts = [model.totals.rows[signs].sum() for signs in all_signs(model.votes)]
    extreme = min(counts) if side == "fewer" else model.totals.rows.sum() - max(counts)
    result = get_solver("highs").solve(model.build(), time_limit=60)
    assert result.objective == pytest.approx(extreme, abs=1e-6)
    for kept in (1, 3, 6):
        part = get_solver("highs").solve(model.restricted(kept).build(), time_limit=60)
        assert part.objective <= extreme + 1e-6


@pytest.mark.parametrize("side", ["fewer", "more"])
@looped("seed", range(5))
def test_one_side_without_members_that_decide_alone(side, seed):
    model = random_model(seed, side=side, no_dictator=True)
    grid = np.array(list(product(range(1, 10), repeat=4)), float)
    shared = grid[2 * grid.max(axis=1) < grid.sum(axis=1)]
    value = model.votes @ shared.T
    counts = (model.totals.rows @ (value > 0))[(value != 0).all(axis=0)]
    extreme = counts.min() if side == "fewer" else model.totals.rows.sum() - counts.max()
    program = model.build()
    result = get_solver("highs").solve(program, time_limit=60)
    assert result.objective == pytest.approx(extreme, abs=1e-6)
    assert model.dictator(model.decode(result.x)) is None
    assert check(program, model.encode(np.array([9.0, 1.0, 1.0, 1.0]))).feasible(1e-6)


@looped("seed", range(8))
def test_the_relaxation_says_no_more_than_is_true(seed):
    model = random_model(seed)
    equal = model.whole(np.ones(4))
    for weights in (equal, model.repair(np.array([100.0, 1.0, 1.0, 1.0]))):
        relaxed, as_bound = model.one_sided(weights, 500)
        result = get_solver("highs").solve(relaxed.build(), time_limit=60)
        assert as_bound(result.objective) <= least_deviation(model)


def test_class_numbers_are_merged_like_signs():
    rng = np.random.default_rng(0)
    for n_classes in (2, 3):
        votes = rng.integers(0, n_classes, (60, 3)).astype(np.uint8)
        free = PointTotals(np.ones((60, 1)), np.zeros((1, n_classes)), np.full((1, n_classes), 60))
        patterns, totals, number = merged_votes(votes, free)
        assert np.array_equal(patterns[number], votes)
        assert len(patterns) == len(np.unique(votes, axis=0)) and totals.rows.sum() == 60


def test_a_member_that_outweighs_the_others_decides_alone():
    model = random_model(0)
    weights = np.array([1.0, 9.0, 3.0, 4.0])
    assert model.dictator(weights) == 1
    assert np.array_equal(model.votes @ weights > 0, model.votes[:, 1] > 0)
    assert model.dictator(np.array([1.0, 8.0, 3.0, 4.0])) is None


@looped("side", ["both", "fewer", "more"])
@looped("tight", [True, False])
def test_any_weights_can_be_repaired_and_written_as_a_feasible_point(side, tight):
    rng = np.random.default_rng(0)
    for seed in range(10):
        model = random_model(seed, t=5, side=side, tight=tight)
        weights = model.repair(np.exp(rng.normal(0, 3, 5)))
        assert np.abs(model.votes @ weights).min() >= 1
        assert weights.min() >= model.least and weights.max() <= model.most
        report = check(model.build(), model.encode(weights))
        assert report.feasible(1e-6), report
        if side == "both":
            assert report.objective == pytest.approx(model.objective(weights))
            again = model.decode(model.encode(weights))
            assert np.array_equal(model.votes @ again > 0, model.votes @ weights > 0)


def test_ties_are_broken_by_whole_numbers_of_odd_sum():
    model = C2RF(np.array([[1, -1], [-1, 1]]), positive_totals(np.ones((2, 1)), [1], [1]))
    weights = model.repair(np.array([7.0, 7.0]))
    assert np.abs(model.votes @ weights).min() >= 1 and model.objective(weights) == 0


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0.01, 1000), min_size=1, max_size=9), st.integers(1, 4), st.integers(1, 90))
def test_whole_weights_have_an_odd_sum_within_the_bounds(weights, least, more):
    t = len(weights)
    model = C2RF(np.ones((1, t), int), positive_totals([[1]], [1], [1]), float(least), float(least + more))
    whole = model.whole(np.array(weights))
    assert whole.sum() % 2 == 1 and np.array_equal(whole, np.round(whole))
    assert whole.min() >= least and whole.max() <= least + more


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 12))
def test_pairs_are_true_and_imply_all_others(seed, t, n):
    rng = np.random.default_rng(seed)
    votes = np.unique(rng.choice([-1, 1], (n, t)), axis=0)
    order = vote_order(votes)
    n = len(votes)
    implies = np.zeros((n, n), dtype=bool)
    implies[order.implies] = True
    for _ in range(n):
        implies |= (implies.astype(int) @ implies) > 0
    above = (votes[:, None, :] <= votes[None, :, :]).all(axis=2) & ~np.eye(n, dtype=bool)
    assert np.array_equal(implies, above)
    reach = implies | np.eye(n, dtype=bool)
    for pairs, wanted in (
        (order.one_positive, (votes[:, None, :] + votes[None, :, :] >= 0).all(axis=2)),
        (order.one_negative, (votes[:, None, :] + votes[None, :, :] <= 0).all(axis=2)),
    ):
        direct = np.zeros((n, n), dtype=bool)
        direct[pairs] = True
        direct |= direct.T
        up = reach if pairs is order.one_positive else reach.T
        # A pair that holds for k and l holds for everything beyond them.
        follows = (up.T.astype(int) @ direct @ up) > 0
        assert np.array_equal(follows, wanted)


def test_signs_that_no_weighting_changes_are_constants():
    votes = np.array([[1, 1, 1], [-1, -1, -1], [1, 1, -1]])
    model = C2RF(votes, positive_totals(np.ones((3, 1)), [1], [1]), most=1.5)
    assert model.fixed.tolist() == [1, -1, 0]
    assert replace(model, preprocess=False).fixed.tolist() == [0, 0, 0]
    # Weights within [1, 1.5]: two may outvote the third by only 1 + 1 - 1.5. If all are 1, they always do by 1.
    assert C2RF(votes, positive_totals(np.ones((3, 1)), [1], [1]), most=1.0).fixed.tolist() == [1, -1, 1]


def test_members_of_equal_votes_share_a_column():
    votes = np.array([[1, 1, -1, -1], [-1, -1, 1, -1]])
    model = C2RF(votes, positive_totals(np.ones((2, 1)), [1], [1]))
    assert model.build().variables["alpha"].size == 3
    assert replace(model, preprocess=False).build().variables["alpha"].size == 4
