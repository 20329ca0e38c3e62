r"""A mathematical program as data.

.. math:: \min_x\; c^\top x + c_0 \quad\text{s.t.}\quad
          r^l \le A x \le r^u,\; l \le x \le u,\; x_j \in \mathbb{Z}\,(j \in I),\;
          \lVert x_{K} \rVert_2 \le x_{h} \text{ for each cone } (h, K).

Nothing here knows a solver, and nothing here loops over points.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from treewright.core.arrays import FloatArray, IntArray

__all__ = ["Cone", "Program"]


@dataclass(frozen=True)
class Cone:
    r"""Second-order cone :math:`\lVert x_{\text{members}} \rVert_2 \le x_{\text{head}}`."""

    head: int
    members: tuple[int, ...]


@dataclass(frozen=True)
class Program:
    """A mixed-integer linear (or second-order cone) program to be minimized.

    Build one with :class:`treewright.solvers.program_builder.ProgramBuilder`.

    Attributes
    ----------
    matrix : scipy.sparse.csr_array of shape (n_rows, n_columns)
        Linear rows.
    row_lower, row_upper : ndarray of shape (n_rows,)
        Bounds of the rows, infinite where absent.
    lower, upper : ndarray of shape (n_columns,)
        Bounds of the variables.
    cost : ndarray of shape (n_columns,)
        Linear objective.
    offset : float
        Constant of the objective.
    integer : ndarray of bool, shape (n_columns,)
        Which variables are integer.
    priority : ndarray of int, shape (n_columns,)
        Branching priority, larger first, 0 for no wish.
    cones : tuple of Cone
        Second-order cones.
    variables : mapping of str to ndarray of int
        Column numbers of each named block of variables, in the block's shape.
    rows : mapping of str to (start, stop)
        Row numbers of each named block of rows.
    """

    matrix: sparse.csr_array
    row_lower: FloatArray
    row_upper: FloatArray
    lower: FloatArray
    upper: FloatArray
    cost: FloatArray
    integer: NDArray[np.bool_]
    priority: IntArray
    offset: float = 0.0
    cones: tuple[Cone, ...] = ()
    variables: Mapping[str, IntArray] = field(default_factory=dict)
    rows: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        """Number of linear rows."""
        return int(self.matrix.shape[0])

    @property
    def n_columns(self) -> int:
        """Number of variables."""
        return int(self.matrix.shape[1])

    @property
    def n_integers(self) -> int:
        """Number of integer variables."""
        return int(self.integer.sum())

    def value(self, x: FloatArray, name: str) -> FloatArray:
        """Values of the variable block `name` in `x`, in the block's shape."""
        return np.asarray(x, dtype=np.float64)[self.variables[name]]

    def point(self, blocks: Mapping[str, ArrayLike]) -> FloatArray:
        """Point with these values of the variable blocks, the inverse of :meth:`value`; other names are passed over.

        Examples
        --------
        >>> from treewright.solvers.program_builder import ProgramBuilder
        >>> builder = ProgramBuilder()
        >>> u, v = builder.add_variables("u", 2), builder.add_variables("v", 1)
        >>> builder.build().point({"v": 3.0, "u": [1.0, 2.0], "w": 4.0}).tolist()
        [1.0, 2.0, 3.0]
        """
        x = np.zeros(self.n_columns)
        for name, columns in self.variables.items():
            x[columns] = blocks[name]
        return x

    def summary(self) -> str:
        """One line about the size, for logs and reports."""
        return (
            f"{self.n_rows} rows, {self.n_columns} columns ({self.n_integers} integer), "
            f"{self.matrix.nnz} non-zeros, {len(self.cones)} cones"
        )
