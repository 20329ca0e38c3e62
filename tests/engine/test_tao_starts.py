"""Starts of tree alternating optimization: halves, brute-force thresholds, and what they do without time or targets."""

import numpy as np
import pytest
from scipy import sparse

from treewright.core.budget import Budget
from treewright.engine import cart as cart_module
from treewright.engine import starts as tao_starts
from treewright.engine.cart import cart_start, cart_tree
from treewright.engine.starts import StartTask, balanced_tree, random_tree, starting_tree
from treewright.splits.points import Points
from treewright.tree import passing, route


def table(n=400, p=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, p)) * (rng.random((n, p)) < 0.7)
    targets = X @ rng.standard_normal((p, 3)) + 0.1 * rng.standard_normal((n, 3))
    return X, targets, rng.random(n) + 0.2


def over():
    budget = Budget()
    budget.stop()
    return budget


def halves(tree, X, weight):
    """At each branch with a normal: mass on the left, on the right, and the most that one place has."""
    for node in tree.branches:
        normal = tree.weights[node]
        inside = passing(tree, X, node)
        if not np.any(normal) or not inside.any():
            continue
        level = X[inside] @ normal
        left = level <= tree.threshold[node]
        _, place = np.unique(np.round(level, 9), return_inverse=True)
        yield weight[inside] @ left, weight[inside] @ ~left, np.bincount(place, weight[inside]).max()


def test_splits_of_a_balanced_tree_halve_their_weighted_points(monkeypatch):
    X, targets, weight = table()
    monkeypatch.setattr(tao_starts, "_ROOM", 10)
    tree = balanced_tree(X, targets, weight, 3, 0.01, Budget())
    nodes = list(halves(tree, X, weight))
    assert len(nodes) == 7
    for left, right, most in nodes:
        assert abs(left - right) <= most + 1e-9
    assert np.linalg.norm(tree.weights[tree.branches], axis=1) == pytest.approx(np.ones(7))


def test_the_first_split_of_a_balanced_tree_is_along_what_the_targets_vary_with():
    rng = np.random.default_rng(0)
    X = rng.random((500, 3))
    # The first output varies ten times as much; two classes at its ends.
    targets = np.column_stack([10 * (X[:, 0] - X[:, 1]), X[:, 2]])
    tree = balanced_tree(X, targets, np.ones(500), 1, 0.01, Budget())
    first, second, third = tree.weights[0]
    assert second / first == pytest.approx(-1.0, abs=0.1) and abs(third / first) < 0.1


def test_sparse_points_and_sparse_classes_give_the_same_balanced_tree():
    X, targets, weight = table()
    classes = np.eye(3)[targets.argmax(axis=1)]
    for wanted in (targets, classes):
        dense = balanced_tree(X, wanted, weight, 3, 0.05, Budget())
        thin = balanced_tree(sparse.csr_array(X), wanted, weight, 3, 0.05, Budget())
        assert thin.weights == pytest.approx(dense.weights, abs=1e-6)
        assert np.array_equal(route(thin, X), route(dense, X))
    for points in (X, sparse.csr_array(X)):
        thin = balanced_tree(points, sparse.csr_array(classes), weight, 3, 0.05, Budget())
        assert thin.weights == pytest.approx(dense.weights, abs=1e-6)
        assert np.array_equal(route(thin, X), route(dense, X))


def test_the_sides_of_two_classes_do_not_depend_on_rounding():
    X, targets, weight = table()
    y = (targets[:, 0] > np.median(targets[:, 0])).astype(int)
    one = balanced_tree(X, np.eye(2)[y], weight, 1, 0.05, Budget())
    for seed in range(8):  # sums in other orders: the entries of the contrast are equal but for the last digits
        order = np.random.default_rng(seed).permutation(400)
        other = balanced_tree(X[order], np.eye(2)[y[order]], weight[order], 1, 0.05, Budget())
        assert other.weights == pytest.approx(one.weights, abs=1e-6)


def test_threads_and_single_precision():
    X, targets, weight = table()
    one, two = (balanced_tree(X, targets, weight, 3, 0.05, Budget(), n_jobs) for n_jobs in (1, 2))
    assert one == two
    single = balanced_tree(X.astype(np.float32), targets, weight, 3, 0.05, Budget())
    assert single.weights[0] == pytest.approx(one.weights[0], abs=1e-3)
    assert np.mean(route(single, X) == route(one, X)) > 0.95


def test_few_points_are_parted_where_their_targets_change():
    X = np.random.default_rng(0).random((60, 2))
    targets = (X[:, :1] > 0.8).astype(float)
    tree = balanced_tree(X, targets, np.ones(60), 1, 0.01, Budget())
    right = X @ tree.weights[0] > tree.threshold[0]
    assert np.array_equal(right, targets[:, 0] > 0) or np.array_equal(~right, targets[:, 0] > 0)
    assert not 20 < right.sum() < 40  # halving would


