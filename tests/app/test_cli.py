"""The command line: files, exit codes, JSON, interruption."""

import json
import os

import numpy as np
import pytest
from tests.cli_survey import error_line, fit_arguments, hard_arguments
from tests.examples import looped

import treewright
from treewright.app.table_model import TableModel
from treewright.cli import main
from treewright.core.names import counted
from treewright.data.tables.files import read_table
from treewright.models.registry import SHORT_NAMES
from treewright.teachers.members import MEMBERS
from treewright.tree import route
from treewright.tree.words import FlagWords

# ---------------------------------------------------------------------- fit


WORDS = {1: FlagWords("region is north", "region is south")}


def check_rules(text, model, survey):
    """The conditions are those of the estimator, the leaves have the rows of the table."""
    known, table = TableModel.read(str(model)), read_table(survey)
    rules = known.estimator.export_text(words=WORDS).splitlines()
    for line in rules:
        if line.endswith(":"):
            assert line in text.splitlines()
    leaves = known.estimator.tree_
    reached = route(leaves, known.encoder.transform(table)[0])
    for leaf in np.unique(reached).tolist():
        given = table["employed"][(reached == leaf) & ~table.missing("employed")].tolist()
        told = ", ".join(f"{given.count(label)} {label}" for label in ("no", "yes") if label in given) or "none"
        label = known.estimator.classes_[leaves.labels[leaf]]
        likely = f"about {leaves.probabilities[leaf].max():.1%} likely to be so"
        rows = counted(int(np.sum(reached == leaf)), "row")
        assert f"leaf {leaf}: {label}  ({rows}, {likely}; labelled: {told})" in text


def test_fit_writes_and_says_what(survey, tmp_path, capsys):
    model, predictions, report, page = (tmp_path / name for name in ("m.json", "p.csv", "r.txt", "r.html"))
    more = ["--predictions", str(predictions), "--report", str(report), "--report", str(page)]
    assert main(fit_arguments(survey, model, *more)) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    n_hidden = int(read_table(survey).missing("employed").sum())
    for text in (
        "status: optimal",
        "gap: 0.00%",
        "training accuracy: 100.00%",
        f"left out of the fit: {n_hidden} rows",
    ):
        assert text in captured.out
    for path in (model, predictions, report, page):
        assert f"written to {path}" in captured.out
    estimator = treewright.load_model(model)
    assert estimator.feature_names_in_.tolist() == ["age", "region=north", "weight"]
    check_rules(captured.out, model, survey)
    check_rules(report.read_text().replace("\n  ", "\n"), model, survey)
    assert "region=north" not in captured.out
    assert "oct-h fitted to survey.csv" in report.read_text()
    for text in (report.read_text(), page.read_text()):
        assert "region is south" in text and f"treewright predict {model} NEW_ROWS.csv --out new_labels.csv" in text
    assert page.read_text().startswith("<!DOCTYPE html>") and "<h1><bdi>oct-h fitted to survey.csv" in page.read_text()


def test_a_report_of_each_kind_at_most(survey, tmp_path, capsys):
    for first, second in (("a.txt", "b.md"), ("a.html", "b.HTM")):
        more = ["--report", str(tmp_path / first), "--report", str(tmp_path / second)]
        assert main(fit_arguments(survey, tmp_path / "m.json", *more)) == 2
        error = capsys.readouterr().err
        assert f"{first} is" in error and "one of each kind" in error
    assert list(tmp_path.glob("[ab].*")) == []


@pytest.mark.parametrize("name", ["p.csv", "p.parquet", "p.csv.gz"])
def test_predictions_are_those_of_the_estimator(survey, tmp_path, name):
    model, path = tmp_path / "m.json", tmp_path / name
    assert main(fit_arguments(survey, model, "--predictions", str(path), "--quiet")) == 0
    table, written = read_table(survey), read_table(path)
    known = TableModel.read(str(model))
    X = known.encoder.transform(table)[0]
    estimator = known.estimator
    del estimator.feature_names_in_
    assert list(written.columns) == ["row", "employed", "prediction", "share_no", "share_yes", "leaf"]
    assert written["row"].tolist() == list(range(1, table.n_rows + 1))
    assert written["employed"].tolist() == table["employed"].tolist()
    assert written["prediction"].tolist() == estimator.predict(X).tolist()
    shares = np.column_stack([written["share_no"], written["share_yes"]])
    assert np.array_equal(shares, estimator.predict_proba(X))
    assert np.array_equal(written["leaf"], estimator.apply(X))


