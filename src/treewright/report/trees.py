"""Trees as readers see them: conditions in words, and the rows in each leaf."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.names import counted, printable, quoted
from treewright.data.columns_checked import AnyArray
from treewright.data.tables.cells import number_text
from treewright.report.words import WEIGHED, count_words
from treewright.tree import Tree, export_text
from treewright.tree.cases import cased_split
from treewright.tree.conditions import unlike_words
from treewright.tree.level_groups import folded_tree
from treewright.tree.structure import LEAF
from treewright.tree.text import read_nodes, split_pieces
from treewright.tree.words import DateWords, FeatureWords, FlagWords, date_text

__all__ = [
    "Explanation",
    "LeafFacts",
    "TreeFacts",
    "absent_notes",
    "counted_tree",
    "fitted_trees",
    "leaf_texts",
    "reading_notes",
]


@dataclass(frozen=True)
class LeafFacts:
    """What is in a leaf.

    Attributes
    ----------
    label : str
        The class that it gives.
    rows : int or None
        Rows of the table in it; None where they are not known.
    counts : list of float
        What is counted of each class in it.
    likely : list of float or None
        How many rows of each class are to be expected in it, by their probabilities; None where these are not known.
    """

    label: str
    rows: int | None
    counts: list[float]
    likely: list[float] | None = None

    @property
    def shown(self) -> list[float]:
        """What a picture shows of it: what is to be expected where that is known, and else what is counted."""
        return self.counts if self.likely is None else self.likely


@dataclass(frozen=True, eq=False)
class TreeFacts:
    """A tree to read.

    Attributes
    ----------
    title : str
        What it is about, if there are several.
    tree : Tree
        The tree.
    classes : list of str
        Names of its classes.
    conditions : list of lists of str
        Condition of each node under which rows go left, in pieces; empty at leaves.
    leaves : dict of int to LeafFacts
        By numbers of nodes.
    counted : str
        What pictures show of leaves, in words.
    rules : str
        The tree as text.
    notes : list of str
        How to read its conditions, in sentences.
    words : mapping of int to FeatureWords, or None
        Words of features that are flags or dates.
    weighted : bool
        Whether ``counts`` of leaves are sums of weights.
    seen : str
        What ``counts`` of leaves count, where something else is shown.
    """

    title: str
    tree: Tree
    classes: list[str]
    conditions: list[list[str]]
    leaves: dict[int, LeafFacts]
    counted: str
    rules: str
    notes: list[str]
    words: Mapping[int, FeatureWords] | None = None
    weighted: bool = False
    seen: str = ""


_LIKELY = "how likely the classes are"


def leaf_texts(
    leaves: Mapping[int, LeafFacts], classes: Sequence[object], found: bool, own: bool = False
) -> dict[int, str]:
    """What reports, the terminal and model files write for leaves, by their numbers.

    Parameters
    ----------
    leaves : mapping of int to LeafFacts
        Leaves whose rows are known.
    classes : sequence
        The classes.
    found : bool
        Whether counts are of labels that all rows have, and not of given ones.
    own : bool
        Whether these are the labels of the leaves themselves, of which no share need be told.

    Examples
    --------
    >>> leaf = LeafFacts("no", 8, [6, 2])
    >>> leaf_texts({3: leaf}, ["no", "yes"], found=True), leaf_texts({3: leaf}, ["no", "yes"], found=False)
    ({3: 'leaf 3: no  (8 rows, 75.0% of them labelled so)'}, {3: 'leaf 3: no  (8 rows; labelled: 6 no, 2 yes)'})
    >>> likely = {3: LeafFacts("no", 8, [6, 2], [4.4, 3.6])}
    >>> leaf_texts(likely, ["no", "yes"], found=True)
    {3: 'leaf 3: no  (8 rows, 75.0% of them labelled so, about 55.0% likely to be so)'}
    >>> leaf_texts(likely, ["no", "yes"], found=False)
    {3: 'leaf 3: no  (8 rows, about 55.0% likely to be so; labelled: 6 no, 2 yes)'}
    """
    names, texts = [str(name) for name in classes], {}
    for number, leaf in leaves.items():
        assert leaf.rows is not None
        label, told = names.index(leaf.label), ""
        if found and leaf.rows and not own:
            told = f", {leaf.counts[label] / leaf.rows:.1%} of them labelled so"
        if leaf.likely is not None and sum(leaf.likely) > 0:
            told += f", about {leaf.likely[label] / sum(leaf.likely):.1%} likely to be so"
        if not found:
            given = ", ".join(f"{n:g} {quoted(name)}" for name, n in zip(names, leaf.counts, strict=True) if n)
            told += f"; labelled: {given or 'none'}"
        texts[number] = f"leaf {number}: {quoted(leaf.label)}  ({count_words(leaf.rows)}{told})"
    return texts


def reading_notes(tree: Tree, words: Mapping[int, FeatureWords] | None) -> list[str]:
    """How to read flags and dates of a report's tree in sums, and what stands for missing values, if there are any.

    Examples
    --------
    >>> words = {1: FlagWords("rent is missing", "rent is known", "rent", filled=(0, 570.0))}
    >>> reading_notes(Tree.stump([1.0, 0.0], 829.5, np.eye(2)), words)
    ['Where "rent" is missing, 570 stands for it.']
    """
    written = folded_tree(tree, words)
    tree, words = written.tree, written.words
    flag, date = unlike_words(tree, words)
    notes = written.notes(read_nodes(tree, words)) if written.groups else []
    if flag is not None:
        notes.append(f'In a sum, "{printable(flag.term)}" counts 1 where that holds and 0 elsewhere.')
    if date is not None:
        notes.append(f'"{printable(date.term)}" has decimals, and is below 0 for earlier dates.')
    return notes + _fill_notes(tree, words or {})


def _fill_notes(tree: Tree, words: Mapping[int, FeatureWords]) -> list[str]:
    """What stands for missing numbers and dates in conditions that do not say themselves where such rows go."""
    gaps = {j: flag for j, flag in words.items() if isinstance(flag, FlagWords) and flag.filled is not None}
    found: dict[int, str] = {}
    for node in read_nodes(tree, words) if gaps else []:
        used = np.flatnonzero(tree.weights[node])
        cased = cased_split(tree, node, used, words) if len(used) > 1 else None
        told = None if cased is None or cased.gap is None else cased.gap[0]
        for j, flag in gaps.items():
            assert flag.filled is not None
            feature, value = flag.filled
            if j != told and feature in used:
                of = words.get(feature)
                shown = (date_text(value, of.times) if isinstance(of, DateWords) else None) or str(number_text(value))
                found[feature] = f'Where "{printable(flag.column)}" is missing, {shown} stands for it.'
    return [found[feature] for feature in sorted(found)]


def absent_notes(facts: TreeFacts, totals: Sequence[Mapping[str, Any]]) -> list[str]:
    """Which classes the totals ask for and no leaf that a report writes gives.

    Examples
    --------
    >>> leaves = {1: LeafFacts("no", 3, [2, 1]), 2: LeafFacts("no", 4, [3, 1])}
    >>> tree = Tree.stump([1.0], 0.5, np.eye(2))
    >>> facts = TreeFacts("", tree, ["no", "yes"], [], leaves, "", "", [])
    >>> absent_notes(facts, [{"group": None, "class": "yes", "low": 2, "high": 2, "reached": 2}])
    ['No leaf is "yes", which 2 rows are by the totals.']
    """
    given = {facts.leaves[node].label for node in read_nodes(facts.tree, facts.words) if node in facts.leaves}
    notes = []
    for name in facts.classes:
        asked = [row for row in totals if not row.get("margin", 0) and str(row["class"]) == name]
        low, high = (sum(row[end] for row in asked) for end in ("low", "high"))
        if low > 0 and name not in given:
            least = "" if low == high else "at least "
            rows = counted(low, "row is", "rows are")
            notes.append(f'No leaf is "{printable(name)}", which {least}{rows} by the totals.')
    return notes


@dataclass(frozen=True, eq=False)
class Explanation:
    """A tree beside the labels that it explains.

    Attributes
    ----------
    tree : estimator
        The fitted tree.
    leaves, labels : ndarray of shape (n_rows,)
        Leaf of each row, and the class that the tree gives it.
    words : mapping of int to FeatureWords, or None
        Words for features that are flags or dates.
    likely : ndarray of shape (n_nodes, n_classes), or None
        Sums of the probabilities of the rows in each leaf, where they are known.
    """

    tree: Any
    leaves: AnyArray
    labels: AnyArray
    words: Mapping[int, FeatureWords] | None = None
    likely: FloatArray | None = None
    _told: list[Any] = field(default_factory=list, init=False, repr=False)

    @classmethod
    def of(cls, tree: Any, X: AnyArray, words: Mapping[int, FeatureWords] | None = None) -> Explanation:
        """Route rows down a tree."""
        return cls(tree, tree.apply(X), tree.predict(X), words)

    def agreement(self, labels: AnyArray, rows: AnyArray) -> float:
        """Share of some rows on which tree and labels agree.

        Examples
        --------
        >>> found = Explanation(None, np.array([1, 1, 2]), np.array(["a", "a", "b"]))
        >>> found.agreement(np.array(["a", "b", "b"]), np.array([False, True, True]))
        0.5
        """
        return float(np.mean(self.labels[rows] == labels[rows])) if np.any(rows) else float("nan")

    def rules(self, labels: AnyArray) -> str:
        """The tree with numbers of leaves, the rows in each, and how many of them are labelled as the leaf says."""
        return self.facts(labels).rules

    def facts(self, labels: AnyArray) -> TreeFacts:
        """The tree to read, with the labels in each leaf; those of the same labels are counted once."""
        if self._told and self._told[0] is labels:
            found: TreeFacts = self._told[1]
            return found
        tree, classes = self.tree.tree_, self.tree.classes_
        numbers = np.full(len(labels), -1)
        for k, label in enumerate(classes.tolist()):
            numbers[labels == label] = k
        counts = _leaf_counts(tree, self.leaves, numbers, len(classes))
        rows = np.bincount(self.leaves, minlength=tree.n_nodes)
        found = counted_tree(self.tree, rows, counts, self.words, self.likely)
        self._told[:] = [labels, found]
        return found


def counted_tree(
    model: Any,
    rows: IntArray,
    counts: IntArray,
    words: Mapping[int, FeatureWords] | None = None,
    likely: FloatArray | None = None,
    gaps: BoolArray | None = None,
    own: bool = False,
) -> TreeFacts:
    """A tree as a report shows it, with the labels in each leaf.

    Parameters
    ----------
    model : estimator
        The fitted tree.
    rows : ndarray of int, shape (n_nodes,)
        Rows in each leaf.
    counts : ndarray of int, shape (n_nodes, n_classes)
        Their labels.
    words : mapping of int to FeatureWords, or None
        Words for features that are flags or dates.
    likely : ndarray of shape (n_nodes, n_classes), or None
        Sums of their probabilities.
    gaps : ndarray of bool, shape (n_features,), or None
        Features that some of the rows lack, beside those that rows of the fit lacked.
    own : bool
        Whether the labels are those that the tree itself gives.
    """
    tree, classes = model.tree_, model.classes_
    sums = {} if likely is None else dict(enumerate(likely.tolist()))
    leaves = {
        leaf: LeafFacts(str(classes[tree.labels[leaf]]), int(rows[leaf]), counts[leaf].tolist(), sums.get(leaf))
        for leaf in np.flatnonzero(tree.left == LEAF).tolist()
    }
    naming = model._naming(words, gaps)
    conditions, notes = split_pieces(tree, **naming), reading_notes(tree, words)
    rules = export_text(tree, leaf_texts=leaf_texts(leaves, classes, True, own), **naming)
    what = "labels of these rows" if likely is None else "probabilities of these rows"
    return TreeFacts("", tree, [str(c) for c in classes], conditions, leaves, what, rules, notes, words)


def fitted_trees(
    estimator: Any,
    leaves: AnyArray | None,
    truth: AnyArray,
    known: AnyArray,
    words: Mapping[int, FeatureWords] | None = None,
) -> list[TreeFacts]:
    """Trees of a fitted model as a report shows them.

    Parameters
    ----------
    estimator : estimator
        The model.
    leaves : ndarray of shape (n_rows,) or None
        Leaf of each row; without, leaves tell of the rows they were fitted to, and have no numbers in the text.
    truth : ndarray
        Class numbers of the rows with a label.
    known : ndarray of bool, shape (n_rows,)
        Which rows have one.
    words : mapping of int to FeatureWords, or None
        Words for features that are flags or dates.
    """
    if leaves is not None:
        return [_with_rows(estimator, leaves, truth, known, words)]
    found: list[TreeFacts] = []
    weighted = bool(getattr(estimator, "_weighted_leaves", False))
    what = "weights of the labels of the fit" if weighted else "labels of the fit"
    what += ", given and found" if hasattr(estimator, "_leaf_labelled") else ""
    for title, tree, classes in estimator._read_trees():
        naming, facts, rows = estimator._naming(words), {}, getattr(estimator, "_leaf_rows", None)
        for leaf in np.flatnonzero(tree.left == LEAF).tolist():
            n_rows, counts = None if rows is None else int(rows[leaf]), tree.values[leaf].tolist()
            likely = _expected(tree, leaf, sum(counts) if n_rows is None else n_rows)
            facts[leaf] = LeafFacts(classes[tree.labels[leaf]], n_rows, counts, likely)
        rules = estimator.export_text(words=words) if not found else ""  # of all trees
        pieces, notes = split_pieces(tree, **naming), [*estimator._leaf_notes(), *reading_notes(tree, words)]
        told = (what, "") if tree.probabilities is None else (_LIKELY, what)
        found.append(TreeFacts(title, tree, classes, pieces, facts, told[0], rules, notes, words, weighted, told[1]))
    return found


def _with_rows(
    estimator: Any, leaves: AnyArray, truth: AnyArray, known: AnyArray, words: Mapping[int, FeatureWords] | None
) -> TreeFacts:
    """The tree with numbers of leaves, the rows in each, and their labels."""
    ((title, tree, classes),) = estimator._read_trees()
    rows = np.bincount(leaves, minlength=tree.n_nodes).tolist()
    counts = _leaf_counts(tree, leaves[known], truth, len(classes))
    assert tree.labels is not None
    facts = {
        leaf: LeafFacts(
            classes[tree.labels[leaf]], rows[leaf], counts[leaf].tolist(), _expected(tree, leaf, rows[leaf])
        )
        for leaf in np.flatnonzero(tree.left == LEAF).tolist()
    }
    rules = estimator.export_text(leaf_texts=leaf_texts(facts, classes, found=False), words=words)
    conditions, notes = split_pieces(tree, **estimator._naming(words)), reading_notes(tree, words)
    if getattr(estimator, "_weighted_leaves", False):
        notes = [*notes, WEIGHED]
    told, what = "given labels", ""
    if tree.probabilities is not None:
        told, what = _LIKELY, told
    return TreeFacts(title, tree, classes, conditions, facts, told, rules, notes, words, seen=what)


def _expected(tree: Tree, leaf: int, rows: float) -> list[float] | None:
    """How many of these rows are to be expected of each class in a leaf; as of one row where there are none."""
    return None if tree.probabilities is None else (tree.probabilities[leaf] * (rows or 1)).tolist()


def _leaf_counts(tree: Tree, leaves: AnyArray, numbers: AnyArray, n_classes: int) -> IntArray:
    """Rows of each class in each node that is a leaf; a number of -1 is no class."""
    some = numbers >= 0
    place = leaves[some] * n_classes + numbers[some]
    return np.bincount(place, minlength=tree.n_nodes * n_classes).reshape(tree.n_nodes, n_classes)
