"""Tree alternating optimization: the node solver against LIBLINEAR and SAGA, the tree against recomputation."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeRegressor
from tests.engine.recomputed import recomputed
from tests.examples import looped

from treewright.core.budget import Budget
from treewright.engine import cart
from treewright.engine.alternate import Alternation
from treewright.engine.cart import cart_start, tree_from_sklearn
from treewright.engine.leaves import ClassLeaves, MeanLeaves
from treewright.engine.sparse_trees import improved_sparse_tree
from treewright.engine.starts import random_tree
from treewright.splits.l1_logistic import l1_logistic
from treewright.splits.sparse_nodes import normal_price
from treewright.tree import Tree, passing, predict_labels, predict_values, route
from treewright.tree.structure import Shape

# ---------------------------------------------------------------------- the node solver


def noisy_sides(n, p, seed=0, share=1.0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, p)) * (rng.random((n, p)) < share)
    normal = 6 * rng.standard_normal(p) * (rng.random(p) < 0.4)
    level = X @ normal
    goes_right = level - np.median(level) + rng.logistic(size=n) > 0
    return X, goes_right, rng.random(n) + 0.2


def penalized_loss(X, goes_right, weight, alpha, weights, intercept):
    sign = np.where(goes_right, 1.0, -1.0)
    return weight @ np.logaddexp(0.0, -sign * (X @ weights + intercept)) + alpha * np.abs(weights).sum()


@pytest.mark.parametrize(("n", "p", "alpha"), [(300, 10, 1.0), (1000, 50, 5.0), (200, 150, 0.5), (800, 30, 0.01)])
def test_node_solver_reaches_the_optimum_of_liblinear_and_saga(n, p, alpha):
    X, goes_right, weight = noisy_sides(n, p)
    fit = l1_logistic(X, goes_right, weight, alpha, max_steps=500, tol=1e-12)
    ours = penalized_loss(X, goes_right, weight, alpha, fit.weights, fit.intercept)
    assert fit.objective == pytest.approx(ours, rel=1e-9)
    # LIBLINEAR penalizes the intercept; with a large scaling of it that is next to nothing.
    for settings in ({"solver": "saga"}, {"solver": "liblinear", "intercept_scaling": 1e4}):
        model = LogisticRegression(C=1 / alpha, l1_ratio=1, tol=1e-6, max_iter=5000, random_state=0, **settings)
        model.fit(X, goes_right, sample_weight=weight)
        theirs = penalized_loss(X, goes_right, weight, alpha, model.coef_[0], model.intercept_[0])
        assert ours <= theirs * (1 + 1e-6)
        assert ours == pytest.approx(theirs, rel=1e-4)


@pytest.mark.parametrize("share", [1.0, 0.2])
def test_node_solver_is_the_same_for_sparse_points_and_for_single_floats(share):
    X, goes_right, weight = noisy_sides(500, 20, share=share)
    dense = l1_logistic(X, goes_right, weight, 2.0, max_steps=200, tol=1e-12)
    for other in (sparse.csr_array(X), sparse.csc_array(X), X.astype(np.float32)):
        fit = l1_logistic(other, goes_right, weight, 2.0, max_steps=200, tol=1e-9)
        assert penalized_loss(X, goes_right, weight, 2.0, fit.weights, fit.intercept) == pytest.approx(
            dense.objective, rel=1e-5
        )


@looped("seed", range(6))
def test_small_nodes_take_the_same_steps_as_large_ones(seed, monkeypatch):
    """Compiled loops and products of tables, from a start or none, with tables that may be read only."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(int(rng.integers(4, 90)), int(rng.integers(1, 24))))
    goes_right, weight = X[:, 0] + rng.normal(size=len(X)) > 0, rng.random(len(X)) + 0.1
    goes_right[:2] = False, True
    start = None if seed % 2 else (rng.normal(size=X.shape[1]), 0.3)
    X.flags.writeable = seed % 3 > 0
    task = X, goes_right, weight, 10.0 ** rng.uniform(-2, 0.5), start
    fits = [l1_logistic(*task)]
    monkeypatch.setattr("treewright.splits.l1_logistic._SMALL", 0)
    fits.append(l1_logistic(*task))
    for one, other in zip(*fits, strict=True):
        assert one == pytest.approx(other, rel=1e-10, abs=1e-12)


