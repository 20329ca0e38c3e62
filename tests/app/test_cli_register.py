"""The command line on registers that are labelled part by part: the same as in one part, whatever the file is."""

import json

import numpy as np
import polars as pl
import pytest

from treewright.app import register as app_register
from treewright.app import rows as app_rows
from treewright.cli import main
from treewright.data.tables import files as table_files
from treewright.data.tables import large as large_tables
from treewright.data.tables.encoder import TableEncoder
from treewright.data.tables.files import Table, read_table
from treewright.data.tables.large import FileTable, open_table
from treewright.data.tables.words import feature_words
from treewright.estimation import accuracy
from treewright.tree import Tree, route, telling_digits

N = 60


def columns(seed=0):
    """Numbers, categories, dates and gaps; levels, and text among numbers, that come late; three classes, two areas."""
    rng = np.random.default_rng(seed)
    age, pay = np.round(rng.normal(40, 12, N), 1), rng.normal(size=N)
    trade = np.where(np.arange(N) < 40, "weber", "müller").astype(object)
    trade[[3, 50]] = None
    code = [str(k % 3) for k in range(N - 2)] + ["x", "1.0"]
    truth = np.array(["ja", "nein", "vielleicht"], dtype=object)[
        np.digitize((age - 40) / 12 + pay + (trade == "weber") + 0.3 * rng.normal(size=N), [0.0, 1.0])
    ]
    asked = rng.permutation(N) < 24
    made = {
        "id": [f"{i:05}" for i in range(N)],
        "age": np.where(rng.random(N) < 0.1, np.nan, age),
        "pay": pay,
        "trade": trade,
        "code": code,
        "born": [f"{2000 - i}-02-{1 + i % 28:02}" for i in range(N)],
        "area": np.array(["nord", "süd"], dtype=object)[rng.integers(0, 2, N)],
        "works": np.where(asked, truth, None),
    }
    return made, truth, asked


@pytest.fixture
def folder(tmp_path):
    """The register as latin-1 text and as parquet, with its totals."""
    made, truth, asked = columns()
    frame = pl.DataFrame({name: pl.Series(name, list(values), strict=False) for name, values in made.items()})
    frame = frame.with_columns(pl.col("age").fill_nan(None))
    (tmp_path / "r.csv").write_bytes(frame.write_csv().encode("latin-1"))
    frame.with_columns(pl.col("born").str.to_date()).write_parquet(tmp_path / "r.parquet", row_group_size=9)
    rows = ["area,ja,nein,vielleicht"]
    for area in ("nord", "süd"):
        inside = ~asked & (made["area"] == area)
        rows.append(",".join([area, *(str(int(np.sum(truth[inside] == k))) for k in ("ja", "nein", "vielleicht"))]))
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return tmp_path


def in_parts(monkeypatch, part_rows, in_file):
    """Registers of more than ten rows come in parts, and stay in their file or not."""
    monkeypatch.setattr(accuracy, "_LEAST_PARTS", 10)  # however slow the machine is
    monkeypatch.setattr(app_rows, "_WHOLE_ROWS", 10)
    monkeypatch.setattr(app_rows, "_PART_ROWS", part_rows)
    for module in (table_files, large_tables):
        monkeypatch.setattr(module, "LOOK", 5)
    monkeypatch.setattr(large_tables, "_FILE_CELLS", 0 if in_file else 10**9)
    monkeypatch.setattr(large_tables, "_TEXT_BYTES", 0 if in_file else 10**9)
    monkeypatch.setattr(large_tables, "_READ_CELLS", 100)


