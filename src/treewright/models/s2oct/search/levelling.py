"""A taught tree meets the totals: thresholds move to where the counts are right and most of what was taught is kept.

Along a direction of a node every place of its threshold is looked at, by sorting: how many rows miss the totals there,
and how much of what was taught is right. The best of all nodes is taken, again and again. Directions near to a node's
own are tried as well: on a table of few distinct values a threshold alone moves many rows at a time, and a hyperplane
that is turned a little, or has one more feature if it may, parts them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.data.point_totals import PointTotals
from treewright.models.s2oct.search.data import Survey
from treewright.models.s2oct.search.levelling_loops import best_place
from treewright.tree.complete import Planes, labels_on_either_side, leaves_reached, passes

__all__ = ["MISSED", "Levelling"]

MISSED = 3.0
"""Worth of a row that misses totals which cannot be met."""
_PRICES = (1.0, 2.0, 4.0, 1e9)
"""Of a row that misses the totals, in points that lose what was taught, in turn; the last counts before all else."""
_SIDEWAYS = 0.02
"""Share of what was taught that moves may give up which leave as many rows amiss."""
_KICK = 0.5
"""Price of rows that miss the totals for moves away from totals that are met."""
_TURN = (0.05, 0.5)
"""How far directions near to a node's own are turned."""
_ADDED = (0.02, 0.2)
"""What one more feature moves points by, as a share of what the direction does."""


@dataclass(frozen=True, eq=False)
class _State:
    """Hyperplanes, rows that would have to change class, and worth of the points that have the labels they should."""

    planes: Planes
    missed: int
    kept: float

    def score(self, price: float) -> float:
        """What is kept, less the price of rows that miss."""
        return self.kept - price * self.missed


