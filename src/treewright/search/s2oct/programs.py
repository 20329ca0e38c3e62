"""Linear programs at the nodes: labelled points on their sides with margin 1, guided points as far as possible."""

from __future__ import annotations

import numpy as np

from treewright.arrays import FloatArray, IntArray
from treewright.budget import Budget
from treewright.search.s2oct.structure import GUIDED, single
from treewright.search.s2oct.survey import SAMPLED, Survey
from treewright.splits.directions import logistic_direction
from treewright.splits.separation import separate
from treewright.tree.complete import Planes, labels_on_either_side, leaves_reached, passes, planes_errors

__all__ = ["separated", "simplified"]

_PASSES = 3
"""Passes over the nodes."""


def separated(survey: Survey, planes: Planes, guided: IntArray, rng: np.random.Generator, budget: Budget) -> Planes:
    """Hyperplanes by linear programs, lowest nodes first; again while labelled points remain wrong and errors fall.

    Parameters
    ----------
    survey : Survey
        The points.
    planes : Planes
        Where points go; each labelled point stays on the way to its nearest leaf of its own class.
    guided : ndarray of int, shape (n_unlabelled,)
        Labels that unlabelled points should get.
    rng : numpy Generator
        Draws the points that are in a program, where there are many.
    budget : Budget
        Ends the work early.
    """
    for _ in range(_PASSES):
        error, leaf = planes_errors(planes, survey.X, survey.y)
        for node in range(len(planes.gamma) - 1, -1, -1):
            if budget.over:
                return planes
            planes = _separated_node(survey, planes, node, leaf, guided, rng, budget)
        after, _ = planes_errors(planes, survey.X, survey.y)
        if after.max(initial=0.0) > 1e-6 and after.sum() >= error.sum() * 0.999:
            break
    return planes


def _separated_node(
    survey: Survey,
    planes: Planes,
    node: int,
    leaf: IntArray,
    guided: IntArray,
    rng: np.random.Generator,
    budget: Budget,
) -> Planes:
    """Hyperplane of a node by linear program: labelled points hard if they can be, guided points soft."""
    here, left = passes(leaf, node, planes.shape)
    chosen = survey.sample(rng, here)
    X, side, weight = survey.X[chosen], np.where(left[chosen], -1.0, 1.0), survey.weight[chosen]
    if not len(X) or (not np.any(planes.omega[node]) and np.ptp(side) == 0):
        return planes
    values = planes.values(survey.hidden)
    inside = np.flatnonzero(passes(leaves_reached(values), node, planes.shape)[0])
    inside, wish = _wishes(planes, node, values, inside, guided)
    if len(inside) > GUIDED:
        sample = rng.choice(len(inside), GUIDED, replace=False)
        inside, wish = inside[sample], wish[sample]
    few = np.full(len(inside), 1.0)
    hidden, bound = survey.hidden[inside], survey.model.max_coefficient
    found = separate(X, side, hidden, wish, few, bound, seconds=budget.remaining)
    if found is None:
        # The labelled error is what counts; guided points only choose among equals.
        price = np.concatenate([weight, 1e-3 * few * weight.mean()])
        soft, sides = np.vstack([X, hidden]), np.concatenate([side, wish])
        found = separate(X[:0], side[:0], soft, sides, price, bound, seconds=budget.remaining)
    return planes if found is None else planes.replaced(node, *found)


def _wishes(
    planes: Planes, node: int, values: FloatArray, inside: IntArray, guided: IntArray
) -> tuple[IntArray, FloatArray]:
    """Points that the guide wants on a side of the node, and the side: where their label would come out right."""
    if_left, if_right = labels_on_either_side(planes, node, values[inside])
    right_left, right_right = if_left == guided[inside], if_right == guided[inside]
    caring = right_left != right_right
    return inside[caring], np.where(right_left[caring], -1.0, 1.0)


def simplified(
    survey: Survey, planes: Planes, guided: IntArray, alone: bool, rng: np.random.Generator, budget: Budget
) -> Planes:
    """Fewer hyperplanes that part the labelled points as well: each one has to find room between all points.

    Nodes that send all labelled points one way send all points there. With `alone` and two classes a single hyperplane
    is tried first.
    """
    if alone and survey.model.n_classes == 2:
        found = _alone(survey, guided, rng, budget)
        if found is not None and survey.all_right(found):
            return found
    for node in range(len(planes.gamma) - 1, -1, -1):
        at_node, left = passes(planes_errors(planes, survey.X, survey.y)[1], node, planes.shape)
        if left[at_node].all() or not left[at_node].any():
            way = 1.0 if left[at_node].all() else -1.0
            planes = planes.replaced(node, np.zeros(planes.omega.shape[1]), way)
    return planes


def _alone(survey: Survey, guided: IntArray, rng: np.random.Generator, budget: Budget) -> Planes | None:
    """One hyperplane on labelled and guided points, None where all are of one class or time is over."""
    known, n_hidden = survey.sample(rng), len(guided)
    hidden = np.arange(n_hidden) if n_hidden <= SAMPLED else rng.choice(n_hidden, SAMPLED, replace=False)
    label = np.concatenate([survey.y[known], guided[hidden]])
    if budget.over or np.all(label == label[0]):
        return None
    points = survey.unit(np.vstack([survey.X[known], survey.hidden[hidden]]))
    normal = logistic_direction(points, label == 0, np.ones(len(label)), strength=1.0) / survey.width
    planes = single(survey, normal, float(np.median(survey.X @ normal)))
    return separated(survey, planes, guided, rng, budget)
