"""The whole job of ``fit``: labels within totals, how accurate they are likely to be, and a tree that explains them."""

from __future__ import annotations

import argparse
import os
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from treewright.app.large_register import Learned
from treewright.cli.console import Console, finite
from treewright.cli.files import TableModel, write_reports
from treewright.cli.lone_levels import alone_lines, levels_alone
from treewright.cli.making import about
from treewright.cli.parser import EXIT_OK
from treewright.cli.reading import FitRows
from treewright.cli.register import Labelled, labelled, lesson_of_tree, write_labels
from treewright.cli.totals import named_margins
from treewright.core.budget import Budget, interrupts_break_off
from treewright.core.names import counted
from treewright.core.progress import stage, timed
from treewright.data.columns_checked import AnyArray
from treewright.data.level_groups import LevelGroups
from treewright.data.table import TableEncoder
from treewright.estimation.accuracy import AccuracyEstimate, estimated_accuracy
from treewright.estimators.numbers import without_numbers
from treewright.exceptions import InvalidInputError
from treewright.optimize.record import FitRecord
from treewright.report import Explanation, labels_facts, office_totals
from treewright.report.facts import class_numbers
from treewright.report.text import totals_table
from treewright.report.trees import absent_notes
from treewright.report.words import (
    ASKED_OF,
    INTERRUPTED,
    SUBTRACTED,
    accuracy_words,
    assumed_words,
    left_out_words,
    seed_words,
    totals_words,
)

__all__ = ["class_counts", "fit_labeller", "totals_lines"]

_TIME_LIMIT = 60.0
"""Seconds of the tree, unless others are asked for, of the whole job."""
_FOLDS, _FEWEST_FOLDS = 10, 3
"""Parts into which labels are divided, and of which are left out; fewer of very many labels."""
_PART_CELLS = 5e6
"""Labels times features times classes, of all parts that are left out: some ten seconds to a minute."""
_SCORED = 20_000
"""Unlabelled rows that fits without some of the labels are given."""
_LEFT_OUT = 2000
"""Labels that are left out; of twice as many, parts until these are reached, which says enough."""
_LEAST_TREE, _TREE_SHARE = 5.0, 0.25
"""Seconds of the tree of a register that comes in parts: at least so many, else this share of those of the labels."""


def fit_labeller(rows: FitRows, args: argparse.Namespace, console: Console) -> int:
    """Label the rows, write what was asked for, and say what was reached."""
    budget = Budget(args.time_limit)
    with timed(budget):
        return _fit_within(rows, args, console, budget)


def _fit_within(rows: FitRows, args: argparse.Namespace, console: Console, budget: Budget) -> int:
    labeller = rows.estimator
    told = _Stages(console, budget, args.verbose)
    with stage("labels"):
        found = labelled(rows, args.n_jobs)
    told.say("labels found")
    labeller.totals_ = named_margins(labeller.totals_, args)
    estimate, why = _estimate(rows, found.learned, told)
    seconds = _tree_seconds(rows, args, budget)
    hurried = why == INTERRUPTED
    lost = not _explain(rows, found, min(seconds, _LEAST_TREE) if hurried else seconds, hurried, told)
    rows = replace(rows, tree=None) if lost else rows
    for part in (labeller, rows.tree):
        if part is not None:
            part.feature_names_in_ = np.array(rows.names, dtype=object)

    with stage("files are written"):
        return _write(rows, found, estimate, why, args, console, budget)


