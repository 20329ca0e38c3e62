"""From the arguments of ``fit`` to an estimator and the rows it is fitted to."""

from __future__ import annotations

import argparse
import ast
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from treewright.cli.files import TableModel
from treewright.cli.ids import warn_of_repeated_ids
from treewright.cli.labels import read_labels, warn_of_marks, without_mark
from treewright.cli.spelling import Spelling
from treewright.cli.totals import asked_margins, fit_totals, knows_totals, totals_rules
from treewright.core.names import printable
from treewright.data.columns_checked import AnyArray, listing, meant, missing_mask
from treewright.data.margins import split_margins
from treewright.data.mixed_table import MixedEncoder
from treewright.data.table import EncodedRows, FileTable, Surprises, Table, TableEncoder, number_texts, open_table
from treewright.estimators.totals_model import PricedModel
from treewright.exceptions import InvalidInputError
from treewright.models.registry import LABELLERS, SHORT_NAMES
from treewright.models.tao.estimator import TAOClassifier

__all__ = ["ESTIMATORS", "FitRows", "opened_rows", "takes_unlabelled"]

_OPTIONS = ("max_depth", "time_limit", "solver", "gap", "n_jobs", "random_state")
_WHOLE_ROWS = 200_000
"""More rows than these are labelled part by part."""
_PART_ROWS, _PART_CELLS = 50_000, 4_000_000
"""Most rows, and most cells of features, of a part."""
_CACHED_CELLS = 1_000_000
"""Most cells where rows are in memory: small parts stay in the cache, and cost nothing more."""


@dataclass(frozen=True)
class FitRows:
    """What is fitted, and to what."""

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

    @cached_property
    def X(self) -> AnyArray:
        """Features of all rows."""
        return self._encoded(self.table)

    @property
    def names(self) -> list[str]:
        """Names of the features."""
        return self.encoder.feature_names

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


@contextmanager
def opened_rows(args: argparse.Namespace) -> Iterator[FitRows]:
    """Open the table of a fit; what can be refused before is refused before.

    Without a model named, what is fitted depends on whether there are rows without a label.
    """
    asked = _planned(args, True) if args.model is not None or asked_margins(args) else None
    native = asked is not None and _takes(asked[0], "categorical_features")
    opened = open_table(
        args.data,
        na=args.na,
        encoding=args.encoding,
        text=[] if args.id is None else [args.id],
        look=lambda first: _check_columns(first, args, native),
    )
    with opened as table:
        y = read_labels(table, args.target, Spelling(args.spelling))
        estimator, tree = asked or _planned(args, bool(missing_mask(y).any()))
        # without prices a forest is weighted by the votes of all rows at once
        priced = isinstance(estimator, PricedModel) and getattr(estimator, "class_prices", True)
        large = table.n_rows > _WHOLE_ROWS and priced and len(asked_margins(args)) < 2
        yield _read_rows(args, table if large else table.whole(), y, estimator, tree, large)


def _read_rows(args: argparse.Namespace, table: Table, y: AnyArray, estimator: Any, tree: Any, large: bool) -> FitRows:
    """What is fitted, to rows that are there or come in parts."""
    semi_supervised = takes_unlabelled(estimator)
    if semi_supervised:
        y = without_mark(y, estimator, args)
    warn_of_marks(table, args.target, y, estimator)
    totals, groups = fit_totals(args, table, y, large)
    features = _feature_columns(table, args)
    untold = _untold_columns(table, features, y, asked=args.features is not None)
    features = [name for name in features if name not in untold]
    _warn_of_row_numbers(table, features)
    encoder = _encoder(estimator, table, features)
    if args.warm_start is not None:
        start = _warm_start(args.warm_start, encoder.feature_names, _classes(y, totals, groups))
        (estimator if tree is None else tree).set_params(warm_start=start)
    if tree is not None:
        tree.set_params(unlabeled=estimator.unlabeled)
    known = ~missing_mask(y)
    used = np.ones(len(y), dtype=bool) if semi_supervised else known
    counted = used & known if knows_totals(type(estimator)) else used
    more = {"sample_weight": _weights(table, args.weight, used, counted)}
    if totals is not None:
        more |= {"totals": totals, "groups": groups} | totals_rules(args)
    if args.protected is not None:
        more["protected"] = _protected(table, args, used)
    rows = FitRows(estimator, tree, table, encoder, y, used, more, large, untold)
    if not large:
        _ = rows.X  # what cannot be used is refused here
        if args.id is not None:
            warn_of_repeated_ids(table, args.id)
    return rows


