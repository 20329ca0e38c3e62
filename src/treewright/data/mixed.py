"""Tables of numbers and categories with gaps, as a matrix of numbers and codes.

A categorical feature has levels, noted and sorted at fit; level k has the code k. A missing value (NaN, None, pandas'
NA) is NaN in the matrix, whatever the feature. A level that was not seen at fit has the code after the last one, which
no split lists on its left: it goes right, and a fitted tree has the side of more training rows there
(:func:`treewright.tree.settled`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import polars as pl
from scipy import sparse

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.data.columns_checked import AnyArray, freeze, listing, missing_mask, plain, show
from treewright.data.rows import is_frame
from treewright.data.tables.columns import flag_numbers
from treewright.exceptions import InvalidInputError, ModelFileError

__all__ = [
    "Features",
    "Level",
    "check_finite",
    "chosen_features",
    "has_other_than_numbers",
    "refuse_text",
    "with_flags",
]

Level = str | bool | int | float
"""What a level of a category may be."""

_NUMBER = (bool, int, float, np.bool_, np.integer, np.floating)


@dataclass(frozen=True, eq=False)
class Features:
    """What the columns of a table are, and how they become a matrix.

    Attributes
    ----------
    levels : tuple of (tuple of levels or None)
        Levels of each categorical feature in the order of their codes, strings, numbers or bools; None for a
        numerical feature.
    labels : tuple of (str or int)
        What messages call the columns: names, or numbers where there are none.

    Examples
    --------
    >>> X = np.array([["red", 1.5], ["blue", None], ["red", 2.0]], dtype=object)
    >>> features, matrix = Features.learn(X, categorical_features=[0])
    >>> features.levels, matrix.tolist()
    ((('blue', 'red'), None), [[1.0, 1.5], [0.0, nan], [1.0, 2.0]])
    >>> features.encode([["green", 3.0], [None, 1.0]]).tolist()
    [[2.0, 3.0], [nan, 1.0]]
    """

    levels: tuple[tuple[Level, ...] | None, ...]
    labels: tuple[str | int, ...]

    @classmethod
    def numerical(cls, n_features: int) -> Self:
        """All features are numbers."""
        return cls((None,) * n_features, tuple(range(n_features)))

    @classmethod
    def learn(cls, X: Any, categorical_features: Any = None) -> tuple[Self, FloatArray]:
        """Note which columns are categories and what levels they have, and make the matrix.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Numbers, strings and bools: a pandas or polars frame, an array of objects or numbers, a list of lists.
        categorical_features : None, "from_dtype", or array-like of bool, int or str
            The categorical features, as in scikit-learn's ``HistGradientBoostingClassifier``: a mask, column numbers,
            or names of columns of a frame. "from_dtype" takes the columns of a frame that have a categorical dtype
            (``Categorical``, ``Enum``) or hold text. None for none.

        Returns
        -------
        Features
            What was noted.
        ndarray of shape (n_rows, n_features)
            Numbers and codes, NaN where a value is missing.

        Raises
        ------
        InvalidInputError
            If columns cannot be used; the text names all of them.
        """
        columns, labels = _columns(X)
        chosen = chosen_features(X, categorical_features)
        levels: list[tuple[Level, ...] | None] = [None] * len(columns)
        refused = _Refused(labels)
        for j in np.flatnonzero(chosen).tolist():
            levels[j] = _learned(columns[j], j, refused)
        refused.say()
        features = cls(tuple(levels), labels)
        return features, features._matrix(columns, "text" if is_frame(X) else "text of an array")

    @cached_property
    def categorical(self) -> BoolArray:
        """Mask of the categorical features."""
        return freeze(np.array([known is not None for known in self.levels], dtype=bool))

    @cached_property
    def n_levels(self) -> IntArray:
        """Number of levels of each feature, 0 for a numerical one."""
        return freeze(np.array([0 if known is None else len(known) for known in self.levels], dtype=np.int64))

    @property
    def category_names(self) -> dict[int, tuple[Level, ...]]:
        """Levels by number of the feature, for texts."""
        return {j: known for j, known in enumerate(self.levels) if known is not None}

    def encode(self, X: Any) -> FloatArray:
        """Make the matrix of other rows; a level that was not seen at fit gets the code after the last one.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows, in any of the forms that :meth:`learn` takes. Text that says true and false is read like bools where
            the fit had no text.
        """
        columns, _ = _columns(X)
        if len(columns) != len(self.levels):
            raise InvalidInputError(f"X has {len(columns)} features, but {len(self.levels)} were noted")
        text = [any(isinstance(level, str) for level in known or ()) for known in self.levels]
        read = [column if kept else _flags(column) for column, kept in zip(columns, text, strict=True)]
        return self._matrix(read, "new text")

    def _matrix(self, columns: Sequence[Any], text: str) -> FloatArray:
        refused = _Refused(self.labels, text)
        matrix = np.empty((len(columns[0]) if columns else 0, len(columns)))
        for j, (column, known) in enumerate(zip(columns, self.levels, strict=True)):
            matrix[:, j] = _numbers(column, j, refused) if known is None else _codes(column, known, j, refused)
        refused.say()
        return matrix

    # ------------------------------------------------------------------ model files

    def to_list(self) -> list[list[Level] | None]:
        """Levels as plain data, for a model file."""
        return [None if known is None else list(known) for known in self.levels]

    @classmethod
    def from_list(cls, data: object, names: Sequence[str] | None) -> Self:
        """Make one from what :meth:`to_list` gave, trusting nothing.

        Examples
        --------
        >>> Features.from_list([None, ["blue", "red"]], ["age", "colour"]).n_levels.tolist()
        [0, 2]
        """
        if not isinstance(data, list):
            raise ModelFileError("categories must be a list, with the levels of each feature or null")
        for j, known in enumerate(data):
            if known is None:
                continue
            fine = isinstance(known, list) and all(isinstance(v, str | bool | int | float) for v in known)
            if not fine or len({_kind(v) for v in known}) > 1 or known != sorted(set(known)):
                raise ModelFileError(f"categories[{j}] must be different strings, numbers or bools, sorted")
            if any(isinstance(v, float) and not np.isfinite(v) for v in known):
                raise ModelFileError(f"categories[{j}] must be finite")
        labels = tuple(range(len(data))) if names is None else tuple(names)
        if len(labels) != len(data):
            raise ModelFileError(f"categories has {len(data)} features, the model {len(labels)}")
        return cls(tuple(None if known is None else tuple(known) for known in data), labels)


def has_other_than_numbers(X: Any) -> bool:
    """Whether X is a frame with a column whose dtype is not one of numbers or bools."""
    return is_frame(X) and not all(_is_numeric(dtype) for dtype in X.dtypes)


def _is_numeric(dtype: Any) -> bool:
    if hasattr(dtype, "is_numeric"):  # polars
        return bool(dtype.is_numeric()) or str(dtype) == "Boolean"
    return bool(dtype.kind in "biuf")


def with_flags(X: Any) -> Any:
    """New rows for a fit to numbers: columns of a frame whose text says true and false as numbers, all else as it is.

    Examples
    --------
    >>> with_flags(pl.DataFrame({"member": ["True", "false", None]}))["member"].to_list()
    [1.0, 0.0, nan]
    """
    if not has_other_than_numbers(X):
        return X
    columns, _ = _columns(X)
    read = {X.columns[j]: found for j, column in enumerate(columns) if (found := _flags(column)) is not column}
    if hasattr(X, "with_columns"):  # polars
        return X.with_columns(**read)
    other = X.copy(deep=False)
    for name, numbers in read.items():
        other[name] = numbers
    return other


def refuse_text(X: Any, reason: str = "text of an array") -> None:
    """Refuse text in rows of any form, naming all columns that have some; text of a number is none.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_features)
        The rows. What is no table, a ragged list for instance, is left to whoever makes numbers of it.
    reason : {"text of an array", "text for numbers", "new text"}
        Why text is refused, and so what can be done: name the columns, make numbers of them, or nothing, as the model
        was fitted to numbers before.

    Examples
    --------
    >>> refuse_text([["red", 1.5, "low"], ["blue", "2", "high"]])
    Traceback (most recent call last):
    ...
    treewright.exceptions.InvalidInputError: X has text in columns 0 (such as 'red'), 2 (such as 'low'); an array ...
    """
    if not _may_have_text(X):
        return
    columns, labels = _columns(X)
    refused = _Refused(labels, reason)
    for j, column in enumerate(columns):
        cells = _cells(column)
        text = (value for value in cells if isinstance(value, str) and not _is_number_like(value))
        example = next(text, None) if cells.dtype.kind == "O" else None
        if example is not None:
            refused.add(reason, j, f"such as {show(example)}")
    refused.say()


def _may_have_text(X: Any) -> bool:
    """Whether X is a table with other dtypes than those of numbers."""
    if sparse.issparse(X):
        return False
    if is_frame(X):
        return has_other_than_numbers(X)
    try:
        array = np.asarray(X)
    except ValueError:
        return False
    return array.ndim == 2 and array.dtype.kind in "OUS"


def check_finite(matrix: FloatArray, labels: Sequence[str | int]) -> None:
    """Refuse infinite values, naming all columns that have some; NaN is a missing value.

    Examples
    --------
    >>> check_finite(np.array([[1.0, np.inf], [np.nan, 2.0]]), ["age", "income"])
    Traceback (most recent call last):
    ...
    treewright.exceptions.InvalidInputError: X has infinite values in column 'income' (first in row 0); numbers must ...
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(matrix.sum()):
            return
    refused = _Refused(labels)
    for j in np.flatnonzero(np.isinf(matrix).any(axis=0)).tolist():
        refused.infinite(j, matrix[:, j])
    refused.say()


