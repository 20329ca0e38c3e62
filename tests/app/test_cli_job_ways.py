"""The job in other ways: which model, options that do not fit together, interrupts, what an estimate rests on."""

import json
import re
import signal

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from tests.cli_register import AREAS, N, command, register, totals_of
from tests.examples import looped

from treewright import C2RFClassifier, S2OCTClassifier, load_model
from treewright.app import labelled_table, rows
from treewright.app.planning import ESTIMATORS
from treewright.app.table_model import TableModel
from treewright.cli import main
from treewright.cli.parser import make_parser
from treewright.core.budget import Budget
from treewright.data.tables.files import read_table
from treewright.data.tables.writing import write_table
from treewright.estimation import accuracy

# ---------------------------------------------------------------------- which model


def test_totals_alone_take_a_number_of_cores(tmp_path, capsys):
    """As the whole job does."""
    register(tmp_path)
    assert main(command(tmp_path, "--model", "totals", "--estimator", "logistic", "--n-jobs", "1")) == 0
    assert "totals are met to the row" in capsys.readouterr().out


def test_totals_alone_have_no_tree(tmp_path, capsys):
    columns, truth, asked = register(tmp_path)
    files = ["--predictions", str(tmp_path / "p.csv"), "--report", str(tmp_path / "r.txt")]
    assert main(command(tmp_path, "--model", "totals", "--estimator", "logistic", *files)) == 0
    out = capsys.readouterr().out
    assert "all 4 totals are met to the row" in out and "a tree that" not in out
    assert re.search(r"accuracy: \d+\.\d% of the labels are likely to be right \(95% interval", out)
    written = read_table(tmp_path / "p.csv")
    assert "leaf" not in written.columns
    n_yes = [np.sum((written["prediction"] == "yes") & ~asked & (columns["area"] == area)) for area in AREAS]
    assert n_yes == totals_of(columns, truth, ~asked)["yes"]
    report = (tmp_path / "r.txt").read_text()
    assert "A tree" not in report and "scores: Pipeline" in report


@pytest.mark.parametrize("kind", ["forest", "extra-trees"])
def test_forests_weighted_by_totals(kind, tmp_path, monkeypatch, capsys):
    """Groups, a text column, gaps, the file and next year."""
    columns, truth, asked = register(tmp_path)
    columns["x"] = np.where(np.arange(N) % 9, columns["x"], np.nan)
    write_table(tmp_path / "register.csv", {**columns, "z": np.where(asked, truth, None)})
    monkeypatch.setitem(ESTIMATORS, kind, lambda: SMALL[kind](15))
    files = ["--predictions", str(tmp_path / "p.csv"), "--report", str(tmp_path / "r.txt")]
    options = ["--model", "c2rf", "--estimator", kind, "--time-limit", "10"]
    assert main(command(tmp_path, *options, *files, "--json")) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["estimator"] == "C2RFClassifier" and document["tree"] is None
    assert [row["deviation"] for row in document["totals"]] == [0] * 4
    written, counts = read_table(tmp_path / "p.csv"), totals_of(columns, truth, ~asked)
    for label in ("yes", "no"):
        for area, total in zip(AREAS, counts[label], strict=True):
            inside = ~asked & (columns["area"] == area)
            assert np.count_nonzero(written["prediction"][inside] == label) == total
            assert written[f"share_{label}"][inside].sum() == pytest.approx(total, abs=1e-6)
    assert "How accurate" in (tmp_path / "r.txt").read_text()
    model = load_model(tmp_path / "m.zip")
    assert isinstance(model, C2RFClassifier) and not hasattr(model, "transduction_")
    X = TableModel.read(str(tmp_path / "m.zip")).features_of(read_table(tmp_path / "register.csv"))
    predict = ["predict", str(tmp_path / "m.zip"), str(tmp_path / "register.csv"), "--out", str(tmp_path / "n.csv")]
    predict += ["--answers", "ignore"]
    assert main([*predict, "--totals", str(tmp_path / "next.csv"), "--groups", "area"]) == 2
    write_table(tmp_path / "next.csv", totals_of(columns, truth, np.ones(N, dtype=bool)))
    assert main([*predict, "--totals", str(tmp_path / "next.csv"), "--groups", "area"]) == 0
    counts = totals_of(columns, truth, np.ones(N, dtype=bool))
    totals = {a: {k: counts[k][g] for k in ("yes", "no")} for g, a in enumerate(AREAS)}
    assert read_table(tmp_path / "n.csv")["prediction"].tolist() == model.transduce(X, totals, columns["area"]).tolist()
    assert main(["show", str(tmp_path / "m.zip")]) == 0
    assert "C2RFClassifier" in capsys.readouterr().out


