"""SelfTrainingRegressor, and scikit-learn's SelfTrainingClassifier around our trees."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.examples import looped

from treewright import SelfTrainingRegressor, TAOClassifier, TAORegressor
from treewright.exceptions import InvalidInputError

X, TRUTH = load_diabetes(return_X_y=True)
KNOWN = np.random.default_rng(0).random(len(TRUTH)) < 0.2
Y = np.where(KNOWN, TRUTH, np.nan)


def by_hand(estimator, rounds, weight=1.0):
    """The rounds of the docstring, written out."""
    estimator.fit(X[KNOWN], TRUTH[KNOWN])
    for _ in range(rounds):
        targets = np.where(KNOWN, TRUTH, estimator.predict(X))
        estimator.fit(X, targets, sample_weight=np.where(KNOWN, 1.0, weight))
    return estimator.predict(X)


@pytest.mark.parametrize("weight", [1.0, 0.25])
@pytest.mark.parametrize("rounds", [1, 2, 4])
def test_rounds_are_those_written_out(rounds, weight):
    kind = DecisionTreeRegressor(max_depth=3, random_state=0)
    model = SelfTrainingRegressor(kind, max_iter=rounds, tol=0, unlabeled_weight=weight).fit(X, Y)
    expected = by_hand(DecisionTreeRegressor(max_depth=3, random_state=0), model.n_iter_ - 1, weight)
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-9)
    np.testing.assert_allclose(model.transduction_, np.where(KNOWN, TRUTH, expected), rtol=1e-9)
    assert model.n_iter_ == rounds or model.reason_ == "the predictions did not change any more"


def test_unlabelled_rows_move_the_tree():
    fits = [SelfTrainingRegressor(DecisionTreeRegressor(max_depth=3), max_iter=k, random_state=0) for k in (1, 10)]
    assert np.any(fits[0].fit(X, Y).predict(X) != fits[1].fit(X, Y).predict(X))


def test_it_says_why_it_ended():
    model = SelfTrainingRegressor(LinearRegression()).fit(X, Y)
    # least squares on its own predictions is where it started
    assert model.reason_ == "the predictions did not change any more" and model.n_iter_ == 2
    np.testing.assert_allclose(model.predict(X), LinearRegression().fit(X[KNOWN], TRUTH[KNOWN]).predict(X))
    model = SelfTrainingRegressor(KNeighborsRegressor(30), max_iter=2, tol=0).fit(X, Y)
    assert model.reason_ == "all fits are made" and model.n_iter_ == 2
    model = SelfTrainingRegressor().fit(X, TRUTH)
    assert model.reason_ == "all rows have targets" and model.n_iter_ == 1
    np.testing.assert_array_equal(model.transduction_, TRUTH)


def test_change_is_in_units_of_the_targets():
    def rounds(factor):
        model = SelfTrainingRegressor(KNeighborsRegressor(30), max_iter=50, tol=0.02)
        return model.fit(X, factor * Y).n_iter_

    assert 2 < rounds(1.0) < 50
    assert rounds(1e6) == rounds(1.0) == rounds(1e-6)


def test_oblique_trees():
    tree = TAORegressor(max_depth=3, random_state=0)
    model = SelfTrainingRegressor(tree, max_iter=3).fit(X, Y)
    assert model.score(X[~KNOWN], TRUTH[~KNOWN]) > 0.2
    assert np.any(np.count_nonzero(model.estimator_.tree_.weights, axis=1) > 1)


def test_marks():
    expected = SelfTrainingRegressor(random_state=0).fit(X, Y).predict(X)
    as_objects = Y.astype(object)
    as_objects[~KNOWN] = None
    for y in (as_objects, as_objects.tolist(), pd.Series(as_objects).astype("Float64"), Y[:, None]):
        np.testing.assert_array_equal(SelfTrainingRegressor(random_state=0).fit(X, y).predict(X).ravel(), expected)
    marked = SelfTrainingRegressor(random_state=0, unlabeled=-999).fit(X, np.where(KNOWN, TRUTH, -999))
    np.testing.assert_array_equal(marked.predict(X), expected)
    # -1 is a target
    targets = np.where(np.arange(20) < 10, -1.0, 1.0)
    plain = SelfTrainingRegressor().fit(np.arange(20.0)[:, None], targets)
    assert plain.reason_ == "all rows have targets" and plain.predict([[3.0]]) == -1.0


def test_missing_outputs_are_filled_one_by_one():
    both = np.column_stack([TRUTH, 2.0 * TRUTH + X[:, 0]])
    partly = both.copy()
    partly[~KNOWN, 1] = np.nan
    partly[:20, 0] = np.nan
    model = SelfTrainingRegressor(DecisionTreeRegressor(max_depth=4), random_state=0).fit(X, partly)
    given = ~np.isnan(partly)
    np.testing.assert_array_equal(model.transduction_[given], partly[given])
    np.testing.assert_array_equal(model.transduction_[~given], model.predict(X)[~given])
    assert model.score(X, both) > 0.3


def test_rows_in_any_order_give_the_same_default_tree():
    order = np.random.default_rng(1).permutation(len(X))
    first = SelfTrainingRegressor(random_state=0).fit(X, Y)
    second = SelfTrainingRegressor(random_state=0).fit(X[order], Y[order])
    np.testing.assert_array_equal(first.predict(X), second.predict(X))


def test_weights_of_unlabelled_rows_count():
    weight = np.where(KNOWN, 1.0, 0.0)
    model = SelfTrainingRegressor(DecisionTreeRegressor(max_depth=3, random_state=0), tol=0).fit(X, Y, weight)
    np.testing.assert_allclose(model.predict(X), by_hand(DecisionTreeRegressor(max_depth=3, random_state=0), 0))


@looped(
    "model, y, message",
    [
        (SelfTrainingRegressor(LogisticRegression()), Y, "no regressor"),
        (SelfTrainingRegressor(DecisionTreeRegressor), Y, "pass an instance"),
        (SelfTrainingRegressor(KNeighborsRegressor(), unlabeled_weight=0.5), Y, "takes no sample_weight"),
        (SelfTrainingRegressor(), np.full(len(X), np.nan), "at least one must be labelled"),
        (SelfTrainingRegressor(unlabeled="none"), Y, "unlabeled"),
        (SelfTrainingRegressor(max_iter=0), Y, "max_iter"),
        (SelfTrainingRegressor(), Y[:-1], "inconsistent"),
    ],
)
def test_bad_input_is_refused(model, y, message):
    with pytest.raises((InvalidInputError, ValueError, TypeError), match=message):
        model.fit(X, y)


def test_a_failed_fit_leaves_the_old_one_whole():
    model = SelfTrainingRegressor().fit(X, Y)
    before = model.predict(X)
    with pytest.raises(InvalidInputError):
        model.fit(X[:, :3], np.full(len(X), np.nan))
    np.testing.assert_array_equal(model.predict(X), before)


# ---------------------------------------------------------------------- classes: scikit-learn's own


@pytest.mark.parametrize(
    "tree", [DecisionTreeClassifier(max_depth=3, random_state=0), TAOClassifier(max_depth=3, random_state=0)]
)
def test_self_training_classifier_of_scikit_learn_takes_our_trees(tree):
    X, truth = load_breast_cancer(return_X_y=True)
    known = np.random.default_rng(0).random(len(truth)) < 0.1
    model = SelfTrainingClassifier(make_pipeline(StandardScaler(), tree), threshold=0.8)
    model.fit(X, np.where(known, truth, -1))
    assert np.count_nonzero(model.transduction_ != -1) > np.count_nonzero(known)
    assert model.score(X[~known], truth[~known]) > 0.85
