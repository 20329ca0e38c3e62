from __future__ import annotations

import copy
import json
import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import looped
from tree_strategies import trees

from treewright.exceptions import ModelFileError
from treewright.tree import Tree, dumps, loads, tree_from_dict, tree_to_dict
from treewright.tree.serialize import MAX_NODES


def document():
    """A classification tree with an oblique, a categorical split and three leaves."""
    return {
        "format": "treewright-tree",
        "version": 1,
        "task": "classification",
        "n_features": 3,
        "n_outputs": 2,
        "n_categories": 4,
        "nodes": [
            {
                "left": 1,
                "right": 2,
                "features": [0, 2],
                "weights": [1.5, -2.0],
                "threshold": 0.1,
                "missing_left": True,
                "values": [2.0, 3.0],
                "label": 1,
            },
            {
                "left": 3,
                "right": 4,
                "category": 1,
                "left_categories": [0, 3],
                "missing_left": False,
                "values": [2.0, 1.0],
                "label": 0,
            },
            {"values": [0.0, 2.0], "label": 1},
            {"values": [2.0, 0.0], "label": 0},
            {"values": [0.0, 1.0], "label": 1},
        ],
    }


def test_the_format_is_what_it_was():
    """A file of version 1 must be readable for ever: do not change this test, add a version."""
    tree = tree_from_dict(document())
    expected = Tree(
        left=[1, 3, -1, -1, -1],
        right=[2, 4, -1, -1, -1],
        weights=[[1.5, 0.0, -2.0]] + [[0.0] * 3] * 4,
        threshold=[0.1, 0.0, 0.0, 0.0, 0.0],
        values=[[2.0, 3.0], [2.0, 1.0], [0.0, 2.0], [2.0, 0.0], [0.0, 1.0]],
        labels=[1, 0, 1, 0, 1],
        category=[-1, 1, -1, -1, -1],
        left_categories=[[False] * 4, [True, False, False, True]] + [[False] * 4] * 3,
        missing_left=[True, False, False, False, False],
    )
    assert tree == expected
    assert tree_to_dict(expected) == document()
    assert list(tree_to_dict(expected)) == list(document())


def linear_document():
    """A regression tree with linear leaves and two outputs."""
    return {
        "format": "treewright-tree",
        "version": 2,
        "task": "regression",
        "n_features": 3,
        "n_outputs": 2,
        "nodes": [
            {
                "left": 1,
                "right": 2,
                "features": [0],
                "weights": [1.0],
                "threshold": 0.5,
                "missing_left": False,
                "values": [2.0, 3.0],
                "slope_features": [],
                "slopes": [[], []],
            },
            {"values": [0.0, 2.0], "slope_features": [0, 2], "slopes": [[1.5, 0.0], [0.0, -2.0]]},
            {"values": [2.0, 0.0], "slope_features": [1], "slopes": [[0.25], [4.0]]},
        ],
    }


def test_the_format_of_linear_leaves_is_what_it_was():
    """A file of version 2 must be readable for ever: do not change this test, add a version."""
    slopes = np.zeros((3, 2, 3))
    slopes[1, 0, 0], slopes[1, 1, 2], slopes[2, :, 1] = 1.5, -2.0, [0.25, 4.0]
    expected = Tree(
        left=[1, -1, -1],
        right=[2, -1, -1],
        weights=[[1.0, 0.0, 0.0], [0.0] * 3, [0.0] * 3],
        threshold=[0.5, 0.0, 0.0],
        values=[[2.0, 3.0], [0.0, 2.0], [2.0, 0.0]],
        slopes=slopes,
    )
    assert tree_from_dict(linear_document()) == expected
    assert tree_to_dict(expected) == linear_document()


