"""Weights that are all multiplied by a number give the same model, and its objective times that number."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.ensemble import AdaBoostClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.tree import DecisionTreeClassifier

import treewright as tw
from treewright.data import weight_unit

FACTORS = [1e-11, 2.0**-30, 1 / 300, 2.0, 1e8]
rng = np.random.default_rng(0)
X = rng.random((300, 4))
NOISY = ((X[:, 0] + X[:, 1] > 1) ^ (rng.random(300) < 0.15)).astype(int)
WEIGHTS = {"equal": np.ones(300), "whole": rng.integers(0, 5, 300).astype(float), "any": rng.lognormal(size=300)}


# ---------------------------------------------------------------------- the weight of one row


def test_the_unit_of_equal_rows_is_the_weight_of_one():
    assert weight_unit(np.ones(7)) == 1.0
    assert weight_unit(np.array([0.0, 3, 1, 2])) == 1.0
    assert weight_unit(np.full(7, 0.1)) == 0.1
    assert weight_unit(np.zeros(3)) == 1.0


def test_the_unit_of_other_weights_counts_the_effective_rows():
    weight = WEIGHTS["any"]
    assert weight.sum() / weight_unit(weight) == pytest.approx(weight.sum() ** 2 / (weight**2).sum())
    for extreme in (1e-300, 1e300):  # squares would be 0 or infinite
        assert weight_unit(weight * extreme) == pytest.approx(weight_unit(weight) * extreme, rel=1e-12)


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=20), st.floats(1e-20, 1e20))
def test_the_unit_follows_the_scale_and_is_one_of_the_weights_or_between(weights, factor):
    weight = np.array(weights)
    unit = weight_unit(weight)
    assert weight.min() <= unit * (1 + 1e-12) and unit <= weight.max() * (1 + 1e-12)
    copies = weight / weight.min()
    clear = np.abs(copies - np.round(copies)).max() > 1e-6 or np.array_equal(copies, np.round(copies))
    if clear:  # neither whole nor nearly so
        assert weight_unit(weight * factor) == pytest.approx(unit * factor, rel=1e-9)


# ---------------------------------------------------------------------- TAO

TAO = {
    "oblique": tw.TAOClassifier(max_depth=3, random_state=0),
    "axis": tw.TAOClassifier(max_depth=3, max_split_features=1, random_state=0),
    "balanced": tw.TAOClassifier(max_depth=3, class_weight="balanced", random_state=0),
    "regressor": tw.TAORegressor(max_depth=3, random_state=0),
    "linear leaves": tw.TAORegressor(max_depth=2, leaves="linear", random_state=0),
}


def same_tree(first, second):
    assert np.array_equal(first.left, second.left)
    assert second.weights == pytest.approx(first.weights, rel=1e-6, abs=1e-9)
    assert second.threshold == pytest.approx(first.threshold, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS.keys())
@pytest.mark.parametrize("model", TAO.values(), ids=TAO.keys())
def test_tao(model, weight):
    first = model.fit(X, NOISY, sample_weight=weight)
    tree, alpha, objective, trace = first.tree_, first.alpha_, first.objective_, first.trace_
    assert tree.n_leaves > 1
    for factor in FACTORS:
        model.fit(X, NOISY, sample_weight=factor * weight)
        same_tree(tree, model.tree_)
        assert model.alpha_ == pytest.approx(factor * alpha, rel=1e-9)
        assert model.objective_ == pytest.approx(factor * objective, rel=1e-6)
        for column in ("objective", "loss"):
            assert model.trace_[column][-1] == pytest.approx(factor * trace[column][-1], rel=1e-6)


def test_without_weights_alpha_is_what_it_was():
    assert tw.TAOClassifier(max_depth=1, random_state=0).fit(X, NOISY).alpha_ == 1.0
    many = np.random.default_rng(0).random((14_400, 1))
    model = tw.TAOClassifier(max_depth=1, random_state=0).fit(many, (many[:, 0] > 0.5).astype(int))
    assert model.alpha_ == pytest.approx(np.sqrt(14_400) / 80)


@pytest.mark.parametrize("alpha", ["auto", 0.7, 3.0])
def test_a_weight_of_two_is_a_repeated_row(alpha):
    times = WEIGHTS["whole"].astype(int)
    weighted = tw.TAOClassifier(max_depth=3, alpha=alpha, random_state=0).fit(X, NOISY, sample_weight=times)
    repeated = tw.TAOClassifier(max_depth=3, alpha=alpha, random_state=0)
    repeated.fit(X.repeat(times, axis=0), NOISY.repeat(times))
    same_tree(repeated.tree_, weighted.tree_)
    assert weighted.alpha_ == repeated.alpha_


def test_alpha_that_is_given_is_in_rows_of_weight_one():
    first = tw.TAOClassifier(max_depth=3, alpha=2.0, random_state=0).fit(X, NOISY)
    for factor in FACTORS:
        weight = np.full(300, factor)
        scaled = tw.TAOClassifier(max_depth=3, alpha=2.0 * factor, random_state=0).fit(X, NOISY, sample_weight=weight)
        same_tree(first.tree_, scaled.tree_)
        assert scaled.alpha_ == 2.0 * factor
    alone = tw.TAOClassifier(max_depth=3, alpha=2.0, random_state=0).fit(X, NOISY, sample_weight=np.full(300, 1e-3))
    assert alone.tree_.n_leaves == 1  # all rows together weigh less than a split


def test_adaboost_of_tao_is_as_good_as_that_of_cart():
    X, y = load_breast_cancer(return_X_y=True)
    train = np.arange(len(y)) % 2 == 0

    def score(member):
        model = AdaBoostClassifier(member, n_estimators=15, random_state=0).fit(X[train], y[train])
        return model.score(X[~train], y[~train])

    cart = score(DecisionTreeClassifier(max_depth=2, random_state=0))
    assert score(tw.TAOClassifier(max_depth=2, random_state=0)) > cart - 0.02
    assert score(tw.TAOClassifier(max_depth=2, max_split_features=1, random_state=0)) > cart - 0.02


def test_laptao_prices_splits_in_rows():
    X, y = load_wine(return_X_y=True)
    partly = np.where(np.arange(len(y)) % 3 == 0, y, -1)
    model = tw.LapTAOClassifier(max_depth=3, max_iter=2, random_state=0)
    alpha = model.fit(X, partly).alpha_
    assert alpha == pytest.approx(np.sqrt(len(y)) / 80)
    assert model.fit(X, partly, sample_weight=np.full(len(y), 1e-3)).alpha_ == pytest.approx(1e-3 * alpha)


# ---------------------------------------------------------------------- S2OCT, OCT-H and totals


def noise(seed, n=12):
    rng = np.random.default_rng(seed)
    return rng.random((n, 2)), np.where(np.arange(n) < min(10, n - 4), rng.integers(0, 2, n), -1)


def s2oct(points, y, weight=None, size=None):
    model = tw.S2OCTClassifier(1, max_split_features=size, prefer="first", random_state=0, time_limit=60)
    return model.fit(points, y, sample_weight=weight, totals={1: 2})


@pytest.mark.usefixtures("shortest_searches")
@pytest.mark.parametrize("seed", [0, 2])  # of 1 a line parts the labels
@pytest.mark.parametrize("weights", ["equal", "any"])
def test_s2oct(seed, weights):
    points, y = noise(seed)
    weight = WEIGHTS[weights][:12]
    model = s2oct(points, y, weight)
    assert model.status_ == "optimal" and model.objective_ > 0
    for factor in (1e-11, 1e8):
        other = s2oct(points, y, factor * weight)
        assert other.status_ == "optimal"
        assert other.objective_ == pytest.approx(factor * model.objective_, rel=1e-6)
        assert other.bound_ == pytest.approx(factor * model.bound_, rel=1e-3)
        assert other.trace_["objective"][-1] == pytest.approx(other.objective_)
        same_tree(model.tree_, other.tree_)
        assert np.array_equal(other.transduction_, model.transduction_)


@pytest.mark.usefixtures("shortest_searches")
@pytest.mark.parametrize("weights", ["equal", "any"])
def test_s2oct_taught(weights):
    points, y = noise(2, n=40)
    weight = WEIGHTS[weights][:40]
    model = s2oct(points, y, weight, "auto")
    for factor in (2.0**-36, 2.0**27):  # powers of two: forests of scikit-learn feel the last digit
        other = s2oct(points, y, factor * weight, "auto")
        assert other.status_ == model.status_
        assert other.objective_ == pytest.approx(factor * model.objective_, rel=1e-6)
        same_tree(model.tree_, other.tree_)
        assert np.array_equal(other.transduction_, model.transduction_)


@pytest.mark.usefixtures("shortest_searches")
def test_s2oct_taught_by_repeated_rows_and_by_whole_weights():
    points, y = noise(0, n=40)
    times = np.where(y >= 0, 1 + np.arange(40) % 3, 1)
    weighted = s2oct(points, y, times, "auto")
    repeated = s2oct(points.repeat(times, axis=0), y.repeat(times), size="auto")
    same_tree(weighted.tree_, repeated.tree_)
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-9)
    assert np.array_equal(weighted.predict(points), repeated.predict(points))


@pytest.mark.usefixtures("shortest_searches")
def test_s2oct_on_repeated_rows_and_whole_weights():
    points, y = noise(0)
    times = np.where(y >= 0, 1 + np.arange(12) % 3, 1)
    weighted, repeated = s2oct(points, y, times), s2oct(points.repeat(times, axis=0), y.repeat(times))
    assert weighted.status_ == repeated.status_ == "optimal"
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-4)


@pytest.mark.usefixtures("shortest_searches")
@pytest.mark.parametrize("factor", [2.0**-36, 2.0**27])
def test_others(factor):  # powers of two: forests of scikit-learn feel the last digit
    points, y = noise(1, n=40)
    partly = np.where(np.arange(40) < 20, np.abs(y), -1)
    weight = WEIGHTS["any"][:40]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for model, labels, given in (
            (tw.OCTHClassifier(1, random_state=0, time_limit=20), np.abs(y), {}),
            (tw.TotalsClassifier(random_state=0), partly, {"totals": {1: 11}}),
            (tw.C2RFClassifier(RandomForestClassifier(20), random_state=0), partly, {"totals": {1: 11}}),
            (tw.SSCTClassifier(random_state=0), partly, {}),
            (tw.LapSVMClassifier(random_state=0), partly, {}),
        ):
            first = model.fit(points, labels, sample_weight=weight, **given).predict(points)
            again = model.fit(points, labels, sample_weight=factor * weight, **given).predict(points)
            assert np.array_equal(first, again)


# ---------------------------------------------------------------------- a row that outweighs all others

PROVEN = {
    "BinOCT": tw.BinOCTClassifier(max_depth=1, time_limit=60),
    "FairOCT": tw.FairOCTClassifier(max_depth=1, time_limit=60),
    "OCT": tw.OCTClassifier(max_depth=2, time_limit=60),
    "OCT-H": tw.OCTHClassifier(max_depth=1, time_limit=60),
    "SVM1-ODT": tw.SVM1ODTClassifier(max_depth=1, alpha_1=0.0, alpha_2=0.0, epsilon=0.01, time_limit=60),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("heavy", [1e4, 1e6, 1e9, 1e12])
@pytest.mark.parametrize("name", PROVEN)
def test_nothing_is_proven_that_rounding_may_hide(name, heavy):
    draws = np.random.default_rng(0)
    points, y, weight = draws.normal(size=(40, 2)), draws.integers(0, 2, 40), np.ones(40)
    model = PROVEN[name].fit(points, y)
    assert model.status_ == "optimal" and model.predict(points[:1]) == y[0]
    least = np.count_nonzero(model.predict(points) != y)  # the heavy row is right at no cost
    weight[0] = heavy
    model.fit(points, y, sample_weight=weight)
    wrong = np.flatnonzero(model.predict(points) != y)
    assert 0 not in wrong
    assert model.bound_ <= model.objective_ * least / len(wrong) * (1 + 1e-4)
    assert len(wrong) == least or model.status_ == "unproven"
    assert heavy > 1e4 or model.status_ == "optimal"


def test_an_objective_far_below_the_dearest_price_is_proven_all_the_same():
    points = np.random.default_rng(0).random((40, 2))
    y = (points[:, 0] + points[:, 1] > 1.0).astype(int)
    points[y == 1] += 0.1
    model = tw.SVM1ODTClassifier(max_depth=1, epsilon=0.01, alpha_1=1000.0, alpha_2=0.1, time_limit=60).fit(points, y)
    assert model.status_ == "optimal" and 0.0 < model.objective_ < 0.1
    assert model.objective_ == pytest.approx(model.bound_, rel=1e-4)
