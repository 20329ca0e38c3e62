"""Registers that do not fit into memory: learned from a part of their rows, scored part by part, cut at the totals."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.core.progress import note, stage
from treewright.data import Problem, TotalsRules, make_problem
from treewright.data.columns_checked import AnyArray, Coded
from treewright.data.reduction import row_keys
from treewright.data.tables.cells import as_series
from treewright.data.totals import drawn_rows
from treewright.estimators.model import Given, course_attributes, derived_seed, drawn_seed, thread_count
from treewright.estimators.numbers import note_numbers, without_numbers
from treewright.estimators.totals_model import PricedModel
from treewright.exceptions import InvalidInputError

__all__ = ["Learned", "RegisterLabels", "RowSource", "label_register"]

_LEARNED_CELLS = 50_000_000
"""Most cells of labelled rows that a model is fitted to."""


class RowSource(Protocol):
    """Rows of numbers that come in parts.

    Attributes
    ----------
    n_rows : int
        Their number.
    """

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        ...

    def parts(self) -> Iterator[FloatArray]:
        """Yield all rows in order, some at a time."""
        ...

    def taken(self, rows: IntArray) -> FloatArray:
        """Return some rows by their numbers, which are sorted."""
        ...


@dataclass(frozen=True)
class Learned:
    """The rows that a model was fitted to: labelled ones, and a sample of the others.

    Attributes
    ----------
    rows : ndarray of int
        Their numbers, sorted.
    X : ndarray
        Their features.
    y : ndarray of object
        Labels, None where there is none.
    more : dict
        Weights, totals (in proportion) and groups, as ``fit`` takes them.
    """

    rows: IntArray
    X: FloatArray
    y: AnyArray
    more: dict[str, Any]

    def words(self, n_labelled: int, n_unlabelled: int) -> str:
        """What part of the register it is; nothing if it is all."""
        known = int(np.count_nonzero([label is not None for label in self.y]))
        hidden = len(self.y) - known
        if (known, hidden) == (n_labelled, n_unlabelled):
            return ""
        which = "all" if known == n_labelled else f"{known} of"
        return (
            f"learned from {which} {n_labelled} rows with a label and {hidden} of {n_unlabelled} without, drawn by lot"
        )


@dataclass(frozen=True, eq=False)
class RegisterLabels:
    """Labels and probabilities of all rows of a register.

    Attributes
    ----------
    classes : ndarray
        The classes.
    numbers : ndarray of int, shape (n_rows,)
        Class number of each row, given labels as they are, the others within the totals.
    learned : Learned
        Rows that the model was fitted to.
    """

    classes: AnyArray
    numbers: NDArray[np.int32]
    learned: Learned
    _hidden: BoolArray
    _scores: FloatArray
    _group_of: IntArray | None
    _shifts: FloatArray

    def labels(self, start: int = 0, stop: int | None = None) -> AnyArray:
        """Labels of some consecutive rows."""
        return np.asarray(self.classes.astype(object)[self.numbers[start:stop]])

    def column(self, start: int = 0, stop: int | None = None) -> Any:
        """The same as a column of a table, which takes less time to make."""
        return as_series("prediction", self.classes.astype(object)).gather(self.numbers[start:stop])

    def shares(self, start: int = 0, stop: int | None = None) -> FloatArray:
        """Probabilities of some consecutive rows: 1 for a given label, those of others sum to the totals."""
        from treewright.totals.shift import shifted

        hidden, numbers = self._hidden[start:stop], self.numbers[start:stop]
        first = int(np.count_nonzero(self._hidden[:start]))
        own = slice(first, first + int(np.count_nonzero(hidden)))
        shares = np.zeros((len(numbers), len(self.classes)))
        shares[np.flatnonzero(~hidden), numbers[~hidden]] = 1.0
        shift = self._shifts[0] if self._group_of is None else self._shifts[self._group_of[own]]
        shares[hidden] = shifted(self._scores[own], shift)
        return shares


def label_register(
    model: PricedModel,
    source: RowSource,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    totals: Any = None,
    groups: Any = None,
    *,
    totals_of: str = "unlabeled",
    allow_new_classes: bool = False,
    totals_tolerance: float = 0.0,
    max_unlabeled: int = 20_000,
    n_jobs: int | None = None,
) -> RegisterLabels:
    """Fit a model to a register that comes in parts, and label all its rows within the totals.

    The model is fitted to the labelled rows and to a sample of the others, with totals in proportion. Then all rows are
    scored part by part; only scores and groups stay, and are cut at the totals, which are met to the row. Memory is
    that of the scores, and time grows with the rows. The model ends as by ``fit``, with the prices, shifts and
    ``totals_`` of all rows, but without ``transduction_``.

    Parameters
    ----------
    model : TotalsClassifier or C2RFClassifier
        The model, which is fitted.
    source : RowSource
        The rows, numbers without gaps.
    y, sample_weight, totals, groups, totals_of, allow_new_classes, totals_tolerance
        As for ``fit``, of all rows; totals of one margin.
    max_unlabeled : int, default=20000
        Unlabelled rows that the model is fitted to, drawn by ``random_state`` and their place, of each group as many as
        its share makes, at least one.
    n_jobs : int or None, default=None
        Threads that score parts; None for one, -1 for all cores.

    Returns
    -------
    RegisterLabels
        Labels and probabilities of all rows.

    Notes
    -----
    Of labelled rows all are used, up to 50 million numbers. Rows with tied scores are taken in an order that is drawn
    by their content, as in ``fit``. With more than 300 000 unlabelled rows, the prices for rows of a group that is
    not known are those of a sample. How rows are cut into parts does not matter.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from treewright import TotalsClassifier
    >>> class Halves:
    ...     n_rows = 8
    ...     def parts(self):
    ...         return iter(np.arange(8.0).reshape(2, 4, 1))
    ...     def taken(self, rows):
    ...         return rows[:, None].astype(float)
    >>> y = [0, -1, -1, -1, -1, -1, -1, 1]
    >>> label_register(TotalsClassifier(LogisticRegression()), Halves(), y, totals={1: 2}).labels().tolist()
    [0, 0, 0, 0, 0, 1, 1, 1]
    """
    budget = Budget()
    rules = TotalsRules(totals_of, allow_new_classes, totals_tolerance)
    if isinstance(totals, list | tuple):
        raise InvalidInputError("totals are a list of margins; registers that come in parts take totals of one")
    problem = make_problem(
        np.zeros((source.n_rows, 1)),
        y,
        sample_weight,
        supervised=False,
        unlabeled=model.unlabeled,
        totals=totals,
        groups=groups,
        rules=rules,
        empty_weights=True,
    )
    seed = drawn_seed(model.random_state)
    rng = np.random.default_rng(derived_seed(seed))
    learned = _learned(source, problem, sample_weight is not None, groups, max_unlabeled, rng)
    _fit(model, learned, problem.n_unlabelled, seed)
    without_numbers(model)  # what it says of its own rows is no news
    scores, content = _scored(model, source, problem, thread_count(n_jobs))
    vars(model).update(note_numbers(_proportionate(learned, problem, rng), {}))
    return _cut(model, problem, learned, scores, content, rng, budget)


def _cut(
    model: PricedModel,
    problem: Problem,
    learned: Learned,
    scores: FloatArray,
    content: np.ndarray,
    rng: np.random.Generator,
    budget: Budget,
) -> RegisterLabels:
    """Divide all unlabelled rows within the totals, and tell the model of it."""
    from treewright.totals.register import divide_register

    numbers, totals = problem.y.astype(np.int32), problem.totals
    fitted: dict[str, Any] = {}
    if totals is None:
        numbers[problem.unlabelled] = (scores + model._prices[0]).argmax(axis=1)
        group_of, shifts = None, model._shifts[0]
    else:
        found = divide_register(scores, content, totals, rng)
        numbers[problem.unlabelled] = found.labels
        group_of, shifts = totals.group_of, found.by_group
        n_cells = totals.low.size
        counts = np.bincount(group_of * totals.n_classes + found.labels, minlength=n_cells)
        fitted = model._fitted_prices(found.prices, [found.shifts])
        fitted["totals_"] = totals.reached(counts.reshape(totals.low.shape), problem.classes)
    words = learned.words(problem.n_labelled, problem.n_unlabelled)
    record = replace(model.record_, seconds=budget.elapsed)
    record = replace(record, reason=f"{record.reason}; {words}") if words else record
    of_rows = ("transduction_", "transduction_proba_")
    kept = {name: value for name, value in vars(model).items() if name not in of_rows}
    model.__dict__ = kept | fitted | course_attributes(record)
    return RegisterLabels(problem.classes, numbers, learned, problem.unlabelled, scores, group_of, shifts)


def _learned(
    source: RowSource, problem: Problem, weighted: bool, groups: Any, most: int, rng: np.random.Generator
) -> Learned:
    """Labelled rows, and some of the others."""
    hidden, known = np.flatnonzero(problem.unlabelled), np.flatnonzero(problem.labelled)
    group_of = problem.totals.group_of if problem.totals is not None else np.zeros(len(hidden), dtype=np.int64)
    chosen = drawn_rows(group_of, most, rng)
    width = source.taken(known[:1]).shape[1]
    if len(known) * width > _LEARNED_CELLS:
        known = np.sort(rng.choice(known, _LEARNED_CELLS // width, replace=False))
    rows = np.sort(np.concatenate([known, hidden[chosen]]))
    labels = problem.classes.astype(object)[problem.y[rows]]
    labels[problem.y[rows] < 0] = None
    more: dict[str, Any] = {"sample_weight": problem.weight[rows] if weighted else None}
    if problem.totals is not None:
        column = groups if groups is None or isinstance(groups, Coded) else np.asarray(groups)
        more |= {
            "totals": problem.totals.in_proportion(chosen, problem.classes),
            "groups": None if column is None else np.asarray(column[rows]),
            "allow_new_classes": True,
        }
    return Learned(rows, source.taken(rows), labels, more)


def _proportionate(learned: Learned, problem: Problem, rng: np.random.Generator) -> FloatArray:
    """Rows that were learned from, those with a label no more of them than of all rows."""
    known = problem.labelled[learned.rows]
    n_hidden = int(np.count_nonzero(~known))
    most = n_hidden * (len(problem.y) - problem.n_unlabelled) // max(1, problem.n_unlabelled)
    kept = np.flatnonzero(known)
    kept = kept if len(kept) <= most else rng.choice(kept, most, replace=False)
    return np.asarray(learned.X[np.concatenate([kept, np.flatnonzero(~known)])])


def _fit(model: PricedModel, learned: Learned, n_asked: int, seed: int) -> None:
    more = dict(learned.more)
    rules = TotalsRules(allow_new_classes=more.pop("allow_new_classes", False))
    model._fit(Given(learned.X, learned.y, **more, rules=rules, n_asked=n_asked, seed=seed))


@stage("rows are scored")
def _scored(model: PricedModel, source: RowSource, problem: Problem, n_threads: int) -> tuple[FloatArray, np.ndarray]:
    """Scores of the unlabelled rows, and a number for each that depends on its content."""
    n_hidden = problem.n_unlabelled
    scores, content = np.empty((n_hidden, problem.n_classes)), np.empty(n_hidden, dtype=np.uint64)

    def score(rows: FloatArray, own: slice) -> None:
        scores[own], content[own] = model._class_scores(rows), row_keys(rows)

    start = at = 0
    waiting = deque[Future[None]]()
    with ThreadPoolExecutor(n_threads) as pool:
        for part in source.parts():
            note(detail=f"{start} of {source.n_rows} rows")
            hidden = problem.unlabelled[start : start + len(part)]
            start += len(part)
            rows = part if hidden.all() else part[hidden]
            if len(rows):
                waiting.append(pool.submit(score, rows, slice(at, at + len(rows))))
                at += len(rows)
            if len(waiting) > n_threads:  # no more than that many parts are in memory
                waiting.popleft().result()
        for one in waiting:
            one.result()
    if start != source.n_rows:
        raise InvalidInputError(f"the parts have {start} rows, {source.n_rows} were announced")
    return scores, content
