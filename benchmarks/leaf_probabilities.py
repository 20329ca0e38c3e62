"""How likely the classes of a leaf are, on rows that the fit has not seen: log loss and confidence, before and after.

"seen" takes the shares of the classes that a leaf has in training, as all these trees did before; "likely" is
``predict_proba``. Confidence is the mean probability of the class that is predicted, beside how often it is right.
"constant" are the shares of the classes among all labels.
leaf_probabilities: trees of labels alone, five folds of twenty tables, and CART with hierarchical shrinkage (Agarwal et
al. 2022), its parameter chosen by cross-validation.
leaf_probabilities-taught: trees of 150 labels and a teacher or a graph for the other rows.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

import harness
from harness import TIME_LIMIT, Data, DataSet, GroupTable, Instance, Method, Outcome, Sample, Specification
from treewright import (
    LapTAOClassifier,
    OCTClassifier,
    OCTHClassifier,
    S2OCTClassifier,
    SSCTClassifier,
    SVM1ODTClassifier,
    TAOClassifier,
)

TEXT = ("iris", "congressional_voting")
NUMBERS = (
    *("spectf_heart_train", "breast_cancer_wisconsin_original", "heart_disease_cleveland", "image_segmentation_train"),
    *("echocardiogram", "sonar", "haberman_survival", "hepatitis", "planning_relax", "ionosphere", "monks_1_train"),
    *("monks_3_train", "wine"),
)
LARGE = ("magic", "ring", "twonorm", "waveform_21")
_STRENGTHS = (0.1, 1.0, 10.0, 50.0, 100.0, 500.0)


class Shrunk:
    """CART whose leaves are shrunk to the nodes above them, by a strength that cross-validation chooses."""

    def __init__(self, max_depth: int = 4) -> None:
        self.max_depth = max_depth

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Grow the tree, and choose the strength."""
        self.classes_ = np.unique(y)
        folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
        losses = np.zeros(len(_STRENGTHS))
        for seen, left in folds:
            self._grow(X[seen], y[seen])
            for number, self.strength in enumerate(_STRENGTHS):
                losses[number] += log_loss(y[left], self.predict_proba(X[left]), labels=self.classes_)
        self._grow(X, y)
        self.strength = _STRENGTHS[int(losses.argmin())]
        return self

    def _grow(self, X: np.ndarray, y: np.ndarray) -> None:
        self.model = DecisionTreeClassifier(max_depth=self.max_depth, random_state=0).fit(X, y)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Shares of the leaf, each step on the way to it shrunk by the rows of the node above."""
        tree = self.model.tree_
        shares = np.zeros((tree.node_count, len(self.classes_)))
        shares[:, np.searchsorted(self.classes_, self.model.classes_)] = tree.value[:, 0]
        found = shares.copy()
        for node in np.flatnonzero(tree.children_left >= 0):
            for child in (tree.children_left[node], tree.children_right[node]):
                step = (shares[child] - shares[node]) / (1.0 + self.strength / tree.n_node_samples[node])
                found[child] = found[node] + step
        return found[self.model.apply(X)]

    def predict(self, X: np.ndarray) -> np.ndarray:
        """The most likely class."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def made(flip: float, n_classes: int, n: int) -> Data:
    """Rows some of which have a label of chance."""
    return Data(*make_classification(n, 10, n_informative=5, n_classes=n_classes, flip_y=flip, random_state=0))


def fold(data: Data, draw: int) -> Instance:
    """One of five folds, left out."""
    seen, left = list(StratifiedKFold(5, shuffle=True, random_state=0).split(data.X, data.y))[draw]
    return Instance(data.X[seen], data.y[seen], np.ones(len(seen), dtype=bool), data.X[left], data.y[left], draw)


