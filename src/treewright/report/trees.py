"""Trees as readers see them: conditions in words, and the rows in each leaf."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from treewright.arrays import IntArray
from treewright.data._checks import AnyArray
from treewright.report.words import count_words
from treewright.tree import Tree
from treewright.tree.structure import LEAF
from treewright.tree.text import split_pieces
from treewright.tree.words import FeatureWords

__all__ = ["Explanation", "LeafFacts", "TreeFacts", "fitted_trees"]


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
    """

    label: str
    rows: int | None
    counts: list[float]


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
        What ``counts`` of leaves count.
    rules : str
        The tree as text.
    """

    title: str
    tree: Tree
    classes: list[str]
    conditions: list[list[str]]
    leaves: dict[int, LeafFacts]
    counted: str
    rules: str


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
    """

    tree: Any
    leaves: AnyArray
    labels: AnyArray
    words: Mapping[int, FeatureWords] | None = None

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
        """The tree to read, with the labels in each leaf."""
        tree, classes = self.tree.tree_, self.tree.classes_
        numbers = np.full(len(labels), -1)
        for k, label in enumerate(classes.tolist()):
            numbers[labels == label] = k
        counts = _leaf_counts(tree, self.leaves, numbers, len(classes))
        times = np.bincount(self.leaves, minlength=tree.n_nodes).tolist()
        leaves, texts = {}, {}
        for leaf in np.flatnonzero(tree.left == LEAF).tolist():
            rows, k = times[leaf], int(tree.labels[leaf])
            told = f", {counts[leaf, k] / rows:.1%} of them labelled so" if rows else ""
            texts[leaf] = f"leaf {leaf}: {classes[k]}  ({count_words(rows)}{told})"
            leaves[leaf] = LeafFacts(str(classes[k]), rows, counts[leaf].tolist())
        conditions = split_pieces(tree, **self.tree._naming(self.words))
        rules = self.tree.export_text(leaf_texts=texts, words=self.words)
        return TreeFacts("", tree, [str(c) for c in classes], conditions, leaves, "labels of these rows", rules)


def fitted_trees(
    estimator: Any,
    leaves: AnyArray | None,
    truth: AnyArray,
    known: AnyArray,
    words: Mapping[int, FeatureWords] | None = None,
) -> list[TreeFacts]:
    """Trees of a fitted model to read.

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
    for title, tree, classes in estimator._read_trees():
        naming, facts = estimator._naming(words), {}
        for leaf in np.flatnonzero(tree.left == LEAF).tolist():
            facts[leaf] = LeafFacts(classes[tree.labels[leaf]], None, tree.values[leaf].tolist())
        rules = estimator.export_text(words=words) if not found else ""  # of all trees
        found.append(TreeFacts(title, tree, classes, split_pieces(tree, **naming), facts, "labels of the fit", rules))
    return found


def _with_rows(
    estimator: Any, leaves: AnyArray, truth: AnyArray, known: AnyArray, words: Mapping[int, FeatureWords] | None
) -> TreeFacts:
    """The tree with numbers of leaves, the rows in each, and their labels."""
    ((title, tree, classes),) = estimator._read_trees()
    rows = np.bincount(leaves, minlength=tree.n_nodes).tolist()
    counts = _leaf_counts(tree, leaves[known], truth, len(classes))
    facts, texts = {}, {}
    for leaf in np.flatnonzero(tree.left == LEAF).tolist():
        label = classes[tree.labels[leaf]]
        told = ", ".join(f"{n} {classes[k]}" for k, n in enumerate(counts[leaf].tolist()) if n) or "none with a label"
        texts[leaf] = f"leaf {leaf}: {label}  ({count_words(rows[leaf])}; labelled: {told})"
        facts[leaf] = LeafFacts(label, rows[leaf], counts[leaf].tolist())
    rules = estimator.export_text(leaf_texts=texts, words=words)
    conditions = split_pieces(tree, **estimator._naming(words))
    return TreeFacts(title, tree, classes, conditions, facts, "given labels", rules)


def _leaf_counts(tree: Tree, leaves: AnyArray, numbers: AnyArray, n_classes: int) -> IntArray:
    """Rows of each class in each node that is a leaf; a number of -1 is no class."""
    some = numbers >= 0
    place = leaves[some] * n_classes + numbers[some]
    return np.bincount(place, minlength=tree.n_nodes * n_classes).reshape(tree.n_nodes, n_classes)
