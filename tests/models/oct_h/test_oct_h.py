"""OCTHClassifier as its users meet it."""

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from treewright import OCTHClassifier, Tree, load_model
from treewright.engine.cart import cart_tree, tree_from_sklearn
from treewright.solvers import Result, Status
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
    X, y = (X[::2], y[::2]) if load is load_iris else (X, y)  # the others need no branch and bound
    first, second = (OCTHClassifier(max_depth=2, time_limit=30, random_state=0).fit(X, y) for _ in range(2))
    cart = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    assert first.score(X, y) >= cart.score(X, y)
    assert first.bound_ <= first.objective_
    assert first.status_ == second.status_ == "optimal"
    assert first.tree_ == second.tree_


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
    model = quiet_fit(OCTHClassifier(complexity=0.01, time_limit=0.2, random_state=0), X, y)
    errors = np.sum(model.predict(X) != y)
    used = np.count_nonzero(model.tree_.weights)
    assert model.objective_ == pytest.approx(errors / 100 + 0.01 * used)


def test_complexity_makes_splits_sparse():
    X, y = load_iris(return_X_y=True)
    dense = quiet_fit(OCTHClassifier(time_limit=1, random_state=0), X, y)
    sparse = quiet_fit(OCTHClassifier(complexity=0.05, time_limit=1, random_state=0), X, y)
    assert np.count_nonzero(sparse.tree_.weights) < np.count_nonzero(dense.tree_.weights)


