"""OCT-H beyond the contracts: bounds, groups, repair."""

from dataclasses import replace

import numpy as np
import pytest
from tests.contracts.brute_force import best_oct_h
from tests.examples import looped

from treewright.core.budget import Budget
from treewright.engine.gap_trees import improved_gap_tree
from treewright.exceptions import InvalidInputError
from treewright.models.oct_h.objective import OCTH
from treewright.models.oct_h.search import search_oct_h
from treewright.optimize.formulation import TreeFormulation
from treewright.optimize.incumbent import Incumbent
from treewright.solvers import get_solver
from treewright.solvers.program_check import check
from treewright.splits.gap_splits import GapPoints
from treewright.tree import Tree, route


def model(X, y, **settings):
    X = np.asarray(X, dtype=float)
    return OCTH(X, np.asarray(y), np.ones(len(X)), n_classes=int(max(y)) + 1, **settings)


def test_it_is_a_formulation():
    assert isinstance(model([[0.0], [1.0]], [0, 1]), TreeFormulation)


def test_bound_counts_points_that_nothing_can_part():
    near = model([[0.0], [0.003], [0.5], [1.0]], [0, 1, 0, 0], depth=3)
    assert near.lower_bound() == pytest.approx(1.0)  # one error, and the majority class makes one error too
    assert get_solver("highs").solve(near.build()).objective == pytest.approx(1.0)
    assert model([[0.0], [0.006], [0.5], [1.0]], [0, 1, 0, 0], depth=3).lower_bound() == 0.0


def test_bound_counts_classes_without_a_leaf():
    crowded = model(np.arange(6)[:, None] / 5, [0, 0, 0, 1, 1, 2], depth=1)
    assert crowded.lower_bound() == pytest.approx(1 / 3)


def test_near_points_share_their_places():
    X = [[0.0], [0.001], [0.002], [1.0]]
    assert model(X, [0, 1, 0, 1]).build().variables["z"].shape == (2, 4)


def test_points_in_a_chain_go_together_in_any_repaired_tree():
    rng = np.random.default_rng(0)
    X = np.concatenate([np.linspace(0.2, 0.3, 40)[:, None], [[0.0], [1.0]]])
    chained = model(X, [*rng.integers(0, 2, 40), 0, 1], depth=2)
    tree = chained.repair(Tree.stump([1.0], 0.25, [[1.0, 0.0], [0.0, 1.0]]))
    assert len(set(route(tree, X[:40]))) == 1


def test_repair_respects_leaf_size_and_depth():
    rng = np.random.default_rng(1)
    X = rng.random((40, 2))
    y = ((X[:, 0] > 0.4) | (X[:, 1] > 0.7)).astype(int)
    normals = np.array([[1.0, 0.1], [0.1, 1.0], [-0.1, 1.0], *rng.normal(size=(4, 2))])
    deep = Tree.from_heap(
        np.ones(7), normals, [0.45, 0.7, 0.5, 0.1, 0.2, 0.3, 0.1], np.ones((15, 2)), np.zeros(15, dtype=int)
    )
    for depth, least in [(1, 1.0), (2, 8.0), (3, 5.0)]:
        fixed = model(X, y, depth=depth, min_leaf=least).repair(deep)
        assert 1 <= fixed.depth <= depth
        assert np.bincount(route(fixed, X), minlength=fixed.n_nodes)[fixed.leaves].min() >= least


@pytest.mark.parametrize("seed", range(5))
def test_repair_leaves_a_feasible_tree_as_it_is(seed):
    """Four quadrants of points, each of one class, with wide gaps: nothing is to be done."""
    rng = np.random.default_rng(seed)
    corner = np.repeat([[0.0, 0.0], [0.0, 0.7], [0.7, 0.0], [0.7, 0.7]], 5, axis=0)
    X, y = corner + 0.3 * rng.random((20, 2)), np.repeat([0, 1, 2, 3], 5)
    splits = [[1.0, 0.0], [0.1, 0.9], [-0.1, 0.9]]
    values = np.vstack([np.full((3, 4), 5.0), 5.0 * np.eye(4)])
    tree = Tree.from_heap(np.ones(3), splits, [0.5, 0.45, 0.4], values, [0, 0, 2, 0, 1, 2, 3])
    fixed = model(X, y, min_leaf=5.0).repair(tree)
    assert fixed.n_leaves == 4
    assert np.array_equal(route(fixed, X), route(tree, X))
    assert np.array_equal(fixed.labels[fixed.leaves], [0, 1, 2, 3])
    again = model(X, y, min_leaf=5.0).repair(fixed)
    assert np.allclose(again.weights, fixed.weights, atol=1e-15)
    assert np.allclose(again.threshold, fixed.threshold, atol=1e-15)


