"""Conditions that no row can fail in some cases are said as what they are."""

import json

import numpy as np
import pytest
from rule_reader import leaves_by_rules
from tests.examples import looped

from treewright import OCTHClassifier, Tree
from treewright.estimators.tables import rule_cases
from treewright.exceptions import ModelFileError
from treewright.tree import export_text, route, sure_cases
from treewright.tree.words import FlagWords

SECTOR = {k: FlagWords(f"sector is {name}", f"sector is not {name}", "sector") for k, name in enumerate("ABC", start=1)}
PAIR = {1: FlagWords("sex is m", "sex is f", "sex"), 2: FlagWords("owner is yes", "owner is no", "owner")}
LEAVES = np.eye(2)


def rules(tree, X, words):
    return export_text(tree, ["employees", *"abc"][: tree.n_features], words=words, sure=sure_cases(tree, X, words))


def rows(n=200, flags=3):
    rng = np.random.default_rng(0)
    held = rng.integers(0, flags + 1, n)
    return np.column_stack([rng.integers(1, 100, n), *(held == k for k in range(1, flags + 1))]).astype(float)


@looped(
    "weights, threshold, says",
    [
        ([-1.0, 200.0, 0, 0], 164.6, "employees >= 35.4 or sector is not A"),
        ([1.0, 200.0, 0, 0], 235.4, "employees <= 35.4 or sector is not A"),
        ([1.0, -200.0, 0, 0], -164.6, "employees <= 35.4 and sector is A"),
        ([1.0, -200.0, 300.0, 0], 35.4, "(employees <= 35.4 and sector is neither A nor B) or sector is A"),
        ([1.0, 300.0, 300.0, 0], 335.4, "employees <= 35.4 or sector is neither A nor B"),
        ([1.0, 300.0, 0, 0], 200.0, "sector is not A"),
        ([1.0, 5.0, 0, 0], 35.4, "employees <= 35.4 (30.4 where sector is A)"),
        ([1.0, 300.0, 290.0, 0], 335.4, "employees <= 335.4 (35.4 where sector is A, 45.4 where sector is B)"),
        ([1.0, 300.0, 0, 0], 600.0, "employees <= 600 (300 where sector is A)"),
    ],
)
def test_of_a_column(weights, threshold, says):
    tree, X = Tree.stump(weights, threshold, LEAVES), rows()
    assert rules(tree, X, SECTOR).splitlines()[0] == f"if {says}:"


@pytest.mark.parametrize(
    ("weights", "threshold", "says"),
    [
        ([1.0, 300.0, 300.0], 635.4, "employees <= 35.4 or sex is f or owner is no"),
        ([1.0, -300.0, -300.0], -564.6, "employees <= 35.4 and sex is m and owner is yes"),
        ([1.0, 300.0, 600.0], 635.4, "(employees <= 35.4 and sex is f) or owner is no"),
    ],
)
def test_of_two_columns(weights, threshold, says):
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.integers(1, 100, 50), rng.integers(0, 2, (50, 2))]).astype(float)
    tree = Tree.stump(weights, threshold, LEAVES)
    written = rules(tree, X, PAIR).splitlines()[0]
    if weights == [1.0, 300.0, 600.0]:  # whichever is the shorter way to say it
        assert written.count("employees <= 35.4") == 1 and "where" not in written
    else:
        assert written == f"if {says}:"


@looped("seed", range(40))
def test_the_rules_send_rows_where_the_tree_does(seed):
    rng = np.random.default_rng(seed)
    kinds = ["A", "B", "C", "D"]
    n, pair = 120, seed % 2
    number, other = rng.integers(0, 50, n).astype(float), rng.integers(0, 50, n).astype(float)
    sector, owner = rng.choice(kinds, n), rng.choice(["yes", "no"], n)
    words = (
        {2: FlagWords("sector is A", "sector is not A", "sector"), 3: PAIR[2]}
        if pair
        else {k + 2: FlagWords(f"sector is {name}", f"sector is not {name}", "sector") for k, name in enumerate("ABC")}
    )
    flags = [sector == "A", owner == "yes"] if pair else [sector == name for name in "ABC"]
    X = np.column_stack([number, other, *flags]).astype(float)
    shifts = rng.choice([0.0, -100.0, 100.0, 17.0, 200.0], len(flags))
    slope = rng.choice([0.0, 0.5]) if seed % 3 else 0.0
    weights = np.array([rng.choice([-1.0, 1.0]), slope, *shifts])
    tree = Tree.stump(weights, float(rng.choice([-90.5, 10.5, 25.25, 110.5, 30.75])), LEAVES)
    columns = {"number": number, "other": other, "sector": sector, "owner": owner}
    names = ["number", "other", *("abc"[: len(flags)])]
    found = sure_cases(tree, X, words)
    text = export_text(tree, names, words=words, sure=found, number_leaves=True, precision=12)
    expected = route(tree, X)
    if text.startswith("leaf"):
        return
    assert np.array_equal(leaves_by_rules(text, columns, n), expected), text


def test_missing_values_stay_with_their_own_words():
    words = SECTOR | {4: FlagWords("employees is missing", "employees is known", "employees", filled=(0, 20.0))}
    X = np.column_stack([rows(), np.zeros(200)])
    X[:20, 0], X[:20, 4] = 20.0, 1.0
    tree = Tree.stump([-1.0, 200.0, 0, 0, -500.0], 164.6, LEAVES)
    text = export_text(tree, ["employees", *"abcd"], words=words, sure=sure_cases(tree, X, words))
    assert text.splitlines()[0] == "if employees >= 35.4 or sector is not A or employees is missing:"
    tree = Tree.stump([1.0, -200.0, 0, 0, -500.0], -164.6, LEAVES)
    text = export_text(tree, ["employees", *"abcd"], words=words, sure=sure_cases(tree, X, words))
    assert text.splitlines()[0] == "if (employees <= 35.4 and sector is A) or employees is missing:"


def test_rules_for_rows_and_model_files_say_so_too():
    X = rows()
    y = np.where((X[:, 0] < 35.5) & (X[:, 1] == 1), "no", "yes")
    model = OCTHClassifier(max_depth=1, random_state=0).fit(X, y)
    first = model.export_text(words=SECTOR, X=X).splitlines()[0]
    assert "where" not in first and "sector is" in first and (" or " in first or " and " in first)
    assert "where" in model.export_text(words=SECTOR).splitlines()[0]  # of no rows nothing is sure
    for wrong in (3, [[9, [0]]], [[0, 1]], [[0, [2]]], [["0", [0]]]):
        with pytest.raises(ModelFileError, match="its cases"):
            rule_cases(json.loads(json.dumps(wrong)), model, "file")
