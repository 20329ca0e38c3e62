"""Laplacians, graphs of users, and smoothed labels against dense solves."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from tests.examples import looped

from treewright.core.budget import Budget
from treewright.exceptions import InvalidInputError
from treewright.graph import LabelSmoother, check_graph, components, laplacian, neighbor_graph


def random_graph(n, seed, share=0.1):
    rng = np.random.default_rng(seed)
    half = np.triu(rng.random((n, n)) * (rng.random((n, n)) < share), 1)
    return sparse.csr_array(half + half.T)


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 20), st.integers(0, 1000), st.floats(0, 1))
def test_the_quadratic_form_is_the_roughness(n, seed, share):
    W = random_graph(n, seed, share)
    z = np.random.default_rng(seed + 1).standard_normal(n)
    rough = 0.5 * np.sum(W.toarray() * (z[:, None] - z[None, :]) ** 2)
    L = laplacian(W)
    assert isinstance(L, sparse.csr_array)
    assert z @ (L @ z) == pytest.approx(rough, rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(L @ np.ones(n), 0.0, atol=1e-12)


def test_components_are_those_of_blocks():
    W = sparse.block_diag([np.ones((3, 3)) - np.eye(3), np.zeros((1, 1)), np.ones((2, 2)) - np.eye(2)], format="csr")
    assert components(W).tolist() == [0, 0, 0, 1, 2, 2]


# ---------------------------------------------------------------------- graphs of users


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.coo_matrix, sparse.csc_array, np.ndarray.tolist])
def test_a_good_graph_is_taken_in_any_form_without_self_loops(kind):
    plain = random_graph(12, 0, 0.4).toarray()
    W = check_graph(kind(plain + np.diag(np.arange(12.0))), 12)
    assert isinstance(W, sparse.csr_array) and W.dtype == np.float64
    np.testing.assert_array_equal(W.toarray(), plain)
    assert np.all(W.data > 0)


def test_rounding_is_evened_out_and_the_input_left_alone():
    given_graph = random_graph(12, 0, 0.4)
    one = given_graph.tocoo()
    given_graph[one.row[0], one.col[0]] *= 1 + 1e-9
    before = given_graph.toarray()
    W = check_graph(given_graph, 12)
    assert (W != W.T).nnz == 0
    np.testing.assert_array_equal(given_graph.toarray(), before)


@looped(
    "graph, text",
    [
        (np.ones((2, 3)), r"shape \(2, 3\).*3 rows"),
        (np.ones((2, 2)), r"shape \(2, 2\).*3 rows"),
        ([[0, 1, 0], [1, 0, -2], [0, -2, 0]], r"graph\[1, 2\] is -2.0.*negative"),
        ([[0, np.nan, 0], [np.nan, 0, 0], [0, 0, 0]], r"graph\[0, 1\] is nan.*finite"),
        (sparse.csr_array([[0, np.inf, 0], [np.inf, 0, 0], [0, 0, 0]]), r"is inf.*finite"),
        ([[0, 1, 0], [3, 0, 0], [0, 0, 0]], r"not symmetric: graph\[0, 1\] is 1.0, graph\[1, 0\] is 3.0"),
        ([["a", "b", "c"]] * 3, "not a table of numbers"),
    ],
)
def test_bad_graphs_are_refused(graph, text):
    with pytest.raises(InvalidInputError, match=text):
        check_graph(graph, 3)


# ---------------------------------------------------------------------- smoothing


def labelled_graph(n=160, n_outputs=3, seed=0):
    """A neighbour graph in several components, one of them and one single point without labels."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3)) + 10.0 * np.repeat([0.0, 1.0, 2.0, 3.0], n // 4)[:, None]
    W = sparse.block_diag([neighbor_graph(X, 6, 3.0), np.zeros((1, 1))], format="csr")
    labelled = np.where(rng.random(n + 1) < 0.1, rng.random(n + 1) + 0.5, 0.0)
    labelled[[0, n // 4, n // 2]] = 1.0
    labelled[3 * n // 4 :] = 0.0
    return W, labelled, rng.standard_normal((n + 1, n_outputs)), rng.random(n + 1) + 0.1


@pytest.mark.parametrize("method", ["direct", "cg"])
@looped("weighted", [False, True])
@looped("gamma", [0.1, 10.0])
@looped("mu", [1e-4, 1e-2, 3.0])
def test_solutions_are_those_of_a_dense_solve(method, weighted, gamma, mu):
    W, labelled, R, weight = labelled_graph()
    weight = weight if weighted else None
    A = np.diag(labelled + mu * (np.ones(len(labelled)) if weight is None else weight))
    A += gamma * (np.diag(W.toarray().sum(axis=1)) - W.toarray())
    smoother = LabelSmoother(W, labelled, gamma, weight, method=method)
    expected = np.linalg.solve(A, R)
    found = smoother.solve(R, mu)
    np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max())
    assert (smoother.n_iter > 0) == (method == "cg")


@pytest.mark.parametrize("method", ["direct", "cg"])
def test_without_mu_components_without_labels_are_zero(method):
    W, labelled, R, _ = labelled_graph()
    smoother = LabelSmoother(W, labelled, 0.3, method=method)
    found = smoother.solve(R, 0.0, start=np.ones(R.shape))
    known = np.isin(components(W), np.unique(components(W)[labelled > 0]))
    assert 0 < np.sum(~known) < len(known)
    assert np.all(found[~known] == 0.0)
    A = np.diag(labelled) + 0.3 * laplacian(W).toarray()
    expected = np.linalg.solve(A[np.ix_(known, known)], R[known])
    np.testing.assert_allclose(found[known], expected, atol=1e-6 * np.abs(expected).max())
    assert np.all(LabelSmoother(W, np.zeros(len(labelled)), 0.3, method=method).solve(R, 0.0) == 0.0)


@pytest.mark.parametrize("method", ["direct", "cg"])
def test_without_gamma_every_point_stands_alone(method):
    W, labelled, R, _ = labelled_graph()
    found = LabelSmoother(W, labelled, 0.0, method=method).solve(R, 0.0)
    expected = np.where(labelled[:, None] > 0, R / np.where(labelled > 0, labelled, 1.0)[:, None], 0.0)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_factors_follow_mu():
    W, labelled, R, _ = labelled_graph()
    smoother = LabelSmoother(W, labelled, 0.3, method="direct")
    for mu in (0.1, 0.1, 2.0, 0.0, 0.1):
        fresh = LabelSmoother(W, labelled, 0.3, method="direct").solve(R, mu)
        np.testing.assert_array_equal(smoother.solve(R, mu), fresh)


def test_a_warm_start_saves_steps_and_changes_little():
    W, labelled, R, _ = labelled_graph()
    smoother = LabelSmoother(W, labelled, 1.0, method="cg")
    cold = smoother.solve(R, 0.01)
    steps = smoother.n_iter
    near = smoother.solve(R, 0.01, start=cold + 1e-6)
    assert 0 < smoother.n_iter < steps
    np.testing.assert_allclose(near, cold, atol=1e-7)
    smoother.solve(R, 0.01, start=near)
    assert smoother.n_iter <= 1


def test_columns_are_solved_each_on_its_own():
    W, labelled, R, _ = labelled_graph()
    R = R * np.array([1.0, 1e-8, 0.0])
    smoother = LabelSmoother(W, labelled, 1.0, method="cg")
    together = smoother.solve(R, 0.01)
    assert np.all(together[:, 2] == 0)
    for c in range(3):
        alone = smoother.solve(R[:, [c]], 0.01)[:, 0]
        np.testing.assert_allclose(together[:, c], alone, atol=1e-8 * np.abs(alone).max())


def test_auto_takes_factors_for_few_points_only():
    for n, method in ((1000, "direct"), (1001, "cg")):
        path = sparse.diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[-1, 1], format="csr")
        assert LabelSmoother(path, np.ones(n), 1.0).method == method


def test_a_long_path_warns_and_a_spent_budget_does_not():
    n = 10_000
    path = sparse.diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[-1, 1], format="csr")
    labelled = np.zeros(n)
    labelled[0] = 1.0
    smoother = LabelSmoother(path, labelled, 1.0, method="cg")
    with pytest.warns(ConvergenceWarning, match="method='direct'"):
        smoother.solve(labelled[:, None], 0.0)
    spent = Budget()
    spent.stop()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.all(smoother.solve(labelled[:, None], 0.0, budget=spent) == 0.0)
    direct = LabelSmoother(path, labelled, 1.0, method="direct").solve(labelled[:, None], 0.0)
    np.testing.assert_allclose(direct, 1.0, rtol=1e-6)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"method": "lu"}, "method='lu'"),
        ({"gamma": -1.0}, "gamma=-1.0"),
        ({"labelled_weight": np.ones(2)}, "labelled_weight has shape"),
        ({"point_weight": np.array([1.0, 1.0, -1.0])}, "point_weight must be"),
    ],
)
def test_bad_settings_are_refused(change, text):
    settings = {"labelled_weight": np.ones(3), "gamma": 1.0} | change
    with pytest.raises(InvalidInputError, match=text):
        LabelSmoother(random_graph(3, 0), **settings)


def test_bad_right_hand_sides_are_refused():
    smoother = LabelSmoother(random_graph(3, 0), np.ones(3), 1.0)
    with pytest.raises(InvalidInputError, match=r"\(3,\)"):
        smoother.solve(np.ones(3), 1.0)
    with pytest.raises(InvalidInputError, match="mu=-1.0"):
        smoother.solve(np.ones((3, 1)), -1.0)
