"""How much of the training loss the splits on each feature save."""

from __future__ import annotations

import numpy as np
from sklearn.exceptions import NotFittedError

from treewright.core.arrays import FloatArray
from treewright.exports.content import Content
from treewright.tree.structure import Shape, Tree

__all__ = ["feature_importances"]


def feature_importances(content: Content) -> FloatArray:
    """Shares of features in the loss that splits save; :attr:`TreeModel.feature_importances_` says what that is."""
    if content.weight is None:
        raise NotFittedError("the model does not know how many rows its leaves had in training; fit it again")
    if any(tree.slopes is not None for tree in content.trees):
        raise NotFittedError("linear leaves use features beside the splits: splits alone do not say what matters")
    found = np.zeros(len(content.names))
    for tree, table, weight in zip(content.trees, content.means, content.weight, strict=True):
        saved = savings(tree, table, weight)
        for node in np.flatnonzero(saved > 0).tolist():
            used = content.needed(tree, node)
            if len(used) == 1:
                found[used[0]] += saved[node]
            elif used:
                found[used] += saved[node] * _parts(content, tree, node, used)
    total = found.sum()
    return found / total if total > 0 else found


def savings(tree: Tree, table: FloatArray, weight: FloatArray) -> FloatArray:
    """How much each split lowers the weighted sum of squared distances of rows to the mean of their node.

    Examples
    --------
    >>> tree = Tree.stump([1.0], 0.0, [[2.0, 0.0], [0.0, 2.0]])
    >>> savings(tree, tree.shares(), np.array([0.0, 2.0, 2.0])).tolist()
    [2.0, 0.0, 0.0]
    """
    own = np.where(tree.is_leaf, weight, 0.0)
    sums = Shape.of(tree).summed(np.column_stack([own, own[:, None] * table]))
    mean = sums[:, 1:] / np.where(sums[:, :1] > 0, sums[:, :1], 1.0)
    saved = np.zeros(tree.n_nodes)
    for node in tree.branches.tolist():
        sides = [int(tree.left[node]), int(tree.right[node])]
        saved[node] = sum(sums[child, 0] * float(((mean[child] - mean[node]) ** 2).sum()) for child in sides)
    return saved


def _parts(content: Content, tree: Tree, node: int, used: list[int]) -> FloatArray:
    """Shares of the features of a hyperplane."""
    if content.spread is None:
        raise NotFittedError("the model does not know the spread of its features (older files have none); fit it again")
    sizes = np.abs(tree.weights[node, used]) / np.abs(tree.weights[node, used]).max() * content.spread[used]
    total = sizes.sum()
    return np.asarray(sizes / total if total > 0 else np.full(len(used), 1.0 / len(used)))
