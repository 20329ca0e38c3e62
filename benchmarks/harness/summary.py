"""Tables of rows: grouped means, medians, shares and counts, as markdown or as text."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.specification import Row
from treewright.report.text import text_table

__all__ = [
    "Column",
    "GroupTable",
    "PivotTable",
    "TextTable",
    "against",
    "combined",
    "compared",
    "contradictions",
    "count",
    "each",
    "finished",
    "finished_with",
    "grouped",
    "joined",
    "mean",
    "median",
    "median_range",
    "most",
    "only",
    "render",
    "share",
    "tally",
]

Field = str | Callable[[Row], Any]
"""Name of a value of a row, or what computes one; None counts as missing."""


@dataclass(frozen=True)
class TextTable:
    """A table of text, with a title above it.

    Examples
    --------
    >>> print(TextTable("Two", ("a", "b"), (("x", "1"),)).markdown())
    Two
    <BLANKLINE>
    | a | b |
    |---|---|
    | x | 1 |
    """

    title: str
    header: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        """Return the table in markdown."""
        lines = ["| " + " | ".join(row) + " |" for row in (self.header, *self.cells)]
        lines.insert(1, "|" + "---|" * len(self.header))
        return "\n".join([*([self.title, ""] if self.title else []), *lines])

    def text(self) -> str:
        """Return the table in columns."""
        return "\n".join([*([self.title] if self.title else []), *text_table([self.header, *self.cells])])


# ---------------------------------------------------------------------- columns


@dataclass(frozen=True)
class Column:
    """A column of a table: what the rows of a group come to."""

    title: str
    """Its head."""
    value: Callable[[list[Row], list[Row]], Any]
    """``value(group, rows)``, the rows of the group and all of them, returns a number, text or None."""
    form: str = ""
    """How numbers are written."""

    def of(self, **values: Any) -> Column:
        """Return the column for those rows of a group alone that have these values."""
        return replace(self, value=lambda group, rows: self.value(only(group, **values), only(rows, **values)))

    def cell(self, group: list[Row], rows: list[Row]) -> str:
        """Return the text for a group; empty where there is nothing to tell."""
        value = self.value(group, rows)
        return "" if value is None else format(value, self.form)


def _read(row: Row, field: Field) -> Any:
    return field(row) if callable(field) else row.get(field)


def _values(rows: Iterable[Row], field: Field) -> list[Any]:
    return [value for row in rows if (value := _read(row, field)) is not None]


def _column(title: str, field: Field, form: str, of: Callable[[list[Any]], Any]) -> Column:
    def value(group: list[Row], rows: list[Row]) -> Any:
        found = _values(group, field)
        return of(found) if found else None

    return Column(title, value, form)


def count(title: str) -> Column:
    """Return a column with the number of rows."""
    return Column(title, lambda group, rows: len(group), "d")


def mean(title: str, field: Field, form: str = ".2f") -> Column:
    """Return a column of means."""
    return _column(title, field, form, statistics.fmean)


def median(title: str, field: Field, form: str = ".2f") -> Column:
    """Return a column of medians."""
    return _column(title, field, form, statistics.median)


def most(title: str, field: Field, form: str = ".2f") -> Column:
    """Return a column of largest values."""
    return _column(title, field, form, max)


def share(title: str, field: Field, value: Any, form: str = ".0%") -> Column:
    """Return a column with the share of a value among rows that have one."""
    return _column(title, field, form, lambda found: found.count(value) / len(found))


def median_range(title: str, field: Field, form: str = ".1f", ends: str = ".0f") -> Column:
    """Return a column of medians with smallest and largest value."""

    def text(found: list[Any]) -> str:
        return f"{statistics.median(found):{form}} ({min(found):{ends}}-{max(found):{ends}})"

    return _column(title, field, "", text)


def each(title: str, form: str) -> Column:
    """Return a column of texts that a form such as ``"{n} x {p}"`` makes of each row."""
    return Column(title, lambda group, rows: "; ".join(form.format(**row) for row in group))


def joined(title: str, *columns: Column, by: str = " / ") -> Column:
    """Return columns in one."""

    def value(group: list[Row], rows: list[Row]) -> str | None:
        cells = [column.cell(group, rows) for column in columns]
        return by.join(cells) if any(cells) else None

    return Column(title, value)


def against(base: Any, by: str, field: Field, pair: Sequence[str] = ("data",)) -> tuple[Column, Column]:
    """Return two columns: how often a value is lower than that of the base, and how often higher.

    Parameters
    ----------
    base : object
        What is compared with, a value of `by`; its own cells are empty.
    by : str
        The field that tells the compared from one another.
    field : str or callable
        What is compared.
    pair : sequence of str
        Fields in which two rows agree that are compared.

    Examples
    --------
    >>> rows = [{"data": d, "method": m, "error": e} for d, m, e in (("x", "a", 1), ("x", "b", 2), ("y", "b", 3))]
    >>> [column.cell(only(rows, method="b"), rows) for column in against("a", "method", "error")]
    ['0', '1']
    """

    def differences(group: list[Row], rows: list[Row]) -> list[float] | None:
        if not group or group[0].get(by) == base:
            return None
        partner = {tuple(row[name] for name in pair): _read(row, field) for row in only(rows, **{by: base})}
        pairs = [(_read(row, field), partner.get(tuple(row[name] for name in pair))) for row in group]
        return [mine - theirs for mine, theirs in pairs if mine is not None and theirs is not None]

    def times(sign: int) -> Callable[[list[Row], list[Row]], int | None]:
        def value(group: list[Row], rows: list[Row]) -> int | None:
            found = differences(group, rows)
            return None if found is None else sum(sign * difference > 0 for difference in found)

        return value

    return Column(f"lower than {base} on", times(-1), "d"), Column("higher on", times(1), "d")


# ---------------------------------------------------------------------- rows


def finished(rows: Iterable[Row]) -> list[Row]:
    """Return the rows that have a result, and their by-products as rows of their own.

    Examples
    --------
    >>> finished([{"method": "a", "n": 1, "also": {"b": {"n": 2}}}, {"method": "c", "skipped": "why"}])
    [{'method': 'a', 'n': 1}, {'method': 'b', 'n': 2}]
    """
    found: list[Row] = []
    for row in rows:
        if "skipped" not in row and "failure" not in row:
            own = {name: value for name, value in row.items() if name != "also"}
            found += [own, *(own | more | {"method": name} for name, more in row.get("also", {}).items())]
    return found


def only(rows: Iterable[Row], **values: Any) -> list[Row]:
    """Return the rows that have these values.

    Examples
    --------
    >>> only([{"draw": 0, "n": 1}, {"draw": 1, "n": 2}], draw=1)
    [{'draw': 1, 'n': 2}]
    """
    return [row for row in rows if all(row.get(name) == value for name, value in values.items())]


def finished_with(**values: Any) -> Callable[[list[Row]], list[Row]]:
    """Return what picks the finished rows that have these values."""
    return lambda rows: only(finished(rows), **values)


def grouped(rows: Iterable[Row], by: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    """Return rows by the values of some fields, in the order in which these first come."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(name) for name in by), []).append(row)
    return groups


