"""No row of a fit can be read back from the file of a model: not as it was, and not with the scales that are in it."""

import io
import json
import zipfile

import numpy as np
import polars as pl
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from scipy.spatial import cKDTree
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import treewright
from treewright import TotalsClassifier
from treewright.app.planning import ESTIMATORS
from treewright.cli import main
from treewright.data.tables.encoder import TableEncoder
from treewright.data.tables.files import read_table
from treewright.estimators.kept_rows import kept_rows
from treewright.models.registry import MODELS
from treewright.report import labels_report
from treewright.totals import scores

N_ROWS, N_KNOWN = 72, 36
COLUMNS = ["age", "income", "rent"]


def register():
    """Rows that no two have a number in common, and a label that depends on them."""
    rng = np.random.default_rng(7)
    X = np.column_stack([rng.uniform(18, 80, N_ROWS), rng.lognormal(8, 1, N_ROWS).round(2), rng.normal(0, 5, N_ROWS)])
    truth = np.where(X[:, 0] / 10 + np.log(X[:, 1]) + 0.5 * rng.normal(size=N_ROWS) > 13, "yes", "no")
    return X, truth


def numbers_of(value):
    """All lists of numbers in a JSON document, and tables of such lists, as arrays."""
    if isinstance(value, dict):
        rows = [list(value.values())] if value and all(type(v) in (int, float) for v in value.values()) else []
        return [np.array(row, dtype=float) for row in rows] + [a for v in value.values() for a in numbers_of(v)]
    if not isinstance(value, list):
        return []
    if value and all(type(v) in (int, float) for v in value):
        return [np.array(value, dtype=float)]
    if value and all(isinstance(v, list) and len(v) == len(value[0]) and len(numbers_of(v)) == 1 for v in value):
        parts = [numbers_of(v)[0] for v in value]
        if all(part.ndim == 1 and part.shape == parts[0].shape for part in parts):
            return [np.array(parts)]
    return [array for v in value for array in numbers_of(v)]


def arrays_of(path):
    """Every array in a file, those of each field of a structured one, and all numbers of its documents."""
    with open(path, "rb") as file:
        if file.read(2) != b"PK":
            return numbers_of(json.loads(path.read_text()))
    with zipfile.ZipFile(path) as outer:
        found = numbers_of(json.loads(outer.read("model.json")))
        with zipfile.ZipFile(io.BytesIO(outer.read("labeller.skops"))) as inner:
            for name in inner.namelist():
                if name.endswith(".npy"):
                    array = np.load(io.BytesIO(inner.read(name)), allow_pickle=False)
                    parts = [array[field] for field in array.dtype.names] if array.dtype.names else [array]
                    found += [np.asarray(part, dtype=float) for part in parts if part.dtype.kind in "iuf"]
                elif name.endswith(".npz"):
                    raise AssertionError("a sparse matrix")
    return found


def candidates(arrays, width):
    """Whatever could be rows: neighbouring numbers of arrays in each direction, as they are and by all scales there."""
    tables = [np.atleast_2d(array) for array in arrays if array.size >= width and array.ndim <= 3]
    tables = [table.reshape(-1, table.shape[-1]) for table in tables]
    for table in list(tables):
        tables.append(table.T)
    windows = (sliding_window_view(table, width, axis=1) for table in tables if table.shape[1] >= width)
    rows = [window.reshape(-1, width) for window in windows]
    rows = np.unique(np.vstack([r[np.isfinite(r).all(axis=1)] for r in rows]), axis=0) if rows else np.zeros((0, width))
    scales = [array for array in arrays if array.shape == (width,)]
    scales = list(np.unique(np.array(scales), axis=0)) if scales else []
    yield rows
    for centre in scales:
        for spread in scales:
            if np.all(spread > 0):
                yield rows * spread + centre
    for spread in scales:
        if np.all(spread > 0):
            yield rows * spread


def rows_read_back(path, X):
    """How many of the rows of a fit an attacker finds in a file."""
    unit, found = X.std(axis=0), set()
    known = cKDTree(X / unit)
    for rows in candidates(arrays_of(path), X.shape[1]):
        if len(rows):
            distance, place = known.query(rows / unit, distance_upper_bound=1e-6)
            found.update(place[np.isfinite(distance)].tolist())
    return len(found)


def test_the_attacker_finds_rows_that_are_there(tmp_path):
    X, _ = register()
    centre, spread = X.mean(axis=0), X.std(axis=0)
    for table in (X, X.T, (X - centre) / spread, np.hstack([np.zeros((len(X), 1)), X])):
        document = {"a": table.tolist(), "centre": centre.tolist(), "spread": spread.tolist()}
        (tmp_path / "m.json").write_text(json.dumps(document))
        assert rows_read_back(tmp_path / "m.json", X) == len(X)
    (tmp_path / "m.json").write_text(json.dumps({"centre": centre.tolist(), "spread": spread.tolist()}))
    assert rows_read_back(tmp_path / "m.json", X) == 0


