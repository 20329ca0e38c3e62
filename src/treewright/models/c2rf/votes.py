r"""Weighted votes cut at totals: weights near wished ones under which a cut by prices, or the plain vote, meets them.

With :math:`p_k(x)` the weighted share of the votes for class k, smoothed so that no share is 0, a row gets the class

.. math:: \arg\max_k \; \log p_k(x) + price_k .

Equal weights and the right price are the plain ensemble, cut at the total. Rows of equal votes cannot be parted by a
price, and neither can different votes of equal weight: then the total is missed. A small change of the weights parts
the latter and changes the order of the former, so weights are changed at random, little at first and then more, until
the totals are met.

Without any price and with several classes counts change by jumps as a weight grows, and no sort gives all of them at
once. So each weight is tried on a grid, one after the other, from several starts, and the best is kept. Nothing is
proven but by a deviation of 0 or by what is the same under all weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.data import PointTotals
from treewright.splits.thresholds import Cuts
from treewright.totals.transport import divide_groups

__all__ = [
    "VoteCut",
    "VoteTable",
    "cut_votes",
    "search_vote_weights",
    "vote_prices",
    "c2rf_vote_shares",
    "wished_weights",
]

_STEPS = (0.0, 1e-6, 1e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3)
"""Sizes of the changes of weights, relative."""
_DRAWS = 60
"""Changes of each size that are tried, fewer where there are many votes."""
_CELLS = 30_000_000
"""Votes that are looked at for the changes of one size."""
_TIED, _GRID, _STARTS = 1e-9, 12, 8
"""Scores nearer than this are tied; values that a weight is tried at; random starts."""


@dataclass(frozen=True)
class VoteCut:
    """C2RF weights and prices, and how well they meet the totals."""

    weights: FloatArray
    """Their mean is 1; shape (n_members,)."""
    prices: FloatArray
    """Added to the logarithms of the shares; shape (n_groups, n_classes)."""
    deviation: float
    """Rows that would have to change class."""


def c2rf_vote_shares(
    votes: IntArray, weights: FloatArray, n_classes: int, asked: BoolArray | None = None
) -> FloatArray:
    """Weighted share of each class among the votes of a C2RF, smoothed by half a vote for each class.

    Parameters
    ----------
    votes : ndarray of shape (n_rows, n_members)
        Class numbers.
    weights : ndarray of shape (n_members,)
        Positive weights.
    n_classes : int
        Number of classes.
    asked : ndarray of bool, shape (n_rows, n_members), or None
        Members whose votes on a row count, as if all had voted like them; NaN where there is none.

    Examples
    --------
    >>> votes = np.array([[0, 1, 1]])
    >>> c2rf_vote_shares(votes, np.ones(3), 2).tolist(), c2rf_vote_shares(votes, np.ones(3), 2, votes == 1).tolist()
    ([[0.375, 0.625]], [[0.125, 0.875]])
    """
    share = weights / weights.sum() * len(weights)
    if asked is None:
        table = np.stack([(votes == k) @ share for k in range(n_classes)], axis=1)
    else:
        table = np.stack([(asked & (votes == k)) @ share for k in range(n_classes)], axis=1)
        total = table.sum(axis=1, keepdims=True)
        table = np.where(total > 0, table / np.where(total > 0, total, 1.0) * len(weights), np.nan)
    return np.asarray((table + 0.5) / (len(weights) + 0.5 * n_classes))


def wished_weights(votes: IntArray, y: IntArray, weight: FloatArray, unseen: np.ndarray, n_classes: int) -> FloatArray:
    r"""Weights of C2RF members from labelled rows they were not fitted on, half-way to equal ones; the mean is 1.

    If members erred independently, the best weight of a vote would be the logarithm of its odds, averaged over the
    classes: :math:`\sum_k \log (K - 1) a_k / (1 - a_k)` with :math:`a_k` the share of class k that the member gets
    right. Classes count the same, however biased the labelled sample is.

    Parameters
    ----------
    votes : ndarray of shape (n_rows, n_members)
        Votes on labelled rows, class numbers.
    y : ndarray of int
        True class numbers.
    weight : ndarray
        Weights of the rows.
    unseen : ndarray of bool, shape (n_rows, n_members)
        Whether the member was not fitted on the row.
    n_classes : int
        Number of classes.

    Examples
    --------
    >>> votes = np.array([[0, 1], [0, 0], [1, 1], [1, 0]])
    >>> w = wished_weights(votes, np.array([0, 0, 1, 1]), np.ones(4), np.ones((4, 2), dtype=bool), 2)
    >>> bool(w[0] > w[1]), float(w.mean())
    (True, 1.0)
    """
    odds = np.zeros(votes.shape[1])
    for k in range(n_classes):
        seen = unseen[y == k] * weight[y == k][:, None]
        right = (seen * (votes[y == k] == k)).sum(axis=0)
        share = (right + 1.0) / (seen.sum(axis=0) + n_classes)
        odds += np.log((n_classes - 1) * share / (1.0 - share)) / n_classes
    odds = np.maximum(odds, 0.025)
    return np.asarray(0.5 + 0.5 * odds / odds.mean())


def cut_votes(
    votes: IntArray,
    totals: PointTotals,
    wished: FloatArray,
    floor: float,
    budget: Budget,
    seed: int = 0,
) -> VoteCut:
    """C2RF weights as near to the wished ones as it takes to meet the totals, and the prices.

    Parameters
    ----------
    votes : ndarray of shape (n_patterns, n_members)
        Distinct votes, class numbers.
    totals : PointTotals
        Rows of each group that the patterns stand for, and the allowed counts.
    wished : ndarray of shape (n_members,)
        Weights to stay near to.
    floor : float
        Deviation at which nothing better exists.
    budget : Budget
        Ends the search early; the wished weights are tried whatever it says.
    seed : int
        Seed of the changes.

    Examples
    --------
    >>> votes = np.array([[0, 0, 1], [0, 1, 1], [1, 1, 0], [1, 1, 1]])
    >>> totals = PointTotals([[5], [1], [4], [2]], low=[[9, 3]], high=[[9, 3]])
    >>> found = cut_votes(votes, totals, np.ones(3), 0.0, Budget(5.0))
    >>> found.deviation, (np.log(c2rf_vote_shares(votes, found.weights, 2)) + found.prices[0]).argmax(axis=1).tolist()
    (0.0, [0, 1, 0, 1])
    """
    rng = np.random.default_rng(seed)
    best: VoteCut | None = None
    draws = int(np.clip(_CELLS // max(1, votes.size), 8, _DRAWS))
    for step in _STEPS:
        for _ in range(draws if step else 1):
            weights = wished * np.exp(step * rng.standard_normal(len(wished)))
            found = _cut(votes, totals, weights / weights.mean())
            if best is None or found.deviation < best.deviation:
                best = found
            if best.deviation <= floor or budget.over:
                return best
    assert best is not None
    return best


def vote_prices(votes: IntArray, totals: PointTotals, weights: FloatArray) -> FloatArray:
    """Prices, (n_groups, n_classes), by which given C2RF weights come nearest to the totals; see :func:`cut_votes`.

    Examples
    --------
    >>> votes, totals = np.array([[0, 0], [1, 1]]), PointTotals(np.ones((2, 1)), low=[[0, 2]], high=[[0, 2]])
    >>> prices = vote_prices(votes, totals, np.ones(2))
    >>> (np.log(c2rf_vote_shares(votes, np.ones(2), 2)) + prices[0]).argmax(axis=1).tolist()
    [1, 1]
    """
    return _cut(votes, totals, weights).prices


def _cut(votes: IntArray, totals: PointTotals, weights: FloatArray) -> VoteCut:
    scores = np.log(c2rf_vote_shares(votes, weights, totals.n_classes))
    prices = _thresholds(scores[:, 1] - scores[:, 0], totals) if totals.n_classes == 2 else _prices(scores, totals)
    # With few members ties are so many that the plain vote may be nearer to the totals than any cut of it.
    found = [(_deviation(scores, totals, some), k) for k, some in enumerate((prices, np.zeros_like(prices)))]
    deviation, k = min(found)
    return VoteCut(weights, np.zeros_like(prices) if k else prices, float(deviation))


def _thresholds(margin: FloatArray, totals: PointTotals) -> FloatArray:
    """Prices of two classes: a cut of each group half-way between two patterns."""
    pattern, group, times = totals.parts
    by_group = np.argsort(group, kind="stable")
    ends_of = np.searchsorted(group[by_group], np.arange(totals.n_groups + 1))
    prices = np.zeros(totals.low.shape)
    low, high = totals.interval(1)
    natural = np.bincount(group, times * (margin[pattern] > 0), totals.n_groups)
    for g in np.flatnonzero(((natural < low) | (natural > high)) & (np.diff(ends_of) > 0)):
        own = by_group[ends_of[g] : ends_of[g + 1]]
        cuts = Cuts(margin[pattern[own]])
        above, cut = cuts.right(times[own]), cuts.thresholds(beyond=1.0)
        missed = np.maximum(np.maximum(above - high[g], low[g] - above), 0.0)
        # Of equally good cuts the one nearest to the majority.
        k = int(cuts.best(missed, cuts.allowed(_TIED), np.abs(cut))[0])
        prices[g] = cut[k] / 2, -cut[k] / 2
    return prices


def _prices(scores: FloatArray, totals: PointTotals) -> FloatArray:
    """Prices of several classes, by the transport of rows."""
    pattern, group, times = totals.parts
    pattern, group = np.repeat(pattern, times), np.repeat(group, times)
    rank = np.random.default_rng(0).permutation(len(pattern))
    return divide_groups(scores[pattern], rank, group, totals.low, totals.high)[1]


def _deviation(scores: FloatArray, totals: PointTotals, prices: FloatArray) -> int:
    """Rows that would have to change class, if each row takes the class of the largest score and price."""
    pattern, group, _ = totals.parts
    label = (scores[pattern] + prices[group]).argmax(axis=1)
    return totals.each_part.missed(label)


class VoteTable:
    """C2RF votes for several classes and the totals, as for :func:`cut_votes`."""

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
    """C2RF weights of small deviation from the totals of several classes, and the deviation.

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
