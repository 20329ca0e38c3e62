from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given, settings
from tests.examples import looped
from tree_strategies import random_tree, trees

from treewright.tree import Tree, route


def valid(**changes):
    """Arguments of a tree with two splits, of which some are changed."""
    arguments = {
        "left": [1, 3, -1, -1, -1],
        "right": [2, 4, -1, -1, -1],
        "weights": [[1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]],
        "threshold": [0.5, 0.0, 0.0, 0.0, 0.0],
        "values": [[2.0, 3.0], [2.0, 1.0], [0.0, 2.0], [2.0, 0.0], [0.0, 1.0]],
        "labels": [1, 0, 1, 0, 1],
        "category": [-1, 1, -1, -1, -1],
        "left_categories": [[False] * 3, [True, False, True], [False] * 3, [False] * 3, [False] * 3],
        "missing_left": [True, False, False, False, False],
    }
    return arguments | changes


def test_shape():
    tree = Tree(**valid())
    assert (tree.n_nodes, tree.n_features, tree.n_outputs, tree.n_leaves, tree.depth) == (5, 2, 2, 3, 2)
    assert tree.leaves.tolist() == [2, 3, 4]
    assert tree.branches.tolist() == [0, 1]
    assert tree.is_leaf.tolist() == [False, False, True, True, True]
    assert tree.parent.tolist() == [-1, 0, 0, 1, 1]
    assert tree.level.tolist() == [0, 1, 1, 2, 2]
    assert tree.heap_numbers == [1, 2, 3, 4, 5]
    assert tree.is_classifier
    assert not Tree(**valid(labels=None)).is_classifier


INVALID = {
    "no nodes": ({"left": []}, "at least one node"),
    "left is a table": ({"left": [[1], [3], [-1], [-1], [-1]]}, r"left has shape \(5, 1\)"),
    "left is a number": ({"left": -1}, r"left has shape \(\)"),
    "right too short": ({"right": [2, 4, -1, -1]}, r"right has shape \(4,\), the tree has 5 nodes"),
    "threshold too long": ({"threshold": [0.0] * 6}, "threshold has shape"),
    "labels too short": ({"labels": [0, 1]}, "labels has shape"),
    "category too short": ({"category": [-1]}, "category has shape"),
    "missing_left too short": ({"missing_left": [True]}, "missing_left has shape"),
    "weights too few": ({"weights": np.zeros((4, 2))}, r"weights has shape \(4, 2\), expected \(5, ...\)"),
    "weights of one axis": ({"weights": np.zeros(5)}, "weights has shape"),
    "values too few": ({"values": np.zeros((4, 2))}, "values has shape"),
    "values of no column": ({"values": np.zeros((5, 0)), "labels": None}, "at least one column"),
    "table too short": ({"left_categories": np.zeros((1, 3), dtype=bool)}, "left_categories has shape"),
    "one child": ({"right": [2, -1, -1, -1, -1]}, "only one child"),
    "cycle": ({"left": [1, 0, -1, -1, -1]}, "larger number than its parent"),
    "self": ({"left": [1, 1, -1, -1, -1]}, "larger number than its parent"),
    "child beyond": ({"left": [1, 5, -1, -1, -1]}, "larger number than its parent"),
    "child below -1": ({"left": [1, -2, -1, -1, -1]}, "larger number than its parent"),
    "child shared": ({"left": [1, 4, -1, -1, -1]}, "exactly one parent"),
    "orphans": ({"left": [1, -1, -1, -1, -1], "right": [2, -1, -1, -1, -1]}, "exactly one parent"),
    "child no whole number": ({"left": [1, 3.5, -1, -1, -1]}, "left must be whole numbers"),
    "label no number": ({"labels": [0, np.nan, 0, 0, 0]}, "labels must be whole numbers"),
    "weights not finite": ({"weights": np.full((5, 2), np.nan)}, "weights has values that are not finite"),
    "threshold not finite": ({"threshold": [np.inf] * 5}, "threshold has values that are not finite"),
    "values not finite": ({"values": np.full((5, 2), -np.inf)}, "values has values that are not finite"),
    "label too large": ({"labels": [0, 1, 2, 0, 1]}, "from 0 to 1"),
    "label negative": ({"labels": [0, 1, -1, 0, 1]}, "from 0 to 1"),
    "category too large": ({"category": [-1, 2, -1, -1, -1]}, "from 0 to 1, or be -1"),
    "category below -1": ({"category": [-1, -2, -1, -1, -1]}, "from 0 to 1, or be -1"),
    "slopes of labels": ({"slopes": np.zeros((5, 2, 2))}, "slopes are for regression trees"),
    "slopes of one axis": (
        {"slopes": np.zeros((5, 2)), "labels": None},
        r"slopes has shape \(5, 2\), expected \(5, 2, 2\)",
    ),
    "slopes too few": ({"slopes": np.zeros((5, 1, 2)), "labels": None}, "slopes has shape"),
    "slopes not finite": (
        {"slopes": np.full((5, 2, 2), np.nan), "labels": None},
        "slopes has values that are not finite",
    ),
    "two kinds of split": ({"category": [0, 1, -1, -1, -1]}, "node 0 has both a category and weights"),
}


