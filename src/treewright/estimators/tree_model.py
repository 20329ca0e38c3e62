"""What every treewright estimator with a single tree can do once it is fitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.names import printable
from treewright.data import Problem
from treewright.estimators.files import read_model, write_model
from treewright.estimators.model import NewRows, PredictsClasses, PredictsOutputs
from treewright.estimators.record_files import is_number
from treewright.estimators.taken_along import TakenAlong, checked_names
from treewright.exceptions import InvalidInputError, ModelFileError
from treewright.tree import Tree, decision_path, predict_values, route, sure_cases, telling_digits
from treewright.tree.number_text import MAX_PRECISION
from treewright.tree.text import export_text
from treewright.tree.words import FeatureWords

__all__ = ["TreeClassifier", "TreeModel", "TreeRegressor", "labelled_in_leaves", "rows_in_leaves"]


class TreeModel(TakenAlong, NewRows, BaseEstimator):
    """Base of the estimators whose fitted form is one tree in the units of the data (``tree_``)."""

    tree_: Tree
    n_features_in_: int
    _leaf_rows: FloatArray
    """Training rows in each leaf, by number of the node; only where values of the tree do not tell."""
    _leaf_labelled: FloatArray
    """Those of them that have a label of their own; only where values tell of others too."""
    _weighted_leaves: bool
    """Whether counts of classes in leaves are sums of weights that are not all 1; only where they are."""
    _spread: FloatArray
    """Standard deviation of each feature in training; only where splits weigh several features."""
    warm_start: Any
    _rule_digits: dict[int, int]
    _rule_sure: dict[int, list[int]]
    """How rules say of the rows of a table what the tree says; of those that the command line fitted."""

    def apply(self, X: ArrayLike) -> IntArray:
        """Return the leaf that each row reaches, as a node number of ``tree_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to route.

        Returns
        -------
        ndarray of int, shape (n_samples,)
            Leaves.
        """
        self._need_routes()
        return route(self.tree_, self._check_rows(X))

    def decision_path(self, X: ArrayLike) -> sparse.csr_array:
        """Return the nodes that each row visits.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to route.

        Returns
        -------
        csr_array of shape (n_samples, n_nodes)
            1 where the row visits the node.
        """
        self._need_routes()
        return decision_path(self.tree_, self._check_rows(X))

    def export_text(
        self,
        precision: int = 4,
        max_depth: int | None = None,
        leaf_texts: Mapping[int, str] | None = None,
        words: Mapping[int, FeatureWords] | None = None,
        X: ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> str:
        """Write the tree as rules, with feature and class names, in the units of the data.

        Of a model with a tree for each class, all of them, each with a title.

        Parameters
        ----------
        precision : int
            Significant digits.
        max_depth : int or None
            Depth below which the rest is left out.
        leaf_texts : mapping of int to str, or None
            What to write for leaves, by the numbers that :meth:`apply` gives, instead of class and labelled rows; for
            one tree alone.
        words : mapping of int to FeatureWords, or None
            Words for features that are flags or dates, such as those of a `TableEncoder` (its ``words``).
        X : array-like of shape (n_samples, n_features), or None
            Rows of which the rules are to say what the tree says: numbers have more digits where rounded ones would
            send a row elsewhere, and "or missing" is written for features that these rows lack, too.

        feature_names : sequence of str, or None
            Names of the features, by default those of the frame that the model was fitted to, or x0, x1, ...

        Returns
        -------
        str
            The rules.
        """
        self._need_tree()
        trees, rows = self._read_trees(), None if X is None else self._check_rows(X)
        gaps = None if rows is None or sparse.issparse(rows) else np.isnan(rows).any(axis=0)
        texts = []
        for title, tree, classes in trees:
            naming = self._naming(words, gaps)
            if feature_names is not None:
                naming["feature_names"] = checked_names(feature_names, tree.n_features)
            if rows is not None:
                naming["digits"] = _digits(tree, rows, words, precision)
                naming["sure"] = {} if sparse.issparse(rows) else sure_cases(tree, rows, words)
            naming |= self._leaf_words()
            if len(trees) == 1:
                naming["leaf_texts"] = leaf_texts
            else:
                naming |= {"leaf_rows": None, "leaf_labelled": None}
            text = export_text(tree, class_names=classes or None, precision=precision, max_depth=max_depth, **naming)
            texts.append(f"{title}:\n{text}" if title else text)
        return "\n\n".join(texts)

    def _note_rules(self, rows: Any, words: Mapping[int, FeatureWords] | None = None) -> None:
        """Note with which digits, and in which cases, rules say of checked rows what the tree says."""
        self._rule_digits = _digits(self.tree_, rows, words, 4)
        self._rule_sure = {} if sparse.issparse(rows) else sure_cases(self.tree_, rows, words)

    def _naming(self, words: Mapping[int, FeatureWords] | None = None, gaps: BoolArray | None = None) -> dict[str, Any]:
        """How features and their levels are named in rules, as arguments of :func:`treewright.tree.export_text`.

        `gaps` are features that rows lack which the rules are about, beside those of the fit.
        """
        names, levels = getattr(self, "feature_names_in_", None), getattr(self, "categories_", None)
        shown = getattr(self, "has_missing_", False)
        return {
            "feature_names": None if names is None else [str(n) for n in names],
            "category_names": None if levels is None else {j: v for j, v in enumerate(levels) if v is not None},
            "show_missing": shown if gaps is None else shown | gaps,
            "words": words,
            "digits": getattr(self, "_rule_digits", None),
            "sure": getattr(self, "_rule_sure", None),
        }

    def _leaf_words(self) -> dict[str, Any]:
        """What is told of the rows of leaves, as arguments of :func:`treewright.tree.export_text`.

        Where a fit has noted no weights of rows, fractions say whether values are weights.
        """
        return {
            "leaf_rows": getattr(self, "_leaf_rows", None),
            "leaf_labelled": getattr(self, "_leaf_labelled", None),
            "weighted": True if getattr(self, "_weighted_leaves", False) else None,
        }

    def _leaf_notes(self) -> list[str]:
        """How to read shares of classes in leaves that are not of given labels alone, in sentences."""
        if not hasattr(self, "_leaf_labelled"):
            return []
        teacher = getattr(self, "teacher_", None)
        by = "the graph" if teacher is None else f"a teacher ({printable(teacher.name)})"
        return [f"Shares of classes in the leaves are of all their rows, those without a label as {by} labels them."]

    def _read_trees(self) -> list[tuple[str, Tree, list[str]]]:
        """Trees that a reader is shown: a title, the tree, and the names of its classes."""
        self._need_tree()
        return [("", self.tree_, [str(c) for c in getattr(self, "classes_", [])])]

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a JSON file (never pickle), which :meth:`load` reads.

        Parameters
        ----------
        path : str or Path
            Where to write.
        """
        self._need_tree()
        write_model(self, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model that :meth:`save` wrote.

        Parameters
        ----------
        path : str or Path
            The file.

        Returns
        -------
        estimator
            A fitted estimator of this class.
        """
        return read_model(Path(path), cls)

    def _need_tree(self) -> None:
        """Refuse what only one fitted tree can do; estimators whose fits may be something else say so."""
        check_is_fitted(self)

    def _need_routes(self) -> None:
        """Refuse to route rows where it is not clear through which tree."""
        self._need_tree()

    def _named_tree(self, n_features: int) -> Tree | None:
        """Return the tree that ``warm_start`` names, in the units of the data, if it names one."""
        given = self.warm_start
        if isinstance(given, TreeModel):
            if not hasattr(given, "tree_"):
                raise NotFittedError(
                    f"warm_start is a {type(given).__name__} that is not fitted (scikit-learn's clone drops fits); "
                    "pass its tree_ instead"
                )
            given = given.tree_
        elif given is True:
            given = getattr(self, "tree_", None)
        if not isinstance(given, Tree):
            return None
        if given.n_features != n_features:
            raise InvalidInputError(f"the warm-start tree has {given.n_features} features, X has {n_features}")
        return given

    def _given_tree(self, n_features: int) -> Tree | None:
        """Return the tree that ``warm_start`` names; refuse one with categorical splits."""
        given = self._named_tree(n_features)
        return None if given is None else given.numerical()

    def _fitted_state(self) -> dict[str, Any]:
        """Plain values of a fit that a model file keeps beside record, tree, classes and names."""
        counts = ("leaf_rows", "leaf_labelled")
        state: dict[str, Any] = {n: getattr(self, f"_{n}").tolist() for n in counts if hasattr(self, f"_{n}")}
        state |= {"spread": self._spread.tolist()} if hasattr(self, "_spread") else {}
        return state | ({"weighted": True} if hasattr(self, "_weighted_leaves") else {})

    def _restore_state(self, state: dict[str, Any]) -> None:
        """Set the fitted attributes from what :meth:`_fitted_state` gave; refuse what it cannot have given."""
        weighted = state.get("weighted", False)
        if not isinstance(weighted, bool):
            raise ModelFileError(f"fit.weighted is {weighted!r}, expected true or false")
        if weighted:
            self._weighted_leaves = True
        spread = state.get("spread")
        if spread is not None:
            fine = isinstance(spread, list) and all(is_number(number) and number >= 0 for number in spread)
            if not fine or len(spread) != self.tree_.n_features:
                raise ModelFileError(f"fit.spread: expected {self.tree_.n_features} numbers from 0 on")
            self._spread = np.array(spread, dtype=np.float64)
        for name in ("leaf_rows", "leaf_labelled"):
            rows = state.get(name)
            if rows is None:  # nor had the fit
                return
            fine = isinstance(rows, list) and all(is_number(n) and n >= 0 for n in rows)
            if not fine or len(rows) != self.tree_.n_nodes:
                raise ModelFileError(f"fit.{name}: expected {self.tree_.n_nodes} numbers from 0 on")
            setattr(self, f"_{name}", np.array(rows, dtype=np.float64))
        if np.any(self._leaf_labelled > self._leaf_rows):
            raise ModelFileError("fit.leaf_labelled is above fit.leaf_rows")


def rows_in_leaves(tree: Tree, X: Any, weight: FloatArray) -> FloatArray:
    """How many rows are in each leaf, by number of the node; those of weight 0 were left out of the fit."""
    return np.asarray(np.bincount(route(tree, X), weight > 0, tree.n_nodes), dtype=np.float64)


def labelled_in_leaves(tree: Tree, X: Any, problem: Problem) -> dict[str, FloatArray]:
    """Rows with a label in each leaf, as what is noted of a fit; nothing where all rows have one."""
    if not np.any(problem.unlabelled):
        return {}
    return {"_leaf_labelled": rows_in_leaves(tree, X, problem.weight * problem.labelled)}


def _digits(tree: Tree, rows: Any, words: Mapping[int, FeatureWords] | None, precision: int) -> dict[int, int]:
    """Digits of splits with which rules say of checked rows what a tree says; of sparse ones all there are."""
    if sparse.issparse(rows):
        return dict.fromkeys(range(tree.n_nodes), MAX_PRECISION)
    return telling_digits(tree, rows, route(tree, rows), words, precision)


class TreeClassifier(PredictsClasses, ClassifierMixin, TreeModel):
    """Base of the classifiers that are one tree."""

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Predict class probabilities: how likely each class is for a row of the leaf that the fit has not seen.

        They are the `probabilities` of ``tree_``: less sure than the shares seen in training (its ``shares()``), as the
        splits were chosen to suit the rows of the fit. The class of a leaf is the most likely one, but where weights of
        classes, totals, fairness or labels held for wrong gave it another one than most of its rows have. Rows count by
        their weights, whatever those of classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, columns in the order of ``classes_``.
        """
        return self._class_shares(self._check_rows(X))

    def _class_numbers(self, rows: Any) -> IntArray:
        return self._node_classes()[route(self.tree_, rows)]

    def _class_shares(self, rows: Any) -> FloatArray:
        return self._node_shares()[route(self.tree_, rows)]

    def _node_classes(self) -> IntArray:
        """Class number of each node of a single tree."""
        assert self.tree_.labels is not None
        return self.tree_.labels

    def _node_shares(self) -> FloatArray:
        """Probabilities at each node of a single tree."""
        return self.tree_.likely()


class TreeRegressor(PredictsOutputs, RegressorMixin, TreeModel):
    """Base of the regressors that are one tree."""

    def _outputs(self, rows: Any) -> FloatArray:
        values = self._values(rows)
        return np.asarray(values[:, 0] if values.shape[1] == 1 else values)

    def _values(self, rows: Any) -> FloatArray:
        return predict_values(self.tree_, rows)
