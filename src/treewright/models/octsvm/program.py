r"""The tight program of OCTSVM. Equal points are a group k; :math:`w_{kc}` is the weight of its points of class c.

*Places.* :math:`z_{ku}` says that k reaches node u of the last level, and :math:`Z_{kt} = \sum_{u\ below\ t} z_{ku}`
that it reaches t. Above the last level sides are matters of fact: with :math:`f_{kt} = \omega_t^\top x_k + \omega_{t0}`

.. math:: f_{kt} \ge \mu Z_{k,right(t)} - F_k (1 - Z_{k,right(t)}), \quad
          -f_{kt} \ge \mu Z_{k,left(t)} - F_k (1 - Z_{k,left(t)}) .

*Constants.* Of the points that reach a split one has :math:`|f_{jt}| \le 1`, so that all have
:math:`|f_{kt}| \le F_k = 1 + D_k R`, where R is the largest norm that the cutoff leaves and
:math:`D_k = \max_j \lVert x_k - x_j \rVert_*` the distance to the farthest point in the dual norm. (Rows
:math:`|f_{kt}| \le 1 + D_k n_t` with the norm of the node itself hold as well, but made solvers no faster.)

*Relabelling* needs no product of variables. With the margin :math:`m = y f_{kt}`, and :math:`r = c_2 / c_1`,

.. math:: e \ge 1 - m - (1 + F_k)(1 - Z_{kt} + \xi), \quad e \ge 1 + m - (1 + F_k)(1 - \xi) ,

and the second row is needed for r < 2 only: otherwise a point is relabelled from :math:`m \le -1` on. For a point that
reaches t, minimizing over :math:`\xi \in [0, 1]` gives the convex envelope of its loss on :math:`[-F_k, F_k]`.

*What points pay.* A point is relabelled on the wrong side only, and there it pays 1 + mu or r at least:

.. math:: \xi \le Z_{k,wrong}, \quad e + v \xi \ge v Z_{k,wrong}, \quad v = \min(1 + \mu, r) .

Equal points of both classes at a node have margins that sum up to 0: if both keep their labels :math:`e_0 + e_1 \ge 2`,
else one pays r. So :math:`\sum_c w_{kc} (e_c + v \xi_c) \ge \min_c w_{kc} v Z_{kt}` with :math:`v = \min(2, r)`.

*Near points* of different classes have :math:`m_i + m_j = f_i - f_j \le s = R \lVert x_i - x_j \rVert_*`. If both keep
their labels they pay :math:`2 - s` at least, else r. All points are at the root, so that there
:math:`e_i + v \xi_i + e_j + v \xi_j \ge v = \min(2 - s, r)`. With them HiGHS needs 3 to 20 times fewer nodes for 30
to 40 points in the plane.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial.distance import cdist

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.models.octsvm.loss import DUAL, normal_lengths, relabelled_points
from treewright.solvers.program import Program
from treewright.solvers.program_builder import ProgramBuilder, Term
from treewright.tree.complete import CompleteTree

if TYPE_CHECKING:
    from treewright.models.octsvm.objective import OCTSVM

__all__ = ["add_norms", "build", "farthest_distances", "norm_blocks", "planes_of", "point"]


def add_norms(builder: ProgramBuilder, model: OCTSVM, omega: IntArray) -> IntArray:
    """Declare the norm of each node of an OCTSVM and the price of the longest; return the columns of the former."""
    n_nodes, limit = len(omega), model.norm_limit
    norm = builder.add_variables("norm", n_nodes, upper=limit)
    if model.norm == "l2":
        for head, members in zip(norm, omega, strict=True):
            builder.add_cone(int(head), members)
    else:
        size = builder.add_variables("abs_omega", omega.shape, upper=limit) if model.norm == "l1" else norm[:, None]
        bound = np.broadcast_to(size, omega.shape).ravel()
        builder.add_rows("abs_above", [(bound, 1.0), (omega.ravel(), -1.0)], lower=0)
        builder.add_rows("abs_below", [(bound, 1.0), (omega.ravel(), 1.0)], lower=0)
        if model.norm == "l1":
            builder.add_rows("sum_abs", [(norm, 1.0), (size, -1.0)], lower=0)
    price = model.price
    if price.slope == 0 and price.curvature == 0:
        return norm
    longest = builder.add_variables("longest", 1, upper=limit, cost=price.slope)
    builder.add_rows("longest", [(np.repeat(longest, n_nodes), 1.0), (norm, -1.0)], lower=0)
    if price.curvature > 0:
        low = builder.add_variables("square_low", 1, lower=-0.5, cost=price.curvature)
        high = builder.add_variables("square_high", 1, lower=0.5)
        builder.add_rows("square", [(high, 1.0), (low, -1.0)], lower=1, upper=1)
        builder.add_cone(int(high[0]), np.concatenate([longest, low]))
        builder.add_offset(0.5 * price.curvature)
    return norm


def norm_blocks(model: OCTSVM, omega: FloatArray) -> dict[str, FloatArray]:
    """Values of the blocks of :func:`add_norms` of an OCTSVM, given the normals."""
    norm = normal_lengths(omega, model.norm)
    longest = norm.max(initial=0.0)
    square = np.array(0.5 * longest**2)
    return {
        "norm": norm,
        "abs_omega": np.abs(omega),
        "longest": np.array(longest),
        "square_low": square - 0.5,
        "square_high": square + 0.5,
    }


_EXACT_DISTANCES = 3000
"""Points up to which the farthest one is sought; beyond, the farthest corner of their box bounds the distance."""

_MOST_PAIRS, _PAIRS_EACH, _LEAST_PAID = 1_000_000, 5, 0.05
"""Pairs of near points: how many are looked at, how many taken for a point, and what one must pay to be taken."""

_METRIC = {"l2": "euclidean", "l1": "cityblock", "linf": "chebyshev"}


def farthest_distances(X: FloatArray, norm: str) -> FloatArray:
    """Distance of OCTSVM points from the farthest one in the dual of `norm`, or a bound where points are many.

    Examples
    --------
    >>> farthest_distances(np.array([[0.0, 0.0], [3.0, 4.0]]), "linf").tolist()
    [7.0, 7.0]
    """
    dual = DUAL[norm]  # type: ignore[index]
    if len(X) <= _EXACT_DISTANCES:
        return np.asarray(cdist(X, X, _METRIC[dual]).max(axis=1))
    return normal_lengths(np.maximum(X - X.min(axis=0), X.max(axis=0) - X), dual)


def build(model: OCTSVM) -> Program:
    """Write the tight program of OCTSVM."""
    builder, shape = ProgramBuilder(), CompleteTree(model.depth)
    X, limit = model.centred, model.norm_limit
    n_nodes = shape.n_branches + shape.n_leaves
    z = _add_places(builder, model)
    omega = builder.add_variables("omega", (n_nodes, X.shape[1]), -limit, limit)
    norm = add_norms(builder, model, omega)
    most = 1.0 + limit * float(normal_lengths(X, DUAL[model.norm]).max())
    offset = builder.add_variables("offset", n_nodes, -most, most)
    _add_splits(builder, model, norm)
    F = 1.0 + limit * model.reach
    f = builder.add_variables("f", (len(X), n_nodes), -F[:, None], F[:, None])
    for t in range(n_nodes):
        columns = np.broadcast_to(omega[t], X.shape)
        terms: list[Term] = [(columns, X), (np.full(len(X), offset[t]), 1.0), (f[:, t], -1.0)]
        builder.add_rows(f"value[{t + 1}]", terms, lower=0, upper=0)
    _add_sides(builder, model, z, f, F)
    _add_losses(builder, model, z, f, F)
    return builder.build()


def _add_places(builder: ProgramBuilder, model: OCTSVM) -> IntArray:
    """Places of the groups at the last level; a single one needs no choice."""
    shape = (len(model.rows), 2**model.depth)
    if model.depth == 0:
        return builder.add_variables("z", shape, lower=1, upper=1)
    z = builder.add_variables("z", shape, upper=1, integer=True, priority=10)
    builder.add_rows("one_place", [(z, 1.0)], lower=1, upper=1)
    return z


def _add_splits(builder: ProgramBuilder, model: OCTSVM, norm: IntArray) -> None:
    """Which nodes split, where that has a price."""
    if model.c3 == 0:
        return
    d = builder.add_variables("d", len(norm), upper=1, integer=True, cost=model.c3, priority=20)
    builder.add_rows("split_has_norm", [(norm, 1.0), (d, -model.norm_limit)], upper=0)
    child = np.arange(1, len(norm))
    if len(child):
        builder.add_rows("parent_splits", [(d[child], 1.0), (d[(child - 1) // 2], -1.0)], upper=0)


def nodes_above_last(model: OCTSVM) -> BoolArray:
    """OCTSVM: whether each last-level node is below, or is, each node of all levels, shape (n_nodes, n_last)."""
    shape = CompleteTree(model.depth)
    return np.vstack([shape.left_of | shape.right_of, np.eye(shape.n_leaves, dtype=bool)])


def _add_sides(builder: ProgramBuilder, model: OCTSVM, z: IntArray, f: IntArray, F: FloatArray) -> None:
    """Points above the last level are where their values say, off the splits."""
    shape, mu = CompleteTree(model.depth), model.tolerance
    for t in range(shape.n_branches):
        for name, sign, side in (("right", 1.0, shape.right_of[t]), ("left", -1.0, shape.left_of[t])):
            columns = z[:, side]
            weights = np.broadcast_to(-(F + mu)[:, None], columns.shape)
            builder.add_rows(f"{name}[{t + 1}]", [(f[:, t], sign), (columns, weights)], lower=-F)


def group_class_pairs(model: OCTSVM) -> tuple[IntArray, IntArray]:
    """Groups of equal OCTSVM points and classes that have weight, group by group."""
    group, klass = np.nonzero(model.group_weight)
    return np.asarray(group), np.asarray(klass)


def pairs_that_may_flip(model: OCTSVM) -> BoolArray:
    """Whether relabelling could pay in OCTSVM, for each pair of group and class."""
    F = 1.0 + model.norm_limit * model.reach
    return np.asarray(model.c2 / model.c1 < 1.0 + F[group_class_pairs(model)[0]])


def _add_losses(builder: ProgramBuilder, model: OCTSVM, z: IntArray, f: IntArray, F: FloatArray) -> None:
    """Hinge errors and relabelled points at each node."""
    (group, klass), shape = group_class_pairs(model), CompleteTree(model.depth)
    if not len(group):
        return
    weight, sign, reach = model.group_weight[group, klass], 2.0 * klass - 1.0, F[group]
    n_nodes, ratio, mu = f.shape[1], model.c2 / model.c1, model.tolerance
    relabels = pairs_that_may_flip(model)
    size = (len(group), n_nodes)
    e = builder.add_variables("e", size, cost=model.c1 * weight[:, None])
    xi = None
    if relabels.any():
        most = np.where(relabels, 1.0, 0.0)[:, None]
        xi = builder.add_variables("xi", size, upper=most, integer=True, cost=model.c2 * weight[:, None])
    inside = nodes_above_last(model)
    for t in range(n_nodes):
        here = z[group][:, inside[t]]
        kept: list[Term] = [(f[group, t], sign), (e[:, t], 1.0), (here, -(1.0 + reach)[:, None] + 0.0 * here)]
        if xi is not None:
            kept.append((xi[:, t], 1.0 + reach))
        builder.add_rows(f"kept[{t + 1}]", kept, lower=-reach)
        if xi is not None and ratio < 2:
            terms: list[Term] = [(f[group, t], -sign), (e[:, t], 1.0), (xi[:, t], -(1.0 + reach))]
            builder.add_rows(f"flipped[{t + 1}]", terms, lower=-reach)
        least = min(1.0 + mu, ratio)
        pays: list[Term] = [(e[:, t], 1.0)]
        if xi is not None:
            pays.append((xi[:, t], least))
        if t < shape.n_branches:
            wrong = np.where(klass[:, None] == 1, shape.left_of[t], shape.right_of[t])[:, inside[t]]
            builder.add_rows(f"wrong_pays[{t + 1}]", [*pays, (here, -least * wrong)], lower=0)
        else:
            wrong = np.ones(here.shape)
        if xi is not None:
            builder.add_rows(f"flips_wrong[{t + 1}]", [(xi[:, t], 1.0), (here, -1.0 * wrong)], upper=0)
        _add_both_labels(builder, model, f"both_labels[{t + 1}]", z[:, inside[t]], e[:, t], xi, t)
    if xi is not None:
        _add_near_pairs(builder, model, e[:, 0], xi[:, 0])


def _add_both_labels(
    builder: ProgramBuilder, model: OCTSVM, name: str, here: IntArray, e: IntArray, xi: IntArray | None, t: int
) -> None:
    """Equal points of both classes pay for the lighter ones."""
    both = np.flatnonzero(model.group_weight.min(axis=1) > 0)
    if not len(both):
        return
    group, _ = group_class_pairs(model)
    first = np.searchsorted(group, both)
    pair, weight = np.stack([first, first + 1], axis=1), model.group_weight[both]
    terms: list[Term] = [(e[pair], weight)]
    pays = min(2.0, model.c2 / model.c1)
    if xi is not None:
        terms.append((xi[pair, t], pays * weight))
    least = weight.min(axis=1, keepdims=True) * pays
    terms.append((here[both], np.broadcast_to(-least, here[both].shape)))
    builder.add_rows(name, terms, lower=0)


def _add_near_pairs(builder: ProgramBuilder, model: OCTSVM, e: IntArray, xi: IntArray) -> None:
    """Points of different classes that are near one another pay at the root, where all points are."""
    group, klass = group_class_pairs(model)
    first, second = np.flatnonzero(klass == 0), np.flatnonzero(klass == 1)
    if not len(first) or not len(second) or len(first) * len(second) > _MOST_PAIRS:
        return
    ratio, X = model.c2 / model.c1, model.centred
    apart = cdist(X[group[first]], X[group[second]], _METRIC[DUAL[model.norm]])
    pays = np.minimum(2.0 - model.norm_limit * apart, ratio)
    pays[apart == 0.0] = 0.0  # equal points pay more than that
    taken = np.zeros(pays.shape, dtype=bool)  # for each point the nearest ones
    np.put_along_axis(taken, np.argsort(-pays, axis=1, kind="stable")[:, :_PAIRS_EACH], True, axis=1)
    np.put_along_axis(taken, np.argsort(-pays, axis=0, kind="stable")[:_PAIRS_EACH], True, axis=0)
    a, b = np.nonzero(taken & (pays >= _LEAST_PAID))
    if len(a):
        pair = np.stack([first[a], second[b]], axis=1)
        least = pays[a, b]
        builder.add_rows("near_pairs", [(e[pair], 1.0), (xi[pair], least[:, None])], lower=least)


# ---------------------------------------------------------------------- points of the program


def planes_of(model: OCTSVM, x: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray, FloatArray]:
    """Normals, intercepts, possible splits and last-level places of groups, of a solution of tight OCTSVM."""
    program = model.build()
    omega, offset = program.value(x, "omega"), program.value(x, "offset")
    split = program.value(x, "d") > 0.5 if "d" in program.variables else np.ones(len(omega), dtype=bool)
    return omega, offset - omega @ model.centre, split, program.value(x, "z")


def point(model: OCTSVM, omega: FloatArray, intercept: FloatArray, split: BoolArray, place: IntArray) -> FloatArray:
    """Point of the tight program of OCTSVM for a feasible complete tree, given the last node of each group."""
    offset = intercept + omega @ model.centre
    f = model.centred @ omega.T + offset
    group, klass = group_class_pairs(model)
    z = np.eye(2**model.depth)[place]
    here = (z @ nodes_above_last(model).T)[group] > 0.5
    margin = (2.0 * klass - 1.0)[:, None] * f[group]
    xi = here & relabelled_points(margin, model.c1, model.c2) & pairs_that_may_flip(model)[:, None]
    e = np.where(here, np.maximum(0.0, 1.0 - np.where(xi, -margin, margin)), 0.0)
    blocks = {"z": z, "omega": omega, "offset": offset, "d": split, "f": f, "e": e, "xi": xi}
    return model.build().point(blocks | norm_blocks(model, omega))
