"""Search for weights under which the votes for several classes meet their totals without any price.

Counts change by jumps as a weight grows, and with several classes no sort gives all of them at once. So each weight is
tried on a grid, one after the other, from several starts, and the best is kept. Nothing is proven but by a deviation
of 0 or by what is the same under all weights.
"""

from __future__ import annotations

import numpy as np

from treewright.arrays import FloatArray, IntArray
from treewright.budget import Budget
from treewright.data.subset_sums import unreachable_totals

__all__ = ["VoteTable", "search_vote_weights"]

_GRID = 12
"""Values that a weight is tried at."""
_STARTS = 8
"""Random starts."""


class VoteTable:
    """Votes for several classes and the totals.

    Parameters
    ----------
    votes : ndarray of shape (n_patterns, n_members)
        Distinct votes, class numbers.
    size : ndarray of shape (n_patterns, n_groups)
        Rows of each group that a pattern stands for.
    low, high : ndarray of int, shape (n_groups, n_classes)
        Allowed counts.
    """

    def __init__(self, votes: IntArray, size: FloatArray, low: IntArray, high: IntArray) -> None:
        self.votes, self.size, self.low, self.high = votes, size, low, high
        self.n_classes = low.shape[1]

    def ballots(self, weights: FloatArray) -> FloatArray:
        """Sum of the weights of the votes for each class, shape (n_patterns, n_classes)."""
        return np.stack([(self.votes == k) @ weights for k in range(self.n_classes)], axis=1)

    def deviation(self, ballots: FloatArray) -> float:
        """Rows that would have to change class, if each pattern takes the class of the most weight."""
        label = ballots.argmax(axis=1)
        count = np.stack([np.bincount(label, rows, self.n_classes) for rows in self.size.T])
        above = np.maximum(count - self.high, 0).sum(axis=1)
        below = np.maximum(self.low - count, 0).sum(axis=1)
        return float(np.maximum(above, below).sum())

    def lower_bound(self) -> float:
        """A bound for all weights: what all members agree on stays, and counts that no set of patterns has."""
        agreed = (self.votes == self.votes[:, :1]).all(axis=1)
        sure = np.stack(
            [np.bincount(self.votes[agreed, 0], rows[agreed], self.n_classes) for rows in self.size.T]
        ).reshape(self.low.shape)
        possible = np.stack(
            [self.size[(self.votes == k).any(axis=1)].sum(axis=0) for k in range(self.n_classes)], axis=1
        )
        above = np.maximum(sure - self.high, 0).sum(axis=1)
        below = np.maximum(self.low - possible, 0).sum(axis=1)
        missed = unreachable_totals(self.size, self.low, self.high)
        return float(max(np.maximum(above, below).sum(), missed))


def search_vote_weights(
    table: VoteTable, wished: FloatArray, least: float, most: float, floor: float, budget: Budget, seed: int = 0
) -> tuple[FloatArray, float]:
    """Weights of small deviation, and the deviation.

    Parameters
    ----------
    table : VoteTable
        Votes and totals.
    wished : ndarray of shape (n_members,)
        Where to begin.
    least, most : float
        Bounds of the weights.
    floor : float
        Deviation at which nothing better exists.
    budget : Budget
        Ends the search early.
    seed : int
        Seed of the random starts.

    Examples
    --------
    >>> total = np.array([[0, 3, 4]])
    >>> table = VoteTable(np.array([[0, 1, 2], [2, 1, 1]]), np.array([[4.0], [3.0]]), total, total)
    >>> weights, deviation = search_vote_weights(table, np.ones(3), 1.0, 100.0, 0.0, Budget(5.0))
    >>> deviation
    0.0
    """
    rng = np.random.default_rng(seed)
    middle = np.sqrt(least * most)
    best = np.clip(wished / wished.mean() * middle, least, most)
    fewest = table.deviation(table.ballots(best))
    for start in range(_STARTS + 1):
        weights = best if start == 0 else np.exp(rng.uniform(np.log(least), np.log(most), len(wished)))
        weights, deviation = _descended(table, weights, least, most, floor, budget, rng)
        if deviation < fewest:
            best, fewest = weights, deviation
        if fewest <= floor or budget.over:
            break
    return best, fewest


def _descended(
    table: VoteTable,
    weights: FloatArray,
    least: float,
    most: float,
    floor: float,
    budget: Budget,
    rng: np.random.Generator,
) -> tuple[FloatArray, float]:
    """One weight at a time, each to the best value of a grid, until a sweep changes nothing."""
    weights, rows = weights.copy(), np.arange(len(table.votes))
    ballots = table.ballots(weights)
    fewest = table.deviation(ballots)
    for _ in range(10):
        before = fewest
        for j in rng.permutation(len(weights)):
            if fewest <= floor or budget.over:
                return weights, fewest
            grid = np.exp(np.sort(rng.uniform(np.log(least), np.log(most), _GRID)))
            for value in grid:
                changed = ballots.copy()
                changed[rows, table.votes[:, j]] += value - weights[j]
                deviation = table.deviation(changed)
                if deviation < fewest:
                    ballots, fewest, weights[j] = changed, deviation, value
        if fewest >= before:
            break
    return weights, fewest
