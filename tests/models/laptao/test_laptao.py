"""LapTAOClassifier and LapTAORegressor: what a fit promises about accuracy, weights, graphs, ends and files."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, make_moons
from sklearn.linear_model import Ridge

from treewright import LapTAOClassifier, LapTAORegressor, TAOClassifier
from treewright.data import reduction
from treewright.exceptions import InvalidInputError
from treewright.graph import neighbor_graph
from treewright.models.laptao import fit as module

BOTH = pytest.mark.parametrize("kind", [LapTAOClassifier, LapTAORegressor])


def moons(n=240, labels=8):
    """Rows, true classes, and classes of which few are known."""
    X, truth = make_moons(n, noise=0.1, random_state=1)
    y = np.full(n, -1)
    rng = np.random.default_rng(0)
    for k in (0, 1):
        some = rng.choice(np.flatnonzero(truth == k), labels // 2, replace=False)
        y[some] = k
    return X, truth, y


def partly_known(kind, n=240, labels=8):
    X, _, y = moons(n, labels)
    if kind is LapTAOClassifier:
        return X, y
    return X, np.where(y < 0, np.nan, 10.0 * X[:, 0] + X[:, 1] ** 2)


def small(kind, **settings):
    return kind(**{"max_depth": 3, "random_state": 0, "max_iter": 4} | settings)


def double_sum(W, values):
    apart = ((values[:, None] - values[None]) ** 2).sum(axis=2)
    return 0.5 * (W * apart).sum()


def unit(X):
    return (X - X.min(axis=0)) / np.ptp(X, axis=0)


# ---------------------------------------------------------------------- what comes out


def test_two_moons_with_eight_labels():
    X, truth, y = moons()
    model = LapTAOClassifier(max_depth=3, random_state=0).fit(X, y)
    alone = TAOClassifier(max_depth=3, alpha=0.1, random_state=0).fit(X[y >= 0], y[y >= 0])
    assert model.score(X, truth) > max(0.92, alone.score(X, truth) + 0.05)
    assert np.mean(model.transduction_ == truth) > 0.92
    assert np.array_equal(model.transduction_[y >= 0], y[y >= 0])
    assert model.status_ == "local" and model.tree_.depth <= 3


def test_digits_with_one_label_in_twenty():
    X, truth = load_digits(return_X_y=True)
    known = np.random.default_rng(0).random(len(X)) < 0.05
    model = LapTAOClassifier(max_depth=5, max_iter=3, random_state=0).fit(X, np.where(known, truth, -1))
    alone = TAOClassifier(max_depth=5, alpha=0.1, random_state=0).fit(X[known], truth[known])
    assert model.score(X[~known], truth[~known]) > alone.score(X[~known], truth[~known]) + 0.15
    assert np.mean(model.transduction_[~known] == truth[~known]) > 0.95


@pytest.mark.parametrize("stretch", [0.0, 0.25])
def test_the_objective_is_that_of_the_predictions(stretch):
    X, y = partly_known(LapTAORegressor)
    known = ~np.isnan(y)
    rng = np.random.default_rng(0)
    weight = rng.integers(1, 4, len(X)).astype(float)
    W = neighbor_graph(unit(X), 10, 5.0)
    model = small(LapTAORegressor, alpha=0.3, gamma=0.05, stretch=stretch).fit(X, y, sample_weight=weight, graph=W)
    t = model.predict(X)
    spread = np.cov(y[known], aweights=weight[known], ddof=0)
    loss = weight[known] @ (t[known] - y[known]) ** 2 / spread
    edges = 0.05 * double_sum(W.toarray(), t[:, None]) / spread
    assert model.tree_.values[0] == pytest.approx(np.average(t, weights=weight))  # inner nodes are means too
    kept = -1 if stretch else model.best_iter_
    best = model.trace_[kept]
    assert best["label_loss"] == pytest.approx(loss, rel=1e-6)
    assert best["smoothness"] == pytest.approx(edges, rel=1e-6)
    ratio = [np.abs(w).sum() / np.linalg.norm(w) for w in model.tree_.weights[model.tree_.branches] * np.ptp(X, axis=0)]
    price = best["price"] / sum(ratio)  # 0.3 times the variance of the smoothed labels
    assert 0.0 < price < 0.3
    assert model.objective_ == pytest.approx(loss + edges + best["price"], rel=1e-6) == best["objective"]
    rounds = model.trace_["objective"][: model.n_iter_ + 1]
    assert model.best_iter_ == np.argmin(rounds)
    rows = model.n_iter_ + (2 if stretch else 1)
    assert model.trace_.shape == (rows,) and model.trace_["mu"][1] == model.mu
    assert np.all(np.diff(model.trace_["seconds"]) >= 0)
    parts = [model.trace_[name] for name in ("label_loss", "smoothness", "price")]
    assert model.trace_["objective"] == pytest.approx(sum(parts))


def test_the_values_of_leaves_are_best():
    X, y = partly_known(LapTAORegressor)
    known = ~np.isnan(y)
    W = neighbor_graph(unit(X), 10, 5.0)
    model = small(LapTAORegressor, gamma=0.05).fit(X, y, graph=W)
    leaf = np.unique(model.apply(X), return_inverse=True)[1]
    B, J, dense = np.eye(leaf.max() + 1)[leaf], np.diag(known.astype(float)), W.toarray()
    L = np.diag(dense.sum(axis=1)) - dense
    targets = np.where(known, y, 0.0)
    values = np.linalg.solve(B.T @ (J + 0.05 * L) @ B, B.T @ J @ targets)
    assert model.predict(X) == pytest.approx(B @ values)


def test_probabilities_are_the_scores_cut_off_and_normalized():
    X, _, y = moons()
    for settings in ({}, {"estimator": "cart"}, {"n_estimators": 3}, {"estimator": "graph"}, {"estimator": Ridge()}):
        model = small(LapTAOClassifier, **settings).fit(X, y)
        shares = model.predict_proba(X)
        assert shares.sum(axis=1) == pytest.approx(np.ones(len(X))) and shares.min() >= 0
        assert np.array_equal(model.classes_[shares.argmax(axis=1)], model.predict(X))
    single = small(LapTAOClassifier).fit(X, y)
    assert np.array_equal(single.tree_.labels[single.apply(X)], single.predict(X))
    assert single.tree_.values[0].sum() == pytest.approx(len(X))  # shares times the weight of the rows


def test_several_outputs_and_units_of_the_target():
    X, y = partly_known(LapTAORegressor)
    one = small(LapTAORegressor).fit(X, y)
    two = small(LapTAORegressor).fit(X, np.column_stack([y, y]))
    assert two.predict(X).shape == two.transduction_.shape == (len(X), 2)
    column = small(LapTAORegressor).fit(X, y[:, None])
    assert column.predict(X).shape == column.transduction_.shape == (len(X),)
    assert two.predict(X)[:, 1] == pytest.approx(one.predict(X), abs=1e-6)
    other = small(LapTAORegressor).fit(X, 1000.0 * y - 7.0)
    assert other.predict(X) == pytest.approx(1000.0 * one.predict(X) - 7.0)
    assert other.transduction_ == pytest.approx(1000.0 * one.transduction_ - 7.0)
    assert other.objective_ == pytest.approx(one.objective_)
    assert np.array_equal(one.transduction_[~np.isnan(y)], y[~np.isnan(y)]) and not np.isnan(one.transduction_).any()
    model = small(LapTAORegressor, estimator=Ridge(alpha=0.1)).fit(X, 1000.0 * y - 7.0)
    assert model.predict(X) == pytest.approx(
        1000.0 * small(LapTAORegressor, estimator=Ridge(alpha=0.1)).fit(X, y).predict(X) - 7.0
    )


@pytest.mark.parametrize("factor", [1e200, 1e-200])
def test_very_large_and_very_small_targets(factor):
    X, y = partly_known(LapTAORegressor)
    plain, other = small(LapTAORegressor).fit(X, y), small(LapTAORegressor).fit(X, factor * y)
    assert other.predict(X) / factor == pytest.approx(plain.predict(X))
    assert other.objective_ == pytest.approx(plain.objective_)


@pytest.mark.parametrize("seed", range(5))
def test_equal_targets_stay_equal_whatever_the_weights(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.random((30, 2)), np.where(np.arange(30) < 15, 0.1, np.nan)
    model = small(LapTAORegressor).fit(X, y, sample_weight=rng.random(30) + 0.1)
    assert model.tree_.n_leaves == 1 and model.predict(X) == pytest.approx(np.full(30, 0.1))
    assert model.objective_ == pytest.approx(0.0, abs=1e-20)


def test_all_rows_labelled_and_equal_targets():
    X, truth, _ = moons()
    assert small(LapTAOClassifier).fit(X, truth).score(X, truth) > 0.9
    model = small(LapTAORegressor).fit(X, np.full(len(X), 0.1))
    assert model.predict(X) == pytest.approx(np.full(len(X), 0.1)) and model.tree_.n_leaves == 1
    model = small(LapTAOClassifier).fit(np.ones((4, 2)), [0, 1, 1, -1])
    assert model.tree_.shares() == pytest.approx(np.array([[1, 2]]) / 3)
    assert 1 / 3 < model.predict_proba([[1.0, 1.0]])[0, 0] < 1 / 2  # three labels are few


# ---------------------------------------------------------------------- labels


@pytest.mark.parametrize("mark", [-1, None, np.nan])
def test_names_of_classes_and_marks(mark):
    X, _, y = moons()
    codes = small(LapTAOClassifier).fit(X, y)
    names = np.array([mark if k < 0 else ("no", "yes")[k] for k in y], dtype=object)
    model = small(LapTAOClassifier).fit(X, names)
    assert model.classes_.tolist() == ["no", "yes"]
    assert np.array_equal(model.predict(X) == "yes", codes.predict(X) == 1)
    assert np.array_equal(model.transduction_ == "yes", codes.transduction_ == 1)
    assert "yes" in model.export_text()


def test_other_marks():
    X, _, y = moons()
    plain = small(LapTAOClassifier).fit(X, y).predict(X)
    model = small(LapTAOClassifier, unlabeled="?").fit(X, np.array(["?", "a", "b"])[y + 1])
    assert np.array_equal(model.predict(X) == "b", plain == 1)
    X, y = partly_known(LapTAORegressor)
    plain = small(LapTAORegressor).fit(X, y).predict(X)
    marked = np.where(np.isnan(y), -99.0, y)
    assert np.array_equal(small(LapTAORegressor, unlabeled=-99.0).fit(X, marked).predict(X), plain)
    nothing = np.array([None if np.isnan(v) else v for v in y], dtype=object)
    assert np.array_equal(small(LapTAORegressor).fit(X, nothing).predict(X), plain)


@BOTH
def test_frames(kind):
    X, y = partly_known(kind)
    frame = pd.DataFrame(X, columns=["east", "north"])
    model = small(kind).fit(frame, pd.Series(y))
    assert model.feature_names_in_.tolist() == ["east", "north"] and "north" in model.export_text()
    assert np.array_equal(model.predict(frame), small(kind).fit(X, y).predict(X))


# ---------------------------------------------------------------------- weights, orders, units


@BOTH
@pytest.mark.parametrize("settings", [{}, {"n_estimators": 3}, {"estimator": "cart"}, {"estimator": "graph"}])
def test_weights_are_repetitions_and_the_order_of_rows_is_nothing(kind, settings):
    X, y = partly_known(kind)
    rng = np.random.default_rng(1)
    times = rng.integers(0, 3, len(X))
    again = rng.permutation(np.repeat(np.arange(len(X)), times))
    weighted = small(kind, **settings).fit(X, y, sample_weight=times)
    repeated = small(kind, **settings).fit(X[again], y[again])
    assert weighted.objective_ == pytest.approx(repeated.objective_)
    assert weighted.predict(X) == pytest.approx(repeated.predict(X), rel=1e-6)
    used = times > 0
    assert weighted.transduction_[again] == pytest.approx(repeated.transduction_, rel=1e-6)
    left_out = ~used & ~np.isin(y, [0, 1] if kind is LapTAOClassifier else y[~np.isnan(y)])
    assert np.array_equal(weighted.transduction_[left_out], weighted.predict(X[left_out]))
    order = rng.permutation(len(X))
    plain, shuffled = small(kind, **settings).fit(X, y), small(kind, **settings).fit(X[order], y[order])
    assert shuffled.predict(X) == pytest.approx(plain.predict(X), rel=1e-6)


@BOTH
def test_units_of_features_do_not_matter(kind):
    X, y = partly_known(kind)
    factor = np.array([1000.0, 0.25])
    plain, other = small(kind).fit(X, y), small(kind).fit(X * factor - 3.0, y)
    assert other.predict(X * factor - 3.0) == pytest.approx(plain.predict(X), rel=1e-6)


@BOTH
@pytest.mark.parametrize(
    "settings", [{}, {"n_estimators": 3}, {"estimator": "cart"}, {"estimator": "graph"}, {"estimator": Ridge()}]
)
def test_sparse_rows_are_the_same_rows(kind, settings, monkeypatch):
    X, y = partly_known(kind)
    X = np.where(np.abs(X) < 0.3, 0.0, X)
    dense = small(kind, **settings).fit(X, y)
    thin = small(kind, **settings).fit(sparse.csr_matrix(X), y)
    for rows in (X, sparse.csr_array(X), sparse.coo_array(X)):
        assert thin.predict(rows) == pytest.approx(dense.predict(X))
        assert dense.predict(rows) == pytest.approx(dense.predict(X))
    monkeypatch.setattr(module, "_BLOCK_CELLS", 100)  # fifty rows at once
    assert dense.predict(sparse.csr_array(X)) == pytest.approx(dense.predict(X))


@BOTH
@pytest.mark.parametrize(
    "settings",
    [{}, {"stretch": 0.0}, {"n_estimators": 4}, {"estimator": "cart"}, {"estimator": "graph"}, {"estimator": Ridge()}],
    ids=["stretched", "tree", "forest", "cart", "graph", "ridge"],
)
def test_large_tables_are_fitted_in_single_precision_dense_or_sparse(kind, settings, monkeypatch):
    X, y = partly_known(kind)
    X = np.where(np.abs(X) < 0.1, 0.0, X)
    _, first = np.unique(X, axis=0, return_index=True)
    X, y = X[first], y[first]  # large sparse tables are not merged
    exact = small(kind, **settings).fit(X, y)
    monkeypatch.setattr(reduction, "EXACT_CELLS", 0)
    for rows in (X, sparse.csr_array(X)):
        model = small(kind, **settings).fit(rows, y)
        for other in (X, sparse.csr_array(X)):
            if kind is LapTAOClassifier:
                assert np.mean(model.predict(other) == exact.predict(X)) > 0.9
            else:
                assert np.corrcoef(model.predict(other), exact.predict(X))[0, 1] > 0.9
        if settings:  # stretched points are drawn otherwise in another order, and the objective is not lowered on them
            assert model.objective_ == pytest.approx(exact.objective_, rel=0.2)


@BOTH
def test_same_seed_same_model_with_any_number_of_threads(kind):
    X, y = partly_known(kind)
    one, two = (small(kind, n_jobs=n).fit(X, y) for n in (None, 2))
    assert one.tree_ == two.tree_ and all(
        np.array_equal(one.trace_[name], two.trace_[name]) for name in one.trace_.dtype.names if name != "seconds"
    )
    one, two, other = (
        small(kind, n_estimators=3, n_jobs=n, random_state=seed).fit(X, y) for n, seed in ((1, 0), (2, 0), (1, 1))
    )
    assert one.trees_ == two.trees_ != other.trees_


# ---------------------------------------------------------------------- graphs


@BOTH
def test_a_given_graph_is_used_dense_or_sparse(kind):
    X, y = partly_known(kind)
    W = neighbor_graph(unit(X), 10, 5.0)
    plain = small(kind).fit(X, y)
    for graph in (W, W.toarray(), sparse.coo_matrix(W), W + 2.0 * sparse.eye_array(len(X))):
        assert small(kind).fit(X, y, graph=graph).predict(X) == pytest.approx(plain.predict(X), rel=1e-6)
    assert small(kind).fit(X, y, graph=5.0 * W).objective_ != pytest.approx(plain.objective_)


@BOTH
def test_graphs_that_cannot_be_used_are_refused_before_the_work(kind, monkeypatch):
    X, y = partly_known(kind)
    monkeypatch.setattr(module, "smooth_and_fit", None)
    monkeypatch.setattr(module, "reduced_sample", None)
    upper = np.triu(np.ones((240, 240)))
    for graph, message in (
        (np.ones((3, 3)), r"shape \(3, 3\), X has 240 rows"),
        (-np.ones((240, 240)), "must not be negative"),
        (upper, "not symmetric"),
        (np.where(upper > 0, np.nan, 0.0), "must be finite"),
        ("near", "not a table of numbers"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            small(kind).fit(X, y, graph=graph)


def test_rows_that_no_label_reaches_get_the_majority_or_the_mean():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.random((40, 2)), rng.random((20, 2)) + 5.0])
    part = (np.arange(60) >= 40).astype(int)
    W = (part[:, None] == part) / 40.0
    y = np.full(60, -1)
    y[:5] = [0, 1, 1, 0, 1]
    model = small(LapTAOClassifier).fit(X, y, graph=W)
    assert np.all(model.transduction_[40:] == 1)
    assert np.all(model.predict(X[40:]) == 1)
    targets = np.where(y < 0, np.nan, np.arange(60.0))
    regressor = small(LapTAORegressor).fit(X, targets, graph=W)
    assert regressor.transduction_[40:] == pytest.approx(np.full(20, 2.0))


@BOTH
def test_the_graph_is_kept(kind, tmp_path):
    X, y = partly_known(kind)
    first = small(kind, graph_cache=tmp_path).fit(X, y)
    assert len(list(tmp_path.iterdir())) > 0
    assert np.array_equal(small(kind, graph_cache=tmp_path).fit(X, y).predict(X), first.predict(X))
