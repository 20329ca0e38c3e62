"""S2OCT beyond the contracts: the measure, repair, bounds, the printed program, refusals."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from tests.contracts.measures import s2oct_objective
from tests.examples import looped

from treewright.data import PointTotals
from treewright.exceptions import InvalidInputError
from treewright.models.s2oct.distances import largest_distance
from treewright.models.s2oct.objective import S2OCT, default_depth, default_max_coefficient
from treewright.optimize.formulation import TreeFormulation
from treewright.solvers import Status, get_solver
from treewright.solvers.program_check import check
from treewright.tree import Tree, route

MARGINS = ["paper", "reached", "tolerance"]


def random_model(seed, n_labelled=8, n_unlabelled=25, n_classes=2, n_groups=1, slack=0, **settings):
    rng = np.random.default_rng(seed)
    n = n_labelled + n_unlabelled
    X = rng.normal(size=(n, 2)) * 3
    y = np.full(n, -1)
    y[:n_labelled] = np.arange(n_labelled) % n_classes
    size = np.zeros((n, n_groups), dtype=int)
    size[np.arange(n_labelled, n), rng.integers(0, n_groups, n_unlabelled)] = rng.integers(1, 4, n_unlabelled)
    truth = rng.integers(0, n_classes, n)
    counts = np.stack([size[truth == k].sum(axis=0) for k in range(n_classes)], axis=1)
    settings = {"depth": 2, "max_coefficient": 5.0} | settings
    totals = PointTotals(size[n_labelled:], np.maximum(counts - slack, 0), counts + slack)
    return S2OCT(X, y, rng.random(n) + 0.5, totals, **settings)


def random_tree(rng, n_features, n_classes, depth):
    """A tree of any shape up to a depth, with any labels and scales."""
    left, right, todo, level = [-1], [-1], [0], [0]
    while todo:
        node = todo.pop(0)
        if level[node] < depth and rng.random() < 0.8:
            left[node], right[node] = len(left), len(left) + 1
            todo += [len(left), len(left) + 1]
            left, right, level = left + [-1, -1], right + [-1, -1], level + [level[node] + 1] * 2
    n = len(left)
    weights = rng.normal(size=(n, n_features)) * rng.choice([0.0, 0.01, 1.0, 100.0], (n, 1))
    threshold = rng.normal(size=n) * rng.choice([0.0, 1.0, 1000.0], n)
    values = rng.random((n, n_classes))
    return Tree(np.array(left), np.array(right), weights, threshold, values, rng.integers(0, n_classes, n))


def solve(model, solver="highs"):
    result = get_solver(solver).solve(model.build(), time_limit=60.0, gap=1e-7)
    assert result.status is Status.OPTIMAL
    return result


def test_it_is_a_formulation():
    assert isinstance(random_model(0), TreeFormulation)


# ---------------------------------------------------------------------- measure


def plain_objective(tree, model):
    """The definition, from the arrays of the tree."""
    totals = model.totals
    size = totals.size.toarray()
    return s2oct_objective(tree, model.X, model.y, model.weight, size, totals.low, totals.high, model.penalty)


@looped("seed", range(12))
@looped("n_classes", [2, 3])
def test_the_objective_is_its_definition(seed, n_classes):
    model = random_model(seed, n_classes=n_classes, n_groups=2, slack=1, penalty=0.7)
    tree = random_tree(np.random.default_rng(seed), 2, n_classes, 3)
    assert model.objective(tree) == pytest.approx(plain_objective(tree, model), rel=1e-12)


def test_a_class_without_a_leaf_costs_infinitely_much_unless_it_has_no_weight():
    X, y, none = np.zeros((1, 1)), np.array([1]), PointTotals(np.zeros((0, 1)), [[0, 0]], [[0, 0]])
    leaf = Tree.leaf([1.0, 0.0], 1)
    assert S2OCT(X, y, np.ones(1), none).objective(leaf) == np.inf
    assert S2OCT(X, y, np.zeros(1), none).objective(leaf) == 0.0


# ---------------------------------------------------------------------- repair


def assert_feasible(model, tree):
    """Shape, labels, bounds and margins, from the definition."""
    D = model.depth
    assert tree.n_nodes == 2 ** (D + 1) - 1
    assert tree.heap_numbers == list(range(1, tree.n_nodes + 1))
    label = tree.labels[tree.leaves]
    assert np.all(label[0::2] < label[1::2])
    assert set(model.y[model.y >= 0]) <= set(label)
    if model.n_classes == 2:
        assert label.tolist() == [0, 1] * 2 ** (D - 1)
    assert np.abs(tree.weights).max() <= model.max_coefficient + 1e-9
    required = model.tolerance if model.margin_rule == "tolerance" else 1.0
    for x in model.X[model.y < 0]:
        f = tree.weights @ x - tree.threshold
        if model.margin_rule == "paper":
            assert np.abs(f[: 2**D - 1]).min() >= required - 1e-9
        node = 0
        while tree.left[node] >= 0:
            assert abs(f[node]) >= required - 1e-9
            node = tree.left[node] if f[node] <= 0 else tree.right[node]


@looped("seed", range(15))
@pytest.mark.parametrize("margin", MARGINS)
@pytest.mark.parametrize(("n_classes", "depth"), [(2, 1), (2, 3), (3, 2), (4, 2)])
def test_repair_makes_any_tree_feasible_and_leaves_feasible_ones_alone(seed, margin, n_classes, depth):
    model = random_model(seed, n_classes=n_classes, depth=depth, margin_rule=margin)
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 2, n_classes, int(rng.integers(0, 5)))
    fixed = model.repair(tree)
    assert_feasible(model, fixed)
    assert model.repair(fixed) == fixed
    found = check(model.build(), model.encode(tree))
    assert found.worst <= 1e-8, found.worst_name
    assert found.objective == pytest.approx(model.objective(fixed), rel=1e-9)


@looped("seed", range(20))
def test_repair_makes_any_tree_feasible_for_the_printed_program(seed):
    model = random_model(seed, margin_rule="paper", formulation="paper")
    tree = random_tree(np.random.default_rng(seed), 2, 2, 3)
    assert_feasible(model, model.repair(tree))
    found = check(model.build(), model.encode(tree))
    assert found.worst <= 1e-8, found.worst_name
    assert found.objective == pytest.approx(model.objective(model.repair(tree)), rel=1e-9)


@looped("seed", range(10))
@pytest.mark.parametrize("margin", MARGINS)
def test_repair_never_worsens_a_tree_that_keeps_margins_and_bounds(seed, margin):
    """Falling labels and equal siblings are no reason to change a split otherwise."""
    model = random_model(seed, n_labelled=12, n_unlabelled=6, margin_rule=margin)
    rng = np.random.default_rng(seed)
    weights, values = rng.normal(size=(3, 2)), np.ones((7, 2))
    threshold = np.einsum("ij,ij->i", weights, model.X[rng.integers(0, 12, 3)])
    fixed = model.repair(Tree.from_heap(np.ones(3), weights, threshold, values, [0, 0, 0, 0, 1, 0, 1]))
    turned = fixed.with_leaves(fixed.values, [0, 0, 0, 1, 0, 1, 0])
    mirrored = model.repair(turned)
    assert model.objective(mirrored) == pytest.approx(model.objective(turned), rel=1e-12)
    assert np.array_equal(mirrored.weights, fixed.weights * [[1], [-1], [-1], [0], [0], [0], [0]])
    same = fixed.with_leaves(fixed.values, [0, 0, 0, 0, 1, 1, 1])
    assert model.objective(model.repair(same)) <= model.objective(same) + 1e-9
    assert np.array_equal(model.repair(same).weights[:2], fixed.weights[:2])
    assert np.all(model.repair(same).weights[2:] == 0)


def test_a_shallow_tree_gains_nothing_but_second_chances():
    X = np.array([[-3.0], [-2.0], [2.0], [3.0], [-4.0]])
    y = np.array([0, -1, -1, 1, 1])
    model = S2OCT(X, y, np.ones(5), PointTotals([[1], [1]], [[1, 1]], [[1, 1]]), depth=2)
    stump = Tree.stump([0.5], 0.0, [[1.0, 0.0], [0.0, 1.0]])
    fixed = model.repair(stump)
    assert model.objective(stump) == pytest.approx(3.0)  # class 1 at -4 has f = -2
    assert model.objective(fixed) == pytest.approx(2.0)  # left, and across the trivial split
    assert fixed.weights[0].tolist() == [0.5]
    assert np.all(fixed.weights[1:] == 0.0)


def test_repair_moves_a_threshold_to_the_nearest_gap_by_rows():
    X = np.array([[-1.7], [0.0], [0.05], [0.1], [0.2], [0.3], [2.3]])
    y, size = np.full(7, -1), np.array([[1], [1], [1], [1], [9], [1], [1]])
    model = S2OCT(X, y, np.ones(7), PointTotals(size, [[0, 0]], [[15, 15]]), depth=1, max_coefficient=2.0)
    tree = model.repair(Tree.stump([1.0], 0.15, [[1.0, 0.0], [0.0, 1.0]]))
    # Gaps of width 2 m / s = 1 are left of 0 (three points and rows move) and right of 0.3 (two points, ten rows).
    assert (route(tree, X) == 1).tolist() == [True] + [False] * 6
    assert_feasible(model, tree)


def test_repair_gives_every_labelled_class_a_leaf():
    model = random_model(3, n_classes=4, depth=2, margin_rule="reached")
    tree = model.repair(Tree.leaf([0.0, 1.0, 0.0, 0.0], 2))
    assert sorted(tree.labels[tree.leaves]) == [0, 1, 2, 3]
    assert np.all(tree.labels[route(tree, model.X)] == 1)


def test_repair_refuses_a_tree_of_other_data():
    with pytest.raises(InvalidInputError, match="3 outputs and 2 features"):
        random_model(0).repair(Tree.leaf([1.0, 0.0, 0.0], 2))


def test_repair_refuses_categorical_splits():
    coded = Tree([1, -1, -1], [2, -1, -1], np.zeros((3, 2)), np.zeros(3), np.ones((3, 2)), [0, 0, 1], [0, -1, -1])
    with pytest.raises(InvalidInputError, match="categorical"):
        random_model(0).repair(coded)


# ---------------------------------------------------------------------- simplification


@looped("seed", range(60))
def test_a_simpler_tree_says_the_same_and_costs_no_more(seed):
    """Points on a small grid, some contradicting one another, and splits that send all of them one way."""
    n_classes, margin = 2 + seed % 2, MARGINS[seed % 3]
    model = random_model(
        seed, n_labelled=6, n_unlabelled=5, n_classes=n_classes, margin_rule=margin, depth=2 + seed % 2
    )
    rng = np.random.default_rng(seed)
    model = replace(model, X=rng.integers(0, 3, model.X.shape) * 10.0)
    for _ in range(4):
        tree = model.repair(random_tree(rng, 2, n_classes, int(rng.integers(0, 4))))
        simple = model.simplified(tree)
        assert simple.n_nodes <= tree.n_nodes
        assert np.array_equal(simple.labels[route(simple, model.X)], tree.labels[route(tree, model.X)])
        assert plain_objective(simple, model) <= plain_objective(tree, model) + 1e-9
        assert model.simplified(simple) == simple
        # As good as the whole tree again, once it is completed: no other tree was made of it.
        assert model.objective(model.repair(simple)) <= model.objective(simple) + 1e-9


def test_only_a_second_chance_that_somebody_takes_is_kept():
    X, y = np.array([[0.0], [0.0], [5.0], [6.0]]), np.array([0, 1, -1, -1])
    model = S2OCT(X, y, np.ones(4), PointTotals(np.ones((2, 1)), [[2, 0]], [[2, 0]]), depth=2)
    tree = model.repair(Tree.leaf([1.0, 0.0], 1))
    assert model.simplified(tree).n_leaves == 2  # class 1 at 0 pays 2 for the leaf beside
    assert plain_objective(model.simplified(tree), model) == 2.0
    calm = replace(model, y=np.array([0, 0, -1, -1]))
    assert calm.simplified(tree).n_leaves == 1


# ---------------------------------------------------------------------- programs


@pytest.mark.parametrize("seed", range(4))
def test_the_printed_program_has_the_same_optimum(seed):
    tight = random_model(seed, n_labelled=6, n_unlabelled=4, margin_rule="paper", max_coefficient=0.3)
    printed = replace(tight, formulation="paper")
    assert solve(tight).objective == pytest.approx(solve(printed).objective, abs=1e-5)


@pytest.mark.parametrize(("margin", "n_classes"), [("paper", 2), ("paper", 3), ("reached", 2), ("reached", 3)])
def test_excluding_mirror_images_costs_nothing_at_depth_three(margin, n_classes):
    model = random_model(
        1, n_labelled=4, n_unlabelled=2, n_classes=n_classes, margin_rule=margin, depth=3, max_coefficient=0.1
    )
    program = model.build()
    start, stop = program.rows["first_goes_right"]
    lower, upper = program.row_lower.copy(), program.row_upper.copy()
    lower[start:stop], upper[start:stop] = -np.inf, np.inf
    free = get_solver("highs").solve(replace(program, row_lower=lower, row_upper=upper), time_limit=60.0, gap=1e-7)
    assert solve(model).objective == pytest.approx(free.objective, abs=1e-5)


def test_the_printed_constant_can_cut_off_the_optimum():
    """Worked by hand in the docstring of the printed program."""
    X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0, -1, -1])
    tight = S2OCT(X, y, np.ones(3), PointTotals([[1], [1]], [[0, 2]], [[0, 2]]), depth=1, max_coefficient=0.6)
    assert solve(tight).objective == pytest.approx(1.4)
    assert solve(replace(tight, formulation="paper")).objective == pytest.approx(1.8)


@pytest.mark.parametrize("margin", MARGINS)
def test_a_solution_keeps_its_margins(margin):
    model = random_model(5, n_labelled=6, n_unlabelled=5, margin_rule=margin, max_coefficient=1.0, tolerance=0.05)
    tree = model.decode(solve(model).x)
    required = 0.05 if margin == "tolerance" else 1.0
    f = model.X @ tree.weights[:3].T - tree.threshold[:3]
    if margin != "paper":  # only where the point gets to
        f[np.arange(len(f)), np.where(f[:, 0] <= 0, 2, 1)] = np.inf
    assert np.abs(f[model.y < 0]).min() >= required - 1e-5


@pytest.mark.parametrize("n_labelled", [0, 4])
@pytest.mark.parametrize("margin", MARGINS)
def test_one_kind_of_points_may_be_missing(n_labelled, margin):
    model = random_model(0, n_labelled=n_labelled, n_unlabelled=4 - n_labelled, margin_rule=margin)
    result = solve(model)
    assert result.objective == pytest.approx(0.0, abs=1e-6)
    assert model.objective(model.decode(result.x)) == pytest.approx(0.0, abs=1e-6)
    assert check(model.build(), model.encode(model.decode(result.x))).worst <= 1e-6


# ---------------------------------------------------------------------- bounds


@pytest.mark.parametrize(
    ("weights", "expected"),
    [((1.0, 1.0), 2.0), ((3.0, 1.0), 2.0), ((1.0, 1.0, 1.0), 3.0), ((4.0, 1.0, 1.0), 4.0), ((2.0, 1.0, 1.0), 4.0)],
)
def test_labelled_points_on_top_of_each_other(weights, expected):
    """The bound is the optimum of: minimize sum w_k h_k with h_k + h_l >= 2, and a tree attains it."""
    K = len(weights)
    X, y = np.zeros((K, 1)), np.arange(K)
    none = np.zeros((1, K), dtype=int)
    model = S2OCT(X, y, np.array(weights), PointTotals(np.zeros((0, 1)), none, none), depth=2)
    assert model.lower_bound() == pytest.approx(expected)
    attained = solve(model).objective
    assert attained >= expected - 1e-6
    if K == 2:
        assert attained == pytest.approx(expected)


def test_totals_that_no_selection_of_points_has():
    X, y = np.arange(4.0)[:, None], np.full(4, -1)
    totals = PointTotals(np.full((4, 1), 5), [[7, 13]], [[7, 13]])
    model = S2OCT(X, y, np.ones(4), totals, depth=1, penalty=3.0)
    assert model.lower_bound() == pytest.approx(3.0 * 2)  # 5 or 10 instead of 7
    assert solve(model).objective == pytest.approx(6.0)


def test_a_shortage_counts_also_where_nothing_is_in_excess():
    totals = PointTotals([[4]], [[2, 1, 1]], [[9, 9, 9]])
    model = S2OCT(np.zeros((1, 1)), np.array([-1]), np.ones(1), totals, depth=2)
    assert solve(model).objective == pytest.approx(2.0)  # all four rows in class 0: one each of the others is missing


def test_bounds_of_groups_add_up():
    size = np.array([[2, 0], [2, 0], [0, 3], [0, 3]])
    low = high = np.array([[1, 3], [2, 4]])
    model = S2OCT(np.arange(4.0)[:, None], np.full(4, -1), np.ones(4), PointTotals(size, low, high), depth=2)
    assert model.lower_bound() == pytest.approx(2.0)


# ---------------------------------------------------------------------- defaults and refusals


def test_defaults_of_the_paper():
    assert [default_depth(n) for n in (1, 999, 1000)] == [2, 2, 3]
    assert [default_depth(500, k) for k in (2, 4, 5, 8, 9, 400)] == [2, 2, 3, 3, 4, 9]  # a leaf for each class
    assert [default_max_coefficient(n, 1e6, 4) for n in (649, 650, 1499, 1500)] == [10.0, 20.0, 20.0, 40.0]
    assert default_max_coefficient(100, 2.0, 9) == pytest.approx(499 / 6)
    assert default_max_coefficient(100, 0.0, 9) == 10.0


@pytest.mark.parametrize("seed", range(5))
def test_largest_distance_is_that_of_all_pairs(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2500, 3)) * rng.random(3) + 100
    assert largest_distance(X) == pytest.approx(pdist(X).max(), rel=1e-14)
    assert largest_distance(X[:1]) == 0.0


@pytest.mark.parametrize("seed", range(3))
def test_largest_distance_where_nothing_can_be_left_out(seed):
    rng = np.random.default_rng(seed)
    angle = rng.random(4500) * 2 * np.pi
    ring = np.column_stack([np.cos(angle), np.sin(angle)]) * (1 - 1e-4 * rng.random((4500, 1)))
    assert largest_distance(ring) == pytest.approx(pdist(ring).max(), rel=1e-14)


def test_largest_distance_of_very_many_points_is_an_upper_bound():
    angle = np.random.default_rng(0).random(50_000) * 2 * np.pi
    circle = np.column_stack([np.cos(angle), np.sin(angle)])  # nothing can be left out
    assert 2.0 <= largest_distance(circle) <= np.sqrt(8.0)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"margin_rule": "reached"}, "margin_rule='paper'"),
        ({"slack": 1}, "exact total"),
        ({"n_groups": 2}, "one group"),
        ({"n_classes": 3}, "two classes"),
        ({"max_coefficient": 1e-3}, "larger max_coefficient"),
    ],
)
def test_the_printed_program_refuses_what_it_does_not_know(change, text):
    with pytest.raises(InvalidInputError, match=text):
        random_model(0, **({"formulation": "paper"} | change))


@looped(
    "change, text",
    [
        ({"margin_rule": "none"}, "margin_rule='none'"),
        ({"formulation": "x"}, "formulation='x'"),
        ({"max_coefficient": 0.0}, "max_coefficient=0"),
        ({"tolerance": 0.0}, "tolerance=0"),
        ({"n_classes": 5}, "5 classes have labelled rows"),
        ({"depth": 0}, "depth 0"),
    ],
)
def test_bad_settings_are_refused(change, text):
    with pytest.raises(InvalidInputError, match=text):
        random_model(0, **change)


def test_shapes_that_do_not_fit_are_refused():
    model = random_model(0)
    with pytest.raises(InvalidInputError, match="24 points, but 25 are unlabelled"):
        replace(model, totals=model.totals.of(np.arange(24)))