SMALL = {"forest": RandomForestClassifier, "extra-trees": ExtraTreesClassifier}


@pytest.mark.usefixtures("short_searches")
def test_rows_without_a_label_make_it_the_job_and_none_the_tree(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("x,z\n" + "".join(f"{i},{'' if i % 3 else 'ab'[i > 8]}\n" for i in range(18)))
    assert main(["fit", "a.csv", "--target", "z", "--estimator", "logistic", "--time-limit", "5"]) == 0
    out = capsys.readouterr().out
    assert "a tree that agrees with" in out and "model written to model.zip" in out and "totals of" not in out
    (tmp_path / "b.csv").write_text("x,z\n" + "".join(f"{i},{'ab'[i > 8]}\n" for i in range(18)))
    assert main(["fit", "b.csv", "--target", "z", "--max-depth", "1", "--time-limit", "10"]) == 0
    out = capsys.readouterr().out
    assert "training accuracy: 100.00% (18 of 18 rows with a label). The fit has seen these labels" in out
    assert load_model("model.json").__class__.__name__ == "OCTHClassifier"


@pytest.mark.usefixtures("short_searches")
def test_too_few_labels_to_leave_some_out(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("x,z\n0,a\n" + "".join(f"{i},\n" for i in range(1, 9)) + "9,b\n")
    (tmp_path / "t.json").write_text('{"a": 4}')
    files = ["--out", str(tmp_path / "m.zip"), "--report", str(tmp_path / "r.txt"), "--time-limit", "5"]
    fit = ["fit", str(tmp_path / "a.csv"), "--target", "z", "--totals", str(tmp_path / "t.json"), *files]
    assert main([*fit, "--estimator", "logistic", "--drop", "none"]) == 2
    capsys.readouterr()
    assert main([*fit, "--estimator", "logistic"]) == 0
    words = "not known, no labels were left out: labels of two classes, two rows of each"
    assert words in capsys.readouterr().out
    report = (tmp_path / "r.txt").read_text()
    assert words in report and "The accuracy on given labels is no guess at it" in report


@looped(
    "more, says",
    [
        (["--model", "s2oct", "--estimator", "forest"], "--estimator: s2oct has none; it is for --model totals"),
        (
            ["--model", "c2rf", "--estimator", "logistic"],
            "c2rf weighs the members of an ensemble",
        ),
        (["--estimator", "oak"], "invalid choice"),
        (["--model", "totals", "--max-depth", "3"], "totals has no parameter 'max_depth'"),
        (["--set", "complexity=1"], "s2oct has no parameter 'complexity' (without --model the tree"),
        (["--max-depth", "0"], "max_depth"),
        (["--solver", "cplex"], "solver"),
        (["--time-limit", "nan"], "time_limit"),
        (["--suspects", "s.csv"], "totals does not look for wrong labels"),
    ],
)
def test_what_does_not_fit_together(tmp_path, capsys, more, says):
    register(tmp_path)
    assert main(command(tmp_path, *more)) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "m.zip").exists()


def test_the_parser_names_all_estimators():
    fit = make_parser()._subparsers._group_actions[0].choices["fit"]
    assert next(action for action in fit._actions if action.dest == "estimator").choices == sorted(ESTIMATORS)


@pytest.mark.usefixtures("short_searches")
def test_ctrl_c_and_progress_are_told_at_once(tmp_path, capsys, monkeypatch):
    """The first Ctrl-C comes in the second part of the estimate."""
    register(tmp_path)
    how_many = []

    def found(self, rows, held_out):
        how_many.append(len(held_out))
        if len(how_many) == 2:
            raise KeyboardInterrupt
        return real(self, rows, held_out)

    real = accuracy._Task.found
    monkeypatch.setattr(accuracy._Task, "found", found)
    files = ["--report", str(tmp_path / "r.txt"), "--report", str(tmp_path / "r.html")]
    more = ["--estimator", "logistic", "--time-limit", "3", "--verbose"]
    assert main(command(tmp_path, *files, *more)) == 130
    captured = capsys.readouterr()
    stages = [
        "labels found after",
        "labels left out, part 1 of",
        "Ctrl-C seen: the labels are kept",
        "tree found after",
    ]
    places = [captured.err.index(stage) for stage in stages]
    assert places == sorted(places) and "a second Ctrl-C leaves it out" in captured.err
    assert "accuracy: not known, leaving labels out was interrupted" in captured.out
    for name in ("r.txt", "r.html"):
        report = (tmp_path / name).read_text(encoding="utf-8")
        assert "leaving labels out was interrupted" in report and "Run it to its end" in report
        assert "two labels of each of two classes" not in report


@pytest.mark.parametrize("when", ["in the estimate too", "in the tree alone"])
def test_a_second_ctrl_c_leaves_the_tree_out_and_keeps_the_labels(tmp_path, capsys, monkeypatch, when):
    """Signals as a terminal sends them; the first one in a fit of the tree only ends its search."""
    columns, _, asked = register(tmp_path)
    seen = []

    def found(self, rows, held_out):
        if when == "in the estimate too":
            signal.raise_signal(signal.SIGINT)
        return real(self, rows, held_out)

    def fit(self, *args, **kwargs):
        budget = Budget()
        with budget.stop_on_interrupt():
            signal.raise_signal(signal.SIGINT)
            seen.append(budget.interrupted)
            signal.raise_signal(signal.SIGINT)

    real = accuracy._Task.found
    monkeypatch.setattr(accuracy._Task, "found", found)
    monkeypatch.setattr(S2OCTClassifier, "fit", fit)
    files = ["--report", str(tmp_path / "r.txt"), "--predictions", str(tmp_path / "p.csv")]
    assert main(command(tmp_path, *files, "--estimator", "logistic")) == 130
    captured = capsys.readouterr()
    assert captured.err.count("Ctrl-C seen") == 2 and "there is no tree; the labels are written" in captured.err
    assert seen == ([] if when == "in the estimate too" else [True])
    table = read_table(tmp_path / "p.csv")
    assert "leaf" not in table.columns and table.n_rows == N
    assert ("not known" in captured.out) == (when == "in the estimate too")
    totals = read_table(tmp_path / "totals.csv")
    for area, number in zip(totals["area"], totals["yes"], strict=True):
        rows = ~asked & (columns["area"] == area)
        assert np.count_nonzero(table["prediction"][rows] == "yes") == number
    assert "A tree that explains" not in (tmp_path / "r.txt").read_text(encoding="utf-8")
    assert load_model(tmp_path / "m.zip").predict_proba(np.zeros((1, 4))).shape == (1, 2)


def test_what_the_estimate_rests_on_is_told():
    estimate = accuracy.AccuracyEstimate(0.8, 0.7, 0.9, 0.95, 50, {}, 10, 10, 50)
    (said,) = labelled_table._parts_words(estimate)
    assert said[1].startswith("all 50 labels left out in turn, in 10 parts; ") and "time" not in said[1]
    (said,) = labelled_table._parts_words(estimate._replace(n_fits=3, n_known=170, short=True))
    assert said[1].startswith("50 of 170 labels left out, in 3 of 10 parts; ") and "with more time all are" in said[1]
    (said,) = labelled_table._parts_words(estimate._replace(n_fits=2, n_splits=5, n_known=125))
    assert said[1].startswith("50 of 125 labels left out, in 2 of 5 parts; ") and "time" not in said[1]
    assert labelled_table._parts_words(None) == []


@pytest.mark.usefixtures("shortest_searches")
@pytest.mark.parametrize("known", ["nothing", "one group", "all"])
def test_what_the_estimate_assumes_is_told_with_it(tmp_path, capsys, known):
    register(tmp_path)
    fit = ["fit", str(tmp_path / "register.csv"), "--target", "z", "--random-state", "0", "--estimator", "logistic"]
    fit += ["--out", str(tmp_path / "m.zip"), "--report", str(tmp_path / "r.txt"), "--report", str(tmp_path / "r.html")]
    if known != "nothing":
        totals = (tmp_path / "totals.csv").read_text().splitlines()
        (tmp_path / "t.csv").write_text("\n".join(totals[: 3 if known == "all" else 2]))
        fit += ["--totals", str(tmp_path / "t.csv"), "--groups", "area"]
    assert main([*fit, "--json"]) == 0
    assumed = json.loads(capsys.readouterr().out)["accuracy"]["assumes"]
    assert main(fit) == 0
    said = [capsys.readouterr().out, (tmp_path / "r.txt").read_text(), (tmp_path / "r.html").read_text()]
    said = [" ".join(text.split()) for text in said]
    for text in said:
        assert ("if those who answered are like those who did not" in text) == (known != "all")
        assert ("No totals were given, so classes count as they were labelled" in text) == (known == "nothing")
        assert ("too high where frequent classes answer more often" in text) == (known == "nothing")
        assert ("totals fix that in part" in text) == (known == "one group")
    for text in said[1:]:
        assert ("Classes count as the totals say" in text) == (known == "all")
        assert all(" ".join(words.split()) in text for words in assumed)


@pytest.mark.usefixtures("short_searches")
def test_a_slow_machine_leaves_out_fewer_parts_and_not_larger_ones(tmp_path, capsys, monkeypatch):
    _, _, asked = register(tmp_path)
    sizes = []

    def found(self, rows, held_out):
        sizes.append((len(rows), len(held_out)))
        return real(self, rows, held_out)

    real = accuracy._Task.found
    monkeypatch.setattr(accuracy._Task, "found", found)
    files = ["--report", str(tmp_path / "r.txt"), "--report", str(tmp_path / "r.html")]
    assert main(command(tmp_path, *files, "--estimator", "logistic", "--time-limit", "0.001")) == 0
    n, left_out = int(asked.sum()), sum(size for _, size in sizes)
    assert len(sizes) == (2 if sizes[0][1] + sizes[1][1] >= 100 else 3)
    assert all(learned + size == n and size <= n / 10 + 2 for learned, size in sizes)
    words = f"by {left_out} of {n} labels left out; with more time (--time-limit) all are"
    assert words in capsys.readouterr().out and words in " ".join((tmp_path / "r.txt").read_text().split())
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert f"{left_out} of {n} labels were left out" in page and "With more time (--time-limit) all are." in page


def test_ids_that_stand_twice_are_told_of(tmp_path, capsys, monkeypatch):
    columns, truth, asked = register(tmp_path)
    labels = np.where(asked, truth, None)
    fit = command(tmp_path, "--model", "totals", "--estimator", "logistic", "--id", "person")
    person = np.array([f"p{i}" for i in range(N)], dtype=object)
    write_table(tmp_path / "register.csv", {**columns, "person": person, "z": labels})
    assert main(fit) == 0 and "more than one row" not in capsys.readouterr().err
    person[10:13], person[20] = "p3", "p4"
    write_table(tmp_path / "register.csv", {**columns, "person": person, "z": labels})
    assert main(fit) == 0
    words = "2 values of 'person' stand in more than one row, such as 'p3' (4 rows); each row is labelled by itself"
    assert words in capsys.readouterr().err
    monkeypatch.setattr(rows, "_WHOLE_ROWS", 10)  # registers that come in parts are not looked through
    assert main(fit) == 0 and "more than one row" not in capsys.readouterr().err


def test_leaves_say_what_is_true_whoever_scores_rows(tmp_path, capsys, short_searches):
    """Votes of a forest among columns that say nothing are near one another: 55 % was said where 98 % is true."""
    rng = np.random.default_rng(0)
    n, classes = 1000, np.array(["a", "b", "c"], dtype=object)
    x, area = rng.normal(size=(n, 27)), rng.integers(0, 2, n)
    truth = np.where(x[:, 0] > 0.8, 2, (x[:, 1] > 0.4 * area).astype(int))
    truth = np.where(rng.random(n) < 0.02, rng.integers(3, size=n), truth)
    asked = rng.random(n) < np.array([0.1, 0.15, 0.25])[truth]
    columns = {f"x{j}": column for j, column in enumerate(x.T)} | {"area": AREAS[area]}
    write_table(tmp_path / "register.csv", {**columns, "z": np.where(asked, classes[truth], None)})
    counts = {c: [int(np.sum(~asked & (truth == k) & (area == g))) for g in (0, 1)] for k, c in enumerate(classes)}
    write_table(tmp_path / "totals.csv", {"area": AREAS, **counts})
    files = ["--predictions", str(tmp_path / "p.csv"), "--time-limit", "4"]
    assert main(command(tmp_path, *files, "--estimator", "forest")) == 0
    written, leaves = read_table(tmp_path / "p.csv"), TableModel.read(str(tmp_path / "m.zip")).leaves
    seen = 0
    for number, leaf in leaves.items():
        inside = written["leaf"] == number
        if np.count_nonzero(inside) >= 50:
            seen += 1
            said = leaf.likely[classes.tolist().index(leaf.label)] / sum(leaf.likely)
            assert said == pytest.approx(np.mean(classes[truth[inside]] == leaf.label), abs=0.15), leaf
    assert seen >= 3
    told = capsys.readouterr().out
    assert "likely to be so" in told
