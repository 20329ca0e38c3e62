"""TAORegressor with linear leaves: what it promises beyond scikit-learn's checks."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from tests.contracts.estimators import tao_measure

from treewright import TAORegressor, load_model
from treewright.data import reduction
from treewright.exceptions import ModelFileError

X, Y = load_diabetes(return_X_y=True)


def linear(**settings):
    return TAORegressor(**({"max_depth": 3, "leaves": "linear", "leaf_ridge": 0.1, "random_state": 0} | settings))


def recomputed(model, X, y, weight):
    return tao_measure(model, {"X": X, "y": y, "sample_weight": weight})


@pytest.mark.parametrize("most", [None, 1, 2])
@pytest.mark.parametrize("init", ["cart", "random"])
def test_objective_is_that_of_the_tree_and_below_the_start(most, init):
    weight = np.random.default_rng(0).integers(1, 4, len(X)).astype(float)
    model = linear(max_depth=4, alpha=0.5, max_split_features=most, init=init).fit(X, Y, sample_weight=weight)
    assert model.objective_ == pytest.approx(recomputed(model, X, Y, weight), rel=1e-6)
    assert model.objective_ <= model.trace_["objective"][-1] + 1e-6
    assert np.all(np.diff(model.trace_["objective"]) <= 0) and model.objective_ < model.trace_["objective"][0]
    assert model.status_ == "local" and model.tree_.depth <= 4


def test_rows_are_not_stretched():
    assert linear(stretch=0.25).fit(X, Y).tree_ == linear(stretch=0.0).fit(X, Y).tree_


def test_a_piecewise_linear_function_is_found():
    rng = np.random.default_rng(0)
    X = rng.random((2000, 3)) * [1.0, 100.0, 0.01] + [0.0, 500.0, 0.0]
    a, b, c = X[:, 0], (X[:, 1] - 500.0) / 100.0, 100.0 * X[:, 2]
    y = 3 * np.abs(a + b - 1) + 2 * np.abs(a - c)  # four pieces, no two of which have a normal in common
    for init in ("cart", "random"):
        model = linear(max_depth=2, alpha=0.01, leaf_ridge=1e-4, init=init, max_iter=100).fit(X, y)
        constant = TAORegressor(max_depth=2, alpha=0.01, init=init, max_iter=100, random_state=0).fit(X, y)
        assert model.score(X, y) > 0.999 > 0.9 > constant.score(X, y)
        assert model.tree_.n_leaves == 4


def test_without_splits_it_is_linear_regression():
    model = linear(alpha=1e6, leaf_ridge=1e-9).fit(X, Y)
    line = LinearRegression().fit(X, Y)
    assert model.tree_.n_nodes == 1
    assert model.tree_.slopes[0, 0] == pytest.approx(line.coef_, rel=1e-4)
    assert model.predict(X) == pytest.approx(line.predict(X), rel=1e-6)


def test_branch_nodes_have_lines_of_their_own():
    model = linear(alpha=0.1, leaf_ridge=1e-9).fit(X, Y)
    assert model.tree_.n_nodes > 1
    cut = model.tree_.collapsed(np.arange(model.tree_.n_nodes) == 0)
    assert cut.n_nodes == 1 and cut.slopes[0, 0] == pytest.approx(LinearRegression().fit(X, Y).coef_, rel=1e-4)


def test_weights_are_repetitions_and_the_order_of_rows_is_nothing():
    rng = np.random.default_rng(1)
    times = rng.integers(0, 3, len(X))
    again = rng.permutation(np.repeat(np.arange(len(X)), times))
    weighted, repeated = linear().fit(X, Y, sample_weight=times), linear().fit(X[again], Y[again])
    assert weighted.tree_.weights == pytest.approx(repeated.tree_.weights, rel=1e-9)
    assert weighted.predict(X) == pytest.approx(repeated.predict(X), rel=1e-9)
    assert weighted.objective_ == pytest.approx(repeated.objective_)


def test_sparse_rows_are_the_same_rows():
    thin = np.where(np.median(X, axis=0) < X, X - X.min(axis=0), 0.0)
    dense, other = linear().fit(thin, Y), linear().fit(sparse.csr_matrix(thin), Y)
    assert other.predict(sparse.coo_array(thin)) == pytest.approx(dense.predict(thin), rel=1e-9)
    assert other.objective_ == pytest.approx(dense.objective_)


def test_large_tables_are_fitted_in_single_precision_dense_or_sparse(monkeypatch):
    thin = np.where(np.median(X, axis=0) < X, X - X.min(axis=0), 0.0)
    monkeypatch.setattr(reduction, "EXACT_CELLS", 0)
    for rows in (thin, sparse.csr_array(thin)):
        model = linear().fit(rows, Y)
        assert model.objective_ == pytest.approx(recomputed(model, thin, Y, np.ones(len(X))), rel=1e-6)
        assert model.objective_ == pytest.approx(model.trace_["objective"][-1], rel=1e-5)


def test_units_do_not_matter():
    plain = linear().fit(X, Y)
    factor = 2.0 ** np.arange(-3, 7)
    assert linear().fit(X * factor, Y).predict(X * factor) == pytest.approx(plain.predict(X))
    other = linear().fit(X, 1000.0 * Y - 7.0)
    assert other.predict(X) == pytest.approx(1000.0 * plain.predict(X) - 7.0)
    assert other.objective_ == pytest.approx(plain.objective_)


def test_several_outputs():
    both = np.column_stack([Y, 100 * X[:, 2] - X[:, 3]])
    model = linear().fit(X, both)
    assert model.predict(X).shape == both.shape and model.tree_.slopes.shape[1:] == (2, 10)
    assert model.objective_ == pytest.approx(recomputed(model, X, both, np.ones(len(X))), rel=1e-6)
    single, double = linear().fit(X, Y), linear(leaf_ridge=0.1).fit(X, np.column_stack([Y, Y]))
    assert double.predict(X)[:, 1] == pytest.approx(single.predict(X))


def test_same_seed_same_tree_with_any_number_of_threads():
    first, second = (linear(init="random", n_jobs=n).fit(X, Y) for n in (None, 2))
    assert first.tree_ == second.tree_


def test_warm_starts_between_constant_and_linear_leaves():
    short = linear(max_iter=1).fit(X, Y)
    on = linear(warm_start=short).fit(X, Y)
    assert on.trace_["objective"][0] == pytest.approx(short.objective_) and on.objective_ <= short.objective_ + 1e-9
    assert linear(warm_start=short, max_depth=1).fit(X, Y).tree_.depth <= 1
    constant = TAORegressor(max_depth=3, warm_start=short, random_state=0).fit(X, Y)
    assert constant.tree_.slopes is None
    back = linear(warm_start=constant.tree_).fit(X, Y)
    assert back.tree_.slopes is not None and back.objective_ < constant.objective_


def test_model_files(tmp_path):
    model = linear().fit(X, Y)
    model.save(tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    assert again.tree_ == model.tree_ and again.get_params() == model.get_params()
    assert np.array_equal(again.predict(X), model.predict(X)) and again.export_text() == model.export_text()
    text = (tmp_path / "model.json").read_text()
    for damaged in (text.replace('"slopes": [[', '"slopes": [[1.0, '), text.replace('"linear"', '"round"')):
        assert damaged != text
        (tmp_path / "damaged.json").write_text(damaged)
        with pytest.raises(ModelFileError):
            load_model(tmp_path / "damaged.json")


def test_model_files_from_before_linear_leaves_are_read(tmp_path):
    model = TAORegressor(max_depth=2, random_state=0).fit(X, Y)
    model.save(tmp_path / "model.json")
    text = (tmp_path / "model.json").read_text()
    old = text.replace('"leaf_ridge": 0.1, "leaves": "constant", ', "")
    assert old != text and "slopes" not in old
    (tmp_path / "old.json").write_text(old)
    again = load_model(tmp_path / "old.json")
    assert again.leaves == "constant" and np.array_equal(again.predict(X), model.predict(X))


def test_text_shows_the_formulas():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [1.0, 2.0, 3.0, 4.0], "shoe": [1.0, 1.0, 1.0, 1.0]})
    model = linear(max_depth=1, leaf_ridge=1e-9, alpha=100.0).fit(frame, [3.0, 5.0, 7.0, 9.0])
    assert model.export_text() == "value = 1 + 2*age  (4 rows)"


@pytest.mark.parametrize("settings", [{"leaves": "round"}, {"leaf_ridge": 0.0}, {"leaf_ridge": -1.0}])
def test_parameters_that_cannot_be_used(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        linear(**settings).fit(X, Y)


def test_awkward_targets_and_features():
    assert linear().fit(X, np.full(len(X), 3.0)).predict(X) == pytest.approx(np.full(len(X), 3.0))
    assert linear(leaf_ridge=1e9, alpha=9.0).fit(X[:2], Y[:2]).predict(X[:3]) == pytest.approx(np.full(3, Y[:2].mean()))
    far = X + 1e6  # a feature that varies little for its size
    assert linear().fit(far, Y).predict(far) == pytest.approx(linear().fit(X, Y).predict(X), rel=1e-4)
