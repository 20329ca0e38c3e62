"""Classes and groups whose names are written alike: refused, merged or kept apart, as is asked."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from treewright.core.names import option
from treewright.data.columns_checked import Coded
from treewright.data.spelling import alike, alike_words, known_names
from treewright.data.tables.columns import level_counts
from treewright.exceptions import InvalidInputError, warn_user

__all__ = ["Spelling"]


@dataclass(frozen=True)
class Spelling:
    """What becomes of names that differ in capitals, blanks or marks on letters alone.

    Attributes
    ----------
    how : str or None
        "merge" takes them for one, "keep" for several; None refuses them.
    """

    how: str | None

    def column(self, column: pl.Series, what: str, known: Collection[str] = ()) -> pl.Series:
        """A column of text in one spelling of each name.

        Parameters
        ----------
        column : polars Series
            The column; one of numbers is left as it is.
        what : str
            What it is, in messages.
        known : collection of str
            Names that a model has, which come before those of the column.

        Examples
        --------
        >>> labels = pl.Series(["yes", "Yes", None, "yes"])
        >>> Spelling("merge").column(labels, "the target 'z'").to_list()
        ['yes', 'yes', None, 'yes']
        >>> Spelling(None).column(labels, "the target 'z'")
        Traceback (most recent call last):
        ...
        treewright.exceptions.InvalidInputError: the target 'z' has 'yes' (2 rows) and 'Yes' (1 row), which are ...
        """
        if column.dtype != pl.String:
            return column
        places = self._places(dict(level_counts(column).rows()), what, known)
        return column.replace(places) if places else column

    def coded(self, column: Coded, what: str, known: Collection[str] = ()) -> Coded:
        """The same of a column of names by their numbers."""
        rows = np.bincount(column.numbers[column.numbers >= 0], minlength=len(column.names)).tolist()
        places = self._places(dict(zip(column.names, rows, strict=True)), what, known)
        if not places:
            return column
        written = [places.get(name, name) for name in column.names]
        names = sorted(set(written))
        place = {name: k for k, name in enumerate(names)}
        number = np.array([*(place[name] for name in written), -1], dtype=column.numbers.dtype)
        return Coded(names, number[column.numbers])

    def name(self, name: Any, known: Collection[Any]) -> Any:
        """A name of another file as the data has it; one that cannot be found there as it is."""
        if self.how != "merge" or not isinstance(name, str) or name in known:
            return name
        return known_names([name], [other for other in known if isinstance(other, str)]).get(name, name)

    def _places(self, rows: dict[str, int], what: str, known: Collection[str]) -> dict[str, str]:
        """The name that stands for each that is merged."""
        found = alike(rows)
        if self.how == "merge":
            places = {name: names[0][0] for names in found for name, _ in names[1:]}
            kept = [name for name in rows if name not in places]
            places |= (meant := known_names(kept, known))
            places = {name: meant.get(other, other) for name, other in places.items() if name not in known}
            said = ", ".join(f"{name!r} ({rows[name]} of them)" for name in places)
            if places:
                as_what = ", ".join(map(repr, dict.fromkeys(places.values())))
                warn_user(f"{what}: {said} count as {as_what}")
            return places
        if found and self.how is None:
            raise InvalidInputError(
                f"{what} has {alike_words(found)}, which are written alike; if they are one, "
                f"{option('spelling', 'merge')} takes them for the first, if not, {option('spelling', 'keep')} takes "
                "them as they are written"
            )
        if found:
            warn_user(f"{what} has {alike_words(found)}, which are kept apart")
        return {}
