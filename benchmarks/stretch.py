"""What passes over stretched rows do to the errors of TAO on rows that the fit has not seen.

Depth 6, oblique splits (part stretch) or splits on one feature (part stretch-axis). Errors are those of three folds
together; of a table with more rows, 6000 are drawn.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

import harness
from harness import Data, Instance, Method, Row
from treewright import TAOClassifier

VALUES, MOST_ROWS, FOLDS = (0.0, 0.1, 0.25, 0.5), 6000, 3


def fold(data: Data, draw: int) -> Instance:
    """The fold of this number for testing."""
    X, y = data.X, data.y
    if np.bincount(y).min() < FOLDS:
        raise harness.SkipRow("a class has less rows than there are folds")
    train, test = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y))[draw]
    return Instance(X[train], y[train], np.ones(len(train), dtype=bool), X[test], y[test], draw)


def method(stretch: float) -> Method:
    parameters = {"max_depth": 6, "max_split_features": None, "stretch": stretch, "random_state": 0}
    return Method("TAO", TAOClassifier, parameters, f"stretch {stretch:g}")


def error(folds: list[Row]) -> Row:
    """Of the folds together."""
    return {"error": 100.0 * sum(row["wrong"] for row in folds) / sum(row["tested"] for row in folds)}


BY_TABLE = harness.combined(("data", "setting"), error)
TABLE = harness.PivotTable(("data", "data"), ("setting", "{}"), harness.mean("", "error"), rows=BY_TABLE)
MEANS = harness.GroupTable(
    {"setting": "mean of all"},
    (harness.count("tables"), harness.mean("error", "error"), *harness.against("stretch 0", "setting", "error")),
    rows=BY_TABLE,
)
DATA = harness.PaperSets("S2OCT", harness.read_classes, parameters={"most_rows": MOST_ROWS})
OBLIQUE = harness.Specification(
    name="stretch",
    data=(DATA,),
    samples=(harness.Sample("fold", fold, draws=FOLDS),),
    methods=tuple(map(method, VALUES)),
    metrics=(harness.error_percent,),
    summary=(TABLE, MEANS),
)
AXIS = replace(
    OBLIQUE,
    name="stretch-axis",
    methods=tuple(replace(one, parameters={**one.parameters, "max_split_features": 1}) for one in OBLIQUE.methods),
)
SMALL: dict[str, Any] = {
    "data": (replace(DATA, names=("lupus", "irish")),),
    "samples": (harness.Sample("fold", fold),),
}

SPECIFICATIONS = (OBLIQUE.with_quick(**SMALL), AXIS.with_quick(**SMALL))

if __name__ == "__main__":
    sys.exit(harness.main(*SPECIFICATIONS, about=__doc__))
