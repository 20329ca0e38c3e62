from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from tree_strategies import random_points, random_tree, slow_path, slow_values, trees

from treewright.tree import (
    Tree,
    averaged,
    decision_path,
    leaf_counts,
    passing,
    predict_labels,
    predict_values,
    relabelled,
    route,
    routing,
    side,
)

seeds = st.integers(0, 2**32 - 1)


@given(trees(), seeds, st.sampled_from([0.0, 0.3]))
@settings(max_examples=40, deadline=None)
def test_route_agrees_with_a_router_in_plain_python(tree, seed, missing):
    X = random_points(np.random.default_rng(seed), 20, tree.n_features, missing)
    assert route(tree, X).tolist() == [slow_path(tree, x)[-1] for x in X.tolist()]


@given(trees(), seeds)
@settings(max_examples=30, deadline=None)
def test_decision_path_is_the_nodes_on_the_way(tree, seed):
    X = random_points(np.random.default_rng(seed), 12, tree.n_features)
    path = decision_path(tree, X)
    assert path.shape == (12, tree.n_nodes)
    expected = np.zeros(path.shape, dtype=int)
    for i, x in enumerate(X.tolist()):
        expected[i, slow_path(tree, x)] = 1
    assert np.array_equal(path.toarray(), expected)
    assert path.nnz == expected.sum()


@given(trees(), seeds)
@settings(max_examples=30, deadline=None)
def test_entering_at_a_node_and_passing_it(tree, seed):
    X = random_points(np.random.default_rng(seed), 12, tree.n_features)
    ways = [slow_path(tree, x) for x in X.tolist()]
    for node in range(tree.n_nodes):
        expected = [node in way for way in ways]
        assert passing(tree, X, node).tolist() == expected
        # Who passes a node anyway goes on from it to the same leaf.
        assert route(tree, X[expected], start=node).tolist() == [way[-1] for way in ways if node in way]


def test_entering_at_a_node_that_a_point_would_not_reach():
    tree = Tree.from_heap(np.ones(3), [[1.0], [1.0], [1.0]], [0.0, -1.0, 1.0], np.ones((7, 2)), np.zeros(7, dtype=int))
    left, right = tree.left[0], tree.right[0]
    assert route(tree, [[5.0]], start=left).tolist() == [tree.right[left]]
    assert route(tree, [[-5.0]], start=right).tolist() == [tree.left[right]]


def test_relabelling_counts_and_keeps_labels_of_empty_nodes():
    values = np.ones((3, 2))
    tree = Tree.from_heap([True], [[1.0]], [0.5], values, [0, 1, 1])
    X, y, weight = np.array([[0.0], [0.1], [0.2]]), np.array([0, 0, -1]), np.array([1.0, 2.0, 9.0])
    new = relabelled(tree, X, y, weight)
    assert new.values.tolist() == [[3.0, 0.0], [3.0, 0.0], [0.0, 0.0]]
    assert new.labels.tolist() == [0, 0, 1]
    assert relabelled(tree, X, np.zeros(3, dtype=int), weight, n_classes=1).labels.tolist() == [0, 0, 0]


def test_decision_path_of_no_points_and_of_a_large_tree():
    tree = random_tree(np.random.default_rng(0), 3)
    assert decision_path(tree, np.empty((0, 3))).shape == (0, 7)
    large = random_tree(np.random.default_rng(0), 4000)  # dense ancestors would be half a gigabyte
    X = random_points(np.random.default_rng(1), 50, 3)
    path = decision_path(large, X)
    assert path.sum(axis=1).tolist() == (large.level[route(large, X)] + 1).tolist()


@given(trees(exact=False), seeds)
@settings(max_examples=30, deadline=None)
def test_a_point_goes_the_same_way_in_every_batch(tree, seed):
    rng = np.random.default_rng(seed)
    X = random_points(rng, 15, tree.n_features) * rng.normal(size=(15, tree.n_features))
    leaf = route(tree, X)
    assert [route(tree, X[i : i + 1])[0] for i in range(len(X))] == leaf.tolist()
    order = rng.permutation(len(X))
    assert np.array_equal(route(tree, X[order]), leaf[order])


