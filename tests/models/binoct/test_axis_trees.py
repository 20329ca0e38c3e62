"""BinOCTClassifier and FairOCTClassifier as their users meet them."""

import pickle
import signal
import threading
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from tests.contracts.brute_force_axis import discrimination

from treewright import BinOCTClassifier, FairOCTClassifier, OCTHClassifier, load_model
from treewright.cli import main
from treewright.exceptions import InvalidInputError, ModelFileError
from treewright.solvers.highs import HighsSolver

KINDS = [BinOCTClassifier, FairOCTClassifier]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True)


def quiet_fit(model, X, y, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y, **given)


def no_solver(monkeypatch):
    monkeypatch.setattr(HighsSolver, "solve", lambda *a, **k: pytest.fail("a solver was called"))


def errors(model, X, y):
    return int(np.sum(model.predict(X) != y))


# ---------------------------------------------------------------------- both


@every_kind
def test_never_more_errors_than_cart(kind, wine):
    X, y = wine
    model = quiet_fit(kind(2, time_limit=1, random_state=0), X, y)
    cart = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    assert errors(model, X, y) <= errors(cart, X, y)
    assert np.all(np.count_nonzero(model.tree_.weights[model.tree_.branches], axis=1) == 1)
    unit = 1 if kind is BinOCTClassifier else len(y)
    assert model.bound_ <= model.objective_ == pytest.approx(errors(model, X, y) / unit)


@every_kind
def test_stumps_are_proven_without_a_solver(kind, wine, monkeypatch):
    no_solver(monkeypatch)
    X, y = wine
    model = kind(1).fit(X, y)
    least = min(
        len(y) - sum(np.bincount(side).max() for side in (y[x <= t], y[x > t])) for x in X.T for t in np.unique(x)[:-1]
    )
    assert model.status_ == "optimal" and errors(model, X, y) == least


@every_kind
def test_repeated_rows_are_weights_and_weights_of_zero_leave_rows_out(kind):
    rng = np.random.default_rng(1)
    X, y, times = rng.integers(0, 4, (10, 2)), rng.integers(0, 2, 10), rng.integers(1, 4, 10)
    X, y = np.vstack([X, [[9, 9]]]), np.append(y, 2)  # a class that has no weight
    weighted = kind(2, random_state=0).fit(X, y, sample_weight=np.append(times * 0.25, 0.0))
    repeated = kind(2, random_state=0).fit(np.repeat(X[:10], times, axis=0), np.repeat(y[:10], times))
    assert weighted.status_ == repeated.status_ == "optimal"
    assert weighted.objective_ == pytest.approx(repeated.objective_ * (0.25 if kind is BinOCTClassifier else 1.0))
    assert weighted.objective_ > 0
    assert weighted.predict(X[:10]).tolist() == repeated.predict(X[:10]).tolist()
    assert weighted.classes_.tolist() == [0, 1, 2]


@every_kind
def test_contradicting_rows_are_a_proof(kind, monkeypatch):
    no_solver(monkeypatch)
    model = kind(2).fit([[0.0], [0.0], [0.0], [1.0]], ["a", "a", "b", "b"])
    assert model.status_ == "optimal" and model.score([[0.0], [1.0]], ["a", "b"]) == 1.0


@every_kind
def test_thresholds_lie_midway_between_the_rows_that_reach_them(kind):
    X, y = [[1.0, 0.0], [2.0, 10.0], [8.0, 0.0], [8.5, 4.0], [9.0, 20.0]], [0, 0, 1, 1, 0]
    tree = kind(2, random_state=0).fit(X, y).tree_
    found = {(int(np.argmax(tree.weights[b])), float(tree.threshold[b])) for b in tree.branches}
    assert found == {(0, 5.0), (1, 12.0)}  # 12 is midway between 4 and 20; 10 goes left at the root


@every_kind
def test_huge_and_tiny_values_and_constant_columns_are_no_matter(kind):
    X = np.array([[1e15 + 1, 7.0, 1e-300], [1e15 + 2, 7.0, 2e-300], [1e15 + 3, 7.0, 1e300], [1e15 + 4, 7.0, -1e300]])
    for y in ([0, 1, 1, 1], [0, 1, 0, 0]):
        model = kind(2, random_state=0).fit(X, y)
        assert model.status_ == "optimal" and model.predict(X).tolist() == y


