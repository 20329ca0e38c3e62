"""Classes and groups that are written alike, on the command line and in Python."""

import json
import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from tests import cli_register

from treewright import OCTHClassifier, TotalsClassifier
from treewright.cli import main
from treewright.data.tables.files import read_table
from treewright.data.tables.writing import write_table
from treewright.exceptions import AlikeNamesWarning, InfeasibleTotalsError

N = cli_register.N


def odd(values, rows, name):
    changed = values.copy()
    changed[rows] = name
    return changed


@pytest.fixture
def register(tmp_path):
    """The register, with some answers and some areas written otherwise."""
    columns, truth, asked = cli_register.register(tmp_path)
    yes = np.flatnonzero(asked & (truth == "yes"))[:3]
    north = np.flatnonzero(columns["area"] == "north")[::5]

    def written(label="yes", area="north"):
        labels = odd(np.where(asked, truth, None), yes, label)
        table = {**columns, "area": odd(columns["area"], north, area), "z": labels}
        write_table(tmp_path / "register.csv", table)
        return {"yes": int(np.sum(asked & (truth == "yes"))), "north": int(np.sum(columns["area"] == "north"))}

    return tmp_path, written, len(yes), len(north)


def fit(folder, *more):
    files = ["--model", "totals", "--estimator", "logistic", "--predictions", str(folder / "p.csv")]
    return main(cli_register.command(folder, *files, *more))


@pytest.mark.parametrize("name", ["Yes", "YES", "yès", "ｙｅｓ"])
def test_two_spellings_of_a_class_are_refused_merged_or_kept(register, capsys, name):
    folder, written, n_yes, _ = register
    assert written() and fit(folder, "--quiet") == 0
    whole = read_table(folder / "p.csv")
    rows = written(label=name)
    assert fit(folder) == 2
    said = f"the target 'z' has 'yes' ({rows['yes'] - n_yes} rows) and {name!r} ({n_yes} rows), which are written alike"
    error = capsys.readouterr().err
    assert said in error and "--spelling merge" in error and "--spelling keep" in error
    assert fit(folder, "--spelling", "merge", "--json") == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["classes"] == ["no", "yes"]
    assert f"the target 'z': {name!r} ({n_yes} of them) count as 'yes'" in captured.err
    merged = read_table(folder / "p.csv")
    assert np.array_equal(merged["prediction"], whole["prediction"])
    assert fit(folder, "--spelling", "keep", "--json") == 0
    captured = capsys.readouterr()
    assert sorted(json.loads(captured.out)["classes"]) == sorted(["no", "yes", name])
    assert captured.err.count("which are kept apart") == 1 and "different classes here" not in captured.err


def test_two_spellings_of_a_group_in_rows_and_in_totals(register, capsys):
    folder, written, _, n_north = register
    rows = written(area="North")
    assert fit(folder) == 2
    said = f"the column of groups 'area' has 'north' ({rows['north'] - n_north} rows) and 'North' ({n_north} rows)"
    assert said in capsys.readouterr().err
    assert fit(folder, "--spelling", "merge", "--json") == 0
    assert {row["group"] for row in json.loads(capsys.readouterr().out)["totals"]} == {"north", "south"}
    assert fit(folder, "--spelling", "keep") == 2  # totals of the whole group do not fit its larger part
    written()
    totals = folder / "totals.csv"
    totals.write_text(totals.read_text().replace("north", "NORTH").replace("yes", "Yes"))
    assert fit(folder) == 2
    assert "did you mean" in capsys.readouterr().err
    assert fit(folder, "--spelling", "merge", "--json") == 0
    reached = json.loads(capsys.readouterr().out)["totals"]
    assert [(row["group"], row["class"], row["deviation"]) for row in reached] == [
        (area, label, 0) for area in ("north", "south") for label in ("no", "yes")
    ]
    totals.write_text(totals.read_text().replace("no\n", "YES\n"))
    assert fit(folder, "--spelling", "merge") == 2
    assert "the class 'yes' occurs twice" in capsys.readouterr().err


def test_names_of_a_model_come_before_those_of_new_rows(register, capsys):
    folder, written, _, _ = register
    written()
    assert fit(folder, "--quiet") == 0
    new, truth = cli_register.made(5)
    known = np.arange(N) % 4 == 0
    every = np.ones(N, dtype=bool)
    totals = cli_register.totals_of(new, truth, every)
    capital = {"yes": "Yes", "no": "NO"}
    columns = {**new, "area": [area.upper() for area in new["area"]]}
    write_table(
        folder / "new.csv", columns | {"z": [capital[t] if k else None for t, k in zip(truth, known, strict=True)]}
    )
    write_table(folder / "new_totals.csv", totals)
    command = ["predict", str(folder / "m.zip"), str(folder / "new.csv"), "--out", str(folder / "n.csv"), "--totals"]
    command += [str(folder / "new_totals.csv"), "--groups", "area", "--totals-of", "all", "--json"]
    assert main(command) == 2
    assert "did you mean 'no'? There are 'no', 'yes'. --spelling merge" in capsys.readouterr().err
    assert main([*command, "--spelling", "merge"]) == 0
    captured = capsys.readouterr()
    assert "count as 'north', 'south'" in captured.err and "in the fit" not in captured.err
    labels = read_table(folder / "n.csv")["prediction"]
    assert np.array_equal(labels[known], truth[known])
    for g, area in enumerate(cli_register.AREAS):
        assert np.sum(labels[new["area"] == area] == "yes") == totals["yes"][g]


def test_in_python_they_are_warned_of_with_both_names():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.where(X[:, 0] > 0, "yes", "no").astype(object)
    y[:5] = "No"
    y[20:] = None
    hidden = y[:20].tolist()
    said = rf"'no' \({hidden.count('no')} rows\) and 'No' \({hidden.count('No')} rows?\), which are written alike"
    with pytest.warns(AlikeNamesWarning, match=said):
        TotalsClassifier(LogisticRegression()).fit(X, y)
    with pytest.warns(AlikeNamesWarning, match=said):
        OCTHClassifier(max_depth=1, time_limit=1).fit(X[:20], y[:20].astype(str))
    y[y == "No"] = "no"
    groups = np.where(np.arange(60) % 2, "north", "south").astype(object)
    groups[21:40:6] = "North"
    n = {name: int(np.sum(groups == name)) for name in ("north", "North")}
    own = int(np.sum((groups == "north") & (np.arange(60) >= 20)))
    totals = {"north": {"yes": own + 4}, "south": {"yes": 3}}
    both = rf"'north' \({n['north']} rows\) and 'North' \({n['North']} rows\) are written alike"
    with pytest.raises(InfeasibleTotalsError, match=rf"only {own} unlabelled rows of group 'north'.*{both}"):
        TotalsClassifier(LogisticRegression()).fit(X, y, totals=totals, groups=groups)
    totals["north"]["yes"] = 5
    with pytest.warns(AlikeNamesWarning, match=both), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("always", AlikeNamesWarning)
        TotalsClassifier(LogisticRegression()).fit(X, y, totals=totals, groups=groups)
    with warnings.catch_warnings():
        warnings.simplefilter("error", AlikeNamesWarning)  # who names both means both
        TotalsClassifier(LogisticRegression()).fit(X, y, totals=totals | {"North": {"yes": 2}}, groups=groups)
