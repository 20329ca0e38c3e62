"""Models that know their table, and their files."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from treewright.app.answers import Answers
from treewright.app.lone_levels import checked_alone
from treewright.core.names import counted, option
from treewright.data.columns_checked import AnyArray, listing
from treewright.data.seen_numbers import NewNumbers, SeenNumbers, changes_in_words
from treewright.data.tables.columns import flag_numbers
from treewright.data.tables.encoder import Surprises, TableEncoder
from treewright.data.tables.files import Table, table_batches
from treewright.data.tables.mixed_encoder import MixedEncoder
from treewright.data.tables.words import feature_words
from treewright.estimators.files import model_from_dict, model_to_dict
from treewright.estimators.numbers import with_numbers, without_numbers
from treewright.estimators.tables import rule_cases, rule_digits, table_notes
from treewright.estimators.totals_model import PricedModel
from treewright.exceptions import InvalidInputError, ModelFileError
from treewright.models.labeller_files import is_labeller_file, read_labeller, write_labeller
from treewright.models.registry import SHORT_NAMES
from treewright.models.s2oct.estimator import S2OCTClassifier
from treewright.report.trees import LeafFacts, leaf_texts, reading_notes
from treewright.report.words import WEIGHED
from treewright.tree import export_text
from treewright.tree.json_files import read_json, write_json
from treewright.tree.words import FeatureWords, date_text

__all__ = ["TableModel", "leaf_sums"]

_BATCH_ROWS, _BATCH_CELLS = 200_000, 10_000_000
"""Most rows, and most cells of features, that are predicted at once."""


@dataclass(frozen=True)
class TableModel:
    """A fitted estimator, and how to make its features from a table."""

    estimator: Any
    """The fitted estimator."""
    encoder: TableEncoder | MixedEncoder | None = None
    """The latter for models that take categories and gaps as they are; None for one that was not fitted to a table."""
    target: str | None = None
    """Column that the model predicts, if it has a name."""
    na: tuple[str, ...] = ()
    """Values of the table that mean missing, beside the usual ones."""
    explaining: Any = None
    """The fitted tree that explains the labels of an estimator that is no tree, if there is one."""
    leaves: Mapping[int, LeafFacts] | None = None
    """Rows of the table in each leaf of the tree, and their labels; None where that is not known."""
    alone: Mapping[str, int] | None = None
    """Levels of each column of text that one row alone of the fit has; None where that is not known."""
    numbers: Any = None
    """What is kept of the numbers of the fit, taken from the estimator, which is asked for a table in parts."""

    @classmethod
    def read(cls, path: str) -> TableModel:
        """Read a model file, or raise ModelFileError."""
        if is_labeller_file(path):
            labeller, document = read_labeller(path)
            model = cls._with_table(labeller, document, path)
            if model.numbers is not None:
                SeenNumbers.from_list(model.numbers, model.estimator.n_features_in_, f"{path}: numbers")
            return replace(model, explaining=_explaining(labeller, document, path))._with_leaves(document, path)
        try:
            document = read_json(path)
        except FileNotFoundError:
            raise ModelFileError(f"{path}: there is no such file") from None
        known = {kind.__name__: kind for kind in SHORT_NAMES.values()}
        return cls._with_table(model_from_dict(document, known, where=path), document, path)._with_leaves(
            document, path
        )

    @classmethod
    def _with_table(cls, estimator: Any, document: dict[str, Any], path: str) -> TableModel:
        table, numbers = document.get("table"), without_numbers(estimator)
        if table is None:
            return cls(estimator, numbers=numbers)
        notes = table_notes(table, estimator.n_features_in_, f"{path}: table")
        return cls(estimator, notes.encoder, notes.target, notes.na, numbers=numbers)

    def _with_leaves(self, document: dict[str, Any], path: str) -> TableModel:
        """The model with what its file says of leaves and digits, trusting nothing."""
        table = document.get("table") or {}
        entries = table.get("leaves")
        if table.get("digits") is not None:
            self.tree_model._rule_digits = rule_digits(table["digits"], self.tree_model, f"{path}: table.digits")
        if table.get("sure") is not None:
            self.tree_model._rule_sure = rule_cases(table["sure"], self.tree_model, f"{path}: table.sure")
        if table.get("alone") is not None:
            alone = checked_alone(table["alone"], self.encoder.columns if self.encoder else (), f"{path}: table.alone")
            return replace(self, alone=alone)._leaves_checked(entries, path)
        return self._leaves_checked(entries, path)

    def _leaves_checked(self, entries: Any, path: str) -> TableModel:
        if entries is None:
            return self
        if self.tree_model is None or self.several_trees:
            raise ModelFileError(f"{path}: table.leaves: there is no one tree")
        return replace(self, leaves=_checked_leaves(entries, self.tree_model, f"{path}: table.leaves"))

    def write(self, path: str) -> None:
        """Write a model file, which ``treewright.load_model`` reads too."""
        with with_numbers(self.estimator, self.numbers):
            self._write(path)

    def _write(self, path: str) -> None:
        labeller = isinstance(self.estimator, PricedModel)
        document = {} if labeller else model_to_dict(self.estimator)
        if self.encoder is not None:
            document["table"] = {"target": self.target, "encoder": self.encoder.to_dict(), "na": list(self.na)}
            if self.leaves is not None:
                told = {n: [of.rows, of.counts] + ([of.likely] if of.likely else []) for n, of in self.leaves.items()}
                document["table"]["leaves"] = [[leaf, *entry] for leaf, entry in told.items()]
            if self.alone is not None:
                document["table"]["alone"] = [list(pair) for pair in self.alone.items()]
            digits = getattr(self.tree_model, "_rule_digits", None)
            if digits:
                document["table"]["digits"] = [list(pair) for pair in sorted(digits.items())]
            sure = getattr(self.tree_model, "_rule_sure", None)
            if sure:
                document["table"]["sure"] = [list(pair) for pair in sorted(sure.items())]
        if labeller:
            document["tree"] = None if self.explaining is None else model_to_dict(self.explaining)
            write_labeller(path, self.estimator, document)
        else:
            write_json(path, document)

    @property
    def tree_model(self) -> Any:
        """The estimator that is a tree: that which explains, or the model itself; None if there is none."""
        return self.explaining if isinstance(self.estimator, PricedModel) else self.estimator

    @property
    def words(self) -> dict[int, FeatureWords]:
        """Words for features that are flags or dates, as far as they are known."""
        return {} if self.encoder is None else feature_words(self.encoder)

    @property
    def rules(self) -> str | None:
        """The tree as text, if there is one; leaves as in the report of the fit, or with their numbers at least."""
        if self.tree_model is None:
            return None
        if self.leaves is not None:
            texts = leaf_texts(self.leaves, self.estimator.classes_, isinstance(self.estimator, PricedModel))
            return str(self.tree_model.export_text(leaf_texts=texts, words=self.words))
        if self.several_trees:
            return str(self.tree_model.export_text(words=self.words))
        model, classes = self.tree_model, [str(label) for label in self.estimator.classes_]
        naming = model._naming(self.words) | model._leaf_words()
        return export_text(model.tree_, class_names=classes, number_leaves=True, **naming)

    @property
    def notes(self) -> list[str]:
        """How to read the rules."""
        trees = [] if self.tree_model is None else self.tree_model._read_trees()
        told = self.tree_model._leaf_notes() if trees and self.leaves is None else []  # else leaves tell given labels
        if self.leaves is not None and getattr(self.estimator, "_weighted_leaves", False):
            told = [WEIGHED]
        return [*told, *dict.fromkeys(note for _, tree, _ in trees for note in reading_notes(tree, self.words))]

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the features, if they have any."""
        names = getattr(self.estimator, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    def encoder_for(self, columns: list[str]) -> TableEncoder | MixedEncoder:
        """Return what makes features of columns: the encoder, else one by the names, else one of all in order."""
        if self.encoder is not None:
            return self.encoder
        names = self.feature_names or columns
        if len(names) != self.estimator.n_features_in_:
            raise InvalidInputError(
                f"the model has {counted(self.estimator.n_features_in_, 'feature')} without names, the table "
                f"{counted(len(names), 'column')}"
            )
        if hasattr(self.estimator, "categories_"):
            return MixedEncoder(dict(zip(names, self._kinds(), strict=True)))
        return TableEncoder.of_numbers(names)

    def features_of(self, table: Table, surprises: Surprises | None = None) -> AnyArray:
        """Return the features of a table; of one of several parts, with what counts levels and gaps in all of them."""
        encoder = self.encoder_for(table.columns)
        if self.encoder is None:  # fitted to a frame or an array, where bools are numbers; in files they are text
            encoder.check_columns(table.columns)
            numbers = [table.series(name) for name in encoder.columns if name not in encoder.text_columns]
            table = Table(table.frame.with_columns(map(flag_numbers, numbers)), table.first_row)
        if not isinstance(encoder, MixedEncoder):
            X = encoder.transform(table, surprises)[0]
            self._count_numbers(X, surprises)
            return X
        X = encoder.transform(table)[0]
        self._count_numbers(X, surprises)
        model = self.tree_model
        if surprises is not None and hasattr(model, "has_missing_"):
            known = model.categories_ or [None] * model.n_features_in_
            used = [(encoder.columns[j], known[j], model.has_missing_[j]) for j in _used_features(model)]
            levels = {name: of for name, of, _ in used if of is not None}
            encoder.note_unseen(table, levels, [name for name, _, gaps in used if not gaps], surprises)
        return X

    def _count_numbers(self, X: AnyArray, surprises: Surprises | None) -> None:
        if surprises is None or self.numbers is None:
            return
        if surprises.numbers is None:
            surprises.numbers = NewNumbers(SeenNumbers.from_list(self.numbers, X.shape[1]))
        surprises.numbers.add(X)

    def number_words(self, surprises: Surprises) -> list[str]:
        """Which numbers of new rows are unlike those of the fit, in words; dates as they are written."""
        if surprises.numbers is None:
            return []
        names = self.feature_names or [str(j) for j in range(self.estimator.n_features_in_)]
        dates: dict[str, bool] = {}
        if isinstance(self.encoder, TableEncoder):
            dates = {name: "%H" in code.format for name, code in self.encoder.codes.items() if code.kind == "date"}
        elif self.encoder is not None:
            dates = {name: "%H" in form for name, form in self.encoder.formats.items()}
        written = [partial(_date, timed=dates[name]) if name in dates else None for name in names]
        return changes_in_words(surprises.numbers.changes(), names, written)

    @property
    def several_trees(self) -> bool:
        """Whether there is a tree a class, so that rows have no one leaf."""
        return hasattr(self.estimator, "relabel") and len(self.estimator.trees_) > 1

    def _kinds(self) -> list[str]:
        """Kinds of the columns of an estimator that takes categories as they are."""
        known = self.estimator.categories_ or [None] * self.estimator.n_features_in_
        return ["text" if levels and isinstance(levels[0], str) else "number" for levels in known]

    def prediction_columns(
        self,
        table: Table,
        X: Any,
        predicted: AnyArray | None = None,
        shares: AnyArray | None = None,
        carried: str | None = None,
        leaves: AnyArray | None = None,
        answers: Answers | None = None,
    ) -> dict[str, Any]:
        """Return predictions as columns: row, a column that is carried, the target as given, prediction, shares, leaf.

        `predicted`, `shares` and `leaves` take the place of what the estimator says of each row; `answers` that the
        target column has are counted, and kept if they are to be.
        """
        estimator = self.estimator
        if shares is None and predicted is None and isinstance(estimator, PricedModel) and estimator.totals_:
            predicted, shares = estimator.transduce(X, return_proba=True)  # scores each row once
        shares = estimator.predict_proba(X) if shares is None else shares
        predicted = estimator.predict(X) if predicted is None else predicted
        if answers is not None:
            predicted, shares = answers.kept_in(table, predicted, shares)
        columns: dict[str, Any] = {"row": np.arange(table.first_row, table.first_row + table.n_rows)}
        made = {
            "prediction": predicted,
            **{f"share_{label}": shares[:, k] for k, label in enumerate(estimator.classes_.tolist())},
        }
        if self.tree_model is not None and not self.several_trees:
            made["leaf"] = self.tree_model.apply(X) if leaves is None else leaves
        for given in dict.fromkeys((carried, self.target)):
            if given is not None and given in table.columns:
                name = given
                while name in columns or name in made:
                    name = f"given_{name}"
                columns[name] = table.series(given)
        return columns | made

    def prediction_batches(
        self,
        path: str,
        na: Collection[str],
        encoding: str | None,
        carried: str | None,
        surprises: Surprises,
        answers: Answers,
    ) -> Iterator[dict[str, Any]]:
        """Predict the rows of a file part by part, so that they need not fit into memory."""
        kept = [name for name in (carried, self.target) if name is not None]

        def wanted(columns: list[str]) -> list[str]:
            if carried is not None and carried not in columns:
                raise InvalidInputError(f"{option('id')}: there is no column {carried!r}; columns: {listing(columns)}")
            encoder = self.encoder_for(columns)
            encoder.check_columns(columns)
            return [*encoder.columns, *kept]

        text = [*kept, *([] if self.encoder is None else self.encoder.text_columns)]
        rows = max(1, min(_BATCH_ROWS, _BATCH_CELLS // self.estimator.n_features_in_))
        for table in table_batches(path, na, encoding=encoding, text=text, columns=wanted, batch_rows=rows):
            X = self.features_of(table, surprises)
            yield self.prediction_columns(table, X, carried=carried, answers=answers)


def _used_features(model: Any) -> list[int]:
    """Features that splits use; what is new in others changes nothing."""
    trees = [tree for _, tree, _ in model._read_trees()]
    numbers = {j for tree in trees for j in np.flatnonzero(tree.weights.any(axis=0)).tolist()}
    return sorted(numbers.union(*(tree.category[tree.category >= 0].tolist() for tree in trees)))


def _date(day: float, timed: bool) -> str:
    return date_text(day, timed) or f"{day:g}"


def _explaining(labeller: Any, document: dict[str, Any], path: str) -> S2OCTClassifier | None:
    """The tree beside a labeller."""
    if document.get("tree") is None:
        return None
    tree: S2OCTClassifier = model_from_dict(
        document["tree"], {S2OCTClassifier.__name__: S2OCTClassifier}, where=f"{path}: tree"
    )
    without_numbers(tree)
    if tree.n_features_in_ != labeller.n_features_in_ or tree.classes_.tolist() != labeller.classes_.tolist():
        raise ModelFileError(f"{path}: the tree and the labels are not about the same features and classes")
    return tree


def _checked_leaves(entries: Any, model: Any, where: str) -> dict[int, LeafFacts]:
    """Rows and labels in each leaf, as a file has them."""
    tree, classes = model.tree_, [str(label) for label in model.classes_]
    leaves: dict[int, LeafFacts] = {}
    for entry in entries if isinstance(entries, list) else [entries]:
        numbers: list[Any] = []
        likely = entry[3] if isinstance(entry, list) and len(entry) == 4 else None
        if isinstance(entry, list) and len(entry) in (3, 4) and isinstance(entry[2], list):
            numbers = [*entry[:2], *entry[2]]
        if len(numbers) != 2 + len(classes) or not all(type(n) is int and n >= 0 for n in numbers):
            raise ModelFileError(f"{where}: expected lists of a leaf, its rows, and a list of those of each class")
        if len(entry) == 4 and not _are_amounts(likely, len(classes)):
            raise ModelFileError(f"{where}: expected as many rows of each class as are likely")
        leaf, rows, *counts = numbers
        if leaf in leaves or leaf >= tree.n_nodes or not tree.is_leaf[leaf]:
            raise ModelFileError(f"{where}: expected each leaf of the tree once")
        leaves[leaf] = LeafFacts(classes[tree.labels[leaf]], rows, counts, likely)
    if len(leaves) != tree.n_leaves:
        raise ModelFileError(f"{where}: expected each leaf of the tree once")
    return leaves


def _are_amounts(values: object, n: int) -> bool:
    """Whether these are `n` finite numbers from 0 on."""
    if not isinstance(values, list) or len(values) != n:
        return False
    return all(type(value) in (int, float) and 0 <= value < math.inf for value in values)


def leaf_sums(leaves: AnyArray, shares: AnyArray, n_nodes: int) -> AnyArray:
    """Sums of probabilities in each leaf of a model that knows its table, shape (n_nodes, n_classes).

    Examples
    --------
    >>> leaf_sums(np.array([1, 2, 1]), np.array([[0.5, 0.5], [1.0, 0.0], [0.25, 0.75]]), 3).tolist()
    [[0.0, 0.0], [0.75, 1.25], [1.0, 0.0]]
    """
    return np.stack([np.bincount(leaves, column, n_nodes) for column in shares.T], axis=1)
