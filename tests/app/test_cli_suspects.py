"""Wrong labels on the command line."""

import csv

import numpy as np
import pytest

from treewright.cli import main


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A band, some labels wrong, one row without a label; and the rows whose labels are wrong, from 1."""
    rng = np.random.default_rng(0)
    X = rng.random((120, 2))
    truth = np.abs(X[:, 0] - 0.5) < 0.22
    wrong = np.arange(120) % 8 == 3
    path = tmp_path_factory.mktemp("suspects") / "people.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["age", "income", "ill"])
        for i, (x, label) in enumerate(zip(X, truth != wrong, strict=True)):
            rows.writerow([*(f"{v:.4f}" for v in x), "" if i == 0 else "yes" if label else "no"])
    return path, set((np.flatnonzero(wrong) + 1).tolist())


def fit(path, *options):
    return main(["fit", str(path), "--target", "ill", "--time-limit", "3", "--random-state", "0", *options])


@pytest.mark.usefixtures("no_branch_and_bound", "short_searches")
def test_suspects_are_written_with_the_row_numbers_of_the_file(table, tmp_path, capsys):
    path, wrong = table
    model, suspects = str(tmp_path / "m.json"), tmp_path / "suspects.csv"
    options = ["--model", "octsvm", "--set", "n_estimators=15", "--max-depth", "1"]
    assert fit(path, *options, "--out", model, "--suspects", str(suspects)) == 0
    with suspects.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["row", "label", "suggested", "suspicion", "relabeled", "rule"]
    assert sorted(int(row["row"]) for row in rows) == list(range(2, 121))
    held = {int(row["row"]) for row in rows if row["relabeled"].lower() in ("true", "1")}
    assert len(held & wrong) >= 8 and "age" in rows[0]["rule"]
    out = capsys.readouterr().out
    assert f"labels held for wrong: {len(held)} of 119 rows" in out and "suspects written to" in out


def test_rules_that_labels_break_are_in_words(tmp_path):
    path, suspects = tmp_path / "people.csv", tmp_path / "suspects.csv"
    lines = [f"{'rural' if i % 3 else 'urban'},{'yes' if (i % 3 > 0) != (i in (5, 12)) else 'no'}" for i in range(60)]
    path.write_text("area,ill\n" + "\n".join(lines) + "\n")
    options = ["--model", "octsvm", "--max-depth", "1", "--set", "relabel='tree'", "--out", str(tmp_path / "m.json")]
    assert fit(path, *options, "--suspects", str(suspects)) == 0
    with suspects.open(newline="") as file:
        rules = {row["rule"] for row in csv.DictReader(file)}
    assert rules == {"", "area is rural: yes", "area is urban: no"}


def test_models_that_do_not_look_for_wrong_labels_say_so_before_any_work(table, tmp_path, capsys):
    path, _ = table
    assert fit(path, "--model", "oct-h", "--out", str(tmp_path / "m.json"), "--suspects", "s.csv") == 2
    assert "octsvm, resvm do" in capsys.readouterr().err
    assert not (tmp_path / "m.json").exists()


@pytest.mark.usefixtures("no_branch_and_bound", "short_searches")
def test_predictions_of_several_trees_have_no_leaf(tmp_path):
    rng = np.random.default_rng(1)
    path, out = tmp_path / "three.csv", tmp_path / "predictions.csv"
    X = rng.random(60)
    path.write_text("x,ill\n" + "".join(f"{x:.4f},{'abc'[int(3 * x)]}\n" for x in X))
    options = ["--model", "resvm", "--set", "c1=20", "--set", "c2=20", "--out", str(tmp_path / "m.json")]
    assert fit(path, *options, "--predictions", str(out)) == 0
    assert out.read_text().splitlines()[0] == "row,ill,prediction,share_a,share_b,share_c"
    again = tmp_path / "again.csv"
    assert main(["predict", str(tmp_path / "m.json"), str(path), "--out", str(again)]) == 0
    assert again.read_text() == out.read_text()
    assert main(["show", str(tmp_path / "m.json")]) == 0
