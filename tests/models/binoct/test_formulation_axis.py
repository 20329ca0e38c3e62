"""BinOCT and Fair beyond the contracts: trees as cuts, ranges of values, labels of leaves, bounds."""

from itertools import product

import numpy as np
import pytest
from tests.contracts.brute_force_axis import best_binoct, best_fair, discrimination
from tests.examples import looped

from treewright.core.budget import Budget
from treewright.exceptions import InvalidInputError
from treewright.models.binoct.axis import single_feature_tree
from treewright.models.binoct.nodes import improved_binoct_tree
from treewright.models.binoct.objective import BinOCT
from treewright.models.binoct.search import search_binoct
from treewright.models.fair.labels import fair_leaf_labels
from treewright.models.fair.objective import FairOCT
from treewright.optimize.formulation import TreeFormulation
from treewright.optimize.incumbent import Incumbent
from treewright.solvers import Status, get_solver
from treewright.solvers.program_check import check
from treewright.tree import Tree, route, weighted_error


def binoct(X, y, depth=2, **given):
    X, y = np.asarray(X, dtype=float), np.asarray(y)
    return BinOCT(X, y, given.get("weight", np.ones(len(y))), int(y.max()) + 1, depth)


def fair(X, y, depth=2, **settings):
    X, y = np.asarray(X, dtype=float), np.asarray(y)
    return FairOCT(X, y, np.ones(len(y)), int(y.max()) + 1, depth, **settings)


def test_they_are_formulations():
    assert all(isinstance(make([[0.0], [1.0]], [0, 1]), TreeFormulation) for make in (binoct, fair))


# ---------------------------------------------------------------------- trees as cuts


@pytest.mark.parametrize("seed", range(4))
def test_straight_trees_have_one_feature_and_thresholds_midway(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (30, 3)).astype(float)
    splits = rng.normal(size=(7, 3)) * (rng.random((7, 3)) < 0.6)
    tree = Tree.from_heap(np.ones(7), splits, rng.normal(size=7), np.ones((15, 2)), rng.integers(0, 2, 15))
    straight = single_feature_tree(tree, X, 2)
    assert straight.depth <= 2
    visits = {0: np.ones(30, dtype=bool)}
    for node in straight.branches.tolist():
        (feature,) = np.flatnonzero(straight.weights[node])
        assert straight.weights[node, feature] == 1.0
        values, at = X[visits[node], feature], straight.threshold[node]
        assert at == (values[values <= at].max() + values[values > at].min()) / 2  # both sides have points
        below = X[:, feature] <= at
        visits[straight.left[node]], visits[straight.right[node]] = visits[node] & below, visits[node] & ~below


def test_a_split_of_one_feature_keeps_its_sides_whatever_its_sign_and_scale():
    X = np.array([[0.1], [0.2], [0.3], [1e9]])
    for weight, threshold, left in [(1e-8, 2.5e-9, [0, 1]), (-3.0, -0.75, [2, 3])]:
        tree = Tree.stump([weight], threshold, [[1.0, 0.0], [0.0, 1.0]])
        straight = single_feature_tree(tree, X, 1)
        same = straight.labels[route(straight, X)] == tree.labels[route(tree, X)]
        assert same.all() and np.flatnonzero(route(tree, X) == 1).tolist() == left


def test_neighbours_in_floating_point_can_be_parted():
    low = 1.0
    X, y = np.array([[low], [np.nextafter(low, 2.0)], [3.0]]), np.array([0, 1, 0])
    for model in (binoct(X, y), fair(X, y)):
        found = get_solver("highs").solve(model.build())
        assert found.objective == pytest.approx(0.0, abs=1e-9)
        assert model.objective(model.decode(found.x)) == 0.0


def test_trees_with_categories_are_refused():
    listed = np.array([[True, False], [False, False], [False, False]])
    tree = Tree([1, -1, -1], [2, -1, -1], np.zeros((3, 1)), np.zeros(3), np.eye(3, 2), [0, 0, 1], [0, -1, -1], listed)
    with pytest.raises(InvalidInputError, match="categorical"):
        binoct([[0.0], [1.0]], [0, 1]).repair(tree)


