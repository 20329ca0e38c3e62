"""The whole job in Python is that of the command line, to the row; its errors speak Python."""

import json
import signal
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.cli_register import AREAS, N, made

from treewright import LabelledTable, S2OCTClassifier, label_table, load_model
from treewright.app import rows as app_rows
from treewright.cli import main
from treewright.core.progress import reported
from treewright.data.tables import files as table_files
from treewright.data.tables import large as large_tables
from treewright.data.tables.files import read_table
from treewright.data.tables.writing import write_table
from treewright.estimation import accuracy
from treewright.exceptions import TreewrightError

SEXES = np.array(["f", "m"], dtype=object)
COLUMNS, TRUTH = made(0)
COLUMNS = COLUMNS | {"sex": SEXES[np.random.default_rng(2).integers(0, 2, N)]}
ASKED = np.random.default_rng(1).random(N) < np.where(TRUTH == "yes", 0.4, 0.2)
PERSON = np.array([f"{i:04d}" for i in range(N)], dtype=object)
REGISTER = {"person": PERSON, **COLUMNS, "z": np.where(ASKED, TRUTH, None)}


def counts(by, names, rows=~ASKED):
    """Rows of each class in each group, ``{group: {class: count}}``."""
    inside = {name: rows & (COLUMNS[by] == name) for name in names}
    return {name: {k: int(np.sum(mask & (k == TRUTH))) for k in ("yes", "no")} for name, mask in inside.items()}


def table_of(totals, by):
    """The same as columns of a table."""
    return {by: list(totals), **{k: [of[k] for of in totals.values()] for k in ("yes", "no")}}


def intervals(totals, by):
    """Ten per cent either way, as a table with a row for each class of each group."""
    rows = [(name, k, int(0.9 * n), int(1.1 * n) + 1) for name, of in totals.items() for k, n in of.items()]
    return dict(zip((by, "class", "low", "high"), map(list, zip(*rows, strict=True)), strict=True))


def polars_frame(columns):
    """Of text, not of objects."""
    return pl.DataFrame({name: np.asarray(values).tolist() for name, values in columns.items()}, strict=False)


BY_AREA, BY_SEX = counts("area", AREAS), counts("sex", SEXES)
ALL = {k: sum(of[k] for of in BY_AREA.values()) for k in ("yes", "no")}
PAIRS = {name: {k: [int(0.9 * n), int(1.1 * n) + 1] for k, n in of.items()} for name, of in BY_AREA.items()}
WHOLE = counts("area", AREAS, np.ones(N, dtype=bool))
NUMBERS = REGISTER | {"z": np.where(ASKED, (TRUTH == "yes") + 1.0, np.nan)}
NAMES = REGISTER | {"z": np.where(ASKED & (np.arange(N) % 3 == 0), "Yes ", REGISTER["z"])}
SCALED = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))

# What Python is given (the table as a path is "path"), and the totals, files and options of the command line.
CASES = {
    "a path": ("path", {"totals": "t.csv", "groups": "area", "id": "person"}, {"t.csv": table_of(BY_AREA, "area")}),
    "a frame of pandas": (pd.DataFrame, {"totals": BY_AREA, "groups": "area"}, {"t.csv": table_of(BY_AREA, "area")}),
    "a frame of polars": (
        polars_frame,
        {"totals": pl.DataFrame(table_of(BY_AREA, "area")), "groups": "area", "id": "person"},
        {"t.csv": table_of(BY_AREA, "area")},
    ),
    "totals whose index is the groups": (
        pd.DataFrame,
        {"totals": pd.DataFrame(BY_AREA).T.rename_axis("area"), "groups": "area", "drop": ["person", "sex"]},
        {"t.csv": table_of(BY_AREA, "area")},
    ),
    "two margins": (
        polars_frame,
        {"margins": {"area": BY_AREA, "sex": pd.DataFrame(table_of(BY_SEX, "sex"))}},
        {"area.csv": table_of(BY_AREA, "area"), "sex.csv": table_of(BY_SEX, "sex")},
    ),
    "a part of the totals": (pd.DataFrame, {"totals": {"yes": ALL["yes"]}}, {"t.json": {"yes": ALL["yes"]}}),
    "shares": (
        polars_frame,
        {"totals": pd.DataFrame({"yes": [0.45], "no": [0.55]}), "totals_tolerance": 0.02},
        {"t.csv": {"yes": [0.45], "no": [0.55]}},
    ),
    "intervals": (pd.DataFrame, {"totals": PAIRS, "groups": "area"}, {"t.csv": intervals(BY_AREA, "area")}),
    "a frame of intervals": (
        polars_frame,
        {"totals": pl.DataFrame(intervals(BY_AREA, "area")), "groups": "area"},
        {"t.json": PAIRS},
    ),
    "answers are subtracted": (
        "path",
        {"totals": WHOLE, "groups": "area", "totals_of": "all"},
        {"t.csv": table_of(WHOLE, "area")},
    ),
    "no totals": (
        polars_frame,
        {"id": "person", "weight": "v2", "max_depth": 1, "settings": {"prefer": "sparse"}},
        {},
    ),
    "whole numbers": (
        pd.DataFrame,
        {"totals": {2: ALL["yes"], 1: ALL["no"]}},
        {"t.csv": {"1": [ALL["no"]], "2": [ALL["yes"]]}},
    ),
    "names written alike": (polars_frame, {"totals": ALL, "spelling": "merge"}, {"t.json": ALL}),
    "marks of what is missing": (pd.DataFrame, {"na": ["?"], "features": ["x", "v"]}, {}),
    "the labels alone": ("path", {"model": "totals", "totals": ALL}, {"t.json": ALL}),
    "a forest alone": (
        "path",
        {"model": "c2rf", "totals": ALL, "time_limit": 20.0, "estimator": "forest"},
        {"t.json": ALL},
    ),
}
TABLES = {
    "no totals": REGISTER | {"v2": np.round(np.abs(COLUMNS["v"]) + 0.5, 3)},
    "whole numbers": NUMBERS,
    "names written alike": NAMES,
    "marks of what is missing": REGISTER | {"z": np.where(ASKED, TRUTH, "?").astype(object)},
}


