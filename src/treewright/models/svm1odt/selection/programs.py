r"""The linear programs of data selection (Zhu et al. 2020, section 3), one point at a time.

The program (7) of a cluster asks for each point j whether the others make it,

.. math:: \max b_j \quad\text{s.t.}\quad -\varepsilon' \le b_j x_j - \sum_{i \ne j} \lambda_{ji} x_i \le \varepsilon',\;
          \sum_{i \ne j} \lambda_{ji} = b_j,\; 0 \le b_j \le 1,\; \lambda \ge 0 .

The paper prints it without :math:`\lambda \ge 0`, which would be affine combinations. It falls into one program for
each point. Coordinates should be of unit size: what is compared is compared to within :data:`TOLERANCE`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.solvers import Status
from treewright.solvers.linear import LinearProgram

__all__ = ["TOLERANCE", "Corners", "ExpressedPoint", "absorbed_points", "expressed_point", "expressed_points"]

TOLERANCE = 1e-9
"""A point nearer than this to others' hull, in each coordinate, counts as inside."""

_WHOLE = 1.0 - 1e-7
"""From here on b is 1."""


class ExpressedPoint(NamedTuple):
    r"""A solution of the program (7) of SVM1-ODT selection.

    Attributes
    ----------
    inside : ndarray of bool, shape (n,)
        Points with :math:`\lfloor b_j \rfloor = 1`.
    shares : csr_array of shape (n, n)
        :math:`\lambda`, a row for each point inside, the other rows empty.
    """

    inside: BoolArray
    shares: sparse.csr_array


def expressed_point(X: FloatArray, point: int, epsilon: float = 0.0) -> tuple[float, FloatArray]:
    """Solve the program (7) of SVM1-ODT selection for one point as it is printed, with nonnegative shares.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Points of a cluster.
    point : int
        Which of them.
    epsilon : float
        By how much each coordinate may be missed.

    Returns
    -------
    b : float
        1 where the others make the point.
    shares : ndarray of shape (n,)
        Its row of shares, 0 at the point itself.

    Examples
    --------
    >>> b, shares = expressed_point(np.array([[0.0], [0.25], [1.0]]), 1)
    >>> b, shares.tolist()
    (1.0, [0.75, 0.0, 0.25])
    """
    n, d = X.shape
    program = LinearProgram(np.append(np.zeros(n), -1.0), 0.0, np.append(np.full(n, np.inf), 1.0), tolerance=TOLERANCE)
    rows = np.vstack([np.column_stack([-X.T, X[point]]), np.append(np.full(n, -1.0), 1.0)])
    reach = np.append(np.full(d, epsilon), 0.0)
    program.add_rows(rows, -reach, reach)
    program.change_bounds([point], 0.0, 0.0)
    found = program.solve()
    if found.status is not Status.OPTIMAL or found.x is None:  # b = 0 is feasible: only a failure ends here
        return 0.0, np.zeros(n)
    return float(found.x[-1]), found.x[:-1]


def expressed_points(X: FloatArray, epsilon: float = 0.0) -> ExpressedPoint:
    """Solve the program (7) of SVM1-ODT selection for a cluster, point by point; rows of `X` must be distinct."""
    inside, shares = np.zeros(len(X), dtype=bool), np.zeros((len(X), len(X)))
    for j in range(len(X)):
        b, row = expressed_point(X, j, epsilon)
        inside[j] = b >= _WHOLE
        shares[j] = row * inside[j]
    return ExpressedPoint(inside, sparse.csr_array(shares))


