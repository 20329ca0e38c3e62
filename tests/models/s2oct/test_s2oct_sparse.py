"""Taught trees of S2OCT: levelled at the totals, right on the labels, from sparse to dense, pruned."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier
from tests.examples import looped

from treewright.core.budget import Budget
from treewright.data import PointTotals
from treewright.models.s2oct.fit import _words
from treewright.models.s2oct.objective import S2OCT
from treewright.models.s2oct.search.data import Survey, planes_errors
from treewright.models.s2oct.search.labelled_sides import mended_planes, right_planes
from treewright.models.s2oct.search.levelling import Levelling
from treewright.models.s2oct.search.sparse import (
    SizedTree,
    all_right_tree,
    chosen_size,
    measured_s2oct_tree,
    path_sizes,
    pruned_s2oct_tree,
    sized_trees,
)
from treewright.models.s2oct.search.taught import TaughtSettings, TaughtTrees, taught_planes
from treewright.optimize.settings import S2OCTSearch
from treewright.tree import Tree, n_split_weights, predict_labels
from treewright.tree.complete import Planes, leaves_reached


def survey_of(X, y, counts, depth=2, n_groups=1, **more):
    """A survey of points of one row each, point i in group i modulo `n_groups`; `counts` of each group and class."""
    y = np.asarray(y)
    n = int(np.sum(y < 0))
    size = np.zeros((n, n_groups), dtype=int)
    size[np.arange(n), np.arange(n) % n_groups] = 1
    counts = np.asarray(counts).reshape(n_groups, -1)
    more = {"max_coefficient": 20.0, "margin_rule": "tolerance"} | more
    return Survey(S2OCT(np.asarray(X, float), y, np.ones(len(y)), PointTotals(size, counts, counts), depth, **more))


def noisy(seed, n=60, p=3, n_classes=2, labelled=12):
    """Points, labels of the first ones, and the truth, which is the level of a direction."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * 10
    level = X @ rng.normal(size=p)
    truth = np.digitize(level, np.quantile(level, np.arange(1, n_classes) / n_classes))
    truth[:n_classes] = np.arange(n_classes)
    return X, np.where(np.arange(n) < labelled, truth, -1), truth


def random_planes(rng, X, depth, n_classes, sparse=False):
    n_leaves, (n, p) = 2**depth, X.shape
    omega = rng.normal(size=(n_leaves - 1, p))
    if sparse:
        omega *= np.arange(p) == rng.integers(0, p, n_leaves - 1)[:, None]
    gamma = np.einsum("ij,ij->i", omega, X[rng.integers(0, n, n_leaves - 1)]) + 0.01
    labels = np.arange(n_leaves) % 2 if n_classes == 2 else rng.permutation(np.arange(n_leaves) % n_classes)
    return Planes(omega, gamma, labels)


def labels_of(planes, X):
    return planes.labels[leaves_reached(planes.values(X))]


def worth_of(survey):
    return np.ones(len(survey.X) + len(survey.hidden))


# ---------------------------------------------------------------------- levelling


