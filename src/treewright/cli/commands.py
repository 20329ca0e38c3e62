"""The commands. Each reads, calls the library once, writes, and says what it did."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from treewright.app.labelled_table import totals_lines
from treewright.app.lone_levels import alone_lines, levels_alone
from treewright.app.making import about_fit
from treewright.app.planning import takes_unlabelled
from treewright.app.rows import FitRows, opened_rows
from treewright.app.table_model import TableModel
from treewright.app.totals import fitted_shares
from treewright.cli.asked import fit_options
from treewright.cli.console import Console, finite
from treewright.cli.files import check_outputs, report_paths, write_reports
from treewright.cli.labelling import class_counts, fit_labeller
from treewright.cli.parser import EXIT_OK
from treewright.cli.predicting import predict
from treewright.core.names import counted, printable
from treewright.core.progress import stage
from treewright.data.columns_checked import AnyArray, listing
from treewright.data.tables.files import table_kind
from treewright.data.tables.writing import write_table
from treewright.estimators.files import written_parameters
from treewright.estimators.kept_rows import kept_rows, kept_rows_words
from treewright.estimators.numbers import without_numbers
from treewright.models.octsvm.estimator import SuspectLabel
from treewright.models.totals.estimator import TotalsClassifier
from treewright.report import STATUS_WORDS, fit_facts
from treewright.report.text import text_table
from treewright.report.words import SEEN, parameter_words, proof_words, seed_words, teacher_words
from treewright.tree import tree_to_dict

__all__ = ["COMMANDS"]


def fit(args: argparse.Namespace, console: Console) -> int:
    """Fit a model to a table; write the model, and predictions and a report if asked."""
    _check_files(args, args.out or "model.zip")
    options = fit_options(args)
    with ExitStack() as opened:
        with stage("the table is read"):
            rows = opened_rows(args.data, options, opened)
        if args.out is None:
            args.out = "model.zip" if rows.labels_rows else "model.json"
            _check_files(args, args.out)
        return (fit_labeller if rows.labels_rows else _fit_tree)(rows, args, console)


def _check_files(args: argparse.Namespace, out: str) -> None:
    """Refuse files that could not be written."""
    reports = {f"--report ({kind})": path for kind, path in report_paths(args.report).items()}
    outputs = {"--out": out, "--predictions": args.predictions, **reports, "--suspects": args.suspects}
    check_outputs(outputs, args.data)
    for path in (args.predictions, args.suspects):
        if path is not None:
            table_kind(path, writing=True)


def _fit_tree(rows: FitRows, args: argparse.Namespace, console: Console) -> int:
    """Fit a model that is a tree."""
    # without unlabelled rows the labels are an array of strings or of whole numbers
    labels = rows.y[rows.used] if takes_unlabelled(rows.estimator) else np.array(rows.y[rows.used].tolist())
    rows.estimator.fit(rows.X[rows.used], labels, **rows.more)
    with console.finishing(), stage("files are written"):
        return _write_tree(rows, args, console)


def _write_tree(rows: FitRows, args: argparse.Namespace, console: Console) -> int:
    """Write a fitted tree and what else was asked for, and say what was found."""
    estimator, table, X, y, used, known = rows.estimator, rows.table, rows.X, rows.y, rows.used, rows.known
    estimator.feature_names_in_ = np.array(rows.names, dtype=object)

    numbers = without_numbers(estimator)  # of its own rows there is nothing to tell
    alone = levels_alone(table, rows.encoder, estimator)
    model = TableModel(estimator, rows.encoder, args.target, tuple(args.na), alone=alone, numbers=numbers)
    if not model.several_trees:
        estimator._note_rules(estimator._check_rows(X), model.words)
    predicted = estimator.predict(X)
    if hasattr(estimator, "transduction_"):  # what the fit says of the rows without a label, totals respected
        predicted = np.where(known, predicted, estimator.transduction_)
    name = args.model or "oct-h"
    facts = fit_facts(
        estimator,
        y,
        predicted,
        about_fit(rows, f"{name} fitted to {rows.file}", args.out),
        leaves=None if model.several_trees else estimator.apply(X),
        words=model.words,
    )
    if not model.several_trees:
        model = replace(model, leaves=facts.trees[0].leaves)
    with console.writing("model", args.out):
        model.write(args.out)
    if args.predictions is not None:
        columns = model.prediction_columns(table, X, predicted, fitted_shares(estimator), args.id)
        with console.writing("predictions", args.predictions):
            write_table(args.predictions, columns, args.escape_formulas)
    if args.suspects is not None:
        with console.writing("suspects", args.suspects):
            write_table(args.suspects, _suspect_columns(model, np.flatnonzero(used)), args.escape_formulas)
    write_reports(args.report, facts, console)

    right, n_known = int(np.count_nonzero(predicted[known] == y[known])), int(np.count_nonzero(known))
    left_out = int(np.count_nonzero(~used))
    lines = [str(model.rules), *model.notes, "", *_status_lines(estimator, facts.totals)]
    lines.append(
        f"training accuracy: {right / n_known:.2%} ({right} of {counted(n_known, 'row')} with a label). {SEEN}"
    )
    if hasattr(estimator, "relabeled_"):
        hint = "" if args.suspects is not None else " (--suspects FILE writes which)"
        lines.append(
            f"labels held for wrong: {np.count_nonzero(estimator.relabeled_)} of {counted(n_known, 'row')}{hint}"
        )
    if left_out:
        hint = "; --set teacher=auto makes use of them" if "teacher" in estimator.get_params(deep=False) else ""
        lines.append(
            f"left out of the fit: {counted(left_out, 'row')} without {args.target!r} ({name} is supervised{hint})"
        )
    if rows.options.seed_drawn:
        lines.append(f"seed: {seed_words(estimator.record_)}")
    if taught := teacher_words(estimator, len(y) - n_known):
        lines.append(taught)
    lines += alone_lines(alone)
    lines += console.written_lines()
    document = {
        **_model_document(model),
        "totals": facts.totals,
        "rows": len(y),
        "labelled": n_known,
        "unlabelled": len(y) - n_known,
        "left_out": left_out,
        "training_accuracy": right / n_known,
        "predicted": class_counts(estimator.classes_, predicted),
        "files": console.written,
        "warnings": console.warned,
    }
    console.result("\n".join(lines), document)
    return EXIT_OK


def show(args: argparse.Namespace, console: Console) -> int:
    """Command line: show a model."""
    model = TableModel.read(args.model)
    estimator = model.estimator
    names = model.feature_names
    rules = [] if model.rules is None else [model.rules, *model.notes, ""]
    if model.tree_model is not None and model.tree_model is not estimator:
        rules.insert(0, "tree that explains the labels:")
    lines = [
        type(estimator).__name__,
        f"target: {printable(model.target or 'without a name')}; classes: {listing(estimator.classes_.tolist())}",
        "features: " + (f"{estimator.n_features_in_} without names" if names is None else _joined(names)),
        *_category_lines(estimator, names),
        "parameters: " + parameter_words(estimator),
        f"rows of the fit in this file: {kept_rows_words(estimator)}",
        *alone_lines(model.alone, always=True),
        "",
        *rules,
        *_status_lines(estimator, getattr(estimator, "totals_", [])),
    ]
    tree = None if model.tree_model is None else tree_to_dict(model.tree_model.tree_)
    document = {**_model_document(model), "rows_kept": sum(kept_rows(estimator).values()), "tree": tree}
    console.result("\n".join(lines), document)
    return EXIT_OK


def solvers(args: argparse.Namespace, console: Console) -> int:
    """Command line: show the solvers of this machine."""
    from treewright.solvers import describe

    found = describe()
    header = ("solver", "installed", "licence", "can do")
    rows = [(s.name, s.version if s.installed else "no", s.licence, " ".join(s.capabilities)) for s in found]
    lines = text_table([header, *rows], indent="")
    lines += [
        f"{s.name}: {s.problem}; {s.remedy}" if s.remedy else f"{s.name}: {s.problem}" for s in found if s.problem
    ]
    console.result("\n".join(lines), {"solvers": [asdict(s) for s in found]})
    return EXIT_OK


def _suspect_columns(model: TableModel, rows: AnyArray) -> dict[str, AnyArray]:
    """The table of suspicious labels as columns; `rows` are the numbers of the fitted rows in their file, from 0."""
    table = model.estimator.relabel_table(words=model.words)
    numbers = rows[[entry.row for entry in table]] + 1
    others = {name: np.array([getattr(entry, name) for entry in table]) for name in SuspectLabel._fields[1:]}
    return {"row": numbers, **others}


COMMANDS: dict[str, Callable[[argparse.Namespace, Console], int]] = {
    "fit": fit,
    "predict": predict,
    "show": show,
    "solvers": solvers,
}


# ---------------------------------------------------------------------- from a fit to words


def _status_lines(estimator: Any, totals: list[dict[str, Any]]) -> list[str]:
    record = estimator.record_
    if isinstance(estimator, TotalsClassifier):
        return [f"labels: {record.reason}", *totals_lines(totals)]
    return [
        f"status: {record.status} ({STATUS_WORDS[record.status]})",
        *([f"why: {record.reason}"] if record.reason else []),
        ", ".join(f"{name}: {value}" for name, value in proof_words(record)) + f", time: {record.seconds:.1f} s",
        *totals_lines(totals),
    ]


def _joined(names: list[str]) -> str:
    return ", ".join(map(printable, names))


def _categories(estimator: Any, names: list[str] | None) -> dict[str, list[Any]]:
    """Levels of the categorical features by name."""
    known = getattr(estimator, "categories_", None) or []
    return {str(j) if names is None else names[j]: list(levels) for j, levels in enumerate(known) if levels is not None}


def _category_lines(estimator: Any, names: list[str] | None) -> list[str]:
    found = _categories(estimator, names)
    shown = (f"{printable(name)} ({listing(levels, limit=5)})" for name, levels in found.items())
    return ["categories: " + ", ".join(shown)] if found else []


def _model_document(model: TableModel) -> dict[str, Any]:
    estimator, record = model.estimator, model.estimator.record_
    return {
        "estimator": type(estimator).__name__,
        "target": model.target,
        "classes": estimator.classes_.tolist(),
        "features": model.feature_names,
        "categories": _categories(estimator, model.feature_names),
        "levels_of_one_row": None if model.alone is None else dict(model.alone),
        "parameters": {k: finite(v) if isinstance(v, float) else v for k, v in written_parameters(estimator).items()},
        "status": record.status,
        "reason": record.reason,
        **{
            name: None if (value := getattr(record, name)) is None else finite(value)
            for name in ("objective", "bound", "gap")
        },
        "seconds": record.seconds,
        "seed": record.seed,
        "repeatable": record.repeatable,
        "rules": model.rules,
        "totals": getattr(estimator, "totals_", []),
    }
