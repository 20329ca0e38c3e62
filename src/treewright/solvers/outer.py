r"""Cones for solvers that know none: an outer approximation, refined until it is exact where it matters.

A cone :math:`\lVert x_K \rVert \le x_h` is the same as :math:`x_j^2 \le s_j x_h` for each :math:`j \in K` and
:math:`\sum_j s_j \le x_h`. For every :math:`\rho`, as :math:`(x_j - \rho x_h)^2 \ge 0`,

.. math:: s_j \ge 2 \rho x_j - \rho^2 x_h ,

and that is exact at :math:`x_j = \rho x_h`. A few tangents a member approximate the cone in every direction, while
tangents of the cone itself would have to be as many as there are directions (Vielma, Dunning, Huchette, Lubin 2017).

The program with tangents instead of cones is a relaxation: its bounds hold, its points need not. Whatever it finds has
its integers fixed and the rest solved with the true cones (:func:`treewright.solvers.conic.fixed_conic`); that is what
is returned and what the gap is about. While there is a gap, tangents are added at both points, and the relaxation is
solved again, from the best point so far.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import sparse

from treewright.core.arrays import FloatArray
from treewright.core.progress import relative_gap
from treewright.solvers.conic import fixed_conic, relaxed_program, solve_convex
from treewright.solvers.program import Program
from treewright.solvers.program_check import check
from treewright.solvers.session import ABSOLUTE_GAP, FEASIBILITY, Outcome, Session, program_objective, tidied_point
from treewright.solvers.vocabulary import Status

__all__ = ["Tangents", "run_with_cones"]

_FIRST = np.array([0.1, 0.2, 0.35, 0.5, 0.7, 1.0])
"""Slopes of the first tangents, of either sign."""

_SAME = 1e-7
"""Tangents whose slopes differ by less are the same."""

_ROUGH_GAP = 1e-2
"""Gap of the first round, which is there to find out where tangents are needed."""

_POLISH_SHARE = 0.25
"""Share of the time that finishing points with the true cones may take within a round."""


class Tangents:
    """A program whose cones are replaced by tangents.

    Parameters
    ----------
    program : Program
        The program with cones. Its columns come first; those of s follow, cone by cone.

    Examples
    --------
    >>> from treewright.solvers.program_builder import ProgramBuilder
    >>> builder = ProgramBuilder()
    >>> x, r = builder.add_variables("x", 2, lower=-9), builder.add_variables("r", 1, upper=5)
    >>> builder.add_cone(int(r[0]), x)
    >>> tangents = Tangents(builder.build())
    >>> point = tangents.lifted(np.array([3.0, 4.0, 5.0]))
    >>> point.tolist(), check(tangents.linear(), point).feasible()
    ([3.0, 4.0, 5.0, 1.8, 3.2], True)
    >>> tangents.add(np.array([3.0, 4.0, 5.0])), tangents.add(np.array([6.0, 8.0, 10.0]))
    (2, 0)
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.head = np.concatenate([np.full(len(c.members), c.head) for c in program.cones]).astype(np.int64)
        self.member = np.concatenate([np.array(c.members, dtype=np.int64) for c in program.cones]).astype(np.int64)
        self.cone = np.repeat(np.arange(len(program.cones)), [len(c.members) for c in program.cones])
        slopes = np.concatenate([-_FIRST, _FIRST])
        every = np.arange(len(self.member))
        self._rows = [(np.tile(every, len(slopes)), np.repeat(slopes, len(every)))]
        self._known = {(int(j), _key(rho)) for j in every for rho in slopes}

    @property
    def n_columns(self) -> int:
        """Number of columns of the relaxation."""
        return self.program.n_columns + len(self.member)

    def add(self, x: FloatArray) -> int:
        """Add the tangents at a point, and return how many of them are new."""
        heads = x[self.head]
        used = np.flatnonzero(heads > 1e-9)
        rho = np.clip(x[self.member[used]] / heads[used], -1.0, 1.0)
        fresh = [k for k, (j, r) in enumerate(zip(used.tolist(), rho.tolist(), strict=True)) if self._new(j, r)]
        self._rows.append((used[fresh], rho[fresh]))
        return len(fresh)

    def _new(self, member: int, rho: float) -> bool:
        key = (member, _key(rho))
        if _key(rho) == 0 or key in self._known:
            return False
        self._known.add(key)
        return True

    def lifted(self, x: FloatArray) -> FloatArray:
        """A point of the program as one of the relaxation."""
        heads, values = x[self.head], x[self.member]
        s = np.divide(values**2, heads, out=np.zeros(len(heads)), where=heads > 1e-12)
        return np.concatenate([x, s])

    def linear(self) -> Program:
        """The relaxation as it is now."""
        program, n = self.program, self.program.n_columns
        member = np.concatenate([rows[0] for rows in self._rows])
        rho = np.concatenate([rows[1] for rows in self._rows])
        row = np.arange(len(member))
        tangent = sparse.csr_array(
            (
                np.concatenate([np.ones(len(row)), -2 * rho, rho**2]),
                (np.tile(row, 3), np.concatenate([n + member, self.member[member], self.head[member]])),
            ),
            shape=(len(row), self.n_columns),
        )
        heads = np.array([c.head for c in program.cones], dtype=np.int64)
        each = np.arange(len(self.member))
        total = sparse.csr_array(
            (
                np.concatenate([np.ones(len(each)), -np.ones(len(heads))]),
                (np.concatenate([self.cone, np.arange(len(heads))]), np.concatenate([n + each, heads])),
            ),
            shape=(len(heads), self.n_columns),
        )
        wider = sparse.csr_array(
            (program.matrix.data, program.matrix.indices, program.matrix.indptr),
            shape=(program.n_rows, self.n_columns),
        )
        added = len(self.member)
        lower = program.lower.copy()
        lower[heads] = np.maximum(lower[heads], 0.0)
        return replace(
            program,
            matrix=sparse.csr_array(sparse.vstack([wider, total, tangent])),
            row_lower=np.concatenate([program.row_lower, np.full(len(heads), -np.inf), np.zeros(len(row))]),
            row_upper=np.concatenate([program.row_upper, np.zeros(len(heads)), np.full(len(row), np.inf)]),
            lower=np.concatenate([lower, np.zeros(added)]),
            upper=np.concatenate([program.upper, np.full(added, np.inf)]),
            cost=np.concatenate([program.cost, np.zeros(added)]),
            integer=np.concatenate([program.integer, np.zeros(added, dtype=bool)]),
            priority=np.concatenate([program.priority, np.zeros(added, dtype=np.int64)]),
            cones=(),
            variables={},
            rows={},
        )


