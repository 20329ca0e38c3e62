"""Merged rows: weights are repetitions, order is nothing."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from treewright.data import merge_rows

rows = st.lists(
    st.tuples(st.integers(-2, 2), st.integers(-2, 2), st.integers(-1, 1), st.integers(0, 3)), min_size=1, max_size=20
)


@given(rows, st.randoms())
def test_weights_are_repetitions_and_order_is_nothing(table, random):
    data = np.array(table, dtype=float)
    X, y, weight = data[:, :2], data[:, 2].astype(int), data[:, 3]
    merged = merge_rows(X, y, weight)
    order = list(range(len(table)))
    random.shuffle(order)
    shuffled = merge_rows(X[order], y[order], weight[order])
    times = weight.astype(int)
    repeated = merge_rows(np.repeat(X, times, axis=0), np.repeat(y, times), np.ones(times.sum()))
    for other in (shuffled, repeated):
        assert np.array_equal(merged.X, other.X)
        assert np.array_equal(merged.y, other.y)
        assert np.array_equal(merged.weight, other.weight)
    kept = weight > 0
    assert np.array_equal(merged.X[merged.inverse[kept]], X[kept])
    assert np.array_equal(merged.y[merged.inverse[kept]], y[kept])
    assert np.all(merged.inverse[~kept] == -1)
    assert merged.size.sum() == kept.sum()


def test_negative_zero_is_zero():
    merged = merge_rows(np.array([[0.0], [-0.0]]), np.array([1, 1]), np.ones(2))
    assert len(merged.X) == 1
