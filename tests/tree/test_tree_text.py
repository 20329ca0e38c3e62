from __future__ import annotations

import datetime
import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import looped
from tree_strategies import random_points, random_tree, trees

from treewright.tree import Tree, export_text, predict_values, route, side
from treewright.tree.text import format_number, path_texts, read_children, split_pieces
from treewright.tree.words import DateWords, FlagWords


def iris() -> Tree:
    return Tree(
        left=[1, -1, 3, -1, -1],
        right=[2, -1, 4, -1, -1],
        weights=[[2.0, 0.0], [0.0, 0.0], [0.5, 2.0], [0.0, 0.0], [0.0, 0.0]],
        threshold=[4.9, 0.0, 12.25, 0.0, 0.0],
        values=[[50, 50, 50], [50, 0, 0], [0, 50, 50], [0, 48, 1], [0, 1, 49.5]],
        labels=[0, 0, 1, 1, 2],
        missing_left=[True, False, False, False, False],
    )


NAMES = ["petal length", "petal width"]
CLASSES = ["setosa", "versicolor", "virginica"]


def test_classification():
    assert export_text(iris(), NAMES, CLASSES) == (
        "if petal length <= 2.45:\n"
        "    setosa  (weight 50: 100% setosa)\n"
        "else:\n"
        "    if petal width + 0.25*petal length <= 6.125:\n"
        "        versicolor  (weight 49: 98% versicolor, 2% virginica)\n"
        "    else:\n"
        "        virginica  (weight 50.5: 98% virginica, 2% versicolor)"
    )


def test_default_names_and_missing():
    assert export_text(iris(), show_missing=True) == (
        "if x0 <= 2.45 or missing:\n"
        "    class 0  (weight 50: 100% class 0)\n"
        "else:\n"
        "    if x1 + 0.25*x0 <= 6.125:\n"
        "        class 1  (weight 49: 98% class 1, 2% class 2)\n"
        "    else:\n"
        "        class 2  (weight 50.5: 98% class 2, 2% class 1)"
    )


@pytest.mark.parametrize(
    ("max_depth", "expected"),
    [
        (0, "... (5 more nodes)"),
        (1, "if x0 <= 2.45:\n    class 0  (weight 50: 100% class 0)\nelse:\n    ... (3 more nodes)"),
    ],
)
def test_max_depth(max_depth, expected):
    assert export_text(iris(), max_depth=max_depth) == expected


def test_max_depth_that_cuts_nothing():
    assert export_text(iris(), max_depth=2) == export_text(iris())


def test_regression():
    tree = Tree.stump([0.0, -4.0], 6.0, [[1.0], [1.0]]).with_leaves([[0.0], [3.2], [123456.78]], None)
    assert export_text(tree) == "if x1 >= -1.5:\n    value = 3.2\nelse:\n    value = 123457"
    several = Tree.leaf([1.0, -0.5, 1e-9, 2 / 3], n_features=1, classification=False)
    assert export_text(several) == "values = [1, -0.5, 1e-09, 0.6667]"


def test_linear_leaves():
    stump = Tree.stump([1.0, 0.0, 0.0], 2.0, [[1.0], [1.0]])
    slopes = [[[9.0, 9.0, 9.0]], [[1.0, 0.0, -0.12345]], [[0.0, 0.0, 0.0]]]
    tree = stump.with_leaves([[0.0], [2.5], [-1.0]], None, slopes)
    lines = ["if a <= 2:", "    value = 2.5 + a - 0.1235*c", "else:", "    value = -1"]
    assert export_text(tree, ["a", "b", "c"]).splitlines() == lines
    assert export_text(tree, ["a", "b", "c"], precision=2).splitlines()[1] == "    value = 2.5 + a - 0.12*c"
    leaf = Tree.leaf([0.0, 0.0], 2, classification=False)
    several = leaf.with_leaves([[0.0, 1e6]], None, [[[-1.0, 1e-7], [0.0, 1e20]]])
    assert export_text(several) == "values[0] = 0 - x0 + 1e-07*x1\nvalues[1] = 1000000 + 1e+20*x1"
    wide = leaf.with_leaves([[0.5, 1.0]], None, [[[3.0, -2.0], [0.0, 0.0]]])
    assert export_text(wide, width=20) == "values[0] = 0.5\n            + 3*x0\n            - 2*x1\nvalues[1] = 1"


