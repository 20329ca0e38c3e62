"""The promises of estimators, for each one that makes them (see `NOT_PROMISED`), with unlabelled rows and totals.

What repetition, order and units may change is in test_estimator_changes.py.
"""

from __future__ import annotations

import warnings
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import treewright as tw
from tests.clock import within
from tests.contracts import measures
from tests.contracts.brute_force import (
    best_c2rf,
    best_lap_svm,
    best_oct_h,
    best_s2oct,
    best_s2oct_stump_of_one_feature,
    best_svm1odt,
)
from tests.contracts.brute_force_axis import best_binoct, best_fair
from tests.contracts.brute_force_oct import best_oct
from tests.contracts.brute_force_octsvm import best_octsvm
from tests.contracts.cases import CASES, SOLVERS
from tests.contracts.estimators import (
    FITS,
    NOT_PROMISED,
    PROMISES,
    fits_of,
    limits,
    numbers,
    predicted,
    run,
    semi,
    tao_measure,
    unlabelled,
    weights,
)
from tests.contracts.inside import PointTotals
from tests.contracts.promised import RAN, SOLVED, each, elsewhere, in_other_units, plain
from tests.kept_fits import Stump
from treewright.models.octsvm.objective import OCTSVM, RESVM
from treewright.solvers import get_solver

pytestmark = pytest.mark.usefixtures("shortest_searches")


# ---------------------------------------------------------------------- 1, 2, 3: what is fitted is what is said


SUPERVISED = ("BinOCT", "FairOCT", "OCT", "RESVM", "SVM1", "TAO")
SAYS_ITS_LABELS = [fit for fit in fits_of(1) if not fit.kind.startswith(("LapTAO", *SUPERVISED))]
"""Those with ``transduction_`` from the model itself; LapTAO's is from the graph."""


@each(1, given=SAYS_ITS_LABELS)
def test_1_labels_of_training_rows_are_those_of_predict_in_any_units(fit):
    for model, data in ((plain(fit), fit.data()), (elsewhere(fit), in_other_units(fit))):
        hidden = unlabelled(data)
        assert hidden.any()
        assert np.array_equal(model.transduction_[~hidden], np.asarray(data["y"])[~hidden])
        if fit.name != "totals-forest":  # forests tie rows, and prices cannot part those
            assert np.array_equal(model.transduction_[hidden], predicted(model, data)[hidden])


@each(1, given=[fit for fit in fits_of(1) if fit.kind.startswith(("LapTAO", "S2OCT", *SUPERVISED))])
def test_1_the_objective_is_that_of_the_tree_in_any_units(fit):
    data, model = in_other_units(fit), elsewhere(fit)
    assert model.objective_ == pytest.approx(fit.measure(model, data), rel=1e-6, abs=1e-6)


def test_2_formulations_of_all_solved_models_are_among_the_cases():
    prefixes = {"OCTHClassifier": "oct-h", "S2OCTClassifier": "s2oct", "C2RFClassifier": "c2rf"}
    prefixes |= {"SVM1ODTClassifier": "svm1odt", "OCTSVMClassifier": "octsvm", "RESVMClassifier": "re-svm"}
    prefixes |= {"BinOCTClassifier": "binoct", "FairOCTClassifier": "fair-oct"}
    prefixes |= {"OCTClassifier": "oct-mixed"}
    for kind, prefix in prefixes.items():
        assert any(case.name.startswith(prefix) for case in CASES)
        RAN[2].add(kind)


@each(3)
def test_3_the_objective_is_that_of_the_fitted_model(fit):
    data, model = fit.data(), plain(fit)
    assert model.objective_ == pytest.approx(fit.measure(model, data), rel=1e-7, abs=1e-9)
    if fit.branches:
        assert model.objective_ > 0 and model.status_ == "optimal"


# ---------------------------------------------------------------------- 4: starts


