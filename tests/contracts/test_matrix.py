"""What users cross: classes, groups, repeated rows, weights, intervals, one labelled class, next to no time.

Every three settings meet in some fit of a model with totals, every two in one of the others. In each, what the model
says of itself is recomputed from its tree and labels.
"""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

import treewright as tw
from tests.clock import within
from tests.contracts import measures
from tests.contracts.covering import Row, covering, meetings
from tests.contracts.estimators import (
    binoct_measure,
    fair_measure,
    lap_svm_measure,
    laptao_measure,
    limits,
    neighbour_graph,
    numbers,
    oct_h_measure,
    s2oct_measure,
    ssct_measure,
    tao_measure,
    totals_deviation,
    unlabelled,
    weights,
)
from treewright.exceptions import InvalidInputError

ALLOWANCE = 3.0
"""Seconds beyond a limit, for imports and a slow machine; what is broken takes far longer."""

STATUSES = {"optimal", "time_limit", "local", "unproven"}
HEURISTIC_STATUSES = {"time_limit", "local"}

CROSSED = {
    "classes": [2, 3, 8],
    "groups": ["none", "two", "many"],
    "rows": ["distinct", "repeated", "across groups", "contradicting"],
    "weighted": [False, True],
    "totals": ["exact", "intervals"],
    "labels": ["all classes", "one class"],
    "limit": [0.05, 0.4],
}
WITHOUT_TOTALS = {"classes": [2, 3, 8], "rows": ["distinct", "repeated", "contradicting"], "weighted": [False, True]}


def possible(row: Row) -> bool:
    """Rows are equal across groups only where there are groups, and contradict each other only in two classes."""
    lone = row.get("labels") == "one class" and row["rows"] == "contradicting"
    return not lone and not (row.get("groups") == "none" and row["rows"] == "across groups")


# ---------------------------------------------------------------------- tables


def table(row: Row, hidden: int = 24) -> dict[str, Any]:
    """Arguments of fit for a row of the matrix; the same for the same row."""
    k = row["classes"]
    rng = np.random.default_rng([k, sum(map(ord, str(sorted(row.items(), key=str))))])
    labelled = 3 * k if k < 8 else 16
    n = labelled + hidden
    X, truth = np.round(rng.normal(size=(n, 3)), 3), np.empty(n, dtype=int)
    level = X @ [1.0, 0.7, -0.4] + 0.2 * rng.normal(size=n)
    truth = np.digitize(level, np.quantile(level, np.arange(1, k) / k))
    truth[:k] = np.arange(k)
    y = np.where(np.arange(n) < labelled, truth, -1)
    if row.get("labels") == "one class":
        y[:labelled] = 0
    groups = np.arange(n) % {"none": 1, "two": 2, "many": 8}[row.get("groups", "none")]
    if row["rows"] == "repeated":
        X[-8:] = X[-16:-8]  # eight rows on, so in the same group whatever there is
    elif row["rows"] == "across groups":
        X[-8:] = X[-9:-17:-1]
        X[-20:-17] = X[-24]  # four equal rows in a row, each in another group
    elif row["rows"] == "contradicting":
        X[k : 2 * k] = X[:k]
        y[k : 2 * k] = np.roll(y[:k], 1)
        X[-4:] = X[:4]
    data: dict[str, Any] = {"X": X, "y": y}
    if row["weighted"]:
        weight = rng.integers(1, 4, n) / 2.0
        weight[labelled - 1] = weight[-1] = 0.0
        data["sample_weight"] = weight
    if "totals" not in row:
        return data
    if row.get("groups", "none") != "none":
        data["groups"] = groups
    data["totals"] = asked(row, truth, y == -1, groups)
    if row["labels"] == "one class":
        data["allow_new_classes"] = True
    return data


def asked(row: Row, truth: np.ndarray, hidden: np.ndarray, groups: np.ndarray) -> dict[Any, Any]:
    """Totals that hold for the classes drawn, by group; intervals leave the last class free if labels name it."""

    def of(inside: np.ndarray) -> dict[int, Any]:
        count = {c: int(np.sum(truth[inside] == c)) for c in range(row["classes"])}
        if row["totals"] == "exact":
            return count
        wide = {c: (max(0, m - 1), m + 2) for c, m in count.items()}
        if row["classes"] > 2 and row["labels"] == "all classes":
            del wide[row["classes"] - 1]
        return wide

    if row["groups"] == "none":
        return of(hidden)
    return {g: of(hidden & (groups == g)) for g in np.unique(groups[hidden]).tolist()}


