"""The search for OCT-H: trees that wander, against what is known of the optimum."""

import numpy as np
import pytest
from tests.contracts.brute_force import best_oct_h
from tests.examples import looped

from treewright.core.budget import Budget
from treewright.engine.draws import draws_of
from treewright.models.oct_h.objective import OCTH
from treewright.models.oct_h.search import search_oct_h, start_oct_h
from treewright.models.oct_h.walk import wander
from treewright.optimize.incumbent import Incumbent
from treewright.optimize.settings import OCTHSearch
from treewright.tree import Tree, n_split_weights, passing, route, weighted_error
from treewright.tree.complete import Planes


def searched(model, patience, seed=0):
    best, search = Incumbent(model), OCTHSearch(least_patience=patience, most_patience=patience)
    search_oct_h(best, model, [], Budget(None), seed, search)
    return best


def tiny(seed, n=8, k=2, **settings):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 8, (n, 2)) / 7.0, rng.integers(0, k, n)
    X[0], X[1], y[:k] = 0.0, 1.0, np.arange(k)
    return OCTH(X, y, rng.integers(1, 4, n).astype(float), k, margin=0.05, **settings)


@pytest.mark.parametrize(
    "settings",
    [{"depth": 1, "n": 8, "k": 3}, {"depth": 2, "n": 5}, {"depth": 2, "n": 5, "complexity": 0.1, "min_leaf": 2.0}],
)
@pytest.mark.parametrize("seed", range(2))
def test_the_search_finds_the_brute_force_optimum_of_few_points(seed, settings):
    model = tiny(seed, **settings)
    assert searched(model, patience=5).objective == pytest.approx(best_oct_h(model), abs=1e-9)


def wandered(model, seed, steps=300, heat=1.0):
    """Start from planes at random; the tree, its cost by the kernel, and the same for gaps of any width."""
    rng = np.random.default_rng(seed)
    n_branches, p = model.tree.n_branches, model.X.shape[1]
    normals, labels = rng.normal(size=(n_branches, p)), rng.integers(0, model.n_classes, n_branches + 1)
    offsets = normals @ model.X.mean(axis=0)
    near = np.empty((n_branches, p + 1))
    price = model.complexity * model.baseline
    points = model.X, model.y, model.weight, model.sizes, model.n_classes
    tree = normals, offsets, labels, near
    cost, near_cost = wander(*points, model.margin, model.min_leaf, price, 0.0, *tree, steps, heat, 1.0, draws_of(rng))
    close = Planes(near[:, :p].copy(), near[:, p].copy(), labels)
    trees = [planes.to_tree(model.n_classes) for planes in (Planes(normals, offsets, labels), close)]
    return trees[0], cost, trees[1], near_cost


def errors(tree, model):
    """Errors with the best label in each leaf, point by point."""
    leaf = route(tree, model.X)
    table = np.zeros((tree.n_nodes, model.n_classes))
    np.add.at(table, (leaf, model.y), model.weight)
    return float((table.sum(axis=1) - table.max(axis=1)).sum())


@looped("depth", [1, 2, 3])
@looped("seed", range(3))
def test_what_wanders_costs_what_it_says_and_keeps_gaps_and_leaves(seed, depth):
    rng = np.random.default_rng(seed)
    X, y = rng.random((60, 3)), rng.integers(0, 3, 60)
    size = rng.integers(1, 4, 60).astype(float)
    least = [1.0, 8.0, 0.0][seed]
    model = OCTH(X, y, rng.random(60) + 0.5, 3, depth=depth, margin=0.004, min_leaf=least, size=size)
    tree, cost, close, near_cost = wandered(model, seed)
    assert errors(close, model) == pytest.approx(near_cost)
    assert near_cost <= cost + 1e-9
    if not np.isfinite(cost):
        return
    assert errors(tree, model) == pytest.approx(cost)
    for node in tree.branches.tolist():
        level = X[passing(tree, X, node)] @ tree.weights[node]
        assert np.abs(tree.weights[node]).sum() == pytest.approx(1.0)
        low, high = level[level <= tree.threshold[node]], level[level > tree.threshold[node]]
        assert not len(low) or not len(high) or high.min() - low.max() >= model.margin - 1e-9
    rows = np.bincount(route(tree, X), size, tree.n_nodes)[tree.leaves]
    assert np.all((rows == 0) | (rows >= least))


def test_features_have_their_price():
    rng = np.random.default_rng(0)
    X = rng.random((50, 6))
    y = (X[:, 2] > 0.5).astype(int)
    model = OCTH(X, y, np.ones(50), 2, depth=1, margin=1e-4, complexity=0.05)
    tree, cost, _, _ = wandered(model, 0, steps=600, heat=0.3)
    parting = model.repair(tree)
    assert cost == pytest.approx(
        weighted_error(parting, X, y, model.weight) + 0.05 * model.baseline * n_split_weights(parting)
    )
    assert searched(model, patience=3).objective == pytest.approx(0.05)  # one feature, no errors


@pytest.mark.parametrize("seed", range(2))
def test_wandering_undoes_what_single_nodes_cannot(seed):
    """Four clusters like a chessboard, turned: no split alone is good, the right two levels have no error."""
    rng = np.random.default_rng(seed)
    corner = rng.integers(0, 2, (120, 2))
    X = corner + 0.8 * rng.random((120, 2)) - 0.4
    X = X @ np.array([[np.cos(0.5), -np.sin(0.5)], [np.sin(0.5), np.cos(0.5)]])
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    model = OCTH(X, corner[:, 0] ^ corner[:, 1], np.ones(120), 2, depth=2, margin=1e-3)
    assert searched(model, patience=30).objective == 0.0


def test_a_search_is_the_same_for_a_seed_and_ends_without_a_clock():
    model = tiny(0, n=30, k=3, depth=2)
    found = [searched(model, 4, seed=3) for _ in range(2)]
    assert found[0].solution == found[1].solution


def test_starts_of_the_printed_program_are_offered_without_time_too():
    model = tiny(0)
    best, stump = Incumbent(model), Tree.stump([1.0, 0.0], 0.5, np.eye(2))
    start_oct_h(best, model, [stump], Budget(0.0))
    assert best.objective == min(model.objective(model.repair(t)) for t in (stump, Tree.leaf([1.0, 1.0], 2)))
