"""Rows divided among classes within totals, and the prices of the classes that bring it about.

The best division is a transport problem, one node a class. Its dual has one price a class: with the right prices each
row takes the class of the largest score plus price. So prices are sought first, one class at a time, by sorting; what
they leave over or short is then mended exactly, by moving rows along the cheapest chains of classes. No row of the
program is ever written, and the work grows with rows times classes.
"""

from __future__ import annotations

import numpy as np

from treewright.core.arrays import FloatArray, IntArray

__all__ = ["divide", "divide_groups"]

_DIGITS = 12
"""Scores are distinct if they differ in the first twelve digits of the largest; the rest is rounding."""

_SAME = 1e-13
"""Costs this near to each other, in units of the largest score, are equal: a tenth of what is distinct."""

_SWEEPS = 60
"""Rounds over the classes after which prices are near enough for mending; they seldom take half of it."""

_PART = 5000
"""Rows that prices are first sought for, where there are many more."""


def divide(scores: FloatArray, rank: IntArray, low: IntArray, high: IntArray) -> tuple[IntArray, FloatArray]:
    """Label rows within totals so that the sum of scores is largest.

    Parameters
    ----------
    scores : ndarray of shape (n_rows, n_classes)
        How well each class fits, finite; log-probabilities give the most likely labels.
    rank : ndarray of int, shape (n_rows,)
        Distinct numbers in random order: of rows that cost the same, those of the lowest rank change class first.
    low, high : ndarray of int, shape (n_classes,)
        Allowed counts, tight: each is attained by some division of the rows.

    Returns
    -------
    labels : ndarray of int, shape (n_rows,)
        Class numbers; their counts are within ``[low, high]``, always.
    prices : ndarray of shape (n_classes,)
        ``argmax(scores + prices)`` is the label of every row, up to ties. All are 0 if that meets the totals. Otherwise
        a class whose count is strictly inside its interval has price 0, and of all such prices these are in the middle,
        as a threshold is halfway between the last row on one side and the first on the other. Where all totals are
        exact only differences matter, and the mean is 0. A class that may have no row has minus infinity.

    Examples
    --------
    >>> scores = np.log([[0.1, 0.9], [0.4, 0.6], [0.3, 0.7]])
    >>> labels, prices = divide(scores, np.arange(3), np.array([2, 1]), np.array([2, 1]))
    >>> labels.tolist(), (scores + prices).argmax(axis=1).tolist()
    ([1, 0, 0], [1, 0, 0])
    """
    n_rows, n_classes = scores.shape
    if not low.sum() <= n_rows <= high.sum():
        raise ValueError(f"{n_rows} rows cannot be divided: {low.sum()} are needed, {high.sum()} are allowed")
    prices = np.zeros(n_classes)
    if n_rows == 0:
        return np.zeros(0, dtype=np.int64), prices
    used = np.flatnonzero(high > 0)
    prices[high == 0] = -np.inf
    table = np.round(scores[:, used], _DIGITS - _magnitude(scores[:, used]))
    labels = np.asarray(table.argmax(axis=1))
    count = np.bincount(labels, minlength=len(used))
    if np.any(count < low[used]) or np.any(count > high[used]):
        flow = _Flow(table, rank, low[used], high[used])
        flow.mend()
        labels, prices[used] = flow.labels, flow.central_prices()
    return used[labels], prices


def divide_groups(
    scores: FloatArray, rank: IntArray, group_of: IntArray, low: IntArray, high: IntArray
) -> tuple[IntArray, FloatArray]:
    """Divide the rows of each group among the classes within totals, see :func:`divide`.

    Parameters
    ----------
    scores, rank
        As for :func:`divide`.
    group_of : ndarray of int, shape (n_rows,)
        Group number of each row.
    low, high : ndarray of int, shape (n_groups, n_classes)
        Allowed counts.

    Returns
    -------
    labels : ndarray of int, shape (n_rows,)
        Class numbers.
    prices : ndarray of shape (n_groups, n_classes)
        Prices of the classes in each group.
    """
    labels = np.zeros(len(scores), dtype=np.int64)
    prices = np.zeros(low.shape)
    by_group = np.argsort(group_of, kind="stable")
    ends = np.searchsorted(group_of[by_group], np.arange(len(low) + 1))
    for g in range(len(low)):
        rows = by_group[ends[g] : ends[g + 1]]
        labels[rows], prices[g] = divide(scores[rows], rank[rows], low[g], high[g])
    return labels, prices


