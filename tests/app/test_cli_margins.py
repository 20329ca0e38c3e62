"""Totals of several margins on the command line: by region and by sex, which cross."""

import json
import re

import numpy as np
import pytest
from tests import cli_register
from tests.examples import looped

from treewright import load_model
from treewright.cli import main
from treewright.data.tables.files import read_table
from treewright.data.tables.writing import write_table

N, SEXES = cli_register.N, np.array(["f", "m"], dtype=object)
CLASSES = ("yes", "no")
pytestmark = pytest.mark.usefixtures("short_searches")


def sexes(seed):
    return SEXES[np.random.default_rng(100 + seed).integers(0, 2, N)]


def by(names, column, truth, rows):
    found = {k: [int(np.sum((truth == k) & rows & (column == name))) for name in names] for k in CLASSES}
    return found


@pytest.fixture
def folder(tmp_path):
    """The register with a column of sexes, and totals by area and by sex."""
    columns, truth, asked = cli_register.register(tmp_path)
    columns = {**columns, "sex": sexes(0)}
    write_table(tmp_path / "register.csv", {**columns, "z": np.where(asked, truth, None)})
    write(tmp_path, "", columns, truth, ~asked)
    return tmp_path, columns, truth, asked


def write(folder, name, columns, truth, rows):
    for column, names in (("area", cli_register.AREAS), ("sex", SEXES)):
        counts = by(names, columns[column], truth, rows)
        write_table(folder / f"{name}{column}.csv", {column: names, **counts})


def margins(folder, name=""):
    return [part for c in ("area", "sex") for part in ("--margin", f"{c}={folder / f'{name}{c}.csv'}")]


def fit(folder, *more):
    command = [
        "fit",
        str(folder / "register.csv"),
        "--target",
        "z",
        "--random-state",
        "0",
        "--out",
        str(folder / "m.zip"),
    ]
    return main([*command, "--estimator", "logistic", "--time-limit", "4", *more])


def met(labels, columns, truth, rows):
    return all(
        np.sum((labels == k) & rows & (columns[c] == name)) == np.sum((truth == k) & rows & (columns[c] == name))
        for c, names in (("area", cli_register.AREAS), ("sex", SEXES))
        for name in names
        for k in CLASSES
    )