DELETE = object()
LINEAR_BAD = {
    "classification": (("task",), "classification", r"^task: expected 'regression'"),
    "version 1": (("version",), 1, r"^nodes\[0\]: unknown key 'slope_features'"),
    "no slopes": (("nodes", 1, "slopes"), DELETE, r"^nodes\[1\]: key 'slopes' is missing"),
    "no features": (("nodes", 1, "slope_features"), DELETE, r"^nodes\[1\]: key 'slope_features' is missing"),
    "feature beyond": (("nodes", 1, "slope_features", 1), 3, r"^nodes\[1\].slope_features\[1\]: expected 0 to 2"),
    "feature twice": (("nodes", 1, "slope_features"), [0, 0], r"^nodes\[1\].slope_features\[1\]: 0 is listed twice"),
    "slopes number": (("nodes", 1, "slopes"), 1.0, r"^nodes\[1\].slopes: expected a list, got 1.0"),
    "one output": (("nodes", 1, "slopes"), [[1.0, 2.0]], r"^nodes\[1\].slopes: 1 lists for 2 outputs"),
    "short row": (("nodes", 1, "slopes", 1), [1.0], r"^nodes\[1\].slopes\[1\]: 1 numbers for 2 features"),
    "text": (("nodes", 2, "slopes", 0, 0), "1", r"^nodes\[2\].slopes\[0\]\[0\]: expected a number, got '1'"),
    "nan": (("nodes", 2, "slopes", 0, 0), float("nan"), r"^nodes\[2\].slopes\[0\]\[0\]: .* finite number, got nan"),
    "label": (("nodes", 2, "label"), 0, r"^nodes\[2\]: unknown key 'label'"),
}


@looped("case", LINEAR_BAD)
def test_what_is_wrong_with_linear_leaves_is_refused_with_its_place(case):
    path, value, message = LINEAR_BAD[case]
    data = linear_document()
    change(path, value)(data)
    with pytest.raises(ModelFileError, match=message):
        tree_from_dict(data)


def test_slopes_that_are_too_many_use_no_memory():
    data = linear_document() | {"n_features": 10**5, "n_outputs": 10**4}
    with pytest.raises(ModelFileError, match=r"^slopes: 3 nodes x 1000000000 is too large"):
        tree_from_dict(data)


def bits(tree):
    names = (
        "left",
        "right",
        "weights",
        "threshold",
        "values",
        "labels",
        "category",
        "left_categories",
        "missing_left",
        "slopes",
    )
    arrays = {name: getattr(tree, name) for name in names}
    # A weight or slope that is -0.0 is not written: it has no effect.
    unsigned = ("weights", "slopes")
    return {k: None if a is None else (a.shape, (a + 0.0 if k in unsigned else a).tobytes()) for k, a in arrays.items()}


@given(st.one_of(trees(), trees(exact=False)))
@settings(max_examples=40, deadline=None)
def test_round_trip_is_exact_to_the_bit(tree):
    again = loads(dumps(tree))
    assert again == tree
    assert bits(again) == bits(tree)
    assert dumps(again) == dumps(tree)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=6))
def test_round_trip_of_awkward_numbers(numbers):
    tree = Tree.leaf(numbers + [-0.0, 5e-324, 1.7976931348623157e308], n_features=1, classification=False)
    assert bits(loads(dumps(tree))) == bits(tree)


def test_whole_numbers_and_bytes_are_read():
    data = document()
    data["nodes"][0]["weights"] = [1, -2]
    data["nodes"][0]["threshold"] = 3
    data["nodes"][2]["values"] = [0, 2]
    tree = loads(json.dumps(data).encode())
    assert tree.weights[0].tolist() == [1.0, 0.0, -2.0]
    assert tree.threshold[0] == 3.0


def change(path, value):
    def apply(data):
        *way, last = path
        for step in way:
            data = data[step]
        if value is DELETE:
            del data[last]
        else:
            data[last] = value

    return apply