def test_repair_moves_a_threshold_to_the_nearest_gap():
    X = np.array([[0.0], [0.3], [0.302], [0.304], [0.6], [1.0]])
    crowded = model(X, [0, 0, 0, 0, 1, 1], depth=1)
    fixed = crowded.repair(Tree.stump([2.0], 0.606, [[1.0, 0.0], [0.0, 1.0]]))  # 0.303, among the three
    assert fixed.n_leaves == 2
    assert fixed.threshold[0] / fixed.weights[0, 0] == pytest.approx(0.452)


def test_repair_drops_splits_that_change_nothing():
    X, y = [[0.0], [0.2], [0.8], [1.0]], [0, 0, 0, 1]
    idle = Tree.from_heap([True, True, True], [[1.0]] * 3, [0.9, 0.1, 2.0], np.ones((7, 2)), np.zeros(7, dtype=int))
    fixed = model(X, y).repair(idle)
    assert fixed.n_leaves == 2
    assert model(X, y).objective(fixed) == 0.0


def test_repair_and_search_refuse_categorical_splits():
    X, y = np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([0, 1])
    coded = Tree([1, -1, -1], [2, -1, -1], np.zeros((3, 2)), np.zeros(3), np.eye(3)[:, :2], [0, 0, 1], [0, -1, -1])
    with pytest.raises(InvalidInputError, match="categorical splits .the first at node 0."):
        model(X, y).repair(coded)
    with pytest.raises(InvalidInputError, match="categorical"):
        search_oct_h(Incumbent(model(X, y)), model(X, y), [coded], Budget(1.0))
    with pytest.raises(InvalidInputError, match="categorical"):
        improved_gap_tree(coded, GapPoints(X, y, np.ones(2), 2, gap=0.01), Budget())


def test_the_objective_is_its_definition():
    rng = np.random.default_rng(0)
    X, y, weight = rng.random((30, 2)), rng.integers(0, 3, 30), rng.random(30)
    priced = OCTH(X, y, weight, 3, complexity=0.1)
    tree = Tree.from_heap(
        [True, True, False], [[1.0, 0.0], [0.3, 0.4], [0.0, 0.0]], [0.5, 0.3, 0.0], rng.random((7, 3)), np.arange(7) % 3
    )
    leaf = np.where(X[:, 0] > 0.5, 2, np.where(0.3 * X[:, 0] + 0.4 * X[:, 1] <= 0.3, 0, 1))  # labels 2; 3, 4 mod 3
    majority = max(weight[y == k].sum() for k in range(3))
    error = weight[y != leaf].sum() / (weight.sum() - majority)
    assert priced.objective(tree) == pytest.approx(error + 0.1 * 3)


def test_weights_and_rows_are_told_apart():
    X, y = np.array([[0.0], [0.5], [1.0]]), np.array([0, 1, 0])
    heavy = OCTH(X, y, np.array([1.0, 10.0, 1.0]), 2, depth=1, min_leaf=2.0, size=np.array([1.0, 1.0, 1.0]))
    result = get_solver("highs").solve(heavy.build())
    sizes = np.bincount(heavy.leaves_of(result.x))
    assert sizes[sizes > 0].min() >= 2
    sized = OCTH(X, y, np.ones(3), 2, depth=1, min_leaf=2.0, size=np.array([1.0, 2.0, 2.0]))
    assert get_solver("highs").solve(sized.build()).objective == pytest.approx(1.0)


def test_a_start_at_the_margin_is_feasible_within_tolerance():
    X = np.array([[0.0], [0.495], [0.5], [1.0]])
    tight = model(X, [0, 0, 1, 1], depth=1)
    tree = Tree.stump([1.0], 0.4975, [[2.0, 0.0], [0.0, 2.0]])
    found = check(tight.build(), tight.encode(tree))
    assert found.feasible(1e-6)
    assert found.objective == 0.0


