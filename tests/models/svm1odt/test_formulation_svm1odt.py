"""SVM1-ODT: optima against brute force and other programs, cuts, repair, what a tree costs."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from tests.contracts.brute_force import best_svm1odt
from tests.contracts.svm1odt import random_mixed_tree, svm1odt
from tests.examples import looped

from treewright.exceptions import InvalidInputError
from treewright.models.svm1odt.cuts import CUTS
from treewright.models.svm1odt.objective import SVM1ODT
from treewright.optimize.formulation import TreeFormulation
from treewright.solvers import Status, get_solver
from treewright.solvers.program_check import check
from treewright.tree import Tree, predict_labels, route, side

TINY = {
    "two classes": svm1odt(6, 2),
    "three classes": svm1odt(5, 2, 3),
    "three levels deep": svm1odt(5, 1, 2, depth=3),
    "more classes than leaves": svm1odt(7, 2, 4, depth=1),
    "hard margin": svm1odt(6, 2, 2, alpha_1=0.0, alpha_2=0.0),
    "narrow": svm1odt(6, 2, 2, depth=1, max_coefficient=0.5),
    "dear norm": svm1odt(6, 2, 2, depth=1, alpha_2=2.0),
    "categories": svm1odt(5, 1, 3, levels=(3, 2)),
    "categories alone": svm1odt(6, 0, 3, levels=(3, 3)),
    "gaps": svm1odt(5, 2, 2, gaps=0.2),
    "categories and gaps": svm1odt(5, 1, 3, levels=(3,), gaps=0.2),
    "hard margin, mixed": svm1odt(5, 1, 2, levels=(3,), gaps=0.2, alpha_1=0.0, alpha_2=0.0),
}
every_kind = pytest.mark.parametrize("kind", TINY)


def solved(model, solver="highs"):
    result = get_solver(solver).solve(model.build(), time_limit=60.0, gap=1e-7)
    assert result.status is Status.OPTIMAL
    return result


def data(X, y, **settings):
    X = np.array(X, dtype=float)
    given = {"epsilon": 0.25, "alpha_1": 4.0, "alpha_2": 0.1} | settings
    return SVM1ODT(X, np.array(y), np.ones(len(X)), n_classes=int(max(y)) + 1, **given)


# ---------------------------------------------------------------------- optima


@every_kind
@pytest.mark.parametrize("seed", range(3))
def test_the_optimum_is_that_of_brute_force(kind, seed):
    model = TINY[kind](seed)
    optimum = best_svm1odt(model)
    assert model.lower_bound() <= optimum + 1e-9
    result = solved(model)
    assert result.objective == pytest.approx(optimum, abs=1e-5)
    assert model.objective(model.decode(result.x)) == pytest.approx(optimum, abs=1e-5)


@pytest.mark.parametrize("kind", [kind for kind in TINY if "gaps" not in kind and kind != "hard margin, mixed"])
def test_the_printed_program_has_the_same_optimum(kind):
    model = replace(TINY[kind](1), formulation="paper", cuts=CUTS)
    result = solved(model)
    tree = model.decode(result.x)
    assert result.objective == pytest.approx(best_svm1odt(model), abs=1e-5)
    assert model.objective(tree) == pytest.approx(result.objective, abs=1e-5)
    assert np.array_equal(np.array(tree.heap_numbers)[route(tree, model.X)], model.leaves_of(result.x))
    found = check(model.build(), model.encode(tree))
    assert found.worst <= 1e-6, found.worst_name
    assert found.objective == pytest.approx(result.objective, abs=1e-5)


@pytest.mark.parametrize("cuts", [(), *[(cut,) for cut in CUTS]])
@pytest.mark.parametrize("formulation", ["tight", "paper"])
def test_cuts_do_not_change_the_optimum(formulation, cuts):
    """Four classes and two leaves, unequal weights: all three cuts say something."""
    model = replace(TINY["more classes than leaves"](2), formulation=formulation, cuts=cuts)
    assert {name for name in model.build().rows if name.startswith("cut")} == {f"cut_{cut}" for cut in cuts}
    assert solved(model).objective == pytest.approx(best_svm1odt(model), abs=1e-5)


def test_cuts_that_say_nothing_are_left_out():
    model = TINY["three classes"](0)  # and four leaves
    assert [name for name in replace(model, cuts=CUTS).build().rows if name.startswith("cut")] == ["cut_leaf"]


def test_whole_labels_have_the_optimum_of_relaxed_ones():
    """Theorem 1."""
    model = replace(TINY["more classes than leaves"](0), formulation="paper", cuts=())
    program = model.build()
    whole = program.integer.copy()
    assert not whole[program.variables["u"]].any()
    whole[program.variables["u"]] = True
    result = get_solver("highs").solve(replace(program, integer=whole), time_limit=60.0, gap=1e-7)
    assert result.objective == pytest.approx(solved(model).objective, abs=1e-6)


def relaxed_minimum(model, cost):
    program = model.build()
    relaxed = replace(program, integer=np.zeros_like(program.integer), cost=cost, offset=0.0)
    return get_solver("highs").solve(relaxed, time_limit=60.0).objective


def test_the_tight_relaxation_implies_the_cuts_of_theorem_3():
    rng = np.random.default_rng(0)
    X, y = rng.random((9, 2)), np.repeat([0, 1, 2], 3)
    tight = data(X, y, depth=2)
    printed = replace(tight, formulation="paper", cuts=())
    gap_of_printed = []
    for points in ([0, 3, 6], [1, 4, 8], [2, 5]):
        for leaves in [*combinations(range(4), 1), *combinations(range(4), 2)]:
            for model in (tight, printed):
                program = model.build()
                e, cost = program.variables["e"], np.zeros(program.n_columns)
                place = model.group if model is tight else np.arange(9)
                cost[e[np.ix_(place[points], leaves)]] = -1.0
                if model is tight:
                    d = program.variables["d"]  # one class a group: its rows are the groups
                    cost[d[place[points]]] = 1.0
                else:
                    cost[program.variables["c"][points]] = 1.0
                least = relaxed_minimum(model, cost)
                if model is tight:
                    assert least >= -len(leaves) - 1e-7
                else:
                    gap_of_printed.append(-len(leaves) - least)
    assert max(gap_of_printed) > 0.2  # the printed relaxation does not: the test can fail


def test_the_printed_program_without_a_tolerance_is_not_about_trees():
    """Two points in the middle cost a hinge error each and go both ways; a tree must get one of them wrong."""
    X = np.repeat([0.0, 1.0, 0.5, 0.5], [20, 20, 1, 1])[:, None]
    y = np.repeat([0, 1, 0, 1], [20, 20, 1, 1])
    model = data(X, y, depth=1, epsilon=1.0, alpha_1=1.0, alpha_2=0.0, formulation="paper")
    program = model.build()
    upper = program.upper.copy()
    upper[program.variables["m"]] = model.epsilon
    cheats = get_solver("highs").solve(replace(program, upper=upper), time_limit=60.0)
    assert cheats.objective == pytest.approx(2.0)
    for honest in (model, replace(model, formulation="tight", cuts=())):
        # The two at the least distance on one side, 20 points moved by twice as much into the margin.
        assert solved(honest).objective == pytest.approx(3.0 + 38 * model.tolerance, abs=1e-6)


def test_equal_rows_merged_cost_the_same():
    rng = np.random.default_rng(3)
    base = svm1odt(6, 2, 3)(3)
    times = rng.integers(1, 4, 6)
    rows = np.repeat(np.arange(6), times)
    apart = SVM1ODT(base.X[rows], base.y[rows], np.ones(len(rows)), 3, epsilon=0.25, alpha_1=4.0)
    merged = SVM1ODT(base.X, base.y, times.astype(float), 3, epsilon=0.25, alpha_1=4.0, size=times.astype(float))
    for _ in range(20):
        tree = random_mixed_tree(base, rng)
        assert apart.objective(tree) == pytest.approx(merged.objective(tree), abs=1e-9)
    assert solved(apart).objective == pytest.approx(solved(merged).objective, abs=1e-6)


# ---------------------------------------------------------------------- what a tree costs


def plain_objective(model, tree):
    """The formula, point by point."""
    value = model.alpha_2 * (np.abs(tree.weights).sum() + np.count_nonzero(tree.category >= 0))
    for x, y, weight, size in zip(model.X, model.y, model.weight, model.size, strict=True):
        node = 0
        while tree.left[node] >= 0:
            j = tree.category[node]
            if j >= 0:
                left = tree.missing_left[node] if np.isnan(x[j]) else tree.left_categories[node, int(x[j])]
            else:
                f = tree.threshold[node] - sum(h * v for h, v in zip(tree.weights[node], x, strict=True) if h != 0)
                left = tree.missing_left[node] if np.isnan(f) else f >= 0
                value += 0.0 if np.isnan(f) else model.alpha_1 * size * max(0.0, model.epsilon - abs(f))
            node = tree.left[node] if left else tree.right[node]
        value += weight * (tree.labels[node] != y)
    return value


@looped("seed", range(10))
def test_objective_is_the_formula(seed):
    model = svm1odt(30, 3, 3, levels=(4, 2), gaps=0.1)(seed)
    tree = random_mixed_tree(model, np.random.default_rng(seed))
    assert model.objective(tree) == pytest.approx(plain_objective(model, tree), rel=1e-12)


def test_no_split_costs_nothing():
    model = data([[0.0], [1.0]], [0, 1], depth=1)
    assert model.objective(Tree.stump([0.0], 0.25, np.eye(2))) == 1.0
    assert model.objective(Tree.stump([0.0], 0.15, np.eye(2))) == pytest.approx(1.0 + 2 * 4.0 * 0.1)


# ---------------------------------------------------------------------- repair, encode


def assert_feasible(model, tree):
    """What the module says about feasible trees, point by point."""
    assert tree.depth <= model.depth
    for node in tree.branches:
        assert (tree.labels[tree.left[node]] != tree.labels[tree.right[node]]) or not (
            tree.is_leaf[tree.left[node]] and tree.is_leaf[tree.right[node]]
        )
        if tree.category[node] >= 0:
            continue
        h, used = tree.weights[node], np.flatnonzero(tree.weights[node])
        f = np.abs(tree.threshold[node] - model.X[:, used] @ h[used])
        assert np.abs(h).max() <= model.max_coefficient + 1e-6
        assert np.nanmax(f) <= 1 + 1e-6
        gaps = [j for j in used if np.isnan(model.X[:, j]).any()]
        assert np.all(np.abs(h[gaps]) >= model.tolerance - 1e-6)
    for i in range(len(model.X)):
        node = 0
        while tree.left[node] >= 0:
            used = np.flatnonzero(tree.weights[node])
            if len(used):
                f = tree.threshold[node] - model.X[i, used] @ tree.weights[node, used]
                assert np.isnan(f) or abs(f) >= model.margin - 1e-6
            node = (tree.left if side(tree, model.X[[i]], node)[0] else tree.right)[node]


SMALL = [
    svm1odt(25, 3, 3),
    svm1odt(25, 2, 2, levels=(5, 3), gaps=0.1),
    svm1odt(15, 3, 6, gaps=0.3, depth=3, epsilon=0.05, alpha_1=100.0),
    svm1odt(25, 2, 2, levels=(4,), gaps=0.1, alpha_1=0.0, alpha_2=0.0, epsilon=0.05),
    svm1odt(30, 2, 3, depth=1, levels=(3,), max_coefficient=0.7, formulation="paper"),
    svm1odt(30, 0, 2, levels=(3, 2), gaps=0.2),
]


@pytest.mark.parametrize("make", SMALL)
@looped("seed", range(4))
def test_any_tree_can_be_repaired_and_encoded(make, seed):
    model = make(seed)
    tree = random_mixed_tree(model, np.random.default_rng(seed))
    feasible = model.repair(tree)
    assert_feasible(model, feasible)
    found = check(model.build(), model.encode(tree))
    assert found.worst <= 1e-6, found.worst_name
    assert found.objective == pytest.approx(model.objective(feasible), abs=1e-9)
    assert model.repair(feasible) == feasible  # what is feasible stays as it is


@pytest.mark.parametrize("make", SMALL)
def test_encoding_and_decoding_keeps_what_a_tree_does(make):
    model = make(1)
    for seed in range(5):
        tree = model.repair(random_mixed_tree(model, np.random.default_rng(seed)))
        again = model.decode(model.encode(tree))
        assert np.array_equal(predict_labels(again, model.X), predict_labels(tree, model.X))
        assert model.objective(again) == pytest.approx(model.objective(tree), abs=1e-9)
        assert model.objective(model.repair(again)) == pytest.approx(model.objective(tree), abs=1e-9)


def test_a_single_leaf_and_a_deep_tree_can_be_encoded():
    model = svm1odt(20, 2, 3)(0)
    leaf = Tree.leaf([0.0, 1.0, 0.0], 2)
    deep = random_mixed_tree(replace(model, depth=4), np.random.default_rng(1))
    for tree in (leaf, deep):
        found = check(model.build(), model.encode(tree))
        assert found.worst <= 1e-6
        assert found.objective == pytest.approx(model.objective(model.repair(tree)), abs=1e-9)


def test_a_split_is_scaled_to_the_best():
    """With distance 0.5 on both sides the hinge errors vanish at h = 0.5; the norm does not pay for less."""
    model = data([[0.0], [1.0]], [0, 1], depth=1)
    tree = model.repair(Tree.stump([30.0], 15.0, np.eye(2)))
    assert (tree.weights[0, 0], tree.threshold[0]) == pytest.approx((0.5, 0.25))
    dear = replace(model, alpha_2=20.0)
    least = dear.repair(Tree.stump([30.0], 15.0, np.eye(2)))
    assert least.weights[0, 0] == pytest.approx(2 * model.tolerance)


def test_a_threshold_on_a_point_moves_into_the_gap():
    model = data([[0.0], [0.5], [1.0]], [0, 0, 1], depth=1)
    tree = model.repair(Tree.stump([1.0], 0.5, np.eye(2)))
    assert tree.threshold[0] / tree.weights[0, 0] == pytest.approx(0.75)


# ---------------------------------------------------------------------- bounds


def test_bound_counts_equal_rows_and_classes_without_a_leaf():
    equal = data([[0.0], [0.0], [0.0], [1.0]], [0, 1, 1, 0])
    assert equal.lower_bound() == 1.0
    assert data(np.arange(6)[:, None] / 5, [0, 0, 0, 1, 1, 2], depth=1).lower_bound() == 1.0
    assert data([[0.0], [1.0]], [0, 1]).lower_bound() == 0.0


def test_rows_that_differ_in_what_they_lack_can_be_parted():
    X = [[0.0, np.nan], [0.0, 0.5], [1.0, 0.5], [1.0, np.nan], [0.5, 0.5]]
    model = data(X, [1, 0, 0, 1, 0], depth=1)
    assert model.lower_bound() == 0.0
    result = solved(model)
    assert result.objective == pytest.approx(model.alpha_2 * model.tolerance, abs=1e-6)  # a weight just large enough
    assert predict_labels(model.decode(result.x), model.X).tolist() == [1, 0, 0, 1, 0]


# ---------------------------------------------------------------------- categories, missing values


@pytest.mark.parametrize(("heavy", "label"), [(0, 0), (2, 1)])
def test_what_no_point_has_goes_with_the_larger_side(heavy, label):
    """Levels 0 and 1 on the left, 2 on the right; 3, 4 and missing values are not in the data."""
    size = np.ones(3)
    size[heavy] = 10.0
    settings = {"size": size, "categorical": np.array([True]), "levels": np.array([5])}
    model = data([[0.0], [1.0], [2.0]], [0, 0, 1], depth=1, **settings)
    split = Tree(
        left=np.array([1, -1, -1]),
        right=np.array([2, -1, -1]),
        weights=np.zeros((3, 1)),
        threshold=np.zeros(3),
        values=np.array([[2.0, 1.0], [2.0, 0.0], [0.0, 1.0]]),
        labels=np.array([0, 0, 1]),
        category=np.array([0, -1, -1]),
        left_categories=np.array([[True, True, False], [False] * 3, [False] * 3]),
    )
    for tree in (model.repair(split), model.decode(model.encode(split))):
        assert predict_labels(tree, model.X).tolist() == [0, 0, 1]
        assert predict_labels(tree, [[3.0], [4.0], [np.nan]]).tolist() == [label] * 3


def test_a_category_of_many_levels_is_no_problem():
    rng = np.random.default_rng(0)
    code = rng.permutation(np.arange(600) % 200)
    y = (np.arange(200) % 2)[code]
    X = np.column_stack([rng.random(600), code])
    model = SVM1ODT(X, y, np.ones(600), 2, depth=1, alpha_2=0.5, categorical=np.array([False, True]))
    result = solved(model)
    assert result.objective == pytest.approx(0.5)
    assert np.array_equal(predict_labels(model.decode(result.x), X), y)


def test_every_row_may_lack_something():
    X = [[0.0, np.nan], [0.2, np.nan], [np.nan, 0.4], [1.0, np.nan], [np.nan, 1.0]]
    model = data(X, [0, 0, 1, 1, 1], depth=2)
    assert solved(model).objective == pytest.approx(best_svm1odt(model), abs=1e-5)


# ---------------------------------------------------------------------- the rest


def test_it_is_a_formulation_of_about_the_size_it_says():
    assert isinstance(svm1odt(5, 2)(0), TreeFormulation)
    for make in (svm1odt(200, 8, 3), svm1odt(200, 4, 2, levels=(3, 4)), svm1odt(200, 8, 3, formulation="paper")):
        model = make(0)
        assert 0.5 <= model.program_cells / model.build().matrix.nnz <= 2.0


def test_one_class_needs_no_split():
    model = SVM1ODT(np.array([[0.0], [1.0]]), np.zeros(2, dtype=int), np.ones(2), n_classes=1)
    result = solved(model)
    assert result.objective == model.objective(model.decode(result.x)) == 0.0


@looped(
    "settings, said",
    [
        ({"alpha_1": 3.9}, r"alpha_1 \* epsilon = 0.975 is below 1.*alpha_1 >= 4"),
        ({"alpha_1": 0.0}, "alpha_1 = alpha_2 = 0 for a hard margin"),
        ({"epsilon": 1.5}, r"epsilon=1.5 must be in \(0, 1\]"),
        ({"tolerance": 0.5}, "no smaller than tolerance=0.5"),
        ({"alpha_2": -1.0}, "alpha_2=-1.0 must not be negative"),
        ({"depth": 0}, "depth 0"),
        ({"formulation": "printed"}, "use 'tight' or 'paper'"),
        ({"cuts": ("leaves",)}, "use some of 'leaf', 'all_but_one', 'all'"),
        ({"size": np.array([1.0])}, "size has shape"),
        ({"weight": np.array([1.0, -1.0])}, "weight must be finite and not negative"),
        ({"categorical": np.array([True])}, "must be codes 0, 1, 2"),
        ({"X": np.array([[0.0], [np.inf]])}, "infinite"),
        ({"X": np.array([[0.0], [np.nan]]), "formulation": "paper"}, "missing values; use formulation='tight'"),
        ({"X": np.array([[0.0], [2.0]]), "categorical": np.array([True]), "levels": np.array([2])}, "the code 2"),
    ],
)
def test_bad_input_is_refused_with_the_remedy(settings, said):
    model = data([[0.0], [0.3]], [0, 1])
    with pytest.raises(InvalidInputError, match=said):
        replace(model, **settings)


def test_trees_of_another_kind_are_refused():
    model = svm1odt(10, 1, 2, levels=(3,))(0)
    with pytest.raises(InvalidInputError, match="uses the categorical feature 1"):
        model.repair(Tree.stump([0.0, 1.0], 0.5, np.eye(2)))
    with pytest.raises(InvalidInputError, match="uses the categorical feature 1"):
        model.objective(Tree.stump([0.0, 1.0], 0.5, np.eye(2)))
    with pytest.raises(InvalidInputError, match="the model 2 classes and 2 features"):
        model.repair(Tree.stump([1.0], 0.5, np.eye(2)))
