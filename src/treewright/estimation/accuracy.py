"""How accurate the labels of the unlabelled rows are likely to be, from labels left out."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import check_random_state

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.core.progress import note, stage
from treewright.data import Problem, TotalsRules, make_problem
from treewright.data.columns_checked import refuse_lazy
from treewright.data.folds import Twins, label_folds
from treewright.data.margins import split_margins, telling_margins
from treewright.data.rows import is_frame, row_numbers, taken_rows
from treewright.data.totals import drawn_rows
from treewright.estimators.model import Given, drawn_seed
from treewright.estimators.totals_model import PricedModel, TotalsModel
from treewright.exceptions import InvalidInputError
from treewright.teachers.record import TeacherRecord

__all__ = ["AccuracyEstimate", "estimated_accuracy"]

_CELL = 20
"""Labels that a class needs in a group to be counted there by itself."""
_LEAST_PARTS, _FEW_PARTS, _FEW_LABELS = 2, 3, 100
"""Parts that are left out however short the time is; so many more where these have fewer labels."""


class AccuracyEstimate(NamedTuple):
    """An estimate of the share of unlabelled rows whose label is right, with an interval."""

    value: float
    """The estimate."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end."""
    level: float
    """How often such intervals are to cover the truth."""
    n_labels: int
    """Labels that were left out, each once."""
    recall: dict[Any, float]
    """Share of the labels of each class that were found when they were left out, as weighted."""
    n_fits: int = 0
    """Parts in which labels were left out, each by a fit of its own."""
    n_splits: int = 0
    """Parts into which labels were divided: a fit learned from all but one of them."""
    n_known: int = 0
    """Labels that there are to be left out."""
    short: bool = False
    """Whether some of them were not, for want of time."""
    counts: dict[Any, tuple[int, int]] = {}
    """Labels of each class that were found, and that were left out."""
    shares: str = "totals"
    """What says how frequent classes are among the unlabelled rows: "totals", where these fix it; "found", the labels
    that were found for them, where totals leave some of it open; "given", the given labels, where there are no totals:
    then these are taken for a fair sample, and the estimate does not hold where response depends on the class."""


@dataclass(frozen=True)
class _Enough:
    """When to leave out no more parts."""

    labels: int
    budget: Budget

    def labels_reached(self, n_labels: int) -> bool:
        """Whether as many labels were left out as were asked for."""
        return n_labels >= self.labels

    def time_reached(self, n_parts: int, n_labels: int) -> bool:
        """Whether another part would be over time. The least that says something is left out in any time."""
        if n_parts < _LEAST_PARTS or (n_parts < _FEW_PARTS and n_labels < _FEW_LABELS):
            return False
        spent = self.budget.elapsed
        return self.budget.remaining < spent / n_parts


@dataclass(frozen=True)
class _Task:
    """What is fitted again and again: rows, marks, and totals of those unlabelled rows that are used."""

    model: Any
    X: Any
    y: np.ndarray
    weight: FloatArray | None
    totals: Any
    groups: list[Any] | None
    unlabelled: IntArray
    n_asked: int
    """Unlabelled rows of the model itself, which may be another one where it is asked for many."""
    members: list[str]
    """Classifiers of an automatic estimator, if some were not made because they are not needed: nor are they here."""
    seed: int | None
    """Seed of the fits, of a model that has none."""

    def found(self, rows: IntArray, held_out: IntArray) -> tuple[np.ndarray, np.ndarray]:
        """Labels of rows that were left out, and of the unlabelled ones, by a model that was fitted to `rows`."""
        used = np.concatenate([rows, self.unlabelled])
        model = clone(self.model)
        if self.members:
            model._members = self.members
        if not isinstance(self.totals, list) and getattr(model, "calibrate", False):
            model.calibrate = False  # which changes no label
        more: dict[str, Any] = {} if self.weight is None else {"sample_weight": self.weight[used]}
        if self.totals is not None:
            more |= {"totals": self.totals, "groups": self._groups(used)}
        rules = TotalsRules(allow_new_classes=True)
        model._fit(
            Given(taken_rows(self.X, used), self.y[used], **more, rules=rules, n_asked=self.n_asked, seed=self.seed)
        )
        by_group = self.groups is not None and isinstance(model, PricedModel)
        new = taken_rows(self.X, held_out)
        labels = model.predict(new, groups=self._groups(held_out)) if by_group else model.predict(new)
        return labels, model.transduction_[len(rows) :]

    def _groups(self, rows: IntArray) -> Any:
        if self.groups is None:
            return None
        columns = [None if column is None else np.asarray(column)[rows] for column in self.groups]
        return columns if len(columns) > 1 else columns[0]


