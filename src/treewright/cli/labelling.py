"""The whole job of ``fit``: what :func:`treewright.label_table` does with open rows, then written and told."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from treewright.app.job import label_rows
from treewright.app.labelled_table import LabelledTable
from treewright.app.rows import FitRows
from treewright.cli.console import Console, finite
from treewright.cli.files import write_reports
from treewright.cli.parser import EXIT_OK
from treewright.core.progress import stage
from treewright.data.columns_checked import AnyArray
from treewright.estimation.accuracy import AccuracyEstimate
from treewright.report.words import assumed_words

__all__ = ["class_counts", "fit_labeller"]


def fit_labeller(rows: FitRows, args: argparse.Namespace, console: Console) -> int:
    """The command ``fit``: label the rows, write what was asked for, and say what was reached."""
    job = label_rows(rows, console.note if args.verbose else lambda stage: None)
    with stage("files are written"):
        return _write(job, args, console)


def _write(job: LabelledTable, args: argparse.Namespace, console: Console) -> int:
    """Write what was asked for, and say what was reached."""
    try:
        with console.finishing(), console.writing("predictions", args.predictions):
            if args.predictions is not None:
                job.write_labels(args.predictions, args.escape_formulas)
            else:
                _ = job.explanation  # which the model file has too
    finally:  # whatever becomes of the predictions, the model is kept
        with console.finishing(), console.writing("model", args.out):
            job.save(args.out)
    if args.report:
        facts = job.facts(model_file=args.out)
        with console.finishing():
            write_reports(args.report, facts, console)
    console.result("\n".join([job.summary(), *console.written_lines()]), _document(job, console))
    return EXIT_OK


def _document(job: LabelledTable, console: Console) -> dict[str, Any]:
    model, labelled = job.model, job.n_labelled
    return {
        "estimator": type(model).__name__,
        "target": job.target,
        "classes": job.classes,
        "features": job.features,
        "status": model.status_,
        "reason": model.reason_,
        "seconds": job.budget.elapsed,
        "seed": model.random_state_,
        "repeatable": job.repeatable,
        "totals": job.totals,
        "levels_of_one_row": dict(job.levels_of_one_row),
        "accuracy": None if job.accuracy is None else _accuracy_document(job.accuracy),
        "no_accuracy": job.no_accuracy or None,
        "tree": None if job.tree is None else _tree_document(job),
        "rows": job.n_rows,
        "labelled": labelled,
        "unlabelled": job.n_rows - labelled,
        "left_out": 0,
        "predicted": class_counts(model.classes_, job.predicted),
        "files": console.written,
        "warnings": console.warned,
    }


def class_counts(classes: AnyArray, predicted: AnyArray) -> list[dict[str, Any]]:
    """Rows of each class, as the command line says them."""
    return [
        {"class": label, "rows": int(np.count_nonzero(predicted == label))} for label in np.asarray(classes).tolist()
    ]


def _accuracy_document(estimate: AccuracyEstimate) -> dict[str, Any]:
    document = estimate._asdict()
    counts = document.pop("counts")
    parts = (dict(zip(("found", "left_out"), counts[label], strict=True)) for label in estimate.recall)
    shares = estimate.recall.items()
    recall = [{"class": label, "share": share} | part for (label, share), part in zip(shares, parts, strict=True)]
    return document | {"recall": recall, "assumes": assumed_words(estimate)}


def _tree_document(job: LabelledTable) -> dict[str, Any]:
    record, agreement = job.tree.record_, job.agreement
    return {
        "estimator": type(job.tree).__name__,
        "status": record.status,
        "reason": record.reason,
        "objective": None if record.objective is None else finite(record.objective),
        "agreement": None if agreement is None else finite(agreement),
        "rules": job.rules,
    }
