"""SSCTClassifier: the gain by brute force, its limits, and what unlabelled rows are good for."""

import signal
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_wine, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.tree import DecisionTreeClassifier
from tests.contracts.estimators import ssct_measure
from tests.examples import looped

from treewright import SSCTClassifier, load_model
from treewright.cli import main
from treewright.data import reduction
from treewright.exceptions import InvalidInputError
from treewright.models.baselines import ssct_fit as module
from treewright.tree import route

WINE = load_wine(return_X_y=True)


def semi_labelled(share=0.3, seed=0, data=WINE):
    X, truth = data
    known = np.random.default_rng(seed).random(len(truth)) < share
    return X, truth, np.where(known, truth, -1)


# ---------------------------------------------------------------------- brute force, from the formula alone


def gini(y, weight):
    y, weight = y[y >= 0], weight[y >= 0]
    shares = np.array([weight[y == k].sum() for k in np.unique(y)]) / max(weight.sum(), 1e-300)
    return 1.0 - (shares**2).sum() if len(y) else 0.0


def variances(X, weight):
    return np.average((X - np.average(X, axis=0, weights=weight)) ** 2, axis=0, weights=weight)


def gain_of(left, at, X, y, weight, w, shares):
    """Gain of a split of the rows `at` of the training rows into those where `left` and the others."""
    varied = variances(X, weight) > 0
    scale = variances(X, weight)[varied]

    def spread(rows):
        return np.mean(variances(X[rows][:, varied], weight[rows]) / scale)

    parts = [at[left], at[~left]]
    spread_share = [weight[part].sum() / weight[at].sum() for part in parts]
    fall = spread(at) - sum(s * spread(part) for s, part in zip(spread_share, parts, strict=True))
    impurity = [gini(y[part], weight[part]) if np.any(y[part] >= 0) else gini(y[at], weight[at]) for part in parts]
    masses = [weight[part][y[part] >= 0].sum() for part in parts]
    label_share = spread_share if shares == "all" else np.array(masses) / sum(masses)
    label_fall = gini(y[at], weight[at]) - sum(s * i for s, i in zip(label_share, impurity, strict=True))
    return w * label_fall / gini(y, weight) + (1 - w) * fall


def best_gain(at, X, y, weight, w, shares, least=1):
    best = -np.inf
    for j in range(X.shape[1]):
        values = np.unique(X[at, j])
        for cut in (values[1:] + values[:-1]) / 2:
            left = X[at, j] <= cut
            if min(left.sum(), (~left).sum()) >= least:
                best = max(best, gain_of(left, at, X, y, weight, w, shares))
    return best


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, p, k = draw(st.integers(4, 18)), draw(st.integers(1, 4)), draw(st.integers(2, 3))
    X = rng.integers(0, draw(st.sampled_from([3, 50])), (n, p)) * rng.choice([1e-3, 1.0, 1e4], p)
    y = rng.integers(0, k, n)
    y[rng.random(n) < draw(st.sampled_from([0.0, 0.5, 0.8]))] = -1
    y[:2] = [0, 1]
    return X, y, rng.choice([0.5, 1.0, 3.0], n)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(problems(), st.sampled_from([0.0, 0.3, 0.9]), st.sampled_from(["labelled", "all"]), st.sampled_from([1, 3]))
def test_every_split_is_the_best_one(problem, w, shares, least):
    X, y, weight = problem
    model = SSCTClassifier(max_depth=3, supervision=w, label_shares=shares, min_samples_leaf=least, unlabeled=-1)
    tree = model.fit(X, y, sample_weight=weight).tree_
    path = model.decision_path(X).toarray().astype(bool)
    for node in range(tree.n_nodes):
        at = np.flatnonzero(path[:, node])
        if tree.left[node] >= 0:
            reached = gain_of(path[at, tree.left[node]], at, X, y, weight, w, shares)
            assert reached == pytest.approx(best_gain(at, X, y, weight, w, shares, least), abs=1e-9)
        elif tree.level[node] < 3 and len(np.unique(y[at][y[at] >= 0])) > 1:
            assert best_gain(at, X, y, weight, w, shares, least) < 1e-9


