"""The commands. Each reads, calls the library once, writes, and says what it did."""

from __future__ import annotations

import argparse
import ast
import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from treewright.cli.console import Console, finite
from treewright.cli.files import TableModel, check_outputs
from treewright.cli.parser import EXIT_INTERRUPTED, EXIT_OK
from treewright.cli.totals import check_groups_asked, fitted_shares, knows_totals, new_labels, read_totals, totals_rules
from treewright.data._checks import AnyArray, listing, missing_mask
from treewright.data.mixed_table import MixedEncoder
from treewright.data.table import (
    MAX_LEVELS,
    Surprises,
    Table,
    TableEncoder,
    read_table,
    table_kind,
    why_text,
    write_batches,
    write_table,
)
from treewright.estimators.common.files import plain_parameters
from treewright.estimators.octsvm import SuspectLabel
from treewright.estimators.registry import SHORT_NAMES
from treewright.estimators.tao import TAOClassifier
from treewright.exceptions import InvalidInputError
from treewright.files import replacing
from treewright.names import printable
from treewright.report.text import STATUS_WORDS, fit_report, parameter_words, proof_words, text_table, totals_table
from treewright.solvers import describe
from treewright.tree import tree_to_dict

__all__ = ["COMMANDS"]

_OPTIONS = ("max_depth", "time_limit", "solver", "gap", "n_jobs", "random_state")
_NO_CLASS = re.compile(r"[^\w+]+|unknown|missing|none|not available", re.IGNORECASE)


def fit(args: argparse.Namespace, console: Console) -> int:
    """Fit a model to a table; write the model, and predictions and a report if asked."""
    outputs = {"--out": args.out, "--predictions": args.predictions, "--report": args.report}
    check_outputs(outputs | {"--suspects": args.suspects}, args.data)
    for path in (args.predictions, args.suspects):
        if path is not None:
            table_kind(path, writing=True)
    estimator = _estimator(args)
    if args.suspects is not None and not hasattr(estimator, "relabel_table"):
        able = ", ".join(name for name, kind in sorted(SHORT_NAMES.items()) if hasattr(kind, "relabel_table"))
        raise InvalidInputError(f"--suspects: {args.model} does not look for wrong labels; {able} do")
    _check_knows_totals(estimator, args)
    native = "categorical_features" in estimator.get_params(deep=False)
    table = read_table(
        args.data,
        na=args.na,
        encoding=args.encoding,
        text=_carried(args),
        look=lambda first: _check_columns(first, args, native),
    )
    y = _labels(table, args.target)
    semi_supervised = _takes_unlabelled(estimator)
    if semi_supervised:
        y = _without_mark(y, estimator, args)
    totals, groups = _totals(args, table, y)
    features = _feature_columns(table, args)
    _warn_of_row_numbers(table, features)
    encoder = _encoder(estimator, table, features)
    X, names = encoder.transform(table) if isinstance(encoder, MixedEncoder) else encoder.transform(table, Surprises())
    if args.warm_start is not None:
        estimator.set_params(warm_start=_warm_start(args.warm_start, names, _classes(y, totals, groups)))

    known = ~missing_mask(y)
    used = np.ones(len(y), dtype=bool) if semi_supervised else known
    # without unlabelled rows the labels are an array of strings or of whole numbers
    labels = y[used] if semi_supervised else np.array(y[used].tolist())
    known_totals = {} if totals is None else {"totals": totals, "groups": groups} | totals_rules(args)
    counted = used & known if knows_totals(type(estimator)) else used
    estimator.fit(X[used], labels, sample_weight=_weights(table, args.weight, used, counted), **known_totals)
    estimator.feature_names_in_ = np.array(names, dtype=object)

    model = TableModel(estimator, encoder, args.target, tuple(args.na))
    model.write(args.out)
    console.written["model"] = args.out
    predicted = estimator.predict(X)
    if hasattr(estimator, "transduction_"):  # what the fit says of the rows without a label, totals respected
        predicted = np.where(known, predicted, estimator.transduction_)
    if args.predictions is not None:
        shares = fitted_shares(estimator, X, known, groups)
        columns = model.prediction_columns(table, X, predicted, shares, args.id)
        write_table(args.predictions, columns, args.escape_formulas)
        console.written["predictions"] = args.predictions
    if args.suspects is not None:
        write_table(args.suspects, _suspect_columns(estimator, np.flatnonzero(used)), args.escape_formulas)
        console.written["suspects"] = args.suspects
    if args.report is not None:
        title = f"{args.model} fitted to {os.path.basename(args.data)}"
        report = fit_report(estimator, y, predicted, title=title, target=args.target)
        with replacing(args.report) as file:
            file.write(report.encode("utf-8"))
        console.written["report"] = args.report

    right, n_known = int(np.count_nonzero(predicted[known] == y[known])), int(np.count_nonzero(known))
    left_out = int(np.count_nonzero(~used))
    lines = [estimator.export_text(), "", *_status_lines(estimator)]
    lines.append(f"training accuracy: {right / n_known:.2%} ({right} of {n_known} rows with a label)")
    if hasattr(estimator, "relabeled_"):
        hint = "" if args.suspects is not None else " (--suspects FILE writes which)"
        lines.append(f"labels held for wrong: {np.count_nonzero(estimator.relabeled_)} of {n_known} rows{hint}")
    if left_out:
        lines.append(f"left out of the fit: {left_out} rows without {args.target!r} ({args.model} is supervised)")
    lines += [f"{what} written to {printable(path)}" for what, path in console.written.items()]
    document = {
        **_model_document(model),
        "rows": len(y),
        "labelled": n_known,
        "unlabelled": len(y) - n_known,
        "left_out": left_out,
        "training_accuracy": right / n_known,
        "predicted": _counts(estimator.classes_, predicted),
        "files": console.written,
        "warnings": console.warned,
    }
    console.result("\n".join(lines), document)
    return EXIT_INTERRUPTED if estimator.record_.status == "interrupted" else EXIT_OK


