"""Frames of nodes, and what is refused."""

import json
import sys

import numpy as np
import polars as pl
import pytest
from exported import CASES, LABELS, NUMBERS, alone, fitted, random_rows, said
from sklearn.exceptions import NotFittedError

from treewright import OCTClassifier, TAOClassifier, load_model
from treewright.exceptions import InvalidInputError, PackageNotInstalledError

METHODS = ["to_python", "to_frame", "to_sklearn", "to_onnx", "to_sql"]
X = [[30.0], [41.0], [50.0], [62.0]]


def stump(y=("no", "no", "yes", "yes")):
    return OCTClassifier(max_depth=1).fit(X, list(y))


@pytest.mark.parametrize("case", CASES)
def test_a_frame_has_the_nodes(case):
    model = fitted(case)
    frame = model.to_frame()
    trees = model.trees_ if not alone(case) else [model.tree_]
    assert frame.height == sum(tree.n_nodes for tree in trees)
    assert ("tree" in frame.columns) == (not alone(case))
    for k, tree in enumerate(trees):
        part = frame if alone(case) else frame.filter(pl.col("tree") == k)
        parents = part.filter(pl.col("parent").is_not_null())
        for node, parent, side in parents.select("node", "parent", "side").iter_rows():
            assert (tree.left if side == "left" else tree.right)[parent] == node
        split = part.filter(pl.col("rule").is_not_null())
        assert sorted(split["node"].to_list()) == tree.branches.tolist()
        assert all(split["features"].list.len() > 0)
    pandas = model.to_frame(as_frame="pandas")
    assert list(pandas.columns) == frame.columns and len(pandas) == frame.height


@pytest.mark.parametrize("case", [case for case in CASES if "linear" not in case])
def test_rows_of_leaves_say_what_the_model_says(case):
    if not alone(case):
        return
    by_node = {row["node"]: row for row in fitted(case).to_frame().iter_rows(named=True)}
    found = [by_node[leaf] for leaf in said(case)["leaf"].tolist()]
    if "proba" in said(case):
        assert [row["label"] for row in found] == said(case)["predict"].tolist()
        columns = [f"probability {label}" for label in sorted(LABELS)][: said(case)["proba"].shape[1]]
        named = [name for name in by_node[0] if name.startswith("probability ")]
        assert set(named) <= {f"probability {label}" for label in LABELS} and len(named) == len(columns)
        assert (np.array([[row[name] for name in named] for row in found]) == said(case)["proba"]).all()
    else:
        named = [name for name in by_node[0] if name.startswith("value")]
        values = np.array([[row[name] for name in named] for row in found])
        assert (values == said(case)["predict"].reshape(values.shape)).all()


def test_rows_are_those_of_training():
    frame = fitted("TAOClassifier").to_frame()
    leaves = frame.filter(pl.col("rule").is_null())
    assert leaves["rows"].sum() == 300 and frame["rows"][0] == 300


@pytest.mark.parametrize("name", METHODS)
def test_models_that_are_not_fitted_say_so(name):
    arguments = ["rows"] if name == "to_sql" else []
    with pytest.raises(NotFittedError):
        getattr(TAOClassifier(), name)(*arguments)


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda m: m.to_sql("t", "oracle"), "dialect is 'oracle'"),
        (lambda m: m.to_sql(""), "table is ''"),
        (lambda m: m.to_sql(("s", 1)), "table is"),
        (lambda m: m.to_sql("t", keep="id"), "keep is 'id'"),
        (lambda m: m.to_sql("t", keep=["Label"]), "named as the answers"),
        (lambda m: m.to_sql("t\0"), "code 0"),
        (lambda m: m.to_sql("t", feature_names=["a", "b"]), "feature_names has 2 names"),
        (lambda m: m.to_python(feature_names="age"), "sequence of strings"),
        (lambda m: m.to_frame(as_frame="spark"), "as_frame is 'spark'"),
    ],
)
def test_bad_input_is_refused(call, why):
    with pytest.raises(InvalidInputError, match=why):
        call(stump())


