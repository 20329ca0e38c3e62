"""TotalsClassifier: totals met to the row, ties that know no order, prices that label new rows."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_blobs
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier, StackingClassifier, VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags
from tests.examples import looped

from treewright import TotalsClassifier
from treewright.exceptions import InfeasibleTotalsError, InvalidInputError
from treewright.models.labeller_files import read_labeller, write_labeller
from treewright.teachers.classifier import TeacherClassifier


class Columns(ClassifierMixin, BaseEstimator):
    """Scores are the features themselves, so that expectations can be written by hand."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return X[:, 0] if len(self.classes_) == 2 else X[:, : len(self.classes_)]

    def predict(self, X):
        raise AssertionError("labels come from scores")


class Foreign:
    """Looks like an estimator, but scikit-learn knows nothing of it."""

    def fit(self, X, y): ...
    def get_params(self, deep=True): ...
    def set_params(self, **params): ...


class NoWork(Columns):
    def fit(self, X, y):
        pytest.fail("the estimator was fitted")


def survey(n=150, k=2, seed=0, labelled=0.2):
    """Rows around k centres; the first 2 k rows have labels of all classes, the others some."""
    rng = np.random.default_rng(seed)
    truth = np.concatenate([np.tile(np.arange(k), 2), rng.integers(0, k, n - 2 * k)])
    X = rng.normal(size=(n, 3)) + rng.normal(size=(k, 3))[truth] * 1.5
    known = rng.random(n) < labelled
    known[: 2 * k] = True
    return X, truth, known, np.where(known, truth, -1)


def counts(labels, k):
    return np.bincount(labels, minlength=k).tolist()


