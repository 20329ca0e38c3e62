"""LapTAO: starts, time limits, interrupts, bad input and model files."""

import pickle
import signal
import warnings
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor
from tests.clock import within
from tests.examples import looped

from treewright import LapTAOClassifier, LapTAORegressor, Tree, load_model
from treewright.core.budget import Budget
from treewright.engine.cart import cart_rows
from treewright.exceptions import InvalidInputError, ModelFileError
from treewright.graph import FoundGraph
from treewright.graph.exact import ExactSearch
from treewright.models.laptao import fit as module

BOTH = pytest.mark.parametrize("kind", [LapTAOClassifier, LapTAORegressor])
OTHERS = [{"n_estimators": 3}, {"estimator": "graph"}, {"estimator": DecisionTreeRegressor(max_depth=3)}]


def partly_known(kind, n=150):
    rng = np.random.default_rng(0)
    X = rng.random((n, 3))
    score = np.sin(4 * X[:, 0]) + X[:, 1]
    known = np.arange(n) % 10 == 0
    if kind is LapTAOClassifier:
        return X, np.where(known, (score > np.median(score)).astype(int), -1)
    return X, np.where(known, score, np.nan)


def small(kind, **settings):
    return kind(**{"max_depth": 3, "random_state": 0, "max_iter": 6} | settings)


# ---------------------------------------------------------------------- starts and ends


@BOTH
def test_warm_start_is_where_a_fit_without_time_stays(kind):
    X, y = partly_known(kind)
    model = small(kind).fit(X, y)
    for start in (model, model.tree_, True):
        again = clone(model) if start is True else small(kind)
        again.__dict__.update(model.__dict__ if start is True else {})
        again.set_params(warm_start=start, time_limit=1e-9)
        with pytest.warns(ConvergenceWarning):
            again.fit(X, y)
        # The splits are those of the start, so the best values of the leaves are too.
        assert again.predict(X) == pytest.approx(model.predict(X))
        assert again.trace_["label_loss"][0] == pytest.approx(model.trace_["label_loss"][-1])
        assert again.trace_["smoothness"][0] == pytest.approx(model.trace_["smoothness"][-1])
    going_on = small(kind, warm_start=model, max_depth=2).fit(X, y)
    assert going_on.tree_.depth <= 2


def test_starts_that_cannot_be_used():
    X, y = partly_known(LapTAOClassifier)
    with pytest.raises(InvalidInputError, match="has 2 features, X has 3"):
        small(LapTAOClassifier, warm_start=Tree.leaf([1.0, 1.0], 2)).fit(X, y)
    oblique = Tree.stump(np.ones(3), 1.0, np.eye(2))
    with pytest.raises(InvalidInputError, match="max_split_features=1 allows no more"):
        small(LapTAOClassifier, warm_start=oblique, max_split_features=1).fit(X, y)
    with pytest.raises(InvalidInputError, match="a warm start is one tree"):
        small(LapTAOClassifier, warm_start=oblique, n_estimators=2).fit(X, y)
    coded = Tree([1, -1, -1], [2, -1, -1], np.zeros((3, 3)), np.zeros(3), np.ones((3, 2)), [0, 0, 1], [0, -1, -1])
    with pytest.raises(InvalidInputError, match="categorical"):
        small(LapTAOClassifier, warm_start=coded).fit(X, y)
    with pytest.raises(NotFittedError, match="not fitted"):
        small(LapTAOClassifier, warm_start=LapTAOClassifier()).fit(X, y)
    forest = small(LapTAOClassifier, n_estimators=3).fit(X, y)
    with pytest.raises(InvalidInputError, match="not one tree"):
        small(LapTAOClassifier, warm_start=forest).fit(X, y)


@BOTH
@pytest.mark.parametrize("settings", [{}, {"estimator": "cart"}, *OTHERS])
def test_a_time_limit_ends_the_fit_with_a_model(kind, settings):
    X, y = partly_known(kind)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = small(kind, time_limit=1e-9, **settings).fit(X, y)
    assert [warning.category for warning in told] == [ConvergenceWarning] and told[0].filename == __file__
    assert "ended with status 'time_limit'" in str(told[0].message)
    assert model.status_ == "time_limit" and "the time was over" in model.reason_ and len(model.trace_) == 1
    assert model.predict(X).shape == (len(X),) and np.isfinite(model.objective_)


