"""Numbers that drift between fit and predict are told: on the command line, in reports, in Python, of all models."""

import json
import warnings

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.estimators_list import QUICK, REGRESSORS, quick

from treewright import TotalsClassifier, load_model
from treewright.app.large_register import label_register
from treewright.cli import main
from treewright.exceptions import OtherNumbersWarning

INCOME = r"'income': .* are below .* about 1000 times smaller than at the fit: are the units others\?"


def people(n, seed, labelled=None):
    """People with an income, some with an answer."""
    rng = np.random.default_rng(seed)
    age, income = rng.integers(18, 80, n), rng.lognormal(9.0, 0.5, n).round(2)
    answer = np.where(np.log(income) + age / 50 > 9.9, "yes", "no")
    born = np.datetime64("2024-06-01") - age * 365
    frame = pl.DataFrame({"age": age, "income": income, "sex": rng.choice(["f", "m"], n), "born": born})
    known = np.arange(n) < (n if labelled is None else labelled)
    return frame.with_columns(job=pl.Series(np.where(known, answer, None).tolist()))


MODELS = {
    "job": [],
    "totals": ["--model", "totals", "--estimator", "forest"],
    "c2rf": ["--model", "c2rf"],
    "oct": ["--model", "oct", "--max-depth", "1"],
    "oct-h": ["--model", "oct-h", "--max-depth", "1", "--time-limit", "2"],
    "tao": ["--model", "tao", "--max-depth", "2"],
}


@pytest.mark.usefixtures("searches_alone")
@pytest.mark.parametrize("name", MODELS)
def test_next_year_in_thousands_is_told_and_next_year_is_not(name, tmp_path, capsys):
    supervised = name in ("oct", "oct-h", "tao")
    people(300, 0, None if supervised else 100).write_csv(tmp_path / "t.csv")
    job = ["--time-limit", "3"] if name == "job" else []
    out = str(tmp_path / ("m.json" if supervised else "m.zip"))
    fit = ["fit", str(tmp_path / "t.csv"), "--target", "job", "--out", out, "--random-state", "0", *job, *MODELS[name]]
    assert main([*fit, "--json"]) == 0
    assert "unlike those of the fit" not in capsys.readouterr().out
    new = people(400, 1).drop("job")
    new.write_csv(tmp_path / "same.csv")
    new.with_columns(pl.col("income") / 1000).write_csv(tmp_path / "thousands.csv")
    for table in ("same", "thousands"):
        report = tmp_path / f"{table}.txt"
        predict = ["predict", out, str(tmp_path / f"{table}.csv"), "--out", str(tmp_path / "p.csv"), "--json"]
        assert main([*predict, "--report", str(report)]) == 0
        said = [line for line in json.loads(capsys.readouterr().out)["warnings"] if "unlike those" in line]
        if table == "same":
            assert said == [] and "Other numbers" not in report.read_text()
        else:
            assert len(said) == 1
            assert "'income': 100.0% of the rows are below" in said[0] and "about 1000 times smaller" in said[0]
            assert "Other numbers than at the fit in 'income'" in " ".join(report.read_text().split())
    model = load_model(out)
    with pytest.warns(OtherNumbersWarning, match=INCOME):
        model.predict(new.with_columns(pl.col("income") / 1000))
    with warnings.catch_warnings():
        warnings.simplefilter("error", OtherNumbersWarning)
        model.predict(new)


def test_dates_are_told_as_dates(tmp_path, capsys):
    people(300, 0, 100).write_csv(tmp_path / "t.csv")
    out = str(tmp_path / "m.zip")
    fit = ["fit", str(tmp_path / "t.csv"), "--target", "job", "--model", "totals", "--estimator", "logistic"]
    assert main([*fit, "--out", out, "--random-state", "0"]) == 0
    later = people(400, 1).drop("job").with_columns(pl.col("born").dt.offset_by("80y"))
    later.write_csv(tmp_path / "later.csv")
    capsys.readouterr()
    assert main(["predict", out, str(tmp_path / "later.csv"), "--out", str(tmp_path / "p.csv")]) == 0
    assert "in column 'born': " in (said := " ".join(capsys.readouterr().err.split()))
    assert "of the rows are above 200" in said and "times" not in said.partition("'born'")[2]


@pytest.mark.usefixtures("searches_alone")
@pytest.mark.parametrize("name", QUICK)
def test_models_of_arrays_tell_it_too(name, tmp_path):
    rng = np.random.default_rng(0)
    X, new = rng.lognormal(3.0, 1.0, (120, 2)), rng.lognormal(3.0, 1.0, (100, 2))
    y = X[:, 0] if name in REGRESSORS else (X[:, 0] > 20).astype(int)
    model = quick(name).fit(X, y)
    models = [model]
    if hasattr(model, "save"):
        model.save(tmp_path / "m.json")
        models.append(load_model(tmp_path / "m.json"))
    for one in models:
        with warnings.catch_warnings():
            warnings.simplefilter("error", OtherNumbersWarning)
            one.predict(new)
        with pytest.warns(OtherNumbersWarning, match=r"column '1': .* about 1000 times larger"):
            one.predict(new * [1.0, 1000.0])


def test_wrapped_estimators_of_frames_tell_it_too():
    data = people(200, 0)
    frame, y = data.select("age", "income"), np.where(np.arange(200) < 60, data["job"].to_numpy(), None)
    new = people(300, 1).select("age", "income")
    wrapped = make_pipeline(StandardScaler(), LogisticRegression())
    model = TotalsClassifier(wrapped, random_state=0).fit(frame, y, totals={"yes": 70})
    with pytest.warns(OtherNumbersWarning, match=INCOME):
        model.predict(new.with_columns(pl.col("income") / 1000))


class Biased:
    """A register of 3000 rows, of which the first have labels, and are others than the rest."""

    n_rows = 3000

    def __init__(self):
        rng = np.random.default_rng(0)
        self.X = np.concatenate([rng.normal(9.0, 1.0, (1500, 2)), rng.normal(0.0, 1.0, (1500, 2))])

    def parts(self):
        return iter(np.array_split(self.X, 3))

    def taken(self, rows):
        return self.X[rows]


def test_a_register_in_parts_is_no_news_to_its_own_model():
    source = Biased()
    y = np.where(np.arange(3000) < 1500, (source.X[:, 0] > 9).astype(int), -1)
    model = TotalsClassifier(LogisticRegression(), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", OtherNumbersWarning)
        label_register(model, source, y, totals={1: 700}, max_unlabeled=200)
        model.predict(source.X)
    with pytest.warns(OtherNumbersWarning):
        model.predict(source.X + 30.0)
