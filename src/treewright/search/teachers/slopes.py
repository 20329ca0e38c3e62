r"""How much ranks say: slopes by which log-odds of ranks are logarithms of probabilities, class by class.

The score of class k for a row of rank r among all rows is :math:`a_k \log(r / (1 - r)) / 2`, and probabilities are
proportional to the exponential of scores plus a level of the class. One slope for all classes would be that of the
frequent ones: of a rare class the first ranks are far out, and their probabilities would be far too high.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from treewright.arrays import FloatArray, IntArray

__all__ = ["class_slopes", "rank_odds"]

_ALIKE = 4.0
"""How many labels' worth slopes of classes are held together, for a difference of 1."""
_LEAST, _MOST = 0.05, 10.0
"""Slopes that are not gone beyond: ranks say nothing, or order all rows."""


def rank_odds(ranks: FloatArray, least: float) -> FloatArray:
    """Half the log-odds of ranks, those nearer than `least` to 0 or 1 counted as such.

    Examples
    --------
    >>> rank_odds(np.array([0.0, 0.5, 1.0]), 0.1).round(2).tolist()
    [-1.1, 0.0, 1.1]
    """
    inside = np.clip(ranks, least, 1.0 - least)
    return np.asarray((np.log(inside) - np.log1p(-inside)) / 2.0)


def class_slopes(ranks: FloatArray, y: IntArray, weight: FloatArray) -> FloatArray:
    """Slopes of the classes by which labels left out are most likely, each class with a level of its own.

    Parameters
    ----------
    ranks : ndarray of shape (n_labels, n_classes)
        Ranks of rows in each class, among rows as frequent as those to be labelled.
    y : ndarray of int, shape (n_labels,)
        Their classes.
    weight : ndarray of shape (n_labels,)
        Weights, by which classes are as frequent as that.

    Returns
    -------
    ndarray of shape (n_classes,)
        Slopes; that of a class without labels is that of all together.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = (rng.random(4000) < 0.5).astype(int)
    >>> score = np.where(y == 1, 0.4, -0.4) + rng.logistic(size=4000)  # odds of y rise by less than those of ranks do
    >>> ranks = np.column_stack([(-score).argsort().argsort(), score.argsort().argsort()]) / 4000
    >>> bool(0.2 < class_slopes(ranks, y, np.ones(4000)).mean() < 1.0)
    True
    """
    odds, k = rank_odds(ranks, 0.5 / (len(y) + 1.0)), ranks.shape[1]
    present = np.unique(y)
    one = np.zeros((len(y), k))
    one[np.arange(len(y)), y] = 1.0
    weight = weight / weight.mean()

    def loss(parts: FloatArray, together: bool) -> tuple[float, FloatArray]:
        slopes, levels = (np.full(k, parts[0]), parts[1:]) if together else (parts[:k], parts[k:])
        logs = log_softmax((slopes * odds + levels)[:, present], axis=1)
        away = np.zeros((len(y), k))
        away[:, present] = weight[:, None] * (np.exp(logs) - one[:, present])
        by_slope, by_level = (away * odds).sum(axis=0), away.sum(axis=0)
        paid = -float(weight @ logs[np.arange(len(y)), np.searchsorted(present, y)]) + 1e-3 * float(levels @ levels)
        by_level += 2e-3 * levels
        if together:
            return paid, np.append(by_slope.sum(), by_level)
        apart = slopes - common
        return paid + _ALIKE / 2.0 * float(apart @ apart), np.append(by_slope + _ALIKE * apart, by_level)

    bounds = [(_LEAST, _MOST)] + [(None, None)] * k
    first = minimize(loss, np.append(1.0, np.zeros(k)), (True,), "L-BFGS-B", jac=True, bounds=bounds)
    common = float(first.x[0])
    start = np.append(np.full(k, common), first.x[1:])
    found = minimize(loss, start, (False,), "L-BFGS-B", jac=True, bounds=[(_LEAST, _MOST)] * k + bounds[1:])
    slopes = np.full(k, common)
    slopes[present] = found.x[:k][present]
    return slopes
