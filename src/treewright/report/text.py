"""A fit as a plain-text report."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from treewright.data import parse_totals
from treewright.data._checks import AnyArray, as_column, missing_mask
from treewright.estimators.common.files import plain_parameters
from treewright.exceptions import InvalidInputError
from treewright.names import printable
from treewright.search.teachers.teacher import TeacherRecord
from treewright.training.record import FitRecord
from treewright.tree.text import format_number

__all__ = [
    "SEEN",
    "STATUS_WORDS",
    "class_numbers",
    "count_lines",
    "count_words",
    "data_lines",
    "fit_report",
    "indented",
    "parameter_words",
    "proof_words",
    "text_table",
    "totals_table",
]

SEEN = "The fit has seen these labels: of other rows fewer are likely to be right."
"""What is said wherever an accuracy on training rows is."""

STATUS_WORDS = {
    "optimal": "proven optimal: no tree of this kind is better, within the gap",
    "time_limit": "stopped at the time limit: the best tree found, not proven optimal",
    "interrupted": "interrupted: the best tree found until then, not proven optimal",
    "local": "ended as such methods do, without a proof: other trees may be better",
    "unproven": "ended without proof of optimality: other trees may be better",
}
"""What each ``status_`` means."""

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?%?")


def fit_report(
    estimator: Any,
    y: ArrayLike,
    predicted: ArrayLike,
    *,
    title: str = "",
    target: str = "",
    totals: Any = None,
    groups: ArrayLike | None = None,
    leaves: ArrayLike | None = None,
) -> str:
    """Write a fit as text for people.

    Parameters
    ----------
    estimator : estimator
        A fitted classifier of treewright that is one tree (not `TotalsClassifier`, `C2RFClassifier`,
        `LapSVMClassifier`, nor forests of LapTAO).
    y : array-like of shape (n_rows,)
        Labels of all rows, NaN or None where there is none.
    predicted : array-like of shape (n_rows,)
        Predicted labels of all rows.
    title : str
        First line, by default the name of the estimator.
    target : str
        Name of what is predicted.
    totals : object
        What is known about the classes of the rows without label, as :func:`treewright.data.parse_totals`
        reads it: ``{label: total}``, or ``{group: {label: total}}`` with `groups`. Labels are those of
        ``estimator.classes_``. By default the estimator's own ``totals_``, if it has any.
    groups : array-like of shape (n_rows,) or None
        Group of each row, for totals by group.
    leaves : array-like of shape (n_rows,) or None
        Leaf of each row, as ``estimator.apply`` says; the tree is then written with numbers of leaves and the rows in
        each.

    Returns
    -------
    str
        The report, ending in a line end.

    Examples
    --------
    >>> from treewright import OCTHClassifier
    >>> X, y = [[1.0], [2.0], [3.0], [4.0]], ["no", "no", "yes", None]
    >>> model = OCTHClassifier(max_depth=1, random_state=0).fit(X[:3], y[:3])
    >>> text = fit_report(model, y, model.predict(X), totals={"yes": 1})
    >>> print(text[text.index("Known totals") : text.index("Tree")])
    Known totals of the rows without a label
      class  asked  reached  difference
      no         0        0           0
      yes        1        1           0
      1 row without a label; OCTHClassifier does not know totals, they had no part in the fit
    <BLANKLINE>
    Rows with a label: what they are (down) and what is predicted (across)
           no  yes
      no    2    0
      yes   0    1
      3 of 3 are right: accuracy 100.0%
      The fit has seen these labels: of other rows fewer are likely to be right.
    <BLANKLINE>
    Predictions for all 4 rows
      class  rows  share
      no        2  50.0%
      yes       2  50.0%
    <BLANKLINE>
    <BLANKLINE>
    """
    if not hasattr(estimator, "export_text") or not hasattr(estimator, "predict_proba"):
        raise InvalidInputError(
            f"{type(estimator).__name__} is no classifier that is one tree, and a report is about a tree; totals_table "
            "lays out the totals_ of any model"
        )
    labels, guesses = as_column(y, "y"), as_column(predicted, "predicted")
    if len(labels) != len(guesses):
        raise InvalidInputError(f"y has {len(labels)} rows, predicted has {len(guesses)}")
    known = ~missing_mask(labels)
    classes = estimator.classes_
    truth, guess = class_numbers(labels[known], classes, "y"), class_numbers(guesses, classes, "predicted")
    name = type(estimator).__name__
    heading = printable(title or name)
    sections = [
        [heading, "=" * len(heading)],
        ["Data", *data_lines(known, target), *count_lines(truth, classes)],
    ]
    reached = getattr(estimator, "totals_", [])
    if totals is not None:
        chosen = None if groups is None else as_column(groups, "groups")[~known]
        reached = parse_totals(totals, classes, int(np.count_nonzero(~known)), chosen).table(guess[~known], classes)
    if reached:
        used = hasattr(estimator, "totals_")
        part = "the fit used these totals" if used else f"{name} does not know totals, they had no part in the fit"
        sections.append(
            [
                "Known totals of the rows without a label",
                *totals_table(reached),
                f"  {count_words(int(np.count_nonzero(~known)))} without a label; {part}",
            ]
        )
    sections += [
        _confusion_lines(truth, guess[known], classes),
        [f"Predictions for all {len(guess)} rows", *count_lines(guess, classes)],
        _tree_text(estimator, None if leaves is None else np.asarray(leaves), truth, known),
        _fit_lines(estimator, name),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections) + "\n"


def parameter_words(estimator: Any) -> str:
    """Parameters of a fitted estimator, and the number that was chosen for each that is "auto".

    Examples
    --------
    >>> from treewright import TAOClassifier
    >>> model = TAOClassifier(max_depth=3)
    >>> model.alpha_ = 0.25  # as a fit with alpha="auto" leaves it
    >>> parameter_words(model).startswith("alpha='auto' (chosen: 0.25), "), parameter_words(model).count("max_depth=3")
    (True, 1)
    """
    given = estimator.get_params(deep=False)
    shown = {key: f"a {type(value).__name__}" for key, value in given.items()} | plain_parameters(estimator)
    words = []
    for key, value in sorted(shown.items()):
        chosen = getattr(estimator, f"{key}_", None) if isinstance(value, str) and value == "auto" else None
        told = f" (chosen: {format_number(chosen)})" if isinstance(chosen, int | float) else ""
        if isinstance(chosen, TeacherRecord) and chosen.name != value:  # a file has no place for the labels themselves
            told = f" (it was: {chosen.name})"
        words.append(f"{key}={value!r}{told}")
    return ", ".join(words)


def proof_words(record: FitRecord) -> list[tuple[str, str]]:
    """Objective of a fit, and its bound and gap where the model has them, as names and texts."""
    words = []
    if record.objective is not None:
        words.append(("objective", format_number(record.objective, 6)))
    if record.bound is not None:
        words += [("bound", format_number(record.bound, 6)), ("gap", f"{record.gap:.2%}")]
    return words


def text_table(rows: Sequence[Sequence[object]], indent: str = "  ") -> list[str]:
    r"""Lay out rows of cells in columns: text to the left, numbers to the right.

    Parameters
    ----------
    rows : sequence of sequences
        The first row is the header.
    indent : str
        What each line starts with.

    Examples
    --------
    >>> print("\n".join(text_table([["class", "rows"], ["no", 12], ["yes", 3]], indent="")))
    class  rows
    no       12
    yes       3
    """
    if not rows:
        return []
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    body = rows[1:] or rows
    right = [all(_is_numeric(cell) for cell in column) for column in zip(*body, strict=True)]
    lines = []
    for row in cells:
        parts = [c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True)]
        lines.append((indent + "  ".join(parts)).rstrip())
    return lines


def totals_table(reached: Sequence[Mapping[str, Any]], indent: str = "  ") -> list[str]:
    r"""Lay out the totals that were asked for and what was reached.

    Parameters
    ----------
    reached : sequence of mappings
        An estimator's ``totals_``, or what :meth:`treewright.data.ClassTotals.table` gives.
    indent : str
        What each line starts with.

    Examples
    --------
    >>> row = {"group": None, "class": "yes", "low": 3, "high": 5, "reached": 6, "deviation": 1}
    >>> print("\n".join(totals_table([row], indent="")))
    class  asked   reached  difference
    yes    3 to 5        6          +1
    """
    grouped = any(row["group"] is not None for row in reached)
    table: list[tuple[object, ...]] = [(*(("group",) if grouped else ()), "class", "asked", "reached", "difference")]
    for row in reached:
        low, high, count = row["low"], row["high"], row["reached"]
        # an exact total is a number, an interval its two ends
        asked = low if low == high else f"{low} to {high}"
        difference = count - min(max(count, low), high)
        group = (str(row["group"]),) if grouped else ()
        table.append((*group, str(row["class"]), asked, count, f"{difference:+d}" if difference else "0"))
    return text_table(table, indent)


def _is_numeric(cell: object) -> bool:
    return _NUMBER.fullmatch(str(cell)) is not None


def indented(text: str) -> list[str]:
    """Lines of a text, further in."""
    return [f"  {line}" for line in text.splitlines()]


def count_words(n: int) -> str:
    """Number of rows.

    Examples
    --------
    >>> count_words(1), count_words(2)
    ('1 row', '2 rows')
    """
    return f"{n} row" if n == 1 else f"{n} rows"


def class_numbers(labels: AnyArray, classes: AnyArray, name: str) -> AnyArray:
    """Class numbers of labels; one that is no class is refused."""
    number = {label: k for k, label in enumerate(classes.tolist())}
    try:
        return np.array([number[label] for label in labels.tolist()], dtype=np.int64)
    except KeyError as error:
        raise InvalidInputError(
            f"{name} has the label {error.args[0]!r}, which is none of the classes {classes.tolist()}"
        ) from None


def data_lines(known: AnyArray, target: str) -> list[str]:
    """What is predicted, and how many rows have a label."""
    n_known = int(np.count_nonzero(known))
    rows = f"  {count_words(len(known))}: {n_known} with a label, {len(known) - n_known} without"
    return [f"  target: {printable(target)}", rows] if target else [rows]


def _tree_text(estimator: Any, leaves: AnyArray | None, truth: AnyArray, known: AnyArray) -> list[str]:
    """The rules; with the leaf of each row, also the numbers of the leaves and the rows in each."""
    if leaves is None:
        return ["Tree", *indented(estimator.export_text())]
    classes, texts = estimator.classes_, {}
    for leaf in range(estimator.tree_.n_nodes):
        inside = leaves == leaf
        counts = np.bincount(truth[inside[known]], minlength=len(classes))
        told = ", ".join(f"{n} {classes[k]}" for k, n in enumerate(counts.tolist()) if n) or "none with a label"
        label = classes[estimator.tree_.labels[leaf]]
        texts[leaf] = f"leaf {leaf}: {label}  ({count_words(int(np.count_nonzero(inside)))}; labelled: {told})"
    note = '  Numbers of leaves are those of the column "leaf" of the predictions.'
    return ["Tree", note, "", *indented(estimator.export_text(leaf_texts=texts))]


def count_lines(numbers: AnyArray, classes: AnyArray) -> list[str]:
    """Rows and shares of the classes."""
    counts = np.bincount(numbers, minlength=len(classes)).tolist()
    total = max(1, len(numbers))
    table = [(str(label), n, f"{n / total:.1%}") for label, n in zip(classes.tolist(), counts, strict=True)]
    return text_table([("class", "rows", "share"), *table])


def _fit_lines(estimator: Any, name: str) -> list[str]:
    record = estimator.record_
    return [
        f"Fit of {name}",
        f"  {record.status}: {STATUS_WORDS[record.status]}",
        *([f"  why: {record.reason}"] if record.reason else []),
        "  " + ", ".join(f"{name} {value}" for name, value in proof_words(record)),
        f"  {record.seconds:.1f} seconds",
        "  parameters: " + parameter_words(estimator),
    ]


def _confusion_lines(truth: AnyArray, guess: AnyArray, classes: AnyArray) -> list[str]:
    k = len(classes)
    counts = np.bincount(truth * k + guess, minlength=k * k).reshape(k, k)
    names = [str(label) for label in classes.tolist()]
    table = [("", *names), *((name, *row) for name, row in zip(names, counts.tolist(), strict=True))]
    right, total = int(np.trace(counts)), len(truth)
    lines = ["Rows with a label: what they are (down) and what is predicted (across)", *text_table(table)]
    if total:
        lines += [f"  {right} of {total} are right: accuracy {right / total:.1%}", f"  {SEEN}"]
    return lines