@pytest.mark.parametrize("n_features", [2, 3, 7, 30])
def test_the_layout_in_memory_does_not_matter(n_features):
    # Thresholds are the points' own products: the slightest difference in rounding shows.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, n_features))
    w = rng.normal(size=n_features)
    layouts = {
        "rows": X,
        "columns": np.asfortranarray(X),
        "strided": np.repeat(X, 2, axis=1)[:, ::2],
        "reversed": X[::-1].copy()[::-1],
        "foreign bytes": X.astype(">f8"),
        "missing elsewhere": np.vstack([X, np.full(n_features, np.nan)]),
    }
    for i in range(0, 300, 10):
        exact = np.einsum("ij,j->i", X[i : i + 1], w)[0]
        for threshold in (exact, np.nextafter(exact, -np.inf), np.nextafter(exact, np.inf)):
            tree = Tree.stump(w, threshold, [[1.0], [1.0]])
            alone = route(tree, X[i : i + 1])[0]
            assert {name: route(tree, Z)[i] for name, Z in layouts.items()} == dict.fromkeys(layouts, alone)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.int8, bool])
def test_other_dtypes_are_the_same_numbers(dtype):
    rng = np.random.default_rng(0)
    tree = random_tree(rng, 6, n_features=5, exact=False)
    X = rng.integers(0, 2, size=(50, 5)).astype(dtype)
    assert np.array_equal(route(tree, X), route(tree, X.astype(float)))


def test_more_rows_than_a_block():
    rng = np.random.default_rng(0)
    tree = random_tree(rng, 8)
    X = random_points(rng, 2 * 8192 + 5, 3)
    leaf = route(tree, X)
    for i in [0, 1, 8190, 8191, 8192, 8193, 16383, 16384, 16388]:
        assert leaf[i] == slow_path(tree, X[i].tolist())[-1]
    pieces = [route(tree, X[k : k + 1000]) for k in range(0, len(X), 1000)]
    assert np.array_equal(np.concatenate(pieces), leaf)


def test_equality_goes_left_and_side_looks_at_one_split():
    tree = Tree.stump([1.0, -1.0], 0.5, [[1.0], [1.0]])
    X = [[1.0, 0.5], [np.nextafter(0.5, 1), 0.0], [0.0, 0.0], [np.nan, 0.0]]
    assert route(tree, X).tolist() == [1, 2, 1, 2]
    assert side(tree, X, 0).tolist() == [True, False, True, False]


@given(trees(), seeds)
@settings(max_examples=40, deadline=None)
def test_side_agrees_with_the_path(tree, seed):
    X = random_points(np.random.default_rng(seed), 10, tree.n_features)
    for node in tree.branches:
        goes_left = side(tree, X, int(node))
        for i, x in enumerate(X.tolist()):
            path = slow_path(tree, x)
            if node in path:
                child = path[path.index(node) + 1]
                assert goes_left[i] == (child == tree.left[node])


def test_infinity_in_a_feature_that_is_not_used_does_not_matter():
    tree = Tree.stump([1.0, 0.0], 0.0, [[1.0], [1.0]])
    X = [[-1.0, np.inf], [-1.0, -np.inf], [1.0, np.inf], [-np.inf, 0.0], [np.inf, np.nan]]
    assert route(tree, X).tolist() == [1, 1, 2, 1, 2]


def test_categories_that_are_unknown_or_no_code_go_right():
    tree = Tree(
        left=[1, -1, -1],
        right=[2, -1, -1],
        weights=np.zeros((3, 1)),
        threshold=np.zeros(3),
        values=np.zeros((3, 1)),
        category=[0, -1, -1],
        left_categories=[[True, False, True], [False] * 3, [False] * 3],
        missing_left=[True, False, False],
    )
    X = [[0.0], [1.0], [2.0], [3.0], [-1.0], [0.5], [1e300], [np.inf], [-np.inf], [np.nan]]
    assert route(tree, X).tolist() == [1, 2, 1, 2, 2, 2, 2, 2, 2, 1]


