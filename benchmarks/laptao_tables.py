"""Whether unlabelled rows help on small tables of all kinds: semi-supervised methods against labels alone.

Tables of less than 200 rows are left out; of more than 3000, so many are drawn. A third of the rows is for testing; of
the others 5 % are labelled, at least 20. "Labels of a forest" is TAO on all rows, those without a label having what a
random forest on the labels says of them; trees that are "taught" have ``teacher="auto"``. "The better one" is LapTAO or
oblique-lbl, by errors of label propagation and oblique-lbl in five folds of the labels.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import KFold
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.tree import DecisionTreeClassifier

import harness
from harness import Data, Instance, Method
from treewright import LapSVMClassifier, LapTAOClassifier, SSCTClassifier, TAOClassifier

LEAST_ROWS, MOST_ROWS, LEAST_LABELS, DEPTH = 200, 3000, 20, 6


@dataclass
class LabelsOfAForest:
    """An oblique tree on all rows, for which a random forest fills in the missing labels."""

    tree: TAOClassifier

    def fit(self, X: np.ndarray, y: np.ndarray) -> TAOClassifier:
        """Fit the forest on the labels, the tree on everything."""
        known = y >= 0
        forest = RandomForestClassifier(200, random_state=0).fit(X[known], y[known])
        return self.tree.fit(X, np.where(known, y, forest.predict(X)))


@dataclass
class TheBetterOne:
    """LapTAO on all rows or TAO on the labels alone, by errors of graph and TAO at labels left out in turn."""

    lap: LapTAOClassifier
    tao: TAOClassifier

    def fit(self, X: np.ndarray, y: np.ndarray) -> LapTAOClassifier | TAOClassifier:
        """Compare in five folds of the labels, and fit the one with fewer errors."""
        known, more = np.flatnonzero(y >= 0), 0
        for train, test in KFold(5, shuffle=True, random_state=0).split(known):
            rest, out = known[train], known[test]
            if len(np.unique(y[rest])) < 2:
                continue
            fewer = y.copy()
            fewer[out] = -1
            more += int(
                np.sum(clone(self.lap).set_params(estimator="graph").fit(X, fewer).transduction_[out] != y[out])
            )
            more -= int(np.sum(clone(self.tao).fit(X[rest], y[rest]).predict(X[out]) != y[out]))
        return self.lap.fit(X, y) if more <= 0 else self.tao.fit(X[known], y[known])


def few_labels(data: Data, draw: int, share: float) -> Instance:
    n, X, y = len(data.y), data.X, data.y
    if n < LEAST_ROWS:
        raise harness.SkipRow(f"less than {LEAST_ROWS} rows")
    test, train = np.split(np.random.default_rng(100 + draw).permutation(n), [n // 3])
    known = np.arange(len(train)) < max(LEAST_LABELS, round(share / 100 * len(train)))
    return harness.two_classes(Instance(X[train], y[train], known, X[test], y[test], draw))


def tao(instance: Instance) -> TAOClassifier:
    return TAOClassifier(**TREE)


def lap(instance: Instance) -> LapTAOClassifier:
    return LapTAOClassifier(**TREE)


def cart(instance: Instance) -> DecisionTreeClassifier:
    return DecisionTreeClassifier(**TREE)


def laptao(name: str, **parameters: Any) -> Method:
    return Method(name, LapTAOClassifier, {**TREE, **parameters})


def self_training(name: str, tree: Callable[[Instance], Any]) -> Method:
    return Method(name, SelfTrainingClassifier, {"threshold": 0.9}, per_instance={"estimator": tree})


SEED = {"random_state": 0}
TREE: dict[str, Any] = {"max_depth": DEPTH, **SEED}
METHODS = (
    Method("random forest", RandomForestClassifier, {"n_estimators": 200, **SEED}, on=harness.labelled_rows),
    Method("oblique-lbl", TAOClassifier, TREE, on=harness.labelled_rows),
    Method("axis-lbl", DecisionTreeClassifier, TREE, on=harness.labelled_rows),
    laptao("LapTAO"),
    laptao("LapTAO (stretch 0)", stretch=0.0),
    laptao("LapTAO forest", n_estimators=12),
    laptao("label propagation + kNN", estimator="graph"),
    Method("the better one", TheBetterOne, per_instance={"lap": lap, "tao": tao}),
    Method("oblique, labels of a forest", LabelsOfAForest, per_instance={"tree": tao}),
    Method("oblique, taught", TAOClassifier, {**TREE, "teacher": "auto"}),
    laptao("LapTAO, taught", teacher="auto"),
    laptao("LapCART", estimator="cart"),
    self_training("oblique-self", tao),
    self_training("axis-self", cart),
    Method("SSCT", SSCTClassifier, TREE),
    Method("LapSVM", LapSVMClassifier, SEED),
)


# One row a table and method
MEANS = harness.combined(("data", "method"), lambda own: {"error": statistics.fmean(row["error"] for row in own)})
ERROR = harness.mean("mean error", "error", ".1f")
BY_TABLE = harness.PivotTable(("data", "data"), ("method", "{}"), ERROR, rows=MEANS)
BY_METHOD = harness.GroupTable(
    {"method": "method"},
    (harness.count("tables"), ERROR, *harness.against("oblique-lbl", "method", "error")),
    rows=MEANS,
    order=tuple(method.name for method in METHODS),
)
DATA = harness.PaperSets("S2OCT", harness.read_classes, parameters={"most_rows": MOST_ROWS})
TABLES = harness.Specification(
    name="laptao-tables",
    data=(DATA,),
    samples=(harness.Sample("5 %", few_labels, {"share": 5.0}, draws=2),),
    methods=METHODS,
    metrics=(harness.error_percent,),
    summary=(BY_TABLE, BY_METHOD),
)

SMALL: dict[str, Any] = {"data": (replace(DATA, names=("irish",)),), "methods": METHODS[:4]}

SPECIFICATIONS = (TABLES.with_quick(**SMALL),)

if __name__ == "__main__":
    sys.exit(harness.main(*SPECIFICATIONS, about=__doc__))
