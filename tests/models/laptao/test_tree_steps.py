"""What stands in for the tree of LapTAO: objectives from the data, members of forests, CART, other regressors."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor

from treewright.core.budget import Budget
from treewright.engine.starts import random_tree
from treewright.engine.stretch import Stretch
from treewright.models.laptao.tree_steps import AlternatingStep, CartStep, ForestStep, NoStep, RegressorStep
from treewright.splits.points import Points
from treewright.tree import predict_values, route


def table(n=200, p=4, outputs=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, p)) * (rng.random((n, p)) < 0.8)
    targets = np.tanh(4 * X @ rng.standard_normal((p, outputs))) + 0.1 * rng.standard_normal((n, outputs))
    return X, targets, rng.integers(1, 4, n).astype(float)


def alternating(X, weight, first=3, passes=1, alpha=0.5, most=None, depth=3, stretch=None):
    def start(targets, alpha):
        return random_tree(X, depth, np.random.default_rng(0), most, weight)

    return AlternatingStep(Points(X), weight, start, alpha, first, passes, most, stretch=stretch)


def price(tree, alpha):
    return alpha * sum(np.abs(w).sum() / np.linalg.norm(w) for w in tree.weights[tree.branches] if np.any(w))


def best_error(leaf, targets, weight):
    """Squared error of a tree whose leaves are means of their points."""
    total = 0.0
    for k in np.unique(leaf):
        inside = leaf == k
        mean = np.average(targets[inside], axis=0, weights=weight[inside])
        total += weight[inside] @ ((targets[inside] - mean) ** 2).sum(axis=1)
    return total


def variance(targets, weight):
    mean = np.average(targets, axis=0, weights=weight)
    return np.average(((targets - mean) ** 2).sum(axis=1), weights=weight)


@pytest.mark.parametrize("most", [None, 1, 2, 3])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_passes_never_raise_the_objective_recomputed_from_data(most, kind):
    X, targets, weight = table()
    points = X if kind == "dense" else sparse.csr_array(X)
    alpha = 0.5 * variance(targets, weight)
    objectives = []
    for first in range(5):
        fitted = alternating(points, weight, first, most=most).fit(targets, Budget())
        away = weight @ ((predict_values(fitted.model, X) - targets) ** 2).sum(axis=1)
        assert fitted.price == pytest.approx(price(fitted.model, alpha))
        assert fitted.values == pytest.approx(predict_values(fitted.model, X))
        assert np.array_equal(fitted.leaf, route(fitted.model, X))
        assert away == pytest.approx(best_error(fitted.leaf, targets, weight))  # leaves are means
        objectives.append(away + fitted.price)
    assert np.all(np.diff(objectives) <= 1e-9 * objectives[0]) and objectives[-1] < objectives[0]


def test_a_later_fit_goes_on_from_the_last_tree():
    X, targets, weight = table()
    step = alternating(X, weight, first=2, passes=1)
    first = step.fit(targets, Budget())
    alpha = 0.5 * variance(targets, weight)
    other = targets[:, ::-1] + 0.3
    stay = best_error(first.leaf, other, weight) + first.price  # the old splits, the leaves refitted
    second = step.fit(other, Budget())
    assert best_error(second.leaf, other, weight) + second.price < stay
    # The price is still that of the first targets, and what the first fit gave is as it was.
    assert second.price == pytest.approx(price(second.model, alpha))
    assert np.array_equal(first.leaf, route(first.model, X)) and first.values == pytest.approx(
        predict_values(first.model, X)
    )
    before = best_error(second.leaf, other, weight) + second.price
    again = step.fit(other, Budget())
    assert best_error(again.leaf, other, weight) + again.price <= before + 1e-9
    fresh = alternating(X, weight, first=1).fit(other, Budget())
    assert not np.array_equal(fresh.leaf, again.leaf)


def test_a_budget_that_is_over_leaves_the_start():
    X, targets, weight = table()
    budget = Budget()
    budget.stop()
    fitted = alternating(X, weight).fit(targets, budget)
    start = random_tree(X, 3, np.random.default_rng(0), weight=weight)
    assert np.array_equal(route(fitted.model, X), route(start, X))
    assert fitted.values == pytest.approx(predict_values(fitted.model, X))


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_members_of_a_forest_see_their_own_rows_and_features(kind):
    X, targets, weight = table()
    points = X if kind == "dense" else sparse.csr_array(X)
    seen = []

    def member(part, own, seed):
        seen.append((part.X.toarray() if kind == "sparse" else part.X, own, seed))
        return alternating(part.X, own)

    forest = ForestStep(Points(points), weight, member, 3, 0.5, 0.5, seed=7)
    for (part, own, _), rows, features in zip(seen, forest.rows, forest.features, strict=True):
        assert len(np.unique(rows)) == 100 and len(np.unique(features)) == 2
        assert np.array_equal(part, X[np.ix_(rows, features)]) and np.array_equal(own, weight[rows])
    assert len({seed for *_, seed in seen}) == 3 and not np.array_equal(forest.rows[0], forest.rows[1])
    fitted = forest.fit(targets, Budget())
    assert fitted.leaf.shape == (200, 3) and len(fitted.model) == 3
    assert np.array_equal(fitted.leaf, np.column_stack([route(tree, points) for tree in fitted.model]))
    assert fitted.values == pytest.approx(np.mean([predict_values(tree, X) for tree in fitted.model], axis=0))
    prices = []
    for tree, rows, features in zip(fitted.model, forest.rows, forest.features, strict=True):
        assert not np.any(np.delete(tree.weights, features, axis=1)) and tree.n_features == 4
        alone = alternating(np.ascontiguousarray(X[np.ix_(rows, features)]), weight[rows]).fit(targets[rows], Budget())
        assert predict_values(tree, X[rows]) == pytest.approx(alone.values)
        prices.append(alone.price)
    assert fitted.price == pytest.approx(np.mean(prices))


def test_forests_go_on_and_do_not_depend_on_threads():
    X, targets, weight = table()
    found = []
    for n_jobs in (1, 2):
        forest = ForestStep(Points(X), weight, lambda part, own, seed: alternating(part.X, own), 4, 0.7, 1.0, 0, n_jobs)
        forest.fit(targets, Budget())
        found.append(forest.fit(targets + 0.1 * X[:, :2], Budget()).values)
    assert np.array_equal(*found)


def test_cart_is_that_of_scikit_learn():
    X, targets, weight = table()
    fitted = CartStep(X, weight, 3, 0).fit(targets, Budget())
    model = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, targets, sample_weight=weight)
    assert fitted.values == pytest.approx(model.predict(X)) and fitted.price == 0.0
    assert np.array_equal(fitted.leaf, model.apply(X))
    assert predict_values(fitted.model, X) == pytest.approx(model.predict(X))
    single = CartStep(X, weight, 3, 0).fit(targets[:, :1], Budget())
    assert single.values.shape == (200, 1)


@pytest.mark.parametrize("outputs", [1, 2])
def test_regressors_get_weights_or_repeated_points(outputs):
    X, targets, weight = table(outputs=outputs)
    wanted = targets[:, 0] if outputs == 1 else targets
    given = LinearRegression()
    fitted = RegressorStep(X, given, weight=weight).fit(targets, Budget())
    # Weighted least squares in closed form.
    A = np.column_stack([np.ones(200), X])
    oracle = A @ np.linalg.solve(A.T @ (weight[:, None] * A), A.T @ (weight[:, None] * targets))
    assert fitted.values == pytest.approx(oracle) and fitted.values.shape == (200, outputs)
    assert fitted.leaf is None and fitted.price == 0.0 and not hasattr(given, "coef_")
    assert fitted.model.predict(X).shape == wanted.shape
    repeated = RegressorStep(X, given, copies=weight.astype(int)).fit(targets, Budget())
    assert repeated.values == pytest.approx(oracle)
    plain = RegressorStep(X, KNeighborsRegressor(3)).fit(targets, Budget())
    near = np.argsort(((X[:, None] - X[None]) ** 2).sum(axis=2), axis=1, kind="stable")[:, :3]
    assert plain.values == pytest.approx(targets[near].mean(axis=1))


def test_regressors_of_one_output_are_fitted_to_each():
    X, targets, weight = table(outputs=3)
    given = GradientBoostingRegressor(n_estimators=5, random_state=0)
    fitted = RegressorStep(X, given, weight=weight).fit(targets, Budget())
    alone = [
        GradientBoostingRegressor(n_estimators=5, random_state=0).fit(X, column, sample_weight=weight).predict(X)
        for column in targets.T
    ]
    assert fitted.values == pytest.approx(np.column_stack(alone))
    assert fitted.model.predict(X) == pytest.approx(fitted.values) and not hasattr(given, "estimators_")


def test_no_model_is_the_targets_themselves():
    _, targets, _ = table()
    fitted = NoStep().fit(targets, Budget())
    assert np.array_equal(fitted.values, targets) and fitted.model is None and fitted.price == 0.0


# ---------------------------------------------------------------------- the end


def test_a_finished_tree_has_the_leaves_of_the_points_alone():
    X, targets, weight = table()
    step = alternating(X, weight, stretch=Stretch(0.25, 0))
    fitted = step.fit(targets, Budget())
    finished = step.finish(fitted.model, Budget())
    assert finished.model != fitted.model and np.array_equal(finished.leaf, route(finished.model, X))
    assert finished.values == pytest.approx(predict_values(finished.model, X))
    away = weight @ ((finished.values - targets) ** 2).sum(axis=1)
    assert away == pytest.approx(best_error(finished.leaf, targets, weight))
    assert finished.price == pytest.approx(price(finished.model, 0.5 * variance(targets, weight)))
    assert alternating(X, weight).finish(fitted.model, Budget()) is None


@pytest.mark.parametrize("after", [None, 2])
def test_the_members_of_a_forest_are_finished_each_on_its_part(after, monkeypatch):
    X, targets, weight = table(p=6)
    forest = ForestStep(
        Points(X), weight, lambda part, own, seed: alternating(part.X, own, stretch=Stretch(0.25, seed)), 4, 0.7, 0.5, 0
    )
    fitted = forest.fit(targets, Budget())
    budget, finish, done = Budget(), AlternatingStep.finish, []

    def finish_some(self, model, budget):
        if len(done) == after:
            budget.stop()
        done.append(self)
        return finish(self, model, budget)

    monkeypatch.setattr(AlternatingStep, "finish", finish_some)
    finished = forest.finish(fitted.model, budget)
    same = [np.array_equal(route(a, X), route(b, X)) for a, b in zip(fitted.model, finished.model, strict=True)]
    assert same == [False] * 4 if after is None else same == [False, False, True, True]
    for number, tree in enumerate(finished.model):
        assert not np.any(np.delete(tree.weights, forest.features[number], axis=1))
        assert np.array_equal(finished.leaf[:, number], route(tree, X))
    prices = [price(tree, member.alpha) for tree, member in zip(finished.model, forest.members, strict=True)]
    assert finished.price == pytest.approx(np.mean(prices))
    assert finished.values == pytest.approx(np.mean([predict_values(tree, X) for tree in finished.model], axis=0))


def test_what_is_grown_anew_is_not_finished():
    X, targets, weight = table()
    plain = ForestStep(Points(X), weight, lambda part, own, seed: alternating(part.X, own), 2, 0.7, 0.5, 0)
    for step in (CartStep(X, weight, 3, 0), RegressorStep(X, LinearRegression()), NoStep(), plain):
        assert step.finish(step.fit(targets, Budget()).model, Budget()) is None
