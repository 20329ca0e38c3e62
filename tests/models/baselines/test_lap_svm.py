"""LapSVMClassifier: against a generic solver of its primal, against SVC, and what its graph is good for."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import minmax_scale
from sklearn.svm import SVC
from tests.contracts.measures import weight_of_a_row
from tests.examples import looped

from treewright import LapSVMClassifier
from treewright.exceptions import InvalidInputError
from treewright.models.baselines import lap_svm_fit as module
from treewright.models.baselines import laplacian_machine as search


def tiny(seed, n=12, labelled=6):
    rng = np.random.default_rng(seed)
    X, y = rng.random((n, 2)), np.full(n, -1)
    y[:labelled] = np.arange(labelled) % 2
    W = rng.random((n, n)) * (rng.random((n, n)) < 0.4)
    W = np.triu(W, 1)
    return X, y, rng.choice([0.5, 1.0, 2.0], n), W + W.T


def primal(X, y, weight, W, kernel, ridge, gamma):
    """Least objective of the docstring, over coefficients, bias and slacks, by sequential quadratic programming."""
    Z = minmax_scale(X)
    K = Z @ Z.T if kernel == "linear" else rbf_kernel(Z, gamma=3.0)
    known = np.flatnonzero(y >= 0)
    sign, share, n, m = 2.0 * y[known] - 1, weight[known] / weight[known].sum(), len(X), len(known)
    edges = W * np.outer(weight, weight)
    L = np.diag(edges.sum(axis=1)) - edges
    H = (ridge * K + gamma * K @ L @ K) / weight[known].sum()
    side = np.hstack([sign[:, None] * K[known], sign[:, None], np.eye(m)])

    def value(v):
        return v[:n] @ H @ v[:n] + share @ v[n + 1 :]

    def slope(v):
        return np.concatenate([2 * H @ v[:n], [0.0], share])

    inside = {"type": "ineq", "fun": lambda v: side @ v - 1, "jac": lambda v: side}
    slack = {"type": "ineq", "fun": lambda v: v[n + 1 :], "jac": lambda v: np.eye(n + 1 + m)[n + 1 :]}
    start = np.concatenate([np.zeros(n + 1), np.ones(m)])
    options = {"maxiter": 2000, "ftol": 1e-14}
    found = minimize(value, start, jac=slope, constraints=[inside, slack], method="SLSQP", options=options)
    return found.fun


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@looped("prices", [(0.3, 0.0), (0.3, 0.1), (0.06, 1.0)])
@looped("seed", [0, 1])
def test_objective_is_the_least_one(kernel, prices, seed):
    X, y, weight, W = tiny(seed)
    model = LapSVMClassifier(kernel, width=3.0, ridge=prices[0], gamma=prices[1])
    model.fit(X, y, sample_weight=weight, graph=W)
    weight = weight / weight_of_a_row(weight)  # prices are in rows
    expected = primal(X, y, weight, W, kernel, *prices)
    assert model.objective_ == pytest.approx(expected, rel=1e-6) and model.status_ == "optimal"
    # and it is that of the function which predicts
    f = model.decision_function(X)
    known, sign = y >= 0, 2 * y - 1
    loss = np.average(np.maximum(0, 1 - sign * f)[known], weights=weight[known])
    K = rbf_kernel(model.points_, gamma=3.0) if kernel == "rbf" else model.points_ @ model.points_.T
    norm = model.dual_coef_[:, 0] @ K @ model.dual_coef_[:, 0]
    rough = sum(weight[i] * weight[j] * W[i, j] * (f[i] - f[j]) ** 2 / 2 for i in range(12) for j in range(12))
    total = loss + (prices[0] * norm + prices[1] * rough) / weight[known].sum()
    assert model.objective_ == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("ridge", [0.1, 10.0, 1000.0])  # a thousandth, a tenth and ten times the weight of labels
def test_both_solvers_of_the_dual_agree(monkeypatch, kernel, ridge):
    X, y = load_iris(return_X_y=True)
    y = np.where(np.arange(150) % 3 == 0, y, -1)
    weight = np.random.default_rng(0).integers(1, 4, 150).astype(float)
    first = LapSVMClassifier(kernel, ridge=ridge, gamma=0.01).fit(X, y, sample_weight=weight)
    monkeypatch.setattr(search, "_STEPS", 2)
    second = LapSVMClassifier(kernel, ridge=ridge, gamma=0.01).fit(X, y, sample_weight=weight)
    assert second.status_ == "optimal" and second.objective_ == pytest.approx(first.objective_, rel=1e-6, abs=1e-6)
    values = [model.decision_function(X) - model.intercept_ for model in (first, second)]
    np.testing.assert_allclose(*values, atol=2e-3)  # the bias need not be unique


@pytest.mark.parametrize("ridge", [0.2, 20.0])
def test_without_the_graph_it_is_a_support_vector_machine(ridge):
    X, y = load_iris(return_X_y=True)
    X, y = X[50:], y[50:]
    weight = np.random.default_rng(0).integers(1, 4, len(X)).astype(float)
    model = LapSVMClassifier(width=2.0, ridge=ridge, gamma=0.0).fit(X, y, sample_weight=weight)
    usual = SVC(gamma=2.0, C=1 / (2 * ridge), tol=1e-9)
    usual.fit(minmax_scale(X), y, sample_weight=weight)
    np.testing.assert_allclose(model.decision_function(X), usual.decision_function(minmax_scale(X)), atol=1e-4)


def test_the_width_is_what_it_says():
    X = np.random.default_rng(0).random((30, 3))
    Z = minmax_scale(X)
    y = np.arange(30) % 2
    assert LapSVMClassifier(width="scale").fit(X, y).width_ == pytest.approx(1 / (3 * Z.var()))
    apart = [np.linalg.norm(a - b) for i, a in enumerate(Z) for b in Z[:i]]
    assert LapSVMClassifier(width="median").fit(X, y).width_ == pytest.approx(1 / (2 * np.median(apart) ** 2))


# ---------------------------------------------------------------------- what it is for


def test_two_labels_on_two_moons():
    X, truth = make_moons(300, noise=0.06, random_state=0)
    y = np.full(300, -1)
    for k in (0, 1):
        y[np.flatnonzero(truth == k)[:2]] = k
    settings = {"width": 30.0, "ridge": 4e-3}
    alone = LapSVMClassifier(**settings, gamma=0).fit(X, y).score(X, truth)
    model = LapSVMClassifier(**settings, gamma=4e4 / 300**2).fit(X, y)
    assert model.score(X, truth) > 0.97 > alone
    np.testing.assert_array_equal(model.transduction_[y == -1], model.predict(X)[y == -1])


def test_several_classes_are_one_machine_each():
    X, truth = load_iris(return_X_y=True)
    known = np.random.default_rng(0).random(150) < 0.15
    names = np.array(["setosa", "versicolor", "virginica"], dtype=object)
    y = np.where(known, names[truth], -1)
    model = LapSVMClassifier().fit(X, y)
    assert model.dual_coef_.shape == (len(model.points_), 3) and model.decision_function(X).shape == (150, 3)
    assert np.mean(model.transduction_ == names[truth]) > 0.85
    for k, name in enumerate(names):
        # label 1 is the class, so that the sign is that of the machine
        one = LapSVMClassifier().fit(X, np.where(known, (names[truth] == name).astype(int), -1))
        np.testing.assert_allclose(one.decision_function(X), model.decision_function(X)[:, k], atol=1e-5)


def test_default_prices_are_those_of_the_paper():
    X, truth = load_iris(return_X_y=True)
    X, truth = np.unique(X, axis=0), truth[np.unique(X, axis=0, return_index=True)[1]]
    y = np.where(np.arange(len(X)) % 5 == 0, truth, -1)
    n, n_labels = len(X), np.count_nonzero(y >= 0)
    norm, roughness = 0.005 / n_labels, 0.045 * n**2 / n_labels  # gamma_A and gamma_I of the experiments on digits
    model = LapSVMClassifier(ridge=norm * n_labels, gamma=roughness * n_labels / n**2).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), LapSVMClassifier().fit(X, y).decision_function(X))


# ---------------------------------------------------------------------- weights, order, graphs


def test_weights_repeat_rows_labelled_or_not():
    X, truth = load_iris(return_X_y=True)
    y = np.where(np.arange(150) % 5 == 0, truth, -1)
    weight = np.random.default_rng(1).integers(0, 3, 150)
    first = LapSVMClassifier().fit(X, y, sample_weight=weight)
    second = LapSVMClassifier().fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_array_equal(first.decision_function(X), second.decision_function(X))
    third = LapSVMClassifier().fit(X, y, sample_weight=np.where((y == -1) & (weight == 2), 1, weight))
    assert np.any(third.decision_function(X) != first.decision_function(X))  # those of unlabelled rows count


def test_rows_in_any_order():
    X, truth = load_iris(return_X_y=True)
    y = np.where(np.arange(150) % 5 == 0, truth, -1)
    order = np.random.default_rng(1).permutation(150)
    first, second = LapSVMClassifier().fit(X, y), LapSVMClassifier().fit(X[order], y[order])
    np.testing.assert_array_equal(first.decision_function(X), second.decision_function(X))


def test_given_graph_is_about_the_rows_as_given():
    X, y, weight, W = tiny(0)
    twice, again = np.vstack([X, X[3:5]]), np.concatenate([y, y[3:5]])
    settings = {"ridge": 0.3, "gamma": 0.2}
    model = LapSVMClassifier(**settings).fit(X, y, graph=W, sample_weight=np.where(np.isin(range(12), [3, 4]), 2, 1))
    # the same rows twice, each copy with the edges of the first
    place = np.concatenate([np.arange(12), [3, 4]])
    copies = LapSVMClassifier(**settings).fit(twice, again, graph=sparse.csr_array(W[np.ix_(place, place)]))
    np.testing.assert_allclose(model.decision_function(X), copies.decision_function(X), atol=1e-6)
    other = LapSVMClassifier(**settings).fit(X, y, graph=W[::-1, ::-1])
    assert np.abs(other.decision_function(X) - model.decision_function(X)).max() > 1e-3


def test_two_labels_at_one_point():
    X, y = np.array([[0.0], [1.0], [1.0], [2.0]]), [0, 0, 1, 1]
    model = LapSVMClassifier().fit(X, y)
    assert model.predict([[0.0], [2.0]]).tolist() == [0, 1] and len(model.points_) == 3


def test_a_class_without_weight_is_never_predicted():
    X = np.arange(6.0)[:, None]
    model = LapSVMClassifier().fit(X, [0, 0, 1, 1, 2, 2], sample_weight=[1, 1, 1, 1, 0, 0])
    assert model.predict(X).tolist() == [0, 0, 1, 1, 1, 1]
    model = LapSVMClassifier().fit(X, [0, 0, 0, 1, 1, 1], sample_weight=[1, 1, 1, 0, 0, 0])
    assert model.predict(X).tolist() == [0] * 6


# ---------------------------------------------------------------------- limits and bad input


def test_too_many_rows_are_refused(monkeypatch):
    X, y, *_ = tiny(0)
    monkeypatch.setattr(module, "MAX_POINTS", 11)
    with pytest.raises(InvalidInputError, match=r"12 distinct rows.*LapTAOClassifier"):
        LapSVMClassifier().fit(X, y)
    LapSVMClassifier().fit(np.vstack([X[:11], X[:11]]), np.tile(y[:11], 2))


def test_predictions_come_in_blocks(monkeypatch):
    X, y, *_ = tiny(0)
    model = LapSVMClassifier().fit(X, y)
    whole = model.decision_function(X)
    monkeypatch.setattr(module, "_BLOCK", 5)
    np.testing.assert_allclose(model.decision_function(X), whole)


def test_a_dual_that_was_not_solved_is_told(monkeypatch):
    X, y = load_iris(return_X_y=True)
    monkeypatch.setattr(search, "_STEPS", 2)
    monkeypatch.setattr(search, "_INTERIOR_LABELS", 100)
    with pytest.warns(ConvergenceWarning, match="larger ridge"):
        model = LapSVMClassifier().fit(X, y)
    assert model.status_ == "unproven"


@looped(
    "settings, graph, message",
    [
        ({"ridge": 0.0}, None, "ridge"),
        ({"width": "auto"}, None, "width"),
        ({"kernel": "poly"}, None, "kernel"),
        ({"n_jobs": 0}, None, "n_jobs"),
        ({}, np.ones((3, 3)), "shape"),
        ({}, np.triu(np.ones((12, 12))), "symmetric"),
    ],
)
def test_bad_input_is_refused(settings, graph, message):
    X, y, *_ = tiny(0)
    with pytest.raises((InvalidInputError, ValueError), match=message):
        LapSVMClassifier(**settings).fit(X, y, graph=graph)


def test_in_a_grid_search():
    X, y = load_iris(return_X_y=True)
    search_ = GridSearchCV(LapSVMClassifier(), {"gamma": [0.0, 0.01], "kernel": ["rbf", "linear"]}, cv=2)
    assert search_.fit(X, y).best_score_ > 0.9
