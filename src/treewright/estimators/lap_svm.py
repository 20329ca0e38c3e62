"""The Laplacian support vector machine as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from treewright.data import MergedRows, Problem, Scaling, merge_rows, unit_scaling, weight_unit
from treewright.estimators._graph import GraphModel
from treewright.estimators._input import new_rows, semi_supervised_problem
from treewright.estimators._timed import TimedModel
from treewright.exceptions import InvalidInputError
from treewright.graph import laplacian
from treewright.search.lap_svm import kernel_matrix, kernel_width, solve_lap_svm
from treewright.tree import FloatArray

__all__ = ["LapSVMClassifier"]

MAX_POINTS = 10_000
"""Most distinct rows: matrices are dense, and the work is their number cubed."""

_NORM, _ROUGHNESS = 0.005, 0.045
"""Default prices times the number of labels (the paper's experiments on digits): C = 100 for the norm alone."""

_BLOCK = 2_000
"""Rows whose kernel values are held at once when predicting."""


class LapSVMClassifier(GraphModel, TimedModel, ClassifierMixin, BaseEstimator):
    r"""Laplacian support vector machine (LapSVM): large margins on labels, smooth along a graph of all rows.

    A function :math:`f(x) = \sum_i \alpha_i k(x_i, x) + b` with a term for each of the n rows, l of them labelled,
    minimizes

    .. math:: \frac1l \sum_{i \le l} \max(0, 1 - y_i f(x_i)) + \gamma_A \lVert f \rVert_k^2
              + \frac{\gamma_I}{n^2} f^\top L f

    where L is the Laplacian of a graph of nearest neighbours (Belkin, Niyogi and Sindhwani 2006). It is no tree: it is
    a baseline for small tables, to see what a smooth function makes of the labels. Its dual is solved to high accuracy.
    Several classes: one machine for each against the rest.

    Parameters
    ----------
    kernel : {"rbf", "linear"}, default="rbf"
        Gaussian :math:`\exp(-\gamma \lVert x - x' \rVert^2)`, or scalar product; on features scaled to [0, 1].
    gamma : float, "scale" or "median", default="scale"
        Width of the Gaussian: :math:`\gamma` itself, 1 / (features x variance), or 1 / (2 m^2) with the median distance
        m of rows.
    gamma_A : float or None, default=None
        Price of the norm. None is 0.005 / l, as in the paper's experiments on digits: C = 100 in the usual machine.
    gamma_I : float or None, default=None
        Price of roughness along the graph; 0 is the usual support vector machine with
        :math:`C = 1 / (2 l \gamma_A)`. None is 0.045 n^2 / l, from the same experiments.
    n_neighbors : int, default=10
        Neighbours of a row in the graph.
    perplexity : float, default=5.0
        Effective number of neighbours: how fast affinities fall with the distance.
    neighbors : {"auto", "exact", "approximate"}, default="auto"
        How neighbours are found.
    mutual : bool, default=False
        Whether edges need both rows to be neighbours of each other.
    graph_cache : path or None, default=None
        Folder that keeps graphs for the next fit on the same rows.
    unlabeled : label, default=-1
        Mark of unlabelled rows in y; NaN and None are marks too.
    n_jobs : int or None, default=None
        Threads of the search for neighbours: None for one, -1 for all cores.
    random_state : int, RandomState or None, default=None
        Seed of approximate neighbours; exact ones, the default in small tables, need none.

    Attributes
    ----------
    classes_ : ndarray
        The labels.
    dual_coef_ : ndarray of shape (n_points, n_machines)
        The coefficients :math:`\alpha`; one column for two classes, else one for each class.
    intercept_ : ndarray of shape (n_machines,)
        The biases.
    X_fit_ : ndarray of shape (n_points, n_features)
        The distinct training rows of positive weight, scaled and sorted, that the coefficients belong to.
    scaling_ : Scaling
        Scaling of the features to [0, 1].
    width_ : float
        The width of the Gaussian.
    transduction_ : ndarray of shape (n_samples,)
        Labels of all training rows: those given, and predictions for the others.
    objective_ : float
        The objective, summed over the machines.
    status_ : {"optimal", "local"}
        "local" if a dual could not be solved to tolerance, which a warning says.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X had them.

    See Also
    --------
    SSCTClassifier : Semi-supervised baseline that is a tree.

    Notes
    -----
    Equal rows are one point of the graph. Weights c count in all terms: the loss is their weighted mean, edges have the
    weights :math:`c_i c_j w_{ij}`, n and l are sums of weights, in units of the weight of one row
    (:func:`treewright.data.weight_unit`). So a weight of 2 is a repeated row, for unlabelled rows too, and weights that
    are all multiplied by a number give the same model. More than 10 000 distinct rows are refused.

    Examples
    --------
    Two labels and a gap between the rows:

    >>> import numpy as np
    >>> from treewright import LapSVMClassifier
    >>> X = np.array([0.0, 1.0, 2.0, 3.0, 7.0, 8.0, 9.0, 10.0])[:, None]
    >>> y = ["low", -1, -1, -1, "high", -1, -1, -1]
    >>> LapSVMClassifier(n_neighbors=2).fit(X, y).transduction_.tolist()
    ['low', 'low', 'low', 'low', 'high', 'high', 'high', 'high']
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **GraphModel._parameter_constraints,
        "kernel": [StrOptions({"rbf", "linear"})],
        "gamma": [Interval(Real, 0, None, closed="neither"), StrOptions({"scale", "median"})],
        "gamma_A": [Interval(Real, 0, None, closed="neither"), None],
        "gamma_I": [Interval(Real, 0, None, closed="left"), None],
        "unlabeled": "no_validation",
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    time_limit = None  # the work is one factorization, which cannot be broken off

    def __init__(
        self,
        kernel: str = "rbf",
        *,
        gamma: float | str = "scale",
        gamma_A: float | None = None,
        gamma_I: float | None = None,
        n_neighbors: int = 10,
        perplexity: float = 5.0,
        neighbors: str = "auto",
        mutual: bool = False,
        graph_cache: Any = None,
        unlabeled: Any = -1,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.gamma_A = gamma_A
        self.gamma_I = gamma_I
        self.n_neighbors = n_neighbors
        self.perplexity = perplexity
        self.neighbors = neighbors
        self.mutual = mutual
        self.graph_cache = graph_cache
        self.unlabeled = unlabeled
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, graph: Any = None) -> Self:
        """Fit the machines.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Labelled and unlabelled rows.
        y : array-like of shape (n_samples,)
            Labels; unlabelled rows have the mark ``unlabeled``, NaN or None.
        sample_weight : array-like of shape (n_samples,) or None
            Weights of the rows, labelled or not; 0 leaves a row out.
        graph : sparse array or array-like of shape (n_samples, n_samples), or None
            Affinities of the rows, symmetric; None for those of nearest neighbours.

        Returns
        -------
        LapSVMClassifier
            The fitted estimator.
        """
        self._start_clock()
        rows = self._check_fit_rows(X, y)
        problem = semi_supervised_problem(rows, y, sample_weight, self.unlabeled, None, None)
        # n and l are numbers of rows, whatever unit the weights have
        problem = replace(problem, weight=problem.weight / weight_unit(problem.weight))
        scaling = unit_scaling(problem.X[problem.weight > 0])
        scaled = scaling.apply(problem.X)
        points = merge_rows(scaled, np.zeros(len(scaled), dtype=np.int64), problem.weight)
        if len(points.X) > MAX_POINTS:
            raise InvalidInputError(
                f"X has {len(points.X)} distinct rows; LapSVM takes {MAX_POINTS} at most, as its matrices are dense. "
                "LapTAOClassifier has no such limit; or leave unlabelled rows out"
            )
        affinity = self._affinity_of_points(scaled, problem.weight, points, graph)
        at, numbers, weight = _labels_of_points(problem, points)
        total, labelled = float(points.weight.sum()), float(weight.sum())
        width = kernel_width(points.X, self.gamma)
        result = solve_lap_svm(
            kernel_matrix(points.X, points.X, self.kernel, width),
            laplacian(affinity),
            at,
            np.where(numbers[:, None] == _positive(problem.n_classes), 1.0, -1.0),
            weight,
            _NORM / labelled if self.gamma_A is None else float(self.gamma_A),
            _ROUGHNESS / labelled if self.gamma_I is None else float(self.gamma_I) / total**2,
        )
        fitted = {
            "classes_": problem.classes,
            "X_fit_": points.X,
            "scaling_": scaling,
            "width_": width,
            "dual_coef_": result.alpha,
            "intercept_": result.intercept,
            "objective_": float(result.objective.sum()),
            "status_": "optimal" if result.converged else "local",
        }
        done = copy(self)
        done._publish(fitted)
        guess = _class_numbers(done._values(scaled, scaling=None))
        self._publish(fitted | {"transduction_": problem.classes[np.where(problem.labelled, problem.y, guess)]})
        if not result.converged:
            warnings.warn(
                "LapSVMClassifier ended with status 'local': a dual was not solved to tolerance. A larger gamma_A, or "
                "a larger gamma (a narrower kernel), makes it better conditioned.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Return the values of the machines.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Two classes: positive for ``classes_[1]``. Several: the largest of a row decides.
        """
        rows = new_rows(self, X)
        values = self._values(rows, self.scaling_)
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Predict the class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels from ``classes_``.
        """
        values = self.decision_function(X)
        return np.asarray(self.classes_[_class_numbers(values.reshape(len(values), -1))])

    def _values(self, rows: FloatArray, scaling: Scaling | None) -> FloatArray:
        """Values of the machines at rows, which are scaled here unless they are already; in blocks."""
        values = np.empty((len(rows), self.dual_coef_.shape[1]))
        for first in range(0, len(rows), _BLOCK):
            block = rows[first : first + _BLOCK]
            block = block if scaling is None else scaling.apply(block)
            kernel = kernel_matrix(block, self.X_fit_, self.kernel, self.width_)
            values[first : first + _BLOCK] = kernel @ self.dual_coef_ + self.intercept_
        return values

    def _affinity_of_points(self, scaled: FloatArray, weight: FloatArray, points: MergedRows, graph: Any) -> Any:
        """Affinities of the distinct points, each edge times the weights of both ends."""
        if graph is None:
            mass = sparse.diags_array(points.weight, format="csr")
            return (mass @ self._affinities(points.X, None, self._seed()) @ mass).tocsr()
        used = np.flatnonzero(points.inverse >= 0)
        shape = (len(scaled), len(points.X))
        member = sparse.csr_array((weight[used], (used, points.inverse[used])), shape=shape)
        return (member.T @ self._affinities(scaled, graph, 0) @ member).tocsr()


def _labels_of_points(problem: Problem, points: MergedRows) -> tuple[Any, Any, FloatArray]:
    """Point, class number and weight of each label; equal ones at one point are one."""
    used = problem.labelled & (problem.weight > 0)
    pairs = points.inverse[used] * problem.n_classes + problem.y[used]
    distinct, place = np.unique(pairs, return_inverse=True)
    weight = np.bincount(place.reshape(-1), problem.weight[used]).astype(np.float64)
    return distinct // problem.n_classes, distinct % problem.n_classes, weight


def _positive(n_classes: int) -> Any:
    """Classes that machines tell from the rest."""
    return np.array([1]) if n_classes == 2 else np.arange(n_classes)


def _class_numbers(values: FloatArray) -> Any:
    """Class numbers that the values of machines decide for."""
    return (values[:, 0] > 0).astype(np.int64) if values.shape[1] == 1 else values.argmax(axis=1)
