"""What users write as class totals, read into one plain form."""

from __future__ import annotations

import math
import numbers
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from treewright.data.columns_checked import AnyArray, Coded, as_column, is_missing_value, listing, meant, plain, show
from treewright.data.spelling import alike, alike_words
from treewright.exceptions import InfeasibleTotalsError, InvalidInputError

__all__ = [
    "Asked",
    "alike_groups",
    "total_by_label",
    "total_interval",
    "named_classes",
    "plain_totals",
    "read_group_totals",
]

_LONG = ("class", "low", "high")
"""Columns of a frame of intervals, beside "total" and the one that names groups."""

OPEN = 2**62
"""Upper end of an interval of counts that has none."""


@dataclass(frozen=True)
class Asked:
    """One class's total as asked: both ends of an interval, as counts or as shares."""

    low: float
    high: float
    is_share: bool
    is_interval: bool

    @property
    def value(self) -> object:
        """What the user wrote, as a Python number or pair."""
        ends = (self.low, self.high) if self.is_share else (int(self.low), int(self.high))
        return ends if self.is_interval else ends[0]


def plain_totals(totals: Any, classes: AnyArray, grouped: bool) -> Any:
    """Return frames, series and mappings as dicts, one dict a group for a frame; anything else as it is.

    Columns of a polars frame are always strings; they are read as the classes that are written so. An empty cell of a
    frame or series leaves its class free.
    """
    if isinstance(totals, Mapping):
        return _as_dict([(key, plain_totals(value, classes, grouped)) for key, value in totals.items()])
    if hasattr(totals, "columns") and (set(_LONG) <= set(totals.columns)):
        return _intervals(totals, classes, grouped)
    if hasattr(totals, "columns") and hasattr(totals, "index"):  # pandas frame
        names, groups = list(totals.columns), totals.index.tolist()
        _refuse_repeated(names, "column")
        return _rows(groups, names, [totals[n].tolist() for n in names])
    if hasattr(totals, "columns") and hasattr(totals, "to_dicts"):  # polars frame
        first, *names = totals.columns
        labels = [_label_of(n, classes) for n in names]
        return _rows(totals[first].to_list(), labels, [totals[n].to_list() for n in names])
    if hasattr(totals, "index") and hasattr(totals, "to_dict"):  # pandas series
        names = totals.index.tolist()
        _refuse_repeated(names, "row")
        if any(isinstance(value, Mapping) for value in totals.tolist()):
            return plain_totals(totals.to_dict(), classes, grouped)
        return _rows([None], names, [[value] for value in totals.tolist()])[None]
    return totals


def _intervals(totals: Any, classes: AnyArray, grouped: bool) -> dict[object, Any]:
    """Totals of a frame with a row for each class, of each group."""
    names = list(totals.columns)
    _refuse_repeated(names, "column")
    others = [name for name in names if name not in (*_LONG, "total")]
    if len(others) > 1:
        raise InfeasibleTotalsError(
            f"totals have columns 'class', 'low' and 'high' and besides {listing(others)}; one of them may name groups"
        )
    columns = {name: totals[name].tolist() if hasattr(totals, "index") else totals[name].to_list() for name in names}
    groups = columns[others[0]] if others else totals.index.tolist() if grouped and hasattr(totals, "index") else None
    ends = [columns[name] for name in ("low", "high", "total") if name in columns]
    cells = zip(columns["class"], *_counts_beside_gaps(ends), strict=True)
    found = [(_label_of(label, classes), total_interval(*values)) for label, *values in cells]
    if groups is None:
        return _as_dict([entry for entry in found if entry[1] is not None])
    if any(map(is_missing_value, groups)):
        raise InfeasibleTotalsError("totals have a row without a group")
    _refuse_repeated([group for group in groups if not isinstance(group, Hashable)], "group")
    parts: dict[object, list[tuple[object, Any]]] = {plain(group): [] for group in groups}
    for group, entry in zip(groups, found, strict=True):
        if entry[1] is not None:
            parts[plain(group)].append(entry)
    return {group: _as_dict(part) for group, part in parts.items()}


