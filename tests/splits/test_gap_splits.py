"""Splits with a gap between their sides against all splits there are."""

import numpy as np
import pytest

from treewright.core.budget import Budget
from treewright.splits.gap_splits import GapPoints, best_stump


@pytest.mark.parametrize("seed", range(3))
def test_a_stump_takes_the_best_labels_of_many_classes(seed):
    """Fifteen classes on a line: of all thresholds and pairs of labels the best, whichever classes are heaviest."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(15), rng.integers(1, 4, 15)))
    X, weight = np.arange(len(y), dtype=float)[:, None] / len(y), rng.integers(1, 4, len(y)).astype(float)
    split = best_stump(GapPoints(X, y, weight, 15), Budget())
    best = min(
        sum(w.sum() - np.bincount(k, w).max() for k, w in ((y[:cut], weight[:cut]), (y[cut:], weight[cut:])))
        for cut in range(1, len(y))
    )
    assert split.cost == pytest.approx(best)
