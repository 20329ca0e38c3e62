"""As many digits of rules as tell where rows go."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.tree.cases import CasedSplit, cased_split, flag_logic
from treewright.tree.level_groups import folded_tree
from treewright.tree.number_text import MAX_PRECISION, threshold_digits
from treewright.tree.structure import LEAF, Tree
from treewright.tree.sums import WrittenSplit, written_split
from treewright.tree.words import FeatureWords

__all__ = ["sure_cases", "telling_digits"]


def telling_digits(
    tree: Tree,
    X: FloatArray,
    leaves: IntArray,
    words: Mapping[int, FeatureWords] | None = None,
    precision: int = 4,
) -> dict[int, int]:
    """Digits with which a tree's written rules send rows where the tree does, where `precision` does not.

    Parameters
    ----------
    tree : Tree
        The tree.
    X : ndarray of shape (n_rows, n_features)
        Rows; those that lack a value of a split do not count there.
    leaves : ndarray of int, shape (n_rows,)
        Their leaves.
    words : mapping of int to FeatureWords, or None
        Words of the rules, as for :func:`treewright.tree.export_text`.
    precision : int, default=4
        Digits that are enough elsewhere.

    Returns
    -------
    dict of int to int
        By nodes.

    Examples
    --------
    >>> tree = Tree.stump(weights=[1.0], threshold=1234.56789, values=[[48.0, 1.0], [0.0, 12.0]])
    >>> telling_digits(tree, np.array([[1234.5677], [1234.58]]), np.array([1, 2]))
    {0: 6}
    """
    written = folded_tree(tree, words)
    tree, words, X = written.tree, written.words, written.rows(X)
    plain, found = threshold_digits(tree, precision), dict[int, int]()
    first, last = _leaf_places(tree)
    order = np.argsort(first[leaves], kind="stable")  # rows of a node stand together, those of its left side first
    start = np.append(0, np.cumsum(np.bincount(first[leaves], minlength=int(last[0]))))
    for node in np.flatnonzero(tree.left != LEAF).tolist():
        used = np.flatnonzero(tree.weights[node])
        if tree.category[node] >= 0 or not len(used) or (len(used) == 1 and int(used[0]) in (words or {})):
            continue
        here = order[start[first[node]] : start[last[node]]]
        left = np.arange(len(here)) < start[last[tree.left[node]]] - start[first[node]]
        known = np.isfinite(X[np.ix_(here, used)]).all(axis=1)
        rule, enough = _rule(tree, node, used, words), precision
        if rule is None:
            continue
        if len(used) == 1:
            enough = plain.get(int(used[0]), precision)
        digits = _enough(rule, X[here[known]], left[known], enough)
        if digits > enough:
            found[node] = digits
    return found


def sure_cases(tree: Tree, X: FloatArray, words: Mapping[int, FeatureWords] | None = None) -> dict[int, list[int]]:
    """Splits of a tree by cases of flags where in some cases no row can fail the condition, or none can meet it.

    Parameters
    ----------
    tree : Tree
        The tree.
    X : ndarray of shape (n_rows, n_features)
        Rows, all those that the rules are for, wherever the tree sends them.
    words : mapping of int to FeatureWords, or None
        Words of the rules, as for :func:`treewright.tree.export_text`.

    Returns
    -------
    dict of int to list of int
        By nodes, 1 for a case that always holds, -1 for one that never does, else 0: see `CasedSplit.cases`.

    Examples
    --------
    >>> from treewright.tree.words import FlagWords
    >>> tree = Tree.stump([-1.0, 200.0], 164.6, [[1.0, 0.0], [0.0, 1.0]])
    >>> sure_cases(tree, np.array([[3.0, 0.0], [90.0, 1.0]]), {1: FlagWords("sector is A", "sector is not A")})
    {0: [1, 0]}
    """
    written, found = folded_tree(tree, words), {}
    tree, words, X = written.tree, written.words, written.rows(X)
    for node in np.flatnonzero(np.count_nonzero(tree.weights, axis=1) > 1).tolist() if words else []:
        cased = cased_split(tree, node, np.flatnonzero(tree.weights[node]), words)
        if cased is not None and any(sure := cased.sure(X)):
            found[node] = sure
    return found


def _rule(
    tree: Tree, node: int, used: IntArray, words: Mapping[int, FeatureWords] | None
) -> WrittenSplit | CasedSplit | None:
    """What is written of a split; None if it is exact without any digits: logic of flags, or dates."""
    if flag_logic(tree, node, words) is not None:
        return None
    cased = cased_split(tree, node, used, words)
    if cased is None:
        return written_split(tree, node, used, words)
    return cased if cased.date is None else None


def _enough(rule: WrittenSplit | CasedSplit, rows: FloatArray, left: BoolArray, start: int) -> int:
    """The fewest digits with which no row changes sides or, where rounding lets none do that, the fewest rows."""
    best, fewest = start, len(rows) + 1
    for digits in range(start, MAX_PRECISION + 1):
        wrong = int(np.count_nonzero(rule.holds(rows, digits) != left))
        if wrong < fewest:
            best, fewest = digits, wrong
        if not wrong:
            break
    return best


def _leaf_places(tree: Tree) -> tuple[IntArray, IntArray]:
    """Leaves under each node as places in their order from left to right: the first, and that after the last."""
    n_leaves, first = np.ones(tree.n_nodes, dtype=np.int64), np.zeros(tree.n_nodes, dtype=np.int64)
    inner = np.flatnonzero(tree.left != LEAF).tolist()
    for node in reversed(inner):  # children are numbered after their parent
        n_leaves[node] = n_leaves[tree.left[node]] + n_leaves[tree.right[node]]
    for node in inner:
        first[tree.left[node]] = first[node]
        first[tree.right[node]] = first[node] + n_leaves[tree.left[node]]
    return first, first + n_leaves
