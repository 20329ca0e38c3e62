"""Trees of one feature a split that keep most of what was taught, at prices of classes that lead to the totals.

The best tree for labelled and taught points is found exactly (:mod:`treewright.models.oct`). It rarely has as many rows
in each class as the teacher, so points of a class that comes too short in their group weigh more next time, and those
of a class that has too many weigh less.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.models.oct.search import exact_oct_tree
from treewright.models.s2oct.search.data import Survey
from treewright.tree import Tree, predict_labels

__all__ = ["OWN", "priced_trees"]

_STEP, _CALMER = 0.5, 0.6
"""First change of the logarithm of a price, and by what changes are multiplied where one turns back."""
OWN = 10.0
"""Weight of a labelled point, of a taught one 1."""


def priced_trees(survey: Survey, taught: IntArray, seed: int, budget: Budget) -> Iterator[Tree]:
    """S2OCT trees with fewer and fewer rows off the totals, more or less; the last one if it meets them.

    Parameters
    ----------
    survey, taught, seed, budget
        See :mod:`treewright.models.s2oct.search`; the first tree comes whatever the budget.
    """
    model, totals, search, rng = survey.model, survey.totals, survey.search, np.random.default_rng(seed)
    known, hidden = survey.sample(rng), np.arange(len(taught))
    if len(hidden) > search.priced_points:
        hidden = np.sort(rng.choice(hidden, search.priced_points, replace=False))
    X = np.vstack([survey.X[known], survey.hidden[hidden]])
    y = np.concatenate([survey.y[known], taught[hidden]])
    own = OWN * survey.weight[known] / survey.weight[known].mean()
    rows = totals.rows[hidden] / totals.rows[hidden].mean() if len(hidden) else np.zeros(0)
    cell = totals.largest_group[hidden], taught[hidden]
    price, step = np.zeros(totals.low.shape), np.full(totals.low.shape, _STEP)
    last = np.zeros(totals.low.shape)
    for number in range(search.priced_rounds):
        time = budget.share(1.0 / (search.priced_rounds - number))
        weight = np.concatenate([own, rows * np.exp(price[cell])])
        tree = exact_oct_tree(X, y, weight, model.n_classes, model.depth, time)
        yield tree
        off = _off(survey, tree)
        if budget.over or not off.any():
            return
        step = np.where(last * off < 0, step * _CALMER, step)
        price, last = price - step * off, off


def _off(survey: Survey, tree: Tree) -> FloatArray:
    """1 where a group has too many rows of a class, -1 where it has too few."""
    counts = survey.totals.counts(predict_labels(tree, survey.hidden))
    return np.sign(survey.totals.excess(counts) - survey.totals.lack(counts)).astype(np.float64)
