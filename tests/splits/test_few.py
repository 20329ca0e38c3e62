"""Directions on few features: cardinality, support, agreement with other solvers and with what is exhaustive."""

from itertools import combinations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from tests.examples import looped

from treewright.splits.few import few_features, keep_largest, restricted_to, steepest_features
from treewright.splits.l1_logistic import l1_logistic

FORMS = {"dense": np.array, "sparse": sparse.csr_array, "single": lambda X: X.astype(np.float32)}


def direction(X, goes_right, weight, alpha, start):
    return l1_logistic(X, goes_right, weight, alpha, start, max_steps=50, tol=1e-8)[:2]


def task(seed, n=150, p=7, noise=0.3):
    rng = np.random.default_rng(seed)
    X = rng.random((n, p)) * (rng.random((n, p)) < 0.8)
    normal = rng.choice([-1.0, 1.0], p) * rng.uniform(0.5, 1.5, p) * (rng.random(p) < 0.6)
    normal[0] = 1.0
    level = X @ normal
    goes_right = level + noise * rng.standard_normal(n) > np.median(level)
    return X, goes_right, rng.integers(1, 4, n).astype(float)


def penalized(X, goes_right, weight, alpha, weights):
    """The penalized loss of weights with their best intercept, found by bisection on its derivative."""
    level, low, high = X @ weights, -50.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        slope = weight @ (1 / (1 + np.exp(-(level + middle))) - goes_right)
        low, high = (middle, high) if slope < 0 else (low, middle)
    margin = np.where(goes_right, level + low, -(level + low))
    return weight @ np.logaddexp(0, -margin) + alpha * np.abs(weights).sum()


@pytest.mark.parametrize("form", FORMS)
@looped("most", [1, 2, 3, 5])
@looped("alpha", [0.0, 0.2, 5.0])
def test_there_are_at_most_so_many_features_and_their_weights_are_best(most, alpha, form):
    X, goes_right, weight = task(0)
    found = few_features(FORMS[form](X), goes_right, weight, alpha, most, direction)
    assert found and len(found) <= 2
    for weights in found:
        used = np.flatnonzero(weights)
        assert 1 <= len(used) <= most
        if alpha:
            other = LogisticRegression(C=1 / alpha, l1_ratio=1, solver="saga", tol=1e-8, max_iter=20_000)
        else:
            other = LogisticRegression(C=np.inf, tol=1e-10, max_iter=5000)
        other.fit(X[:, used], goes_right, sample_weight=weight)
        expected = np.zeros(X.shape[1])
        expected[used] = other.coef_[0]
        reached, best = (penalized(X, goes_right, weight, alpha, w) for w in (weights, expected))
        assert reached <= best * (1 + 1e-4)


@looped("seed", range(5))
@looped("most", [2, 3])
def test_the_better_choice_is_close_to_the_best_of_all(seed, most):
    X, goes_right, weight = task(seed)
    found = few_features(X, goes_right, weight, 0.3, most, direction)
    reached = min(penalized(X, goes_right, weight, 0.3, weights) for weights in found)
    zero = penalized(X, goes_right, weight, 0.3, np.zeros(7))
    best = zero
    for used in map(list, combinations(range(7), most)):
        weights = np.zeros(7)
        weights[used] = direction(np.ascontiguousarray(X[:, used]), goes_right, weight, 0.3, None)[0]
        best = min(best, penalized(X, goes_right, weight, 0.3, weights))
    assert best <= reached * (1 + 1e-6)
    assert zero - reached >= 0.9 * (zero - best)


@pytest.mark.parametrize("form", FORMS)
@looped("k", [1, 2, 3])
def test_the_features_of_a_hyperplane_are_found(k, form):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.random((300, 15))
        support = np.sort(rng.choice(15, k, replace=False))
        level = X[:, support] @ (rng.choice([-1.0, 1.0], k) * rng.uniform(0.7, 1.0, k))
        found = few_features(FORMS[form](X), level > np.median(level), np.ones(300), 0.1, k, direction)
        assert any(np.flatnonzero(weights).tolist() == support.tolist() for weights in found)


def test_nothing_is_found_where_nothing_pays():
    X, goes_right, weight = task(1)
    assert few_features(X, goes_right, weight, 1e6, 2, direction) == []
    assert few_features(np.ones((150, 3)), goes_right, weight, 0.0, 2, direction) == []


def test_sparse_tables_too_large_to_be_made_dense_give_the_same_features(monkeypatch):
    from treewright.splits import few

    X, goes_right, weight = task(2)
    dense = few_features(X, goes_right, weight, 0.2, 3, direction)
    monkeypatch.setattr(few, "_SMALL", 0)
    thin = few_features(sparse.csr_array(X), goes_right, weight, 0.2, 3, direction)
    assert np.array(thin) == pytest.approx(np.array(dense), abs=1e-6)


def test_many_features_join_several_at_once():
    X, goes_right, weight = task(3, n=400, p=60)
    calls = []

    def counted(X, *rest):
        calls.append(X.shape[1])
        return direction(X, *rest)

    found = few_features(X, goes_right, weight, 0.01, 40, counted)
    joined = [p for p in calls if p <= 40][: calls.index(40) + 1]
    assert joined[:4] == [1, 2, 3, 4] and joined[-1] == 40 and len(joined) < 20
    assert all(np.count_nonzero(weights) <= 40 for weights in found)


def test_the_largest_weights_stay():
    rng = np.random.default_rng(0)
    table = rng.standard_normal((20, 6))
    for most in (1, 3, 6, 9):
        kept = keep_largest(table, most)
        assert np.all(np.count_nonzero(kept, axis=1) == min(most, 6))
        for row, thin in zip(table, kept, strict=True):
            assert sorted(np.abs(thin))[6 - min(most, 6) :] == sorted(np.abs(row))[6 - min(most, 6) :]
            assert np.array_equal(thin[thin != 0], row[thin != 0])
    assert keep_largest(np.zeros(3), 2).tolist() == [0, 0, 0]


def test_what_is_no_restriction():
    assert [restricted_to(k, 3) for k in (None, 1, 2, 3, 4)] == [None, 1, 2, None, None]
    assert [restricted_to(k, 1) for k in (None, 1, 2)] == [None, 1, None]


@pytest.mark.parametrize("form", FORMS)
def test_steepest_features_are_those_of_the_largest_correlation(form):
    X, goes_right, _ = task(4)
    correlation = [abs(np.corrcoef(column, goes_right)[0, 1]) for column in X.T]
    for count in (1, 3, 7):
        found = steepest_features(FORMS[form](X), goes_right, np.ones(150), count)
        assert found.tolist() == sorted(np.argsort(correlation)[::-1][:count].tolist())
