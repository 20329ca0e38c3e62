"""Gaps between points against brute force."""

import tracemalloc

import numpy as np
from tests.examples import looped

from treewright.models.oct_h.gaps import inseparable_groups


@looped("seed", range(6))
def test_groups_are_the_chains_of_near_points(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 12, (40, 2)) * 0.01
    group = inseparable_groups(X, 0.0101)
    reach = np.abs(X[:, None] - X[None]).max(axis=2) < 0.0101
    for _ in range(6):
        reach = (reach.astype(int) @ reach.astype(int)) > 0
    assert np.array_equal(group[:, None] == group[None], reach)
    assert group[0] == 0
    weaker = inseparable_groups(X, 0.0101, max_pairs=10)
    together = weaker[:, None] == weaker[None]
    assert np.all(together <= reach)
    assert np.all(together[np.all(X[:, None] == X[None], axis=2)])
    assert together.sum() > len(np.unique(X, axis=0))  # more than identical points


def test_groups_stop_short_of_the_gap():
    X = np.array([[0.0], [0.25], [0.5 - 1e-9]])
    assert inseparable_groups(X, 0.25).tolist() == [0, 1, 1]


def test_many_near_points_are_grouped_in_little_memory():
    """All pairs of these would be 50 million; blocks and cells need a few megabytes."""
    rng = np.random.default_rng(0)
    X = np.abs(rng.standard_cauchy((10_000, 3)))
    X /= X.max(axis=0)
    tracemalloc.start()
    group = inseparable_groups(X, 0.005)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6
    assert group.max() < 1000
    for k in np.unique(group)[:50]:  # chains have no jump in any coordinate
        inside = np.sort(X[group == k], axis=0)
        assert np.all(np.diff(inside, axis=0) < 0.005)