def _key(rho: float) -> int:
    return round(rho / _SAME)


def run_with_cones(session: Session, run: Callable[[Session], Outcome]) -> Outcome:
    """Solve ``session.program``, which has cones, with a solver that knows none.

    Parameters
    ----------
    session : Session
        State of the solve; it is told bounds of the relaxations and points of the program itself.
    run : callable
        Solves a session whose program has no cones.
    """
    if not session.program.n_integers:
        return _convex(session)
    return _Refinement(session, run, Tangents(session.program)).run()


def _convex(session: Session) -> Outcome:
    """A program without integers is convex, and clarabel's affair alone."""
    found = solve_convex(session.program, session.remaining())
    bound = found.objective if found.status is Status.OPTIMAL else -math.inf
    status: Status | None = found.status
    if found.status is Status.UNBOUNDED:
        status = None  # a ray proves nothing without a point
    elif found.x is None and found.status is Status.UNPROVEN:
        status = Status.TIME_LIMIT if session.remaining() <= 0 else Status.UNPROVEN
    return Outcome(status, found.x, bound, 0, "clarabel")


class _Round(Session):
    """The session of one relaxation: its bounds and points go to the refinement, its time and stop flag are shared."""

    owner: _Refinement

    @classmethod
    def within(cls, owner: _Refinement, program: Program, start: FloatArray | None, gap: float) -> _Round:
        """A session for `program` that shares what matters with the session of the owner."""
        outer = owner.session
        made = cls(program, start, outer.time_limit, gap, outer.threads, outer.seed, suggest=owner.suggestion)
        made.owner, made.began, made.tolerance, made._stopping = owner, outer.began, outer.tolerance, outer._stopping
        return made

    def report(
        self,
        objective: float = math.inf,
        bound: float = -math.inf,
        nodes: int = 0,
        found: FloatArray | None = None,
    ) -> None:
        """Hand a bound on, and finish a point with the true cones."""
        self.owner.told(bound, nodes, found)


