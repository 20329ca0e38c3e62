"""The whole job: labels within totals, how accurate they are likely to be, and a tree that explains them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from treewright.app.labelled_table import LabelledTable
from treewright.app.large_register import Learned
from treewright.app.level_groups import LevelGroups
from treewright.app.options import FitOptions
from treewright.app.register import Labelled, explanation_rows, labelled_register
from treewright.app.rows import FitRows, opened_rows
from treewright.app.warned import noted_warnings
from treewright.core.budget import Budget, interrupts_break_off, interrupts_caught, tell_of_interrupt
from treewright.core.names import option
from treewright.core.progress import stage, timed
from treewright.data.columns_checked import AnyArray
from treewright.data.tables.encoder import TableEncoder
from treewright.estimation.accuracy import AccuracyEstimate, estimated_accuracy
from treewright.estimators.numbers import without_numbers
from treewright.estimators.spread import noted_spread
from treewright.exceptions import InvalidInputError
from treewright.models.registry import LABELLERS
from treewright.report.facts import class_numbers
from treewright.report.words import INTERRUPTED

__all__ = ["label_rows", "label_table"]

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


def label_table(
    table: Any,
    *,
    target: str,
    totals: Any = None,
    groups: str | None = None,
    margins: Any = (),
    totals_of: str = "unlabeled",
    totals_tolerance: float = 0.0,
    allow_new_classes: bool = False,
    model: str | None = None,
    estimator: Any = None,
    weight: str | None = None,
    features: Any = None,
    drop: Any = (),
    id: str | None = None,
    na: Any = (),
    encoding: str | None = None,
    spelling: str | None = None,
    max_depth: int | None = None,
    time_limit: float | None = None,
    solver: str | None = None,
    gap: float | None = None,
    n_jobs: int | None = None,
    random_state: int | None = None,
    warm_start: Any = None,
    settings: Any = None,
) -> LabelledTable:
    """Label the rows of a table within known totals, say how accurate that is, and fit a tree that explains it.

    This is what ``treewright fit`` does with a table in which some rows have no label, to the row. It prints nothing;
    ``treewright.core.progress.reported`` tells how far it is. A Ctrl-C ends what is being done, and the rest is
    returned.

    Parameters
    ----------
    table : path-like, pandas or polars DataFrame
        ``.csv``, ``.tsv`` or ``.txt`` (also with ``.gz`` behind) with a header, ``.parquet``, or ``.xlsx``; or a frame,
        whose cells are read as those of a file: text that spells numbers is numbers.
    target : str
        Column with the labels; empty where the class is not known.
    totals : path-like, mapping or frame, or None
        Known totals of the classes among the rows without a label: ``{class: total}``, with groups ``{group: {class:
        total}}``. A total is a count (a whole number), a share (a float), or a pair of the lowest and the highest;
        classes that are left out are free. A frame has a column a class and, with groups, one that names these (or
        columns "class", "low" and "high"). Files are ``.csv`` with such a table, or ``.json`` with such a mapping.
    groups : str or None
        Column with the groups of `totals` that are known by group.
    margins : mapping of str to (path-like, mapping or frame)
        Totals by several groupings, which hold at once: column with groups, and totals by these.
    totals_of : "unlabeled" or "all"
        Rows that totals count: those without a label, or all; labelled ones are then subtracted.
    totals_tolerance : float, default=0.0
        By how much shares may be missed.
    allow_new_classes : bool, default=False
        Whether totals may name classes that no row is labelled with; otherwise that is taken for a misspelling.
    model : "totals", "c2rf" or None
        One model alone that labels rows. None is "totals", and a tree that explains the labels.
    estimator : str or scikit-learn classifier, or None
        What scores the rows: "auto" (a blend that is chosen on labels left out, the default), "boosting",
        "extra-trees", "forest", "logistic", or any classifier; the ensemble of "c2rf", "forest" by default.
    weight : str or None
        Column with the weights of the rows: how much a label counts. Totals count rows.
    features, drop : list of str
        Columns to use (None is all but target, weight, groups and id), or columns not to use.
    id : str or None
        Column that names the rows: no feature, and carried to the labels as it is.
    na : list of str
        Values that mean missing, such as "?" or "-99", beside the usual ones.
    encoding : str or None
        Encoding of a text file, such as "cp1252"; None is UTF-8, with a warning cp1252 where that cannot be.
    spelling : "merge", "keep" or None
        What becomes of classes and groups whose names differ in capitals, blanks or marks on letters alone: they are
        one, or several; None refuses them.
    max_depth, solver, gap
        Parameters of the tree that explains, see :class:`treewright.S2OCTClassifier`; None is its default.
    time_limit : float or None
        Seconds for all of it; None is no limit, but 60 seconds for the tree.
    n_jobs : int or None
        Threads, -1 for all cores.
    random_state : int or None
        Seed; None draws one, which the summary says.
    warm_start : path-like or None
        Model file whose tree to start from.
    settings : mapping of str to object, or None
        Any other parameter of the tree or, with `model`, of that.

    Returns
    -------
    LabelledTable
        ``labels`` (a frame), ``accuracy``, ``totals``, ``tree``, ``model``; ``summary()``, ``report(path)`` and
        ``save(path)``.

    Raises
    ------
    InvalidInputError
        If the table or what is asked for cannot be used, before any work; the text has the place and the remedy.
    InfeasibleTotalsError
        If totals contradict the data or one another.

    Examples
    --------
    >>> import pandas as pd
    >>> from treewright import label_table
    >>> people = pd.DataFrame({"income": range(1000, 5000, 100), "area": ["north", "south"] * 20})
    >>> people["works"] = ["no"] * 6 + [None] * 28 + ["yes"] * 6
    >>> totals = {"north": {"yes": 9, "no": 5}, "south": {"yes": 8, "no": 6}}
    >>> how = {"estimator": "logistic", "max_depth": 1, "random_state": 0}
    >>> job = label_table(people, target="works", totals=totals, groups="area", **how)
    >>> [(row["group"], row["class"], row["reached"]) for row in job.totals]
    [('north', 'no', 5), ('north', 'yes', 9), ('south', 'no', 6), ('south', 'yes', 8)]
    >>> job.labels["label"].to_list()[:8]
    ['no', 'no', 'no', 'no', 'no', 'no', 'no', 'no']
    """
    if model is not None and model not in LABELLERS:
        others = " or ".join(repr(name) for name in LABELLERS)
        raise InvalidInputError(
            f"{option('model', model)}: does not label rows; expected {others}, or None for the job"
        )
    options = FitOptions(
        target=target,
        totals=totals,
        groups=groups,
        margins=margins,
        totals_of=totals_of,
        totals_tolerance=totals_tolerance,
        allow_new_classes=allow_new_classes,
        model=model,
        estimator=estimator,
        weight=weight,
        features=features,
        drop=drop,
        id=id,
        na=na,
        encoding=encoding,
        spelling=spelling,
        max_depth=max_depth,
        time_limit=time_limit,
        solver=solver,
        gap=gap,
        n_jobs=n_jobs,
        random_state=random_state,
        warm_start=warm_start,
        settings=settings or {},
    ).with_seed()
    with ExitStack() as opened, noted_warnings() as warned:
        with stage("the table is read"):
            rows = opened_rows(table, options, opened)
        if not rows.labels_rows:
            raise InvalidInputError(
                f"the target {target!r} has a label in each of {rows.n_rows} rows: there is nothing to label; a tree "
                "of labels that are all known is OCTHClassifier"
            )
        job = label_rows(rows)
        _ = job.labels, job.explanation  # while the file of a large table is there
        job.warnings = warned
    return job


def label_rows(rows: FitRows, said: Callable[[str], object] = lambda stage: None) -> LabelledTable:
    """The job after reading: label open rows, estimate, explain; `said` is called with each stage that has ended."""
    budget = Budget(rows.options.time_limit)

    def ended(what: str) -> None:
        said(f"{what} after {budget.elapsed:.1f} s")

    with timed(budget):
        with stage("labels"):
            found = labelled_register(rows, rows.options.n_jobs)
        ended("labels found")
        rows.estimator.totals_ = rows.options.named_margins(rows.estimator.totals_)
        estimate, why = _estimate(rows, found.learned, budget, ended)
        seconds, hurried = _tree_seconds(rows, budget), why == INTERRUPTED
        lost = not _explain(rows, found, min(seconds, _LEAST_TREE) if hurried else seconds, hurried, ended)
        return LabelledTable(replace(rows, tree=None) if lost else rows, found, estimate, why, budget)


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


def _estimate(
    rows: FitRows, learned: Learned, budget: Budget, ended: Callable[[str], object]
) -> tuple[AccuracyEstimate | None, str]:
    """How accurate the labels are likely to be; or why that is not known."""
    if rows.known.all():
        return None, "there are no rows without a label"
    how: dict[str, Any] = learned.more | _effort(learned, budget) | {"max_unlabeled": _SCORED}
    how["n_asked"] = int(np.count_nonzero(~rows.known))
    how["progress"] = lambda part, parts: ended(f"labels left out, part {part} of {parts},")
    try:
        with interrupts_caught(), interrupts_break_off():  # all parts, not the fit of one of them
            return estimated_accuracy(rows.estimator, learned.X, learned.y, **how), ""
    except InvalidInputError as error:  # too few labels to leave some out
        return None, str(error)
    except KeyboardInterrupt:  # the labels are there, and are kept
        tree = f"a tree is looked for {_LEAST_TREE:.0f} s at most; a second Ctrl-C leaves it out"
        tell_of_interrupt(
            "the labels are kept, and how accurate they are is left open; "
            + (tree if rows.tree is not None else "files are written, a second Ctrl-C breaks off")
        )
        return None, INTERRUPTED


def _tree_seconds(rows: FitRows, budget: Budget) -> float:
    """Time for the tree: what is left or, if it is not limited, enough; less of a register that comes in parts."""
    if rows.options.time_limit is not None:
        return max(1.0, budget.remaining)
    if rows.large:
        return min(max(_LEAST_TREE, _TREE_SHARE * rows.estimator.solve_time_), _TIME_LIMIT)
    return _TIME_LIMIT


def _explain(rows: FitRows, found: Labelled, seconds: float, hurried: bool, ended: Callable[[str], object]) -> bool:
    """Fit the tree to the labels, if there is to be one; say whether there is.

    A Ctrl-C ends its search, and a second one leaves the tree out: the labels are there, and are kept. If `hurried`,
    there was one before.
    """
    if rows.tree is None:
        return True
    try:
        broken_off = interrupts_break_off() if hurried else nullcontext()
        with interrupts_caught(), broken_off, stage("tree"):
            _fit_tree(rows, found, seconds)
    except KeyboardInterrupt:
        tell_of_interrupt("there is no tree; the labels are written, another Ctrl-C breaks off")
        return False
    ended("tree found")
    return True


def _fit_tree(rows: FitRows, found: Labelled, seconds: float) -> None:
    learned, labels = explanation_rows(rows, found)
    rows.tree.set_params(teacher=labels, time_limit=seconds)
    groups = _level_groups(rows, learned, labels)
    rows.tree.fit(learned.X if groups is None else groups.grouped(learned.X), learned.y, **learned.more)
    if groups is not None:
        rows.tree.trees_ = [groups.levels(tree) for tree in rows.tree.trees_]
        rows.tree.tree_, rows.tree.n_features_in_ = rows.tree.trees_[0], learned.X.shape[1]
        vars(rows.tree).update(noted_spread(vars(rows.tree), learned.X))
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
