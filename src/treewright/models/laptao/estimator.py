"""LapTAO as scikit-learn estimators: trees from few labels, many unlabelled rows and the graph between them."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import softmax
from sklearn.base import is_classifier, is_regressor
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.core.progress import note
from treewright.data import Sample
from treewright.engine.leaf_probabilities import agreeing_probabilities
from treewright.estimators.graph import GraphModel
from treewright.estimators.mixed import levels_of_features
from treewright.estimators.model import Given, partly_known_targets, settings_of, wrapped_kind
from treewright.estimators.parameters import estimator, parameter, parameters
from treewright.estimators.problems import semi_supervised_problem
from treewright.estimators.record_files import is_number, whole_number
from treewright.estimators.taught_model import TaughtModel
from treewright.estimators.tree_model import TreeClassifier, TreeRegressor, labelled_in_leaves, rows_in_leaves
from treewright.exceptions import InvalidInputError, ModelFileError
from treewright.graph import GraphSettings
from treewright.models.tao.estimator import TAOModel
from treewright.optimize.record import FitRecord
from treewright.tree import Tree, predict_values

if TYPE_CHECKING:
    from treewright.models.laptao.fit import LapTAOFit
    from treewright.models.laptao.graph_teacher import GraphTeacher
    from treewright.models.laptao.rounds import Round

__all__ = ["LapTAOClassifier", "LapTAORegressor"]

_PREDICTS = ("tree", "trees", "estimator", "points", "values", "scaling", "mean", "scale")
_HIDDEN = ("dense", "design", "slope", "levels")
_ATTRIBUTES = {name: f"{name}_" for name in _PREDICTS} | {name: f"_{name}" for name in _HIDDEN}
"""Fitted attributes that hold what predicts."""

_TOLD = ("targets_", "target_weight_", "leaf_values_", "split_price_")
"""Fitted attributes of which the objective is made."""


@parameters
class LapTAOModel(GraphModel, TAOModel):
    r"""What both LapTAO estimators share: parameters, graph and course of a fit.

    Parameters
    ----------
    alpha : float or "auto"
        Price of a split in a tree step, in rows at the distance s of the smoothed labels to their mean: one on a single
        feature must save that much squared error, one on k equally weighted features :math:`\sqrt k` times as much.
        Larger is sparser and smaller. "auto" is an eightieth of the root of the number of rows, times the weight of
        one row as in :class:`TAOClassifier`.
    init : {"auto", "balanced", "cart", "random"}
        Tree that alternating optimization starts from, as for :class:`TAORegressor`.
    stretch : float
        After the rounds, six passes are made on the rows and copies of them, each pushed away from another row of its
        leaf by this share of their distance: a tree that fits its rows well errs on others close to its splits. That
        does not lower the objective of the rows, and mostly predicts better; 0 is the paper's method. Without meaning
        for other models than TAO trees.
    n_estimators : int
        Trees. Above 1 the model is a forest, each tree on some rows and features; there is no `tree_` then.
    max_samples, max_features : float
        Shares of the rows and features of each tree of a forest.
    max_iter : int
        Most rounds of label step, tree step and multipliers. 0 fits the tree to the smoothed labels and that is all
        (with ``stretch=0``, EBBS with one tree).
    init_passes, passes : int
        Passes of alternating optimization over the tree: before the first round, and in each.
    mu, mu_factor : float
        Penalty of the first round, and what it is multiplied by after each. The paper has 0.001 and 1.5, which passes
        more quickly through the penalties at which trees improve.
    multiplier_rule : {"paper", "full"}
        Step of the multipliers: half that of the textbook, as printed, or all of it, which brings labels and tree
        closer together.
    tol : float
        Two rounds in which less than this share of the rows changes leaves end the fit.
    categorical_features : None, "from_dtype" or array-like of bool, int or str
        Categorical features, as for :class:`TAOClassifier`. The graph, and regressors other than trees, see a column
        for each level, scaled so that two levels are as far apart as the ends of a number, and means in the place of
        missing numbers; trees take categories and gaps as they are.
    time_limit : float or None
        Seconds for the whole fit. The search for neighbours takes half of it at most: where that is too little, it is
        less thorough, or covers a part of the rows, or is left out, and only labelled rows are used; a warning says so
        before and after. The fit of a regressor cannot be broken off.
    n_jobs : int or None
        Threads: None for one, -1 for all cores. The model does not depend on it.
    random_state : int, RandomState or None
        Seed of approximate neighbours, starts, forests and a regressor given as `estimator`.
    verbose : int
        Above 0, progress goes to standard error, a line a round and at least every two seconds.
    warm_start : bool, Tree or fitted estimator
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
    mean_ : ndarray
        Mean of the labels, by which they are centred.
    objective_ : float
        Objective of the model, its leaves at their best values.
    targets_ : ndarray of shape (n_samples, n_outputs)
        What the objective compares predictions with, a column a class (1 in that of the label) or output: labels given,
        trusted and of a teacher, 0 for rows without one; not in model files.
    target_weight_ : ndarray of shape (n_samples,)
        Their weights in the objective, 0 for rows without one; not in model files.
    leaf_values_ : ndarray of shape (n_nodes, n_outputs)
        Values of the tree at its nodes, as the objective has them: those of classes may be below 0.
    split_price_ : float
        Price of a split on one feature in the objective: ``alpha_`` times the variance of the labels that the first
        tree is fitted to; 0 for CART. Both for one tree alone.
    scale_ : float
        Root of the variance of the known targets, by which they are divided; of regressors.
    """

    gamma = 0.1
    trust = 0.0
    trust_weight = 0.3

    estimator: Any = parameter(default="tao", allowed=[StrOptions({"tao", "cart", "graph"}), HasMethods("fit")])
    n_estimators: int = parameter(default=1, allowed=[Interval(Integral, 1, None, closed="left")])
    max_samples: float = parameter(default=0.5, allowed=[Interval(Real, 0, 1, closed="right")])
    max_features: float = parameter(default=0.5, allowed=[Interval(Real, 0, 1, closed="right")])
    max_iter: int = parameter(default=20, allowed=[Interval(Integral, 0, None, closed="left")])
    init_passes: int = parameter(default=6, allowed=[Interval(Integral, 1, None, closed="left")])
    passes: int = parameter(default=1, allowed=[Interval(Integral, 1, None, closed="left")])
    mu: float = parameter(default=0.002, allowed=[Interval(Real, 0, None, closed="neither")])
    mu_factor: float = parameter(default=1.3, allowed=[Interval(Real, 1, None, closed="left")])
    multiplier_rule: str = parameter(default="paper", allowed=[StrOptions({"paper", "full"})])
    tol: float = parameter(default=1e-3, allowed=[Interval(Real, 0, None, closed="left")])

    _found = "model"
    _sometimes = (*_ATTRIBUTES.values(), *_TOLD)

    # ------------------------------------------------------------------ the fit

    def _prepared(self, weighted: bool) -> None:
        if not isinstance(self.estimator, str):
            wanted = "regressor of scikit-learn; labels are smoothed to numbers, so classes need a regressor too"
            wrapped_kind(self.estimator, is_regressor, wanted)
        if self.n_estimators > 1 and self.estimator != "tao":
            raise InvalidInputError(
                f"n_estimators={self.n_estimators} makes forests of TAO trees; with estimator={self.estimator!r} set "
                "it to 1"
            )

    def _found_by(
        self,
        given: Given,
        Y: FloatArray,
        weight: FloatArray,
        labelled: BoolArray,
        budget: Budget,
        graph_teacher: GraphTeacher | None = None,
    ) -> tuple[LapTAOFit, dict[str, Any]]:
        """What training found, and the fitted attributes without labels of the rows."""
        from treewright.models.laptao.fit import train_laptao

        rows, graph = Sample.of(given.X, Y, weight, levels_of_features(given.noted)), given.graph
        start = self._given_start(given.noted) if self.estimator == "tao" else None
        neighbours = settings_of(self, GraphSettings)
        conduct, classes = self._conduct(_round_told), is_classifier(self)
        with budget.stop_on_interrupt():
            found = train_laptao(
                rows, labelled, classes, graph, self, neighbours, conduct, budget, start, graph_teacher
            )
        held = {attribute: getattr(found.model, name) for name, attribute in _ATTRIBUTES.items()}
        fitted = {attribute: value for attribute, value in held.items() if value is not None}
        fitted |= {"targets_": found.targets, "target_weight_": found.target_weight}
        if found.model.tree is not None:
            fitted |= {"leaf_values_": found.model.leaf_values, "split_price_": found.model.split_price}
            fitted["_leaf_rows"] = rows_in_leaves(found.model.tree, given.X, weight)
        return found, fitted | {"alpha_": found.alpha, "n_iter_": found.n_iter, "best_iter_": found.best_iter}

    def _given_start(self, noted: dict[str, Any]) -> Tree | None:
        if isinstance(self.warm_start, LapTAOModel) and hasattr(self.warm_start, "n_iter_"):
            self.warm_start._need_tree()
        given = self._given_mixed_tree(noted, self.max_split_features)
        if given is not None and self.n_estimators > 1:
            raise InvalidInputError("a warm start is one tree; with n_estimators above 1 set warm_start=False")
        return given

    # ------------------------------------------------------------------ predictions

    def _values(self, rows: Any) -> FloatArray:
        """Values that the model predicts for rows, in the units of the targets."""
        if hasattr(self, "tree_"):
            return predict_values(self.tree_, rows)
        from treewright.models.laptao.fit import SmoothModel

        held = {name: getattr(self, attribute) for name, attribute in _ATTRIBUTES.items() if hasattr(self, attribute)}
        near = int(self.n_neighbors), float(self.perplexity), self._threads
        return SmoothModel(**held).scores(rows, *near)

    def _need_tree(self) -> None:
        check_is_fitted(self, "n_iter_")
        if not hasattr(self, "tree_"):
            raise InvalidInputError(
                f"this fit is not one tree (estimator={self.estimator!r}, n_estimators={self.n_estimators}); only "
                "estimator='tao' and estimator='cart' with n_estimators=1 have tree_"
            )

    # ------------------------------------------------------------------ model files

    def _fitted_state(self) -> dict[str, Any]:
        told: dict[str, Any] = {"best_iter": int(self.best_iter_)}
        if hasattr(self, "leaf_values_"):  # files of before have none
            told |= {"leaf_values": self.leaf_values_.tolist(), "split_price": float(self.split_price_)}
        return super()._fitted_state() | told

    def _restore_state(self, state: dict[str, Any]) -> None:
        super()._restore_state(state)
        self.best_iter_ = whole_number(state, "best_iter")
        values, price = state.get("leaf_values"), state.get("split_price")
        if values is None and price is None:
            return
        if price is None or not is_number(price) or price < 0:
            raise ModelFileError(f"fit.split_price is {price!r}, expected a number from 0 on")
        shape, rows = self.tree_.values.shape, values if isinstance(values, list) else []
        fine = len(rows) == shape[0] and all(
            isinstance(row, list) and len(row) == shape[1] and all(map(is_number, row)) for row in rows
        )
        if not fine:
            raise ModelFileError(f"fit.leaf_values: expected {shape[0]} lists of {shape[1]} numbers")
        self.leaf_values_, self.split_price_ = np.array(values, dtype=np.float64), float(price)


@estimator
class LapTAOClassifier(TaughtModel, LapTAOModel, TreeClassifier):
    r"""Classification tree from few labels and many unlabelled rows, smooth along their graph of neighbours (LapTAO).

    Lowers

    .. math:: \sum_n c_n \lVert T(x_n) - y_n \rVert^2
        + \frac{\gamma}{2} \sum_{n, m} w_{nm} \lVert T(x_n) - T(x_m) \rVert^2
        + \alpha s^2 \sum_t \lVert w_t \rVert_1 / \lVert w_t \rVert_2

    where T is a tree, y has a 1 in the column of the class, w are affinities of nearest neighbours (Zharmagambetov and
    Carreira-Perpinan 2022), :math:`w_t` is the normal of split t on features scaled to [0, 1] (of a category the ratio
    is 1), and s is the distance of the labels that the first tree is fitted to from their mean. The weight
    :math:`c_n` is that of the row where it has a label, `trust_weight` or `teacher_weight` times that where the label
    is a trusted one or the teacher's, and else 0. `objective_` is this sum, with y in ``targets_``, c in
    ``target_weight_``, T in ``leaf_values_`` (by the numbers that :meth:`apply` gives) and :math:`\alpha s^2` in
    ``split_price_``. Labels smoothed along the graph and a tree that predicts them take turns while a
    penalty and multipliers make them agree; in the end leaves get their best values. Nothing is proven.

    Parameters
    ----------
    max_depth, alpha, gamma
    trust : float
        Share of the unlabelled rows, in each class the clearest ones, whose labels smoothed along the graph are taken
        for labels. With few labels these are nearly right and nearly flat, which a tree cannot fit; 0 is the paper's
        method. Without meaning for ``estimator="graph"``.
    trust_weight : float
        Weight of such a label, relative to a given one.
    teacher
    teacher_weight : float or "auto"
        Weight of what the teacher says of an unlabelled row, relative to a given label: 0 is the graph alone, with 10
        the tree follows the teacher. "auto" is the weight with which labels smoothed along the graph tell most of the
        labels left out in five folds; 1 where the teacher is an array, which may have seen all of them.
    estimator : {"tao", "cart", "graph"} or regressor
        The model: a tree by alternating optimization; CART (LapCART); labels smoothed along the graph alone, new rows
        being averages of their neighbours, of which probabilities are as sure as labels left out say where there is no
        teacher; or any regressor of scikit-learn, a copy for each class if it knows one
        output alone. Probabilities of a regressor and of a forest are the values that it predicts, scaled to sum to 1.
    max_split_features, init, stretch, n_estimators, max_samples, max_features, max_iter, init_passes, passes, mu
    mu_factor, multiplier_rule, tol, n_neighbors, perplexity, neighbors, mutual, graph_cache, categorical_features
    unlabeled, time_limit, n_jobs, random_state, verbose, warm_start

    Attributes
    ----------
    tree_, trees_, estimator_, points_, values_, classes_
    transduction_ : ndarray
        Labels of all training rows: those given, and for the others those smoothed along the graph, which on these rows
        are often more accurate than the tree.
    teacher_
    teacher_weight_ : float
        Weight of what the teacher says that was used; only with a teacher.
    objective_, targets_, target_weight_, leaf_values_, split_price_, alpha_, n_iter_, best_iter_, status_, reason_
    trace_, random_state_, record_, solve_time_, scaling_, mean_
    n_features_in_, feature_names_in_, categories_, has_missing_
    feature_importances_

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

    gamma: float = parameter(default=0.1, allowed=[Interval(Real, 0, None, closed="neither")])
    trust: float = parameter(default=0.9, allowed=[Interval(Real, 0, 1, closed="both")])
    trust_weight: float = parameter(default=0.3, allowed=[Interval(Real, 0, None, closed="neither")])
    teacher_weight: float | str = parameter(
        default="auto", allowed=[Interval(Real, 0, None, closed="left"), StrOptions({"auto"})]
    )
    unlabeled: Any = parameter(default=-1, allowed="no_validation")

    _sometimes = (*LapTAOModel._sometimes, "teacher_", "teacher_weight_")

    def _trained(self, given: Given, prepared: Any, budget: Budget) -> tuple[FitRecord, dict[str, Any]]:
        from treewright.models.laptao.graph_teacher import GraphTeacher
        from treewright.teachers.given import teacher_of_parameter

        problem = semi_supervised_problem(given.without_features(), self.unlabeled)
        Y, graph_teacher = np.eye(problem.n_classes)[np.maximum(problem.y, 0)], None
        if self.teacher is not None:
            given_teacher = teacher_of_parameter(self.teacher, problem, self._seed())
            graph_teacher = GraphTeacher(problem.classes, given_teacher, self.teacher_weight)
        found, fitted = self._found_by(given, Y, problem.weight, problem.labelled, budget, graph_teacher)
        if found.taught is not None:
            fitted |= {"teacher_": found.taught.teacher, "teacher_weight_": found.taught.weight}
        if found.model.tree is not None:
            fitted |= labelled_in_leaves(found.model.tree, given.X, problem)
        numbers = np.where(problem.labelled, problem.y, found.smooth.argmax(axis=1))
        return found.record, fitted | {"classes_": problem.classes, "transduction_": problem.classes[numbers]}

    def _class_numbers(self, rows: Any) -> IntArray:
        return self._values(rows).argmax(axis=1)

    def _class_shares(self, rows: Any) -> FloatArray:
        """Of a tree those of its leaves; of others the values of the model, cut off below 0 scaled to a sum of 1.

        Those of the graph alone are made as sure as labels left out say, where there was time and no teacher.
        """
        if hasattr(self, "tree_") and self.tree_.probabilities is not None:
            return super()._class_shares(rows)
        return self._shares_of(self._values(rows))

    def _node_classes(self) -> IntArray:
        return self.tree_.values.argmax(axis=1)

    def _node_shares(self) -> FloatArray:
        return self._shares_of(self.tree_.values) if self.tree_.probabilities is None else self.tree_.probabilities

    def _shares_of(self, values: FloatArray) -> FloatArray:
        """Probabilities by what the model says of rows."""
        if hasattr(self, "_levels"):
            from treewright.models.laptao.likely import smoothed_log_shares

            return agreeing_probabilities(
                softmax(self._slope * smoothed_log_shares(values) + self._levels, axis=1), values.argmax(axis=1)
            )
        scores = np.maximum(values, 0.0)
        total = scores.sum(axis=1, keepdims=True)
        return np.asarray(np.where(total > 0, scores / np.where(total > 0, total, 1.0), 1.0 / scores.shape[1]))


