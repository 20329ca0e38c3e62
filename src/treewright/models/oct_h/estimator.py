"""OCT-H as a scikit-learn classifier."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from treewright.core.budget import Budget
from treewright.data.scaling import LEAST_MARGIN
from treewright.estimators.model import Given, SolvedModel
from treewright.estimators.parameters import estimator, parameter
from treewright.estimators.problems import supervised_problem
from treewright.estimators.tree_model import TreeClassifier
from treewright.optimize.record import FitRecord
from treewright.tree import Tree

if TYPE_CHECKING:
    from treewright.optimize.conduct import Conduct


__all__ = ["OCTHClassifier"]


@estimator
class OCTHClassifier(SolvedModel, TreeClassifier):
    r"""Optimal classification tree with hyperplane splits (OCT-H).

    Minimizes

    .. math:: \frac{1}{\hat L} \sum_i w_i [\text{row } i \text{ misclassified}] + \alpha \sum_{t,j} s_{jt}

    over the trees of a depth whose splits are hyperplanes, where :math:`\hat L` is the error of the majority class and
    :math:`s_{jt}` says whether split t uses feature j (Bertsimas and Dunn 2017). Features are scaled to [0, 1] inside;
    the fitted tree is in the units of the data.

    A search (CART, oblique greedy trees, alternating optimization, random walks of trees) finds a good tree first. If
    that tree meets a bound that the data alone gives, it is optimal without a solve; otherwise the rest of the time
    goes into branch and bound.

    Parameters
    ----------
    max_depth
    complexity : float
        The price alpha of a feature in a split, as a share of the majority-class error.
    min_samples_leaf : int or float
        Least number of rows in a leaf (int), or share of the rows (float). Rows count once whatever their weight.
    margin : float or None
        Gap mu between the two sides of a split, for features in [0, 1] and weights of 1-norm 1: from 1e-4, below which
        a solver's tolerances blur it, to 0.5. None takes what n distinct rows leave room for,
        ``max(1e-4, min(0.005, 1 / (2 n)))``; the paper has 0.005, which more than a few hundred rows on a continuous
        scale do not leave anywhere.
    formulation : {"tight", "paper"}
        The program for branch and bound; "paper" is the printed one, and then the search is left out: branch and bound
        starts from the better of CART and the tree that is given.
    solver, time_limit, gap, n_jobs, random_state, verbose, warm_start

    Attributes
    ----------
    tree_, classes_, objective_, bound_, gap_, status_, reason_, solve_time_, trace_, random_state_, record_
    n_features_in_
    feature_names_in_
    feature_importances_

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from treewright import OCTHClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = OCTHClassifier(max_depth=2, random_state=0).fit(X, y)
    >>> model.status_, model.objective_, model.score(X, y)
    ('optimal', 0.0, 1.0)
    """

    max_depth: int = parameter(default=2, allowed=[Interval(Integral, 1, 12, closed="both")], kw_only=False)
    complexity: float = parameter(default=0.0, allowed=[Interval(Real, 0, None, closed="left")])
    min_samples_leaf: float = parameter(
        default=1, allowed=[Interval(Integral, 1, None, closed="left"), Interval(RealNotInt, 0, 0.5, closed="right")]
    )
    margin: float | None = parameter(default=None, allowed=[Interval(Real, LEAST_MARGIN, 0.5, closed="both"), None])
    formulation: str = parameter(default="tight", allowed=[StrOptions({"tight", "paper"})])
    warm_start: Any = parameter(default=False, allowed=["boolean", Tree, TreeClassifier])

    def _trained(self, given: Given, prepared: Conduct, budget: Budget) -> tuple[FitRecord, dict[str, Any]]:
        from treewright.engine.leaf_probabilities import smoothed_tree
        from treewright.models.oct_h.fit import train_oct_h

        problem = supervised_problem(given)
        start = self._given_tree(problem.n_features)
        with budget.stop_on_interrupt():
            found = train_oct_h(problem, self, prepared, budget, start)
        return found.record, {"classes_": problem.classes, "tree_": smoothed_tree(found.tree, problem, thorough=True)}
