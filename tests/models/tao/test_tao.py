"""TAOClassifier and TAORegressor: what the estimators promise beyond scikit-learn's checks."""

import signal
import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine, make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.contracts.estimators import tao_measure
from tests.examples import looped
from tests.seen_trees import seen

from treewright import OCTHClassifier, TAOClassifier, TAORegressor, Tree, load_model
from treewright.cli import main
from treewright.data import reduction
from treewright.engine.alternate import Alternation
from treewright.exceptions import InvalidInputError, ModelFileError
from treewright.models.tao import fit as module

WINE = load_wine(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)


def classes_and_targets(kind):
    return (WINE if kind is TAOClassifier else DIABETES)[:2]


BOTH = pytest.mark.parametrize("kind", [TAOClassifier, TAORegressor])


def recomputed(model, X, y, weight):
    return tao_measure(model, {"X": X, "y": y, "sample_weight": weight})


# ---------------------------------------------------------------------- what is optimized


@BOTH
@pytest.mark.parametrize(
    ("most", "init", "stretch"),
    [*product([None, 1], ["cart", "random"], [0.0, 0.25]), (2, "cart", 0.0), (3, "random", 0.25)],
)
def test_objective_is_that_of_the_tree_and_below_the_start(kind, most, init, stretch):
    X, y = classes_and_targets(kind)
    weight = np.random.default_rng(0).integers(1, 4, len(X)).astype(float)
    model = kind(max_depth=4, alpha=0.5, max_split_features=most, init=init, stretch=stretch, random_state=0)
    model.fit(X, y, sample_weight=weight)
    assert model.objective_ == pytest.approx(recomputed(model, X, y, weight), rel=1e-6)
    assert np.all(np.diff(model.trace_["objective"]) <= 0)
    if not stretch:
        assert model.objective_ <= model.trace_["objective"][-1] + 1e-6  # pruning may save more
        assert model.objective_ < model.trace_["objective"][0]
    assert model.status_ == "local" and 1 <= model.n_iter_ <= model.max_iter
    assert model.tree_.depth <= 4
    assert most is None or np.count_nonzero(model.tree_.weights, axis=1).max() <= most


def test_better_than_cart_of_the_same_depth():
    X, y = load_breast_cancer(return_X_y=True)
    cart = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    model = TAOClassifier(max_depth=3, alpha=0.05, random_state=0).fit(X, y)
    errors = np.sum(cart.predict(X) != y)
    assert np.sum(model.predict(X) != y) < errors
    assert model.objective_ < errors + 0.05 * (cart.get_n_leaves() - 1)
    X, y = DIABETES
    cart = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, y)
    assert TAORegressor(max_depth=3, alpha=0.05, random_state=0).fit(X, y).score(X, y) > cart.score(X, y)


def test_a_diagonal_needs_one_split():
    rng = np.random.default_rng(0)
    X = rng.random((500, 2))
    y = np.where(X @ [1.0, 2.0] > 1.5, "above", "below")
    model = TAOClassifier(max_depth=1, random_state=0).fit(X, y)
    first, second = model.tree_.weights[0]
    assert model.score(X, y) > 0.98 and second / first == pytest.approx(2.0, rel=0.1)
    assert set(model.predict(X)) == {"above", "below"} and "above" in model.export_text()


@pytest.mark.parametrize("value", [100.0, 1e4])
@pytest.mark.parametrize("kind", [TAOClassifier, TAORegressor])
def test_a_value_far_off_does_not_hide_what_its_column_says(kind, value):
    X = np.random.default_rng(0).random((120, 3))
    y = (X[:, 1] > 0.5).astype(int)
    X[7, 1], y[7] = value, 1
    model = kind(max_depth=1, stretch=0.0, random_state=0).fit(X, y)
    assert model.score(X, y) == 1.0 and np.flatnonzero(model.tree_.weights[0]).tolist() == [1]


def test_alpha_is_a_price():
    X, y = load_breast_cancer(return_X_y=True)
    cheap, dear, dearest = (TAOClassifier(alpha=a, random_state=0).fit(X, y) for a in (0.1, 5.0, 1000.0))
    assert np.count_nonzero(cheap.tree_.weights) > np.count_nonzero(dear.tree_.weights)
    assert dearest.tree_.n_nodes == 1 and dearest.predict(X[:1])[0] == np.bincount(y).argmax()


