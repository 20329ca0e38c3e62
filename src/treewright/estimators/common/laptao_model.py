"""What the classifier and the regressor of LapTAO share."""

from __future__ import annotations

import sys
from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.base import is_classifier, is_regressor
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from treewright.arrays import BoolArray, FloatArray
from treewright.budget import Budget
from treewright.data import Sample
from treewright.estimators.common.graph import GraphModel
from treewright.estimators.common.mixed import MixedModel
from treewright.estimators.common.record_files import is_number
from treewright.estimators.common.settings import settings_of
from treewright.estimators.common.timed import TimedModel
from treewright.estimators.common.tree_model import TreeModel
from treewright.exceptions import InvalidInputError, ModelFileError
from treewright.search.grow.starts import STARTS
from treewright.search.laptao.rounds import Round
from treewright.training.affinities import GraphSettings
from treewright.training.laptao import LapTAOFit, LapTAOSettings, SmoothModel, train_laptao
from treewright.tree import Tree

__all__ = ["LapTAOModel"]

_PREDICTS = ("tree", "trees", "estimator", "points", "values", "scaling", "mean", "scale")
_ATTRIBUTES = {name: f"{name}_" for name in _PREDICTS} | {"dense": "_dense", "design": "_design"}
"""Fitted attributes that hold what predicts."""


class LapTAOModel(MixedModel, GraphModel, TreeModel):
    """Parameters, graph and course of a fit."""

    _found = "model"
    _sometimes = tuple(_ATTRIBUTES.values())
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **TimedModel._parameter_constraints,
        **GraphModel._parameter_constraints,
        **MixedModel._parameter_constraints,
        "max_depth": [Interval(Integral, 1, 16, closed="both")],
        "alpha": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "gamma": [Interval(Real, 0, None, closed="neither")],
        "estimator": [StrOptions({"tao", "cart", "graph"}), HasMethods("fit")],
        "splits": [StrOptions({"oblique", "axis"})],
        "init": [StrOptions({"auto", *STARTS})],
        "stretch": [Interval(Real, 0, None, closed="left")],
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "max_samples": [Interval(Real, 0, 1, closed="right")],
        "max_features": [Interval(Real, 0, 1, closed="right")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "init_passes": [Interval(Integral, 1, None, closed="left")],
        "passes": [Interval(Integral, 1, None, closed="left")],
        "mu": [Interval(Real, 0, None, closed="neither")],
        "mu_factor": [Interval(Real, 1, None, closed="left")],
        "multiplier_rule": [StrOptions({"paper", "full"})],
        "tol": [Interval(Real, 0, None, closed="left")],
        "unlabeled": "no_validation",
        "warm_start": ["boolean", Tree, TreeModel],
    }

    estimator: Any
    splits: str
    n_estimators: int
    n_neighbors: int
    perplexity: float

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # ------------------------------------------------------------------ the fit

    def _check_model(self) -> None:
        if not isinstance(self.estimator, str) and not is_regressor(self.estimator):
            raise InvalidInputError(
                f"estimator is a {type(self.estimator).__name__}, which is no regressor of scikit-learn; labels are "
                "smoothed to numbers, so classes need a regressor too"
            )
        if self.n_estimators > 1 and self.estimator != "tao":
            raise InvalidInputError(
                f"n_estimators={self.n_estimators} makes forests of TAO trees; with estimator={self.estimator!r} set "
                "it to 1"
            )

    def _found_by(
        self, rows: Sample, labelled: BoolArray, graph: Any, budget: Budget, noted: dict[str, Any]
    ) -> tuple[LapTAOFit, dict[str, Any]]:
        """What training found, and the fitted attributes without labels of the rows."""
        start = self._given_start(noted) if self.estimator == "tao" else None
        settings, neighbours = settings_of(self, LapTAOSettings), settings_of(self, GraphSettings)
        conduct, classes = self._conduct(_print_round), is_classifier(self)
        with budget.stop_on_interrupt():
            found = train_laptao(rows, labelled, classes, graph, settings, neighbours, conduct, budget, start)
        held = {attribute: getattr(found.model, name) for name, attribute in _ATTRIBUTES.items()}
        fitted = {attribute: value for attribute, value in held.items() if value is not None}
        return found, fitted | {"alpha_": found.alpha, "n_iter_": found.n_iter, "best_iter_": found.best_iter}

    def _given_start(self, noted: dict[str, Any]) -> Tree | None:
        if isinstance(self.warm_start, LapTAOModel) and hasattr(self.warm_start, "n_iter_"):
            self.warm_start._need_tree()
        given = self._given_mixed_tree(noted, self.splits)
        if given is not None and self.n_estimators > 1:
            raise InvalidInputError("a warm start is one tree; with n_estimators above 1 set warm_start=False")
        return given

    # ------------------------------------------------------------------ predictions

    def _values(self, rows: Any) -> FloatArray:
        """Values that the model predicts for rows, in the units of the targets."""
        held = {name: getattr(self, attribute) for name, attribute in _ATTRIBUTES.items() if hasattr(self, attribute)}
        near = int(self.n_neighbors), float(self.perplexity), self._threads
        return SmoothModel(**held).scores(rows, *near)

    def _need_tree(self) -> None:
        check_is_fitted(self, "n_iter_")
        if not hasattr(self, "tree_"):
            raise InvalidInputError(
                f"this fit is not one tree (estimator={self.estimator!r}, n_estimators={self.n_estimators}); only "
                "estimator='tao' and estimator='cart' with n_estimators=1 have tree_"
            )

    # ------------------------------------------------------------------ model files

    def _fitted_state(self) -> dict[str, Any]:
        return super()._fitted_state() | {
            "alpha": float(self.alpha_),
            "n_iter": int(self.n_iter_),
            "best_iter": int(self.best_iter_),
        }

    def _restore_state(self, state: dict[str, Any]) -> None:
        super()._restore_state(state)
        if not is_number(state["alpha"]) or state["alpha"] < 0:
            raise ModelFileError(f"fit.alpha is {state['alpha']!r}, expected a number from 0 on")
        for key in ("n_iter", "best_iter"):
            if type(state[key]) is not int or state[key] < 0:
                raise ModelFileError(f"fit.{key} is {state[key]!r}, expected a whole number from 0 on")
        self.alpha_, self.n_iter_, self.best_iter_ = float(state["alpha"]), state["n_iter"], state["best_iter"]


def _print_round(now: Round) -> None:
    """A line on standard error."""
    name = "stretched" if now.finished else f"round {now.number:2d}"
    print(
        f"{now.seconds:8.1f} s  {name:9s}  mu {now.mu:.4f}  objective {now.objective:.6g} = labels "
        f"{now.label_loss:.4g} + edges {now.smoothness:.4g} + splits {now.price:.4g}  residual "
        f"{now.residual:.4g}  moved {now.moved:.1%}",
        file=sys.stderr,
    )
