r"""A support vector machine with a Gaussian kernel that keeps none of its points: random features in their place.

The kernel :math:`\exp(-\gamma \|x - z\|^2)` is the mean of :math:`\cos(w^T (x - z))` over normal directions w of spread
:math:`\sqrt{2 \gamma}`. With the cosines and sines of some directions as features the machine is linear: a number for
each of them, where scikit-learn's keeps the rows that it was fitted to. Directions that are orthogonal in blocks come
nearer to the kernel than independent ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from sklearn.svm import SVC

from treewright.core.arrays import FloatArray, IntArray

__all__ = ["KernelMachine"]

_DIRECTIONS, _FEWEST = 1000, 250
"""Directions at most, and at least whatever the following say."""
_ASKED = 5e7
"""Points that are asked for times directions, from which on there are fewer."""
_NUMBERS = 2e6
"""Features times directions, likewise: they are what a file has to keep."""
_PRODUCTS = 5e9
"""Pairs of points times directions, likewise."""
_BLOCK_CELLS = 2_000_000
"""Cosines and sines that are there at once."""


@dataclass(frozen=True, eq=False)
class KernelMachine:
    """A fitted machine.

    Attributes
    ----------
    classes_ : ndarray of int
        Class numbers that there are.
    directions : ndarray of shape (n_features, n_directions)
        Random ones.
    slopes : ndarray of shape (2 * n_directions, n_pairs)
        Of cosines and sines, for each pair of classes.
    levels : ndarray of shape (n_pairs,)
        Intercepts.

    Examples
    --------
    >>> X = np.linspace(-2.0, 2.0, 21)[:, None]
    >>> y = np.where(np.abs(X[:, 0]) < 0.7, 3, 0)
    >>> machine = KernelMachine.fitted(X, y, np.ones(21), seed=0)
    >>> machine.classes_[machine.scores(np.array([[-1.5], [0.1], [1.5]])).argmax(axis=1)].tolist()
    [0, 3, 0]
    """

    classes_: IntArray
    directions: FloatArray
    slopes: FloatArray
    levels: FloatArray

    @classmethod
    def fitted(cls, X: FloatArray, y: IntArray, weight: FloatArray, seed: int, n_asked: int = 0) -> KernelMachine:
        """Fit a machine to points, the width of its kernel by their spread, as scikit-learn chooses it.

        Parameters
        ----------
        X, y, weight : ndarray
            Points, their class numbers (two at least) and weights.
        seed : int
            Seed of the directions.
        n_asked : int
            Points that it will be asked for: fewer directions where they are many.
        """
        n_points, n_features = X.shape
        spread = float(X.var())
        most = min(_DIRECTIONS, _ASKED / max(1, n_asked), _NUMBERS / n_features, _PRODUCTS / n_points**2)
        rng = np.random.default_rng(seed)
        directions = _orthogonal(n_features, max(_FEWEST, int(most)), rng)
        directions *= np.sqrt(2.0 / (n_features * spread)) if spread > 0 else np.sqrt(2.0)
        waves = _waves(X, directions)
        machine = SVC(kernel="precomputed").fit(waves @ waves.T, y, weight)
        return cls(np.asarray(machine.classes_), directions, _slopes(machine, waves), np.asarray(machine.intercept_))

    def scores(self, X: FloatArray) -> FloatArray:
        """Scores of points, a column for each class: how often it wins against another, and by how much."""
        step = max(1, _BLOCK_CELLS // len(self.slopes))
        starts = range(0, len(X), step)
        parts = [_waves(X[at : at + step], self.directions) @ self.slopes + self.levels for at in starts]
        raw = np.vstack(parts) if parts else np.zeros((0, len(self.levels)))
        if len(self.classes_) == 2:
            return np.hstack([-raw, raw])
        won = _signs(len(self.classes_))
        first = np.where(raw >= 0, 1.0, 0.0)
        votes = first @ np.maximum(won, 0.0) + (1.0 - first) @ np.maximum(-won, 0.0)
        by = raw @ won
        return np.asarray(votes + by / (3.0 * (np.abs(by) + 1.0)))  # how much decides among equal votes alone


def _orthogonal(n_features: int, n_directions: int, rng: np.random.Generator) -> FloatArray:
    """Directions in columns, distributed as normal ones are, each orthogonal to those of its block."""
    blocks = []
    for start in range(0, n_directions, n_features):
        turned, _ = np.linalg.qr(rng.standard_normal((n_features, min(n_features, n_directions - start))))
        blocks.append(turned * np.sqrt(rng.chisquare(n_features, turned.shape[1])))
    return np.hstack(blocks)


def _waves(X: FloatArray, directions: FloatArray) -> FloatArray:
    """Cosines and sines of points along directions; products of them are about the kernel."""
    along, n = X @ directions, directions.shape[1]
    waves = np.empty((len(X), 2 * n))
    np.cos(along, out=waves[:, :n])
    np.sin(along, out=waves[:, n:])
    waves *= 1.0 / np.sqrt(n)
    return waves


def _slopes(machine: SVC, waves: FloatArray) -> FloatArray:
    """What the multipliers of a machine's points come to, a column for each pair of classes."""
    points, dual = waves[machine.support_], machine.dual_coef_
    if len(machine.classes_) == 2:
        return np.asarray((dual @ points).T)
    ends = np.cumsum(machine.n_support_)
    own = [slice(end - n, end) for end, n in zip(ends, machine.n_support_, strict=True)]
    pairs = combinations(range(len(own)), 2)
    return np.column_stack([dual[j - 1, own[i]] @ points[own[i]] + dual[i, own[j]] @ points[own[j]] for i, j in pairs])


def _signs(n_classes: int) -> FloatArray:
    """For each pair of classes 1 for the one and -1 for the other, shape (n_pairs, n_classes)."""
    pairs = np.array(list(combinations(range(n_classes), 2)))
    signs = np.zeros((len(pairs), n_classes))
    signs[np.arange(len(pairs)), pairs[:, 0]] = 1.0
    signs[np.arange(len(pairs)), pairs[:, 1]] = -1.0
    return signs
