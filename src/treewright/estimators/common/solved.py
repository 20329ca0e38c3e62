"""Shared parameters and the course of a fit of everything that is solved by mathematical programming."""

from __future__ import annotations

import sys
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from treewright.budget import Budget
from treewright.estimators.common.timed import TimedModel
from treewright.estimators.common.tree_model import TreeClassifier
from treewright.solvers import Progress, get_solver, relative_gap
from treewright.training.optimize import Solving
from treewright.tree import Tree

__all__ = ["SolvedModel", "SolvedTreeClassifier"]


class SolvedModel(TimedModel):
    """Mixin of the estimators that search, bound and branch."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **TimedModel._parameter_constraints,
        "solver": [StrOptions({"highs", "scip", "gurobi"})],
        "gap": [Interval(Real, 0, 1, closed="left")],
    }

    solver: str
    gap: float
    _bounded: ClassVar[bool] = True

    def _begin(self) -> tuple[Budget, Solving]:
        """Check parameters and solver before anything else, and start the clock."""
        budget, solver = self._start_clock(), get_solver(self.solver)
        return budget, Solving(solver, self.gap, self._threads, self._seed(), self._progress_printer())

    def _progress_printer(self) -> Callable[[Progress], None] | None:
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


class SolvedTreeClassifier(SolvedModel, TreeClassifier):
    """Base of the classifiers that search, bound and branch for a tree; a subclass says what is optimized."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SolvedModel._parameter_constraints,
        "max_depth": [Interval(Integral, 1, 12, closed="both")],
        "warm_start": ["boolean", Tree, TreeClassifier],
    }
