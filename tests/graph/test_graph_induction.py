"""Values carried over to new points: against plain loops."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import brentq

from treewright.graph import nearest_mean


def table(n=60, new=15, seed=0):
    rng = np.random.default_rng(seed)
    return rng.random((n, 3)), rng.standard_normal((n, 2)), rng.random((new, 3))


def plain_mean(points, values, row, k, perplexity):
    """Gaussian weights of the k nearest points whose entropy is the logarithm of the perplexity."""
    square = ((points - row) ** 2).sum(axis=1)
    near = np.argsort(square)[:k]

    def weights(log_beta):
        w = np.exp(-np.exp(log_beta) * (square[near] - square[near].min()))
        return w / w.sum()

    def excess(log_beta):
        w = weights(log_beta)
        w = w[w > 0]
        return -(w @ np.log(w)) - np.log(perplexity)

    return weights(brentq(excess, -20.0, 20.0)) @ values[near]


def test_weights_have_the_perplexity():
    points, values, rows = table()
    found = nearest_mean(points, values, rows, n_neighbors=10, perplexity=5.0)
    oracle = [plain_mean(points, values, row, 10, 5.0) for row in rows]
    assert found == pytest.approx(np.array(oracle), abs=1e-3)


def test_one_neighbour_and_all_neighbours():
    points, values, rows = table()
    nearest = ((rows[:, None] - points[None]) ** 2).sum(axis=2).argmin(axis=1)
    assert nearest_mean(points, values, rows, n_neighbors=1, perplexity=1.0) == pytest.approx(values[nearest])
    assert nearest_mean(points, values, points, n_neighbors=1) == pytest.approx(values)
    # As many effective neighbours as there are: all count alike. More are asked for than there are points.
    few = nearest_mean(points[:4], values[:4], rows, n_neighbors=10, perplexity=30.0)
    assert few == pytest.approx(np.tile(values[:4].mean(axis=0), (15, 1)), abs=1e-3)
    assert nearest_mean(points[:1], values[:1], rows) == pytest.approx(np.tile(values[0], (15, 1)))


def test_points_on_top_of_each_other():
    points, values = np.zeros((4, 2)), np.arange(4.0)[:, None]
    assert nearest_mean(points, values, np.zeros((1, 2)), 4, 4.0) == pytest.approx(1.5)
    assert np.isfinite(nearest_mean(points, values, np.zeros((1, 2)), 4, 2.0)).all()


def test_sparse_points_single_floats_and_threads():
    points, values, rows = table()
    points, rows = points * (points > 0.4), rows * (rows > 0.4)
    dense = nearest_mean(points, values, rows)
    thin = nearest_mean(sparse.csr_array(points), values, sparse.csr_array(rows))
    assert thin == pytest.approx(dense, abs=1e-6)
    assert nearest_mean(sparse.csr_array(points), values, rows) == pytest.approx(dense, abs=1e-6)
    assert nearest_mean(points.astype(np.float32), values, rows.astype(np.float32)) == pytest.approx(dense, abs=1e-3)
    assert np.array_equal(nearest_mean(points, values, rows, n_jobs=2), dense)
