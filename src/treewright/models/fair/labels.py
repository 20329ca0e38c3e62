"""How unlike protected groups are treated, and the labels of leaves that are best for errors and that together."""

from __future__ import annotations

import numpy as np

from treewright.core.arrays import FloatArray, IntArray

__all__ = ["fair_leaf_labels", "discrimination"]

_CELLS = 2_000_000
"""Labellings are all tried where these, times classes and leaves or protected groups, are no more than so many."""


def discrimination(share: FloatArray, part: FloatArray) -> FloatArray:
    r"""Fair trees: the index of disparate impact of Aghaei, Azizi and Vayanos (2019), of predictions.

    .. math:: \sum_{a,c} |P(\hat y = c \mid a) - P(\hat y = c)|

    Parameters
    ----------
    share : ndarray of shape (..., n_protected, n_classes)
        Share of each class among the predictions of each protected group.
    part : ndarray of shape (n_protected,)
        Share of each group among all rows; their sum is 1.

    Examples
    --------
    >>> discrimination(np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([0.5, 0.5])).item()
    1.0
    """
    mean = np.einsum("a,...ak->...k", part, share)
    return np.asarray(np.abs(share - mean[..., None, :]).sum(axis=(-2, -1)))


def fair_leaf_labels(error: FloatArray, reach: FloatArray, part: FloatArray, price: float) -> IntArray:
    """Labels of the leaves of a fair tree with the least error plus `price` times :func:`discrimination`.

    All labellings are tried where they are few. Otherwise labels change one at a time, from the best label of each leaf
    and from one label for all, and the best end is taken.

    Parameters
    ----------
    error : ndarray of shape (n_leaves, n_classes)
        What each label costs in errors at each leaf.
    reach : ndarray of shape (n_leaves, n_protected)
        Share of each protected group that is in each leaf.
    part : ndarray of shape (n_protected,)
        Share of each group among all rows.
    price : float
        Price of discrimination.

    Examples
    --------
    >>> error, reach = np.array([[0.0, 0.4], [0.1, 0.0]]), np.eye(2)
    >>> part = np.array([0.5, 0.5])
    >>> fair_leaf_labels(error, reach, part, 0.0).tolist(), fair_leaf_labels(error, reach, part, 0.2).tolist()
    ([0, 1], [0, 0])
    """
    n_leaves, n_classes = error.shape
    plain = error.argmin(axis=1)
    if price <= 0 or n_classes == 1:
        return plain

    def cost(labels: IntArray) -> FloatArray:
        """Of labellings, one a row."""
        one_hot = (labels[:, :, None] == np.arange(n_classes)).astype(np.float64)
        share = np.einsum("nlk,la->nak", one_hot, reach)
        return np.einsum("nlk,lk->n", one_hot, error) + price * discrimination(share, part)

    each = n_classes * max(n_leaves, len(part))
    if n_leaves * np.log2(n_classes) < 32 and n_classes**n_leaves * each <= _CELLS:
        number = np.arange(n_classes**n_leaves)[:, None]
        every = number // n_classes ** np.arange(n_leaves)[::-1] % n_classes
        return np.asarray(every[_first_least(cost(every))])
    ends = [_descended(start, n_classes, cost) for start in (plain, *(np.full(n_leaves, k) for k in range(n_classes)))]
    return ends[_first_least(np.array([cost(labels[None])[0] for labels in ends]))]


def _first_least(cost: FloatArray) -> int:
    """The first of those that are least but for rounding."""
    return int(np.argmax(cost <= cost.min() + 1e-12))


def _descended(labels: IntArray, n_classes: int, cost: object) -> IntArray:
    """Labels after the best change of a single one, again and again, until none helps."""
    assert callable(cost)
    n_leaves = len(labels)
    now = float(cost(labels[None])[0])
    while True:
        near = np.repeat(labels[None], n_leaves * n_classes, axis=0)
        near[np.arange(len(near)), np.repeat(np.arange(n_leaves), n_classes)] = np.tile(np.arange(n_classes), n_leaves)
        found = cost(near)
        best = _first_least(found)
        if found[best] >= now - 1e-12:
            return labels
        labels, now = near[best], float(found[best])
