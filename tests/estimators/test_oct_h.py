"""OCTHClassifier as its users meet it."""

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from treewright import OCTHClassifier, Tree, load_model
from treewright.search.greedy import cart_tree, tree_from_sklearn
from treewright.solvers.highs import HighsSolver


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True)


@pytest.fixture(scope="module")
def fitted(wine):
    return OCTHClassifier(random_state=0).fit(*wine)


def quiet_fit(model, X, y, **kw):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y, **kw)


def noise(n=80, p=5, seed=0, k=2):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)), rng.integers(0, k, n)


# ---------------------------------------------------------------------- the promised results


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_never_worse_than_cart_and_reproducible(load):
    X, y = load(return_X_y=True)
    first, second = (OCTHClassifier(max_depth=2, time_limit=30, random_state=0).fit(X, y) for _ in range(2))
    cart = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    assert first.score(X, y) >= cart.score(X, y)
    assert first.bound_ <= first.objective_
    assert first.tree_ == second.tree_
    assert first.solve_time_ <= 33


def test_zero_error_needs_no_solver(wine, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a solver was called")

    monkeypatch.setattr(HighsSolver, "solve", refuse)
    model = OCTHClassifier(random_state=0).fit(*wine)
    assert (model.status_, model.objective_, model.bound_, model.gap_) == ("optimal", 0.0, 0.0, 0.0)


def test_inseparable_rows_are_a_proof_too(monkeypatch):
    monkeypatch.setattr(HighsSolver, "solve", lambda *a, **k: pytest.fail("a solver was called"))
    X, y = [[0.0], [0.0], [0.0], [1.0]], [0, 0, 1, 1]
    model = OCTHClassifier(max_depth=1).fit(X, y)
    assert model.status_ == "optimal"
    assert model.objective_ == pytest.approx(0.5)  # one row of two in the smaller class cannot be right


def test_objective_is_error_over_baseline_plus_price():
    X, y = load_iris(return_X_y=True)
    model = quiet_fit(OCTHClassifier(complexity=0.01, time_limit=10, random_state=0), X, y)
    errors = np.sum(model.predict(X) != y)
    used = np.count_nonzero(model.tree_.weights)
    assert model.objective_ == pytest.approx(errors / 100 + 0.01 * used)


def test_complexity_makes_splits_sparse():
    X, y = load_iris(return_X_y=True)
    dense = quiet_fit(OCTHClassifier(time_limit=10, random_state=0), X, y)
    sparse = quiet_fit(OCTHClassifier(complexity=0.05, time_limit=10, random_state=0), X, y)
    assert np.count_nonzero(sparse.tree_.weights) < np.count_nonzero(dense.tree_.weights)


@pytest.mark.parametrize(("asked", "least"), [(20, 20), (0.2, 30)])
def test_min_samples_leaf_is_kept(asked, least):
    X, y = load_iris(return_X_y=True)
    model = quiet_fit(OCTHClassifier(min_samples_leaf=asked, time_limit=5, random_state=0), X, y)
    assert np.bincount(model.apply(X))[model.tree_.leaves].min() >= least


def test_weights_say_which_errors_matter():
    X, y = [[0.0], [0.0], [1.0]], [0, 1, 1]
    for heavy, expected in ((0, 0), (1, 1)):
        weight = np.where(np.array(y) == heavy, 5.0, 1.0)
        model = OCTHClassifier(max_depth=1).fit(X, y, sample_weight=weight)
        assert model.predict([[0.0]])[0] == expected


def test_more_classes_than_leaves():
    X = np.arange(12.0)[:, None]
    y = np.arange(12) // 2
    model = OCTHClassifier(max_depth=1, random_state=0).fit(X, y)
    assert model.status_ == "optimal"
    assert np.sum(model.predict(X) != y) == 8  # two of six classes of two rows each get a leaf


# ---------------------------------------------------------------------- scikit-learn habits


def test_frames_keep_their_names(wine):
    X, y = wine
    names = [f"f{j}" for j in range(X.shape[1])]
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        model = OCTHClassifier(random_state=0).fit(frame, np.array(["a", "b", "c"])[y])
        assert model.feature_names_in_.tolist() == names
        assert set(model.predict(frame)) == {"a", "b", "c"}
        used = np.flatnonzero(np.any(model.tree_.weights != 0, axis=0))
        assert all(names[j] in model.export_text() for j in used)


def test_pipeline_grid_search_clone_pickle(wine):
    X, y = wine
    search = GridSearchCV(
        make_pipeline(StandardScaler(), OCTHClassifier(time_limit=5, random_state=0)),
        {"octhclassifier__max_depth": [1, 2]},
        cv=2,
    )
    assert quiet_fit(search, X, y).best_params_ == {"octhclassifier__max_depth": 2}
    model = OCTHClassifier(max_depth=3, complexity=0.1)
    assert clone(model).get_params() == model.get_params()
    fitted = OCTHClassifier(random_state=0).fit(X, y)
    assert np.array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))


