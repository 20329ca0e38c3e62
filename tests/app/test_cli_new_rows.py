"""Reports of ``predict``: totals asked and reached, rows in leaves, and what changed since the fit."""

import json
import re

import numpy as np
import pytest

from treewright.cli import main
from treewright.data.tables.files import read_table
from treewright.data.tables.writing import write_table

N = 160
CLASSES = ("employed", "inactive", "retired")


def made(seed, areas):
    rng = np.random.default_rng(seed)
    x, kind = rng.normal(size=N), rng.choice(["a", "b", "c"], N).astype(object)
    score = 2 * x + (kind == "a") + rng.logistic(size=N)
    truth = np.array(CLASSES, dtype=object)[np.digitize(score, [0.0, 2.5])]
    return {"x": x, "kind": kind, "area": rng.choice(np.array(areas, dtype=object), N)}, truth


def counts(truth, area, rows):
    areas = sorted(set(area.tolist()))
    return {"area": areas} | {c: [int(np.sum((truth == c) & rows & (area == a))) for a in areas] for c in CLASSES}


@pytest.fixture(scope="module")
def files(tmp_path_factory, short_searches_of_module):
    """A folder with a model of the whole job, and next year's rows: a level, a group and gaps are new."""
    folder = tmp_path_factory.mktemp("years")
    columns, truth = made(0, ["north", "south"])
    known = np.random.default_rng(1).random(N) < 0.4
    write_table(folder / "register.csv", {**columns, "z": np.where(known, truth, None)})
    write_table(folder / "totals.csv", counts(truth, columns["area"], ~known))
    fit = ["fit", str(folder / "register.csv"), "--target", "z", "--totals", str(folder / "totals.csv"), "--quiet"]
    fit += ["--groups", "area", "--random-state", "0", "--out", str(folder / "m.zip"), "--estimator", "logistic"]
    assert main([*fit, "--time-limit", "3", "--predictions", str(folder / "p.csv")]) == 0
    new, later = made(2, ["north", "west"])
    new["kind"][:4], new["x"][:3] = "d", np.nan
    write_table(folder / "new.csv", new)
    asked = counts(later, new["area"], np.ones(N, dtype=bool))
    write_table(folder / "new_totals.csv", {name: column[:1] for name, column in asked.items()})
    return folder


def predicted(folder, *more):
    out, reports = folder / "labels.csv", [folder / "r.txt", folder / "r.html"]
    command = ["predict", str(folder / "m.zip"), str(folder / "new.csv"), "--out", str(out), *more]
    code = main([*command, *(part for path in reports for part in ("--report", str(path)))])
    assert code == 0
    return read_table(out), *(path.read_text(encoding="utf-8") for path in reports)


@pytest.mark.filterwarnings("ignore")
def test_totals_leaves_and_changes(files, capsys):
    within = ["--totals", str(files / "new_totals.csv"), "--groups", "area", "--json"]
    written, text, page = predicted(files, *within)
    document = json.loads(capsys.readouterr().out)
    assert document["files"].keys() == {"predictions", "report", "html_report"}
    new, before = read_table(files / "new.csv"), read_table(files / "p.csv")
    asked = read_table(files / "new_totals.csv")
    for label in CLASSES:
        then, now = np.sum(before["prediction"] == label), np.sum(written["prediction"] == label)
        assert re.search(rf"{label} +{then} +{then / N:.1%} +{now} +{now / N:.1%}\n", text)
        inside = (new["area"] == "north") & (written["prediction"] == label)
        assert int(asked[label][0]) == inside.sum()
        assert re.search(rf"north +{label} +{inside.sum()} +{inside.sum()} +0\n", text)
    leaves = written["leaf"].astype(int)
    for leaf in np.unique(leaves).tolist():
        then, now = np.sum(before["leaf"] == leaf), np.sum(leaves == leaf)
        assert re.search(rf"{leaf} +\w+ +{then} +{then / N:.1%} +{now} +{now / N:.1%}\n", text)
        share = max(np.mean(written["prediction"][leaves == leaf] == label) for label in CLASSES)
        assert re.search(rf"leaf {leaf}: \w+  \({now} rows?", text) and 0 < share <= 1
    for said in (
        "all 3 totals are met to the row",
        "Groups that the fit had not: 'west'.",
        "Groups of the fit without a row here: 'south'.",
        "Groups without totals: 'west'. They have what the model predicts.",
        "It was not measured: no labels of these rows were left out.",
    ):
        assert said in " ".join(text.split())
        assert said.replace("'", "&#x27;").lower() in " ".join(page.split()).lower(), said
    assert 'New values of "kind": "d" (4 rows, 2.5%)' in text and "New values of &quot;kind&quot;" in page
    assert 'Missing values in columns that had none at the fit: "x" (3 rows)' in " ".join(text.split())
    assert "How it was made" in text and "model: m.zip, a TotalsClassifier" in text and "Parameters" not in text
    for wrong in ("given labels", "<script"):
        assert wrong not in text and wrong not in page
    said = text[: text.index("Warnings")] + text[text.index("What changed") :]
    assert "without a label" not in said  # of these rows none has one