def categorical() -> Tree:
    return Tree(
        left=[1, -1, -1],
        right=[2, -1, -1],
        weights=np.zeros((3, 2)),
        threshold=np.zeros(3),
        values=[[1, 1], [1, 0], [0, 0]],
        labels=[0, 0, 1],
        category=[1, -1, -1],
        left_categories=[[True, False, True], [False] * 3, [False] * 3],
        missing_left=[True, False, False],
    )


def test_categories():
    leaves = "\n    class 0  (1 row: 100% class 0)\nelse:\n    class 1  (no rows, or most of them are others)"
    tree = categorical()
    assert export_text(tree) == "if x1 in {0, 2}:" + leaves
    assert export_text(tree, show_missing=True) == "if x1 in {0, 2} or missing:" + leaves
    alone = replace(tree, left_categories=np.zeros((3, 3), dtype=bool))  # missing values apart from all levels
    assert export_text(alone, show_missing=True) == "if x1 is missing:" + leaves
    assert export_text(alone) == "if x1 in {}:" + leaves
    levels = ["north", "east", "south"]
    expected = "if region in {north, south}:" + leaves
    assert export_text(tree, ["age", "region"], category_names={1: levels}) == expected
    assert export_text(tree, ["age", "region"], category_names={"region": levels}) == expected
    odd = ["a, b", "", "it's"]
    assert export_text(tree, category_names={1: odd}).startswith("if x1 in {'a, b', \"it's\"}:")
    none = replace(tree, left_categories=np.zeros((3, 3), dtype=bool))
    assert export_text(none).startswith("if x1 in {}:")


@looped("level", ["missing", "Missing", "known", "or missing", "red or blue", "a, b", "", " a", "in {a}"])
def test_levels_that_read_like_words_of_a_rule_are_quoted(level):
    rules = export_text(categorical(), category_names={1: [level, "b", "c"]}, show_missing=True)
    assert rules.startswith(f"if x1 in {{'{level}', c}} or missing:")
    told = split_pieces(categorical(), category_names={1: [level, "b", "c"]}, show_missing=True, words={})[0]
    assert " ".join(told) == f"x1 is '{level}' or c, or missing"


@looped("level", ["red", "Oregon", "unknown", "for missing", "notary", "known well", "a b"])
def test_other_levels_are_not_quoted(level):
    assert export_text(categorical(), category_names={1: [level, "b", "c"]}).startswith(f"if x1 in {{{level}, c}}:")


def test_one_level_or_missing_has_no_comma():
    tree = replace(categorical(), left_categories=[[True, False, False], [False] * 3, [False] * 3])
    told = split_pieces(tree, category_names={1: ["a", "b", "c"]}, show_missing=True, words={})[0]
    assert " ".join(told) == "x1 is a or missing"


def test_classes_with_commas_are_quoted_as_levels_are():
    tree = Tree.stump([1.0], 0.5, [[3.0, 1.0], [0.0, 2.0]])
    rules = export_text(tree, class_names=["gold, class", "bröns"])
    assert "'gold, class'  (4 rows: 75% 'gold, class', 25% bröns)" in rules
    assert "bröns  (2 rows: 100% bröns)" in rules