def test_proba_apply_and_path_agree(fitted, wine):
    X, _ = wine
    shares = fitted.predict_proba(X)
    assert np.allclose(shares.sum(axis=1), 1.0)
    assert np.array_equal(fitted.classes_[shares.argmax(axis=1)], fitted.predict(X))
    path = fitted.decision_path(X)
    leaves = fitted.apply(X)
    assert np.all(fitted.tree_.is_leaf[leaves])
    assert np.all(np.asarray(path[np.arange(len(X)), leaves]).ravel() == 1)
    assert np.all(path[:, [0]].toarray() == 1)


def test_random_state_none_works(wine):
    assert OCTHClassifier().fit(*wine).objective_ == 0.0


# ---------------------------------------------------------------------- model files


@pytest.mark.parametrize("labels", [[0, 1, 2], ["u", "v", "w"], [1.0, 2.0, 3.0], [True, False, True]])
def test_save_and_load(tmp_path, wine, labels):
    X, y = wine
    y = np.array(labels)[y]
    model = OCTHClassifier(random_state=0, max_depth=2, gap=0.01).fit(pd.DataFrame(X).add_prefix("f"), y)
    model.save(tmp_path / "model.json")
    for again in (OCTHClassifier.load(tmp_path / "model.json"), load_model(tmp_path / "model.json")):
        assert again.tree_ == model.tree_
        assert again.get_params() == model.get_params()
        for name in ("objective_", "bound_", "gap_", "status_", "solve_time_", "n_features_in_"):
            assert getattr(again, name) == getattr(model, name)
        assert np.array_equal(again.trace_, model.trace_)
        frame = pd.DataFrame(X).add_prefix("f")
        assert again.predict(frame).tolist() == model.predict(frame).tolist()
        assert again.classes_.dtype.kind == model.classes_.dtype.kind
        with pytest.raises(ValueError, match="feature names"):
            again.predict(pd.DataFrame(X).add_prefix("g"))


def test_an_unfitted_model_cannot_be_saved(tmp_path):
    with pytest.raises(NotFittedError):
        OCTHClassifier().save(tmp_path / "model.json")
    assert not (tmp_path / "model.json").exists()


# ---------------------------------------------------------------------- warm starts


def test_warm_starts_are_never_made_worse():
    X, y = noise()
    good = quiet_fit(OCTHClassifier(time_limit=8, random_state=0), X, y)
    for start in (good, good.tree_):
        model = quiet_fit(OCTHClassifier(time_limit=0.01, random_state=1, warm_start=start), X, y)
        assert model.objective_ <= good.objective_ + 1e-9
    again = OCTHClassifier(time_limit=8, random_state=0, warm_start=True)
    first = quiet_fit(again, X, y).objective_
    second = quiet_fit(again.set_params(time_limit=0.01), X, y).objective_
    assert second <= first + 1e-9


def test_a_tree_of_another_library_is_a_start():
    X, y = load_iris(return_X_y=True)
    cart = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    model = quiet_fit(OCTHClassifier(time_limit=0.001, warm_start=tree_from_sklearn(cart)), X, y)
    assert model.score(X, y) >= cart.score(X, y)


def test_unusable_warm_starts_are_refused():
    X, y = noise()
    with pytest.raises(NotFittedError, match="pass its tree_ instead"):
        OCTHClassifier(warm_start=OCTHClassifier()).fit(X, y)
    small = cart_tree(X[:, :2], y, np.ones(len(y)), 2, 1)
    with pytest.raises(ValueError, match="2 features, X has 5"):
        OCTHClassifier(warm_start=small).fit(X, y)


# ---------------------------------------------------------------------- ends that are not optimal


def test_a_time_limit_warns_and_says_so():
    X, y = noise(200, 8)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model = OCTHClassifier(max_depth=3, time_limit=1.0, random_state=0).fit(X, y)
    assert model.status_ == "time_limit"
    assert model.bound_ <= model.objective_
    assert model.gap_ > 0
    assert isinstance(model.tree_, Tree)
    assert np.all(np.diff(model.trace_[:, 0]) >= 0)
    assert np.all(np.diff(model.trace_[:, 1]) <= 0)
    assert np.all(np.diff(model.trace_[:, 2]) >= 0)


@pytest.mark.parametrize("solver", ["highs", "scip"])
@pytest.mark.parametrize("moment", ["search", "solve"])
def test_ctrl_c_returns_the_best_tree(solver, moment):
    """Three seconds into the fit, in a process of its own; nothing but the fit may notice the signal."""
    size = (3000, 15) if moment == "search" else (150, 6)
    code = f"""
        import numpy as np, warnings
        warnings.simplefilter("ignore")
        from treewright import OCTHClassifier
        rng = np.random.default_rng(0)
        X, y = rng.normal(size={size}), rng.integers(0, 2, {size[0]})
        print("ready", flush=True)
        model = OCTHClassifier(max_depth=3, time_limit=120, solver={solver!r}, random_state=0).fit(X, y)
        print(model.status_, model.tree_.n_leaves, model.predict(X).shape[0], flush=True)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline().strip() == "ready"
    try:
        process.wait(3)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    status, n_leaves, n_rows = out.split()
    assert status == "interrupted"
    assert int(n_leaves) >= 1
    assert int(n_rows) == size[0]


def test_verbose_reports_on_standard_error(capsys):
    X, y = noise(60, 3)
    quiet_fit(OCTHClassifier(verbose=1, time_limit=2, random_state=0), X, y)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "objective" in captured.err and "bound" in captured.err