# ---------------------------------------------------------------------- weights, orders, units


@BOTH
def test_weights_are_repetitions_and_the_order_of_rows_is_nothing(kind):
    X, y = classes_and_targets(kind)
    rng = np.random.default_rng(1)
    times = rng.integers(0, 3, len(X))
    again = rng.permutation(np.repeat(np.arange(len(X)), times))
    weighted = kind(max_depth=4, random_state=0).fit(X, y, sample_weight=times)
    repeated = kind(max_depth=4, random_state=0).fit(X[again], y[again])
    assert np.array_equal(weighted.tree_.left, repeated.tree_.left)
    assert weighted.tree_.weights == pytest.approx(repeated.tree_.weights, rel=1e-9)
    assert weighted.objective_ == pytest.approx(repeated.objective_)


def test_class_weights_multiply_sample_weights():
    X, y = WINE
    factor = {0: 5.0, 1: 1.0, 2: 0.5}
    by_class = TAOClassifier(max_depth=2, class_weight=factor, random_state=0).fit(X, y)
    by_row = TAOClassifier(max_depth=2, random_state=0).fit(X, y, sample_weight=[factor[k] for k in y])
    assert seen(by_class) == seen(by_row)
    balanced = TAOClassifier(max_depth=2, class_weight="balanced", random_state=0).fit(X, y)
    share = len(y) / (3 * np.bincount(y))
    by_row = TAOClassifier(max_depth=2, random_state=0).fit(X, y, sample_weight=share[y])
    assert seen(balanced) == seen(by_row)


def test_units_of_the_target_do_not_matter():
    X, y = DIABETES
    plain, other = TAORegressor(max_depth=3, random_state=0), TAORegressor(max_depth=3, random_state=0)
    assert other.fit(X, 1000.0 * y - 7.0).predict(X) == pytest.approx(1000.0 * plain.fit(X, y).predict(X) - 7.0)
    assert other.objective_ == pytest.approx(plain.objective_)


def test_several_outputs():
    X, y = DIABETES
    single = TAORegressor(max_depth=3, random_state=0).fit(X, y)
    double = TAORegressor(max_depth=3, random_state=0).fit(X, np.column_stack([y, y]))
    assert double.predict(X).shape == (len(X), 2)
    assert double.predict(X)[:, 1] == pytest.approx(single.predict(X))
    assert double.objective_ == pytest.approx(single.objective_)  # both the error and s^2 are doubled
    mixed = TAORegressor(max_depth=5, alpha=0.2, random_state=0).fit(X, np.column_stack([y, 100 * X[:, 2]]))
    assert mixed.objective_ == pytest.approx(recomputed(mixed, X, np.column_stack([y, 100 * X[:, 2]]), np.ones(len(X))))


@BOTH
def test_sparse_rows_are_the_same_rows(kind):
    X, y = classes_and_targets(kind)
    X = np.where(np.median(X, axis=0) < X, X - X.min(axis=0), 0.0)
    dense = kind(max_depth=3, random_state=0).fit(X, y)
    thin = kind(max_depth=3, random_state=0).fit(sparse.csr_matrix(X), y)
    assert np.array_equal(dense.predict(X), thin.predict(sparse.csr_array(X)))
    assert np.array_equal(dense.apply(X), thin.apply(sparse.coo_array(X)))


@BOTH
def test_large_tables_are_fitted_in_single_precision_dense_or_sparse(kind, monkeypatch):
    X, y = classes_and_targets(kind)
    X = np.where(np.median(X, axis=0) < X, X - X.min(axis=0), 0.0)
    exact = kind(max_depth=3, alpha=0.2, stretch=0.0, random_state=0).fit(X, y)
    monkeypatch.setattr(reduction, "EXACT_CELLS", 0)
    for rows in (X, sparse.csr_array(X)):
        model = kind(max_depth=3, alpha=0.2, random_state=0).fit(rows, y)
        assert model.objective_ == pytest.approx(recomputed(model, X, y, np.ones(len(X))), rel=1e-6)
        model.set_params(stretch=0.0).fit(rows, y)
        assert model.objective_ == pytest.approx(recomputed(model, X, y, np.ones(len(X))), rel=1e-6)
        assert model.objective_ == pytest.approx(model.trace_["objective"][-1], rel=1e-6)
        assert model.objective_ < 0.5 * (exact.trace_["objective"][0] + exact.objective_)