# ---------------------------------------------------------------------- estimators


def _planned(args: argparse.Namespace, hidden: bool) -> tuple[Any, Any]:
    """The estimator and, for the whole job, the tree that is to explain its labels."""
    name = args.model or ("totals" if hidden else "oct-h")
    job = args.model is None and hidden
    if args.estimator is not None and name not in LABELLERS:
        raise InvalidInputError(f"--estimator: {name} has none; it is for --model totals or c2rf, or for no --model")
    if args.suspects is not None and not hasattr(SHORT_NAMES.get(name), "relabel_table"):
        able = ", ".join(name for name, kind in sorted(SHORT_NAMES.items()) if hasattr(kind, "relabel_table"))
        raise InvalidInputError(f"--suspects: {name} does not look for wrong labels; {able} do")
    if name in LABELLERS and args.time_limit is not None and not args.time_limit > 0:
        raise InvalidInputError(f"--time-limit {args.time_limit}: expected seconds above 0 for time_limit")
    if not job:
        estimator, tree = _estimator(args, name), None
    else:
        tree = _estimator(args, "s2oct")
        tree._validate_params()  # its fit comes last, and is to refuse nothing by then
        tree._prepared(False)
        kept = {"unlabeled": tree.unlabeled, "random_state": args.random_state}
        estimator = LABELLERS[name](_wrapped(args), **kept)
    margins = asked_margins(args)
    if margins and not knows_totals(type(estimator)):
        kinds = {**SHORT_NAMES, **LABELLERS}
        able = ", ".join(other for other, kind in sorted(kinds.items()) if knows_totals(kind))
        raise InvalidInputError(f"{margins[0].option}: {name} does not know totals; models that do: {able}")
    if len(margins) > 1 and not estimator._crossing:
        able = ", ".join(other for other, kind in sorted(LABELLERS.items()) if kind._crossing)
        raise InvalidInputError(
            f"--margin: {name} takes totals of one margin; of several --model {able} does, and a fit without --model"
        )
    if args.protected is not None and "protected" not in signature(estimator.fit).parameters:
        raise InvalidInputError(f"--protected: {name} does not know protected groups; fair-oct does")
    return estimator, tree


ESTIMATORS: dict[str, Callable[[], Any]] = {
    "auto": lambda: "auto",
    "boosting": HistGradientBoostingClassifier,
    "extra-trees": lambda: ExtraTreesClassifier(200),
    "forest": lambda: RandomForestClassifier(200),
    "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
}
"""What ``--estimator`` names."""


_ENSEMBLES = ("extra-trees", "forest")
"""Those that have members to weigh."""


def _wrapped(args: argparse.Namespace, model: str = "totals") -> Any:
    name = args.estimator or ("auto" if model == "totals" else "forest")
    if model == "c2rf" and name not in _ENSEMBLES:
        raise InvalidInputError(
            f"--estimator {name}: c2rf weighs the members of an ensemble, {' or '.join(_ENSEMBLES)}; --model totals "
            "takes any estimator"
        )
    return ESTIMATORS[name]()


def takes_unlabelled(estimator: Any) -> bool:
    """Whether rows without a label are of use to an estimator; to TAO only if it has a teacher."""
    return _takes(estimator, "unlabeled") and not (isinstance(estimator, TAOClassifier) and estimator.teacher is None)


def _takes(estimator: Any, name: str) -> bool:
    return name in estimator.get_params(deep=False)


