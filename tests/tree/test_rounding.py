"""Rounded splits: every row keeps its side, numbers are short, and who is asked is heeded."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tree_strategies import random_points, random_tree, slow_path

from treewright.core.budget import Budget
from treewright.tree import Tree, route
from treewright.tree.rounding import rounded_tree, shortest_between


def digits(number: float) -> int:
    """Significant digits of a number as Python prints it."""
    shown = Decimal(repr(number)).normalize().as_tuple().digits
    return len(shown) if any(shown) else 0


@given(seed=st.integers(0, 2**32 - 1), n_splits=st.integers(0, 6), gaps=st.sampled_from([0.0, 0.1]))
@settings(deadline=None, max_examples=40)
def test_every_row_keeps_its_way(seed, n_splits, gaps):
    """By a router that adds up in another order than matrix products do."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, n_splits)
    X = random_points(rng, 30, 3, gaps)
    found = rounded_tree(tree, X)
    for point in X.tolist():
        assert slow_path(found, point) == slow_path(tree, point)
    assert np.array_equal(found.left, tree.left) and np.array_equal(found.category, tree.category)
    assert np.all((tree.weights != 0) | (found.weights == 0))  # no feature is added


@given(seed=st.integers(0, 2**32 - 1), size=st.integers(-6, 6))
@settings(deadline=None, max_examples=30)
def test_every_row_keeps_its_way_whatever_the_units(seed, size):
    rng = np.random.default_rng(seed)
    factor = 10.0 ** rng.integers(-3, 4, 3)
    X = rng.normal(size=(40, 3)) * factor
    weights = rng.normal(size=3) / factor * 10.0**size
    tree = Tree.stump(weights, float(np.median(X @ weights)) + 1e-3 * 10.0**size, np.eye(2))
    found = rounded_tree(tree, X)
    assert np.array_equal(route(found, X), route(tree, X))
    largest = np.abs(weights).max()
    kept = found.weights[0] != 0
    shorter = [digits(round(w, 15)) for w in (found.weights[0] / largest)[kept].tolist()]
    assert max(shorter) <= 7


def test_numbers_are_as_short_as_rows_allow():
    # 0.5 and 1 with a threshold between 1 and 2: one digit is enough.
    tree = Tree.stump([0.4871, 1.0, 0.0], 1.4303, np.eye(2))
    found = rounded_tree(tree, np.array([[2.0, 0.0, 1.0], [0.0, 1.0, 2.0], [2.0, 1.0, 3.0], [0.0, 2.0, 4.0]]))
    assert found.weights[0].tolist() == [0.5, 1.0, 0.0]
    assert digits(float(found.threshold[0])) <= 2 and 1.0 < found.threshold[0] < 2.0


@pytest.mark.parametrize("weight", [0.29, 0.31])
def test_no_side_hangs_on_a_rounding_error(weight):
    """With a weight of 0.3 both rows are at 0.46, but for the last digit of the sums."""
    X = np.array([[1.7, -1.1, -1.3], [2.2, 1.2, -3.0]])
    tree = Tree.stump([1.0, weight, 0.7], 0.46, np.eye(2))
    found = rounded_tree(tree, X)
    assert np.array_equal(route(found, X), route(tree, X))
    assert np.abs(X @ found.weights[0] - found.threshold[0]).min() > 1e-3


def test_a_weight_that_moves_no_row_goes():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.r_[np.arange(5.0), 10 + np.arange(5.0)], rng.normal(size=10)])
    found = rounded_tree(Tree.stump([1.0, 0.01], 7.0, np.eye(2)), X)
    assert found.weights[0].tolist() == [1.0, 0.0]


def test_features_of_large_numbers_keep_their_small_weights():
    """A weight counts by what it moves: income in thousands beside a share."""
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.uniform(0, 1, 200), rng.uniform(0, 1e6, 200)])
    tree = Tree.stump([1.0, 1e-6], 1.0, np.eye(2))
    found = rounded_tree(tree, X)
    assert np.all(found.weights[0] != 0) and np.array_equal(route(found, X), route(tree, X))


