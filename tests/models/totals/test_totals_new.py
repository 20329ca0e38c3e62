"""Models with totals: probabilities that sum to them, new rows and totals, crossing margins, tables handed through."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from treewright import C2RFClassifier, S2OCTClassifier, TotalsClassifier
from treewright.exceptions import InfeasibleTotalsError, InvalidInputError


def survey(n=150, k=2, seed=0, labelled=0.2):
    """Rows around k centres; the first 2 k rows have labels of all classes, the others some; two columns of groups."""
    rng = np.random.default_rng(seed)
    truth = np.concatenate([np.tile(np.arange(k), 2), rng.integers(0, k, n - 2 * k)])
    X = rng.normal(size=(n, 3)) + rng.normal(size=(k, 3))[truth] * 1.5
    known = rng.random(n) < labelled
    known[: 2 * k] = True
    region, sex = rng.choice(["east", "north", "west"], n), rng.choice(["f", "m"], n)
    return X, truth, known, np.where(known, truth, -1), region, sex


def counted(truth, groups, among, k):
    return {
        g: {c: int(np.sum(truth[among & (groups == g)] == c)) for c in range(k)} for g in np.unique(groups).tolist()
    }


def reached(labels, groups, among, k):
    return counted(labels, groups, among, k)


# ---------------------------------------------------------------------- probabilities


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(2, 4),
    st.booleans(),
    st.sampled_from([0, 2]),
    st.sampled_from([LogisticRegression(), GaussianNB(), LinearSVC(), DecisionTreeClassifier(max_depth=2)]),
)
def test_probabilities_sum_to_the_totals_in_each_group(seed, k, grouped, slack, estimator):
    X, truth, known, y, region, _ = survey(90, k, seed)
    X = np.round(X, seed % 3)  # some rows become equal
    weight = np.where(known, 1.0 + np.arange(len(y)) % 2, np.nan)
    region = region if grouped else np.full(len(y), "all")
    count = counted(truth, region, ~known, k)
    asked = {g: {c: (max(0, m - slack), m + slack) for c, m in part.items()} for g, part in count.items()}
    given_ = {"totals": asked, "groups": region} if grouped else {"totals": asked["all"]}
    model = TotalsClassifier(estimator, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, sample_weight=weight, **given_)
    shares = model.transduction_proba_
    assert np.array_equal(shares[known], np.eye(k)[truth[known]])
    assert np.allclose(shares.sum(axis=1), 1)
    again = model.predict_proba(X, groups=region) if grouped else model.predict_proba(X)
    assert np.allclose(again[~known], shares[~known], atol=1e-12)
    for g, part in asked.items():
        total = shares[~known & (region == g)].sum(axis=0)
        for c, (low, high) in part.items():
            assert low - 1e-6 <= total[c] <= high + 1e-6


def test_a_shift_of_the_prior_is_a_factor_of_each_class():
    X, truth, known, y, region, _ = survey(200, 3)
    totals = counted(truth, region, ~known, 3)
    model = TotalsClassifier(LogisticRegression()).fit(X, y, totals=totals, groups=region)
    inside = region == "west"
    odds = model.predict_proba(X[inside], groups=region[inside]) / model.estimator_.predict_proba(X[inside])
    assert np.allclose(odds / odds[:, :1], (odds / odds[:, :1])[0])


def test_probabilities_of_a_biased_sample_are_better_than_those_of_the_estimator():
    rng = np.random.default_rng(0)
    truth = (rng.random(4000) < 0.2).astype(int)
    X = rng.normal(size=(4000, 2)) + 1.2 * truth[:, None]
    known = rng.random(4000) < np.where(truth == 1, 0.1, 0.005)  # most labels are of the rarer class
    y = np.where(known, truth, -1)
    model = TotalsClassifier(LogisticRegression()).fit(X, y, totals={1: int(truth[~known].sum())})
    plain = model.estimator_.predict_proba(X[~known])
    assert log_loss(truth[~known], model.transduction_proba_[~known]) < log_loss(truth[~known], plain) - 0.1


def test_without_totals_probabilities_are_those_of_the_estimator():
    X, truth, known, y, *_ = survey(150, 3)
    model = TotalsClassifier(LogisticRegression()).fit(X, y)
    assert np.array_equal(model.predict_proba(X), model.estimator_.predict_proba(X))
    assert np.array_equal(model.classes_[model.predict_proba(X).argmax(axis=1)], model.predict(X))


def among_noise(n, rng):
    """Two features say the class of all but 2 % of the rows, 25 say nothing; rare classes answer more often."""
    X = rng.normal(size=(n, 27))
    truth = np.where(X[:, 0] > 0.8, 2, (X[:, 1] > 0).astype(int))
    truth = np.where(rng.random(n) < 0.02, rng.integers(3, size=n), truth)
    known = rng.random(n) < np.array([0.1, 0.15, 0.25])[truth]
    return X, truth, known, np.where(known, truth, -1)


@pytest.mark.parametrize(
    ("made", "table_of"),
    [
        (RandomForestClassifier(60, random_state=0), np.asarray),
        (RandomForestClassifier(60, random_state=0), lambda X: pd.DataFrame(X, columns=[f"x{j}" for j in range(27)])),
        (HistGradientBoostingClassifier(learning_rate=0.5, random_state=0), np.asarray),
        (LinearSVC(C=1e-4), sparse.csr_array),
    ],
)
def test_calibrated_probabilities_are_as_true_as_they_say_and_labels_stay(made, table_of):
    """Votes of a forest are drawn to one another by what says nothing; others are far too sure, or not at all."""
    X, truth, known, y = among_noise(1200, np.random.default_rng(0))
    table = table_of(X)
    region = np.arange(1200) % 2
    totals = counted(truth, region, ~known, 3)
    as_it_is, calibrated = (
        TotalsClassifier(made, calibrate=calibrate, random_state=0).fit(table, y, totals=totals, groups=region)
        for calibrate in (False, True)
    )
    assert np.array_equal(as_it_is.transduction_, calibrated.transduction_)
    assert np.array_equal(as_it_is.predict(table, groups=region), calibrated.predict(table, groups=region))
    shares = calibrated.transduction_proba_[~known]
    assert np.allclose(shares, calibrated.predict_proba(table, groups=region)[~known])
    for g in (0, 1):
        sums = shares[region[~known] == g].sum(axis=0)
        assert np.allclose(sums, [totals[g][k] for k in range(3)], atol=1e-6)
    before, after = (log_loss(truth[~known], m.transduction_proba_[~known]) for m in (as_it_is, calibrated))
    assert after < before - 0.02
    away = shares.max(axis=1).mean() - np.mean(shares.argmax(axis=1) == truth[~known])
    assert abs(away) < 0.06


def test_calibration_leaves_the_most_likely_class_and_what_cannot_be_left_out():
    X, truth, known, y = among_noise(400, np.random.default_rng(1))
    made = RandomForestClassifier(30, random_state=0)
    free = TotalsClassifier(made, calibrate=True, random_state=0).fit(X, y)
    assert np.array_equal(free.classes_[free.predict_proba(X).argmax(axis=1)], free.predict(X))
    few = np.full(400, -1)
    few[[np.flatnonzero(truth == k)[0] for k in range(3)]] = range(3)  # one label a class
    alone = [TotalsClassifier(made, calibrate=c, random_state=0).fit(X, few).predict_proba(X) for c in (False, True)]
    assert np.array_equal(*alone)
    y[truth == 2] = -1  # a class without labels
    totals = {k: int(np.sum((truth == k) & (y < 0))) for k in range(3)}
    new = [
        TotalsClassifier(made, calibrate=c, random_state=0).fit(X, y, totals=totals, allow_new_classes=True)
        for c in (False, True)
    ]
    assert np.array_equal(new[0].transduction_proba_, new[1].transduction_proba_)


# ---------------------------------------------------------------------- groups without totals, and unseen ones


def test_groups_of_which_nothing_is_known_are_cut_like_all_others():
    X, truth, known, y, region, _ = survey(300)
    totals = counted(truth, region, ~known, 2)
    del totals["west"]
    with pytest.warns(UserWarning, match="group 'west' with .* has no totals and is free"):
        model = TotalsClassifier(LogisticRegression()).fit(X, y, totals=totals, groups=region)
    asked = ~known & (region != "west")
    assert {g: part for g, part in reached(model.transduction_, region, ~known, 2).items() if g in totals} == totals
    rest = TotalsClassifier(LogisticRegression())
    rest.fit(X[known | asked], y[known | asked], totals={1: sum(part[1] for part in totals.values())})
    west = ~known & (region == "west")
    assert np.array_equal(model.transduction_[west], rest.predict(X[west]))
    assert np.allclose(model.transduction_proba_[west], rest.predict_proba(X[west]))
    with pytest.warns(UserWarning, match="groups 'south' had|group 'south' had no unlabelled rows in fit"):
        assert np.array_equal(model.predict(X, groups=["south"] * 300), model.predict(X))
    with pytest.warns(UserWarning, match="group 7 had no"):
        assert np.array_equal(model.predict_proba(X, groups=[7] * 300), model.predict_proba(X))


# ---------------------------------------------------------------------- next year

MODELS = {
    "totals": TotalsClassifier(LogisticRegression(), random_state=0),
    "tree": TotalsClassifier(DecisionTreeClassifier(max_depth=2, random_state=0), random_state=0),
    "c2rf": C2RFClassifier(RandomForestClassifier(15, random_state=0), random_state=0, time_limit=5),
    "s2oct": S2OCTClassifier(max_depth=1, random_state=0, time_limit=2, prefer="first"),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
def test_new_rows_within_new_totals(model):
    X, truth, known, y, region, _ = survey(200)
    model.fit(X, y, totals=counted(truth, region, ~known, 2), groups=region)
    new, later, _, _, area, _ = survey(120, seed=9)
    area[:60] = "south"  # which fit did not see
    totals = counted(later, area, np.ones(120, dtype=bool), 2)
    labels, shares = model.transduce(new, totals=totals, groups=area, return_proba=True)
    assert counted(labels, area, np.ones(120, dtype=bool), 2) == totals
    for g, part in totals.items():
        assert np.allclose(shares[area == g].sum(axis=0), list(part.values()), atol=1e-6)
    order = np.random.default_rng(1).permutation(120)
    assert np.array_equal(model.transduce(new[order], totals=totals, groups=area[order]), labels[order])
    _, table = model.transduce(new, totals=totals, groups=area, return_totals=True)
    assert [(row["group"], row["class"]) for row in table] == [(g, k) for g in totals for k in model.classes_]
    for row in table:
        assert row["reached"] == np.sum((labels == row["class"]) & (area == row["group"])) and row["deviation"] == 0
    assert model.transduce(new, return_totals=True)[1] == []
    one = model.transduce(new, totals={1: (30, 40)})
    assert 30 <= np.sum(one == 1) <= 40


def test_the_scores_of_new_rows_are_cut():
    X, truth, known, y, *_ = survey(200)
    model = TotalsClassifier(LogisticRegression()).fit(X, y, totals={1: 70})
    new = np.random.default_rng(5).normal(size=(80, 3))
    highest = np.argsort(-model.estimator_.predict_proba(new)[:, 1])[:25]
    assert np.array_equal(np.flatnonzero(model.transduce(new, totals={1: 25}) == 1), np.sort(highest))
    assert np.array_equal(model.transduce(new), model.predict(new))


def test_groups_without_new_totals_keep_their_prices():
    X, truth, known, y, region, _ = survey(300)
    model = TotalsClassifier(LogisticRegression())
    model.fit(X, y, totals=counted(truth, region, ~known, 2), groups=region)
    with pytest.warns(UserWarning, match="groups 'north', 'west' with .* have no totals and are free"):
        labels, shares = model.transduce(X, totals={"east": {1: 3}}, groups=region, return_proba=True)
    others = region != "east"
    assert np.sum(labels[~others] == 1) == 3
    assert np.array_equal(labels[others], model.predict(X[others], groups=region[others]))
    assert np.allclose(shares[others], model.predict_proba(X[others], groups=region[others]))


def test_new_totals_that_are_refused():
    X, truth, known, y, region, _ = survey(100)
    model = TotalsClassifier(LogisticRegression()).fit(X, y, totals={1: 30})
    with pytest.raises(InfeasibleTotalsError, match="class 3, which is not among the classes"):
        model.transduce(X, totals={3: 5})
    with pytest.raises(InfeasibleTotalsError, match="101 rows of class 1 are asked, but there are only 100"):
        model.transduce(X, totals={1: 101})
    with pytest.raises(InfeasibleTotalsError, match="group 'North', which no row has; did you mean 'north'"):
        model.transduce(X, totals={"North": {1: 1}}, groups=region)
    by_group = TotalsClassifier(LogisticRegression()).fit(
        X, y, totals={g: {1: 3} for g in np.unique(region)}, groups=region
    )
    words = r"groups is the text 'region'; hand over the column itself, such as X\['region'\]"
    for fitted in (model, by_group):
        with pytest.raises(InvalidInputError, match=words):
            fitted.transduce(X, totals={"north": {1: 1}}, groups="region")


# ---------------------------------------------------------------------- several margins


@pytest.mark.parametrize("k", [2, 3])
def test_several_margins_are_all_met(k):
    X, truth, known, y, region, sex = survey(240, k)
    totals = [counted(truth, region, ~known, k), counted(truth, sex, ~known, k)]
    for groups in ([region, sex], pd.DataFrame({"region": region, "sex": sex})):
        model = TotalsClassifier(LogisticRegression(), random_state=0).fit(X, y, totals=totals, groups=groups)
        assert reached(model.transduction_, region, ~known, k) == totals[0]
        assert reached(model.transduction_, sex, ~known, k) == totals[1]
        shares = model.transduction_proba_[~known]
        for column, part in ((region, totals[0]), (sex, totals[1])):
            for g, asked in part.items():
                assert np.allclose(shares[column[~known] == g].sum(axis=0), list(asked.values()), atol=1e-6)
        assert np.allclose(model.predict_proba(X[~known], groups=[region[~known], sex[~known]]), shares, atol=1e-9)
    assert [(row["margin"], row["deviation"]) for row in model.totals_] == [(0, 0)] * 3 * k + [(1, 0)] * 2 * k
    same = model.predict(X[~known], groups=[region[~known], sex[~known]]) == model.transduction_[~known]
    assert np.all(same)
    assert ("east", "f") in model.class_prices_ and None in model.class_prices_
    with pytest.warns(UserWarning, match=r"group \('south', 'f'\) had no"):
        model.predict(X[:1], groups=[["south"], ["f"]])
    new_totals = [{"east": {1: 20}}, {"f": {1: 30}, "m": {1: 25}}]
    with pytest.warns(UserWarning, match="groups 'north', 'west'"):
        labels = model.transduce(X, totals=new_totals, groups=[region, sex])
    assert np.sum(labels[region == "east"] == 1) == 20
    assert [np.sum(labels[sex == s] == 1) for s in "fm"] == [30, 25]


def test_margins_that_contradict_one_another_are_met_as_nearly_as_can_be():
    X, truth, known, y, region, sex = survey(200)
    totals = [counted(truth, region, ~known, 2), counted(truth, sex, ~known, 2)]
    totals[1]["f"][1] += 4
    totals[1]["f"][0] -= 4
    with pytest.warns(UserWarning, match="margins contradict one another.* miss 8 in all"):
        model = TotalsClassifier(LogisticRegression()).fit(X, y, totals=totals, groups=[region, sex])
    assert (
        sum(row["deviation"] for row in model.totals_) == 8
    )  # four rows too few of a class, four too many of the other


@pytest.mark.parametrize("model", [C2RFClassifier(), S2OCTClassifier()])
def test_other_models_take_one_margin(model):
    X, truth, known, y, region, sex = survey(60)
    totals = [counted(truth, region, ~known, 2), counted(truth, sex, ~known, 2)]
    with pytest.raises(InvalidInputError, match="2 margins, and .* takes one; TotalsClassifier takes several"):
        model.fit(X, y, totals=totals, groups=[region, sex])


# ---------------------------------------------------------------------- tables that are handed through


def mixed(frame, n=160, seed=0):
    X, truth, known, y, region, _ = survey(n, seed=seed)
    age = X[:, 0].copy()
    age[5::7] = np.nan
    job = np.where(X[:, 1] > 0.5, "clerk", np.where(X[:, 1] > -0.5, "farmer", "smith"))
    return frame({"age": age, "job": job, "size": X[:, 2]}), truth, known, y, region


def encoded(last):
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = [("n", numbers, ["age", "size"]), ("c", OneHotEncoder(handle_unknown="ignore"), ["job"])]
    return make_pipeline(ColumnTransformer(columns), last)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("estimator", [LogisticRegression(), RandomForestClassifier(20)])
def test_frames_reach_the_estimator_as_they_are(frame, estimator):
    table, truth, known, y, region = mixed(frame)
    totals = counted(truth, region, ~known, 2)
    model = TotalsClassifier(encoded(estimator), random_state=0).fit(table, y, totals=totals, groups=region)
    assert reached(model.transduction_, region, ~known, 2) == totals
    assert model.feature_names_in_.tolist() == ["age", "job", "size"] and model.n_features_in_ == 3
    assert type(model.predict_proba(table, groups=region)) is np.ndarray
    order = np.random.default_rng(3).permutation(len(y))
    turned = table.iloc[order] if frame is pd.DataFrame else table[order]
    again = TotalsClassifier(encoded(estimator), random_state=0)
    again.fit(turned, y[order], totals=totals, groups=region[order])
    assert np.array_equal(again.transduction_, model.transduction_[order])
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(table.rename({"job": "work"}) if frame is pl.DataFrame else table.rename(columns={"job": "work"}))


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csr_array, sparse.coo_matrix])
def test_sparse_rows_reach_the_estimator(make):
    X, truth, known, y, *_ = survey(150)
    X = np.where(np.abs(X) < 0.7, 0, X)
    dense = TotalsClassifier(LogisticRegression(), random_state=0).fit(X, y, totals={1: 50})
    thin = TotalsClassifier(LogisticRegression(), random_state=0).fit(make(X), y, totals={1: 50})
    assert sparse.issparse(thin._given_rows(make(X)))
    assert np.mean(thin.transduction_ == dense.transduction_) > 0.98  # rows come in another order
    assert np.sum(thin.transduction_[~known] == 1) == 50
    assert np.allclose(thin.predict_proba(make(X)), dense.predict_proba(X), atol=1e-3)
    with pytest.raises(TypeError, match="[Ss]parse"):
        TotalsClassifier(random_state=0).fit(make(X), y, totals={1: 50})


def test_gaps_reach_an_estimator_that_knows_them():
    X, truth, known, y, *_ = survey(200)
    X[::5, 1] = np.nan
    for estimator in (HistGradientBoostingClassifier(max_iter=5), make_pipeline(SimpleImputer(), LogisticRegression())):
        model = TotalsClassifier(estimator, random_state=0).fit(X, y, totals={1: 60})
        assert np.sum(model.transduction_[~known] == 1) == 60
        assert model.predict(X).shape == (200,)
    with pytest.raises(ValueError, match="NaN"):
        TotalsClassifier(LogisticRegression()).fit(X, y, totals={1: 60})


def test_a_class_without_labels_needs_numbers():
    table, truth, known, y, _ = mixed(pd.DataFrame)
    model = TotalsClassifier(encoded(LogisticRegression()))
    with pytest.raises(InvalidInputError, match="a class has no labelled row; .* X has text"):
        model.fit(table, y, totals={2: 5}, allow_new_classes=True)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_and_sparse_rows_in_weighted_ensembles(frame):
    table, truth, known, y, region = mixed(frame)
    total = {1: int(truth[~known].sum())}
    ensembles = [
        encoded(RandomForestClassifier(15, random_state=0)),
        VotingClassifier([("a", encoded(DecisionTreeClassifier(max_depth=3))), ("b", encoded(GaussianNB()))][:1]),
        [encoded(DecisionTreeClassifier(max_depth=d, random_state=0)) for d in (1, 2, 3)],
    ]
    for ensemble in ensembles:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = C2RFClassifier(ensemble, random_state=0, time_limit=5).fit(table, y, totals=total)
        assert np.allclose(model.transduction_proba_[~known].sum(axis=0)[1], total[1], atol=1e-6)
        assert np.array_equal(model.predict(table)[~known], model.transduction_[~known])
    numbers = np.column_stack([np.nan_to_num(np.asarray(table[name])) for name in ("age", "size")])
    thin = sparse.csr_array(numbers)
    model = C2RFClassifier(RandomForestClassifier(15, random_state=0), random_state=0, time_limit=5)
    assert np.sum(model.fit(thin, y, totals=total).totals_[1]["deviation"]) == model.objective_


def test_new_groups_are_told_once():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(40, 2)), np.array(["n", "s"] * 20, dtype=object)
    y = np.where(X[:, 0] > 0, "a", "b").astype(object)
    y[20:] = None
    model = TotalsClassifier(LogisticRegression()).fit(X, y, totals={"n": {"a": 4}, "s": {"a": 5}}, groups=groups)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.transduce(X, {"n": {"a": 8}, "w": {"a": 9}}, np.where(groups == "s", "w", groups))
    assert [str(one.message).partition(":")[0] for one in told] == ["group 'w' had no rows without a label in the fit"]
