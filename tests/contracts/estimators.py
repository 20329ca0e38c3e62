"""The estimators that the contract tests run over, and the table of what each of them promises.

A new estimator joins by a row of `NOT_PROMISED` and an entry or two in `FITS`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.naive_bayes import GaussianNB

import treewright as tw
from tests.contracts import measures
from tests.kept_fits import Stump

PROMISES = {
    1: "what the model decides for training rows is what predict says, in the units of the data",
    2: "any solution can be written as a feasible point of the program, at the same cost",
    3: "objective_ is that of the fitted model, recomputed from data and tree alone",
    4: "a start is never made worse",
    5: "bound_ <= optimum <= objective_, by brute force or another solver",
    6: "a time limit is kept, and something is returned",
    7: "the same data, parameters and seed give the same model",
    8: "the order of rows, names and units change nothing that they should not",
}

_NO_PROGRAM = "is no mathematical program: nothing to encode"
_HEURISTIC = "is a heuristic that proves nothing: no bound_"
_NO_START = "takes no warm start"

NOT_PROMISED: dict[str, dict[int, str]] = {
    "OCTClassifier": {},
    "OCTHClassifier": {},
    "BinOCTClassifier": {},
    "FairOCTClassifier": {},
    "S2OCTClassifier": {},
    "C2RFClassifier": {},
    "SVM1ODTClassifier": {},
    "OCTSVMClassifier": {},
    "RESVMClassifier": {},
    "TAOClassifier": {2: _NO_PROGRAM, 5: _HEURISTIC},
    "TAORegressor": {2: _NO_PROGRAM, 5: _HEURISTIC},
    "LapTAOClassifier": {2: _NO_PROGRAM, 5: _HEURISTIC},
    "LapTAORegressor": {2: _NO_PROGRAM, 5: _HEURISTIC},
    "SSCTClassifier": {2: _NO_PROGRAM, 4: _NO_START, 5: _HEURISTIC},
    "LapSVMClassifier": {2: _NO_PROGRAM, 4: _NO_START, 6: "is one factorization, which has no time limit"},
    "TotalsClassifier": {
        2: "is solved by sorting and augmenting, not by a program",
        3: "has no objective_; promise 5 measures its labels",
        4: _NO_START,
        6: "takes the time of its estimator, which has no limit",
    },
    "SelfTrainingRegressor": {
        2: _NO_PROGRAM,
        3: "has no objective_",
        4: _NO_START,
        5: "optimizes nothing of its own",
        6: "takes the time of its estimator, which has no limit",
    },
}
"""Promises that an estimator does not make, each with the reason. All others run in
``test_estimator_promises.py`` and ``test_estimator_changes.py``."""


@dataclass(frozen=True)
class Fit:
    """A fit as the contracts see it.

    Attributes
    ----------
    kind : str
        Public name of the estimator.
    make : callable
        Keyword parameters to an unfitted estimator.
    data : callable
        Arguments of ``fit``. Features are multiples of 1/64 below 16, so that shifts by whole numbers and products with
        powers of two are exact.
    measure : callable or None
        Fitted model and arguments to the objective, by the formula; None where there is no ``objective_``.
    branches : bool
        Whether branch and bound is needed, so that the solver matters.
    """

    name: str
    kind: str
    make: Callable[..., Any]
    data: Callable[[], dict[str, Any]]
    measure: Callable[[Any, dict[str, Any]], float] | None = None
    branches: bool = False


def run(fit: Fit, data: dict[str, Any] | None = None, **parameters: Any) -> Any:
    """Fitted model; a fit that has not proven anything says so by a warning, which is no matter here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return fit.make(**parameters).fit(**(fit.data() if data is None else data))


def numbers(model: Any, y: Any) -> np.ndarray:
    """Class numbers of labels, -1 for unlabelled rows."""
    place = {label: k for k, label in enumerate(model.classes_.tolist())}
    return np.array([place.get(label, -1) for label in np.asarray(y).tolist()])


def weights(data: dict[str, Any]) -> np.ndarray:
    given = data.get("sample_weight")
    return np.ones(len(data["X"])) if given is None else np.asarray(given, dtype=float)