@every_kind
def test_frames_files_pickles_and_clones(kind, tmp_path):
    X, y = load_iris(as_frame=True, return_X_y=True)
    names = np.array(["x", "y", "z"])[y]
    model = quiet_fit(kind(2, time_limit=0.5, random_state=0), X, names)
    assert model.feature_names_in_.tolist() == X.columns.tolist()
    expected = model.predict(X)
    assert model.predict(pl.DataFrame(X.to_dict("list"))).tolist() == expected.tolist()
    model.save(tmp_path / "m.json")
    for again in (load_model(tmp_path / "m.json"), pickle.loads(pickle.dumps(model))):
        assert type(again) is kind and again.tree_ == model.tree_
        assert again.predict(X).tolist() == expected.tolist() and again.objective_ == model.objective_
    assert clone(model).get_params() == model.get_params()


@every_kind
def test_a_tree_with_hyperplanes_is_a_start(kind, wine):
    X, y = wine
    start = quiet_fit(OCTHClassifier(3, time_limit=0.3, random_state=0), X, y)
    model = quiet_fit(kind(2, time_limit=0.5, warm_start=start, random_state=0), X, y)
    assert model.tree_.depth <= 2 and model.score(X, y) > 0.9


@every_kind
def test_missing_values_and_text_get_the_errors_of_other_models_of_numbers(kind):
    for X, message in [([[0.0], [np.nan]], "NaN"), (pd.DataFrame({"a": ["u", "v"]}), "text in column 'a'")]:
        for model in (kind(), OCTHClassifier()):
            with pytest.raises(ValueError, match=message):
                model.fit(X, [0, 1])
    with pytest.raises(InvalidInputError, match="only one class"):
        kind().fit([[0.0], [1.0]], ["a", "a"])


@every_kind
def test_large_tables_keep_the_time_limit(kind):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20_000, 10)), rng.integers(0, 3, 20_000)
    model = quiet_fit(kind(3, time_limit=1.0, random_state=0), X, y)
    assert model.status_ in ("time_limit", "unproven") and model.tree_.depth <= 3
    assert 0 <= model.bound_ < model.objective_