def _magnitude(scores: FloatArray) -> int:
    """Digits before the point of the largest score."""
    largest = float(np.abs(scores).max())
    return max(0, int(np.ceil(np.log10(largest)))) if largest > 1 else 0


def _near_prices(scores: FloatArray, rank: IntArray, low: IntArray, high: IntArray) -> FloatArray:
    """Prices whose counts nearly meet the totals; those of a part of the rows, where there are many, come first."""
    many = len(scores) > 4 * _PART
    part = scores[np.argpartition(rank, _PART)[:_PART]] if many else scores[:0]
    share = len(part) / len(scores)
    prices = np.zeros(scores.shape[1])
    if len(part):
        prices = _descend(part, prices, np.ceil(low * share).astype(int), np.ceil(high * share).astype(int))
    return _descend(scores, prices, low, high)


def _descend(scores: FloatArray, prices: FloatArray, low: IntArray, high: IntArray) -> FloatArray:
    """Make each price in turn right for its class, the others fixed, until few rows are over or short.

    That is exact descent along the coordinates of the dual. It may stop short of the minimum where many rows tie.
    """
    n_classes = scores.shape[1]
    priced = scores + prices
    prices = prices.copy()
    for _ in range(_SWEEPS):
        before = prices.copy()
        for k in range(n_classes):
            priced[:, k] = -np.inf
            prices[k] = _price(priced.max(axis=1) - scores[:, k], int(low[k]), int(high[k]))
            priced[:, k] = scores[:, k] + prices[k]
        count = np.bincount(priced.argmax(axis=1), minlength=n_classes)
        wrong = np.abs(count - np.clip(count, low, high)).sum()
        if wrong <= 2 * n_classes or np.array_equal(prices, before):
            break
    return prices


def _price(needed: FloatArray, low: int, high: int) -> float:
    """The price nearest to 0 that attracts between `low` and `high` rows, each of which needs at least its own."""
    if np.count_nonzero(needed <= 0) < low:
        wanted = low
    elif np.count_nonzero(needed < 0) > high:
        wanted = high
    else:
        return 0.0
    if wanted == len(needed):
        return float(needed.max())
    if wanted == 0:
        return float(needed.min())
    around = np.partition(needed, (wanted - 1, wanted))[wanted - 1 : wanted + 1]
    return float(around.mean())