def fit(folder, kind, *more, out="p"):
    files = ["--out", str(folder / f"{out}.zip"), "--predictions", str(folder / f"{out}.{kind}")]
    known = ["--target", "works", "--totals", str(folder / "t.csv"), "--groups", "area", "--id", "id"]
    more = [*more, "--estimator", "logistic", "--random-state", "0", "--json"]
    return main(["fit", str(folder / f"r.{kind}"), *known, *files, *more])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_parts_and_files_make_no_difference(folder, kind, monkeypatch, capsys):
    in_parts(monkeypatch, 10**6, False)
    assert fit(folder, kind, "--model", "totals", out="whole") == 0
    expected = json.loads(capsys.readouterr().out)
    whole = read_table(folder / f"whole.{kind}").frame
    for part_rows, in_file in ((7, False), (7, True), (1, True)):
        in_parts(monkeypatch, part_rows, in_file)
        assert fit(folder, kind, "--model", "totals") == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["totals"], found["accuracy"]) == (expected["totals"], expected["accuracy"])
        written = read_table(folder / f"p.{kind}").frame
        shares = [name for name in whole.columns if name.startswith("share_")]
        assert written.drop(shares).equals(whole.drop(shares))
        np.testing.assert_allclose(written.select(shares).to_numpy(), whole.select(shares).to_numpy(), atol=1e-12)
    made, truth, asked = columns()
    assert written.columns[:4] == ["row", "id", "works", "prediction"]
    label, area = written["prediction"].to_numpy(), made["area"]
    assert label[asked].tolist() == truth[asked].tolist()
    for name in ("nord", "süd"):
        for k in ("ja", "nein", "vielleicht"):
            inside = ~asked & (area == name)
            assert np.sum(label[inside] == k) == np.sum(truth[inside] == k)
            assert written[f"share_{k}"].to_numpy()[inside].sum() == pytest.approx(np.sum(truth[inside] == k), abs=1e-6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("short_searches")
def test_the_whole_job_in_parts(folder, monkeypatch, capsys):
    in_parts(monkeypatch, 9, True)
    monkeypatch.setattr(app_register, "_TREE_ROWS", 15)
    assert fit(folder, "parquet", "--report", str(folder / "r.txt"), "--time-limit", "5") == 0
    document = json.loads(capsys.readouterr().out)
    written = read_table(folder / "p.parquet")
    _, _, asked = columns()
    # the model file says of the rows what was written of them
    assert main(["predict", str(folder / "p.zip"), str(folder / "r.parquet"), "--out", str(folder / "n.csv")]) == 0
    assert np.array_equal(read_table(folder / "n.csv")["leaf"], written["leaf"])
    capsys.readouterr()
    report = (folder / "r.txt").read_text()
    shown = dict(zip(*np.unique(written["leaf"].astype(int), return_counts=True), strict=True))
    for leaf, rows in shown.items():
        assert f"leaf {leaf}: " in report and f"({rows} row" in report
    classes = load(folder / "p.zip")
    same = classes[written["leaf"].astype(int)] == written["prediction"]
    assert document["tree"]["agreement"] == pytest.approx(np.mean(same[~asked]), abs=1e-12)
    assert "labels have the largest sum of scores within the totals" in report
    assert "learned from 15 of 24 rows with a label and" in report


def load(path):
    """Class of each node of the tree of a model."""
    from treewright.app.table_model import TableModel

    tree = TableModel.read(str(path)).explaining
    return tree.classes_[tree.tree_.labels]


@pytest.mark.filterwarnings("ignore")
def test_a_table_in_a_file_is_the_table_in_memory(folder, monkeypatch):
    in_parts(monkeypatch, 7, True)
    for kind in ("csv", "parquet"):
        whole = read_table(folder / f"r.{kind}", text=["id"])
        with open_table(folder / f"r.{kind}", text=["id"]) as table:
            assert isinstance(table, FileTable) and table.n_rows == N
            assert table.columns == whole.columns
            assert table.whole().frame.equals(whole.frame)
            parts = pl.concat([part.frame for part in table.batches(["code", "id", "age"], 7)])
            assert parts.equals(whole.frame.select("code", "id", "age"))
            rows = np.array([0, 8, 9, 59])
            assert table.taken(rows, ["trade"]).frame.equals(whole.frame.select("trade")[rows])
            assert table.head(3).frame.equals(whole.frame.head(3))
            assert table.coded("area").names == ["nord", "süd"]
            assert np.asarray(table.coded("trade")).tolist() == whole["trade"].tolist()


@pytest.mark.filterwarnings("ignore")
def test_what_is_wrong_is_told_with_its_row(folder, monkeypatch, capsys):
    in_parts(monkeypatch, 7, True)
    frame = pl.read_parquet(folder / "r.parquet")
    made, _, asked = columns()
    row = int(np.flatnonzero(~asked)[-1])

    def without(name, value):
        changed = pl.when(pl.col("id") == made["id"][row]).then(value).otherwise(pl.col(name)).alias(name)
        frame.with_columns(changed).write_parquet(folder / "r.parquet")

    without("pay", np.inf)
    assert fit(folder, "parquet", "--model", "totals") == 2
    assert f"column 'pay' has inf in row {row + 1}; numbers must be finite" in capsys.readouterr().err
    assert not (folder / "p.zip").exists()
    without("area", None)
    assert fit(folder, "parquet", "--model", "totals") == 2
    said = f"column 'area' is empty in row {row + 1}; each row without a label needs a group"
    assert said in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore")
def test_digits_of_a_tree_that_sees_some_of_the_columns():
    """The rule "age <= 30.12346 or age is missing" needs its digits whether other columns are read or not."""
    columns = {"region": np.array(["a", "b", "c", "a"] * 5, dtype=object), "age": np.arange(20.0) + 20.123457}
    columns["age"][10] = 30.12345
    table = Table(columns | {"age": np.where(np.arange(20) % 7 == 0, None, columns["age"]).astype(object)})
    encoder = TableEncoder.fit(table, ["region", "age"], fill_gaps=True)
    X, words = encoder.transform(table)[0], feature_words(encoder)
    weights = np.zeros(X.shape[1])
    weights[-2:] = 1.0, -50.0
    tree = Tree.stump(weights, 30.1234585, np.eye(2))
    whole = telling_digits(tree, X, route(tree, X), words)
    assert whole  # with four digits the row of 30.12345 would be elsewhere

    class Fitted:
        trees_ = [tree]

    narrow, place = app_register._seen_by(Fitted(), encoder)
    assert place.tolist() == [2, 3] and feature_words(narrow)[1].filled == (0, words[3].filled[1])
    small, rows = app_register._narrowed(Fitted(), place).tree_, narrow.transform(table)[0]
    assert telling_digits(small, rows, route(small, rows), feature_words(narrow)) == whole
