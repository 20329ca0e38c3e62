"""S2OCTClassifier as its users meet it; zero objectives are re-verified by a checker that knows only data and tree."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from tests.clock import within

from harness.sampling import biased_sample
from treewright import S2OCTClassifier, load_model
from treewright.exceptions import InfeasibleTotalsError, InvalidInputError
from treewright.tree import predict_labels
from verify_s2oct import verify_zero


def survey(n=200, p=3, seed=0, noise=0.3, labelled=0.15):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * rng.uniform(0.5, 30, p)
    truth = (X @ rng.normal(size=p) + noise * rng.normal(size=n) * X.std() > 0).astype(int)
    known = biased_sample(truth, labelled, weights={1: 0.85, 0: 0.15}, random_state=seed, require_all_classes=True)
    return X, truth, known, np.where(known, truth, -1)


@pytest.fixture(autouse=True)
def shortened(request):
    """Short searches, but where a time limit has to end them."""
    if "within_the_time_limit" not in request.node.name:
        request.getfixturevalue("shortest_searches")


def fit(X, y, totals=None, groups=None, new=False, **parameters):
    """A fit of the paper's model that takes the first optimal tree, unless a test asks for another size or a choice."""
    settings = {"time_limit": 15, "random_state": 0, "prefer": "first", "max_split_features": None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = S2OCTClassifier(**(settings | parameters))
        return model.fit(X, y, totals=totals, groups=groups, allow_new_classes=new)


# ---------------------------------------------------------------------- zero objectives


@pytest.mark.parametrize("margin", ["tolerance", "reached", "paper"])
@pytest.mark.parametrize("seed", [0, 1])
def test_zero_objectives_are_true(margin, seed):
    X, truth, known, y = survey(120, seed=seed)
    total = int(truth[~known].sum())
    model = fit(X, y, totals={1: total}, margin_rule=margin)
    assert (model.status_, model.objective_, model.bound_) == ("optimal", 0.0, 0.0)
    assert verify_zero(model.tree_, X, y, total, margin) == []
    assert np.sum(model.transduction_[~known] == 1) == total
    assert np.array_equal(model.transduction_[known], truth[known])
    assert np.array_equal(model.predict(X), model.transduction_)


def test_the_checker_can_fail():
    X, truth, known, y = survey(120)
    total = int(truth[~known].sum())
    tree = fit(X, y, totals={1: total}).tree_
    assert any("class 1" in text for text in verify_zero(tree, X, y, total + 1, "tolerance"))
    assert any("misclassified" in text for text in verify_zero(tree, X, np.where(known, 1 - truth, -1), total, "paper"))
    steep = tree.unscaled(np.full(X.shape[1], 1e6), np.zeros(X.shape[1]))
    assert any("exceeds" in text for text in verify_zero(steep, X, y, total, "tolerance"))
    flat = tree.unscaled(np.full(X.shape[1], 1e-6), np.zeros(X.shape[1]))
    assert verify_zero(flat, X, y, total, "paper")


def test_every_tree_of_a_committee_is_optimal():
    X, truth, known, y = survey(150)
    total = int(truth[~known].sum())
    model = fit(X, y, totals={1: total}, n_estimators=7)
    assert len(model.trees_) > 1
    for tree in model.trees_:
        assert verify_zero(tree, X, y, total, "tolerance") == []
    assert np.sum(model.transduction_[~known] == 1) == total
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1.0)
    votes = np.mean([predict_labels(tree, X) for tree in model.trees_], axis=0)
    assert np.array_equal((votes > 0.5).astype(int), model.predict(X))  # the votes decide, not the probabilities


@pytest.mark.parametrize("prefer", ["typical", "margin", "sparse", "first"])
def test_each_preference_gives_an_optimal_tree(prefer):
    X, truth, known, y = survey(100)
    total = int(truth[~known].sum())
    model = fit(X, y, totals=total, prefer=prefer)
    assert verify_zero(model.tree_, X, y, total, "tolerance") == []


