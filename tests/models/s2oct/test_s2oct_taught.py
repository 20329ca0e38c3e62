"""S2OCT with few terms a split, and its teachers, as users meet them; claims are checked from tree and data alone."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Perceptron, Ridge
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from tests.contracts.measures import reached_leaves

from treewright import S2OCTClassifier, Tree, load_model
from treewright.data import make_problem
from treewright.exceptions import InvalidInputError
from treewright.models.s2oct.fit import _absent_told
from verify_s2oct import verify_zero


def survey(n=90, p=5, seed=0, noise=0.3, labelled=15, n_classes=2):
    """Rows of which two features say nearly all, in odd units."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    level = X[:, 0] + 0.7 * X[:, 1] + noise * rng.normal(size=n)
    truth = np.digitize(level, np.quantile(level, np.arange(1, n_classes) / n_classes))
    X = X * rng.uniform(0.5, 30, p)
    truth[:n_classes] = np.arange(n_classes)
    y = np.where(np.arange(n) < labelled, truth, -1)
    return X, truth, y


def counted(truth, y, among=True):
    return {int(k): int(np.sum((y < 0) & (truth == k) & among)) for k in np.unique(truth)}


pytestmark = pytest.mark.usefixtures("shortest_searches")


def fit(X, y, totals=None, groups=None, weight=None, new=False, **parameters):
    settings = {"time_limit": 20, "random_state": 0, "max_depth": 2} | parameters
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return S2OCTClassifier(**settings).fit(
            X, y, totals=totals, groups=groups, sample_weight=weight, allow_new_classes=new
        )


def terms(tree):
    return np.count_nonzero(tree.weights[tree.left >= 0], axis=1)


def labels_of(model, tree, X):
    return model.classes_[tree.labels[reached_leaves(tree, np.asarray(X, float))]]


# ---------------------------------------------------------------------- few terms


@pytest.mark.parametrize("most", [1, 2, 3])
def test_no_split_has_more_terms_than_allowed(most):
    X, truth, y = survey(n=40)
    start = fit(X, y, totals=counted(truth, y), max_split_features=None, prefer="first")
    for more in ({}, {"n_estimators": 4}, {"warm_start": start.tree_}, {"time_limit": 0.01}, {"prefer": "sparse"}):
        model = fit(X, y, totals=counted(truth, y), max_split_features=most, **({"time_limit": 0.4} | more))
        for tree in model.trees_:
            assert terms(tree).max(initial=0) <= most
        assert np.array_equal(model.predict(X[y < 0]), model.transduction_[y < 0]) or len(model.trees_) > 1


def test_the_default_has_few_terms_and_meets_the_totals():
    X, truth, y = survey(n=150, p=8, labelled=60)
    model = fit(X, y, totals=counted(truth, y))
    assert sum(row["deviation"] for row in model.totals_) == 0
    assert terms(model.tree_).mean() < 5
    assert np.mean(model.transduction_[y < 0] == truth[y < 0]) > 0.75
    assert np.array_equal(model.predict(X[y < 0]), model.transduction_[y < 0])
    assert model.status_ in ("local", "optimal")
    if model.status_ == "local":
        wrong = int(np.sum(model.predict(X[y >= 0]) != y[y >= 0]))
        words = f"{wrong} of {np.sum(y >= 0)} labelled rows are not as labelled" if wrong else "all labels are right"
        assert "the totals are met" in model.reason_ and words in model.reason_
        assert "max_split_features=None" in model.reason_


def test_rows_that_are_not_as_labelled_are_counted_one_by_one():
    X, truth, y = survey(n=150, p=8, labelled=60)
    rng = np.random.default_rng(1)
    again = rng.permutation(np.repeat(np.arange(150), rng.integers(1, 4, 150)))
    y = np.where((y >= 0) & (rng.random(150) < 0.2), 1 - y, y)  # some are wrong
    model = fit(X[again], y[again], totals=counted(truth[again], y[again]))
    given = y[again] >= 0
    wrong = int(np.sum(model.predict(X[again][given]) != y[again][given]))
    assert model.status_ == "local" and wrong
    assert f"{wrong} of {given.sum()} labelled rows are not as labelled" in model.reason_


