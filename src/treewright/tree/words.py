"""Features that rules name in words: what holds where they are 1, or a date."""

from __future__ import annotations

import datetime
import math
from typing import NamedTuple

__all__ = ["DateWords", "FeatureWords", "FlagWords"]

_EPOCH = datetime.datetime(1970, 1, 1)


class FlagWords(NamedTuple):
    """Words for a feature that is 1 where something holds and 0 elsewhere.

    Examples
    --------
    >>> flag = FlagWords("race is White", "race is not White")
    >>> flag.condition(0.5, up_to=True), flag.condition(0.5, up_to=False), flag.condition(1.5, up_to=True)
    ('race is not White', 'race is White', None)
    """

    yes: str
    """Of 1."""
    no: str
    """Of 0."""

    def condition(self, threshold: float, up_to: bool) -> str | None:
        """Words for values up to a threshold, or from it on; None where it does not part 0 from 1."""
        if up_to:
            return self.no if 0 <= threshold < 1 else None
        return self.yes if 0 < threshold <= 1 else None

    @property
    def term(self) -> str:
        """What stands for the feature in a sum."""
        return f"({self.yes})"


class DateWords(NamedTuple):
    """Words for a feature that counts days since 1970-01-01.

    Examples
    --------
    >>> born = DateWords("born", times=False)
    >>> born.condition(19.5, up_to=True), born.condition(19.5, up_to=False)
    ('born is 1970-01-20 or earlier', 'born is 1970-01-21 or later')
    >>> DateWords("seen", times=True).condition(19.25, up_to=True)
    'seen is 1970-01-20 06:00 or earlier'
    """

    name: str
    """Of the feature."""
    times: bool
    """Whether there are times of the day."""

    def condition(self, threshold: float, up_to: bool) -> str | None:
        """Words for dates up to a threshold, or from it on; None where there is no such date."""
        try:
            whole = threshold if self.times else math.floor(threshold) if up_to else math.ceil(threshold)
            day = _EPOCH + datetime.timedelta(days=whole)
        except OverflowError:
            return None
        shown = f"{day:%Y-%m-%d %H:%M}" if self.times else f"{day:%Y-%m-%d}"
        return f"{self.name} is {shown} or {'earlier' if up_to else 'later'}"

    @property
    def term(self) -> str:
        """What stands for the feature in a sum."""
        return f"(days of {self.name} since 1970-01-01)"


FeatureWords = FlagWords | DateWords
"""How a feature is named in rules, if not by its name and numbers."""
