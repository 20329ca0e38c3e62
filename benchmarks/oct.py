"""Exact OCT beside other exact solvers of trees with splits by one feature, and CART.

Three quarters of the rows of each class for training, the others for testing; text is numbered by its sorted values for
all methods alike. No price of splits and no least leaf size, which pycontree does not know: all exact methods that end
have the same number of training errors. pystreed splits at thresholds chosen beforehand, so that its trees are optimal
among those alone. pycontree and pystreed are no dependencies; rows that need them are skipped where they cannot be
imported. Fits share one process with `--jobs 0`, so that compiled code is loaded once; the first fit of a process loads
it, and the first one on a machine compiles.

oct: data sets of the papers, depths 2 and 3. oct-large: made tables of 100 000 rows, depth 2. oct-deep: 500 rows, depth
4, a limit that is not enough.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Self

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

import harness
from harness import TIME_LIMIT, Data, GroupTable, Instance, Method, Outcome, Row, Sample, Specification
from treewright import OCTClassifier

NUMBERS = (
    *("spectf_heart_train", "breast_cancer_wisconsin_original", "heart_disease_cleveland", "banknote_authentication"),
    *("echocardiogram", "sonar", "haberman_survival", "hepatitis", "planning_relax", "ionosphere", "monks_1_train"),
    *("monks_3_train", "wine"),
)
TEXT = ("iris", "congressional_voting", "image_segmentation_train")
DEEP_SETS = ("banknote_authentication", "breast_cancer_wisconsin_original", "ionosphere", "heart_disease_cleveland")
OTHERS = ("australian", "heart", "monks_415", "parkinson_replicated_acoustic")


def split(data: Data, draw: int, test: float = 0.25) -> Instance:
    """Rows for training and, a share `test`, for testing, by class."""
    known, other = train_test_split(np.arange(len(data.y)), test_size=test, random_state=draw, stratify=data.y)
    X, y = data.X, data.y
    return Instance(X[known], y[known], np.ones(len(known), dtype=bool), X[other], y[other], draw, facts=data.facts)


class Foreign:
    """A classifier of another package, with classes as numbers and tables without gaps, as these packages want them."""

    def __init__(self, module: str, name: str, max_depth: int, seconds: float) -> None:
        self.module, self.name, self.max_depth, self.seconds = module, name, max_depth, seconds

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Fit it; whether it ended in time is what it says, or how long it took."""
        self.model = getattr(import_module(self.module), self.name)(max_depth=self.max_depth, time_limit=self.seconds)
        self.classes_, numbers = np.unique(y, return_inverse=True)
        self.model.fit(X, numbers)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Classes of the rows."""
        return self.classes_[np.asarray(self.model.predict(X)).astype(int)]


def importable(module: str) -> Callable[[Instance], Instance]:
    """The instance as it is, if the package is there."""

    def found(instance: Instance) -> Instance:
        try:
            import_module(module)
        except ImportError as error:
            raise harness.SkipRow(f"{module} cannot be imported: {error}") from error
        if np.isnan(instance.X).any():
            raise harness.SkipRow(f"{module} takes no missing values")
        return instance

    return found


def training_errors(instance: Instance, outcome: Outcome) -> Mapping[str, Any]:
    """Training rows that are wrong, and how many are wrong in any tree, where that is bounded."""
    model, y = outcome.model, instance.truth
    found = {"errors": int(np.sum(model.predict(instance.X) != y))}
    if hasattr(model, "bound_"):
        found["bound_errors"] = float(model.bound_ * (len(y) - np.unique(y, return_counts=True)[1].max()))
    return found


def agreement(rows: list[Row]) -> str:
    """On how many instances that OCT proves another exact method has other errors, and how their times compare."""
    ours = {(r["data"], r["setting"], r["draw"]): r for r in harness.only(harness.finished(rows), method="OCT")}
    lines = []
    for method in ("pycontree", "pystreed"):
        pairs = [
            (ours[key], row)
            for row in harness.only(harness.finished(rows), method=method)
            if (key := (row["data"], row["setting"], row["draw"])) in ours and ours[key]["status"] == "optimal"
        ]
        if pairs:
            more = sum(row["errors"] > own["errors"] for own, row in pairs)
            fewer = sum(row["errors"] < own["errors"] for own, row in pairs)
            seconds = [sum(row["seconds"] for row in side) for side in zip(*pairs, strict=True)]
            lines.append(
                f"Of {len(pairs)} instances that OCT proves, {method} has more errors on {more} and fewer on {fewer}; "
                f"seconds in all: OCT {seconds[0]:.1f}, {method} {seconds[1]:.1f}."
            )
    return "\n\n".join(lines)


METHODS = tuple(
    method
    for depth in (2, 3)
    for method in (
        Method("OCT", OCTClassifier, {"max_depth": depth, "time_limit": TIME_LIMIT}, f"depth {depth}"),
        Method(
            "pycontree",
            Foreign,
            {"module": "pycontree", "name": "ConTree", "max_depth": depth, "seconds": TIME_LIMIT},
            f"depth {depth}",
            on=importable("pycontree"),
        ),
        Method(
            "pystreed",
            Foreign,
            {"module": "pystreed", "name": "STreeDClassifier", "max_depth": depth, "seconds": TIME_LIMIT},
            f"depth {depth}",
            on=importable("pystreed"),
        ),
        Method("CART", DecisionTreeClassifier, {"max_depth": depth, "random_state": 0}, f"depth {depth}"),
    )
)
NAMES = ("OCT", "pycontree", "pystreed", "CART")
BY_METHOD = GroupTable(
    {"setting": "depth", "method": "method"},
    (
        harness.count("fits"),
        harness.mean("training errors", "errors", ".1f"),
        harness.mean("bound", "bound_errors", ".1f"),
        harness.share("optimal", "status", "optimal"),
        harness.mean("test accuracy", "accuracy", ".1%"),
        harness.median("median seconds", "seconds", ".3f"),
    ),
)
BY_SET = GroupTable(
    {"data": "data", "setting": "depth"},
    (
        *(harness.mean(f"errors, {name}", "errors", ".1f").of(method=name) for name in NAMES),
        harness.mean("bound", "bound_errors", ".1f").of(method="OCT"),
        *(harness.median(f"seconds, {name}", "seconds", ".3f").of(method=name) for name in NAMES[:3]),
        *(harness.mean(f"test, {name}", "accuracy", ".1%").of(method=name) for name in NAMES),
    ),
)
OCT_SETS = Specification(
    name="oct",
    data=(
        harness.PaperSets("SVM1ODT", harness.read_classes, NUMBERS),
        harness.PaperSets("SVM1ODT", harness.read_coded_classes, TEXT),
        harness.PaperSets("OCTSVM", harness.read_classes, OTHERS),
    ),
    samples=(Sample("75 %", split, draws=3),),
    methods=METHODS,
    metrics=(harness.accuracy, training_errors),
    summary=(BY_METHOD, agreement, BY_SET),
    time_limit=60.0,
).with_quick(
    data=(harness.PaperSets("SVM1ODT", harness.read_classes, ("wine",)),),
    samples=(Sample("75 %", split),),
    time_limit=5.0,
)


def made(n: int, p: int, classes: int) -> Data:
    """Rows of which a tree of depth 2 explains a part: a sum of one column and of another where a third is positive."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, p))
    level = X[:, 0] + X[:, 1] * (X[:, 2] > 0) + 0.7 * rng.normal(size=n)
    return Data(X, np.digitize(level, np.quantile(level, np.arange(1, classes) / classes)))


