"""LapTAO for numbers: the counterpart of the classifier for one or several outputs."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import _check_sample_weight

from treewright.budget import Budget
from treewright.data import Sample
from treewright.estimators.common.laptao_model import LapTAOModel
from treewright.estimators.common.mixed import levels_of
from treewright.estimators.common.rows import partly_known_targets
from treewright.estimators.common.tree_model import TreeRegressor
from treewright.exceptions import InvalidInputError
from treewright.training.record import FitRecord

__all__ = ["LapTAORegressor"]


class LapTAORegressor(LapTAOModel, TreeRegressor):
    r"""Regression tree from few labels and many unlabelled rows, smooth along their graph of neighbours (LapTAO).

    The objective and the method are those of :class:`LapTAOClassifier`, for one or several numerical outputs; targets
    are divided by the root of their variance, so that the objective does not depend on their units.

    Parameters
    ----------
    max_depth : int, default=8
        Depth of the tree, at most 16.
    alpha : float or "auto", default="auto"
        Price of a split in a tree step, in rows at the distance s of the smoothed labels to their mean: one on a single
        feature must save that much squared error, one on k equally weighted features :math:`\sqrt k` times as much.
        Larger is sparser and smaller. "auto" is an eightieth of the root of the number of rows, times the weight of
        one row as in :class:`TAOClassifier`.
    gamma : float, default=0.01
        Price of differences along edges, relative to that of errors at labels.
    estimator : {"tao", "cart", "graph"} or regressor, default="tao"
        The model: a tree by alternating optimization; CART (LapCART); labels smoothed along the graph alone, new rows
        being averages of their neighbours; or any regressor of scikit-learn, a copy for each output if it knows one
        output alone.
    splits : {"oblique", "axis"}, default="oblique"
        Hyperplanes, or thresholds of single features.
    init : {"auto", "balanced", "cart", "random"}, default="auto"
        Tree that alternating optimization starts from, as for :class:`TAORegressor`.
    stretch : float, default=0.25
        After the rounds, six passes are made on the rows and copies of them, each pushed away from another row of its
        leaf by this share of their distance: a tree that fits its rows well errs on others close to its splits. That
        does not lower the objective of the rows, and mostly predicts better; 0 is the paper's method. Without meaning
        for other models than TAO trees.
    n_estimators : int, default=1
        Trees. Above 1 the model is a forest, each tree on some rows and features; there is no `tree_` then.
    max_samples, max_features : float, default=0.5
        Shares of the rows and features of each tree of a forest.
    max_iter : int, default=20
        Most rounds of label step, tree step and multipliers. 0 fits the tree to the smoothed labels and that is all
        (with ``stretch=0``, EBBS with one tree).
    init_passes, passes : int, default=6 and 1
        Passes of alternating optimization over the tree: before the first round, and in each.
    mu, mu_factor : float, default=0.002 and 1.3
        Penalty of the first round, and what it is multiplied by after each. The paper has 0.001 and 1.5, which passes
        more quickly through the penalties at which trees improve.
    multiplier_rule : {"paper", "full"}, default="paper"
        Step of the multipliers: half that of the textbook, as printed, or all of it, which brings labels and tree
        closer together.
    tol : float, default=0.001
        Two rounds in which less than this share of the rows changes leaves end the fit.
    n_neighbors : int, default=10
        Neighbours of a row in the graph.
    perplexity : float, default=5.0
        Effective number of neighbours: how fast affinities fall with the distance.
    neighbors : {"auto", "exact", "approximate"}, default="auto"
        How neighbours are found.
    mutual : bool, default=False
        Whether edges need both rows to be neighbours of each other.
    graph_cache : path or None, default=None
        Folder that keeps graphs for the next fit on the same rows.
    categorical_features : None, "from_dtype" or array-like of bool, int or str, default=None
        Categorical features, as for :class:`TAOClassifier`. The graph, and regressors other than trees, see a column
        for each level, scaled so that two levels are as far apart as the ends of a number, and means in the place of
        missing numbers; trees take categories and gaps as they are.
    unlabeled : float or None, default=nan
        Mark of unlabelled rows in y; NaN and None are marks too.
    time_limit : float or None, default=None
        Seconds for the whole fit. The search for neighbours takes half of it at most: where that is too little, it is
        less thorough, or covers a part of the rows, or is left out, and only labelled rows are used; a warning says so
        before and after. The fit of a regressor cannot be broken off.
    n_jobs : int or None, default=None
        Threads: None for one, -1 for all cores. The model does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of approximate neighbours, starts, forests and a regressor given as `estimator`.
    verbose : int, default=0
        Above 0, a line a round goes to standard error.
    warm_start : bool, Tree or fitted estimator, default=False
        Tree to start from; True goes on from the last fit.

    Attributes
    ----------
    tree_ : Tree
        The tree, in the units of the data; with ``estimator="tao"`` or ``"cart"`` and ``n_estimators=1``.
    trees_ : list of Tree
        The trees of a forest.
    estimator_ : regressor
        The fitted copy of a regressor given as `estimator`, for features scaled to [0, 1] and centred targets.
    points_, values_ : ndarray
        With ``estimator="graph"``: the distinct training rows, scaled, and their values.
    transduction_ : ndarray
        Targets of all training rows: those given, and for the others those smoothed along the graph.
    objective_ : float
        Objective of the model, its leaves at their best values, in units of the variance of the known targets.
    alpha_ : float
        The `alpha` that was used; without meaning for other models than TAO trees.
    n_iter_, best_iter_ : int
        Rounds, and the best one, whose tree is kept or stretched; 0 is the first fit. With ``estimator="graph"`` there
        are no rounds, and `n_iter_` is 1, for the labels smoothed once.
    status_ : {"local", "time_limit", "interrupted"}
        How the fit ended. "local" is the usual end.
    reason_ : str
        Why it ended so: all rounds are done, the model did not change any more, time or interrupt.
    trace_ : structured ndarray
        A row for the first fit, for each round and, if they are made, for the passes over stretched rows. Columns
        "seconds", "objective", "mu", "label_loss", "smoothness" (price of edges), "price" (of splits), "residual"
        :math:`\lVert z - t \rVert` and "moved", the share of rows that changed leaves.
    record_ : FitRecord
        Status, reason, seconds, objective and trace in one.
    solve_time_ : float
        Seconds of the whole fit.
    scaling_ : Scaling
        Scaling of the features to [0, 1].
    mean_ : ndarray
        Mean of the labels, by which they are centred.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X had them.
    categories_ : list of (tuple of levels or None), or None
        Levels of each categorical feature, None for a numerical one; None where all are numerical.
    has_missing_ : ndarray of bool, shape (n_features_in_,)
        Which features had missing values.

    See Also
    --------
    TAORegressor : The same trees from labelled rows alone.
    SelfTrainingRegressor : Another semi-supervised method, for comparison.

    Examples
    --------
    A curve of which ten points are known:

    >>> import numpy as np
    >>> from treewright import LapTAORegressor
    >>> X = np.linspace(0.0, 1.0, 200)[:, None]
    >>> truth = np.sin(3.0 * X[:, 0])
    >>> y = np.full(200, np.nan)
    >>> y[10::20] = truth[10::20]
    >>> model = LapTAORegressor(max_depth=4, random_state=0).fit(X, y)
    >>> model.score(X, truth) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **LapTAOModel._parameter_constraints,
        "unlabeled": [Real, None],
    }

    def __init__(
        self,
        max_depth: int = 8,
        *,
        alpha: float | str = "auto",
        gamma: float = 0.01,
        estimator: Any = "tao",
        splits: str = "oblique",
        init: str = "auto",
        stretch: float = 0.25,
        n_estimators: int = 1,
        max_samples: float = 0.5,
        max_features: float = 0.5,
        max_iter: int = 20,
        init_passes: int = 6,
        passes: int = 1,
        mu: float = 0.002,
        mu_factor: float = 1.3,
        multiplier_rule: str = "paper",
        tol: float = 1e-3,
        n_neighbors: int = 10,
        perplexity: float = 5.0,
        neighbors: str = "auto",
        mutual: bool = False,
        graph_cache: Any = None,
        categorical_features: Any = None,
        unlabeled: Any = np.nan,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: Any = False,
    ) -> None:
        self.max_depth = max_depth
        self.alpha = alpha
        self.gamma = gamma
        self.estimator = estimator
        self.splits = splits
        self.init = init
        self.stretch = stretch
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.max_features = max_features
        self.max_iter = max_iter
        self.init_passes = init_passes
        self.passes = passes
        self.mu = mu
        self.mu_factor = mu_factor
        self.multiplier_rule = multiplier_rule
        self.tol = tol
        self.n_neighbors = n_neighbors
        self.perplexity = perplexity
        self.neighbors = neighbors
        self.mutual = mutual
        self.graph_cache = graph_cache
        self.categorical_features = categorical_features
        self.unlabeled = unlabeled
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _trained(
        self,
        rows: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        graph: Any,
        budget: Budget,
        noted: dict[str, Any],
    ) -> tuple[FitRecord, dict[str, Any]]:
        Y, missing, _ = partly_known_targets(self, y, rows.shape[0], self.unlabeled)
        if missing.all():
            raise InvalidInputError(f"none of the {len(Y)} rows has a target; at least one must be labelled")
        partly = np.flatnonzero(missing.any(axis=1) & ~missing.all(axis=1))
        if len(partly):
            raise InvalidInputError(
                f"row {partly[0]} has some outputs and misses others; LapTAO needs all or none of a row: fill them in, "
                "or fit an estimator for each output"
            )
        weight = _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
        labelled = np.asarray(~missing.any(axis=1))
        sample = Sample.of(rows, Y, weight, levels_of(noted))
        found, fitted = self._found_by(sample, labelled, graph, budget, noted)
        filled = np.where(labelled[:, None], Y, found.smooth)
        return found.record, fitted | {"transduction_": filled[:, 0] if filled.shape[1] == 1 else filled}
