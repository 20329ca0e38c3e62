"""Totals on the command line: what they are about, in fits and of new rows."""

from __future__ import annotations

import argparse
import inspect
from typing import Any

import numpy as np

from treewright.cli.answers import Answers
from treewright.cli.spelling import Spelling
from treewright.cli.totals_files import read_totals
from treewright.data._checks import AnyArray, Coded, missing_mask
from treewright.data.table import Table
from treewright.exceptions import InvalidInputError
from treewright.report import office_totals

__all__ = ["check_groups_asked", "fit_totals", "fitted_shares", "knows_totals", "new_labels", "totals_rules"]


def knows_totals(kind: type) -> bool:
    """Whether fits of an estimator take totals."""
    return "totals" in inspect.signature(kind.fit).parameters  # type: ignore[attr-defined]


def totals_rules(args: argparse.Namespace) -> dict[str, Any]:
    """Arguments of ``fit`` that say how totals are meant."""
    return {
        "totals_of": args.totals_of,
        "totals_tolerance": args.totals_tolerance,
        "allow_new_classes": args.allow_new_classes,
    }


def check_groups_asked(args: argparse.Namespace) -> None:
    """Refuse groups without totals."""
    if args.totals is None and args.groups is not None:
        raise InvalidInputError("--groups says by what --totals are known; give --totals too")


def new_labels(
    estimator: Any, table: Table, X: AnyArray, args: argparse.Namespace, answers: Answers
) -> tuple[AnyArray, AnyArray, list[dict[str, Any]]]:
    """Labels and probabilities of new rows within ``--totals``, and what was asked and reached."""
    if not hasattr(estimator, "transduce"):
        raise InvalidInputError(f"--totals: {type(estimator).__name__} does not know totals")
    numbers = answers.read(table)
    y = answers.labels(np.full(table.n_rows, -1) if numbers is None or not answers.kept else numbers)
    known = ~missing_mask(y)
    groups = _groups_of(table, args, known, estimator)
    totals = read_totals(
        args.totals,
        groups=args.groups,
        whole_labels=estimator.classes_.dtype.kind in "iu",
        numeric_groups=args.groups is not None and table.is_numeric(args.groups),
        classes=estimator.classes_.tolist(),
        known=() if groups is None else groups.names,
        spelling=Spelling(args.spelling),
        na=args.na,
        encoding=args.encoding,
    )
    how = {"totals_of": args.totals_of, "totals_tolerance": args.totals_tolerance}
    labels, shares, reached = estimator.transduce(X, totals, groups, y=y, **how, return_proba=True, return_totals=True)
    if numbers is not None:
        alone = labels.copy()
        alone[known] = estimator.predict(X[known]) if known.any() else labels[known]
        answers.compare(numbers, alone)
    if args.totals_of == "all" and known.any():
        reached = office_totals(reached, y, groups)
    return labels, shares, reached


def _groups_of(table: Table, args: argparse.Namespace, known: AnyArray, estimator: Any) -> Coded | None:
    """The group of each row; those of rows without a label must not be missing."""
    if args.groups is None:
        return None
    before = [name for name in getattr(estimator, "class_prices_", {}) if isinstance(name, str)]
    what = f"the column of groups {args.groups!r}"
    groups = Spelling(args.spelling).coded(table.coded(args.groups), what, before)
    lost = ~known & (groups.numbers < 0)
    if lost.any():
        whose = "each row without a label needs a group" if known.any() else "each row needs a group"
        raise InvalidInputError(f"--groups: column {args.groups!r} is empty in row {np.argmax(lost) + 1}; {whose}")
    return groups


def fit_totals(args: argparse.Namespace, table: Table, y: AnyArray, large: bool) -> tuple[dict[Any, Any] | None, Any]:
    """Known totals, and the group of each row if they are known by group."""
    if args.totals is None:
        return None, None
    spelling, groups = Spelling(args.spelling), None
    if args.groups is not None:
        groups = spelling.coded(table.coded(args.groups), f"the column of groups {args.groups!r}")
        lost = missing_mask(y) & (groups.numbers < 0)
        if lost.any():
            raise InvalidInputError(
                f"--groups: column {args.groups!r} is empty in row {np.argmax(lost) + 1}; each row without a label "
                "needs a group"
            )
    totals = read_totals(
        args.totals,
        groups=args.groups,
        whole_labels=any(isinstance(label, int) for label in y[~missing_mask(y)].tolist()),
        numeric_groups=args.groups is not None and table.is_numeric(args.groups),
        classes=set(y[~missing_mask(y)].tolist()),
        known=() if groups is None else groups.names,
        spelling=spelling,
        na=args.na,
        encoding=args.encoding,
    )
    return totals, groups if large or groups is None else np.asarray(groups)


def fitted_shares(estimator: Any) -> AnyArray | None:
    """Shares of the classes of all rows after a fit, whose sums over rows without a label are the totals.

    None where a model knows no totals, or had none.
    """
    return estimator.transduction_proba_ if getattr(estimator, "totals_", []) else None
