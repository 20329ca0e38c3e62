"""Each kind of bad input gets the documented exception, with the offending value in its text, before any work."""

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from tests.examples import looped
from tests.seen_trees import seen

from treewright import OCTHClassifier, S2OCTClassifier, TAOClassifier, TAORegressor, load_model
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
from treewright.tree import Tree

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
    "nan": (dict(X=changed(1, 1, np.nan)), ValueError, "Input X contains NaN"),
    "inf": (dict(X=changed(1, 1, np.inf)), ValueError, "Input X contains infinity"),
    "string in X": (
        dict(X=changed(2, 0, "tall")),
        InvalidInputError,
        r"text in column 0 \(such as 'tall'\); .* numbers",
    ),
    "one class": (dict(y=np.zeros(6)), InvalidInputError, r"y has only one class, 0\.0"),
    "empty X": (dict(X=np.empty((0, 2)), y=np.empty(0)), ValueError, r"Found array with 0 sample"),
    "no features": (dict(X=np.empty((6, 0))), ValueError, r"Found array with 0 feature"),
    "one-dimensional X": (dict(X=X[:, 0]), ValueError, "Expected 2D array, got 1D array instead"),
    "lengths": (dict(y=y[:4]), ValueError, r"inconsistent numbers of samples: \[6, 4\]"),
    "y two-dimensional": (dict(y=np.column_stack([y, y])), ValueError, r"1d array, got an array of shape \(6, 2\)"),
    "y None": (dict(y=None), ValueError, "the target y is None"),
    "y missing": (
        dict(y=np.array(["a", "b", None, "a", "b", "a"], object)),
        InvalidInputError,
        "in 1 of 6 rows",
    ),
    "y continuous": (dict(y=y + 0.37), ValueError, "Unknown label type: continuous"),
    "weight negative": (dict(sample_weight=[1, 1, -2.5, 1, 1, 1]), InvalidInputError, r"-2\.5 in row 2"),
    "weight nan": (
        dict(sample_weight=[1, 1, np.nan, 1, 1, 1]),
        InvalidInputError,
        "contains NaN in row 2",
    ),
    "weight length": (dict(sample_weight=[1, 1]), ValueError, r"shape == \(2,\), expected \(6,\)"),
    "weights zero": (dict(sample_weight=np.zeros(6)), ValueError, "at least one non-zero number"),
}
PARAMETERS = {
    "unknown solver": (dict(solver="cplex"), "solver.*Got 'cplex' instead"),
    "depth 0": (dict(max_depth=0), "max_depth.*Got 0 instead"),
    "depth huge": (dict(max_depth=40), "max_depth.*Got 40 instead"),
    "depth float": (dict(max_depth=2.5), r"max_depth.*Got 2\.5 instead"),
    "negative time": (dict(time_limit=-1), "time_limit.*Got -1 instead"),
    "gap": (dict(gap=1.5), r"gap.*Got 1\.5 instead"),
    "negative complexity": (dict(complexity=-0.2), r"complexity.*Got -0\.2 instead"),
    "leaf share": (dict(min_samples_leaf=0.7), r"min_samples_leaf.*Got 0\.7 instead"),
    "leaf above the rows": (dict(min_samples_leaf=7), "min_samples_leaf=7 is more than the 6 rows"),
    "margin": (dict(margin=0), "margin.*Got 0 instead"),
    "margin below tolerances": (dict(margin=5e-5), "margin.*Got 5e-05 instead"),
    "jobs": (dict(n_jobs=0), "n_jobs must not be 0"),
    "random state": (dict(random_state="seed"), "random_state.*Got 'seed' instead"),
    "warm start": (dict(warm_start="tree"), "warm_start.*Got 'tree' instead"),
}


@looped("arguments, error, text", FITS.values())
def test_bad_data(arguments, error, text):
    with pytest.raises(error, match=text):
        OCTHClassifier().fit(**({"X": X, "y": y} | arguments))


@looped("arguments, text", PARAMETERS.values())
def test_bad_parameters(arguments, text):
    with pytest.raises(ValueError, match=text):
        OCTHClassifier(**arguments).fit(X, y)


def test_no_labelled_row():
    with pytest.raises(InvalidInputError, match="labelled"):
        make_problem(X, np.full(6, -1), supervised=False)