# ---------------------------------------------------------------------- what is wrong, of all columns at once

_REASONS = {
    "text": "X has text in {}; name them in categorical_features (or give 'from_dtype'), or make numbers of them",
    "text of an array": "X has text in {}; an array or a list has no dtypes of its own columns: give their numbers or "
    "a mask as categorical_features, or make numbers of them",
    "text for numbers": "X has text in {}; this model takes numbers: make numbers of text, for instance with "
    "scikit-learn's OneHotEncoder, or use a model that has categorical_features",
    "new text": "X has text in {}, where the fit had numbers",
    "infinite": "X has infinite values in {}; numbers must be finite or missing (NaN)",
    "strange": "X has values in {}; numbers are needed, or strings, bools and numbers in categorical features",
    "mixed": "X mixes text and numbers in the categorical features {}; use one type",
    "kind": "X has other kinds of levels than at fit in {}",
}


class _Refused:
    """Columns that cannot be used, by reason, to be named in one error."""

    def __init__(self, labels: Sequence[str | int], text: str = "text") -> None:
        self.labels = labels
        self.text = text
        """The reason why text is refused in columns of numbers."""
        self.found: dict[str, list[str]] = {}

    def add(self, reason: str, j: int, example: str = "") -> None:
        self.found.setdefault(reason, []).append(show(self.labels[j]) + (f" ({example})" if example else ""))

    def infinite(self, j: int, values: FloatArray) -> None:
        self.add("infinite", j, f"first in row {int(np.argmax(np.isinf(values)))}")

    def say(self) -> None:
        """Raise one error for all of them, if there are any."""
        if not self.found:
            return
        parts = []
        for reason, columns in self.found.items():
            more = f", ... ({len(columns)} in all)" if len(columns) > 20 else ""
            noun = "" if reason == "mixed" else "column " if len(columns) == 1 else "columns "
            parts.append(_REASONS[reason].format(noun + ", ".join(columns[:20]) + more))
        raise InvalidInputError(". ".join(parts))


