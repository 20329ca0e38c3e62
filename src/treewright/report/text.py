"""A report as plain text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike

from treewright.core.names import printable
from treewright.report.advice import advice
from treewright.report.facts import About, Facts, fit_facts
from treewright.report.html import facts_html
from treewright.report.words import (
    ASKED_OF,
    KEPT,
    LEAF_COLUMN,
    NEW_TREE,
    NOT_TRAINING,
    SEEN,
    SUBTRACTED,
    accuracy_words,
    asked_words,
    assumed_words,
    count_words,
    difference_words,
    group_sizes,
    largest_words,
    margin_words,
    new_accuracy_words,
    office_words,
    row_words,
    totals_words,
)
from treewright.tree.words import FeatureWords

__all__ = ["facts_text", "fit_report", "rendered_facts", "text_table", "totals_table"]

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?%?")
_WIDTH = 118


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
    words: Mapping[int, FeatureWords] | None = None,
    group_name: str = "",
    model_file: str = "",
    making: Iterable[tuple[str, str]] = (),
    totals_of: str = "unlabeled",
    form: str = "text",
) -> str:
    """Write a fit as text or as a page for people.

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
        Group of each row, for totals by group, and to say which groups lack labels.
    leaves : array-like of shape (n_rows,) or None
        Leaf of each row, as ``estimator.apply`` says; the tree is then written with numbers of leaves and the rows in
        each.
    words : mapping of int to FeatureWords, or None
        Words for features that are flags or dates, see :func:`treewright.data.tables.words.feature_words`.
    group_name, model_file : str
        Column of the groups and file of the model, if advice is to be commands of the command line.
    making : iterable of pairs of str
        What else is to be told of how it was made, such as :func:`treewright.report.table_making` of a table.
    totals_of : {"unlabeled", "all"}, default="unlabeled"
        Which rows the totals counted that the model was fitted to.
    form : {"text", "html"}, default="text"
        Plain text, or one HTML file that needs nothing else: no script, no request.

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
      Always saying "no" would be right on 2: 66.7%.
    <BLANKLINE>
    Predictions for all 4 rows
      class  rows  share
      no        2  50.0%
      yes       2  50.0%
    <BLANKLINE>
    <BLANKLINE>
    >>> page = fit_report(model, y, model.predict(X), form="html")
    >>> page.splitlines()[0], "<svg" in page, "<script" in page
    ('<!DOCTYPE html>', True, False)
    """
    about = About(title, target, groups, group_name, model_file, making, totals_of)
    facts = fit_facts(estimator, y, predicted, about, totals=totals, leaves=leaves, words=words)
    return rendered_facts(facts, form)


def rendered_facts(facts: Facts, form: str) -> str:
    """Write the facts of a report as "text" or as "html"."""
    if form not in ("text", "html"):
        raise ValueError(f"form is {form!r}; expected 'text' or 'html'")
    return facts_html(facts) if form == "html" else facts_text(facts)


def facts_text(facts: Facts) -> str:
    """Write the facts of a report as plain text, ending in a line end."""
    heading = printable(facts.title)
    made = _new_sections if facts.changes is not None else _label_sections if facts.explains else _fit_sections
    sections = [[heading, "=" * len(heading)], *made(facts)]
    told = [line for said in advice(facts) for line in _advice_lines(*said)]
    if told:
        sections.append(["What to do next", *told])
    sections.append(["How it was made", *(line for pair in facts.making for line in _pair_lines(*pair))])
    pairs = [(name, ", ".join(f"{key}={value}" for key, value in values)) for name, values in facts.parameters]
    if pairs:
        sections.append(["Parameters", *(line for pair in pairs for line in _pair_lines(*pair))])
    return "\n\n".join("\n".join(lines) for lines in sections) + "\n"


# ---------------------------------------------------------------------- sections


def _label_sections(facts: Facts) -> list[list[str]]:
    reached = ["  no totals were given: each row has the class that fits it best"]
    if facts.totals:
        reached = [*totals_table(facts.totals), f"  {totals_words(facts.totals)}"]
        reached += [f"  {SUBTRACTED}"] if facts.subtracted else []
    sections = [
        ["Asked and reached", *_data_lines(facts), *reached],
        *_warning_sections(facts),
        _accuracy_lines(facts),
        [f"Labels of all {facts.n_rows} rows, given ones as they are", *_count_lines(facts, facts.found)],
    ]
    if facts.trees and facts.agreed is not None:
        agreed, right = facts.agreed
        sections.append(
            [
                "A tree that explains the labels",
                f"  It agrees with them on {agreed} of {facts.n_hidden} rows without a label "
                f"({agreed / max(1, facts.n_hidden):.1%}), and with {right} of {facts.n_labelled} given labels.",
                f"  {LEAF_COLUMN}",
                *(f"  {note}" for note in facts.tree_notes),
                "",
                *_indented(facts.trees[0].rules),
            ]
        )
    return sections


def _new_sections(facts: Facts) -> list[list[str]]:
    """Of new rows that a fitted model labelled."""
    changes = facts.changes
    assert changes is not None
    target = [f"  target: {printable(facts.target)}"] if facts.target else []
    reached = ["  no totals were given: each row has the class that the model predicts"]
    if facts.totals:
        reached = [*totals_table(facts.totals), f"  {totals_words(facts.totals)}"]
        reached += [f"  {SUBTRACTED}"] if facts.subtracted else []
    rows = f"  {_rows_of(facts)}"
    changed, now = _count_lines(facts, facts.found), max(1, facts.n_rows)
    if changes.then is not None:
        then = max(1, sum(changes.then))
        both = zip(facts.classes, changes.then, facts.found, strict=True)
        table = [(name, a, f"{a / then:.1%}", b, f"{b / now:.1%}") for name, a, b in both]
        changed = text_table([("class", "at the fit", "share", "now", "share"), *table])
    changed += [line for note in changes.notes for line in _wrapped("  -", printable(note))]
    if changes.leaves:
        then = max(1, sum(leaf[2] for leaf in changes.leaves))
        leaves = [(n, label, a, f"{a / then:.1%}", b, f"{b / now:.1%}") for n, label, a, b in changes.leaves]
        changed += ["", *text_table([("leaf", "class", "at the fit", "share", "now", "share"), *leaves])]
    sections = [
        ["Asked and reached", *target, rows, *reached],
        *_warning_sections(facts),
        ["What changed since the fit", *changed],
        ["How accurate the labels are likely to be", *_wrapped(" ", new_accuracy_words(changes.estimated))],
    ]
    if facts.trees:
        agreed = [] if facts.agreed is None else [f"  {_agreement(facts)}"]
        notes = (f"  {note}" for note in facts.tree_notes)
        rules = _indented(facts.trees[0].rules)
        sections.append([NEW_TREE, *agreed, f"  {LEAF_COLUMN}", *notes, "", *rules])
    return sections


def _rows_of(facts: Facts) -> str:
    """New rows, and how many had a label already."""
    kept = f"; {KEPT}" if facts.n_labelled else ""
    return (row_words(facts.n_rows, facts.n_labelled) if facts.n_labelled else count_words(facts.n_rows)) + kept


def _agreement(facts: Facts) -> str:
    agreed = 0 if facts.agreed is None else facts.agreed[0]
    return (
        f"It agrees with the labels on {agreed} of {count_words(facts.n_rows)} ({agreed / max(1, facts.n_rows):.1%})."
    )


def _fit_sections(facts: Facts) -> list[list[str]]:
    sections = [["Data", *_data_lines(facts), *_count_lines(facts, facts.given)]]
    if facts.totals:
        used = "the fit used these totals"
        part = used if facts.totals_used else f"{facts.model} does not know totals, they had no part in the fit"
        hidden = f"  {count_words(facts.n_hidden)} without a label; {part}"
        less = [f"  {SUBTRACTED}"] if facts.subtracted else []
        sections.append([f"Known totals {ASKED_OF[facts.subtracted]}", *totals_table(facts.totals), hidden, *less])
    said = [f"The first of {facts.n_voting} trees, which vote."] if facts.n_voting > 1 else []
    said += [LEAF_COLUMN] if _numbered(facts) else []
    said += facts.tree_notes
    notes = [*(f"  {line}" for line in said), ""] if said else []
    return [
        *sections,
        *_warning_sections(facts),
        _confusion_lines(facts),
        [f"Predictions for all {facts.n_rows} rows", *_count_lines(facts, facts.found)],
        ["Tree", *notes, *_indented(facts.trees[0].rules)],
    ]


def _warning_sections(facts: Facts) -> list[list[str]]:
    lines = [line for text in facts.warnings for line in _wrapped("  -", printable(text))]
    return [["Warnings", *lines]] if lines else []


def _numbered(facts: Facts) -> bool:
    """Whether rows are known by leaf."""
    return any(leaf.rows is not None for leaf in facts.trees[0].leaves.values())


def _data_lines(facts: Facts) -> list[str]:
    rows = f"  {row_words(facts.n_rows, facts.n_labelled)}"
    return [f"  target: {printable(facts.target)}", rows] if facts.target else [rows]


def _count_lines(facts: Facts, counts: list[int]) -> list[str]:
    """Rows and shares of the classes."""
    total = max(1, sum(counts))
    table = [(name, n, f"{n / total:.1%}") for name, n in zip(facts.classes, counts, strict=True)]
    return text_table([("class", "rows", "share"), *table])


def _accuracy_lines(facts: Facts) -> list[str]:
    words = accuracy_words(facts.estimate, facts.no_estimate, facts.option("time_limit"))
    lines = ["How accurate the labels are likely to be", *_wrapped(" ", printable(words))]
    if facts.estimate is None:
        return [*lines, "  The accuracy on given labels is no guess at it:", f"  {NOT_TRAINING}"]
    table = [
        (name, n, f"{share:.1%}")
        for name, n, share in zip(facts.classes, facts.left_out, facts.recall, strict=True)
        if share is not None
    ]
    return [
        *lines,
        *text_table([("class", "labels left out", "found"), *table]),
        *(line for words in assumed_words(facts.estimate) for line in _wrapped(" ", words)),
        "  The accuracy on given labels is another thing:",
        f"  {NOT_TRAINING}",
    ]


def _confusion_lines(facts: Facts) -> list[str]:
    counts = facts.confusion
    assert counts is not None
    rows = ((name, *row) for name, row in zip(facts.classes, counts.tolist(), strict=True))
    right, total = int(counts.trace()), facts.n_labelled
    table = text_table([("", *facts.classes), *rows])
    lines = ["Rows with a label: what they are (down) and what is predicted (across)", *table]
    if total:
        lines += [f"  {right} of {total} are right: accuracy {right / total:.1%}", f"  {SEEN}"]
        lines.append(f"  {largest_words(facts.classes, facts.given)}")
    return lines


def _advice_lines(text: str, command: str) -> list[str]:
    return [*_wrapped("  -", text), *([f"      {command}"] if command else [])]


def _pair_lines(name: str, words: str) -> list[str]:
    return _wrapped(f"  {printable(name)}:", printable(words))


def _wrapped(line: str, text: str) -> list[str]:
    """A line with words behind it, broken where it would be too long."""
    lines = []
    for word in text.split(" "):
        if len(line) + 1 + len(word) > _WIDTH:
            lines.append(line)
            line = "   "
        line += f" {word}"
    return [*lines, line]


# ---------------------------------------------------------------------- tables


def text_table(rows: Sequence[Sequence[object]], indent: str = "  ") -> list[str]:
    r"""Lay out rows of cells in columns for a report: text to the left, numbers to the right.

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
    r"""Lay out in a report the totals that were asked for and what was reached.

    Parameters
    ----------
    reached : sequence of mappings
        An estimator's ``totals_``, or what :meth:`treewright.data.ClassTotals.table` gives; with ``labelled`` in each,
        what was asked of all rows is told too.
    indent : str
        What each line starts with.

    Examples
    --------
    >>> row = {"group": None, "class": "yes", "low": 3, "high": 5, "reached": 6, "deviation": 1}
    >>> print("\n".join(totals_table([row], indent="")))
    class  asked   reached  difference
    yes    3 to 5        6          +1
    >>> print("\n".join(totals_table([row | {"labelled": 4}], indent="")))
    class  of all rows  labelled  asked   reached  difference
    yes    7 to 9              4  3 to 5        6          +1
    """
    grouped, crossing = any(row["group"] is not None for row in reached), any("margin" in row for row in reached)
    whole = bool(reached) and all("labelled" in row for row in reached)
    head = [
        *(["by"] if crossing else []),
        *(["group"] if grouped else []),
        "class",
        *(["of all rows", "labelled"] if whole else []),
    ]
    table: list[list[object]] = [[*head, "asked", "reached", "difference"]]
    sizes = group_sizes(reached)
    for row in reached:
        size = sizes[row.get("margin", 0), row["group"]]
        group = [margin_words(row)] if crossing else []
        group += ["" if row["group"] is None else str(row["group"])] if grouped else []
        given = [office_words(row, size), row["labelled"]] if whole else []
        asked = asked_words(row, size)
        table.append([*group, str(row["class"]), *given, asked, row["reached"], difference_words(row)])
    return text_table(table, indent)


def _is_numeric(cell: object) -> bool:
    return _NUMBER.fullmatch(str(cell)) is not None


def _indented(text: str) -> list[str]:
    """Lines of a text, further in."""
    return [f"  {line}" for line in text.splitlines()]
