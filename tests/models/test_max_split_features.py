"""Splits of TAO and LapTAO on at most k features: every kind of table, starts, files, and what is refused."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from tests.examples import looped

from treewright import LapTAOClassifier, LapTAORegressor, TAOClassifier, TAORegressor, Tree, load_model
from treewright.exceptions import InvalidInputError

KINDS = [TAOClassifier, TAORegressor, LapTAOClassifier, LapTAORegressor]
N, RNG = 60, np.random.default_rng(0)
NUMBERS = RNG.random((N, 5)) * (RNG.random((N, 5)) < 0.8)
SCORE = NUMBERS @ np.array([1.0, -1.0, 0.8, 0.0, 0.5])
CLASSES = (np.median(SCORE) < SCORE).astype(int) + (NUMBERS[:, 3] > 0.8)
FRAME = pd.DataFrame(NUMBERS, columns=list("abcde")).mask(RNG.random((N, 5)) < 0.1)
FRAME["colour"] = RNG.choice(["red", "blue", "green"], N)
TABLES = {"dense": NUMBERS, "sparse": sparse.csr_matrix(NUMBERS), "mixed": FRAME}


def made(kind, **settings):
    extra = {"max_iter": 1, "init_passes": 2, "n_neighbors": 5} if kind in KINDS[2:] else {}
    return kind(2, **{"alpha": 0.2, "random_state": 0, **extra, **settings})


def fitted(kind, form, **settings):
    mixed = {"categorical_features": ["colour"]} if form == "mixed" else {}
    y = CLASSES if "Classifier" in kind.__name__ else SCORE
    return made(kind, **mixed, **settings).fit(TABLES[form], y)


def terms(tree):
    return int(np.count_nonzero(tree.weights, axis=1).max())


@pytest.mark.parametrize(("form", "most"), [("dense", 1), ("dense", 3), ("sparse", 2), ("mixed", 2)])
@pytest.mark.parametrize("kind", KINDS)
def test_no_split_has_more_features(kind, form, most, tmp_path):
    model = fitted(kind, form, max_split_features=most)
    assert 1 <= terms(model.tree_) <= most
    again = fitted(kind, form, max_split_features=most, warm_start=model, stretch=0)
    assert terms(again.tree_) <= most
    model.save(tmp_path / "model.json")
    read = load_model(tmp_path / "model.json")
    assert read.max_split_features == most and read.tree_ == model.tree_


@pytest.mark.parametrize("init", ["balanced", "cart", "random"])
@pytest.mark.parametrize("form", TABLES)
def test_whatever_the_start_no_split_has_more_features(form, init):
    model = fitted(TAOClassifier, form, max_split_features=2, init=init, stretch=0)
    assert terms(model.tree_) <= 2


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_trees_with_linear_leaves_keep_to_the_features(form):
    assert terms(fitted(TAORegressor, form, max_split_features=2, leaves="linear").tree_) <= 2


@pytest.mark.parametrize("kind", [LapTAOClassifier, LapTAORegressor])
def test_trees_of_a_forest_keep_to_the_features(kind):
    model = fitted(kind, "mixed", max_split_features=2, n_estimators=3, max_features=0.9)
    assert len(model.trees_) == 3 and all(terms(tree) <= 2 for tree in model.trees_)


@pytest.mark.parametrize(("kind", "form"), [*product(KINDS[:2], TABLES), (LapTAOClassifier, "dense")])
def test_as_many_as_there_are_is_no_bound(kind, form):
    free, bound = (fitted(kind, form, max_split_features=most) for most in (None, 5))
    assert free.tree_ == bound.tree_ and free.objective_ == bound.objective_


def test_no_time_leaves_no_larger_split():
    for form in TABLES:
        model = made(TAOClassifier, max_split_features=2, time_limit=1e-9)
        model.set_params(**{"categorical_features": ["colour"]} if form == "mixed" else {})
        with pytest.warns(UserWarning):
            model.fit(TABLES[form], CLASSES)
        assert terms(model.tree_) <= 2


@pytest.mark.parametrize("kind", KINDS)
def test_starts_with_larger_splits_are_refused(kind):
    y = CLASSES if "Classifier" in kind.__name__ else SCORE
    values = np.eye(3)[:2] if "Classifier" in kind.__name__ else [[0.0], [1.0]]
    tree = Tree.stump([1.0, 1.0, 1.0, 0.0, 0.0], 1.0, values)
    for most in (1, 2):
        with pytest.raises(InvalidInputError, match=f"a split on 3 features; max_split_features={most} allows no more"):
            made(kind, max_split_features=most, warm_start=tree).fit(NUMBERS, y)
    assert made(kind, max_split_features=3, warm_start=tree, stretch=0).fit(NUMBERS, y).tree_.depth <= 1


@looped("value", [0, -1, 1.5, "axis", "oblique"])
@looped("kind", KINDS)
def test_other_values_are_refused(kind, value):
    with pytest.raises(ValueError, match="max_split_features"):
        made(kind, max_split_features=value).fit(NUMBERS, SCORE)


def test_more_features_fit_better_on_the_whole():
    rng = np.random.default_rng(1)
    errors = {1: 0, 2: 0, 3: 0}
    for _ in range(4):
        X = rng.random((100, 6))
        y = (X @ rng.standard_normal(6) > 0).astype(int)
        if len(np.unique(y)) < 2:
            continue
        for most in errors:
            model = TAOClassifier(2, alpha=0.1, stretch=0, max_split_features=most, random_state=0).fit(X, y)
            errors[most] += np.sum(model.predict(X) != y)
    assert errors[3] < errors[2] < errors[1]
