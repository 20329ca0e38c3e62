"""The search for SVM1-ODTs: exact sums, brute force on tiny data, budgets."""

from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy.optimize import linprog

from treewright.core.budget import Budget
from treewright.engine.alternate import Alternation
from treewright.engine.cart import cart_tree
from treewright.engine.leaves import ClassLeaves
from treewright.models.svm1odt import search as attempts
from treewright.models.svm1odt.completed import completed_heap_tree
from treewright.models.svm1odt.crossing import Crossing, Placed
from treewright.models.svm1odt.crossing_loops import release
from treewright.models.svm1odt.nodes import MarginNodes, margin_points
from treewright.models.svm1odt.objective import SVM1ODT
from treewright.models.svm1odt.search import search_svm1odt, start_trees
from treewright.optimize.incumbent import Incumbent
from treewright.optimize.settings import SVM1ODTSearch
from treewright.tree import Tree, predict_labels


def random_model(seed, n=25, p=3, n_classes=3, depth=2, **settings):
    rng = np.random.default_rng(seed)
    X = rng.random((n, p))
    X[:2] = [[0.0] * p, [1.0] * p]
    y = rng.integers(0, n_classes, n)
    weight, size = rng.integers(1, 4, n).astype(float), rng.integers(1, 3, n).astype(float)
    settings = {"epsilon": 0.1, "alpha_1": 15.0, "alpha_2": 0.2} | settings
    return SVM1ODT(X, y, weight, n_classes, depth, size=size, **settings)


def random_tree(model, rng):
    n_branches, p = 2**model.depth - 1, model.X.shape[1]
    weights = rng.normal(size=(n_branches, p))
    threshold = np.einsum("ij,ij->i", weights, rng.random((n_branches, p)))
    values = rng.random((2 * n_branches + 1, model.n_classes))
    return Tree.from_heap(np.ones(n_branches), weights, threshold, values, values.argmax(axis=1))


@pytest.mark.parametrize("seed", range(5))
def test_the_driver_sums_up_the_objective_and_never_raises_it(seed):
    model, rng = random_model(seed), np.random.default_rng(seed)
    start = completed_heap_tree(model.repair(random_tree(model, rng)), model.depth, model.n_classes)
    nodes = MarginNodes(model, margin_points(model), seed)
    leaves = ClassLeaves(model.y, model.weight, model.n_classes)
    state = Alternation(start, model.X, leaves, nodes, toll=nodes.toll)
    before = state.objective
    for _ in range(4):
        assert state.objective == pytest.approx(model.objective(state.tree()))
        if not state.improve(Budget()):
            break
        assert state.objective <= before
        before = state.objective
    assert state.objective == pytest.approx(model.objective(state.tree()))


def test_completed_trees_predict_the_same():
    model = random_model(0, depth=3)
    for seed in range(5):
        tree = random_tree(random_model(0, depth=2), np.random.default_rng(seed))
        whole = completed_heap_tree(tree, 3, model.n_classes)
        assert np.array_equal(predict_labels(tree, model.X), predict_labels(whole, model.X))
        assert (whole.n_leaves, whole.depth) == (8, 3)


def plane_cost_1d(x, inside, left, model):
    """Least hinge and norm of a split of points of one feature with given sides; None where no split has them."""
    here = np.flatnonzero(inside)
    if not len(here) or left[here].all() or not left[here].any():
        return 0.0
    sign = np.where(left[here], 1.0, -1.0)
    n, m = len(x), len(here)
    # Columns |h|, h, g, slack.
    cost = np.concatenate([[model.alpha_2, 0.0, 0.0], model.alpha_1 * model.sizes[here]])
    value = np.column_stack([np.zeros(n), -x, np.ones(n)])
    rows = [
        np.hstack([-sign[:, None] * value[here], -np.eye(m)]),
        np.hstack([value, np.zeros((n, m))]),
        np.hstack([-value, np.zeros((n, m))]),
        np.hstack([[[-1.0, 1.0, 0.0], [-1.0, -1.0, 0.0]], np.zeros((2, m))]),
    ]
    b = np.concatenate([np.full(m, -model.epsilon), np.ones(2 * n), np.zeros(2)])
    bounds = [(0, 10), (-10, 10), (None, None)] + [(0, model.epsilon - model.margin)] * m
    solved = linprog(cost, np.vstack(rows), b, bounds=bounds)
    return solved.fun if solved.status == 0 else None