def start_of(data: dict[str, Any], n_classes: int, seed: int) -> tw.Tree:
    """A random tree of depth 2 with the best labels of its leaves."""
    rng, X, p = np.random.default_rng(seed), data["X"], data["X"].shape[1]
    normals = rng.normal(size=(3, p)) / np.ptp(X, axis=0)
    threshold = np.einsum("ij,ij->i", normals, X[rng.integers(0, len(X), 3)])
    return tw.Tree.from_heap(np.ones(3), normals, threshold, rng.random((7, n_classes)), rng.integers(0, n_classes, 7))


@each(4, "tao-classifier", "tao-axis", "tao-regressor")
@pytest.mark.parametrize("seed", [0, 1])
def test_4_a_start_of_alternating_optimization_is_never_made_worse(fit, seed):
    data = fit.data()
    n_outputs = 3 if fit.kind == "TAOClassifier" else 1
    start = start_of(data, n_outputs, seed)
    if fit.name == "tao-axis":
        one = np.arange(start.n_features) == np.abs(start.weights).argmax(axis=1)[:, None]
        start = tw.Tree(start.left, start.right, start.weights * one, start.threshold, start.values, start.labels)
    leaf, weight = measures.reached_leaves(start, data["X"]), weights(data)
    values = np.zeros((start.n_nodes, n_outputs))
    for t in np.unique(leaf):
        inside = leaf == t
        target = np.eye(3)[data["y"]] if n_outputs == 3 else data["y"][:, None]
        values[t] = np.average(target[inside], axis=0, weights=weight[inside])
    start = start.with_leaves(values, values.argmax(axis=1) if n_outputs == 3 else None)
    model = run(fit, data, warm_start=start, stretch=0.0)
    given = SimpleNamespace(tree_=start, alpha_=model.alpha_, leaf_ridge=0.0)
    if n_outputs == 3:
        given.classes_ = model.classes_
    assert model.objective_ <= tao_measure(given, data) * (1 + 1e-9)
    again = run(fit, data, warm_start=model, stretch=0.0)
    assert again.objective_ <= model.objective_ * (1 + 1e-9)


@each(4, "laptao-classifier", "laptao-regressor")
def test_4_rounds_along_the_graph_end_with_the_best_one(fit):
    first = run(fit, stretch=0.0, max_iter=0)
    model = run(fit, stretch=0.0)
    assert model.objective_ <= first.objective_ * (1 + 1e-9)
    again = run(fit, stretch=0.0, warm_start=model)
    assert again.objective_ <= again.trace_[0][1] * (1 + 1e-9)


@each(
    *(4, "oct-mip", "oct-h-priced", "binoct", "fair-oct", "s2oct-hard", "s2oct-few"),
    *("svm1odt", "octsvm", "octsvm-priced", "resvm"),
)
@pytest.mark.parametrize("seconds", [0.01, 20.0])
def test_4_a_tree_to_start_from_is_never_made_worse(fit, seconds):
    """The start is the optimum, which a search without time would not find."""
    best = plain(fit)
    assert best.status_ == "optimal"
    model = run(fit, warm_start=best, time_limit=seconds, random_state=1)
    assert model.objective_ <= best.objective_ * (1 + 1e-9)
    if seconds < 1:
        bare = run(fit, warm_start=best.tree_, time_limit=seconds, random_state=1)
        assert bare.objective_ <= best.objective_ * (1 + 1e-9)


@each(4, "c2rf-paper")
def test_4_weights_to_start_from_are_never_made_worse(fit):
    model, data = fit.make(warm_start=True), fit.data()
    objectives = []
    for limit in (60.0, 0.01):
        model.set_params(time_limit=limit)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            objectives.append(model.fit(**data).objective_)
    assert objectives[1] <= objectives[0]


# ---------------------------------------------------------------------- 5: brute force on tiny tables