@estimator
class LapTAORegressor(LapTAOModel, TreeRegressor):
    r"""Regression tree from few labels and many unlabelled rows, smooth along their graph of neighbours (LapTAO).

    The objective and the method are those of :class:`LapTAOClassifier`, for one or several numerical outputs, with y
    and T divided by ``scale_``, the root of the variance of the known targets, so that it does not depend on their
    units: `objective_` is its first two sums, of ``targets_`` and ``leaf_values_``, over ``scale_ ** 2``, plus the
    price of splits.

    Parameters
    ----------
    max_depth, alpha, gamma
    estimator : {"tao", "cart", "graph"} or regressor
        The model: a tree by alternating optimization; CART (LapCART); labels smoothed along the graph alone, new rows
        being averages of their neighbours; or any regressor of scikit-learn, a copy for each output if it knows one
        output alone.
    max_split_features, init, stretch, n_estimators, max_samples, max_features, max_iter, init_passes, passes, mu
    mu_factor, multiplier_rule, tol, n_neighbors, perplexity, neighbors, mutual, graph_cache, categorical_features
    unlabeled : float or None
        Mark of missing targets in y; NaN and None are marks too.
    time_limit, n_jobs, random_state, verbose, warm_start

    Attributes
    ----------
    tree_, trees_, estimator_, points_, values_
    transduction_ : ndarray
        Targets of all training rows: those given, and for the others those smoothed along the graph.
    objective_ : float
        Objective of the model, its leaves at their best values, in units of the variance of the known targets.
    targets_, target_weight_, leaf_values_, split_price_, alpha_, n_iter_, best_iter_, status_, reason_, trace_
    random_state_, record_, solve_time_, scaling_, mean_, scale_
    n_features_in_, feature_names_in_, categories_, has_missing_
    feature_importances_

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

    gamma: float = parameter(default=0.01, allowed=[Interval(Real, 0, None, closed="neither")])
    unlabeled: Any = parameter(default=np.nan, allowed=[Real, None])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _trained(self, given: Given, prepared: Any, budget: Budget) -> tuple[FitRecord, dict[str, Any]]:
        Y, missing, _ = partly_known_targets(self, given, self.unlabeled)
        if missing.all():
            raise InvalidInputError(f"none of the {len(Y)} rows has a target; at least one must be labelled")
        partly = np.flatnonzero(missing.any(axis=1) & ~missing.all(axis=1))
        if len(partly):
            raise InvalidInputError(
                f"row {partly[0]} has some outputs and misses others; LapTAO needs all or none of a row: fill them in, "
                "or fit an estimator for each output"
            )
        labelled = np.asarray(~missing.any(axis=1))
        found, fitted = self._found_by(given, Y, given.checked_weight(), labelled, budget)
        filled = np.where(labelled[:, None], Y, found.smooth)
        return found.record, fitted | {"transduction_": filled[:, 0] if filled.shape[1] == 1 else filled}


def _round_told(now: Round) -> None:
    name = "stretched" if now.finished else f"round {now.number:2d}"
    sums = f"labels {now.label_loss:.4g} + edges {now.smoothness:.4g} + splits {now.price:.4g}"
    course = f"mu {now.mu:.4f}  residual {now.residual:.4g}  moved {now.moved:.1%}"
    note(objective=now.objective, detail=f"= {sums}  {name:9s}  {course}", step=True)