@pytest.mark.parametrize("size", ["auto", 1, 2, None])
def test_an_objective_of_zero_is_true(size):
    X, truth, y = survey(noise=0.0, n=60, labelled=8)
    total = int(np.sum(truth[y < 0] == 1))
    model = fit(X, y, totals={1: total}, max_split_features=size, time_limit=1 if size in (1, 2) else 20)
    if size in ("auto", None):
        assert np.sum(model.transduction_[y < 0] == 1) == total
    if model.objective_ == 0.0:
        assert model.status_ == "optimal"
        assert verify_zero(model.tree_, X, y, total, "tolerance") == []
    else:
        assert size is not None and (model.status_ != "optimal" or model.bound_ > 0)


def test_trees_are_short_numbers(monkeypatch):
    monkeypatch.setattr("treewright.models.s2oct.fit._GRACE", 60.0)  # after the limit, on a slow machine too
    X, truth, y = survey(noise=0.6)
    X = np.round(X, 1)
    for size in ("auto", 2):
        tree = fit(X, y, totals=counted(truth, y), max_split_features=size).tree_
        for node in np.flatnonzero(tree.left >= 0):
            used = tree.weights[node][tree.weights[node] != 0]
            relative = used / np.abs(used).max() if len(used) else used
            assert np.allclose(relative, [float(f"{w:.6e}") for w in relative], rtol=1e-9)


def test_a_class_that_no_row_gets_is_told():
    X, truth, y = survey(n_classes=3)
    totals = counted(truth, y)
    model = fit(X, y, totals=totals)
    problem = make_problem(X, y, supervised=False, totals=totals)
    assert _absent_told(problem, model.record_, model.transduction_) is model.record_
    without = np.where(model.transduction_ == 2, 0, model.transduction_)
    told = _absent_told(problem, model.record_, without).reason
    assert told == f"{model.reason_}; no row is labelled 2, which {totals[2]} rows are by the totals"


# ---------------------------------------------------------------------- whatever there is to learn from


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("grouped", [False, True])
def test_totals_are_met_in_classes_and_groups(n_classes, grouped):
    X, truth, y = survey(n=100, n_classes=n_classes, labelled=20)
    groups = np.where(np.arange(100) % 3 == 0, "n", "s") if grouped else None
    totals = {g: counted(truth, y, groups == g) for g in ("n", "s")} if grouped else counted(truth, y)
    model = fit(X, y, totals=totals, groups=groups, max_depth=None)
    for row in model.totals_:
        inside = (y < 0) & (np.ones(100, dtype=bool) if groups is None else groups == row["group"])
        assert row["reached"] == np.sum(model.transduction_[inside] == row["class"])
    if not grouped and n_classes == 2:  # continuous rows, one total: a threshold always meets it
        assert sum(row["deviation"] for row in model.totals_) == 0
    moved = sum(row["deviation"] for row in model.totals_) / 2
    assert moved <= 0.1 * np.sum(y < 0)
    assert np.array_equal(model.predict(X[y < 0]), model.transduction_[y < 0])


def test_labels_of_one_class_and_a_class_without_labels():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(0, 1, (30, 2)), rng.normal([9, 0], 1, (30, 2)), rng.normal([0, 9], 1, (20, 2))])
    truth = np.repeat([0, 1, 2], [30, 30, 20])
    y = np.full(80, -1)
    y[:5] = 0
    two = fit(X[:60], y[:60], totals={0: 25, 1: 30}, new=True)
    assert np.array_equal(two.transduction_, truth[:60])
    y[30:35] = 1
    three = fit(X, y, totals={0: 25, 1: 25, 2: 20}, new=True)
    assert three.classes_.tolist() == [0, 1, 2] and np.mean(three.transduction_ == truth) > 0.95


