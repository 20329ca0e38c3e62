"""The whole job on the command line: labels within totals, how accurate they are likely to be, a tree to read."""

import contextlib
import io
import json
import re
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import skops.io as sio
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from tests.cli_register import AREAS, N, command, made, register, totals_of

from treewright import TotalsClassifier, estimated_accuracy, load_model
from treewright.app.planning import ESTIMATORS
from treewright.app.table_model import TableModel
from treewright.cli import main
from treewright.data.tables.files import read_table
from treewright.data.tables.writing import write_table
from treewright.estimation import accuracy
from treewright.exceptions import ModelFileError


@pytest.fixture(scope="module")
def job(tmp_path_factory, short_searches_of_module):
    """A folder after the whole job, and what it printed as JSON."""
    folder = tmp_path_factory.mktemp("job")
    register(folder)
    files = ["--predictions", str(folder / "p.csv"), "--report", str(folder / "r.txt")]
    files += ["--report", str(folder / "r.html")]
    out = io.StringIO()
    with contextlib.redirect_stdout(out), pytest.MonkeyPatch.context() as patch:
        patch.setattr(accuracy, "_LEAST_PARTS", 10)  # however slow the machine is
        code = main(command(folder, *files, "--estimator", "logistic", "--time-limit", "6", "--json"))
    assert code == 0
    return folder, json.loads(out.getvalue())


@pytest.fixture(scope="module")
def again(job):
    """The same labeller, fitted in Python."""
    folder, _ = job
    columns, truth, asked = register(folder)
    X = TableModel.read(str(folder / "m.zip")).features_of(read_table(folder / "register.csv"))
    counts = totals_of(columns, truth, ~asked)
    totals = {a: {k: counts[k][g] for k in ("yes", "no")} for g, a in enumerate(AREAS)}
    known = {"totals": totals, "groups": columns["area"]}
    model = TotalsClassifier(ESTIMATORS["logistic"](), calibrate=True, random_state=0)
    return model.fit(X, np.where(asked, truth, None), **known), X, known


def test_every_total_is_met_and_given_labels_are_kept(job):
    folder, document = job
    columns, truth, asked = register(folder)
    written = read_table(folder / "p.csv")
    assert written["prediction"][asked].tolist() == truth[asked].tolist()
    counts = totals_of(columns, truth, ~asked)
    for label in ("yes", "no"):
        for area, total in zip(AREAS, counts[label], strict=True):
            inside = ~asked & (columns["area"] == area)
            assert np.count_nonzero(written["prediction"][inside] == label) == total
            assert written[f"share_{label}"][inside].sum() == pytest.approx(total, abs=1e-6)
    assert document["files"].keys() == {"model", "predictions", "report", "html_report"}
    assert [row["deviation"] for row in document["totals"]] == [0] * 4


def test_the_tree_agrees_as_is_said_and_its_leaves_have_the_numbers_of_the_predictions(job):
    folder, document = job
    _, _, asked = register(folder)
    model, table = TableModel.read(str(folder / "m.zip")), read_table(folder / "register.csv")
    written, report = read_table(folder / "p.csv"), (folder / "r.txt").read_text()
    X = model.features_of(table)
    same = model.explaining.predict(X) == written["prediction"]
    assert document["tree"]["agreement"] == np.mean(same[~asked])
    right = np.count_nonzero(same[asked])
    words = f"{np.sum(same[~asked])} of {np.sum(~asked)} rows without a label ({np.mean(same[~asked]):.1%}), and with "
    assert f"{words}{right} of {np.sum(asked)} given labels" in report
    assert np.array_equal(written["leaf"], model.explaining.apply(X))
    shown = dict(re.findall(r"leaf (\d+): (?:yes|no)  \((\d+) rows?,", report))
    leaves, rows = np.unique(written["leaf"].astype(int), return_counts=True)
    assert {int(leaf): int(n) for leaf, n in shown.items() if int(n)} == dict(
        zip(leaves.tolist(), rows.tolist(), strict=True)
    )


