"""Splits turned about one feature at a time."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from tests.examples import looped

from treewright import TAOClassifier
from treewright.core.budget import Budget
from treewright.engine.alternate import Alternation
from treewright.engine.leaves import ClassLeaves, MeanLeaves
from treewright.engine.sparse_trees import turned_tree
from treewright.splits.turning import TurningNodes, turned_weight
from treewright.tree import Tree


@looped("seed", range(20))
def test_the_weight_is_the_best_of_all(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 12))
    values, room = rng.integers(-3, 4, n).astype(float), rng.integers(-5, 6, n).astype(float)
    stake, now = rng.integers(-2, 3, n).astype(float), float(rng.normal())
    found = turned_weight(values, room, stake, now)

    def cost(weight):
        return float(stake[weight * values <= room].sum())

    turns = np.unique(room[values != 0] / values[values != 0])
    between = (turns[1:] + turns[:-1]) / 2
    assert cost(found) <= min([cost(w) for w in between], default=cost(now)) + 1e-9
    # the weight stays where it is as good as any between two turns
    if len(between) and turns[0] < now < turns[-1] and cost(now) <= min(cost(w) for w in between):
        assert found == now


def money(n, seed=0, wrong=0.08):
    """Incomes and debts with long tails, some labels wrong: what pulls a regression away from the best split."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.lognormal(10, 0.6, n), rng.lognormal(8, 1.0, n), rng.integers(18, 90, n)])
    truth = (X[:, 0] - 2 * X[:, 1] > 15_000) & (X[:, 2] > 30)
    return X, truth, truth ^ (rng.random(n) < wrong)


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_splits_of_long_tails_are_found_with_the_terms_that_matter(seed):
    X, truth, y = money(10_000, seed)
    X = np.column_stack([X, np.random.default_rng(1).normal(38, 9, len(X))])
    model = TAOClassifier(2, random_state=0).fit(X, y)
    assert np.mean(model.predict(X) == truth) > 0.98
    slopes = [w[1] / w[0] for w in model.tree_.weights if w[0] != 0]
    assert any(slope == pytest.approx(-2.0, rel=0.2) for slope in slopes)
    assert not np.any(model.tree_.weights[:, 3])


def test_a_rare_class_is_found_from_where_balanced_trees_see_nothing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 4))
    y = (X[:, 0] + X[:, 1] > 2.4).astype(int)  # some four in a hundred
    model = TAOClassifier(2, random_state=0).fit(X, y)
    assert np.mean(model.predict(X) == y) > 0.99


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("weights", [False, True])
def test_the_objective_never_rises(gaps, weights):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(4000, 3))
    y = ((X[:, 0] + 0.7 * X[:, 1] > 0.2) ^ (rng.random(4000) < 0.2)).astype(np.int64)
    weight = rng.integers(1, 5, 4000).astype(float) if weights else np.ones(4000)
    n_levels = np.zeros(3, dtype=np.int64)
    if gaps:
        X[rng.random(X.shape) < 0.1] = np.nan
    values = np.eye(2)[[0, 0, 0, 0, 1, 0, 1]]
    splits = np.vstack([rng.normal(size=(3, 3)), np.zeros((4, 3))])
    start = Tree([1, 3, 5, -1, -1, -1, -1], [2, 4, 6, -1, -1, -1, -1], splits, np.zeros(7), values)

    def objective(tree):
        return Alternation(tree, X, ClassLeaves(y, weight, 2), TurningNodes(5.0), 1, n_levels).objective

    found, reached = turned_tree(start, X, ClassLeaves(y, weight, 2), 5.0, Budget(), n_levels)
    assert reached == pytest.approx(objective(found)) and reached < objective(start)
    same, reached = turned_tree(start, X, ClassLeaves(y, weight, 2), 5.0, Budget(0.0), n_levels)
    assert reached == pytest.approx(objective(start)) and objective(same) == pytest.approx(reached)


def test_small_nodes_single_features_and_many_terms_stay_as_they_are():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(1200, 12)), rng.integers(0, 2, 1200)
    many = Tree.stump(np.ones(12), 0.1, np.eye(2))
    one = Tree.stump(np.eye(12)[0], 0.1, np.eye(2))
    two = Tree.stump(np.eye(12)[0] + np.eye(12)[1], 0.1, np.eye(2))
    for tree, rows in ((many, 1200), (one, 1200), (two, 900)):
        found, _ = turned_tree(tree, X[:rows], ClassLeaves(y[:rows], np.ones(rows), 2), 0.0, Budget())
        assert np.allclose(found.weights[0] * np.sqrt(np.sum(tree.weights[0] ** 2)), tree.weights[0])


def test_targets_too():
    rng = np.random.default_rng(5)
    X = rng.random((3000, 2))
    Y = np.where(X[:, :1] - 0.6 * X[:, 1:] > 0.2, 3.0, -1.0) + rng.normal(size=(3000, 1))
    found, _ = turned_tree(Tree.stump([1.0, -1.0], 0.0, np.eye(2)), X, MeanLeaves(Y, np.ones(3000)), 0.1, Budget())
    wrong = (X @ found.weights[0] > found.threshold[0]) != (X[:, 0] - 0.6 * X[:, 1] > 0.2)
    assert np.mean(wrong) < 0.02


def waves(n, rng):
    """Breiman's waveforms: three classes, mixtures of two of three triangles, and noise."""
    t = np.arange(21)
    shapes = [np.maximum(6 - np.abs(t - middle), 0.0) for middle in (6, 14, 10)]
    y, share = rng.integers(0, 3, n), rng.random((n, 1))
    first, second = np.array([shapes[k] for k in (0, 0, 1)])[y], np.array([shapes[k] for k in (1, 2, 2)])[y]
    return share * first + (1 - share) * second + rng.normal(size=(n, 21)), y


def test_starts_of_deep_trees_are_judged_by_rows_left_out():
    rng = np.random.default_rng(0)
    X, y = waves(2500, rng)
    new, truth = waves(4000, rng)
    errors, objective = {}, {}
    for init in ("auto", "cart", "balanced"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # none of features that differ too much in size
            model = TAOClassifier(6, init=init, random_state=0).fit(X, y)
        errors[init], objective[init] = np.mean(model.predict(new) != truth), model.objective_
    assert objective["cart"] < objective["balanced"] and errors["cart"] > errors["balanced"] + 0.01
    assert errors["auto"] < errors["cart"] - 0.01
