"""The Laplacian support vector machine as a scikit-learn estimator."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import Interval, StrOptions

from treewright.arrays import FloatArray
from treewright.budget import Budget
from treewright.estimators.common.graph import GraphModel
from treewright.estimators.common.rows import new_rows, semi_supervised_problem
from treewright.estimators.common.settings import settings_of
from treewright.training.affinities import GraphSettings
from treewright.training.lap_svm import LapSVMSettings, Machines, train_lap_svm
from treewright.training.record import FitRecord

__all__ = ["LapSVMClassifier"]


class LapSVMClassifier(GraphModel, ClassifierMixin, BaseEstimator):
    r"""Laplacian support vector machine (LapSVM): large margins on labels, smooth along a graph of all rows.

    A function :math:`f(x) = \sum_i \alpha_i k(x_i, x) + b` with a term for each of the n rows, l of them labelled,
    minimizes

    .. math:: \frac1l \Big( \sum_{i \le l} \max(0, 1 - y_i f(x_i)) + \rho \lVert f \rVert_k^2
              + \gamma f^\top L f \Big)

    where L is the Laplacian of a graph of nearest neighbours (Belkin, Niyogi and Sindhwani 2006). It is no tree: it is
    a baseline for small tables, to see what a smooth function makes of the labels. Its dual is solved to high accuracy.
    Several classes: one machine for each against the rest.

    Parameters
    ----------
    kernel : {"rbf", "linear"}, default="rbf"
        Gaussian :math:`\exp(-v \lVert x - x' \rVert^2)`, or scalar product; on features scaled to [0, 1].
    width : float, "scale" or "median", default="scale"
        Width of the Gaussian: v itself, 1 / (features x variance), or 1 / (2 m^2) with the median distance m of rows.
    ridge : float, default=0.005
        The price :math:`\rho` of the squared norm, relative to that of errors at labels: the usual machine's C is
        :math:`1 / (2 \rho)`. The paper's :math:`\gamma_A` is :math:`\rho / l`.
    gamma : float, default=0.045
        Price of differences along edges, relative to that of errors at labels; 0 is the usual support vector machine.
        The paper's :math:`\gamma_I` is :math:`\gamma n^2 / l`. Both defaults are those of its experiments on digits.
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
    points_ : ndarray of shape (n_points, n_features)
        The distinct training rows of positive weight, scaled and sorted, that the coefficients belong to.
    scaling_ : Scaling
        Scaling of the features to [0, 1].
    width_ : float
        The width of the Gaussian.
    transduction_ : ndarray of shape (n_samples,)
        Labels of all training rows: those given, and predictions for the others.
    objective_ : float
        The objective, summed over the machines.
    status_ : {"optimal", "unproven"}
        "unproven" if a dual could not be solved to tolerance, which a warning says.
    reason_ : str
        Why it ended so.
    solve_time_, trace_, record_
        As for every model; the trace has one row.
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
        "width": [Interval(Real, 0, None, closed="neither"), StrOptions({"scale", "median"})],
        "ridge": [Interval(Real, 0, None, closed="neither")],
        "gamma": [Interval(Real, 0, None, closed="left")],
        "unlabeled": "no_validation",
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    time_limit = None  # the work is one factorization, which cannot be broken off
    verbose = 0
    _found = "machine"

    def __init__(
        self,
        kernel: str = "rbf",
        *,
        width: float | str = "scale",
        ridge: float = 0.005,
        gamma: float = 0.045,
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
        self.width = width
        self.ridge = ridge
        self.gamma = gamma
        self.n_neighbors = n_neighbors
        self.perplexity = perplexity
        self.neighbors = neighbors
        self.mutual = mutual
        self.graph_cache = graph_cache
        self.unlabeled = unlabeled
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _trained(
        self,
        rows: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        graph: Any,
        budget: Budget,
        noted: dict[str, Any],
    ) -> tuple[FitRecord, dict[str, Any]]:
        problem = semi_supervised_problem(rows, y, sample_weight, self.unlabeled, None, None)
        settings, neighbours = settings_of(self, LapSVMSettings), settings_of(self, GraphSettings)
        found = train_lap_svm(problem, graph, settings, neighbours, self._conduct(), budget)
        machines = found.machines
        return found.record, {
            "classes_": problem.classes,
            "points_": machines.points,
            "scaling_": found.scaling,
            "width_": machines.width,
            "dual_coef_": machines.coefficients,
            "intercept_": machines.intercept,
            "transduction_": problem.classes[found.numbers],
        }

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
        values = self._machines.values(rows, self.scaling_)
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
        return np.asarray(self.classes_[Machines.decided(values.reshape(len(values), -1))])

    @property
    def _machines(self) -> Machines:
        return Machines(self.points_, self.dual_coef_, self.intercept_, self.kernel, self.width_)
