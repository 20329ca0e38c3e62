"""OCT as an estimator: optima of another exact solver, weights, categories, gaps, limits, files."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from tests.contracts.brute_force_oct import best_oct
from tests.contracts.oct import oct_model

from treewright import OCTClassifier, load_model
from treewright.core.budget import Budget
from treewright.exceptions import InvalidInputError
from treewright.models.oct.objective import OCT
from treewright.solvers import get_solver

IRIS = load_iris(return_X_y=True)


@pytest.mark.parametrize(
    ("load", "depth", "errors"),
    [
        (load_iris, 2, 6),
        (load_iris, 3, 1),
        (load_wine, 2, 6),
        (load_wine, 3, 0),
        (load_breast_cancer, 2, 22),
    ],
)
def test_errors_are_those_of_pycontree(load, depth, errors):
    """Optima that pycontree 1.0.8 finds."""
    X, y = load(return_X_y=True)
    model = OCTClassifier(depth).fit(X, y)
    assert model.status_ == "optimal" and np.sum(model.predict(X) != y) == errors
    majority = np.bincount(y).max()
    assert model.objective_ == pytest.approx(errors / (len(y) - majority)) == pytest.approx(model.bound_)


@pytest.mark.parametrize("levels", [(), (8,)])
@pytest.mark.parametrize("seed", [0, 1])
def test_solvers_find_what_the_search_finds(levels, seed):
    model = oct_model(9, 1, 2, levels=levels, gaps=0.1 * len(levels), complexity=0.03, min_leaf=2.0)(seed)
    optimum = best_oct(model)
    for solver in ("highs", "scip"):
        result = get_solver(solver).solve(model.build(), time_limit=60.0, gap=1e-6)
        assert result.objective == pytest.approx(optimum, abs=1e-6)


def test_a_weight_of_two_is_a_row_twice():
    X, y = IRIS
    weight = np.random.default_rng(0).integers(0, 4, 150)
    kwargs = {"complexity": 0.02}
    once, often = OCTClassifier(**kwargs), OCTClassifier(**kwargs)
    once.fit(X, y, sample_weight=weight)
    often.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert once.objective_ == pytest.approx(often.objective_)
    assert np.array_equal(once.predict(X), often.predict(X))


def test_leaves_have_so_many_rows_and_a_price_saves_splits():
    X, y = IRIS
    for least, rows in ((20, 20), (0.2, 30)):
        model = OCTClassifier(3, min_samples_leaf=least).fit(X, y)
        assert np.bincount(model.apply(X))[model.tree_.leaves].min() >= rows
        assert model.status_ == "optimal"
    prices = [len(OCTClassifier(3, complexity=price).fit(X, y).tree_.branches) for price in (0.0, 0.02, 0.3, 0.6)]
    assert prices == sorted(prices, reverse=True) and prices[-2:] == [2, 0]


def survey() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(3)
    n = 60
    frame = pd.DataFrame(
        {
            "trade": rng.choice(list("abcde"), n),
            "region": rng.choice([f"r{k:02d}" for k in range(12)], n),
            "age": np.where(rng.random(n) < 0.2, np.nan, rng.integers(18, 70, n)),
        }
    )
    y = np.where(frame["trade"].isin(["a", "c"]) & ~(frame["age"] < 40), "yes", "no")
    return frame.astype({"trade": "category", "region": "category"}), y


def test_categories_and_gaps_are_split_as_they_are(tmp_path):
    frame, y = survey()
    model = OCTClassifier(2, categorical_features="from_dtype").fit(frame, y)
    assert model.score(frame, y) == 1.0 and model.status_ == "optimal"
    text = model.export_text()
    assert "trade" in text and "age" in text and "region" not in text
    model.save(tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    new = frame.iloc[:4].assign(trade=pd.Categorical(["z", "a", None, "c"]), age=[np.nan, 20, 30, 60])
    assert again.predict(new).tolist() == model.predict(new).tolist()


def test_missing_values_go_to_the_better_side():
    X = np.array([[1.0], [2.0], [np.nan], [np.nan], [5.0], [6.0]])
    for gone in (0, 1):
        y = np.array([0, 0, gone, gone, 1, 1])
        model = OCTClassifier(1).fit(X, y)
        assert model.score(X, y) == 1.0
    alone = OCTClassifier(1).fit(X, np.array([0, 0, 1, 1, 0, 0]))
    assert alone.predict([[-1e9], [np.nan], [1e9]]).tolist() == [0, 1, 0]


def test_features_of_any_size_are_parted():
    X = np.array([[1e15], [1e15 + 0.125], [-1e308], [1e308]])
    model = OCTClassifier(2).fit(X, [0, 1, 0, 1])
    assert model.status_ == "optimal" and model.objective_ == 0.0
    assert model.predict(X).tolist() == [0, 1, 0, 1]


def test_a_time_limit_is_kept_with_a_bound():
    rng = np.random.default_rng(0)
    X, y = rng.random((500, 8)), rng.integers(0, 2, 500)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model = OCTClassifier(4, time_limit=1.0).fit(X, y)
    assert model.status_ == "time_limit" and model.solve_time_ < 10.0
    assert 0.0 <= model.bound_ < model.objective_ < 1.0
    assert model.score(X, y) > 0.6


def test_an_interrupted_fit_returns_its_best_tree(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.random((200, 6)), rng.integers(0, 2, 200)
    asked = Budget.over.fget

    def over(self):
        if self.elapsed > 0.3:
            self.stop()
        return asked(self)

    monkeypatch.setattr(Budget, "over", property(over))
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = OCTClassifier(4, time_limit=None).fit(X, y)
    assert model.status_ == "interrupted" and model.bound_ <= model.objective_ < 1.0


def test_a_tree_to_start_from_is_made_one_of_single_features():
    X, y = load_wine(return_X_y=True)
    start = OCTClassifier(3).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = OCTClassifier(3, warm_start=start, time_limit=1e-4).fit(X, y)
    assert model.objective_ == start.objective_ == 0.0
    assert np.count_nonzero(model.tree_.weights, axis=1).max() == 1


def test_rows_that_nothing_parts_leave_a_leaf():
    X = np.ones((6, 2))
    model = OCTClassifier(2, method="mip").fit(X, [0, 0, 0, 0, 1, 1])
    assert model.tree_.n_nodes == 1 and model.objective_ == 1.0 and model.status_ == "optimal"


def test_codes_beyond_the_levels_and_impossible_leaves_are_refused():
    with pytest.raises(InvalidInputError, match="codes"):
        OCT(np.array([[3.0]]), np.array([0]), np.ones(1), 2, n_levels=np.array([2]))
    with pytest.raises(ValueError, match="min_samples_leaf=7 is more than the 4 rows"):
        OCTClassifier(min_samples_leaf=7).fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])