def _write(
    rows: FitRows,
    found: Labelled,
    estimate: AccuracyEstimate | None,
    why: str,
    args: argparse.Namespace,
    console: Console,
    budget: Budget,
) -> int:
    """Write what was asked for, and say what was reached."""
    labeller, known, labels = rows.estimator, rows.known, found.labels()
    totals = labeller.totals_
    if args.totals_of == "all":
        totals = office_totals(totals, rows.y, rows.more.get("groups"))
    numbers = without_numbers(labeller)  # of its own rows there is nothing to tell
    alone = levels_alone(rows.table, rows.encoder, labeller)
    model = TableModel(labeller, rows.encoder, args.target, tuple(args.na), rows.tree, alone=alone, numbers=numbers)
    explanation = None
    try:
        with console.finishing(), console.writing("predictions", args.predictions):
            explanation = write_labels(rows, found, model, args)
    finally:  # whatever becomes of the predictions, the model is kept
        leaves = None if explanation is None else explanation.facts(labels).leaves
        with console.finishing(), console.writing("model", args.out):
            replace(model, leaves=leaves).write(args.out)
    if args.report:
        facts = labels_facts(
            labeller,
            rows.y,
            labels,
            about(rows, args, f"Labels of {os.path.basename(args.data)}", _parts_words(estimate)),
            estimate=estimate,
            no_estimate=why,
            explanation=explanation,
        )
        with console.finishing():
            write_reports(args.report, facts, console)
    agreement = None if explanation is None else explanation.agreement(labels, ~known)
    console.result(
        "\n".join(
            [
                *_lines(totals, args, labels, estimate, why, explanation, agreement),
                *_seed_lines(rows, estimate, args),
                *alone_lines(alone),
                *console.written_lines(),
            ]
        ),
        {
            "estimator": type(labeller).__name__,
            "target": args.target,
            "classes": labeller.classes_.tolist(),
            "features": rows.names,
            "status": labeller.status_,
            "reason": labeller.reason_,
            "seconds": budget.elapsed,
            "seed": labeller.random_state_,
            "repeatable": _record_told(rows).repeatable and not _is_short(estimate),
            "totals": totals,
            "levels_of_one_row": alone,
            "accuracy": None if estimate is None else _accuracy_document(estimate),
            "no_accuracy": why or None,
            "tree": None if explanation is None else _tree_document(explanation, labels, agreement),
            "rows": len(rows.y),
            "labelled": int(np.count_nonzero(known)),
            "unlabelled": int(np.count_nonzero(~known)),
            "left_out": 0,
            "predicted": class_counts(labeller.classes_, labels),
            "files": console.written,
            "warnings": console.warned,
        },
    )
    return EXIT_OK


@dataclass(frozen=True)
class _Stages:
    """Says how far the job is, if that is asked for."""

    console: Console
    budget: Budget
    verbose: bool

    def say(self, what: str) -> None:
        """Tell of a stage that has ended."""
        if self.verbose:
            self.console.note(f"{what} after {self.budget.elapsed:.1f} s")


