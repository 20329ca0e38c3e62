"""The whole job on the command line: labels within totals, how accurate they are likely to be, a tree to read."""

import contextlib
import io
import json
import re
import signal
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import skops.io as sio
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from treewright import C2RFClassifier, S2OCTClassifier, TotalsClassifier, estimated_accuracy, load_model
from treewright.budget import Budget
from treewright.cli import labelling, main, reading
from treewright.cli.files import TableModel
from treewright.cli.parser import make_parser
from treewright.cli.reading import ESTIMATORS
from treewright.data.table import read_table, write_table
from treewright.estimators import accuracy
from treewright.estimators.labeller_files import read_labeller, write_labeller
from treewright.exceptions import ModelFileError

N, AREAS = 160, np.array(["north", "south"], dtype=object)


def made(seed):
    """Columns of a register, and the truth; two features and the area say something of it."""
    rng = np.random.default_rng(seed)
    area = rng.integers(0, 2, N)
    x, kind = rng.normal(size=(N, 2)), rng.choice(["a", "b", "c"], N).astype(object)
    truth = np.where(x @ [2.0, 1.0] + (kind == "a") + rng.logistic(size=N) > 0.5 + area, "yes", "no").astype(object)
    return {"x": x[:, 0], "v": x[:, 1], "kind": kind, "area": AREAS[area]}, truth


def totals_of(columns, truth, rows):
    found = {"area": AREAS}
    for label in ("yes", "no"):
        found[label] = [int(np.sum((truth == label) & rows & (columns["area"] == area))) for area in AREAS]
    return found


def register(folder):
    columns, truth = made(0)
    rng = np.random.default_rng(1)
    asked = rng.random(N) < np.where(truth == "yes", 0.4, 0.2)
    write_table(folder / "register.csv", {**columns, "z": np.where(asked, truth, None)})
    write_table(folder / "totals.csv", totals_of(columns, truth, ~asked))
    return columns, truth, asked


def command(folder, *more):
    fit = ["fit", str(folder / "register.csv"), "--target", "z", "--totals", str(folder / "totals.csv")]
    return [*fit, "--groups", "area", "--random-state", "0", "--out", str(folder / "m.zip"), *more]


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
    model = TotalsClassifier(ESTIMATORS["logistic"](), random_state=0)
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
    scores = ("treewright.search.totals.scores", "ClassScores")
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
        "has version 2": (json.dumps(plain | {"version": 2}), labeller, {}),
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


@pytest.mark.usefixtures("short_searches")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_files_of_all_estimators(name, tmp_path):
    """All types of such fits are on the list, and nothing is lost."""
    wrapped = ESTIMATORS[name]()
    if name in FEWER:
        wrapped.set_params(**FEWER[name])
    check_file(wrapped, {"a": 8, "b": 12}, tmp_path / "m.zip")


def test_the_file_of_a_class_without_labels(tmp_path):
    check_file(LogisticRegression(), {"a": 8, "d": 5}, tmp_path / "m.zip")


FEWER = {"forest": {"n_estimators": 5}, "extra-trees": {"n_estimators": 5}, "boosting": {"max_iter": 3}}


def check_file(wrapped, totals, path):
    rng = np.random.default_rng(0)
    X = rng.random((60, 2))
    y = np.where(np.arange(60) < 30, np.array(["a", "b", "c"])[(X[:, 0] * 3).astype(int)], None)
    model = TotalsClassifier(wrapped, random_state=0).fit(X, y, totals=totals, allow_new_classes=True)
    write_labeller(path, model, {})
    back, document = read_labeller(path)
    assert document["format"] == "treewright-labeller"
    new = rng.random((50, 2))
    assert np.array_equal(back.predict(new), model.predict(new))
    assert np.array_equal(back.predict_proba(new), model.predict_proba(new))
    assert np.array_equal(back.transduce(new, {"a": 30}), model.transduce(new, {"a": 30}))


def test_a_file_has_no_training_rows(tmp_path):
    """Ten times the rows without a label do not make ten times the file, where no kernel machine keeps them."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(3000) < 30, np.arange(3000) % 2, -1)
    model = TotalsClassifier(LogisticRegression()).fit(rng.random((3000, 2)), y, totals={1: 1000})
    write_labeller(tmp_path / "m.zip", model, {})
    assert (tmp_path / "m.zip").stat().st_size < 30_000


def test_there_is_no_such_labeller(tmp_path):
    (tmp_path / "m.zip").write_bytes(b"PK\x03\x04")
    with pytest.raises(ModelFileError, match="is damaged"):
        load_model(tmp_path / "m.zip")


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
    assert "a tree that agrees with" in out and "model written to model.zip" in out and "totals" not in out
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


@pytest.mark.parametrize(
    ("more", "says"),
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
    (said,) = labelling._parts_words(estimate)
    assert said[1].startswith("all 50 labels left out in turn, in 10 parts; ") and "time" not in said[1]
    (said,) = labelling._parts_words(estimate._replace(n_fits=3, n_known=170, short=True))
    assert said[1].startswith("50 of 170 labels left out, in 3 of 10 parts; ") and "with more time all are" in said[1]
    (said,) = labelling._parts_words(estimate._replace(n_fits=2, n_splits=5, n_known=125))
    assert said[1].startswith("50 of 125 labels left out, in 2 of 5 parts; ") and "time" not in said[1]
    assert labelling._parts_words(None) == []


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
    monkeypatch.setattr(reading, "_WHOLE_ROWS", 10)  # registers that come in parts are not looked through
    assert main(fit) == 0 and "more than one row" not in capsys.readouterr().err
