"""Algorithm 3: rows and weights of the next round of training (Zhu et al. 2020, appendix B.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.data import weight_unit
from treewright.models.svm1odt.selection.choice import split_categories
from treewright.models.svm1odt.selection.clusters import clustered_rows, feature_widths
from treewright.models.svm1odt.selection.hull import Hull, convex_hull
from treewright.models.svm1odt.selection.room import SelectionWithRoom, selected_with_room
from treewright.tree import Tree, predict_labels

__all__ = ["RoundRows", "round_rows"]

_REST, _INSIDE, _USED = 0, 1, 2


@dataclass(frozen=True, eq=False)
class RoundRows:
    r"""Rows of a round of SVM1-ODT training. Each row is in one of the four sets.

    Attributes
    ----------
    rows : ndarray of int
        Rows to train on, ascending: all but those inside.
    weight : ndarray
        Their weights: those of `used` rows are above the sum of those of `wrong` ones.
    wrong : ndarray of int
        I, rows that the tree misclassifies.
    inside : ndarray of int
        :math:`\bar I`, rows that are convex combinations of `used` rows of their leaf, repeated rows among them.
    used : ndarray of int
        J, rows that have a share in one inside.
    rest : ndarray of int
        K, the other rows.
    complete : bool
        Whether time was enough; without, fewer rows are inside than could be.
    """

    rows: IntArray
    weight: FloatArray
    wrong: IntArray
    inside: IntArray
    used: IntArray
    rest: IntArray
    complete: bool


def round_rows(
    X: FloatArray,
    y: IntArray,
    tree: Tree,
    *,
    weight: FloatArray | None = None,
    categorical: BoolArray | None = None,
    held: IntArray | None = None,
    epsilon: float = 0.0,
    width: FloatArray | None = None,
    budget: Budget | None = None,
) -> RoundRows:
    """Tell what an SVM1-ODT tree is to be trained on next, given the last one.

    Each used row weighs more than all wrong ones together, so an optimum (without prices of margins and splits) is
    right on all of them, as the last tree is, and then has no more errors on the rest than that one has. Rows inside
    are right with the used rows that make them as long as those share a leaf. Proposition 2 of the paper says that
    training accuracy never falls, but used rows may be right in *different* leaves of their class, with a leaf of
    another class between them, and it can fall. It holds once rows inside that the new tree has wrong are `held` and
    the round is solved again, which ends, as more rows are held each time. All this needs ``epsilon=0``.

    The last `tree` has class numbers `y` as labels; parameters are those of :func:`.choose_rows`, and rows that are
    `held`: in the round whatever makes them. Once the budget is over, what is known to be inside by then stays so.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [2.0], [5.0], [6.0]])
    >>> tree = Tree.stump([1.0], 3.0, [[3.0, 0.0], [0.0, 2.0]])
    >>> found = round_rows(X, np.array([0, 0, 0, 0, 1]), tree)
    >>> found.wrong.tolist(), found.inside.tolist(), found.used.tolist(), found.rest.tolist()
    ([3], [1], [0, 2], [4])
    >>> found.rows.tolist(), found.weight.tolist()
    ([0, 2, 3, 4], [2.0, 2.0, 1.0, 1.0])
    """
    budget, weights = budget or Budget(), np.ones(len(X)) if weight is None else weight
    categories = split_categories(tree) if categorical is None else categorical
    right = predict_labels(tree, X) == y
    known = np.flatnonzero(right)
    data = clustered_rows(X[known], y[known], tree, categories, feature_widths(X) if width is None else width)
    state, complete = np.full(len(data.first), _REST), True
    for cluster in data.clusters:
        for part in cluster.parts:
            complete &= _mark(state, part, data.coordinates(part), epsilon, budget)
    # A repeated row is made by its first copy, which is therefore used, unless both are inside.
    copy = np.ones(len(known), dtype=bool)
    copy[data.first] = False
    twice = np.unique(data.place[copy])
    state[twice[state[twice] == _REST]] = _USED
    of_row = np.where(copy, _INSIDE, state[data.place])
    if held is not None:
        of_row[np.isin(known, held) & (of_row == _INSIDE)] = _REST
    sets = [known[of_row == kind] for kind in (_INSIDE, _USED, _REST)]
    wrong = np.flatnonzero(~right)
    new = weights.copy()
    new[sets[1]] = weights[wrong].sum() + weight_unit(weights)
    rows = np.sort(np.concatenate([wrong, sets[1], sets[2]]))
    return RoundRows(rows, new[rows], wrong, sets[0], sets[1], sets[2], complete)


def _mark(state: IntArray, part: IntArray, X: FloatArray, epsilon: float, budget: Budget) -> bool:
    """Mark the points of a part that are inside and those that make them; whether time was enough."""
    if budget.over:
        return False
    hull = convex_hull(X, budget)
    near = selected_with_room(X, hull, epsilon, budget) if epsilon > 0 and hull.complete else None
    made: Hull | SelectionWithRoom = hull if near is None else near
    inside = np.flatnonzero(made.inside)
    state[part[inside]] = _INSIDE
    complete = hull.complete and (epsilon == 0 or near is not None)
    shares = made.combinations(inside, budget) if complete else None
    # Without shares each of the corners may be what makes a point inside.
    makers = np.unique(shares.indices) if shares is not None else hull.corners[~made.inside[hull.corners]]
    state[part[makers]] = _USED
    return shares is not None
