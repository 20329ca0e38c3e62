"""The search for OCTSVM: costs along lines, improvements that never harm, optima of tiny data."""

import numpy as np
import pytest
from scipy.optimize import minimize
from tests.contracts.brute_force_octsvm import best_octsvm
from tests.examples import looped

from treewright.core.budget import Budget
from treewright.engine.draws import draws_of
from treewright.models.octsvm.machine_loops import least_along, length, machine, node_cost, range_within
from treewright.models.octsvm.machines import NORMS, Machines, Prices
from treewright.models.octsvm.node_loops import improve_node, kicked, last_values, total_cost
from treewright.models.octsvm.objective import OCTSVM, RESVM
from treewright.models.octsvm.search import (
    grown_octsvm,
    leaf_machines,
    machines_of_tree,
    search_octsvm,
    tree_of_machines,
)
from treewright.optimize.incumbent import Incumbent
from treewright.tree import Tree, predict_labels

R2 = [0.0, 0.5, 1.0, 2.0, 3.5, np.inf]


def points(n, p, seed):
    rng = np.random.default_rng(seed)
    X = rng.random((n, p))
    y = (np.abs(X[:, 0] - 0.5) < 0.25).astype(np.int64) ^ (rng.random(n) < 0.15)
    y[:2] = 0, 1
    return X, y, rng.integers(1, 4, n).astype(float)


def bounded(n, p, seed, depth, **given):
    X, y, weight = points(n, p, seed)
    prices = {"c1": 1.0, "c2": 1.0, "c3": 0.5, "max_norm": 6.0, "margin_price": 0.0}
    return OCTSVM(X, y, weight, depth, **(prices | given))


@looped("r2", R2)
@looped("seed", range(4))
def test_the_least_cost_along_a_line_is_that_of_a_fine_grid(r2, seed):
    rng = np.random.default_rng(seed)
    n = 12
    a, b, sign = rng.normal(size=n), rng.normal(size=n), rng.choice([-1.0, 1.0], n)
    b[0] = 0.0
    weight, left, right = rng.random(n), rng.random(n) * 2, rng.random(n) * 2
    left[:3] = right[:3]
    place, cost = least_along(a, b, sign, weight, left, right, r2, -3.0, 2.0)
    assert -3.0 <= place <= 2.0
    # a little beyond a jump the cost is what the line changes over that way, no more
    assert node_cost(a + place * b, sign, weight, left, right, r2) == pytest.approx(cost, abs=0.01)
    grid = min(node_cost(a + t * b, sign, weight, left, right, r2) for t in np.linspace(-3.0, 2.0, 4001))
    assert cost <= grid + 1e-9
    assert cost >= grid - 0.02


@looped("norm", ["l2", "l1", "linf"])
@looped("seed", range(3))
def test_the_range_of_a_line_within_a_ball_ends_at_its_surface(norm, seed):
    rng = np.random.default_rng(seed)
    w, u = rng.normal(size=4), rng.normal(size=4)
    order = {"l2": 2, "l1": 1, "linf": np.inf}[norm]
    limit = 1.5 * np.linalg.norm(w, order)
    assert length(w, NORMS[norm]) == pytest.approx(np.linalg.norm(w, order))
    low, high = range_within(w, u, limit, NORMS[norm])
    assert low < 0 < high
    for t in (low, high):
        assert np.linalg.norm(w + t * u, order) == pytest.approx(limit, rel=1e-6)
        assert np.linalg.norm(w + t * u, order) <= limit


@pytest.mark.parametrize("norm", ["l2", "l1", "linf"])
def test_a_machine_is_within_its_ball_and_near_the_best_one(norm):
    rng = np.random.default_rng(0)
    X = rng.random((60, 3))
    side = np.where(X @ [1.0, -1.0, 0.5] > 0.2, 1.0, -1.0)
    w, b = machine(X, side, np.ones(60), 4.0, NORMS[norm], draws_of(rng))
    assert length(w, NORMS[norm]) <= 4.0 * (1 + 1e-9)
    hinge = np.maximum(0, 1 - side * (X @ w + b)).sum()
    order = {"l2": 2, "l1": 1, "linf": np.inf}[norm]

    def cost(v):
        long = np.linalg.norm(v[:3], order)
        v = v * min(1.0, 4.0 / max(long, 1e-12)) if long > 4 else v
        return np.maximum(0, 1 - side * (X @ v[:3] + v[3])).sum()

    best = min(minimize(cost, np.append(w, b) * s, method="Nelder-Mead").fun for s in (1.0, 0.5))
    assert hinge <= (1.25 if norm == "l2" else 1.6) * best + 1.0


