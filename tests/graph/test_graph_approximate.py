"""Approximate neighbours: how many of the exact ones are found, on points of many kinds; seeds, short cells."""

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_limits

from treewright.core.budget import Budget
from treewright.graph import approximate, nearest_neighbors
from treewright.graph.approximate import ApproximateSearch

N = 3000


def gaussian(rng):
    return rng.standard_normal((N, 20)).astype(np.float32)


def clustered(rng):
    """Tight clusters far apart, one of them a thousand times as tight as the others."""
    size = np.where(np.arange(N) % 10 == 0, 1e-6, 1e-3)[:, None]
    return rng.random((10, 12))[np.arange(N) % 10] + size * rng.standard_normal((N, 12))


def repeated(rng):
    """Whole numbers: most points are there many times, others once."""
    return rng.poisson(0.3, (N, 10)).astype(float)


def heavy_tailed(rng):
    return np.exp(2.5 * rng.standard_normal((N, 16)))


def wide(rng):
    """Few directions that matter among 300."""
    return rng.standard_normal((N, 15)) @ rng.standard_normal((15, 300)) + 0.1 * rng.standard_normal((N, 300))


def noise(rng):
    """No direction matters more than another: projections say little."""
    return rng.standard_normal((N, 120)).astype(np.float32)


def thin(rng):
    """Sparse rows of topics."""
    topics = rng.gamma(0.1, size=(20, 400))
    counts = rng.poisson(topics[rng.integers(0, 20, N)] * rng.gamma(2.0, size=(N, 1)))
    return sparse.csr_array(np.log1p(counts))


def narrow(rng):
    """Sparse rows with few features."""
    return sparse.csr_array(rng.random((N, 40)) * (rng.random((N, 40)) < 0.2))


SOME = np.arange(0, N, 7)


def radii(X, k, rows=SOME):
    """Distance of the k-th neighbour of some points, by all distances."""
    X = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    radius = np.empty(len(rows))
    for place, i in enumerate(rows):
        away = ((X - X[i]) ** 2).sum(axis=1)
        away[i] = np.inf
        radius[place] = np.sqrt(np.partition(away, k - 1)[k - 1])
    return radius


@pytest.mark.parametrize("kind", [gaussian, clustered, repeated, heavy_tailed, wide, noise, thin, narrow])
def test_most_of_the_neighbours_are_found(kind):
    X = kind(np.random.default_rng(0))
    near = nearest_neighbors(X, 10, method="approximate", seed=3)
    found = np.mean(near.distance[SOME] <= radii(X, 10)[:, None] * (1 + 1e-9))
    assert found >= 0.97  # 98 % of a sample of 400
    assert abs(found - near.recall) < 0.02 and near.searched == 1.0 and near.note == ""
    assert np.all(np.diff(near.distance, axis=1) >= 0)
    assert not np.any(near.index == np.arange(N)[:, None])
    assert all(len(set(row)) == 10 for row in near.index.tolist())
    dense = X.toarray() if sparse.issparse(X) else X.astype(np.float64)
    away = np.sqrt(((dense[SOME, None] - dense[near.index[SOME]]) ** 2).sum(axis=2))
    np.testing.assert_allclose(near.distance[SOME], away, rtol=1e-12)


def test_a_seed_repeats_the_search():
    X = gaussian(np.random.default_rng(0))
    one, again, other = (nearest_neighbors(X, 10, "approximate", seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.index, again.index)
    assert np.any(one.index != other.index)


def tuned(X, k, **change):
    """A search that was tuned on points whose neighbours are known."""
    search = ApproximateSearch(X, k, 0)
    for name, value in change.items():
        setattr(search, name, value)
    rows = np.arange(100)
    with threadpool_limits(limits=1):
        assert search.tune(rows, radii(X, k, rows), 1, Budget())
    return search


def test_points_in_cells_that_are_too_small_are_looked_for_in_more():
    X = gaussian(np.random.default_rng(0))[:1000]
    search = tuned(X, 40, n_cells=100)  # ten points in a cell
    search._cells = 1
    index, distance = search.find(np.arange(1000))
    assert np.all(index >= 0) and np.all(np.isfinite(distance))
    assert all(len(set(row)) == 40 and i not in row for i, row in enumerate(index.tolist()))


def test_codes_that_are_too_coarse_give_way_to_the_points_themselves(monkeypatch):
    build, tried = ApproximateSearch._build, []

    def spoilt(self, points, coding):
        tried.append(coding)
        build(self, points if coding == "Flat" else np.round(points), coding)

    monkeypatch.setattr(ApproximateSearch, "_build", spoilt)
    X = gaussian(np.random.default_rng(0))
    search = tuned(X, 10)
    assert tried == ["PQ20x4fs", "Flat"] and search.recall >= approximate.RECALL


def test_where_nothing_serves_neighbours_are_exact(monkeypatch):
    monkeypatch.setattr(ApproximateSearch, "_spaces", lambda self: iter(()))
    X = gaussian(np.random.default_rng(0))
    near = nearest_neighbors(X, 10, "approximate")
    np.testing.assert_array_equal(near.index, nearest_neighbors(X, 10, "exact").index)


def test_the_ladder_of_cells():
    assert list(approximate._ladder(30)) == [1, 2, 3, 4, 6, 8, 12, 16, 24, 30]
    assert list(approximate._ladder(1)) == [1]
