"""Splits of points with categories and gaps, against brute force; routing of them, against that of trees."""

from itertools import combinations

import numpy as np
import pytest
from tests.examples import looped

from treewright.core.budget import Budget
from treewright.engine.alternate import Alternation
from treewright.engine.leaves import ClassLeaves, MeanLeaves
from treewright.splits.mixed import best_category, best_single, cut_along
from treewright.splits.node import Node
from treewright.splits.points import Points, SplitRule, Splits
from treewright.splits.sparse_nodes import SparseNodes
from treewright.tree import Tree, route
from treewright.tree.structure import Shape

N_LEVELS = np.array([0, 4, 0, 3])


def mixed_points(rng, n=14, gaps=0.2, dtype=np.float64):
    """Two numbers with few values, a category of four levels and one of three."""
    X = np.column_stack(
        [
            rng.integers(0, 4, n) / 4,
            rng.integers(0, 4, n).astype(float),
            rng.integers(0, 3, n) / 3,
            rng.integers(0, 3, n).astype(float),
        ]
    )
    X[rng.random(X.shape) < gaps] = np.nan
    return X.astype(dtype)


def brute_single(X, stake):
    """The least stake on the left of any split of any numerical feature, whichever way gaps go; both sides used."""
    best = np.inf
    for j in (0, 2):
        gone = np.isnan(X[:, j])
        for cut in [-1.0, *np.unique(X[~gone, j])]:
            for missing_left in (False, True):
                left = np.where(gone, missing_left, X[:, j] <= cut)
                if 0 < left.sum() < len(left):
                    best = min(best, stake[left].sum())
    return best


def brute_category(X, stake):
    """The same of any subset of any category, missing values one more level."""
    best = np.inf
    for j in (1, 3):
        code = np.where(np.isnan(X[:, j]), -1, X[:, j]).astype(int)
        levels = range(-1, N_LEVELS[j])
        for size in range(len(levels) + 1):
            for chosen in combinations(levels, size):
                best = min(best, stake[np.isin(code, chosen)].sum())
    return best


@looped("seed", range(40))
def test_splits_of_one_feature_are_the_best_there_are(seed):
    rng = np.random.default_rng(seed)
    X = mixed_points(rng, gaps=[0.0, 0.2, 0.6][seed % 3])
    stake = rng.integers(-5, 6, len(X)).astype(float)
    points, rows = Points(X, N_LEVELS), np.arange(len(X))
    best = best_category(points, rows, stake)
    assert best.cost == brute_category(X, stake)
    assert stake[points.sides(rows, best.rule)].sum() == best.cost
    single = best_single(points, rows, stake)
    # A split that is no better than sending all points one way is nobody's.
    constant = min(0.0, stake.sum())
    truth = brute_single(X, stake)
    if truth < constant:
        assert single.cost == truth
        assert stake[points.sides(rows, single.rule)].sum() == truth
    else:
        assert single is None or single.cost >= constant


@looped("seed", range(20))
def test_a_cut_along_a_direction_is_the_best_with_its_gaps(seed):
    rng = np.random.default_rng(seed)
    X = mixed_points(rng)
    stake = rng.integers(-5, 6, len(X)).astype(float)
    normal = np.array([0.6, 0.0, -0.8, 0.0])
    points, rows = Points(X, N_LEVELS), np.arange(len(X))
    level = X @ np.where(normal == 0, 0, normal) if not np.isnan(X).any() else X[:, 0] * 0.6 - X[:, 2] * 0.8
    gone = np.isnan(level)
    best = np.inf
    for cut in [-9.0, *np.unique(np.round(level[~gone], 9)) + 1e-6]:
        for missing_left in (False, True):
            left = np.where(gone, missing_left, level <= cut)
            best = min(best, stake[left].sum())
    found = cut_along(points, rows, stake, normal)
    if best < min(0.0, stake.sum()):
        assert found.cost == best == stake[points.sides(rows, found.rule)].sum()
    else:
        assert found.cost >= best


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@looped("seed", range(10))
def test_points_walk_as_trees_route(seed, dtype):
    rng = np.random.default_rng(seed)
    X = mixed_points(rng, n=60, dtype=dtype)
    X[rng.random(60) < 0.1, 1] = 4.0  # a level that no split knows
    n, inner = 15, 7
    left, right = np.full(n, -1), np.full(n, -1)
    left[:inner], right[:inner] = 2 * np.arange(inner) + 1, 2 * np.arange(inner) + 2
    category = np.where(np.arange(n) < inner, rng.choice([-1, 1, 3], n), -1)
    weights = rng.normal(size=(n, 4)) * (rng.random((n, 4)) < 0.7)
    weights[:, [1, 3]] = 0.0
    weights[category >= 0] = 0.0
    tree = Tree(
        left,
        right,
        weights.astype(dtype),
        rng.normal(size=n) * 0.3,
        np.zeros((n, 1)),
        None,
        category,
        rng.random((n, 4)) < 0.5,
        rng.random(n) < 0.5,
    )
    points, splits = Points(X, N_LEVELS), Splits.of(tree, N_LEVELS)
    everyone = np.arange(60)
    found = points.walk(Shape.of(tree), splits, everyone, np.zeros(60, dtype=np.int64))
    assert np.array_equal(found, route(tree, X))
    assert splits.tree(left, right, tree.values, None) == tree
    for node in range(inner):
        at = Tree.stump([0.0] * 4, 0.0, [[1.0], [1.0]])
        alone = Splits.of(at, N_LEVELS)
        alone.put(0, splits.rule(node))
        stump = alone.tree(at.left, at.right, at.values, None)
        assert np.array_equal(points.sides(everyone, splits.rule(node)), route(stump, X) == 1)


