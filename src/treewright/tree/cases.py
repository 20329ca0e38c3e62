"""Splits with flags as people say them: one threshold for each case, or plain logic where there are flags alone.

"age - 50*(region is east) <= 48.5" is "age <= 48.5 (98.5 where region is east)", and "(region is east) + (kind is b) <=
0.5" is "region is not east and kind is not b". Both are the same rule for every row there can be: of the flags of a
column one holds at most, all others are free.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.tree.number_text import MAX_PRECISION, format_number
from treewright.tree.routing import side
from treewright.tree.structure import LEAF, Tree
from treewright.tree.sums import NOTHING, WrittenSplit, divide, written_split
from treewright.tree.words import DateWords, FeatureWords, FlagWords

__all__ = ["CasedSplit", "Logic", "cased_split", "flag_logic"]

_MOST_CASES = 64
"""Cases of flags that are looked at; with more of them a sum is shorter than what could be said."""

_Groups = list[list[int]]
"""Flags by their columns."""


def _grouped(flags: Sequence[int], words: Mapping[int, FeatureWords]) -> _Groups:
    """Flags of the same column together: at most one of them holds."""
    groups = dict[object, list[int]]()
    for j in flags:
        own = words[j]
        assert isinstance(own, FlagWords)
        groups.setdefault(own.column or j, []).append(j)
    return list(groups.values())


def _sides(tree: Tree, node: int, groups: _Groups, row: FloatArray) -> BoolArray:
    """Where the tree itself sends a row with each case of the flags; an axis a group, "none of them" first."""
    shape = [len(group) + 1 for group in groups]
    rows = np.repeat(row[None], int(np.prod(shape)), axis=0)
    for i, states in enumerate(itertools.product(*map(range, shape))):
        for group, state in zip(groups, states, strict=True):
            if state:
                rows[i, group[state - 1]] = 1.0
    return side(tree, rows, node).reshape(shape)


# ---------------------------------------------------------------------- flags alone


class Logic(NamedTuple):
    """A split of flags alone in words.

    Attributes
    ----------
    condition, contrary : str
        What holds at the left, and at the right; empty where the split sends all rows one way.
    constant : bool or None
        Whether all rows go left, or none does; None if some do.
    alternatives : tuple of bool
        Whether the two are alternatives, joined by "or".
    """

    condition: str
    contrary: str
    constant: bool | None = None
    alternatives: tuple[bool, bool] = (False, False)


class _Said(NamedTuple):
    text: str
    joined: str = ""
    """"and", "or" or "of" where it is more than one condition."""


def flag_logic(tree: Tree, node: int, words: Mapping[int, FeatureWords] | None) -> Logic | None:
    """The words of a tree's split that has nothing but flags; None with other features, or too many cases to say.

    Examples
    --------
    >>> words = {j: FlagWords(f"{name} is yes", f"{name} is no") for j, name in enumerate("abc")}
    >>> flag_logic(Tree.stump([1.0, 1.0, 0.0], 0.5, np.eye(2)), 0, words)[:2]
    ('a is no and b is no', 'a is yes or b is yes')
    >>> flag_logic(Tree.stump([-2.0, -1.0, -1.0], -1.5, np.eye(2)), 0, words)[0]
    'a is yes or (b is yes and c is yes)'
    >>> flag_logic(Tree.stump([1.0, 1.0, 0.0], 2.0, np.eye(2)), 0, words).constant
    True
    """
    used = np.flatnonzero(tree.weights[node]).tolist()
    if not words or not used or not all(isinstance(words.get(j), FlagWords) for j in used):
        return None
    groups = _grouped(used, words)
    if int(np.prod([len(group) + 1 for group in groups])) > _MOST_CASES:
        return None
    table = _sides(tree, node, groups, np.zeros(tree.n_features))
    if table.all() or not table.any():
        return Logic("", "", bool(table.all()))
    flags = [[words[j] for j in group] for group in groups]
    condition, contrary = _told(table, flags), _told(~table, flags)
    if condition is None or contrary is None:
        return None
    # levels of one column, "race is Black or White", are read as one condition
    several = len([group for axis, group in enumerate(groups) if np.ptp(table.astype(int), axis=axis).any()]) > 1
    either = several and condition.joined in ("or", "of"), several and contrary.joined in ("or", "of")
    return Logic(condition.text, contrary.text, None, either)


def _told(table: BoolArray, groups: Sequence[Sequence[FeatureWords]]) -> _Said | None:
    """The shortest words for a table of cases that differ; None where there are none here."""
    for axis in range(table.ndim):  # a group that makes no difference
        parts = np.moveaxis(table, axis, 0)
        if (parts == parts[0]).all():
            return _told(parts[0], [*groups[:axis], *groups[axis + 1 :]])
    if table.ndim == 1:
        return _literal(groups[0], np.flatnonzero(table).tolist())
    found = [said for axis in range(table.ndim) if (said := _told_from(table, groups, axis)) is not None]
    if not found and table.shape == (2, 2, 2):
        return _two_of_three(table, groups)
    return min(found, key=lambda said: len(said.text), default=None)


def _told_from(table: BoolArray, groups: Sequence[Sequence[FeatureWords]], axis: int) -> _Said | None:
    """Words that begin with one group: it decides alone, or leaves it to the others, always in the same way."""
    parts = list(np.moveaxis(table, axis, 0))
    sure = [state for state, part in enumerate(parts) if part.all()]
    open_ = [state for state, part in enumerate(parts) if part.any() and not part.all()]
    if not open_ or any(not np.array_equal(parts[state], parts[open_[0]]) for state in open_):
        return None
    rest = _told(parts[open_[0]], [*groups[:axis], *groups[axis + 1 :]])
    if rest is None:
        return None
    own = groups[axis]
    if not sure:
        return _joined("and", _literal(own, open_), rest)
    if len(sure) + len(open_) < len(parts):
        rest = _joined("and", _literal(own, open_), rest)
    return _joined("or", _literal(own, sure), rest)


def _two_of_three(table: BoolArray, groups: Sequence[Sequence[FeatureWords]]) -> _Said | None:
    """Words for two of three conditions or more; what is left of three flags where no one of them decides alone."""
    for states in itertools.product((0, 1), repeat=3):
        holds = [np.arange(2).reshape(np.where(np.arange(3) == a, 2, 1)) == s for a, s in enumerate(states)]
        if np.array_equal(holds[0] * 1 + holds[1] + holds[2] >= 2, table):
            texts = [_literal(group, [s]).text for group, s in zip(groups, states, strict=True)]
            return _Said(f"at least two of these hold: {'; '.join(texts)}", "of")
    return None


def _joined(word: str, one: _Said, other: _Said) -> _Said:
    texts = [said.text if said.joined in ("", word) else f"({said.text})" for said in (one, other)]
    return _Said(f" {word} ".join(texts), word)


def _literal(flags: Sequence[FeatureWords], states: Sequence[int]) -> _Said:
    """Words for some of the cases of a column: none of its flags (0), or one of them."""
    if 0 not in states:
        return _one_of([flags[state - 1] for state in states])
    others = [flag for state, flag in enumerate(flags, start=1) if state not in states]
    names = [_level(flag) for flag in others]
    if len(others) > 1 and all(names):
        assert isinstance(others[0], FlagWords)
        return _Said(f"{others[0].column} is neither {', '.join(names[:-1])} nor {names[-1]}")
    texts = [flag.no for flag in others if isinstance(flag, FlagWords)]
    return _Said(" and ".join(texts), "and" if len(texts) > 1 else "")


def _one_of(flags: Sequence[FeatureWords]) -> _Said:
    names = [_level(flag) for flag in flags]
    assert isinstance(flags[0], FlagWords)
    if len(flags) > 1 and all(names):
        return _Said(f"{flags[0].column} is {', '.join(names[:-1])} or {names[-1]}", "or")
    texts = [flag.yes for flag in flags if isinstance(flag, FlagWords)]
    return _Said(" or ".join(texts), "or" if len(texts) > 1 else "")


def _level(flag: FeatureWords) -> str:
    """What a column is where its flag holds; empty where that is not known."""
    start = f"{flag.column} is " if isinstance(flag, FlagWords) and flag.column else ""
    return flag.yes.removeprefix(start) if isinstance(flag, FlagWords) and start and flag.yes.startswith(start) else ""


# ---------------------------------------------------------------------- flags beside numbers


@dataclass(frozen=True, eq=False)
class CasedSplit:
    """A sum of numbers and dates, and what it is compared with in each case of the flags.

    Attributes
    ----------
    split : WrittenSplit
        The sum, and the threshold where no flag holds.
    groups : list of lists of int
        Flags by their columns.
    shifts : dict of int to float
        What is added to the threshold where a flag holds.
    words : mapping of int to FeatureWords
        Words of the features.
    gap : tuple of int and bool, or None
        The flag that says that the only number is missing, and whether the rule holds there.
    """

    split: WrittenSplit
    groups: _Groups
    shifts: dict[int, float]
    words: Mapping[int, FeatureWords]
    gap: tuple[int, bool] | None = None

    @property
    def date(self) -> DateWords | None:
        """The only term, if it is a date and compared with dates, not in years."""
        own = self.words.get(int(self.split.features[0])) if len(self.split.features) == 1 else None
        return own if isinstance(own, DateWords) and self.split.unit[0] == 1.0 else None

    @property
    def lists(self) -> bool:
        """Whether each case has a threshold of its own, and flags do not just add to it."""
        return len(self.groups) <= 1 or [len(group) for group in self.groups] == [1, 1]

    def cases(self) -> list[tuple[list[int], float]]:
        """Flags that hold, and the threshold: first none of them, then one, then both of two."""
        alone = [[j] for group in self.groups for j in group]
        both = [[j for group in self.groups for j in group]] if len(self.groups) == 2 else []
        return [
            (flags, self.split.threshold + sum(self.shifts[j] for j in flags))
            for flags in ([], *alone, *(both if self.lists else []))
        ]

    def texts(self, digits: int) -> list[tuple[list[int], str]]:
        """The same with thresholds as they are written."""
        return [(flags, format_number(at, digits, keep_fraction=True)) for flags, at in self.cases()]

    def holds(self, X: FloatArray, digits: int) -> BoolArray:
        """Where the rule holds that is written with so many significant digits; where NaN is does not count."""
        texts = self.texts(digits)
        at = np.full(len(X), float(texts[0][1]))
        if self.lists:
            for flags, text in texts[1:]:
                at[(X[:, flags] == 1.0).all(axis=1)] = float(text)
        else:
            for j, shift in self.shifts.items():
                at += X[:, j] * float(np.sign(shift)) * float(format_number(abs(shift), digits))
        sums = self.split.sums(X, digits)
        found = np.asarray(sums <= at if self.split.up_to else sums >= at)
        return found if self.gap is None else np.where(X[:, self.gap[0]] == 1.0, self.gap[1], found)

    def sure(self, X: FloatArray) -> list[int]:
        """Cases in which the rule holds (1) or not (-1) whatever sum any of the rows has; 0 for others."""
        sums = self.split.sums(X, MAX_PRECISION)
        sums = sums[np.isfinite(sums)]
        if not self.lists or not len(sums):
            return [0] * len(self.cases())
        low, high = float(sums.min()), float(sums.max())
        if not self.split.up_to:
            low, high = -high, -low
        sign = 1.0 if self.split.up_to else -1.0
        return [1 if high <= sign * at else -1 if low > sign * at else 0 for _, at in self.cases()]

    def settled(self, told: Sequence[str], digits: int, sure: Sequence[int]) -> tuple[list[str], list[str]] | None:
        """The rule and its contrary where the sum matters in some cases alone; None where that is not said better.

        Examples
        --------
        >>> words = {1: FlagWords("sector is A", "sector is not A")}
        >>> cased = cased_split(Tree.stump([-1.0, 200.0], 164.6, np.eye(2)), 0, np.array([0, 1]), words)
        >>> " ".join(cased.pieces(["employees"], 4))
        'employees >= -164.6 (35.4 where sector is A)'
        >>> [" ".join(pieces) for pieces in cased.settled(["employees"], 4, [1, 0])]
        ['employees >= 35.4 or sector is not A', 'employees < 35.4 and sector is A']
        """
        texts, date = self.texts(digits), self.date
        if not self.lists or not any(sure) or len(sure) != len(texts):
            return None
        shape = tuple(len(group) + 1 for group in self.groups)
        # cases are none, one flag, both; as a table "both" is in the corner
        order = [0, 2, 1, 3] if shape == (2, 2) else range(len(texts))
        table = np.array([sure[i] for i in order]).reshape(shape)
        flags = [[self.words[j] for j in group] for group in self.groups]
        open_ = [text for text, state in zip(texts, sure, strict=True) if not state]
        if not open_ and len(set(sure)) > 1:
            both = [_told(table == sign, flags) for sign in (1, -1)]
            if both[0] is None or both[1] is None:
                return None
            return self._beside_gap(both[0], False), self._beside_gap(both[1], True)
        if date is not None or not open_ or len({text for _, text in open_}) > 1:
            return None
        said = []
        for sign, turned in ((1, False), (-1, True)):
            signs = (" <= ", " > ") if self.split.up_to else (" >= ", " < ")
            rule = _Said(" ".join([*told[:-1], f"{told[-1]}{signs[turned]}{open_[0][1]}"]))
            holds, matters = table == sign, table == 0
            if (holds | matters).all():
                only = None
            else:
                only = _told(matters, flags)
                if only is None:
                    return None
                rule = _joined("and", rule, only)
            if holds.any():
                always = _told(holds, flags)
                if always is None:
                    return None
                rule = _joined("or", rule, always)
            said.append(self._beside_gap(rule, turned))
        return said[0], said[1]

    def _beside_gap(self, rule: _Said, contrary: bool) -> list[str]:
        """With what becomes of rows that lack the number, in pieces."""
        if self.gap is not None:
            flag = self.words[self.gap[0]]
            assert isinstance(flag, FlagWords)
            holds = self.gap[1] != contrary
            rule = _joined("or" if holds else "and", rule, _Said(flag.yes if holds else flag.no))
        return [rule.text]

    def pieces(self, told: Sequence[str], digits: int, contrary: bool = False) -> list[str] | None:
        """The rule in pieces, or the contrary; None where a threshold is no date. `told` are the terms of the sum."""
        date = self.date
        if date is not None:
            pieces = self._date_pieces(date, contrary)
            if pieces is None:
                return None
        else:
            signs = (" <= ", " > ") if self.split.up_to else (" >= ", " < ")
            texts = self.texts(digits)
            pieces = [*told[:-1], f"{told[-1]}{signs[contrary]}{texts[0][1]}"]
            pieces += _bracketed(self._listed(texts) if self.lists else self._added(digits))
        if self.gap is None:
            return pieces
        flag = self.words[self.gap[0]]
        assert isinstance(flag, FlagWords)
        return [*pieces, f"or {flag.yes}"] if self.gap[1] != contrary else [f"{flag.no} and", *pieces]

    def _date_pieces(self, date: DateWords, contrary: bool) -> list[str] | None:
        shown = [(flags, date.bounds(at, self.split.up_to)) for flags, at in self.cases()]
        texts = [(flags, bounds[contrary]) for flags, bounds in shown if bounds is not None]
        condition = date.sides(self.split.threshold, self.split.up_to)
        if len(texts) < len(shown) or condition is None:
            return None
        return [condition[contrary], *_bracketed(self._listed(texts))]

    def _listed(self, texts: list[tuple[list[int], str]]) -> list[str]:
        """Cases with their thresholds, levels of a column with the same one together."""
        base, found = texts[0][1], dict[str, list[int]]()
        if len(self.groups) < 2:
            for flags, text in texts[1:]:
                found.setdefault(text, []).append(flags[0])
            return [f"{text} where {self._yes(*flags)}" for text, flags in found.items() if text != base]
        told = [f"{text} where {self._yes(*flags)}" for flags, text in texts[1:-1]]
        return [*told, f"{texts[-1][1]} where both"]

    def _added(self, digits: int) -> list[str]:
        """What each flag adds to the threshold."""
        return [
            f"{format_number(abs(shift), digits)} {'more' if shift > 0 else 'less'} where {self._yes(j)}"
            for j, shift in self.shifts.items()
        ]

    def _yes(self, *flags: int) -> str:
        """What holds where one of these flags of a column does."""
        return _one_of([self.words[j] for j in flags]).text


def _bracketed(told: list[str]) -> list[str]:
    pieces = [f"{one}," for one in told[:-1]] + told[-1:]
    return [f"{'(' * (i == 0)}{piece}{')' * (i == len(pieces) - 1)}" for i, piece in enumerate(pieces)]


def cased_split(tree: Tree, node: int, used: IntArray, words: Mapping[int, FeatureWords] | None) -> CasedSplit | None:
    """Rule in words for a tree's split of numbers and flags, by cases; None without both, or with hardly any number.

    Examples
    --------
    >>> words = {1: FlagWords("region is east", "region is not east")}
    >>> cased = cased_split(Tree.stump([1.0, -50.0], 48.5, np.eye(2)), 0, np.array([0, 1]), words)
    >>> " ".join(cased.pieces(["age"], 4))
    'age <= 48.5 (98.5 where region is east)'
    """
    words = words or {}
    flags = [j for j in used.tolist() if isinstance(words.get(j), FlagWords)]
    terms = np.array([j for j in used.tolist() if j not in flags], dtype=np.int64)
    if tree.left[node] == LEAF or not flags or not len(terms):
        return None
    gap = _gap(tree, node, terms, flags, words)
    shown = [j for j in flags if gap is None or j != gap[0]]
    for alone in (True, False):  # a date where there are dates for all cases, else years
        split, weights = written_split(tree, node, terms, words, alone), tree.weights[node]
        if np.abs(weights[terms] * split.unit).max() < NOTHING * np.abs(weights[flags]).max():
            return None
        shifts = {j: -divide(float(weights[j]), split.scale) for j in shown}
        found = CasedSplit(split, _grouped(shown, words), shifts, words, gap)
        if not np.isfinite([at for _, at in found.cases()]).all():
            return None
        if found.date is None or (found.lists and found.pieces([], 1) is not None):
            break
    return found


def _gap(
    tree: Tree, node: int, terms: IntArray, flags: Sequence[int], words: Mapping[int, FeatureWords]
) -> tuple[int, bool] | None:
    """The flag that says that the only number is missing, if the rule is the same wherever it is."""
    own = [j for j in flags for flag in [words[j]] if isinstance(flag, FlagWords) and flag.filled is not None]
    for j in own:
        flag = words[j]
        assert isinstance(flag, FlagWords) and flag.filled is not None
        if terms.tolist() != [flag.filled[0]]:
            continue
        row = np.zeros(tree.n_features)
        row[[j, flag.filled[0]]] = 1.0, flag.filled[1]
        others = _grouped([i for i in flags if i != j], words)
        if int(np.prod([len(group) + 1 for group in others])) > _MOST_CASES:
            return None
        goes = _sides(tree, node, others, row)
        if goes.all() or not goes.any():
            return j, bool(goes.all())
    return None
