"""Passes over stretched points, against plain loops; that they predict better, on data that the fit has not seen."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold

from treewright import TAOClassifier
from treewright.core.budget import Budget
from treewright.engine import stretch as module
from treewright.engine.alternate import Alternation
from treewright.engine.leaves import ClassLeaves, MeanLeaves
from treewright.engine.stretch import Stretch, improve_stretched, stretched_points
from treewright.tree import Tree, route


def points(n=60, p=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.random((n, p)), rng.integers(3, 8, n)


@pytest.mark.parametrize("push", [0.25, 2.0])
def test_copies_go_away_from_a_partner_of_their_leaf(push):
    X, leaf = points()
    leaf[7] = 99  # alone
    copies, origin = stretched_points(X, leaf, push, 1000, np.random.default_rng(1))
    assert sorted(origin.tolist()) == [i for i in range(60) if i != 7]
    partners = []
    for copy, i in zip(copies, origin, strict=True):
        fits = [
            j for j in range(60) if j != i and leaf[j] == leaf[i] and np.allclose(copy, X[i] + push * (X[i] - X[j]))
        ]
        assert len(fits) == 1
        partners += fits
    assert sorted(partners) == sorted(origin.tolist())  # each is pushed away from once


def test_leaves_of_two_and_of_one():
    X = np.array([[0.0, 0.0], [1.0, 2.0], [5.0, 5.0]])
    copies, origin = stretched_points(X, np.array([4, 4, 2]), 0.5, 10, np.random.default_rng(0))
    assert dict(zip(origin.tolist(), copies.tolist(), strict=True)) == {0: [-0.5, -1.0], 1: [1.5, 3.0]}
    copies, origin = stretched_points(X, np.array([0, 1, 2]), 0.5, 10, np.random.default_rng(0))
    assert copies.shape == (0, 2) and len(origin) == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_points_have_the_same_copies(dtype):
    X, leaf = points()
    X = np.where(X < 0.5, 0.0, X).astype(dtype)
    dense, origin = stretched_points(X, leaf, 0.25, 1000, np.random.default_rng(3))
    thin, same = stretched_points(sparse.csr_array(X), leaf, 0.25, 1000, np.random.default_rng(3))
    assert np.array_equal(origin, same) and dense.dtype == thin.dtype == dtype
    assert thin.toarray() == pytest.approx(dense, abs=1e-6)


def test_no_more_copies_than_asked_for():
    X, leaf = points(500)
    copies, origin = stretched_points(X, leaf, 0.25, 100, np.random.default_rng(0))
    assert len(copies) == len(origin) == len(np.unique(origin)) <= 100
    assert len(origin) > 90  # few are alone among a hundred in five leaves


def test_copies_have_the_targets_of_their_points_and_add_no_weight():
    X, _ = points()
    rng = np.random.default_rng(0)
    Y, weight = rng.standard_normal((60, 2)), rng.random(60) + 0.5
    asked = []

    def make_leaves(X, targets, weight):
        asked.append((X.copy(), targets, weight))  # the table is used again
        return MeanLeaves(targets, weight)

    tree = Tree.stump([1.0, 0.0, 0.0], 0.5, np.zeros((2, 2)))
    state = improve_stretched(tree, X, Y, weight, make_leaves, 0.1, Stretch(0.25, 0, passes=3), Budget())
    assert len(asked) == 5  # before, three times with copies, and after
    for both, targets, weights in asked[1:-1]:
        assert len(both) > 60 and np.array_equal(both[:60], X) and np.array_equal(targets[:60], Y)
        assert weights.sum() == pytest.approx(weight.sum())
        ratio = weights[0] / weight[0]
        for target, w in zip(targets[60:], weights[60:], strict=True):
            i = int(np.flatnonzero((target == Y).all(axis=1))[0])
            assert w == pytest.approx(ratio * weight[i])
    copies = [both[60:] for both, *_ in asked[1:-1]]
    assert not np.array_equal(copies[0], copies[1])  # drawn anew
    # What comes back is the tree on the points alone.
    assert np.array_equal(state.leaf, route(state.tree(), X))
    means = np.array([np.average(Y[state.leaf == k], axis=0, weights=weight[state.leaf == k]) for k in state.leaf])
    assert state.tree().values[state.leaf] == pytest.approx(means)


def test_the_price_of_a_split_follows_the_number_of_points(monkeypatch):
    X, _ = points(40)
    prices = []

    class Noting(Alternation):
        def improve(self, budget):
            prices.append((self.solver.alpha, len(self.everyone)))
            return super().improve(budget)

    monkeypatch.setattr(module, "Alternation", Noting)
    tree, stretch = Tree.stump([1.0, 0.0, 0.0], 0.5, np.zeros((2, 1))), Stretch(0.25, 0, passes=2, most=30)
    state = improve_stretched(tree, X, X[:, :1], np.ones(40), lambda X, Y, w: MeanLeaves(Y, w), 0.8, stretch, Budget())
    assert state.solver.alpha == 0.8 and len(prices) == 2
    for price, n in prices:
        # n points of weight 40 / n: the spread of a sum of their chances is that of 40 points times the root of 40 / n.
        assert price == pytest.approx(0.8 * np.sqrt(40 / n)) and 60 < n <= 70


def test_a_split_close_to_its_points_moves_away_from_them():
    """The slab between two classes is wide, the split lies at its edge and is right for all points."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.uniform(0.0, 0.3, (200, 1)), rng.uniform(0.7, 1.0, (200, 1))])
    y = np.repeat([0, 1], 200)
    tree = Tree.stump([1.0], 0.3001, np.eye(2))

    def make_leaves(X, targets, weight):
        return ClassLeaves(targets[:, 0].astype(int), weight, 2)

    stretch = Stretch(0.25, 0)
    state = improve_stretched(tree, X, y[:, None] * 1.0, np.ones(400), make_leaves, 0.1, stretch, Budget())
    cut = float(state.threshold[0] / state.normals[0, 0])
    assert 0.35 < cut < 0.65 and state.loss == 0.0


def test_without_time_the_tree_stays():
    X, _ = points()
    budget = Budget()
    budget.stop()
    tree = Tree.stump([1.0, 0.0, 0.0], 0.5, np.zeros((2, 1)))
    state = improve_stretched(
        tree, X, X[:, :1], np.ones(60), lambda X, Y, w: MeanLeaves(Y, w), 0.1, Stretch(0.25, 0), budget
    )
    assert np.array_equal(state.tree().weights, tree.weights)


def test_new_rows_are_predicted_better():
    X, y = (part[::2] for part in load_digits(return_X_y=True))
    errors = {0.0: 0, 0.25: 0}
    for train, test in StratifiedKFold(2, shuffle=True, random_state=0).split(X, y):
        for stretch in errors:
            model = TAOClassifier(7, stretch=stretch, random_state=0).fit(X[train], y[train])
            errors[stretch] += np.sum(model.predict(X[test]) != y[test])
    assert errors[0.25] < 0.9 * errors[0.0]
