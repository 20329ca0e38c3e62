"""OCTSVM and RE-SVM as scikit-learn classifiers, and the labels that they hold for wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.budget import Budget
from treewright.data.columns_checked import plain
from treewright.engine.leaf_probabilities import agreeing_probabilities
from treewright.estimators.model import Given, SolvedModel, settings_of
from treewright.estimators.parameters import estimator, parameter, parameters
from treewright.estimators.problems import supervised_problem
from treewright.estimators.record_files import is_number
from treewright.estimators.tree_model import TreeClassifier
from treewright.exceptions import InvalidInputError, ModelFileError
from treewright.models.octsvm.against import last_split_values, tree_against_others
from treewright.optimize.record import FitRecord
from treewright.tree import Tree, route
from treewright.tree.serialize import tree_from_dict, tree_to_dict
from treewright.tree.text import path_texts
from treewright.tree.words import FeatureWords

if TYPE_CHECKING:
    from treewright.models.octsvm.fit import OCTSVMFit, OCTSVMSettings
    from treewright.optimize.conduct import Conduct


__all__ = ["OCTSVMClassifier", "RESVMClassifier", "SuspectLabel"]

_CHOSEN = ("max_norm", "relabel_cost")
_PRICE = [Interval(Real, 0, None, closed="right"), None]


class SuspectLabel(NamedTuple):
    """A row of the table of labels that OCTSVM or RE-SVM hold for wrong, the most suspicious first.

    Attributes
    ----------
    row : int
        Number of the row, from 0, in the order of the fit.
    label, suggested : object
        The label it has, and the one it should have.
    suspicion : float
        How much speaks against the label.
    relabeled : bool
        Whether the label is held for wrong.
    rule : str
        The way of the row through the tree, which the label breaks; empty if the tree agrees with the label.
    """

    row: int
    label: Any
    suggested: Any
    suspicion: float
    relabeled: bool
    rule: str


class _Judged:
    """What fits say of labels and of their trees."""

    trees_: list[Tree]
    relabeled_: BoolArray
    suggested_: np.ndarray
    suspicion_: FloatArray
    max_norm_: float | None
    relabel_cost_: float | None
    _leaf_of_row: list[IntArray]
    _labels_given: np.ndarray


@parameters
class RelabelingModel(_Judged, SolvedModel, TreeClassifier):
    """Mixin of OCTSVM and RE-SVM, the classifiers that find wrong labels.

    Parameters
    ----------
    norm : {"l2", "l1", "linf"}
        Norm of the normals. "l2" is the paper's; the others make the program linear and "l1" the rules sparse.
    relabel : {"committee", "tree"}
        Who finds wrong labels. "committee": trees of four kinds on parts of the rows judge those that they did not see;
        suspects get the label that it suggests, and the model is fitted to these labels. "tree": the model of the paper
        alone, which judges the rows that it is fitted to.
    n_estimators : int
        Rounds of the committee, in each of which a tree of each kind joins; at least 5.
    time_limit : float or None
        Seconds for the whole fit, of which the committee takes two fifths at most.
    n_jobs : int or None
        Threads of the committee and the solver: None for one, -1 for all cores.
    warm_start : bool, Tree or fitted estimator
        Tree to start from; True goes on from the last fit.

    Attributes
    ----------
    tree_ : Tree
        The tree, in the units of the data; with several classes that of the first one against all others.
    trees_ : list of Tree
        One tree, or one a class against all others if there are more than two.
    relabeled_ : ndarray of bool, shape (n_samples,)
        Rows whose labels are held for wrong; not in model files.
    suggested_ : ndarray of shape (n_samples,)
        Labels that the rows should have; not in model files.
    suspicion_ : ndarray of shape (n_samples,)
        What speaks against each label, the more the larger; NaN for rows of weight 0. By the committee the log-odds of
        the most probable other label against the given one, by trees that did not see the row; by the tree how much
        cheaper the other label would make it. Not in model files.
    objective_, bound_ : float
        Objective of the tree on the labels as corrected, and proven lower bound of that of any tree; sums over the
        trees, if there are several.
    """

    norm: str = parameter(default="l2", allowed=[StrOptions({"l2", "l1", "linf"})])
    relabel: str = parameter(default="committee", allowed=[StrOptions({"committee", "tree"})])
    n_estimators: int = parameter(default=60, allowed=[Interval(Integral, 5, None, closed="left")])
    warm_start: Any = parameter(default=False, allowed=["boolean", Tree, TreeClassifier])

    _sometimes: ClassVar[tuple[str, ...]] = ("relabeled_", "suggested_", "suspicion_", "_leaf_of_row", "_labels_given")

    def _settings(self) -> OCTSVMSettings:
        raise NotImplementedError

    def _level(self) -> int:
        """Level of the last splits."""
        raise NotImplementedError

    def _trained(self, given: Given, prepared: Conduct, budget: Budget) -> tuple[FitRecord, dict[str, Any]]:
        from treewright.engine.leaf_probabilities import smoothed_tree
        from treewright.models.octsvm.fit import train_octsvm

        settings = self._settings()
        problem = supervised_problem(given)
        starts = self._given_trees(problem.n_features)
        with budget.stop_on_interrupt():
            found = train_octsvm(problem, settings, prepared, budget, starts)
        trees = [smoothed_tree(tree, problem) for tree in found.trees]
        fitted = {
            "classes_": problem.classes,
            "tree_": trees[0],
            "trees_": trees,
            "relabeled_": found.relabeled,
            "suggested_": problem.classes[found.suggested],
            "suspicion_": found.suspicion,
            "_leaf_of_row": [route(tree, problem.X) for tree in found.trees],
            "_labels_given": problem.classes[problem.y],
        }
        return found.record, fitted | self._chosen(found)

    def _chosen(self, found: OCTSVMFit) -> dict[str, Any]:
        """Fitted attributes that say what was chosen."""
        return {}

    def _given_trees(self, n_features: int) -> list[Tree]:
        """Trees that ``warm_start`` names: those of the last fit, or one."""
        if self.warm_start is True and len(getattr(self, "trees_", [])) > 1:
            return list(self.trees_) if self.trees_[0].n_features == n_features else []
        given = self._given_tree(n_features)
        return [] if given is None else [given]

    # ------------------------------------------------------------------ predictions

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Return how far rows are on the side of a class at the last split on their way; margins are met from 1 on.

        Rows in a leaf that says the class of the other side have -1 or 1.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Values of the second class, or of each class against all others if there are more than two.
        """
        values = self._values(self._check_rows(X))
        return np.asarray(values[:, 0] if values.shape[1] == 1 else values)

    def _values(self, rows: Any) -> FloatArray:
        if len(self.trees_) == 1:
            return last_split_values(self.tree_, rows, self._level())[:, None]
        sides = [tree_against_others(tree, label) for label, tree in enumerate(self.trees_)]
        values = np.stack([last_split_values(tree, rows, self._level()) for tree in sides], axis=1)
        # where no tree speaks for a class, or several alike, its share in the leaf decides
        shares = [tree.shares()[route(tree, rows), k] for k, tree in enumerate(self.trees_)]
        return np.asarray(values + 1e-6 * np.stack(shares, axis=1))

    def _class_numbers(self, rows: Any) -> IntArray:
        if len(self.trees_) == 1:
            return super()._class_numbers(rows)
        return np.asarray(self._values(rows).argmax(axis=1))

    def _class_shares(self, rows: Any) -> FloatArray:
        if len(self.trees_) == 1:
            return super()._class_shares(rows)
        own = np.stack([tree.likely()[route(tree, rows), k] for k, tree in enumerate(self.trees_)], axis=1)
        return agreeing_probabilities(own / own.sum(axis=1, keepdims=True), self._class_numbers(rows))

    def _need_routes(self) -> None:
        check_is_fitted(self)
        if len(self.trees_) > 1:
            raise InvalidInputError(
                f"there are {len(self.trees_)} trees, one a class against all others; route rows through trees_"
            )

    def _joining(self) -> dict[str, Any]:
        if len(self.trees_) == 1:
            return {}
        return {"trees": self.trees_, "way": "against", "level": self._level()}

    # ------------------------------------------------------------------ wrong labels

    def relabel_table(
        self, only_relabeled: bool = False, words: Mapping[int, FeatureWords] | None = None
    ) -> list[SuspectLabel]:
        """Return the training rows, those with the most suspicious labels first, with the rule that a label breaks.

        Parameters
        ----------
        only_relabeled : bool
            Whether to leave out rows whose labels are believed.
        words : mapping of int to FeatureWords, or None
            Words for features that are flags or dates, as for :meth:`export_text`.

        Returns
        -------
        list of SuspectLabel
            One entry a row; ``pandas.DataFrame`` makes a frame of it.
        """
        check_is_fitted(self)
        if not hasattr(self, "suspicion_"):
            raise InvalidInputError("model files do not hold the training rows; fit the model to them")
        order = np.argsort(-np.nan_to_num(self.suspicion_, nan=-np.inf), kind="stable")
        order = order[self.relabeled_[order]] if only_relabeled else order
        texts = [path_texts(tree, self._feature_names(), words=words) for tree in self.trees_]
        numbers = np.searchsorted(self.classes_, self.suggested_).tolist()
        table = []
        for row in order.tolist():
            label, suggested = self._labels_given[row], self.suggested_[row]
            which = 0 if len(self.trees_) == 1 else numbers[row]
            tree, leaf = self.trees_[which], int(self._leaf_of_row[which][row])
            assert tree.labels is not None
            says = self.classes_[tree.labels[leaf]]
            rule = f"{texts[which][leaf] or 'everywhere'}: {says}" if says != label else ""
            held = float(self.suspicion_[row]), bool(self.relabeled_[row])
            table.append(SuspectLabel(row, plain(label), plain(suggested), *held, rule))
        return table

    def _feature_names(self) -> list[str] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    # ------------------------------------------------------------------ text and model files

    def _read_trees(self) -> list[tuple[str, Tree, list[str]]]:
        if len(self.trees_) == 1:
            return super()._read_trees()
        found = []
        for k, label in enumerate(map(str, self.classes_)):
            tree, own = tree_against_others(self.trees_[k], k), self.trees_[k]
            tree = tree.with_leaves(_against(own.values, k), tree.labels)
            if own.probabilities is not None:
                tree = replace(tree, probabilities=_against(own.probabilities, k))
            found.append((f"{label} against all others", tree, [f"not {label}", label]))
        return found

    def _fitted_state(self) -> dict[str, Any]:
        return super()._fitted_state() | {"others": [tree_to_dict(tree) for tree in self.trees_[1:]]}

    def _restore_state(self, state: dict[str, Any]) -> None:
        super()._restore_state(state)
        if not isinstance(state["others"], list):
            raise ModelFileError("fit.others must be a list")
        self.trees_ = [self.tree_, *(tree_from_dict(tree) for tree in state["others"])]
        expected = 1 if len(self.classes_) <= 2 else len(self.classes_)
        if len(self.trees_) != expected:
            raise ModelFileError(f"there are {len(self.trees_)} trees, expected {expected}")


