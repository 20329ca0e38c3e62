r"""Search for the weights of C2RF.

The number of positive rows is a step function of the weights, and along any line in weight space patterns change signs
one at a time, in an order that a sort gives. Two kinds of lines are enough:

* *one weight*: from its smallest to its largest value, all others fixed;
* *a segment* between two weightings, above all between one with too few and one with too many positive rows, where the
  count passes the total and usually hits it.

Starts are equal weights, each member far heavier than the others (by the order of vote patterns the extreme counts
are near those, see :mod:`treewright.formulations.vote_order`), and random ones.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from treewright.budget import Budget
from treewright.formulations import C2RF
from treewright.program import FloatArray
from treewright.search.incumbent import Incumbent

__all__ = ["search_c2rf"]

_ELITE = 30
"""Weightings that segments are drawn between."""
_IDLE = 60
"""Rounds without improvement after which the search ends."""
_SWEEPS = 10
"""Most sweeps over the weights in a round."""


def search_c2rf(
    best: Incumbent[FloatArray], model: C2RF, starts: Iterable[FloatArray], budget: Budget, seed: int = 0
) -> None:
    """Offer weightings to `best` until the totals are met or nothing more is found.

    Parameters
    ----------
    best : Incumbent
        Collects the weights. What it holds already is searched on from.
    model : C2RF
        The model.
    starts : iterable of ndarray
        Weights to begin with.
    budget : Budget
        Ends the search early; equal weights and the starts are offered whatever it says.
    seed : int
        Seed of the random starts.

    Examples
    --------
    >>> votes = np.array([[1, 1, -1], [1, -1, -1], [-1, 1, 1]])
    >>> model = C2RF(votes, np.array([[3.0], [2.0], [5.0]]), low=np.array([8]), high=np.array([8]))
    >>> best = Incumbent(model)
    >>> search_c2rf(best, model, [], Budget(10.0))
    >>> best.objective
    0.0
    """
    for weights in (np.full(model.n_members, model.least), *starts):
        best.offer(weights)
    if not len(model.votes):
        return
    lines = _Lines(model, np.random.default_rng(seed), budget)
    elite = [] if best.solution is None else [best.solution]
    for weights in _heavy_members(model):
        if budget.over or best.proven:
            return
        best.offer(weights)
        elite.append(weights)
    idle = 0
    while idle < _IDLE and not (budget.over or best.proven):
        elite = sorted(elite, key=lines.distance)[:_ELITE]
        found = lines.descended(lines.start(elite, idle))
        for other in lines.opposite(found, elite):
            found = lines.better(found, lines.along(found, other))
        elite.append(found)
        idle = 0 if best.offer(found) else idle + 1


def _heavy_members(model: C2RF) -> Iterable[FloatArray]:
    """Weightings in which one member decides, those of the most extreme counts first."""
    counts = (model.votes > 0).T @ model.size.sum(axis=1)
    order = np.argsort(-np.abs(counts - np.median(counts)), kind="stable")
    for member in order[: 4 * _ELITE]:
        weights = np.full(model.n_members, model.least)
        weights[member] = model.most
        yield weights


class _Lines:
    """Exact minimization along lines in weight space."""

    def __init__(self, model: C2RF, rng: np.random.Generator, budget: Budget) -> None:
        self.model, self.rng, self.budget = model, rng, budget
        self.votes = model.votes.astype(np.float64)

    def distance(self, weights: FloatArray) -> float:
        """Rows that would have to change class."""
        return float(self.model.deviations(self.counts(self.votes @ weights)).sum())

    def counts(self, value: FloatArray) -> FloatArray:
        """Positive rows of each group, for the weighted votes of the patterns."""
        return np.asarray(self.model.size[value > 0].sum(axis=0))

    def better(self, first: FloatArray, second: FloatArray | None) -> FloatArray:
        """Whichever is nearer to the totals."""
        return first if second is None or self.distance(second) >= self.distance(first) else second

    def start(self, elite: list[FloatArray], round_number: int) -> FloatArray:
        """A random weighting, or one of the best with some weights drawn anew."""
        model, t = self.model, self.model.n_members
        fresh = np.exp(self.rng.uniform(np.log(model.least), np.log(model.most), t))
        if round_number % 3 == 0:
            return np.asarray(fresh)
        weights = elite[int(self.rng.integers(min(5, len(elite))))].copy()
        drawn = self.rng.choice(t, min(t, int(self.rng.integers(1, 6))), replace=False)
        weights[drawn] = fresh[drawn]
        return weights

    def opposite(self, weights: FloatArray, elite: list[FloatArray]) -> list[FloatArray]:
        """Some weightings on the other side of the totals, or any where there is no such side."""
        surplus = (self.counts(self.votes @ weights) - (self.model.low + self.model.high) / 2).sum()
        others = [
            other
            for other in elite
            if (self.counts(self.votes @ other) - (self.model.low + self.model.high) / 2).sum() * surplus <= 0
        ]
        pool = others or elite
        chosen = self.rng.choice(len(pool), min(3, len(pool)), replace=False)
        return [pool[int(k)] for k in chosen]

    def descended(self, weights: FloatArray) -> FloatArray:
        """One weight at a time, each to where the deviation is least, until a sweep changes nothing."""
        model, weights = self.model, weights.copy()
        value, least = self.votes @ weights, self.distance(weights)
        for _ in range(_SWEEPS):
            before = least
            for j in self.rng.permutation(model.n_members):
                if least == 0 or self.budget.over:
                    return weights
                vote = self.votes[:, j]
                start = value + (model.least - weights[j]) * vote
                end = value + (model.most - weights[j]) * vote
                found = self._least_on(start, end)
                if found is not None and found[1] <= least:
                    share, least = found
                    weights[j] = model.least + share * (model.most - model.least)
                    value = start + share * (end - start)
            if least >= before:
                break
        return weights

    def along(self, first: FloatArray, second: FloatArray) -> FloatArray | None:
        """The weighting of least deviation on the segment between two."""
        model = self.model
        # On the largest scale the steps are widest.
        first, second = (weights * (model.most / weights.max()) for weights in (first, second))
        found = self._least_on(self.votes @ first, self.votes @ second)
        return None if found is None else np.asarray((1 - found[0]) * first + found[0] * second)

    def _least_on(self, start: FloatArray, end: FloatArray) -> tuple[float, float] | None:
        """Share of the way from `start` to `end` where the deviation is least and no pattern is tied; the deviation."""
        crossing = np.flatnonzero((start > 0) != (end > 0))
        when = start[crossing] / (start[crossing] - end[crossing])
        order = np.argsort(when, kind="stable")
        crossing, when = crossing[order], when[order]
        change = np.where((end[crossing] > 0)[:, None], 1.0, -1.0) * self.model.size[crossing]
        counts = np.vstack([np.zeros((1, change.shape[1])), np.cumsum(change, axis=0)]) + self.counts(start)
        edges = np.concatenate([[0.0], when, [1.0]])
        speed = np.abs(end[crossing] - start[crossing])
        # Half-way between two crossings both patterns must have a margin of 1.
        room = np.diff(edges) * np.minimum(np.append(speed, np.inf), np.insert(speed, 0, np.inf)) / 2
        deviation = np.where(room >= 1.0, self.model.deviations(counts).sum(axis=1), np.inf)
        least = deviation.min()
        if not np.isfinite(least):
            return None
        # Of several the widest: others may be tied there by rounding.
        k = int(np.argmax(np.where(deviation == least, np.diff(edges), -1.0)))
        return float((edges[k] + edges[k + 1]) / 2), float(least)
