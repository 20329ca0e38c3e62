"""Columns of labels and group names as arrays, whatever library they come from."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import date, time, timedelta
from itertools import repeat
from operator import is_
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import column_or_1d

from treewright.core.arrays import BoolArray
from treewright.data.spelling import spelling_key
from treewright.exceptions import InvalidInputError

__all__ = [
    "AnyArray",
    "Coded",
    "as_column",
    "freeze",
    "is_missing_value",
    "is_text",
    "listing",
    "meant",
    "missing_mask",
    "numbered_groups",
    "plain",
    "refuse_dates",
    "refuse_lazy",
    "refuse_repeated_names",
    "refuse_durations",
    "show",
    "uniform",
]

AnyArray = NDArray[Any]
_Scalar = TypeVar("_Scalar", bound=np.generic)

_DATE = (date, time, timedelta, np.datetime64, np.timedelta64)
_NUMBER = (bool, int, float, np.bool_, np.integer, np.floating)


def freeze(array: NDArray[_Scalar]) -> NDArray[_Scalar]:
    """Return a read-only view of checked data, so that neither we nor the caller's own array are touched."""
    view = array.view(np.ndarray)
    view.setflags(write=False)
    return view


def plain(value: object) -> object:
    """Return a Python scalar for a numpy one of the data, other values as they are."""
    return value.item() if isinstance(value, np.generic) else value


def show(value: object) -> str:
    """Return a label or group name as a user would write it."""
    return repr(plain(value))


def listing(values: Iterable[object], limit: int = 10) -> str:
    """Return labels or group names as text, the first `limit` of them."""
    shown = [show(v) for v in values]
    more = f", ... ({len(shown)} in all)" if len(shown) > limit else ""
    return ", ".join(shown[:limit]) + more


def meant(name: object, known: Collection[object]) -> str:
    """Words for an unknown label or group name: the known ones written most like it, and all of them.

    Examples
    --------
    >>> meant("High", ["high", "low"])
    "did you mean 'high'? There are 'high', 'low'"
    >>> meant("Sued", ["Nord", "Süd"]), meant("x", ["high", "low"])
    ("did you mean 'Süd'? There are 'Nord', 'Süd'", "there are 'high', 'low'")
    """
    written = {spelling_key(plain(value)): value for value in known}
    near = difflib.get_close_matches(spelling_key(plain(name)), list(written)[:10_000], n=3)
    words = f"did you mean {' or '.join(show(written[text]) for text in near)}? There" if near else "there"
    return f"{words} are {listing(known) if known else 'none'}"


@dataclass(frozen=True, eq=False)
class Coded:
    """A long column of few names, as their numbers: millions of strings need not be there.

    Examples
    --------
    >>> column = Coded(["north", "south"], np.array([1, 0, -1]))
    >>> np.asarray(column).tolist(), len(column[[0, 1]])
    (['south', 'north', None], 2)
    """

    names: list[str]
    """Different names, sorted."""
    numbers: NDArray[np.integer[Any]]
    """Place of each row's, -1 where it has none."""

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, rows: Any) -> Coded:
        return Coded(self.names, self.numbers[rows])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        return np.array([*self.names, None], dtype=object)[self.numbers]

    def numbered(self) -> tuple[list[Any], NDArray[np.int64]]:
        """The names that rows have, and the number of each row's among these; none may be missing."""
        present = np.flatnonzero(np.bincount(self.numbers, minlength=len(self.names)))
        place = np.zeros(len(self.names), dtype=np.int64)
        place[present] = np.arange(len(present))
        return [self.names[k] for k in present], place[self.numbers]


def as_column(values: Any, name: str, warn: bool = False) -> AnyArray:
    """Return a 1-d array of labels or group names from a list, array, or pandas or polars series.

    A list that mixes strings with something else becomes an object array, where numpy would write all as
    strings.
    """
    if isinstance(values, str):
        raise InvalidInputError(f"{name} is the text {values!r}; hand over the column itself, such as X[{values!r}]")
    refuse_lazy(values, name)
    if sparse.issparse(values):
        raise TypeError(f"{name} is sparse; sparse input is not supported here, use an array")
    array = np.asarray(values)
    if array.dtype.kind == "T" or (array.dtype.kind in "US" and isinstance(values, list | tuple)):
        array = np.asarray(values, dtype=object)
    if array.ndim == 1 or array.shape[1:] == (1,) or name == "y":
        return np.asarray(column_or_1d(array, warn=warn))
    raise InvalidInputError(f"{name} should be a 1d array, got an array of shape {array.shape} instead.")


