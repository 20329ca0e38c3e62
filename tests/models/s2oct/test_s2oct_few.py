"""S2OCT with few features a split: the restricted program against the free ones of each choice of features."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import combinations, product

import numpy as np
import pytest

from treewright.data import PointTotals
from treewright.exceptions import InvalidInputError
from treewright.models.s2oct.objective import S2OCT
from treewright.solvers import Status, get_solver
from treewright.solvers.program_check import check
from treewright.tree import Tree, predict_labels


def tiny(seed, depth=1, n_classes=2, p=3, **settings):
    """Five labelled points and four others on a grid, labels by lot: few splits get them right."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-4, 5, (9, p)).astype(float)
    y = np.concatenate([rng.permutation(np.arange(5) % n_classes), np.full(4, -1)])
    truth = rng.integers(0, n_classes, 4)
    counts = np.bincount(truth, minlength=n_classes)[None]
    totals = PointTotals(np.ones((4, 1)), counts, counts)
    settings = {"max_coefficient": 0.5, "margin_rule": "tolerance", "penalty": 0.7} | settings
    return S2OCT(X, y, rng.integers(1, 4, 9) / 2.0, totals, depth, **settings)


def solved(model, solver="highs"):
    result = get_solver(solver).solve(model.build(), time_limit=60.0, gap=1e-6)
    assert result.status is Status.OPTIMAL
    return result


@cache
def optimum(seed, margin, most):
    """The best of the free programs on the columns of each choice of features; bounds of points are kept."""
    model = tiny(seed, margin_rule=margin)
    best = np.inf
    for used in combinations(range(3), most):
        only = replace(model, X=model.X * np.isin(np.arange(3), used))
        best = min(best, solved(only).objective)
    return best


@pytest.mark.parametrize("margin", ["tolerance", "reached", "paper"])
@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_optimum_is_the_best_of_all_choices_of_features(seed, most, margin):
    model = tiny(seed, margin_rule=margin, max_split_features=most)
    expected = optimum(seed, margin, most)
    for solver in ("highs", "scip"):
        result = solved(model, solver)
        assert result.objective == pytest.approx(expected, abs=1e-5)
        tree = model.decode(result.x)
        assert np.count_nonzero(tree.weights, axis=1).max() <= most
        assert model.objective(tree) == pytest.approx(expected, abs=1e-4)


def test_fewer_features_never_cost_less_and_all_of_them_cost_what_they_cost():
    for seed in (0, 1, 2):
        costs = [solved(tiny(seed, max_split_features=most)).objective for most in (1, 2, 3, None)]
        assert costs[0] >= costs[1] - 1e-6 and costs[1] >= costs[2] - 1e-6
        assert costs[2] == pytest.approx(costs[3], abs=1e-6)
    assert tiny(0, max_split_features=3).build().n_columns == tiny(0).build().n_columns  # nothing is restricted


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("most", [1, 2])
def test_of_depth_two_every_tree_can_be_repaired_and_encoded(n_classes, most):
    for seed in range(8):
        model = tiny(seed, depth=2, n_classes=n_classes, max_split_features=most)
        rng = np.random.default_rng(seed)
        weights = rng.normal(size=(3, 3))
        threshold = np.einsum("ij,ij->i", weights, model.X[rng.integers(0, 9, 3)])
        labels = rng.integers(0, n_classes, 7)
        tree = Tree.from_heap(np.ones(3), weights, threshold, np.eye(n_classes)[labels], labels)
        feasible = model.repair(tree)
        assert np.count_nonzero(feasible.weights, axis=1).max() <= most
        for some in (feasible, tree):
            found = check(model.build(), model.encode(some))
            assert found.worst <= 1e-6, found.worst_name
            assert found.objective == pytest.approx(model.objective(feasible), abs=1e-9)


def test_a_tree_with_few_features_is_repaired_as_in_the_free_model():
    for seed in range(6):
        model, rng = tiny(seed, depth=2), np.random.default_rng(seed)
        weights = np.eye(3)[rng.integers(0, 3, 3)]
        threshold = np.einsum("ij,ij->i", weights, model.X[rng.integers(0, 9, 3)]) + 0.5
        tree = Tree.from_heap(np.ones(3), weights, threshold, np.ones((7, 2)), np.arange(7) % 2)
        assert replace(model, max_split_features=1).repair(tree) == model.repair(tree)


def test_repair_keeps_the_features_that_move_points_most():
    model = tiny(0, max_split_features=1)
    model = replace(model, X=model.X * [1.0, 10.0, 0.1])
    tree = model.repair(Tree.stump([1.0, 0.5, 5.0], 0.0, np.eye(2)))
    assert np.flatnonzero(tree.weights[0]).tolist() == [1]


def test_depth_two_with_one_feature_a_split_by_all_choices():
    """One point of each class at the corners of a square, which one threshold cannot part and three can."""
    X = np.array([[-4.0, -4.0], [-4.0, 4.0], [4.0, -4.0], [4.0, 4.0], [-3.0, -3.0], [3.0, 3.0]])
    y = np.array([0, 1, 1, 0, -1, -1])
    totals = PointTotals(np.ones((2, 1)), [[2, 0]], [[2, 0]])
    model = S2OCT(X, y, np.ones(6), totals, 2, max_coefficient=1.0, margin_rule="tolerance", max_split_features=1)
    result = solved(model)
    tree = model.decode(result.x)
    assert result.objective == pytest.approx(0.0, abs=1e-6)
    assert np.count_nonzero(tree.weights, axis=1).max() == 1
    assert predict_labels(tree, X).tolist() == [0, 1, 1, 0, 0, 0]
    shallow = replace(model, depth=1)
    # One threshold on one feature: two labelled points on each side, one of each class.
    best = min(solved(replace(shallow, X=X * np.eye(2)[j], max_split_features=None)).objective for j in range(2))
    assert solved(shallow).objective == pytest.approx(best, abs=1e-5) and best > 1.0


@pytest.mark.parametrize("solver", ["highs", "scip"])
def test_a_start_with_few_features_is_taken(solver):
    model = tiny(3, depth=2, max_split_features=1)
    start = model.repair(Tree.stump([1.0, 0.0, 0.0], 0.5, np.eye(2)))
    result = get_solver(solver).solve(model.build(), start=model.encode(start), time_limit=0.001)
    assert result.objective <= model.objective(start) + 1e-9


def test_margins_are_looked_at_on_the_ways_or_everywhere():
    X, y = np.array([[-5.0], [5.0], [-2.0], [3.0]]), np.array([0, 1, -1, -1])
    totals = PointTotals(np.ones((2, 1)), [[1, 1]], [[1, 1]])
    for margin, near in product(("tolerance", "reached", "paper"), (False, True)):
        model = S2OCT(X, y, np.ones(4), totals, 1, margin_rule=margin)
        tree = Tree.stump([1.0], 2.9999 if near else 0.0, np.eye(2))
        assert model.keeps_margins(tree) == (not near)
    model = S2OCT(X, y, np.ones(4), totals, 2, margin_rule="reached")
    # The split on the left is through the point at 3, which does not get there.
    tree = Tree.from_heap(
        np.array([1, 1, 0]), np.ones((3, 1)), np.array([0.0, 3.0, 0.0]), np.ones((7, 2)), np.arange(7) % 2
    )
    assert model.keeps_margins(tree)
    assert not replace(model, margin_rule="paper").keeps_margins(tree)


def test_the_printed_program_knows_no_restriction():
    with pytest.raises(InvalidInputError, match="max_split_features=None"):
        replace(tiny(0), margin_rule="paper", formulation="paper", max_split_features=1).build()