def test_json_is_one_document(survey, tmp_path, capsys):
    model = tmp_path / "m.json"
    assert main(fit_arguments(survey, model, "--json")) == 0
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert document["status"] == "optimal" and document["files"] == {"model": str(model)}
    assert document["rows"] == document["labelled"] + document["unlabelled"] == 60
    assert sum(entry["rows"] for entry in document["predicted"]) == 60
    assert document["parameters"]["time_limit"] == 20.0
    assert captured.err == ""


def test_quiet_says_nothing(survey, tmp_path, capsys):
    assert main(fit_arguments(survey, tmp_path / "m.json", "--quiet")) == 0
    assert capsys.readouterr() == ("", "")


def test_options_reach_the_estimator(survey, tmp_path):
    more = ["--max-depth", "1", "--gap", "0.01", "--n-jobs", "2", "--solver", "highs"]
    more += ["--set", "complexity=0.05", "--set", "min_samples_leaf=2", "--weight", "weight"]
    assert main(fit_arguments(survey, tmp_path / "m.json", *more, "--quiet")) == 0
    estimator = treewright.load_model(tmp_path / "m.json")
    expected = {"max_depth": 1, "gap": 0.01, "n_jobs": 2, "complexity": 0.05, "min_samples_leaf": 2, "random_state": 0}
    assert {name: estimator.get_params()[name] for name in expected} == expected
    assert "weight" not in estimator.feature_names_in_
    table = read_table(survey)
    assert estimator.tree_.values[0].sum() == table["weight"][~table.missing("employed")].sum()


