r"""What positive weights imply among vote patterns, whatever the weights are.

A pattern :math:`r \in \{-1, 1\}^t` holds the votes of t members, and :math:`\alpha > 0` their weights. Then for any two
patterns the signs of :math:`\alpha^\top r_i` and :math:`\alpha^\top r_k` obey

* :math:`r_k \le r_i`: where k is positive, so is i;
* :math:`r_i + r_k \ge 0`: they are not both negative;
* :math:`r_i + r_k \le 0`: they are not both positive.

Only covering pairs are needed, the rest follows from them. The negative patterns of a weighting are thus, as sets of
members against, an intersecting family, and large intersecting families tend to be all sets that hold one member: that
is why a single heavy member is so often optimal, and why these pairs prove it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from treewright.core.arrays import IntArray

__all__ = ["VoteOrder", "vote_order"]

Pairs = tuple[IntArray, IntArray]


@dataclass(frozen=True)
class VoteOrder:
    """Covering pairs among patterns, each as two arrays of pattern numbers."""

    implies: Pairs
    """(k, i): where k is positive, so is i."""
    one_positive: Pairs
    """(i, k): at least one is positive."""
    one_negative: Pairs
    """(i, k): at least one is negative."""


def vote_order(votes: IntArray) -> VoteOrder:
    """Covering pairs of distinct patterns.

    Parameters
    ----------
    votes : ndarray of shape (n_patterns, n_members)
        Entries -1 and 1. The work is that of a few products of matrices of n_patterns columns and rows.

    Returns
    -------
    VoteOrder
        The pairs.

    Examples
    --------
    >>> order = vote_order(np.array([[1, 1, -1], [1, -1, -1], [-1, -1, 1]]))
    >>> [(int(k), int(i)) for k, i in zip(*order.implies)]
    [(1, 0)]
    >>> [(int(i), int(k)) for i, k in zip(*order.one_positive)], [(int(i), int(k)) for i, k in zip(*order.one_negative)]
    ([(0, 2)], [(0, 2)])
    """
    against = (votes < 0).astype(np.float32)
    size = against.sum(axis=1)
    common = against @ against.T
    # Pattern i votes against in a proper part of k's members against.
    inside = (common == size[:, None]) & (size[:, None] < size[None, :])
    steps = inside.astype(np.float32)
    covered = inside & ~((steps @ steps) > 0)
    i, k = np.nonzero(covered)
    never_both_against = common == 0
    never_both_for = votes.shape[1] - size[:, None] - size[None, :] + common == 0
    return VoteOrder(
        implies=(k, i),
        one_positive=_outermost(never_both_against, steps),
        one_negative=_outermost(never_both_for, steps.T),
    )


def _outermost(related: np.ndarray, steps: np.ndarray) -> Pairs:
    """Related pairs of which neither end can take a step further: ``steps[i, j]`` if j is beyond i."""
    further = (steps @ related.astype(np.float32)) > 0
    i, k = np.nonzero(np.triu(related & ~further & ~further.T))
    return i, k