def test_show_terminal_and_report_have_the_same_leaves(job, capsys, tmp_path):
    folder, document = job
    assert main(["show", str(folder / "m.zip")]) == 0
    shown, report = capsys.readouterr().out, (folder / "r.txt").read_text()
    rules = document["tree"]["rules"].splitlines()
    assert any("leaf" in line for line in rules) and "\n".join(rules) in shown
    assert "\n".join(f"  {line}" for line in rules) in report
    # a file without what is known of leaves: numbers at least
    model = TableModel.read(str(folder / "m.zip"))
    replace(model, leaves=None).write(str(tmp_path / "old.zip"))
    numbers = re.findall(r"leaf (\d+): (\w+)", str(TableModel.read(str(tmp_path / "old.zip")).rules))
    assert numbers == re.findall(r"leaf (\d+): (\w+)", document["tree"]["rules"])


def test_what_a_file_says_of_leaves_is_not_trusted(job):
    model = TableModel.read(str(job[0] / "m.zip"))
    every = [[leaf, of.rows, of.counts, of.likely] for leaf, of in model.leaves.items()]
    assert model._with_leaves({"table": {"leaves": every}}, "m").leaves == model.leaves
    assert all(sum(of.likely) == pytest.approx(of.rows) for of in model.leaves.values())
    told = [entry[:3] for entry in every]  # as files had it before there were shares by probabilities
    first, *others = told
    older = model._with_leaves({"table": {"leaves": told}}, "m").leaves
    assert older == {leaf: replace(of, likely=None) for leaf, of in model.leaves.items()}
    for wrong in (
        others,
        [*told, first],
        [[0, *first[1:]], *others],
        [[10**9, *first[1:]], *others],
        [[first[0], -1, first[2]], *others],
        [[first[0], 1.5, first[2]], *others],
        [[*first[:2], first[2][1:]], *others],
        [[*first[:2], ["a", "b"]], *others],
        [[*first, [0.5]], *others],
        [[*first, [-0.5, 1.5]], *others],
        [[*first, [float("nan"), 1.0]], *others],
        [[*first, "ab"], *others],
        [None],
        7,
        {},
    ):
        with pytest.raises(ModelFileError, match=r"m: table\.leaves"):
            model._with_leaves({"table": {"leaves": wrong}}, "m")
    for wrong in (7, [[0]], [[0, 0]], [[0, 18]], [[10**6, 5]], [[0, 5.0]]):
        with pytest.raises(ModelFileError, match=r"m: table\.digits"):
            model._with_leaves({"table": {"digits": wrong}}, "m")


def test_the_report_says_how_it_was_made(job):
    folder, _ = job
    text, page = (folder / "r.txt").read_text(), (folder / "r.html").read_text()
    made = " ".join(text[text.index("How it was made") : text.index("Parameters")].split())
    assert f"table: register.csv, {N} rows, text in utf-8 with commas between columns" in made
    assert "totals: totals.csv, by area, of the rows without a label" in made
    assert "features: x, v (numbers); kind (text:" in made
    assert "left out: area (the groups of the totals), z (the target)" in made
    for words in ("text in utf-8 with commas between columns", "area (the groups of the totals), z (the target)"):
        assert words in page


def test_the_report_says_how_accurate_and_not_on_labels_that_were_seen(job, again):
    folder, document = job
    model, X, known = again
    estimate = estimated_accuracy(model, X, read_y(folder), **known)
    accuracy = document["accuracy"]
    assert (accuracy["value"], accuracy["low"], accuracy["high"]) == (estimate.value, estimate.low, estimate.high)
    assert sum(part["left_out"] for part in accuracy["recall"]) == accuracy["n_labels"] == accuracy["n_known"]
    assert all(part["share"] == pytest.approx(part["found"] / part["left_out"]) for part in accuracy["recall"])
    report = (folder / "r.txt").read_text()
    assert f"{estimate.value:.1%} of the labels are likely to be right" in report
    assert f"(95% interval: {estimate.low:.1%} to {estimate.high:.1%})" in report
    assert "labels that the fit has seen are found again nearly always" in report
    for text in (report, (folder / "r.html").read_text(encoding="utf-8")):
        flat = " ".join(text.split())
        assert "rows with a label are taken to be like the others" in flat and "only the young were asked" in flat
    assert "teacher='auto' (it was: labels)" in report
    assert "training" not in report and "accuracy 100" not in report
    parts = ["Asked and reached", "How accurate", "A tree that explains", "What to do next", "Parameters"]
    places = [report.index(part) for part in parts]
    assert places == sorted(places)
    command = f"treewright predict {folder / 'm.zip'} NEW_ROWS.csv --totals NEW_TOTALS.csv --groups area --out"
    for text in (report, (folder / "r.html").read_text()):
        assert command in text and f"{estimate.low:.1%} to {estimate.high:.1%}" in text
        assert not re.search(r"time_limit=\d+\.\d{3}", text)