def combined(by: Sequence[str], compute: Callable[[list[Row]], Row]) -> Callable[[list[Row]], list[Row]]:
    """Return what makes one row of the finished rows that agree in some fields, with values computed from all of them.

    Examples
    --------
    >>> sums = combined(("data",), lambda group: {"wrong": sum(row["wrong"] for row in group)})
    >>> sums([{"data": "x", "wrong": 1}, {"data": "x", "wrong": 2}])
    [{'data': 'x', 'wrong': 3}]
    """
    return lambda rows: [group[0] | compute(group) for group in grouped(finished(rows), by).values()]


@dataclass(frozen=True)
class GroupTable:
    """A line a group.

    Examples
    --------
    >>> table = GroupTable({"method": "method"}, (count("fits"), mean("accuracy", "accuracy", ".1%")))
    >>> rows = [{"method": "a", "accuracy": 0.5}, {"method": "a", "accuracy": 0.75}, {"method": "b"}]
    >>> table(rows).cells
    (('a', '2', '62.5%'), ('b', '1', ''))
    """

    by: Mapping[str, str]
    """Fields that groups agree in, with the heads of their columns."""
    columns: tuple[Column, ...]
    """The other columns."""
    title: str | Callable[[list[Row]], str] = ""
    """What stands above; a callable gets the rows."""
    rows: Callable[[list[Row]], list[Row]] = finished
    """Which rows count, from all rows of the specification; :func:`finished` ones if nothing is said."""
    order: tuple[Any, ...] = ()
    """Values of the first field, first to last; others follow as they come."""

    def __call__(self, rows: list[Row]) -> TextTable:
        """Make the table."""
        used = self.rows(rows)
        groups = grouped(used, tuple(self.by))
        place = {value: number for number, value in enumerate(self.order)}
        keys = sorted(groups, key=lambda key: place.get(key[0], len(place)))
        cells = ((*map(str, key), *(column.cell(groups[key], used) for column in self.columns)) for key in keys)
        title = self.title(used) if callable(self.title) else self.title
        return TextTable(title, (*self.by.values(), *(column.title for column in self.columns)), tuple(cells))