def test_who_says_no_gets_more_digits_and_in_the_end_the_tree_itself():
    X = np.linspace(0, 1, 50)[:, None] * [1.0, 0.3]
    tree = Tree.stump([0.987654321, 0.123456789], 0.5, np.eye(2))
    asked = []
    assert rounded_tree(tree, X, lambda found: asked.append(found) or False) == tree
    assert 1 <= len(asked) <= 7
    exact = [float(np.abs(f.weights[0] - tree.weights[0]).max()) for f in asked]
    assert np.all(np.diff(exact) < 1e-15) and exact[-1] < 1e-6  # never less exact, but for the rounding of products


def test_splits_are_rounded_one_after_the_other_on_the_rows_that_get_there():
    weights, labels = np.array([[1.0, 0], [0, 1.0], [0, 1.0]]), np.arange(7) % 2
    tree = Tree.from_heap(np.ones(3), weights, np.array([0.513, 0.231, 0.777]), np.ones((7, 2)), labels)
    X = np.array([[0.0, 0.0], [0.0, 0.4], [1.0, 0.6], [1.0, 1.0], [0.0, 0.0]])
    found = rounded_tree(tree, X)
    assert np.array_equal(route(found, X), route(tree, X))
    assert found.threshold[found.branches].tolist() == [0.5, 0.2, 0.8]


def test_splits_stay_as_they_are_once_time_is_over():
    weights, labels = np.array([[1.0, 0], [0, 1.0], [0, 1.0]]), np.arange(7) % 2
    tree = Tree.from_heap(np.ones(3), weights, np.array([0.513, 0.231, 0.777]), np.ones((7, 2)), labels)
    X = np.array([[0.0, 0.0], [0.0, 0.4], [1.0, 0.6], [1.0, 1.0]])
    budget = Budget()
    found = rounded_tree(tree, X, lambda found: budget.stop() is None, budget)
    assert found.threshold[found.branches].tolist() == [0.5, 0.231, 0.777]
    assert rounded_tree(tree, X, budget=budget) == tree


@pytest.mark.parametrize("rows", [np.zeros((0, 2)), np.zeros((3, 2)), np.full((3, 2), np.nan)])
def test_a_split_without_rows_on_both_sides_stays(rows):
    tree = Tree.stump([0.123456789, 1.0], 0.987654321, np.eye(2))
    assert rounded_tree(tree, rows) == tree


# ---------------------------------------------------------------------- the shortest number between two


numbers = st.floats(-1e9, 1e9, allow_nan=False).filter(lambda x: x == 0 or abs(x) > 1e-9)


@given(numbers, numbers)
@settings(deadline=None, max_examples=60)
def test_the_shortest_number_is_well_between(low, high):
    low, high = min(low, high), max(low, high)
    assume(high - low > 1e-6 * max(abs(low), abs(high)))
    found, quarter = shortest_between(low, high), (high - low) / 4
    assert low + 0.999 * quarter <= found <= high - 0.999 * quarter
    # By hand: no number with fewer digits is as near to the middle.
    middle = (low + high) / 2
    for n_digits in range(1, digits(found)):
        shorter = float(f"{middle:.{n_digits - 1}e}")
        assert abs(shorter - middle) > 0.999 * quarter
    if low + quarter <= 0.0 <= high - quarter:
        assert found == 0.0


def test_the_shortest_number_by_hand():
    ends = ((1.0, 2.0), (0.9, 1.32), (123.4, 126.9), (-0.031, -0.029), (-1.0, 1.0), (-1.0, 10.0))
    assert [shortest_between(*pair) for pair in ends] == pytest.approx([1.5, 1.1, 125.0, -0.03, 0.0, 4.0])
    near = np.nextafter(1.0, 2.0)
    assert 1.0 <= shortest_between(1.0, float(near)) <= near
