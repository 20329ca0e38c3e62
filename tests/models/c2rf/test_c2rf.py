"""C2RFClassifier: what it claims is counted from its own predictions, for all kinds of ensembles and totals."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from tests.examples import looped

from treewright import C2RFClassifier, paper_forest
from treewright.exceptions import InfeasibleTotalsError, InvalidInputError, SolverError, UnsupportedProgramError
from treewright.solvers import get_solver

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def survey(seed=0, n=400, labels=60, n_classes=2):
    X, truth = make_classification(
        n, n_features=6, n_informative=4, n_redundant=0, n_classes=n_classes, flip_y=0.05, random_state=seed
    )
    y = truth.copy()
    # A biased sample: most labelled rows are of the last class.
    rng = np.random.default_rng(seed)
    chance = np.where(truth == n_classes - 1, 0.8, 0.2)
    known = rng.choice(n, labels, replace=False, p=chance / chance.sum())
    hidden = np.ones(n, dtype=bool)
    hidden[known] = False
    y[hidden] = -1
    return X, y, truth, hidden


def deviation(labels, totals):
    counts = {k: int(np.sum(labels == k)) for k in totals}
    return max(sum(max(counts[k] - totals[k], 0) for k in totals), sum(max(totals[k] - counts[k], 0) for k in totals))


def totals_of(truth, hidden):
    return {int(k): int(np.sum(truth[hidden] == k)) for k in np.unique(truth)}


ENSEMBLES = {
    "default": None,
    "paper": paper_forest(random_state=0),
    "forest": RandomForestClassifier(15, random_state=0),
    "extra": ExtraTreesClassifier(15, random_state=0),
    "bagging on some features": BaggingClassifier(DecisionTreeClassifier(), 15, max_features=0.5, random_state=0),
    "voting": VotingClassifier([("a", LogisticRegression()), ("b", GaussianNB()), ("c", KNeighborsClassifier())]),
    "list": [LogisticRegression(), ("nb", GaussianNB()), DecisionTreeClassifier(max_depth=3)],
}


@pytest.mark.parametrize("threshold", [True, False])
@pytest.mark.parametrize("name", list(ENSEMBLES))
def test_claims_are_counted_from_predictions(name, threshold):
    X, y, truth, hidden = survey()
    totals = totals_of(truth, hidden)
    model = C2RFClassifier(ENSEMBLES[name], class_prices=threshold, time_limit=0.5, random_state=0)
    model.fit(X, y, totals=totals)
    assert np.array_equal(model.transduction_[~hidden], y[~hidden])
    assert np.array_equal(model.predict(X[hidden]), model.transduction_[hidden])
    assert model.objective_ == deviation(model.transduction_[hidden], totals)
    assert 0 <= model.bound_ <= model.objective_
    assert (model.status_ == "optimal") == (model.objective_ <= model.bound_ * (1 + model.gap) + 1e-9)
    assert sum(row["deviation"] for row in model.totals_ if row["class"] == 1) == model.objective_
    assert model.weights_.mean() == pytest.approx(1) and model.weights_.min() > 0
    assert len(model.weights_) == len(model.estimators_)
    assert np.allclose(model.predict_proba(X[hidden]).sum(axis=0), [totals[k] for k in (0, 1)], atol=1e-6)


@pytest.mark.parametrize("solver", ["highs", "scip", "gurobi"])
def test_the_papers_model_is_proven_and_all_variants_agree(solver):
    X, y, truth, hidden = survey(1, n=160)
    totals = totals_of(truth, hidden)
    forest = paper_forest(random_state=1)
    ours = C2RFClassifier(forest, class_prices=False, solver=solver, random_state=0).fit(X, y, totals=totals)
    assert ours.status_ == "optimal"
    others = [] if solver == "highs" else [{"branching": True}]  # which HiGHS does not know
    for switches in ({"preprocess": True}, *others, {"order_cuts": True}, {}):
        off = {"preprocess": False, "branching": False, "order_cuts": False} | switches
        printed = C2RFClassifier(forest, class_prices=False, formulation="paper", solver=solver, random_state=0, **off)
        printed.set_params(time_limit=0.3).fit(X, y, totals=totals)
        assert printed.bound_ <= ours.objective_ <= printed.objective_


def test_priorities_are_refused_where_the_solver_knows_none():
    """They were left aside in silence, and what was called Algorithm 1 was half of it."""
    X, y, truth, hidden = survey(1, n=160)
    asked = {"class_prices": False, "branching": True, "random_state": 0}
    with pytest.raises(UnsupportedProgramError, match="branching=True .* solver='scip' or solver='gurobi'"):
        C2RFClassifier(["no classifier: refused before one is looked at"], **asked).fit(X, y, totals={1: 5})
    C2RFClassifier(paper_forest(1), **asked | {"class_prices": True}).fit(X, y, totals=totals_of(truth, hidden))


@pytest.mark.parametrize(
    ("solver", "branching", "sets"), [("highs", "auto", 0), ("scip", "auto", 1), ("scip", False, 0)]
)
def test_priorities_that_reach_the_solver(solver, branching, sets, monkeypatch):
    seen = []

    def solve(self, program, *rest, **more):
        seen.append(int(np.any(program.priority)))
        raise SolverError("seen")

    monkeypatch.setattr(type(get_solver(solver)), "solve", solve)
    X, y, truth, hidden = survey(1, n=160)
    model = C2RFClassifier(paper_forest(1), class_prices=False, formulation="paper", solver=solver, branching=branching)
    model.set_params(random_state=0).fit(X, y, totals=totals_of(truth, hidden))
    assert seen == [sets]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_weights_are_within_the_bounds_up_to_scale():
    X, y, truth, hidden = survey(2)
    model = C2RFClassifier(
        paper_forest(0), class_prices=False, min_weight=2, max_weight=10, time_limit=1, random_state=0
    )
    model.fit(X, y, totals=totals_of(truth, hidden))
    assert model.weights_.max() / model.weights_.min() <= 5 + 1e-9


def test_equal_weights_without_totals():
    X, y, _, hidden = survey()
    model = C2RFClassifier(RandomForestClassifier(15, random_state=0), prefer="equal", random_state=0).fit(X, y)
    votes = np.mean([member.predict(X[hidden]) for member in model.estimators_], axis=0)
    assert np.array_equal(model.transduction_[hidden], (votes > 0.5).astype(int))
    assert (model.objective_, model.status_, model.totals_) == (0, "optimal", [])


@pytest.mark.parametrize("threshold", [True, False])
def test_totals_per_group(threshold):
    X, y, truth, hidden = survey(3)
    groups = np.array(["north", "south"])[(X[:, 0] > 0).astype(int)]
    totals = {g: {k: int(np.sum(truth[hidden & (groups == g)] == k)) for k in (0, 1)} for g in ("north", "south")}
    model = C2RFClassifier(
        ExtraTreesClassifier(60, random_state=0), class_prices=threshold, time_limit=0.6, random_state=0
    )
    model.fit(X, y, totals=totals, groups=groups)
    missed = sum(deviation(model.transduction_[hidden & (groups == g)], totals[g]) for g in totals)
    assert model.objective_ == missed
    assert not threshold or missed == 0
    assert np.array_equal(model.predict(X[hidden], groups[hidden]), model.transduction_[hidden])
    assert set(model.class_prices_) >= {None} | ({"north", "south"} if threshold else set())
    with pytest.warns(UserWarning, match="group 'west' had no unlabelled rows in fit"):
        assert np.array_equal(model.predict(X[:9], ["west"] * 9), model.predict(X[:9]))
    shares = model.predict_proba(X[hidden], groups[hidden])
    for g in totals:
        assert np.allclose(shares[groups[hidden] == g].sum(axis=0), list(totals[g].values()), atol=1e-6)
    assert np.array_equal(shares, model.transduction_proba_[hidden])


def test_an_interval_costs_nothing_inside():
    X, y, _, hidden = survey(4)
    plain = C2RFClassifier(paper_forest(0), class_prices=False, prefer="equal", random_state=0).fit(X, y)
    count = int(np.sum(plain.predict(X[hidden]) == 1))
    for threshold in (True, False):
        model = C2RFClassifier(paper_forest(0), class_prices=threshold, prefer="equal", random_state=0)
        model.fit(X, y, totals={1: (count - 3, count + 3)})
        assert model.objective_ == 0
        assert count - 3 <= np.sum(model.transduction_[hidden] == 1) <= count + 3


@pytest.mark.parametrize("threshold", [True, False])
def test_three_classes(threshold):
    X, truth = load_iris(return_X_y=True)
    y = truth.copy()
    hidden = np.random.default_rng(0).random(150) > 0.2
    y[hidden] = -1
    totals = totals_of(truth, hidden)
    names = np.array(["setosa", "versicolor", "virginica", "?"], dtype=object)
    model = C2RFClassifier(
        RandomForestClassifier(40, random_state=0), class_prices=threshold, unlabeled="?", random_state=0
    )
    model.fit(X, names[y], totals={names[k]: n for k, n in totals.items()})
    found = np.searchsorted(names[:3].astype(str), model.transduction_[hidden].astype(str))
    assert model.objective_ == deviation(found, totals)
    assert model.objective_ <= (2 if threshold else 8)
    assert np.mean(model.transduction_[hidden] == names[truth[hidden]]) > 0.85


def test_a_threshold_is_more_accurate_than_the_biased_forest():
    gains = []
    for seed in range(4):
        X, y, truth, hidden = survey(seed, n=800)
        model = C2RFClassifier(RandomForestClassifier(50, random_state=0), random_state=0)
        model.fit(X, y, totals=totals_of(truth, hidden))
        plain = model.estimator_.predict(X[hidden])
        gains.append(np.mean(model.transduction_[hidden] == truth[hidden]) - np.mean(plain == truth[hidden]))
    assert np.mean(gains) > 0.01


def test_a_fitted_ensemble_is_taken_as_it_is():
    X, y, truth, hidden = survey()
    forest = RandomForestClassifier(10, random_state=3).fit(X[~hidden], y[~hidden])
    model = C2RFClassifier(forest, prefit=True, random_state=0).fit(X, y, totals=totals_of(truth, hidden))
    assert model.estimator_ is forest
    other = C2RFClassifier(list(forest.estimators_), prefit=True, random_state=0)
    other.fit(X, y, totals=totals_of(truth, hidden))
    assert np.array_equal(model.transduction_, other.transduction_)


def test_frames_and_importances():
    X, y, truth, hidden = survey()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = C2RFClassifier(RandomForestClassifier(20, random_state=0), random_state=0)
    model.fit(frame, y, totals=totals_of(truth, hidden))
    assert list(model.feature_names_in_) == list("abcdef")
    each = np.array([member.feature_importances_ for member in model.estimators_])
    assert model.feature_importances_ == pytest.approx(np.average(each, axis=0, weights=model.weights_))
    with pytest.raises(AttributeError, match="GaussianNB"):
        _ = C2RFClassifier([GaussianNB()]).fit(frame, y).feature_importances_


def test_warm_start_begins_with_the_last_weights():
    X, y, truth, hidden = survey(6)
    model = C2RFClassifier(paper_forest(0), class_prices=False, warm_start=True, random_state=0)
    first = model.fit(X, y, totals=totals_of(truth, hidden)).objective_
    assert model.set_params(time_limit=1e-3).fit(X, y, totals=totals_of(truth, hidden)).objective_ <= first


def test_a_frozen_ensemble_survives_cloning():
    X, y, truth, hidden = survey()
    forest = FrozenEstimator(RandomForestClassifier(10, random_state=3).fit(X[~hidden], y[~hidden]))
    model = clone(C2RFClassifier(forest, prefit=True, random_state=0)).fit(X, y, totals=totals_of(truth, hidden))
    assert len(model.weights_) == 10 and model.objective_ == 0


def test_no_time_still_gives_weights_and_an_honest_status():
    X, y, truth, hidden = survey(0, n=2000)
    model = C2RFClassifier(paper_forest(0), class_prices=False, time_limit=1e-3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        with pytest.raises(ConvergenceWarning, match="weighting has objective"):
            model.fit(X, y, totals={1: int(0.1 * hidden.sum())})
    assert model.status_ == "time_limit" and model.bound_ < model.objective_


@looped(
    "parameters, error, text",
    [
        ({"estimator": []}, InvalidInputError, "empty list"),
        ({"estimator": [LogisticRegression(), 3]}, InvalidInputError, "3"),
        ({"estimator": LogisticRegression()}, InvalidInputError, "TotalsClassifier"),
        ({"estimator": GradientBoostingClassifier()}, InvalidInputError, "GradientBoosting"),
        ({"min_weight": 1.2, "max_weight": 1.9}, InvalidInputError, "1.9"),
        ({"min_weight": 0.0}, ValueError, "min_weight"),
        ({"prefer": "best"}, ValueError, "best"),
        ({"n_jobs": 0}, InvalidInputError, "n_jobs"),
    ],
)
def test_bad_parameters(parameters, error, text):
    X, y, _, _ = survey()
    with pytest.raises(error, match=text):
        C2RFClassifier(**parameters).fit(X, y)


def test_bad_totals_and_weights():
    X, y, _, hidden = survey()
    with pytest.raises(InfeasibleTotalsError):
        C2RFClassifier().fit(X, y, totals={1: int(hidden.sum()) + 1})
    with pytest.raises(InvalidInputError, match="'2'|2"):
        C2RFClassifier(paper_forest(0)).fit(X, y, totals={2: 5}, allow_new_classes=True)
    with pytest.raises(InvalidInputError, match="sample_weight"):
        C2RFClassifier([KNeighborsClassifier()]).fit(X, y, sample_weight=np.arange(len(X)))
    forest = RandomForestClassifier(5).fit(X[:50], np.where(X[:50, 0] > 0, "yes", "no"))
    with pytest.raises(InvalidInputError, match="no"):
        C2RFClassifier(forest, prefit=True).fit(X, y)


def test_votes_among_noise_are_made_as_sure_as_rows_out_of_bag_say():
    """Two of 27 features say the class: trees vote 6 to 4 where one class is nearly sure."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 27))
    truth = ((X[:, 0] > 0) & (X[:, 1] > -0.5)).astype(int)
    known = np.arange(1200) < 200
    model = C2RFClassifier(RandomForestClassifier(60, random_state=0), prefer="equal", random_state=0)
    model.fit(X, np.where(known, truth, -1), totals={1: int(truth[~known].sum())})
    shares = model.transduction_proba_[~known]
    assert abs(shares.max(axis=1).mean() - np.mean(shares.argmax(axis=1) == truth[~known])) < 0.06
    assert shares[:, 1].sum() == pytest.approx(truth[~known].sum(), abs=1e-6)
    assert np.array_equal(model.predict(X[~known]), model.transduction_[~known])
    votes = np.stack([tree.predict(X[~known]) for tree in model.estimator_.estimators_], axis=1) @ model.weights_
    order = np.argsort(votes, kind="stable")
    assert np.all(np.diff(model.transduction_[~known][order]) >= 0)  # the vote decides
