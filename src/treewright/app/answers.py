"""Rows of a table to predict whose class is known already: kept, or compared with what the model says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from treewright.app.options import TotalsOptions
from treewright.app.spelling import Spelling
from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.names import counted, option, printable
from treewright.data.columns_checked import AnyArray, meant
from treewright.data.spelling import known_names
from treewright.data.tables.columns import level_codes
from treewright.data.tables.files import Table
from treewright.estimators.totals_model import PricedModel
from treewright.exceptions import InvalidInputError

__all__ = ["Answers"]


@dataclass(eq=False)
class Answers:
    """Answers in the target column of a table to predict, counted over all its parts.

    Attributes
    ----------
    estimator : estimator
        What predicts.
    target : str or None
        Column that it predicts.
    spelling : Spelling
        Whether answers that are written like a class are of that class.
    kept : bool
        Whether rows keep their answers: they do by default where rows are labelled as by the fit, within totals or by
        a model whose fit keeps them. What a tree by itself says is the prediction of every row.
    counts : ndarray of int, shape (n_classes,)
        Rows with an answer of each class.
    others : int
        Rows with an answer that is no class of the model, where answers are not kept.
    same : int
        Rows of which the model by itself says what their answer says.
    """

    estimator: Any
    target: str | None
    kept: bool
    spelling: Spelling
    others: int = 0
    same: int = 0
    counts: IntArray = field(init=False)

    def __post_init__(self) -> None:
        self.counts = np.zeros(len(self.estimator.classes_), dtype=np.int64)

    @classmethod
    def asked(cls, estimator: Any, target: str | None, options: TotalsOptions, answers: str | None) -> Answers:
        """As the options of ``predict`` say; `answers` is "keep", "ignore" or None."""
        labels = isinstance(estimator, PricedModel) or bool(options.asked_margins)
        kept = labels if answers is None else answers == "keep"
        return cls(estimator, target, kept, options.names)

    @property
    def total(self) -> int:
        """Rows with an answer."""
        return int(self.counts.sum()) + self.others

    def read(self, table: Table) -> IntArray | None:
        """Class numbers of the answers of some rows, -1 where there is none; None where no row has one."""
        target, estimator = self.target, self.estimator
        if target is None or target not in table.columns:
            return None
        texts = tuple(str(label) for label in estimator.classes_.tolist())
        column = table.series(target)
        if self.spelling.how == "merge":  # a class that is written otherwise is none of the model, and refused as such
            column = self.spelling.column(column, f"the target {target!r}", texts)
        numbers, others = level_codes(column, texts)
        mark = str(getattr(estimator, "unlabeled", ""))  # which the fit took for a missing label too
        strange = others.filter(others["level"] != mark)
        self.others += int(strange["rows"].sum())
        if self.kept and strange.height:
            level, rows = strange.row(0)
            row = int((table.series(target) == level).arg_max() or 0) + table.first_row
            raise InvalidInputError(
                f"column {target!r} has the answer {level!r} ({counted(rows, 'row')}, first in row {row}), which is no "
                f"class of the model; {meant(level, estimator.classes_.tolist())}. {_remedy(level, texts)}; "
                f"{option('answers', 'ignore')} labels rows with an answer like the others"
            )
        numbers = np.asarray(numbers, dtype=np.int64)
        known = numbers >= 0
        self.counts += np.bincount(numbers[known], minlength=len(texts))
        return numbers if known.any() else None

    def labels(self, numbers: IntArray) -> AnyArray:
        """Answers as labels, None where there is none."""
        return np.array([*self.estimator.classes_.tolist(), None], dtype=object)[numbers]

    def compare(self, numbers: IntArray, predicted: AnyArray) -> None:
        """Count the rows of which the model by itself says the same."""
        known: BoolArray = numbers >= 0
        self.same += int(np.count_nonzero(self.labels(numbers)[known] == np.asarray(predicted)[known]))

    def kept_in(self, table: Table, predicted: AnyArray, shares: FloatArray) -> tuple[AnyArray, FloatArray]:
        """Predictions and probabilities of some rows with the answers, if these are kept."""
        numbers = self.read(table)
        if numbers is None:
            return predicted, shares
        self.compare(numbers, predicted)
        if not self.kept:
            return predicted, shares
        known, certain = numbers >= 0, np.eye(len(self.counts))[numbers]
        chosen = np.where(known, self.labels(numbers), predicted)
        return chosen.astype(np.asarray(predicted).dtype), np.where(known[:, None], certain, shares)

    @property
    def words(self) -> str:
        """What is told of them; nothing where there are none."""
        if not self.total:
            return ""
        column = printable(self.target or "")
        rows = f"{counted(self.total, 'row has', 'rows have')} an answer in {column!r}"
        share = f"{self.same} of them ({self.same / self.total:.1%})"
        if self.kept:
            return (
                f"{rows}, which is kept; the model by itself says the same of {share} "
                f"({option('answers', 'ignore')} labels them like the others)"
            )
        return f"{rows}; the prediction is the same for {share} ({option('answers', 'keep')} keeps them)"

    def document(self) -> dict[str, Any] | None:
        """The same for JSON."""
        return {"kept": self.kept, "rows": self.total, "same": self.same} if self.total else None


def _remedy(answer: str, classes: tuple[str, ...]) -> str:
    """What to do with an answer that is no class."""
    if known_names([answer], classes):
        return f"{option('spelling', 'merge')} takes it for that class"
    return f"If it means missing: {option('na', [printable(answer)])}"
