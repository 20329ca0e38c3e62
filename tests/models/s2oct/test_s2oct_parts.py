"""The parts of the S2OCT search against enumeration, routing and the measures."""

from itertools import product

import numpy as np
import pytest
from tests.examples import looped

from treewright.core.budget import Budget
from treewright.data import PointTotals
from treewright.models.s2oct.objective import S2OCT
from treewright.models.s2oct.search.attempts import _Offers, _Run
from treewright.models.s2oct.search.choice import (
    TreePool,
    committee_labels,
    committee_shares,
    committee_trees,
    preferred_tree,
)
from treewright.models.s2oct.search.data import Survey, planes_errors
from treewright.models.s2oct.search.margins import planes_with_room
from treewright.models.s2oct.search.moves import Moves, shrunk_planes
from treewright.models.s2oct.search.structure import logistic_planes
from treewright.optimize.incumbent import Incumbent
from treewright.solvers.linear import LinearProgram
from treewright.teachers.auto import auto_teacher
from treewright.tree import Tree, route
from treewright.tree.complete import Planes, leaves_reached, passes


def planes_of(seed, depth=2, p=3, n_classes=2):
    rng = np.random.default_rng(seed)
    n = 2**depth
    labels = np.arange(n) % 2 if n_classes == 2 else rng.integers(0, n_classes, n)
    return Planes(rng.normal(size=(n - 1, p)), 0.3 * rng.normal(size=n - 1), labels), rng


def model_of(X, y, count, **settings):
    y = np.asarray(y)
    n = int(np.sum(y < 0))
    totals = PointTotals(np.ones((n, 1)), [[n - count, count]], [[n - count, count]])
    settings = {"margin_rule": "tolerance"} | settings
    return S2OCT(np.asarray(X, float), y, np.ones(len(y)), totals, **settings)


# ---------------------------------------------------------------------- totals


@pytest.mark.parametrize("seed", range(5))
def test_points_of_a_class_without_a_leaf_have_no_error_and_stay_where_they_are(seed):
    planes, rng = planes_of(seed)
    X, y = rng.normal(size=(20, 3)), np.arange(20) % 3
    lost = y == 2  # no leaf has that class
    error, leaf = planes_errors(planes, X, y)
    own, own_leaf = planes.own_errors(X, y)
    assert np.isinf(own[lost]).all() and not error[lost].any()
    assert error[~lost].tolist() == own[~lost].tolist() and leaf[~lost].tolist() == own_leaf[~lost].tolist()
    assert leaf[lost].tolist() == leaves_reached(planes.values(X))[lost].tolist()


@pytest.mark.parametrize("count", [3, 10, 17])
def test_a_hyperplane_moves_to_any_count(count):
    """One labelled point at either end: every count between is reached, and both stay right."""
    rng = np.random.default_rng(count)
    X = np.vstack([[-9.0, 0.0], [9.0, 0.0], rng.uniform(-5, 5, (20, 2))])
    model = model_of(X, [0, 1, *[-1] * 20], count, depth=1, max_coefficient=10.0)
    start = Planes(np.array([[1.0, 0.0]]), np.array([0.0]), np.array([0, 1]))
    planes = Moves(Survey(model), rng, Budget()).meet_totals(start)
    label = planes.labels[leaves_reached(planes.values(X))]
    assert label[2:].sum() == count
    assert label[:2].tolist() == [0, 1]
    assert planes_errors(planes, X[:2], np.array([0, 1]))[0].sum() == 0.0


def test_widening_changes_no_side():
    rng = np.random.default_rng(1)
    X = np.vstack([[-9.0, 0.0], [9.0, 0.0], rng.uniform(-5, 5, (30, 2))])
    model = model_of(X, [0, 1, *[-1] * 30], 15, depth=1, max_coefficient=10.0)
    near = Planes(np.array([[1.0, 0.2]]), np.array([float(X[5] @ [1.0, 0.2]) + 1e-5]), np.array([0, 1]))
    wide = Moves(Survey(model), rng, Budget()).widened(near)
    assert np.array_equal(near.values(X) > 0, wide.values(X) > 0)
    assert np.abs(wide.values(X[2:])).min() > np.abs(near.values(X[2:])).min()


def test_every_program_of_a_move_gets_the_time_that_is_left(monkeypatch):
    given, solve = [], LinearProgram.solve

    def told(program, seconds=np.inf):
        given.append(seconds)
        return solve(program, seconds)

    monkeypatch.setattr(LinearProgram, "solve", told)
    rng = np.random.default_rng(1)
    X = np.vstack([[-9.0, 0.0], [9.0, 0.0], rng.uniform(-5, 5, (30, 2))])
    model = model_of(X, [0, 1, *[-1] * 30], 15, depth=1, max_coefficient=10.0)
    near = Planes(np.array([[1.0, 0.2]]), np.array([float(X[5] @ [1.0, 0.2]) + 1e-5]), np.array([0, 1]))
    for move in (Moves.widened, Moves.meet_totals):
        given.clear()
        move(Moves(Survey(model), rng, Budget(3.0)), near)
        assert given and max(given) <= 3.0


