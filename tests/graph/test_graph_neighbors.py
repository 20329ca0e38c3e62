"""Neighbours against brute force: kinds of search, duplicates, choice of the method, threads."""

import importlib.util
import sys
import warnings

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_info

from treewright.exceptions import InvalidInputError, PackageNotInstalledError
from treewright.graph import nearest_neighbors
from treewright.graph import neighbors as module
from treewright.graph.exact import ExactSearch


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
    assert near.recall == near.searched == 1.0 and near.note == ""


@pytest.mark.parametrize("kind", ["kd_tree", "brute", "features"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_kind_of_exact_search_is_brute_force(kind, dtype):
    rng = np.random.default_rng(0)
    X = (rng.random((200, 12)) * (rng.random((200, 12)) < 0.3)).astype(dtype)
    X[50:70] = X[7]  # many equal rows
    search = ExactSearch(sparse.csr_array(X) if kind != "brute" else X, 6)
    search.kind = kind
    rows = np.array([199, 3, 7, 55, 60])
    index, distance = search.find(rows)
    away = all_distances(X)
    order = np.lexsort((np.broadcast_to(np.arange(200), away.shape), away.round(12)))
    np.testing.assert_allclose(distance, np.take_along_axis(away, order, axis=1)[rows, :6], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(distance, away[rows[:, None], index], rtol=1e-12)
    assert all(len(set(row)) == 6 and i not in row for i, row in zip(rows.tolist(), index.tolist(), strict=True))


@pytest.mark.parametrize(("p", "n"), [(1, 180), (40, 180), (40, 1800)])
@pytest.mark.parametrize("method", ["exact", "approximate"])
def test_equal_rows_are_neighbours_but_no_row_is_its_own(p, n, method):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.random((n // 9, p)), 9, axis=0)[rng.permutation(n)]
    near = nearest_neighbors(X, 5, method=method)
    assert np.all(near.distance == 0)
    assert not np.any(near.index == np.arange(n)[:, None])
    assert all(len(set(row)) == 5 for row in near.index.tolist())
    assert np.all(X[near.index] == X[:, None, :])


@pytest.mark.parametrize(("n", "method"), [(200, "exact"), (1500, "approximate")])
def test_points_far_from_the_origin_keep_their_neighbours(n, method):
    X = np.random.default_rng(0).random((n, 30))
    near = nearest_neighbors(X, 5, method="exact")
    moved = nearest_neighbors(X + 1e7, 5, method=method)
    assert np.mean(near.distance * (1 + 1e-6) >= moved.distance) > (0.99 if method == "exact" else 0.97)
    np.testing.assert_allclose(moved.distance[:, 0], near.distance[:, 0], rtol=0.2)


@pytest.mark.parametrize(("n", "asked", "got"), [(1, 3, 0), (2, 10, 1), (5, 4, 4), (5, 5, 4)])
def test_few_points_have_all_others_as_neighbours(n, asked, got):
    near = nearest_neighbors(np.arange(n, dtype=float)[:, None], asked)
    assert near.index.shape == near.distance.shape == (n, got)
    for i, row in enumerate(near.index.tolist()):
        assert i not in row and len(set(row)) == got


@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_very_large_and_very_small_points_have_all_their_neighbours(scale):
    X = np.random.default_rng(0).random((40, 20)) * scale
    with np.errstate(over="ignore"):
        near = nearest_neighbors(X, 5, method="exact")
    assert np.all(near.index >= 0) and all(len(set(row)) == 5 for row in near.index.tolist())


@pytest.mark.parametrize("method", ["exact", "approximate"])
def test_neighbours_do_not_depend_on_the_number_of_threads(method, monkeypatch):
    monkeypatch.setattr("treewright.graph.exact._PART_ROWS", 100)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 24)).astype(np.float32)
    X[rng.integers(0, 2000, 600)] = X[:3].repeat(200, axis=0)  # ties that any order of work would break its own way
    before = [(pool["filepath"], pool["num_threads"]) for pool in threadpool_info()]
    one, two, three = (nearest_neighbors(X, 8, method, n_jobs, seed=5) for n_jobs in (1, 2, 3))
    for other in (two, three, nearest_neighbors(X, 8, method, 2, seed=5)):
        np.testing.assert_array_equal(one.index, other.index)
        np.testing.assert_array_equal(one.distance, other.distance)
    after = [(pool["filepath"], pool["num_threads"]) for pool in threadpool_info()]
    assert set(before) <= set(after)


def test_a_missing_package_is_named_with_its_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(PackageNotInstalledError, match=r"'faiss-cpu'.*pip install \"treewright\[graph\]\"") as caught:
        nearest_neighbors(np.random.default_rng(0).random((30, 2)), 3, method="approximate")
    assert isinstance(caught.value, ImportError)


@pytest.mark.parametrize("installed", [False, True])
def test_auto_is_exact_unless_that_takes_long_and_the_package_is_there(monkeypatch, installed):
    X = np.random.default_rng(0).random((1200, 8))
    exact = nearest_neighbors(X, 4, method="exact")
    asked = []
    coarsely = module._Work.coarsely
    monkeypatch.setattr(module._Work, "coarsely", lambda work, *a: asked.append(work.n) or coarsely(work, *a))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if installed else None)
    nearest_neighbors(X, 4)
    assert asked == []
    monkeypatch.setattr(module, "_PATIENCE", 0.0)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        near = nearest_neighbors(X, 4)
    assert asked == ([1200] if installed else [])
    assert ["pip install" in str(one.message) for one in said] == ([] if installed else [True])
    assert all(one.filename == __file__ for one in said)
    assert installed or np.array_equal(near.index, exact.index)


@pytest.mark.parametrize("wrong", [{"n_neighbors": 0}, {"n_neighbors": 3, "method": "quick"}])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidInputError, match="n_neighbors=0|'quick'"):
        nearest_neighbors(np.zeros((3, 1)), **wrong)