@settings(max_examples=30, deadline=None, derandomize=True)
@given(problems(), st.sampled_from([0.0, 0.4, 1.0]))
def test_objective_is_the_impurity_of_the_leaves(problem, w):
    X, y, weight = problem
    model = SSCTClassifier(max_depth=2, supervision=w).fit(X, y, sample_weight=weight)
    measured = ssct_measure(model, {"X": X, "y": y, "sample_weight": weight})
    assert model.objective_ == pytest.approx(measured, abs=1e-9)
    assert np.all(np.diff(model.trace_["objective"]) < 1e-12) and model.trace_["n_leaves"][-1] == model.tree_.n_leaves


@pytest.mark.parametrize("data", [WINE, load_breast_cancer(return_X_y=True)])
def test_with_labels_alone_it_is_cart(data):
    X, truth, y = semi_labelled(0.3, data=data)
    known = y != -1
    for depth in (1, 3):
        cart = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(X[known], truth[known])
        model = SSCTClassifier(max_depth=depth, supervision=1.0).fit(X, y)
        shares, counts = model.tree_.shares(), model.tree_.values.sum(axis=1)
        impurity = 1 - (shares**2).sum(axis=1)
        leaves = cart.tree_.children_left < 0
        expected = cart.tree_.impurity[leaves] @ cart.tree_.weighted_n_node_samples[leaves]
        assert impurity[model.tree_.leaves] @ counts[model.tree_.leaves] == pytest.approx(expected)


CORNERS = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])


