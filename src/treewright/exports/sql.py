"""A model as one SELECT: features read, the leaf by nested CASEs, then what the leaf says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from treewright.core.arrays import FloatArray
from treewright.data.mixed import Level
from treewright.exceptions import InvalidInputError
from treewright.exports.content import AGREED, SHARE, Content, Sum, refuse
from treewright.tree.structure import LEAF, Tree

__all__ = ["DIALECTS", "to_sql"]

_LEVELS = 8
"""Levels of conditions within one another: SQLite before 3.46 reads no more than 14."""
_POWER = 2**62
"""A power of two that is an integer in every database."""


def _in_duckdb(value: float) -> str:
    """A number as DuckDB reads it exactly: without an exponent it would be a decimal."""
    text = repr(value)
    return text if "e" in text else f"{text}e0"


def _in_postgres(value: float) -> str:
    return f"CAST('{value!r}' AS double precision)"


def _in_sqlite(value: float) -> str:
    """A number as SQLite reads it exactly: its decimals may miss by a digit where a fraction of integers does not."""
    exact = Fraction(value)
    digits = repr(value).partition("e")[0].replace("-", "").replace(".", "").strip("0")
    if len(digits) <= 15 and 1e-5 < abs(value) < 1e15 and Fraction(repr(value)) == exact or value == 0.0:
        return repr(value)
    mantissa, exponent = exact.numerator, 1 - exact.denominator.bit_length()
    zeros = (mantissa & -mantissa).bit_length() - 1
    mantissa, exponent = mantissa >> zeros, exponent + zeros
    sign = "*" if exponent > 0 else "/"
    powers = [_POWER] * (abs(exponent) // 62) + [2 ** (abs(exponent) % 62)]
    return f"(1.0*{mantissa}{''.join(f'{sign}{power}' for power in powers)})"


@dataclass(frozen=True)
class _Dialect:
    """How a database writes what databases write differently."""

    number: Callable[[float], str]
    double: str
    """Type of numbers."""
    text: str
    """Type of texts."""
    exactly: str
    """What makes texts equal only if all their characters are."""
    apart: str = ""
    """What keeps a subquery from being copied to wherever its columns are used."""


DIALECTS = {
    "duckdb": _Dialect(_in_duckdb, "DOUBLE", "VARCHAR", 'COLLATE "C"'),
    "postgres": _Dialect(_in_postgres, "double precision", "text", 'COLLATE "C"', " OFFSET 0"),
    "sqlite": _Dialect(_in_sqlite, "REAL", "TEXT", "COLLATE BINARY", " LIMIT -1 OFFSET 0"),
}


def to_sql(content: Content, table: str | Sequence[str], dialect: str = "duckdb", keep: Sequence[str] = ()) -> str:
    """Write a model as a SELECT; parameters are those of :meth:`TreeModel.to_sql`."""
    return _Writer(content, dialect, table, keep).text()


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class _Writer:
    """Writes the text, subquery by subquery, the innermost first."""

    def __init__(self, content: Content, dialect: str, table: str | Sequence[str], keep: Sequence[str]) -> None:
        if dialect not in DIALECTS:
            raise InvalidInputError(f"dialect is {dialect!r}; expected one of {', '.join(map(repr, DIALECTS))}")
        parts = [table] if isinstance(table, str) else list(table)
        if not parts or not all(isinstance(part, str) and part for part in parts):
            raise InvalidInputError(f"table is {table!r}; expected its name, or a sequence such as (schema, name)")
        if isinstance(keep, str) or not all(isinstance(name, str) for name in keep):
            raise InvalidInputError(f"keep is {keep!r}; expected a sequence of names of columns")
        self.content, self.form, self.dialect = content, DIALECTS[dialect], dialect
        self.table, self.keep = ".".join(map(_name, parts)), list(keep)
        self.n_queries = 0
        read = [content.names[j] for j in content.used]
        texts = [level for j in content.used for level in content.levels[j] or () if isinstance(level, str)]
        texts += [label for label in content.classes or () if isinstance(label, str)]
        refuse(
            "SQL has no texts with the character of code 0", [t for t in (*parts, *keep, *read, *texts) if "\0" in t]
        )
        taken = {name.casefold() for name in self.answers()}
        refuse("columns to keep that are named as the answers are", [n for n in keep if n.casefold() in taken])

    def answers(self) -> list[str]:
        """Names of the columns of the answer, in the order in which they come."""
        content = self.content
        if content.classes is None:
            values = ["value"] if content.n_outputs == 1 else [f"value {k}" for k in range(content.n_outputs)]
            return [*values, "leaf"]
        leaf = ["leaf"] if content.way == "leaf" else []
        return ["label", *(f"probability {label}" for label in content.classes), *leaf]

    def text(self) -> str:
        """The whole SELECT."""
        content = self.content
        query = self.leaves(self.features())
        if content.classes is None:
            found = [self.by_leaf(0, partial(self.value, k)) for k in range(content.n_outputs)]
            found.append("leaf_0")
        elif content.way == "leaf":
            found = [self.by_leaf(0, lambda leaf: self.literal(content.classes[content.labels[0][leaf]]))]  # type: ignore[index]
            found += [self.table_by_leaf(0, content.shares[0][:, k]) for k in range(content.n_outputs)]
            found.append("leaf_0")
        else:
            query, found = self.joined(query)
        columns = [f"keep_{i} AS {_name(name)}" for i, name in enumerate(self.keep)]
        columns += [f"{told} AS {_name(name)}" for told, name in zip(found, self.answers(), strict=True)]
        return self.select(columns, query, last=True)

    # ------------------------------------------------------------------ subqueries

    def select(self, columns: Sequence[str], query: str, last: bool = False) -> str:
        self.n_queries += 1
        head = "SELECT\n  " + ",\n  ".join(columns)
        return f"{head}\nFROM {query}" + ("" if last else self.form.apart)

    def below(self, query: str) -> str:
        return f"(\n{query}\n) AS q{self.n_queries}"  # as it is: names and texts may have lines

    def kept(self, names: Sequence[str]) -> list[str]:
        """Columns that a subquery hands on."""
        return [*(f"keep_{i}" for i in range(len(self.keep))), *names]

    def features(self) -> str:
        """Features as numbers and texts, NULL where they are missing."""
        columns = [f"{_name(name)} AS keep_{i}" for i, name in enumerate(self.keep)]
        columns += [f"{self.feature(j)} AS x{j}" for j in self.content.used]
        return self.below(self.select(columns or ["1 AS one"], self.table))

    def feature(self, j: int) -> str:
        name, known = _name(self.content.names[j]), self.content.levels[j]
        if known and isinstance(known[0], str):
            return f"CAST({name} AS {self.form.text})"
        if self.dialect == "postgres" and known and isinstance(known[0], bool):  # which it makes numbers of by integers
            name = f"CAST(CAST({name} AS boolean) AS integer)"
        number = f"CAST({name} AS {self.form.double})"
        return number if self.dialect == "sqlite" else f"NULLIF({number}, CAST('NaN' AS {self.form.double}))"

    def leaves(self, query: str) -> str:
        """The leaf of each tree; NULL where a number is missing that may not be."""
        content, lacking = self.content, ""
        if not content.gaps:
            numbers = [j for j in content.used if content.levels[j] is None]
            lacking = " OR ".join(f"x{j} IS NULL" for j in numbers)
        features = [f"x{j}" for j in content.used]
        for level in range(0, max(1, *(tree.depth for tree in content.trees)), _LEVELS):
            found = [f"{self.walked(k, level, lacking)} AS leaf_{k}" for k in range(len(content.trees))]
            query = self.below(self.select(self.kept([*features, *found]), query))
        return query

    def walked(self, k: int, level: int, lacking: str) -> str:
        """Nodes to which rows go from those of a level."""
        tree = self.content.trees[k]
        if level == 0:
            text = self.nested(tree, 0)
            return f"CASE WHEN {lacking} THEN NULL ELSE {text} END" if lacking else text
        starts = np.flatnonzero((tree.level == level) & ~tree.is_leaf).tolist()
        cases = " ".join(f"WHEN {start} THEN {self.nested(tree, start)}" for start in starts)
        return f"CASE leaf_{k} {cases} ELSE leaf_{k} END" if starts else f"leaf_{k}"

    def nested(self, tree: Tree, start: int) -> str:
        """The node that rows at a node reach, some levels below or a leaf, as nested conditions."""
        text, todo = "", list[str | tuple[int, int]]([(start, 0)])
        while todo:
            part = todo.pop()
            if isinstance(part, str):
                text += part
                continue
            node, depth = part
            if tree.left[node] == LEAF or depth == _LEVELS:
                text += str(node)
                continue
            blank = "\n" + "  " * (depth + 1)
            text += f"CASE WHEN {self.condition(tree, node)} THEN "
            right, left = (int(tree.right[node]), depth + 1), (int(tree.left[node]), depth + 1)
            todo += [f"{blank}END", right, f"{blank}ELSE ", left]
        return text

    def condition(self, tree: Tree, node: int) -> str:
        content = self.content
        feature = int(tree.category[node])
        if feature >= 0:
            listed = ", ".join(map(self.level, content.listed(tree, node)))
            known = content.levels[feature]
            exactly = f" {self.form.exactly}" if known and isinstance(known[0], str) else ""
            condition = f"x{feature}{exactly} IN ({listed})" if listed else "1 = 0"
        else:
            condition = f"{self.sum(content.split(tree, node))} <= {self.form.number(float(tree.threshold[node]))}"
        needed = [j for j in content.needed(tree, node) if content.gaps or content.levels[j] is not None]
        if not needed or not tree.missing_left[node]:
            return condition  # what is unknown is not true, and goes right
        return " OR ".join([*(f"x{j} IS NULL" for j in needed), condition])

    def sum(self, terms: Sum) -> str:
        lanes = [" + ".join(f"{self.form.number(weight)} * x{j}" for j, weight in lane) for lane in terms.lanes]
        text = " + ".join(f"({lane})" for lane in lanes) if len(lanes) > 1 else "".join(lanes)
        text = text or self.form.number(0.0)
        return f"{text} - {self.form.number(terms.less)}" if terms.less else text

    # ------------------------------------------------------------------ what leaves say

    def by_leaf(self, k: int, told: Callable[[int], str]) -> str:
        """What the leaf of a tree says."""
        cases = " ".join(f"WHEN {leaf} THEN {told(leaf)}" for leaf in self.content.trees[k].leaves.tolist())
        return f"CASE leaf_{k} {cases} END"

    def table_by_leaf(self, k: int, column: FloatArray) -> str:
        """A number of each leaf."""
        return self.by_leaf(k, lambda leaf: self.form.number(float(column[leaf])))

    def value(self, output: int, leaf: int) -> str:
        constant, terms = self.content.value(self.content.trees[0], leaf, output)
        return self.form.number(constant) + ("" if terms is None else f" + ({self.sum(terms)})")

    def literal(self, label: Level) -> str:
        """A label as the database has it."""
        if isinstance(label, bool):
            return str(int(label)) if self.dialect == "sqlite" else str(label).upper()
        if isinstance(label, str):
            return self.quoted(label)
        return str(label) if isinstance(label, int) else self.form.number(label)

    def level(self, level: Level) -> str:
        return self.quoted(level) if isinstance(level, str) else self.form.number(float(level))

    def quoted(self, text: str) -> str:
        """A text between quotes; in Postgres a backslash is one whatever the server is set to."""
        doubled = text.replace("'", "''")
        if self.dialect == "postgres" and "\\" in text:
            return "E'" + doubled.replace("\\", "\\\\") + "'"
        return f"'{doubled}'"

    # ------------------------------------------------------------------ several trees

    def joined(self, query: str) -> tuple[str, list[str]]:
        """Subqueries that join several trees, and the columns of the answer."""
        content, classes = self.content, self.content.classes
        assert classes is not None
        numbers = range(len(classes))
        score = self.votes if content.way == "votes" else self.score
        columns = [f"{score(k)} AS score_{k}" for k in numbers]
        columns += [f"{self.share(k)} AS share_{k}" for k in numbers]
        query = self.below(self.select(self.kept(columns), query))
        total = " + ".join(f"share_{k}" for k in numbers)
        divided = total if content.way != "votes" else self.form.number(float(len(content.trees)))
        best = [" AND ".join(f"score_{k} >= score_{other}" for other in numbers if other > k) for k in numbers]
        known = "score_0 IS NULL"
        cases = " ".join(f"WHEN {best[k]} THEN {k}" for k in numbers if best[k])
        number = f"CASE WHEN {known} THEN NULL {cases} ELSE {len(classes) - 1} END"
        columns = [f"{number} AS best", *(f"share_{k} / ({divided}) AS share_{k}" for k in numbers)]
        query = self.below(self.select(self.kept(columns), query))
        if content.agree:
            query = self.agreed(query)
        labels = " ".join(f"WHEN {k} THEN {self.literal(label)}" for k, label in enumerate(classes))
        return query, [f"CASE best {labels} END", *(f"share_{k}" for k in numbers)]

    def votes(self, k: int) -> str:
        """Trees that vote for a class."""
        trees = range(len(self.content.trees))
        return " + ".join(self.table_by_leaf(t, (self.content.labels[t] == k).astype(np.float64)) for t in trees)

    def share(self, k: int) -> str:
        """Probability of a class: the sum over a committee, or of the tree of the class."""
        content = self.content
        trees = range(len(content.trees)) if content.way == "votes" else [k]
        return " + ".join(self.table_by_leaf(t, content.shares[t][:, k]) for t in trees)

    def score(self, k: int) -> str:
        """Value of the tree of a class."""
        shares = self.content.trees[k].shares()[:, k]

        def told(leaf: int) -> str:
            score, said = self.content.score(k, leaf)
            text = self.sum(score) if isinstance(score, Sum) else self.form.number(score)
            if isinstance(score, Sum) and self.content.cut(k, leaf):
                text = f"CASE WHEN ({text}) * {said} < 0 THEN {self.form.number(said)} ELSE {text} END"
            return f"{text} + {self.form.number(SHARE)} * {self.form.number(float(shares[leaf]))}"

        return self.by_leaf(k, told)

    def agreed(self, query: str) -> str:
        """Probabilities of which the predicted class has the largest."""
        n = self.content.n_outputs
        own = " ".join(f"WHEN {k} THEN share_{k}" for k in range(n))
        shares = [f"share_{k}" for k in range(n)]
        query = self.below(self.select(self.kept(["best", *shares, f"CASE best {own} END AS own"]), query))
        above = " + ".join(f"CASE WHEN {share} >= own THEN {share} ELSE 0 END" for share in shares)
        count = " + ".join(f"CASE WHEN {share} >= own THEN 1 ELSE 0 END" for share in shares)
        columns = ["best", "own", *shares, f"({above}) / ({count}) AS mean", f"{count} AS n_joined"]
        query = self.below(self.select(self.kept(columns), query))
        less, nudge = self.form.number(1.0 - AGREED), self.form.number(AGREED)
        columns = ["best"]
        for k, share in enumerate(shares):
            tied = f"(CASE WHEN {share} >= own THEN mean ELSE {share} END) * {less}"
            told = f"{tied} + CASE WHEN best = {k} THEN {nudge} ELSE 0 END"
            columns.append(f"CASE WHEN n_joined > 1 THEN {told} ELSE {share} END AS {share}")
        return self.below(self.select(self.kept(columns), query))
