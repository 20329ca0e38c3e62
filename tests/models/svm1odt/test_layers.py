"""Rows selected again at every layer."""

import warnings

import numpy as np
import pytest

from treewright import SVM1ODTClassifier
from treewright.core.budget import Budget
from treewright.models.svm1odt.completed import completed_heap_tree
from treewright.models.svm1odt.layers import _cut, _grafted, _nodes_of, _trained, train_layers
from treewright.models.svm1odt.objective import SVM1ODT
from treewright.optimize.conduct import Conduct
from treewright.solvers import get_solver
from treewright.tree import Tree, predict_labels, route


def table(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    X[:2] = [[0.0, 0.0], [1.0, 1.0]]
    return X, ((X[:, 0] > 0.5) ^ (X[:, 1] > 0.5)).astype(int)


def heap(rng, depth, p=2, n_classes=2):
    n = 2**depth - 1
    weights, values = rng.normal(size=(n, p)), rng.random((2 * n + 1, n_classes))
    return Tree.from_heap(np.ones(n), weights, rng.normal(size=n) * 0.3, values, values.argmax(axis=1))


@pytest.mark.parametrize("node", range(3))
def test_a_subtree_predicts_what_the_tree_does_for_rows_that_reach_it(node):
    rng = np.random.default_rng(node)
    tree, X = completed_heap_tree(heap(rng, 3), 3, 2), rng.random((80, 2))
    level = 0 if node == 0 else 1
    model = SVM1ODT(X, rng.integers(0, 2, 80), np.ones(80), 2, 3)
    inside = dict(_nodes_of(model, tree, level)).get(node, np.zeros(0, dtype=int))
    below = _cut(tree, node)
    assert below.depth == 3 - level
    assert np.array_equal(predict_labels(below, X[inside]), predict_labels(tree, X[inside]))
    assert _grafted(tree, node, below) == tree
    other = completed_heap_tree(heap(rng, 3 - level), 3 - level, 2)
    grafted = _grafted(tree, node, other)
    outside = np.setdiff1d(np.arange(80), inside)
    assert np.array_equal(predict_labels(grafted, X[inside]), predict_labels(other, X[inside]))
    assert np.array_equal(route(grafted, X[outside]), route(tree, X[outside]))


def test_layers_never_make_a_start_worse_and_keep_the_depth():
    X, y = table()
    model = SVM1ODT(X, y, np.ones(len(X)), 2, 2, 0.05, 20.0, 1.0)
    start = model.repair(Tree.stump([1.0, 0.0], 0.5, [[1.0, 0.0], [0.0, 1.0]]))
    tree, selected = train_layers(model, [start], Conduct(solver=get_solver("highs")), Budget(0.8))
    assert tree.depth <= 2 and model.objective(tree) <= model.objective(start)
    assert selected.shape == (len(X),)


def test_a_subtree_is_trained_on_rows_selected_at_its_node():
    X, y = table()
    model = SVM1ODT(X, y, np.ones(len(X)), 2, 2, 0.05, 20.0, 1.0)
    tree = completed_heap_tree(model.repair(Tree.stump([1.0, 0.0], 0.5, [[1.0, 0.0], [0.0, 1.0]])), 2, 2)
    for node, inside in _nodes_of(model, tree, 1):
        rows, below = _trained(model, tree, node, inside, Conduct(solver=get_solver("highs")), Budget(1.0))
        assert 0 < len(rows) < len(inside) and np.all(np.isin(rows, inside))
        assert below.depth == 1 and below.n_leaves == 2


def test_the_estimator_selects_by_layers():
    X, y = table(200, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nothing is proven in so short a time
        model = SVM1ODTClassifier(alpha_2=1.0, selection="layers", time_limit=0.8, random_state=0).fit(X, y)
    assert model.selected_.shape == (200,) and model.tree_.depth <= 2
    assert model.score(X, y) >= np.mean(y == np.bincount(y).argmax())  # a leaf is among the starts
