r"""What several formulations share: rows about splits, labels and totals.

Throughout, :math:`f_b(x) = a_b^\top x - o_b` is the value of a point at branch b of a complete tree, which sends it
left where :math:`f_b(x) \le 0`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.data.point_totals import PointTotals
from treewright.solvers.program_builder import ProgramBuilder, Term
from treewright.tree.complete import CompleteTree

__all__ = [
    "add_class_totals",
    "add_group_errors",
    "add_hinge_rows",
    "add_label_counts",
    "add_leaf_labels",
    "add_rising_labels",
    "add_routing_rows",
    "add_total_rows",
    "add_used_leaves",
    "class_totals_blocks",
    "label_count_blocks",
    "sides_of_branches",
    "split_value",
]

# ---------------------------------------------------------------------- splits


def split_value(X: FloatArray, normal: IntArray, offset: ArrayLike, sign: float = 1.0) -> list[Term]:
    """Program rows: terms of ``sign * f(x)`` for each point, given the columns of a normal and an offset."""
    return [(np.broadcast_to(normal, X.shape), sign * X), (np.broadcast_to(offset, len(X)), -sign)]


def sides_of_branches(tree: CompleteTree) -> Iterator[tuple[int, str, float, BoolArray]]:
    """Program rows: branches and sides in turn: number, name, the sign of f that the side does not want, leaves."""
    for b in range(tree.n_branches):
        yield b, f"left[{b + 1}]", 1.0, tree.left_of[b]
        yield b, f"right[{b + 1}]", -1.0, tree.right_of[b]


def add_routing_rows(
    builder: ProgramBuilder,
    tree: CompleteTree,
    X: FloatArray,
    normals: IntArray,
    offsets: IntArray,
    places: IntArray,
    margins: tuple[float, float],
    big_m: FloatArray,
) -> None:
    r"""Add the program rows that make a point's place in a leaf obey the splits on its path.

    With :math:`z_{it}` the place of point i, for every branch b

    .. math::
        f_b(x_i) + m_{left} &\le M_i (1 - \sum_{t\ left\ of\ b} z_{it}), \\
        f_b(x_i) - m_{right} &\ge -M_i (1 - \sum_{t\ right\ of\ b} z_{it}).

    Summing over the leaves of a side gives one row where the papers write one a leaf, and implies all of them.

    Parameters
    ----------
    builder : ProgramBuilder
        Where the rows go.
    tree : CompleteTree
        The tree.
    X : ndarray of shape (n_points, n_features)
        The points.
    normals : ndarray of int, shape (n_branches, n_features)
        Columns of the normals.
    offsets : ndarray of int, shape (n_branches,)
        Columns of the offsets.
    places : ndarray of int, shape (n_points, n_leaves)
        Columns of the places; points that always go together may share them.
    margins : (float, float)
        Distance to the split that is required on the left and on the right.
    big_m : ndarray of shape (n_points,)
        What the left-hand side can reach at most.
    """
    for b, name, sign, leaves in sides_of_branches(tree):
        terms = [*split_value(X, normals[b], offsets[b], sign), (places[:, leaves], big_m[:, None])]
        builder.add_rows(name, terms, upper=big_m - margins[0 if sign > 0 else 1])


def add_hinge_rows(
    builder: ProgramBuilder,
    name: str,
    f: list[Term],
    hinge: IntArray,
    chosen: tuple[IntArray, BoolArray] | None = None,
    big_m: FloatArray | float = 0.0,
) -> None:
    r"""Add the program rows :math:`h_i \ge 1 + f(x_i) - M_i (1 - \sum_t \alpha_{it})`, with f of either sign.

    Parameters
    ----------
    builder : ProgramBuilder
        Where the rows go.
    name : str
        Name of the rows.
    f : list of terms
        As :func:`split_value` gives them.
    hinge : ndarray of int, shape (n_points,)
        Columns of the hinge errors.
    chosen : pair of ndarray of shape (n_points, n_leaves), or None
        Columns of the choice among leaves, and which leaves are on that side. By default rows always hold.
    big_m : ndarray of shape (n_points,)
        What :math:`1 + f` can reach at most, where there is a choice.
    """
    terms: list[Term] = [*f, (hinge, -1.0)]
    if chosen is not None:
        terms.append((chosen[0], chosen[1] * np.asarray(big_m)[:, None]))
    builder.add_rows(name, terms, upper=big_m - 1.0)


# ---------------------------------------------------------------------- labels


def add_leaf_labels(builder: ProgramBuilder, n_classes: int, n_leaves: int, used: IntArray | None = None) -> IntArray:
    """Declare c, whether a leaf has a class, shape (n_classes, n_leaves): one a leaf, none for one that is not used."""
    c = builder.add_variables("c", (n_classes, n_leaves), upper=1, integer=True, priority=10)
    if used is None:
        builder.add_rows("one_label", [(c.T, 1.0)], lower=1, upper=1)
    else:
        builder.add_rows("one_label", [(c.T, 1.0), (used, -1.0)], lower=0, upper=0)
    return c


def add_used_leaves(
    builder: ProgramBuilder, z: IntArray, size: FloatArray, least: float, priority: int = 0
) -> IntArray:
    """Declare l in a program, whether a leaf is used, shape (n_leaves,): by rows of at least `least` points.

    Parameters
    ----------
    builder : ProgramBuilder
        Gets columns and rows.
    z : ndarray of int, shape (n_points, n_leaves)
        Columns of the places of points.
    size : ndarray of shape (n_points,)
        Rows that points stand for.
    least : float
        Fewest rows of a leaf that is used.
    priority : int
        Of the columns in branching.
    """
    used = builder.add_variables("l", z.shape[1], upper=1, integer=True, priority=priority)
    builder.add_rows("leaf_is_used", [(z.ravel(), 1.0), (np.tile(used, len(z)), -1.0)], upper=0)
    builder.add_rows("min_leaf", [(z.T, size), (used, -least)], lower=0)
    return used


def add_group_errors(
    builder: ProgramBuilder, z: IntArray, c: IntArray, weight: FloatArray, unit: float
) -> tuple[IntArray, IntArray, IntArray]:
    """Declare e in a program, whether points of a class in a group are wrong: e >= z - c in every leaf.

    Parameters
    ----------
    builder : ProgramBuilder
        Gets columns and rows.
    z : ndarray of int, shape (n_groups, n_leaves)
        Columns of the places of groups, whose points no split parts.
    c : ndarray of int, shape (n_classes, n_leaves)
        Columns of labels.
    weight : ndarray of shape (n_groups, n_classes)
        Weight of each class in each group; there is an error where it is positive.
    unit : float
        Weight that costs 1.

    Returns
    -------
    tuple of ndarray of int
        Columns of the errors, and group and class of each.
    """
    group, klass = np.nonzero(weight)
    e = builder.add_variables("e", len(group), upper=1, cost=weight[group, klass] / unit)
    terms = [(np.repeat(e, z.shape[1]), -1.0), (z[group].ravel(), 1.0), (c[klass].ravel(), -1.0)]
    builder.add_rows("error", terms, upper=0)
    return e, group, klass


def add_rising_labels(builder: ProgramBuilder, c: IntArray, step: int, where: IntArray | None = None) -> None:
    """Let labels of a program rise by at least `step` at the lowest splits, which excludes mirror images.

    By one more where a binary of the split is 1, if `where` names the columns of these.
    """
    number = np.arange(1.0, len(c) + 1)
    terms: list[Term] = [(c[:, 0::2].T, number), (c[:, 1::2].T, -number)]
    builder.add_rows("labels_rise", terms + ([] if where is None else [(where, 1.0)]), upper=-step)


# ---------------------------------------------------------------------- totals


def add_label_counts(
    builder: ProgramBuilder, count: IntArray, places: IntArray, c: IntArray, rows: sparse.csr_array, most: ArrayLike
) -> None:
    r"""Add the program rows that make counts those of the labels that points get, group by group.

    .. math:: count_{gk} = \sum_t q_{gkt}, \quad q_{gkt} \le most_g\, c_{kt}, \quad
              \sum_k q_{gkt} = \sum_i rows_{gi}\, z_{it} .

    Parameters
    ----------
    builder : ProgramBuilder
        Where the rows go.
    count : ndarray of int, shape (n_groups, n_classes)
        Columns of the counts.
    places : ndarray of int, shape (n_points, n_leaves)
        Columns of the places of points in leaves.
    c : ndarray of int, shape (n_classes, n_leaves)
        Columns of the labels.
    rows : csr_array of shape (n_groups, n_points)
        What each point counts in each group.
    most : array-like of shape (n_groups,)
        What all points count there together.
    """
    (n_groups, n_classes), n_leaves = count.shape, places.shape[1]
    # q_gkt, the rows of group g in leaf t that count for class k: all of them for its label, else none.
    q = builder.add_variables("q", (n_groups, n_classes, n_leaves))
    each = np.repeat(most, c.size)
    builder.add_rows("counts_for_label", [(q.ravel(), 1.0), (np.tile(c.ravel(), n_groups), -each)], upper=0)
    for t in range(n_leaves):
        builder.add_rows(f"all_count[{t}]", [(q[:, :, t], 1.0), (places[:, t], -rows)], lower=0, upper=0)
    builder.add_rows("count", [(count.ravel(), 1.0), (q.reshape(count.size, n_leaves), -1.0)], lower=0, upper=0)


def label_count_blocks(z: FloatArray, c: FloatArray, rows: sparse.csr_array) -> dict[str, FloatArray]:
    """Values of the program blocks of :func:`add_label_counts`, given those of places and labels."""
    in_leaf = np.asarray(rows @ z)
    return {"q": in_leaf[:, None, :] * c, "count": in_leaf @ c.T}


def add_total_rows(
    builder: ProgramBuilder,
    counts: Sequence[Term],
    dev: IntArray,
    low: ArrayLike,
    high: ArrayLike,
    names: tuple[str, str] = ("too_few", "too_many"),
) -> None:
    """Add the program rows ``low - dev <= count <= high + dev`` for a count a group, given its terms."""
    builder.add_rows(names[0], [*counts, (dev, 1.0)], lower=low)
    builder.add_rows(names[1], [*counts, (dev, -1.0)], upper=high)


def add_class_totals(
    builder: ProgramBuilder, places: IntArray, c: IntArray | None, totals: PointTotals, price: float
) -> None:
    r"""Add the program rows of class totals in each group, and how many would change class, at a price each.

    .. math:: dev_g \ge \sum_k [n_{gk} - high_{gk}]^+, \quad dev_g \ge \sum_k [low_{gk} - n_{gk}]^+ .

    Parameters
    ----------
    builder : ProgramBuilder
        Where the rows go.
    places : ndarray of int, shape (n_points, n_leaves)
        Columns of the places of points in leaves.
    c : ndarray of int, shape (n_classes, n_leaves), or None
        Columns of the labels; None for two classes that alternate over the leaves.
    totals : PointTotals
        Rows that the points stand for, and allowed counts.
    price : float
        Price of a row.
    """
    shape, n_groups = totals.low.shape, totals.n_groups
    rows = sparse.csr_array(totals.size.T)
    count = builder.add_variables("count", shape)
    over, under = builder.add_variables("over", shape), builder.add_variables("under", shape)
    dev = builder.add_variables("dev", n_groups, cost=price)
    flat = count.ravel()
    if c is None:
        weights = sparse.kron(rows, np.ones((1, places.shape[1] // 2)), format="csr")
        for k in range(2):
            terms: list[Term] = [(count[:, k], 1.0), (places[:, k::2].ravel(), -weights)]
            builder.add_rows(f"count[{k}]", terms, lower=0, upper=0)
    else:
        add_label_counts(builder, count, places, c, rows, totals.group_rows)
    builder.add_rows("over", [(over.ravel(), 1.0), (flat, -1.0)], lower=-totals.high.ravel())
    builder.add_rows("under", [(under.ravel(), 1.0), (flat, 1.0)], lower=totals.low.ravel())
    builder.add_rows("dev_over", [(dev, 1.0), (over, -1.0)], lower=0)
    builder.add_rows("dev_under", [(dev, 1.0), (under, -1.0)], lower=0)


def class_totals_blocks(z: FloatArray, c: FloatArray, totals: PointTotals) -> dict[str, FloatArray]:
    """Values of the program blocks of :func:`add_class_totals`, given those of places and labels."""
    blocks = label_count_blocks(z, c, totals.size.T)
    count = blocks["count"]
    beyond = {"over": totals.excess(count), "under": totals.lack(count), "dev": totals.deviations(count)}
    return blocks | {name: value.astype(np.float64) for name, value in beyond.items()}
