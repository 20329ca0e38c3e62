"""Bounds that solvers claim, against the cost of trees that are made and measured without one."""

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from scipy.optimize import linprog

from treewright.core.budget import Budget
from treewright.data import PointTotals
from treewright.models.c2rf.objective import C2RF
from treewright.models.oct_h.objective import OCTH
from treewright.models.s2oct.distances import crowded_distances
from treewright.models.s2oct.objective import S2OCT
from treewright.optimize.conduct import Conduct
from treewright.optimize.course import optimize
from treewright.solvers import get_solver
from treewright.tree import Tree

GAP = 1e-6


def crowded(seed, gap=1e-7, **settings):
    """Points on a grid, each a few gaps away from it; a split of depth 1 on two of three features."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, (8, 3)) + gap * rng.integers(0, 4, (8, 3))
    y = np.r_[rng.permutation(np.arange(5) % 2), np.full(3, -1)]
    counts = np.bincount(rng.integers(0, 2, 3), minlength=2)[None]
    totals = PointTotals(np.ones((3, 1)), counts, counts)
    given = {"penalty": 0.7, "max_coefficient": 100.0, "margin_rule": "reached", "max_split_features": 2} | settings
    return S2OCT(X, y, rng.integers(1, 4, 8) / 2.0, totals, 1, **given)


def cost_of_the_best_split(model, features, right):
    """Cost of a split on some features with the unlabelled points `right` on the right, computed from it alone."""
    X, weight, s = model.X[:, features], model.weight, model.max_coefficient
    sign = np.where(model.y == 1, 1.0, -1.0)
    sign[model.unlabelled] = np.where(right, 1.0, -1.0)
    n, p = X.shape
    rows = np.column_stack([-sign[:, None] * X, sign, -np.eye(n)])
    found = linprog(
        np.r_[np.zeros(p + 1), np.where(model.y >= 0, weight, 0.0)],
        rows,
        -np.ones(n),
        bounds=[(-s, s)] * p + [(None, None)] + [(0.0, None if k >= 0 else 0.0) for k in model.y],
    )
    if found.x is None:
        return np.inf
    f = sign * (X @ np.clip(found.x[:p], -s, s) - found.x[p])
    if np.any(f[model.unlabelled] < 1.0 - 1e-9):
        return np.inf
    count = np.sum(right)
    missed = max(0, model.totals.low[0, 1] - count) + max(0, count - model.totals.high[0, 1])
    return float(weight[model.labelled] @ np.maximum(0.0, 1.0 - f[model.labelled])) + model.penalty * missed


def cost_of_some_tree(model):
    """Cost of the best of all splits, or what comes near to it from above."""
    sides = list(product([False, True], repeat=len(model.unlabelled)))
    features = combinations(range(model.X.shape[1]), model.max_split_features)
    return min(cost_of_the_best_split(model, list(some), np.array(right)) for some in features for right in sides)


@pytest.mark.parametrize("solver", ["highs", "scip"])
@pytest.mark.parametrize(
    ("seed", "gap", "s"), [(0, 1e-7, 100.0), (4, 1e-7, 100.0), (4, 1e-8, 1000.0), (7, 1e-8, 1000.0)]
)
def test_no_tree_is_below_a_bound_where_values_crowd(solver, seed, gap, s):
    """HiGHS takes values that differ by 1e-7 for equal; its bound was up to 3e-5 above a tree that tells them apart."""
    model = crowded(seed, gap, max_coefficient=s)
    claimed = get_solver(solver).solve(model.build(), time_limit=30.0, gap=GAP).bound
    assert model.sure_bound(claimed, GAP) <= cost_of_some_tree(model)


def test_the_bound_of_a_fit_is_the_sure_one():
    model = crowded(4)
    constant = model.repair(Tree.leaf([1.0, 0.0], n_features=3))
    heard = []
    conduct = Conduct(solver=get_solver("highs"), gap=GAP, told=heard.append)
    outcome = optimize(model, lambda best, budget: best.offer(constant) and None, conduct, Budget(30.0))
    assert 0.9 * cost_of_some_tree(model) < outcome.record.bound <= cost_of_some_tree(model)
    assert max(event.bound for event in heard) <= cost_of_some_tree(model)


def test_where_nothing_crowds_a_bound_loses_less_than_the_gap():
    model = crowded(0, gap=0.1)
    assert model.sure_bound(2.0, 1e-4) == pytest.approx(2.0, rel=1e-5) and model.sure_bound(2.0, 1e-4) < 2.0
    assert model.sure_bound(2.0, 0.0) == 2.0 and model.sure_bound(0.0, 1e-4) == 0.0
    near = replace(model, X=np.vstack([model.X[:-1], model.X[:1] + 1e-7]))
    assert near.sure_bound(2.0, 1e-4) < model.sure_bound(2.0, 1e-4) + 1e-12
    assert near.sure_bound(1e-9, 1e-4) >= 0.0 and near.sure_bound(-np.inf, 1e-4) == -np.inf


def test_other_models():
    oct_h = OCTH(np.array([[0.0], [1.0]]), np.array([0, 1]), np.ones(2), n_classes=2, depth=1)
    assert 0.5 * (1 - 2e-6) < oct_h.sure_bound(0.5, 1e-4) < 0.5
    votes = C2RF(np.array([[1, -1, 1]]), PointTotals([[3]], [[0, 3]], [[0, 3]]))
    assert votes.sure_bound(3.0, 1e-4) == 3.0  # rows are whole


def test_crowding_of_many_values_is_that_of_each():
    rng = np.random.default_rng(0)
    X = np.round(rng.random((200, 3)), 2)
    expected = np.zeros_like(X)
    for i, j in np.ndindex(*X.shape):
        first = X[i, j]
        while np.any(near := (X[:, j] < first) & (X[:, j] > first - 0.0105)):
            first = X[near, j].min()
        expected[i, j] = X[i, j] - first
    assert crowded_distances(X, 0.0105) == pytest.approx(expected)
