"""``objective_`` of S2OCT is that of ``tree_``: recomputed from the definition, in the units of the data."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from tests.contracts.estimators import s2oct_measure

from treewright import S2OCTClassifier


def recomputed(model, X, y, totals, weight=None):
    return s2oct_measure(model, {"X": X, "y": y, "totals": totals, "sample_weight": weight})


def fit(X, y, totals, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        settings = {"time_limit": 0.2, "random_state": 0, "max_split_features": None} | parameters
        return S2OCTClassifier(**settings).fit(X, y, totals=totals, allow_new_classes=True)


def tiny(seed):
    """A few rows on a small grid, many of them equal; labels of one class in every fifth instance."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(4, 9)), int(rng.integers(1, 3))
    X, y = rng.integers(0, 4, (n, p)).astype(float), rng.integers(-1, 2, n)
    y[:3] = (0, 1, -1) if seed % 5 else (0, 0, -1)
    if seed % 5 == 0:
        y[y == 1] = 0
    return X, y, {1: int(rng.integers(0, 1 + np.count_nonzero(y == -1)))}


def test_a_second_chance_stays_in_the_tree():
    X, y = np.array([[0.0], [0.0], [5.0], [6.0]]), np.array([0, 1, -1, -1])
    model = fit(X, y, {1: 0})
    assert (model.status_, model.objective_) == ("optimal", pytest.approx(2.0))
    assert recomputed(model, X, y, {1: 0}) == pytest.approx(2.0)
    assert model.predict(X).tolist() == [0, 0, 0, 0]


@pytest.mark.usefixtures("shortest_searches")
@pytest.mark.parametrize("size", [None, "auto", 1])
@pytest.mark.parametrize("part", range(5))
def test_the_objective_is_that_of_the_tree(part, size):
    """A hundred instances; most get no time to search, and their trees are far from optimal."""
    for seed in range(20 * part, 20 * part + 20):
        X, y, totals = tiny(seed)
        limit = 0.01 if seed >= 20 or (size == 1 and seed >= 10) else 0.05
        model = fit(X, y, totals, max_depth=1 + seed % 2, time_limit=limit, max_split_features=size)
        assert model.objective_ == pytest.approx(recomputed(model, X, y, totals), abs=1e-7), seed
        assert model.bound_ <= model.objective_


@pytest.mark.usefixtures("shortest_searches")
@pytest.mark.parametrize("margin", ["reached", "paper"])
def test_the_objective_is_that_of_the_tree_with_margins_of_one(margin):
    for seed in (1, 2, 3, 4, 6, 7):
        X, y, totals = tiny(seed)
        model = fit(X, y, totals, max_depth=2, margin_rule=margin)
        assert model.objective_ == pytest.approx(recomputed(model, X, y, totals), abs=1e-7), seed


@pytest.mark.usefixtures("shortest_searches")
@pytest.mark.parametrize("size", [None, "auto"])
def test_of_a_committee_and_of_a_fit_without_time(size):
    X, y, totals = tiny(8)
    for parameters in ({"n_estimators": 5}, {"time_limit": 0.01}, {"prefer": "sparse", "penalty": 0.3}):
        model = fit(X, y, totals, max_depth=2, max_split_features=size, **parameters)
        assert model.objective_ == pytest.approx(recomputed(model, X, y, totals), abs=1e-7)