def predict(args: argparse.Namespace, console: Console) -> int:
    """Predict the rows of a table."""
    check_outputs({"--out": args.out}, args.data)
    table_kind(args.out, writing=True)
    model = TableModel.read(args.model)
    surprises, times = Surprises(), Counter[Any]()
    marks = [*model.na, *args.na]

    def parts() -> Iterator[dict[str, Any]]:
        if args.totals is None:
            batches = model.prediction_batches(args.data, marks, args.encoding, args.id, surprises)
        else:  # labels within totals are about all rows at once
            batches = iter([_divided_columns(model, args, marks, surprises)])
        for columns in batches:
            found, rows = np.unique(columns["prediction"], return_counts=True)
            times.update(dict(zip(found.tolist(), rows.tolist(), strict=True)))
            yield columns

    check_groups_asked(args)
    write_batches(args.out, parts(), args.escape_formulas)
    console.written["predictions"] = args.out
    if isinstance(model.encoder, TableEncoder):
        surprises.warn(model.encoder)
    counts = [{"class": label, "rows": times[label]} for label in model.estimator.classes_.tolist()]
    lines = text_table([("class", "rows"), *((str(c["class"]), c["rows"]) for c in counts)], indent="")
    document = {
        "rows": times.total(),
        "predicted": counts,
        "files": console.written,
        "warnings": console.warned,
    }
    console.result("\n".join([*lines, f"predictions written to {printable(args.out)}"]), document)
    return EXIT_OK


def show(args: argparse.Namespace, console: Console) -> int:
    """Show a model."""
    model = TableModel.read(args.model)
    estimator = model.estimator
    names = model.feature_names
    lines = [
        type(estimator).__name__,
        f"target: {printable(model.target or 'without a name')}; classes: {listing(estimator.classes_.tolist())}",
        "features: " + (f"{estimator.n_features_in_} without names" if names is None else _joined(names)),
        *_category_lines(estimator, names),
        "parameters: " + parameter_words(estimator),
        "",
        estimator.export_text(),
        "",
        *_status_lines(estimator),
    ]
    console.result("\n".join(lines), {**_model_document(model), "tree": tree_to_dict(estimator.tree_)})
    return EXIT_OK


def solvers(args: argparse.Namespace, console: Console) -> int:
    """Show the solvers of this machine."""
    found = describe()
    header = ("solver", "installed", "licence", "can do")
    rows = [(s.name, s.version if s.installed else "no", s.licence, " ".join(s.capabilities)) for s in found]
    lines = text_table([header, *rows], indent="")
    lines += [
        f"{s.name}: {s.problem}; {s.remedy}" if s.remedy else f"{s.name}: {s.problem}" for s in found if s.problem
    ]
    console.result("\n".join(lines), {"solvers": [asdict(s) for s in found]})
    return EXIT_OK


