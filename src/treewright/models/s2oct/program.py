r"""The tight program of S2OCT.

It says the same as the printed one (:mod:`treewright.models.s2oct.printed_program`) with less:

* *Constants of the point's own.* Of a split with :math:`f_b > 1` (or :math:`< -1`) at all points shift :math:`\gamma_b`
  until the nearest point has :math:`f_b = 1`: no side changes, no hinge error grows, every margin of at most 1 is kept.
  So some point k has :math:`f_b(x_k) \le 1`, some point :math:`f_b \ge -1`, and with :math:`R_i` the largest
  1-norm distance of :math:`x_i` to a point, :math:`|f_b(x_i)| \le 1 + s R_i` for every point, in every margin mode.
  (The printed :math:`\eta s \sqrt p` lacks the 1 and can cut off the optimum, see there.)
* *One hinge variable a labelled point and node*, :math:`h_{ib}`, which is charged directly:
  :math:`h_{ib} \ge 1 + f_b(x_i) - (2 + s R_i)(1 - \sum_{t\ left\ of\ b} \alpha_{it})` and its mirror image, where
  :math:`\alpha_{it}` chooses a leaf of the own class. The printed model has two a node and one a leaf besides.
* *Places* :math:`z_{it}` of unlabelled points with one routing row a node and side; sides at nodes that a point does
  not reach appear only where the margin is asked for there (``margin_rule="paper"``).
* *Mirror images* of a tree are excluded. With more than two classes labels rise from left to right at the lowest
  splits: equal labels are never needed there, since the split that sends all to one of them costs no more. At
  the nodes above, the first unlabelled point goes right, wherever it gets to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from treewright.core.arrays import FloatArray, IntArray
from treewright.optimize.shared_rows import (
    add_class_totals,
    add_hinge_rows,
    add_leaf_labels,
    add_rising_labels,
    add_routing_rows,
    class_totals_blocks,
    sides_of_branches,
    split_value,
)
from treewright.solvers.program import Program
from treewright.solvers.program_builder import ProgramBuilder
from treewright.tree.complete import Planes, leaves_reached

if TYPE_CHECKING:
    from treewright.models.s2oct.objective import S2OCT

__all__ = ["build", "point"]


def build(model: S2OCT) -> Program:
    """Write the tight program of S2OCT."""
    builder, tree = ProgramBuilder(), model.tree
    omega = builder.add_variables(
        "omega", (tree.n_branches, model.X.shape[1]), -model.max_coefficient, model.max_coefficient
    )
    # gamma = omega'x_i - f(x_i) holds for every point, so the point with the smallest bound gives it.
    most = np.min(model.max_coefficient * np.abs(model.X).sum(axis=1) + model.reach, initial=np.inf)
    gamma = builder.add_variables("gamma", tree.n_branches, -most, most)
    if model.restricted and model.max_split_features is not None:
        u = builder.add_variables("used", omega.shape, upper=1, integer=True)
        for name, sign in (("weight_above", 1.0), ("weight_below", -1.0)):
            builder.add_rows(name, [(omega.ravel(), sign), (u.ravel(), -model.max_coefficient)], upper=0)
        builder.add_rows("few_features", [(u, 1.0)], upper=model.max_split_features)
    c = None
    if model.n_classes > 2:
        c = add_leaf_labels(builder, model.n_classes, tree.n_leaves)
        add_rising_labels(builder, c, step=1)
    _add_labelled(model, builder, omega, gamma, c)
    z = _add_unlabelled(model, builder, omega, gamma)
    add_class_totals(builder, z, c, model.totals, model.penalty)
    return builder.build()


def _add_labelled(model: S2OCT, builder: ProgramBuilder, omega: IntArray, gamma: IntArray, c: IntArray | None) -> None:
    """Choice of a leaf of the own class, and the hinge errors on the way to it."""
    points, own = model.labelled, model.own_leaves
    X, M = model.X[points], model.reach[points] + 1.0
    alpha = builder.add_variables("alpha", own.shape, upper=1, integer=True)
    h = builder.add_variables("h", (len(points), model.tree.n_branches), cost=model.weight[points][:, None])
    builder.add_rows("own_leaf", [(alpha, 1.0)], lower=1, upper=1)
    if c is not None:
        label = c[model.y[points][:, None], own].ravel()
        builder.add_rows("right_label", [(alpha.ravel(), 1.0), (label, -1.0)], upper=0)
    for b, name, sign, below in sides_of_branches(model.tree):
        on_side = below[own]
        some = np.flatnonzero(on_side.any(axis=1))  # points without a leaf there need no row
        f, chosen = split_value(X[some], omega[b], gamma[b], sign), (alpha[some], on_side[some])
        add_hinge_rows(builder, f"hinge_{name}", f, h[some, b], chosen, M[some])


def _add_unlabelled(model: S2OCT, builder: ProgramBuilder, omega: IntArray, gamma: IntArray) -> IntArray:
    """Places of the unlabelled points and the margins they keep."""
    tree, points = model.tree, model.unlabelled
    X, reach = model.X[points], model.reach[points]
    z = builder.add_variables("z", (len(points), tree.n_leaves), upper=1, integer=not model.everywhere)
    builder.add_rows("one_leaf", [(z, 1.0)], lower=1, upper=1)
    if not model.everywhere:
        add_routing_rows(builder, tree, X, omega, gamma, z, (model.required,) * 2, reach + model.required)
        if len(points) and model.depth > 1:
            builder.add_rows("first_goes_right", [(z[:1, :-2], 1.0)], upper=0)
        return z
    # d = 1 on the right: 1 - M <= f - M d <= -1 with M = reach + 1. Sides at all nodes leave one leaf to z.
    d = builder.add_variables("side", (len(points), tree.n_branches), upper=1, integer=True)
    for b in range(tree.n_branches):
        f = split_value(X, omega[b], gamma[b])
        builder.add_rows(f"margin[{b + 1}]", [*f, (d[:, b], -(reach + 1.0))], lower=-reach, upper=-1.0)
        builder.add_rows(f"right[{b + 1}]", [(z[:, tree.right_of[b]], 1.0), (d[:, b], -1.0)], upper=0)
        builder.add_rows(f"left[{b + 1}]", [(z[:, tree.left_of[b]], 1.0), (d[:, b], 1.0)], upper=1)
    if len(points) and model.depth > 1:
        first = d[0, : tree.n_leaves // 2 - 1]
        builder.add_rows("first_goes_right", [(first, 1.0)], lower=1)
    return z


def point(model: S2OCT, planes: Planes) -> dict[str, FloatArray]:
    """Point of the tight program of S2OCT for feasible planes."""
    planes = _mirrored(model, planes)
    complete, f = model.tree, planes.values(model.X)
    f_labelled, f_unlabelled = f[model.labelled], f[model.unlabelled]
    alpha, chosen, _ = model.choice(planes)
    h = np.where(complete.left_of[:, chosen].T, np.maximum(0.0, 1.0 + f_labelled), 0.0)
    h = np.where(complete.right_of[:, chosen].T, np.maximum(0.0, 1.0 - f_labelled), h)
    z = np.eye(complete.n_leaves)[leaves_reached(f_unlabelled)]
    c = (planes.labels == np.arange(model.n_classes)[:, None]).astype(np.float64)
    return {
        "omega": planes.omega,
        "used": (planes.omega != 0).astype(np.float64),
        "gamma": planes.gamma,
        "c": c,
        "alpha": alpha,
        "h": h,
        "z": z,
        "side": (f_unlabelled > 0).astype(np.float64),
        **class_totals_blocks(z, c, model.totals),
    }


def _mirrored(model: S2OCT, planes: Planes) -> Planes:
    """Mirror splits above the lowest until the first unlabelled point goes right where the program asks for it."""
    if not len(model.unlabelled):
        return planes
    first = model.X[model.unlabelled[0]]
    # Without margins everywhere only the nodes that it gets to, which then are the last of each level.
    last = [2**k - 2 for k in range(1, model.depth)]
    for b in range(model.tree.n_leaves // 2 - 1) if model.everywhere else last:
        if planes.omega[b] @ first <= planes.gamma[b]:
            planes = planes.mirrored(b)
    return planes
