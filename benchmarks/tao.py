"""TAO with its own node solver against TAO whose nodes call LIBLINEAR.

Both start from the same CART tree, make the same number of passes on one thread, with the same exact thresholds and the
same rule of acceptance: only the direction of a node differs. LIBLINEAR starts from zero each time, as scikit-learn's
interface has it, at a tolerance of 1e-2, which is kind to it (its default is 1e-4). Objectives are those of the trees
that the fits return.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

import harness
from harness import Data, DataSet, Instance, Method
from treewright import Tree
from treewright.core.budget import Budget
from treewright.engine.cart import cart_start
from treewright.engine.leaves import ClassLeaves
from treewright.engine.sparse_trees import improved_sparse_tree
from treewright.splits.sparse_nodes import logistic_node
from treewright.tree import predict_labels

CLASSES, DEPTH, PASSES, ALPHA, TOLERANCE = 10, 8, 5, 1.0, 1e-2


def made(n: int, p: int, informative: int) -> Data:
    """Ten classes of three clusters each, features scaled to [0, 1]; as many rows for testing."""
    options = {"n_classes": CLASSES, "n_clusters_per_class": 3, "class_sep": 1.5, "random_state": 0}
    X, y = make_classification(2 * n, p, n_informative=informative, **options)
    X = np.ascontiguousarray((X - X.min(axis=0)) / np.ptp(X, axis=0), dtype=np.float32)
    return Data(X[:n], y[:n].astype(np.int64), X[n:], y[n:].astype(np.int64))


def halves(data: Data, draw: int) -> Instance:
    return Instance(data.X, data.y, np.ones(len(data.y), dtype=bool), *data.test)


def liblinear_node(
    X: Any, goes_right: np.ndarray, weight: np.ndarray, alpha: float, start: tuple[np.ndarray, float] | None
) -> tuple[np.ndarray, float]:
    options = {"solver": "liblinear", "tol": TOLERANCE, "random_state": 0, "max_iter": 100}
    model = LogisticRegression(C=1 / alpha, l1_ratio=1, **options).fit(X, goes_right, sample_weight=weight)
    return model.coef_[0].astype(np.float64), float(model.intercept_[0])


@dataclass
class Passes:
    """Passes over a tree that is there."""

    tree: Tree
    solver: str

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Improve the tree; of CART say only what it costs."""
        if self.solver == "CART":
            self.objective_ = ALPHA * len(self.tree.branches) + float(np.sum(self.predict(X) != y))
            return self
        leaves = ClassLeaves(y, np.ones(len(y)), CLASSES)
        direction = {"ours": logistic_node, "LIBLINEAR": liblinear_node}[self.solver]
        result = improved_sparse_tree(self.tree, X, leaves, ALPHA, max_iter=PASSES, direction=direction)
        self.tree, self.objective_, self.n_iter_ = result.tree, result.objective, result.n_iter
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Classes of the rows."""
        return predict_labels(self.tree, X)


def start(instance: Instance) -> Tree:
    X, y, weight = instance.X, instance.y, np.ones(len(instance.y))
    tree = cart_start(X, y[:, None].astype(float), weight, DEPTH, True, 0, Budget())
    assert tree is not None
    improved_sparse_tree(tree, X[:500], ClassLeaves(y[:500], weight[:500], CLASSES), 1.0, max_iter=1)  # compiles
    return tree


def ratio(group: list[harness.Row], rows: list[harness.Row]) -> float | None:
    seconds = {row["method"]: row["seconds"] for row in group}
    return seconds["LIBLINEAR"] / seconds["ours"] if {"LIBLINEAR", "ours"} <= set(seconds) else None


SOLVERS = ("ours", "LIBLINEAR")
NODES = harness.Specification(
    name="tao",
    data=(
        DataSet("100 000 x 18", made, {"n": 100_000, "p": 18, "informative": 12}),
        DataSet("20 000 x 784", made, {"n": 20_000, "p": 784, "informative": 60}),
    ),
    samples=(harness.Sample("halves", halves),),
    methods=tuple(Method(name, Passes, {"solver": name}, per_instance={"tree": start}) for name in ("CART", *SOLVERS)),
    metrics=(harness.error_percent,),
    summary=(
        harness.GroupTable(
            {"data": "rows x features"},
            (
                *(harness.each(f"seconds, {name}", "{seconds:.1f}").of(method=name) for name in SOLVERS),
                harness.Column("ratio", ratio, ".1f"),
                *(harness.each(f"objective, {n}", "{objective:.0f}").of(method=n) for n in ("CART", *SOLVERS)),
                *(harness.each(f"test error, {n}", "{error:.2f}").of(method=n) for n in ("CART", *SOLVERS)),
            ),
        ),
    ),
).with_quick(data=(DataSet("600 x 18", made, {"n": 600, "p": 18, "informative": 12}),))
SPECIFICATIONS = (NODES,)

if __name__ == "__main__":
    sys.exit(harness.main(*SPECIFICATIONS, about=__doc__))
