"""A clock over the search for neighbours: in parts, told before it starts, cut short with a note, not kept on disk."""

import time
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from treewright.core.budget import Budget
from treewright.graph import (
    GraphSettings,
    affinity_graph,
    affordable_points,
    approximate,
    nearest_neighbors,
    neighbor_graph,
)
from treewright.graph import exact as exact_module
from treewright.graph.approximate import ApproximateSearch
from treewright.graph.exact import ExactSearch


def points(n=2000, p=20):
    return np.random.default_rng(0).standard_normal((n, p)).astype(np.float32)


def stopped():
    budget = Budget()
    budget.stop()
    return budget


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(exact_module, "_PART_ROWS", 100)
    monkeypatch.setattr(ApproximateSearch, "part", 100)


@pytest.mark.parametrize("budget", [stopped, lambda: Budget(0.0), lambda: Budget(1e-9)])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_without_time_the_first_part_of_an_exact_search_is_done(budget, n_jobs, small_parts):
    X = points()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        near = nearest_neighbors(X, 5, "exact", n_jobs, budget=budget())
    done = near.index[:, 0] >= 0
    assert near.searched == done.mean() == 0.05 and "ended with 5% of the rows" in near.note
    assert np.all(done == (np.arange(2000) % 20 == 0))  # evenly spread
    whole = nearest_neighbors(X, 5, "exact")
    np.testing.assert_array_equal(near.index[done], whole.index[done])
    assert np.all(near.index[~done] == -1) and np.all(np.isinf(near.distance[~done]))
    assert nearest_neighbors(X[:90], 5, budget=budget()).note == ""  # one part is all


def test_without_time_there_is_no_approximate_search():
    with pytest.warns(ConvergenceWarning, match="search for neighbours of 2000 distinct rows takes .*: it is left out"):
        near = nearest_neighbors(points(), 5, "approximate", budget=Budget(0.0))
    assert near.searched == 0.0 and near.note == "there was no time to search for neighbours"
    assert np.all(near.index == -1) and affinity_graph(near, 3.0).nnz == 0


