"""Ordinal columns: every cut is a split of the table, and all splits that are promised are cuts."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from treewright.splits.ordinal import OrdinalColumns
from treewright.splits.points import Points


def mixed_table(seed: int, n: int = 14) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two numbers and two categories, one of many levels, with gaps in all but the first."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, 5, (n, 2)) / 3.0, rng.integers(0, 3, n), rng.integers(0, 9, n)]).astype(float)
    X[:, 1:][rng.random((n, 3)) < 0.2] = np.nan
    return X, rng.integers(0, 3, n), np.array([0, 0, 3, 9])


@pytest.mark.parametrize("seed", range(4))
def test_a_rule_sends_points_where_the_cut_does(seed):
    X, y, n_levels = mixed_table(seed)
    columns, points, everyone = (
        OrdinalColumns.of(X, y, np.ones(len(X)), 3, n_levels),
        Points(X, n_levels),
        np.arange(14),
    )
    for column in range(len(columns.rank)):
        ranks = np.unique(columns.rank[column])
        assert ranks.tolist() == list(range(columns.n_ranks[column])) and len(ranks) > 1
        for cut in range(-1, len(ranks)):
            left = columns.rank[column] <= cut
            assert np.array_equal(points.sides(everyone, columns.rule(column, cut)), left)


@pytest.mark.parametrize("seed", range(4))
def test_thresholds_and_subsets_of_few_levels_are_all_cuts(seed):
    X, y, n_levels = mixed_table(seed)
    columns = OrdinalColumns.of(X, y, np.ones(len(X)), 3, n_levels)
    cuts = {(columns.rank[k] <= cut).tobytes() for k in range(len(columns.rank)) for cut in range(columns.n_ranks[k])}
    cuts |= {(~np.frombuffer(cut, dtype=bool)).tobytes() for cut in cuts}
    number, gone = X[:, 1], np.isnan(X[:, 1])
    for value in number[~gone]:
        for side in (False, True):
            assert np.where(gone, side, number <= value).tobytes() in cuts
    assert not gone.any() or gone.tobytes() in cuts
    level = np.where(np.isnan(X[:, 2]), 3, X[:, 2])
    for size in (1, 2, 3):
        for chosen in combinations(range(4), size):
            assert np.isin(level, chosen).tobytes() in cuts
    many = np.where(np.isnan(X[:, 3]), 9, X[:, 3])
    assert all((many == one).tobytes() in cuts for one in np.unique(many))


def test_a_threshold_lies_between_neighbours_in_floating_point():
    one = np.nextafter(1.0, 2.0)
    X = np.array([[1.0], [one], [-1e308], [1e308]])
    columns, points = OrdinalColumns.of(X, np.arange(4) % 2, np.ones(4), 2), Points(X)
    for cut in range(3):
        left = points.sides(np.arange(4), columns.rule(0, cut))
        assert np.array_equal(left, columns.rank[0] <= cut)


def test_levels_are_ordered_by_their_share_of_a_class():
    """Of two classes and one split the best subset of many levels is a cut of that order: here, all even levels."""
    code = np.repeat(np.arange(8.0), 3)
    y = (code % 2 == 0).astype(int)
    columns = OrdinalColumns.of(code[:, None], y, np.ones(24), 2, np.array([8]))
    assert np.array_equal(columns.rank[0] > 3, y == 1)


def test_the_nearest_cut_of_a_hyperplane_moves_the_fewest_rows():
    rng = np.random.default_rng(0)
    X, inside = rng.random((30, 3)), np.arange(5, 30)
    columns, size = OrdinalColumns.of(X, np.zeros(30, int), np.ones(30), 2), rng.integers(1, 4, 25).astype(float)
    goes_left = X[inside] @ [1.0, 0.5, -0.2] <= 0.6
    found = columns.nearest(inside, goes_left, size)
    moved = [
        size[((X[inside, j] <= value) != goes_left) ^ turned].sum()
        for j in range(3)
        for value in X[:, j]
        for turned in (False, True)
    ]
    assert found.missed == min(moved)
    assert found.missed == size[((columns.rank[found.column, inside] <= found.cut) != goes_left) ^ found.mirrored].sum()
