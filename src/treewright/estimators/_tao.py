"""What the estimators by tree alternating optimization share."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from threadpoolctl import threadpool_limits

from treewright.budget import Budget
from treewright.data import Scaling, unit_scaling, weight_unit
from treewright.estimators._base import TreeClassifier, TreeModel
from treewright.estimators._files import is_number
from treewright.estimators._input import prepared_rows
from treewright.estimators._timed import TimedModel
from treewright.exceptions import ModelFileError
from treewright.search.leaves import Leaves
from treewright.search.stretch import Stretch, improve_stretched
from treewright.search.tao import TAOResult, alternate_nodes, automatic_alpha, normal_price
from treewright.search.tao_starts import STARTS, starting_tree
from treewright.tree import FloatArray, Tree, visited

__all__ = ["TAOModel"]

_ROUNDING = 1e-3
"""Share of the objective by which single precision may change it when a tree is turned back to units of the data."""


class TAOModel(TimedModel, TreeModel):
    """What both share: parameters, the start, the course of a fit."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **TimedModel._parameter_constraints,
        "max_depth": [Interval(Integral, 1, 16, closed="both")],
        "alpha": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "splits": [StrOptions({"oblique", "axis"})],
        "init": [StrOptions({"auto", *STARTS})],
        "stretch": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "warm_start": ["boolean", Tree, TreeModel],
    }

    max_depth: int
    alpha: float | str
    splits: str
    init: str
    stretch: float
    max_iter: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _optimize(
        self,
        rows: Any,
        targets: FloatArray,
        weight: FloatArray,
        make_leaves: Callable[[Any, FloatArray, FloatArray], Leaves],
        budget: Budget,
    ) -> tuple[Tree, float]:
        """Tree in the units of the data without values, and the price of its normals; notes the course of the fit.

        Rows have positive weight; `targets` has a row for each; leaves are made of points, targets and weights.
        """
        scaling = unit_scaling(rows)
        # The search has tolerances of its own, so rows weigh about 1 to it, whatever they weigh to the user.
        unit = weight_unit(weight)
        X, targets, weight = prepared_rows(scaling.apply(rows), targets, weight / unit)
        seed = self._seed()
        alpha = automatic_alpha(float(weight.sum())) if self.alpha == "auto" else float(self.alpha) / unit
        # One thread a node: products that are shared out would be rounded otherwise with another number of threads.
        with threadpool_limits(limits=1):
            start = self._start(X, targets, weight, alpha, scaling, seed, budget)
            result = alternate_nodes(
                start,
                X,
                make_leaves(X, targets, weight),
                alpha,
                splits=self.splits,
                max_iter=self.max_iter,
                budget=budget,
                n_jobs=self._threads,
                on_pass=self._pass_printer(unit),
            )
            found, objective = self._stretched(result, X, targets, weight, make_leaves, alpha, unit, seed, budget)
        tree = scaling.invert_tree(found)
        kept = visited(tree, rows)
        self._note(result, unit * objective, unit * alpha, unit, budget)
        return tree.collapsed(kept), unit * alpha * float(normal_price(found.collapsed(kept).weights).sum())

    def _stretched(
        self,
        result: TAOResult,
        X: Any,
        targets: FloatArray,
        weight: FloatArray,
        make_leaves: Callable[[Any, FloatArray, FloatArray], Leaves],
        alpha: float,
        unit: float,
        seed: int,
        budget: Budget,
    ) -> tuple[Tree, float]:
        """The tree of a fit, improved on stretched points if that is asked for, and its objective."""
        stretch = self._stretch(seed)
        if stretch is None or budget.over:
            return result.tree, result.objective
        state = improve_stretched(
            result.tree,
            X,
            targets,
            weight,
            make_leaves,
            alpha,
            stretch,
            budget,
            splits=self.splits,
            n_jobs=self._threads,
        )
        if self.verbose:
            after = "after passes over stretched rows"
            print(
                f"{budget.elapsed:8.1f} s  objective {unit * state.objective:.6g}  "
                f"loss {unit * state.loss:.6g}  {after}",
                file=sys.stderr,
            )
        return state.tree(), state.objective

    def _stretch(self, seed: int) -> Stretch | None:
        return Stretch(float(self.stretch), seed) if self.stretch else None

    def _start(
        self,
        X: Any,
        targets: FloatArray,
        weight: FloatArray,
        alpha: float,
        scaling: Scaling,
        seed: int,
        budget: Budget,
    ) -> Tree:
        given = self._given_numerical_tree(scaling, self.max_depth, self.splits)
        if given is not None:
            return given
        return starting_tree(
            X,
            targets,
            weight,
            self.max_depth,
            alpha,
            self.init,
            axis=self.splits == "axis",
            classify=isinstance(self, TreeClassifier),
            seed=seed,
            budget=budget,
            n_jobs=self._threads,
        )

    def _pass_printer(self, unit: float) -> Callable[[float, float, float], None] | None:
        """Lines on standard error while fitting, if ``verbose``; `unit` is what an objective of 1 is to the user."""
        if not self.verbose:
            return None

        def line(seconds: float, objective: float, loss: float) -> None:
            print(f"{seconds:8.1f} s  objective {unit * objective:.6g}  loss {unit * loss:.6g}", file=sys.stderr)

        return line

    def _note(self, result: TAOResult, objective: float, alpha: float, unit: float, budget: Budget) -> None:
        """Note the course of the fit, to be set by :meth:`_close`, and the objective on scaled features."""
        passes_left = not result.converged and result.n_iter < self.max_iter
        cut_short = passes_left or (self._stretch(0) is not None and budget.over)
        status = "interrupted" if budget.interrupted else "time_limit" if cut_short else "local"
        trace = result.trace * np.array([1.0, unit, unit])
        self._course = {"n_iter_": result.n_iter, "trace_": trace, "alpha_": alpha, "status_": status}
        self._reached, self._unit = objective, unit

    def _close(self, budget: Budget, tree: Tree, objective: float, **fitted: Any) -> None:
        """Stop the clock, set all fitted attributes, and warn of a fit cut short; ``fit`` calls it."""
        reached, unit = self._reached, self._unit
        fitted |= {"tree_": tree, "objective_": objective, "solve_time_": budget.elapsed, **self._course}
        self._publish(fitted, stale=("_course", "_reached", "_unit"))
        if objective > reached + _ROUNDING * max(unit, reached):
            warnings.warn(
                f"the tree has objective {objective:.6g} in the units of the data, {reached:.6g} on scaled features: "
                "a feature varies too little for its size, or features differ too much in size. Subtract constants "
                "from such features, or rescale them.",
                UserWarning,
                stacklevel=3,
            )
        if self.status_ != "local":
            warnings.warn(
                f"{type(self).__name__} ended with status {self.status_!r} after {self.n_iter_} passes and "
                f"{self.solve_time_:.1f} s: the tree has objective {objective:.6g}; more time may make it better.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _fitted_state(self) -> dict[str, Any]:
        return super()._fitted_state() | {"n_iter": int(self.n_iter_), "alpha": float(self.alpha_)}

    def _restore_state(self, state: dict[str, Any]) -> None:
        super()._restore_state(state)
        if type(state["n_iter"]) is not int or state["n_iter"] < 0:
            raise ModelFileError(f"fit.n_iter is {state['n_iter']!r}, expected a whole number from 0 on")
        if not is_number(state["alpha"]) or state["alpha"] < 0:
            raise ModelFileError(f"fit.alpha is {state['alpha']!r}, expected a number from 0 on")
        self.n_iter_, self.alpha_ = state["n_iter"], float(state["alpha"])
