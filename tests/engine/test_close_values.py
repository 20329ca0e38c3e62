"""Columns whose values are close to each other as codes such as 999999999 are so far off."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from treewright import TAOClassifier, TAORegressor
from treewright.data import unit_scaling
from treewright.engine.cart import cart_tree
from treewright.splits.points import Points
from treewright.tree import predict_labels, predict_values

CODES = [9999.0, 999999999.0, -999999999.0, 1e12]


def ages(n, code, share, seed=0):
    """Ages and flags, some of them a code; three classes by age and flag, where these are known."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(18, 90, n), rng.lognormal(10, 0.6, n), rng.random(n) < 0.4]).astype(float)
    y = ((X[:, 0] > 45) ^ (X[:, 2] > 0)).astype(int) + (X[:, 1] > 40000)
    X[rng.random(n) < share, 0] = code
    X[rng.random(n) < share, 2] = -code
    return X, y


@pytest.mark.parametrize("code", CODES[1:])
@pytest.mark.parametrize("share", [0.01, 0.2])
def test_cart_is_scikit_learns_on_ranks(code, share):
    X, y = ages(400, code, share)
    unit = unit_scaling(X).apply(X)
    assert Points(unit).close.tolist() == [0, 2]
    ranks = np.column_stack([rankdata(column, method="dense") for column in X.T]).astype(float)
    weight = np.random.default_rng(1).integers(1, 4, len(X)).astype(float)
    oracle = DecisionTreeClassifier(max_depth=3, random_state=0).fit(ranks, y, sample_weight=weight)
    assert np.mean(oracle.predict(ranks) == y) > 0.75
    tree = cart_tree(unit, y, weight, 3, 3)
    assert np.array_equal(predict_labels(tree, unit), oracle.predict(ranks))
    line = DecisionTreeRegressor(max_depth=3, random_state=0).fit(ranks, y, sample_weight=weight)
    tree = cart_tree(unit, y.astype(float)[:, None], weight, None, 3)
    assert predict_values(tree, unit).ravel() == pytest.approx(line.predict(ranks))


def test_cart_sends_gaps_of_such_columns_where_scikit_learn_does():
    X, y = ages(400, 999999999.0, 0.1)
    gone = np.random.default_rng(1).random(len(X)) < 0.2
    X[gone, 0] = np.nan
    y[gone] = 2
    ranks = np.column_stack([rankdata(column, method="dense", nan_policy="omit") for column in X.T])
    oracle = DecisionTreeClassifier(max_depth=3, random_state=0).fit(ranks, y)
    tree = cart_tree(X, y, np.ones(len(X)), 3, 3)
    assert np.array_equal(predict_labels(tree, X), oracle.predict(ranks))
    only = np.where(np.isnan(X[:, :1]), np.nan, X[:, :1])  # a split of gaps against the rest has no threshold
    known = cart_tree(only, np.isnan(only[:, 0]).astype(int), np.ones(len(X)), 2, 1)
    assert np.array_equal(predict_labels(known, only), np.isnan(only[:, 0]))


def test_what_is_close():
    rng = np.random.default_rng(0)
    plain = np.column_stack([rng.random(5000), rng.lognormal(size=5000), rng.integers(0, 3, 5000)])
    assert Points(plain).close.size == 0
    nearly_equal = 1.0 + plain[:, 2:] + 1e-15 * rng.random((5000, 1))  # rounding is no difference
    assert Points(np.hstack([nearly_equal, 1.0 + 1e-9 * plain[:, :1]])).close.tolist() == [1]
    assert Points(np.zeros((0, 2))).close.size == 0 and Points(np.full((3, 2), np.nan)).close.size == 0


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("n", [400, 4000])
def test_codes_do_not_hide_a_column_from_tao(code, n):
    X, y = ages(n, code, 1.5 / n)
    X_new, y_new = ages(2000, code, 0.0, seed=1)
    assert TAOClassifier(max_depth=3, random_state=0).fit(X, y).score(X_new, y_new) > 0.97


@pytest.mark.parametrize("n", [400, 4000])
def test_many_codes_cost_what_they_cost_cart(n):
    X, y = ages(n, 999999999.0, 0.1)
    X_new, y_new = ages(2000, 999999999.0, 0.1, seed=1)
    ranks = np.column_stack([rankdata(column, method="dense") for column in np.vstack([X, X_new]).T])
    cart = DecisionTreeClassifier(max_depth=3, random_state=0).fit(ranks[:n], y).score(ranks[n:], y_new)
    assert TAOClassifier(max_depth=3, random_state=0).fit(X, y).score(X_new, y_new) > cart - 0.03


def test_codes_with_categories_gaps_weights_and_repeated_rows():
    def table(code, seed):
        X, y = ages(3000, code, 0.02, seed)
        rng = np.random.default_rng(seed)
        town = rng.integers(0, 12, len(X))
        y = np.where(np.isin(town, [1, 4, 7]), 2, y)
        X[rng.random(len(X)) < 0.05, 1] = np.nan
        frame = pd.DataFrame(X, columns=["age", "income", "flag"])
        return frame.assign(town=pd.Categorical([f"t{k}" for k in town])), y, rng.integers(0, 4, len(X))

    right = []
    for code in (120.0, 999999999.0):
        X, y, weight = table(code, 0)
        rows = np.r_[np.arange(3000), np.arange(1000)]
        model = TAOClassifier(max_depth=3, random_state=0).fit(X.iloc[rows], y[rows], sample_weight=weight[rows])
        X_new, y_new, _ = table(code, 1)
        right.append(model.score(X_new, y_new))
        again = TAORegressor(max_depth=3, random_state=0).fit(X, y.astype(float))
        right.append(again.score(X_new, y_new.astype(float)))
    assert right[0] > 0.8 and right[2] > right[0] - 0.01 and right[3] > right[1] - 0.05
