"""Trees whose splits have few features: thinned starts, passes, stretched points, mixed tables, tree steps."""

import numpy as np
import pytest
from scipy import sparse
from tests.engine.recomputed import recomputed
from tests.examples import looped

from treewright.core.budget import Budget
from treewright.engine.alternate import Alternation
from treewright.engine.leaves import ClassLeaves, MeanLeaves
from treewright.engine.sparse_trees import improved_sparse_tree
from treewright.engine.starts import StartTask, random_tree, several_starts, starting_tree
from treewright.engine.stretch import Stretch, improve_stretched
from treewright.engine.thinning import thinned_tree
from treewright.models.laptao.tree_steps import AlternatingStep
from treewright.splits.points import Points
from treewright.splits.sparse_nodes import SparseNodes
from treewright.tree import Tree, route

MIXED = np.array([0, 4, 0, 0, 3, 0])  # four numerical features, two categories
FORMS = ["dense", "sparse", "mixed", "gaps"]


def terms(tree):
    """Most features with a weight in a split."""
    return int(np.count_nonzero(tree.weights, axis=1).max())


def table(form, n=160, seed=0):
    """Points of a form, their levels, classes by two oblique lines, and weights."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 6)) * (rng.random((n, 6)) < 0.8)
    y = (X[:, 0] + X[:, 2] - X[:, 3] > 0.4).astype(int) + (X[:, 5] - X[:, 0] > 0.2)
    levels = None
    if form == "mixed":
        levels = MIXED
        X[:, 1], X[:, 4] = rng.integers(0, 4, n), rng.integers(0, 3, n)
        y = np.where(X[:, 1] == 2, 2, y)
    if form == "gaps":
        X[rng.random((n, 6)) < 0.15] = np.nan
    return sparse.csr_array(X) if form == "sparse" else X, levels, y, rng.integers(1, 4, n).astype(float)


def dense_start(X, levels, depth=3):
    """A tree whose hyperplanes have all features."""
    return random_tree(X, depth, np.random.default_rng(1), None, None, levels)


# ---------------------------------------------------------------------- starts


@pytest.mark.parametrize("form", FORMS)
@looped("most", [1, 2, 3])
def test_a_thinned_tree_keeps_the_largest_weights(most, form):
    X, levels, *_ = table(form)
    tree = dense_start(X, levels)
    thin = thinned_tree(tree, X, most, levels)
    assert terms(tree) > most >= terms(thin)
    assert np.array_equal(thin.left, tree.left) and np.array_equal(thin.category, tree.category)
    for before, after in zip(tree.weights, thin.weights, strict=True):
        kept = after != 0
        assert np.array_equal(after[kept], before[kept])
        if kept.any():
            assert np.abs(before[kept]).min() >= np.abs(before[~kept]).max() and kept.sum() == most
    assert thinned_tree(thin, X, most, levels) is thin
    assert thinned_tree(tree, X, None, levels) is tree


@pytest.mark.parametrize("seed", range(5))
def test_a_thinned_split_agrees_with_what_it_was_as_well_as_it_can(seed):
    rng = np.random.default_rng(seed)
    X, normal = rng.random((40, 3)), np.array([1.0, -2.0, 0.5])
    tree = Tree.stump(normal, float(np.quantile(X @ normal, 0.4)), np.eye(2))
    thin = thinned_tree(tree, X, 1)
    before, after = route(tree, X) == 1, route(thin, X) == 1
    level = -2.0 * X[:, 1]
    best = max(np.sum((level <= cut) == before) for cut in [-np.inf, *level])
    assert np.sum(before == after) == best


def test_a_thinned_split_that_agrees_with_nothing_sends_all_points_one_way():
    X = np.array([[0.5, 0.0], [0.5, 0.4], [0.5, 0.6], [0.5, 1.0], [0.5, 0.7]])
    for threshold, leaf in ((1.8, 1), (1.4, 2)):
        thin = thinned_tree(Tree.stump([2.0, 1.0], threshold, np.eye(2)), X, 1)
        assert not np.any(thin.weights) and np.all(route(thin, X) == leaf)


@pytest.mark.parametrize("form", FORMS)
@looped("most", [1, 2, 3])
def test_all_starts_keep_to_the_features(most, form):
    X, levels, y, weight = table(form)
    for classify, targets in ((True, y[:, None].astype(float)), (False, np.eye(3)[y])):
        task = StartTask(Points(X, levels), targets, weight, 3, 0.5, most, classify, seed=0)
        for kind in ("auto", "balanced", "cart", "random"):
            tree = starting_tree(task, kind, Budget())
            assert terms(tree) <= most
            assert len(np.unique(route(tree, X))) > 2
    assert all(terms(tree) <= most for tree, _ in several_starts(task, Budget()))


# ---------------------------------------------------------------------- passes


@pytest.mark.parametrize("form", FORMS)
@looped("most", [1, 2, 3])
def test_passes_keep_to_the_features_whatever_the_start_has(most, form):
    X, levels, y, weight = table(form)
    start, objectives = dense_start(X, levels), []
    for passes in range(4):
        leaves = ClassLeaves(y, weight, 3)
        result = improved_sparse_tree(
            start, X, leaves, 0.5, max_split_features=most, max_iter=passes, n_levels=levels, n_jobs=1 + passes % 2
        )
        assert terms(result.tree) <= most
        objectives.append(recomputed(result.tree, X, weight, 0.5, y))
        assert result.objective == pytest.approx(objectives[-1], rel=1e-9)
    assert np.all(np.diff(objectives) <= 1e-9 * objectives[0]) and objectives[-1] < objectives[0]


@pytest.mark.parametrize("form", FORMS)
def test_as_many_features_as_there_are_is_no_restriction(form):
    X, levels, y, weight = table(form)
    n_numbers = 4 if form == "mixed" else 6
    start = dense_start(X, levels)
    free, bound, tight = (
        improved_sparse_tree(start, X, ClassLeaves(y, weight, 3), 0.5, max_split_features=most, n_levels=levels)
        for most in (None, n_numbers, n_numbers - 1)
    )
    assert free.tree == bound.tree and np.array_equal(free.trace[:, 1:], bound.trace[:, 1:])
    assert terms(tight.tree) < n_numbers


@pytest.mark.parametrize("form", ["dense", "sparse", "gaps"])
@pytest.mark.parametrize("k", [2, 3])
def test_the_features_of_a_split_are_found(k, form):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.random((250, 10))
        support = np.sort(rng.choice(10, k, replace=False))
        level = X[:, support] @ (rng.choice([-1.0, 1.0], k) * rng.uniform(0.7, 1.0, k))
        y = (level > np.median(level)).astype(int)
        if form == "gaps":
            X[rng.random(X.shape) < 0.02] = np.nan
        points = sparse.csr_array(X) if form == "sparse" else X
        result = improved_sparse_tree(
            dense_start(points, None, 1), points, ClassLeaves(y, np.ones(250), 2), 0.1, max_split_features=k
        )
        assert np.flatnonzero(result.tree.weights[0]).tolist() == support.tolist()
        assert result.trace[-1, 2] <= (25 if form == "gaps" else 5)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(3))
def test_a_node_of_few_features_is_at_least_as_good_as_one_of_a_single_feature(seed, form):
    X, levels, y, weight = table(form, 80, seed)
    stump = Tree.stump(np.zeros(6), 1.0, np.zeros((2, 1)))
    reached = []
    for most in (1, 2):
        state = Alternation(stump, X, ClassLeaves(y, weight, 3), SparseNodes(0.2, most), n_levels=levels)
        state.leaf[40:] = 2  # leaves with different classes: something is at stake
        state.retarget(state.leaves)
        state.improve(Budget())
        reached.append(state.objective)
    assert reached[1] <= reached[0] + 1e-9


def test_a_large_table_is_screened_for_its_single_feature(monkeypatch):
    from treewright.splits import sparse_nodes as tao

    X, _, y, weight = table("dense", 300)
    start = dense_start(X, None, 2)
    for points in (X, sparse.csr_array(X)):
        whole = improved_sparse_tree(start, points, ClassLeaves(y, weight, 3), 0.5, max_split_features=2)
        monkeypatch.setattr(tao, "_LIKELY", 2)
        monkeypatch.setattr(tao, "_SORTED", 0)
        some = improved_sparse_tree(start, points, ClassLeaves(y, weight, 3), 0.5, max_split_features=2)
        assert terms(some.tree) <= 2
        assert some.objective <= 1.2 * whole.objective
        monkeypatch.undo()


# ---------------------------------------------------------------------- stretched points, tree steps


@pytest.mark.parametrize("form", FORMS)
@looped("most", [1, 2, 3])
def test_passes_over_stretched_points_keep_to_the_features(most, form):
    X, levels, y, weight = table(form)
    state = improve_stretched(
        dense_start(X, levels),
        X,
        np.eye(3)[y],
        weight,
        lambda X, Y, weight: MeanLeaves(Y, weight),
        0.3,
        Stretch(0.25, seed=0, passes=3),
        Budget(),
        max_split_features=most,
        n_levels=levels,
    )
    assert terms(state.tree()) <= most


@pytest.mark.parametrize("form", FORMS)
@looped("most", [1, 2, 3])
def test_tree_steps_keep_to_the_features(most, form):
    X, levels, y, weight = table(form)
    step = AlternatingStep(
        Points(X, levels),
        weight,
        lambda targets, alpha: dense_start(X, levels),
        0.2,
        2,
        1,
        most,
        stretch=Stretch(0.25, seed=0, passes=2),
    )
    rng = np.random.default_rng(0)
    for _ in range(2):
        fitted = step.fit(np.eye(3)[y] + 0.1 * rng.standard_normal((len(y), 3)), Budget())
        assert terms(fitted.model) <= most
    finished = step.finish(fitted.model, Budget())
    assert finished is not None and terms(finished.model) <= most