@pytest.mark.parametrize("kind", [ExactSearch, ApproximateSearch])
def test_a_stop_ends_the_search_between_two_parts(kind, small_parts, monkeypatch):
    X, budget, find, asked = points(), Budget(), kind.find, []

    def pressed(self, rows):
        asked.append(rows)
        if len(asked) == 4:
            budget.stop()
        return find(self, rows)

    method = "exact" if kind is ExactSearch else "approximate"
    whole = nearest_neighbors(X, 5, method)
    monkeypatch.setattr(kind, "find", pressed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        near = nearest_neighbors(X, 5, method, budget=budget)
    assert len(asked) == 4
    done = np.sort(np.concatenate(asked))
    np.testing.assert_array_equal(near.index[done], whole.index[done])
    others = np.setdiff1d(np.flatnonzero(near.index[:, 0] >= 0), done)
    assert len(others) <= (0 if kind is ExactSearch else approximate.SAMPLE)  # points that show how many are found
    assert 0.2 <= near.searched < 0.5 and "of the rows" in near.note


def test_an_exact_search_that_takes_too_long_is_told_before_it_starts(small_parts, monkeypatch, own_clock):
    find, asked = ExactSearch.find, []

    def slow(self, rows):
        asked.append(rows)
        time.sleep(0.1)
        return find(self, rows)

    nearest_neighbors(points(), 5, "exact")  # compiles
    monkeypatch.setattr(ExactSearch, "find", slow)
    monkeypatch.setattr(warnings, "warn", lambda text, *_, **__: asked.append(text))
    near = nearest_neighbors(points(), 5, "exact", budget=Budget(0.5))
    assert "exact neighbours of 2000 distinct rows take about" in asked[1] and "left for it: it finds" in asked[1]
    assert [type(one) for one in asked].count(str) == 1
    assert near.searched == pytest.approx((len(asked) - 1) / 20) and near.searched < 0.5


def slow_trials(monkeypatch, seconds):
    """Trials that seem to take `seconds` for every cell."""
    real = ApproximateSearch._try
    monkeypatch.setattr(ApproximateSearch, "_try", lambda self, *a: real(self, *a)._replace(seconds=seconds * a[0]))


def test_where_time_is_short_an_approximate_search_looks_into_fewer_cells(monkeypatch):
    X = points(6000)
    full = nearest_neighbors(X, 10, "approximate")
    slow_trials(monkeypatch, 100.0)
    with pytest.warns(ConvergenceWarning, match=r"a search for 98% .* it finds about \d\d%"):
        near = nearest_neighbors(X, 10, "approximate", budget=Budget(1000.0))
    assert near.searched == 1.0 and 0.2 < near.recall < 0.98 < full.recall
    assert f"cut down to finding about {near.recall:.0%} of them" in near.note
    found = np.mean(near.distance <= nearest_neighbors(X, 10, "exact").distance[:, -1:] * (1 + 1e-9))
    assert found == pytest.approx(near.recall, abs=0.05)
    assert np.all(near.index >= 0) and not np.any(near.index == np.arange(6000)[:, None])


def test_auto_is_approximate_where_exact_neighbours_take_longer_than_is_left(monkeypatch):
    X, asked = points(3000), []
    real = ApproximateSearch.__init__
    monkeypatch.setattr(ApproximateSearch, "__init__", lambda self, *a: asked.append(1) or real(self, *a))
    seconds = ExactSearch(X, 5).seconds
    nearest_neighbors(X, 5, budget=Budget(100 * seconds))
    assert not asked
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        nearest_neighbors(X, 5, budget=Budget(seconds))
    assert asked


def test_how_many_points_there_is_time_for(monkeypatch, own_clock):
    X = points(5000, 30)
    exact = ExactSearch(X, 5)
    assert affordable_points(X, 5, "exact", 1, 100 * exact.seconds) == 5000
    assert affordable_points(X[:300], 5, "exact", 1, 0.0) == 300  # a fraction of a second
    monkeypatch.setattr(exact_module, "_seconds", lambda X: {"brute": 4e-6 * X.shape[0] ** 2})  # 100 s, it seems
    for seconds, most in ((1000.0, 5000), (25.0, 2500), (1.0, 500)):  # all distances: the square of the points
        found = affordable_points(X, 5, "exact", 1, seconds)
        assert 0.9 * most - 1 <= found <= most
    find = ExactSearch.find

    def slow(self, rows):
        time.sleep(0.08 * len(rows))  # four times what it should take
        return find(self, rows)

    monkeypatch.setattr(ExactSearch, "find", slow)
    assert 0.8 * 1250 < affordable_points(X, 5, "exact", 1, 25.0) <= 1250
    # more points are searched for approximately in the same time
    assert affordable_points(X, 5, "approximate", 1, 25.0) > 1250


def test_points_that_were_not_searched_for_have_the_edges_of_others(small_parts):
    X = points(300, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        near = nearest_neighbors(X, 6, "exact", budget=stopped())
    done = np.flatnonzero(near.index[:, 0] >= 0)
    assert len(done) == 100
    whole = affinity_graph(nearest_neighbors(X, 6, "exact"), 3.0)
    W = affinity_graph(near, 3.0)
    assert W.shape == (300, 300) and abs(W - W.T).max() == 0
    one_way = np.zeros((300, 300))
    for i in done:
        one_way[i, near.index[i]] = row_of(near.distance[i], 3.0)
    np.testing.assert_allclose(W.toarray(), (one_way + one_way.T) / 2, atol=1e-7)
    assert W.nnz < whole.nnz


def row_of(distance, perplexity):
    """Gaussian weights of one row by bisection."""
    low, high = -40.0, 40.0
    for _ in range(200):
        beta = np.exp((low + high) / 2)
        share = np.exp(-beta * (distance**2 - distance.min() ** 2))
        share /= share.sum()
        entropy = -np.sum(share * np.log(np.maximum(share, 1e-300)))
        low, high = ((low + high) / 2, high) if entropy > np.log(perplexity) else (low, (low + high) / 2)
    return share


def test_a_graph_that_was_cut_short_is_said_and_not_kept(tmp_path, small_parts):
    X = points(500, 5)
    with pytest.warns(ConvergenceWarning, match="the graph is not complete: the search for neighbours took"):
        cut = neighbor_graph(X, method="exact", cache=tmp_path, budget=stopped())
    assert list(tmp_path.iterdir()) == []
    found = GraphSettings(neighbors="exact", graph_cache=tmp_path).search(X)
    assert found.note == "" and found.searched == 1.0 and len(list(tmp_path.iterdir())) == 1
    assert found.W.nnz > cut.nnz
    again = GraphSettings(neighbors="exact", graph_cache=tmp_path).search(
        X, budget=stopped()
    )  # from disk: no time is needed
    np.testing.assert_array_equal(again.W.toarray(), found.W.toarray())
    assert again.note == ""