@looped(
    "weights, threshold, condition",
    [
        ([1.0, 0.0, 0.0], 2.0, "a <= 2"),
        ([-1.0, 0.0, 0.0], 2.0, "a >= -2"),
        ([0.0, -2.0, 0.0], -3.0, "b >= 1.5"),
        ([0.0, 0.0, 1e-3], 1.0, "c <= 1000"),
        ([1.0, 0.0, 0.0], -0.0, "a <= 0"),
        ([-1.0, 0.0, 0.0], 0.0, "a >= 0"),
        ([1.0, 1.0, 1.0], 0.0, "a + b + c <= 0"),
        ([0.83, 1.2, 0.0], 6.1, "b + 0.6917*a <= 5.083"),
        ([0.83, -1.2, 0.0], 6.1, "0.6917*a - b <= 5.083"),
        ([-10.0, -5.0, 20.0], -40.0, "c - 0.5*a - 0.25*b <= -2"),
        ([1.0, 1e-7, 0.0], 1e5, "a + 1e-07*b <= 100000"),
        ([-1.0, -0.5, 0.0], -3.0, "a + 0.5*b >= 3"),
        ([1e-300, 0.0, 0.0], 1e300, "1e-300*a <= 1e+300"),
        ([-1e-300, 0.0, 0.0], 1e300, "-1e-300*a <= 1e+300"),
        ([1e-300, 1e-301, 0.0], 1e300, "1e-300*a + 1e-301*b <= 1e+300"),
        ([1.0, 0.0, 0.0], 2019.5, "a <= 2019.5"),
        ([1.0, 0.0, 0.0], 1234567.5, "a <= 1234567.5"),
        ([1.0, 0.0, 0.0], 5.99995, "a <= 5.99995"),
        ([1.0, 0.0, 0.0], 6.0000000000000009, "a <= 6"),
        ([1.0, 0.0, 0.0], 2.4499999999999997, "a <= 2.45"),
        ([1.0, 0.0, 0.0], 0.000123456, "a <= 0.0001235"),
        ([1.0, 0.0, 0.0], 1.5e-7, "a <= 1.5e-07"),
        ([1.0, 0.0, 0.0], 1e20, "a <= 1e+20"),
    ],
)
def test_conditions(weights, threshold, condition):
    tree = Tree.stump(weights, threshold, [[1.0], [1.0]])
    assert export_text(tree, ["a", "b", "c"]).splitlines()[0] == f"if {condition}:"


def test_missing_is_not_mentioned_where_no_feature_is_used():
    tree = replace(Tree.stump([0.0], 1.0, [[1.0], [1.0]]), missing_left=[True, False, False])
    assert export_text(tree, show_missing=True) == "class 0  (1 row: 100% class 0)"


def test_thresholds_of_a_feature_stay_apart():
    tree = Tree(
        left=[1, -1, 3, -1, -1],
        right=[2, -1, 4, -1, -1],
        weights=[[1.0], [0.0], [-2.0], [0.0], [0.0]],
        threshold=[0.1234561, 0.0, -2 * 0.1234569, 0.0, 0.0],
        values=np.ones((5, 1)),
    )
    lines = export_text(tree).splitlines()
    assert lines[0] == "if x0 <= 0.123456:"
    assert lines[3] == "    if x0 >= 0.123457:"
    noise = replace(tree, threshold=[2.45, 0.0, -2 * 2.4500000000000006, 0.0, 0.0])
    assert export_text(noise).splitlines()[3] == "    if x0 >= 2.45:"


def test_long_conditions_are_wrapped():
    tree = Tree.stump(np.arange(6.0, 0.0, -1.0), 3.0, [[1.0], [1.0]])
    names = [f"feature {letter}" for letter in "abcdef"]
    assert export_text(tree, names, width=49) == (
        "if feature a + 0.8333*feature b\n"
        "   + 0.6667*feature c + 0.5*feature d\n"
        "   + 0.3333*feature e + 0.1667*feature f <= 0.5:\n"
        "    class 0  (1 row: 100% class 0)\n"
        "else:\n"
        "    class 0  (1 row: 100% class 0)"
    )
    levels = ["north", "north-east", "south"]
    assert export_text(categorical(), category_names={1: levels}, width=20).startswith("if x1 in {north,\n   south}:\n")


@looped("width", range(20, 60))
def test_wrapped_lines_keep_to_the_width(width):
    tree = random_tree(np.random.default_rng(0), 8, kinds=("oblique",), n_features=8, classification=False)
    assert max(len(line) for line in export_text(tree, width=width + 32).splitlines()) <= width + 32