def _estimator(args: argparse.Namespace, model: str) -> Any:
    kind: Any = (LABELLERS if model in LABELLERS else SHORT_NAMES)[model]
    accepted = kind().get_params(deep=False)
    given = {name: getattr(args, name) for name in _OPTIONS if getattr(args, name) is not None}
    if args.seed_drawn and "random_state" not in accepted:
        del given["random_state"]
    if model in LABELLERS:
        given["estimator"] = _wrapped(args, model)
        for of_job in {"time_limit", "n_jobs"} - set(accepted):  # parts of labels left out, cores that score rows
            given.pop(of_job, None)
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
        hint = "" if args.model is not None else " (without --model the tree that explains the labels is an s2oct)"
        words = f"{model} has no parameter {unknown[0]!r}{hint}; it has {', '.join(sorted(accepted))}"
        raise InvalidInputError(words)
    if given.get("estimator") == "graph" and model == "laptao":
        raise InvalidInputError(
            "--set estimator=graph: such a model is the rows of its fit, which no model file holds; take tao or cart, "
            "or LapTAOClassifier in Python"
        )
    if given.get("n_estimators", 1) != 1 and model == "laptao":
        raise InvalidInputError(
            "--set n_estimators: a forest has no one tree to write; take LapTAOClassifier in Python"
        )
    return kind(**given)


def _literal(text: str) -> object:
    """Return the number, bool, None or list that a text spells, else the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return text


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
    groups = [name for name in (*(m.column for m in asked_margins(args)), args.protected) if name is not None]
    unknown = [name for name in (*aside, *groups, *args.drop, *(args.features or [])) if name not in table.columns]
    if unknown:
        said = [f"there is no column {name!r}; {meant(name, table.columns)}" for name in dict.fromkeys(unknown)]
        raise InvalidInputError("; ".join(said))
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
    first = table.head(1000)
    for name in columns:
        likely = first.is_numeric(name) and first.n_rows > 2 and np.all(np.diff(first[name]) == 1)
        if likely and table.is_numeric(name) and np.all(np.diff(table[name]) == 1):
            warnings.warn(
                f"column {name!r} numbers the rows and is used as a feature; --drop {printable(name)} leaves it out",
                UserWarning,
                stacklevel=2,
            )


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
            what += ", and a feature as --features names it: it says nothing of these rows, and labels left out are "
            what += "found more easily than theirs"
        else:
            what += " and is left out: it can tell who was asked, not how others would answer (a weight is --weight; "
            what += "--features uses it all the same)"
        warnings.warn(what, UserWarning, stacklevel=2)
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


def _protected(table: Table, args: argparse.Namespace, used: AnyArray) -> AnyArray:
    """Protected groups of the rows of a fit, as text."""
    name, spelling = args.protected, Spelling(args.spelling)
    text = spelling.column(number_texts(table.series(name)), f"the column of protected groups {name!r}")
    groups = np.asarray(text.to_numpy(), dtype=object)
    lost = used & missing_mask(groups)
    if lost.any():
        raise InvalidInputError(
            f"--protected: column {name!r} is empty in row {np.argmax(lost) + 1}; each row with a label needs a group"
        )
    return groups[used]


def _classes(y: AnyArray, totals: Any, groups: Any) -> list[Any]:
    """Return the classes of rows and those that only totals name."""
    labels = set(y[~missing_mask(y)].tolist())
    named = [name for part, of in split_margins(totals, groups) for name in _classes_of(part, of)] if totals else []
    return sorted(labels.union(named))


def _classes_of(totals: dict[Any, Any], groups: Any) -> list[Any]:
    return list(totals) if groups is None else [name for part in totals.values() for name in part]


def _warm_start(path: str, names: list[str], classes: list[Any]) -> Any:
    start = TableModel.read(path)
    if start.tree_model is None:
        raise InvalidInputError(f"--warm-start {path}: there is no tree in it")
    if start.feature_names is not None and start.feature_names != names:
        raise InvalidInputError(
            f"--warm-start {path}: its features are {listing(start.feature_names)}, here they are {listing(names)}"
        )
    if start.estimator.classes_.tolist() != classes:
        raise InvalidInputError(
            f"--warm-start {path}: its classes are {listing(start.estimator.classes_)}, here they are "
            f"{listing(classes)}"
        )
    return start.tree_model
