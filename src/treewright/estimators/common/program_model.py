"""The classifiers with a single tree that is solved for by mathematical programming."""

from __future__ import annotations

import warnings
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from treewright.budget import Budget
from treewright.data import Problem, Scaling
from treewright.estimators.common.files import is_number
from treewright.estimators.common.solved import SolvedModel
from treewright.estimators.common.tree_model import TreeClassifier
from treewright.exceptions import ModelFileError
from treewright.solvers import Status, relative_gap
from treewright.training.optimize import Outcome
from treewright.tree import Tree, leaf_counts, predict_labels

__all__ = ["ProgramClassifier"]


class ProgramClassifier(SolvedModel, TreeClassifier):
    """Base of the classifiers that search, bound and branch for a tree; a subclass says what is optimized."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SolvedModel._parameter_constraints,
        "max_depth": [Interval(Integral, 1, 12, closed="both")],
        "warm_start": ["boolean", Tree, TreeClassifier],
    }

    _ends = (*TreeClassifier._ends, "optimal")

    def _given_starts(self, n_features: int, scaling: Scaling) -> list[Tree]:
        """Trees that ``warm_start`` names, in the units of the model."""
        given = self._given_tree(n_features)
        return [] if given is None else [scaling.apply_tree(given)]

    @staticmethod
    def _tree_of(problem: Problem, outcome: Outcome[Tree], scaling: Scaling) -> Tree:
        """The tree turned back to the units of the data, with the labelled rows of its leaves."""
        tree = scaling.invert_tree(outcome.solution)
        counts = leaf_counts(tree, problem.X, problem.y, problem.weight, problem.n_classes)
        assert outcome.solution.labels is not None
        # Where labelled rows contradict a leaf's class, as totals can force, the leaf is sure of its class.
        counts[counts.argmax(axis=1) != outcome.solution.labels] = 0.0
        return tree.with_leaves(counts, outcome.solution.labels)

    def _finish(
        self, problem: Problem, outcome: Outcome[Tree], scaling: Scaling, budget: Budget, fitted: dict[str, Any]
    ) -> None:
        """Set the fitted attributes, ``tree_`` in `fitted` among them, and then warn of what the user should know."""
        before = predict_labels(outcome.solution, scaling.apply(problem.X))
        differing = int(np.count_nonzero(before != predict_labels(fitted["tree_"], problem.X)))
        if differing:
            reason = "objective and bound are those of the tree on scaled features"
            outcome = replace(outcome, status=Status.LOCAL, reason=reason)
        self._set_fitted(outcome, problem.classes, budget, fitted)
        if differing:
            warnings.warn(
                f"{differing} training rows are classified otherwise in the original units than in the scaled ones, "
                "for which objective_ and bound_ hold: a feature varies too little for its size (1e15 + 0.1, say). "
                "Subtract a constant from such features.",
                UserWarning,
                stacklevel=3,
            )
        self._warn_unless_optimal(outcome.reason)

    def _fitted_state(self) -> dict[str, Any]:
        return super()._fitted_state() | {"bound": float(self.bound_), "gap": float(self._gap_asked)}

    def _restore_state(self, state: dict[str, Any]) -> None:
        if not is_number(state["bound"]):
            raise ModelFileError(f"fit.bound is {state['bound']!r}, expected a finite number")
        super()._restore_state(state)
        self.bound_ = float(state["bound"])
        if self.bound_ > self.objective_ + 1e-6 * max(1.0, abs(self.objective_)):
            raise ModelFileError(f"fit.bound is {self.bound_}, above the objective {self.objective_}")
        self.gap_ = relative_gap(self.objective_, self.bound_)
        self._gap_asked = state.get("gap", self.gap)
        if not is_number(self._gap_asked) or not 0 <= self._gap_asked < 1:
            raise ModelFileError(f"fit.gap is {self._gap_asked!r}, expected a number from 0 to 1")
        if self.status_ == "optimal" and self.gap_ > self._gap_asked:
            raise ModelFileError(
                f"fit.status is 'optimal', but objective {self.objective_} and bound {self.bound_} are farther apart "
                f"than a gap of {self._gap_asked}"
            )
