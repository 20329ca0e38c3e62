r"""The printed program of OCTSVM, (2)-(10), for comparison; blocks of rows have its numbers.

(9) and (10) let a point with :math:`f_t(x_i) = 0` take either side, so that its optimum need not be a tree; see
:mod:`treewright.models.octsvm.objective`. What differs from print: errors have weights, (3) and (4) have
:math:`\beta_{it}` and :math:`\beta_{it0}` a point and node, (6) and (8) run from t = 2 and :math:`z_{i1} = 1`. Products
:math:`\beta_{itj} = \xi_{it} \omega_{tj}` are linearized exactly by bounds of :math:`\omega`, and every M is
the largest that a value can be with the norms that the cutoff leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.models.octsvm.loss import DUAL, normal_lengths, relabelled_points
from treewright.models.octsvm.program import add_norms, norm_blocks
from treewright.solvers.program import Program
from treewright.solvers.program_builder import ProgramBuilder, Term

if TYPE_CHECKING:
    from treewright.models.octsvm.objective import OCTSVM

__all__ = ["build", "planes_of", "point"]


def build(model: OCTSVM) -> Program:
    """Write the program of OCTSVM as its paper prints it."""
    builder, (n, p), limit = ProgramBuilder(), model.X.shape, model.norm_limit
    n_nodes = 2 ** (model.depth + 1) - 1
    omega = builder.add_variables("omega", (n_nodes, p), -limit, limit)
    most = 1.0 + limit * float(normal_lengths(model.X, DUAL[model.norm]).max())
    intercept = builder.add_variables("intercept", n_nodes, -most, most)
    d = builder.add_variables("d", n_nodes, upper=1, integer=True, cost=model.c3)
    norm = add_norms(builder, model, omega)
    builder.add_rows("5", [(norm, 1.0), (d, -limit)], upper=0)
    child = np.arange(1, n_nodes)
    z = builder.add_variables("z", (n, n_nodes), np.where(np.arange(n_nodes) == 0, 1.0, 0.0), 1.0, integer=True)
    theta = builder.add_variables("theta", (n, n_nodes), upper=1, integer=True)
    for level in range(model.depth + 1):
        builder.add_rows(f"7[{level}]", [(z[:, 2**level - 1 : 2 ** (level + 1) - 1], 1.0)], lower=1, upper=1)
    if len(child):
        parent = (child - 1) // 2
        builder.add_rows("6", [(d[child], 1.0), (d[parent], -1.0)], upper=0)
        builder.add_rows("8", [(z[:, child].ravel(), 1.0), (z[:, parent].ravel(), -1.0)], upper=0)
        left = child % 2 == 1
        for name, side, sign in (("left", left, -1.0), ("right", ~left, 1.0)):
            terms: list[Term] = [(z[:, parent[side]].ravel(), 1.0), (z[:, child[side]].ravel(), -1.0)]
            terms.append((theta[:, parent[side]].ravel(), sign))
            builder.add_rows(f"side_{name}", terms, upper=0.0 if sign < 0 else 1.0)
    _add_margins(builder, model, (omega, intercept), z, theta, (limit, most))
    return builder.build()


def octsvm_big_m(model: OCTSVM) -> float:
    """The largest value that a point can have at a split of an OCTSVM: the M of the printed program."""
    return 1.0 + model.norm_limit * float(model.reach.max())


def _add_margins(
    builder: ProgramBuilder,
    model: OCTSVM,
    planes: tuple[IntArray, IntArray],
    z: IntArray,
    theta: IntArray,
    bounds: tuple[float, float],
) -> None:
    """(3), (4), (9) and (10)."""
    X, M = model.X, octsvm_big_m(model)
    n, n_nodes = z.shape
    relabels = np.isfinite(model.c2)
    e = builder.add_variables("e", (n, n_nodes), cost=model.c1 * model.weight[:, None])
    size, ends = (n, X.shape[1]), np.array(bounds)
    xi = beta = None
    if relabels:
        xi = builder.add_variables("xi", (n, n_nodes), upper=1, integer=True, cost=model.c2 * model.weight[:, None])
        wide = np.append(np.full(X.shape[1], ends[0]), ends[1])
        beta = builder.add_variables("beta", (n, n_nodes, len(wide)), -wide, wide)
    for t in range(n_nodes):
        columns, one = np.broadcast_to(planes[0][t], size), np.full(n, planes[1][t])
        value: list[Term] = [(columns, X), (one, 1.0)]
        builder.add_rows(f"9[{t + 1}]", [*value, (theta[:, t], -M)], lower=-M)
        builder.add_rows(f"10[{t + 1}]", [*value, (theta[:, t], -M)], upper=0)
        sign = model.sign
        rows: list[Term] = [(columns, sign[:, None] * X), (one, sign), (e[:, t], 1.0), (z[:, t], -(1.0 + M))]
        if xi is not None and beta is not None:
            rows += [(beta[:, t, :-1], -2 * sign[:, None] * X), (beta[:, t, -1], -2 * sign)]
            _add_products(builder, t, np.append(planes[0][t], planes[1][t]), xi[:, t], beta[:, t], bounds)
        builder.add_rows(f"3[{t + 1}]", rows, lower=-M)


def _add_products(
    builder: ProgramBuilder, t: int, omega: IntArray, xi: IntArray, beta: IntArray, bounds: tuple[float, float]
) -> None:
    """(4): beta is omega where a point is relabelled, and 0 elsewhere."""
    n, width = beta.shape
    wide = np.tile(np.append(np.full(width - 1, bounds[0]), bounds[1]), n)
    flat, own, flag = beta.ravel(), np.tile(omega, n), np.repeat(xi, width)
    builder.add_rows(f"4_above_zero[{t + 1}]", [(flat, 1.0), (flag, -wide)], upper=0)
    builder.add_rows(f"4_below_zero[{t + 1}]", [(flat, -1.0), (flag, -wide)], upper=0)
    builder.add_rows(f"4_above[{t + 1}]", [(flat, 1.0), (own, -1.0), (flag, wide)], upper=wide)
    builder.add_rows(f"4_below[{t + 1}]", [(flat, -1.0), (own, 1.0), (flag, wide)], upper=wide)


def planes_of(model: OCTSVM, x: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray, FloatArray]:
    """Normals, intercepts, splitting nodes and last-level places of points, of a solution of printed OCTSVM."""
    value = model.build().value
    place = value(x, "z")[:, 2**model.depth - 1 :]
    return value(x, "omega"), value(x, "intercept"), value(x, "d") > 0.5, place


def point(model: OCTSVM, omega: FloatArray, intercept: FloatArray, split: BoolArray, place: IntArray) -> FloatArray:
    """Point of the printed program of OCTSVM for a feasible complete tree, given the last node of each point."""
    f = model.X @ omega.T + intercept
    heap = np.arange(1, len(omega) + 1)
    level = np.array([int(h).bit_length() - 1 for h in heap])
    z = (place[:, None] + 2**model.depth) >> (model.depth - level) == heap
    margin = model.sign[:, None] * f
    xi = z & relabelled_points(margin, model.c1, model.c2)
    e = np.where(z, np.maximum(0.0, 1.0 - np.where(xi, -margin, margin)), 0.0)
    beta = xi[:, :, None] * np.column_stack([omega, intercept])
    blocks = {"omega": omega, "intercept": intercept, "d": split, "z": z, "theta": f > 0, "e": e, "xi": xi}
    return model.build().point(blocks | {"beta": beta} | norm_blocks(model, omega))
