"""Splits with flags in words: logic and cases say of every row what the tree does."""

import datetime
import itertools

import numpy as np
import pytest
from rule_reader import holds
from tests.examples import looped

from treewright.data.tables.encoder import TableEncoder
from treewright.data.tables.files import Table
from treewright.data.tables.words import feature_words
from treewright.tree import Tree, export_text, side
from treewright.tree.text import path_texts, read_children, split_pieces
from treewright.tree.words import DateWords, FlagWords

REGIONS = ("north", "east", "south", "west")


def people(n, seed):
    """A table with everything that becomes a flag or a date, and gaps."""
    rng = np.random.default_rng(seed)
    days = rng.integers(-9000, 15000, n).tolist()
    some = rng.random((n, 3)) < 0.2
    return {
        "age": np.where(some[:, 0], None, rng.integers(0, 90, n)).astype(object),
        "income": rng.integers(0, 4000, n).astype(float),
        "born": np.array([datetime.date(1970, 1, 1) + datetime.timedelta(d) for d in days], dtype=object),
        "region": rng.choice(REGIONS, n, p=(0.4, 0.2, 0.2, 0.2)).astype(object),
        "kind": rng.choice(["a", "b"], n, p=(0.6, 0.4)).astype(object),
        "job": np.where(some[:, 1], None, rng.choice(["x", "y", "z"], n, p=(0.5, 0.3, 0.2))).astype(object),
    }


@pytest.fixture(scope="module")
def encoder():
    with pytest.warns(UserWarning):
        return TableEncoder.fit(Table(people(400, 0)), list(people(1, 0)), fill_gaps=True)


def encoded(encoder, columns):
    with pytest.warns(UserWarning):
        X, names = encoder.transform(Table(columns))
    read = columns | {"born": np.array(columns["born"], dtype="datetime64[D]")}
    read["age"] = np.array([np.nan if a is None else float(a) for a in columns["age"].tolist()])
    return X, names, read


def number(name):
    return name in ("age", "income", "born")


@pytest.mark.parametrize("kinds", ["flags", "one", "any"])
@looped("seed", range(6))
def test_words_send_other_rows_where_the_tree_does(encoder, kinds, seed):
    """Weights and thresholds at random; the rows are none of those that the encoder has seen."""
    rng = np.random.default_rng([seed, len(kinds)])
    X, names, read = encoded(encoder, people(300, 100 + seed))
    words, told = feature_words(encoder), set()
    for _ in range(40):
        flags = [j for j, name in enumerate(names) if not number(name)]
        chosen = rng.choice(flags, rng.integers(1, 5), replace=False).tolist()
        if kinds != "flags":
            numbers = rng.permutation([j for j, name in enumerate(names) if number(name)])
            chosen += numbers[: 1 if kinds == "one" else 2].tolist()
        weights = np.zeros(len(names))
        weights[chosen] = rng.choice([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0], len(chosen))
        if kinds != "flags":
            weights[flags] *= rng.choice([1.0, 40.0])
        # no row is on the border: sums are multiples of a half, but for those of ages filled in, which are whole
        at = float(np.floor(rng.choice(X @ weights))) + 0.3
        tree = Tree.stump(weights, at, np.eye(2))
        goes = side(tree, X, 0)
        condition = " ".join(split_pieces(tree, names, precision=17, words=words)[0])
        if condition in ("always", "never"):
            assert goes.all() if condition == "always" else not goes.any()
            continue
        # what stands for a missing age is not in the rule, unless it says where these rows go
        told_of = "or age is missing" in condition or "age is known and" in condition
        known = np.isfinite(read["age"]) | (kinds == "flags") | told_of
        assert np.array_equal(holds(condition, read)[known], goes[known]), condition
        left, right = path_texts(tree, names, precision=17, words=words)[1:]
        assert left == condition
        if "later than" not in right:
            assert np.array_equal(holds(right, read)[known], ~goes[known]), right
        told.add(
            "logic" if "=" not in condition and "<" not in condition else "cases" if "where" in condition else "sum"
        )
        assert "*(" not in condition.replace("*(years", "") or kinds == "flags"
    assert told >= ({"logic"} if kinds == "flags" else {"cases"})


WORDS = {
    0: FlagWords("region is east", "region is not east", "region"),
    1: FlagWords("region is west", "region is not west", "region"),
    2: FlagWords("kind is b", "kind is a", "kind"),
    3: FlagWords("sex is male", "sex is female", "sex"),
    6: DateWords("born", times=False),
    7: FlagWords("age is missing", "age is known", "age", (4, 40.0)),
}
NAMES = ["east", "west", "b", "male", "age", "income", "born", "no age"]


