"""``predict`` on tables whose target column has answers: kept and subtracted from totals, or compared."""

import json

import numpy as np
import pytest
from tests import cli_register

from treewright import load_model
from treewright.app import table_model
from treewright.cli import main
from treewright.data.tables.files import read_table
from treewright.data.tables.writing import write_table

N = cli_register.N


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model of labels within totals, and next year's rows, of which some have answers."""
    path = tmp_path_factory.mktemp("answers")
    cli_register.register(path)
    assert main(cli_register.command(path, "--model", "totals", "--estimator", "logistic", "--quiet")) == 0
    new, truth = cli_register.made(7)
    known = np.random.default_rng(3).random(N) < 0.25
    write_table(path / "new.csv", {**new, "z": np.where(known, truth, None)})
    write_table(path / "unknown.csv", new)
    for name, rows in (("all", np.ones(N, dtype=bool)), ("rest", ~known)):
        write_table(path / f"{name}_totals.csv", cli_register.totals_of(new, truth, rows))
    return path, new, truth, known


def predicted(path, capsys, *more, table="new.csv", model="m.zip"):
    command = ["predict", str(path / model), str(path / table), "--out", str(path / "p.csv"), "--json", *more]
    assert main(command) == 0
    return json.loads(capsys.readouterr().out), read_table(path / "p.csv")


def shown(path, capsys, *more):
    command = ["predict", str(path / "m.zip"), str(path / "new.csv"), "--out", str(path / "p.csv"), *more]
    assert main(command) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(("totals", "of"), [("all", "all"), ("rest", "unlabeled")])
def test_answers_are_kept_and_totals_are_met_with_them(folder, capsys, totals, of):
    path, new, truth, known = folder
    reports = ["--report", str(path / "r.txt"), "--report", str(path / "r.html")]
    within = ["--totals", str(path / f"{totals}_totals.csv"), "--groups", "area", "--totals-of", of, *reports]
    document, written = predicted(path, capsys, *within)
    labels = written["prediction"]
    assert np.array_equal(labels[known], truth[known])
    for area in cli_register.AREAS:
        inside = new["area"] == area
        for label in ("yes", "no"):
            assert np.sum(labels[inside] == label) == np.sum(truth[inside] == label)
            shares = written[f"share_{label}"]
            assert set(shares[known & inside]) <= {0.0, 1.0}
            assert shares[inside].sum() == pytest.approx(np.sum(truth[inside] == label), abs=1e-6)
            (row,) = [r for r in document["totals"] if (r["group"], r["class"]) == (area, label)]
            assert row["reached"] == row["low"] == np.sum(~known & inside & (truth == label))
            assert ("labelled" in row) == (of == "all")
    alone = load_model(path / "m.zip").predict(read_table(path / "unknown.csv").frame)
    same = int(np.sum(alone[known] == truth[known]))
    assert document["answers"] == {"kept": True, "rows": int(known.sum()), "same": same}
    text, page = ((path / name).read_text(encoding="utf-8") for name in ("r.txt", "r.html"))
    assert (
        f"{N} rows: {known.sum()} with a label, {N - known.sum()} without; labels that the table had are kept" in text
    )
    assert ("those with a label are subtracted" in text) == (of == "all")
    assert f"<b>{N - known.sum()}</b> <span>rows were labelled" in page
    assert ("Totals are about the rows without" in page) == (of != "all")
    told = shown(path, capsys, *within[:-4])
    assert (
        f"{known.sum()} rows have an answer in 'z', which is kept; the model by itself says the same of {same}" in told
    )
    assert "totals of the rows without an answer:" in told


