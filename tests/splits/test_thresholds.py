"""Cuts along directions against enumeration."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from tests.examples import looped

from treewright.core.budget import Budget
from treewright.splits import thresholds
from treewright.splits.points import Points
from treewright.splits.thresholds import Cuts, best_feature, best_labels_threshold, best_threshold, halving_threshold

points = st.integers(1, 9).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 5), min_size=n, max_size=n),
        st.lists(st.integers(0, 3), min_size=n, max_size=n),
        st.lists(st.integers(0, 3), min_size=n, max_size=n),
        st.sampled_from([0.0, 0.5, 1.0, 2.5]),
        st.integers(0, 3),
    )
)


def sides(level, gap, least, size):
    """Every allowed way to cut, as masks of the left side."""
    for cut in [-10.0, *(np.unique(level) + 1e-3)]:
        left = level <= cut
        low, high = level[left], level[~left]
        if min(size[left].sum(), size[~left].sum()) < least:
            continue
        if len(low) and len(high) and high.min() - low.max() < gap:
            continue
        yield left


def label_error(table, left):
    return sum(table[s].sum() - table[s].sum(axis=0).max() for s in (left, ~left))


@settings(max_examples=60, deadline=None)
@given(points, st.booleans())
def test_threshold_is_the_best_of_all(data, sized):
    level, left, right, gap, least = (np.array(v, dtype=float) for v in data)
    size = 1.0 + (np.arange(len(level)) % 3 if sized else np.zeros(len(level)))
    threshold, cost = best_threshold(level, left, right, float(gap), int(least), size if sized else None)
    best = min((left[s].sum() + right[~s].sum() for s in sides(level, gap, least, size)), default=np.inf)
    assert cost == best
    if np.isfinite(best):
        assert left[level <= threshold].sum() + right[level > threshold].sum() == best


@settings(max_examples=60, deadline=None)
@given(points, st.booleans())
def test_threshold_with_the_best_labels_is_the_best_of_all(data, sized):
    level, y, weight, gap, least = (np.array(v, dtype=float) for v in data)
    size = 1.0 + (np.arange(len(level)) % 3 if sized else np.zeros(len(level)))
    table = weight[:, None] * np.eye(4)[y.astype(int)]
    threshold, cost = best_labels_threshold(level, table, float(gap), int(least), size if sized else None)
    best = min((label_error(table, s) for s in sides(level, gap, least, size)), default=np.inf)
    assert cost == best
    if np.isfinite(best):
        assert label_error(table, level <= threshold) == best


def test_of_equal_thresholds_the_widest_gap_wins():
    level = np.array([0.0, 1.0, 4.0, 5.0])
    threshold, _ = best_threshold(level, np.array([0.0, 0, 0, 1]), np.array([1.0, 0, 0, 0]))
    assert threshold == 2.5


def test_between_neighbouring_floats_the_threshold_parts_them():
    for low, high in ((1.0, np.nextafter(1.0, 2.0)), (0.0, 5e-324), (-1e308, 1e308), (1.7e308, 1.79e308)):
        threshold, cost = best_threshold(np.array([low, high]), np.array([0.0, 1.0]), np.array([1.0, 0.0]))
        assert cost == 0.0 and low <= threshold < high


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 10**6),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0.0, 0.5, 1.5]),
    st.integers(0, 3),
    st.booleans(),
)
def test_the_best_feature_is_the_best_of_all_features_and_cuts(seed, labels, sized, gap, least, compressed):
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(1, 8)), int(rng.integers(1, 6))
    X = rng.integers(0, 4, (n, p)).astype(float)
    size = rng.integers(1, 3, n).astype(float) if sized else np.ones(n)
    left, right = rng.integers(0, 4, (2, n)).astype(float)
    table = left[:, None] * np.eye(3)[rng.integers(0, 3, n)]
    rows = rng.permutation(n)[: max(1, n - 1)]
    given_points = Points(sparse.csr_array(X) if compressed else X)
    part, size = X[rows], size[rows]

    def cost_of(side):
        return label_error(table[rows], side) if labels else left[rows][side].sum() + right[rows][~side].sum()

    def costs(cuts):
        return cuts.labelled(table[rows]) if labels else cuts.sided(left[rows], right[rows])

    feature, threshold, cost = best_feature(given_points, rows, costs, gap, least, size if sized else None)
    each = [min((cost_of(s) for s in sides(part[:, j], gap, least, size)), default=np.inf) for j in range(p)]
    assert cost == min(each)
    assert feature == int(np.argmin(each))
    if np.isfinite(cost):
        assert cost_of(part[:, feature] <= threshold) == cost


@pytest.mark.parametrize("cells", [1, 30, 90, 10**6])
def test_blocks_of_features_do_not_change_the_best(cells, monkeypatch):
    rng = np.random.default_rng(0)
    X, stake = rng.random((30, 7)), rng.normal(size=30)
    monkeypatch.setattr(thresholds, "_CELLS", cells)
    feature, threshold, cost = best_feature(Points(X), np.arange(30), lambda cuts: cuts.left(stake))
    each = [best_threshold(X[:, j], stake, np.zeros(30)) for j in range(7)]
    assert (threshold, cost) == each[feature]
    assert cost == min(c for _, c in each)


def test_without_time_some_features_are_looked_at(monkeypatch):
    monkeypatch.setattr(thresholds, "_CELLS", 1)
    X = np.array([[0.0, 0.0], [0.0, 1.0]])
    found = best_feature(Points(X), np.arange(2), lambda cuts: cuts.left(np.array([1.0, -2.0])), budget=Budget(0.0))
    assert found == (0, np.inf, -1.0)


@pytest.mark.parametrize("seed", range(5))
def test_the_halving_threshold_is_the_best_of_all_gaps(seed):
    rng = np.random.default_rng(seed)
    level, weight = rng.integers(0, 9, 30) / 8.0, rng.random(30)
    threshold = halving_threshold(level, weight)
    places = np.unique(level)
    apart = [abs(weight @ (level <= cut) - weight @ (level > cut)) for cut in (places[1:] + places[:-1]) / 2]
    assert abs(weight @ (level <= threshold) - weight @ (level > threshold)) == pytest.approx(min(apart))
    assert np.abs(level - threshold).min() > 0.01  # not on a point


def test_points_at_one_place_stay_together():
    assert halving_threshold(np.full(4, 2.0), np.ones(4)) == 3.0


@settings(max_examples=30, deadline=None)
@given(points, st.floats(-1, 6), st.booleans())
def test_the_nearest_cut_moves_the_fewest_rows(data, wish, sized):
    level, size, _, gap, _ = (np.array(v, dtype=float) for v in data)
    size = size + 1.0 if sized else np.ones(len(level))
    cuts = Cuts(level)
    k = cuts.nearest(wish, float(gap), size if sized else None)
    before = size[level <= wish].sum()
    fewest = min(abs(size[s].sum() - before) for s in sides(level, gap, 0, size))
    low, high = cuts.ends(k)
    assert high - low >= gap
    assert abs(size[level <= low].sum() - before) == fewest
    assert (k, low, high) == (len(level[level <= low]), *ends_of(level, k))


def ends_of(level, k):
    ordered = [-np.inf, *np.sort(level), np.inf]
    return ordered[k], ordered[k + 1]


@looped("seed", range(20))
def test_the_nearest_gap_changes_the_sides_of_the_fewest_rows(seed):
    rng = np.random.default_rng(seed)
    level, size = rng.integers(0, 20, 8) / 2.0, rng.integers(1, 4, 8).astype(float)
    wish, width = float(rng.integers(0, 20)), 1.5
    cuts = Cuts(level)
    low, high = cuts.ends(cuts.nearest(wish, width, size))
    assert high - low >= width
    left = level <= wish

    def price(threshold):
        changed = (level <= threshold) != left
        return size[changed].sum(), int(changed.sum())

    # Every gap that is wide enough, by a threshold inside it.
    lows, highs = [-5.0, *sorted(level)], [*sorted(level), 50.0]
    inside = [low + 0.5 for low, high in zip(lows, highs, strict=True) if high - low >= width]
    assert price(max(low, -5.0) + 0.5) == min(map(price, inside))


def test_thresholds_of_all_cuts_are_those_of_each():
    cuts = Cuts(np.array([3.0, 1.0, 1.0, 8.0]))
    assert cuts.thresholds().tolist() == [cuts.threshold(k) for k in range(5)] == [-np.inf, 1.0, 2.0, 5.5, np.inf]
    assert cuts.thresholds(beyond=2.0)[[0, -1]].tolist() == [-1.0, 10.0]


def test_one_cut_of_no_points():
    cuts = Cuts(np.zeros(0))
    assert cuts.nearest(3.0, 1.0) == 0 and cuts.ends(0) == (-np.inf, np.inf)
