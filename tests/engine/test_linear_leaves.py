"""Linear leaves: each leaf against least squares on an augmented system, the objective against recomputation."""

import numpy as np
import pytest
from scipy import sparse
from tests.engine.recomputed import recomputed
from tests.examples import looped

from treewright.engine import ridge as ridge_module
from treewright.engine.leaves import LinearLeaves, MeanLeaves
from treewright.engine.ridge import CentredRows
from treewright.engine.sparse_trees import improved_sparse_tree
from treewright.engine.starts import random_tree
from treewright.tree import Tree, passing, predict_values, route
from treewright.tree.structure import Shape


def table(n=300, p=5, outputs=2, seed=0):
    rng = np.random.default_rng(seed)
    X = np.round(rng.random((n, p)), 3) * (rng.random((n, p)) < 0.7)
    side = X @ rng.standard_normal(p) > 0.3
    Y = np.where(side[:, None], X @ rng.standard_normal((p, outputs)), X @ rng.standard_normal((p, outputs)))
    return X, Y + 0.05 * rng.standard_normal((n, outputs)), rng.integers(1, 4, n).astype(float)


def augmented(X, Y, weight, ridge):
    """Ridge regression with a free intercept as plain least squares: a row more for each slope."""
    n, p = X.shape
    root = np.sqrt(weight)[:, None]
    left = np.vstack([root * np.column_stack([np.ones(n), X]), np.sqrt(ridge) * np.eye(p + 1)[1:]])
    solved = np.linalg.lstsq(left, np.vstack([root * Y, np.zeros((p, Y.shape[1]))]), rcond=None)[0]
    return solved[0], solved[1:].T


FORMS = [np.asarray, sparse.csr_array, lambda X: X.astype(np.float32)]


@pytest.mark.parametrize("form", FORMS, ids=["dense", "sparse", "single"])
@looped("n, p", [(300, 5), (40, 12), (60, 200)])
@looped("ridge", [1e-6, 0.1, 10.0])
@looped("cells", [2_000_000, 50])
def test_each_node_is_the_ridge_regression_of_its_points(form, n, p, ridge, cells, monkeypatch):
    monkeypatch.setattr(ridge_module, "_CELLS", cells)
    X, Y, weight = table(n, p)
    X = X.astype(np.float32).astype(float)  # so that single precision holds the same numbers
    tree = random_tree(X, 2, np.random.default_rng(0))
    shape, leaf = Shape.of(tree), route(tree, X)
    leaves = LinearLeaves(form(X), Y, weight, ridge)
    leaves.refit(shape, leaf)
    means = np.stack([np.average(Y[passing(tree, X, k)], axis=0, weights=weight[passing(tree, X, k)]) for k in (0, 1)])
    assert leaves.table()[0][:2] == pytest.approx(means) and not np.any(leaves.slopes[:2])
    assert leaves.price == pytest.approx(ridge * (leaves.slopes[tree.leaves] ** 2).sum())
    leaves.refit_branches(shape, leaf)
    for node in range(tree.n_nodes):
        inside = passing(tree, X, node)
        values, slopes = augmented(X[inside], Y[inside], weight[inside], ridge)
        # With next to no ridge, slopes are as uncertain as the system is ill-conditioned.
        assert leaves.slopes[node] == pytest.approx(slopes, rel=1e-4, abs=1e-5)
        assert leaves.table()[0][node] == pytest.approx(values, rel=1e-4, abs=1e-5)
    everyone = np.arange(n)
    expected = weight * ((Y - predict_values(tree.with_leaves(leaves.table()[0], None, leaves.slopes), X)) ** 2).sum(1)
    assert leaves.loss(everyone, leaf) == pytest.approx(expected)
    assert leaves.loss(everyone[::3], leaf[::3]) == pytest.approx(expected[::3])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_systems_too_large_to_factorize_are_solved_by_iteration(form, monkeypatch):
    monkeypatch.setattr(ridge_module, "_DIRECT", 3)
    X, Y, weight = table(80, 10)
    rows = CentredRows(form(X), np.arange(80), weight)
    targets = np.sqrt(weight)[:, None] * (Y - np.average(Y, axis=0, weights=weight))
    found, expected = rows.ridge(targets, 0.3).T, augmented(X, Y, weight, 0.3)[1]
    assert found == pytest.approx(expected, rel=1e-6)


def test_a_weight_of_two_is_a_point_twice():
    X, Y, weight = table(60)
    again = np.repeat(np.arange(60), weight.astype(int))
    shape = Shape.of(Tree.leaf([0.0, 0.0], 5, classification=False))
    once, twice = LinearLeaves(X, Y, weight, 0.5), LinearLeaves(X[again], Y[again], np.ones(len(again)), 0.5)
    once.refit(shape, np.zeros(60, dtype=int))
    twice.refit(shape, np.zeros(len(again), dtype=int))
    assert once.slopes == pytest.approx(twice.slopes) and once.table()[0] == pytest.approx(twice.table()[0])