def arguments(folder, how, files):
    """The command that asks for the same."""
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content)) if name.endswith("json") else write_table(
            folder / name, content
        )
    more = []
    for name, value in how.items():
        if name == "totals":
            more += ["--totals", str(folder / next(iter(files)))]
        elif name == "margins":
            more += [part for path in files for part in ("--margin", f"{path[:-4]}={folder / path}")]
        elif name == "settings":
            more += [part for key, one in value.items() for part in ("--set", f"{key}={one}")]
        elif isinstance(value, list):
            more += [part for one in value for part in (f"--{name}", one)]
        else:
            more += ["--" + name.replace("_", "-"), str(value)]
    return more


def commanded(folder, capsys, *more):
    """What the command line finds: its document and its predictions."""
    files = ["--out", str(folder / "c.zip"), "--predictions", str(folder / "p.parquet")]
    fit = ["fit", str(folder / "r.csv"), "--target", "z", "--random-state", "0", *files, *more, "--json"]
    assert main(fit) == 0
    return json.loads(capsys.readouterr().out), pl.read_parquet(folder / "p.parquet")


def check_same(job, document, predictions, folder):
    """Labels, shares, leaves, accuracy, totals and the model, of Python and of the command line."""
    labels = job.labels
    assert labels["label"].cast(pl.String).to_list() == predictions["prediction"].cast(pl.String).to_list()
    others = [name for name in labels.columns if name == "leaf" or name.startswith("share_")]
    assert others == [name for name in predictions.columns if name == "leaf" or name.startswith("share_")]
    for name in others:
        assert labels[name].to_list() == predictions[name].to_list(), name
    assert ("leaf" in others) == (job.tree is not None)
    asked = json.loads(json.dumps(job.totals))
    assert asked == document["totals"]
    found = document["accuracy"]
    assert [found[name] for name in ("value", "low", "high", "n_known")] == [
        getattr(job.accuracy, name) for name in ("value", "low", "high", "n_known")
    ]
    assert document["tree"] is None if job.tree is None else document["tree"]["rules"] == job.rules
    job.save(folder / "j.zip")
    models = [load_model(folder / name) for name in ("c.zip", "j.zip")]
    frame = read_table(folder / "r.csv").frame
    first, second = (model.predict_proba(frame) for model in models)
    assert np.array_equal(first, second)
    assert np.array_equal(*(model.predict(frame) for model in models))


@pytest.fixture
def steady(monkeypatch, shortest_searches):
    """Parts that are left out are no matter of the clock."""
    monkeypatch.setattr(accuracy, "_LEAST_PARTS", 10)


