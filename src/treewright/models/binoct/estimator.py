"""BinOCT as a scikit-learn classifier."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

from sklearn.utils._param_validation import Interval

from treewright.core.budget import Budget
from treewright.estimators.model import Given, SolvedModel
from treewright.estimators.parameters import estimator, parameter
from treewright.estimators.problems import supervised_problem
from treewright.estimators.tree_model import TreeClassifier
from treewright.optimize.record import FitRecord
from treewright.tree import Tree

if TYPE_CHECKING:
    from treewright.optimize.conduct import Conduct


__all__ = ["BinOCTClassifier"]


@estimator
class BinOCTClassifier(SolvedModel, TreeClassifier):
    r"""Optimal classification tree with thresholds in binary code (BinOCT).

    Minimizes the training errors

    .. math:: \sum_i w_i [\text{row } i \text{ misclassified}]

    over the trees of a depth whose splits compare one feature with a threshold (Verwer and Zhang 2019). The program has
    a binary variable for each bit of a threshold's number, and its rows are as many as features have values, not as
    there are rows of data. Units of the features do not matter; thresholds lie midway between values.

    A search (CART, alternating optimization, restarts) finds a good tree first. If that tree meets a bound that the
    data alone gives, it is optimal without a solve; otherwise the rest of the time goes into branch and bound. Of trees
    with equally few errors the smaller one is not preferred, but splits that change no prediction are dropped.

    Parameters
    ----------
    max_depth
    solver, time_limit, gap, n_jobs, random_state, verbose, warm_start

    Attributes
    ----------
    tree_, classes_
    objective_, bound_ : float
        Weight of the training rows that the tree misclassifies, and a proven lower bound for any tree.
    gap_, status_, reason_, solve_time_, trace_, random_state_, record_, n_features_in_, feature_names_in_
    feature_importances_

    Examples
    --------
    >>> from treewright import BinOCTClassifier
    >>> X = [[0, 3], [1, 1], [2, 2], [3, 0], [4, 1], [5, 2]]
    >>> model = BinOCTClassifier(max_depth=2, random_state=0).fit(X, ["a", "b", "b", "b", "a", "a"])
    >>> model.status_, model.objective_
    ('optimal', 0.0)
    >>> print(model.export_text())
    if x0 <= 3.5:
        if x1 <= 2.5:
            b  (likely 66% b, 34% a; 3 rows in training: 100% b)
        else:
            a  (likely 54% a, 46% b; 1 row in training: 100% a)
    else:
        a  (likely 55% a, 45% b; 2 rows in training: 100% a)
    """

    max_depth: int = parameter(default=2, allowed=[Interval(Integral, 1, 12, closed="both")], kw_only=False)
    warm_start: Any = parameter(default=False, allowed=["boolean", Tree, TreeClassifier])

    def _trained(self, given: Given, prepared: Conduct, budget: Budget) -> tuple[FitRecord, dict[str, Any]]:
        from treewright.engine.leaf_probabilities import smoothed_tree
        from treewright.models.binoct.fit import train_binoct

        problem = supervised_problem(given)
        start = self._given_tree(problem.n_features)
        with budget.stop_on_interrupt():
            found = train_binoct(problem, self, prepared, budget, start)
        return found.record, {"classes_": problem.classes, "tree_": smoothed_tree(found.tree, problem)}
