"""Words of reports, each in one place: the text, the page and the command line take them from here."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from treewright.core.names import counted, printable
from treewright.estimation.accuracy import AccuracyEstimate
from treewright.estimators.files import plain_parameters
from treewright.estimators.graph import GraphModel
from treewright.estimators.taught_model import TaughtModel
from treewright.optimize.record import FitRecord, FitStatus
from treewright.teachers.record import TeacherRecord
from treewright.tree.text import format_number

__all__ = [
    "INTERRUPTED",
    "KEPT",
    "LEAF_COLUMN",
    "NEW_TREE",
    "NOT_TRAINING",
    "SEEN",
    "WEIGHED",
    "largest_words",
    "margin_words",
    "STATUS_WORDS",
    "SUBTRACTED",
    "accuracy_words",
    "ASKED_OF",
    "asked_totals",
    "asked_words",
    "assumed_words",
    "count_words",
    "difference_words",
    "group_sizes",
    "left_out_words",
    "new_accuracy_words",
    "office_words",
    "page_text",
    "parameter_pairs",
    "parameter_words",
    "proof_words",
    "row_words",
    "seed_words",
    "teacher_words",
    "spaced",
    "totals_words",
    "unless_words",
]

SEEN = "The fit has seen these labels: of other rows fewer are likely to be right."
"""What is said wherever an accuracy on training rows is."""


def largest_words(classes: Sequence[str], given: Sequence[int]) -> str:
    """Report: how many labels are right if all rows are of the largest class: what an accuracy is to be above.

    Examples
    --------
    >>> largest_words(["no", "yes"], [30, 10])
    'Always saying "no" would be right on 30: 75.0%.'
    """
    most = max(range(len(classes)), key=lambda k: given[k])
    share = given[most] / max(1, sum(given))
    return f'Always saying "{printable(classes[most])}" would be right on {given[most]}: {share:.1%}.'


WEIGHED = "Leaves have the class that weighs most in the fit, not that of most rows; shares of classes are of weight."
"""What is said where leaves tell rows of a tree that was fitted to weights."""

NOT_TRAINING = "labels that the fit has seen are found again nearly always, which says nothing about the others."
"""Why the accuracy on given labels is no answer."""

_CLASSES_COUNT = {
    "totals": "Classes count as the totals say, not as they were labelled.",
    "found": (
        "Classes count as they are among the labels found: totals fix that in part, and what they leave open is as the "
        "model has it, which learned from those who answered. Where response depends on a class that is left open, the "
        "estimate does not hold."
    ),
    "given": (
        "No totals were given, so classes count as they were labelled: those who answered are taken to be like those "
        "who did not. Where response depends on the class the estimate does not hold, and is too high where frequent "
        "classes answer more often; totals put that right."
    ),
}
_ALIKE = (
    "Within a class (of a group, where totals are by group) rows with a label are taken to be like the others. If, "
    "say, only the young were asked, the estimate does not know it: totals by group of what the sample depends on, "
    "such as age, help."
)

INTERRUPTED = "leaving labels out was interrupted"
"""Why there is no estimate of accuracy after a Ctrl-C."""

_NOT_MEASURED = "It was not measured: no labels of these rows were left out. "
_OF_THE_FIT = (
    "The report of the fit says how accurate labels of rows like those of the fit are likely to be; the more has "
    "changed since then, the less that says of these rows."
)
_LABEL_SOME = "To know it, label some of these rows and compare."

KEPT = "labels that the table had are kept"
"""What became of labels among new rows."""

NEW_TREE = "The tree, with the rows of this table in its leaves"
"""Heading of the tree beside labels of new rows."""

LEAF_COLUMN = 'Numbers of leaves are those of the column "leaf" of the predictions.'
"""What joins tree and table."""

ASKED_OF = ("of the rows without a label", "of all rows, and what is left of them for those without a label")
"""Of which rows totals are: as they were given, or where those with a label are subtracted."""

SUBTRACTED = "Totals were given of all rows; those with a label are subtracted."
"""Why what was asked is less than what was given."""

STATUS_WORDS = {
    "optimal": "proven optimal: no tree of this kind is better, within the gap",
    "time_limit": "stopped at the time limit: the best tree found, not proven optimal",
    "interrupted": "interrupted: the best tree found until then, not proven optimal",
    "local": "ended as such methods do, without a proof: other trees may be better",
    "unproven": "ended without proof of optimality: other trees may be better",
}
"""What each ``status_`` means."""

_ENDED_BY = ("the time limit ended, which depends on the speed of the machine", "Ctrl-C ended")
"""What makes a fit with the same seed end otherwise."""
_SHORT = 6
"""Characters of a number that is shown as it is written."""


def count_words(n: int) -> str:
    """Number of rows in the words of a report.

    Examples
    --------
    >>> count_words(1), count_words(2)
    ('1 row', '2 rows')
    """
    return counted(n, "row")


def row_words(n_rows: int, n_labelled: int) -> str:
    """How many rows have a label, in the words of a report.

    Examples
    --------
    >>> row_words(3, 1)
    '3 rows: 1 with a label, 2 without'
    """
    return f"{count_words(n_rows)}: {n_labelled} with a label, {n_rows - n_labelled} without"


def new_accuracy_words(estimated: bool) -> str:
    """What a report says of the accuracy of labels of new rows.

    Parameters
    ----------
    estimated : bool
        Whether the report of the fit has an estimate for rows like those of the fit.

    Examples
    --------
    >>> new_accuracy_words(False)
    'It was not measured: no labels of these rows were left out. To know it, label some of these rows and compare.'
    """
    return _NOT_MEASURED + (_OF_THE_FIT if estimated else _LABEL_SOME)


def left_out_words(estimate: AccuracyEstimate, digits: Callable[[int], str] = str) -> str:
    """Report: how many labels were left out, and of how many if that is not all.

    Examples
    --------
    >>> estimate = AccuracyEstimate(0.8, 0.71, 0.86, 0.95, 120, {}, n_known=120)
    >>> left_out_words(estimate), left_out_words(estimate._replace(n_known=400))
    ('all 120 labels left out in turn', '120 of 400 labels left out')
    """
    if estimate.n_known > estimate.n_labels:
        return f"{digits(estimate.n_labels)} of {digits(estimate.n_known)} labels left out"
    return f"all {digits(estimate.n_labels)} labels left out in turn"


def assumed_words(estimate: AccuracyEstimate) -> list[str]:
    """Report: how classes count in an estimate of accuracy, and what it assumes of those who did not answer.

    Examples
    --------
    >>> estimate = AccuracyEstimate(0.8, 0.71, 0.86, 0.95, 120, {})
    >>> assumed_words(estimate)[0]
    'Classes count as the totals say, not as they were labelled.'
    >>> "No totals were given" in assumed_words(estimate._replace(shares="given"))[0]
    True
    """
    return [_CLASSES_COUNT[estimate.shares], _ALIKE]


def unless_words(estimate: AccuracyEstimate) -> str:
    """Report: the condition of an estimate in few words, where its number stands; nothing where totals meet it.

    Examples
    --------
    >>> unless_words(AccuracyEstimate(0.8, 0.71, 0.86, 0.95, 120, {}, shares="given"))
    'if those who answered are like those who did not'
    """
    return "" if estimate.shares == "totals" else "if those who answered are like those who did not"


def accuracy_words(estimate: AccuracyEstimate | None, why: str = "", option: str = "--time-limit") -> str:
    """What labels left out say of the accuracy, in a sentence of a report; or why they say nothing.

    Examples
    --------
    >>> accuracy_words(AccuracyEstimate(0.8, 0.71, 0.86, 0.95, 120, {}))
    '80.0% of the labels are likely to be right (95% interval: 71.0% to 86.0%), by all 120 labels left out in turn'
    >>> short = AccuracyEstimate(0.8, 0.71, 0.86, 0.95, 120, {}, 3, 10, n_known=400, short=True)
    >>> accuracy_words(short).partition("), ")[2]
    'by 120 of 400 labels left out; with more time (--time-limit) all are'
    >>> accuracy_words(None, INTERRUPTED)
    'not known, leaving labels out was interrupted'
    """
    if estimate is None and why == INTERRUPTED:
        return f"not known, {why}"
    if estimate is None:
        return f"not known, no labels were left out: {why}"
    more = f"; with more time ({option}) all are" if estimate.short else ""
    unless = f", {words}" if (words := unless_words(estimate)) else ""
    return (
        f"{estimate.value:.1%} of the labels are likely to be right ({estimate.level:.0%} interval: {estimate.low:.1%} "
        f"to {estimate.high:.1%}){unless}, by {left_out_words(estimate)}{more}"
    )


# ---------------------------------------------------------------------- totals


def group_sizes(reached: Sequence[Mapping[str, Any]]) -> dict[Any, int]:
    """Rows of each group of each margin, from a report's table of totals: every row has a class.

    Examples
    --------
    >>> row = {"group": "north", "class": "yes", "low": 3, "high": 5, "reached": 4, "deviation": 0}
    >>> group_sizes([row, row | {"class": "no", "reached": 2}])
    {(0, 'north'): 6}
    """
    sizes: dict[Any, int] = {}
    for row in reached:
        key = row.get("margin", 0), row["group"]
        sizes[key] = sizes.get(key, 0) + row["reached"]
    return sizes


def margin_words(row: Mapping[str, Any]) -> str:
    """By what a report's total of several margins is: the column of its groups, or the margin's number if all is.

    Examples
    --------
    >>> margin_words({"margin": 0, "by": "sex"}), margin_words({"margin": 1, "by": None}), margin_words({"margin": 1})
    ('sex', 'all rows', '2')
    """
    if "by" not in row:
        return str(row["margin"] + 1)
    return "all rows" if row["by"] is None else str(row["by"])


def spaced(n: int) -> str:
    """A number in a report, its digits in threes.

    Examples
    --------
    >>> spaced(7609).split()
    ['7', '609']
    """
    return f"{n:,}".replace(",", "\u00a0")


def page_text(value: object) -> str:
    r"""A text as part of a report's page; no-break spaces stay, as those between thousands.

    Examples
    --------
    >>> page_text(f"{spaced(7609)} rows < 1\x1b") == "7\u00a0609 rows &lt; 1\\x1b"
    True
    """
    return html.escape("\u00a0".join(printable(part) for part in str(value).split("\u00a0")))


def asked_words(row: Mapping[str, Any], size: int, digits: Callable[[int], str] = str) -> str:
    """Report: what was asked of a class in a group of some rows: a number, an interval, or nothing.

    Examples
    --------
    >>> [asked_words({"low": a, "high": b}, 9) for a, b in ((3, 3), (3, 5), (0, 9))]
    ['3', '3 to 5', '0 to 9 (free)']
    """
    low, high = row["low"], row["high"]
    if low == high:
        return digits(low)
    words = f"{digits(low)} to {digits(high)}"
    return f"{words} (free)" if low <= 0 and high >= size else words


def office_words(row: Mapping[str, Any], size: int, digits: Callable[[int], str] = str) -> str:
    """Report: what was asked of all rows of a class in a group, those with a label included.

    Examples
    --------
    >>> [office_words({"low": a, "high": b, "labelled": 2}, 9) for a, b in ((3, 3), (3, 5), (0, 9))]
    ['5', '5 to 7', 'free']
    """
    if row["low"] <= 0 and row["high"] >= size and row["high"] > 0:
        return "free"
    return asked_words({end: row[end] + row["labelled"] for end in ("low", "high")}, size, digits)


def difference_words(row: Mapping[str, Any]) -> str:
    """By how much a total is missed, with its sign, in the words of a report; 0 if it is met."""
    count = row["reached"]
    difference = count - min(max(count, row["low"]), row["high"])
    return f"{difference:+d}" if difference else "0"


def asked_totals(reached: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """The totals of a report that ask for something: not those of groups and classes with any number of rows."""
    sizes = group_sizes(reached)
    own = [sizes[row.get("margin", 0), row["group"]] for row in reached]
    return [row for row, size in zip(reached, own, strict=True) if row["low"] > 0 or row["high"] < size] or reached


def totals_words(reached: Sequence[Mapping[str, Any]]) -> str:
    """Report: how many totals were met; those that allow whatever is there are none.

    Examples
    --------
    >>> row = {"group": None, "class": "yes", "low": 3, "high": 5, "reached": 6, "deviation": 1}
    >>> totals_words([row, row | {"reached": 4}])
    '1 of 2 totals is missed'
    >>> totals_words([row | {"reached": 5}, row | {"class": "no", "low": 0, "high": 11}])
    'the total is met to the row'
    """
    reached = asked_totals(reached)
    missed = sum(not row["low"] <= row["reached"] <= row["high"] for row in reached)
    if not missed:
        return f"all {len(reached)} totals are met to the row" if len(reached) > 1 else "the total is met to the row"
    return f"{missed} of {len(reached)} totals {'is' if missed == 1 else 'are'} missed"


# ---------------------------------------------------------------------- fits


def parameter_pairs(estimator: Any) -> list[tuple[str, str]]:
    """Parameters of an estimator and their values in a report, with what was chosen for each that is "auto".

    Examples
    --------
    >>> from treewright import TAOClassifier
    >>> dict(parameter_pairs(TAOClassifier(max_depth=3, time_limit=33.5821)))["time_limit"]
    '33.6'
    """
    given = estimator.get_params(deep=False)
    shown = {key: f"a {type(value).__name__}" for key, value in given.items()} | plain_parameters(estimator)
    pairs = []
    for key, value in sorted(shown.items()):
        chosen = getattr(estimator, f"{key}_", None) if isinstance(value, str) and value == "auto" else None
        told = f" (chosen: {format_number(chosen)})" if isinstance(chosen, int | float) else ""
        if isinstance(chosen, TeacherRecord) and chosen.name != value:  # a file has no place for the labels themselves
            told = f" (it was: {chosen.name})"
        text = repr(value)
        if key == "random_state" and value is None and hasattr(estimator, "random_state_"):
            told = f" (drawn: {estimator.random_state_})"
        if isinstance(value, float) and len(text) > _SHORT:
            text = format_number(value, 3)
        pairs.append((key, f"{text}{told}"))
    return pairs


def parameter_words(estimator: Any) -> str:
    """Parameters of a fitted estimator in a line of a report.

    Examples
    --------
    >>> from treewright import TAOClassifier
    >>> model = TAOClassifier(max_depth=3)
    >>> model.alpha_ = 0.25  # as a fit with alpha="auto" leaves it
    >>> parameter_words(model).startswith("alpha='auto' (chosen: 0.25), "), parameter_words(model).count("max_depth=3")
    (True, 1)
    """
    return ", ".join(f"{name}={value}" for name, value in parameter_pairs(estimator))


def teacher_words(estimator: Any, n_hidden: int) -> str:
    """Report: who labelled the rows without a label for a fit with a teacher and without totals; else nothing.

    Examples
    --------
    >>> from treewright import TAOClassifier
    >>> model = TAOClassifier(teacher="auto")
    >>> model.teacher_ = TeacherRecord("auto")  # as a fit leaves it
    >>> teacher_words(model, 1060), teacher_words(TAOClassifier(), 1060)
    ('1060 rows without a label were labelled by a teacher: auto', '')
    """
    if not isinstance(estimator, TaughtModel) or not n_hidden or getattr(estimator, "teacher_", None) is None:
        return ""
    graph = "the graph and " if isinstance(estimator, GraphModel) else ""
    noun = counted(n_hidden, "row without a label was", "rows without a label were")
    return f"{noun} labelled by {graph}a teacher: {printable(str(estimator.teacher_))}"


def seed_words(record: FitRecord, option: str = "--random-state", short: bool = False) -> str:
    """Report: the seed of a fit, and what can be done with it; nothing for a fit that kept none.

    `short` says whether time ended the estimate of accuracy beside it.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from treewright.optimize.record import named_trace
    >>> record = FitRecord("local", "", 1.5, None, None, named_trace([], "seconds"), seed=42)
    >>> seed_words(record)
    '42; --random-state 42 gives the same again'
    >>> seed_words(replace(record, by_clock=True), "random_state").partition("; ")[2]
    'random_state=42 gives the same again but for what the time limit ended, which depends on the speed of the machine'
    """
    if record.seed is None:
        return ""
    given = f"{option} {record.seed}" if option.startswith("-") else f"{option}={record.seed}"
    unless = (
        "" if record.repeatable and not short else f" but for what {_ENDED_BY[record.status == FitStatus.INTERRUPTED]}"
    )
    return f"{record.seed}; {given} gives the same again{unless}"


def proof_words(record: FitRecord) -> list[tuple[str, str]]:
    """Objective of a fit, and its bound and gap where the model has them, as names and texts of a report."""
    words = []
    if record.objective is not None:
        words.append(("objective", format_number(record.objective, 6)))
    if record.bound is not None:
        words += [("bound", format_number(record.bound, 6)), ("gap", f"{record.gap:.2%}")]
    return words
