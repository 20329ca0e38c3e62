"""OCT as a scikit-learn classifier."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from treewright.core.budget import Budget
from treewright.estimators.mixed import MixedModel, mixed_problem
from treewright.estimators.model import Given, SolvedModel
from treewright.estimators.parameters import estimator, parameter
from treewright.estimators.tree_model import TreeClassifier
from treewright.optimize.record import FitRecord
from treewright.tree import Tree

if TYPE_CHECKING:
    from treewright.optimize.conduct import Conduct


__all__ = ["OCTClassifier"]


@estimator
class OCTClassifier(MixedModel, SolvedModel, TreeClassifier):
    r"""Optimal classification tree with splits by one feature (OCT), solved exactly.

    Minimizes

    .. math:: \frac{1}{\hat L} \sum_i w_i [\text{row } i \text{ misclassified}] + \alpha \cdot \text{number of splits}

    over the trees of a depth whose splits use one feature each, where :math:`\hat L` is the error of the majority class
    (Bertsimas and Dunn 2017).

    The splits are: a threshold of a number, with rows that lack the value on either side or alone on one; any set of
    the levels of a category of which at most 6 occur, missing values being one more level. Of a category with more
    levels: one level against the rest, or the levels up to some share of a class, in the order of their shares among
    all training rows. "optimal" is about these splits, the same at every node.

    The search branches over features and thresholds, with the last two levels solved by sweeps over sorted rows, and
    gives up thresholds that cannot be better: the errors of neighbouring thresholds differ by the rows between them at
    most. Depth 2 is a matter of milliseconds for hundreds of rows and of seconds for a hundred thousand, depth 3 of
    seconds for hundreds of rows. Where time is over, the best tree so far is returned with a valid bound.

    Parameters
    ----------
    max_depth
    complexity : float
        The price alpha of a split, as a share of the majority-class error.
    min_samples_leaf : int or float
        Least number of rows in a leaf (int), or share of the rows (float). Rows count once whatever their weight.
    method : {"auto", "search", "mip"}
        "search": the exact search. "mip": the mixed-integer program of the paper in `solver`, from the tree of CART, to
        compare with; it proves nothing but small tables. "auto" is "search".
    categorical_features
    solver : {"highs", "scip", "gurobi"}
        Solver of the mixed-integer program; without meaning for the search.
    time_limit, gap
    n_jobs : int or None
        Threads of the solver: None for one, -1 for all cores. The search takes one.
    random_state : int, RandomState or None
        Seed of the solver; nothing in the search is random.
    verbose, warm_start

    Attributes
    ----------
    tree_, classes_, objective_, bound_, gap_, status_, reason_, solve_time_, trace_, random_state_, record_
    n_features_in_
    feature_names_in_, categories_, has_missing_
    feature_importances_

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from treewright import OCTClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = OCTClassifier(max_depth=2).fit(X, y)
    >>> model.status_, int((model.predict(X) != y).sum())
    ('optimal', 6)
    """

    max_depth: int = parameter(default=2, allowed=[Interval(Integral, 1, 12, closed="both")], kw_only=False)
    complexity: float = parameter(default=0.0, allowed=[Interval(Real, 0, None, closed="left")])
    min_samples_leaf: float = parameter(
        default=1, allowed=[Interval(Integral, 1, None, closed="left"), Interval(RealNotInt, 0, 0.5, closed="right")]
    )
    method: str = parameter(default="auto", allowed=[StrOptions({"auto", "search", "mip"})])
    warm_start: Any = parameter(default=False, allowed=["boolean", Tree, TreeClassifier])

    def _trained(self, given: Given, prepared: Conduct, budget: Budget) -> tuple[FitRecord, dict[str, Any]]:
        from treewright.engine.leaf_probabilities import smoothed_tree
        from treewright.models.oct.fit import train_oct

        problem = mixed_problem(given)
        start = self._given_mixed_tree(given.noted, None)
        with budget.stop_on_interrupt():
            found = train_oct(problem, self, prepared, budget, start)
        return found.record, {"classes_": problem.classes, "tree_": smoothed_tree(found.tree, problem)}