def best_1d(model):
    """The optimum for points of one feature and depth 2, by all cuts at the three splits."""
    x, y, n = model.X[:, 0], model.y, len(model.X)
    rank = np.argsort(np.argsort(x))
    known = {}

    def cut(inside, k):
        key = inside.tobytes(), k
        if key not in known:
            known[key] = plane_cost_1d(x, inside, rank < k, model)
        return known[key]

    def error(inside):
        counts = np.bincount(y[inside], model.weight[inside], model.n_classes)
        return counts.sum() - counts.max()

    best = np.inf
    for low, middle, high in combinations_with_replacement(range(n + 1), 3):
        root = cut(np.ones(n, dtype=bool), middle)
        left, right = rank < middle, rank >= middle
        parts = root, cut(left, low), cut(right, high)
        if None in parts:
            continue
        errors = error(rank < low) + error(left & (rank >= low)) + error(right & (rank < high)) + error(rank >= high)
        best = min(best, sum(parts) + errors)
    return best


@pytest.mark.parametrize("seed", range(6))
def test_the_search_finds_the_optimum_of_tiny_data(seed):
    model = random_model(seed, n=8, p=1, epsilon=0.08, alpha_1=13.0)
    best = Incumbent(model, floor=0.0)
    search_svm1odt(best, model, [], Budget(300.0), seed, search=SVM1ODTSearch(patience=15))
    assert best.objective == pytest.approx(best_1d(model), abs=1e-6)
    assert best.objective == pytest.approx(model.objective(best.solution))


def chequered(depth):
    """Two features by turns, which no single split helps with, and the tree that knows."""
    rng = np.random.default_rng(0)
    X = rng.random((60, 3))
    X = X[(np.abs(X[:, :2] - 0.5) > 0.05).all(axis=1)]
    y = ((X[:, 0] > 0.5) ^ (X[:, 1] > 0.5)).astype(int)
    weights = np.zeros((3, 3))
    weights[0, 0] = weights[1:, 1] = 1.0
    leaves = np.eye(2)[[0, 0, 0, 0, 1, 1, 0]]
    good = Tree.from_heap(np.ones(3), weights, np.full(3, 0.5), leaves, leaves.argmax(axis=1))
    return SVM1ODT(X, y, np.ones(len(X)), 2, depth, 0.05, 20.0, 2.0), good


def test_a_search_that_goes_on_takes_the_given_starts_too():
    model, good = chequered(2)
    found = []
    for starts in ([], [good]):
        best = Incumbent(model, floor=0.0)
        best.offer(Tree.leaf([1.0, 1.0], 3))
        search_svm1odt(best, model, starts, Budget(), 0, search=SVM1ODTSearch(patience=0))
        found.append(best.objective)
    assert found[1] <= model.objective(model.repair(good)) < found[0]
    assert [len(tree.leaves) for tree in start_trees(model, Budget(), 0.3)] == [4] * 4


def test_a_deeper_tree_starts_from_the_best_one_of_a_level_less(monkeypatch):
    model, good = chequered(4)
    monkeypatch.setattr(attempts, "start_trees", lambda model, *_: [good] if model.depth == 2 else [])
    best = Incumbent(model, floor=0.0)
    search_svm1odt(best, model, [], Budget(), 0, search=SVM1ODTSearch(patience=0))
    assert best.objective <= model.objective(model.repair(good))
    monkeypatch.setattr(attempts, "start_trees", lambda *_: [])
    alone = Incumbent(model, floor=0.0)
    search_svm1odt(alone, model, [], Budget(), 0, search=SVM1ODTSearch(patience=0))
    assert best.objective < alone.objective


def test_hard_margins_are_kept():
    model = random_model(1, n=20, epsilon=0.05, alpha_1=0.0, alpha_2=0.0)
    best = Incumbent(model, floor=0.0)
    search_svm1odt(best, model, [], Budget(100.0), search=SVM1ODTSearch(patience=5))
    tree = best.solution
    leaf = model.weight.sum() - np.bincount(model.y, model.weight).max()
    assert best.objective < leaf
    assert best.objective == model.objective(tree) == model.weight[predict_labels(tree, model.X) != model.y].sum()