BAD = {
    "not a tree": (("format",), "something", r"^format: expected 'treewright-tree', got 'something'"),
    "no format": (("format",), DELETE, r"^format: .* got null"),
    "newer": (("version",), 3, r"^version: the file has version 3, this library reads versions 1 and 2"),
    "older": (("version",), 0, r"^version: .* reads versions 1 and 2"),
    "linear": (("version",), 2, r"^task: expected 'regression': trees of version 2 have linear leaves"),
    "version true": (("version",), True, r"^version: expected an integer, got true"),
    "version text": (("version",), "1", r"^version: expected an integer"),
    "version float": (("version",), 1.0, r"^version: expected an integer"),
    "version huge": (("version",), 10**5000, r"^version: the file has version an integer of \d+ bits"),
    "task": (("task",), "clustering", r"^task: expected .* got 'clustering'"),
    "task list": (("task",), ["classification"], r"^task: .* got a list of 1"),
    "unknown key": (("extra",), 1, r"unknown key 'extra'"),
    "long unknown key": (("k" * 10**5,), 1, r"unknown key 'k{37}'\.\.\.$"),
    "unknown key of a node": (("nodes", 1, "gain"), 1, r"^nodes\[1\]: unknown key 'gain'"),
    "no task": (("task",), DELETE, r"key 'task' is missing"),
    "no nodes": (("nodes",), DELETE, r"key 'nodes' is missing"),
    "nodes object": (("nodes",), {}, r"^nodes: expected a list, got an object"),
    "nodes empty": (("nodes",), [], r"^nodes: a tree needs at least one node"),
    "n_features negative": (("n_features",), -1, r"^n_features: expected at least 0, got -1"),
    "n_features true": (("n_features",), True, r"^n_features: expected an integer, got true"),
    "n_features float": (("n_features",), 3.0, r"^n_features: expected an integer, got 3.0"),
    "n_features hostile": (("n_features",), 10**12, r"^n_features: 5 nodes x 1000000000000 is too large"),
    "n_features huge": (("n_features",), 10**400, r"^n_features: 5 nodes x an integer of 1329 bits"),
    "n_outputs zero": (("n_outputs",), 0, r"^n_outputs: expected at least 1, got 0"),
    "n_outputs hostile": (("n_outputs",), 10**12, r"^n_outputs: .* too large"),
    "n_outputs wrong": (("n_outputs",), 3, r"^nodes\[0\].values: 2 numbers for 3 outputs"),
    "n_categories hostile": (("n_categories",), 10**12, r"^n_categories: .* too large"),
    "n_categories absent": (
        ("n_categories",),
        DELETE,
        r"^nodes\[1\].left_categories\[0\]: no value is possible",
    ),
    "node list": (("nodes", 2), [], r"^nodes\[2\]: expected an object, got a list of 0"),
    "no right": (("nodes", 0, "right"), DELETE, r"^nodes\[0\]: key 'right' is missing"),
    "no left": (("nodes", 0, "left"), DELETE, r"^nodes\[0\]: key 'left' is missing"),
    "no children": (("nodes", 1, "values"), DELETE, r"^nodes\[1\]: key 'values' is missing"),
    "no label": (("nodes", 4, "label"), DELETE, r"^nodes\[4\]: key 'label' is missing"),
    "cycle": (("nodes", 1, "left"), 0, r"^nodes\[1\].left: expected 2 to 4, got 0"),
    "own child": (("nodes", 0, "left"), 0, r"^nodes\[0\].left: expected 1 to 4, got 0"),
    "child negative": (("nodes", 0, "left"), -1, r"^nodes\[0\].left"),
    "child beyond": (("nodes", 0, "left"), 5, r"^nodes\[0\].left: expected 1 to 4, got 5"),
    "child float": (("nodes", 0, "left"), 1.0, r"^nodes\[0\].left: expected an integer, got 1.0"),
    "child true": (("nodes", 0, "left"), True, r"^nodes\[0\].left: expected an integer, got true"),
    "child shared": (("nodes", 1, "left"), 2, r"^nodes\[1\].left: node 2 already is a child of node 0"),
    "child twice": (("nodes", 1, "right"), 3, r"^nodes\[1\].right: node 3 already is a child of node 1"),
    "orphan": (
        ("nodes", 1),
        {"values": [0.0, 0.0], "label": 0},
        r"^nodes\[3\]: no node has this one as its child",
    ),
    "features number": (("nodes", 0, "features"), 1, r"^nodes\[0\].features: expected a list, got 1"),
    "feature beyond": (
        ("nodes", 0, "features"),
        [0, 3],
        r"^nodes\[0\].features\[1\]: expected 0 to 2, got 3",
    ),
    "feature negative": (
        ("nodes", 0, "features", 0),
        -1,
        r"^nodes\[0\].features\[0\]: expected 0 to 2, got -1",
    ),
    "feature false": (("nodes", 0, "features", 0), False, r"^nodes\[0\].features\[0\]: expected an integer"),
    "feature twice": (("nodes", 0, "features"), [2, 2], r"^nodes\[0\].features\[1\]: 2 is listed twice"),
    "weight too few": (("nodes", 0, "weights"), [1.0], r"^nodes\[0\].weights: 1 numbers for 2 features"),
    "weight text": (
        ("nodes", 0, "weights", 0),
        "1.5",
        r"^nodes\[0\].weights\[0\]: expected a number, got '1.5'",
    ),
    "weight true": (
        ("nodes", 0, "weights", 1),
        True,
        r"^nodes\[0\].weights\[1\]: expected a number, got true",
    ),
    "weight null": (
        ("nodes", 0, "weights", 1),
        None,
        r"^nodes\[0\].weights\[1\]: expected a number, got null",
    ),
    "weight nan": (
        ("nodes", 0, "weights", 1),
        float("nan"),
        r"^nodes\[0\].weights\[1\]: .* finite number, got nan",
    ),
    "weight huge": (("nodes", 0, "weights", 1), 10**400, r"^nodes\[0\].weights\[1\]: .* 1329 bits"),
    "weights text": (("nodes", 0, "weights"), "12", r"^nodes\[0\].weights: expected a list, got '12'"),
    "threshold inf": (("nodes", 0, "threshold"), float("inf"), r"^nodes\[0\].threshold: .* finite"),
    "threshold list": (("nodes", 0, "threshold"), [1.0], r"^nodes\[0\].threshold: expected a number"),
    "missing number": (
        ("nodes", 0, "missing_left"),
        1,
        r"^nodes\[0\].missing_left: expected true or false, got 1",
    ),
    "values text": (("nodes", 2, "values"), "no", r"^nodes\[2\].values: expected a list"),
    "value object": (
        ("nodes", 2, "values", 1),
        {},
        r"^nodes\[2\].values\[1\]: expected a number, got an object",
    ),
    "label beyond": (("nodes", 3, "label"), 2, r"^nodes\[3\].label: expected 0 to 1, got 2"),
    "label negative": (("nodes", 3, "label"), -1, r"^nodes\[3\].label"),
    "label text": (("nodes", 3, "label"), "a", r"^nodes\[3\].label: expected an integer, got 'a'"),
    "label of regression": (("task",), "regression", r"^nodes\[0\]: unknown key 'label'"),
    "category beyond": (("nodes", 1, "category"), 3, r"^nodes\[1\].category: expected 0 to 2, got 3"),
    "category -1": (("nodes", 1, "category"), -1, r"^nodes\[1\].category"),
    "code beyond": (
        ("nodes", 1, "left_categories", 1),
        4,
        r"^nodes\[1\].left_categories\[1\]: expected 0 to 3",
    ),
    "code float": (
        ("nodes", 1, "left_categories", 1),
        1.0,
        r"^nodes\[1\].left_categories\[1\]: expected an int",
    ),
    "code twice": (("nodes", 1, "left_categories"), [1, 1], r"^nodes\[1\].left_categories\[1\]: 1 is listed"),
    "both kinds": (("nodes", 0, "category"), 1, r"^nodes\[0\]: key 'left_categories' is missing"),
    "leaf with split": (("nodes", 2, "threshold"), 1.0, r"^nodes\[2\]: unknown key 'threshold'"),
}