@looped(
    "values, text",
    [
        ([999.0, 1.0], "(1000 rows: >99% class 0, <1% class 1)"),
        ([0.5, 0.0], "(weight 0.5: 100% class 0)"),
        ([1.0, 0.0], "(1 row: 100% class 0)"),
        ([1.5, 0.5], "(weight 2: 75% class 0, 25% class 1)"),
        ([2.0, 10 * 0.1 + 1e-12], "(3 rows: 67% class 0, 33% class 1)"),
        ([1 / 3, 1 / 3], "(weight 0.6667: 50% class 0, 50% class 1)"),
        ([12.25, 0.25], "(weight 12.5: 98% class 0, 2% class 1)"),
        ([1e6, 234567.0], "(1234567 rows: 81% class 0, 19% class 1)"),
        ([0.0, 0.0], "(no rows, or most of them are others)"),
    ],
)
def test_points_and_shares(values, text):
    assert export_text(Tree.leaf(values, n_features=1)) == f"class 0  {text}"


def test_the_label_need_not_be_the_majority():
    tree = Tree.leaf([1.0, 3.0], n_features=1).with_leaves([[1.0, 3.0]], labels=[0])
    assert export_text(tree, class_names=["no", "yes"]) == "no  (4 rows: 75% yes, 25% no)"


def test_names_are_made_unambiguous():
    tree = Tree.stump([1.0, 2.0, 0.0], 0.0, [[1.0], [1.0]])
    assert export_text(tree, ["a", "a", "b"]).startswith("if a (x1) + 0.5*a (x0) <= 0:")
    assert export_text(tree, ["a\nb", "c", "d"]).startswith("if c + 0.5*a\\nb <= 0:")
    assert export_text(tree, ["größe", "c", "d"]).startswith("if c + 0.5*größe <= 0:")
    assert export_text(Tree.leaf([1.0, 0.0], 1), class_names=np.array([10, 20])).startswith("10  (")


BAD = {
    "too few names": ({"feature_names": ["a"]}, "feature_names has 1 names, the tree has 2 features"),
    "too many names": ({"feature_names": list("abc")}, "feature_names has 3 names, the tree has 2 features"),
    "one string": ({"feature_names": "ab"}, "feature_names is one string, the tree has 2 features"),
    "too few classes": ({"class_names": ["a"]}, "class_names has 1 names, the tree has 2 classes"),
    "no such feature": ({"category_names": {"region": []}}, "feature 'region', which the tree does not have"),
    "no such number": ({"category_names": {2: []}}, "feature 2, which the tree does not have"),
    "too few levels": ({"category_names": {1: ["a", "b"]}}, "has 2 levels for feature 'x1', .* with code 2"),
    "precision": ({"precision": 0}, "precision must be from 1 to 17, got 0"),
    "more precision": ({"precision": 18}, "precision must be from 1 to 17, got 18"),
    "depth": ({"max_depth": -1}, "max_depth must be at least 0 or None, got -1"),
}


@looped("case", BAD)
def test_bad_arguments(case):
    arguments, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        export_text(categorical(), **arguments)


def test_classes_of_a_regression_tree():
    with pytest.raises(ValueError, match="regression tree"):
        export_text(Tree.leaf([1.0], 1, classification=False), class_names=["a"])


def test_a_tree_deeper_than_recursion():
    n = 1500
    left = np.full(2 * n + 1, -1)
    left[: 2 * n : 2] = np.arange(1, 2 * n + 1, 2)
    weights = np.where(left[:, None] >= 0, 1.0, 0.0)
    right = np.where(left >= 0, left + 1, -1)
    tree = Tree(left, right, weights, np.arange(2 * n + 1.0), np.zeros((2 * n + 1, 1)))
    lines = export_text(tree).splitlines()
    assert len(lines) == 3 * n + 1
    assert lines[-1].strip() == "value = 0"
    assert export_text(tree, max_depth=1).endswith("... (2999 more nodes)")