@looped("depth", [0, 1, 2])
@looped("c2", [0.5, 2.0, np.inf])
def test_costs_of_arrays_are_the_objective_of_their_tree(depth, c2):
    model = bounded(40, 3, depth, depth, c2=c2)
    prices = Prices(depth, c2, 0.5, 6.0, NORMS["l2"])
    rng = np.random.default_rng(1)
    machines = leaf_machines(depth, 3, model.sign, model.weight)
    for everywhere in (True, False, False):
        kicked(model.X, model.sign, machines, prices, everywhere, draws_of(rng))
        tree = tree_of_machines(machines)
        cost = total_cost(model.X, model.sign, model.weight, machines, prices)
        assert cost == pytest.approx(model.objective(tree), rel=1e-9)
        assert np.array_equal(last_values(model.X, machines) >= 0, predict_labels(tree, model.X) == 1)
        again = machines_of_tree(tree, depth)
        assert total_cost(model.X, model.sign, model.weight, again, prices) == pytest.approx(cost, rel=1e-12)


@pytest.mark.parametrize("norm", ["l2", "l1", "linf"])
def test_no_step_makes_a_tree_dearer_or_its_normals_too_long(norm):
    X, y, weight = points(50, 3, 5)
    sign = 2.0 * y - 1.0
    prices = Prices(2, 1.0, 0.5, 5.0, NORMS[norm])
    rng = np.random.default_rng(0)
    machines = Machines(np.zeros((7, 3)), np.zeros(7), np.zeros(7, dtype=bool), np.ones(7))
    kicked(X, sign, machines, prices, True, draws_of(rng))
    cost = total_cost(X, sign, weight, machines, prices)
    for t in [6, 5, 4, 3, 2, 1, 0] * 3:
        changed = improve_node(X, sign, weight, machines, prices, t, 0.0, draws_of(rng))
        now = total_cost(X, sign, weight, machines, prices)
        assert now <= cost + 1e-9
        assert changed or now == pytest.approx(cost)
        assert all(length(machines.w[k], NORMS[norm]) <= 5.0 * (1 + 1e-9) for k in range(7) if machines.split[k])
        assert not np.any(machines.split[3:] & ~machines.split[[1, 1, 2, 2]])
        cost = now


@pytest.mark.parametrize("seed", [0])
@pytest.mark.parametrize("given", [{}, {"max_norm": None, "margin_price": 1.0}, {"norm": "l1"}])
def test_the_search_finds_the_optima_of_tiny_data(seed, given):
    model = bounded(5, 1, seed, 1, c3=0.2, **given)
    best = Incumbent(model, floor=0.0)
    search_octsvm(best, model, [], Budget(), seed=seed, patience=100)
    optimum = best_octsvm(model)
    assert best.objective >= optimum - 1e-6
    assert best.objective <= optimum + 1e-4 * max(1.0, optimum)


def test_the_search_of_a_machine_finds_the_optimum():
    X, y, weight = points(8, 2, 3)
    model = RESVM(X, y, weight, c1=2.0, c2=1.5)
    best = Incumbent(model, floor=0.0)
    search_octsvm(best, model, [], Budget(), patience=30)
    assert best.objective == pytest.approx(best_octsvm(model), rel=1e-4)


def test_a_start_is_never_made_worse_and_the_seed_decides():
    model = bounded(60, 3, 2, 2)
    start = model.repair(Tree.stump([1.0, 0.0, 0.0], 0.25, [[1.0, 0.0], [0.0, 1.0]]))
    found = []
    for _ in range(2):
        best = Incumbent(model, floor=0.0)
        search_octsvm(best, model, [start], Budget(), seed=4, patience=2)
        assert best.objective <= model.objective(start) + 1e-9
        assert best.objective == pytest.approx(model.objective(best.solution))
        found.append(best.objective)
    assert found[0] == found[1]


def test_without_time_a_leaf_and_the_starts_are_offered():
    model = bounded(60, 3, 2, 2)
    start = Tree.stump([1.0, 0.0, 0.0], 0.25, [[1.0, 0.0], [0.0, 1.0]])
    best = Incumbent(model, floor=0.0)
    search_octsvm(best, model, [start], Budget(1e-9))
    assert best.objective <= min(model.leaf_objective, model.objective(model.repair(start))) + 1e-9


def test_more_points_than_are_looked_at(monkeypatch):
    monkeypatch.setattr("treewright.models.octsvm.search._MANY", 100)
    model = bounded(300, 2, 0, 1)
    best = Incumbent(model, floor=0.0)
    search_octsvm(best, model, [], Budget(), patience=1)
    assert best.objective < 0.8 * model.leaf_objective


def test_restarts_do_not_harm():
    X, y, weight = points(60, 2, 7)
    sign, prices = 2.0 * y - 1.0, Prices(1, 1.0, 0.5, 6.0, NORMS["l2"])
    costs = []
    for restarts in (0, 4):
        machines = grown_octsvm(X, sign, weight, prices, np.random.default_rng(0), Budget(), restarts)
        costs.append(total_cost(X, sign, weight, machines, prices))
    assert costs[1] <= costs[0] + 1e-9
