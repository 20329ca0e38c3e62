"""Starts on points with categories and gaps, numbers made of them, and copies pushed away from their partners."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.examples import looped

from treewright import TAOClassifier
from treewright.core.budget import Budget
from treewright.data.design import Design
from treewright.engine.cart import cart_tree
from treewright.engine.ranked import RankedLevels
from treewright.engine.starts import StartTask, starting_tree
from treewright.engine.stretch import stretched_points
from treewright.splits.points import Points
from treewright.tree import predict_labels, predict_values, route

N_LEVELS = np.array([0, 6, 0])


def mixed(seed=0, n=300, gaps=0.1):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.random(n), rng.integers(0, 6, n).astype(float), rng.random(n)])
    y = (np.isin(X[:, 1], [0, 3, 5]) ^ (X[:, 0] > 0.8)).astype(int)
    X[rng.random(X.shape) < gaps] = np.nan
    return X, y


@pytest.mark.parametrize("seed", range(5))
def test_cart_with_gaps_is_that_of_scikit_learn(seed):
    X, y = mixed(seed)
    numbers = X[:, [0, 2]]
    tree = cart_tree(numbers, y, np.ones(len(y)), 2, depth=3)
    given = DecisionTreeClassifier(max_depth=3, random_state=0).fit(numbers, y)
    assert np.array_equal(predict_labels(tree, numbers), given.predict(numbers))
    tree = cart_tree(numbers, y[:, None] * 1.0, np.ones(len(y)), None, 3)
    given = DecisionTreeRegressor(max_depth=3, random_state=0).fit(numbers, y * 1.0)
    np.testing.assert_allclose(predict_values(tree, numbers)[:, 0], given.predict(numbers))


def test_a_gap_that_tells_the_class_is_split_off():
    X = np.array([[1.0], [2.0], [3.0], [np.nan], [np.nan]])
    y = np.array([0, 0, 0, 1, 1])
    tree = cart_tree(X, y, np.ones(5), 2, depth=1)
    assert predict_labels(tree, X).tolist() == y.tolist()
    assert np.isfinite(tree.threshold).all()


@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_one_cut_of_ranks_is_the_best_subset_of_two_classes(gaps):
    rng = np.random.default_rng(0)
    for _ in range(20):
        code, y = rng.integers(0, 5, 40), rng.integers(0, 2, 40)
        X = code[:, None].astype(float)
        X[rng.random(40) < gaps] = np.nan
        tree = cart_tree(X, y, np.ones(40), 2, depth=1, n_levels=np.array([5]))
        known = np.where(np.isnan(X[:, 0]), 5, code)
        best = min(
            _gini(y[left]) + _gini(y[~left])
            for left in (np.isin(known, [c for c in range(6) if mask >> c & 1]) for mask in range(1, 63))
        )
        leaf = route(tree, X)
        assert sum(_gini(y[leaf == k]) for k in np.unique(leaf)) == pytest.approx(best) or gaps


def _gini(y):
    share = np.mean(y) if len(y) else 0.0
    return len(y) * 2 * share * (1 - share)


def test_ranks_are_undone():
    X, y = mixed(gaps=0.2)
    ranked = RankedLevels.of(X, y[:, None] * 1.0, np.ones(len(y)), N_LEVELS)
    numbers = ranked.apply(X)
    assert np.array_equal(np.isnan(numbers), np.isnan(X))
    tree = cart_tree(numbers, y, np.ones(len(y)), 2, depth=3)
    assert np.array_equal(route(ranked.invert_tree(tree), X), route(tree, numbers))


@looped("classify", [True, False])
@looped("most", [1, 2, None])
@pytest.mark.parametrize("kind", ["balanced", "cart", "random"])
@looped("levels", [N_LEVELS, None])
def test_starts_are_trees_on_the_points(kind, most, classify, levels):
    X, y = mixed()
    if levels is None:
        X = X[:, [0, 2]]
    targets = y[:, None].astype(float)
    task = StartTask(Points(X, levels), targets, np.ones(len(y)), 2, 0.5, most, classify, seed=0)
    tree = starting_tree(task, kind, Budget())
    assert tree.depth <= 2 and len(np.unique(route(tree, X))) > 1
    assert np.all(np.count_nonzero(tree.weights, axis=1) <= (most or 2))
    if levels is not None:
        assert not np.any(tree.weights[:, 1])
        assert kind == "random" or np.any(tree.category == 1)
    assert tree == starting_tree(task, kind, Budget())
    stopped = Budget()
    stopped.stop()
    hasty = starting_tree(task, kind, stopped)
    assert len(route(hasty, X)) == len(X)


def test_points_of_categories_alone_have_starts():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (80, 2)).astype(float)
    for kind in ("balanced", "cart", "random"):
        y = np.isin(X[:, 0], [1, 2]).astype(float)[:, None]
        points = Points(X, np.array([4, 4]))
        tree = starting_tree(StartTask(points, y, np.ones(80), 2, 0.5, None, True, seed=0), kind, Budget())
        assert not np.any(tree.weights)


def test_levels_are_as_far_apart_as_the_ends_of_a_number():
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [np.nan, np.nan], [0.5, 2.0]])
    numbers = Design.of(X, np.array([1.0, 1.0, 1.0, 5.0, 0.0]), np.array([0, 2])).apply(X)
    distance = np.linalg.norm(numbers[:, None] - numbers[None], axis=2)
    assert distance[0, 1] == pytest.approx(1.0) and distance[1, 2] == pytest.approx(1.0)
    assert numbers[3].tolist() == [pytest.approx(1 / 3), 0.0, 0.0]
    assert numbers[4].tolist() == [0.5, 0.0, 0.0]  # a level that was not seen


def test_large_designs_are_sparse(monkeypatch):
    X, _ = mixed()
    design = Design.of(X, np.ones(len(X)), N_LEVELS)
    dense = design.apply(X)
    monkeypatch.setattr("treewright.data.design._DENSE_CELLS", 10)
    np.testing.assert_allclose(design.apply(X).toarray(), dense)


def test_copies_keep_levels_and_what_their_partner_lacks():
    X, y = mixed(gaps=0.3)
    copies, origin = stretched_points(X, y, 0.25, len(X), np.random.default_rng(0), N_LEVELS)
    np.testing.assert_array_equal(copies[:, 1], X[origin, 1])
    assert np.array_equal(np.isnan(copies), np.isnan(X[origin]))
    assert np.any(copies[:, 0] != X[origin, 0])


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_subsets_of_many_levels_are_found_at_each_node(seed):
    """Levels that are ranked by all points are in no order for the points of a node."""
    rng = np.random.default_rng(seed)
    carrier, depot, value = rng.integers(0, 30, 1200), rng.integers(0, 40, 1200), rng.gamma(2.0, 40.0, 1200)
    gift = rng.random(1200) < 0.3
    by_road, north = (np.isin(codes, rng.permutation(n)[: n // 2]) for codes, n in ((carrier, 30), (depot, 40)))
    y = np.where(by_road, north, np.where(gift, 2, 0))
    X = np.column_stack([carrier, depot, np.where(gift, np.nan, value)]).astype(float)
    model = TAOClassifier(max_depth=2, categorical_features=[0, 1], stretch=0.0, random_state=0).fit(X, y)
    assert np.array_equal(model.predict(X), y)
    root = model.tree_.category[0]
    assert root == 0 and model.tree_.n_leaves == 4


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("category", [False, True])
def test_gaps_that_matter_with_another_column_are_found(seed, category):
    """Neither column parts the classes alone; below the gaps of the second one both do."""
    rng = np.random.default_rng(seed)
    number, other, gap = rng.normal(size=600), rng.normal(size=600), rng.random(600) < 0.25
    codes = rng.integers(0, 6, 600)
    high = np.isin(codes, [1, 2, 4]) if category else other > 0
    y = np.where(gap, np.where(number > 0, 0, 1), np.where(high, 2, 1))
    X = np.column_stack([number, np.where(gap, np.nan, codes if category else other)])
    model = TAOClassifier(2, categorical_features=[1] if category else None, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.99


class Spent(Budget):
    """A budget that is over once it was asked so many times."""

    def __init__(self, asked: int) -> None:
        super().__init__()
        self.left = asked

    @property
    def over(self) -> bool:
        self.left -= 1
        return self.left < 0


@looped("asked", [1, 2, 3, 5])
@looped("gaps", [0.0, 0.2])
def test_a_start_that_time_cuts_short_is_a_whole_tree(gaps, asked):
    """Half of a balanced tree sends all points one way, and no pass mends that."""
    X, y = mixed(gaps=gaps)
    levels = N_LEVELS if gaps else None
    X = X if gaps else X[:, [0, 2]]
    task = StartTask(Points(X, levels), y[:, None].astype(float), np.ones(len(y)), 3, 0.5, None, True, seed=0)
    stopped = Budget()
    stopped.stop()
    assert starting_tree(task, "auto", Spent(asked)) == starting_tree(task, "cart", stopped)