@dataclass(frozen=True)
class PivotTable:
    """A line a group, a column for each value of a field.

    Examples
    --------
    >>> rows = [{"method": "a", "share": s, "error": e} for s, e in ((1.0, 9.0), (10.0, 5.0), (10.0, 6.0))]
    >>> table = PivotTable(("method", "method"), ("share", "{:g} %"), mean("", "error"), known={"theirs": {1.0: 9.6}})
    >>> print(table(rows).text())
      method  1 %   10 %
      a       9.00  5.50
      theirs  9.6
    """

    by: tuple[str, str]
    """Field of the lines and the head of their column."""
    across: tuple[str, str]
    """Field of the columns and the form of its values in their heads, as ``"{:g} %"``."""
    cell: Column
    """What stands in the cells."""
    columns: tuple[Column, ...] = ()
    """Columns at the end."""
    title: str = ""
    rows: Callable[[list[Row]], list[Row]] = finished
    order: tuple[Any, ...] = ()
    """As of :class:`GroupTable`."""
    everywhere: tuple[Any, ...] = ()
    """Lines whose cells are those of all their rows: what does not depend on the columns."""
    known: Mapping[str, Mapping[Any, float]] = field(default_factory=dict)
    """Further lines, their cells given for values of the field of the columns: published figures."""

    def __call__(self, rows: list[Row]) -> TextTable:
        """Make the table."""
        used = self.rows(rows)
        heads = sorted({row[self.across[0]] for row in used})
        groups = {key[0]: group for key, group in grouped(used, self.by[:1]).items()}
        place = {value: number for number, value in enumerate(self.order)}
        cells: list[tuple[str, ...]] = []
        for name in sorted(groups, key=lambda name: place.get(name, len(place))):
            mine = groups[name]
            parts = [
                mine if name in self.everywhere else [row for row in mine if row[self.across[0]] == head]
                for head in heads
            ]
            ends = (column.cell(mine, used) for column in self.columns)
            cells.append((str(name), *(self.cell.cell(part, used) for part in parts), *ends))
        if cells:  # published figures stand beside others, not alone
            for name, values in self.known.items():
                given = (f"{values[head]:g}" if head in values else "" for head in heads)
                cells.append((name, *given, *("" for _ in self.columns)))
        titles = (self.by[1], *(self.across[1].format(head) for head in heads), *(c.title for c in self.columns))
        return TextTable(self.title, titles, tuple(cells))


