"""SVM1-ODT as a scikit-learn classifier."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from sklearn.utils._param_validation import Interval, StrOptions

from treewright.core.arrays import IntArray
from treewright.core.budget import Budget
from treewright.data.columns_checked import listing
from treewright.estimators.class_weights import ClassWeighted
from treewright.estimators.mixed import MixedModel, mixed_problem
from treewright.estimators.model import Given, SolvedModel, settings_of
from treewright.estimators.parameters import estimator, parameter
from treewright.estimators.record_files import is_number, whole_number
from treewright.estimators.tree_model import TreeClassifier
from treewright.exceptions import ModelFileError
from treewright.optimize.record import FitRecord
from treewright.tree import Tree

if TYPE_CHECKING:
    from treewright.optimize.conduct import Conduct


__all__ = ["SVM1ODTClassifier"]

_PRICES = ("epsilon", "alpha_1", "alpha_2")
_PRICE = [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})]


@estimator
class SVM1ODTClassifier(ClassWeighted, MixedModel, SolvedModel, TreeClassifier):
    r"""Optimal tree of 1-norm support vector machines, with categories, missing values and a choice of rows (SVM1-ODT).

    Minimizes

    .. math::
        \sum_i w_i [\text{row } i \text{ misclassified}]
        + \alpha_1 \sum_i w_i \sum_{b \text{ on the way of } i} [\epsilon - |g_b - h_b^\top x_i|]^+
        + \alpha_2 \sum_b \lVert h_b \rVert_1

    over the trees of a depth whose splits are hyperplanes :math:`h_b^\top x \le g_b` of the numerical features, scaled
    to [0, 1], or sets of levels of one categorical feature, which cost :math:`\alpha_2` (Zhu, Murali, Phan, Nguyen,
    Kalagnanam 2020). No value :math:`g_b - h_b^\top x_i` is beyond [-1, 1], so that :math:`\epsilon` is a margin: rows
    nearer to a split on their way than that pay for it, whichever side is theirs. Each split has a side for rows that
    lack a value. With weights, :math:`\alpha_2` is per weight of one row, as in :class:`TAOClassifier`, and multiplied
    by it. The fitted tree is in the units of the data.

    A search (CART, balanced and alternating starts, exact moves of single splits, wandering trees, linear programs)
    finds a good tree on all rows. Branch and bound improves on it and bounds it, on all rows or on those that are worth
    it; a bound for some rows holds for all. Search, and branch and bound where there is time to write the program, then
    go on with all rows: a selection never hurts.

    Parameters
    ----------
    max_depth
    epsilon : float or "auto"
        The margin :math:`\epsilon`, from 1e-4 to 1: half the width of the band around a split in which rows pay, where
        the farthest row is at distance 1. "auto" is 0.05, or chosen by cross-validation among finer ones where rows far
        off leave little of the range to all others: where the middle half of the rows takes less than a fifth of it in
        most features, or much less in any; and of 500 distinct rows or more.
    alpha_1 : float or "auto"
        Price of the margin, ``alpha_1 * epsilon >= 1``: a row on a split pays that many errors. With less, a row in the
        margin would be cheaper than an error. "auto" is ``1 / epsilon``. 0, together with ``alpha_2=0``, makes the
        margin hard: no row is within it, and errors are all that counts.
    alpha_2 : float or "auto"
        Price of the 1-norm of splits, in errors: larger is sparser, smaller, and has wider margins. "auto" is chosen on
        the training rows by cross-validation among 2, 1, 0.5, 0.25, 0.12, 0.06 and 0.02, each divided by `epsilon`
        (weaker ones for margins below 0.05, the last 0.4): the one with the least errors, the largest of several;
        the first where none has clearly less than a single leaf. Without time for that it is the fourth.
    selection : {"auto", "hull", "balanced", "layers"} or None
        Rows for branch and bound. "hull": of the rows of a class in a leaf of the search's tree those that others are
        convex combinations of, and those near to splits (the paper's Algorithm 1); "balanced": few rows with many
        between them (Algorithm 2); "layers": first, with half of the time, trees from the root down, each subtree
        trained on rows selected again at its node, then as "hull"; None: all. "auto" is "hull" where the program of
        all rows would be too large, else None.
    max_iter : int
        Rounds of selection; before the last one, trees are trained on rows chosen by the tree of the round before, with
        weights that let no round lose accuracy where margins are hard and solves optimal (Algorithm 3). Without meaning
        if no rows are selected.
    categorical_features, class_weight, solver, time_limit, gap
    n_jobs : int or None
        Threads of the search, the cross-validation and the solver: None for one, -1 for all cores.
    random_state, verbose, warm_start

    Attributes
    ----------
    tree_, classes_
    epsilon_, alpha_1_, alpha_2_ : float
        Margin and prices that were used.
    selected_ : ndarray of bool, shape (n_samples,)
        Rows that were selected for branch and bound; not in model files.
    n_iter_ : int
        Rounds of selection made.
    objective_, bound_ : float
        Objective of the tree on all rows, and proven lower bound of that of any tree.
    gap_, status_, reason_, solve_time_, trace_, random_state_, record_, n_features_in_, feature_names_in_
    feature_importances_
    categories_, has_missing_

    Examples
    --------
    >>> import warnings
    >>> from sklearn.datasets import load_wine
    >>> from treewright import SVM1ODTClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = SVM1ODTClassifier(alpha_2=1.0, time_limit=2, random_state=0)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # nothing is proven in so short a time
    ...     model = model.fit(X, y)
    >>> model.score(X, y) > 0.95, model.alpha_1_
    (True, 20.0)
    """

    max_depth: int = parameter(default=2, allowed=[Interval(Integral, 1, 12, closed="both")], kw_only=False)
    epsilon: float | str = parameter(
        default="auto", allowed=[Interval(Real, 1e-4, 1, closed="both"), StrOptions({"auto"})]
    )
    alpha_1: float | str = parameter(default="auto", allowed=_PRICE)
    alpha_2: float | str = parameter(default="auto", allowed=_PRICE)
    selection: str | None = parameter(
        default="auto", allowed=[StrOptions({"auto", "hull", "balanced", "layers"}), None]
    )
    max_iter: int = parameter(default=1, allowed=[Interval(Integral, 1, None, closed="left")])
    warm_start: Any = parameter(default=False, allowed=["boolean", Tree, TreeClassifier])

    def _trained(self, given: Given, prepared: Conduct, budget: Budget) -> tuple[FitRecord, dict[str, Any]]:
        from treewright.engine.leaf_probabilities import smoothed_tree
        from treewright.models.svm1odt.fit import SVM1ODTSettings, train_svm1odt

        plain = mixed_problem(given)
        problem = self._class_weighted(plain)
        start = self._given_mixed_tree(given.noted, None)
        with budget.stop_on_interrupt():
            found = train_svm1odt(problem, settings_of(self, SVM1ODTSettings), prepared, budget, start)
        fitted: dict[str, Any] = {f"{name}_": float(getattr(found.settings, name)) for name in _PRICES}
        fitted |= {
            "classes_": problem.classes,
            "tree_": smoothed_tree(found.tree, plain),
            "selected_": found.selected,
        }
        notes = [_squeezed_note(found.squeezed, given.noted.get("feature_names_in_"))]
        if self.alpha_2 == "auto" and len(problem.classes) > 1 and not len(found.tree.branches):
            notes.insert(0, _leaf_note(fitted["alpha_2_"]))
        record = replace(found.record, note=". ".join(filter(None, notes)))
        return record, fitted | {"n_iter_": found.n_iter}

    def _fitted_state(self) -> dict[str, Any]:
        prices = {name: float(getattr(self, f"{name}_")) for name in _PRICES}
        return super()._fitted_state() | prices | {"n_iter": int(self.n_iter_)}

    def _restore_state(self, state: dict[str, Any]) -> None:
        super()._restore_state(state)
        for name in _PRICES:
            if not is_number(state[name]) or state[name] < 0:
                raise ModelFileError(f"fit.{name} is {state[name]!r}, expected a number from 0 on")
            setattr(self, f"{name}_", float(state[name]))
        self.n_iter_ = whole_number(state, "n_iter")


def _leaf_note(price: float) -> str:
    """What to do where the price that was chosen leaves no split."""
    return (
        f"the tree is a single leaf: no split was found that is worth its price, alpha_2 = {price:.3g}, which was "
        "chosen on the training rows. A smaller alpha_2 makes splits"
    )


def _squeezed_note(features: IntArray, names: Any) -> str:
    """What to do about columns in which values far off leave no room for splits; empty where there are none."""
    if not len(features):
        return ""
    named = listing(features if names is None else [str(names[j]) for j in features.tolist()])
    return (
        f"values far off take up nearly all of the range of {'columns' if len(features) > 1 else 'column'} {named}: "
        "there is next to no room for splits where other rows are. Check these values, clip them, or give logarithms"
    )
