"""The command line with models that take categories and gaps as they are."""

import html
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from tests.examples import looped

import treewright
from treewright import load_model
from treewright.app.table_model import TableModel
from treewright.cli import main
from treewright.data.tables.files import Table, read_table
from treewright.data.tables.mixed_encoder import MixedEncoder
from treewright.data.tables.writing import write_table
from treewright.exceptions import InvalidInputError, ModelFileError


@pytest.fixture
def survey(tmp_path):
    """Text, numbers with gaps, true and false; labels follow region and age."""
    rng = np.random.default_rng(0)
    n = 120
    age = rng.integers(18, 80, n).astype(float)
    region = rng.choice(["north", "south", "east", "west"], n).astype(object)
    label = np.where(np.isin(region, ["north", "east"]) & (age < 60), "yes", "no").astype(object)
    age[rng.random(n) < 0.1] = np.nan
    region[rng.random(n) < 0.1] = None
    path = tmp_path / "survey.csv"
    member = np.where(rng.random(n) < 0.5, "TRUE", "False").astype(object)
    write_table(path, {"age": age, "region": region, "member": member, "employed": label})
    return path


def fit(survey, out, *more):
    return main(["fit", str(survey), "--target", "employed", "--out", str(out), "--random-state", "0", *more])


@pytest.mark.parametrize("kind", ["tao", "laptao"])
def test_text_is_a_category_and_an_empty_cell_a_gap(survey, tmp_path, capsys, kind):
    model, out, report = tmp_path / "m.json", tmp_path / "p.csv", tmp_path / "r.txt"
    more = ["--model", kind, "--max-depth", "2", "--report", str(report), "--predictions", str(out)]
    assert fit(survey, model, *more) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert "region is " in captured.out and "region is " in report.read_text()
    found = treewright.load_model(model)
    assert found.feature_names_in_.tolist() == ["age", "region", "member"]
    assert found.categories_ == [None, ("east", "north", "south", "west"), ("false", "true")]
    assert found.has_missing_.tolist() == [True, True, False]
    first = read_table(out)["prediction"].tolist()
    assert main(["predict", str(model), str(survey), "--out", str(tmp_path / "q.csv")]) == 0
    assert read_table(tmp_path / "q.csv")["prediction"].tolist() == first
    capsys.readouterr()
    assert main(["show", str(model)]) == 0
    assert "categories: region ('east', 'north', 'south', 'west'), member" in capsys.readouterr().out
    assert main(["show", str(model), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["categories"]["region"] == ["east", "north", "south", "west"]


def test_new_levels_and_gaps_at_prediction(survey, tmp_path, capsys):
    model, data, out = tmp_path / "m.json", tmp_path / "new.csv", tmp_path / "p.csv"
    assert fit(survey, model, "--model", "tao", "--quiet") == 0
    data.write_text("region,member,age\nmoon,true,30\n,FALSE,\nnorth,,30\n7,true,40\n")
    assert main(["predict", str(model), str(data), "--out", str(out)]) == 0
    assert len(read_table(out)["prediction"]) == 4
    data.write_text("region,member,age\nnorth,true,old\n")
    capsys.readouterr()
    assert main(["predict", str(model), str(data), "--out", str(out)]) == 2
    assert "'age' has the text 'old' in row 1" in capsys.readouterr().err
    data.write_text("region,member\nnorth,true\n")
    assert main(["predict", str(model), str(data), "--out", str(out)]) == 2
    assert "lacks 'age'" in capsys.readouterr().err


@pytest.fixture
def plain(tmp_path):
    """No gaps; labels follow income, and colour where income is low. The column "more" tells nothing."""
    rng = np.random.default_rng(1)
    income, colour = rng.permutation(np.arange(1000.0, 1120.0)), np.tile(["red", "green", "blue"], 40).astype(object)
    label = np.where(income > 1080, "a", np.where(colour == "red", "b", "c")).astype(object)
    path = tmp_path / "plain.csv"
    write_table(path, {"income": income, "colour": colour, "more": np.zeros(120), "y": label})
    return path


@pytest.mark.parametrize("kind", ["tao", "oct", "svm1odt"])
def test_what_the_fit_had_not_is_told(plain, tmp_path, capsys, kind):
    model, data, out, report = (str(tmp_path / name) for name in ("m.json", "new.csv", "p.csv", "r.txt"))
    more = ["--model", kind, "--max-depth", "2", "--random-state", "0", "--time-limit", "1", "--quiet"]
    assert main(["fit", str(plain), "--target", "y", "--out", model, *more]) == 0
    with open(data, "w") as file:
        file.write("income,colour,more\n,red,0\n1090,moon,0\n1010,moon,\n1010,mars,0\n")
    capsys.readouterr()
    assert main(["predict", model, data, "--out", out, "--report", report, "--json"]) == 0
    captured = capsys.readouterr()
    told = json.loads(captured.out)["warnings"]
    assert len(told) == 2  # nothing of "more", which no split has
    assert "column 'colour' has levels that the model has not seen: 'moon' (2 rows), 'mars' (1 row)" in told[0]
    assert "missing values in columns that had none at the fit: 'income' (1 of them)" in told[1]
    assert all(text in captured.err for text in told)
    with open(report) as file:
        text = " ".join(file.read().split())
    assert 'New values of "colour": "moon" (2 rows, 50.0%), "mars" (1 row, 25.0%).' in text
    assert 'Missing values in columns that had none at the fit: "income" (1 row).' in text
    assert main(["predict", model, str(plain), "--out", out]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("cut", "named"), [(1080.0, True), (1030.0, True), (1030.0, False)])
def test_rules_of_a_report_say_where_new_gaps_go(plain, tmp_path, cut, named):
    table = read_table(plain)
    X = np.column_stack([table["income"], table["more"]])
    frame = pl.DataFrame({"income": X[:, 0], "more": X[:, 1]})
    fitted = treewright.TAOClassifier(max_depth=1, random_state=0).fit(frame if named else X, X[:, 0] > cut)
    model, data, report = (str(tmp_path / name) for name in ("m.json", "new.csv", "r.txt"))
    fitted.save(model)
    with open(data, "w") as file:
        file.write("income,more\n,0\n1090,0\n")
    assert main(["predict", model, data, "--out", str(tmp_path / "p.csv"), "--report", report]) == 0
    with open(report) as file:
        (condition,) = [line.strip() for line in file if line.lstrip().startswith("if ")]
    low = cut > 1060  # more rows are up to the cut, and gaps go there
    assert condition.startswith("if income " if named else "if x0 ")
    assert condition.endswith(" or missing:") == (("<=" in condition) == low)


@pytest.mark.parametrize("kind", ["tao", "svm1odt"])
def test_a_level_named_missing_is_told_from_a_gap(tmp_path, capsys, kind):
    levels = np.tile(np.array(["missing", "red", "blue", None], dtype=object), 30)
    label = np.tile(["a", "c", "c", "b"], 30).astype(object)
    data, model, report = tmp_path / "miss.csv", tmp_path / "m.json", tmp_path / "r.txt"
    page = tmp_path / "r.html"
    write_table(data, {"colour": levels, "y": label})
    more = ["--model", kind, "--max-depth", "2", "--random-state", "0", "--report", str(report), "--report", str(page)]
    assert main(["fit", str(data), "--target", "y", "--out", str(model), "--time-limit", "5", *more]) == 0
    printed = capsys.readouterr().out
    assert main(["show", str(model)]) == 0
    for text in (printed, report.read_text(), capsys.readouterr().out, html.unescape(page.read_text())):
        # Gaps and the level are on the side of the root that has not red and blue; one of the two is named there.
        assert ("colour is 'missing'" in text) != ("colour is missing" in text)
    tree = load_model(model).tree_
    listed = [np.flatnonzero(tree.left_categories[node]).tolist() for node in tree.branches]
    assert ("colour is 'missing'" in printed) == ([1] in listed)  # levels by name: blue, missing, red


def test_numbers_that_are_codes_can_be_named(survey, tmp_path, capsys):
    model = tmp_path / "m.json"
    assert fit(survey, model, "--model", "tao", "--set", "categorical_features=['age']", "--quiet") == 0
    found = treewright.load_model(model)
    assert found.get_params()["categorical_features"] == [0, 1, 2]
    assert found.categories_[0][:1] == (18,)
    assert main(["predict", str(model), str(survey), "--out", str(tmp_path / "p.csv")]) == 0
    capsys.readouterr()
    assert fit(survey, model, "--model", "tao", "--set", "categorical_features=['size']") == 2
    assert "no feature 'size'" in capsys.readouterr().err


def test_a_warm_start_keeps_its_levels(survey, tmp_path):
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    more = ["--model", "tao", "--max-depth", "2", "--set", "stretch=0", "--quiet"]
    assert fit(survey, first, *more) == 0
    assert fit(survey, second, *more, "--warm-start", str(first)) == 0
    assert treewright.load_model(second).objective_ <= treewright.load_model(first).objective_ + 1e-9


def test_other_models_get_numbers_without_gaps(survey, tmp_path, capsys):
    model, out = tmp_path / "m.json", tmp_path / "p.csv"
    assert fit(survey, model, "--model", "oct-h", "--predictions", str(out), "--time-limit", "20") == 0
    table = read_table(survey)
    gaps = {name: int(table.missing(name).sum()) for name in ("age", "region")}
    said = capsys.readouterr().err
    assert f"'age' ({gaps['age']} of them" in said and f"'region' ({gaps['region']} of them" in said
    names = treewright.load_model(model).feature_names_in_.tolist()
    assert len(names) == 7 and {"age", "age is missing", "region is missing", "member=true"} < set(names)
    assert main(["predict", str(model), str(survey), "--out", str(tmp_path / "q.csv")]) == 0
    assert (tmp_path / "q.csv").read_bytes() == out.read_bytes()
    assert f"'age' ({gaps['age']} of them" in capsys.readouterr().err


def test_a_model_from_python_predicts_a_table(survey, tmp_path):
    table = read_table(survey)
    X = np.column_stack([table["age"].astype(object), table["region"]])
    found = treewright.TAOClassifier(2, categorical_features=[1], random_state=0).fit(X, table["employed"].astype(str))
    found.save(tmp_path / "m.json")
    data = Table({"age": table["age"], "region": table["region"]})
    model = TableModel.read(str(tmp_path / "m.json"))
    assert np.array_equal(model.estimator.predict(model.features_of(data)), found.predict(X))


FLAGGED = {
    "a category": treewright.TAOClassifier(2, categorical_features=["member"], random_state=0),
    "a number": treewright.OCTClassifier(2),
    "a number, other models": treewright.SSCTClassifier(max_depth=2),
}


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("of", FLAGGED)
def test_bools_of_a_frame_are_text_in_a_file(tmp_path, of, kind):
    rng = np.random.default_rng(0)
    age, member = rng.integers(18, 80, 60).astype(float), rng.random(60) < 0.5
    y = np.where(member ^ (age > 50), "yes", "no")
    found = sklearn.clone(FLAGGED[of]).fit(pd.DataFrame({"age": age, "member": member}), y)
    assert (found.predict(pd.DataFrame({"age": age, "member": member})) == y).all()
    found.save(tmp_path / "m.json")
    text = np.where(member, np.where(age < 40, "True", "TRUE"), np.where(age < 40, "False", "false"))
    data, out = tmp_path / f"new.{kind}", tmp_path / "p.csv"
    write_table(data, {"age": age, "member": text.astype(object)})
    if kind == "parquet":
        pl.DataFrame({"age": age, "member": member}).write_parquet(data)
    assert main(["predict", str(tmp_path / "m.json"), str(data), "--out", str(out)]) == 0
    assert read_table(out)["prediction"].tolist() == y.tolist()
    for frame in (pd.DataFrame, pl.DataFrame):
        new = frame({"age": age, "member": text.astype(object)})
        assert load_model(tmp_path / "m.json").predict(new).tolist() == y.tolist()
        assert new["member"].to_list() == text.tolist()  # what is given stays as it is
        with pytest.raises(ValueError, match="kinds of levels|text|convert"):
            found.predict(frame({"age": age, "member": np.where(member, "true", "perhaps").astype(object)}))


def test_levels_that_say_true_and_false_stay_text():
    X = pl.DataFrame({"member": ["true", "false", "unknown"] * 10})
    found = treewright.TAOClassifier(2, categorical_features="from_dtype", random_state=0).fit(X, [0, 1, 0] * 10)
    assert found.predict(pl.DataFrame({"member": ["false", "true"]})).tolist() == [1, 0]


def test_text_that_differs_in_every_row_is_warned_of(tmp_path, capsys):
    path = tmp_path / "a.csv"
    path.write_text("name,a,employed\n" + "".join(f"p{i},{i % 7},{'yn'[i % 2]}\n" for i in range(60)))
    assert fit(path, tmp_path / "m.json", "--model", "tao", "--max-depth", "1") == 0
    assert "'name' has another value in every row" in capsys.readouterr().err


@looped(
    "data", [None, {}, {"kinds": []}, {"kinds": [["a"]]}, {"kinds": [["a", "date"]]}, {"kinds": [["a", "text"]] * 2}]
)
def test_damaged_encoders_are_refused(data):
    with pytest.raises(ModelFileError):
        MixedEncoder.from_dict(data)


def test_an_encoder_needs_columns_and_finite_numbers():
    with pytest.raises(InvalidInputError, match="no column is left"):
        MixedEncoder.fit(Table({"a": np.zeros(2)}), [])
    encoder = MixedEncoder({"a": "number"})
    with pytest.raises(InvalidInputError, match="'a' has inf in row 2"):
        encoder.transform(Table({"a": np.array([np.nan, np.inf])}))
    empty = Table({"a": np.array([None, None], dtype=object)})
    assert np.isnan(encoder.transform(empty)[0]).all()
    assert MixedEncoder.from_dict(encoder.to_dict()) == encoder