TOTALS = {
    "above the rows": (dict(totals={1: 9}), "9 rows of class 1 are asked, but there are only 5"),
    "share above 1": (dict(totals={1: 1.2}), r"share 1\.2 of class 1 is above 1"),
    "negative": (dict(totals={1: -3}), "total -3 of class 1 is negative"),
    "sum above the rows": (dict(totals={0: 4, 1: 3}), "at least 7 rows .*, but there are only 5"),
    "sum below the rows": (dict(totals={0: 1, 1: 3}), "at most 4 rows .*, but there are 5"),
    "empty interval": (dict(totals={1: (4, 2)}), "low 4 is above high 2"),
    "shares sum": (dict(totals={0: 0.5, 1: 0.2}), r"sum to 0\.7, not to 1"),
    "unknown group": (
        dict(totals={"n": {1: 1}, "S": {1: 1}}, groups=list("nnsss")),
        "group 'S', which no row has; did you mean 's'",
    ),
    "groups of the wrong length": (dict(totals={"n": {1: 1}}, groups=list("nn")), "groups has 2 entries, there are 5"),
}


@looped("arguments, text", TOTALS.values())
def test_impossible_totals(arguments, text):
    with pytest.raises(InfeasibleTotalsError, match=text) as caught:
        parse_totals(classes=np.array([0, 1]), n_unlabelled=5, **arguments)
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, TreewrightError)


def test_unknown_class_in_totals():
    with pytest.raises(InfeasibleTotalsError, match="totals name class 7, which is not among"):
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


@looped("text", FILES.values())
def test_corrupt_model_files(tmp_path, document, text):
    path = tmp_path / "model.json"
    path.write_text(json.dumps(document)[:200] if text is None else text)
    with pytest.raises(ModelFileError, match="model.json"):
        load_model(path)


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_other_versions_are_refused_with_what_to_do(tmp_path, document, version):
    path = tmp_path / "model.json"
    path.write_text(json.dumps(document | {"version": version, "treewright": "9.8.7"}))
    with pytest.raises(ModelFileError, match=r"model\.json has version .*fit the model again, or .* \('9\.8\.7'\)"):
        load_model(path)


SECTIONS = ["parameters", "classes", "n_features", "feature_names", "tree", "record", "fit"]
VALUES = [None, 3, -1, "x", [], {}, [1], {"a": 1}, True, 1e400]
USABLE = [("feature_names", None), ("parameters", {}), ("fit", {}), ("fit", {"a": 1})]


@looped("key, value", [(k, v) for k in SECTIONS for v in VALUES if (k, v) not in USABLE])
def test_damaged_model_documents(document, key, value):
    from treewright.estimators.files import model_from_dict
    from treewright.models.registry import MODELS

    damaged = document | {key: value}
    with pytest.raises(ModelFileError):
        model_from_dict(damaged, MODELS)
    del damaged[key]
    with pytest.raises(ModelFileError):
        model_from_dict(damaged, MODELS)


def trace(rows, columns=("seconds", "objective", "bound")):
    return {"columns": list(columns), "rows": rows}


EDITS = {
    "version": dict(version=True),
    "version float": dict(version=1.0),
    "features": dict(n_features=True),
    "names": dict(feature_names=["a", "a"]),
    "status": dict(record=dict(status="finished")),
    "status number": dict(record=dict(status=1)),
    "status infeasible": dict(record=dict(status="infeasible")),
    "status unbounded": dict(record=dict(status="unbounded")),
    "status of a heuristic": dict(record=dict(status="local")),
    "optimal with a gap": dict(record=dict(objective=101.0, bound=1.0, status="optimal")),
    "gap above 1": dict(record=dict(gap_asked=1.0)),
    "gap text": dict(record=dict(gap_asked="0.1")),
    "gap none": dict(record=dict(gap_asked=None)),
    "optimal far from 0": dict(record=dict(objective=0.5, bound=-200.0, status="optimal")),
    "objective text": dict(record=dict(objective="0.0")),
    "objective bool": dict(record=dict(objective=True)),
    "objective infinite": dict(record=dict(objective=float("inf"))),
    "bound nan": dict(record=dict(bound=float("nan"))),
    "bound none": dict(record=dict(bound=None)),
    "bound above": dict(record=dict(bound=0.1)),
    "time negative": dict(record=dict(seconds=-1.0)),
    "time text": dict(record=dict(seconds="1")),
    "reason number": dict(record=dict(reason=1)),
    "record more": dict(record=dict(words="more")),
    "trace number": dict(record=dict(trace=3)),
    "trace flat": dict(record=dict(trace=trace([0.0, 1.0, 0.0]))),
    "trace pairs": dict(record=dict(trace=trace([[0.0, 1.0]]))),
    "trace bool": dict(record=dict(trace=trace([[0.0, 1.0, False]]))),
    "trace names": dict(record=dict(trace=trace([], ["seconds", "objective", "objective"]))),
    "trace spaces": dict(record=dict(trace=trace([], ["seconds", "objective", "the bound"]))),
    "trace order": dict(record=dict(trace=trace([], ["objective", "seconds"]))),
    "classes float": dict(classes=dict(values=[0.0, 1.0])),
    "classes bool": dict(classes=dict(values=[False, True])),
    "classes text": dict(classes=dict(values=["0", "1"])),
    "classes int": dict(classes=dict(dtype="f")),
    "classes order": dict(classes=dict(values=[1, 0])),
    "classes twice": dict(classes=dict(values=[1, 1])),
    "classes nul": dict(classes=dict(dtype="U", values=["a", "a\0"])),
    "classes mixed": dict(classes=dict(dtype="O", values=["a", 1])),
    "classes dtype": dict(classes=dict(dtype=["i"])),
    "depth": dict(parameters=dict(max_depth=0)),
    "depth bool": dict(parameters=dict(max_depth=True)),
    "solver": dict(parameters=dict(solver="cplex")),
    "warm start": dict(parameters=dict(warm_start="yes")),
}