# ---------------------------------------------------------------------- the whole


def contradictions(rows: list[Row]) -> str:
    """Return how many claims were verified and what contradicts them: lists that a metric made."""
    found = [row for row in rows if row.get("contradictions") is not None]
    wrong = [f"{row['data']}, {row['method']}: {text}" for row in found for text in row["contradictions"]]
    return "\n".join([f"{len(found)} claims verified, {len(wrong)} contradictions", *wrong]) if found else ""


def tally(rows: list[Row]) -> str:
    """Return how many rows there are, how many were skipped and why, and which failed."""
    skipped = grouped((row for row in rows if "skipped" in row), ("skipped",))
    lost = [row for row in rows if "failure" in row]
    reasons = [f"{len(group)} skipped ({reason})" for (reason,), group in skipped.items()]
    failed = [f"{len(lost)} failed"] if lost else []
    lines = [", ".join([f"{len(rows)} rows", *reasons, *failed]) + "."]
    lines += [f"{row['data']}, {row['sample']} {row['draw']}, {row['method']}: {row['failure']}" for row in lost]
    return "\n".join(lines)


def render(parts: Iterable[Callable[[list[Row]], Any]], rows: list[Row], form: str = "markdown") -> str:
    """Return a summary: tables and text that `parts` make of the rows, empty tables and texts left out.

    Parameters
    ----------
    parts : iterable of callable
        Each returns a :class:`TextTable` or text.
    rows : list of dict
        The rows.
    form : {"markdown", "text"}
        How tables are written.
    """
    found = [part(rows) for part in (*parts, tally)]
    blocks = [
        (part.markdown() if form == "markdown" else part.text()) if isinstance(part, TextTable) else str(part)
        for part in found
        if (part.cells if isinstance(part, TextTable) else part)
    ]
    return "\n\n".join(blocks)


_SAME = ("data", "sample", "draw", "method", "setting")


def compared(rows: list[Row], before: list[Row]) -> TextTable:
    """Return rows beside rows of another store that agree in all but parameters: what a change of the code brought.

    Parameters
    ----------
    rows, before : list of dict
        Rows of one specification from two stores.
    """
    other = {tuple(row.get(name) for name in _SAME): row for row in finished(before)}
    pairs = [
        (row, old) for row in finished(rows) if (old := other.get(tuple(row.get(name) for name in _SAME))) is not None
    ]
    groups: dict[tuple[str, str], list[tuple[Row, Row]]] = {}
    for pair in pairs:
        groups.setdefault((pair[0]["method"], pair[0]["setting"]), []).append(pair)
    header = ("method", "setting", "rows", "optimal", "accuracy", "error", "objective", "median seconds")
    cells = tuple((*key, str(len(own)), *_changes(own)) for key, own in groups.items())
    return TextTable("before -> now; objective: better / equal / worse", header, cells)


def _changes(pairs: list[tuple[Row, Row]]) -> list[str]:
    now, before = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    cells = []
    for column in (
        share("", "status", "optimal"),
        mean("", "accuracy", ".2%"),
        mean("", "error", ".3f"),
    ):
        old, new = column.cell(before, before), column.cell(now, now)
        cells.append(f"{old} -> {new}" if old or new else "")
    both = [(a["objective"], b["objective"]) for a, b in pairs if None not in (a.get("objective"), b.get("objective"))]
    tolerance = [1e-6 * max(1.0, abs(b)) for _, b in both]
    better = sum(a < b - t for (a, b), t in zip(both, tolerance, strict=True))
    worse = sum(a > b + t for (a, b), t in zip(both, tolerance, strict=True))
    cells.append(f"{better} / {len(both) - better - worse} / {worse}" if both else "")
    seconds = median("", "seconds", ".1f")
    return [*cells, f"{seconds.cell(before, before)} -> {seconds.cell(now, now)}"]
