"""How steep hyperplanes are: the hinge errors of points on the wrong side grow with the scale."""

from __future__ import annotations

import numpy as np

from treewright.arrays import FloatArray
from treewright.budget import Budget
from treewright.search.s2oct.survey import Survey
from treewright.tree.complete import Planes, leaves_reached, passes

__all__ = ["shrunk"]

_HALVINGS = 0.5 ** np.arange(16.0)
"""Scales that are tried at a node."""

_CELLS = 4_000_000
"""Labelled points times leaves by which scales are judged; where there are more, by a sample of the points."""


def shrunk(survey: Survey, planes: Planes, budget: Budget) -> Planes:
    """Scale hyperplanes down where that lowers the labelled error; no point changes sides, margins are kept.

    Parameters
    ----------
    survey : Survey
        The points.
    planes : Planes
        Hyperplanes.
    budget : Budget
        Ends the work early.
    """
    if survey.error(planes) <= 1e-6:
        return planes
    model, shape = survey.model, planes.shape
    most, known = _CELLS // shape.n_leaves, np.arange(len(survey.X))
    if len(known) > most:
        known = np.random.default_rng(0).choice(known, most, replace=False)
    value, weight = planes.values(survey.X[known]), survey.weight[known]
    error = np.maximum(0.0, 1.0 + value) @ shape.left_of + np.maximum(0.0, 1.0 - value) @ shape.right_of
    error[planes.labels != survey.y[known][:, None]] = np.inf
    hidden = planes.values(survey.hidden)
    leaf = leaves_reached(hidden)
    # Also nodes that do not split: they are second chances for labelled points, and the cheaper the nearer to 0.
    for node in range(len(planes.gamma)):
        if budget.over:
            break
        here = passes(leaf, node, shape)[0] | model.everywhere
        smallest = model.required / max(np.abs(hidden[here, node]).min(initial=np.inf), 1e-300)
        factors = np.unique(np.clip(_HALVINGS, smallest, None))
        left, right = shape.left_of[node], shape.right_of[node]
        # Below the node every leaf on a side changes by as much, and the least of them as well.
        columns = [error[:, side].min(axis=1, initial=np.inf) for side in (left, right, ~(left | right))]
        changes = [_changes(value[:, node], factor) for factor in factors]
        costs = [_cost(np.stack([columns[0] + c[0], columns[1] + c[1], columns[2]]), weight) for c in changes]
        k = int(np.argmin(costs))
        if factors[k] < 1.0 and costs[k] < _cost(np.stack(columns), weight):
            planes = planes.replaced(node, planes.omega[node] * factors[k], planes.gamma[node] * factors[k])
            error[:, left] += changes[k][0][:, None]
            error[:, right] += changes[k][1][:, None]
    return planes


def _changes(value: FloatArray, factor: float) -> tuple[FloatArray, FloatArray]:
    """By how much the hinge errors toward the left and toward the right change if values are scaled."""
    left, right = (
        np.maximum(0.0, 1.0 + sign * factor * value) - np.maximum(0.0, 1.0 + sign * value) for sign in (1, -1)
    )
    return left, right


def _cost(error: FloatArray, weight: FloatArray) -> float:
    """Weighted least errors; a point without a leaf of its class counts nothing, as it cannot be right."""
    least = error.min(axis=0)
    return float(weight @ np.where(np.isfinite(least), least, 0.0))