# ---------------------------------------------------------------------- totals of every kind


def test_totals_per_group_are_met_exactly():
    X, truth, known, y = survey(200, p=4)
    groups = np.where(np.arange(200) % 3 == 0, "north", "south")
    totals = {g: {k: int(np.sum(truth[~known & (groups == g)] == k)) for k in (0, 1)} for g in ("north", "south")}
    model = fit(X, y, totals=totals, groups=groups, time_limit=30)
    assert model.objective_ == 0.0
    for row in model.totals_:
        asked = totals[row["group"]][row["class"]]
        assert row["reached"] == asked == np.sum(model.transduction_[~known & (groups == row["group"])] == row["class"])


def test_intervals_cost_nothing_inside():
    X, truth, known, y = survey(150)
    total = int(truth[~known].sum())
    model = fit(X, y, totals={1: (total - 5, total + 5)})
    assert model.objective_ == 0.0
    assert total - 5 <= np.sum(model.transduction_[~known] == 1) <= total + 5


def test_shares_are_counts():
    X, truth, known, y = survey(150)
    n = int(np.sum(~known))
    model = fit(X, y, totals={1: 0.4})
    assert np.sum(model.transduction_[~known] == 1) == round(0.4 * n)


def test_without_totals_labels_alone_count():
    X, truth, known, y = survey(150)
    model = fit(X, y)
    assert model.objective_ == 0.0
    assert model.totals_ == []
    assert np.array_equal(model.predict(X[known]), truth[known])


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_three_classes_with_all_totals(load):
    X, truth = load(return_X_y=True)
    known = np.random.default_rng(0).random(len(truth)) < 0.15
    names = np.array(["a", "b", "c"])[truth]
    y = np.where(known, names, None)
    totals = {k: int(np.sum(names[~known] == k)) for k in "abc"}
    model = fit(X, y, totals=totals, prefer="typical", time_limit=8)
    assert model.objective_ == 0.0
    assert {k: int(np.sum(model.transduction_[~known] == k)) for k in "abc"} == totals
    assert np.mean(model.transduction_[~known] == names[~known]) > 0.8


def test_a_class_without_a_single_label():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(0, 1, (40, 2)), rng.normal([8, 0], 1, (40, 2)), rng.normal([0, 8], 1, (20, 2))])
    truth = np.repeat([0, 1, 2], [40, 40, 20])
    known = np.zeros(100, dtype=bool)
    known[[0, 1, 2, 3, 40, 41, 42, 43]] = True
    y = np.where(known, truth, -1)
    model = fit(X, y, totals={0: 36, 1: 36, 2: 20}, new=True)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.objective_ == 0.0
    assert np.mean(model.transduction_ == truth) > 0.9


@pytest.mark.parametrize(
    ("totals", "groups", "text"),
    [({1: 10_000}, None, "10000"), ({1: 1.5}, None, r"1\.5"), ({0: 1, 1: 2}, None, "3"), ({1: -1}, None, "-1")],
)
def test_impossible_totals_are_refused(totals, groups, text):
    X, _, _, y = survey(100)
    with pytest.raises(InfeasibleTotalsError, match=text):
        S2OCTClassifier().fit(X, y, totals=totals, groups=groups)


def test_other_bad_input():
    X, _, _, y = survey(100)
    with pytest.raises(InvalidInputError, match="labelled"):
        S2OCTClassifier().fit(X, np.full(100, -1))
    with pytest.raises(ValueError, match="'widest'"):
        S2OCTClassifier(margin_rule="widest").fit(X, y)
    with pytest.raises(InvalidInputError, match="printed|paper"):
        S2OCTClassifier(formulation="paper", margin_rule="tolerance").fit(X, y, totals=5)