def test_programs_are_kept_for_few_nodes_and_follow_the_labelled_points():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 2))
    y = np.where(np.arange(40) < 10, (X[:, 0] > 0).astype(int), -1)
    moves = Moves(Survey(model_of(X, y, 15, depth=7, max_coefficient=50.0)), rng, Budget())
    sides = np.where(y[y >= 0] > 0, 1.0, -1.0)
    first = moves._program(0, sides)
    assert moves._program(0, sides) is first
    fewer = np.where(np.arange(10) < 5, sides, 0.0)
    other = moves._program(0, fewer)
    assert other is not first and other.n_hard == 5
    for node in range(100):
        moves._program(node, sides)
    assert len(moves._programs) <= 32 and moves._program(99, sides) is moves._programs[99][1]


# ---------------------------------------------------------------------- choice


def stumps_and_more(X, y):
    """Four trees of depth 2 with the same objective 0, each preferred for another reason."""
    model = model_of(X, y, 2, depth=2, max_coefficient=10.0)
    label = [0, 0, 0, 0, 1, 0, 1]

    def tree(weights, threshold):
        return Tree.from_heap(np.ones(3), np.array(weights, float), np.array(threshold, float), np.ones((7, 2)), label)

    # The root parts -1 and 1 in the first feature. Below it, the splits of the first tree are through points that do
    # not get there; those of the others are nearer to the points that do.
    across = tree([[1, 0], [0.0, 0], [1, 0]], [0.0, -1.0, -0.95])
    oblique = tree([[1, 0.1], [0, 0], [0, 0]], [0.0, 1.0, -1.0])
    near = tree([[1, 0], [0, 0], [0, 0]], [0.9, 1.0, -1.0])
    plain = tree([[1, 0], [0, 0], [0, 0]], [0.5, 1.0, -1.0])
    return model, across, oblique, near, plain


def test_each_preference_has_its_own_tree():
    X = np.array([[-9.0, 0], [9.0, 0], [-1, 0.5], [-1, -0.5], [1, 0.5], [1, -0.5]])
    model, across, oblique, near, plain = stumps_and_more(X, [0, 1, -1, -1, -1, -1])
    hidden = X[2:]
    # Nearest point to a split on its way, by hand: all but `across` have one split.
    assert [float(np.abs(hidden @ t.weights[0] - t.threshold[0]).min()) for t in (oblique, near, plain)] == (
        pytest.approx([0.95, 0.1, 0.5])
    )
    labels = [np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1])]
    pool = TreePool(0.0, [near, plain, oblique, across], labels)
    assert preferred_tree(pool, model, "first") == 0
    assert preferred_tree(pool, model, "typical") == 0
    assert preferred_tree(pool, model, "sparse") == 0
    # Points left of 0 are 1 from the root and do not meet the third split, which is 0.05 from them; those on the right
    # are 1 from the root and 1.95 from the third split.
    assert preferred_tree(pool, model, "margin") == 3
    pool = TreePool(0.0, [across, oblique, plain, near], [labels[1], labels[0], labels[2], labels[0]])
    assert preferred_tree(pool, model, "typical") == 1
    assert preferred_tree(pool, model, "margin") == 0
    # What no point reaches does not count: without its third split the tree across has one term, as the plain one has.
    assert preferred_tree(pool, model, "sparse") == 0
    assert preferred_tree(TreePool(0.0, [oblique, plain, across], labels[:3]), model, "sparse") == 1
    # Agreement counts first, then terms: the oblique tree and the plain one label alike.
    taught = TreePool(0.0, [across, oblique, plain], [labels[1], labels[0], labels[2]], taught=labels[0])
    assert preferred_tree(taught, model, "taught") == 2


def test_a_committee_votes_within_the_totals_and_one_tree_labels_as_it_does():
    X = np.arange(6.0)[:, None]
    model = model_of(X, [0, 1, -1, -1, -1, -1], 2, depth=1)
    labels = [np.array(v) for v in ([0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 1, 1], [0, 1, 1, 1])]
    trees = [Tree.stump([1.0], 0.5, [[1.0, 0.0], [0.0, 1.0]])] * 4
    pool = TreePool(0.0, trees, labels, taught=np.array([1, 1, 0, 0]))
    # The trees agree with the teacher on 0, 2, 0 and 1 of the four points.
    assert committee_trees(pool, model, "first", 3) == [0, 1, 3]
    assert committee_trees(pool, model, "taught", 4) == [1, 3, 0, 2]
    # Votes for class 1, the teacher's half among them: .5, 2.5, 3, 4 of 4.5; the last tree has all of them.
    assert committee_trees(pool, model, "typical", 3) == [3, 1, 0]
    assert committee_trees(pool, model, "first", 1) == [0]
    assert committee_labels(pool, model, [0, 1, 2]).tolist() == [0, 0, 1, 1]
    assert committee_labels(pool, model, [3]).tolist() == [0, 1, 1, 1]  # three of class 1, as the tree says
    assert np.allclose(committee_shares(labels, 2, None).sum(axis=1), 1.0)