def test_a_tree_is_offered_whatever_the_budget_and_starts_are_never_made_worse():
    model = random_model(2)
    best = Incumbent(model, floor=0.0)
    search_svm1odt(best, model, [], Budget(0.0))
    assert best.solution.n_nodes == 1
    given = model.repair(random_tree(model, np.random.default_rng(0)))
    stopped = Budget()
    stopped.stop()
    search_svm1odt(best, model, [given], stopped)
    assert best.objective <= model.objective(given)


def test_the_same_seed_finds_the_same_tree():
    model = random_model(3)
    found = []
    for _ in range(2):
        best = Incumbent(model, floor=0.0)
        search_svm1odt(best, model, [], Budget(60.0), seed=7, search=SVM1ODTSearch(patience=4))
        found.append(best.solution)
    assert found[0] == found[1]


# ---------------------------------------------------------------------- points that change their places


def mixed_model(seed, n=30):
    """Two numbers and a category."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.random((n, 2)), rng.integers(0, 4, n)])
    X[:2, :2] = [[0.0] * 2, [1.0] * 2]
    y = (X[:, 0] + 0.5 * (X[:, 2] > 1) > 0.7).astype(int)
    return SVM1ODT(X, y, np.ones(n), 2, 2, 0.05, 20.0, 0.1, categorical=np.arange(3) == 2)


@pytest.mark.parametrize("seed", range(4))
def test_crossing_says_what_its_tree_costs_and_never_loses(seed):
    model, rng = random_model(seed), np.random.default_rng(seed)
    start = model.repair(random_tree(model, rng))
    crossing = Crossing(model)
    tree, value = crossing.cross(completed_heap_tree(start, 2, 3), rng, 40, 0.1, Budget())
    assert value == pytest.approx(model.objective(tree), abs=1e-6)
    # It is feasible: to repair it takes nothing but splits away whose leaves say the same.
    repaired = model.repair(tree)
    gone = completed_heap_tree(repaired, 2, 3).weights.any(axis=1) != tree.weights.any(axis=1)
    price = model.alpha_2 * np.abs(tree.weights[gone]).sum()
    assert model.objective(repaired) <= value - price + 1e-6
    assert gone.any() or model.objective(repaired) == pytest.approx(value, abs=1e-6)
    assert value <= model.objective(start) + 1e-9


def test_planes_that_no_point_comes_to_can_be_released():
    model = random_model(0, n=12, p=2, depth=3)
    blank = completed_heap_tree(Tree.leaf([1.0, 1.0, 1.0], 2), 3, 3)  # all points go left everywhere
    at = Placed.of(Crossing(model), blank)
    assert len(set(at.state.leaf.tolist())) == 1
    before = at.value
    for node in (1, 2):
        release(at.places, at.state, at.kept, node, 1.0, before + 1.0, np.zeros(1, dtype=np.uint64))
    assert at.value <= before + 1.0


def test_crossing_solves_the_planes_of_a_split_of_one_feature():
    model = random_model(2, n=8, p=1, epsilon=0.08, alpha_1=13.0)
    x, rank = model.X[:, 0], np.argsort(np.argsort(model.X[:, 0]))
    middle = np.sort(x)[3:5].mean()
    tree = model.repair(Tree.stump([1.0], middle, [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]))
    at = Placed.of(Crossing(model), completed_heap_tree(tree, 2, 3))
    root = plane_cost_1d(x, np.ones(8, dtype=bool), rank < 4, model)
    assert at.state.costs.sum() == pytest.approx(root, abs=1e-7)  # its children part nothing


@pytest.mark.parametrize("seed", range(4))
def test_crossing_leaves_categories_alone(seed):
    model, rng = mixed_model(seed), np.random.default_rng(seed)
    weights = np.zeros((7, 3))
    weights[1, :2], weights[2, 0] = [0.5, 0.2], 0.5
    listed = np.zeros((7, 4), dtype=bool)
    listed[0, :2] = True
    k = np.arange(7)
    children = [np.where(k < 3, 2 * k + side, -1) for side in (1, 2)]
    threshold = np.where(k == 1, 0.4, np.where(k == 2, 0.26, 0.0))
    labels = np.array([0, 0, 0, 0, 1, 0, 1])
    tree = Tree(*children, weights, threshold, np.zeros((7, 2)), labels, np.where(k == 0, 2, -1), listed)
    start = completed_heap_tree(model.repair(tree), 2, 2)
    found, value = Crossing(model).cross(start, rng, 60, 0.1, Budget())
    assert value == pytest.approx(model.objective(found), abs=1e-6)
    assert value <= model.objective(start) + 1e-9
    assert start.category[0] == 2 and np.array_equal(found.category, start.category)
    assert np.array_equal(found.left_categories, start.left_categories)


def test_trees_fitted_to_places_part_what_can_be_parted():
    rng = np.random.default_rng(0)
    X = rng.random((60, 3))
    X = X[(np.abs(X[:, 0] - 0.5) > 0.05) & (np.abs(X[:, 1] - 0.5) > 0.05)]
    y = ((X[:, 0] > 0.5) ^ (X[:, 1] > 0.5)).astype(int)
    model = SVM1ODT(X, y, np.ones(len(X)), 2, 2, 0.01, 1000.0, 0.1)
    crossing, blank = Crossing(model), completed_heap_tree(Tree.leaf([1.0, 1.0], 3), 2, 2)
    trees = [model.repair(crossing.rooted(blank, root, Budget())[0]) for root in crossing.roots()]
    assert min(np.count_nonzero(predict_labels(tree, X) != y) for tree in trees) == 0
    best = min(trees, key=model.objective)
    normal, offset = crossing.promoted(best, rng)
    assert normal.shape == (3,) and abs(offset) <= 1
    normal, offset = crossing.random_root(rng)
    assert np.abs(offset - X @ normal).max() <= 1 + 1e-9 and np.abs(offset - X @ normal).min() > 0
    settled, value = crossing.settle(completed_heap_tree(best, 2, 2), np.array([0, 1, 0, 1]), Budget())
    assert value == pytest.approx(model.objective(model.repair(settled)), abs=1e-6)
    assert np.count_nonzero(predict_labels(settled, X) != y) == 0


def test_large_or_hard_models_are_not_for_crossing():
    assert Crossing.suits(random_model(0))
    assert not Crossing.suits(random_model(0, n=6000))
    assert not Crossing.suits(random_model(0, depth=8))
    assert not Crossing.suits(random_model(0, alpha_1=0.0, alpha_2=0.0))
    model = random_model(0)
    assert not Crossing.suits(replace(model, X=np.where(np.eye(25, 3) > 0, np.nan, model.X)))


@pytest.mark.parametrize("depth", [2, 3])
def test_whatever_a_search_begins_with_it_ends_no_worse_than_cart(depth):
    rng = np.random.default_rng(depth)
    X = rng.random((200, 3))
    y = (4 * X[:, 0]).astype(int) % 3
    model = SVM1ODT(X, y, np.ones(200), 3, depth, epsilon=0.01, alpha_1=100.0, alpha_2=0.1)
    cart = model.objective(model.repair(cart_tree(X, y, np.ones(200), 3, depth)))
    leaf = Tree.leaf([1.0, 0.0, 0.0], 3)
    assert cart < model.objective(leaf)
    stopped = Budget()
    stopped.stop()
    best = Incumbent(model, floor=0.0)
    search_svm1odt(best, model, [leaf], stopped)
    assert best.objective <= cart


def test_a_search_on_gaps_ends_where_nothing_gets_better(monkeypatch):
    """A way of the sides of points with gaps claims more than its tree is worth; that must not make it go on."""
    rounds, wander = [], attempts._Search._wander
    monkeypatch.setattr(attempts._Search, "_wander", lambda self, *job: rounds.append(1) or wander(self, *job))
    X = np.array([[1.0, 1.0], [np.nan, 0.0]] * 10)
    model = SVM1ODT(
        X, np.array([0, 1] * 10), np.ones(20), n_classes=2, depth=1, epsilon=0.05, alpha_1=20.0, alpha_2=5.0
    )
    search_svm1odt(Incumbent(model, floor=0.0), model, [], Budget(60.0), search=SVM1ODTSearch(patience=10))
    assert len(rounds) <= 60
