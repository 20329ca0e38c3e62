"""Trees of OCTSVM for several classes, each of a class against all others: what they say of rows."""

from __future__ import annotations

import numpy as np

from treewright.core.arrays import FloatArray
from treewright.tree.routing import route
from treewright.tree.structure import Tree

__all__ = ["last_split_values", "tree_against_others"]


def tree_against_others(tree: Tree, label: int) -> Tree:
    """The OCTSVM tree of a class, with label 1 for it and 0 for all others."""
    assert tree.labels is not None
    return tree.with_leaves(np.zeros((tree.n_nodes, 2)), (tree.labels == label).astype(np.int64))


def last_split_values(tree: Tree, X: FloatArray, depth: int) -> FloatArray:
    """Value of rows at the last split of an OCTSVM tree on their way; -1 or 1 in a leaf that says the other class.

    Parameters
    ----------
    tree : Tree
        A maximum-margin tree of two classes in the units of X; labels above 0 are the right side's.
    X : ndarray of shape (n_rows, n_features)
        Rows.
    depth : int
        Level of the last splits.

    Examples
    --------
    >>> tree = Tree.stump([2.0], 1.0, [[1.0, 0.0], [0.0, 1.0]])
    >>> last_split_values(tree, np.array([[0.25], [2.0]]), depth=0).tolist()
    [-0.5, 3.0]
    """
    assert tree.labels is not None
    leaf = route(tree, X)
    parent = tree.parent[leaf]
    value = np.einsum("ij,ij->i", X, tree.weights[parent]) - tree.threshold[parent]
    said = np.where(tree.labels[leaf] > 0, 1.0, -1.0)
    against = (value * said < 0) | (tree.level[leaf] == 0)
    return np.asarray(np.where((tree.level[leaf] <= depth) & against, said, value))
