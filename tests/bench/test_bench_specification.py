"""Rows that follow from a specification, and their keys."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_bench import Constant, specification, two_blobs

import harness
from harness import SOLVER, THREADS, TIME_LIMIT, DataSet, Method, Sample, Selection, Where, plan
from harness.specification import parameters_hash
from treewright.exceptions import InvalidInputError


def methods_of(tasks):
    return [task.method.name for task in tasks]


def test_a_key_is_identity_and_hash_of_all_parameters():
    method = Method("A", Constant, {"label": 1, "seconds": 0.5}, "one")
    (task,) = plan(specification(method, data=(DataSet("blobs", two_blobs, {"n": 30}),)))
    # The same by hand; a change of this changes the keys of every store.
    text = '{"data":{"n":30},"method":{"label":1,"seconds":0.5},"sample":{"share":0.5}}'
    assert task.key == "tiny|blobs|simple|0|A|one|" + hashlib.sha256(text.encode()).hexdigest()[:12]


def test_equal_values_have_equal_hashes_and_others_have_not():
    same = parameters_hash({"a": 1, "b": (1, 2.5), "c": None})
    assert same == parameters_hash({"c": None, "b": [1.0, 2.5], "a": 1.0})
    others = [{"a": 2}, {"a": True}, {"a": "1"}, {"a": None}, {"b": 1}, {"a": [1]}, {}]
    assert len({parameters_hash(other) for other in [{"a": 1}, *others]}) == 1 + len(others)


def test_parameters_that_cannot_be_written_are_refused():
    with pytest.raises(InvalidInputError, match=r"parameters\.method\.label is <object"):
        plan(specification(Method("A", Constant, {"label": object()})))


def test_the_time_limit_and_threads_of_the_specification_reach_methods_that_ask():
    own = specification(
        Method("A", Constant, {"seconds": TIME_LIMIT, "label": THREADS}),
        Method("B", Constant, {"seconds": 7.0}),
        time_limit=3.0,
        threads=2,
    )
    first, second = plan(own)
    assert (dict(first.method.parameters), dict(second.method.parameters)) == (
        {"seconds": 3.0, "label": 2},
        {"seconds": 7.0},
    )


def test_the_solver_of_the_specification_reaches_methods_that_ask():
    own = specification(Method("A", Constant, {"label": SOLVER}), Method("B", Constant, {"label": "gurobi"}))
    for name in ("highs", "scip"):
        assert [task.method.parameters["label"] for task in plan(replace(own, solver=name))] == [name, "gurobi"]


def test_where_says_what_a_method_is_run_on():
    names = [f"d{k}" for k in range(7)]
    own = specification(
        Method("all", Constant),
        Method("sets", Constant, where=Where(sets=("d1", "d5"))),
        Method("samples", Constant, where=Where(samples=("second",), draws=1)),
        Method("spread", Constant, where=Where(spread=3)),
        data=tuple(DataSet(name, two_blobs) for name in names),
        samples=(Sample("first", harness.partly_labelled, draws=2), Sample("second", harness.partly_labelled, draws=3)),
    )
    tasks = plan(own)
    counts = {name: methods_of(tasks).count(name) for name in ("all", "sets", "samples", "spread")}
    assert counts == {"all": 35, "sets": 10, "samples": 7, "spread": 15}
    # 0, 3 and 6 of seven are evenly spread
    assert {task.data.name for task in tasks if task.method.name == "spread"} == {"d0", "d3", "d6"}
    part = plan(own, selection=Selection(sets=("d3", "d4"), samples=("first",), draws=1))
    assert [(task.data.name, task.method.name) for task in part] == [("d3", "all"), ("d3", "spread"), ("d4", "all")]
    assert {task.key for task in part} <= {task.key for task in tasks}


def test_only_and_skip_and_more_draws():
    own = specification(Method("A", Constant), Method("B", Constant), Method("C", Constant))
    assert methods_of(plan(own, selection=Selection(only=("A", "C"), skip=("C",)))) == ["A"]
    assert [task.draw for task in plan(own, selection=Selection(only=("A",), draws=3))] == [0, 1, 2]


@pytest.mark.parametrize(
    ("selection", "text"),
    [
        (Selection(only=("CHART",)), "no method 'CHART': 'CART'"),
        (Selection(skip=("CHART",)), "no method 'CHART': 'CART'"),
        (Selection(sets=("blob",)), "no data set 'blob': 'blobs'"),
        (Selection(samples=("biased",)), "no sample 'biased': 'simple'"),
    ],
)
def test_unknown_names_are_told_with_the_known_ones(selection, text):
    with pytest.raises(InvalidInputError, match=text):
        plan(specification(), selection=selection)


def test_what_stands_twice_is_refused():
    with pytest.raises(InvalidInputError, match="method 'A' '' twice"):
        specification(Method("A", Constant), Method("A", Constant, {"label": 1}))
    with pytest.raises(InvalidInputError, match="sample 'a' twice"):
        specification(samples=(Sample("a", harness.partly_labelled), Sample("a", harness.partly_labelled)))
    with pytest.raises(InvalidInputError, match="data set 'a' twice"):
        plan(specification(data=(DataSet("a", two_blobs), DataSet("a", two_blobs, {"n": 20}))))


def test_a_missing_file_is_told_before_any_work():
    gone = DataSet("gone", two_blobs, paths=(Path("nowhere.tsv"),))
    with pytest.raises(InvalidInputError, match=r"nowhere\.tsv is missing"):
        plan(specification(data=(gone,)))
    # but only where it is needed
    assert plan(specification(data=(gone, DataSet("blobs", two_blobs))), selection=Selection(sets=("blobs",)))


def test_a_quick_specification_has_a_name_of_its_own():
    own = specification().with_quick(time_limit=1.0)
    assert (own.quick.name, own.quick.time_limit, own.quick.quick) == ("tiny-quick", 1.0, None)
    assert json.dumps(plan(own.quick)[0].key) != json.dumps(plan(own)[0].key)
