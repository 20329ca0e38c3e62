r"""Cuts that count errors: Theorem 3 and Proposition 1, with weights.

Let :math:`W_k` be the weight of class k, :math:`W_{(1)} \le W_{(2)} \le \dots` in order, Y the number of classes and
:math:`E = \sum_i w_i c_i` the weight of the errors.

1. ``"leaf"``: a leaf predicts one class, so at least the rest of its weight is wrong,
   :math:`E \ge \sum_i w_i e_{il} - W_{(Y)}`.
2. ``"all_but_one"``: the other :math:`2^D - 1` leaves predict as many classes at most. A point of any of the
   :math:`Y - 2^D + 1` (or more) other classes is in leaf l or wrong,
   :math:`\sum_i w_i (c_i + e_{il}) \ge W_{(1)} + \dots + W_{(Y - 2^D + 1)}`, if :math:`Y \ge 2^D`. The printed
   right-hand side is :math:`(Y - 2^D + 1) s_1`, which is no larger.
3. ``"all"``: :math:`Y - 2^D` classes (or more) have no leaf at all,
   :math:`E \ge W_{(1)} + \dots + W_{(Y - 2^D)}`, if :math:`Y > 2^D`.

With all weights 1 these are the printed ones. The tight program implies them and all of Theorem 3: see
:mod:`treewright.models.svm1odt.program`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

import numpy as np

from treewright.core.arrays import FloatArray, IntArray
from treewright.solvers.program_builder import ProgramBuilder

__all__ = ["CUTS", "Cut", "add_error_cuts", "classes_without_leaf"]

Cut = Literal["leaf", "all_but_one", "all"]

CUTS: tuple[Cut, ...] = ("leaf", "all_but_one", "all")
"""Names of the cuts, in the order of Proposition 1."""


def classes_without_leaf(class_weight: FloatArray, n_leaves: int) -> float:
    """Least weight of the classes of an SVM1-ODT for which no leaf is left.

    Examples
    --------
    >>> classes_without_leaf(np.array([5.0, 1.0, 2.0, 9.0]), 2)
    3.0
    """
    return float(np.sort(class_weight)[: max(0, len(class_weight) - n_leaves)].sum())


def add_error_cuts(
    builder: ProgramBuilder,
    cuts: Collection[Cut],
    error: tuple[IntArray, FloatArray],
    places: IntArray,
    weight: FloatArray,
    class_weight: FloatArray,
) -> None:
    """Add the cuts of Proposition 1 of SVM1-ODT that are asked for and say something.

    Parameters
    ----------
    builder : ProgramBuilder
        Where the rows go.
    cuts : collection of {"leaf", "all_but_one", "all"}
        Which.
    error : pair of ndarray of shape (n_terms,)
        Columns and coefficients whose sum is the weight of the errors.
    places : ndarray of int, shape (n_points, n_leaves)
        Columns of the places of points in leaves.
    weight : ndarray of shape (n_points,)
        Weight of each point.
    class_weight : ndarray of shape (n_classes,)
        Weight of each class.
    """
    n_classes, n_leaves = len(class_weight), places.shape[1]
    columns, coefficients = (np.broadcast_to(part, (n_leaves, len(part))) for part in error)
    if "leaf" in cuts:
        terms = [(columns, coefficients), (places.T, -weight)]
        builder.add_rows("cut_leaf", terms, lower=-class_weight.max())
    if "all_but_one" in cuts and n_classes >= n_leaves:
        least = classes_without_leaf(class_weight, n_leaves - 1)
        builder.add_rows("cut_all_but_one", [(columns, coefficients), (places.T, weight)], lower=least)
    if "all" in cuts and n_classes > n_leaves:
        least = classes_without_leaf(class_weight, n_leaves)
        builder.add_rows("cut_all", [(columns[:1], coefficients[:1])], lower=least)
