"""Counts, deviations and unreachable counts of points against counting row by row and enumeration."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from tests.examples import looped

from treewright.data import PointTotals, parse_totals
from treewright.data.point_totals import class_deviations
from treewright.exceptions import InvalidInputError


def random_totals(seed, n=12, n_groups=3, n_classes=3, largest=3):
    rng = np.random.default_rng(seed)
    size = rng.integers(0, largest + 1, (n, n_groups)) * (rng.random((n, n_groups)) < 0.6)
    low = rng.integers(0, 1 + size.sum(axis=0).max() // 2, (n_groups, n_classes))
    return PointTotals(size, low, low + rng.integers(0, 4, low.shape)), size, rng


def plain_missed(size, low, high, labels):
    """The definition, one row after the other."""
    total = 0
    for g in range(len(low)):
        counts = [0] * len(low[g])
        for i, label in enumerate(labels):
            counts[label] += int(size[i, g])
        above = sum(max(0, c - h) for c, h in zip(counts, high[g], strict=True))
        below = sum(max(0, k - c) for c, k in zip(counts, low[g], strict=True))
        total += max(above, below)
    return total


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(2, 4))
def test_missed_rows_are_those_of_the_definition(seed, n_groups, n_classes):
    totals, size, rng = random_totals(seed, n_groups=n_groups, n_classes=n_classes)
    labels = rng.integers(0, n_classes, (5, totals.n_points))
    expected = [plain_missed(size, totals.low, totals.high, row) for row in labels]
    assert [totals.missed(row) for row in labels] == expected
    assert totals.deviation(totals.counts(labels)).tolist() == expected  # a stack at once
    assert totals.counts(labels).shape == (5, n_groups, n_classes)
    assert totals.group_rows.tolist() == size.sum(axis=0).tolist() and totals.rows.tolist() == size.sum(axis=1).tolist()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(2, 4), st.integers(0, 12))
def test_missed_rows_along_changes_are_those_after_each(seed, n_groups, n_classes, n_changes):
    totals, _, rng = random_totals(seed, n_groups=n_groups, n_classes=n_classes)
    labels = rng.integers(0, n_classes, totals.n_points)
    points = rng.permutation(totals.n_points)[:n_changes]
    new = rng.integers(0, n_classes, n_changes)
    expected, now = [totals.missed(labels)], labels.copy()
    for point, label in zip(points, new, strict=True):
        now[point] = label
        expected.append(totals.missed(now))
    assert totals.missed_along(labels, points, new).tolist() == expected


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=0, max_size=8), st.integers(0, 40), st.integers(0, 3))
def test_unreachable_counts_are_those_of_enumeration(sizes, low, width):
    low = min(low, sum(sizes))
    high = min(low + width, sum(sizes))
    reachable = {
        sum(s for s, used in zip(sizes, bits, strict=True) if used) for bits in product([0, 1], repeat=len(sizes))
    }
    expected = min(max(low - r, r - high, 0) for r in reachable)
    assert PointTotals(np.array(sizes).reshape(-1, 1), [[low]], [[high]]).unreachable == expected


@looped("seed", range(20))
def test_no_labels_miss_fewer_rows_than_the_unreachable_ones(seed):
    totals, size, _ = random_totals(seed, n=6, n_groups=2, largest=5)
    best = min(plain_missed(size, totals.low, totals.high, label) for label in product(range(3), repeat=6))
    assert totals.unreachable <= best


def test_equal_sizes_by_the_thousand_are_enumerated():
    """Multiples of 7 and one 3: 7 000 rows and 1 more are 1 away, 2 more are 1 away, 5 more are 2 away."""
    for more, away in ((0, 0), (1, 1), (2, 1), (3, 0), (4, 1), (5, 2)):
        total = [[7000 + more]]
        assert PointTotals(np.array([7] * 20_000 + [3])[:, None], total, total).unreachable == away


def test_two_classes_are_an_interval_of_one():
    rng = np.random.default_rng(0)
    for seed in range(20):
        totals, size, _ = random_totals(seed, n_classes=2)
        rows = size.sum(axis=0)
        low = np.column_stack([rows // 3, rows // 4])
        high = np.column_stack([rows - rows // 4 + 1, rows - rows // 3 + 1])
        totals = PointTotals(size, low, high)
        fewest, most = totals.interval(1)
        labels = rng.integers(0, 2, len(size))
        count = size[labels == 1].sum(axis=0)
        assert np.maximum(np.maximum(fewest - count, count - most), 0).sum() == totals.missed(labels)


def test_parts_tables_and_sparse_tables_are_one():
    totals, size, rng = random_totals(3)
    point, group = np.nonzero(size)
    order = rng.permutation(len(point))
    point, group = point[order], group[order]
    from_parts = PointTotals.from_parts(point, group, len(size), totals.low, totals.high, size[point, group])
    for other in (from_parts, PointTotals(sparse.coo_array(size), totals.low, totals.high)):
        assert np.array_equal(other.size.toarray(), size)
    number = rng.integers(0, 4, len(size))
    merged = np.stack([size[number == k].sum(axis=0) for k in range(4)])
    assert np.array_equal(totals.merged(number, 4).size.toarray(), merged)
    assert np.array_equal(totals.of([2, 0]).size.toarray(), size[[2, 0]])
    assert totals.pooled().size.toarray().ravel().tolist() == size.sum(axis=1).tolist()
    assert totals.pooled().low.tolist() == [totals.low.sum(axis=0).tolist()]


def test_the_totals_of_rows_count_as_those_of_their_points():
    rng = np.random.default_rng(0)
    totals = parse_totals({"n": {"a": 3, "b": (1, 4)}, "s": {"a": 0.5}}, ["a", "b", "c"], 20, ["n", "s"] * 10)
    point_of = rng.integers(0, 7, 20)
    points = totals.of_points(point_of, 7)
    for _ in range(20):
        label = rng.integers(0, 3, 7)
        assert np.array_equal(points.counts(label), totals.count(label[point_of]))
        assert points.missed(label) == totals.total_deviation(totals.count(label[point_of]))


def test_many_groups_are_no_table():
    """20 000 groups and points would be 3.2 GB as a table."""
    n = 20_000
    totals = PointTotals.from_parts(np.arange(n), np.arange(n), n, np.tile([0, 1], (n, 1)), np.tile([0, 1], (n, 1)))
    labels = np.arange(n) % 2
    assert totals.missed(labels) == n // 2
    assert totals.missed_along(labels, np.arange(0, n, 2), np.ones(n // 2, dtype=int))[-1] == 0
    assert totals.unreachable == 0


def test_shapes_and_sizes_are_checked():
    with pytest.raises(InvalidInputError, match=r"\(3, 2\), \(1, 2\), \(1, 2\)"):
        PointTotals(np.ones((3, 2)), [[1, 1]], [[1, 1]])
    with pytest.raises(InvalidInputError, match="whole numbers"):
        PointTotals([[0.5]], [[1, 1]], [[1, 1]])
    with pytest.raises(InvalidInputError, match="none below 0"):
        PointTotals([[-1]], [[1, 1]], [[1, 1]])


def test_the_deviation_of_several_groups_and_stacks():
    low = np.array([[1, 1], [0, 2]])
    counts = np.array([[[2, 0], [1, 1]], [[1, 1], [0, 2]]])
    assert class_deviations(counts, low, low).tolist() == [[1, 1], [0, 0]]