def fitted(model: Any, data: dict[str, Any]) -> Any:
    """Fit, quietly, and within the limit."""
    limit = getattr(model, "time_limit", None)
    with warnings.catch_warnings(), within(np.inf if limit is None else limit + ALLOWANCE):
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(**data)


# ---------------------------------------------------------------------- what holds in each


def check_labels_and_totals(model: Any, data: dict[str, Any]) -> None:
    """Given labels stay, and ``totals_`` says what ``transduction_`` has."""
    hidden, classes = unlabelled(data), model.classes_.tolist()
    assert np.array_equal(model.transduction_[~hidden], data["y"][~hidden])
    given, names, low, high = limits(model, data)
    reached = measures.counts(model.transduction_[hidden], given, names, classes)
    rows = np.array([np.sum(given == g) for g in names])[:, None]
    fewest = np.maximum(low, rows - (high.sum(axis=1, keepdims=True) - high))
    most = np.minimum(high, rows - (low.sum(axis=1, keepdims=True) - low))
    assert len(model.totals_) == reached.size
    for line, (g, k) in zip(model.totals_, product(range(len(names)), range(len(classes))), strict=True):
        assert line["group"] == (names[g] if "groups" in data else None) and line["class"] == classes[k]
        assert (line["low"], line["high"], line["reached"]) == (fewest[g, k], most[g, k], reached[g, k])
        assert line["deviation"] == max(0, line["low"] - line["reached"], line["reached"] - line["high"])


def check_proof(model: Any) -> None:
    """Status, objective and bound agree with one another."""
    assert model.status_ in STATUSES
    assert np.isfinite(model.objective_) and 0.0 <= model.bound_ <= model.objective_
    proven = model.objective_ - model.bound_ <= model.gap * max(abs(model.objective_), 1e-9) + 1e-9
    assert (model.status_ == "optimal") == proven


def check_probabilities(model: Any, data: dict[str, Any], most_likely: bool = True) -> np.ndarray:
    """Finite, of sum 1, and largest for the class that is predicted, but where totals or fairness decide on labels.

    Those of models with prices sum to the totals, group by group; those of trees with totals to the totals of all.
    """
    groups = {"groups": data["groups"]} if "groups" in data and not hasattr(model, "tree_") else {}
    shares, label = model.predict_proba(data["X"], **groups), model.predict(data["X"], **groups)
    assert shares.shape == (len(data["X"]), len(model.classes_))
    assert np.all(np.isfinite(shares)) and np.all(shares >= 0) and np.allclose(shares.sum(axis=1), 1.0)
    if hasattr(model, "class_prices_") and "totals" in data:
        hidden, (given, names, low, high) = unlabelled(data), limits(model, data)
        for g, name in enumerate(names):
            total = shares[hidden][given == name].sum(axis=0)
            assert np.all(total >= low[g] - 1e-6) and np.all(total <= high[g] + 1e-6)
        return label
    if "totals" in data and hasattr(model, "tree_"):
        total, (_, _, low, high) = shares[unlabelled(data)].sum(axis=0), limits(model, data)
        assert np.all(total >= low.sum(axis=0) - 1e-2) and np.all(total <= high.sum(axis=0) + 1e-2)
    elif most_likely:
        said = shares[np.arange(len(label)), numbers(model, label)]
        assert np.all(said >= shares.max(axis=1) - 1e-9)
    return label


def without_weightless_rows(data: dict[str, Any]) -> dict[str, Any]:
    """Rows of weight 0 are left out of a fit, of its scaling too."""
    used = np.flatnonzero(weights(data) > 0)
    kept = {name: np.asarray(value)[used] for name, value in data.items() if name != "graph"}
    return kept | ({"graph": data["graph"][np.ix_(used, used)]} if "graph" in data else {})


def label_of(row: Row) -> str:
    return "-".join(str(value).replace(" ", "_") for value in row.values())


def crossed(factors: dict[str, Any], strength: int = 2) -> Any:
    return pytest.mark.parametrize("row", covering(factors, possible, strength), ids=label_of)


# ---------------------------------------------------------------------- models with totals


