"""What the whole job returns: labels of all rows, how accurate they are, a tree, a report and a model."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from treewright.app.lone_levels import alone_lines, levels_alone
from treewright.app.making import about_fit
from treewright.app.register import Labelled, explained_labels
from treewright.app.rows import FitRows
from treewright.app.table_model import TableModel
from treewright.app.warned import noted_warnings
from treewright.core.budget import Budget
from treewright.core.files import replacing
from treewright.core.names import counted, option
from treewright.data.columns_checked import AnyArray
from treewright.data.tables.cells import as_series
from treewright.data.tables.writing import write_batches
from treewright.estimation.accuracy import AccuracyEstimate
from treewright.estimators.numbers import without_numbers
from treewright.optimize.record import FitRecord
from treewright.report import Explanation, Facts, facts_html, facts_text, labels_facts, office_totals
from treewright.report.text import totals_table
from treewright.report.trees import absent_notes
from treewright.report.words import (
    ASKED_OF,
    SUBTRACTED,
    accuracy_words,
    assumed_words,
    left_out_words,
    seed_words,
    totals_words,
)

__all__ = ["LabelledTable", "is_page", "report_bytes", "totals_lines"]


class LabelledTable:
    """Labels of all rows of a table, which :func:`treewright.label_table` makes.

    Attributes
    ----------
    labels : polars DataFrame
        A row for each of the table, in its order: the column that names the rows if there is one, ``label``, a share
        ``share_<class>`` for each class, whose sums over the rows without a label are the totals, and ``leaf``, the
        number of the leaf of the tree that the row is in.
    accuracy : AccuracyEstimate or None
        How many labels are likely to be right, see :func:`treewright.estimated_accuracy`.
    no_accuracy : str
        Why that is not known; empty where it is.
    totals : list of dict
        What was asked and reached for each class (of each group, of each margin): ``group``, ``class``, ``low``,
        ``high``, ``reached``, ``deviation``.
    model : TotalsClassifier or C2RFClassifier
        The fitted model that labels rows.
    tree : S2OCTClassifier or None
        The fitted tree that explains the labels; None where one model alone was asked for.
    classes : list
        The classes.

    Examples
    --------
    >>> import polars as pl
    >>> from treewright import label_table
    >>> people = pl.DataFrame({"income": range(1000, 5000, 100), "works": ["no"] * 5 + [None] * 30 + ["yes"] * 5})
    >>> job = label_table(
    ...     people, target="works", totals={"yes": 20, "no": 10}, estimator="logistic", max_depth=1, random_state=0
    ... )
    >>> job.labels["label"].value_counts(sort=True).rows()
    [('yes', 25), ('no', 15)]
    >>> [(row["class"], row["reached"]) for row in job.totals]
    [('no', 10), ('yes', 20)]
    >>> job.labels.columns
    ['label', 'share_no', 'share_yes', 'leaf']
    >>> print(job.summary().splitlines()[0])
    totals of the rows without a label:
    """

    def __init__(
        self, rows: FitRows, found: Labelled, accuracy: AccuracyEstimate | None, no_accuracy: str, budget: Budget
    ) -> None:
        self.accuracy, self.no_accuracy, self.budget = accuracy, no_accuracy, budget
        self.model, self.tree = rows.estimator, rows.tree
        self.classes: list[Any] = self.model.classes_.tolist()
        self.warnings: Sequence[str] = ()
        """What the report says was warned of."""
        self._rows, self._found = rows, found
        self._explanation: Explanation | None = None
        for part in (self.model, self.tree):
            if part is not None:
                part.feature_names_in_ = np.array(rows.names, dtype=object)
        numbers = without_numbers(self.model)  # of its own rows there is nothing to tell
        options, alone = rows.options, levels_alone(rows.table, rows.encoder, self.model)
        self._file = TableModel(
            self.model, rows.encoder, options.target, tuple(options.na), self.tree, alone=alone, numbers=numbers
        )

    def __repr__(self) -> str:
        rows = counted(self.n_rows, "row")
        return f"<LabelledTable: {self.target!r} of {rows}, {self.n_labelled} of them with a label>"

    # ------------------------------------------------------------------ what was asked

    @property
    def target(self) -> str:
        """The column with the labels."""
        return self._rows.options.target

    @property
    def features(self) -> list[str]:
        """Names of the features."""
        return self._rows.names

    @property
    def levels_of_one_row(self) -> Mapping[str, int]:
        """Levels of text that stand in the model file and that one row alone has, by column."""
        return self._file.alone or {}

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self._rows.n_rows

    @property
    def n_labelled(self) -> int:
        """Number of rows with a label."""
        return int(np.count_nonzero(self._rows.known))

    # ------------------------------------------------------------------ what was found

    @cached_property
    def labels(self) -> pl.DataFrame:
        """Labels, shares and leaves of all rows; see the class."""
        shares = self._found.shares()
        columns: dict[str, Any] = {"label": self._found.column()}
        columns |= {f"share_{label}": shares[:, k] for k, label in enumerate(self.classes)}
        if self.explanation is not None:
            columns["leaf"] = self.explanation.leaves
        ids = self._rows.ids
        if ids is not None:
            name = ids.name
            while name in columns:
                name = f"given_{name}"
            columns = {name: ids} | columns
        return pl.DataFrame([as_series(name, values) for name, values in columns.items()])

    @cached_property
    def totals(self) -> list[dict[str, Any]]:
        """Totals asked and reached; see the class."""
        rows, totals = self._rows, self.model.totals_
        if rows.options.totals_of == "all":
            totals = office_totals(totals, rows.y, rows.more.get("groups"))
        return list(totals)

    @property
    def explanation(self) -> Explanation | None:
        """How the tree explains the labels; None where there is none."""
        if self._explanation is None and self.tree is not None:
            self._explanation = explained_labels(self._rows, self._found, self._file, lambda parts: deque(parts, 0))
        return self._explanation

    @cached_property
    def predicted(self) -> AnyArray:
        """Labels of all rows as an array."""
        return self._found.labels()

    @property
    def rules(self) -> str | None:
        """The tree as text, with numbers of leaves and what is in them; None where there is none."""
        explanation = self.explanation
        return None if explanation is None else explanation.rules(self.predicted)

    @property
    def agreement(self) -> float | None:
        """Share of the rows without a label to which the tree gives their label."""
        explanation = self.explanation
        return None if explanation is None else explanation.agreement(self.predicted, ~self._rows.known)

    @property
    def repeatable(self) -> bool:
        """Whether the same seed gives the same again, however fast the machine is."""
        return self._last_record.repeatable and not self._is_short

    # ------------------------------------------------------------------ what is written

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model, which :func:`treewright.load_model` and ``treewright predict`` read."""
        known = None if self._explanation is None else self._explanation.facts(self.predicted).leaves
        replace(self._file, leaves=known).write(str(path))

    def write_labels(self, path: str | os.PathLike[str], escape_formulas: bool = False) -> None:
        """Write labels beside the number of each row and the target as given, as ``.csv`` or ``.parquet``."""

        def write(parts: Any) -> None:
            write_batches(path, parts, escape_formulas)

        with noted_warnings():
            self._explanation = explained_labels(self._rows, self._found, self._file, write)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a report for people: ``.html`` is one page that needs nothing else, all else plain text."""
        with replacing(path) as file:
            file.write(report_bytes(self.facts(), path))

    def facts(self, model_file: str = "") -> Facts:
        """What the report says; with a file of the model, in words of the command line."""
        rows = self._rows
        title = f"Labels of {rows.file or 'a table'}"
        facts = labels_facts(
            self.model,
            rows.y,
            self.predicted,
            about_fit(rows, title, model_file, _parts_words(self.accuracy)),
            estimate=self.accuracy,
            no_estimate=self.no_accuracy,
            explanation=self.explanation,
        )
        return replace(facts, warnings=tuple(self.warnings))

    def summary(self) -> str:
        """What was reached, in lines: totals, accuracy, the tree, and the seed if it was drawn."""
        totals, options, lines = self.totals, self._rows.options, totals_lines(self.totals)
        if totals:
            lines.append(totals_words(totals))
            lines += [SUBTRACTED] if options.totals_of == "all" else []
        lines.append(f"accuracy: {accuracy_words(self.accuracy, self.no_accuracy, option('time_limit'))}")
        if self.accuracy is not None and self.accuracy.shares != "totals":
            lines.append(assumed_words(self.accuracy)[0])
        if self.explanation is not None:
            lines += ["", f"a tree that agrees with {self.agreement:.1%} of the labels of rows without one:"]
            facts = self.explanation.facts(self.predicted)
            lines += [facts.rules, *facts.notes, *absent_notes(facts, totals), ""]
        if options.seed_drawn or not self.repeatable:
            lines.append(f"seed: {seed_words(self._last_record, option('random_state'), self._is_short)}")
        return "\n".join([*lines, *alone_lines(self.levels_of_one_row)])

    # ------------------------------------------------------------------ inner

    @property
    def _last_record(self) -> FitRecord:
        """The record whose end tells whether all can be had again: that of the tree, unless there is none."""
        record: FitRecord = (self.model if self.tree is None else self.tree).record_
        return record

    @property
    def _is_short(self) -> bool:
        return self.accuracy is not None and self.accuracy.short


def is_page(path: str | os.PathLike[str]) -> bool:
    """Whether the report of a job is to be a page, by the name of its file."""
    return Path(path).suffix.lower() in (".html", ".htm")


def report_bytes(facts: Facts, path: str | os.PathLike[str]) -> bytes:
    """The report of a job in UTF-8, as the name of its file says."""
    return (facts_html if is_page(path) else facts_text)(facts).encode("utf-8")


def totals_lines(reached: list[dict[str, Any]]) -> list[str]:
    """Totals that a job was asked for and reached, as lines."""
    subtracted = any("labelled" in row for row in reached)
    return [f"totals {ASKED_OF[subtracted]}:", *totals_table(reached)] if reached else []


def _parts_words(estimate: AccuracyEstimate | None) -> list[tuple[str, str]]:
    """What the estimate rests on."""
    if estimate is None or not estimate.n_fits:
        return []
    fits, parts = estimate.n_fits, estimate.n_splits
    words = f"{left_out_words(estimate)}, in {f'{fits} of ' if fits < parts else ''}{counted(parts, 'part')}"
    words += "; each was found by a model that had learned from the other parts and the totals"
    if estimate.short:
        words += "; with more time all are left out, and the interval is narrower"
    return [("accuracy", words)]