@pytest.mark.parametrize("make", [binoct, fair])
def test_constant_features_leave_nothing_to_choose(make):
    model = make(np.ones((4, 2)), [0, 1, 1, 1])
    found = get_solver("highs").solve(model.build())
    assert found.status is Status.OPTIMAL
    tree = model.repair(model.decode(found.x))
    assert tree.n_leaves == 1 and tree.labels[0] == 1
    assert model.objective(tree) == pytest.approx(found.objective) == pytest.approx(model.lower_bound())
    assert check(model.build(), model.encode(Tree.leaf([1.0, 3.0], 2))).worst <= 1e-9


# ---------------------------------------------------------------------- BinOCT


@looped("n_values", [1, 2, 3, 4, 5, 8, 9])
def test_bits_send_every_value_the_way_of_the_cut(n_values):
    """With feature and bits fixed, the rows leave each point just the leaf that its value is to go to."""
    X, y = np.arange(n_values, dtype=float)[:, None], np.arange(n_values) % 2
    y[-1] = 1  # a second class, where there is one value, too
    model = BinOCT(X, y, np.ones(n_values), 2, 1)
    program = model.build()
    n_bits = int(model.bits.max())
    assert program.variables["bit"].shape == (1, n_bits) and 2**n_bits >= n_values
    label = np.array([[1.0, 0.0], [0.0, 1.0]])
    for bits in product([0, 1], repeat=n_bits):
        cut = sum(bit << place for place, bit in enumerate(bits))
        for v in range(n_values):
            fits = []
            for leaf in (0, 1):
                z = np.eye(2)[np.where(np.arange(n_values) < cut, 0, 1)]
                z[v] = np.eye(2)[leaf]
                e = np.where(label > 0, 0.0, model.group_weight.T @ z)
                point = program.point({"f": 1.0, "bit": [bits], "c": label, "z": z, "e": e})
                fits.append(check(program, point).worst <= 1e-9)
            assert fits == [v < cut, v >= cut]


def test_rows_of_the_program_do_not_grow_with_points():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 8, (400, 2)).astype(float), rng.integers(0, 2, 400)
    few, many = (binoct(X[:n], y[:n]).build() for n in (100, 400))
    places = [program.variables["z"].shape[0] for program in (few, many)]  # a point has a row for its leaf
    assert places[0] < places[1] and many.n_rows - few.n_rows == places[1] - places[0]


def test_whole_weights_make_whole_errors():
    assert binoct([[0.0], [1.0]], [0, 1]).build().integer[-4:].all()
    assert not binoct([[0.0], [1.0]], [0, 1], weight=np.array([1.0, 0.5])).build().integer[-4:].any()


@pytest.mark.parametrize("depth", [1, 2])
def test_bounds_without_a_solve_hold_and_are_exact_for_stumps(depth):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        model = binoct(rng.integers(0, 4, (12, 2)), rng.integers(0, 4, 12), depth)
        optimum = best_binoct(model)
        assert model.lower_bound() <= optimum
        assert depth > 1 or model.lower_bound() == optimum


# ---------------------------------------------------------------------- Fair


def test_the_index_is_that_of_the_formula():
    rng = np.random.default_rng(0)
    X, y, group = rng.random((20, 2)), rng.integers(0, 3, 20), rng.integers(0, 3, 20)
    model = fair(X, y, fairness_weight=0.5, complexity=0.01, protected=np.eye(3)[group])
    tree = model.repair(Tree.stump([1.0, 0.0], 0.4, rng.random((2, 3))))
    predicted = tree.labels[route(tree, X)]
    index = discrimination(predicted, group, np.ones(20), 3)
    assert model.discrimination(tree) == pytest.approx(index)
    value = np.mean(predicted != y) + 0.01 * len(tree.branches) + 0.5 * index
    assert model.objective(tree) == pytest.approx(value)


