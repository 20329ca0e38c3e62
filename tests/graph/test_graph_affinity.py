"""Affinities: the perplexity recomputed from the rows, limits, and the symmetric graph."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from tests.examples import looped

from treewright.exceptions import InvalidInputError
from treewright.graph import Neighbors, affinity_graph, nearest_neighbors, neighbor_graph, perplexity_affinities


def perplexity_of(rows):
    logs = np.log(np.where(rows > 0, rows, 1.0))
    return np.exp(-(rows * logs).sum(axis=1))


@looped("scale", [1e-150, 1e-8, 1.0, 1e8, 1e150])
@looped("perplexity", [1.5, 5.0, 9.9])
def test_rows_have_the_perplexity_asked_for_and_are_gaussian(scale, perplexity):
    distance = np.sort(np.random.default_rng(0).random((200, 10)) + 0.1, axis=1)
    rows = perplexity_affinities(distance * scale, perplexity)
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(perplexity_of(rows), perplexity, rtol=1e-8)
    # Logarithms of the affinities fall in a straight line over squared distances.
    with np.errstate(divide="ignore"):
        logs = np.log(rows)
    slope = (logs[:, 1:3] - logs[:, :1]) / (distance[:, 1:3] ** 2 - distance[:, :1] ** 2)
    np.testing.assert_allclose(slope[:, 0], slope[:, 1], rtol=1e-6)


@looped(
    "distance, perplexity, expected",
    [
        ([2.0, 2.0, 2.0, 2.0], 2.0, [0.25, 0.25, 0.25, 0.25]),
        ([0.0, 0.0, 0.0, 0.0], 3.0, [0.25, 0.25, 0.25, 0.25]),
        ([1.0, 2.0, 3.0, 4.0], 4.0, [0.25, 0.25, 0.25, 0.25]),
        ([1.0, 2.0, 3.0, 4.0], 50.0, [0.25, 0.25, 0.25, 0.25]),
        ([0.0, 0.0, 0.0, 1.0], 2.0, [1 / 3, 1 / 3, 1 / 3, 0.0]),
        ([1.0, 2.0, 3.0, 4.0], 1.0, [1.0, 0.0, 0.0, 0.0]),
        ([5.0], 5.0, [1.0]),
    ],
)
def test_limits(distance, perplexity, expected):
    np.testing.assert_allclose(perplexity_affinities(np.array([distance]), perplexity)[0], expected, atol=1e-9)


tables = arrays.arrays(
    np.float64,
    st.tuples(st.integers(1, 5), st.integers(1, 8)),
    elements=st.one_of(st.sampled_from([0.0, 1.0, 1e-300, 1e300]), st.floats(0, 1e300)),
)


@settings(deadline=None, max_examples=30)
@given(tables, st.floats(1, 12))
def test_any_distances_give_rows_that_sum_to_one_and_fall(distance, perplexity):
    rows = perplexity_affinities(distance, perplexity)
    assert np.all(rows >= 0)
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, rtol=1e-12)
    order = np.argsort(distance, axis=1, kind="stable")
    assert np.all(np.diff(np.take_along_axis(rows, order, axis=1), axis=1) <= 1e-12)
    # The perplexity is as asked for, unless the nearest are equal (or nearly, beside the farthest) and more than that.
    near, far = distance.min(axis=1, keepdims=True), distance.max(axis=1, keepdims=True)
    part = distance / np.where(far > 0, far, 1.0)
    close = (part - part.min(axis=1, keepdims=True)) * (part + part.min(axis=1, keepdims=True)) < 1e-35
    asked = min(perplexity, distance.shape[1])
    reached = perplexity_of(rows)
    assert np.all(reached >= np.maximum(asked, (distance == near).sum(axis=1)) * (1 - 1e-6))
    assert np.all(reached <= np.maximum(asked, close.sum(axis=1)) * (1 + 1e-6))


def test_bad_input_is_refused():
    with pytest.raises(InvalidInputError, match="perplexity=0.5"):
        perplexity_affinities(np.ones((2, 3)), 0.5)
    with pytest.raises(InvalidInputError, match="finite"):
        perplexity_affinities(np.array([[1.0, np.nan]]), 1.5)


def directed(near, perplexity):
    n = len(near.index)
    P = np.zeros((n, n))
    np.put_along_axis(P, near.index, perplexity_affinities(near.distance, perplexity), axis=1)
    return P


def test_the_graph_is_the_mean_of_both_directions():
    near = nearest_neighbors(np.random.default_rng(0).random((80, 3)), 6)
    P = directed(near, 3.0)
    W = affinity_graph(near, 3.0)
    np.testing.assert_allclose(W.toarray(), (P + P.T) / 2, rtol=1e-14)
    assert (W != W.T).nnz == 0
    assert np.all(W.diagonal() == 0) and np.all(W.data > 0)
    assert W.sum() == pytest.approx(80)
    both = affinity_graph(near, 3.0, mutual=True)
    np.testing.assert_allclose(both.toarray(), np.where((P > 0) & (P.T > 0), (P + P.T) / 2, 0.0), rtol=1e-14)
    assert 0 < both.nnz < W.nnz and np.all(both.data > 0)


def test_affinities_that_vanish_are_no_edges():
    near = Neighbors(np.array([[1, 2], [0, 2], [1, 0]]), np.array([[1.0, 9.0], [1.0, 8.0], [8.0, 9.0]]))
    W = affinity_graph(near, 1.0)
    np.testing.assert_allclose(W.toarray(), [[0, 1, 0], [1, 0, 0.5], [0, 0.5, 0]], rtol=1e-9)
    assert W.nnz == 4


def test_one_point_and_units():
    assert neighbor_graph(np.zeros((1, 2))).toarray().tolist() == [[0.0]]
    X = np.random.default_rng(1).random((60, 4))
    W, other = neighbor_graph(X), neighbor_graph(1e6 * X)
    np.testing.assert_allclose(W.toarray(), other.toarray(), rtol=1e-6, atol=1e-12)