def test_few_points_are_nearly_constant_and_empty_leaves_have_the_mean_of_their_parent():
    X, Y, weight = table(50)
    tree = random_tree(X, 2, np.random.default_rng(0))
    normals, threshold = tree.weights.copy(), tree.threshold.copy()
    normals[0], threshold[0] = 0.0, -1.0  # all points go right
    tree = Tree(tree.left, tree.right, normals, threshold, tree.values)
    leaves = LinearLeaves(X, Y, weight, 0.1)
    leaves.refit(Shape.of(tree), route(tree, X))
    for node in (1, int(tree.left[1]), int(tree.right[1])):
        assert leaves.table()[0][node] == pytest.approx(np.average(Y, axis=0, weights=weight))
        assert not np.any(leaves.slopes[node])
    pair = LinearLeaves(X[:2], Y[:2], np.ones(2), 1e3)
    pair.refit(Shape.of(Tree.leaf([0.0, 0.0], 5, classification=False)), np.zeros(2, dtype=int))
    assert np.abs(pair.slopes).max() < 0.01
    one = LinearLeaves(X[:1], Y[:1], np.ones(1), 1e-9)
    one.refit(Shape.of(Tree.leaf([0.0, 0.0], 5, classification=False)), np.zeros(1, dtype=int))
    assert not np.any(one.slopes) and one.table()[0][0] == pytest.approx(Y[0])


def test_refitting_what_changed_is_refitting_all():
    X, Y, weight = table()
    rng = np.random.default_rng(0)
    tree = random_tree(X, 3, rng)
    leaf, leaves = route(tree, X), LinearLeaves(X, Y, weight, 0.1)
    for _ in range(6):
        leaves.refit(Shape.of(tree), leaf)
        fresh = LinearLeaves(X, Y, weight, 0.1)
        fresh.refit(Shape.of(tree), leaf)
        assert leaves.slopes == pytest.approx(fresh.slopes) and leaves.table()[0] == pytest.approx(fresh.table()[0])
        assert leaves.price == pytest.approx(fresh.price)
        old, new = rng.choice(tree.leaves, 2, replace=False)
        leaf[(leaf == old) & (rng.random(len(leaf)) < 0.8)] = new
        leaf[leaf == new] = np.where(rng.random(np.sum(leaf == new)) < 0.3, old, new)
    leaf[leaf == old] = new
    leaves.refit(Shape.of(tree), leaf)
    assert not np.any(leaves.slopes[old])


@looped("ridge", [1e-12, 1e-3, 1.0])
@pytest.mark.parametrize("most", [None, 1, 2])
@pytest.mark.parametrize("form", FORMS, ids=["dense", "sparse", "single"])
def test_the_objective_recomputed_from_data_never_rises(ridge, most, form):
    X, Y, weight = table()
    X = X.astype(np.float32).astype(float)
    start = random_tree(form(X), 3, np.random.default_rng(0), most)
    objectives = []
    for passes in range(4):
        leaves = LinearLeaves(form(X), Y, weight, ridge)
        result = improved_sparse_tree(start, form(X), leaves, 0.2, max_split_features=most, max_iter=passes)
        objectives.append(recomputed(result.tree, X, weight, 0.2, Y, ridge))
        assert result.objective == pytest.approx(objectives[-1], rel=1e-8)
    assert np.all(np.diff(objectives) <= 1e-9 * objectives[0])
    assert objectives[-1] < objectives[0]


def test_points_of_high_dimension_are_fitted_in_blocks():
    # 784 features, some leaves with fewer points than that and some with more.
    rng = np.random.default_rng(0)
    X = rng.random((1500, 784)) * (rng.random((1500, 784)) < 0.2)
    Y, weight = X[:, :10].sum(axis=1, keepdims=True), np.ones(1500)
    stump = random_tree(X, 1, rng)
    threshold = stump.threshold.copy()
    threshold[0] = np.quantile(X @ stump.weights[0], 0.2)
    tree = Tree(stump.left, stump.right, stump.weights, threshold, stump.values)
    leaf = route(tree, X)
    assert sorted(np.bincount(leaf)[1:] < 784) == [False, True]
    leaves = LinearLeaves(X, Y, weight, 0.01)
    leaves.refit(Shape.of(tree), leaf)
    for node in (1, 2):
        slopes = augmented(X[leaf == node], Y[leaf == node], weight[leaf == node], 0.01)[1]
        assert leaves.slopes[node] == pytest.approx(slopes, rel=1e-6, abs=1e-8)


def test_slopes_of_a_dear_ridge_vanish():
    X, Y, weight = table()
    tree = random_tree(X, 2, np.random.default_rng(0))
    flat, means = LinearLeaves(X, Y, weight, 1e12), MeanLeaves(Y, weight)
    for leaves in (flat, means):
        leaves.refit(Shape.of(tree), route(tree, X))
    assert flat.table()[0] == pytest.approx(means.table()[0], abs=1e-8) and np.abs(flat.slopes).max() < 1e-8
