"""How likely the classes are in the leaves of a tree that knows totals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from treewright.core.arrays import FloatArray
from treewright.core.budget import Budget
from treewright.data import Problem, Sample
from treewright.engine.leaf_probabilities import smoothed_probabilities, taught_tree
from treewright.teachers.given import GivenTeacher, TableTeacher
from treewright.totals.division import class_shifts
from treewright.totals.shift import Margin, rake, shifted
from treewright.tree import Tree, route

__all__ = ["likely_trees"]

_LEAST = 1e-6
"""Least share of a class, of which there are logarithms."""

_GRACE = 0.5
"""Seconds for shifts at least, also where the time is over."""


def likely_trees(
    problem: Problem,
    trees: Sequence[Tree],
    scores: FloatArray | None,
    given_teacher: GivenTeacher | None,
    budget: Budget,
) -> list[Tree]:
    """S2OCT trees with probabilities that sum to the totals over the unlabelled rows, which must be some.

    A row has what the teacher says of it, or without one what the labelled rows of its leaf say. The classes are as
    frequent as among the labels, as far as the totals do not say otherwise; a leaf has the mean of its unlabelled rows.
    A teacher who gave labels or probabilities is taken at his word. With totals the class of a leaf need not be its
    most likely one.

    Parameters
    ----------
    problem : Problem
        Rows, labels and totals.
    trees : sequence of Tree
        The trees, in the units of the data.
    scores : ndarray of shape (n_unlabelled, n_classes), or None
        Logarithms of unnormalized probabilities of the unlabelled rows, by the teacher; None without one.
    given_teacher : GivenTeacher or None
        Who the teacher is; None for the one that is made of the rows.
    budget : Budget
        Time that is left.
    """
    hidden = problem.X[problem.unlabelled]
    rows = Sample.of(hidden, np.full(len(hidden), -1), np.ones(len(hidden)))
    if isinstance(given_teacher, TableTeacher) and scores is not None:
        given = np.maximum(given_teacher.table[problem.unlabelled], 0.0)
        total = given.sum(axis=1, keepdims=True)
        said = np.where(total > 0, given / np.where(total > 0, total, 1.0), 1.0 / problem.n_classes)
        return [taught_tree(tree, rows, said, judged=False) for tree in trees]
    time = budget if budget.remaining > _GRACE and not budget.interrupted else Budget(_GRACE)
    likely = None if scores is None else _within(problem, scores, time)
    found = []
    for tree in trees:
        own = likely
        if own is None:
            seen = smoothed_probabilities(tree, problem.X, problem.y, problem.weight)
            own = _within(problem, np.log(np.maximum(seen[route(tree, hidden)], _LEAST)), time)
        found.append(taught_tree(tree, rows, own, judged=False, agree=problem.totals is None))
    return found


def _within(problem: Problem, scores: FloatArray, time: Budget) -> FloatArray:
    """Probabilities of the unlabelled rows, shifted to the shares of the classes among the labels, then to totals."""
    n, k = scores.shape
    counts = np.bincount(problem.y_labelled, problem.weight_labelled, k)
    usual = (counts / counts.sum() * problem.n_labelled + 1.0) / (problem.n_labelled + k) * n
    every = Margin(np.zeros(n, dtype=np.int64), usual[None], usual[None])
    scores = scores + rake(scores, [every], time)[0][0]
    if problem.totals is not None:
        scores = scores + class_shifts(scores, problem.totals, time)[1]
    return shifted(scores, np.zeros(k))