def noise(n: int, p: int) -> Data:
    """Two classes that no column tells apart."""
    rng = np.random.default_rng(0)
    return Data(rng.normal(size=(n, p)), rng.integers(0, 2, n))


def some(data: Data, draw: int, rows: int) -> Instance:
    """At most so many rows for training, and the same for testing."""
    kept = np.random.default_rng(draw).permutation(len(data.y))[:rows]
    X, y = data.X[kept], data.y[kept]
    return Instance(X, y, np.ones(len(kept), dtype=bool), X, y, draw, facts=data.facts)


BOUNDED = GroupTable(
    {"data": "data"},
    (
        harness.mean("errors", "errors", ".0f"),
        harness.mean("bound", "bound_errors", ".0f"),
        harness.share("optimal", "status", "optimal"),
        harness.median("seconds", "seconds", ".2f"),
        harness.median("processor seconds", "processor_seconds", ".2f"),
        harness.mean("GiB", "memory_gib", ".2f"),
    ),
)


def deep(depth: int) -> tuple[Method, ...]:
    return (Method("OCT", OCTClassifier, {"max_depth": depth, "time_limit": TIME_LIMIT}, f"depth {depth}"),)


LARGE = Specification(
    name="oct-large",
    data=tuple(
        harness.DataSet(f"100 000 x 20, {classes} classes", made, {"n": 100_000, "p": 20, "classes": classes})
        for classes in (2, 3, 5)
    ),
    samples=(Sample("all", some, {"rows": 100_000}),),
    methods=deep(2),
    metrics=(harness.accuracy, training_errors),
    summary=(BOUNDED,),
    time_limit=60.0,
).with_quick(data=(harness.DataSet("small", made, {"n": 300, "p": 5, "classes": 3}),))
DEEP = Specification(
    name="oct-deep",
    data=(
        harness.DataSet("noise, 10 columns", noise, {"n": 500, "p": 10}),
        harness.DataSet("noise, 20 columns", noise, {"n": 500, "p": 20}),
        harness.PaperSets("SVM1ODT", harness.read_classes, DEEP_SETS),
    ),
    samples=(Sample("500 rows", some, {"rows": 500}),),
    methods=deep(4),
    metrics=(harness.accuracy, training_errors),
    summary=(BOUNDED,),
    time_limit=20.0,
).with_quick(data=(harness.DataSet("noise", noise, {"n": 60, "p": 3}),), time_limit=1.0)
SPECIFICATIONS = (OCT_SETS, LARGE, DEEP)

if __name__ == "__main__":
    sys.exit(harness.main(*SPECIFICATIONS, about=__doc__))