def estimated_accuracy(
    model: Any,
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    totals: Any = None,
    groups: Any = None,
    *,
    totals_of: str = "unlabeled",
    allow_new_classes: bool = False,
    totals_tolerance: float = 0.0,
    n_splits: int = 10,
    level: float = 0.95,
    max_unlabeled: int = 20_000,
    max_labels: int | None = None,
    time_limit: float | None = None,
    n_asked: int = 0,
    random_state: Any = 0,
    progress: Callable[[int, int], None] | None = None,
) -> AccuracyEstimate:
    r"""Accuracy of the labels that a model with totals gives to unlabelled rows, estimated from labels left out.

    The labels are left out in turn, `n_splits` folds of them, and found by the model fitted to the others and to the
    totals. Copies of a labelled row are left out together with it, unless unlabelled rows have such twins too. A sample
    of labels is hardly ever a fair picture of the rows without: rare classes are sought out, easy cases come first. So
    each class counts by its total among the unlabelled rows instead of by its labels, in each group where it has enough
    labels:

    .. math:: \hat a = \sum_s \frac{m_s}{m} r_s

    with :math:`m_s` the unlabelled rows of a class (of a group), by the totals, and :math:`r_s` the share of its labels
    that were found when they were left out. The interval is Wilson's for as many fair labels as have the same variance.

    Parameters
    ----------
    model : TotalsClassifier, C2RFClassifier or S2OCTClassifier
        The model, fitted or not; it is cloned.
    X, y, sample_weight, totals, groups, totals_of, allow_new_classes, totals_tolerance
        As for ``fit``.
    n_splits : int, default=10
        Folds, and fits: each learns from the labels of all folds but one.
    level : float, default=0.95
        How often the interval is to cover the truth.
    max_unlabeled : int, default=20000
        Unlabelled rows that the fits are given, drawn in each group, with totals in proportion.
    max_labels : int or None, default=None
        Once so many labels have been left out, no further fold is; None for all of them.
    time_limit : float or None, default=None
        Seconds after which no further fold is left out; None for all of them. Two folds are in any time, or three if
        two have fewer than 100 labels. Fits learn from as many labels as ever, so that the estimate does not depend on
        the time; the interval is wider, as it rests on the labels that were left out.
    n_asked : int, default=0
        Unlabelled rows that the model labels, where those of X are a sample of them.
    random_state : int, RandomState or None, default=0
        Seed of the folds and of what is drawn.
    progress : callable or None
        Called after each fold with how many there have been and how many there are to be at most.

    Returns
    -------
    AccuracyEstimate
        Value, low, high, level, number of labels, recall by class; how many folds and labels there were.

    Notes
    -----
    What can be put right is a sample that is biased by class, and by group where totals are by group: within a class
    (of a group) labelled rows must be like unlabelled ones. Bias in other features is not seen: if only young people
    were asked, no weights of classes tell how the old are labelled; make a group of what the sample depends on.
    Without totals classes count by their labels: those who have one are taken for a fair sample of all. Where response
    depends on the class the estimate does not hold then, and is too high where frequent classes answer more often.
    Where totals leave classes open these count by the labels that are found (`shares` of the estimate says which).
    `sample_weight` counts within a class. Labels that are wrong count as errors. A class without any label counts as
    half right, give or take a half. The fits see fewer labels than the model does, so the estimate is a little low.

    A row whose features are those of a labelled row is easy. Of the labels a share :math:`p_l` has such a twin among
    the others, classes counted by their totals, of the unlabelled rows :math:`p_u`. They are about the same where rows
    are of few kinds. Where labelled rows were copied, :math:`p_l` is larger, and the share :math:`1 - p_u / p_l` of the
    labels with twins is left out together with them; these count as one label in the width of the interval.

    Classifiers that a fitted
    automatic model did without, as others are far better, are not tried again.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from treewright import TotalsClassifier, estimated_accuracy
    >>> rng = np.random.default_rng(0)
    >>> truth = (rng.random(2000) < 0.2).astype(int)
    >>> X = rng.normal(size=(2000, 2)) + 1.5 * truth[:, None]
    >>> known = rng.random(2000) < np.where(truth == 1, 0.3, 0.05)  # a sample that is biased
    >>> y = np.where(known, truth, -1)
    >>> totals = {1: int(truth[~known].sum())}
    >>> estimate = estimated_accuracy(TotalsClassifier(LogisticRegression()), X, y, totals=totals)
    >>> model = TotalsClassifier(LogisticRegression()).fit(X, y, totals=totals)
    >>> bool(estimate.low <= np.mean(model.transduction_[~known] == truth[~known]) <= estimate.high)
    True
    """
    budget = Budget(time_limit)
    for name, values in (("X", X), ("sample_weight", sample_weight), ("totals", totals)):
        refuse_lazy(values, name)
    _check(model, n_splits, level)
    rng = check_random_state(random_state)
    rules = TotalsRules(totals_of, allow_new_classes, totals_tolerance)
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)  # type: ignore[arg-type]
    problem = make_problem(
        np.zeros((n_rows, 1)),
        y,
        sample_weight,
        supervised=False,
        unlabeled=model.unlabeled,
        totals=totals,
        groups=groups,
        rules=rules,
        empty_weights=True,
    )
    problem, columns = _told(problem, totals, groups)
    task = _task(model, X, problem, sample_weight is not None, columns, max_unlabeled, n_asked, rng)
    labelled = np.flatnonzero(problem.labelled & (problem.weight > 0))
    n_splits = min(n_splits, int(np.bincount(problem.y[labelled]).max(initial=0)))
    n_known, enough = len(labelled), _Enough(min(max_labels or len(labelled), len(labelled)), budget)
    labelled, right, unit, found = _left_out(task, problem, labelled, n_splits, enough, rng, progress)
    strata, sizes = _strata(task, problem, labelled, None if task.totals is None else found)
    estimate = _estimate(problem, labelled, right, unit, strata, sizes, level)
    short = not enough.labels_reached(len(labelled))
    return estimate._replace(
        n_fits=len(found), n_splits=n_splits, n_known=n_known, short=short, shares=_known_shares(problem)
    )