def test_features_and_whole_number_labels(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('"x,1",y,z\n1,5,0\n2,5,0\n3,6,1\n4,6,\n')
    out = tmp_path / "m.json"
    command = ["fit", str(path), "--target", "z", "--features", '"x,1"', "--model", "oct-h", "--out", str(out)]
    assert main([*command, "--quiet"]) == 0
    estimator = treewright.load_model(out)
    assert estimator.classes_.tolist() == [0, 1] and estimator.classes_.dtype.kind == "i"
    assert estimator.feature_names_in_.tolist() == ["x,1"]


def test_columns_to_use_or_not_may_be_named_in_several_goes(survey, tmp_path, capsys):
    out = tmp_path / "m.json"
    fit = ["fit", str(survey), "--target", "employed", "--out", str(out), "--time-limit", "1", "--quiet"]
    assert main([*fit, "--model", "OCT_H", "--features", "age", "--features", "weight"]) == 0  # names of models as well
    assert treewright.load_model(out).feature_names_in_.tolist() == ["age", "weight"]
    assert main([*fit, "--model", "octh", "--drop", "id", "--drop", "age,weight"]) == 0
    rest = treewright.load_model(out).feature_names_in_.tolist()
    assert main([*fit, "--model", "oct-h", "--drop", "weight"]) == 0
    assert "'id' has 60 different values, none of them in 10 rows or more, and is left" in capsys.readouterr().err
    assert rest and not {"id", "age", "weight"} & set(rest)


def test_warm_start(survey, fitted, tmp_path, capsys):
    assert main(fit_arguments(survey, tmp_path / "m.json", "--warm-start", str(fitted), "--quiet")) == 0
    more = ["--features", "age", "--warm-start", str(fitted)]
    command = ["fit", str(survey), "--target", "employed", "--out", str(tmp_path / "m.json"), *more]
    assert main([*command, "--model", "oct-h"]) == 2
    assert "its features are" in error_line(capsys.readouterr())


def test_non_optimal_end_is_a_status_not_a_warning(tmp_path, capsys):
    assert main(hard_arguments(tmp_path, time_limit=1)) == 0
    captured = capsys.readouterr()
    assert "status: time_limit (stopped at the time limit" in captured.out
    assert captured.err == ""


def test_verbose_reports_progress_on_stderr(tmp_path, capsys):
    assert main([*hard_arguments(tmp_path, time_limit=1), "--verbose", "--json"]) == 0
    captured = capsys.readouterr()
    assert "objective" in captured.err
    json.loads(captured.out)


class HalfSupervised(treewright.OCTHClassifier):
    """Stands for the models that use rows without a label."""

    def __init__(self, max_depth=1, *, unlabeled=-1):
        super().__init__(max_depth)
        self.unlabeled = unlabeled

    def fit(self, X, y, sample_weight=None):
        known = np.not_equal(y, None)
        self.seen = len(y), int(known.sum())
        return super().fit(X[known], y[known].astype(str))


def test_semi_supervised_models_get_all_rows(survey, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(SHORT_NAMES, "half", HalfSupervised)
    command = ["fit", str(survey), "--target", "employed", "--drop", "id", "--model", "half"]
    assert main([*command, "--out", str(tmp_path / "m.json"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["left_out"] == 0 and document["unlabelled"] > 0


def test_row_numbers_as_a_feature_are_warned_of(tmp_path, capsys):
    path = tmp_path / "a.csv"
    path.write_text("row,z\n1,a\n2,a\n3,b\n")
    assert main(["fit", str(path), "--target", "z", "--out", str(tmp_path / "m.json")]) == 0
    assert "warning: column 'row' numbers the rows" in capsys.readouterr().err


@looped(
    "content, says",
    [
        ("a,z\n1,x\n2,y\n3,x\n.,y\n", "column 'a' is text because of '.' in row 4; 3 of 4 values are numbers"),
        ("a;z\n1,5;x\n2,5;y\n1,5;x\n", "column 'a' is text because of decimal commas, such as '1,5' in row 1"),
        ("a,z\n2024-01-01,x\n2024-01-02,y\n", "column 'a' has dates, which become numbers: days since 1970-01-01"),
        ("a,z\n1.1.24,x\n2.1.24,y\n", "column 'a' looks like dates, such as '1.1.24'"),
        ("a,z\n1,x\n5,y\n2,x\n6,?\n", "the target 'z' has '?' (1 row) as a class; if that means missing: --na '?'"),
        ("a,z\n1,0\n5,1\n2,0\n6,1b\n", "the target: column 'z' is text because of '1b' in row 4"),
    ],
)
def test_text_that_looks_like_something_else_is_warned_of(tmp_path, capsys, content, says):
    path = tmp_path / "a.csv"
    path.write_text(content)
    assert main(["fit", str(path), "--target", "z", "--out", str(tmp_path / "m.json"), "--json"]) == 0
    captured = capsys.readouterr()
    assert f"treewright: warning: {says}" in captured.err
    assert any(text.startswith(says) for text in json.loads(captured.out)["warnings"])


def test_plus_and_minus_are_classes(tmp_path, capsys):
    path = tmp_path / "a.csv"
    path.write_text("a,z\n1,+\n4,-\n0,+\n")
    assert main(["fit", str(path), "--target", "z", "--out", str(tmp_path / "m.json")]) == 0
    assert capsys.readouterr().err == ""


def test_na_is_remembered(tmp_path, capsys):
    data, model, out = tmp_path / "a.csv", tmp_path / "m.json", tmp_path / "p.csv"
    data.write_text("a,z\n1,x\n5,y\n2,x\n6,?\n7,-\n")
    command = ["fit", str(data), "--target", "z", "--out", str(model), "--na", "?", "--na", "-", "--json"]
    assert main([*command, "--model", "oct-h"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["unlabelled"] == 2 and captured.err == ""
    data.write_text("a\n1\n?\n")
    assert main(["predict", str(model), str(data), "--out", str(out)]) == 0
    assert "missing values are filled in: 'a' (1 of them, by 5)" in capsys.readouterr().err
    data.write_text("a\n1\n-99\n")
    assert main(["predict", str(model), str(data), "--out", str(out), "--na", "-99"]) == 0
    assert "missing values are filled in: 'a' (1 of them, by 5)" in capsys.readouterr().err
    assert main(["predict", str(model), str(data), "--out", str(out)]) == 0
    assert capsys.readouterr().err == ""


# ---------------------------------------------------------------------- what is refused


@looped(
    "change, says",
    [
        (["--target", "height"], "no column 'height'"),
        (["--drop", "height"], "no column 'height'"),
        (["--weight", "region"], "'region' has text"),
        (["--max-depth", "0"], "max_depth"),
        (["--max-depth", "two"], "invalid int value"),
        (["--time-limit", "nan"], "time_limit"),
        (["--solver", "cplex"], "solver"),
        (["--set", "depth=3"], "has no parameter 'depth'; it has complexity,"),
        (["--set", "complexity"], "expected NAME=VALUE"),
        (["--set", "complexity=much"], "complexity"),
        (["--set", "time_limit=3"], "given twice"),
        (["--set", "complexity=__import__('os').getcwd()"], "complexity"),
        (["--set", "warm_start=True"], "use --warm-start"),
        (["--features", "age"], "not allowed with argument"),
        (["--drop", ","], "expected column names"),
        (["--model", "forest"], "invalid choice"),
        (["--colour"], "unrecognized arguments"),
        (["--out", "no-such-folder/m.json"], "no folder no-such-folder"),
        (["--out", "."], "not a regular file"),
        (["--predictions", "p.xlsx"], "must end in"),
        (["--predictions", "model.json", "--out", "model.json"], "same file as --out"),
    ],
)
def test_bad_usage_and_input(survey, tmp_path, monkeypatch, capsys, change, says):
    monkeypatch.chdir(tmp_path)
    assert main(fit_arguments("survey.csv", "m.json", *change)) == 2
    captured = capsys.readouterr()
    assert says in error_line(captured) and captured.out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["survey.csv"]


@looped(
    "content, says",
    [
        ("age,employed\n1,yes\n2,yes\n", "only one class"),
        ("age,employed\n1,\n2,\n", "is empty in all 2 rows"),
        ("age,employed\n,yes\n,no\n", "no column is left"),
        ("age,employed\n1,yes\n2\n", "line 3 has 1 fields"),
        ("employed\nyes\nno\n", "no column is left"),
        ("age,employed\n" + "\n".join(f"{i},{i + 0.5}" for i in range(60)), "needs a column of classes"),
    ],
)
def test_bad_tables(tmp_path, capsys, content, says):
    path = tmp_path / "a.csv"
    path.write_text(content)
    assert main(["fit", str(path), "--target", "employed", "--out", str(tmp_path / "m.json")]) == 2
    assert says in capsys.readouterr().err.splitlines()[-1]


def test_no_such_table(tmp_path, capsys):
    assert main(fit_arguments(tmp_path / "none.csv", tmp_path / "m.json")) == 2
    assert "none.csv: No such file" in error_line(capsys.readouterr())


def test_the_data_is_not_overwritten(survey, capsys):
    before = survey.read_bytes()
    assert main(fit_arguments(survey, survey)) == 2
    assert "same file as DATA" in error_line(capsys.readouterr())
    assert survey.read_bytes() == before


def test_outputs_are_checked_before_the_fit(survey, tmp_path, monkeypatch, capsys):
    def fit(*arguments, **options):
        raise AssertionError("the fit began")

    monkeypatch.setattr(treewright.OCTHClassifier, "fit", fit)
    for option in ("--out", "--predictions", "--report"):
        assert main(fit_arguments(survey, tmp_path / "m.json", option, str(tmp_path / "none" / "p.csv"))) == 2
        assert "there is no folder" in error_line(capsys.readouterr())


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(survey, tmp_path, capsys):
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    assert main(fit_arguments(survey, folder / "m.json")) == 2
    assert "cannot be written" in error_line(capsys.readouterr())


def test_errors_under_json(survey, tmp_path, capsys):
    assert main(fit_arguments(survey, tmp_path / "m.json", "--target", "height", "--json")) == 2
    captured = capsys.readouterr()
    error = json.loads(captured.out)["error"]
    assert error["type"] == "InvalidInputError" and "height" in error["message"]
    error_line(captured)
    assert main(["fit", "--json"]) == 2
    assert "required" in json.loads(capsys.readouterr().out)["error"]["message"]


def test_missing_solver(survey, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("treewright.solvers.registry.is_installed", lambda name: name != "scip")
    assert main(fit_arguments(survey, tmp_path / "m.json", "--solver", "scip")) == 3
    assert 'pip install "treewright[scip]"' in error_line(capsys.readouterr())


def test_missing_licence(survey, tmp_path, monkeypatch, capsys):
    def fit(*arguments, **options):
        raise treewright.exceptions.MissingLicenseError("gurobi has no licence")

    monkeypatch.setattr(treewright.OCTHClassifier, "fit", fit)
    assert main(fit_arguments(survey, tmp_path / "m.json")) == 3
    assert "no licence" in error_line(capsys.readouterr())


def test_unexpected_failure(survey, tmp_path, monkeypatch, capsys):
    def fit(*arguments, **options):
        raise RuntimeError("oh")

    monkeypatch.setattr(treewright.OCTHClassifier, "fit", fit)
    monkeypatch.delenv("TREEWRIGHT_DEBUG", raising=False)
    assert main(fit_arguments(survey, tmp_path / "m.json")) == 1
    assert "unexpected RuntimeError: oh" in error_line(capsys.readouterr())
    monkeypatch.setenv("TREEWRIGHT_DEBUG", "1")
    assert main(fit_arguments(survey, tmp_path / "m.json")) == 1
    assert "Traceback" in capsys.readouterr().err


# ---------------------------------------------------------------------- predict, show, solvers


def test_predict(survey, fitted, tmp_path, capsys):
    out = tmp_path / "p.csv"
    assert main(["predict", str(fitted), str(survey), "--out", str(out), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["rows"] == 60 and document["files"] == {"predictions": str(out)}
    written = read_table(out)
    assert [np.count_nonzero(written["prediction"] == c["class"]) for c in document["predicted"]] == [
        c["rows"] for c in document["predicted"]
    ]


def test_predict_new_rows(fitted, tmp_path, capsys):
    data, out = tmp_path / "new.csv", tmp_path / "p.csv"
    data.write_text("region,age,weight\nwest,30,1\nnorth,30,1\n")
    assert main(["predict", str(fitted), str(data), "--out", str(out)]) == 0
    captured = capsys.readouterr()
    assert (
        captured.err.startswith("treewright: warning: column 'region' has levels") and "'west' (1 row)" in captured.err
    )
    assert "employed" not in read_table(out).columns
    data.write_text("region,age\nnorth,30\n")
    assert main(["predict", str(fitted), str(data), "--out", str(out)]) == 2
    assert "lacks 'weight', which the model was fitted with" in error_line(capsys.readouterr())


def test_predict_with_a_model_that_knows_no_table(tmp_path, capsys):
    pandas = pytest.importorskip("pandas")
    data, out = tmp_path / "a.csv", tmp_path / "p.csv"
    data.write_text("b,a\n5,1\n5,9\n")
    rows, y = [[1.0, 0.0], [2.0, 0.0], [8.0, 0.0], [9.0, 0.0]], ["x", "x", "y", "y"]
    treewright.OCTHClassifier(max_depth=1).fit(pandas.DataFrame(rows, columns=["a", "b"]), y).save(tmp_path / "n.json")
    assert main(["predict", str(tmp_path / "n.json"), str(data), "--out", str(out)]) == 0
    assert read_table(out)["prediction"].tolist() == ["x", "y"]
    treewright.OCTHClassifier(max_depth=1).fit([row[::-1] for row in rows], y).save(tmp_path / "m.json")
    assert main(["predict", str(tmp_path / "m.json"), str(data), "--out", str(out)]) == 0
    assert read_table(out)["prediction"].tolist() == ["x", "y"]
    data.write_text("a\n1\n")
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "m.json"), str(data), "--out", str(out)]) == 2
    assert "2 features without names, the table 1 column" in error_line(capsys.readouterr())


def test_show(fitted, survey, capsys):
    assert main(["show", str(fitted)]) == 0
    text = capsys.readouterr().out
    check_rules(text, fitted, survey)
    assert "status: optimal" in text and "max_depth=2" in text and "target: employed" in text
    assert main(["show", str(fitted), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["classes"] == ["no", "yes"] and document["tree"]["format"] == "treewright-tree"


def corrupt(document, change):
    if change == "encoder":
        document["table"]["encoder"]["columns"] = document["table"]["encoder"]["columns"][1:]
    elif change == "target":
        document["table"]["target"] = 3
    elif change == "na":
        document["table"]["na"] = "?"
    elif change == "table":
        document["table"] = []
    else:
        document["tree"]["nodes"][0]["left"] = 99
    return json.dumps(document)


@pytest.mark.parametrize("change", ["encoder", "target", "na", "table", "tree", "truncated", "none"])
@pytest.mark.parametrize("command", ["show", "predict", "fit"])
def test_corrupt_model_file(survey, fitted, tmp_path, capsys, change, command):
    text = fitted.read_text()
    if change == "none":
        fitted.unlink()
    else:
        fitted.write_text(text[:-20] if change == "truncated" else corrupt(json.loads(text), change))
    commands = {
        "show": ["show", str(fitted)],
        "predict": ["predict", str(fitted), str(survey), "--out", str(tmp_path / "p.csv")],
        "fit": fit_arguments(survey, tmp_path / "m.json", "--warm-start", str(fitted)),
    }
    assert main(commands[command]) == 4
    assert "fitted.json" in error_line(capsys.readouterr())


def test_solvers(capsys):
    assert main(["solvers"]) == 0
    assert "highs" in capsys.readouterr().out
    assert main(["solvers", "--json"]) == 0
    found = {s["name"]: s for s in json.loads(capsys.readouterr().out)["solvers"]}
    assert found["highs"]["installed"] and "mip" in found["highs"]["capabilities"]


def test_help_and_version(capsys):
    for arguments in (["--help"], ["fit", "--help"], ["--version"]):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 0
    text = capsys.readouterr().out
    assert "exit codes:" in text and f"treewright {treewright.__version__}" in text


@pytest.mark.usefixtures("shortest_searches")
def test_tao_leaves_out_rows_without_a_label_unless_it_has_a_teacher(tmp_path, capsys):
    rng = np.random.default_rng(0)
    X = rng.random((40, 2)).round(3)
    labels = np.where(X[:, 0] > 0.5, "high", "low").astype(object)
    labels[20:] = ""
    table = tmp_path / "t.csv"
    table.write_text("a,b,y\n" + "".join(f"{a},{b},{y}\n" for (a, b), y in zip(X, labels, strict=True)))
    fit = ["fit", str(table), "--target", "y", "--model", "tao", "--out", str(tmp_path / "m.json")]
    report = tmp_path / "r.txt"
    fit += ["--report", str(report), "--report", str(tmp_path / "r.html")]
    assert main(fit) == 0
    out = capsys.readouterr().out
    assert "left out of the fit: 20 rows without 'y' (tao is supervised; --set teacher=auto makes use of them)" in out
    assert "labelled by" not in out and "With --set teacher=auto a teacher labels them" in plain_text(report)
    assert main([*fit, "--set", "teacher=auto"]) == 0
    out = capsys.readouterr().out
    told = "20 rows without a label were labelled by a teacher: auto: "
    (line,) = [line for line in out.splitlines() if line.startswith(told)]
    assert any(name in line for name in MEMBERS) and "left out of the fit" not in out
    assert line in plain_text(report) and told in (tmp_path / "r.html").read_text()


def plain_text(path):
    """Text of a report without its line breaks."""
    return " ".join(path.read_text().split())
