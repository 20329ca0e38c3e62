r"""S2OCT as it is printed: (P2a)-(P2o), for comparison with the tight program.

Corrected as it must be: (P2f) holds for the leaves of the point's own class only. Weights multiply the errors of
labelled points, and a point counts for the rows it stands for.

The printed constants rest on :math:`|f_b(x_i)| \le \eta s \sqrt p` (Proposition 1, Theorem 2), with :math:`\eta` the
largest distance of two points. That holds where a split has points on both sides or is :math:`\omega_b = 0`, but not
for every optimal solution: a labelled point in the margin, :math:`0 < f_b < 1`, with all others beyond it, allows
:math:`1 + \eta s \sqrt p`. Class 0 labelled at x = 0, unlabelled points at 1 and 2 that both have to be of class 1,
depth 1 and s = 0.6: the optimum is 1.4 with f = 0.4, 1, 1.6, while M = 2.2 forbids f > 1.2 and gives 1.8. With the
paper's s (M of at least 500) the difference can hardly be seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from treewright.core.arrays import FloatArray, IntArray
from treewright.exceptions import InvalidInputError, UnsoundModelWarning, warn_user
from treewright.optimize.shared_rows import add_hinge_rows, add_total_rows, split_value
from treewright.solvers.program import Program
from treewright.solvers.program_builder import ProgramBuilder, Term
from treewright.tree.complete import Planes, leaves_reached

if TYPE_CHECKING:
    from treewright.models.s2oct.objective import S2OCT

__all__ = ["big_m", "build", "leaves_of", "point", "refuse", "warn"]


def big_m(model: S2OCT) -> float:
    r"""The printed :math:`M = \eta s \sqrt p + 1` of S2OCT."""
    return float(model.diameter * model.max_coefficient * np.sqrt(model.X.shape[1]) + 1.0)


def refuse(model: S2OCT) -> None:
    """Refuse what the printed program of S2OCT does not know."""
    lacking = [
        text
        for holds, text in [
            (model.n_classes == 2, f"two classes (there are {model.n_classes})"),
            (model.totals.n_groups == 1, f"one group (there are {model.totals.n_groups})"),
            (bool(np.all(model.totals.low == model.totals.high)), "an exact total (low and high differ)"),
            (model.margin_rule == "paper", f"margin_rule='paper' (it is {model.margin_rule!r})"),
            (not model.restricted, f"max_split_features=None (it is {model.max_split_features})"),
        ]
        if not holds
    ]
    if lacking:
        raise InvalidInputError(
            f"the printed formulation needs {'; '.join(lacking)}; use formulation='tight', which covers this"
        )
    if big_m(model) < 2.0:
        raise InvalidInputError(
            f"the printed M = {big_m(model):.3g} is below 2 and leaves no margin; use a larger max_coefficient than "
            f"{model.max_coefficient}"
        )


def warn(model: S2OCT) -> None:
    """Warn of a printed program of S2OCT that is not the model."""
    warn_user(
        f"the printed program of S2OCT can cut off the optimum, as its constant M = {big_m(model):.4g} is too small "
        "for a labelled row inside the margin with all others beyond it; what is proven of it need not hold for the "
        "model. formulation='tight' closes that gap",
        UnsoundModelWarning,
    )


def build(model: S2OCT) -> Program:
    """Write the program of S2OCT as its paper prints it; blocks of rows have the numbers of the formulas."""
    builder, tree, p = ProgramBuilder(), model.tree, model.X.shape[1]
    omega = builder.add_variables("omega", (tree.n_branches, p), -model.max_coefficient, model.max_coefficient)  # P1d
    gamma = builder.add_variables("gamma", tree.n_branches, -np.inf, np.inf)
    _add_labelled(builder, model, omega, gamma)
    _add_unlabelled(builder, model, omega, gamma)
    return builder.build()


def _add_labelled(builder: ProgramBuilder, model: S2OCT, omega: IntArray, gamma: IntArray) -> None:
    tree, points, own = model.tree, model.labelled, model.own_leaves
    X, shape = model.X[points], (len(points), tree.n_branches)
    right = builder.add_variables("y_right", shape)
    left = builder.add_variables("y_left", shape)
    alpha = builder.add_variables("alpha", own.shape, upper=1, integer=True)
    beta = builder.add_variables("beta", own.shape, cost=model.weight[points][:, None])
    for b in range(tree.n_branches):
        add_hinge_rows(builder, f"P1b[{b + 1}]", split_value(X, omega[b], gamma[b], -1.0), right[:, b])
        add_hinge_rows(builder, f"P1c[{b + 1}]", split_value(X, omega[b], gamma[b]), left[:, b])
    builder.add_rows("P2b", [(alpha, 1.0)], lower=1, upper=1)
    error_bound = tree.depth * big_m(model)  # B(s)
    for j in range(own.shape[1]):
        goes_left, goes_right = (side[:, own[:, j]].T.astype(np.float64) for side in (tree.left_of, tree.right_of))
        error: list[Term] = [(right, goes_right), (left, goes_left)]  # LE(x_i, t)
        minus: list[Term] = [(right, -goes_right), (left, -goes_left)]
        builder.add_rows(f"P2d[{j}]", [(beta[:, j], 1.0), *minus], upper=0)
        builder.add_rows(f"P2e[{j}]", [(beta[:, j], -1.0), *error, (alpha[:, j], error_bound)], upper=error_bound)
        builder.add_rows(f"P2f[{j}]", [(beta[:, j], 1.0), (alpha[:, j], -error_bound)], upper=0)


def _add_unlabelled(builder: ProgramBuilder, model: S2OCT, omega: IntArray, gamma: IntArray) -> None:
    tree, points, M = model.tree, model.unlabelled, big_m(model)
    z = builder.add_variables("z", (len(points), tree.n_branches), upper=1, integer=True)
    delta = builder.add_variables("delta", (len(points), tree.n_leaves // 2), upper=1, integer=True)
    xi = builder.add_variables("xi", 1, cost=model.penalty)
    for b in range(tree.n_branches):
        f = split_value(model.X[points], omega[b], gamma[b])
        builder.add_rows(f"P2g[{b + 1}]", [*f, (z[:, b], -M)], upper=-1)
        builder.add_rows(f"P2h[{b + 1}]", [*f, (z[:, b], -M)], lower=1.0 - M)
    for j in range(delta.shape[1]):  # leaves of class A are every other one, from the first
        on_left, on_right = (np.flatnonzero(side[:, 2 * j]) for side in (tree.left_of, tree.right_of))
        for b in on_right.tolist():
            builder.add_rows(f"P2j[{j},{b + 1}]", [(delta[:, j], 1.0), (z[:, b], -1.0)], upper=0)
        for b in on_left.tolist():
            builder.add_rows(f"P2k[{j},{b + 1}]", [(delta[:, j], 1.0), (z[:, b], 1.0)], upper=1)
        terms: list[Term] = [(delta[:, j], 1.0), (z[:, on_right], -1.0), (z[:, on_left], 1.0)]
        builder.add_rows(f"P2l[{j}]", terms, lower=len(on_left) - (tree.depth - 1))
    rows = np.repeat(model.totals.rows.astype(np.float64), delta.shape[1])[None, :]
    counts: list[Term] = [(delta.reshape(1, -1), rows)]
    low, high = model.totals.low[0, 0], model.totals.high[0, 0]
    add_total_rows(builder, counts, xi, low, high, ("P2n_below", "P2n_above"))


def point(model: S2OCT, planes: Planes) -> dict[str, FloatArray]:
    """Point of the printed program of S2OCT for a feasible complete tree."""
    f = planes.values(model.X)
    right, left = (np.maximum(0.0, 1.0 + sign * f[model.labelled]) for sign in (-1.0, 1.0))
    alpha, _, error = model.choice(planes)
    place = leaves_reached(f[model.unlabelled])
    delta = (place[:, None] == np.arange(0, model.tree.n_leaves, 2)).astype(np.float64)
    reached = float(model.totals.rows @ delta.sum(axis=1))
    return {
        "omega": planes.omega,
        "gamma": planes.gamma,
        "y_right": right,
        "y_left": left,
        "alpha": alpha,
        "beta": alpha * error[:, None],
        "z": (f[model.unlabelled] > 0).astype(np.float64),
        "delta": delta,
        "xi": np.array([abs(reached - float(model.totals.low[0, 0]))]),
    }


def leaves_of(model: S2OCT, x: FloatArray) -> IntArray:
    """Heap number of the leaf of each unlabelled point, by its sides, in the printed program of S2OCT."""
    return leaves_reached(model.build().value(x, "z") - 0.5) + model.tree.n_leaves