def tiny_s2oct(seed: int, n_classes: int, grouped: bool, labelled: int, hidden: int) -> dict[str, Any]:
    """Rows on a coarse grid, so that some are equal; random labels, weights, totals that few trees meet."""
    rng = np.random.default_rng(seed)
    n = labelled + hidden
    X = rng.integers(-3, 4, (n, 2)).astype(float)
    y = np.concatenate([rng.permutation(np.arange(labelled) % n_classes), np.full(hidden, -1)])
    data = {"X": X, "y": y, "sample_weight": rng.integers(1, 4, n) / 2.0}
    if not grouped:
        return data | {"totals": {1: int(rng.integers(0, hidden + 1))}}
    groups = np.arange(n) % 2
    totals = {g: {1: (int(rng.integers(0, 2)), 1)} for g in (0, 1)}
    return data | {"groups": groups, "totals": totals}


TINY_S2OCT = {
    "tolerance": ({"max_depth": 1, "max_coefficient": 0.4, "penalty": 0.5}, (0, 2, False, 6, 4)),
    "reached": ({"max_depth": 1, "max_coefficient": 3.0, "margin_rule": "reached"}, (2, 2, False, 4, 2)),
    "everywhere": ({"max_depth": 1, "max_coefficient": 3.0, "margin_rule": "paper"}, (2, 2, False, 4, 2)),
    "groups": ({"max_depth": 1, "max_coefficient": 0.4}, (3, 2, True, 5, 6)),
    "classes": ({"max_depth": 2, "max_coefficient": 0.5, "penalty": 0.3}, (4, 3, False, 4, 2)),
    "one feature": (
        {"max_depth": 1, "max_split_features": 1, "max_coefficient": 0.4, "penalty": 0.5},
        (0, 2, False, 6, 4),
    ),
    "one feature, groups": ({"max_depth": 1, "max_split_features": 1, "max_coefficient": 0.4}, (3, 2, True, 5, 6)),
}


@pytest.mark.parametrize("name", list(TINY_S2OCT))
def test_5_s2oct_is_as_good_as_the_brute_force_optimum(name):
    parameters, table = TINY_S2OCT[name]
    data = tiny_s2oct(*table)
    settings = {"max_split_features": None, "time_limit": 60.0, "random_state": 0}
    model = run_solved(tw.S2OCTClassifier(**(settings | parameters)), data)
    given, names, low, high = limits(model, data)
    size = (given[:, None] == np.array(names)).astype(int)
    problem = SimpleNamespace(
        X=data["X"] - (data["X"].max(axis=0) + data["X"].min(axis=0)) / 2,
        y=numbers(model, data["y"]),
        weight=data["sample_weight"],
        totals=PointTotals(size, low, high),
        n_classes=len(model.classes_),
        depth=parameters["max_depth"],
        penalty=parameters.get("penalty", 1.0),
        max_coefficient=parameters["max_coefficient"],
        margin_rule=parameters.get("margin_rule", "tolerance"),
        tolerance=1e-3,
    )
    if parameters.get("max_split_features") != 1:
        enclosed(model, best_s2oct(problem))
        return
    enclosed(model, best_s2oct_stump_of_one_feature(problem))
    assert np.count_nonzero(model.tree_.weights, axis=1).max() <= 1


@pytest.mark.parametrize("method", ["search", "mip"])
@pytest.mark.parametrize("seed", [0, 1])
def test_5_oct_is_as_good_as_the_brute_force_optimum(method, seed):
    rng = np.random.default_rng(seed)
    X, y, weight = rng.integers(0, 6, (8, 2)) / 5.0, np.arange(8) % 3, rng.integers(1, 4, 8).astype(float)
    model = tw.OCTClassifier(complexity=0.02, min_samples_leaf=2, method=method, random_state=0)
    data = {"X": X, "y": y, "sample_weight": weight}
    problem = SimpleNamespace(X=X, y=y, weight=weight, size=None, n_classes=3, n_levels=None, depth=2)
    problem.min_leaf, problem.complexity = 2.0, 0.02
    enclosed(run_solved(model, data), best_oct(problem))