def node_of(points, stake, rule):
    goes_left = points.sides(np.arange(len(stake)), rule)
    return Node(0, rule.normal, rule.threshold, np.arange(len(stake)), stake, goes_left, True, rule)


@pytest.mark.parametrize("most", [1, 2, None])
@looped("seed", range(20))
def test_the_step_of_a_node_is_at_most_the_best_split_of_one_feature(seed, most):
    rng = np.random.default_rng(seed)
    X = mixed_points(rng)
    stake = rng.integers(-5, 6, len(X)).astype(float)
    points, alpha = Points(X, N_LEVELS), 0.5
    solver = SparseNodes(alpha, most)
    for rule in (
        SplitRule(np.zeros(4), 1.0),
        SplitRule(np.array([1.0, 0, 0, 0]), 0.3, missing_left=True),
        SplitRule.subset(3, np.array([True, False, True]), True, 4),
    ):
        node = node_of(points, stake, rule)
        found = solver.better(points, node, Budget())
        now = stake[node.goes_left].sum() + alpha * np.any(rule.normal)
        best = min(0.0, stake.sum(), alpha + brute_category(X, stake), alpha + brute_single(X, stake))
        if found is None:
            assert now <= best + 1e-9
            continue
        cost = stake[points.sides(node.rows, found)].sum() + solver.price(found.normal[None, :])
        assert cost < now
        assert cost <= best + 1e-9
        if most == 1:
            assert cost == pytest.approx(best)


@pytest.mark.parametrize("most", [1, 2, None])
@looped("seed", range(4))
def test_the_objective_never_rises_and_is_that_of_the_tree(seed, most):
    rng = np.random.default_rng(seed)
    X = mixed_points(rng, n=120, gaps=0.15)
    y = ((np.nan_to_num(X[:, 0], nan=0.9) > 0.4) ^ np.isin(X[:, 1], [1, 3])).astype(int)
    weight = rng.integers(1, 4, 120).astype(float)
    normals = np.array([[0.0, 0, 1, 0], [1.0, 0, 0, 0], [1.0, 0, 0, 0]])
    start = Tree.from_heap(np.ones(3, dtype=bool), normals, np.array([0.4, 0.6, 0.2]), np.zeros((7, 1)), None)
    for leaves in (ClassLeaves(y, weight, 2), MeanLeaves(y[:, None] + rng.normal(size=(120, 2)), weight)):
        solver = SparseNodes(0.5, most)
        state = Alternation(start, X, leaves, solver, n_levels=N_LEVELS)
        seen = [state.objective]
        while state.improve(Budget()):
            seen.append(state.objective)
        assert seen == sorted(seen, reverse=True) and len(seen) > 1
        tree = state.tree()
        assert np.array_equal(route(tree, X), state.leaf)
        price = np.abs(tree.weights).sum() + np.count_nonzero(tree.category >= 0)
        assert state.price == pytest.approx(0.5 * price)


def test_a_category_of_many_levels_is_learned_in_one_pass():
    rng = np.random.default_rng(0)
    n, n_levels = 3000, 200
    X = np.column_stack([rng.random(n), rng.integers(0, n_levels, n).astype(float)])
    X[rng.random(n) < 0.05, 1] = np.nan
    wanted = np.isin(X[:, 1], np.arange(0, n_levels, 3)) | np.isnan(X[:, 1])
    start = Splits.of(Tree.stump([0.0, 0.0], 0.0, [[1.0, 0.0], [0.0, 1.0]]), np.array([0, n_levels]))
    start.put(0, SplitRule.subset(1, np.arange(n_levels) == 3, False, 2))
    tree = start.tree(np.array([1, -1, -1]), np.array([2, -1, -1]), np.zeros((3, 1)), None)
    leaves = ClassLeaves(wanted.astype(int), np.ones(n), 2)
    state = Alternation(tree, X, leaves, SparseNodes(0.1), n_levels=np.array([0, n_levels]))
    assert state.improve(Budget())
    assert state.loss == 0.0 and state.price == pytest.approx(0.1)
    assert np.array_equal(state.splits.listed[0], np.isin(np.arange(n_levels), np.arange(0, n_levels, 3)))
    assert state.splits.missing_left[0]