@looped("change", EDITS.values())
def test_edited_model_documents(document, change):
    from treewright.estimators.files import model_from_dict
    from treewright.models.registry import MODELS

    model_from_dict(document, MODELS)  # is whole
    edited = {k: document[k] | v if isinstance(v, dict) else v for k, v in change.items()}
    with pytest.raises(ModelFileError):
        model_from_dict(document | edited, MODELS)


def test_negative_class_weights_in_a_file(document):
    from treewright.estimators.files import model_from_dict
    from treewright.models.registry import MODELS

    edited = json.loads(json.dumps(document))
    edited["tree"]["nodes"][1]["values"] = [3.0, -1.0]
    with pytest.raises(ModelFileError, match=r"nodes\[1\]\.values\[1\]: expected a class weight from 0 on, got -1\.0"):
        model_from_dict(edited, MODELS)


def test_heuristics_prove_nothing_in_a_file():
    from treewright.estimators.files import model_from_dict, model_to_dict
    from treewright.models.registry import MODELS

    whole = model_to_dict(TAOClassifier(max_depth=1).fit(X, y))
    model_from_dict(whole, MODELS)
    said = "record.status is 'optimal', expected one of interrupted, local, time_limit"
    with pytest.raises(ModelFileError, match=said):
        model_from_dict(whole | {"record": whole["record"] | {"status": "optimal"}}, MODELS)
    for key in ("bound", "gap_asked"):
        with pytest.raises(ModelFileError, match="must be null"):
            model_from_dict(whole | {"record": whole["record"] | {key: 0.0}}, MODELS)


