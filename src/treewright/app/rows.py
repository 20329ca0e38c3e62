"""From a table and what is asked to an estimator and the rows it is fitted to."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from treewright.app.ids import warn_of_repeated_ids
from treewright.app.labels import read_labels, warn_of_marks, without_mark
from treewright.app.options import FitOptions, is_path, knows_totals
from treewright.app.planning import planned_estimators, takes_parameter, takes_unlabelled
from treewright.app.table_model import TableModel
from treewright.app.totals import fit_totals
from treewright.core.names import option, printable
from treewright.data.columns_checked import AnyArray, listing, meant, missing_mask
from treewright.data.margins import split_margins
from treewright.data.rows import is_frame
from treewright.data.tables.cells import as_series, number_texts
from treewright.data.tables.encoder import Surprises, TableEncoder
from treewright.data.tables.encoding import EncodedRows
from treewright.data.tables.files import Table
from treewright.data.tables.large import FileTable, open_table
from treewright.data.tables.mixed_encoder import MixedEncoder
from treewright.estimators.tables import frame_cells, frame_columns, read_frame
from treewright.estimators.totals_model import PricedModel
from treewright.exceptions import InvalidInputError, warn_user

__all__ = ["FitRows", "opened_rows"]

_WHOLE_ROWS = 200_000
"""More rows than these are labelled part by part."""
_PART_ROWS, _PART_CELLS = 50_000, 4_000_000
"""Most rows, and most cells of features, of a part."""
_CACHED_CELLS = 1_000_000
"""Most cells where rows are in memory: small parts stay in the cache, and cost nothing more."""


@dataclass(frozen=True)
class FitRows:
    """What is fitted, and to what."""

    options: FitOptions
    """What was asked for."""
    estimator: Any
    """Not fitted."""
    tree: Any
    """What is to explain its labels; None if it is a tree itself, or was asked for alone."""
    table: Table
    encoder: TableEncoder | MixedEncoder
    y: AnyArray
    """Labels of all rows, None where there is none."""
    used: AnyArray
    """Whether rows take part: those without a label in semi-supervised models alone."""
    more: dict[str, Any]
    """Weights, totals and groups, protected groups, as ``fit`` takes them."""
    large: bool = False
    """Whether rows are encoded and labelled part by part."""
    untold: tuple[str, ...] = ()
    """Columns that are empty in all rows without a label, and therefore no features."""
    file: str = ""
    """Name of the file of the table; empty for a frame."""
    given_ids: pl.Series | None = None
    """What names the rows of a frame, as it was given."""

    @cached_property
    def X(self) -> AnyArray:
        """Features of all rows."""
        return self._encoded(self.table)

    @property
    def names(self) -> list[str]:
        """Names of the features."""
        return self.encoder.feature_names

    @property
    def labels_rows(self) -> bool:
        """Whether the model labels rows; others are trees."""
        return isinstance(self.estimator, PricedModel)

    @property
    def ids(self) -> pl.Series | None:
        """What names the rows; None where nothing does."""
        name = self.options.id
        return None if name is None else self.table.series(name) if self.given_ids is None else self.given_ids

    @cached_property
    def known(self) -> AnyArray:
        """Whether rows have a label."""
        return ~missing_mask(self.y)

    # ------------------------------------------------------------------ a register that comes in parts

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.y)

    def parts(self) -> Iterator[AnyArray]:
        """Features of all rows, some at a time."""
        if self.encoded is None:
            return (self._encoded(part) for part in self.table.batches(self.encoder.columns, self.part_rows))
        return (self.encoded.features(slice(start, start + self.part_rows)) for start in self.part_starts)

    def taken(self, rows: AnyArray) -> AnyArray:
        """Features of some rows."""
        if self.encoded is None:
            return self._encoded(self.table.taken(rows, self.encoder.columns))
        return self.encoded.features(rows)

    @cached_property
    def encoded(self) -> EncodedRows | None:
        """All rows, looked at once; None where not all are in memory, or the model takes them as they are."""
        if isinstance(self.table, FileTable) or isinstance(self.encoder, MixedEncoder):
            return None
        return self.encoder.encoded(self.table, Surprises())

    @property
    def part_rows(self) -> int:
        """Rows of a part."""
        cells = _PART_CELLS if self.encoded is None else _CACHED_CELLS
        return max(1, min(_PART_ROWS, cells // len(self.names)))

    @property
    def part_starts(self) -> range:
        """First row of each part."""
        return range(0, self.n_rows, self.part_rows)

    def _encoded(self, table: Table) -> AnyArray:
        if isinstance(self.encoder, MixedEncoder):
            return self.encoder.transform(table)[0]
        return self.encoder.transform(table, Surprises())[0]


def opened_rows(source: Any, options: FitOptions, opened: ExitStack) -> FitRows:
    """Open the table of a fit, a path or a frame; what can be refused before is refused before.

    Without a model named, what is fitted depends on whether there are rows without a label. Files stay open until
    `opened` is closed.
    """
    asked = planned_estimators(options, True) if options.model is not None or options.asked_margins else None
    native = asked is not None and takes_parameter(asked[0], "categorical_features")

    def look(first: Table) -> None:
        _check_columns(first, options, native)

    columns, text = {}, [] if options.id is None else [options.id]
    if is_path(source):
        how: dict[str, Any] = {"na": options.na, "encoding": options.encoding, "text": text, "look": look}
        table = opened.enter_context(open_table(source, **how))
    else:
        columns = _frame_columns(source)  # whose cells are read as those of a file
        table = read_frame(columns, options.na, text)
        look(table)
    y = read_labels(table, options.target, options.names)
    estimator, tree = asked or planned_estimators(options, bool(missing_mask(y).any()))
    # without prices a forest is weighted by the votes of all rows at once
    priced = isinstance(estimator, PricedModel) and getattr(estimator, "class_prices", True)
    large = table.n_rows > _WHOLE_ROWS and priced and len(options.asked_margins) < 2
    rows = _read_rows(options, table if large else table.whole(), y, estimator, tree, large)
    if is_path(source):
        return replace(rows, file=os.path.basename(source))
    if options.id is None:
        return rows
    return replace(rows, given_ids=as_series(options.id, frame_cells(columns[options.id])))


def _frame_columns(source: Any) -> dict[str, Any]:
    """Columns of a frame of pandas or polars."""
    frame = source.collect() if isinstance(source, pl.LazyFrame) else source
    if not is_frame(frame):
        kind = type(source).__name__
        raise InvalidInputError(f"the table is of type {kind}; expected a path, or a frame of pandas or polars")
    if not frame.shape[0]:
        raise InvalidInputError("the table has no rows")
    return frame_columns(frame)


def _read_rows(options: FitOptions, table: Table, y: AnyArray, estimator: Any, tree: Any, large: bool) -> FitRows:
    """What is fitted, to rows that are there or come in parts."""
    semi_supervised = takes_unlabelled(estimator)
    if semi_supervised:
        y = without_mark(y, estimator, options)
    warn_of_marks(table, options.target, y, estimator)
    totals, groups = fit_totals(options, table, y, large)
    features = _feature_columns(table, options)
    untold = _untold_columns(table, features, y, asked=options.features is not None)
    features = [name for name in features if name not in untold]
    _warn_of_row_numbers(table, features)
    encoder = _encoder(estimator, table, features)
    if options.warm_start is not None:
        start = _warm_start(options.warm_start, encoder.feature_names, _classes(y, totals, groups))
        (estimator if tree is None else tree).set_params(warm_start=start)
    if tree is not None:
        tree.set_params(unlabeled=estimator.unlabeled)
    known = ~missing_mask(y)
    used = np.ones(len(y), dtype=bool) if semi_supervised else known
    counted = used & known if knows_totals(type(estimator)) else used
    more = {"sample_weight": _weights(table, options.weight, used, counted)}
    if totals is not None:
        more |= {"totals": totals, "groups": groups} | options.totals_rules
    if options.protected is not None:
        more["protected"] = _protected(table, options.protected, options, used)
    rows = FitRows(options, estimator, tree, table, encoder, y, used, more, large, untold)
    if not large:
        _ = rows.X  # what cannot be used is refused here
        if options.id is not None:
            warn_of_repeated_ids(table, options.id)
    return rows


# ---------------------------------------------------------------------- columns


def _check_columns(first: Table, options: FitOptions, native: bool) -> None:
    """Refuse what the first rows show to be unusable, all of it in one error, before the rest is read."""
    features = _feature_columns(first, options)
    checks: list[Callable[[], object]] = []
    weight = options.weight
    if weight is not None and not first.missing(weight).all():
        checks.append(lambda: _check_weight(first, weight))
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


def _feature_columns(table: Table, options: FitOptions) -> list[str]:
    aside = [name for name in (options.target, options.weight, options.id) if name is not None]
    groups = [name for name in (*(m.column for m in options.asked_margins), options.protected) if name is not None]
    unknown = [
        name for name in (*aside, *groups, *options.drop, *(options.features or [])) if name not in table.columns
    ]
    if unknown:
        said = [f"there is no column {name!r}; {meant(name, table.columns)}" for name in dict.fromkeys(unknown)]
        raise InvalidInputError("; ".join(said))
    if options.features is None:
        return [name for name in table.columns if name not in (*aside, *groups, *options.drop)]
    for name in options.features:
        if name in aside:
            raise InvalidInputError(
                f"{option('features')}: {name!r} is the target, the weight or the id, not a feature"
            )
    if len(set(options.features)) < len(options.features):
        raise InvalidInputError(f"{option('features')}: a column is named twice")
    return list(options.features)


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
        such_as = option("settings", {"categorical_features": [printable(columns[0])]})
        raise InvalidInputError(
            f"{option('settings')} categorical_features: there is no feature {listing(unknown)}; name columns, such as "
            f"{such_as}"
        )
    chosen = sorted({*encoder.categorical, *(columns.index(name) for name in named)})
    estimator.set_params(categorical_features=chosen or None)
    return encoder


def _warn_of_row_numbers(table: Table, columns: list[str]) -> None:
    first = table.head(1000)
    for name in columns:
        likely = first.is_numeric(name) and first.n_rows > 2 and np.all(np.diff(first[name]) == 1)
        if likely and table.is_numeric(name) and np.all(np.diff(table[name]) == 1):
            left_out = f"{option('drop', printable(name))} leaves it out"
            warn_user(f"column {name!r} numbers the rows and is used as a feature; {left_out}")


def _untold_columns(table: Table, columns: list[str], y: AnyArray, asked: bool) -> tuple[str, ...]:
    """Columns that are filled where there is a label and empty elsewhere, which are left out unless asked for.

    They tell who was asked, and nothing of the rows to label; labels left out are found by them all the same, so that
    an estimate of accuracy would promise what is not there.
    """
    hidden = missing_mask(y)
    if not hidden.any() or hidden.all():
        return ()
    gaps = {name: table.missing(name) for name in columns}
    untold = tuple(name for name, missing in gaps.items() if missing[hidden].all() and not missing.all())
    for name in untold:
        what = f"column {name!r} is empty in all rows without a label"
        if asked:
            what += f", and a feature as {option('features')} names it: it says nothing of these rows, "
            what += "and labels left out are found more easily than theirs"
        else:
            what += " and is left out: it can tell who was asked, not how others would answer "
            what += f"(a weight is {option('weight')}; {option('features')} uses it all the same)"
        warn_user(what)
    return () if asked else untold


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


def _protected(table: Table, name: str, options: FitOptions, used: AnyArray) -> AnyArray:
    """Protected groups of the rows of a fit, as text."""
    text = options.names.column(number_texts(table.series(name)), f"the column of protected groups {name!r}")
    groups = np.asarray(text.to_numpy(), dtype=object)
    lost = used & missing_mask(groups)
    if lost.any():
        raise InvalidInputError(
            f"{option('protected')}: column {name!r} is empty in row {np.argmax(lost) + 1}; each row with a label "
            "needs a group"
        )
    return groups[used]


def _classes(y: AnyArray, totals: Any, groups: Any) -> list[Any]:
    """Return the classes of rows and those that only totals name."""
    labels = set(y[~missing_mask(y)].tolist())
    named = [name for part, of in split_margins(totals, groups) for name in _classes_of(part, of)] if totals else []
    return sorted(labels.union(named))


def _classes_of(totals: dict[Any, Any], groups: Any) -> list[Any]:
    return list(totals) if groups is None else [name for part in totals.values() for name in part]


def _warm_start(path: Any, names: list[str], classes: list[Any]) -> Any:
    start, asked = TableModel.read(path), option("warm_start", str(path))
    if start.tree_model is None:
        raise InvalidInputError(f"{asked}: there is no tree in it")
    if start.feature_names is not None and start.feature_names != names:
        raise InvalidInputError(
            f"{asked}: its features are {listing(start.feature_names)}, here they are {listing(names)}"
        )
    if start.estimator.classes_.tolist() != classes:
        raise InvalidInputError(
            f"{asked}: its classes are {listing(start.estimator.classes_)}, here they are {listing(classes)}"
        )
    return start.tree_model