def missing_mask(column: AnyArray) -> BoolArray:
    """Mask of NaN, NaT, None and pandas' NA in a column of labels or groups."""
    kind = column.dtype.kind
    if kind == "f":
        return np.isnan(column)
    if kind in "mM":
        return np.isnat(column)
    if kind == "O":
        # None and text, which long columns mostly have, are told by loops that are not Python's
        cells = column.reshape(-1).tolist()
        mask = np.fromiter(map(is_, cells, repeat(None)), dtype=bool, count=column.size)
        if not set(map(type, cells)) <= {str, int, bool, type(None)}:
            others = np.flatnonzero(~mask)
            mask[others] = np.frompyfunc(is_missing_value, 1, 1)(column.reshape(-1)[others])
        return mask.reshape(column.shape)
    return np.zeros(len(column), dtype=bool)


def numbered_groups(
    groups: Any, n_rows: int, others: str, missing: str, error: type[ValueError], name: str = "groups"
) -> tuple[list[Any], NDArray[np.int64]]:
    """Return the groups of the rows in order, and the number of that of each row.

    `others` says how many rows there are, and `missing` which row is the first without a group, with a place for it;
    `name` is that of the argument.
    """
    column = groups if isinstance(groups, Coded) else as_column(groups, name)
    if len(column) != n_rows:
        raise error(f"{name} has {len(column)} entries, {others}")
    gone = column.numbers < 0 if isinstance(column, Coded) else missing_mask(column)
    if gone.any():
        raise error(f"{np.count_nonzero(gone)} of {missing.format(np.argmax(gone))}")
    if isinstance(column, Coded):
        return column.numbered()
    names, number = np.unique(uniform(column, name), return_inverse=True)
    return names.tolist(), number.astype(np.int64)


def is_text(values: object, column: AnyArray) -> bool:
    """Whether a column of the data, made of `values`, has a dtype for strings, which cannot hold a number like -1."""
    if column.dtype.kind in "US":
        return True
    if column.dtype.kind != "O" or str(getattr(values, "dtype", "")) == "object":
        return False
    return all(isinstance(v, str) for v in column[~missing_mask(column)])


def uniform(column: AnyArray, name: str) -> AnyArray:
    """Return an object array of labels without missing values as one of strings, bools or numbers."""
    if column.dtype.kind != "O":
        return column
    first = {type(v): v for v in column[::-1]}
    if all(issubclass(t, str) for t in first):
        return column.astype(str)
    if all(issubclass(t, _NUMBER) for t in first):
        numbers = np.array(column.tolist())
        if numbers.dtype.kind in "biuf":
            return numbers
        raise InvalidInputError(f"{name} has numbers too large for 64 bits; use strings as labels")
    if all(issubclass(t, (str, *_NUMBER)) for t in first):
        text = next(v for t, v in first.items() if issubclass(t, str))
        number = next(v for t, v in first.items() if not issubclass(t, str))
        raise InvalidInputError(
            f"Unknown label type: {name} mixes strings and numbers, such as {show(text)} and {show(number)}; "
            "use one type"
        )
    kind, value = next((t, v) for t, v in first.items() if not issubclass(t, (str, *_NUMBER)))
    raise InvalidInputError(
        f"Unknown label type: {name} has {show(value)} of type {kind.__name__}; use strings, integers or bools"
    )


def refuse_lazy(values: Any, name: str) -> None:
    """Refuse a lazy frame of polars, which is a plan of rows and has none.

    Examples
    --------
    >>> import polars as pl
    >>> refuse_lazy(pl.LazyFrame({"age": [31]}), "X")
    Traceback (most recent call last):
    ...
    treewright.exceptions.InvalidInputError: X is a LazyFrame of polars, which has no rows yet; give what ...
    """
    if type(values).__name__ == "LazyFrame" and hasattr(values, "collect"):
        raise InvalidInputError(
            f"{name} is a LazyFrame of polars, which has no rows yet; give what its collect() returns"
        )


