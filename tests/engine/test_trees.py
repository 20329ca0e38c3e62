"""Greedy trees, alternating optimization, and the search for OCT-H."""

import numpy as np
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier
from tests.examples import looped

from treewright.core.budget import Budget
from treewright.engine.cart import cart_tree, tree_from_sklearn
from treewright.engine.gap_trees import grown_gap_tree, improved_gap_tree
from treewright.models.oct_h.objective import OCTH
from treewright.models.oct_h.search import search_oct_h
from treewright.optimize.incumbent import Incumbent
from treewright.optimize.settings import OCTHSearch
from treewright.splits.gap_splits import GapPoints
from treewright.tree import Tree, n_split_weights, passing, predict_labels, predict_values, route, weighted_error


def data(seed=0, n=120, p=4, k=3):
    rng = np.random.default_rng(seed)
    X = rng.random((n, p))
    y = (X @ rng.normal(size=(p, k)) + 0.2 * rng.normal(size=(n, k))).argmax(axis=1)
    return X, y, rng.integers(1, 4, n).astype(float)


def test_cart_is_copied_exactly():
    X, y = load_iris(return_X_y=True)
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    tree = tree_from_sklearn(model)
    assert np.array_equal(route(tree, X), model.apply(X))
    values = predict_values(tree, X)
    assert np.allclose(values / values.sum(axis=1, keepdims=True), model.predict_proba(X))


def test_cart_knows_classes_it_has_not_seen():
    X, y, weight = data(k=2)
    tree = cart_tree(X, y + 1, weight, n_classes=4, depth=2)
    assert tree.n_outputs == 4
    assert set(predict_labels(tree, X)) <= {1, 2}


@looped("seed", range(5))
@looped("price", [0.0, 2.0])
def test_alternating_never_raises_the_cost(seed, price):
    X, y, weight = data(seed)
    points = GapPoints(X, y, weight, 3, gap=0.005, price=price)
    tree = grown_gap_tree(Tree.leaf(np.bincount(y, weight), 4), points, 2, Budget())

    def cost(t):
        return weighted_error(t, X, y, weight) + price * n_split_weights(t)

    before = cost(tree)
    for _ in range(4):
        tree = improved_gap_tree(tree, points, Budget(), rounds=1)
        assert cost(tree) <= before + 1e-9
        before = cost(tree)


def test_growing_keeps_depth_and_pays():
    X, y, weight = data()
    leaf, points = Tree.leaf(np.bincount(y, weight), 4), GapPoints(X, y, weight, 3)
    errors = [weighted_error(grown_gap_tree(leaf, points, d, Budget()), X, y, weight) for d in (1, 2, 3)]
    assert errors == sorted(errors, reverse=True)
    assert grown_gap_tree(leaf, points, 3, Budget()).depth <= 3


def test_search_offers_a_tree_even_without_time():
    X, y, weight = data()
    model = OCTH(X, y, weight, n_classes=3, depth=2)
    best = Incumbent(model)
    budget = Budget(0.0)
    search_oct_h(best, model, [], budget)
    assert best.solution is not None and best.solution.n_leaves == 1


@looped("gap", [0.02, 0.1, 0.5])
@looped("seed", range(5))
def test_growing_parts_no_points_nearer_than_the_gap(seed, gap):
    rng = np.random.default_rng(seed)
    X = rng.random((60, 2)) - 0.5
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    tree = grown_gap_tree(
        Tree.leaf(np.bincount(y).astype(float), 2), GapPoints(X, y, np.ones(60), 2, gap=gap), 3, Budget()
    )
    for node in tree.branches:
        level = X[passing(tree, X, int(node))] @ tree.weights[node]
        low, high = level[level <= tree.threshold[node]], level[level > tree.threshold[node]]
        assert high.min() - low.max() >= gap * np.abs(tree.weights[node]).sum() - 1e-9
    if gap == 0.02:
        assert tree.n_leaves > 1


def test_growing_keeps_rows_in_leaves():
    X, y, weight = data(n=60)
    size = np.random.default_rng(0).integers(1, 6, 60).astype(float)
    leaf = Tree.leaf(np.bincount(y, weight), 4)
    for least in (5, 20, 60):
        points = GapPoints(X, y, weight, 3, min_size=least, size=size)
        tree = improved_gap_tree(grown_gap_tree(leaf, points, 2, Budget()), points, Budget())
        lowest = tree.parent[tree.leaves[tree.level[tree.leaves] == tree.depth]]
        assert tree.n_leaves >= 2
        rows = np.bincount(route(tree, X), size, tree.n_nodes)
        assert all(rows[[tree.left[k], tree.right[k]]].min() >= least for k in lowest)


def test_search_is_reproducible_and_beats_cart():
    X, y, weight = data(n=200)
    model = OCTH(X, y, weight, n_classes=3, depth=2)
    found = []
    for _ in range(2):
        best = Incumbent(model)
        search_oct_h(best, model, [], Budget(None), 5, OCTHSearch(least_patience=4, most_patience=4))
        found.append(best)
    assert found[0].solution == found[1].solution
    cart = model.objective(model.repair(cart_tree(X, y, weight, 3, 2)))
    assert found[0].objective < cart


def test_incumbent_keeps_the_better_tree_only():
    X, y, weight = data()
    model = OCTH(X, y, weight, n_classes=3, depth=2)
    heard = []
    best = Incumbent(model, on_better=heard.append)
    good, bad = cart_tree(X, y, weight, 3, 2), Tree.leaf(np.bincount(y, weight), 4)
    assert best.offer(good)
    assert not best.offer(bad)
    assert not best.offer(good)
    assert heard == [best.objective]
