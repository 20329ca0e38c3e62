"""Small linear programs that stay in HiGHS between solves and start from where the last solve ended.

Searches solve thousands of programs of some hundred rows, most of which differ from the last one by a cost, a side or
some rows. What such a program takes is hardly the simplex method but the way to it, so this talks to HiGHS in arrays,
without presolve, and keeps model and basis. Large programs, integers and cones are the affair of
:mod:`treewright.solvers.course`.
"""

from __future__ import annotations

import math
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from treewright.core.arrays import FloatArray
from treewright.exceptions import InvalidInputError, SolverError
from treewright.solvers.registry import import_package
from treewright.solvers.vocabulary import Status

__all__ = ["LinearProgram", "LinearSolution", "own_scheduler"]

_SPARE_ENGINES = 8
"""Engines that a thread keeps for its next programs: making one takes longer than solving a small program."""

_spare = threading.local()
_inside = threading.local()


class LinearSolution(NamedTuple):
    """What a solve of a linear program ended with."""

    status: Status
    """OPTIMAL, INFEASIBLE, UNBOUNDED, TIME_LIMIT, or LOCAL where the solver's tolerances settle nothing."""
    x: FloatArray | None = None
    """The optimum, or a feasible point where the status is TIME_LIMIT or LOCAL and one is known."""
    objective: float = math.inf
    """Its cost, ``inf`` without one."""


