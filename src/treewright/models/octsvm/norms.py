r"""Rows, cones and prices of the norms of all normals, which the tight and the printed program share.

:math:`\lVert \omega_t \rVert \le n_t \le n`. For l2 that is a cone a node; for l1 and linf rows. A price of
:math:`n^2 / 2 \le q` is the cone :math:`\lVert (n, q - \tfrac12) \rVert \le q + \tfrac12`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from treewright.core.arrays import FloatArray, IntArray
from treewright.models.octsvm.loss import lengths
from treewright.solvers.program_builder import ProgramBuilder

if TYPE_CHECKING:
    from treewright.models.octsvm.objective import OCTSVM

__all__ = ["add_norms", "norm_blocks"]


def add_norms(builder: ProgramBuilder, model: OCTSVM, omega: IntArray) -> IntArray:
    """Declare the norm of each node and the price of the longest; return the columns of the former."""
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
    """Values of the blocks of :func:`add_norms`, given the normals."""
    norm = lengths(omega, model.norm)
    longest = norm.max(initial=0.0)
    square = np.array(0.5 * longest**2)
    return {
        "norm": norm,
        "abs_omega": np.abs(omega),
        "longest": np.array(longest),
        "square_low": square - 0.5,
        "square_high": square + 0.5,
    }