# ---------------------------------------------------------------------- columns


def _columns(X: Any) -> tuple[list[Any], tuple[str | int, ...]]:
    """Columns of a table, and what they are called."""
    if sparse.issparse(X):
        raise TypeError("X is sparse; categorical features and missing values need a dense table or a frame")
    if is_frame(X):
        by_place = X.iloc if hasattr(X, "iloc") else X
        names = [name if isinstance(name, str) else j for j, name in enumerate(X.columns)]
        return [by_place[:, j] for j in range(len(names))], tuple(names)
    array = np.asarray(X)
    if array.dtype.kind in "US" and not isinstance(X, np.ndarray):  # a list that mixes text and numbers
        array = np.asarray(X, dtype=object)
    if array.ndim != 2:
        raise InvalidInputError(f"Expected 2D array, got {array.ndim}D array instead: X has shape {array.shape}")
    return list(array.T), tuple(range(array.shape[1]))


def _cells(column: Any) -> AnyArray:
    """A column as numbers or bools where it has nothing else, else as objects."""
    cells = np.asarray(column)
    return cells if cells.dtype.kind in "biuf" else cells.astype(object)


def _flags(column: Any) -> Any:
    """A column of text that says true and false as 1 and 0, NaN where a value is missing; else as it is."""
    cells = _cells(column)
    gone = missing_mask(cells)
    if cells.dtype.kind != "O" or gone.all() or not all(isinstance(value, str) for value in cells[~gone]):
        return column
    read = flag_numbers(pl.Series([None if lost else text for text, lost in zip(cells, gone, strict=True)]))
    return read.to_numpy() if read.dtype == pl.Float64 else column