@pytest.mark.usefixtures("shortest_searches")
@crossed(CROSSED | {"margin": ["tolerance", "reached", "paper"], "size": [None, "auto", 2]}, strength=3)
def test_s2oct(row):
    data = table(row)
    depth = 3 if row["classes"] == 8 else None
    settings = {"max_split_features": row["size"], "margin_rule": row["margin"], "time_limit": row["limit"]}
    model = fitted(tw.S2OCTClassifier(max_depth=depth, random_state=0, **settings), data)
    check_labels_and_totals(model, data)
    check_proof(model)
    hidden = unlabelled(data)
    assert np.array_equal(check_probabilities(model, data)[hidden], model.transduction_[hidden])
    assert model.objective_ == pytest.approx(s2oct_measure(model, data), rel=1e-6, abs=1e-6)
    if row["size"] == 2:
        assert np.count_nonzero(model.tree_.weights, axis=1).max() <= 2
    required = 1e-3 if row["margin"] == "tolerance" else 1.0
    everywhere = row["margin"] == "paper"
    assert measures.least_margin(model.tree_, data["X"][hidden], everywhere) >= required - 1e-5


@crossed(CROSSED | {"threshold": [True, False]}, strength=3)
def test_c2rf(row):
    data = table(row)
    forest = RandomForestClassifier(15, max_depth=4, random_state=0)
    model = tw.C2RFClassifier(forest, class_prices=row["threshold"], time_limit=row["limit"], random_state=0)
    if row["labels"] == "one class":
        with pytest.raises(InvalidInputError, match="no member of the ensemble votes for it"):
            fitted(model, data)
        few = {c: (0, 24) for c in range(row["classes"])}
        data["totals"] = few if "groups" not in data else dict.fromkeys(np.unique(data["groups"]).tolist(), few)
    model = fitted(model, data)
    check_labels_and_totals(model, data)
    check_proof(model)
    hidden = unlabelled(data)
    assert np.array_equal(check_probabilities(model, data)[hidden], model.transduction_[hidden])
    assert model.objective_ == totals_deviation(model, data)
    assert np.all(model.weights_ > 0) and model.weights_.mean() == pytest.approx(1.0)


@crossed({name: values for name, values in CROSSED.items() if name != "limit"}, strength=3)
def test_totals_classifier(row):
    data = table(row)
    model = fitted(tw.TotalsClassifier(LogisticRegression(), random_state=0), data)
    check_labels_and_totals(model, data)
    assert totals_deviation(model, data) == 0
    hidden, label = unlabelled(data), check_probabilities(model, data)
    if row["rows"] == "distinct" and row["labels"] == "all classes":  # prices cannot part equal rows
        assert np.array_equal(label[hidden], model.transduction_[hidden])


# ---------------------------------------------------------------------- models without totals


@crossed(WITHOUT_TOTALS | {"limit": [0.05, 1.0]})
def test_oct_h(row):
    data = supervised(table(row))
    model = fitted(tw.OCTHClassifier(max_depth=2, time_limit=row["limit"], random_state=0), data)
    check_proof(model)
    check_probabilities(model, data)
    assert model.objective_ == pytest.approx(oct_h_measure(model, without_weightless_rows(data)), rel=1e-9, abs=1e-9)


@crossed(WITHOUT_TOTALS | {"limit": [0.05, 0.3]})
def test_binoct(row):
    data = supervised(table(row))
    model = fitted(tw.BinOCTClassifier(max_depth=2, time_limit=row["limit"], random_state=0), data)
    check_proof(model)
    check_probabilities(model, data)
    assert model.objective_ == pytest.approx(binoct_measure(model, data), rel=1e-9, abs=1e-9)


@crossed(WITHOUT_TOTALS | {"limit": [0.05, 0.3], "price": [0.0, 0.1], "protected": [1, 3]})
def test_fair_oct(row):
    data = supervised(table(row))
    data["protected"] = np.arange(len(data["y"])) % row["protected"]
    prices = {"complexity": 0.01, "fairness_weight": row["price"]}
    model = fitted(tw.FairOCTClassifier(max_depth=2, time_limit=row["limit"], random_state=0, **prices), data)
    check_proof(model)
    check_probabilities(model, data, most_likely=row["price"] == 0)
    assert model.objective_ == pytest.approx(fair_measure(model, data), rel=1e-9, abs=1e-9)


@crossed(WITHOUT_TOTALS | {"limit": [0.05, 10.0], "stretch": [0.0, 0.25]})
def test_tao(row):
    data = supervised(table(row))
    model = tw.TAOClassifier(max_depth=4, alpha=0.3, stretch=row["stretch"], time_limit=row["limit"], random_state=0)
    model = fitted(model, data)
    assert model.status_ in HEURISTIC_STATUSES
    check_probabilities(model, data)
    assert model.objective_ == pytest.approx(tao_measure(model, without_weightless_rows(data)), rel=1e-9, abs=1e-9)


