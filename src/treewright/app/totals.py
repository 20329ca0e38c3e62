"""Totals that labels are to meet: read, with the groups of the rows, for a fit and for new rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from treewright.app.answers import Answers
from treewright.app.options import FitOptions, TotalsOptions
from treewright.app.totals_files import read_totals
from treewright.core.arrays import BoolArray
from treewright.core.names import option
from treewright.data.columns_checked import AnyArray, missing_mask
from treewright.data.tables.files import Table
from treewright.exceptions import InvalidInputError
from treewright.report import office_totals

__all__ = ["fit_totals", "fitted_shares", "new_labels"]


class _Asked(NamedTuple):
    """Totals and groups as ``fit`` and ``transduce`` take them; lists of them for several margins."""

    totals: Any
    groups: Any


def _read_margins(
    options: TotalsOptions, table: Table, hidden: BoolArray, classes: Collection[Any], before: Sequence[Sequence[str]]
) -> _Asked:
    """Read the totals, and the groups of the rows, which those without a label need; `before` are groups of a model."""
    spelling, whole, found = options.names, any(isinstance(label, int) for label in classes), []
    margins = options.asked_margins
    for j, (parameter, column, source) in enumerate(margins):
        groups = None
        if column is not None:
            known = before[j] if len(before) == len(margins) else ()
            groups = spelling.coded(table.coded(column), f"the column of groups {column!r}", known)
            lost = hidden & (groups.numbers < 0)
            if lost.any():
                whose = "each row needs a group" if hidden.all() else "each row without a label needs a group"
                name = option("groups" if parameter == "totals" else parameter)
                raise InvalidInputError(f"{name}: column {column!r} is empty in row {np.argmax(lost) + 1}; {whose}")
        totals = read_totals(
            source,
            parameter=parameter,
            groups=column,
            whole_labels=whole,
            numeric_groups=column is not None and table.is_numeric(column),
            classes=classes,
            known=() if groups is None else groups.names,
            spelling=spelling,
            na=options.na,
            encoding=options.encoding,
        )
        found.append(_Asked(totals, groups))
    if len(found) == 1:
        return found[0]
    return _Asked([one.totals for one in found], [one.groups for one in found])


def new_labels(
    estimator: Any, table: Table, X: AnyArray, options: TotalsOptions, answers: Answers
) -> tuple[AnyArray, AnyArray, list[dict[str, Any]]]:
    """Labels and probabilities of a job's new rows within their totals, and what was asked and reached."""
    if not hasattr(estimator, "transduce"):
        raise InvalidInputError(f"{option('totals')}: {type(estimator).__name__} does not know totals")
    numbers = answers.read(table)
    y = answers.labels(np.full(table.n_rows, -1) if numbers is None or not answers.kept else numbers)
    known = ~missing_mask(y)
    before = [[name for name in part if isinstance(name, str)] for part in getattr(estimator, "_shift_groups", [])]
    asked = _read_margins(options, table, ~known, estimator.classes_.tolist(), before)
    how = {"totals_of": options.totals_of, "totals_tolerance": options.totals_tolerance}
    labels, shares, reached = estimator.transduce(X, *asked, y=y, **how, return_proba=True, return_totals=True)
    if numbers is not None:
        alone = labels.copy()
        alone[known] = estimator.predict(X[known]) if known.any() else labels[known]
        answers.compare(numbers, alone)
    if options.totals_of == "all" and known.any():
        reached = office_totals(reached, y, asked.groups)
    return labels, shares, options.named_margins(reached)


def fit_totals(options: FitOptions, table: Table, y: AnyArray, large: bool) -> tuple[Any, Any]:
    """Known totals of a job's table, and the group of each row if known by group; of several margins a list of each."""
    if not options.asked_margins:
        return None, None
    hidden = missing_mask(y)
    totals, groups = _read_margins(options, table, hidden, set(y[~hidden].tolist()), ())
    if isinstance(groups, list):
        return totals, [None if one is None else np.asarray(one) for one in groups]
    return totals, groups if large or groups is None else np.asarray(groups)


def fitted_shares(estimator: Any) -> AnyArray | None:
    """Shares of the classes of all rows after a job, whose sums over rows without a label are the totals.

    None where a model knows no totals, or had none.
    """
    return estimator.transduction_proba_ if getattr(estimator, "totals_", []) else None
