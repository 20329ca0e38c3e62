"""The command line and tables: ids, encodings, dates, parts, and all that is wrong in one message."""

import json

import numpy as np
import polars as pl
import pytest
from tests.cli_survey import changed

from treewright import load_model
from treewright.app import table_model
from treewright.cli import main
from treewright.data.tables.files import read_table
from treewright.data.tables.writing import write_table


@pytest.fixture
def register(tmp_path):
    """A table with ids, text, dates and gaps; labels follow age."""
    rng = np.random.default_rng(0)
    n = 40
    age = rng.integers(18, 80, n).astype(float)
    label = np.where(age < 50, "ja", "nein").astype(object)
    label[::3] = None
    age[5] = np.nan
    columns = {
        "id": [f"{i:04}" for i in range(n)],
        "age": age,
        "region": rng.choice(["north", "süd", None], n),
        "born": [f"{d}.{m}.19{y}" for d, m, y in rng.integers(10, 13, (n, 3))],
        "employed": label,
    }
    write_table(tmp_path / "r.csv", columns)
    return tmp_path / "r.csv"


def fit(register, *more):
    command = ["fit", str(register), "--target", "employed", "--id", "id", "--max-depth", "1", "--time-limit", "20"]
    return main(changed([*command, "--model", "oct-h", "--out", str(register.parent / "m.json")], *more))


def test_ids_are_carried_as_they_are_written(register, tmp_path, capsys):
    model, out = str(tmp_path / "m.json"), tmp_path / "p.csv"
    assert fit(register, "--predictions", str(out)) == 0
    said = capsys.readouterr().err
    assert "'born' has dates, which become numbers" in said and "'age' (1 of them" in said
    assert "id" not in said
    written = read_table(out, text=["id"])
    assert written.columns[:4] == ["row", "id", "employed", "prediction"]
    assert written["id"].tolist() == [f"{i:04}" for i in range(40)]
    assert main(["predict", model, str(register), "--id", "id", "--out", str(tmp_path / "q.csv")]) == 0
    assert (tmp_path / "q.csv").read_bytes() == out.read_bytes()
    assert main(["predict", str(tmp_path / "m.json"), str(register), "--out", str(tmp_path / "q.parquet")]) == 0
    assert "id" not in read_table(tmp_path / "q.parquet").columns
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "m.json"), str(register), "--id", "ID", "--out", str(out)]) == 2
    assert "--id: there is no column 'ID'" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["q.csv", "q.parquet"])
def test_parts_are_predicted_as_the_whole(register, tmp_path, capsys, monkeypatch, name):
    assert fit(register, "--quiet") == 0
    table = read_table(register, text=["id"])
    other = table.frame.with_columns(
        pl.when(pl.int_range(pl.len()) % 7 == 0).then(pl.lit("west")).otherwise("region").alias("region")
    )
    data = tmp_path / f"other.{name[2:]}"
    write_table(data, {part.name: part for part in other})
    said = []
    for rows in (1000, 7):
        monkeypatch.setattr(table_model, "_BATCH_ROWS", rows)
        capsys.readouterr()
        assert main(["predict", str(tmp_path / "m.json"), str(data), "--id", "id", "--out", str(tmp_path / name)]) == 0
        said.append((capsys.readouterr(), read_table(tmp_path / name, text=["id"]).frame.rows()))
    assert said[0] == said[1]
    assert "'west' (6 rows); they count as" in said[0][0].err and said[0][0].err.count("\n") == 2
    assert [row[0] for row in said[0][1]] == list(range(1, 41))


def test_a_bad_row_is_named_by_its_place_in_the_file(register, tmp_path, capsys, monkeypatch):
    assert fit(register, "--quiet") == 0
    monkeypatch.setattr(table_model, "_BATCH_ROWS", 3)
    lines = register.read_text().splitlines()
    lines[8] = lines[8].replace(lines[8].split(",")[1], "old")
    register.write_text("\n".join(lines))
    capsys.readouterr()
    out = tmp_path / "q.csv"
    assert main(["predict", str(tmp_path / "m.json"), str(register), "--out", str(out)]) == 2
    assert "'age' has the text 'old' in row 8" in capsys.readouterr().err and not out.exists()


def test_encodings(register, tmp_path, capsys):
    register.write_bytes(register.read_text().encode("cp1252"))
    assert fit(register, "--quiet") == 0
    assert "not UTF-8 in line" in capsys.readouterr().err
    assert fit(register, "--encoding", "cp1252", "--report", str(tmp_path / "r.txt"), "--quiet") == 0
    assert "UTF-8" not in capsys.readouterr().err
    command = ["predict", str(tmp_path / "m.json"), str(register), "--out", str(tmp_path / "q.csv")]
    assert main([*command, "--encoding", "cp1252"]) == 0
    assert "'süd'" not in capsys.readouterr().err
    assert main([*command, "--encoding", "cp437"]) == 0
    assert "levels that the model has not seen" in capsys.readouterr().err
    assert main([*command, "--encoding", "none"]) == 2
    assert "'none' is no known encoding" in capsys.readouterr().err


