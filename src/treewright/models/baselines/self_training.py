"""Self-training of any regressor of scikit-learn."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone, is_regressor
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import Tags, get_tags
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.validation import has_fit_parameter

from treewright.core.arrays import FloatArray
from treewright.core.budget import Budget
from treewright.data import Sample
from treewright.estimators.model import Given, Model, PredictsOutputs, partly_known_targets, wrapped_kind
from treewright.estimators.parameters import estimator, parameter
from treewright.exceptions import InvalidInputError
from treewright.optimize.record import FitRecord

__all__ = ["SelfTrainingRegressor"]


@estimator
class SelfTrainingRegressor(Model, PredictsOutputs, RegressorMixin, MetaEstimatorMixin, BaseEstimator):
    """Any regressor, trained on its own predictions of the unlabelled rows (Yarowsky 1995).

    The estimator is fitted on the labelled rows and predicts the others; it is fitted again on all rows, with these
    predictions as targets of the unlabelled ones, and so on until the predictions settle. It is the simplest
    semi-supervised regression, a baseline, and the counterpart of scikit-learn's ``SelfTrainingClassifier``. There is
    no measure of confidence for a numerical prediction, so all unlabelled rows take part from the first round on.

    Parameters
    ----------
    estimator : regressor or None
        A regressor of scikit-learn, for instance ``DecisionTreeRegressor(max_depth=8)`` or ``TAORegressor()``; it gets
        arrays of floats. None is a fully grown ``DecisionTreeRegressor()``. Where its ``random_state`` is None it is
        seeded from ours.
    max_iter : int
        Most fits; 1 is the estimator on the labelled rows alone.
    tol : float
        Fitting ends when predictions of unlabelled rows change by this much or less: the root of the mean squared
        change, in standard deviations of the known targets (of the output in which it is largest).
    unlabeled_weight : float
        Weight of an unlabelled row, relative to a labelled one. Other values than 1 need an estimator whose ``fit``
        takes ``sample_weight``.
    unlabeled : float
        Mark of missing targets in y; NaN and None are marks too. (-1, the mark of classifiers, is a target here.)
    random_state
        Seed of the estimator. Every round has the same.

    Attributes
    ----------
    estimator_ : regressor
        The estimator of the last round.
    transduction_ : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        Targets of all training rows: those given, and predictions of ``estimator_`` where there is none.
    n_iter_ : int
        Fits, the first on the labelled rows included.
    reason_
        Why it ended: the predictions did not change any more, all fits are made, or all rows have targets.
    status_ : {"local"}
        Always the usual end.
    solve_time_
    trace_
        Columns "seconds" and "change", a row a fit on predictions; there is no objective.
    random_state_, record_, n_features_in_, feature_names_in_

    Notes
    -----
    A tree that is not limited in depth reproduces its own predictions, so self-training changes little: limit its
    depth or the size of its leaves. Of several outputs only the missing ones are filled; the first fit is on the rows
    that have all. The default estimator sees each distinct row once with the sum of its weights, in an order that does
    not depend on the file (tables of more than a million cells are taken as they come).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from treewright import SelfTrainingRegressor
    >>> X = np.arange(8.0)[:, None]
    >>> y = [0.0, np.nan, np.nan, 1.0, 5.0, np.nan, np.nan, 6.0]
    >>> model = SelfTrainingRegressor(DecisionTreeRegressor(max_depth=1)).fit(X, y)
    >>> model.predict([[0.0], [7.0]]).tolist(), model.reason_
    ([0.5, 5.5], 'the predictions did not change any more')
    """

    estimator: Any = parameter(
        default=None, allowed=[HasMethods(["fit", "predict", "get_params", "set_params"]), None], kw_only=False
    )
    max_iter: int = parameter(default=10, allowed=[Interval(Integral, 1, None, closed="left")])
    tol: float = parameter(default=1e-3, allowed=[Interval(Real, 0, None, closed="left")])
    unlabeled_weight: float = parameter(default=1.0, allowed=[Interval(Real, 0, None, closed="neither")])
    unlabeled: float | None = parameter(default=np.nan, allowed=[Real, None])
    random_state: Any = parameter(default=None, allowed=["random_state"])

    def _prepared(self, weighted: bool) -> tuple[Any, bool]:
        weighted = weighted or self.unlabeled_weight != 1
        return self._checked_estimator(weighted), weighted

    def _trained(self, given: Given, prepared: Any, budget: Budget) -> tuple[FitRecord, dict[str, Any]]:
        from treewright.models.baselines.self_training_fit import SelfTrainedRegressor, train_on_own_predictions
        from treewright.teachers.ensemble import seed_where_unset

        (estimator, weighted), default = prepared, self.estimator is None
        Y, missing, flat = partly_known_targets(self, given, self.unlabeled)
        weight = np.where(missing.any(axis=1), self.unlabeled_weight, 1.0) * given.checked_weight()
        seed_where_unset(estimator, self._seed())
        fitter = SelfTrainedRegressor(estimator, merged=default, weighted=default or weighted, flat=flat)
        found = train_on_own_predictions(Sample.of(given.X, Y, weight), missing, fitter, self, budget)
        return found.record, {
            "estimator_": estimator,
            "n_iter_": found.n_iter,
            "transduction_": found.targets[:, 0] if flat else found.targets,
        }

    def _outputs(self, rows: Any) -> FloatArray:
        return np.asarray(self.estimator_.predict(rows))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(DecisionTreeRegressor() if self.estimator is None else self.estimator)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.positive_only = inner.input_tags.positive_only
        tags.target_tags.multi_output = inner.target_tags.multi_output
        tags.target_tags.single_output = inner.target_tags.single_output
        tags.target_tags.positive_only = inner.target_tags.positive_only
        tags.non_deterministic = inner.non_deterministic
        if inner.regressor_tags is not None:
            tags.regressor_tags.poor_score = inner.regressor_tags.poor_score
        return tags

    def _checked_estimator(self, weighted: bool) -> Any:
        """An unfitted copy of the estimator, if it can do what is needed."""
        if self.estimator is None:
            return DecisionTreeRegressor()
        wanted = "regressor of scikit-learn; for classes use its SelfTrainingClassifier"
        kind = wrapped_kind(self.estimator, is_regressor, wanted)
        if weighted and not has_fit_parameter(self.estimator, "sample_weight"):
            raise InvalidInputError(f"{kind}.fit takes no sample_weight; leave it out and set unlabeled_weight=1")
        return clone(self.estimator)
