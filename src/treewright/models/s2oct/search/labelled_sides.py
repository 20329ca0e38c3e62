"""Labelled points on their sides with margin 1, while what was taught and the totals are kept as far as possible.

The hyperplanes on the way of labelled points that miss their margins are moved by linear programs: labelled points on
their sides with margin, of the taught ones as many as possible, and all of them are looked at. Moves along segments
then mend the totals, where the programs changed the counts (:mod:`treewright.models.s2oct.search.moves`).
"""

from __future__ import annotations

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.models.s2oct.search.data import Survey, planes_errors
from treewright.models.s2oct.search.moves import Moves, shrunk_planes
from treewright.splits.directions import Separation
from treewright.splits.joining import solve_joining
from treewright.tree.complete import Planes, labels_on_either_side, leaves_reached, passes

__all__ = ["mended_planes", "right_planes", "widened_planes"]


def right_planes(
    survey: Survey,
    planes: Planes,
    taught: IntArray,
    rng: np.random.Generator,
    budget: Budget,
    support: BoolArray | None = None,
) -> Planes:
    """Give labelled points of an S2OCT their sides and margins, and meet the totals again.

    Parameters
    ----------
    survey, planes, taught, rng, budget
        See :mod:`treewright.models.s2oct.search`.
    support : ndarray of bool, shape (n_branches, n_features), or None
        Features that each node may use; None for all, or for those it has where the model restricts them.
    """
    if survey.model.restricted and support is None:
        support = planes.omega != 0
    moves = Moves(survey, rng, budget, support)
    planes = shrunk_planes(survey, mended_planes(survey, planes, taught, budget, support), budget)
    for _ in range(survey.search.sides_rounds):
        if budget.over or moves.deviation(planes) == 0:
            break
        planes = moves.meet_totals(planes)
        if moves.deviation(planes):
            planes = mended_planes(survey, planes, moves.mended_labels(planes), budget, support)
    return shrunk_planes(survey, widened_planes(moves, planes), budget)


def widened_planes(moves: Moves, planes: Planes) -> Planes:
    """Give unlabelled points of an S2OCT their margins; where that moves rows over a split, meet the totals again."""
    model, best, least = moves.model, planes, np.inf
    for _ in range(moves.survey.search.sides_rounds):
        planes = moves.widened(planes)
        tree = model.repair(planes.to_tree(model.n_classes))
        objective = model.objective(tree)
        if objective >= least:
            break
        best, least = moves.survey.completed(tree), objective
        if objective <= 1e-9 or moves.budget.over:
            break
        planes = moves.meet_totals(best)
    return best


def mended_planes(
    survey: Survey, planes: Planes, taught: IntArray, budget: Budget, support: BoolArray | None = None
) -> Planes:
    """Give labelled points of an S2OCT their margins, moving only hyperplanes on the way of those that miss them.

    Parameters
    ----------
    survey, planes, taught, budget
        See :mod:`treewright.models.s2oct.search`. Each labelled point stays on the way to its nearest leaf of its own
        class.
    support : ndarray of bool, shape (n_branches, n_features), or None
        Features that each node may use; None for all.
    """
    least = np.inf
    for _ in range(survey.search.sides_passes):
        error, leaf = planes_errors(planes, survey.X, survey.y)
        total = float(survey.weight @ error)
        if error.max(initial=0.0) <= 1e-6 or total >= 0.999 * least or budget.over:
            break
        least = total
        for node in range(len(planes.gamma) - 1, -1, -1):
            at_node, left = passes(leaf, node, planes.shape)
            value = planes.values(survey.X)[:, node]
            missing = at_node & (np.where(left, -value, value) < 1.0 - 1e-9)
            if missing.any() and not budget.over:
                planes = _mended_node(survey, planes, node, at_node, left, taught, budget, support)
    return planes


def _mended_node(
    survey: Survey,
    planes: Planes,
    node: int,
    at_node: BoolArray,
    left: BoolArray,
    taught: IntArray,
    budget: Budget,
    support: BoolArray | None,
) -> Planes:
    """The hyperplane of a node with labelled points on their sides and, of the taught ones, most as they should be."""
    columns = np.arange(planes.omega.shape[1]) if support is None else np.flatnonzero(support[node])
    known = survey.sample(np.random.default_rng(node), at_node)
    if not len(columns) or not len(known):
        return planes
    X, side, weight = survey.X[known][:, columns], np.where(left[known], -1.0, 1.0), survey.weight[known]
    values = planes.values(survey.hidden)
    inside = np.flatnonzero(passes(leaves_reached(values), node, planes.shape)[0])
    if_left, if_right = labels_on_either_side(planes, node, values[inside])
    caring = (if_left == taught[inside]) != (if_right == taught[inside])
    wish = np.where((if_left == taught[inside])[caring], -1.0, 1.0)
    inside = inside[caring]
    points, rows, now = survey.hidden[inside][:, columns], survey.totals.rows[inside], np.abs(values[inside, node])
    bound, reach, joining = survey.model.max_coefficient, survey.reach, survey.search.sides_joining

    def solved(program: Separation, price: float) -> tuple[FloatArray, float] | None:
        cost = price * np.minimum(rows / max(rows.mean(), 1.0), 10.0) if len(rows) else rows
        return solve_joining(
            program.solve,
            lambda some: program.join(points[some], wish[some], cost[some]),
            lambda plane: np.maximum(0.0, 0.5 - wish * (points @ plane[0] - plane[1])),
            np.zeros(len(points), dtype=bool),
            np.argsort(now, kind="stable")[: joining.near],
            at_a_time=joining.at_a_time,
            rounds=joining.programs,
            budget=budget,
        ).solution

    found = solved(Separation(X, side, bound, reach), 1.0)
    if found is None and not budget.over:
        # They cannot all be right: labelled errors are what counts, taught points only choose among equals.
        program = Separation(X[:0], side[:0], bound, reach)
        program.join(X, side, weight / weight.max())
        found = solved(program, 1e-3)
    if found is None:
        return planes
    omega = np.zeros(planes.omega.shape[1])
    omega[columns] = found[0]
    return planes.replaced(node, omega, found[1])
