"""Each kind of bad input gets the documented exception, with the offending value in its text, before any work."""

import json

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from treewright import OCTHClassifier, load_model
from treewright.data import make_problem, parse_totals
from treewright.exceptions import (
    InfeasibleTotalsError,
    InvalidInputError,
    ModelFileError,
    SolverNotInstalledError,
    TreewrightError,
)
from treewright.solvers import get_solver
from treewright.solvers.highs import HighsSolver

X = np.arange(12.0).reshape(6, 2)
y = np.array([0, 1, 0, 1, 0, 1])


def changed(row, column, value):
    bad = X.astype(object) if isinstance(value, str) else X.copy()
    bad[row, column] = value
    return bad


@pytest.fixture(autouse=True)
def no_solver_may_start(monkeypatch):
    monkeypatch.setattr(HighsSolver, "solve", lambda *a, **k: pytest.fail("a solver was started"))


FITS = {
    "nan": (dict(X=changed(1, 1, np.nan)), ValueError, "NaN"),
    "inf": (dict(X=changed(1, 1, np.inf)), ValueError, "infinity"),
    "string in X": (dict(X=changed(2, 0, "tall")), ValueError, "tall"),
    "one class": (dict(y=np.zeros(6)), InvalidInputError, r"one class, 0"),
    "empty X": (dict(X=np.empty((0, 2)), y=np.empty(0)), ValueError, r"0 sample"),
    "no features": (dict(X=np.empty((6, 0))), ValueError, r"0 feature"),
    "one-dimensional X": (dict(X=X[:, 0]), ValueError, "1D array|Reshape|reshape"),
    "lengths": (dict(y=y[:4]), ValueError, r"6, 4|\[6, 4\]"),
    "y two-dimensional": (dict(y=np.column_stack([y, y])), ValueError, r"\(6, 2\)"),
    "y None": (dict(y=None), ValueError, "y is None|target y"),
    "y missing": (dict(y=np.array(["a", "b", None, "a", "b", "a"], object)), InvalidInputError, "1|row"),
    "y continuous": (dict(y=y + 0.37), ValueError, "continuous"),
    "weight negative": (dict(sample_weight=[1, 1, -2.5, 1, 1, 1]), InvalidInputError, r"-2\.5"),
    "weight nan": (dict(sample_weight=[1, 1, np.nan, 1, 1, 1]), ValueError, "nan|NaN"),
    "weight length": (dict(sample_weight=[1, 1]), ValueError, "2"),
    "weights zero": (dict(sample_weight=np.zeros(6)), ValueError, "zero"),
}
PARAMETERS = {
    "unknown solver": (dict(solver="cplex"), "cplex"),
    "depth 0": (dict(max_depth=0), "0"),
    "depth huge": (dict(max_depth=40), "40"),
    "depth float": (dict(max_depth=2.5), r"2\.5"),
    "negative time": (dict(time_limit=-1), "-1"),
    "gap": (dict(gap=1.5), r"1\.5"),
    "negative complexity": (dict(complexity=-0.2), r"-0\.2"),
    "leaf share": (dict(min_samples_leaf=0.7), r"0\.7"),
    "margin": (dict(margin=0), "0"),
    "jobs": (dict(n_jobs=0), "0"),
    "random state": (dict(random_state="seed"), "seed"),
    "warm start": (dict(warm_start="tree"), "tree"),
}


@pytest.mark.parametrize(("arguments", "error", "text"), FITS.values(), ids=FITS.keys())
def test_bad_data(arguments, error, text):
    with pytest.raises(error, match=text):
        OCTHClassifier().fit(**({"X": X, "y": y} | arguments))


@pytest.mark.parametrize(("arguments", "text"), PARAMETERS.values(), ids=PARAMETERS.keys())
def test_bad_parameters(arguments, text):
    with pytest.raises(ValueError, match=text):
        OCTHClassifier(**arguments).fit(X, y)