@given(st.floats(-1e307, 1e307), st.integers(1, 17), st.booleans())
def test_numbers_are_close_and_short(value, precision, keep_fraction):
    text = format_number(value, precision, keep_fraction)
    if precision == 17:
        assert float(text) == value
    else:  # in fractions: as a float the text is rounded once more, by as much as the last of 16 digits
        away = abs(Fraction(text) - Fraction(value))
        assert away <= Fraction(1, 2) * Fraction(10) ** (1 - precision) * abs(Fraction(value))
    assert text != "-0"
    assert ("e" in text) == (value != 0 and not 1e-4 <= abs(value) < 1e16)


# ---------------------------------------------------------------------- rules read back, independently


def read_rules(text: str):
    """Turn exported rules into nested (condition, left, right) and numbers; knows only the text."""
    lines: list[str] = []
    for line in text.splitlines():
        broken = lines and lines[-1].lstrip().startswith("if ") and not lines[-1].endswith(":")
        if broken or line.lstrip().startswith(("+ ", "- ")):
            lines[-1] += " " + line.strip()
        else:
            lines.append(line)

    def block(position: int, indent: int):
        line = lines[position]
        assert len(line) - len(line.lstrip()) == indent
        if not line.lstrip().startswith("if "):
            return line.strip().removeprefix("value = "), position + 1
        yes, position = block(position + 1, indent + 4)
        assert lines[position] == " " * indent + "else:"
        no, position = block(position + 1, indent + 4)
        return (line.strip()[3:-1], yes, no), position

    rules, end = block(0, 0)
    assert end == len(lines)
    return rules


def holds(condition: str, point: list[float]) -> bool:
    if match := re.fullmatch(r"x(\d+) is missing", condition):
        return bool(np.isnan(point[int(match[1])]))
    missing = condition.endswith(" or missing")
    condition = condition.removesuffix(" or missing")
    used = [point[int(j)] for j in re.findall(r"x(\d+)", condition)]
    if any(np.isnan(used)):
        return missing
    if match := re.fullmatch(r"x\d+ in \{(.*)\}", condition):
        return used[0] in [float(code) for code in match[1].split(",") if code]
    left, sign, right = re.fullmatch(r"(.*) (<=|>=) (\S+)", condition).groups()
    total = summed(left, point)
    return total <= float(right) if sign == "<=" else total >= float(right)


def summed(terms: str, point: list[float]) -> float:
    total = 0.0
    for plus, number, feature in re.findall(r"([+-]?) ?(?:([0-9.]+(?:e[+-]\d+)?)\*)?x(\d+)", terms):
        total += (-1 if plus == "-" else 1) * float(number or 1) * point[int(feature)]
    return total


def follow(rules, point):
    while isinstance(rules, tuple):
        condition, yes, no = rules
        rules = yes if holds(condition, point) else no
    value, _, terms = rules.partition(" ")
    return float(value) + summed(terms, point)


def numbered(tree: Tree) -> Tree:
    """The same splits; each node's value is its number."""
    return tree.with_leaves(np.arange(float(tree.n_nodes))[:, None], None)


@given(trees(kinds=("axis", "categorical", "empty")), st.integers(0, 2**32 - 1), st.sampled_from([17, 4, 40]))
@settings(max_examples=60, deadline=None)
def test_the_rules_route_as_the_tree_does(tree, seed, width):
    # Weights are powers of two and thresholds quarters: dividing is exact, and points lie on thresholds.
    tree = numbered(tree)
    rules = read_rules(export_text(tree, precision=17, show_missing=True, width=width))
    X = random_points(np.random.default_rng(seed), 15, tree.n_features)
    assert [follow(rules, x) for x in X.tolist()] == predict_values(tree, X)[:, 0].tolist()


