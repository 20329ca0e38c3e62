"""How a fit was made: the table, what became of its columns, and what was left out."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence

from treewright._version import __version__
from treewright.core.names import printable, shortened
from treewright.data.tables.codes import LEAST_ROWS, MOST_LEVELS
from treewright.data.tables.encoder import TableEncoder
from treewright.data.tables.files import Table
from treewright.data.tables.mixed_encoder import MixedEncoder
from treewright.report.words import count_words

__all__ = ["made_today", "table_making"]

_NAMED = 60
"""Columns that are named of each kind."""


def made_today() -> list[tuple[str, str]]:
    """The day, and what made the report."""
    return [("made", f"{datetime.date.today().isoformat()} by treewright {__version__}")]


def table_making(
    table: Table, encoder: TableEncoder | MixedEncoder, *, file: str = "", aside: Mapping[str, str] | None = None
) -> list[tuple[str, str]]:
    """Say in a report what a table was and what became of its columns.

    Parameters
    ----------
    table : Table
        The table.
    encoder : TableEncoder or MixedEncoder
        How columns became features.
    file : str
        Name of its file.
    aside : mapping of str to str, or None
        Columns that were not to be features, and why.

    Returns
    -------
    list of pairs of str
        What it is about, and the words, as ``making`` of :func:`treewright.report.labels_report` takes them.

    Examples
    --------
    >>> table = Table({"age": [31.0, 45.0, 50.0], "area": ["north", "south", "north"], "ill": ["no", "yes", None]})
    >>> encoder = TableEncoder.fit(table, ["age", "area"])
    >>> for what, words in table_making(table, encoder, file="people.csv", aside={"ill": "the target"}):
    ...     print(f"{what}: {words}")
    table: people.csv, 3 rows
    features: age (a number); area (text: a 0/1 feature for each level but the most frequent)
    left out: ill (the target)
    """
    name = [file] if file else []
    pairs = [("table", ", ".join([*name, count_words(table.n_rows), *([table.source] if table.source else [])]))]
    pairs.append(("features", _features(encoder)))
    why = {name: "it is empty" for name in table.columns if name not in encoder.columns} | dict(aside or {})
    left = [f"{printable(name)} ({why[name]})" for name in table.columns if name in why and name not in encoder.columns]
    if left:
        pairs.append(("left out", _some(left, ", ")))
    gaps = _gaps(table, encoder)
    return [*pairs, ("gaps", gaps)] if gaps else pairs


_POOLED = f"text of many levels: a 0/1 feature for each in {LEAST_ROWS} rows or more, {MOST_LEVELS} at most"


def _features(encoder: TableEncoder | MixedEncoder) -> str:
    """Columns by what became of them."""
    if isinstance(encoder, TableEncoder):
        kinds = {name: "pooled" if code.pooled else code.kind for name, code in encoder.codes.items()}
        text = "text: a 0/1 feature for each level but the most frequent"
    else:
        kinds = {name: kind if kind in ("number", "date") else "text" for name, kind in encoder.kinds.items()}
        text = "text: categories as they are"
    parts = []
    for kind, one, many in (
        ("number", "a number", "numbers"),
        ("text", text, text),
        ("pooled", _POOLED, _POOLED),
        ("date", "a date: days since 1970-01-01", "dates: days since 1970-01-01"),
    ):
        names = [printable(name) for name, own in kinds.items() if own == kind]
        if names:
            parts.append(f"{_some(names, ', ')} ({one if len(names) == 1 else many})")
    return "; ".join(parts)


def _gaps(table: Table, encoder: TableEncoder | MixedEncoder) -> str:
    """Missing values, and what became of them."""
    if isinstance(encoder, MixedEncoder):
        counts = {name: int(table.missing(name).sum()) for name in encoder.columns}
        told = [f"{printable(name)} ({count_words(n)})" for name, n in counts.items() if n]
        return f"{_some(told, ', ')}; missing values are left as they are, and splits say where they go" if told else ""
    told = []
    for name, n in encoder.missing.items():
        code = encoder.codes[name]
        how = f"filled with {code.fill_text}, the median" if code.kind != "text" else "counted as none of its levels"
        told.append(f"{printable(name)}: {count_words(n)}, {how}")
    noted = [name for name in encoder.missing if encoder.codes[name].gaps]
    more = f'; 0/1 features such as "{shortened(noted[0])} is missing" tell where' if noted else ""
    return f"{_some(told, '; ')}{more}" if told else ""


def _some(parts: Iterable[str], between: str) -> str:
    shown: Sequence[str] = list(parts)
    more = f"{between}and {len(shown) - _NAMED} more" if len(shown) > _NAMED else ""
    return between.join(shown[:_NAMED]) + more