def test_rows_that_are_equal_but_in_different_groups():
    """They are one point with one label; with three classes the division of such points had no program."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (120, 2)).astype(float)
    truth = (X.sum(axis=1) > 3).astype(int) + (X[:, 0] > 2)
    known = rng.random(120) < 0.25
    groups = rng.integers(0, 3, 120)
    totals = {g: {k: int(np.sum(truth[~known & (groups == g)] == k)) for k in range(3)} for g in range(3)}
    model = fit(X, np.where(known, truth, -1), totals=totals, groups=groups, time_limit=2)
    # The classes are unions of boxes of the grid, which a tree of depth 2 cannot all part; most rows are right.
    assert sum(row["deviation"] for row in model.totals_) / 2 <= 12
    assert np.array_equal(model.predict(X[~known]), model.transduction_[~known])


@pytest.mark.parametrize("margin", ["tolerance", "reached", "paper"])
def test_labels_of_one_class(margin):
    model = fit(np.arange(8.0)[:, None], [0] + [-1] * 7, totals={1: 0}, new=True, margin_rule=margin, time_limit=5)
    assert (model.status_, model.objective_) == ("optimal", 0.0)
    assert model.transduction_.tolist() == [0] * 8


def test_a_depth_with_a_leaf_for_each_class():
    rng = np.random.default_rng(0)
    truth = np.arange(160) % 8
    X = rng.normal(size=(8, 3))[truth] * 20 + rng.normal(size=(160, 3))
    model = fit(X, np.where(np.arange(160) < 60, truth, -1), time_limit=10)
    assert model.tree_.depth >= 3
    assert np.mean(model.transduction_ == truth) > 0.9


def test_a_committee_of_one_tree_is_that_tree():
    """Labels that cannot all be right and cheap rows: one best tree, which misses the totals."""
    X, truth, known, y = survey(150, noise=2.0, labelled=0.4, seed=1)
    model = fit(X, y, totals={1: int(truth[~known].sum())}, n_estimators=5, penalty=0.05, time_limit=1.5)
    assert len(model.trees_) == 1
    assert model.objective_ > 0 and sum(row["deviation"] for row in model.totals_) > 0
    assert np.array_equal(model.predict(X[~known]), model.transduction_[~known])


# ---------------------------------------------------------------------- time


def test_large_data_within_the_time_limit_is_no_constant_tree():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(15_000, 8))
    truth = np.argmax(X @ rng.normal(size=(8, 3)) + 0.5 * rng.normal(size=(15_000, 3)), axis=1)
    y = np.where(rng.random(15_000) < 0.6, truth, -1)
    totals = {k: int(np.sum(truth[y < 0] == k)) for k in range(3)}
    with within(2 + 4):
        model = fit(X, y, totals=totals, time_limit=2)
    assert np.mean(model.transduction_[y < 0] == truth[y < 0]) > 0.7
    assert np.bincount(model.transduction_[y < 0], minlength=3).min() > 1000


def test_many_classes_within_the_time_limit():
    rng = np.random.default_rng(0)
    truth = np.append(np.arange(100), rng.integers(0, 100, 1900))
    y = np.where(np.arange(2000) < 500, truth, -1)
    totals = {k: int(np.sum(truth[y < 0] == k)) for k in range(100)}
    with within(1 + 4):
        model = fit(rng.normal(size=(2000, 5)), y, totals=totals, max_depth=7, time_limit=1)
    assert len(model.totals_) == 100


def test_many_groups_within_the_time_limit():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(6000, 4)), rng.integers(0, 3000, 6000)
    truth = (X[:, 0] + 0.3 * rng.normal(size=6000) > 0).astype(int) + (X[:, 1] > 0.5)
    y = np.where(rng.random(6000) < 0.2, truth, -1)
    totals = {int(g): dict.fromkeys(range(3), 0) for g in np.unique(groups[y < 0])}
    for g, k in zip(groups[y < 0], truth[y < 0], strict=True):
        totals[int(g)][int(k)] += 1
    with within(1 + 4):
        model = fit(X, y, totals=totals, groups=groups, time_limit=1)
    assert np.mean(model.transduction_[y < 0] == truth[y < 0]) > 0.6


# ---------------------------------------------------------------------- labels that cannot all be right


def test_contradicting_labels_are_proven_at_twice_the_minority():
    """Two rows at the same place with different labels cost at least 2, and no more is needed here."""
    X = np.array([[0.0], [0.0], [10.0], [-10.0], [5.0], [-5.0]])
    y = np.array([0, 1, 1, 0, -1, -1])
    model = fit(X, y, totals={1: 1})
    assert model.bound_ == pytest.approx(2.0)
    assert model.objective_ == pytest.approx(2.0, rel=1e-4)
    assert model.status_ == "optimal"


def test_weights_decide_between_contradicting_labels():
    X = np.array([[0.0], [0.0], [10.0], [-10.0]])
    y = np.array([0, 1, 1, 0])
    for heavy in (0, 1):
        weight = np.where((y == heavy) & (X[:, 0] == 0), 5.0, 1.0)
        model = S2OCTClassifier(max_depth=1, random_state=0, time_limit=5).fit(X, y, sample_weight=weight)
        assert model.predict([[0.0]])[0] == heavy


def test_the_printed_program_reaches_the_same_optimum():
    X, truth, known, y = survey(24, p=2, labelled=0.3, seed=3)
    total = int(truth[~known].sum())
    ours = fit(X, y, totals=total, margin_rule="paper", max_depth=1, time_limit=30)
    printed = fit(X, y, totals=total, margin_rule="paper", formulation="paper", max_depth=1, time_limit=30)
    assert ours.status_ == printed.status_ == "optimal"
    assert printed.objective_ == pytest.approx(ours.objective_, abs=1e-3)


# ---------------------------------------------------------------------- habits


def test_the_same_fit_twice_and_in_another_order():
    X, truth, known, y = survey(100)
    total = int(truth[~known].sum())
    order = np.random.default_rng(1).permutation(100)
    first, second = (fit(X, y, totals=total, prefer="typical", time_limit=60) for _ in range(2))
    third = fit(X[order], y[order], totals=total, prefer="typical", time_limit=60)
    assert first.status_ == "optimal"
    assert first.tree_ == second.tree_ == third.tree_


def test_save_and_load(tmp_path):
    X, truth, known, y = survey(100)
    frame = pd.DataFrame(X, columns=["age", "income", "size"])
    model = fit(frame, y, totals={1: int(truth[~known].sum())}, n_estimators=5)
    model.save(tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    assert again.trees_ == model.trees_
    assert again.totals_ == model.totals_
    assert np.array_equal(again.predict(frame), model.predict(frame))
    assert again.get_params() == model.get_params()


def test_minus_one_and_one_are_labels_where_nothing_else_is():
    X = np.arange(10.0)[:, None]
    with pytest.warns(UserWarning, match="taken for a label"):
        model = S2OCTClassifier(max_depth=1).fit(X, np.where(X[:, 0] > 4, 1, -1))
    assert model.classes_.tolist() == [-1, 1]


def test_better_than_the_labels_alone_on_a_biased_sample():
    X, truth = load_breast_cancer(return_X_y=True)
    known = biased_sample(truth, 0.1, weights={1: 0.85, 0: 0.15}, random_state=0)
    model = fit(X, np.where(known, truth, -1), totals={1: int(truth[~known].sum())}, prefer="typical", time_limit=8)
    assert model.objective_ == 0.0
    assert np.mean(predict_labels(model.tree_, X[~known]) == truth[~known]) > 0.9


def test_parallel_search_finds_optimal_trees():
    X, truth, known, y = survey(60)
    total = int(truth[~known].sum())
    model = fit(X, y, totals=total, n_jobs=2)
    assert verify_zero(model.tree_, X, y, total, "tolerance") == []
