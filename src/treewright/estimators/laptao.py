"""LapTAO for classes: trees from few labels, many unlabelled rows and the graph between them."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval

from treewright.arrays import FloatArray, IntArray
from treewright.budget import Budget
from treewright.data import Sample
from treewright.estimators.common.laptao_model import LapTAOModel
from treewright.estimators.common.mixed import levels_of
from treewright.estimators.common.rows import semi_supervised_problem
from treewright.estimators.common.tree_model import TreeClassifier
from treewright.training.record import FitRecord

__all__ = ["LapTAOClassifier"]


class LapTAOClassifier(LapTAOModel, TreeClassifier):
    r"""Classification tree from few labels and many unlabelled rows, smooth along their graph of neighbours (LapTAO).

    Lowers

    .. math:: \sum_{labelled} \lVert T(x_n) - y_n \rVert^2
        + \frac{\gamma}{2} \sum_{n, m} w_{nm} \lVert T(x_n) - T(x_m) \rVert^2
        + \alpha \sum_t \lVert w_t \rVert_1 / \lVert w_t \rVert_2

    where y has a 1 in the column of the class, w are affinities of nearest neighbours and T is a tree (Zharmagambetov
    and Carreira-Perpinan 2022). Labels smoothed along the graph and a tree that predicts them take turns while a
    penalty and multipliers make them agree; in the end leaves get their best values. Nothing is proven.

    Parameters
    ----------
    max_depth : int, default=8
        Depth of the tree, at most 16.
    alpha : float or "auto", default="auto"
        Price of a split in a tree step, in rows at the distance s of the smoothed labels to their mean: one on a single
        feature must save that much squared error, one on k equally weighted features :math:`\sqrt k` times as much.
        Larger is sparser and smaller. "auto" is an eightieth of the root of the number of rows, times the weight of
        one row as in :class:`TAOClassifier`.
    gamma : float, default=0.1
        Price of differences along edges, relative to that of errors at labels.
    trust : float, default=0.9
        Share of the unlabelled rows, in each class the clearest ones, whose labels smoothed along the graph are taken
        for labels. With few labels these are nearly right and nearly flat, which a tree cannot fit; 0 is the paper's
        method. Without meaning for ``estimator="graph"``.
    trust_weight : float, default=0.3
        Weight of such a label, relative to a given one.
    estimator : {"tao", "cart", "graph"} or regressor, default="tao"
        The model: a tree by alternating optimization; CART (LapCART); labels smoothed along the graph alone, new rows
        being averages of their neighbours; or any regressor of scikit-learn, a copy for each class if it knows one
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
    unlabeled : label, default=-1
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
    classes_ : ndarray
        The labels.
    transduction_ : ndarray
        Labels of all training rows: those given, and for the others those smoothed along the graph, which on these rows
        are often more accurate than the tree.
    objective_ : float
        Objective of the model, its leaves at their best values.
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
    TAOClassifier : The same trees from labelled rows alone.
    LapSVMClassifier, SSCTClassifier : Other semi-supervised methods, for comparison.

    Examples
    --------
    Thirty labels of 1797 digits:

    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from treewright import LapTAOClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> few = y.copy()
    >>> few[30:] = -1
    >>> model = LapTAOClassifier(max_depth=5, random_state=0).fit(X, few)
    >>> bool(np.mean(model.predict(X) == y) > 0.8), bool(np.mean(model.transduction_ == y) > 0.85)
    (True, True)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **LapTAOModel._parameter_constraints,
        "trust": [Interval(Real, 0, 1, closed="both")],
        "trust_weight": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        max_depth: int = 8,
        *,
        alpha: float | str = "auto",
        gamma: float = 0.1,
        trust: float = 0.9,
        trust_weight: float = 0.3,
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
        unlabeled: Any = -1,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: Any = False,
    ) -> None:
        self.max_depth = max_depth
        self.alpha = alpha
        self.gamma = gamma
        self.trust = trust
        self.trust_weight = trust_weight
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

    def _trained(
        self,
        rows: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        graph: Any,
        budget: Budget,
        noted: dict[str, Any],
    ) -> tuple[FitRecord, dict[str, Any]]:
        # Labels and weights are checked apart from the rows, which may be sparse.
        problem = semi_supervised_problem(np.zeros((rows.shape[0], 1)), y, sample_weight, self.unlabeled, None, None)
        Y = np.eye(problem.n_classes)[np.maximum(problem.y, 0)]
        sample = Sample.of(rows, Y, problem.weight, levels_of(noted))
        found, fitted = self._found_by(sample, problem.labelled, graph, budget, noted)
        numbers = np.where(problem.labelled, problem.y, found.smooth.argmax(axis=1))
        return found.record, fitted | {"classes_": problem.classes, "transduction_": problem.classes[numbers]}

    def _class_numbers(self, rows: Any) -> IntArray:
        return self._values(rows).argmax(axis=1)

    def _class_shares(self, rows: Any) -> FloatArray:
        """The values of the model, cut off below 0 and brought to a sum of 1."""
        scores = np.maximum(self._values(rows), 0.0)
        total = scores.sum(axis=1, keepdims=True)
        return np.asarray(np.where(total > 0, scores / np.where(total > 0, total, 1.0), 1.0 / scores.shape[1]))