def test_predictions_are_those_of_the_leaf():
    tree = Tree.stump([1.0], 0.0, [[3.0, 1.0], [0.0, 2.0]])
    assert predict_labels(tree, [[-1.0], [1.0]]).tolist() == [0, 1]
    assert predict_values(tree, [[-1.0], [1.0]]).tolist() == [[3.0, 1.0], [0.0, 2.0]]
    regression = Tree.leaf([2.5], n_features=1, classification=False)
    assert predict_values(regression, [[0.0]]).tolist() == [[2.5]]
    with pytest.raises(ValueError, match="regression tree has no labels"):
        predict_labels(regression, [[0.0]])


@given(trees(), seeds, st.sampled_from([0.0, 0.3]))
@settings(max_examples=30, deadline=None)
def test_values_agree_with_plain_python_dense_and_sparse(tree, seed, missing):
    X = random_points(np.random.default_rng(seed), 20, tree.n_features, missing)
    expected = np.array([slow_values(tree, x) for x in X.tolist()])
    # Numbers are quarters: no rounding. A missing value with a slope makes the output NaN.
    assert np.array_equal(predict_values(tree, X), expected, equal_nan=True)
    assert np.array_equal(predict_values(tree, sparse.csr_array(X)), expected, equal_nan=True)


def test_values_of_linear_leaves_are_the_same_in_every_batch_and_block():
    rng = np.random.default_rng(0)
    tree = random_tree(rng, 8, n_features=7, n_outputs=3, classification=False, linear=True, kinds=("oblique",))
    X = rng.standard_normal((2 * 8192 + 5, 7))
    values = predict_values(tree, X)
    for i in [0, 8191, 8192, 16384, 16388]:
        assert np.array_equal(predict_values(tree, X[i : i + 1])[0], values[i])
        assert values[i] == pytest.approx(slow_values(tree, X[i].tolist()))
    assert predict_values(tree, X[:0]).shape == (0, 3)


def test_what_a_linear_leaf_has_no_slope_for_does_not_count():
    tree = Tree.leaf([1.0], 2, classification=False).with_leaves([[1.0]], None, [[[2.0, 0.0]]])
    X = [[1.0, np.inf], [1.0, np.nan], [np.nan, 1.0], [np.inf, 1.0], [-np.inf, np.nan]]
    assert predict_values(tree, X)[:, 0] == pytest.approx([3.0, 3.0, np.nan, np.inf, -np.inf], nan_ok=True)


def test_no_points_and_no_splits():
    tree = Tree.leaf([1.0, 0.0], n_features=2)
    assert route(tree, np.empty((0, 2))).shape == (0,)
    assert route(tree, [[np.nan, np.inf]]).tolist() == [0]


@pytest.mark.parametrize("points", [[[1.0, 2.0, 3.0]], [1.0, 2.0], [[[1.0, 2.0]]], 1.0])
def test_points_of_a_wrong_shape(points):
    with pytest.raises(ValueError, match=r"points have shape .* the tree needs \(n, 2\)"):
        route(Tree.leaf([1.0], n_features=2), points)


@given(trees(), seeds)
@settings(max_examples=30, deadline=None)
def test_leaf_counts_are_sums_over_visitors(tree, seed):
    rng = np.random.default_rng(seed)
    X = random_points(rng, 15, tree.n_features)
    y = rng.integers(-1, 3, size=15)
    weight = rng.integers(0, 5, size=15) / 2
    expected = np.zeros((tree.n_nodes, 3))
    for x, label, w in zip(X.tolist(), y, weight, strict=True):
        if label >= 0:
            for node in slow_path(tree, x):
                expected[node, label] += w
    assert np.array_equal(leaf_counts(tree, X, y, weight, 3), expected)


