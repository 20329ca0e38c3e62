r"""Balanced selection: few points that have many others between them (Zhu et al. 2020, appendix B.1).

The 0-1 program (6) with f = g = 1 maximizes the points inside the hull of the selected ones less the selected ones,

.. math:: \max \sum_i (b_i - a_i) \quad\text{s.t.}\quad b_j x_j = \sum_{i \ne j} \lambda_{ji} x_i,\;
          \sum_{i \ne j} \lambda_{ji} = b_j,\; 0 \le \lambda_{ji} \le a_i,\; a_j + b_j \le 1,\; a, b \in \{0, 1\} .

Outliers that have nothing between them are neither. Algorithm 2 solves its relaxation (9), fixes each b that is 0 or 1
there, and solves (6) for the rest. Its shares are :math:`|\mathcal{N}|^2` many, so larger clusters are cut into blocks
of neighbours, each solved by itself. What all blocks select together is feasible for (6) on the whole cluster, but not
what (6) would select there; of it the corners stay, since all others are between them.
"""

from __future__ import annotations

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.exceptions import SolverError
from treewright.models.svm1odt.selection.hull import convex_hull
from treewright.models.svm1odt.selection.programs import Corners
from treewright.solvers import get_solver
from treewright.solvers.program import Program
from treewright.solvers.program_builder import ProgramBuilder

__all__ = ["BLOCK", "balanced_points", "balanced_program", "balanced_block"]

BLOCK = 30
"""Most points of a block."""

_WHOLE = 1e-6
"""How far from 0 or 1 a solver's b may be."""


def balanced_points(
    X: FloatArray, budget: Budget | None = None, block: int = BLOCK
) -> tuple[BoolArray, BoolArray] | None:
    """Select points for SVM1-ODT by its Algorithm 2.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Distinct points, of about unit size.
    budget : Budget or None
        Ends the work early.
    block : int
        Most points of a program.

    Returns
    -------
    selected, inside : ndarray of bool, shape (n,)
        Selected points, and those between them; None if time was over.

    Examples
    --------
    An outlier is not worth selecting, two ends of a line with four points between are:

    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [4.0, 0.0], [5.0, 0.0], [0.0, 9.0]])
    >>> selected, inside = balanced_points(X)
    >>> np.flatnonzero(selected).tolist(), np.flatnonzero(inside).tolist()
    ([0, 5], [1, 2, 3, 4])
    """
    budget = budget or Budget()
    chosen = [np.zeros(0, dtype=np.int64)]
    for part in _blocks(X, block):
        if budget.over:
            return None
        chosen.append(part[balanced_block(X[part], budget)])
    some = np.concatenate(chosen)
    selected, inside = np.zeros(len(X), dtype=bool), np.zeros(len(X), dtype=bool)
    if not len(some):
        return selected, inside
    hull = convex_hull(X[some], budget)
    selected[some[hull.corners]] = True
    program = Corners(X[selected])
    for k in np.flatnonzero(~selected):
        inside[k] = program.shares(X[k], seconds=budget.remaining) is not None
    return None if budget.over or not hull.complete else (selected, inside)


def balanced_block(X: FloatArray, budget: Budget) -> BoolArray:
    """Points that Algorithm 2 of SVM1-ODT selects from one block; without time, or where its solver fails, none."""
    # Who is between whom does not depend on units, but a solver does where a value far off squeezes the others.
    width = np.ptp(X, axis=0)
    X = (X - X.min(axis=0)) / np.where(width > 0, width, 1.0)
    made = np.flatnonzero(convex_hull(X, budget).inside)  # corners have b = 0, and no shares
    selected, solver, fixed = np.zeros(len(X), dtype=bool), get_solver("highs"), np.full(len(made), np.nan)
    for integer in (False, True) if len(made) else ():
        program = balanced_program(X, made, fixed, integer)
        seconds = None if budget.seconds is None else budget.remaining
        try:
            found = solver.solve(program, time_limit=seconds, gap=1e-6, stop=lambda: budget.over)
        except SolverError:  # the nearest points are taken then, as of all that are not selected
            return selected
        if found.x is None:
            return selected
        b = program.value(found.x, "b")
        fixed = np.where(b <= _WHOLE, 0.0, np.where(b >= 1 - _WHOLE, 1.0, np.nan))
        # What the relaxation fixes may cost more than it is worth, and to select nothing is feasible too.
        if integer and found.objective < 0:
            selected = program.value(found.x, "a") > 0.5
    return selected


def balanced_program(X: FloatArray, made: IntArray, fixed: FloatArray, integer: bool) -> Program:
    """Write the program (6) of SVM1-ODT selection, or its relaxation (9), where a and b need not be 0 or 1.

    Points that are `made` may be between others: all that are no corners. `fixed` is their b, NaN where it is open.
    """
    (n, d), m = X.shape, len(made)
    free = np.isnan(fixed)
    builder = ProgramBuilder()
    a = builder.add_variables("a", n, upper=1, integer=integer, cost=1.0)
    low, high = np.where(free, 0.0, fixed), np.where(free, 1.0, fixed)
    b = builder.add_variables("b", m, lower=low, upper=high, integer=integer, cost=-1.0)
    most = np.ones((m, n))
    most[np.arange(m), made] = 0.0
    shares = builder.add_variables("shares", (m, n), upper=most)
    for k in range(d):
        values = np.broadcast_to(X[:, k], (m, n))
        builder.add_rows(f"coordinate {k}", [(shares, values), (b, -X[made, k])], lower=0.0, upper=0.0)
    builder.add_rows("sum", [(shares, 1.0), (b, -1.0)], lower=0.0, upper=0.0)
    builder.add_rows("selected", [(shares.ravel(), 1.0), (np.tile(a, m), -1.0)], upper=0.0)
    builder.add_rows("not both", [(a[made], 1.0), (b, 1.0)], upper=1.0)
    return builder.build()


def _blocks(X: FloatArray, size: int) -> list[IntArray]:
    """Points in blocks, halved along their widest feature until they are small enough."""
    blocks, open_ = [], [np.arange(len(X))]
    while open_:
        some = open_.pop()
        if len(some) <= size:
            blocks.append(some)
            continue
        widest = int(np.ptp(X[some], axis=0).argmax())
        some = some[np.argsort(X[some, widest], kind="stable")]
        open_ += [some[len(some) // 2 :], some[: len(some) // 2]]
    return blocks