def test_all_margins_are_met_and_told(folder, capsys):
    """The last of several took the place of the others: all totals were said to be met, areas were off."""
    path, columns, truth, asked = folder
    files = ["--predictions", str(path / "p.csv"), "--report", str(path / "r.txt"), "--report", str(path / "r.html")]
    assert fit(path, *margins(path), *files, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert met(read_table(path / "p.csv")["prediction"], columns, truth, ~asked)
    told = [(row["margin"], row["by"], row["group"], row["class"], row["reached"]) for row in document["totals"]]
    expected = []
    for j, (column, names) in enumerate((("area", cli_register.AREAS), ("sex", SEXES))):
        for name in names:
            inside = ~asked & (columns[column] == name)
            expected += [(j, column, name, k, int(np.sum(inside & (truth == k)))) for k in ("no", "yes")]
    assert told == expected and document["tree"]["agreement"] > 0.5
    assert not {"area", "sex"} & set(document["features"])
    text, page = (path.joinpath(name).read_text(encoding="utf-8") for name in ("r.txt", "r.html"))
    assert fit(path, *margins(path), "--model", "totals") == 0
    terminal = capsys.readouterr().out
    assert main(["show", str(path / "m.zip")]) == 0
    shown = capsys.readouterr().out
    for _, column, name, label, n in expected:
        for said in (text, terminal, shown):
            assert re.search(rf"^ *{column} +{name} +{label} +{n} +{n} +0$", said, re.MULTILINE)
    assert "all 8 totals are met to the row" in text and "all 8 totals are met" in terminal
    for column in ("area", "sex"):
        assert f"Totals asked and reached, by <bdi>{column}</bdi>" in page
    assert "totals: area.csv, by area, and sex.csv, by sex, of the rows without a label" in " ".join(text.split())
    assert "--margin area=NEW_TOTALS_area.csv --margin sex=NEW_TOTALS_sex.csv" in text


def test_new_rows_within_several_margins(folder, capsys):
    path, *_ = folder
    assert fit(path, *margins(path), "--model", "totals", "--quiet") == 0
    new, truth = cli_register.made(7)
    new |= {"sex": sexes(7)}
    known = np.random.default_rng(3).random(N) < 0.2
    write_table(path / "new.csv", {**new, "z": np.where(known, truth, None)})
    write(path, "new_", new, truth, np.ones(N, dtype=bool))
    command = [
        "predict",
        str(path / "m.zip"),
        str(path / "new.csv"),
        "--out",
        str(path / "n.csv"),
        "--totals-of",
        "all",
    ]
    command += ["--report", str(path / "r.txt"), *margins(path, "new_"), "--json"]
    assert main(command) == 0
    labels = read_table(path / "n.csv")["prediction"]
    assert met(labels, new, truth, np.ones(N, dtype=bool)) and np.array_equal(labels[known], truth[known])
    for row in json.loads(capsys.readouterr().out)["totals"]:
        assert row["labelled"] == np.sum(known & (new[row["by"]] == row["group"]) & (truth == row["class"]))
    assert re.search(r"^ *by +group +class +of all rows +labelled +asked", (path / "r.txt").read_text(), re.MULTILINE)
    one = [part for part in command if not part.startswith("sex=")]
    del one[len(one) - 2]
    assert main(one) == 0
    labels = read_table(path / "n.csv")["prediction"]
    for area in cli_register.AREAS:
        inside = new["area"] == area
        assert np.sum(labels[inside] == "yes") == np.sum(truth[inside] == "yes")


def test_totals_of_all_rows_are_a_margin_too_and_one_margin_is_that_of_groups(folder, capsys):
    path, columns, truth, asked = folder
    (path / "t.csv").write_text(f"yes\n{np.sum(~asked & (truth == 'yes'))}\n")
    predictions = ["--model", "totals", "--json", "--predictions", str(path / "p.csv")]
    assert fit(path, "--totals", str(path / "t.csv"), *margins(path)[:2], *predictions) == 0
    document = json.loads(capsys.readouterr().out)
    assert [row["by"] for row in document["totals"]] == [None, None, "area", "area", "area", "area"]
    assert load_model(path / "m.zip").totals_ == document["totals"]
    assert fit(path, *margins(path)[:2], *predictions) == 0
    one, labels = json.loads(capsys.readouterr().out)["totals"], read_table(path / "p.csv").frame
    assert fit(path, "--totals", str(path / "area.csv"), "--groups", "area", *predictions) == 0
    assert json.loads(capsys.readouterr().out)["totals"] == one
    assert read_table(path / "p.csv").frame.equals(labels)
    assert fit(path, "--totals", str(path / "area.csv"), "--groups", "area", *margins(path)[2:], *predictions) == 0
    assert met(read_table(path / "p.csv")["prediction"], columns, truth, ~asked)


@looped(
    "options, says",
    [
        (["--margin", "area"], "expected COLUMN=FILE, such as region=totals_region.csv, got 'area'"),
        (["--margin", "area=area.csv", "--margin", "area=sex.csv"], "totals by 'area' are given twice"),
        (["--margin", "place=area.csv"], "there is no column 'place'"),
        (["--margin", "area=none.csv"], "No such file"),
        (["--margin", "area=sex.csv"], "totals name group 'f', which no row has"),
        (["--margin", "area=bad.csv"], "--margin bad.csv: row 1, column 'yes': 'many' is no number"),
        (
            ["--margin", "area=area.csv", "--margin", "sex=sex.csv", "--model", "s2oct"],
            "s2oct takes totals of one margin",
        ),
        (["--margin", "area=area.csv", "--model", "oct-h"], "--margin: oct-h does not know totals"),
    ],
)
def test_margins_that_cannot_be(folder, capsys, monkeypatch, options, says):
    path, *_ = folder
    monkeypatch.chdir(path)
    (path / "bad.csv").write_text("area,yes\nnorth,many\n")
    command = ["fit", "register.csv", "--target", "z", "--out", "m.zip", *options]
    assert main(command) == 2
    assert says in capsys.readouterr().err
