"""Labels of all rows, whether these fit into memory or come in parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from treewright.app.large_register import Learned, label_register
from treewright.app.rows import FitRows
from treewright.app.table_model import TableModel, leaf_sums
from treewright.core.arrays import FloatArray
from treewright.data.columns_checked import AnyArray, missing_mask
from treewright.data.tables.encoder import Surprises, TableEncoder
from treewright.data.tables.files import Table
from treewright.data.tables.words import feature_words
from treewright.data.totals import drawn_rows
from treewright.report import Explanation
from treewright.tree import route, sure_cases, telling_digits

__all__ = ["Labelled", "explained_labels", "labelled_register", "explanation_rows"]

_TREE_ROWS = 5000
"""Most rows with a label, and most without, that the tree of a register that comes in parts learns from."""
_WRITTEN_ROWS, _ROUTED_ROWS = 200_000, 20_000
"""Rows that are written at once, and that are sent down a tree at once, which the cache holds."""


class Labelled(Protocol):
    """Labels and probabilities of all rows of a job, and the rows that they were learned from."""

    @property
    def learned(self) -> Learned:
        """The rows that the model was fitted to."""
        ...

    def labels(self, start: int = 0, stop: int | None = None) -> AnyArray:
        """Labels of some consecutive rows."""
        ...

    def column(self, start: int = 0, stop: int | None = None) -> Any:
        """The same as something that can be written."""
        ...

    def shares(self, start: int = 0, stop: int | None = None) -> FloatArray:
        """Probabilities of some consecutive rows."""
        ...


@dataclass(frozen=True, eq=False)
class _Whole:
    """What a fit to all rows says."""

    learned: Learned
    _labels: AnyArray
    _shares: FloatArray

    def labels(self, start: int = 0, stop: int | None = None) -> AnyArray:
        return self._labels[start:stop]

    def column(self, start: int = 0, stop: int | None = None) -> Any:
        return self._labels[start:stop]

    def shares(self, start: int = 0, stop: int | None = None) -> FloatArray:
        return self._shares[start:stop]


def labelled_register(rows: FitRows, n_jobs: int | None) -> Labelled:
    """Fit the model of a job, and label all rows within totals; rows in parts are scored by all cores."""
    model = rows.estimator
    if rows.large:
        return label_register(model, rows, rows.y, **rows.more, n_jobs=-1 if n_jobs is None else n_jobs)
    model.fit(rows.X, rows.y, **rows.more)
    learned = Learned(np.arange(rows.n_rows), rows.X, rows.y, rows.more)
    return _Whole(learned, model.transduction_, model.transduction_proba_)


def explanation_rows(rows: FitRows, found: Labelled) -> tuple[Learned, AnyArray]:
    """Rows that the tree of a job explains, and their labels; of a register in parts some, with totals of their own."""
    learned = found.learned
    if not rows.large:
        return _of_one_margin(learned, found.labels()), found.labels()
    rng = np.random.default_rng(0)
    known = np.array([label is not None for label in learned.y])
    groups = learned.more.get("groups")
    number = np.zeros(len(known), dtype=np.int64) if groups is None else np.unique(groups, return_inverse=True)[1]
    kinds = [np.flatnonzero(mask) for mask in (known, ~known)]
    chosen = np.sort(np.concatenate([mine[drawn_rows(number[mine], _TREE_ROWS, rng)] for mine in kinds if len(mine)]))
    labels = found.labels()[learned.rows[chosen]]
    weight = learned.more.get("sample_weight")
    more: dict[str, Any] = {"sample_weight": None if weight is None else weight[chosen]}
    if "totals" in learned.more:
        own = None if groups is None else groups[chosen]
        more |= {"totals": _counted(labels[~known[chosen]], None if own is None else own[~known[chosen]])}
        more |= {"groups": own, "allow_new_classes": True}
    return Learned(learned.rows[chosen], learned.X[chosen], learned.y[chosen], more), labels


def _of_one_margin(learned: Learned, labels: AnyArray) -> Learned:
    """The same with totals of all groups together in place of those of several margins, which trees do not know."""
    if not isinstance(learned.more.get("totals"), list):
        return learned
    hidden = missing_mask(learned.y)
    totals = {"totals": _counted(labels[hidden], None), "groups": None, "totals_of": "unlabeled"}
    return replace(learned, more=learned.more | totals | {"allow_new_classes": True})


def _counted(labels: AnyArray, groups: AnyArray | None) -> dict[Any, Any]:
    """Totals that labels have, by group if there are groups."""
    classes = sorted(set(labels.tolist()))
    if groups is None:
        return {label: int(np.count_nonzero(labels == label)) for label in classes}
    return {name: _counted(labels[groups == name], None) for name in sorted(set(groups.tolist()))}


# ---------------------------------------------------------------------- what is written


Taker = Callable[[Iterator[dict[str, Any]]], object]
"""What takes columns of predictions, part by part."""


def explained_labels(rows: FitRows, found: Labelled, model: TableModel, taker: Taker) -> Explanation | None:
    """Hand on the predictions of all rows of a job, and say on the way how the tree explains the labels."""
    leaves: list[AnyArray] = []
    said: list[AnyArray] = []
    likely = np.zeros((1 if rows.tree is None else rows.tree.tree_.n_nodes, len(model.estimator.classes_)))
    if rows.tree is not None:
        rows.tree._rule_digits, rows.tree._rule_sure = {}, {}  # what all rows need
    taker(_parts(rows, found, model, leaves, said, likely))
    if rows.tree is None:
        return None
    return Explanation(rows.tree, np.concatenate(leaves), np.concatenate(said), model.words, likely)


def _parts(
    rows: FitRows,
    found: Labelled,
    model: TableModel,
    leaves: list[AnyArray],
    said: list[AnyArray],
    likely: FloatArray,
) -> Iterator[dict[str, Any]]:
    """Columns of predictions, part by part; leaves and labels of the tree, and sums of shares, are noted on the way."""
    classes = None if rows.tree is None else rows.tree.classes_.astype(object)
    for table, reached, numbers in _routed_parts(rows, model):
        start, stop = table.first_row - 1, table.first_row - 1 + table.n_rows
        if classes is not None:
            leaves.append(reached.astype(np.int32))
            said.append(classes[numbers])
        shares = found.shares(start, stop)
        likely += leaf_sums(reached, shares, len(likely))
        yield model.prediction_columns(table, None, found.column(start, stop), shares, rows.options.id, reached)


def _routed_parts(rows: FitRows, model: TableModel) -> Iterator[tuple[Table, AnyArray, AnyArray]]:
    """Rows with the columns that are written, their leaf in the tree, and the class number that it gives them."""
    tree, words = rows.tree, model.words
    if not rows.large:
        nothing = np.zeros(rows.n_rows, dtype=np.int64)
        if tree is not None:
            tree._note_rules(rows.X, words)
        yield rows.table, *((nothing, nothing) if tree is None else (tree.apply(rows.X), tree._class_numbers(rows.X)))
        return
    assert isinstance(rows.encoder, TableEncoder)
    encoder, place = _seen_by(tree, rows.encoder)
    narrow = None if tree is None else _narrowed(tree, place)
    words = feature_words(encoder)
    options = rows.options
    kept = {options.target, *([] if options.id is None else [options.id])}
    wanted = kept if narrow is None or rows.encoded is not None else kept.union(encoder.columns)
    seen = False
    for part in rows.table.batches([name for name in rows.table.columns if name in wanted], _WRITTEN_ROWS):
        if narrow is None:
            nothing = np.zeros(part.n_rows, dtype=np.int64)
            yield part, nothing, nothing
            continue
        reached, numbers = [], []
        for X in _blocks(rows, encoder, part):
            leaves = route(narrow.tree_, X)
            for node, digits in telling_digits(narrow.tree_, X, leaves, words).items():
                tree._rule_digits[node] = max(digits, tree._rule_digits.get(node, 0))
            _note_sure(tree._rule_sure, sure_cases(narrow.tree_, X, words), first=not seen)
            seen = True
            reached.append(leaves)
            numbers.append(narrow.tree_.labels[leaves] if len(narrow.trees_) == 1 else narrow._class_numbers(X))
        yield part, np.concatenate(reached), np.concatenate(numbers)


def _note_sure(found: dict[int, list[int]], here: dict[int, list[int]], first: bool) -> None:
    """Keep what is sure of these rows too."""
    if first:
        found.update(here)
    for node in list(found):
        both = [a if a == b else 0 for a, b in zip(found[node], here.get(node, [0] * len(found[node])), strict=True)]
        found[node] = both
        if not any(both):
            del found[node]


def _blocks(rows: FitRows, encoder: TableEncoder, part: Table) -> Iterator[FloatArray]:
    """Features of a part of the rows, some rows at a time where they are in memory."""
    if rows.encoded is None:
        yield encoder.transform(part, Surprises())[0]
        return
    some, start, stop = rows.encoded.of_columns(encoder.codes), part.first_row - 1, part.first_row - 1 + part.n_rows
    for first in range(start, stop, _ROUTED_ROWS):
        yield some.features(slice(first, min(first + _ROUTED_ROWS, stop)))


def _narrowed(tree: Any, place: AnyArray) -> Any:
    """A tree, or a committee, of the features that it looks at alone."""
    other = copy(tree)
    other.trees_ = [replace(one, weights=np.ascontiguousarray(one.weights[:, place])) for one in tree.trees_]
    other.tree_ = other.trees_[0]
    return other


def _seen_by(tree: Any, encoder: TableEncoder) -> tuple[TableEncoder, AnyArray]:
    """The part of an encoder that a tree needs, and the places of its features among all."""
    trees = [] if tree is None else tree.trees_
    used = np.zeros(len(encoder.feature_names), dtype=bool)
    for one in trees:
        used |= np.any(one.weights != 0, axis=0)
    if trees and not used.any():  # a tree is of one feature at least
        used[0] = True
    codes, at = {}, 0
    place: list[int] = []
    for name, code in encoder.codes.items():
        width = len(code.feature_names(name))
        if used[at : at + width].any():
            codes[name] = code
            place.extend(range(at, at + width))
        at += width
    return replace(encoder, codes=codes), np.array(place, dtype=np.int64)
