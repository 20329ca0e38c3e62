"""Shared parameters and the course of a fit of everything that is solved by mathematical programming."""

from __future__ import annotations

import os
import sys
import warnings
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from treewright.budget import Budget
from treewright.estimators._input import NOTED, fit_rows
from treewright.estimators._optimize import Outcome
from treewright.exceptions import InvalidInputError
from treewright.solvers import Progress, Solver, get_solver, relative_gap
from treewright.tree import FloatArray

__all__ = ["SolvedModel"]


class SolvedModel:
    """Mixin of the estimators that search, bound and branch."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "solver": [StrOptions({"highs", "scip", "gurobi"})],
        "time_limit": [Interval(Real, 0, None, closed="neither"), None],
        "gap": [Interval(Real, 0, 1, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    solver: str
    time_limit: float | None
    gap: float
    n_jobs: int | None
    verbose: int
    random_state: Any
    _solved_noun: ClassVar[str] = "tree"
    """What the model is about, in messages."""

    # ------------------------------------------------------------------ before the work

    def _begin(self) -> tuple[Budget, Solver]:
        """Check parameters and solver before anything else, and start the clock."""
        budget = Budget(self.time_limit)
        self._validate_params()  # type: ignore[attr-defined]
        if self.n_jobs == 0:
            raise InvalidInputError("n_jobs must not be 0; use None for one thread, -1 for all cores")
        return budget, get_solver(self.solver)

    def _check_fit_rows(self, X: ArrayLike, y: ArrayLike | None) -> FloatArray:
        """Validate the rows of a fit and note their number and names of features, for :meth:`_set_outcome` to set."""
        rows, self._noted = fit_rows(self, X, y)
        return rows

    @property
    def _threads(self) -> int:
        if self.n_jobs is None:
            return 1
        return self.n_jobs if self.n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + self.n_jobs)

    def _seed(self) -> int:
        """Draw one number from ``random_state`` for everything random in the fit."""
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _progress_printer(self) -> Any:
        """Lines on standard error while fitting, if ``verbose``."""
        if not self.verbose:
            return None

        def line(event: Progress) -> None:
            print(
                f"{event.seconds:8.1f} s  objective {event.objective:.6g}  bound {event.bound:.6g}  "
                f"gap {relative_gap(event.objective, event.bound):.2%}  nodes {event.nodes}",
                file=sys.stderr,
            )

        return line

    # ------------------------------------------------------------------ after the work

    def _set_noted(self) -> None:
        """Set number and names of features, which were noted before the work."""
        for name in NOTED:
            self.__dict__.pop(name, None)
        self.__dict__.update(self.__dict__.pop("_noted"))

    def _set_outcome(self, outcome: Outcome[Any], classes: np.ndarray) -> None:
        """Set what every solved model says of its fit."""
        self._set_noted()
        self.classes_ = classes
        self.objective_, self.bound_ = float(outcome.objective), float(outcome.bound)
        self.gap_ = relative_gap(self.objective_, self.bound_)
        self.status_ = str(outcome.status)
        self.trace_ = outcome.trace

    def _close(self, budget: Budget, reason: str) -> None:
        """Stop the clock, and warn unless the optimum is proven; called by what ``fit`` calls."""
        self.solve_time_ = budget.elapsed
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