def test_answers_are_kept_in_all_parts_and_without_totals(folder, capsys, monkeypatch):
    path, _, truth, known = folder
    _, none = predicted(path, capsys, table="unknown.csv")
    document, whole = predicted(path, capsys)
    assert np.array_equal(whole["prediction"], np.where(known, truth, none["prediction"]))
    assert document["answers"]["same"] == np.sum(known & (truth == none["prediction"]))
    monkeypatch.setattr(table_model, "_BATCH_ROWS", 7)
    again, parts = predicted(path, capsys)
    assert again == document and parts.frame.equals(whole.frame)
    document, ignored = predicted(path, capsys, "--answers", "ignore")
    assert np.array_equal(ignored["prediction"], none["prediction"]) and not document["answers"]["kept"]
    within = ["--answers", "ignore", "--totals", str(path / "all_totals.csv"), "--groups", "area"]
    document, cut = predicted(path, capsys, *within)
    assert document["answers"]["same"] == np.sum(known & (truth == cut["prediction"]))
    assert document["answers"]["same"] < known.sum()
    document, _ = predicted(path, capsys, table="unknown.csv")
    assert document["answers"] is None


def test_what_cannot_be_kept_is_refused(folder, capsys):
    path, new, truth, known = folder
    command = ["predict", str(path / "m.zip"), str(path / "odd.csv"), "--out", str(path / "q.csv")]
    first = int(np.flatnonzero(known)[0])
    answers = np.where(known, truth, None)
    answers[first] = "Yes"
    write_table(path / "odd.csv", {**new, "z": answers})
    assert main(command) == 2
    said = capsys.readouterr().err
    assert f"column 'z' has the answer 'Yes' (1 row, first in row {first + 1}), which is no class of the model" in said
    assert "did you mean 'yes'" in said and not (path / "q.csv").exists()
    assert main([*command, "--na", "Yes"]) == 0
    assert main([*command, "--answers", "ignore"]) == 0
    assert "rows have an answer in 'z'; the prediction is the same for" in capsys.readouterr().out
    areas = np.where(known, None, new["area"])
    write_table(path / "odd.csv", {**new, "area": areas, "z": np.where(known, truth, None)})
    within = ["--groups", "area", "--totals", str(path / "rest_totals.csv")]
    assert main([*command, *within]) == 0  # these totals do not count rows with an answer
    assert main([*command, *within[:2], "--totals", str(path / "all_totals.csv"), "--totals-of", "all"]) == 2
    assert "labelled rows have no group" in capsys.readouterr().err
    write_table(path / "new2.csv", {**new, "z": np.where(known, truth, None)})
    within = ["--groups", "area", "--totals", str(path / "all_totals.csv")]
    assert main([*command[:2], str(path / "new2.csv"), *command[3:], *within]) == 2
    assert "They fit all 160 rows" in capsys.readouterr().err


@pytest.mark.parametrize("written", ["{}", "{}.0"])
def test_a_tree_by_itself_predicts_every_row_and_says_how_often_answers_differ(tmp_path, capsys, written):
    x = np.arange(40.0)
    write_table(tmp_path / "d.csv", {"x": x, "z": (x > 19).astype(int) + 3})
    fit = ["fit", str(tmp_path / "d.csv"), "--target", "z", "--model", "oct", "--max-depth", "1", "--quiet"]
    assert main([*fit, "--out", str(tmp_path / "m.json"), "--time-limit", "2"]) == 0
    answers = ["", written.format(3), written.format(4), written.format(5), written.format(4)]
    (tmp_path / "new.csv").write_text(
        "x,z\n" + "".join(f"{v},{a}\n" for v, a in zip((0, 1, 2, 3, 30), answers, strict=True))
    )
    document, table = predicted(tmp_path, capsys, model="m.json")
    assert table["prediction"].tolist() == [3, 3, 3, 3, 4]
    assert document["answers"] == {"kept": False, "rows": 4, "same": 2}
    command = ["predict", str(tmp_path / "m.json"), str(tmp_path / "new.csv"), "--out", str(tmp_path / "p.csv")]
    assert main([*command, "--answers", "keep"]) == 2
    assert "which is no class of the model" in capsys.readouterr().err
    assert main([*command, "--answers", "keep", "--na", written.format(5)]) == 0
    assert read_table(tmp_path / "p.csv")["prediction"].tolist() == [3, 3, 4, 3, 4]
