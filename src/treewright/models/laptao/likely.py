"""Labels smoothed along the graph as probabilities that are as often right as they say, by labels left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.graph import LabelSmoother
from treewright.models.laptao.rounds import GraphTask
from treewright.teachers.pool import pooled_scores

__all__ = ["GraphLikely", "graph_probabilities", "smoothed_log_shares"]

_LEAST = 1e-6
"""Least share of a class, of which there are logarithms."""

_RESIDUAL = 1e-4
"""Relative residual of smoothed labels."""


@dataclass(frozen=True, eq=False)
class GraphLikely:
    """LapTAO probabilities by the graph, and what makes them of logarithms of shares: a slope, a level a class."""

    points: FloatArray
    """At points of the folds by labels of the others, at other labelled points the mean."""
    slope: float
    levels: FloatArray


def graph_probabilities(
    task: GraphTask, mean: FloatArray, folds: Sequence[IntArray], budget: Budget
) -> GraphLikely | None:
    """LapTAO probabilities at all points by the graph; None where time ends before, or no label can be left out.

    Few labels are spikes on a plain: the values of other points differ little from their mean, in the right order. So
    logarithms of shares are taken from their means, in units of their spread, and labels left out say how much that is.

    Parameters
    ----------
    task : GraphTask
        Points, graph and labels, which are classes: a 1 in the column of the class, less `mean`.
    mean : ndarray of shape (n_classes,)
        Mean of the labels.
    folds : sequence of ndarray of int
        Points whose labels are left out together.
    budget : Budget
        Ends the work.
    """
    if not folds:
        return None
    known = task.label_weight > 0
    smoothed = _smoothed(task, mean, task.label_weight, budget)
    found = smoothed.copy()
    for left in folds:
        mass = task.label_weight.copy()
        mass[left] = 0.0
        found[left] = _smoothed(task, mean, mass, budget)[left]
        if budget.over:
            return None
    asked = np.concatenate(folds)
    centre = found[asked].mean(axis=0)
    spread = float((found[asked] - centre).std()) or 1.0
    logs = (found - centre) / spread
    y = (task.Y[asked] + mean).argmax(axis=1)
    pool = pooled_scores([logs[asked]], y, task.label_weight[asked])
    likely, slope = pool.shares([logs]), float(pool.weights[0]) / spread
    alone = known.copy()
    alone[asked] = False
    likely[alone] = np.maximum(mean, 0.0) / np.maximum(mean, 0.0).sum()
    return GraphLikely(likely, slope, pool.levels - slope * centre)


def _smoothed(task: GraphTask, mean: FloatArray, mass: FloatArray, budget: Budget) -> FloatArray:
    """Logarithms of the shares of the classes at all points, by these labels."""
    fewer = replace(task, label_weight=mass)
    smoother = LabelSmoother(fewer.W, mass, fewer.gamma, fewer.weight, tol=_RESIDUAL)
    return smoothed_log_shares(smoother.solve(mass[:, None] * fewer.Y, 0.0, budget=budget) + mean)


def smoothed_log_shares(values: FloatArray) -> FloatArray:
    """LapTAO: logarithms of the shares of the classes, by smoothed values that may be below 0."""
    shares = np.maximum(values, _LEAST)
    return np.asarray(np.log(shares / shares.sum(axis=1, keepdims=True)))