def unlabelled(data: dict[str, Any]) -> np.ndarray:
    """Mask of the rows without a label."""
    y = np.asarray(data["y"])
    return np.isnan(y) if y.dtype.kind == "f" else y == -1


def predicted(model: Any, data: dict[str, Any]) -> np.ndarray:
    """Predictions of the rows of a fit, with their groups where these choose prices."""
    if "groups" in data and hasattr(model, "class_prices_"):
        return model.predict(data["X"], groups=data["groups"])
    return model.predict(data["X"])


# ---------------------------------------------------------------------- totals


def limits(model: Any, data: dict[str, Any]) -> tuple[np.ndarray, list[Any], np.ndarray, np.ndarray]:
    """Group of each unlabelled row, names of the groups, and fewest and most rows of each group and class."""
    hidden, classes = unlabelled(data), model.classes_.tolist()
    groups = data.get("groups")
    given = np.zeros(hidden.sum(), dtype=int) if groups is None else np.asarray(groups)[hidden]
    names = np.unique(given).tolist()
    asked = {0: data.get("totals") or {}} if groups is None else data["totals"]
    low, high = np.zeros((2, len(names), len(classes)), dtype=int)
    for g, name in enumerate(names):
        n = int(np.sum(given == name))
        high[g] = n
        for label, total in asked[name].items():
            k = classes.index(label)
            low[g, k], high[g, k] = total if isinstance(total, tuple) else (total, total)
            high[g, k] = min(n, high[g, k])
    return given, names, low, high


def totals_deviation(model: Any, data: dict[str, Any]) -> int:
    """Rows that would have to change class, counted from ``transduction_``."""
    given, names, low, high = limits(model, data)
    labels = model.transduction_[unlabelled(data)]
    return measures.deviation(measures.counts(labels, given, names, model.classes_.tolist()), low, high)


# ---------------------------------------------------------------------- objectives by their formulas


def s2oct_measure(model: Any, data: dict[str, Any]) -> float:
    given, names, low, high = limits(model, data)
    size = (given[:, None] == np.array(names)).astype(float)
    y, X = numbers(model, data["y"]), np.asarray(data["X"], dtype=float)
    weight = weights(data)
    price = model.penalty * measures.weight_of_a_row(weight[y >= 0])
    return measures.s2oct_objective(model.tree_, X, y, weight, size, low, high, price)


def oct_h_measure(model: Any, data: dict[str, Any]) -> float:
    X, y = np.asarray(data["X"], dtype=float), numbers(model, data["y"])
    return measures.oct_h_objective(model.tree_, X, y, weights(data), model.complexity)


def binoct_measure(model: Any, data: dict[str, Any]) -> float:
    X, y = np.asarray(data["X"], dtype=float), numbers(model, data["y"])
    return float(weights(data) @ (model.tree_.labels[measures.reached_leaves(model.tree_, X)] != y))


def fair_measure(model: Any, data: dict[str, Any]) -> float:
    X, y, prices = (
        np.asarray(data["X"], dtype=float),
        numbers(model, data["y"]),
        (model.complexity, model.fairness_weight),
    )
    return measures.fair_objective(model.tree_, X, y, weights(data), *prices, data.get("protected"))


def oct_measure(model: Any, data: dict[str, Any]) -> float:
    """Of trees whose splits have one feature each, so that a price of features is one of splits."""
    return oct_h_measure(model, data)


def svm1odt_measure(model: Any, data: dict[str, Any]) -> float:
    X, y = np.asarray(data["X"], dtype=float), numbers(model, data["y"])
    prices = model.epsilon_, model.alpha_1_, model.alpha_2_
    return measures.svm1odt_objective(model.tree_, X, y, weights(data), *prices)