def chessboard(n, fields):
    """Points of a grid of n times n, in as many fields of two classes: no single cut of whole fields gains anything."""
    side = np.arange(n)
    X = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2).astype(float)
    return X, (X // (n // fields)).sum(axis=1).astype(int) % 2


@pytest.mark.parametrize("copies", [1, 3])
def test_exclusive_or_is_cart_too(copies):
    X, y = CORNERS.repeat(copies, axis=0), np.array([0, 1, 1, 0]).repeat(copies)
    cart = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    model = SSCTClassifier(max_depth=2, supervision=1.0).fit(X, y)
    assert model.score(X, y) == cart.score(X, y) == 1.0
    assert model.tree_.n_leaves == cart.get_n_leaves() == 4
    one = SSCTClassifier(max_depth=1, supervision=1.0).fit(X, y)
    assert one.tree_.n_leaves == DecisionTreeClassifier(max_depth=1, random_state=0).fit(X, y).get_n_leaves() == 2


@pytest.mark.parametrize("fields", [2, 4])
def test_chessboards_are_parted(fields):
    X, y = chessboard(8, fields)
    model = SSCTClassifier(max_depth=None, supervision=1.0).fit(X, y)
    assert model.score(X, y) == DecisionTreeClassifier(random_state=0).fit(X, y).score(X, y) == 1.0


@pytest.mark.parametrize("seed", range(5))
def test_random_labels_are_cart_too(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.random((400, 3)), rng.integers(0, 3, 400)
    weight = rng.random(400)
    new = rng.random((300, 3))
    for depth in (1, 2, 3):  # in nodes of a few rows several splits are equally good, and the two may differ
        cart = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(X, y, sample_weight=weight)
        model = SSCTClassifier(max_depth=depth, supervision=1.0).fit(X, y, sample_weight=weight)
        assert model.tree_.n_leaves == cart.get_n_leaves()
        assert model.tree_.shares()[model.apply(new)] == pytest.approx(cart.predict_proba(new))


def test_rows_that_cannot_be_parted_are_a_leaf():
    model = SSCTClassifier(supervision=1.0).fit([[0.0], [0.0], [1.0], [1.0]], [0, 1, 0, 1])
    assert model.tree_.n_leaves == 2  # the two values are parted, as in CART, their rows cannot be
    assert DecisionTreeClassifier().fit([[0.0], [0.0], [1.0], [1.0]], [0, 1, 0, 1]).get_n_leaves() == 2


# ---------------------------------------------------------------------- what it is for


def test_unlabelled_rows_say_where_to_cut():
    X, truth = make_blobs([200, 200], centers=[[0.0] * 5, [6.0] * 5], random_state=0)
    y = np.full(400, -1)
    y[:6] = truth[:6]
    assert SSCTClassifier(max_depth=1).fit(X, y).score(X, truth) > 0.99


def test_nodes_without_labels_have_that_of_their_parent():
    X = np.array([[0.0], [1.0], [2.0], [100.0], [101.0]])
    model = SSCTClassifier(supervision=0.05).fit(X, ["a", "b", "b", -1, -1])
    assert model.tree_.threshold[0] == 51.0 and model.transduction_.tolist() == ["a", "b", "b", "b", "b"]
    assert model.tree_.values[model.tree_.right[0]].tolist() == [0.0, 0.0]
    assert model.tree_.shares()[model.apply([[200.0]])].tolist() == [[0.0, 1.0]]
    assert 0.5 < model.predict_proba([[200.0]])[0, 1] < 1.0  # no labelled row is there


def test_transduction():
    X, truth, y = semi_labelled(0.05)
    model = SSCTClassifier().fit(X, y)
    known = y != -1
    np.testing.assert_array_equal(model.transduction_[known], truth[known])
    np.testing.assert_array_equal(model.transduction_[~known], model.predict(X)[~known])
    np.testing.assert_array_equal(model.tree_.values[0], np.bincount(truth[known], minlength=3))


def test_limits_of_the_tree():
    X, _, y = semi_labelled()
    for settings_ in ({"max_depth": 2}, {"max_depth": None}, {"min_samples_leaf": 15}, {"min_samples_split": 100}):
        model = SSCTClassifier(**settings_).fit(X, y)
        tree, leaf = model.tree_, route(model.tree_, X)
        rows = model.decision_path(X).sum(axis=0)
        assert tree.depth <= (model.max_depth or 99)
        assert np.bincount(leaf)[tree.leaves].min() >= model.min_samples_leaf
        assert rows[tree.branches].min() >= model.min_samples_split
    assert SSCTClassifier(max_depth=None, supervision=1).fit(X, y).score(X[y >= 0], y[y >= 0]) == 1.0


@pytest.mark.parametrize("few", [1, 3, 0.2, "sqrt"])
def test_some_features(few):
    X, truth, y = semi_labelled()
    fits = [SSCTClassifier(max_features=few, random_state=seed).fit(X, y) for seed in (0, 0, 1)]
    assert fits[0].tree_ == fits[1].tree_ and fits[0].tree_ != fits[2].tree_
    assert SSCTClassifier(max_features=len(X.T)).fit(X, y).tree_ == SSCTClassifier().fit(X, y).tree_


def test_order_units_threads_and_constants_change_nothing():
    X, _, y = semi_labelled()
    first = SSCTClassifier().fit(X, y)
    order = np.random.default_rng(1).permutation(len(X))
    assert SSCTClassifier().fit(X[order], y[order]).tree_ == first.tree_
    assert SSCTClassifier(n_jobs=2).fit(X, y).tree_ == first.tree_
    moved = 4.0 * X + 8.0
    np.testing.assert_array_equal(SSCTClassifier().fit(moved, y).apply(moved), first.apply(X))
    wider = np.column_stack([X, np.full(len(X), 7.0)])
    np.testing.assert_array_equal(SSCTClassifier().fit(wider, y).tree_.threshold, first.tree_.threshold)


def test_large_tables_are_taken_as_they_come(monkeypatch):
    X, _, y = semi_labelled()
    expected = SSCTClassifier(max_depth=3).fit(X, y).predict(X)
    monkeypatch.setattr(reduction, "EXACT_CELLS", 0)
    np.testing.assert_array_equal(SSCTClassifier(max_depth=3).fit(X, y).predict(X), expected)


def test_weight_zero_and_two_for_unlabelled_rows():
    X, _, y = semi_labelled()
    weight = np.random.default_rng(2).integers(0, 3, len(X))
    weight[:2] = 1
    first = SSCTClassifier().fit(X, y, sample_weight=weight)
    second = SSCTClassifier().fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert first.tree_ == second.tree_ and np.any(weight[y == -1] == 2)


def test_a_gap_between_neighbouring_floats():
    X = np.array([[1.0], [np.nextafter(1.0, 2.0)]])
    model = SSCTClassifier().fit(X, [0, 1])
    assert model.predict(X).tolist() == [0, 1]
    X = np.array([[-1.7e308], [1.7e308]])
    assert SSCTClassifier().fit(X, [0, 1]).predict(X).tolist() == [0, 1]


# ---------------------------------------------------------------------- clock, files, bad input


def test_time_limit_returns_the_tree_so_far():
    X, _, y = semi_labelled()
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model = SSCTClassifier(time_limit=1e-9).fit(X, y)
    assert model.status_ == "time_limit" and model.tree_.n_nodes == 1
    assert set(model.predict(X)) == {np.bincount(y[y >= 0]).argmax()}


def test_ctrl_c_keeps_the_levels_so_far(monkeypatch):
    X, _, y = semi_labelled()
    search = module.grow_ssct

    def pressed(*arguments, **settings_):
        levels = []

        def press(*event):
            levels.append(event)
            if len(levels) == 3:
                signal.raise_signal(signal.SIGINT)

        return search(*arguments, **settings_ | {"on_level": press})

    monkeypatch.setattr(module, "grow_ssct", pressed)
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore it
    try:
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            model = SSCTClassifier(supervision=0.2).fit(X, y)
    finally:
        signal.signal(signal.SIGINT, previous)
    monkeypatch.undo()
    assert model.status_ == "interrupted"
    assert (
        model.tree_
        == SSCTClassifier(max_depth=2, supervision=0.2).fit(X, y).tree_
        != SSCTClassifier(supervision=0.2).fit(X, y).tree_
    )


def test_model_file_and_command_line(tmp_path, capsys):
    X, truth, y = semi_labelled()
    model = SSCTClassifier(max_depth=3).fit(X, y)
    model.save(tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    assert isinstance(again, SSCTClassifier) and again.tree_ == model.tree_
    lines = [",".join([*map(str, row), "" if label == -1 else f"kind{label}"]) for row, label in zip(X, y, strict=True)]
    header = ",".join([*(f"f{j}" for j in range(X.shape[1])), "kind"])
    (tmp_path / "wine.csv").write_text("\n".join([header, *lines]))
    out = tmp_path / "cli.json"
    arguments = ["fit", str(tmp_path / "wine.csv"), "--target", "kind", "--model", "ssct", "--max-depth", "3"]
    assert main([*arguments, "--set", "supervision=0.5", "--out", str(out)]) == 0
    np.testing.assert_array_equal(load_model(out).tree_.threshold, model.tree_.threshold)
    assert "training accuracy" in capsys.readouterr().out


@looped(
    "settings_, y, message",
    [
        ({"supervision": 1.5}, [0, 1, -1], "'supervision' parameter"),
        ({"supervision": "cv"}, [0, 1, -1], "'supervision' parameter"),
        ({"max_features": 1.5}, [0, 1, -1], "max_features"),
        ({"n_jobs": 0}, [0, 1, -1], "n_jobs"),
        ({}, [-1, -1, -1], "none of the 3 rows"),
        ({}, ["a", "a", -1], "only one class"),
    ],
)
def test_bad_input_is_refused(settings_, y, message):
    with pytest.raises((InvalidInputError, ValueError), match=message):
        SSCTClassifier(**settings_).fit([[0.0], [1.0], [2.0]], np.array(y, dtype=object))


def test_nothing_is_said_of_a_usual_end():
    X, _, y = semi_labelled()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SSCTClassifier().fit(X, y)
