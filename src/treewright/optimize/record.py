"""One record of a fit: how it ended and why, how long it took, what it reached and by which way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np

from treewright.core.arrays import FloatArray
from treewright.core.budget import Budget
from treewright.core.progress import relative_gap

__all__ = ["PROVEN", "FitRecord", "FitStatus", "cut_short", "named_trace"]

PROVEN = "objective and bound meet"
"""The reason of an optimum."""

LOST_IN_ROUNDING = (
    "objective and bound meet only to within a billionth of the weight of a row, which is much of so small an "
    "objective. If some rows outweigh others a million times or more, errors of the light ones are lost in "
    "rounding: let weights differ less"
)

_IN_UNITS = {"objective", "bound", "loss"}
"""Columns of a trace that are in the units of the objective."""

_MEETING = 1e-6
"""Relative gap up to which objective and bound meet in any units, if no gap at all is asked for."""

_OUTWEIGHED, _SOLVER_ROUNDING = 1e5, 1e-8
"""How many times the lightest point the heaviest weighs for solvers to lose sight of the former; share of the latter
up to which it then takes solutions for equal. Solvers stop at a billionth of their own units."""


class FitStatus(StrEnum):
    """How a fit ended.

    ``LOCAL`` is the normal end of a heuristic, which claims no proof. ``UNPROVEN`` is the end of a model that is solved
    for an optimum and could not prove it for another reason than time.
    """

    OPTIMAL = "optimal"
    TIME_LIMIT = "time_limit"
    INTERRUPTED = "interrupted"
    LOCAL = "local"
    UNPROVEN = "unproven"


@dataclass(frozen=True, eq=False)
class FitRecord:
    """What a fit tells of itself.

    Attributes
    ----------
    status : str
        How it ended, a :class:`FitStatus`.
    reason : str
        Why it ended so, in words.
    seconds : float
        Time of the whole fit.
    objective : float or None
        Objective of what was found; None where the method has none.
    bound : float or None
        No solution is below this; None where nothing is bounded.
    trace : structured ndarray
        The course of the fit, a row a step, in named columns: "seconds" and what the method measures ("objective" and
        "bound", "loss", "residual", "leaves", ...).
    gap_asked : float or None
        The relative gap that counts as optimal, where there are bounds.
    note : str
        What else the user is to be warned of.
    seed : int or None
        ``random_state`` of the fit or, if that is no number, the one that was drawn from it.
    by_clock : bool
        Whether the time limit ended or left out something, so that the same fit may end otherwise.

    Examples
    --------
    >>> trace = named_trace([(0.1, 3.0, 0.0), (0.5, 2.0, 1.5)], "seconds", "objective", "bound")
    >>> record = FitRecord(FitStatus.TIME_LIMIT, "the time was over", 0.6, 2.0, 1.5, trace)
    >>> record.gap, record.trace["objective"].tolist()
    (0.25, [3.0, 2.0])
    """

    status: str
    reason: str
    seconds: float
    objective: float | None
    bound: float | None
    trace: np.ndarray[Any, Any]
    gap_asked: float | None = None
    note: str = ""
    seed: int | None = None
    by_clock: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "status", str(self.status))  # plain text, which any file can hold

    @property
    def gap(self) -> float | None:
        """Relative gap between objective and bound; None where there is no bound."""
        if self.objective is None or self.bound is None:
            return None
        return relative_gap(self.objective, self.bound)

    @property
    def as_planned(self) -> bool:
        """Whether the fit came to the end that it was made for."""
        return self.status in (FitStatus.OPTIMAL, FitStatus.LOCAL)

    @property
    def repeatable(self) -> bool:
        """Whether a fit of the same data, parameters and seed ends with the same."""
        return not self.by_clock and self.status not in (FitStatus.TIME_LIMIT, FitStatus.INTERRUPTED)

    def closed(self, budget: Budget) -> FitRecord:
        """The record with the time that has passed by now, and whether that ended something."""
        return replace(self, seconds=budget.elapsed, by_clock=budget.late)

    def with_objective(self, objective: float) -> FitRecord:
        """The record of a fit that returns another solution than it ended with, whose objective is not below."""
        bound = None if self.bound is None else min(self.bound, objective)
        return replace(self, objective=objective, bound=bound)

    def times(self, unit: float) -> FitRecord:
        """The record in other units: the objective and what adds up to it are multiplied; see `judged`."""
        trace = self.trace.copy()
        for name in _IN_UNITS & set(trace.dtype.names or ()):
            trace[name] *= unit
        objective, bound = (None if value is None else value * unit for value in (self.objective, self.bound))
        return replace(self.judged(unit), objective=objective, bound=bound, trace=trace)

    def judged(self, unit: float) -> FitRecord:
        """The record, without its proof where objective and bound do not meet in other units, of which one is `unit`.

        What is next to nothing in the one may be much in the other, where a few rows outweigh all others by far: then
        the proof, which is one to within rounding, does not hold.
        """
        if self.status != FitStatus.OPTIMAL or self.objective is None or self.bound is None or self.gap_asked is None:
            return self
        gap = relative_gap(self.objective * unit, self.bound * unit)
        return self if gap <= max(self.gap_asked, _MEETING) else self.unproven(LOST_IN_ROUNDING)

    def outweighed(self, weight: FloatArray, total: float) -> FitRecord:
        """The record of a solver that had points of some weights, of which an objective of 1 is `total`; see `judged`.

        Where some outweigh others by far, the bound is lowered by what the tolerances of a solver may hide.

        Examples
        --------
        >>> record = FitRecord(FitStatus.OPTIMAL, PROVEN, 0.1, 14.0, 14.0, named_trace([]), 1e-4)
        >>> record.outweighed(np.array([1.0, 1e4]), 1.0).bound, record.outweighed(np.array([1.0, 1e9]), 1.0).bound
        (14.0, 4.0)
        """
        lightest, heaviest, bound = float(weight[weight > 0].min()), float(weight.max()), self.bound
        if bound is not None and heaviest > _OUTWEIGHED * lightest:
            bound = max(min(bound, 0.0), bound - _SOLVER_ROUNDING * heaviest / total)
        return replace(self, bound=bound).judged(total / lightest)

    def unproven(self, reason: str) -> FitRecord:
        """The record of a fit whose proof does not hold for what is returned."""
        return replace(self, status=FitStatus.UNPROVEN, reason=reason)


def named_trace(rows: Iterable[Sequence[float]], *columns: str) -> np.ndarray[Any, Any]:
    """The trace of a fit's record: a table of numbers with names for its columns.

    Parameters
    ----------
    rows : iterable of sequences
        Rows of numbers, one a column.
    *columns : str
        Names of the columns.

    Examples
    --------
    >>> named_trace([(0.0, 2.0), (0.1, 1.0)], "seconds", "objective")["objective"].tolist()
    [2.0, 1.0]
    """
    return np.array([tuple(row) for row in rows], dtype=[(name, np.float64) for name in columns])


def cut_short(budget: Budget, after: str = "") -> tuple[FitStatus, str]:
    """Status and reason in the record of a fit that its budget ended.

    Parameters
    ----------
    budget : Budget
        What ended it.
    after : str
        What had been done by then, in words.
    """
    done = f" after {after}" if after else ""
    if budget.interrupted:
        return FitStatus.INTERRUPTED, f"it was interrupted{done}"
    return FitStatus.TIME_LIMIT, f"the time was over{done}"
