r"""Search for the weights of C2RF.

The number of positive rows is a step function of the weights, and along any line in weight space patterns change signs
one at a time, in an order that a sort gives. Two kinds of lines are enough:

* *one weight*: from its smallest to its largest value, all others fixed;
* *a segment* between two weightings, above all between one with too few and one with too many positive rows, where the
  count passes the total and usually hits it.

Starts are equal weights, each member far heavier than the others (by the order of vote patterns the extreme counts
are near those, see :mod:`treewright.models.c2rf.objective`), and random ones.

Of many optimal weightings one is taken that is near to those that mimic the cut of the plain ensemble at the totals.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.models.c2rf.objective import C2RF
from treewright.models.c2rf.votes import c2rf_vote_shares, vote_prices
from treewright.optimize.incumbent import Incumbent
from treewright.solvers.linear import LinearProgram
from treewright.solvers.vocabulary import Status
from treewright.splits.joining import solve_joining
from treewright.splits.thresholds import Segment

__all__ = ["cut_without_threshold", "mimicking_weights", "optimum_near_wish", "nearest_weights", "search_c2rf"]

_ELITE = 30
"""Weightings that segments are drawn between."""
_IDLE = 60
"""Rounds without improvement after which the search ends."""
_SWEEPS = 10
"""Most sweeps over the weights in a round."""
_DIRECTIONS = 200
"""Random weightings toward which an optimum near the wished weights is looked for."""
_NEARLY = 0.005
"""Share of the rows by which a deviation may be larger where one begins to tune."""
_BASES = 12
"""Weightings that are tuned."""
_TUNING = (2.0, -2.0, 4.0, -4.0, 8.0, -8.0)
"""Steps of a weight in tuning."""
_MOVES = 60
"""Steps in tuning a weighting."""
_TUNED_CELLS = 4_000_000
"""Votes beyond which nothing is tuned."""
_ROWS = 400
"""Patterns that join the program at a time, those nearest to a tie first."""
_ROUNDS = 30
"""Most programs that are solved."""
_PIECES = np.concatenate([0.1 * 1.6 ** np.arange(14), [np.inf]])
"""Widths of the pieces on which the square of a distance is linear."""
_SLOPES = np.concatenate([[0.0], np.cumsum(_PIECES[:-1])]) + 0.5 * np.append(_PIECES[:-1], _PIECES[-2])
_SECONDS = 30.0
"""Most seconds of a program."""
_SLACK = 1e-6
"""Margins are asked for a little wider, so that a solver's tolerance never brings them below 1."""


