"""Directions that part weighted points, by convex surrogates; thresholds along them are exact, see `thresholds`.

And hyperplanes ``omega @ x - gamma`` with ``|omega_j| <= s`` that part them with a margin of 1, by linear programs.
"""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.solvers.linear import LinearProgram
from treewright.solvers.vocabulary import Status
from treewright.splits.thresholds import best_threshold

__all__ = ["Separation", "hinge_directions", "logistic_direction", "separating_plane", "widest_gap"]
_SLACK = 1e-5
"""Margins are asked for a little wider than 1, so that a solver's tolerance never brings them below."""
_TOLERANCE = 1e-10
"""By how much a row may be violated, in units where the largest coordinate and s are 1."""
_SECONDS = 10.0
"""Most seconds of a program."""


def logistic_direction(
    X: FloatArray, goes_left: BoolArray, weight: FloatArray, penalty: str = "l2", strength: float = 1e-2
) -> FloatArray:
    """Direction of a weighted logistic regression that sends the marked points to the low side.

    Parameters
    ----------
    X : ndarray of shape (n_points, n_features)
        Points.
    goes_left : ndarray of bool
        Which points should go left; both sides must occur.
    weight : ndarray of shape (n_points,)
        How much each wish counts, scaled to mean 1 here.
    penalty : {"l1", "l2"}
        Penalty of the weights; l1 gives few features.
    strength : float
        Factor of the penalty.
    """
    # 'saga' and 'lbfgs' need many iterations on unscaled features; liblinear does not.
    ratio = {"l1": 1.0, "l2": 0.0}[penalty]
    model = LogisticRegression(
        C=1.0 / strength, l1_ratio=ratio, solver="liblinear", max_iter=200, tol=1e-3, random_state=0
    )
    goes_right, counts = ~goes_left, weight / weight.mean()
    if penalty == "l1" or X.shape[1] <= 2 * len(X):
        return np.asarray(model.fit(X, goes_right, sample_weight=counts).coef_[0], dtype=np.float64)
    # The solution is a combination of the points: coordinates along their principal directions will do.
    square, mixed = np.linalg.eigh(X @ X.T)
    kept = square > 1e-10 * square[-1]
    if not kept.any():
        return np.zeros(X.shape[1])
    long = np.sqrt(square[kept])
    model.fit(mixed[:, kept] * long, goes_right, sample_weight=counts)
    return np.asarray(X.T @ (mixed[:, kept] @ (model.coef_[0] / long)))


def hinge_directions(
    X: FloatArray,
    goes_left: BoolArray,
    weight: FloatArray,
    gap: float,
    rounds: int = 4,
    budget: Budget | None = None,
) -> list[FloatArray]:
    r"""Directions of a split with few violations under :math:`\lVert a \rVert_1 \le 1`, by linear programs.

    .. math:: \min \sum_i w_i \xi_i \quad\text{s.t.}\quad \sigma_i (a^\top x_i - o) \ge g/2 - \xi_i

    is solved several times, each time with the weight of a point divided by its last violation, so that the sum comes
    to count violations instead of adding them up. The sides that a solution gives are then parted as widely as they
    can be, since points inside the gap are allowed nowhere, right or wrong.

    Parameters
    ----------
    X : ndarray of shape (n_points, n_features)
        Points.
    goes_left : ndarray of bool
        Which points should go left.
    weight : ndarray of shape (n_points,)
        How much each wish counts.
    gap : float
        Gap g between the sides.
    rounds : int
        Number of times the weights are renewed.
    budget : Budget or None
        Ends the work early, with the directions found so far.

    Returns
    -------
    list of ndarray
        Directions of 1-norm 1; empty where all points can go one way without cost.
    """
    hinge = _Hinge(X, np.where(goes_left, -1.0, 1.0), gap)
    current, directions = weight / weight.mean(), list[FloatArray]()
    seen: set[bytes] = set()
    for _ in range(rounds):
        if budget is not None and budget.over:
            break
        solved = hinge.solve(current, budget)
        if solved is None:
            break
        normal, violation = solved
        directions.append(normal)
        level = X @ normal
        threshold, _ = best_threshold(level, weight * ~goes_left, weight * goes_left)
        left = level <= threshold
        if left.tobytes() in seen:
            break
        seen.add(left.tobytes())
        if left.any() and not left.all():
            parted = widest_gap(X, left, budget)
            directions += [] if parted is None else [parted]
        if violation.max() <= 1e-9:
            break
        current = weight / (violation + gap / 2)
    return directions


