"""From rows to points and back: weights are repetitions, order is nothing, and every step can be undone."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from treewright.data import (
    Compact,
    Merge,
    Reduction,
    Sample,
    Scale,
    Weighted,
    labelled_sample,
    make_problem,
    reduced_sample,
    reduction,
    s2oct_scaling,
    unit_scaling,
)
from treewright.exceptions import InvalidInputError
from treewright.tree import Tree, predict_labels

rows = st.lists(
    st.tuples(st.integers(-2, 2), st.integers(-2, 2), st.integers(-1, 1), st.integers(0, 3)), min_size=1, max_size=20
)


def sample_of(table):
    data = np.array(table, dtype=float)
    return Sample.of(data[:, :2], data[:, 2].astype(int), data[:, 3])


@pytest.fixture(params=["sorted", "hashed"])
def order(request, monkeypatch):
    """Both ways to find equal rows; in an own fixture, as hypothesis wants no function-scoped ones."""
    if request.param == "hashed":
        monkeypatch.setattr(reduction, "EXACT_CELLS", 0)


@given(rows, st.randoms(use_true_random=False), st.booleans())
def test_weights_are_repetitions_and_order_is_nothing(table, random, small):
    with pytest.MonkeyPatch.context() as patch:
        if not small:
            patch.setattr(reduction, "EXACT_CELLS", 0)
        sample = sample_of(table)
        found = reduced_sample(sample, Weighted(), Merge())
        shuffled = list(range(len(table)))
        random.shuffle(shuffled)
        others = [
            reduced_sample(sample.taken(np.array(shuffled)), Weighted(), Merge()),
            reduced_sample(
                sample_of([(*r[:3], 1) for r in table for _ in range(r[3])] or [(0, 0, 0, 0)]), Weighted(), Merge()
            ),
        ]
    for other in others:
        assert np.array_equal(found.points.X, other.points.X)
        assert np.array_equal(found.points.y, other.points.y)
        assert np.array_equal(found.points.weight, other.points.weight)
    kept = np.array([row[3] > 0 for row in table])
    assert np.array_equal(found.invert(found.points.X)[kept], sample.X[kept])
    assert np.array_equal(found.invert(found.points.y, left_out=9), np.where(kept, sample.y, 9))
    assert np.all(found.place[~kept] == -1) and np.array_equal(found.kept, np.flatnonzero(kept))
    assert found.points.size.sum() == kept.sum()
    assert len(found.points) == len({row[:3] for row in table if row[3]})
    if small:
        listed = np.column_stack([found.points.X, found.points.y]).tolist()
        assert listed == sorted(listed)


def test_equal_rows_of_different_labels_are_one_point_without_labels(order):
    X = np.array([[1.0], [2.0], [1.0]])
    with_labels = reduced_sample(Sample.of(X, np.array([0, 1, 1])), Merge())
    without = reduced_sample(Sample.of(X, np.array([0, 1, 1])), Merge(labels=False))
    assert len(with_labels.points) == 3 and len(without.points) == 2 and without.points.y is None
    assert without.place[0] == without.place[2] != without.place[1]


def test_targets_of_several_outputs(order):
    X, Y = np.array([[1.0], [1.0], [1.0]]), np.array([[0.5, -1.0], [0.5, 2.0], [0.5, -1.0]])
    found = reduced_sample(Sample.of(X, Y, np.array([1.0, 1.0, 0.25])), Merge())
    assert sorted(zip(found.points.y[:, 1], found.points.weight, strict=True)) == [(-1.0, 1.25), (2.0, 1.0)]


def test_negative_zero_is_zero(order):
    for table in ([[0.0], [-0.0]], [[-0.0], [0.0]]):
        found = reduced_sample(Sample.of(np.array(table), np.array([1, 1])), Merge())
        assert len(found.points) == 1 and not np.signbit(found.points.X).any()


def test_large_tables_are_single_precision_and_merged_only_if_asked(monkeypatch):
    monkeypatch.setattr(reduction, "EXACT_CELLS", 3)
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (20, 1)).astype(float)
    kept = reduced_sample(Sample.of(X), Compact(), Merge(large=False))
    assert kept.points.X.dtype == np.float32 and np.array_equal(kept.points.X, X)
    merged = reduced_sample(Sample.of(X), Compact(), Merge(labels=False))
    assert merged.points.X.dtype == np.float32 and len(merged.points) == 2
    assert np.array_equal(merged.invert(merged.points.X), X)
    tall = reduced_sample(Sample.of(sparse.csr_array(X)), Compact(), Merge())
    assert sparse.issparse(tall.points.X) and tall.points.X.dtype == np.float32 and len(tall.points) == 20


def test_small_sparse_tables_become_dense():
    found = reduced_sample(Sample.of(sparse.csr_array(np.array([[1.0], [1.0], [0.0]]))), Compact(), Merge())
    assert found.points.X.ravel().tolist() == [0.0, 1.0] and found.points.size.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("make", [unit_scaling, s2oct_scaling])
def test_trees_go_there_and_back(make):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 1000, (50, 2)) * np.array([1.0, 8.0])
    found = reduced_sample(Sample.of(X, rng.integers(0, 2, 50)), Scale(make), Merge())
    tree = Tree.stump([3.0, -1.0], 700.5, [[1.0, 0.0], [0.0, 1.0]])
    there = found.apply_tree(tree)
    on_rows = np.array([int(3 * Fraction(a) - Fraction(b) > Fraction(1401, 2)) for a, b in X.tolist()])
    assert np.array_equal(found.invert(predict_labels(there, found.points.X)), on_rows)
    assert np.array_equal(predict_labels(found.invert_tree(there), X), on_rows)
    plain = reduced_sample(Sample.of(X), Merge())
    assert plain.apply_tree(tree) is tree and plain.invert_tree(tree) is tree


def test_scaling_sees_the_rows_that_are_left():
    sample = Sample.of(np.array([[0.0], [5.0], [1000.0]]), weight=np.array([1.0, 1.0, 0.0]))
    assert reduced_sample(sample, Weighted(), Scale(unit_scaling)).points.X.ravel().tolist() == [0.0, 1.0]
    assert reduced_sample(sample, Scale(unit_scaling), Weighted()).points.X.ravel().tolist() == [0.0, 0.005]
    with pytest.raises(InvalidInputError, match="scaled already"):
        reduced_sample(sample, Scale(unit_scaling), Scale(unit_scaling))


def test_members():
    X = np.array([[1.0], [2.0], [1.0], [3.0], [1.0]])
    weight = np.array([1.0, 1.0, 2.0, 0.0, 1.0])
    found = reduced_sample(Sample.of(X, weight=weight), Weighted(), Merge(labels=False))
    assert found.members().toarray().tolist() == [[1, 0, 1, 0, 1], [0, 1, 0, 0, 0]]
    assert found.members(weight).toarray()[0].tolist() == [1.0, 0.0, 2.0, 0.0, 1.0]


def test_a_step_of_ones_own_joins_the_others():
    """Room for selections that are not about weights, such as points inside a hull."""

    class Largest:
        def apply(self, sample):
            at = int(np.argmax(sample.X[:, 0]))
            place = np.where(np.arange(len(sample)) == at, 0, -1)
            return Reduction(sample.taken(np.array([at])), place)

    found = reduced_sample(Sample.of(np.array([[1.0], [7.0], [7.0], [3.0]])), Merge(labels=False), Largest())
    assert found.points.X.tolist() == [[7.0]] and found.place.tolist() == [-1, 0, 0, -1]
    assert found.invert(np.array([True])).tolist() == [False, True, True, False]


def test_no_rows_at_all():
    found = reduced_sample(Sample.of(np.empty((0, 2)), np.empty(0, dtype=int)), Weighted(), Merge())
    assert len(found.points) == 0 and found.invert(np.empty(0)).shape == (0,)
    gone = reduced_sample(Sample.of(np.ones((2, 1)), weight=np.zeros(2)), Weighted(), Merge(labels=False))
    assert gone.place.tolist() == [-1, -1] and gone.invert(np.empty(0), left_out=5).tolist() == [5, 5]


def test_labelled_rows_do_not_know_the_order_of_the_file():
    rng = np.random.default_rng(1)
    X, y = rng.integers(0, 3, (40, 2)).astype(float), rng.integers(-1, 2, 40)
    weight = rng.integers(0, 3, 40).astype(float)
    problem = make_problem(X, y, weight, supervised=False)
    for merged in (True, False):
        shuffled = rng.permutation(40)
        other = make_problem(X[shuffled], y[shuffled], weight[shuffled], supervised=False)
        one, two = (labelled_sample(p, merged, np.random.default_rng(0)) for p in (problem, other))
        assert np.array_equal(one.X, two.X) and np.array_equal(one.y, two.y) and np.array_equal(one.weight, two.weight)
        used = (y >= 0) & (weight > 0)
        assert one.weight.sum() == weight[used].sum() and np.all(one.y >= 0)
        distinct = {(*row, label) for row, label in zip(X[used].tolist(), y[used].tolist(), strict=True)}
        assert len(one) == (len(distinct) if merged else used.sum())


def test_weights_of_equal_rows_add_up_alike_in_any_order():
    rng = np.random.default_rng(0)
    X, weight = rng.integers(0, 3, (200, 1)).astype(float), 10.0 ** rng.uniform(-12, 0, 200)
    points = reduced_sample(Sample.of(X, weight=weight), Merge()).points
    for _ in range(10):
        order = rng.permutation(200)
        again = reduced_sample(Sample.of(X[order], weight=weight[order]), Merge()).points
        assert np.array_equal(points.X, again.X) and points.weight.tolist() == again.weight.tolist()