def _check(model: Any, n_splits: int, level: float) -> None:
    if not isinstance(model, TotalsModel):
        raise InvalidInputError(
            f"{type(model).__name__} does not know totals; TotalsClassifier, C2RFClassifier and S2OCTClassifier do"
        )
    if getattr(model, "prefit", False):
        raise InvalidInputError("prefit=True: an ensemble that has seen all labels cannot be fitted without some")
    if n_splits < 2:
        raise InvalidInputError(f"n_splits is {n_splits}; expected 2 or more")
    if not 0 < level < 1:
        raise InvalidInputError(f"level is {level}; expected a number between 0 and 1")


def _told(problem: Problem, totals: Any, groups: Any) -> tuple[Problem, list[Any] | None]:
    """The problem with the margins that say something, and their columns of groups."""
    margins = problem.margins or (() if problem.totals is None else (problem.totals,))
    if not margins:
        return problem, None
    columns, kept = [column for _, column in split_margins(totals, groups)], telling_margins(margins)
    margins, columns = tuple(margins[j] for j in kept), [columns[j] for j in kept]
    problem = replace(problem, totals=margins[0] if len(kept) == 1 else None, margins=margins if len(kept) > 1 else ())
    return problem, None if all(column is None for column in columns) else columns


def _task(
    model: Any,
    X: Any,
    problem: Problem,
    weighted: bool,
    columns: list[Any] | None,
    most: int,
    n_asked: int,
    rng: Any,
) -> _Task:
    """Rows and totals of the fits: a part of the unlabelled rows, where there are many."""
    margins = problem.margins or (() if problem.totals is None else (problem.totals,))
    hidden = np.flatnonzero(problem.unlabelled)
    chosen = drawn_rows(margins[0].group_of if margins else np.zeros(len(hidden), dtype=np.int64), most, rng)
    parts = [margin.in_proportion(chosen, problem.classes) for margin in margins]
    table = X if is_frame(X) or hasattr(X, "tocsr") else np.asarray(X)
    marked = problem.classes[np.maximum(problem.y, 0)].astype(object)
    marked[problem.unlabelled] = None
    weight = problem.weight if weighted else None
    asked = None if not parts else parts[0] if len(parts) == 1 else parts
    n_asked, seed = max(n_asked, len(hidden)), None
    if not isinstance(model.random_state, Integral):
        seed = drawn_seed(rng)
    return _Task(model, table, marked, weight, asked, columns, hidden[chosen], n_asked, _chosen_members(model), seed)