class LinearProgram:
    r"""A linear program that may grow and change between its solves.

    .. math:: \min c^\top x \quad\text{s.t.}\quad a \le A x \le b,\; l \le x \le u

    After a change of costs the old basis is still feasible, after new rows or bounds it is still dual feasible; either
    way the next solve starts from it.

    Parameters
    ----------
    cost : array-like of shape (n_columns,)
        Costs of the columns.
    lower, upper : float or array-like of shape (n_columns,)
        Bounds of the columns, which may be infinite.
    tolerance : float
        By how much a row or bound may be violated; HiGHS takes 1e-10 at least.

    Examples
    --------
    >>> program = LinearProgram([-1.0, -1.0], 0.0, 5.0)
    >>> program.add_rows([[1.0, 2.0]], -np.inf, 7.0)
    >>> program.solve().x.tolist()
    [5.0, 1.0]
    >>> program.change_costs([0], 1.0)
    >>> program.solve().x.tolist()
    [0.0, 3.5]
    """

    def __init__(self, cost: ArrayLike, lower: ArrayLike, upper: ArrayLike, *, tolerance: float = 1e-7) -> None:
        self.n_columns = self.n_rows = 0
        self._highspy = import_package("highs")
        self._engine = _engine(self._highspy)
        weakref.finalize(self, _keep, self._engine).atexit = False
        if self._engine.setOptionValue("primal_feasibility_tolerance", tolerance) == self._highspy.HighsStatus.kError:
            raise InvalidInputError(f"tolerance={tolerance!r}; HiGHS takes values from 1e-10 on")
        self.add_columns(cost, lower, upper)

    def add_columns(self, cost: ArrayLike, lower: ArrayLike, upper: ArrayLike, rows: ArrayLike | None = None) -> None:
        """Add columns.

        Parameters
        ----------
        cost : array-like of shape (n_new,)
            Their costs.
        lower, upper : float or array-like
            Their bounds.
        rows : array-like of int, shape (n_new,), or None
            The row in which each of them has the entry 1, as a slack has; None for no entries.
        """
        costs = np.ascontiguousarray(cost, dtype=np.float64)
        n = len(costs)
        entries = np.empty(0) if rows is None else np.ones(n)
        where = _numbers(() if rows is None else rows, self.n_rows, "row")
        starts = np.zeros(n, dtype=np.int32) if rows is None else np.arange(n, dtype=np.int32)
        if not np.all(np.isfinite(costs)) or len(where) != len(entries):
            raise InvalidInputError("costs must be finite, and each new column has one row or none")
        bounds = _bounds(lower, upper, n)
        self._do(self._engine.addCols(n, costs, *bounds, len(entries), starts, where, entries), "columns")
        self.n_columns += n

    def add_rows(self, matrix: Any, lower: ArrayLike, upper: ArrayLike) -> None:
        """Add rows.

        Parameters
        ----------
        matrix : array-like or sparse array of shape (n_new, k)
            Entries of the first k columns, the others are 0.
        lower, upper : float or array-like of shape (n_new,)
            Bounds of the rows.
        """
        if sparse.issparse(matrix):
            table = sparse.csr_array(matrix)
            starts, columns, values = table.indptr[:-1], table.indices, table.data
        else:
            table = np.ascontiguousarray(matrix, dtype=np.float64)
            starts, values = np.arange(len(table)) * table.shape[1], table.ravel()
            columns = np.tile(np.arange(table.shape[1], dtype=np.int32), len(table))
        n, k = table.shape
        if k > self.n_columns or not np.all(np.isfinite(values)):
            raise InvalidInputError(f"rows over {k} of {self.n_columns} columns; entries must be finite")
        arrays = starts.astype(np.int32), columns.astype(np.int32, copy=False), values
        self._do(self._engine.addRows(n, *_bounds(lower, upper, n), len(values), *arrays), "rows")
        self.n_rows += n

    def change_costs(self, columns: ArrayLike, cost: ArrayLike) -> None:
        """Change the costs of some columns."""
        which = _numbers(columns, self.n_columns, "column")
        self._do(self._engine.changeColsCost(len(which), which, _filled(cost, len(which))), "costs")

    def change_bounds(self, columns: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> None:
        """Change the bounds of some columns."""
        which = _numbers(columns, self.n_columns, "column")
        self._do(self._engine.changeColsBounds(len(which), which, *_bounds(lower, upper, len(which))), "bounds")

    def change_rows(self, rows: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> None:
        """Change the bounds of some rows."""
        which = _numbers(rows, self.n_rows, "row")
        self._do(self._engine.changeRowsBounds(len(which), which, *_bounds(lower, upper, len(which))), "rows")

    def change_one(
        self, row: int, lower: float, upper: float, column: int, cost: float, low: float, high: float
    ) -> None:
        """Change the bounds of a row, and cost and bounds of a column: for one of each far faster than by arrays."""
        if not (0 <= row < self.n_rows and 0 <= column < self.n_columns):
            raise InvalidInputError(f"there is no row {row} or no column {column}")
        self._do(self._engine.changeRowBounds(row, lower, upper), "rows")
        self._do(self._engine.changeColBounds(column, low, high), "bounds")
        self._do(self._engine.changeColCost(column, cost), "costs")

    def solve(self, seconds: float = math.inf) -> LinearSolution:
        """Minimize from where the last solve ended.

        Parameters
        ----------
        seconds : float
            Time limit; without any time left nothing is solved.
        """
        ends = time.perf_counter() + seconds
        kinds = self._highspy.HighsModelStatus
        known = {
            kinds.kOptimal: Status.OPTIMAL,
            kinds.kModelEmpty: Status.OPTIMAL,
            kinds.kInfeasible: Status.INFEASIBLE,
            kinds.kUnbounded: Status.UNBOUNDED,
            kinds.kTimeLimit: Status.TIME_LIMIT,
        }
        kind = self._run(seconds)
        if kind not in known:
            # A bad basis to start from is one reason for such an end: once more from nothing, with presolve.
            self._engine.clearSolver()
            self._engine.setOptionValue("presolve", "on")
            kind = self._run(ends - time.perf_counter())
            self._engine.setOptionValue("presolve", "off")
        return self._solution(known.get(kind, Status.UNPROVEN))

    def duals(self) -> FloatArray:
        """What the optimum of the last solve would cost more for a unit more of the bound that holds each row.

        It is positive for lower bounds, negative for upper ones, 0 where neither holds.

        Examples
        --------
        >>> program = LinearProgram([2.0, 3.0], 0.0, 9.0)
        >>> program.add_rows([[1.0, 1.0], [1.0, 0.0]], [4.0, -np.inf], [np.inf, 1.0])
        >>> program.solve().objective, program.duals().tolist()
        (11.0, [3.0, -1.0])
        """
        return np.array(self._engine.getSolution().row_dual, dtype=np.float64)

    def _run(self, seconds: float) -> Any:
        """Run HiGHS; how it ended."""
        kinds, engine = self._highspy.HighsModelStatus, self._engine
        if not seconds > 0:
            return kinds.kTimeLimit
        # The clock of an engine goes on from solve to solve.
        engine.setOptionValue("time_limit", engine.getRunTime() + seconds)
        with own_scheduler(self._highspy) as outermost:
            engine.setOptionValue("threads", 1 if outermost else 0)
            ended = engine.run()
            if outermost and ended == self._highspy.HighsStatus.kError and engine.getModelStatus() == kinds.kNotset:
                # Somebody else ran HiGHS in this thread and left a scheduler of more threads.
                self._highspy.Highs.resetGlobalScheduler(True)
                engine.run()
        return engine.getModelStatus()

    def _solution(self, status: Status) -> LinearSolution:
        if status in (Status.INFEASIBLE, Status.UNBOUNDED):
            return LinearSolution(status)
        info = self._engine.getInfo()
        if info.primal_solution_status != int(self._highspy.SolutionStatus.kSolutionStatusFeasible):
            return LinearSolution(status)
        x = np.array(self._engine.getSolution().col_value, dtype=np.float64)
        return LinearSolution(status, x, float(info.objective_function_value))

    def _do(self, ended: Any, what: str) -> None:
        if ended == self._highspy.HighsStatus.kError:
            raise SolverError(f"HiGHS refuses the {what} of a linear program")


def _engine(highspy: Any) -> Any:
    """An empty engine with its options set."""
    kept: list[Any] = getattr(_spare, "engines", [])
    if kept:
        return kept.pop()
    engine = highspy.Highs()
    for name, value in {"output_flag": False, "presolve": "off"}.items():
        engine.setOptionValue(name, value)
    return engine


def _keep(engine: Any) -> None:
    """Empty an engine that is no longer used, and keep it if there are few."""
    kept: list[Any] = _spare.__dict__.setdefault("engines", [])
    if len(kept) < _SPARE_ENGINES:
        engine.clearModel()
        kept.append(engine)


def _filled(value: ArrayLike, n: int) -> FloatArray:
    return np.ascontiguousarray(np.broadcast_to(np.asarray(value, dtype=np.float64), (n,)))


def _bounds(lower: ArrayLike, upper: ArrayLike, n: int) -> tuple[FloatArray, FloatArray]:
    low, high = _filled(lower, n), _filled(upper, n)
    if np.any(np.isnan(low)) or np.any(np.isnan(high)) or np.any(low == np.inf) or np.any(high == -np.inf):
        raise InvalidInputError("bounds of a linear program must be numbers, and infinite in their own direction only")
    return low, high


def _numbers(which: ArrayLike, n: int, what: str) -> NDArray[np.int32]:
    numbers = np.ascontiguousarray(which, dtype=np.int32)
    if len(numbers) and not (numbers.min() >= 0 and numbers.max() < n):
        raise InvalidInputError(f"there is no such {what}: the linear program has {n}")
    return numbers


@contextmanager
def own_scheduler(highspy: Any) -> Iterator[bool]:
    """Run HiGHS in the present thread and leave no scheduler behind; whether no other run is on in it.

    HiGHS keeps a scheduler of worker threads in every thread that runs it; who leaves one behind disturbs the next.
    A run inside of another one, as from a callback of branch and bound, has to take the scheduler that is there (option
    ``threads`` 0) and to leave it.
    """
    outermost = not getattr(_inside, "running", False)
    _inside.running = True
    try:
        yield outermost
    finally:
        if outermost:
            _inside.running = False
            highspy.Highs.resetGlobalScheduler(True)
