"""SVM1-ODT as an estimator: prices, weights, selection, mixed tables, files."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning

from treewright import SVM1ODTClassifier, TAOClassifier, load_model
from treewright.core.budget import Budget
from treewright.data import Sample
from treewright.data.folds import folds_of
from treewright.exceptions import InvalidInputError
from treewright.models.svm1odt import fit as training
from treewright.models.svm1odt.fit import (
    SVM1ODTSettings,
    chosen_settings,
    margin_choices,
    svm1odt_model,
    train_rounds,
)
from treewright.models.svm1odt.objective import SVM1ODT
from treewright.models.svm1odt.prices import beats_leaf, leaf_errors, prices_in_the_race, strongest_best_price
from treewright.models.svm1odt.search import search_svm1odt
from treewright.optimize.conduct import Conduct
from treewright.optimize.settings import SVM1ODTSearch
from treewright.solvers import get_solver
from treewright.tree import Tree, predict_labels

PRICES = {"epsilon": 0.1, "alpha_1": 10.0, "alpha_2": 0.5}


def fitted(X, y, **parameters):
    weight = parameters.pop("sample_weight", None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return SVM1ODTClassifier(**({"time_limit": 0.6, "random_state": 0} | parameters)).fit(X, y, weight)


def mixed_table(n=80, seed=0):
    """A class by colour where size is known, by the gap itself elsewhere."""
    rng = np.random.default_rng(seed)
    colour = rng.choice(["red", "green", "blue", "grey"], n)
    size = rng.random(n)
    size[rng.random(n) < 0.2] = np.nan
    y = np.where(np.isin(colour, ["red", "blue"]), "a", np.where(np.isnan(size) | (size > 0.6), "b", "c"))
    return pd.DataFrame({"colour": pd.Categorical(colour), "size": size, "noise": rng.random(n)}), y


def test_prices_that_are_not_given_follow_the_margin_and_the_rows():
    X, y = load_iris(return_X_y=True)
    model = fitted(X[::2], y[::2], epsilon=0.1)
    assert model.alpha_1_ == 10.0 and model.epsilon_ == 0.1
    assert min(abs(model.alpha_2_ * 0.1 - price) for price in (2.0, 1.0, 0.5, 0.25, 0.12, 0.06, 0.02)) < 1e-9
    given = fitted(X[::2], y[::2], **PRICES)
    assert (given.epsilon_, given.alpha_1_, given.alpha_2_) == tuple(PRICES.values())


def test_a_tree_that_is_a_single_leaf_says_why():
    rng = np.random.default_rng(3)
    X, y = rng.random((60, 3)), np.where(np.arange(60) < 12, "rare", "common")
    with pytest.warns(UserWarning, match=r"the tree is a single leaf: .* A smaller alpha_2 makes splits"):
        assert fitted(X, y, time_limit=1.0).tree_.n_nodes == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(X, y, **PRICES | {"alpha_2": 1e4})  # the user's own price


@pytest.mark.parametrize(("gain", "choice"), [(0.2, 0), (3.0, 5)])
def test_the_strongest_price_is_chosen_where_none_is_clearly_better_than_a_leaf(monkeypatch, gain, choice):
    X, y = np.random.default_rng(0).random((80, 2)), np.repeat([0, 1], [60, 20])
    points = Sample.of(X, y, np.ones(80))
    path = SVM1ODTSettings(epsilon=0.05).path()

    def errors(models, model, fold, *args, held_out=None, **more):
        found = np.tile(leaf_errors(model.y, model.weight, fold, held_out) + [1.0, -1.0, 1.0, -1.0], (len(models), 1))
        found[-2] -= gain
        return found

    monkeypatch.setattr(training, "fold_errors", errors)
    monkeypatch.setattr(training, "prices_in_the_race", lambda found, n_folds: np.ones(len(found), dtype=bool))
    chosen = chosen_settings(points, 2, SVM1ODTSettings(), Conduct(solver=get_solver("highs")), Budget(5.0))
    assert chosen == path[choice]


def test_a_choice_that_time_cut_short_is_none(monkeypatch):
    """What was measured of a path are its strong prices alone, and the best of these says nothing of the others."""
    X, y = np.random.default_rng(0).random((80, 2)), np.repeat([0, 1], [60, 20])

    def errors(models, *args, **more):
        found = np.tile(np.arange(7.0, 7.0 - len(models), -1)[:, None], (1, 4))
        found[-1, 1:] = np.inf
        return found

    monkeypatch.setattr(training, "fold_errors", errors)
    conduct = Conduct(solver=get_solver("highs"))
    chosen = chosen_settings(Sample.of(X, y, np.ones(80)), 2, SVM1ODTSettings(), conduct, Budget(5.0))
    assert chosen == SVM1ODTSettings(epsilon=0.05).path()[3]


def test_finer_margins_are_tried_from_500_points_on():
    few, many = (margin_choices(Sample.of(np.linspace(0, 1, n)[:, None], None, np.ones(n))) for n in (499, 500))
    assert few == [0.05] and many == [0.05, 0.01, 0.002]


def test_errors_of_a_leaf_are_those_of_a_classifier_that_says_one_class():
    rng = np.random.default_rng(0)
    y, weight, fold = rng.integers(0, 3, 50), rng.random(50), rng.integers(0, 4, 50)
    found = leaf_errors(y, weight, fold)
    for k in range(4):
        inside, outside = fold != k, fold == k
        dummy = DummyClassifier(strategy="most_frequent").fit(np.zeros((inside.sum(), 1)), y[inside], weight[inside])
        wrong = dummy.predict(np.zeros((outside.sum(), 1))) != y[outside]
        assert found[k] == pytest.approx(weight[outside][wrong].sum())
    assert np.array_equal(leaf_errors(y, weight, fold, 2), found[:2])


def test_a_gain_over_a_leaf_counts_from_half_a_standard_error_on():
    leaf, spread = np.full(4, 10.0), np.array([-1.0, 1.0, -1.0, 1.0])
    error = np.sqrt(1 / 4 + 1 / 3) * spread.std(ddof=1)
    assert beats_leaf(leaf - 0.51 * error - spread, leaf, 4)
    assert not beats_leaf(leaf - 0.49 * error - spread, leaf, 4)
    assert not beats_leaf(leaf, leaf, 4) and not beats_leaf(leaf[:1] - 5.0, leaf[:1], 4)


def test_a_dear_norm_leaves_no_split_and_a_cheap_one_parts_what_can_be_parted():
    X, y = load_wine(return_X_y=True)
    assert fitted(X, y, epsilon=0.1, alpha_1=10.0, alpha_2=1e4).tree_.n_nodes == 1
    assert fitted(X, y, epsilon=0.01, alpha_1=100.0, alpha_2=0.01, time_limit=1.5).score(X, y) > 0.9


def test_splits_stay_where_they_are_among_many_rows():
    """Fifty thousand numbers have no gap of 2e-4 near the middle: a fixed distance moved splits to the ends."""
    x = np.random.default_rng(0).random((50_000, 1))
    points = Sample.of(x, (x[:, 0] > 0.5).astype(np.int64), np.ones(len(x)))
    model = svm1odt_model(points, 2, SVM1ODTSettings(1, epsilon=0.01, alpha_1=100.0, alpha_2=1.0))
    half = Tree.stump([1.0], 0.5, [[1.0, 0.0], [0.0, 1.0]])
    wrong = predict_labels(model.repair(half), x) != points.y
    assert np.count_nonzero(wrong) <= 5  # the nearest gap may be a row or two away
    near = np.abs(x[:, 0] - 0.5).min()
    assert model.margin < 1e-5 and near < 2e-4 / 2


def with_one_far_off(value):
    """Rows that one column parts, in which one value is far off."""
    X = np.random.default_rng(0).random((120, 3))
    y = (X[:, 1] > 0.5).astype(int)
    X[7, 1], y[7] = value, 1
    return X, y


@pytest.mark.parametrize("value", [10.0, 100.0])
def test_a_value_far_off_does_not_hide_what_its_column_says(value):
    X, y = with_one_far_off(value)
    margin = min(margin_choices(Sample.of(X / [1.0, value, 1.0], y, np.ones(len(y)))))
    assert 0.05 / value < margin < 0.5 / value
    assert fitted(X, y, max_depth=1, epsilon=margin, alpha_2=1.0).score(X, y) > 0.97


def test_columns_without_room_for_splits_are_named():
    X, y = with_one_far_off(1e5)
    with pytest.warns(UserWarning, match="nearly all of the range of column 'b'"):
        fitted(pd.DataFrame(X, columns=["a", "b", "c"]), y, **PRICES)


def test_prices_below_an_error_are_refused():
    with pytest.raises(InvalidInputError, match="below 1"):
        SVM1ODTClassifier(epsilon=0.1, alpha_1=5.0, alpha_2=1.0).fit([[0.0], [1.0]], [0, 1])


def test_folds_have_all_classes_and_ties_go_to_the_stronger_price():
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([0, 1, 2], [20, 9, 4]))
    fold = folds_of(y, 4, rng)
    assert np.abs(np.bincount(fold, minlength=4) - len(y) / 4).max() < 1
    assert all(np.bincount(fold[y == k], minlength=4).min() >= (y == k).sum() // 4 for k in range(3))
    assert strongest_best_price(np.array([[2.0, 1.0], [0.0, 2.0], [1.0, 1.0]])) == 1


def test_prices_that_are_clearly_worse_leave_the_race():
    # Differences to the best: 2, 0, 2, 0 in two partitions of two folds; mean 1, variance 4/3, of the mean 5/4 of that.
    errors = np.array([[9.0, 9.0, 9.0, 9.0], [3.0, 1.0, 3.0, 1.0], [1.0, 1.0, 1.0, 1.0], [1.0, np.inf, 1.0, np.inf]])
    just = 1.0 / np.sqrt(4 / 3 * 5 / 4)
    assert strongest_best_price(errors) == 2
    assert prices_in_the_race(errors, 2, just + 1e-6).tolist() == [False, True, True, False]
    assert (
        prices_in_the_race(errors, 2, just - 1e-6).tolist()
        == prices_in_the_race(errors, 2, 0.0).tolist()
        == [False, False, True, False]
    )
    assert prices_in_the_race(errors[:3, :1], 2, 0.1).all()  # a single fold says nothing of chance


def test_points_are_parted_anew_while_there_is_time(monkeypatch):
    """Partitions are repeated up to a number, and no other is begun that would not end in time."""
    seen = []

    def slow(models, model, fold, budget, *rest, **more):
        seen.append(fold)
        budget.started -= 100.0  # as if so many seconds had passed
        return np.array([[1.0] * 4] * len(models))

    monkeypatch.setattr("treewright.models.svm1odt.fit.fold_errors", slow)
    X, y = load_iris(return_X_y=True)
    points, settings = Sample.of(X, y, np.ones(150)), SVM1ODTSettings(epsilon=0.1)
    conduct = Conduct(solver=get_solver("highs"))
    for seconds, partitions in ((100.0, 1), (550.0, 3), (1e4, 4), (None, 4)):
        seen.clear()
        found = chosen_settings(points, 3, settings, conduct, Budget(seconds))
        assert len(seen) == partitions and found.alpha_2 == 20.0  # all are as good, so it is the strongest
    assert not np.array_equal(seen[0], seen[1])


def test_weights_count_rows_repeated_rows_too():
    rng = np.random.default_rng(1)
    X, y = rng.random((12, 2)), rng.integers(0, 2, 12)
    weight = rng.integers(0, 3, 12)
    weight[:2] = 1
    settings = {"max_depth": 1, "time_limit": 60.0, **PRICES}
    whole = fitted(X, y, sample_weight=weight, **settings)
    listed = fitted(np.repeat(X, weight, axis=0), np.repeat(y, weight), **settings)
    assert whole.status_ == listed.status_ == "optimal"
    assert whole.objective_ == pytest.approx(listed.objective_)
    assert np.array_equal(whole.predict(X), listed.predict(X))
    dear = fitted(X, y, sample_weight=7.0 * weight, **settings)
    assert dear.objective_ == pytest.approx(7.0 * whole.objective_)


@pytest.mark.parametrize("selection", ["hull", "balanced"])
def test_rows_are_selected_and_the_tree_is_as_good_on_all(selection):
    X, y = load_iris(return_X_y=True)
    model = fitted(X, y, selection=selection, **PRICES)
    assert 0 < model.selected_.sum() < len(y)
    assert model.bound_ <= model.objective_
    whole = SVM1ODT(
        (X - X.min(axis=0)) / np.ptp(X, axis=0), y, np.ones(150), 3, 2, PRICES["epsilon"], *list(PRICES.values())[1:]
    )
    scaled = model.tree_.weights * np.ptp(X, axis=0), model.tree_.threshold - model.tree_.weights @ X.min(axis=0)
    tree = type(model.tree_)(model.tree_.left, model.tree_.right, *scaled, model.tree_.values, model.tree_.labels)
    assert model.objective_ == pytest.approx(whole.objective(tree), rel=1e-6)
    assert fitted(X, y, selection=None, **PRICES).selected_.all()


@pytest.mark.usefixtures("no_branch_and_bound")
@pytest.mark.parametrize("n", [1900, 2100])
def test_large_tables_start_from_alternating_optimization(n, monkeypatch):
    rng = np.random.default_rng(0)
    X = np.vstack([np.zeros(3), np.ones(3), rng.random((n - 2, 3))])
    y = ((X[:, 0] + X[:, 1] > 1) ^ (X[:, 2] > 0.5)).astype(int)
    given = []

    def search(best, model, starts, budget, *conduct):
        given.extend(starts)
        search_svm1odt(best, model, starts, budget, 0, 1, SVM1ODTSearch(patience=0))

    monkeypatch.setattr(training, "search_svm1odt", search)
    # alternating optimization has a tenth of the time, and must get to its end on a busy machine too
    model = fitted(X, y, **PRICES, time_limit=8.0 if n > 2000 else 0.3)
    assert 1 <= len(given) <= 2 if n > 2000 else not given  # the second one if there is time
    for tree in given:  # features have a range of one: points are rows
        taught = [TAOClassifier(max_depth=2, stretch=by, random_state=0).fit(X, y).score(X, y) for by in (0.0, 0.25)]
        assert min(taught) - 0.02 <= np.mean(predict_labels(tree, X) == y) <= max(taught) + 0.02
        whole = SVM1ODT(X, y, np.ones(n), 2, 2, *PRICES.values())
        assert model.objective_ <= whole.objective(whole.repair(tree)) * (1 + 1e-9)


def test_rounds_of_selection_never_lose_accuracy_with_hard_margins():
    """Proposition 2: with ``alpha_1 = alpha_2 = 0`` and optimal solves."""
    conduct = Conduct(solver=get_solver("highs"), gap=0.0)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 9, (24, 2)) / 8.0
        y = ((X[:, 0] > 0.5) ^ (rng.random(24) < 0.2)).astype(int)
        X, first = np.unique(X, axis=0, return_index=True)
        y = y[first]
        model = SVM1ODT(X, y, np.ones(len(y)), 2, 1, 0.02, 0.0, 0.0)
        leaf = [tree for tree in train_rounds(model, [], conduct, Budget(60.0), 3)]
        right = [int(np.sum(predict_labels(tree, X) == y)) for tree in leaf]
        assert len(right) > 1 or right[0] == len(y)
        assert right == sorted(right)


def test_rounds_of_selection_never_lose_accuracy_where_a_class_has_two_leaves(monkeypatch):
    """What Proposition 2 overlooks: a tree that is right on all rows of a round loses four between them."""
    X = np.array([0.0, 1.4, 1.5, 1.55, 1.6, 1.65, 3.0])[:, None] / 3.0
    y = np.array([0, 1, 0, 0, 0, 0, 0])
    model = SVM1ODT(X, y, np.ones(7), 2, 2, 0.01, 0.0, 0.0)
    one_leaf = Tree.leaf([6.0, 1.0], 1)
    monkeypatch.setattr("treewright.models.svm1odt.fit.search_svm1odt", lambda best, *a: best.offer(one_leaf))
    trees = list(train_rounds(model, [one_leaf], Conduct(solver=get_solver("highs"), gap=0.0), Budget(30.0), 3))
    right = [int(np.sum(predict_labels(tree, X) == y)) for tree in trees]
    assert right[0] == 6 and right == sorted(right) and right[-1] == 7


def test_a_frame_with_categories_and_gaps_goes_in_and_its_names_come_out(tmp_path):
    X, y = mixed_table()
    model = fitted(X, y, categorical_features="from_dtype", **PRICES)
    assert model.score(X, y) > 0.95
    text = model.export_text()
    assert "colour in {" in text and ("red" in text or "green" in text)
    assert model.categories_[0] == ("blue", "green", "grey", "red") and model.has_missing_.tolist() == [
        False,
        True,
        False,
    ]
    model.save(tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    assert np.array_equal(again.predict(X), model.predict(X)) and again.alpha_2_ == model.alpha_2_
    other = X.assign(colour="violet")
    assert set(again.predict(other)) <= {"a", "b", "c"}


def test_numbers_with_gaps_need_no_categories():
    rng = np.random.default_rng(0)
    X = rng.random((40, 2))
    X[rng.random(40) < 0.3, 0] = np.nan
    y = np.where(np.isnan(X[:, 0]), X[:, 1] > 0.5, X[:, 0] > 0.5)
    model = fitted(X, y, **PRICES, time_limit=1.5)
    assert model.score(X, y) > 0.9 and model.has_missing_.tolist() == [True, False]


def test_native_categories_cost_less_than_columns_of_zeros_and_ones():
    X, y = mixed_table(120, seed=1)
    native = fitted(X, y, categorical_features=["colour"], **PRICES)
    wide = pd.get_dummies(X, columns=["colour"]).fillna({"size": X["size"].mean()}).astype(float)
    assert native.objective_ < fitted(wide, y, **PRICES).objective_


def test_a_category_of_many_levels_is_no_problem():
    rng = np.random.default_rng(0)
    code = rng.integers(0, 200, 600)
    good = rng.random(200) < 0.5
    X = np.column_stack([code, rng.random(600)])
    model = fitted(X, good[code], categorical_features=[0], max_depth=1, **PRICES)
    assert model.score(X, good[code]) == 1.0 and model.tree_.n_leaves == 2


def test_a_warm_start_is_never_made_worse():
    X, y = load_iris(return_X_y=True)
    first = fitted(X, y, **PRICES)
    assert fitted(X, y, warm_start=first, time_limit=0.01, **PRICES).objective_ <= first.objective_ + 1e-9