def test_optimality_conditions_hold_with_more_features_than_a_step_moves():
    X, goes_right, weight = noisy_sides(300, 600)
    fit = l1_logistic(X, goes_right, weight, 1e-2, max_steps=500, tol=1e-13)
    residual = weight * (1 / (1 + np.exp(-(X @ fit.weights + fit.intercept))) - goes_right)
    gradient, used = X.T @ residual, fit.weights != 0
    assert np.abs(gradient[~used]).max() <= 1e-2 * 1.01
    assert gradient[used] == pytest.approx(-1e-2 * np.sign(fit.weights[used]), abs=1e-4)
    assert residual.sum() == pytest.approx(0.0, abs=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_no_step_raises_the_surrogate_above_its_start(seed):
    X, goes_right, weight = noisy_sides(200, 8, seed)
    rng = np.random.default_rng(seed)
    start = rng.standard_normal(8) * 10.0**seed, float(rng.standard_normal())
    before = penalized_loss(X, goes_right, weight, 1.0, *start)
    objectives = [
        l1_logistic(X, goes_right, weight, 1.0, start, max_steps=steps, tol=0.0).objective for steps in range(6)
    ]
    assert objectives[0] <= before
    assert np.all(np.diff(objectives) <= 0)


def test_a_high_price_leaves_the_intercept_alone():
    X, goes_right, weight = noisy_sides(200, 6)
    share = weight[goes_right].sum() / weight.sum()
    # At zero weights the gradient is the weighted covariance of features and sides: a price above it buys nothing.
    gradient = X.T @ (weight * (share - goes_right))
    fit = l1_logistic(X, goes_right, weight, 1.001 * np.abs(gradient).max())
    assert not np.any(fit.weights) and fit.intercept == pytest.approx(np.log(share / (1 - share)))
    assert np.any(l1_logistic(X, goes_right, weight, 0.999 * np.abs(gradient).max(), max_steps=100, tol=0.0).weights)


# ---------------------------------------------------------------------- the tree


def table(n=400, p=5, seed=0):
    rng = np.random.default_rng(seed)
    X = np.round(rng.random((n, p)), 3) * (rng.random((n, p)) < 0.7)
    score = X @ rng.standard_normal((p, 3)) + 0.2 * rng.standard_normal((n, 3))
    return X, score, score.argmax(axis=1), rng.integers(1, 4, n).astype(float)


CASES = [
    (most, task, init, kind)
    for most in (None, 1, 2, 3)
    for task in ("classes", "outputs")
    for init in ("cart", "random")
    for kind in ("dense", "sparse")
]


@pytest.mark.parametrize(("most", "task", "init", "kind"), CASES)
def test_the_objective_recomputed_from_data_never_rises(most, task, init, kind):
    X, Y, y, weight = table(160)
    points = X if kind == "dense" else sparse.csr_array(X)
    if init == "cart":
        column = y[:, None].astype(float) if task == "classes" else Y
        start = cart_start(points, column, weight, 3, task == "classes", 0, Budget())
    else:
        start = random_tree(points, 3, np.random.default_rng(0), most)
    objectives = []
    for passes in range(5):
        leaves = ClassLeaves(y, weight, 3) if task == "classes" else MeanLeaves(Y, weight)
        result = improved_sparse_tree(start, points, leaves, 0.5, max_split_features=most, max_iter=passes)
        objectives.append(recomputed(result.tree, X, weight, 0.5, y if task == "classes" else Y))
        assert result.objective == pytest.approx(objectives[-1], rel=1e-9)
        assert result.trace[:, 1].tolist() == pytest.approx(objectives, rel=1e-9) or result.converged
        assert np.count_nonzero(result.tree.weights, axis=1).max() <= (most or 5)
    assert np.all(np.diff(objectives) <= 1e-9 * objectives[0])
    assert objectives[-1] < objectives[0]


@pytest.mark.parametrize("most", [None, 1, 2, 3])
def test_sparse_points_give_the_tree_of_dense_ones(most):
    X, Y, _, weight = table(160)
    start = random_tree(X, 3, np.random.default_rng(1), most)
    dense = improved_sparse_tree(start, X, MeanLeaves(Y, weight), 0.5, max_split_features=most)
    thin = improved_sparse_tree(start, sparse.csr_array(X), MeanLeaves(Y, weight), 0.5, max_split_features=most)
    assert thin.trace[:, 1] == pytest.approx(dense.trace[:, 1], rel=1e-9)
    assert np.array_equal(route(thin.tree, X), route(dense.tree, X))


def test_threads_do_not_change_the_tree():
    X, _, y, weight = table(600)
    start = random_tree(X, 4, np.random.default_rng(0))
    one, two = (improved_sparse_tree(start, X, ClassLeaves(y, weight, 3), 0.3, n_jobs=n) for n in (1, 2))
    assert one.tree == two.tree


@looped("seed", range(6))
def test_no_axis_split_of_a_converged_stump_is_better(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 8, (40, 3)) / 7.0, rng.integers(0, 3, 40)
    weight = rng.integers(1, 5, 40).astype(float)
    start = cart_start(X, y[:, None].astype(float), weight, 1, True, 0, Budget())
    result = improved_sparse_tree(start, X, ClassLeaves(y, weight, 3), 0.7, max_split_features=1, max_iter=50)
    assert result.converged
    left, right = result.tree.labels[result.tree.left[0]], result.tree.labels[result.tree.right[0]]
    costs = [weight @ (y != left), weight @ (y != right)]  # all one way, without a normal
    for j in range(3):
        for cut in (np.arange(7) + 0.5) / 7.0:
            costs.append(weight @ (np.where(X[:, j] <= cut, left, right) != y) + 0.7)
    assert result.objective <= min(costs) + 1e-9


def test_leaves_have_the_best_values_and_empty_ones_that_of_their_parent():
    X, Y, y, weight = table(50)
    # Node 1 is never reached: all weights of the root are zero.
    tree = random_tree(X, 2, np.random.default_rng(0))
    normals, threshold = tree.weights.copy(), tree.threshold.copy()
    normals[0], threshold[0] = 0.0, -1.0
    tree = Tree(tree.left, tree.right, normals, threshold, tree.values)
    leaf = route(tree, X)
    for leaves, best in (
        (ClassLeaves(y, weight, 3), lambda inside: np.bincount(y[inside], weight[inside], 3)),
        (MeanLeaves(Y, weight), lambda inside: np.average(Y[inside], axis=0, weights=weight[inside])),
    ):
        leaves.refit(Shape.of(tree), leaf)
        values, labels = leaves.table()
        for node in range(tree.n_nodes):
            inside = passing(tree, X, node)
            if inside.any():
                assert values[node] == pytest.approx(best(inside))
            elif labels is not None:
                assert labels[node] == labels[0]
            else:
                assert values[node] == pytest.approx(values[0])


def test_a_node_without_use_becomes_constant_and_free():
    rng = np.random.default_rng(0)
    X, y = rng.random((100, 3)), np.zeros(100, dtype=int)
    result = improved_sparse_tree(random_tree(X, 3, rng), X, ClassLeaves(y, np.ones(100), 2), alpha=0.1)
    assert result.objective == 0.0 and not np.any(result.tree.weights)


def test_a_random_tree_halves_its_points():
    X, *_ = table(512)
    for most in (None, 1, 2):
        tree = random_tree(np.random.default_rng(3).random((512, 4)), 3, np.random.default_rng(0), most)
        points = np.random.default_rng(3).random((512, 4))
        assert np.bincount(route(tree, points), minlength=15)[tree.leaves].tolist() == [64] * 8


def test_a_stop_returns_what_was_found():
    X, _, y, weight = table()
    start = random_tree(X, 4, np.random.default_rng(0))
    budget = Budget()
    seen = []

    def stop_after_one_pass(seconds, objective, loss):
        seen.append(objective)
        if len(seen) == 2:
            budget.stop()

    result = improved_sparse_tree(
        start, X, ClassLeaves(y, weight, 3), 0.1, budget=budget, on_pass=stop_after_one_pass, max_iter=50
    )
    assert result.n_iter == 1 and not result.converged
    assert result.objective == seen[-1] < seen[0]
    assert recomputed(result.tree, X, weight, 0.1, y) == pytest.approx(result.objective)


def test_cart_is_passed_over_where_it_would_take_the_time():
    X, Y, _, weight = table()
    assert cart_start(X, Y, weight, 4, False, 0, Budget(1e-6)) is None
    tree = cart_start(X, Y, weight, 4, False, 0, Budget(60.0))
    model = DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, Y, sample_weight=weight)
    assert predict_values(tree, X) == pytest.approx(model.predict(X))
    assert tree == tree_from_sklearn(model)