def _is_text_column(column: Any) -> bool:
    """Whether a column of a frame has a categorical dtype or holds text."""
    if _is_pandas_category(column) or str(getattr(column, "dtype", "")).startswith(("Categorical", "Enum")):
        return True
    cells = _cells(column)
    return cells.dtype.kind == "O" and any(isinstance(v, str) for v in cells)


def chosen_features(X: Any, given: Any) -> BoolArray:
    """Mask of the features that are categorical, from what :meth:`Features.learn` takes for them.

    Examples
    --------
    >>> chosen_features([[0.0, 1.0, 2.0]], [2]).tolist()
    [False, False, True]
    """
    columns, labels = _columns(X)
    n = len(columns)
    if given is None:
        return np.zeros(n, dtype=bool)
    if isinstance(given, str):
        if given != "from_dtype":
            raise InvalidInputError(
                f"categorical_features is {given!r}; expected 'from_dtype', a mask, numbers or names"
            )
        return np.array([is_frame(X) and _is_text_column(column) for column in columns], dtype=bool)
    wanted = np.asarray(given)
    if wanted.ndim != 1:
        raise InvalidInputError(f"categorical_features has shape {wanted.shape}; expected one dimension")
    mask = np.zeros(n, dtype=bool)
    if wanted.size == 0:
        return mask
    if wanted.dtype.kind == "b":
        if len(wanted) != n:
            raise InvalidInputError(f"categorical_features is a mask of {len(wanted)} features, X has {n}")
        return wanted
    if wanted.dtype.kind in "iu":
        wrong = wanted[(wanted < 0) | (wanted >= n)]
        if len(wrong):
            raise InvalidInputError(f"categorical_features has {listing(wrong)}; X has the features 0 to {n - 1}")
        mask[wanted] = True
        return mask
    if not all(isinstance(v, str) for v in wanted.tolist()):
        raise InvalidInputError(f"categorical_features has {listing(wanted)}; expected bools, column numbers or names")
    if not is_frame(X):
        raise InvalidInputError("categorical_features has names, but X has none; give a mask or column numbers")
    unknown = [name for name in wanted.tolist() if name not in labels]
    if unknown:
        raise InvalidInputError(f"categorical_features names {listing(unknown)}; X has the columns {listing(labels)}")
    return np.isin(np.array([str(label) for label in labels]), wanted.astype(str))


# ---------------------------------------------------------------------- numbers


def _numbers(column: Any, j: int, refused: _Refused) -> FloatArray:
    """A numerical column, NaN where a value is missing."""
    cells = _cells(column)
    if cells.dtype.kind == "O":
        gone = missing_mask(cells)
        cells = np.where(gone, np.nan, cells)
        try:
            numbers = cells.astype(np.float64)
        except (TypeError, ValueError):
            example = next(v for v in cells if not _is_number_like(v))
            refused.add(refused.text if isinstance(example, str) else "strange", j, f"such as {show(example)}")
            return np.full(len(cells), np.nan)
    else:
        numbers = cells.astype(np.float64)
    if np.isinf(numbers).any():
        refused.infinite(j, numbers)
    return numbers


