"""What no training point decides goes to the side of more training weight."""

from dataclasses import replace

import numpy as np
import pytest
from tests.examples import looped

from treewright.tree import Tree, export_text, route, settled, side


def random_tree(rng: np.random.Generator, n_levels: int) -> Tree:
    """A complete tree of depth 3 on one category and two numbers."""
    n, inner = 15, 7
    left = np.full(n, -1)
    right = left.copy()
    left[:inner], right[:inner] = 2 * np.arange(inner) + 1, 2 * np.arange(inner) + 2
    category = np.where(rng.random(n) < 0.5, 0, -1)
    category[inner:] = -1
    weights = np.where(category[:, None] >= 0, 0.0, np.column_stack([np.zeros(n), rng.normal(size=(n, 2))]))
    listed = rng.random((n, n_levels)) < 0.5
    missing_left = rng.random(n) < 0.5
    return Tree(
        left, right, weights, rng.normal(size=n) * 0.3, rng.random((n, 1)), None, category, listed, missing_left
    )


@looped("seed", range(20))
def test_training_points_go_as_before_and_others_with_the_majority(seed):
    rng = np.random.default_rng(seed)
    n, n_levels = 40, 5
    tree = random_tree(rng, n_levels)
    X = np.column_stack([rng.integers(0, 4, n).astype(float), rng.normal(size=(n, 2))])
    X[rng.random(X.shape) < (0.1 if seed % 2 else 0.0)] = np.nan
    weight = rng.integers(1, 4, n).astype(float)
    found = settled(tree, X, weight)
    assert np.array_equal(route(found, X), route(tree, X))  # children keep their numbers when they change places
    at = {0: np.arange(n)}
    for node in found.branches.tolist():
        rows = at[node]
        goes_left = side(found, X[rows], node)
        at[int(found.left[node])], at[int(found.right[node])] = rows[goes_left], rows[~goes_left]
        heavier = weight[rows[goes_left]].sum() > weight[rows[~goes_left]].sum()
        feature = int(found.category[node])
        used = [feature] if feature >= 0 else np.flatnonzero(found.weights[node])
        if not np.isnan(X[np.ix_(rows, used)]).any():
            assert found.missing_left[node] == heavier
        if feature >= 0:
            assert not heavier
            absent = np.setdiff1d(np.arange(float(n_levels + 3)), X[rows, 0])
            strangers = np.column_stack([absent, np.zeros((len(absent), 2))])
            assert not side(found, strangers, node).any()


def test_a_tree_of_numbers_keeps_its_splits():
    tree = Tree.stump([1.0], 0.5, [[2.0, 0.0], [0.0, 1.0]])
    found = settled(tree, np.array([[0.0], [0.2], [1.0]]), np.array([1.0, 1.0, 1.5]))
    assert found.missing_left.tolist() == [True, False, False]
    assert np.array_equal(found.weights, tree.weights) and np.array_equal(found.left, tree.left)
    assert not settled(tree, np.array([[0.0], [1.0]]), np.ones(2)).missing_left.any()  # a tie: right


@pytest.mark.parametrize("weight", [2.0, -0.5])
@pytest.mark.parametrize("missing_left", [True, False])
def test_a_split_that_parts_gaps_alone_parts_them_from_any_value(weight, missing_left):
    X = np.array([[3.0], [np.nan], [5.0], [4.0]])
    lowest = min(weight * 3.0, weight * 5.0)
    threshold = lowest - 1.0 if missing_left else lowest + 10.0
    tree = Tree.stump([weight], threshold, [[1.0], [2.0]])
    tree = replace(tree, missing_left=np.array([missing_left, False, False]))
    found = settled(tree, X, np.ones(4))
    assert np.array_equal(route(found, X), route(tree, X))
    strange = route(found, np.array([[-1e9], [1e9], [3.5]]))
    assert np.all(strange == route(tree, X)[0])
    assert ("x0 is missing:" if missing_left else "x0 is known:") in export_text(found, show_missing=True)
    both = settled(tree, np.array([[3.0], [5.0]]), np.ones(2))  # without gaps at the node there is nothing to part
    assert np.array_equal(both.threshold, tree.threshold)


def test_a_split_that_parts_values_keeps_its_threshold():
    X = np.array([[3.0], [np.nan], [5.0]])
    tree = replace(Tree.stump([1.0], 4.0, [[1.0], [2.0]]), missing_left=np.array([True, False, False]))
    assert settled(tree, X, np.ones(3)).threshold[0] == 4.0
    assert "x0 <= 4 or missing:" in export_text(tree, show_missing=True)