@given(trees(kinds=("oblique", "axis")), st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_oblique_rules_route_as_the_tree_does(tree, seed):
    tree = numbered(tree)
    rules = read_rules(export_text(tree, precision=17, show_missing=True))
    X = random_points(np.random.default_rng(seed), 15, tree.n_features)
    distance = np.abs(np.nan_to_num(X) @ tree.weights[tree.branches].T - tree.threshold[tree.branches])
    X = X[np.all(distance > 1e-9, axis=1)]  # dividing rounds: points on a threshold may go either way
    assert [follow(rules, x) for x in X.tolist()] == predict_values(tree, X)[:, 0].tolist()


@given(st.integers(0, 6), st.integers(1, 4), st.integers(0, 2**32 - 1), st.sampled_from([17, 100]))
@settings(max_examples=30, deadline=None)
def test_the_formulas_of_linear_leaves_predict_as_the_tree_does(n_splits, n_features, seed, width):
    rng = np.random.default_rng(seed)
    kinds = ("axis", "categorical", "empty")
    tree = random_tree(rng, n_splits, n_features, 1, classification=False, kinds=kinds, linear=True)
    tree = replace(tree, slopes=tree.slopes * rng.choice([1.0, 1e-6, 1e18, np.pi], size=tree.slopes.shape))
    rules = read_rules(export_text(tree, precision=17, show_missing=True, width=width))
    X = random_points(rng, 15, n_features)
    expected = predict_values(tree, X)[:, 0]
    size = 1.0 + np.abs(tree.slopes).max() * 10
    assert np.allclose([follow(rules, x) for x in X.tolist()], expected, rtol=1e-12, atol=1e-12 * size, equal_nan=True)


@given(trees(kinds=("axis",)), st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_short_rules_route_whole_numbers_as_the_tree_does(tree, seed):
    # Few digits, but a threshold that is no whole number is never rounded to one.
    rng = np.random.default_rng(seed)
    tree = numbered(replace(tree, threshold=tree.threshold + rng.integers(-3000, 3000, size=tree.n_nodes)))
    rules = read_rules(export_text(tree, precision=1))
    X = rng.integers(-3000, 3000, size=(30, tree.n_features)).astype(float)
    assert [follow(rules, x) for x in X.tolist()] == predict_values(tree, X)[:, 0].tolist()


def constant_tree():
    """The root sends all points right, its right child all points left; one split is left to read."""
    heap = np.zeros((7, 2))
    heap[5, 1] = 1.0
    threshold = np.array([-1.0, 0.0, 2.0, 0.0, 0.0, 4.0, 0.0])
    branch = np.array([True, False, True, False, False, True, False])
    counts = np.arange(30.0).reshape(15, 2)
    return Tree.from_heap(branch, heap, threshold, counts, counts.argmax(axis=1))


def test_splits_that_send_all_points_one_way_are_not_read():
    tree = constant_tree()
    text = export_text(tree, ["a", "b"], number_leaves=True)
    points = np.random.default_rng(0).normal(4.0, 3.0, (200, 2))
    reached = np.unique(route(tree, points)).tolist()
    assert [line.strip() for line in text.splitlines()][::2] == ["if b <= 4:", "else:"]
    assert sorted(map(int, re.findall(r"leaf (\d+):", text))) == reached
    root, left, right = read_children(tree)
    assert sorted((left[root], right[root])) == reached
    assert [pieces for pieces in split_pieces(tree, ["a", "b"]) if pieces] == [["never"], ["always"], ["b <= 4"]]


def test_ways_through_constant_splits_have_the_other_conditions_alone():
    tree = constant_tree()
    ways = path_texts(tree, ["a", "b"])
    texts = {leaf: ways[leaf] for leaf in np.flatnonzero(tree.is_leaf).tolist()}
    reached = np.unique(route(tree, [[0.0, 0.0], [0.0, 9.0]])).tolist()
    assert {leaf: text for leaf, text in texts.items() if text != "never"} == dict(
        zip(reached, ["b <= 4", "b > 4"], strict=True)
    )


def test_a_tree_of_constant_splits_alone_is_its_leaf():
    tree = Tree.stump([0.0], -1.0, [[5.0, 0.0], [1.0, 3.0]])
    assert export_text(tree, class_names=["no", "yes"]) == "yes  (4 rows: 75% yes, 25% no)"


WORDS = {0: FlagWords("area is rural", "area is urban"), 2: DateWords("born", times=False, since=7305)}


@looped(
    "weights, threshold, condition",
    [
        ([4.0, 0.5, 0.0], 3.0, "age <= 6 (-2 where area is rural)"),
        ([4.0, -0.5, 0.0], 3.0, "age >= -6 (2 where area is rural)"),
        ([-4.0, -0.5, 0.0], 3.0, "age >= -6 (-14 where area is rural)"),
        ([2.0, 0.0, 1.0], 7305.0, "born is 1990-01-01 or earlier (1989-12-30 where area is rural)"),
        (
            [2.0, 0.5, 2 / 365.25],
            2 * 7305 / 365.25 + 1,
            "age + 4*(years from 1990-01-01 to born) <= 2 (-2 where area is rural)",
        ),
        ([0.0, 0.5, 2 / 365.25], 2 * 7305 / 365.25 + 1, "age + 4*(years from 1990-01-01 to born) <= 2"),
        ([1.0, 1e-17, 0.0], 0.5, "1e-17*age + (area is rural) <= 0.5"),
        ([2.0, 0.0, 0.0], 1.0, "area is urban"),
        ([0.0, 0.0, -2.0], -14610.0, "born is 1990-01-01 or later"),
    ],
)
def test_what_is_told_as_one_is_a_number(weights, threshold, condition):
    tree = Tree.stump(weights, threshold, [[1.0], [1.0]])
    assert " ".join(split_pieces(tree, ["area=rural", "age", "born"], words=WORDS)[0]) == condition


def test_sums_with_dates_are_those_of_the_tree():
    rng = np.random.default_rng(0)
    for _ in range(20):
        weights, at = rng.normal(size=3) * [1.0, 0.1, 0.01], rng.normal()
        tree = Tree.stump(weights, weights @ [0.5, 40.0, 7305.0] + at, [[1.0], [1.0]])
        points = np.column_stack([rng.integers(0, 2, 50), rng.integers(0, 90, 50), 7305 + rng.integers(-999, 999, 50)])
        text = " ".join(split_pieces(tree, ["f", "age", "born"], precision=17, words=WORDS)[0])
        code = re.sub(r"= (\S+) \((\S+) where area is rural\)", r"= where(F, \2, \1)", text)
        code = code.replace("(years from 1990-01-01 to born)", "D")
        values = {"where": np.where, "F": points[:, 0], "age": points[:, 1], "D": (points[:, 2] - 7305) / 365.25}
        assert np.array_equal(eval(code, {}, values), side(tree, points, 0)), text


def test_linear_leaves_count_dates_in_years():
    tree = Tree.stump([1.0], 0.0, [[1.0], [1.0]]).with_leaves([[0.0], [1.0], [2.0]], None, np.full((3, 1, 1), 2.0))
    text = export_text(tree, ["born"], words={0: DateWords("born", times=False, since=10)})
    assert text.splitlines()[1].strip() == "value = 21 + 730.5*(years from 1970-01-11 to born)"


@looped("sign", [1.0, -1.0])
@looped("at", [0.25, 0.5, 7304.5, 7305.0])
def test_ways_in_words_part_all_values(sign, at):
    for feature, words in WORDS.items():
        if feature == 0 and at > 1:
            continue
        weights = np.zeros(3)
        weights[feature] = sign
        tree = Tree.stump(weights, sign * at, [[1.0], [1.0]])
        left, right = path_texts(tree, ["area=rural", "age", "born"], words=words and WORDS)[1:]
        assert left != right and "=" not in left + right and ">" not in left + right
        if feature == 2:
            days = [datetime.date(1970, 1, 1) + datetime.timedelta(days=k) for k in range(7300, 7310)]
            for day, goes in zip(days, side(tree, [[0, 0, k] for k in range(7300, 7310)], 0), strict=True):
                told = [
                    day <= datetime.date.fromisoformat(text.split()[2])
                    if text.endswith("earlier")
                    else day >= datetime.date.fromisoformat(text.split()[2])
                    for text in (left, right)
                ]
                assert told == [goes, not goes]