@pytest.mark.parametrize("seed", [0, 1])
def test_5_oct_h_is_as_good_as_the_brute_force_optimum(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (7, 2)) / 5.0
    X[:2] = [[0.0, 0.0], [1.0, 1.0]]  # features are scaled to [0, 1], which they are already
    data = {"X": X, "y": np.arange(7) % 3, "sample_weight": rng.integers(1, 4, 7).astype(float)}
    model = run_solved(tw.OCTHClassifier(max_depth=1, margin=0.05, complexity=0.02, random_state=0), data)
    problem = SimpleNamespace(
        X=X, y=data["y"], weight=data["sample_weight"], size=None, n_classes=3, depth=1, margin=0.05
    )
    problem.min_leaf, problem.complexity = 1.0, 0.02
    enclosed(model, best_oct_h(problem))


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("kind", [tw.BinOCTClassifier, tw.FairOCTClassifier])
def test_5_trees_of_single_features_are_as_good_as_the_brute_force_optimum(kind, seed):
    rng = np.random.default_rng(seed)
    X, weight = rng.integers(0, 4, (8, 2)).astype(float), rng.integers(1, 4, 8) / 4.0
    data = {"X": X, "y": np.arange(8) % 3, "sample_weight": weight}
    problem = SimpleNamespace(X=X, y=data["y"], weight=weight, n_classes=3, depth=2)
    if kind is tw.BinOCTClassifier:
        enclosed(run_solved(kind(random_state=0), data), best_binoct(problem))
        return
    group = rng.permutation(np.arange(8) % 2)
    problem.protected, problem.complexity, problem.fairness_weight = np.eye(2)[group] * weight[:, None], 0.01, 0.2
    model = run_solved(kind(complexity=0.01, fairness_weight=0.2, random_state=0), data | {"protected": group})
    enclosed(model, best_fair(problem))


@pytest.mark.parametrize("seed", [0, 1])
def test_5_svm1odt_is_as_good_as_the_brute_force_optimum(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (7, 2)) / 5.0
    X[:2] = [[0.0, 0.0], [1.0, 1.0]]  # features are scaled to [0, 1], which they are already
    weight = rng.integers(1, 4, 7).astype(float)
    data = {"X": X, "y": np.arange(7) % 3, "sample_weight": weight}
    prices = {"epsilon": 0.1, "alpha_1": 12.0, "alpha_2": 0.3}
    model = run_solved(tw.SVM1ODTClassifier(max_depth=1, **prices, random_state=0), data)
    weight = weight / measures.weight_of_a_row(weight)
    problem = SimpleNamespace(X=X, y=data["y"], weight=weight, size=weight, n_classes=3, depth=1, **prices)
    problem.categorical, problem.max_coefficient, problem.tolerance = np.zeros(2, dtype=bool), 10.0, 1e-4
    enclosed(model, best_svm1odt(problem) * measures.weight_of_a_row(data["sample_weight"]))


@pytest.mark.parametrize("depth", [0, 1])
def test_5_octsvm_is_as_good_as_the_brute_force_optimum(depth):
    rng = np.random.default_rng(depth)
    n = 5 if depth else 6
    X = rng.integers(0, 9, (n, 1 if depth else 2)) / 8.0
    X[0], X[1] = 0.0, 1.0  # features are scaled to [0, 1], which they are already
    weight = rng.integers(1, 4, n).astype(float)
    data = {"X": X, "y": np.arange(n) % 2, "sample_weight": weight}
    model = run_solved(tw.OCTSVMClassifier(depth, c1=1.0, c2=1.0, c3=0.1, relabel="tree", random_state=0), data)
    unit = measures.weight_of_a_row(weight)
    merged = OCTSVM(X, data["y"], weight / unit, depth, c1=1.0, c2=1.0, c3=0.1)
    enclosed(model, best_octsvm(merged) * unit)