def refuse_dates(values: Any, name: str) -> None:
    """Refuse dates, times and durations, which would be taken for numbers: nanoseconds, and -9.2e18 where missing.

    Examples
    --------
    >>> refuse_dates(np.array([["2024-05-01"], ["NaT"]], dtype="datetime64[D]"), "X")
    Traceback (most recent call last):
    ...
    treewright.exceptions.InvalidInputError: X has dates, times or durations in column 0; ...
    """
    refuse_lazy(values, name)
    found = _columns_of_dates(values, _has_dates)
    if found is not None:
        raise InvalidInputError(
            f"{name} has dates, times or durations{_in_columns(found)}; only numbers can be compared and scaled. Make "
            "numbers of them that mean something (days since a date, the year, the month, the length in hours), and "
            "fill in or leave out missing ones"
        )


def refuse_repeated_names(X: Any) -> None:
    """Refuse a frame given as data with several columns of the same name.

    Examples
    --------
    >>> import pandas as pd
    >>> refuse_repeated_names(pd.DataFrame([[1, 2, 3]], columns=["age", "sex", "age"]))
    Traceback (most recent call last):
    ...
    treewright.exceptions.InvalidInputError: X has several columns of the same name: 'age'; rename them
    """
    refuse_lazy(X, "X")
    names = list(X.columns) if hasattr(X, "columns") and hasattr(X, "dtypes") else []
    if len(set(names)) < len(names):
        twice = [name for name, times in Counter(names).items() if times > 1]
        raise InvalidInputError(f"X has several columns of the same name: {listing(twice)}; rename them")


def refuse_durations(frame: Any, name: str) -> None:
    """Refuse times of the day and durations in a frame whose dates can be used: they would be taken for text.

    Examples
    --------
    >>> import polars as pl
    >>> refuse_durations(pl.DataFrame({"since": [timedelta(days=3)]}), "X")
    Traceback (most recent call last):
    ...
    treewright.exceptions.InvalidInputError: X has times or durations in column 'since'; ...
    """
    refuse_lazy(frame, name)
    found = _columns_of_dates(frame, _has_durations)
    if found is not None:
        raise InvalidInputError(
            f"{name} has times or durations{_in_columns(found)}; only numbers, text and dates can be used. Make "
            "numbers of them that mean something (the hour of the day, the length in hours)"
        )


def _in_columns(found: list[object]) -> str:
    return "" if not found else f" in column{'s' if len(found) > 1 else ''} {listing(found)}"


def _columns_of_dates(values: Any, has_dates: Callable[[Any, Any], bool]) -> list[object] | None:
    """Names or numbers of the columns with dates, an empty list for those of one column alone; None without any."""
    if sparse.issparse(values):
        return None
    if hasattr(values, "columns") and hasattr(values, "dtypes"):  # pandas or polars frame
        by_place = values.iloc if hasattr(values, "iloc") else values
        dtypes = enumerate(zip(values.columns, values.dtypes, strict=True))
        return [name for j, (name, dtype) in dtypes if has_dates(dtype, by_place[:, j])] or None
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths, which others refuse
        return None
    if array.dtype.kind not in "mMO":
        return None
    if array.ndim != 2:
        return [] if has_dates(array.dtype, array.reshape(-1)) else None
    return [j for j in range(array.shape[1]) if has_dates(array.dtype, array[:, j])] or None


def _has_dates(dtype: Any, column: Any) -> bool:
    if hasattr(dtype, "is_temporal"):  # polars
        if dtype.is_temporal() or str(dtype) != "Object":
            return bool(dtype.is_temporal())
    elif dtype.kind != "O":
        return dtype.kind in "mM"
    return _any_type(_is_date, column)


def _has_durations(dtype: Any, column: Any) -> bool:
    if hasattr(dtype, "is_temporal"):  # polars
        if str(dtype) != "Object":
            return bool(dtype.is_temporal()) and not str(dtype).startswith("Date")
    elif dtype.kind != "O":
        return bool(dtype.kind == "m")
    return _any_type(lambda kind: issubclass(kind, (time, timedelta, np.timedelta64)), column)


def _any_type(says: Callable[[type], bool], column: Any) -> bool:
    """Whether a column of objects has a value of some type; one with a categorical dtype has those of its levels."""
    levels = getattr(getattr(column, "dtype", None), "categories", None)
    cells = np.asarray(column if levels is None else levels, dtype=object)
    return any(map(says, set(map(type, cells.tolist()))))


def _is_date(kind: type) -> bool:
    return issubclass(kind, _DATE) or kind.__name__ in ("NaTType", "Period")


def is_missing_value(value: object) -> bool:
    """Whether a value of the data is NaN, None or pandas' NA or NaT."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(np.isnan(value))
