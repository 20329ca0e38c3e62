"""Terms that hardly move a row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from treewright import OCTHClassifier, SSCTClassifier, TAOClassifier
from treewright.core.budget import Budget
from treewright.models.octsvm.fit import OCTSVMSettings, octsvm_model, tree_without_residue
from treewright.optimize.course import Outcome
from treewright.optimize.record import FitRecord, FitStatus
from treewright.tree import Tree, predict_labels, route
from treewright.tree.trimming import trimmed_tree, without_idle_terms

RNG = np.random.default_rng(0)
X = RNG.normal(size=(500, 4))


def errors(truth):
    return lambda tree: float(np.sum(predict_labels(tree, X) != truth))


def stump(weights, threshold=0.1, labels=(0, 1)):
    return Tree.stump(weights, threshold, np.eye(2)[list(labels)])


def test_terms_of_no_use_go_and_those_of_use_stay():
    noise = RNG.random(len(X)) < 0.1
    truth = (X[:, 0] - 2 * X[:, 2] > 0.1) ^ noise
    found = trimmed_tree(stump([1.0, 0.004, -2.0, -0.003]), X, errors(truth))
    assert found.weights[0].tolist() == [1.0, 0.0, -2.0, 0.0]
    # a term as small, in units in which it moves rows by much
    wide = X * [1.0, 1000.0, 1.0, 1.0]
    kept = stump([1.0, 0.004, -2.0, -0.003])
    cost = lambda tree: float(np.sum(predict_labels(tree, wide) != predict_labels(kept, wide)))  # noqa: E731
    assert trimmed_tree(kept, wide, cost).weights[0, 1] == 0.004


def test_what_is_dropped_leaves_its_mean():
    shifted = X + [0.0, 300.0, 0.0, 0.0]
    tree = stump([1.0, 0.01, 0.0, 0.0], 3.0)
    found = trimmed_tree(tree, shifted, lambda tree: 100.0)
    assert found.weights[0].tolist() == [1.0, 0.0, 0.0, 0.0]
    assert np.mean(predict_labels(found, shifted) != predict_labels(tree, shifted)) < 0.02


def test_a_tree_without_errors_keeps_every_term_it_needs():
    tree = stump([1.0, 0.02, -2.0, 0.0])
    truth = predict_labels(tree, X)
    assert errors(truth)(trimmed_tree(tree, X, errors(truth))) == 0


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_the_cost_rises_by_a_tenth_of_its_root_at_most_over_all_splits(seed):
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(7, 4)) * rng.choice([1.0, 0.01], (7, 4))
    weights[3:] = 0.0
    left, right, values = [1, 3, 5, -1, -1, -1, -1], [2, 4, 6, -1, -1, -1, -1], np.eye(2)[[0, 0, 0, 0, 1, 1, 0]]
    tree = Tree(left, right, weights, rng.normal(size=7) * 0.1, values, values.argmax(axis=1))
    truth = predict_labels(tree, X) ^ (rng.random(len(X)) < 0.3)
    found = trimmed_tree(tree, X, errors(truth))
    now = errors(truth)(tree)
    assert errors(truth)(found) <= now + max(0.002 * now, 0.1 * now**0.5)
    assert np.all((found.weights == 0) | (found.weights == tree.weights))
    assert np.count_nonzero(found.weights, axis=1)[:3].min() >= 1


def test_features_with_gaps_stay_and_categories_are_left_alone():
    holes = X.copy()
    holes[::7, 1] = np.nan
    tree = stump([1.0, 0.0001, 0.0, 0.0001])
    assert trimmed_tree(tree, holes, lambda tree: 1.0).weights[0].tolist() == [1.0, 0.0001, 0.0, 0.0]
    nothing = np.full_like(X, np.nan)
    assert trimmed_tree(tree, nothing, lambda tree: 1.0) == tree


def test_mending_and_time():
    tree = stump([1.0, 0.001, 0.0, 0.0])
    over = Budget(0.0)
    assert trimmed_tree(tree, X, lambda tree: 1.0, budget=over) == tree
    leaf = Tree.leaf([1.0, 0.0], 4)
    assert trimmed_tree(tree, X, lambda tree: 1.0, mended=lambda tree: leaf) == leaf
    with pytest.raises(ZeroDivisionError):
        trimmed_tree(tree, X, lambda tree: 1 / 0)


@pytest.mark.parametrize("beyond", [-50.0, 50.0])
def test_a_split_that_parts_gaps_from_the_rest_is_one_of_gaps(beyond):
    holes = X.copy()
    holes[::7, 1] = np.nan
    tree = replace(stump([1.0, 0.5, -0.2, 0.1], beyond), missing_left=np.array([beyond < 0, False, False]))
    found = trimmed_tree(tree, holes, lambda tree: 1.0)
    assert found.weights[0].tolist() == [0.0, 0.5, 0.0, 0.0]
    assert np.array_equal(predict_labels(found, holes), predict_labels(tree, holes))
    assert len(np.unique(predict_labels(found, holes))) == 2


def test_terms_that_are_nothing_beside_others_go_and_rows_stay():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random(50), 1e6 * rng.random(50), rng.random(50), np.ones(50)])
    tree = Tree.stump([1.0, 2e-7, 3e-10, 5.0], 5.6, np.eye(2))
    found = without_idle_terms(tree, X)
    assert found.weights[0].tolist() == [1.0, 2e-7, 0.0, 0.0]  # a million times 2e-7 is something, a constant nothing
    assert found.threshold[0] == pytest.approx(0.6)
    assert np.array_equal(route(found, X), route(tree, X))
    sparse_rows = sparse.csr_array(X)
    assert without_idle_terms(tree, sparse_rows) == found
    assert without_idle_terms(found, X) is found
    assert without_idle_terms(tree, X, accept=lambda tree: False) is tree


def test_terms_that_decide_on_a_row_stay():
    X = np.array([[1.0, 0.0], [1.0, 1.0], [5.0, 0.0]])
    tree = Tree.stump([1.0, 1e-9], 1.0 + 0.5e-9, np.eye(2))
    assert route(tree, X).tolist() == [1, 2, 2]
    assert without_idle_terms(tree, X) is tree


def test_features_that_rows_lack_stay():
    X = np.array([[1.0, np.nan], [2.0, 1.0], [5.0, 0.0]])
    tree = Tree.stump([1.0, 1e-12], 1.5, np.eye(2))
    assert without_idle_terms(tree, X) is tree  # who lacks it goes by the side of missing values
    assert without_idle_terms(tree, np.nan_to_num(X)).weights[0].tolist() == [1.0, 0.0]


@pytest.mark.parametrize("kind", [OCTHClassifier, SSCTClassifier, TAOClassifier])
def test_no_fit_leaves_such_terms(kind, monkeypatch):
    """Whatever its search finds: here a term of 1e-11 is added to what it found."""
    rng = np.random.default_rng(1)
    X = rng.random((40, 3))
    y = (X[:, 0] + X[:, 1] > 1).astype(int)
    trained = kind._trained

    def with_residue(self, given, prepared, budget):
        record, fitted = trained(self, given, prepared, budget)
        tree = fitted["tree_"]
        weights = tree.weights.copy()
        weights[tree.left >= 0, 2] = np.where(weights[tree.left >= 0, 2] == 0, 1e-11, weights[tree.left >= 0, 2])
        return record, fitted | {"tree_": replace(tree, weights=weights)}

    plain = kind(max_depth=1, random_state=0).fit(X, y)
    monkeypatch.setattr(kind, "_trained", with_residue)
    model = kind(max_depth=1, random_state=0).fit(X, y)
    assert np.array_equal(model.tree_.weights != 0, plain.tree_.weights != 0)
    assert np.array_equal(model.apply(X), plain.apply(X)) and "e-1" not in model.export_text()


def test_what_interior_points_leave_goes_where_the_tree_stays_as_good():
    rng = np.random.default_rng(2)
    rows = np.column_stack([rng.random((60, 2)), rng.integers(0, 2, 60)])
    y = (rows[:, 0] > 0.5).astype(int)
    options = OCTSVMSettings(norm="l1", max_depth=0, relabel_cost=1.0)
    model = octsvm_model(rows, y, np.ones(60), options, 2.0)
    nothing = np.zeros(0)
    for weights, kept in (([2.0, 1e-5, 1e-8], [True, True, False]), ([2.0, 0.0, 0.1], [True, False, True])):
        tree = Tree.stump(weights, 1.0, np.eye(2))
        record = FitRecord(FitStatus.TIME_LIMIT, "", 0.0, model.objective(tree), 0.0, nothing)
        found = tree_without_residue(model, Outcome(tree, record), rows)
        assert model.objective(found.solution) == found.record.objective <= record.objective + 1e-4
        assert (found.solution.weights[0] != 0)[[0, 2]].tolist() == [kept[0], kept[2]]
        assert np.array_equal(route(found.solution, rows), route(tree, rows))
