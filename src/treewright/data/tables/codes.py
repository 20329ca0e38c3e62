"""How one column becomes features, and that as plain data in model files."""

from __future__ import annotations

import math
from dataclasses import dataclass

from treewright.data.tables.cells import number_text
from treewright.data.tables.columns import is_date_format
from treewright.exceptions import ModelFileError
from treewright.tree.words import date_text

__all__ = ["LEAST_ROWS", "MAX_LEVELS", "MOST_LEVELS", "ColumnCode", "checked_code"]

MAX_LEVELS = 50
"""Most different values of a text column whose levels all have a feature of their own."""
LEAST_ROWS, MOST_LEVELS = 10, 200
"""Of more, those in so many rows have one, the most frequent of these if they are many; the others are pooled."""

_KINDS = ("number", "text", "date")


@dataclass(frozen=True)
class ColumnCode:
    """How one column becomes features."""

    kind: str
    """"number", "text" or "date"."""
    levels: tuple[str, ...] = ()
    """Levels of a text column, sorted."""
    base: str | None = None
    """Level without a feature, the most frequent one; None where each has one: pooled, and in older model files."""
    format: str = ""
    """How the dates of a text are written."""
    fill: float | None = None
    """What stands for a missing number, the median; None where none may be missing."""
    gaps: bool = False
    """Whether a feature says where a value is missing."""
    pooled: bool = False
    """Whether the levels are some of many: all others count as one, where the features of levels are 0. Which these
    are is not kept, as few rows have each, and a name such as an occupation may tell who it is."""

    @property
    def fill_text(self) -> str:
        """What stands for a missing number or date, as it would be typed.

        Examples
        --------
        >>> ColumnCode("number", fill=1629.0).fill_text, ColumnCode("date", format="%d.%m.%Y", fill=17345.0).fill_text
        ('1629', '2017-06-28')
        """
        fill = 0.0 if self.fill is None else self.fill
        day = date_text(fill, "%H" in self.format) if self.kind == "date" else None
        return day or str(number_text(fill))

    def feature_names(self, name: str) -> list[str]:
        """Names of the features of a column."""
        shown = [f"{name}={level}" for level in self.levels if level != self.base] if self.kind == "text" else [name]
        return [*shown, f"{name} is missing"] if self.gaps else shown


def checked_code(entry: object, place: str, fills: bool) -> tuple[str, ColumnCode]:
    """How a column of a table becomes features, from a model file, trusting nothing."""
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or not entry["name"]:
        raise ModelFileError(f"{place}: expected a name and what becomes of the column")
    kind, gaps = entry.get("kind"), entry.get("gaps")
    if kind not in _KINDS or type(gaps) is not bool or (gaps and not fills):
        raise ModelFileError(f"{place}: expected one of the kinds {', '.join(_KINDS)}, and whether it had gaps")
    more = {"number": {"fill"}, "date": {"fill", "format"}, "text": {"levels", "base"}}[str(kind)]
    pooled = entry.get("pooled", False)
    if set(entry) - ({"pooled"} if kind == "text" else set()) != {"name", "kind", "gaps"} | more:
        raise ModelFileError(f"{place}: expected {', '.join(sorted(more))} for the kind {kind}")
    if kind == "text":
        if type(pooled) is not bool:
            raise ModelFileError(f"{place}: expected true or false for pooled")
        levels, base = _checked_levels(entry["levels"], place, MOST_LEVELS if pooled else MAX_LEVELS), entry["base"]
        if base is not None and (pooled or base not in levels):
            raise ModelFileError(f"{place}: the base {base!r} is none of its levels")
        return entry["name"], ColumnCode("text", levels, base, gaps=gaps, pooled=pooled)
    fill, form = entry["fill"], entry.get("format", "")
    if (fill is None) == fills or not (fill is None or (type(fill) in (int, float) and math.isfinite(fill))):
        raise ModelFileError(f"{place}: expected a finite number for missing values, or null if they are refused")
    if kind == "date" and not (isinstance(form, str) and is_date_format(form)):
        raise ModelFileError(f"{place}: {form!r} is no known way to write dates")
    return entry["name"], ColumnCode(str(kind), format=form, fill=fill, gaps=gaps)


def _checked_levels(known: object, place: str, most: int = MAX_LEVELS) -> tuple[str, ...]:
    if not isinstance(known, list) or not 0 < len(known) <= most or not all(isinstance(v, str) for v in known):
        raise ModelFileError(f"{place}: levels must be 1 to {most} strings")
    if known != sorted(set(known)):
        raise ModelFileError(f"{place}: levels must be sorted and different")
    return tuple(known)