def test_a_large_node_looks_at_some_of_its_points(monkeypatch):
    X, targets, weight = table()
    monkeypatch.setattr(tao_starts, "_ROOM", 10)
    exact = balanced_tree(X, targets, weight, 2, 0.05, Budget(), seed=0)
    monkeypatch.setattr(tao_starts, "_BALANCED_ROWS", 100)
    first, again, other = (balanced_tree(X, targets, weight, 2, 0.05, Budget(), seed=seed) for seed in (0, 0, 1))
    assert first == again and first != other and first != exact
    for left, right, most in halves(first, X, weight):  # thresholds are those of all points
        assert abs(left - right) <= most + 1e-9


def test_without_time_or_anything_to_tell_apart_all_points_stay_together():
    X, targets, weight = table(50)
    same = np.ones((50, 2))
    for tree in (
        balanced_tree(X, targets, weight, 3, 0.05, over()),
        balanced_tree(X, same, weight, 3, 0.05, Budget()),
        balanced_tree(X, sparse.csr_array(same[:, :1]), weight, 3, 0.05, Budget()),
        balanced_tree(np.ones((50, 2)), targets, weight, 3, 0.05, Budget()),
        balanced_tree(X, targets, weight, 3, 1e6, Budget()),  # a price that nothing pays
    ):
        assert tree.depth == 3 and tree.n_leaves == 8 and not np.any(tree.weights)
        assert len(np.unique(route(tree, X[:, : tree.n_features]))) == 1


def test_nodes_with_one_point_or_none():
    X, targets = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([[0.0], [1.0], [2.0]])
    tree = balanced_tree(X, targets, np.ones(3), 4, 1e-4, Budget())
    assert tree.depth == 4 and len(np.unique(route(tree, X))) == 3
    single = balanced_tree(X[:1], targets[:1], np.ones(1), 2, 1e-4, Budget())
    assert single.depth == 2 and not np.any(single.weights)


def test_a_random_tree_halves_weighted_points():
    X, _, weight = table()
    for features in (None, 1, 2):
        tree = random_tree(X, 3, np.random.default_rng(0), features, weight)
        for left, right, most in halves(tree, X, weight):
            assert abs(left - right) <= most + 1e-9
        thin = random_tree(sparse.csr_array(X), 3, np.random.default_rng(0), features, weight)
        assert np.array_equal(route(thin, X), route(tree, X))


def test_starts_by_name(monkeypatch):
    X, targets, weight = table()
    y = targets.argmax(axis=1)[:, None].astype(float)

    def made(kind, most=None, classify=False, budget=None):
        wanted = y if classify else targets
        budget = Budget() if budget is None else budget
        return starting_tree(StartTask(Points(X), wanted, weight, 3, 0.05, most, classify, seed=4), kind, budget)

    balanced = balanced_tree(X, targets, weight, 3, 0.05, Budget(), seed=4)
    assert made("auto") == made("balanced") == balanced
    of_classes = balanced_tree(X, np.eye(3)[y[:, 0].astype(int)], weight, 3, 0.05, Budget(), seed=4)
    assert made("auto", classify=True).weights == pytest.approx(of_classes.weights, abs=1e-6)
    cart = cart_start(X, targets, weight, 3, False, 4, Budget())
    assert made("cart") == made("auto", most=1) == made("balanced", most=1) == cart
    assert made("cart", classify=True) == cart_start(X, y, weight, 3, True, 4, Budget())
    drawn = random_tree(X, 3, np.random.default_rng(4), None, weight)
    assert made("random") == drawn
    assert np.count_nonzero(made("random", most=1).weights, axis=1).max() == 1
    for kind in ("auto", "cart"):  # no time at all: CART on few rows, here all, takes none
        assert made(kind, budget=over()) == cart
    assert made("cart", classify=True, budget=over()).n_leaves > 1
    assert made("random", budget=over()) == drawn
    monkeypatch.setattr(cart_module, "_CART_SECONDS", 1.0)
    assert made("cart", budget=Budget(60.0)) == drawn  # no time for CART on all rows


def test_cart_takes_sparse_points_with_places_of_64_bits():
    """Which trees of scikit-learn refuse, and large sparse tables have."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((60, 5), density=0.5, format="csr", rng=rng)
    y, weight, wide = (X[:, [0]].toarray()[:, 0] > 0.5).astype(int), np.ones(60), X.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert cart_tree(wide, y, weight, 2, 3) == cart_tree(X, y, weight, 2, 3)