@looped("case", INVALID)
def test_what_is_no_tree_is_refused(case):
    changes, message = INVALID[case]
    with pytest.raises(ValueError, match=message):
        Tree(**valid(**changes))


def test_arrays_are_copies_and_read_only():
    weights = np.array([[1.0], [0.0], [0.0]])
    tree = Tree(left=[1, -1, -1], right=[2, -1, -1], weights=weights, threshold=[0.0] * 3, values=np.zeros((3, 1)))
    weights[0] = 7.0
    assert tree.weights[0, 0] == 1.0
    for name in (
        "left",
        "right",
        "weights",
        "threshold",
        "values",
        "category",
        "left_categories",
        "missing_left",
    ):
        with pytest.raises(ValueError, match="read-only"):
            getattr(tree, name)[0] = 0
    with pytest.raises(FrozenInstanceError):
        tree.left = None


def test_what_no_split_uses_is_cleared():
    noise = valid(
        weights=[[1.0, 0.0], [0.0, 0.0], [1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
        threshold=[0.5, 7.0, 1.0, 2.0, 3.0],
        category=[-1, 1, 0, 1, -1],
        left_categories=[[True] * 3, [True, False, True], [True] * 3, [True] * 3, [True] * 3],
        missing_left=[True, False, True, True, True],
    )
    assert Tree(**noise) == Tree(**valid())


@given(trees())
@settings(max_examples=40, deadline=None)
def test_equality(tree):
    assert tree == replace(tree)
    assert tree == pickle.loads(pickle.dumps(tree))
    assert tree != "tree"
    assert tree != replace(tree, values=tree.values + 1)
    if tree.is_classifier:
        assert tree != replace(tree, labels=None)
    if tree.slopes is not None:
        assert tree != replace(tree, slopes=None) and replace(tree, slopes=None) != tree
        assert tree != replace(tree, slopes=tree.slopes + 1)
    if tree.n_nodes > 1:
        assert tree != replace(tree, missing_left=~tree.missing_left)
    with pytest.raises(TypeError):
        hash(tree)


@given(trees())
@settings(max_examples=30, deadline=None)
def test_levels_parents_and_heap_numbers_agree(tree):
    for node in range(1, tree.n_nodes):
        parent = tree.parent[node]
        assert node in (tree.left[parent], tree.right[parent])
        assert tree.level[node] == tree.level[parent] + 1
        assert tree.heap_numbers[node] == 2 * tree.heap_numbers[parent] + (node == tree.right[parent])
    assert tree.depth == max(h.bit_length() - 1 for h in tree.heap_numbers)
    assert tree.n_leaves == len(tree.branches) + 1


def test_a_chain_deeper_than_recursion():
    n = 3000
    left = np.full(2 * n + 1, -1)
    right = left.copy()
    left[: 2 * n : 2] = np.arange(1, 2 * n + 1, 2)
    right[: 2 * n : 2] = np.arange(2, 2 * n + 1, 2)
    weights = np.where(left[:, None] >= 0, 1.0, 0.0)
    tree = Tree(left, right, weights, threshold=np.arange(2 * n + 1) / 2, values=np.zeros((2 * n + 1, 1)))
    assert tree.depth == n
    assert route(tree, [[-1.0], [10.0], [10.5], [1e9]]).tolist() == [1, 21, 23, 2 * n]
    assert tree.collapsed(np.ones(tree.n_nodes, dtype=bool)).depth == n


def test_leaf_and_stump():
    leaf = Tree.leaf([1.0, 3.0], n_features=4)
    assert (leaf.n_nodes, leaf.n_features, leaf.depth, leaf.labels.tolist()) == (1, 4, 0, [1])
    assert Tree.leaf([1.0, 3.0], n_features=4, classification=False).labels is None
    stump = Tree.stump([0.0, 2.0], 1.0, [[3.0, 0.0], [1.0, 4.0]])
    assert stump.values.tolist() == [[4.0, 4.0], [3.0, 0.0], [1.0, 4.0]]
    assert route(stump, [[9.0, 0.5], [-9.0, 0.6]]).tolist() == [1, 2]


def test_shares():
    tree = Tree.stump([1.0], 0.0, [[3.0, 1.0], [0.0, 0.0]]).with_leaves(
        [[3.0, 1.0], [3.0, 1.0], [0.0, 0.0]], labels=[0, 0, 1]
    )
    assert tree.shares().tolist() == [[0.75, 0.25], [0.75, 0.25], [0.0, 1.0]]
    with pytest.raises(ValueError, match="no class shares"):
        tree.with_leaves(tree.values, None).shares()


HEAP = {
    "weights": [[1.0, 0.0], [0.0, 1.0], [0.0, 2.0]],
    "threshold": [1.0, 2.0, 3.0],
    "values": np.arange(7.0)[:, None] * [[1.0, 10.0]],
    "labels": [0, 1, 0, 1, 0, 1, 0],
}


def test_from_heap_complete():
    tree = Tree.from_heap(split=[True, True, True], **HEAP)
    assert tree.heap_numbers == [1, 2, 3, 4, 5, 6, 7]
    assert tree.values[:, 0].tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert tree.labels.tolist() == HEAP["labels"]
    assert tree.threshold.tolist() == [1, 2, 3, 0, 0, 0, 0]
    X = [[1.0, 2.0], [1.0, 2.5], [1.5, 1.5], [1.5, 1.6]]
    assert predict_first(tree, X) == [3, 4, 5, 6]


def predict_first(tree, X):
    return tree.values[route(tree, X), 0].tolist()


def test_from_heap_cuts_what_lies_below_a_node_that_does_not_split():
    tree = Tree.from_heap(split=[True, False, True], **HEAP)
    assert tree.heap_numbers == [1, 2, 3, 6, 7]
    assert tree.values[:, 0].tolist() == [0, 1, 2, 5, 6]


def test_from_heap_without_splits():
    assert Tree.from_heap(split=[False, True, True], **HEAP).n_nodes == 1
    bare = Tree.from_heap([], np.zeros((0, 2)), [], values=[[1.0, 2.0]], labels=None)
    assert (bare.n_nodes, bare.n_features, bare.labels) == (1, 2, None)


def test_unscaled_by_hand():
    tree = Tree.stump([2.0, -1.0], 3.0, [[1.0], [1.0]])
    raw = tree.unscaled(scale=[0.5, 4.0], shift=[10.0, 1.0])
    # 2 * (a - 10) / 2 - 4 * (b - 1) <= 3  <=>  a - 4 b <= 9
    assert raw.weights[0].tolist() == [1.0, -4.0]
    assert raw.threshold.tolist() == [9.0, 0.0, 0.0]


def test_unscaled_by_hand_with_linear_leaves():
    tree = Tree.leaf([3.0], 2, classification=False).with_leaves([[3.0]], None, [[[2.0, -1.0]]])
    raw = tree.unscaled(scale=[0.5, 4.0], shift=[10.0, 1.0])
    # 3 + 2 * (a - 10) / 2 - 4 * (b - 1)  =  -3 + a - 4 b
    assert raw.slopes.tolist() == [[[1.0, -4.0]]] and raw.values.tolist() == [[-3.0]]


def test_new_leaves_without_slopes_are_constant():
    tree = random_tree(np.random.default_rng(0), 3, classification=False, linear=True)
    assert tree.with_leaves(tree.values, None).slopes is None
    assert tree.with_leaves(tree.values, np.zeros(7, dtype=int)).is_classifier
    assert tree.with_leaves(tree.values, None, tree.slopes) == tree
    with pytest.raises(ValueError, match="read-only"):
        tree.slopes[0] = 0.0


def test_collapsed_by_hand():
    tree = Tree(**valid())
    assert tree.collapsed([True] * 5) == tree
    # The root's right side is not kept: the root is replaced by its left child.
    small = tree.collapsed([True, True, False, True, True])
    assert small.category.tolist() == [1, -1, -1]
    assert small.values.tolist() == [[2.0, 1.0], [2.0, 0.0], [0.0, 1.0]]
    # Neither side of the inner split is kept: it becomes a leaf.
    cut = tree.collapsed([True, True, True, False, False])
    assert (cut.n_nodes, cut.category.tolist(), cut.labels.tolist()) == (3, [-1] * 3, [1, 0, 1])
    # Nothing is kept but a leaf.
    leaf = tree.collapsed([True, True, False, False, True])
    assert (leaf.n_nodes, leaf.values.tolist()) == (1, [[0.0, 1.0]])
    # A node that becomes a leaf has slopes of its own.
    linear = tree.with_leaves(tree.values, None, np.arange(20.0).reshape(5, 2, 2))
    assert linear.collapsed([True, True, True, False, False]).slopes.tolist() == linear.slopes[:3].tolist()
    assert linear.collapsed([True, True, False, False, True]).slopes.tolist() == linear.slopes[4:].tolist()


def test_random_trees_have_all_kinds_of_split():
    tree = random_tree(np.random.default_rng(0), 200)
    used = np.count_nonzero(tree.weights[tree.branches], axis=1)
    assert {0, 1, 2, 3} <= set(used.tolist())
    assert (tree.category >= 0).any()