@crossed(WITHOUT_TOTALS | {"limit": [0.05, 10.0], "stretch": [0.0, 0.25]})
def test_laptao(row):
    data = table(row, hidden=60)
    data["graph"] = neighbour_graph(data["X"])
    settings = {"alpha": 0.0, "trust": 0.0, "stretch": row["stretch"], "time_limit": row["limit"]}
    model = fitted(tw.LapTAOClassifier(max_depth=4, random_state=0, **settings), data)
    assert model.status_ in HEURISTIC_STATUSES
    check_probabilities(model, data)
    known = ~unlabelled(data)
    assert np.array_equal(model.transduction_[known], data["y"][known])
    assert model.objective_ == pytest.approx(laptao_measure(model, without_weightless_rows(data)), rel=1e-6)


@crossed(WITHOUT_TOTALS | {"limit": [0.05, 10.0], "supervision": [0.0, 0.5, 1.0]})
def test_ssct(row):
    data = table(row, hidden=60)
    model = fitted(tw.SSCTClassifier(max_depth=4, supervision=row["supervision"], time_limit=row["limit"]), data)
    assert model.status_ in HEURISTIC_STATUSES
    label, hidden = check_probabilities(model, data), unlabelled(data)
    assert np.array_equal(label[hidden], model.transduction_[hidden])
    assert model.objective_ == pytest.approx(ssct_measure(model, data), abs=1e-9)


@crossed(WITHOUT_TOTALS)
def test_lap_svm(row):
    data = table(row)
    data["graph"] = neighbour_graph(data["X"])
    model = fitted(tw.LapSVMClassifier(width=1.0, ridge=0.5, gamma=0.01), data)
    hidden = unlabelled(data)
    assert model.status_ == "optimal"
    assert np.array_equal(model.predict(data["X"])[hidden], model.transduction_[hidden])
    if row == {"classes": 2, "rows": "distinct", "weighted": False}:
        assert model.objective_ == pytest.approx(lap_svm_measure(model, data), rel=1e-9)


def supervised(data: dict[str, Any]) -> dict[str, Any]:
    """The labelled rows alone."""
    known = data["y"] >= 0
    return {name: np.asarray(value)[known] for name, value in data.items()}


@pytest.mark.parametrize("kind", [tw.LapTAOClassifier, tw.LapSVMClassifier, tw.SSCTClassifier])
def test_one_class_is_refused_where_no_totals_can_name_another(kind):
    data = table({"classes": 3, "rows": "distinct", "weighted": False, "labels": "one class"})
    with pytest.raises(ValueError, match="one class"):
        kind().fit(data["X"], np.where(data["y"] < 0, np.nan, 0.0))


# ---------------------------------------------------------------------- the matrix itself


@pytest.mark.parametrize(("strength", "most"), [(2, 20), (3, 50)])
def test_all_settings_meet(strength, most):
    rows = covering(CROSSED, possible, strength)
    every = [dict(zip(CROSSED, values, strict=True)) for values in product(*CROSSED.values())]
    wanted = set().union(*(meetings(row, strength) for row in every if possible(row)))
    assert set().union(*(meetings(row, strength) for row in rows)) == wanted
    assert all(possible(row) for row in rows) and len(rows) < most


def test_tables_are_what_their_names_say():
    """The data of the matrix: equal rows, groups and labels as they are named."""
    base = {"classes": 3, "groups": "many", "weighted": True, "totals": "exact", "labels": "all classes", "limit": 1.0}
    for kind in CROSSED["rows"]:
        data = table(base | {"rows": kind})
        _, point = np.unique(data["X"], axis=0, return_inverse=True)
        point, hidden = point.reshape(-1), data["y"] == -1
        equal = [np.flatnonzero(point == t) for t in range(point.max() + 1) if np.sum(point == t) > 1]
        labels = [set(data["y"][rows].tolist()) - {-1} for rows in equal]
        across = any(len(set(data["groups"][rows].tolist())) > 1 and hidden[rows].all() for rows in equal)
        assert bool(equal) == (kind != "distinct")
        assert any(len(some) > 1 for some in labels) == (kind == "contradicting")
        assert across == (kind == "across groups")
    assert len(np.unique(data["groups"][hidden])) == 8 and np.sum(data["sample_weight"] == 0) == 2
    assert set(table(base | {"rows": "distinct", "labels": "one class"})["y"]) == {-1, 0}
