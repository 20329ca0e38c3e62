"""Distinct rows of large tables: the set and its order depend on content alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from treewright.data import distinct_rows, labelled_sample, make_problem, reduction

DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@given(
    arrays(
        np.float64, st.tuples(st.integers(1, 12), st.integers(1, 3)), elements=st.sampled_from([-1.0, -0.0, 0.0, 2.5])
    ),
    st.sampled_from([np.float32, np.float64]),
    st.randoms(use_true_random=False),
)
def test_distinct_rows_are_those_of_a_set(table, dtype, random):
    X = table.astype(dtype)
    first, inverse = distinct_rows(X)
    assert len(first) == len({tuple(row) for row in X.tolist()})  # -0.0 == 0.0, and both hash alike
    assert np.array_equal(X[first[inverse]], X)
    order = list(range(len(X)))
    random.shuffle(order)
    other, place = distinct_rows(X[order])
    assert np.array_equal(X[order][other], X[first])  # the same rows in the same order
    assert np.array_equal(place, inverse[order])


@DTYPES
def test_neighbouring_numbers_and_swapped_columns_are_different_rows(dtype):
    one = np.array(1.0, dtype=dtype)
    rows = [
        [one, 0],
        [np.nextafter(one, dtype(2)), 0],
        [0, one],
        [one, one],
        [-one, 0],
        [np.finfo(dtype).tiny, 0],
        [0, 0],
    ]
    X = np.array(rows, dtype=dtype)
    first, inverse = distinct_rows(np.concatenate([X, X[::-1]]))
    assert len(first) == 7 and np.array_equal(inverse[:7], inverse[7:][::-1])


@DTYPES
def test_many_rows_on_a_grid(dtype):
    rng = np.random.default_rng(0)
    X = (rng.integers(0, 4, (20_000, 6)) / 3).astype(dtype)
    first, inverse = distinct_rows(X)
    oracle, counts = np.unique(X, axis=0, return_counts=True)
    assert len(first) == len(oracle) and sorted(np.bincount(inverse)) == sorted(counts)
    assert np.array_equal(np.unique(X[first], axis=0), oracle)
    for layout in (np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2]):
        assert np.array_equal(distinct_rows(layout)[1], inverse)


KEYS = {
    "one": lambda X: np.zeros(len(X), dtype=np.uint64),
    "few": lambda X: (np.nan_to_num(X[:, 0]) % 2).astype(np.uint64),
    "some": lambda X: (np.nan_to_num(X).sum(axis=1) % 5).astype(np.uint64),
}


@pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS.keys())
@DTYPES
def test_rows_with_one_key_are_told_apart_by_content(monkeypatch, keys, dtype):
    rng = np.random.default_rng(1)
    X = rng.integers(0, 3, (300, 3)).astype(dtype)
    X[X == 2] = np.where(rng.random((X == 2).sum()) < 0.5, np.nan, -0.0)
    monkeypatch.setattr(reduction, "row_keys", keys)
    first, inverse = reduction.distinct_rows(X)
    assert len(first) == len({tuple(row) for row in np.nan_to_num(X, nan=-7).tolist()}) == inverse.max() + 1
    assert np.array_equal(X[first[inverse]], X, equal_nan=True)
    order = rng.permutation(len(X))
    other, place = reduction.distinct_rows(X[order])
    assert np.array_equal(X[order][other], X[first], equal_nan=True) and np.array_equal(place, inverse[order])


@DTYPES
def test_blocks_do_not_show(monkeypatch, dtype):
    rng = np.random.default_rng(2)
    X = np.where(rng.random((200, 3)) < 0.1, np.nan, rng.integers(0, 4, (200, 3))).astype(dtype)
    whole = reduction.distinct_rows(X)
    monkeypatch.setattr(reduction, "_BLOCK", 7)
    for one, two in zip(whole, reduction.distinct_rows(X), strict=True):
        assert np.array_equal(one, two)


def test_labelled_rows_of_large_tables_do_not_know_the_order_of_the_file(monkeypatch):
    monkeypatch.setattr(reduction, "EXACT_CELLS", 0)
    rng = np.random.default_rng(3)
    X, y = rng.integers(0, 3, (60, 2)).astype(float), rng.integers(0, 2, 60)
    weight = rng.integers(1, 3, 60).astype(float)
    shuffled = rng.permutation(60)
    for merged in (True, False):
        one, two = (
            labelled_sample(make_problem(X[rows], y[rows], weight[rows]), merged, np.random.default_rng(0))
            for rows in (np.arange(60), shuffled)
        )
        assert np.array_equal(one.X, two.X) and np.array_equal(one.y, two.y) and np.array_equal(one.weight, two.weight)
        assert one.weight.sum() == weight.sum()
