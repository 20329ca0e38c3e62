"""A taught tree meets the totals: thresholds move to where the counts are right and most of what was taught is kept.

Along a direction of a node every place of its threshold is looked at, by sorting: how many rows miss the totals there,
and how much of what was taught is right. The best of all nodes is taken, again and again. Directions near to a node's
own are tried as well: on a table of few distinct values a threshold alone moves many rows at a time, and a hyperplane
that is turned a little, or has one more feature if it may, parts them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from treewright.arrays import FloatArray, IntArray
from treewright.budget import Budget
from treewright.search.s2oct.survey import Survey
from treewright.tree.complete import Planes, labels_on_either_side, leaves_reached, passes

__all__ = ["MISSED", "Levelling"]

MISSED = 3.0
"""Worth of a row that misses totals which cannot be met."""
_ROUNDS = 12
"""Most moves."""
_TURNS, _TURN = 16, (0.05, 0.5)
"""Directions near to a node's own that are tried, and how far they are turned."""
_ADDED = (0.02, 0.2)
"""What one more feature moves points by, as a share of what the direction does."""
_CELLS = 4_000_000
"""Points times directions times nodes that a round may look at; fewer directions where there are more."""


@dataclass(eq=False)
class Levelling:
    """What is taught of labelled and unlabelled points, and moves of thresholds that bring counts to the totals.

    Attributes
    ----------
    survey, taught, rng, budget
        See :mod:`treewright.search.s2oct`.
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

    def level(self, planes: Planes) -> Planes:
        """Move thresholds until the totals are met or no move comes nearer to them.

        Where they are not met in the end, the best of what was passed on the way: most kept, less several times the
        rows that miss.
        """
        missed = self.missed(planes)
        best, worth = planes, self.kept(planes) - MISSED * missed
        for _ in range(_ROUNDS):
            if missed == 0 or self.budget.over:
                break
            found = self._best_move(planes, missed)
            if found is None:
                break
            planes, missed = found
            now = np.inf if missed == 0 else self.kept(planes) - MISSED * missed
            if now > worth:
                best, worth = planes, now
        return best

    def _labels(self, planes: Planes) -> IntArray:
        return planes.labels[leaves_reached(planes.values(self.X))]

    def _best_move(self, planes: Planes, missed: int) -> tuple[Planes, int] | None:
        """The move after which fewest rows miss the totals, of equal ones that which keeps most of what was taught."""
        values, best, place = planes.values(self.X), None, (missed, np.inf)
        leaf = leaves_reached(values)
        base = planes.labels[leaf]
        right = self.worth * (base == self.wanted)
        turns = int(np.clip(_CELLS // (self.X.size * max(1, len(planes.gamma))), 0, _TURNS))
        for node in np.flatnonzero(planes.omega.any(axis=1)):
            here = np.flatnonzero(passes(leaf, int(node), planes.shape)[0])
            if not len(here) or self.budget.over:
                continue
            sides = labels_on_either_side(planes, int(node), values[here])
            elsewhere = float(right.sum() - right[here].sum())
            for omega in self._directions(planes.omega[node], turns):
                threshold, misses, kept = self._place(self.X[here] @ omega, here, *sides, base)
                if (misses, -kept - elsewhere) < place:
                    best, place = planes.replaced(int(node), omega, threshold), (misses, -kept - elsewhere)
        return None if best is None or place[0] >= missed else (best, place[0])

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

    def _place(
        self, level: FloatArray, here: IntArray, if_left: IntArray, if_right: IntArray, base: IntArray
    ) -> tuple[float, int, float]:
        """Threshold of fewest missed rows, their number, and the worth that is kept among the points at the node."""
        survey, n_known = self.survey, self.n_known
        order = np.argsort(level, kind="stable")
        ordered = level[order]
        # As the threshold rises points go from right to left, one after the other.
        hidden = here >= n_known
        start = base[n_known:].copy()
        start[here[hidden] - n_known] = if_right[hidden]
        counted = order[hidden[order]]
        along = survey.totals.missed_along(start, here[counted] - n_known, if_left[counted])
        missed = along[np.concatenate([[0], np.cumsum(hidden[order])])]
        worth, wanted = self.worth[here], self.wanted[here]
        gain = worth * ((if_left == wanted).astype(float) - (if_right == wanted))
        kept = float(worth @ (if_right == wanted)) + np.concatenate([[0.0], np.cumsum(gain[order])])
        gap = np.concatenate([[np.inf], np.diff(ordered), [np.inf]])
        # Points keep their margins on both sides of it once the hyperplane is stretched.
        allowed = gap > self.least_gap
        missed = np.where(allowed, missed, np.iinfo(np.int64).max)
        least = missed.min()
        k = int(np.argmax(np.where(missed == least, kept, -np.inf)))
        low = ordered[k - 1] if k else ordered[0] - 2.0
        high = ordered[k] if k < len(ordered) else ordered[-1] + 2.0
        return float((low + high) / 2), int(least), float(kept[k])

    @property
    def least_gap(self) -> float:
        """Between two points on either side, for a hyperplane whose largest weight is s."""
        return 2.0 * self.survey.model.required * (1 + 1e-6)