LABELLERS = {
    "auto": ["--model", "totals"],
    "boosting": ["--model", "totals", "--estimator", "boosting"],
    "c2rf": ["--model", "c2rf"],
    "forest": ["--model", "totals", "--estimator", "forest"],
    "extra-trees": ["--model", "totals", "--estimator", "extra-trees"],
    "job": [],
    "logistic": ["--model", "totals", "--estimator", "logistic"],
    "new class": ["--model", "totals", "--estimator", "logistic", "--allow-new-classes"],
}


@pytest.mark.usefixtures("shortest_searches")
@pytest.mark.parametrize("name", LABELLERS)
def test_files_of_labels(name, tmp_path, monkeypatch):
    monkeypatch.setattr(scores, "_TREES", 3)
    monkeypatch.setitem(ESTIMATORS, "forest", lambda: RandomForestClassifier(5))
    monkeypatch.setitem(ESTIMATORS, "extra-trees", lambda: ExtraTreesClassifier(5))
    X, truth = register()
    table = pl.DataFrame(dict(zip(COLUMNS, X.T, strict=True)))
    label = pl.Series("y", np.where(np.arange(N_ROWS) < N_KNOWN, truth, None).tolist())
    table.with_columns(label).write_csv(tmp_path / "t.csv")
    totals = {label: int(np.sum(truth[N_KNOWN:] == label)) for label in ("yes", "no")}
    if name == "new class":
        totals = {"yes": totals["yes"], "no": totals["no"] - 5, "never": 5}
    (tmp_path / "totals.json").write_text(json.dumps(totals))
    options = ["--totals", str(tmp_path / "totals.json"), "--random-state", "0", *LABELLERS[name]]
    if name in ("job", "auto"):
        options += ["--time-limit", "3"]
    out = tmp_path / "m.zip"
    assert main(["fit", str(tmp_path / "t.csv"), "--target", "y", "--out", str(out), *options]) == 0
    assert rows_read_back(out, X) == 0


@pytest.mark.usefixtures("searches_alone")
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", MODELS)
def test_files_of_trees(name, tmp_path):
    X, truth = register()
    model = getattr(treewright, name)()
    y = X[:, 2] + X[:, 0] if name.endswith("Regressor") else truth
    shown = {"max_depth": 2, "time_limit": 2, "random_state": 0}
    model.set_params(**{key: value for key, value in shown.items() if key in model.get_params()})
    if "teacher" in model.get_params():  # labels of rows, which a file does not need
        model.set_params(teacher=list(truth))
    model.fit(X, y)
    model.save(tmp_path / "m.json")
    assert rows_read_back(tmp_path / "m.json", X) == 0
    assert arrays_of(tmp_path / "m.json")
    assert '"no", "yes", "no"' not in (tmp_path / "m.json").read_text().replace("'", '"')


KEEPERS = {
    "nearest neighbours": (KNeighborsClassifier(3), {"KNeighborsClassifier": 20}),
    "scaled": (make_pipeline(StandardScaler(), KNeighborsClassifier(3)), {"KNeighborsClassifier": 20}),
    "some of them": (BaggingClassifier(KNeighborsClassifier(3), 2, max_samples=10), {"KNeighborsClassifier": 10}),
    "landmarks": (make_pipeline(Nystroem(n_components=7), LogisticRegression()), {"Nystroem": 7}),
    "gaussian process": (GaussianProcessClassifier(), {"_BinaryGaussianProcessClassifierLaplace": 20}),
    "logistic": (LogisticRegression(), {}),
    "boosting": (HistGradientBoostingClassifier(max_iter=3), {}),
}


@pytest.mark.parametrize("name", KEEPERS)
def test_reports_say_which_estimators_of_the_user_keep_rows(name):
    wrapped, kept = KEEPERS[name]
    X, truth = register()
    y = np.where(np.arange(N_ROWS) < 20, truth, None)
    model = TotalsClassifier(wrapped, random_state=0).fit(X, y, totals={"yes": 20})
    assert kept_rows(model) == kept
    said = " ".join(labels_report(model, y, model.transduction_).split())
    for kind, n in kept.items():
        assert f"rows in the model: {n} rows ({kind}): whoever has the model can read them" in said
    assert kept or "rows in the model" not in said


