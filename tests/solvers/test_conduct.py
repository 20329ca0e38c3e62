"""What is done about solvers that live on their tolerances, shown with one that always does."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from treewright.exceptions import SolverError
from treewright.solvers import Status
from treewright.solvers.course import STRICT, Solver
from treewright.solvers.highs import HighsSolver
from treewright.solvers.program import Program
from treewright.solvers.program_builder import ProgramBuilder
from treewright.solvers.program_check import check
from treewright.solvers.registry import CAPABILITIES
from treewright.solvers.session import Outcome, Session

BIG = 1e7


def switched(least: float = 0.0) -> Program:
    """Max y under y <= BIG u, at 4 a switch: the optimum is -2 with u = 1."""
    builder = ProgramBuilder()
    y = builder.add_variables("y", 1, lower=least, upper=6.0, cost=-1.0)
    u = builder.add_variables("u", 1, upper=1, integer=True, cost=4.0)
    builder.add_rows("switch", [(y, 1.0), (u, -BIG)], upper=0.0)
    return builder.build()


class Cheat(Solver):
    """Answers MIPs with u = 6e-7 until told to be strict; linear programs are solved by HiGHS."""

    name = "highs"
    capabilities = CAPABILITIES["highs"]

    def __init__(self, relents: bool) -> None:
        self.relents = relents
        self.tolerances: list[float] = []

    def run(self, session: Session) -> Outcome:
        if not session.program.n_integers:
            return HighsSolver().run(session)
        self.tolerances.append(session.tolerance)
        if self.relents and session.tolerance == STRICT:
            return Outcome(Status.OPTIMAL, np.array([6.0, 1.0]), -2.0)
        session.report(-6.0, -6.0)
        return Outcome(Status.OPTIMAL, np.array([6.0, 6e-7]), -6.0)


def test_second_attempt_is_strict() -> None:
    cheat = Cheat(relents=True)
    result = cheat.solve(switched())
    assert cheat.tolerances == [1e-6, STRICT]
    assert result.status is Status.OPTIMAL
    assert result.objective == result.bound == -2.0
    assert all(event.objective >= -2.0 for event in result.trace)


def test_no_proof_is_claimed_without_one() -> None:
    result = Cheat(relents=False).solve(switched())
    assert result.status is Status.UNPROVEN
    np.testing.assert_array_equal(result.x, [0.0, 0.0])
    assert check(switched(), result.x).feasible()
    assert (result.objective, result.bound) == (0.0, -6.0)


def test_no_point_is_made_up() -> None:
    with pytest.raises(SolverError, match="big-M"):
        Cheat(relents=False).solve(switched(least=1.0))


def test_a_start_survives() -> None:
    result = Cheat(relents=False).solve(switched(least=1.0), start=np.array([5.0, 1.0]))
    assert result.status is Status.UNPROVEN
    assert result.objective == -1.0


def test_a_process_waits_for_work_that_was_given_up():
    """Native code that comes back to an interpreter that has ended aborts the process."""
    script = """
import time
from treewright.solvers import course as conduct
conduct.EXIT_SECONDS = 0.05, 30.0
try:
    conduct.run_in_thread(lambda: (time.sleep(0.5), print("came back")), overdue=lambda: True)
except conduct.AbandonedError:
    print("given up")
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout.split("\n") == ["given up", "came back", ""]
    assert "waiting for the solver" in ended.stderr