# ---------------------------------------------------------------------- starts and ends


@BOTH
def test_same_seed_same_tree_with_any_number_of_threads(kind):
    X, y = classes_and_targets(kind)
    first, second = (kind(max_depth=4, init="random", random_state=3, n_jobs=n).fit(X, y) for n in (None, 2))
    assert first.tree_ == second.tree_ and first.objective_ == second.objective_
    other = kind(max_depth=4, init="random", random_state=4).fit(X, y)
    assert other.tree_ != first.tree_


@BOTH
def test_warm_start_goes_on(kind):
    X, y = classes_and_targets(kind)
    short = kind(max_depth=4, max_iter=1, init="random", stretch=0.0, random_state=0).fit(X, y)
    for start in (short, short.tree_):
        on = kind(max_depth=4, warm_start=start, stretch=0.0, random_state=1).fit(X, y)
        assert on.trace_["objective"][0] == pytest.approx(short.objective_)
        assert on.objective_ <= short.objective_ + 1e-9
    again = short.set_params(warm_start=True, max_iter=20).fit(X, y)
    assert again.tree_ == on.tree_
    assert kind(max_depth=2, warm_start=on, random_state=0).fit(X, y).tree_.depth <= 2


def test_starts_that_cannot_be_used():
    X, y = WINE
    with pytest.raises(InvalidInputError, match="has 2 features, X has 13"):
        TAOClassifier(warm_start=Tree.leaf([1.0, 1.0, 1.0], 2)).fit(X, y)
    oblique = Tree.stump(np.ones(13), 1.0, np.eye(3)[:2])
    with pytest.raises(InvalidInputError, match="a split on 13 features; max_split_features=1"):
        TAOClassifier(warm_start=oblique, max_split_features=1).fit(X, y)
    coded = Tree([1, -1, -1], [2, -1, -1], np.zeros((3, 13)), np.zeros(3), np.ones((3, 3)), [0, 0, 1], [0, -1, -1])
    with pytest.raises(InvalidInputError, match="categorical"):
        TAOClassifier(warm_start=coded).fit(X, y)
    with pytest.raises(NotFittedError, match="not fitted"):
        TAOClassifier(warm_start=TAOClassifier()).fit(X, y)


def test_a_tree_of_another_model_is_a_start_and_never_made_worse():
    X, y = WINE
    optimal = OCTHClassifier(max_depth=2, random_state=0).fit(X, y)
    model = TAOClassifier(max_depth=2, alpha=0.01, stretch=0.0, warm_start=optimal).fit(X, y)
    assert np.sum(model.predict(X) != y) + 0.01 * 3 <= np.sum(optimal.predict(X) != y) + 0.01 * 3 * np.sqrt(13)


@BOTH
@pytest.mark.parametrize("at", [1, 3, 6])
@pytest.mark.parametrize("cause", ["interrupted", "time_limit"])
def test_a_stop_among_stretched_rows_is_said(kind, at, cause, monkeypatch):
    X, y = classes_and_targets(kind)
    whole = kind(max_depth=3, stretch=0.0, random_state=0).fit(X, y)
    improve, passes = Alternation.improve, []

    def stopped(self, budget):
        passes.append(len(self.everyone))
        if sum(n > len(X) for n in passes) == at:  # copies come with stretching
            if cause == "interrupted":
                budget.stop()
            else:
                budget.seconds = 1e-9
        return improve(self, budget)

    monkeypatch.setattr(Alternation, "improve", stopped)
    with pytest.warns(ConvergenceWarning, match=cause):
        model = kind(max_depth=3, time_limit=1000, random_state=0).fit(X, y)
    assert model.status_ == cause and sum(n > len(X) for n in passes) == at
    assert model.n_iter_ == whole.n_iter_ and np.array_equal(model.trace_["loss"], whole.trace_["loss"])
    if at == 1:  # no node was improved after the stop
        assert np.array_equal(model.predict(X), whole.predict(X))