@BOTH
def test_ctrl_c_ends_the_fit_with_the_best_tree(kind, monkeypatch):
    X, y = partly_known(kind)
    search, seen = module.smooth_and_fit, []

    def pressed(task, step, schedule, budget, on_round, sharpen):
        def press(now):
            seen.append(now.objective)
            if now.number == 2:
                signal.raise_signal(signal.SIGINT)

        return search(task, step, schedule, budget, press, sharpen)

    monkeypatch.setattr(module, "smooth_and_fit", pressed)
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore it
    try:
        with pytest.warns(ConvergenceWarning, match="'interrupted' .*it was interrupted after 2 rounds"):
            model = small(kind, tol=0.0).fit(X, y)
    finally:
        signal.signal(signal.SIGINT, previous)
    assert model.status_ == "interrupted" and model.reason_ == "it was interrupted after 2 rounds"
    assert len(seen) == 3 and model.objective_ == min(seen)


@BOTH
def test_ends_of_the_rounds(kind, capsys):
    X, y = partly_known(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = small(kind, max_iter=3, tol=0.0, verbose=1).fit(X, y)
        assert model.n_iter_ == 3 and model.reason_ == "all rounds are done" and model.status_ == "local"
        *lines, last = capsys.readouterr().err.splitlines()
        assert f"ended: local  objective {model.objective_:.6g}" in last
        assert [f"round {k:2d}" in line for k, line in enumerate(lines)] == [True] * 4 + [False]
        assert "stretched" in lines[4] and np.array_equal(model.trace_["mu"][3:], [model.trace_["mu"][3]] * 2)
        assert f"objective {model.objective_:.6g}" in lines[4]
        assert f"objective {model.trace_['objective'][: model.n_iter_ + 1].min():.6g}" in lines[model.best_iter_]
        settled = small(kind, max_iter=20, tol=1.0).fit(X, y)
        assert settled.n_iter_ == 2 and settled.reason_ == "the model did not change any more"
        assert small(kind, max_iter=0).fit(X, y).n_iter_ == 0
        graph = small(kind, estimator="graph").fit(X, y)
        assert graph.n_iter_ == 1 and len(graph.trace_) == 1 and graph.best_iter_ == 0
    assert not capsys.readouterr().err


@BOTH
def test_alpha_is_told_and_gives_the_same_tree_again(kind):
    X, y = partly_known(kind)
    model = small(kind).fit(X, y)
    assert model.alpha_ == pytest.approx(np.sqrt(150) / 80)
    again = small(kind, alpha=model.alpha_).fit(X, y)
    assert again.tree_ == model.tree_ and again.alpha_ == model.alpha_


# ---------------------------------------------------------------------- the search for neighbours and the clock


def clusters(kind, n, p=48):
    """Rows in four clusters, two of each class, far enough apart for any tree; 1 % of them labelled."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 4, n)
    X = rng.standard_normal((n, p)) + 3.0 * rng.standard_normal((4, p))[group]
    truth = group % 2
    few = np.where(np.arange(n) < n // 100, truth, -1)
    return X, (few if kind is LapTAOClassifier else np.where(few < 0, np.nan, few)), truth


def told_by(fit):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = fit()
    return model, [str(one.message) for one in told if issubclass(one.category, ConvergenceWarning)]


@BOTH
@pytest.mark.parametrize("neighbors", ["auto", "exact"])
def test_a_search_for_neighbours_that_takes_too_long_leaves_a_tree_and_is_told(kind, neighbors):
    X, y, truth = clusters(kind, 30_000)
    small(kind).fit(X[:400], y[:400])  # compiles
    model = small(kind, time_limit=0.4, neighbors=neighbors)
    with within(15):
        model, told = told_by(lambda: model.fit(X, y))
    assert model.status_ == "time_limit" and "neighbours" in model.reason_
    assert "search for neighbours of 30000 rows takes too long" in told[0] and "are used" in told[0]  # before
    assert "ended with status 'time_limit'" in told[-1] and "search for neighbours" in told[-1]
    assert model.tree_.n_leaves > 1
    right = (model.predict(X) > 0.5) == (truth > 0.5)
    assert np.mean(right) > 0.9
    assert np.mean((model.transduction_ > 0.5) == (truth > 0.5)) > 0.9


@BOTH
@pytest.mark.parametrize("settings", [{}, {"estimator": "cart"}, *OTHERS])
def test_without_a_graph_the_labelled_rows_alone_are_used(kind, settings, monkeypatch):
    X, y, truth = clusters(kind, 1200, 5)
    none = FoundGraph(None, 0.0, "there was no time to search for neighbours")
    monkeypatch.setattr(module.GraphSettings, "search", lambda *_: none)
    model, told = told_by(lambda: small(kind, **settings).fit(X, y))
    assert len(told) == 1 and "there was no time to search for neighbours; there is no graph" in told[0]
    assert model.status_ == "time_limit" and "neighbours" in model.reason_ and model.trace_["smoothness"][0] == 0
    known = np.arange(1200) < 12
    assert np.array_equal(model.transduction_[known], truth[known])
    assert model.transduction_[~known] == pytest.approx(model.predict(X[~known]))
    assert len(np.unique(model.predict(X))) > 1
    if settings.get("estimator") == "cart":
        cart = DecisionTreeRegressor(max_depth=3, random_state=model._seed()).fit(X[known], truth[known])
        assert (model.predict(X) > 0.5).tolist() == (cart.predict(X) > 0.5).tolist()


@BOTH
def test_ctrl_c_while_neighbours_are_searched_for(kind, monkeypatch):
    X, y, truth = clusters(kind, 3000, 5)
    monkeypatch.setattr("treewright.graph.exact._PART_ROWS", 100)
    find, asked = ExactSearch.find, []

    def pressed(self, rows):
        asked.append(rows)
        if len(asked) == 12:
            signal.raise_signal(signal.SIGINT)
        return find(self, rows)

    monkeypatch.setattr(ExactSearch, "find", pressed)
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore it
    try:
        model, told = told_by(lambda: small(kind).fit(X, y))
    finally:
        signal.signal(signal.SIGINT, previous)
    assert len(asked) == 12 and model.status_ == "interrupted" and "neighbours" in model.reason_
    assert len(told) == 1 and "ended with 40% of the rows" in told[0]
    assert model.tree_.n_leaves > 1 and np.mean((model.predict(X) > 0.5) == (truth > 0.5)) > 0.9


@BOTH
@pytest.mark.parametrize(
    "settings", [{}, {"estimator": "cart"}, {"n_estimators": 3}, {"max_split_features": 1}, {"max_split_features": 2}]
)
def test_without_any_time_the_tree_is_no_constant(kind, settings):
    X, y, truth = clusters(kind, 2000, 5)
    model, _ = told_by(lambda: small(kind, time_limit=1e-9, **settings).fit(X, y))
    assert model.status_ == "time_limit"
    assert np.mean((model.predict(X) > 0.5) == (truth > 0.5)) > 0.75  # CART on the 20 labels has .83, a constant .5


@BOTH
def test_a_forest_without_time_has_the_trees_that_there_was_time_for(kind):
    X, y, _ = clusters(kind, 2000, 5)
    model, _ = told_by(lambda: small(kind, time_limit=1e-9, n_estimators=50).fit(X, y))
    assert len(model.trees_) == 3 and model.predict(X).shape == (2000,)
    assert len(small(kind, time_limit=600, n_estimators=5).fit(X, y).trees_) == 5


@BOTH
def test_a_graph_on_disk_is_taken_whatever_the_time(kind, tmp_path):
    X, y, _ = clusters(kind, 3000, 20)
    whole = small(kind, graph_cache=tmp_path).fit(X, y)
    assert whole.status_ == "local" and len(list(tmp_path.iterdir())) == 1
    model, told = told_by(lambda: small(kind, graph_cache=tmp_path, time_limit=1e-9).fit(X, y))
    assert "time was over" in model.reason_ and len(told) == 1 and "neighbours" not in told[0]


def test_lap_cart_takes_fewer_rows_where_time_is_short():
    X, y, truth = clusters(LapTAORegressor, 5000, 5)
    rows, budget = [], Budget(60.0)
    for seconds in (1e-9, 1.0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("treewright.engine.cart._CART_SECONDS", seconds)
            rows.append(len(cart_rows(X, 3, 0, budget)))
    assert rows == [5000, 1000]
    assert np.array_equal(cart_rows(X, 3, 0, Budget()), np.arange(5000))


# ---------------------------------------------------------------------- bad input


@looped(
    "settings, message",
    [
        ({"alpha": -1.0}, "alpha"),
        ({"stretch": -0.1}, "stretch"),
        ({"alpha": "much"}, "alpha"),
        ({"gamma": 0.0}, "gamma"),
        ({"max_depth": 0}, "max_depth"),
        ({"max_depth": 17}, "max_depth"),
        ({"estimator": "oak"}, "estimator"),
        ({"max_split_features": 0}, "max_split_features"),
        ({"estimator": object()}, "estimator"),
        ({"init": "zero"}, "init"),
        ({"n_estimators": 0}, "n_estimators"),
        ({"max_samples": 0.0}, "max_samples"),
        ({"max_features": 1.5}, "max_features"),
        ({"max_iter": -1}, "max_iter"),
        ({"init_passes": 0}, "init_passes"),
        ({"passes": 0}, "passes"),
        ({"mu": 0.0}, "mu"),
        ({"mu_factor": 0.9}, "mu_factor"),
        ({"multiplier_rule": "half"}, "multiplier"),
        ({"tol": -1.0}, "tol"),
        ({"n_neighbors": 0}, "n_neighbors"),
        ({"perplexity": 0.5}, "perplexity"),
        ({"neighbors": "some"}, "neighbors"),
        ({"time_limit": 0.0}, "time_limit"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"warm_start": "yes"}, "warm_start"),
        ({"estimator": "cart", "n_estimators": 2}, "n_estimators=2 makes forests of TAO trees"),
        ({"estimator": LogisticRegression()}, "no regressor"),
    ],
)
@BOTH
def test_parameters_that_cannot_be_used(kind, settings, message):
    with pytest.raises(ValueError, match=message):
        kind(**settings).fit(*partly_known(kind))


def test_parameters_of_trust():
    for settings in ({"trust": 1.5}, {"trust": -0.1}, {"trust_weight": 0.0}):
        with pytest.raises(ValueError, match="trust"):
            LapTAOClassifier(**settings).fit(*partly_known(LapTAOClassifier))


def test_labels_that_cannot_be_used():
    X, y = partly_known(LapTAOClassifier)
    with pytest.raises(InvalidInputError, match="only one class"):
        small(LapTAOClassifier).fit(X, np.where(y == 1, "a", None))
    with pytest.raises(InvalidInputError, match=r"only one class, 1\.0; .* rows with -1\.0 count as unlabelled"):
        small(LapTAOClassifier).fit(X, np.where(y < 0, np.nan, 2.0 * y - 1.0))
    with pytest.raises(InvalidInputError, match="none of the 150 rows has a label"):
        small(LapTAOClassifier).fit(X, np.full(150, -1))
    with pytest.raises(InvalidInputError, match="zero"):
        small(LapTAOClassifier).fit(X, y, sample_weight=(y < 0).astype(float))
    X, y = partly_known(LapTAORegressor)
    with pytest.raises(InvalidInputError, match="none of the 150 rows has a target"):
        small(LapTAORegressor).fit(X, np.full(150, np.nan))
    with pytest.raises(ValueError, match="unlabeled"):
        small(LapTAORegressor, unlabeled="?").fit(X, y)
    with pytest.warns(ConvergenceWarning, match=r"after \d+\.\d s: the time was over\. The model has objective"):
        small(LapTAORegressor, estimator="graph", time_limit=1e-9).fit(X, y)
    with pytest.raises(InvalidInputError, match="no labelled row"):
        small(LapTAORegressor).fit(X, y, sample_weight=np.isnan(y).astype(float))
    with pytest.raises(InvalidInputError, match="row 1 has some outputs and misses others"):
        small(LapTAORegressor).fit(X, np.column_stack([y, X[:, 0]]))
    with pytest.raises(ValueError, match="inf"):
        small(LapTAORegressor).fit(X, np.where(np.isnan(y), np.inf, y))


@BOTH
def test_rows_and_weights_that_cannot_be_used(kind):
    X, y = partly_known(kind)
    with pytest.raises(ValueError, match="infinite values in column"):
        small(kind).fit(np.where(X > 0.99, np.inf, X), y)
    with pytest.raises(ValueError, match="Negative values"):
        small(kind).fit(X, y, sample_weight=-np.ones(150))
    with pytest.raises(ValueError, match="inconsistent"):
        small(kind).fit(X, y[:-1])
    knn = small(kind, estimator=KNeighborsRegressor())
    with pytest.raises(InvalidInputError, match=r"KNeighborsRegressor\(\) has no sample_weight"):
        knn.fit(X, y, sample_weight=np.arange(1.0, 151.0))
    weight = (np.arange(150) < 120).astype(float)  # to leave rows out is possible
    assert np.array_equal(knn.fit(X, y, sample_weight=weight).predict(X), clone(knn).fit(X[:120], y[:120]).predict(X))
    model = small(kind).fit(X, y)
    before = model.tree_
    with pytest.raises(InvalidInputError, match="graph has shape"):
        model.fit(X[:, :2], y, graph=np.ones((2, 2)))
    assert model.tree_ is before and model.n_features_in_ == 3  # a fit that fails leaves the old one whole
    assert np.isfinite(model.predict(X)).all()


# ---------------------------------------------------------------------- files and copies


@BOTH
@pytest.mark.parametrize("tree", ["tao", "cart"])
def test_model_files(kind, tree, tmp_path):
    X, y = partly_known(kind)
    model = small(kind, estimator=tree).fit(X, y)
    model.save(tmp_path / "model.json")
    for again in (load_model(tmp_path / "model.json"), kind.load(tmp_path / "model.json")):
        assert type(again) is kind and again.tree_ == model.tree_
        assert str(again.get_params()) == str(model.get_params())
        assert np.array_equal(again.predict(X), model.predict(X)) and again.export_text() == model.export_text()
        assert np.array_equal(again.apply(X), model.apply(X))
        for name in ("objective_", "status_", "solve_time_", "n_iter_", "best_iter_", "reason_", "alpha_"):
            assert getattr(again, name) == getattr(model, name)
        assert np.array_equal(again.trace_, model.trace_) and again.trace_.dtype == model.trace_.dtype
        if kind is LapTAOClassifier:
            assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    text = (tmp_path / "model.json").read_text()
    columns = '"columns": ["seconds", "objective"'
    for damaged in (
        text.replace('"n_iter": ', '"n_iter": -1'),
        text.replace('"best_iter": ', '"best_iter": -1'),
        text.replace(f'"alpha": {model.alpha_!r}', '"alpha": -0.5'),
        text.replace('"reason": "', '"reason": 3, "words": "'),
        text.replace('"rows": [', '"rows": [[1.0], '),
        text.replace('"rows": ', '"lines": '),
        text.replace(columns, '"columns": ["seconds", "seconds"'),
        text.replace(columns, '"columns": ["objective", "seconds"'),
        text.replace('"bound": null', '"bound": 0.0'),
    ):
        assert damaged != text
        (tmp_path / "damaged.json").write_text(damaged)
        with pytest.raises(ModelFileError):
            load_model(tmp_path / "damaged.json")


@BOTH
@pytest.mark.parametrize("settings", OTHERS)
def test_what_is_not_one_tree_says_so(kind, settings, tmp_path):
    X, y = partly_known(kind)
    model = small(kind, **settings).fit(X, y)
    for call in (
        lambda: model.save(tmp_path / "model.json"),
        lambda: model.apply(X),
        lambda: model.decision_path(X),
        model.export_text,
    ):
        with pytest.raises(InvalidInputError, match="not one tree"):
            call()
    assert not (tmp_path / "model.json").exists() and not hasattr(model, "tree_")
    with pytest.raises(NotFittedError):
        clone(model).export_text()


@BOTH
@pytest.mark.parametrize("settings", [{}, *OTHERS])
def test_pickles_clones_and_second_fits(kind, settings):
    X, y = partly_known(kind)
    model = small(kind, **settings).fit(X, y)
    assert np.array_equal(clone(model).fit(X, y).predict(X), model.predict(X))
    for k, other in enumerate(OTHERS):  # nothing of the first fit is left in a second one of another kind
        again = pickle.loads(pickle.dumps(model))
        assert np.array_equal(again.predict(X), model.predict(X))
        mixed = again.set_params(**{"estimator": "tao", "n_estimators": 1} | other).fit(X, y)
        assert np.array_equal(mixed.predict(X), predictions_of_another(kind, k))


@cache
def predictions_of_another(kind, k):
    X, y = partly_known(kind)
    return small(kind, **OTHERS[k]).fit(X, y).predict(X)
