"""Shared parameters and the course of a fit of everything that is solved by mathematical programming."""

from __future__ import annotations

import sys
from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

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

    def _solving(self) -> Solving:
        """The solver, which is refused if it is not there, and what it is asked for."""
        told = _print_progress if self.verbose else None
        return Solving(get_solver(self.solver), self.gap, self._threads, self._seed(), told)


class SolvedTreeClassifier(SolvedModel, TreeClassifier):
    """Base of the classifiers that search, bound and branch for a tree; a subclass says what is optimized."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SolvedModel._parameter_constraints,
        "max_depth": [Interval(Integral, 1, 12, closed="both")],
        "warm_start": ["boolean", Tree, TreeClassifier],
    }


def _print_progress(event: Progress) -> None:
    """A line on standard error."""
    print(
        f"{event.seconds:8.1f} s  objective {event.objective:.6g}  bound {event.bound:.6g}  "
        f"gap {relative_gap(event.objective, event.bound):.2%}  nodes {event.nodes}",
        file=sys.stderr,
    )