def test_a_pool_keeps_the_best_alone():
    X = np.array([[0.0], [10.0], [2.0], [8.0]])
    model = model_of(X, [0, 1, -1, -1], 1, depth=1)
    good = model.repair(Tree.stump([1.0], 5.0, [[1.0, 0.0], [0.0, 1.0]]))
    bad = model.repair(Tree.leaf([1.0, 0.0], 1))
    pool = TreePool()
    for tree in (bad, good, bad, good):
        pool.add(model, tree, model.objective(tree))
    assert len(pool.trees) == 2
    assert pool.objective == 0.0
    assert all(len(set(route(tree, X))) == 2 for tree in pool.trees)


def test_a_pool_knows_slightly_worse_trees_that_agree_more_with_the_teacher():
    X = np.array([[0.0], [10.0], [2.0], [4.0], [6.0], [8.0]])
    model = model_of(X, [0, 1, -1, -1, -1, -1], 2, depth=1)

    def stump(threshold):
        return Tree.stump([1.0], threshold, [[1.0, 0.0], [0.0, 1.0]])

    pool = TreePool(taught=np.array([0, 0, 0, 0]))  # so thresholds of 3, 5, 7, 9 agree on 1, 2, 3, 4 of the points
    for threshold, objective in ((9, 20.0), (7, 11.0), (3, 10.4), (3, 10.0), (5, 10.9), (1, 10.2), (9, 11.6)):
        pool.add(model, stump(threshold), objective)
    assert pool.objective == 10.0 and [t.threshold[0] for t in pool.trees] == [3]
    assert [(objective, tree.threshold[0]) for objective, tree, _ in pool.near] == [(10.9, 5), (11.0, 7)]
    assert [t.threshold[0] for t in pool.up_to(10.0).trees] == [3]
    assert [t.threshold[0] for t in pool.up_to(10.9).trees] == [3, 5]
    assert preferred_tree(pool.up_to(11.5), model, "taught") == 2
    # Far better ones leave nothing near them, and of optimal ones nothing is near.
    pool.add(model, stump(3), 9.5)
    assert [objective for objective, _, _ in pool.near] == [10.9]
    pool.add(model, stump(1), 0.0)
    assert not pool.near and [t.threshold[0] for t in pool.up_to(1.0).trees] == [1]


# ---------------------------------------------------------------------- trees to begin with


@pytest.mark.parametrize("n_classes", [2, 3, 5, 8])
def test_logistic_regressions_part_classes_that_can_be_parted(n_classes):
    rng = np.random.default_rng(n_classes)
    centre = rng.normal(size=(n_classes, 6)) * 40
    truth = np.arange(40 * n_classes) % n_classes
    X = centre[truth] + rng.normal(size=(len(truth), 6))
    y = np.where(np.arange(len(truth)) < 10 * n_classes, truth, -1)
    total = np.full((1, n_classes), 30)
    model = S2OCT(
        X, y, np.ones(len(y)), PointTotals(np.ones((30 * n_classes, 1)), total, total), depth=3, max_coefficient=10.0
    )
    planes, nodes = logistic_planes(Survey(model), Budget())
    assert len(nodes) == n_classes - 1
    label = planes.labels[leaves_reached(planes.values(X))]
    assert np.array_equal(label, truth)


def test_without_time_directions_are_differences_of_means():
    X = np.array([[-5.0, 0], [-4, 0], [5, 1], [4, 1], [-3, 0], [3, 1]])
    model = model_of(X, [0, 0, 1, 1, -1, -1], 1, depth=2, max_coefficient=10.0)
    budget = Budget(None)
    budget.stop()
    planes, nodes = logistic_planes(Survey(model), budget)
    assert nodes == [1]  # the first of the lowest nodes; the root sends everything there
    assert planes.labels[leaves_reached(planes.values(X))].tolist() == [0, 0, 1, 1, 0, 1]


