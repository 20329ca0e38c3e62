"""Leaves say how many training rows are in them, whatever their values are."""

import json
import re

import numpy as np
import pytest
from sklearn.base import clone

from treewright import LapTAOClassifier, LapTAORegressor, SVM1ODTClassifier, TAOClassifier, TAORegressor, load_model
from treewright.app.table_model import TableModel
from treewright.cli import main
from treewright.exceptions import ModelFileError
from treewright.models.registry import SHORT_NAMES
from treewright.report import fit_report

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 2))
Y = np.sign(X[:, 0]) + 0.1 * RNG.normal(size=80)
FEW = np.where(np.arange(80) % 4 == 0, (X[:, 0] > 0).astype(int), -1)
MODELS = {
    "tao": (TAORegressor(2, random_state=0), Y),
    "linear": (TAORegressor(1, leaves="linear", random_state=0), np.abs(X[:, 0])),
    "outputs": (TAORegressor(2, random_state=0), np.column_stack([Y, -Y])),
    "linear outputs": (TAORegressor(1, leaves="linear", random_state=0), np.column_stack([np.abs(X[:, 0]), Y])),
    "laptao": (LapTAORegressor(max_depth=2, random_state=0), np.where(FEW < 0, np.nan, Y)),
    "lapcart": (LapTAORegressor(max_depth=2, estimator="cart", random_state=0), np.where(FEW < 0, np.nan, Y)),
    "smoothed labels": (LapTAOClassifier(max_depth=2, random_state=0), FEW),
    "labels of a teacher": (TAOClassifier(2, teacher="auto", random_state=0), FEW),
}
every_model = pytest.mark.parametrize(("model", "y"), MODELS.values(), ids=MODELS.keys())


def told(text):
    """Rows of the leaves, from left to right."""
    assert "weight" not in text
    return [int(rows) for rows in re.findall(r"[(;] ?(\d+) rows?\b", text)]


def counted(model, rows):
    """The same by routing."""
    leaves = model.apply(rows)
    order = [leaf for leaf in _left_to_right(model.tree_) if model.tree_.left[leaf] < 0]
    return [int(np.sum(leaves == leaf)) for leaf in order]


def _left_to_right(tree, node=0):
    yield node
    if tree.left[node] >= 0:
        yield from _left_to_right(tree, int(tree.left[node]))
        yield from _left_to_right(tree, int(tree.right[node]))


@every_model
def test_leaves_say_how_many_rows_they_have(model, y, tmp_path):
    found = clone(model).fit(X, y)
    assert found.tree_.n_leaves > 1
    assert told(found.export_text()) == counted(found, X)
    found.save(tmp_path / "model.json")
    assert load_model(tmp_path / "model.json").export_text() == found.export_text()
    if hasattr(found, "classes_"):
        assert told(TableModel.read(str(tmp_path / "model.json")).rules) == counted(found, X)


def test_pictures_of_smoothed_labels_say_rows():
    found = LapTAOClassifier(max_depth=2, random_state=0).fit(X, FEW)
    given = np.where(FEW < 0, None, FEW.astype(object))
    page = fit_report(found, given, found.predict(X), form="html")
    assert not re.search(r"labels: \d", page)
    for rows in counted(found, X):
        assert f"{rows} row" in page[page.index("<svg") :]


@pytest.mark.parametrize("name", ["tao", "laptao", "smoothed labels"])
def test_rows_of_weight_zero_do_not_count_and_others_once(name):
    model, y = MODELS[name]
    times = np.random.default_rng(1).integers(0, 3, len(X))
    for weight in (times, times / 4):
        found = clone(model).fit(X, y, sample_weight=weight)
        assert told(found.export_text()) == counted(found, X[times > 0])


def test_a_fit_without_a_tree_has_none_of_an_earlier_one():
    model = LapTAORegressor(max_depth=2, random_state=0).fit(X, Y)
    model.set_params(estimator="graph").fit(X, Y)
    assert not hasattr(model, "_leaf_rows")


def test_files_without_rows_of_leaves_are_read_and_damaged_ones_refused(tmp_path):
    path = tmp_path / "model.json"
    TAORegressor(1, random_state=0).fit(X, Y).save(path)
    document = json.loads(path.read_text())
    for wrong in ([1.0], [1.0, "2", 3.0], [1.0, -2.0, 3.0], 3):
        path.write_text(json.dumps(document | {"fit": document["fit"] | {"leaf_rows": wrong}}))
        with pytest.raises(ModelFileError):
            load_model(path)
    del document["fit"]["leaf_rows"]
    path.write_text(json.dumps(document))
    assert "rows" not in load_model(path).export_text()


FULL = np.where(X[:, 0] > 0, "hi", "lo")