def _against(table: FloatArray, k: int) -> FloatArray:
    """All columns but one added up, and that one."""
    return np.column_stack([table.sum(axis=1) - table[:, k], table[:, k]])


@estimator
class OCTSVMClassifier(RelabelingModel):
    r"""Optimal tree of maximum-margin splits that finds and corrects wrong labels (OCTSVM).

    Minimizes

    .. math::
        \sum_i w_i \sum_{t \text{ on the way of } i} \min([1 - m_{it}]^+,\ r_2 + [1 + m_{it}]^+) + r_3 \sum_t d_t
        \quad\text{with}\quad \lVert \omega_t \rVert \le B

    over the trees whose nodes t split by :math:`\omega_t^\top x + \omega_{t0}`, features scaled to [0, 1], where
    :math:`m_{it}` is that value times the label, -1 or +1, of row i (Blanco, Japon, Puerto 2022). At every split on its
    way a row pays for missing its margin, with its own label or, for :math:`r_2` more, with the other one: then it is
    relabelled. ``max_norm`` is B, ``relabel_cost`` :math:`r_2`, and ``split_cost`` times the weight of all rows
    :math:`r_3`. With `c1`, `c2` and `c3` the objective is the paper's,
    :math:`\delta + c_1 \sum e + c_2 \sum \xi + c_3 \sum d` with :math:`\delta = \frac12 \max_t \lVert \omega_t \rVert`,
    which has the same trees for matching values. The fitted tree is in the units of the data.

    The model helps where labels are wrong and where classes are not parted by one hyperplane; where they are, and the
    labels are right, logistic regression does as well. More than two classes have a tree each, against all others.

    Parameters
    ----------
    max_depth : int
        Level of the last splits, as in the paper: all nodes of levels 0 to `max_depth` may split, so that a row passes
        up to ``max_depth + 1`` splits. 0 is one hyperplane.
    max_norm : float or "auto"
        Largest norm of a normal: margins are at least ``1 / max_norm`` wide on each side, where features have range 1.
        "auto" chooses among 1, 2, 4, 8 and 16 by cross-validation on the corrected labels; 2 unless another one is
        better by more than a standard error.
    relabel_cost : float or "auto"
        Price of a relabelled row at a split, in units of missed margin; infinite if labels are to be believed. "auto"
        is 2 with ``relabel="committee"``, which corrects labels before, else 1.
    split_cost : float
        Price of a split as a share of the rows.
    c1, c2, c3 : float or None
        The paper's prices of missed margins, of relabelled rows and of splits, all three or none; instead of
        `max_norm`, `relabel_cost` and `split_cost`.
    norm, relabel, n_estimators, solver, time_limit, gap, n_jobs, random_state, verbose, warm_start

    Attributes
    ----------
    tree_, trees_, classes_, relabeled_, suggested_, suspicion_
    max_norm_, relabel_cost_ : float or None
        The `max_norm` and `relabel_cost` that were used; None with the paper's prices.
    objective_, bound_, gap_, status_, reason_, solve_time_, trace_, random_state_, record_, n_features_in_
    feature_names_in_
    feature_importances_

    See Also
    --------
    find_wrong_labels : The committee alone, as a step before any other classifier.
    RESVMClassifier : One hyperplane.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from treewright import OCTSVMClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((60, 2))
    >>> truth = (np.abs(X[:, 0] - 0.5) < 0.22).astype(int)
    >>> y = np.where(np.arange(60) < 9, 1 - truth, truth)  # nine wrong labels
    >>> model = OCTSVMClassifier(max_depth=1, n_estimators=6, time_limit=4, random_state=0)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # nothing is proven in so short a time
    ...     model = model.fit(X, y)
    >>> model.score(X, truth) > 0.9, model.relabeled_[:9].sum() >= 5
    (True, np.True_)
    """

    max_depth: int = parameter(default=2, allowed=[Interval(Integral, 0, 8, closed="both")], kw_only=False)
    max_norm: float | str = parameter(
        default="auto", allowed=[Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})]
    )
    relabel_cost: float | str = parameter(
        default="auto", allowed=[Interval(Real, 0, None, closed="right"), StrOptions({"auto"})]
    )
    split_cost: float = parameter(default=0.04, allowed=[Interval(Real, 0, None, closed="left")])
    c1: float | None = parameter(default=None, allowed=[Interval(Real, 0, None, closed="neither"), None])
    c2: float | None = parameter(default=None, allowed=_PRICE)
    c3: float | None = parameter(default=None, allowed=[Interval(Real, 0, None, closed="left"), None])

    def _prepared(self, weighted: bool) -> Conduct:
        given = [name for name in ("c1", "c2", "c3") if getattr(self, name) is not None]
        if 0 < len(given) < 3:
            raise InvalidInputError(f"{' and '.join(given)} alone; give c1, c2 and c3, or none of them")
        if given and self.max_norm != "auto":
            raise InvalidInputError("max_norm stands beside relabel_cost and split_cost, not beside c1, c2 and c3")
        return super()._prepared(weighted)

    def _settings(self) -> OCTSVMSettings:
        from treewright.models.octsvm.fit import OCTSVMSettings

        return settings_of(self, OCTSVMSettings)

    def _level(self) -> int:
        return self.max_depth

    def _chosen(self, found: OCTSVMFit) -> dict[str, Any]:
        return {"max_norm_": found.max_norm, "relabel_cost_": found.relabel_cost}

    def _fitted_state(self) -> dict[str, Any]:
        chosen = {name: getattr(self, f"{name}_") for name in _CHOSEN}
        # JSON has no infinite numbers
        return super()._fitted_state() | {name: "inf" if value == np.inf else value for name, value in chosen.items()}

    def _restore_state(self, state: dict[str, Any]) -> None:
        super()._restore_state(state)
        for name in _CHOSEN:
            value = np.inf if state[name] == "inf" else state[name]
            if value is not None and value != np.inf and (not is_number(value) or value < 0):
                raise ModelFileError(f"fit.{name} is {value!r}, expected a number from 0 on, or null")
            setattr(self, f"{name}_", value)