def _effort(learned: Learned, budget: Budget) -> dict[str, Any]:
    """Parts of the labels, and when enough of them have been left out: by sizes, and half of the time if it is limited.

    Where not all parts are left out, they are no larger for that: fits that learn from fewer labels would make the
    estimate too low. Of many labels fewer parts say enough.
    """
    labels = [label for label in learned.y.tolist() if label is not None]
    n_known, cells = len(labels), len(labels) * learned.X.shape[1] * len(set(labels))
    if n_known > 2 * _LEFT_OUT:
        folds = int(np.clip(n_known // _LEFT_OUT, _FEWEST_FOLDS, _FOLDS))
        return {"n_splits": folds, "max_labels": _LEFT_OUT}
    parts = int(np.clip(_PART_CELLS / max(1, cells), _FEWEST_FOLDS, _FOLDS))
    most = _LEFT_OUT if parts == _FOLDS else min(_LEFT_OUT, max(1, parts * (n_known // _FOLDS)))
    how: dict[str, Any] = {} if budget.seconds is None else {"time_limit": budget.remaining / 2}
    return how | {"n_splits": _FOLDS, "max_labels": most}


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


def _estimate(rows: FitRows, learned: Learned, told: _Stages) -> tuple[AccuracyEstimate | None, str]:
    """How accurate the labels are likely to be; or why that is not known."""
    if rows.known.all():
        return None, "there are no rows without a label"
    how: dict[str, Any] = learned.more | _effort(learned, told.budget) | {"max_unlabeled": _SCORED}
    how["n_asked"] = int(np.count_nonzero(~rows.known))
    how["progress"] = lambda part, parts: told.say(f"labels left out, part {part} of {parts},")
    try:
        with told.console.interrupts.caught(), interrupts_break_off():  # all parts, not the fit of one of them
            return estimated_accuracy(rows.estimator, learned.X, learned.y, **how), ""
    except InvalidInputError as error:  # too few labels to leave some out
        return None, str(error)
    except KeyboardInterrupt:  # the labels are there, and are kept
        tree = f"a tree is looked for {_LEAST_TREE:.0f} s at most; a second Ctrl-C leaves it out"
        told.console.interrupted(
            "the labels are kept, and how accurate they are is left open; "
            + (tree if rows.tree is not None else "files are written, a second Ctrl-C breaks off")
        )
        return None, INTERRUPTED


def _tree_seconds(rows: FitRows, args: argparse.Namespace, budget: Budget) -> float:
    """Time for the tree: what is left or, if it is not limited, enough; less of a register that comes in parts."""
    if args.time_limit is not None:
        return max(1.0, budget.remaining)
    if rows.large:
        return min(max(_LEAST_TREE, _TREE_SHARE * rows.estimator.solve_time_), _TIME_LIMIT)
    return _TIME_LIMIT


def _explain(rows: FitRows, found: Labelled, seconds: float, hurried: bool, told: _Stages) -> bool:
    """Fit the tree to the labels, if there is to be one; say whether there is.

    A Ctrl-C ends its search, and a second one leaves the tree out: the labels are there, and are kept. If `hurried`,
    there was one before.
    """
    if rows.tree is None:
        return True
    try:
        broken_off = interrupts_break_off() if hurried else nullcontext()
        with told.console.interrupts.caught(), broken_off, stage("tree"):
            _fit_tree(rows, found, seconds)
    except KeyboardInterrupt:
        told.console.interrupted("there is no tree; the labels are written, another Ctrl-C breaks off")
        return False
    told.say("tree found")
    return True


def _fit_tree(rows: FitRows, found: Labelled, seconds: float) -> None:
    learned, labels = lesson_of_tree(rows, found)
    rows.tree.set_params(teacher=labels, time_limit=seconds)
    groups = _level_groups(rows, learned, labels)
    rows.tree.fit(learned.X if groups is None else groups.grouped(learned.X), learned.y, **learned.more)
    if groups is not None:
        rows.tree.trees_ = [groups.levels(tree) for tree in rows.tree.trees_]
        rows.tree.tree_, rows.tree.n_features_in_ = rows.tree.trees_[0], learned.X.shape[1]
    without_numbers(rows.tree)
    # A parameter would go to file and report with the labels of all rows; that they were its teacher, teacher_ says.
    rows.tree.set_params(teacher="auto")
    n_known = int(np.count_nonzero(rows.known))
    words = learned.words(n_known, rows.n_rows - n_known)
    if words:
        record = rows.tree.record_
        rows.tree.record_ = replace(record, reason=f"{record.reason}; {words}" if record.reason else words)
        rows.tree.reason_ = rows.tree.record_.reason


def _level_groups(rows: FitRows, learned: Learned, labels: AnyArray) -> LevelGroups | None:
    """Groups of levels of columns with many, which the tree splits on in place of levels; None without such columns."""
    codes = rows.encoder.codes if isinstance(rows.encoder, TableEncoder) else {}
    if not any(code.pooled for code in codes.values()) or rows.tree.warm_start is not False:
        return None
    classes = rows.estimator.classes_
    return LevelGroups.of(codes, learned.X, class_numbers(labels, classes, "labels"), len(classes))


# ---------------------------------------------------------------------- words


def _lines(
    totals: list[dict[str, Any]],
    args: argparse.Namespace,
    labels: AnyArray,
    estimate: AccuracyEstimate | None,
    why: str,
    explanation: Explanation | None,
    agreement: float | None,
) -> list[str]:
    lines = totals_lines(totals)
    if totals:
        lines.append(totals_words(totals))
        lines += [SUBTRACTED] if args.totals_of == "all" else []
    lines.append(f"accuracy: {accuracy_words(estimate, why)}")
    if estimate is not None and estimate.shares != "totals":
        lines.append(assumed_words(estimate)[0])
    if explanation is not None:
        lines += ["", f"a tree that agrees with {agreement:.1%} of the labels of rows without one:"]
        facts = explanation.facts(labels)
        lines += [facts.rules, *facts.notes, *absent_notes(facts, totals), ""]
    return lines


def _record_told(rows: FitRows) -> FitRecord:
    """The record whose end tells whether all can be had again: that of the tree, unless there is none."""
    record: FitRecord = (rows.estimator if rows.tree is None else rows.tree).record_
    return record


def _is_short(estimate: AccuracyEstimate | None) -> bool:
    return estimate is not None and estimate.short


def _seed_lines(rows: FitRows, estimate: AccuracyEstimate | None, args: argparse.Namespace) -> list[str]:
    """The seed, if it was drawn or is not enough to have the same again."""
    record, short = _record_told(rows), _is_short(estimate)
    told = args.seed_drawn or short or not record.repeatable
    return [f"seed: {seed_words(record, short=short)}"] if told else []


def totals_lines(reached: list[dict[str, Any]]) -> list[str]:
    """Totals asked and reached."""
    subtracted = any("labelled" in row for row in reached)
    return [f"totals {ASKED_OF[subtracted]}:", *totals_table(reached)] if reached else []


def class_counts(classes: AnyArray, predicted: AnyArray) -> list[dict[str, Any]]:
    """Rows of each class."""
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


def _tree_document(explanation: Explanation, labels: AnyArray, agreement: float | None) -> dict[str, Any]:
    record = explanation.tree.record_
    return {
        "estimator": type(explanation.tree).__name__,
        "status": record.status,
        "reason": record.reason,
        "objective": None if record.objective is None else finite(record.objective),
        "agreement": None if agreement is None else finite(agreement),
        "rules": explanation.rules(labels),
    }
