"""What the estimators by tree alternating optimization share."""

from __future__ import annotations

import sys
from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from treewright.budget import Budget
from treewright.data import Sample
from treewright.estimators.common.mixed import MixedModel
from treewright.estimators.common.record_files import is_number
from treewright.estimators.common.settings import settings_of
from treewright.estimators.common.timed import TimedModel
from treewright.estimators.common.tree_model import TreeModel
from treewright.exceptions import ModelFileError
from treewright.search.grow.starts import STARTS
from treewright.training.tao import TAOSettings, train_tao
from treewright.tree import Tree

__all__ = ["TAOModel"]


class TAOModel(MixedModel, TimedModel, TreeModel):
    """What both share: parameters, the start, the course of a fit."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **TimedModel._parameter_constraints,
        **MixedModel._parameter_constraints,
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

    def _fit(self, rows: Sample, n_classes: int | None, budget: Budget, fitted: dict[str, Any]) -> None:
        """Train and set the fitted attributes, `fitted` among them; ``fit`` itself calls it."""
        start = self._given_mixed_tree(fitted, self.splits)
        settings = settings_of(self, TAOSettings)
        with budget.stop_on_interrupt():
            found = train_tao(rows, n_classes, settings, self._conduct(_print_pass), budget, start)
        fitted |= {"tree_": found.tree, "alpha_": found.alpha, "n_iter_": found.n_iter}
        self._publish(found.record.closed(budget), fitted, note=found.note)

    def _fitted_state(self) -> dict[str, Any]:
        return super()._fitted_state() | {"n_iter": int(self.n_iter_), "alpha": float(self.alpha_)}

    def _restore_state(self, state: dict[str, Any]) -> None:
        super()._restore_state(state)
        if type(state["n_iter"]) is not int or state["n_iter"] < 0:
            raise ModelFileError(f"fit.n_iter is {state['n_iter']!r}, expected a whole number from 0 on")
        if not is_number(state["alpha"]) or state["alpha"] < 0:
            raise ModelFileError(f"fit.alpha is {state['alpha']!r}, expected a number from 0 on")
        self.n_iter_, self.alpha_ = state["n_iter"], float(state["alpha"])


def _print_pass(seconds: float, objective: float, loss: float, after: str = "") -> None:
    """A line on standard error."""
    print(f"{seconds:8.1f} s  objective {objective:.6g}  loss {loss:.6g}{after}", file=sys.stderr)
