r"""The tight program of SVM1-ODT.

Points with equal features (missing values included) share their places: k runs over such groups, :math:`S_k` is the
number of rows of a group and :math:`W_{ky}` its weight of class y. For every branch b write
:math:`L_{kb} = \sum_{l\ left\ of\ b} e_{kl}` and :math:`R_{kb} = \sum_{l\ right\ of\ b} e_{kl}`.

*Margins.* One row a group, branch and side, where the paper has two a leaf:

.. math::
    f_{kb} = g_b - h_b^\top x_k \in [-1, 1], \quad 0 \le m_{kb} \le \epsilon - \mu, \quad
    f_{kb} + m_{kb} \ge (1 + \epsilon) L_{kb} - 1, \quad -f_{kb} + m_{kb} \ge (1 + \epsilon) R_{kb} - 1 .

With :math:`L_{kb} = 1` the first is :math:`m \ge \epsilon - f`, hence :math:`f \ge \mu`; with :math:`L_{kb} = 0` it
says nothing, as :math:`f \ge -1`: the constants are the smallest possible ones. It is what (1f)-(1j) say for a leaf,
summed over the leaves of a side, which implies each of them.

*Labels.* Binaries :math:`c_{yl}`, one a leaf, instead of numbers :math:`u_l \in [1, Y]`, and an error for each place:

.. math:: \min \sum_{k,y,l} W_{ky} d_{kyl}, \qquad d_{kyl} \ge e_{kl} - c_{yl}, \quad d_{kyl} \ge 0 .

This implies every cut of Theorem 3: for points :math:`i \in I` of different classes and leaves :math:`L`

.. math:: \sum_{i \in I} c_i \ge \sum_{i \in I, l \in L} d_{i y_i l} \ge \sum_{i \in I, l \in L} e_{il}
          - \sum_{l \in L} \sum_{i \in I} c_{y_i l} \ge \sum_{i \in I, l \in L} e_{il} - |L| ,

and so those of Proposition 1, which are sums of them. (The weighted ones follow from
:math:`\sum_i w_i d_{i y_i l} \ge \sum_i w_i e_{il} - \sum_y W_y c_{yl}` in the same way.) The printed rows (1b)-(1e)
allow :math:`u_l` between two labels and then count a fraction of an error only.

*Rising labels.* Labels rise strictly from left to right at the lowest splits. Equal ones are never needed: the split
that sends all points to one of them (h = 0) costs nothing. And a split can be mirrored, as margins are symmetric. For
two classes all labels are known, errors are linear in the places, and c and d vanish. Above the lowest splits the
heaviest group goes right wherever it gets to, which excludes the other mirror images.

*Equal rows of different classes* share a place, so all but one class of them err, in whatever leaf:
:math:`\sum_y d_{kyl} \ge (n_k - 1) e_{kl}` with :math:`n_k` the number of classes in group k.

*Categories.* :math:`u_{bj}` says that b splits by the categorical feature j (at a price of :math:`\alpha_2`),
:math:`t_{bjv} \le u_{bj}` that level v goes left; missing values are one more level. With
:math:`C_b = \sum_j u_{bj} \le 1` and :math:`A_{kb} = \sum_j t_{b j x_{kj}}`

.. math::
    L_{kb} \le A_{kb} + 1 - C_b, \quad R_{kb} \le 1 - A_{kb}, \quad |f_{kb}| \le 1 - C_b, \quad
    u_{bj} \le \sum_v t_{bjv} \le (n_j - 1) u_{bj},

and the margins become :math:`f + m \ge (1 + \epsilon)(L - A) - (1 - C)` and
:math:`-f + m \ge (1 + \epsilon)(R - (C - A)) - (1 - C)`. Without a categorical split (C = A = 0) they are those above;
with one (C = 1) f = 0 and the right-hand sides are 0 or less, as :math:`L \le A` and :math:`R \le C - A`. They are the
convex hull of the two cases. Instead of (8e), which bounds h by 1 in all splits as soon as there is a categorical
feature, f vanishes where a category splits. (8c) has one row a leaf, (8d) is :math:`R \le 2 - C - A`, weaker as
:math:`A \le C`. With all places integer, t need not be declared so.

*Missing values.* Where a numerical feature j has gaps, its weight is 0 or at least the `tolerance` :math:`\tau` in
size: :math:`\tau u^+_{bj} - H u^-_{bj} \le h_{bj} \le H u^+_{bj} - \tau u^-_{bj}` with :math:`u^+ + u^- \le 1 - C_b`.
(A feature that is used with weight 0 would send points without a value to a side of their own, but no tree does that.)
:math:`U_{kb} = \max_j (u^+_{bj} + u^-_{bj})` over the features that group k lacks says that b has no value for it. Then
it goes to the side :math:`q_b`: :math:`L \le q + 1 - U`, :math:`R \le 2 - q - U`, and its margins and bounds are
relaxed by :math:`B_k U`. Here :math:`x_k` is filled with the values of the nearest group :math:`k_0` that lacks
nothing, so that :math:`|f_{kb}| \le 1 + H \lVert x_k - x_{k_0} \rVert_1 = B_k`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from treewright.core.arrays import FloatArray, IntArray
from treewright.models.svm1odt.cuts import add_error_cuts
from treewright.models.svm1odt.heap import HeapTree
from treewright.optimize.shared_rows import add_leaf_labels, add_rising_labels, sides_of_branches
from treewright.solvers.program import Program
from treewright.solvers.program_builder import ProgramBuilder, Term
from treewright.tree import route

if TYPE_CHECKING:
    from treewright.models.svm1odt.objective import SVM1ODT

__all__ = ["build", "planes_of", "point"]


def build(model: SVM1ODT) -> Program:
    """Write the tight program of SVM1-ODT."""
    builder, tree = ProgramBuilder(), model.tree
    e = _add_places(builder, model)
    h, g = _add_hyperplanes(builder, model)
    uses, left = _add_categories(builder, model)
    lacks = _add_gaps(builder, model, h, uses, e)
    reach = model.reach[:, None]
    f = builder.add_variables("f", (len(reach), tree.n_branches), -reach, reach)
    most = 0.0 if model.hard else model.epsilon - model.margin
    price = model.alpha_1 * model.group_size[:, None]
    m = builder.add_variables("m", f.shape, upper=most, cost=price)
    X = model.filled
    for b in range(tree.n_branches):
        builder.add_rows(
            f"value[{b + 1}]", [(np.broadcast_to(h[b], X.shape), X), (f[:, b], 1.0), (_all(g[b], X), -1.0)], 0.0, 0.0
        )
    _add_margins(builder, model, e, f, m, uses, left, lacks)
    return builder.build()


def _all(column: int | np.int64, X: FloatArray) -> IntArray:
    """The same column in every row."""
    return np.full(len(X), column)


# ---------------------------------------------------------------------- places, labels and errors


def _add_places(builder: ProgramBuilder, model: SVM1ODT) -> IntArray:
    """Places of the groups, labels of the leaves and errors."""
    table, n_leaves, n_classes = model.group_weight, model.tree.n_leaves, model.n_classes
    shape = (len(table), n_leaves)
    if n_classes <= 2:
        # Labels are 0, 1, 0, 1, ...: whoever is at a leaf of the other class is wrong.
        wrong = np.tile(table[:, ::-1], n_leaves // 2) if n_classes == 2 else np.zeros(shape)
        e = builder.add_variables("e", shape, upper=1, integer=True, cost=wrong)
        error = (e.ravel(), wrong.ravel())
    else:
        e = builder.add_variables("e", shape, upper=1, integer=True)
        c = add_leaf_labels(builder, n_classes, n_leaves)
        add_rising_labels(builder, c, step=1)
        error = _add_errors(builder, model, e, c)
    builder.add_rows("one_leaf", [(e, 1.0)], lower=1, upper=1)
    if model.depth > 1:
        first = int(np.argmax(table.sum(axis=1)))
        builder.add_rows("first_goes_right", [(e[first : first + 1, :-2], 1.0)], upper=0)
    add_error_cuts(builder, model.cuts, error, e, table.sum(axis=1), table.sum(axis=0))
    return e


def _add_errors(builder: ProgramBuilder, model: SVM1ODT, e: IntArray, c: IntArray) -> tuple[IntArray, FloatArray]:
    """Errors d of each class of each group in each leaf; all but one class of a group are wrong."""
    group, klass = np.nonzero(model.group_weight)
    weight = np.repeat(model.group_weight[group, klass], e.shape[1])
    d = builder.add_variables("d", (len(group), e.shape[1]), upper=1, cost=weight.reshape(len(group), -1))
    terms: list[Term] = [(d.ravel(), 1.0), (e[group].ravel(), -1.0), (c[klass].ravel(), 1.0)]
    builder.add_rows("error", terms, lower=0)
    number = np.bincount(group, minlength=len(e))
    for n in np.unique(number[number > 1]):
        groups = np.flatnonzero(number == n)
        members = d[np.isin(group, groups)].reshape(len(groups), n, -1).transpose(0, 2, 1).reshape(-1, n)
        builder.add_rows(f"one_class_right[{n}]", [(members, 1.0), (e[groups].ravel(), 1.0 - n)], lower=0)
    return d.ravel(), weight


# ---------------------------------------------------------------------- splits


def _add_hyperplanes(builder: ProgramBuilder, model: SVM1ODT) -> tuple[IntArray, IntArray]:
    """Normals of the numerical features, offsets, and the price of the norm."""
    H, n_branches = model.max_coefficient, model.tree.n_branches
    shape = (n_branches, len(model.numerical))
    h = builder.add_variables("h", shape, -H, H)
    # g = f + h'x holds for every group, so the one with the smallest bound gives it.
    most = float((model.reach + H * np.abs(model.filled).sum(axis=1)).min())
    g = builder.add_variables("g", n_branches, -most, most)
    if model.alpha_2 > 0 and h.size:
        norm = builder.add_variables("norm", shape, upper=H, cost=model.alpha_2)
        builder.add_rows("norm_above", [(norm.ravel(), 1.0), (h.ravel(), -1.0)], lower=0)
        builder.add_rows("norm_below", [(norm.ravel(), 1.0), (h.ravel(), 1.0)], lower=0)
    return h, g


def _add_categories(builder: ProgramBuilder, model: SVM1ODT) -> tuple[IntArray, IntArray]:
    """Which categorical feature splits, and which of its levels go left."""
    n_branches, levels = model.tree.n_branches, model.levels_used
    uses = builder.add_variables(
        "uses", (n_branches, len(levels.features)), upper=1, integer=True, cost=model.alpha_2, priority=10
    )
    left = builder.add_variables("left", (n_branches, len(levels.level)), upper=1)
    if not uses.size:
        return uses, left
    builder.add_rows("one_category", [(uses, 1.0)], upper=1)
    builder.add_rows("level_of_used", [(left.ravel(), 1.0), (uses[:, levels.feature].ravel(), -1.0)], upper=0)
    for j in range(uses.shape[1]):
        own = left[:, levels.feature == j]
        builder.add_rows(f"some_left[{j}]", [(own, 1.0), (uses[:, j], -1.0)], lower=0)
        builder.add_rows(f"some_right[{j}]", [(own, 1.0), (uses[:, j], 1.0 - own.shape[1])], upper=0)
    return uses, left


def _add_gaps(
    builder: ProgramBuilder, model: SVM1ODT, h: IntArray, uses: IntArray, e: IntArray
) -> tuple[IntArray, IntArray]:
    """Which features with gaps a split uses, and which patterns of missing values lack one of them.

    Returns the groups that lack something and, for each of them, the columns that say so at each branch.
    """
    patterns, groups, pattern = model.patterns
    if not len(groups):
        return groups, np.zeros((0, len(h)), dtype=np.int64)
    n_branches, least, H = len(h), model.tolerance, model.max_coefficient
    gaps = np.flatnonzero(patterns.any(axis=0))
    shape = (n_branches, len(gaps))
    plus = builder.add_variables("plus", shape, upper=1, integer=True, priority=10)
    minus = builder.add_variables("minus", shape, upper=1, integer=True, priority=10)
    columns = (h[:, gaps].ravel(), plus.ravel(), minus.ravel())
    builder.add_rows("weight_above", list(zip(columns, (1.0, -H, least), strict=True)), upper=0)
    builder.add_rows("weight_below", list(zip(columns, (1.0, -least, H), strict=True)), lower=0)
    category: list[Term] = [(np.repeat(uses, len(gaps), axis=0), 1.0)] if uses.size else []
    builder.add_rows("one_sign", [(columns[1], 1.0), (columns[2], 1.0), *category], upper=1)

    lacks = builder.add_variables("lacks", (len(patterns), n_branches), upper=1)
    missing_left = builder.add_variables("missing_left", n_branches, upper=1, integer=True, priority=10)
    for number, lacking in enumerate(patterns[:, gaps]):
        used: list[Term] = [(plus[:, lacking], -1.0), (minus[:, lacking], -1.0)]
        builder.add_rows(f"lacks_one[{number}]", [(lacks[number], 1.0), *used], upper=0)
        own, n = lacks[number], int(lacking.sum())
        one = [(plus[:, lacking].ravel(), -1.0), (minus[:, lacking].ravel(), -1.0)]
        builder.add_rows(f"lacks_any[{number}]", [(np.repeat(own, n), 1.0), *one], lower=0)
    for b, name, sign, leaves in sides_of_branches(model.tree):
        terms: list[Term] = [(e[groups][:, leaves], 1.0), (lacks[pattern, b], 1.0)]
        terms.append((np.full(len(groups), missing_left[b]), -sign))
        builder.add_rows(f"missing_{name}", terms, upper=1.0 if sign > 0 else 2.0)
    return groups, lacks[pattern]


def _add_margins(
    builder: ProgramBuilder,
    model: SVM1ODT,
    e: IntArray,
    f: IntArray,
    m: IntArray,
    uses: IntArray,
    left: IntArray,
    lacks: tuple[IntArray, IntArray],
) -> None:
    """Margins and sides of all groups at all branches."""
    n, wide = len(e), 1.0 + model.epsilon
    relaxed = np.zeros(n)
    lacking = np.zeros((n, f.shape[1]), dtype=np.int64)  # column 0 with coefficient 0 where nothing is lacking
    lacking[lacks[0]], relaxed[lacks[0]] = lacks[1], 1.0
    reach, own = model.reach, model.levels_used.of_row
    for b, name, sign, leaves in sides_of_branches(model.tree):
        row: list[Term] = [(f[:, b], sign), (m[:, b], 1.0), (e[:, leaves], -wide)]
        box: list[Term] = [(f[:, b], -sign)]
        if len(lacks[0]):
            row.append((lacking[:, b], relaxed * (reach + model.epsilon)))
            box.append((lacking[:, b], -relaxed * (reach - 1.0)))
        if own.shape[1]:
            used = np.broadcast_to(uses[b], (n, uses.shape[1]))
            levels = left[b][own]
            row += [(levels, sign * wide), (used, -1.0 if sign > 0 else wide - 1.0)]
            box.append((used, 1.0))
            side_row: list[Term] = [(e[:, leaves], 1.0), (levels, -sign)]
            builder.add_rows(f"level_{name}", side_row + ([(used, 1.0)] if sign > 0 else []), upper=1)
        builder.add_rows(f"margin_{name}", row, lower=-1)
        if len(box) > 1:
            builder.add_rows(f"box_{name}", box, upper=1)


# ---------------------------------------------------------------------- points of the program


def planes_of(model: SVM1ODT, x: FloatArray) -> HeapTree:
    """Read SVM1-ODT splits and labels off a point of the tight program."""
    value, n_branches = model.build().value, model.tree.n_branches
    h = np.zeros((n_branches, model.X.shape[1]))
    h[:, model.numerical] = np.where(np.abs(value(x, "h")) > 1e-9, value(x, "h"), 0.0)
    gaps = np.flatnonzero(model.has_gaps)
    missing_left = np.zeros(n_branches, dtype=bool)
    if len(gaps):
        h[:, gaps] = np.where(value(x, "plus") + value(x, "minus") > 0.5, h[:, gaps], 0.0)
        missing_left = value(x, "missing_left") > 0.5
    category, table, level_missing = model.levels_used.read(value(x, "uses"), value(x, "left"))
    missing_left = np.where(category >= 0, level_missing, missing_left)
    h[category >= 0] = 0.0
    labels = np.arange(model.tree.n_leaves) % 2 if model.n_classes == 2 else np.zeros(model.tree.n_leaves, np.int64)
    if model.n_classes > 2:
        labels = np.argmax(value(x, "c"), axis=0)
    return HeapTree(h, value(x, "g"), category, table, missing_left, labels)


def point(model: SVM1ODT, heap: HeapTree) -> dict[str, FloatArray]:
    """Point of the tight program of SVM1-ODT for a feasible complete tree."""
    tree, complete, X = heap.to_tree(model.n_classes), model.tree, model.rows
    leaf = route(tree, X) - complete.n_branches
    e = np.eye(complete.n_leaves)[leaf]
    numerical = heap.category < 0
    h, g = heap.h[:, model.numerical], np.where(numerical, heap.g, 0.0)
    f = g - model.filled @ h.T
    patterns, groups, pattern = model.patterns
    gaps = np.flatnonzero(model.has_gaps)
    used = heap.h[:, gaps] != 0.0
    lacks = (patterns[:, model.has_gaps[model.numerical]].astype(float) @ used.T.astype(float) > 0).astype(np.float64)
    known = np.ones(f.shape, dtype=bool)
    known[groups] = lacks[pattern] == 0
    on_path = (complete.left_of | complete.right_of)[:, leaf].T
    m = np.where(on_path & known & numerical, np.maximum(0.0, model.epsilon - np.abs(f)), 0.0)
    c = (heap.labels == np.arange(model.n_classes)[:, None]).astype(np.float64)
    group, klass = np.nonzero(model.group_weight)
    blocks = {
        "e": e,
        "c": c,
        "d": np.maximum(0.0, e[group] - c[klass]),
        "h": h,
        "g": g,
        "norm": np.abs(h),
        "f": f,
        "m": 0.0 * m if model.hard else m,
        "plus": heap.h[:, gaps] > 0,
        "minus": heap.h[:, gaps] < 0,
        "lacks": lacks,
        "missing_left": heap.missing_left,
    }
    return blocks | model.levels_used.write(heap)
