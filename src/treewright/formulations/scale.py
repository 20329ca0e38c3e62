"""The scale of a split whose direction and place are given."""

from __future__ import annotations

import numpy as np

from treewright.arrays import FloatArray

__all__ = ["best_scale"]


def best_scale(distance: FloatArray, weight: FloatArray, pull: float, default: float) -> float:
    r"""Smallest minimizer of :math:`\sum_i w_i [1 - \kappa d_i]^+ + \kappa\, pull` among the :math:`1 / d_i`.

    The slope grows from :math:`pull - \sum_i w_i d_i` by :math:`w_i d_i` at each :math:`\kappa = 1 / d_i`.

    Examples
    --------
    >>> best_scale(np.array([0.5, 2.0]), np.ones(2), pull=0.1, default=1.0)
    2.0
    >>> best_scale(np.array([0.5, 2.0]), np.ones(2), pull=1.0, default=1.0)
    0.5
    """
    distance, weight = distance[distance > 0], weight[distance > 0]
    if not len(distance):
        return default
    order = np.argsort(-distance, kind="stable")
    steps = (weight * distance)[order]
    left_over = steps.sum() - np.cumsum(steps)
    j = int(np.argmax(left_over <= pull + 1e-12 * steps.sum()))
    return float(1.0 / distance[order][j])
