"""Vectorized construction of a :class:`Program` from named blocks.

A block of variables is declared once and returns its column numbers as an array; a block of rows is a list of
terms ``(columns, coefficients)`` whose first axis runs over the rows. A million rows are one call.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from treewright.core.arrays import FloatArray, IntArray
from treewright.solvers.program import Cone, Program

__all__ = ["ProgramBuilder"]

Term = tuple[ArrayLike, ArrayLike | sparse.sparray]


class ProgramBuilder:
    """Collects blocks and assembles the program.

    Examples
    --------
    Two items of a knapsack, ``max 3 u_0 + 4 u_1`` under ``2 u_0 + 3 u_1 <= 4``:

    >>> import numpy as np
    >>> builder = ProgramBuilder()
    >>> u = builder.add_variables("u", 2, upper=1, integer=True, cost=[-3.0, -4.0])
    >>> builder.add_rows("weight", [(u[None, :], [[2.0, 3.0]])], upper=4.0)
    >>> program = builder.build()
    >>> program.n_rows, program.n_columns, program.n_integers
    (1, 2, 2)
    """

    def __init__(self) -> None:
        self._n_columns = 0
        self._n_rows = 0
        self._columns: dict[str, list[FloatArray]] = {k: [] for k in ("lower", "upper", "cost", "integer", "priority")}
        self._row_bounds: list[tuple[FloatArray, FloatArray]] = []
        self._entries: list[tuple[IntArray, IntArray, FloatArray]] = []
        self._cones: list[Cone] = []
        self._offset = 0.0
        self._variables: dict[str, IntArray] = {}
        self._rows: dict[str, tuple[int, int]] = {}

    def add_variables(
        self,
        name: str,
        shape: int | tuple[int, ...],
        lower: ArrayLike = 0.0,
        upper: ArrayLike = np.inf,
        integer: ArrayLike = False,
        cost: ArrayLike = 0.0,
        priority: ArrayLike = 0,
    ) -> IntArray:
        """Declare a block of variables and return its column numbers in the given shape.

        Bounds, costs, integrality and priority broadcast to `shape`.
        """
        if name in self._variables:
            raise ValueError(f"variable block {name!r} is declared twice")
        shape = tuple(shape) if isinstance(shape, Sequence) else (int(shape),)
        size = int(np.prod(shape))
        columns = np.arange(self._n_columns, self._n_columns + size, dtype=np.int64).reshape(shape)
        values: dict[str, FloatArray] = {}
        given = {"lower": lower, "upper": upper, "cost": cost, "integer": integer, "priority": priority}
        for key, value in given.items():
            full = np.broadcast_to(np.asarray(value, dtype=np.float64), shape)
            if np.isnan(full).any():
                raise ValueError(f"variable block {name!r} has {key} that is not a number")
            values[key] = full.flatten()
        for key, flat in values.items():
            self._columns[key].append(flat)
        self._n_columns += size
        self._variables[name] = columns.copy()
        return columns

    def add_rows(self, name: str, terms: Sequence[Term], lower: ArrayLike = -np.inf, upper: ArrayLike = np.inf) -> None:
        """Add rows ``lower <= sum of terms <= upper``.

        Parameters
        ----------
        name : str
            Name of the block of rows.
        terms : sequence of (columns, coefficients)
            `columns` has one axis (one entry a row) or two (several entries a row); `coefficients` broadcasts
            to it. Entries that name the same column twice in a row are summed, zero coefficients are dropped.
            Where rows have few of many columns, `coefficients` is a sparse table of all rows and these columns.
        lower, upper : array-like
            Bounds, broadcast to the number of rows.
        """
        if name in self._rows:
            raise ValueError(f"row block {name!r} is declared twice")
        if not terms:
            raise ValueError(f"row block {name!r} has no terms")
        shaped = [self._as_entries(name, columns, coefficients) for columns, coefficients in terms]
        n_rows = shaped[0][0]
        entries = []
        for n, (row, column, value) in shaped:
            if n != n_rows:
                raise ValueError(f"row block {name!r} has terms of {n_rows} and {n} rows")
            entries.append((row + self._n_rows, column, value))
        bounds = [np.broadcast_to(np.asarray(b, dtype=np.float64), (n_rows,)).copy() for b in (lower, upper)]
        if np.isnan(bounds).any():
            raise ValueError(f"row block {name!r} has a bound that is not a number")
        self._entries += entries
        self._row_bounds.append((bounds[0], bounds[1]))
        self._rows[name] = (self._n_rows, self._n_rows + n_rows)
        self._n_rows += n_rows

    def add_cone(self, head: int, members: ArrayLike) -> None:
        """Add the cone ``norm(x[members]) <= x[head]``."""
        self._cones.append(Cone(int(head), tuple(int(m) for m in np.asarray(members).ravel())))

    def add_offset(self, value: float) -> None:
        """Add a constant to the objective."""
        self._offset += float(value)

    def build(self) -> Program:
        """Assemble the program."""
        row, column, value = (
            [np.concatenate(part) for part in zip(*self._entries, strict=True)]
            if self._entries
            else [np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)]
        )
        matrix = sparse.csr_array((value, (row, column)), shape=(self._n_rows, self._n_columns))
        matrix.eliminate_zeros()  # entries that cancel one another
        bounds = (
            [np.concatenate(b) for b in zip(*self._row_bounds, strict=True)]
            if self._row_bounds
            else [np.empty(0), np.empty(0)]
        )
        columns = {k: np.concatenate(v) if v else np.empty(0) for k, v in self._columns.items()}
        return Program(
            matrix=matrix,
            row_lower=bounds[0],
            row_upper=bounds[1],
            lower=columns["lower"],
            upper=columns["upper"],
            cost=columns["cost"],
            integer=columns["integer"].astype(bool),
            priority=columns["priority"].astype(np.int64),
            offset=self._offset,
            cones=tuple(self._cones),
            variables=dict(self._variables),
            rows=dict(self._rows),
        )

    def _as_entries(
        self, name: str, columns: ArrayLike, coefficients: ArrayLike | sparse.sparray
    ) -> tuple[int, tuple[IntArray, IntArray, FloatArray]]:
        """Number of rows of a term, and row, column and value of its entries."""
        cols = np.asarray(columns, dtype=np.int64)
        if not isinstance(coefficients, sparse.sparray):
            cols, coefs = self._as_block(name, cols, np.asarray(coefficients, dtype=np.float64))
            row, position = np.nonzero(coefs)
            return len(cols), (row, cols[row, position], coefs[row, position])
        table = coefficients.tocoo()
        if cols.shape != table.shape[1:]:
            raise ValueError(f"row block {name!r} has a table of shape {table.shape} for columns of {cols.shape}")
        self._as_block(name, cols, np.zeros(len(cols)))
        if not np.isfinite(table.data).all():
            raise ValueError(f"row block {name!r} has coefficients that are not finite")
        row, position = (np.asarray(c, dtype=np.int64) for c in table.coords)
        return table.shape[0], (row, cols[position], table.data.astype(np.float64))

    def _as_block(self, name: str, cols: IntArray, coefs: FloatArray) -> tuple[IntArray, FloatArray]:
        """Columns as (rows, entries) and coefficients broadcast to the same shape."""
        if cols.ndim == 1:
            cols = cols[:, None]
            if coefs.ndim == 1:
                coefs = coefs[:, None]
        if cols.ndim != 2:
            raise ValueError(f"row block {name!r} has columns of {cols.ndim} axes, expected one or two")
        if cols.size and (cols.min() < 0 or cols.max() >= self._n_columns):
            raise ValueError(
                f"row block {name!r} names columns {cols.min()} to {cols.max()}; "
                f"columns 0 to {self._n_columns - 1} are declared"
            )
        if not np.isfinite(coefs).all():
            raise ValueError(f"row block {name!r} has coefficients that are not finite")
        return cols, np.broadcast_to(coefs, cols.shape)