def test_names_that_onnx_cannot_have_are_refused():
    table = pl.DataFrame({"label": ["a", "b", "a", "b"], "x": [1.0, 2.0, 3.0, 4.0]})
    model = OCTClassifier(max_depth=1).fit(table, ["n", "y", "n", "y"])
    with pytest.raises(InvalidInputError, match="'label'"):
        model.to_onnx()
    with pytest.raises(InvalidInputError, match="missing_text is 'a'"):
        model.to_onnx(missing_text="a", feature_names=["colour", "x"])
    assert [i.name for i in model.to_onnx(feature_names=["colour", "x"]).graph.input] == ["colour", "x"]


def test_missing_packages_are_named(monkeypatch):
    model = stump()
    monkeypatch.setitem(sys.modules, "onnx", None)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(PackageNotInstalledError, match=r"treewright\[onnx\]"):
        model.to_onnx()
    with pytest.raises(PackageNotInstalledError, match="pip install pandas"):
        model.to_frame(as_frame="pandas")


def test_gaps_are_refused_or_without_an_answer_where_the_model_takes_none():
    import duckdb

    model = fitted("OCTHClassifier")
    space = {}
    exec(model.to_python(), space)
    row = dict(random_rows("OCTHClassifier").row(0, named=True))
    used = NUMBERS[int(np.flatnonzero(model.tree_.weights[0])[0])]
    with pytest.raises(ValueError, match="missing"):
        space["predict"](row | {used: None})
    base = duckdb.connect()
    names = ", ".join('"' + name.replace('"', '""') + '" DOUBLE' for name in NUMBERS)
    base.execute(f"CREATE TABLE t ({names})")
    base.execute("INSERT INTO t VALUES (?, ?, ?, ?)", [None if name == used else 1.0 for name in NUMBERS])
    assert set(base.execute(model.to_sql("t")).fetchone()) == {None}


@pytest.mark.parametrize("labels", [[False, True], [3, 7], [1.0, 2.0], ["0", "1"]])
def test_labels_keep_their_types(labels):
    import onnxruntime

    model = stump([labels[0]] * 2 + [labels[1]] * 2)
    space = {}
    exec(model.to_python(), space)
    found = space["predict"]([70.0])
    assert found[0] == labels[1] and type(found[0]) is type(labels[1])
    assert list(found[1]) == labels
    graph = model.to_onnx().SerializeToString()
    said_by_onnx = onnxruntime.InferenceSession(graph).run(["label"], {"X": np.array([[70.0]])})[0]
    assert said_by_onnx.tolist() == [labels[1]]


def test_postgres_reads_numbers_texts_and_names_as_they_are():
    table = pl.DataFrame({'a "b"': ["x\\'y", "z", "x\\'y", "z"], "n": [0.1, 0.2, 0.7, 0.8]})
    model = OCTClassifier(max_depth=1).fit(table, ["it's", "no\\", "it's", "no\\"])
    query = model.to_sql(("public", "my rows"), "postgres", keep=["n"])
    assert '"public"."my rows"' in query and 'CAST("a ""b""" AS text)' in query
    assert "E'x\\\\''y'" in query or "'z'" in query
    assert "THEN 'it''s'" in query and "THEN E'no\\\\'" in query
    assert "CAST('0." in query  # probabilities, which would be decimals as 0.1


def test_files_keep_what_exports_need(tmp_path):
    for case in ("TAOClassifier", "LapTAOClassifier", "OCTSVMClassifier", "S2OCTClassifier, committee"):
        fitted(case).save(tmp_path / "model.json")
        model = load_model(tmp_path / "model.json")
        assert model.to_sql("t") == fitted(case).to_sql("t")
        assert model.to_frame().equals(fitted(case).to_frame())
    document = json.loads((tmp_path / "model.json").read_text())
    assert document["fit"]
