"""Class totals on the command line."""

import json
import re

import numpy as np
import pytest
from sklearn.base import is_classifier
from tests.cli_survey import changed

import treewright
from treewright.cli import main
from treewright.data.tables.files import read_table
from treewright.models.registry import CATEGORICAL, MODELS, SHORT_NAMES

pytestmark = pytest.mark.usefixtures("short_searches")


def error_line(captured):
    lines = captured.err.strip().splitlines()
    assert len(lines) == 1, captured.err
    assert lines[0].startswith("treewright: error: ")
    return lines[0]


@pytest.fixture
def register(tmp_path):
    """Twelve rows in two groups, one of each class labelled in each; the order of x is that of the classes."""
    path = tmp_path / "register.csv"
    lines = ["x,area,code,z"]
    for area, code, shift in (("north", 7, 0), ("south", 8, 100)):
        labels = ["no", "", "", "", "", "yes"]
        lines += [f"{shift + 3 * i + i % 2},{area},{code},{label}" for i, label in enumerate(labels)]
    path.write_text("\n".join(lines) + "\n")
    return path


TOTALS = {
    "t.csv": "area,yes,no\nnorth,1,3\nsouth,3,1\n",
    "first.csv": "place,yes\nnorth,1\nsouth,3\n",
    "last.csv": "no,area\n3,north\n1,south\n",
    "shares.csv": "area;yes;no\nsouth;0.75;\nnorth;0.25;0.75\n",
    "t.json": '{"north": {"yes": 1}, "south": {"yes": [3, 3]}}',
    "intervals.csv": "class,area,low,high\nyes,north,1,1\nno,south,,1\nyes,south,,3\n",
    "share intervals.csv": "area,class,low,high,total\nnorth,yes,0.2,0.3,\nsouth,yes,,,0.75\n",
    "shares.json": '{"north": {"yes": 0.25}, "south": {"yes": [0.7, 0.8]}}',
}


def totals_arguments(register, totals, *more):
    command = ["fit", str(register), "--target", "z", "--model", "s2oct", "--totals", str(totals)]
    command += ["--out", str(register.parent / "m.json"), "--random-state", "0", "--time-limit", "4"]
    return changed(command, *more)


