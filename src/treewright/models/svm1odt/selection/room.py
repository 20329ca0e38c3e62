r"""Selection with room, :math:`\varepsilon' > 0`: a point counts as inside when it is near the hull of others.

Theorem 4 says that the program (7), its b rounded down, selects an optimum of the 0-1 program (6). With room it does
not: of two points nearer than :math:`\varepsilon'` the program says of each that the other makes it, and drops both, as
it drops chains of points that lean on one another. So what it says is taken, and then corners come back, from the
outermost on, until every point that is dropped is within :math:`\varepsilon'` of the hull of what is selected. The
result is feasible for (6), and where the theorem holds nothing comes back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.models.svm1odt.selection.hull import Hull
from treewright.models.svm1odt.selection.programs import Corners

__all__ = ["SelectionWithRoom", "selected_with_room"]


@dataclass(frozen=True, eq=False)
class SelectionWithRoom:
    """A selection of SVM1-ODT with room.

    Attributes
    ----------
    inside : ndarray of bool, shape (n,)
        Points that are dropped, each within epsilon of the hull of the others in every coordinate.
    said : ndarray of bool, shape (n,)
        Points that the program (7) drops.
    """

    inside: BoolArray
    said: BoolArray
    _X: FloatArray
    _epsilon: float

    def combinations(self, rows: IntArray, budget: Budget | None = None) -> sparse.csr_array | None:
        """Shares of the selected points in dropped ones, see :meth:`Hull.combinations`."""
        budget, kept = budget or Budget(), np.flatnonzero(~self.inside)
        program, made = Corners(self._X[kept]), []
        for row in rows:
            found = program.sure_shares(self._X[row], self._epsilon, budget.remaining)
            if budget.over or found is None:
                return None
            made.append(sparse.csr_array(found[None, :]))
        shares = sparse.vstack(made, format="csr") if made else sparse.csr_array((0, len(kept)))
        wide = sparse.csr_array((shares.data, kept[shares.indices], shares.indptr), shape=(len(rows), len(self._X)))
        wide.eliminate_zeros()
        return wide


def selected_with_room(
    X: FloatArray, hull: Hull, epsilon: float, budget: Budget | None = None
) -> SelectionWithRoom | None:
    """Drop points within `epsilon` of the hull of others from a selection of SVM1-ODT.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Distinct points.
    hull : Hull
        Their hull; what is inside of it is inside with room.
    epsilon : float
        Room in each coordinate, above 0.
    budget : Budget or None
        Ends the work early.

    Returns
    -------
    WithRoom or None
        None if time was over.

    Examples
    --------
    >>> from treewright.models.svm1odt.selection.hull import convex_hull
    >>> X = np.array([[0.0], [0.05], [0.5], [1.0]])
    >>> chosen = selected_with_room(X, convex_hull(X), 0.1)
    >>> chosen.said.tolist(), chosen.inside.tolist()
    ([True, True, True, False], [False, True, True, False])
    """
    budget, corners = budget or Budget(), hull.corners
    near = _near_others(X, hull, epsilon, budget)
    if near is None:
        return None
    said = hull.inside.copy()
    said[corners[near]] = True
    program = Corners(X[corners])
    for k in near:
        program.leave_out(int(k))
    back = np.zeros(len(corners), dtype=bool)
    back[np.setdiff1d(np.arange(len(corners)), near)] = True
    # From the outermost on: those are the least likely to be near what comes back later.
    outward = near[np.argsort(-np.square(X[corners[near]] - X.mean(axis=0)).sum(axis=1), kind="stable")]
    for k in outward:
        if not back.any() or program.shares(X[corners[k]], epsilon, seconds=budget.remaining) is None:
            if budget.over:
                return None
            program.let_in(int(k))
            back[k] = True
    inside = np.ones(len(X), dtype=bool)
    inside[corners[back]] = False
    return SelectionWithRoom(inside, said, X, epsilon)


def _near_others(X: FloatArray, hull: Hull, epsilon: float, budget: Budget) -> IntArray | None:
    """Places of the corners that are within epsilon of the hull of all other points; None if time was over.

    The other corners alone mostly show it, in a program that is small; where they do not all points are asked.
    """
    corners, near = hull.corners, []
    few, many = Corners(X[corners]), None
    for k, corner in enumerate(corners):
        found = few.shares(X[corner], epsilon, without=k, seconds=budget.remaining)
        if found is None and len(corners) < len(X):
            many = many or Corners(X)
            found = many.shares(X[corner], epsilon, without=int(corner), seconds=budget.remaining)
        if budget.over:
            return None
        if found is not None:
            near.append(k)
    return np.asarray(near, dtype=np.int64)