@pytest.mark.usefixtures("steady")
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("case", CASES)
def test_python_does_what_the_command_line_does(case, tmp_path, capsys):
    kind, how, files = CASES[case]
    columns = TABLES.get(case, REGISTER)
    if how.get("id") is None and "drop" not in how and "features" not in how:
        how = how | {"drop": ["person"]}
    how = {"estimator": "logistic"} | how
    write_table(tmp_path / "r.csv", columns)
    more = arguments(tmp_path, how, files)
    document, predictions = commanded(tmp_path, capsys, *more)
    if isinstance(how.get("totals"), str):
        how = how | {"totals": tmp_path / how["totals"]}
    table = tmp_path / "r.csv" if kind == "path" else kind(columns)
    job = label_table(table, target="z", random_state=0, **how)
    assert capsys.readouterr() == ("", "")
    check_same(job, document, predictions, tmp_path)
    if "id" in how:
        assert job.labels["person"].to_list() == predictions["person"].to_list() == PERSON.tolist()


@pytest.mark.usefixtures("steady")
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("in_file", [True, False])
def test_a_register_that_comes_in_parts(in_file, tmp_path, capsys, monkeypatch):
    """The file is closed behind the job, which has its labels all the same."""
    monkeypatch.setattr(app_rows, "_WHOLE_ROWS", 10)
    monkeypatch.setattr(app_rows, "_PART_ROWS", 7)
    for module in (table_files, large_tables):
        monkeypatch.setattr(module, "LOOK", 5)
    for name in ("_FILE_CELLS", "_TEXT_BYTES"):
        monkeypatch.setattr(large_tables, name, 0 if in_file else 10**9)
    write_table(tmp_path / "r.csv", REGISTER)
    how = {"totals": BY_AREA, "groups": "area", "id": "person", "estimator": "logistic"}
    more = arguments(tmp_path, how, {"t.csv": table_of(BY_AREA, "area")})
    document, predictions = commanded(tmp_path, capsys, *more)
    job = label_table(tmp_path / "r.csv", target="z", random_state=0, **how)
    assert job._rows.large
    job.report(tmp_path / "r.txt")
    check_same(job, document, predictions, tmp_path)
    assert job.labels["person"].to_list() == PERSON.tolist()


@pytest.fixture(scope="module")
def job(short_searches_of_module):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return label_table(
            pd.DataFrame(REGISTER), target="z", totals=BY_AREA, groups="area", id="person", estimator=SCALED
        )


def test_what_is_said_and_written(job, tmp_path):
    assert isinstance(job, LabelledTable) and isinstance(job.tree, S2OCTClassifier)
    assert repr(job) == f"<LabelledTable: 'z' of {N} rows, {ASKED.sum()} of them with a label>"
    assert job.labels.columns == ["person", "label", "share_no", "share_yes", "leaf"]
    labels, leaves = job.labels["label"].to_numpy(), job.labels["leaf"].to_numpy()
    assert np.array_equal(labels[ASKED], TRUTH[ASKED])
    for area in AREAS:
        inside = ~ASKED & (COLUMNS["area"] == area)
        assert {k: int(np.sum(labels[inside] == k)) for k in ("yes", "no")} == BY_AREA[area]
        shares = job.labels.filter(pl.Series(inside))["share_yes"]
        assert shares.sum() == pytest.approx(BY_AREA[area]["yes"], abs=1e-6)
    tree = job.tree.tree_
    assert np.all(tree.is_leaf[leaves])
    agree = np.mean(tree.labels[leaves][~ASKED] == np.searchsorted(job.classes, labels[~ASKED].astype(str)))
    said = job.summary()
    assert "all 4 totals are met to the row" in said and f"a tree that agrees with {agree:.1%}" in said
    assert f"{job.accuracy.value:.1%} of the labels are likely to be right" in said
    seed = job.model.random_state_
    assert said.splitlines()[-1].startswith(f"seed: {seed}; random_state={seed} gives the same again")
    for name in ("r.txt", "r.html"):
        job.report(tmp_path / name)
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert "Labels of a table" in text and "--" not in text.partition("<style>")[0]
    job.write_labels(tmp_path / "p.csv")
    assert read_table(tmp_path / "p.csv")["prediction"].tolist() == labels.tolist()


def test_ids_keep_the_type_that_they_have_in_a_frame(tmp_path):
    frame = polars_frame(REGISTER).with_columns(person=pl.int_range(N, dtype=pl.Int64))
    found = label_table(frame, target="z", id="person", estimator="logistic", model="totals", random_state=0)
    assert found.labels["person"].equals(frame["person"])
    assert found.labels.columns == ["person", "label", "share_no", "share_yes"] and found.tree is None


FRAME = pd.DataFrame(REGISTER)


