"""HiGHS through highspy, the embedded default. Cones by outer approximation, no branching priorities."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from treewright.exceptions import SolverError
from treewright.solvers.course import Solver
from treewright.solvers.linear import own_scheduler
from treewright.solvers.outer import run_with_cones
from treewright.solvers.program import Program
from treewright.solvers.registry import CAPABILITIES, import_package
from treewright.solvers.session import ABSOLUTE_GAP, Outcome, Session
from treewright.solvers.vocabulary import Status

__all__ = ["HighsSolver"]

_SEEDS = 2**31 - 1


class HighsSolver(Solver):
    """HiGHS, as a :class:`treewright.solvers.course.Solver`."""

    name = "highs"
    capabilities = CAPABILITIES["highs"]

    def run(self, session: Session) -> Outcome:
        """Solve ``session.program`` in the present thread."""
        return run_with_cones(session, self._run) if session.program.cones else self._run(session)

    def _run(self, session: Session) -> Outcome:
        """Solve a program without cones."""
        highspy = import_package(self.name)
        highs = highspy.Highs()
        # The scheduler and its workers belong to this thread, which ends now: wait for them, leave none.
        with own_scheduler(highspy):
            _set_options(highspy, highs, session)
            _pass_program(highspy, highs, session.program)
            if session.program.n_integers and session.start is not None:
                columns = np.arange(session.program.n_columns, dtype=np.int32)
                highs.setSolution(len(columns), columns, session.start)
            _subscribe(highs, session)
            # last of all, so that the time spent above is not given away again
            highs.setOptionValue("time_limit", session.remaining())
            ended = highs.run()
            return _outcome(highspy, highs, session, ended)


def _set_options(highspy: Any, highs: Any, session: Session) -> None:
    options = {
        "output_flag": False,
        "threads": session.threads,
        "random_seed": session.seed % _SEEDS,
        "mip_rel_gap": session.gap,
        "mip_abs_gap": ABSOLUTE_GAP,
        "mip_feasibility_tolerance": session.tolerance,
    }
    for name, value in options.items():
        if highs.setOptionValue(name, value) == highspy.HighsStatus.kError:
            raise SolverError(f"HiGHS refuses the option {name}={value!r}")


def _pass_program(highspy: Any, highs: Any, program: Program) -> None:
    """Hand the arrays over as they are: rows in CSR, no loop in Python."""
    matrix = program.matrix
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = program.n_columns, program.n_rows
    lp.offset_ = program.offset
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = program.cost, program.lower, program.upper
    lp.row_lower_, lp.row_upper_ = program.row_lower, program.row_upper
    entries = lp.a_matrix_
    entries.format_ = highspy.MatrixFormat.kRowwise
    entries.num_col_, entries.num_row_ = program.n_columns, program.n_rows
    entries.start_, entries.index_, entries.value_ = matrix.indptr, matrix.indices, matrix.data
    if highs.passModel(lp) == highspy.HighsStatus.kError:
        raise SolverError(f"HiGHS refuses the program ({program.summary()})")
    integers = np.flatnonzero(program.integer).astype(np.int32)
    if len(integers):
        kind = np.full(len(integers), int(highspy.HighsVarType.kInteger), dtype=np.uint8)
        highs.changeColsIntegrality(len(integers), integers, kind)


def _subscribe(highs: Any, session: Session) -> None:
    """Connect HiGHS's callbacks with the session."""

    def in_mip(event: Any) -> None:
        data = event.data_out
        session.report(data.mip_primal_bound, data.mip_dual_bound, int(data.mip_node_count))

    def in_lp(event: Any) -> None:
        session.report()

    def improved(event: Any) -> None:
        # at this event HiGHS has the new solution's objective here, but not yet in mip_primal_bound
        data = event.data_out
        x = np.array(data.mip_solution, dtype=np.float64)
        session.report(data.objective_function_value, data.mip_dual_bound, int(data.mip_node_count), x)

    def ask(event: Any) -> None:
        x = session.suggestion()
        if x is not None:
            event.data_in.setSolution(x)

    def interrupting(action: Callable[..., None]) -> Callable[..., None]:
        guarded = session.guard(action)

        def callback(event: Any) -> None:
            guarded(event)
            if session.stopping:
                event.interrupt()

        return callback

    if not session.program.n_integers:
        highs.cbSimplexInterrupt.subscribe(interrupting(in_lp))
        highs.cbIpmInterrupt.subscribe(interrupting(in_lp))
        return
    highs.cbMipInterrupt.subscribe(interrupting(in_mip))
    highs.cbMipImprovingSolution.subscribe(session.guard(improved))
    if session.suggest is not None:
        highs.cbMipUserSolution.subscribe(session.guard(ask))


def _outcome(highspy: Any, highs: Any, session: Session, ended: Any) -> Outcome:
    """Translate how HiGHS ended."""
    kinds = highspy.HighsModelStatus
    known: dict[Any, Status | None] = {
        kinds.kOptimal: Status.OPTIMAL,
        kinds.kModelEmpty: Status.OPTIMAL,
        kinds.kInfeasible: Status.INFEASIBLE,
        kinds.kUnbounded: Status.UNBOUNDED,
        kinds.kUnboundedOrInfeasible: None,
        kinds.kTimeLimit: Status.TIME_LIMIT,
        kinds.kInterrupt: Status.INTERRUPTED,
    }
    kind = highs.getModelStatus()
    info = highs.getInfo()
    x = None
    if info.primal_solution_status == int(highspy.SolutionStatus.kSolutionStatusFeasible):
        x = np.array(highs.getSolution().col_value, dtype=np.float64)
    status = known.get(kind, Status.UNPROVEN)
    if status is Status.UNPROVEN and x is None and session.incumbent is None:
        raise SolverError(f"HiGHS ended with {highs.modelStatusToString(kind)!r} ({ended}) and no solution")
    if session.program.n_integers:
        bound, nodes = info.mip_dual_bound, max(0, int(info.mip_node_count))
    else:
        bound = info.objective_function_value if status is Status.OPTIMAL else -math.inf
        nodes = 0
    return Outcome(status, x, bound, nodes, f"HiGHS {highs.version()}")