class _Flow:
    """Labels and prices that fit together, and totals that are met by cheapest chains of moves.

    Rows flow into their class and from there to a last node, the end, by at least `low` and at most `high`. Prices are
    the potentials of a minimum cost flow, that of the end being 0: no move has a negative reduced cost, so labels are
    the best for the counts they have, at the start and after each cheapest chain. When no class is left with rows
    over or short, they are the best of all.
    """

    def __init__(self, scores: FloatArray, rank: IntArray, low: IntArray, high: IntArray) -> None:
        self.scores, self.rank, self.low, self.high = scores, rank, low, high
        self.n_classes = len(low)
        self.same = _SAME * max(1.0, float(np.abs(scores).max()))
        self.prices = np.append(_near_prices(scores, rank, low, high), 0.0)
        priced = self.prices[:-1]
        self.labels: IntArray = np.asarray((scores + priced).argmax(axis=1))
        count = np.bincount(self.labels, minlength=self.n_classes)
        # Complementary slackness: a class that is paid for has as few as allowed, one that pays as many.
        self.kept = np.where(priced > 0, low, np.where(priced < 0, high, np.clip(count, low, high)))
        self.excess = np.append(count - self.kept, self.kept.sum() - len(scores))
        self.cost = np.full((self.n_classes, self.n_classes), np.inf)
        self._renew(range(self.n_classes))

    def mend(self) -> None:
        """Move rows until every total is met."""
        while np.any(self.excess > 0):
            cost = self._reduced()
            distance, comes_from = self._distances(cost)
            goal = int(np.where(self.excess < 0, distance, np.inf).argmin())
            self.prices = self.prices + np.minimum(distance, distance[goal])
            self.prices -= self.prices[-1]
            chain = [goal]
            while comes_from[chain[-1]] >= 0:
                chain.append(int(comes_from[chain[-1]]))
            self._push(chain[::-1])

    def central_prices(self) -> FloatArray:
        """The middle of all prices that the labels allow.

        Prices are right as long as each move has a reduced cost of at least 0. With D the cheapest chain of moves
        from node to node, adding D[r] or subtracting D[:, r] keeps that, for any r; so does the mean of all of these,
        and it leaves a reduced cost at 0 only where it cannot be otherwise.
        """
        exact = bool(np.all(self.low == self.high))
        cost = self._reduced()
        if exact:  # nothing may flow by another way: the end has no say, only differences of prices matter
            cost = cost[:-1, :-1]
        chain = cost.copy()
        for k in range(len(chain)):
            chain = np.minimum(chain, chain[:, k : k + 1] + chain[k])
        prices = self.prices[: len(chain)] + (chain.mean(axis=0) - chain.mean(axis=1)) / 2
        if exact:
            return np.asarray(prices - prices.mean())
        inside = (self.low < self.kept) & (self.kept < self.high)
        return np.where(inside, 0.0, prices[:-1] - prices[-1])

    def _reduced(self) -> FloatArray:
        """Reduced cost of the cheapest move from node to node, the end being the last."""
        cost = np.full((self.n_classes + 1, self.n_classes + 1), np.inf)
        cost[:-1, :-1] = self.cost
        cost[:-1, -1] = np.where(self.kept < self.high, 0.0, np.inf)
        cost[-1, :-1] = np.where(self.kept > self.low, 0.0, np.inf)
        cost += self.prices[:, None] - self.prices
        cost[cost < self.same] = 0.0  # what is below 0 is rounding
        np.fill_diagonal(cost, 0.0)
        return cost

    def _distances(self, cost: FloatArray) -> tuple[FloatArray, IntArray]:
        """Cheapest chains from nodes with rows over: their cost, and the node before each (Dijkstra)."""
        distance = np.where(self.excess > 0, 0.0, np.inf)
        before = np.full(len(cost), -1)
        open_ = np.ones(len(cost), dtype=bool)
        for _ in range(len(cost)):
            here = int(np.where(open_, distance, np.inf).argmin())
            open_[here] = False
            nearer = open_ & (distance[here] + cost[here] < distance)
            distance[nearer] = distance[here] + cost[here][nearer]
            before[nearer] = here
        return distance, before

    def _push(self, chain: list[int]) -> None:
        """Move as many rows along the chain as cost the same; on each way those of the lowest rank."""
        end = self.n_classes
        steps = list(zip(chain[:-1], chain[1:], strict=True))
        movable = {(a, b): self._movable(a, b) for a, b in steps if end not in (a, b)}
        most = [int(self.excess[chain[0]]), int(-self.excess[chain[-1]]), *(len(rows) for rows in movable.values())]
        most += [int(self.high[a] - self.kept[a]) for a, b in steps if b == end]
        most += [int(self.kept[b] - self.low[b]) for a, b in steps if a == end]
        amount = min(most)
        for a, b in steps:
            if b == end:
                self.kept[a] += amount
            elif a == end:
                self.kept[b] -= amount
            else:
                rows = movable[a, b]
                self.labels[rows[np.argsort(self.rank[rows])[:amount]]] = b
        self.excess[chain[0]] -= amount
        self.excess[chain[-1]] += amount
        self._renew({node for step in movable for node in step})

    def _movable(self, a: int, b: int) -> IntArray:
        """Rows of class a whose move to class b is as cheap as any."""
        rows = np.flatnonzero(self.labels == a)
        cost = self.scores[rows, a] - self.scores[rows, b]
        return rows[cost <= self.cost[a, b] + self.same]

    def _renew(self, classes: range | set[int]) -> None:
        """Find the cheapest moves out of the classes."""
        for a in classes:
            rows = self.scores[self.labels == a]
            if len(rows):
                self.cost[a] = (rows[:, a, None] - rows).min(axis=0)
            else:
                self.cost[a] = np.inf