def test_a_column_that_only_those_who_were_asked_have_is_no_feature(register, tmp_path, capsys):
    table = read_table(register, text=["id"])
    columns = {name: table[name] for name in table.columns}
    asked = np.array([label is not None for label in columns["employed"].tolist()])
    write_table(register, columns | {"interview": np.where(asked, np.arange(40.0) % 7, np.nan)})
    pages = [tmp_path / "r.txt", tmp_path / "r.html"]
    reports = [part for page in pages for part in ("--report", str(page))]
    assert fit(register, "--time-limit", "2", *reports) == 0
    said = capsys.readouterr().err
    assert "column 'interview' is empty in all rows without a label and is left out" in said
    assert "interview" not in load_model(tmp_path / "m.json").feature_names_in_
    text, page = (path.read_text(encoding="utf-8") for path in pages)
    assert "interview (empty in all rows without a label)" in " ".join(text.split())
    for report, accuracy in ((text, "Rows with a label: what"), (page, "How accurate it is")):
        warned = report.index(">Warnings<" if report == page else "\nWarnings\n")
        assert warned < report.index("is empty in all rows without a label and is left out") < report.index(accuracy)
    assert fit(register, "--drop", "interview", "--time-limit", "2", *reports) == 0
    assert "empty in all rows" not in capsys.readouterr().err
    assert not any("empty in all rows" in path.read_text(encoding="utf-8") for path in pages)
    assert fit(register, "--features", "age,interview", "--time-limit", "2") == 0
    assert "a feature as --features names it" in capsys.readouterr().err
    assert "interview" in load_model(tmp_path / "m.json").feature_names_in_


def test_all_that_is_wrong_is_said_at_once(register, capsys):
    assert fit(register, "--weight", "agee") == 2
    assert "there is no column 'agee'; did you mean 'age'?" in capsys.readouterr().err
    assert fit(register, "--drop", "size", "--weight", "mass") == 2
    assert "there is no column 'mass'; there are 'id', 'age'" in capsys.readouterr().err
    names = [*map(str, range(59)), "p"]  # numbers but for one cell, which is hardly meant
    write_table(register, {"id": names, "name": names, "street": names[::-1], "w": names, "employed": ["a", "b"] * 30})
    assert fit(register, "--weight", "w") == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "the weight column 'w' has text" in said
    assert "'name' has 60 different" in said and "'street' has 60 different" in said and "--drop name,street)" in said


def test_codes_with_zeros_in_front_as_target_groups_and_feature(tmp_path, capsys):
    """Totals, labels and groups that are joined by codes find each other only as they are written."""
    rng = np.random.default_rng(0)
    n = 60
    town, x = rng.choice(["01067", "04109"], n), rng.normal(size=n).round(3)
    label = np.where(x + rng.normal(size=n) > 0, "01", "02").astype(object)
    known = np.arange(n) % 3 == 0
    rows = zip(
        x.tolist(), town.tolist(), rng.choice(["007", "012"], n).tolist(), np.where(known, label, ""), strict=True
    )
    (tmp_path / "r.csv").write_text("x,town,trade,class\n" + "".join(f"{a},{b},{c},{d}\n" for a, b, c, d in rows))
    counts = {t: [int(np.sum(~known & (town == t) & (label == k))) for k in ("01", "02")] for t in ("01067", "04109")}
    (tmp_path / "t.csv").write_text("town,01,02\n" + "".join(f"{t},{a},{b}\n" for t, (a, b) in counts.items()))
    command = [
        "fit",
        str(tmp_path / "r.csv"),
        "--target",
        "class",
        "--totals",
        str(tmp_path / "t.csv"),
        "--groups",
        "town",
    ]
    command += ["--model", "totals", "--estimator", "logistic", "--out", str(tmp_path / "m.zip"), "--json"]
    assert main([*command, "--predictions", str(tmp_path / "p.csv")]) == 0
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert document["classes"] == ["01", "02"] and {row["group"] for row in document["totals"]} == set(counts)
    assert {row["deviation"] for row in document["totals"]} == {0}
    assert "column 'trade' is text, as it has codes with zeros in front, such as '0" in captured.err
    assert any(name.startswith("trade=0") for name in document["features"])
    assert set(read_table(tmp_path / "p.csv")["prediction"]) == {"01", "02"}
    (tmp_path / "t.csv").write_text("town,1,2\n" + "".join(f"{t},{a},{b}\n" for t, (a, b) in counts.items()))
    assert main(command) == 2
    assert "did you mean '01'" in capsys.readouterr().err
