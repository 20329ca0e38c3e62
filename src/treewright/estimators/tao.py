"""Tree alternating optimization as scikit-learn estimators."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_consistent_length, compute_sample_weight
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight
from threadpoolctl import threadpool_limits

from treewright.budget import Budget
from treewright.data import Scaling, make_problem, merge_rows, unit_scaling
from treewright.estimators._base import TreeClassifier, TreeModel, TreeRegressor
from treewright.estimators._timed import TimedModel
from treewright.exceptions import InvalidInputError, ModelFileError
from treewright.search.leaves import ClassLeaves, Leaves, LinearLeaves, MeanLeaves, Shape
from treewright.search.tao import TAOResult, alternate_nodes, cart_start, normal_price, random_tree
from treewright.tree import FloatArray, Tree, averaged, predict_values, relabelled, route, visited
from treewright.tree.measure import weighted_error

__all__ = ["TAOClassifier", "TAORegressor"]

_EXACT_CELLS = 1_000_000
"""Tables up to this size are worked on in float64, dense, equal rows merged and sorted; larger ones in float32."""

_ROUNDING = 1e-3
"""Share of the objective by which single precision may change it when a tree is turned back to units of the data."""


class _TAOModel(TimedModel, TreeModel):
    """What both share: parameters, the start, the course of a fit."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **TimedModel._parameter_constraints,
        "max_depth": [Interval(Integral, 1, 16, closed="both")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "splits": [StrOptions({"oblique", "axis"})],
        "init": [StrOptions({"cart", "random"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "warm_start": ["boolean", Tree, TreeModel],
    }

    max_depth: int
    alpha: float
    splits: str
    init: str
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
        X, targets, weight = _prepared(scaling.apply(rows), targets, weight)
        seed = self._seed()
        start = self._start(X, targets, weight, scaling, seed, budget)
        # One thread a node: products that are shared out would be rounded otherwise with another number of threads.
        with threadpool_limits(limits=1):
            result = alternate_nodes(
                start,
                X,
                make_leaves(X, targets, weight),
                float(self.alpha),
                splits=self.splits,
                max_iter=self.max_iter,
                budget=budget,
                n_jobs=self._threads,
                on_pass=self._pass_printer(),
            )
        tree = scaling.invert_tree(result.tree)
        kept = visited(tree, rows)
        self._note(result, budget)
        return tree.collapsed(kept), float(self.alpha) * float(normal_price(result.tree.collapsed(kept).weights).sum())

    def _start(
        self, X: Any, targets: FloatArray, weight: FloatArray, scaling: Scaling, seed: int, budget: Budget
    ) -> Tree:
        axis = self.splits == "axis"
        given = self._given_tree(X.shape[1])
        if given is not None:
            if np.any(given.category >= 0):
                raise InvalidInputError("the warm-start tree has categorical splits, which TAO does not know")
            if axis and np.any(np.count_nonzero(given.weights, axis=1) > 1):
                raise InvalidInputError(
                    "the warm-start tree has oblique splits; splits='axis' needs one feature a split"
                )
            return scaling.apply_tree(given.collapsed(given.level <= self.max_depth))
        if self.init == "cart":
            tree = cart_start(X, targets, weight, self.max_depth, isinstance(self, TreeClassifier), seed, budget)
            if tree is not None:
                return tree
        return random_tree(X, self.max_depth, np.random.default_rng(seed), axis)

    def _pass_printer(self) -> Callable[[float, float, float], None] | None:
        """Lines on standard error while fitting, if ``verbose``."""
        if not self.verbose:
            return None

        def line(seconds: float, objective: float, loss: float) -> None:
            print(f"{seconds:8.1f} s  objective {objective:.6g}  loss {loss:.6g}", file=sys.stderr)

        return line

    def _note(self, result: TAOResult, budget: Budget) -> None:
        self.n_iter_, self.trace_ = result.n_iter, result.trace
        self.status_ = "interrupted" if budget.interrupted else "local"
        if not result.converged and result.n_iter < self.max_iter and not budget.interrupted:
            self.status_ = "time_limit"

    def _close(self, budget: Budget, tree: Tree, objective: float) -> None:
        """Set the rest of the fitted attributes, stop the clock, and warn of a fit cut short; ``fit`` calls it."""
        self._set_noted()
        self.tree_, self.objective_ = tree, objective
        self.solve_time_ = budget.elapsed
        reached = float(self.trace_[-1, 1])
        if objective > reached + _ROUNDING * max(1.0, reached):
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
                f"{self.solve_time_:.1f} s: the tree has objective {objective:.6g}; more passes may lower it.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _fitted_state(self) -> dict[str, Any]:
        return super()._fitted_state() | {"n_iter": int(self.n_iter_)}

    def _restore_state(self, state: dict[str, Any]) -> None:
        super()._restore_state(state)
        if type(state["n_iter"]) is not int or state["n_iter"] < 0:
            raise ModelFileError(f"fit.n_iter is {state['n_iter']!r}, expected a whole number from 0 on")
        self.n_iter_ = state["n_iter"]


class TAOClassifier(_TAOModel, TreeClassifier):
    r"""Classification tree with sparse oblique splits, by tree alternating optimization (TAO).

    Lowers, pass by pass and never raising it,

    .. math:: \sum_i c_i [\text{row } i \text{ misclassified}] + \alpha \sum_t \lVert w_t \rVert_1 / \lVert w_t \rVert_2

    where split t sends a row left if :math:`w_t^\top x \le b_t` on features scaled to [0, 1] (Carreira-Perpinan and
    Tavallali 2018). With the rest of the tree fixed a node is a weighted two-class problem on the rows for which its
    sides differ: the direction comes from l1-logistic regression, the threshold is exact, and a split is replaced only
    if the objective falls. Splits that do not pay are pruned. It is a heuristic: nothing is proven.

    Parameters
    ----------
    max_depth : int, default=8
        Depth of the tree, at most 16.
    alpha : float, default=1.0
        Price of a split, in rows: one on a single feature must save rows of a total weight of more than this, one on k
        equally weighted features :math:`\sqrt k` times as much. Larger is sparser and smaller.
    splits : {"oblique", "axis"}, default="oblique"
        Hyperplanes, or thresholds of single features.
    init : {"cart", "random"}, default="cart"
        Tree to start from: CART, or a complete tree with random normals. CART is passed over where it would take more
        than half of `time_limit`.
    max_iter : int, default=20
        Most passes over the tree.
    class_weight : dict, "balanced" or None, default=None
        Factors of the weights of the rows by class, as in scikit-learn.
    time_limit : float or None, default=None
        Seconds for the whole fit.
    n_jobs : int or None, default=None
        Threads, over the nodes of a depth: None for one, -1 for all cores. The tree does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the start.
    verbose : int, default=0
        Above 0, progress goes to standard error.
    warm_start : bool, Tree or fitted estimator, default=False
        Tree to start from; True goes on from the last fit. What is deeper than `max_depth` is cut off.

    Attributes
    ----------
    tree_ : Tree
        The tree, in the units of the data.
    classes_ : ndarray
        The labels.
    objective_ : float
        Objective of the tree, recomputed from the data.
    n_iter_ : int
        Passes over the tree.
    status_ : {"local", "time_limit", "interrupted"}
        How the fit ended. "local" is the usual end: no single node can be improved any more, or `max_iter` is reached.
    solve_time_ : float
        Seconds of the whole fit.
    trace_ : ndarray of shape (n_passes + 1, 3)
        Seconds, objective and loss at the start and after each pass.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X had them.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from treewright import TAOClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = TAOClassifier(max_depth=3, alpha=0.1, random_state=0).fit(X, y)
    >>> model.status_, model.score(X, y) > 0.97
    ('local', True)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **_TAOModel._parameter_constraints,
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        max_depth: int = 8,
        *,
        alpha: float = 1.0,
        splits: str = "oblique",
        init: str = "cart",
        max_iter: int = 20,
        class_weight: Any = None,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: Any = False,
    ) -> None:
        self.max_depth = max_depth
        self.alpha = alpha
        self.splits = splits
        self.init = init
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the tree.

        Parameters
        ----------
        X : array-like or scipy sparse array of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels, at least two different ones.
        sample_weight : array-like of shape (n_samples,) or None
            Weights of the errors; 0 leaves a row out, 2 counts it twice.

        Returns
        -------
        TAOClassifier
            The fitted estimator.
        """
        budget = self._start_clock()
        rows = self._check_fit_rows(X, y, accept_sparse="csr")
        # Labels and weights are checked apart from the rows, which may be sparse.
        problem = make_problem(np.zeros((rows.shape[0], 1)), y, sample_weight)
        weight = problem.weight * compute_sample_weight(self.class_weight, problem.classes[problem.y])
        rows, weight, codes = _weighted(rows, weight, problem.y)

        def make_leaves(X: Any, targets: FloatArray, weight: FloatArray) -> ClassLeaves:
            return ClassLeaves(targets[:, 0].astype(np.int64), weight, problem.n_classes)

        with budget.stop_on_interrupt():
            tree, price = self._optimize(rows, codes[:, None].astype(np.float64), weight, make_leaves, budget)
        tree = relabelled(tree.with_leaves(np.zeros((tree.n_nodes, problem.n_classes)), None), rows, codes, weight)
        self.classes_ = problem.classes
        self._close(budget, tree, weighted_error(tree, rows, codes, weight) + price)
        return self


class TAORegressor(_TAOModel, TreeRegressor):
    r"""Regression tree with sparse oblique splits, constant or linear leaves, by tree alternating optimization (TAO).

    Lowers, pass by pass and never raising it,

    .. math:: \sum_i c_i \lVert y_i - T(x_i) \rVert^2 / s^2 + \alpha \sum_t \lVert w_t \rVert_1 / \lVert w_t \rVert_2

    where :math:`s^2` is the (weighted) mean of the squared distance of the targets to their mean, so that alpha does
    not depend on their units. See :class:`TAOClassifier` for the method. With ``leaves="linear"`` a leaf predicts
    :math:`b + A x`, and :math:`\rho \sum_{leaves} \lVert A \rVert^2` is added, with targets divided by s and features
    scaled to [0, 1]: each leaf is a ridge regression on its rows.

    Parameters
    ----------
    max_depth : int, default=8
        Depth of the tree, at most 16.
    alpha : float, default=1.0
        Price of a split, in rows at the distance s: one on a single feature must save that much squared error, one on k
        equally weighted features :math:`\sqrt k` times as much. Larger is sparser and smaller.
    leaves : {"constant", "linear"}, default="constant"
        What a leaf predicts: the mean of its rows, or a linear function of all features.
    leaf_ridge : float, default=0.1
        The price :math:`\rho` of linear leaves, in rows at the distance s: a slope that takes the prediction from one
        end of a feature's range to the other by s costs as much as this many such rows. Larger is flatter; a leaf with
        few rows is nearly constant. Above 0; without meaning for constant leaves.
    splits : {"oblique", "axis"}, default="oblique"
        Hyperplanes, or thresholds of single features.
    init : {"cart", "random"}, default="cart"
        Tree to start from: CART, or a complete tree with random normals. CART is passed over where it would take more
        than half of `time_limit`.
    max_iter : int, default=20
        Most passes over the tree.
    time_limit : float or None, default=None
        Seconds for the whole fit.
    n_jobs : int or None, default=None
        Threads, over the nodes of a depth: None for one, -1 for all cores. The tree does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the start.
    verbose : int, default=0
        Above 0, progress goes to standard error.
    warm_start : bool, Tree or fitted estimator, default=False
        Tree to start from; True goes on from the last fit. What is deeper than `max_depth` is cut off.

    Attributes
    ----------
    tree_ : Tree
        The tree, in the units of the data.
    objective_ : float
        Objective of the tree, recomputed from the data.
    n_iter_ : int
        Passes over the tree.
    status_ : {"local", "time_limit", "interrupted"}
        How the fit ended. "local" is the usual end: no single node can be improved any more, or `max_iter` is reached.
    solve_time_ : float
        Seconds of the whole fit.
    trace_ : ndarray of shape (n_passes + 1, 3)
        Seconds, objective and loss at the start and after each pass.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X had them.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from treewright import TAORegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = TAORegressor(max_depth=3, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.5
    True

    Two planes, which linear leaves fit with one split:

    >>> X = np.random.default_rng(0).random((300, 2))
    >>> y = np.abs(X[:, 0] - X[:, 1])
    >>> model = TAORegressor(max_depth=1, leaves="linear", leaf_ridge=0.01, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **_TAOModel._parameter_constraints,
        "leaves": [StrOptions({"constant", "linear"})],
        "leaf_ridge": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        max_depth: int = 8,
        *,
        alpha: float = 1.0,
        leaves: str = "constant",
        leaf_ridge: float = 0.1,
        splits: str = "oblique",
        init: str = "cart",
        max_iter: int = 20,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: Any = False,
    ) -> None:
        self.max_depth = max_depth
        self.alpha = alpha
        self.leaves = leaves
        self.leaf_ridge = leaf_ridge
        self.splits = splits
        self.init = init
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the tree.

        Parameters
        ----------
        X : array-like or scipy sparse array of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,) or None
            Weights of the errors; 0 leaves a row out, 2 counts it twice.

        Returns
        -------
        TAORegressor
            The fitted estimator.
        """
        budget = self._start_clock()
        rows = self._check_fit_rows(X, y, accept_sparse="csr")
        targets = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y", estimator=self)
        check_consistent_length(rows, targets)
        weight = _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
        rows, weight, targets = _weighted(rows, weight, targets.reshape(rows.shape[0], -1))
        mean = np.average(targets, axis=0, weights=weight)
        centred = targets - mean
        scale = float(np.sqrt(np.average((centred**2).sum(axis=1), weights=weight))) or 1.0
        with budget.stop_on_interrupt():
            tree, price = self._optimize(rows, centred / scale, weight, self._make_leaves, budget)
        if self.leaves == "linear":
            tree, slope_price = self._with_slopes(tree, rows, centred / scale, weight, mean, scale)
            price += slope_price
        else:
            tree = averaged(tree, rows, targets, weight)
        away = (targets - predict_values(tree, rows)) / scale
        self._close(budget, tree, float(weight @ (away**2).sum(axis=1)) + price)
        return self

    def _make_leaves(self, X: Any, targets: FloatArray, weight: FloatArray) -> Leaves:
        if self.leaves == "linear":
            return LinearLeaves(X, targets, weight, float(self.leaf_ridge))
        return MeanLeaves(targets, weight)

    def _with_slopes(
        self, tree: Tree, rows: Any, targets: FloatArray, weight: FloatArray, mean: FloatArray, scale: float
    ) -> tuple[Tree, float]:
        """Tree with linear functions at all nodes, in the units of the data, and the price of those at the leaves."""
        scaling, shape, leaf = unit_scaling(rows), Shape.of(tree), route(tree, rows)
        leaves = LinearLeaves(scaling.apply(rows), targets, weight, float(self.leaf_ridge))
        with threadpool_limits(limits=1):
            leaves.refit(shape, leaf)
            price = leaves.price
            leaves.refit_branches(shape, leaf)
        values, slopes = scaling.invert_leaves(leaves.table()[0] * scale + mean, leaves.slopes * scale)
        return tree.with_leaves(values, None, slopes), price


def _weighted(rows: Any, weight: FloatArray, targets: np.ndarray) -> tuple[Any, FloatArray, np.ndarray]:
    """Rows of positive weight, their weights and targets."""
    used = np.flatnonzero(weight > 0)
    if not len(used):
        raise InvalidInputError("all weights are zero; at least one row must count")
    return (rows, weight, targets) if len(used) == len(weight) else (rows[used], weight[used], targets[used])


def _prepared(X: Any, targets: FloatArray, weight: FloatArray) -> tuple[Any, FloatArray, FloatArray]:
    """Points, targets and weights as the search takes them.

    In small tables a weight of 2 is a repeated row to the last bit, and the order of the rows is nothing.
    """
    n, p = X.shape
    if n * p > _EXACT_CELLS:
        single = X.astype(np.float32)
        return (single.tocsr() if sparse.issparse(X) else np.ascontiguousarray(single)), targets, weight
    dense = X.toarray() if sparse.issparse(X) else X
    merged = merge_rows(np.column_stack([dense, targets]), np.zeros(n, dtype=np.int64), weight)
    return np.ascontiguousarray(merged.X[:, :p]), np.ascontiguousarray(merged.X[:, p:]), merged.weight
