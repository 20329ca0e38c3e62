"""Subsets of levels against all subsets."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treewright.exceptions import InvalidInputError
from treewright.splits.categories import best_subset


def table(seed, whole=True):
    """Few levels, some of them empty or missing, and points that stand for several rows."""
    rng = np.random.default_rng(seed)
    n, levels = int(rng.integers(1, 14)), int(rng.integers(1, 6))
    codes = rng.integers(-1, levels, n)
    size = rng.integers(1, 4, n)
    draw = (lambda: rng.integers(0, 5, n).astype(float)) if whole else (lambda: rng.random(n))
    return rng, codes, levels, size, draw


def all_sides(codes, levels, size, least):
    """Every split of the levels, missing values included, with enough rows on both sides: who goes left."""
    for choice in product([False, True], repeat=levels + 1):
        left = np.array(choice)[codes]  # the last one is for missing values, code -1
        if min(size[left].sum(), size[~left].sum()) >= least:
            yield left


def sides_of(found, codes):
    return np.append(found.left, found.missing_left)[codes]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 8), st.booleans())
def test_the_cheapest_subset_is_the_best_of_all(seed, least, sized):
    _, codes, levels, size, draw = table(seed)
    left, right = draw(), draw()
    size = size if sized else np.ones(len(codes), dtype=int)
    found = best_subset(codes, levels, left, right, least, size if sized else None)
    best = min((left[s].sum() + right[~s].sum() for s in all_sides(codes, levels, size, least)), default=np.inf)
    assert found.cost == best
    if np.isfinite(best):
        s = sides_of(found, codes)
        assert left[s].sum() + right[~s].sum() == best
        assert min(size[s].sum(), size[~s].sum()) >= least


def test_missing_values_go_to_the_side_that_is_better_for_them():
    codes = np.array([0, 0, 1, 1, -1, -1])
    for wish in (True, False):
        goes_left = np.array([True, True, False, False, wish, wish])
        found = best_subset(codes, 2, (~goes_left).astype(float), goes_left.astype(float))
        assert found.left.tolist() == [True, False] and found.missing_left is wish and found.cost == 0.0


def test_what_no_point_has_goes_with_the_heavier_side():
    stake = np.array([1.0, -1.0, -1.0])
    found = best_subset(np.array([0, 1, 1]), 3, np.maximum(stake, 0), np.maximum(-stake, 0))
    assert found.left.tolist() == [False, True, True] and found.missing_left is True
    found = best_subset(np.array([0, 0, 1]), 3, np.array([1.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0]))
    assert found.left.tolist() == [False, True, False] and found.missing_left is False


def test_many_levels_and_rows():
    rng = np.random.default_rng(0)
    n, levels, least = 20_000, 200, 9_000
    codes, stake = rng.integers(-1, levels, n), rng.normal(size=n) + 0.5
    found = best_subset(codes, levels, np.maximum(stake, 0), np.maximum(-stake, 0), least)
    s = sides_of(found, codes)
    assert min(s.sum(), (~s).sum()) >= least
    free = best_subset(codes, levels, np.maximum(stake, 0), np.maximum(-stake, 0))
    # The relaxation in which a level may be cut is a bound that so many small levels nearly reach.
    short = least - int(sides_of(free, codes).sum())
    extra = np.array([abs(stake[codes == k].sum()) for k in range(-1, levels)])
    rows = np.array([(codes == k).sum() for k in range(-1, levels)])
    stays = np.append(free.left, free.missing_left)[np.arange(-1, levels)]
    order = np.argsort((extra / rows)[~stays])
    taken = np.minimum(
        np.maximum(short - (np.cumsum(rows[~stays][order]) - rows[~stays][order]), 0), rows[~stays][order]
    )
    bound = free.cost + ((extra / rows)[~stays][order] * taken).sum()
    assert bound - 1e-6 <= found.cost <= bound + extra.max()


def test_bad_levels_and_sizes_are_refused():
    with pytest.raises(InvalidInputError, match="levels"):
        best_subset(np.array([0, 3]), 3, np.zeros(2), np.zeros(2))
    with pytest.raises(InvalidInputError, match="levels"):
        best_subset(np.array([0, -2]), 3, np.zeros(2), np.zeros(2))
    with pytest.raises(InvalidInputError, match="whole"):
        best_subset(np.array([0, 1]), 2, np.ones(2), np.zeros(2), 1, np.array([0.5, 1.5]))
