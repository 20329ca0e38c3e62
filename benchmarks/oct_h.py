"""OCT-H beside the program that is printed, from the same start with the same time, and CART.

All rows train, depth 2, complexity 0, the default margin, and what counts is the training errors: this is about
optimization, not about predicting. Both fits of OCT-H begin with CART. "printed" solves the printed program with HiGHS;
OCT-H searches first, and then solves the program as we write it.
oct_h: five data sets.
oct_h-more: others of the data sets of SVM1-ODT, on which trees of depth 2 make more errors.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier

import harness
from harness import TIME_LIMIT, Data, GroupTable, Instance, Method, Outcome, Row, Sample, Specification
from treewright import OCTHClassifier

TEXT = ("iris", "congressional_voting")
NUMBERS = ("breast_cancer_wisconsin_original", "sonar", "ionosphere")
MORE = ("heart_disease_cleveland", "haberman_survival", "planning_relax", "monks_1_train", "banknote_authentication")
OURS, PRINTED, CART = "OCT-H", "printed", "CART"


def all_rows(data: Data, draw: int) -> Instance:
    """All rows, for training and for counting errors."""
    return Instance(data.X, data.y, np.ones(len(data.y), dtype=bool), data.X, data.y, draw)


def errors(instance: Instance, outcome: Outcome) -> Mapping[str, Any]:
    """Training errors, and the fewest that the bound leaves possible."""
    wrong = int(np.sum(outcome.answer != instance.y_test))
    bound = getattr(outcome.model, "bound_", None)
    if bound is None:
        return {"errors": wrong}
    majority = len(instance.truth) - int(np.unique(instance.truth, return_counts=True)[1].max())
    return {"errors": wrong, "at_least": int(np.ceil(bound * majority - 1e-6))}


def compared(rows: list[Row]) -> str:
    """How the errors of OCT-H compare with those of the others, over data sets."""
    by = {
        m: {r["data"]: r["errors"] for r in harness.only(harness.finished(rows), method=m)}
        for m in (OURS, PRINTED, CART)
    }
    lines = []
    for other in (PRINTED, CART):
        both = [(by[OURS][name], by[other][name]) for name in by[OURS] if name in by[other]]
        if both:
            mine, theirs = np.mean(both, axis=0)
            fewer, more = sum(a < b for a, b in both), sum(a > b for a, b in both)
            lines.append(f"fewer than {other} on {fewer}, more on {more} of {len(both)} ({mine:.1f}, {theirs:.1f})")
    return f"Errors of {OURS}: " + "; ".join(lines) + "." if lines else ""


def of_method(name: str) -> tuple[harness.Column, ...]:
    """Errors, bound and seconds of a method."""
    columns = (
        harness.mean(f"{name}: errors", "errors", ".0f"),
        harness.mean("at least", "at_least", ".0f"),
        harness.mean("seconds", "seconds", ".1f"),
    )
    return tuple(column.of(method=name) for column in columns)


SHAPE = {"max_depth": 2, "random_state": 0}
METHODS = (
    Method(OURS, OCTHClassifier, {**SHAPE, "time_limit": TIME_LIMIT}),
    Method(PRINTED, OCTHClassifier, {**SHAPE, "formulation": "paper", "time_limit": TIME_LIMIT}),
    Method(CART, DecisionTreeClassifier, SHAPE),
)
FIVE = Specification(
    name="oct_h",
    data=(
        harness.PaperSets("SVM1ODT", harness.read_coded_classes, TEXT),
        harness.PaperSets("SVM1ODT", harness.read_classes, NUMBERS),
    ),
    samples=(Sample("all rows", all_rows),),
    methods=METHODS,
    metrics=(errors,),
    summary=(
        GroupTable(
            {"data": "data"},
            (*of_method(OURS), *of_method(PRINTED), harness.mean("CART: errors", "errors", ".0f").of(method=CART)),
        ),
        compared,
    ),
    time_limit=60.0,
)
OTHERS = replace(FIVE, name="oct_h-more", data=(harness.PaperSets("SVM1ODT", harness.read_classes, MORE),))
SPECIFICATIONS = (
    FIVE.with_quick(data=(harness.PaperSets("SVM1ODT", harness.read_coded_classes, ("iris",)),), time_limit=1.0),
    OTHERS.with_quick(
        data=(harness.PaperSets("SVM1ODT", harness.read_classes, ("haberman_survival",)),), time_limit=1.0
    ),
)

if __name__ == "__main__":
    sys.exit(harness.main(*SPECIFICATIONS, about=__doc__))