def test_5_resvm_is_as_good_as_the_brute_force_optimum():
    data = {"X": np.array([[0.0], [0.25], [0.5], [1.0], [0.75], [0.125]]), "y": np.array([0, 0, 1, 1, 0, 1])}
    model = run_solved(tw.RESVMClassifier(c1=3.0, c2=2.0, random_state=0), data)
    enclosed(model, best_octsvm(RESVM(data["X"], data["y"], np.ones(6), c1=3.0, c2=2.0)))


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("grouped", [False, True])
def test_5_c2rf_is_as_good_as_the_brute_force_optimum(seed, grouped):
    rng = np.random.default_rng(seed)
    X, truth, y = semi(40, 3, 2, seed, labelled=8)
    members = [Stump(int(rng.integers(3)), float(rng.uniform(4, 12))) for _ in range(4)]
    groups = np.arange(40) % 2 if grouped else None
    hidden = y == -1
    given = groups[hidden] if grouped else np.zeros(hidden.sum(), dtype=int)
    asked = {g: int(np.sum(given == g) * rng.choice([0.1, 0.9])) for g in np.unique(given).tolist()}
    totals = {g: {1: n} for g, n in asked.items()} if grouped else {1: asked[0]}
    data = {"X": X, "y": y, "totals": totals} | ({"groups": groups} if grouped else {})
    model = run_solved(tw.C2RFClassifier(members, class_prices=False, random_state=0), data)
    votes = np.array([2 * (X[hidden][:, m.feature] > m.threshold) - 1 for m in members]).T
    patterns, of = np.unique(votes, axis=0, return_inverse=True)
    size = np.zeros((len(patterns), len(asked)))
    np.add.at(size, (of.reshape(-1), given), 1.0)
    positive = np.array(list(asked.values()))
    total = np.column_stack([size.sum(axis=0).astype(int) - positive, positive])
    problem = SimpleNamespace(votes=patterns, totals=PointTotals(size, total, total), least=1.0, most=100.0)
    enclosed(model, best_c2rf(problem))
    # weights of the fit have mean 1; the bounds hold for their ratios
    assert model.weights_.max() / model.weights_.min() <= 100.0 * (1 + 1e-9)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("prices", [(0.05, 0.0), (0.02, 20.0)])
def test_5_lap_svm_is_as_good_as_another_solver(seed, prices):
    rng = np.random.default_rng(seed)
    X, y = rng.random((12, 2)), np.concatenate([np.arange(6) % 2, np.full(6, -1)])
    W = np.triu(rng.random((12, 12)) * (rng.random((12, 12)) < 0.4), 1)
    W = W + W.T
    model = tw.LapSVMClassifier(width=3.0, ridge=6 * prices[0], gamma=6 * prices[1] / 144.0).fit(X, y, graph=W)
    Z = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    K = np.exp(-3.0 * ((Z[:, None] - Z[None]) ** 2).sum(axis=2))
    optimum = best_lap_svm(K, W, np.arange(6), 2.0 * y[:6] - 1.0, prices[0], prices[1] / 144.0)
    assert model.objective_ == pytest.approx(optimum, rel=1e-6)


RAN[5] |= {*SOLVED, "LapSVMClassifier", "TotalsClassifier"}  # the last in test_labels_within_totals.py