def test_a_model_whose_gap_was_changed_after_the_fit_is_read_back(tmp_path):
    model = OCTHClassifier(max_depth=1, gap=0.0).fit(X, (X[:, 0] > 5).astype(int))
    model.record_ = replace(model.record_, objective=1.0, bound=0.6, gap_asked=0.5)  # as a fit with gap=0.5 may end
    model.save(tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    assert (again.status_, again.gap_) == ("optimal", 0.4)
    again.save(tmp_path / "again.json")
    assert load_model(tmp_path / "again.json").status_ == "optimal"


CLASS_WEIGHTS = {
    "nan": ({0: np.nan, 1: 1}, "class_weight has nan for class 0"),
    "negative": ({0: 1, 1: -0.5}, r"class_weight has -0\.5 for class 1"),
    "infinite": ({0: np.inf, 1: 1}, "class_weight has inf for class 0"),
    "text": ({0: "2", 1: 1}, "class_weight has '2' for class 0"),
    "bool": ({0: True, 1: 1}, "class_weight has True for class 0"),
    "overflow": ({0: 1e308, 1: 1e308}, "the weights sum to infinity"),
    "zero": ({0: 0, 1: 0}, "all weights are zero"),
}


@looped("weights, text", CLASS_WEIGHTS.values())
def test_class_weights_that_are_none(weights, text):
    with pytest.raises(InvalidInputError, match=text):
        TAOClassifier(class_weight=weights).fit(X, y)


def test_class_weights_are_factors():
    given = {0: np.float32(3), 1: 2}
    weight = np.where(y == 0, 3.0, 2.0)
    first = TAOClassifier(2, class_weight=given, random_state=0).fit(X, y)
    second = TAOClassifier(2, random_state=0).fit(X, y, sample_weight=weight)
    assert seen(first) == seen(second)


SEMI = {
    "committee": lambda fit, tree: fit | {"committee": [tree | {"n_features": 3}]},
    "totals key": lambda fit, tree: fit | {"totals": [fit["totals"][0] | {"more": 1}]},
    "totals class": lambda fit, tree: fit | {"totals": [fit["totals"][0] | {"class": "x"}]},
    "totals bool": lambda fit, tree: fit | {"totals": [fit["totals"][0] | {"reached": True}]},
    "totals interval": lambda fit, tree: fit | {"totals": [fit["totals"][0] | {"low": 5, "high": 4}]},
}


@pytest.fixture(scope="module")
def semi_supervised():
    return S2OCTClassifier(max_depth=1, n_estimators=2, random_state=0, time_limit=20).fit(
        np.arange(8.0)[:, None], [0, -1, -1, -1, -1, -1, -1, 1], totals={1: 3}
    )


@pytest.mark.parametrize("change", SEMI.values(), ids=SEMI.keys())
def test_edited_semi_supervised_documents(semi_supervised, change):
    from treewright.estimators.files import model_from_dict, model_to_dict
    from treewright.models.registry import MODELS

    whole = model_to_dict(semi_supervised)
    assert model_from_dict(whole, MODELS).totals_ == semi_supervised.totals_
    with pytest.raises(ModelFileError):
        model_from_dict(whole | {"fit": change(whole["fit"], whole["tree"])}, MODELS)


def test_parameters_of_numpy_are_kept(tmp_path):
    state = np.random.RandomState(0)
    model = OCTHClassifier(max_depth=np.int64(1), gap=np.float32(0.25), verbose=np.bool_(False), random_state=state)
    model.fit(X, (X[:, 0] > 5).astype(int)).save(tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    assert (again.max_depth, again.gap, again.verbose, again.random_state) == (1, 0.25, False, None)
    assert type(again.max_depth) is int


def test_features_of_the_same_name_are_saved_without_names(tmp_path):
    model = OCTHClassifier(max_depth=1).fit(X, (X[:, 0] > 5).astype(int))
    model.feature_names_in_ = np.array(["a", "a"], dtype=object)  # as older versions of scikit-learn allow
    with pytest.warns(UserWarning, match="same name: 'a'"):
        model.save(tmp_path / "model.json")
    assert load_model(tmp_path / "model.json").predict(X).tolist() == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("kind", [OCTHClassifier, S2OCTClassifier])
@pytest.mark.usefixtures("shortest_searches")
def test_a_failed_refit_leaves_the_fit(kind):
    pandas = pytest.importorskip("pandas")
    model = kind(max_depth=1, warm_start=True, random_state=0, time_limit=20)
    model.fit(pandas.DataFrame(X, columns=["a", "b"]), (X[:, 0] > 5).astype(int))
    before = model.predict(pandas.DataFrame(X, columns=["a", "b"]))
    with pytest.raises(InvalidInputError, match="warm-start tree has 2 features, X has 1"):
        model.fit(X[:, :1], (X[:, 0] > 5).astype(int))
    with pytest.raises(InvalidInputError, match="one class"):
        model.fit(X[:, :1], np.zeros(6))
    assert model.n_features_in_ == 2 and model.feature_names_in_.tolist() == ["a", "b"]
    assert np.array_equal(model.predict(pandas.DataFrame(X, columns=["a", "b"])), before)
    model.set_params(warm_start=False).fit(X[:, :1], (X[:, 0] > 5).astype(int))
    assert model.n_features_in_ == 1 and not hasattr(model, "feature_names_in_")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (OCTHClassifier, "the first at node 0.*numerical"),
        (S2OCTClassifier, "the first at node 0.*numerical"),
        (TAOClassifier, "on feature 0, which is no categorical feature"),
        (TAORegressor, "on feature 0, which is no categorical feature"),
    ],
)
def test_categorical_splits_are_no_start(kind, words):
    """They were dropped in silence: a tree without error became a leaf."""
    X, y = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 2.0], [1.0, 3.0]]), np.array([0, 1, 0, 1])
    coded = Tree([1, -1, -1], [2, -1, -1], np.zeros((3, 2)), np.zeros(3), np.eye(3)[:, :2], [0, 0, 1], [0, -1, -1])
    with pytest.raises(InvalidInputError, match=f"categorical splits .?{words}"):
        kind(warm_start=coded).fit(X, y)


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
