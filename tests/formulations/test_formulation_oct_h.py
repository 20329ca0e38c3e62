"""OCT-H beyond the contracts: bounds, groups, repair."""

import numpy as np
import pytest

from treewright.formulations import OCTH, Formulation
from treewright.program import check
from treewright.solvers import get_solver
from treewright.tree import Tree, route


def model(X, y, **settings):
    X = np.asarray(X, dtype=float)
    return OCTH(X, np.asarray(y), np.ones(len(X)), n_classes=int(max(y)) + 1, **settings)


def test_it_is_a_formulation():
    assert isinstance(model([[0.0], [1.0]], [0, 1]), Formulation)


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
    X, y = rng.random((40, 2)), rng.integers(0, 2, 40)
    deep = Tree.from_heap(
        np.ones(7), rng.normal(size=(7, 2)), rng.normal(size=7) * 0.3, np.ones((15, 2)), np.zeros(15, dtype=int)
    )
    for depth, least in [(1, 1.0), (2, 8.0), (3, 5.0)]:
        fixed = model(X, y, depth=depth, min_leaf=least).repair(deep)
        assert fixed.depth <= depth
        assert np.bincount(route(fixed, X), minlength=fixed.n_nodes)[fixed.leaves].min() >= least


def test_repair_drops_splits_that_change_nothing():
    X, y = [[0.0], [0.2], [0.8], [1.0]], [0, 0, 0, 1]
    idle = Tree.from_heap([True, True, True], [[1.0]] * 3, [0.9, 0.1, 2.0], np.ones((7, 2)), np.zeros(7, dtype=int))
    fixed = model(X, y).repair(idle)
    assert fixed.n_leaves == 2
    assert model(X, y).objective(fixed) == 0.0


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
