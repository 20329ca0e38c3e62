"""Models of the command line in Python: `load_model` takes frames with the columns of the table."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import RandomForestClassifier

from treewright import load_model
from treewright.app import job
from treewright.app.planning import ESTIMATORS
from treewright.cli import main
from treewright.data.tables.writing import write_table
from treewright.exceptions import InvalidInputError, ModelFileError

N = 120
CLASSES = np.array(["employed", "inactive", "unemployed"])


def made(seed=0):
    """Numbers with gaps and a mark, codes, dates, text with a new level next year; three classes, two groups."""
    rng = np.random.default_rng(seed)
    x, v = rng.normal(size=N).round(3), rng.integers(0, 9, N).astype(float)
    truth = CLASSES[np.digitize(x + 0.2 * v + 0.3 * rng.normal(size=N), [0.3, 1.4])]
    kind = rng.choice(["a", "b", "c, d"], N).astype(object)
    kind[rng.random(N) < 0.1] = None
    born = np.datetime64("1980-01-01") + rng.integers(0, 9000, N)
    columns = {"x": x, "v": np.where(rng.random(N) < 0.1, -99.0, v), "kind": kind, "born": born.astype(str)}
    return columns | {"area": rng.choice(["north", "south"], N).astype(object)}, truth


@pytest.fixture(scope="module")
def files(tmp_path_factory, short_searches_of_module):
    folder = tmp_path_factory.mktemp("frames")
    columns, truth = made()
    known = np.random.default_rng(1).random(N) < 0.5
    write_table(folder / "register.csv", {**columns, "status": np.where(known, truth, None)})
    new, _ = made(seed=7)
    new["kind"][:3] = "new"
    write_table(folder / "new.csv", {"number": np.arange(N), **new})
    write_table(folder / "all.csv", {**columns, "status": truth})
    totals = {"area": ["north", "south"]}
    for label in CLASSES.tolist():
        totals[label] = [int(np.sum((truth == label) & ~known & (columns["area"] == a))) for a in totals["area"]]
    write_table(folder / "totals.csv", totals)
    return folder


MODELS = {
    "totals.zip": ("register.csv", "--model", "totals", "--totals", "totals.csv", "--groups", "area"),
    "logistic.zip": ("register.csv", "--model", "totals", "--estimator", "logistic"),
    "c2rf.zip": ("register.csv", "--model", "c2rf", "--time-limit", "1"),
    "oct-h.json": ("all.csv", "--model", "oct-h", "--max-depth", "1", "--time-limit", "1", "--drop", "area"),
    "oct.json": ("all.csv", "--model", "oct", "--max-depth", "1", "--time-limit", "1"),
}
"""Models by their files, and how each is fitted."""


def fitted(folder, name):
    """A model and what it writes for the new table; made by the first test that asks, whichever that is."""
    out, more = folder / name, [str(folder / part) if part == "totals.csv" else part for part in MODELS[name]]
    if not out.exists():
        fit = ["fit", str(folder / more[0]), "--target", "status", "--na", "-99", "--random-state", "0", "--quiet"]
        with pytest.MonkeyPatch.context() as patch:  # how accurate it is does not matter here
            patch.setattr(job, "_estimate", lambda *args: (None, "it was not asked for"))
            patch.setitem(ESTIMATORS, "forest", lambda: RandomForestClassifier(15))
            assert main([*fit, "--out", str(out), *more[1:]]) == 0
    predictions = folder / f"{name}.csv"
    assert main(["predict", str(out), str(folder / "new.csv"), "--out", str(predictions)]) == 0
    return load_model(out), pl.read_csv(predictions, schema_overrides={"prediction": pl.String})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_frames_get_what_predict_writes(files, name):
    model, written = fitted(files, name)
    frames = {
        "polars": pl.read_csv(files / "new.csv", try_parse_dates=True),
        "polars, all text": pl.read_csv(files / "new.csv", infer_schema_length=0),
        "pandas": pd.read_csv(files / "new.csv"),
        "pandas, dates, other order": pd.read_csv(files / "new.csv", parse_dates=["born"]).iloc[:, ::-1],
    }
    shares = written.select([f"share_{label}" for label in CLASSES.tolist()]).to_numpy()
    for kind, frame in frames.items():
        assert model.predict(frame).tolist() == written["prediction"].to_list(), kind
        np.testing.assert_allclose(model.predict_proba(frame), shares, atol=1e-9, err_msg=kind)
        if "leaf" in written.columns:
            assert model.apply(frame).tolist() == written["leaf"].to_list(), kind


@pytest.mark.filterwarnings("ignore")
def test_new_totals_of_a_frame(files, capsys):
    model, _ = fitted(files, "totals.zip")
    frame = pd.read_csv(files / "new.csv")
    counts = {area: {"employed": 20, "inactive": 15} for area in ("north", "south")}
    pl.DataFrame({"area": list(counts), "employed": [20, 20], "inactive": [15, 15]}).write_csv(files / "next.csv")
    predict = ["predict", str(files / "totals.zip"), str(files / "new.csv"), "--totals", str(files / "next.csv")]
    assert main([*predict, "--groups", "area", "--out", str(files / "next_labels.csv")]) == 0
    written = pl.read_csv(files / "next_labels.csv")
    labels, shares = model.transduce(frame, counts, frame["area"], return_proba=True)
    assert labels.tolist() == written["prediction"].to_list()
    np.testing.assert_allclose(shares, written.select("^share_.*$").to_numpy(), atol=1e-9)
    for area, asked in counts.items():
        for label, number in asked.items():
            assert np.sum((labels == label) & (frame["area"] == area)) == number


@pytest.mark.filterwarnings("ignore")
def test_features_are_taken_as_before(files):
    model, written = fitted(files, "oct-h.json")
    frame = pd.read_csv(files / "new.csv")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.predict(frame)
    assert not [w for w in caught if "valid feature names" in str(w.message)]
    assert any("'new' (3 rows)" in str(w.message) for w in caught)
    numbers = np.zeros((2, model.n_features_in_))
    names = pd.DataFrame(numbers, columns=model.feature_names_in_)
    assert model.predict(names).tolist() == model.predict(numbers).tolist()


@pytest.mark.filterwarnings("ignore")
def test_a_frame_without_a_column_is_refused(files):
    for name in ("logistic.zip", "oct.json"):
        model, _ = fitted(files, name)
        with pytest.raises(InvalidInputError, match="the table lacks 'kind'"):
            model.predict(pd.read_csv(files / "new.csv").drop(columns="kind"))
        with pytest.raises(InvalidInputError, match="'old' in row 2"):
            model.predict(pd.read_csv(files / "new.csv").astype({"x": object}).assign(x=["1", "old"] + ["1"] * (N - 2)))


@pytest.mark.filterwarnings("ignore")
def test_saved_again_and_fitted_again(files, tmp_path):
    model, _ = fitted(files, "oct-h.json")
    model.save(tmp_path / "again.json")
    frame = pd.read_csv(files / "new.csv")
    assert load_model(tmp_path / "again.json").predict(frame).tolist() == model.predict(frame).tolist()
    assert main(["show", str(tmp_path / "again.json")]) == 0
    model.fit([[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"])
    assert model.predict([[0.0], [3.0]]).tolist() == ["no", "yes"]
    with pytest.raises(ValueError, match="features"):
        model.predict(frame[["x", "v"]])


def test_tables_in_files_are_checked(files, tmp_path):
    fitted(files, "oct-h.json")
    text = (files / "oct-h.json").read_text(encoding="utf-8")
    (tmp_path / "bad.json").write_text(text.replace('"kind": "date"', '"kind": "dates"'), encoding="utf-8")
    with pytest.raises(ModelFileError, match="table.encoder"):
        load_model(tmp_path / "bad.json")
