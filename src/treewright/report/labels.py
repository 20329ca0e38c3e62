"""Labels within totals as a plain-text report: what was asked, what was reached, how sure it is, and a tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from treewright.data._checks import AnyArray, as_column, missing_mask
from treewright.estimators.accuracy import AccuracyEstimate
from treewright.exceptions import InvalidInputError
from treewright.names import printable
from treewright.report.text import (
    STATUS_WORDS,
    class_numbers,
    count_lines,
    count_words,
    data_lines,
    indented,
    parameter_words,
    text_table,
    totals_table,
)

__all__ = ["Explanation", "accuracy_words", "labels_report", "totals_words"]

_NOT_TRAINING = "labels that the fit has seen are found again nearly always, which says nothing about the others."


@dataclass(frozen=True, eq=False)
class Explanation:
    """A tree beside the labels that it explains.

    Attributes
    ----------
    tree : estimator
        The fitted tree.
    leaves, labels : ndarray of shape (n_rows,)
        Leaf of each row, and the class that the tree gives it.
    """

    tree: Any
    leaves: AnyArray
    labels: AnyArray

    @classmethod
    def of(cls, tree: Any, X: AnyArray) -> Explanation:
        """Route rows down a tree."""
        return cls(tree, tree.apply(X), tree.predict(X))

    def agreement(self, labels: AnyArray, rows: AnyArray) -> float:
        """Share of some rows on which tree and labels agree.

        Examples
        --------
        >>> found = Explanation(None, np.array([1, 1, 2]), np.array(["a", "a", "b"]))
        >>> found.agreement(np.array(["a", "b", "b"]), np.array([False, True, True]))
        0.5
        """
        return float(np.mean(self.labels[rows] == labels[rows])) if np.any(rows) else float("nan")

    def rules(self, labels: AnyArray) -> str:
        """The tree with numbers of leaves, the rows in each, and how many of them are labelled as the leaf says."""
        texts = {}
        for leaf in range(self.tree.tree_.n_nodes):
            inside = self.leaves == leaf
            label, n = self.tree.classes_[self.tree.tree_.labels[leaf]], int(np.count_nonzero(inside))
            told = f", {np.mean(labels[inside] == label):.1%} of them labelled so" if n else ""
            texts[leaf] = f"leaf {leaf}: {label}  ({count_words(n)}{told})"
        return str(self.tree.export_text(leaf_texts=texts))


def accuracy_words(estimate: AccuracyEstimate | None, why: str = "") -> str:
    """What labels left out say of the accuracy, in a sentence; or why they say nothing.

    Examples
    --------
    >>> accuracy_words(AccuracyEstimate(0.8, 0.71, 0.86, 0.95, 120, {}))
    '80.0% of the labels are likely to be right (95% interval: 71.0% to 86.0%), by 120 labels left out in turn'
    """
    if estimate is None:
        return f"not known, no labels were left out: {why}"
    return (
        f"{estimate.value:.1%} of the labels are likely to be right ({estimate.level:.0%} interval: {estimate.low:.1%} "
        f"to {estimate.high:.1%}), by {estimate.n_labels} labels left out in turn"
    )


def totals_words(reached: list[dict[str, Any]]) -> str:
    """How many totals were met.

    Examples
    --------
    >>> row = {"group": None, "class": "yes", "low": 3, "high": 5, "reached": 6, "deviation": 1}
    >>> totals_words([row, row | {"reached": 4}])
    '1 of 2 totals is missed'
    """
    missed = sum(not row["low"] <= row["reached"] <= row["high"] for row in reached)
    if not missed:
        return f"all {len(reached)} totals are met to the row" if len(reached) > 1 else "the total is met to the row"
    return f"{missed} of {len(reached)} totals {'is' if missed == 1 else 'are'} missed"


def labels_report(
    labeller: Any,
    y: ArrayLike,
    labels: ArrayLike,
    *,
    title: str = "",
    target: str = "",
    estimate: AccuracyEstimate | None = None,
    no_estimate: str = "it was not asked for",
    explanation: Explanation | None = None,
) -> str:
    """Write labels within totals as text for people.

    Parameters
    ----------
    labeller : TotalsClassifier
        The fitted classifier.
    y : array-like of shape (n_rows,)
        Labels of all rows as given, NaN or None where there is none.
    labels : array-like of shape (n_rows,)
        Labels of all rows as found.
    title : str
        First line, by default the name of the classifier.
    target : str
        Name of what is labelled.
    estimate : AccuracyEstimate or None
        How accurate labels are likely to be, see :func:`treewright.estimated_accuracy`.
    no_estimate : str
        Why there is none.
    explanation : Explanation or None
        A tree that explains the labels.

    Returns
    -------
    str
        The report, ending in a line end.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from treewright import TotalsClassifier
    >>> X, y = np.arange(6.0)[:, None], np.array(["no", None, None, None, None, "yes"], dtype=object)
    >>> model = TotalsClassifier(LogisticRegression()).fit(X, y, totals={"yes": 1})
    >>> text = labels_report(model, y, model.transduction_, title="Labels", target="employed")
    >>> print(text[: text.index("How accurate")])
    Labels
    ======
    <BLANKLINE>
    Asked and reached
      target: employed
      6 rows: 2 with a label, 4 without
      class  asked  reached  difference
      no         3        3           0
      yes        1        1           0
      all 2 totals are met to the row
    <BLANKLINE>
    <BLANKLINE>
    """
    given, found = as_column(y, "y"), as_column(labels, "labels")
    if len(given) != len(found):
        raise InvalidInputError(f"y has {len(given)} rows, labels has {len(found)}")
    known, classes = ~missing_mask(given), labeller.classes_
    numbers = class_numbers(found, classes, "labels")
    truth = class_numbers(given[known], classes, "y")
    heading = printable(title or type(labeller).__name__)
    sections = [
        [heading, "=" * len(heading)],
        ["Asked and reached", *data_lines(known, target), *_reached_lines(labeller)],
        _accuracy_lines(estimate, no_estimate, truth, classes),
        [f"Labels of all {len(found)} rows, given ones as they are", *count_lines(numbers, classes)],
    ]
    if explanation is not None:
        sections.append(_tree_lines(explanation, given, found, known))
    sections.append(_making_lines(labeller, explanation))
    return "\n\n".join("\n".join(lines) for lines in sections) + "\n"


def _reached_lines(labeller: Any) -> list[str]:
    if not labeller.totals_:
        return ["  no totals were given: each row has the class that fits it best"]
    return [*totals_table(labeller.totals_), f"  {totals_words(labeller.totals_)}"]


def _accuracy_lines(estimate: AccuracyEstimate | None, why: str, truth: AnyArray, classes: AnyArray) -> list[str]:
    lines = ["How accurate the labels are likely to be", f"  {accuracy_words(estimate, why)}"]
    if estimate is None:
        return [*lines, "  The accuracy on given labels is no guess at it:", f"  {_NOT_TRAINING}"]
    times = np.bincount(truth, minlength=len(classes)).tolist()
    table = [
        (str(label), n, f"{estimate.recall[label]:.1%}")
        for label, n in zip(classes.tolist(), times, strict=True)
        if label in estimate.recall
    ]
    return [
        *lines,
        *text_table([("class", "labels", "found when left out"), *table]),
        "  Classes count as the totals say, not as they were labelled.",
        "  The accuracy on given labels is another thing:",
        f"  {_NOT_TRAINING}",
    ]


def _tree_lines(explanation: Explanation, given: AnyArray, found: AnyArray, known: AnyArray) -> list[str]:
    n_right = int(np.count_nonzero(explanation.labels[known] == given[known]))
    agreed = int(np.count_nonzero((explanation.labels == found) & ~known))
    n_hidden = int(np.count_nonzero(~known))
    return [
        "A tree that explains the labels",
        f"  It agrees with them on {agreed} of {n_hidden} rows without a label ("
        f"{agreed / max(1, n_hidden):.1%}), and with {n_right} of {int(np.count_nonzero(known))} given labels.",
        '  Numbers of leaves are those of the column "leaf" of the predictions.',
        "",
        *indented(explanation.rules(found)),
    ]


def _making_lines(labeller: Any, explanation: Explanation | None) -> list[str]:
    wrapped = labeller.estimator if isinstance(labeller.estimator, str) else type(labeller.estimator).__name__
    made = getattr(labeller.estimator_, "record_", wrapped)
    lines = ["How it was made", f"  labels: {labeller.record_.reason}, {labeller.record_.seconds:.1f} seconds"]
    lines += [f"  scores: {printable(str(made))}", f"  parameters: {parameter_words(labeller)}"]
    if explanation is not None:
        record = explanation.tree.record_
        lines += [
            f"  tree: {record.status}, {STATUS_WORDS[record.status]}; {record.seconds:.1f} seconds",
            *([f"  why: {record.reason}"] if record.reason else []),
            f"  parameters: {parameter_words(explanation.tree)}",
        ]
    return lines