@looped("seed", range(6))
@looped("cells", [2_000_000, 0])
def test_labels_of_leaves_are_the_best_ones(seed, cells, monkeypatch):
    monkeypatch.setattr("treewright.models.fair.labels._CELLS", cells)
    rng = np.random.default_rng(seed)
    error, reach = rng.random((4, 3)) / 4, rng.dirichlet(np.ones(4), 2).T
    part = rng.dirichlet(np.ones(2))

    def cost(labels):
        share = np.array([[reach[np.array(labels) == k, a].sum() for k in range(3)] for a in range(2)])
        return error[np.arange(4), labels].sum() + 0.4 * np.abs(share - part @ share).sum()

    every = {labels: cost(list(labels)) for labels in product(range(3), repeat=4)}
    found = cost(fair_leaf_labels(error, reach, part, 0.4).tolist())
    if cells:
        assert found == pytest.approx(min(every.values()))
    else:  # changes of single labels end where none of them helps, and no label for all is better
        assert found <= min(cost([k] * 4) for k in range(3)) + 1e-12
        assert found <= cost(error.argmin(axis=1)) + 1e-12


def test_a_dear_split_is_not_made_and_that_is_proven_without_a_solve():
    model = fair([[0.0], [1.0], [2.0], [3.0]], [0, 0, 0, 1], complexity=0.3)
    best = Incumbent(model)
    search_binoct(best, model, [], Budget(10.0), price=0.3 * 4)
    assert best.solution.n_leaves == 1 and best.objective == 0.25 and best.proven


def test_a_high_price_of_discrimination_makes_all_groups_alike():
    """The group is the only feature: what is fair is one label for all."""
    X = np.repeat([[0.0], [1.0]], 5, axis=0)
    y, groups = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1, 0]), np.eye(2)[X[:, 0].astype(int)]
    for price, errors in [(0.0, 2), (0.149, 2), (0.151, 5)]:  # three more errors of ten against an index of 2
        model = fair(X, y, depth=1, fairness_weight=price, protected=groups)
        tree = model.repair(model.decode(get_solver("highs").solve(model.build(), gap=1e-6).x))
        assert weighted_error(tree, X, y, np.ones(10)) == errors
        assert model.objective(tree) == pytest.approx(best_fair(model))


# ---------------------------------------------------------------------- search


@pytest.mark.parametrize("price", [0.0, 1.5])
def test_alternation_never_makes_a_tree_worse(price):
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 3)), rng.integers(0, 3, 60)
    by_class = np.eye(3)[y] * rng.integers(1, 4, 60)[:, None]
    weight = by_class.sum(axis=1)

    def cost(tree):
        splits = np.count_nonzero(np.any(tree.weights != 0, axis=1))
        return weighted_error(tree, X, y, weight) + price * splits

    for seed in range(3):
        wild = np.random.default_rng(seed)
        splits = np.eye(3)[wild.integers(0, 3, 7)]
        start = Tree.from_heap(np.ones(7), splits, wild.random(7), np.ones((15, 3)), wild.integers(0, 3, 15))
        tree = improved_binoct_tree(single_feature_tree(start, X, 3), X, y, by_class, Budget(), price)
        assert cost(tree) < cost(single_feature_tree(start, X, 3))


@pytest.mark.parametrize("seed", range(3))
def test_the_search_finds_most_optima_of_small_tables(seed):
    rng = np.random.default_rng(seed)
    model = binoct(rng.integers(0, 5, (14, 2)), rng.integers(0, 2, 14))
    best = Incumbent(model)
    search_binoct(best, model, [], Budget(20.0))
    assert best_binoct(model) <= best.objective <= best_binoct(model) + 1


def test_the_search_finds_trees_whose_splits_are_no_good_alone():
    """Two equal classes that only the comparison of two features tells apart, among others that tell nothing."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (64, 8)).astype(float)
    X[:, :2] = np.tile([[0, 0], [0, 1], [1, 0], [1, 1]], (16, 1))
    model = binoct(X, (X[:, 0] != X[:, 1]).astype(int))
    best = Incumbent(model)
    search_binoct(best, model, [], Budget(60.0))
    assert best.objective == 0.0
