"""S2OCT beyond the paper's comparison: three classes with all totals, and data of the size of adult and connect_4.

Data of the size of adult (48 790 x 14) are made. 10 % of the rows are labelled at random. "Missed" is the sum of the
deviations over the classes, "largest" the share of the largest class.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from sklearn.datasets import load_wine, make_classification

import harness
from harness import TIME_LIMIT, Data, DataSet, Instance, Outcome, PaperSets, Where, each
from treewright import S2OCTClassifier


def wine() -> Data:
    return Data(*load_wine(return_X_y=True))


def as_large_as_adult() -> Data:
    options = {"n_informative": 6, "n_clusters_per_class": 3, "weights": [0.76], "flip_y": 0.1, "random_state": 0}
    return Data(*make_classification(48_790, 14, **options))


def missed(instance: Instance, outcome: Outcome) -> Mapping[str, Any]:
    totals = outcome.model.totals_
    return {"missed": sum(row["deviation"] for row in totals), "classes": len(totals), "depth": outcome.model.max_depth}


def method(depth: int, *sets: str) -> harness.Method:
    parameters = {"max_depth": depth, "time_limit": TIME_LIMIT, "random_state": 0}
    options: dict[str, Any] = {
        "given": ("totals", "allow_new_classes"),
        "answer": harness.transduction,
        "where": Where(sets=sets),
    }
    return harness.Method("S2OCT", S2OCTClassifier, parameters, f"depth {depth}", **options)


COLUMNS = {
    "size": "{n} x {p}",
    "classes": "{classes}",
    "depth": "{depth}",
    "status": "{status}",
    "objective": "{objective:.6g}",
    "missed": "{missed}",
    "accuracy": "{accuracy:.1%}",
    "largest": "{largest_class:.1%}",
    "seconds": "{seconds:.1f}",
    "GiB": "{memory_gib:.1f}",
}
MORE = harness.Specification(
    name="s2oct-more",
    data=(
        PaperSets("S2OCT", harness.read_classes, ("iris", "penguins")),
        DataSet("wine", wine),
        DataSet("as large as adult", as_large_as_adult),
        PaperSets("S2OCT", harness.read_one_class, ("connect_4",)),
    ),
    samples=(harness.Sample("simple", harness.partly_labelled, {"share": 0.1}),),
    methods=(method(2, "iris", "penguins", "wine"), method(3, "as large as adult", "connect_4")),
    metrics=(harness.accuracy, missed),
    summary=(harness.GroupTable({"data": "data"}, tuple(each(*column) for column in COLUMNS.items())),),
    time_limit=60.0,
)

SPECIFICATIONS = (MORE.with_quick(data=(DataSet("wine", wine),), time_limit=2.0),)

if __name__ == "__main__":
    sys.exit(harness.main(*SPECIFICATIONS, about=__doc__))