def test_the_printed_program_is_solved_without_the_search(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.random((12, 2)), rng.integers(0, 2, 12)
    tight = OCTHClassifier(max_depth=1, time_limit=60, random_state=0).fit(X, y)
    monkeypatch.setattr("treewright.models.oct_h.fit.search_oct_h", lambda *a: pytest.fail("a search was made"))
    printed = OCTHClassifier(max_depth=1, formulation="paper", time_limit=60, random_state=0).fit(X, y)
    assert printed.status_ == tight.status_ == "optimal"
    assert printed.objective_ == pytest.approx(tight.objective_)
    assert printed.objective_ > 0  # so a solver had to prove it


@pytest.mark.parametrize(("asked", "least"), [(20, 20), (0.2, 30)])
def test_min_samples_leaf_is_kept(asked, least):
    X, y = load_iris(return_X_y=True)
    model = quiet_fit(OCTHClassifier(min_samples_leaf=asked, time_limit=0.5, random_state=0), X, y)
    assert model.tree_.n_leaves >= 3  # one for each class is possible
    assert np.bincount(model.apply(X))[model.tree_.leaves].min() >= least


def test_min_samples_leaf_counts_rows_that_are_alike(monkeypatch):
    """Four distinct points of about a hundred rows each; the search alone must find the tree."""
    monkeypatch.setattr(HighsSolver, "solve", lambda *a, **k: pytest.fail("a solver was called"))
    X = np.random.default_rng(0).integers(0, 2, (400, 2))
    y = X[:, 0] ^ X[:, 1]
    model = OCTHClassifier(min_samples_leaf=20, random_state=0).fit(X, y)
    assert (model.status_, model.objective_, model.tree_.n_leaves) == ("optimal", 0.0, 4)


def test_a_share_of_rows_is_not_rounded_up_by_accident():
    """0.07 * 100 is a little more than 7 in floating point."""
    X, y = np.arange(100.0)[:, None], np.arange(100) >= 93
    assert OCTHClassifier(max_depth=1, min_samples_leaf=0.07).fit(X, y).objective_ == 0.0


@pytest.mark.parametrize("least", [76, 149, 150])
def test_a_leaf_minimum_above_half_of_the_rows_leaves_one_leaf(least):
    X, y = load_iris(return_X_y=True)
    model = OCTHClassifier(min_samples_leaf=least, time_limit=20, random_state=0).fit(X, y)
    assert (model.status_, model.objective_, model.tree_.n_leaves) == ("optimal", 1.0, 1)


@pytest.mark.parametrize("factor", [1e-13, 1e13])
def test_only_ratios_of_weights_matter(factor):
    X, y = load_iris(return_X_y=True)
    X, y = X[::3], y[::3]
    weight = np.where(y == 1, 2.0, 1.0)
    plain, scaled = (
        OCTHClassifier(max_depth=1, time_limit=30, random_state=0).fit(X, y, sample_weight=w)
        for w in (weight, factor * weight)
    )
    assert plain.status_ == scaled.status_ == "optimal"
    assert plain.objective_ > 0
    assert scaled.objective_ == pytest.approx(plain.objective_)
    assert np.array_equal(plain.tree_.weights, scaled.tree_.weights)
    assert np.array_equal(plain.tree_.threshold, scaled.tree_.threshold)


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


def test_spacing_just_below_the_margin_gives_no_contradiction():
    model = OCTHClassifier(max_depth=2, margin=0.005).fit([[0.0], [0.0049985], [0.5], [1.0]], [0, 1, 1, 0])
    assert (model.status_, model.objective_, model.bound_) == ("optimal", 0.0, 0.0)
    near = OCTHClassifier(max_depth=2, margin=0.005).fit([[0.0], [0.00499], [0.5], [1.0]], [0, 1, 1, 0])
    assert (near.status_, near.objective_, near.bound_) == ("optimal", 0.5, 0.5)


# ---------------------------------------------------------------------- larger data


def test_many_continuous_rows_are_learned():
    """The default margin leaves room for splits among 3000 rows, the paper's does not."""
    rng = np.random.default_rng(0)
    X = rng.random((3000, 5))
    y = X[:, 0] + X[:, 1] + rng.normal(size=3000) * 0.2 > 1
    linear = LogisticRegression().fit(X, y).score(X, y)
    assert quiet_fit(OCTHClassifier(time_limit=2, random_state=0), X, y).score(X, y) >= linear - 0.005
    assert quiet_fit(OCTHClassifier(time_limit=1, random_state=0, margin=0.005), X, y).score(X, y) < linear - 0.1


def test_ten_thousand_rows():
    rng = np.random.default_rng(0)
    X = rng.random((10_000, 5))
    y = X @ [1.0, -2.0, 0.5, 0.0, 0.0] > -0.3
    model = quiet_fit(OCTHClassifier(time_limit=1.5, random_state=0), X, y)
    assert model.score(X, y) >= 0.98


def test_heavy_tails_end_in_time_with_a_valid_bound():
    """One far point makes all others near to one another on [0, 1]; transformed they are not."""
    X = np.random.default_rng(0).standard_cauchy((5000, 3))
    y = X[:, 0] > 0
    raw = quiet_fit(OCTHClassifier(max_depth=1, time_limit=2, random_state=0), X, y)
    assert 0 < raw.bound_ <= raw.objective_
    ranks = np.argsort(np.argsort(X, axis=0), axis=0)
    assert quiet_fit(OCTHClassifier(max_depth=1, time_limit=3, random_state=0), ranks, y).score(ranks, y) >= 0.999


def test_a_deep_tree():
    X, y = noise(150, 4)
    model = quiet_fit(OCTHClassifier(max_depth=8, time_limit=1, random_state=0), X, y)
    assert 3 <= model.tree_.depth <= 8
    assert model.score(X, y) >= 0.95


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


def test_pipeline_grid_search_clone_pickle(wine, fitted):
    X, y = wine
    search = GridSearchCV(
        make_pipeline(StandardScaler(), OCTHClassifier(time_limit=0.7, random_state=0)),
        {"octhclassifier__max_depth": [1, 2]},
        cv=2,
    )
    assert quiet_fit(search, X, y).best_params_ == {"octhclassifier__max_depth": 2}
    model = OCTHClassifier(max_depth=3, complexity=0.1)
    assert clone(model).get_params() == model.get_params()
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
        for name in ("objective_", "bound_", "gap_", "status_", "reason_", "solve_time_", "n_features_in_"):
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
    good = quiet_fit(OCTHClassifier(time_limit=0.5, random_state=0), X, y)
    for start in (good, good.tree_):
        model = quiet_fit(OCTHClassifier(time_limit=0.01, random_state=1, warm_start=start), X, y)
        assert model.objective_ <= good.objective_ + 1e-9
    again = OCTHClassifier(time_limit=0.5, random_state=0, warm_start=True)
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
        model = OCTHClassifier(max_depth=3, time_limit=0.7, random_state=0).fit(X, y)
    assert model.status_ == "time_limit"
    assert model.bound_ <= model.objective_
    assert model.gap_ > 0
    assert isinstance(model.tree_, Tree)
    assert np.all(np.diff(model.trace_["seconds"]) >= 0)
    assert np.all(np.diff(model.trace_["objective"]) <= 0)
    assert np.all(np.diff(model.trace_["bound"]) >= 0)


def test_a_program_too_large_to_write_is_said_to_be():
    X, y = noise(300, 4)
    with pytest.warns(ConvergenceWarning, match=r"the program would have .* non-zeros"):
        # Terms have a price, so that no search, however fast, ends at 0, which needs no proof.
        model = OCTHClassifier(max_depth=12, complexity=1e-3, time_limit=1, random_state=0).fit(X, y)
    assert model.status_ == "unproven" and "too many for branch and bound" in model.reason_


@pytest.mark.usefixtures("short_searches")
@pytest.mark.parametrize("status", [Status.INFEASIBLE, Status.UNBOUNDED])
def test_a_solver_that_denies_the_tree_at_hand_proves_nothing(status, monkeypatch):
    bound = np.inf if status is Status.INFEASIBLE else -np.inf
    monkeypatch.setattr(HighsSolver, "solve", lambda *a, **k: Result(status, None, np.inf, bound, 0.0))
    X, y = noise(60, 3)
    with pytest.warns(ConvergenceWarning, match=f"calls the program {status}"):
        model = OCTHClassifier(time_limit=5, random_state=0).fit(X, y)
    assert (model.status_, model.bound_) == ("unproven", 0.0)
    assert model.objective_ > 0


@pytest.mark.usefixtures("short_searches")
def test_a_bound_above_the_tree_proves_nothing(monkeypatch):
    monkeypatch.setattr(HighsSolver, "solve", lambda *a, **k: Result(Status.OPTIMAL, None, np.inf, 0.99, 0.0))
    X, y = noise(60, 3)
    with pytest.warns(ConvergenceWarning, match=r"a bound of 0\.99 was claimed"):
        model = OCTHClassifier(time_limit=5, random_state=0).fit(X, y)
    assert 0 < model.objective_ < 0.99
    assert (model.status_, model.bound_) == ("unproven", 0.0)


def test_rows_that_the_units_of_the_data_cannot_tell_apart_take_the_proof_away():
    """Features of 1e15 and a few eighths: scaled they are exact, but their weighted sum is not in original units."""
    rng = np.random.default_rng(0)
    Z = rng.integers(0, 8, (30, 2)) / 8
    y = Z[:, 0] + 0.7 * Z[:, 1] > 0.7
    with pytest.warns(UserWarning, match="classified otherwise in the original units"):
        model = OCTHClassifier(time_limit=10, random_state=0).fit(1e15 + Z, y)
    assert model.status_ == "unproven"
    assert model.score(1e15 + Z, y) < 1.0
    assert OCTHClassifier(time_limit=10, random_state=0).fit(Z, y).status_ == "optimal"


# ---------------------------------------------------------------------- Ctrl-C


def interrupted_process(code: str, interrupts: int) -> tuple[int, list[str], str]:
    """Run `code` in a process of its own and interrupt it soon after each "ready"; return code, lines and errors."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    lines = []
    for _ in range(interrupts):
        while (line := process.stdout.readline()) not in ("ready\n", ""):
            lines.append(line.strip())
        time.sleep(0.2)
        os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    return process.returncode, [*lines, *out.splitlines()], err


BEGINNING = """
        import numpy as np, warnings
        warnings.simplefilter("ignore")
        from treewright import OCTHClassifier
        from treewright.optimize.settings import OCTHSearch, SearchSettings
        from treewright.solvers import get_solver
        from treewright.models.oct_h import fit as oct_h
        search = oct_h.search_oct_h

        def data(n, p):
            rng = np.random.default_rng(0)
            return rng.normal(size=(n, p)), rng.integers(0, 2, n)

        def model(solver):
            return OCTHClassifier(max_depth=2, time_limit=120, solver=solver, random_state=0)

        def announce(owner, name):
            work = getattr(owner, name)

            def announced(*given, **more):
                print("ready", flush=True)
                return work(*given, **more)

            setattr(owner, name, announced)
"""


@pytest.fixture(scope="module")
def interrupted():
    """What the fits of one process print, each interrupted once: twice in a search, twice in branch and bound, and a
    model once more."""
    code = """
        def told(moment, model, X, y):
            model.fit(X, y)
            seen = model.status_, model.tree_.n_leaves >= 1, model.predict(X).shape[0]
            print(moment, model.solver, *seen, flush=True)
            return model

        announce(oct_h, "search_oct_h")
        X, y = data(3000, 15)
        again = told("search", model("highs"), X, y)
        told("search", model("scip"), X, y)
        told("again", again, X, y)
        oct_h.search_oct_h = search
        soon = SearchSettings(oct_h=OCTHSearch(least_patience=1, most_patience=1))
        OCTHClassifier._search_settings = soon  # so that the solver begins soon
        for solver in ("highs", "scip"):
            announce(type(get_solver(solver)), "solve")
            told("solve", model(solver), *data(60, 3))
    """
    ended, lines, err = interrupted_process(BEGINNING + code, 5)
    assert ended == 0, err
    return lines


@pytest.mark.parametrize("solver", ["highs", "scip"])
@pytest.mark.parametrize("moment", ["search", "solve"])
def test_ctrl_c_returns_the_best_tree(solver, moment, interrupted):
    assert f"{moment} {solver} interrupted True {3000 if moment == 'search' else 60}" in interrupted


def test_each_fit_of_a_loop_has_its_own_ctrl_c(interrupted):
    """Also one of a model that was interrupted before."""
    assert len(interrupted) == 5 and all(" interrupted " in line for line in interrupted)
    assert interrupted[2] == "again highs interrupted True 3000"


def test_a_second_ctrl_c_breaks_off():
    """The fit is made to go on after the first one; the second is Python's own, and later fits are not touched."""
    code = """
        import time

        def stubborn(*arguments):
            print("ready", flush=True)
            while not arguments[3].interrupted:
                time.sleep(0.01)
            print("told", flush=True)
            print("ready", flush=True)
            time.sleep(30)

        oct_h.search_oct_h = stubborn
        X, y = data(300, 5)
        stubborn_fit = model("highs")
        try:
            stubborn_fit.fit(X, y)
        except KeyboardInterrupt:
            print("broken off", hasattr(stubborn_fit, "tree_"), flush=True)
        oct_h.search_oct_h = search
        print(stubborn_fit.set_params(time_limit=0.5).fit(X, y).status_, flush=True)
    """
    ended, lines, err = interrupted_process(BEGINNING + code, 2)
    assert ended == 0, err
    assert lines == ["told", "broken off False", "time_limit"]


def test_verbose_reports_on_standard_error(capsys):
    X, y = noise(60, 3)
    quiet_fit(OCTHClassifier(verbose=1, time_limit=0.7, random_state=0), X, y)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "objective" in captured.err and "bound" in captured.err
