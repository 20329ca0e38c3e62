"""Fair optimal trees as a scikit-learn classifier."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval

from treewright.core.arrays import IntArray
from treewright.core.budget import Budget
from treewright.data.columns_checked import numbered_groups
from treewright.estimators.model import Given, SolvedModel
from treewright.estimators.parameters import estimator, parameter
from treewright.estimators.problems import supervised_problem
from treewright.estimators.record_files import is_number
from treewright.estimators.tree_model import TreeClassifier
from treewright.exceptions import InvalidInputError, ModelFileError
from treewright.optimize.record import FitRecord
from treewright.tree import Tree

if TYPE_CHECKING:
    from treewright.optimize.conduct import Conduct


__all__ = ["FairOCTClassifier"]


@estimator
class FairOCTClassifier(SolvedModel, TreeClassifier):
    r"""Optimal classification tree that can be held to treat protected groups alike (Fair).

    Minimizes

    .. math:: \frac{1}{W} \sum_i w_i [\hat y_i \ne y_i] + \alpha\, \#splits
              + \lambda \sum_{a,c} |P(\hat y = c \mid a) - P(\hat y = c)|

    over the trees of a depth whose splits compare one feature with a threshold: the share of misclassified rows, a
    price for each split, and a price for the index of disparate impact, by how much the predictions of the protected
    groups a differ from those of all rows (Aghaei, Azizi and Vayanos 2019). Without ``fairness_weight`` it is a plain
    optimal tree. The group of a row is not a feature unless it is a column of X, too, and `predict` does not need it.
    Units of the features do not matter; thresholds lie midway between values.

    A search (CART, alternating optimization, restarts; labels of the leaves for errors and groups together) finds a
    good tree first. If that tree meets a bound that the data alone gives, it is optimal without a solve; otherwise the
    rest of the time goes into branch and bound.

    Parameters
    ----------
    max_depth
    complexity : float
        The price alpha of a split, as a share of the rows: one that saves fewer errors is not made. It is not in the
        paper.
    fairness_weight : float
        The price lambda of discrimination, which is 0 where all groups get the same shares of the classes and at most
        twice the number of groups. Above 0 the groups must be given to `fit`.
    solver, time_limit, gap, n_jobs, random_state, verbose, warm_start

    Attributes
    ----------
    tree_, classes_, objective_, bound_, gap_, status_, reason_, solve_time_, trace_, random_state_, record_
    discrimination_ : float
        The index of disparate impact of what the tree predicts for the training rows, where `fit` got the groups.
    n_features_in_, feature_names_in_
    feature_importances_

    Examples
    --------
    The best rule by one feature says "yes" to all of one group and to a quarter of the other; the best that treats both
    alike is by another feature:

    >>> from treewright import FairOCTClassifier
    >>> X = [[1, 0], [2, 0], [3, 1], [4, 1], [5, 0], [6, 1], [7, 0], [8, 1]]
    >>> y = ["no", "no", "no", "yes", "no", "yes", "yes", "yes"]
    >>> group = ["a", "a", "a", "a", "b", "b", "b", "b"]
    >>> for price in (0.0, 0.2):
    ...     model = FairOCTClassifier(1, fairness_weight=price).fit(X, y, protected=group)
    ...     print(model.score(X, y), model.discrimination_, model.export_text().splitlines()[0])
    0.875 1.5 if x0 <= 3.5:
    0.75 0.0 if x1 <= 0.5:
    """

    max_depth: int = parameter(default=2, allowed=[Interval(Integral, 1, 12, closed="both")], kw_only=False)
    complexity: float = parameter(default=0.0, allowed=[Interval(Real, 0, None, closed="left")])
    fairness_weight: float = parameter(default=0.0, allowed=[Interval(Real, 0, None, closed="left")])
    warm_start: Any = parameter(default=False, allowed=["boolean", Tree, TreeClassifier])

    _sometimes: ClassVar[tuple[str, ...]] = ("discrimination_",)

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        protected: ArrayLike | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels, at least two different ones.
        sample_weight : array-like of shape (n_samples,) or None
            Weights of the rows; 0 leaves a row out, 2 counts it twice.
        protected : array-like of shape (n_samples,) or None
            Protected group of each row: strings, numbers or bools. Groups by several attributes, sex and origin say,
            are named by both, "f, abroad".

        Returns
        -------
        estimator
            The fitted estimator.
        """
        return self._fit(Given(X, y, sample_weight, protected=protected))

    def _trained(self, given: Given, prepared: Conduct, budget: Budget) -> tuple[FitRecord, dict[str, Any]]:
        from treewright.engine.leaf_probabilities import smoothed_tree
        from treewright.models.fair.fit import train_fair

        problem = supervised_problem(given)
        protected = self._groups(given.protected, len(problem.y))
        start = self._given_tree(problem.n_features)
        with budget.stop_on_interrupt():
            found = train_fair(problem, protected, self, prepared, budget, start)
        fitted: dict[str, Any] = {"classes_": problem.classes, "tree_": smoothed_tree(found.tree, problem)}
        return found.record, fitted if protected is None else fitted | {"discrimination_": found.discrimination}

    def _groups(self, protected: ArrayLike | None, n_rows: int) -> IntArray | None:
        """Number of the protected group of each row."""
        if protected is not None:
            missing = f"{n_rows} rows have no protected group, the first is row {{}}"
            return numbered_groups(protected, n_rows, f"X has {n_rows} rows", missing, InvalidInputError, "protected")[
                1
            ]
        if self.fairness_weight > 0:
            raise InvalidInputError(
                f"fairness_weight={self.fairness_weight} is a price for unlike treatment of groups; say which group "
                "each row belongs to: fit(X, y, protected=...)"
            )
        return None

    def _fitted_state(self) -> dict[str, Any]:
        return super()._fitted_state() | {"discrimination": getattr(self, "discrimination_", None)}

    def _restore_state(self, state: dict[str, Any]) -> None:
        super()._restore_state(state)
        value = state["discrimination"]
        if value is None:
            return
        if not is_number(value) or value < 0:
            raise ModelFileError(f"fit.discrimination is {value!r}, expected a number from 0 on, or null")
        self.discrimination_ = float(value)