def test_without_totals_and_without_unlabelled_rows():
    X, truth, y = survey(noise=0.0, labelled=45)
    free = fit(X, y)
    assert free.totals_ == [] and np.array_equal(free.predict(X[y < 0]), free.transduction_[y < 0])
    whole = fit(X, truth)
    greedy = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, truth)
    assert np.mean(whole.predict(X) == truth) >= greedy.score(X, truth) - 0.05  # what a smaller tree may lack


def test_repeated_rows_are_weights():
    X, truth, y = survey(noise=0.8, n=60)
    times = np.where(y >= 0, 1 + np.arange(60) % 3, 1)
    totals = counted(truth, y)
    weighted = fit(X, y, totals=totals, weight=times, time_limit=None)
    repeated = fit(X.repeat(times, axis=0), y.repeat(times), totals=totals, time_limit=None)
    assert np.array_equal(weighted.predict(X), repeated.predict(X))
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-9)


@pytest.mark.parametrize("size", ["auto", 2, None])
@pytest.mark.parametrize("limit", [0.001, 0.05])
def test_next_to_no_time_is_enough_for_a_whole_fit(size, limit):
    X, truth, y = survey(n=400, noise=1.0, n_classes=3, labelled=80)
    model = fit(X, y, totals=counted(truth, y), max_split_features=size, time_limit=limit)
    assert np.isfinite(model.objective_) and 0 <= model.bound_ <= model.objective_
    assert model.predict(X).shape == y.shape and len(model.totals_) == 3
    if size == 2:
        assert terms(model.tree_).max(initial=0) <= 2


# ---------------------------------------------------------------------- committees, starts, files


def test_a_committee_votes_within_the_totals():
    X, truth, y = survey(n=120, noise=0.6)
    totals = counted(truth, y)
    model = fit(X, y, totals=totals, n_estimators=5)
    assert 1 <= len(model.trees_) <= 5 and model.trees_[0] == model.tree_
    assert {k: int(np.sum(model.transduction_[y < 0] == k)) for k in (0, 1)} == totals
    votes = np.mean([labels_of(model, tree, X) == 1 for tree in model.trees_], axis=0)
    assert np.array_equal(model.predict(X), (votes > 0.5).astype(int))
    assert np.array_equal(model.transduce(X), model.predict(X))
    likely = np.mean([tree.probabilities[reached_leaves(tree, X)] for tree in model.trees_], axis=0)
    np.testing.assert_allclose(model.predict_proba(X), likely, atol=1e-12)


@pytest.mark.usefixtures("short_searches")
@pytest.mark.parametrize("given", [True, False])
def test_a_committee_is_as_sure_as_it_is_right(given):
    """Votes of five trees are 0 or 1 nearly everywhere: their log loss is above 3 where a constant has 0.69."""
    rng = np.random.default_rng(0)
    X, fresh = rng.normal(size=(2, 600, 4))
    truth, other = ((rows @ [1.0, 1.0, 0.0, 0.0] + rng.logistic(size=600) > 0).astype(int) for rows in (X, fresh))
    y = np.where(np.arange(600) < 80, truth, -1)
    totals = {1: int(truth[80:].sum())} if given else None
    model = fit(X, y, totals=totals, n_estimators=5)
    assert len(model.trees_) > 1
    likely = model.predict_proba(fresh)
    assert given or np.array_equal(likely.argmax(axis=1), model.predict(fresh))
    assert log_loss(other, likely) < 0.65
    assert abs(likely.max(axis=1).mean() - np.mean(likely.argmax(axis=1) == other)) < 0.1


@pytest.mark.parametrize("size", [None, 2, "auto"])
def test_a_tree_that_is_right_is_kept(size):
    """Right on every label and every total with room: the same labels for all rows, and no worse an objective."""
    X, truth, y = survey(n=80, noise=0.0, labelled=12)
    normal = np.zeros(5)
    units = X.std(axis=0)
    normal[:2] = [1.0 / units[0], 0.7 / units[1]]
    level = X @ normal
    cut = float(np.sort(level)[40:42].mean())
    truth = (level > cut).astype(int)
    y = np.where(y >= 0, truth, -1)
    gap = np.abs(level[y >= 0] - cut).min()
    start = Tree.stump(normal / gap, cut / gap, np.eye(2))
    model = fit(X, y, totals=counted(truth, y), max_split_features=size, warm_start=start, prefer="first", max_depth=1)
    if size != "auto":
        assert model.objective_ == 0.0
        assert np.array_equal(model.predict(X), truth)
    else:  # as many terms as it takes, but nothing less is right
        assert sum(row["deviation"] for row in model.totals_) == 0


