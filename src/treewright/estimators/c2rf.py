"""C2RF as a scikit-learn classifier: an ensemble whose members are weighted so that its votes meet class totals."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from treewright.budget import Budget
from treewright.data import Problem, weight_unit
from treewright.estimators._ensemble import Members, fit_ensemble
from treewright.estimators._groups import PricedModel, prices_of
from treewright.estimators._input import new_rows, semi_supervised_problem
from treewright.estimators._reweight import Reweighted, Reweighting, reweight
from treewright.estimators._solved import SolvedModel
from treewright.exceptions import InvalidInputError
from treewright.search.vote_cut import vote_shares, wished_weights
from treewright.tree import FloatArray, IntArray

__all__ = ["C2RFClassifier"]


class C2RFClassifier(SolvedModel, PricedModel, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    r"""Ensemble whose members are weighted so that its votes on the unlabelled rows meet class totals (C2RF).

    The ensemble is fitted on the labelled rows; its members then vote on the unlabelled ones. With ``threshold=False``
    this is the paper's model (Burgard, Pinheiro and Schmidt 2025): weights in [l, u] for which the number of rows with
    a positive weighted vote is as near to the total as possible, proven by branch and bound. With ``threshold=True``
    the class is :math:`\arg\max_k \log p_k(x) + price_k` with :math:`p_k` the weighted share of the votes, each class
    having half a vote more than it got: the plain ensemble cut at the total is the case of equal weights. The total is
    then met almost always, and the freedom of the weights goes into staying near to those that out-of-bag rows wish
    for. This is more accurate, and the default.

    Parameters
    ----------
    estimator : ensemble, list of classifiers or None, default=None
        An ensemble of scikit-learn whose ``estimators_`` are classifiers (random forests, extra trees, bagging,
        voting), or a list of classifiers or of (name, classifier). None is a random forest of 200 trees;
        :func:`treewright.paper_forest` is the paper's.
    threshold : bool, default=True
        Whether prices are free; False is the paper's model.
    prefer : {"oob", "equal"}, default="oob"
        The weights to be near to: half-way between equal ones and the log-odds of the members' votes on labelled rows
        that they were not fitted on (equal ones, if the ensemble does not tell), or equal ones.
    min_weight, max_weight : float, default=1.0, 100.0
        l and u, the bounds of the weights with ``threshold=False``; two consecutive whole numbers must be between them.
    formulation : {"tight", "paper"}, default="tight"
        With ``threshold=False`` and two classes: "paper" is the printed program with the printed constant, without
        search and one-sided programs.
    preprocess, branching, order_cuts : bool, default=True
        Parts of the program, see :class:`treewright.formulations.C2RF`. The paper's four variants are
        ``formulation="paper", order_cuts=False`` with the four settings of the other two.
    prefit : bool, default=False
        Whether `estimator` is fitted already and taken as it is. In a grid search, which clones, wrap it into
        scikit-learn's ``FrozenEstimator``.
    unlabeled : label, default=-1
        Mark of unlabelled rows in y; NaN and None are marks too.
    solver : {"highs", "scip", "gurobi"}, default="highs"
        Solver of the mixed-integer program.
    time_limit : float or None, default=60.0
        Seconds for the whole fit; fitting the ensemble is not interrupted.
    gap : float, default=1e-4
        Relative gap between objective and bound that counts as optimal.
    n_jobs : int or None, default=None
        Threads of the solver: None for one, -1 for all cores.
    random_state : int, RandomState or None, default=None
        Seed of the ensemble (if it has none), the search and the solver.
    verbose : int, default=0
        Above 0, progress goes to standard error.
    warm_start : bool, default=False
        Whether to begin with the weights of the last fit.

    Attributes
    ----------
    estimator_ : ensemble or None
        The fitted ensemble; None for a list.
    estimators_ : list
        Its members.
    weights_ : ndarray of shape (n_members,)
        Their weights, of mean 1.
    thresholds_ : dict
        Prices of the classes, an array in the order of ``classes_``, for each group; under the key None those for rows
        whose group is not known. All 0 with ``threshold=False``.
    objective_ : float
        Rows that would have to change class for the totals to hold, counted: ``|#positive - lambda|`` in the paper.
    bound_ : float
        No weights have a smaller objective.
    transduction_ : ndarray of shape (n_samples,)
        Labels of all training rows: the given ones, and the weighted vote on unlabelled ones.
    totals_ : list of dict
        Group, class, low, high, reached and deviation, for each group and class; empty without totals.
    feature_importances_ : ndarray of shape (n_features,)
        Weighted mean of those of the members, if they have any.
    classes_, gap_, status_, solve_time_, trace_, n_features_in_, feature_names_in_
        As for every solved model.

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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SolvedModel._parameter_constraints,
        "estimator": [HasMethods(["fit", "predict"]), list, tuple, None],
        "threshold": ["boolean"],
        "prefer": [StrOptions({"oob", "equal"})],
        "min_weight": [Interval(Real, 0, None, closed="neither")],
        "max_weight": [Interval(Real, 0, None, closed="neither")],
        "formulation": [StrOptions({"tight", "paper"})],
        "preprocess": ["boolean"],
        "branching": ["boolean"],
        "order_cuts": ["boolean"],
        "prefit": ["boolean"],
        "unlabeled": "no_validation",
        "warm_start": ["boolean"],
    }
    _solved_noun = "weighting"

    def __init__(
        self,
        estimator: Any = None,
        *,
        threshold: bool = True,
        prefer: str = "oob",
        min_weight: float = 1.0,
        max_weight: float = 100.0,
        formulation: str = "tight",
        preprocess: bool = True,
        branching: bool = True,
        order_cuts: bool = True,
        prefit: bool = False,
        unlabeled: Any = -1,
        solver: str = "highs",
        time_limit: float | None = 60.0,
        gap: float = 1e-4,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
    ) -> None:
        self.estimator = estimator
        self.threshold = threshold
        self.prefer = prefer
        self.min_weight = min_weight
        self.max_weight = max_weight
        self.formulation = formulation
        self.preprocess = preprocess
        self.branching = branching
        self.order_cuts = order_cuts
        self.prefit = prefit
        self.unlabeled = unlabeled
        self.solver = solver
        self.time_limit = time_limit
        self.gap = gap
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        totals: Any = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the ensemble on the labelled rows and weight its members by the totals.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Labelled and unlabelled rows.
        y : array-like of shape (n_samples,)
            Labels; unlabelled rows have the mark ``unlabeled``, NaN or None.
        sample_weight : array-like of shape (n_samples,) or None
            Weights of labelled rows, for ensembles that take them. Unlabelled rows always count once.
        totals : int, mapping or frame, or None
            What is known of the classes of the *unlabelled* rows: the number in ``classes_[1]``, ``{label: n}``,
            ``{label: (low, high)}``, ``{label: share}``, or with `groups` a mapping or frame of groups and classes.
        groups : array-like of shape (n_samples,) or None
            Group of each row, for totals by group.

        Returns
        -------
        C2RFClassifier
            The fitted estimator.
        """
        budget, solver = self._begin()
        if np.ceil(self.min_weight) + 1 > np.floor(self.max_weight):
            raise InvalidInputError(
                f"min_weight={self.min_weight} and max_weight={self.max_weight} leave no two whole numbers between them"
            )
        rows = self._check_fit_rows(X, y)
        problem = semi_supervised_problem(rows, y, sample_weight, self.unlabeled, totals, groups)
        seed = self._seed()
        with budget.stop_on_interrupt():
            members = fit_ensemble(self.estimator, problem, self.prefit, seed)
            self._check_classes(problem, members)
            votes = members.votes(problem.X[problem.unlabelled])
            task = Reweighting(
                votes=votes,
                totals=problem.totals,
                n_classes=problem.n_classes,
                wished=self._wished(problem, members),
                start=self._last_weights(len(members.members)),
                threshold=self.threshold,
                bounds=(float(self.min_weight), float(self.max_weight)),
                tight=self.formulation == "tight",
                preprocess=self.preprocess,
                branching=self.branching,
                order_cuts=self.order_cuts,
            )
            found = reweight(task, solver, budget, self.gap, self._threads, seed, self._progress_printer())
        self._finish(problem, members, votes, found, budget)
        return self

    def predict(self, X: ArrayLike, groups: ArrayLike | None = None) -> np.ndarray:
        """Predict the class of each row by the weighted votes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to classify.
        groups : array-like of shape (n_samples,) or None
            Group of each row, for a model with totals by group; None if it is not known.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels from ``classes_``.
        """
        best = self._scores(X, groups).argmax(axis=1)  # says so if there is no fit
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: ArrayLike, groups: ArrayLike | None = None) -> FloatArray:
        """Predict class probabilities: the weighted shares of the votes, times the exponential of the prices.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to classify.
        groups : array-like of shape (n_samples,) or None
            Group of each row, for a model with totals by group; None if it is not known.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Shares, columns in the order of ``classes_``.
        """
        scores = self._scores(X, groups)
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

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

    # ------------------------------------------------------------------ parts of a fit

    @staticmethod
    def _check_classes(problem: Problem, members: Members) -> None:
        """Refuse totals of a class that no member can vote for."""
        if problem.totals is None:
            return
        known = np.unique(np.concatenate([member.numbers for member in members.members]))
        for k in np.setdiff1d(np.arange(problem.n_classes), known):
            needed = int(problem.totals.low[:, k].sum())
            if needed > 0:
                raise InvalidInputError(
                    f"class {problem.classes[k].item()!r} has a total of at least {needed} rows, but no labelled row: "
                    "no member of the ensemble votes for it. TotalsClassifier and S2OCTClassifier take such totals"
                )

    def _wished(self, problem: Problem, members: Members) -> FloatArray:
        """Weights to be near to."""
        if self.prefer == "equal" or members.unseen is None:
            return np.ones(len(members.members))
        X, y, weight = members.labelled
        unit = weight_unit(problem.weight_labelled)
        return wished_weights(members.votes(X), y, weight / unit, members.unseen, problem.n_classes)

    def _last_weights(self, n_members: int) -> FloatArray | None:
        last = getattr(self, "weights_", None) if self.warm_start else None
        return last if last is not None and len(last) == n_members else None

    def _finish(self, problem: Problem, members: Members, votes: IntArray, found: Reweighted, budget: Budget) -> None:
        """Set the fitted attributes, and warn unless the optimum is proven."""
        weights = found.outcome.solution / found.outcome.solution.mean()
        totals = problem.totals
        names = [None] if totals is None or totals.groups == (None,) else list(totals.groups)
        thresholds = {name: prices for name, prices in zip(names, found.prices, strict=True)}
        thresholds.setdefault(None, found.pooled)
        numbers = problem.y.copy()
        group_of = np.zeros(len(votes), dtype=np.int64) if totals is None else totals.group_of
        scores = np.log(vote_shares(votes, weights, problem.n_classes)) + found.prices[group_of]
        numbers[problem.unlabelled] = scores.argmax(axis=1)
        fitted = {
            "_members": members,
            "estimator_": members.ensemble,
            "estimators_": [member.classifier for member in members.members],
            "weights_": weights,
            **self._fitted_prices(thresholds),
            "transduction_": problem.classes[numbers],
            "totals_": [] if totals is None else totals.table(numbers[problem.unlabelled], problem.classes),
        }
        self._set_fitted(found.outcome, problem.classes, budget, fitted)
        self._warn_unless_optimal(found.outcome.reason)

    def _scores(self, X: ArrayLike, groups: ArrayLike | None) -> FloatArray:
        rows = new_rows(self, X)
        shares = vote_shares(self._members.votes(rows), self.weights_, len(self.classes_))
        return np.asarray(np.log(shares) + prices_of(self.thresholds_, groups, len(rows)))