def test_time_that_is_over_before_stretching_is_said(monkeypatch):
    X, y = WINE
    improve = Alternation.improve

    def late(self, budget):
        changed = improve(self, budget)
        budget.seconds = 1e-9
        return changed

    monkeypatch.setattr(Alternation, "improve", late)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model = TAOClassifier(max_depth=3, max_iter=1, time_limit=1000, random_state=0).fit(X, y)
    assert model.objective_ <= model.trace_["objective"][-1] + 1e-9
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TAOClassifier(max_depth=3, max_iter=1, stretch=0.0, time_limit=1000, random_state=0).fit(X, y)


def test_a_fit_that_breaks_off_while_stretching_leaves_the_old_one_whole(monkeypatch):
    X, y = WINE

    def broken(*args, **settings):
        raise MemoryError

    monkeypatch.setattr(module, "improve_stretched", broken)
    model = TAOClassifier(max_depth=3, random_state=0)
    with pytest.raises(MemoryError):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.set_params(stretch=0.0).fit(X, y)
    before = model.trace_, model.n_iter_, model.tree_, model.predict(X)
    with pytest.raises(MemoryError):
        model.set_params(stretch=0.25).fit(X[::2], y[::2])
    assert model.trace_ is before[0] and model.n_iter_ == before[1] and model.tree_ is before[2]
    assert np.array_equal(model.predict(X), before[3])


@BOTH
def test_a_time_limit_ends_the_fit_with_a_tree(kind):
    X, y = classes_and_targets(kind)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = kind(time_limit=1e-9, random_state=0).fit(X, y)
    assert [warning.category for warning in told] == [ConvergenceWarning]
    assert "status 'time_limit'" in str(told[0].message) and "the time was over after 0 passes" in str(told[0].message)
    assert model.status_ == "time_limit" and model.n_iter_ == 0
    assert model.objective_ == pytest.approx(recomputed(model, X, y, np.ones(len(X))), rel=1e-6)


@BOTH
def test_ctrl_c_ends_the_fit_with_the_best_tree(kind, monkeypatch):
    X, y = classes_and_targets(kind)
    search, seen = module.improved_sparse_tree, []

    def pressed(*arguments, on_pass=None, **settings):
        def press(*event):
            seen.append(event[1])
            if len(seen) == 2:
                signal.raise_signal(signal.SIGINT)

        return search(*arguments, on_pass=press, **settings)

    monkeypatch.setattr(module, "improved_sparse_tree", pressed)
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore it
    try:
        with pytest.warns(ConvergenceWarning, match="'interrupted' .*it was interrupted after 1 pass"):
            model = kind(max_depth=5, alpha=0.01, init="random", random_state=0).fit(X, y)
    finally:
        signal.signal(signal.SIGINT, previous)
    assert model.status_ == "interrupted" and model.objective_ <= seen[-1] + 1e-6


def test_a_normal_end_is_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TAOClassifier(max_iter=1, random_state=0).fit(*WINE)


def test_a_tree_that_the_units_of_the_data_cannot_hold_is_told():
    rng = np.random.default_rng(0)
    X = rng.random((50, 3)) * [1e300, 1e-300, 1.0]  # weights would differ by a factor of 1e600
    with pytest.warns(UserWarning, match="differ too much in size"):
        model = TAOClassifier(max_depth=3, alpha=0.0, init="random", random_state=0).fit(X, X[:, 0] > 5e299)
    assert model.objective_ == np.sum(model.predict(X) != (X[:, 0] > 5e299)) > model.trace_["objective"][-1]


# ---------------------------------------------------------------------- bad input, files, command line


@looped(
    "settings, message",
    [
        ({"alpha": -1.0}, "alpha"),
        ({"stretch": -0.1}, "stretch"),
        ({"max_depth": 0}, "max_depth"),
        ({"max_depth": 17}, "max_depth"),
        ({"max_split_features": 0}, "max_split_features"),
        ({"init": "zero"}, "init"),
        ({"max_iter": 0}, "max_iter"),
        ({"time_limit": 0.0}, "time_limit"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"warm_start": "yes"}, "warm_start"),
    ],
)
@BOTH
def test_parameters_that_cannot_be_used(kind, settings, message):
    with pytest.raises(ValueError, match=message):
        kind(**settings).fit(*classes_and_targets(kind))