@looped("seed", range(6))
def test_spacings_about_the_margin_contradict_nothing(seed):
    """Points a millionth more or less than the margin apart: groups, repair, encoding and solver must agree."""
    rng = np.random.default_rng(seed)
    margin = 0.125
    steps = margin + rng.choice([-1e-5, -1.5e-6, -1e-6, -1e-9, 0.0, 1e-9, 1e-6], 6)
    X, y = np.concatenate([[0.0], np.cumsum(steps)])[:, None], rng.integers(0, 2, 7)
    y[:2] = 0, 1
    tight = model(X, y, depth=2, margin=margin)
    strict, lax = best_oct_h(tight), best_oct_h(replace(tight, margin=margin - 2e-6))
    assert tight.lower_bound() <= lax + 1e-9
    program = tight.build()
    result = get_solver("highs").solve(program, time_limit=60.0, gap=1e-6)
    assert lax - 1e-6 <= result.objective <= strict + 1e-6
    for cuts in rng.integers(0, 6, (20, 3)):
        threshold = (X[cuts, 0] + X[cuts + 1, 0]) / 2
        tree = Tree.from_heap(np.ones(3), [[1.0], [1.0], [1.0]], threshold, np.ones((7, 2)), np.zeros(7, dtype=int))
        found = check(program, tight.encode(tree))
        assert found.feasible(1e-6), found.worst_name
        assert found.objective == pytest.approx(tight.objective(tight.repair(tree)), abs=1e-9)
        assert found.objective >= max(lax, tight.lower_bound()) - 1e-9


def test_leaves_need_their_rows_in_bound_and_repair():
    X, y = np.array([[0.0], [0.0], [0.5], [1.0]]), np.array([0, 1, 1, 2])
    rows = np.array([6.0, 3.0, 2.0, 4.0])
    sized = OCTH(X, y, rows, 3, depth=2, min_leaf=5.0, size=rows)
    # 0.0 holds two classes: 3 wrong. A leaf {0.5} or {1.0} would be too small, so both share one: 2 more wrong, of 9.
    assert sized.lower_bound() == pytest.approx(3 / 9)
    assert best_oct_h(sized) == pytest.approx(5 / 9)
    assert get_solver("highs").solve(sized.build()).objective == pytest.approx(5 / 9)
    wanted = Tree.from_heap(
        [True, False, True], [[1.0]] * 3, [0.25, 0.0, 0.75], np.ones((7, 3)), np.zeros(7, dtype=int)
    )
    fixed = sized.repair(wanted)
    assert fixed.n_leaves == 2
    assert sized.objective(fixed) == pytest.approx(5 / 9)


@looped("least", [4.0, 5.0, 7.0])
@looped("complexity", [0.0, 0.1])
def test_a_single_leaf_can_always_be_encoded(least, complexity):
    X, y = np.arange(7.0)[:, None] / 6, [0, 1, 0, 1, 0, 1, 0]
    wide = model(X, y, min_leaf=least, complexity=complexity)
    found = check(wide.build(), wide.encode(Tree.leaf([4.0, 3.0], 1)))
    assert found.feasible(1e-9), found.worst_name
    assert found.objective == pytest.approx(1.0)
    assert wide.lower_bound() == pytest.approx(1.0)


@looped("depth", [1, 2, 3])
@looped("common", [0, 1, 2])
@looped("settings", [{}, {"complexity": 0.1}, {"min_leaf": 2.0}])
def test_trees_whose_last_splits_part_nothing_can_be_encoded(depth, common, settings):
    """Leaves of a lowest split have different labels in the program; where there is one leaf, its sibling is empty."""
    X, y = np.arange(6.0)[:, None] / 5, np.array([0, 1, 2, common, common, common])
    idle = model(X, y, depth=depth, **settings)
    for tree in (Tree.leaf([1.0, 1.0, 1.0], 1), Tree.stump([1.0], 0.5, np.ones((2, 3)))):
        found = check(idle.build(), idle.encode(tree))
        assert found.feasible(1e-6), found.worst_name
        assert found.objective == pytest.approx(idle.objective(idle.repair(tree)))