def read_y(folder):
    return read_table(folder / "register.csv").as_text("z")


def test_next_year_is_cut_as_by_the_model_in_python(job, again, tmp_path):
    folder, _ = job
    columns, truth = made(7)
    write_table(tmp_path / "next.csv", columns)
    write_table(tmp_path / "totals.csv", totals_of(columns, truth, np.ones(N, dtype=bool)))
    predict = ["predict", str(folder / "m.zip"), str(tmp_path / "next.csv"), "--out", str(tmp_path / "p.csv"), "--json"]
    assert main([*predict, "--totals", str(tmp_path / "totals.csv"), "--groups", "area"]) == 0
    counts = totals_of(columns, truth, np.ones(N, dtype=bool))
    totals = {a: {k: counts[k][g] for k in ("yes", "no")} for g, a in enumerate(AREAS)}
    X = TableModel.read(str(folder / "m.zip")).features_of(read_table(tmp_path / "next.csv"))
    written = read_table(tmp_path / "p.csv")
    assert written["prediction"].tolist() == again[0].transduce(X, totals, columns["area"]).tolist()
    assert "leaf" in written.columns
    assert main(predict) == 0
    written = read_table(tmp_path / "p.csv")
    assert written["prediction"].tolist() == again[0].predict(X).tolist()
    shares = np.column_stack([written["share_no"], written["share_yes"]])
    np.testing.assert_allclose(shares, again[0].predict_proba(X), rtol=0, atol=1e-12)


def test_next_year_tells_totals_and_groups_that_are_new(job, tmp_path, capsys):
    folder, _ = job
    columns, truth = made(7)
    area = np.where(np.arange(N) % 5 == 0, "west", columns["area"])
    write_table(tmp_path / "next.csv", {**columns, "area": area})
    n_west = int(np.sum((area == "west") & (truth == "yes")))
    (tmp_path / "t.csv").write_text(f"area,class,low,high\nwest,yes,{n_west},{n_west}\nnorth,yes,10,20\n")
    predict = ["predict", str(folder / "m.zip"), str(tmp_path / "next.csv"), "--out", str(tmp_path / "p.csv")]
    predict += ["--totals", str(tmp_path / "t.csv"), "--groups", "area"]
    assert main(predict) == 0
    said = capsys.readouterr()
    lines = [line.split() for line in said.out.splitlines()]
    assert ["totals", "of", "these", "rows:"] in lines and ["group", "class", "asked", "reached", "difference"] in lines
    assert ["west", "yes", str(n_west), str(n_west), "0"] in lines and "all 4 totals are met to the row" in said.out
    assert said.err.count("group 'west' had no rows without a label in the fit") == 1
    assert said.err.count("group 'south' with") == 1
    assert main([*predict, "--json"]) == 0
    reached = {(row["group"], row["class"]): row["reached"] for row in json.loads(capsys.readouterr().out)["totals"]}
    assert reached["west", "yes"] == n_west and 10 <= reached["north", "yes"] <= 20


def test_a_group_without_totals_is_told_once_in_a_fit(tmp_path, capsys, short_searches):
    register(tmp_path)
    lines = (tmp_path / "totals.csv").read_text().splitlines()
    (tmp_path / "totals.csv").write_text("\n".join(lines[:2]) + "\n")
    assert main(command(tmp_path, "--estimator", "logistic", "--time-limit", "6")) == 0
    assert capsys.readouterr().err.count("has no totals and is free") == 1