def widest_gap(X: FloatArray, goes_left: BoolArray, budget: Budget | None = None) -> FloatArray | None:
    """Direction of a split, of 1-norm 1, that parts two given sides as widely as possible; None if none parts them.

    Also None if the budget ends before the answer is known.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> widest_gap(X, np.array([True, True, False, False])).tolist()
    [1.0, 0.0]
    """
    n, p = X.shape
    if goes_left.all() or not goes_left.any():
        return None
    sign, reach = np.where(goes_left, -1.0, 1.0), float(np.abs(X).max())
    signed = sign[:, None] * X
    # Columns: a+ (p), a- (p), o, half the gap. Rows: sign*(X a - o) - half >= 0, and |a|_1 <= 1.
    # All columns are bounded, so that the simplex method begins at a dual feasible point.
    upper = np.repeat([1.0, reach, reach], [2 * p, 1, 1])
    program = LinearProgram(np.append(np.zeros(2 * p + 1), -1.0), np.repeat([0.0, -reach, 0.0], [2 * p, 1, 1]), upper)
    program.add_rows(np.hstack([signed, -signed, -sign[:, None], np.full((n, 1), -1.0)]), 0.0, np.inf)
    program.add_rows(np.ones((1, 2 * p)), -np.inf, 1.0)
    solved = program.solve(_seconds(budget))
    if solved.status is not Status.OPTIMAL or solved.x is None or solved.x[-1] <= 1e-9:
        return None
    return _normalized(solved.x[:p] - solved.x[p : 2 * p])


class _Hinge:
    """The weighted hinge program of given sides; from solve to solve only its weights change."""

    def __init__(self, X: FloatArray, sign: FloatArray, gap: float) -> None:
        n, self.p = X.shape
        p, signed, reach = self.p, sign[:, None] * X, float(np.abs(X).max()) + gap / 2
        # Columns: a+ (p), a- (p), o, xi (n). Rows: sign*(X a - o) + xi >= gap/2, and |a|_1 <= 1.
        bounds = np.repeat([0.0, -reach], [2 * p, 1]), np.repeat([1.0, reach], [2 * p, 1])
        self.program = LinearProgram(np.zeros(2 * p + 1), *bounds)
        self.program.add_rows(np.hstack([signed, -signed, -sign[:, None]]), gap / 2, np.inf)
        self.program.add_rows(np.ones((1, 2 * p)), -np.inf, 1.0)
        self.program.add_columns(np.zeros(n), 0.0, np.inf, rows=np.arange(n))

    def solve(self, weight: FloatArray, budget: Budget | None) -> tuple[FloatArray, FloatArray] | None:
        """Normal and violations, None where the normal is zero or time ran out."""
        first = 2 * self.p + 1
        self.program.change_costs(first + np.arange(len(weight)), weight / weight.sum())
        solved = self.program.solve(_seconds(budget))
        if solved.status is not Status.OPTIMAL or solved.x is None:
            return None
        normal = solved.x[: self.p] - solved.x[self.p : 2 * self.p]
        return (_normalized(normal), solved.x[first:]) if np.abs(normal).sum() > 1e-9 else None


def _seconds(budget: Budget | None) -> float:
    """Time limit of a linear program."""
    return np.inf if budget is None else budget.remaining


def _normalized(normal: FloatArray) -> FloatArray:
    """The direction with 1-norm 1 and without the dust that a linear program leaves."""
    clean = np.where(np.abs(normal) > 1e-9 * np.abs(normal).max(), normal, 0.0)
    return np.asarray(clean / np.abs(clean).sum())