@pytest.mark.parametrize("depth", [1, 2])
def test_two_classes_without_prices_leave_no_choice_of_labels(depth):
    """The rows of the labels alone have one solution: 0 on the left, 1 on the right."""
    program = model([[0.0], [0.4], [1.0]], [0, 1, 0], depth=depth).build()
    cost, c = np.zeros(program.n_columns), program.variables["c"]
    for sign in (1.0, -1.0):
        cost[c[0, 0::2]] = sign
        x = get_solver("highs").solve(replace(program, cost=cost)).x
        assert program.value(x, "c").tolist() == [[1.0, 0.0] * 2 ** (depth - 1), [0.0, 1.0] * 2 ** (depth - 1)]


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_the_size_of_the_program_is_known_before(depth):
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 3)), rng.integers(0, 2, 60)
    large = model(X, y, depth=depth)
    assert 0.5 <= large.program_cells / large.build().matrix.nnz <= 2.0


# ---------------------------------------------------------------------- as printed


def random_pair(seed, n=10, p=2, k=2, **settings):
    """A model with the tight program, and the same with the printed one."""
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 8, (n, p)) / 7.0, rng.integers(0, k, n)
    X[0], X[1], y[:k] = 0.0, 1.0, np.arange(k)
    size = rng.integers(1, 4, n).astype(float)
    tight = OCTH(X, y, rng.integers(1, 4, n).astype(float), k, margin=0.05, size=size, **settings)
    return tight, replace(tight, formulation="paper")


@pytest.mark.parametrize(
    "settings",
    [
        {"depth": 1, "n": 8},
        {"depth": 1, "n": 8, "k": 3, "min_leaf": 4.0},
        {"depth": 2, "n": 6, "complexity": 0.07},
        {"depth": 2, "n": 6, "k": 3, "min_leaf": 3.0, "complexity": 0.02},
    ],
)
@pytest.mark.parametrize("seed", range(2))
def test_the_printed_program_has_the_same_optimum(seed, settings):
    optima = [
        get_solver(solver).solve(model.build(), time_limit=60.0, gap=1e-6).objective
        for model, solver in zip(random_pair(seed, **settings) * 2, ("highs", "scip", "scip", "highs"), strict=True)
    ]
    assert optima == pytest.approx(optima[:1] * 4, abs=1e-5)


def test_the_printed_program_is_as_large_as_it_is_printed():
    tight, printed = random_pair(0, n=12, p=3, k=3)
    program, (n, p, leaves, branches, k) = printed.build(), (12, 3, 4, 3, 3)
    integers = {"z": n * leaves, "l": leaves, "c": k * leaves, "s": branches * p, "d": branches}
    assert {name: program.variables[name].size for name in integers} == integers
    assert int(program.integer.sum()) == sum(integers.values())
    # leaves: one label; points: one leaf, then a row for each leaf and one more for each branch above it; leaf sizes;
    # N, and N, L >=, L <= of each class; |a| <= s and |a| below its cover, |o| <= d, norm, s <= d, d <= s, parents
    rows = leaves + n * (1 + leaves + 2 * leaves) + leaves + leaves + 3 * k * leaves
    rows += branches * (4 * p + 2 + 1 + p + 1) + branches - 1
    assert len(program.row_lower) == rows
    assert 0.5 <= printed.program_cells / program.matrix.nnz <= 2.0
    assert tight.build().matrix.nnz < program.matrix.nnz


def test_a_program_of_another_name_is_refused():
    with pytest.raises(InvalidInputError, match="formulation='printed' is unknown; use 'tight' or 'paper'"):
        model([[0.0], [1.0]], [0, 1], formulation="printed")


def test_a_start_at_the_margin_is_feasible_as_printed_too():
    X = np.array([[0.0], [0.495], [0.5], [1.0]])
    printed = model(X, [0, 0, 1, 1], depth=2, formulation="paper")
    found = check(printed.build(), printed.encode(Tree.stump([1.0], 0.4975, [[2.0, 0.0], [0.0, 2.0]])))
    assert found.feasible(1e-6), found.worst_name
    assert found.objective == 0.0