def total_interval(low: Any, high: Any, total: Any = None) -> Any:
    """A total from the cells of its row: a pair, the total itself, or None if all are empty. An empty end is open."""
    gone = [is_missing_value(value) for value in (low, high, total)]
    if not gone[2]:
        if not (gone[0] and gone[1]):
            raise InfeasibleTotalsError(
                f"a row of totals has the total {show(total)} and an end of an interval as well ({show(low)} to "
                f"{show(high)}); leave one of them empty"
            )
        return total
    if gone[0] and gone[1]:
        return None
    is_share = isinstance(plain(high if gone[0] else low), float)
    return (0.0 if is_share else 0) if gone[0] else low, (1.0 if is_share else OPEN) if gone[1] else high


def named_classes(totals: object, grouped: bool, classes: AnyArray) -> list[object]:
    """Return the class labels that given totals name, in the order they are named; `classes` are known already."""
    asked = plain_totals(totals, classes, grouped)
    if not isinstance(asked, dict):
        return []
    if not grouped:
        return [] if any(isinstance(v, dict) for v in asked.values()) else list(asked)
    names = [name for part in asked.values() if isinstance(part, dict) for name in part]
    return list(dict.fromkeys(names))


def alike_groups(asked: Any, *columns: Any) -> str:
    """Words on groups of rows that are written alike, unless totals name each of them; they may be one group.

    Examples
    --------
    >>> alike_groups({"north": {"yes": 2}}, ["north", "North", "south"], None)
    ". The groups 'North' (1 row) and 'north' (1 row) are written alike and are different groups here; if they are ...
    """
    counts: Counter[str] = Counter()
    for column in columns:
        if isinstance(column, Coded):
            rows = np.bincount(column.numbers[column.numbers >= 0], minlength=len(column.names)).tolist()
            counts.update({name: n for name, n in zip(column.names, rows, strict=True) if n})
        elif column is not None:
            names = as_column(column, "groups")
            found = {} if names.dtype.kind in "biufmM" else Counter(names.tolist())
            counts.update({name: n for name, n in found.items() if isinstance(name, str)})
    alone = [names for names in alike(counts) if not all(name in asked for name, _ in names)]
    if not alone:
        return ""
    return (
        f". The groups {alike_words(alone)} are written alike and are different groups here; if they are one, write "
        "them in one way, in the rows and in the totals"
    )


def total_by_label(asked: Any, classes: AnyArray, where: str) -> dict[object, Any]:
    """Totals as ``{label: what is asked}``; a number alone is about the second of two classes."""
    if isinstance(asked, dict):
        return asked
    if _is_number(asked):
        if len(classes) != 2:
            raise InfeasibleTotalsError(
                f"totals{where} are the single number {show(asked)}, which is about the second of two "
                f"classes, but there are {len(classes)} classes: {listing(classes)}; write {{label: total}}"
            )
        return {classes.tolist()[1]: asked}
    raise InvalidInputError(
        f"totals{where} are {show(asked)} of type {type(asked).__name__}; write an int, or {{label: total}} "
        "where a total is an int, a share in [0, 1] or a pair (low, high)"
    )


def read_group_totals(asked: Any, classes: AnyArray, where: str) -> dict[int, Asked]:
    """Return what totals ask of each class number in one group."""
    number = {label: k for k, label in enumerate(classes.tolist())}
    read = {}
    for label, value in total_by_label(asked, classes, where).items():
        if label not in number:
            raise InfeasibleTotalsError(
                f"totals{where} name class {show(label)}, which is not among the classes; "
                f"{meant(label, classes.tolist())}"
            )
        read[number[label]] = _read_value(value, f"of class {show(label)}{where}")
    return read


def _read_value(value: Any, what: str) -> Asked:
    if isinstance(value, np.ndarray) and value.ndim == 1:
        value = value.tolist()
    if isinstance(value, list | tuple):
        if len(value) != 2:
            raise InvalidInputError(f"total {what} is {value!r}; an interval has two ends, (low, high)")
        low, high = value
        if _is_count(low, what) != _is_count(high, what):
            raise InvalidInputError(
                f"interval ({show(low)}, {show(high)}) {what} mixes a count and a share; write two ints or two floats"
            )
        ends = _checked(low, what), _checked(high, what)
        if ends[0] > ends[1]:
            raise InfeasibleTotalsError(f"interval {what} is empty: low {show(low)} is above high {show(high)}")
        return Asked(*ends, is_share=not _is_count(low, what), is_interval=True)
    is_count = _is_count(value, what)
    number = _checked(value, what)
    return Asked(number, number, is_share=not is_count, is_interval=False)


