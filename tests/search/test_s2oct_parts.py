"""The parts of the S2OCT search against enumeration, routing and the measures."""

from itertools import product

import numpy as np
import pytest

from treewright.budget import Budget
from treewright.data import PointTotals
from treewright.formulations import S2OCT
from treewright.search.s2oct.attempts import Pool
from treewright.search.s2oct.choice import choose, committee, vote_shares
from treewright.search.s2oct.guides import Guide
from treewright.search.s2oct.moves import Moves
from treewright.search.s2oct.room import settled
from treewright.solvers.linear import LinearProgram
from treewright.tree import Tree, route
from treewright.tree.complete import Planes, leaves_reached, planes_errors


def model_of(X, y, count, **settings):
    y = np.asarray(y)
    n = int(np.sum(y < 0))
    totals = PointTotals(np.ones((n, 1)), [[n - count, count]], [[n - count, count]])
    settings = {"margin": "tolerance"} | settings
    return S2OCT(np.asarray(X, float), y, np.ones(len(y)), totals, **settings)


# ---------------------------------------------------------------------- totals


@pytest.mark.parametrize("count", [3, 10, 17])
def test_a_hyperplane_moves_to_any_count(count):
    """One labelled point at either end: every count between is reached, and both stay right."""
    rng = np.random.default_rng(count)
    X = np.vstack([[-9.0, 0.0], [9.0, 0.0], rng.uniform(-5, 5, (20, 2))])
    model = model_of(X, [0, 1, *[-1] * 20], count, depth=1, bound=10.0)
    start = Planes(np.array([[1.0, 0.0]]), np.array([0.0]), np.array([0, 1]))
    planes = Moves(model, rng, Budget()).meet_totals(start)
    label = planes.labels[leaves_reached(planes.values(X))]
    assert label[2:].sum() == count
    assert label[:2].tolist() == [0, 1]
    assert planes_errors(planes, X[:2], np.array([0, 1]))[0].sum() == 0.0


def test_widening_changes_no_side():
    rng = np.random.default_rng(1)
    X = np.vstack([[-9.0, 0.0], [9.0, 0.0], rng.uniform(-5, 5, (30, 2))])
    model = model_of(X, [0, 1, *[-1] * 30], 15, depth=1, bound=10.0)
    near = Planes(np.array([[1.0, 0.2]]), np.array([float(X[5] @ [1.0, 0.2]) + 1e-5]), np.array([0, 1]))
    wide = Moves(model, rng, Budget()).widened(near)
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
    model = model_of(X, [0, 1, *[-1] * 30], 15, depth=1, bound=10.0)
    near = Planes(np.array([[1.0, 0.2]]), np.array([float(X[5] @ [1.0, 0.2]) + 1e-5]), np.array([0, 1]))
    for move in (Moves.widened, Moves.meet_totals):
        given.clear()
        move(Moves(model, rng, Budget(3.0)), near)
        assert given and max(given) <= 3.0


def test_programs_are_kept_for_few_nodes_and_follow_the_labelled_points():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 2))
    y = np.where(np.arange(40) < 10, (X[:, 0] > 0).astype(int), -1)
    moves = Moves(model_of(X, y, 15, depth=7, bound=50.0), rng, Budget())
    sides = np.where(y[y >= 0] > 0, 1.0, -1.0)
    first = moves._program(0, sides)
    assert moves._program(0, sides) is first
    fewer = np.where(np.arange(10) < 5, sides, 0.0)
    other = moves._program(0, fewer)
    assert other is not first and other.n_hard == 5
    for node in range(100):
        moves._program(node, sides)
    assert len(moves._programs) <= 32 and moves._program(99, sides) is moves._programs[99][1]


# ---------------------------------------------------------------------- guides and choice


