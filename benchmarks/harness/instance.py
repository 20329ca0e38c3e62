"""What methods get of a data set, and what they are judged by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from harness.sampling import biased_sample, simple_random_sample
from treewright.core.arrays import BoolArray, FloatArray
from treewright.data.columns_checked import AnyArray
from treewright.exceptions import InvalidInputError

__all__ = [
    "Data",
    "Instance",
    "SkipRow",
    "all_labels",
    "cut_at_total",
    "everything",
    "labelled_rows",
    "partly_labelled",
    "predictions",
    "scores",
    "transduction",
    "two_classes",
]


class SkipRow(Exception):
    """A row that cannot be made, with the reason; raised by what loads, samples or builds."""


@dataclass(frozen=True, eq=False)
class Data:
    """A data set in memory."""

    X: FloatArray
    """Features; shape (n_rows, n_features)."""
    y: AnyArray
    """Whole numbers for classes, floats for values; shape (n_rows,)."""
    X_test: FloatArray | None = None
    y_test: AnyArray | None = None
    """Rows for testing, if the data set has its own."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """What methods may be given besides, such as a graph of the rows."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Plain values for every row of the store."""

    @property
    def test(self) -> tuple[FloatArray, AnyArray]:
        """Features and targets of the rows for testing."""
        if self.X_test is None or self.y_test is None:
            raise InvalidInputError("the data set has no rows for testing of its own")
        return self.X_test, self.y_test


@dataclass(frozen=True, eq=False)
class Instance:
    """A sample of a data set."""

    X: FloatArray
    """Rows of the fit; shape (n_rows, n_features)."""
    truth: AnyArray
    """Their classes or values; shape (n_rows,)."""
    known: BoolArray
    """Which of these a method may see; shape (n_rows,)."""
    X_test: FloatArray
    y_test: AnyArray
    """Rows to predict and their classes or values. They may be the unlabelled rows of the fit."""
    draw: int = 0
    """Number of the draw, for seeds."""
    given: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    """As of :class:`Data`."""

    @property
    def is_classes(self) -> bool:
        """Whether classes are to be predicted."""
        return bool(self.truth.dtype.kind in "iub")

    @property
    def y(self) -> AnyArray:
        """What a method sees: -1 for an unknown class, NaN for an unknown value."""
        return np.where(self.known, self.truth, -1 if self.is_classes else np.nan)


# ---------------------------------------------------------------------- samples


def partly_labelled(data: Data, draw: int, share: float, biased: bool = False) -> Instance:
    """Label a share of the rows and give the class totals of the others, which are the rows to predict.

    Parameters
    ----------
    data : Data
        The data set.
    draw : int
        Seed.
    share : float
        Share of the rows to label.
    biased : bool
        Whether rows of class 1 are drawn with weight 0.85 and others with 0.15, as in the papers on totals.

    Examples
    --------
    >>> data = Data(np.arange(10.0)[:, None], np.repeat([0, 1], 5))
    >>> instance = partly_labelled(data, 0, share=0.2)
    >>> int(instance.known.sum()), sum(instance.given["totals"].values())
    (2, 8)
    """
    if biased:
        known = biased_sample(data.y, share, positive=1, random_state=draw)
    else:
        known = simple_random_sample(len(data.y), share, random_state=draw)
    hidden = data.y[~known]
    totals = {int(label): int(np.sum(hidden == label)) for label in np.unique(data.y)}
    facts = {
        **data.facts,
        "share": 100.0 * share,
        "unlabelled": len(hidden),
        "labelled_classes": len(np.unique(data.y[known])),
        "largest_class": max(totals.values()) / max(len(hidden), 1),
    }
    # A small biased sample may have labels of one class only.
    given = {**data.given, "totals": totals, "allow_new_classes": True}
    return Instance(data.X, data.y, known, data.X[~known], hidden, draw, given, facts)


# ---------------------------------------------------------------------- what a method sees


def everything(instance: Instance) -> Instance:
    """All rows, with the labels that are known."""
    return instance


def two_classes(instance: Instance) -> Instance:
    """All rows, if at least two classes are labelled."""
    if instance.is_classes and len(np.unique(instance.truth[instance.known])) < 2:
        raise SkipRow("the labelled sample has one class")
    return instance


def labelled_rows(instance: Instance) -> Instance:
    """The labelled rows alone, if at least two classes are labelled."""
    known = two_classes(instance).known
    return replace(instance, X=instance.X[known], truth=instance.truth[known], known=known[known])


def all_labels(instance: Instance) -> Instance:
    """All rows with all labels: what more labels could bring at most."""
    return replace(instance, known=np.ones(len(instance.X), dtype=bool))


# ---------------------------------------------------------------------- answers


def predictions(model: Any, instance: Instance) -> AnyArray:
    """What the model predicts for the test rows."""
    return np.asarray(model.predict(instance.X_test))


def transduction(model: Any, instance: Instance) -> AnyArray:
    """The labels that a semi-supervised model gave the unlabelled rows, where these are the test rows."""
    return np.asarray(model.transduction_)[~instance.known]


def scores(model: Any, X: FloatArray) -> FloatArray:
    """Scores of class 1 by a fitted classifier of scikit-learn."""
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(X))
    return np.asarray(model.predict_proba(X)[:, 1])


def cut_at_total(score: FloatArray, instance: Instance) -> AnyArray:
    """Class 1 for the test rows of the highest scores, as many as the total says.

    Ties at the cut are broken at random: in the order of the file they would leak the class, since many files are
    sorted by it.

    Examples
    --------
    >>> data = Data(np.arange(4.0)[:, None], np.array([0, 1, 0, 1]))
    >>> instance = partly_labelled(data, 1, share=0.25)
    >>> label = cut_at_total(np.array([0.1, 0.9, 0.5]), instance)
    >>> int(label.sum()) == instance.given["totals"][1], int(label[1])
    (True, 1)
    """
    if "totals" not in instance.given:
        raise InvalidInputError("the sample gives no class totals to cut at")
    noise = np.random.default_rng(instance.draw).random(len(score))
    label = np.zeros(len(score), dtype=np.int64)
    label[np.lexsort((noise, -score))[: instance.given["totals"][1]]] = 1
    return label