@pytest.mark.parametrize(
    ("table", "how", "says"),
    [
        (FRAME, {"target": "w"}, "there is no column 'w'"),
        (FRAME, {"totals": {"yes": 5, "perhaps": 3}, "id": "person"}, "labelled rows, say allow_new_classes=True"),
        (FRAME, {"groups": "area"}, "groups says by what totals are known; give totals too"),
        (FRAME, {"totals": BY_AREA}, "totals: has totals by group; name the column with groups"),
        (FRAME, {"totals": ALL, "groups": "area"}, "expected {group: {class: total}} with groups='area'"),
        (FRAME, {"totals": "t.csv"}, "t.csv"),
        (FRAME, {"totals": 7}, "totals: is of type int; expected the path of a file, a mapping or a frame"),
        (FRAME, {"margins": [("area", BY_AREA), ("area", BY_AREA)]}, "margins: totals by 'area' are given twice"),
        (FRAME, {"model": "c2rf", "margins": {"area": BY_AREA, "sex": BY_SEX}}, "of several model='totals' does"),
        (FRAME, {"model": "s2oct"}, "model='s2oct': does not label rows; expected 'c2rf' or 'totals'"),
        (FRAME, {"estimator": "oak"}, "estimator='oak': there is no such estimator"),
        (FRAME, {"model": "c2rf", "estimator": "logistic"}, "estimator='logistic': c2rf weighs the members"),
        (FRAME, {"settings": {"depth": 3}}, "(without model the tree that explains the labels is an s2oct)"),
        (FRAME, {"settings": {"max_depth": 3}, "max_depth": 2}, "settings={'max_depth': 3}: max_depth is given twice"),
        (FRAME, {"settings": {"warm_start": True}}, "use warm_start="),
        (FRAME, {"features": ["x", "z"]}, "features: 'z' is the target"),
        (FRAME, {"totals_of": "some"}, "totals_of='some': expected 'unlabeled' or 'all'"),
        (FRAME, {"spelling": "loose"}, "spelling='loose': expected None or 'merge' or 'keep'"),
        (FRAME, {"time_limit": -1.0}, "time_limit=-1.0: expected seconds above 0"),
        (FRAME.assign(z=TRUTH), {}, "has a label in each of 160 rows: there is nothing to label"),
        (FRAME.assign(z=NAMES["z"]), {}, "if they are one, spelling='merge' takes them for the first"),
        (FRAME.assign(z="?"), {"na": ["?"]}, "the target 'z' is empty in all 160 rows"),
        (FRAME.iloc[:0], {}, "the table has no rows"),
        (REGISTER, {}, "the table is of type dict; expected a path, or a frame of pandas or polars"),
    ],
)
def test_errors_name_what_python_has(table, how, says):
    with pytest.raises((TreewrightError, FileNotFoundError)) as error:
        label_table(table, **{"target": "z", "random_state": 0} | how)
    assert says in str(error.value) and "--" not in str(error.value)


def test_warnings_name_what_python_has_and_are_in_the_report(tmp_path):
    frame = FRAME.assign(z=np.where(ASKED, TRUTH, None), number=np.arange(N))
    frame.loc[np.flatnonzero(ASKED)[0], "z"] = "?"
    with pytest.warns(UserWarning, match="leaves it out") as told:
        found = label_table(frame, target="z", model="totals", estimator="logistic", id="person", random_state=0)
    said = [str(one.message) for one in told]
    assert any(text.endswith("if that means missing: na=['?']") for text in said)
    assert any("drop='number' leaves it out" in text for text in said)
    assert all(one.filename == __file__ for one in told)
    found.report(tmp_path / "r.txt")
    report = " ".join((tmp_path / "r.txt").read_text().split())
    assert "drop='number' leaves it out" in report


@pytest.mark.usefixtures("shortest_searches")
def test_progress_is_told_to_who_listens(capsys):
    stages = []
    with reported(lambda event: stages.append(event.stage)):
        label_table(FRAME, target="z", id="person", estimator="logistic", random_state=0, time_limit=5.0)
    first = {stage.partition(":")[0]: None for stage in stages if stage}
    assert list(first) == ["the table is read", "labels", "labels left out", "tree"]
    assert capsys.readouterr() == ("", "")


def test_a_ctrl_c_keeps_the_labels(monkeypatch):
    """In the estimate, and then in the tree: as on the command line, where nobody catches them before."""

    def interrupt(self, *args, **kwargs):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(accuracy._Task, "found", interrupt)
    monkeypatch.setattr(S2OCTClassifier, "fit", interrupt)
    found = label_table(FRAME, target="z", totals=ALL, id="person", estimator="logistic", random_state=0)
    assert found.accuracy is None and "interrupted" in found.no_accuracy and found.tree is None
    assert {k: int(np.sum(found.labels["label"].to_numpy()[~ASKED] == k)) for k in ALL} == ALL
    assert "accuracy: not known, leaving labels out was interrupted" in found.summary()