def _chosen_members(model: Any) -> list[str]:
    record = getattr(getattr(model, "estimator_", None), "record_", None)
    if not isinstance(record, TeacherRecord):
        return []
    return record.chosen if len(record.chosen) < len(record.members) else []


@stage("labels left out")
def _left_out(
    task: _Task,
    problem: Problem,
    labelled: IntArray,
    n_splits: int,
    enough: _Enough,
    rng: Any,
    progress: Callable[[int, int], None] | None,
) -> tuple[IntArray, BoolArray, IntArray, np.ndarray]:
    """Rows whose labels were left out, which were found, which are copies; labels of the unlabelled rows by fit."""
    y = problem.y[labelled]
    if np.count_nonzero(np.bincount(y) >= 2) < 2:
        raise InvalidInputError("labels of two classes, two rows of each, are the least that can be left out in turn")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)  # of scikit-learn; it is no fault
        fold, unit = label_folds(y, _twins(task, labelled), _fair_weight(problem, y), n_splits, rng)
    numbers = _in_turn(y, fold)
    right, hidden = np.zeros(len(labelled), dtype=bool), list[IntArray]()
    asked = np.zeros(len(labelled), dtype=bool)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of folds without a class, of free groups: said of the fit itself
        for number in numbers:
            note(part=(len(hidden) + 1, len(numbers)))
            test = fold == number
            labels, others = task.found(labelled[~test], labelled[test])
            right[test], asked[test] = labels == problem.classes[y[test]], True
            hidden.append(np.searchsorted(problem.classes, others))
            if progress is not None:
                progress(len(hidden), len(numbers))
            n_labels = int(np.count_nonzero(asked))
            if enough.labels_reached(n_labels) or enough.time_reached(len(hidden), n_labels):
                break
    return labelled[asked], right[asked], unit[asked], np.array(hidden)


def _in_turn(y: IntArray, fold: IntArray) -> list[int]:
    """Folds, first those with labels of classes that no fold before them has: the last ones may not be left out."""
    numbers, place = np.unique(fold, return_inverse=True)
    there = np.zeros((len(numbers), int(y.max()) + 1), dtype=bool)
    there[place.reshape(-1), y] = True
    order: list[int] = []
    left, missed = np.ones(len(numbers), dtype=bool), np.ones(there.shape[1], dtype=bool)
    while left.any():
        first = int(np.argmax(np.where(left, np.count_nonzero(there & missed, axis=1), -1)))
        order.append(int(numbers[first]))
        left[first] = False
        missed &= ~there[first]
    return order


def _twins(task: _Task, labelled: IntArray) -> Twins:
    """Labelled rows that are equal to others, with or without a label."""
    number = row_numbers(taken_rows(task.X, np.concatenate([labelled, task.unlabelled])))
    return Twins.of(number[: len(labelled)], number[len(labelled) :])


def _fair_weight(problem: Problem, y: IntArray) -> FloatArray:
    """Weights of labels by which classes are as frequent as the totals say, or nearly so where they are intervals."""
    margins = problem.margins or (() if problem.totals is None else (problem.totals,))
    if not margins:
        return np.ones(len(y))
    counts, totals = np.bincount(y, minlength=problem.n_classes), margins[0]
    wanted = np.clip(counts * (totals.size.sum() / len(y)), totals.low.sum(axis=0), totals.high.sum(axis=0))
    return np.asarray((wanted / np.maximum(counts, 1))[y] if wanted[counts > 0].any() else np.ones(len(y)))