@pytest.mark.parametrize("margin", ["tolerance", "paper"])
@looped("seed", range(6))
def test_scales_are_the_best_of_those_tried(seed, margin):
    """Node by node against the error recomputed for each scale; no unlabelled point loses its side or its margin."""
    planes, rng = planes_of(seed, depth=2, p=3)
    X = rng.normal(size=(60, 3)) * 5
    y = np.where(np.arange(60) < 40, rng.integers(0, 2, 60), -1)
    model = model_of(X, y, 10, depth=2, max_coefficient=100.0, margin_rule=margin)
    survey = Survey(model)
    planes = survey.stretched(planes)
    found = shrunk_planes(survey, planes, Budget())
    hidden, required = survey.hidden, 1.0 if margin == "paper" else model.tolerance
    expected = planes
    for node in range(3):
        values = expected.values(hidden)
        here = passes(leaves_reached(values), node, planes.shape)[0] | (margin == "paper")
        best, least = expected, survey.error(expected)
        for k in range(1, 16):
            factor = max(0.5**k, required / np.abs(values[here, node]).min(initial=np.inf))
            if factor < 1:
                scaled = expected.replaced(node, expected.omega[node] * factor, expected.gamma[node] * factor)
                if survey.error(scaled) < least:
                    best, least = scaled, survey.error(scaled)
        expected = best
    assert survey.error(found) == pytest.approx(survey.error(expected), rel=1e-9)
    assert survey.error(found) < survey.error(planes)
    assert np.array_equal(found.values(hidden) > 0, planes.values(hidden) > 0)


def test_the_number_of_an_attempt_says_what_it_does_and_the_seed_does_not():
    X, y = np.arange(20.0)[:, None], np.array([0, *[-1] * 18, 1])
    model = model_of(X, y, 9, margin_rule="paper")
    survey = Survey(model)
    teacher = auto_teacher(survey.teacher_points, 0, Budget())

    def run(seed):
        offers = _Offers(Incumbent(model), model, TreePool(teacher=teacher, taught=teacher.labels()))
        return _Run(offers, survey, teacher, Budget(), seed, samples=1, n_jobs=1)

    runs = [run(seed) for seed in (0, 1, 2, 3, 1234)]
    kinds = [
        [(t.shallow, t.simplify, t.alone, t.random_root, t.guidance) for t in map(one._task, range(12))] for one in runs
    ]
    assert all(kind == kinds[0] for kind in kinds)
    assert len(set(kinds[0])) == 12
    kinds_taught = [[one._taught_task(k).settings for k in range(12)] for one in runs]
    assert all(kind == kinds_taught[0] for kind in kinds_taught)
    # What the teacher says comes first, in every manner; then variations of it, which differ from seed to seed.
    labels = [one._taught_task(0).taught for one in runs]
    assert all(np.array_equal(taught, teacher.labels()) for taught in labels)


# ---------------------------------------------------------------------- room for margins


@pytest.mark.parametrize("margin", ["paper", "reached"])
@looped("seed", range(4))
def test_hyperplanes_find_room_and_keep_totals_and_labels(seed, margin):
    rng = np.random.default_rng(seed)
    grid = np.array(list(product(range(8), range(8))), float) + rng.uniform(-0.05, 0.05, (64, 2))
    # Between the third and the fourth column there is room; the hyperplane begins askew, through points.
    y = np.full(64, -1)
    y[np.argmin(grid @ [1, 0.01])], y[np.argmax(grid @ [1, 0.01])] = 0, 1
    right = int(np.sum((grid[:, 0] > 2.5) & (y < 0)))
    model = model_of(grid, y, right, depth=1, max_coefficient=4.0, margin_rule=margin)
    moves = Moves(Survey(model), np.random.default_rng(seed), Budget(60))
    askew = Planes(np.array([[4.0, 0.4]]), np.array([12.0]), np.array([0, 1]))
    hidden = grid[y < 0]
    assert np.abs(askew.values(hidden)).min() < 1.0
    planes = planes_with_room(moves, askew)
    assert np.abs(planes.values(hidden)).min() >= 1.0 - 1e-6
    assert np.abs(planes.omega).max() <= 4.0 + 1e-9
    assert int((planes.values(hidden) > 0).sum()) == right
    assert planes_errors(planes, grid[y >= 0], y[y >= 0])[0].max() <= 1e-6


def test_without_room_the_time_ends_the_attempt_and_labels_stay():
    X = np.linspace(0, 1, 40)[:, None]
    y = np.full(40, -1)
    y[0], y[-1] = 0, 1
    model = model_of(X, y, 19, depth=1, max_coefficient=4.0, margin_rule="paper")
    moves = Moves(Survey(model), np.random.default_rng(0), Budget(5))
    start = Planes(np.array([[4.0]]), np.array([2.0]), np.array([0, 1]))
    planes = planes_with_room(moves, start)
    # The 38 points are 1/39 apart, and a margin of 1 on both sides would need 2/4.
    assert np.abs(planes.values(X[y < 0])).min() < 1.0
    assert planes_errors(planes, X[y >= 0], y[y >= 0])[0].max() <= 1e-6
