"""Validated input as a frozen dataclass: labelled rows, unlabelled rows, weights and names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_array, check_consistent_length

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.names import option
from treewright.data.columns_checked import (
    AnyArray,
    Coded,
    as_column,
    freeze,
    is_text,
    listing,
    meant,
    missing_mask,
    plain,
    refuse_dates,
    show,
    uniform,
)
from treewright.data.margins import groups_of_rows, split_margins
from treewright.data.marks import refuse_missing
from treewright.data.scaling import held_weights
from treewright.data.totals import ClassTotals, LabelledRows, TotalsRules, parse_totals
from treewright.data.totals_input import named_classes
from treewright.exceptions import InfeasibleTotalsError, InvalidInputError

__all__ = ["Problem", "hidden_totals", "make_problem", "unlabelled_mask"]

UNLABELLED = -1


@dataclass(frozen=True, eq=False)
class Problem:
    """Training data of a classifier, checked once. All arrays are read-only.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features)
        Features of all rows, labelled or not, in the given order.
    y : ndarray of int, shape (n_rows,)
        Class numbers, -1 for an unlabelled row.
    weight : ndarray of shape (n_rows,)
        Weights of the rows, at least one labelled row having more than zero.
    classes : ndarray of shape (n_classes,)
        The user's labels, sorted; class number ``k`` is ``classes[k]``.
    feature_names : tuple of str or None
        Names of the features, if they have any.
    totals : ClassTotals or None
        What is known about the classes of the unlabelled rows; None with several margins.
    margins : tuple of ClassTotals
        Totals of several margins, whose groups cross; empty for those of one.
    n_levels : ndarray of int, shape (n_features,), or None
        Levels of each categorical feature, 0 for a numerical one (:class:`~treewright.data.mixed.Features`); None where
        all are numerical. A value of a mixed table may be missing, NaN.
    table : frame, sparse matrix, array or None
        The rows as they were given, where a model hands them through to another estimator; X is then one constant
        feature.
    n_asked : int
        Rows that the fitted model will be asked for, where the unlabelled ones are a sample of them; 0 for no others.

    See Also
    --------
    make_problem : Makes one from what a user passes.

    Examples
    --------
    >>> problem = make_problem([[0.0], [1.0], [2.0]], ["b", "a", -1], supervised=False)
    >>> problem.classes.tolist(), problem.y.tolist(), problem.n_unlabelled
    (['a', 'b'], [1, 0, -1], 1)
    """

    X: FloatArray
    y: IntArray
    weight: FloatArray
    classes: AnyArray
    feature_names: tuple[str, ...] | None = None
    totals: ClassTotals | None = None
    margins: tuple[ClassTotals, ...] = ()
    n_levels: IntArray | None = None
    table: Any = None
    n_asked: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "X", freeze(np.ascontiguousarray(self.X, dtype=np.float64)))
        object.__setattr__(self, "y", freeze(np.ascontiguousarray(self.y, dtype=np.int64)))
        object.__setattr__(self, "weight", freeze(np.ascontiguousarray(self.weight, dtype=np.float64)))
        object.__setattr__(self, "classes", freeze(np.asarray(self.classes)))
        if self.X.ndim != 2 or self.y.shape != (len(self.X),) or self.weight.shape != (len(self.X),):
            raise InvalidInputError(
                f"X, y and weight do not belong together: their shapes are {self.X.shape}, {self.y.shape} "
                f"and {self.weight.shape}"
            )

    @cached_property
    def labelled(self) -> BoolArray:
        """Mask of the labelled rows."""
        return freeze(self.y >= 0)

    @cached_property
    def unlabelled(self) -> BoolArray:
        """Mask of the unlabelled rows."""
        return freeze(self.y < 0)

    @property
    def n_labelled(self) -> int:
        """Number of labelled rows."""
        return int(np.count_nonzero(self.labelled))

    @property
    def n_unlabelled(self) -> int:
        """Number of unlabelled rows."""
        return int(np.count_nonzero(self.unlabelled))

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @property
    def n_classes(self) -> int:
        """Number of classes, those known from totals alone included."""
        return len(self.classes)

    @cached_property
    def X_labelled(self) -> FloatArray:
        """Features of the labelled rows; `X` itself where all rows are labelled."""
        return self.X if self.labelled.all() else freeze(self.X[self.labelled])

    @cached_property
    def y_labelled(self) -> IntArray:
        """Class numbers of the labelled rows."""
        return freeze(self.y[self.labelled])

    @cached_property
    def weight_labelled(self) -> FloatArray:
        """Weights of the labelled rows."""
        return freeze(self.weight[self.labelled])

    @cached_property
    def X_unlabelled(self) -> FloatArray:
        """Features of the unlabelled rows."""
        return freeze(self.X[self.unlabelled])


def make_problem(
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | float | None = None,
    *,
    unlabeled: object = None,
    supervised: bool = True,
    totals: object = None,
    groups: ArrayLike | None = None,
    rules: TotalsRules | None = None,
    feature_names: Sequence[str] | None = None,
    min_classes: int = 2,
    n_levels: IntArray | None = None,
    empty_weights: bool = False,
) -> Problem:
    """Check what a user passed to ``fit`` and make a :class:`Problem` of it.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_features)
        Finite numbers: an array, a list of lists, a pandas or polars frame.
    y : array-like of shape (n_rows,)
        Strings, integers, bools, or floats without fractions.
    sample_weight : array-like of shape (n_rows,), float or None
        Weights of the rows, none negative. Rows of weight zero are kept.
    unlabeled : label, default=-1
        What marks an unlabelled row, beside NaN, None and pandas' NA. Used only with ``supervised=False``.
        A `y` of string dtype cannot hold -1: ``np.array(["a", "b", -1])`` is ``['a', 'b', '-1']``. There, and
        in a list or series that has strings only, the mark's string form ``'-1'`` marks an unlabelled row
        too. In an object array, which can hold -1 itself, ``'-1'`` is a label like any other.
    supervised : bool
        Whether every row must have a label; then -1 is a label like any other.
    totals : object
        What is known about the classes of the unlabelled rows, see :func:`treewright.data.parse_totals`; a list of
        such for several margins.
    groups : array-like of shape (n_rows,) or None
        Group of each row, for totals by group; for several margins a list of such, or a frame with a column a margin.
        Those of labelled rows are used for totals of all rows, and to know which groups there are.
    rules : TotalsRules or None
        Which rows totals count, whether classes that only they name become classes of the problem, and how near
        shares must be met.
    feature_names : sequence of str or None
        Names of the features. By default the columns of a frame, if they are strings.
    min_classes : int
        Fewest classes that make sense.
    n_levels : ndarray of int, shape (n_features,), or None
        With levels, X is what :class:`~treewright.data.mixed.Features` made of a mixed table: codes of categorical
        features, NaN for missing values. Zeros throughout allow missing values alone.
    empty_weights : bool
        Whether the weights of unlabelled rows do not count and may be NaN.

    Returns
    -------
    Problem
        The checked data.

    Raises
    ------
    InvalidInputError, ValueError, TypeError
        If the data cannot be used; the text names the value.
    InfeasibleTotalsError
        If the totals contradict the data or one another.

    Examples
    --------
    >>> X = [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]]
    >>> problem = make_problem(X, [0, 1, -1, -1], supervised=False, totals={1: 1})
    >>> problem.totals.low.tolist(), problem.X_unlabelled.tolist()
    ([[1, 1]], [[2.0, 2.0], [3.0, 1.0]])
    >>> make_problem(X, ["a", "a", "a", "a"])
    Traceback (most recent call last):
    ...
    treewright.exceptions.InvalidInputError: y has only one class, 'a'; a classifier needs at least two ...
    """
    names = _feature_names(X, feature_names)
    refuse_dates(X, "X")
    finite: Any = True if n_levels is None else "allow-nan"
    points = check_array(X, dtype=np.float64, order="C", input_name="X", ensure_all_finite=finite)
    if names is not None and len(names) != points.shape[1]:
        raise InvalidInputError(f"feature_names has {len(names)} names, X has {points.shape[1]} features")
    if y is None:
        raise InvalidInputError("a classifier requires y to be passed, but the target y is None")
    column = as_column(y, "y", warn=True)
    check_consistent_length(points, column)
    hidden = _hidden(y, column, supervised, UNLABELLED if unlabeled is None else unlabeled)
    labels = _labels(column[~hidden], n_rows=len(column))
    weight = _weights(sample_weight, points, ~hidden, empty_weights)

    seen, numbers = np.unique(labels, return_inverse=True)
    classes, asked, rules = seen, [], rules or TotalsRules()
    if totals is not None or groups is not None:
        _check_totals_apply(totals, supervised)
        asked = split_margins(totals, groups)
        extra = [name for part, of in asked for name in _named(part, of, len(points), seen)]
        _check_no_mark(extra, UNLABELLED if unlabeled is None else unlabeled)
        classes = _joined(seen, list(dict.fromkeys(extra)), rules.allow_new_classes)
    if len(classes) < min_classes:
        raise InvalidInputError(_too_few(classes, min_classes, column[hidden & ~missing_mask(column)]))
    code = np.full(len(points), UNLABELLED, dtype=np.int64)
    code[~hidden] = np.searchsorted(classes, seen)[numbers]

    margins = tuple(hidden_totals(part, of, classes, code, rules) for part, of in asked)
    return Problem(
        X=points,
        y=code,
        weight=weight,
        classes=classes,
        feature_names=names,
        totals=margins[0] if len(margins) == 1 else None,
        margins=margins if len(margins) > 1 else (),
        n_levels=n_levels,
    )


# ---------------------------------------------------------------------- features


def _feature_names(X: Any, feature_names: Sequence[str] | None) -> tuple[str, ...] | None:
    if feature_names is not None:
        if isinstance(feature_names, str) or not all(isinstance(n, str) for n in feature_names):
            raise InvalidInputError(f"feature_names must be a sequence of strings, got {feature_names!r}")
        return tuple(str(n) for n in feature_names)
    columns = getattr(X, "columns", None)
    if columns is None:
        return None
    names = list(columns)
    return tuple(str(n) for n in names) if all(isinstance(n, str) for n in names) else None


# ---------------------------------------------------------------------- labels


def unlabelled_mask(y: ArrayLike, unlabeled: object = UNLABELLED) -> BoolArray:
    """Mask of the unlabelled rows: those with the mark, NaN or None.

    Examples
    --------
    >>> unlabelled_mask(["yes", None, "-1"]).tolist()
    [False, True, True]
    """
    return _hidden(y, as_column(y, "y"), False, unlabeled)


def _hidden(y: object, column: AnyArray, supervised: bool, mark: object) -> BoolArray:
    """Mask of the unlabelled rows."""
    missing = missing_mask(column)
    if supervised:
        refuse_missing(missing)
        return missing
    return missing | _equals(column, missing, mark, text=is_text(y, column))


def _equals(column: AnyArray, missing: BoolArray, mark: object, text: bool) -> BoolArray:
    """Mask of the rows whose label is the mark, without comparing strings to numbers."""
    same = np.zeros(len(column), dtype=bool)
    mark = plain(mark)
    if text:
        same[~missing] = column[~missing].astype(str) == str(mark)
    elif column.dtype.kind == "O":
        same[~missing] = np.frompyfunc(lambda v: bool(v == mark), 1, 1)(column[~missing]).astype(bool)
    elif column.dtype.kind in "biuf" and isinstance(mark, bool | int | float):
        same = np.asarray(column == mark)
    return same


def _labels(labels: AnyArray, n_rows: int) -> AnyArray:
    """Return the labelled part as an array that has an order, or refuse it."""
    if len(labels) == 0:
        raise InvalidInputError(f"none of the {n_rows} rows has a label; at least one class must be labelled")
    labels = uniform(labels, "y")
    if labels.dtype.kind == "f" and np.any(np.isinf(labels)):
        raise InvalidInputError("Input y contains infinity, which is no label; use NaN for an unlabelled row")
    check_classification_targets(labels)
    return labels


def _too_few(classes: AnyArray, min_classes: int, marked: AnyArray) -> str:
    """What to say of too few classes, and of marks of unlabelled rows, which may have been meant as a class."""
    words = {1: "one", 2: "two", 3: "three"}
    has, needs = words.get(len(classes), str(len(classes))), words.get(min_classes, str(min_classes))
    noun = "class" if len(classes) == 1 else "classes"
    hint = f"; rows with {plain(marked[0])!r} count as unlabelled (parameter unlabeled)" if len(marked) else ""
    return f"y has only {has} {noun}, {listing(classes)}; a classifier needs at least {needs} classes{hint}"


# ---------------------------------------------------------------------- weights


def _weights(
    sample_weight: ArrayLike | float | None, points: FloatArray, labelled: BoolArray, empty: bool
) -> FloatArray:
    given = None if sample_weight is None else np.asarray(sample_weight)
    if given is not None and empty and given.shape == labelled.shape and given.dtype.kind in "fO":
        gone = ~labelled & missing_mask(given)
        given = sample_weight = np.where(gone, 1.0, given) if gone.any() else given
    if given is not None and given.shape == (len(points),) and given.dtype.kind == "f":
        bad = ~np.isfinite(given)
        if bad.any():
            row = int(np.argmax(bad))
            value = "NaN" if np.isnan(given[row]) else show(given[row])
            raise InvalidInputError(f"Input sample_weight contains {value} in row {row}; weights must be finite")
    weight = np.asarray(_check_sample_weight(sample_weight, points, dtype=np.float64))
    if np.any(weight < 0):
        row = int(np.argmax(weight < 0))
        raise InvalidInputError(
            f"Negative values in sample_weight: {show(weight[row])} in row {row}; weights must be zero or more"
        )
    if not np.any(weight[labelled] > 0):
        raise InvalidInputError(
            "Sample weights must contain at least one non-zero number: those of all labelled rows are zero"
        )
    with np.errstate(over="ignore"):
        if not np.isfinite(weight.sum()):
            raise InvalidInputError(f"sample_weight sums to infinity, its largest is {show(weight.max())}; divide all")
    return held_weights(weight)


# ---------------------------------------------------------------------- totals


def _check_totals_apply(totals: object, supervised: bool) -> None:
    if totals is None:
        raise InvalidInputError("groups are given without totals; pass totals by group, or leave groups out")
    if supervised:
        raise InvalidInputError("totals are about unlabelled rows, and a supervised model has none")


def _named(totals: object, groups: ArrayLike | None, n_rows: int, classes: AnyArray) -> list[object]:
    """Classes that totals name, whose groups have been looked at."""
    if groups is not None:
        n_groups = len(groups) if isinstance(groups, Coded) else len(as_column(groups, "groups"))
        if n_groups != n_rows:
            raise InfeasibleTotalsError(f"groups has {n_groups} entries, X has {n_rows} rows; give one group a row")
    return named_classes(totals, groups is not None, classes)


def hidden_totals(
    totals: object, groups: ArrayLike | None, classes: AnyArray, code: IntArray, rules: TotalsRules
) -> ClassTotals:
    """Totals of one margin as those of the unlabelled rows, whose class number is -1, as `rules` say they are meant.

    Examples
    --------
    >>> code = np.array([0, 1, 1, -1, -1])
    >>> hidden_totals({"b": 3}, None, np.array(["a", "b"]), code, TotalsRules("all")).low.tolist()
    [[1, 1]]
    """
    hidden = code == UNLABELLED
    labelled = LabelledRows(code[~hidden], groups_of_rows(groups, ~hidden))
    n_hidden = int(np.count_nonzero(hidden))
    return parse_totals(totals, classes, n_hidden, groups_of_rows(groups, hidden), labelled=labelled, rules=rules)


def _check_no_mark(names: list[object], mark: object) -> None:
    mark = plain(mark)
    if any(isinstance(n, str) == isinstance(mark, str) and n == mark for n in names):
        raise InfeasibleTotalsError(f"totals name class {show(mark)}, which marks the unlabelled rows")


def _is_whole(name: object) -> bool:
    return isinstance(name, int | float) and not isinstance(name, bool) and math.isfinite(name) and name == int(name)


def _joined(seen: AnyArray, names: list[object], allowed: bool) -> AnyArray:
    """Classes that rows have, with those that only totals name, if that is allowed."""
    known = set(seen.tolist())
    extra = [n for n in names if n not in known]
    if not extra:
        return seen
    kind = seen.dtype.kind
    for name in extra:
        fits = (
            (kind == "U" and isinstance(name, str))
            or (kind == "b" and isinstance(name, bool))
            or (kind in "iuf" and _is_whole(name))
        )
        if not fits:
            raise InfeasibleTotalsError(
                f"totals name class {show(name)} of type {type(name).__name__}, which is unlike the labels "
                f"in y: {listing(seen)}"
            )
    if not allowed:
        raise InfeasibleTotalsError(
            f"totals name class {show(extra[0])}, which no label is; {meant(extra[0], seen.tolist())}. If it is meant "
            f"as a class without labelled rows, say {option('allow_new_classes', True)}"
        )
    more = np.array(extra) if kind in "Ub" else np.array(extra).astype(np.float64 if kind == "f" else np.int64)
    return np.unique(np.concatenate([seen, more]))
