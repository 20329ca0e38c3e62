"""The semi-supervised classification tree as a scikit-learn estimator."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from treewright.core.budget import Budget
from treewright.core.progress import note
from treewright.estimators.model import Given, TimedModel
from treewright.estimators.parameters import estimator, parameter
from treewright.estimators.problems import semi_supervised_problem
from treewright.estimators.tree_model import TreeClassifier
from treewright.optimize.record import FitRecord

__all__ = ["SSCTClassifier"]


@estimator
class SSCTClassifier(TimedModel, TreeClassifier):
    r"""Semi-supervised classification tree (SSCT): greedy splits that part labels and points alike.

    A node is split where its impurity falls most. The impurity of a set E of rows is that of its labelled rows
    :math:`E_l` and that of all its rows, relative to the training rows D:

    .. math:: I(E) = w \frac{Gini(E_l)}{Gini(D_l)} + \frac{1 - w}{p} \sum_{j=1}^p \frac{Var_j(E)}{Var_j(D)}

    (Levatic, Ceci, Kocev and Dzeroski 2017). The gain of a split is I(E) less that of the children, the first term
    weighted by their shares of the labelled rows, the second by their shares of all. The `supervision` w = 1 is a
    supervised tree (CART with the Gini index), 0 a clustering whose leaves are named by the labels in them.

    Parameters
    ----------
    max_depth : int or None
        Depth of the tree, None for no limit.
    supervision : float
        Part of the labels in the impurity, from 0 to 1. The paper chooses it by cross-validation on the labelled rows.
    label_shares : {"labelled", "all"}
        What weights the children's impurity of labels: their shares of the labelled rows, or of all rows, which is the
        formula :math:`I(E) - \sum_k |E_k| / |E| \, I(E_k)` to the letter. A child without labels has the impurity of
        labels of its parent there. With few labels the latter depends on where the unlabelled rows happen to go, with
        ``supervision=1`` it makes no difference, as then unlabelled rows are left out.
    min_samples_leaf : int
        Fewest rows, labelled or not, of a leaf.
    min_samples_split : int
        Fewest rows of a node that is split.
    max_features : int, float, "sqrt" or None
        Features drawn for each node: a number, a share, the root of their number, or all. The work for a node is rows
        times features times this.
    unlabeled
    time_limit
        Seconds for the whole fit. The tree grows level by level; what it has by then is returned.
    n_jobs
        Threads, over the features: None for one, -1 for all cores. The tree does not depend on it.
    random_state
        Seed of the features that are drawn; without `max_features` nothing is random.
    verbose

    Attributes
    ----------
    tree_
        The tree. Values of its nodes are weights of the classes among the labelled rows; a node without any has the
        label of its parent.
    classes_, transduction_
    objective_ : float
        Impurity of the leaves, its first term weighted by their shares of the labelled rows, its second by their shares
        of all; a single leaf has 1.
    status_
        How the fit ended; "local", the usual end, is a tree grown to its limits.
    reason_, solve_time_
    trace_
        Columns "seconds", "objective" and "n_leaves", level by level.
    random_state_, record_, n_features_in_, feature_names_in_
    feature_importances_

    Notes
    -----
    A node whose labelled rows have one class, or that has none, is not split: nothing below it would predict anything
    else. Other nodes are, as in CART, even where no split gains anything (classes like the fields of a chessboard).
    Constant features do not count in p. Splits are between distinct values of a feature, at their middle.
    A weight of 2 is a repeated row, for unlabelled rows too, except for the fewest rows of nodes, which count rows.

    Examples
    --------
    Two labels alone do not say where between them to cut; the unlabelled rows do.

    >>> from treewright import SSCTClassifier
    >>> X = [[0.0], [1.0], [2.0], [8.0], [9.0], [10.0]]
    >>> model = SSCTClassifier().fit(X, ["low", -1, -1, -1, "high", -1])
    >>> print(model.export_text())
    if x0 <= 5:
        low  (likely 62% low, 38% high; 1 row in training: 100% low)
    else:
        high  (likely 62% high, 38% low; 1 row in training: 100% high)
    """

    max_depth: int | None = parameter(
        default=8, allowed=[Interval(Integral, 1, None, closed="left"), None], kw_only=False
    )
    supervision: float = parameter(default=0.5, allowed=[Interval(Real, 0, 1, closed="both")])
    label_shares: str = parameter(default="labelled", allowed=[StrOptions({"labelled", "all"})])
    min_samples_leaf: int = parameter(default=1, allowed=[Interval(Integral, 1, None, closed="left")])
    min_samples_split: int = parameter(default=2, allowed=[Interval(Integral, 2, None, closed="left")])
    max_features: int | float | str | None = parameter(
        default=None,
        allowed=[
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="right"),
            StrOptions({"sqrt"}),
            None,
        ],
    )
    unlabeled: Any = parameter(default=-1, allowed="no_validation")

    def _trained(self, given: Given, prepared: Any, budget: Budget) -> tuple[FitRecord, dict[str, Any]]:
        from treewright.engine.leaf_probabilities import smoothed_tree
        from treewright.models.baselines.ssct_fit import train_ssct

        problem = semi_supervised_problem(given, self.unlabeled)
        with budget.stop_on_interrupt():
            found = train_ssct(problem, self, self._conduct(_level_told), budget)
        return found.record, {
            "tree_": smoothed_tree(found.tree, problem),
            "classes_": problem.classes,
            "transduction_": problem.classes[found.numbers],
        }


def _level_told(seconds: float, objective: float, leaves: float) -> None:
    note(objective=objective, detail=f"leaves {leaves:.0f}", step=True)