def test_leaf_counts_refuse_a_class_too_many():
    tree = Tree.stump([1.0], 0.0, [[1.0, 0.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match="class number 2, there are 2 classes"):
        leaf_counts(tree, [[1.0]], np.array([2]), np.ones(1), 2)


@given(trees(), seeds)
@settings(max_examples=30, deadline=None)
def test_unscaled_routes_raw_points_as_the_tree_routes_scaled_ones(tree, seed):
    rng = np.random.default_rng(seed)
    # Powers of two and quarters: scaling has no rounding, so that equality is kept too.
    used = np.unique(tree.category[tree.category >= 0])
    scale = 2.0 ** rng.integers(-3, 4, size=tree.n_features)
    shift = rng.integers(-8, 9, size=tree.n_features) / 4
    scale[used], shift[used] = 1.0, 0.0  # codes are not scaled
    X = random_points(rng, 20, tree.n_features)
    raw = tree.unscaled(scale, shift)
    assert np.array_equal(route(raw, X), route(tree, (X - shift) * scale))
    assert np.array_equal(predict_values(raw, X), predict_values(tree, (X - shift) * scale), equal_nan=True)


@given(trees(), seeds)
@settings(max_examples=40, deadline=None)
def test_collapsed_changes_nothing_for_the_points_it_was_made_for(tree, seed):
    X = random_points(np.random.default_rng(seed), 6, tree.n_features)
    visited = np.asarray(decision_path(tree, X).sum(axis=0)) > 0
    small = tree.collapsed(visited)
    assert small.n_leaves == len(np.unique(route(tree, X)))
    assert np.array_equal(predict_values(small, X), predict_values(tree, X), equal_nan=True)
    if tree.is_classifier:
        assert np.array_equal(predict_labels(small, X), predict_labels(tree, X))
    # Points share a leaf afterwards exactly when they did before.
    before, after = route(tree, X), route(small, X)
    assert np.array_equal(before[:, None] == before, after[:, None] == after)


@given(trees(), seeds)
@settings(max_examples=40, deadline=None)
def test_sparse_points_are_routed_like_dense_ones(tree, seed):
    X = random_points(np.random.default_rng(seed), 20, tree.n_features)
    X = np.where(np.random.default_rng(seed).random(X.shape) < 0.5, 0.0, X)
    assert np.array_equal(route(tree, sparse.csr_array(X)), route(tree, X))
    assert np.array_equal(decision_path(tree, sparse.coo_array(X)).toarray(), decision_path(tree, X).toarray())


def test_values_are_the_means_of_the_points_of_a_node():
    tree = Tree.stump(weights=[1.0], threshold=0.0, values=[[1.0, 0.0], [0.0, 1.0]])
    X, Y = np.array([[-1.0], [-2.0], [3.0]]), np.array([[1.0, 0.0], [4.0, 3.0], [10.0, 5.0]])
    means = averaged(tree, X, Y, np.array([2.0, 1.0, 1.0]))
    assert means.values.tolist() == [[4.0, 2.0], [2.0, 1.0], [10.0, 5.0]] and not means.is_classifier


@given(trees(), seeds)
@settings(max_examples=40, deadline=None)
def test_sparse_points_whose_sums_round_are_routed_like_dense_ones(tree, seed):
    """Thresholds are sums of products themselves, to the last digit or one off, of rows that have other zeros."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=tree.weights.shape) * (tree.weights != 0)
    tree = replace(tree, weights=weights)
    X = np.where(rng.random((40, tree.n_features)) < 0.3, 0.0, rng.normal(size=(40, tree.n_features)))
    own = rng.choice(X @ weights.T + 0.0, axis=0)
    tree = replace(tree, threshold=np.nextafter(own, rng.choice([-np.inf, 0.0, np.inf], size=own.shape)))
    assert np.array_equal(route(tree, sparse.csr_array(X)), route(tree, X))
    for node in tree.branches.tolist():
        assert np.array_equal(side(tree, sparse.csr_array(X), node), side(tree, X, node))


def test_sparse_points_are_not_made_dense(monkeypatch):
    """But those at a threshold, of which there is one here; all others take memory and time for their values alone."""
    seen = []
    real = routing._as_rows
    monkeypatch.setattr(routing, "_as_rows", lambda X: (seen.append(X.shape[0]), real(X))[1])
    rng = np.random.default_rng(0)
    X = sparse.random_array((500, 3000), density=0.01, format="csr", rng=rng)
    X = X.tolil()
    X[7, 5] = 0.25
    X = X.tocsr()
    weights = np.zeros((1, 3000))
    weights[0, 5] = 1.0
    tree = Tree.stump(weights[0], 0.25, [[1.0, 0.0], [0.0, 1.0]])
    assert np.array_equal(route(tree, X), np.where(X[:, [5]].toarray()[:, 0] <= 0.25, 1, 2))
    assert sum(seen) == 1
