"""The eight promises, for every model and every solver."""

from __future__ import annotations

import time
import warnings
from functools import cache

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning

from tests.contracts.cases import CASES, SOLVERS, Case
from treewright.budget import Budget
from treewright.estimators._optimize import optimize
from treewright.formulations import TreeFormulation
from treewright.program import check
from treewright.search import Incumbent
from treewright.solvers import Result, Status, get_solver
from treewright.tree import Tree, predict_labels, route

every_model = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
every_estimator = pytest.mark.parametrize("case", [c for c in CASES if c.estimator], ids=lambda case: case.name)
every_solver = pytest.mark.parametrize("solver", SOLVERS)
SEEDS = [0, 1, 2]


@cache
def solved(case: Case, solver: str, seed: int, size: str = "small") -> tuple[TreeFormulation, Result]:
    """A formulation and its solution, shared by the promises that look at it from several sides."""
    model = getattr(case, size)(seed)
    return model, get_solver(solver).solve(model.build(), time_limit=60.0, gap=1e-6)


def rounding(model: TreeFormulation, result: Result) -> float:
    """How far the objective of a solver's point may be off, given by how much the point violates rows."""
    program = model.build()
    return 1e-6 + float(np.abs(program.cost).sum()) * check(program, result.x).worst


def fit(case: Case, X, y, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return case.estimator(**{"time_limit": 20.0, "random_state": 0, **parameters}).fit(X, y)


def random_tree(model, rng: np.random.Generator) -> Tree:
    """A tree with random splits, most of which no formulation would allow as they are."""
    n_branches, (n, p) = 2**model.depth - 1, model.X.shape
    weights = rng.normal(size=(n_branches, p)) * rng.integers(0, 2, (n_branches, p))
    threshold = np.einsum("ij,ij->i", weights, model.X[rng.integers(0, n, n_branches)])
    values = rng.random((2 * n_branches + 1, model.n_classes))
    return Tree.from_heap(np.ones(n_branches), weights, threshold, values, values.argmax(axis=1))


def heap_leaves(model, tree: Tree) -> np.ndarray:
    """Leaf of the complete tree that each point reaches; an unsplit node sends its points to its last leaf."""
    heap = np.array(tree.heap_numbers)[route(tree, model.X)]
    while np.any(heap < 2**model.depth):
        heap = np.where(heap < 2**model.depth, 2 * heap + 1, heap)
    return heap


@every_solver
@every_model
@pytest.mark.parametrize("seed", SEEDS)
def test_1_decoding_routes_points_as_the_solution_says(case, solver, seed):
    model, result = solved(case, solver, seed)
    x = result.x
    assert np.array_equal(heap_leaves(model, model.decode(x)), model.leaves_of(x))


@every_estimator
def test_1_predictions_agree_in_the_units_of_the_data(case, monkeypatch):
    seen = {}
    from treewright.estimators import _program

    finish = _program.ProgramClassifier._finish

    def spy(self, problem, outcome, scaling, *more):
        seen["labels"] = predict_labels(outcome.solution, scaling.apply(problem.X))
        finish(self, problem, outcome, scaling, *more)

    monkeypatch.setattr(_program.ProgramClassifier, "_finish", spy)
    X, y = make_classification(60, 4, n_informative=3, n_redundant=0, random_state=3)
    X = X * [1e3, 1e-4, 1.0, 7.0] + [5e4, 0.0, -3.0, 1e-2]
    model = fit(case, X, np.array(["no", "yes"])[y], time_limit=5.0)
    assert np.array_equal(model.predict(X), model.classes_[seen["labels"]])


@every_solver
@every_model
@pytest.mark.parametrize("seed", SEEDS)
def test_2_an_encoded_solution_is_feasible_and_costs_the_same(case, solver, seed):
    model, result = solved(case, solver, seed)
    found = check(model.build(), model.encode(model.decode(result.x)))
    assert found.worst <= 1e-6, found.worst_name
    assert found.objective == pytest.approx(result.objective, abs=rounding(model, result))


@every_model
@pytest.mark.parametrize("seed", range(20))
def test_2_any_tree_can_be_encoded(case, seed):
    model = case.small(seed)
    tree = random_tree(model, np.random.default_rng(seed))
    found = check(model.build(), model.encode(tree))
    assert found.worst <= 1e-6, found.worst_name
    assert found.objective == pytest.approx(model.objective(model.repair(tree)), abs=1e-9)


@every_solver
@every_model
@pytest.mark.parametrize("seed", SEEDS)
def test_3_the_tree_measures_what_the_solver_says(case, solver, seed):
    model, result = solved(case, solver, seed)
    assert model.objective(model.decode(result.x)) == pytest.approx(result.objective, abs=rounding(model, result))


@every_solver
@every_model
@pytest.mark.parametrize("seconds", [0.001, 0.5])
def test_4_a_start_is_never_made_worse(case, solver, seconds):
    model = case.small(0)
    best = Incumbent(model)
    for seed in range(5):
        best.offer(random_tree(model, np.random.default_rng(seed)))
    result = get_solver(solver).solve(model.build(), start=model.encode(best.solution), time_limit=seconds)
    assert result.objective <= best.objective + 1e-9


@every_solver
@every_model
@pytest.mark.parametrize("seed", SEEDS)
def test_5_bound_and_objective_enclose_the_brute_force_optimum(case, solver, seed):
    model, result = solved(case, solver, seed, "tiny")
    optimum = case.optimum(model)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(optimum, abs=rounding(model, result))
    assert result.bound <= optimum + 1e-6
    assert model.lower_bound() <= optimum + 1e-9


@every_model
@pytest.mark.parametrize("seed", range(8))
def test_5_no_feasible_tree_is_below_the_brute_force_optimum(case, seed):
    model = case.tiny(seed)
    optimum = case.optimum(model)
    rng = np.random.default_rng(seed)
    values = [model.objective(model.repair(random_tree(model, rng))) for _ in range(50)]
    assert min(values) >= optimum - 1e-9


@every_solver
@every_estimator
def test_6_a_time_limit_is_kept_and_something_is_returned(case, solver):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 6)), rng.integers(0, 2, 120)
    if solver == "gurobi":  # inside its free limit
        X, y = X[:40, :3], y[:40]
    began = time.perf_counter()
    model = fit(case, X, y, solver=solver, time_limit=2.0)
    assert time.perf_counter() - began <= 2.0 * 1.1 + 1.0  # the second is for a machine under load
    assert model.bound_ <= model.objective_
    assert model.status_ in ("optimal", "time_limit")
    assert model.predict(X).shape == y.shape


