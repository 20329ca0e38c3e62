"""TAO as scikit-learn estimators: trees by alternating optimization, for classes and for numbers."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils._param_validation import Interval, StrOptions

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.core.progress import note
from treewright.data import Sample
from treewright.data.columns_checked import refuse_dates
from treewright.estimators.class_weights import ClassWeighted, class_weighted
from treewright.estimators.mixed import MixedModel, levels_of_features
from treewright.estimators.model import Given, TimedModel
from treewright.estimators.parameters import estimator, parameter, parameters
from treewright.estimators.problems import FIT_TO_OTHERS, semi_supervised_problem, supervised_problem
from treewright.estimators.record_files import is_number, whole_number
from treewright.estimators.taught_model import TaughtModel
from treewright.estimators.tree_model import (
    TreeClassifier,
    TreeModel,
    TreeRegressor,
    labelled_in_leaves,
    rows_in_leaves,
)
from treewright.exceptions import ModelFileError
from treewright.optimize.record import FitRecord
from treewright.tree import Tree

if TYPE_CHECKING:
    from treewright.models.tao.fit import TAOFit

__all__ = ["TAOClassifier", "TAORegressor"]


_TEACHER = f"let a teacher label them, teacher='auto', or {FIT_TO_OTHERS}; if not, name another mark (unlabeled)"
"""What to do with rows without a label."""


@parameters
class TAOModel(MixedModel, TimedModel):
    r"""What both TAO estimators share: parameters, the start, the course of a fit.

    Parameters
    ----------
    max_depth : int
        Depth of the tree, at most 16.
    max_split_features : int or None
        Most features of a split: with 1 a split is a threshold of a single feature, with None any number of features
        may be weighed against each other. A subset of the levels of a category is one feature.
    init : {"auto", "balanced", "cart", "random"}
        Tree to start from: one of oblique splits along informative directions that halve their rows, CART, or a
        complete tree with random normals. CART is passed over where it would take more than half of `time_limit`.
        "auto" is "balanced", and "cart" where splits have one feature; where they have few, and on tables with
        categories or missing values, it is the best after a few passes of both and, up to depth 4, of trees below
        random subsets of categories.
    stretch : float
        After the passes, six more are made on the rows and copies of them, each pushed away from another row of its
        leaf by this share of their distance: a tree that fits its rows well errs on others close to its splits. They
        do not lower the objective of the rows, and mostly predict better; 0 leaves them out.
    max_iter : int
        Most passes over the tree.
    n_jobs : int or None
        Threads, over the nodes of a depth: None for one, -1 for all cores. The tree does not depend on it.
    random_state : int, RandomState or None
        Seed of the start and of the copies of `stretch`.
    warm_start : bool, Tree or fitted estimator
        Tree to start from; True goes on from the last fit. What is deeper than `max_depth` is cut off; a tree
        that is less deep gets no splits below its leaves, and one with splits on more features than allowed is refused.
        Only with ``stretch=0`` is the objective never above that of the start.

    Attributes
    ----------
    objective_ : float
        Objective of the tree, recomputed from the data; with `stretch`, other than the last one of `trace_`.
    alpha_ : float
        The price of a split that was used.
    n_iter_ : int
        Passes over the tree on the rows alone.
    status_ : {"local", "time_limit", "interrupted"}
        How the fit ended. "local" is the usual end: all passes are made, or no single node can be improved any more.
    trace_ : structured ndarray
        Columns "seconds", "objective" and "loss", a row for the start and for each pass.
    """

    max_depth: int = parameter(default=8, allowed=[Interval(Integral, 1, 16, closed="both")], kw_only=False)
    alpha: float | str = parameter(
        default="auto", allowed=[Interval(Real, 0, None, closed="left"), StrOptions({"auto"})]
    )
    max_split_features: int | None = parameter(default=None, allowed=[Interval(Integral, 1, None, closed="left"), None])
    init: str = parameter(default="auto", allowed=[StrOptions({"auto", "balanced", "cart", "random"})])
    stretch: float = parameter(default=0.25, allowed=[Interval(Real, 0, None, closed="left")])
    max_iter: int = parameter(default=20, allowed=[Interval(Integral, 1, None, closed="left")])
    warm_start: Any = parameter(default=False, allowed=["boolean", Tree, TreeModel])

    leaves = "constant"
    leaf_ridge = 0.1

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _trained_on(
        self, given: Given, y: Any, weight: FloatArray, n_classes: int | None, budget: Budget
    ) -> tuple[FitRecord, dict[str, Any]]:
        from treewright.models.tao.fit import train_tao

        rows, start = self._ready(given, y, weight)
        with budget.stop_on_interrupt():
            found = train_tao(rows, n_classes, self, self._conduct(_pass_told), budget, start)
        return found.record, _fitted(found)

    def _ready(self, given: Given, y: Any, weight: FloatArray) -> tuple[Sample, Tree | None]:
        """Rows and start."""
        start = self._given_mixed_tree(given.noted, self.max_split_features)
        return Sample.of(given.X, y, weight, levels_of_features(given.noted)), start

    def _fitted_state(self) -> dict[str, Any]:
        return super()._fitted_state() | {"n_iter": int(self.n_iter_), "alpha": float(self.alpha_)}

    def _restore_state(self, state: dict[str, Any]) -> None:
        super()._restore_state(state)
        if not is_number(state["alpha"]) or state["alpha"] < 0:
            raise ModelFileError(f"fit.alpha is {state['alpha']!r}, expected a number from 0 on")
        self.n_iter_, self.alpha_ = whole_number(state, "n_iter"), float(state["alpha"])


@estimator
class TAOClassifier(ClassWeighted, TaughtModel, TAOModel, TreeClassifier):
    r"""Classification tree with sparse oblique splits, by tree alternating optimization (TAO).

    Lowers, pass by pass and never raising it but for the last ones (`stretch`),

    .. math:: \sum_i c_i [\text{row } i \text{ misclassified}] + \alpha \sum_t \lVert w_t \rVert_1 / \lVert w_t \rVert_2

    where split t sends a row left if :math:`w_t^\top x \le b_t` on features scaled to [0, 1] (Carreira-Perpinan and
    Tavallali 2018). With the rest of the tree fixed a node is a weighted two-class problem on the rows for which its
    sides differ: the direction comes from l1-logistic regression, the threshold is exact, and a split is replaced only
    if the objective falls. Splits that do not pay are pruned. It is a heuristic: nothing is proven.

    Parameters
    ----------
    max_depth
    alpha : float or "auto"
        Price of a split, in rows of weight 1: one on a single feature must save rows of a total weight of more than
        this, one on k equally weighted features :math:`\sqrt k` times as much. Larger is sparser and smaller. "auto" is
        an eightieth of the root of the number of rows, at least 1, times the weight of one row (see Notes).
    max_split_features, init, stretch, max_iter, categorical_features, class_weight, teacher
    unlabeled : label
        Mark of unlabelled rows in y, where there is a teacher; NaN and None are marks then too. Without a teacher it
        is a label like any other, and -1 one that is warned of unless another mark is named.
    time_limit, n_jobs, random_state, verbose, warm_start

    Attributes
    ----------
    tree_, classes_
    teacher_
    transduction_
        Labels of all training rows: those given, and those of the teacher for the others; only with a teacher.
    objective_, alpha_, n_iter_, status_, reason_, solve_time_, trace_, random_state_, record_
    n_features_in_, feature_names_in_, categories_, has_missing_
    feature_importances_

    Notes
    -----
    *Teachers.* With few labels and many unlabelled rows a tree that imitates a good classifier on all rows is better
    than one of the labels alone. The teacher labels the rows that have no label, and the tree is fitted to all of them.
    Such a row weighs by how much the probability of its class exceeds that of the next one, at least 0.05: what another
    label would add to the errors that the teacher expects. A row with a label of its own weighs three times as much as
    one that he is sure of. With ``alpha="auto"`` a split is priced in rows that weigh what his weigh on average. Where
    rows are few (less than 10,000), a teacher who is no array is asked for more of them, imagined between a row and a
    neighbour, and the search sees these too. The objective is that of the rows, their labels and weights; `trace_`
    counts imagined rows as well.
    :class:`LapTAOClassifier` joins teacher and graph.

    *Weights.* Weights that are whole multiples of the smallest one are taken for numbers of equal rows, and that one
    for the weight of one row. Other weights (of AdaBoost, of a survey) make a row weigh
    :math:`\sum c_i^2 / \sum c_i`, and the rows :math:`(\sum c_i)^2 / \sum c_i^2` in number. So with ``alpha="auto"``
    weights that are all multiplied by a number give the same tree.

    *Categories.* A split is a hyperplane over numerical features or a subset of the levels of one categorical feature
    (``colour in {red, blue}``), which costs alpha however many levels it lists. Levels are strings, numbers or bools.
    At prediction a level that a split has not seen goes where more training rows went: the else of the rule.

    *Missing values* (NaN, None, pandas' NA). Every split has a side for rows that lack a value it uses, learned with
    the split; where no training row lacks one, it is that of more training rows. A split can also part rows that have
    a value from those that have none: its threshold lies beyond all values then. Sparse X has no missing values.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from treewright import TAOClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = TAOClassifier(max_depth=3, alpha=0.1, random_state=0).fit(X, y)
    >>> model.status_, model.score(X, y) > 0.97
    ('local', True)

    A table with a category and gaps:

    >>> colour = np.array(["red", "blue", "green", None, "red"] * 20, dtype=object)
    >>> size = np.where(np.arange(100) % 10 == 0, np.nan, np.arange(100))
    >>> X = np.column_stack([colour, size])
    >>> y = np.where(np.isin(colour, ["red", "green"]), "yes", "no")
    >>> print(TAOClassifier(1, categorical_features=[0], random_state=0).fit(X, y).export_text())
    if x0 in {blue} or missing:
        no  (likely 96% no, 4% yes; 40 rows in training: 100% no)
    else:
        yes  (likely 98% yes, 2% no; 60 rows in training: 100% yes)

    Thirty labels of 178 wines, and a teacher for the rest:

    >>> X, y = load_wine(return_X_y=True)
    >>> few = np.where(np.arange(178) % 6 == 0, y, -1)
    >>> model = TAOClassifier(max_depth=3, teacher="auto", random_state=0).fit(X, few)
    >>> model.teacher_.name, bool(np.mean(model.transduction_ == y) > 0.9), bool(model.score(X, y) > 0.9)
    ('auto', True, True)
    """

    unlabeled: Any = parameter(default=-1, allowed="no_validation")

    _sometimes = ("teacher_", "transduction_")

    def _trained(self, given: Given, prepared: Any, budget: Budget) -> tuple[FitRecord, dict[str, Any]]:
        from treewright.engine.leaf_probabilities import smoothed_tree

        if self.teacher is not None:
            return self._taught(given, budget)
        plain = supervised_problem(given.without_features(), unlabeled=self.unlabeled, remedy=_TEACHER)
        problem = self._class_weighted(plain)
        record, fitted = self._trained_on(given, problem.y, problem.weight, problem.n_classes, budget)
        tree = smoothed_tree(fitted["tree_"], Sample.of(given.X, plain.y, plain.weight))
        return record, fitted | {"tree_": tree, "classes_": problem.classes}

    def _taught(self, given: Given, budget: Budget) -> tuple[FitRecord, dict[str, Any]]:
        """The fit to labels and to what the teacher says of rows that have none."""
        from treewright.models.tao.fit import train_taught_tao
        from treewright.teachers.given import teacher_of_parameter

        problem = semi_supervised_problem(given.without_features(), self.unlabeled)
        given_teacher = teacher_of_parameter(self.teacher, problem, self._seed())
        rows, start = self._ready(given, problem.y, problem.weight)

        def factors(numbers: IntArray) -> FloatArray:
            return class_weighted(np.ones(len(numbers)), self.class_weight, problem.classes, numbers)

        factors(np.arange(problem.n_classes))  # what cannot be weights is refused before the teacher learns
        with budget.stop_on_interrupt():
            found = train_taught_tao(
                rows, problem.classes, given_teacher, factors, self, self._conduct(_pass_told), budget, start
            )
        labels = {"classes_": problem.classes, "transduction_": problem.classes[found.numbers]}
        counted = rows_in_leaves(found.fit.tree, given.X, problem.weight)  # labels of a teacher weigh less
        labels |= {"_leaf_rows": counted, **labelled_in_leaves(found.fit.tree, given.X, problem)}
        return found.fit.record, _fitted(found.fit) | labels | {"teacher_": found.teacher}


@estimator
class TAORegressor(TAOModel, TreeRegressor):
    r"""Regression tree with sparse oblique splits, constant or linear leaves, by tree alternating optimization (TAO).

    Lowers, pass by pass and never raising it but for the last ones (`stretch`),

    .. math:: \sum_i c_i \lVert y_i - T(x_i) \rVert^2 / s^2 + \alpha \sum_t \lVert w_t \rVert_1 / \lVert w_t \rVert_2

    where :math:`s^2` is the (weighted) mean of the squared distance of the targets to their mean, so that alpha does
    not depend on their units. See :class:`TAOClassifier` for the method. With ``leaves="linear"`` a leaf predicts
    :math:`b + A x`, and :math:`\rho \sum_{leaves} \lVert A \rVert^2` is added, with targets divided by s and features
    scaled to [0, 1]: each leaf is a ridge regression on its rows.

    Parameters
    ----------
    max_depth
    alpha : float or "auto"
        Price of a split, in rows of weight 1 at the distance s: one on a single feature must save that much squared
        error, one on k equally weighted features :math:`\sqrt k` times as much. Larger is sparser and smaller. "auto"
        is an eightieth of the root of the number of rows, at least 1, times the weight of one row, see
        :class:`TAOClassifier`.
    leaves : {"constant", "linear"}
        What a leaf predicts: the mean of its rows, or a linear function of all numerical features, which must not have
        missing values then; there `stretch` has no meaning, as copies with the target of their row would flatten it.
    leaf_ridge : float
        The price :math:`\rho` of linear leaves, in rows at the distance s: a slope that takes the prediction from one
        end of a feature's range to the other by s costs as much as this many such rows, whatever unit weights have.
        Larger is flatter; a leaf with few rows is nearly constant. Above 0; without meaning for constant leaves.
    max_split_features, init, stretch, max_iter
    categorical_features
        Categorical features, as for :class:`TAOClassifier`. Linear leaves have no slope along them.
    time_limit, n_jobs, random_state, verbose, warm_start

    Attributes
    ----------
    tree_, objective_, alpha_, n_iter_, status_, reason_, solve_time_, trace_, random_state_, record_, n_features_in_
    feature_names_in_, categories_, has_missing_
    feature_importances_

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from treewright import TAORegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = TAORegressor(max_depth=3, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.5
    True

    Two planes, which linear leaves fit with one split:

    >>> X = np.random.default_rng(0).random((300, 2))
    >>> y = np.abs(X[:, 0] - X[:, 1])
    >>> model = TAORegressor(max_depth=1, leaves="linear", leaf_ridge=0.01, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    """

    leaves: str = parameter(default="constant", allowed=[StrOptions({"constant", "linear"})])
    leaf_ridge: float = parameter(default=0.1, allowed=[Interval(Real, 0, None, closed="neither")])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.input_tags.allow_nan = self.leaves != "linear"
        return tags

    def _trained(self, given: Given, prepared: Any, budget: Budget) -> tuple[FitRecord, dict[str, Any]]:
        refuse_dates(given.y, "y")
        targets = check_array(given.y, ensure_2d=False, dtype=np.float64, input_name="y", estimator=self)
        check_consistent_length(given.X, targets)
        targets = targets.reshape(given.X.shape[0], -1)
        weight = given.checked_weight()
        record, fitted = self._trained_on(given, targets, weight, None, budget)
        return record, fitted | {"_leaf_rows": rows_in_leaves(fitted["tree_"], given.X, weight)}


def _fitted(found: TAOFit) -> dict[str, Any]:
    return {"tree_": found.tree, "alpha_": found.alpha, "n_iter_": found.n_iter}


def _pass_told(seconds: float, objective: float, loss: float, after: str = "") -> None:
    note(objective=objective, detail=f"loss {loss:.6g}{after}", step=True)