def search_c2rf(
    best: Incumbent[FloatArray], model: C2RF, starts: Iterable[FloatArray], budget: Budget, seed: int = 0
) -> None:
    """Offer C2RF weightings to `best` until the totals are met or nothing more is found; equal weights in any case.

    What `best` holds already is searched on from.

    Examples
    --------
    >>> from treewright.data import PointTotals
    >>> votes = np.array([[1, 1, -1], [1, -1, -1], [-1, 1, 1]])
    >>> model = C2RF(votes, PointTotals([[3], [2], [5]], low=[[2, 8]], high=[[2, 8]]))
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
    idle, rows = 0, float(model.totals.rows.sum())
    while idle < _IDLE and not (budget.over or best.proven):
        elite = sorted(elite, key=lines.distance)[:_ELITE]
        found = lines.descended(lines.start(elite, idle))
        for other in lines.opposite(found, elite):
            found = lines.better(found, lines.along(found, other))
        if lines.distance(found) <= _NEARLY * rows and model.votes.size <= _TUNED_CELLS:
            found = lines.better(found, lines.tuned(found, best.floor))
        elite.append(found)
        idle = 0 if best.offer(found) else idle + 1


def optimum_near_wish(
    model: C2RF, weights: FloatArray, wished: FloatArray, budget: Budget, seed: int = 0
) -> FloatArray:
    """Another C2RF weighting of at most the same deviation, nearer to the wished one if the ways looked at have one.

    From the wished weights one goes straight toward `weights`, toward heavy members and toward random weightings, to
    where the deviation is first nearly as small as that of `weights`; from the nearest of these places small steps of
    single weights lead to a deviation that is as small. Wished weights may have any scale.

    Examples
    --------
    >>> from treewright.data import PointTotals
    >>> votes = np.array([[1, 1, -1], [1, -1, -1], [-1, 1, 1]])
    >>> model = C2RF(votes, PointTotals([[3], [2], [5]], low=[[5, 5]], high=[[5, 5]]))
    >>> near = optimum_near_wish(model, np.array([100.0, 1.0, 1.0]), np.ones(3), Budget(10.0))
    >>> model.objective(near), bool(near.max() / near.min() < 10)
    (0.0, True)
    """
    lines = _Lines(model, np.random.default_rng(seed), budget)
    target, best, least = model.objective(weights), weights, _spread(weights, wished)
    wished = np.clip(wished * (model.most / wished.max()), model.least, model.most)
    bases = []
    if model.votes.size > _TUNED_CELLS:
        return best
    for other in [weights, *_heavy_members(model), *(lines.fresh() for _ in range(_DIRECTIONS))]:
        if budget.over:
            return best
        base = lines.nearly(wished, other, target + _NEARLY * float(model.totals.rows.sum()))
        if base is not None:
            bases.append((_spread(base, wished), base))
    for spread, base in sorted(bases, key=lambda pair: pair[0])[:_BASES]:
        if spread >= least or budget.over:
            break
        found = lines.tuned(base, target)
        if found is not None and _spread(found, wished) < least and model.objective(found) <= target:
            best, least = found, _spread(found, wished)
    return best


def _spread(weights: FloatArray, wished: FloatArray) -> float:
    """Distance of two weightings, whatever their scales."""
    return float(np.sum((weights / weights.mean() - wished / wished.mean()) ** 2))


def _heavy_members(model: C2RF) -> Iterable[FloatArray]:
    """Weightings in which one member decides, those of the most extreme counts first."""
    counts = (model.votes > 0).T @ model.totals.rows
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
        return float(self.model.totals.missed(self.votes @ weights > 0))

    def surplus(self, weights: FloatArray) -> float:
        """Positive rows beyond the middle of what is wanted, all groups together."""
        low, high = self.model.wanted
        return float((self.model.positive(weights) - (low + high) / 2).sum())

    def better(self, first: FloatArray, second: FloatArray | None) -> FloatArray:
        """Whichever is nearer to the totals."""
        return first if second is None or self.distance(second) >= self.distance(first) else second

    def start(self, elite: list[FloatArray], round_number: int) -> FloatArray:
        """A random weighting, or one of the best with some weights drawn anew."""
        fresh, t = self.fresh(), self.model.n_members
        if round_number % 3 == 0:
            return fresh
        weights = elite[int(self.rng.integers(min(5, len(elite))))].copy()
        drawn = self.rng.choice(t, min(t, int(self.rng.integers(1, 6))), replace=False)
        weights[drawn] = fresh[drawn]
        return weights

    def fresh(self) -> FloatArray:
        """Random weights, the logarithm uniform."""
        low, high = np.log(self.model.least), np.log(self.model.most)
        return np.asarray(np.exp(self.rng.uniform(low, high, self.model.n_members)))

    def opposite(self, weights: FloatArray, elite: list[FloatArray]) -> list[FloatArray]:
        """Some weightings on the other side of the totals, or any where there is no such side."""
        surplus = self.surplus(weights)
        others = [other for other in elite if self.surplus(other) * surplus <= 0]
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

    def nearly(self, first: FloatArray, second: FloatArray, target: float) -> FloatArray | None:
        """The first weighting on the way from `first` to `second` whose deviation is at most `target`."""
        second = second * (self.model.most / second.max())
        start, end = self.votes @ first, self.votes @ second
        way = Segment(start, end)
        good = np.flatnonzero(self._missed(way, start, end) <= target)
        if not len(good):
            return None
        share = way.middle(int(good[0]))
        return np.asarray((1 - share) * first + share * second)

    def tuned(self, base: FloatArray, target: float) -> FloatArray | None:
        """A feasible weighting of at most this deviation near another one, by steps among whole numbers of odd sum.

        No pattern is tied under such weights. Steps of even size keep the sum odd; the best one is taken, and a random
        one where none helps.
        """
        model = self.model
        weights = model.whole(base)
        value = self.votes @ weights
        for _ in range(_MOVES):
            now = float(model.totals.missed(value > 0))
            if now <= target or self.budget.over:
                return weights if now <= target else None
            step, least = None, now
            for size in _TUNING:
                moved = value[:, None] + size * self.votes
                missed = model.totals.deviation(model.totals.counts(moved.T > 0))
                allowed = (weights + size >= model.least) & (weights + size <= model.most)
                deviation = np.where(allowed, missed, np.inf)
                if deviation.min() < least:
                    step, least = (int(np.argmin(deviation)), size), float(deviation.min())
            j, size = step or (int(self.rng.integers(len(weights))), float(self.rng.choice([-2.0, 2.0])))
            if model.least <= weights[j] + size <= model.most:
                weights[j] += size
                value = value + size * self.votes[:, j]
        return None

    def _least_on(self, start: FloatArray, end: FloatArray) -> tuple[float, float] | None:
        """Share of the way from `start` to `end` where the deviation is least and no pattern is tied; the deviation."""
        way = Segment(start, end)
        # Of several the widest: others may be tied there by rounding.
        return way.best(self._missed(way, start, end), room=1.0, widest=True)

    def _missed(self, way: Segment, start: FloatArray, end: FloatArray) -> IntArray:
        """Deviation in each step of a way."""
        return self.model.totals.missed_along(
            (start > 0).astype(np.int64), way.points, (end[way.points] > 0).astype(np.int64)
        )


def cut_without_threshold(model: C2RF, wished: FloatArray) -> FloatArray:
    """C2RF weights near the labels that the wished ones, on any scale, give with a threshold at the totals.

    Examples
    --------
    >>> from treewright.data import PointTotals
    >>> votes = np.array([[1, 1, 1], [1, 1, -1], [-1, -1, -1]])
    >>> model = C2RF(votes, PointTotals(np.ones((3, 1)), low=[[2, 1]], high=[[2, 1]]))
    >>> w = cut_without_threshold(model, np.ones(3))
    >>> bool(w[2] > w[0] + w[1])
    True
    """
    numbers = (model.votes > 0).astype(np.int64)
    prices = vote_prices(numbers, model.totals, wished)
    scores = np.log(c2rf_vote_shares(numbers, wished, 2))
    # A pattern of several groups is labelled for its largest.
    positive = (scores + prices[model.totals.largest_group]).argmax(axis=1) == 1
    return mimicking_weights(model.votes, model.totals.rows, positive, wished, model.least, model.most)


def mimicking_weights(
    votes: IntArray, size: IntArray, positive: np.ndarray, wished: FloatArray, least: float, most: float
) -> FloatArray:
    r"""C2RF weights without threshold whose labels come near to given ones, such as those of a cut.

    .. math:: \min \sum_i s_i \log(1 + \exp(-4 \sigma_i \beta^\top r_i / \sqrt t)),\; l / u \le \beta_j \le 1

    from the wished weights on: a convex problem in as many variables as members.

    Parameters
    ----------
    votes : ndarray of shape (n_patterns, n_members)
        Entries -1 and 1.
    size : ndarray of shape (n_patterns,)
        Rows that the patterns stand for.
    positive : ndarray of bool
        The labels to come near to.
    wished : ndarray of shape (n_members,)
        Where to begin.
    least, most : float
        Bounds of the weights.

    Examples
    --------
    >>> votes = np.array([[1, -1, -1], [1, 1, -1], [-1, 1, 1]])
    >>> w = mimicking_weights(votes, np.ones(3), np.array([True, True, False]), np.ones(3), 1.0, 100.0)
    >>> (votes @ w > 0).tolist()
    [True, True, False]
    """
    signed = votes * np.where(positive, 4.0, -4.0)[:, None] / np.sqrt(votes.shape[1])
    share = size / size.sum()

    def loss(beta: FloatArray) -> tuple[float, FloatArray]:
        margin = signed @ beta
        return float(share @ np.logaddexp(0.0, -margin)), np.asarray(-(share * expit(-margin)) @ signed)

    start = np.clip(wished / wished.max(), least / most, 1.0)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(least / most, 1.0)] * len(start))
    return np.asarray(most * np.clip(found.x, least / most, 1.0))


def nearest_weights(model: C2RF, weights: FloatArray, wished: FloatArray, budget: Budget) -> FloatArray:
    r"""C2RF weights with the signs of `weights` on all patterns, as near to the wished ones as that allows.

    .. math:: \min\; \sum_j (\beta_j - w_j)^2 \quad\text{s.t.}\quad
              \sum_j \beta_j = \sum_j w_j,\; \sigma_i \beta^\top r_i \ge m / u,\; (l / u)\, m \le \beta_j \le m

    and :math:`\alpha = (u / m)\, \beta`: only ratios of weights matter, and on the scale on which the largest is u the
    margins are at least 1. The square is approximated by pieces, so that this is a linear program. Patterns join it
    when its solution misses them.

    Arguments are those of :func:`optimum_near_wish`. When the budget ends, `weights` are returned as they are, else
    feasible ones of the same objective.

    Examples
    --------
    >>> from treewright.data import PointTotals
    >>> votes = np.array([[1, 1, -1], [1, -1, -1], [-1, 1, 1]])
    >>> model = C2RF(votes, PointTotals(np.ones((3, 1)), low=[[1, 2]], high=[[1, 2]]))
    >>> near = nearest_weights(model, np.array([90.0, 3.0, 80.0]), np.ones(3), Budget(5.0))
    >>> (votes @ near > 0).tolist(), bool(near.max() / near.min() < 3)
    ([True, True, False], True)
    """
    if not len(model.votes):
        return weights
    wished = wished / wished.mean()
    sign = np.where(model.votes @ weights > 0, 1.0, -1.0)
    signed = np.unique(model.votes * sign[:, None], axis=0).astype(np.float64)
    program = _Program(wished, model.least, model.most)
    found = solve_joining(
        program.solve,
        lambda some: program.join(signed[some]),
        lambda x: x[len(wished)] / model.most * (1 + _SLACK / 2) - signed @ x[: len(wished)],
        np.zeros(len(signed), dtype=bool),
        np.argsort(signed @ wished, kind="stable")[:_ROWS],
        at_a_time=_ROWS,
        rounds=_ROUNDS,
        budget=budget,
    )
    if found.solution is None or not found.complete:
        return weights
    beta, largest = found.solution[: len(wished)], float(found.solution[len(wished)])
    near = model.repair(np.asarray(beta * (model.most / largest)))
    return near if model.objective(near) <= model.objective(weights) else weights


class _Program:
    """Columns are the weights, the largest of them, and the pieces of their distances; patterns join as rows."""

    def __init__(self, wished: FloatArray, least: float, most: float) -> None:
        t, n_pieces = len(wished), len(_PIECES)
        self.t, self.margin = t, (1 + _SLACK) / most
        one, column, distance = (
            sparse.eye_array(t),
            np.ones((t, 1)),
            sparse.kron(sparse.eye_array(t), np.ones(n_pieces)),
        )
        cost = np.concatenate([np.zeros(t + 1), np.tile(_SLOPES, t)])
        self.program = LinearProgram(cost, 0.0, np.concatenate([np.full(t + 1, np.inf), np.tile(_PIECES, t)]))
        self.program.add_rows(sparse.hstack([one, -column]), -np.inf, 0.0)
        self.program.add_rows(sparse.hstack([one, -least / most * column]), 0.0, np.inf)
        self.program.add_rows(sparse.hstack([one, 0.0 * column, -distance]), -np.inf, wished)
        self.program.add_rows(sparse.hstack([one, 0.0 * column, distance]), wished, np.inf)
        self.program.add_rows(np.ones((1, t)), wished.sum(), wished.sum())

    def join(self, signed: FloatArray) -> None:
        """Let patterns join, each with a margin."""
        rows = np.hstack([signed, np.full((len(signed), 1), -self.margin)])
        self.program.add_rows(rows, 0.0, np.inf)

    def solve(self, seconds: float) -> FloatArray | None:
        """Weights and the largest of them, None where there are none in time."""
        solved = self.program.solve(min(_SECONDS, seconds))
        return solved.x if solved.status is Status.OPTIMAL else None
