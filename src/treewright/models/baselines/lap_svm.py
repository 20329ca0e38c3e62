"""The Laplacian support vector machine as a scikit-learn estimator."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import Interval, StrOptions

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.estimators.graph import GraphModel
from treewright.estimators.model import Given, PredictsClasses, settings_of
from treewright.estimators.parameters import estimator, parameter
from treewright.estimators.problems import semi_supervised_problem
from treewright.graph import GraphSettings
from treewright.optimize.record import FitRecord

if TYPE_CHECKING:
    from treewright.models.baselines.lap_svm_fit import LapSVMMachines

__all__ = ["LapSVMClassifier"]


@estimator
class LapSVMClassifier(GraphModel, PredictsClasses, ClassifierMixin, BaseEstimator):
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
    kernel : {"rbf", "linear"}
        Gaussian :math:`\exp(-v \lVert x - x' \rVert^2)`, or scalar product; on features scaled to [0, 1].
    width : float, "scale" or "median"
        Width of the Gaussian: v itself, 1 / (features x variance), or 1 / (2 m^2) with the median distance m of rows.
    ridge : float
        The price :math:`\rho` of the squared norm, relative to that of errors at labels: the usual machine's C is
        :math:`1 / (2 \rho)`. The paper's :math:`\gamma_A` is :math:`\rho / l`.
    gamma : float
        Price of differences along edges, relative to that of errors at labels; 0 is the usual support vector machine.
        The paper's :math:`\gamma_I` is :math:`\gamma n^2 / l`. Both defaults are those of its experiments on digits.
    n_neighbors, perplexity, neighbors, mutual, graph_cache, unlabeled
    n_jobs
        Threads of the search for neighbours: None for one, -1 for all cores.
    random_state
        Seed of approximate neighbours; exact ones, the default in small tables, need none.

    Attributes
    ----------
    classes_
    dual_coef_ : ndarray of shape (n_points, n_machines)
        The coefficients :math:`\alpha`; one column for two classes, else one for each class.
    intercept_ : ndarray of shape (n_machines,)
        The biases.
    points_ : ndarray of shape (n_points, n_features)
        The distinct training rows of positive weight, scaled and sorted, that the coefficients belong to.
    scaling_
    width_ : float
        The width of the Gaussian.
    transduction_
    objective_ : float
        The objective, summed over the machines.
    status_ : {"optimal", "unproven"}
        "unproven" if a dual could not be solved to tolerance, which a warning says.
    reason_, solve_time_
    trace_
        Columns "seconds" and "objective", one row.
    random_state_, record_, n_features_in_, feature_names_in_

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

    kernel: str = parameter(default="rbf", allowed=[StrOptions({"rbf", "linear"})], kw_only=False)
    width: float | str = parameter(
        default="scale", allowed=[Interval(Real, 0, None, closed="neither"), StrOptions({"scale", "median"})]
    )
    ridge: float = parameter(default=0.005, allowed=[Interval(Real, 0, None, closed="neither")])
    gamma: float = parameter(default=0.045, allowed=[Interval(Real, 0, None, closed="left")])
    unlabeled: Any = parameter(default=-1, allowed="no_validation")
    n_jobs: int | None = parameter(default=None, allowed=[Integral, None])
    random_state: Any = parameter(default=None, allowed=["random_state"])

    _found = "machine"

    def _trained(self, given: Given, prepared: Any, budget: Budget) -> tuple[FitRecord, dict[str, Any]]:
        from treewright.models.baselines.lap_svm_fit import train_lap_svm

        problem = semi_supervised_problem(given, self.unlabeled)
        neighbours = settings_of(self, GraphSettings)
        found = train_lap_svm(problem, given.graph, self, neighbours, self._conduct(), budget)
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
        rows = self._check_rows(X)  # says so if there is no fit
        values = self._machines.values(rows, self.scaling_)
        return values[:, 0] if values.shape[1] == 1 else values

    def _class_numbers(self, rows: FloatArray) -> IntArray:
        from treewright.models.baselines.lap_svm_fit import LapSVMMachines

        return LapSVMMachines.decided(self._machines.values(rows, self.scaling_))

    @property
    def _machines(self) -> LapSVMMachines:
        from treewright.models.baselines.lap_svm_fit import LapSVMMachines

        return LapSVMMachines(self.points_, self.dual_coef_, self.intercept_, self.kernel, self.width_)
