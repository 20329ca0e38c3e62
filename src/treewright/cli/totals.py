"""Totals on the command line: what they are about, in fits and of new rows."""

from __future__ import annotations

import argparse
import inspect
import os
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from treewright.cli.answers import Answers
from treewright.cli.spelling import Spelling
from treewright.cli.totals_files import read_totals
from treewright.core.arrays import BoolArray
from treewright.data.columns_checked import AnyArray, missing_mask
from treewright.data.table import Table
from treewright.exceptions import InvalidInputError
from treewright.report import office_totals

__all__ = [
    "AskedMargin",
    "asked_margins",
    "fit_totals",
    "fitted_shares",
    "group_name",
    "knows_totals",
    "named_margins",
    "new_labels",
    "totals_rules",
    "totals_words",
]


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


class AskedMargin(NamedTuple):
    """Totals that are asked for."""

    option: str
    """What asks for them."""
    column: str | None
    """Column of the groups; None for totals of all rows."""
    path: str
    """The file."""


def asked_margins(args: argparse.Namespace) -> list[AskedMargin]:
    """Totals that the options ask for: those of ``--totals``, and of each ``--margin``; none is no totals."""
    if args.totals is None and args.groups is not None:
        raise InvalidInputError("--groups says by what --totals are known; give --totals too")
    own = [] if args.totals is None else [AskedMargin("--totals", args.groups, args.totals)]
    margins = own + [AskedMargin("--margin", column, path) for column, path in args.margin]
    columns = [margin.column for margin in margins]
    twice = [column for column in columns if columns.count(column) > 1]
    if twice:
        raise InvalidInputError(f"--margin: totals by {twice[0]!r} are given twice")
    return margins


def group_name(args: argparse.Namespace) -> str:
    """The column of groups of one margin; several are named in their totals, see :func:`named_margins`."""
    margins = asked_margins(args)
    return (margins[0].column or "") if len(margins) == 1 else ""


def named_margins(reached: list[dict[str, Any]], args: argparse.Namespace) -> list[dict[str, Any]]:
    """Totals asked and reached, of several margins with the column of each: ``by``, None for totals of all rows."""
    margins = asked_margins(args)
    return [row | {"by": margins[row["margin"]].column} if "margin" in row else row for row in reached]


def totals_words(args: argparse.Namespace, whose: str) -> tuple[str, str]:
    """What totals there are, in words of how a report was made."""
    files = [
        os.path.basename(margin.path) + (f", by {margin.column}" if margin.column is not None else "")
        for margin in asked_margins(args)
    ]
    tolerance = f"; shares may be missed by {args.totals_tolerance:g}" if args.totals_tolerance else ""
    return "totals", f"{', and '.join(files)}{whose}{tolerance}"


class _Asked(NamedTuple):
    """Totals and groups as ``fit`` and ``transduce`` take them; lists of them for several margins."""

    totals: Any
    groups: Any


def _read_margins(
    args: argparse.Namespace, table: Table, hidden: BoolArray, classes: Collection[Any], before: Sequence[Sequence[str]]
) -> _Asked:
    """Read the totals, and the groups of the rows, which those without a label need; `before` are groups of a model."""
    spelling, whole, found = Spelling(args.spelling), any(isinstance(label, int) for label in classes), []
    margins = asked_margins(args)
    for j, (option, column, path) in enumerate(margins):
        groups = None
        if column is not None:
            known = before[j] if len(before) == len(margins) else ()
            groups = spelling.coded(table.coded(column), f"the column of groups {column!r}", known)
            lost = hidden & (groups.numbers < 0)
            if lost.any():
                whose = "each row needs a group" if hidden.all() else "each row without a label needs a group"
                name = "--groups" if option == "--totals" else option
                raise InvalidInputError(f"{name}: column {column!r} is empty in row {np.argmax(lost) + 1}; {whose}")
        totals = read_totals(
            path,
            option=option,
            groups=column,
            whole_labels=whole,
            numeric_groups=column is not None and table.is_numeric(column),
            classes=classes,
            known=() if groups is None else groups.names,
            spelling=spelling,
            na=args.na,
            encoding=args.encoding,
        )
        found.append(_Asked(totals, groups))
    if len(found) == 1:
        return found[0]
    return _Asked([one.totals for one in found], [one.groups for one in found])


def new_labels(
    estimator: Any, table: Table, X: AnyArray, args: argparse.Namespace, answers: Answers
) -> tuple[AnyArray, AnyArray, list[dict[str, Any]]]:
    """Labels and probabilities of new rows within their totals, and what was asked and reached."""
    if not hasattr(estimator, "transduce"):
        raise InvalidInputError(f"--totals: {type(estimator).__name__} does not know totals")
    numbers = answers.read(table)
    y = answers.labels(np.full(table.n_rows, -1) if numbers is None or not answers.kept else numbers)
    known = ~missing_mask(y)
    before = [[name for name in part if isinstance(name, str)] for part in getattr(estimator, "_shift_groups", [])]
    asked = _read_margins(args, table, ~known, estimator.classes_.tolist(), before)
    how = {"totals_of": args.totals_of, "totals_tolerance": args.totals_tolerance}
    labels, shares, reached = estimator.transduce(X, *asked, y=y, **how, return_proba=True, return_totals=True)
    if numbers is not None:
        alone = labels.copy()
        alone[known] = estimator.predict(X[known]) if known.any() else labels[known]
        answers.compare(numbers, alone)
    if args.totals_of == "all" and known.any():
        reached = office_totals(reached, y, asked.groups)
    return labels, shares, named_margins(reached, args)


def fit_totals(args: argparse.Namespace, table: Table, y: AnyArray, large: bool) -> tuple[Any, Any]:
    """Known totals, and the group of each row if they are known by group; of several margins a list of each."""
    if not asked_margins(args):
        return None, None
    hidden = missing_mask(y)
    totals, groups = _read_margins(args, table, hidden, set(y[~hidden].tolist()), ())
    if isinstance(groups, list):
        return totals, [None if one is None else np.asarray(one) for one in groups]
    return totals, groups if large or groups is None else np.asarray(groups)


def fitted_shares(estimator: Any) -> AnyArray | None:
    """Shares of the classes of all rows after a fit, whose sums over rows without a label are the totals.

    None where a model knows no totals, or had none.
    """
    return estimator.transduction_proba_ if getattr(estimator, "totals_", []) else None