@pytest.mark.parametrize("name", TOTALS)
def test_totals_by_group(register, tmp_path, capsys, name):
    (tmp_path / name).write_text(TOTALS[name])
    predictions, report = tmp_path / "p.csv", tmp_path / "r.txt"
    more = ["--groups", "area", "--drop", "code", "--predictions", str(predictions), "--report", str(report)]
    assert main(totals_arguments(register, tmp_path / name, *more)) == 0
    captured = capsys.readouterr()
    table = [["group", "class", "asked", "reached", "difference"]]
    table += [["north", "no", "3", "3", "0"], ["north", "yes", "1", "1", "0"]]
    table += [["south", "no", "1", "1", "0"], ["south", "yes", "3", "3", "0"]]
    for text in (captured.out, report.read_text()):
        lines = [line.split() for line in text.splitlines()]
        assert any(lines[i : i + 5] == table for i in range(len(lines)))
    assert captured.err == ""
    data, written = read_table(register), read_table(predictions)
    hidden = data.missing("z")
    for area, n_yes in (("north", 1), ("south", 3)):
        assert np.count_nonzero(written["prediction"][hidden & (data["area"] == area)] == "yes") == n_yes
        assert written["share_yes"][hidden & (data["area"] == area)].sum() == pytest.approx(n_yes, abs=1e-6)
    assert treewright.load_model(tmp_path / "m.json").feature_names_in_.tolist() == ["x"]
    assert main(["show", str(tmp_path / "m.json"), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["totals"]
    assert [[row["group"], row["class"], row["reached"]] for row in shown] == [
        [group, label, int(reached)] for group, label, _, reached, _ in table[1:]
    ]


@pytest.mark.parametrize(
    ("name", "content"), [("t.csv", "no,yes\n3,5\n"), ("t.csv", "yes\n0.625\n"), ("t.json", '{"yes": 5}')]
)
def test_totals_of_all(register, tmp_path, capsys, name, content):
    (tmp_path / name).write_text(content)
    assert main(totals_arguments(register, tmp_path / name, "--features", "x", "--json")) == 0
    document = json.loads(capsys.readouterr().out)
    assert [(row["group"], row["class"], row["low"], row["high"]) for row in document["totals"]] == [
        (None, "no", 3, 3),
        (None, "yes", 5, 5),
    ]
    assert document["left_out"] == 0


def test_totals_of_whole_numbers_and_numeric_groups(tmp_path, capsys):
    data, totals = tmp_path / "a.csv", tmp_path / "t.json"
    data.write_text("x,g,z\n0,007,0\n1,7,\n2,7,\n3,8,\n4,8.0,\n5,8,1\n")
    totals.write_text('{"007": {"1": 0}, "8.0": {"1": 1}}')
    assert main(totals_arguments(data, totals, "--groups", "g", "--json")) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["classes"] == [0, 1] and document["features"] == ["x"]
    assert [(row["group"], row["class"], row["low"]) for row in document["totals"]] == [
        ("7", 0, 2),
        ("7", 1, 0),
        ("8", 0, 1),
        ("8", 1, 1),
    ]


def test_the_column_of_groups_is_a_feature_if_listed(register, tmp_path):
    (tmp_path / "t.csv").write_text(TOTALS["t.csv"])
    more = ["--groups", "area", "--features", "x,area", "--quiet"]
    assert main(totals_arguments(register, tmp_path / "t.csv", *more)) == 0
    names = treewright.load_model(tmp_path / "m.json").feature_names_in_.tolist()
    assert names == ["x", "area=south"]  # where it is 0 the area is the other one


@pytest.mark.parametrize(
    ("name", "content", "more", "says"),
    [
        ("t.csv", "yes\n5\n", ["--model", "oct-h"], "oct-h does not know totals; models that do: c2rf, s2oct"),
        ("t.csv", "area,yes\nnorth,1\nsouth,2\n", [], "has 2 rows, expected one; .* --groups"),
        ("t.csv", "area,yes\n", ["--groups", "area"], "has no rows"),
        ("t.csv", "area,yes\nNorth,1\n", ["--groups", "area"], "group 'North', which no row has; did you mean 'north'"),
        ("t.csv", "Yes\n5\n", [], "class 'Yes', which no label is; did you mean 'yes'.*--allow-new-classes"),
        ("t.csv", "yes,no\n6,6\n", [], "at least 12 rows .*only 8 .*They fit all 12 rows.*--totals-of all"),
        ("t.csv", "yes\n1\n", ["--totals-of", "all"], "have 1 row of class 'yes', but 2 rows are labelled so"),
        ("t.csv", "class,low,high\nyes,5,3\n", [], "low 5 is above high 3"),
        ("t.csv", "class,low,high\nyes,5,6\nyes,5,6\n", [], "the class 'yes' occurs twice"),
        ("t.csv", "a,class,low,high\nnorth,yes,5,6\n", [], "it has 'a'; name the column of groups with --groups"),
        ("t.csv", "class,low,high\nyes,5,6\n", ["--groups", "area"], "no column that names the groups"),
        ("t.csv", "class,low,high\n,5,6\n", [], "no class or no group"),
        ("t.csv", "area,yes\nnorth,1\nnorth,2\n", ["--groups", "area"], "the group 'north' occurs twice"),
        ("t.csv", "area,yes\nnorth,1\n,2\n", ["--groups", "area"], "a row has no group in column 'area'"),
        ("t.csv", "yes\nmany\n", [], "row 1, column 'yes': 'many' is no number"),
        ("t.csv", "yes\n45%\n", [], "'45%' is no number; .*a share such as 0.45"),
        ("t.csv", "yes\n9\n", [], "9 rows of class 'yes' are asked, but there are only 8"),
        ("t.csv", "yes\n1.5\n", [], "share 1.5 .*above 1"),
        ("t.csv", "yes\n5\n", ["--groups", "place"], "no column 'place'"),
        ("t.json", "{", [], "t.json"),
        ("t.json", "[5]", [], "expected an object"),
        ("t.json", '{"yes": true}', [], "total of class 'yes' is True"),
        ("t.json", '{"north": {"yes": 1}}', [], "has totals by group; name the column with --groups"),
        ("t.json", '{"yes": 1}', ["--groups", "area"], "expected {group: {class: total}} with --groups"),
        ("t.xlsx", "", [], "expected a text table"),
        ("none.csv", None, [], "No such file"),
        ("none.json", None, [], "No such file"),
    ],
)
def test_bad_totals(register, tmp_path, capsys, name, content, more, says):
    if content is not None:
        (tmp_path / name).write_text(content)
    assert main(totals_arguments(register, tmp_path / name, "--drop", "code", *more)) == 2
    assert re.search(says, error_line(capsys.readouterr()))
    assert not (tmp_path / "m.json").exists()


def test_groups_need_totals_and_values(register, tmp_path, capsys):
    arguments = totals_arguments(register, tmp_path / "t.csv", "--groups", "area", "--drop", "code")
    at = arguments.index("--totals")
    assert main(arguments[:at] + arguments[at + 2 :]) == 2
    assert "give --totals too" in error_line(capsys.readouterr())
    (tmp_path / "t.csv").write_text(TOTALS["t.csv"])
    register.write_text(register.read_text().replace("north,7,\n", ",7,\n", 1))
    assert main(arguments) == 2
    assert "column 'area' is empty in row 2" in error_line(capsys.readouterr())


def test_predictions_of_a_committee_keep_the_totals(register, tmp_path):
    (tmp_path / "t.csv").write_text(TOTALS["t.csv"])
    more = ["--groups", "area", "--drop", "code", "--set", "n_estimators=3", "--predictions", str(tmp_path / "p.csv")]
    assert main(totals_arguments(register, tmp_path / "t.csv", *more, "--quiet")) == 0
    data, written = read_table(register), read_table(tmp_path / "p.csv")
    hidden = data.missing("z")
    n_yes = [np.count_nonzero(written["prediction"][hidden & (data["area"] == a)] == "yes") for a in ("north", "south")]
    reached = treewright.load_model(tmp_path / "m.json").totals_
    assert n_yes == [row["reached"] for row in reached if row["class"] == "yes"]


@pytest.mark.usefixtures("shortest_searches")
def test_a_warm_start_may_know_a_class_from_totals(register, tmp_path, capsys):
    (tmp_path / "t.json").write_text('{"yes": 4, "maybe": 1}')
    arguments = totals_arguments(register, tmp_path / "t.json", "--features", "x", "--allow-new-classes")
    assert main([*arguments, "--quiet"]) == 0
    assert main([*arguments, "--warm-start", str(tmp_path / "m.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["classes"] == ["maybe", "no", "yes"]
    (tmp_path / "t.json").write_text('{"yes": 4, "7": 1, "maybe": 0.1}')
    assert main([*arguments, "--warm-start", str(tmp_path / "m.json")]) == 2
    assert "its classes are 'maybe', 'no', 'yes'" in error_line(capsys.readouterr())


def test_marks_in_the_target_of_a_supervised_model_are_told_once(tmp_path, capsys):
    data = tmp_path / "a.csv"
    data.write_text("x,z\n0,-1\n4,1\n1,0\n3,2\n")
    command = ["fit", str(data), "--target", "z", "--out", str(tmp_path / "m.json")]
    assert main([*command, "--model", "tao"]) == 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "-1" in line]
    assert line.endswith("the target 'z' has -1 (1 row) as a class; if that means missing: --na -1")
    assert main([*command, "--model", "tao", "--na", "-1", "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == "" and json.loads(captured.out)["left_out"] == 1
    data.write_text("x,z\n0,-1\n4,1\n1,-1\n3,1\n")
    assert main([*command, "--model", "oct"]) == 0 and capsys.readouterr().err == ""


def test_minus_one_is_a_label_unless_it_is_the_mark(tmp_path, capsys):
    data = tmp_path / "a.csv"
    data.write_text("x,z\n0,-1\n4,1\n1,\n3,2\n")
    command = ["fit", str(data), "--target", "z", "--model", "s2oct", "--out", str(tmp_path / "m.json"), "--json"]
    assert main(command) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["classes"] == [-1, 1, 2]
    assert "the target 'z' has -1 in 1 row as a class; if that means missing: --set unlabeled=-1" in captured.err
    assert main([*command, "--set", "unlabeled=-1", "--predictions", str(tmp_path / "p.csv")]) == 0
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert document["classes"] == [1, 2] and document["unlabelled"] == 2 and captured.err == ""
    assert read_table(tmp_path / "p.csv")["z"][0] == -1


def test_every_classifier_has_a_short_name():
    assert set(SHORT_NAMES.values()) == {kind for kind in MODELS.values() if is_classifier(kind())}
    able = [name for name, kind in sorted(SHORT_NAMES.items()) if "categorical_features" in kind().get_params()]
    assert list(CATEGORICAL) == able


def test_totals_of_all_rows_and_weights_that_are_empty(register, tmp_path, capsys):
    """Offices know totals of all rows; weights are those of the survey."""
    (tmp_path / "t.csv").write_text("area,yes,no\nnorth,2,4\nsouth,4,2\n")
    lines = register.read_text().splitlines()
    weighted = [
        f"{line},w" if i == 0 else f"{line},{2 if line.endswith(('yes', 'no')) else ''}" for i, line in enumerate(lines)
    ]
    register.write_text("\n".join(weighted) + "\n")
    more = ["--groups", "area", "--drop", "code", "--totals-of", "all", "--weight", "w", "--json"]
    more += ["--report", str(tmp_path / "r.txt"), "--report", str(tmp_path / "r.html")]
    assert main(totals_arguments(register, tmp_path / "t.csv", *more)) == 0
    totals = json.loads(capsys.readouterr().out)["totals"]
    assert [(row["group"], row["class"], row["low"], row["high"]) for row in totals] == [
        ("north", "no", 3, 3),
        ("north", "yes", 1, 1),
        ("south", "no", 1, 1),
        ("south", "yes", 3, 3),
    ]
    assert [row["labelled"] for row in totals] == [1, 1, 1, 1]
    text = (tmp_path / "r.txt").read_text()
    table = text[text.index("group") :].splitlines()
    assert table[0].split() == ["group", "class", "of", "all", "rows", "labelled", "asked", "reached", "difference"]
    assert [line.split()[:5] for line in table[1:5]] == [
        ["north", "no", "4", "1", "3"],
        ["north", "yes", "2", "1", "1"],
        ["south", "no", "2", "1", "1"],
        ["south", "yes", "4", "1", "3"],
    ]
    assert "asked 3: 4 less 1 labelled" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_a_group_without_totals_is_free_with_a_warning(register, tmp_path, capsys):
    (tmp_path / "t.csv").write_text("area,yes\nnorth,1\n")
    assert main(totals_arguments(register, tmp_path / "t.csv", "--groups", "area", "--drop", "code", "--json")) == 0
    captured = capsys.readouterr()
    assert "group 'south' with 4 unlabelled rows has no totals and is free" in captured.err
    rows = {(row["group"], row["class"]): (row["low"], row["high"]) for row in json.loads(captured.out)["totals"]}
    assert rows["south", "yes"] == (0, 4) and rows["north", "yes"] == (1, 1)


def test_next_year_within_its_own_totals(register, tmp_path, capsys):
    (tmp_path / "t.csv").write_text(TOTALS["t.csv"])
    assert main(totals_arguments(register, tmp_path / "t.csv", "--groups", "area", "--features", "x", "--quiet")) == 0
    new, totals, out = tmp_path / "new.csv", tmp_path / "new_totals.csv", tmp_path / "p.csv"
    new.write_text("x,area\n" + "".join(f"{10 * i},{'west' if i % 2 else 'north'}\n" for i in range(12)))
    totals.write_text("area,yes\nnorth,2\nwest,5\n")
    command = ["predict", str(tmp_path / "m.json"), str(new), "--out", str(out)]
    assert main([*command, "--totals", str(totals), "--groups", "area"]) == 0
    data, written = read_table(new), read_table(out)
    for area, n_yes in (("north", 2), ("west", 5)):
        inside = data["area"] == area
        assert np.count_nonzero(written["prediction"][inside] == "yes") == n_yes
        assert written["share_yes"][inside].sum() == pytest.approx(n_yes, abs=1e-6)
    capsys.readouterr()
    assert main([*command, "--groups", "area"]) == 2
    assert "give --totals too" in error_line(capsys.readouterr())
    totals.write_text("area,yes\nNorth,2\nwest,5\n")
    assert main([*command, "--totals", str(totals), "--groups", "area"]) == 2
    assert "did you mean 'north'" in error_line(capsys.readouterr())


def test_totals_have_the_encoding_of_the_data_unless_they_are_utf8(register, tmp_path, capsys):
    register.write_bytes(register.read_text().replace("south", "süd").encode("cp437"))
    for encoding in ("cp437", "utf-8"):
        (tmp_path / "t.csv").write_bytes("area,yes\nnorth,1\nsüd,3\n".encode(encoding))
        more = ["--groups", "area", "--drop", "code", "--encoding", "cp437", "--json"]
        assert main(totals_arguments(register, tmp_path / "t.csv", *more)) == 0
        captured = capsys.readouterr()
        assert {row["group"] for row in json.loads(captured.out)["totals"]} == {"north", "süd"}
        assert "UTF-8" not in captured.err
