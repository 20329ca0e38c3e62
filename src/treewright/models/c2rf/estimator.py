"""C2RF as a scikit-learn classifier: an ensemble whose members are weighted so that its votes meet class totals."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.ensemble import VotingClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from treewright.core.arrays import FloatArray
from treewright.core.budget import Budget
from treewright.data import Problem
from treewright.data.rows import is_frame
from treewright.estimators.frames import handed_rows, hands_through, new_handed_rows
from treewright.estimators.model import Given, SolvedModel, new_rows
from treewright.estimators.parameters import estimator, parameter
from treewright.estimators.tables import model_of_own_columns
from treewright.estimators.totals_model import PricedModel, transduced_attributes
from treewright.exceptions import InvalidInputError, UnsupportedProgramError
from treewright.optimize.record import FitRecord

if TYPE_CHECKING:
    from treewright.optimize.conduct import Conduct


__all__ = ["C2RFClassifier"]


@estimator
class C2RFClassifier(PricedModel, SolvedModel, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    r"""Ensemble whose members are weighted so that its votes on the unlabelled rows meet class totals (C2RF).

    The ensemble is fitted on the labelled rows; its members then vote on the unlabelled ones. Without `class_prices`
    this is the paper's model (Burgard, Pinheiro and Schmidt 2025): weights in [l, u] for which the number of rows with
    a positive weighted vote is as near to the total as possible, proven by branch and bound. With `class_prices`
    the class is :math:`\arg\max_k \log p_k(x) + price_k` with :math:`p_k` the weighted share of the votes, each class
    having half a vote more than it got: the plain ensemble cut at the total is the case of equal weights. The total is
    then met almost always, and the freedom of the weights goes into staying near to those that out-of-bag rows wish
    for. This is more accurate, and the default. Probabilities are of these shares to the power with which labels are
    most likely by members that were not fitted on them (1, if the ensemble does not tell): about as often right as
    they say.

    Parameters
    ----------
    estimator : ensemble, list of classifiers or None
        An ensemble of scikit-learn whose ``estimators_`` are classifiers (random forests, extra trees, bagging,
        voting), a pipeline that ends with one, or a list of classifiers or of (name, classifier). Pipelines, lists and
        voting get frames as they are, and all that take them sparse matrices. None is a random forest of 200 trees;
        :func:`treewright.paper_forest` is the paper's.
    class_prices : bool
        Whether classes have prices; False is the paper's model.
    prefer : {"oob", "equal"}
        The weights to be near to: half-way between equal ones and the log-odds of the members' votes on labelled rows
        that they were not fitted on (equal ones, if the ensemble does not tell), or equal ones.
    min_weight, max_weight : float
        l and u, the bounds of the weights without `class_prices`; two consecutive whole numbers must be between them.
    formulation : {"tight", "paper"}
        With ``class_prices=False`` and two classes: "paper" is the printed program with the printed constant, without
        search and one-sided programs.
    preprocess, order_cuts : bool
        Parts of the program, see :class:`treewright.models.c2rf.objective.C2RF`. The paper's four variants are
        ``formulation="paper", order_cuts=False`` with the four settings of `preprocess` and `branching`.
    branching : bool or "auto"
        Whether variables have the paper's branching priorities, which HiGHS does not take: True is refused there.
        "auto" sets them where the solver takes them.
    prefit : bool
        Whether `estimator` is fitted already and taken as it is. In a grid search, which clones, wrap it into
        scikit-learn's ``FrozenEstimator``.
    unlabeled, solver
    time_limit
        Seconds for the whole fit. Fitting an `estimator` that is given is not interrupted; the forest of None has fewer
        trees where 200 would take more than half of the time, which ``reason_`` says.
    gap, n_jobs
    random_state
        Seed of the ensemble (if it has none), the search and the solver.
    verbose
    warm_start : bool
        Whether to begin with the weights of the last fit.

    Attributes
    ----------
    estimator_ : ensemble or None
        The fitted ensemble; None for a list.
    estimators_ : list
        Its members.
    weights_ : ndarray of shape (n_members,)
        Their weights, of mean 1.
    class_prices_ : dict
        Prices of the classes, an array in the order of ``classes_``, for each group; under the key None those for rows
        whose group is not known. All 0 with ``class_prices=False``.
    objective_ : float
        Rows that would have to change class for the totals to hold, counted: ``|#positive - lambda|`` in the paper.
    bound_ : float
        No weights have a smaller objective.
    transduction_
        Labels of all training rows: the given ones, and the weighted vote on unlabelled ones.
    transduction_proba_
    totals_
    feature_importances_ : ndarray of shape (n_features,)
        Weighted mean of those of the members, if they have any.
    classes_, gap_, status_, reason_, solve_time_, trace_, random_state_, record_, n_features_in_, feature_names_in_

    See Also
    --------
    TotalsClassifier : Any classifier cut at the totals, also within rows of equal votes.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.ensemble import ExtraTreesClassifier
    >>> from treewright import C2RFClassifier
    >>> X, truth = make_classification(300, random_state=0)
    >>> y = truth.copy()
    >>> y[40:] = -1
    >>> model = C2RFClassifier(ExtraTreesClassifier(50), random_state=0).fit(X, y, totals={1: 130})
    >>> int((model.transduction_[40:] == 1).sum()), model.status_
    (130, 'optimal')
    """

    estimator: Any = parameter(default=None, allowed=[HasMethods(["fit", "predict"]), list, tuple, None], kw_only=False)
    class_prices: bool = parameter(default=True, allowed=["boolean"])
    prefer: str = parameter(default="oob", allowed=[StrOptions({"oob", "equal"})])
    min_weight: float = parameter(default=1.0, allowed=[Interval(Real, 0, None, closed="neither")])
    max_weight: float = parameter(default=100.0, allowed=[Interval(Real, 0, None, closed="neither")])
    formulation: str = parameter(default="tight", allowed=[StrOptions({"tight", "paper"})])
    preprocess: bool = parameter(default=True, allowed=["boolean"])
    branching: bool | str = parameter(default="auto", allowed=["boolean", StrOptions({"auto"})])
    order_cuts: bool = parameter(default=True, allowed=["boolean"])
    prefit: bool = parameter(default=False, allowed=["boolean"])
    unlabeled: Any = parameter(default=-1, allowed="no_validation")
    warm_start: bool = parameter(default=False, allowed=["boolean"])

    _found = "weighting"

    def _prepared(self, weighted: bool) -> Conduct:
        if np.ceil(self.min_weight) + 1 > np.floor(self.max_weight):
            raise InvalidInputError(
                f"min_weight={self.min_weight} and max_weight={self.max_weight} leave no two whole numbers between them"
            )
        conduct: Conduct = super()._prepared(weighted)
        if not self.class_prices and self.branching != "auto" and self.branching:
            self._require_priorities(conduct)
        return conduct

    def _require_priorities(self, conduct: Conduct) -> None:
        """Refuse branching priorities on a solver that would leave them aside."""
        from treewright.solvers import Capability
        from treewright.solvers.registry import solvers_with

        if Capability.PRIORITY not in conduct.prover.capabilities:
            others = " or ".join(f"solver={name!r}" for name in solvers_with(Capability.MIP | Capability.PRIORITY))
            raise UnsupportedProgramError(
                f"branching=True sets branching priorities, which solver={self.solver!r} does not take; use {others}, "
                "or branching='auto'"
            )

    def _trained_on(self, problem: Problem, prepared: Conduct, budget: Budget) -> tuple[FitRecord, dict[str, Any]]:
        from treewright.models.c2rf.fit import train_c2rf

        settings = self
        start = getattr(self, "weights_", None) if self.warm_start else None
        with budget.stop_on_interrupt():
            found = train_c2rf(problem, self.estimator, self.prefit, settings, prepared, budget, start)
        fitted = {
            "_members": found.members,
            "estimator_": found.members.ensemble,
            "estimators_": [member.classifier for member in found.members.members],
            "weights_": found.weights,
            "_sharpness": found.sharpness,
            **self._fitted_prices(found.prices, found.shifts, found.shares),
        }
        return found.record, fitted | transduced_attributes(problem, found.numbers)

    @property
    def feature_importances_(self) -> FloatArray:
        """Weighted mean of the members' importances."""
        check_is_fitted(self)
        total = np.zeros(self.n_features_in_)
        for weight, member in zip(self.weights_, self._members.members, strict=True):
            if not hasattr(member.classifier, "feature_importances_"):
                raise AttributeError(f"{type(member.classifier).__name__} has no feature_importances_")
            own = slice(None) if member.features is None else member.features
            total[own] += weight * member.classifier.feature_importances_
        return total / self.weights_.sum()

    def _class_scores(self, X: ArrayLike) -> FloatArray:
        from treewright.models.c2rf.votes import c2rf_vote_shares

        rows = self._given_rows(X)  # says so if there is no fit
        return np.asarray(np.log(c2rf_vote_shares(self._members.votes(rows), self.weights_, len(self.classes_))))

    # ------------------------------------------------------------------ rows that are handed through

    def _hands_through(self, X: Any) -> bool:
        """Members of other ensembles get arrays, whatever the ensemble was given."""
        kept = isinstance(self.estimator, list | tuple | Pipeline | VotingClassifier)
        if isinstance(self.estimator, list | tuple):
            return is_frame(X) or (sparse.issparse(X) and bool(get_tags(self).input_tags.sparse))
        return (kept or sparse.issparse(X)) and hands_through(self.estimator, X)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        given = self.estimator if isinstance(self.estimator, list | tuple) else [self.estimator]
        members = [item[1] if isinstance(item, tuple) else item for item in given]
        kinds = [m for m in members if hasattr(m, "__sklearn_tags__")]
        tags.input_tags.sparse = bool(kinds) and all(get_tags(member).input_tags.sparse for member in kinds)
        return tags

    def _checked_rows(self, given: Given) -> Given:
        return handed_rows(self, given) if self._hands_through(given.X) else super()._checked_rows(given)

    def _given_rows(self, X: ArrayLike) -> Any:
        check_is_fitted(self)
        own = model_of_own_columns(self, X)
        if own is not None:
            return own[0]._given_rows(own[1])
        return new_handed_rows(self, X) if self._hands_through(X) else new_rows(self, X)
