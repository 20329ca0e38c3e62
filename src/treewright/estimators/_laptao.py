"""What the classifier and the regressor of LapTAO share."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import clone, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, has_fit_parameter
from threadpoolctl import threadpool_limits

from treewright.budget import Budget
from treewright.data import Scaling, unit_scaling, weight_unit
from treewright.estimators._base import TreeModel
from treewright.estimators._files import is_number
from treewright.estimators._graph import GraphModel
from treewright.estimators._input import distinct_points, seed_where_unset
from treewright.estimators._timed import TimedModel
from treewright.exceptions import InvalidInputError, ModelFileError
from treewright.graph import check_graph, nearest_mean
from treewright.search.laplacian import GraphTask, LapResult, Round, Schedule, TreeStep, smooth_and_fit
from treewright.search.stretch import Stretch
from treewright.search.tao import automatic_alpha
from treewright.search.tao_starts import STARTS, starting_tree
from treewright.search.tree_steps import AlternatingStep, CartStep, ForestStep, NoStep, RegressorStep
from treewright.tree import BoolArray, FloatArray, IntArray, Tree, averaged, predict_values, visited

__all__ = ["HISTORY", "LapTAOModel"]

HISTORY = ("seconds", "mu", "label_loss", "smoothness", "price", "residual", "moved")
"""Columns of ``history_``."""

_BLOCK_CELLS = 4_000_000
"""Cells of sparse rows that are made dense at once, for models that were fitted on dense ones."""


@dataclass(frozen=True)
class _Rows:
    """Rows of positive weight, the distinct points they are, and what the fit makes of them."""

    used: IntArray  # among all rows
    scaling: Scaling
    points: Any  # scaled
    inverse: IntArray  # point of each used row
    weight: FloatArray  # of the points


class LapTAOModel(GraphModel, TimedModel, TreeModel):
    """Parameters, graph and course of a fit."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **TimedModel._parameter_constraints,
        **GraphModel._parameter_constraints,
        "max_depth": [Interval(Integral, 1, 16, closed="both")],
        "alpha": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "gamma": [Interval(Real, 0, None, closed="neither")],
        "tree": [StrOptions({"tao", "cart"}), HasMethods("fit"), None],
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
        "multiplier": [StrOptions({"paper", "full"})],
        "tol": [Interval(Real, 0, None, closed="left")],
        "unlabeled": "no_validation",
        "warm_start": ["boolean", Tree, TreeModel],
    }

    max_depth: int
    alpha: float | str
    gamma: float
    tree: Any
    splits: str
    init: str
    stretch: float
    n_estimators: int
    max_samples: float
    max_features: float
    max_iter: int
    init_passes: int
    passes: int
    mu: float
    mu_factor: float
    multiplier: str
    tol: float

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # ------------------------------------------------------------------ the fit

    def _check_model(self) -> None:
        if self.tree is not None and not isinstance(self.tree, str) and not is_regressor(self.tree):
            raise InvalidInputError(
                f"tree is a {type(self.tree).__name__}, which is no regressor of scikit-learn; labels are smoothed to "
                "numbers, so classes need a regressor too"
            )
        if self.n_estimators > 1 and self.tree != "tao":
            raise InvalidInputError(
                f"n_estimators={self.n_estimators} makes forests of TAO trees; with tree={self.tree!r} set it to 1"
            )

    def _takes_weights(self) -> bool:
        return self.tree is None or isinstance(self.tree, str) or has_fit_parameter(self.tree, "sample_weight")

    def _fit_points(
        self,
        rows: Any,
        Y: FloatArray,
        labelled: BoolArray,
        weight: FloatArray,
        graph: Any,
        budget: Budget,
    ) -> tuple[LapResult, _Rows, FloatArray]:
        """Result on the distinct points, those points, and the mean of the labels; notes the course of the fit.

        `Y` has a row for each row, anything where `labelled` is false.
        """
        seed = self._seed()
        used = np.flatnonzero(weight > 0)
        if not np.any(labelled[used]):
            raise InvalidInputError("no labelled row has a weight above 0; at least one must count")
        if not self._takes_weights() and np.ptp(weight[used]) > 0:
            raise InvalidInputError(
                f"sample_weight differs between rows, but tree={self.tree!r} has no sample_weight in its fit; use "
                "another regressor, or weights of 0 and 1"
            )
        known = graph if graph is None else check_graph(graph, rows.shape[0])
        scaling = unit_scaling(rows[used])
        points, inverse, mass = distinct_points(scaling.apply(rows[used]), weight[used])
        found = _Rows(used, scaling, points, inverse, mass)
        label_weight = np.where(labelled[used], weight[used], 0.0)
        mean = label_weight @ np.where(labelled[used][:, None], Y[used], 0.0) / label_weight.sum()
        away = Y[used] - mean
        # What is left of equal targets is the rounding of their mean, which a tree would fit.
        centred = np.where(labelled[used][:, None] & (np.abs(away) > 1e-15 * np.abs(Y[used])), away, 0.0)
        task = GraphTask(
            points,
            self._affinities(points, None, seed) if known is None else _joined(known, found),
            *_by_point(centred, label_weight, inverse, len(mass)),
            mass,
            float(self.gamma),
        )
        unit = weight_unit(weight[used])
        automatic = unit * automatic_alpha(float(mass.sum()) / unit, least=0.0)
        alpha = automatic if self.alpha == "auto" else float(self.alpha)
        step, schedule, told = self._step(found, alpha, seed, budget), self._schedule(), self._printer()
        with threadpool_limits(limits=1), budget.stop_on_interrupt():
            result = smooth_and_fit(task, step, schedule, budget, told, self._sharpener(mean))
        self._note(result, alpha, budget)
        return result, found, mean

    def _sharpener(self, mean: FloatArray) -> Callable[[GraphTask, FloatArray], GraphTask] | None:
        """What makes more labels of the smoothed ones; numbers have no clear ones."""
        return None

    def _schedule(self) -> Schedule:
        rounds = 0 if self.tree is None else int(self.max_iter)
        return Schedule(rounds, float(self.mu), float(self.mu_factor), self.multiplier == "full", float(self.tol))

    def _step(self, rows: _Rows, relative_alpha: float, seed: int, budget: Budget) -> TreeStep:
        if self.tree is None:
            return NoStep()
        if self.tree == "cart":
            return CartStep(rows.points, rows.weight, int(self.max_depth), seed)
        if self.tree != "tao":
            model = clone(self.tree)
            seed_where_unset(model, seed)
            copies = np.bincount(rows.inverse)
            # Regressors that take weights may wrap one that does not: they get none unless there are some.
            if self._takes_weights() and not np.array_equal(copies, rows.weight):
                return RegressorStep(rows.points, model, weight=rows.weight)
            return RegressorStep(rows.points, model, copies=copies)
        given = self._given_start(rows)

        def member(X: Any, weight: FloatArray, seed: int, n_jobs: int = 1) -> AlternatingStep:
            def start(targets: FloatArray, alpha: float) -> Tree:
                if given is not None:
                    return given
                return starting_tree(
                    X,
                    targets,
                    weight,
                    int(self.max_depth),
                    alpha,
                    self.init,
                    axis=self.splits == "axis",
                    classify=False,
                    seed=seed,
                    budget=budget,
                    n_jobs=n_jobs,
                )

            stretch = Stretch(float(self.stretch), seed) if self.stretch else None
            passes = self.init_passes, self.passes
            return AlternatingStep(X, weight, start, relative_alpha, *passes, self.splits, n_jobs, stretch)

        if self.n_estimators == 1:
            return member(rows.points, rows.weight, seed, self._threads)
        shares = float(self.max_samples), float(self.max_features)
        return ForestStep(rows.points, rows.weight, member, self.n_estimators, *shares, seed, self._threads)

    def _given_start(self, rows: _Rows) -> Tree | None:
        if isinstance(self.warm_start, LapTAOModel) and hasattr(self.warm_start, "n_iter_"):
            self.warm_start._need_tree()
        given = self._given_numerical_tree(rows.scaling, self.max_depth, self.splits)
        if given is not None and self.n_estimators > 1:
            raise InvalidInputError("a warm start is one tree; with n_estimators above 1 set warm_start=False")
        return given

    def _printer(self) -> Any:
        """Lines on standard error while fitting, if ``verbose``."""
        if not self.verbose:
            return None

        def line(now: Round) -> None:
            name = "stretched" if now.finished else f"round {now.number:2d}"
            print(
                f"{now.seconds:8.1f} s  {name:9s}  mu {now.mu:.4f}  objective {now.objective:.6g} = labels "
                f"{now.label_loss:.4g} + edges {now.smoothness:.4g} + splits {now.price:.4g}  residual "
                f"{now.residual:.4g}  moved {now.moved:.1%}",
                file=sys.stderr,
            )

        return line

    def _note(self, result: LapResult, alpha: float, budget: Budget) -> None:
        """Note the course of the fit, to be set by :meth:`_close`."""
        rounds = result.rounds
        self._course = {
            "n_iter_": 1 if self.tree is None else result.n_rounds,
            "history_": np.array([[getattr(now, name) for name in HISTORY] for now in rounds]),
            "trace_": np.array([(now.seconds, now.objective, now.residual) for now in rounds]),
            "objective_": result.objective,
            "alpha_": alpha,
            "best_iter_": result.best,
            "stop_reason_": result.reason,
            "status_": "interrupted" if budget.interrupted else "time_limit" if result.reason == "stopped" else "local",
        }

    def _close(
        self,
        budget: Budget,
        fitted: dict[str, Any],
        transduced: Callable[[Callable[[Any], FloatArray]], np.ndarray],
    ) -> None:
        """Stop the clock, set all fitted attributes, and warn of a fit cut short; ``fit`` calls it.

        `transduced` makes the labels of all rows, given what the fitted model predicts for rows of weight 0.
        """
        fitted = self._course | fitted
        stale = ("tree_", "trees_", "model_", "points_", "values_", "_course")
        done = copy(self)
        done._publish(fitted, stale)
        fitted |= {"transduction_": transduced(done._scores), "solve_time_": budget.elapsed}
        self._publish(fitted, stale)
        if self.status_ != "local":
            rounds = "" if self.tree is None else f"{self.n_iter_} rounds and "
            warnings.warn(
                f"{type(self).__name__} ended with status {self.status_!r} after {rounds}{self.solve_time_:.1f} s: the "
                f"model has objective {self.objective_:.6g}; more time may lower it.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _fitted_model(self, result: LapResult, found: _Rows, rows: Any, mean: FloatArray) -> dict[str, Any]:
        """Fitted attributes that predict, in the units of the data: tree, trees, regressor, or points and values."""
        kept = {"scaling_": found.scaling, "mean_": mean, "_dense": not sparse.issparse(found.points)}
        if isinstance(result.model, Tree):
            tree = found.scaling.invert_tree(result.model)
            inside = rows[found.used]
            tree = tree.collapsed(visited(tree, inside))
            # Routing in the units of the data may round a point to the other side, so values come from the points.
            return kept | {"tree_": averaged(tree, inside, (result.values + mean)[found.inverse], _shares(found))}
        if isinstance(result.model, list):
            trees = [found.scaling.invert_tree(tree) for tree in result.model]
            return kept | {"trees_": [tree.with_leaves(tree.values + mean, None) for tree in trees]}
        if result.model is not None:
            return kept | {"model_": result.model}
        return kept | {"points_": found.points, "values_": result.values + mean}

    # ------------------------------------------------------------------ predictions

    def _scores(self, rows: Any) -> FloatArray:
        """Values that the model predicts for rows, in the units of the targets."""
        if hasattr(self, "tree_"):
            return predict_values(self.tree_, rows)
        if hasattr(self, "trees_"):
            return np.asarray(sum(predict_values(tree, rows) for tree in self.trees_) / len(self.trees_))
        if self._dense and sparse.issparse(rows):
            width = max(1, _BLOCK_CELLS // rows.shape[1])
            blocks = (rows[first : first + width].toarray() for first in range(0, rows.shape[0], width))
            return np.concatenate([self._scores(block) for block in blocks])
        return self._scaled_scores(self.scaling_.apply(rows))

    def _scaled_scores(self, scaled: Any) -> FloatArray:
        """Values for scaled rows by a regressor, or by the neighbours among the training rows."""
        if hasattr(self, "model_"):
            values = np.asarray(self.model_.predict(scaled), dtype=np.float64).reshape(scaled.shape[0], -1)
            return values * getattr(self, "scale_", 1.0) + self.mean_
        k, perplexity = int(self.n_neighbors), float(self.perplexity)
        scaled = scaled.astype(self.points_.dtype)
        return nearest_mean(self.points_, self.values_, scaled, k, perplexity, self._threads)

    def _need_tree(self) -> None:
        check_is_fitted(self, "n_iter_")
        if not hasattr(self, "tree_"):
            raise InvalidInputError(
                f"this fit is not one tree (tree={self.tree!r}, n_estimators={self.n_estimators}); only tree='tao' "
                "and tree='cart' with n_estimators=1 have tree_"
            )

    # ------------------------------------------------------------------ model files

    def _fitted_state(self) -> dict[str, Any]:
        return super()._fitted_state() | {
            "alpha": float(self.alpha_),
            "n_iter": int(self.n_iter_),
            "best_iter": int(self.best_iter_),
            "stop_reason": str(self.stop_reason_),
            "history": self.history_.tolist(),
        }

    def _restore_state(self, state: dict[str, Any]) -> None:
        super()._restore_state(state)
        if not is_number(state["alpha"]) or state["alpha"] < 0:
            raise ModelFileError(f"fit.alpha is {state['alpha']!r}, expected a number from 0 on")
        for key in ("n_iter", "best_iter"):
            if type(state[key]) is not int or state[key] < 0:
                raise ModelFileError(f"fit.{key} is {state[key]!r}, expected a whole number from 0 on")
        if state["stop_reason"] not in ("rounds", "settled", "stopped"):
            raise ModelFileError(f"fit.stop_reason is {state['stop_reason']!r}, expected rounds, settled or stopped")
        history = state["history"]
        if not isinstance(history, list) or not all(
            isinstance(row, list) and len(row) == len(HISTORY) and all(is_number(v) for v in row) for row in history
        ):
            raise ModelFileError(f"fit.history must be a list of rows of {len(HISTORY)} finite numbers")
        self.alpha_, self.stop_reason_ = float(state["alpha"]), state["stop_reason"]
        self.n_iter_, self.best_iter_ = state["n_iter"], state["best_iter"]
        self.history_ = np.array(history, dtype=np.float64).reshape(-1, len(HISTORY))


def _shares(found: _Rows) -> FloatArray:
    """Weights of the used rows: those of their points, shared out."""
    return np.asarray((found.weight / np.bincount(found.inverse))[found.inverse])


def _by_point(
    centred: FloatArray, label_weight: FloatArray, inverse: IntArray, n_points: int
) -> tuple[FloatArray, FloatArray]:
    """Mean label of each point, 0 without one, and the weight of its labels."""
    mass = np.asarray(np.bincount(inverse, label_weight, n_points), dtype=np.float64)
    sums = np.column_stack([np.bincount(inverse, label_weight * column, n_points) for column in centred.T])
    return sums / np.where(mass > 0, mass, 1.0)[:, None], mass


def _joined(graph: Any, found: _Rows) -> Any:
    """Affinities of the points: those of their rows, added up."""
    member = sparse.csr_array(
        (np.ones(len(found.used)), (found.inverse, found.used)), shape=(len(found.weight), graph.shape[0])
    )
    return check_graph(member @ graph @ member.T, len(found.weight))
