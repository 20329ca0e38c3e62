"""Rows divided among classes within totals: against brute force, a linear program and duality."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from treewright.totals.transport import divide, divide_groups


def tight(n, low, high):
    """The same interval ends, moved to where they can be reached."""
    return np.maximum(low, n - (high.sum() - high)), np.minimum(high, n - (low.sum() - low))


def instance(seed, n, k, kind, widest):
    """Scores with few or many ties, and totals around counts that exist."""
    rng = np.random.default_rng(seed)
    scores = {
        "distinct": lambda: rng.normal(size=(n, k)) * 3,
        "tied": lambda: rng.integers(0, 3, (n, k)).astype(float),
        "constant": lambda: np.full((n, k), 0.25),
        "forest": lambda: np.log(np.maximum(rng.multinomial(20, np.ones(k) / k, size=n) / 20, 0.01)),
        "far": lambda: rng.normal(size=(n, k)) * 1e6,
    }[kind]()
    count = rng.multinomial(n, rng.dirichlet(np.ones(k)))
    low = np.maximum(count - rng.integers(0, widest + 1, k), 0)
    high = np.minimum(count + rng.integers(0, widest + 1, k), n)
    return scores, rng.permutation(n), *tight(n, low, high)


kinds = st.sampled_from(["distinct", "tied", "constant", "forest", "far"])


def check_within(labels, low, high):
    count = np.bincount(labels, minlength=len(low))
    assert np.all(low <= count) and np.all(count <= high)
    return count


def check_prices(scores, labels, prices, count, low, high):
    """Complementary slackness, which proves that the labels are the best: a closed form, no solver."""
    close = 1e-9 * max(1.0, np.abs(scores).max())
    priced = scores + prices
    assert np.all(priced[np.arange(len(scores)), labels] >= priced.max(axis=1) - close)
    if not np.array_equal(low, high):
        assert np.all(count[prices > close] == low[prices > close])
        assert np.all(count[prices < -close] == high[prices < -close])
    assert np.array_equal(prices == -np.inf, high == 0)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(2, 4), kinds, st.integers(0, 3))
def test_best_of_all_labels(seed, n, k, kind, widest):
    scores, rank, low, high = instance(seed, n, k, kind, widest)
    labels, prices = divide(scores, rank, low, high)
    count = check_within(labels, low, high)
    sums = []
    for choice in product(range(k), repeat=n):
        c = np.bincount(choice, minlength=k)
        if np.all(low <= c) and np.all(c <= high):
            sums.append(scores[np.arange(n), list(choice)].sum())
    assert scores[np.arange(n), labels].sum() == pytest.approx(max(sums), rel=1e-9, abs=1e-9)
    check_prices(scores, labels, prices, count, low, high)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(7, 120), st.integers(2, 7), kinds, st.integers(0, 20))
def test_as_good_as_the_linear_program(seed, n, k, kind, widest):
    scores, rank, low, high = instance(seed, n, k, kind, widest)
    labels, prices = divide(scores, rank, low, high)
    count = check_within(labels, low, high)
    scale = np.abs(scores).max()
    total = np.tile(np.eye(k), n)
    solved = linprog(
        -scores.ravel() / scale,
        A_ub=np.vstack([total, -total]),
        b_ub=np.concatenate([high, -low]),
        A_eq=np.kron(np.eye(n), np.ones(k)),
        b_eq=np.ones(n),
    )
    assert scores[np.arange(n), labels].sum() / scale == pytest.approx(-solved.fun, rel=1e-7, abs=1e-7)
    check_prices(scores, labels, prices, count, low, high)


@pytest.mark.parametrize("kind", ["distinct", "forest", "tied", "constant"])
@pytest.mark.parametrize("widest", [0, 3000])
def test_many_rows_are_divided_best(kind, widest):
    """Beyond 20 000 rows prices start from a part of the rows; slackness proves the end as before."""
    scores, rank, low, high = instance(3, 25_000, 5, kind, widest)
    labels, prices = divide(scores, rank, low, high)
    check_prices(scores, labels, prices, check_within(labels, low, high), low, high)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 40), st.integers(2, 5), st.integers(0, 4))
def test_prices_part_rows_that_differ(seed, n, k, widest):
    scores, rank, low, high = instance(seed, n, k, "distinct", widest)
    labels, prices = divide(scores, rank, low, high)
    assert np.array_equal((scores + prices).argmax(axis=1), labels)


def test_two_classes_are_a_cut_halfway():
    """A total of 4 is met by the signs alone, so nothing is shifted."""
    margin = np.array([3.0, -1.0, 0.5, 7.0, 2.0])
    scores = np.column_stack([-margin / 2, margin / 2])
    for count, threshold in ((1, 5.0), (2, 2.5), (3, 1.25), (4, 0.0)):
        exact = np.array([5 - count, count])
        labels, prices = divide(scores, np.arange(5), exact, exact)
        assert np.array_equal(labels, (margin > threshold).astype(int))
        assert prices[0] - prices[1] == pytest.approx(threshold)
        assert prices.sum() == pytest.approx(0.0)


def test_intervals_that_do_not_bind_cost_nothing():
    scores = np.random.default_rng(0).normal(size=(50, 3))
    free = scores.argmax(axis=1)
    count = np.bincount(free, minlength=3)
    labels, prices = divide(scores, np.arange(50), count - 2, count + 2)
    assert np.array_equal(labels, free) and prices.tolist() == [0.0, 0.0, 0.0]
    low, high = np.array([count[0] + 4, 0, 0]), np.array([50, 50, 50])
    labels, prices = divide(scores, np.arange(50), *tight(50, low, high))
    assert np.bincount(labels)[0] == count[0] + 4
    assert prices[0] > 0 and prices[1:].tolist() == [0.0, 0.0]


def test_of_tied_rows_those_of_lowest_rank_move_first():
    rank = np.random.default_rng(0).permutation(30)
    exact = np.array([18, 12])
    labels, _ = divide(np.full((30, 2), -0.7), rank, exact, exact)
    assert np.array_equal(labels == 1, rank < 12)  # all start in class 0


def test_groups_are_divided_each_for_itself():
    rng = np.random.default_rng(1)
    scores, rank, group = rng.normal(size=(60, 3)), rng.permutation(60), rng.integers(0, 4, 60)
    exact = np.array([rng.multinomial(np.sum(group == g), [0.2, 0.3, 0.5]) for g in range(4)])
    labels, prices = divide_groups(scores, rank, group, exact, exact)
    for g in range(4):
        alone = divide(scores[group == g], rank[group == g], exact[g], exact[g])
        assert np.array_equal(labels[group == g], alone[0]) and np.array_equal(prices[g], alone[1])


def test_no_rows_and_impossible_totals():
    labels, prices = divide(np.zeros((0, 2)), np.zeros(0, dtype=int), np.zeros(2, dtype=int), np.zeros(2, dtype=int))
    assert labels.shape == (0,) and prices.tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="3 rows cannot be divided: 4 are needed, 4 are allowed"):
        divide(np.zeros((3, 2)), np.arange(3), np.array([2, 2]), np.array([2, 2]))