def few_labels(data: Data, draw: int) -> Instance:
    """Labels of 150 rows, or of a third of few; the others are unlabelled rows of the fit, and to be predicted."""
    known = np.zeros(len(data.y), dtype=bool)
    some = min(150, len(data.y) // 3)
    known[np.random.default_rng(draw).permutation(len(data.y))[:some]] = True
    return Instance(data.X, data.y, known, data.X[~known], data.y[~known], draw)


def judged(instance: Instance, outcome: Outcome) -> Mapping[str, Any]:
    """Log loss of probabilities, shares seen in training and a constant; confidence, and how many are right."""
    model, y = outcome.model, instance.y_test
    likely = model.predict_proba(instance.X_test)
    right = np.mean(model.classes_[likely.argmax(axis=1)] == y)
    labels = instance.truth[instance.known]
    constant = np.tile(np.mean(labels[:, None] == model.classes_, axis=0), (len(y), 1))
    found = {"likely": _loss(likely, y, model), "constant": _loss(constant, y, model)}
    seen = model.tree_.shares()[model.apply(instance.X_test)] if hasattr(model, "record_") else likely
    found |= {"seen": _loss(seen, y, model), "right": right}
    return found | {"sure": likely.max(axis=1).mean(), "sure_seen": seen.max(axis=1).mean()}


def _loss(shares: np.ndarray, y: np.ndarray, model: Any) -> float:
    own = shares[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    return float(-np.log(np.clip(own, 1e-15, 1.0)).mean())


COLUMNS = (
    harness.count("fits"),
    harness.mean("right", "right", ".1%"),
    harness.mean("confidence, seen", "sure_seen", ".1%"),
    harness.mean("likely", "sure", ".1%"),
    harness.mean("log loss: constant", "constant", ".3f"),
    harness.mean("seen", "seen", ".3f"),
    harness.mean("likely", "likely", ".3f"),
)
ALONE = Specification(
    name="leaf_probabilities",
    data=(
        harness.PaperSets("SVM1ODT", harness.read_coded_classes, TEXT),
        harness.PaperSets("SVM1ODT", harness.read_classes, NUMBERS),
        *(
            DataSet(f"made, {flip:.0%} by chance", made, {"flip": flip, "n_classes": 2, "n": 300})
            for flip in (0.2, 0.6)
        ),
        DataSet("made, all by chance", made, {"flip": 1.0, "n_classes": 2, "n": 300}),
        *(DataSet(f"made, {k} classes", made, {"flip": 0.3, "n_classes": k, "n": 400}) for k in (3, 5)),
    ),
    samples=(Sample("folds", fold, draws=5),),
    methods=(
        Method("OCT", OCTClassifier, {"max_depth": 3, "time_limit": TIME_LIMIT}),
        Method("OCT-H", OCTHClassifier, {"time_limit": TIME_LIMIT, "random_state": 0}),
        Method("SVM1-ODT", SVM1ODTClassifier, {"time_limit": TIME_LIMIT, "random_state": 0}),
        Method("TAO", TAOClassifier, {"max_depth": 4, "random_state": 0}),
        Method("SSCT", SSCTClassifier, {"random_state": 0}),
        Method("CART", DecisionTreeClassifier, {"max_depth": 4, "random_state": 0}),
        Method("CART, hierarchical shrinkage", Shrunk, {"max_depth": 4}),
    ),
    metrics=(judged,),
    summary=(GroupTable({"method": "method"}, COLUMNS), GroupTable({"data": "data", "method": "method"}, COLUMNS)),
    time_limit=2.0,
)
FEW = {"max_depth": 3, "random_state": 0}
TAUGHT = Specification(
    name="leaf_probabilities-taught",
    data=(
        *(
            DataSet(f"made, {flip:.0%} by chance", made, {"flip": flip, "n_classes": 2, "n": 6000})
            for flip in (0.1, 0.3)
        ),
        DataSet("made, 3 classes", made, {"flip": 0.3, "n_classes": 3, "n": 3000}),
        harness.PaperSets("S2OCT", harness.read_classes, LARGE),
    ),
    samples=(Sample("150 labels", few_labels, draws=2),),
    methods=(
        Method("TAO, teacher", TAOClassifier, {**FEW, "teacher": "auto"}),
        Method("LapTAO", LapTAOClassifier, FEW),
        Method("LapTAO, teacher", LapTAOClassifier, {**FEW, "teacher": "auto"}),
        Method("S2OCT", S2OCTClassifier, {"random_state": 0, "time_limit": TIME_LIMIT}),
    ),
    metrics=(judged,),
    summary=ALONE.summary,
    time_limit=30.0,
)
SPECIFICATIONS = (
    ALONE.with_quick(data=(harness.PaperSets("SVM1ODT", harness.read_coded_classes, ("iris",)),), time_limit=0.5),
    TAUGHT.with_quick(data=(DataSet("made", made, {"flip": 0.3, "n_classes": 2, "n": 300}),), time_limit=5.0),
)

if __name__ == "__main__":
    sys.exit(harness.main(*SPECIFICATIONS, about=__doc__))