def _known_shares(problem: Problem) -> str:
    """What says how frequent classes are, as an estimate tells it."""
    margins = problem.margins or (() if problem.totals is None else (problem.totals,))
    if not margins:
        return "given"
    return "totals" if any(np.array_equal(margin.low, margin.high) for margin in margins) else "found"


def _strata(
    task: _Task, problem: Problem, labelled: IntArray, hidden: np.ndarray | None
) -> tuple[IntArray, FloatArray]:
    """Stratum of each label, and the share of the unlabelled rows that each stands for.

    Class k is stratum k; a class with enough labels in a group is a stratum there, as long as what is left of the class
    has enough too.
    """
    y, k = problem.y[labelled], problem.n_classes
    if hidden is None:  # a fair sample, as far as is known
        weight = problem.weight[labelled]
        return y, np.bincount(y, weight, k) / weight.sum()
    totals = problem.totals
    if task.groups is None or totals is None:  # none, or several that cross
        return y, np.bincount(hidden.reshape(-1), minlength=k) / hidden.size
    place = {name: g for g, name in enumerate(totals.groups)}
    column = np.asarray(task.groups[0])
    group = np.array([place.get(name, -1) for name in column[labelled].tolist()])
    of_hidden = np.array([place[name] for name in column[task.unlabelled].tolist()])
    shape = (totals.n_groups, k)
    labels = np.bincount((group * k + y)[group >= 0], minlength=shape[0] * k).reshape(shape)
    rows = np.bincount((of_hidden * k + hidden).reshape(-1), minlength=shape[0] * k).reshape(shape) / hidden.size
    alone = labels >= _CELL
    rest = np.bincount(y, minlength=k) - np.where(alone, labels, 0).sum(axis=0)
    few = (np.where(alone, 0.0, rows).sum(axis=0) > 0) & (rest < _CELL)
    alone &= ~few
    sizes = np.concatenate([np.where(alone, 0.0, rows).sum(axis=0), np.where(alone, rows, 0.0).reshape(-1)])
    return np.where((group >= 0) & alone[group, y], k + group * k + y, y), sizes


def _estimate(
    problem: Problem,
    labelled: IntArray,
    right: BoolArray,
    unit: IntArray,
    strata: IntArray,
    sizes: FloatArray,
    level: float,
) -> AccuracyEstimate:
    """The weighted mean and its interval."""
    weight, n = problem.weight[labelled], len(sizes)
    total = np.bincount(strata, weight, n)
    cell, place = np.unique(unit * n + strata, return_inverse=True)
    # copies that are left out together are right or wrong together: as one label with their weight
    square = np.bincount(cell % n, np.bincount(place.reshape(-1), weight) ** 2, n)
    some = total > 0
    share = np.where(some, np.bincount(strata, weight * right, n) / np.where(some, total, 1), 0.5)
    labels = np.where(some, total**2 / np.where(some, square, 1), 0)
    # as if one label more had been found and one more had not: few labels that are all found prove little
    likely = (share * labels + 1) / (labels + 2)
    variance = float(np.sum(np.where(some, sizes**2 * likely * (1 - likely) / np.maximum(labels, 1), 0)))
    value, unknown = float(share @ sizes), float(sizes[~some].sum()) / 2
    z = NormalDist().inv_cdf((1 + level) / 2)
    middle = float(likely @ sizes)
    fair = max(middle * (1 - middle) / variance, 1.0) if variance > 0 else np.inf
    half = z / (1 + z * z / fair) * np.sqrt(value * (1 - value) / fair + z * z / (4 * fair * fair)) + unknown
    centre = (value + z * z / (2 * fair)) / (1 + z * z / fair)
    y = problem.y[labelled]
    recall = {
        label: float(np.average(right[y == k], weights=weight[y == k]))
        for k, label in enumerate(problem.classes.tolist())
        if np.any(y == k)
    }
    counts = {
        label: (int(np.count_nonzero(right[y == k])), int(np.count_nonzero(y == k)))
        for k, label in enumerate(problem.classes.tolist())
        if label in recall
    }
    ends = max(0.0, float(centre - half)), min(1.0, float(centre + half))
    return AccuracyEstimate(value, *ends, level, len(labelled), recall, counts=counts)