@estimator
class RESVMClassifier(RelabelingModel):
    r"""Support vector machine that relabels rows (RE-SVM).

    Minimizes

    .. math:: \tfrac12 \lVert \omega \rVert_2^2 + c_1 \sum_i w_i e_i + c_2 \sum_i w_i \xi_i
        \quad\text{s.t.}\quad (1 - 2 \xi_i) y_i (\omega^\top x_i + \omega_0) \ge 1 - e_i,\ \xi_i \in \{0, 1\}

    over hyperplanes, features scaled to [0, 1] (Blanco, Japon, Puerto 2020). With a huge `c2` it is the linear support
    vector machine. More than two classes have a hyperplane each, against all others.

    Parameters
    ----------
    c1 : float
        Price of missed margins, as C of scikit-learn's machines.
    c2 : float
        Price of a relabelled row.
    norm
    relabel
    n_estimators, solver, time_limit, gap, n_jobs, random_state, verbose, warm_start

    Attributes
    ----------
    tree_, trees_, classes_, relabeled_, suggested_, suspicion_
    objective_, bound_, gap_, status_, reason_, solve_time_, trace_, random_state_, record_, n_features_in_
    feature_names_in_
    feature_importances_

    Examples
    --------
    >>> from treewright import RESVMClassifier
    >>> X, y = [[0.0], [0.1], [0.2], [0.8], [0.9], [1.0], [0.05]], [0, 0, 0, 1, 1, 1, 1]
    >>> model = RESVMClassifier(c1=10.0, c2=5.0, relabel="tree").fit(X, y)
    >>> model.relabeled_.tolist()
    [False, False, False, False, False, False, True]
    """

    c1: float = parameter(default=1.0, allowed=[Interval(Real, 0, None, closed="neither")])
    c2: float = parameter(default=1.0, allowed=[Interval(Real, 0, None, closed="right")])
    relabel: str = parameter(default="tree", allowed=[StrOptions({"committee", "tree"})])

    def _settings(self) -> OCTSVMSettings:
        from treewright.models.octsvm.fit import OCTSVMSettings

        common = {name: getattr(self, name) for name in ("norm", "relabel", "n_estimators")}
        return OCTSVMSettings(max_depth=0, c1=float(self.c1), c2=float(self.c2), c3=0.0, machine=True, **common)

    def _level(self) -> int:
        return 0
