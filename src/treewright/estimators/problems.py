"""From what a fit was given to a checked problem, whether every row is to have a label or not."""

from __future__ import annotations

from typing import Any

import numpy as np

from treewright.core.arrays import IntArray
from treewright.data import Problem, make_problem
from treewright.data.marks import warn_of_marks
from treewright.data.spelling import alike, alike_words
from treewright.estimators.model import Given
from treewright.exceptions import AlikeNamesWarning, InvalidInputError, warn_user

__all__ = ["FIT_TO_OTHERS", "semi_supervised_problem", "supervised_problem"]

FIT_TO_OTHERS = "give the others alone, X[{y}] and y[{y}]"
"""What to do with rows without a label, where every row needs one."""
_USED_BY_OTHERS = (
    f"{FIT_TO_OTHERS}, or take a model that learns from all rows: TAOClassifier(teacher='auto'), S2OCTClassifier"
)


def supervised_problem(
    given: Given, n_levels: IntArray | None = None, *, unlabeled: Any = -1, remedy: str = _USED_BY_OTHERS
) -> Problem:
    """Make the problem of an estimator's fit to labels alone; warn of labels that look like marks or one another.

    Parameters
    ----------
    given : Given
        What the fit was given.
    n_levels : ndarray of int or None
        As :func:`treewright.data.make_problem` takes it.
    unlabeled : label
        The mark that was named, if the estimator has one for other fits.
    remedy : str
        What to do if rows have no label, as :func:`treewright.data.marks.mark_words` takes it.
    """
    problem = make_problem(given.X, given.y, given.sample_weight, n_levels=n_levels)
    warn_of_marks(problem.classes, problem.y, remedy, unlabeled)
    _warn_of_alike(problem)
    return problem


def semi_supervised_problem(given: Given, unlabeled: Any) -> Problem:
    """Make the problem of an estimator's fit to rows with and without a label."""
    rows = given.without_features().X if given.handed else given.X
    y, weight, totals, groups = given.y, given.sample_weight, given.totals, given.groups
    try:
        problem = make_problem(
            rows,
            y,
            weight,
            supervised=False,
            unlabeled=unlabeled,
            totals=totals,
            groups=groups,
            rules=given.rules,
            empty_weights=given.rules is not None,
        )
    except InvalidInputError:
        # Labels -1 and 1, a habit as old as the mark: with nothing else labelled, -1 can only be a label.
        labels = np.asarray(y)
        if totals is not None or groups is not None or labels.dtype.kind not in "if" or len(np.unique(labels)) != 2:
            raise
        if unlabeled not in np.unique(labels):
            raise
        warn_user(
            f"all rows but those marked {unlabeled!r} have one label, so {unlabeled!r} is taken for a label. "
            "Set unlabeled to another value to say so; if these rows are unlabelled, label some of another class."
        )
        return make_problem(rows, y, weight, supervised=True)
    warn_of_marks(problem.classes, problem.y, "set unlabeled to it, or put None in its place", unlabeled)
    _warn_of_alike(problem)
    return problem


def _warn_of_alike(problem: Problem) -> None:
    """Warn of classes whose names differ in capitals, blanks or marks on letters alone."""
    if problem.classes.dtype.kind != "U":
        return
    rows = np.bincount(problem.y_labelled, minlength=problem.n_classes).tolist()
    found = alike(dict(zip(problem.classes.tolist(), rows, strict=True)))
    if found:
        warn_user(
            f"y has the classes {alike_words(found)}, which are written alike and are different classes here; if they "
            "are one, write them in one way",
            AlikeNamesWarning,
        )
