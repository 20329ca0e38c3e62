"""Search for weights under which the votes for several classes meet their totals without any price.

Counts change by jumps as a weight grows, and with several classes no sort gives all of them at once. So each weight is
tried on a grid, one after the other, from several starts, and the best is kept. Nothing is proven but by a deviation
of 0 or by what is the same under all weights.
"""

from __future__ import annotations

import numpy as np

from treewright.arrays import FloatArray, IntArray
from treewright.budget import Budget
from treewright.data import PointTotals

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
    totals : PointTotals
        Rows of each group that the patterns stand for, and the allowed counts.
    """

    def __init__(self, votes: IntArray, totals: PointTotals) -> None:
        self.votes, self.totals, self.n_classes = votes, totals, totals.n_classes

    def ballots(self, weights: FloatArray) -> FloatArray:
        """Sum of the weights of the votes for each class, shape (n_patterns, n_classes)."""
        return np.stack([(self.votes == k) @ weights for k in range(self.n_classes)], axis=1)

    def deviation(self, ballots: FloatArray) -> float:
        """Rows that would have to change class, if each pattern takes the class of the most weight."""
        return float(self.totals.missed(ballots.argmax(axis=1)))

    def lower_bound(self) -> float:
        """A bound for all weights: what all members agree on stays, and counts that no set of patterns has."""
        totals, agreed = self.totals, (self.votes == self.votes[:, :1]).all(axis=1)
        sure = totals.of(agreed).counts(self.votes[agreed, 0])
        possible = np.stack(
            [totals.of((self.votes == k).any(axis=1)).group_rows for k in range(self.n_classes)], axis=1
        )
        missed = np.maximum(totals.excess(sure).sum(axis=1), totals.lack(possible).sum(axis=1))
        return float(max(missed.sum(), totals.unreachable))


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
    >>> totals = PointTotals([[4], [3]], low=[[0, 3, 4]], high=[[0, 3, 4]])
    >>> table = VoteTable(np.array([[0, 1, 2], [2, 1, 1]]), totals)
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