def _is_number(value: object) -> bool:
    value = _unboxed(value)
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _unboxed(value: object) -> object:
    return value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else plain(value)


def _is_count(value: object, what: str) -> bool:
    if not _is_number(value):
        if value is None or type(value).__name__ == "NAType":
            raise InfeasibleTotalsError(f"total {what} is missing (NaN or None); leave the class out to leave it free")
        raise InvalidInputError(
            f"total {what} is {show(value)} of type {type(value).__name__}; write an int for a count, a "
            "float in [0, 1] for a share, or a pair (low, high)"
        )
    return isinstance(_unboxed(value), numbers.Integral)


def _checked(value: Any, what: str) -> float:
    value = _unboxed(value)
    if isinstance(value, numbers.Integral):
        if value < 0:
            raise InfeasibleTotalsError(f"total {value} {what} is negative")
        return int(value)
    share = float(value)
    if math.isnan(share):
        raise InfeasibleTotalsError(f"total {what} is NaN; leave the class out to leave it free")
    if share < 0:
        raise InfeasibleTotalsError(f"share {share} {what} is negative")
    if share > 1:
        raise InfeasibleTotalsError(f"share {share} {what} is above 1; write an int for a count")
    return share


def _label_of(name: Any, classes: AnyArray) -> object:
    if classes.dtype.kind not in "biuf" or not isinstance(name, str):
        return name
    written = {str(label): label for label in classes.tolist()}
    if name in written:
        return written[name]
    return int(name) if classes.dtype.kind != "b" and name.lstrip("-").isdecimal() else name


def _rows(groups: list[object], names: list[object], columns: list[list[object]]) -> dict[object, Any]:
    rows = zip(*_counts_beside_gaps(columns), strict=True) if columns else [()] * len(groups)
    return _as_dict([(g, _as_dict(_given(names, row))) for g, row in zip(groups, rows, strict=True)])


def _given(names: list[object], row: Iterable[object]) -> list[tuple[object, object]]:
    """Names and cells of those that are not empty."""
    return [(name, cell) for name, cell in zip(names, row, strict=True) if not is_missing_value(cell)]


def _counts_beside_gaps(columns: list[list[object]]) -> list[list[object]]:
    """Make counts of whole floats in a table with empty cells: pandas has made floats of them for the sake of these."""
    cells = [plain(cell) for column in columns for cell in column]
    floats = [cell for cell in cells if isinstance(cell, float) and not is_missing_value(cell)]
    if not any(map(is_missing_value, cells)) or not all(number.is_integer() for number in floats):
        return columns
    if 1.0 in floats and max(floats) <= 1 and not any(isinstance(cell, int) for cell in cells):
        raise InfeasibleTotalsError(
            "totals have empty cells and no other numbers than 0.0 and 1.0, which may be counts or shares; write "
            "counts as Int64, or a mapping {group: {class: total}} without the classes that are free"
        )
    return [
        [int(c) if isinstance(c, float) and not is_missing_value(c) else c for c in map(plain, col)] for col in columns
    ]


def _as_dict(pairs: list[tuple[Any, Any]]) -> dict[object, Any]:
    pairs = [(plain(k), v) for k, v in pairs]
    _refuse_repeated([k for k, _ in pairs], "entry")
    return dict(pairs)


def _refuse_repeated(keys: list[Any], what: str) -> None:
    seen: set[object] = set()
    for key in keys:
        if not isinstance(key, Hashable):
            raise InvalidInputError(f"totals have {show(key)} of type {type(key).__name__} as the name of a {what}")
        if key in seen:
            raise InfeasibleTotalsError(f"totals have more than one {what} for {show(key)}")
        seen.add(key)
