r"""Labels spread along the edges of a graph, and carried over to new points.

The linear system of a label step is solved again and again.

For values Z on the points,

.. math:: \sum_n J_n \lVert z_n - y_n \rVert^2 + \mu \sum_n m_n \lVert z_n - t_n \rVert^2 + \gamma\, Z^\top L Z

is least where :math:`(\mathrm{diag}(J) + \mu\, \mathrm{diag}(m) + \gamma L) Z = J Y + \mu\, m T`. J is 0 for points
without a label. Neighbour graphs are expanders: sparse factors of them are nearly dense, while conjugate gradients take
some dozens of steps. So factors are for small graphs, and for long thin ones that are asked for by name.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NearestNeighbors

from treewright.core.arrays import BoolArray, FloatArray
from treewright.core.budget import Budget
from treewright.exceptions import InvalidInputError
from treewright.graph.affinity import perplexity_affinities
from treewright.graph.edge_loops import advance, finish, turn
from treewright.graph.laplacian import components, degrees, laplacian

__all__ = ["LabelSmoother", "nearest_mean"]

_DIRECT_POINTS = 1000
"""Points up to which "auto" factorizes. Measured on ten neighbours in one cloud of 20 dimensions, factors against
conjugate gradients: 2000 points 0.2 s and 0.01 s, 5000 points 2 s and 0.02 s, 10 000 points 17 s and 0.05 s. In
clusters of 10 dimensions 10 000 points take 0.3 s and 0.05 to 0.09 s; a second solve with the same mu 0.005 s by
factors, so ask for these where mu stays and the graph is thin."""

_MAX_STEPS = 5000


class LabelSmoother:
    r"""Solver of :math:`(\mathrm{diag}(J) + \mu\, \mathrm{diag}(m) + \gamma L) Z = R` for many R and some mu.

    Parameters
    ----------
    W : csr_array of shape (n, n)
        Graph: symmetric, not negative, zero diagonal; see :func:`check_graph`.
    labelled_weight : ndarray of shape (n,)
        J, the weights of the labels, 0 for points without one.
    gamma : float
        Price of differences along edges, not negative.
    point_weight : ndarray of shape (n,) or None
        m, the weights of the points; None for ones.
    method : {"auto", "direct", "cg"}
        Sparse factors, kept while mu stays the same, or conjugate gradients on all columns at once. "auto" factorizes
        graphs of at most 1000 points; graphs that are long and thin may gain by factors beyond that.
    tol : float
        Conjugate gradients end when each column's residual is at most this share of its right-hand side.

    Attributes
    ----------
    method : str
        "direct" or "cg".
    n_iter : int
        Steps of the last solve by conjugate gradients, 0 for a direct one.
    converged : bool
        Whether the last solve reached the tolerance.

    Examples
    --------
    A path of three points with the values 1 and -1 at its ends:

    >>> W = sparse.csr_array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    >>> smoother = LabelSmoother(W, np.array([1.0, 0.0, 1.0]), gamma=0.5)
    >>> smoother.solve(np.array([[1.0], [0.0], [-1.0]]), mu=0.0).ravel().round(6).tolist()
    [0.666667, 0.0, -0.666667]
    """

    def __init__(
        self,
        W: Any,
        labelled_weight: FloatArray,
        gamma: float,
        point_weight: FloatArray | None = None,
        method: str = "auto",
        tol: float = 1e-10,
    ) -> None:
        if method not in ("auto", "direct", "cg"):
            raise InvalidInputError(f"method={method!r} is unknown; choose one of 'auto', 'direct', 'cg'")
        if not (gamma >= 0 and np.isfinite(gamma)):
            raise InvalidInputError(f"gamma={gamma!r}; it must be finite and not negative")
        n = W.shape[0]
        self.W, self.gamma, self.tol = W, float(gamma), tol
        self.labelled_weight = _weights(labelled_weight, n, "labelled_weight")
        self.point_weight = np.ones(n) if point_weight is None else _weights(point_weight, n, "point_weight")
        self.method = ("direct" if n <= _DIRECT_POINTS else "cg") if method == "auto" else method
        self.n_iter, self.converged = 0, True
        self._degree = degrees(W)
        # Without price the edges are nothing: each point stands alone.
        self._component = components(W) if gamma > 0 else np.arange(n)
        self._factors: tuple[float, BoolArray, Any] | None = None

    def solve(
        self,
        right_hand_side: FloatArray,
        mu: float,
        start: FloatArray | None = None,
        budget: Budget | None = None,
        least_steps: int = 0,
    ) -> FloatArray:
        """Solve for one right-hand side.

        Parameters
        ----------
        right_hand_side : ndarray of shape (n, n_outputs)
            R.
        mu : float
            Weight of all points, not negative. With 0, components of the graph without a label are not determined by
            the system, whatever R is there: they get 0, the mean of the labels if these are centred.
        start : ndarray of shape (n, n_outputs) or None
            Where conjugate gradients start, for example the last solution; None for 0.
        budget : Budget or None
            Ends conjugate gradients early with what they have.
        least_steps : int
            Steps that they make before.

        Returns
        -------
        ndarray of shape (n, n_outputs)
            Z, float64.
        """
        R = np.ascontiguousarray(right_hand_side, dtype=np.float64)
        n = self.W.shape[0]
        if R.ndim != 2 or R.shape[0] != n:
            raise InvalidInputError(f"the right-hand side has shape {R.shape}, expected ({n}, n_outputs)")
        if not (mu >= 0 and np.isfinite(mu)):
            raise InvalidInputError(f"mu={mu!r}; it must be finite and not negative")
        if self.method == "direct":
            self.n_iter, self.converged = 0, True
            return self._direct(R, float(mu))
        return self._conjugate(R, float(mu), start, budget, least_steps)

    def _determined(self, mu: float) -> BoolArray:
        """Points of components on which the system is regular: those where some weight is positive."""
        own = self.labelled_weight + mu * self.point_weight
        return np.asarray(np.bincount(self._component, own)[self._component] > 0)

    def _direct(self, R: FloatArray, mu: float) -> FloatArray:
        if self._factors is None or self._factors[0] != mu:
            regular = self._determined(mu)
            own = sparse.diags_array(self.labelled_weight + mu * self.point_weight, format="csr")
            A = (own + self.gamma * laplacian(self.W))[regular][:, regular].tocsc()
            # The matrix is positive definite: pivots on the diagonal keep the fill of a symmetric ordering.
            factors = (
                splu(A, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
                if regular.any()
                else None
            )
            self._factors = mu, regular, factors
        _, regular, factors = self._factors
        Z = np.zeros(R.shape)
        if factors is not None and R.shape[1]:
            Z[regular] = factors.solve(R[regular])
        return Z

    def _conjugate(
        self, R: FloatArray, mu: float, start: FloatArray | None, budget: Budget | None, least_steps: int
    ) -> FloatArray:
        """Jacobi-preconditioned conjugate gradients, a system a column with the products shared.

        Products of the graph are scipy's, which are as fast as compiled loops of our own for two columns and twice as
        fast for ten. What else there is to a step reads each table once.
        """
        regular = self._determined(mu)
        diagonal = self.labelled_weight + mu * self.point_weight + self.gamma * self._degree
        # Where the system leaves values open, residual and start are 0, and no edge leads there from elsewhere.
        diagonal = np.where(regular & (diagonal > 0), diagonal, 1.0)
        residual = np.where(regular[:, None], R, 0.0)
        goal = self.tol**2 * np.einsum("ij,ij->j", residual, residual)
        Z, P = np.zeros(R.shape), np.zeros(R.shape)
        if start is not None:
            np.copyto(Z, start, where=regular[:, None])
            Q = self.W @ Z
            finish(diagonal, self.gamma, Z, Q)
            residual -= Q
        still = np.zeros(R.shape[1])
        square, scaled = advance(still, diagonal, P, P, Z, residual)
        keep = still
        self.n_iter = 0
        while np.any(square > goal):
            if self.n_iter == _MAX_STEPS or (budget is not None and budget.over and self.n_iter >= least_steps):
                self._warn(square, goal, budget)
                break
            turn(keep, diagonal, residual, P)
            Q = self.W @ P
            bend = finish(diagonal, self.gamma, P, Q)
            moving = (square > goal) & (bend > 0)  # columns that have converged stay
            step = np.where(moving, scaled / np.where(moving, bend, 1.0), 0.0)
            before = scaled
            square, scaled = advance(step, diagonal, P, Q, Z, residual)
            keep = np.where(moving, scaled / np.where(moving, before, 1.0), 0.0)
            self.n_iter += 1
        self.converged = not np.any(square > goal)
        return Z

    def _warn(self, square: FloatArray, goal: FloatArray, budget: Budget | None) -> None:
        if budget is not None and budget.over:
            return  # the caller knows
        worst = float(np.sqrt(np.max(square / np.where(goal > 0, goal, 1.0)))) * self.tol
        warnings.warn(
            f"conjugate gradients ended after {self.n_iter} steps with a relative residual of {worst:.1e}, asked for "
            f"{self.tol:.1e}; labels are far from most rows along the graph: use more neighbours, or method='direct'",
            ConvergenceWarning,
            stacklevel=4,
        )


def _weights(weight: FloatArray, n: int, name: str) -> FloatArray:
    weight = np.ascontiguousarray(weight, dtype=np.float64)
    if weight.shape != (n,):
        raise InvalidInputError(f"{name} has shape {weight.shape}, the graph has {n} points; give one weight a point")
    if not (np.isfinite(weight).all() and np.all(weight >= 0)):
        raise InvalidInputError(f"{name} must be finite and not negative")
    return weight


def nearest_mean(
    points: Any, values: FloatArray, rows: Any, n_neighbors: int = 10, perplexity: float = 5.0, n_jobs: int = 1
) -> FloatArray:
    """Labels carried over to new points: the mean of the values of the nearest points, weighted by affinity.

    Parameters
    ----------
    points : ndarray or csr_array of shape (n_points, n_features)
        Points.
    values : ndarray of shape (n_points, n_outputs)
        Their values.
    rows : ndarray or csr_array of shape (n_rows, n_features)
        New ones.
    n_neighbors, perplexity
        As for :func:`neighbor_graph`. Neighbours are exact.
    n_jobs : int
        Threads.

    Returns
    -------
    ndarray of shape (n_rows, n_outputs)
        Values of the rows.

    Examples
    --------
    >>> points = np.array([[0.0], [1.0], [9.0], [10.0]])
    >>> values = np.array([[0.0], [0.0], [1.0], [1.0]])
    >>> nearest_mean(points, values, np.array([[0.4], [9.5]]), n_neighbors=2, perplexity=2.0).tolist()
    [[0.0], [1.0]]
    """
    k = min(n_neighbors, points.shape[0])
    model = NearestNeighbors(n_neighbors=k, n_jobs=n_jobs).fit(points)
    distance, index = model.kneighbors(rows)
    share = perplexity_affinities(np.asarray(distance, dtype=np.float64), min(perplexity, float(k)))
    return np.asarray(np.einsum("ik,iko->io", share, values[index]))
