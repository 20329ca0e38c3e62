"""Rows that data selection takes of large tables of the SVM1-ODT paper, and how long that takes.

From the classes as they are all extreme rows, or those of them that make others; from the leaves of CART of depth 2
what a fit would take, and that with the paper's largest tolerance.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

import harness
from harness import TIME_LIMIT, Data, GroupTable, Instance, Method, Outcome, Row, Sample, Specification
from svm1odt import LARGE, no_answer, sets
from treewright import Tree, select
from treewright.engine.cart import cart_tree


@dataclass
class Selected:
    """Rows selected from the leaves of CART of a depth; depth 0: from the classes as they are."""

    depth: int
    time_limit: float
    beta_1: float = 0.2
    epsilon: float = 0.0

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Select; the seconds are those of the selection alone."""
        n_classes = int(y.max()) + 1
        tree = (
            cart_tree(X, y, np.ones(len(y)), n_classes, self.depth)
            if self.depth
            else Tree.leaf(np.bincount(y), X.shape[1])
        )
        given = {"beta_1": self.beta_1, "epsilon": self.epsilon, "time_limit": self.time_limit}
        self.found = select(X, y, tree, **given)
        return self


def all_rows(data: Data, draw: int) -> Instance:
    return Instance(data.X, data.y, np.ones(len(data.y), dtype=bool), data.X[:1], data.y[:1], draw, facts=data.facts)


def what_was_selected(instance: Instance, outcome: Outcome) -> Mapping[str, Any]:
    """Selected rows, in all and in words for the two largest clusters, and whether time was over."""
    found = outcome.model.found
    largest = sorted(found.clusters, key=lambda cluster: -cluster.n_points)[:2]
    told = "; ".join(f"{cluster.n_selected} of {cluster.n_points}, {cluster.rule}" for cluster in largest)
    figures = found.figures()
    return {name: figures[name] for name in ("n_selected", "n_points", "fallback")} | {
        "extreme": figures["n_points"] - figures["n_inside"],
        "selecting": found.seconds,
        "largest": told,
    }


def told_of(name: str) -> harness.Column:
    def value(group: list[Row], rows: list[Row]) -> str | None:
        return group[0][name] if group else None

    return harness.Column("largest clusters", value, "")


SELECTED = tuple(
    Method(name, Selected, {**given, "time_limit": TIME_LIMIT}, answer=no_answer)
    for name, given in {
        "extreme rows of classes": {"depth": 0, "beta_1": 1 - 1e-9},
        "those that make others": {"depth": 0, "beta_1": 1e-9},
        "leaves of CART": {"depth": 2},
        "leaves of CART, epsilon 0.3": {"depth": 2, "epsilon": 0.3},
    }.items()
)
SELECTION = Specification(
    name="selection",
    data=sets(LARGE),
    samples=(Sample("all rows", all_rows),),
    methods=SELECTED,
    metrics=(what_was_selected,),
    summary=(
        GroupTable(
            {"data": "data", "method": "method"},
            (
                harness.mean("selected", "n_selected", ".0f"),
                harness.mean("extreme", "extreme", ".0f"),
                harness.mean("distinct rows", "n_points", ".0f"),
                harness.mean("seconds", "selecting", ".1f"),
                harness.mean("time was over", "fallback", ".0%"),
                told_of("largest"),
            ),
            order=tuple(method.name for method in SELECTED),
        ),
    ),
    time_limit=60.0,
)

SPECIFICATIONS = (SELECTION.with_quick(data=sets(["htru2"]), time_limit=1.0, methods=SELECTED[:1]),)

if __name__ == "__main__":
    sys.exit(harness.main(*SPECIFICATIONS, about=__doc__))