@pytest.mark.filterwarnings("ignore")
def test_without_totals(files, capsys):
    written, text, page = predicted(files)
    assert "no totals were given: each row has the class that the model predicts" in text
    assert "--totals FILE" in text and "Totals asked and reached" not in page
    assert f"{N}</b> <span>rows were labelled" in page
    for told in (text, page):
        assert "The report of the fit says how accurate labels of rows" in " ".join(told.split())
    assert "of them labelled so" in text
    assert len(written["leaf"]) == N


def test_files_are_checked_before(files, capsys):
    command = ["predict", str(files / "m.zip"), str(files / "new.csv"), "--out", str(files / "x.csv")]
    assert main([*command, "--report", str(files / "x.csv")]) == 2
    assert "the same file as --out" in capsys.readouterr().err
    assert main([*command, "--report", "a.txt", "--report", "b.txt"]) == 2
    assert not (files / "x.csv").exists()


@pytest.mark.filterwarnings("ignore")
def test_models_that_are_trees_and_whole_numbers(tmp_path, capsys):
    rng = np.random.default_rng(0)
    x = rng.random(60).round(3)
    write_table(tmp_path / "d.csv", {"x": x, "z": (x > 0.5).astype(int) + 3})
    fit = ["fit", str(tmp_path / "d.csv"), "--target", "z", "--model", "oct", "--max-depth", "1", "--quiet"]
    assert main([*fit, "--out", str(tmp_path / "m.json"), "--time-limit", "2"]) == 0
    write_table(tmp_path / "new.csv", {"x": x[:20]})
    predict = ["predict", str(tmp_path / "m.json"), str(tmp_path / "new.csv"), "--out", str(tmp_path / "p.csv")]
    assert main([*predict, "--report", str(tmp_path / "r.txt")]) == 0
    text, n = (tmp_path / "r.txt").read_text(), int(np.sum(x[:20] <= 0.5))
    assert re.search(rf"\n +3 +{np.sum(x <= 0.5)} +\S+ +{n} +\S+\n", text)
    assert "It agrees with" not in text and "leaf 1: 3" in text
    assert re.search(rf"leaf \d: 3  \({n} rows\)\n", text) and "labelled so" not in text
    said = " ".join(text.split())
    assert "It was not measured" in said and "The report of the fit says how accurate" not in said


@pytest.mark.filterwarnings("ignore")
def test_what_stands_for_missing_numbers_is_told_beside_every_tree(tmp_path, capsys):
    x = np.arange(1.0, 42.0)
    missing = x % 10 == 5
    there = np.sort(x[~missing])
    first = (len(there) - 1) // 2 - 4
    middle = np.round(there[first : first + 10].mean())  # the ten middle values, as a whole number where they are
    write_table(tmp_path / "d.csv", {"rent": np.where(missing, np.nan, x), "z": np.where(x > 12, "high", "low")})
    fit = ["fit", str(tmp_path / "d.csv"), "--target", "z", "--model", "binoct", "--max-depth", "1", "--quiet"]
    reports = ["--report", str(tmp_path / "r.txt"), "--report", str(tmp_path / "r.html")]
    assert main([*fit, "--out", str(tmp_path / "m.json"), "--time-limit", "5", *reports]) == 0
    assert main(["show", str(tmp_path / "m.json")]) == 0
    note = f'Where "rent" is missing, {middle:g} stands for it.'
    assert note in capsys.readouterr().out
    assert note in (tmp_path / "r.txt").read_text(encoding="utf-8")
    assert note.replace('"', "&quot;") in (tmp_path / "r.html").read_text(encoding="utf-8")