def octsvm_measure(model: Any, data: dict[str, Any]) -> float:
    """For trees that judge alone: the labels are those given."""
    X, y, weight = np.asarray(data["X"], dtype=float), numbers(model, data["y"]), weights(data)
    unit, norm = measures.weight_of_a_row(weight), {"l2": 2, "l1": 1, "linf": np.inf}[model.norm]
    if isinstance(model, tw.RESVMClassifier):
        prices = {"c1": model.c1, "c2": model.c2, "c3": 0.0, "square": unit}
        return measures.octsvm_objective(model.tree_, X, y, weight, 0, prices, norm)
    if model.c1 is not None:
        prices = {"c1": model.c1, "c2": model.c2, "c3": model.c3 * unit, "margin": 0.5 * unit}
    else:
        prices = {"c1": 1.0, "c2": model.relabel_cost, "c3": model.split_cost * weight.sum()}
    return measures.octsvm_objective(model.tree_, X, y, weight, model.max_depth, prices, norm)


def tao_measure(model: Any, data: dict[str, Any]) -> float:
    X, ridge = np.asarray(data["X"], dtype=float), getattr(model, "leaf_ridge", 0.0)
    y = numbers(model, data["y"]) if hasattr(model, "classes_") else np.asarray(data["y"])
    loss = measures.tao_loss(model.tree_, X, y, weights(data), ridge)
    return loss + model.alpha_ * measures.split_price(model.tree_, X)


def laptao_measure(model: Any, data: dict[str, Any]) -> float:
    """For ``alpha=0`` and ``trust=0``, and a graph of the rows: no part depends on what happens inside."""
    X, weight = np.asarray(data["X"], dtype=float), weights(data)
    predicted, hidden = model.tree_.values[measures.reached_leaves(model.tree_, X)], unlabelled(data)
    if hasattr(model, "classes_"):
        predicted = predicted / predicted.sum(axis=1, keepdims=True)
        target = np.eye(len(model.classes_))[np.maximum(numbers(model, data["y"]), 0)]
        variance = 1.0
    else:
        target = np.asarray(data["y"], dtype=float)[:, None]
        variance = np.cov(target[~hidden, 0], aweights=weight[~hidden], ddof=0)
    target = np.where(hidden[:, None], np.nan, target)
    return measures.graph_objective(predicted, target, weight, data["graph"], model.gamma) / variance


def ssct_measure(model: Any, data: dict[str, Any]) -> float:
    X = np.asarray(data["X"], dtype=float)
    return measures.ssct_objective(model.tree_, X, numbers(model, data["y"]), weights(data), model.supervision)


def lap_svm_measure(model: Any, data: dict[str, Any]) -> float:
    """For two classes and rows of weight 1, from the values of the machine."""
    f, y = model.decision_function(data["X"]), numbers(model, data["y"])
    loss = np.maximum(0.0, 1.0 - (2.0 * y - 1.0) * f)[y >= 0].mean()
    apart = (model.points_[:, None] - model.points_[None]) ** 2
    K = np.exp(-model.width_ * apart.sum(axis=2))
    norm = float(model.dual_coef_[:, 0] @ K @ model.dual_coef_[:, 0])
    rough = 0.5 * (data["graph"] * (f[:, None] - f[None]) ** 2).sum()
    return float(loss + (model.ridge * norm + model.gamma * rough) / np.count_nonzero(y >= 0))


# ---------------------------------------------------------------------- data