def absorbed_points(solution: ExpressedPoint) -> ExpressedPoint:
    r"""Write points inside by points that are not: the transformation T of Theorem 4 of SVM1-ODT selection.

    The paper replaces a point inside, where it has a share in another, by what makes it, and divides by what then
    remains of the other itself, until no point inside has a share. That is how states of a Markov chain are eliminated,
    and the result is its absorption: with Q the shares of points inside and R those of the others,
    :math:`T(\lambda) = (I - Q)^{-1} R`.

    Points inside that only make one another are absorbed nowhere, and the paper's division is one by 0. Equal points do
    this, and with :math:`\varepsilon' > 0` points near one another: Theorem 4 does not hold for them. The first of each
    such set is then no longer inside.

    Parameters
    ----------
    solution : Expressed
        A solution of the program (7).

    Returns
    -------
    Expressed
        Points inside, and their shares of others alone.

    Examples
    --------
    On a line 0, 1, 2, 3, where 1 and 2 are each written by the other:

    >>> table = np.array([[0, 0, 0, 0], [0.5, 0, 0.5, 0], [0, 0.5, 0, 0.5], [0, 0, 0, 0]])
    >>> inner = np.array([False, True, True, False])
    >>> absorbed_points(ExpressedPoint(inner, sparse.csr_array(table))).shares.toarray()[1].round(6).tolist()
    [0.666667, 0.0, 0.0, 0.333333]
    """
    inside, shares = solution.inside.copy(), sparse.csr_array(solution.shares)
    inside[_first_of_closed_sets(inside, shares)] = False
    rows, others = np.flatnonzero(inside), np.flatnonzero(~inside)
    made = np.zeros((len(inside), len(inside)))
    if len(rows):
        table = shares[rows].toarray()
        made[np.ix_(rows, others)] = np.linalg.solve(np.eye(len(rows)) - table[:, rows], table[:, others])
    return ExpressedPoint(inside, sparse.csr_array(np.maximum(made, 0.0)))


def _first_of_closed_sets(inside: BoolArray, shares: sparse.csr_array) -> IntArray:
    """First point of each set of points inside that have shares in one another alone."""
    graph = (shares > 1e-12).astype(np.int8)
    n_sets, part = connected_components(graph, directed=True, connection="strong")
    source, target = graph.nonzero()
    closed = np.ones(n_sets, dtype=bool)
    closed[part[source[part[source] != part[target]]]] = False
    closed[part[~inside]] = False
    _, first = np.unique(part, return_index=True)
    return np.asarray(first[closed])


class Corners:
    """Points that others are to be written by in SVM1-ODT selection; one program, kept, asked point by point.

    Parameters
    ----------
    points : ndarray of shape (m, d)
        The points.

    Examples
    --------
    >>> square = Corners(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    >>> square.shares(np.array([0.5, 0.0])).tolist()
    [0.5, 0.5, 0.0, 0.0]
    >>> square.shares(np.array([0.5, -0.1])) is None
    True
    >>> square.shares(np.array([0.0, 0.0]), without=0) is None
    True
    """

    def __init__(self, points: FloatArray) -> None:
        self.n = len(points)
        self._left_out: list[int] = []
        self._program = LinearProgram(np.zeros(self.n), 0.0, np.inf, tolerance=TOLERANCE)
        sides = np.append(points[0], 1.0)
        self._program.add_rows(np.vstack([points.T, np.ones(self.n)]), sides, sides)

    def shares(
        self, x: FloatArray, epsilon: float = 0.0, without: int | None = None, seconds: float = np.inf
    ) -> FloatArray | None:
        """Shares of the points in `x`, to within `epsilon` a coordinate; None if it is outside of their hull.

        Parameters
        ----------
        x : ndarray of shape (d,)
            What to write.
        epsilon : float
            By how much a coordinate may be missed.
        without : int or None
            A point that gets no share.
        seconds : float
            Time limit; None is returned where it passes.
        """
        low, high = np.append(x - epsilon, 1.0), np.append(x + epsilon, 1.0)
        self._program.change_rows(np.arange(len(low)), low, high)
        if without is not None:
            self._program.change_bounds([without], 0.0, 0.0)
        found = self._program.solve(seconds)
        if without is not None and without not in self._left_out:
            self._program.change_bounds([without], 0.0, np.inf)
        if found.status is not Status.OPTIMAL or found.x is None:
            return None
        return np.maximum(found.x, 0.0) + 0.0

    def sure_shares(self, x: FloatArray, epsilon: float = 0.0, seconds: float = np.inf) -> FloatArray | None:
        """Shares of the points in one known to be inside: at the edge of the tolerance it takes a little more."""
        tries = (self.shares(x, epsilon + more * TOLERANCE, seconds=seconds) for more in (0, 1, 10))
        return next((shares for shares in tries if shares is not None), None)

    def leave_out(self, point: int) -> None:
        """Give a point no share from now on."""
        self._left_out.append(point)
        self._program.change_bounds([point], 0.0, 0.0)

    def let_in(self, point: int) -> None:
        """Let a point that was left out have shares again."""
        self._left_out.remove(point)
        self._program.change_bounds([point], 0.0, np.inf)
