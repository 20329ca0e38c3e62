"""Neighbours against brute force, duplicates, and the approximate search against the exact one."""

import importlib.util
import sys
import warnings

import numpy as np
import pytest
from scipy import sparse

from treewright.exceptions import InvalidInputError, PackageNotInstalledError
from treewright.graph import nearest_neighbors
from treewright.graph import neighbors as module


def all_distances(X):
    X = np.asarray(X, dtype=np.float64)
    away = np.sqrt(((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2))
    np.fill_diagonal(away, np.inf)
    return away


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("p", [2, 30])  # a tree, and all distances
@pytest.mark.parametrize("as_sparse", [False, True])
def test_exact_neighbours_are_those_of_brute_force(dtype, p, as_sparse):
    rng = np.random.default_rng(p)
    X = (rng.random((150, p)) * (rng.random((150, p)) < 0.5)).astype(dtype)
    near = nearest_neighbors(sparse.csr_array(X) if as_sparse else X, 7, method="exact")
    away = all_distances(X)
    assert near.index.shape == near.distance.shape == (150, 7)
    np.testing.assert_allclose(near.distance, np.sort(away, axis=1)[:, :7], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(near.distance, np.take_along_axis(away, near.index, axis=1), rtol=1e-12)
    assert not np.any(near.index == np.arange(150)[:, None])


@pytest.mark.parametrize("p", [1, 40])
@pytest.mark.parametrize("method", ["exact", "approximate"])
def test_equal_rows_are_neighbours_but_no_row_is_its_own(p, method):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.random((20, p)), 9, axis=0)[rng.permutation(180)]
    near = nearest_neighbors(X, 5, method=method)
    assert np.all(near.distance == 0)
    assert not np.any(near.index == np.arange(180)[:, None])
    assert all(len(set(row)) == 5 for row in near.index.tolist())
    assert np.all(X[near.index] == X[:, None, :])


def test_points_far_from_the_origin_keep_their_neighbours():
    X = np.random.default_rng(0).random((200, 30))
    near = nearest_neighbors(X, 5, method="exact")
    moved = nearest_neighbors(X + 1e7, 5, method="exact")
    assert np.mean(near.index == moved.index) > 0.99
    np.testing.assert_allclose(near.distance, moved.distance, rtol=1e-6)


@pytest.mark.parametrize(("n", "asked", "got"), [(1, 3, 0), (2, 10, 1), (5, 4, 4), (5, 5, 4)])
def test_few_points_have_all_others_as_neighbours(n, asked, got):
    near = nearest_neighbors(np.arange(n, dtype=float)[:, None], asked)
    assert near.index.shape == near.distance.shape == (n, got)
    for i, row in enumerate(near.index.tolist()):
        assert i not in row and len(set(row)) == got


def test_approximate_neighbours_are_most_of_the_exact_ones_and_repeatable():
    X = np.random.default_rng(0).standard_normal((3000, 20)).astype(np.float32)
    exact = nearest_neighbors(X, 10, method="exact")
    near = nearest_neighbors(X, 10, method="approximate", seed=3)
    recall = np.mean([len(set(a) & set(b)) for a, b in zip(exact.index.tolist(), near.index.tolist(), strict=True)])
    assert recall / 10 >= 0.9
    assert np.all(np.diff(near.distance, axis=1) >= 0)
    assert not np.any(near.index == np.arange(3000)[:, None])
    again = nearest_neighbors(X, 10, method="approximate", seed=3)
    np.testing.assert_array_equal(near.index, again.index)


def test_the_number_of_numba_threads_is_left_as_it_was():
    import numba

    before = numba.get_num_threads()
    nearest_neighbors(np.random.default_rng(0).random((200, 3)), 3, method="approximate", n_jobs=1)
    assert numba.get_num_threads() == before


def test_neighbours_that_the_approximate_search_misses_are_looked_for(monkeypatch):
    import pynndescent

    X = np.random.default_rng(0).random((60, 4))

    class Forgetful:
        def __init__(self, X, n_neighbors, **settings):
            found = np.argsort(np.where(np.eye(60) > 0, -1.0, all_distances(X)), axis=1)[:, :n_neighbors]
            found[::3, 2:] = -1
            self.neighbor_graph = found, None

    monkeypatch.setattr(pynndescent, "NNDescent", Forgetful)
    near = nearest_neighbors(X, 5, method="approximate")
    np.testing.assert_array_equal(near.index, np.argsort(all_distances(X), axis=1)[:, :5])


def test_a_missing_package_is_named_with_its_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynndescent", None)
    with pytest.raises(PackageNotInstalledError, match=r"pip install \"treewright\[graph\]\"") as caught:
        nearest_neighbors(np.random.default_rng(0).random((30, 2)), 3, method="approximate")
    assert isinstance(caught.value, ImportError)


@pytest.mark.parametrize("installed", [False, True])
def test_auto_is_exact_unless_that_takes_long_and_the_package_is_there(monkeypatch, installed):
    X = np.random.default_rng(0).random((100, 3))
    exact = nearest_neighbors(X, 4, method="exact")
    asked = []
    monkeypatch.setattr(module, "_approximate", lambda X, k, *_: asked.append(k) or exact.index)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if installed else None)
    nearest_neighbors(X, 4)
    assert asked == []
    monkeypatch.setattr(module, "_PATIENCE", 0.0)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        np.testing.assert_array_equal(nearest_neighbors(X, 4).index, exact.index)
    assert asked == ([4] if installed else [])
    assert ["pip install" in str(one.message) for one in said] == ([] if installed else [True])


@pytest.mark.parametrize("wrong", [{"n_neighbors": 0}, {"n_neighbors": 3, "method": "quick"}])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidInputError, match="n_neighbors=0|'quick'"):
        nearest_neighbors(np.zeros((3, 1)), **wrong)