def _suspect_columns(estimator: Any, rows: AnyArray) -> dict[str, AnyArray]:
    """The table of suspicious labels as columns; `rows` are the numbers of the fitted rows in their file, from 0."""
    table = estimator.relabel_table()
    numbers = rows[[entry.row for entry in table]] + 1
    others = {name: np.array([getattr(entry, name) for entry in table]) for name in SuspectLabel._fields[1:]}
    return {"row": numbers, **others}


COMMANDS: dict[str, Callable[[argparse.Namespace, Console], int]] = {
    "fit": fit,
    "predict": predict,
    "show": show,
    "solvers": solvers,
}


# ---------------------------------------------------------------------- from arguments to a fit


def _estimator(args: argparse.Namespace) -> Any:
    kind = SHORT_NAMES[args.model]
    accepted = kind().get_params(deep=False)
    given = {name: getattr(args, name) for name in _OPTIONS if getattr(args, name) is not None}
    for setting in args.settings:
        name, equals, text = setting.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            raise InvalidInputError(f"--set {setting}: expected NAME=VALUE")
        if name == "warm_start":
            raise InvalidInputError("--set warm_start: use --warm-start MODEL")
        if name in given:
            raise InvalidInputError(f"--set {setting}: {name} is given twice")
        given[name] = _literal(text.strip())
    unknown = [name for name in given if name not in accepted]
    if unknown:
        raise InvalidInputError(f"{args.model} has no parameter {unknown[0]!r}; it has {', '.join(sorted(accepted))}")
    if args.verbose:
        given.setdefault("verbose", 1)
    return kind(**given)


