"""Totals of several margins at once, by region and by sex, whose groups cross."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from treewright.core.arrays import BoolArray, IntArray
from treewright.data.columns_checked import Coded, as_column, show
from treewright.data.totals import ClassTotals
from treewright.exceptions import InfeasibleTotalsError, InvalidInputError

__all__ = ["Groups", "crossed_groups", "groups_of_rows", "group_columns", "split_margins", "telling_margins"]

Groups = ArrayLike | None
"""Groups as users give them: a column, several columns as a list or as a frame or array, or None."""


def split_margins(totals: Any, groups: Any) -> list[tuple[Any, Any]]:
    """Totals as given and groups of each margin; one for totals that are not a list.

    Examples
    --------
    >>> split_margins({"yes": 3}, None)
    [({'yes': 3}, None)]
    >>> split_margins([{"n": 1, "s": 2}, {"f": 3}], [["n", "s"], ["f", "f"]])
    [({'n': 1, 's': 2}, ['n', 's']), ({'f': 3}, ['f', 'f'])]
    """
    if not isinstance(totals, list | tuple):
        return [(totals, groups)]
    if not totals:
        raise InvalidInputError("totals are an empty list; write totals of one margin or a list of several")
    if len(totals) == 1 and not _are_columns(groups):
        return [(totals[0], groups)]
    return list(zip(totals, group_columns(groups, len(totals)), strict=True))


def group_columns(groups: Any, n_margins: int) -> list[Any]:
    """Columns of groups of the given rows, for totals of several margins; None in a list for totals of all rows."""
    if groups is None:
        raise InvalidInputError(
            f"totals are a list of {n_margins}, one a margin, which needs as many columns of groups: groups=[a, b]"
        )
    if not _are_columns(groups) and not isinstance(groups, list | tuple):
        raise InvalidInputError(
            f"totals are a list of {n_margins}, one a margin, and groups are of type {type(groups).__name__}; pass a "
            "list of columns, or a frame with a column a margin"
        )
    columns = _columns(groups)
    if len(columns) != n_margins:
        raise InfeasibleTotalsError(f"totals are of {n_margins} margins, groups have {len(columns)} columns")
    for column in columns:
        if isinstance(column, str) or not (column is None or hasattr(column, "__len__")):
            raise InvalidInputError(
                f"totals are a list of {n_margins}, one a margin, so groups must be a list of columns; one is "
                f"{show(column)}"
            )
    return columns


def _columns(groups: Any) -> list[Any]:
    """The columns of a list, array or frame."""
    if hasattr(groups, "columns"):
        return [groups.iloc[:, j] if hasattr(groups, "iloc") else groups[:, j] for j in range(groups.shape[1])]
    return list(groups.T) if isinstance(groups, np.ndarray) else list(groups)


def _are_columns(groups: Any) -> bool:
    """Whether groups are a list, array or frame of columns, rather than a column."""
    if hasattr(groups, "columns") or (isinstance(groups, np.ndarray) and groups.ndim == 2):
        return True
    return (
        isinstance(groups, list | tuple)
        and len(groups) > 0
        and not isinstance(groups[0], str)
        and (groups[0] is None or hasattr(groups[0], "__len__"))
    )


def crossed_groups(margins: tuple[ClassTotals, ...]) -> tuple[list[tuple[Any, ...]], IntArray]:
    """The crossings of the groups of several margins that rows have, and the number of that of each unlabelled row.

    Examples
    --------
    >>> from treewright.data import parse_totals
    >>> region = parse_totals({"n": 1, "s": 0}, [0, 1], 3, ["s", "n", "s"])
    >>> sex = parse_totals({"f": 1, "m": 0}, [0, 1], 3, ["f", "f", "m"])
    >>> names, cell = crossed_groups((region, sex))
    >>> names, cell.tolist()
    ([('n', 'f'), ('s', 'f'), ('s', 'm')], [1, 0, 2])
    """
    table = np.column_stack([margin.group_of for margin in margins])
    found, cell = np.unique(table, axis=0, return_inverse=True)
    names = [tuple(margin.groups[g] for margin, g in zip(margins, row, strict=True)) for row in found.tolist()]
    return names, cell.reshape(-1)


def telling_margins(margins: tuple[ClassTotals, ...]) -> tuple[int, ...]:
    """Numbers of the margins of totals that say something which no other one says already, at least one.

    A margin says nothing where it asks nothing, and where each of its groups is made of groups of another one whose
    totals add up to its own: totals of all rows beside those by region, and districts that make up regions.

    Examples
    --------
    >>> from treewright.data import parse_totals
    >>> region = parse_totals({"n": 1, "s": 0}, [0, 1], 3, ["s", "n", "s"])
    >>> every = parse_totals({"all": 1}, [0, 1], 3, ["all"] * 3)
    >>> telling_margins((every, region)), telling_margins((region, region)), telling_margins((every,))
    ((1,), (0,), (0,))
    """
    kept = list(range(len(margins)))
    for j in reversed(range(len(margins))):
        others = [m for m in kept if m != j]
        if others and (margins[j].free.all() or any(_follows(margins[j], margins[m]) for m in others)):
            kept = others
    return tuple(kept)


def _follows(margin: ClassTotals, finer: ClassTotals) -> bool:
    """Whether totals of a margin follow from those of another."""
    part_of = np.zeros(finer.n_groups, dtype=np.int64)
    part_of[finer.group_of] = margin.group_of
    if not np.array_equal(part_of[finer.group_of], margin.group_of):
        return False
    low, high = np.zeros_like(margin.low), np.zeros_like(margin.high)
    np.add.at(low, part_of, finer.low)
    np.add.at(high, part_of, finer.high)
    return bool(np.all(low >= margin.low) and np.all(high <= margin.high))


def groups_of_rows(groups: Any, rows: BoolArray) -> Any:
    """The groups of some rows; of several margins a list of columns.

    Examples
    --------
    >>> some = np.array([True, False, True])
    >>> [part.tolist() for part in groups_of_rows([["n", "s", "s"], ["f", "f", "m"]], some)]
    [['n', 's'], ['f', 'm']]
    """
    if groups is None or isinstance(groups, Coded):
        return None if groups is None else groups[rows]
    columns = _columns(groups) if _are_columns(groups) else [groups]
    parts = [None if column is None else as_column(column, "groups")[rows] for column in columns]
    return parts if len(parts) > 1 else parts[0]
