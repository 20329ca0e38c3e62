"""Which of many equally good trees to take, and the vote of all of them."""

from __future__ import annotations

import numpy as np

from treewright.arrays import FloatArray, IntArray
from treewright.formulations import S2OCT
from treewright.search.s2oct.attempts import Pool
from treewright.search.totals.points import divide_points
from treewright.tree import Tree
from treewright.tree.measure import n_split_weights

__all__ = ["choose", "committee", "vote_shares"]


def choose(pool: Pool, model: S2OCT, prefer: str) -> int:
    """Number of the preferred tree of a pool.

    Parameters
    ----------
    pool : Pool
        Equally good trees.
    model : S2OCT
        Their model.
    prefer : {"typical", "margin", "sparse", "first"}
        The tree whose labels agree most with those of all trees; the one whose nearest unlabelled
        point is farthest from a split; the one with the fewest features in its splits; the one found first.
    """
    if prefer == "first" or len(pool.trees) == 1:
        return 0
    if prefer == "sparse":
        return int(np.argmin([n_split_weights(tree) for tree in pool.trees]))
    if prefer == "margin":
        return int(np.argmax([_margin(tree, model.X[model.y < 0]) for tree in pool.trees]))
    votes = vote_shares(pool.labels, model.n_classes, pool.guide)
    rows = np.arange(len(votes))
    return int(np.argmax([model.totals.rows @ votes[rows, labels] for labels in pool.labels]))


def committee(pool: Pool, model: S2OCT) -> IntArray:
    """Labels of the unlabelled points by the vote of all trees, within the totals."""
    votes = vote_shares(pool.labels, model.n_classes, pool.guide)
    return divide_points(votes, model.totals)


def vote_shares(labels: list[IntArray], n_classes: int, guide: IntArray | None) -> FloatArray:
    """Share of the votes for each class, shape (n_points, n_classes); the guide's half vote breaks ties."""
    rows = np.arange(len(labels[0]))
    votes = np.zeros((len(rows), n_classes))
    for ballot in labels:
        votes[rows, ballot] += 1.0
    if guide is not None:
        votes[rows, guide] += 0.5
    return np.asarray(votes / votes.sum(axis=1, keepdims=True))


def _margin(tree: Tree, X: FloatArray) -> float:
    """Distance of the nearest point from a split of its way, in units of the normal's largest entry."""
    branches = [b for b in tree.branches if np.any(tree.weights[b])]
    if not branches:
        return np.inf
    size = np.abs(tree.weights[branches]).max(axis=1)
    return float((np.abs(X @ tree.weights[branches].T - tree.threshold[branches]) / size).min())