@dataclass
class _Refinement:
    """Rounds of relaxations, each with more tangents."""

    session: Session
    solve: Callable[[Session], Outcome]
    tangents: Tangents
    best: FloatArray | None = None
    objective: float = math.inf
    bound: float = -math.inf
    nodes: int = 0
    nodes_before: int = 0
    polishing: float = 0.0
    handed: float = math.inf
    tried: set[bytes] = field(default_factory=set)

    def run(self) -> Outcome:
        """Refine until the gap is closed, the time is over or nothing can be refined."""
        session = self.session
        if session.incumbent is not None:
            self._take(session.incumbent)
            self.polish(session.incumbent)
        self._first_tangents()
        gap, version = max(_ROUGH_GAP, session.gap / 2), ""
        while True:
            self.nodes_before = self.nodes
            inner = _Round.within(self, self.tangents.linear(), self._start(), gap)
            outcome = self.solve(inner)
            version = outcome.version
            session.failure = session.failure or inner.failure
            self.told(outcome.bound, outcome.nodes, None)
            if outcome.status is None or outcome.status in (Status.INFEASIBLE, Status.UNBOUNDED):
                return Outcome(outcome.status, None, outcome.bound, self.nodes, version)
            fresh = 0
            if outcome.x is not None:
                x = outcome.x[: session.program.n_columns]
                self._accept(x)
                self.polish(x, always=True)
                fresh += self.tangents.add(x)
            if self.best is not None:
                fresh += self.tangents.add(self.best)
            if self.closed:
                return self._outcome(Status.OPTIMAL, version)
            if outcome.status in (Status.TIME_LIMIT, Status.INTERRUPTED):
                return self._outcome(outcome.status, version)
            if session.stopping or session.remaining() <= 0:
                return self._outcome(Status.INTERRUPTED if session.stopping else Status.TIME_LIMIT, version)
            finest = session.gap / 2
            if not fresh and gap <= finest:
                return self._outcome(Status.UNPROVEN, version)
            gap = finest

    @property
    def closed(self) -> bool:
        """Whether the bound proves the best point."""
        difference = self.objective - self.bound
        return relative_gap(self.objective, self.bound) <= self.session.gap or difference <= ABSOLUTE_GAP

    def told(self, bound: float, nodes: int, found: FloatArray | None) -> None:
        """Hear of a bound, nodes and a point of the present relaxation."""
        self.bound = max(self.bound, bound) if math.isfinite(bound) else self.bound
        self.nodes = max(self.nodes, self.nodes_before + nodes)
        if found is not None:
            self.polish(found[: self.session.program.n_columns])
        self.session.report(self.objective, self.bound, self.nodes, self.best)

    def suggestion(self) -> FloatArray | None:
        """A point of the program that the relaxation may not know yet."""
        self.session.suggestion()
        known = self.session.incumbent
        if known is not None and program_objective(self.session.program, known) < self.objective:
            self._take(known)
        if self.best is None or self.objective >= self.handed:
            return None
        self.handed = self.objective
        return self.tangents.lifted(self.best)

    def polish(self, x: FloatArray, always: bool = False) -> None:
        """Finish a point of the relaxation with the true cones."""
        program = self.session.program
        key = np.round(x[program.integer]).tobytes()
        if key in self.tried or (not always and self.polishing > _POLISH_SHARE * self.session.elapsed()):
            return
        self.tried.add(key)
        began = time.perf_counter()
        # also at the end of the time: without this step there might be no point at all
        found = fixed_conic(program, x, max(1.0, 0.5 * self.session.remaining()))
        self.polishing += time.perf_counter() - began
        if found is not None:
            self._take(found)

    def _accept(self, x: FloatArray) -> None:
        """Take a point of the relaxation that is one of the program as it is."""
        x = tidied_point(self.session.program, x)
        if check(self.session.program, x).feasible(FEASIBILITY):
            self._take(x)

    def _take(self, x: FloatArray) -> None:
        objective = program_objective(self.session.program, x)
        if objective < self.objective:
            self.best, self.objective = x, objective
            self.session.report(objective, found=x)

    def _first_tangents(self) -> None:
        """Tangents at the best point known and at the optimum without integrality."""
        if self.best is not None:
            self.tangents.add(self.best)
        root = solve_convex(relaxed_program(self.session.program), 0.1 * min(self.session.remaining(), 100.0))
        if root.x is not None:
            self.tangents.add(root.x)

    def _start(self) -> FloatArray | None:
        return None if self.best is None else self.tangents.lifted(self.best)

    def _outcome(self, status: Status, version: str) -> Outcome:
        return Outcome(status, self.best, self.bound, self.nodes, version)