def rows_of(n: int, p: int, n_classes: int, seed: int, noise: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """Distinct rows on a fine grid, and classes by the level of a random direction; every class has rows."""
    rng = np.random.default_rng(seed)
    X = rng.choice(1024, (n, p), replace=False) / 64.0 if n * p <= 1024 else rng.integers(0, 1024, (n, p)) / 64.0
    level = X @ rng.normal(size=p)
    level = level + noise * level.std() * rng.normal(size=n)
    cuts = np.quantile(level, np.arange(1, n_classes) / n_classes)
    return X, np.digitize(level, cuts)


def semi(n: int, p: int, n_classes: int, seed: int, labelled: int, noise: float = 0.1) -> tuple[Any, Any, Any]:
    """Rows, classes, and labels of some rows (of every class) with -1 for the others."""
    X, truth = rows_of(n, p, n_classes, seed, noise)
    rng = np.random.default_rng(seed + 1)
    first = [rng.choice(np.flatnonzero(truth == k)) for k in range(n_classes)]
    known = np.concatenate([first, rng.permutation(np.setdiff1d(np.arange(n), first))])[:labelled].astype(int)
    y = np.full(n, -1)
    y[known] = truth[known]
    return X, truth, y


def counted(truth: np.ndarray, y: np.ndarray, slack: int = 0, among: Any = True) -> dict[int, Any]:
    """True counts of the unlabelled rows, `slack` to either side."""
    found = {int(k): int(np.sum((y == -1) & (truth == k) & among)) for k in np.unique(truth)}
    return {k: (max(0, n - slack), n + slack) if slack else n for k, n in found.items()}


def neighbour_graph(X: np.ndarray) -> np.ndarray:
    """Affinities that fall with the distance of rows, symmetric."""
    Z = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    apart = ((Z[:, None] - Z[None]) ** 2).sum(axis=2)
    W = np.round(np.exp(-20.0 * apart) * 64.0) / 64.0
    np.fill_diagonal(W, 0.0)
    return W


def _iris() -> dict[str, Any]:
    X, y = load_iris(return_X_y=True)
    return {"X": np.round(X[::6] * 64) / 64, "y": y[::6]}


def _few_rows() -> dict[str, Any]:
    X, y = rows_of(14, 2, 2, seed=3, noise=0.6)
    return {"X": X, "y": y, "sample_weight": np.where(np.arange(14) % 3 == 0, 2.0, 1.0)}


def _nine_rows() -> dict[str, Any]:
    X, y = rows_of(9, 2, 2, seed=3, noise=0.6)
    return {"X": X, "y": y, "sample_weight": np.where(np.arange(9) % 3 == 0, 2.0, 1.0)}


def _seven_rows() -> dict[str, Any]:
    X, y = rows_of(7, 2, 2, seed=3, noise=0.6)
    return {"X": X, "y": y, "sample_weight": np.where(np.arange(7) % 3 == 0, 2.0, 1.0)}


def _protected() -> dict[str, Any]:
    return _nine_rows() | {"protected": np.array(["f", "m"])[np.arange(9) % 2]}


def _two_classes() -> dict[str, Any]:
    X, truth, y = semi(14, 2, 2, seed=0, labelled=6)
    return {"X": X, "y": y, "totals": counted(truth, y)}


def _grouped() -> dict[str, Any]:
    X, truth, y = semi(16, 2, 3, seed=4, labelled=6, noise=0.0)
    groups = np.where(np.arange(16) % 3 == 0, "n", "s")
    totals = {g: counted(truth, y, slack=1, among=groups == g) for g in ("n", "s")}
    weight = np.where(np.arange(16) % 2 == 0, 2.0, 1.0)
    return {"X": X, "y": y, "totals": totals, "groups": groups, "sample_weight": weight}


def _hard_labels() -> dict[str, Any]:
    """Labels that no stump gets right, in a box of 2 so that the bound of normals matters."""
    rng = np.random.default_rng(5)
    X = rng.integers(-64, 65, (10, 2)) / 64.0 * 4
    y = np.concatenate([np.arange(6) % 2, np.full(4, -1)])
    return {"X": X, "y": y, "totals": {1: 3}, "sample_weight": np.repeat([1.0, 0.5], 5)}


def _many_unlabelled() -> dict[str, Any]:
    X, truth, y = semi(80, 4, 2, seed=3, labelled=20)
    groups = np.where(np.arange(80) % 3 == 0, "n", "s")
    totals = {g: counted(truth, y, among=groups == g) for g in ("n", "s")}
    return {"X": X, "y": y, "totals": totals, "groups": groups}


def _votes() -> dict[str, Any]:
    X, truth, y = semi(60, 4, 2, seed=4, labelled=10)
    return {"X": X, "y": y, "totals": {1: 4}}


def _classes() -> dict[str, Any]:
    X, y = rows_of(90, 4, 3, seed=5)
    return {"X": X, "y": y, "sample_weight": np.random.default_rng(5).integers(1, 4, 90).astype(float)}


def _targets() -> dict[str, Any]:
    rng = np.random.default_rng(6)
    X = rng.choice(1024, (90, 3), replace=False) / 64.0
    y = np.abs(X[:, 0] - X[:, 1]) + X[:, 2] / 4
    return {"X": X, "y": y, "sample_weight": rng.integers(1, 4, 90).astype(float)}


def _graph_classes() -> dict[str, Any]:
    X, truth, y = semi(70, 2, 3, seed=7, labelled=15)
    return {"X": X, "y": y, "graph": neighbour_graph(X)}


def _graph_targets() -> dict[str, Any]:
    data = _targets()
    y = np.where(np.arange(90) % 3 == 0, data["y"], np.nan)
    return {"X": data["X"], "y": y, "graph": neighbour_graph(data["X"])}


def _some_labels() -> dict[str, Any]:
    X, truth, y = semi(70, 3, 3, seed=8, labelled=20)
    return {"X": X, "y": y, "sample_weight": np.random.default_rng(8).integers(1, 4, 70).astype(float)}


def _machine() -> dict[str, Any]:
    X, truth, y = semi(30, 2, 2, seed=9, labelled=8)
    return {"X": X, "y": y, "graph": neighbour_graph(X)}


def _some_targets() -> dict[str, Any]:
    data = _targets()
    return {"X": data["X"], "y": np.where(np.arange(90) % 3 == 0, data["y"], np.nan)}


def _stumps() -> list[Stump]:
    rng = np.random.default_rng(4)
    return [Stump(int(rng.integers(4)), float(rng.integers(320, 800)) / 64.0) for _ in range(7)]


def _solved(kind: Any, **settings: Any) -> Callable[..., Any]:
    return lambda **kw: kind(**({"time_limit": 60.0, "random_state": 0} | settings | kw))


def _paper(**settings: Any) -> Callable[..., Any]:
    """S2OCT with all features in a split, as in the paper."""
    return _solved(tw.S2OCTClassifier, **({"max_split_features": None} | settings))


def _seeded(kind: Any, **settings: Any) -> Callable[..., Any]:
    return lambda **kw: kind(**({"random_state": 0} | settings | kw))


FITS = [
    Fit("oct-h", "OCTHClassifier", _solved(tw.OCTHClassifier, max_depth=2), _iris, oct_h_measure),
    Fit(
        "oct-h-priced",
        "OCTHClassifier",
        _solved(tw.OCTHClassifier, max_depth=2, complexity=0.03, min_samples_leaf=0.05, margin=0.01),
        _iris,
        oct_h_measure,
        branches=True,
    ),
    Fit(
        "binoct",
        "BinOCTClassifier",
        _solved(tw.BinOCTClassifier, max_depth=2),
        _few_rows,
        binoct_measure,
        branches=True,
    ),
    Fit(
        "fair-oct",
        "FairOCTClassifier",
        _solved(tw.FairOCTClassifier, max_depth=2, complexity=0.02, fairness_weight=0.1),
        _protected,
        fair_measure,
        branches=True,
    ),
    Fit("oct", "OCTClassifier", _solved(tw.OCTClassifier, max_depth=2, complexity=0.02), _classes, oct_measure),
    Fit(
        "oct-mip",
        "OCTClassifier",
        _solved(tw.OCTClassifier, max_depth=2, min_samples_leaf=2, complexity=0.05, method="mip"),
        _nine_rows,
        oct_measure,
        branches=True,
    ),
    Fit(
        "svm1odt",
        "SVM1ODTClassifier",
        _solved(tw.SVM1ODTClassifier, max_depth=1, epsilon=0.1, alpha_1=10.0, alpha_2=0.2),
        _few_rows,
        svm1odt_measure,
        branches=True,
    ),
    Fit(
        "octsvm",
        "OCTSVMClassifier",
        _solved(tw.OCTSVMClassifier, max_depth=1, max_norm=3.0, relabel_cost=1.0, split_cost=0.05, relabel="tree"),
        _seven_rows,
        octsvm_measure,
        branches=True,
    ),
    Fit(
        "octsvm-priced",
        "OCTSVMClassifier",
        _solved(tw.OCTSVMClassifier, max_depth=1, c1=1.0, c2=1.0, c3=0.3, norm="l1", relabel="tree"),
        _seven_rows,
        octsvm_measure,
        branches=True,
    ),
    Fit(
        "resvm",
        "RESVMClassifier",
        _solved(tw.RESVMClassifier, c1=2.0, c2=1.5),
        _few_rows,
        octsvm_measure,
        branches=True,
    ),
    Fit("s2oct", "S2OCTClassifier", _paper(max_depth=2), _two_classes, s2oct_measure),
    Fit("s2oct-taught", "S2OCTClassifier", _solved(tw.S2OCTClassifier, max_depth=2), _two_classes, s2oct_measure),
    Fit("s2oct-taught-groups", "S2OCTClassifier", _solved(tw.S2OCTClassifier, max_depth=2), _grouped, s2oct_measure),
    Fit(
        "s2oct-everywhere",
        "S2OCTClassifier",
        _paper(max_depth=2, margin_rule="paper"),
        _two_classes,
        s2oct_measure,
    ),
    Fit(
        "s2oct-groups",
        "S2OCTClassifier",
        _paper(max_depth=2),
        _grouped,
        s2oct_measure,
    ),
    Fit(
        "s2oct-hard",
        "S2OCTClassifier",
        _paper(max_depth=1, max_coefficient=0.4, penalty=0.5),
        _hard_labels,
        s2oct_measure,
        branches=True,
    ),
    Fit(
        "s2oct-few",
        "S2OCTClassifier",
        _paper(max_depth=1, max_split_features=1, max_coefficient=0.4, penalty=0.5),
        _hard_labels,
        s2oct_measure,
        branches=True,
    ),
    Fit("c2rf", "C2RFClassifier", _solved(tw.C2RFClassifier), _many_unlabelled, totals_deviation),
    Fit(
        "c2rf-paper",
        "C2RFClassifier",
        _solved(tw.C2RFClassifier, estimator=_stumps(), class_prices=False),
        _votes,
        totals_deviation,
        branches=True,
    ),
    Fit("tao-classifier", "TAOClassifier", _seeded(tw.TAOClassifier, max_depth=3, alpha=0.5), _classes, tao_measure),
    Fit(
        "tao-axis",
        "TAOClassifier",
        _seeded(tw.TAOClassifier, max_depth=3, alpha=0.5, max_split_features=1, stretch=0.0),
        _classes,
        tao_measure,
    ),
    Fit("tao-regressor", "TAORegressor", _seeded(tw.TAORegressor, max_depth=3, alpha=0.5), _targets, tao_measure),
    Fit("tao-linear", "TAORegressor", _seeded(tw.TAORegressor, max_depth=2, leaves="linear"), _targets, tao_measure),
    Fit(
        "laptao-classifier",
        "LapTAOClassifier",
        _seeded(tw.LapTAOClassifier, max_depth=3, alpha=0.0, trust=0.0, max_iter=5),
        _graph_classes,
        laptao_measure,
    ),
    Fit(
        "laptao-regressor",
        "LapTAORegressor",
        _seeded(tw.LapTAORegressor, max_depth=3, alpha=0.0, max_iter=5),
        _graph_targets,
        laptao_measure,
    ),
    Fit("ssct", "SSCTClassifier", _seeded(tw.SSCTClassifier, max_depth=4), _some_labels, ssct_measure),
    Fit(
        "lap-svm",
        "LapSVMClassifier",
        _seeded(tw.LapSVMClassifier, width=3.0, ridge=0.5, gamma=0.1),
        _machine,
        lap_svm_measure,
    ),
    Fit("totals", "TotalsClassifier", _seeded(tw.TotalsClassifier, estimator=GaussianNB()), _many_unlabelled),
    Fit("totals-forest", "TotalsClassifier", _seeded(tw.TotalsClassifier), _grouped),
    Fit("self-training", "SelfTrainingRegressor", _seeded(tw.SelfTrainingRegressor), _some_targets),
]


def fits_of(promise: int) -> list[Fit]:
    """Fits whose estimator makes the promise."""
    return [fit for fit in FITS if promise not in NOT_PROMISED[fit.kind]]
