"""``predict``: labels of new rows, within new totals if these are known, and a report of them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from treewright.app.answers import Answers
from treewright.app.options import TotalsOptions
from treewright.app.table_model import TableModel, leaf_sums
from treewright.app.totals import new_labels
from treewright.cli.asked import totals_options
from treewright.cli.console import Console
from treewright.cli.files import check_outputs, report_paths, write_reports
from treewright.cli.parser import EXIT_OK
from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.progress import note, stage
from treewright.data.columns_checked import AnyArray, listing
from treewright.data.tables.encoder import Surprises, TableEncoder
from treewright.data.tables.files import read_table, table_kind
from treewright.data.tables.writing import write_batches
from treewright.estimators.numbers import told_numbers
from treewright.exceptions import InvalidInputError
from treewright.report import Facts, new_rows_facts
from treewright.report.new_rows import number_notes, surprise_notes
from treewright.report.text import text_table, totals_table
from treewright.report.words import SUBTRACTED, count_words, totals_words

__all__ = ["predict"]


def predict(args: argparse.Namespace, console: Console) -> int:
    """The command ``predict``: labels of the rows of a table, written and told."""
    reports = {f"--report ({kind})": path for kind, path in report_paths(args.report).items()}
    check_outputs({"--out": args.out, **reports}, args.data)
    table_kind(args.out, writing=True)
    with stage("the model is read"):
        model = TableModel.read(args.model)
    new = _NewRows(model, args, totals_options(args))
    with console.writing("predictions", args.out), stage("rows are labelled"):
        write_batches(args.out, new.parts(), args.escape_formulas)
    new.surprises.warn(new.encoder)
    told_numbers(model.number_words(new.surprises))
    if args.report:
        write_reports(args.report, new.facts(), console)
    rows, totals = new.counts.sum(axis=0).tolist(), new.totals
    counts = [{"class": label, "rows": n} for label, n in zip(model.estimator.classes_.tolist(), rows, strict=True)]
    lines = text_table([("class", "rows"), *((str(c["class"]), c["rows"]) for c in counts)], indent="")
    if totals:
        whose = "the rows without an answer" if new.kept is not None else "these rows"
        told = [SUBTRACTED] if new.subtracted else []
        lines = [f"totals of {whose}:", *totals_table(totals), totals_words(totals), *told, "", *lines]
    lines += [new.answers.words] if new.answers.words else []
    document = {
        "rows": sum(rows),
        "answers": new.answers.document(),
        "predicted": counts,
        "totals": totals,
        "files": console.written,
        "warnings": console.warned,
    }
    console.result("\n".join([*lines, *console.written_lines()]), document)
    return EXIT_OK


@dataclass(eq=False)
class _NewRows:
    """What is counted while new rows are labelled."""

    model: TableModel
    args: argparse.Namespace
    options: TotalsOptions
    surprises: Surprises = field(default_factory=Surprises)
    totals: list[dict[str, Any]] = field(default_factory=list)
    """Asked and reached."""

    def __post_init__(self) -> None:
        tree = None if self.model.several_trees else self.model.tree_model
        self.tree = tree
        n_nodes = 1 if tree is None else tree.tree_.n_nodes
        self.counts: IntArray = np.zeros((n_nodes, len(self.model.estimator.classes_)), dtype=np.int64)
        self.likely: FloatArray = np.zeros(self.counts.shape)
        self.answers = Answers.asked(self.model.estimator, self.model.target, self.options, self.args.answers)

    @property
    def kept(self) -> IntArray | None:
        """Rows of each class among the answers that are kept; None where none is."""
        return self.answers.counts if self.answers.kept and self.answers.total else None

    @property
    def subtracted(self) -> bool:
        """Whether answers were subtracted from totals."""
        return self.options.totals_of == "all" and bool(self.totals) and self.kept is not None

    @property
    def encoder(self) -> TableEncoder | None:
        """What made 0/1 features of levels and filled gaps; None for models that take both as they are."""
        return self.model.encoder if isinstance(self.model.encoder, TableEncoder) else None

    def _gaps(self) -> BoolArray | None:
        """Features that new rows lack and those of the fit had, of models that take gaps as they are."""
        if self.encoder is not None or not self.surprises.gaps:
            return None
        names = self.model.feature_names
        if names is None:  # of an array: whichever column of the table it was
            return np.ones(self.model.estimator.n_features_in_, dtype=bool)
        return np.array([name in self.surprises.gaps for name in names], dtype=bool)

    def parts(self) -> Iterator[dict[str, Any]]:
        """Columns of predictions, part by part."""
        args, model = self.args, self.model
        marks = [*model.na, *self.options.na]
        if not self.options.asked_margins:
            batches = model.prediction_batches(args.data, marks, args.encoding, args.id, self.surprises, self.answers)
        else:  # labels within totals are about all rows at once
            columns, reached = _divided_columns(model, args, self.options, marks, self.surprises, self.answers)
            self.totals.extend(reached)
            batches = iter([columns])
        n_classes = self.counts.shape[1]
        for columns in batches:
            numbers = _numbers(columns["prediction"], model.estimator.classes_)
            place = numbers if self.tree is None else np.asarray(columns["leaf"]) * n_classes + numbers
            self.counts += np.bincount(place, minlength=self.counts.size).reshape(self.counts.shape)
            if self.tree is not None:
                shares = np.stack([columns[f"share_{label}"] for label in model.estimator.classes_.tolist()], axis=1)
                self.likely += leaf_sums(np.asarray(columns["leaf"]), shares, len(self.likely))
            yield columns
            note(detail=f"{self.counts.sum()} rows")

    def facts(self) -> Facts:
        """What a report says of them."""
        args, model = self.args, self.model
        n_rows = int(self.counts.sum())
        words = model.number_words(self.surprises)
        making = [
            ("table", f"{os.path.basename(args.data)}, {count_words(n_rows)}"),
            ("model", f"{os.path.basename(args.model)}, a {type(model.estimator).__name__}"),
        ]
        if self.answers.words:
            making.append(("answers", self.answers.words))
        if self.totals:
            making.append(self.options.totals_words(""))
        return new_rows_facts(
            model.estimator,
            self.counts,
            tree=self.tree,
            likely=None if self.tree is model.estimator else self.likely,
            then=model.leaves,
            title=f"Labels of {os.path.basename(args.data)}",
            target=model.target or "",
            totals=self.totals,
            kept=self.kept,
            subtracted=self.subtracted,
            notes=[*surprise_notes(self.surprises, self.encoder, n_rows), *number_notes(words)],
            gaps=self._gaps(),
            words=model.words,
            group_name=self.options.group_name,
            model_file=args.model,
            making=making,
        )


def _numbers(labels: AnyArray, classes: AnyArray) -> IntArray:
    """Class numbers of labels, all of which are classes."""
    known = classes.tolist()
    if isinstance(known[0], str):  # text is compared faster as what it is than as objects
        codes = pl.Series(labels.tolist(), dtype=pl.String).cast(pl.Enum(known)).to_physical()
        return np.asarray(codes.to_numpy(), dtype=np.int64)
    return np.searchsorted(classes, np.asarray(labels, dtype=classes.dtype))


def _divided_columns(
    model: TableModel,
    args: argparse.Namespace,
    options: TotalsOptions,
    marks: list[str],
    surprises: Surprises,
    answers: Answers,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Columns of predictions within new totals, and what was asked and reached."""
    groups = [margin.column for margin in options.asked_margins if margin.column is not None]
    carried = [name for name in (args.id, model.target) if name is not None]
    text = [*carried, *([] if model.encoder is None else model.encoder.text_columns)]
    table = read_table(args.data, na=marks, encoding=args.encoding, text=[name for name in text if name not in groups])
    if args.id is not None and args.id not in table.columns:
        raise InvalidInputError(f"--id: there is no column {args.id!r}; columns: {listing(table.columns)}")
    X = model.features_of(table, surprises)
    labels, shares, reached = new_labels(model.estimator, table, X, options, answers)
    return model.prediction_columns(table, X, labels, shares, args.id), reached