@given(seed=st.integers(0, 10**6), n_classes=st.integers(2, 4), n_groups=st.integers(1, 2), grid=st.booleans())
@settings(deadline=None, max_examples=25)
def test_levelling_never_misses_more_rows_nor_exceeds_its_features(seed, n_classes, n_groups, grid):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (40, 2)).astype(float) if grid else rng.normal(size=(40, 2))
    y = np.where(np.arange(40) < 8, np.arange(40) % n_classes, -1)
    truth = rng.integers(0, n_classes, 32)
    counts = [np.bincount(truth[g::n_groups], minlength=n_classes) for g in range(n_groups)]
    survey = survey_of(X, y, counts, n_groups=n_groups)
    planes = survey.stretched(random_planes(rng, X, 2, n_classes, sparse=seed % 2 == 0))
    most = 1 + seed // 2 % 2
    levelling = Levelling(survey, truth, worth_of(survey), rng, Budget(), most)
    found = levelling.level(planes)
    assert levelling.missed(found) <= levelling.missed(planes)
    before, after = (np.count_nonzero(some.omega, axis=1) for some in (planes, found))
    assert np.all(after <= np.maximum(before, most))
    full = before >= most
    assert np.all((found.omega[full] != 0) <= (planes.omega[full] != 0))
    assert np.array_equal(found.labels, planes.labels)
    # By counting, without the package.
    got = labels_of(found, survey.hidden)
    each = [np.bincount(got[g::n_groups], minlength=n_classes) - counts[g] for g in range(n_groups)]
    assert levelling.missed(found) == sum(int(np.abs(part).sum()) // 2 for part in each)
    assert np.abs(found.omega).max(initial=0.0) <= np.abs(planes.omega).max(initial=0.0) * (1 + 1e-9)


@looped("seed", range(5))
@looped("depth", [1, 2])
def test_levelling_meets_the_total_of_two_classes_on_distinct_numbers(seed, depth):
    """A threshold that reaches all points passes every count."""
    rng = np.random.default_rng(seed)
    X, y, _ = noisy(seed)
    count = int(rng.integers(0, 49))
    survey = survey_of(X, y, [48 - count, count], depth)
    planes = survey.stretched(random_planes(rng, X, depth, 2))
    found = Levelling(survey, rng.integers(0, 2, 48), worth_of(survey), rng, Budget()).level(planes)
    if depth == 1:
        assert labels_of(found, survey.hidden).sum() == count
    else:  # the sides of the root have both labels below them, so that its threshold alone need not pass all counts
        levelling = Levelling(survey, rng.integers(0, 2, 48), worth_of(survey), rng, Budget())
        assert levelling.missed(found) <= levelling.missed(planes)


def test_the_threshold_of_equal_counts_that_keeps_most_is_taken():
    """Two thresholds give two rows of class 1: right of 5 in the first feature, or right of 5 in the second."""
    X = np.array([[0.0, 0], [9, 9], [1, 1], [2, 8], [3, 7], [8, 2], [7, 3], [4, 4]])
    survey = survey_of(X, [0, 1, -1, -1, -1, -1, -1, -1], [4, 2])
    planes = Planes(np.array([[1.0, 0], [0, 1.0], [0, 0.0]]), np.array([8.5, 8.5, -1.0]), np.array([0, 1, 0, 1]))
    for wanted, expected in (([0, 1, 1, 0, 0, 0], [3, 4]), ([0, 0, 0, 1, 1, 0], [5, 6])):
        levelling = Levelling(survey, np.array(wanted), worth_of(survey), np.random.default_rng(0), Budget())
        found = levelling.level(planes)
        assert np.flatnonzero(labels_of(found, X) == 1).tolist() == [1, *expected]
        assert levelling.kept(found) == 8.0


@pytest.mark.parametrize("seed", range(6))
def test_what_was_taught_is_not_given_up_for_the_totals_of_several_groups(seed):
    """A tree says nearly all that was taught, and thresholds far from its own are levelled.

    The totals are those of what was taught: each row by which the tree itself misses them costs one row at most.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(900, 3)) * 10
    y = np.where(np.arange(900) < 30, np.arange(900) % 2, -1)
    own = random_planes(rng, X, 2, 2)
    taught = labels_of(own, X[y < 0])
    noise = rng.random(870) < 0.15
    taught[noise] = rng.integers(0, 2, noise.sum())
    survey = survey_of(X, y, [np.bincount(taught[g::3], minlength=2) for g in range(3)], n_groups=3)
    moved = survey.stretched(Planes(own.omega, own.gamma + 5 * rng.normal(size=3), own.labels))
    levelling = Levelling(survey, taught, np.concatenate([np.zeros(30), np.ones(870)]), rng, Budget())
    found = levelling.level(moved, kicks=S2OCTSearch().path_kicks)
    assert levelling.missed(found) <= 1
    assert levelling.kept(found) >= levelling.kept(own) - levelling.missed(own)


def test_levelling_without_time_changes_nothing():
    X, y, truth = noisy(0)
    survey = survey_of(X, y, [10, 38])
    budget = Budget(None)
    budget.stop()
    planes = random_planes(np.random.default_rng(0), X, 2, 2)
    assert Levelling(survey, truth[12:], worth_of(survey), np.random.default_rng(0), budget).level(planes) is planes


# ---------------------------------------------------------------------- teaching


@pytest.mark.parametrize("most", [1, 2, None])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_taught_tree_meets_the_totals_learns_and_obeys_its_size(most, n_classes):
    X, y, truth = noisy(1, n=90, n_classes=n_classes)
    counts = np.bincount(truth[y < 0], minlength=n_classes)
    survey = survey_of(X, y, counts)
    planes = taught_planes(survey, truth[y < 0], TaughtSettings(most), 0, Budget())
    got = labels_of(planes, survey.hidden)
    if n_classes == 2:  # a threshold that passes all counts meets one total; two totals need not be met together
        assert np.array_equal(np.bincount(got, minlength=n_classes), counts)
    assert survey.totals.missed(got) <= 4
    assert np.count_nonzero(planes.omega, axis=1).max() <= (most or 3)
    if most is None:  # the truth is two hyperplanes at most
        assert np.mean(got == truth[y < 0]) > 0.85
    used = planes.omega.any(axis=1)
    assert np.allclose(np.abs(planes.omega[used]).max(axis=1), 20.0)  # stretched


def test_a_school_without_unlabelled_points_teaches_the_labels():
    X, _, truth = noisy(2, n=30)
    survey = survey_of(X, truth, [0, 0])
    tree = TaughtTrees(survey, np.zeros(0, dtype=int), TaughtSettings()).tree(Budget())
    greedy = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, truth)
    assert np.mean(predict_labels(tree, X) == truth) >= greedy.score(X, truth)


def test_labelled_points_that_are_wrong_gain_weight_until_they_are_right():
    """What is taught says that one labelled point is wrong; with raises the tree gets it right."""
    X = np.concatenate([np.linspace(0, 10, 21), [7.25]])[:, None]
    y = np.array([*[-1] * 21, 0])
    y[0], y[20] = 0, 1
    taught = (X[y < 0, 0] > 5).astype(int)
    survey = survey_of(X, y, [10, 9], depth=2)
    wrong = []
    for raises in (0, 6):
        tree = TaughtTrees(survey, taught, TaughtSettings(1, own=1.0, price=0.2, raises=raises), 0).tree(Budget())
        wrong.append(int(np.sum(predict_labels(tree, survey.X) != survey.y)))
    assert wrong[1] == 0 <= wrong[0]


# ---------------------------------------------------------------------- labels


@pytest.mark.parametrize("seed", range(4))
def test_labelled_points_get_right_where_they_can_be_parted(seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-10, 10, (50, 2))
    normal = rng.normal(size=2)
    normal /= np.abs(normal).max()
    X = X[np.abs(X @ normal) > 1.0]
    truth = (X @ normal > 0).astype(int)
    y = np.where(np.arange(len(X)) < 12, truth, -1)
    hidden = truth[y < 0]
    survey = survey_of(X, y, np.bincount(hidden, minlength=2), depth=1)
    askew = survey.stretched(Planes((normal + 0.4 * rng.normal(size=2))[None], rng.normal(size=1), np.array([0, 1])))
    found = right_planes(survey, askew, hidden, rng, Budget())
    assert planes_errors(found, survey.X, survey.y)[0].max() <= 1e-6
    # Everything that is taught can be kept, so it is.
    assert np.array_equal(labels_of(found, survey.hidden), hidden)


@pytest.mark.parametrize("seed", range(4))
def test_the_features_of_a_node_are_obeyed(seed):
    X, y, truth = noisy(seed, p=4)
    survey = survey_of(X, y, np.bincount(truth[y < 0], minlength=2))
    rng = np.random.default_rng(seed)
    planes = survey.stretched(random_planes(rng, X, 2, 2))
    support = rng.random((3, 4)) < 0.5
    planes = Planes(planes.omega * support, planes.gamma, planes.labels)
    for found in (
        right_planes(survey, planes, truth[y < 0], rng, Budget(), support),
        mended_planes(survey, planes, truth[y < 0], Budget(), support),
    ):
        assert not np.any(found.omega[~support])
        assert np.abs(found.omega).max() <= 20.0 * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_mending_never_makes_labels_worse_by_much(seed):
    """Labels by lot, that cannot all be right: the hinge errors do not grow."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 2)) * 10
    y = np.where(np.arange(40) < 20, rng.integers(0, 2, 40), -1)
    y[:2] = 0, 1
    survey = survey_of(X, y, [10, 10])
    planes = survey.stretched(random_planes(rng, X, 2, 2))
    found = mended_planes(survey, planes, rng.integers(0, 2, 20), Budget())
    assert survey.error(found) <= survey.error(planes) * (1 + 1e-9)


def test_without_time_planes_stay():
    X, y, truth = noisy(0)
    survey = survey_of(X, y, [24, 24])
    budget = Budget(None)
    budget.stop()
    planes = random_planes(np.random.default_rng(0), X, 2, 2)
    found = mended_planes(survey, planes, truth[y < 0], budget)
    assert np.array_equal(found.omega, planes.omega) and np.array_equal(found.gamma, planes.gamma)


# ---------------------------------------------------------------------- from sparse to dense


def step(terms, learned, missed=0, most=5):
    """A step of the path with so many terms in one split."""
    return SizedTree(
        Tree.stump(np.ones(terms), 0.0, np.eye(2)), most, missed, learned, wrong=0, missed_share=missed / 20
    )


def test_the_smallest_step_that_has_learned_enough_is_chosen():
    path = [step(1, 0.80), step(2, 0.925), step(3, 0.93), step(5, 0.96), step(9, 0.955)]
    assert chosen_size(path) is path[1]  # 4 % below the best are enough
    assert chosen_size(path[:1]) is path[0]
    assert chosen_size(path[2:] + path[:2]) is path[1]  # terms count, not the place in the path
    equal = [step(2, 0.93), step(2, 0.95), step(4, 0.96)]
    assert chosen_size(equal) is equal[1]  # of as many terms the one that has learned more


def test_totals_come_before_what_is_learned():
    path = [step(1, 0.99, missed=1), step(4, 0.80), step(5, 0.82), step(2, 0.70)]
    assert chosen_size(path) is path[1]
    # Splits of any number of features are taken where totals need them, and nowhere else.
    dense = step(9, 0.99, most=None)
    assert chosen_size([step(2, 0.91), dense]).learned == 0.91
    assert chosen_size([step(2, 0.98, missed=1), dense]) is dense
    assert chosen_size([step(2, 0.60), dense]).learned == 0.60
    nobody = [step(1, 0.70, missed=3), step(2, 0.99, missed=5), step(3, 0.90, missed=3)]
    assert chosen_size(nobody) is nobody[2]


def test_where_no_tree_meets_the_totals_small_ones_come_first_too():
    dense = step(19, 0.955, missed=1, most=None)
    path = [step(3, 0.95, missed=1), step(2, 0.945, missed=1), step(6, 0.96, missed=1), dense, step(1, 0.99, missed=2)]
    assert chosen_size(path) is path[1]  # a row that misses the totals is worth three, here 15 % of 20 rows
    all_classes = replace(path[2], n_classes=3)
    assert chosen_size([*path[:2], all_classes]) is all_classes
    assert chosen_size([dense]) is dense


def test_the_path_has_every_size_and_what_it_says_of_itself_is_true():
    X, y, truth = noisy(3, n=80, p=6)
    taught = truth[y < 0]
    survey = survey_of(X, y, np.bincount(taught, minlength=2))
    path = sized_trees(survey, taught, 0, Budget())
    assert {1, 2, 3, 5, None} == {step.most for step in path}
    for found in path:
        tree = found.tree
        assert np.count_nonzero(tree.weights, axis=1).max() <= (found.most or 6)
        assert found.terms == np.count_nonzero(tree.weights[tree.left >= 0])
        known, hidden = predict_labels(tree, survey.X), predict_labels(tree, survey.hidden)
        assert found.wrong == np.sum(known != survey.y)
        assert found.missed == abs(int(hidden.sum()) - int(taught.sum()))
        right = 3.0 * np.sum(known == survey.y) + np.sum(hidden == taught)
        assert found.learned == pytest.approx(right / (3.0 * len(known) + len(hidden)))


def test_without_time_there_is_one_tree():
    X, y, truth = noisy(3)
    survey = survey_of(X, y, np.bincount(truth[y < 0], minlength=2))
    budget = Budget(None)
    budget.stop()
    assert len(sized_trees(survey, truth[y < 0], 0, budget)) == 1


def test_sizes_beyond_the_features_are_left_out():
    X, y, truth = noisy(4, p=1)
    survey = survey_of(X, y, np.bincount(truth[y < 0], minlength=2))
    assert {step.most for step in sized_trees(survey, truth[y < 0], 0, Budget())} == {1, None}


@pytest.mark.parametrize("seed", range(3))
def test_all_right_has_objective_zero_or_leaves_the_tree(seed):
    X, y, truth = noisy(seed, n=70, p=2)
    taught = truth[y < 0]
    survey = survey_of(X, y, np.bincount(taught, minlength=2))
    planes = taught_planes(survey, taught, TaughtSettings(2, 3.0, 1.0), 0, Budget())
    before = measured_s2oct_tree(survey, planes.to_tree(2), taught, 2)
    found = all_right_tree(survey, before, taught, 0, Budget())
    if found is not before:
        assert survey.model.objective(found.tree) <= 1e-9
        assert found.wrong == found.missed == 0 and found.terms <= before.terms
        assert found.learned >= before.learned - 0.01 - 1e-12
    assert all_right_tree(survey, found, taught, 0, Budget()).terms <= found.terms


# ---------------------------------------------------------------------- pruning


def deep(X, threshold, labels, depth=2):
    """A complete tree with thresholds on the first feature."""
    n, p = 2**depth - 1, np.shape(X)[1]
    weights = np.zeros((n, p))
    weights[:, 0] = 1.0
    return Planes(weights, np.array(threshold, float), np.array(labels)).to_tree(2 if max(labels) < 2 else 3)


def test_splits_that_nobody_needs_go():
    X = np.arange(12.0)[:, None]
    y = np.array([0, *[-1] * 10, 1])
    model = survey_of(X, y, [5, 5]).model
    tree = deep(X, [5.5, -3.0, 8.5], [0, 0, 1, 1])
    found = pruned_s2oct_tree(model, tree)
    assert found.n_leaves == 2 and np.array_equal(predict_labels(found, X), predict_labels(tree, X))


def test_a_leaf_of_few_rows_goes_where_totals_allow_it():
    """A leaf with one of 200 rows: it stays where the totals need it, or what was taught does."""
    X = np.arange(202.0)[:, None]
    y = np.array([0, *[-1] * 200, 1])
    tree = deep(X, [100.5, 99.5, 150.5], [0, 1, 1, 1])  # row 100 has label 1 on the left of the root
    labels = predict_labels(tree, X)
    assert labels[100] == 1 and labels[99] == 0 and labels[101:].all()
    needed = survey_of(X, y, [99, 101]).model
    assert np.array_equal(predict_labels(pruned_s2oct_tree(needed, tree), X), labels)
    free = S2OCT(
        X, y, np.ones(202), PointTotals(np.ones((200, 1)), [[95, 95]], [[105, 105]]), 2, margin_rule="tolerance"
    )
    found = pruned_s2oct_tree(free, tree)
    assert found.n_leaves == 2 and predict_labels(found, X)[100] == 0
    kept = pruned_s2oct_tree(free, tree, labels[y < 0])
    assert np.array_equal(predict_labels(kept, X), labels)


def test_a_leaf_of_a_labelled_point_stays():
    X = np.arange(202.0)[:, None]
    y = np.array([0, *[-1] * 200, 1])
    y[100] = 1
    free = S2OCT(X, y, np.ones(202), PointTotals(np.ones((199, 1)), [[0, 0]], [[199, 199]]), 2, margin_rule="tolerance")
    tree = deep(X, [100.5, 99.5, 150.5], [0, 1, 0, 1])
    assert predict_labels(pruned_s2oct_tree(free, tree), X)[100] == 1


@looped("seed", range(8))
def test_pruning_keeps_totals_labels_and_a_leaf_for_every_labelled_class(seed):
    rng = np.random.default_rng(seed)
    n_classes = 2 + seed % 2
    X = rng.normal(size=(150, 2)) * 10
    y = np.where(np.arange(150) < 12, rng.integers(0, n_classes, 150), -1)
    y[:n_classes] = np.arange(n_classes)
    truth = rng.integers(0, n_classes, 138)
    survey = survey_of(X, y, np.bincount(truth, minlength=n_classes))
    model = survey.model
    tree = model.repair(random_planes(rng, X, 2, n_classes).to_tree(n_classes))
    for taught in (None, truth):
        found = pruned_s2oct_tree(model, tree, taught)
        before, after = predict_labels(tree, X), predict_labels(found, X)
        assert np.array_equal(before[y >= 0], after[y >= 0])
        assert model.totals.missed(after[y < 0]) <= model.totals.missed(before[y < 0])
        assert n_split_weights(found) <= n_split_weights(tree)
        assert np.isfinite(model.objective(found))
        if taught is not None:
            assert np.sum(after[y < 0] == truth) >= np.sum(before[y < 0] == truth)


def test_a_leaf_that_is_the_only_one_of_a_labelled_class_stays():
    """The labelled point of class 1 is wrong, and no row reaches the leaf of its class: without it the error of the
    point would be infinite."""
    X = np.arange(12.0)[:, None]
    y = np.full(12, -1)
    y[0], y[4] = 0, 1
    model = survey_of(X, y, [10, 0]).model
    tree = deep(X, [11.5, -3.0, 12.5], [0, 0, 1, 1])
    assert predict_labels(tree, X).sum() == 0
    assert np.isfinite(model.objective(tree)) and np.isfinite(model.objective(pruned_s2oct_tree(model, tree)))


def test_every_sized_tree_has_a_finite_objective():
    """Noise of three classes, of which the totals allow next to none: each labelled class keeps a leaf."""
    for seed, rare in product(range(2), (0, 1)):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(50, 2)) * 10
        y = np.where(np.arange(50) < 20, np.arange(50) % 3, -1)
        survey = survey_of(X, y, [30 - rare, rare, 0])
        taught = np.zeros(30, dtype=int)
        taught[:rare] = 1
        for found in sized_trees(survey, taught, seed, Budget()):
            assert np.isfinite(survey.model.objective(found.tree))


@pytest.mark.parametrize(
    ("n_features", "most"), [(1, [1, 1, 1, None]), (2, [2, 1, 1, 2, None]), (9, [3, 1, 1, 2, None])]
)
def test_sizes_are_those_that_the_features_allow(n_features, most):
    search = S2OCTSearch(path=((3, 1.0), (1, 3.0), (1, 1.0), (2, 3.0), (None, 0.2)))
    model = SimpleNamespace(X=np.zeros((4, n_features)), y=np.array([0, 0, 0, -1]), labelled=np.arange(3))
    survey = SimpleNamespace(model=model, search=search)
    assert [few for few, _ in path_sizes(survey)] == most
    best = SimpleNamespace(tree=Tree.leaf([3.0, 0.0], n_features), missed=1)
    words = _words(best, survey, np.ones(4), len(most))
    assert "time" not in words and "1 row misses the totals, all labels are right" in words
    assert f"the time was over after 1 of {len(most)} sizes of trees" in _words(best, survey, np.ones(4), 1)
