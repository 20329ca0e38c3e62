"""OCTSVM and RE-SVM as estimators, and wrong labels as a product."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC
from tests.clock import within
from tests.contracts.measures import octsvm_objective

from treewright import OCTSVMClassifier, RESVMClassifier, find_wrong_labels, load_model
from treewright.exceptions import InvalidInputError
from treewright.models.octsvm.committee import confident_labels

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def band(n=120, wrong=20, seed=0):
    """A band that one hyperplane cannot cut out, the first labels wrong."""
    X = np.random.default_rng(seed).random((n, 2))
    truth = (np.abs(X[:, 0] - 0.5) < 0.22).astype(int)
    flipped = np.arange(n) < wrong
    return X, np.where(flipped, 1 - truth, truth), truth, flipped


def quick(**given):
    return OCTSVMClassifier(
        **({"max_depth": 1, "time_limit": 30, "gap": 0.9, "n_estimators": 15, "random_state": 0} | given)
    )


@pytest.fixture(scope="module")
def fitted():
    X, y, truth, flipped = band()
    frame = pd.DataFrame(X, columns=["age", "income"])
    labels = np.array(["no", "yes"])[y]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return quick().fit(frame, labels), frame, labels, truth, flipped


def test_a_band_with_wrong_labels_is_found_and_so_are_they(fitted):
    model, frame, labels, truth, flipped = fitted
    assert np.mean((model.predict(frame) == "yes") == truth) > 0.9
    assert f1_score(flipped, model.relabeled_) > 0.6
    assert np.array_equal(model.suggested_ != labels, model.relabeled_)
    assert model.suspicion_[flipped].mean() > model.suspicion_[~flipped].mean() + 1
    assert np.array_equal(model.decision_function(frame) >= 0, model.predict(frame) == "yes")
    assert model.max_norm_ in (1.0, 2.0, 4.0, 8.0, 16.0) and model.relabel_cost_ == 2.0


def test_the_table_is_sorted_and_names_the_rule_that_a_label_breaks(fitted):
    model, frame, labels, _, _ = fitted
    table = model.relabel_table()
    assert sorted(entry.row for entry in table) == list(range(len(frame)))
    assert all(a.suspicion >= b.suspicion for a, b in zip(table, table[1:], strict=False))
    worst = table[0]
    assert worst.relabeled and worst.label == labels[worst.row] != worst.suggested
    assert "age" in worst.rule and worst.rule.endswith(f": {worst.suggested}")
    for entry in table:
        assert bool(entry.rule) == (model.predict(frame.iloc[[entry.row]])[0] != entry.label)
    suspects = model.relabel_table(only_relabeled=True)
    assert len(suspects) == model.relabeled_.sum() and all(entry.relabeled for entry in suspects)
    assert list(pd.DataFrame(suspects).columns) == ["row", "label", "suggested", "suspicion", "relabeled", "rule"]


def test_files_keep_the_tree_and_not_the_rows(fitted, tmp_path):
    model, frame, _, _, _ = fitted
    model.save(tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    assert np.array_equal(again.predict(frame), model.predict(frame))
    assert np.allclose(again.decision_function(frame), model.decision_function(frame))
    assert (again.max_norm_, again.relabel_cost_) == (model.max_norm_, model.relabel_cost_)
    with pytest.raises(InvalidInputError, match="do not hold the training rows"):
        again.relabel_table()


@pytest.mark.usefixtures("no_branch_and_bound")
def test_the_tree_alone_relabels_what_it_does_not_fit(tmp_path):
    X, y, truth, flipped = band()
    model = quick(relabel="tree", max_norm=8.0, time_limit=60).fit(X, y)
    assert model.relabel_cost_ == 1.0
    assert f1_score(flipped, model.relabeled_) > 0.6 and model.score(X, truth) > 0.9
    prices = {"c1": 1.0, "c2": 1.0, "c3": 0.04 * len(X)}
    cost = octsvm_objective(model.tree_, X, y, np.ones(len(X)), 1, prices)
    assert model.objective_ == pytest.approx(cost)
    for row in (0, 40, 80):  # what another label would save
        other = np.where(np.arange(len(X)) == row, 1 - y, y)
        saved = cost - octsvm_objective(model.tree_, X, other, np.ones(len(X)), 1, prices)
        assert model.suspicion_[row] == pytest.approx(saved, abs=1e-6)
    believing = quick(relabel="tree", relabel_cost=np.inf, max_norm=8.0).fit(X, y)
    assert not believing.relabeled_.any()
    believing.save(tmp_path / "model.json")
    assert load_model(tmp_path / "model.json").relabel_cost_ == np.inf


@pytest.mark.usefixtures("no_branch_and_bound", "short_searches")
def test_several_classes_have_a_tree_each(tmp_path):
    X, y = load_iris(return_X_y=True)
    X, y = X[::2], y[::2]
    noisy = y.copy()
    noisy[::10] = (noisy[::10] + 1) % 3
    model = quick(n_estimators=8, time_limit=60).fit(X, noisy)
    assert len(model.trees_) == 3 and model.decision_function(X).shape == (75, 3)
    assert model.score(X, y) > 0.85 and f1_score(noisy != y, model.relabeled_) > 0.7
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert np.array_equal(model.predict_proba(X).argmax(axis=1), model.predict(X))
    assert model.export_text().count("against all others") == 3
    entry = model.relabel_table()[0]
    assert entry.rule.endswith(f": {entry.suggested}") and noisy[entry.row] == entry.label
    model.save(tmp_path / "model.json")
    assert np.array_equal(load_model(tmp_path / "model.json").predict(X), model.predict(X))
    with pytest.raises(InvalidInputError, match="3 trees"):
        model.apply(X)
    assert model.set_params(warm_start=True).fit(X, noisy).score(X, y) > 0.85


@pytest.mark.parametrize("weighted", [False, True])
def test_without_relabelling_re_svm_is_the_linear_machine_of_scikit_learn(weighted):
    rng = np.random.default_rng(1)
    X = rng.random((40, 3))
    X[0], X[1] = 0.0, 1.0
    y = (X @ [2.0, -1.0, 0.5] + 0.2 * rng.normal(size=40) > 0.7).astype(int)
    weight = rng.integers(1, 3, 40).astype(float) if weighted else np.ones(40)
    model = RESVMClassifier(c1=5.0, c2=1e6, random_state=0, time_limit=30).fit(X, y, sample_weight=weight)
    other = SVC(kernel="linear", C=5.0, tol=1e-8).fit(X, y, sample_weight=weight)
    hinge = np.maximum(0, 1 - (2 * y - 1) * other.decision_function(X))
    assert model.status_ == "optimal"
    assert model.objective_ == pytest.approx(0.5 * np.sum(other.coef_**2) + 5.0 * weight @ hinge, rel=1e-4)
    assert np.allclose(model.decision_function(X), other.decision_function(X), atol=2e-2)


def test_a_tree_of_depth_0_is_re_svm_for_matching_prices():
    rng = np.random.default_rng(2)
    X = rng.random((14, 2))
    X[0], X[1] = 0.0, 1.0
    y = (X[:, 0] > 0.5).astype(int)
    y[3] = 1 - y[3]
    machine = RESVMClassifier(c1=4.0, c2=6.0, random_state=0, time_limit=30).fit(X, y)
    long = np.linalg.norm(machine.tree_.weights[0])
    # half the norm instead of half its square: the slope at the optimum is 1/2 there and `long` here
    prices = {"c1": 4.0 / (2 * long), "c2": 6.0 / (2 * long), "c3": 0.0}
    tree = OCTSVMClassifier(0, **prices, relabel="tree", random_state=0, time_limit=30).fit(X, y)
    assert machine.status_ == tree.status_ == "optimal"
    assert np.allclose(tree.decision_function(X), machine.decision_function(X), atol=1e-2)
    assert np.array_equal(tree.relabeled_, machine.relabeled_)


@pytest.mark.usefixtures("short_searches")
def test_kernel_features_make_splits_that_are_not_linear():
    rng = np.random.default_rng(3)
    X = rng.random((150, 2))
    truth = (((X - 0.5) ** 2).sum(axis=1) < 0.14).astype(int)
    y = np.where(np.arange(150) < 20, 1 - truth, truth)
    settings = {"max_depth": 0, "max_norm": 4.0, "n_estimators": 10}
    mapped = make_pipeline(MinMaxScaler(), Nystroem(gamma=6.0, n_components=30, random_state=0), quick(**settings))
    assert mapped.fit(X, y).score(X, truth) > quick(**settings).fit(X, y).score(X, truth) + 0.15


@pytest.mark.parametrize("kind", [OCTSVMClassifier, RESVMClassifier])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_limit_that_cannot_be_met_still_gives_a_model(kind, n_classes):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(150, 4)), 2, axis=0)
    y = rng.integers(0, n_classes, 300)
    weight = rng.integers(0, 3, 300).astype(float)
    model = kind(time_limit=0.05, relabel="committee", random_state=0)
    with pytest.warns(UserWarning):
        model.fit(X, y, sample_weight=weight)
    assert set(model.predict(X)) <= set(range(n_classes)) and model.status_ == "time_limit"
    assert np.isnan(model.suspicion_[weight == 0]).all() and not model.relabeled_[weight == 0].any()
    assert np.isfinite(model.suspicion_[weight > 0]).all()


@pytest.mark.usefixtures("no_branch_and_bound")
def test_equal_rows_are_judged_alike_and_weights_count_rows():
    X, y, _, _ = band(60, 8)
    twice = quick().fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    weighted = quick().fit(X, y, sample_weight=np.full(60, 2.0))
    assert np.allclose(twice.suspicion_[::2], twice.suspicion_[1::2])
    assert np.allclose(twice.suspicion_[::2], weighted.suspicion_)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"c1": 1.0}, "c1 alone"),
        ({"c1": 1.0, "c2": 1.0, "c3": 0.0, "max_norm": 2.0}, "beside"),
        ({"max_norm": 0.0}, "max_norm"),
        ({"relabel": "nobody"}, "relabel"),
        ({"norm": "l3"}, "norm"),
    ],
)
def test_settings_that_contradict_are_refused_before_any_work(given, match):
    X, y, _, _ = band(20, 2)
    with pytest.raises(ValueError, match=match):
        quick(**given).fit(X, y)


@pytest.mark.usefixtures("no_branch_and_bound")
def test_grid_search_over_the_prices():
    X, y, truth, _ = band(80, 10)
    search = GridSearchCV(quick(time_limit=60, relabel="tree"), {"max_norm": [0.5, 8.0]}, cv=2).fit(X, y)
    assert search.best_params_ == {"max_norm": 8.0} and search.score(X, truth) > 0.8


# ---------------------------------------------------------------------- wrong labels before any classifier


def test_wrong_labels_of_several_classes():
    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])
    noisy = y.copy()
    noisy[::8] = (noisy[::8] + 1) % 3
    found = find_wrong_labels(X, names[noisy], n_estimators=15, random_state=0)
    assert f1_score(noisy != y, found.wrong) > 0.7
    assert np.mean(found.suggested == names[y]) > np.mean(noisy == y)
    assert np.allclose(found.probability.sum(axis=1), 1.0) and found.classes.tolist() == ["a", "b", "c"]
    # log-odds: above 0 where another label is more probable than the given one
    own = found.probability[np.arange(150), noisy]
    assert np.array_equal(found.suspicion > 0, own < found.probability.max(axis=1))


def test_threads_make_no_difference_and_rows_of_weight_0_are_left_out():
    X, y, _, _ = band(80, 10)
    weight = np.where(np.arange(80) % 7 == 0, 0.0, 1.0)
    one, two = (find_wrong_labels(X, y, weight, n_estimators=6, random_state=1, n_jobs=k) for k in (None, 2))
    assert np.array_equal(one.suspicion, two.suspicion, equal_nan=True)
    assert np.isnan(one.suspicion[weight == 0]).all() and not one.wrong[weight == 0].any()
    assert np.array_equal(one.suggested[weight == 0], y[weight == 0])


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"n_estimators": 4}, "n_estimators"),
        ({"time_limit": -1.0}, "time_limit"),
        ({"time_limit": 1e-9}, "too short"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_bad_settings_of_the_committee_are_refused(change, match):
    X, y, _, _ = band(40, 4)
    with pytest.raises(ValueError, match=match):
        find_wrong_labels(X, y, **change)


def test_a_class_of_few_rows_is_refused_by_name():
    X, y, _, _ = band(40, 4)
    labels = np.array(["x", "y"], dtype=object)[y]
    labels[:3] = "rare"
    with pytest.raises(ValueError, match="rare.*3 different rows"):
        find_wrong_labels(X, labels)
    with pytest.raises(ValueError, match="NaN"):
        find_wrong_labels(np.where(X < 0.1, np.nan, X), y)


def test_rows_that_nothing_parts_are_not_all_held_for_wrong():
    X, y = np.zeros((60, 1)), np.repeat([0, 1, 2], [6, 30, 24])
    model = RESVMClassifier(random_state=0, time_limit=3).fit(X, y)
    assert set(model.predict(X)) == {1} and not model.relabeled_.any()
    assert "not 0" in model.export_text()


def test_a_tree_without_splits_says_what_that_means():
    X, y, _, _ = band(40, 0)
    with pytest.warns(UserWarning, match="no split.*held for wrong"):
        model = RESVMClassifier(c1=1.0, c2=0.1, random_state=0, time_limit=5).fit(X, y)
    assert model.relabel_table()[0].rule.startswith("everywhere: ")


def test_equal_votes_refute_no_label():
    y = np.array([0, 1, 1, 0])
    assert np.array_equal(confident_labels(np.full((4, 2), 0.5), y, np.ones(4)), y)
    X, y, _, _ = band(40, 4)
    assert repr(find_wrong_labels(X, y, n_estimators=5, random_state=0)).endswith("of 40 labels held for wrong)")


def test_values_are_graded_above_the_last_level_too():
    X, y, _, _ = band(80, 0)
    model = quick(relabel="tree", max_norm=4.0, split_cost=0.2, max_depth=1).fit(X, (X[:, 0] > 0.5).astype(int))
    assert len(model.tree_.branches) == 1 and len(np.unique(model.decision_function(X))) > 40


def test_a_point_that_keeps_its_cones_is_not_finished_beyond_the_limit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 30))
    y = (X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.normal(size=1500) > 1).astype(int)
    quick(time_limit=0.3).fit(X[:60], y[:60])  # loads what is compiled
    with within(1.0 + 2.0):
        model = quick(max_depth=2, time_limit=1.0, n_estimators=5, gap=0.0).fit(X, y)
    assert model.status_ == "time_limit"
