"""Conditions of splits as people read them, in one line or in pieces between which lines may be broken."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from operator import index

import numpy as np

from treewright.core.arrays import BoolArray, IntArray
from treewright.core.names import printable, quoted
from treewright.tree.cases import CasedSplit, cased_split, flag_logic
from treewright.tree.level_groups import folded_tree
from treewright.tree.number_text import format_number, threshold_digits
from treewright.tree.structure import BEYOND, LEAF, Tree
from treewright.tree.sums import WrittenSplit, divide, written_split
from treewright.tree.words import DateWords, FeatureWords, FlagWords

__all__ = ["ConditionWriter", "constant_side", "names_in_lines", "unlike_words"]


class ConditionWriter:
    """Writes the conditions of a tree; see :func:`treewright.tree.export_text` for what it is given."""

    def __init__(
        self,
        tree: Tree,
        feature_names: Sequence[str] | None,
        category_names: Mapping[int | str, Sequence[object]] | None,
        precision: int,
        show_missing: BoolArray,
        words: Mapping[int, FeatureWords] | None = None,
        digits: Mapping[int, int] | None = None,
        sure: Mapping[int, Sequence[int]] | None = None,
    ) -> None:
        self._told_digits, self._sure = digits or {}, sure or {}
        self._features = names_in_lines(feature_names, "feature_names", tree.n_features, "features", "x{}")
        found = folded_tree(tree, words)
        tree, words = found.tree, found.words
        self._tree, self._words = tree, words
        self._features += [f"group {j}" for j in range(len(found.groups))]  # which have words
        show_missing = np.append(show_missing, np.zeros(len(found.groups), dtype=bool))
        self._levels = self._level_names(category_names or {}, feature_names)
        self._precision = precision
        self._digits = threshold_digits(tree, precision)
        self._show_missing = show_missing

    def pieces(self, node: int) -> list[str]:
        """The condition of a split, in pieces between which lines may be broken."""
        used = np.flatnonzero(self._tree.weights[node])
        constant = constant_side(self._tree, node, self._words)
        if constant is not None:
            return ["always" if constant else "never"]
        if _parts_gaps(self._tree, node, used):
            known = "known" if self._tree.threshold[node] > 0 else "missing"
            return [f"{self._features[int(used[0])]} is {known}"]
        if self._tree.category[node] >= 0:
            pieces = self._category_pieces(node)
        elif len(used) == 1:
            pieces = [self._axis_text(node, int(used[0]))]
        else:
            pieces = self._oblique_pieces(node, used)[0]
        matters = used if self._tree.category[node] < 0 else self._tree.category[node : node + 1]
        if np.any(self._show_missing[matters]) and self._tree.missing_left[node]:
            if self._tree.category[node] >= 0 and not self._tree.left_categories[node].any():
                pieces = [f"{self._features[self._tree.category[node]]} is missing"]
            else:
                listed = self._words is not None and np.count_nonzero(self._tree.left_categories[node]) > 1
                pieces = [*pieces[:-1], f"{pieces[-1]}{',' if listed else ''}", "or missing"]
        return pieces

    def sides(self, node: int) -> tuple[str, str]:
        """The condition of a hyperplane, and its contrary, each in a line; of a constant one nothing, and "never"."""
        constant, used = constant_side(self._tree, node, self._words), np.flatnonzero(self._tree.weights[node])
        if constant is not None:
            return ("", "never") if constant else ("never", "")
        if len(used) > 1:
            condition, contrary = self._oblique_pieces(node, used)
            return " ".join(condition), " ".join(contrary)
        told = self._told(node, int(used[0]))
        return (text := self._axis_text(node, int(used[0])), _contrary(text)) if told is None else told

    def alternatives(self, node: int) -> tuple[bool, bool]:
        """Whether the condition of a hyperplane, and its contrary, are alternatives joined by "or"."""
        logic = flag_logic(self._tree, node, self._words)
        if logic is not None:
            return logic.alternatives
        cased = cased_split(self._tree, node, np.flatnonzero(self._tree.weights[node]), self._words)
        return (False, False) if cased is None or cased.gap is None else (cased.gap[1], not cased.gap[1])

    def _told(self, node: int, feature: int) -> tuple[str, str] | None:
        """The condition of one feature in words, and its contrary; None where there are no words for it."""
        own = self._words.get(feature) if self._words else None
        weight, threshold = float(self._tree.weights[node, feature]), float(self._tree.threshold[node])
        told = None if own is None else own.sides(divide(threshold, weight), up_to=weight > 0)
        return None if told is None else (printable(told[0]), printable(told[1]))

    def _axis_text(self, node: int, feature: int) -> str:
        weight, threshold = float(self._tree.weights[node, feature]), float(self._tree.threshold[node])
        name = self._features[feature]
        at = divide(threshold, weight)
        if not math.isfinite(at):  # only as a fraction of extremes
            return f"{weight!r}*{name} <= {threshold!r}"
        told = self._told(node, feature)
        if told is not None:
            return told[0]
        sign = "<=" if weight > 0 else ">="
        digits = max(self._digits[feature], self._node_digits(node))
        return f"{name} {sign} {format_number(at, digits, keep_fraction=True)}"

    def _oblique_pieces(self, node: int, used: IntArray) -> tuple[list[str], list[str]]:
        """A sum and what it is compared with, and the contrary; flags are told as logic, or by cases."""
        digits, logic = self._node_digits(node), flag_logic(self._tree, node, self._words)
        if logic is not None:
            return [printable(logic.condition)], [printable(logic.contrary)]
        cased = cased_split(self._tree, node, used, self._words)
        if cased is not None:
            return self._cased_pieces(cased, digits, self._sure.get(node, ()))
        split = written_split(self._tree, node, used, self._words)
        pieces = self._terms(split, digits)
        pieces[-1] += f" {'<=' if split.up_to else '>='} {format_number(split.threshold, digits, keep_fraction=True)}"
        return pieces, [*pieces[:-1], _contrary(pieces[-1])]

    def _cased_pieces(self, cased: CasedSplit, digits: int, sure: Sequence[int]) -> tuple[list[str], list[str]]:
        terms = self._terms(cased.split, digits)
        settled = cased.settled(terms, digits, sure)
        if settled is not None:
            return [printable(piece) for piece in settled[0]], [printable(piece) for piece in settled[1]]
        condition, contrary = (cased.pieces(terms, digits, turned) for turned in (False, True))
        assert condition is not None and contrary is not None
        return [printable(piece) for piece in condition], [printable(piece) for piece in contrary]

    def _terms(self, split: WrittenSplit, digits: int) -> list[str]:
        """What is added comes first: "0.14*income - education" is read more easily than "-education + 0.14*income"."""
        shown, used = split.coefficients, split.features
        order = sorted(range(len(used)), key=lambda i: (shown[i] < 0, -split.kinds[i], -abs(shown[i]), used[i]))
        return [self.term(int(used[i]), float(shown[i]), digits, first=place == 0) for place, i in enumerate(order)]

    def _node_digits(self, node: int) -> int:
        return max(self._precision, self._told_digits.get(node, 0))

    def term(self, feature: int, coefficient: float, digits: int, first: bool = False) -> str:
        """Summand of a formula: a feature and its factor, with the sign between it and what comes before."""
        sign = "-" if coefficient < 0 else "+"
        number = format_number(abs(coefficient), digits)
        name = self._features[feature]
        if self._words and feature in self._words:
            name = printable(self._words[feature].term)
        term = name if number == "1" else f"{number}*{name}"
        if first:
            return f"-{term}" if sign == "-" else term
        return f"{sign} {term}"

    def _category_pieces(self, node: int) -> list[str]:
        feature = int(self._tree.category[node])
        codes = np.flatnonzero(self._tree.left_categories[node]).tolist()
        names = self._levels.get(feature)
        if names is not None and codes and codes[-1] >= len(names):
            raise ValueError(
                f"category_names has {len(names)} levels for feature {self._features[feature]!r}, "
                f"the tree has a split with code {codes[-1]}"
            )
        levels = [str(code) if names is None else names[code] for code in codes]
        if self._words is not None and levels:
            last = [f"or {levels[-1]}"] if len(levels) > 1 else levels
            pieces = [*(f"{level}," for level in levels[:-2]), *levels[-2:-1], *last]
            return [f"{self._features[feature]} is {pieces[0]}", *pieces[1:]]
        pieces = [f"{level}," for level in levels[:-1]] + levels[-1:]
        pieces = pieces or [""]
        pieces[0] = f"{self._features[feature]} in {{{pieces[0]}"
        pieces[-1] += "}"
        return pieces

    def _level_names(
        self, given: Mapping[int | str, Sequence[object]], feature_names: Sequence[str] | None
    ) -> dict[int, list[str]]:
        known = {name: j for j, name in enumerate(feature_names if feature_names is not None else self._features)}
        found = {}
        for key, names in given.items():
            feature = known.get(key, -1) if isinstance(key, str) else index(key)
            if not 0 <= feature < self._tree.n_features:
                raise ValueError(f"category_names names feature {key!r}, which the tree does not have")
            found[feature] = [quoted(name) for name in names]
        return found


def _contrary(text: str) -> str:
    for sign, other in ((" <= ", " > "), (" >= ", " < ")):
        if sign in text:
            start, _, end = text.rpartition(sign)
            return start + other + end
    raise AssertionError(f"no comparison in {text!r}")


def constant_side(tree: Tree, node: int, words: Mapping[int, FeatureWords] | None = None) -> bool | None:
    """Whether a written split of a tree sends every row left, or every row right (False); None if it parts them.

    It has no feature, or flags alone that make no difference.

    Examples
    --------
    >>> constant_side(Tree.stump([1.0], 1.5, np.eye(2)), 0, {0: FlagWords("area is rural", "area is urban")})
    True
    """
    if tree.left[node] == LEAF or tree.category[node] >= 0:
        return None
    if not tree.weights[node].any():
        return bool(tree.threshold[node] >= 0)
    logic = flag_logic(tree, node, words)
    return None if logic is None else logic.constant


def unlike_words(tree: Tree, words: Mapping[int, FeatureWords] | None) -> tuple[FlagWords | None, DateWords | None]:
    """A flag and a date that stand as numbers in a sum of a tree's rules, if any: a reader is told how."""
    flag, date = None, None
    found = folded_tree(tree, words)
    tree, words = found.tree, found.words
    for node in np.flatnonzero(np.count_nonzero(tree.weights, axis=1) > 1).tolist() if words else []:
        used, cased = np.flatnonzero(tree.weights[node]), None
        if flag_logic(tree, node, words) is not None:
            continue
        cased = cased_split(tree, node, used, words)
        terms = used if cased is None else cased.split.features
        assert words is not None
        shown = [words[j] for j in terms.tolist() if j in words] if cased is None or cased.date is None else []
        flag = flag or next((one for one in shown if isinstance(one, FlagWords)), None)
        date = date or next((one for one in shown if isinstance(one, DateWords)), None)
    return flag, date


def names_in_lines(
    given: Sequence[object] | None,
    parameter: str,
    n: int,
    what: str,
    default: str,
    text: Callable[[object], str] = printable,
) -> list[str]:
    """One line of text for each feature or class that rules of a tree name, no two alike."""
    if given is None:
        return [default.format(j) for j in range(n)]
    if isinstance(given, str) or len(given) != n:
        count = "is one string" if isinstance(given, str) else f"has {len(given)} names"
        raise ValueError(f"{parameter} {count}, the tree has {n} {what}")
    names = [text(name) for name in given]
    times = Counter(names)
    return [f"{name} ({default.format(j)})" if times[name] > 1 else name for j, name in enumerate(names)]


def _parts_gaps(tree: Tree, node: int, used: IntArray) -> bool:
    """Whether a split parts the points that lack a value from all others."""
    if len(used) != 1 or tree.category[node] >= 0:
        return False
    threshold, beyond = float(tree.threshold[node]), BEYOND * abs(float(tree.weights[node, used[0]]))
    return 0.99 * beyond <= abs(threshold) <= 1.01 * beyond and bool(tree.missing_left[node]) == (threshold < 0)