def _literal(text: str) -> object:
    """Return the number, bool, None or list that a text spells, else the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return text


def _carried(args: argparse.Namespace) -> list[str]:
    """Columns that are kept as they are written."""
    return [] if args.id is None else [args.id]


def _check_columns(first: Table, args: argparse.Namespace, native: bool) -> None:
    """Refuse what the first rows show to be unusable, all of it in one error, before the rest is read."""
    features = _feature_columns(first, args)
    checks: list[Callable[[], object]] = []
    if args.weight is not None and not first.missing(args.weight).all():
        checks.append(lambda: _check_weight(first, args.weight))
    if not native:
        checks.append(lambda: TableEncoder.check(first, features, fill_gaps=True, partial=True))
    wrong = []
    for check in checks:
        try:
            check()
        except InvalidInputError as error:
            wrong.append(str(error))
    if wrong:
        raise InvalidInputError("; ".join(wrong))


def _feature_columns(table: Table, args: argparse.Namespace) -> list[str]:
    aside = [name for name in (args.target, args.weight, args.id) if name is not None]
    groups = [name for name in (args.groups,) if name is not None]
    unknown = [name for name in (*aside, *groups, *args.drop, *(args.features or [])) if name not in table.columns]
    if unknown:
        raise InvalidInputError(
            f"there is no column {listing(dict.fromkeys(unknown))}; columns: {listing(table.columns)}"
        )
    if args.features is None:
        return [name for name in table.columns if name not in (*aside, *groups, *args.drop)]
    for name in args.features:
        if name in aside:
            raise InvalidInputError(f"--features: {name!r} is the target, the weight or the id, not a feature")
    if len(set(args.features)) < len(args.features):
        raise InvalidInputError("--features: a column is named twice")
    return list(args.features)


def _encoder(estimator: Any, table: Table, columns: list[str]) -> TableEncoder | MixedEncoder:
    """What makes features of columns; text becomes categories, beside those that are named, where the model can."""
    given = estimator.get_params(deep=False)
    if "categorical_features" not in given:
        return TableEncoder.fit(table, columns, fill_gaps=True)
    encoder = MixedEncoder.fit(table, columns)
    named = given["categorical_features"]
    if named is None or isinstance(named, str):
        named = [] if named in (None, "from_dtype") else [named]
    unknown = [name for name in named if name not in columns]
    if unknown:
        raise InvalidInputError(
            f"--set categorical_features: there is no feature {listing(unknown)}; name columns, such as "
            f"--set \"categorical_features=['{printable(columns[0])}']\""
        )
    chosen = sorted({*encoder.categorical, *(columns.index(name) for name in named)})
    estimator.set_params(categorical_features=chosen or None)
    return encoder


def _warn_of_row_numbers(table: Table, columns: list[str]) -> None:
    for name in columns:
        if table.is_numeric(name) and table.n_rows > 2 and np.all(np.diff(table[name]) == 1):
            warnings.warn(
                f"column {name!r} numbers the rows and is used as a feature; --drop {printable(name)} leaves it out",
                UserWarning,
                stacklevel=2,
            )


def _labels(table: Table, target: str) -> AnyArray:
    """Labels as whole numbers or text, None where there is none."""
    column, missing = table[target], table.missing(target)
    if missing.all():
        raise InvalidInputError(f"the target {target!r} is empty in all {table.n_rows} rows; some must have a class")
    if table.is_numeric(target):
        values = column[~missing]
        whole = np.isfinite(values) & (values == np.round(values))
        if whole.all():
            labels = np.full(len(column), None, dtype=object)
            labels[~missing] = values.astype(np.int64).tolist()
            return labels
        if len(np.unique(values)) > MAX_LEVELS:
            raise InvalidInputError(
                f"the target {target!r} has {len(np.unique(values))} different numbers such as "
                f"{values[~whole][0]:g}; a classifier needs a column of classes"
            )
    else:
        _warn_of_marks(table, target)
    return table.as_text(target)


def _warn_of_marks(table: Table, target: str) -> None:
    """Warn of classes that are hardly meant as such."""
    times = Counter(value for value in table[target].tolist() if value is not None)
    marks = [value for value in times if _NO_CLASS.fullmatch(value) and not (value == "-" and "+" in times)]
    reason = why_text(table, target)
    if marks:
        rows = ", ".join(f"{mark!r} ({times[mark]} rows)" for mark in marks)
        remedy = " ".join(f"--na {mark!r}" for mark in marks)
        warnings.warn(
            f"the target {target!r} has {rows} as a class; if that means missing: {remedy}", UserWarning, stacklevel=3
        )
    elif reason:
        warnings.warn(f"the target: {reason}", UserWarning, stacklevel=3)


def _without_mark(y: AnyArray, estimator: Any, args: argparse.Namespace) -> AnyArray:
    """Return `y` without the labels that ``unlabeled`` marks; unless it is set, a label is a label."""
    mark = estimator.get_params(deep=False)["unlabeled"]
    marked = np.array([label is not None and str(label) == str(mark) for label in y.tolist()])
    if not marked.any():
        return y
    if any(setting.partition("=")[0].strip() == "unlabeled" for setting in args.settings):
        without = y.copy()
        without[marked] = None
        return without
    estimator.set_params(unlabeled="")  # which no label is
    warnings.warn(
        f"the target {args.target!r} has {mark!r} in {np.count_nonzero(marked)} rows as a class; if that means "
        f"missing: --set unlabeled={mark}",
        UserWarning,
        stacklevel=2,
    )
    return y


def _check_knows_totals(estimator: Any, args: argparse.Namespace) -> None:
    if args.totals is None:
        if args.groups is not None:
            raise InvalidInputError("--groups says by what --totals are known; give --totals too")
        return
    if not knows_totals(type(estimator)):
        able = ", ".join(name for name, kind in sorted(SHORT_NAMES.items()) if knows_totals(kind)) or "none"
        raise InvalidInputError(f"--totals: {args.model} does not know totals; models that do: {able}")


def _totals(args: argparse.Namespace, table: Table, y: AnyArray) -> tuple[dict[Any, Any] | None, AnyArray | None]:
    """Known totals, and the group of each row if they are known by group."""
    if args.totals is None:
        return None, None
    groups = None if args.groups is None else table.as_text(args.groups)
    if groups is not None:
        lost = missing_mask(y) & missing_mask(groups)
        if lost.any():
            raise InvalidInputError(
                f"--groups: column {args.groups!r} is empty in row {np.argmax(lost) + 1}; each row without a label "
                "needs a group"
            )
    totals = read_totals(
        args.totals,
        groups=args.groups,
        whole_labels=any(isinstance(label, int) for label in y.tolist()),
        numeric_groups=args.groups is not None and table.is_numeric(args.groups),
        na=args.na,
    )
    return totals, groups


def _divided_columns(
    model: TableModel, args: argparse.Namespace, marks: list[str], surprises: Surprises
) -> dict[str, Any]:
    """Columns of predictions within new totals."""
    carried = [name for name in (args.id, args.groups, model.target) if name is not None]
    text = [*carried, *([] if model.encoder is None else model.encoder.text_columns)]
    table = read_table(args.data, na=marks, encoding=args.encoding, text=[name for name in text if name != args.groups])
    if args.id is not None and args.id not in table.columns:
        raise InvalidInputError(f"--id: there is no column {args.id!r}; columns: {listing(table.columns)}")
    X = model.features_of(table, surprises)
    return model.prediction_columns(table, X, *new_labels(model.estimator, table, X, args), args.id)


def _takes_unlabelled(estimator: Any) -> bool:
    """Whether rows without a label are of use to an estimator; to TAO only if it has a teacher."""
    parameters = estimator.get_params(deep=False)
    return "unlabeled" in parameters and not (isinstance(estimator, TAOClassifier) and estimator.teacher is None)


def _check_weight(table: Table, name: str) -> None:
    if not table.is_numeric(name):
        raise InvalidInputError(f"the weight column {name!r} has text; weights must be numbers")


def _weights(table: Table, name: str | None, used: AnyArray, counted: AnyArray) -> AnyArray | None:
    """Weights of the rows of a fit; those that do not count may be empty."""
    if name is None:
        return None
    _check_weight(table, name)
    empty = used & ~counted & np.isnan(table[name])
    bad = used & ~empty & ~(np.isfinite(table[name]) & (table[name] >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidInputError(f"weight {name!r} is {table[name][row]:g} in row {row + 1}; expected 0 or more")
    return table[name][used]


def _classes(y: AnyArray, totals: dict[Any, Any] | None, groups: AnyArray | None) -> list[Any]:
    """Return the classes of rows and those that only totals name."""
    labels = {label for label in y.tolist() if label is not None}
    parts = [] if totals is None else [totals] if groups is None else totals.values()
    return sorted(labels.union(*parts))


def _warm_start(path: str, names: list[str], classes: list[Any]) -> Any:
    start = TableModel.read(path)
    if start.feature_names is not None and start.feature_names != names:
        raise InvalidInputError(
            f"--warm-start {path}: its features are {listing(start.feature_names)}, here they are {listing(names)}"
        )
    if start.estimator.classes_.tolist() != classes:
        raise InvalidInputError(
            f"--warm-start {path}: its classes are {listing(start.estimator.classes_)}, here they are "
            f"{listing(classes)}"
        )
    return start.estimator


# ---------------------------------------------------------------------- from a fit to words


def _status_lines(estimator: Any) -> list[str]:
    record = estimator.record_
    return [
        f"status: {record.status} ({STATUS_WORDS[record.status]})",
        *([f"why: {record.reason}"] if record.reason else []),
        ", ".join(f"{name}: {value}" for name, value in proof_words(record)) + f", time: {record.seconds:.1f} s",
        *_totals_lines(estimator),
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


def _totals_lines(estimator: Any) -> list[str]:
    reached = getattr(estimator, "totals_", [])
    return ["totals of the rows without a label:", *totals_table(reached)] if reached else []


def _counts(classes: AnyArray, predicted: AnyArray) -> list[dict[str, Any]]:
    return [
        {"class": label, "rows": int(np.count_nonzero(predicted == label))} for label in np.asarray(classes).tolist()
    ]


def _model_document(model: TableModel) -> dict[str, Any]:
    estimator, record = model.estimator, model.estimator.record_
    return {
        "estimator": type(estimator).__name__,
        "target": model.target,
        "classes": estimator.classes_.tolist(),
        "features": model.feature_names,
        "categories": _categories(estimator, model.feature_names),
        "parameters": {k: finite(v) if isinstance(v, float) else v for k, v in plain_parameters(estimator).items()},
        "status": record.status,
        "reason": record.reason,
        **{
            name: None if (value := getattr(record, name)) is None else finite(value)
            for name in ("objective", "bound", "gap")
        },
        "seconds": record.seconds,
        "rules": estimator.export_text(),
        "totals": getattr(estimator, "totals_", []),
    }
