"""Shared parameters and the course of a fit of everything that is solved by mathematical programming."""

from __future__ import annotations

import sys
import warnings
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from treewright.budget import Budget
from treewright.estimators._optimize import Outcome
from treewright.estimators._timed import TimedModel
from treewright.solvers import Progress, Solver, get_solver, relative_gap

__all__ = ["SolvedModel"]


class SolvedModel(TimedModel):
    """Mixin of the estimators that search, bound and branch."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **TimedModel._parameter_constraints,
        "solver": [StrOptions({"highs", "scip", "gurobi"})],
        "gap": [Interval(Real, 0, 1, closed="left")],
    }

    solver: str
    gap: float
    objective_: float
    bound_: float
    status_: str
    solve_time_: float
    _gap_asked: float
    _solved_noun: ClassVar[str] = "tree"
    """What the model is about, in messages."""

    # ------------------------------------------------------------------ before the work

    def _begin(self) -> tuple[Budget, Solver]:
        """Check parameters and solver before anything else, and start the clock."""
        return self._start_clock(), get_solver(self.solver)

    def _progress_printer(self, unit: float = 1.0) -> Any:
        """Lines on standard error while fitting, if ``verbose``; `unit` is what an objective of 1 is to the user."""
        if not self.verbose:
            return None

        def line(event: Progress) -> None:
            print(
                f"{event.seconds:8.1f} s  objective {unit * event.objective:.6g}  bound {unit * event.bound:.6g}  "
                f"gap {relative_gap(event.objective, event.bound):.2%}  nodes {event.nodes}",
                file=sys.stderr,
            )

        return line

    # ------------------------------------------------------------------ after the work

    def _set_fitted(self, outcome: Outcome[Any], classes: np.ndarray, budget: Budget, fitted: dict[str, Any]) -> None:
        """Stop the clock and set what every solved model says of its fit, and `fitted`; nothing may fail after."""
        objective, bound = float(outcome.objective), float(outcome.bound)
        course = {
            "classes_": classes,
            "objective_": objective,
            "bound_": bound,
            "gap_": relative_gap(objective, bound),
            "status_": str(outcome.status),
            "trace_": outcome.trace,
            "solve_time_": budget.elapsed,
            "_gap_asked": float(self.gap),  # what "optimal" means, whatever the parameter is set to later
        }
        self._publish(course | fitted)

    def _warn_unless_optimal(self, reason: str) -> None:
        """Warn unless the optimum is proven, when all is set; called by what ``fit`` calls."""
        if self.status_ != "optimal":
            warnings.warn(
                f"{type(self).__name__} ended with status {self.status_!r} after {self.solve_time_:.1f} s: "
                f"the {self._solved_noun} has objective {self.objective_:.6g}, "
                f"no {self._solved_noun} is below {self.bound_:.6g}."
                + (f" The reason: {reason}." if reason else "")
                + (" A longer time_limit may close the gap." if self.status_ == "time_limit" else ""),
                ConvergenceWarning,
                stacklevel=4,
            )