def run_solved(model: Any, data: dict[str, Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(**data)


def enclosed(model: Any, optimum: float) -> None:
    """Check objective and bound against the optimum; a proven one may miss it by the gap that was asked for."""
    room = 1e-6 + model.gap * abs(optimum)
    assert model.bound_ <= optimum + 1e-6
    assert model.objective_ >= optimum - 1e-6
    assert model.status_ == "optimal" and model.objective_ <= optimum + room


# ---------------------------------------------------------------------- 6: time


def noise(kind: str, solver: str) -> dict[str, Any]:
    """Labels by lot, so that no fit ends early; for Gurobi inside its free limit."""
    rng = np.random.default_rng(0)
    n, p = {"C2RFClassifier": (4000, 6)}.get(kind, (300, 6))
    if solver == "gurobi":
        n, p = (30, 3) if kind == "OCTSVMClassifier" else (60, 3)
    X, y = rng.normal(size=(n, p)), rng.integers(0, 3 if kind == "S2OCTClassifier" else 2, n)
    if kind.startswith(SUPERVISED):
        half = {"X": X[: n // 2], "y": y[: n // 2]}
        return half | {"protected": np.arange(n // 2) % 3} if kind == "FairOCTClassifier" else half
    y[n // 2 :] = -1
    groups = np.arange(n) % 2
    totals = {g: {0: (n // 16, n // 14)} for g in (0, 1)}
    return {"X": X, "y": y, "groups": groups, "totals": totals}


TIMED = [
    fit
    for fit in FITS
    if fit.name
    in (
        "oct-mip",
        "oct-h-priced",
        "binoct",
        "fair-oct",
        "svm1odt",
        "octsvm",
        "resvm",
        "s2oct",
        "s2oct-taught",
        "s2oct-everywhere",
        "c2rf-paper",
    )
]


@cache
def imported(solver):
    """The package of a solver, and where it needs one its licence, are there: both take time once a process."""
    get_solver(solver).solve(CASES[0].tiny(0).build())


@pytest.mark.parametrize("solver", SOLVERS)
@each(6, given=TIMED)
def test_6_a_time_limit_is_kept_and_something_is_returned(fit, solver):
    data = noise(fit.kind, solver)
    settings = {"estimator": None} if fit.kind == "C2RFClassifier" else {}
    if fit.name == "s2oct-everywhere":
        data = {"X": data["X"], "y": np.minimum(data["y"], 1), "totals": {1: 17}}
    plain(fit)  # compiles kernels, which takes time once a machine
    imported(solver)
    with within(0.2 * 1.1 + 1.5):
        model = run(fit, data, solver=solver, time_limit=0.2, **settings)
    assert model.bound_ <= model.objective_
    # A taught tree that is not proven is one that has learned enough, if there was time for the path to it.
    assert model.status_ in ("optimal", "time_limit", *(["local"] if fit.name == "s2oct-taught" else []))
    assert predicted(model, data).shape == data["y"].shape


@each(6, "tao-classifier", "tao-regressor", "laptao-classifier", "laptao-regressor", "ssct")
def test_6_heuristics_keep_a_time_limit_and_return_what_they_have(fit):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 10))
    y = (rng.integers(0, 5, 6000) if "Classifier" in fit.kind else rng.normal(size=6000)).astype(float)
    if fit.kind not in ("TAOClassifier", "TAORegressor"):
        y[100:] = np.nan
    settings = {"max_depth": 12, "time_limit": 0.2} | ({"supervision": 0.1} if fit.kind == "SSCTClassifier" else {})
    plain(fit)  # compiles kernels, which takes time once a process
    with within(0.2 * 1.1 + 2.0):
        model = run(fit, {"X": X, "y": y}, **settings)
    assert model.status_ in ("time_limit", "local")
    assert np.isfinite(model.objective_) and model.predict(X).shape == y.shape


# ---------------------------------------------------------------------- the table is whole


def test_every_estimator_is_in_the_table_and_every_promise_it_makes_is_tested():
    import tests.contracts.test_estimator_changes  # noqa: F401 (its tests are in the table, too)

    public = {name for name in tw.__all__ if hasattr(getattr(tw, name), "fit")}
    assert set(NOT_PROMISED) == public == {fit.kind for fit in FITS}
    for kind, reasons in NOT_PROMISED.items():
        assert all(reasons.values()) and set(reasons) <= set(PROMISES)
        for promise in PROMISES:
            tested = kind in RAN[promise] or (promise == 2 and kind in SOLVED)
            assert tested == (promise not in reasons), (kind, promise)


def test_an_estimator_without_start_or_limit_has_no_such_parameter():
    for fit in FITS:
        parameters = fit.make().get_params(deep=False)
        assert ("warm_start" in parameters) == (4 not in NOT_PROMISED[fit.kind]), fit.name
        assert ("time_limit" in parameters) == (6 not in NOT_PROMISED[fit.kind]), fit.name


def test_a_tree_that_grows_begins_with_one_leaf_of_impurity_one():
    """SSCT takes no start, but what it begins with is never made worse either."""
    fit = next(fit for fit in FITS if fit.kind == "SSCTClassifier")
    assert isinstance(fit.make(), tw.SSCTClassifier)
    assert run(fit).objective_ < 1.0
