"""Levels of a column with the same weight, written as a group: the same rule for every row there can be."""

import numpy as np
from rule_reader import groups_by_notes, leaves_by_rules
from tests.examples import looped

from treewright.report.trees import reading_notes
from treewright.tree import Tree, export_text, route, telling_digits
from treewright.tree.level_groups import folded_tree
from treewright.tree.text import read_nodes
from treewright.tree.words import FlagWords

LEVELS = {"town": [f"t{i:02}" for i in range(20)], "trade": [f"o{i:02}" for i in range(12)]}
FLAGS = [(column, level) for column, levels in LEVELS.items() for level in levels]
NAMES = ["age", *(f"{column}={level}" for column, level in FLAGS), "town is missing"]
WORDS = {
    j: FlagWords(f"{c} is {level}", f"{c} is not {level}", c, many=True) for j, (c, level) in enumerate(FLAGS, start=1)
}
WORDS[len(FLAGS) + 1] = FlagWords("town is missing", "town is known", "town")


def table(n, rng):
    """Rows, and the columns that they are made of; some have a level without a flag, or none."""
    columns = {"age": rng.normal(40, 12, n).round(2)}
    for column, levels in LEVELS.items():
        columns[column] = rng.choice(np.array([*levels, "other", None], dtype=object), n)
    flags = [columns[column] == level for column, level in FLAGS]
    return np.column_stack([columns["age"], *flags, columns["town"] == None]).astype(float), columns  # noqa: E711


def tree_of(rng, n_groups, numbers):
    """Splits that give the levels of some groups the same weight."""
    weights = np.zeros((7, len(NAMES)))
    for node in range(3):
        weights[node, 0] = rng.choice([1.0, -0.7]) if numbers else 0.0
        start = 1
        for levels in LEVELS.values():
            of = (rng.normal(size=n_groups) * rng.choice([8.0, 0.0, 3.0])).round(2)
            weights[node, start : start + len(levels)] = of[rng.integers(0, n_groups, len(levels))]
            start += len(levels)
        weights[node, -1] = rng.choice([0.0, 2.5])
    threshold = np.append(rng.normal(size=3) * 4 + 38 * weights[:3, 0], np.zeros(4))
    children = np.array([1, 3, 5, -1, -1, -1, -1])
    right = np.where(children < 0, -1, children + 1)
    return Tree(children, right, weights, threshold, np.eye(7, 2), np.zeros(7, dtype=np.int64))


@looped("numbers", [True, False])
@looped("n_groups", [1, 2, 3])
@looped("seed", range(3))
def test_rules_and_notes_tell_each_row_where_it_goes(seed, n_groups, numbers):
    rng = np.random.default_rng([seed, n_groups, numbers])
    tree = tree_of(rng, n_groups, numbers)
    X, columns = table(1500, rng)
    leaves, found = route(tree, X), folded_tree(tree, WORDS)
    assert np.array_equal(route(found.tree, found.rows(X)), leaves)
    assert folded_tree(found.tree, found.words).groups == []  # as it is folded
    digits, notes = telling_digits(tree, X, leaves, WORDS), reading_notes(tree, WORDS)
    text = export_text(tree, NAMES, words=WORDS, digits=digits, number_leaves=True)
    assert leaves_by_rules(text, columns | groups_by_notes(notes), len(X)).tolist() == leaves.tolist()
    sizes = [len(levels) for levels in groups_by_notes(notes).values()]
    assert all(size > 3 for size in sizes) and len(sizes) <= len(found.groups)
    assert ("in group" in text) == bool(sizes)
    assert set(leaves.tolist()) <= set(read_nodes(tree, WORDS))


def test_groups_have_one_number_each_and_few_levels_are_listed():
    weights = np.zeros((3, len(NAMES)))
    weights[0, 1:11] = 1.0
    one = Tree.stump(weights[0], 0.5, np.eye(2))
    assert "if town is not in group 1:" in export_text(one, NAMES, words=WORDS)
    levels = ", ".join(LEVELS["town"][:10])
    assert reading_notes(one, WORDS)[0] == f'Group 1 of "town": {levels}.'
    few = Tree.stump(np.where(np.arange(len(NAMES)) < 4, weights[0], 0.0), 0.5, np.eye(2))
    assert "if town is neither t00, t01 nor t02:" in export_text(few, NAMES, words=WORDS)
    assert reading_notes(few, WORDS) == []
    plain = {j: flag._replace(many=False) for j, flag in WORDS.items()}  # of a column of few levels all are listed
    assert "group" not in export_text(one, NAMES, words=plain) and reading_notes(one, plain) == []
    both = Tree(
        np.array([1, 3, -1, -1, -1]),
        np.array([2, 4, -1, -1, -1]),
        np.vstack([weights[0], weights[0] * 2, np.zeros((3, len(NAMES)))]),
        np.array([0.5, 3.0, 0, 0, 0]),
        np.eye(5, 2),
        np.zeros(5, dtype=np.int64),
    )
    assert len(folded_tree(both, WORDS).groups) == 1
    assert 1 not in read_nodes(both, WORDS)  # a split that sends every row one way, as 2 is below 3