@every_kind
def test_ctrl_c_returns_the_best_tree_so_far(kind):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 2, 60)
    timer = threading.Timer(1.0, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    try:
        model = quiet_fit(kind(3, time_limit=60, random_state=0), X, y)
    finally:
        timer.join()
    assert model.status_ == "interrupted" and model.predict(X).shape == (60,)


# ---------------------------------------------------------------------- protected groups


def hiring(n=16, seed=0):
    """Ability that both groups have alike, and a test that one of them does better in; labels follow the test."""
    rng = np.random.default_rng(seed)
    group = np.where(np.arange(n) % 2 == 0, "f", "m")
    ability = rng.integers(0, 10, n)
    test = ability + np.where(group == "m", 4, 0) + rng.integers(0, 2, n)
    return np.column_stack([test, ability]), (test > 7).astype(int), group


def test_discrimination_falls_with_its_price_and_errors_rise():
    X, y, group = hiring()
    found = [
        quiet_fit(FairOCTClassifier(1, fairness_weight=price, random_state=0), X, y, protected=group)
        for price in (0.0, 0.3, 5.0)
    ]
    for model in found:
        index = discrimination(model.predict(X), group, np.ones(len(y)), 2)
        assert model.discrimination_ == pytest.approx(index)
        value = np.mean(model.predict(X) != y) + model.fairness_weight * index
        assert model.status_ == "optimal" and model.objective_ == pytest.approx(value)
    unlike, wrong = [m.discrimination_ for m in found], [errors(m, X, y) for m in found]
    assert unlike[0] > unlike[1] + 0.1 and unlike[1] >= unlike[2] - 1e-9 and wrong[0] < wrong[1] <= wrong[2]


def test_names_of_groups_are_no_matter_and_rows_without_weight_have_none():
    X, y, group = hiring()
    first = FairOCTClassifier(1, fairness_weight=0.1).fit(X, y, protected=group)
    second = FairOCTClassifier(1, fairness_weight=0.1).fit(X, y, protected=pl.Series(group == "f"))
    assert first.tree_ == second.tree_ and first.discrimination_ == pytest.approx(second.discrimination_)
    more, weight = np.vstack([X, X[:1]]), np.append(np.ones(len(y)), 0.0)
    third = FairOCTClassifier(1, fairness_weight=0.1).fit(
        more, np.append(y, 0), sample_weight=weight, protected=[*group, "x"]
    )
    assert third.objective_ == pytest.approx(first.objective_)


def test_leaves_that_contradict_their_rows_are_sure_of_their_label():
    X, y, group = [[0]] * 4 + [[1]] * 3, [0, 0, 0, 0, 1, 1, 0], ["f"] * 4 + ["m"] * 3
    model = FairOCTClassifier(1, fairness_weight=1.0).fit(X, y, protected=group)
    assert model.predict(X).tolist() == [0] * 7 and model.discrimination_ == 0.0
    assert model.classes_[model.predict_proba(X).argmax(axis=1)].tolist() == [0] * 7


@pytest.mark.parametrize(
    ("protected", "message"),
    [
        (["f", "m"], "protected has 2 entries, X has 16 rows"),
        ([None, *"f" * 15], "1 of 16 rows .*no protected group.*row 0"),
        (np.ones((16, 2)), "protected should be a 1d array"),
        (["f", 1] * 8, "protected mixes strings and numbers"),
    ],
)
def test_groups_that_are_none_are_refused(protected, message):
    X, y, _ = hiring()
    with pytest.raises(InvalidInputError, match=message):
        FairOCTClassifier(fairness_weight=0.1).fit(X, y, protected=protected)


def test_a_price_without_groups_is_refused_and_groups_without_a_price_are_measured():
    X, y, group = hiring()
    with pytest.raises(InvalidInputError, match=r"fairness_weight=0.1 .*protected="):
        FairOCTClassifier(fairness_weight=0.1).fit(X, y)
    model = FairOCTClassifier(1).fit(X, y, protected=group)
    assert model.discrimination_ > 0
    assert not hasattr(model.fit(X, y), "discrimination_")


def test_a_model_file_keeps_the_index(tmp_path):
    X, y, group = hiring()
    path = tmp_path / "m.json"
    model = FairOCTClassifier(1).fit(X, y, protected=group)
    model.save(path)
    assert load_model(path).discrimination_ == model.discrimination_
    path.write_text(path.read_text().replace(f'"discrimination": {model.discrimination_}', '"discrimination": "none"'))
    with pytest.raises(ModelFileError, match="discrimination"):
        load_model(path)


def test_groups_are_routed_to_fits_inside():
    X, y, group = hiring()
    grid = {"fairness_weight": [0.0, 5.0]}
    search = GridSearchCV(FairOCTClassifier(1, random_state=0), grid, cv=2).fit(X, y, protected=group)
    assert search.best_params_ == {"fairness_weight": 0.0} and search.best_estimator_.discrimination_ > 0
    with config_context(enable_metadata_routing=True):
        tree = FairOCTClassifier(1, fairness_weight=5.0).set_fit_request(protected=True)
        inside = make_pipeline(StandardScaler(), tree).fit(X, y, protected=group)
    assert inside[-1].discrimination_ == pytest.approx(0.0, abs=0.2)


def test_the_command_line_takes_a_column_of_groups(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y, group = hiring()
    table = pd.DataFrame({"test": X[:, 0], "ability": X[:, 1], "sex": group, "hired": y})
    table.to_csv("t.csv", index=False)
    command = ["fit", "t.csv", "--target", "hired", "--max-depth", "1", "--protected", "sex", "--out", "m.json"]
    assert main([*command, "--model", "fair-oct", "--set", "fairness_weight=5"]) == 0
    model = load_model("m.json")
    expected = FairOCTClassifier(1, fairness_weight=5.0).fit(X, y, protected=group)
    assert model.feature_names_in_.tolist() == ["test", "ability"]
    assert model.discrimination_ == pytest.approx(expected.discrimination_)
    assert main([*command, "--model", "binoct"]) == 2
    assert "binoct does not know protected groups; fair-oct does" in capsys.readouterr().err
    table.loc[3, "sex"] = None
    table.to_csv("t.csv", index=False)
    assert main([*command, "--model", "fair-oct"]) == 2
    assert "column 'sex' is empty in row 4" in capsys.readouterr().err
