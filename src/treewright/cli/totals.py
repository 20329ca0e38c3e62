"""Files with known totals of the classes: a table or JSON, read into what ``fit`` takes."""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from treewright.cli.answers import Answers
from treewright.data._checks import AnyArray, Coded, listing, missing_mask
from treewright.data._totals_input import interval
from treewright.data.table import Table, is_missing, is_number, number_text, read_cells
from treewright.exceptions import InvalidInputError, ModelFileError
from treewright.report import office_totals
from treewright.tree.json_files import read_json

__all__ = ["check_groups_asked", "fitted_shares", "knows_totals", "new_labels", "read_totals", "totals_rules"]

_WHOLE = re.compile(r"[+-]?\d+")
_LONG = ("class", "low", "high")


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
    groups = _groups_of(table, args, known)
    totals = read_totals(
        args.totals,
        groups=args.groups,
        whole_labels=estimator.classes_.dtype.kind in "iu",
        numeric_groups=args.groups is not None and table.is_numeric(args.groups),
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


def _groups_of(table: Table, args: argparse.Namespace, known: AnyArray) -> Coded | None:
    """The group of each row; those of rows without a label must not be missing."""
    if args.groups is None:
        return None
    groups = table.coded(args.groups)
    lost = ~known & (groups.numbers < 0)
    if lost.any():
        whose = "each row without a label needs a group" if known.any() else "each row needs a group"
        raise InvalidInputError(f"--groups: column {args.groups!r} is empty in row {np.argmax(lost) + 1}; {whose}")
    return groups


def fitted_shares(estimator: Any) -> AnyArray | None:
    """Shares of the classes of all rows after a fit, whose sums over rows without a label are the totals.

    None where a model knows no totals, or had none.
    """
    return estimator.transduction_proba_ if getattr(estimator, "totals_", []) else None


def read_totals(
    path: str,
    *,
    groups: str | None,
    whole_labels: bool,
    numeric_groups: bool,
    na: Collection[str] = (),
    encoding: str | None = None,
) -> dict[Any, Any]:
    """Read totals of the rows without a label.

    Parameters
    ----------
    path : str
        A text table with one column a class, or ``.json`` with ``{class: total}``; a total is a count (a whole
        number), a share (a number with a decimal point) or, in JSON, a list of the lowest and the highest. With
        groups, the table has one row a group and a column that names it, and JSON has ``{group: {class: total}}``.
        A table with columns "class", "low" and "high" has intervals, a row for each class (of each group).
    groups : str or None
        Name of the column of groups; a table without such a column has the groups in its first one.
    whole_labels, numeric_groups : bool
        Whether the classes are whole numbers and the groups numbers in the data.
    na : collection of str
        What else is a missing cell. The class of a missing cell is free.
    encoding : str or None
        Encoding of a text table that is not UTF-8.

    Returns
    -------
    dict
        ``{label: total}``, or ``{group: {label: total}}`` with groups as text.
    """

    def label(text: str) -> object:
        return int(text) if whole_labels and _WHOLE.fullmatch(text) else text

    def group(text: str) -> object:
        return number_text(float(text)) if numeric_groups and is_number(text) and not is_missing(text) else text

    if Path(path).suffix.lower() == ".json":
        return _from_json(path, groups, label, group)
    return _from_cells(path, groups, label, group, na, None if _is_utf8(path) else encoding)


Name = Callable[[str], object]


def _from_json(path: str, groups: str | None, label: Name, group: Name) -> dict[Any, Any]:
    try:
        document = read_json(path)
    except ModelFileError as error:
        raise InvalidInputError(f"--totals: {error}") from error
    form = "{class: total}" if groups is None else "{group: {class: total}}"
    if not isinstance(document, dict) or not document:
        raise InvalidInputError(f"--totals {path}: expected an object, {form}")
    if groups is None:
        if any(isinstance(value, dict) for value in document.values()):
            raise InvalidInputError(f"--totals {path}: has totals by group; name the column with --groups")
        return _named(path, "class", ((label(key), value) for key, value in document.items()))
    if not all(isinstance(value, dict) for value in document.values()):
        raise InvalidInputError(f"--totals {path}: expected {form} with --groups {groups}")
    parts = {
        key: _named(path, "class", ((label(name), value) for name, value in part.items()))
        for key, part in document.items()
    }
    return _named(path, "group", ((group(key), part) for key, part in parts.items()))


def _is_utf8(path: str) -> bool:
    """Whether a file is UTF-8: the encoding of the data is not that of each file beside it."""
    try:
        Path(path).read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return Path(path).suffix.lower() == ".gz"  # which says nothing of what is in it
    except OSError:  # said by who reads it
        pass
    return True


def _from_cells(
    path: str, groups: str | None, label: Name, group: Name, na: Collection[str], encoding: str | None
) -> dict[Any, Any]:
    header, rows = read_cells(path, encoding)
    if not rows:
        raise InvalidInputError(f"--totals {path}: has no rows")
    if set(_LONG) <= set(header):
        return _from_intervals(path, header, rows, groups is not None, label, group, na)
    at = None if groups is None else header.index(groups) if groups in header else 0
    classes = [(j, label(name)) for j, name in enumerate(header) if j != at]
    totals = [
        {j: _number(row[j], f"--totals {path}: row {i}, column {header[j]!r}") for j, _ in classes}
        for i, row in enumerate(_without_missing(rows, na), start=1)
        if at is not None or len(rows) == 1
    ]
    if not totals:
        raise InvalidInputError(
            f"--totals {path}: has {len(rows)} rows, expected one; for a row a group, name the column with --groups"
        )
    totals = _shares(totals)
    parts = [_named(path, "class", ((name, part[j]) for j, name in classes if part[j] is not None)) for part in totals]
    if at is None:
        return parts[0]
    names = [row[at] for row in rows]
    if any(is_missing(name, na) for name in names):
        raise InvalidInputError(f"--totals {path}: a row has no group in column {header[at]!r}")
    return _named(path, "group", zip(map(group, names), parts, strict=True))


def _from_intervals(
    path: str, header: list[str], rows: list[list[str]], grouped: bool, label: Name, group: Name, na: Collection[str]
) -> dict[Any, Any]:
    """A row for each class, of each group, with the ends of its interval; an empty end is open."""
    at = {name: header.index(name) for name in (*_LONG, "total") if name in header}
    others = [j for j in range(len(header)) if j not in at.values()]
    if len(others) > grouped:
        names = listing(header[j] for j in others)
        remedy = "leave out all but the column of groups" if grouped else "name the column of groups with --groups"
        raise InvalidInputError(f"--totals {path}: beside class, low, high and total it has {names}; {remedy}")
    if len(others) < grouped:
        raise InvalidInputError(f"--totals {path}: has no column that names the groups")
    cells = _without_missing(rows, na)
    ends = [
        {j: _number(row[j], f"--totals {path}: row {i}, column {name!r}") for name, j in at.items() if name != "class"}
        for i, row in enumerate(cells, start=1)
    ]
    parts: dict[Any, list[tuple[object, Any]]] = {}
    for row, part in zip(cells, _shares(ends), strict=True):
        if not row[at["class"]] or (grouped and not row[others[0]]):
            raise InvalidInputError(f"--totals {path}: a row has no class or no group")
        asked = interval(*(part[at[name]] for name in ("low", "high", "total") if name in at))
        of = parts.setdefault(group(row[others[0]]) if grouped else None, [])
        if asked is not None:
            of.append((label(row[at["class"]]), asked))
    found = {name: _named(path, "class", of) for name, of in parts.items()}
    return found if grouped else found[None]


def _without_missing(rows: list[list[str]], na: Collection[str]) -> list[list[str]]:
    return [["" if is_missing(cell, na) else cell for cell in row] for row in rows]


def _number(cell: str, where: str) -> int | float | None:
    """Return a count, a share, or None for an empty cell."""
    if not cell:
        return None
    if _WHOLE.fullmatch(cell):
        return int(cell)
    if not is_number(cell):
        raise InvalidInputError(f"{where}: {cell!r} is no number; write a count such as 45 or a share such as 0.45")
    return float(cell)


def _shares(totals: list[dict[int, int | float | None]]) -> list[dict[int, int | float | None]]:
    """Take 1 for the share 1.0 in a table that has shares and no other counts than 0 and 1."""
    given = [value for part in totals for value in part.values() if value is not None]
    if any(isinstance(value, float) for value in given) and all(0 <= value <= 1 for value in given):
        return [{j: None if value is None else float(value) for j, value in part.items()} for part in totals]
    return totals


def _named(path: str, what: str, pairs: Iterable[tuple[object, Any]]) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for name, value in pairs:
        if name in found:
            raise InvalidInputError(f"--totals {path}: the {what} {listing([name])} occurs twice")
        found[name] = value
    return found