@every_solver
@every_estimator
def test_7_the_same_fit_gives_the_same_tree(case, solver):
    X, y = load_iris(return_X_y=True)
    X, y = X[::4], y[::4]
    first, second = (fit(case, X, y, solver=solver) for _ in range(2))
    assert first.status_ == "optimal"
    assert first.tree_ == second.tree_


@every_estimator
def test_8_the_order_of_rows_does_not_matter(case):
    X, y = load_iris(return_X_y=True)
    X, y = X[::3], y[::3]
    order = np.random.default_rng(0).permutation(len(y))
    plain, turned = fit(case, X, y), fit(case, X[order], y[order])
    assert plain.status_ == turned.status_ == "optimal"
    assert plain.tree_ == turned.tree_


@every_estimator
def test_8_names_of_labels_and_features_do_not_matter(case):
    pandas = pytest.importorskip("pandas")
    X, y = load_iris(return_X_y=True)
    X, y = X[::3], y[::3]
    plain = fit(case, X, y)
    named = fit(case, pandas.DataFrame(X, columns=list("abcd")), np.array(["u", "v", "w"])[y])
    assert plain.status_ == named.status_ == "optimal"
    assert plain.tree_ == named.tree_
    turned = fit(case, X, np.array(["w", "u", "v"])[y])
    assert turned.objective_ == pytest.approx(plain.objective_, abs=1e-9)


@every_estimator
def test_8_units_of_features_do_not_matter(case):
    X, y = load_iris(return_X_y=True)
    X, y = X[::3], y[::3]
    plain = fit(case, X, y)
    moved = fit(case, X * [1024.0, 0.125, 2.0, 1.0] + [0.0, 4.0, -8.0, 0.5], y)
    assert moved.status_ == plain.status_ == "optimal"
    assert moved.objective_ == pytest.approx(plain.objective_, abs=1e-9)
    turned = fit(case, X[:, ::-1], y)
    assert turned.objective_ == pytest.approx(plain.objective_, abs=1e-9)


@every_model
def test_a_stopped_budget_returns_a_tree(case):
    """What Ctrl-C does, without the signal: the search hears of it after its first tree, no solver is started."""
    model, budget = case.small(0), Budget(None)

    def search(best: Incumbent, time: Budget) -> None:
        best.offer(random_tree(model, np.random.default_rng(0)))
        budget.stop()
        assert time.over

    outcome = optimize(model, search, None, budget, gap=1e-4, threads=1, seed=0)
    assert outcome.status is Status.INTERRUPTED
    assert outcome.bound <= outcome.objective == model.objective(outcome.solution)
