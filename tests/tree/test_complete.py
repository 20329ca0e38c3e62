"""Completed trees of hyperplanes against walks, routing and definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import looped

from treewright.exceptions import InvalidInputError
from treewright.tree import Tree, predict_labels
from treewright.tree.complete import (
    FREE,
    CompleteTree,
    Planes,
    completed_leaves,
    labels_on_either_side,
    leaves_reached,
    passes,
)


def random_planes(seed, depth=2, p=3, n_classes=2):
    rng = np.random.default_rng(seed)
    n = 2**depth
    labels = np.arange(n) % 2 if n_classes == 2 else rng.integers(0, n_classes, n)
    return Planes(rng.normal(size=(n - 1, p)), 0.3 * rng.normal(size=n - 1), labels), rng


def random_tree(rng, n_classes, split):
    """A tree of depth at most 2 with splits where `split` says so."""
    values = rng.random((7, n_classes))
    return Tree.from_heap(split, rng.normal(size=(3, 2)), rng.normal(size=3), values, values.argmax(axis=1))


def labels_of(planes, X):
    return planes.labels[leaves_reached(planes.values(X))]


# ---------------------------------------------------------------------- the complete tree


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_sides_of_leaves_by_walking(depth):
    tree = CompleteTree(depth)
    for leaf in range(tree.n_leaves):
        node = leaf + tree.n_leaves
        left, right = set(), set()
        while node > 1:
            (right if node % 2 else left).add(node // 2 - 1)
            node //= 2
        assert set(np.flatnonzero(tree.left_of[:, leaf])) == left
        assert set(np.flatnonzero(tree.right_of[:, leaf])) == right


def test_last_leaf():
    assert CompleteTree(2).last_leaf.tolist() == [3, 1, 3, 0, 1, 2, 3]


@given(st.integers(1, 6), st.data())
def test_swapping_turns_one_step_of_every_path_through_the_node(depth, data):
    """Paths as texts of 0 and 1: where they go on below the node, the next step is the other one."""
    tree = CompleteTree(depth)
    node = data.draw(st.integers(0, tree.n_branches - 1))
    at = format(node + 1, "b")
    for position, moved in enumerate(tree.swapped(node)):
        path = format(position + 1, "b")
        if path.startswith(at) and len(path) > len(at):
            step = "1" if path[len(at)] == "0" else "0"
            path = at + step + path[len(at) + 1 :]
        assert format(moved + 1, "b") == path


# ---------------------------------------------------------------------- planes and trees


@looped("depth", [1, 2, 3])
@looped("n_classes", [2, 3])
def test_planes_route_like_their_tree(depth, n_classes):
    planes, rng = random_planes(depth, depth, n_classes=n_classes)
    X = rng.normal(size=(200, 3))
    tree = planes.to_tree(n_classes)
    leaf = leaves_reached(planes.values(X))
    assert np.array_equal(planes.labels[leaf], predict_labels(tree, X))
    again = Planes.from_tree(tree, depth)
    assert all(np.array_equal(getattr(again, name), getattr(planes, name)) for name in ("omega", "gamma", "labels"))
    for node in range(len(planes.gamma)):
        here, left = passes(leaf, node, planes.shape)
        assert np.array_equal(left & here, here & (planes.values(X)[:, node] <= 0))


@looped("go_left", [True, False])
@looped("n_classes", [2, 3])
@looped("seed", range(8))
def test_any_tree_completed_predicts_the_same(seed, n_classes, go_left):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, n_classes, [seed != 7, bool(seed % 2), bool(seed % 3)])
    X = rng.normal(size=(100, 2))
    planes = Planes.from_tree(tree, 3, go_left=go_left)
    assert np.array_equal(labels_of(planes, X), predict_labels(tree, X))
    assert np.count_nonzero(planes.labels != FREE) == tree.n_leaves
    place = completed_leaves(tree, 3, go_left)
    assert planes.labels[place].tolist() == tree.labels[tree.leaves].tolist()
    whole = planes.with_all_labels(n_classes)
    assert whole.labels.min() >= 0
    assert np.array_equal(labels_of(whole, X), predict_labels(tree, X))
    if n_classes == 2:
        assert whole.labels.tolist() == [0, 1] * 4


def test_what_lies_below_the_depth_is_cut_off():
    rng = np.random.default_rng(0)
    tree = random_tree(rng, 2, [True, True, True])
    planes = Planes.from_tree(tree, 1)
    assert planes.omega.tolist() == [tree.weights[0].tolist()]
    assert planes.labels.tolist() == tree.labels[[1, 2]].tolist()


def test_nodes_that_do_not_split_have_the_label_of_their_last_leaf():
    planes, _ = random_planes(0, n_classes=3)
    tree = planes.to_tree(3, split=np.array([True, False, True]))
    assert tree.heap_numbers == [1, 2, 3, 6, 7]
    assert tree.labels[tree.leaves].tolist() == planes.labels[1:].tolist()


def test_trees_that_have_no_planes_are_refused():
    coded = Tree([1, -1, -1], [2, -1, -1], np.zeros((3, 2)), np.zeros(3), np.eye(3)[:, :2], [0, 0, 1], [1, -1, -1])
    with pytest.raises(InvalidInputError, match="categorical splits .the first at node 0."):
        Planes.from_tree(coded, 2)
    with pytest.raises(ValueError, match="no labels"):
        Planes.from_tree(Tree.leaf([1.0], 2, classification=False), 2)


# ---------------------------------------------------------------------- changes that change no label


@looped("seed", range(6))
def test_mirror_images_label_and_charge_points_as_before(seed):
    planes, rng = random_planes(seed, depth=3, n_classes=3)
    X, y = rng.normal(size=(80, 3)), rng.integers(0, 3, 80)
    error, _ = planes.own_errors(X, y)
    for node in range(7):
        image = planes.mirrored(node)
        assert np.array_equal(labels_of(image, X), labels_of(planes, X))
        assert np.allclose(image.own_errors(X, y)[0], error)
        assert np.array_equal(image.omega[node], -planes.omega[node])
        back = image.mirrored(node)
        assert all(np.array_equal(getattr(back, name), getattr(planes, name)) for name in ("omega", "gamma", "labels"))
    rising = planes.rising()
    assert np.all(rising.labels[0::2] <= rising.labels[1::2])
    assert np.array_equal(labels_of(rising, X), labels_of(planes, X))
    assert np.allclose(rising.own_errors(X, y)[0], error)


def test_equal_siblings_become_one_leaf_and_a_free_one():
    planes, rng = random_planes(1)
    same = Planes(planes.omega, planes.gamma, np.array([1, 1, 0, 1]))
    merged = same.without_equal_siblings()
    X = rng.normal(size=(50, 3))
    assert merged.labels.tolist() == [1, FREE, 0, 1]
    assert (merged.omega[1].tolist(), merged.gamma[1]) == ([0.0] * 3, 1.0)
    assert np.array_equal(labels_of(merged, X), labels_of(same, X))
    assert same.labels.tolist() == [1, 1, 0, 1]


# ---------------------------------------------------------------------- errors


def plain_errors(tree, x, node=0, so_far=0.0):
    """Label and leaf error of each leaf, by the definition."""
    if tree.left[node] < 0:
        return [(int(tree.labels[node]), so_far)]
    f = sum(float(w) * float(v) for w, v in zip(tree.weights[node], x, strict=True)) - float(tree.threshold[node])
    left = plain_errors(tree, x, tree.left[node], so_far + max(0.0, 1.0 + f))
    return left + plain_errors(tree, x, tree.right[node], so_far + max(0.0, 1.0 - f))


@pytest.mark.parametrize("seed", range(5))
def test_errors_are_their_definition(seed):
    planes, rng = random_planes(seed, depth=1 + seed % 3, n_classes=3)
    tree = planes.to_tree(3)
    X, y = rng.normal(size=(20, 3)), rng.integers(0, 3, 20)
    error, leaf = planes.own_errors(X, y)
    for i, x in enumerate(X):
        expected = plain_errors(tree, x)
        assert planes.leaf_errors(X)[i] == pytest.approx([e for _, e in expected])
        least = min((e for label, e in expected if label == y[i]), default=np.inf)
        assert error[i] == pytest.approx(least)
        if least < np.inf:
            assert expected[leaf[i]] == (y[i], pytest.approx(least))


def test_a_split_that_splits_nothing_is_a_second_chance():
    idle = Planes(np.zeros((1, 1)), np.ones(1), np.array([0, 1]))  # f = -1 everywhere
    assert idle.leaf_errors(np.array([[7.0]])).tolist() == [[0.0, 2.0]]


def test_labels_on_either_side_by_forcing_the_threshold():
    planes, rng = random_planes(3)
    X = rng.normal(size=(60, 3))
    for node in range(3):
        left, right = labels_on_either_side(planes, node, planes.values(X))
        for label, gamma in ((left, 1e9), (right, -1e9)):
            assert np.array_equal(label, labels_of(planes.replaced(node, planes.omega[node], gamma), X))
