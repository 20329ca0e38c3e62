r"""OCT-H as it is printed (Bertsimas and Dunn 2017), for comparison with the tight program.

.. math::
    \min\; & \tfrac{1}{\hat L} \sum_t L_t + \alpha \sum_{b,j} s_{bj} \\
    & L_t \ge N_t - N_{kt} - n (1 - c_{kt}), \quad L_t \le N_t - N_{kt} + n\, c_{kt}, \\
    & a_b^\top x_i + \mu \le o_b + (2 + \mu)(1 - z_{it}) \text{ for b whose left side t is on}, \\
    & a_b^\top x_i \ge o_b - 2 (1 - z_{it}) \text{ for b whose right side t is on}

with the places z of single points, a row a point, leaf and branch on the way to it, and no mirror images excluded.
Errors have the weights of their points, so N adds up weights and n is their sum; leaf sizes count the rows that points
stand for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from treewright.core.arrays import FloatArray, IntArray
from treewright.optimize.shared_rows import add_leaf_labels, add_used_leaves, sides_of_branches, split_value
from treewright.solvers.program import Program
from treewright.solvers.program_builder import ProgramBuilder
from treewright.tree.complete import Planes, leaves_reached

if TYPE_CHECKING:
    from treewright.models.oct_h.objective import OCTH

__all__ = ["build", "program_nonzeros", "planes_of", "point"]


def program_nonzeros(model: OCTH) -> int:
    """About how many non-zeros the printed program of OCT-H has."""
    (n, p), tree = model.X.shape, model.tree
    return n * tree.n_leaves * (tree.depth * (p + 2) + 6)


def build(model: OCTH) -> Program:
    """Write the program of OCT-H as its paper prints it."""
    builder, tree = ProgramBuilder(), model.tree
    n = len(model.X)
    z = builder.add_variables("z", (n, tree.n_leaves), upper=1, integer=True)
    used = add_used_leaves(builder, z, model.sizes, model.min_leaf)
    c = add_leaf_labels(builder, model.n_classes, tree.n_leaves, used)
    builder.add_rows("one_leaf", [(z, 1.0)], lower=1, upper=1)
    a, o = _add_splits(builder, model)
    for b, name, sign, leaves in sides_of_branches(tree):
        margin = model.margin if sign > 0 else 0.0
        for t in np.flatnonzero(leaves).tolist():
            terms = [*split_value(model.X, a[b], o[b], sign), (z[:, t], 2.0 + margin)]
            builder.add_rows(f"{name}, leaf {t}", terms, upper=2.0)
    _add_errors(builder, model, z, c)
    return builder.build()


def _add_splits(builder: ProgramBuilder, model: OCTH) -> tuple[IntArray, IntArray]:
    """Normals, their sizes, used features and used splits."""
    n_branches, p = model.tree.n_branches, model.X.shape[1]
    a = builder.add_variables("a", (n_branches, p), lower=-1, upper=1)
    size = builder.add_variables("abs_a", (n_branches, p), upper=1)
    o = builder.add_variables("o", n_branches, lower=-1, upper=1)
    s = builder.add_variables("s", (n_branches, p), upper=1, integer=True, cost=model.complexity)
    d = builder.add_variables("d", n_branches, upper=1, integer=True)
    flat, cover, use = a.ravel(), size.ravel(), s.ravel()
    for name, sign in (("above", 1.0), ("below", -1.0)):
        builder.add_rows(f"abs_{name}", [(flat, sign), (cover, -1.0)], upper=0)
        builder.add_rows(f"used_feature_{name}", [(flat, sign), (use, -1.0)], upper=0)
        builder.add_rows(f"offset_{name}", [(o, sign), (d, -1.0)], upper=0)
    builder.add_rows("norm", [(size, 1.0), (d, -1.0)], upper=0)
    builder.add_rows("used_split", [(use, 1.0), (np.repeat(d, p), -1.0)], upper=0)
    builder.add_rows("split_uses", [(d, 1.0), (s, -1.0)], upper=0)
    child = np.arange(1, n_branches)
    if len(child):
        builder.add_rows("parent_splits", [(d[child], 1.0), (d[(child - 1) // 2], -1.0)], upper=0)
    return a, o


def _add_errors(builder: ProgramBuilder, model: OCTH, z: IntArray, c: IntArray) -> None:
    """Errors of leaves: what is not of their class."""
    n_leaves, all_weight = model.tree.n_leaves, float(model.weight.sum())
    L = builder.add_variables("L", n_leaves, cost=1.0 / model.baseline)
    N, N_class = builder.add_variables("N", n_leaves), builder.add_variables("N_class", c.shape)
    builder.add_rows("N", [(N, 1.0), (z.T, -model.weight)], lower=0, upper=0)
    for k in range(model.n_classes):
        rows = [(N_class[k], 1.0), (z.T, -model.weight * (model.y == k))]
        builder.add_rows(f"N_class[{k}]", rows, lower=0, upper=0)
        others = [(L, 1.0), (N, -1.0), (N_class[k], 1.0), (c[k], -all_weight)]
        builder.add_rows(f"error_above[{k}]", others, lower=-all_weight)
        builder.add_rows(f"error_below[{k}]", others, upper=0)


def planes_of(model: OCTH, x: FloatArray) -> tuple[Planes, FloatArray]:
    """Hyperplanes and labels of a solution of printed OCT-H, thresholds mid-margin; and which nodes split."""
    value = model.build().value
    a = np.where(value(x, "s") > 0.5, value(x, "a"), 0.0)
    return Planes(a, value(x, "o") - model.margin / 2, np.argmax(value(x, "c"), axis=0)), value(x, "d")


def point(model: OCTH, planes: Planes) -> dict[str, FloatArray]:
    """Point of the printed program of OCT-H for the planes of a feasible tree that lets leaves lead on to the right."""
    z = np.zeros((len(model.X), model.tree.n_leaves))
    z[np.arange(len(z)), leaves_reached(planes.values(model.X))] = 1.0
    by_class = (np.eye(model.n_classes)[model.y] * model.weight[:, None]).T @ z
    used, label = z.any(axis=0), by_class.argmax(axis=0)
    d = np.any(planes.omega != 0.0, axis=1)
    return {
        "z": z,
        "l": used.astype(np.float64),
        "c": ((label == np.arange(model.n_classes)[:, None]) & used).astype(np.float64),
        "a": planes.omega,
        "abs_a": np.abs(planes.omega),
        "o": np.where(d, planes.gamma + model.margin / 2, 0.0),
        "s": (planes.omega != 0.0).astype(np.float64),
        "d": d.astype(np.float64),
        "L": by_class.sum(axis=0) - by_class.max(axis=0),
        "N": by_class.sum(axis=0),
        "N_class": by_class,
    }