def _is_number_like(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


# ---------------------------------------------------------------------- levels


def _kind(value: object) -> str:
    return "text" if isinstance(value, str) else "number"


def _level(value: Any) -> Level:
    """A level as a plain value: 2.0 is 2, as a gap makes floats of whole numbers."""
    value = plain(value)
    if isinstance(value, str):
        return str(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _distinct(column: Any) -> tuple[list[Any], IntArray]:
    """Different values of a column, and the place of each cell among them, -1 where it is missing."""
    if _is_pandas_category(column):
        codes = np.asarray(column.cat.codes, dtype=np.int64)
        used, place = np.unique(codes, return_inverse=True)  # levels that no row has are none
        return np.asarray(column.cat.categories, dtype=object)[used[used >= 0]].tolist(), place - int((codes < 0).any())
    cells = _cells(column)
    place = np.full(len(cells), -1, dtype=np.int64)
    if cells.dtype.kind == "O" and set(map(type, cells.tolist())) <= {str, type(None)}:
        return _distinct_text(cells)
    known = ~missing_mask(cells)
    if cells.dtype.kind == "O":
        seen: dict[Any, int] = {}
        try:
            place[known] = np.fromiter((seen.setdefault(v, len(seen)) for v in cells[known]), np.int64)
        except TypeError:  # what cannot be looked up, a list for instance
            return [next(v for v in cells[known] if not isinstance(v, (str, *_NUMBER)))], np.where(known, 0, -1)
        return list(seen), place
    found, place[known] = np.unique(cells[known], return_inverse=True)
    return found.tolist(), place


def _distinct_text(cells: AnyArray) -> tuple[list[Any], IntArray]:
    """The same of text, which long columns mostly are, without a loop of Python."""
    import polars as pl

    text = pl.Series(cells.tolist(), dtype=pl.String)
    ranks = text.rank("dense").cast(pl.Int64).fill_null(0).to_numpy()
    return text.drop_nulls().unique().sort().to_list(), ranks - 1


def _is_pandas_category(column: Any) -> bool:
    return str(getattr(column, "dtype", "")) == "category"


def _learned(column: Any, j: int, refused: _Refused) -> tuple[Level, ...]:
    """Levels of a column, sorted."""
    found, _ = _distinct(column)
    if _strange(found, j, refused):
        return ()
    levels = {_level(value) for value in found}
    if not all(isinstance(value, bool) for value in levels):
        levels = {int(value) if isinstance(value, bool) else value for value in levels}
    return tuple(sorted(levels))


def _strange(found: Sequence[Any], j: int, refused: _Refused) -> bool:
    """Whether a column has what cannot be levels together."""
    for value in found:
        if not isinstance(value, (str, *_NUMBER)):
            refused.add("strange", j, f"such as {show(value)}")
            return True
    if len({_kind(value) for value in found}) > 1:
        refused.add("mixed", j)
        return True
    wrong = [value for value in found if isinstance(value, float | np.floating) and np.isinf(value)]
    if wrong:
        refused.add("infinite", j, show(wrong[0]))
    return bool(wrong)


def _codes(column: Any, known: Sequence[Level], j: int, refused: _Refused) -> FloatArray:
    """Codes of a column, one more than the last for a level that is not known, NaN where a value is missing."""
    found, place = _distinct(column)
    if _strange(found, j, refused):
        return np.full(len(place), np.nan)
    if found and known and _kind(found[0]) != _kind(known[0]):
        refused.add("kind", j, f"{show(found[0])}, where levels were such as {show(known[0])}")
    number = {level: code for code, level in enumerate(known)}
    codes = np.array([number.get(_level(value), len(known)) for value in found] + [np.nan])  # place -1 is the last
    return np.asarray(codes[place])
