"""The whole job on a register with towns and trades: columns of many levels are used, told, and no rare one is kept."""

import json
import re
import zipfile

import numpy as np
import pytest

from treewright.app.table_model import TableModel
from treewright.cli import main
from treewright.data.tables.files import read_table
from treewright.data.tables.writing import write_table

N, TOWNS, TRADES = 1020, 60, 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory, short_searches_of_module):
    path = tmp_path_factory.mktemp("levels")
    rng = np.random.default_rng(0)
    town, trade = rng.permutation(N) % TOWNS, rng.permutation(N) % TRADES
    age = rng.integers(18, 80, N)
    of_town, of_trade = rng.normal(size=TOWNS) * 2, rng.normal(size=TRADES) * 2
    score = of_town[town] + of_trade[trade] + 0.03 * (age - 48) + rng.logistic(size=N)
    truth = np.where(score > 0, "yes", "no").astype(object)
    asked = rng.random(N) < np.where(truth == "yes", 0.5, 0.35)
    names = np.array([f"town{k:02}" for k in town], dtype=object)
    names[np.flatnonzero(asked)[::20][:12]] = [f"secret{k:02}" for k in range(12)]
    columns = {"age": age, "town": names, "trade": [f"trade{k:03}" for k in trade]}
    write_table(path / "r.csv", {**columns, "z": np.where(asked, truth, None)})
    write_table(path / "t.csv", {k: [int(np.sum(~asked & (truth == k)))] for k in ("no", "yes")})
    return path, truth, asked


def fit(path, *more):
    command = ["fit", str(path / "r.csv"), "--target", "z", "--totals", str(path / "t.csv"), "--random-state", "0"]
    files = ["--out", str(path / "m.zip"), "--predictions", str(path / "p.csv")]
    return main([*command, *files, "--estimator", "logistic", "--json", *more])


def right(path, truth, asked):
    return np.mean((read_table(path / "p.csv")["prediction"] == truth)[~asked])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_towns_and_trades_are_used_and_the_tree_is_read_by_groups(folder, capsys):
    path, truth, asked = folder
    assert fit(path, "--model", "totals", "--drop", "town,trade") == 0
    without = right(path, truth, asked)
    capsys.readouterr()
    assert fit(path, "--report", str(path / "r.txt"), "--report", str(path / "r.html"), "--max-depth", "1") == 0
    captured = capsys.readouterr()
    assert right(path, truth, asked) > without + 0.1
    said = (
        "the text column 'town' has 72 different values: 60 of them, in 10 rows or more, become features of their own"
    )
    assert f"{said}, and 12 others are one level (12 rows)" in captured.err
    assert "the text column 'trade' has 60 different values" in captured.err
    document = json.loads(captured.out)
    rules, text = document["tree"]["rules"], (path / "r.txt").read_text(encoding="utf-8")
    assert document["tree"]["agreement"] > 0.6
    assert re.search(r"(town|trade) is .*in group \d", rules) and len(rules) < 3000
    for column, number in set(re.findall(r"(town|trade) is in group (\d)", rules)):
        assert f'Group {number} of "{column}": {column}' in text
        assert f"Group {number} of &quot;{column}&quot;: {column}" in (path / "r.html").read_text(encoding="utf-8")
    model = TableModel.read(str(path / "m.zip"))
    table, written = read_table(path / "r.csv"), read_table(path / "p.csv")
    assert np.array_equal(model.explaining.apply(model.features_of(table)), written["leaf"].astype(int))
    with zipfile.ZipFile(path / "m.zip") as parts:
        assert not any(b"secret" in parts.read(name) for name in parts.namelist())
    assert main(["show", str(path / "m.zip")]) == 0
    assert rules.splitlines()[0] in capsys.readouterr().out
    assert main(["predict", str(path / "m.zip"), str(path / "r.csv"), "--out", str(path / "n.csv")]) == 0
    said = "column 'town': 12 rows have one of 12 levels that fewer than 10 rows of the fit had"
    assert said in capsys.readouterr().err
    assert np.array_equal(read_table(path / "n.csv")["leaf"], written["leaf"])