class Separation:
    r"""Hyperplane with all hard points on their side with margin 1, and soft ones as far as possible.

    .. math:: \min \sum_i w_i \xi_i + c^\top \omega - c_0 \gamma \quad\text{s.t.}\quad
              \sigma_i(\omega^\top x_i - \gamma) \ge 1,\; \sigma_i(\omega^\top x_i - \gamma) \ge m - \xi_i,\;
              |\omega_j| \le s

    The program is kept: soft points may join, change their sides and weights, and the aim c may change; each solve
    starts from where the last one ended.

    Parameters
    ----------
    hard : ndarray of shape (n, n_features)
        Points that must be on their sides.
    hard_side : ndarray of shape (n,)
        -1 for the left, 1 for the right.
    bound : float
        s.
    reach : float
        Largest coordinate of all points that are or will be in the program.
    soft_margin : float
        m, the margin of soft points.

    Examples
    --------
    >>> program = Separation(np.array([[0.0], [4.0]]), np.array([-1.0, 1.0]), bound=10.0, reach=4.0)
    >>> program.join(np.array([[1.0]]), np.array([1.0]), np.array([1.0]))
    >>> omega, gamma = program.solve()
    >>> bool(omega[0] - gamma >= 1.0 and gamma >= 1.0)
    True
    >>> program.change(np.array([0]), np.array([-1.0]), np.array([1.0]))
    >>> omega, gamma = program.solve()
    >>> bool(omega[0] - gamma <= -1.0 and 4 * omega[0] - gamma >= 1.0)
    True
    """

    def __init__(
        self, hard: FloatArray, hard_side: FloatArray, bound: float, reach: float, soft_margin: float = 1.0
    ) -> None:
        self.n_hard, self.p = hard.shape
        self.bound, self.soft_margin, p = bound, soft_margin, self.p
        # In units where the largest coordinate and s are 1, so that the program is well scaled.
        self.reach = reach or 1.0
        self.unit = (1.0 + _SLACK) / (bound * self.reach)
        most = np.append(np.ones(p), p + 2 * self.unit)
        self.program = LinearProgram(np.zeros(p + 1), -most, most, tolerance=_TOLERANCE)
        self._rows(hard, hard_side, 1.0)

    def join(self, soft: FloatArray, side: FloatArray, weight: FloatArray) -> None:
        """Let soft points join.

        Parameters
        ----------
        soft : ndarray of shape (n, n_features)
            Points.
        side : ndarray of shape (n,)
            -1 for the left, 1 for the right.
        weight : ndarray of shape (n,)
            What a unit of violation costs, of about unit size.
        """
        first = self.program.n_rows
        self._rows(soft, side, self.soft_margin)
        # A violation is added to the value of a point, with the sign of its side.
        self.program.add_columns(side * weight, *_half_line(side, 0.0), rows=first + np.arange(len(soft)))

    def change(self, which: IntArray, side: FloatArray, weight: FloatArray) -> None:
        """Change sides and weights of some soft points, by their numbers in the order in which they joined."""
        row, column = self.n_hard + which, self.p + 1 + which
        self.program.change_rows(row, *_half_line(side, self.soft_margin * self.unit))
        self.program.change_bounds(column, *_half_line(side, 0.0))
        self.program.change_costs(column, side * weight)

    def aim(self, point: FloatArray, factor: float) -> None:
        """Add `factor` times the value of a point to what is minimized: an extreme hyperplane of those allowed."""
        self.program.change_costs(np.arange(self.p + 1), factor * np.append(point / self.reach, -1.0))

    def solve(self, seconds: float = _SECONDS) -> tuple[FloatArray, float] | None:
        """Solve for omega and gamma; None if the hard points cannot be parted, or not in this time (10 s at most)."""
        solved = self.program.solve(min(_SECONDS, seconds))
        if solved.x is None:
            return None
        p = self.p
        return np.asarray(solved.x[:p] * self.bound), float(solved.x[p] * self.bound * self.reach)

    def _rows(self, points: FloatArray, side: FloatArray, margin: float) -> None:
        """Rows of the values of points, at or beyond the margin of their side."""
        table = np.full((len(points), self.p + 1), -1.0)
        np.divide(points, self.reach, out=table[:, : self.p])
        self.program.add_rows(table, *_half_line(side, margin * self.unit))


def separating_plane(
    hard: FloatArray,
    hard_side: FloatArray,
    soft: FloatArray,
    soft_side: FloatArray,
    soft_weight: FloatArray,
    bound: float,
    seconds: float = _SECONDS,
) -> tuple[FloatArray, float] | None:
    """Hyperplane of one program at a node that is not kept, see :class:`Separation`.

    Parameters
    ----------
    hard, soft : ndarray of shape (n, n_features)
        Points.
    hard_side, soft_side : ndarray of shape (n,)
        -1 for the left, 1 for the right.
    soft_weight : ndarray of shape (n_soft,)
        What a unit of violation of a soft point costs, in any unit.
    bound : float
        s.
    seconds : float
        Time limit, 10 at most.

    Returns
    -------
    (ndarray, float) or None
        omega and gamma, None if the hard points cannot be parted.

    Examples
    --------
    >>> none = np.zeros((0, 1))
    >>> X, side = np.array([[0.0], [1.0]]), np.array([-1.0, 1.0])
    >>> omega, gamma = separating_plane(X, side, none, none[:, 0], none[:, 0], 10.0)
    >>> bool(omega[0] - gamma >= 1.0 and -gamma <= -1.0)
    True
    """
    reach = max(np.abs(hard).max(initial=0.0), np.abs(soft).max(initial=0.0))
    program = Separation(hard, hard_side, bound, reach)
    program.join(soft, soft_side, soft_weight / (soft_weight.max(initial=0.0) or 1.0))
    return program.solve(seconds)


def _half_line(side: FloatArray, begin: float) -> tuple[FloatArray, FloatArray]:
    """Bounds of what lies beyond `begin` on the right, or beyond ``-begin`` on the left."""
    right = side > 0
    return np.where(right, begin, -np.inf), np.where(right, np.inf, -begin)
