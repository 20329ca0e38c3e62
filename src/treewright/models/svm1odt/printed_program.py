r"""The printed program of SVM1-ODT, (1a)-(1l) and (8a)-(8f), for comparison; blocks of rows have the numbers.

It is written with the labels relaxed to [1, Y] (Theorem 1) and M = 1 (Theorem 2), one row a point, leaf and branch.
What differs from print:

* errors have weights and hinge errors sizes;
* :math:`m_{ib} \le \epsilon - \mu`, with which (1h) and (1j) keep points off the splits that they reach, and
  :math:`|h_{bj}| \le H`: what a feasible tree is, see :mod:`treewright.models.svm1odt.objective`;
* (1f) sums over the numerical features only, (1h) and (1j) have :math:`\epsilon (e_{il} - \sum_j h_{bj})` on the right,
  as the text below (8f) says, and (8e) is :math:`|h_{bj}| \le H (1 - \sum_{j' \in F_c} h_{bj'})`, for H = 1 the printed
  one;
* missing values are unknown to the paper and refused.

Theorem 1 says that an optimum with whole labels exists, not that every optimum has them: a leaf all of whose points are
wrong may have any number. The label of a leaf is therefore read off its points.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from treewright.core.arrays import FloatArray, IntArray
from treewright.exceptions import InvalidInputError
from treewright.models.svm1odt.cuts import add_error_cuts
from treewright.models.svm1odt.heap import HeapTree
from treewright.solvers.program import Program
from treewright.solvers.program_builder import ProgramBuilder, Term
from treewright.tree import route

if TYPE_CHECKING:
    from treewright.models.svm1odt.objective import SVM1ODT

__all__ = ["build", "planes_of", "point", "refuse"]


def refuse(model: SVM1ODT) -> None:
    """Refuse what the printed program of SVM1-ODT does not know."""
    if np.isnan(model.X).any():
        raise InvalidInputError(
            "the printed formulation does not know missing values; use formulation='tight', which covers them"
        )


def build(model: SVM1ODT) -> Program:
    """Write the program of SVM1-ODT as its paper prints it."""
    builder, tree, n = ProgramBuilder(), model.tree, len(model.X)
    e = builder.add_variables("e", (n, tree.n_leaves), upper=1, integer=True)
    _add_labels(builder, model, e)
    H = model.max_coefficient
    h = builder.add_variables("h", (tree.n_branches, len(model.numerical)), -H, H)
    norm = builder.add_variables("norm", h.shape, upper=H, cost=model.alpha_2)
    g = builder.add_variables("g", tree.n_branches, -np.inf, np.inf)
    if h.size:
        builder.add_rows("norm_above", [(norm.ravel(), 1.0), (h.ravel(), -1.0)], lower=0)
        builder.add_rows("norm_below", [(norm.ravel(), 1.0), (h.ravel(), 1.0)], lower=0)
    uses = _add_categories(builder, model, e, h)
    _add_margins(builder, model, e, h, g, uses)
    builder.add_rows("1k", [(e, 1.0)], lower=1, upper=1)
    return builder.build()


def _add_labels(builder: ProgramBuilder, model: SVM1ODT, e: IntArray) -> None:
    """(1b)-(1e): the label of each point, and whether it is wrong."""
    n, Y, y = len(e), float(model.n_classes), model.y + 1.0
    c = builder.add_variables("c", n, upper=1, integer=True, cost=model.weight)
    u = builder.add_variables("u", e.shape[1], 1.0, Y)
    predicted = builder.add_variables("predicted", n, -np.inf, np.inf)
    w = builder.add_variables("w", e.shape, -np.inf, np.inf)
    builder.add_rows("1b_above", [(predicted, 1.0), (c, y - Y)], upper=y)
    builder.add_rows("1b_below", [(predicted, 1.0), (c, y - 1.0)], lower=y)
    builder.add_rows("1c", [(predicted, 1.0), (w, -1.0)], lower=0, upper=0)
    flat_w, flat_e, flat_u = w.ravel(), e.ravel(), np.tile(u, n)
    builder.add_rows("1d_above_e", [(flat_w, 1.0), (flat_e, -1.0)], lower=0)
    builder.add_rows("1d", [(flat_u, 1.0), (flat_w, -1.0), (flat_e, 1.0)], lower=1)
    builder.add_rows("1e", [(flat_e, Y), (flat_u, 1.0), (flat_w, -1.0)], upper=Y)
    builder.add_rows("1e_below_e", [(flat_w, 1.0), (flat_e, -Y)], upper=0)
    by_class = model.group_weight.sum(axis=0)
    add_error_cuts(builder, model.cuts, (c, model.weight), e, model.weight, by_class)


def _add_categories(builder: ProgramBuilder, model: SVM1ODT, e: IntArray, h: IntArray) -> IntArray:
    """(8a)-(8f): which categorical feature splits, and which of its levels go left."""
    tree, levels = model.tree, model.levels_used
    own = levels.of_row[model.group]
    uses = builder.add_variables(
        "uses", (tree.n_branches, len(levels.features)), upper=1, integer=True, cost=model.alpha_2
    )
    left = builder.add_variables("left", (tree.n_branches, len(levels.level)), upper=1, integer=True)
    if not uses.size:
        return uses
    builder.add_rows("8a", [(uses, 1.0)], upper=1)
    builder.add_rows("8b", [(left.ravel(), 1.0), (uses[:, levels.feature].ravel(), -1.0)], upper=0)
    for b in range(tree.n_branches):
        used = np.broadcast_to(uses[b], (len(e), uses.shape[1]))
        for t in np.flatnonzero(tree.left_of[b]):
            builder.add_rows(f"8c[{b},{t}]", [(left[b][own], 1.0), (e[:, t], -1.0), (used, -1.0)], lower=-1)
        for t in np.flatnonzero(tree.right_of[b]):
            builder.add_rows(f"8d[{b},{t}]", [(left[b][own], 1.0), (e[:, t], 1.0), (used, 1.0)], upper=2)
    H, all_uses = model.max_coefficient, np.repeat(uses, h.shape[1], axis=0)
    if h.size:
        builder.add_rows("8e_above", [(h.ravel(), 1.0), (all_uses, H)], upper=H)
        builder.add_rows("8e_below", [(h.ravel(), -1.0), (all_uses, H)], upper=H)
    return uses


def _add_margins(
    builder: ProgramBuilder, model: SVM1ODT, e: IntArray, h: IntArray, g: IntArray, uses: IntArray
) -> None:
    """(1f)-(1j): values of the points at the branches, their sides and their margins."""
    tree, n, epsilon = model.tree, len(e), model.epsilon
    X = model.X[:, model.numerical]
    plus = builder.add_variables("p_plus", (n, tree.n_branches))
    minus = builder.add_variables("p_minus", (n, tree.n_branches))
    most = 0.0 if model.hard else epsilon - model.margin
    m = builder.add_variables("m", plus.shape, upper=most, cost=model.alpha_1 * model.sizes[:, None])
    for b in range(tree.n_branches):
        columns: list[Term] = [(np.full(n, g[b]), 1.0), (np.broadcast_to(h[b], X.shape), -X)]
        builder.add_rows(f"1f[{b}]", [*columns, (plus[:, b], -1.0), (minus[:, b], 1.0)], lower=0, upper=0)
        category: list[Term] = [(np.broadcast_to(uses[b], (n, uses.shape[1])), epsilon)] if uses.size else []
        sides = [("1g", "1h", plus, minus, tree.right_of[b]), ("1i", "1j", minus, plus, tree.left_of[b])]
        for no, yes, other, own, leaves in sides:
            for t in np.flatnonzero(leaves):
                builder.add_rows(f"{no}[{b},{t}]", [(other[:, b], 1.0), (e[:, t], 1.0)], upper=1)
                margin: list[Term] = [(own[:, b], 1.0), (m[:, b], 1.0), (e[:, t], -epsilon), *category]
                builder.add_rows(f"{yes}[{b},{t}]", margin, lower=0)


def planes_of(model: SVM1ODT, x: FloatArray) -> HeapTree:
    """Read SVM1-ODT splits off a point of the printed program, and labels: the class that most are right with."""
    value, tree = model.build().value, model.tree
    h = np.zeros((tree.n_branches, model.X.shape[1]))
    h[:, model.numerical] = np.where(np.abs(value(x, "h")) > 1e-9, value(x, "h"), 0.0)
    category, table = model.levels_used.read(value(x, "uses"), value(x, "left"))[:2]
    h[category >= 0] = 0.0
    weight = np.zeros((tree.n_leaves, model.n_classes))
    np.add.at(weight, (np.argmax(value(x, "e"), axis=1), model.y), model.weight)
    labels = np.where(weight.any(axis=1), weight.argmax(axis=1), np.round(value(x, "u") - 1.0).astype(np.int64))
    return HeapTree(h, value(x, "g"), category, table, np.zeros(tree.n_branches, dtype=bool), labels)


def point(model: SVM1ODT, heap: HeapTree) -> dict[str, FloatArray]:
    """Point of the printed program of SVM1-ODT for a feasible complete tree."""
    complete = model.tree
    leaf = route(heap.to_tree(model.n_classes), model.X) - complete.n_branches
    e, label = np.eye(complete.n_leaves)[leaf], heap.labels + 1.0
    numerical = heap.category < 0
    h, g = heap.h[:, model.numerical], np.where(numerical, heap.g, 0.0)
    f = g - model.X[:, model.numerical] @ h.T
    on_path = (complete.left_of | complete.right_of)[:, leaf].T
    m = np.where(on_path & numerical, np.maximum(0.0, model.epsilon - np.abs(f)), 0.0)
    return {
        "e": e,
        "c": (heap.labels[leaf] != model.y).astype(np.float64),
        "u": label,
        "predicted": label[leaf],
        "w": e * label,
        "h": h,
        "norm": np.abs(h),
        "g": g,
        "p_plus": np.maximum(f, 0.0),
        "p_minus": np.maximum(-f, 0.0),
        "m": 0.0 * m if model.hard else m,
        **model.levels_used.write(heap),
    }
