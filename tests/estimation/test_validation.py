"""Cross-validation that knows unlabelled rows and totals: folds of labels, scores without marks, routing."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from treewright import LabeledKFold, SSCTClassifier, TAOClassifier, TotalsClassifier, labeled_scorer
from treewright.exceptions import InvalidInputError


def survey(n=200, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 2)) + truth[:, None]
    known = np.arange(n) % 4 == 0
    region = rng.choice(["n", "s"], n)
    return X, truth, known, np.where(known, truth, -1), region


@pytest.mark.parametrize("stratify", [True, False])
@pytest.mark.parametrize(
    "mark",
    [lambda y: y, lambda y: np.where(y < 0, np.nan, y), lambda y: np.where(y < 0, None, np.array(["a", "b", "?"])[y])],
)
def test_folds_are_of_labelled_rows(stratify, mark):
    X, truth, known, y, _ = survey()
    folds = list(LabeledKFold(4, stratify=stratify, random_state=0).split(X, mark(y)))
    assert len(folds) == 4 == LabeledKFold(4).get_n_splits()
    assert np.array_equal(np.sort(np.concatenate([test for _, test in folds])), np.flatnonzero(known))
    for train, test in folds:
        assert np.array_equal(np.setdiff1d(np.arange(200), train), np.sort(test))
        assert known[test].all() and np.isin(np.flatnonzero(~known), train).all()
        if stratify:
            assert abs(truth[test].mean() - truth[known].mean()) < 0.1
    again = list(LabeledKFold(4, stratify=stratify, random_state=0).split(X, mark(y)))
    assert all(np.array_equal(a[1], b[1]) for a, b in zip(folds, again, strict=True))


def test_folds_that_are_refused():
    X, _, _, y, _ = survey(20)
    with pytest.raises(InvalidInputError, match="y is None"):
        list(LabeledKFold().split(X))
    with pytest.raises(InvalidInputError, match="5 of 20 rows have a label, too few for 6 folds"):
        list(LabeledKFold(6).split(X, y))
    with pytest.raises(InvalidInputError, match="X has 20 rows, y has 3"):
        list(LabeledKFold().split(X, y[:3]))
    assert repr(LabeledKFold(3)).startswith("LabeledKFold(n_splits=3")


def test_calibration_that_would_learn_the_mark_is_refused_with_a_way_that_works():
    X, truth, known, y, _ = survey(400)
    for learner in (CalibratedClassifierCV(SSCTClassifier(max_depth=2), cv=LabeledKFold(3)),):
        with pytest.raises(InvalidInputError, match=r"takes the marks of y for a class.*FrozenEstimator"):
            learner.fit(X, y)
    with pytest.raises(InvalidInputError, match="takes the marks of y for a class"):
        LogisticRegressionCV(cv=LabeledKFold(3)).fit(X, y)
    left_out = known & (np.arange(400) % 8 == 0)
    for model in (SSCTClassifier(max_depth=2), TAOClassifier(2, teacher=GaussianNB()), TotalsClassifier(GaussianNB())):
        model.fit(X, np.where(left_out, -1, y))
        calibrated = CalibratedClassifierCV(FrozenEstimator(model), cv=3).fit(X[left_out], y[left_out])
        assert calibrated.classes_.tolist() == [0, 1]
        assert np.allclose(calibrated.predict_proba(X).sum(axis=1), 1)
        assert np.mean(calibrated.predict(X) == truth) > 0.6


@pytest.mark.parametrize("totals", [{1: 70}, {0: 0.5, 1: 0.5}, {1: (60, 80)}])
def test_totals_hold_in_every_fit(totals):
    X, truth, known, y, region = survey()
    cv = LabeledKFold(5, random_state=0)
    scores = cross_validate(
        TotalsClassifier(LogisticRegression()), X, y, cv=cv, params={"totals": totals}, return_estimator=True
    )
    for model, (train, test), score in zip(scores["estimator"], cv.split(X, y), scores["test_score"], strict=True):
        assert all(row["deviation"] == 0 for row in model.totals_)
        alone = TotalsClassifier(LogisticRegression()).fit(X[train], y[train], totals=totals)
        assert score == np.mean(alone.predict(X[test]) == truth[test])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_groups_and_a_grid(frame):
    X, truth, known, y, region = survey()
    table = frame({"a": X[:, 0], "b": X[:, 1]})
    totals = {g: {1: int(truth[~known & (region == g)].sum())} for g in "ns"}
    pipeline = TotalsClassifier(make_pipeline(StandardScaler(), LogisticRegression()))
    grid = {"estimator__logisticregression__C": [1e-3, 1.0]}
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline.set_fit_request(totals=True, groups=True)
        search = GridSearchCV(pipeline, grid, cv=LabeledKFold(3, random_state=0), scoring=labeled_scorer())
        search.fit(table, y, totals=totals, groups=region)
    assert all(row["deviation"] == 0 for row in search.best_estimator_.totals_)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_scores_leave_marks_out():
    X, truth, known, y, _ = survey()
    model = GaussianNB().fit(X[known], y[known])
    expected = np.mean(model.predict(X[known]) == truth[known])
    assert labeled_scorer()(model, X, y) == expected
    assert labeled_scorer(unlabeled=9)(model, X, np.where(known, truth, 9)) == expected
    assert labeled_scorer()(model, X, np.where(known, truth, np.nan)) == expected
    auc = labeled_scorer("roc_auc")(model, X, y)
    assert auc == roc_auc_score(truth[known], model.predict_proba(X[known])[:, 1])
    weight = np.arange(200.0)
    weighted = labeled_scorer()(model, X, y, sample_weight=weight)
    assert weighted == accuracy_score(truth[known], model.predict(X[known]), sample_weight=weight[known])
    plain = cross_val_score(TotalsClassifier(GaussianNB()), X, y, cv=KFold(4), scoring=labeled_scorer())
    assert np.all(plain > 0.5)
    semi = cross_val_score(SSCTClassifier(), X, y, cv=KFold(2), scoring=labeled_scorer("balanced_accuracy"))
    assert np.isfinite(semi).all()
    with pytest.raises(InvalidInputError, match="none of the 3 rows has a label"):
        labeled_scorer()(model, X[:3], [-1, -1, -1])
    with pytest.raises(ValueError, match="guess"):
        labeled_scorer("guess")
    assert repr(labeled_scorer("f1")) == "labeled_scorer('f1', unlabeled=-1)"


def test_metadata_is_routed():
    X, truth, known, y, region = survey()
    totals = {g: {1: int(truth[~known & (region == g)].sum()) + (12 if g == "n" else -12)} for g in "ns"}
    cv, params = LabeledKFold(4, random_state=0), {"totals": totals, "groups": region}
    with sklearn.config_context(enable_metadata_routing=True):
        model = TotalsClassifier(LogisticRegression()).set_fit_request(totals=True, groups=True)
        scoring = labeled_scorer().set_score_request(groups=True)
        found = cross_validate(model, X, y, cv=cv, params=params, scoring=scoring, return_estimator=True)
        search = GridSearchCV(model, {"estimator__C": [0.1, 1.0]}, cv=cv, scoring=scoring).fit(X, y, **params)
        both = cross_validate(model, X, y, cv=cv, params=params, scoring={"with": scoring, "without": labeled_scorer()})
        with pytest.raises(InvalidInputError, match="not 'totals'"):
            labeled_scorer().set_score_request(totals=True)
    for fitted, (_, test), score in zip(found["estimator"], cv.split(X, y), found["test_score"], strict=True):
        assert score == np.mean(fitted.predict(X[test], groups=region[test]) == truth[test])
        assert {row["group"] for row in fitted.totals_} == {"n", "s"}
    assert np.array_equal(both["test_with"], found["test_score"])
    assert not np.array_equal(both["test_with"], both["test_without"])
    assert all(row["deviation"] == 0 for row in search.best_estimator_.totals_)