def test_data_that_cannot_be_used():
    X, y = WINE
    with pytest.raises(InvalidInputError, match="only one class"):
        TAOClassifier().fit(X, np.zeros(len(X)))
    gaps = np.where(X > 1000, np.nan, X)  # which dense tables may have
    with pytest.raises(ValueError, match="NaN"):
        TAOClassifier().fit(sparse.csr_array(gaps), y)
    with pytest.raises(ValueError, match="NaN"):
        TAORegressor(leaves="linear").fit(gaps, y)
    with pytest.raises(ValueError, match="infinit"):
        TAOClassifier().fit(np.where(X > 1000, np.inf, X), y)
    with pytest.raises(ValueError, match="Negative values"):
        TAORegressor().fit(X, y, sample_weight=-np.ones(len(X)))
    with pytest.raises(ValueError, match="zero"):
        TAORegressor().fit(X, y, sample_weight=np.zeros(len(X)))
    with pytest.raises(ValueError, match="could not convert"):
        TAORegressor().fit(X, ["a"] * len(X))
    with pytest.raises(ValueError, match="inconsistent"):
        TAORegressor().fit(X, y[:-1])
    model = TAOClassifier(max_depth=2, random_state=0).fit(X, y)
    before = model.tree_
    with pytest.raises(ValueError, match="inf"):
        model.fit(np.where(X > 14, np.inf, X)[:, :5], y)
    assert model.tree_ is before and model.n_features_in_ == 13  # a fit that fails leaves the old one whole


@BOTH
def test_model_files(kind, tmp_path):
    X, y = classes_and_targets(kind)
    model = kind(max_depth=3, alpha=0.3, random_state=0).fit(X, y)
    model.save(tmp_path / "model.json")
    for again in (load_model(tmp_path / "model.json"), kind.load(tmp_path / "model.json")):
        assert type(again) is kind and again.tree_ == model.tree_ and again.get_params() == model.get_params()
        assert np.array_equal(again.predict(X), model.predict(X)) and again.export_text() == model.export_text()
        assert (again.objective_, again.status_, again.n_iter_) == (model.objective_, model.status_, model.n_iter_)
        assert np.array_equal(again.trace_, model.trace_)
    text = (tmp_path / "model.json").read_text()
    for damaged in (text.replace('"n_iter": ', '"n_iter": -'), text.replace('"classes": ', '"classes": 1, "x": ')):
        assert damaged != text
        (tmp_path / "damaged.json").write_text(damaged)
        with pytest.raises(ModelFileError):
            load_model(tmp_path / "damaged.json")


def test_command_line(tmp_path, capsys):
    X, y = make_classification(80, 4, random_state=0)
    lines = ["a,b,c,d,z"] + [",".join(map(str, row)) + ("," + "ny"[k]) for row, k in zip(X, y, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    command = ["fit", str(tmp_path / "t.csv"), "--target", "z", "--model", "tao", "--out", str(tmp_path / "m.json")]
    assert main([*command, "--max-depth", "2", "--set", "alpha=0.5", "--report", str(tmp_path / "r.txt")]) == 0
    assert "status: local" in capsys.readouterr().out and "bound" not in (tmp_path / "r.txt").read_text()
    assert main(["predict", str(tmp_path / "m.json"), str(tmp_path / "t.csv"), "--out", str(tmp_path / "p.csv")]) == 0
    assert main([*command, "--solver", "highs"]) == 2
    assert "tao has no parameter 'solver'" in capsys.readouterr().err
    TAORegressor(max_depth=2).fit(X, X[:, 0]).save(tmp_path / "regressor.json")
    assert main(["show", str(tmp_path / "regressor.json")]) == 4
    assert "holds the estimator 'TAORegressor'" in capsys.readouterr().err


@pytest.mark.parametrize("factor", [1e200, 1e-200])
def test_units_of_targets_do_not_matter(factor):
    X, y = classes_and_targets(TAORegressor)
    plain = TAORegressor(max_depth=3, random_state=0).fit(X, y)
    other = TAORegressor(max_depth=3, random_state=0).fit(X, factor * y)
    assert plain.tree_.n_leaves > 2
    assert other.predict(X) / factor == pytest.approx(plain.predict(X), rel=1e-6)


@pytest.mark.parametrize("leaves", ["constant", "linear"])
@pytest.mark.parametrize("depth", [4, 8])
def test_many_rows_of_a_regression_leave_some_leaves_empty(depth, leaves):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 3))
    y = np.where(X[:, 0] > 0, 1.0, -1.0) + X[:, 1] + 0.3 * rng.normal(size=2500)
    assert TAORegressor(depth, leaves=leaves, random_state=0).fit(X, y).score(X, y) > 0.85
    region = rng.integers(0, 5, 2500).astype(float)
    target = np.array([1.0, 2.0, 3.0, 1.0, 5.0])[region.astype(int)] + rng.normal(size=2500)
    model = TAORegressor(depth, leaves=leaves, categorical_features=[0], random_state=0).fit(region[:, None], target)
    assert model.score(region[:, None], target) == pytest.approx(1 - 1 / np.var(target), abs=0.03)


