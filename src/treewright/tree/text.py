"""A tree as rules that people read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray
from treewright.core.names import printable, quoted
from treewright.tree.conditions import ConditionWriter, constant_side, names_in_lines
from treewright.tree.level_groups import folded_tree
from treewright.tree.number_text import MAX_PRECISION, NOISE, format_number
from treewright.tree.structure import LEAF, Tree
from treewright.tree.words import FeatureWords

__all__ = ["export_text", "path_texts", "format_number", "read_children", "read_nodes", "split_pieces"]

_INDENT = "    "

_WORTH, _MOST_LIKELY = 0.005, 4
"""Least probability of a class that rules mention, and how many they mention at most."""


def export_text(
    tree: Tree,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[object] | None = None,
    category_names: Mapping[int | str, Sequence[object]] | None = None,
    precision: int = 4,
    max_depth: int | None = None,
    show_missing: bool | Sequence[bool] | BoolArray = False,
    width: int = 100,
    leaf_texts: Mapping[int, str] | None = None,
    words: Mapping[int, FeatureWords] | None = None,
    number_leaves: bool = False,
    digits: Mapping[int, int] | None = None,
    leaf_rows: Sequence[float] | FloatArray | None = None,
    weighted: bool | None = None,
    leaf_labelled: Sequence[float] | FloatArray | None = None,
    sure: Mapping[int, Sequence[int]] | None = None,
) -> str:
    """Write a tree as nested rules, in the units of the tree.

    A split on one feature is divided by its weight, so that it reads ``feature <= t`` or ``feature >= t``. A
    split on several is divided by its largest absolute weight, of numbers if there are flags and dates beside them;
    what is added comes before what is subtracted, numbers before dates. Flags are told by cases, or as logic if there
    is nothing else. A split that sends every point one way is left out, with all that no point can reach. A leaf says
    how likely its classes are for other rows, if the tree knows, and what was seen in training. A linear leaf is
    written as its formula, without the features that have no slope, one line an output.

    Parameters
    ----------
    tree : Tree
        The tree.
    feature_names : sequence of str or None
        One name a feature, by default x0, x1, ...
    class_names : sequence or None
        One name a class, by default "class 0", "class 1", ...
    category_names : mapping or None
        Names of the levels of a categorical feature, code by code. A key is the feature's number or name.
    precision : int, default=4
        Significant digits, from 1 to 17. Digits before the decimal point are always shown, and a threshold
        gets more digits where fewer would make it a whole number that it is not, or the same as another
        threshold of its feature.
    max_depth : int or None
        What lies deeper is only counted.
    show_missing : bool or sequence of bool, default=False
        Whether to say where points go whose value is missing, or of which features: "or missing" is written where they
        go left, "is missing" where they do so alone and "is known" where all others do; elsewhere they go to the
        else. So do levels that a rule does not list.
    width : int, default=100
        A condition or formula that is longer is broken into lines.
    leaf_texts : mapping of int to str, or None
        What to write for leaves, by their node numbers, instead of class and points.
    words : mapping of int to FeatureWords, or None
        Words for features that are flags or dates, by their numbers: "race is not White" instead of
        ``race=White <= 0.5``. If given, even empty, levels of categories are in words too: "race is Black or White".
        A split of numbers and flags has a threshold for each case: "age <= 48.5 (98.5 where race is White)". In a sum a
        date counts in years, and a flag, where flags alone are too many for words, 1 where it holds.
    number_leaves : bool, default=False
        Whether leaves without a text of their own begin with their node numbers: "leaf 3: no".
    digits : mapping of int to int, or None
        Significant digits of splits that need more of them than `precision`, by their node numbers: see
        :func:`telling_digits`, with which the rules say of some rows what the tree says.
    leaf_rows : sequence of float or None
        How many rows are in each leaf, by number of the node, where values do not tell: those of a regression tree are
        its predictions. By default sums of the values of classes, and none for a regression tree.
    weighted : bool or None
        Whether values of classes are sums of weights, which are then told as such and not as rows. By default they are
        where they are no whole numbers.
    leaf_labelled : sequence of float or None
        How many of `leaf_rows` have a label of their own, where values tell of others too: "139 rows, 10 labelled".
    sure : mapping of int to sequence of int, or None
        Cases in which splits of numbers and flags let no row of a table fail, or none pass, by their node numbers: see
        :func:`sure_cases`, with which "employees >= -164.6 (35.4 where sector is A)" is "employees >= 35.4 or sector is
        not A".

    Returns
    -------
    str
        The rules, without a line end at the end.

    Examples
    --------
    >>> tree = Tree.stump(weights=[-2.0, 0.0], threshold=3.0, values=[[48.0, 1.0], [0.0, 12.0]])
    >>> print(export_text(tree, feature_names=["age", "income"], class_names=["no", "yes"]))
    if age >= -1.5:
        no  (49 rows: 98% no, 2% yes)
    else:
        yes  (12 rows: 100% yes)

    Linear leaves:

    >>> line = tree.with_leaves([[0.0], [1.5], [4.0]], None, [[[0.0, 0.0]], [[2.0, -0.5]], [[0.0, 1.0]]])
    >>> print(export_text(line, feature_names=["age", "income"], leaf_rows=[0, 49, 12]))
    if age >= -1.5:
        value = 1.5 + 2*age - 0.5*income  (49 rows)
    else:
        value = 4 + income  (12 rows)
    """
    precision = index(precision)
    if not 1 <= precision <= MAX_PRECISION:
        raise ValueError(f"precision must be from 1 to {MAX_PRECISION}, got {precision}")
    if max_depth is not None and index(max_depth) < 0:
        raise ValueError(f"max_depth must be at least 0 or None, got {max_depth}")
    if class_names is not None and not tree.is_classifier:
        raise ValueError("class_names were given, but the tree is a regression tree")
    shown = np.broadcast_to(np.asarray(show_missing, dtype=bool), (tree.n_features,))
    writer = _Writer(
        tree, feature_names, class_names, category_names, precision, shown, width, leaf_texts, words, digits, sure
    )
    writer.number_leaves, writer.leaf_rows, writer.leaf_labelled = number_leaves, leaf_rows, leaf_labelled
    if weighted is not None:
        writer.weighted = weighted
    return "\n".join(writer.lines(max_depth))


def split_pieces(
    tree: Tree,
    feature_names: Sequence[str] | None = None,
    category_names: Mapping[int | str, Sequence[object]] | None = None,
    precision: int = 4,
    show_missing: bool | Sequence[bool] | BoolArray = False,
    words: Mapping[int, FeatureWords] | None = None,
    digits: Mapping[int, int] | None = None,
    sure: Mapping[int, Sequence[int]] | None = None,
) -> list[list[str]]:
    """Write the condition of each node of a tree, under which points go left, in pieces with line breaks between.

    Parameters
    ----------
    tree, feature_names, category_names, precision, show_missing, words, digits, sure
        As for :func:`export_text`, which writes the same conditions.

    Returns
    -------
    list of lists of str
        One list a node, empty at leaves.

    Examples
    --------
    >>> tree = Tree.stump(weights=[-2.0, 1.0], threshold=3.0, values=[[48.0, 1.0], [0.0, 12.0]])
    >>> split_pieces(tree, ["age", "income"])
    [['0.5*income', '- age <= 1.5'], [], []]
    """
    shown = np.broadcast_to(np.asarray(show_missing, dtype=bool), (tree.n_features,))
    writer = _Writer(
        tree, feature_names, None, category_names, precision, shown, 0, words=words, digits=digits, sure=sure
    )
    return [[] if child == LEAF else writer.pieces(node) for node, child in enumerate(tree.left.tolist())]


def read_children(tree: Tree, words: Mapping[int, FeatureWords] | None = None) -> tuple[int, list[int], list[int]]:
    """Root and children of a tree without the splits that send every point one way.

    Such splits have no feature, or flags alone that make no difference whichever holds: a program may need them to keep
    its shape, a reader does not. Nodes keep their numbers.

    Examples
    --------
    >>> tree = Tree.stump(weights=[0.0], threshold=1.0, values=[[4.0, 1.0], [0.0, 0.0]])
    >>> read_children(tree)[0]
    1
    """
    found = folded_tree(tree, words)
    tree, words = found.tree, found.words
    left, right = tree.left.tolist(), tree.right.tolist()
    reached = list(range(tree.n_nodes))
    for node in reversed(range(tree.n_nodes)):  # children are numbered after their parent
        if left[node] == LEAF:
            continue
        left[node], right[node] = reached[left[node]], reached[right[node]]
        constant = constant_side(tree, node, words)
        if constant is not None:
            reached[node] = left[node] if constant else right[node]
    return reached[0], left, right


def read_nodes(tree: Tree, words: Mapping[int, FeatureWords] | None = None) -> list[int]:
    """Nodes that are written, the root first and left branches before right ones: see :func:`read_children`.

    Examples
    --------
    >>> read_nodes(Tree.stump(weights=[0.0], threshold=1.0, values=[[4.0, 1.0], [0.0, 0.0]]))
    [1]
    """
    root, left, right = read_children(tree, words)
    found, todo = [], [root]
    while todo:
        node = todo.pop()
        found.append(node)
        todo += [] if left[node] == LEAF else [right[node], left[node]]
    return found


def path_texts(
    tree: Tree,
    feature_names: Sequence[str] | None = None,
    precision: int = 4,
    words: Mapping[int, FeatureWords] | None = None,
) -> list[str]:
    """Write the way to each node of a tree as conditions joined by "and", in its units; empty for the root.

    Parameters
    ----------
    tree : Tree
        The tree; its splits are hyperplanes.
    feature_names : sequence of str or None
        One name a feature, by default x0, x1, ...
    precision : int
        Significant digits.
    words : mapping of int to FeatureWords, or None
        Words for features that are flags or dates, as for :func:`export_text`.

    Returns
    -------
    list of str
        One text a node; "never" for one that no point can reach.

    Examples
    --------
    >>> tree = Tree.stump(weights=[-2.0, 0.0], threshold=3.0, values=[[48.0, 1.0], [0.0, 12.0]])
    >>> path_texts(tree, ["age", "income"])
    ['', 'age >= -1.5', 'age < -1.5']
    """
    tree = tree.numerical()
    shown = np.zeros(tree.n_features, dtype=bool)
    writer = _Writer(tree, feature_names, None, None, precision, shown, 0, words=words)
    ways: list[list[tuple[str, bool]]] = [[] for _ in range(tree.n_nodes)]
    todo = [0]
    while todo:
        node = todo.pop()
        if tree.left[node] == LEAF:
            continue
        children = int(tree.left[node]), int(tree.right[node])
        for child, text, either in zip(children, writer.sides(node), writer.alternatives(node), strict=True):
            ways[child] = [*ways[node], (text, either)] if text else ways[node]
            todo.append(child)
    return [_way_text(way) for way in ways]


def _way_text(way: Sequence[tuple[str, bool]]) -> str:
    """Conditions joined by "and"; those that are alternatives are in brackets."""
    if any(text == "never" for text, _ in way):
        return "never"
    return " and ".join(f"({text})" if either and len(way) > 1 else text for text, either in way)


class _Writer(ConditionWriter):
    def __init__(
        self,
        tree: Tree,
        feature_names: Sequence[str] | None,
        class_names: Sequence[object] | None,
        category_names: Mapping[int | str, Sequence[object]] | None,
        precision: int,
        show_missing: BoolArray,
        width: int,
        leaf_texts: Mapping[int, str] | None = None,
        words: Mapping[int, FeatureWords] | None = None,
        digits: Mapping[int, int] | None = None,
        sure: Mapping[int, Sequence[int]] | None = None,
    ) -> None:
        super().__init__(tree, feature_names, category_names, precision, show_missing, words, digits, sure)
        self._classes = names_in_lines(class_names, "class_names", tree.n_outputs, "classes", "class {}", quoted)
        self._width = width
        self._leaf_texts = leaf_texts or {}
        self.number_leaves = False
        self.leaf_rows: Sequence[float] | FloatArray | None = None
        self.leaf_labelled: Sequence[float] | FloatArray | None = None
        # points that weigh a fraction are not counted; whole weights can be told from rows by those who know them
        values = tree.values[tree.left == LEAF]
        self.weighted = bool(np.any(np.abs(values - np.round(values)) > NOISE * np.maximum(1.0, np.abs(values))))

    def lines(self, max_depth: int | None) -> list[str]:
        """All lines, parents first and left before right. By a stack: trees may be deeper than recursion."""
        tree = self._tree
        root, lefts, rights = read_children(tree, self._words)
        sizes = _subtree_sizes(lefts, rights) if max_depth is not None else None
        found: list[str] = []
        todo: list[tuple[int, int]] = [(root, 0)]  # node and its level; -1 stands for "else"
        while todo:
            node, level = todo.pop()
            indent = _INDENT * level
            if node == -1:
                found.append(f"{indent}else:")
            elif tree.left[node] == LEAF:
                found += self._leaf(node, indent)
            elif sizes is not None and max_depth is not None and level >= max_depth:
                found.append(f"{indent}... ({sizes[node]} more nodes)")
            else:
                found += self._condition(node, indent)
                todo += [(rights[node], level + 1), (-1, level), (lefts[node], level + 1)]
        return found

    def _condition(self, node: int, indent: str) -> list[str]:
        return _wrap(self.pieces(node), f"{indent}if ", f"{indent}   ", self._width, end=":")

    # ------------------------------------------------------------------ leaves

    def _leaf(self, node: int, indent: str) -> list[str]:
        tree, values = self._tree, self._tree.values[node]
        if node in self._leaf_texts:
            return [indent + printable(self._leaf_texts[node])]
        indent += f"leaf {node}: " if self.number_leaves else ""
        if tree.slopes is not None:
            return self._formulas(node, indent)
        if tree.labels is not None:
            return [indent + self._class_text(node)]
        numbers = [format_number(value, self._precision) for value in values]
        text = f"value = {numbers[0]}" if len(numbers) == 1 else f"values = [{', '.join(numbers)}]"
        return [f"{indent}{text}{self._known_rows(node)}"]

    def _known_rows(self, node: int) -> str:
        """What follows the values of a regression leaf."""
        return "" if self.leaf_rows is None else f"  ({self._amount(float(self.leaf_rows[node]))})"

    def _formulas(self, node: int, indent: str) -> list[str]:
        """One formula an output of a linear leaf, without the features that have no slope."""
        assert self._tree.slopes is not None
        values, found = self._tree.values[node], []
        for output, slopes in enumerate(self._tree.slopes[node]):
            name = "value = " if len(values) == 1 else f"values[{output}] = "
            used = np.flatnonzero(slopes)
            pairs = [self._words[j].scale if self._words and j in self._words else (0.0, 1.0) for j in used.tolist()]
            origin, unit = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
            terms = [
                self.term(int(j), float(slopes[j] * of), self._precision) for j, of in zip(used, unit, strict=True)
            ]
            pieces = [format_number(float(values[output] + slopes[used] @ origin), self._precision), *terms]
            found += _wrap(pieces, indent + name, " " * len(indent + name), self._width)
        return [*found[:-1], found[-1] + self._known_rows(node)]

    def _class_text(self, node: int) -> str:
        tree, values = self._tree, self._tree.values[node]
        assert tree.labels is not None
        name = self._classes[tree.labels[node]]
        total, likely, seen = float(values.sum()), "", ""
        if tree.probabilities is not None:
            likely, seen = f"likely {self._likely_text(tree.probabilities[node])}; ", " in training"
        if total <= 0:
            return f"{name}  ({likely}no rows{seen}, or most of them are others)"
        amount = self._amount(total, self.weighted) if self.leaf_rows is None else self._amount(self.leaf_rows[node])
        if self.leaf_labelled is not None:
            amount += f", {format_number(float(self.leaf_labelled[node]), self._precision)} labelled"
        amount += seen
        order = sorted(np.flatnonzero(values), key=lambda j: (-values[j], j))
        shares = ", ".join(f"{_percent(float(values[j]) / total)} {self._classes[j]}" for j in order)
        return f"{name}  ({likely}{amount}: {shares})"

    def _likely_text(self, probabilities: FloatArray) -> str:
        """The most likely classes, as far as they are worth a word, and the rest of them together."""
        order = np.argsort(-probabilities, kind="stable").tolist()
        told = [j for place, j in enumerate(order) if place == 0 or probabilities[j] >= _WORTH][:_MOST_LIKELY]
        parts = [f"{_percent(float(probabilities[j]))} {self._classes[j]}" for j in told]
        rest = 1.0 - float(probabilities[told].sum())
        if rest >= _WORTH and len(told) < len(order):
            parts.append(f"{_percent(rest)} another class")
        return ", ".join(parts)

    def _amount(self, total: float, weighted: bool = False) -> str:
        number = format_number(float(total), self._precision, keep_fraction=True)
        return f"weight {number}" if weighted else f"{number} {'row' if number == '1' else 'rows'}"


def _percent(share: float) -> str:
    """Whole per cent, but neither 0% for some nor 100% for not quite all."""
    rounded = round(100 * share)
    if rounded >= 100 and share < 1:
        return ">99%"
    return "<1%" if rounded == 0 else f"{rounded}%"


def _subtree_sizes(left: list[int], right: list[int]) -> list[int]:
    sizes = [1] * len(left)
    for node in reversed(range(len(left))):  # children are numbered after their parent
        if left[node] != LEAF:
            sizes[node] += sizes[left[node]] + sizes[right[node]]
    return sizes


def _wrap(pieces: list[str], first: str, other: str, width: int, end: str = "") -> list[str]:
    """Pieces with blanks between them and `end` after the last, in lines of at most `width` where possible."""
    lines, line = [], first + pieces[0]
    for position, piece in enumerate(pieces[1:], start=1):
        room = len(end) if position == len(pieces) - 1 else 0
        if len(line) + 1 + len(piece) + room > width:
            lines.append(line)
            line = other + piece
        else:
            line += f" {piece}"
    return [*lines, line + end]
