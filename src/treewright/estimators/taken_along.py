"""What every tree model has to be used elsewhere: its rules in other languages, its nodes as a frame, importances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sklearn.utils import get_tags

from treewright.core.arrays import FloatArray
from treewright.exceptions import InvalidInputError
from treewright.tree import Tree
from treewright.tree.text import split_pieces

if TYPE_CHECKING:
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    from treewright.exports.content import Content

__all__ = ["TakenAlong", "checked_names"]


class TakenAlong:
    """Mixin of the tree models: what is fitted in other forms. Each form is imported by its method alone.

    Attributes
    ----------
    feature_importances_ : ndarray of shape (n_features_in_,)
        Share of each feature in what the splits save in training of the mean squared distance of class shares (Gini's
        impurity) or outputs to those of their node; a split of several features is shared out by weight times spread.
        They sum to 1. Models with linear leaves have none.
    """

    tree_: Tree
    n_features_in_: int

    def to_python(self, feature_names: Sequence[str] | None = None) -> str:
        """Write the model as the source of one Python function that imports nothing.

        ``predict(row)`` takes a row as a dict by name of the feature or as a sequence of all features, with None or NaN
        for what is missing, and returns what :meth:`predict` and :meth:`predict_proba` say of it: a label and a dict of
        probabilities by label; of a regressor the value, or a list of values. Sums are added in the order in which
        :meth:`predict` adds them (two at a time, as numpy does on x86 and ARM), so that rows on a threshold go the same
        way.

        Parameters
        ----------
        feature_names : sequence of str, or None
            Names of the features, by default those of the frame that the model was fitted to, or x0, x1, ...

        Returns
        -------
        str
            The source.

        Examples
        --------
        >>> from treewright import OCTClassifier
        >>> model = OCTClassifier(max_depth=1).fit([[30.0], [41.0], [50.0], [62.0]], ["no", "no", "yes", "yes"])
        >>> space = {}
        >>> exec(model.to_python(feature_names=["age"]), space)
        >>> label, probabilities = space["predict"]({"age": 35})
        >>> label, [probabilities] == [dict(zip(model.classes_, row)) for row in model.predict_proba([[35.0]])]
        ('no', True)
        """
        from treewright.exports.python_source import to_python

        return to_python(self._content(feature_names))

    def to_sql(
        self,
        table: str | Sequence[str],
        dialect: str = "duckdb",
        keep: Sequence[str] = (),
        feature_names: Sequence[str] | None = None,
    ) -> str:
        """Write the model as one SELECT that says of each row of a table what the model predicts.

        Its columns are those of `keep`, then "label", "probability ..." for each class, and "leaf" (the number that
        :meth:`apply` gives; not of several trees); of a regressor "value" (or "value 0", "value 1", ...) and "leaf".
        Features are columns of the table, by name: numbers, or texts where levels of a category are texts. NULL and NaN
        are missing values; where the model takes none, all answers of such a row are NULL. Names and texts are quoted.

        Parameters
        ----------
        table : str or sequence of str
            Name of the table, or its parts, such as ``("schema", "table")``.
        dialect : {"duckdb", "postgres", "sqlite"}
            The database. Numbers are written so that it reads them exactly. In Postgres a column is to be of truth
            values where the levels of the category are such.
        keep : sequence of str
            Columns of the table that come first, such as the one that says which row it is.
        feature_names : sequence of str, or None
            Names of the features, by default those of the frame that the model was fitted to, or x0, x1, ...

        Returns
        -------
        str
            The SELECT, without a semicolon, so that a view or an INSERT can be made of it.

        Examples
        --------
        >>> import sqlite3
        >>> from treewright import OCTClassifier
        >>> model = OCTClassifier(max_depth=1).fit([[30.0], [41.0], [50.0], [62.0]], ["no", "no", "yes", "yes"])
        >>> base = sqlite3.connect(":memory:")
        >>> _ = base.execute("CREATE TABLE people (id, age)")
        >>> _ = base.execute("INSERT INTO people VALUES (1, 35), (2, 70)")
        >>> query = model.to_sql("people", "sqlite", keep=["id"], feature_names=["age"])
        >>> [row[:2] for row in base.execute(query)]
        [(1, 'no'), (2, 'yes')]
        """
        from treewright.exports.sql import to_sql

        return to_sql(self._content(feature_names), table, dialect, keep)

    def to_onnx(self, missing_text: str = "", feature_names: Sequence[str] | None = None) -> Any:
        """Make an ONNX model, which needs the package onnx (extra ``onnx``); numbers are in double precision.

        A model of numbers has one input "X", of shape (n_samples, n_features). One with categories has an input for
        each feature by its name, of shape (n_samples, 1): texts where levels are texts, else numbers. NaN is a missing
        number, or level where these are numbers or truth values. Outputs are "label" and "probabilities" of a
        classifier, "value" of a regressor, and "leaf" where there is one tree. ONNX refuses nothing: where the model
        takes no missing numbers, look for these before. Rows go the way that :meth:`predict` has them; values of
        linear leaves may differ in their last digits.

        Parameters
        ----------
        missing_text : str
            What stands for a missing level where levels are texts, as ONNX has no missing texts; none of the levels.
        feature_names : sequence of str, or None
            Names of the features, by default those of the frame that the model was fitted to, or x0, x1, ...

        Returns
        -------
        onnx.ModelProto
            The model; its ``SerializeToString()`` is what files hold and onnxruntime takes.

        Examples
        --------
        >>> from treewright import OCTClassifier
        >>> model = OCTClassifier(max_depth=1).fit([[30.0], [41.0], [50.0], [62.0]], ["no", "no", "yes", "yes"])
        >>> [output.name for output in model.to_onnx().graph.output]
        ['label', 'probabilities', 'leaf']
        """
        from treewright.exports.onnx_graph import to_onnx

        return to_onnx(self._content(feature_names), missing_text)

    def to_sklearn(self) -> DecisionTreeClassifier | DecisionTreeRegressor:
        """Make a fitted tree of scikit-learn, for what draws and explains such: ``plot_tree``, dtreeviz, SHAP.

        It is for one tree whose splits are of single numerical features, with constant leaves whose class is the most
        likely one; others are refused. Missing values stay on their sides. Nodes have their numbers; those that part by
        ``>=`` have their sides changed. Impurities are Gini's in training; of a regressor, which does not know how far
        rows are from the value of their leaf, what the splits below save.

        Trees of scikit-learn read rows in single precision: what they say is what :meth:`predict` says, unless single
        precision moves a value above a threshold onto it.

        Returns
        -------
        DecisionTreeClassifier or DecisionTreeRegressor
            Fitted, with the names of the features and the classes.

        Examples
        --------
        >>> from sklearn.tree import export_text
        >>> from treewright import OCTClassifier
        >>> model = OCTClassifier(max_depth=1).fit([[30.0], [41.0], [50.0], [62.0]], ["no", "no", "yes", "yes"])
        >>> print(export_text(model.to_sklearn()))
        |--- feature_0 <= 45.50
        |   |--- class: no
        |--- feature_0 >  45.50
        |   |--- class: yes
        <BLANKLINE>
        """
        from treewright.exports.sklearn_tree import to_sklearn

        return to_sklearn(self._content())

    def to_frame(self, as_frame: str = "polars", feature_names: Sequence[str] | None = None) -> Any:
        """Make a frame with a row for each node.

        Columns: "tree" (only where there are several), "node" (as :meth:`apply` numbers them), "parent", "depth" (0 for
        the root), "side" of the parent ("left" where its rule holds, else "right"), "rule" (the condition of a split in
        words), "features" that it uses, "threshold" (of one feature that of its value, of several that of the weighted
        sum; none of a category), "rows" in training, where they are known, and "label" with "probability ..." for each
        class, or "value" (or "value 0", "value 1", ...; of linear leaves where all features are 0).

        Parameters
        ----------
        as_frame : {"polars", "pandas"}
            Which frame to make.
        feature_names : sequence of str, or None
            Names of the features, by default those of the frame that the model was fitted to, or x0, x1, ...

        Returns
        -------
        polars.DataFrame or pandas.DataFrame
            The nodes, parents before children.

        Examples
        --------
        >>> from treewright import OCTClassifier
        >>> model = OCTClassifier(max_depth=1).fit([[30.0], [41.0], [50.0], [62.0]], ["no", "no", "yes", "yes"])
        >>> model.to_frame(feature_names=["age"]).select("node", "side", "rule", "rows", "label").rows()
        [(0, None, 'age <= 45.5', 4.0, 'no'), (1, 'left', None, 2.0, 'no'), (2, 'right', None, 2.0, 'yes')]
        """
        from treewright.exports.frame import to_frame

        content = self._content(feature_names)
        naming = self._naming() | {"feature_names": list(content.names)}  # type: ignore[attr-defined]
        rules = [[" ".join(pieces) for pieces in split_pieces(tree, **naming)] for tree in content.trees]
        return to_frame(content, rules, as_frame)

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of each feature in the loss that the splits save in training; they sum to 1, or are 0 without a split.

        The loss of a node is how much its training rows weigh times the mean squared distance of what they are from the
        mean of the node: of shares of classes (Gini's impurity, whatever the model itself minimizes), or of outputs. A
        split saves what its node has more than both children. All of that is its feature's; of a split that weighs
        several, each has as much as its weight, without sign, times the standard deviation of the feature in training,
        of the sum of these. For a regressor the rows of a leaf count alike, as its mean. Of several trees savings are
        added.

        As with all such figures, a feature that stands in for another takes its share, and nothing is said of rows that
        were not in training. Models with linear leaves have none.
        """
        from treewright.exports.importances import feature_importances

        try:
            content = self._content(plain=False)
        except InvalidInputError as error:  # a fit that is no tree has no such attribute
            raise AttributeError(str(error)) from error
        return feature_importances(content)

    # ------------------------------------------------------------------ what is fitted

    def _joining(self) -> dict[str, Any]:
        """How several trees are joined, as fields of :class:`treewright.exports.content.Content`."""
        return {}

    def _content(self, feature_names: Sequence[str] | None = None, plain: bool = True) -> Content:
        """What the model says of rows, as plain data; labels that have no plain form matter where they are written."""
        from treewright.exports.content import Content, plain_labels

        self._need_tree()  # type: ignore[attr-defined]
        joining, known = self._joining(), getattr(self, "feature_names_in_", feature_names)
        trees = joining.get("trees", [self.tree_])
        names = [f"x{j}" for j in range(self.tree_.n_features)] if known is None else [str(name) for name in known]
        if feature_names is not None:
            names = checked_names(feature_names, self.tree_.n_features)
        content: dict[str, Any] = {
            "trees": trees,
            "names": names,
            "named": known is not None,
            "levels": getattr(self, "categories_", None) or [None] * len(names),
            "gaps": bool(get_tags(self).input_tags.allow_nan),
            "spread": getattr(self, "_spread", None),
        }
        rows = getattr(self, "_leaf_rows", None)
        counted = None if rows is None else [rows]
        content |= {"rows": counted, "weight": counted, "means": [tree.values for tree in trees]}
        classes = getattr(self, "classes_", None)
        if classes is not None:
            alone = len(trees) == 1
            labels = [self._node_classes()] if alone else [tree.labels for tree in trees]  # type: ignore[attr-defined]
            shares = [self._node_shares()] if alone else [tree.likely() for tree in trees]  # type: ignore[attr-defined]
            content |= {
                "classes": plain_labels(classes) if plain else classes.tolist(),
                "labels": labels,
                "shares": shares,
            }
            if all(tree.is_classifier for tree in trees):  # whose values are weights of classes
                weight = [tree.values.sum(axis=1) for tree in trees]
                content |= {"rows": counted or weight, "weight": weight, "means": [tree.shares() for tree in trees]}
        return Content(**(content | joining))


def checked_names(names: Sequence[str], n_features: int) -> list[str]:
    """Names of all features, given as text."""
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise InvalidInputError(f"feature_names must be a sequence of strings, got {names!r}")
    if len(names) != n_features:
        raise InvalidInputError(f"feature_names has {len(names)} names, the tree has {n_features} features")
    return [str(name) for name in names]