def test_the_price_of_a_normal_does_not_depend_on_its_length():
    normals = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, -2.0]])
    assert normal_price(normals) == pytest.approx([1.4, 1.4, 1.0])


def test_cart_of_a_large_table_is_grown_on_some_of_its_rows(monkeypatch):
    X, _, y, weight = table()
    monkeypatch.setattr(cart, "_CART_ROWS", 100)
    first, again, other = (
        cart_start(X, y[:, None].astype(float), weight, 3, True, seed, Budget()) for seed in (0, 0, 1)
    )
    assert first == again != other
    assert first.values[0].sum() < weight.sum() / 2  # the weight of the rows it was grown on


def test_a_change_that_costs_more_than_its_solver_says_is_taken_back():
    """Solvers count sides, walks are what counts; of several changes of a level the good ones stay."""
    rng = np.random.default_rng(0)
    X = rng.random((200, 2))
    y = (X[:, 0] > 0.5).astype(np.int64) ^ (X[:, 1] > 0.3)
    left, right, values = [1, 3, 5, -1, -1, -1, -1], [2, 4, 6, -1, -1, -1, -1], np.zeros((7, 2))
    splits = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], *[[0.0, 0.0]] * 4])
    start = Tree(left, right, splits, np.array([0.5, 0.35, 0.3, 0, 0, 0, 0]), values, values.argmax(axis=1))

    class Liar:
        """Finds the best split of node 1 and the worst one of node 2, whatever that costs."""

        def price(self, normals):
            return 0.0

        def better(self, points, node, budget):
            return {1: (np.array([0.0, 1.0]), 0.3), 2: (np.array([0.0, 1.0]), 0.95)}.get(node.number)

    state = Alternation(start, X, ClassLeaves(y, np.ones(200), 2), Liar())
    before = state.objective
    assert state.improve(Budget())
    tree = state.tree()
    assert tree.threshold[:3].tolist() == [0.5, 0.3, 0.3]
    assert state.objective == np.sum(predict_labels(tree, X) != y) < before
    again = state.objective
    assert state.improve(Budget()) and state.objective == again  # the same good one, and nothing else