def test_no_labelled_row():
    with pytest.raises(InvalidInputError, match="labelled"):
        make_problem(X, np.full(6, -1), supervised=False)


TOTALS = {
    "above the rows": (dict(totals={1: 9}), "9"),
    "share above 1": (dict(totals={1: 1.2}), r"1\.2"),
    "negative": (dict(totals={1: -3}), "-3"),
    "sum above the rows": (dict(totals={0: 4, 1: 3}), "7|4"),
    "sum below the rows": (dict(totals={0: 1, 1: 3}), "4|1"),
    "empty interval": (dict(totals={1: (4, 2)}), "4"),
    "shares sum": (dict(totals={0: 0.5, 1: 0.2}), r"0\.7"),
    "group without totals": (dict(totals={"n": {1: 1}}, groups=list("nnsss")), "'s'|s"),
    "groups of the wrong length": (dict(totals={"n": {1: 1}}, groups=list("nn")), "2"),
}


@pytest.mark.parametrize(("arguments", "text"), TOTALS.values(), ids=TOTALS.keys())
def test_impossible_totals(arguments, text):
    with pytest.raises(InfeasibleTotalsError, match=text) as caught:
        parse_totals(classes=np.array([0, 1]), n_unlabelled=5, **arguments)
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, TreewrightError)


def test_unknown_class_in_totals():
    with pytest.raises(InfeasibleTotalsError, match="7"):
        parse_totals({7: 2}, np.array([0, 1]), 5)


FILES = {
    "empty": "",
    "not json": "{",
    "truncated": None,
    "other format": json.dumps({"format": "something"}),
    "list": "[1, 2]",
    "newer version": json.dumps({"format": "treewright-model", "version": 99}),
    "unknown estimator": json.dumps({"format": "treewright-model", "version": 1, "estimator": "os.system"}),
    "nan": '{"format": NaN}',
    "deep": "[" * 100_000,
}


@pytest.fixture(scope="module")
def document(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.json"
    OCTHClassifier(max_depth=1).fit(X, (X[:, 0] > 5).astype(int)).save(path)
    return json.loads(path.read_text())


@pytest.mark.parametrize("text", FILES.values(), ids=FILES.keys())
def test_corrupt_model_files(tmp_path, document, text):
    path = tmp_path / "model.json"
    path.write_text(json.dumps(document)[:200] if text is None else text)
    with pytest.raises(ModelFileError, match="model.json"):
        load_model(path)


SECTIONS = ["parameters", "classes", "n_features", "feature_names", "tree", "fit"]
VALUES = [None, 3, -1, "x", [], {}, [1], {"a": 1}, True, 1e400]
USABLE = [("feature_names", None), ("parameters", {})]


@pytest.mark.parametrize(("key", "value"), [(k, v) for k in SECTIONS for v in VALUES if (k, v) not in USABLE])
def test_damaged_model_documents(document, key, value):
    from treewright.estimators import MODELS
    from treewright.estimators._files import model_from_dict

    damaged = document | {key: value}
    with pytest.raises(ModelFileError):
        model_from_dict(damaged, MODELS)
    del damaged[key]
    with pytest.raises(ModelFileError):
        model_from_dict(damaged, MODELS)


def test_missing_file_stays_what_it_is(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "none.json")


def test_missing_solver_package_names_the_remedy(monkeypatch):
    from treewright.solvers import registry

    monkeypatch.setattr(registry, "is_installed", lambda name: False)
    with pytest.raises(SolverNotInstalledError, match="treewright\\[scip\\]"):
        get_solver("scip")


def test_predicting_before_fitting_and_with_wrong_width():
    with pytest.raises(NotFittedError):
        OCTHClassifier().predict(X)
    model = OCTHClassifier(max_depth=1).fit(X, (X[:, 0] > 5).astype(int))
    with pytest.raises(ValueError, match="2 features"):
        model.predict(X[:, :1])