def test_guides_keep_the_totals_and_know_classes_without_labels():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(0, 1, (30, 2)), rng.normal([9, 0], 1, (30, 2)), rng.normal([0, 9], 1, (10, 2))])
    truth = np.repeat([0, 1, 2], [30, 30, 10])
    y = np.full(70, -1)
    y[[0, 1, 2, 30, 31, 32]] = truth[[0, 1, 2, 30, 31, 32]]
    total = np.array([[27, 27, 10]])
    guide = Guide(X, y, np.ones(70), PointTotals(np.ones((64, 1)), total, total), 0, Budget())
    assert np.bincount(guide.labels()).tolist() == [27, 27, 10]
    assert np.mean(guide.labels() == truth[y < 0]) == 1.0
    assert np.bincount(guide.varied(rng)).tolist() == [27, 27, 10]


def test_the_typical_tree_agrees_most_with_all():
    X = np.arange(6.0)[:, None]
    model = model_of(X, [0, 1, -1, -1, -1, -1], 2, depth=1)
    labels = [np.array(v) for v in ([0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 1, 1])]
    trees = [Tree.stump([1.0], 0.5, [[1.0, 0.0], [0.0, 1.0]])] * 3
    pool = Pool(0.0, trees, labels)
    assert choose(pool, model, "typical") == 0
    assert choose(pool, model, "first") == 0
    assert committee(pool, model).tolist() == [0, 0, 1, 1]
    assert np.allclose(vote_shares(labels, 2, None).sum(axis=1), 1.0)


def test_a_pool_keeps_the_best_alone():
    X = np.array([[0.0], [10.0], [2.0], [8.0]])
    model = model_of(X, [0, 1, -1, -1], 1, depth=1)
    good = model.repair(Tree.stump([1.0], 5.0, [[1.0, 0.0], [0.0, 1.0]]))
    bad = model.repair(Tree.leaf([1.0, 0.0], 1))
    pool = Pool()
    for tree in (bad, good, bad, good):
        pool.add(model, tree)
    assert len(pool.trees) == 2
    assert pool.objective == 0.0
    assert all(len(set(route(tree, X))) == 2 for tree in pool.trees)


# ---------------------------------------------------------------------- room for margins


@pytest.mark.parametrize("margin", ["paper", "reached"])
@pytest.mark.parametrize("seed", range(4))
def test_hyperplanes_find_room_and_keep_totals_and_labels(seed, margin):
    rng = np.random.default_rng(seed)
    grid = np.array(list(product(range(8), range(8))), float) + rng.uniform(-0.05, 0.05, (64, 2))
    # Between the third and the fourth column there is room; the hyperplane begins askew, through points.
    y = np.full(64, -1)
    y[np.argmin(grid @ [1, 0.01])], y[np.argmax(grid @ [1, 0.01])] = 0, 1
    right = int(np.sum((grid[:, 0] > 2.5) & (y < 0)))
    model = model_of(grid, y, right, depth=1, bound=4.0, margin=margin)
    moves = Moves(model, np.random.default_rng(seed), Budget(60))
    askew = Planes(np.array([[4.0, 0.4]]), np.array([12.0]), np.array([0, 1]))
    hidden = grid[y < 0]
    assert np.abs(askew.values(hidden)).min() < 1.0
    planes = settled(moves, askew)
    assert np.abs(planes.values(hidden)).min() >= 1.0 - 1e-6
    assert np.abs(planes.omega).max() <= 4.0 + 1e-9
    assert int((planes.values(hidden) > 0).sum()) == right
    assert planes_errors(planes, grid[y >= 0], y[y >= 0])[0].max() <= 1e-6


def test_without_room_the_time_ends_the_attempt_and_labels_stay():
    X = np.linspace(0, 1, 40)[:, None]
    y = np.full(40, -1)
    y[0], y[-1] = 0, 1
    model = model_of(X, y, 19, depth=1, bound=4.0, margin="paper")
    moves = Moves(model, np.random.default_rng(0), Budget(5))
    start = Planes(np.array([[4.0]]), np.array([2.0]), np.array([0, 1]))
    planes = settled(moves, start)
    # The 38 points are 1/39 apart, and a margin of 1 on both sides would need 2/4.
    assert np.abs(planes.values(X[y < 0])).min() < 1.0
    assert planes_errors(planes, X[y >= 0], y[y >= 0])[0].max() <= 1e-6