def test_rare_rows_of_large_weight_are_not_lost_to_stretched_ones():
    def table(seed, n=8000):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame(
            {
                "region": rng.choice(list("abcde"), n, p=[0.3, 0.25, 0.2, 0.15, 0.1]),
                "kind": rng.choice(list("pqrstuv"), n),
                "income": np.exp(rng.normal(10.3, 0.7, n)).round(2),
                "age": rng.integers(18, 91, n),
            }
        )
        return X, (X["region"] == "e") & X["kind"].isin(["p", "s"]) & (X["income"] > 20_000)

    (X, y), (new, truth) = table(1), table(2)
    model = TAOClassifier(4, random_state=0, class_weight="balanced").fit(X, y)
    assert np.sum(model.predict(new) != truth) <= 4


def test_gaps_and_categories_of_many_rows_warn_of_nothing():
    rng = np.random.default_rng(0)
    n = 5000
    X = pd.DataFrame({"tenure": rng.exponential(6, n), "temp": rng.normal(15, 8, n), "age": rng.integers(18, 91, n)})
    X["region"] = rng.choice(list("abcde"), n)
    gone = rng.random(n) < 0.1
    X.loc[gone, "tenure"] = np.nan
    X.loc[rng.random(n) < 0.12, "temp"] = np.nan
    kept = np.where(X["region"].isin(["a", "b"]), X["age"] > 50, X["temp"].fillna(15) > 12)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TAOClassifier(4, random_state=0).fit(X, (kept & ~gone) ^ (rng.random(n) < 0.07))


# ---------------------------------------------------------------------- found by crossing features


def test_a_row_on_the_threshold_goes_as_the_rule_says():
    for cut, end in ((5, 83), (39, 45), (7, 83), (11, 61)):
        x = np.arange(0, end, 2.0)
        points, y = np.repeat(x, 5)[:, None], np.repeat((x > cut).astype(int), 5)
        model = TAOClassifier(max_depth=1, random_state=0, stretch=0, alpha=0.01).fit(points, y)
        condition, leaf, *_ = model.export_text(X=[[float(cut)]]).splitlines()
        _, _, how, number = condition.rstrip(":").split()
        goes = cut >= float(number) if how == ">=" else cut <= float(number)
        assert how in (">=", "<=") and goes == (model.predict([[float(cut)]])[0] == int(leaf.split()[0]))


def test_tied_leaves_do_not_hang_on_the_order_of_the_rows():
    y = np.array([0, 1, 2, 2, 1, 1])
    for order in ([0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [2, 4, 0, 5, 1, 3]):
        model = TAOClassifier(1, class_weight="balanced", random_state=0).fit(np.zeros((6, 1)), y[order])
        assert model.predict([[0.0]]) == [0]


@pytest.mark.parametrize("most", [None, 1])
def test_random_starts_pay_nothing_for_columns_without_difference(most):
    draws = np.random.default_rng(0)
    X, weight = np.column_stack([draws.normal(size=(60, 3)), np.full(60, 5.0)]), np.ones(60)
    z = (X[:, 0] + X[:, 1] > 0) + 0.1 * draws.normal(size=60)
    for seed in range(6):
        model = TAORegressor(2, init="random", stretch=0, alpha=0.05, max_split_features=most, random_state=seed)
        assert model.fit(X, z).objective_ == pytest.approx(recomputed(model, X, z, weight))
