r"""Hyperplanes with room: unlabelled points get the margin that S2OCT asks for while the totals stay met.

With the other nodes fixed, a node's hyperplane and the sides of the unlabelled points at it shall have

.. math:: \sum_i w_i [m - \sigma_i f(x_i)]^+ = 0

over hyperplanes that keep the labelled points where they are and sides :math:`\sigma` that meet the totals. For fixed
sides the least sum is one linear program; for a fixed hyperplane the best sides are a cut of the sorted values. The two
steps alternate and never raise the sum. Where they get stuck, points that lack room gain weight, so the sum changes
and the next rounds look elsewhere.
"""

from __future__ import annotations

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.models.s2oct.search.moves import Moves
from treewright.splits.joining import solve_joining
from treewright.totals.points import divide_points
from treewright.tree.complete import Planes, labels_on_either_side, leaves_reached, passes

__all__ = ["planes_with_room"]

_CLEAR = 1e-7
"""A margin missed by less than this is kept."""


def planes_with_room(moves: Moves, planes: Planes) -> Planes:
    """Move nodes of an S2OCT, the root first, until unlabelled points have room and totals are met, or nothing helps.

    Parameters
    ----------
    moves : Moves
        Gives the model, the points and the counts.
    planes : Planes
        Hyperplanes; labelled points that pass a node with margin stay on their sides.

    Returns
    -------
    Planes
        The hyperplanes after the last round; not always better ones.
    """
    fewest, search = np.inf, moves.survey.search
    for _ in range(search.margin_sweeps):
        lacking = 0
        for node in range(len(planes.gamma)):
            if moves.budget.over:
                return planes
            if np.any(planes.omega[node]):
                planes, short = _settled_node(moves, planes, node)
                lacking += short
                if lacking > search.hopeless:
                    return planes
        if lacking >= fewest or lacking == 0:
            break
        fewest = lacking
    return planes


def _settled_node(moves: Moves, planes: Planes, node: int) -> tuple[Planes, int]:
    """Alternate sides and hyperplane of one node; how many points lack room at the end."""
    required, search = moves.model.required, moves.survey.search
    weight = np.ones(len(moves.hidden))
    forced = np.zeros(len(moves.hidden))
    since, until = np.zeros(len(moves.hidden), dtype=int), np.zeros(len(moves.hidden), dtype=int)
    best, fewest, least = planes, len(moves.hidden), np.inf
    program = _Program(moves, planes, node)
    for k in range(search.margin_rounds):
        values = planes.values(moves.hidden)
        forced[until <= k] = 0.0
        side = _sides(moves, planes, node, values, weight, required, forced)
        needs = _needing(moves, planes, node, values)
        missing = required - side * values[:, node]
        if not np.any(needs & (missing > _CLEAR)):
            return planes, 0
        found = program.roomiest(planes, side, needs, weight)
        if found is None or moves.budget.over:
            break
        planes = planes.replaced(node, *found)
        short = np.maximum(required - side * (moves.hidden @ found[0] - found[1]), 0.0)
        short[~needs] = 0.0
        lacking = short > _CLEAR
        if short.sum() < least:
            best, fewest, least = planes, int(lacking.sum()), float(short.sum())
        # Each round in which a point lacks room makes it more important; after some it has to try the other side.
        weight += lacking * moves.rng.uniform(0.5, 1.5, len(short))
        since = np.where(lacking, since + 1, 0)
        tired = np.flatnonzero(since >= search.margin_patience)
        if len(tired):
            i = moves.rng.choice(tired)
            forced[i], until[i], since[i] = -side[i], k + 2 * search.margin_patience, 0
    return best, fewest


def _needing(moves: Moves, planes: Planes, node: int, values: FloatArray) -> BoolArray:
    """Unlabelled points that must keep the margin at a node."""
    if moves.model.margin_rule == "paper":
        return np.ones(len(values), dtype=bool)
    return passes(leaves_reached(values), node, planes.shape)[0]


def _sides(
    moves: Moves, planes: Planes, node: int, values: FloatArray, weight: FloatArray, required: float, forced: FloatArray
) -> FloatArray:
    """Sides of least weighted violation among those that meet the totals; -1 left, 1 right."""
    here = passes(leaves_reached(values), node, planes.shape)[0]
    f = values[:, node]
    if_left, if_right = labels_on_either_side(planes, node, values)
    # What the left costs more than the right.
    right = weight * (np.maximum(required + f, 0.0) - np.maximum(required - f, 0.0))
    right = np.where(forced != 0, forced * (np.abs(right).max(initial=0.0) + 1.0), right)
    counted = here & (if_left != if_right)
    most = np.abs(right).max(initial=0.0) + 1.0
    rows = np.arange(len(f))
    scores = np.full((len(f), moves.model.n_classes), -10.0 * most)
    scores[rows, if_left], scores[rows, if_right] = -right, right
    fixed = ~counted
    scores[fixed] = -10.0 * most
    now = np.where(here, np.where(f > 0, if_right, if_left), planes.labels[leaves_reached(values)])
    scores[rows[fixed], now[fixed]] = 1e3 * most
    label = divide_points(scores, moves.totals)
    side = np.where(forced != 0, forced, np.where(f > 0, 1.0, -1.0))
    side[counted & (label == if_right)] = 1.0
    side[counted & (label == if_left)] = -1.0
    return side


class _Program:
    """Program of a node's hyperplane; from round to round sides and weights of its points change, and points join."""

    def __init__(self, moves: Moves, planes: Planes, node: int) -> None:
        self.moves, self.node = moves, node
        self._begin(moves.settled_sides(planes, node))

    def _begin(self, labelled: FloatArray) -> None:
        """Begin anew with labelled points on these sides."""
        moves, self.labelled = self.moves, labelled
        self.separation = moves.separation(self.node, labelled, moves.model.required)
        self.order = np.zeros(0, dtype=np.int64)  # points in the order in which they joined
        self.inside = np.zeros(len(moves.hidden), dtype=bool)

    def roomiest(
        self, planes: Planes, side: FloatArray, needs: BoolArray, weight: FloatArray
    ) -> tuple[FloatArray, float] | None:
        """Hyperplane of least weighted violation; points join its program when a solution misses them."""
        moves, required = self.moves, self.moves.model.required
        labelled = moves.settled_sides(planes, self.node)
        if not np.array_equal(labelled, self.labelled):
            self._begin(labelled)
        counts = weight * needs
        self.separation.change(np.arange(len(self.order)), side[self.order], counts[self.order])

        columns, joining = moves.columns(self.node), moves.survey.search.margin_joining
        hidden = moves.hidden if moves.support is None else moves.hidden[:, columns]

        def join(some: IntArray) -> None:
            self.separation.join(hidden[some], side[some], counts[some])
            self.order = np.concatenate([self.order, some])

        def value(plane: tuple[FloatArray, float]) -> FloatArray:
            return np.asarray(side * (hidden @ plane[0] - plane[1]))

        near = np.where(needs, value((planes.omega[self.node, columns], planes.gamma[self.node])), np.inf)
        first = np.argsort(near, kind="stable")[: min(joining.near, np.count_nonzero(needs))]
        found = solve_joining(
            self.separation.solve,
            join,
            lambda plane: np.where(needs, required - _CLEAR - value(plane), 0.0),
            self.inside,
            first,
            at_a_time=joining.at_a_time,
            rounds=joining.programs,
            budget=moves.budget,
        ).solution
        return None if found is None else moves.embedded(self.node, found)