def test_a_fit_continues_from_its_own_tree_and_from_a_file(tmp_path):
    X, truth, y = survey()
    totals = counted(truth, y)
    model = fit(X, y, totals=totals, max_split_features=2, prefer="first", time_limit=1)
    again = fit(X, y, totals=totals, max_split_features=2, prefer="first", warm_start=model, time_limit=0.01)
    assert again.objective_ <= model.objective_ * (1 + 1e-9)
    model.save(tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    assert loaded.tree_ == model.tree_ and loaded.max_split_features == 2 and loaded.teacher == "auto"
    assert np.array_equal(loaded.predict(X), model.predict(X))


# ---------------------------------------------------------------------- teachers


TEACHERS = {
    "probabilities": (GaussianNB(), 2),
    "decision function": (Perceptron(), 3),
    "forest": (RandomForestClassifier(10), 2),
    "no weights": (KNeighborsClassifier(3), 3),
    "regressor": (Ridge(), 2),
    "regressor of three": (Ridge(), 3),
}


@pytest.mark.parametrize(("teacher", "n_classes"), TEACHERS.values(), ids=TEACHERS.keys())
def test_any_estimator_can_teach(teacher, n_classes):
    X, truth, y = survey(n=60, n_classes=n_classes, labelled=24)
    weight = np.ones(len(y))
    model = fit(X, y, totals=counted(truth, y), teacher=teacher, weight=weight, time_limit=None)
    assert model.teacher_.name == type(teacher).__name__
    assert np.mean(model.transduction_[y < 0] == truth[y < 0]) > 0.5  # a third by chance
    assert not hasattr(teacher, "n_features_in_")  # a clone was fitted
    if "random_state" in teacher.get_params():  # that of the model is handed on where it has none
        again = fit(X, y, totals=counted(truth, y), teacher=clone(teacher), weight=weight, time_limit=None)
        assert model.tree_ == again.tree_


@pytest.mark.parametrize("size", ["auto", None])
def test_labels_and_probabilities_teach(size):
    """What is told is along a line that labels alone do not tell."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (60, 2))
    wanted = (X[:, 1] > 0).astype(int)
    known = np.zeros(60, dtype=bool)
    known[[int(np.argmax(X.sum(axis=1))), int(np.argmin(X.sum(axis=1)))]] = True
    names = np.array(["no", "yes"])
    y = np.where(known, names[wanted], None)
    totals = {"yes": int(wanted[~known].sum())}
    shares = np.where(wanted[:, None] == [0, 1], 0.8, 0.2)
    for teacher, name in (
        (names[wanted], "labels"),
        (names[wanted].tolist(), "labels"),
        (pd.Series(names[wanted]), "labels"),
        (np.where(known, None, names[wanted]), "labels"),
        (shares, "probabilities"),
        (pd.DataFrame(shares), "probabilities"),
        (np.where(known[:, None], np.nan, shares), "probabilities"),
    ):
        model = fit(X, y, totals=totals, teacher=teacher, max_split_features=size, max_depth=1)
        assert model.teacher_.name == name and str(model.teacher_) == name
        assert np.mean(model.transduction_ == names[wanted]) > 0.93


def test_teachers_of_the_wrong_kind_are_refused_before_any_work():
    X, truth, y = survey()
    for teacher, words in (
        (truth[:-1], r"shape \(89,\).*90 rows"),
        (np.ones((90, 3)), r"\(90, 3\).*2 classes need \(90, 2\)"),
        (np.ones((89, 2)), r"\(89, 2\)"),
        (np.full(90, 7), "label 7 .*not a class"),
        (np.where(np.arange(90) == 50, -1, truth), "-1"),
        (np.full((90, 2), np.nan), "not finite"),
        (np.ones((90, 2, 1)), "shape"),
        (KMeans(2), "KMeans must be a classifier"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            S2OCTClassifier(teacher=teacher, time_limit=0.1).fit(X, y, totals=counted(truth, y))
    for teacher in ("forest", 3, None):
        with pytest.raises(ValueError, match="'teacher'"):
            S2OCTClassifier(teacher=teacher).fit(X, y)
    for size in (0, -1, 1.5, "all"):
        with pytest.raises(ValueError, match="'max_split_features'"):
            S2OCTClassifier(max_split_features=size).fit(X, y)


def test_a_teacher_that_knows_one_class_or_not_all():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(0, 1, (25, 2)), rng.normal([9, 0], 1, (25, 2)), rng.normal([0, 9], 1, (15, 2))])
    truth = np.repeat([0, 1, 2], [25, 25, 15])
    y = np.full(65, -1)
    y[:4] = 0
    for teacher in (LogisticRegression(), Ridge()):
        one = fit(X[:50], y[:50], totals={0: 21, 1: 25}, teacher=teacher, new=True)
        assert np.array_equal(one.transduction_, truth[:50])
    y[25:29] = 1
    for teacher in (LogisticRegression(), Ridge()):
        two = fit(X, y, totals={0: 21, 1: 21, 2: 15}, teacher=teacher, new=True)
        assert [row["reached"] for row in two.totals_] == [21, 21, 15]
        assert np.mean(two.transduction_ == truth) > 0.8


def test_what_the_teacher_was_is_said():
    X, truth, y = survey()
    model = fit(X, y, totals=counted(truth, y))
    record = model.teacher_
    assert record.name == "auto" and len(record.members) >= 2
    assert sum(member.share for member in record.members) == pytest.approx(1.0)
    assert 0.0 < record.score <= 1.0 and str(record).startswith("auto: ")
    printed = fit(X[:20], y[:20], totals={1: 2}, formulation="paper", margin_rule="paper", max_depth=1, time_limit=1)
    assert printed.teacher_ is None


@pytest.mark.usefixtures("short_searches")
@pytest.mark.parametrize("n_estimators", [1, 3])
@pytest.mark.parametrize("kind", ["groups", "interval", "alone", "none"])
def test_probabilities_of_the_rows_sum_to_the_totals(kind, n_estimators):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 2))
    truth = np.digitize(X[:, 0] + 0.5 * rng.normal(size=60), [-0.5, 0.5])
    area, known = np.arange(60) % 2, np.arange(60) < 24
    y = np.where(known, truth, -1)
    counts = {g: {k: int(np.sum((truth == k) & ~known & (area == g))) for k in range(3)} for g in (0, 1)}
    totals, groups, slack = counts, area, 0
    if kind == "interval":
        totals, slack = {g: {k: (max(0, n - 2), n + 2) for k, n in asked.items()} for g, asked in counts.items()}, 2
    if kind == "alone":
        totals, groups = {k: counts[0][k] + counts[1][k] for k in range(3)}, None
    given = {} if kind == "none" else {"totals": totals, "groups": groups}
    model = S2OCTClassifier(max_depth=2, n_estimators=n_estimators, time_limit=3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, **given)
    shares = model.transduction_proba_
    assert np.array_equal(shares[known], np.eye(3)[truth[known]])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-12)
    if kind == "none":
        plain = np.maximum(model.predict_proba(X[~known]), 1e-6)
        np.testing.assert_allclose(shares[~known], plain / plain.sum(axis=1, keepdims=True), atol=1e-12)
        return
    for g in (0, 1):
        inside = ~known & ((area == g) | (kind == "alone"))
        for k in range(3):
            asked = counts[g][k] if kind != "alone" else totals[k]
            assert abs(shares[inside, k].sum() - asked) <= slack + 1e-6
    new = {"totals": totals, "groups": None if groups is None else groups[~known]}
    np.testing.assert_allclose(shares[~known], model.transduce(X[~known], **new, return_proba=True)[1], atol=1e-9)
