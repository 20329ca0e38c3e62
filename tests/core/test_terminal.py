"""What people read obeys no name: escape sequences, line ends and marks of direction are shown, not sent."""

import csv
import io
import json
import re

import numpy as np
import pytest
from tests.examples import looped

from treewright import OCTHClassifier, S2OCTClassifier
from treewright.cli import main
from treewright.core.names import printable
from treewright.data.tables.files import read_table
from treewright.data.tables.writing import write_table
from treewright.report.text import fit_report

ESC, BEL, RLO = "\x1b]0;owned\x07", "ring\x07", "abc\u202egpj.exe"
HOSTILE = [ESC, BEL, RLO, "two\nlines", "back\rward", "\x9b31m", "zero\u200bwidth", "lone\ud800"]
OBEYED = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


@looped("name", HOSTILE)
def test_a_name_is_one_printable_line(name):
    text = printable(name)
    assert text.isprintable() and text != name
    assert text.encode("ascii").decode("unicode_escape") == name  # nothing is lost


@looped("name", ["größe", "年齢", "سن", "naïve – “quoted”", "a b", "100 %", r"C:\dir"])
def test_plain_names_of_all_alphabets_stay(name):
    assert printable(name) == name


def test_only_what_must_be_escaped_is():
    assert printable("größe\x1b") == "größe\\x1b"
    assert printable("می\u200cخواهم") == "می\\u200cخواهم"


@pytest.fixture
def fitted():
    classes = np.array([f"no{ESC}", "yes\nno"], dtype=object)
    X, y = np.arange(8.0)[:, None], classes[[0, 0, 0, -1, -1, 1, 1, 1]]
    y[3:5] = None
    model = S2OCTClassifier(max_depth=1, random_state=0, time_limit=5)
    groups = np.array([f"north{RLO}"] * 8, dtype=object)
    model.fit(X, y, totals={groups[0]: {classes[1]: 1}}, groups=groups)
    model.feature_names_in_ = np.array([f"age{BEL}"], dtype=object)
    return model, X, y


def lines_of(text):
    assert not OBEYED.search(text)
    return text.split("\n")


def test_rules_and_reports(fitted):
    model, X, y = fitted
    assert len(lines_of(model.export_text())) == 4  # if, leaf, else, leaf: no name has made a line
    report = fit_report(model, y, model.predict(X), title=f"fit{ESC}", target=f"work{RLO}\nstatus: proven")
    lines = lines_of(report)
    assert lines[0].startswith("fit\\x1b") and len(lines[0]) == len(lines[1])
    assert not any(line.startswith("status: proven") for line in lines)
    assert sum("yes\\nno" in line for line in lines) >= 4


def hostile_table(path):
    text = io_csv([[f"age{BEL}", f"work{ESC}\nx"], *([i, f"a{ESC}" if i < 5 else f"b{RLO}\nc"] for i in range(10))])
    path.write_text(text, encoding="utf-8")
    return f"work{ESC}\nx"


def io_csv(rows):
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue()


def test_the_command_line(tmp_path, capsys):
    data, model, report = tmp_path / "data.csv", tmp_path / "m.json", tmp_path / "r.txt"
    target = hostile_table(data)
    arguments = [str(data), "--target", target, "--max-depth", "1", "--out", str(model), "--report", str(report)]
    assert main(["fit", *arguments]) == 0
    assert main(["show", str(model)]) == 0
    assert main(["predict", str(model), str(data), "--out", str(tmp_path / "p.csv")]) == 0
    captured = capsys.readouterr()
    lines_of(captured.out)
    lines_of(captured.err)
    lines_of(report.read_text(encoding="utf-8"))
    assert "\\x1b" in captured.out and "\\u202e" in captured.out
    # files have the names as they are
    assert read_table(tmp_path / "p.csv")["prediction"].tolist() == [f"a{ESC}"] * 5 + [f"b{RLO}\nc"] * 5
    assert json.loads(model.read_text())["table"]["target"] == target