def amounts(text):
    """Rows that leaves are said to have, and weights."""
    return [
        [float(n) for n in re.findall(words, text)] for words in (r"[(;] ?([\d.]+) rows?\b", r"[(;] ?weight ([\d.]+)")
    ]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("shortest_searches")
@pytest.mark.parametrize("name", sorted(SHORT_NAMES))
def test_sums_of_weights_are_never_called_rows(name, tmp_path):
    depth = {} if name == "resvm" else {"max_depth": 1}
    model = SHORT_NAMES[name](**depth, time_limit=0.3, random_state=0)
    some, labels = X[:24], FULL[:24]
    times = np.random.default_rng(1).integers(1, 4, len(some))
    for weight in (np.ones(len(some)), times):
        found = clone(model).fit(some, labels, sample_weight=weight)
        rows, weights = amounts(found.export_text())
        if weight is times and name != "laptao":  # whose values are no counts: it knows its rows by routing
            assert not rows and sum(weights) == times.sum()
            page = fit_report(found, labels, found.predict(some), form="html")
            assert re.search(r">weight: \d", page) and not re.search(r">labels: \d", page)
        else:
            assert not weights and sum(rows) == len(some)
        found.save(tmp_path / "model.json")
        assert load_model(tmp_path / "model.json").export_text() == found.export_text()
        assert amounts(TableModel.read(str(tmp_path / "model.json")).rules)[1] == weights


@pytest.mark.parametrize("factors", [{"hi": 3, "lo": 1}, {"hi": 0, "lo": 1}])
@pytest.mark.parametrize(
    "model", [TAOClassifier(1, random_state=0), SVM1ODTClassifier(1, alpha_2=1.0, time_limit=0.3, random_state=0)]
)
@pytest.mark.filterwarnings("ignore")
def test_weights_of_classes_are_never_called_rows(model, factors):
    found = clone(model).set_params(class_weight=factors).fit(X, FULL)
    rows, weights = amounts(found.export_text())
    assert not rows and sum(weights) == sum(factors[label] for label in FULL)
    assert amounts(found.set_params(class_weight=None).fit(X, FULL).export_text())[1] == []


def test_files_that_do_not_say_whether_rows_have_weights_are_read_and_damaged_ones_refused(tmp_path):
    path = tmp_path / "model.json"
    TAOClassifier(1, random_state=0).fit(X, FULL, sample_weight=np.full(len(X), 2)).save(path)
    document = json.loads(path.read_text())
    for wrong in ("yes", 1, None):
        path.write_text(json.dumps(document | {"fit": document["fit"] | {"weighted": wrong}}))
        with pytest.raises(ModelFileError, match="weighted"):
            load_model(path)
    del document["fit"]["weighted"]
    path.write_text(json.dumps(document))
    assert load_model(path).tree_.n_leaves == 2


SEMI = {
    "taught": (TAOClassifier(1, teacher="auto", random_state=0), "a teacher (auto)"),
    "taught smooth": (LapTAOClassifier(max_depth=1, teacher="auto", random_state=0), "a teacher (auto)"),
    "smooth": (LapTAOClassifier(max_depth=1, random_state=0), "the graph"),
}


@pytest.mark.usefixtures("shortest_searches")
@pytest.mark.parametrize(("model", "who"), SEMI.values(), ids=SEMI.keys())
def test_leaves_tell_their_labels_from_those_of_a_teacher(model, who, tmp_path, capsys):
    found = clone(model).fit(X, FEW)
    own = [int(n) for n in re.findall(r"; \d+ rows?, (\d+) labelled in training: ", found.export_text())]
    assert own == counted(found, X[FEW >= 0]) and len(own) == found.tree_.n_leaves > 1
    path = tmp_path / "model.json"
    found.save(path)
    assert load_model(path).export_text() == found.export_text()
    note = f"those without a label as {who} labels them"
    assert main(["show", str(path)]) == 0
    shown = capsys.readouterr().out
    assert note in shown and re.search(r"\d+ rows?, \d+ labelled in training: ", shown)
    y = np.where(FEW < 0, None, FEW.astype(object))
    for form in ("text", "html"):
        report = fit_report(found, y, found.predict(X), form=form)
        assert form == "text" or "; labels of the fit, given and found: " in report
        assert note in " ".join(report.split()) and re.search(r"\d+ rows?, \d+ labelled in training: ", report)
    document = json.loads(path.read_text())
    many = [n + 1 for n in document["fit"]["leaf_rows"]]
    for wrong in ([1.0], "3", many):
        path.write_text(json.dumps(document | {"fit": document["fit"] | {"leaf_labelled": wrong}}))
        with pytest.raises(ModelFileError, match="leaf_labelled"):
            load_model(path)
    everything = (X[:, 0] > 0).astype(int)
    assert "labelled" not in found.fit(X, everything).export_text()
