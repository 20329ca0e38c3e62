r"""Scores of a teacher as probabilities that are as often right as they say, by labels left out.

Logarithms :math:`l_{ik}` of unnormalized probabilities become :math:`p_{ik} \propto \exp(a\, l_{ik} + b_k)`. Slope and
levels are those by which labels left out are most likely. Few labels say little, even if all of them were found: a
label counts as surely of its class as Platt's rule has it, one part of the labels of the class more and one more
against; and slope and levels are held near 1 and 0 as by some labels that had said so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from treewright.arrays import FloatArray, IntArray

__all__ = ["Calibration", "calibration"]

_HELD_SLOPE, _HELD_LEVELS = 5.0, 2.0
"""How many labels' worth the logarithm of the slope is held at 0, and levels, for a difference of 1."""
_LEAST, _MOST = -4.0, 2.0
"""Logarithms of slopes that are not gone beyond."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """What makes probabilities of scores."""

    slope: float
    levels: FloatArray
    """Of the classes, shape (n_classes,)."""

    def logs(self, logs: FloatArray) -> FloatArray:
        """Logarithms of probabilities, of scores that are logarithms."""
        return np.asarray(log_softmax(self.slope * logs + self.levels, axis=1))

    def shares(self, logs: FloatArray) -> FloatArray:
        """Probabilities, of scores that are logarithms."""
        return np.asarray(softmax(self.slope * logs + self.levels, axis=1))


def calibration(logs: FloatArray, y: IntArray, weight: FloatArray) -> Calibration:
    """Slope and levels by labels left out; a class without any keeps its level.

    Parameters
    ----------
    logs : ndarray of shape (n_labels, n_classes)
        Scores, logarithms of unnormalized probabilities, by who did not see the labels.
    y : ndarray of int, shape (n_labels,)
        Classes.
    weight : ndarray of shape (n_labels,)
        Weights; their mean does not matter.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> score = rng.normal(size=4000)
    >>> y = (rng.random(4000) < 1 / (1 + np.exp(-score))).astype(int)
    >>> too_sure = np.column_stack([np.zeros(4000), 5.0 * score])
    >>> round(calibration(too_sure, y, np.ones(4000)).slope, 1)
    0.2
    """
    n, k = logs.shape
    if not n:
        return Calibration(1.0, np.zeros(k))
    weight = weight / weight.mean()
    mass = np.bincount(y, weight, k)
    target = np.tile(mass / mass.sum(), (n, 1))
    target[np.arange(n), y] = 0.0
    rest = target.sum(axis=1, keepdims=True)
    doubt = (1.0 / (mass[y] + 2.0))[:, None]
    target *= np.where(rest > 0, doubt / np.where(rest > 0, rest, 1.0), 0.0)
    target[np.arange(n), y] = np.where(rest[:, 0] > 0, 1.0 - doubt[:, 0], 1.0)
    some = mass > 0

    def loss(parts: FloatArray) -> tuple[float, FloatArray]:
        slope, levels = np.exp(parts[0]), parts[1:]
        log_shares = log_softmax(slope * logs + levels, axis=1)
        away = weight[:, None] * (np.exp(log_shares) - target)
        held = np.where(some, levels, 0.0)
        paid = -float(np.sum(weight[:, None] * target * log_shares))
        paid += _HELD_SLOPE / 2.0 * parts[0] ** 2 + _HELD_LEVELS / 2.0 * float(held @ held)
        by_level = np.where(some, away.sum(axis=0) + _HELD_LEVELS * held, 0.0)
        return paid, np.append(slope * np.sum(away * logs) + _HELD_SLOPE * parts[0], by_level)

    found = minimize(loss, np.zeros(k + 1), method="L-BFGS-B", jac=True, bounds=[(_LEAST, _MOST)] + [(None, None)] * k)
    return Calibration(float(np.exp(found.x[0])), np.asarray(found.x[1:]))
