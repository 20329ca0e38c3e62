"""OCT-H as a scikit-learn classifier."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, RealNotInt

from treewright.data import make_problem
from treewright.estimators.common.rows import fit_rows
from treewright.estimators.common.settings import settings_of
from treewright.estimators.common.solved import SolvedTreeClassifier
from treewright.training.oct_h import LEAST_MARGIN, OCTHSettings, train_oct_h

__all__ = ["OCTHClassifier"]


class OCTHClassifier(SolvedTreeClassifier):
    r"""Optimal classification tree with hyperplane splits (OCT-H).

    Minimizes

    .. math:: \frac{1}{\hat L} \sum_i w_i [\text{row } i \text{ misclassified}] + \alpha \sum_{t,j} s_{jt}

    over the trees of a depth whose splits are hyperplanes, where :math:`\hat L` is the error of the majority class and
    :math:`s_{jt}` says whether split t uses feature j (Bertsimas and Dunn 2017). Features are scaled to [0, 1] inside;
    the fitted tree is in the units of the data.

    A search (CART, oblique greedy trees, alternating optimization) finds a good tree first. If that tree meets a bound
    that the data alone gives, it is optimal without a solve; otherwise the rest of the time goes into branch and bound.

    Parameters
    ----------
    max_depth : int, default=2
        Depth of the tree.
    complexity : float, default=0.0
        The price alpha of a feature in a split, as a share of the majority-class error.
    min_samples_leaf : int or float, default=1
        Least number of rows in a leaf (int), or share of the rows (float). Rows count once whatever their weight.
    margin : float or None, default=None
        Gap mu between the two sides of a split, for features in [0, 1] and weights of 1-norm 1: from 1e-4, below which
        a solver's tolerances blur it, to 0.5. None takes what n distinct rows leave room for,
        ``max(1e-4, min(0.005, 1 / (2 n)))``; the paper has 0.005, which more than a few hundred rows on a continuous
        scale do not leave anywhere.
    solver : {"highs", "scip", "gurobi"}, default="highs"
        Solver of the mixed-integer program.
    time_limit : float or None, default=60.0
        Seconds for the whole fit.
    gap : float, default=1e-4
        Relative gap between objective and bound that counts as optimal.
    n_jobs : int or None, default=None
        Threads of the solver: None for one, -1 for all cores.
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
    objective_, bound_, gap_ : float
        Objective of the tree, proven lower bound of any tree, and their relative gap.
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

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from treewright import OCTHClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = OCTHClassifier(max_depth=2, random_state=0).fit(X, y)
    >>> model.status_, model.objective_, model.score(X, y)
    ('optimal', 0.0, 1.0)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SolvedTreeClassifier._parameter_constraints,
        "complexity": [Interval(Real, 0, None, closed="left")],
        "min_samples_leaf": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, 0.5, closed="right"),
        ],
        "margin": [Interval(Real, LEAST_MARGIN, 0.5, closed="both"), None],
    }

    def __init__(
        self,
        max_depth: int = 2,
        *,
        complexity: float = 0.0,
        min_samples_leaf: float = 1,
        margin: float | None = None,
        solver: str = "highs",
        time_limit: float | None = 60.0,
        gap: float = 1e-4,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: Any = False,
    ) -> None:
        self.max_depth = max_depth
        self.complexity = complexity
        self.min_samples_leaf = min_samples_leaf
        self.margin = margin
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
            Rows.
        y : array-like of shape (n_samples,)
            Labels, at least two different ones.
        sample_weight : array-like of shape (n_samples,) or None
            Weights of the errors; 0 leaves a row out, 2 counts it twice, except for ``min_samples_leaf``, which counts
            rows.

        Returns
        -------
        OCTHClassifier
            The fitted estimator.
        """
        budget, solving = self._start_clock(), self._solving()
        rows, noted = fit_rows(self, X, y)
        problem = make_problem(rows, y, sample_weight)
        start = self._given_tree(problem.n_features)
        with budget.stop_on_interrupt():
            found = train_oct_h(problem, settings_of(self, OCTHSettings), solving, budget, start)
        self._publish(found.record.closed(budget), noted | {"classes_": problem.classes, "tree_": found.tree})
        return self