# ---------------------------------------------------------------------- totals are met


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(2, 4),
    st.sampled_from(["exact", "interval", "share"]),
    st.booleans(),
    st.sampled_from([LogisticRegression(), DecisionTreeClassifier(max_depth=2), LinearSVC(), DummyClassifier()]),
)
def test_totals_are_met_in_rows(seed, k, kind, grouped, estimator):
    rng = np.random.default_rng(seed)
    X, truth, known, y = survey(60 + int(rng.integers(60)), k, seed)
    X = np.round(X, int(rng.integers(3)))  # some rows become equal
    groups = rng.choice(["n", "s", "w"], len(y)) if grouped else np.full(len(y), "all")
    asked, bounds = {}, {}
    for name in np.unique(groups[~known]).tolist():
        n = int(np.sum(~known & (groups == name)))
        count = rng.multinomial(n, rng.dirichlet(np.ones(k)))
        if kind == "exact":
            asked[name] = {c: int(count[c]) for c in range(k)}
            bounds[name] = {c: (count[c], count[c]) for c in range(k)}
        elif kind == "interval":
            asked[name] = {c: (max(0, int(count[c]) - 2), int(count[c]) + 1) for c in range(k - 1)}
            bounds[name] = asked[name]
        else:  # of one class, as a share: the nearest number of rows
            share = float(rng.random())
            asked[name] = {1: share}
            bounds[name] = {1: (share * n - 0.5 - 1e-9, share * n + 0.5 + 1e-9)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = TotalsClassifier(estimator, random_state=seed).fit(
            X, y, totals=asked if grouped else asked["all"], groups=groups if grouped else None
        )
    assert np.array_equal(model.transduction_[known], truth[known])
    for name, part in bounds.items():
        inside = ~known & (groups == name)
        for c, (low, high) in part.items():
            assert low <= np.sum(model.transduction_[inside] == c) <= high
    for row in model.totals_:
        inside = ~known & ((groups == row["group"]) if grouped else True)
        assert row["reached"] == np.sum(model.transduction_[inside] == row["class"]) and row["deviation"] == 0


@pytest.mark.parametrize("estimator", [LogisticRegression(), GaussianNB(), LinearSVC(random_state=0), SVC()])
def test_two_classes_are_the_cut_of_two_lines(estimator):
    X, truth, known, y = survey(200)
    total = int(truth[~known].sum()) + 7
    plain = clone(estimator).fit(X[known], truth[known])
    score = (
        plain.predict_proba(X[~known])[:, 1] if hasattr(plain, "predict_proba") else plain.decision_function(X[~known])
    )
    assert len(np.unique(score)) == len(score)
    expected = np.zeros(len(score), dtype=int)
    expected[np.argsort(-score)[:total]] = 1
    model = TotalsClassifier(estimator, random_state=0).fit(X, y, totals={1: total})
    assert np.array_equal(model.transduction_[~known], expected)
    assert np.array_equal(model.predict(X[~known]), expected)


def test_the_cut_of_each_group():
    X, truth, known, y = survey(200)
    groups = np.where(np.arange(200) % 3 == 0, "north", "south")
    totals = {"north": {1: 11}, "south": {0: 40}}
    model = TotalsClassifier(Columns()).fit(X, y, totals=totals, groups=groups)
    for name, ones in (("north", 11), ("south", int(np.sum(~known & (groups == "south"))) - 40)):
        inside = np.flatnonzero(~known & (groups == name))
        expected = inside[np.argsort(-X[inside, 0])[:ones]]
        assert np.array_equal(np.sort(expected), inside[model.transduction_[inside] == 1])


def test_without_totals_it_is_the_plain_classifier():
    X, truth, known, y = survey(150, 3)
    plain = LogisticRegression().fit(X[known], truth[known])
    model = TotalsClassifier(LogisticRegression()).fit(X, y)
    assert np.array_equal(model.predict(X), plain.predict(X))
    assert np.array_equal(model.transduction_[~known], plain.predict(X[~known]))
    assert np.allclose(model.predict_proba(X), plain.predict_proba(X), rtol=0, atol=1e-4)  # rows in another order
    assert model.totals_ == [] and model.class_prices_[None].tolist() == [0.0, 0.0, 0.0]


def test_intervals_that_do_not_bind_change_nothing():
    X, truth, known, y = survey(150, 3)
    free = TotalsClassifier(LogisticRegression()).fit(X, y)
    reached = counts(free.transduction_[~known], 3)
    model = TotalsClassifier(LogisticRegression()).fit(
        X, y, totals={c: (reached[c] - 3, reached[c] + 3) for c in range(3)}
    )
    assert np.array_equal(model.transduction_, free.transduction_)
    assert model.class_prices_[None].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.usefixtures("shortest_searches")
def test_a_file_keeps_the_axes_of_a_teacher_without_totals(tmp_path):
    X, _, _, y = survey(60, seed=3)
    model = TotalsClassifier(random_state=0).fit(X, y)
    assert [member.name for member in model.estimator_.record_.members][-1] == "extra trees with principal components"
    write_labeller(tmp_path / "m.zip", model, {})
    again, _ = read_labeller(tmp_path / "m.zip")
    axes = model.estimator_.teacher_.voters[-1].fitted.axes
    np.testing.assert_array_equal(again.estimator_.teacher_.voters[-1].fitted.axes, axes)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.usefixtures("short_searches")
def test_the_default_is_a_teacher_that_totals_improve():
    X, truth, known, y = survey(400, seed=3)
    known[:] = False
    known[np.flatnonzero(truth == 1)[:40]] = known[np.flatnonzero(truth == 0)[:8]] = True  # a biased sample
    y = np.where(known, truth, -1)
    total = int(truth[~known].sum())
    model = TotalsClassifier(random_state=0).fit(X, y, totals=total)
    assert isinstance(model.estimator_, TeacherClassifier) and model.estimator_.record_.chosen
    assert counts(model.transduction_[~known], 2)[1] == total
    plain = TotalsClassifier(random_state=0).fit(X, y)
    assert np.mean(model.transduction_ == truth) > np.mean(plain.transduction_ == truth)


# ---------------------------------------------------------------------- ties


@pytest.mark.usefixtures("shortest_searches")
@pytest.mark.parametrize(
    "estimator", ["auto", DecisionTreeClassifier(max_depth=2), DummyClassifier(), LogisticRegression()]
)
@pytest.mark.parametrize("k", [2, 3])
def test_rows_in_another_order_get_the_same_labels(estimator, k):
    X, truth, known, y = survey(120, k)
    groups = np.where(X[:, 2] > 0, "n", "s")
    totals = {g: {c: int(np.sum(truth[~known & (groups == g)] == c)) for c in range(k)} for g in "ns"}
    totals["n"][0], totals["n"][1] = totals["n"][0] + 3, totals["n"][1] - 3
    first = TotalsClassifier(estimator, random_state=5).fit(X, y, totals=totals, groups=groups)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(y))
        other = TotalsClassifier(estimator, random_state=5).fit(X[order], y[order], totals=totals, groups=groups[order])
        assert np.array_equal(other.transduction_, first.transduction_[order])
        assert all(np.array_equal(other.class_prices_[g], first.class_prices_[g]) for g in ("n", "s", None))


