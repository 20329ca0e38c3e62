"""Reports of predictions: new rows that a fitted model labelled, and what changed since its fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.names import counted, printable
from treewright.data.columns_checked import listing
from treewright.data.tables.encoder import HEAVIER, Surprises, TableEncoder, pooled_words
from treewright.report.facts import Changes, Facts
from treewright.report.making import made_today
from treewright.report.trees import LeafFacts, counted_tree
from treewright.report.words import group_sizes
from treewright.tree.text import read_nodes
from treewright.tree.words import FeatureWords

__all__ = ["new_rows_facts", "number_notes", "surprise_notes"]


def new_rows_facts(
    model: Any,
    counts: IntArray,
    *,
    tree: Any = None,
    likely: FloatArray | None = None,
    then: Mapping[int, LeafFacts] | None = None,
    title: str = "",
    target: str = "",
    totals: Sequence[dict[str, Any]] = (),
    kept: IntArray | None = None,
    subtracted: bool = False,
    notes: Iterable[str] = (),
    gaps: BoolArray | None = None,
    words: Mapping[int, FeatureWords] | None = None,
    group_name: str = "",
    model_file: str = "",
    making: Iterable[tuple[str, str]] = (),
) -> Facts:
    """Facts of the report of labels that a fitted model gave to new rows.

    Parameters
    ----------
    model : estimator
        What labelled them.
    counts : ndarray of int, shape (n_nodes, n_classes)
        New rows of each class in each leaf of the tree; without a tree in one row.
    tree : estimator or None
        The tree that explains the labels, or the model itself where it is a tree.
    likely : ndarray of shape (n_nodes, n_classes), or None
        Sums of the probabilities of new rows in each leaf.
    then : mapping of int to LeafFacts, or None
        Rows of the fit in each leaf, and their labels, as far as they are known.
    title, target : str
        First line, and name of what is predicted.
    totals : sequence of dict
        Totals of the new rows, asked and reached.
    kept : ndarray of int, shape (n_classes,), or None
        Rows of each class among the labels that the new rows had already, which are kept.
    subtracted : bool
        Whether totals were given of all rows, from which these labels are subtracted.
    notes : iterable of str
        What else changed, in sentences.
    gaps : ndarray of bool, shape (n_features,), or None
        Features that new rows lack and those of the fit had: rules say where such rows go.
    words : mapping of int to FeatureWords, or None
        Words for features that are flags or dates.
    group_name, model_file : str
        Column of the groups, and file of the model.
    making : iterable of pairs of str
        How it was made.
    """
    classes, name = [str(label) for label in model.classes_.tolist()], type(model).__name__
    found = counts.sum(axis=0).tolist()
    given = [0] * len(classes) if kept is None else kept.tolist()
    explains = tree is not None and tree is not model
    agreed, rows = None, counts.sum(axis=1)
    own = tree is model and not totals
    if explains:
        agreed = int(counts[np.arange(len(counts)), np.maximum(tree.tree_.labels, 0)].sum()), 0
    return Facts(
        title=title or name,
        target=target,
        model=name,
        explains=True,
        classes=classes,
        n_rows=int(counts.sum()),
        n_labelled=sum(given),
        given=given,
        found=found,
        hidden=[n - of for n, of in zip(found, given, strict=True)],
        totals=list(totals),
        totals_used=True,
        subtracted=subtracted,
        record=model.record_,
        making=[*made_today(), *making],
        parameters=[],
        divides=hasattr(model, "transduce"),
        uses_hidden=True,
        trees=[] if tree is None else [counted_tree(tree, rows, counts, words, likely, gaps, own)],
        recall=[None] * len(classes),
        agreed=agreed,
        group_name=group_name,
        model_file=model_file,
        changes=Changes(
            then=_classes_then(model, then, classes),
            leaves=_leaves(then, counts, tree, words),
            notes=[*notes, *_group_notes(model, totals)],
            estimated=not hasattr(model, "export_text"),
        ),
    )


def _classes_then(model: Any, then: Mapping[int, LeafFacts] | None, classes: list[str]) -> list[int] | None:
    """Rows of each class at the fit: labels of all rows or, of a tree, what it predicted for them."""
    if then is None:
        reached = [row for row in getattr(model, "totals_", []) if not row.get("margin", 0)]
        of = [sum(row["reached"] for row in reached if str(row["class"]) == name) for name in classes]
        return of if reached else None
    if hasattr(model, "export_text"):
        return [sum(leaf.rows or 0 for leaf in then.values() if leaf.label == name) for name in classes]
    return [int(sum(leaf.counts[k] for leaf in then.values())) for k in range(len(classes))]


def _leaves(
    then: Mapping[int, LeafFacts] | None, counts: IntArray, tree: Any, words: Mapping[int, FeatureWords] | None
) -> list[tuple[int, str, int, int]]:
    """Rows at the fit and now in each leaf that is written; to others no row can come."""
    if then is None:
        return []
    written = sorted(then if tree is None else set(then).intersection(read_nodes(tree.tree_, words)))
    return [(number, then[number].label, then[number].rows or 0, int(counts[number].sum())) for number in written]


# ---------------------------------------------------------------------- what changed, in sentences


def surprise_notes(surprises: Surprises, encoder: TableEncoder | None, n_rows: int) -> list[str]:
    """Levels and gaps of new rows in a report that the fit had not; without an encoder, of a model that takes both.

    Examples
    --------
    >>> from collections import Counter
    >>> from treewright.data.tables.files import Table
    >>> encoder = TableEncoder.fit(Table({"area": ["a", "b", "a"]}), ["area"])
    >>> surprise_notes(Surprises({"area": Counter(c=2)}), encoder, 40)
    ['New values of "area": "c" (2 rows, 5.0%). They count as "a", the most frequent one at the fit.']
    """
    said = []
    for name, strange in surprises.levels.items():
        if encoder is not None and encoder.codes[name].pooled:
            said.append(f'"{printable(name)}": {pooled_words(strange)}.')
            continue
        shown = ", ".join(
            f'"{printable(level)}" ({counted(n, "row")}, {n / max(1, n_rows):.1%})'
            for level, n in strange.most_common(5)
        )
        more = f" and {len(strange) - 5} more" if len(strange) > 5 else ""
        so = HEAVIER if encoder is None else f"count as {_as_what(encoder.codes[name].base)}"
        said.append(f'New values of "{printable(name)}": {shown}{more}. They {so}.')
    fresh = [name for name in surprises.gaps if encoder is None or not encoder.codes[name].gaps]
    if fresh:
        told = ", ".join(f'"{printable(name)}" ({counted(surprises.gaps[name], "row")})' for name in fresh)
        so = HEAVIER if encoder is None else "are filled in"
        said.append(f"Missing values in columns that had none at the fit: {told}. They {so}.")
    return said


def number_notes(said: Sequence[str]) -> list[str]:
    """Numbers of new rows in a report that are unlike those of the fit, each in a sentence.

    Examples
    --------
    >>> number_notes(["'age': 20.0% of the rows are above 90, of those of the fit at most 1%"])
    ["Other numbers than at the fit in 'age': 20.0% of the rows are above 90, of those of the fit at most 1%."]
    """
    return [f"Other numbers than at the fit in {words}{'' if words.endswith('?') else '.'}" for words in said]


def _as_what(base: str | None) -> str:
    return "none of those of the fit" if base is None else f'"{printable(base)}", the most frequent one at the fit'


def _group_notes(model: Any, totals: Sequence[Mapping[str, Any]]) -> list[str]:
    """Groups that the fit had not, that are gone, and those without totals."""
    if any("margin" in row for row in totals) or all(row["group"] is None for row in totals):
        return []
    now, known = dict.fromkeys(row["group"] for row in totals), set(getattr(model, "class_prices_", {})) - {None}
    sizes = group_sizes(totals)
    bound = dict.fromkeys(now, False)
    for row in totals:
        bound[row["group"]] |= row["low"] > 0 or row["high"] < sizes[0, row["group"]]
    new = [name for name in now if known and name not in known]
    gone = sorted((name for name in known if name not in now), key=str)
    free = [name for name, asked in bound.items() if not asked]
    said = []
    if new:
        said.append(f"Groups that the fit had not: {listing(new)}.")
    if gone:
        said.append(f"Groups of the fit without a row here: {listing(gone)}.")
    if free:
        said.append(f"Groups without totals: {listing(free)}. They have what the model predicts.")
    return said
