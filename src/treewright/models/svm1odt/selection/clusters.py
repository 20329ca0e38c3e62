"""Rows by leaf and class, and their distances to the splits on the way there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.data import distinct_rows
from treewright.tree import Tree, route

__all__ = ["Cluster", "ClusteredRows", "clustered_rows", "split_distances", "feature_widths"]


@dataclass(frozen=True, eq=False)
class Cluster:
    """Distinct rows (points) of one class in one leaf, for the selection of rows worth training on.

    Attributes
    ----------
    leaf, label : int
        Leaf, and class number.
    points : ndarray of int
        All its points.
    lone : ndarray of int
        Points with at most one other that has the same categories and gaps: nothing can be between two points.
    parts : tuple of ndarray of int
        The other points, by their categories and gaps.
    """

    leaf: int
    label: int
    points: IntArray
    lone: IntArray
    parts: tuple[IntArray, ...]


@dataclass(frozen=True, eq=False)
class ClusteredRows:
    """Rows as points in clusters, for the selection of rows worth training on.

    Attributes
    ----------
    clusters : tuple of Cluster
        Clusters, the smallest first.
    first : ndarray of int, shape (n_points,)
        A row of each point.
    place : ndarray of int, shape (n_rows,)
        Point of each row.
    distance : ndarray of shape (n_points,)
        Distance to the nearest split on the way to its leaf, infinite where there is none.
    """

    clusters: tuple[Cluster, ...]
    first: IntArray
    place: IntArray
    distance: FloatArray
    _numbers: FloatArray

    def coordinates(self, part: IntArray) -> FloatArray:
        """Numerical features that the points of a part have, in units of their widths, from 0 on."""
        present = ~np.isnan(self._numbers[part[0]])
        numbers = self._numbers[np.ix_(part, present)]
        return np.ascontiguousarray(numbers - numbers.min(axis=0))


def clustered_rows(X: FloatArray, y: IntArray, tree: Tree, categorical: BoolArray, width: FloatArray) -> ClusteredRows:
    """Put rows into clusters by leaf and class, of which the selection of SVM1-ODT takes some.

    A convex combination is asked for among rows of equal categories and gaps alone, over the numerical features that
    they have. Such rows go the same way at every categorical split and wherever a split uses a value that they lack,
    so what holds for combinations of points with all their values holds for them too. Parameters are those of
    :func:`.choose_rows`.

    Examples
    --------
    >>> X = np.array([[0.0], [0.1], [0.1], [0.2], [0.9]])
    >>> tree = Tree.stump([1.0], 0.5, [[1.0, 0.0], [0.0, 1.0]])
    >>> data = clustered_rows(X, np.array([0, 0, 0, 0, 1]), tree, np.zeros(1, bool), np.ones(1))
    >>> [(c.leaf, c.label, len(c.points), len(c.parts)) for c in data.clusters]
    [(2, 1, 1, 0), (1, 0, 3, 1)]
    """
    gone = np.isnan(X)
    gaps = gone[:, gone.any(axis=0)].astype(np.float64)
    filled = np.where(gone, 0.0, X)
    leaf = route(tree, X)
    first, place = distinct_rows(np.column_stack([leaf, y, filled, gaps]))
    at, label = leaf[first], y[first]
    kinds = np.column_stack([at, label, filled[first][:, categorical], gaps[first]])
    kind = distinct_rows(kinds.astype(np.float64))[1]
    order = np.lexsort((kind, label, at))
    ends = np.flatnonzero(np.diff(at[order]) | np.diff(label[order])) + 1
    clusters = [_cluster(points, kind, at, label) for points in np.split(order, ends)] if len(order) else []
    points = X[first]
    return ClusteredRows(
        clusters=tuple(sorted(clusters, key=lambda c: len(c.points))),
        first=first,
        place=place,
        distance=split_distances(tree, points, at, width),
        _numbers=np.where(categorical, np.nan, points / width),
    )


def _cluster(points: IntArray, kind: IntArray, leaf: IntArray, label: IntArray) -> Cluster:
    parts = np.split(points, np.flatnonzero(np.diff(kind[points])) + 1)
    lone = [part for part in parts if len(part) <= 2]
    return Cluster(
        leaf=int(leaf[points[0]]),
        label=int(label[points[0]]),
        points=points,
        lone=np.concatenate([np.zeros(0, dtype=np.int64), *lone]),
        parts=tuple(part for part in parts if len(part) > 2),
    )


def feature_widths(X: FloatArray) -> FloatArray:
    """Ranges of features in the selection of SVM1-ODT, missing values aside; 1 for one that never changes."""
    with np.errstate(invalid="ignore"):
        width = np.fmax.reduce(X, axis=0) - np.fmin.reduce(X, axis=0)
    # what is wider than floating point is about as wide as that
    return np.where(width > 0, np.minimum(width, np.finfo(np.float64).max), 1.0)


def split_distances(tree: Tree, X: FloatArray, leaf: IntArray, width: FloatArray) -> FloatArray:
    r"""Distance of points to the nearest split on the way to their leaves, by which SVM1-ODT selects rows.

    It is :math:`|h^\top x - g| / \lVert h \rVert_2` in units of `width`. A categorical split has no distance, nor has
    one that uses a value which the point lacks or that sends all points one way.

    Parameters
    ----------
    tree : Tree
        The tree.
    X : ndarray of shape (n, n_features)
        Points.
    leaf : ndarray of int, shape (n,)
        Their leaves.
    width : ndarray of shape (n_features,)
        What counts as a distance of 1, by feature.

    Examples
    --------
    >>> tree = Tree.stump([3.0, 4.0], 5.0, [[1.0, 0.0], [0.0, 1.0]])
    >>> X = np.array([[0.0, 0.0], [3.0, 4.0], [np.nan, 1.0]])
    >>> split_distances(tree, X, np.array([1, 2, 2]), np.ones(2)).tolist()
    [1.0, 4.0, inf]
    """
    distance, parent = np.full(len(X), np.inf), tree.parent
    length = np.sqrt(np.square(tree.weights * width).sum(axis=1))
    at = parent[leaf]
    while np.any(at >= 0):  # from the leaves up
        for node in np.unique(at[at >= 0]):
            if tree.category[node] >= 0 or length[node] == 0.0:
                continue
            rows, used = np.flatnonzero(at == node), np.flatnonzero(tree.weights[node])
            level = X[np.ix_(rows, used)] @ tree.weights[node, used] - tree.threshold[node]
            distance[rows] = np.fmin(distance[rows], np.abs(level) / length[node])
        at = np.where(at >= 0, parent[at], -1)
    return distance