@dataclass(eq=False)
class Levelling:
    """What an S2OCT is taught of all points, and moves of thresholds that bring counts to the totals.

    Attributes
    ----------
    survey, taught, rng, budget
        See :mod:`treewright.models.s2oct.search`.
    worth : ndarray of shape (n_labelled + n_unlabelled,)
        How much each point counts, labelled ones first.
    most : int or None
        Most features of a split, None for any number.
    """

    survey: Survey
    taught: IntArray
    worth: FloatArray
    rng: np.random.Generator
    budget: Budget
    most: int | None = None

    def __post_init__(self) -> None:
        survey = self.survey
        self.X = np.vstack([survey.X, survey.hidden])
        self.wanted = np.concatenate([survey.y, self.taught])
        self.n_known = len(survey.X)

    def missed(self, planes: Planes) -> int:
        """Rows that would have to change class."""
        return int(self.survey.totals.missed(self._labels(planes)[self.n_known :]))

    def kept(self, planes: Planes) -> float:
        """Worth of the points that have the labels they should have."""
        return float(self.worth @ (self._labels(planes) == self.wanted))

    def level(self, planes: Planes, gentle: bool = True, kicks: int = 0) -> Planes:
        """Move thresholds until the totals are met or no move comes nearer to them.

        If that is to be `gentle`, rows that miss the totals cost little at first and then more and more: so moves that
        give up little of what was taught come first. Else each move comes as near to the totals as it can. Where the
        totals are not met in the end, the best of what was passed on the way: most kept, less several times the rows
        that miss. Totals that are met are left again `kicks` times, to keep more.
        """
        search = self.survey.search
        best = state = _State(planes, self.missed(planes), self.kept(planes))
        for price in _PRICES if gentle else _PRICES[-1:]:
            last = gentle and price == _PRICES[-1]
            for _ in range(search.levelling_last_rounds if last else search.levelling_rounds):
                found = None if state.missed == 0 or self.budget.over else self._best_move(state, price, sideways=last)
                if found is None:
                    break
                state = found
                if state.missed == 0 or state.score(MISSED) > best.score(MISSED):
                    best = state
        return self._improved(best, kicks).planes if best.missed == 0 else best.planes

    def _improved(self, best: _State, kicks: int) -> _State:
        """Keep more of what was taught and meet the totals still: a move away from them, and others that come back."""
        for _ in range(kicks):
            if self.budget.over:
                break
            state = self._best_move(best, _KICK)
            for _ in range(self.survey.search.levelling_rounds):
                if state is None or state.missed == 0 or state.kept <= best.kept:
                    break
                state = self._best_move(state, _PRICES[-1])
            if state is not None and state.missed == 0 and state.kept > best.kept:
                best = state
        return best

    def _labels(self, planes: Planes) -> IntArray:
        return planes.labels[leaves_reached(planes.values(self.X))]

    def _best_move(self, state: _State, price: float, sideways: bool = False) -> _State | None:
        """The move after which most is kept, less the price of rows that miss the totals; None if none is better.

        A move `sideways`, to another direction, may give up some of what was taught: from there others may go on.
        """
        planes, best, better, search = state.planes, None, state.score(price) + 1e-9, self.survey.search
        most = better - (_SIDEWAYS * float(self.worth.sum()) if sideways else 0.0)
        values = planes.values(self.X)
        leaf = leaves_reached(values)
        base = planes.labels[leaf]
        right = self.worth * (base == self.wanted)
        turns = int(np.clip(search.turn_cells // (self.X.size * max(1, len(planes.gamma))), 0, search.turns))
        for node in np.flatnonzero(planes.omega.any(axis=1)):
            here = np.flatnonzero(passes(leaf, int(node), planes.shape)[0])
            if not len(here) or self.budget.over:
                continue
            places = self._places(here, *labels_on_either_side(planes, int(node), values[here]), base)
            elsewhere = float(right.sum() - right[here].sum())
            X = self.X[here]
            for turned, omega in enumerate(self._directions(planes.omega[node], turns)):
                threshold, missed, kept = places.best(X @ omega, price)
                if kept + elsewhere - price * missed > (most if turned else max(most, better)):
                    best = _State(planes.replaced(int(node), omega, threshold), missed, kept + elsewhere)
                    most = best.score(price)
        return best

    def _places(self, here: IntArray, if_left: IntArray, if_right: IntArray, base: IntArray) -> _Places:
        """The points at a node, `here`, with the labels that they have on either side of its hyperplane."""
        number, totals = here - self.n_known, self.survey.totals
        hidden = number >= 0
        start = base[self.n_known :].copy()
        start[number[hidden]] = if_right[hidden]
        # Points keep their margins on both sides of a threshold once the hyperplane is stretched: a gap for a
        # hyperplane whose largest weight is s.
        least_gap = 2.0 * self.survey.model.required * (1 + 1e-6)
        labels = number, if_left, if_right, self.wanted[here]
        return _Places(totals, *labels, self.worth[here], totals.counts(start), least_gap)

    def _directions(self, own: FloatArray, turns: int) -> list[FloatArray]:
        """The direction of a node, and some near to it: turned over the same features, or with one more."""
        used, found = own != 0, [own]
        size, width = float(np.abs(own).max()), self.survey.width
        reach = float((np.abs(own) * width).max())
        free = np.flatnonzero(~used) if self.most is None or np.count_nonzero(used) < self.most else used[:0]
        for k in range(turns):
            if k % 2 == 0 and np.count_nonzero(used) > 1:
                turned = own + _TURN[k // 2 % 2] * size * self.rng.normal(size=len(own)) * used
            elif len(free):
                turned = own.copy()
                j = int(self.rng.choice(free))
                turned[j] = _ADDED[k // 2 % 2] * reach / width[j] * self.rng.choice([-1.0, 1.0])
            else:
                continue
            found.append(turned * (size / max(float(np.abs(turned).max()), 1e-300)))
        return found


@dataclass(frozen=True, eq=False)
class _Places:
    """Places of the threshold of a node: what its points are and what they become on either side."""

    totals: PointTotals
    number: IntArray
    """Of each point among the unlabelled ones; below 0 for a labelled one."""
    if_left: IntArray
    if_right: IntArray
    wanted: IntArray
    worth: FloatArray
    counts: IntArray
    """Rows of each group and class with all of the points on the right."""
    least_gap: float
    """Between two points on either side."""

    def best(self, level: FloatArray, price: float) -> tuple[float, int, float]:
        """The best threshold at a price, rows that miss the totals there, and the worth that is kept."""
        order, size, totals = np.argsort(level, kind="stable"), self.totals.size, self.totals
        points = self.number, self.if_left, self.if_right, self.wanted, self.worth
        rows = size.indptr, size.indices, size.data, totals.low, totals.high, self.counts.copy()
        k, missed, kept = best_place(level, order, *points, *rows, price, self.least_gap)
        low = level[order[k - 1]] if k else level[order[0]] - 2.0
        high = level[order[k]] if k < len(order) else level[order[-1]] + 2.0
        return float((low + high) / 2), int(missed), float(kept)
