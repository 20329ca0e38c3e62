"""Folds of labels that are left out in turn, where some labelled rows are copies of others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedKFold

from treewright.core.arrays import BoolArray, FloatArray, IntArray

__all__ = ["Folds", "Twins", "folds_of", "label_folds"]


@dataclass(frozen=True)
class Twins:
    """Which labelled rows are equal to one another, and which of them to rows without a label.

    Attributes
    ----------
    family : ndarray of int, shape (n_labels,)
        Numbers of the labelled rows from 0, equal for equal rows.
    met : ndarray of int, shape (n_families,)
        Unlabelled rows that are equal to those of a family.
    n_hidden : int
        Unlabelled rows.
    """

    family: IntArray
    met: IntArray
    n_hidden: int

    @classmethod
    def of(cls, known: IntArray, hidden: IntArray) -> Twins:
        """Twins by numbers of labelled and unlabelled rows that are equal for equal rows.

        Examples
        --------
        >>> Twins.of(np.array([7, 3, 7]), np.array([3, 5, 3])).met.tolist()
        [2, 0]
        """
        numbers, family = np.unique(known, return_inverse=True)
        place = np.minimum(np.searchsorted(numbers, hidden), len(numbers) - 1)
        met = np.bincount(place[numbers[place] == hidden], minlength=len(numbers))
        return cls(family.reshape(-1), met, len(hidden))

    def kept_together(self, weight: FloatArray, rng: Any) -> BoolArray:
        r"""Families that are left out together, so that a label left out has a twin as often as an unlabelled row has.

        Of the labels a share :math:`p_l` (by `weight`) has a twin with a label, of the unlabelled rows :math:`p_u`. If
        rows were labelled by lot, both are the same but for chance, whether rows are of few kinds or were copied before
        that. If labelled rows were copied, :math:`p_l` is larger: families with the share :math:`1 - p_u / p_l` of its
        weight are kept together, first of all those that no unlabelled row is equal to.

        Parameters
        ----------
        weight : ndarray of shape (n_labels,)
            What each label counts.
        rng : RandomState
            What draws the families.

        Returns
        -------
        ndarray of bool, shape (n_families,)
            Whether each is kept together.
        """
        size, mass = np.bincount(self.family), np.bincount(self.family, weight)
        mass = np.where(size > 1, mass, 0.0)
        twins, hidden = mass.sum() / weight.sum(), self.met.sum() / max(1, self.n_hidden)
        if not self.n_hidden or hidden >= twins:
            return np.zeros(len(size), dtype=bool)
        order = np.lexsort((rng.permutation(len(size)), self.met > 0))
        reached = np.cumsum(mass[order]) - mass[order] / 2
        kept = np.zeros(len(size), dtype=bool)
        kept[order] = reached < (1 - hidden / twins) * mass.sum()
        return kept & (size > 1)


class Folds(NamedTuple):
    """Folds of labels."""

    fold: IntArray
    """Fold of each label, from 0."""
    unit: IntArray
    """A number of each label that copies which were to be kept together share: they say no more than one of them."""


def label_folds(y: IntArray, twins: Twins, weight: FloatArray, n_splits: int, rng: Any) -> Folds:
    """Fold labels: classes are spread evenly, and copies are kept together as :class:`Twins` says.

    Parameters
    ----------
    y : ndarray of int, shape (n_labels,)
        Class numbers.
    twins : Twins
        Which rows are equal.
    weight : ndarray of shape (n_labels,)
        What each label counts when twins are counted.
    n_splits : int
        Folds; some may be empty where copies are many.
    rng : RandomState
        What draws them.

    Returns
    -------
    Folds
        Folds of the labels, and which of them are copies. Where leaving a fold out would leave labels of fewer than
        two classes, copies are not kept together, as there would be nothing to learn from.

    Examples
    --------
    >>> y = np.array([0, 1] * 6)
    >>> copied = Twins.of(np.arange(12) // 2 // 2 * 2 + y, np.array([-1]))  # each row twice
    >>> fold, _ = label_folds(y, copied, np.ones(12), 3, np.random.RandomState(0))
    >>> np.bincount(fold).tolist(), all(len(set(fold[copied.family == f])) == 1 for f in range(6))
    ([4, 4, 4], True)
    """
    kept = twins.kept_together(weight, rng)
    unit = np.where(kept[twins.family], twins.family, len(kept) + np.arange(len(y)))
    if kept.any():
        fold = _dealt(y, twins.family, kept, n_splits, rng)
        if _can_be_learned(y, fold, n_splits):
            return Folds(fold, unit)
    folds = StratifiedKFold(n_splits, shuffle=True, random_state=rng)
    fold = np.empty(len(y), dtype=np.int64)
    for number, (_, test) in enumerate(folds.split(np.zeros(len(y)), y)):
        fold[test] = number
    return Folds(fold, unit)


def _dealt(y: IntArray, family: IntArray, kept: BoolArray, n_splits: int, rng: Any) -> IntArray:
    """Folds: families that are kept together are dealt out class by class, large ones first; others level them out."""
    n_classes = int(y.max()) + 1
    table = np.zeros((len(kept), n_classes), dtype=np.int64)
    np.add.at(table, (family, y), 1)
    whole = np.flatnonzero(kept)
    whole = whole[np.lexsort((rng.permutation(len(whole)), -table[whole].sum(axis=1), table[whole].argmax(axis=1)))]
    turn = np.arange(len(whole)) % (2 * n_splits)
    of_family = np.full(len(kept), -1, dtype=np.int64)
    of_family[whole] = np.minimum(turn, 2 * n_splits - 1 - turn)  # to and fro, or the first has the largest each time
    fold = of_family[family]
    for k in range(n_classes):
        mine = rng.permutation(np.flatnonzero((y == k) & (fold < 0)))
        there = np.bincount(fold[(y == k) & (fold >= 0)], minlength=n_splits)
        places = rng.permutation(n_splits)
        level = there[places][:, None] + np.arange(len(mine))  # the lowest places are taken first
        fold[mine] = places[np.argsort(level.T, axis=None, kind="stable")[: len(mine)] % n_splits]
    return fold


def _can_be_learned(y: IntArray, fold: IntArray, n_splits: int) -> bool:
    """Whether labels of two classes are left, whichever fold is left out."""
    table = np.zeros((n_splits, int(y.max()) + 1), dtype=np.int64)
    np.add.at(table, (fold, y), 1)
    return bool(np.all(np.count_nonzero(table.sum(axis=0) - table, axis=1) >= 2))


def folds_of(y: IntArray, n_folds: int, rng: np.random.Generator) -> IntArray:
    """Fold of each point, drawn so that each class is spread evenly.

    Examples
    --------
    >>> fold = folds_of(np.array([0] * 6 + [1] * 3), 3, np.random.default_rng(0))
    >>> np.sort(fold[:6]).tolist(), np.sort(fold[6:]).tolist()
    ([0, 0, 1, 1, 2, 2], [0, 1, 2])
    """
    fold, first = np.zeros(len(y), dtype=np.int64), 0
    for label in np.unique(y):
        inside = rng.permutation(np.flatnonzero(y == label))
        fold[inside] = (first + np.arange(len(inside))) % n_folds
        first += len(inside)
    return fold