ERRORS = {
    "target": (["fit", "{data}", "--target", f"no{ESC}"], 2),
    "file": (["show", f"no{ESC}.json"], 4),
    "argument": (["show", "{data}", f"--no{ESC}"], 2),
    "not a model": (["show", "{hostile}"], 4),
    "setting": (["fit", "{data}", "--target", "x", "--set", f"a{ESC}=1"], 2),
}


@pytest.mark.parametrize(("arguments", "code"), ERRORS.values(), ids=ERRORS.keys())
def test_errors(tmp_path, capsys, arguments, code):
    data, hostile = tmp_path / "data.csv", tmp_path / f"x{BEL}.json"
    hostile_table(data)
    hostile.write_text('{"format": "treewright-model", "version": "1\\u001b"}')
    assert main([a.replace("{data}", str(data)).replace("{hostile}", str(hostile)) for a in arguments]) == code
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    lines_of(captured.err)


def test_warnings(tmp_path, capsys):
    data, model = tmp_path / "data.csv", tmp_path / "m.json"
    data.write_text(io_csv([[f"id{BEL}", "y"], *([i, "ab"[i > 4]] for i in range(10))]))
    assert main(["fit", str(data), "--target", "y", "--out", str(model)]) == 0
    err = capsys.readouterr().err
    assert "numbers the rows" in err
    lines_of(err)


# ---------------------------------------------------------------------- formulas in predictions

FORMULAS = ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1"]
HARMLESS = ["-", "+", "-5", "+5.5", "yes", "a=b", "'=1"]


@pytest.mark.parametrize("text", FORMULAS)
def test_formulas_are_written_as_they_are_with_a_warning(tmp_path, text):
    path = tmp_path / "t.csv"
    with pytest.warns(UserWarning, match="spreadsheets take for formulas .*escape_formulas"):
        write_table(path, {"a": [1, 2], "b": np.array([text, "yes"], dtype=object)})
    with path.open(newline="") as file:
        assert list(csv.reader(file)) == [["a", "b"], ["1", text], ["2", "yes"]]


@pytest.mark.parametrize("text", FORMULAS)
def test_formulas_are_escaped_where_that_is_asked_for(tmp_path, text, recwarn):
    path = tmp_path / "t.csv"
    write_table(path, {text: [-1.5, 2], "b": np.array([text, "yes"], dtype=object)}, escape_formulas=True)
    with path.open(newline="") as file:
        assert list(csv.reader(file)) == [[f"'{text}", "b"], ["-1.5", f"'{text}"], ["2", "yes"]]
    assert not recwarn.list


def test_what_is_no_formula_is_left_alone(tmp_path, recwarn):
    for escape in (False, True):
        path = tmp_path / f"{escape}.csv"
        write_table(path, {"b": np.array(HARMLESS, dtype=object)}, escape_formulas=escape)
        with path.open(newline="") as file:
            assert [row[0] for row in csv.reader(file)][1:] == HARMLESS
    write_table(tmp_path / "t.parquet", {"b": np.array(FORMULAS, dtype=object)}, escape_formulas=True)
    assert read_table(tmp_path / "t.parquet")["b"].tolist() == FORMULAS
    assert not recwarn.list


def test_predictions_of_formulas(tmp_path, capsys):
    data, model, out = tmp_path / "data.csv", tmp_path / "m.json", tmp_path / "p.csv"
    data.write_text(io_csv([["x", "y"], *([i * i, "=A1" if i < 5 else "b"] for i in range(10))]))
    assert main(["fit", str(data), "--target", "y", "--out", str(model), "--predictions", str(out)]) == 0
    assert "'=A1'" in capsys.readouterr().err
    assert read_table(out)["prediction"].tolist() == ["=A1"] * 5 + ["b"] * 5
    assert main(["predict", str(model), str(data), "--out", str(out), "--escape-formulas"]) == 0
    assert capsys.readouterr().err == ""
    assert read_table(out)["prediction"].tolist() == ["'=A1"] * 5 + ["b"] * 5


def test_names_in_python_errors_are_escaped():
    model = OCTHClassifier(max_depth=1).fit([[0.0], [1.0]], ["a", "b"])
    with pytest.raises(ValueError, match=re.escape(repr(f"c{ESC}"))):
        fit_report(model, [f"c{ESC}", "b"], ["a", "b"])
