"""SVM1-ODT as a scikit-learn classifier."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions

from treewright.arrays import BoolArray
from treewright.data import make_problem
from treewright.estimators.common.mixed import MixedModel, levels_of
from treewright.estimators.common.record_files import is_number
from treewright.estimators.common.settings import settings_of
from treewright.estimators.common.solved import SolvedTreeClassifier
from treewright.exceptions import ModelFileError
from treewright.training.svm1odt import SVM1ODTSettings, train_svm1odt

__all__ = ["SVM1ODTClassifier"]

_PRICES = ("epsilon", "alpha_1", "alpha_2")


class SVM1ODTClassifier(MixedModel, SolvedTreeClassifier):
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
    lack a value. Weights are in units of the weight of one row; the fitted tree is in the units of the data.

    A search (CART, balanced and alternating starts, exact moves of single splits, wandering trees, linear programs)
    finds a good tree on all rows. Branch and bound improves on it and bounds it, on all rows or on those that are worth
    it; a bound for some rows holds for all. The search then goes on with all rows: a selection never hurts.

    Parameters
    ----------
    max_depth : int, default=2
        Depth of the tree.
    epsilon : float, default=0.05
        The margin :math:`\epsilon`, from 1e-4 to 1: half the width of the band around a split in which rows pay, where
        the farthest row is at distance 1.
    alpha_1 : float or "auto", default="auto"
        Price of the margin, ``alpha_1 * epsilon >= 1``: a row on a split pays that many errors. With less, a row in the
        margin would be cheaper than an error. "auto" is ``1 / epsilon``. 0, together with ``alpha_2=0``, makes the
        margin hard: no row is within it, and errors are all that counts.
    alpha_2 : float or "auto", default="auto"
        Price of the 1-norm of splits, in errors: larger is sparser, smaller, and has wider margins. "auto" is chosen on
        the training rows by cross-validation among 1, 0.5, 0.25, 0.12, 0.06 and 0.02, each divided by `epsilon`; of
        equally good ones the largest. Without time for that it is ``0.25 / epsilon``.
    selection : {"auto", "hull", "balanced"} or None, default="auto"
        Rows for branch and bound. "hull": of the rows of a class in a leaf of the search's tree those that others are
        convex combinations of, and those near to splits (the paper's Algorithm 1); "balanced": few rows with many
        between them (Algorithm 2); None: all. "auto" is "hull" where the program of all rows would be too large, else
        None.
    max_iter : int, default=1
        Rounds of selection; before the last one, trees are trained on rows chosen by the tree of the round before, with
        weights that let no round lose accuracy where margins are hard and solves optimal (Algorithm 3). Without meaning
        if no rows are selected.
    categorical_features : None, "from_dtype" or array-like of bool, int or str, default=None
        Categorical features: a mask, column numbers, names of columns of a frame, or "from_dtype" for columns of a
        frame with a categorical dtype or text. Levels that were not seen at fit go where more rows went.
    solver : {"highs", "scip", "gurobi"}, default="highs"
        Solver of the mixed-integer program.
    time_limit : float or None, default=60.0
        Seconds for the whole fit.
    gap : float, default=1e-4
        Relative gap between objective and bound that counts as optimal.
    n_jobs : int or None, default=None
        Threads of the search, the cross-validation and the solver: None for one, -1 for all cores.
    random_state : int, RandomState or None, default=None
        Seed of the search and the solver.
    verbose : int, default=0
        Above 0, progress goes to standard error.
    warm_start : bool, Tree or fitted estimator, default=False
        Tree to start from; True goes on from the last fit.

    Attributes
    ----------
    tree_ : Tree
        The tree, in the units of the data.
    classes_ : ndarray
        The labels.
    epsilon_, alpha_1_, alpha_2_ : float
        Margin and prices that were used.
    selected_ : ndarray of bool, shape (n_samples,)
        Rows that branch and bound had; not in model files.
    n_iter_ : int
        Rounds of selection made.
    objective_, bound_, gap_ : float
        Objective of the tree on all rows, proven lower bound of any tree, and their relative gap.
    status_ : {"optimal", "time_limit", "interrupted", "unproven"}
        How the fit ended. "unproven": nothing is proven for another reason than time.
    reason_ : str
        Why it ended so.
    solve_time_ : float
        Seconds of the whole fit.
    trace_ : structured ndarray
        Columns "seconds", "objective" and "bound", a row an improvement.
    record_ : FitRecord
        Status, reason, seconds, objective, bound and trace in one.
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SolvedTreeClassifier._parameter_constraints,
        **MixedModel._parameter_constraints,
        "epsilon": [Interval(Real, 1e-4, 1, closed="both")],
        "alpha_1": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "alpha_2": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "selection": [StrOptions({"auto", "hull", "balanced"}), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    epsilon_: float
    alpha_1_: float
    alpha_2_: float
    selected_: BoolArray
    n_iter_: int

    def __init__(
        self,
        max_depth: int = 2,
        *,
        epsilon: float = 0.05,
        alpha_1: float | str = "auto",
        alpha_2: float | str = "auto",
        selection: str | None = "auto",
        max_iter: int = 1,
        categorical_features: Any = None,
        solver: str = "highs",
        time_limit: float | None = 60.0,
        gap: float = 1e-4,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: Any = False,
    ) -> None:
        self.max_depth = max_depth
        self.epsilon = epsilon
        self.alpha_1 = alpha_1
        self.alpha_2 = alpha_2
        self.selection = selection
        self.max_iter = max_iter
        self.categorical_features = categorical_features
        self.solver = solver
        self.time_limit = time_limit
        self.gap = gap
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the tree.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; numbers, or with `categorical_features` also text. Values may be missing.
        y : array-like of shape (n_samples,)
            Labels, at least two different ones.
        sample_weight : array-like of shape (n_samples,) or None
            Weights of the rows; 0 leaves a row out, 2 counts it twice.

        Returns
        -------
        SVM1ODTClassifier
            The fitted estimator.
        """
        budget, solving = self._start_clock(), self._solving()
        rows, noted = self._fit_rows(X, y)
        n_levels = levels_of(noted)
        if n_levels is None:  # gaps are allowed, too, where all features are numbers
            n_levels = np.zeros(rows.shape[1], dtype=np.int64)
        problem = make_problem(rows, y, sample_weight, n_levels=n_levels)
        start = self._given_mixed_tree(noted, "oblique")
        with budget.stop_on_interrupt():
            found = train_svm1odt(problem, settings_of(self, SVM1ODTSettings), solving, budget, start)
        fitted: dict[str, Any] = {f"{name}_": float(getattr(found.settings, name)) for name in _PRICES}
        fitted |= {"classes_": problem.classes, "tree_": found.tree, "selected_": found.selected}
        fitted["n_iter_"] = found.n_iter
        self._publish(found.record.closed(budget), noted | fitted)
        return self

    def _fitted_state(self) -> dict[str, Any]:
        prices = {name: float(getattr(self, f"{name}_")) for name in _PRICES}
        return super()._fitted_state() | prices | {"n_iter": int(self.n_iter_)}

    def _restore_state(self, state: dict[str, Any]) -> None:
        super()._restore_state(state)
        for name in _PRICES:
            if not is_number(state[name]) or state[name] < 0:
                raise ModelFileError(f"fit.{name} is {state[name]!r}, expected a number from 0 on")
            setattr(self, f"{name}_", float(state[name]))
        if type(state["n_iter"]) is not int or state["n_iter"] < 1:
            raise ModelFileError(f"fit.n_iter is {state['n_iter']!r}, expected a whole number from 1 on")
        self.n_iter_ = state["n_iter"]