@looped("case", BAD)
def test_what_is_wrong_is_refused_with_its_place(case):
    path, value, message = BAD[case]
    data = document()
    change(path, value)(data)
    with pytest.raises(ModelFileError, match=message):
        tree_from_dict(data)


@looped("data", [None, [], "tree", 1, True, {}])
def test_what_is_no_object_is_refused(data):
    with pytest.raises(ModelFileError):
        tree_from_dict(data)


def test_the_place_may_start_inside_a_larger_file():
    data = document()
    data["nodes"][3]["label"] = 7
    with pytest.raises(ModelFileError, match=r"^model\.tree\.nodes\[3\]\.label: "):
        tree_from_dict(data, where="model.tree")
    with pytest.raises(ModelFileError, match=r"^trees\[2\]\.n_features: "):
        tree_from_dict(document() | {"n_features": 10**12}, where="trees[2]")


def test_hostile_sizes_use_no_memory():
    tracemalloc.start()
    try:
        for key in ("n_features", "n_outputs", "n_categories"):
            with pytest.raises(ModelFileError, match="too large"):
                tree_from_dict(document() | {key: 10**9})
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10**6


def test_too_many_nodes():
    nodes = [{"values": [0.0, 0.0], "label": 0}] * (MAX_NODES + 1)
    with pytest.raises(ModelFileError, match=r"^nodes: 1000001 nodes are too many, at most 1000000"):
        tree_from_dict(document() | {"nodes": nodes})


