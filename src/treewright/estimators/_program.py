"""The classifiers that are solved by mathematical programming: shared parameters and the course of a fit."""

from __future__ import annotations

import os
import sys
import warnings
from copy import copy
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import validate_data

from treewright.budget import Budget
from treewright.data import Problem, Scaling
from treewright.estimators._base import TreeClassifier
from treewright.estimators._optimize import Outcome
from treewright.exceptions import InvalidInputError
from treewright.solvers import Progress, Solver, get_solver, relative_gap
from treewright.tree import FloatArray, Tree, leaf_counts, predict_labels

__all__ = ["ProgramClassifier"]

_NOTED = ("n_features_in_", "feature_names_in_")


class ProgramClassifier(TreeClassifier):
    """Base of the classifiers that search, bound and branch; a subclass says what is optimized."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "max_depth": [Interval(Integral, 1, 12, closed="both")],
        "solver": [StrOptions({"highs", "scip", "gurobi"})],
        "time_limit": [Interval(Real, 0, None, closed="neither"), None],
        "gap": [Interval(Real, 0, 1, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "warm_start": ["boolean", Tree, TreeClassifier],
    }

    solver: str
    time_limit: float | None
    gap: float
    n_jobs: int | None
    verbose: int
    warm_start: Any
    random_state: Any

    # ------------------------------------------------------------------ before the work

    def _begin(self) -> tuple[Budget, Solver]:
        """Check parameters and solver before anything else, and start the clock."""
        budget = Budget(self.time_limit)
        self._validate_params()
        if self.n_jobs == 0:
            raise InvalidInputError("n_jobs must not be 0; use None for one thread, -1 for all cores")
        return budget, get_solver(self.solver)

    def _check_fit_rows(self, X: ArrayLike, y: ArrayLike | None) -> FloatArray:
        """Validate the rows of a fit and note their number and names of features, for :meth:`_finish` to set."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        # scikit-learn sets what it notes at once; a fit that fails later must leave the old fit whole
        other = copy(self)
        rows = np.asarray(validate_data(other, X, dtype=np.float64, ensure_min_samples=2))
        self._noted = {name: getattr(other, name) for name in _NOTED if hasattr(other, name)}
        return rows

    @property
    def _threads(self) -> int:
        if self.n_jobs is None:
            return 1
        return self.n_jobs if self.n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + self.n_jobs)

    def _seed(self) -> int:
        """Draw one number from ``random_state`` for everything random in the fit."""
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _given_starts(self, n_features: int, scaling: Scaling) -> list[Tree]:
        """Trees that ``warm_start`` names, in the units of the model."""
        given = self.warm_start
        if isinstance(given, TreeClassifier):
            if not hasattr(given, "tree_"):
                raise NotFittedError(
                    f"warm_start is a {type(given).__name__} that is not fitted (scikit-learn's clone drops fits); "
                    "pass its tree_ instead"
                )
            given = given.tree_
        elif given is True:
            given = getattr(self, "tree_", None)
        if not isinstance(given, Tree):
            return []
        if given.n_features != n_features:
            raise InvalidInputError(f"the warm-start tree has {given.n_features} features, X has {n_features}")
        return [scaling.apply_tree(given)]

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

    def _finish(self, problem: Problem, outcome: Outcome, scaling: Scaling, budget: Budget) -> None:
        """Set the fitted attributes; the tree is turned back to the units of the data."""
        tree = scaling.invert_tree(outcome.tree)
        counts = leaf_counts(tree, problem.X, problem.y, problem.weight, problem.n_classes)
        assert outcome.tree.labels is not None
        # Where labelled rows contradict a leaf's class, as totals can force, the leaf is sure of its class.
        counts[counts.argmax(axis=1) != outcome.tree.labels] = 0.0
        for name in _NOTED:
            self.__dict__.pop(name, None)
        self.__dict__.update(self.__dict__.pop("_noted"))
        self.tree_ = tree.with_leaves(counts, outcome.tree.labels)
        self.classes_ = problem.classes
        self.objective_, self.bound_ = float(outcome.objective), float(outcome.bound)
        self.gap_ = relative_gap(self.objective_, self.bound_)
        self.status_ = str(outcome.status)
        self.trace_ = outcome.trace
        reason = outcome.reason
        differing = self._rows_routed_otherwise(problem, outcome.tree, scaling)
        if differing:
            self.status_, reason = "local", "objective and bound are those of the tree on scaled features"
            warnings.warn(
                f"{differing} training rows are classified otherwise in the original units than in the scaled ones, "
                "for which objective_ and bound_ hold: a feature varies too little for its size (1e15 + 0.1, say). "
                "Subtract a constant from such features.",
                UserWarning,
                stacklevel=3,
            )
        self.solve_time_ = budget.elapsed
        if self.status_ != "optimal":
            warnings.warn(
                f"{type(self).__name__} ended with status {self.status_!r} after {self.solve_time_:.1f} s: "
                f"the tree has objective {self.objective_:.6g}, no tree is below {self.bound_:.6g}."
                + (f" The reason: {reason}." if reason else "")
                + (" A longer time_limit may close the gap." if self.status_ == "time_limit" else ""),
                ConvergenceWarning,
                stacklevel=3,
            )

    def _rows_routed_otherwise(self, problem: Problem, scaled_tree: Tree, scaling: Scaling) -> int:
        """Training rows that the tree in the units of the data classifies otherwise than the scaled one."""
        before = predict_labels(scaled_tree, scaling.apply(problem.X))
        return int(np.count_nonzero(before != predict_labels(self.tree_, problem.X)))
