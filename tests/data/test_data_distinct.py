"""Distinct rows of large tables: the set and its order depend on content alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from treewright.data import distinct_rows

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


class Blind(np.ndarray):
    """Keys that stay 0, whatever is added."""

    def __new__(cls, n, dtype):
        return np.ndarray.__new__(cls, n, dtype=dtype, buffer=bytearray(8 * n))

    def __iadd__(self, other):
        return self


def test_rows_with_one_key_are_told_apart(monkeypatch):
    X = np.array([[1.0], [2.0], [1.0], [3.0], [-0.0], [0.0]])
    with monkeypatch.context() as patched:
        patched.setattr(np, "zeros", Blind)
        first, inverse = distinct_rows(X)
    assert len(first) == 4 and np.array_equal(X[first[inverse]], X)
    assert inverse[0] == inverse[2] and inverse[4] == inverse[5]