def test_support_vectors_and_graphs_are_rows():
    X, truth = register()
    machine = SVC().fit(X, truth)
    assert kept_rows(machine) == {"SVC": len(machine.support_)}
    y = np.where(np.arange(N_ROWS) < 20, truth, None)
    graph = treewright.LapTAOClassifier(estimator="graph", random_state=0).fit(X, y)
    assert kept_rows(graph) == {"LapTAOClassifier": N_ROWS}


def test_files_tell_and_models_that_are_rows_are_refused_before_any_work(tmp_path, capsys):
    X, truth = register()
    table = pl.DataFrame(dict(zip(COLUMNS, X.T, strict=True))).with_columns(y=pl.Series(truth.tolist()))
    table.write_csv(tmp_path / "t.csv")
    fit = ["fit", str(tmp_path / "t.csv"), "--target", "y", "--out", str(tmp_path / "m.json")]
    assert main([*fit, "--model", "tao", "--max-depth", "1"]) == 0
    capsys.readouterr()
    assert main(["show", str(tmp_path / "m.json")]) == 0
    assert "rows of the fit in this file: none" in capsys.readouterr().out
    for setting in ("estimator=graph", "n_estimators=3"):
        assert main([*fit, "--model", "laptao", "--set", setting]) == 2
        assert f"--set {setting.partition('=')[0]}" in capsys.readouterr().err


def told_table(tmp_path, n=200):
    """A table with a few words that one row alone has, a gap among incomes that differ, and a class by region."""
    rng = np.random.default_rng(3)
    region = rng.choice(["north", "south", "west"], n).tolist()
    job = rng.choice(["baker", "clerk"], n).tolist()
    job[4], job[90], job[91], job[92], region[17] = (
        "lion tamer",
        "astronaut",
        "bell founder",
        "bell founder",
        "Atlantis",
    )
    income = [None, *rng.lognormal(8, 1, n - 1).round(2).tolist()]
    truth = np.where(np.array(region) == "north", "yes", "no")
    y = [label if k < n // 2 else None for k, label in enumerate(truth.tolist())]
    table = pl.DataFrame({"region": region, "job": job, "income": income, "y": y})
    table.write_csv(tmp_path / "t.csv")
    return table


ALONE = {"region": 1, "job": 2}
WORDS = "1 level of 'region', 2 levels of 'job': whoever has the model can read them"


@pytest.mark.parametrize("model", ["forest", "tao"])
def test_how_many_words_of_one_row_a_file_has_is_told(model, tmp_path, capsys):
    table = told_table(tmp_path)
    more = (
        ["--estimator", "forest", "--time-limit", "2"] if model == "forest" else ["--model", "tao", "--max-depth", "1"]
    )
    out = str(tmp_path / ("m.zip" if model == "forest" else "m.json"))
    if model == "tao":  # which is fitted to the rows with a label: those levels alone are in its file
        table.with_columns(y=pl.col("y").fill_null("no")).write_csv(tmp_path / "t.csv")
    fit = ["fit", str(tmp_path / "t.csv"), "--target", "y", "--out", out, "--random-state", "0", *more]
    assert main(fit) == 0
    assert f"levels of text in the model file that one row alone has: {WORDS}" in capsys.readouterr().out
    assert main(["show", out]) == 0
    assert f"levels of text in the model file that one row alone has: {WORDS}" in capsys.readouterr().out
    assert main(["show", out, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["levels_of_one_row"] == ALONE

    assert main([*fit, "--drop", "region,job"]) == 0
    assert "that one row alone has" not in capsys.readouterr().out
    assert main(["show", out]) == 0
    assert "levels of text in the model file that one row alone has: none" in capsys.readouterr().out


def test_what_fills_gaps_is_no_cell(tmp_path):
    """A median to the cent is what one row has."""
    table = told_table(tmp_path)
    encoder = TableEncoder.fit(read_table(tmp_path / "t.csv"), ["income"], fill_gaps=True)
    known = np.sort(table["income"].drop_nulls().to_numpy())
    fill = encoder.codes["income"].fill
    assert fill not in known and known[89] < fill < known[109]
    assert fill == pytest.approx(known[95:105].mean(), abs=known[106] - known[93])


@pytest.mark.parametrize("entries", [3, [["job"]], [["job", 1.5]], [["no column", 1]], [["job", True]]])
def test_what_a_file_says_of_words_is_checked(entries, tmp_path):
    told_table(tmp_path).with_columns(pl.col("y").fill_null("no")).write_csv(tmp_path / "t.csv")
    path = tmp_path / "m.json"
    assert main(["fit", str(tmp_path / "t.csv"), "--target", "y", "--model", "tao", "--out", str(path)]) == 0
    document = json.loads(path.read_text())
    document["table"]["alone"] = entries
    path.write_text(json.dumps(document))
    assert main(["show", str(path)]) == 4