@looped(
    "weights, threshold, condition",
    [
        ({4: 1, 0: -50}, 48.5, "age <= 48.5 (98.5 where region is east)"),
        ({4: 1, 2: 3546}, 3574.5, "age <= 3574.5 (28.5 where kind is b)"),
        ({4: -2, 2: 8}, 3, "age >= -1.5 (2.5 where kind is b)"),
        ({4: 1, 0: -50, 1: -11.5}, 48.5, "age <= 48.5 (98.5 where region is east, 60 where region is west)"),
        ({4: 1, 0: -50, 1: -50}, 48.5, "age <= 48.5 (98.5 where region is east or west)"),
        ({4: 1, 0: -50, 2: 10}, 48.5, "age <= 48.5 (98.5 where region is east, 38.5 where kind is b, 88.5 where both)"),
        (
            {4: 1, 0: -50, 1: 5, 2: 10},
            48.5,
            "age <= 48.5 (50 more where region is east, 5 less where region is west, 10 less where kind is b)",
        ),
        ({5: 0.14, 4: -1, 0: -13.1}, 116.9, "0.14*income - age <= 116.9 (130 where region is east)"),
        ({6: 1, 2: 366}, 5236.5, "born is 1984-05-03 or earlier (1983-05-03 where kind is b)"),
        ({6: -1, 2: 366}, -5236.5, "born is 1984-05-04 or later (1985-05-05 where kind is b)"),
        ({4: 1, 7: -50}, 30, "age <= 30 or age is missing"),
        ({4: 1, 7: 50, 0: -5}, 45, "age is known and age <= 45 (50 where region is east)"),
        ({0: 1, 1: 1}, 0.5, "region is neither east nor west"),
        ({0: -1, 1: -1}, -0.5, "region is east or west"),
        ({0: -1, 2: -1}, -0.5, "region is east or kind is b"),
        ({0: 1, 2: -1}, -0.5, "region is not east and kind is b"),
        ({0: -2, 2: -1, 3: 1}, -0.5, "region is east or (kind is b and sex is female)"),
        ({0: -1, 1: -1, 2: -1}, -1.5, "kind is b and (region is east or west)"),
        ({0: -1, 2: -1, 3: -1}, -1.5, "at least two of these hold: region is east; kind is b; sex is male"),
        ({2: 1}, 0.5, "kind is a"),
    ],
)
def test_by_hand(weights, threshold, condition):
    row = np.zeros(8)
    row[list(weights)] = list(weights.values())
    tree = Tree.stump(row, threshold, np.eye(2))
    shown = {" ".join(split_pieces(tree, NAMES, words=WORDS)[0])}
    if " and (" in condition:  # either may come first
        shown |= {" and ".join(part for part in reversed(one.split(" and "))) for one in shown}
    assert condition in shown


def test_all_splits_on_three_flags_are_told_in_words():
    """Every way in which three conditions can be added up and cut: none is left as a sum."""
    flags = {j: WORDS[k] for j, k in enumerate((0, 2, 3))}
    rows = np.array(list(itertools.product((0.0, 1.0), repeat=3)))
    columns = {
        "region": np.where(rows[:, 0] == 1, "east", "north").astype(object),
        "kind": np.where(rows[:, 1] == 1, "b", "a").astype(object),
        "sex": np.where(rows[:, 2] == 1, "male", "female").astype(object),
    }
    seen = set()
    for weights in itertools.product((-2.0, -1.0, 0.0, 1.0, 2.0), repeat=3):
        for at in np.arange(-4.5, 5.0):
            tree = Tree.stump(weights, at, np.eye(2))
            condition = split_pieces(tree, ["e", "b", "m"], words=flags)[0][0]
            goes = side(tree, rows, 0)
            seen.add(tuple(goes.tolist()))
            if condition in ("always", "never"):
                assert goes.all() or not goes.any()
            else:
                assert np.array_equal(holds(condition, columns), goes), condition
    assert len(seen) == 104  # threshold functions of three variables


def test_splits_of_flags_that_part_nothing_are_not_read():
    weights = np.zeros((3, 4))
    weights[0, [0, 1]], weights[1, 2], weights[2, 0] = 1.0, 1.0, 1.0
    tree = Tree.from_heap(np.ones(3), weights, np.array([1.5, 0.5, 0.5]), np.ones((7, 2)), np.arange(7) % 2)
    names = ["east", "west", "b", "male"]
    text = export_text(tree, names, words=WORDS, number_leaves=True)
    assert text.splitlines()[0] == "if kind is a:" and text.count("if ") == 1
    assert read_children(tree, WORDS)[0] == 1 and read_children(tree)[0] == 0
    assert export_text(tree, names, number_leaves=True).count("if ") == 3
    ways = path_texts(tree, names, words=WORDS)
    assert ways[1] == "" and ways[2] == "never" and ways[tree.left[1]] == "kind is a"


def test_ways_with_alternatives_are_in_brackets():
    weights = np.zeros((3, 8))
    weights[0, [0, 2]], weights[1, 4], weights[2, 4] = -1.0, 1.0, 1.0
    tree = Tree.from_heap(np.ones(3), weights, np.array([-0.5, 30.0, 30.0]), np.ones((7, 2)), np.arange(7) % 2)
    ways = path_texts(tree, NAMES, words=WORDS)
    assert ways[tree.left[0]] == "region is east or kind is b"
    assert ways[tree.left[tree.left[0]]] == "(region is east or kind is b) and age <= 30"
    assert ways[tree.right[tree.right[0]]] == "region is not east and kind is a and age > 30"
