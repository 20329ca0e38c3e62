"""Terms that hardly move a row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treewright.budget import Budget
from treewright.tree import Tree, predict_labels
from treewright.tree.trimming import trimmed_tree

RNG = np.random.default_rng(0)
X = RNG.normal(size=(500, 4))


def errors(truth):
    return lambda tree: float(np.sum(predict_labels(tree, X) != truth))


def stump(weights, threshold=0.1, labels=(0, 1)):
    return Tree.stump(weights, threshold, np.eye(2)[list(labels)])


def test_terms_of_no_use_go_and_those_of_use_stay():
    noise = RNG.random(len(X)) < 0.1
    truth = (X[:, 0] - 2 * X[:, 2] > 0.1) ^ noise
    found = trimmed_tree(stump([1.0, 0.004, -2.0, -0.003]), X, errors(truth))
    assert found.weights[0].tolist() == [1.0, 0.0, -2.0, 0.0]
    # a term as small, in units in which it moves rows by much
    wide = X * [1.0, 1000.0, 1.0, 1.0]
    kept = stump([1.0, 0.004, -2.0, -0.003])
    cost = lambda tree: float(np.sum(predict_labels(tree, wide) != predict_labels(kept, wide)))  # noqa: E731
    assert trimmed_tree(kept, wide, cost).weights[0, 1] == 0.004


def test_what_is_dropped_leaves_its_mean():
    shifted = X + [0.0, 300.0, 0.0, 0.0]
    tree = stump([1.0, 0.01, 0.0, 0.0], 3.0)
    found = trimmed_tree(tree, shifted, lambda tree: 100.0)
    assert found.weights[0].tolist() == [1.0, 0.0, 0.0, 0.0]
    assert np.mean(predict_labels(found, shifted) != predict_labels(tree, shifted)) < 0.02


def test_a_tree_without_errors_keeps_every_term_it_needs():
    tree = stump([1.0, 0.02, -2.0, 0.0])
    truth = predict_labels(tree, X)
    assert errors(truth)(trimmed_tree(tree, X, errors(truth))) == 0


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_the_cost_rises_by_a_tenth_of_its_root_at_most_over_all_splits(seed):
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(7, 4)) * rng.choice([1.0, 0.01], (7, 4))
    weights[3:] = 0.0
    left, right, values = [1, 3, 5, -1, -1, -1, -1], [2, 4, 6, -1, -1, -1, -1], np.eye(2)[[0, 0, 0, 0, 1, 1, 0]]
    tree = Tree(left, right, weights, rng.normal(size=7) * 0.1, values, values.argmax(axis=1))
    truth = predict_labels(tree, X) ^ (rng.random(len(X)) < 0.3)
    found = trimmed_tree(tree, X, errors(truth))
    now = errors(truth)(tree)
    assert errors(truth)(found) <= now + max(0.002 * now, 0.1 * now**0.5)
    assert np.all((found.weights == 0) | (found.weights == tree.weights))
    assert np.count_nonzero(found.weights, axis=1)[:3].min() >= 1


def test_features_with_gaps_stay_and_categories_are_left_alone():
    holes = X.copy()
    holes[::7, 1] = np.nan
    tree = stump([1.0, 0.0001, 0.0, 0.0001])
    assert trimmed_tree(tree, holes, lambda tree: 1.0).weights[0].tolist() == [1.0, 0.0001, 0.0, 0.0]
    nothing = np.full_like(X, np.nan)
    assert trimmed_tree(tree, nothing, lambda tree: 1.0) == tree


def test_mending_and_time():
    tree = stump([1.0, 0.001, 0.0, 0.0])
    over = Budget(0.0)
    assert trimmed_tree(tree, X, lambda tree: 1.0, budget=over) == tree
    leaf = Tree.leaf([1.0, 0.0], 4)
    assert trimmed_tree(tree, X, lambda tree: 1.0, mended=lambda tree: leaf) == leaf
    with pytest.raises(ZeroDivisionError):
        trimmed_tree(tree, X, lambda tree: 1 / 0)


@pytest.mark.parametrize("beyond", [-50.0, 50.0])
def test_a_split_that_parts_gaps_from_the_rest_is_one_of_gaps(beyond):
    holes = X.copy()
    holes[::7, 1] = np.nan
    tree = replace(stump([1.0, 0.5, -0.2, 0.1], beyond), missing_left=np.array([beyond < 0, False, False]))
    found = trimmed_tree(tree, holes, lambda tree: 1.0)
    assert found.weights[0].tolist() == [0.0, 0.5, 0.0, 0.0]
    assert np.array_equal(predict_labels(found, holes), predict_labels(tree, holes))
    assert len(np.unique(predict_labels(found, holes))) == 2
