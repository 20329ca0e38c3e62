"""Tree alternating optimization as scikit-learn estimators."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight

from treewright.data import Sample, make_problem
from treewright.data._checks import refuse_dates
from treewright.estimators.common.mixed import levels_of
from treewright.estimators.common.rows import class_weighted
from treewright.estimators.common.tao_model import TAOModel
from treewright.estimators.common.tree_model import TreeClassifier, TreeRegressor

__all__ = ["TAOClassifier", "TAORegressor"]


class TAOClassifier(TAOModel, TreeClassifier):
    r"""Classification tree with sparse oblique splits, by tree alternating optimization (TAO).

    Lowers, pass by pass and never raising it but for the last ones (`stretch`),

    .. math:: \sum_i c_i [\text{row } i \text{ misclassified}] + \alpha \sum_t \lVert w_t \rVert_1 / \lVert w_t \rVert_2

    where split t sends a row left if :math:`w_t^\top x \le b_t` on features scaled to [0, 1] (Carreira-Perpinan and
    Tavallali 2018). With the rest of the tree fixed a node is a weighted two-class problem on the rows for which its
    sides differ: the direction comes from l1-logistic regression, the threshold is exact, and a split is replaced only
    if the objective falls. Splits that do not pay are pruned. It is a heuristic: nothing is proven.

    Parameters
    ----------
    max_depth : int, default=8
        Depth of the tree, at most 16.
    alpha : float or "auto", default="auto"
        Price of a split, in rows of weight 1: one on a single feature must save rows of a total weight of more than
        this, one on k equally weighted features :math:`\sqrt k` times as much. Larger is sparser and smaller. "auto" is
        an eightieth of the root of the number of rows, at least 1, times the weight of one row (see Notes).
    splits : {"oblique", "axis"}, default="oblique"
        Hyperplanes, or thresholds of single features.
    init : {"auto", "balanced", "cart", "random"}, default="auto"
        Tree to start from: one of oblique splits along informative directions that halve their rows, CART, or a
        complete tree with random normals. CART is passed over where it would take more than half of `time_limit`.
        "auto" is "balanced" for oblique splits and "cart" for axis-aligned ones; on tables with categories or missing
        values it is the best after a few passes of both and, up to depth 4, of trees below random subsets.
    stretch : float, default=0.25
        After the passes, six more are made on the rows and copies of them, each pushed away from another row of its
        leaf by this share of their distance: a tree that fits its rows well errs on others close to its splits. They
        do not lower the objective of the rows, and mostly predict better; 0 leaves them out.
    max_iter : int, default=20
        Most passes over the tree.
    categorical_features : None, "from_dtype" or array-like of bool, int or str, default=None
        Categorical features, as in scikit-learn's ``HistGradientBoostingClassifier``: a mask, column numbers, or names
        of columns of a frame; "from_dtype" takes the columns of a frame that are categories or text (see Notes).
    class_weight : dict, "balanced" or None, default=None
        Factors of the weights of the rows by class, as in scikit-learn; finite numbers from 0 on.
    time_limit : float or None, default=None
        Seconds for the whole fit.
    n_jobs : int or None, default=None
        Threads, over the nodes of a depth: None for one, -1 for all cores. The tree does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the start and of the copies of `stretch`.
    verbose : int, default=0
        Above 0, progress goes to standard error.
    warm_start : bool, Tree or fitted estimator, default=False
        Tree to start from; True goes on from the last fit. What is deeper than `max_depth` is cut off. Only with
        ``stretch=0`` is the objective never above that of the start.

    Attributes
    ----------
    tree_ : Tree
        The tree, in the units of the data.
    classes_ : ndarray
        The labels.
    objective_ : float
        Objective of the tree, recomputed from the data; with `stretch`, other than the last one of `trace_`.
    alpha_ : float
        The price of a split that was used.
    n_iter_ : int
        Passes over the tree on the rows alone.
    status_ : {"local", "time_limit", "interrupted"}
        How the fit ended. "local" is the usual end: all passes are made, or no single node can be improved any more.
    reason_ : str
        Why it ended so.
    solve_time_ : float
        Seconds of the whole fit.
    trace_ : structured ndarray
        Columns "seconds", "objective" and "loss", a row for the start and for each pass.
    record_ : FitRecord
        Status, reason, seconds, objective and trace in one.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X had them.
    categories_ : list of (tuple of levels or None), or None
        Levels of each categorical feature, None for a numerical one; None where all are numerical.
    has_missing_ : ndarray of bool, shape (n_features_in_,)
        Which features had missing values.

    Notes
    -----
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
        no  (40 points: 100% no)
    else:
        yes  (60 points: 100% yes)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **TAOModel._parameter_constraints,
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        max_depth: int = 8,
        *,
        alpha: float | str = "auto",
        splits: str = "oblique",
        init: str = "auto",
        stretch: float = 0.25,
        max_iter: int = 20,
        categorical_features: Any = None,
        class_weight: Any = None,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: Any = False,
    ) -> None:
        self.max_depth = max_depth
        self.alpha = alpha
        self.splits = splits
        self.init = init
        self.stretch = stretch
        self.max_iter = max_iter
        self.categorical_features = categorical_features
        self.class_weight = class_weight
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the tree.

        Parameters
        ----------
        X : array-like, frame or scipy sparse array of shape (n_samples, n_features)
            Rows. Values of dense ones may be missing; text needs ``categorical_features``.
        y : array-like of shape (n_samples,)
            Labels, at least two different ones.
        sample_weight : array-like of shape (n_samples,) or None
            Weights of the errors; 0 leaves a row out, 2 counts it twice.

        Returns
        -------
        TAOClassifier
            The fitted estimator.
        """
        budget = self._start_clock()
        rows, noted = self._fit_rows(X, y)
        # Labels and weights are checked apart from the rows, which may be sparse.
        problem = make_problem(np.zeros((rows.shape[0], 1)), y, sample_weight)
        weight = class_weighted(problem.weight, self.class_weight, problem.classes[problem.y])
        fitted = noted | {"classes_": problem.classes}
        self._fit(Sample.of(rows, problem.y, weight, levels_of(noted)), problem.n_classes, budget, fitted)
        return self


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
    max_depth : int, default=8
        Depth of the tree, at most 16.
    alpha : float or "auto", default="auto"
        Price of a split, in rows of weight 1 at the distance s: one on a single feature must save that much squared
        error, one on k equally weighted features :math:`\sqrt k` times as much. Larger is sparser and smaller. "auto"
        is an eightieth of the root of the number of rows, at least 1, times the weight of one row, see
        :class:`TAOClassifier`.
    leaves : {"constant", "linear"}, default="constant"
        What a leaf predicts: the mean of its rows, or a linear function of all numerical features, which must not have
        missing values then.
    leaf_ridge : float, default=0.1
        The price :math:`\rho` of linear leaves, in rows at the distance s: a slope that takes the prediction from one
        end of a feature's range to the other by s costs as much as this many such rows, whatever unit weights have.
        Larger is flatter; a leaf with few rows is nearly constant. Above 0; without meaning for constant leaves.
    splits : {"oblique", "axis"}, default="oblique"
        Hyperplanes, or thresholds of single features.
    init : {"auto", "balanced", "cart", "random"}, default="auto"
        Tree to start from: one of oblique splits along informative directions that halve their rows, CART, or a
        complete tree with random normals. CART is passed over where it would take more than half of `time_limit`.
        "auto" is "balanced" for oblique splits and "cart" for axis-aligned ones; on tables with categories or missing
        values it is the best after a few passes of both and, up to depth 4, of trees below random subsets.
    stretch : float, default=0.25
        After the passes, six more are made on the rows and copies of them, each pushed away from another row of its
        leaf by this share of their distance: a tree that fits its rows well errs on others close to its splits. They
        do not lower the objective of the rows, and mostly predict better; 0 leaves them out.
        Without meaning for linear leaves, which a copy with the target of its row would flatten.
    max_iter : int, default=20
        Most passes over the tree.
    categorical_features : None, "from_dtype" or array-like of bool, int or str, default=None
        Categorical features, as for :class:`TAOClassifier`. Linear leaves have no slope along them.
    time_limit : float or None, default=None
        Seconds for the whole fit.
    n_jobs : int or None, default=None
        Threads, over the nodes of a depth: None for one, -1 for all cores. The tree does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the start and of the copies of `stretch`.
    verbose : int, default=0
        Above 0, progress goes to standard error.
    warm_start : bool, Tree or fitted estimator, default=False
        Tree to start from; True goes on from the last fit. What is deeper than `max_depth` is cut off. Only with
        ``stretch=0`` is the objective never above that of the start.

    Attributes
    ----------
    tree_ : Tree
        The tree, in the units of the data.
    objective_ : float
        Objective of the tree, recomputed from the data; with `stretch`, other than the last one of `trace_`.
    alpha_ : float
        The price of a split that was used.
    n_iter_ : int
        Passes over the tree on the rows alone.
    status_ : {"local", "time_limit", "interrupted"}
        How the fit ended. "local" is the usual end: all passes are made, or no single node can be improved any more.
    reason_ : str
        Why it ended so.
    solve_time_ : float
        Seconds of the whole fit.
    trace_ : structured ndarray
        Columns "seconds", "objective" and "loss", a row for the start and for each pass.
    record_ : FitRecord
        Status, reason, seconds, objective and trace in one.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X had them.
    categories_ : list of (tuple of levels or None), or None
        Levels of each categorical feature, None for a numerical one; None where all are numerical.
    has_missing_ : ndarray of bool, shape (n_features_in_,)
        Which features had missing values.

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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **TAOModel._parameter_constraints,
        "leaves": [StrOptions({"constant", "linear"})],
        "leaf_ridge": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        max_depth: int = 8,
        *,
        alpha: float | str = "auto",
        leaves: str = "constant",
        leaf_ridge: float = 0.1,
        splits: str = "oblique",
        init: str = "auto",
        stretch: float = 0.25,
        max_iter: int = 20,
        categorical_features: Any = None,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: Any = False,
    ) -> None:
        self.max_depth = max_depth
        self.alpha = alpha
        self.leaves = leaves
        self.leaf_ridge = leaf_ridge
        self.splits = splits
        self.init = init
        self.stretch = stretch
        self.max_iter = max_iter
        self.categorical_features = categorical_features
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.input_tags.allow_nan = self.leaves != "linear"
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the tree.

        Parameters
        ----------
        X : array-like, frame or scipy sparse array of shape (n_samples, n_features)
            Rows. Values of dense ones may be missing; text needs ``categorical_features``.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,) or None
            Weights of the errors; 0 leaves a row out, 2 counts it twice.

        Returns
        -------
        TAORegressor
            The fitted estimator.
        """
        budget = self._start_clock()
        rows, noted = self._fit_rows(X, y)
        refuse_dates(y, "y")
        targets = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y", estimator=self)
        check_consistent_length(rows, targets)
        weight = _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
        self._fit(Sample.of(rows, targets.reshape(rows.shape[0], -1), weight, levels_of(noted)), None, budget, noted)
        return self
