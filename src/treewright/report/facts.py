"""What a report is about, before any layout: one structure that the text and the page are written from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from treewright.data import parse_totals
from treewright.data.columns_checked import AnyArray, Coded, as_column, missing_mask
from treewright.data.margins import group_columns
from treewright.estimation.accuracy import AccuracyEstimate
from treewright.estimators.kept_rows import kept_rows, kept_rows_words
from treewright.exceptions import InvalidInputError
from treewright.optimize.record import FitRecord
from treewright.report.making import made_today
from treewright.report.trees import Explanation, TreeFacts, absent_notes, fitted_trees
from treewright.report.words import (
    STATUS_WORDS,
    parameter_pairs,
    proof_words,
    seed_words,
    teacher_words,
)
from treewright.tree.words import FeatureWords

__all__ = ["About", "Changes", "Facts", "GroupFacts", "class_numbers", "fit_facts", "labels_facts", "office_totals"]


@dataclass(frozen=True, eq=False)
class GroupFacts:
    """Rows of each group.

    Attributes
    ----------
    names : list of str
        The groups.
    labelled, hidden : list of int
        Rows with and without a label.
    doubt : list of float or None
        Rows without a label whose label is probably wrong, by the probabilities that the model gives.
    """

    names: list[str]
    labelled: list[int]
    hidden: list[int]
    doubt: list[float] | None


@dataclass(frozen=True, eq=False)
class Changes:
    """What is different in new rows from those of the fit.

    Attributes
    ----------
    then : list of int or None
        Rows of each class at the fit; None where that is not known.
    leaves : list of tuple
        Number of each leaf, the class that it gives, and rows at the fit and now.
    notes : list of str
        What else is to be told, in sentences.
    estimated : bool
        Whether the report of the fit says how accurate labels are likely to be, as that of a model that is a tree does
        not.
    """

    then: list[int] | None
    leaves: list[tuple[int, str, int, int]]
    notes: list[str]
    estimated: bool = True


@dataclass(frozen=True, eq=False)
class Facts:
    """What a report says.

    Attributes
    ----------
    title, target, model : str
        First line, name of what is predicted (may be empty), class of the model.
    explains : bool
        Whether the report is about labels, which a tree may explain, and not about a model that is a tree.
    classes : list of str
        Names of the classes.
    n_rows, n_labelled : int
        Rows, and those with a label.
    given, found, hidden : list of int
        Rows of each class: among the labels as given, among the labels of all rows as found, and among these of the
        rows without a label.
    totals : list of dict
        Group, class, low, high and reached, as an estimator's ``totals_``; with rows that have a label (``labelled``)
        where these were subtracted.
    totals_used : bool
        Whether the model knows totals.
    subtracted : bool
        Whether totals were given of all rows, from which those with a label are subtracted.
    estimate : AccuracyEstimate or None
        How accurate labels are likely to be.
    no_estimate : str
        Why there is none; empty where it was not thought of.
    recall : list of (float or None)
        Share of each class that was found when its labels were left out.
    found_again : sequence of (int, int)
        Labels of each class that were found when they were left out, and that were left out; empty if not known.
    confusion : ndarray or None
        Labels as given (down) and as predicted (across), of a model that is a tree.
    trees : list of TreeFacts
        The trees to read.
    agreed : tuple of two int, or None
        Rows without a label, and with one, of which the tree that explains says what they are labelled.
    n_voting : int
        Trees that vote, of which the first is shown.
    record, tree_record : FitRecord
        How the fit ended, and that of the tree that explains (else None).
    tree_limit : float or None
        Seconds that the tree that explains was given.
    making : list of pairs of str
        How it was made: what is told, and the words for it.
    parameters : list of tuple
        Names of estimators and their parameters, as names and texts.
    n_suspects : int or None
        Labels that are held for wrong, by models that look for them.
    groups : GroupFacts or None
        Rows by group.
    divides : bool
        Whether the model divides new rows within new totals.
    uses_hidden : bool
        Whether rows without a label had a part in the fit.
    group_name, model_file, id_name : str
        Column of the groups and file of the model, for commands; empty in Python.
    warnings : sequence of str
        What the fit warned of, on the command line.
    changes : Changes or None
        Of new rows that a fitted model labelled: what is different from those of its fit.
    """

    title: str
    target: str
    model: str
    explains: bool
    classes: list[str]
    n_rows: int
    n_labelled: int
    given: list[int]
    found: list[int]
    hidden: list[int]
    totals: list[dict[str, Any]]
    totals_used: bool
    record: FitRecord
    making: list[tuple[str, str]]
    parameters: list[tuple[str, list[tuple[str, str]]]]
    divides: bool
    uses_hidden: bool
    trees: list[TreeFacts]
    recall: list[float | None]
    found_again: Sequence[tuple[int, int]] = ()
    estimate: AccuracyEstimate | None = None
    no_estimate: str = ""
    confusion: AnyArray | None = None
    agreed: tuple[int, int] | None = None
    n_voting: int = 1
    tree_record: FitRecord | None = None
    tree_limit: float | None = None
    n_suspects: int | None = None
    subtracted: bool = False
    groups: GroupFacts | None = None
    group_name: str = ""
    model_file: str = ""
    id_name: str = ""
    warnings: Sequence[str] = ()
    changes: Changes | None = None

    @property
    def n_hidden(self) -> int:
        """Rows without a label."""
        return self.n_rows - self.n_labelled

    @property
    def tree_notes(self) -> list[str]:
        """How to read the trees, and which classes they lack, in sentences."""
        one = len(self.trees) == 1 and self.n_voting == 1
        return [
            *dict.fromkeys(note for tree in self.trees for note in tree.notes),
            *(absent_notes(self.trees[0], self.totals) if one else []),
        ]

    @property
    def left_out(self) -> list[int]:
        """Labels of each class that were left out: all of them, unless it is known how many."""
        return [n for _, n in self.found_again] or self.given

    def option(self, name: str) -> str:
        """A parameter as the reader would set it."""
        return f"--{name.replace('_', '-')}" if self.model_file else name


@dataclass(frozen=True, eq=False)
class About:
    """What a report is told beside the model and its rows; :func:`treewright.report.fit_report` says what each is."""

    title: str = ""
    target: str = ""
    groups: Any = None
    group_name: str = ""
    model_file: str = ""
    making: Iterable[tuple[str, str]] = ()
    totals_of: str = "unlabeled"
    id_name: str = ""
    """Column that tells the rows apart, if it is known."""


@dataclass(frozen=True, eq=False)
class _Rows:
    """Labels of all rows, given and found, as numbers of classes."""

    known: AnyArray
    given: AnyArray
    truth: AnyArray
    found: AnyArray
    numbers: AnyArray

    @classmethod
    def read(cls, classes: AnyArray, y: ArrayLike, found: ArrayLike, name: str) -> _Rows:
        given, labels = as_column(y, "y"), as_column(found, name)
        if len(given) != len(labels):
            raise InvalidInputError(f"y has {len(given)} rows, {name} has {len(labels)}")
        known = ~missing_mask(given)
        truth = class_numbers(given[known], classes, "y")
        return cls(known, given, truth, labels, class_numbers(labels, classes, name))

    def facts(self, estimator: Any, about: About, explains: bool) -> Facts:
        """What is the same for all models."""
        k, name = len(estimator.classes_), type(estimator).__name__
        return Facts(
            title=about.title or name,
            target=about.target,
            model=name,
            explains=explains,
            classes=[str(label) for label in estimator.classes_.tolist()],
            n_rows=len(self.known),
            n_labelled=int(np.count_nonzero(self.known)),
            given=np.bincount(self.truth, minlength=k).tolist(),
            found=np.bincount(self.numbers, minlength=k).tolist(),
            hidden=np.bincount(self.numbers[~self.known], minlength=k).tolist(),
            totals=list(getattr(estimator, "totals_", [])),
            totals_used=hasattr(estimator, "totals_"),
            record=estimator.record_,
            making=[],
            parameters=[(name, parameter_pairs(estimator))],
            divides=hasattr(estimator, "transduce"),
            uses_hidden=explains or hasattr(estimator, "transduction_"),
            trees=[],
            recall=[None] * k,
            group_name=about.group_name,
            model_file=about.model_file,
            id_name=about.id_name,
            subtracted=about.totals_of == "all",
        )

    def told_totals(self, facts: Facts, groups: Any) -> list[dict[str, Any]]:
        """Totals as they were given: those of all rows with what was subtracted."""
        return office_totals(facts.totals, self.given, groups) if facts.subtracted else facts.totals


def fit_facts(
    estimator: Any,
    y: ArrayLike,
    predicted: ArrayLike,
    about: About | None = None,
    *,
    totals: Any = None,
    leaves: ArrayLike | None = None,
    words: Mapping[int, FeatureWords] | None = None,
) -> Facts:
    """Facts of the report of a model that is a tree; parameters as of :func:`treewright.report.fit_report`."""
    if not hasattr(estimator, "export_text") or not hasattr(estimator, "predict_proba"):
        raise InvalidInputError(
            f"{type(estimator).__name__} is no classifier that is one tree, and a report is about a tree; totals_table "
            "lays out the totals_ of any model"
        )
    classes, k = estimator.classes_, len(estimator.classes_)
    rows = _Rows.read(classes, y, predicted, "predicted")
    about = about or About()
    facts = rows.facts(estimator, about, explains=False)
    if totals is not None:
        chosen = None if about.groups is None else as_column(about.groups, "groups")[~rows.known]
        parsed = parse_totals(totals, classes, facts.n_hidden, chosen)
        facts = replace(facts, totals=parsed.table(rows.numbers[~rows.known], classes))
    suspects = getattr(estimator, "relabeled_", None)
    several = hasattr(estimator, "trees_") and not hasattr(estimator, "relabel")
    return replace(
        facts,
        totals=rows.told_totals(facts, about.groups),
        confusion=np.bincount(rows.truth * k + rows.numbers[rows.known], minlength=k * k).reshape(k, k),
        trees=fitted_trees(estimator, None if leaves is None else np.asarray(leaves), rows.truth, rows.known, words),
        n_voting=len(estimator.trees_) if several else 1,
        making=[
            *made_today(),
            *about.making,
            *([("teacher", taught)] if (taught := teacher_words(estimator, facts.n_hidden)) else []),
            *_fit_lines(estimator.record_),
            *_seed_lines(facts, estimator.record_),
        ],
        n_suspects=None if suspects is None else int(np.count_nonzero(suspects)),
        groups=_group_facts(about.groups, rows.known, None),
    )


def _found_again(estimate: AccuracyEstimate | None, classes: AnyArray) -> list[tuple[int, int]]:
    if estimate is None or not estimate.counts:
        return []
    return [estimate.counts.get(label, (0, 0)) for label in classes.tolist()]


def labels_facts(
    labeller: Any,
    y: ArrayLike,
    labels: ArrayLike,
    about: About | None = None,
    *,
    estimate: AccuracyEstimate | None = None,
    no_estimate: str = "it was not asked for",
    explanation: Explanation | None = None,
) -> Facts:
    """Facts of the report of labels within totals; parameters as of :func:`treewright.report.labels_report`."""
    rows, about = _Rows.read(labeller.classes_, y, labels, "labels"), about or About()
    facts = rows.facts(labeller, about, explains=True)
    wrapped = labeller.estimator if isinstance(labeller.estimator, str) else type(labeller.estimator).__name__
    scores = getattr(labeller.estimator_, "record_", wrapped)
    shares = getattr(labeller, "transduction_proba_", None)
    doubt = None
    if shares is not None and len(shares) == facts.n_rows:
        doubt = 1.0 - shares[np.arange(len(shares)), rows.numbers]
    facts = replace(
        facts,
        estimate=estimate,
        no_estimate="" if estimate is not None else no_estimate,
        recall=[None if estimate is None else estimate.recall.get(label) for label in labeller.classes_.tolist()],
        found_again=_found_again(estimate, labeller.classes_),
        making=[
            *made_today(),
            *about.making,
            ("labels", f"{labeller.record_.reason}; {labeller.record_.seconds:.1f} seconds"),
            ("scores", str(scores)),
            *([("rows in the model", kept_rows_words(labeller))] if kept_rows(labeller) else []),
        ],
        groups=_group_facts(about.groups, rows.known, doubt),
        totals=rows.told_totals(facts, about.groups),
    )
    facts = facts if explanation is None else _explained(facts, explanation, rows)
    return replace(facts, making=[*facts.making, *_seed_lines(facts, labeller.record_, facts.tree_record)])


def class_numbers(labels: AnyArray, classes: AnyArray, name: str) -> AnyArray:
    """Class numbers of labels in a report; one that is no class is refused."""
    number = {label: k for k, label in enumerate(classes.tolist())}
    try:
        return np.array([number[label] for label in labels.tolist()], dtype=np.int64)
    except KeyError as error:
        raise InvalidInputError(
            f"{name} has the label {error.args[0]!r}, which is none of the classes {classes.tolist()}"
        ) from None


def _explained(facts: Facts, explanation: Explanation, rows: _Rows) -> Facts:
    """Facts with those of the tree that explains the labels."""
    tree, record = explanation.tree, explanation.tree.record_
    same = explanation.labels == rows.found
    right = int(np.count_nonzero(explanation.labels[rows.known] == rows.given[rows.known]))
    lines = [("tree", _ended(record))]
    return replace(
        facts,
        trees=[explanation.facts(rows.found)],
        agreed=(int(np.count_nonzero(same & ~rows.known)), right),
        tree_record=record,
        tree_limit=getattr(tree, "time_limit", None),
        making=[*facts.making, *lines, *([("why this tree", record.reason)] if record.reason else [])],
        parameters=[*facts.parameters, (type(tree).__name__, parameter_pairs(tree))],
    )


def _ended(record: FitRecord) -> str:
    return f"{STATUS_WORDS[record.status]} (status {record.status}); {record.seconds:.1f} seconds"


def _fit_lines(record: FitRecord) -> list[tuple[str, str]]:
    proof = ", ".join(f"{name} {value}" for name, value in proof_words(record))
    return [
        ("fit", _ended(record)),
        *([("why", record.reason)] if record.reason else []),
        *([("figures", proof)] if proof else []),
    ]


def _seed_lines(facts: Facts, record: FitRecord, of_tree: FitRecord | None = None) -> list[tuple[str, str]]:
    """The seed of a fit, or of labels and the tree that explains them if they have one of each."""
    if of_tree is not None and of_tree.seed == record.seed:
        record, of_tree = of_tree if not of_tree.repeatable else record, None
    pairs = [("seed", record), *([] if of_tree is None else [("seed of the tree", of_tree)])]
    option, short = facts.option("random_state"), facts.estimate is not None and facts.estimate.short
    return [(name, words) for name, one in pairs if (words := seed_words(one, option, short))]


def _coded(groups: Any) -> Coded | None:
    """A column of groups as numbers of their names, -1 where there is none; None for several columns."""
    if isinstance(groups, Coded):
        return groups
    column = np.asarray(groups, dtype=object)
    if column.ndim != 1:
        return None
    here = ~missing_mask(column)
    names = list(dict.fromkeys(column[here].tolist()))
    number = {name: g for g, name in enumerate(names)}
    numbers = np.full(len(column), -1)
    numbers[here] = [number[name] for name in column[here].tolist()]
    return Coded(names, numbers)


def office_totals(totals: list[dict[str, Any]], y: AnyArray, groups: Any) -> list[dict[str, Any]]:
    """Totals in a report as given of all rows, each with the rows that had a label and were subtracted as ``labelled``.

    Of several margins, groups are a list of their columns.

    Examples
    --------
    >>> row = {"group": None, "class": "yes", "low": 3, "high": 3, "reached": 3, "deviation": 0}
    >>> office_totals([row], np.array(["yes", "no", None, "yes"], dtype=object), None)[0]["labelled"]
    2
    """
    known = ~missing_mask(y)
    several = max((row.get("margin", 0) for row in totals), default=0) + 1
    columns = group_columns(groups, several) if several > 1 else [groups]
    cells = [_label_counts(y[known], column, known) for column in columns]
    return [row | {"labelled": cells[row.get("margin", 0)][row["group"], row["class"]]} for row in totals]


def _label_counts(labels: AnyArray, groups: Any, known: AnyArray) -> Counter[tuple[Any, Any]]:
    """Labels of each class in each group, None where there are no groups, or a row has none."""
    names: list[Any] = [None]
    numbers = [-1] * len(labels)
    column = None if groups is None else _coded(groups)
    if column is not None:
        names, numbers = [*column.names, None], column.numbers[known].tolist()
    return Counter(zip((names[g] for g in numbers), labels.tolist(), strict=True))


def _group_facts(groups: Any, known: AnyArray, doubt: AnyArray | None) -> GroupFacts | None:
    """Rows by group; None without groups, and where several columns of them cross."""
    column = None if groups is None else _coded(groups)
    if column is None or len(column.numbers) != len(known):
        return None
    here = column.numbers >= 0
    place, seen, names, n = column.numbers[here], known[here], column.names, len(column.names)
    return GroupFacts(
        names=[str(name) for name in names],
        labelled=np.bincount(place[seen], minlength=n).tolist(),
        hidden=np.bincount(place[~seen], minlength=n).tolist(),
        doubt=None if doubt is None else np.bincount(place[~seen], doubt[here][~seen], n).tolist(),
    )