def test_logistic_regression_takes_weights(tmp_path, capsys):
    columns, _, asked = register(tmp_path)
    table = read_table(tmp_path / "register.csv")
    weight = np.where(asked, np.random.default_rng(3).random(N), np.nan)
    write_table(tmp_path / "register.csv", {name: table.series(name) for name in table.columns} | {"w": weight})
    more = ["--model", "totals", "--estimator", "logistic", "--weight", "w", "--predictions", str(tmp_path / "p.csv")]
    assert main(command(tmp_path, *more, "--quiet")) == 0
    X = TableModel.read(str(tmp_path / "m.zip")).features_of(read_table(tmp_path / "register.csv"))
    scaled = StandardScaler().fit(X[asked])
    by_hand = LogisticRegression(max_iter=1000).fit(scaled.transform(X[asked]), table["z"][asked], weight[asked])
    model = load_model(tmp_path / "m.zip")
    np.testing.assert_allclose(model.estimator_[-1].coef_, by_hand.coef_, rtol=1e-3)


def test_show_and_load(job, again, capsys):
    folder, document = job
    assert main(["show", str(folder / "m.zip")]) == 0
    text = capsys.readouterr().out
    assert "tree that explains the labels:" in text and "totals of the rows without a label:" in text
    assert main(["show", str(folder / "m.zip"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["totals"] == document["totals"]
    model = load_model(folder / "m.zip")
    assert isinstance(model, TotalsClassifier) and not hasattr(model, "transduction_")


# ---------------------------------------------------------------------- files that are not what they say


def packed(path, document, labeller, **more):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {"model.json": document, "labeller.skops": labeller, **more}.items():
            archive.writestr(name, content)


def renamed(labeller, old, new):
    """The skops file with another type in the place of one."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(labeller)) as archive, zipfile.ZipFile(out, "w") as other:
        for name in archive.namelist():
            content = archive.read(name)
            if name == "schema.json":
                text = content.decode()
                assert f'"__class__": "{old[1]}"' in text
                parts = re.split(r"(?<=[{,])(?=\s*\"__class__\")", text)
                text = "".join(
                    part.replace(f'"{old[1]}"', f'"{new[1]}"').replace(f'"{old[0]}"', f'"{new[0]}"')
                    if f'"__class__": "{old[1]}"' in part
                    else part
                    for part in parts
                )
                content = text.encode()
            other.writestr(name, content)
    return out.getvalue()


class Strange(LogisticRegression):
    """Of a type that no list has."""


def test_a_file_with_anything_unexpected_is_refused(job, tmp_path, capsys):
    folder, _ = job
    with zipfile.ZipFile(folder / "m.zip") as archive:
        document, labeller = archive.read("model.json"), archive.read("labeller.skops")
    scores = ("treewright.totals.scores", "ClassScores")
    X, y = [[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"]
    strange = sio.dumps(TotalsClassifier(Strange()).fit(X, y))
    plain = json.loads(document)
    cases = {
        "nothing else": (document, labeller, {"more.txt": "x"}),
        "holds subprocess.Popen": (document, renamed(labeller, scores, ("subprocess", "Popen")), {}),
        "Strange, which no model": (document, strange, {}),
        "expected a TotalsClassifier": (document, sio.dumps(LogisticRegression().fit(X, y)), {}),
        "labeller.skops is damaged": (document, labeller[: len(labeller) // 2], {}),
        "its format is not": (b"{}", labeller, {}),
        "has version 2, this treewright": (json.dumps(plain | {"version": 2}), labeller, {}),
        "not about the same": (json.dumps(plain | {"tree": other_tree(plain["tree"])}), labeller, {}),
    }
    path = tmp_path / "m.zip"
    for says, (text, content, more) in cases.items():
        packed(path, text, content, **more)
        for rest in (["show", str(path)], ["predict", str(path), "none.csv", "--out", str(tmp_path / "p.csv")]):
            assert main(rest) == 4
            assert says in capsys.readouterr().err
    path.write_bytes((folder / "m.zip").read_bytes()[:-300])
    assert main(["show", str(path)]) == 4
    assert "is damaged" in capsys.readouterr().err


def other_tree(tree):
    return tree | {"classes": tree["classes"] | {"values": ["na", "yes"]}, "fit": tree["fit"] | {"totals": []}}
