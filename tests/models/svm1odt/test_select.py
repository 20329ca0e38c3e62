"""The public function: input of all kinds, and what it refuses."""

import signal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from tests.examples import looped

from treewright import TAOClassifier, Tree, select
from treewright.exceptions import InvalidInputError
from treewright.models.svm1odt.selection.choice import rows_worth_training

STUMP = Tree.stump([1.0, 0.0], 0.0, [[1.0, 0.0], [0.0, 1.0]])


def rows(n=120, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 2))
    return X, np.where(X[:, 0] + 0.3 * X[:, 1] > 0, "yes", "no")


def test_frames_and_labels_of_any_kind_give_the_same_rows():
    X, y = rows()
    plain = select(X, y, STUMP).rows
    np.testing.assert_array_equal(rows_worth_training(X, (y == "yes").astype(int), STUMP).rows, plain)
    np.testing.assert_array_equal(select(pd.DataFrame(X), pd.Series(y), STUMP).rows, plain)
    np.testing.assert_array_equal(select(pl.DataFrame(X), pl.Series(y), STUMP).rows, plain)
    np.testing.assert_array_equal(select(X.tolist(), (y == "yes").tolist(), STUMP).rows, plain)


def test_a_fitted_estimator_stands_for_its_tree():
    X, y = rows()
    model = TAOClassifier(max_depth=2, random_state=0).fit(pd.DataFrame(X, columns=["a", "b"]), y)
    chosen = select(pd.DataFrame(X, columns=["a", "b"]), y, model)
    np.testing.assert_array_equal(chosen.rows, select(X, y, model.tree_).rows)
    with pytest.raises(InvalidInputError, match="use a Tree"):
        select(X, y, "tree")


def test_categories_and_gaps():
    X, y = rows()
    X[:, 1] = np.arange(120) % 3
    X[::7, 0] = np.nan
    chosen = select(X, y, STUMP, beta_1=0.99, categorical_features=[1])
    mask = select(X, y, STUMP, beta_1=0.99, categorical_features=np.array([False, True]))
    np.testing.assert_array_equal(chosen.rows, mask.rows)
    # One number is left: of each leaf, class and category the smallest and the largest, and one without a number.
    leaf = np.where(X[:, 0] <= 0, 1, 2)
    for key in {*zip(leaf, y, X[:, 1], strict=True)}:
        group = np.flatnonzero([k == key for k in zip(leaf, y, X[:, 1], strict=True)])
        numbers = X[group, 0]
        gone = np.isnan(numbers)
        wanted = {np.nanmin(numbers), np.nanmax(numbers)} if not gone.all() else set()
        got = X[np.intersect1d(group, chosen.rows), 0]
        assert set(got[~np.isnan(got)]) == wanted and np.isnan(got).sum() == int(gone.any())


def test_categories_of_an_estimator_are_none_of_the_numbers_although_no_split_has_them():
    X, _ = rows()
    frame = pd.DataFrame({"x": X[:, 0], "colour": np.array(["blue", "green", "red"])[np.arange(120) % 3]})
    y = X[:, 0] > 0
    model = TAOClassifier(max_depth=1, categorical_features=["colour"], random_state=0).fit(frame, y)
    assert not np.any(model.tree_.category >= 0)
    chosen = select(frame, y, model, beta_1=0.99)
    # One number is left: of each class and colour the smallest and the largest.
    groups = [frame.x[(y == k) & (frame.colour == c)] for k in (False, True) for c in ("blue", "green", "red")]
    assert set(chosen.rows) == {i for group in groups for i in (group.idxmin(), group.idxmax())}


def test_weights_are_kept_and_rows_without_weight_left_out():
    X, y = rows()
    weight = np.linspace(0.0, 3.0, 120)
    weight[50:60] = 0.0
    chosen = select(X, y, STUMP, sample_weight=weight)
    np.testing.assert_array_equal(chosen.weight, weight[chosen.rows])
    assert np.all(chosen.weight > 0)
    assert select(X, y, STUMP).weight is None


def test_interrupts_end_it_with_what_is_there():
    X, y = rows()
    chosen = select(X, y, STUMP, told=_once(signal.SIGINT))
    assert chosen.interrupted and chosen.fallback
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def _once(number):
    seen = []

    def told(cluster):
        if not seen:
            seen.append(cluster)
            signal.raise_signal(number)

    return told


@looped(
    "change, words",
    [
        ({"method": "none"}, "method"),
        ({"time_limit": 0.0}, "time_limit"),
        ({"beta_1": 2.0}, "beta_1"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"X": sparse.csr_array(np.eye(3))}, "sparse"),
        ({"X": np.eye(3)}, "3 features"),
        ({"X": np.full((120, 2), np.inf)}, "infinity"),
        ({"y": np.zeros(5)}, "inconsistent"),
        ({"y": [None] * 120}, "in 120 of 120 rows"),
        ({"sample_weight": np.full(120, -1.0)}, "[Nn]egative"),
        ({"categorical_features": [2]}, "features 0 to 1"),
        ({"categorical_features": ["a"]}, "mask"),
    ],
)
def test_bad_input_is_refused(change, words):
    X, y = rows()
    given = {"X": X, "y": y, "tree": STUMP, **change}
    with pytest.raises((ValueError, TypeError), match=words):
        select(**given)


def test_categories_by_name_as_the_estimators_take_them():
    X, y = rows()
    X[:, 1] = np.arange(120) % 3
    wanted = select(X, y, STUMP, beta_1=0.99, categorical_features=[1]).rows
    assert not np.array_equal(wanted, select(X, y, STUMP, beta_1=0.99).rows)
    for frame in (pd.DataFrame(X, columns=["size", "colour"]), pl.DataFrame(X, schema=["size", "colour"])):
        np.testing.assert_array_equal(
            select(frame, y, STUMP, beta_1=0.99, categorical_features=["colour"]).rows, wanted
        )
        with pytest.raises(InvalidInputError, match="names .shape."):
            select(frame, y, STUMP, categorical_features=["shape"])
    text = pd.DataFrame({"size": X[:, 0], "colour": np.array(["b", "g", "r"])[X[:, 1].astype(int)]})
    model = TAOClassifier(max_depth=1, categorical_features="from_dtype", random_state=0).fit(text, y)
    by_type = select(text, y, model, beta_1=0.99, categorical_features="from_dtype")
    np.testing.assert_array_equal(by_type.rows, select(text, y, model, beta_1=0.99).rows)


def test_rows_of_weight_0_are_as_if_they_were_not_there():
    X, y = rows()
    far = np.vstack([X, [[1e6, -1e6]]])
    chosen = select(far, [*y, "no"], STUMP, sample_weight=np.append(np.ones(120), 0.0), epsilon=0.05)
    alone = select(X, y, STUMP, sample_weight=np.ones(120), epsilon=0.05)
    np.testing.assert_array_equal(chosen.rows, alone.rows)
    assert chosen.n_rows == 120 and " of 120 rows" in chosen.reason


@pytest.mark.parametrize("seed", [8, 14, 18, 24, 33])
def test_balanced_selection_with_codes_far_off(seed):
    draws, far = np.random.default_rng(seed), 999999999.0
    X = np.column_stack([draws.integers(18, 80, 40), draws.integers(0, 6, 40)]).astype(float)
    X[draws.random(40) < 0.1, 0], X[draws.random(40) < 0.1, 1] = far, far
    found = select(X, np.zeros(40, dtype=int), Tree.leaf([1.0, 1.0], 2), method="balanced")
    assert 0 < len(found.rows) <= 40
