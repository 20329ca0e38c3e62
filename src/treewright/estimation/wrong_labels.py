"""Wrong labels found by a committee of trees, as a step before any classifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from treewright.core.arrays import BoolArray, FloatArray
from treewright.core.budget import Budget
from treewright.data import Merge, Sample, Scale, Weighted, reduced, unit_scaling
from treewright.data.columns_checked import refuse_dates, refuse_repeated_names, show
from treewright.data.mixed import refuse_text
from treewright.estimators.loops import MACHINES, have_compiled
from treewright.estimators.model import Given, derived_seed, drawn_seed, thread_count
from treewright.estimators.problems import FIT_TO_OTHERS, supervised_problem
from treewright.exceptions import InvalidInputError, warn_user

__all__ = ["WrongLabels", "find_wrong_labels"]


@dataclass(frozen=True, eq=False)
class WrongLabels:
    """What a committee of trees says of labels.

    Attributes
    ----------
    wrong : ndarray of bool, shape (n_samples,)
        Rows whose labels are held for wrong.
    suspicion : ndarray of shape (n_samples,)
        Log-odds of the most probable other label against the given one; NaN for rows of weight 0.
    suggested : ndarray of shape (n_samples,)
        The label that each row should have: its own, where that is believed.
    probability : ndarray of shape (n_samples, n_classes)
        Of the classes, by trees that did not see the row; NaN for rows of weight 0.
    classes : ndarray
        The labels.
    random_state : int
        The seed: the one that was given, or what was drawn from it; given instead, it finds the same.
    """

    wrong: BoolArray
    suspicion: FloatArray
    suggested: np.ndarray
    probability: FloatArray
    classes: np.ndarray
    random_state: int = 0

    def __repr__(self) -> str:
        return f"WrongLabels({np.count_nonzero(self.wrong)} of {len(self.wrong)} labels held for wrong)"


def find_wrong_labels(
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    n_estimators: int = 60,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> WrongLabels:
    """Find the rows whose labels are probably wrong, before any classifier is fitted to them.

    Trees of four kinds are fitted to parts of the rows: maximum-margin trees with relabelling on all features and on
    half of them, and extremely randomized trees. Each row is judged by those that did not see it.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows of numbers.
    y : array-like of shape (n_samples,)
        Labels, of which some may be wrong; at least five different rows of each.
    sample_weight : array-like of shape (n_samples,) or None
        Weights of the rows; 0 leaves a row out.
    n_estimators : int, default=60
        Rounds of the committee, in each of which a tree of each kind joins; at least 5.
    time_limit : float or None
        Seconds; what was said by then counts.
    n_jobs : int or None
        Threads: None for one, -1 for all cores. The result does not depend on it.
    random_state : int, RandomState or None
        Seed of all that is random.

    Returns
    -------
    WrongLabels
        Which labels are wrong, what they should be, and how much speaks for that.

    Examples
    --------
    A step before another classifier:

    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from treewright import find_wrong_labels
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(120, 3))
    >>> truth = (X[:, 0] + X[:, 1] > 0).astype(int)
    >>> y = np.where(np.arange(120) < 24, 1 - truth, truth)  # twenty-four wrong labels
    >>> found = find_wrong_labels(X, y, n_estimators=20, random_state=0)
    >>> found.wrong[:24].mean() > 0.7, found.wrong[24:].mean() < 0.2
    (np.True_, np.True_)
    >>> model = LogisticRegression().fit(X[~found.wrong], y[~found.wrong])  # or X, found.suggested
    """
    from treewright.models.octsvm.committee import FEWEST, find_suspects, short_committee
    from treewright.optimize.conduct import Conduct

    if isinstance(n_estimators, bool) or not isinstance(n_estimators, int | np.integer) or n_estimators < 5:
        raise InvalidInputError(f"n_estimators={n_estimators!r}; expected a whole number from 5 on")
    budget = Budget(time_limit)
    if time_limit is not None and not time_limit > 0:
        raise InvalidInputError(f"time_limit={time_limit!r}; expected seconds above 0, or None")
    refuse_dates(X, "X")
    refuse_repeated_names(X)
    refuse_text(X, "text for numbers")
    problem = supervised_problem(
        Given(check_array(X, dtype=np.float64, input_name="X"), y, sample_weight), remedy=FIT_TO_OTHERS
    )
    reduction = reduced(Sample.of(problem.X, problem.y, problem.weight), Weighted(), Scale(unit_scaling), Merge())
    points = reduction.points
    assert points.y is not None
    counts = np.bincount(points.y, minlength=problem.n_classes)
    if counts.min() < FEWEST:
        label = problem.classes[int(counts.argmin())]
        raise InvalidInputError(
            f"class {show(label)} has {counts.min()} different rows, at least {FEWEST} are needed: give more, or leave "
            "the class out"
        )
    seed = drawn_seed(random_state)
    conduct = Conduct(thread_count(n_jobs), derived_seed(seed))
    X_points = np.ascontiguousarray(points.X, dtype=np.float64)
    have_compiled(MACHINES, budget)
    with budget.stop_on_interrupt():
        found = find_suspects(X_points, points.y, points.weight, problem.n_classes, int(n_estimators), conduct, budget)
    if found is None:
        raise InvalidInputError("time_limit is too short for the committee to judge every row; give more")
    if found.n_rounds < n_estimators:
        warn_user(short_committee(found.n_rounds, int(n_estimators)))
    kept = np.asarray(reduction.invert(np.ones(len(points), dtype=bool), left_out=False))
    suggested = np.where(kept, reduction.invert(found.suggested), problem.y)
    return WrongLabels(
        np.asarray(reduction.invert(found.relabeled, left_out=False)),
        np.asarray(reduction.invert(found.suspicion, left_out=np.nan)),
        problem.classes[suggested],
        np.asarray(reduction.invert(found.probability, left_out=np.nan)),
        problem.classes,
        seed,
    )