def test_what_could_not_be_read_is_not_written(monkeypatch):
    monkeypatch.setattr("treewright.tree.serialize.MAX_ENTRIES", 10)
    with pytest.raises(ModelFileError, match="too large"):
        tree_to_dict(Tree.leaf([1.0], n_features=11))


def test_a_hundred_thousand_nodes_take_seconds():
    n_splits = 50_000
    rng = np.random.default_rng(0)
    left = np.full(2 * n_splits + 1, -1)
    left[:n_splits] = 2 * np.arange(n_splits) + 1
    n = len(left)
    tree = Tree(
        left=left,
        right=np.where(left >= 0, left + 1, -1),
        weights=rng.normal(size=(n, 5)),
        threshold=rng.normal(size=n),
        values=np.abs(rng.normal(size=(n, 2))),
        labels=rng.integers(2, size=n),
    )
    start = time.process_time()  # not wall time: the machine may be busy
    assert loads(dumps(tree)) == tree
    assert time.process_time() - start < 10


# ---------------------------------------------------------------------- fuzzing


def places(data, path=()):
    """Paths of all values in a document."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    found = []
    for key, value in items:
        found += [(*path, key), *places(value, (*path, key))]
    return found


junk = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 8),
    st.integers().filter(lambda n: not 10**6 < n < 10**9),  # sizes that are allowed, but slow
    st.sampled_from([10**12, 10**400, -(10**400), 2**63, -(2**63)]),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(-2, 5), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


def tree_or_refused(make, *arguments):
    try:
        tree = make(*arguments)
    except ModelFileError as error:
        assert str(error)
        assert len(str(error)) < 500
    else:
        assert isinstance(tree, Tree)
        assert tree_from_dict(tree_to_dict(tree)) == tree


@given(st.data(), st.one_of(st.none(), trees(max_splits=4)))
@settings(max_examples=60, deadline=None)
def test_fuzz_mutated_documents(data, tree):
    found = document() if tree is None else tree_to_dict(tree)
    for _ in range(data.draw(st.integers(1, 3))):
        *way, last = data.draw(st.sampled_from(places(found)))
        holder = found
        for step in way:
            holder = holder[step]
        action = data.draw(st.sampled_from(["delete", "replace", "duplicate", "swap"]))
        if action == "delete":
            del holder[last]
        elif action == "replace":
            holder[last] = data.draw(junk)
        elif action == "duplicate" and isinstance(holder, list):
            holder.insert(0, copy.deepcopy(holder[last]))
        elif action == "duplicate":
            holder[data.draw(st.text(max_size=4))] = holder[last]
        else:
            other = data.draw(st.sampled_from(list(holder) if isinstance(holder, dict) else list(range(len(holder)))))
            holder[last], holder[other] = holder[other], holder[last]
        if not places(found):
            break
    tree_or_refused(tree_from_dict, found)


@given(st.data(), trees(max_splits=6))
@settings(max_examples=30, deadline=None)
def test_fuzz_children(data, tree):
    found = tree_to_dict(tree)
    branches = [node for node in found["nodes"] if "left" in node]
    for node in branches:
        for key in ("left", "right"):
            if data.draw(st.booleans()):
                node[key] = data.draw(st.integers(-1, tree.n_nodes))
    tree_or_refused(tree_from_dict, found)


@given(st.data(), trees(max_splits=4))
@settings(max_examples=40, deadline=None)
def test_fuzz_truncated_and_damaged_text(data, tree):
    text = dumps(tree)
    cut = data.draw(st.integers(0, len(text) - 1))
    with pytest.raises(ModelFileError):
        loads(text[:cut])
    raw = bytearray(text.encode())
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    tree_or_refused(loads, bytes(raw))


@given(st.one_of(st.text(), st.binary()))
@settings(max_examples=30, deadline=None)
def test_fuzz_any_text(text):
    tree_or_refused(loads, text)
