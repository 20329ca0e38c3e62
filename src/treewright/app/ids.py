"""What is said of the column that tells the rows apart."""

from __future__ import annotations

from treewright.core.names import counted, shortened
from treewright.data.tables.columns import level_counts
from treewright.data.tables.files import Table
from treewright.exceptions import warn_user

__all__ = ["warn_of_repeated_ids"]


def warn_of_repeated_ids(table: Table, name: str) -> None:
    """Warn of values of the id column that stand in more than one row, as a person who was listed twice does.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warn_of_repeated_ids(Table({"person": ["p1", "p2", "p1", None, None]}), "person")
    >>> print(told[0].message)
    1 value of 'person' stands in more than one row, such as 'p1' (2 rows); each row is labelled by itself
    """
    counts = level_counts(table.series(name))
    repeated = counts.filter(counts["rows"] > 1)
    if not len(repeated):
        return
    value, times = repeated.row(0)
    stand = "stands" if len(repeated) == 1 else "stand"
    warn_user(
        f"{counted(len(repeated), 'value')} of {name!r} {stand} in more than one row, such as {shortened(value)!r} "
        f"({counted(times, 'row')}); each row is labelled by itself"
    )