def test_a_file_sorted_by_class_gives_nothing_away():
    """Constant scores know nothing, so half of the labels are right; row order would make it all of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(404, 2))
    truth = np.concatenate([[0, 0, 1, 1], np.repeat([0, 1], 200)])
    y = np.concatenate([truth[:4], np.full(400, -1)])
    order = rng.permutation(404)
    right = []
    for seed in range(30):
        model = TotalsClassifier(DummyClassifier(), random_state=seed).fit(X, y, totals={1: 200})
        assert counts(model.transduction_[4:], 2) == [200, 200]
        moved = TotalsClassifier(DummyClassifier(), random_state=seed).fit(X[order], y[order], totals={1: 200})
        assert np.array_equal(moved.transduction_, model.transduction_[order])
        right.append(np.mean(model.transduction_[4:] == truth[4:]))
    # the standard deviation of one is 0.025 (hypergeometric), that of the mean 0.0046
    assert abs(np.mean(right) - 0.5) < 0.02 and min(right) > 0.38 and max(right) < 0.62
    assert len(set(right)) > 5


def test_equal_rows_are_parted_by_lot():
    """Their number of each label is that of any order; which ones is drawn, so a sorted file gives nothing away."""
    X = np.repeat([[0.0], [1.0], [2.0]], [2, 100, 100], axis=0)
    truth = np.concatenate([[0, 1], np.tile(np.repeat([0, 1], 50), 2)])
    y = np.concatenate([[0, 1], np.full(200, -1)])
    shares, right = [], []
    for seed in range(20):
        model = TotalsClassifier(DummyClassifier(), random_state=seed).fit(X, y, totals={1: 100})
        order = np.random.default_rng(seed).permutation(202)
        moved = TotalsClassifier(DummyClassifier(), random_state=seed).fit(X[order], y[order], totals={1: 100})
        ones = [int(np.sum(m.transduction_[x[:, 0] == 1.0] == 1)) for m, x in ((model, X), (moved, X[order]))]
        assert ones[0] == ones[1]
        shares.append(ones[0])
        right.append(np.mean(model.transduction_[2:] == truth[2:]))
    assert abs(np.mean(right) - 0.5) < 0.04  # five standard deviations of the mean
    assert len(set(shares)) > 3


def test_the_same_seed_gives_the_same_and_another_one_does_not():
    X, truth, known, y = survey(200)
    fits = [
        TotalsClassifier(DummyClassifier(), random_state=s).fit(X, y, totals={1: 60}).transduction_ for s in (1, 1, 2)
    ]
    assert np.array_equal(fits[0], fits[1]) and not np.array_equal(fits[0], fits[2])


def test_random_states_that_are_unset_are_seeded():
    X, truth, known, y = survey(100)
    inner = make_pipeline(StandardScaler(), RandomForestClassifier(5))
    fits = [TotalsClassifier(inner, random_state=3).fit(X, y, totals={1: 30}) for _ in range(2)]
    assert np.array_equal(fits[0].transduction_, fits[1].transduction_)
    assert inner.get_params()["randomforestclassifier__random_state"] is None
    given = TotalsClassifier(RandomForestClassifier(5, random_state=17), random_state=3).fit(X, y)
    assert given.estimator_.random_state == 17


# ---------------------------------------------------------------------- prices and new rows


@pytest.mark.parametrize("estimator", [LogisticRegression(), LinearSVC(random_state=0), GaussianNB()])
@pytest.mark.parametrize("k", [2, 3, 4])
def test_prices_reproduce_the_labels(estimator, k):
    X, truth, known, y = survey(200, k)
    groups = np.where(X[:, 2] > 0, 1, 2)
    totals = {g: {0: int(np.sum(~known & (groups == g))) // 2} | ({1: (3, 9)} if k > 2 else {}) for g in (1, 2)}
    model = TotalsClassifier(estimator, random_state=0).fit(X, y, totals=totals, groups=groups)
    assert np.array_equal(model.predict(X[~known], groups=groups[~known]), model.transduction_[~known])
    proba = model.predict_proba(X, groups=groups)
    assert np.allclose(proba.sum(axis=1), 1.0) and np.all(proba >= 0)
    assert np.array_equal(proba[~known], model.transduction_proba_[~known])


def test_labels_of_new_rows_are_those_of_the_largest_score_plus_price():
    X, truth, known, y = survey(200, 3)
    model = TotalsClassifier(LogisticRegression()).fit(X, y, totals={0: 20, 1: 90})
    new = np.random.default_rng(5).normal(size=(40, 3))
    priced = np.log(model.estimator_.predict_proba(new)) + model.class_prices_[None]
    assert np.array_equal(model.predict(new), priced.argmax(axis=1))


def test_the_threshold_is_halfway():
    X = np.array([[-9.0], [9.0], [1.0], [2.0], [4.0], [8.0]])
    model = TotalsClassifier(Columns()).fit(X, [0, 1, -1, -1, -1, -1], totals={1: 2})
    first, second = model.class_prices_[None]
    assert first - second == pytest.approx(3.0)
    assert model.predict([[2.9], [3.1]]).tolist() == [0, 1]


def test_without_groups_prices_are_those_of_all_groups_together():
    X, truth, known, y = survey(200, 3)
    groups = np.where(X[:, 2] > 0, "n", "s")
    totals = {g: {c: int(np.sum(truth[~known & (groups == g)] == c)) for c in range(3)} for g in "ns"}
    model = TotalsClassifier(LogisticRegression()).fit(X, y, totals=totals, groups=groups)
    pooled = {c: totals["n"][c] + totals["s"][c] for c in range(3)}
    together = TotalsClassifier(LogisticRegression()).fit(X, y, totals=pooled)
    assert set(model.class_prices_) == {"n", "s", None}
    assert np.allclose(model.class_prices_[None], together.class_prices_[None])
    assert counts(model.predict(X[~known]), 3) == list(pooled.values())


def test_groups_choose_the_prices_of_new_rows():
    X = np.arange(12.0)[:, None] - 5.75
    y = np.array([0, *[-1] * 10, 1])
    groups = np.array(["odd", "even"] * 6)
    model = TotalsClassifier(Columns()).fit(X, y, totals={"odd": {1: 1}, "even": {1: 4}}, groups=groups)
    # rows 2, 4, 6, 8, 10 are odd, the last is 1: above 9 - 5.75; of rows 1, 3, 5, 7, 9 the first is 0: above 2 - 5.75
    new = np.array([[3.2], [3.3], [-3.8], [-3.7]])
    assert model.predict(new, groups=["odd"] * 4).tolist() == [0, 1, 0, 0]
    assert model.predict(new, groups=["even"] * 4).tolist() == [1, 1, 0, 1]
    assert model.predict(new[[0, 3]], groups=pd.Series(["odd", "even"])).tolist() == [0, 1]


def test_a_class_with_total_zero_is_never_predicted():
    X, truth, known, y = survey(150, 3)
    model = TotalsClassifier(LogisticRegression()).fit(X, y, totals={2: 0})
    assert model.class_prices_[None].tolist() == [0.0, 0.0, -np.inf]
    assert not np.any(model.predict(X) == 2) and np.all(model.predict_proba(X)[:, 2] == 0)


# ---------------------------------------------------------------------- classes without labels


def test_a_class_that_only_totals_name_gets_the_farthest_rows():
    X = np.array([[0.0], [10.0], [0.5], [9.0], [40.0], [10.5], [-30.0], [1.0]])
    y = np.array(["a", "b", *[None] * 6], dtype=object)
    model = TotalsClassifier(LogisticRegression()).fit(X, y, totals={"c": 2}, allow_new_classes=True)
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.transduction_.tolist() == ["a", "b", "a", "b", "c", "b", "c", "a"]
    assert model.predict([[60.0], [0.1], [9.9]]).tolist() == ["c", "a", "b"]
    few = TotalsClassifier(LogisticRegression()).fit(X, y, totals={"c": (1, 6)}, allow_new_classes=True)
    assert np.sum(few.transduction_ == "c") == 1  # nothing speaks for more


def test_a_class_without_labels_among_others():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(0, 1, (40, 2)), rng.normal([8, 0], 1, (40, 2)), rng.normal([0, 8], 1, (20, 2))])
    truth = np.repeat([0, 1, 2], [40, 40, 20])
    known = np.isin(np.arange(100), [0, 1, 2, 3, 40, 41, 42, 43])
    y, totals = np.where(known, truth, -1), {0: 36, 1: 36, 2: 20}
    model = TotalsClassifier(random_state=0).fit(X, y, totals=totals, allow_new_classes=True)
    assert counts(model.transduction_[~known], 3) == [36, 36, 20]
    assert np.mean(model.transduction_ == truth) > 0.9


def test_labels_of_one_class_leave_the_distance_to_decide():
    X = np.array([[0.0], [0.2], [0.1], [3.0], [-2.0], [0.3], [-0.2], [5.0]])
    y = np.array([0, 0, -1, -1, -1, -1, -1, -1])
    model = TotalsClassifier(NoWork()).fit(X, y, totals={1: 3}, allow_new_classes=True)
    assert model.estimator_ is None
    assert model.transduction_.tolist() == [0, 0, 0, 1, 1, 0, 0, 1]
    assert model.predict([[4.0], [0.15]]).tolist() == [1, 0]


def test_several_classes_without_labels_are_divided_by_lot():
    X, truth, known, y = survey(100)
    totals = {0: 20, 8: 15, 9: 10}
    model = TotalsClassifier(LogisticRegression(), random_state=0).fit(X, y, totals=totals, allow_new_classes=True)
    found = model.transduction_[~known]
    assert [int(np.sum(found == c)) for c in (0, 8, 9)] == [20, 15, 10]


def test_labels_of_weight_zero_are_no_labels():
    X, truth, known, y = survey(100, 3)
    model = TotalsClassifier(LogisticRegression()).fit(X, y, sample_weight=(y != 2).astype(float))
    assert model.classes_.tolist() == [0, 1, 2] and not np.any(model.predict(X) == 2)
    assert model.estimator_.classes_.tolist() == [0, 1]


# ---------------------------------------------------------------------- habits of scikit-learn


def test_weights_reach_the_estimator():
    X = np.array([[0.0], [0.0], [10.0], [-10.0], [1.0]])
    y = np.array([0, 1, 1, 0, -1])
    for heavy in (0, 1):
        weight = np.where((y == heavy) & (X[:, 0] == 0), 50.0, 1.0)
        model = TotalsClassifier(DecisionTreeClassifier(random_state=0)).fit(X, y, sample_weight=weight)
        assert model.predict([[0.0]])[0] == heavy


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_and_string_labels(frame):
    X, truth, known, _ = survey(120)
    names = np.array(["no", "yes"])[truth]
    table = frame({"age": X[:, 0], "income": X[:, 1], "size": X[:, 2]})
    y = pd.Series(np.where(known, names, None))
    totals = {"yes": int(np.sum(names[~known] == "yes"))}
    model = TotalsClassifier(LogisticRegression()).fit(table, y, totals=totals)
    assert model.feature_names_in_.tolist() == ["age", "income", "size"] and model.n_features_in_ == 3
    assert set(model.predict(table)) == {"no", "yes"}
    array = TotalsClassifier(LogisticRegression()).fit(X, y, totals=totals)
    assert np.array_equal(model.transduction_, array.transduction_) and not hasattr(array, "feature_names_in_")


def test_pipelines_on_both_sides():
    X, truth, known, y = survey(120)
    inner = TotalsClassifier(make_pipeline(StandardScaler(), LogisticRegression())).fit(X, y, totals={1: 40})
    outer = make_pipeline(StandardScaler(), TotalsClassifier(LogisticRegression()))
    outer.fit(X, y, totalsclassifier__totals={1: 40})
    assert counts(inner.transduction_[~known], 2)[1] == counts(outer.predict(X[~known]), 2)[1] == 40


def test_clone_pickle_and_grid_search():
    X, truth, known, y = survey(120)
    model = TotalsClassifier(LogisticRegression(C=3.0), random_state=1).fit(X, y, totals={1: 40})
    again = clone(model)
    assert again.get_params()["estimator__C"] == 3.0 and not hasattr(again, "classes_")
    restored = pickle.loads(pickle.dumps(model))
    assert np.array_equal(restored.predict(X), model.predict(X)) and restored.totals_ == model.totals_
    search = GridSearchCV(TotalsClassifier(LogisticRegression()), {"estimator__C": [1e-9, 1.0]}, cv=3)
    search.fit(X, truth)
    assert search.best_params_ == {"estimator__C": 1.0}
    search.fit(X, y, totals={1: 0.4})
    assert counts(search.best_estimator_.transduction_[~known], 2)[1] == round(0.4 * np.sum(~known))
    assert np.all(cross_val_score(TotalsClassifier(LogisticRegression()), X, truth, cv=3) > 0.5)


def test_tags_are_those_of_the_estimator():
    assert get_tags(TotalsClassifier()).classifier_tags.multi_class
    assert get_tags(TotalsClassifier(DummyClassifier())).classifier_tags.poor_score
    assert not get_tags(TotalsClassifier()).input_tags.sparse


def test_minus_one_and_one_are_labels_where_nothing_else_is():
    X = np.arange(10.0)[:, None]
    with pytest.warns(UserWarning, match="-1 is taken for a label") as caught:
        model = TotalsClassifier(LogisticRegression()).fit(X, np.where(X[:, 0] > 4, 1, -1))
    assert model.classes_.tolist() == [-1, 1]
    assert caught[0].filename == __file__


def test_rows_without_any_unlabelled_one():
    X, truth, known, y = survey(60)
    model = TotalsClassifier(LogisticRegression()).fit(X, truth, totals={1: 0})
    assert np.array_equal(model.transduction_, truth)
    assert model.class_prices_[None].tolist() == [0.0, 0.0]


# ---------------------------------------------------------------------- bad input

X6 = np.arange(12.0).reshape(6, 2)
Y6 = np.array([0, 1, 0, 1, -1, -1])
FITS = {
    "nan": (dict(X=np.where(X6 == 3, np.nan, X6)), ValueError, "Input X contains NaN"),
    "one class": (dict(y=np.zeros(6)), InvalidInputError, r"y has only one class, 0\.0"),
    "no label": (dict(y=np.full(6, -1)), InvalidInputError, "none of the 6 rows has a label"),
    "lengths": (dict(y=Y6[:4]), ValueError, r"inconsistent numbers of samples: \[6, 4\]"),
    "y None": (dict(y=None), ValueError, "the target y is None"),
    "total": (dict(totals={1: 3}), InfeasibleTotalsError, "3 rows of class 1 are asked, but there are only 2"),
    "share": (dict(totals={1: 1.5}), InfeasibleTotalsError, r"share 1\.5 of class 1 is above 1"),
    "negative": (dict(totals={1: -4}), InfeasibleTotalsError, "total -4 of class 1 is negative"),
    "sum": (dict(totals={0: 0, 1: 1}), InfeasibleTotalsError, "at most 1 rows"),
    "type": (dict(totals="many"), InvalidInputError, "'many' of type str"),
    "groups alone": (dict(groups=list("aabbab")), InvalidInputError, "groups are given without totals"),
    "group": (dict(groups=list("aabbab"), totals={"A": 1}), InfeasibleTotalsError, "group 'A', .* did you mean 'a'"),
    "class": (dict(totals={2: 1}), InfeasibleTotalsError, "class 2, which no label is; .*allow_new_classes=True"),
    "totals of all": (
        dict(totals={0: 3, 1: 3}),
        InfeasibleTotalsError,
        "3 rows of class 0 are asked, .*only 2 .*They fit all 6 rows, the 4 labelled ones included.*totals_of='all'",
    ),
    "totals_of": (dict(totals={1: 1}, totals_of="labelled"), InvalidInputError, "totals_of is 'labelled'; expected"),
    "labelled above": (
        dict(totals={1: 1}, totals_of="all"),
        InfeasibleTotalsError,
        "totals of all rows have 1 row of class 1, but 2 rows are labelled so",
    ),
    "tolerance": (dict(totals={1: 0.5}, totals_tolerance=2), InvalidInputError, "totals_tolerance is 2; expected"),
}
ESTIMATORS = {
    "number": (3, ValueError, "estimator.*Got 3 instead"),
    "class": (LogisticRegression, InvalidInputError, "is the class LogisticRegression; pass an instance"),
    "regressor": (LinearRegression(), InvalidInputError, "a LinearRegression, which is no classifier"),
    "foreign": (Foreign(), InvalidInputError, "a Foreign, which is no classifier of scikit-learn"),
    "no scores": (
        VotingClassifier([("a", LogisticRegression())]),
        InvalidInputError,
        "VotingClassifier has neither predict_proba nor decision_function",
    ),
    "kernel": (SVC(kernel="precomputed"), InvalidInputError, "SVC wants a kernel matrix"),
}


@looped("arguments, error, text", FITS.values())
def test_bad_data_is_refused_before_any_work(arguments, error, text):
    with pytest.raises(error, match=text):
        TotalsClassifier(NoWork()).fit(**({"X": X6, "y": Y6} | arguments))


@pytest.mark.parametrize(
    ("weight", "text"), [([1, 1, -2.5, 1, 1, 1], r"-2\.5 in row 2"), ([0, 0, 0, 0, 1, 1], "labelled rows are zero")]
)
def test_bad_weights(weight, text):
    with pytest.raises(InvalidInputError, match=text):
        TotalsClassifier(LogisticRegression()).fit(X6, Y6, sample_weight=weight)


@looped("estimator, error, text", ESTIMATORS.values())
def test_bad_estimators(estimator, error, text):
    with pytest.raises(error, match=text):
        TotalsClassifier(estimator).fit(X6, Y6)


def test_weights_that_the_estimator_does_not_take():
    with pytest.raises(InvalidInputError, match="sample_weight is given, but KNeighborsClassifier.fit takes none"):
        TotalsClassifier(KNeighborsClassifier(1)).fit(X6, Y6, sample_weight=np.ones(6))
    TotalsClassifier(KNeighborsClassifier(1)).fit(X6, Y6)


def test_weights_go_to_the_last_step_of_a_pipeline():
    X, truth, known, y = survey(60, 2)
    weight = np.random.default_rng(0).random(len(y))
    totals = {1: int(truth[~known].sum())}
    piped = make_pipeline(FunctionTransformer(), LogisticRegression())
    model = TotalsClassifier(piped, random_state=0).fit(X, y, weight, totals=totals)
    plain = TotalsClassifier(LogisticRegression(), random_state=0).fit(X, y, weight, totals=totals)
    assert np.array_equal(model.predict_proba(X), plain.predict_proba(X))
    unweighted = TotalsClassifier(LogisticRegression(), random_state=0).fit(X, y, totals=totals)
    assert not np.allclose(model.predict_proba(X), unweighted.predict_proba(X))
    nested = make_pipeline(FunctionTransformer(), piped)
    assert np.array_equal(
        TotalsClassifier(nested, random_state=0).fit(X, y, weight, totals=totals).predict_proba(X),
        plain.predict_proba(X),
    )
    with pytest.raises(InvalidInputError, match=r"Pipeline.fit takes none \(nor does its last step\)"):
        TotalsClassifier(make_pipeline(KNeighborsClassifier(1))).fit(X, y, weight)


def test_scores_that_cannot_be_used():
    X, truth, known, y = survey(80, 4)
    with pytest.raises(InvalidInputError, match=r"shape \(\d+, 6\) for \d+ rows and 4 classes"):
        TotalsClassifier(SVC(decision_function_shape="ovo")).fit(X, y)

    class Broken(Columns):
        def decision_function(self, X):
            return np.where(X[:, 0] > 6, np.nan, X[:, 0])

    with pytest.raises(InvalidInputError, match="decision_function of Broken is not finite in 2 of 2 rows"):
        TotalsClassifier(Broken()).fit(X6, Y6)


def test_bad_random_state():
    with pytest.raises(ValueError, match="random_state.*Got 'seed' instead"):
        TotalsClassifier(random_state="seed").fit(X6, Y6)


def test_bad_groups_at_predict():
    model = TotalsClassifier(Columns()).fit(X6, Y6, groups=list("zzzzab"), totals={"a": {1: 1}, "b": {1: 0}})
    with pytest.raises(InvalidInputError, match="groups has 3 entries, X has 2 rows"):
        model.predict(X6[:2], groups=list("aab"))
    with pytest.raises(InvalidInputError, match="1 of 2 rows have no group .*first row 1"):
        model.predict(X6[:2], groups=["a", None])
    with pytest.raises(InvalidInputError, match="fitted without groups"):
        TotalsClassifier(Columns()).fit(X6, Y6, totals=1).predict(X6[:2], groups=["a", "a"])


def test_unfitted_and_wrong_width():
    with pytest.raises(NotFittedError):
        TotalsClassifier().predict(X6)
    with pytest.raises(ValueError, match="expecting 2 features"):
        TotalsClassifier(Columns()).fit(X6, Y6).predict(X6[:, :1])


def test_a_failed_refit_leaves_the_fit():
    model = TotalsClassifier(LogisticRegression()).fit(pd.DataFrame(X6, columns=["a", "b"]), Y6, totals=1)
    before = model.transduction_.copy()
    with pytest.raises(InfeasibleTotalsError):
        model.fit(X6[:, :1], Y6, totals=5)
    with pytest.raises(ValueError, match="C"):
        model.set_params(estimator__C=-1.0).fit(X6[:, :1], Y6)
    assert model.n_features_in_ == 2 and model.feature_names_in_.tolist() == ["a", "b"]
    assert np.array_equal(model.transduction_, before)
    model.set_params(estimator__C=1.0).fit(X6[:, :1], Y6)
    assert model.n_features_in_ == 1 and not hasattr(model, "feature_names_in_")


def test_an_estimator_that_has_scores_only_when_fitted():
    X, y = make_blobs(60, centers=2, random_state=0)
    y[20:] = -1
    model = TotalsClassifier(StackingClassifier([("nb", GaussianNB())])).fit(X, y, totals={1: 17})
    assert int(np.sum(model.transduction_[20:] == 1)) == 17
    with pytest.raises(InvalidInputError, match="soft"):
        TotalsClassifier(VotingClassifier([("nb", GaussianNB())])).fit(X, y, totals={1: 17})


@pytest.mark.parametrize("framed", [False, True])
def test_new_rows_of_a_class_without_labels_are_found_without_the_rows_of_the_fit(framed):
    """As many of them as of the rows of the fit, by trees that have learned how far a row is from labelled ones."""
    rng = np.random.default_rng(0)
    X, new = (np.concatenate([rng.normal(0.0, 1.0, (300, 3)), rng.normal(4.0, 1.0, (100, 3))]) for _ in range(2))
    y = np.where(np.arange(400) < 60, (X[:, 0] > 0).astype(int), -1)
    given, asked = (pl.DataFrame(rows, schema=["a", "b", "c"]) if framed else rows for rows in (X, new))
    model = TotalsClassifier(LogisticRegression(), random_state=0)
    model.fit(given, y, totals={2: 100}, allow_new_classes=True)
    assert np.mean(model.transduction_[300:] == 2) > 0.95
    shares = model.predict_proba(given)[60:]
    assert shares[:, 2].sum() == pytest.approx(100, abs=1e-6)
    assert np.mean(model.predict(given)[60:] == model.transduction_[60:]) > 0.95
    assert np.mean((model.predict(asked) == 2) == (np.arange(400) >= 300)) > 0.93
