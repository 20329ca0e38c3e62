"""Features that rules name in words: what holds where they are 1, or a date."""

from __future__ import annotations

import datetime
import math
from typing import NamedTuple

__all__ = ["DateWords", "FeatureWords", "FlagWords", "date_text"]

_EPOCH = datetime.datetime(1970, 1, 1)
_YEAR, _DAY = 365.25, 86_400.0
_SPLIT = 1e-4
"""Parts of a second that are rounding of days."""
_2000 = 10957
"""Days from 1970-01-01 to 2000-01-01."""


def date_text(days: float, times: bool) -> str | None:
    """A date in a rule of a tree from days since 1970-01-01, with the time of the day or without; None for no date.

    Examples
    --------
    >>> date_text(19.25, times=False), date_text(19.25, times=True), date_text(1e12, times=False)
    ('1970-01-20', '1970-01-20 06:00', None)
    >>> date_text(19.2504, times=True)
    '1970-01-20 06:00:34'
    """
    try:
        day = _EPOCH + datetime.timedelta(days=days)
    except (OverflowError, ValueError):
        return None
    seconds = f":{day:%S}" if day.second else ""
    return f"{day:%Y-%m-%d %H:%M}{seconds}" if times else f"{day:%Y-%m-%d}"


class FlagWords(NamedTuple):
    """Words for a feature that is 1 where something holds and 0 elsewhere.

    Examples
    --------
    >>> flag = FlagWords("race is White", "race is not White")
    >>> flag.condition(0.5, up_to=True), flag.condition(0.5, up_to=False), flag.condition(1.5, up_to=True)
    ('race is not White', 'race is White', None)
    >>> flag.sides(0.5, up_to=True)
    ('race is not White', 'race is White')
    """

    yes: str
    """Of 1."""
    no: str
    """Of 0."""
    column: str = ""
    """Column that has this flag for one of its levels: at most one of them holds. Empty for a flag of its own."""
    filled: tuple[int, float] | None = None
    """Of a flag that says where the value of a number or date is missing: its feature, and what stands there then."""
    many: bool = False
    """Whether the column has many levels, of which several with the same weight are told as a group."""

    def condition(self, threshold: float, up_to: bool) -> str | None:
        """Words for values up to a threshold, or from it on; None where it does not part 0 from 1."""
        if up_to:
            return self.no if 0 <= threshold < 1 else None
        return self.yes if 0 < threshold <= 1 else None

    def sides(self, threshold: float, up_to: bool) -> tuple[str, str] | None:
        """The same words, and those for all other values."""
        told = self.condition(threshold, up_to)
        return None if told is None else (told, self.yes if told is self.no else self.no)

    @property
    def term(self) -> str:
        """What stands for the feature in a sum."""
        return f"({self.yes})"

    @property
    def scale(self) -> tuple[float, float]:
        """Where the term is 0, and how much of the feature is 1 of it."""
        return 0.0, 1.0


class DateWords(NamedTuple):
    """Words for a feature that counts days since 1970-01-01.

    Examples
    --------
    >>> born = DateWords("born", times=False)
    >>> born.condition(19.5, up_to=True), born.condition(19.5, up_to=False)
    ('born is 1970-01-20 or earlier', 'born is 1970-01-21 or later')
    >>> DateWords("seen", times=True).condition(19.25, up_to=True)
    'seen is 1970-01-20 06:00 or earlier'
    >>> born.term
    '(years from 2000-01-01 to born)'
    """

    name: str
    """Of the feature."""
    times: bool
    """Whether there are times of the day."""
    since: int = _2000
    """The day from which years are counted in a sum, one that is near the dates."""

    def condition(self, threshold: float, up_to: bool) -> str | None:
        """Words for dates up to a threshold, or from it on; None where there is no such date."""
        told = self.sides(threshold, up_to)
        return None if told is None else told[0]

    def sides(self, threshold: float, up_to: bool) -> tuple[str, str] | None:
        """The same words, and those for all other dates."""
        shown = self.bounds(threshold, up_to)
        if shown is None:
            return None
        near, far = ("earlier", "later") if up_to else ("later", "earlier")
        contrary = f"{far} than {shown[1]}" if self.times else f"{shown[1]} or {far}"
        return f"{self.name} is {shown[0]} or {near}", f"{self.name} is {contrary}"

    def bounds(self, threshold: float, up_to: bool) -> tuple[str, str] | None:
        """The dates in these words; None where there are no such dates.

        Examples
        --------
        >>> DateWords("born", times=False).bounds(19.5, up_to=True)
        ('1970-01-20', '1970-01-21')
        """
        if not math.isfinite(threshold):
            return None
        if self.times:  # of whole seconds: the last one of those before, or the first one of those after
            seconds = threshold * _DAY
            whole = math.floor(seconds + _SPLIT) if up_to else math.ceil(seconds - _SPLIT)
            shown = date_text(whole / _DAY, times=True)
            return None if shown is None else (shown, shown)
        last = math.floor(threshold) if up_to else math.ceil(threshold) - 1
        early, late = date_text(last, times=False), date_text(last + 1, times=False)
        if early is None or late is None:
            return None
        return (early, late) if up_to else (late, early)

    @property
    def term(self) -> str:
        """What stands for the feature in a sum."""
        return f"(years from {date_text(self.since, times=False)} to {self.name})"

    @property
    def scale(self) -> tuple[float, float]:
        """Where the term is 0, and how much of the feature is 1 of it."""
        return float(self.since), _YEAR


FeatureWords = FlagWords | DateWords
"""How a feature is named in rules, if not by its name and numbers."""
